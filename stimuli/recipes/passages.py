"""A text by itself: give it back intact (sentence recovery, rectifying a passage), summarise it, translate it."""

from __future__ import annotations

from stimuli.corpora.record import Record
from stimuli.recipes.asking import Asked, has_text
from stimuli.scramble.words import nfc


def ask_intact(record: Record, field: str) -> Asked:
    """Ask for the intact text, which is the answer."""
    return Asked(record, has_text(record, field), answer=nfc(record.texts[field]))


def ask_summary(record: Record, field: str, reference: str | None = None) -> Asked:
    """Ask for a summary; the answer is the record's text named ``reference``, None without one."""
    return Asked(record, has_text(record, field), answer=_reference(record, reference))


def ask_translation(record: Record, field: str, target_language: str, reference: str | None = None) -> Asked:
    """Ask for a translation into a language; the answer is the record's text named ``reference``, None without one."""
    key = {"target_language": target_language}
    return Asked(record, has_text(record, field), answer=_reference(record, reference), key=key)


def _reference(record: Record, reference: str | None) -> str | None:
    return None if reference is None else nfc(record.texts[has_text(record, reference)])
