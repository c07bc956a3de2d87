"""How many tokens a model takes, by its configuration; a longer request is refused before anything is computed.

Models with learned or tabled positions fail by an index beyond these, on a graphics processor with all that comes after;
rotary models answer on, worse and worse. Relative positions (T5) and states have no such number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiment.models.engine import Request
from experiment.models.local.tokens import Tokens

_NAMES = ("max_position_embeddings", "n_positions", "max_seq_len")
"""What configurations of transformers call the number of positions; MPT the last."""


@dataclass(frozen=True)
class Reach:
    """The most tokens that a model takes; None where its configuration sets no end."""

    text: int | None  # of what a decoder reads and writes
    source: int | None = None  # of what an encoder reads, where the model has one


def reach_of(config: Any) -> Reach:
    """Return how many tokens a model takes.

    ``config``: the transformers configuration of a model that generates text. Of one that sees or hears, its text's
    is taken; of an encoder–decoder with a configuration for each, both (T5Gemma), or its own two numbers (LED).
    """
    if not getattr(config, "is_encoder_decoder", False):
        return Reach(_positions(config.get_text_config(), _NAMES))
    encoder, decoder = (getattr(config, name, None) or config for name in ("encoder", "decoder"))
    return Reach(
        _positions(decoder, ("max_decoder_position_embeddings", *_NAMES)),
        _positions(encoder, ("max_encoder_position_embeddings", *_NAMES)),
    )


def require_fitting(tokens: Tokens, request: Request, reach: Reach, *, thinks: bool) -> None:
    """Refuse a request that is longer than the model takes.

    ``tokens``: the request in tokens.
    ``thinks``: whether a thought comes before labels, so that text is generated though only labels are asked for.
    """
    if tokens.source is not None and reach.source is not None and len(tokens.source) > reach.source:
        raise ValueError(
            f"the prompt takes {len(tokens.source)} tokens, and the model reads at most {reach.source}"
        )
    if reach.text is None:
        return
    continues = request.labels is None or request.also_text or thinks
    continued = len(tokens.ids) + request.max_tokens if continues else 0
    longest = max([len(label.ids) for label in tokens.labels] + [continued, len(tokens.ids)])
    if longest <= reach.text:
        return
    if tokens.source is None:
        raise ValueError(f"prompt and answer take {longest} tokens, and the model reads at most {reach.text}")
    raise ValueError(
        f"the answer may take {longest} tokens, and the model writes at most {reach.text}; a lower max_tokens lets it"
    )


def _positions(config: Any, names: tuple[str, ...]) -> int | None:
    """Return the first number that a configuration gives under one of the names."""
    for name in names:
        most = getattr(config, name, None)
        if isinstance(most, int) and most > 0:
            return most
    return None
