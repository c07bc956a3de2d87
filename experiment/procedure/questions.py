"""Screens of questions: eligibility, background, vocabulary test, comprehension of instructions; and accepted answers.

The built-in questions of ``participants.eligible`` ask for first language and age without revealing the criteria, which stay on
the server.

The words are in the session's plan, so that the page and a conversation with a model use the same ones. The server determines
correctness after the answer is stored: the browser never has the key of a test item.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from random import Random
from typing import Any

from experiment.languages import Pack
from experiment.study import Study
from experiment.study.groups import asked_for_groups, groups_of, range_in
from experiment.study.questionnaires import (
    LANGUAGES,
    MATRIX,
    MatrixRow,
    conditions,
    is_asked,
    matrix_rows,
    points_of,
    scale_scores,
)
from stimuli.corpora.tables import read_table
from stimuli.errors import UserError, together, unknown_name
from stimuli.seeds import generator

Question = dict[str, Any]
SEEN = (
    "name",
    "ask",
    "type",
    "options",
    "from",
    "to",
    "low",
    "high",
    "optional",
)
"""Fields of a question that a page receives, with ``rows`` and ``only`` where it has them."""
OLDEST = 120
ROUNDS = 2
"""Default number of attempts at questions about instructions."""


@cache
def _autonyms() -> Mapping[str, str]:
    text = resources.files(__package__).joinpath("autonyms.json").read_text("utf-8")
    names: Mapping[str, str] = json.loads(text)["languages"]
    return names


def make_question(study: Study, name: str, given: Mapping[str, Any], pack: Pack | None = None) -> Question:
    """Return a question of a study in the plan's format: options as value and label, in the study's language by default."""
    kind = given["type"]
    options: list[dict[str, str]] | None = None
    if kind == "yes_no":
        texts = (pack or study.pack).texts
        options = [{"value": "yes", "label": texts["yes"]}, {"value": "no", "label": texts["no"]}]
    elif kind == MATRIX:
        options = [{"value": value, "label": label} for value, label in points_of(given)]
    elif given.get("options") == LANGUAGES:
        options = _languages(given.get("accept") or (), (pack or study.pack).texts)
    elif kind in ("choice", "several"):
        labels = given["options"]
        values = labels.items() if isinstance(labels, Mapping) else zip(labels, labels, strict=True)
        options = [{"value": str(value), "label": str(label)} for value, label in values]
    elif kind == "vocabulary":
        options = [{"value": word, "label": word} for word in vocabulary(study, name, given)["shown"]]
    return {
        "name": name,
        "ask": given["ask"],
        "type": kind,
        "options": options,
        "from": given.get("from"),
        "to": given.get("to"),
        "low": given.get("low"),
        "high": given.get("high"),
        "optional": given.get("optional", False),
        "accept": given.get("accept"),
        **({"shuffle": True} if given.get("shuffle") else {}),
        **({"only": conditions(given["only"])} if "only" in given else {}),
        **(_of_matrix(study, name, given) if kind == MATRIX else {}),
    }


def _of_matrix(study: Study, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    rows = [{**asdict(row), "accept": list(row.accept)} for row in matrix_rows(study, name, given)]
    return {"rows": rows, **{part: given[part] for part in ("score", "points") if part in given}}


def shuffled(question: Question, draw: Random) -> Question:
    """Return a question with its options, or a matrix with its rows, in a random order if the study wants one."""
    if not question.get("shuffle"):
        return question
    part = "rows" if "rows" in question else "options"
    mixed = list(question[part])
    draw.shuffle(mixed)
    return {**question, part: mixed}


def answer_names(question: Question) -> list[str]:
    """Return the names under which a question's answers are stored: its own, or those of a matrix' rows."""
    return [str(row["name"]) for row in question["rows"]] if "rows" in question else [str(question["name"])]


MOST_LETTERED = 26
TRIAL_FIELD = "text"
"""The field of a question's trial that holds the row of a matrix."""


def steps_of_question(question: Question) -> dict[str, tuple[str, dict[str, Any], str | None]]:
    """Return how models answer a question as trials, by the name of the answer: the step, its settings, and the row of a matrix.

    None of a question that depends on other answers, or that ticks several options.
    """
    kind, name = question["type"], str(question["name"])
    ends = {end: question[end] for end in ("from", "to", "low", "high") if question[end] is not None}
    given: dict[str, Any] = {"ask": question["ask"]}
    if "only" in question or kind in ("several", "vocabulary"):
        return {}
    if kind == MATRIX:
        scale = ends if "from" in ends else {"points": [option["label"] for option in question["options"]]}
        settings = {**given, **scale, "show": TRIAL_FIELD}
        return {str(row["name"]): ("rate", settings, str(row["text"])) for row in question["rows"]}
    if kind in ("scale", "slider"):
        return {name: ("rate", {**given, **ends, **({"as": kind} if kind == "slider" else {})}, None)}
    is_lettered = 0 < len(question["options"] or ()) <= MOST_LETTERED
    read_as = "option" if is_lettered else "number" if kind == "number" else "text"
    return {name: ("answer", {**given, "read_as": read_as}, None)}


