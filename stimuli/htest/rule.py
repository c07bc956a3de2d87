"""What a rule is: a decision, a sentence that states it, matched pairs, and what the rule is about."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Label = Literal["A", "B"]


@dataclass(frozen=True)
class Pair:
    """Two texts of one carrier, one of each class.

    Parameters
    ----------
    a, b : str
        The texts.
    carrier : str
        Names the pair; no carrier is used twice.
    families : tuple of str, optional
        What must not be in exemplars and test items both, such as a set of rhyming words: all families of a pair are
        of one part. The carrier where not given.
    """

    a: str
    b: str
    carrier: str
    families: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A rule that sorts texts into A and B.

    Parameters
    ----------
    name : str
        Name of the task.
    statement : str
        The rule in words, as a reader is told it.
    predicate : callable
        Any text → ``A`` or ``B``.
    pair : callable
        Random generator → one pair; may repeat carriers and miss a match, the caller draws again.
    source : str
        Where the rule was described.
    about : frozenset of str
        Features and families of :mod:`stimuli.features` that decide the label or follow from it by necessity.
        In every other feature the members of a pair are equal: a pair in which they differ is not used.
    tolerance : mapping of str to float
        How far the members of a pair may differ in a feature where they cannot be equal; no rule of ours needs it.
    """

    name: str
    statement: str
    predicate: Callable[[str], Label]
    pair: Callable[[random.Random], Pair]
    source: str
    about: frozenset[str] = frozenset()
    tolerance: Mapping[str, float] = field(default_factory=dict)
