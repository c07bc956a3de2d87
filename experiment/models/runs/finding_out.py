"""Finds out what a model's server can give before anything else is asked of it, pays for that, and stops what would be in vain."""

from __future__ import annotations

from typing import Any

from experiment.models.api import Capabilities
from experiment.models.api.retrying import RunStopped
from experiment.models.runs.parts import Part, count_questions
from experiment.study import Study


def find_out(part: Part, study: Study) -> None:
    """Have a model's server asked what it can give.

    Raises
    ------
    RunStopped
        There is no server or no money; a server of one's own serves another model than it did; or the study's sessions would
        hold nothing of the model.
    """
    engine: Any = part.asking.engine
    try:
        found = engine.probe()
    finally:
        count_questions(part)
        part.recording.patiently(part.purse.rest)
    if isinstance(found, Capabilities) and part.recording.served is not None:
        part.recording.served.require(found.resolved_model)
    is_forced = study.get("models", "context") == "teacher_forced" and isinstance(found, Capabilities)
    if is_forced and (gaps := found.gaps(["likelihoods"])):
        raise RunStopped(
            gaps[0].removesuffix("."),
            mend="Name a model whose server tells them (vLLM with label_scoring: whole), or hf: on this machine.",
        )
