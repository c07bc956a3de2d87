from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import apa

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        # three decimals, no leading zero, and a floor; rounding does not hide that p is below five percent
        (apa.p_phrase(0.0321), "p = .032"),
        (apa.some_of(2, 3, "test"), "two of three tests"),
        (apa.some_of(2, 12, "test"), "2 of 12 tests"),
        (apa.p_phrase(0.0009), "p < .001"),
        (apa.p_phrase(0.001), "p = .001"),
        (apa.p_phrase(0.0494), "p = .049"),
        (apa.p_phrase(0.04999), "p < .050"),
        (apa.p_phrase(0.05), "p = .050"),
        (apa.p_phrase(0.9994), "p = .999"),
        (apa.p_phrase(0.99951), "p > .999"),
        (apa.p_phrase(1.0), "p > .999"),
        (apa.p_phrase(0.0), "p < .001"),
        # a true minus, no negative zero, and halves away from zero
        (apa.number(-1.256), "−1.26"),
        (apa.number(-0.001), "0.00"),
        (apa.number(12345.678, 1), "12,345.7"),
        (apa.number(-61.25, 1), "−61.3"),
        (apa.number(0.125), "0.13"),
        (apa.number(1.005), "1.01"),
        (apa.number(-1e-300), "0.00"),
        (apa.number(1.5e300, 1)[:6], "1,500,"),
        (apa.count(2.5), "3"),
        (apa.count(-2.5), "−3"),
        (apa.count(-0.4), "0"),
        (apa.degrees_of_freedom(38.0), "38"),
        (apa.degrees_of_freedom(1728.512), "1,728.51"),
        # intervals in brackets; that they leave no effect out shows; open on one side they have no number there
        (apa.interval(-0.5, 1.25), "[−0.50, 1.25]"),
        (apa.interval(0.003, 0.41), "[0.003, 0.410]"),
        (apa.ratio_interval(1.004, 4.29), "[1.004, 4.290]"),
        (apa.interval(3.14, INF, 1), "[3.1, ∞)"),
        (apa.interval(-INF, 4.2, 1), "(−∞, 4.2]"),
        (apa.with_ends(5.0, 3.14, INF, 1, "%"), "5.0% [3.1, ∞)"),
        (apa.with_ends(5.0, NAN, NAN, 1), "5.0"),
        (apa.ratio_interval(1.5, INF), "[1.50, ∞)"),
        (apa.interval(0.0, 0.001), "[0.000, 0.001]"),  # narrow is not without width
        (apa.interval(-0.004, 0.27), "[−0.004, 0.270]"),
        (apa.span(81.7, 81.7, 1), "[81.7, 81.7]"),  # from where to where values lie is no interval
        # what does not exist, or has no width, is a dash
        *((missing, apa.MISSING) for missing in (
            apa.number(None), apa.number(NAN), apa.p_value(None), apa.percent(NAN), apa.degrees_of_freedom(INF),
            apa.interval(None, NAN), apa.ratio_interval(None, NAN), apa.interval(0.0, 0.0),
            apa.interval(81.7, 81.7 + 1e-14, 1), apa.ratio_interval(1.0, 1.0), apa.correlations(1.0, 1.0),
        )),
    ],
)  # fmt: skip
def test_numbers_are_written_as_the_manual_asks(written: str, expected: str) -> None:
    assert written == expected


@pytest.mark.parametrize(
    ("value", "opened"),
    [(1, "One model"), (9, "Nine models"), (10, "A total of 10 models"), (1200, "A total of 1,200 models")],
)
def test_no_sentence_begins_with_digits(value: int, opened: str) -> None:
    assert apa.opening(value, "model") == opened


def test_p_outside_0_and_1_is_refused() -> None:
    with pytest.raises(ValueError, match=r"1\.2"):
        apa.p_value(1.2)


@pytest.mark.parametrize("asked", [8, 80, 400])
def test_a_share_is_written_alike_however_it_was_reckoned(asked: int) -> None:
    for right in range(asked + 1):
        by_hand = (2000 * right + asked) // (2 * asked)  # tenths of a percent, halves up
        written = f"{by_hand // 10}.{by_hand % 10}"
        one_by_one = sum([100 / asked] * right)
        for share in (100 * (right / asked), 100 * right / asked, one_by_one):
            assert apa.number(share, 1) == written
        assert apa.percent(right / asked) == f"{written}%"


@pytest.mark.parametrize("ends", [(0.0, 0.0), (3.14, INF)])
def test_a_written_interval_keeps_its_ends(ends: tuple[float, float]) -> None:
    written = apa.interval(*ends)
    assert isinstance(written, apa.Written) and written.values == ends


@given(st.floats(min_value=-1e9, max_value=1e9, allow_nan=False))
def test_a_written_number_reads_back_within_its_rounding(value: float) -> None:
    back = float(apa.number(value).replace("−", "-").replace(",", ""))
    assert abs(back - value) <= 0.0051 + 1e-9 * abs(value)
