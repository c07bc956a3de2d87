"""Order-bound copies of published scrambles, fault for fault: one module a paper, names and faults as data.

A pass goes over a whole list of texts with the paper's own random stream, so a text's result depends on its place in
the list. Everything else uses :mod:`stimuli.scramble.text`.
"""

from __future__ import annotations

from collections.abc import Sequence

from stimuli.scramble.published import cao2023, typobench2024
from stimuli.scramble.published.cao2023 import PUBLISHED_SEED, scramble_demonstrations, tidy
from stimuli.scramble.published.protocol import (
    Fault,
    Given,
    Protocol,
    PublishedOperation,
    describe,
    faults,
    protocols,
    published_operation,
)

__all__ = [
    "PUBLISHED_SEED",
    "Fault",
    "Given",
    "Protocol",
    "PublishedOperation",
    "check_published",
    "describe",
    "faults",
    "protocols",
    "published_operation",
    "published_pass",
    "scramble_demonstrations",
    "tidy",
]

_PAPERS = {"cao2023": cao2023.scramble, "typobench2024": typobench2024.scramble}


def published_pass(
    texts: Sequence[str],
    operation: Given | PublishedOperation,
    *,
    rate: float | None = None,
    seed: int | None = None,
) -> list[str]:
    """Scramble a list of texts as the published stimuli were."""
    if not isinstance(operation, PublishedOperation):
        operation = published_operation(operation, rate=rate)
    if operation.protocol is None:
        return list(texts)
    scramble = _PAPERS[operation.protocol.paper]
    return scramble(texts, operation, operation.protocol.seed if seed is None else seed)


def check_published(operation: Given) -> None:
    """Refuse an operation or rate that was not published."""
    published_operation(operation)
