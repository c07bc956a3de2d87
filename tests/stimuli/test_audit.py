"""The audit finds what is planted, leaves alone what is clean, and writes the same bytes twice."""

from __future__ import annotations

import hashlib
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from stimuli.audit.audit import audit_items
from stimuli.audit.page import drawings, render, write_audit
from stimuli.errors import UserError
from stimuli.features import FAMILIES, FEATURES, about_names, bag, exempt, text_features
from stimuli.files import data_file
from tests.stimuli.audited import ORIGIN, change, item, told


def test_one_text_under_two_answers_is_grave_within_a_set():
    for second in ("one", "two"):
        items = [
            item(name, "The cat sat.", answer, choices=("A", "B"), set_name=of_set)
            for name, answer, of_set in (("a", "A", "one"), ("b", "B", second))
        ]
        audit = audit_items(items, language="en", shortcut=False)
        assert audit.grave == (audit.status("duplicates") == "grave") == (second == "one")
        assert not audit.grave or "The cat sat." in audit.problems()[0]


def test_conditions_of_one_item_are_no_duplicates():
    items = [
        item("a", "cat", "cat", condition={"position": level}, intact={"text": "cat"})
        for level in ("intact", "initial")
    ]
    assert not told(audit_items(items, language="en"), "duplicates")


def test_texts_equal_but_for_composition_and_case_are_pointed_out():
    items = [item("a", "Un café"), item("b", "un  cafe\u0301")]
    (line,) = told(audit_items(items, language="fr"), "duplicates")
    assert line.startswith("look: words: 1 ")


def test_a_test_text_among_the_exemplars_is_grave_even_from_another_set():
    items = [item("x", "A red door", "A", role="exemplar", set_name="other"), item("t", "A red door", "A")]
    audit = audit_items(items, language="en")
    assert audit.grave and audit.status("leaks") == "grave"


def test_a_test_text_near_an_exemplar_is_shown_with_its_overlap():
    items = [
        item("x", "the baker sells red hats today", role="exemplar"),
        item("near", "today the baker sells red hats"),
        item("far", "a sailor paints blue doors often"),
        item("near2", "the baker sells red hats now"),
    ]
    audit = audit_items(items, language="en")
    assert audit.leaks is not None
    found = {one.test: (one.kind, one.overlap) for one in audit.leaks.leaks}
    assert found == {"near": ("shared words", 1.0)}


def test_items_of_an_exemplars_carrier_are_named():
    items = [
        item("x", "one two three", role="exemplar", covariates={"carrier": "c1", "pair": 1}),
        item("t", "four five six", covariates={"carrier": "c1", "pair": 2}),
        item("u", "seven eight nine", covariates={"carrier": "c2", "pair": 1}),
    ]
    audit = audit_items(items, language="en")
    assert audit.leaks is not None
    assert [(one.kind, one.test) for one in audit.leaks.leaks] == [("same carrier", "t")]


def test_an_answer_in_its_question_is_a_leak_unless_the_other_choice_stands_there_too():
    about = {"choices": ("baker", "sailor"), "intact": {"text": "Something intact."}}
    items = [
        item(name, "Something scrambled.", "baker", shown={"question": question}, **about)
        for name, question in (
            ("gives", "Was it the Baker, who sings?"),
            ("both", "Was it the baker or the sailor?"),
            ("none", "Who sings in the bakery?"),
        )
    ]
    audit = audit_items(items, language="en")
    assert audit.leaks is not None
    assert [one.test for one in audit.leaks.leaks] == ["gives"]


def test_changed_forms_that_are_words_and_changes_that_change_nothing_are_found():
    changes = {
        "a": change("trial", "trail"),
        "b": change("judge", "jugde"),
        "c": change("level", "level", displaced=0),
        "d": {**change("cat dog", "dog cat"), "unit": "word"},
    }
    initial = {"position": "initial"}
    items = [
        item(name, one["shown"], condition=initial, intact={"text": one["intact"]}, changes=(one,))
        for name, one in changes.items()
    ]
    audit = audit_items(items, language="en")
    assert audit.changes is not None
    assert [one.shown for one in audit.changes.real_words] == ["trail"]
    assert audit.changes.real_words[0].zipf > 3
    assert [one.shown for one in audit.changes.identical] == ["level"]
    (condition,) = audit.changes.conditions
    assert (condition.items, condition.words, condition.displacement) == (4, 1.0, 1.0)


