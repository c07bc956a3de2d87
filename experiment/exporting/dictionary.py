"""The data dictionary apart from columns: factors, readers with settings, training runs, versions, plan, freeze, collection.

The collection contains only totals (dates, calls, tokens, cost, participants' answers about themselves): no individual answer
leaves the store this way, and free texts are not summarised.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import variance
from typing import Any

from sqlalchemy import Connection, func, select

from experiment.columns import Column
from experiment.integrity.freezing import changes_since, read_freeze, registration_of
from experiment.languages import pack_for
from experiment.procedure.questions import vocabulary
from experiment.rating import told_of_rating
from experiment.simulated import read_truth
from experiment.store import records
from experiment.store.erasure import DECLINED, number_of
from experiment.store.tables import calls, events, sessions
from experiment.study import Study
from experiment.study.questionnaires import (
    MATRIX,
    MatrixRow,
    asked_on_screen,
    matrix_rows,
    numbers_of,
    points_of,
    scale_names,
    scale_scores,
)
from experiment.study.study import (
    KIND,
    as_trained,
    given_trainings,
    planned_analyses,
    read_record,
    training_folder,
)
from experiment.summaries.plain_english import tell
from experiment.trials import CHOSEN
from experiment.trials.own import measures_in_dictionary
from experiment.version import installed_version
from stimuli.errors import UserError
from stimuli.lexicon.base_words import score

KINDS = ("human", "simulated")
_CLIENT = ("browser", "system", "device", "width", "height", "pixel_ratio", "refresh_hz",
           "prefers_dark", "forced_colors", "inverted_colors")  # fmt: skip
_SAME = ("study", "version", "design_hash", "session_id", "reader_kind", "reader", "participant_id", "list_id", "is_pilot",
         "state", "ended_reason", "last_seen_at", "finished_at", "station")  # fmt: skip
_TYPES = dict.fromkeys(("number", "scale", "slider"), "number")


@dataclass
class ParticipantAnswers:
    """Participants' answers about themselves: columns by question, and values by session."""

    columns: dict[str, Column] = field(default_factory=dict)
    by_session: dict[str, dict[str, Any]] = field(default_factory=dict)
    passed: dict[str, bool] = field(default_factory=dict)


def read_answers(study: Study, connection: Connection) -> ParticipantAnswers:
    """Return the answers of a study's participants; if a question was answered twice, the last answer counts."""
    answers = ParticipantAnswers()
    tests = _vocabulary_tests(study)
    questions = list(questions_of(study))
    matrices = [question for question in questions if question["type"] == MATRIX]
    numbers = {row.name: _numbers(question) for question in matrices for row in question["rows"]}
    for question in questions:
        _add_columns(answers, question)
    if any("only" in question for question in questions):
        prose = "questions that this participant's earlier answers did not lead to, and whose answers are therefore not missing"
        answers.columns[NOT_ASKED] = Column(NOT_ASKED, "string", None, prose)
    sessions_of_study = select(sessions.c.session_id).where(sessions.c.study == study.id)
    query = select(events.c.session_id, events.c.kind, events.c.detail).where(
        events.c.kind.in_(("answers", "device")), events.c.session_id.in_(sessions_of_study)
    )
    given: dict[str, dict[str, Mapping[str, Any]]] = {}
    for session_id, kind, detail in connection.execute(query.order_by(events.c.event_id)):
        if kind == "device":
            answers.passed[session_id] = bool(detail.get("passed")) and answers.passed.get(session_id, True)
            continue
        row = answers.by_session.setdefault(session_id, {})
        if detail.get("screen") == "eligibility":
            answers.passed.setdefault(session_id, True)
        given.setdefault(session_id, {})[str(detail.get("screen"))] = detail.get("answers") or {}
        for name, value in (detail.get("answers") or {}).items():
            _add_columns(answers, {"name": name, "ask": name, "type": "text"})
            is_number = answers.columns[f"answer_{name}"].type == "number"
            value = numbers[name].get(str(value)) if name in numbers else value
            row[f"answer_{name}"] = _number(value) if is_number else _text(value)
            if name in tests and isinstance(value, list):
                row[f"vocabulary_{name}"] = score(value, tests[name]["words"], tests[name]["nonwords"])
    for session_id, by_screen in given.items():
        row = answers.by_session[session_id]
        together = {name: value for screen in by_screen.values() for name, value in screen.items()}
        for question in matrices if together else ():
            if "score" in question:
                scores = scale_scores(question, together, question["rows"])
                row |= {_score_column(question["name"], scale): value for scale, value in scores.items()}
        left_out = [
            name
            for question in questions
            if "only" in question
            for name in _answer_names(question)
            if name not in by_screen.get(question["screen"], {name: None})
        ]
        if left_out:
            row[NOT_ASKED] = " ".join(left_out)
    return answers


