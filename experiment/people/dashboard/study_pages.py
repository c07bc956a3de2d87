"""The live page; pages about a whole study: start, pause and close, data quality, flags, audit; and its downloads and uploads.

Quality is pooled over all conditions; means by condition are shown only after a study is closed. Included are test trials (no
practice, fillers or attention checks) of sessions that are neither pilots nor excluded. Unreadable, timed-out and refused
answers count as wrong; trials without a known correct answer count for times only.
"""

from __future__ import annotations

import io
import statistics
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flask import (
    Response,
    abort,
    flash,
    jsonify,
    redirect,
    render_template,
    request,
    send_from_directory,
    url_for,
)
from sqlalchemy import Connection
from werkzeug.wrappers import Response as AnyResponse

from experiment.checking import load_study
from experiment.columns import trial_columns
from experiment.exporting import export_study
from experiment.exporting.tables import cell, line, trial_rows
from experiment.option_choices import FORMS
from experiment.people.dashboard.authentication import actor, admin, needs, note, signed_in
from experiment.people.dashboard.reading import (
    AT_ONCE,
    SHORT,
    audit_of,
    flag_counts,
    in_words,
    key_of,
    latest_blocks,
    looks,
    spent_by_model,
    suspicions,
)
from experiment.people.dashboard.sign_ins import OWNER, failures
from experiment.people.quality import QualitySign, flagged, said, signs
from experiment.people.recruitment.codes import Recruitment
from experiment.people.recruitment.reconciliation import (
    MARKS,
    import_submissions,
    parse_export,
    reconciliation,
)
from experiment.people.recruitment.return_links import awaits_review
from experiment.people.response_intake import read_copy, take_copy
from experiment.people.server_state import service_of, this_site
from experiment.people.service import StudyService
from experiment.store import Store, records
from experiment.store.backups import FOLDER, backups_in
from experiment.store.erasure import number_of
from experiment.store.records import collection_of, excluded_sessions, exclusions, set_collection
from stimuli.errors import UserError

PAGES = (
    ("Items", "audit", "audit.html", "build", "builds the items and their audit"),
    ("Newest report", "reports", "*/report.html", "report", "writes the first report"),
)
"""Pages that commands write into a study's folder: link text, folder, file, command, and the command's effect."""
PAGE_POLICY = (
    "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'self'"
)

STATES = {
    "open": ("run", "New participants can begin."),
    "paused": ("run", "No new participants can begin; sessions in progress continue."),
    "closed": ("close", "The study is closed; condition means are visible."),
}
"""States of a study: the permission to set each, and what it means; those who may close a study reopen it."""


@admin.app_template_global()
def files_of(service: StudyService) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return address and name of each page in a study's folder, and the commands that show or write the others."""
    links: list[tuple[str, str]] = []
    commands = [("preview", "shows every screen next to the exact prompt, on the computer where you run it")]
    if service.folder is None:
        return links, []
    for name, within, page, command, does in PAGES:
        newest = max((service.folder / within).glob(page), default=None)
        if newest is None:
            commands.append((command, does))
        else:
            file = newest.relative_to(service.folder / within).as_posix()
            links.append((url_for("admin.show_file", study=service.study, within=within, file=file), name))
    return links, [(f"wrods {command} {service.folder.name}", does) for command, does in commands]


