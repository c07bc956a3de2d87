"""Locks a study: design, items, analysis plan and sampling plan under one hash, before data can tempt anyone to change them.

``freeze.json`` holds what was locked, in full, so that a later difference can be said setting by setting; the registration
beside it says the same in words. Serving, running and building refuse a study that differs from what was frozen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiment.store.versions import differences
from experiment.study import Study
from experiment.version import installed_version
from stimuli.errors import UserError
from stimuli.files import replace_file

FILE = "freeze.json"
DOCUMENT = "registration.md"
SHOWN = 12
PARTICIPANTS = ("wanted", "eligible", "if_interrupted")


@dataclass(frozen=True)
class Frozen:
    """A freeze as it is on disk: its hash, its moment, what it locked, and the freezes that it replaced."""

    hash: str
    design_hash: str
    frozen_at: str
    locked: Mapping[str, Any]
    sessions_before: int
    earlier: tuple[Mapping[str, Any], ...]


def locked_part(study: Study) -> dict[str, Any]:
    """Return what a freeze locks: the design with texts' and items' hashes, the models, the sampling and analysis plan."""
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
    """Return the SHA-256 of what is locked, as canonical JSON."""
    text = json.dumps(locked, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read_freeze(folder: Path) -> Frozen | None:
    """Return a study's freeze, or None where it was never frozen."""
    file = folder / FILE
    if not file.exists():
        return None
    try:
        given = json.loads(file.read_text("utf-8"))
        found = Frozen(
            hash=given["hash"],
            design_hash=given["design_hash"],
            frozen_at=given["frozen_at"],
            locked=given["locked"],
            sessions_before=given["sessions_before"],
            earlier=tuple(given["earlier"]),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} cannot be read as a freeze", mend="Take the file back from a copy."
        ) from error
    if hash_of(found.locked) != found.hash:
        raise UserError(
            f"{file} was changed by hand: what it holds has the hash {hash_of(found.locked)[:16]}…, it says {found.hash[:16]}…",
            mend="Take the file back from a copy.",
            exit_code=1,
        )
    return found


def changes_since(study: Study, frozen: Frozen, *, items: str | None = None) -> list[str]:
    """Say in lines such as ``analysis.planned.accuracy.measure: "correct" → "rt"`` what differs from a freeze."""
    now = locked_part(study)
    if items is not None:
        now["design"]["items"] = items
    return differences(json.dumps(frozen.locked), json.dumps(now))


def refuse_if_changed(study: Study, *, items: str | None = None) -> None:
    """Refuse a study that was frozen and changed since; pass one that never was."""
    frozen = read_freeze(study.folder)
    lines = changes_since(study, frozen, items=items) if frozen is not None else []
    if lines:
        more = [f"… and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
        raise UserError(
            f"{study.id} was frozen and has changed since: " + "; ".join((*lines[:SHOWN], *more)),
            mend=f'Take the change back, or say why it was made: wrods freeze {study.folder} --amend "why"',
        )


def freeze(study: Study, document: str, *, sessions_before: int, amend: str | None = None) -> Frozen:
    """Lock a study as it is and write ``freeze.json`` and the registration."""
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
    found = read_freeze(study.folder)
    assert found is not None
    return found


def _replaced(study: Study, before: Frozen, reason: str) -> dict[str, Any]:
    """Keep the earlier registration under its number, and say what it was, why it went, and what is otherwise now."""
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
