"""Names of scrambles: readable ones, papers' ones, rates, mappings, and types that other packages add."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.errors import UserError
from stimuli.scramble.text import scramble_text
from stimuli.scramble.types import BUILT_IN, _built_in, parse_operation, scramble_type, scramble_types
from tests.write_scramble_page import PAGE, scramble_page

HALVES = """
from stimuli.scramble import FromDraws, ScrambleType


def halves(letters, draw):
    half = len(letters) // 2
    yield (*range(half, len(letters)), *range(half))


swap = ScrambleType("swap:halves", "letter", "reorder", "all words", "our lab", FromDraws(halves), aliases=("HALF",))
"""


@pytest.mark.parametrize(
    ("text", "mapping", "label"),
    [
        (
            "transpose:internal(distance=2, letters=consonants)@0.5",
            {"transpose": "internal", "distance": 2, "letters": "consonants", "rate": 0.5},
            "transpose:internal(distance=2,letters=consonants)@0.5",
        ),
        (
            "Transpose: Internal (letters=Vowels,distance=1)",
            {"transpose": "internal", "letters": "vowels"},
            "transpose:internal(letters=vowels)",
        ),
        ("transpose: 3", {"transpose": 3}, "transpose:3"),
        ("transpose:1", {"transpose": "1"}, "transpose:1"),
        (
            "substitute:4(distance=2,shape=keep)",
            {"substitute": 4, "distance": "2", "shape": "keep"},
            "substitute:4(distance=2,shape=keep)",
        ),
        ("shuffle:all(spaced=true)", {"shuffle": "all", "spaced": True}, "shuffle:all(spaced=true)"),
        ("RS(min_letters=4)-20", {"type": "REO-ALL", "rate": 0.2}, "shuffle:all(min_letters=4)@0.2"),
        (
            "KF&Adj@0.5; texts=0.25",
            {"type": "KF&Adj", "rate": 0.5, "texts": 0.25},
            "transpose:after_first@0.5;texts=0.25",
        ),
        ("words:shuffle-50", {"words": "shuffle", "rate": 0.5}, "words:shuffle@0.5"),
        ("rs-50", {"shuffle": "all", "rate": 0.5}, "shuffle:all@0.5"),
        ("RS-100", {"type": "RS"}, "shuffle:all"),
        ("none", {"type": "none"}, "none"),
    ],
)
def test_options_are_written_alike_in_text_and_in_a_study(text, mapping, label):
    operation = parse_operation(text)
    assert operation.label == label
    assert parse_operation(mapping) == operation == parse_operation(label)


@given(st.sampled_from(BUILT_IN), st.data(), st.floats(0, 1), st.floats(0, 1))
def test_a_canonical_name_reads_back_as_the_same_operation(kind, data, rate, texts):
    if kind.name == "none":
        return
    given_options = {}
    for option in kind.options:
        numbers = st.booleans() if isinstance(option.default, bool) else st.integers(option.low, option.high)
        given_options[option.name] = data.draw(st.sampled_from(option.choices) if option.choices else numbers)
    share = {} if kind.unit == "sentence" else {"rate": rate}
    operation = parse_operation({kind.family: kind.position, "texts": texts, **share, **given_options})
    assert operation.texts == texts
    again = parse_operation(operation.label)
    assert (again.type, again.options) == (operation.type, operation.options)
    assert abs(again.rate - operation.rate) < 1e-12 and abs(again.texts - operation.texts) < 1e-12


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("transpose:finel", "'transpose:final'"),
        ("KFF", "'KF"),
        ({"transpos": "final"}, "'transpose'"),
        ({"transpose": "middle"}, "transpose:middle"),
        ({"transpose": "final", "keep": "first"}, " 2"),
        ({"rate": 0.5}, " 0"),
        ("RS-150", "0 and 100 %"),
        ("RS@2", "0 and 1"),
        ({"shuffle": "all", "rate": "half"}, "rate is half;"),
        ({"shuffle": "all", "rate": True}, "True"),
        ({"shuffle": "all", "rate": float("nan")}, "nan"),
        (5, "5"),
        ("transpose:internal(distnce=2)", "'distance'"),
        ("transpose:internal(distance=0)", "distance is '0';"),
        ("transpose:internal(distance)", "'distance'"),
        ("transpose:internal(distance=1,distance=2)", "'distance=2'"),
        ("transpose:internal(letters=consonant)", "'consonants'"),
        ({"transpose": "internal", "distence": 2}, "'distance'"),
        ({"transpose": "internal", "distance": True}, "distance is True;"),
        ({"keep": "first", "spaced": "maybe"}, "spaced is 'maybe';"),
        ({"words": "shuffle", "min_letters": 3}, "'min_letters'"),
        ("INS-INT(count=5)", "count is '5';"),
        ("RS;texts=1.4", "texts is 1.4;"),
        ("RS-20@0.2", "two rates"),
        ("SENT-REO-ALL@0.5", "texts: 0.5"),
    ],
)
def test_an_operation_that_is_none_is_refused_with_the_mend(given, said):
    with pytest.raises(UserError) as raised:
        parse_operation(given)
    assert said in str(raised.value)


def test_another_package_adds_a_type_through_an_entry_point(install):
    install(HALVES, scramble_types, "wrods.scrambles", "swap")
    assert scramble_type("HALF").name == "swap:halves"
    assert scramble_text("Wörter coco", "half", seed=1).text == "Terwör coco"
    assert parse_operation({"swap": "halves", "min_letters": 5}).label == "swap:halves(min_letters=5)"


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (HALVES.replace('"HALF"', '"KFL"'), "'kfl'"),
        ("swap = 7", r"from stimuli.scramble.types import ScrambleType"),
    ],
)
def test_a_type_that_takes_a_known_name_or_is_none_is_refused(install, module, said):
    install(module, scramble_types, "wrods.scrambles", "swap")
    with pytest.raises(UserError, match=said):
        scramble_types()


def test_a_described_type_without_a_rule_is_told_with_the_place_to_add_it():
    with pytest.raises(UserError, match=r"'double:vowels' .*RULES"):
        _built_in({"name": "double:vowels"})


def test_the_page_of_scrambles_is_up_to_date():
    assert PAGE.read_text("utf-8") == scramble_page(), "run: python -m tests.write_scramble_page"


def test_every_operation_is_told_in_words_with_what_sets_it_apart() -> None:
    told = [parse_operation(kind.name).in_words for kind in BUILT_IN if not kind.name.endswith(":N")]
    assert len(set(told)) == len(told) and not any(":" in one or "{" in one for one in told)
    variants = ("RS", "RS-50", "RS-20", "transpose:3", "transpose:4", "DEL-INT_1", "DEL-INT_2", "KF&Adj")
    assert len({parse_operation(variant).in_words for variant in variants}) == len(variants)


@pytest.mark.parametrize("option", ["distance", "count"])
def test_letters_apart_and_one_of_two_letters_are_not_called_what_the_default_is(option: str) -> None:
    for kind in (kind for kind in BUILT_IN if kind.family in ("transpose", "substitute")):
        if option in {own.name for own in kind.own_options} and kind.position not in ("all", "N"):
            given = parse_operation(f"{kind.name}({option}={1 if option == 'count' else 2})").in_words
            default = parse_operation(kind.name).in_words
            assert default not in given and "{" not in given and "(" not in given
