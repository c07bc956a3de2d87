"""One text in every condition: what sentence, word and recovery items share."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

from stimuli.covariates import Covariates, text_covariates
from stimuli.errors import UserError
from stimuli.item import ChangeRecord, Item, LeftIntactRecord, Provenance, Role
from stimuli.scramble.changes import Change
from stimuli.scramble.registry import Operation, parse_operation
from stimuli.scramble.text import Scrambled, ScrambleSettings, common_words, scramble_conditions
from stimuli.scramble.types import Unit
from stimuli.scramble.word_order import WITHOUT_SPACES
from stimuli.scramble.words import nfc

OperationSpec = str | Mapping[str, object] | Operation


@dataclass(frozen=True)
class Shown:
    """A field's text as one condition shows it, with what an item says about that."""

    level: str
    text: str
    intact: str
    operation: str
    changes: tuple[ChangeRecord, ...]
    left_intact: tuple[LeftIntactRecord, ...]
    covariates: Covariates

    def item(
        self,
        item_id: str,
        *,
        set_name: str,
        factor: str | None,
        field: str,
        seed: int,
        answer: str | None,
        source: str,
        choices: tuple[str, ...] | None = None,
        role: Role = "test",
        split: str | None = None,
        licence: str | None = None,
        also_shown: Mapping[str, str] | None = None,
        also_known: Mapping[str, float | str | None] | None = None,
    ) -> Item:
        """Make the item of this condition."""
        return Item(
            item_id=item_id,
            set_name=set_name,
            role=role,
            condition={} if factor is None else {factor: self.level},
            shown={field: self.text, **(also_shown or {})},
            intact={field: self.intact},
            choices=choices,
            answer=answer,
            changes=self.changes,
            left_intact=self.left_intact,
            covariates={**self.covariates, **(also_known or {})},
            provenance=Provenance(
                source=source,
                source_id=item_id,
                split=split,
                licence=licence,
                operation=self.operation,
                seed=seed,
            ),
        )


def parse_levels(
    factor: str | None, levels: Mapping[str, OperationSpec], settings: ScrambleSettings
) -> dict[str, Operation]:
    """Read the operation of every level of a factor; without a factor there is one nameless intact level."""
    if factor is None:
        return {"": parse_operation("none")}
    if not levels:
        raise UserError(f"factor {factor!r} has no levels", mend="Give for example {intact: none, KFL: KFL}.")
    return {level: parse_operation(given, default_rate=settings.rate) for level, given in levels.items()}


def show_in_conditions(
    text: str,
    operations: Mapping[str, Operation],
    *,
    field: str,
    item_id: str,
    seed: int,
    settings: ScrambleSettings,
    words: Collection[int] | None = None,
) -> list[Shown]:
    """Scramble a text once per level and describe each result as an item does."""
    results = scramble_conditions(
        text, operations, seed=seed, item_id=item_id, words=words, settings=settings
    )
    return describe(text, results, operations, field=field, language=settings.language)


def describe(
    text: str,
    results: Mapping[str, Scrambled],
    operations: Mapping[str, Operation],
    *,
    field: str,
    language: str,
) -> list[Shown]:
    """Describe scrambled texts of one intact text as an item does."""
    intact = nfc(text)
    targets = {
        change.word for result in results.values() for change in result.changes if change.unit == "letter"
    }
    # With common eligibility all conditions leave the same words, and share their records.
    left_of = {
        left: tuple(
            [
                LeftIntactRecord(field=field, word=one.word, intact=one.intact, reason=one.reason)
                for one in left
            ]
        )
        for left in {result.left_intact for result in results.values()}
    }
    return [
        Shown(
            level=level,
            text=result.text,
            intact=intact,
            operation=operations[level].label,
            changes=tuple(change_record(change, field) for change in result.changes),
            left_intact=left_of[result.left_intact],
            covariates=text_covariates(text, language=language, targets=targets, changes=result.changes),
        )
        for level, result in results.items()
    ]


def change_record(change: Change, field: str) -> ChangeRecord:
    """Return a change as an item says it."""
    return ChangeRecord(
        field=field,
        unit=cast(Unit, change.unit),
        word=change.word,
        start=change.start,
        intact=change.intact,
        shown=change.shown,
        permutation=list(change.permutation),
        displaced=change.displaced,
        mean_displacement=change.mean_displacement,
        substituted=change.substituted,
        inserted=change.inserted,
        deleted=change.deleted,
    )


def option_to_change(one: Shown) -> str:
    """Return the option by which a condition that changed no word would change one."""
    is_unspaced = any(WITHOUT_SPACES in left["reason"] for left in one.left_intact)
    return "set unspaced: change" if is_unspaced else "lower min_letters"


def require_change(shown: list[Shown], operations: Mapping[str, Operation], item_id: str) -> None:
    """Refuse an item in which a condition changes no letter, unless its rate is too low for a text so short.

    A text of one sentence, or of one word, cannot change its order; it says so in ``left_intact`` and is no
    error.
    """
    for one in shown:
        operation = operations[one.level]
        may_stay = operation.texts < 1 or operation.type.unit != "letter"
        if operation.changes_nothing or may_stay or one.changes:
            continue
        if operation.rate < 1 and common_words(one.intact, [operation]):
            continue
        reasons = [f"{left['intact']!r} ({left['reason']})" for left in one.left_intact]
        raise UserError(
            f"item {item_id!r}: condition {one.level!r} ({operation.label}) can change no word"
            + (f": {', '.join(reasons)}" if reasons else ""),
            mend=f"Mark another word, {option_to_change(one)}, or take the item out.",
        )