NOT_ASKED = "not_asked"
"""The column of participants that names the questions which their earlier answers did not lead to."""


def _answer_names(question: Mapping[str, Any]) -> list[str]:
    return [row.name for row in question["rows"]] if question["type"] == MATRIX else [question["name"]]


def _numbers(matrix: Mapping[str, Any]) -> dict[str, float]:
    return numbers_of(value for value, _ in points_of(matrix))


def _score_column(name: str, scale: str | None) -> str:
    return f"score_{name}" if scale is None else f"score_{name}_{scale}"


def participant_rows(
    connection: Connection, study: str, answers: ParticipantAnswers
) -> Iterator[dict[str, Any]]:
    """Yield the sessions of participants and simulated readers, in the order of their start."""
    excluded = _excluded_sessions(connection, study)
    clients = _clients(connection, study, *KINDS)
    for row in reversed(records.sessions_overview(connection, study)):
        if row["reader_kind"] not in KINDS:
            continue
        key = row["session_id"]
        client = clients.get(key, {})
        yield {
            **{name: row[name] for name in _SAME},
            **{name: client.get(name) for name in _CLIENT},
            **answers.by_session.get(key, {}),
            "eligible": False if row["state"] == "screened_out" else answers.passed.get(key),
            "excluded_reason": excluded.get(key),
            "began_at": row["created_at"],
            "minutes": _minutes(row["created_at"], row["finished_at"]),
            "trials_planned": row["planned_trials"],
            "trials_stored": row["n_trials"],
        }


def _excluded_sessions(connection: Connection, study: str) -> dict[str, str]:
    """Return why sessions were excluded as a whole."""
    return {
        flag["session_id"]: flag["reason"]
        for flag in records.all_flags(connection, study)
        if flag["kind"] == "excluded" and flag["trial_index"] is None
    }


def _clients(connection: Connection, study: str, *kinds: str) -> dict[str, Mapping[str, Any]]:
    """Return the description of the browser, or of the import, by session of some kinds of readers."""
    query = select(sessions.c.session_id, sessions.c.client)
    query = query.where(sessions.c.study == study, sessions.c.reader_kind.in_(kinds))
    return {row.session_id: row.client or {} for row in connection.execute(query)}


def questions_of(study: Study) -> Iterator[Mapping[str, Any]]:
    """Yield a study's questions to participants about themselves: name, wording (``ask``), type, screen; matrices with their rows."""
    from experiment.procedure.questions import eligibility_questions

    try:
        pack = study.pack
    except UserError:
        pack = pack_for("en")  # shown by earlier versions if there were no texts in the study's language
    own = study.get("participants", "eligible", "questions", default={})
    screens: dict[str, Mapping[str, Mapping[str, Any]]] = {
        "eligibility": {one["name"]: own.get(one["name"], one) for one in eligibility_questions(study, pack)}
    }
    values = [screen["questions"] for screen in study.get("procedure") if "questions" in screen]
    screens |= {
        f"questions-{number}": asked_on_screen(study, value) for number, value in enumerate(values, 1)
    }
    for screen, questions in screens.items():
        for name, given in questions.items():
            rows = {"rows": _rows(study, name, given)} if given["type"] == MATRIX else {}
            yield {"name": name, **given, **rows, "screen": screen}


def _rows(study: Study, name: str, given: Mapping[str, Any]) -> list[MatrixRow]:
    try:
        return matrix_rows(study, name, given)
    except UserError:
        return []  # the rows of another version: the answers stay, as they were chosen


def _vocabulary_tests(study: Study) -> dict[str, dict[str, list[str]]]:
    tests = {}
    for question in questions_of(study):
        if question["type"] == "vocabulary":
            try:
                tests[question["name"]] = vocabulary(study, question["name"], question)
            except UserError:
                continue  # the word list of another version: the answers stay, unscored
    return tests


