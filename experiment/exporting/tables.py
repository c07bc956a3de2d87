"""The tables of an export, with rows streamed from the store, and how a table is written into a CSV or Parquet file.

Rows of the trials table are flat: a stored trial with its session's columns and flags, and models' failed trials. The store has
a trial only after an answer; if all of its calls failed, it has the calls alone. Tables show such a trial as a row with
``response_status`` ``error`` or ``timeout``, so that no requested trial is missing. After a later run answers it, the answer
replaces that row.

Cells of a CSV file are protected from being read as formulas by a spreadsheet. Text that begins with ``=``, ``+``, ``-``, ``@``
or ``|`` (also full-width), with ``%=``, a tab or a line end gets a leading apostrophe, even after blanks, zero-width characters
or apostrophes; reading the file removes one. Numbers and Booleans are written unchanged.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import merge
from importlib import resources
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection, Select, select

from analysis.plan import read_times
from experiment.columns import Column, region_columns, trial_columns
from experiment.completions import asks_for_completions, cloze_of, given_completions
from experiment.exporting.dictionary import participant_rows, read_answers
from experiment.models.runs.remaining_work import UnansweredTrial, unanswered_trials
from experiment.procedure import accepted
from experiment.procedure.plan_builder import STEP_NAME
from experiment.rating import rater_numbers
from experiment.scoring.similarities import SIMILARITY_COLUMNS, has_similarities, similarity_rows
from experiment.store import records
from experiment.store.erasure import undecided
from experiment.store.records import Marked, exclusions
from experiment.store.tables import TRIAL_KEY, calls, ratings, sessions, trials
from experiment.study import Study
from experiment.trials import RATED, TYPES, UNANSWERED, trial_type
from experiment.trials.own import OwnType
from stimuli.item import Item
from stimuli.papers import papers

_UNSEEN = r"[\s\x00-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202f\u2060-\u2064\u2066-\u206f\ufeff]"
"""Blanks and zero-width characters, which some spreadsheets remove before they read a cell."""
_BEGINNING = rf"(?:[\t\r\n\x0b\x0c\x85\u2028\u2029\ufeff]|{_UNSEEN}*(?:[=+\-@|＝＋－＠｜−]|[%％][=＝]))"
_FORMULA = re.compile(f"'*{_BEGINNING}")
_GUARDED = re.compile(f"'+{_BEGINNING}")

REQUEST = "request"
_OF_SESSION = ("study", "reader_kind", "reader")
_JSON = ("label_logprobs", "label_bounds", REQUEST)


def cell(value: object, *, is_text: bool) -> object:
    """Return the content of a cell: empty for null, TRUE and FALSE for Booleans."""
    if value is None:
        return ""
    if isinstance(value, str):
        # nearly every text begins with a letter or a digit, and needs no search
        is_formula = is_text and not value[:1].isalnum() and _FORMULA.match(value)
        return f"'{value}" if is_formula else value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return value


def text_of(given: str) -> str:
    """Return the text that :func:`cell` was given for a cell."""
    return given[1:] if _GUARDED.match(given) else given


def line(values: Iterable[object]) -> str:
    """Return one line of a CSV file with its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(list(values))
    return text.getvalue()


BATCH = 5000
ARROW = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}


