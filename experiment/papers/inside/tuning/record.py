"""``tuning.json``: with what, from what and how a model was trained; written before the first step, completed after the last."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiment.models.leases import file_lock
from experiment.models.runs.environment import git_state, hardware, versions
from experiment.papers.inside.tuning.settings import Training
from experiment.study import Study
from experiment.study.trained import CURVE, RECORD
from stimuli.errors import UserError
from stimuli.files import replace_file


@dataclass(frozen=True)
class Outcome:
    """Result of a command for a training."""

    # training, base, use: its name, the model's name in the study, and what ``use`` names the trained model
    training: str
    base: str
    use: str
    # ``finished``, ``stopped``, ``written`` (the files of a job), or a provider's word for its job
    state: str
    was_finished: bool = False  # nothing was to be done
    # steps, planned: steps made, and all
    steps: int = 0
    planned: int = 0
    tokens: int = 0  # tokens read
    seconds: float = 0.0  # spent in steps
    stopped: str | None = None  # why it ended before the end
    interrupted: bool = False
    # first_validation_loss, validation_loss: before the first step and after the last one, in nats a token
    first_validation_loss: float | None = None
    validation_loss: float | None = None
    folder: str = ""
    # most_usd, cost_usd: the most that a provider's training can cost, and what it did cost
    most_usd: float | None = None
    cost_usd: float | None = None
    # job_id, model_name: as the provider names them
    job_id: str | None = None
    model_name: str | None = None
    remark: str | None = None  # what else is to be known

    @property
    def is_done(self) -> bool:
        """Whether the same command would do nothing more."""
        return self.state in ("finished", "written")

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as ``--json`` prints it."""
        return asdict(self)


PACKAGES = ("peft", "safetensors")
FINISHED = "finished"


@contextmanager
def held(training: Training) -> Iterator[None]:
    """Hold the right to train; it ends with the process."""
    training.folder.mkdir(parents=True, exist_ok=True)
    taken = UserError(
        f"training {training.name} is already running",
        mend="Let it end, or stop it; the same command resumes from its last checkpoint.",
        exit_code=1,
    )
    with file_lock(training.folder / ".lock", taken):
        yield


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a training run."""
    text = json.dumps(record, ensure_ascii=False, indent=1, default=str)
    replace_file(folder / RECORD, text)


def require_same(training: Training, record: Mapping[str, Any]) -> None:
    """Refuse to go on with a training whose settings are others by now."""
    before = record.get("settings")
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
            mend=f"Give it another name, put the settings back, or remove {training.folder} to train again.",
        )


def opening_record(study: Study, training: Training) -> dict[str, Any]:
    """Return what is recorded before the first step."""
    package_versions = dict(versions())
    for name in PACKAGES:
        try:
            package_versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "training": training.name,
        "study": study.id,
        "state": "under way",
        "base": training.base,
        "settings": training.to_json(),
        "settings_hash": training.hash,
        "versions": package_versions,
        "hardware": dict(hardware()),
        "git": git_state(study.folder),
        "began_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


CURVE_COLUMNS = ("step", "epoch", "tokens", "training_loss", "validation_loss", "learning_rate", "seconds")


@dataclass(frozen=True)
class LearningPoint:
    """One step."""

    step: int  # from 1; 0 is the model as it was
    epoch: float  # epochs done
    tokens: int  # tokens read by then
    # training_loss, validation_loss: nats a token; the first before the step's change of weights, the second
    # after it
    training_loss: float | None
    validation_loss: float | None
    learning_rate: float
    seconds: float

    def cells(self) -> list[str]:
        """Return the row of the file."""
        losses = (
            "" if loss is None else f"{loss:.6f}" for loss in (self.training_loss, self.validation_loss)
        )
        return [
            str(self.step), f"{self.epoch:.4f}", str(self.tokens), *losses, f"{self.learning_rate:.6g}", f"{self.seconds:.2f}",
        ]  # fmt: skip


class Curve:
    """Writes the file with one row per step.

    ``step``: the step of the checkpoint from which training resumes; later rows are dropped.
    """

    def __init__(self, folder: Path, step: int | None) -> None:
        self.file = folder / CURVE
        earlier = [] if step is None else [row for row in read_curve(self.file) if row.step <= step]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(CURVE_COLUMNS)
        writer.writerows(point.cells() for point in earlier)
        replace_file(self.file, text.getvalue())

    def add(self, point: LearningPoint) -> None:
        """Write a step."""
        with self.file.open("a", encoding="utf-8", newline="") as stream:
            csv.writer(stream, lineterminator="\n").writerow(point.cells())


def read_curve(file: Path) -> list[LearningPoint]:
    """Return the steps of a file; none where there is no file. A last row that was cut off is left out."""
    if not file.is_file():
        return []
    points = []
    with file.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if None in row.values() or not row.get("seconds"):
                continue
            training, validation = (float(row[name]) if row[name] else None for name in CURVE_COLUMNS[3:5])
            points.append(
                LearningPoint(
                    int(row["step"]), float(row["epoch"]), int(row["tokens"]), training, validation,
                    float(row["learning_rate"]), float(row["seconds"]),
                )
            )  # fmt: skip
    return points
