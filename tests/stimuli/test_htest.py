"""H-TEST: fifteen rules whose pairs differ in the rule alone, dealt to exemplars and test items."""

from __future__ import annotations

import functools
import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stimuli.errors import UserError
from stimuli.features import exempt, text_features, vowel_groups
from stimuli.htest import Pair, Rule
from stimuli.htest.released import RELEASED_TASKS
from stimuli.htest.rules import BUILT_IN, rule, rules
from stimuli.lexicon import zipf
from stimuli.recipes.htest import ABTaskDesign, generate, htest_rule_items

NAMES = tuple(one.name for one in BUILT_IN)
OURS = ("shared_initial", "longest_last", "alphabetical", "word_chain", "inner_capital")


@functools.cache
def made(name):
    return generate(name, exemplars=50, items=200, seed=5)


def pairs(name):
    test = made(name).test
    return [(a.text, b.text) for a, b in zip(test[::2], test[1::2], strict=True)]


def test_there_are_the_ten_published_rules_and_five_of_our_own():
    assert (*RELEASED_TASKS, *OURS) == NAMES
    assert all(one.statement.count("A text") == one.statement.count("B text") == 1 for one in BUILT_IN)
    assert all(one.source for one in BUILT_IN)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25)
@given(st.text() | st.text("aAbBlLyY12+-.,'’ \u0301ßİǅ𝔄\n"))
def test_a_rule_decides_any_text(name, text):
    assert rule(name).predicate(text) in ("A", "B")


DECIDED = [
    ("end_ly", "He left early.", "The early bird."),
    ("end_ly", "we met the FAMILY!”", "ly- ends it not"),
    ("end_punctuation", "He said “go.”", "wait (please)"),
    ("end_punctuation", "終わり。", "go ... on"),
    ("hyphenated_word", "a well‑known e-mail", "pages 3-4 – pre- and post"),
    ("palindrome", "Mam", "put-up"),
    ("palindrome", "a\u0301ba\u0301", "arará"),
    ("repeated_word", "see you in the Night. night.", "tonight night night-time"),
    ("rhyme", "blue shoe", "cough though"),
    ("rhyme", "blue shoe, tail pale", "blue shoe, tail shoe"),
    ("rhyme", "see a.d.", "qzx qzy"),
    ("rhyme", "pair pear", "pair pair"),
    ("spelled_math", "The angle approximately equal to 8.", "The limit < 10."),
    ("spelled_math", "three plus four", "3 + 4 and the plus key"),
    ("spelled_number", "three birds and 3 cats", "3 birds and three cats"),
    ("spelled_number", "twenty-one birds", "often, someone phoned"),
    ("start_vowel", "“Émile came", "hour by hour"),
    ("uppercase", "the caT", "the cat"),
    ("shared_initial", "two big bears", "bears two by"),
    ("longest_last", "a bb ccc.", "a bbb ccc"),
    ("alphabetical", "Ants, bees, cats", "Ants, cats, bees"),
    ("word_chain", "tiger rabbit turtle", "tiger turtle rabbit"),
    ("inner_capital", "the cAt", "the Cat sat At 3B"),
]


@pytest.mark.parametrize(("name", "a", "b"), DECIDED)
def test_edge_cases_are_decided_as_documented(name, a, b):
    assert (rule(name).predicate(a), rule(name).predicate(b)) == ("A", "B")


