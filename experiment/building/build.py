"""Builds a study's items, practice items included, in memory, then writes them with their sidecar; refuses mixed languages."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import regex

from experiment.building.distractors import file_of, is_made, write_distractors
from experiment.building.forms import in_form
from experiment.building.material_context import (
    Made,
    answering_steps,
    in_design,
    item_design,
    known_columns,
    path_of,
    shown_fields,
)
from experiment.building.reading import maze_field, reading_remarks, with_sentences
from experiment.building.regions import without_region_marks
from experiment.building.tables import (
    items_from_corpus,
    items_from_lexical_decision,
    items_from_realtimeqa,
    items_from_sentences,
    items_from_words,
    lines_of,
    require_compared_columns,
    sentence_rows,
    sentences,
    table_beside,
    with_compared_columns,
    word_rows,
)
from experiment.building.versions import version_of_row
from experiment.integrity.build_provenance import BUILT_FROM, origin_of
from experiment.integrity.freezing import refuse_if_changed
from experiment.languages import pack_for, pack_languages
from experiment.lists import ITEM_COLUMNS, conditions, items_of_list, list_ids, possible_orders
from experiment.media import with_media
from experiment.shown_steps import (
    ShownSteps,
    check_planned_levels,
    check_shown_steps,
    check_styles,
    is_look,
    styles,
)
from experiment.study import Study
from experiment.study.format import key_remark
from experiment.study.semantic_checks import kind_of_material, material_kinds
from experiment.study.study import ITEMS
from experiment.study.yaml_source import Faults, KeyPath, factor_settings
from experiment.templates import consent_sentences, consent_source, parts_of, template_folders
from experiment.trials import NO_KEY, RATED, choice_settings
from stimuli.audit.audit import Audit, audit_items
from stimuli.audit.findings import by_set
from stimuli.audit.page import write_audit
from stimuli.corpora.tables import CorpusTable, unread_columns
from stimuli.covariates import Tokenizer, load_tokenizer, token_measures, unavailable
from stimuli.errors import UserError, together, unknown_name
from stimuli.item import Item, build_meta, items_content, write_items
from stimuli.lexicon import has_lexicon
from stimuli.papers import material_keywords
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.sentences import CHOICE_SEPARATOR, word_items
from stimuli.words import base_language, nfc

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


def practice_items(study: Study) -> Made:
    """Return the practice items of every practice screen, in the order of the procedure."""
    made = Made([])
    faults = Faults()
    for set_name, i, settings in practice_screens(study):
        if "rule" in settings:
            place = study.place("procedure", i, "practice", "rule")
            faults.check(lambda *given: made.items.extend(_of_rule(study, *given)), settings, set_name, place)
        else:
            faults.check(_add_screen, study, made, set_name, i)
    faults.report()
    return made


def practice_screens(study: Study) -> list[tuple[str, int, Mapping[str, Any]]]:
    """Return set name, index in the procedure and settings of every practice screen."""
    screens = [
        (i, screen["practice"]) for i, screen in enumerate(study.get("procedure")) if "practice" in screen
    ]
    return [(f"practice-{number}", i, settings) for number, (i, settings) in enumerate(screens, 1)]


def _add_screen(study: Study, made: Made, set_name: str, i: int) -> None:
    table = practice_rows(study, set_name, i, made.remarks)
    name, place = str(study.get("procedure", i, "practice", "items")), ("procedure", i, "practice", "items")
    made.items.extend(_of_screen(study, table, set_name, name, study.place(*place)))
    made.sources.append(study.folder / name)


def practice_rows(study: Study, set_name: str, i: int, remarks: list[str]) -> CorpusTable:
    """Return the table of a practice screen, the ``i``-th of the procedure."""
    name = str(study.get("procedure", i, "practice", "items"))
    table = table_beside(study, study.folder / name)
    columns = table.description.columns
    # practice may have the names of the materials' own columns
    called: Mapping[str, str] = study.get("materials", "columns", default={})
    named_alike = {
        wanted: str(own) for wanted, own in called.items() if str(own) in columns and wanted not in columns
    }
    if named_alike:
        table = table_beside(study, study.folder / name, columns=named_alike)
        columns = table.description.columns
    remarks += [
        f"{name}: {remark}" for remark in unread_columns(name, columns, known_columns(study, set_name))
    ]
    factors = [*dict.fromkeys(factor for at in study.crossing.conditions.values() for factor in at)]
    named = [factor for factor in factors if factor in columns]
    if named and len(named) < len(factors):
        missing = next(factor for factor in factors if factor not in columns)
        raise UserError(
            f"{name} has the column {named[0]!r} and no column {missing!r}",
            mend=f"Name a level of {' and of '.join(factors)} in each row, or of none.",
        )
    faults = [
        UserError(f"{name}, line {number}: {fault.message}", mend=fault.mend)
        for row, number in zip(table.rows, table.numbers, strict=True)
        for factor in [*named, *_of_materials(study)]
        if (fault := _fault_of_level(study, factor, row.get(factor), is_optional=factor not in named))
    ]
    if faults:
        raise together(faults)
    return table


def _of_materials(study: Study) -> dict[str, str]:
    """Return the factors whose levels pick rows or versions, or set steps, each with its first level."""
    crossing = study.crossing
    first = {
        factor: next(iter(levels)) for factor, levels in [*crossing.versions.items(), *crossing.steps.items()]
    }
    return {**(crossing.rows[0][0] if crossing.rows else {}), **first}


def _fault_of_level(study: Study, factor: str, level: Any, *, is_optional: bool) -> UserError | None:
    if str(level) in study.factors[factor] or (is_optional and not level):
        return None
    return unknown_name(f"level of {factor}", str(level), study.factors[factor])


def _of_rule(study: Study, settings: Mapping[str, Any], set_name: str, place: str) -> list[Item]:
    """Return practice items of a rule that the study does not test, made like those of the material's paper."""
    kind = kind_of_material(study)
    paper = material_keywords()[kind]
    try:
        made: list[Item] = paper.part(paper.practice[kind])(study, settings, set_name)
    except UserError as error:
        raise UserError(f"{place}: {error.message}", mend=error.mend) from None
    return made


