"""Whether a study takes participants: open, paused or closed, as the audit last says; no table of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy import Connection, select

from experiment.store.tables import audit

CollectionState = Literal["open", "paused", "closed"]
_ACTIONS: Mapping[CollectionState, str] = {
    state: f"collection {state}" for state in get_args(CollectionState)
}


@dataclass(frozen=True)
class Collection:
    """How a study stands."""

    state: CollectionState
    since: str | None = None
    by: str | None = None
    reason: str = ""


def collection_of(connection: Connection, study: str) -> Collection:
    """Return how a study stands: open unless somebody paused or closed it."""
    last = connection.execute(
        select(audit.c.action, audit.c.at, audit.c.actor, audit.c.detail)
        .where(audit.c.study == study, audit.c.action.in_(_ACTIONS.values()))
        .order_by(audit.c.audit_id.desc())
        .limit(1)
    ).first()
    if last is None:
        return Collection("open")
    state = next(state for state, action in _ACTIONS.items() if action == last.action)
    return Collection(state, last.at, last.actor, str((last.detail or {}).get("reason", "")))


def set_collection(
    connection: Connection, study: str, state: CollectionState, actor: str, reason: str = ""
) -> bool:
    """Open, pause or close a study, and say whether that changed anything."""
    from experiment.store.records import add_audit

    if collection_of(connection, study).state == state:
        return False
    add_audit(connection, actor, _ACTIONS[state], study=study, detail={"reason": reason} if reason else None)
    return True
