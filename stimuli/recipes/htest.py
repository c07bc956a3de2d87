"""H-TEST items: released tasks, further ones of their making, matched pairs of rules and exemplars for them, and letter geometry."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from stimuli.covariates import WORD, covariate_table, text_covariates, words_covariates
from stimuli.errors import UserError, unknown_name
from stimuli.features import exempt, text_features
from stimuli.htest.geometry.questions import FAMILIES, GeometryQuestion, question_name, questions, sentence
from stimuli.htest.geometry.released import (
    OPTIONS,
    GeometryItem,
    generate_geometry,
    load_released_geometry,
    other_symbols,
    other_wording,
)
from stimuli.htest.geometry.shapes import symbol_name
from stimuli.htest.released import (
    LABELS,
    RELEASED_TASKS,
    ReleasedItem,
    checked_exemplars,
    generate_published,
    load_released_task,
)
from stimuli.htest.rules import Label, Pair, Rule, rule
from stimuli.item import Item, Provenance, Role
from stimuli.lexicon import zipf
from stimuli.recipes.conditions import WITHHELD, WITHHOLD, ItemDesign, draw_some, show_in_conditions
from stimuli.scramble.conditions import ScrambleSettings
from stimuli.scramble.types import parse_operation
from stimuli.seeds import generator, stable_seed
from stimuli.words import find_words, nfc

Order = Literal["alternating", "random"]
_FRUITLESS_DRAWS = 2000
_SAME = 1e-9
_LETTERS = re.compile(r"[^\W\d_]+")

FIELD = "text"
_LANGUAGE = "en"
_LICENCE = "MIT"
"""Of the released tasks and questions, and of our letter geometry."""


@dataclass(frozen=True)
class GeneratedItem:
    """One generated text with its label."""

    text: str  # what is shown
    label: Label  # its class
    number: (
        int  # from 1, in the alternating order of its part, however many are asked for and in whatever order
    )
    pair: int | None = None  # the matched pair that it belongs to, from 1 in each part


@dataclass(frozen=True)
class RuleItems:
    """Generated exemplars and test items of a rule, in the order in which they are shown."""

    exemplars: tuple[GeneratedItem, ...]
    test: tuple[GeneratedItem, ...]


def generate(
    name: str,
    *,
    exemplars: int,
    items: int | None,
    seed: int,
    folder: Path | None = None,
    order: Order = "alternating",
) -> RuleItems:
    """Return exemplars and test items of a rule; those of a released task as published, with the words in ``folder``."""
    checked_exemplars(exemplars)
    if items is None or items % 2:
        raise UserError(f"items is {items!r}; both labels get the same number, so it is an even whole number")
    if folder is not None:
        published = generate_published(name, folder, exemplars=exemplars, items=items, seed=seed)
        shown, tested = (
            tuple(GeneratedItem(text, label, number) for number, (text, label) in enumerate(part, 1))
            for part in published
        )
    else:
        taken: set[str] = set()
        shown, tested = (
            tuple(_labelled(_pairs(rule(name), number // 2, part, seed, taken)))
            for number, part in ((exemplars, "exemplars"), (items, "items"))
        )
    if order == "random":
        purpose = (seed, "htest exemplar order", name)
        shown = tuple(sorted(shown, key=lambda exemplar: stable_seed(*purpose, exemplar.number)))
    return RuleItems(shown, tested)


def _labelled(pairs: Iterable[Pair]) -> Iterator[GeneratedItem]:
    for number, pair in enumerate(pairs, 1):
        yield GeneratedItem(pair.a, "A", 2 * number - 1, number)
        yield GeneratedItem(pair.b, "B", 2 * number, number)


def _pairs(chosen: Rule, number: int, part: str, seed: int, texts: set[str]) -> list[Pair]:
    """Draw pairs until there are enough; ``texts`` are those taken, new ones are added."""
    draw = generator(seed, "htest pairs", chosen.name, part)
    about = exempt(chosen.about).features
    carriers: set[str] = set()
    pairs: list[Pair] = []
    unequal: Counter[str] = Counter()
    fruitless = 0
    while len(pairs) < number and fruitless < _FRUITLESS_DRAWS:
        fruitless += 1
        pair = chosen.pair(draw)
        if pair.carrier in carriers or {pair.a, pair.b} & texts or _parts(pair, chosen, seed) != {part}:
            continue
        if differing := _refused(pair, chosen, about):
            unequal.update(differing)
            continue
        carriers.add(pair.carrier)
        texts |= {pair.a, pair.b}
        pairs.append(pair)
        fruitless = 0
    if len(pairs) < number:
        most = ", ".join(f"{feature} ({count})" for feature, count in unequal.most_common(3))
        refused = f" Pairs were refused most often for {most}." if most else ""
        raise UserError(
            f"rule {chosen.name!r} gives no {number} different pairs; it gave {len(pairs)}",
            mend=f"Ask for fewer items, or give the rule more words.{refused}",
        )
    return pairs


def _parts(pair: Pair, chosen: Rule, seed: int) -> set[str]:
    """Return the parts to which a pair's families are assigned; a quarter of all families are for exemplars."""
    return {
        "items" if stable_seed(seed, "htest carriers", chosen.name, family) % 4 else "exemplars"
        for family in pair.families or (pair.carrier,)
    }


