"""Items of one record in a task: the part that all tasks share.

A task determines the field that conditions change, the texts shown with it, and the correct answers. Everything else
(conditions, published passes, levels that withhold the text, provenance, covariates) is the same for all tasks.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from stimuli.corpora.corpus import Record, SourceText
from stimuli.corpora.loading import corpora
from stimuli.errors import UserError
from stimuli.item import ANSWERS_BETWEEN, Item, Provenance
from stimuli.recipes.conditions import (
    DisplayedField,
    FactorLevels,
    ItemDesign,
    describe,
    draw_some,
    option_to_change,
    show_in_conditions,
    withheld_shown,
)
from stimuli.scramble.alignment import changes_between
from stimuli.scramble.changes import Change, described
from stimuli.scramble.conditions import Scrambled
from stimuli.scramble.letter_forms import TOO_SHORT
from stimuli.scramble.published import (
    Passed,
    PublishedOperation,
    published_operation,
    published_pass,
    tidy,
    trace,
)
from stimuli.scramble.types import Operation, OperationSpec, parse_operation
from stimuli.words import find_words, nfc, word_starts

# A letter that no text has: it stands for a mask while words are looked for.
_LETTER = "ʘ"
_WORD = re.compile(r"\w+")


def recovery_items(texts: Sequence[SourceText], design: ItemDesign) -> list[Item]:
    """Return recovery items: text by text, each in every condition, with the intact text as the answer."""
    field = "sentence"
    levels, language = design.factor_levels, design.settings.language
    seeds = levels.published_seeds if design.published else dict.fromkeys(levels.given, design.seed)
    ids = [text.source_id for text in texts]
    drawn = draw_some(range(len(ids)), design.number, seed=design.seed, key=ids.__getitem__, what="texts")
    passes = published_passes([text.text for text in texts], levels.given) if design.published else None
    items = []
    for place in drawn:
        text = texts[place]
        if passes is not None:
            shown = passes.shown(place, field, language)
        else:
            shown = show_in_conditions(
                text.text, design.operations, design, field=field, item_id=text.source_id
            )
        record = Record(text.source_id, text.source, text.split, text.licence, {field: text.text}, None, None)
        items += [
            item_of(
                TaskRecord(record, field, answer=one.intact),
                {field: one},
                levels.condition(one.level),
                replace(design, set_name=design.set_name or "recovery", seed=seeds[one.level]),
            )
            for one in shown
        ]
    return items


@dataclass(frozen=True)
class PublishedPasses:
    """Texts as published passes left them."""

    intact: tuple[str, ...]  # in NFC as all items are, tidied as the paper's own were
    passed: Mapping[str, Sequence[Passed]]  # by level
    operations: Mapping[str, PublishedOperation]

    def shown(self, place: int, field: str, language: str) -> list[DisplayedField]:
        """Show one text in every condition; ``words_dropped`` among the covariates says how many words were lost, where some were."""
        intact = self.intact[place]
        results = {
            level: Scrambled(nfc(texts[place].text), _changes(intact, texts[place], self.operations[level]))
            for level, texts in self.passed.items()
        }
        as_intact = dict.fromkeys(results, parse_operation("none"))
        return [
            replace(
                text,
                operation=self.operations[text.level].label,
                covariates={**text.covariates, **_dropped(intact, text.text, self.operations[text.level])},
            )
            for text in describe(intact, results, as_intact, field=field, language=language)
        ]


def published_passes(texts: Sequence[str], levels: Mapping[str, OperationSpec]) -> PublishedPasses:
    """Scramble a list of texts as the published stimuli were made, one pass a condition."""
    operations = {level: published_operation(given) for level, given in levels.items()}
    papers = {operation.protocol.paper for operation in operations.values() if operation.protocol}
    # Cao et al. tidied spaces; only a text so tidied is the one that was shown intact.
    composed = map(nfc, texts)
    intact = tuple(composed if papers == {"typobench2024"} else map(tidy, composed))
    passed = {level: _passed(intact, operation) for level, operation in operations.items()}
    return PublishedPasses(intact, passed, operations)


def _passed(texts: Sequence[str], operation: PublishedOperation) -> list[Passed]:
    if operation.protocol is not None and operation.protocol.paper == "typobench2024":
        return trace(texts, operation, operation.protocol.seed)
    return [Passed(text) for text in published_pass(texts, operation)]


def _changes(intact: str, passed: Passed, operation: PublishedOperation) -> tuple[Change, ...]:
    if operation.protocol is None or passed.text == intact:
        return ()
    kin = parse_operation(operation.protocol.kin)
    if kin.type.unit != "letter":
        return _moved(intact, passed, kin.type.unit)
    if kin.type.operation == "delete":
        return _masked(intact, passed.text, kin)
    if kin.type.operation == "reorder":
        with suppress(
            ValueError
        ):  # a mark that stayed over another letter: a word with other letters than before
            return changes_between(intact, passed.text)
    return changes_between(intact, passed.text, kin)


def _moved(intact: str, passed: Passed, unit: str) -> tuple[Change, ...]:
    words = find_words(intact)
    return tuple(
        described(span.intact, span.shown, span.order, pieces=span.pieces, unit=unit).at(
            sum(word.start < span.begin for word in words), span.start
        )
        for span in passed.spans
        if span.shown
    )


def _masked(intact: str, shown: str, operation: Operation) -> tuple[Change, ...]:
    """Describe masked letters; for finding words the mask must be a letter, or would_’t would be two words."""
    as_letters = "".join(
        before if before == after else _LETTER for before, after in zip(intact, shown, strict=True)
    )
    return tuple(
        change._replace(shown=shown[change.start : change.start + len(change.shown)])
        for change in changes_between(intact, as_letters, operation)
    )


def _dropped(intact: str, shown: str, operation: PublishedOperation) -> dict[str, float | str | None]:
    if operation.protocol is None or "text_dropped" not in {fault.key for fault in operation.protocol.faults}:
        return {}
    return {"words_dropped": max(0, len(_WORD.findall(intact)) - len(_WORD.findall(shown)))}


CHOICES = "choices"
_SPEAKER = re.compile(r"^[^:\n]{1,40}:", re.MULTILINE)
DIALOGUE = "dialogue"


class Unsuitable(UserError):
    """A record lacks what a task needs; skipped where the study allows, else told to the user."""


@dataclass(frozen=True)
class TaskRecord:
    """One record as a task asks it."""

    record: Record  # the record
    field: str  # the text that conditions change
    beside: tuple[str, ...] = ()  # further texts, shown as they are
    choices: tuple[str, ...] | None = None  # options in the order of the corpus; None for open answers
    answer: str | None = None  # what is right: an option, a phrase, the intact text
    key: Mapping[str, Any] | None = None  # what scoring needs besides (see stimuli.item.Item)

    @property
    def text(self) -> str:
        """The text that conditions change."""
        return self.record.texts[self.field]

    def movable_words(self) -> tuple[int, ...] | None:
        """Return which words may change: in a dialogue none of those that say who speaks, elsewhere all (None)."""
        if self.field != DIALOGUE:
            return None
        text = nfc(self.text)
        labels = speaker_labels(self.field, text)
        ends = [end for _, end in labels]
        movable = []
        for place, start in enumerate(word_starts(text)):
            near = bisect_right(ends, start)
            if near == len(labels) or start < labels[near][0]:
                movable.append(place)
        return tuple(movable)


def speaker_labels(field: str, text: str) -> list[tuple[int, int]]:
    """Return begin and end of the speaker labels in a dialogue: the text up to the colon of each line."""
    return [match.span() for match in _SPEAKER.finditer(text)] if field == DIALOGUE else []


def where_is(record: Record) -> str:
    """State which record is meant, and where it stands."""
    line = f", line {record.line}" if record.line else ""
    if record.file == record.corpus:
        return f"record {record.record_id!r} of {record.corpus}{line}"
    return f"record {record.record_id!r} of {record.corpus}" + (
        f" ({record.file}{line})" if record.file else ""
    )


def reading_field(record: Record, field: str | None = None) -> str:
    """Return the name of the text that conditions change: as asked for, else the corpus's, else the only one."""
    if field is not None:
        return field
    if record.corpus in corpora():
        return corpora()[record.corpus].reading_field
    if len(record.texts) == 1:
        return next(iter(record.texts))
    raise UserError(
        f"{where_is(record)} has the texts {', '.join(record.texts)}, and none is named as the one to scramble",
        mend="Name it under field.",
    )


