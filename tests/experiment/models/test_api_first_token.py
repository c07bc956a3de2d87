"""Choices at a server that tells first tokens: no label is stored that neither the reply nor the distribution gives."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.models.api.responses import (
    LEAST_MASS,
    ScoredToken,
    completion_tokens,
    content_tokens,
    first_token_scores,
    label_given,
    prompt_tokens,
    read_usage,
    score_of_end,
    score_regions,
)
from experiment.models.costs import Usage
from experiment.parsing.labels import parse_label
from tests.experiment.models.api_requests import api_engine, choice
from tests.scripted_openai import ScriptedOpenAI

SETS = (
    ("Yes", "No"), ("A", "B"), ("A", "B", "C", "D"), ("word", "nonword"), ("same", "different"), ("Ja", "Nein"),
    ("Sí", "No"), ("true", "false"), ("1", "2", "3", "4", "5"), ("F", "J"),
)  # fmt: skip
TOKENS = ("A", " A", "B", "b", "The", "AB", " ", "no", "NO ", "n", "**")
OTHERS = ("The", " I", "Based", "It", "Well", "Answer", "Hmm", "—", "Ok", "Let")
AROUND = ("{}", " {}", "\n{}", '"{}', "**{}", "({}")
ENDS = ("", ".", "!", "\n", "**", '"', ")")


def told(**shares: float) -> list[ScoredToken]:
    return drawn(shares)


def drawn(shares: dict[str, float], first: str | None = None) -> list[ScoredToken]:
    alternatives = tuple((text, math.log(share)) for text, share in shares.items())
    first = first if first is not None else alternatives[0][0]
    return [ScoredToken(first, dict(alternatives).get(first), alternatives)]


@pytest.mark.parametrize(
    "form", ["yes", "YES", " yes", "Ġyes", "▁Yes", "\nYes", '"Yes', "**yes", "Yes.", "(yes)", "Yes,"]
)
def test_forms_of_a_label_add_up_and_other_words_do_not(form):
    scores = first_token_scores(drawn({"No": 0.4, "Yes": 0.25, form: 0.3}), "No", ("Yes", "No"))
    assert scores.logprobs["Yes"] == pytest.approx(math.log(0.55)), form
    assert scores.best == "Yes"
    for other in ("Yesterday", "Y", "yes it", "not", "yes no", "ja"):
        scores = first_token_scores(drawn({"Yes": 0.5, other: 0.3, "No": 0.1}), "Yes", ("Yes", "No"))
        assert scores.logprobs == pytest.approx({"Yes": math.log(0.5), "No": math.log(0.1)}), other


def test_the_first_token_is_that_of_the_answer_and_not_of_the_thought():
    thought = [
        ScoredToken("<think>", 0.0, (("<think>", 0.0),)),
        ScoredToken("B", 0.0, (("B", 0.0),)),
        ScoredToken("</think>", 0.0),
    ]
    answer = told(A=0.9, B=0.1)
    assert first_token_scores([*thought, *answer], "A", ("A", "B")).best == "A"
    blank = [ScoredToken("\n\n", 0.0, (("\n\n", 0.0),))]
    assert first_token_scores([*blank, *answer], "A", ("A", "B")).best == "A"


def test_the_answer_is_found_at_the_beginning_of_a_token_and_not_in_the_sign_of_its_end():
    end = ScoredToken("<|EOT|>", -0.1, (("<|EOT|>", -0.1),))
    assert first_token_scores([*drawn({"T": 0.8, "F": 0.2}), end], "T", ("T", "F")).best == "T"
    thought = ScoredToken("So T or F?</think>", 0.0, (("So T or F?</think>", 0.0),))
    assert (
        first_token_scores([thought, *drawn({"F": 0.8, "T": 0.2}), end], "F", ("T", "F"), thinks=True).best
        == "F"
    )


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.sampled_from(TOKENS), st.floats(0.0005, 0.09), min_size=1),
    st.sets(st.sampled_from(["A", "B", "AB", "ABC", "No", "a", "no", "*"]), min_size=1),
    st.data(),
)  # fmt: skip
def test_every_label_has_a_probability_or_a_bound_that_hold_together(shares, labels, data):
    first = data.draw(st.sampled_from(sorted(shares)))
    scores = first_token_scores(drawn(shares, first), first, sorted(labels))
    if scores is None:
        assert not first.strip().strip("*") and first.strip() not in labels
        return
    assert set(scores.logprobs) | set(scores.bounds) == labels
    assert not set(scores.logprobs) & set(scores.bounds)
    assert all(value <= 0 for value in (*scores.logprobs.values(), *scores.bounds.values()))
    untold = 1 - sum(shares.values())
    assert all(math.exp(bound) >= untold - 1e-9 for bound in scores.bounds.values())
    mass = sum(map(math.exp, scores.logprobs.values()))
    assert mass <= sum(shares.values()) + 1e-9
    if scores.best is not None:
        value = scores.logprobs[scores.best]
        assert mass >= LEAST_MASS
        assert all(other < value for label, other in scores.logprobs.items() if label != scores.best)
        assert all(bound < value for bound in scores.bounds.values())


@dataclass(frozen=True)
class Case:
    """One answer of a server: its first token's probabilities, its text, and the label that a reader finds in it."""

    labels: tuple[str, ...]
    shares: dict[str, float]
    of: dict[str, str]
    first: str
    text: str
    truth: str | None

    @property
    def sums(self) -> dict[str, float]:
        found = Counter()
        for form, label in self.of.items():
            found[label] += self.shares[form]
        return dict(found)


