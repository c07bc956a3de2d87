"""Finds out what a model's server can give before anything else is asked of it, pays for that, and stops what would be in vain."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from experiment.models.api import Capabilities
from experiment.models.api.retrying import RunStopped
from experiment.models.money import Till
from experiment.models.runs.parts import Part
from experiment.store.exclusions import excluded_sessions
from experiment.store.tables import calls, sessions
from experiment.study import Study


def find_out(part: Part, study: Study, *, if_changed: str = "stop") -> None:
    """Have a model's server asked what it can give.

    Parameters
    ----------
    if_changed : str
        With ``keep_both`` a server of one's own may report another model than it did.

    Raises
    ------
    RunStopped
        There is no server or no money; a server of one's own serves another model than it did; or the study's sessions would
        hold nothing of the model.
    """
    engine: Any = part.asking.engine
    paying = part.asking.paying
    till = Till(paying.price, paying.purse, paying.tokens) if paying.is_needed else None
    if hasattr(engine, "till"):
        engine.till = till
    try:
        found = engine.probe()
    finally:
        part.outcome.cost_usd += till.spent if till is not None else 0.0
        part.recording.patiently(part.purse.rest)
    if isinstance(found, Capabilities) and engine.server.is_own and if_changed != "keep_both":
        _require_same(part, study, found)
    is_forced = study.get("models", "context") == "teacher_forced" and isinstance(found, Capabilities)
    if is_forced and (gaps := found.gaps(["likelihoods"])):
        raise RunStopped(
            gaps[0].removesuffix("."),
            mend="Name a model whose server tells them (vLLM with label_scoring: whole), or hf: on this machine.",
        )


def _require_same(part: Part, study: Study, found: Capabilities) -> None:
    """Stop where a server reports another model than the one whose answers are stored; its address may be another."""
    reader = part.outcome.reader
    query = (
        select(calls.c.resolved_model)
        .join(sessions, sessions.c.session_id == calls.c.session_id)
        .where(sessions.c.study == study.id, sessions.c.reader == reader)
        .where(sessions.c.session_id.not_in(excluded_sessions()))
        .where(calls.c.resolved_model.is_not(None), calls.c.purpose != "judge")
        .distinct()
    )
    has_some = part.asking.found.stored > 0
    before = part.recording.read(lambda connection: list(connection.scalars(query))) if has_some else []
    if before and found.resolved_model is not None and found.resolved_model not in before:
        raise RunStopped(
            f"{reader} is not what it was: its server at {found.base_url} reports {found.resolved_model}, and the stored answers are "
            f"of {', '.join(sorted(before))}",
            mend="Serve that model again; or give this one another name in the study; or go on in the same sessions with "
            "--if-changed keep_both: the table of calls says which model answered.",
        )
