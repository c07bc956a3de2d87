"""The web application: the participant interface, its API, and the dashboard.

Requests from another site's page are refused: an origin is ours if its host is one that this server knows. The Host header
alone is not sufficient: a foreign name may briefly point to this computer and then appear as both host and origin (DNS
rebinding). An address cannot, because a page loaded from an address is sent back to that address.
"""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from flask import Flask, Request, Response, abort, jsonify, make_response, render_template, request, url_for
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface, SessionMixin
from markupsafe import Markup
from werkzeug.exceptions import HTTPException
from werkzeug.middleware.proxy_fix import ProxyFix

from experiment.people.api import api, not_stored
from experiment.people.connections import listen
from experiment.people.dashboard import rating_pages, session_pages, study_pages  # noqa: F401 (they add views)
from experiment.people.dashboard.authentication import admin, cookie_name, signed_in
from experiment.people.headers import add_headers
from experiment.people.lab.serving import own_names
from experiment.people.lab.stations import PAGE_NAMES, lab_pages, stations
from experiment.people.pages import ASSETS, digest, pages, speaking
from experiment.people.response_intake import LARGEST_BODY, Problem
from experiment.people.server import WAITING_PAGES, StudyServer
from experiment.people.server_state import Site, this_site
from experiment.people.service import PeopleSettings, StudyService, service_for
from experiment.store import Store, StoreError
from experiment.study import Study
from stimuli.audit.findings import counted
from stimuli.errors import UserError

FOR_EXPERIMENTERS = frozenset({admin.name, lab_pages.name})
RETRY_AFTER_S = 60
REFUSALS = {
    400: ("This was not done", "Please go back and try again."),
    403: ("Not allowed", "Your account may not do this."),
    404: ("Page not found", "There is nothing at this address. It may have been erased."),
    405: ("This was not done", "This address takes no such request."),
    413: ("The file is too large", "A file may have at most 20 MB."),
}
"""Default heading and text of error pages for experimenters."""
TAKEN_NAMES = frozenset({"admin", "api", "assets", "health", "static"}) | PAGE_NAMES


def create_app(services: Mapping[str, StudyService], *, config: PeopleSettings) -> Flask:
    """Return the web application for some studies."""
    taken = sorted(TAKEN_NAMES & set(services))
    if taken:
        raise UserError(
            f"a study cannot be served as {taken[0]!r}; the server has a page of that name",
            mend="Give the study another id in study.yaml.",
        )
    app = Flask(__name__, static_folder=None)
    app.config.update(
        SECRET_KEY=hashlib.sha256(b"cookie\0" + config.secret).digest(),
        MAX_CONTENT_LENGTH=LARGEST_BODY,
        MAX_FORM_MEMORY_SIZE=LARGEST_BODY,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
    )
    app.session_interface = _MessageCookie()
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.extensions["wrods"] = Site(services, config)
    app.register_blueprint(admin)
    app.register_blueprint(api)
    app.register_blueprint(lab_pages)
    app.register_blueprint(stations)
    app.register_blueprint(pages)
    app.jinja_env.filters.update(moment=_moment, counted=counted)
    app.jinja_env.globals["asset_version"] = lambda name: digest(ASSETS / name)
    refuse_other_origins(app, config)
    app.before_request(_refuse_zero_bytes)
    app.add_url_rule("/health", "health", _health)
    _tell_errors(app)
    # which the server sends itself to callers beyond a limit
    pages_by_study = app.extensions[WAITING_PAGES] = {}
    for study in services:
        with app.test_request_context(f"/{study}/"):
            pages_by_study[study] = _participants_page("out_of_order").encode()
    add_headers(app, is_public=config.public_url is not None)
    if config.public_url is not None:
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=0, x_proto=1, x_host=1, x_prefix=1)  # type: ignore[method-assign]
    return app


class _MessageCookie(SecureCookieSessionInterface):
    """Flask's signed cookie, only for messages to the dashboard's next page; participants have none."""

    def get_cookie_name(self, app: Flask) -> str:
        return cookie_name("wrods_told")

    def get_cookie_secure(self, app: Flask) -> bool:
        return request.is_secure

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        if request.path.startswith("/api/"):
            return self.session_class()
        return super().open_session(app, request)

    def save_session(self, app: Flask, session: SessionMixin, response: Response) -> None:
        if session or session.modified or session.accessed:
            super().save_session(app, session, response)


def _refuse_zero_bytes() -> None:
    """Abort with 404 for an address with a zero byte, which no page sends and PostgreSQL cannot compare."""
    if "\0" in request.path:
        abort(404)


def _health() -> tuple[Response, int]:
    """Report whether answers can be stored: 503 if they cannot."""
    status, body = this_site().health.report()
    return jsonify(body), status


