"""Training sets of H-TEST: balanced, right, without the study's texts, and the released files with their faults told."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from experiment.papers.inside.tuning.training_sets import htest_training_set, released_training_set, word_keys
from stimuli.errors import UserError
from stimuli.htest.released import RELEASED_TASKS, load_released
from stimuli.htest.rules import rule
from stimuli.recipes.htest import generate


def study_texts(task, items=60):
    made = generate(task, exemplars=20, items=items, seed=21)
    return [one.text for one in (*made.exemplars, *made.test)]


def texts_of(records):
    return [one["provenance"]["text"] for one in records]


@pytest.mark.parametrize("task", RELEASED_TASKS)
def test_no_training_text_is_one_of_the_study_or_its_near_copy(task):
    held_out = study_texts(task)
    number = 60
    made, _ = htest_training_set(task, seed=21, held_out=held_out, number=number)
    texts = texts_of(made)

    def words(text):
        return tuple(sorted(text.casefold().replace("-", " ").replace("/", " ").split()))

    assert not set(map(words, texts)) & set(map(words, held_out))
    barred = set().union(*(word_keys(text, task) for text in held_out))
    assert not any(word_keys(text, task) & barred for text in texts)
    assert len(set(texts)) == len(texts) == number
    assert Counter(one["reply"] for one in made) == {"A": number // 2, "B": number // 2}
    assert all(rule(task).predicate(one["prompt"]) == one["reply"] for one in made)
    assert texts == [one["prompt"] for one in made]


@pytest.mark.parametrize("task", ["rhyme", "spelled_math"])
def test_near_copies_that_the_seed_would_make_are_left_out_and_counted(task):
    bare, _ = htest_training_set(task, seed=3, held_out=[], number=120)
    some = texts_of(bare[:20])
    turned = [", ".join(reversed(text.split(", "))).upper() for text in some]
    again, counts = htest_training_set(task, seed=3, held_out=turned, number=120)
    assert counts["near_copies_left_out"] >= len({one["provenance"]["pair"] for one in bare[:20]})
    assert not set(texts_of(again)) & set(some) and len(again) == 120


@pytest.mark.parametrize(
    ("task", "one", "other", "are_copies"),
    [
        ("uppercase", "the dog eatS soup", "the dog eats soup", True),
        ("rhyme", "prey bean, ballet seen", "ballet prey, bean seen", True),
        ("rhyme", "seen bean, low go", "bean seen, hair care", True),
        ("rhyme", "seen bean, low go", "seen hair, low bean", False),
        ("spelled_math", "The sum plus 12.", "The sum + 12.", True),
        ("spelled_math", "The sum plus 12.", "The sum - 12.", False),
        ("spelled_math", "The sum plus twelve.", "The sum + 12.", True),
        ("spelled_number", "three cats meet 5 dogs", "3 cats meet five dogs", True),
        ("hyphenated_word", "the well-known cat", "the well known cat", True),
        ("palindrome", "Level", "level", True),
    ],
)
def test_near_copies_are_told_by_their_words(task, one, other, are_copies):
    assert bool(word_keys(one, task) & word_keys(other, task)) is are_copies


def test_the_order_is_drawn_and_no_label_tells_the_next():
    replies = [one["reply"] for one in htest_training_set("start_vowel", seed=9, held_out=[], number=400)[0]]
    same = sum(a == b for a, b in itertools.pairwise(replies))
    assert abs(same - 199.5) < 4 * (399 / 4) ** 0.5


@pytest.mark.parametrize("number", [0, 7, True, "12"])
def test_an_odd_number_of_texts_is_refused(number):
    with pytest.raises(UserError, match=repr(number)):
        htest_training_set("uppercase", seed=1, held_out=[], number=number)


SIZES = {
    "end_ly": 999, "end_punctuation": 999, "hyphenated_word": 991, "palindrome": 653, "repeated_word": 1000,
    "rhyme": 749, "spelled_math": 916, "spelled_number": 1000, "start_vowel": 1000, "uppercase": 1000,
}  # fmt: skip


@pytest.mark.parametrize("task", RELEASED_TASKS)
def test_released_files_are_taken_as_published_or_without_their_faults(shared, task):
    folder = shared / "data" / "htest"
    released = load_released(folder, [task])[task]
    held_out = [one.text for one in (*released.exemplars, *released.test)]
    published, counts = released_training_set(folder, task, seed=1, held_out=held_out, published=True)
    assert len(published) == counts["lines"] == SIZES[task]
    labels = "".join(one["reply"] for one in published)
    assert labels == "A" * labels.count("A") + "B" * labels.count("B")
    mended, counts = released_training_set(folder, task, seed=1, held_out=held_out)
    texts, labels = [one["prompt"] for one in mended], "".join(one["reply"] for one in mended)
    assert len(set(texts)) == len(texts) and not set(texts) & set(held_out)
    assert labels.count("A") * 2 == len(texts)
    left_out = sum(counts[name] for name in ("doubles", "near_copies", "unbalanced"))
    assert counts["lines"] == len(texts) + left_out
    assert labels[: len(texts) // 2] != "A" * (len(texts) // 2)


@pytest.mark.shared
def test_lines_that_another_task_asks_are_left_out_too(shared):
    """A model trained on one task is tested on all: a line of `uppercase` is a test item of `end_ly`."""
    folder = shared / "data" / "htest"
    every = load_released(folder, list(RELEASED_TASKS))
    shown = {
        task: [one.text for one in (*every[task].exemplars, *every[task].test)] for task in RELEASED_TASKS
    }
    others = [text for task, texts in shown.items() if task != "uppercase" for text in texts]
    own = {"seed": 1, "held_out": shown["uppercase"]}
    before, counts = released_training_set(folder, "uppercase", **own)
    assert set(texts_of(before)) & set(others) == {"Dog listens with passion enthusiastically."}
    after, fewer = released_training_set(folder, "uppercase", **own, of_other_tasks=others)
    assert fewer["near_copies"] - counts["near_copies"] == 3
    keys = set().union(*map(word_keys, others))
    assert not any(word_keys(text) & keys for text in texts_of(after))


def test_made_lines_are_no_texts_of_other_tasks_either():
    free, _ = htest_training_set("uppercase", seed=3, held_out=[], number=60)
    asked = texts_of(free[:10])
    made, counts = htest_training_set("uppercase", seed=3, held_out=[], of_other_tasks=asked, number=60)
    keys = set().union(*map(word_keys, asked))
    assert len(made) == 60 and counts["near_copies_left_out"] >= 5
    assert not any(word_keys(text) & keys for text in texts_of(made))
