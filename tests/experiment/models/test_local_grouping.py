"""Groups of rows with one common prefix each: complete, exact, and never more work than row by row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from experiment.models.local.plain import batches, plan_groups
from experiment.models.local.rows import Decoding, MemoryBudget, Row


def row(ids, continued=False) -> Row:
    decoding = Decoding(2, 0.0, 1, lambda _: False) if continued else None
    return Row(np.asarray(ids, dtype=np.int32), targets=((len(ids), 1),), decoding=decoding)


ids = st.lists(st.integers(0, 2), min_size=1, max_size=12)
rows = st.lists(st.builds(row, ids, st.booleans()), max_size=30)


@given(rows)
def test_a_plan_never_computes_more_than_row_by_row(given_rows):
    planned = sum(
        group.prefix + sum(len(given_rows[place].ids) - group.prefix for place in group.members)
        for group in plan_groups(given_rows)
    )
    assert planned <= sum(len(row.ids) for row in given_rows)


def test_nested_beginnings_of_a_thousand_steps_are_planned():
    given_rows = [row(tuple(range(n))) for n in range(1, 1000)]
    groups = plan_groups(given_rows)
    assert sum(len(group.members) for group in groups) == 999


@given(rows.filter(bool), st.integers(1, 40))
def test_batches_hold_every_member_once_within_the_budget(given_rows, tokens):
    budget = MemoryBudget(tokens, 10_000)
    for group in plan_groups(given_rows):
        found = list(batches(group, given_rows, budget))
        assert sorted(place for batch in found for place in batch) == sorted(group.members)
        for batch in found:
            lengths = [len(given_rows[place].ids) - group.prefix for place in batch]
            assert len(batch) == 1 or len(batch) * max(lengths) <= tokens
            continued = {given_rows[place].decoding is not None for place in batch}
            assert continued == {False} or (continued == {True} and len(set(lengths)) == 1)
