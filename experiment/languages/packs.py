"""The packs that wrods brings, and which of them a language tag gets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal


@dataclass(frozen=True)
class Pack:
    """The texts of one language.

    Attributes
    ----------
    language : str
        Language tag.
    name, english_name : str
        The language's name in itself and in English.
    direction : {"ltr", "rtl"}
        The direction in which it is written.
    script : str
        Code of its script (ISO 15924), such as ``Latn``.
    texts : Mapping of str to str
        Every text by its key, with ``{places}`` to fill.
    """

    language: str
    name: str
    english_name: str
    direction: Literal["ltr", "rtl"]
    script: str
    texts: Mapping[str, str]


@cache
def _pack(language: str) -> Pack:
    text = resources.files("experiment.languages").joinpath("data", f"{language}.json").read_text("utf-8")
    given = json.loads(text)
    return Pack(**{name: given[name] for name in Pack.__dataclass_fields__})


@cache
def pack_languages() -> tuple[str, ...]:
    """Return the languages that wrods has a pack of."""
    folder = resources.files("experiment.languages").joinpath("data")
    return tuple(
        sorted(file.name.removesuffix(".json") for file in folder.iterdir() if file.name.endswith(".json"))
    )


def pack_for(language: str) -> Pack:
    """Return the pack of a language tag, English where there is none."""
    primary = language.lower().split("-")[0]
    return _pack(primary if primary in pack_languages() else "en")