def _of_screen(study: Study, rows: CorpusTable, set_name: str, file: str, place: str) -> list[Item]:
    materials = study.get("materials")
    design = replace(item_design(study), set_name=set_name, role="practice", source=file, on_bad="stop")
    if "sentences" in materials:
        if "item" not in rows[0]:  # practice needs no names of its own
            named = [{"item": f"{set_name}-{number}", **row} for number, row in enumerate(rows, 1)]
            rows = replace(rows, rows=tuple(named))
        if versions := study.crossing.versions:
            at_levels = [
                version_of_row(
                    row,
                    versions,
                    {factor: str(row.get(factor) or levels[0]) for factor, levels in versions.items()},
                )
                for row in rows
            ]
            rows = replace(rows, rows=tuple(at_levels))
        rows = replace(
            rows, rows=tuple(without_region_marks(study, rows.rows, rows.numbers, file, is_practice=True))
        )
        conditioned_rows, column = _conditions_told(study, rows)
        made = sentences(
            study, conditioned_rows, design, level_column=column, lines=lines_of(rows, "item")
        ).items
        by_item = {str(row["item"]): row for row in rows}
        made = tuple(with_compared_columns(study, made, lambda item: by_item[item.item_id]))
        return _placed(study, made, rows, key="item")
    if "words" in materials:
        words = [item for row in rows for item in _word(study, row, design)]
        return _placed(study, words, rows, key="word")
    ((_, settings),) = answering_steps(study, set_name)
    keys = settings.get("keys")
    fields = shown_fields(study, set_name)
    with_choices = keys is not None and not isinstance(keys, dict)
    missing = [
        name for name in (*fields, "answer", *(["choices"] if with_choices else [])) if name not in rows[0]
    ]
    if missing:
        raise UserError(f"{place}: {file} has no column {missing[0]!r} (it has {', '.join(rows[0])})")
    return [
        Item(
            item_id=str(row.get("item") or f"{set_name}-{i}"),
            set_name=set_name,
            role="practice",
            condition={},
            shown={field: row[field] for field in fields},
            intact={},
            choices=_choices_of(row) if with_choices else tuple(keys) if isinstance(keys, dict) else None,
            answer=row["answer"],
            provenance={
                "source": file,
                "source_id": str(row.get("item") or i),
                "split": None,
                "licence": None,
                "operation": "none",
                "seed": study.seed,
            },
        )
        for i, row in enumerate(rows, 1)
    ]


def _choices_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(part.strip() for part in str(row["choices"]).split(CHOICE_SEPARATOR))


