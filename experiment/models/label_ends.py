"""What a label that begins another one is worth: the answers that begin with it and do not go on to the longer label.

The probability of "agree" holds that of "agree strongly", so compared as they are the longer label could never win. What is
compared is disjoint: of the shorter label's probability, that of the labels which go on from it is taken away.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

LEAST_LEFT = 1e-9
"""Share of a label's probability that is left to it at least: less than this is rounding."""


def begins_another(label: str, labels: Sequence[str]) -> bool:
    """Return whether a label is the beginning of another one."""
    return any(other != label and other.startswith(label) for other in labels)


def disjoint_logprobs(
    logprobs: Mapping[str, float], tokens: Mapping[str, Sequence[Hashable]]
) -> dict[str, float]:
    """Return log-probabilities of labels as answers that exclude each other.

    ``logprobs``: natural-log probability that an answer begins with a label's tokens.
    ``tokens``: each label's tokens. Only a label whose tokens begin another's is changed: where tokens differ, no
    answer begins with both.
    In nats; the shorter of two labels keeps log(p(short) - p(long)).
    """
    paths = {label: tuple(tokens[label]) for label in logprobs}
    found = {}
    for label, value in logprobs.items():
        longer = [path for path in paths.values() if _goes_on(paths[label], path)]
        nearest = {path for path in longer if not any(_goes_on(between, path) for between in longer)}
        lost = sum(
            math.exp(min(0.0, logprobs[other] - value))
            for other in {
                paths[logprob]: logprob for logprob in logprobs if paths[logprob] in nearest
            }.values()
        )
        found[label] = value + math.log(max(LEAST_LEFT, 1.0 - lost)) if nearest else value
    return found


def _goes_on(path: tuple[Hashable, ...], other: tuple[Hashable, ...]) -> bool:
    return len(other) > len(path) and other[: len(path)] == path