def _add_columns(answers: ParticipantAnswers, question: Mapping[str, Any]) -> None:
    if question["type"] == MATRIX:
        return _add_columns_of_matrix(answers, question)
    name = question["name"]
    column = f"answer_{name}"
    if column in answers.columns:
        return
    kind = _TYPES.get(question["type"], "string")
    json_note = "; JSON: the list of what was chosen" if question["type"] in ("several", "vocabulary") else ""
    answers.columns[column] = Column(column, kind, None, f"answer to: {question['ask']}{json_note}")
    if question["type"] == "vocabulary":
        prose = "score of the vocabulary test, 0 to 1: mean of the shares of words accepted and of nonwords rejected"
        answers.columns[f"vocabulary_{name}"] = Column(f"vocabulary_{name}", "number", None, prose)


def _add_columns_of_matrix(answers: ParticipantAnswers, question: Mapping[str, Any]) -> None:
    """Add a column for each row, with the number of the point that was chosen, and one for each score."""
    name, numbers = question["name"], _numbers(question)
    labels = [(numbers[value], label) for value, label in points_of(question)]
    labels += [
        (numbers[labels[end][1]], question[word])
        for end, word in ((0, "low"), (-1, "high"))
        if word in question
    ]
    legend = ", ".join(f"{number:g}: {label}" for number, label in labels if f"{number:g}" != label)
    for row in question["rows"]:
        turned = "; reversed in the score" if row.is_reversed else ""
        check = f"; attention check, to be answered {' or '.join(row.accept)}" if row.accept else ""
        prose = f"answer to: {question['ask']} – {row.text}{f' ({legend})' if legend else ''}{turned}{check}"
        answers.columns[f"answer_{row.name}"] = Column(f"answer_{row.name}", "number", None, prose)
    for scale in scale_names(question["rows"]) if "score" in question else ():
        rows = ", ".join(row.name for row in question["rows"] if row.is_scored and row.scale == scale)
        prose = f"{question['score']} of {rows}, reversed rows turned; empty if one has no answer"
        column = _score_column(name, scale)
        answers.columns[column] = Column(column, "number", None, prose)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(value: Any) -> float | None:
    try:
        number = None if value in (None, "") else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and math.isfinite(number) else None


def _minutes(began: str, finished: str | None) -> float | None:
    if finished is None:
        return None
    return round((datetime.fromisoformat(finished) - datetime.fromisoformat(began)).total_seconds() / 60, 3)


TRUTH_FILE, PLAN = "simulated.json", "plan.json"


