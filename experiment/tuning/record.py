"""``tuning.json``: with what, from what and how a model was trained; written before the first step, completed after the last."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiment.models.leases import file_lock
from experiment.models.runs.environment import git_state, hardware, versions
from experiment.study import Study
from experiment.study.trained import RECORD
from experiment.tuning.settings import Training
from stimuli.errors import UserError
from stimuli.files import replace_file

PACKAGES = ("peft", "safetensors")
FINISHED = "finished"


@contextmanager
def held(training: Training) -> Iterator[None]:
    """Hold the right to train; it ends with the process."""
    training.folder.mkdir(parents=True, exist_ok=True)
    taken = UserError(
        f"training {training.name} is under way already",
        mend="Let it end, or stop it; the same command goes on from its last checkpoint.",
        exit_code=1,
    )
    with file_lock(training.folder / ".lock", taken):
        yield


def read_record(folder: Path) -> dict[str, Any]:
    """Return what a training has recorded; nothing where it has not begun."""
    try:
        told = json.loads((folder / RECORD).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as fault:
        raise UserError(
            f"{folder / RECORD} cannot be read: {fault}",
            mend=f"Remove {folder} to train anew.",
        ) from fault
    return dict(told)


def write_record(folder: Path, told: Mapping[str, Any]) -> None:
    """Write what is known of a training."""
    text = json.dumps(told, ensure_ascii=False, indent=1, default=str)
    replace_file(folder / RECORD, text)


def require_same(training: Training, told: Mapping[str, Any]) -> None:
    """Refuse to go on with a training whose settings are others by now."""
    before = told.get("settings")
    if before is None:
        return
    now = training.to_json()
    changed = [
        f"{key} was {before.get(key)!r} and is {now.get(key)!r}"
        for key in {**before, **now}
        if before.get(key) != now.get(key)
    ]
    if changed:
        raise UserError(
            f"{training.place}: training {training.name} was begun with other settings: {'; '.join(changed)}",
            mend=f"Give it another name, put the settings back, or remove {training.folder} to train anew.",
        )


def opening_record(study: Study, training: Training) -> dict[str, Any]:
    """Return what is recorded before the first step."""
    found = dict(versions())
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "training": training.name,
        "study": study.id,
        "state": "under way",
        "base": training.base,
        "settings": training.to_json(),
        "settings_hash": training.hash,
        "versions": found,
        "hardware": dict(hardware()),
        "git": git_state(study.folder),
        "began_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
