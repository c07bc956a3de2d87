"""Items from published data sets: a task on the records of a corpus, in every condition of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiment.building.material_context import (
    Made,
    answering_steps,
    in_design,
    item_design,
    path_of,
    require_readable,
)
from experiment.lists import blocks_of
from experiment.procedure import accepted
from experiment.study import Study
from experiment.trials import CHOSEN
from stimuli.audit.findings import counted
from stimuli.corpora import Loaded, Record, corpora, load_corpus, subset
from stimuli.corpora.realtimeqa import recovery_sentences
from stimuli.errors import UserError, unknown_name
from stimuli.recipes.task_items import recovery_items
from stimuli.recipes.tasks import TYPOBENCH, PublishedRecords, published_list, task_items

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
    steps = [study.get("procedure", place, "block", "trial")[-1] for place in blocks_of(study)]
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
