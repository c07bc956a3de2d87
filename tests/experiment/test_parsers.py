"""Parsers of replies: they never raise, never guess, read long replies in linear time, and papers' own copy their faults."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.papers.h_test.protocol import htest_label
from experiment.papers.mind_scramble.protocol import (
    named_fields,
    words_in_place,
)
from experiment.papers.scrambled_bench.protocol import choice_letter, recovered_sentence
from experiment.parsing.labels import parse_label
from experiment.parsing.replies import parse_free
from experiment.parsing.restored import parse_recovered
from experiment.parsing.text import without_thought
from experiment.scoring import published
from experiment.scoring.published import in_its_form, paper_of, parsers, published_score
from experiment.scoring.trial import score_trial
from stimuli.papers import papers

JUNK = st.text(
    st.characters(exclude_categories=[])
    | st.sampled_from("AB\n\r\t .:*()<>`'\"\u200b\u202e\x00\ufeff\ud800ß")
)
SPOKEN = "answer Answer: A B is the I cannot tell not ** <think> </think> ( ) no my final Antwort respuesta: 3,5 -1/0 #### yes"
PIECES = (*SPOKEN.split(), "\n")
WORDS = st.lists(st.sampled_from(PIECES)).map(" ".join)


def trial(step: str = "choose", **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"step": step, "text": "agrden", "caption": None, "ask": None}
    if step == "choose":
        made |= {"labels": ["A", "B"], "responses": ["A", "B"], "options": None}
    else:
        made |= {"multiline": False} | (
            {"read_as": "number", "decimal": ".", "options": None} if step == "answer" else {}
        )
    row = {
        "steps": [made | more.pop("of_step", {})], "answer": "A", "accepted": ["A"], "set": "uppercase", "exemplars": [],
        "shown": {"sentence": "agrden"}, "intact": {}, "item_id": "s1", "condition": {},
    }  # fmt: skip
    return row | more


@settings(max_examples=150, deadline=None)
@given(JUNK | WORDS)
def test_no_parser_ever_raises_and_each_gives_a_status(text):
    for labels in (["A", "B"], ["Yes", "No"], ["word", "nonword"], ["+", "(a)"]):
        parsed = parse_label(text, labels, [f"option {label}" for label in labels])
        assert (parsed.value in labels) == (parsed.status == "valid")
    for multiline in (False, True):
        assert parse_recovered(text, multiline=multiline).status in ("valid", "empty", "refused")
        for read_as in ("text", "number", "option", "code"):
            parse_free(text, read_as, multiline=multiline, options=["one", "two"])
    for one in (trial(), trial("recover", answer="garden"), trial("answer", answer="3", accepted=["3"])):
        for thinks in (False, True):
            for status in ("answered", "truncated", "refused", "empty"):
                score = score_trial(one, text, reply_status=status, thinks=thinks)
                assert (score.correct is None) or score.response_status == "valid"
        for name in parsers():
            published_score(name, one, text)


@pytest.mark.parametrize("parser", [None, "published", *parsers()])
@pytest.mark.parametrize("answer", [None, "A"])
def test_further_answers_are_scored_as_wrods_does_also_with_a_paper_s_parser(parser, answer):
    further = trial(answer=answer, accepted=[], step_name="again")
    assert score_trial(further, "A", parser=parser).correct == (answer and True)
    scale = {"from": 1, "to": 7, "labels": None, "responses": None, "low": None, "high": None, "decimal": "."}
    rated = trial("rate", answer=None, step_name="sure", of_step=scale)
    assert score_trial(rated, "5", parser=parser).score == 5


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["I cannot tell", "I can't say", "Unclear.", "As an AI, I cannot answer", "Sorry, I can't help",
                        "Es tut mir leid", "No puedo responder", "a good question", "There is an answer, I think"]),
       st.sampled_from(["", " ", "\n", ".", "!", " \u200b", "\n\nThanks", " at all"]))  # fmt: skip
def test_i_cannot_tell_is_never_read_as_a(text, ending):
    for thinks in (False, True):
        assert score_trial(trial(), text + ending, reply_status="answered", thinks=thinks).response is None


@pytest.mark.parametrize(
    "text",
    ["my " * 40_000, "answer " * 20_000, "answer" + " " * 100_000, "answer" + "*" * 100_000, " \n" * 60_000,
     "(" * 100_000, "A" * 100_000, "1" * 100_000, "1," * 40_000, "```" * 30_000, "<think>" * 15_000, "no " * 40_000 + "1"],
    ids=lambda text: repr(text[:8]),
)  # fmt: skip
def test_very_long_replies_are_read_in_linear_time(text):
    """A parser that takes the square of a hundred thousand characters takes hours."""
    for one in (trial(), trial("recover", answer="garden"), trial("answer", answer="3", accepted=["3"])):
        for thinks in (False, True):
            assert score_trial(one, text, reply_status="answered", thinks=thinks).response_status
    for name in parsers():
        published_score(name, trial(), text)


def test_thoughts_are_cut_off_before_anything_is_read():
    assert without_thought("<think>A? No.</think>\nB") == "B"
    assert without_thought("[THINK]A?[/THINK]B") == "B"
    assert without_thought("A? no</think>B") == "B"
    assert score_trial(trial(), "<think>It is A", reply_status="truncated").response_status == "truncated"
    assert score_trial(trial(), "<think>Answer: B</think>A", reply_status="answered").correct is True
    assert score_trial(trial("recover", answer="<think> a"), "<think> a").correct is True, (
        "people's texts stay whole"
    )


@pytest.mark.parametrize(
    ("reply", "label"),
    [("I cannot tell", "A"), ("Sorry, I can't help", "A"), ("Unclear", "A"), ("Answer: A", "A"), ("Neither", None),
     ("Based on the rule, A", None), ("b", "B"), ("It is b", "B"), ("label: a and label: b", "A"), ("", None)],
)  # fmt: skip
def test_h_tests_own_parser_takes_any_text_with_an_a_for_a(reply, label):
    assert htest_label(reply) == label


@pytest.mark.parametrize(
    ("reply", "letter"),
    [("(B)Baby formula", "B"), ("Baby formula", "B"), ("Based on it, milk", "B"), ("According to it", "A"), ("none", ""),
     ("Whole milk. No, Baby formula", "D"), ("Question: A", ""), ("C\nAnswer: A", "C")],
)  # fmt: skip
def test_scrambled_benchs_own_parser_finds_letters_inside_words(reply, letter):
    options = ["Salad dressing", "Baby formula", "Ground beef", "Whole milk"]
    assert choice_letter(reply, options) == letter


def test_scrambled_benchs_parsers_give_every_stored_prediction_of_the_released_outputs(shared):
    released = shared / "data" / "scrambled_bench"
    with (released / "stimuli" / "qa_realtimeqa.jsonl").open(encoding="utf-8") as lines:
        options = [json.loads(line)["choices"] for line in lines]
    read = 0
    for file in sorted((released / "outputs").glob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                read += 1
                if row["task"] == "qa":
                    assert choice_letter(row["output"], options[row["i"]]) == (row["pred"] or ""), row
                else:
                    assert recovered_sentence(row["output"]) == row["recovered"], row
    assert read == 16_954 + 28_560


def test_mind_scrambles_fields_are_marked_where_they_are_not_and_doubles_overwrite():
    assert named_fields(">reason: because\n>answer: yes", ("answer", "reason")) == {
        "reason": "because",
        "answer": "yes",
    }
    assert named_fields("reason: because\nanswer: yes", ("answer", "reason")) == {
        "reason": "because",
        "answer": "yes",
    }
    assert named_fields(">answer: yes >answer: no", ("answer",)) == {"answer": "no"}
    assert named_fields("yes", ("answer", "reason")) == {}


def test_mind_scrambles_words_count_by_their_places():
    assert words_in_place("The dog", "The dog barks.") == 1.0
    assert words_in_place("A the dog", "the dog") == 0.0


def test_published_scores_of_whole_trials():
    free = {"set": "complete", "answer": "18", "accepted": ["18"], "shown": {"question": "?"}}
    assert (
        published_score("published", trial("answer", **free), ">process: 9\n>answer_number: 1.8").correct
        is True
    )
    assert published_score("published", trial("answer", **free), "18").response_status == "unparsed"
    boolq = {"set": "question", "answer": "yes", "shown": {"passage": "p", "question": "q"},
             "of_step": {"labels": ["yes", "no"], "responses": ["yes", "no"]}}  # fmt: skip
    assert published_score("published", trial(**boolq), ">reason: r\n>answer: 'yes'").correct is True
    assert published_score("published", trial(**boolq), ">reason: r\n>answer: Yes").correct is False
    assert published_score("published", trial(), "I cannot tell").correct is True, "H-TEST's bias to A"
    assert (
        score_trial(trial(), "I cannot tell", reply_status="answered", parser="published").scorer
        == "published_htest-1"
    )


def test_an_answer_in_its_papers_form_is_read_and_right():
    """The oracle answers so: else the papers' parsers find no answer, and a yardstick of 100% shows 0."""
    number = {"set": "complete", "answer": "18", "accepted": ["18"], "shown": {"question": "?"}}
    boolq = {"set": "question", "answer": "yes", "shown": {"passage": "p", "question": "q"},
             "of_step": {"labels": ["A", "B"], "responses": ["yes", "no"]}}  # fmt: skip
    aqua = {"set": "problem", "answer": "7", "accepted": ["7"], "shown": {"question": "?"}, "exemplars": [{"answer": "5"}],
            "of_step": {"read_as": "option", "options": ["5", "7", "9", "11", "13"]}}  # fmt: skip
    for one in (trial("answer", **number), trial(**boolq), trial("answer", **aqua)):
        assert paper_of(one) in ("typobench", "scrambled_bench")
        assert published_score("published", one, in_its_form(one, str(one["answer"]))).correct is True
    program = trial("answer", set="complete", answer="x", shown={"text": "?"}, of_step={"read_as": "code"})
    assert in_its_form(program, "x") == ">code: x" and in_its_form(trial(**boolq), "") == ""


