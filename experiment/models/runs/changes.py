"""Stored sessions of a model whose settings, revision, template or prompt have changed since.

A session's name depends on all of its texts and on the model. If the plan has a different session in the place of a stored one,
the stored answers belong to another experiment: the run stops and reports what differs and how many trials are affected.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, func, select

from experiment.models.planning import ModelSession
from experiment.models.runs.remaining_work import Survey
from experiment.store import Store, records
from experiment.store.queries import EXCLUDED, RESTORED, excluded_sessions, exclusions
from experiment.store.tables import flags, sessions, trials
from stimuli.errors import UserError

Place = tuple[int | None, int | None, int | None, str | None]
"""List, prompt variant, replicate, and the followed session."""
SHOWN = 12
REASON = "superseded by sessions under other settings"
BY = "wrods run"
BESIDE = "beside"
"""Flag of sessions that stay in the tables together with sessions under other settings."""


@dataclass
class ReplacedSessions:
    """Stored sessions whose places in the plan now have other sessions."""

    session_ids: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)  # place of each of them
    trials: int = 0  # their stored trials
    lines: list[str] = field(default_factory=list)  # what differs, such as `model.revision: "a" → "b"`
    others: int = 0  # other stored sessions that are no longer planned, in places that the plan lacks


def changed_sessions(
    store: Store,
    whose: tuple[str, int, str],
    surveyed: Survey,
    about: Mapping[str, Any],
    planned: Sequence[ModelSession],
) -> ReplacedSessions:
    """Compare the stored sessions of a study, version and reader with the plan; ``about`` describes the model in planned ones."""
    study, version, reader = whose
    changed = ReplacedSessions()
    current_ids = set(surveyed.places.values())
    columns = (
        sessions.c.session_id, sessions.c.list_id, sessions.c.prompt_variant, sessions.c.replicate, sessions.c.yoked_to,
        sessions.c.client,
    )  # fmt: skip
    query = (
        select(*columns, func.count(trials.c.trial_index).label("n"))
        .join(trials, trials.c.session_id == sessions.c.session_id, isouter=True)
        .where(sessions.c.study == study, sessions.c.version == version, sessions.c.reader == reader)
        .where(sessions.c.session_id.not_in(excluded_sessions()))
        .where(sessions.c.session_id.not_in(select(flags.c.session_id).where(flags.c.kind == BESIDE)))
        .group_by(sessions.c.session_id)
    )
    first: tuple[str, dict[str, Any]] | None = None
    with store.read() as connection:
        for row in connection.execute(query):
            client = dict(row.client or {})
            if row.session_id in current_ids or "imported" in client:
                continue
            if bool(client.get("timed")) != bool(about.get("timed")):
                continue  # timed sessions are stored in addition to the others
            place = (row.list_id, row.prompt_variant, row.replicate, row.yoked_to)
            if place not in surveyed.places:
                changed.others += 1
                continue
            changed.session_ids.append(row.session_id)
            changed.places.append(place)
            changed.trials += int(row.n)
            first = first or (row.session_id, client)
        if first is not None:
            changed.lines = _lines(connection, first, about, surveyed, planned)
    return changed


def refuse(reader: str, changed: ReplacedSessions) -> UserError:
    """Return the error for a run whose stored sessions have other settings."""
    more = [f"… and {len(changed.lines) - SHOWN} more"] if len(changed.lines) > SHOWN else []
    lines = "".join(f"\n    {line}" for line in (*changed.lines[:SHOWN], *more))
    return UserError(
        f"{reader} has changed: {len(changed.session_ids)} stored sessions with {changed.trials} trials used other settings "
        f"and would be run again. What changed:{lines}",
        mend="Undo the change; or give the model another name in the study; or choose with --if-changed what happens to "
        "the earlier sessions: set_aside (flagged as excluded, with the reason) or keep_both (both are in the tables, "
        "told apart by session and run).",
        exit_code=1,
    )


@dataclass(frozen=True)
class SettledSessions:
    """Changes to stored sessions: those that count again, and those that no longer do."""

    restored: tuple[str, ...] = ()  # sessions that an earlier change had set aside and that are planned again
    set_aside: tuple[str, ...] = ()

    def told(self, reader: str) -> str | None:
        """Describe the changes in one line; None if there are none."""
        parts = [
            *(
                [f"{_many(self.restored)} made before the change that was taken back count again"]
                if self.restored
                else []
            ),
            *([f"{_many(self.set_aside)} under other settings are set aside"] if self.set_aside else []),
        ]
        return f"{reader}: {', and '.join(parts)}" if parts else None


def _many(session_ids: Sequence[str]) -> str:
    return f"{len(session_ids)} session{'s' if len(session_ids) != 1 else ''}"


def settle(
    store: Store,
    study: str,
    reader: str,
    changed: ReplacedSessions,
    planned: Mapping[Place, str],
    *,
    if_changed: str,
) -> SettledSessions:
    """Set aside or restore a changed model's sessions in one transaction, and return which; undoing a change restores them."""
    with store.read() as connection:
        marks = exclusions(connection, study)
    names = set(planned.values())
    back = {
        name for (name, trial, _), why in marks.items() if trial is None and why == REASON and name in names
    }
    is_taken_back = all(planned.get(place) in back for place in changed.places)
    if changed.session_ids and if_changed == "stop" and not is_taken_back:
        raise refuse(reader, changed)
    kind, reason = (
        (BESIDE, "kept together with sessions under other settings")
        if if_changed == "keep_both"
        else (EXCLUDED, REASON)
    )

    def flag(connection: Connection) -> None:
        for session_id in sorted(back):
            records.add_flag(connection, session_id, RESTORED, "planned again", BY)
        for session_id in changed.session_ids:
            records.add_flag(connection, session_id, kind, reason, BY)

    if back or changed.session_ids:
        store.write(flag).result()
    return SettledSessions(tuple(sorted(back)), tuple(changed.session_ids) if kind == EXCLUDED else ())