def failed_checks(questions: Sequence[Question], answers: Mapping[str, Any]) -> tuple[int, int]:
    """Return how many attention checks among the rows of matrices were not answered as they ask, and how many were asked."""
    checks = [
        row
        for question in questions
        for row in question.get("rows", ())
        if row["accept"] and row["name"] in answers
    ]
    failed = [row for row in checks if str(answers[row["name"]]) not in row["accept"]]
    return len(failed), len(checks)


def vocabulary(study: Study, name: str, given: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the words and nonwords of a vocabulary test, and their order for all participants."""
    from stimuli.lexicon.base_words import vocabulary_test

    if "file" in given:
        return _of_file(study, name, str(given["file"]))
    return vocabulary_test(
        study.language,
        words=given.get("words", 40),
        nonwords=given.get("nonwords", 20),
        seed=study.seed,
        name=name,
    )


def _of_file(study: Study, name: str, file: str) -> dict[str, list[str]]:
    rows = read_table(study.folder / file, required=("word", "kind"))
    items_of_kind: dict[str, list[str]] = {"word": [], "nonword": []}
    faults: list[UserError] = []
    for number, row in zip(rows.numbers, rows.rows, strict=True):
        word, kind = str(row["word"]).strip(), str(row["kind"]).strip()
        if kind not in items_of_kind:
            fault = unknown_name("kind", kind, items_of_kind)
            faults.append(UserError(f"{file}, line {number}: {fault.message}", mend=fault.mend))
        else:
            items_of_kind[kind].append(word)
    if faults:
        raise together(faults)
    if not all(items_of_kind.values()):
        raise UserError(f"{file}: a vocabulary test needs words and nonwords")
    shown = [*items_of_kind["word"], *items_of_kind["nonword"]]
    generator(study.seed, "vocabulary test", name, file).shuffle(shown)
    return {"words": items_of_kind["word"], "nonwords": items_of_kind["nonword"], "shown": shown}


def eligibility_questions(
    study: Study, pack: Pack | None = None, held: Mapping[str, str] | None = None
) -> list[Question]:
    """Return the eligibility questions, in the study's language by default; empty without criteria.

    ``held``: the levels between sessions of one, whose group then says what is accepted.
    """
    eligible: Mapping[str, Any] = study.get("participants", "eligible", default={})
    groups = groups_of(study)
    if not eligible and not groups:
        return []
    texts = (pack or study.pack).texts
    asked: dict[str, Mapping[str, Any]] = {}
    of_groups = asked_for_groups(study)
    if "first_language" in eligible or "first_language" in of_groups:
        wanted = eligible.get("first_language", [])
        asked["first_language"] = {
            "ask": texts["question_first_language"],
            "type": "choice",
            "options": LANGUAGES,
            "accept": [wanted] if isinstance(wanted, str) else list(wanted),
        }
    if "age" in eligible or "age" in of_groups:
        low, high = eligible.get("age", (0, OLDEST))
        asked["age"] = {
            **{"ask": texts["question_age"], "type": "number", "from": 0, "to": OLDEST},
            "accept": f"{low} to {high}",
        }
    asked |= eligible.get("questions", {})
    return [
        _for_group(make_question(study, name, _with_languages(given, name, groups), pack), groups, held)
        for name, given in asked.items()
    ]


def _with_languages(
    given: Mapping[str, Any], name: str, groups: Iterable[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return a question with the answers that any group accepts, if nothing else limits them."""
    if given["accept"]:
        return given
    return {**given, "accept": list(dict.fromkeys(code for one in groups for code in one["accept"][name]))}


def _for_group(
    question: Question, groups: Iterable[Mapping[str, Any]], held: Mapping[str, str] | None
) -> Question:
    """Return a question that accepts the answers of the group of a session, if there is one."""
    own = next((one for one in groups if held and one["condition"].items() <= held.items()), None)
    return (
        question
        if own is None
        else question | {"accept": own["accept"].get(question["name"], question["accept"])}
    )


def group_of(screen: Mapping[str, Any], answers: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the levels of the group to which the answers to a screen belong: none of all, or {} on a screen without groups."""
    if "groups" not in screen:
        return {}
    return next(
        (
            dict(one["condition"])
            for one in screen["groups"]
            if all(_accepts(accept, answers.get(name)) for name, accept in one["accept"].items())
        ),
        None,
    )


def _languages(codes: Iterable[str], texts: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the options of a question about languages: those with a name here, others that a study accepts, and any other."""
    named = _autonyms()
    options = {
        **named,
        **{code: code for code in codes if code not in named},
        "other": texts["another_language"],
    }
    return [{"value": code, "label": label} for code, label in options.items()]


def device_rules(study: Study) -> dict[str, Any] | None:
    """Return the requirements for browser and computer, or None."""
    eligible: Mapping[str, Any] = study.get("participants", "eligible", default={})
    names = ("device", "browsers", "screen", "refresh_rate")
    if not any(name in eligible for name in names):
        return None
    width, _, height = str(eligible.get("screen", "x")).partition("x")
    return {
        "device": eligible.get("device"),
        "browsers": eligible.get("browsers"),
        "width": int(width) if width else None,
        "height": int(height) if height else None,
        "refresh_hz": eligible.get("refresh_rate"),
    }


def seen_question(question: Question) -> Question:
    """Return a question without its accepted answers, for a page."""
    seen = {name: question.get(name) for name in SEEN}
    if "rows" in question:
        seen["rows"] = [{"name": row["name"], "text": row["text"]} for row in question["rows"]]
    return seen | ({"only": question["only"]} if "only" in question else {})


def is_eligible(questions: list[Question], answers: Mapping[str, Any]) -> tuple[bool, list[str]]:
    """Return whether answers meet the criteria, and the names of questions with unaccepted answers."""
    missed = [
        question["name"]
        for question in questions
        if question.get("accept") is not None
        and is_asked(question.get("only", {}), answers)
        and not _accepts(question["accept"], _answer_to(question, answers))
    ]
    return not missed, missed


def _answer_to(question: Question, answers: Mapping[str, Any]) -> Any:
    """Return the answer to a question; of a matrix, its score."""
    if "rows" not in question:
        return answers.get(question["name"])
    rows = [MatrixRow(**{**row, "accept": tuple(row["accept"])}) for row in question["rows"]]
    ((_, score),) = scale_scores(question, answers, rows).items()
    return score


def comprehension_screen(study: Study, number: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the screen of questions about instructions, repeated after the instructions until enough answers are correct.

    ``number``: of the screen among those of its kind, from 1; ``given``: the settings of the instructions: ``questions``,
    ``pass``, ``rounds``, ``if_failed``.
    """
    questions = [make_question(study, name, settings) for name, settings in given["questions"].items()]
    share = int(str(given.get("pass", "100%")).rstrip("%")) / 100
    return {
        "kind": "questions",
        "name": f"comprehension-{number}",
        "screening": False,
        "comprehension": {
            "needed": math.ceil(share * len(questions) - 1e-9),
            "rounds": given.get("rounds", ROUNDS),
            "if_failed": given.get("if_failed", "end"),
        },
        "questions": questions,
    }


def right_answers(questions: Sequence[Question], answers: Mapping[str, Any]) -> int:
    """Return the number of correct answers about instructions; of several options, exactly the correct ones."""
    return sum(_is_right(question, _answer_to(question, answers)) for question in questions)


def _is_right(question: Question, given: Any) -> bool:
    accept = question["accept"]
    if question["type"] == "several":
        wanted = accept if isinstance(accept, list) else [accept]
        return isinstance(given, list) and {str(answer) for answer in given} == {
            str(answer) for answer in wanted
        }
    return _accepts(accept, given)


def _accepts(accept: Any, given: Any) -> bool:
    if given is None:
        return False
    answers = {_plain(answer) for answer in (given if isinstance(given, list) else [given])}
    return any(
        _plain(one) in answers or _is_within(one, given)
        for one in (accept if isinstance(accept, list) else [accept])
    )


def _is_within(accept: Any, given: Any) -> bool:
    """Return whether an answer is a number in a range such as ``18 to 65``."""
    ends = range_in(accept)
    try:
        return ends is not None and ends[0] <= float(given) <= ends[1]
    except (TypeError, ValueError, OverflowError):
        return False


def _plain(value: object) -> str:
    """Return a normalised answer: case, surrounding spaces, and 3.0 as 3."""
    number = isinstance(value, float) and value.is_integer()
    return str(int(value) if number else value).strip().casefold()  # type: ignore[call-overload]
