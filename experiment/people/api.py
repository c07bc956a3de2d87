"""The API for participants' browsers (docs/contracts.md): each reply follows the commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from flask import Blueprint, Response, jsonify, request
from sqlalchemy import Connection

from experiment.people.connections import caller_of
from experiment.people.lab.settings import is_experimenter, pin_needed, typed_number
from experiment.people.recruitment.admission import RESUME as RESUME_LINK
from experiment.people.recruitment.admission import note_network, parameters_of_links
from experiment.people.recruitment.return_links import (
    code_at_end,
    hold_early_end,
    hold_if_doubtful,
    return_fields,
    return_when_barred,
)
from experiment.people.response_intake import (
    FAILED_COMPREHENSION,
    SCREENED_OUT,
    HoldEarlyEnd,
    Problem,
    Take,
    TooLate,
    answers_operation,
    event_operation,
    no_such_session,
    read_body,
    trial_operation,
)
from experiment.people.server_state import KILOBYTES_PER_HOUR, SENDINGS_PER_MINUTE, this_site
from experiment.people.service import AccessPass, LiveSession, StudyService
from experiment.people.session_start import (
    ALWAYS_RESUMES,
    AlreadyTookPart,
    Arrival,
    NotResumed,
    OpenedSession,
    OpenElsewhere,
    come_back,
    give_list,
    open_session,
    resume_link_spent,
)
from experiment.store import SessionGone, StoreError, records, session_activity

T = TypeVar("T")
api = Blueprint("api", __name__, url_prefix="/api/<study>")
LEASE_NAME = re.compile(r"[0-9A-Za-z-]{16,64}")
PATIENCE = "the study's computer is busy or its disk is full; the answer is safe in the browser"


@api.before_request
def only_our_pages() -> None:
    """Raise an error for writes without our header, which another site's page cannot send."""
    if request.method == "POST" and "HTTP_X_WRODS" not in request.environ:
        raise Problem(
            403, "the request did not come from a study page", rule="POSTs carry the header X-Wrods"
        )


def _service(study: str) -> StudyService:
    service = this_site().services.get(study)
    if service is None:
        raise Problem(404, "there is no such study here", rule="the study is being served")
    return service


def _session(service: StudyService, session_id: str) -> LiveSession:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme != "Bearer" or not token:
        raise Problem(401, "the session's token is missing", rule="Authorization: Bearer <token>")
    live = this_site().live.find(service.store, service.study, session_id, token)
    if live is None:
        raise no_such_session()
    site = this_site()
    wait = site.sendings.wait(session_id) or site.volumes.wait(
        session_id, tries=1 + (request.content_length or 0) // 1024
    )
    if wait:
        raise Problem(
            429,
            "this session sends too much",
            rule=f"{SENDINGS_PER_MINUTE} requests a minute and {KILOBYTES_PER_HOUR // 1024} MB an hour",
            mend="The browser tries again by itself.",
            retry_after_s=int(wait) + 1,
        )
    return live


def _lease() -> str | None:
    """Return the requesting tab's lease; None if it sends none (simulated readers)."""
    given = request.headers.get("X-Wrods-Lease")
    if given is not None and LEASE_NAME.fullmatch(given) is None:
        raise Problem(
            400, "the tab's name was not accepted", rule="X-Wrods-Lease has 16 to 64 letters or digits"
        )
    return given


def _committed(service: StudyService, operation: Callable[[Connection], T], session_id: str = "") -> T:
    """Return the result of a committed write; ask the browser to wait if the database cannot take it now."""
    try:
        return service.store.write(operation).result(timeout=this_site().settings.patience_s)
    except (NotInTime, StoreError) as error:
        raise not_stored() from error
    except SessionGone:
        this_site().live.forget(session_id)
        raise no_such_session() from None


def not_stored() -> Problem:
    """Return the problem for a database that cannot store anything now."""
    return Problem(
        503,
        PATIENCE,
        rule="an answer is confirmed only when it is on disk",
        mend="The browser tries again by itself.",
        retry_after_s=2,
    )


