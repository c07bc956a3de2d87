"""Which items belong together, so that a classifier is never tested on the twin of a text that it learnt."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from stimuli.features import bag
from stimuli.item import Item
from stimuli.seeds import stable_seed
from stimuli.similarity import without_case

PAIR, CARRIER = "pair", "carrier"
PAIR_COVARIATES = (PAIR, CARRIER)
SIMILAR = 0.8
"""Texts that share at least this part of their different words (Jaccard index) count as of one carrier."""

_LARGEST_GROUP = 0.1


def shown_text(item: Item) -> str:
    """Return all that an item shows, field by field."""
    return "\n".join(item.shown.values())


def folded(text: str) -> str:
    """Return a text as the eye compares it: composed, without case, spaces as one."""
    return " ".join(without_case(text).split())


def groups_of(items: Sequence[Item]) -> list[int]:
    """Give every item the number of its group of items that belong together, groups in the order of their first item.

    Items belong together when they share their id, their pair or carrier (covariates ``pair`` and ``carrier``),
    or their text up to case and spaces. Where an item names neither pair nor carrier, texts that share most of
    their words belong together too, unless that would chain more than a tenth of all items into one group.
    """
    joined = _Joined(len(items))
    _join_equal(joined, [[("id", item.item_id)] for item in items])
    _join_equal(joined, [[("text", folded(shown_text(item)))] for item in items])
    _join_equal(
        joined,
        [
            [
                (name, item.covariates[name])
                for name in PAIR_COVARIATES
                if item.covariates.get(name) is not None
            ]
            for item in items
        ],
    )
    alone = [
        i
        for i, item in enumerate(items)
        if all(item.covariates.get(name) is None for name in PAIR_COVARIATES)
    ]
    if len(alone) > 1:
        similar = joined.copy()
        for one, other in _similar_pairs([bag(shown_text(items[i])) for i in alone]):
            similar.join(alone[one], alone[other])
        if similar.largest() <= max(_LARGEST_GROUP * len(items), joined.largest()):
            joined = similar
    numbers: dict[int, int] = {}
    return [numbers.setdefault(joined.root(i), len(numbers)) for i in range(len(items))]


def folds_of(groups: Sequence[int], names: Sequence[str], folds: int, seed: int) -> list[int]:
    """Deal whole groups to folds, the largest first, each to the fold with the fewest items so far."""
    members: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    order = sorted(
        members,
        key=lambda g: (-len(members[g]), stable_seed(seed, "fold", min(names[i] for i in members[g]))),
    )
    sizes = [0] * folds
    fold = [0] * len(groups)
    for group in order:
        smallest = sizes.index(min(sizes))
        sizes[smallest] += len(members[group])
        for place in members[group]:
            fold[place] = smallest
    return fold


class _Joined:
    """Sets of items that grow by joining (union-find)."""

    def __init__(self, number: int) -> None:
        self.parent = list(range(number))

    def copy(self) -> _Joined:
        other = _Joined(0)
        other.parent = self.parent.copy()
        return other

    def root(self, item: int) -> int:
        while self.parent[item] != item:
            self.parent[item] = self.parent[self.parent[item]]
            item = self.parent[item]
        return item

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.root(one), self.root(other)))
        self.parent[second] = first

    def largest(self) -> int:
        sizes: dict[int, int] = {}
        for item in range(len(self.parent)):
            sizes[self.root(item)] = sizes.get(self.root(item), 0) + 1
        return max(sizes.values(), default=0)


def _join_equal(joined: _Joined, keys: Iterable[Iterable[Hashable]]) -> None:
    first: dict[Hashable, int] = {}
    for place, own in enumerate(keys):
        for key in own:
            joined.join(first.setdefault(key, place), place)


def _similar_pairs(bags: Sequence[frozenset[str]]) -> list[tuple[int, int]]:
    import numpy as np
    from scipy.sparse import csr_array

    place = {word: number for number, word in enumerate(sorted(frozenset().union(*bags)))}
    if not place:
        return []
    rows = [row for row, own in enumerate(bags) for _ in own]
    columns = [place[word] for own in bags for word in sorted(own)]
    ones = np.ones(len(rows), dtype=np.int64)
    presence = csr_array((ones, (rows, columns)), shape=(len(bags), len(place)))
    shared = (presence @ presence.T).tocoo()
    sizes = np.array([len(own) for own in bags])
    one, other = shared.coords
    union = sizes[one] + sizes[other] - shared.data
    near = (one < other) & (shared.data >= SIMILAR * union)
    return sorted(zip(one[near].tolist(), other[near].tolist(), strict=True))
