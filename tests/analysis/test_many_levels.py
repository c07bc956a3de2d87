from __future__ import annotations

from analysis.report.many_levels import MOST_TOLD, by_level


def test_few_conditions_are_told_one_by_one_and_many_by_the_ends_of_their_range() -> None:
    assert by_level(["a", "b"], ["90%", "80%"], [0.9, 0.8]) == "90% in the a and 80% in the b"
    levels = [f"c{number}" for number in range(MOST_TOLD + 1)]
    sizes = [0.5, 0.9, 0.1, *[0.4] * (MOST_TOLD - 2)]
    told = [f"{100 * one:.0f}%" for one in sizes]
    assert by_level(levels, told, sizes) == "10% in the c2 to 90% in the c1"
    assert by_level(levels, ["0%"] * len(levels), [0.0] * len(levels)) == "0% in each"
