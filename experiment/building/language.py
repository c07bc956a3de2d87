"""Refuses a study that mixes languages: wrods lacks texts in its language, or one of its texts is in another language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import regex

from experiment.languages.packs import pack_for, pack_languages
from experiment.study import Study
from experiment.study.faults import Faults
from experiment.study.yaml_source import KeyPath
from experiment.templates.parts import consent_sentences, consent_source, parts_of, template_folders
from stimuli.errors import UserError
from stimuli.lexicon import has_lexicon
from stimuli.words import base_language

ENGLISH = "en"
WORDS = 4
"""Smallest number of words for a passage to count as a template's."""
ENOUGH = 50
"""Smallest number of letters for which the language of a text is checked."""
COMMON = 0.15
"""Least share of the hundred most frequent words in texts of a language (0.22 to 0.47); texts in other languages have less."""
SCRIPTS = {"ja": r"[\p{Hiragana}\p{Katakana}]", "ko": r"\p{Hangul}", "zh": r"\p{Han}"}
"""Languages recognised by their script; their words are not separated by blanks."""
SAID = ("ask", "hint", "caption", "low", "high")
"""Settings of the procedure that readers see as written."""


def check_language(study: Study, faults: Faults) -> None:
    """Check that everything readers see is in the study's language; errors are added to ``faults``."""
    faults.check(_check_pack, study)
    for name, path in study.text_files():
        file = study.folder / name
        if file.is_file():  # a missing one is reported separately
            faults.check(_check_text, study, path, name, file.read_text("utf-8-sig"))
    if base_language(study.language) == ENGLISH:
        return
    for path, text in _said(study.get("procedure"), ("procedure",)):
        faults.check(_check_passages, study, path, text)


def _check_pack(study: Study) -> None:
    """Raise an error if texts for participants are missing, unless only models read the study."""
    is_for_people = study.get("participants") is not None or not study.models
    if study.own_texts.pack is not None or is_for_people:
        _ = study.pack


def _check_text(study: Study, path: KeyPath, name: str, text: str) -> None:
    if base_language(study.language) != ENGLISH:
        _check_passages(study, path, text)
    other = _reads_as(text, study.language)
    if other is not None:
        raise UserError(
            f"{study.place(*path)}: {name} is in {other}, and the study's language is {study.language!r}",
            mend="Translate it, or change language: in study.yaml. A text in both languages is allowed.",
        )


def _reads_as(text: str, language: str) -> str | None:
    """Return the language of a text that has almost nothing of the study's; None if it is too short to decide."""
    study = base_language(language)
    letters = len(regex.findall(r"\p{L}", text))
    by_script = {tag: len(regex.findall(signs, text)) / max(letters, 1) for tag, signs in SCRIPTS.items()}
    words = [word for word in regex.findall(r"\p{L}+", text.lower()) if len(word) > 1]
    if by_script["ja"] > by_script["zh"]:  # Japanese, which has Chinese characters too
        by_script["zh"] = 0.0
    if letters < ENOUGH or not has_lexicon(language):
        return None
    share = by_script[study] if study in SCRIPTS else _common(words, study)
    if share >= COMMON:
        return None
    packs = [pack_for(tag) for tag in pack_languages() if tag != study]
    shares = {
        pack.english_name: by_script[pack.language]
        if pack.language in SCRIPTS
        else _common(words, pack.language)
        for pack in packs
    }
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] > max(COMMON, 3 * share) else None


def _common(words: list[str], language: str) -> float:
    """Return the share of words that are among the hundred most frequent of a language."""
    import wordfreq

    hundred = set(wordfreq.top_n_list(language, 100))
    return sum(word in hundred for word in words) / max(len(words), 1)


def _check_passages(study: Study, path: KeyPath, text: str) -> None:
    for passage in text.replace("\r\n", "\n").split("\n\n"):
        words = _words(passage)
        passage_text = " ".join(words)
        is_whole = len(words) >= WORDS and passage_text in _templates()
        copied = (
            passage_text
            if is_whole
            else next((sentence for sentence in _consent_sentences() if sentence in passage_text), None)
        )
        if copied is not None:
            raise UserError(
                f"{study.place(*path)}: “{' '.join(copied.split()[:8])} …” is a template's English text, and the study's language is "
                f"{study.language!r}",
                mend="Translate the template's texts.",
            )


@cache
def _templates() -> str:
    """Return all texts of all templates, with single blanks between words."""
    files = (file for folder in template_folders().values() for file in folder.rglob("*"))
    texts = (file.read_text("utf-8") for file in files if file.suffix in (".md", ".yaml"))
    return " ".join(word for text in texts for word in _words(text))


@cache
def _consent_sentences() -> tuple[str, ...]:
    """Return the complete sentences of the consent form, any of which identifies the form."""
    source = consent_source()
    texts = [element.get(part, "") for element in source["elements"] for part in ("minimum", "recommended")]
    forms = [(name, part) for name in template_folders() for part in (None, *parts_of(name))]
    texts += [source["last"], *(text for form in forms for text in consent_sentences(*form).values())]
    sentences = (
        " ".join(_words(sentence)) for text in texts for sentence in re.split(r"(?<=[.!?:])\s", text)
    )
    return tuple(
        sentence
        for sentence in sentences
        if len(sentence.split()) >= WORDS and sentence[-1] in ".!?:" and not set("[]{}") & set(sentence)
    )


def _words(text: str) -> list[str]:
    """Return the words of a text without separate Markdown marks."""
    return [word for word in text.split() if any(letter.isalnum() for letter in word)]


def _said(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """Yield the texts in the procedure itself, with their paths."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        if key in SAID and isinstance(part, str):
            yield (*path, key), part
        else:
            yield from _said(part, (*path, key))
