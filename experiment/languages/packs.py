"""The built-in language packs, and the choice of a pack for a language tag."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Literal

from stimuli.errors import UserError


@cache
def _wordings() -> dict[str, Any]:
    return dict(json.loads(resources.files(__package__).joinpath("wording.json").read_text("utf-8")))


def wording_language(language: str) -> str:
    """Return the language of the built-in prompts for a study's language: its own if there are any, else English."""
    primary = language.split("-")[0]
    return primary if primary in _wordings() else "en"


def wording(language: str) -> Mapping[str, Any]:
    """Return the built-in prompts for a study's language: five of every kind of question, and single words."""
    built_in: Mapping[str, Any] = _wordings()[wording_language(language)]
    return built_in


TRADITIONAL = frozenset({"tw", "hk", "mo"})
"""Regions that write Chinese in traditional characters if a tag names no script."""
ISOLATED = "\u2068{}\u2069"
PLACE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Pack:
    """The texts of one language.

    ``name, english_name``: the language's name in itself and in English; ``direction``: its writing direction; ``script``: code
    of its script (ISO 15924), such as ``Latn``; ``texts``: every text by its key, with ``{places}`` to fill.
    """

    language: str
    name: str
    english_name: str
    direction: Literal["ltr", "rtl"]
    script: str
    texts: Mapping[str, str]

    def fill(self, key: str, **values: object) -> str:
        """Return a text with its placeholders filled; in right-to-left texts, values such as dates and ids keep their own order."""
        isolated = {name: ISOLATED.format(value) for name, value in values.items()}
        return self.texts[key].format(**(isolated if self.direction == "rtl" else values))


def pack_file(language: str) -> Traversable:
    """Return the file of a pack."""
    return resources.files(__package__).joinpath("data", f"{language}.json")


@cache
def _pack(language: str) -> Pack:
    given = json.loads(pack_file(language).read_text("utf-8"))
    return Pack(**{name: given[name] for name in Pack.__dataclass_fields__})


@cache
def pack_languages() -> tuple[str, ...]:
    """Return the languages with a built-in pack."""
    folder = resources.files(__package__).joinpath("data")
    return tuple(
        sorted(file.name.removesuffix(".json") for file in folder.iterdir() if file.name.endswith(".json"))
    )


def script_of(language: str) -> str | None:
    """Return the script that a language tag names or implies; None for the language's usual one."""
    primary, *rest = language.lower().split("-")
    named = next((part.capitalize() for part in rest if len(part) == 4 and part.isalpha()), None)
    return "Hant" if named is None and primary == "zh" and TRADITIONAL & set(rest) else named


def find_pack(language: str) -> Pack | None:
    """Return the pack for a language tag, ignoring its region; None without one in this language and script."""
    primary = language.lower().split("-")[0]
    if primary not in pack_languages():
        return None
    pack = _pack(primary)
    return pack if script_of(language) in (None, pack.script) else None


def pack_for(language: str) -> Pack:
    """Return the pack for a language tag."""
    pack = find_pack(language)
    if pack is None:
        raise no_pack(language, "language")
    return pack


def no_pack(language: str, place: str) -> UserError:
    """Return the error for a language without texts; ``place`` is where the language is set."""
    primary = language.split("-")[0]
    known = ", ".join(pack_languages())
    if primary in pack_languages():
        why = f"wrods has platform texts in {primary} in another script ({_pack(primary).script})"
    else:
        why = f"wrods has platform texts (buttons, questions, messages to participants) in {known}"
    nearest = pack_file(primary if primary in pack_languages() else "en")
    return UserError(
        f"{place} is {language!r}; {why}, and a study never mixes languages or scripts",
        mend=f"Copy {nearest} into the study's folder as texts.json, set its language, name, direction and script, and "
        f"translate its texts; or choose one of the languages {known}.",
    )


def fault_of_text(text: object, english: str) -> str | None:
    """Return what is wrong with the translation of an English text, or None."""
    if not isinstance(text, str) or not text.strip():
        return f"is {text!r}; it must be a text"
    places, wanted = (sorted(set(PLACE.findall(wording_text))) for wording_text in (text, english))
    if places != wanted or re.search(r"[{}]", PLACE.sub("", text)):
        named = ", ".join(f"{{{place}}}" for place in wanted) or "none"
        return f"must have the same places to fill as in English: {named}"
    return None
