"""What the scripted server says when it answers: bodies in the three forms of the API, with log-probabilities where it tells them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

TokenLogprobs = Callable[[dict[str, Any]], dict[str, float]]


def last_text(body: dict[str, Any]) -> str:
    """Return the last thing a request says, whatever its form."""
    if "prompt" in body:
        return str(body["prompt"])
    messages = body.get("messages") or body.get("input") or [{"content": ""}]
    return text_of(messages[-1]["content"])


def text_of(content: Any) -> str:
    """Return what a turn says; of parts the texts, and a mark for each picture."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "\ufffc")) for part in content)
    return str(content)


def words_of(text: str) -> list[str]:
    """Cut a text into its tokens: words with the blank before them."""
    return re.findall(r"\s*\S+|\s+$", text)


def word_logprob(word: str) -> float:
    """Return what a word of a prompt costs here: a quarter of a nat a letter."""
    return -0.25 * len(word.strip())


def usage_of(read: str, written: str, extra: dict[str, Any]) -> dict[str, Any]:
    """Return counts as OpenAI gives them."""
    counts = {
        "prompt_tokens": len(read.split()),
        "completion_tokens": len(written.split()) + 5,
        "total_tokens": 0,
        "prompt_tokens_details": {"cached_tokens": 2},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    return counts | extra


def _within(body: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
    """Return counts of which none exceeds what a request lets the server write."""
    most = body.get("max_tokens") or body.get("max_completion_tokens")
    if most is None or usage.get("completion_tokens", 0) <= most:
        return usage
    return {**usage, "completion_tokens": most, "completion_tokens_details": {"reasoning_tokens": most - 1}}


def chat(
    body: dict[str, Any],
    content: str | None,
    *,
    model: str,
    finish: str = "stop",
    logprobs: TokenLogprobs | None = None,
    prompt: Callable[[str], float] | None = None,
    usage: dict[str, Any] | None = None,
    **message: Any,
) -> bytes:
    """Return a chat completion."""
    choice: dict[str, Any] = {
        "index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish,
    }  # fmt: skip
    if body.get("logprobs") and logprobs is not None:
        choice["logprobs"] = {"content": _answer_tokens(logprobs(body), content, body["top_logprobs"])}
    read = " ".join(text_of(turn["content"]) for turn in body["messages"])
    payload: dict[str, Any] = {
        "id": "x", "object": "chat.completion", "created": 0, "model": model, "choices": [choice],
        "usage": usage_of(read, content or "", _within(body, usage or {})),
    }  # fmt: skip
    if body.get("prompt_logprobs") is not None and prompt is not None:
        turns = [f"<|{turn['role']}|> {turn['content']}" for turn in body["messages"]]
        if body.get("add_generation_prompt", True):
            turns.append("<|assistant|>")
        payload["prompt_logprobs"] = _prompt_entries(words_of("\n".join(turns)), prompt)
    return json.dumps(payload).encode()


def completion(
    body: dict[str, Any],
    text: str,
    *,
    model: str,
    finish: str = "stop",
    logprobs: TokenLogprobs | None = None,
    prompt: Callable[[str], float] | None = None,
) -> bytes:
    """Return a (legacy) completion, with the prompt in front of it where it is to be echoed."""
    tokens: list[str] = []
    values: list[float | None] = []
    tops: list[dict[str, float] | None] = []
    if body.get("echo"):
        words = words_of(body["prompt"])
        tokens += words
        values += [None, *(prompt(word) for word in words[1:])] if prompt else []
        tops += [None] * len(words)
    told = logprobs(body) if logprobs is not None else {text: 0.0}
    top = dict(list(told.items())[: body.get("logprobs") or 0])
    tokens.append(next(iter(told)))
    values.append(next(iter(told.values())))
    tops.append(top)
    choice: dict[str, Any] = {
        "index": 0, "text": (body["prompt"] if body.get("echo") else "") + text, "finish_reason": finish,
    }  # fmt: skip
    if body.get("logprobs") is not None and (logprobs is not None or (body.get("echo") and prompt)):
        choice["logprobs"] = {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops}
    usage = usage_of(body["prompt"], text, {})
    return json.dumps({"id": "x", "model": model, "choices": [choice], "usage": usage}).encode()


def response(
    body: dict[str, Any],
    text: str | None,
    *,
    model: str,
    finish: str = "stop",
    logprobs: TokenLogprobs | None = None,
    refusal: str | None = None,
) -> bytes:
    """Return what the responses API returns, with a thought before the answer."""
    part: dict[str, Any] = {"type": "output_text", "text": text or "", "annotations": []}
    if refusal is not None:
        part = {"type": "refusal", "refusal": refusal}
    elif body.get("top_logprobs") and logprobs is not None:
        part["logprobs"] = _answer_tokens(logprobs(body), text, body["top_logprobs"])
    read = " ".join(text_of(turn["content"]) for turn in body["input"])
    payload = {
        "id": "r", "object": "response", "model": model,
        "status": "incomplete" if finish == "length" else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if finish == "length" else None,
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "It is one of two."}]},
            {"type": "message", "role": "assistant", "content": [part]},
        ],
        "usage": {
            "input_tokens": len(read.split()), "input_tokens_details": {"cached_tokens": 2},
            "output_tokens": len((text or "").split()) + 5, "output_tokens_details": {"reasoning_tokens": 5},
        },
    }  # fmt: skip
    return json.dumps(payload).encode()


def _answer_tokens(told: dict[str, float], content: str | None, most: int) -> list[dict[str, Any]]:
    """Return an answer's tokens: the first with its alternatives, where these are of the answer's own beginning."""
    top = [{"token": token, "logprob": value, "bytes": None} for token, value in told.items()]
    before: list[dict[str, Any]] = []
    if content is not None and content.startswith("{"):
        before = [{"token": '{"answer": "', "logprob": 0.0, "top_logprobs": [{"token": '{"answer": "', "logprob": 0.0}]}]  # fmt: skip
    return [*before, {**top[0], "top_logprobs": top[:most]}]


def _prompt_entries(words: Sequence[str], prompt: Callable[[str], float]) -> list[dict[str, Any] | None]:
    """Return vLLM's form: an object a token, the prompt's own token first, a likelier one behind it."""
    entries: list[dict[str, Any] | None] = [None]
    for place, word in enumerate(words[1:], 1):
        entries.append(
            {
                str(place): {"logprob": prompt(word), "rank": 2, "decoded_token": word},
                "0": {"logprob": -0.01, "rank": 1, "decoded_token": " the"},
            }
        )
    return entries
