"""Versions of a study's design, so that the design of collected data never changes unnoticed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, func, select, update

from experiment.store.database import lock_for_change
from experiment.store.session_activity import stamp
from experiment.store.tables import sessions, versions
from stimuli.errors import UserError

SHOWN_DIFFERENCES = 12


class DesignChanged(UserError):
    """The design differs from the one under which data were collected."""

    def __init__(self, study: str, version: int, held: int, lines: Sequence[str]) -> None:
        self.study, self.version, self.held, self.lines = study, version, held, tuple(lines)
        more = [f"… and {len(lines) - SHOWN_DIFFERENCES} more"] if len(lines) > SHOWN_DIFFERENCES else []
        super().__init__(
            f"the design of {study} changed after {held} session{'s' if held != 1 else ''}: "
            + "; ".join((*lines[:SHOWN_DIFFERENCES], *more)),
            mend="Take the change back, or start a new version of the study with --new-version.",
        )


def _leaves(value: object, path: str = "") -> dict[str, str]:
    """Return a JSON value as one text per leaf, with dotted paths."""
    if isinstance(value, dict) and value:
        return {
            k: v
            for name, part in value.items()
            for k, v in _leaves(part, f"{path}.{name}" if path else name).items()
        }
    if isinstance(value, list) and value:
        return {
            k: v for place, part in enumerate(value) for k, v in _leaves(part, f"{path}[{place}]").items()
        }
    return {path: json.dumps(value, ensure_ascii=False)}


def differences(before: str, after: str) -> list[str]:
    """Return lines such as ``design.lists: 4 → 2`` on the differences between two designs (JSON texts)."""
    old, new = _leaves(json.loads(before)), _leaves(json.loads(after))
    lines = []
    for path in dict.fromkeys((*old, *new)):
        if path not in new:
            lines.append(f"{path}: {old[path]} is gone")
        elif path not in old:
            lines.append(f"{path}: {new[path]} is new")
        elif old[path] != new[path]:
            lines.append(f"{path}: {old[path]} → {new[path]}")
    return lines


def ensure_version(
    connection: Connection, study: str, design_hash: str, design: str, *, new_version: bool = False
) -> int:
    """Return the version number of a design, recording the design the first time it is used.

    A changed design replaces the last version only while no session was held under it; after pilots and simulated readers alone
    it becomes the next version, so that a version's sessions all have one design.
    """
    lock_for_change(connection)
    known = connection.execute(
        select(versions).where(versions.c.study == study).order_by(versions.c.version.desc())
    ).all()
    for row in known:
        if row.design_hash == design_hash:
            return int(row.version)
    moment = stamp(datetime.now(UTC))
    values = {"design_hash": design_hash, "design": design, "created_at": moment}
    latest = known[0] if known else None
    if latest is not None:
        held = _sessions_held(connection, study, int(latest.version))
        if held.binding and not new_version:
            raise DesignChanged(study, int(latest.version), held.binding, differences(latest.design, design))
        if not held.all and not new_version:
            connection.execute(
                update(versions)
                .where(versions.c.study == study, versions.c.version == latest.version)
                .values(**values)
            )
            return int(latest.version)
    number = 1 if latest is None else int(latest.version) + 1
    connection.execute(versions.insert().values(study=study, version=number, **values))
    return number


@dataclass(frozen=True)
class _Held:
    """Number of sessions of a version, and of those that bind its design."""

    all: int
    binding: int


def _sessions_held(connection: Connection, study: str, version: int) -> _Held:
    rows = connection.execute(
        select(sessions.c.reader_kind, sessions.c.is_pilot, func.count())
        .where(sessions.c.study == study, sessions.c.version == version)
        .group_by(sessions.c.reader_kind, sessions.c.is_pilot)
    ).all()
    binding = sum(int(n) for kind, is_pilot, n in rows if kind != "simulated" and not is_pilot)
    return _Held(sum(int(n) for *_, n in rows), binding)
