"""Requests of stations (status of a number, ending unfinished sessions) and their downloads: certificate and shortcuts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any, Literal

from flask import Blueprint, Response, abort, jsonify, render_template, request, url_for
from sqlalchemy import Connection, select

from experiment.people.api import PATIENCE, only_our_pages
from experiment.people.lab.settings import Lab, is_experimenter, number_of, pin_needed, this_lab
from experiment.people.response_intake import Departed, Problem, leave_unagreed, read_body
from experiment.people.server_state import this_site
from experiment.people.service import StudyService
from experiment.procedure.plan_builder import trials_of, with_further_answers
from experiment.store import StoreError, records, session_activity
from experiment.store.assignment import number_is_taken
from experiment.store.tables import sessions
from stimuli.errors import UserError

MOST = 20
ENDED = "ended"
BEFORE_FIRST = "interrupted"
"""State of a session that ended before its first test trial: its number may start over."""
State = Literal["new", "unfinished", "finished", "ended", "taken"]


@dataclass(frozen=True)
class Unfinished:
    """A session that can be continued."""

    participant: str
    next_trial: int
    trials: int
    last_seen_at: str
    station: str | None


def unfinished_at(connection: Connection, study: str, station: str) -> list[Unfinished]:
    """Return the unfinished sessions of a station, the latest first."""
    begun = select(sessions).filter_by(study=study, state="started", reader_kind="human", is_pilot=False)
    query = begun.filter_by(station=station).order_by(sessions.c.last_seen_at.desc()).limit(MOST)
    return [_unfinished(connection, dict(row)) for row in connection.execute(query).mappings()]


def state_of_number(connection: Connection, study: str, participant: str) -> tuple[State, list[Unfinished]]:
    """Return the state of a participant's number, and its unfinished session if it has one."""
    if number_is_taken(connection, study, participant):
        return "taken", []
    rows = records.sessions_of_person(connection, study, {"participant": participant})
    begun = next((row for row in rows if row["state"] == "started"), None)
    closed = next((row for row in rows if row["state"] not in ("started", "declined", BEFORE_FIRST)), None)
    if closed is not None:
        return ("finished" if closed["state"] == "finished" else "ended"), []
    return ("new", []) if begun is None else ("unfinished", [_unfinished(connection, begun)])


def end_unfinished(
    connection: Connection, study: str, participant: str, reason: str, station: str | None
) -> tuple[Literal["ended", "same", "none"], Departed | None]:
    """End a participant's unfinished session with a reason; its place becomes available.

    All of its data are kept, unless its reader had not consented: then it is erased.
    """
    rows = records.sessions_of_person(connection, study, {"participant": participant})
    begun = next((row for row in rows if row["state"] == "started"), None)
    if begun is None:
        return ("same" if rows else "none"), None
    session_id = str(begun["session_id"])
    tests = _tests(begun["plan"])
    met = {index for index, _ in records.done_keys(connection, session_id)}
    met |= {index for index, _ in session_activity.shown_keys(connection, session_id)}
    state = BEFORE_FIRST if all(map(met.isdisjoint, tests)) else ENDED
    session_activity.end_session(connection, session_id, state, f"experimenter: {reason}")
    detail = {"reason": reason, "station": station}
    records.add_event(connection, session_id, "ended_at_station", detail)
    records.add_audit(
        connection, "experimenter", "end session", study=study, session_id=session_id, detail=detail
    )
    return "ended", leave_unagreed(connection, session_id)


def _unfinished(connection: Connection, row: Mapping[str, Any]) -> Unfinished:
    tests = _tests(row["plan"])
    done = {index for index, _ in records.done_keys(connection, str(row["session_id"]))}
    waiting = [place for place, indices in enumerate(tests, start=1) if not done.issuperset(indices)]
    return Unfinished(
        participant=str(row["participant_id"]),
        next_trial=waiting[0] if waiting else len(tests) + 1,
        trials=len(tests),
        last_seen_at=str(row["last_seen_at"]),
        station=row["station"],
    )


def _tests(plan: Mapping[str, Any]) -> list[list[int]]:
    """Return the indices of each test trial and its further answers."""
    tests = [trial for trial in trials_of(plan) if not trial.get("is_practice")]
    return [[trial["trial_index"] for trial in group] for group in with_further_answers(tests)]


SWITCHES = (
    "--kiosk",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-session-crashed-bubble",
    "--disable-pinch",
    "--overscroll-history-navigation=0",
    "--disable-features=Translate",
)
_PLAIN = re.compile(r"https?://[0-9A-Za-z.\[\]:_~/-]+")


@dataclass(frozen=True)
class System:
    """An operating system of stations: name, shortcut file (in this folder), and the browser's command there."""

    name: str
    file: str
    ends: str
    browser: str
    profile: str


SYSTEMS = (
    System("Windows", "wrods-station.cmd", "\r\n", "chrome.exe", r'"%LocalAppData%\wrods-station"'),
    System("macOS", "wrods-station.command", "\n", "open -na 'Google Chrome' --args",
           '"$HOME/Library/Application Support/wrods-station"'),
    System("Linux", "wrods-station.sh", "\n", "chromium", '"$HOME/wrods-station"'),
)  # fmt: skip


