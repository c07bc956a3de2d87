"""The tasks of the three papers, from records to items: in every condition, behind examples."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from stimuli.corpora.corpus import Record
from stimuli.corpora.dream import NOT_ASKED
from stimuli.corpora.loading import load_corpus
from stimuli.errors import UserError, unknown_name
from stimuli.files import data_file
from stimuli.item import Item, Role
from stimuli.recipes.conditions import (
    DisplayedField,
    FactorLevels,
    ItemDesign,
    OnBad,
    Skipped,
    TaskItems,
    describe,
)
from stimuli.recipes.lexical_decision import LEXICAL_DECISION, lexical_decision_items
from stimuli.recipes.task_items import (
    TaskRecord,
    Unsuitable,
    corrected_shown,
    has_text,
    item_of,
    labelled,
    published_shown,
    reading_field,
    require_unlike,
    where_is,
)
from stimuli.scramble.alignment import changes_between
from stimuli.scramble.conditions import Scrambled
from stimuli.scramble.published import published_operation, scramble_demonstrations
from stimuli.scramble.types import OperationSpec, parse_operation
from stimuli.seeds import stable_seed
from stimuli.words import nfc

QUESTION = "question"
YES_NO = ("yes", "no")


def ask_question(record: Record, field: str) -> TaskRecord:
    """Ask a record's question about its text; without a text, the question itself is changed."""
    has_text(record, field)
    answer = labelled(record)
    if QUESTION not in record.texts:
        raise Unsuitable(
            f"{where_is(record)} has no question to ask about its {field}",
            mend="The task complete gives a record's own task, such as a program to write.",
        )
    beside = () if field == QUESTION else (has_text(record, QUESTION),)
    choices = YES_NO if record.choices is None and answer in YES_NO else record.choices
    return TaskRecord(record, field, beside, choices, answer, other_answers(record, answer))


def other_answers(record: Record, answer: str) -> dict[str, Any]:
    """Return the answers that also count as right, each once and without the first, as an item's key holds them."""
    others = [nfc(other) for other in dict.fromkeys(record.answers) if nfc(other) != nfc(answer)]
    return {"answers": list(dict.fromkeys(others))} if others else {}


def ask_intact(record: Record, field: str) -> TaskRecord:
    """Ask for the intact text, which is the answer."""
    return TaskRecord(record, has_text(record, field), answer=nfc(record.texts[field]))


def ask_summary(record: Record, field: str, options: Mapping[str, Any]) -> TaskRecord:
    """Ask for a summary; the answer is the record's text named by option ``reference``, None without one."""
    reference = options.get("reference")
    answer = None if reference is None else nfc(record.texts[has_text(record, reference)])
    return TaskRecord(record, has_text(record, field), answer=answer)


def ask_translation(record: Record, field: str, options: Mapping[str, Any]) -> TaskRecord:
    """Ask for a translation into a language; the answer is that of a summary."""
    language = options.get("target_language")
    if not isinstance(language, str) or not language.strip():
        raise UserError("task translate needs target_language", mend="Give a language tag, such as zh.")
    return replace(ask_summary(record, field, options), key={"target_language": language})


_CALCULATOR = re.compile(r"<<[^<>]*>>")
_LETTER = r"\(?[A-E]\)?"
_LETTER_LAST = re.compile(
    rf"(?:\n[^\S\n]*{_LETTER}|(?:\A|(?<=[.,;:>()\s]))(?:(?:(?:hence|so|thus|therefore|the|correct|right|will|would|be|is|it)\W+)*"
    rf"(?:answer|ans|option|choice)\b\W*(?:(?:will|would|be|is|option|choice|answer)\b\W*)*{_LETTER}"
    rf"|(?:(?:hence|so|thus|therefore)\W+)*(?:option\W+)?{_LETTER}\W+is\W+(?:the\W+)?(?:correct|right|answer|choice|\W)+))"
    r"[\s.!)]*\Z",
    re.IGNORECASE,
)


