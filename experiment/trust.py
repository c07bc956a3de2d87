"""Consent to run a lab's own trial types: kept in the user's configuration folder by the hash of each file, never in a study."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from experiment.configuration import config_file
from experiment.study import Study
from stimuli.errors import UserError

FILE = "trusted.json"


def trust_file() -> Path:
    """Return the path of the file with the user's consents."""
    return config_file().parent / FILE


def consents() -> dict[str, dict[str, str]]:
    """Return the files that the user agreed to run, by SHA-256: each with its path, its study and the time."""
    try:
        given: dict[str, dict[str, str]] = json.loads(trust_file().read_text("utf-8"))["files"]
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{trust_file()} cannot be read: {error}", mend="Remove it, then give `wrods trust` again."
        ) from error
    return given


def are_trusted(hashes: Iterable[str]) -> bool:
    """Return whether the user agreed to run every one of some files."""
    known = consents()
    return all(digest in known for digest in hashes)


def files_of(study: Study) -> dict[str, str]:
    """Return the SHA-256 of each file of a study's own trial types, by its path in the study's folder."""
    return {path: digest for declared in study.own_types.values() for path, digest in declared.hashes.items()}


def require_trust(study: Study) -> None:
    """Raise an error unless the user agreed to run every file of a study's own trial types as it is now."""
    known = consents() if study.own_types else {}
    new = [path for path, digest in files_of(study).items() if digest not in known]
    if new:
        raise UserError(
            f"{study.folder}: {', '.join(new)} would run here, and nobody on this account has agreed to that",
            mend=f"Read {'it' if len(new) == 1 else 'them'}, then give `wrods trust {quote(str(study.folder))}`.",
        )


def agree(study: Study) -> None:
    """Record that the user agrees to run the files of a study's own trial types as they are now."""
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    entries: dict[str, Any] = consents()
    entries |= {
        digest: {"file": path, "study": study.id, "agreed_at": moment}
        for path, digest in files_of(study).items()
    }
    file = trust_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    part.write_text(json.dumps({"files": entries}, ensure_ascii=False, indent=1) + "\n", "utf-8")
    part.replace(file)
