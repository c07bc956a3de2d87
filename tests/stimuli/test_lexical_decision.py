"""Words and nonwords for lexical decision: matched pairs, balanced answers, and which words may be drawn at all."""

from __future__ import annotations

import csv
from collections import Counter
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.errors import UserError
from stimuli.lexicon import zipf
from stimuli.lexicon.base_words import akin, is_plain_word, relation
from stimuli.lexicon.neighbourhoods import bigram_frequency
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.tasks import task_items
from stimuli.scramble.conditions import ScrambleSettings
from tests.stimuli.designs import word_records

PAIR = {"TL": "transpose:internal", "SL": "substitute:internal"}
APART = {
    "TL": {"transpose": "internal", "distance": 2, "letters": "consonants"},
    "SL": {"substitute": "internal", "distance": 2, "letters": "consonants"},
}
WORDS = ["chocolate", "casino", "judge", "gardener", "mountain", "elephant"]
FILLERS = ["umbrella", "window", "table", "blanket", "carpet", "purchase", "favourite", "sunlight"]


def make(words=None, **changed):
    records = word_records(WORDS if words is None else words, source="words.csv", fillers=FILLERS)
    records, options = changed.pop("records", records), changed.pop("options", {})
    design = ItemDesign(**{"factor": "nonword", "levels": PAIR, "seed": 4711} | changed)
    return task_items("lexical_decision", records, design, options=options)


def drawn(number=24, **changed):
    return make(records=[], number=number, **changed)


def forms_of(made):
    by_word = {}
    for item in made.items:
        if item.role == "test":
            by_word.setdefault(item.item_id, {})[item.condition["nonword"]] = item
    return by_word


@pytest.mark.parametrize(("levels", "distance"), [(PAIR, 1), (APART, 2)])
def test_both_nonwords_of_a_word_change_the_same_two_letters(levels, distance):
    for word, forms in forms_of(drawn(levels=levels)).items():
        told = {level: relation(word, item.shown["word"]) for level, item in forms.items()}
        assert (told["TL"].kind, told["SL"].kind) == ("transposed", "replaced")
        assert told["TL"].places == told["SL"].places and told["TL"].distance == distance
        assert told["TL"].places[0] > 0 and told["TL"].places[1] < len(word) - 1
        assert distance == 1 or told["TL"].classes == ("consonant", "consonant")


def test_no_nonword_is_listed_and_a_substitute_is_a_vowel_for_a_vowel_and_a_consonant_for_a_consonant():
    for item in drawn().items:
        assert (item.answer == "nonword") == (zipf(item.shown["word"], "en") == 0)
        assert item.choices == ("word", "nonword")
        for change in item.changes:
            if item.condition["nonword"] == "SL":
                told = relation(change["shown"], change["intact"])
                assert told.classes == relation(change["intact"], change["shown"]).classes


@pytest.mark.parametrize(
    ("levels", "words"),
    [(PAIR, 24), ({"word": "none", **PAIR}, 24), ({"word": "none", "TL": PAIR["TL"]}, 24)],
)
def test_yes_and_no_are_equally_often_right_in_every_list(levels, words):
    made = drawn(words, levels=levels)
    fillers = sum(item.role == "filler" for item in made.items)
    families = [list(forms.values()) for forms in forms_of(made).values()]
    for row in range(len(levels)):
        shown = [forms[(place + row) % len(levels)] for place, forms in enumerate(families)]
        answers = Counter(item.answer for item in shown)
        assert answers["word"] + fillers == answers["nonword"]


@pytest.mark.parametrize("fillers", [[], ["Fenster"]])
def test_where_words_cannot_be_drawn_a_mend_that_works_is_given(fillers):
    records = word_records(["Garten", "Minute"], source="w.txt", fillers=fillers)
    settings = ScrambleSettings(language="de")
    with pytest.raises(UserError) as error:
        make(records=records, settings=settings)
    assert "2 word fillers" in error.value.message
    assert "fillers: 0" in (error.value.mend or "").replace("fillers: (0", "fillers: 0")
    assert len(make(records=records, settings=settings, options={"fillers": 0}).items) == 4


def test_drawn_fillers_have_the_lengths_of_the_base_words_and_resemble_none():
    made = drawn(30)
    fillers = [item.item_id for item in made.items if item.role == "filler"]
    bases = list(forms_of(made))
    assert Counter(map(len, fillers)) == Counter(map(len, bases))
    words = [*bases, *fillers]
    assert not [(a, b) for place, a in enumerate(words) for b in words[:place] if akin(a, b)]
    assert all((zipf(word, "en") or 0) >= 4 for word in fillers)


