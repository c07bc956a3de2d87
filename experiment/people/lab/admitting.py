"""What a lab asks before a session begins or goes on: a number of the study's pattern, and the experimenter's PIN."""

from __future__ import annotations

from flask import request

from experiment.people.connections import caller_of
from experiment.people.lab.numbers import example, written
from experiment.people.lab.settings import this_lab
from experiment.people.problems import Problem
from experiment.people.service import StudyService


def typed_number(service: StudyService, typed: str | None) -> str | None:
    """Return the number of somebody who is to take part, as the study writes it; None where the study gives numbers itself.

    Raises
    ------
    Problem
        400 where a laboratory's number is missing or does not fit the pattern, or where another study is given one.
    """
    if service.ask_participant:
        if typed is None:
            said = service.pack.texts["participant_missing"]
            raise Problem(400, said, rule="sessions in a laboratory have a typed number", state="number")
        return number_of(service, typed)
    if typed is not None:
        raise Problem(
            400,
            f"participant is {typed!r}, but numbers in this study are given by the server",
            rule="only a study with participants.recruit: lab takes participant numbers",
            mend="Leave participant out.",
        )
    return None


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
        said = service.pack.fill("number_pattern", example=pattern)
        raise Problem(400, said, rule=f"a number such as {pattern}", state="number")
    return number


def is_experimenter(pin: str | None) -> bool:
    """Return whether a PIN is the experimenter's, counting the try.

    Raises
    ------
    Problem
        429 after too many from one station.
    """
    lab = this_lab()
    if pin is None:
        return False
    wait = lab.pin_tries.wait(caller_of(request.remote_addr or ""))
    if wait:
        raise Problem(429, "too many PINs were tried here", rule="ten a minute", retry_after_s=int(wait) + 1)
    return lab.accepts(pin)


def pin_needed() -> Problem:
    """Return the refusal of what needs the experimenter's PIN."""
    rule = "continuing or ending a session takes the experimenter's PIN"
    return Problem(403, "the PIN is not right", rule=rule, state="pin")
