"""The next token of rows that are being continued, each from its own settings and draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from experiment.models.local.rows import Decoded, Decoding


class Draws(Protocol):
    """A row's own source of numbers in [0, 1)."""

    def random(self) -> float:
        """Return the next."""


def choose(logits: Any, how: Sequence[Decoding], draws: Sequence[Draws]) -> list[int]:
    """Return each row's next token: the most probable at temperature 0, else by inverse distribution function.

    ``logits``: shape (rows, vocabulary).
    """
    import torch

    best: list[int] = logits.argmax(dim=-1).tolist()
    sampled = [line for line, one in enumerate(how) if one.temperature > 0]
    if not sampled:
        return best
    heat = torch.tensor([how[line].temperature for line in sampled], device=logits.device)
    weights = torch.softmax(logits[sampled] / heat[:, None], dim=-1)
    for row, line in enumerate(sampled):
        if how[line].top_k is not None or how[line].top_p < 1:
            weights[row] = _nucleus(weights[row], how[line])
    if weights.device.type == "mps":
        weights = weights.cpu()  # it has no double precision
    cumulated = weights.double().cumsum(dim=-1)
    drawn = torch.tensor(
        [[draws[line].random()] for line in sampled], dtype=torch.float64, device=weights.device
    )
    found = torch.searchsorted(cumulated, drawn * cumulated[:, -1:], right=True)
    for line, token in zip(sampled, found[:, 0].tolist(), strict=True):
        best[line] = min(token, logits.shape[-1] - 1)
    return best


def goes_on(decoded: Decoded, token: int, how: Decoding, ends: set[int]) -> bool:
    """Add a token to a row and say whether the row goes on."""
    decoded.ids.append(token)
    if token in ends:
        decoded.finish = "eos"
    elif how.stopped(decoded.ids):
        decoded.finish = "stop"
    else:
        return len(decoded.ids) < how.max_tokens
    return False


def _nucleus(weights: Any, how: Decoding) -> Any:
    """Return probabilities with all but the most probable tokens set to 0."""
    import torch

    ranked, places = weights.sort(descending=True)
    before = ranked.cumsum(0) - ranked
    out = before >= how.top_p
    if how.top_k is not None:
        out[how.top_k :] = True
    out[0] = False
    return torch.zeros_like(weights).index_put((places,), ranked.masked_fill(out, 0.0))
