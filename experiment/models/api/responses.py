"""Small readers of requests and responses that all forms of the API share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from experiment.models.api import labels as scoring
from experiment.models.api.retrying import NoAnswer, parsed
from experiment.models.costs import Usage, sum_of_counts
from experiment.models.engine import Message, ReplyStatus

MOST_TOKENS = 2**31 - 1
"""The largest valid token count; stores and servers accept no larger one."""


def read_usage(payload: Mapping[str, Any]) -> Usage:
    """Return the token counts of a response body in any known format."""
    reported = payload.get("usage")
    usage: Mapping[str, Any] = reported if isinstance(reported, dict) else {}
    prompt = _count(usage, "prompt_tokens", "input_tokens")
    completion = _count(usage, "completion_tokens", "output_tokens")
    cached = _part(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens")
    reasoning = _part(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    if reasoning is None:
        reasoning = _count(usage, "reasoning_tokens")
    cache_read = _count(usage, "cache_read_input_tokens")
    if cache_read is not None and cached is None:
        prompt = sum_of_counts(
            sum_of_counts(prompt, cache_read), _count(usage, "cache_creation_input_tokens")
        )
        cached = cache_read
    total = _count(usage, "total_tokens")
    if completion is not None and reasoning and prompt is not None:
        is_apart = reasoning > completion or total == prompt + completion + reasoning
        completion += reasoning if is_apart else 0
    if cached is not None and prompt is not None:
        cached = min(cached, prompt)
    return Usage(prompt, cached, completion, reasoning)


def output_limit(body: Mapping[str, Any]) -> int:
    """Return the most tokens that a request lets the server write."""
    limits = (body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"))
    return int(next(limit for limit in limits if limit is not None))


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
    return None


def _part(usage: Mapping[str, Any], holders: tuple[str, ...], name: str) -> int | None:
    for holder in holders:
        inner = usage.get(holder)
        if isinstance(inner, dict) and (value := _count(inner, name)) is not None:
            return value
    return None


PictureForm = Literal["chat", "responses"]
DETAIL = "high"
"""Servers that shrink pictures (OpenAI's "low") must not: a letter is only some pixels wide."""

_THOUGHT = ("<think>", "</think>")


def read_json(text: str) -> Mapping[str, Any]:
    """Return the JSON object in a response's body."""
    try:
        payload = parsed(text)
    except ValueError as error:
        raise NoAnswer(f"the response is not JSON: {text[:80]!r}") from error
    if not isinstance(payload, dict):
        raise NoAnswer(f"the response is no object: {text[:80]!r}")
    if payload.get("error") and not (payload.get("choices") or payload.get("output")):
        raise NoAnswer(f"the response holds an error: {str(payload['error'])[:300]}")
    return payload


def first_choice(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of a response."""
    choices = payload.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise NoAnswer(f"the response has no choice in it: {str(dict(payload))[:80]!r}")
    return choices[0]


def turns(messages: Sequence[Message], *, system: bool, form: PictureForm = "chat") -> list[dict[str, Any]]:
    """Return messages in the server's format; without a system role, its text begins the user's first message."""
    given = list(messages)
    if not system and given and given[0].role == "system":
        first, *rest = given
        if rest and rest[0].role == "user":
            rest[0] = replace(rest[0], content=f"{first.content}\n\n{rest[0].content}")
            given = rest
        else:
            given = [Message("user", first.content), *rest]
    return [{"role": message.role, "content": content_of(message, form)} for message in given]


def content_of(message: Message, form: PictureForm) -> str | list[dict[str, Any]]:
    """Return a message's text, or its texts and pictures in parts, with pictures as data URLs."""
    if not message.pictures:
        return message.content
    is_chat = form == "chat"
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, str):
            parts.append({"type": "text" if is_chat else "input_text", "text": part})
        elif is_chat:
            parts.append({"type": "image_url", "image_url": {"url": part.data_url, "detail": DETAIL}})
        else:
            parts.append({"type": "input_image", "image_url": part.data_url, "detail": DETAIL})
    return parts


def without_bytes(body: Any) -> Any:
    """Return a request's JSON without the bytes of its pictures, for display."""
    if isinstance(body, dict):
        return {name: without_bytes(value) for name, value in body.items()}
    if isinstance(body, list):
        return [without_bytes(value) for value in body]
    if isinstance(body, str) and body.startswith("data:image/png;base64,"):
        return f"data:image/png;base64,… ({len(body)} characters)"
    return body


def plain_text(messages: Sequence[Message]) -> str:
    """Return messages as one text, as the local engine formats them for models without a chat template."""
    return "\n\n".join(message.content for message in messages)


def joined(content: object) -> str | None:
    """Return a message's text; some servers send it in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


def without_thought(text: str | None) -> tuple[str | None, str | None]:
    """Return the answer and the reasoning that precedes it in the same text, if any."""
    opening, closing = _THOUGHT
    if text is None or (opening not in text and closing not in text):
        return text, None
    before, end, after = text.partition(closing)
    thought = before.replace(opening, "", 1).strip()
    return (after.lstrip(), thought) if end else ("", thought)


def status_of(answer: str | None, finish: object, refusal: str | None) -> ReplyStatus:
    """Return how an answer ended."""
    if refusal or finish == "content_filter":
        return "refused"
    if finish == "length":
        return "truncated"
    return "answered" if answer is not None and answer.strip() else "empty"


def label_schema(labels: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an answer that is one of the labels."""
    return {
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": list(labels)}},
            "required": ["answer"],
            "additionalProperties": False,
        },
    }


def label_grammar(labels: Sequence[str]) -> str:
    """Return the grammar (GBNF, llama.cpp) of an answer that is one of the labels."""
    return "root ::= " + " | ".join(json.dumps(label) for label in labels)


def label_in_json(answer: str | None, labels: Sequence[str] | None) -> str | None:
    """Return the label in an answer that follows :func:`label_schema`, or None."""
    if answer is None or labels is None or not answer.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(answer)["answer"]
    except (ValueError, KeyError, TypeError):
        return None
    return value if value in labels else None


def divided(
    tokens: Sequence[scoring.ScoredToken], prompt: str
) -> tuple[Sequence[scoring.ScoredToken], Sequence[scoring.ScoredToken]]:
    """Split echoed tokens into the prompt's (special tokens before it included) and those after it."""
    full_text = "".join(token.text for token in tokens)
    start = full_text.find(prompt)
    offset = 0
    for place, token in enumerate(tokens):
        if start >= 0 and offset >= start + len(prompt):
            return tokens[:place], tokens[place:]
        offset += len(token.text)
    return (tokens, ()) if start >= 0 else ((), tokens)


def up_to_stop(text: str | None, stops: Sequence[str]) -> tuple[str | None, bool]:
    """Return a text up to the first stop text, which some servers include or ignore, and whether there was one."""
    places = [place for stop in stops if text and stop and (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if text and places else (text, False)


def up_to_last(tokens: Sequence[scoring.ScoredToken], label: str) -> Sequence[scoring.ScoredToken]:
    """Return the tokens without those that a chat template adds after the last turn."""
    for end in range(len(tokens), max(0, len(tokens) - 8), -1):
        if "".join(token.text for token in tokens[:end]).rstrip().endswith(label):
            return tokens[:end]
    return tokens


def name_in(value: object) -> str | None:
    """Return the model's name as the server reports it."""
    return str(value) if value else None