def _lines(
    connection: Connection, first: tuple[str, dict[str, Any]], about: Mapping[str, Any], survey_of_plan: Survey,
    planned: Sequence[ModelSession],
) -> list[str]:  # fmt: skip
    session_id, client = first
    names = ("model", "settings")
    before = _leaves({name: client.get(name) for name in names}) if client else {}
    after = _leaves({name: about.get(name) for name in names})
    lines = []
    for path in dict.fromkeys((*before, *after)) if before else ():
        if before.get(path) != after.get(path):
            lines.append(f"{path}: {before.get(path, 'not there')} → {after.get(path, 'not there')}")
    return lines or _said_otherwise(connection, session_id, survey_of_plan, planned)


def _said_otherwise(
    connection: Connection, session_id: str, survey_of_plan: Survey, planned: Sequence[ModelSession]
) -> list[str]:
    """Return lines on the differences between a stored session's trials and those planned in its place."""
    row = connection.execute(select(sessions).where(sessions.c.session_id == session_id)).mappings().one()
    place = (row["list_id"], row["prompt_variant"], row["replicate"], row["yoked_to"])
    now = next(
        (session for session in planned if session.session_id == survey_of_plan.places.get(place)), None
    )
    if now is None or not row["plan"]:
        return ["what the sessions say"]
    old = [trial for screen in row["plan"]["screens"] for trial in screen.get("trials", ())]
    new = [trial for screen in now.plan["screens"] for trial in screen.get("trials", ())]
    lines = []
    if len(old) != len(new):
        lines.append(f"trials a session: {len(old)} → {len(new)}")
    if [trial["item_id"] for trial in old] != [trial["item_id"] for trial in new]:
        lines.append("which items a session shows, or their order")
    for name in ("shown", "answer", "exemplars", "steps"):
        count = sum(a.get(name) != b.get(name) for a, b in zip(old, new, strict=False))
        if count:
            lines.append(f"{name} of {count} trials")
    return lines or ["the wording of the prompts (this version of wrods words them otherwise)"]


def _leaves(value: object, path: str = "") -> dict[str, str]:
    if isinstance(value, Mapping) and value:
        return {
            key: leaf
            for name, part in value.items()
            for key, leaf in _leaves(part, f"{path}.{name}" if path else str(name)).items()
        }
    return {path: json.dumps(value, ensure_ascii=False)}
