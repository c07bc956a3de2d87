"""Checks a study: is its design the one that was frozen, and does every session's hash chain hold."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select

from experiment.custody.freezing import changes_since, read_freeze
from experiment.store import Store
from experiment.store.chain import Broken, chained_sessions, verify, withdrawn_sessions
from experiment.store.tables import chain, sessions
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.files import replace_file


@dataclass
class Findings:
    """What a verification found."""

    hash: str | None
    frozen_at: str | None
    changes: list[str]
    sessions: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    broken: list[tuple[str, Broken]] = field(default_factory=list)
    before_freeze: int = 0
    other_design: int = 0
    heads: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Say whether a freeze shows that the design is what it was, and the chains that no row was changed."""
        return self.hash is not None and not self.changes and not self.broken


def verify_study(
    study: Study, store: Store | None, *, known_heads: Mapping[str, Any] | None = None
) -> Findings:
    """Compare a study with its freeze and check every chain, session by session."""
    frozen = read_freeze(study.folder)
    if frozen is None:
        if store is None:
            raise UserError(
                f"{study.id} was never frozen", mend=f"Freeze it with: wrods freeze {study.folder}"
            )
        found = Findings(None, None, [])
    else:
        found = Findings(frozen.hash, frozen.frozen_at, changes_since(study, frozen))
    if store is None:
        return found
    with store.read() as connection:
        gone = set(withdrawn_sessions(connection, study.id))
        known = {
            row.session_id: row
            for row in connection.execute(
                select(
                    sessions.c.session_id,
                    sessions.c.reader,
                    sessions.c.reader_kind,
                    sessions.c.is_pilot,
                    sessions.c.created_at,
                    sessions.c.design_hash,
                ).where(sessions.c.study == study.id)
            )
        }
        for session_id in chained_sessions(connection, study.id):
            row = known.get(session_id)
            if row is None and not _has_chain(connection, session_id):
                continue  # a model's session that went with a withdrawn participant
            told = verify(connection, session_id)
            found.rows += told.rows
            if told.head is not None:
                found.heads[session_id] = {"place": told.rows, "link": told.head}
            name = session_id if row is None else f"{row.reader} ({session_id})"
            if told.broken is not None:
                found.broken.append((name, told.broken))
            if row is None:
                found.sessions["withdrawn"] += session_id in gone
                continue
            found.sessions[f"{row.reader_kind} pilot" if row.is_pilot else row.reader_kind] += 1
            if frozen is not None and not row.is_pilot and row.reader_kind == "human":
                found.before_freeze += row.created_at < frozen.frozen_at
                found.other_design += row.design_hash != frozen.design_hash
        found.broken += _lost_heads(connection, known_heads or {})
    return found


def read_heads(file: Path) -> dict[str, Any]:
    """Return the last links that were noted in a file; none where there is no file yet."""
    if not file.exists():
        return {}
    try:
        heads: dict[str, Any] = json.loads(file.read_text("utf-8"))["heads"]
        return {session: {"place": int(h["place"]), "link": str(h["link"])} for session, h in heads.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} holds no links of sessions", mend="Name the file that --heads wrote."
        ) from error


def write_heads(file: Path, found: Findings) -> None:
    """Note the last link of every session in a file, to be kept where nobody who has the database can change it."""
    replace_file(
        file, json.dumps({"wrods_heads": 1, "freeze": found.hash, "heads": found.heads}, indent=1) + "\n"
    )


def _has_chain(connection: Connection, session_id: str) -> bool:
    return (
        connection.scalar(select(chain.c.place).where(chain.c.session_id == session_id).limit(1)) is not None
    )


def _lost_heads(connection: Connection, known: Mapping[str, Any]) -> list[tuple[str, Broken]]:
    lost = []
    for session_id, head in known.items():
        there = connection.scalar(
            select(chain.c.link).where(chain.c.session_id == session_id, chain.c.place == head["place"])
        )
        if there != head["link"]:
            fault = (
                "it is another one than was noted earlier" if there else "it was noted earlier and is gone"
            )
            lost.append((session_id, Broken(head["place"], f"link {head['place']}", fault)))
    return lost
