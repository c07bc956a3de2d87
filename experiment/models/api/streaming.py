"""Puts a streamed answer together again, and notes when its first token came.

Only timed runs stream: the time to the first token is a measure, and nothing else is gained. What comes out has the
form of an answer that was not streamed, so it is read in the same way.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

from experiment.models.api.retrying import NoAnswer, parsed

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


def can_be_streamed(body: dict[str, Any]) -> bool:
    """Whether a request may be streamed: the prompt's own log-probabilities come in no stream."""
    return "prompt_logprobs" not in body and "echo" not in body


async def lines_of(content: Any) -> AsyncIterator[bytes]:
    """Yield the lines of a response that comes in pieces, however long a line is."""
    rest = b""
    async for piece in content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
    yield rest


async def put_together(lines: AsyncIterable[bytes]) -> tuple[dict[str, Any], float | None]:
    """Return a streamed answer as if it had come whole, and when its first text came."""
    whole: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    response: dict[str, Any] | None = None
    first: float | None = None
    is_done = False
    async for line in lines:
        text = line.decode("utf-8", "replace").strip()
        if not text.startswith("data:"):
            continue
        data = text[5:].strip()
        if data == "[DONE]":
            is_done = True
            continue
        try:
            chunk = parsed(data)
        except ValueError as error:
            raise NoAnswer(f"the stream holds no JSON: {data[:80]!r}") from error
        if not isinstance(chunk, dict):
            raise NoAnswer(f"the stream holds no object: {data[:80]!r}")
        if chunk.get("error") or chunk.get("type") == "error":
            raise NoAnswer(f"the stream holds an error: {str(chunk.get('error') or chunk)[:300]}")
        event = str(chunk.get("type", ""))
        if event.startswith("response."):
            if event.endswith(".delta") and chunk.get("delta") and first is None:
                first = time.perf_counter()
            if event in _ENDS and isinstance(chunk.get("response"), dict):
                response = chunk["response"]
            continue
        whole |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name) is not None}
        for part in chunk.get("choices") or ():
            if _add(choice, part) and first is None:
                first = time.perf_counter()
    if response is not None:
        return response, first
    if not is_done and "finish_reason" not in choice:
        raise NoAnswer("the stream broke off before its end")
    return {**whole, "choices": [choice] if choice else []}, first


def _add(choice: dict[str, Any], part: dict[str, Any]) -> bool:
    """Add one chunk to what came before it; say whether it brought text."""
    brought = False
    delta = part.get("delta")
    if isinstance(delta, dict):
        message = choice.setdefault("message", {"role": "assistant", "content": None})
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
                brought = brought or bool(delta[name])
    if isinstance(part.get("text"), str):
        choice["text"] = choice.get("text", "") + part["text"]
        brought = brought or bool(part["text"])
    logprobs = part.get("logprobs")
    if isinstance(logprobs, dict):
        kept = choice.setdefault("logprobs", {})
        for name, values in logprobs.items():
            if isinstance(values, list):
                kept[name] = [*kept.get(name, ()), *values]
    if part.get("finish_reason") is not None:
        choice["finish_reason"] = part["finish_reason"]
    return brought