@admin.get("/<study>/files/<any(audit, reports):within>/<path:file>")
@needs("download")
def show_file(study: str, within: str, file: str) -> AnyResponse:
    """Send the audit of a study's items, or a report, with linked pictures and files."""
    service = service_of(study)
    if service.folder is None:
        abort(404)
    shown = send_from_directory(service.folder.resolve() / within, file)
    if within == "reports" and not file.endswith((".png", ".svg")):  # pictures come with their page
        note("opened a report", study=study, detail={"file": file})
    shown.headers["Content-Security-Policy"] = PAGE_POLICY
    return shown


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def _attached(file: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{file}"'}


@admin.get("/<study>/trials.csv")
@needs("download")
def download(study: str) -> AnyResponse:
    """Send the trials table of a study."""
    service = service_of(study)
    note("downloaded trials.csv", study=study)
    return Response(
        trials_csv(service.store, study, service.factors),
        mimetype="text/csv",
        headers=_attached(f"{study}-trials-{_today()}.csv"),
    )


@admin.get("/<study>/export/<form>.zip")
@needs("download")
def export(study: str, form: str) -> AnyResponse:
    """Send all tables of a study in one of the formats of ``wrods export``, as a zip file."""
    service = service_of(study)
    if form not in FORMS or service.folder is None:
        abort(404)
    note(f"downloaded {form}", study=study)
    packed = io.BytesIO()
    with TemporaryDirectory() as place:
        folder = Path(place) / f"{study}-{form}-{_today()}"
        export_study(load_study(service.folder), service.store, folder, form)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(folder.rglob("*")):
                archive.write(file, file.relative_to(place))
    return Response(packed.getvalue(), mimetype="application/zip", headers=_attached(f"{folder.name}.zip"))


def _sent() -> tuple[bytes, str]:
    sent = request.files.get("file")
    if sent is None or not sent.filename:
        abort(400, "Please choose a file.")
    return sent.read(), Path(sent.filename).name


@admin.post("/<study>/copy")
@needs("upload")
def upload_copy(study: str) -> AnyResponse:
    """Store a participant's downloaded copy of answers that did not arrive."""
    service = service_of(study)
    contents, _ = _sent()
    try:
        taken = take_copy(
            service.store,
            study,
            read_copy(contents),
            recruitment=service.recruitment,
            score=service.score,
            clock=service.clock,
        )
    except UserError as error:
        flash(str(error))
        return redirect(url_for("admin.show"))
    counts = {"new": taken.new, "same": taken.same, "refused": taken.refused}
    if taken.departed is not None:
        note("took a copy of answers", study=study, detail=counts)
        this_site().let_go(service, taken.departed)
        flash(f"{taken.reader} asked for this session to be erased, and it was.")
        return redirect(url_for("admin.show"))
    note("took a copy of answers", study=study, session_id=taken.session_id, detail=counts)
    why = f" ({'; '.join(taken.reasons)})" if taken.reasons else ""
    flash(
        f"{taken.reader}: {taken.new} answers and events were new, {taken.same} were here already, "
        f"{taken.refused} were refused{why}."
    )
    return redirect(url_for("admin.show_session", study=study, key=key_of(taken.session_id)))


def _recruitment_of(service: StudyService) -> Recruitment:
    recruitment = service.recruitment
    if recruitment is None or recruitment.platform is None or recruitment.platform.export is None:
        abort(404)
    return recruitment


@admin.get("/<study>/reconciliation")
@needs("reconcile")
def show_reconciliation(study: str) -> str:
    """Show the platform's submissions next to the stored sessions."""
    service = service_of(study)
    report = reconciliation(service.store, _recruitment_of(service))
    return render_template(
        "admin/reconciliation.html", service=service, report=report, marks=MARKS, key_of=key_of
    )


@admin.post("/<study>/reconciliation")
@needs("reconcile")
def upload_submissions(study: str) -> AnyResponse:
    """Import a platform's list of submissions."""
    service = service_of(study)
    recruitment = _recruitment_of(service)
    contents, name = _sent()
    try:
        read = parse_export(contents, name, expected=recruitment.platform)
        done = import_submissions(service.store, recruitment, read, actor=actor())
    except UserError as error:
        flash(str(error))
    else:
        flash(
            f"{done.new} submissions are new, {done.changed} changed; places open again: {done.returned} returned, "
            f"{done.timed_out} timed out."
        )
    return redirect(url_for("admin.show_reconciliation", study=study))


def trials_csv(store: Store, study: str, factors: Sequence[str]) -> Iterator[str]:
    """Yield a study's trials as CSV lines: the columns of the trials table, then one per factor."""
    columns = {name: column.type == "string" for name, column in trial_columns().items()}
    columns |= dict.fromkeys(factors, True)
    yield line(columns)
    with store.read() as connection:
        for row in trial_rows(connection, study):
            yield line(cell(row.get(name), is_text=is_text) for name, is_text in columns.items())


@admin.post("/<study>/collection")
@needs("run")
def set_state(study: str) -> AnyResponse:
    """Start, pause or close a study."""
    service = service_of(study)
    state = request.form.get("state", "")
    with service.store.read() as connection:
        before = collection_of(connection, study).state
    if state not in STATES:
        abort(400, "A study is open, paused or closed.")
    if not (signed_in(STATES[state][0]) and signed_in(STATES[before][0])):
        abort(403, "Only an owner closes a study, or opens it again.")
    reason, name = " ".join(request.form.get("reason", "").split())[:500], actor()
    service.store.write(
        lambda connection: set_collection(connection, study, state, name, reason)  # type: ignore[arg-type]
    ).result()
    flash(STATES[state][1])
    return redirect(url_for("admin.show"))


@admin.get("/<study>/flags")
@needs("see")
def show_flags(study: str) -> str:
    """Show every session with a sign of careless or automatic answering, with the values."""
    service = service_of(study)
    with service.store.read() as connection:
        rows = records.sessions_overview(connection, study)
        signs_by_session = this_site().findings.of(connection, rows, service.session_rules)
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
            "found": found,
        }
        for row in rows
        if (found := flagged(signs_by_session.get(row["session_id"], [])))
    ]
    lines.sort(key=lambda line: -len(line["found"]))
    return render_template(
        "admin/flags.html",
        service=service,
        lines=lines,
        signs=signs(),
        said=said,
        sessions=len(signs_by_session),
        keeps_back=is_open,
    )


