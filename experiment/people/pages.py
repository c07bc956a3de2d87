"""The pages that participants open, and the static files of all pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flask import (
    Blueprint,
    Response,
    abort,
    redirect,
    render_template,
    request,
    send_file,
    send_from_directory,
    url_for,
)
from werkzeug.wrappers import Response as AnyResponse

from experiment.bundle import bundle_folder
from experiment.languages import pack_for
from experiment.media import SUFFIXES
from experiment.people.dashboard.authentication import signed_in
from experiment.people.lab.settings import this_lab
from experiment.people.recruitment.admission import (
    INVITATION,
    RESUME,
    EntryRefusal,
    link_refusal,
    parameters_of_links,
    person_refusal,
    platform_of,
)
from experiment.people.recruitment.return_links import ABSENT, Signed, check_link, return_fields
from experiment.people.server_state import service_of, this_site
from experiment.people.service import StudyService
from stimuli.errors import UserError

pages = Blueprint("pages", __name__)
ASSETS = Path(__file__).parent / "assets"
LONGEST_ID = 128
LONGEST_PASS = 1000
LONGEST_STATION = 40


def digest(file: Path) -> str:
    """Return a short hash of a file's current contents, for addresses that may be cached for long."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else "none"


def bundle_version() -> str:
    """Return the version of the built front end, ``none`` if it is not built."""
    try:
        folder = bundle_folder()
    except UserError:
        return "none"
    return digest(folder / "wrods.js")[:6] + digest(folder / "wrods.css")[:6]


def script_json(value: object) -> str:
    """Return JSON for a ``<script>`` block, in which nothing can close the block."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


SHOWN_WITH = {"preview": "consent", "again": "debrief"}
"""The text of the study that people read who cannot begin yet, or any more."""


def speaking(service: StudyService | None = None) -> dict[str, Any]:
    """Return language, direction and texts for participants: of a study, or else of the first one served."""
    known = service or next(iter(this_site().services.values()), None)
    pack = known.pack if known else pack_for("en")
    return {"language": known.language if known else "en", "direction": pack.direction, "words": pack.texts}


@pages.get("/")
def index() -> AnyResponse | str:
    """Redirect to the study, or list the studies if there are several."""
    services = list(this_site().services.values())
    if len(services) == 1:
        address = url_for("pages.participant", study=services[0].study)
        query = request.query_string.decode("ascii", "ignore")
        return redirect(f"{address}?{query}" if query else address)
    return render_template("studies.html", services=services, **speaking())


@pages.get("/<study>/")
def participant(study: str) -> str | tuple[str, int]:
    """Show a study's page to a participant, or explain why they cannot begin."""
    service = service_of(study)
    signed = _signed(service)
    config = _config(service, signed)
    refusal = None
    if config["mode"] != "pilot" and RESUME not in config["platform"]:
        refusal = _refusal(service, config["platform"], signed)
    if refusal is not None:
        assert service.recruitment is not None and service.recruitment.platform is not None
        shown_kind = SHOWN_WITH.get(refusal.kind)
        screen = service.screens().get(shown_kind) if shown_kind is not None else None
        page = render_template(
            "arrival.html",
            title=service.shown_title,
            **speaking(service),
            platform=service.recruitment.platform.name,
            refusal=refusal,
            screen=None if screen is None else screen["html"],
        )
        return page, 403 if shown_kind is None else 200
    return render_template(
        "participant.html",
        title=service.shown_title,
        **speaking(service),
        config=script_json(config),
        version=bundle_version(),
    )


def _signed(service: StudyService) -> Signed:
    """Return the result of checking the signature of a participant's link."""
    platform = platform_of(service)
    if platform is None or platform.signing is None:
        return ABSENT
    names = (*platform.parameters, *platform.signing.parameters)
    given = {name: value for name in names if (value := request.args.get(name, ""))}
    site = this_site()
    host = urlsplit(site.settings.public_url or request.host_url).hostname or ""
    return check_link(service, given, host=host, keys=site.key_sets)


def _refusal(service: StudyService, given: dict[str, str], signed: Signed) -> EntryRefusal | None:
    refusal = link_refusal(service, given, standing=signed.standing)
    if refusal is not None or platform_of(service) is None:
        return refusal
    with service.store.read() as connection:
        return person_refusal(connection, service, given, is_signed=signed.standing == "valid")


