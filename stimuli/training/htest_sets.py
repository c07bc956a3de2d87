"""Training sets of H-TEST tasks: a thousand labelled texts a task, none of them a text of the study or a near copy of one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stimuli.errors import UserError
from stimuli.htest.making import GeneratedItem, generate
from stimuli.htest.rules import rule
from stimuli.seeds import stable_seed
from stimuli.training.held_out import Key, barred_keys, word_keys
from stimuli.training.records import Exchange

NUMBER = 1000
"""Texts of a task, half of each label (Lee & Lim, 2024, section 5)."""
_MORE = 1.5


@dataclass(frozen=True)
class HtestSet:
    """The training set of one task.

    Parameters
    ----------
    task : str
        Name of the rule.
    exchanges : tuple of Exchange
        Each text by itself with its label, in an order drawn with the seed.
    near_copies : int
        Pairs that were made and left out because one of their texts is a text of the study or a near copy.
    repeated : int
        Pairs left out because they are near copies of others of the set.
    """

    task: str
    exchanges: tuple[Exchange, ...]
    near_copies: int
    repeated: int


def htest_training_set(
    task: str,
    *,
    seed: int,
    held_out: Iterable[str],
    of_other_tasks: Iterable[str] = (),
    number: int = NUMBER,
) -> HtestSet:
    """Make the training set of one task with the rule's own generator.

    Parameters
    ----------
    task : str
        Name of a rule, such as ``uppercase``.
    seed : int
        Seed of the training; texts are drawn apart from those of a study of the same seed.
    held_out : iterable of str
        Every text of the study's items of the task: exemplars, practice and test items.
    of_other_tasks : iterable of str
        Every text of its other items, on which the trained model is tested, too.
    number : int
        How many texts, even: half of them A.

    Raises
    ------
    UserError
        For an unknown rule, an odd number, or more pairs than the rule gives beside the texts held out.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 2 or number % 2:
        raise UserError(
            f"number of texts is {number!r}; both labels get the same number, so it is an even whole number from 2"
        )
    rule(task)
    barred = barred_keys(task, held_out, of_other_tasks)
    own = stable_seed(seed, "training set of H-TEST", task)
    asked = number
    while True:
        found = _apart(task, generate(task, exemplars=0, items=asked, seed=own).test, barred)
        if len(found.pairs) >= number // 2:
            break
        asked = 2 * int(asked / 2 * _MORE + 1)
    items = sorted(
        (item for pair in found.pairs[: number // 2] for item in pair),
        key=lambda item: stable_seed(own, "order", item.number),
    )
    exchanges = tuple(
        Exchange(
            item.text,
            item.label,
            {"task": task, "text": item.text, "label": item.label, "pair": item.pair, "seed": seed},
        )
        for item in items
    )
    return HtestSet(task, exchanges, found.near_copies, found.repeated)


@dataclass(frozen=True)
class _Apart:
    pairs: list[list[GeneratedItem]]
    near_copies: int
    repeated: int


def _apart(task: str, items: Iterable[GeneratedItem], barred: set[Key]) -> _Apart:
    """Keep the pairs that are near copies neither of a text held out nor of a pair kept before."""
    by_pair: dict[int | None, list[GeneratedItem]] = {}
    for item in items:
        by_pair.setdefault(item.pair, []).append(item)
    kept: list[list[GeneratedItem]] = []
    seen: set[Key] = set()
    near_copies = repeated = 0
    for pair in by_pair.values():
        keys: set[Key] = set().union(*(word_keys(item.text, task) for item in pair))
        whole: set[Key] = set().union(*(word_keys(item.text) for item in pair))
        if keys & barred:
            near_copies += 1
        elif whole & seen:
            repeated += 1
        else:
            seen |= whole
            kept.append(pair)
    return _Apart(kept, near_copies, repeated)
