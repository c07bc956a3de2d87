"""What a refusal says of a request's parameters, and not of the one prompt that it refuses.

A server may quote the prompt, or the whole request, in its refusal; items hold words such as "stop" or "store". Only what is
left without that is looked through for names of parameters, and only as long as nothing was answered under the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from experiment.models.api.retrying import refusal_of, said

OF_PROMPTS = frozenset(
    {
        *("invalid_prompt", "content_filter", "content_policy_violation", "context_length_exceeded"),
        *("string_above_max_length", "string_too_long"),
    }
)
"""Codes of refusals that concern what is said, whatever words they use."""

_OWN = frozenset({"messages", "prompt", "input", "model", "seed", "max_tokens", "max_completion_tokens"})
"""Fields that differ from request to request."""

_QUOTED = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"|`([^`\n]+)`|“([^”\n]+)”|‘([^’\n]+)’|«([^»\n]+)»")
_LEAST = 8
"""Letters from which on a line of a prompt is taken out of a refusal that holds it."""


class Answered:
    """Under which parameters a server has answered: a refusal of the same ones is about the prompt."""

    def __init__(self) -> None:
        self._seen: set[frozenset[tuple[str, object]]] = set()

    def note(self, sent: Mapping[str, Any]) -> None:
        """Know that a request was answered."""
        self._seen.add(_shape(sent))

    def has(self, sent: Mapping[str, Any]) -> bool:
        """Say whether a request with the same parameters was answered."""
        return _shape(sent) in self._seen


def words_about_parameters(body: str, sent: Mapping[str, Any], secret: str | None = None) -> str:
    """Return what a refusal says without what the request said itself; empty where it concerns the prompt."""
    error = refusal_of(body)
    field = str(error.get("param") or "")
    if str(error.get("code") or "") in OF_PROMPTS or field in ("prompt", "input") or ".content" in field:
        return ""
    return f"{field} {without_texts(said(body, secret), _texts(sent))}".strip()


def without_texts(words: str, texts: Iterable[str]) -> str:
    """Return what a server says without the lines of some texts, and without what it quotes of them."""
    own = [text.lower() for text in texts]
    for text in sorted({line.strip() for one in own for line in one.split("\n")}, key=len, reverse=True):
        if len(text) >= _LEAST:
            words = re.sub(re.escape(text), " ", words, flags=re.IGNORECASE)

    def without(found: re.Match[str]) -> str:
        quoted = next(part for part in found.groups() if part is not None).strip().lower()
        return " " if any(quoted in text for text in own) else found[0]

    return _QUOTED.sub(without, words)


def _texts(sent: Mapping[str, Any]) -> Iterator[str]:
    """Iterate over what a request says."""
    for name in ("prompt", "input", "instructions"):
        if isinstance(sent.get(name), str):
            yield str(sent[name])
    for name in ("messages", "input"):
        for message in sent.get(name) or () if isinstance(sent.get(name), list) else ():
            content = message.get("content") if isinstance(message, Mapping) else None
            for part in content if isinstance(content, list) else [content]:
                text = part.get("text") if isinstance(part, Mapping) else part
                if isinstance(text, str):
                    yield text


def _shape(sent: Mapping[str, Any]) -> frozenset[tuple[str, object]]:
    shape: set[tuple[str, object]] = set()
    for name, value in sent.items():
        is_plain = name not in _OWN and isinstance(value, bool | int | float | str)
        shape.add((name, value if is_plain else None))
    messages = sent.get("messages")
    if isinstance(messages, list):
        shape |= {("role", one.get("role")) for one in messages if isinstance(one, Mapping)}
    return frozenset(shape)