def _config(service: StudyService, signed: Signed) -> dict[str, Any]:
    site = this_site()
    number = _from_link("participant") if service.ask_participant else None
    platform = {name: value for name in parameters_of_links(service) if (value := _from_link(name))}
    platform |= signed.parameters
    resume = request.args.get(RESUME, "")
    if resume:
        platform = {RESUME: resume[:LONGEST_PASS]}
    given, made = request.args.get("pilot", ""), None
    known = site.passes.read(given, service.study) if given else None
    if known is not None and known.kind == "pilot":
        made = given
    elif given and signed_in("pilot"):
        made = site.passes.make(service.study, "pilot")
    is_pilot = service.is_pilot or made is not None
    if signed.standing == "valid" and not is_pilot:
        made = site.passes.make(service.study, "arrival", **signed.parameters)
    is_known = number is not None or bool(resume)
    return {
        "api": url_for("pages.index").rstrip("/") + f"/api/{service.study}",
        "media": url_for("pages.index").rstrip("/") + f"/{service.study}/media/",
        "study": service.study,
        "title": service.shown_title,
        "language": service.language,
        "direction": service.pack.direction,
        "messages": service.pack.texts,
        "mode": "pilot" if is_pilot else "session",
        "participant": number,
        "platform": platform,
        "pass": made,
        "ask_participant": service.ask_participant and not is_known and not is_pilot,
        "any_browser": not is_pilot and (signed.standing == "valid" or INVITATION in platform),
        "finish_wait_ms": service.finish_wait_ms,
        "if_left": return_fields(
            service, {"session_id": "", "state": "declined", "is_pilot": is_pilot}, platform
        ),
        "stations": this_lab().has_stations,
        "station_help": _station_help(),
        "station": request.args.get("station", "").strip()[:LONGEST_STATION] or None,
        "preview_plan": None,
        "plugins": url_for("pages.index").rstrip("/") + "/own/",
    }


def _from_link(name: str) -> str | None:
    """Return a parameter of the address; values that no platform sends, such as control characters, are ignored."""
    value = request.args.get(name, "")[:LONGEST_ID]
    return value if value and value.isprintable() else None


def _station_help() -> str | None:
    lab = this_lab()
    if not lab.has_stations:
        return None
    return url_for("lab.kiosk" if lab.authority is None else "lab.certificate")


@pages.get("/<study>/media/<name>")
def media(study: str, name: str) -> Response:
    """Send a picture, sound or film that the study's items show, by its hash."""
    return send_media(service_of(study).media, name)


def send_media(files: Mapping[str, Path], name: str) -> Response:
    """Send one of some files by the name under which pages load it."""
    if name not in files:
        abort(404)
    suffix = Path(name).suffix
    sent_as = next(types[suffix] for types in SUFFIXES.values() if suffix in types)
    return send_file(files[name].resolve(), mimetype=sent_as)


@pages.get("/static/<path:name>")
def bundle(name: str) -> Response:
    """Send a file of the built front end."""
    try:
        folder = bundle_folder()
    except UserError:
        abort(404)
    return send_from_directory(folder, name)


@pages.get("/own/<digest>.js")
def plugin(digest: str) -> Response:
    """Send the plugin of a lab's own trial type, as it was when the server started."""
    for service in this_site().services.values():
        if digest in service.plugins:
            return script(service.plugins[digest])
    abort(404)


def script(text: str) -> Response:
    """Return a response with a module of JavaScript."""
    return Response(text, mimetype="text/javascript")


@pages.get("/assets/<path:name>")
def asset(name: str) -> Response:
    """Send a stylesheet or script of the server's own pages."""
    return send_from_directory(ASSETS, name)


@pages.get("/favicon.ico")
def icon() -> Response:
    """Send the icon."""
    return send_from_directory(ASSETS, "icon.svg", mimetype="image/svg+xml")


@pages.get("/robots.txt")
def robots() -> Response:
    """Exclude search engines: a study is for invited participants."""
    return Response("User-agent: *\nDisallow: /\n", mimetype="text/plain")
