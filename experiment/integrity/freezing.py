"""Freezing of a study: design, items, analysis plan and sampling plan under one hash, before data collection.

``freeze.json`` contains everything that was frozen, so that later differences can be reported setting by setting; the
registration next to it describes the same in words. Serving, running and building refuse a study that differs from its freeze.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, select

from experiment.integrity.build_provenance import differences, shortened
from experiment.store import Store, records
from experiment.store.chain import Broken, chained_sessions, verify, withdrawn_sessions
from experiment.store.tables import audit, chain, sessions
from experiment.study import Study
from experiment.version import installed_version
from stimuli.errors import UserError
from stimuli.files import replace_file

FILE = "freeze.json"
DOCUMENT = "registration.md"
PARTICIPANTS = ("wanted", "eligible", "if_interrupted")


@dataclass(frozen=True)
class Frozen:
    """A stored freeze: its hash, time, frozen contents, and the freezes that it replaced."""

    hash: str
    design_hash: str
    frozen_at: str
    locked: Mapping[str, Any]
    sessions_before: int
    earlier: tuple[Mapping[str, Any], ...]


def locked_part(study: Study) -> dict[str, Any]:
    """Return the contents that a freeze covers: design with hashes of texts and items, models, sampling and analysis plan."""
    people: Mapping[str, Any] = study.get("participants", default={})
    locked = {
        "design": study.design,
        "participants": {name: people[name] for name in PARTICIPANTS if name in people},
        "models": study.get("models", default={}),
        "analysis": study.get("analysis", default={}),
    }
    plain: dict[str, Any] = json.loads(json.dumps(locked, ensure_ascii=False))
    return plain


def hash_of(locked: Mapping[str, Any]) -> str:
    """Return the SHA-256 of frozen contents as canonical JSON."""
    text = json.dumps(locked, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read_freeze(folder: Path) -> Frozen | None:
    """Return a study's freeze, or None."""
    file = folder / FILE
    if not file.exists():
        return None
    try:
        given = json.loads(file.read_text("utf-8"))
        same = ("hash", "design_hash", "frozen_at", "locked", "sessions_before")
        frozen = Frozen(**{name: given[name] for name in same}, earlier=tuple(given["earlier"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} cannot be read as a freeze", mend="Take the file back from a copy."
        ) from error
    if hash_of(frozen.locked) != frozen.hash:
        raise UserError(
            f"{file} was changed by hand: what it holds has the hash {hash_of(frozen.locked)[:16]}…, it says {frozen.hash[:16]}…",
            mend="Take the file back from a copy.",
            exit_code=1,
        )
    return frozen


def changes_since(study: Study, frozen: Frozen, *, items: str | None = None) -> list[str]:
    """Return lines such as ``analysis.planned.accuracy.measure: "correct" → "rt"`` on differences from a freeze."""
    now = locked_part(study)
    if items is not None:
        now["design"]["items"] = items
    return differences(json.dumps(frozen.locked), json.dumps(now))


def refuse_if_changed(study: Study, *, items: str | None = None) -> None:
    """Raise an error if a frozen study has changed; a study without a freeze passes."""
    frozen = read_freeze(study.folder)
    lines = changes_since(study, frozen, items=items) if frozen is not None else []
    if lines:
        raise UserError(
            f"{study.id} was frozen and has changed since: {shortened(lines)}",
            mend=f'Take the change back, or say why it was made: wrods freeze {study.folder} --amend "why"',
        )


def freeze(study: Study, document: str, *, sessions_before: int, amend: str | None = None) -> Frozen:
    """Freeze a study as it is; write ``freeze.json`` and the registration."""
    before = read_freeze(study.folder)
    if before is not None and amend is None:
        raise UserError(
            f"{study.id} was frozen on {before.frozen_at}",
            mend="Check it with --verify, or replace the freeze and say why: --amend TEXT",
        )
    if before is None and amend is not None:
        raise UserError(f"{study.id} was never frozen; there is nothing to amend", mend="Leave --amend out.")
    if amend is not None and not amend.strip():
        raise UserError(
            f"--amend is {amend!r}; a freeze is replaced with a reason only",
            mend='Say why: --amend "the pilot was noisier than planned".',
        )
    if before is not None and hash_of(locked_part(study)) == before.hash:
        raise UserError(
            f"nothing has changed since {study.id} was frozen on {before.frozen_at}; there is nothing to amend",
            mend="Leave --amend out, or change the study first.",
        )
    earlier = [] if before is None else [*before.earlier, _replaced(study, before, str(amend))]
    locked = locked_part(study)
    given = {
        "format": 1,
        "study": study.id,
        "frozen_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "hash": hash_of(locked),
        "design_hash": study.design_hash,
        "registration_sha256": hashlib.sha256(document.encode("utf-8")).hexdigest(),
        "sessions_before": sessions_before,
        "wrods": installed_version(),
        "earlier": earlier,
        "locked": locked,
    }
    replace_file(study.folder / DOCUMENT, document)
    replace_file(study.folder / FILE, json.dumps(given, ensure_ascii=False, indent=1) + "\n")
    frozen = read_freeze(study.folder)
    assert frozen is not None
    return frozen


def _replaced(study: Study, before: Frozen, reason: str) -> dict[str, Any]:
    """Store the earlier registration under its number; return its record, the reason, and the changes."""
    name = f"registration-{len(before.earlier) + 1}.md"
    if (study.folder / DOCUMENT).exists():
        (study.folder / DOCUMENT).replace(study.folder / name)
    return {
        "hash": before.hash,
        "frozen_at": before.frozen_at,
        "registration": name,
        "replaced_because": reason,
        "changes": changes_since(study, before),
    }


ACTION = "registration"
"""Action in the audit log."""


@dataclass(frozen=True)
class Registration:
    """The stored answer on where a study is registered."""

    url: str | None
    at: str
    freeze_hash: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON for the analysis export."""
        return {"url": self.url, "at": self.at, "freeze_hash": self.freeze_hash}


def registration_of(connection: Connection, study: str) -> Registration | None:
    """Return the latest stored answer; None if there is none."""
    query = select(audit.c.at, audit.c.detail).filter_by(study=study, action=ACTION)
    row = connection.execute(query.order_by(audit.c.audit_id.desc()).limit(1)).first()
    if row is None:
        return None
    detail = row.detail or {}
    return Registration(detail.get("url"), str(row.at), detail.get("freeze_hash"))


def needs_registration(study: Study, store: Store) -> bool:
    """Return whether a study plans analyses but has no answer on where it is registered."""
    if not study.get("analysis", "planned", default={}):
        return False
    with store.read() as connection:
        return registration_of(connection, study.id) is None


def note_registration(study: Study, store: Store, url: str | None, actor: str) -> None:
    """Store where a study is registered, or None for not registered, with the freeze at that time."""
    if url is not None:
        check_address(url)
    frozen = read_freeze(study.folder)
    freeze_hash = None if frozen is None else frozen.hash
    detail = {"registered": url is not None, "url": url, "freeze_hash": freeze_hash}
    store.write(
        lambda connection: records.add_audit(connection, actor, ACTION, study=study.id, detail=detail)
    ).result()


def check_address(url: str) -> None:
    """Raise an error for an incomplete web address."""
    parts = urlsplit(url)
    is_web = parts.scheme in ("https", "http") and "." in parts.netloc
    if not is_web or any(sign.isspace() for sign in url):
        raise UserError(
            f"the registration's address is {url!r}; it is the full address of a page",
            mend="Write it like https://osf.io/abcde, or say --not-registered.",
        )


@dataclass
class VerificationReport:
    """Result of a verification."""

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
        """Whether the frozen design is unchanged and the chains show no changed row."""
        return self.hash is not None and not self.changes and not self.broken


def verify_study(
    study: Study, store: Store | None, *, known_heads: Mapping[str, Any] | None = None
) -> VerificationReport:
    """Compare a study with its freeze and verify every chain, session by session."""
    frozen = read_freeze(study.folder)
    if frozen is None:
        if store is None:
            raise UserError(
                f"{study.id} was never frozen", mend=f"Freeze it with: wrods freeze {study.folder}"
            )
        report = VerificationReport(None, None, [])
    else:
        report = VerificationReport(frozen.hash, frozen.frozen_at, changes_since(study, frozen))
    if store is None:
        return report
    with store.read() as connection:
        gone = set(withdrawn_sessions(connection, study.id))
        names = ("session_id", "reader", "reader_kind", "is_pilot", "created_at", "design_hash")
        query = select(*(sessions.c[name] for name in names)).where(sessions.c.study == study.id)
        session_rows = {row.session_id: row for row in connection.execute(query)}
        for session_id in chained_sessions(connection, study.id):
            row = session_rows.get(session_id)
            if row is None and not _has_chain(connection, session_id):
                continue  # a model's session that was erased with a withdrawn participant
            verified = verify(connection, session_id)
            report.rows += verified.rows
            if verified.head is not None:
                report.heads[session_id] = {"place": verified.rows, "link": verified.head}
            name = session_id if row is None else f"{row.reader} ({session_id})"
            if verified.broken is not None:
                report.broken.append((name, verified.broken))
            if row is None:
                report.sessions["withdrawn"] += session_id in gone
                continue
            report.sessions[f"{row.reader_kind} pilot" if row.is_pilot else row.reader_kind] += 1
            if frozen is not None and not row.is_pilot and row.reader_kind == "human":
                report.before_freeze += row.created_at < frozen.frozen_at
                report.other_design += row.design_hash != frozen.design_hash
        report.broken += _lost_heads(connection, known_heads or {})
    return report


def read_heads(file: Path) -> dict[str, Any]:
    """Return the last links recorded in a file; empty if there is none yet."""
    if not file.exists():
        return {}
    try:
        heads: dict[str, Any] = json.loads(file.read_text("utf-8"))["heads"]
        return {session: {"place": int(h["place"]), "link": str(h["link"])} for session, h in heads.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{file} holds no links of sessions", mend="Name the file that --heads wrote."
        ) from error


def write_heads(file: Path, report: VerificationReport) -> None:
    """Record the last link of every session in a file, to be stored where nobody with access to the database can change it."""
    replace_file(
        file, json.dumps({"wrods_heads": 1, "freeze": report.hash, "heads": report.heads}, indent=1) + "\n"
    )


def _has_chain(connection: Connection, session_id: str) -> bool:
    query = select(chain.c.place).where(chain.c.session_id == session_id).limit(1)
    return connection.scalar(query) is not None


def _lost_heads(connection: Connection, heads: Mapping[str, Any]) -> list[tuple[str, Broken]]:
    lost = []
    for session_id, head in heads.items():
        query = select(chain.c.link).filter_by(session_id=session_id, place=head["place"])
        link = connection.scalar(query)
        if link != head["link"]:
            fault = "it differs from the one noted earlier" if link else "it was noted earlier and is gone"
            lost.append((session_id, Broken(head["place"], f"link {head['place']}", fault)))
    return lost
