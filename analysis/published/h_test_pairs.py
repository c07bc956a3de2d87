"""Which models of a study make a comparison of H-TEST: with and without thoughts, small and large, shown text and shown pictures.

Two models are a pair where they are alike in all but the one thing that is compared: a model that is shown pictures is never
set against another that is shown text, unless that is the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pandas as pd

from analysis.published.h_test_tables import TASKS, Paired, paired, rank

Readers = Mapping[str, Mapping[str, Any]]
"""Readers as the data dictionary tells them: ``kind``, ``use``, ``settings``, ``parameters``."""

_ASKED = ("making", "task", "item_id", "k", "label_map", "prompt_variant")
ALL = "all tasks"


def thinking_pairs(readers: Readers) -> list[tuple[str, str]]:
    """Return models asked directly and with thoughts: the same model shown the same, one with the strategy ``chain_of_thought``."""
    return _pairs(readers, _presentation, _strategy, "chain_of_thought", "direct")


def picture_pairs(readers: Readers) -> list[tuple[str, str]]:
    """Return models shown text and shown pictures: the same model asked by the same strategy, one with ``presentation: image``."""
    return _pairs(readers, _strategy, lambda one: _presentation(one)[0], "image", "text")


def family_pairs(readers: Readers) -> list[tuple[str, str, str]]:
    """Return ``(family, smaller, larger)`` for neighbours in size without thoughts, shown the same."""
    families: dict[tuple[str, tuple[str, str]], list[tuple[float, str]]] = {}
    sizes = sizes_of(readers)
    for name, one in readers.items():
        settings = _settings(one)
        size = sizes.get(name)
        if settings.get("family") and size and _strategy(one) == "direct":
            key = str(settings["family"]), _presentation(one)
            families.setdefault(key, []).append((size, name))
    found = []
    for (family, presentation), models in families.items():
        row = [name for _, name in sorted(models, key=lambda one: one[0])]
        named = family + _shown(presentation)
        found += [(named, small, large) for small, large in pairwise(row)]
    return found


def sizes_of(readers: Readers) -> dict[str, float]:
    """Return the numbers of parameters of the models that have one: counted, or as the study says."""
    found = {
        name: one.get("parameters") or size_of(_settings(one).get("parameters"))
        for name, one in readers.items()
    }
    return {name: float(size) for name, size in found.items() if size}


def shows_examples_as_text(one: Mapping[str, Any]) -> bool:
    """Say whether a model that is shown items as pictures is shown the solved examples as text."""
    return _presentation(one) == ("image", "text")


def size_of(said: object) -> float | None:
    """Return a number of parameters, such as ``1.4B``, as a number."""
    text = str(said or "").strip()
    factors = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
    try:
        return float(text[:-1]) * factors[text[-1]] if text[-1:] in factors else float(text)
    except ValueError:
        return None


def in_common(
    first: pd.DataFrame, second: pd.DataFrame, varied: str | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the trials of the same items, examples and labels under both of two conditions."""
    apart = () if varied is None else (varied, "prompt_variant")
    keys = [name for name in _ASKED if name not in apart and name in first and name in second]
    both = first[keys].drop_duplicates().merge(second[keys].drop_duplicates(), on=keys)
    return first.merge(both, on=keys), second.merge(both, on=keys)


@dataclass(frozen=True)
class Part:
    """One part of the items compared between text and pictures."""

    task: str  # A task, or `ALL`
    making: str  # of which making the items are; empty for all
    k: int | None  # behind how many examples; None for all
    compared: Paired  # pictures minus text


def pictures_by_part(
    text: pd.DataFrame,
    pictures: pd.DataFrame,
    bound: float | None = None,
    tasks: Sequence[str] = TASKS,
) -> Iterator[Part]:
    """Compare a model shown pictures with the same model shown text, item by item."""
    both = in_common(text, pictures)

    def compared(task: str, making: str = "", k: int | None = None) -> Iterator[Part]:
        own = both
        if task != ALL:
            own = own[0][own[0]["task"] == task], own[1][own[1]["task"] == task]
        if making:
            own = own[0][own[0]["making"] == making], own[1][own[1]["making"] == making]
        if k is not None:
            own = own[0][own[0]["k"] == k], own[1][own[1]["k"] == k]
        one = paired(*own, bound)
        if one is not None:
            yield Part(task, making, k, one)

    for task in (*tasks, ALL):
        yield from compared(task)
    makings = list(dict.fromkeys(both[0]["making"]))
    for making in sorted(makings, key=rank) if len(makings) > 1 else ():
        yield from compared(ALL, making)
    ks = sorted({int(one) for one in both[0]["k"].dropna()}) if "k" in both[0] else []
    for k in ks if len(ks) > 1 else ():
        yield from compared(ALL, "", k)


def _pairs(readers: Readers, alike: Any, differs: Any, second: str, first: str) -> list[tuple[str, str]]:
    """Return pairs of one model that differ in one thing; of several partners the one whose other settings are the most alike."""
    models = {name: one for name, one in readers.items() if one.get("kind") == "model" and one.get("use")}
    found = []
    for name, one in models.items():
        if differs(one) != second:
            continue
        partners = [
            other
            for other, theirs in models.items()
            if differs(theirs) == first and _who(theirs) == _who(one) and alike(theirs) == alike(one)
        ]
        if partners:
            found.append((min(partners, key=lambda other: _unlike(models[other], one)), name))
    return found


def _settings(one: Mapping[str, Any]) -> Mapping[str, Any]:
    return one.get("settings") or {}


def _strategy(one: Mapping[str, Any]) -> str:
    return str(_settings(one).get("strategy", "direct"))


def _presentation(one: Mapping[str, Any]) -> tuple[str, str]:
    """Return how items and solved examples are shown; examples as items unless the study says otherwise."""
    settings = _settings(one)
    of_items = str(settings.get("presentation", "text"))
    return of_items, str(settings.get("examples_presentation", of_items))


def _shown(presentation: tuple[str, str]) -> str:
    if presentation[0] == "text":
        return ""
    return ", pictures" if presentation[1] == "image" else ", pictures behind examples as text"


def _who(one: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what says that two readers are one model."""
    settings = _settings(one)
    return (str(one.get("use")), *(str(settings.get(name, "")) for name in ("base_url", "revision")))


def _unlike(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """Return in how many settings two readers differ."""
    first, second = _settings(one), _settings(other)
    return sum(first.get(name) != second.get(name) for name in {*first, *second})
