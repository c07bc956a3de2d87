"""Who trains and who tests: items that tell of each other are kept together, and parts of them are dealt by a stable hash.

Trials of one item in several conditions, questions about one text, and the two items of a matched pair share what a probe could
remember. They are one *family* here, and a family is in training or in test, never in both.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.inside.probing_fit import Split
from analysis.inside.probing_settings import FOLDS, INNER_FOLDS, Settings
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed

Codes = NDArray[np.intp]
TRAIN = "train"
TOGETHER = ("pair", "dialogue")
"""Covariates of items that name what they share, where a study has them."""
GEOMETRY = "geometry:"
"""Operations of letter geometry, whose covariate ``group`` names what the forms of one question share."""


@dataclass(frozen=True, eq=False)
class Dealt:
    """Rows dealt to training and test."""

    splits: tuple[Split, ...]
    test_splits: tuple[str, ...]  # the data set's splits that test; empty where items are dealt to folds
    left_out: int
    training: int  # rows that would train, the most of any split

    def parts(self, rows: int) -> Codes:
        """Return which split tests each row, −1 where none does; shape (rows,)."""
        found = np.full(rows, -1, dtype=np.intp)
        for number, split in enumerate(self.splits):
            found[split.test] = number
        return found

    @property
    def is_thinned(self) -> bool:
        """Whether families were drawn for training, as all of them are too many to hold."""
        return max(len(one.train) for one in self.splits) < self.training


def families_of(rows: pd.DataFrame, items: pd.DataFrame, keep_together: Sequence[str]) -> Codes:
    """Return the family of each trial's item."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    columns = [_column(name, items) for name in keep_together]
    named = list(zip(rows["set"].astype(str), rows["item_id"].astype(str), strict=True))
    number = {name: place for place, name in enumerate(dict.fromkeys(named))}
    keys: dict[Any, int] = {}
    edges = []
    if len(items):
        own = ["cov_group" if name == "group" else f"cov_{name}" for name in TOGETHER]
        columns += [name for name in own if name in items and name not in columns]
        for one in items.to_dict("records"):
            place = number.get((str(one.get("set")), str(one.get("item_id"))))
            if place is not None:
                edges += [(place, keys.setdefault(key, len(keys))) for key in _shared(one, columns)]
    size = len(number) + len(keys)
    pairs = np.array(edges, dtype=np.intp).reshape(-1, 2)
    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], len(number) + pairs[:, 1])), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    return np.array([component[number[name]] for name in named], dtype=np.intp)


def _column(name: str, items: pd.DataFrame) -> str:
    for known in (name, f"cov_{name}"):
        if known in items:
            return known
    raise unknown_name(
        "analysis.probing.keep_together: column of items",
        name,
        [str(one).removeprefix("cov_") for one in items],
    )