def test_a_prompt_belongs_to_the_parser_with_the_longest_name_that_begins_it(monkeypatch: pytest.MonkeyPatch):
    known = {**parsers(), "scrambled_bench_recovery": papers()["scrambled-bench"]}
    monkeypatch.setattr(published, "parsers", lambda: known)
    assert paper_of(trial("recover", set="recovery")) == "scrambled_bench_recovery"
    assert paper_of(trial(set="question", shown={"evidence": "?"})) == "scrambled_bench"


COLLECTED = json.loads((Path(__file__).parent / "replies.json").read_text("utf-8"))
REPLIES = COLLECTED["replies"]


@pytest.mark.parametrize(
    ("reply", "labels", "wanted"),
    [(reply, group["labels"], wanted) for group in REPLIES for reply, wanted in group["cases"]],
)
def test_replies_in_three_languages_are_read_as_a_person_would(reply, labels, wanted):
    """Fences, JSON, boxes, stars; both labels named, denials, suppositions, excuses: in English, German and Spanish."""
    parsed = parse_label(reply, labels)
    assert (parsed.value if parsed.status == "valid" else parsed.status) == wanted


PHRASES = st.lists(
    st.sampled_from(
        [
            "A", "B", "A,", "B.", "(A)", "(B)", "answer:", "The answer is", "not", "if", "wait,", "or", "and", "I choose", "\n",
            "group", "because", "Antwort:", "nicht", "La respuesta es", "no", "{\"answer\": \"A\"}", "**B**", "it is", "the line",
            "but", "so", "I believe it is", "definitely", "since", "\n\n", "I'm not sure,", "(not",
            "is correct", "also ist es", "creo que",
        ]
    ),
    max_size=9,
).map(" ".join)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(PHRASES)
def test_no_label_is_favoured(reply):
    """What is read of a reply follows its labels when they change places, and their order does not matter."""
    swapped = re.sub(r"\b[AB]\b", lambda found: "BA"["AB".index(found[0])], reply)
    one, other, turned = (
        parse_label(text, labels) for text, labels in ((reply, "AB"), (swapped, "AB"), (reply, "BA"))
    )
    assert one == turned
    assert one.status == other.status and {one.value, other.value} in ({"A", "B"}, {None})


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["I cannot tell", "I'm not sure", "Ich weiß es nicht", "No lo sé", "It is impossible to say",
                     "Das lässt sich nicht sagen", "No se puede determinar", "There is not enough information"]),
    st.sampled_from([" whether it is A or B", ", A or B", ": it could be A", "; maybe B", " if the answer is A", "", " (A or B)"]),
    st.sampled_from(["", "Hm. ", "**", "Answer: ", "Answer\n", "```\n", "- "]),
    st.sampled_from(["", ".", "!", "\n", "**", "\n```"]),
)  # fmt: skip
def test_who_cannot_tell_chooses_nothing(excuse, more, before, after):
    for labels in (["A", "B"], ["Yes", "No"], ["Ja", "Nein"], ["Sí", "No"], ["word", "nonword"]):
        assert parse_label(before + excuse + more + after, labels).value is None


