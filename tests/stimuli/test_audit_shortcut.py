"""The shortcut test finds the leaks that are there, never passes few items, and keeps its level where there is none."""

from __future__ import annotations

import json
import random

import pytest

from stimuli.audit.audit import audit_items
from stimuli.audit.findings import cluster_interval, exact_interval, sidak
from stimuli.audit.shortcut import ENOUGH_ITEMS, MARGIN, folds_of, groups_of, shortcut_test
from stimuli.htest.released import load_released
from stimuli.htest.rules import rules
from tests.stimuli.audited import item

NOUNS = "baker sailor farmer painter lawyer gardener singer doctor potter miner ladder bottle candle blanket hammer"
VERBS = "paints sells moves finds cleans repairs borrows watches counts drops mirrors buckets carpets pillows"
WORDS = f"{NOUNS} {VERBS}".split()


def labelled(task, number, text, answer, pair=None):
    covariates = {} if pair is None else {"pair": pair}
    return item(
        f"{task}-{number:05d}", text, answer, set_name=task, choices=("A", "B"), covariates=covariates
    )


def shortcut_of(task, items, **settings):
    (own,) = shortcut_test({task: items}, language="en", seed=1, **settings).tasks
    return own


def sentences(number, seed=1):
    draw = random.Random(seed)
    return [" ".join(draw.sample(WORDS, 5)) for _ in range(number)]


def random_labels(number, seed):
    draw = random.Random(seed)
    return [labelled("none", n, text, draw.choice("AB")) for n, text in enumerate(sentences(number, seed))]


def test_released_tasks_leak_and_rhyme_is_told_by_the_rarity_of_its_words(shared):
    tasks = load_released(shared / "data" / "htest")
    names = ("repeated_word", "rhyme", "start_vowel")
    items = {
        name: [labelled(name, one.line, one.text, one.label) for one in tasks[name].test] for name in names
    }
    about = {name: rules()[name].about for name in names}
    released = shortcut_test(items, language="en", seed=1, about=about)
    assert {one.verdict for one in released.tasks} == {"leaks"}
    by_name = {one.task: one for one in released.tasks}
    assert all(by_name[name].best > 0.9 for name in ("repeated_word", "rhyme"))
    telling = by_name["rhyme"].telling
    assert {one.feature for one in telling[:2]} == {"zipf_mean", "zipf_min"} and telling[0].alone > 0.9


def test_released_letter_geometry_is_told_by_its_option_lists(shared):
    path = shared / "data" / "htest" / "letter_geometry" / "letter_geometry_test.jsonl"
    items = []
    for number, one in enumerate(map(json.loads, path.read_text("utf-8").splitlines())):
        options = tuple(one["options"])
        answer = options[one["correct_options"][0]]
        items.append(item(f"g{number}", one["centerpiece"], answer, set_name="geometry", choices=options))
    audit = audit_items(items, language="en")
    assert audit.choices is not None and audit.shortcut is None
    best = audit.choices.sets[0].heuristics[0]
    assert (best.name, best.right, best.items) == ("take the choice that is rarest over all lists", 79.0, 90)
    assert best.leaks
    # "6" turned by 180 degrees has the answers g and 9.
    assert audit.grave


def test_a_leak_in_a_study_table_is_found_and_named():
    items = []
    for number, text in enumerate(sentences(200)):
        answer = "AB"[number % 2]
        items.append(labelled("table", number, text + (" indeed" if answer == "A" else ""), answer))
    own = shortcut_of("table", items)
    assert own.verdict == "leaks" and own.best == 1.0
    assert {"words", "word: indeed"} <= {one.feature for one in own.telling}
    assert own.telling[0].alone == 1.0


def test_a_leak_by_vocabulary_alone_is_found():
    draw = random.Random(5)
    items = []
    for number in range(400):
        answer = draw.choice("AB")
        pool = WORDS[:20] if answer == "A" else WORDS[10:]
        items.append(labelled("pools", number, " ".join(draw.sample(pool, 5)), answer))
    own = shortcut_of("pools", items, about={"pools": {"frequency", "length", "letters", "tokens"}})
    assert own.verdict == "leaks" and own.best is not None and own.best > 0.75


