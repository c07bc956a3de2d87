"""What a station's start screen asks the server: how it stands with a number, and to end what was left."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import asdict
from typing import Any

from flask import Blueprint, Response, jsonify, request

from experiment.people.api import PATIENCE, only_our_pages
from experiment.people.bodies import read_body
from experiment.people.lab import unfinished
from experiment.people.lab.admitting import is_experimenter, number_of, pin_needed
from experiment.people.problems import Problem
from experiment.people.service import StudyService
from experiment.people.site import this_site
from experiment.store import StoreError

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
    """Say how it stands with a number, or what is unfinished at a station."""
    service = _service(study)
    body = read_body(request, "station_start")
    told: dict[str, Any] = {"participant": None, "state": None}
    typed, station = body.get("participant"), body.get("station")
    with service.store.read() as connection:
        if typed:
            number = number_of(service, typed)
            state, found = unfinished.of_number(connection, study, number)
            told |= {"participant": number, "state": state}
        else:
            found = unfinished.at_station(connection, study, station) if station else []
    return jsonify(told | {"unfinished": [asdict(one) for one in found]})


@stations.post("/end")
def end(study: str) -> Response:
    """End a participant's unfinished session with a reason."""
    service = _service(study)
    body: Mapping[str, Any] = read_body(request, "station_end")
    if not is_experimenter(body.get("pin")):
        raise pin_needed()
    number, reason = number_of(service, body["participant"]), body["reason"].strip()
    try:
        told, departed = service.store.write(
            lambda connection: unfinished.end(connection, study, number, reason, body.get("station"))
        ).result(timeout=this_site().settings.patience_s)
    except (NotInTime, StoreError) as error:
        raise Problem(
            503, PATIENCE, rule="an end is confirmed only when it is on disk", retry_after_s=2
        ) from error
    if told == "none":
        raise Problem(404, f"{number} has no session here", rule="the number of an unfinished session")
    if departed is not None:
        this_site().let_go(service, departed)
    return jsonify(ended=True)