def ask_problem(record: Record, field: str) -> TaskRecord:
    """Ask a problem; its worked solution goes along in the key, for examples to show."""
    has_text(record, field)
    answer = labelled(record)
    key = {**other_answers(record, answer), **worked(record)}
    return TaskRecord(record, field, (), record.choices, answer, key)


def ask_completion(record: Record, field: str) -> TaskRecord:
    """Ask what the record's corpus asks: a question about a text, a problem to solve, a program that passes its tests."""
    has_text(record, field)
    if QUESTION in record.texts and field != QUESTION:
        return ask_question(record, field)
    if not record.tests:
        return ask_problem(record, field) if record.rationale else ask_question(record, field)
    key: dict[str, Any] = {"tests": list(record.tests)} | ({"setup": record.setup} if record.setup else {})
    return TaskRecord(record, field, (), None, record.answer, key)


def worked(record: Record) -> dict[str, Any]:
    """Return a record's worked solution as an item's key holds it.

    GSM8K's calculator marks are removed, and so is an ending that only names the letter of an option, which would be
    wrong if options are shuffled.
    """
    prose = _CALCULATOR.sub("", record.rationale or "").strip()
    if record.choices is not None and (match := _LETTER_LAST.search(prose)):
        prose = prose[: match.start()].rstrip(" \t\n,;:>(")
    return {"rationale": nfc(prose)} if prose else {}


def require_worked(record: Record) -> None:
    """Refuse an example without a worked solution."""
    if not worked(record):
        raise Unsuitable(
            f"{where_is(record)} has no worked solution, which an example of a problem shows",
            mend="Take examples from a corpus with solutions, such as aqua or gsm8k.",
        )


@dataclass(frozen=True)
class Task:
    """A task on the records of a corpus."""

    name: str  # as a study names it
    ask: Callable[[Record, str, Mapping[str, Any]], TaskRecord]  # (record, field, options of the task)
    options: tuple[str, ...] = ()  # names of the options that it takes beside those of every task
    one_per_text: bool = False  # whether records with the same text make one item, whatever their question
    examples_need: Callable[[Record], None] | None = None  # refuses a record that cannot be an example


EVERY_TASK = ("field", "also_scramble", "demonstrations", "demonstration_factor")


TASKS: Mapping[str, Task] = {
    task.name: task
    for task in (
        Task("recover", lambda record, field, _: ask_intact(record, field), one_per_text=True),
        Task("question", lambda record, field, _: ask_question(record, field)),
        Task("problem", lambda record, field, _: ask_problem(record, field), examples_need=require_worked),
        Task("complete", lambda record, field, _: ask_completion(record, field)),
        Task("rectify", lambda record, field, _: ask_intact(record, field), one_per_text=True),
        Task("summarise", ask_summary, ("reference",), one_per_text=True),
        Task("translate", ask_translation, ("target_language", "reference"), one_per_text=True),
    )
}
"""Every task that is made of records: those of Cao et al. (2023) to ``problem``, then those of TypoBench (2024)."""


TYPOBENCH = ("gsm8k", "mbpp", "boolq", "squad", "csqa")
"""Corpora of TypoBench: its script pools all splits and cannot load three of these; no sample was released, so one of the user's
own takes its place."""
_PUBLISHED_TASKS: Mapping[str, Sequence[str]] = {
    "realtimeqa": ("recover", "question"),
    "dream": ("question",),
    "aqua": ("problem",),
    **dict.fromkeys(TYPOBENCH, ("complete", "rectify", "summarise", "translate")),
}


DREAM_DROPPED: Mapping[str, tuple[int, ...]] = {"test": (), "dev": (371,)}
"""Places of the annotated questions that went through the pass and were left out afterwards."""


@dataclass(frozen=True)
class PublishedRecords:
    """Records in the published order."""

    records: tuple[Record, ...]  # what is asked
    pass_over: tuple[Record, ...]  # what the published pass goes over: these, or a list that holds them


