"""Sentences from the user's table: each row in every condition, with its question, choices and answer.

Words to change are starred in the text, named in a column or chosen by a rule (:mod:`stimuli.recipes.targets`); a
level's texts may be made by hand and stand in a column (:mod:`stimuli.recipes.by_hand`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stimuli.errors import UserError, missing_column, together, unknown_name
from stimuli.item import Item, Role
from stimuli.recipes.by_hand import BY_HAND, ByHand, by_hand, describe_by_hand
from stimuli.recipes.conditions import OperationSpec, Shown, describe, parse_levels, require_change
from stimuli.recipes.outcome import Skipped
from stimuli.recipes.targets import (
    STARRED,
    TargetColumn,
    TargetRule,
    Targets,
    parse_targets,
    read_targets,
)
from stimuli.scramble.registry import Operation, parse_operation
from stimuli.scramble.text import DEFAULT, Scrambled, ScrambleSettings, scramble_conditions
from stimuli.scramble.words import find_words, nfc, parse_stars

CHOICE_SEPARATOR = "|"


class BadRow(UserError):
    """A row that gives no items; the others still can."""


def sentence_items(
    rows: Sequence[Mapping[str, Any]],
    *,
    factor: str | None,
    levels: Mapping[str, OperationSpec | ByHand],
    seed: int,
    field: str = "sentence",
    settings: ScrambleSettings = DEFAULT,
    targets: Targets | str | Mapping[str, Any] | None = None,
    set_name: str = "sentences",
    id_column: str = "item",
    also_show: Sequence[str] = (),
    answer: str | None = "answer",
    choices: Sequence[str] | str | None = None,
    level_column: str | None = None,
    only_level: str | None = None,
    role: Role = "test",
    source: str = "sentences",
    licence: str | None = None,
    skipped: list[Skipped] | None = None,
    lines: Mapping[str, int] | None = None,
) -> list[Item]:
    """Make items from sentences: row by row, each in every condition.

    Parameters
    ----------
    rows : sequence of mapping
        From :func:`stimuli.corpora.tables.read_table`.
    factor : str or None
        The factor that scrambles; None for sentences shown as they are.
    levels : mapping of str to operation
        Operation by level, such as ``{"intact": "none", "initial": {"transpose": "initial"}}``; ``hand-made`` takes
        the level's texts from the column ``<factor>:<level>``, ``{"column": name}`` from another one.
    seed : int
        The study's seed.
    field : str
        Column with the sentence; the item's field has the same name.
    settings : ScrambleSettings
        How words change; with ``eligibility="common"`` texts made by hand change the same words as all others.
    targets : str, mapping, TargetColumn or TargetRule, optional
        Which words may change (see :func:`stimuli.recipes.targets.parse_targets`); ``settings.words`` where None.
    set_name : str
        Name of the materials.
    id_column : str
        Column with the item's id.
    also_show : sequence of str
        Columns shown as they are, such as the question.
    answer : str or None
        Column with the answer; None where nothing is asked.
    choices : sequence of str, str or None
        The choices, or the column that holds them (a list, or text with ``|`` between); None for typed answers.
    level_column : str, optional
        Column that says in which one condition a row is shown (practice items); its conditions change the same
        words as if the row were shown in all.
    only_level : str, optional
        The one condition in which all rows are shown, where no column says it.
    role, source, licence
        As in :class:`stimuli.item.Item`.
    skipped : list of Skipped, optional
        Where given, a row that gives no items is put here with the reason and the others are still made; without it
        such rows are refused, all of them at once.
    lines : mapping of str to int, optional
        Line of each item in its file, by id, for what is said of rows; without it their number among ``rows`` is.

    Raises
    ------
    UserError
        Names line or row, item and what is wrong: a missing cell, a word to change that is not there, an answer that is no
        choice, a text made by hand with other words, a condition that can change no word.
    """
    columns = set().union(*rows) if rows else set()
    made, operations = by_hand(factor, levels, columns) if factor is not None else ({}, dict(levels))
    recipe = _Recipe(
        operations=parse_levels(factor, operations, settings) if operations or not made else {},
        made=made,
        order=tuple(levels) if factor is not None else ("",),
        field=field,
        targets=parse_targets(settings.words if targets is None else targets),
        settings=settings,
        seed=seed,
    )
    needed = [id_column, field, *also_show, *(column.column for column in made.values())]
    needed += [name for name in (answer, choices, level_column) if isinstance(name, str)]
    needed += [recipe.targets.column] if isinstance(recipe.targets, TargetColumn) else []
    for name in needed:
        if rows and name not in columns:
            raise missing_column(source, name, sorted(columns))
    items: list[Item] = []
    faults: list[UserError] = []
    for number, row in enumerate(rows, 1):
        item_id = str(row.get(id_column) or "")
        line = (lines or {}).get(item_id)
        where = f"row {number} of {source}" if line is None else f"{source}, line {line}"
        try:
            item_id = _cell(row, id_column, where)
            where = (
                f"row {number}, item {item_id!r} of {source}"
                if line is None
                else f"{source}, line {line}, item {item_id!r}"
            )
            also = {name: nfc(_cell(row, name, where)) for name in also_show}
            options = _choices(row, choices, where)
            key = None if answer is None else _answer(_cell(row, answer, where), options, where)
            only = _only_level(row, level_column, recipe.order, where) or only_level
            shown = recipe.shown(row, item_id, where, only)
        except BadRow as error:
            if skipped is None:
                faults.append(error)
                continue
            said = f"{error.message}. {error.mend}" if error.mend else error.message
            skipped.append(Skipped(item_id or f"row {number}", source, said))
            continue
        items += [
            one.item(
                item_id,
                set_name=set_name,
                factor=factor,
                field=field,
                seed=seed,
                answer=key,
                choices=options,
                role=role,
                source=source,
                licence=licence,
                also_shown=also,
            )
            for one in shown
        ]
    if faults:
        raise together(faults)
    return items


@dataclass(frozen=True)
class _Recipe:
    """What holds for every row of a table."""

    operations: Mapping[str, Operation]
    made: Mapping[str, ByHand]
    order: tuple[str, ...]
    field: str
    targets: Targets
    settings: ScrambleSettings
    seed: int

    def __post_init__(self) -> None:
        if isinstance(self.targets, TargetRule):
            self.targets.require_language(self.settings.language)

    def shown(self, row: Mapping[str, Any], item_id: str, where: str, only: str | None) -> list[Shown]:
        """Return a row's text in every condition, or in the only one in which it is shown.

        Where words to change are starred, a text without stars is one that no word of is to change: it can be shown
        as it is.
        """
        given = _cell(row, self.field, where)
        wanted = self.order if only is None else (only,)
        columns = {level: _cell(row, column.column, where) for level, column in self.made.items()}
        try:
            if self.targets == STARRED and not parse_stars(given).words:
                self._require_unchanged(given, wanted)
                return self._as_it_is(given, wanted)
            text, words = read_targets(
                given,
                self.targets,
                row,
                language=self.settings.language,
                seed=self.seed,
                item_id=item_id,
            )
            results = self._results(text, words, columns, item_id)
            shown = describe(
                text,
                results,
                {level: self.operations.get(level, parse_operation("none")) for level in results},
                field=self.field,
                language=self.settings.language,
            )
            require_change(
                [one for one in shown if one.level in self.operations], dict(self.operations), item_id
            )
        except UserError as error:
            told = error.message.removeprefix(f"item {item_id!r}: ")
            raise BadRow(f"{where}: {told}", mend=error.mend) from None
        shown = [one for one in shown if one.level in wanted]
        return [replace(one, operation=BY_HAND) if one.level in self.made else one for one in shown]

    def _require_unchanged(self, given: str, wanted: Sequence[str]) -> None:
        """Refuse a text without stars at a level that changes starred words."""
        changing = [level for level in wanted if not self._keeps(level)]
        if not changing:
            return
        mend = "Mark words to change, like *this*"
        kept = [level for level in self.order if self._keeps(level)]
        if len(wanted) == 1 and kept:
            mend += f", or show the text as it is, at level {kept[0]!r}"
        at = f" and level {changing[0]!r} changes starred words" if changing[0] else ""
        raise UserError(f"no word is starred in {given!r}{at}", mend=f"{mend}.")

    def _keeps(self, level: str) -> bool:
        return level in self.operations and self.operations[level].changes_nothing

    def _as_it_is(self, given: str, wanted: Sequence[str]) -> list[Shown]:
        operations = {level: self.operations[level] for level in wanted}
        text = nfc(given)
        results = scramble_conditions(
            text, operations, seed=self.seed, item_id="", words=(), settings=self.settings
        )
        return describe(text, results, operations, field=self.field, language=self.settings.language)

    def _results(
        self, text: str, words: Sequence[int] | None, columns: Mapping[str, str], item_id: str
    ) -> dict[str, Scrambled]:
        found = {
            level: describe_by_hand(text, shown, words, column=self.made[level].column)
            for level, shown in columns.items()
        }
        common = self.settings.eligibility == "common"
        if found and common:
            words = self._same_words(text, found)
        results = scramble_conditions(
            text, self.operations, seed=self.seed, item_id=item_id, words=words, settings=self.settings
        )
        if found and common:
            self._require_all(text, words or (), results)
        return {level: found[level] if level in found else results[level] for level in self.order}

    def _same_words(self, text: str, found: Mapping[str, Scrambled]) -> tuple[int, ...]:
        changed = {
            level: tuple(dict.fromkeys(change.word for change in one.changes)) for level, one in found.items()
        }
        (first, words), *others = changed.items()
        for level, there in others:
            if there != words:
                raise UserError(
                    f"column {self.made[level].column!r} changes {_listed(text, there)}, column "
                    f"{self.made[first].column!r} {_listed(text, words)}; with eligibility common every condition "
                    "changes the same words",
                    mend="Change the same words in each column, or set eligibility: own.",
                )
        return words

    def _require_all(self, text: str, words: Sequence[int], results: Mapping[str, Scrambled]) -> None:
        for level, result in results.items():
            operation = self.operations[level]
            if operation.changes_nothing or operation.rate < 1 or operation.type.unit != "letter":
                continue
            missing = [word for word in words if word not in {change.word for change in result.changes}]
            if missing:
                raise UserError(
                    f"level {level!r} ({operation.label}) cannot change {_listed(text, missing)}, which the columns "
                    "made by hand change; with eligibility common every condition changes the same words",
                    mend="Leave that word as it is in the columns, or set eligibility: own.",
                )


def _listed(text: str, words: Sequence[int]) -> str:
    found = find_words(text)
    return ", ".join(repr(found[word].text) for word in words)


def _cell(row: Mapping[str, Any], column: str, where: str) -> str:
    if column not in row:
        error = missing_column(where, column, row)
        raise BadRow(error.message, mend=error.mend)
    value = row[column]
    if value is None or not str(value).strip():
        raise BadRow(f"{where}: {column!r} is empty")
    return str(value)


def _choices(
    row: Mapping[str, Any], choices: Sequence[str] | str | None, where: str
) -> tuple[str, ...] | None:
    if choices is None:
        return None
    if isinstance(choices, str):
        cell = row.get(choices)
        given = cell if isinstance(cell, list) else _cell(row, choices, where).split(CHOICE_SEPARATOR)
    else:
        given = list(choices)
    options = tuple(nfc(str(option).strip()) for option in given)
    if len(options) < 2 or len(set(options)) < len(options) or not all(options):
        raise BadRow(f"{where}: choices are {list(options)!r}; give two or more different ones")
    return options


def _answer(given: str, options: Sequence[str] | None, where: str) -> str:
    answer = nfc(given)
    if options is not None and answer not in options:
        known = unknown_name("answer", answer, options)
        raise BadRow(f"{where}: answer {answer!r} is none of the choices", mend=known.mend)
    return answer


def _only_level(row: Mapping[str, Any], column: str | None, levels: Sequence[str], where: str) -> str | None:
    if column is None:
        return None
    level = _cell(row, column, where)
    if level not in levels:
        known = unknown_name("level", level, levels)
        raise BadRow(f"{where}: {column} is {level!r}, which is no level of the design", mend=known.mend)
    return level
