"""Says in words who may take part, what becomes of a session that is left, and what is excluded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiment.languages import find_pack
from experiment.study import Study

AFTER_LEAVING = {
    "resume": "continue at the next trial",
    "restart": "start over from the beginning",
    "block": "cannot return once they have seen a trial",
}


def eligible_in_words(study: Study) -> list[str]:
    """Return what a person must meet to take part, one requirement each; empty where the study asks nothing."""
    asked: Mapping[str, Any] = study.get("participants", "eligible", default={})
    found = []
    if "first_language" in asked:
        codes = asked["first_language"]
        named = [_language(code) for code in ([codes] if isinstance(codes, str) else codes)]
        found.append(f"first language: {' or '.join(named)}")
    if "age" in asked:
        low, high = asked["age"]
        found.append(f"age: {low} to {high} years")
    if "device" in asked:
        found.append("device: a computer, no phone or tablet")
    if "browsers" in asked:
        found.append(f"browser: {', '.join(name.capitalize() for name in asked['browsers'])}")
    if "screen" in asked:
        width, height = asked["screen"].split("x")
        found.append(f"window: at least {width} × {height} pixels")
    if "refresh_rate" in asked:
        low, high = asked["refresh_rate"]
        found.append(f"refresh rate: {low} to {high} Hz")
    for given in asked.get("questions", {}).values():
        accepted = given["accept"] if isinstance(given["accept"], list) else [given["accept"]]
        found.append(f"question: “{given['ask']}” Accepted: {', '.join(map(str, accepted))}")
    return found


def _language(code: str) -> str:
    pack = find_pack(code)
    return f"{pack.english_name} ({code})" if pack else code


def interruption_in_words(study: Study) -> str:
    """Return what becomes of a session that is left before its end."""
    given: Mapping[str, Any] = study.get("participants", "if_interrupted", default={})
    then = AFTER_LEAVING[given.get("then", "resume")]
    within = f" within {given['within']}" if "within" in given else ""
    return f"Participants who leave before the end {then}{within}."
