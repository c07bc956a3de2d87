"""Log-probabilities of tokens as servers tell them; nothing is filled in that they do not tell.

Two sources. The alternatives of the first answer token give labels of one token (:mod:`experiment.models.api.first_token`). The
log-probabilities of the prompt's own tokens (where a server echoes them) give labels of any length and the surprisal of
regions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiment.models.engine import RegionScore

MOST_ROUNDING = 0.01
LEAST_LOGPROB = -9999.0
"""What does not lie above is no measure: OpenAI and vLLM write -9999 for what they do not tell and for what cannot be."""


@dataclass(frozen=True)
class Token:
    """One token of an answer or a prompt: its text, its log-probability, and the alternatives told in its place."""

    text: str
    logprob: float | None
    alternatives: tuple[tuple[str, float], ...] = ()


def chat_tokens(choice: Mapping[str, Any]) -> list[Token]:
    """Return the tokens of a chat choice's ``logprobs.content``."""
    logprobs = choice.get("logprobs")
    return _content_tokens(logprobs.get("content") if isinstance(logprobs, dict) else None)


def content_tokens(content: object) -> list[Token]:
    """Return the tokens of a list of ``{token, logprob, top_logprobs}``, as chat and responses write them."""
    return _content_tokens(content)


def _content_tokens(content: object) -> list[Token]:
    if not isinstance(content, list):
        return []
    tokens = []
    for one in content:
        if not isinstance(one, dict) or not isinstance(one.get("token"), str):
            return []
        top = one.get("top_logprobs")
        tokens.append(Token(one["token"], _number(one.get("logprob")), _alternatives(top)))
    return tokens


def _alternatives(top: object) -> tuple[tuple[str, float], ...]:
    """Read alternatives in the chat form (list of objects) or the older one (text to log-probability)."""
    if isinstance(top, dict):
        return tuple(
            (str(text), number) for text, value in top.items() if (number := _number(value)) is not None
        )
    if not isinstance(top, list):
        return ()
    return tuple(
        (str(one["token"]), number)
        for one in top
        if isinstance(one, dict) and "token" in one and (number := _number(one.get("logprob"))) is not None
    )


def _number(value: object) -> float | None:
    """Return a log-probability; None for what cannot be one. Rounding may have taken one a little above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= MOST_ROUNDING:
        return None
    return min(0.0, float(value)) if value > LEAST_LOGPROB else None


def completion_tokens(choice: Mapping[str, Any]) -> list[Token]:
    """Return the tokens of a completions choice; with ``echo`` those of the prompt come first."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return []
    if isinstance(logprobs.get("content"), list):
        return _content_tokens(logprobs["content"])
    texts, values, tops = logprobs.get("tokens"), logprobs.get("token_logprobs"), logprobs.get("top_logprobs")
    if not isinstance(texts, list) or not isinstance(values, list) or len(texts) != len(values):
        return []
    tops = tops if isinstance(tops, list) and len(tops) == len(texts) else [None] * len(texts)
    return [
        Token(str(text), _number(value), _alternatives(top))
        for text, value, top in zip(texts, values, tops, strict=True)
    ]


def prompt_tokens(payload: Mapping[str, Any]) -> list[Token]:
    """Return the prompt's tokens from vLLM's ``prompt_logprobs``; the prompt's own token stands first in each entry."""
    choices = payload.get("choices")
    entries = payload.get("prompt_logprobs")
    if entries is None and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        entries = choices[0].get("prompt_logprobs")
    if not isinstance(entries, list):
        return []
    tokens = []
    for entry in entries:
        if not isinstance(entry, dict) or not entry:
            tokens.append(Token("", None))
            continue
        own = next(iter(entry.values()))
        if not isinstance(own, dict):
            return []
        tokens.append(Token(str(own.get("decoded_token") or ""), _number(own.get("logprob"))))
    return tokens


def tokens_of_end(tokens: Sequence[Token], ending: str) -> tuple[str, ...]:
    """Return the texts of the tokens that hold the end of a prompt."""
    left, place = len(ending), len(tokens)
    while left > 0 and place > 0:
        place -= 1
        left -= len(tokens[place].text)
    return tuple(token.text for token in tokens[place:])


def score_of_end(tokens: Sequence[Token], ending: str) -> float | None:
    """Return the log-probability of the text at the end of a prompt; None where its tokens are not all told."""
    left, total = len(ending), 0.0
    for token in reversed(tokens):
        if left <= 0:
            break
        if token.logprob is None:
            return None
        total += token.logprob
        left -= len(token.text)
    return total if left <= 0 and "".join(token.text for token in tokens).endswith(ending) else None


def score_regions(
    tokens: Sequence[Token], texts: Sequence[str], spans: Sequence[tuple[int, int, int]]
) -> tuple[RegionScore, ...]:
    """Sum the surprisal of regions over the prompt's tokens.

    A token belongs to the region of its first character that is no blank. The correction for where words begin needs
    probabilities that servers do not tell, so these are uncorrected.
    """
    whole = "".join(token.text for token in tokens)
    begins: list[int] = []
    at = 0
    for text in texts:
        found = whole.find(text.strip(), at)
        if found < 0:
            return ()
        begins.append(found - (len(text) - len(text.lstrip())))
        at = found + len(text.strip())
    first_characters = _first_characters(tokens)
    scores = []
    for message, start, end in spans:
        low, high = begins[message] + start, begins[message] + end
        inside = [token for token, first in zip(tokens, first_characters, strict=True) if low <= first < high]
        values = [token.logprob for token in inside]
        told = [value for value in values if value is not None]
        surprisal = -math.fsum(told) if inside and len(told) == len(values) else None
        scores.append(RegionScore(surprisal, len(inside)))
    return tuple(scores)


def _first_characters(tokens: Sequence[Token]) -> list[int]:
    places = []
    at = 0
    for token in tokens:
        places.append(at + len(token.text) - len(token.text.lstrip()))
        at += len(token.text)
    return places