def test_the_order_of_the_words_does_not_change_their_nonwords():
    one, other = forms_of(make()), forms_of(make(WORDS[::-1]))
    assert {word: forms["SL"].shown for word, forms in one.items()} == {
        word: forms["SL"].shown for word, forms in other.items()
    }


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"levels": {"a": "none"}}, "nonword"),
        ({"levels": {"a": "withhold", **PAIR}}, "withheld"),
        ({"options": {"letters": [7, 5]}, "records": []}, "letters is [7, 5]"),
        ({"options": {"zipf": [1, 3]}, "records": []}, "zipf begins at 1;"),
        ({"options": {"fillers": 20}}, "20 word fillers"),
        ({"records": [], "number": 0}, "0 base words"),
        ({"records": [], "number": 500, "options": {"letters": [12, 12]}}, "500 base words"),
        ({"records": [], "settings": ScrambleSettings(language="de")}, "language 'de'"),
        ({"words": ["judge", "judge"]}, "'judge'"),
        ({"words": ["judge", "Umbrella"]}, "'umbrella'"),
    ],
)
def test_a_wrong_request_is_told(changed, said):
    with pytest.raises(UserError) as error:
        make(**changed)
    assert said in str(error.value)


def test_base_forms_are_told_from_inflections_and_names():
    words = ["garden", "kindness", "walks", "walked", "walking", "kevin"]
    assert [word for word in words if is_plain_word(word, "en")] == ["garden", "kindness"]


@given(st.text("abcdeéioxyz", min_size=4, max_size=9), st.data())
def test_a_transposition_and_a_replacement_are_recognised_whatever_the_word(word, data):
    i, j = sorted(data.draw(st.lists(st.integers(0, len(word) - 1), min_size=2, max_size=2, unique=True)))
    letters = list(word)
    letters[i], letters[j] = letters[j], letters[i]
    told = relation(word.upper(), "".join(letters))
    assert told.kind == ("same" if word[i] == word[j] else "transposed")
    replaced = [*word[:i], "q", *word[i + 1 : j], "k", *word[j + 1 :]]
    assert relation(word, "".join(replaced)).kind == "replaced"
    assert relation(word, "".join(replaced)).places == (i, j)


@pytest.fixture(scope="module")
def published(shared):
    with (shared / "data" / "tl_lexical_decision" / "trials.csv").open(encoding="utf-8") as stream:
        return {(row["string"], row["item_type"], row["base"]) for row in csv.DictReader(stream)}


@pytest.mark.shared
def test_real_nonwords_stand_to_their_base_words_as_their_authors_say(published):
    told = {one: relation(one[2], one[0]) for one in published}
    counts = Counter((one[1], found.kind) for one, found in told.items())
    assert counts == {
        ("word", "same"): 80,
        ("transposed", "transposed"): 79,
        ("replaced", "replaced"): 79,
        ("transposed", "same"): 1,  # incidate stands there with itself as its base word
        ("replaced", "other"): 1,  # carminal has one new letter only
    }
    sites = {}
    for (_, _, base), found in told.items():
        if found.kind in ("transposed", "replaced"):
            assert found.distance == 2 and found.classes == ("consonant", "consonant")
            sites.setdefault(base, set()).add(found.places)
    assert all(len(places) == 1 for places in sites.values())


@pytest.mark.shared
def test_our_nonwords_of_real_base_words_are_of_the_same_kind(published):
    bases = sorted({base.lower() for _, kind, base in published if kind == "word"})
    records = word_records(bases, source="trials.csv")
    made = make(records=records, levels=APART, seed=1, on_bad="skip", options={"fillers": 0})
    assert len(made.items) + 2 * len(made.skipped) == 160
    assert len(made.skipped) <= 4
    kinds = Counter(
        (i.condition["nonword"], i.covariates["relation"], i.covariates["distance"]) for i in made.items
    )
    assert set(kinds) == {("TL", "transposed", 2), ("SL", "replaced", 2)}


def test_no_drawn_nonword_has_a_bigram_that_no_word_has_and_both_kinds_are_as_regular():
    forms = forms_of(drawn(60))
    rarest = {"TL": [], "SL": []}
    odd = dict.fromkeys(rarest, 0)
    for by_level in forms.values():
        for level, item in by_level.items():
            measured = bigram_frequency(item.shown["word"], "en")
            assert measured is not None and measured.bigram_type_min > 0
            rarest[level].append(measured.bigram_min)
            assert item.covariates["shown_bigram_min"] == pytest.approx(measured.bigram_min, abs=5e-4)
            odd[level] += measured.bigram_position_type_min == 0
    # Replaced letters can be chosen so as to be at home at their place; transposed ones are what they are.
    assert odd["SL"] <= 2
    assert abs(fmean(rarest["TL"]) - fmean(rarest["SL"])) < 0.25
