"""Items from the user's tables and from published data sets, in every condition of the study.

If levels select rows (high- versus low-frequency words), the rows are candidates, and matched sets of them are used. If each
item appears in every level, the items that lists show together in one condition are balanced instead.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from experiment.building.material_context import (
    Made,
    answering_steps,
    cells_left_empty,
    check_shown_columns,
    compared_columns,
    in_design,
    item_design,
    keys_of_named,
    known_columns,
    path_of,
    require_readable,
    shown_fields,
    step_of_type,
    targets_of,
)
from experiment.building.reading import with_chunks, with_foils, without_marks
from experiment.building.regions import OF_ROW, regions_in_words, with_regions, without_region_marks
from experiment.building.versions import ItemVersions, combinations, item_versions
from experiment.lists import ITEM_COLUMNS, ORDER_NAMES, blocks_of
from experiment.media import description_of
from experiment.procedure import accepted
from experiment.shown_steps import OF_ITEMS
from experiment.study import Study
from experiment.trials import CHOSEN, TYPED, answering_step
from stimuli.audit.findings import counted
from stimuli.corpora import Loaded, Record, corpora, load_corpus, subset
from stimuli.corpora.realtimeqa import recovery_sentences
from stimuli.corpora.tables import CorpusTable, is_plain_text, read_table, unread_columns
from stimuli.covariates import unavailable
from stimuli.errors import UserError, nearest, together, unknown_name
from stimuli.item import Item
from stimuli.lexicon import frequent_words
from stimuli.matching import MatchCandidate, Matched, Missing, Tolerance, match_lists, match_sets
from stimuli.recipes.conditions import ItemDesign, Skipped, TaskItems, draw_some
from stimuli.recipes.lexical_decision import FIELD, lexical_decision_items
from stimuli.recipes.sentences import CHOICE_SEPARATOR, SentenceColumns, sentence_items, word_items
from stimuli.recipes.task_items import recovery_items
from stimuli.recipes.tasks import TYPOBENCH, PublishedRecords, published_list, task_items
from stimuli.scramble.text import SharedWords, shared_words
from stimuli.words import nfc, parse_stars

MOST_DOUBLES = 3
UNSAID = {
    "summarise": "Summarise the text in one sentence.",
    "translate": "Translate the text into French.",
}
"""Tasks whose text does not include the instruction, with an example of one."""
RESTORING = ("recover", "rectify")
"""Tasks whose typed answer is the intact text."""


def items_from_corpus(study: Study) -> Made:
    """Return the items of a task on a corpus, ``materials: {corpus: …, task: …}``."""
    materials = study.get("materials")
    corpus = materials["corpus"]
    if corpus["name"] not in corpora():
        raise unknown_name(f"{study.place('materials', 'corpus', 'name')}: corpus", corpus["name"], corpora())
    if ("from" in corpus) == ("hub" in corpus):
        raise UserError(
            f"{study.place('materials', 'corpus')}: give either `from:` (your copy) or `hub:` (its name on the hub)"
        )
    name, options = _task(materials.get("task", "recover"))
    design = item_design(study)
    remarks: list[str] = []
    skipped: list[str] = []
    if design.published:
        listed, sources = _published(study, corpus, name)
        if corpus["name"] in TYPOBENCH:
            remarks.append(
                f"  note: TypoBench released no sample of {corpus['name']}; records are drawn with the study's seed, then changed as "
                "its code did"
            )
    else:
        splits = corpus.get("split")
        records: list[Record] = []
        sources = []
        for split in splits if isinstance(splits, list) else [splits]:
            loaded = _load(study, corpus, split)
            sources += [file for file in loaded.files if file not in sources]
            remarks += _about(corpus["name"], loaded)
            skipped += [f"{bad.file}, line {bad.line}: {bad.reason}" for bad in loaded.bad]
            records += loaded.records
        listed = PublishedRecords(tuple(records), ())
    number = design.number
    if (
        design.published
        and number is not None
        and corpus["name"] in TYPOBENCH
        and number <= len(listed.records)
    ):
        sample = tuple(subset(listed.records, number, study.seed))
        listed = PublishedRecords(sample, sample)
        number = None
    asked: Sequence[Record] = listed.records
    if number is not None and "even_by" in corpus:
        asked, number = subset(asked, number, study.seed, corpus["even_by"], shares="equal"), None
    examples = options.pop("exemplars", ())
    crossing = study.crossing
    if crossing.examples is not None:
        if "demonstrations" in options:
            raise UserError(
                f"{study.place('materials', 'task')}: factor {crossing.examples[0]!r} already says what is done to the "
                "examples",
                mend="Take demonstrations out of the task.",
            )
        options |= {"demonstration_factor": crossing.examples[0], "demonstrations": crossing.examples[1]}
    made = task_items(
        name,
        asked,
        replace(design, number=number),
        exemplars=examples if isinstance(examples, str) else _examples(study, corpus, examples, sources),
        options=options,
        pass_over=listed.pass_over or None,
    )
    skipped += [f"{record.corpus} {record.record_id}: {record.reason}" for record in made.skipped]
    answering = {kind for kind, _ in answering_steps(study)}
    if name not in RESTORING and "recover" in answering:
        raise UserError(
            f"{study.place('materials', 'task')}: task {name} is not answered with the intact text, which `recover` asks for",
            mend="End the trial with `answer` (free words, numbers, programs) or, where items have options, `choose`.",
        )
    if answering & set(CHOSEN) and any(item.choices is None for item in made.items):
        raise UserError(
            f"{study.place('materials', 'task')}: task {name} has items without options to choose from",
            mend="End the trial with `answer`.",
        )
    if name in UNSAID and not _asks(study):
        raise UserError(
            f"{study.place('materials', 'task')}: task {name} says nothing to readers by itself",
            mend=f"Write what they are to do under `- answer:`, such as ask: {UNSAID[name]!r}",
        )
    require_readable(study, made.items)
    if "answer" in answering and any(not accepted(item) for item in made.items if item.role == "test"):
        remarks.append(
            f"  note: answers to task {name} are programs, right by their tests: responses are stored, and scored when "
            "`wrods score --execute` runs them"
            if any(item.key.get("tests") for item in made.items)
            else f"  note: nothing says which answers to task {name} are right: responses are stored, and not scored"
        )
    return Made(in_design(study, made.items), sources, remarks, skipped)


def _asks(study: Study) -> bool:
    """Return whether every block has a question in its answering step."""
    steps = [answering_step(study.get("procedure", place, "block", "trial")) for place in blocks_of(study)]
    return all(next(iter(step.values())).get("ask") for step in steps)


def _task(given: str | Mapping[str, Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    if isinstance(given, str):
        return given, {}
    (name, options), *_ = given.items()
    return name, dict(options)


def _load(study: Study, corpus: Mapping[str, str], split: str | None) -> Loaded:
    return load_corpus(
        corpus["name"],
        path_of(study, "corpus", "from") if "from" in corpus else None,
        split=split,
        selection=corpus.get("selection"),
        on_bad=study.get("materials", "on_bad", default="stop"),
        hub=corpus.get("hub"),
    )


def _about(name: str, loaded: Loaded) -> list[str]:
    about = corpora()[name]
    lines = [f"{about.title}: {len(loaded.records)} records; licence: {about.licence or 'none stated'}"]
    lines += [f"  note: {warning}" for warning in loaded.warnings]
    if loaded.duplicates:
        named = "; ".join(" = ".join(ids) for ids in loaded.duplicates[:MOST_DOUBLES])
        n_doubles = len(loaded.duplicates)
        more = " …" if n_doubles > MOST_DOUBLES else ""
        lines.append(
            f"  note: {counted(n_doubles, 'record')} {'stands' if n_doubles == 1 else 'stand'} there more than once ({named}{more})"
        )
    return lines


def _published(study: Study, corpus: Mapping[str, str], task: str) -> tuple[PublishedRecords, list[Path]]:
    if "hub" in corpus:
        raise UserError(
            f"{study.place('materials', 'corpus', 'hub')}: published items depend on the original files",
            mend="Give your copy of them with `from:`.",
        )
    where = path_of(study, "corpus", "from")
    if isinstance(corpus.get("split"), list):
        raise UserError(
            f"{study.place('materials', 'corpus', 'split')}: a published list is one split, or all that were used",
            mend="Name one split, or leave split out.",
        )
    return published_list(corpus["name"], where, task=task, split=corpus.get("split")), [where]


def _examples(
    study: Study, corpus: Mapping[str, str], settings: Mapping[str, Any] | Sequence[Any], sources: list[Path]
) -> list[Record]:
    if not isinstance(settings, Mapping):
        return []
    loaded = _load(study, corpus, settings["split"])
    sources += [file for file in loaded.files if file not in sources]
    return subset(loaded.records, settings["number"], study.seed)


def items_from_realtimeqa(study: Study) -> Made:
    """Return recovery items from RealtimeQA's evidence, ``materials: {realtimeqa: FOLDER}``."""
    folder = path_of(study, "realtimeqa")
    texts = recovery_sentences(load_corpus("realtimeqa", folder).records)
    items = recovery_items(texts, item_design(study))
    return Made(in_design(study, items), [folder])


