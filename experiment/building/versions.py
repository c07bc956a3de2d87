"""Versions of items as levels of a factor: in columns of one row, in rows of one item, or in the text as ``{cat|dog}``.

A factor that lists its levels' names finds its versions in exactly one of these places. Several such factors are crossed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from stimuli.corpora.tables import CorpusTable
from stimuli.errors import UserError, together, unknown_name
from stimuli.words import parse_stars

Row = dict[str, Any]
Levels = Mapping[str, str]
Factors = Mapping[str, Sequence[str]]

ITEM, SENTENCE, ROLE, FILLER = "item", "sentence", "role", "filler"
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}|]*\|[^{}]*)\}")
_FACTOR = re.compile(r"\s*([a-z][a-z0-9_]*):\s?")


@dataclass(frozen=True)
class Version:
    """One version of an item: its levels, and its row with the fields of these levels."""

    levels: Levels
    row: Row
    line: int


@dataclass(frozen=True)
class ItemVersions:
    """The items of a table, with the versions of each."""

    first: CorpusTable  # the first version of each item
    by_item: Mapping[str, tuple[Version, ...]]
    remarks: tuple[str, ...]  # where the versions of each factor are

    def at(self, levels: Levels, rows: Sequence[Mapping[str, Any]]) -> list[Version]:
        """Return the version with these levels of each row's item."""
        return [
            next(version for version in self.by_item[str(row[ITEM])] if version.levels == levels)
            for row in rows
        ]


def item_versions(
    table: CorpusTable, factors: Factors, *, file: str, place: str, are_starred: bool
) -> ItemVersions:
    """Return the versions of every item of a table; a filler has one, and fillers take the levels in turn.

    Parameters
    ----------
    table : CorpusTable
        The user's table, with the column ``item``.
    factors : mapping of str to sequence of str
        The factors that list versions, and their levels.
    file, place : str
        The table and the place of the factors in the study, for messages.
    are_starred : bool
        Whether stars mark the words to change, in all versions of an item equally many.

    Raises
    ------
    UserError
        A factor has no versions, or has them in two places; or an item lacks a version, has one twice, or has two that are
        the same. All problems are reported together.
    """
    reader = _VersionReader(table, factors, place)
    faults: list[UserError] = []
    by_item: dict[str, tuple[Version, ...]] = {}
    n_fillers = 0
    for item, rows in reader.rows_of_items().items():
        line = rows[0].line
        try:
            if str(rows[0].row.get(ROLE) or "").strip().lower() == FILLER:
                by_item[item] = (reader.of_filler(item, rows, n_fillers),)
                n_fillers += 1
            else:
                by_item[item] = reader.versions(item, rows)
                _require_differences(item, by_item[item], factors, are_starred=are_starred)
        except UserError as fault:
            faults.append(UserError(f"{file}, line {line}: {fault.message}", mend=fault.mend))
    if faults:
        raise together(faults)
    first = [versions[0] for versions in by_item.values()]
    return ItemVersions(
        replace(
            table,
            rows=tuple(version.row for version in first),
            numbers=tuple(version.line for version in first),
        ),
        by_item,
        tuple(f"  versions of {factor}: {stand}" for factor, stand in reader.places.items()),
    )


def combinations(factors: Factors) -> list[dict[str, str]]:
    """Return every combination of the levels of factors."""
    return [dict(zip(factors, chosen, strict=True)) for chosen in itertools.product(*factors.values())]


def version_of_row(row: Row, factors: Factors, levels: Levels) -> Row:
    """Return a row with its fields at some levels, for versions in its columns or its text."""
    return _at_levels(row, factors, levels, tuple(factors))


def _require_differences(
    item: str, versions: Sequence[Version], factors: Factors, *, are_starred: bool
) -> None:
    """Raise an error for two versions that are the same, or whose sentences star different numbers of words."""
    for one, other in itertools.combinations(versions, 2):
        named = f"{' × '.join(one.levels.values())!r} and {' × '.join(other.levels.values())!r}"
        if {name: cell for name, cell in one.row.items() if name not in factors} == {
            name: cell for name, cell in other.row.items() if name not in factors
        }:
            raise UserError(
                f"item {item!r} is the same at {named}",
                mend="Write the versions, or take the item out.",
            )
    if are_starred:
        counts = {
            " × ".join(version.levels.values()): len(parse_stars(str(version.row.get(SENTENCE) or "")).words)
            for version in versions
        }
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{number} at {name!r}" for name, number in counts.items())
            raise UserError(
                f"the versions of item {item!r} star different numbers of words: {told}",
                mend="Star equally many words in every version.",
            )


