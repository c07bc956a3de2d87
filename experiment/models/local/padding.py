"""Rows side by side, each on a line of its own, padded on the right to one length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiment.models.local.noting import Asked
from experiment.models.local.rows import Ids, Row
from experiment.models.local.sums import Sums


def padded(rows: Sequence[Ids | Sequence[int]], device: str) -> Any:
    """Return tokens, shape (rows, longest); what is padded is token 0."""
    import torch

    longest = max(map(len, rows))
    return torch.tensor([[*map(int, row), *[0] * (longest - len(row))] for row in rows], device=device)


def asked_of(rows: Sequence[Row], start: int = 0, before: Sums | None = None) -> Asked:
    """Return what rows ask of a batch in which each stands on its own line from position ``start`` on.

    ``before``: sums of hidden states over the tokens before ``start``, which all rows share.
    """
    asked = Asked()
    for number, row in enumerate(rows):
        asked.add(number, row, range(len(row.ids) - start), start=start, line=number, before=before)
    return asked