def matched_items(
    study: Study, items: Sequence[Item], cells: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Item], list[str]]:
    """Return test items selected or ordered so that they match on the covariates that the study names."""
    match = study.get("materials", "match")
    if match is None:
        return list(items), []
    crossing = study.crossing
    if not crossing.factors:
        raise UserError(
            f"{study.place('materials', 'match')}: there is no factor whose levels could be matched",
            mend="Give the design a factor, or take `match` out.",
        )
    on = {name: _tolerance(given) for name, given in match["on"].items()}
    first = {item.item_id: item for item in reversed(items)}
    candidates = [
        MatchCandidate(item_id, _picked(study, item), _covariates(study, on, item, cells.get(item_id, {})))
        for item_id, item in reversed(first.items())
    ]
    missing = match.get("missing", "error")
    try:
        return _matched(study, items, candidates, on, match.get("each"), missing)
    except UserError as error:
        place = study.place("materials", "match")
        raise UserError(f"{place}: {error.message.removeprefix('match: ')}", mend=error.mend) from None


def _matched(
    study: Study,
    items: Sequence[Item],
    candidates: Sequence[MatchCandidate],
    on: Mapping[str, Tolerance],
    set_size: int | None,
    missing: Missing,
) -> tuple[list[Item], list[str]]:
    if study.crossing.rows:
        matching = match_sets(candidates, on, set_size, seed=study.seed, missing=missing).require()
        retained = set(chain.from_iterable(matching.sets.values()))
        if not retained:
            raise UserError(
                f"no rows of {' and '.join(matching.sets)} match in {', '.join(on)}, so that no item is left",
                mend="Allow larger differences, match on fewer covariates, or add rows.",
            )
        return [item for item in items if item.item_id in retained], _report_matching(matching, "sets", on)
    together = [MatchCandidate(candidate.id, "all", candidate.covariates) for candidate in candidates]
    versions = len(items) // len(candidates)
    divided = match_lists(together, versions, on, seed=study.seed, missing=missing).require()
    by_id: dict[str, list[Item]] = {}
    for item in items:
        by_id.setdefault(item.item_id, []).append(item)
    # List l shows item i in condition i + l, so every L-th item of the file gets the same condition.
    order = [item_id for row in zip_longest(*divided.sets.values()) for item_id in row if item_id is not None]
    return [item for item_id in order for item in by_id[item_id]], _report_matching(divided, "lists", on)


