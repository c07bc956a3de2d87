"""Requests and engines that the tests of the API engine share."""

from __future__ import annotations

from typing import Any

from experiment.models import Message, ModelSettings, Request
from experiment.models.api.engine import ApiEngine
from experiment.models.api.sending import Limiter
from tests.scripted_openai import ScriptedOpenAI


def api_settings(server: ScriptedOpenAI, **options: object) -> ModelSettings:
    """Return the settings of a model at the scripted server."""
    folder = options.pop("folder", None)
    given = {"base_url": server.url, "concurrency": 4, "timeout": 5.0, **options}
    return ModelSettings("openai:scripted", given, **({} if folder is None else {"folder": folder}))


def api_engine(server: ScriptedOpenAI, limiter: Limiter | None = None, **options: Any) -> ApiEngine:
    """Return an engine that waits for nothing, its places open from the start."""
    pace = options.pop("pace", 0.0)
    settings = api_settings(server, **options)
    most = int(str(settings.options["concurrency"]))
    return ApiEngine(settings, limiter=limiter or Limiter(start=most, cap=most), pace=pace)


def choice(number: int, **given: Any) -> Request:
    """Return a request for a choice between A and B."""
    text = f"trial {number} is {'odd' if number % 2 else 'even'}"
    fields = {
        "work_key": f"k{number}", "messages": (Message("user", text),), "labels": ("A", "B"), "max_tokens": 8,
        "temperature": 0.0, "seed": number,
    }  # fmt: skip
    return Request(**{**fields, **given})


def choices(count: int, **given: Any) -> list[Request]:
    """Return requests for choices."""
    return [choice(number, **given) for number in range(count)]