def has_text(record: Record, field: str) -> str:
    """Return the name of a field after checking that the record has a text there."""
    if field not in record.texts:
        raise Unsuitable(
            f"{where_is(record)} has no text {field!r} (it has {', '.join(record.texts)})",
            mend="on_bad: skip leaves such records out; a selection of the corpus may hold only those that have it.",
        )
    if not record.texts[field].strip():
        raise Unsuitable(f"{where_is(record)}: its {field} is empty")
    return field


def labelled(record: Record) -> str:
    """Return the record's answer."""
    if record.answer is None or not record.answer.strip():
        raise Unsuitable(
            f"{where_is(record)} has no answer: it is not labelled",
            mend="Use a labelled split, or on_bad: skip to leave such records out.",
        )
    if record.choices is not None and record.answer not in record.choices:
        raise Unsuitable(
            f"{where_is(record)}: answer {record.answer!r} is none of its choices {list(record.choices)!r}"
        )
    return record.answer


def require_unlike(record: Record) -> None:
    """Refuse a record with two choices that are the same; copies of published stimuli have some."""
    if record.choices is not None and len(set(map(nfc, record.choices))) < len(record.choices):
        raise Unsuitable(f"{where_is(record)}: two of its choices are the same: {list(record.choices)!r}")


def corrected_shown(
    asked: TaskRecord, levels: FactorLevels, design: ItemDesign, also: Sequence[str] = ()
) -> list[dict[str, DisplayedField]]:
    """Return a record's texts in every condition, with a separate draw for each word."""
    name = asked.record.record_id
    texts = {
        field: (asked.record.texts[has_text(asked.record, field)], f"{name}/{field}")
        for field in also
        if field != CHOICES
    }
    texts = {asked.field: (asked.text, name), **texts}
    if CHOICES in also:
        for number, choice in enumerate(asked.choices or (), 1):
            texts[f"choice {number}"] = (choice, f"{name}/choice {number}")
    operations = levels.operations(design.settings)
    _keep_turns(asked, operations)
    movable = asked.movable_words()
    words = {asked.field: movable}
    by_field = {
        field: show_in_conditions(text, operations, design, field=field, item_id=key, words=words.get(field))
        for field, (text, key) in texts.items()
    }
    _require_change(asked, by_field[asked.field], operations)
    reading = [withheld_shown(one, levels) for one in by_field[asked.field]]
    if movable is not None:
        kinds = {operation.name for operation in operations.values() if not operation.changes_nothing}
        reading = _without_short(reading, 1 if design.settings.dose == "as_published" else len(kinds))
    by_field[asked.field] = reading
    return [{field: shown[place] for field, shown in by_field.items()} for place in range(len(operations))]