def _picked(study: Study, item: Item) -> str:
    """Return the levels that selected an item's row, as one name; the same for all without such levels."""
    factors = study.crossing.rows[0][0] if study.crossing.rows else ()
    return " × ".join(item.condition[factor] for factor in factors) or "all"


def _tolerance(given: float | Mapping[str, float]) -> Tolerance:
    return Tolerance(**given) if isinstance(given, Mapping) else Tolerance(within=given)


def _covariates(
    study: Study, on: Mapping[str, Tolerance], item: Item, cells: Mapping[str, Any]
) -> dict[str, float | str | None]:
    values: dict[str, float | str | None] = {}
    for name in on:
        reason = unavailable(study.language).get(name)
        if name in item.covariates and reason is None:
            values[name] = item.covariates[name]
        elif name in item.covariates and name not in cells:
            raise UserError(
                f"{study.place('materials', 'match', 'on', name)}: {name} is not available: {reason}",
                mend="Match on another covariate, or add it as a column.",
            )
        elif name in cells:
            values[name] = _number_or_text(cells[name])
        else:
            place = study.place("materials", "match", "on", name)
            raise unknown_name(f"{place}: covariate", name, [*item.covariates, *cells])
    return values


def _number_or_text(cell: Any) -> float | str | None:
    text = str(cell).strip()
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _report_matching(matching: Matched, unit: str, on: Mapping[str, Tolerance]) -> list[str]:
    sizes = ", ".join(f"{name}: {len(ids)}" for name, ids in matching.sets.items())
    lines = [f"matched {unit} ({sizes}) on {', '.join(on)}"]
    for covariate in matching.balance.covariates():
        worst = matching.balance.largest(covariate)
        if worst is not None and worst.smd is not None:
            lines.append(f"  {covariate}: largest standardised mean difference {abs(worst.smd):.3f}")
    if matching.excluded:
        named = ", ".join(f"{item_id} ({covariate})" for item_id, covariate in matching.excluded[:5])
        more = f" and {len(matching.excluded) - 5} more" if len(matching.excluded) > 5 else ""
        lines.append(f"  left out for a missing covariate: {named}{more}")
    return lines


