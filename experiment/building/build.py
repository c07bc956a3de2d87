"""Builds a study's items in memory, then writes them with their sidecar."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from experiment.building.corpus import items_from_corpus, items_from_realtimeqa
from experiment.building.language import check_language
from experiment.building.material_context import Made, answering_steps, path_of
from experiment.building.practice import practice_items, practice_rows, practice_screens
from experiment.building.tables import (
    items_from_lexical_decision,
    items_from_sentences,
    items_from_words,
    sentence_rows,
    word_rows,
)
from experiment.integrity.build_provenance import BUILT_FROM, origin_of
from experiment.integrity.freezing import refuse_if_changed
from experiment.lists import blocks_of, blocks_showing, conditions, items_of_list
from experiment.procedure.lines import LINE_LENGTH, break_lines, cells
from experiment.procedure.steps import shown_text
from experiment.study import Study
from experiment.study.faults import Faults, factor_settings
from experiment.study.keys import key_remark
from experiment.study.semantic_checks import kind_of_material, material_kinds
from experiment.study.study import ITEMS
from experiment.trials import choice_settings
from stimuli.audit.audit import Audit, audit_items
from stimuli.audit.page import write_audit
from stimuli.covariates import unavailable
from stimuli.errors import UserError
from stimuli.item import Item, build_meta, items_content, write_items
from stimuli.papers import material_keywords
from stimuli.tokens import Tokenizer, load_tokenizer, token_measures


def tokenizer_of(study: Study) -> Tokenizer | None:
    """Return the tokenizer that the study names; a relative path starts from the study's folder."""
    named = study.get("materials", "tokenizer")
    if named is None:
        return None
    path_in_study = study.folder / Path(named).expanduser()
    try:
        return load_tokenizer(path_in_study if path_in_study.exists() else named)
    except UserError as error:
        place = study.place("materials", "tokenizer")
        raise UserError(f"{place}: {error.message}", mend=error.mend) from None


def with_token_measures(items: Sequence[Item], tokenizer: Tokenizer | None) -> list[Item]:
    """Return the items with token counts before and after the change as covariates, over all fields shown."""
    if tokenizer is None:
        return list(items)
    return [replace(item, covariates={**item.covariates, **_measures(item, tokenizer)}) for item in items]


def _measures(item: Item, tokenizer: Tokenizer) -> dict[str, float | None]:
    shown = "\n".join(item.shown.values())
    intact = "\n".join(item.intact.get(name, text) for name, text in item.shown.items())
    return {
        name: value if value is None else round(value, 3)
        for name, value in token_measures(intact, shown, tokenizer).items()
    }


CELL_PX = 17.28
"""Width of a character of the stimuli in CSS pixels, unless a study sets it by ``screen_size`` (1.6 rem of 18 px, 0.6 em)."""
MARGIN_PX = 54
"""Left and right margins of the lines together."""
LONGEST = 120
"""The longest line that ``line_length`` allows, in characters."""


def line_remarks(study: Study, items: Sequence[Item]) -> list[str]:
    """Return, for each block with a moving window, the number of texts with several lines, and where the first breaks."""
    remarks = []
    for number, place in enumerate(blocks_of(study)):
        length = int(study.get("procedure", place, "block", "line_length", default=LINE_LENGTH))
        texts = dict(_texts(study, items, number, place))
        broken = dict(_broken(texts, length))
        where = study.place("procedure", place, "block")
        _require_room(study, where, {item_id: break_lines(text, length) for item_id, text in texts.items()})
        if not broken:
            continue
        first, lines = next(iter(broken.items()))
        longest = max(cells(line) for text in texts.values() for line in text.split("\n"))
        mend = (
            f"line_length: {longest} keeps each on one line"
            if longest <= LONGEST
            else f"shorten those of more than {LONGEST} characters to keep each on one line"
        )
        most = max(map(len, broken.values()))
        remarks.append(
            f"note: {where}: {len(broken)} of {len(texts)} texts take up to {most} lines in the moving window, broken after "
            f"the same words for everyone (lines have {length} characters at most; first: {first}, after "
            f"{lines[0].split()[-1]!r}); {mend}"
        )
    return remarks