def _tell_errors(app: Flask) -> None:
    @app.errorhandler(Problem)
    def _problem(problem: Problem) -> Response:
        response = jsonify(problem.body)
        response.status_code = problem.status
        if problem.retry_after_s is not None:
            response.headers["Retry-After"] = str(problem.retry_after_s)
        return response

    @app.errorhandler(StoreError)
    def _store(error: StoreError) -> Response | tuple[str, int]:
        if request.path.startswith("/api/"):
            return _problem(not_stored())
        if request.blueprint == admin.name:
            return _page("The database cannot be used", _for_experimenters(error)), 503
        response = make_response(_participants_page("out_of_order"), 503)
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
        return response

    @app.errorhandler(HTTPException)
    def _http(error: HTTPException) -> Response | tuple[str, int]:
        status = error.code or 500
        if request.path.startswith("/api/"):
            rule = "the body has at most 256 KB" if status == 413 else str(error.description or error.name)
            return _problem(Problem(status, error.name, rule=rule))
        if request.blueprint in FOR_EXPERIMENTERS:
            heading, text = REFUSALS.get(status, (error.name, error.description))
            is_own = error.description != type(error).description
            words = str(error.description if is_own else text)
            return _page(heading, words, back=url_for("admin.show")), status
        return _participants_page("not_here" if status == 404 else "error"), status


def _moment(stored: str) -> Markup:
    """Return a stored time in UTC for the dashboard, until ``times.js`` converts it to the browser's time zone."""
    return Markup('<time datetime="{}">{} UTC</time>').format(stored, stored[:16].replace("T", " "))


def _page(heading: str, text: str, **speaks: Any) -> str:
    return render_template("problem.html", heading=heading, text=text, **speaks)


def _participants_page(key: str) -> str:
    """Return an error page for participants in the language of the study whose address they opened."""
    speaks = speaking(this_site().services.get(request.path.split("/")[1]))
    words = speaks["words"]
    again = None if key == "not_here" else words["reload"]
    return _page(words.get(f"{key}_title", words.get(key)), words[f"{key}_text"], again=again, **speaks)


def _for_experimenters(error: StoreError) -> str:
    """Return the full text of an error for signed-in users, and a text without paths for others."""
    with suppress(StoreError):
        if signed_in():
            return str(error)
    return "No answers can be stored at the moment. The console of `wrods serve` says what to do."


SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def refuse_other_origins(app: Flask, settings: PeopleSettings) -> None:
    """Make an application refuse every write request from another site's page."""
    public = None if settings.public_url is None else "/".join(settings.public_url.split("/")[:3])
    known = frozenset(own_names()) | {name.lower() for name in settings.hosts}

    @app.before_request
    def _only_ours() -> None:
        origin = request.headers.get("Origin")
        if request.method in SAFE or origin is None or origin == public:
            return
        if origin == f"{request.scheme}://{request.host}" and is_known(request.host, known):
            return
        refusal = Problem(
            403,
            "the request came from another site",
            rule="the origin is the study's own",
            mend=f"If {request.host!r:.80} is a name of this server, add it to hosts under [serve] in config.toml.",
        )
        if request.path.startswith("/api/"):
            raise refusal
        abort(403, f"{refusal}. {refusal.body['mend']}")


def is_known(host: str, names: Iterable[str]) -> bool:
    """Return whether a host, with or without a port, is an address or one of some names."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name in names
    return True


HOST = "127.0.0.1"
ENTRIES = 1_000_000
"""Sessions per minute: all readers of a local server come from one address."""


@dataclass(frozen=True)
class Links:
    """Links for visitors: the dashboard (once), the study's page, and that of a pilot.

    ``simulated`` is the pass with which simulated readers begin.
    """

    sessions: str
    page: str
    take_part: str
    api: str
    simulated: str


class LocalServer:
    """The study's own server on this computer, which runs inside the context."""

    def __init__(self, study: Study, store: Store) -> None:
        # entered by links only: no password is accepted
        settings = PeopleSettings(
            password_hash="", secret=secrets.token_bytes(32), entries_per_minute=ENTRIES
        )
        app = create_app({study.id: service_for(study, store)}, config=settings)
        self._site = app.extensions["wrods"]
        self._study = study.id
        self._server = StudyServer(app, listen(HOST, 0))
        self._thread = threading.Thread(target=self._server.run, name="wrods-server", daemon=True)

    @property
    def links(self) -> Links:
        """Links to this server; the one to the dashboard works for one visit."""
        base = f"http://{HOST}:{self._server.port}"
        return Links(
            sessions=f"{base}/admin/enter/{self._site.make_link()}",
            page=f"{base}/{self._study}/",
            take_part=f"{base}/{self._study}/?pilot={self._site.passes.make(self._study, 'pilot')}",
            api=f"{base}/api/{self._study}",
            simulated=self._site.passes.make(self._study, "simulated"),
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self._thread.join(timeout=5)
        self._site.cleaning.close()