OWN_SETTINGS = ("words", "labels")
ANSWERS = ("word", "nonword")


def items_from_lexical_decision(study: Study) -> Made:
    """Return the items of a lexical decision, ``materials: {lexical_decision: …}``."""
    materials = study.get("materials")
    settings: dict[str, Any] = materials["lexical_decision"] or {}
    records: list[Record] = []
    sources = []
    remarks: list[str] = []
    rows: dict[str, Any] = {}
    skipped: list[str] = []
    if "words" in settings:
        file = path_of(study, "lexical_decision", "words")
        table = word_rows(study, file, remarks, skipped)
        rows = {str(row["word"]): row for row in table}
        records = [
            Record(
                str(row["word"]),
                file.name,
                None,
                None,
                {FIELD: str(row["word"])},
                None,
                None,
                extra={"role": row.get("role")},
                file=file.name,
                line=line,
            )
            for row, line in zip(table.rows, table.numbers, strict=True)
        ]
        sources.append(file)
    options = {name: value for name, value in settings.items() if name not in OWN_SETTINGS}
    named = sum(record.extra.get("role") == "filler" for record in records)
    if named and "fillers" not in options:
        options["fillers"] = named
    made = lexical_decision_items(records, item_design(study), options)
    skipped += [
        record.reason if record.reason.startswith("record ") else f"{record.record_id}: {record.reason}"
        for record in made.skipped
    ]
    items = [_labelled(study, item) for item in in_design(study, made.items)]
    tested = [item for item in items if item.role == "test"]
    fillers = [item for item in items if item.role != "test"]
    matched, messages = matched_items(study, tested, rows)
    return Made([*matched, *fillers], sources, [*remarks, *messages], skipped)


def _labelled(study: Study, item: Item) -> Item:
    """Return an item with the study's labels for the two answers."""
    keys = (step_of_type(study, CHOSEN) or {}).get("keys")
    if not isinstance(keys, dict):
        return item
    names: dict[str, str] = study.get("materials", "lexical_decision", "labels", default={})
    called = {answer: str(names.get(answer, answer)) for answer in ANSWERS}
    if set(called.values()) != set(keys):
        raise UserError(
            f"{study.place('materials', 'lexical_decision')}: answers are {' and '.join(called.values())}, and the keys "
            f"are for {' and '.join(map(str, keys))}",
            mend="Say which is which: lexical_decision: {labels: {word: YOUR LABEL, nonword: YOUR OTHER LABEL}}.",
        )
    answer = None if item.answer is None else called[item.answer]
    choices = None if item.choices is None else tuple(called.get(choice, choice) for choice in item.choices)
    return replace(item, answer=answer, choices=choices)


Rows = Sequence[Mapping[str, Any]]
_STARS = re.compile(r"\*\w[^*\n]*\*")


def items_from_sentences(study: Study) -> Made:
    """Return items from a table of sentences, ``materials: {sentences: FILE}``."""
    materials = study.get("materials")
    file = path_of(study, "sentences")
    remarks: list[str] = []
    skipped: list[str] = []
    table, versions = sentence_rows(study, file, remarks, skipped)
    starred = sum(bool(_STARS.search(str(row["sentence"]))) for row in table.rows)
    if starred and study.get("materials", "scramble", "words") != "starred":
        remarks.append(
            f"  note: {starred} sentences hold *starred* words, and the stars are shown: set scramble: {{words: starred}}"
        )
    tested, fillers = _by_role(table, materials["sentences"])
    drawn = draw_some(
        tested,
        materials.get("items"),
        seed=study.seed,
        key=lambda row: str(row["item"]),
        what="sentences",
    )
    make = functools.partial(_sentences, study, table, versions)
    items, notes = _items(study, drawn, make, "sentences", skipped, key=lambda row: str(row["item"]))
    if fillers:
        design = replace(item_design(study), factor=None, levels={"": "none"}, role="filler", on_bad="stop")
        design = replace(design, source=materials["sentences"])
        made = sentences(study, fillers, design, lines=lines_of(table, "item")).items
        levels = {str(row["item"]): _levels_of_filler(study, row) for row in fillers}
        groups = list(dict.fromkeys(levels.values()))
        for group in groups:
            items += in_design(study, [item for item in made if levels[item.item_id] == group], dict(group))
    rows = {str(row["item"]): row for row in table.rows}
    require_compared_columns(study, table.rows, versions)

    def row_of(item: Item) -> Mapping[str, Any]:
        of_item = versions.by_item[item.item_id] if versions else ()
        return next(
            (one.row for one in of_item if one.levels.items() <= item.condition.items()), rows[item.item_id]
        )

    items = with_compared_columns(study, items, row_of)
    return Made(items, [file], [*remarks, *notes, *regions_in_words(study, items)], skipped)