DOUBTS = (
    "I cannot tell",
    "I don't know",
    "I'm not sure",
    "Ich weiß es nicht",
    "No lo sé",
    "It is hard to say",
)
TURNS = (", but", "; but", ". So", ", so", ", aber", ", pero", ". However,", " and", ":", "\n\nAnswer:\n\n")
NO_ANSWERS = (
    *(
        "it could be {}",
        "not {}",
        "if it has a capital it is {}",
        "{} or {}",
        "either {} or {}",
        "it is not {}",
    ),
    *("I don't think it is {}", "whether it is {} is unclear", "definitely not {}", "perhaps {}", "maybe {}"),
    *("who believes it is {}?", "the question is whether it is {}", "it would be {} if it had a capital"),
)
HEDGES = (
    *("", "I'm not sure, but ", "I cannot tell for sure, but ", "Hard to say, but ", "It is not named, so "),
    *("If I had to guess, ", "Ich bin mir nicht sicher, aber ", "No estoy segura, pero "),
)
ANSWERS = (
    *("I would say {}", "my answer is {}", "I believe it is {}", "I think it belongs to {}", "{} is correct"),
    *("I choose {}", "ich glaube, es ist {}", "ich würde sagen {}", "creo que es {}", "diría {}"),
    *("it is probably {}", "definitely {}"),
)
PAIRS = (
    ["A", "B"],
    ["Yes", "No"],
    ["No", "Yes"],
    ["word", "nonword"],
    ["Ja", "Nein"],
    ["agree", "strongly agree"],
)