@pytest.mark.parametrize(
    ("strictness", "level"), [("words", "mend"), ("frequent", None), ("wordfreq:2", None), ("off", "look")]
)
def test_changed_forms_are_judged_by_the_words_that_the_study_avoids(strictness, level):
    shown = change("bards", "brads")
    items = [
        item("a", "brads", condition={"position": "final"}, intact={"text": "bards"}, changes=(shown,)),
    ]
    audit = audit_items(items, language="en", strictness=strictness)
    found = [one.level for one in audit.findings() if "that are words" in one.text]
    assert found == [level] * (level is not None)


def test_changed_forms_that_are_words_are_no_fault_of_a_copy_of_a_published_procedure():
    for operation, level in (("published RS", "look"), ("shuffle", "mend")):
        changed = {"intact": {"text": "trial"}, "changes": (change("trial", "trail"),)}
        made = item("a", "trail", condition={"c": "s"}, **changed)
        copy = replace(made, provenance={**ORIGIN, "operation": operation})
        (line,) = told(audit_items([copy], language="en"), "changes")
        assert line.startswith(f"{level}: words: 1 ") and "trail" in line


def test_the_place_of_the_right_answer_is_found_out():
    choices = [(f"right{n}", f"wrong{n}", f"worse{n}") for n in range(30)]
    items = [item(f"i{n}", f"text {n}", own[0], choices=own) for n, own in enumerate(choices)]
    audit = audit_items(items, language="en")
    assert audit.choices is not None
    (own,) = audit.choices.sets
    assert own.places == (30, 0, 0)
    assert own.heuristics[0].name == "take choice 1" and own.heuristics[0].leaks


VOCABULARY = "baker sailor paints sells red blue doors hats often today singer moves old new tables lamps"


def mixed_study(seed=1):
    draw = random.Random(seed)
    words = VOCABULARY.split()
    made = []
    for number in range(60):
        text = " ".join(draw.sample(words, 5))
        label = "AB"[number % 2]
        own = {"condition": {"task": "marks"}, "covariates": {"letters": len(text), "zipf": draw.random()}}
        text += "." if label == "A" else ""
        made.append(item(f"ab{number}", text, label, choices=("A", "B"), set_name="marks", **own))
    for number in range(6):
        word = draw.choice(words)
        turned = word[::-1]
        own = {"choices": tuple(sorted((word, f"{word}x"))), "covariates": {"letters": len(word)}}
        for level, shown, changes in (("intact", word, ()), ("reversed", turned, (change(word, turned),))):
            own |= {"condition": {"position": level}, "changes": changes, "intact": {"text": word}}
            made.append(item(f"w{number}", shown, word, **own))
    made.append(item("x", "baker <b>&", "A", role="exemplar", choices=("A", "B"), set_name="marks"))
    return made


@pytest.fixture(scope="module")
def audited():
    return audit_items(mixed_study(), language="en", seed=4)


def test_a_second_build_gives_the_same_bytes_and_a_valid_file(tmp_path, audited):
    digests, files = [], []
    for name, audit in (("one", audited), ("two", audit_items(mixed_study(), language="en", seed=4))):
        digests.append(write_audit(tmp_path / name, audit))
        files.append(
            {p.relative_to(tmp_path / name): p.read_bytes() for p in sorted((tmp_path / name).rglob("*.*"))}
        )
    assert digests[0] == digests[1] and files[0] == files[1]
    content = files[0][Path("audit.json")]
    assert hashlib.sha256(content).hexdigest() == digests[0]
    schema = data_file("audit/audit.schema.json")
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(content))
    drawn = {path.name for path in files[0] if path.suffix == ".svg"}
    names = ("balance-answer", "balance-position", "changes", "choices", "shortcut")
    assert drawn == {f"{name}.svg" for name in names}


def test_the_order_of_items_changes_no_finding_of_the_shortcut_test(audited):
    shuffled = mixed_study()
    random.Random(3).shuffle(shuffled)
    one, other = audited.shortcut, audit_items(shuffled, language="en", seed=4).shortcut
    assert one is not None and other is not None
    assert one.tasks[0].accuracy == other.tasks[0].accuracy


