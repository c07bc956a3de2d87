"""Questionnaires as a study writes them: ready blocks of questions, matrices with their rows, scales, and branching.

A matrix is one question with rows, each of which has an answer of its own, named ``QUESTION_ROW``. A point has the number that it
is labelled with or, if labels are words, its place from 1. Scales are the means or sums of rows, reversed rows turned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiment.languages import ready_questions
from experiment.study.groups import asked_for_groups, range_in
from stimuli.corpora.tables import read_table, unread_columns
from stimuli.errors import UserError, did_you_mean, together, unknown_name

if TYPE_CHECKING:
    from experiment.study.study import Study

LANGUAGES = "languages"
"""The options of a question that are the names of languages."""
MATRIX = "matrix"
MOST_POINTS = 11
NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,40}")
ROW_COLUMNS = ("row", "text", "reversed", "scale", "accept")
_REVERSED = {
    "yes": True,
    "true": True,
    "1": True,
    "x": True,
    "no": False,
    "false": False,
    "0": False,
    "": False,
}


def asked_on_screen(study: Study, value: str | Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Return the questions of a screen by name: as given, or those of a ready block that eligibility does not ask already."""
    if not isinstance(value, str):
        return value
    ready, pack = ready_questions(), study.pack
    if pack.language not in ready["texts"]:
        known = ", ".join(sorted(ready["texts"]))
        raise UserError(
            f"the questions {value!r} are not available in {study.language!r}, only in {known}",
            mend="Write the questions in study.yaml.",
        )
    texts = {
        **ready["texts"][pack.language],
        **{name: pack.texts[name] for name in ("yes", "no")},
        **{name: pack.texts[f"question_{name}"] for name in ("age", "first_language")},
    }
    eligible: Mapping[str, Any] = study.get("participants", "eligible", default={})
    known_already = {*eligible, *eligible.get("questions", {}), *asked_for_groups(study)}
    return {
        name: {"ask": texts[name], "optional": True, **given, **_labelled(given, texts)}
        for name, given in ready["blocks"][value].items()
        if name not in known_already
    }