def dictionary_of(
    study: Study, connection: Connection, sessions: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the data dictionary of a study without descriptions of single columns."""
    readers = _readers(study, connection, sessions)
    trained = {reader["settings"].get("trained") for reader in readers.values() if "settings" in reader} - {
        None
    }
    versions = records.all_versions(connection, study.id)
    collected = str(versions[-1]["design_hash"]) if versions else None
    factors = {
        name: {"levels": list(levels), "reference": next(iter(levels))}
        for name, levels in study.factors.items()
    }
    truth = study.folder / TRUTH_FILE
    has_simulated = any(session["reader_kind"] == "simulated" for session in sessions)
    registration = registration_of(connection, study.id)
    return {
        "study": study.id,
        "title": study.title,
        "versions": sorted({session["version"] for session in sessions}),
        "design_hash": study.design_hash,
        "collected_design_hash": collected,
        "design_changed": collected not in (None, study.design_hash),
        "language": study.language,
        "seed": study.seed,
        "participants_wanted": study.get("participants", "wanted"),
        "factors": factors,
        "choice_types": list(CHOSEN),
        **({"scales": study.scales} if study.scales else {}),
        "own_measures": measures_in_dictionary(study.own_types),
        "between": study.between,
        "readers": readers,
        "tuning": {name: read_record(training_folder(study.folder, name)) for name in sorted(trained)},
        "planned": {analysis.name: analysis.to_json() for analysis in planned_analyses(study)},
        "exclude": study.get("analysis", "exclude", default={}),
        "probing": study.get("analysis", "probing"),
        "truth": read_truth(truth).to_json() if has_simulated and truth.exists() else None,
        "participants": summarize_people(study, connection),
        "procedure": summarize_procedure(study),
        "rating": told_of_rating(study, connection),
        "frozen": _frozen(study),
        "registration": None if registration is None else registration.to_json(),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "wrods": installed_version(),
    }


def write_plan(dictionary: Mapping[str, Any], file: Path) -> None:
    """Write the analysis plan, and what else a report needs besides the tables: readers, training runs, versions, freeze.

    The study's name is included because it seeds every random draw of an analysis: a report from an export has the same
    numbers.
    """
    factors = dictionary["factors"]
    plan = {
        **dictionary,
        "factors": {name: factor["levels"] for name, factor in factors.items()},
        "reference": {name: factor["reference"] for name, factor in factors.items()},
    }
    file.write_text(json.dumps(plan, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _readers(
    study: Study, connection: Connection, sessions: Sequence[Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Return each reader group's kind, settings, and totals of its calls."""
    resolved = records.resolved_models(connection, study.id)
    counted = records.counted_parameters(connection, study.id)
    readers: dict[str, dict[str, Any]] = {}
    for session in sessions:
        kind = session["reader_kind"]
        if session["state"] == DECLINED:
            continue  # from earlier databases; they are counted with those without stored data
        group = kind if kind in ("human", "simulated") else session["reader"]
        entry = readers.setdefault(group, {"kind": kind, "sessions": 0, "pilot_sessions": 0, "finished": 0})
        entry["sessions"] += 1
        entry["pilot_sessions"] += int(session["is_pilot"])
        entry["finished"] += int(session["state"] == "finished")
        if (settings := _settings_of(study, group)) is not None:
            entry |= {"settings": settings, "use": settings["use"]}
        if group in resolved:
            entry["resolved"] = ", ".join(resolved[group])
        if group in counted:
            entry["parameters"] = counted[group]
    if "human" in readers:
        readers["human"]["declined"] = number_of(connection, study.id)
    for reader, totals in summarize_calls(connection, study.id).items():
        readers.get(reader, {}).update(totals)
    return readers


def _frozen(study: Study) -> dict[str, Any] | None:
    """Return a study's freeze for analysis, with the study's differences from it; None without one."""
    frozen = read_freeze(study.folder)
    if frozen is None:
        return None
    return {
        "hash": frozen.hash,
        "frozen_at": frozen.frozen_at,
        "sessions_before": frozen.sessions_before,
        "earlier": [dict(freeze) for freeze in frozen.earlier],
        "changes": changes_since(study, frozen),
    }


def _settings_of(study: Study, group: str) -> dict[str, Any] | None:
    """Return the study's settings of a model, including trained ones that it does not list; None for other readers."""
    if group in study.models:
        return study.models[group]
    name = group.removeprefix(f"{KIND}:")
    if name == group or name not in given_trainings(study):
        return None
    return as_trained(study, {"use": group}, group)


_SUMS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cost_usd")
_COUNTED = ("choice", "yes_no", "scale")


def summarize_calls(connection: Connection, study: str) -> dict[str, dict[str, Any]]:
    """Return, for each reader with calls, their dates, number and totals."""
    is_sent = calls.c.from_cache.is_not(True)
    sums = [func.sum(calls.c[name]).label(name) for name in _SUMS]
    first, last = func.min(calls.c.created_at), func.max(calls.c.created_at)
    of_study = select(sessions.c.reader).join(calls, calls.c.session_id == sessions.c.session_id)
    of_study = of_study.where(sessions.c.study == study, is_sent)
    query = of_study.add_columns(
        first.label("first_call"), last.label("last_call"), func.count().label("calls"), *sums
    ).group_by(sessions.c.reader)
    totals = {str(row["reader"]): {**row} for row in connection.execute(query).mappings()}
    for entry in totals.values():
        entry.pop("reader")
        entry["dtype"], entry["imported_calls"] = [], 0
    kinds = of_study.add_columns(calls.c.dtype).where(calls.c.dtype.is_not(None)).distinct()
    for reader, dtype in connection.execute(kinds.order_by(calls.c.dtype)):
        totals[str(reader)]["dtype"].append(dtype)
    elsewhere = _imported(study, connection, "model")
    if elsewhere:
        by_session = of_study.add_columns(calls.c.session_id, func.count().label("many"))
        for row in connection.execute(by_session.group_by(sessions.c.reader, calls.c.session_id)):
            totals[str(row.reader)]["imported_calls"] += row.many if row.session_id in elsewhere else 0
    return totals


def summarize_people(study: Study, connection: Connection) -> dict[str, Any]:
    """Return how and when participants were recruited, and totals of their answers about themselves."""
    excluded = _excluded_sessions(connection, study.id)
    session_rows = [
        row
        for row in records.sessions_overview(connection, study.id)
        if row["reader_kind"] == "human" and not row["is_pilot"]
    ]
    counted = [
        row["session_id"] for row in session_rows if row["n_trials"] and row["session_id"] not in excluded
    ]
    answers = read_answers(study, connection)
    of_sessions = [answers.by_session.get(session, {}) for session in counted]
    of_elsewhere = _imported(study.id, connection, "human")
    began = sorted(row["created_at"] for row in session_rows if row["session_id"] not in of_elsewhere)
    trial_counts = [int(row["n_trials"]) for row in session_rows if row["session_id"] in of_elsewhere]
    summed = [
        _summed(question, column, of_sessions)
        for asked in questions_of(study)
        for question, column in _summarised(asked)
    ]
    return {
        "recruit": study.get("participants", "recruit"),
        "eligible": study.get("participants", "eligible"),
        "first_session": began[0] if began else None,
        "last_session": began[-1] if began else None,
        "imported": len(trial_counts),
        "imported_trials": [min(trial_counts), max(trial_counts)] if trial_counts else None,
        "people": len(counted),
        "answers": [summary for summary in summed if summary is not None],
    }


def _imported(study: str, connection: Connection, kind: str) -> set[str]:
    """Return the imported sessions of a kind of reader, whose own dates are unknown."""
    return {session for session, client in _clients(connection, study, kind).items() if "imported" in client}


def _summarised(question: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield a question with its column or, of a matrix, its scores."""
    if question["type"] != MATRIX:
        yield question, f"answer_{question['name']}"
        return
    for scale in scale_names(question["rows"]) if "score" in question else ():
        rows = [row.name for row in question["rows"] if row.is_scored and row.scale == scale]
        name = question["name"] if scale is None else f"{question['name']} {scale}"
        about = {
            "name": name,
            "ask": question["ask"],
            "type": "score",
            "rows": rows,
            "score": question["score"],
        }
        yield about, _score_column(question["name"], scale)


def _cronbach(
    question: Mapping[str, Any], column: str, of_sessions: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return Cronbach's alpha of a scale over participants who answered all its rows; empty where it is not defined."""
    rows, complete = question["rows"], [row for row in of_sessions if row.get(column) is not None]
    if len(rows) < 2 or len(complete) < 3:
        return {}
    factor = len(rows) if question["score"] == "mean" else 1
    total = variance(factor * row[column] for row in complete)
    within = sum(
        variance(row[f"answer_{name}"] for row in complete) for name in rows
    )  # reversing changes no variance
    return {"alpha": len(rows) / (len(rows) - 1) * (1 - within / total)} if total else {}


def _summed(
    question: Mapping[str, Any], column: str, of_sessions: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    """Return a summary of the answers to one question; None for texts, and without answers."""
    given = [row[column] for row in of_sessions if row.get(column) is not None]
    if not given:
        return None
    summary: dict[str, Any] = {name: question.get(name) for name in ("name", "ask", "type")} | {
        "n": len(given)
    }
    if question["type"] == "score":
        summary |= {"rows": len(question["rows"]), "score": question["score"]}
        summary |= _cronbach(question, column, of_sessions)
    if question["type"] in ("number", "slider", "score"):
        mean = sum(given) / len(given)
        spread = sum((value - mean) ** 2 for value in given)
        sd = (spread / (len(given) - 1)) ** 0.5 if len(given) > 1 else None
        return summary | {"mean": mean, "sd": sd, "low": min(given), "high": max(given)}
    if question["type"] in _COUNTED:
        return summary | {"counts": dict(Counter(map(str, given)).most_common())}
    return None


def summarize_procedure(study: Study) -> dict[str, Any]:
    """Return the description of a session (fields of `SessionSummary`); empty if nothing is built."""
    try:
        return asdict(tell(study, study.items).session)
    except UserError:
        return {}