class _VersionReader:
    """The places of the versions in a table: of each factor in columns, in rows, or in the text."""

    def __init__(self, table: CorpusTable, factors: Factors, place: str) -> None:
        self.table, self.factors, self.place = table, factors, place
        self.columns = list(dict.fromkeys(name for row in table.rows for name in row))
        self.wide = [name for name in self.columns if _levels_of_column(name, factors)]
        found = {
            "rows": [factor for factor in factors if factor in self.columns],
            "columns": [
                factor
                for factor in factors
                if any(factor in _levels_of_column(name, factors) for name in self.wide)
            ],
        }
        elsewhere = found["rows"] + found["columns"]
        inner = [part for row in table.rows for cell in row.values() for part in _alternatives(cell)]
        named = {factor for part in inner if (factor := _named(part, factors)[0])}
        # the factors that braces without a name can be of
        self.unnamed = [factor for factor in factors if factor not in elsewhere]
        for part in inner:
            factor = _named(part, factors)[0] or (self.unnamed[0] if len(self.unnamed) == 1 else None)
            if factor is None:
                raise _unnamed(part, self.unnamed, place=f"{place}: ")
            named.add(factor)
        found["text"] = [factor for factor in factors if factor in named]
        self.forms = self._one_form_each(found)

    def _one_form_each(self, found: Mapping[str, Sequence[str]]) -> dict[str, str]:
        forms: dict[str, str] = {}
        for factor, levels in self.factors.items():
            of_factor = [form for form, factors in found.items() if factor in factors]
            if not of_factor:
                raise UserError(
                    f"{self.place}: {factor} is a list of versions, but the materials have none: no column {factor!r}, no "
                    f"column such as '{SENTENCE}:{levels[0]}', and no {{…|…}} in a text",
                    mend="Add one of these; or, if items differ, write {where: …} for each level.",
                )
            if len(of_factor) > 1:
                places = " and in ".join(self._place_of(factor, form) for form in of_factor)
                raise UserError(
                    f"{self.place}: the versions of {factor} are in {places}",
                    mend="Write them in one of these places.",
                )
            forms[factor] = of_factor[0]
        return forms

    def _place_of(self, factor: str, form: str) -> str:
        if form == "rows":
            return f"rows (column {factor!r})"
        if form == "columns":
            fields = dict.fromkeys(
                name.partition(":")[0]
                for name in self.wide
                if factor in _levels_of_column(name, self.factors)
            )
            return "columns " + ", ".join(f"{field}:…" for field in fields)
        return "{…|…} in the text"

    @cached_property
    def places(self) -> dict[str, str]:
        """The place of each factor's versions, in words."""
        return {factor: self._place_of(factor, form) for factor, form in self.forms.items()}

    @cached_property
    def in_rows(self) -> dict[str, Sequence[str]]:
        """The factors whose levels are rows of an item."""
        return {factor: self.factors[factor] for factor, form in self.forms.items() if form == "rows"}

    def rows_of_items(self) -> dict[str, list[Version]]:
        """Return the rows of each item in the order of the table, with their levels as their columns name them."""
        groups: dict[str, list[Version]] = {}
        for row, line in zip(self.table.rows, self.table.numbers, strict=True):
            levels = {factor: str(row.get(factor) or "").strip() for factor in self.in_rows}
            groups.setdefault(str(row.get(ITEM)), []).append(Version(levels, row, line))
        return groups

    def versions(self, item: str, rows: Sequence[Version]) -> tuple[Version, ...]:
        """Return all versions of a test item, in the order of the levels."""
        by_levels = self._by_levels(item, rows)
        made = []
        for levels in combinations(self.factors):
            row = by_levels[tuple(levels[factor] for factor in self.in_rows)]
            made.append(Version(levels, self._resolved(item, row.row, levels), row.line))
        return tuple(made)

    def of_filler(self, item: str, rows: Sequence[Version], number: int) -> Version:
        """Return a filler: the only version that it brings, or of several the one whose turn it is."""
        for row in rows:
            self._require_levels(item, {factor: level for factor, level in row.levels.items() if level})
        brought = [
            Version(levels, self._resolved(item, row.row, levels, is_filler=True), row.line)
            for row in rows
            for levels in combinations(self.factors)
            if all(row.levels[factor] in ("", levels[factor]) for factor in self.in_rows)
            and self._brings(row.row, levels)
        ]
        if not brought:
            raise UserError(
                f"filler {item!r} has no sentence", mend="Fill its sentence, or one of its versions."
            )
        return brought[number % len(brought)]

    def _brings(self, row: Row, levels: Levels) -> bool:
        """Return whether a filler has a sentence at some levels, and a version of each field of which it has any."""
        versions: dict[str, list[bool]] = {}
        for column in self.wide:
            if str(row.get(column) or "").strip():
                is_of_levels = _levels_of_column(column, self.factors).items() <= levels.items()
                versions.setdefault(column.partition(":")[0], []).append(is_of_levels)
        has_sentence = str(_at_levels(row, self.factors, levels, self.unnamed).get(SENTENCE) or "").strip()
        return bool(has_sentence) and all(map(any, versions.values()))

    def _by_levels(self, item: str, rows: Sequence[Version]) -> dict[tuple[str, ...], Version]:
        """Return the rows of an item by their levels; raise an error for a level that is unknown, missing or there twice."""
        by_levels: dict[tuple[str, ...], Version] = {}
        for row in rows:
            self._require_levels(item, row.levels)
            levels = tuple(row.levels.values())
            if levels in by_levels:
                at = f" at {' × '.join(levels)!r}" if levels else ""
                raise UserError(
                    f"item {item!r} is listed twice{at} (again in line {row.line})",
                    mend="Give each item one row for each version, and its own id.",
                )
            by_levels[levels] = row
        wanted = [tuple(levels.values()) for levels in combinations(self.in_rows)]
        missing = [" × ".join(levels) for levels in wanted if levels not in by_levels]
        if missing:
            raise UserError(
                f"item {item!r} lacks {', '.join(map(repr, missing))}; every item needs every version",
                mend=f"Add a row with {missing[0]!r} for this item.",
            )
        return by_levels

    def _require_levels(self, item: str, levels: Levels) -> None:
        """Raise an error for a level that a factor does not have."""
        for factor, level in levels.items():
            if level not in self.factors[factor]:
                raise unknown_name(f"item {item!r}: level of {factor}", level, self.factors[factor])

    def _resolved(self, item: str, row: Row, levels: Levels, *, is_filler: bool = False) -> Row:
        resolved = _at_levels(row, self.factors, levels, self.unnamed)
        if is_filler:
            return resolved
        for column in self.wide:
            of_column = _levels_of_column(column, self.factors)
            if of_column.items() <= levels.items() and not str(row.get(column) or "").strip():
                raise UserError(
                    f"item {item!r} lacks {' × '.join(of_column.values())!r}; every item needs every version",
                    mend=f"Fill {column}.",
                )
        fields = {column.partition(":")[0] for column in self.wide}
        for field in sorted(fields):
            if str(row.get(field) or "").strip():
                raise UserError(
                    f"item {item!r} has both {field!r} and versions of it in columns",
                    mend=f"Leave {field} empty; only fillers without versions fill it.",
                )
            names = [name for name in self.wide if name.partition(":")[0] == field]
            if not any(_levels_of_column(name, self.factors).items() <= levels.items() for name in names):
                raise UserError(
                    f"there is no column of {field!r} for {' × '.join(levels.values())!r} (there are {', '.join(names)})",
                    mend="Add a column for each level.",
                )
        return resolved