def _keep_turns(asked: TaskRecord, operations: Mapping[str, Operation]) -> None:
    """Refuse to move sentences of a dialogue, for it would no longer show who said what."""
    moved = next((operation for operation in operations.values() if operation.type.unit == "sentence"), None)
    if moved is not None and asked.field == DIALOGUE:
        raise UserError(
            f"{moved.label}: the sentences of a dialogue cannot be reordered without losing its turns",
            mend="Move letters or words instead.",
        )


def _without_short(reading: Sequence[DisplayedField], conditions: int) -> list[DisplayedField]:
    """Leave out words that are too short for every condition, which goes without saying unless words are named."""
    reasons = {word["reason"] for shown in reading for word in shown.left_intact}
    short = {
        reason
        for reason in reasons
        if [part.endswith(TOO_SHORT) for part in reason.split("; ")] == [True] * conditions
    }
    return [
        replace(shown, left_intact=tuple([part for part in shown.left_intact if part["reason"] not in short]))
        for shown in reading
    ]


def _require_change(
    asked: TaskRecord, shown: Sequence[DisplayedField], operations: Mapping[str, Operation]
) -> None:
    for field in shown:
        operation = operations[field.level]
        always = operation.rate == 1 and operation.texts == 1
        if always and not operation.changes_nothing and not field.changes:
            raise Unsuitable(
                f"{where_is(asked.record)}: condition {field.level!r} ({operation.label}) can change no word of its "
                f"{asked.field}",
                mend=f"Leave the record out (on_bad: skip), or {option_to_change(field)}.",
            )