@api.post("/sessions")
def begin(study: str) -> tuple[Response, int]:
    """Begin a session, or return the participant's existing one."""
    service = _service(study)
    site = this_site()
    body = read_body(request, "session")
    wait = site.entries.wait(caller_of(request.remote_addr or ""))
    if wait:
        raise Problem(
            429,
            "too many sessions were begun from here",
            rule=f"{site.settings.entries_per_minute} sessions a minute",
            mend="Wait a moment.",
            retry_after_s=int(wait) + 1,
        )
    arrival = replace(_arrival(service, body), lease=_lease(), network=_network())
    opened = _opening(
        service,
        lambda connection: open_session(connection, service, body, arrival, secret=site.settings.secret),
    )
    return jsonify(_told(service, opened)), 201 if opened.is_new else 200


def _network() -> dict[str, str | None]:
    return {"ip_address": request.remote_addr, "user_agent": request.headers.get("User-Agent")}


def _arrival(service: StudyService, body: Mapping[str, Any]) -> Arrival:
    """Return who asks for a session: link parameters, pass, and what was typed in a laboratory."""
    link: dict[str, str] = dict(body.get("platform") or {})
    foreign = sorted(set(link) - {*parameters_of_links(service), RESUME_LINK})
    if foreign:
        raise Problem(
            400,
            f"links to this study do not carry {foreign[0]}",
            rule="a link has the parameters of the platform under participants.recruit",
            mend="Leave it out.",
        )
    given = _pass(service, body.get("pass"))
    kind = None if given is None else given.kind
    if body.get("simulated") and kind != "simulated":
        raise Problem(
            403,
            "simulated readers need the experimenter's pass; nothing was stored",
            rule="simulated: true comes with a pass for simulated readers",
            mend="Use `wrods simulate`, which brings one.",
        )
    resumes = link.pop(RESUME_LINK, None)
    if resumes is not None:
        pass_contents = this_site().passes.read(resumes, service.study)
        if pass_contents is None or pass_contents.kind != "resume":
            raise resume_link_spent(service)
        return Arrival(resumes=pass_contents.told)
    is_pilot = service.is_pilot or kind == "pilot"
    if is_pilot or body.get("simulated"):
        return Arrival(link, is_pilot=is_pilot, is_simulated=bool(body.get("simulated")))
    is_signed = given is not None and kind == "arrival"
    if given is not None and is_signed:
        link |= given.told
    number = typed_number(service, body.get("participant"))
    pin = body.get("pin") if number is not None else None
    is_shown = is_experimenter(pin)
    if pin is not None and not is_shown and this_site().settings.public_url is None:
        raise pin_needed()
    return Arrival(link, number, is_shown=is_shown, is_signed=is_signed)


def _pass(service: StudyService, given: str | None) -> AccessPass | None:
    """Return the contents of a pass, or None without one."""
    if given is None:
        return None
    known = this_site().passes.read(given, service.study)
    if known is None or known.kind == "resume":
        words = service.pack.texts
        title, text = words["unsigned_title"], words["unsigned_text"]
        raise Problem(403, text, rule="passes are good for half a day", title=title)
    return known


def _opening(
    service: StudyService, operation: Callable[[Connection], OpenedSession], session_id: str = ""
) -> OpenedSession:
    words = service.pack.texts
    try:
        return _committed(service, operation, session_id)
    except AlreadyTookPart as refusal:
        state, rule, mend = refusal.state, "a participant takes part once", words["ask_us"]
        parting = {} if state == "finished" else _parting(service)
    except NotResumed as refusal:
        state, rule = refusal.state, refusal.reason
        mend = " ".join(filter(None, (return_when_barred(service), words["ask_us"])))
        parting = _parting(service, session_id)
    except OpenElsewhere as refusal:
        raise _elsewhere(service, refusal.may_take) from None
    key = {"finished": "already_took_part"}.get(state, state)
    text = words[key if key in ("already_took_part", "timed_out", "blocked", "interrupted") else "ended"]
    raise Problem(409, text, rule=rule, mend=mend, state=state, title=words["ended_title"], **parting)


