"""Pages about a whole study: start, pause and close, the quality of its data, flags, the audit.

Quality is pooled over all conditions; means by condition are shown only for a study that is closed. Test trials (no practice,
fillers or attention checks) of sessions that are neither pilots nor excluded are counted. Unreadable, timed-out and refused
answers count as wrong; trials without a known right answer count for times only.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import abort, flash, redirect, render_template, request, url_for
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from experiment.people.dashboard.accounts import OWNER
from experiment.people.dashboard.blueprint import admin
from experiment.people.dashboard.reading import AT_ONCE, SHORT, audit_of, in_words, key_of, looks
from experiment.people.dashboard.signing_in import account, actor, needs, note
from experiment.people.dashboard.studies import service_of
from experiment.people.quality import flagged, said, signs
from experiment.people.site import this_site
from experiment.rows.trials import trial_rows
from experiment.store import queries
from experiment.store.collection import collection_of, set_collection
from experiment.store.exclusions import exclusions

STATES = {"open": "run", "paused": "run", "closed": "close"}
"""How a study may stand, and the permission to bring it there; a closed one is opened again by who may close it."""


@admin.post("/<study>/collection")
@needs("run")
def set_state(study: str) -> AnyResponse:
    """Start, pause or close a study."""
    service = service_of(study)
    state = request.form.get("state", "")
    with service.store.read() as connection:
        before = collection_of(connection, study).state
    who = account()
    if state not in STATES:
        abort(400, "A study is open, paused or closed.")
    if who is None or not {STATES[state], STATES[before]} <= _may(who):
        abort(403, "Only an owner closes a study, or opens it again.")
    reason = " ".join(request.form.get("reason", "").split())[:500]
    name = actor()
    service.store.write(
        lambda connection: set_collection(connection, study, state, name, reason)  # type: ignore[arg-type]
    ).result()
    words = {
        "open": "New participants can begin.",
        "paused": "No new participants can begin; sessions in progress continue.",
        "closed": "The study is closed; condition means are visible.",
    }
    flash(words[state])
    return redirect(url_for("admin.show"))


def _may(who: Any) -> set[str]:
    return {permission for permission in STATES.values() if who.may(permission)}


@admin.get("/<study>/flags")
@needs("see")
def show_flags(study: str) -> str:
    """Show every session that shows a sign of careless or automatic answering, with the numbers."""
    service = service_of(study)
    with service.store.read() as connection:
        rows = queries.sessions_overview(connection, study)
        found = this_site().findings.of(connection, rows, service.session_rules)
        excluded = {
            mark[0]: why for mark, why in exclusions(connection, study).items() if mark[1:] == (None, None)
        }
        is_open = collection_of(connection, study).state != "closed"
    lines = [
        {
            "key": key_of(row["session_id"]),
            "reader": row["reader"],
            "kind": row["reader_kind"],
            "pilot": row["is_pilot"],
            "state": row["state"],
            "excluded": excluded.get(row["session_id"]),
            "found": flagged(found[row["session_id"]]),
        }
        for row in rows
        if flagged(found.get(row["session_id"], []))
    ]
    lines.sort(key=lambda line: -len(line["found"]))
    return render_template(
        "admin/flags.html",
        service=service,
        lines=lines,
        signs=signs(),
        said=said,
        sessions=len(found),
        keeps_back=is_open,
    )


@admin.get("/<study>/quality")
@needs("see")
def ask_quality(study: str) -> str:
    """Say how often somebody looked, and offer another look."""
    service = service_of(study)
    with service.store.read() as connection:
        number, collection = looks(connection, study), collection_of(connection, study)
    return render_template(
        "admin/quality.html", service=service, looks=number, collection=collection, groups=None, means=None
    )


@admin.post("/<study>/quality")
@needs("see")
def show_quality(study: str) -> str:
    """Show quality pooled over all conditions, and log the look; means by condition once the study is closed."""
    service = service_of(study)
    with service.store.read() as connection:
        collection = collection_of(connection, study)
        groups = pooled(connection, study)
        means = condition_means(connection, study, service.factors) if collection.state == "closed" else None
    sizes = {group.name: group.sessions for group in groups}
    note("look" if means is None else "look by condition", study=study, detail={"sessions": sizes})
    with service.store.read() as connection:
        number = looks(connection, study)
    return render_template(
        "admin/quality.html", service=service, looks=number, collection=collection, groups=groups, means=means
    )


@admin.get("/<study>/audit")
@needs("audit")
def show_audit(study: str) -> str:
    """Show who did what to a study."""
    service = service_of(study)
    with service.store.read() as connection:
        before = request.args.get("before", type=int)
        lines = audit_of(connection, study, before=before if before is None else max(0, min(before, 2**31)))
        readers = {row["session_id"]: row["reader"] for row in queries.sessions_overview(connection, study)}
    return render_template(
        "admin/audit.html",
        service=service,
        lines=lines,
        older=lines[-1]["audit_id"] if len(lines) == AT_ONCE else None,
        is_newest=before is None,
        in_words=in_words,
        short=SHORT,
        readers=readers,
        key_of=key_of,
        owner=OWNER,
    )


@dataclass(frozen=True)
class Pooled:
    """A reader group (people, or one model) over some trials."""

    name: str
    condition: tuple[str, ...]
    sessions: int
    trials: int
    accuracy: float | None
    median_rt: float | None
    lower_rt: float | None
    upper_rt: float | None
    unreadable: float


def pooled(connection: Connection, study: str) -> list[Pooled]:
    """Return each reader group's quality over all conditions together, people first."""
    return _summaries(_counted(connection, study), ())