def _refused(pair: Pair, chosen: Rule, about: frozenset[str]) -> list[str]:
    if (chosen.predicate(pair.a), chosen.predicate(pair.b)) != LABELS:
        return ["its label"]
    return _displaced(pair, about, chosen.tolerance) or unmatched(pair, about, chosen.tolerance)


def _displaced(pair: Pair, about: frozenset[str], tolerance: Mapping[str, float]) -> list[str]:
    """Return differences in the two features that most pairs fail on; all features together cost twenty times as much."""
    a, b = (_LETTERS.findall(text) for text in (pair.a, pair.b))
    measures: tuple[tuple[str, Callable[[str], float]], ...] = (
        ("longest_position", len),
        ("rarest_position", lambda word: -(zipf(word.casefold(), _LANGUAGE) or 0.0)),
    )
    return [
        feature
        for feature, measure in measures
        if feature not in about
        and feature not in tolerance
        and _place_of_most(a, measure) != _place_of_most(b, measure)
    ]


def _place_of_most(words: list[str], measure: Callable[[str], float]) -> int:
    return max(range(len(words)), key=lambda place: measure(words[place]), default=0)


def unmatched(pair: Pair, about: frozenset[str], tolerance: Mapping[str, float]) -> list[str]:
    """Return the nuisance features in which the members of a pair differ by more than the tolerance."""
    a, b = (text_features(text, language=_LANGUAGE, leave_out=about) for text in (pair.a, pair.b))
    return [name for name in a if abs(a[name] - b[name]) > tolerance.get(name, 0.0) + _SAME]


@dataclass(frozen=True, kw_only=True)
class ABTaskDesign:
    """Number of exemplars and test items of each A/B task, and how they are drawn."""

    exemplars: int
    seed: int  # the study's
    items: int | None = None  # test items of a task; None for all released ones
    order: Order = "alternating"  # of exemplars that are made


def htest_released_items(
    folder: Path, design: ABTaskDesign, tasks: Sequence[str] = RELEASED_TASKS
) -> list[Item]:
    """Make items from the released tasks."""
    made: list[Item] = []
    for name in tasks:
        task = load_released_task(folder, name)
        parts: tuple[tuple[Role, str, Sequence[ReleasedItem]], ...] = (
            ("exemplar", "dev", task.first_exemplars(design.exemplars)),
            ("test", "test", _drawn(task.test, design, name)),
        )
        _look_up_words(text.text for _, _, texts in parts for text in texts)
        for role, split, texts in parts:
            for text in texts:
                source_id = f"{name}_{split}.jsonl:{text.line}"
                origin = _released(source_id, split, None if design.items is None else design.seed)
                made.append(_item(f"{name}-{split}-{text.line:03d}", name, role, text, origin))
    return made


def _released(source_id: str, split: str, seed: int | None = None) -> Provenance:
    return Provenance(
        source=RELEASED, source_id=source_id, split=split, licence=_LICENCE, operation="released", seed=seed
    )


def _look_up_words(texts: Iterable[str]) -> None:
    """Measure the words of all texts at once: one by one they cost several times as much."""
    words_covariates(sorted({word.text for text in texts for word in find_words(nfc(text))}), _LANGUAGE)