def random_case(number: int) -> Case:
    """Draw labels, a distribution over their forms and other words, and a reply that goes on from one of these."""
    draw = random.Random(f"first token {number}")
    labels = draw.choice(SETS)
    of: dict[str, str] = {}
    for _ in range(draw.randint(0, 7)):
        label = draw.choice(labels)
        of[draw.choice(AROUND).format(draw.choice((label, label.lower(), label.upper())))] = label
    tokens = [*of, *draw.sample(OTHERS, draw.randint(0 if of else 1, 4))]
    weights = [draw.random() ** draw.choice((1, 6)) + 1e-6 for _ in tokens]
    held = draw.uniform(0.6, 0.9999) / sum(weights)
    shares = {token: weight * held for token, weight in zip(tokens, weights, strict=True)}
    greedy = max(shares, key=lambda one: shares[one])
    first = draw.choice((greedy, greedy, draw.choice(tokens)))
    other = draw.choice(labels)
    if first in of:
        ways = [(first + end, of[first]) for end in ENDS]
        if of[first] == "A" and first.strip(' \n"*(') == "A":
            ways.append((f"{first} careful look is needed. The answer is {labels[1]}.", labels[1]))
            ways.append((f"{first} good question.", None))
        if of[first] in ("Yes", "No", "Ja"):
            ways.append(
                (
                    first
                    + {"Yes": "terday it rained.", "No": "thing is said of it.", "Ja": "nuary is cold."}[
                        of[first]
                    ],
                    None,
                )
            )
        text, truth = draw.choice(ways)
    else:
        text, truth = draw.choice(
            (
                (f"{first}: the answer is {other}.", other),
                (f"{first}.\nAnswer: {other}", other),
                (f"{first} … I cannot tell.", None),
                (f"{first}, hard to say.", None),
            )
        )
    return Case(labels, shares, of, first, text, truth)


def check(case: Case, text: str | None, logprobs: dict[str, float], marks: set[str]) -> None:
    """Hold what a reply became against the case that it was made from."""
    assert parse_label(text, case.labels).value == case.truth, (case, text)
    assert logprobs == pytest.approx({label: math.log(share) for label, share in case.sums.items()}), case
    top = Counter(case.sums).most_common(1)
    mass = sum(case.sums.values())
    is_open = (
        any(1 - sum(case.shares.values()) >= top[0][1] for label in case.labels if label not in case.sums)
        if top
        else True
    )
    if mass < LEAST_MASS or is_open:
        assert marks == {"unsettled"}, case
    else:
        assert marks == (set() if case.truth == top[0][0] else {"disagrees"}), case


def test_no_verdict_of_random_replies_contradicts_what_was_written():
    """Of 500 replies, each through the server, the engine and the parser; not one has a label that it does not give."""
    cases = {number: random_case(number) for number in range(500)}

    def case_of(body: dict[str, object]) -> Case:
        return cases[int(str(body["messages"][-1]["content"]).split()[1])]  # type: ignore[index]

    with ScriptedOpenAI(answer=lambda body: case_of(body).text) as server:
        server.logprobs = lambda body: {
            token: math.log(share)
            for token, share in sorted(
                case_of(body).shares.items(), key=lambda one: one[0] != case_of(body).first
            )
        }
        engine = api_engine(server, probe=False, concurrency=16)
        replies = list(engine.answer(choice(number, labels=case.labels) for number, case in cases.items()))
    assert len(replies) == len(cases)
    seen: Counter[str] = Counter()
    for reply in replies:
        case = cases[int(reply.work_key[1:])]
        assert (reply.path or "").startswith("chat+logprobs") and reply.generated == case.text
        marks = set((reply.path or "").split("+")[2:])
        check(case, reply.text, reply.label_logprobs or {}, marks)
        seen.update(marks or {"agrees"})
    assert min(seen[name] for name in ("agrees", "unsettled", "disagrees")) >= 25, seen