def condition_means(connection: Connection, study: str, factors: Sequence[str]) -> list[Pooled]:
    """Return each reader group's quality by condition: only for a study that is closed."""
    return _summaries(_counted(connection, study), factors)


def _counted(connection: Connection, study: str) -> Iterator[dict[str, Any]]:
    for row in trial_rows(connection, study):
        is_test = not (row["is_practice"] or row["is_filler"] or row["is_attention_check"])
        if is_test and not row["is_pilot"] and row["excluded_reason"] is None:
            yield row


def _summaries(rows: Iterable[Mapping[str, Any]], factors: Sequence[str]) -> list[Pooled]:
    groups: dict[tuple[bool, str, tuple[str, ...]], list[Mapping[str, Any]]] = {}
    for row in rows:
        kind = row["reader_kind"]
        name = kind if kind in ("human", "simulated") else row["reader"]
        condition = tuple(str((row["condition"] or {}).get(factor, "")) for factor in factors)
        kept = {column: row[column] for column in ("session_id", "response_status", "correct", "rt")}
        groups.setdefault((kind != "human", str(name), condition), []).append(kept)
    return [_summary(name, condition, kept) for (_, name, condition), kept in sorted(groups.items())]


def _summary(name: str, condition: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Pooled:
    valid = [row["response_status"] == "valid" for row in rows]
    judged = [
        bool(row["correct"])
        for row, is_valid in zip(rows, valid, strict=True)
        if row["correct"] is not None or not is_valid
    ]
    # where nothing says what is right, unreadable answers alone would be all that is judged
    has_key = any(row["correct"] is not None for row in rows)
    times = [float(row["rt"]) for row in rows if row["rt"] is not None]
    quartiles = statistics.quantiles(times, n=4, method="inclusive") if len(times) > 1 else None
    return Pooled(
        name=name,
        condition=condition,
        sessions=len({row["session_id"] for row in rows}),
        trials=len(rows),
        accuracy=statistics.fmean(judged) if has_key else None,
        median_rt=statistics.median(times) if times else None,
        lower_rt=quartiles[0] if quartiles else None,
        upper_rt=quartiles[2] if quartiles else None,
        unreadable=1 - sum(valid) / len(rows),
    )
