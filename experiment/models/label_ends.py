"""The probability of a label that begins another one, without the answers that continue to the longer label.

The probability of "agree" includes that of "agree strongly", so the longer label could never have the higher one. The
comparison uses disjoint answers: the probability of the longer labels is subtracted from that of the shorter.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

LEAST_LEFT = 1e-9
"""Least share of a label's probability that remains after the subtraction; less than this is rounding."""


def begins_another(label: str, labels: Sequence[str]) -> bool:
    """Return whether a label is the beginning of another one."""
    return any(other != label and other.startswith(label) for other in labels)


def disjoint_logprobs(
    logprobs: Mapping[str, float], tokens: Mapping[str, Sequence[Hashable]]
) -> dict[str, float]:
    """Return log-probabilities of labels as mutually exclusive answers.

    Parameters
    ----------
    logprobs : mapping of str to float
        Natural-log probability that an answer begins with each label's tokens.
    tokens : mapping of str to sequence
        Tokens of each label. Only a label whose tokens begin another's is changed: no answer begins with both of two labels
        whose tokens differ.

    Returns
    -------
    dict of str to float
        In nats; the shorter of two labels gets log(p(short) - p(long)).
    """
    paths = {label: tuple(tokens[label]) for label in logprobs}
    disjoint = {}
    for label, value in logprobs.items():
        longer = [path for path in paths.values() if _goes_on(paths[label], path)]
        nearest = {path for path in longer if not any(_goes_on(between, path) for between in longer)}
        lost = sum(
            math.exp(min(0.0, logprobs[other] - value))
            for other in {
                paths[logprob]: logprob for logprob in logprobs if paths[logprob] in nearest
            }.values()
        )
        disjoint[label] = value + math.log(max(LEAST_LEFT, 1.0 - lost)) if nearest else value
    return disjoint


def _goes_on(path: tuple[Hashable, ...], other: tuple[Hashable, ...]) -> bool:
    return len(other) > len(path) and other[: len(path)] == path