def published_shown(
    records: Sequence[Record], fields: Sequence[str], levels: FactorLevels, language: str
) -> list[Callable[[], list[dict[str, DisplayedField]]]]:
    """Scramble texts as the published stimuli were made: one pass over each split, in the order given."""
    result: dict[int, Callable[[], list[dict[str, DisplayedField]]]] = {}
    splits: dict[tuple[str, str | None, str], list[int]] = {}
    for place, (record, field) in enumerate(zip(records, fields, strict=True)):
        splits.setdefault((record.corpus, record.split, has_text(record, field)), []).append(place)

    def show(passes: PublishedPasses, number: int, field: str) -> list[dict[str, DisplayedField]]:
        return [{field: withheld_shown(text, levels)} for text in passes.shown(number, field, language)]

    for (_, _, field), places in splits.items():
        passes = published_passes([records[place].texts[field] for place in places], levels.given)
        for number, place in enumerate(places):
            result[place] = functools.partial(show, passes, number, field)
    return [result[place] for place in range(len(records))]


def item_of(
    asked: TaskRecord, shown: Mapping[str, DisplayedField], condition: Mapping[str, str], design: ItemDesign
) -> Item:
    """Make the item of one condition from what it shows; ``design`` names set, role and seed."""
    record = asked.record
    reading = shown[asked.field]
    options, answer = _options(asked, shown)
    texts = {field: text.text for field, text in shown.items() if field in record.texts}
    beside = {field: nfc(record.texts[field]) for field in asked.beside if field not in texts}
    twice = sorted(set(record.extra) & set(reading.covariates))
    if twice:
        raise Unsuitable(
            f"{where_is(record)}: {twice[0]!r} is the name of a covariate that is computed",
            mend="Give the column another name.",
        )
    return Item(
        item_id=record.record_id,
        set_name=design.set_name or "",
        role=design.role,
        condition=dict(condition),
        shown={**texts, **beside},
        intact={field: text.intact for field, text in shown.items()},
        choices=options,
        answer=answer,
        key=dict(asked.key or {}),
        changes=tuple(change for text in shown.values() for change in text.changes),
        left_intact=tuple(word for text in shown.values() for word in text.left_intact),
        covariates={**reading.covariates, **record.extra},
        provenance=Provenance(
            source=record.corpus,
            source_id=record.record_id,
            split=record.split,
            licence=record.licence,
            operation=reading.operation,
            seed=design.seed,
        ),
    )


def _options(
    asked: TaskRecord, shown: Mapping[str, DisplayedField]
) -> tuple[tuple[str, ...] | None, str | None]:
    """Return options and answer as shown: in other words where the options change with the condition."""
    if asked.choices is None:
        return None, None if asked.answer is None else nfc(asked.answer)
    intact = [nfc(choice) for choice in asked.choices]
    options = tuple(
        shown[f"choice {number}"].text if f"choice {number}" in shown else choice
        for number, choice in enumerate(intact, 1)
    )
    if len(set(options)) < len(set(intact)):
        raise Unsuitable(f"{where_is(asked.record)}: two of its choices came out alike: {list(options)!r}")
    if asked.answer is None:
        return options, None
    answer = nfc(asked.answer)
    answers = [answer] if answer in intact else answer.split(ANSWERS_BETWEEN)
    return options, ANSWERS_BETWEEN.join(options[intact.index(one)] for one in answers)
