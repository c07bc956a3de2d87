"""The tables of an export: trials, regions, participants, events, calls, items; rows stream from the store."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from sqlalchemy import Connection

from experiment.columns import Column, region_columns, trial_columns
from experiment.exporting.calls import call_columns, call_rows
from experiment.exporting.cells import cell
from experiment.exporting.participants import participant_rows, read_answers
from experiment.rows.items import item_columns, item_rows
from experiment.rows.regions import region_rows
from experiment.rows.trials import trial_rows
from experiment.scoring.h_test import PARSED_COLUMNS, has_published_parser, parsed_rows
from experiment.scoring.mind_scramble import FAULT_COLUMNS, fault_rows, is_of_typobench
from experiment.scoring.similarities import SIMILARITY_COLUMNS, has_similarities, similarity_rows
from experiment.store import queries
from experiment.store.declining import undecided
from experiment.store.tables import TRIAL_KEY
from experiment.study import Study
from experiment.trials import TYPES, trial_type

Rows = Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Choice:
    """Whose data are exported, and whether with what models were sent."""

    pilots: bool = True
    kinds: frozenset[str] | None = None
    prompts: bool = False

    def of(self, connection: Connection, study: str) -> list[queries.Row]:
        """Return the sessions whose rows are exported; none of people who have not agreed to take part, or not yet."""
        unagreed = set(undecided(connection, study))
        every = queries.sessions_overview(connection, study)
        return [one for one in every if one["session_id"] not in unagreed and self._takes(one)]

    def _takes(self, session: Mapping[str, Any]) -> bool:
        return (self.pilots or not session["is_pilot"]) and (
            self.kinds is None or session["reader_kind"] in self.kinds
        )


BETWEEN = ", one for a whole session"
"""Said of a factor between sessions in the codebook, where :mod:`analysis.reading` looks for levels."""


@dataclass(frozen=True)
class Table:
    """One table: its columns in order, what makes a row unique, how to get the rows, and whether they are further verdicts."""

    name: str
    about: str
    columns: Mapping[str, Column]
    key: tuple[str, ...]
    rows: Callable[[], Rows]
    is_of_verdicts: bool = False


@cache
def own_columns(table: str) -> dict[str, Column]:
    """Return the columns of one of the tables that only exports have."""
    given = json.loads(resources.files(__package__).joinpath("columns.json").read_text("utf-8"))
    return {row["name"]: Column(**row) for row in given[table]}


def tables_of(study: Study, connection: Connection, choice: Choice) -> list[Table]:
    """Return the tables of a study; rows are read when they are asked for, while the connection is open."""
    sessions = queries.sessions_overview(connection, study.id)
    chosen = {row["session_id"] for row in choice.of(connection, study.id)}
    answers = read_answers(study, connection)
    factors = {
        name: Column(
            name,
            "string",
            None,
            f"level of the factor {name}{BETWEEN if name in study.between else ''}: {', '.join(levels)}; the first is the reference",
        )
        for name, levels in study.factors.items()
    }

    def of_chosen(rows: Rows) -> Iterator[Mapping[str, Any]]:
        return (row for row in rows if row["session_id"] in chosen)

    def chosen_only(table: Table) -> Table:
        return dataclasses.replace(table, rows=lambda: of_chosen(table.rows()))

    return [
        Table(
            "trials",
            "one row a trial, people and models alike",
            _declared(trial_columns()) | factors,
            ("session_id", "trial_index", "attempt"),
            lambda: of_chosen(trial_rows(connection, study.id)),
        ),
        Table(
            "regions",
            "one row a word or word group that has a time or surprisal of its own",
            region_columns(),
            ("session_id", "trial_index", "attempt", "region"),
            lambda: of_chosen(region_rows(connection, study)),
        ),
        Table(
            "participants",
            "one row a session of a person or simulated reader",
            own_columns("participants") | answers.columns,
            ("session_id",),
            lambda: of_chosen(participant_rows(connection, study.id, answers)),
        ),
        Table(
            "events",
            "one row a thing that happened in a session beside its trials",
            own_columns("events"),
            ("session_id", "event_index"),
            lambda: of_chosen(_event_rows(connection, study.id)),
        ),
        Table(
            "event_details",
            "one row a value that belongs to an event",
            own_columns("event_details"),
            ("session_id", "event_index", "name"),
            lambda: of_chosen(_detail_rows(connection, study.id)),
        ),
        Table(
            "calls",
            "one row a request to a model with all its retries: for the answer of a trial, or a step before or behind it",
            call_columns(own_columns("calls"), prompts=choice.prompts),
            ("session_id", "trial_index", "attempt", "call_index"),
            lambda: call_rows(
                connection,
                [row for row in reversed(sessions) if row["session_id"] in chosen],
                prompts=choice.prompts,
            ),
        ),
        Table(
            "items",
            "one row an item and condition",
            item_columns(study.items, tuple(study.factors), own_columns("items")),
            ("set", "role", "item_id", *study.factors),
            lambda: item_rows(study.items),
        ),
        *map(chosen_only, verdict_tables(study, connection)),
    ]


def verdict_tables(study: Study, connection: Connection) -> list[Table]:
    """Return what stands beside the verdicts of the trials table: what papers' parsers and scorers made of replies, and cosines.

    None of them for a study whose replies no paper's code reads and no vectors were compared of.
    """
    found = []
    if has_published_parser(study):
        found.append(
            Table(
                "published_parsing",
                "one row a reply of a model, read by H-TEST's published parser and by a correct one",
                PARSED_COLUMNS,
                TRIAL_KEY,
                lambda: parsed_rows(study, connection),
                is_of_verdicts=True,
            )
        )
    if is_of_typobench(study):
        found.append(
            Table(
                "published_scoring",
                "one row per model reply and rule: its score as released, without one of the released code's errors, and corrected",
                FAULT_COLUMNS,
                (*TRIAL_KEY, "rule"),
                lambda: fault_rows(study, connection),
                is_of_verdicts=True,
            )
        )
    if has_similarities(connection, study.id):
        found.append(
            Table(
                "answer_similarity",
                "one row a free answer whose vector `wrods score --similarity` compared",
                SIMILARITY_COLUMNS,
                TRIAL_KEY,
                lambda: similarity_rows(study, connection),
                is_of_verdicts=True,
            )
        )
    return found


def _event_rows(connection: Connection, study: str) -> Iterator[dict[str, Any]]:
    places: dict[str, int] = {}
    for event in queries.all_events(connection, study):
        place = places.get(event["session_id"], 0)
        places[event["session_id"]] = place + 1
        yield {**event, "event_index": place}


def _detail_rows(connection: Connection, study: str) -> Iterator[dict[str, Any]]:
    for event in _event_rows(connection, study):
        own = {name: event[name] for name in ("session_id", "event_index", "kind")}
        for name, value in _values(event["detail"] or {}):
            yield {**own, "name": name, "value": value}


def _values(detail: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value inside a detail by the path that leads to it; nothing of null."""
    if isinstance(detail, Mapping | list):
        members = detail.items() if isinstance(detail, Mapping) else enumerate(detail, 1)
        for key, member in members:
            yield from _values(member, f"{name}.{key}" if name else str(key))
    elif detail is not None:
        yield name, str(cell(detail, is_text=False))


def _declared(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Add to columns what the declarations of trial types say of them, where it is more than the column itself says."""
    found = dict(columns)
    for name, column in columns.items():
        said = {
            kind: trial_type(kind).fields[name].prose for kind in TYPES if name in trial_type(kind).fields
        }
        more = [f"{kind}: {prose}" for kind, prose in said.items() if prose != column.prose]
        if more:
            found[name] = Column(name, column.type, column.unit, f"{column.prose} ({'; '.join(more)})")
    return found
