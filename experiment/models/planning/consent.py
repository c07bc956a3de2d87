"""People's answers leave this machine only where the study says so, and the text to which each person agreed."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources

from experiment.models.planning.session import Person
from experiment.models.settings import ModelSettings
from experiment.study import Study
from stimuli.errors import UserError


@cache
def _words() -> dict[str, list[str]]:
    text = resources.files(__package__).joinpath("consent.json").read_text("utf-8")
    return dict(json.loads(text))


def require_permission(study: Study, settings: ModelSettings) -> None:
    """Check that a study lets people's answers be sent to a model on another machine."""
    if study.get("participants", "privacy", "send_answers_to_apis", default=False) is not True:
        raise UserError(
            f"{study.place('participants', 'privacy', 'send_answers_to_apis')}: {_sends(settings)}; this study does not allow that",
            mend="Use a model on this machine (hf:…, or a server at 127.0.0.1). Allow it only if the consent text says so.",
        )


def _sends(settings: ModelSettings) -> str:
    return f"{settings.use} is on another machine, and a teacher-forced session sends it what people answered"


def require_consent(study: Study, settings: ModelSettings, person: Person) -> None:
    """Check that a person's answers may be sent to a model on another machine."""
    require_permission(study, settings)
    place, sends = study.place("participants", "privacy", "send_answers_to_apis"), _sends(settings)
    agreed = [screen for screen in person.plan["screens"] if screen["kind"] == "consent"]
    now = {study.text(screen["consent"]).version for screen in study.get("procedure") if "consent" in screen}
    if not agreed or {screen["version"] for screen in agreed} != now:
        which = f"version {agreed[-1]['version']} of the consent text" if agreed else "no consent text"
        raise UserError(
            f"{place}: {sends}; session {person.session_id} agreed to {which}, not to the one that the study has now",
            mend="Use a model on this machine for these people's answers.",
        )
    stems = _words().get(study.language.split("-")[0])
    text = "\n".join(screen["text"] for screen in agreed)
    if stems and not any(re.search(rf"(?<!\w){re.escape(stem)}", text, _case(stem)) for stem in stems):
        raise UserError(
            f"{place}: {sends}; the consent text (version {agreed[-1]['version']}) does not say so",
            mend="Say in the consent text that answers are given to language models of other companies, before people take "
            "part. Answers of people who agreed to another text stay here.",
        )


def _case(stem: str) -> int:
    return 0 if stem.isupper() else re.IGNORECASE