@settings(max_examples=150, deadline=None)
@given(*map(st.sampled_from, (DOUBTS, TURNS, NO_ANSWERS, PAIRS)))
def test_a_doubt_that_is_followed_by_no_answer_stays_one(doubt, turn, more, labels):
    assert parse_label(f"{doubt}{turn} {more.format(*labels)}", labels).value is None


@settings(max_examples=150, deadline=None)
@given(
    *map(st.sampled_from, (HEDGES, ANSWERS, PAIRS)),
    st.sampled_from(["", ".", "!", ", I think", " because of the letters", " (see the rule)"]),
)
def test_who_hedges_and_answers_has_answered(before, said, labels, behind):
    assert parse_label(before + said.format(labels[0]) + behind, labels).value == labels[0]


@given(
    st.sampled_from(["strongly", "somewhat", "fully", "very much", "slightly", "not", "rather"]),
    st.booleans(),
)
def test_a_word_of_a_scale_with_another_degree_is_not_that_word(degree, is_behind):
    said = f"I agree {degree}" if is_behind else f"I {degree} agree"
    assert parse_label(said, ["strongly agree", "agree", "disagree", "strongly disagree"]).value != "agree"


@pytest.mark.parametrize(
    ("reply", "status"),
    [("A", "valid"), ("**A**", "valid"), ("Answer: A.", "valid"), ("The answer is A", "truncated"), ("Answer: A", "truncated"),
     ("A. The line ends", "valid"), ("The answer is", "truncated")],
)  # fmt: skip
def test_a_label_at_the_cut_of_a_reply_may_be_the_beginning_of_something_else(reply, status):
    assert score_trial(trial(), reply, reply_status="truncated").response_status == status


@pytest.mark.parametrize(("reply", "wanted"), COLLECTED["restored"])
def test_what_stands_around_a_restored_text_is_taken_off(reply, wanted):
    """Greetings, headings, fences, JSON, quotes and stars; a sentence that only looks like one of these stays whole."""
    parsed = parse_recovered(reply)
    assert (parsed.value if parsed.status == "valid" else parsed.status) == wanted


def choice(
    answer: str = "A", labels: tuple[str, ...] = ("A", "B"), responses: tuple[str, ...] | None = None
) -> dict[str, Any]:
    step = {"step": "choose", "labels": list(labels), "responses": list(responses or labels), "text": "x"}
    return {"answer": answer, "steps": [step]}


def typed(answer: str, *, multiline: bool = False) -> dict[str, Any]:
    return {"answer": answer, "steps": [{"step": "recover", "text": "x", "multiline": multiline}]}


def test_a_swapped_label_is_scored_as_the_class_that_it_stands_for():
    score = score_trial(choice("A", ("A", "B"), ("B", "A")), "B")
    assert (score.response, score.correct, score.score) == ("A", True, 1.0)


@pytest.mark.parametrize(
    ("given_text", "correct"),
    [
        ("The dog barks.", True),
        ("the dog barks", True),
        (" The  dog barks! ", True),
        ("The dgo barks.", False),
        ("The dog", False),
    ],
)
def test_recovery_ignores_case_spacing_and_punctuation(given_text, correct):
    assert score_trial(typed("The dog barks."), given_text).correct is correct


def test_recovery_score_counts_a_transposition_as_one_edit():
    assert score_trial(typed("garden"), "gadren").score == pytest.approx(1 - 1 / 6)
    assert score_trial(typed("garden"), "garden").score == 1.0