def write_csv(file: Path, columns: Mapping[str, Column], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write a CSV file in UTF-8 with a header row, and return the number of rows below it."""
    number = 0
    kinds = [(name, column.type == "string") for name, column in columns.items()]
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, lineterminator="\r\n")
        writer.writerow([cell(name, is_text=True) for name in columns])
        for row in rows:
            writer.writerow([cell(row.get(name), is_text=is_text) for name, is_text in kinds])
            number += 1
    return number


def read_csv(file: Path, columns: Mapping[str, Column]) -> Iterator[dict[str, Any]]:
    """Yield the rows of an exported CSV file: texts without apostrophes, numbers, Booleans; empty cells are null."""
    with file.open("r", encoding="utf-8", newline="") as opened:
        for row in csv.DictReader(opened):
            yield {text_of(name): _value(given, columns[text_of(name)].type) for name, given in row.items()}


def write_parquet(file: Path, columns: Mapping[str, Column], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write a Parquet file in batches, and return the number of its rows."""
    number = 0
    schema = pa.schema([(name, ARROW[column.type]) for name, column in columns.items()])
    with pq.ParquetWriter(file, schema) as writer:
        source = iter(rows)
        while batch := list(islice(source, BATCH)):
            arrays = [
                pa.array([row.get(name) for row in batch], field.type)
                for name, field in zip(columns, schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            number += len(batch)
    return number


def _value(given: str, kind: str) -> Any:
    if given == "":
        return None
    if kind == "boolean":
        return given == "TRUE"
    if kind == "string":
        return text_of(given)
    return int(given) if kind == "integer" else float(given)


def call_columns(columns: Mapping[str, Column], *, prompts: bool) -> dict[str, Column]:
    """Return the columns of the calls table; the request only with ``prompts``."""
    return {name: column for name, column in columns.items() if prompts or name != REQUEST}


def call_rows(
    connection: Connection, sessions: Iterable[Mapping[str, Any]], *, prompts: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the calls of sessions, by trial, and within a trial in the order of their end."""
    wanted = [column for column in calls.c if prompts or column.key != REQUEST]
    query = select(*wanted).order_by(*(calls.c[name] for name in TRIAL_KEY), calls.c.call_id)
    for session in sessions:
        # one session at a time: an index has its calls in order, so that nothing is sorted
        of_session = query.where(calls.c.session_id == session["session_id"])
        trial, place = None, 0
        with connection.execute(of_session.execution_options(yield_per=500)) as result:
            for call in result.mappings():
                key = (call["trial_index"], call["attempt"])
                place = place + 1 if key == trial else 0
                trial = key
                yield {
                    **call,
                    **{name: session[name] for name in _OF_SESSION},
                    **{name: _json(call[name]) for name in _JSON if name in call},
                    "call_index": place,
                }


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False)


def items_of(
    study: Study, connection: Connection
) -> tuple[dict[str, Column], Callable[[], Iterator[dict[str, Any]]]]:
    """Return the columns and rows of a study's items, with what people continued them with if the study asks for it."""
    columns = item_columns(study.items, tuple(study.factors), own_columns("items"))
    if not asks_for_completions(study):
        return columns, lambda: item_rows(study.items)
    given = given_completions(connection, study)
    cloze = [
        cloze_of(given.get((item.set_name, item.item_id), ()), item.condition, accepted(item))
        for item in study.items
    ]
    return columns | own_columns("completions"), lambda: (
        row | more for row, more in zip(item_rows(study.items), cloze, strict=True)
    )


_BEFORE_FACTORS = ("item_id", "set", "role")
AS_JSON = ("shown", "intact", "choices", "key", "changes", "provenance")


def item_columns(
    items: Sequence[Item], factors: Sequence[str], prose: Mapping[str, Column]
) -> dict[str, Column]:
    """Return the columns of a study's items: common ones, its factors, and ``cov_`` columns for covariates."""
    columns = {name: prose[name] for name in _BEFORE_FACTORS}
    columns |= {name: Column(name, "string", None, "level of the study's factor") for name in factors}
    columns |= {name: column for name, column in prose.items() if name not in columns}
    values: dict[str, list[Any]] = {}
    for item in items:
        for name, value in item.covariates.items():
            values.setdefault(f"cov_{name}", []).append(value)
    for name, given in values.items():
        kind = "string" if any(isinstance(value, str) for value in given) else "number"
        columns[name] = Column(name, kind, None, f"covariate {name.removeprefix('cov_')} of the item")
    return columns


def item_rows(items: Sequence[Item]) -> Iterator[dict[str, Any]]:
    """Yield items as flat rows; structured values are JSON."""
    for item in items:
        given = item.to_json()
        row = {**given, **given["condition"]}
        row |= {name: json.dumps(given[name], ensure_ascii=False) for name in AS_JSON}
        yield row | {f"cov_{name}": value for name, value in given["covariates"].items()}


def region_rows(connection: Connection, study: Study) -> Iterator[dict[str, Any]]:
    """Yield a study's regions with ``excluded_reason``, including excluded ones.

    A word of a maze is excluded if its foil was chosen first.
    """
    limits = study.get("analysis", "exclude", "regions", "rt")
    bounds = None if limits is None else read_times(limits)
    for row in records.all_regions(connection, study.id):
        is_out = bounds is not None and row["rt"] is not None and not bounds[0] <= row["rt"] <= bounds[1]
        reason = "foil chosen" if row["is_correct"] is False else f"rt {limits}" if is_out else None
        yield {**row, "excluded_reason": reason}


OF_SESSION = (
    *("study", "version", "design_hash", "reader_kind", "reader", "participant_id", "run_id", "list_id"),
    *("replicate", "context", "yoked_to", "prompt_variant", "is_pilot"),
)


RECORDED = "recorded"


def recorded_columns(study: Study) -> dict[str, Column]:
    """Return the columns of a study's own: names of further answers, the fields of its trial types, and all of them as they came."""
    columns = {}
    if study.named_steps:
        prose = f"step whose further answer the row has ({', '.join(study.named_steps)}); null for a trial's own answer"
        columns[STEP_NAME] = Column(STEP_NAME, "string", None, prose)
    own_fields = len(columns)
    for kind, declared in study.own_types.items():
        for name, recorded in declared.recorded.items():
            more = f"; one of {', '.join(recorded.values)}" if recorded.values else ""
            more = "; a list as JSON" if recorded.many else more
            prose = f"{recorded.prose}{more} (trial type {kind} of this study)"
            column_type = "string" if recorded.many else recorded.type
            columns[f"{kind}_{name}"] = Column(f"{kind}_{name}", column_type, recorded.unit, prose)
    if len(columns) > own_fields:
        prose = "everything that steps of this study's own trial types recorded, as JSON, also what broke its declaration"
        columns[RECORDED] = Column(RECORDED, "string", None, prose)
    return columns


def _recorded_values(own: Mapping[str, OwnType], recorded: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values of a trial's own fields that are of the declared type; null for others."""
    values: dict[str, Any] = {}
    for kind, declared in own.items():
        given = (recorded or {}).get(kind, {})
        for name, field in declared.recorded.items():
            value = given.get(name) if field.fits(given.get(name)) else None
            values[f"{kind}_{name}"] = _json(value) if field.many else value
    return values | ({RECORDED: _json(recorded)} if own else {})


def trial_rows(
    connection: Connection, study: str, own: Mapping[str, OwnType] = MappingProxyType({})
) -> Iterator[dict[str, Any]]:
    """Yield a study's trials, session by session, with the columns of the trials table and of the factors.

    They include models' trials that ended in an error (:func:`unanswered_trials`). Rows stream from the store; only sessions and
    exclusions are in memory. Rows have more than these columns: select by name. ``own``: the study's own trial types, for the
    columns of their fields.
    """
    sessions = {row["session_id"]: row for row in records.sessions_overview(connection, study)}
    excluded = exclusions(connection, study)
    for session_id, is_timed, presentation in records.model_sessions(connection, study):
        sessions[session_id] |= {"timed": is_timed, "presentation": presentation}

    def place(trial: Mapping[str, Any]) -> tuple[str, str, int, int]:
        key = trial["session_id"]
        return str(sessions[key]["created_at"]), key, trial["trial_index"], trial["attempt"]

    unanswered = unanswered_trials(connection, study, (*_OF_LAST_CALL, "work_key", "cost_usd"))
    for trial in merge(
        records.trials_with_scores(connection, study), map(_unanswered_row, unanswered), key=place
    ):
        yield _flat(trial, sessions[trial["session_id"]], excluded) | _recorded_values(own, trial["recorded"])


def _flat(
    trial: Mapping[str, Any], session: Mapping[str, Any], excluded: Mapping[Marked, str]
) -> dict[str, Any]:
    key, index = trial["session_id"], trial["trial_index"]
    marks: tuple[Marked, ...] = ((key, None, None), (key, index, None), (key, index, trial["attempt"]))
    label_map = session["label_map"] or {}
    labels = trial["label_logprobs"]
    # a text that is only read, or a participant's answer whose likelihood was requested, is not an answer that can be correct
    is_answer = trial["trial_type"] not in UNANSWERED and not records.is_teacher_forced(session)
    is_rating = is_answer and trial["trial_type"] in RATED
    return {
        **trial,
        "response_status": trial["response_status"] if is_answer else None,
        "score": None if is_rating else trial["score"],
        "rating": trial["score"] if is_rating else None,
        **{name: session[name] for name in OF_SESSION},
        **(trial["condition"] or {}),
        "timed": session.get("timed"),
        "presentation": session.get("presentation"),
        "set": trial["item_set"],
        "label_map": ",".join(f"{name}={label}" for name, label in label_map.items()) or None,
        "choice_order": ",".join(str(i) for i in trial["choice_order"] or []) or None,
        "label_logprobs": json.dumps(labels, ensure_ascii=False) if labels else None,
        "excluded_reason": next((excluded[mark] for mark in marks if mark in excluded), None),
    }


_OF_LAST_CALL = (
    *("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "latency_ms", "ttft_ms"),
    *("temperature", "seed", "dtype", "path", "created_at"),
)
_SCORE = ("response", "response_status", "correct", "score", "scorer", "scorer_version")
Row = dict[str, Any]


def _unanswered_row(trial: UnansweredTrial) -> Row:
    last, of_calls = trial.last, trial.calls
    costs = [call["cost_usd"] for call in of_calls if call["cost_usd"] is not None]
    return {
        **dict.fromkeys((*(column.key for column in trials.c), *_SCORE)),
        **({name: last[name] for name in _OF_LAST_CALL} if of_calls else {}),
        **records.planned_columns(trial.planned),
        **{name: last[name] for name in ("session_id", "attempt")},
        "work_key": None
        if last["work_key"] is None or not of_calls
        else str(last["work_key"]).partition(":")[0],
        "cost_usd": sum(costs) if costs else None,
        "response_status": last["status"],
        "timed_out": False,
        "created_at": last["created_at"],
        "received_at": last["created_at"],
    }


Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class ExportChoice:
    """The readers whose data are exported, and whether prompts are included."""

    pilots: bool = True
    kinds: frozenset[str] | None = None
    prompts: bool = False

    def of(self, connection: Connection, study: str) -> list[records.Row]:
        """Return the sessions to export, without those of people who have not consented, or not yet."""
        unagreed = set(undecided(connection, study))
        every = records.sessions_overview(connection, study)
        return [
            row
            for row in every
            if row["session_id"] not in unagreed
            and (self.pilots or not row["is_pilot"])
            and (self.kinds is None or row["reader_kind"] in self.kinds)
        ]


BETWEEN = ", one for a whole session"
"""Note about a between-session factor in the codebook, where :mod:`analysis.tables` looks for levels."""


@dataclass(frozen=True)
class ExportTable:
    """One table: its columns in order, key, source of rows, and whether it has additional scores."""

    name: str
    about: str
    columns: Mapping[str, Column]
    key: tuple[str, ...]
    rows: Callable[[], Rows]
    is_of_verdicts: bool = False


@cache
def own_columns(table: str) -> dict[str, Column]:
    """Return the columns of a table that only exports have."""
    given = json.loads(resources.files(__package__).joinpath("columns.json").read_text("utf-8"))
    return {row["name"]: Column(**row) for row in given[table]}


def tables_of(study: Study, connection: Connection, choice: ExportChoice) -> list[ExportTable]:
    """Return the tables of a study; rows are read when they are used, while the connection is open."""
    sessions = records.sessions_overview(connection, study.id)
    chosen = {row["session_id"] for row in choice.of(connection, study.id)}
    answers = read_answers(study, connection)
    factors = {}
    for name, levels in study.factors.items():
        between = BETWEEN if name in study.between else ""
        prose = f"level of the factor {name}{between}: {', '.join(levels)}; the first is the reference"
        factors[name] = Column(name, "string", None, prose)
    parts_by_name: dict[str, tuple[Mapping[str, Column], Callable[[], Rows]]] = {
        "trials": (
            _declared(trial_columns()) | factors | recorded_columns(study),
            lambda: trial_rows(connection, study.id, study.own_types),
        ),
        "regions": (region_columns(), lambda: region_rows(connection, study)),
        "participants": (
            own_columns("participants") | answers.columns,
            lambda: participant_rows(connection, study.id, answers),
        ),
        "events": (own_columns("events"), lambda: _event_rows(connection, study.id)),
        "event_details": (own_columns("event_details"), lambda: _detail_rows(connection, study.id)),
    }
    columns = call_columns(own_columns("calls"), prompts=choice.prompts)
    chosen_sessions = [row for row in reversed(sessions) if row["session_id"] in chosen]
    calls = _table("calls", columns, lambda: call_rows(connection, chosen_sessions, prompts=choice.prompts))
    items = _table("items", *items_of(study, connection), *study.factors)

    def of_chosen(table: ExportTable) -> ExportTable:
        return dataclasses.replace(
            table, rows=lambda: (row for row in table.rows() if row["session_id"] in chosen)
        )

    first = [of_chosen(_table(name, *parts)) for name, parts in parts_by_name.items()]
    return [*first, calls, items, *map(of_chosen, verdict_tables(study, connection))]


def _table(name: str, columns: Mapping[str, Column], rows: Callable[[], Rows], *key: str) -> ExportTable:
    """Return a table described in ``tables.json``."""
    described = json.loads(resources.files(__package__).joinpath("tables.json").read_text("utf-8"))[name]
    return ExportTable(name, described["about"], columns, (*described["key"], *key), rows)


def verdict_tables(study: Study, connection: Connection) -> list[ExportTable]:
    """Return tables in addition to the trials table's scores: results of papers' parsers and scorers, ratings, and cosines.

    There are none for a study without a paper's parser, ratings and compared embeddings.
    """
    tables: list[ExportTable] = []
    for paper in papers().values():
        tables += paper.part(paper.verdicts)(study, connection) if paper.verdicts else ()
    rated = select(ratings).join(sessions, sessions.c.session_id == ratings.c.session_id)
    rated = rated.where(sessions.c.study == study.id).order_by(ratings.c.rating_id)
    if connection.execute(rated.limit(1)).first() is not None:
        numbers = rater_numbers(connection, study.id)
        tables.append(
            _table("ratings", own_columns("ratings"), lambda: _rating_rows(connection, rated, numbers))
        )
    if has_similarities(connection, study.id):
        tables.append(
            _table("answer_similarity", SIMILARITY_COLUMNS, lambda: similarity_rows(study, connection))
        )
    return [dataclasses.replace(table, is_of_verdicts=True) for table in tables]


def _rating_rows(
    connection: Connection, rated: Select[Any], numbers: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    places: Counter[tuple[Any, ...]] = Counter()
    for rating in connection.execute(rated).mappings():
        of_answer = tuple(rating[name] for name in TRIAL_KEY)
        yield {**rating, "rater": numbers[rating["rater"]], "rating_index": places[of_answer]}
        places[of_answer] += 1


def _event_rows(connection: Connection, study: str) -> Iterator[dict[str, Any]]:
    places: Counter[str] = Counter()
    for event in records.all_events(connection, study):
        yield {**event, "event_index": places[event["session_id"]]}
        places[event["session_id"]] += 1


def _detail_rows(connection: Connection, study: str) -> Iterator[dict[str, Any]]:
    for event in _event_rows(connection, study):
        of_event = {name: event[name] for name in ("session_id", "event_index", "kind")}
        for name, value in _values(event["detail"] or {}):
            yield {**of_event, "name": name, "value": value}


def _values(detail: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each non-null value in a detail with its path."""
    if isinstance(detail, Mapping | list):
        members = detail.items() if isinstance(detail, Mapping) else enumerate(detail, 1)
        for key, member in members:
            yield from _values(member, f"{name}.{key}" if name else str(key))
    elif detail is not None:
        yield name, str(cell(detail, is_text=False))


def _declared(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return columns with the descriptions of trial types, if these add something."""
    declared = dict(columns)
    for name, column in columns.items():
        prose_of_kind = {
            kind: trial_type(kind).fields[name].prose for kind in TYPES if name in trial_type(kind).fields
        }
        more = [f"{kind}: {prose}" for kind, prose in prose_of_kind.items() if prose != column.prose]
        if more:
            declared[name] = Column(name, column.type, column.unit, f"{column.prose} ({'; '.join(more)})")
    return declared
