"""Solved examples of a session: how many, and with which labels; labels that tell nothing are an arm without evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stimuli.item import Item
from stimuli.seeds import stable_seed


def with_shuffled_labels(examples: Sequence[Item], seed: int) -> list[Item]:
    """Give half of the examples of each of two classes the other's label, in their places.

    What an example is and what it is called are then unrelated, while texts, labels and their numbers are what readers
    with the right labels see.

    Parameters
    ----------
    examples : sequence of Item
        A multiple of four, half of them of each class.
    seed : int
        The study's; which examples are called otherwise depends on it and on them alone.
    """
    classes = list(dict.fromkeys(one.answer for one in examples))
    other = dict(zip(classes, reversed(classes), strict=True))
    turned: set[str] = set()
    for answer in classes:
        own = sorted(
            (one.item_id for one in examples if one.answer == answer),
            key=lambda name: stable_seed(seed, "labels of examples", name),
        )
        turned |= set(own[: len(own) // 2])
    return [replace(one, answer=other[one.answer]) if one.item_id in turned else one for one in examples]