def _shared(item: Mapping[Any, Any], columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield what an item shares with those that belong to it."""
    intact, shown = _parts(item.get("intact")), _parts(item.get("shown"))
    origin = _parts(item.get("provenance"))
    if origin.get("source_id") is not None:
        yield ("record", str(origin.get("source")), str(origin["source_id"]))
    if any(str(text).strip() for text in intact.values()):
        yield from (("text", str(name), str(text)) for name, text in intact.items() if str(text).strip())
    elif shown:
        yield ("shown", json.dumps(shown, sort_keys=True))
    for name in columns:
        if (value := item.get(name)) is not None and value == value:
            yield (name, str(value))
    group = item.get("cov_group")
    if str(origin.get("operation") or "").startswith(GEOMETRY) and isinstance(group, str):
        yield ("group", group)


def _parts(text: object) -> dict[str, Any]:
    found = json.loads(text) if isinstance(text, str) else None
    return found if isinstance(found, dict) else {}


def splits_of(rows: pd.DataFrame, items: pd.DataFrame) -> pd.Series[Any]:
    """Return the data set's split of each trial's item; None where the item names none."""
    if not len(items) or "provenance" not in items:
        return pd.Series(None, index=rows.index, dtype=object)
    known = {
        (str(name), str(item)): _parts(origin).get("split")
        for name, item, origin in zip(items["set"], items["item_id"], items["provenance"], strict=True)
    }
    found = [known.get((str(a), str(b))) for a, b in zip(rows["set"], rows["item_id"], strict=True)]
    return pd.Series(found, index=rows.index, dtype=object)


def deal(
    names: Sequence[str],
    labels: Codes,
    families: Codes,
    splits: Sequence[str | None],
    settings: Settings,
    study: str,
    most: int,
) -> Dealt:
    """Deal rows to training and test."""
    tests = _test_splits(splits, settings)
    if not tests:
        folds = settings.folds or FOLDS
        many = len(np.unique(families))
        if many < folds:
            raise UserError(
                f"{many} independent items cannot be dealt to {folds} folds",
                mend="Items of one text or pair count once. Give more of them.",
            )
        fold = dealt_folds(names, labels, families, folds, (study, "probing folds"))
        parts = [(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(folds)]
        training = max(len(train) for train, _ in parts)
        return Dealt(
            tuple(_split(*part, names, labels, families, study, most) for part in parts), (), 0, training
        )
    testing = np.array([one in tests for one in splits])
    both = set(families[testing]) & set(families[~testing])
    mixed = np.isin(families, np.array(sorted(both), dtype=np.intp))
    train, test = np.flatnonzero(~testing & ~mixed), np.flatnonzero(testing & ~mixed)
    if not len(train) or not len(test):
        raise UserError(
            f"analysis.probing.test: {', '.join(tests)} leaves no item to {'test' if len(train) else 'train'} on",
            mend="Name splits of which the study has items beside others.",
        )
    one = _split(train, test, names, labels, families, study, most)
    return Dealt((one,), tests, int(mixed.sum()), len(train))


def _test_splits(splits: Sequence[str | None], settings: Settings) -> tuple[str, ...]:
    there = sorted({str(one) for one in splits if one is not None})
    for name in settings.test:
        if name not in there:
            raise unknown_name("analysis.probing.test: split of the items", name, there)
    if settings.test or settings.folds is not None:
        return settings.test
    others = tuple(one for one in there if one != TRAIN)
    return others if TRAIN in there else ()


def _split(
    train: Codes, test: Codes, names: Sequence[str], labels: Codes, families: Codes, study: str, most: int
) -> Split:
    train = _drawn(train, names, families, study, most)
    inner = dealt_folds(
        [names[place] for place in train],
        labels[train],
        families[train],
        INNER_FOLDS,
        (study, "probing penalty"),
    )
    return Split(train, test, inner)


def _drawn(train: Codes, names: Sequence[str], families: Codes, study: str, most: int) -> Codes:
    """Return the training rows, of drawn families where they are too many."""
    if len(train) <= most:
        return train
    called: dict[int, str] = {}
    for place in train:
        family = int(families[place])
        called[family] = min(called.get(family, names[place]), names[place])
    order = sorted(called, key=lambda one: (stable_seed(study, "probing rows", called[one]), called[one]))
    rank = {family: place for place, family in enumerate(order)}
    ranks = np.array([rank[int(families[place])] for place in train])
    cumulated = np.cumsum(np.bincount(ranks))
    return train[ranks < max(1, int(np.searchsorted(cumulated, most, side="right")))]


def dealt_folds(
    names: Sequence[str], labels: Codes, families: Codes, folds: int, seed: tuple[str, ...]
) -> Codes:
    """Deal families to folds of nearly equal size and label shares."""
    of_item: dict[tuple[int, str], Counter[int]] = {}
    for name, label, family in zip(names, labels, families, strict=True):
        of_item.setdefault((int(family), name), Counter())[int(label)] += 1
    profile: dict[int, list[int]] = {}
    called: dict[int, str] = {}
    for (family, name), counts in of_item.items():
        profile.setdefault(family, []).append(most_frequent(counts))
        called[family] = min(called.get(family, name), name)
    order = sorted(
        profile,
        key=lambda one: (sorted(profile[one]), stable_seed(*seed, called[one]), called[one]),
    )
    fold = {family: place % folds for place, family in enumerate(order)}
    return np.array([fold[int(one)] for one in families], dtype=np.intp)


def control_labels(
    names: Sequence[str], labels: Codes, parts: Codes, tasks: int, seed: tuple[str, ...]
) -> Codes:
    """Give each item a random label for all its trials, keeping the labels' counts in each part."""
    of_item: dict[str, Counter[int]] = {}
    of_part: dict[int, dict[str, None]] = {}
    for name, label, part in zip(names, labels, parts, strict=True):
        of_item.setdefault(name, Counter())[int(label)] += 1
        of_part.setdefault(int(part), {})[name] = None
    own = {name: _drawn_of_most_frequent(counts, (*seed, name)) for name, counts in of_item.items()}
    found = np.empty((tasks, len(labels)), dtype=np.intp)
    for task in range(tasks):
        given: dict[str, int] = {}
        for items in of_part.values():
            drawn = sorted(items, key=lambda name: (stable_seed(*seed, task, name), name))
            given |= {name: own[other] for name, other in zip(sorted(items), drawn, strict=True)}
        found[task] = [given[name] for name in names]
    return found


def _drawn_of_most_frequent(counts: Counter[int], seed: tuple[str, ...]) -> int:
    """Return the most frequent label, of equally frequent ones one by a hash: the first would be that of all items."""
    return min(counts, key=lambda label: (-counts[label], stable_seed(*seed, "label", label), label))


def most_frequent(counts: Counter[int]) -> int:
    """Return the most frequent label, of equally frequent ones the first."""
    return min(counts, key=lambda label: (-counts[label], label))


def shuffled_within(
    names: Sequence[str], labels: Codes, keys: Sequence[str], tasks: int, seed: tuple[str, ...]
) -> Codes:
    """Shuffle labels among the trials of each item: the control where the label is the condition itself."""
    found = np.empty((tasks, len(labels)), dtype=np.intp)
    own: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        own.setdefault(name, []).append(place)
    for places in own.values():
        ordered = sorted(places, key=lambda place: keys[place])
        for task in range(tasks):
            drawn = sorted(ordered, key=lambda place: stable_seed(*seed, task, keys[place]))
            found[task, ordered] = labels[drawn]
    return found
