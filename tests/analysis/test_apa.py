from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import apa


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0321, "p = .032"),
        (0.0009, "p < .001"),
        (0.001, "p = .001"),
        (0.05, "p = .050"),
        (0.99951, "p > .999"),
        (0.9994, "p = .999"),
        (1.0, "p > .999"),
        (0.0, "p < .001"),
    ],
)
def test_p_has_three_decimals_no_leading_zero_and_a_floor(value: float, written: str) -> None:
    assert apa.p_phrase(value) == written


def test_p_outside_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.2"):
        apa.p_value(1.2)


def test_numbers_have_a_true_minus_and_no_negative_zero() -> None:
    assert apa.number(-1.256) == "−1.26"
    assert apa.number(-0.001) == "0.00"
    assert apa.number(12345.678, 1) == "12,345.7"


@pytest.mark.parametrize(("right", "asked"), [(k, n) for n in (8, 80, 160, 400) for k in range(n + 1)])
def test_a_share_is_written_alike_however_it_was_reckoned(right: int, asked: int) -> None:
    by_hand = (2000 * right + asked) // (2 * asked)  # tenths of a percent, halves up
    written = f"{by_hand // 10}.{by_hand % 10}"
    one_by_one = sum([100 / asked] * right)
    assert {
        apa.number(100 * (right / asked), 1),
        apa.number(100 * right / asked, 1),
        apa.number(one_by_one, 1),
    } == {written}
    assert apa.percent(right / asked) == f"{written}%"


def test_halves_go_away_from_zero() -> None:
    assert (apa.number(-61.25, 1), apa.number(0.125), apa.number(1.005)) == ("−61.3", "0.13", "1.01")
    assert (apa.count(2.5), apa.count(-2.5), apa.count(-0.4)) == ("3", "−3", "0")
    assert apa.number(1.5e300, 1).startswith("1,500,") and apa.number(-1e-300) == "0.00"


def test_a_number_that_does_not_exist_is_a_dash() -> None:
    assert {apa.number(None), apa.number(math.nan), apa.p_value(None), apa.percent(math.nan)} == {"–"}
    assert apa.degrees_of_freedom(math.inf) == "–"


def test_intervals_stand_in_brackets() -> None:
    assert apa.interval(-0.5, 1.25) == "[−0.50, 1.25]"
    assert apa.interval(0.003, 0.41) == "[0.003, 0.410]", "it leaves zero out, as its p says"
    assert apa.ratio_interval(1.004, 4.29) == "[1.004, 4.290]"
    assert apa.interval(None, math.nan) == apa.ratio_interval(None, math.nan) == apa.MISSING


def test_an_interval_that_is_open_on_one_side_has_no_number_there() -> None:
    inf = float("inf")
    above = apa.interval(3.14, inf, 1)
    assert (above, above.values) == ("[3.1, ∞)", (3.14, inf))  # type: ignore[attr-defined]
    assert apa.interval(-inf, 4.2, 1) == "(−∞, 4.2]"
    assert apa.with_ends(5.0, 3.14, inf, 1, "%") == "5.0% [3.1, ∞)"
    assert apa.with_ends(5.0, float("nan"), float("nan"), 1) == "5.0"
    assert apa.ratio_interval(1.5, inf) == "[1.50, ∞)"


def test_an_interval_without_width_is_a_dash_that_keeps_its_ends() -> None:
    written = apa.interval(0.0, 0.0)
    assert written == apa.MISSING and isinstance(written, apa.Written) and written.values == (0.0, 0.0)
    assert (
        apa.interval(81.7, 81.7 + 1e-14, 1)
        == apa.ratio_interval(1.0, 1.0)
        == apa.correlations(1.0, 1.0)
        == apa.MISSING
    )
    assert apa.interval(0.0, 0.001) == "[0.00, 0.00]", "narrow is not without width"
    assert apa.span(81.7, 81.7, 1) == "[81.7, 81.7]", "from where to where values lie is no interval"


def test_degrees_of_freedom_are_whole_where_they_are() -> None:
    assert apa.degrees_of_freedom(38.0) == "38"
    assert apa.degrees_of_freedom(1728.512) == "1,728.51"


@given(st.floats(min_value=-1e9, max_value=1e9, allow_nan=False))
def test_a_written_number_reads_back_within_its_rounding(value: float) -> None:
    back = float(apa.number(value).replace("−", "-").replace(",", ""))
    assert abs(back - value) <= 0.0051 + 1e-9 * abs(value)


def test_rounding_does_not_hide_that_p_is_below_five_percent() -> None:
    assert (apa.p_phrase(0.04999), apa.p_phrase(0.0494), apa.p_phrase(0.05)) == (
        "p < .050",
        "p = .049",
        "p = .050",
    )