def test_a_label_that_was_cut_short_is_given_only_where_it_is_all_there_is():
    assert label_given("The answer is A", ("A", "B"), "A", is_cut=True) is None
    assert label_given("The answer is A", ("A", "B"), "A", is_cut=False) == "A"
    assert label_given("a.", ("A", "B"), None, is_cut=True) == "A"


def test_an_untold_label_that_may_be_second_leaves_the_margin_open():
    with ScriptedOpenAI(answer=lambda body: "A") as server:
        server.logprobs = lambda body: {"A": math.log(0.7), "B": math.log(0.1)}
        replies = list(api_engine(server, probe=False).answer([choice(1), choice(2, labels=("A", "B", "C"))]))
    margins = {reply.work_key: reply.margin for reply in replies}
    assert margins == {"k1": pytest.approx(math.log(7)), "k2": None}, "C may have 0.2"


def test_an_answer_held_to_a_form_is_scored_where_its_label_stands():
    with ScriptedOpenAI(answer=lambda body: "B") as server:
        server.heeds.add("json_schema")
        server.logprobs = lambda body: {"B": math.log(0.6), "A": math.log(0.4)}
        (reply,) = api_engine(server, label_only=True).answer([choice(1)])
    assert json.loads(json.dumps(reply.label_logprobs)) == pytest.approx(
        {"B": math.log(0.6), "A": math.log(0.4)}
    )
    assert (reply.text, reply.path) == ("B", "chat+logprobs")


@pytest.mark.parametrize(
    "value", [None, 3, "x", [None], [{"token": 3}], [{"logprob": "x", "token": "A"}], {}]
)
def test_no_logprobs_make_reading_fail(value):
    content_tokens(value)
    completion_tokens({"logprobs": value})
    completion_tokens({"logprobs": {"tokens": value, "token_logprobs": value}})
    prompt_tokens({"prompt_logprobs": value})
    prompt_tokens({"choices": [{"prompt_logprobs": value}]})


def test_the_end_of_a_prompt_is_scored_only_when_it_is_there_and_wholly_told():
    tokens = [
        ScoredToken("Which", None),
        ScoredToken(" one", -1.0),
        ScoredToken(" is", -2.0),
        ScoredToken(" it", -0.5),
    ]
    assert score_of_end(tokens, " is it") == -2.5
    assert score_of_end(tokens, "Which one is it") is None
    assert score_of_end(tokens, " was it") is None


def test_regions_in_a_message_that_the_prompt_does_not_show_are_not_scored():
    tokens = [ScoredToken("Hello", None), ScoredToken(" there", -1.0)]
    assert score_regions(tokens, ("Goodbye",), ((0, 0, 3),)) == ()
    (first, second) = score_regions(tokens, ("Hello there",), ((0, 0, 5), (0, 6, 11)))
    assert (first.surprisal, second.surprisal) == (None, 1.0)


def test_a_region_is_found_in_its_own_message_when_another_says_the_same():
    tokens = [
        ScoredToken("<s>", None),
        ScoredToken("cat", -1.0),
        ScoredToken("\n", -0.1),
        ScoredToken("cat", -3.0),
    ]
    (score,) = score_regions(tokens, ("cat", "cat"), ((1, 0, 3),))
    assert (score.surprisal, score.tokens) == (3.1, 2), "a token of blanks belongs to what follows"


FORMS = {
    "openai chat": {
        "prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 30},
    },
    "openai responses": {
        "input_tokens": 100, "input_tokens_details": {"cached_tokens": 60}, "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 30}, "total_tokens": 150,
    },
    "cache beside, hit and miss": {
        "prompt_tokens": 100, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40, "completion_tokens": 50,
        "completion_tokens_details": {"reasoning_tokens": 30}, "total_tokens": 150,
    },
    "cached input outside the input": {
        "input_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10, "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 30},
    },
    "thoughts outside the output": {
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 150, "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 30},
    },
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_as_the_same_counts(form):
    usage = read_usage({"usage": FORMS[form]})
    assert usage == Usage(prompt=100, cached=60, completion=50, reasoning=30)


COUNTS = ["prompt_tokens", "completion_tokens", "total_tokens", "reasoning_tokens", "prompt_tokens_details"]


@given(
    st.dictionaries(
        st.sampled_from(COUNTS),
        st.none() | st.integers() | st.text() | st.booleans() | st.dictionaries(st.text(), st.integers()),
    )
)
def test_no_usage_makes_reading_fail(usage):
    read_usage({"usage": usage})