@admin.route("/<study>/quality", methods=["GET", "POST"])
@needs("see")
def show_quality(study: str) -> str:
    """Offer quality pooled over all conditions, or show and log it; means by condition after the study is closed."""
    service = service_of(study)
    groups = means = None
    with service.store.read() as connection:
        collection = collection_of(connection, study)
        if request.method == "POST":
            groups = pooled(connection, study)
            means = pooled(connection, study, service.factors) if collection.state == "closed" else None
    if groups is not None:
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
    """Show the audit of a study."""
    service = service_of(study)
    with service.store.read() as connection:
        before = request.args.get("before", type=int)
        lines = audit_of(connection, study, before=before if before is None else max(0, min(before, 2**31)))
        readers = {row["session_id"]: row["reader"] for row in records.sessions_overview(connection, study)}
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
    """Quality of a reader group (participants, or one model) over some trials."""

    name: str
    condition: tuple[str, ...]
    sessions: int
    trials: int
    accuracy: float | None
    median_rt: float | None
    lower_rt: float | None
    upper_rt: float | None
    unreadable: float


def pooled(connection: Connection, study: str, factors: Sequence[str] = ()) -> list[Pooled]:
    """Return each reader group's quality, participants first: by condition if factors are given (of a closed study)."""
    groups: dict[tuple[bool, str, tuple[str, ...]], list[Mapping[str, Any]]] = {}
    for row in trial_rows(connection, study):
        is_test = not (row["is_practice"] or row["is_filler"] or row["is_attention_check"])
        if not is_test or row["is_pilot"] or row["excluded_reason"] is not None:
            continue
        kind = row["reader_kind"]
        name = kind if kind in ("human", "simulated") else row["reader"]
        condition = tuple(str((row["condition"] or {}).get(factor, "")) for factor in factors)
        row_values = {column: row[column] for column in ("session_id", "response_status", "correct", "rt")}
        groups.setdefault((kind != "human", str(name), condition), []).append(row_values)
    return [
        _summary(name, condition, trials_of_group)
        for (_, name, condition), trials_of_group in sorted(groups.items())
    ]


def _summary(name: str, condition: tuple[str, ...], rows: Sequence[Mapping[str, Any]]) -> Pooled:
    valid = [row["response_status"] == "valid" for row in rows]
    judged = [
        bool(row["correct"])
        for row, is_valid in zip(rows, valid, strict=True)
        if row["correct"] is not None or not is_valid
    ]
    # without known correct answers, only unreadable ones would be judged
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


NEWEST_BACKUPS = 3
MEASURING_S = 0.5
"""Seconds that one answer may spend on computing metrics of sessions: the rest follows with the next."""


@admin.get("/")
@needs("see")
def show() -> str:
    """Show the live page."""
    services = list(this_site().services.values())
    failed = None
    for service in services if signed_in("audit") else ():
        if service.store.trouble is None:
            with service.store.read() as connection:
                found = failures(connection, service.study)
            # the audits of all studies contain the same tries
            failed = found if failed is None or found.tries > failed.tries else failed
    return render_template("admin/sessions.html", services=services, failed=failed)


@admin.get("/data.json")
@needs("see")
def data() -> Response:
    """Return the live page's current data; 304 if the browser has it already."""
    present = datetime.now(UTC)
    site = this_site()
    # the banner names an unusable database, and the other studies stay visible
    usable = [service for service in site.services.values() if service.store.trouble is None]
    response = jsonify(
        studies=[_tell(service, present) for service in usable],
        concerns=[
            {"study": concern.study, "words": concern.words, "stops_answers": concern.stops_answers}
            for concern in site.health.concerns()
        ],
    )
    response.add_etag()
    response.make_conditional(request)
    response.headers["X-Wrods-Now"] = present.isoformat(timespec="milliseconds")
    return response


def _tell(service: StudyService, present: datetime) -> dict[str, Any]:
    with service.store.read() as connection:
        rows = records.sessions_overview(connection, service.study)
        beside = SessionExtras(
            excluded=set(connection.scalars(excluded_sessions())),
            blocks=latest_blocks(connection, service.study),
            flags=flag_counts(connection, service.study),
            measures=this_site().findings.of(connection, rows, service.session_rules, within_s=MEASURING_S),
        )
        collection = collection_of(connection, service.study)
        declined = number_of(connection, service.study)
        about = {
            "study": service.study,
            "title": service.title,
            "pilot": service.is_pilot,
            "collection": {"state": collection.state, "by": collection.by, "since": collection.since},
            "wanted": None if service.recruitment is None else service.recruitment.wanted,
            "models": spent_by_model(connection, service.study),
            "looks": looks(connection, service.study),
            "backups": _backups(service),
        }
    return about | study_overview(rows, service.list_ids, present, beside, declined=declined)


