"""Groups rows by one common prefix each, for models whose attention cannot take branches side by side.

Rows in the order of their tokens form a tree; a cut through that tree gives groups, each with one common prefix. The cut
with the fewest tokens to compute wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from experiment.models.local.rows import Budget, Row, common_length

GROUP_COST = 32
"""What one more group costs, in tokens: a pass for its prefix and a batch that is less full."""

_DEEPEST = 64


@dataclass(frozen=True)
class Group:
    """Rows computed from one common prefix."""

    # Number of tokens that all members have in common and that are computed once; 0 shares nothing
    prefix: int
    members: tuple[int, ...]  # places of the rows in the sequence that was planned


def plan_groups(rows: Sequence[Row]) -> list[Group]:
    """Cut rows into groups with a common prefix each, so that few tokens are computed.

    Every row in exactly one group; rows that share nothing stand together in one group of prefix 0.
    """
    order = sorted(range(len(rows)), key=lambda place: rows[place].ids.astype(">u4").tobytes())
    most = [row.shareable for row in rows]
    shared = [min(common_length(rows[a].ids, rows[b].ids), most[a], most[b]) for a, b in pairwise(order)]

    def cut(start: int, stop: int, depth: int) -> tuple[int, list[tuple[int, int, int]]]:
        """Return tokens to compute and (prefix, start, stop) spans for the sorted rows start..stop-1."""
        length = sum(len(rows[place].ids) for place in order[start:stop])
        if stop - start == 1:
            return length, [(0, start, stop)]
        prefix = min(shared[start : stop - 1])
        together = length - (stop - start - 1) * prefix + (GROUP_COST if prefix else 0)
        if depth >= _DEEPEST:
            return together, [(prefix, start, stop)]
        borders = [place + 1 for place in range(start, stop - 1) if shared[place] == prefix]
        parts = [
            cut(low, high, depth + 1) for low, high in zip([start, *borders], [*borders, stop], strict=True)
        ]
        apart = sum(tokens for tokens, _ in parts)
        if apart < together or prefix == 0:
            return apart, [span for _, spans in parts for span in spans]
        return together, [(prefix, start, stop)]

    if not rows:
        return []
    spans = cut(0, len(rows), 0)[1]
    groups = [Group(prefix, tuple(order[start:stop])) for prefix, start, stop in spans if prefix]
    alone = tuple(place for prefix, start, stop in spans if not prefix for place in order[start:stop])
    return [*groups, Group(0, alone)] if alone else groups


def _shortest_beside(own: int) -> int:
    """Return how short a row may be beside one that computes ``own`` tokens: a quarter of padding beyond 64."""
    return 1 if own <= 64 else own * 3 // 4


def batches(
    group: Group, rows: Sequence[Row], budget: Budget, *, steps: bool = False
) -> Iterator[tuple[int, ...]]:
    """Yield batches of a group's members, longest first, each within the budget as it stands at that moment.

    Rows that are to be continued stand with rows of their own length only, so that nothing is padded.

    ``steps``: whether a pass computes one token of each row, not all that stand behind the prefix.
    """
    waiting = sorted(
        group.members, key=lambda place: (rows[place].decoding is None, -len(rows[place].ids), place)
    )
    while waiting:
        longest = len(rows[waiting[0]].ids)
        continued = rows[waiting[0]].decoding is not None
        own = longest - group.prefix
        asked = max(1, len(rows[waiting[0]].asked_at()))
        at_once = budget.tokens // (1 if steps else own)
        most = max(1, min(at_once, budget.held // longest, budget.positions // asked))
        least = longest if continued else _shortest_beside(own) + group.prefix
        batch = []
        for place in waiting[:most]:
            if (rows[place].decoding is not None) != continued or len(rows[place].ids) < least:
                break
            batch.append(place)
        yield tuple(batch)
        waiting = waiting[len(batch) :]
