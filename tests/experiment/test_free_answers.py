"""Free answers: what a reply gives as its answer, and which answers count."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.building import make_items
from experiment.checking import load_study
from experiment.models.prompts.prompter import render
from experiment.parsing.free_answers import decimal_mark, is_accepted, number_of, overlap
from experiment.parsing.replies import parse_free
from experiment.procedure import plan_session, trials_of
from experiment.scoring.trial import score_trial
from stimuli.errors import UserError
from stimuli.item import build_meta, write_items


@pytest.mark.parametrize(
    ("reply", "read_as", "wanted"),
    [
        # the number announced as the answer is taken, else the last one
        ("18", "number", "18"), ("5 + 13 = 18 dollars", "number", "18"), ("first 4, then 9\n#### 72", "number", "72"),
        ("She has 16 eggs and eats 3. The answer is 18.", "number", "18"), ("Die Antwort ist 7, nicht 8", "number", "7"),
        ("The answer is $1,200. That is 3 times 400.", "number", "1,200"), ("minus: -3.5", "number", "-3.5"),
        ("none given", "number", "unparsed"), ("No lo sé.", "number", "refused"), (None, "number", "empty"),
        ("Denver Broncos", "text", "Denver Broncos"), ("The answer is: 'Denver Broncos'", "text", "Denver Broncos"),
        ("Denver\n\nBecause they won.", "text", "Denver"), ("I cannot tell from the text.", "text", "refused"),
        ("Ich weiß es nicht.", "text", "refused"), ("  ", "text", "empty"),
        ("```python\ndef f():\n    return 1\n```\nDone.", "code", "def f():\n    return 1"),
        # what stands around an answer is taken off
        ("```\nParis\n```", "text", "Paris"), ('{"answer": "Paris"}', "text", "Paris"), ('{"answer": 42}', "number", "42"),
        ("The answer is $\\boxed{42}$.", "number", "42"), ("\\boxed{B}", "option", "two"), ('{"answer": "B"}', "option", "two"),
        ("La respuesta correcta es la B.", "option", "two"), ("A or B", "option", "unparsed"),
        ("The answer is not A", "option", "unparsed"), ("I cannot tell", "option", "refused"),
    ],
)  # fmt: skip
def test_a_reply_is_read_as_the_step_says(reply, read_as, wanted):
    parsed = parse_free(reply, read_as, multiline=False, options=["one", "two", "three"])
    assert (parsed.value if parsed.status == "valid" else parsed.status) == wanted
    assert (parsed.value is None) == (parsed.status != "valid")


@pytest.mark.parametrize("reply", ["two\nlines", "def f(): return 1"])
def test_an_answer_of_several_lines_is_kept_whole(reply):
    assert parse_free(reply, "code" if "def" in reply else "text", multiline=True).value == reply


@given(st.integers(-(10**9), 10**9))
def test_a_number_has_one_value_however_it_is_written(value):
    for written in (str(value), f"{value:,}", f"{value}.0", f"{value}.00"):
        assert number_of(written) == value
        assert is_accepted(written, [str(value)], "number")


def test_words_count_without_case_articles_and_punctuation():
    assert is_accepted("the Denver Broncos.", ["Denver Broncos", "Broncos"], "text")
    assert not is_accepted("Denver", ["Denver Broncos"], "text")
    assert overlap("Denver", ["Denver Broncos"]) == pytest.approx(2 / 3)
    assert not is_accepted("18.5", ["18"], "number")
    assert is_accepted("1/4", ["0.25"], "number")


@pytest.fixture
def trial() -> Callable[..., dict[str, object]]:
    def make(accepted: list[str], read_as: str = "text") -> dict[str, object]:
        step = {"step": "answer", "text": "Who won?", "ask": None, "read_as": read_as, "multiline": False}
        return {"answer": accepted[0] if accepted else None, "accepted": accepted, "steps": [step]}

    return make


def test_any_of_the_accepted_answers_is_right(trial):
    score = score_trial(trial(["Denver Broncos", "Broncos"]), "Broncos")
    assert (score.correct, score.score, score.response_status) == (True, 1.0, "valid")


def test_where_nothing_says_what_is_right_the_answer_is_kept_without_a_verdict(trial):
    score = score_trial(trial([]), "A summary.")
    assert (score.response, score.correct, score.score, score.response_status) == (
        "A summary.",
        None,
        None,
        "valid",
    )


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("3,5", "3.5"),
        ("1.500", "1500"),
        ("1500", "1500"),
        ("1.500,25", "1500.25"),
        ("3.5", "3.5"),
        ("1 000", "1000"),
    ],
)
def test_numbers_are_read_as_the_study_s_language_writes_them(written, value):
    assert is_accepted(written, [value.replace(".", ",")], "number", decimal=decimal_mark("de-AT"))
    assert not is_accepted("3,9", ["3,5"], "number", decimal=",")


@pytest.mark.parametrize(
    ("reply", "option"),
    [
        ("B", "5 km"), ("She walks 5 km in an hour.\nThe answer is (B).", "5 km"), ("The answer is A) apple pie.", "apple pie"),
        ("(c)", "A thing"), ("The answer is 5 km", "5 km"), ("A thing", "A thing"), ("A good question", None),
        ("a good question", None), ("either (A) or (B)", None), ("The answer is (E).", None),
    ],
)  # fmt: skip
def test_an_option_is_read_by_its_letter_or_its_words(reply, option):
    parsed = parse_free(reply, "option", multiline=True, options=["apple pie", "5 km", "A thing"])
    assert parsed.value == option


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=5, unique=True))
def test_an_option_read_is_always_one_of_those_shown(reply, options):
    value = parse_free(reply, "option", multiline=True, options=options).value
    assert value is None or value in options


AQUA = """\
wrods: 1
study: aqua
title: Aqua
seed: 3
materials:
  corpus: {{name: aqua, from: {folder}, split: test}}
  task: {{problem: {{exemplars: printed}}}}
  items: 4
  on_bad: skip
