"""How models are asked for an answer: wrods' own wordings by language, which ``texts.json`` can replace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def _wordings() -> dict[str, Any]:
    return dict(json.loads(resources.files(__package__).joinpath("wording.json").read_text("utf-8")))


def wording_language(language: str) -> str:
    """Return the language of the built-in wordings for a study's language: its own where there are any, else English."""
    own = language.split("-")[0]
    return own if own in _wordings() else "en"


def wording(language: str) -> Mapping[str, Any]:
    """Return the built-in wordings for a study's language: five of every kind of ask, and single words."""
    found: Mapping[str, Any] = _wordings()[wording_language(language)]
    return found
