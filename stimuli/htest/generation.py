"""Draws exemplars and test items of a rule: pairs matched on all nuisance features, each carrier used once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stimuli.errors import UserError
from stimuli.features import exempt, text_features
from stimuli.htest.released import LABELS, checked_exemplars, generate_published
from stimuli.htest.rules import Label, Pair, Rule, rule
from stimuli.lexicon import zipf
from stimuli.seeds import generator, stable_seed

Order = Literal["alternating", "random"]
_LANGUAGE = "en"
_FRUITLESS_DRAWS = 2000
_SAME = 1e-9
_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class GeneratedItem:
    """One generated text with its label."""

    text: str  # what is shown
    label: Label  # its class
    # its place in the alternating order of its part, from 1; does not depend on how many are asked for, nor on the
    # order in which they are shown
    number: int
    pair: int | None = None  # the matched pair that it belongs to, from 1 in each part


@dataclass(frozen=True)
class RuleItems:
    """Generated exemplars and test items of a rule, in the order in which they are shown."""

    exemplars: tuple[GeneratedItem, ...]
    test: tuple[GeneratedItem, ...]


def generate(
    name: str,
    *,
    exemplars: int,
    items: int | None,
    seed: int,
    folder: Path | None = None,
    order: Order = "alternating",
) -> RuleItems:
    """Return exemplars and test items of a rule; those of a released task as published, with the words in ``folder``."""
    checked_exemplars(exemplars)
    if items is None or items % 2:
        raise UserError(f"items is {items!r}; both labels get the same number, so it is an even whole number")
    if folder is not None:
        texts = generate_published(name, folder, exemplars=exemplars, items=items, seed=seed)
        shown, tested = (
            tuple(GeneratedItem(text, label, number) for number, (text, label) in enumerate(part, 1))
            for part in texts
        )
    else:
        shown, tested = _corrected(rule(name), exemplars, items, seed)
    return RuleItems(_ordered(shown, order, seed, name), tested)


def _ordered(
    exemplars: tuple[GeneratedItem, ...], order: Order, seed: int, name: str
) -> tuple[GeneratedItem, ...]:
    if order == "alternating":
        return exemplars
    return tuple(
        sorted(
            exemplars, key=lambda exemplar: stable_seed(seed, "htest exemplar order", name, exemplar.number)
        )
    )


def _corrected(chosen: Rule, exemplars: int, items: int, seed: int) -> Sequence[tuple[GeneratedItem, ...]]:
    texts: set[str] = set()
    return [
        tuple(_labelled(_pairs(chosen, number // 2, part, seed, texts)))
        for number, part in ((exemplars, "exemplars"), (items, "items"))
    ]


def _labelled(pairs: Iterable[Pair]) -> Iterator[GeneratedItem]:
    for number, pair in enumerate(pairs, 1):
        yield GeneratedItem(pair.a, "A", 2 * number - 1, number)
        yield GeneratedItem(pair.b, "B", 2 * number, number)


def _pairs(chosen: Rule, number: int, part: str, seed: int, texts: set[str]) -> list[Pair]:
    """Draw pairs until there are enough; ``texts`` are those taken, new ones are added."""
    draw = generator(seed, "htest pairs", chosen.name, part)
    about = exempt(chosen.about).features
    carriers: set[str] = set()
    pairs: list[Pair] = []
    unequal: Counter[str] = Counter()
    fruitless = 0
    while len(pairs) < number and fruitless < _FRUITLESS_DRAWS:
        fruitless += 1
        pair = chosen.pair(draw)
        if pair.carrier in carriers or {pair.a, pair.b} & texts or _parts(pair, chosen, seed) != {part}:
            continue
        if differing := _refused(pair, chosen, about):
            unequal.update(differing)
            continue
        carriers.add(pair.carrier)
        texts |= {pair.a, pair.b}
        pairs.append(pair)
        fruitless = 0
    if len(pairs) < number:
        most = ", ".join(f"{feature} ({count})" for feature, count in unequal.most_common(3))
        refused = f" Pairs were refused most often for {most}." if most else ""
        raise UserError(
            f"rule {chosen.name!r} gives no {number} different pairs; it gave {len(pairs)}",
            mend=f"Ask for fewer items, or give the rule more words.{refused}",
        )
    return pairs


def _parts(pair: Pair, chosen: Rule, seed: int) -> set[str]:
    """Return the parts to which a pair's families are assigned; a quarter of all families are for exemplars."""
    return {
        "items" if stable_seed(seed, "htest carriers", chosen.name, family) % 4 else "exemplars"
        for family in pair.families or (pair.carrier,)
    }


def _refused(pair: Pair, chosen: Rule, about: frozenset[str]) -> list[str]:
    if (chosen.predicate(pair.a), chosen.predicate(pair.b)) != LABELS:
        return ["its label"]
    return _displaced(pair, about, chosen.tolerance) or unmatched(pair, about, chosen.tolerance)


def _displaced(pair: Pair, about: frozenset[str], tolerance: Mapping[str, float]) -> list[str]:
    """Return differences in the two features that most pairs fail on; all features together cost twenty times as much."""
    a, b = (_LETTERS.findall(text) for text in (pair.a, pair.b))
    measures: tuple[tuple[str, Callable[[str], float]], ...] = (
        ("longest_position", len),
        ("rarest_position", lambda word: -(zipf(word.casefold(), _LANGUAGE) or 0.0)),
    )
    return [
        feature
        for feature, measure in measures
        if feature not in about
        and feature not in tolerance
        and _place_of_most(a, measure) != _place_of_most(b, measure)
    ]


def _place_of_most(words: list[str], measure: Callable[[str], float]) -> int:
    return max(range(len(words)), key=lambda place: measure(words[place]), default=0)


def unmatched(pair: Pair, about: frozenset[str], tolerance: Mapping[str, float]) -> list[str]:
    """Return the nuisance features in which the members of a pair differ by more than the tolerance."""
    a, b = (text_features(text, language=_LANGUAGE, leave_out=about) for text in (pair.a, pair.b))
    return [name for name in a if abs(a[name] - b[name]) > tolerance.get(name, 0.0) + _SAME]