def _conditions_told(
    study: Study, rows: Sequence[Mapping[str, Any]]
) -> tuple[Sequence[Mapping[str, Any]], str | None]:
    """Return rows with the condition in their columns, and the name of the column; None if there is none."""
    crossing = study.crossing
    factors = list(next(iter(crossing.conditions.values())))
    if crossing.factor is None or not all(factor in rows[0] for factor in factors):
        return rows, None
    cells = {tuple(at.values()): cell for cell, at in crossing.conditions.items()}
    conditioned_rows = []
    for row in rows:
        at = tuple(str(row[factor]) for factor in factors)
        conditioned_rows.append({**row, crossing.factor: cells[at]})
    return conditioned_rows, crossing.factor


def _placed(
    study: Study, items: Sequence[Item], rows: Sequence[Mapping[str, Any]], *, key: str
) -> list[Item]:
    """Return practice items with their condition by the design's factors; those that select rows by their columns."""
    first = _of_materials(study)
    if not first:
        return in_design(study, items)
    cells = {nfc(str(row.get(key))).strip(): row for row in rows}
    return [
        placed
        for item in items
        for placed in in_design(
            study,
            [item],
            {
                factor: str(cells.get(item.item_id, {}).get(factor) or level)
                for factor, level in first.items()
                # a row that names no level between sessions is shown at all of them
                if factor not in study.between or cells.get(item.item_id, {}).get(factor)
            },
        )
    ]


def _word(study: Study, row: Mapping[str, Any], design: ItemDesign) -> list[Item]:
    (conditioned,), column = _conditions_told(study, [row])
    missing = [name for name in ("word", "foil") if not row.get(name)]
    if missing:
        raise UserError(
            f"{design.source} has a row without {missing[0]!r}",
            mend="Practice words need the columns word and foil.",
        )
    made = word_items([row["word"]], design, foils={row["word"]: row["foil"]}).items
    if column is None:
        return list(made[:1])
    return [item for item in made if item.condition[column] == conditioned[column]]


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
    field = maze_field(study)
    if field is not None and is_made(study) and write_distractors(study, made.items, field):
        made = _made(study, tokenizer)
    content = items_content(made.items)
    refuse_if_changed(study, items=hashlib.sha256(content).hexdigest())
    settings = study.get("materials", "audit", default={})
    items = _apart(made.items, study.between)
    lists = _together(study, items)
    items = _as_shown(items, study.crossing.steps)
    offered = _apart(items, _with_several_answers(items, study.crossing.versions))
    items = _with_looks(study, _apart(items, study.crossing.versions))
    audit = audit_items(
        items,
        language=made.language or study.language,
        tokenizer=tokenizer,
        shortcut=settings.get("shortcut", True),
        offered=offered,
        seed=study.seed,
        lists=lists and {item_id: f"{condition} in list 1" for item_id, condition in lists.items()},
        every_line=study.get("design", "lists") == "one",
        by_design=(*settings.get("by_design", ()), *_made_to_differ(study, items)),
        strictness=item_design(study).settings.strictness,
    )
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


def _with_several_answers(
    items: Sequence[Item], factors: Mapping[str, Sequence[str]]
) -> dict[str, Sequence[str]]:
    """Return the factors whose levels leave an item's answer open: where a level decides it, as that of a match does, is no clue."""
    several = {
        name
        for name, members in by_set(items).items()
        if len({item.answer for item in members if item.role == "test"}) > 1
    }

    def decide(names: Iterable[str]) -> bool:
        answers: dict[tuple[str | None, ...], set[str | None]] = {}
        for item in items:
            if item.role == "test" and item.set_name in several:
                key = (item.set_name, *map(item.condition.get, names))
                answers.setdefault(key, set()).add(item.answer)
        return bool(answers) and all(len(given) == 1 for given in answers.values())

    left = {name: levels for name, levels in factors.items() if not decide([name])}
    return {} if decide(list(left)) else left


def _with_looks(study: Study, items: Sequence[Item]) -> list[Item]:
    """Return items that also show the looks that columns give them, such as the colour of a word, which can be what is asked."""
    columns = [
        value for _, style in styles(study) for name, value in style.items() if not is_look(name, value)
    ]
    looks = [{name: item.key.get(ITEM_COLUMNS, {}).get(name) for name in columns} for item in items]
    return [
        replace(item, shown={**item.shown, **{name: str(cell) for name, cell in look.items() if cell}})
        for item, look in zip(items, looks, strict=True)
    ]