def _parting(service: StudyService, session_id: str = "") -> dict[str, Any]:
    """Return what a reader sees after the session's end: the debriefing, and on its own page the consent text."""
    row = None
    if session_id:
        with service.store.read() as connection:
            row = records.session(connection, session_id)
    screens = service.screens(None if row is None else row["plan"])
    debrief, consent = screens.get("debrief"), screens.get("consent")
    parting: dict[str, Any] = {"debrief": None if debrief is None else debrief["html"]}
    if row is not None:
        parting["participant"] = row["participant_id"]
        if consent is not None:
            parting["consent"] = {"html": consent["html"], "version": consent["version"]}
    return parting


def _elsewhere(service: StudyService, may_take: bool) -> Problem:
    words = service.pack.texts
    rule = "one tab at a time shows a session"
    return Problem(423, words["open_elsewhere"], rule=rule, mend=words["go_back_there"], may_take=may_take)


def _told(service: StudyService, opened: OpenedSession) -> dict[str, Any]:
    return {
        "session_id": opened.session_id,
        **({"token": opened.token} if opened.token else {}),
        "plan": service.participant_view(dict(opened.plan)),
        "done": opened.done,
        "shown": opened.shown,
        "state": opened.state,
        "participant": opened.participant,
        **({"given": opened.given} if opened.given else {}),
    }


@api.get("/sessions/<session_id>")
def look(study: str, session_id: str) -> Response:
    """Return a session's plan and its completed parts."""
    service = _service(study)
    live = _session(service, session_id)
    with service.store.read() as connection:
        row = records.session(connection, live.session_id)
        done = records.done_keys(connection, live.session_id)
        shown = session_activity.shown_keys(connection, live.session_id)
        given = {} if row is None else records.deciding_answers(connection, live.session_id, row["plan"])
    if row is None:
        raise no_such_session()
    state = str(row["state"])
    number = row["participant_id"]
    return jsonify(
        _told(service, OpenedSession(session_id, "", row["plan"], False, done, shown, given, state, number))
    )


@api.post("/sessions/<session_id>/resume")
def resume(study: str, session_id: str) -> Response:
    """Resume a session on a reopened page, if the study and other tabs allow it."""
    service = _service(study)
    live = _session(service, session_id)
    take = bool(read_body(request, "resume").get("take"))
    lease = _lease()

    def back(connection: Connection) -> OpenedSession:
        row = records.session(connection, live.session_id)
        if row is None:
            raise SessionGone(live.session_id)
        return come_back(connection, row, lease=lease, take=take)

    return jsonify(_told(service, _opening(service, back, session_id)))


@api.post("/sessions/<session_id>/lease")
def hold(study: str, session_id: str) -> Response:
    """Hold a session in the requesting tab, take it over, or release it."""
    service = _service(study)
    live = _session(service, session_id)
    body = read_body(request, "lease")
    lease = _lease()
    if lease is None:
        raise Problem(400, "the tab is not named", rule="the header X-Wrods-Lease names the tab")

    def held(connection: Connection) -> tuple[bool, str, bool]:
        if body.get("release"):
            session_activity.let_go(connection, live.session_id, lease)
        row = records.session(connection, live.session_id)
        if row is None:
            raise SessionGone(live.session_id)
        policy = row["plan"].get("if_interrupted") or ALWAYS_RESUMES
        may_take = policy["then"] == "resume"
        within = policy.get("within_ms")
        if within is not None and body.get("away_ms", 0) > within:
            reason = session_activity.left_for(timedelta(milliseconds=within))
            ended = session_activity.end_session(connection, live.session_id, "timed_out", reason)
            return True, "timed_out" if ended else str(row["state"]), may_take
        by_force = bool(body.get("take")) and may_take
        got = bool(body.get("release")) or session_activity.take_lease(
            connection, live.session_id, lease, by_force=by_force
        )
        return got, str(row["state"]), may_take

    got, state, may_take = _committed(service, held, session_id)
    if not got:
        raise _elsewhere(service, may_take)
    return jsonify(state=state)


@api.post("/sessions/<session_id>/trials")
def take_trial(study: str, session_id: str) -> tuple[Response, int]:
    """Store an answered trial with its score; what was shown comes from the stored plan."""
    service = _service(study)
    live = _session(service, session_id)
    body = read_body(request, "trial")
    return _taken(service, trial_operation(live, service.score, body, _lease()), session_id)