def _labelled(given: Mapping[str, Any], texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the words of a ready question's options, points and rows, by their values."""
    return {
        part: {value: texts[value] for value in given[part]}
        for part in ("options", "points", "rows")
        if isinstance(given.get(part), list)
    }


@dataclass(frozen=True)
class MatrixRow:
    """One row of a matrix."""

    name: str
    text: str
    is_reversed: bool = False
    scale: str | None = None
    accept: tuple[str, ...] = ()

    @property
    def is_scored(self) -> bool:
        """Whether the row may count in a scale; attention checks do not."""
        return not self.accept


def matrix_rows(study: Study, name: str, given: Mapping[str, Any]) -> list[MatrixRow]:
    """Return the rows of a matrix, from study.yaml or a table.

    Raises
    ------
    UserError
        Names every error of the table with its line.
    """
    turned = set(map(str, given.get("reversed", ())))
    file = given["rows"]
    if not isinstance(file, str):
        return [MatrixRow(f"{name}_{row}", str(text), row in turned) for row, text in file.items()]
    table = read_table(study.folder / file, columns={"row": "row", "text": "text"})
    unread_columns(file, table.description.columns, ROW_COLUMNS)
    points = {value for value, _ in points_of(given)}
    found: list[MatrixRow] = []
    faults: list[UserError] = []
    seen: dict[str, int] = {}
    for number, cells in zip(table.numbers, table.rows, strict=True):
        row, text, is_reversed, scale, accept = (
            str(cells.get(column) or "").strip() for column in ROW_COLUMNS
        )
        accepted = tuple(part.strip() for part in accept.split("|")) if accept else ()
        place = f"{file}, line {number}"
        for fault in _faults_of_row(
            row, text, is_reversed, scale, [part for part in accepted if part not in points]
        ):
            faults.append(UserError(f"{place}: {fault[0]}", mend=fault[1]))
        if row in seen:
            faults.append(
                UserError(f"{place}: row {row!r} is also in line {seen[row]}", mend="Give it another name.")
            )
        seen.setdefault(row, number)
        found.append(
            MatrixRow(
                f"{name}_{row}", text, _REVERSED.get(is_reversed.lower(), False), scale or None, accepted
            )
        )
    if not found:
        faults.append(
            UserError(f"{file} has no rows", mend="Give one row a line, with columns row and text.")
        )
    if turned:
        faults.append(
            UserError(
                f"rows are in {file}, and `reversed:` is in study.yaml",
                mend="Mark them in the column reversed.",
            )
        )
    if faults:
        raise together(faults, most=len(faults))
    return found


def _faults_of_row(
    row: str, text: str, is_reversed: str, scale: str, unknown: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for column, value in (("row", row), ("scale", scale or "a")):
        if not NAME.fullmatch(value):
            yield f"{column} is {value!r}", "Use small letters, digits and _, at most 41."
    if not text:
        yield "text is empty", "Write what the participant reads."
    if is_reversed.lower() not in _REVERSED:
        yield f"reversed is {is_reversed!r}", "Write yes or no."
    if unknown:
        yield (
            f"accept is {unknown[0]!r}, which is none of the points",
            "Write one of the points as in study.yaml; separate several by |.",
        )


def points_of(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return value and label of each point of a matrix."""
    points = given.get("points")
    if isinstance(points, Mapping):
        return [(str(value), str(label)) for value, label in points.items()]
    numbers = range(given["from"], given["to"] + 1) if points is None else points
    return [(str(point), str(point)) for point in numbers]


def numbers_of(points: Iterable[str]) -> dict[str, float]:
    """Return the number of each point: its own if all are numbers, else its place from 1."""
    values = list(points)
    try:
        return {value: float(value) for value in values}
    except ValueError:
        return {value: float(place) for place, value in enumerate(values, 1)}


def scale_names(rows: Sequence[MatrixRow]) -> list[str | None]:
    """Return the scales that a matrix' scored rows belong to; ``[None]`` if they form one scale without a name."""
    named = [row.scale for row in rows if row.is_scored and row.scale is not None]
    return list(dict.fromkeys(named)) or [None]


def scale_scores(
    question: Mapping[str, Any], answers: Mapping[str, Any], rows: Sequence[MatrixRow]
) -> dict[str | None, float | None]:
    """Return the score of each scale of a matrix, reversed rows turned; None if a row has no answer.

    Parameters
    ----------
    question : mapping
        With ``score`` (mean or sum), and ``points`` or ``from`` and ``to``.
    answers : mapping
        Row's name → value of the chosen point.
    """
    numbers = numbers_of(value for value, _ in points_of(question))
    both_ends = min(numbers.values()) + max(numbers.values())
    scores: dict[str | None, float | None] = {}
    for scale in scale_names(rows):
        of_scale = [row for row in rows if row.is_scored and row.scale == scale]
        values = [numbers.get(str(answers.get(row.name))) for row in of_scale]
        if not values or None in values:
            scores[scale] = None
            continue
        turned = [
            both_ends - value if row.is_reversed else value
            for row, value in zip(of_scale, values, strict=True)
            if value is not None
        ]
        scores[scale] = sum(turned) / (len(turned) if question["score"] == "mean" else 1)
    return scores


def conditions(only: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the answers to earlier questions on which a question is asked: ``values``, or numbers ``from`` and ``to``."""
    found: dict[str, dict[str, Any]] = {}
    for name, wanted in only.items():
        if (ends := range_in(wanted)) is not None:
            found[name] = {"from": ends[0], "to": ends[1]}
        else:
            found[name] = {
                "values": [str(value) for value in (wanted if isinstance(wanted, list) else [wanted])]
            }
    return found


def is_asked(only: Mapping[str, Mapping[str, Any]], answers: Mapping[str, Any]) -> bool:
    """Return whether earlier answers lead to a question; ``only`` from :func:`conditions`."""
    return all(_leads(condition, answers.get(name)) for name, condition in only.items())


def _leads(condition: Mapping[str, Any], answer: Any) -> bool:
    if answer is None:
        return False
    if "values" in condition:
        return bool(
            {str(value) for value in (answer if isinstance(answer, list) else [answer])}
            & set(condition["values"])
        )
    try:
        return bool(condition["from"] <= float(answer) <= condition["to"])
    except (TypeError, ValueError, OverflowError):
        return False


def check_matrix(study: Study, place: str, name: str, given: Mapping[str, Any]) -> Iterator[UserError]:
    """Yield what is wrong with a matrix, its table included."""
    if "rows" not in given:
        yield UserError(f"{place}: a matrix needs `rows:`", mend="Give a map of names and texts, or a table.")
        return
    is_numbered = "from" in given and "to" in given
    if is_numbered == ("points" in given):
        yield UserError(f"{place}: a matrix has `points:`, or `from:` and `to:`", mend="Give one of the two.")
        return
    if is_numbered and not all(isinstance(given[end], int) for end in ("from", "to")):
        yield UserError(f"{place}: `from:` and `to:` of a matrix are whole numbers")
        return
    points = points_of(given)
    if not 2 <= len(points) <= MOST_POINTS:
        yield UserError(
            f"{place} has {len(points)} points; a matrix has 2 to {MOST_POINTS}", mend="Use a slider."
        )
    if len({value for value, _ in points}) < len(points):
        yield UserError(
            f"{place}: two points have the same label", mend="Give each point a label of its own."
        )
    turned = list(map(str, given.get("reversed", ())))
    if turned and "score" not in given:
        yield UserError(
            f"{place}: rows are reversed, and no score is made", mend="Add `score: mean` or `score: sum`."
        )
    if not isinstance(given["rows"], str):
        for row in turned:
            if row not in given["rows"]:
                fault = unknown_name("row", row, given["rows"])
                yield UserError(f"{place}.reversed: {fault.message}", mend=fault.mend)
    try:
        matrix_rows(study, name, given)
    except UserError as fault:
        yield fault


def check_only(
    place: str, only: Mapping[str, Any], earlier: Mapping[str, Mapping[str, Any]]
) -> Iterator[UserError]:
    """Yield what is wrong with the answers on which a question is asked; ``earlier``: its predecessors by the name of an answer."""
    for name, condition in conditions(only).items():
        if any(unread.endswith("_") and name.startswith(unread) for unread in earlier):
            continue  # a row of a table that has errors
        if name not in earlier:
            names = sorted(known for known in earlier if not known.endswith("_"))
            hint = did_you_mean(name, names)
            known = f"one of {', '.join(names)}" if names else "an earlier question"
            yield UserError(
                f"{place}.only names {name!r}, which is no earlier question", mend=f"{hint}Name {known}."
            )
            continue
        question = earlier[name]
        kind, known_values = question["type"], answer_values(question)
        if kind in ("text", "vocabulary"):
            yield UserError(
                f"{place}.only: {name!r} is a question of type {kind}, whose answers are not known beforehand",
                mend="Name a question with options or numbers.",
            )
        elif "from" in condition and kind not in ("number", "scale", "slider"):
            yield UserError(
                f"{place}.only: {name!r} has no numbers", mend=f"Name its answers: {', '.join(known_values)}."
            )
        else:
            for value in condition.get("values", ()):
                if known_values and value not in known_values:
                    fault = unknown_name("answer", value, known_values)
                    yield UserError(f"{place}.only.{name}: {fault.message}", mend=fault.mend)


def answer_values(question: Mapping[str, Any]) -> list[str]:
    """Return the possible answers to a question (to a row, of a matrix); empty if they are numbers or free texts."""
    if question["type"] == "yes_no":
        return ["yes", "no"]
    if question["type"] == MATRIX:
        return [value for value, _ in points_of(question)]
    options = question.get("options", ())
    return [] if options == LANGUAGES else [str(option) for option in options]
