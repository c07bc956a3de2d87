"""Training texts: scrambled samples alike under every rule, users' files, and lines of H-TEST without the study's texts."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.papers.inside.tuning.training_sets import (
    PUBLISHED_RULES,
    HeldOut,
    ScrambledTexts,
    TextFiles,
    htest_training_set,
    released_training_set,
    word_keys,
)
from stimuli.errors import UserError
from stimuli.htest import rules
from stimuli.htest.released import RELEASED_TASKS, load_released
from stimuli.recipes.htest import generate
from stimuli.scramble import scramble_text
from stimuli.words import find_words, nfc

VOCABULARY = (
    "afternoon the planet is brightest object in evening sky and people of "
    "village see a long before stars come out every winter old sailors"
)
WORDS = VOCABULARY.split()


def articles(number, seed=1):
    draw = random.Random(seed)
    return [
        " ".join(draw.choice(WORDS) for _ in range(draw.randrange(3, 60))).capitalize() + f" ({place})."
        for place in range(number)
    ]


NUMBER = 1500
ARTICLES = articles(NUMBER)


@pytest.fixture(scope="module")
def trained():
    return {rule: ScrambledTexts(ARTICLES, rule, seed=11) for rule in PUBLISHED_RULES}


@pytest.fixture(scope="module")
def passages(trained):
    return {rule: [one["text"] for one in texts] for rule, texts in trained.items()}


def changed_words(one, other):
    pairs = zip(find_words(one), find_words(other), strict=True)
    return [old.index for old, new in pairs if old.text != new.text]


def test_three_fifths_of_the_samples_and_three_tenths_of_their_long_words_change(trained, passages):
    for rule in ("FT-RS", "FT-KF&Adj"):
        counts = trained[rule].counts
        changed = [len(changed_words(*both)) for both in zip(ARTICLES, passages[rule], strict=True)]
        assert abs(sum(map(bool, changed)) / NUMBER - 0.6) < 3 * (0.6 * 0.4 / NUMBER) ** 0.5
        assert sum(changed) == counts.changed_words
        # samples of a few words may have none that every rule can change
        assert 0 <= counts.wanted - counts.changed_words <= 0.001 * counts.wanted
        assert abs(counts.changed_words / counts.long_words - 0.3) < 0.01
        assert sum(map(bool, changed)) == counts.changed
    assert passages["FT-Ori"] == [nfc(text) for text in ARTICLES]


def test_the_same_samples_and_words_change_under_every_rule(trained, passages):
    touched = {
        rule: [changed_words(*both) for both in zip(ARTICLES, passages[rule], strict=True)]
        for rule in ("FT-RS", "FT-KF&Adj")
    }
    assert touched["FT-RS"] == touched["FT-KF&Adj"]
    assert trained["FT-RS"].counts == trained["FT-KF&Adj"].counts == trained["FT-Ori"].counts


def test_each_rule_does_to_a_word_what_it_says(passages):
    for one, shuffled, swapped in zip(ARTICLES, passages["FT-RS"], passages["FT-KF&Adj"], strict=True):
        for old, new in zip(find_words(one), find_words(shuffled), strict=True):
            assert sorted(old.text.lower()) == sorted(new.text.lower())
        for old, new in zip(find_words(one), find_words(swapped), strict=True):
            if old.text != new.text:
                a, b = old.text.lower(), new.text.lower()
                places = [place for place in range(len(a)) if a[place] != b[place]]
                assert len(a) > 2 and places == [places[0], places[0] + 1] and places[0] >= 1
                assert a[places[0]] == b[places[1]] and a[places[1]] == b[places[0]]


def test_a_changed_word_has_the_form_that_the_scramble_gives_it_alone(passages):
    compared = 0
    for one, shuffled in list(zip(ARTICLES, passages["FT-RS"], strict=True))[:200]:
        changed = changed_words(one, shuffled)
        alone = scramble_text(one, PUBLISHED_RULES["FT-RS"], seed=11, words=changed)
        assert alone.text == shuffled
        compared += len(changed)
    assert compared > 300


@given(
    st.lists(st.text(alphabet=st.sampled_from("aAbcdeéß ’'-.,!\n\t1_🙂"), max_size=60), max_size=4),
    st.integers(0, 9),
)
@settings(max_examples=150, deadline=None)
def test_marks_spaces_capitals_and_lengths_stay(texts, seed):
    for rule in PUBLISHED_RULES:
        made = [one["text"] for one in ScrambledTexts(texts, rule, seed=seed, samples=1, words=1)]
        for before, after in zip(map(nfc, texts), made, strict=True):
            assert len(before) == len(after)
            for old, new in zip(before, after, strict=True):
                assert old == new or (old.isalpha() and new.isalpha())
                assert old.isupper() == new.isupper() or "ß" in before


def test_what_cannot_change_is_counted_with_its_reason():
    texts = ScrambledTexts(["eee ooo bbb planet."], "FT-RS", seed=1, samples=1, words=1)
    (passage,) = texts
    assert passage["text"].startswith("eee ooo bbb ") and passage["text"] != "eee ooo bbb planet."
    assert texts.counts.long_words == texts.counts.wanted == 4 and texts.counts.changed_words == 1
    assert sum(texts.counts.cannot_change.values()) == 3
    assert texts.counts.to_json()["share_of_words_changed"] == 0.25


def test_a_passage_hangs_on_its_text_and_not_on_its_neighbours():
    texts = articles(200)
    together, backwards, other = (
        {one["text"] for one in ScrambledTexts(order, "FT-RS", seed=seed)}
        for order, seed in ((texts, 4), (texts[::-1], 4), (texts, 5))
    )
    assert together == backwards and together != other


def test_training_texts_do_not_hang_on_the_hash_salt():
    code = (
        "import hashlib, json\n"
        "from experiment.papers.inside.tuning.training_sets import ScrambledTexts, htest_training_set\n"
        "texts = ['The planet is the brightest object in the evening sky.'] * 20\n"
        "made = [*ScrambledTexts(texts, 'FT-KF&Adj', seed=3)]\n"
        "made += htest_training_set('uppercase', seed=3, number=40, held_out=[])[0]\n"
        "print(hashlib.sha256(json.dumps(made).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": one},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for one in ("0", "123")
    }
    assert len(found) == 1


def test_a_sample_that_holds_a_text_of_the_study_is_left_out():
    item = "Officials said on Monday that the bridge across the northern strait will stay closed until the end of May."
    held = HeldOut([item, "Two cats sleep."])
    samples = [
        f"News of the day. {item.upper().replace(',', '')} More follows.",
        "two cats, sleep",
        "Two cats sleep all day and nobody minds.",
        "Officials said on Monday that the tunnel will open.",
    ]
    texts = ScrambledTexts(samples, "FT-Ori", seed=1, held_out=held)
    assert [one["text"] for one in texts] == samples[2:]
    assert texts.counts.left_out == 2 and texts.counts.samples == 2


def test_a_wrong_setting_is_named():
    for rule, more, says in (
        ("FT-XX", {}, "FT-XX"),
        ("FT-RS", {"samples": 1.2}, "samples is 1.2"),
        ("FT-RS", {"words": 30}, "words is 30"),
    ):
        with pytest.raises(UserError, match=says):
            ScrambledTexts(["a text"], rule, seed=1, **more)


ROWS = [
    {"id": "12", "title": "April", "text": "April is a month.\n\nIt has 30 days."},
    {"id": "13", "text": "  "},
    {"id": "14", "text": "Äpfel"},
]


def _write(folder, form):
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = folder / f"train.{form}"
    table = pa.Table.from_pylist([{"id": row["id"], "text": row["text"]} for row in ROWS])
    if form == "jsonl":
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS), "utf-8")
    elif form == "json":
        file.write_text(json.dumps(ROWS), "utf-8")
    elif form == "parquet":
        pq.write_table(table, file)
    else:
        with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        (folder / "dataset_info.json").write_text("{}")
        (folder / "state.json").write_text("{}")
    return file


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "arrow"])
def test_rows_of_wikipedia_are_read_in_every_form(tmp_path, form):
    file = _write(tmp_path, form)
    wanted = [("12", "April is a month.\n\nIt has 30 days."), ("14", "Äpfel")]
    for given_path in (file, tmp_path):
        assert [(one.source_id, one.text) for one in TextFiles((given_path,))] == wanted


def test_output_of_wikiextractor_is_read(tmp_path):
    (tmp_path / "AA").mkdir()
    (tmp_path / "AA" / "wiki_00").write_text(
        '<doc id="1" url="u" title="April">\nApril\n\nApril is a month.\n\n</doc>\n<doc id="2" url="u" title="May">\nMay\n</doc>\n'
    )
    (tmp_path / "AA" / "wiki_01").write_text(json.dumps({"id": "3", "text": "June"}) + "\n")
    assert [(one.source_id, one.text) for one in TextFiles((tmp_path,))] == [
        ("1", "April\n\nApril is a month."),
        ("2", "May"),
        ("3", "June"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b'{"title": "x"}\n', "'text'"),
        ("a.jsonl", b'{"text": "x"}\n{"te', "line 2"),
        ("a.txt", b"fine\n\xff\n", "line 2: .*UTF-8"),
        ("a.parquet", b"PAR1", "Parquet"),
        ("a.docx", b"PK", r"a\.docx"),
        ("wiki_00", b'<doc id="7">\ncut', "'7'.*</doc>"),
    ],
)
def test_a_broken_file_is_named(tmp_path, name, content, says):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UserError, match=says):
        list(TextFiles((file,)))


def test_memory_does_not_grow_with_the_texts(tmp_path):
    peaks = []
    for number in (400, 1600):
        many = (
            f"The planet {n} is the brightest object in the evening sky of winter." for n in range(number)
        )
        tracemalloc.start()
        for _ in ScrambledTexts(many, "FT-RS", seed=1):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # what grows is the table of hashes, at most 32 bytes a text and twice while it is copied, and what words are remembered
    assert peaks[1] - peaks[0] < 1200 * 200


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
    assert all(rules.rule(task).predicate(one["prompt"]) == one["reply"] for one in made)
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
