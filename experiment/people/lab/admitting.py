"""What a lab asks before a session begins or goes on: a number of the study's pattern, and the experimenter's PIN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import request

from experiment.languages import pack_for
from experiment.people.connections import caller_of
from experiment.people.lab.numbers import example, written
from experiment.people.lab.settings import this_lab
from experiment.people.problems import Problem
from experiment.people.service import StudyService


def admit(service: StudyService, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request for a session with its number as the study writes it.

    ``may_go_on`` in it says whether an unfinished session of that number may be continued: with the experimenter's PIN,
    or by anyone where none is set.

    Raises
    ------
    Problem
        The number does not fit the study's pattern, or too many PINs were tried.
    """
    admitted = dict(body)
    pin = admitted.pop("pin", None)
    check_tries(pin)
    admitted["may_go_on"] = this_lab().accepts(pin)
    if body.get("participant") and not body.get("simulated"):
        admitted["participant"] = number_of(service, body["participant"])
    return admitted


def number_of(service: StudyService, typed: str) -> str:
    """Return a typed number as the study writes it.

    Raises
    ------
    Problem
        400 where it does not fit the pattern.
    """
    number = written(typed, service.number_pattern)
    if number is None:
        pattern = example(service.number_pattern or "#")
        said = pack_for(service.language).texts["number_pattern"].replace("{example}", pattern)
        raise Problem(400, said, rule=f"a number such as {pattern}", state="number")
    return number


def check_tries(pin: str | None) -> None:
    """Count a try at the PIN.

    Raises
    ------
    Problem
        429 after too many from one station.
    """
    lab = this_lab()
    if lab.pin is None or pin is None:
        return
    wait = lab.pin_tries.wait(caller_of(request.remote_addr or ""))
    if wait:
        raise Problem(429, "too many PINs were tried here", rule="ten a minute", retry_after_s=int(wait) + 1)


def check_pin(pin: str | None) -> None:
    """Let only an experimenter pass.

    Raises
    ------
    Problem
        403 where the PIN is missing or wrong.
    """
    if not this_lab().accepts(pin):
        raise pin_needed()


def pin_needed() -> Problem:
    """Return the refusal of what needs the experimenter's PIN."""
    rule = "continuing or ending a session takes the experimenter's PIN"
    return Problem(403, "the PIN is not right", rule=rule, state="pin")
