"""Letter-geometry items: computed ones in groups that share a list of options, or the released 90 as they are."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path

from stimuli.htest.geometry.glyphs import symbol_name
from stimuli.htest.geometry.operations import FAMILIES, sentence
from stimuli.htest.geometry.options import OPTIONS, GeometryItem, generate_geometry
from stimuli.htest.geometry.questions import Question, question_name, questions
from stimuli.htest.geometry.released import load_released_geometry
from stimuli.htest.geometry.substitutes import other_symbols, other_wording
from stimuli.item import Item, Provenance

SET = "letter_geometry"
FIELD = "question"
_LICENCE = "MIT"
RELEASED = "H-TEST"
"""Source of released questions."""


def geometry_items(
    n: int,
    seed: int,
    families: Sequence[str] = FAMILIES,
    *,
    asked_of_each: int = OPTIONS,
    language: str = "en",
    family_factor: str | None = "family",
    task_factor: str | None = None,
) -> list[Item]:
    """Make letter-geometry items whose answers are computed from rendered glyphs.

    Parameters
    ----------
    n : int
        Number of items, a multiple of ``asked_of_each``, spread over the families.
    seed : int
        The study's seed.
    families : sequence of str
        Among rotation, reflection, addition, subtraction, composition.
    asked_of_each : int
        How many questions are asked of a list of options: 4 (default) or fewer, 1 where no list may come twice.
    language : str
        ``en`` or ``de``.
    family_factor : str or None
        Factor whose level is the family.
    task_factor : str or None
        Factor whose level is ``letter_geometry``, for studies with other H-TEST tasks.

    Returns
    -------
    list of Item
        With covariates ``match_answer``, ``match_next`` and ``margin`` (similarity of the computed shape to the answer
        and to the next symbol of the whole alphabet), ``match_option_1`` to ``_4``, ``fonts`` (how many of three
        fonts agree), ``errors`` (options that a plausible error gives) and ``group`` (items that share their options).

    Raises
    ------
    UserError
        See :func:`stimuli.htest.geometry.options.generate_geometry`.
    """
    made = []
    places: dict[tuple[str, int], int] = {}
    for one in generate_geometry(n, seed=seed, families=families, asked_of_each=asked_of_each):
        group = (one.question.family, one.group)
        places[group] = places.get(group, 0) + 1
        condition: dict[str, str] = {}
        if family_factor is not None:
            condition[family_factor] = one.question.family
        if task_factor is not None:
            condition[task_factor] = SET
        made.append(
            Item(
                item_id=f"{one.question.family}-{one.group:03d}-{places[group]}",
                set_name=SET,
                role="test",
                condition=condition,
                shown={FIELD: one.question.text(language)},
                intact={},
                choices=one.options,
                answer=one.answer,
                covariates=_covariates(one),
                provenance=Provenance(
                    source="letter geometry of wrods, DejaVu fonts",
                    source_id=one.question.name,
                    split=None,
                    licence=_LICENCE,
                    operation=f"geometry:{'+'.join(one.question.operations)}",
                    seed=seed,
                ),
            )
        )
    return made


def _covariates(one: GeometryItem) -> dict[str, float | str | None]:
    reading = one.question.reading
    named = {f"match_option_{place}": round(match, 4) for place, match in enumerate(one.likeness, 1)}
    return {
        "match_answer": round(reading.match, 4),
        "match_next": round(reading.next_match, 4),
        "margin": round(reading.margin, 4),
        **named,
        "fonts": len(one.question.fonts),
        "errors": len(one.errors),
        "group": f"{one.question.family}-{one.group:03d}",
        "answer_name": symbol_name(one.answer),
    }


def other_questions(items: Sequence[Item], seed: int, language: str = "en") -> dict[str, str]:
    """Return each item's question with other symbols, of which none of its options is the result."""
    taken = {str(item.provenance["source_id"]) for item in items} | {item.shown[FIELD] for item in items}
    found: dict[str, str] = {}
    for item in items:
        options = tuple(item.choices or ())
        if item.provenance["source"] == RELEASED:
            text = other_wording(item.shown[FIELD], options, seed, item.item_id, taken)
            taken.add(text)
        else:
            question = _questions_by_name()[str(item.provenance["source_id"])]
            symbols = other_symbols(question, options, seed, item.item_id, taken)
            text = sentence(symbols, question.operations, language)
            taken.add(question_name(symbols, question.operations))
        found[item.item_id] = text
    return found


@functools.cache
def _questions_by_name() -> Mapping[str, Question]:
    return {one.name: one for family in FAMILIES for one in questions(family)}


def geometry_released_items(
    folder: Path, *, family_factor: str | None = "family", task_factor: str | None = None
) -> list[Item]:
    """Make items from the 90 released questions, options and keys as released."""
    made = []
    for one in load_released_geometry(folder):
        condition: dict[str, str] = {}
        if family_factor is not None:
            condition[family_factor] = one.family
        if task_factor is not None:
            condition[task_factor] = SET
        made.append(
            Item(
                item_id=f"{SET}-released-{one.line:03d}",
                set_name=SET,
                role="test",
                condition=condition,
                shown={FIELD: one.question},
                intact={},
                choices=one.options,
                answer=one.answer,
                provenance=Provenance(
                    source=RELEASED,
                    source_id=f"letter_geometry_test.jsonl:{one.line}",
                    split="test",
                    licence=_LICENCE,
                    operation="released",
                    seed=None,
                ),
            )
        )
    return made