def shortcut(system: System, page: str) -> str:
    """Return the shortcut's text for a system."""
    text = resources.files(__package__).joinpath(system.file).read_text("utf-8")
    text = text.replace("SWITCHES", " ".join(_switches(page))).replace("PAGE", page)
    return text.replace("\n", system.ends)


def command(system: System, page: str) -> str:
    """Return the command line that opens the page as the shortcut does, for typing or printing."""
    return " ".join((system.browser, *_switches(page), f"--user-data-dir={system.profile}", page))


def _switches(page: str) -> tuple[str, ...]:
    if not _PLAIN.fullmatch(page):
        raise UserError(
            f"{page!r} cannot be used in a shortcut", mend="Use only plain letters in the study's id."
        )
    if page.startswith("https://"):
        return SWITCHES
    origin = "/".join(page.split("/")[:3])
    return (*SWITCHES, f"--unsafely-treat-insecure-origin-as-secure={origin}")


lab_pages = Blueprint("lab", __name__)
CERTIFICATE_FILE = "wrods-lab.crt"
PAGE_NAMES = frozenset({"certificate", "kiosk"})


def _lab() -> Lab:
    lab = this_lab()
    if not lab.has_stations:
        abort(404)
    return lab


@lab_pages.get("/certificate")
def certificate() -> str:
    """Show how to make a station trust this server."""
    lab = _lab()
    if lab.authority is None:
        abort(404)
    host = request.host_url.rstrip("/").split("://", 1)[1]
    return render_template(
        "lab/certificate.html",
        fingerprint=lab.fingerprint,
        file=CERTIFICATE_FILE,
        secure=f"https://{host}/",
        host=host,
        is_secure=request.scheme == "https",
    )


@lab_pages.get(f"/certificate/{CERTIFICATE_FILE}")
def certificate_file() -> Response:
    """Send the authority's certificate; its private key never leaves the configuration folder."""
    lab = _lab()
    if lab.authority is None:
        abort(404)
    response = Response(lab.authority.read_bytes(), mimetype="application/x-x509-ca-cert")
    response.headers["Content-Disposition"] = f"attachment; filename={CERTIFICATE_FILE}"
    return response


@lab_pages.get("/kiosk")
def kiosk() -> str:
    """Show the shortcuts, one for each system and study."""
    lab = _lab()
    return render_template(
        "lab/kiosk.html",
        services=this_site().services.values(),
        systems=SYSTEMS,
        command=lambda system, study: command(system, _page(lab, study)),
        has_certificate=lab.authority is not None,
    )


@lab_pages.get("/kiosk/<study>/<name>")
def kiosk_file(study: str, name: str) -> Response:
    """Send a shortcut."""
    lab = _lab()
    system = next((candidate for candidate in SYSTEMS if candidate.file == name), None)
    if system is None or study not in this_site().services:
        abort(404)
    response = Response(shortcut(system, _page(lab, study)), mimetype="application/octet-stream")
    response.headers["Content-Disposition"] = f"attachment; filename={system.file}"
    return response


def _page(lab: Lab, study: str) -> str:
    """Return a study's address for stations: the requested host if it is ours, else the likeliest."""
    requested = f"http://{request.host}"
    origin = requested if requested in lab.origins else next(iter(lab.origins), requested)
    return origin + url_for("pages.participant", study=study)


stations = Blueprint("stations", __name__, url_prefix="/api/<study>/station")
stations.before_request(only_our_pages)


def _service(study: str) -> StudyService:
    service = this_site().services.get(study)
    is_here = this_site().settings.public_url is None
    if service is None or not service.ask_participant or not is_here:
        raise Problem(
            404, "this study has no stations here", rule="recruit: lab, served in the lab's own network"
        )
    return service


@stations.post("/start")
def start(study: str) -> Response:
    """Return the status of a number, or a station's unfinished sessions."""
    service = _service(study)
    body = read_body(request, "station_start")
    reply: dict[str, Any] = {"participant": None, "state": None}
    typed, station = body.get("participant"), body.get("station")
    with service.store.read() as connection:
        if typed:
            number = number_of(service, typed)
            state, unfinished = state_of_number(connection, study, number)
            reply |= {"participant": number, "state": state}
        else:
            unfinished = unfinished_at(connection, study, station) if station else []
    return jsonify(reply | {"unfinished": [asdict(session) for session in unfinished]})


@stations.post("/end")
def end(study: str) -> Response:
    """End a participant's unfinished session with a reason."""
    service = _service(study)
    body: Mapping[str, Any] = read_body(request, "station_end")
    if not is_experimenter(body.get("pin")):
        raise pin_needed()
    number, reason = number_of(service, body["participant"]), body["reason"].strip()
    try:
        outcome, departed = service.store.write(
            lambda connection: end_unfinished(connection, study, number, reason, body.get("station"))
        ).result(timeout=this_site().settings.patience_s)
    except (NotInTime, StoreError) as error:
        raise Problem(
            503, PATIENCE, rule="an end is confirmed only when it is on disk", retry_after_s=2
        ) from error
    if outcome == "none":
        raise Problem(404, f"{number} has no session here", rule="the number of an unfinished session")
    if departed is not None:
        this_site().let_go(service, departed)
    return jsonify(ended=True)