def published_list(
    corpus: str, where: Path | Iterable[Path], *, task: str, split: str | None = None
) -> PublishedRecords:
    """Load what a paper asked, for :func:`stimuli.recipes.tasks.task_items` with ``published=True``."""
    if corpus not in _PUBLISHED_TASKS:
        raise unknown_name("published list of corpus", corpus, _PUBLISHED_TASKS)
    if task not in _PUBLISHED_TASKS[corpus]:
        raise UserError(
            f"task {task} was not published with {corpus}",
            mend=f"Use {' or '.join(_PUBLISHED_TASKS[corpus])}, or the corrected mode.",
        )
    if corpus in TYPOBENCH or corpus == "aqua":
        records = load_corpus(corpus, where, split="test" if corpus == "aqua" else split).records
        return PublishedRecords(records, records)
    if corpus == "realtimeqa":
        records = load_corpus(corpus, where, selection="recovery").records
        if task != "question":
            return PublishedRecords(records, records)
        return PublishedRecords(load_corpus(corpus, where, selection="answerable").records, records)
    sources = where if isinstance(where, Path) else tuple(where)
    parts = [_dream(sources, name) for name in ((split,) if split else tuple(DREAM_DROPPED))]
    return PublishedRecords(
        tuple(record for part in parts for record in part.records),
        tuple(record for part in parts for record in part.pass_over),
    )


def _dream(where: Path | Iterable[Path], split: str) -> PublishedRecords:
    """Return the annotated questions of a split; the pass went over the question, too, that was dropped afterwards."""
    asked = load_corpus("dream", where, split=split, selection="annotated").records
    pass_over = list(asked)
    if DREAM_DROPPED.get(split):
        by_id = {record.record_id: record for record in load_corpus("dream", where, split=split).records}
        for place in DREAM_DROPPED[split]:
            pass_over.insert(place, by_id[NOT_ASKED])
    return PublishedRecords(asked, tuple(pass_over))


_RS = "shuffle:all"


def printed_examples(task: str) -> tuple[Record, ...]:
    """Return the examples that the papers print for a task."""
    data = data_file("recipes/demonstrations.json")
    printed = {name: given for name, given in data.items() if isinstance(given, Mapping)}
    if task not in printed:
        raise UserError(
            f"the papers print no examples for task {task!r}",
            mend=f"Give records as examples, or use one of: {', '.join(sorted(printed))}.",
        )
    entry = printed[task]
    return tuple(
        Record(
            record_id=f"example-{number}",
            corpus=entry["source"],
            split=None,
            licence=entry["licence"],
            texts=given["texts"],
            choices=tuple(given["choices"]) if "choices" in given else None,
            answer=given.get("answer"),
            rationale=given.get("rationale"),
        )
        for number, given in enumerate(entry["records"], 1)
    )


def examples_shown(
    examples: Sequence[TaskRecord], levels: FactorLevels, design: ItemDesign
) -> list[list[dict[str, DisplayedField]]]:
    """Show examples at every rate that they come in."""
    if not design.published:
        return [corrected_shown(example, levels, design) for example in examples]
    texts = [nfc(example.text) for example in examples]
    passes = {level: demonstration_pass(texts, given) for level, given in levels.given.items()}
    labels = {level: f"{published_operation(given).label}, examples" for level, given in levels.given.items()}
    as_intact = dict.fromkeys(levels.given, parse_operation("none"))
    examples_in_levels = []
    for place, (example, text) in enumerate(zip(examples, texts, strict=True)):
        results = {
            level: Scrambled(passed[place], changes_between(text, passed[place]))
            for level, passed in passes.items()
        }
        displayed = describe(text, results, as_intact, field=example.field, language=design.settings.language)
        labelled_texts = [replace(shown, operation=labels[shown.level]) for shown in displayed]
        examples_in_levels.append([{example.field: shown} for shown in labelled_texts])
    return examples_in_levels


def demonstration_pass(texts: Sequence[str], given: OperationSpec) -> list[str]:
    """Scramble examples as the published ones were: the whole rate at once, one random stream over the list."""
    operation = parse_operation(given)
    if operation.changes_nothing:
        return list(texts)
    if operation.type.name != _RS:
        raise UserError(
            f"examples were published at RS only, not at {operation.label}",
            mend="Use none, RS-20, RS-50 or RS-100 for the examples, or the corrected mode.",
        )
    return scramble_demonstrations(texts, operation.rate)


NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def task_items(
    task: str,
    records: Sequence[Record],
    design: ItemDesign,
    *,
    exemplars: Sequence[Record] | str = (),
    options: Mapping[str, Any] = NO_OPTIONS,
    pass_over: Sequence[Record] | None = None,
) -> TaskItems:
    """Make the items of a task: record by record, each in every condition, behind its examples."""
    if task == LEXICAL_DECISION:
        return lexical_decision_items(records, design, options)
    if task not in TASKS:
        raise unknown_name("task", task, (*TASKS, LEXICAL_DECISION))
    work = _Work(TASKS[task], replace(design, set_name=design.set_name or task), dict(options))
    examples = work.examples(exemplars)
    skipped: list[Skipped] = []
    suitable = list(_suitable(work, records, examples, skipped))
    shown = work.published(suitable, pass_over or records) if design.published else None
    number = design.number
    made: dict[str, list[Item]] = {}
    order = list(suitable)
    if number is not None:  # drawn by seed and id alone
        order.sort(key=lambda asked: stable_seed(design.seed, "draw", "records", asked.record.record_id))
    for asked in order:
        if len(made) == number:
            break
        try:
            if shown is None:
                conditions = corrected_shown(asked, design.factor_levels, design, work.also)
            else:
                conditions = shown[asked.record.record_id]()
            made[asked.record.record_id] = work.test_items(asked, conditions)
        except Unsuitable as error:
            _stop_or_skip(error, asked.record, skipped, design.on_bad)
    if number is not None and not 0 <= number <= len(made):
        raise UserError(f"{number} records were requested, but only {len(made)} suit task {task}")
    drawn = [made[asked.record.record_id] for asked in suitable if asked.record.record_id in made]
    items = [*work.example_items(examples), *(item for of_record in drawn for item in of_record)]
    return TaskItems(tuple(items), tuple(skipped))


