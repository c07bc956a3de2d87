"""Solved examples before the items: at a rate of their own, crossed with the items, as the papers printed them."""

from __future__ import annotations

import json

import pytest

from stimuli.corpora.corpus import Record
from stimuli.errors import UserError
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.tasks import printed_examples, task_items

RATES = {"RS-0": "none", "RS-20": "RS-20", "RS-50": "RS-50", "RS-100": "RS-100"}
CROSSED = {"demonstration_factor": "examples", "demonstrations": RATES}


def problem(name, question, **changed):
    given = {"choices": ("12", "13"), "answer": "12", "rationale": "Count the baskets."}
    return Record(name, "aqua", "test", None, {"question": question}, **(given | changed))


TESTS = (
    problem("t1", "Twelve farmers carry baskets together."),
    problem("t2", "Thirteen gardeners planted flowers yesterday."),
)


def make(**changed):
    records, options = changed.pop("records", TESTS), changed.pop("options", CROSSED)
    design = ItemDesign(factor="question", levels={"RS-0": "none", "RS-100": "RS"}, seed=1, **changed)
    return task_items("problem", records, design, exemplars="printed", options=options)


def examples(items):
    return [item for item in items.items if item.role == "exemplar"]


def prefix(items):
    """Write worked examples as the released prompts have them."""
    blocks = []
    for item in items:
        options = list(item.choices or ())
        letter = "ABCDE"[options.index(str(item.answer))]
        listed = " ".join(f"({name}){option}" for name, option in zip("ABCDE", options, strict=True))
        blocks.append(
            f"Question: {item.shown['question']}\nChoices: {listed}\n"
            f"Answer: {item.key['rationale']} The answer is ({letter}).\n\n"
        )
    return "".join(blocks)


@pytest.fixture(scope="module")
def released(shared):
    stimuli = shared / "data" / "scrambled_bench" / "stimuli" / "fewshot_prefixes.json"
    return json.loads(stimuli.read_text("utf-8"))


@pytest.mark.shared
def test_printed_problems_come_out_as_in_the_released_prompts_at_every_rate(released):
    made = examples(make(published=True))
    for rate in RATES:
        of_rate = [item for item in made if item.condition == {"examples": rate}]
        assert prefix(of_rate) == released[f"aqua_cot_prefix_{rate.replace('RS-', 'rs')}%"]


@pytest.mark.shared
def test_printed_sentences_come_out_as_in_the_released_prompt(released):
    sentence = Record("s", "mine", None, None, {"sentence": "Nobody answered the captain."}, None, None)
    design = ItemDesign(factor="text", levels={"KFL": "KFL"}, seed=1, published=True)
    rates = {"demonstrations": "RS-50"}
    made = task_items("recover", [sentence], design, exemplars="printed", options=rates)
    written = "".join(
        f"Scrambled Sentence: {item.shown['sentence']}\nRecovered Sentence: {item.answer}\n\n"
        for item in examples(made)
    )
    assert written == released["rec_few_shot_prefix_used_in_every_condition"]


def test_examples_and_items_are_crossed_under_one_set():
    made = make()
    conditions = {tuple(item.condition.values()) for item in made.items if item.role == "test"}
    assert conditions == {(rate, text) for rate in RATES for text in ("RS-0", "RS-100")}
    assert {item.set_name for item in made.items} == {"problem"}
    for item in made.items:
        if item.role == "test":
            fitting = [one for one in examples(made) if one.condition.items() <= item.condition.items()]
            assert [one.item_id for one in fitting] == [f"example-{n}" for n in (1, 2, 3, 4)]


def test_examples_show_solution_and_options_intact_at_every_rate():
    for item in examples(make()):
        first = next(one for one in printed_examples("problem") if one.record_id == item.item_id)
        assert (item.choices, item.answer) == (first.choices, first.answer)
        assert item.key["rationale"] == first.rationale


def test_an_item_that_an_example_shows_is_not_tested():
    leak = problem("leak", "  how many KEYSTROKES are needed to type the numbers from 1 to 500? ")
    with pytest.raises(UserError, match="'leak' of aqua"):
        make(records=(*TESTS, leak))
    assert "leak" not in {item.item_id for item in make(records=(*TESTS, leak), on_bad="skip").items}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"demonstration_factor": "examples"}, "mapping"),
        (CROSSED | {"demonstration_factor": "question"}, "name"),
        ({"demonstrations": "withhold"}, "'withhold'"),
        (CROSSED | {"demonstrations": {"a": "withhold"}}, "withheld"),
    ],
)
def test_wrong_rates_of_examples_are_told(options, said):
    with pytest.raises(UserError, match=said):
        make(options=options)