@pytest.mark.parametrize("name", NAMES)
def test_generated_texts_have_the_labels_that_the_rule_gives_them_and_none_comes_twice(name):
    """Exemplars share no carrier with the test: the letters of a carrier are those of its texts."""
    assert [rule(name).predicate(text) for text in ("", " ", "—")] == ["B"] * 3
    parts = made(name).exemplars, made(name).test
    for part, number in zip(parts, (50, 200), strict=True):
        assert [one.label for one in part] == ["A", "B"] * (number // 2)
        assert all(rule(name).predicate(one.text) == one.label for one in part)
    assert len({one.text for part in parts for one in part}) == 250
    shown, tested = ({"".join(sorted(one.text.casefold())) for one in part} for part in parts)
    assert name == "palindrome" or not shown & tested, "two palindromes may have the same letters"


@pytest.mark.parametrize("name", NAMES)
def test_a_pair_differs_in_what_its_rule_is_about_and_neither_in_characters_nor_in_another_feature(name):
    about = exempt(rule(name).about).features
    for a, b in pairs(name):
        assert a != b and sorted(a.casefold()) == sorted(b.casefold())
        of_a, of_b = (text_features(text, language="en", leave_out=about) for text in (a, b))
        for feature, value in of_a.items():
            assert abs(value - of_b[feature]) <= rule(name).tolerance.get(feature, 0) + 1e-9, (a, b, feature)


@pytest.mark.parametrize(("name", "place"), [("end_ly", -1), ("start_vowel", 0)])
def test_words_that_change_places_have_one_length_one_frequency_and_as_many_vowels(name, place):
    seen = set()
    for a, b in pairs(name):
        one, other = a.split()[place], b.split()[place]
        assert one != other and len(one) == len(other) and zipf(one, "en") == zipf(other, "en") != 0
        assert vowel_groups(one) == vowel_groups(other)
        seen |= {one, other}
    assert len(seen) > 70


@pytest.mark.parametrize("name", ["longest_last", "word_chain", "alphabetical"])
def test_listed_words_that_change_places_are_as_common_as_each_other(name):
    for a, b in pairs(name):
        lists = [re.findall(r"[a-z]+", text) for text in (a, b)]
        moved = [set(words) for words in zip(*lists, strict=True) if len(set(words)) > 1]
        twins = lists[0][-1], lists[1][-1]
        assert len({zipf(word, "en") for word in (twins if name == "longest_last" else moved[0])}) == 1
        assert name == "longest_last" or len(moved) == 2


def test_couples_that_rhyme_exchange_their_inner_words():
    for a, b in pairs("rhyme"):
        (w1, w2), (w3, w4) = (couple.split() for couple in a.split(","))
        assert b == f"{w1} {w3}, {w2} {w4}" and len(w2) == len(w3)
        for first, second in ((w1, w2), (w3, w4), (w1, w3), (w2, w4)):
            assert first[-2:] != second[-2:]
        assert rule("rhyme").predicate(f"{w1} {w2}") == rule("rhyme").predicate(f"{w3} {w4}") == "A"
        assert rule("rhyme").predicate(f"{w1} {w3}") == rule("rhyme").predicate(f"{w2} {w4}") == "B"
        assert zipf(w2, "en") == zipf(w3, "en") and vowel_groups(w2) == vowel_groups(w3)


def test_exemplars_and_test_items_of_rhyme_have_no_word_in_common():
    generated = made("rhyme")
    shown, tested = (
        {word for one in part for word in one.text.replace(",", "").split()}
        for part in (generated.exemplars, generated.test)
    )
    assert not shown & tested


def test_exemplars_in_random_order_are_balanced_and_nested():
    plain = generate("uppercase", exemplars=14, items=10, seed=3)
    few, more = (generate("uppercase", exemplars=k, items=10, seed=3, order="random") for k in (4, 14))
    assert set(more.exemplars) == set(plain.exemplars) and more.test == plain.test
    assert [one for one in more.exemplars if one in few.exemplars] == list(few.exemplars)
    assert Counter(one.label for one in few.exemplars) == {"A": 2, "B": 2}
    orders = {
        tuple(
            one.label for one in generate("uppercase", exemplars=6, items=0, seed=s, order="random").exemplars
        )
        for s in range(12)
    }
    assert len(orders) > 5


def test_items_name_the_pair_that_they_belong_to():
    items = htest_rule_items(
        ["uppercase", "word_chain"], ABTaskDesign(exemplars=4, items=10, seed=1, order="random")
    )
    by_pair = Counter(item.covariates["pair"] for item in items)
    assert len(by_pair) == 14 and set(by_pair.values()) == {2}
    for item in items:
        (twin,) = (x for x in items if x is not item and x.covariates["pair"] == item.covariates["pair"])
        assert {item.answer, twin.answer} == {"A", "B"} and item.role == twin.role
    assert len({item.item_id for item in items}) == 28
    exemplars = [item.item_id for item in items if item.role == "exemplar"]
    plain = htest_rule_items(["uppercase", "word_chain"], ABTaskDesign(exemplars=4, items=10, seed=1))
    assert sorted(exemplars) == sorted(item.item_id for item in plain if item.role == "exemplar")


BOOKENDS = """
from stimuli.htest import Pair, Rule

NAMES = ("anna", "otto", "carl", "dora", "emil", "fred", "gina", "hugo", "ivan", "jane")


def same_ends(text):
    return "A" if len(text.split()) > 2 and text.split()[0] == text.split()[-1] else "B"


def pair(draw):
    x, y, z = draw.sample(NAMES, 3)
    return Pair(f"{x} {y} {z} {x}", f"{x} {y} {x} {z}", f"{x} {y} {z}")


bookends = Rule(
    "bookends", "The first word of an A text is the last one too; that of a B text is not.", same_ends, pair, "our lab",
    about=frozenset({"last_character", "doubled_letters", "mirrored", "positions", "outer_words"}),
)
"""


def test_another_package_adds_a_rule_in_about_ten_lines(install):
    install(BOOKENDS, rules, "wrods.rules", "bookends")
    assert {*NAMES, "bookends"} == set(rules())
    assert len(generate("bookends", exemplars=4, items=10, seed=1).test) == 10
    with pytest.raises(UserError, match=r"'bookends' .* 5000 "):
        generate("bookends", exemplars=4, items=10000, seed=1)


def test_a_rule_whose_pairs_differ_elsewhere_is_told_in_which_feature(monkeypatch):
    def pair(draw):
        word = "".join(draw.choice("bcdfg") + draw.choice("aeiou") for _ in range(3))
        return Pair(f"{word} x", f"{word} yy", word)

    long = Rule("long", "…", lambda text: "A" if text.endswith("x") else "B", pair, "here")
    monkeypatch.setattr("stimuli.recipes.htest.rule", {**rules(), "long": long}.__getitem__)
    with pytest.raises(UserError, match=r"characters \("):
        generate("long", exemplars=0, items=2, seed=1)