@dataclass(frozen=True)
class _Work:
    """One call of :func:`task_items`: what holds for all its records."""

    task: Task
    design: ItemDesign
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        known = (*EVERY_TASK, *self.task.options)
        for option in self.options:
            if option not in known:
                raise unknown_name(f"option of task {self.task.name}:", str(option), known)
        if self.design.published and self.also:
            raise UserError(
                "also_scramble: only the reading field was scrambled in the published stimuli",
                mend="Leave also_scramble out, or use the corrected mode.",
            )
        if self.demonstration_levels.withheld:
            raise UserError("demonstrations: the text of an example cannot be withheld")

    @property
    def also(self) -> tuple[str, ...]:
        given = self.options.get("also_scramble", ())
        return (given,) if isinstance(given, str) else tuple(given)

    @functools.cached_property
    def demonstration_levels(self) -> FactorLevels:
        factor = self.options.get("demonstration_factor")
        given = self.options.get("demonstrations", "none")
        if factor is not None and (not isinstance(given, Mapping) or factor == self.design.factor):
            raise UserError(
                f"demonstration_factor {factor!r} needs a separate name and a mapping of level to operation under "
                "demonstrations",
                mend="Give for example demonstrations: {RS-0: none, RS-50: RS-50}.",
            )
        return FactorLevels(None, {"": given}) if factor is None else FactorLevels.parse(factor, given)

    def ask(self, record: Record) -> TaskRecord:
        if not self.design.published:
            require_unlike(record)
        asked = self.task.ask(record, self.field_of(record), self.options)
        if self.design.factor_levels.withheld and not (asked.beside or asked.choices):
            raise UserError(
                f"task {self.task.name}: nothing is left to answer where the {asked.field} is withheld",
                mend="Use withhold in tasks that ask a question about the text or give options.",
            )
        return asked

    def examples(self, given: Sequence[Record] | str) -> list[TaskRecord]:
        if isinstance(given, str):  # printed
            printed = printed_examples(self.task.name)
            return [self.task.ask(record, reading_field(record), self.options) for record in printed]
        for record in given:
            if self.task.examples_need:
                self.task.examples_need(record)
        return [self.task.ask(record, self.field_of(record), self.options) for record in given]

    def field_of(self, record: Record) -> str:
        """Return the name of the text that conditions change."""
        return reading_field(record, self.options.get("field"))

    def published(
        self, suitable: Sequence[TaskRecord], pass_over: Sequence[Record]
    ) -> dict[str, Callable[[], list[dict[str, DisplayedField]]]]:
        fields = list(map(self.field_of, pass_over))
        done = published_shown(pass_over, fields, self.design.factor_levels, self.design.settings.language)
        by_id = {record.record_id: shown for record, shown in zip(pass_over, done, strict=True)}
        missing = next((record.record for record in suitable if record.record.record_id not in by_id), None)
        if missing is not None:
            raise UserError(f"{where_is(missing)} is not in the list that the published pass goes over")
        return by_id

    def test_items(self, asked: TaskRecord, conditions: Sequence[Mapping[str, DisplayedField]]) -> list[Item]:
        levels, examples = self.design.factor_levels, self.demonstration_levels
        return [
            item_of(
                asked,
                shown,
                {**examples.condition(example), **levels.condition(shown[asked.field].level)},
                self._design_of(levels, shown[asked.field].level, "test"),
            )
            for example in examples.given
            for shown in conditions
        ]

    def example_items(self, examples: Sequence[TaskRecord]) -> list[Item]:
        levels = self.demonstration_levels
        return [
            item_of(
                asked,
                shown,
                levels.condition(shown[asked.field].level),
                self._design_of(levels, shown[asked.field].level, "exemplar"),
            )
            for asked, conditions in zip(examples, examples_shown(examples, levels, self.design), strict=True)
            for shown in conditions
        ]

    def _design_of(self, levels: FactorLevels, level: str, role: Role) -> ItemDesign:
        seed = levels.published_seeds[level] if self.design.published else self.design.seed
        return replace(self.design, seed=seed, role=role)


def _suitable(
    work: _Work, records: Sequence[Record], examples: Sequence[TaskRecord], skipped: list[Skipped]
) -> Iterator[TaskRecord]:
    """Yield the task's records, without texts of examples and, in some tasks, without duplicate texts."""
    shown = {_plain(example.text) for example in examples}
    first = _first_of_text(work, records) if work.task.one_per_text and not work.design.published else None
    seen: set[str] = set()
    for record in records:
        try:
            asked = work.ask(record)
            if _plain(asked.text) in shown:
                raise Unsuitable(f"{where_is(record)}: an example has the same {asked.field}")
        except Unsuitable as error:
            _stop_or_skip(error, record, skipped, work.design.on_bad)
            continue
        if first is not None and (twin := first[_plain(asked.text)]) != record.record_id:
            skipped.append(Skipped(record.record_id, record.corpus, f"the same {asked.field} as {twin!r}"))
            continue
        if record.record_id in seen:
            raise UserError(
                f"{where_is(record)} occurs twice among the records",
                mend="Load one split at a time, or give every record a different id.",
            )
        seen.add(record.record_id)
        yield asked


def _first_of_text(work: _Work, records: Sequence[Record]) -> dict[str, str]:
    """Return the id that stands for each text: the first in the alphabet, so that the order of records has no say."""
    first: dict[str, str] = {}
    for record in sorted(records, key=lambda record: record.record_id):
        text = record.texts.get(work.field_of(record) if record.texts else "", "")
        first.setdefault(_plain(text), record.record_id)
    return first


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _stop_or_skip(error: Unsuitable, record: Record, skipped: list[Skipped], on_bad: OnBad) -> None:
    if on_bad == "stop":
        if error.mend is None:
            raise Unsuitable(error.message, mend="on_bad: skip leaves such records out.")
        raise error
    skipped.append(Skipped(record.record_id, record.corpus, error.message))