def _drawn(test: Sequence[ReleasedItem], design: ABTaskDesign, name: str) -> list[ReleasedItem]:
    number = design.items
    if number is None:
        return list(test)
    if number % 2:
        raise UserError(f"items is {number}; both labels get the same number, so it is an even whole number")
    lines: set[int] = set()
    for label in LABELS:
        of_label = {f"{name} {item.line}": item.line for item in test if item.label == label}
        what = f"{label} items of {name}"
        drawn = draw_some(list(of_label), number // 2, seed=design.seed, key=str, what=what)
        lines |= {of_label[key] for key in drawn}
    return [item for item in test if item.line in lines]


def htest_rule_items(rules: Sequence[str], design: ABTaskDesign) -> list[Item]:
    """Make items from rules (see :func:`generate`); each rule is a set of its name."""
    return [item for name in rules for item in _generated(name, design, None)]


def htest_published_items(
    folder: Path, design: ABTaskDesign, tasks: Sequence[str] = RELEASED_TASKS
) -> list[Item]:
    """Make further items of released tasks as the paper's code made them, faults included, with a new seed."""
    return [item for name in tasks for item in _generated(name, design, folder)]


def _generated(name: str, design: ABTaskDesign, folder: Path | None) -> list[Item]:
    generated = generate(name, folder=folder, **vars(design))
    parts: tuple[tuple[Role, str, Sequence[GeneratedItem]], ...] = (
        ("exemplar", "dev", generated.exemplars),
        ("test", "test", generated.test),
    )
    _look_up_words(text.text for _, _, texts in parts for text in texts)
    made = []
    for role, split, texts in parts:
        origin = Provenance(
            source=rule(name).source,
            source_id=None,
            split=split,
            licence=None if folder is None else _LICENCE,
            operation=f"rule:{name}" if folder is None else f"published making:{name}",
            seed=design.seed,
        )
        for text in texts:
            item = _item(f"{name}-{split}-{text.number:03d}", name, role, text, origin)
            if text.pair is not None:
                pair = f"{name}-{split}-pair-{text.pair:03d}"
                item = replace(item, covariates={**item.covariates, "pair": pair})
            made.append(item)
    return made


def _item(
    item_id: str, task: str, role: Role, text: ReleasedItem | GeneratedItem, origin: Provenance
) -> Item:
    described = text_covariates(text.text, language=_LANGUAGE)
    return Item(
        item_id=item_id,
        set_name=task,
        role=role,
        condition={"task": task},
        shown={FIELD: text.text},
        intact={},
        choices=LABELS,
        answer=text.label,
        covariates={name: described[name] for name in (*WORD, "words")},
        provenance=origin,
    )


AS_IT_IS, SUBSTITUTED = "none", "Sub"
ARMS = (AS_IT_IS, SUBSTITUTED, WITHHOLD)
OTHER_SYMBOLS = "other symbols"
"""Operation of a question whose symbols were replaced."""

Levels = Mapping[str, str]


def text_in_arms(
    items: Sequence[Item], factor: str, levels: Levels, *, field: str, seed: int, language: str
) -> list[Item]:
    """Show the text of test items as it is, with other letters, or not at all; other items stay as they are."""
    design = ItemDesign(seed=seed, settings=ScrambleSettings(language=language))
    substituted = [level for level, does in levels.items() if does == SUBSTITUTED]
    operations = dict.fromkeys(substituted, parse_operation(SUBSTITUTED))
    change_names = {covariate.name for covariate in covariate_table() if covariate.group == "change"}
    made: list[Item] = []
    for item in items:
        if item.role != "test":
            made.append(item)
            continue
        texts = show_in_conditions(item.shown[field], operations, design, field=field, item_id=item.item_id)
        shown = {text.level: text for text in texts}
        for line in _lines(item, factor, levels, field):
            level = line.condition[factor]
            if level not in shown:
                made.append(line)
                continue
            new = shown[level]
            changed = {name: value for name, value in new.covariates.items() if name in change_names}
            made.append(
                replace(
                    line,
                    shown={**line.shown, field: new.text},
                    changes=new.changes,
                    left_intact=new.left_intact,
                    covariates={**line.covariates, **changed},
                    provenance=_operated(item, new.operation),
                )
            )
    return made


def question_in_arms(
    items: Sequence[Item], factor: str, levels: Levels, *, field: str, others: Mapping[str, str]
) -> list[Item]:
    """Ask test items' questions as they are, of other symbols, or not at all."""
    return [
        replace(
            line, shown={**line.shown, field: others[item.item_id]}, provenance=_operated(item, OTHER_SYMBOLS)
        )
        if levels[line.condition[factor]] == SUBSTITUTED
        else line
        for item in items
        for line in _lines(item, factor, levels, field)
    ]


def _lines(item: Item, factor: str, levels: Levels, field: str) -> list[Item]:
    """Return an item at every level, with its text where it is not withheld."""
    lines = []
    for level, does in levels.items():
        if does not in ARMS:
            raise unknown_name(f"level {level!r} of {factor}", does, ARMS)
        line = replace(
            item,
            condition={**item.condition, factor: level},
            intact={**item.intact, field: item.shown[field]},
        )
        if does == WITHHOLD:
            line = replace(line, shown={**item.shown, field: ""}, provenance=_operated(item, WITHHELD))
        lines.append(line)
    return lines


def _operated(item: Item, operation: str) -> Provenance:
    return Provenance(**{**item.provenance, "operation": operation})


SET = "letter_geometry"
QUESTION_FIELD = "question"
RELEASED = "H-TEST"
"""Source of released tasks and questions."""


def geometry_items(
    n: int,
    seed: int,
    families: Sequence[str] = FAMILIES,
    *,
    asked_of_each: int = OPTIONS,
    language: str = "en",
) -> list[Item]:
    """Return letter-geometry items whose answers are computed from rendered glyphs.

    Parameters
    ----------
    n : int
        Number of items, a multiple of ``asked_of_each``, spread over the families.
    seed : int
        The study's seed.
    families : sequence of str
        Among rotation, reflection, addition, subtraction, composition.
    asked_of_each : int
        Number of questions per list of options: 4 (default) or fewer; 1 if no list may be repeated.
    language : str
        ``en`` or ``de``.

    Returns
    -------
    list of Item
        With covariates ``match_answer``, ``match_next`` and ``margin`` (similarity of the computed shape to the answer
        and to the next symbol of the whole alphabet), ``match_option_1`` to ``_4``, ``fonts`` (how many of three
        fonts agree), ``errors`` (options that a plausible error gives) and ``group`` (items that share their options).
    """
    made = []
    places: Counter[str] = Counter()
    for item in generate_geometry(n, seed=seed, families=families, asked_of_each=asked_of_each):
        group = f"{item.question.family}-{item.group:03d}"
        places[group] += 1
        origin = Provenance(
            source="letter geometry of wrods, DejaVu fonts",
            source_id=item.question.name,
            split=None,
            licence=_LICENCE,
            operation=f"geometry:{'+'.join(item.question.operations)}",
            seed=seed,
        )
        asked = (item.question.family, item.question.text(language), item.options, item.answer)
        made.append(_question(f"{group}-{places[group]}", *asked, origin, _covariates(item)))
    return made


def _question(
    item_id: str,
    family: str,
    text: str,
    options: tuple[str, ...],
    answer: str,
    origin: Provenance,
    covariates: Mapping[str, Any] = MappingProxyType({}),
) -> Item:
    return Item(
        item_id=item_id,
        set_name=SET,
        role="test",
        condition={"family": family},
        shown={QUESTION_FIELD: text},
        intact={},
        choices=options,
        answer=answer,
        covariates=dict(covariates),
        provenance=origin,
    )


def _covariates(item: GeometryItem) -> dict[str, float | str | None]:
    reading = item.question.reading
    named = {f"match_option_{place}": round(match, 4) for place, match in enumerate(item.likeness, 1)}
    return {
        "match_answer": round(reading.match, 4),
        "match_next": round(reading.next_match, 4),
        "margin": round(reading.margin, 4),
        **named,
        "fonts": len(item.question.fonts),
        "errors": len(item.errors),
        "group": f"{item.question.family}-{item.group:03d}",
        "answer_name": symbol_name(item.answer),
    }


def other_questions(items: Sequence[Item], seed: int, language: str = "en") -> dict[str, str]:
    """Return each item's question with other symbols, of which none of its options is the result."""
    taken = {str(item.provenance["source_id"]) for item in items}
    taken |= {item.shown[QUESTION_FIELD] for item in items}
    texts: dict[str, str] = {}
    for item in items:
        options = tuple(item.choices or ())
        if item.provenance["source"] == RELEASED:
            text = other_wording(item.shown[QUESTION_FIELD], options, seed, item.item_id, taken)
            taken.add(text)
        else:
            question = _questions_by_name()[str(item.provenance["source_id"])]
            symbols = other_symbols(question, options, seed, item.item_id, taken)
            text = sentence(symbols, question.operations, language)
            taken.add(question_name(symbols, question.operations))
        texts[item.item_id] = text
    return texts


@functools.cache
def _questions_by_name() -> Mapping[str, GeometryQuestion]:
    return {question.name: question for family in FAMILIES for question in questions(family)}


def geometry_released_items(folder: Path) -> list[Item]:
    """Return items of the 90 released questions, options and keys as released."""
    return [
        _question(
            f"{SET}-released-{item.line:03d}",
            *(item.family, item.question, item.options, item.answer),
            _released(f"letter_geometry_test.jsonl:{item.line}", "test"),
        )
        for item in load_released_geometry(folder)
    ]
