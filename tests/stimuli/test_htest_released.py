"""The released H-TEST items: loaded as they are, their faults listed, and further items made in the same way."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from stimuli.errors import UserError
from stimuli.htest.released import (
    RELEASED_TASKS,
    SPLIT_ORDER,
    harvest,
    label_noise,
    load_released,
    load_released_task,
    released_faults,
    rhymes_as_published,
    spelled_otherwise,
)
from stimuli.htest.rules import rule
from stimuli.recipes.htest import ABTaskDesign, generate, htest_published_items


@pytest.mark.shared
def test_all_ten_released_tasks_load_in_their_order(shared):
    tasks = load_released(shared / "data/htest")
    assert tuple(tasks) == RELEASED_TASKS and len(tasks) == 10
    for name, task in tasks.items():
        for part, number in ((task.exemplars, 50), (task.test, 200)):
            assert [one.label for one in part] == ["A", "B"] * (number // 2)
        path = shared / f"data/htest/abtasks/{name}_test.jsonl"
        last = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
        assert task.test[-1].text == last["centerpiece"]


@pytest.mark.shared
def test_fewer_exemplars_are_the_beginning_of_more(shared):
    task = load_released_task(shared / "data/htest/abtasks", "start_vowel")
    assert task.first_exemplars(14) == task.first_exemplars(50)[:14] == task.exemplars[:14]
    assert Counter(one.label for one in task.first_exemplars(14)) == {"A": 7, "B": 7}


@pytest.mark.shared
def test_rules_agree_with_the_released_labels_but_for_the_known_noise(shared):
    noise = {
        (name, split): {(one.label, one.text) for one in label_noise(name, part)}
        for name, task in load_released(shared / "data/htest").items()
        for split, part in (("dev", task.exemplars), ("test", task.test))
    }
    noisy = {where: found for where, found in noise.items() if found}
    of_test = {(name, "test") for name in ("end_ly", "palindrome", "uppercase")}
    assert set(noisy) == {("end_ly", "dev"), *of_test}
    assert noisy["palindrome", "test"] == {("B", "Mam"), ("B", "Atta"), ("A", "put-up")}
    for split, number in (("dev", 1), ("test", 5)):
        assert len(noisy["end_ly", split]) == number
        assert all(label == "B" and text.endswith("early.") for label, text in noisy["end_ly", split])
    assert len(noisy["uppercase", "test"]) == 10
    assert all(label == "A" and text == text.lower() for label, text in noisy["uppercase", "test"])


@pytest.mark.shared
def test_faults_of_the_released_items_are_listed_with_their_reasons(shared):
    faults = released_faults(shared / "data/htest")
    counted = Counter((one.task, one.split, one.kind) for one in faults)
    assert counted == {
        ("end_ly", "dev", "label"): 1,
        ("end_ly", "test", "label"): 5,
        ("palindrome", "test", "label"): 3,
        ("palindrome", "test", "duplicate"): 1,
        ("spelled_math", "dev", "duplicate"): 1,
        ("spelled_math", "test", "duplicate"): 18,
        ("spelled_math", "test", "leak"): 5,
        ("uppercase", "test", "label"): 10,
    }
    assert len({one.text for one in faults if one.kind == "leak"}) == 4
    (twice,) = (one for one in faults if (one.task, one.kind) == ("palindrome", "duplicate"))
    assert (twice.text, twice.label) == ("eleele", "A") and "line 17" in twice.reason
    lines = (shared / "data/htest/abtasks/spelled_math_dev.jsonl").read_text(encoding="utf-8").splitlines()
    for one in (one for one in faults if one.kind == "leak"):
        shown = int(re.search(r"line (\d+)", one.reason)[1])
        assert json.loads(lines[shown - 1])["centerpiece"] == one.text


SIZES = {
    "uppercase": {"subject": 40, "verb": 19, "object": 20, "adverb": 20},
    "start_vowel": {"subject": 38, "subject of B": 39, "verb": 19, "object": 20, "adverb": 20},
    "end_punctuation": {"subject": 40, "object": 20, "mark": 4},
    "end_ly": {"subject": 20, "verb": 19, "object": 20, "adverb": 19, "adverb of B": 20},
    "spelled_math": {"subject": 10, "operation": 10, "operation of B": 10, "number": 10},
    "spelled_number": {"subject": 41, "verb": 19, "number": 20, "number of B": 20, "noun": 10, "adverb": 20},
    "repeated_word": {"subject": 10, "verb": 10, "object": 10, "adverb": 10},
    "hyphenated_word": dict.fromkeys(
        ("subject", "verb", "object", "adverb", "hyphenated subject", "hyphenated verb", "hyphenated object"),
        10,
    ),
    "palindrome": {"word": 211, "word of B": 336},
    "rhyme": {"word": 57},
}


@pytest.mark.shared
@pytest.mark.parametrize("name", RELEASED_TASKS)
def test_the_released_items_come_apart_into_the_published_lists(shared, name):
    found = harvest(shared / "data/htest", name)
    counted = {slot: len(words) for slot, words in found.items() if not slot.startswith("rhymes of ")}
    assert counted == SIZES[name]


def shape(name, text):
    """Tell what the published code could have made of a text: marks, numbers and tokens, not its words."""
    marks = tuple(re.findall(r"[^\w\s]+", text))
    if name in ("palindrome", "rhyme"):
        return len(text.split())
    if name == "spelled_math":
        return text.endswith("."), bool(re.search(r"\d+\.$", text))
    if name in ("end_punctuation", "hyphenated_word"):
        return marks if name == "end_punctuation" else (len(marks) > 1, marks[-1])
    return marks, bool(re.search(r"\d", text))


@pytest.mark.shared
@pytest.mark.parametrize("name", RELEASED_TASKS)
def test_further_items_are_built_like_the_released_ones_and_new_as_far_as_there_are_new_ones(shared, name):
    folder = shared / "data/htest"
    task = load_released_task(folder, name)
    made = generate(name, exemplars=50, items=200, seed=31, folder=folder)
    for label in "AB":
        new, old = (
            [one.text for one in (*parts.exemplars, *parts.test) if one.label == label]
            for parts in (made, task)
        )
        assert {shape(name, text) for text in new} == {shape(name, text) for text in old}
        assert (len(set(new)) == 125) is (name != "spelled_math")
        wrong_new, wrong_old = (sum(rule(name).predicate(t) != label for t in texts) for texts in (new, old))
        # Both are draws of the same process: 125 texts each, faults by chance.
        assert abs(wrong_new - wrong_old) <= 12 and (wrong_new > 0 or wrong_old < 6)
    assert [one.label for one in made.test] == ["A", "B"] * 100 and all(one.pair is None for one in made.test)
    known = {one.text for one in (*task.exemplars, *task.test)}
    assert not any(one.text in known for one in made.test[:60])
    for label in "AB":
        order = [one.text in known for one in made.test if one.label == label]
        assert order == sorted(order), "known texts stand last"


@pytest.mark.shared
def test_released_couples_are_what_the_published_way_of_looking_rhymes_up_gives(shared):
    """Of every word the first rhymes in alphabetical order that are spelled otherwise; B couples rhyme never."""
    task = load_released_task(shared / "data/htest", "rhyme")
    couples = [(one.text.split(), one.label) for one in (*task.exemplars, *task.test)]
    places = [spelled_otherwise(first).index(second) for (first, second), label in couples if label == "A"]
    assert len(places) == 125 and max(places) == 11 and sum(place < 5 for place in places) >= 115
    assert not any(second in rhymes_as_published(first) for (first, second), label in couples if label == "B")


@pytest.mark.shared
def test_published_exemplars_nest_and_their_split_does_not_hang_on_other_numbers(shared):
    folder = shared / "data/htest"

    def made(exemplars, items):
        return generate("start_vowel", exemplars=exemplars, items=items, seed=8, folder=folder)

    few, more = made(4, 10), made(14, 200)
    assert more.exemplars[:4] == few.exemplars and more.test[:10] == few.test
    assert sorted(SPLIT_ORDER) == sorted(RELEASED_TASKS)


@pytest.mark.shared
def test_what_cannot_be_made_as_published_is_refused(shared):
    for name, exemplars, items, said in (
        ("uppercase", 2, 202, r"items is 202.* 200"),
        ("uppercase", 102, 2, r"exemplars is 102.* 100"),
        ("word_chain", 2, 2, "'word_chain'"),
    ):
        with pytest.raises(UserError, match=said):
            generate(name, exemplars=exemplars, items=items, seed=1, folder=shared / "data/htest")


@pytest.mark.shared
def test_published_items_say_how_they_were_made(shared):
    items = htest_published_items(
        shared / "data/htest", ABTaskDesign(exemplars=4, items=10, seed=2), ["end_ly"]
    )
    assert [item.role for item in items] == ["exemplar"] * 4 + ["test"] * 10
    assert items[0].provenance["operation"] == "published making:end_ly" and items[0].provenance["seed"] == 2
    assert "pair" not in items[0].covariates and items[0].provenance["licence"] == "MIT"
    every = htest_published_items(shared / "data/htest", ABTaskDesign(exemplars=2, items=2, seed=2))
    assert {item.set_name for item in every} == set(RELEASED_TASKS)


def write_task(folder, name, number, **changed):
    for part in ("dev", "test"):
        records = [
            {"centerpiece": f"text {n}", "options": ["A", "B"], "correct_options": [n % 2]} | changed
            for n in range(number)
        ]
        text = "".join(json.dumps(record) + "\n" for record in records)
        (folder / f"{name}_{part}.jsonl").write_text(text, encoding="utf-8")


def test_items_of_another_making_are_not_taken_apart(tmp_path):
    for name in RELEASED_TASKS:
        write_task(tmp_path, name, 20)
        with pytest.raises(UserError, match=rf"\b{name}\b"):
            generate(name, exemplars=2, items=2, seed=1, folder=tmp_path)


@pytest.mark.parametrize("number", [3, 52])
def test_a_number_of_exemplars_that_does_not_fit_is_refused(tmp_path, number):
    write_task(tmp_path, "uppercase", 50)
    with pytest.raises(UserError, match="exemplars is"):
        load_released_task(tmp_path, "uppercase").first_exemplars(number)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"centerpiece": None}, "line 1: 'centerpiece'"),
        ({"options": ["A", "B", "C"]}, "line 1: options"),
        ({"correct_options": [2]}, "line 1: correct_options is [2]"),
        ({"correct_options": 0}, "line 1: correct_options is 0"),
    ],
)
def test_a_broken_released_line_is_named(tmp_path, changed, said):
    write_task(tmp_path, "uppercase", 2, **changed)
    with pytest.raises(UserError) as raised:
        load_released_task(tmp_path, "uppercase")
    assert "uppercase_dev.jsonl" in str(raised.value) and said in str(raised.value)
