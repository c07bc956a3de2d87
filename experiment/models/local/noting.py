"""Reads what rows asked for out of a batch's logits and hidden states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiment.models.local.head import CausalModel
from experiment.models.local.rows import Found, Row


def note(
    model: CausalModel,
    rows: Sequence[Row],
    found: Sequence[Found],
    logits: Any,
    column: Mapping[int, int],
    hidden: Sequence[Any],
) -> None:
    """Write log-probabilities, borders and states of rows that stand in one batch each on a line of its own.

    Parameters
    ----------
    logits : tensor, shape (rows, columns, vocabulary)
    column : mapping
        Position in a row to the column that holds the distribution after it.
    hidden : sequence of array, shape (states, width)
        A layer each, states in the order of the rows and of what each asks.
    """
    import torch

    normaliser = torch.logsumexp(logits, dim=-1)
    targets = [(line, position, token) for line, row in enumerate(rows) for position, token in row.targets]
    if targets:
        lines = torch.tensor([line for line, _, _ in targets], device=logits.device)
        places = torch.tensor([column[position - 1] for _, position, _ in targets], device=logits.device)
        tokens = torch.tensor([token for _, _, token in targets], device=logits.device)
        values = (logits[lines, places, tokens] - normaliser[lines, places]).tolist()
        for (line, position, token), value in zip(targets, values, strict=True):
            found[line].logprobs[position, token] = value
    borders = [(line, position) for line, row in enumerate(rows) for position in row.borders]
    if borders:
        lines = torch.tensor([line for line, _ in borders], device=logits.device)
        places = torch.tensor([column[position - 1] for _, position in borders], device=logits.device)
        begin = model.word_beginnings()
        masses = torch.logsumexp(logits[lines, places].masked_fill(~begin, -torch.inf), dim=-1)
        for (line, position), value in zip(
            borders, (masses - normaliser[lines, places]).tolist(), strict=True
        ):
            found[line].borders[position] = value
    asked = [(line, at) for line, row in enumerate(rows) for at in row.states]
    for number, (line, at) in enumerate(asked):
        found[line].states[at] = np.stack([layer[number] for layer in hidden])