def test_words_dealt_equally_to_both_answers_are_no_shortcut():
    # Each word stands once in A and once in B: whoever counts can tell which answer it is due in, but no word tells.
    draw = random.Random(3)
    words = [f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in ("nt", "rk", "st", "lp", "mb", "sh")]
    items = []
    for answer in "AB":
        dealt = draw.sample(words, len(words))
        items += [
            labelled("dealt", len(items) + n, f"take {word}", answer, n) for n, word in enumerate(dealt)
        ]
    own = shortcut_of("dealt", items)
    assert own.lower is not None and own.lower < 0.5


@pytest.mark.full
def test_random_labels_do_not_pass_with_few_items_and_do_with_many():
    few = shortcut_of("none", random_labels(ENOUGH_ITEMS - 2, 2))
    assert few.verdict == "too few to tell" and few.in_words() == "too few to tell: 1998"
    many = shortcut_of("none", random_labels(6000, 2))
    assert many.verdict == "passes" and many.upper is not None and many.upper <= 0.5 + MARGIN


def test_a_handful_of_items_is_too_few_and_no_error():
    items = [labelled("few", n, text, "AB"[n % 2]) for n, text in enumerate(sentences(6))]
    own = shortcut_of("few", items)
    assert own.verdict == "too few to tell" and not own.accuracy and own.best is None


def test_texts_that_repeat_are_never_split_between_training_and_test():
    # 40 texts, each six times with one random label: whoever splits them up learns the labels by heart.
    draw = random.Random(7)
    items = []
    for text in sentences(40, 7):
        answer = draw.choice("AB")
        items += [labelled("copies", len(items) + n, text, answer) for n in range(6)]
    own = shortcut_of("copies", items)
    assert own.groups == 40
    assert own.lower is not None and own.lower < 0.5


def test_the_cluster_interval_covers_as_often_as_it_says():
    draw = random.Random(11)
    for share, together in ((0.5, 0.0), (0.5, 0.8), (0.9, 0.3), (0.97, 0.0)):
        covered = 0
        for _ in range(400):
            scores = []
            for _ in range(100):
                first = draw.random() < share
                second = first if draw.random() < together else draw.random() < share
                scores.append(float(first + second))
            interval = cluster_interval(scores, [2.0] * 100)
            covered += interval.low <= share <= interval.high
        # 400 draws of a 95% interval: fewer than 366 come by chance once in ten thousand.
        assert covered >= 366, (share, together, covered)


def test_exact_intervals_are_those_of_clopper_and_pearson():
    # R: binom.test(79, 90)$conf.int and binom.test(0, 10)$conf.int.
    found = exact_interval(79, 90)
    assert (found.low, found.high) == (0.7918, 0.9374)
    assert (exact_interval(0, 10).low, exact_interval(0, 10).high) == (0.0, 0.3085)
    assert sidak(1) == pytest.approx(0.05) and sidak(10) == pytest.approx(1 - 0.95**0.1)


def test_groups_follow_pairs_texts_and_where_neither_is_known_shared_words():
    items = [
        labelled("g", 0, "the red door", "A", pair="p1"),
        labelled("g", 1, "the blue door", "B", pair="p1"),
        labelled("g", 2, "THE red  door", "A", pair="p2"),
        labelled("g", 3, "one two three four five", "A"),
        labelled("g", 4, "five four three two one", "B"),
        labelled("g", 5, "six seven eight nine ten", "B"),
        *(labelled("g", 10 + n, text, "A") for n, text in enumerate(sentences(30))),
    ]
    groups = groups_of(items)
    assert groups[0] == groups[1] == groups[2]
    assert groups[3] == groups[4] != groups[5]
    folds = folds_of(groups, [one.item_id for one in items], 5, seed=1)
    assert all(len({f for f, g in zip(folds, groups, strict=True) if g == group}) == 1 for group in groups)
    assert max(map(folds.count, range(5))) - min(map(folds.count, range(5))) <= 1