def _levels_of_filler(study: Study, row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the levels between sessions whose rows a filler is among; sessions of other levels do not show it."""
    return tuple(
        (factor, level)
        for factor, levels in study.between.items()
        for level, given in levels.items()
        if "where" in given
        and all(str(row.get(column)) == str(value) for column, value in given["where"].items())
    )


def require_compared_columns(
    study: Study, rows: Sequence[Mapping[str, Any]], versions: ItemVersions | None = None
) -> None:
    """Raise an error for a column by which a block is ordered or a step restricted or coloured, and that a table lacks."""
    of_versions = (one.row for of_item in (versions.by_item if versions else {}).values() for one in of_item)
    present = set(rows[0] if rows else ()).union(*of_versions) - {OF_ROW}
    for column, place in compared_columns(study).items():
        if column not in present:
            raise unknown_name(f"{place}: name", column, {*study.factors, *ORDER_NAMES, *OF_ITEMS, *present})


def with_compared_columns(
    study: Study, items: Sequence[Item], row_of: Callable[[Item], Mapping[str, Any]]
) -> list[Item]:
    """Return items with their cells in the columns by which blocks are ordered, steps restricted or coloured, or named ones right.

    ``row_of``: the row of an item, of its version if it has several; an empty cell, or a column that is not there, is None.
    """
    columns = [*compared_columns(study), *keys_of_named(study)]
    if not columns:
        return list(items)
    made = []
    for item in items:
        row = row_of(item)
        cells = {column: str(row.get(column) or "").strip() or None for column in columns}
        made.append(replace(item, key={**item.key, ITEM_COLUMNS: cells}))
    return made


def sentence_rows(
    study: Study, file: Path, remarks: list[str], skipped: list[str]
) -> tuple[CorpusTable, ItemVersions | None]:
    """Return sentences and their columns, with their versions if the design has any.

    A duplicate item id is refused or skipped; of an item with versions the rows are of its first version.
    """
    factors = study.crossing.versions
    required = ("item",) if factors else ("item", "sentence")
    table = read_rows(study, file, remarks, skipped, field="sentence", required=required)
    if factors:
        versions = item_versions(
            table,
            factors,
            file=file.name,
            place=study.place("design", "factors"),
            are_starred=study.get("materials", "scramble", "words") == "starred",
        )
        remarks += versions.remarks
        versions = _versions_without_marks(study, versions, file.name)
        return versions.first, versions
    names = [str(row["item"]) for row in table]
    listed = skipped if study.get("materials", "on_bad") == "skip" else None
    single = _without_twins(table, "item", names, study.get("materials", "sentences"), listed)
    return replace(
        single, rows=tuple(without_region_marks(study, single.rows, single.numbers, file.name))
    ), None


def _versions_without_marks(study: Study, versions: ItemVersions, file: str) -> ItemVersions:
    """Return items whose versions have no marks of regions, with the regions of each."""
    every = [version for of_item in versions.by_item.values() for version in of_item]
    rows = without_region_marks(
        study, [version.row for version in every], [version.line for version in every], file
    )
    bare = iter(replace(version, row=row) for version, row in zip(every, rows, strict=True))
    by_item = {item: tuple(next(bare) for _ in of_item) for item, of_item in versions.by_item.items()}
    first = replace(versions.first, rows=tuple(of_item[0].row for of_item in by_item.values()))
    return replace(versions, first=first, by_item=by_item)


def _sentences(
    study: Study, table: CorpusTable, versions: ItemVersions | None, rows: Rows, design: ItemDesign
) -> TaskItems:
    """Return the items of sentences, of each in every version."""
    if versions is None:
        return sentences(study, rows, design, lines=lines_of(table, "item"))
    shared: dict[str, list[SharedWords]] = {}
    for row in rows:
        of_item = [version.row for version in versions.by_item[str(row["item"])]]
        unmarked, _ = without_marks(study, of_item, {})
        texts = [str(version.get("sentence") or "") for version in unmarked]
        if study.get("materials", "scramble", "words") == "starred":
            starred = [parse_stars(text) for text in texts]
            shared[str(row["item"])] = shared_words([(text.text, text.words) for text in starred])
        else:
            shared[str(row["item"])] = shared_words([(text, ()) for text in texts])
    by_item: dict[str, list[Item]] = {str(row["item"]): [] for row in rows}
    skipped: dict[str, Skipped] = {}
    for number, levels in enumerate(combinations(study.crossing.versions)):
        of_version = versions.at(levels, rows)
        made = sentences(
            study,
            [version.row for version in of_version],
            design,
            lines={str(version.row["item"]): version.line for version in of_version},
            shared={item: words[number] for item, words in shared.items()},
        )
        for item in made.items:
            by_item[item.item_id].append(replace(item, condition={**levels, **item.condition}))
        skipped |= {row.record_id: row for row in made.skipped if row.record_id not in skipped}
    complete = (items for item_id, items in by_item.items() if item_id not in skipped)
    return TaskItems(tuple(chain.from_iterable(complete)), tuple(skipped.values()))


def _by_role(table: CorpusTable, file: str) -> tuple[Rows, Rows]:
    """Return test rows and fillers (``filler`` in the column ``role``), which every list shows unchanged."""
    tested: list[Mapping[str, Any]] = []
    fillers: list[Mapping[str, Any]] = []
    faults: list[UserError] = []
    for number, row in zip(table.numbers, table.rows, strict=True):
        role = str(row.get("role") or "test").strip().lower()
        if role not in ("test", "filler"):
            fault = f"{file}, line {number}: role is {role!r}"
            faults.append(UserError(fault, mend="Leave it empty, or write test or filler."))
        (fillers if role == "filler" else tested).append(row)
    if faults:
        raise together(faults)
    if not tested:
        raise UserError(f"{file}: every row is a filler", mend="Leave role empty for the sentences to test.")
    return tested, fillers


def items_from_words(study: Study) -> Made:
    """Return items from a list of words, ``materials: {words: FILE}``."""
    materials = study.get("materials")
    file = path_of(study, "words")
    remarks: list[str] = []
    skipped: list[str] = []
    rows = draw_some(
        word_rows(study, file, remarks, skipped),
        materials.get("items"),
        seed=study.seed,
        key=lambda row: str(row["word"]),
        what="words",
    )
    make = functools.partial(_words, study)
    items, notes = _items(study, rows, make, "words", skipped, key=lambda row: nfc(str(row["word"]).strip()))
    row_by_word = {nfc(str(row["word"]).strip()): row for row in rows}
    require_compared_columns(study, rows)
    items = with_compared_columns(study, items, lambda item: row_by_word[item.item_id])
    return Made(items, [file], [*remarks, *notes], skipped)


def _items(
    study: Study,
    rows: Rows,
    make: Callable[[Rows, ItemDesign], TaskItems],
    kind: str,
    skipped: list[str],
    *,
    key: Callable[[Mapping[str, Any]], str],
) -> tuple[list[Item], list[str]]:
    """Return the items of rows, matched if the study requires it; unusable rows are added to ``skipped``."""
    materials = study.get("materials")
    remarks: list[str] = []
    left_out: list[Skipped] = []
    design = replace(item_design(study), source=materials[kind])

    def make_some(rows_of_level: Rows) -> Sequence[Item]:
        made = make(rows_of_level, design)
        left_out.extend(made.skipped)
        return made.items

    items = _by_rows(study, rows, make_some, remarks)
    skipped += [
        row.reason if row.reason.startswith(row.corpus) else f"{row.corpus}, {row.record_id}: {row.reason}"
        for row in left_out
    ]
    matched, notes = matched_items(study, items, {key(row): row for row in rows})
    return matched, [*remarks, *notes]


def _by_rows(
    study: Study, rows: Rows, make: Callable[[Rows], Sequence[Item]], remarks: list[str]
) -> list[Item]:
    """Return items of all rows in every condition, or, if levels select rows, of each level's rows."""
    if not study.crossing.rows:
        return in_design(study, make(rows))
    items: list[Item] = []
    taken: set[int] = set()
    for levels, wanted in study.crossing.rows:
        factor, level = next(iter(levels.items()))
        kind = "between" if factor in study.between else "factors"
        place = study.place("design", kind, factor, level, "where")
        for column in wanted:
            if column not in rows[0]:
                raise unknown_name(f"{place}: column", column, rows[0])
        rows_of_level = [row for row in rows if all(str(row[c]) == value for c, value in wanted.items())]
        if not rows_of_level:
            requirements = " and ".join(f"{column} is {value!r}" for column, value in wanted.items())
            contents = (
                f"Column {column!r} holds {_few({str(row[column]) for row in rows})}" for column in wanted
            )
            raise UserError(
                f"{place}: there is no row in which {requirements}",
                mend=f"{'; '.join(contents)}. Name one of these, or add rows.",
            )
        items += in_design(study, make(rows_of_level), levels)
        taken |= {id(row) for row in rows_of_level}
    left = [row for row in rows if id(row) not in taken]
    if left:
        remarks.append(
            f"  note: {len(left)} of {len(rows)} rows are in no level and are left out: {_outside(study, left)}"
        )
    return items


def _outside(study: Study, left: Sequence[Mapping[str, Any]], most: int = 3) -> str:
    """Return the first rows that no level picks, by item, with their cells and the values that these may misspell."""
    wanted: dict[str, list[str]] = {}
    for _, values in study.crossing.rows:
        for column, value in values.items():
            wanted.setdefault(column, []).append(value)
    told = []
    for row in left[:most]:
        cells = []
        for column, expected in wanted.items():
            cell = str(row[column])
            close = None if cell in expected else nearest(cell, expected)
            cells.append(f"{column} is {cell!r}" + (f", did you mean {close!r}?" if close else ""))
        name = next((column for column in ("item", "word") if column in row), None)
        told.append((f"{name} {row[name]}: " if name else "") + ", ".join(cells))
    return "; ".join(told) + (" …" if len(left) > most else "")


def _few(values: set[str], most: int = 6) -> str:
    return ", ".join(map(repr, sorted(values)[:most])) + (", …" if len(values) > most else "")


def sentences(
    study: Study,
    rows: Rows,
    design: ItemDesign,
    *,
    lines: Mapping[str, int],
    level_column: str | None = None,
    shared: Mapping[str, SharedWords] | None = None,
) -> TaskItems:
    """Return sentence items of rows in every condition, or of each practice row in its own condition."""
    choosing = step_of_type(study, CHOSEN)
    own = [name for name, declared in study.own_types.items() if declared.answer_field is not None]
    answering = step_of_type(study, {*TYPED, *own} - {"recover"})
    has_answers = choosing is not None or (answering is not None and "answer" in rows[0])
    keys = None if choosing is None else choosing["keys"]
    first_only = design.role == "practice" and level_column is None and design.factor is not None
    described = [name for field in study.media if (name := description_of(field)) in rows[0]]
    columns = SentenceColumns(
        also_show=(*(name for name in shown_fields(study) if name != "sentence"), *described),
        answer="answer" if has_answers else None,
        choices=None if keys is None else tuple(keys) if isinstance(keys, dict) else "choices",
        several=choosing is not None and bool(choosing.get("several")),
        level=level_column,
        only_level=next(iter(design.levels)) if first_only else None,
        targets=targets_of(study),
        optional=(*cells_left_empty(study), *described),
        shared=shared or {},
    )
    places = {item: f"{design.source}, line {line}" for item, line in lines.items()}
    unmarked, borders = without_marks(study, rows, places)
    made = sentence_items(unmarked, design, columns, lines=lines)
    items = with_regions(with_foils(study, with_chunks(made.items, borders), rows, places), rows)
    if answering is not None:
        items = tuple(map(_accepting, items))
        require_readable(study, items)
    elif choosing is None and step_of_type(study, ["recover"]) is not None:
        items = tuple(replace(item, answer=item.intact["sentence"]) for item in items)
    return replace(made, items=items)


def _accepting(item: Item) -> Item:
    """Return an item with the answers in its cell split: the first is the item's, others are accepted as well."""
    if item.answer is None:
        return item
    first, *others = (part.strip() for part in item.answer.split(CHOICE_SEPARATOR))
    return replace(item, answer=first, key={**item.key, "answers": others} if others else item.key)


def _words(study: Study, rows: Rows, design: ItemDesign) -> TaskItems:
    foils = {str(row["word"]): str(row["foil"]) for row in rows if row.get("foil")}
    words = [str(row["word"]) for row in rows]
    made = word_items(words, design, foils=foils or frequent_words(study.language))
    if step_of_type(study, CHOSEN):
        return made
    return replace(made, items=tuple(replace(item, choices=None) for item in made.items))


def lines_of(table: CorpusTable, column: str) -> dict[str, int]:
    """Return the line of each row in its file, by the row's cell in a column."""
    return {str(row.get(column)): number for row, number in zip(table.rows, table.numbers, strict=True)}


_ONCE = {
    "item": "Give each item one row and its own id; wrods makes the conditions.",
    "word": "List each word once.",
}


def _without_twins(
    table: CorpusTable, kind: str, names: Sequence[str], file: str, skipped: list[str] | None
) -> CorpusTable:
    """Return a table without later rows of a duplicate name, which are listed; raise an error without such a list."""
    first: dict[str, int] = {}
    twins: list[str] = []
    retained = []
    for row, number, name in zip(table.rows, table.numbers, names, strict=True):
        if first.setdefault(name, number) == number:
            retained.append((row, number))
        else:
            twins.append(
                f"{file}, line {number}: {kind} {name!r} is listed twice (first in line {first[name]})"
            )
    if twins and skipped is None:
        raise together([UserError(twin, mend=_ONCE[kind]) for twin in twins])
    if skipped is not None:
        skipped += twins
    return _with_rows(table, retained)


def _with_rows(table: CorpusTable, numbered: Sequence[tuple[Mapping[str, Any], int]]) -> CorpusTable:
    rows, numbers = zip(*numbered, strict=True) if numbered else ((), ())
    return replace(table, rows=rows, numbers=numbers)


def table_beside(study: Study, file: Path, **given: Any) -> CorpusTable:
    """Return a table as :func:`stimuli.corpora.tables.read_table` does; errors name the file as the study does."""
    try:
        return read_table(file, **given)
    except UserError as fault:
        folder, path = study.folder.resolve(), file.resolve()
        name = path.relative_to(folder) if path.is_relative_to(folder) else file
        message = fault.message.replace(str(file), str(name))
        raise UserError(message, mend=fault.mend, exit_code=fault.exit_code) from fault


def read_rows(
    study: Study,
    file: Path,
    remarks: list[str],
    skipped: list[str],
    *,
    field: str,
    required: Sequence[str] = (),
) -> CorpusTable:
    """Return a table of the study's materials, with messages on how it was read; in plain text each line is a field."""
    materials = study.get("materials")
    encoding = materials.get("encoding")
    columns = materials.get("columns")
    if columns is None and is_plain_text(file, required, encoding=encoding):
        columns = {field: "text"}
    table = table_beside(
        study,
        file,
        columns=columns,
        required=required,
        on_bad=materials.get("on_bad", "stop"),
        sheet=materials.get("sheet"),
        unit=materials.get("unit", "line"),
        encoding=encoding,
        delimiter=materials.get("delimiter"),
        language=study.language,
    )
    remarks += table.description.lines()
    check_shown_columns(study, file.name, table.description.columns)
    remarks += [
        f"  note: {remark}"
        for remark in unread_columns(file.name, table.description.columns, known_columns(study))
    ]
    skipped += [f"{file.name}, line {bad.line}: {bad.reason}" for bad in table.bad]
    return table


def word_rows(study: Study, file: Path, remarks: list[str], skipped: list[str] | None = None) -> CorpusTable:
    """Return words and their columns: a table with the column word, or one word per line."""
    table = read_rows(
        study, file, remarks, [] if skipped is None else skipped, field="word", required=("word",)
    )
    words = [
        numbered
        for numbered in zip(table.rows, table.numbers, strict=True)
        if not str(numbered[0]["word"]).strip().startswith("#")
    ]
    if not words:
        raise UserError(
            f"{file} holds no words", mend="Write one word a line; lines that begin with # do not count."
        )
    names = [nfc(str(row["word"]).strip()) for row, _ in words]
    listed = skipped if study.get("materials", "on_bad") == "skip" else None
    return _without_twins(_with_rows(table, words), "word", names, file.name, listed)
