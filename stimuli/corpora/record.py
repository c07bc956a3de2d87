"""The form in which every corpus hands over a record: texts by field, and what is asked about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

NOTHING: Mapping[str, float | str | None] = MappingProxyType({})


@dataclass(frozen=True)
class Record:
    """One record of a corpus: texts by field and what is asked about them.

    Parameters
    ----------
    record_id : str
        Names the record within its corpus and split; the same in every load.
    corpus : str
        Name in the registry, such as ``dream``.
    split : str or None
        Part of the corpus, where it has parts.
    licence : str or None
        Licence of the corpus, None where none is stated.
    texts : mapping of str to str
        Texts by field, such as ``{"dialogue": …, "question": …}``.
    choices : tuple of str or None
        Texts of the options, without letters; None where the answer is open.
    answer : str or None
        Text of the right choice, a number, a phrase or code; None where the record is not labelled.
    answers : tuple of str
        Others that count as right.
    rationale : str or None
        Worked solution.
    tests : tuple of str
        Assertions that a program has to pass.
    setup : str or None
        Code that runs before the tests.
    extra : mapping of str to float, str or None
        What else is known (category, concept); becomes covariates of items.
    file, line : str, int
        Where the record stands; line 0 where a file has no lines of its own.
    """

    record_id: str
    corpus: str
    split: str | None
    licence: str | None
    texts: Mapping[str, str]
    choices: tuple[str, ...] | None
    answer: str | None
    answers: tuple[str, ...] = ()
    rationale: str | None = None
    tests: tuple[str, ...] = ()
    setup: str | None = None
    extra: Mapping[str, float | str | None] = field(default_factory=lambda: NOTHING)
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class BadRecord:
    """A record that could not be read."""

    file: str  # where it stands; line 0 where the file has no lines
    line: int
    reason: str  # what is wrong, in one sentence


@dataclass(frozen=True)
class Loaded:
    """What a corpus gave."""

    records: tuple[Record, ...]  # in the order of the corpus
    bad: tuple[BadRecord, ...] = ()  # what could not be read; empty where a bad record stops the load
    duplicates: tuple[tuple[str, ...], ...] = ()  # ids of records with the same texts, a tuple a text
    # what who uses the corpus has to know: a licence that binds, records without an answer
    warnings: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()  # what was read, for the hashes of a build's sources; empty for the hub
