"""Sentences on the lowest and highest of many conditions name every condition that has the value."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analysis.figures.measures import sensitivity_figure
from analysis.measures.signal_detection import COUNTED
from analysis.report.condense_levels import MOST_DIFFERENCES_NAMED, MOST_TOLD, by_level, lowest_and_highest


def told(sizes: list[float]) -> tuple[list[str], list[str], list[float]]:
    return [f"level{n}x" for n in range(len(sizes))], [f"{size:.1f}%" for size in sizes], sizes


def test_conditions_that_share_an_extreme_are_named_together() -> None:
    lowest, highest = lowest_and_highest(*told([0.0, 50.0, 0.0, 97.0, 97.0 + 1e-12]))
    assert [f"level{n}x" in lowest for n in range(5)] == [True, False, True, False, False]
    assert [f"level{n}x" in highest for n in range(5)] == [False, False, False, True, True]
    assert lowest.count("0.0%") == 1


def test_too_many_to_name_are_counted_and_equal_values_are_one_phrase() -> None:
    many = MOST_DIFFERENCES_NAMED + 1
    lowest, _ = lowest_and_highest(*told([0.0] * many + [3.0] * MOST_TOLD))
    assert "level" not in lowest and "five" in lowest
    (equal,) = lowest_and_highest(*told([4.0] * many))
    assert "level" not in equal and "five" in equal


def test_conditions_with_one_value_are_named_since_they_need_not_be_all_of_a_study() -> None:
    equal = by_level(*told([4.0] * 3))
    assert equal.count("4.0%") == 1 and all(f"level{n}x" in equal for n in range(3))


@pytest.mark.parametrize("size", [1.25, 0.1 + 0.2])
def test_values_that_only_print_alike_are_not_both_extremes(size: float) -> None:
    lowest, _ = lowest_and_highest(*told([size, size + 0.004, 3.0]))
    assert "level0x" in lowest and "level1x" not in lowest


@pytest.mark.parametrize("pooled", [False, True])
def test_a_note_has_dots_only_where_they_are_drawn(pooled: bool) -> None:
    cell = {"reader_group": "human", "kind": "human", "level": "", "d_prime": 0.5, "criterion": 0.4}
    cell |= {
        f"{name}_{end}": value
        for name in ("d_prime", "criterion")
        for end, value in (("low", 0.1), ("high", 0.9))
    }
    counts = dict.fromkeys(COUNTED, 4)
    readers = pd.DataFrame(
        [{"reader_group": "human", **counts, "d_prime": n / 4, "criterion": n / 8} for n in range(4)]
    )
    cells = pd.DataFrame([cell | {"pooled": pooled}])
    drawing = sensitivity_figure("one", cells, readers, None, [], "yes", "no")
    dots = [len(drawn.get_offsets()) for axes in drawing.figure.axes for drawn in axes.collections]
    assert (len(readers) in dots) is not pooled
    assert ("no dots" in drawing.note) is pooled
    assert np.isfinite(drawing.figure.get_size_inches()).all()