@api.post("/sessions/<session_id>/events")
def take_event(study: str, session_id: str) -> tuple[Response, int]:
    """Store an event outside the trials."""
    service = _service(study)
    live = _session(service, session_id)
    body = read_body(request, "event")
    network = _network()

    def keep_network(connection: Connection, agreed: str) -> None:
        note_network(connection, service, agreed, network)

    return _taken(service, event_operation(live, body, _holding(service), _lease(), keep_network), session_id)


@api.post("/sessions/<session_id>/answers")
def take_answers(study: str, session_id: str) -> tuple[Response, int]:
    """Store a screen's answers, and return whether the reader may continue."""
    service = _service(study)
    live = _session(service, session_id)
    body = read_body(request, "answers")
    operation = answers_operation(
        live,
        body,
        _holding(service),
        _lease(),
        lambda connection, row, group: give_list(connection, service, row, group),
    )
    return _taken(service, operation, session_id)


def _holding(service: StudyService) -> HoldEarlyEnd:
    return lambda connection, session_id, screen: hold_early_end(
        connection, session_id, screen, service.recruitment, service.clock()
    )


def _taken(service: StudyService, operation: Take, session_id: str) -> tuple[Response, int]:
    try:
        taken = _committed(service, operation, session_id)
    except (records.TrialConflict, records.EventConflict) as conflict:
        raise Problem(409, str(conflict), rule="a trial is answered once, an event noted once") from None
    except TooLate as late:
        words = service.pack.texts
        raise Problem(
            409,
            service.pack.fill("delete_refused", until=late.until),
            rule="participants.withdraw_until",
            title=words["delete_refused_title"],
        ) from None
    if taken.departed is not None:
        this_site().let_go(service, taken.departed)
        return jsonify(erased=True), 201
    ended = FAILED_COMPREHENSION if taken.then == "end" else None if taken.eligible else SCREENED_OUT
    told = {"feedback": taken.feedback, "then": taken.then, "ended": ended}
    reply: dict[str, Any] = {"stored": True, "elsewhere": taken.is_elsewhere, "eligible": taken.eligible}
    reply |= {name: value for name, value in told.items() if value is not None}
    return jsonify(reply), 201 if taken.told == "stored" else 200


@api.post("/sessions/<session_id>/finish")
def finish(study: str, session_id: str) -> tuple[Response, int] | Response:
    """Return the completion code once every trial is stored; hold a session that was too fast or skipped a screen."""
    service = _service(study)
    live = _session(service, session_id)
    body = read_body(request, "finish")
    recorded = body["trials"]
    is_whole = body.get("completed", True)

    def close(connection: Connection) -> tuple[int, str, str | None]:
        row = records.session(connection, live.session_id)
        if row is None:
            raise SessionGone(live.session_id)
        state = str(row["state"])
        done = records.done_keys(connection, live.session_id)
        is_done = (
            len(done) == recorded
            and not live.awaits_group
            and session_activity.has_all(live.trials, (index for index, _ in done))
        )
        was_completed = state == "finished" and row["completion_code"] is None
        if not (is_done and is_whole and (state in session_activity.MAY_FINISH or was_completed)):
            return len(done), state, row["completion_code"]
        code = code_at_end(connection, service, live.session_id)
        held = row["held_reason"]
        if not was_completed:  # only the request that completes a session checks it
            answered = {index for index, _ in done}
            held = hold_if_doubtful(connection, row, answered, service.recruitment, service.clock())
        code = records.finish_session(connection, live.session_id, completion_code=code, held_reason=held)
        return len(done), "finished", code

    stored, state, code = _committed(service, close, session_id)
    # of a session that timed out, only a page that has all its answers makes more
    has_ended = state not in (session_activity.MAY_FINISH if is_whole else ("started",)) or code is not None
    if not has_ended or (state == "finished" and stored != recorded):
        error = f"{stored} trials are stored, {recorded} were recorded, {len(live.trials)} are planned"
        raise Problem(409, error, rule="every trial is stored before a session ends", stored=stored)
    with service.store.read() as connection:
        row = records.session(connection, live.session_id) or {"state": state}
    is_held = bool(row.get("held_reason"))
    reply = {"stored": stored, "state": state, "completion_code": code, "held": is_held}
    return jsonify(reply | return_fields(service, row))
