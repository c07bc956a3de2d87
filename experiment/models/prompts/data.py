"""The wordings and the papers' prompts, which are data files beside this module."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any


@cache
def data(name: str) -> dict[str, Any]:
    """Return one of the data files of this package."""
    return dict(json.loads(resources.files("experiment.models.prompts").joinpath(name).read_text("utf-8")))


def wording_language(language: str) -> str:
    """Return the language of the built-in wordings for a study's language: its own where there are any, else English."""
    own = language.split("-")[0]
    return own if own in data("wording.json") else "en"


def wording(language: str) -> dict[str, Any]:
    """Return the built-in wordings for a study's language: five of every kind of ask, and single words."""
    return dict(data("wording.json")[wording_language(language)])