def _backups(service: StudyService) -> dict[str, Any] | None:
    if service.folder is None:
        return None
    there = backups_in(service.folder / FOLDER)
    newest = [
        {
            "file": backup.file.name,
            "at": None if backup.made_at is None else backup.made_at.isoformat(timespec="seconds"),
            "bytes": backup.file.stat().st_size,
        }
        for backup in reversed(there[-NEWEST_BACKUPS:])
        if backup.file.is_file()
    ]
    return {"number": len(there), "newest": newest}


@admin.get("/<study>/pilot")
@needs("pilot")
def pilot(study: str) -> AnyResponse:
    """Open a study's page as a pilot."""
    service_of(study)
    return redirect(url_for("pages.participant", study=study, pilot=this_site().passes.make(study, "pilot")))


ACTIVE = timedelta(minutes=5)
MOST_ROWS = 300
KINDS = ("human", "simulated", "model", "baseline")
COUNTED = ("finished", "running", "interrupted")


@dataclass(frozen=True)
class SessionExtras:
    """Additional data of sessions, by session id."""

    excluded: Collection[str] = ()
    blocks: Mapping[str, str | None] = field(default_factory=dict)
    flags: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    measures: Mapping[str, Sequence[QualitySign]] = field(default_factory=dict)


def state_of(session: Mapping[str, Any], now: datetime) -> str:
    """Return a session's state: an unfinished one is ``running``, or ``interrupted`` if long inactive."""
    if session["state"] != "started":
        return str(session["state"])
    return "running" if now - datetime.fromisoformat(session["last_seen_at"]) < ACTIVE else "interrupted"


def study_overview(
    sessions: Sequence[Mapping[str, Any]],
    lists: Sequence[int],
    now: datetime,
    beside: SessionExtras | None = None,
    *,
    declined: int = 0,
) -> dict[str, Any]:
    """Return a summary of a study's sessions for the live page."""
    beside = beside or SessionExtras()
    kinds: dict[str, Counter[str]] = {}
    filled: dict[int, dict[str, Counter[str]]] = {list_id: {} for list_id in lists}
    rows = []
    for session in sessions:
        state = state_of(session, now)
        is_excluded = session["session_id"] in beside.excluded
        group = _group(session, is_excluded)
        kinds.setdefault(group, Counter())[state] += 1
        if session["list_id"] is not None:
            filled.setdefault(session["list_id"], {}).setdefault(group, Counter())[state] += 1
        rows.append(_row(session, state, group, beside))
    if declined:
        kinds.setdefault("human", Counter())["declined"] = declined
    # sorting is stable, so the newest stay first within a state
    rows.sort(key=lambda row: row["state"] != "running")
    return {
        "kinds": {
            group: dict(kinds[group]) | {"all": kinds[group].total()}
            for group in (*KINDS, "held", "pilot", "excluded")
            if group in kinds
        },
        "lists": [
            {"list_id": list_id, "groups": {group: dict(counts) for group, counts in groups.items()}}
            for list_id, groups in sorted(filled.items())
        ],
        "sessions": rows[:MOST_ROWS],
        "hidden": max(0, len(rows) - MOST_ROWS),
    }


def _group(session: Mapping[str, Any], is_excluded: bool) -> str:
    if session["is_pilot"]:
        return "pilot"
    if is_excluded:
        return "excluded"
    return "held" if session["held_reason"] else str(session["reader_kind"])


def _row(session: Mapping[str, Any], state: str, group: str, beside: SessionExtras) -> dict[str, Any]:
    number, session_id = session["participant_id"], session["session_id"]
    flagged_signs = flagged(beside.measures.get(session_id, ()))
    return {
        "key": key_of(session_id),
        "reader": session["reader"],
        "participant": number if number != session["reader"] else None,
        "kind": session["reader_kind"],
        "group": group,
        "pilot": bool(session["is_pilot"]),
        "state": state,
        "reason": session["ended_reason"],
        "held": session["held_reason"],
        "awaits_review": awaits_review(session),
        "station": session["station"],
        "list": session["list_id"],
        "version": session["version"],
        "block": beside.blocks.get(session_id),
        "trials": session["n_trials"],
        "trial": None if session["last_trial"] is None else session["last_trial"] + 1,
        "planned": session["planned_trials"],
        "started": session["created_at"],
        "seen": session["last_seen_at"],
        "code": None if session["held_reason"] else session["completion_code"],
        "signs": [sign.label for sign in flagged_signs],
        "flags": suspicions(beside.flags.get(session_id, {})),
        "notes": beside.flags.get(session_id, {}).get("note", 0),
    }