procedure:
  - block:
      trial:
        - answer: {{show: question, read_as: option}}
"""


def test_worked_examples_and_items_stand_with_their_options(shared, tmp_path):
    (tmp_path / "study.yaml").write_text(AQUA.format(folder=shared / "data" / "aqua"), "utf-8")
    study = load_study(tmp_path)
    items = make_items(study).items
    write_items(tmp_path / "items.jsonl", items, build_meta(3))
    plan = plan_session(study, items, list_id=1)
    for trial in trials_of(plan):
        (step,) = trial["steps"]
        letters = "ABCDE"[: len(step["options"])]
        assert [line[:3] for line in step["text"].splitlines()[-len(letters) :]] == [
            f"({c})" for c in letters
        ]
        right = letters[step["options"].index(trial["answer"])]
        assert score_trial(trial, f"Because.\nThe answer is ({right}).").correct
        wrong = next(c for c in letters if c != right)
        assert score_trial(trial, f"({wrong})").correct is False
        assert len(trial["exemplars"]) == 4
        for exemplar in trial["exemplars"]:
            assert "\n(A) " in exemplar["text"]
            assert re.search(r"The answer is \([A-E]\)\.$", exemplar["label"])
        content = render(plan, trial).messages[0].content
        assert step["text"] in content
        assert "letter" in content


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("read_as: option", "read_as: number", "'3000pi'"),
        ("show: question, read_as: option", "show: question", "published: .*prompt"),
    ],
)
def test_what_cannot_be_read_or_prompted_is_said_before_anybody_answers(shared, tmp_path, old, new, says):
    text = AQUA.format(folder=shared / "data" / "aqua").replace(old, new)
    if "prompt" in says:
        text = text.replace("seed: 3", "seed: 3\npublished: [prompts]")
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    with pytest.raises(UserError, match=says):
        make_items(load_study(tmp_path))


@pytest.mark.parametrize("task", ["summarise", "translate: {target_language: fr}"])
def test_a_task_that_says_nothing_by_itself_needs_a_question(shared, tmp_path, task):
    text = (
        AQUA.format(folder=shared / "data" / "boolq")
        .replace("name: aqua", "name: boolq")
        .replace(", split: test", "")
    )
    text = text.replace("{problem: {exemplars: printed}}", f"{{{task}}}" if ":" in task else task)
    text = text.replace("show: question, read_as: option", "show: passage, multiline: true")
    (tmp_path / "study.yaml").write_text(text, "utf-8")
    with pytest.raises(UserError, match=r"materials\.task"):
        make_items(load_study(tmp_path))