def _texts(study: Study, items: Sequence[Item], number: int, place: int) -> Iterator[tuple[str, str]]:
    """Yield the texts that a block shows word by word: item and condition, and the text."""
    for step in study.get("procedure", place, "block", "trial"):
        read = step.get("read", {})
        for item in items if read.get("as") == "moving_window" else ():
            if number in blocks_showing(study, item.set_name) and item.role != "exemplar":
                name = " ".join([item.item_id, *item.condition.values()])
                yield name, shown_text(read["show"], item)


def _broken(texts: dict[str, str], length: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the texts with more lines than written."""
    for name, text in texts.items():
        lines = break_lines(text, length)
        if len(lines) > len(text.split("\n")):
            yield name, lines


def _require_room(study: Study, where: str, lines: dict[str, list[str]]) -> None:
    """Raise an error for a line wider than the smallest admitted window."""
    smallest = study.get("participants", "eligible", "screen")
    if smallest is None or any("screen_size" in screen for screen in study.get("procedure")):
        return  # without a rule each page requests the window that it needs; a measured size differs between screens
    width = int(smallest.split("x")[0])
    room = int((width - MARGIN_PX) / CELL_PX)
    for name, broken in lines.items():
        longest = max(map(cells, broken))
        if longest > room:
            needed = math.ceil(longest * CELL_PX) + MARGIN_PX
            raise UserError(
                f"{where}: a line of {name} has {longest} characters and needs a window of {needed} pixels; "
                f"participants.eligible.screen allows {smallest}, which holds {room} characters",
                mend=f"Set `line_length: {room}`, so that everyone reads the same shorter lines, or allow windows of {needed} "
                "pixels and more.",
            )


AUDIT = "audit"
KINDS: Mapping[str, Callable[[Study], Made]] = {
    "sentences": items_from_sentences,
    "words": items_from_words,
    "lexical_decision": items_from_lexical_decision,
    "realtimeqa": items_from_realtimeqa,
    "corpus": items_from_corpus,
}


@dataclass(frozen=True)
class Built:
    """Result of a build: items with provenance, their file and its hash, and the audit."""

    made: Made
    file: Path
    sha256: str
    audit: Audit
    audit_page: Path

    @property
    def items(self) -> tuple[Item, ...]:
        """The items in the order of the file."""
        return tuple(self.made.items)


def build_study(study: Study) -> Built:
    """Build a study's items, audit them, and write items, sidecar and audit, each file atomically."""
    tokenizer = tokenizer_of(study)
    made = _made(study, tokenizer)
    content = items_content(made.items)
    refuse_if_changed(study, items=hashlib.sha256(content).hexdigest())
    audit = _audited(study, made, tokenizer)
    file = study.folder / ITEMS
    audited = write_audit(study.folder / AUDIT, audit)
    meta = {
        **build_meta(study.seed, made.sources),
        BUILT_FROM: origin_of(study, made.sources),
        "audit": audited,
        "skipped": made.skipped,
    }
    digest = write_items(file, made.items, meta, content=content)
    return Built(made, file, digest, audit, study.folder / AUDIT / "audit.html")


def _audited(study: Study, made: Made, tokenizer: Tokenizer | None) -> Audit:
    """Return the audit of items with the study's settings (``materials.audit``)."""
    settings = study.get("materials", "audit", default={})
    items = _apart(study, made.items)
    lists = _together(study, items)
    return audit_items(
        items,
        language=made.language or study.language,
        tokenizer=tokenizer,
        shortcut=settings.get("shortcut", True),
        seed=study.seed,
        lists=lists and {item_id: f"{condition} in list 1" for item_id, condition in lists.items()},
        every_line=study.get("design", "lists") == "one",
        by_design=(*settings.get("by_design", ()), *_made_to_differ(study, items)),
    )


def _apart(study: Study, items: list[Item]) -> list[Item]:
    """Return items with separate sets for different session levels, because no reader sees them together."""
    apart = []
    for item in items:
        levels = [level for factor, level in item.condition.items() if factor in study.between]
        apart.append(replace(item, set_name=", ".join([item.set_name, *levels])) if levels else item)
    return apart


def _made_to_differ(study: Study, items: Sequence[Item]) -> set[str]:
    """Return covariates in which conditions differ by definition, as the discriminability of shapes in each family does."""
    if study.own is None or not study.own[1].differs:
        return set()
    return {name for item in items for name in item.covariates}


def _together(study: Study, items: Sequence[Item]) -> dict[str, str] | None:
    """Return the condition of each item in list 1: lists show its items together, in whichever condition."""
    if study.get("design", "lists") == "one" or conditions(items) == 1:
        return None
    lines: dict[str, list[Item]] = {}
    for item in items:
        if item.role == "test":
            lines.setdefault(item.item_id, []).append(item)
    varied = {
        factor
        for family in lines.values()
        for factor, level in family[0].condition.items()
        if any(line.condition.get(factor) != level for line in family)
    }
    return {
        item.item_id: ", ".join(level for factor, level in item.condition.items() if factor in varied)
        for item in items_of_list(study, items, 1)
        if item.role == "test"
    }


CELL, UNEVEN = 4, 0.5
"""Items that each condition of a list has at least, and the difference in the share of an answer that is reported."""


def _uneven_answers(study: Study, items: Sequence[Item]) -> Iterator[str]:
    """Report an answer that is right far more often in one condition than in another, within each list of a Latin square."""
    answers: dict[str, set[str | None]] = {}
    for item in items:
        if item.role == "test":
            answers.setdefault(item.item_id, set()).add(item.answer)
    set_of = {item.item_id: item.set_name for item in items}
    counts: dict[str, dict[str, Counter[str]]] = {}
    for item_id, condition in (_together(study, items) or {}).items():
        (answer, *others), set_name = answers[item_id], set_of[item_id]
        keys = [settings.get("keys") for _, settings in answering_steps(study, set_name)]
        if answer is not None and not others and any(isinstance(own, dict) and answer in own for own in keys):
            counts.setdefault(set_name, {}).setdefault(condition, Counter())[answer] += 1
    for by_condition in counts.values():
        totals = {condition: count.total() for condition, count in by_condition.items()}
        if min(totals.values()) < CELL:
            continue
        for answer in sorted(set().union(*by_condition.values())):
            shares = {condition: by_condition[condition][answer] / totals[condition] for condition in totals}
            most, least = max(shares, key=shares.__getitem__), min(shares, key=shares.__getitem__)
            if shares[most] - shares[least] >= UNEVEN:
                often, rarely = (
                    f"{by_condition[condition][answer]} of {totals[condition]} items in {condition}"
                    for condition in (most, least)
                )
                yield (
                    f"note: {study.place('materials')}: in list 1, {answer!r} is right for {often} and for {rarely}, so a preference "
                    "for one answer would look like an effect of the condition, in every list; the "
                    f"conditions repeat every {conditions(items)} rows: change the order of the rows"
                )
                break


def make_items(study: Study) -> Made:
    """Return the items of a study, practice items after test items, with messages about them."""
    return _made(study, tokenizer_of(study))


def check_tables(study: Study, faults: Faults) -> None:
    """Check the tables of an invalid study, as far as its settings define their contents."""
    reads = [
        *factor_settings(),
        *(("materials", name) for name in material_kinds()),
        ("materials", "columns"),
        ("procedure",),
    ]
    faults.check(_check_tables, study, faults, reads=reads)


def _check_tables(study: Study, faults: Faults) -> None:
    materials = study.get("materials")
    if "sentences" in materials:
        faults.check(lambda: sentence_rows(study, path_of(study, "sentences"), [], []))
    elif "words" in materials and materials["words"] != ITEMS:
        faults.check(lambda: word_rows(study, path_of(study, "words"), []))
    elif "words" in (materials.get("lexical_decision") or ()):
        faults.check(lambda: word_rows(study, path_of(study, "lexical_decision", "words"), []))
    for set_name, i, settings in practice_screens(study):
        if "items" in settings:
            faults.check(practice_rows, study, set_name, i, [])


def _imported(study: Study) -> Made:
    """Return the imported items: a study whose words are its own items file has no other material."""
    if not (study.folder / ITEMS).exists():
        raise UserError(
            f"{study.place('materials', 'words')} is {ITEMS}, which `wrods import` writes",
            mend=f"Import answers first: wrods import {study.folder} TABLE --mapping MAP.yaml",
        )
    return Made(list(study.items), remarks=[f"{len(study.items)} items, as `wrods import` wrote them"])


def _made(study: Study, tokenizer: Tokenizer | None) -> Made:
    materials = study.get("materials")
    if materials.get("words") == ITEMS:
        return _imported(study)
    kind = kind_of_material(study)
    faults, made = Faults(), []
    check_language(study, faults)
    for make in (lambda: _of_kind(study, kind), lambda: practice_items(study)):
        faults.check(lambda make=make: made.append(make()))
    faults.report()
    tested, practice = made
    items = with_token_measures([*tested.items, *practice.items], tokenizer)
    if study.get("design", "lists", default="latin_square") == "latin_square":
        conditions(items)
    _require_answerable(study, items)
    language = tested.language or study.language
    return Made(
        items,
        [*tested.sources, *practice.sources],
        [
            *tested.remarks,
            *practice.remarks,
            *_keys_elsewhere(study),
            *line_remarks(study, items),
            *_uneven_answers(study, items),
            *_lacking(language, items),
        ],
        [*tested.skipped, *practice.skipped],
        tested.language,
    )


def _require_answerable(study: Study, items: Sequence[Item]) -> None:
    """Raise an error unless correct answers are possible: answers of items must be among the labels of the keys."""
    by_set: dict[str, list[dict[str, str]]] = {}
    for item in items:
        if item.set_name not in by_set:
            given = [settings.get("keys") for _, settings in answering_steps(study, item.set_name)]
            by_set[item.set_name] = [keys for keys in given if isinstance(keys, dict)]
        for keys in by_set[item.set_name]:
            if item.answer is not None and item.answer not in keys:
                raise UserError(
                    f"item {item.item_id!r} has the answer {item.answer!r}, and the keys are for "
                    f"{', '.join(map(str, keys))}",
                    mend="Let the labels under keys and the answers of the items be the same.",
                )


def _keys_elsewhere(study: Study) -> list[str]:
    """Return messages on keys that are not easily reached on every keyboard although letters or digits would be."""
    warnings: list[str] = []
    for i, screen in enumerate(study.get("procedure")):
        for j, step in enumerate(screen.get("block", {}).get("trial", ())):
            keys = choice_settings(step).get("keys", ())
            path = ("procedure", i, "block", "trial", j, *step, "keys")
            for key in keys.values() if isinstance(keys, dict) else keys:
                if (remark := key_remark(key)) is not None:
                    warnings.append(
                        f"note: {study.place(*path)}: {key!r}: {remark}; letters and digits do not"
                    )
    return warnings


def _of_kind(study: Study, kind: str) -> Made:
    """Return the items of a kind of material; an error without a line in a file gets the line in the study."""
    try:
        paper = material_keywords().get(kind)
        make = KINDS[kind] if paper is None else paper.part(paper.materials[kind])
        made: Made = make(study)
        return made
    except UserError as error:
        if ", line " in error.message or "row " in error.message:
            raise
        place = study.place("materials", kind)
        raise UserError(f"{place}: {error.message}", mend=error.mend, exit_code=error.exit_code) from None


def _lacking(language: str, items: Sequence[Item]) -> list[str]:
    """Return messages on covariates for which the items' language has no resource."""
    used = {name for item in items for name in item.covariates}
    reasons: dict[str, list[str]] = {}
    for name, reason in unavailable(language).items():
        if name in used:
            reasons.setdefault(reason, []).append(name)
    return [f"not available: {', '.join(names)} ({reason})" for reason, names in reasons.items()]
