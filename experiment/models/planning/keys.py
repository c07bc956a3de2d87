"""Names for work: hashes of JSON in canonical form, and what a request says as the store keeps it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from experiment.models.engine import Message, Request


def canonical_hash(value: object) -> str:
    """Return the SHA-256 of a JSON value in canonical form (sorted keys, no blanks, UTF-8)."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def request_json(request: Request) -> dict[str, Any]:
    """Return what a request says, as the store keeps it; what a request does not use is left out."""
    said: dict[str, Any] = {
        "messages": [_said(message) for message in request.messages],
        "labels": None if request.labels is None else list(request.labels),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "stop": list(request.stop),
    }
    if request.top_p != 1.0:
        said["top_p"] = request.top_p
    if request.top_k is not None:
        said["top_k"] = request.top_k
    if request.also_text:
        said["also_text"] = True
    if request.regions:
        said["regions"] = [[span.message, span.start, span.end] for span in request.regions]
    if request.states:
        said["states"] = list(request.states)
    return said


def _said(message: Message) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.pictures:
        said["pictures"] = [picture.to_json() for picture in message.pictures]
    return said


def request_key(identity: Mapping[str, object], request: Request) -> str:
    """Return the hash of what is sent to which model, wherever in a study it stands."""
    return canonical_hash({"model": dict(identity), "request": request_json(request)})
