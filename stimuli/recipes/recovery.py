"""Recovery items: a scrambled text is shown, the intact text is to be given back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from stimuli.corpora.source_text import SourceText
from stimuli.item import Item
from stimuli.recipes.conditions import (
    OperationSpec,
    Shown,
    describe,
    parse_levels,
    show_in_conditions,
)
from stimuli.recipes.sampling import draw_some
from stimuli.scramble import Change, Operation, changes_between, parse_operation
from stimuli.scramble.changes import described
from stimuli.scramble.published import (
    PUBLISHED_SEED,
    Given,
    PublishedOperation,
    published_operation,
    published_pass,
    tidy,
)
from stimuli.scramble.published.typobench2024 import Passed, trace
from stimuli.scramble.text import DEFAULT, Scrambled, ScrambleSettings
from stimuli.scramble.words import find_words, nfc

# A letter that no text has: it stands for a mask while words are looked for.
_LETTER = "ʘ"
_WORD = re.compile(r"\w+")


def recovery_items(
    texts: Sequence[SourceText],
    *,
    factor: str | None,
    levels: Mapping[str, OperationSpec],
    seed: int,
    field: str = "sentence",
    settings: ScrambleSettings = DEFAULT,
    set_name: str = "recovery",
    published: bool = False,
    number: int | None = None,
) -> list[Item]:
    """Make recovery items: text by text, each in every condition, with the intact text as the answer."""
    show: Callable[[int], list[Shown]]
    if published:
        given = {"": "none"} if factor is None else levels
        show = published_passes(texts, given, field=field, language=settings.language).shown
        seeds = _published_seeds(given)
    else:
        operations = parse_levels(factor, levels, settings)
        seeds = dict.fromkeys(operations, seed)

        def corrected(place: int) -> list[Shown]:
            text = texts[place]
            return show_in_conditions(
                text.text, operations, field=field, item_id=text.source_id, seed=seed, settings=settings
            )

        show = corrected
    drawn = draw_some(
        range(len(texts)), number, seed=seed, key=lambda place: texts[place].source_id, what="texts"
    )
    return [
        _item(texts[place], one, factor, field, set_name, seeds[one.level])
        for place in drawn
        for one in show(place)
    ]


def _published_seeds(levels: Mapping[str, Given]) -> dict[str, int]:
    """Return the seed of every level's pass; an intact level takes that of the others."""
    seeds = {level: published_operation(given).seed for level, given in levels.items()}
    any_seed = next((seed for seed in seeds.values() if seed is not None), PUBLISHED_SEED)
    return {level: any_seed if seed is None else seed for level, seed in seeds.items()}


@dataclass(frozen=True)
class PublishedPasses:
    """Texts as published passes left them."""

    intact: tuple[str, ...]  # in NFC as all items are, tidied as the paper's own were
    passed: Mapping[str, Sequence[Passed]]  # by level
    operations: Mapping[str, PublishedOperation]
    field: str
    language: str

    def shown(self, place: int) -> list[Shown]:
        """Show one text in every condition; ``words_dropped`` among the covariates says how many words were lost, where some were."""
        done = {level: texts[place] for level, texts in self.passed.items()}
        return _described(self.intact[place], done, self.operations, self.field, self.language)


def published_passes(
    texts: Sequence[SourceText],
    levels: Mapping[str, Given],
    *,
    field: str,
    language: str,
) -> PublishedPasses:
    """Scramble a list of texts as the published stimuli were made, one pass a condition."""
    operations = {level: published_operation(given) for level, given in levels.items()}
    papers = {operation.protocol.paper for operation in operations.values() if operation.protocol}
    # Cao et al. tidied spaces; only a text so tidied is the one that was shown intact.
    prepare = nfc if papers == {"typobench2024"} else lambda text: tidy(nfc(text))
    intact = tuple(prepare(text.text) for text in texts)
    passed = {level: _passed(intact, operation) for level, operation in operations.items()}
    return PublishedPasses(intact, passed, operations, field, language)


def _passed(texts: Sequence[str], operation: PublishedOperation) -> list[Passed]:
    if operation.protocol is not None and operation.protocol.paper == "typobench2024":
        return trace(texts, operation, operation.protocol.seed)
    return [Passed(text) for text in published_pass(texts, operation)]


def _described(
    intact: str,
    passed: Mapping[str, Passed],
    operations: Mapping[str, PublishedOperation],
    field: str,
    language: str,
) -> list[Shown]:
    results = {
        level: Scrambled(nfc(one.text), _changes(intact, one, operations[level]))
        for level, one in passed.items()
    }
    as_intact = dict.fromkeys(results, parse_operation("none"))
    return [
        replace(
            one,
            operation=operations[one.level].label,
            covariates={**one.covariates, **_dropped(intact, one.text, operations[one.level])},
        )
        for one in describe(intact, results, as_intact, field=field, language=language)
    ]


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
    as_letters = "".join(one if one == other else _LETTER for one, other in zip(intact, shown, strict=True))
    return tuple(
        change._replace(shown=shown[change.start : change.start + len(change.shown)])
        for change in changes_between(intact, as_letters, operation)
    )


def _dropped(intact: str, shown: str, operation: PublishedOperation) -> dict[str, float | str | None]:
    if operation.protocol is None or "text_dropped" not in {fault.key for fault in operation.protocol.faults}:
        return {}
    return {"words_dropped": max(0, len(_WORD.findall(intact)) - len(_WORD.findall(shown)))}


def _item(text: SourceText, shown: Shown, factor: str | None, field: str, set_name: str, seed: int) -> Item:
    return shown.item(
        text.source_id,
        set_name=set_name,
        factor=factor,
        field=field,
        seed=seed,
        answer=shown.intact,
        source=text.source,
        split=text.split,
        licence=text.licence,
    )
