"""wrods' texts in each language: packs for participants, prompts for models, and a lab's own texts.

A pack includes every text of the platform: those of the page, the server, recruitment, and the built-in texts of a session
(questions, checks, feedback). English is the source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal

from stimuli.errors import UserError, nearest, together

OWN_FILE = "texts.json"
TEXTS, PROMPTS = "texts", "prompts"
SENTENCE = 4
"""Least number of words for a text identical to the English one to count as untranslated."""

STANDS_FOR = {
    "stop_later_link_until": "stop_later_until",
    "slider_hint": "please_choose",
    "group_full": "not_eligible",
}
"""Texts that packs of earlier versions lack, with the text that says as much in their place."""
LATER_PROMPTS = frozenset({"scale", "rate_number", "choose_several", "answer_completion"})
"""Prompts that own texts of earlier versions lack; only studies with ratings, sets of labels or completions need them."""


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


@cache
def ready_questions() -> Mapping[str, Any]:
    """Return the ready blocks of questions about participants (``blocks``) and their ``texts`` by language."""
    ready: Mapping[str, Any] = json.loads(
        resources.files(__package__).joinpath("questions.json").read_text("utf-8")
    )
    return ready


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


KNOWN = (*Pack.__dataclass_fields__, PROMPTS, "checked_by_native_reader", "source", "licence")


@dataclass(frozen=True)
class Own:
    """A study's texts for participants and models in its language.

    ``pack``: wrods' pack with the lab's replacements, or the lab's; None if there is neither; ``wording``: the lab's prompts
    for models; None for wrods' own.
    """

    pack: Pack | None
    wording: Mapping[str, Any] | None = None


def read_own(language: str, folder: Path) -> Own:
    """Return the texts of a study in a language, with those of its ``texts.json`` first."""
    brought = find_pack(language)
    file = folder / OWN_FILE
    if not file.is_file():
        return Own(brought)
    text, given, twice = _read(file)

    def fault(key: str, words: str) -> UserError:
        match = re.search(rf'"{re.escape(key)}"\s*:', text)
        line = text.count("\n", 0, match.start()) + 1 if match else 1
        return UserError(f"{OWN_FILE}, line {line}: {key} {words}")

    faults = [fault(key, "is given twice") for key in twice]
    faults += [fault(key, _unknown(key, KNOWN)) for key in given if key not in KNOWN]
    faults += _of_head(given, language, brought, fault)
    faults += _of_texts(given, language, brought, fault)
    faults += _of_prompts(given, fault)
    if faults:
        raise together(faults, most=len(faults))
    texts = given.get(TEXTS)
    if brought is not None:
        pack = replace(brought, texts={**brought.texts, **(texts or {})})
        return Own(pack, given.get(PROMPTS))
    head = {"language": language, "name": language, "english_name": language, "script": ""}
    given_head = {name: given[name] for name in Pack.__dataclass_fields__ if name in given}
    if texts is None:
        return Own(None, given.get(PROMPTS))
    every_text = {new: texts[old] for new, old in STANDS_FOR.items()} | texts
    return Own(Pack(**{**head, **given_head, "texts": every_text}), given.get(PROMPTS))


def _read(file: Path) -> tuple[str, dict[str, Any], list[str]]:
    """Return the file's text, its contents, and the duplicate keys."""
    twice: list[str] = []

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        twice.extend(name for place, name in enumerate(names) if name in names[:place])
        return dict(pairs)

    try:
        text = file.read_text("utf-8-sig")
        given = json.loads(text, object_pairs_hook=once)
    except UnicodeDecodeError:
        raise UserError(f"{OWN_FILE} is not UTF-8", mend="Save it as UTF-8.") from None
    except json.JSONDecodeError as error:
        raise UserError(
            f"{OWN_FILE}, line {error.lineno}: not readable as JSON ({error.msg})",
            mend="Check quotes and commas near that line.",
        ) from None
    for name in (None, TEXTS, PROMPTS):
        part = given if name is None else given.get(name, {})
        if not isinstance(part, dict):
            raise UserError(
                f"{OWN_FILE}: {name or 'the file'} must be a group of texts by their keys",
                mend='Write it like {"texts": {"go_on": "…"}}.',
            )
    return text, given, twice


Fault = Callable[[str, str], UserError]


def _of_head(
    given: Mapping[str, Any], language: str, brought: Pack | None, fault: Fault
) -> Iterator[UserError]:
    """Yield the errors in the file's description of its language."""
    written = str(given.get("language", language))
    if written.lower().split("-")[0] != language.lower().split("-")[0]:
        yield fault("language", f"is {written!r}, and the study's language is {language!r}")
    script = script_of(language) or (brought.script if brought else None)
    if script is not None and given.get("script", script) != script:
        yield fault("script", f"is {given['script']!r}, and the study's language {language!r} has {script}")
    allowed = ("ltr", "rtl") if brought is None else (brought.direction,)
    direction = given.get("direction", allowed[0] if brought or TEXTS not in given else None)
    if direction not in allowed:
        problem = "is missing" if direction is None else f"is {direction!r}"
        yield fault("direction", f"{problem}; it must be {' or '.join(map(repr, allowed))}")


def _of_texts(
    given: Mapping[str, Any], language: str, brought: Pack | None, fault: Fault
) -> Iterator[UserError]:
    """Yield the errors in texts for participants."""
    english = pack_for("en").texts
    texts: Mapping[str, Any] = given.get(TEXTS, {})
    is_english = language.split("-")[0] == "en"
    for key, text in texts.items():
        if key not in english:
            yield fault(key, _unknown(key, english))
        elif (wrong := fault_of_text(text, english[key])) is not None:
            yield fault(key, wrong)
        elif not is_english and text == english[key] and len(text.split()) >= SENTENCE:
            yield fault(key, f"is still in English; the study's language is {language!r}")
    missing = [key for key in english if key not in texts and STANDS_FOR.get(key) not in texts]
    if brought is None and TEXTS in given and missing:
        yield UserError(
            f"{OWN_FILE} lacks {len(missing)} of {len(english)} texts, and wrods has none in {language!r} to take "
            f"their place: {', '.join(missing)}"
        )


def _of_prompts(given: Mapping[str, Any], fault: Fault) -> Iterator[UserError]:
    """Yield the errors in prompts for models: all but later ones are required, with the variants and placeholders of English."""
    if PROMPTS not in given:
        return
    english = wording("en")
    prompts: Mapping[str, Any] = given[PROMPTS]
    for key, written in prompts.items():
        if key not in english:
            yield fault(key, _unknown(key, english))
            continue
        wanted = [english[key]] if isinstance(english[key], str) else english[key]
        variants = [written] if isinstance(english[key], str) else written
        if not isinstance(variants, list) or len(variants) != len(wanted):
            yield fault(key, f"must be a list of {len(wanted)} texts")
        elif wrong := next(
            (wrong for variant in variants if (wrong := fault_of_text(variant, wanted[0]))), None
        ):
            yield fault(key, wrong)
    missing = [key for key in english if key not in prompts and key not in LATER_PROMPTS]
    if missing:
        yield UserError(f"{OWN_FILE}: {PROMPTS} lacks {', '.join(missing)}")


def _unknown(key: str, known: Mapping[str, Any] | tuple[str, ...]) -> str:
    close = nearest(key, known)
    under = f"; write it under {TEXTS!r}" if known is KNOWN and key in pack_for("en").texts else ""
    return "is not known" + under + (f"; did you mean {close!r}?" if close and not under else "")