def _levels_of_column(name: str, factors: Factors) -> dict[str, str]:
    """Return the levels that a column such as ``sentence:plausible`` is for; empty for other columns."""
    field, *named = name.split(":")
    if not field or not named:
        return {}
    levels: dict[str, str] = {}
    for level in named:
        factor = next(
            (factor for factor, levels_of in factors.items() if level in levels_of and factor not in levels),
            None,
        )
        if factor is None:
            return {}
        levels[factor] = level
    return levels


def _alternatives(cell: object) -> Iterator[str]:
    """Yield the contents of each pair of braces with a bar in a cell."""
    for match in _BRACES.finditer(cell) if isinstance(cell, str) else ():
        if match.group(1) is not None:
            yield match.group(1)


def _named(alternatives: str, factors: Collection[str]) -> tuple[str | None, list[str]]:
    """Return the factor that alternatives name, None if none, and the alternatives."""
    match = _FACTOR.match(alternatives)
    if match is not None and match.group(1) in factors:
        return match.group(1), alternatives[match.end() :].split("|")
    return None, alternatives.split("|")


def _unnamed(alternatives: str, factors: Sequence[str], place: str = "") -> UserError:
    literal = f"write {{{{{alternatives}}}}} if the braces are text"
    if not factors:
        return UserError(
            f"{place}{{{alternatives}}} is in a text, and the versions of every factor are elsewhere",
            mend=f"Write the versions in one place, or {literal}.",
        )
    return UserError(
        f"{place}{{{alternatives}}} does not say which factor's versions it holds ({' or '.join(factors)})",
        mend=f"Name the factor, as in {{{factors[0]}: {alternatives}}}, or {literal}.",
    )


def _at_levels(row: Row, factors: Factors, levels: Levels, unnamed: Sequence[str]) -> Row:
    """Return a row with its fields at some levels; ``unnamed`` are the factors that braces without a name can be of."""
    fields: dict[str, Any] = {}
    chosen: dict[str, Any] = {}
    for name, cell in row.items():
        of_column = _levels_of_column(name, factors)
        if not of_column:
            fields[name] = cell
        elif of_column.items() <= levels.items() and str(cell or "").strip():
            chosen[name.partition(":")[0]] = cell
    return {
        name: _chosen(cell, factors, levels, unnamed) if isinstance(cell, str) and name != ITEM else cell
        for name, cell in {**fields, **chosen}.items()
    }


def _chosen(text: str, factors: Factors, levels: Levels, unnamed: Sequence[str]) -> str:
    """Return a text with the alternative of each pair of braces that the levels choose."""

    def choose(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return match.group(0)[0]
        factor, alternatives = _named(match.group(1), factors)
        if factor is None and len(unnamed) != 1:
            raise _unnamed(match.group(1), unnamed)
        factor = factor or unnamed[0]
        if len(alternatives) != len(factors[factor]):
            raise UserError(
                f"{match.group(0)} has {len(alternatives)} alternatives, and {factor} has {len(factors[factor])} levels",
                mend=f"Write one for each of {', '.join(factors[factor])}, in this order.",
            )
        return alternatives[factors[factor].index(levels[factor])]

    return _BRACES.sub(choose, text)