def test_the_page_stands_alone_and_names_every_finding(audited):
    page = render(audited, drawings(audited))
    assert not re.search(r'(src|href)="(?!#)', page.replace('xlink:href="#', ""))
    assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert "<b>&" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    for one in audited.findings():
        assert one.section in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page.count("<h1>") == 1 and '<html lang="en">' in page
    assert page.count('role="img"') == page.count("<figure>") > 2


@given(st.text(max_size=60))
def test_every_text_has_every_feature_as_a_finite_number(text):
    measured = text_features(text, language="en", tokenizer=str.split)
    assert set(measured) == set(FEATURES)
    assert all(value == value and abs(value) != float("inf") for value in measured.values())
    assert bag(text) == bag(f" {text}  ") and "" not in bag(text)


def test_what_a_rule_is_about_is_left_out_by_feature_family_word_or_place():
    assert exempt({"repetition"}).features == set(FAMILIES["repetition"])
    assert "capitals" not in text_features("A Text", language="en", leave_out=exempt({"capitals"}).features)
    assert bag("Seven bakers sing softly", exempt({"last_word", "word:seven"})) == {"bakers", "sing"}
    assert bag("Seven bakers", exempt({"vocabulary"})) == frozenset()
    with pytest.raises(UserError, match="capitls"):
        exempt({"capitls"})
    assert len(set(about_names())) == len(about_names())


def test_covariates_that_follow_from_the_condition_are_shown_and_not_flagged():
    draw = random.Random(1)
    items = []
    for number in range(40):
        frequency = "high" if number % 2 else "low"
        fixed = {"letters": draw.randint(4, 8), "zipf": draw.gauss(5 if frequency == "high" else 3, 0.3)}
        for level, changed in (("intact", 0), ("initial", draw.choice((1, 2)))):
            condition = {"position": level, "frequency": frequency}
            measured = {**fixed, "changed_words": changed}
            text = f"text {number} {level}"
            items.append(item(f"i{number}", text, condition=condition, covariates=measured))
    audit = audit_items(items, language="en")
    assert audit.balance is not None
    by = {one.by: {c.name: c for c in one.covariates} for one in audit.balance.groupings}
    assert by["position"]["letters"].largest == 0
    assert by["position"]["changed_words"].role == "condition" and not by["position"]["changed_words"].flagged
    assert by["frequency"]["zipf"].flagged
    meant = audit_items(items, language="en", by_design={"zipf", "letters"})
    assert meant.balance is not None and not told(meant, "balance")


def of_answers(number, apart):
    """Items of two answer classes whose word frequency is so many standard deviations apart on average."""
    draw = random.Random(5)
    zipfs = [draw.gauss(4 + apart * (n % 2), 1) for n in range(number)]
    return [
        item(f"i{n}", f"text {n}", "AB"[n % 2], choices=("A", "B"), covariates={"zipf": value})
        for n, value in enumerate(zipfs)
    ]


@pytest.mark.parametrize(("apart", "status"), [(0.0, "look"), (3.0, "mend")])
def test_a_difference_is_to_mend_only_beyond_what_chance_deals_to_so_few_items(apart, status):
    audit = audit_items(of_answers(20, apart), language="en", shortcut=False)
    assert audit.status("balance") == status and audit.balance is not None
    assert audit.balance.groupings[0].covariates[0].by_chance == (status == "look")


def test_conditions_are_not_excused_by_chance_for_their_items_were_chosen():
    items = [
        item(f"i{n}", f"text {n}", condition={"kind": "ab"[n % 2]}, covariates={"zipf": 4 + 0.1 * n})
        for n in range(12)
    ]
    audit = audit_items(items, language="en", shortcut=False)
    assert audit.status("balance") == "mend"


def of_lists(number, split):
    """Audit items of which list 1 shows the first ``split`` in one condition and the others in another."""
    items = [item(f"i{n}", f"text {n}", covariates={"zipf": float(n)}) for n in range(number)]
    lists = {one.item_id: f"{'a' if n < split else 'b'} in list 1" for n, one in enumerate(items)}
    return audit_items(items, language="en", lists=lists)


def test_items_that_a_list_shows_in_different_conditions_are_compared_by_what_their_spread_allows():
    for number, difference in ((20, "1.69"), (4, "1.55")):
        (line,) = told(of_lists(number, number // 2), "balance")
        assert line.startswith("look: words: ") and f"zipf ({difference})" in line
        assert ("chance" in line) == (number == 4)
