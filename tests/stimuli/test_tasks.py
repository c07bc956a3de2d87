"""From records to items of every task: what is scrambled, what stays, what is asked, and which records cannot be."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.corpora.corpus import Record
from stimuli.errors import UserError
from stimuli.item import build_meta, write_items
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.tasks import TASKS, task_items, worked
from stimuli.scramble.conditions import ScrambleSettings

LEVELS = {"intact": "none", "RS-50": "RS-50", "KFL": "KFL"}
DIALOGUE = (
    "Woman: Where does the captain hide the letters?\nMr. Hill: Somewhere between the kitchen and the garden."
)


def record(name="r1", **changed):
    fields = {
        "record_id": name,
        "corpus": "dream",
        "split": "test",
        "licence": "non-commercial research only",
        "texts": {"dialogue": DIALOGUE, "question": "Where are the letters?"},
        "choices": ("In the cellar.", "Between kitchen and garden.", "Nowhere."),
        "answer": "Between kitchen and garden.",
        "extra": {"categories": "matching", "turns": 2.0},
        "file": "test.json",
        "line": 7,
    }
    return Record(**(fields | changed))


PASSAGE = {
    "corpus": "boolq",
    "texts": {"passage": "Several mountain goats wander through forests.", "question": "do goats wander"},
    "choices": ("yes", "no"),
    "answer": "yes",
    "extra": {},
}
PROBLEM = {
    "corpus": "gsm8k",
    "texts": {"question": "Twelve farmers carry thirteen baskets. How many baskets do they carry together?"},
    "choices": None,
    "answer": "156",
    "rationale": "They carry 12*13=<<12*13=156>>156 baskets.",
    "extra": {},
}
PROGRAM = {
    "corpus": "mbpp",
    "texts": {"text": "Write a function that returns the largest number of a list."},
    "choices": None,
    "answer": "def largest(n): return max(n)",
    "tests": ("assert largest([1, 3]) == 3",),
    "setup": "import math",
    "extra": {},
}


def make(task, *records, **changed):
    asked = {name: changed.pop(name) for name in ("options", "exemplars") if name in changed}
    design = ItemDesign(**{"factor": "text", "levels": LEVELS, "seed": 4711} | changed)
    return task_items(task, records or (record(),), design, **asked)


def by_level(items, item_id="r1"):
    return {item.condition["text"]: item for item in items.items if item.item_id == item_id}


def test_speakers_and_turns_of_a_dialogue_survive_every_condition():
    for item in make("question", levels={"RS": "RS", "Sub": "Sub", "reversed": "reverse:all"}).items:
        first, second = item.shown["dialogue"].split("\n")
        assert first.startswith("Woman: ") and second.startswith("Mr. Hill: ")
        assert "captain" not in first and "kitchen" not in second


def test_words_move_within_turns_of_a_dialogue_and_its_sentences_do_not_move():
    (item,) = make("question", levels={"reversed": "words:reverse"}).items
    assert item.shown["dialogue"].split("\n")[0].startswith("Woman: letters the hide captain")
    with pytest.raises(UserError, match=r"sentences:shuffle.*dialogue"):
        make("question", levels={"mixed": "sentences:shuffle"})


@pytest.mark.parametrize("dose", ["equal", "as_published"])
def test_of_a_dialogue_as_of_any_text_only_words_that_some_condition_could_change_are_left_intact(
    dose,
):
    settings = ScrambleSettings(dose=dose)
    prose = DIALOGUE.replace("Woman: ", "").replace("Mr. Hill: ", "")
    plain = record(corpus="mine", texts={"prose": prose, "question": "Where?"})
    for levels in (LEVELS, {"KF": "KF", "KFL": "KFL", "TL": "transpose:internal"}):
        of_dialogue = make("question", levels=levels, settings=settings)
        of_prose = make("question", plain, levels=levels, settings=settings, options={"field": "prose"})
        for one, other in zip(of_dialogue.items, of_prose.items, strict=True):
            assert [w["intact"] for w in one.left_intact] == [w["intact"] for w in other.left_intact]


def test_categories_split_licence_and_source_travel_with_each_item():
    for item in make("question").items:
        assert (item.covariates["categories"], item.covariates["turns"]) == ("matching", 2.0)
        origin = item.provenance
        assert (origin["source"], origin["source_id"], origin["split"]) == ("dream", "r1", "test")
        assert (origin["licence"], origin["seed"]) == ("non-commercial research only", 4711)


def test_without_evidence_the_question_is_asked_alone():
    items = by_level(make("question", levels={"intact": "none", "RS": "RS", "no text": "withhold"}))
    bare = items["no text"]
    assert bare.shown == {"dialogue": "", "question": "Where are the letters?"}
    assert (bare.provenance["operation"], bare.changes) == ("withheld", ())
    assert bare.intact == items["intact"].intact and bare.answer == items["RS"].answer


@pytest.mark.parametrize("task", ["recover", "rectify", "summarise"])
def test_a_text_that_is_all_there_is_cannot_be_withheld(task):
    with pytest.raises(UserError, match=f"{task}.* passage"):
        make(task, record(**PASSAGE), levels={"intact": "none", "no text": "withhold"})


def test_other_right_answers_of_a_typed_question_stand_in_the_key_once():
    typed = record(choices=None, answer="the kitchen", answers=("kitchen", "the kitchen", "kitchen"))
    assert all(item.choices is None for item in make("question", typed).items)
    assert make("question", typed).items[0].key == {"answers": ["kitchen"]}


def test_further_fields_and_the_options_change_only_where_the_study_asks_for_it():
    options = {"also_scramble": ["question", "choices"]}
    item = by_level(make("question", options=options))["KFL"]
    assert item.shown["question"] != "Where are the letters?" == item.intact["question"]
    assert item.answer in (item.choices or ()) and item.answer != "Between kitchen and garden."
    assert item.intact["choice 2"] == "Between kitchen and garden."
    assert {"dialogue", "question", "choice 2"} <= {change["field"] for change in item.changes}
    plain = by_level(make("question"))["KFL"]
    assert plain.shown["dialogue"] == item.shown["dialogue"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("x = 78.20\nAnswer: E", "x = 78.20"),
        ("So 3 is right.\nD", "So 3 is right."),
        ("It is 5.\nHence the correct answer is (C).", "It is 5."),
        ("Thus 6 fits. D is the correct choice", "Thus 6 fits."),
        ("A train takes 10 hours.", "A train takes 10 hours."),
        ("The answer is 12.", "The answer is 12."),
        ("Divide by A", "Divide by A"),
    ],
)
def test_a_worked_solution_does_not_end_in_a_letter_that_new_options_would_belie(given, kept):
    solved = record(**PROBLEM | {"rationale": given, "choices": ("156", "12"), "answer": "156"})
    assert worked(solved) == {"rationale": kept}


def test_a_program_is_scored_by_tests_and_a_passage_by_its_question():
    program = make("complete", record(**PROGRAM)).items[0]
    assert program.key == {"tests": ["assert largest([1, 3]) == 3"], "setup": "import math"}
    assert program.choices is None and program.answer == "def largest(n): return max(n)"
    passage, problem = (make("complete", record(**one)).items[0] for one in (PASSAGE, PROBLEM))
    assert (passage.choices, passage.answer) == (("yes", "no"), "yes")
    assert set(passage.shown) == {"passage", "question"}
    assert (problem.answer, set(problem.shown)) == ("156", {"question"})


def test_summaries_and_translations_have_an_answer_only_where_a_reference_is_named():
    texts = {"passage": PASSAGE["texts"]["passage"], "short": "Goats wander."}
    one = record(**PASSAGE | {"texts": texts})
    assert make("summarise", one).items[0].answer is None
    assert make("summarise", one, options={"reference": "short"}).items[0].answer == "Goats wander."
    translated = make("translate", one, options={"target_language": "zh"}).items[0]
    assert (translated.answer, translated.key) == (None, {"target_language": "zh"})
    with pytest.raises(UserError, match="target_language"):
        make("translate", one)


def test_a_passage_with_several_questions_is_read_once_whatever_their_order():
    twins = [record(name, **PASSAGE) for name in ("b", "a", "c")]
    for order in (twins, twins[::-1]):
        made = make("rectify", *order)
        assert {item.item_id for item in made.items} == {"a"}
        assert {one.record_id for one in made.skipped} == {"b", "c"}
        assert all("'a'" in one.reason for one in made.skipped)
    assert {item.item_id for item in make("question", *twins).items} == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("task", "changed", "said"),
    [
        ("question", {"answer": None}, r"record 'r1' of dream \(test.json, line 7\) .*answer"),
        ("question", {"answer": "Cellar"}, "answer 'Cellar'"),
        ("question", {"texts": {"dialogue": DIALOGUE}}, "question"),
        ("question", {"texts": {"question": "Who?"}}, "'dialogue'"),
        ("question", {"texts": {"dialogue": " ", "question": "Who?"}}, "dialogue .*empty"),
        ("question", {"choices": ("Yes", "Yes"), "answer": "Yes"}, "choices"),
        ("recover", {"texts": {"dialogue": "M: So it is."}}, "condition 'KFL' .*dialogue"),
    ],
)
def test_an_unsuitable_record_stops_by_name_or_is_listed(task, changed, said):
    bad, good = record("r1", **changed), record("r2")
    with pytest.raises(UserError, match=said):
        make(task, bad, good)
    made = make(task, bad, good, on_bad="skip")
    assert {item.item_id for item in made.items} == {"r2"}
    assert [one.record_id for one in made.skipped] == ["r1"] and "r1" in made.skipped[0].reason


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"task": "recovr"}, "'recover'?"),
        ({"options": {"feild": "question"}}, "'field'?"),
        ({"options": {"target_language": "zh"}}, "'target_language'"),
        ({"levels": {"a": "KLF"}}, "'KLF'"),
        ({"number": 9}, "9 records"),
        ({"exemplars": "printed"}, "task 'question'"),
        ({"published": True, "options": {"also_scramble": "question"}}, "reading field"),
        ({"published": True, "levels": {"a": "KR2"}}, "KR2"),
    ],
)
def test_a_wrong_request_is_told_with_the_mend(changed, said):
    with pytest.raises(UserError) as error:
        make(changed.pop("task", "question"), **changed)
    assert said in str(error.value)


@given(st.permutations(["a", "b", "c", "d", "e"]), st.integers(0, 5))
def test_items_do_not_hang_on_the_order_of_records(order, number):
    texts = {name: f"{name * 2} several gardeners {name * 3} watched mountains" for name in order}

    def made(names):
        records = [record(n, corpus="own", texts={"sentence": texts[n]}, extra={}) for n in names]
        items = make("recover", *records, number=number).items
        return {(item.item_id, item.condition["text"]): item.to_json() for item in items}

    assert made(order) == made(sorted(order))


def test_a_larger_draw_holds_the_smaller_one_and_passes_over_what_does_not_suit():
    names = "abcdefgh"
    records = [record(n, **PASSAGE | {"answer": None if n in "bdf" else "yes"}) for n in names]

    def drawn(number):
        made = make("question", *records, number=number, on_bad="skip", factor=None).items
        return [item.item_id for item in made]

    draws = [drawn(number) for number in range(6)]
    assert [len(draw) for draw in draws] == [0, 1, 2, 3, 4, 5] and draws[5] == list("acegh")
    assert all(set(less) < set(more) and more == sorted(more) for less, more in itertools.pairwise(draws))


@pytest.mark.parametrize("task", list(TASKS))
def test_every_task_writes_items_that_keep_the_schema_and_the_same_bytes_twice(task, tmp_path):
    apples = {"texts": {"question": "Fifteen sailors share thirty apples. How many each?"}}
    records = [record("p1", **PROBLEM), record("p2", **PROBLEM | apples)]
    records += [record("q1", **PASSAGE), record("q2"), record("m1", **PROGRAM)]
    options = {"target_language": "de"} if task == "translate" else {}
    made = [make(task, *records, on_bad="skip", options=options).items for _ in range(2)]
    digests = [write_items(tmp_path / f"{n}.jsonl", items, build_meta(1)) for n, items in enumerate(made)]
    assert digests[0] == digests[1]