def _as_shown(items: Sequence[Item], factors: Mapping[str, Mapping[str, object]]) -> list[Item]:
    """Return items once for all levels that set steps of trials, which show the same texts."""
    first = {factor: next(iter(levels)) for factor, levels in factors.items()}
    return [
        replace(item, condition={name: level for name, level in item.condition.items() if name not in first})
        for item in items
        if item.role != "test" or all(item.condition[factor] == level for factor, level in first.items())
    ]


def _apart(items: Sequence[Item], factors: Collection[str]) -> list[Item]:
    """Return items with separate sets for the levels of some factors, between which conditions are not compared.

    A filler that has none of the levels is shown beside the items of each, and belongs to all of their sets.
    """
    levels_of = [
        tuple(level for factor, level in item.condition.items() if factor in factors) for item in items
    ]
    apart: dict[str, dict[tuple[str, ...], None]] = {}
    for item, levels in zip(items, levels_of, strict=True):
        if levels and item.role == "test":
            apart.setdefault(item.set_name, {})[levels] = None
    made = []
    for item, levels in zip(items, levels_of, strict=True):
        is_shared = item.role == "filler" and not levels
        for own in apart.get(item.set_name, [levels]) if is_shared else [levels]:
            made.append(replace(item, set_name=", ".join([item.set_name, *own])) if own else item)
    return made


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
    shown = ShownSteps(study, items)
    for item in items:
        steps = answering_steps(study, item.set_name) if item.role == "test" else []
        if any(shown.has_in_some_session(settings, item) for _, settings in steps):
            answers.setdefault(item.item_id, set()).add(item.answer)
    set_of = {item.item_id: item.set_name for item in items}
    counts: dict[str, dict[str, Counter[str]]] = {}
    for item_id, condition in (_together(study, items) or {}).items():
        if item_id not in answers:
            continue
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
        ("materials", "regions"),
        ("procedure",),
    ]
    faults.check(_check_tables, study, faults, reads=reads)


def _check_tables(study: Study, faults: Faults) -> None:
    materials = study.get("materials")
    if "sentences" in materials:
        faults.check(_check_sentences, study)
    elif "words" in materials and materials["words"] != ITEMS:
        faults.check(
            lambda: require_compared_columns(study, word_rows(study, path_of(study, "words"), []).rows)
        )
    elif "words" in (materials.get("lexical_decision") or ()):
        faults.check(lambda: word_rows(study, path_of(study, "lexical_decision", "words"), []))
    for set_name, i, settings in practice_screens(study):
        if "items" in settings:
            faults.check(practice_rows, study, set_name, i, [])


def _check_sentences(study: Study) -> None:
    table, versions = sentence_rows(study, path_of(study, "sentences"), [], [])
    require_compared_columns(study, table.rows, versions)


def _made(study: Study, tokenizer: Tokenizer | None) -> Made:
    materials = study.get("materials")
    if materials.get("words") == ITEMS:
        if not (study.folder / ITEMS).exists():
            raise UserError(
                f"{study.place('materials', 'words')} is {ITEMS}, which `wrods import` writes",
                mend=f"Import answers first: wrods import {study.folder} TABLE --mapping MAP.yaml",
            )
        return Made(list(study.items), remarks=[f"{len(study.items)} items, as `wrods import` wrote them"])
    kind = kind_of_material(study)
    faults, made = Faults(), []
    check_language(study, faults)
    for make in (lambda: _of_kind(study, kind), lambda: practice_items(study)):
        faults.check(lambda make=make: made.append(make()))
    faults.report()
    tested, practice = made
    language = tested.language or study.language
    items = with_sentences(study, [*tested.items, *practice.items], language)
    items = with_media(study.folder, study.media, with_token_measures(in_form(study, items), tokenizer))
    list_ids(study, items)  # raises an error if items lack conditions of a Latin square
    _require_answerable(study, items)
    restricted = check_shown_steps(study, items)
    check_planned_levels(study, items)
    check_styles(study, items)
    orders = possible_orders(study, items)
    return Made(
        items,
        [*tested.sources, *practice.sources, *file_of(study)],
        [
            *tested.remarks,
            *practice.remarks,
            *restricted,
            *orders,
            *_keys_elsewhere(study),
            *reading_remarks(study, items),
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
        is_rated = any(kind in RATED for kind, _ in answering_steps(study, item.set_name))
        if item.role == "exemplar" and is_rated:
            raise UserError(
                f"{study.place('procedure')}: the items of {item.set_name!r} have solved examples, and no rating is right",
                mend="Take the examples out, or let the trial end with another step.",
            )
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
                if key != NO_KEY and (remark := key_remark(key)) is not None:
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
