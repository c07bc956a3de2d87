"""What is written down about batches, in ``batches/`` of the study's folder: their names, their state, the work in them.

Nothing of what was asked is there. Answers that came back lie there until a trial takes them (``TOKEN.answers``), so that what
was paid for is never lost where a plan changed meanwhile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiment.models.servers import Server
from experiment.models.settings import ModelSettings
from stimuli.files import replace_file

FOLDER = "batches"
GONE = "gone"
"""Our word for a batch that its provider does not know any more."""

ENDED = frozenset({"completed", "failed", "expired", "cancelled", GONE})


def moment() -> str:
    """Return the time of day as it is written down."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class Batch:
    """One batch as it was last seen."""

    token: str  # ours, among the batch's own data
    requests: int
    batch_id: str | None = None  # the API's name; None while it is not known whether the batch was made
    status: str = "preparing"  # the API's word; `preparing` before there is one
    completed: int = 0
    failed: int = 0
    output_file: str | None = None
    error_file: str | None = None
    error: str | None = None  # why the API refused the whole batch
    submitted_at: str = ""
    is_collected: bool = False  # whether its answers were fetched
    reader: str = ""  # the model's name in the study, and the run that handed it over
    run_id: str = ""
    most_usd: float = 0.0  # the most that it can cost
    seen_at: str = ""  # when the API was last asked about it
    is_decided: bool = False  # whether somebody said what becomes of it after its plan changed

    @property
    def has_ended(self) -> bool:
        """Whether nothing more happens to it."""
        return self.status in ENDED

    @property
    def name(self) -> str:
        """What people call it."""
        return self.batch_id or "a batch that is not made yet"

    def __str__(self) -> str:
        return (
            f"{self.batch_id or 'not made yet'}: {self.status}, {self.completed + self.failed} of {self.requests} done"
            + (f" ({self.failed} failed)" if self.failed else "")
            + (f": {self.error}" if self.error else "")
            + (", collected" if self.is_collected else "")
        )


@dataclass
class BatchState:
    """All batches of one model in one study."""

    model: str
    base_url: str
    batches: list[Batch] = field(default_factory=list)

    @property
    def open(self) -> list[Batch]:
        """Batches that still run."""
        return [one for one in self.batches if not one.has_ended]

    @property
    def to_collect(self) -> list[Batch]:
        """Batches that have ended and whose answers were not fetched."""
        return [one for one in self.batches if one.has_ended and not one.is_collected]

    def __str__(self) -> str:
        if not self.batches:
            return f"{self.model}: no batch was handed over"
        return f"{self.model}\n" + "\n".join(map(str, self.batches))


class Ledger:
    """What is written down about one model's batches."""

    def __init__(self, settings: ModelSettings, server: Server) -> None:
        name = hashlib.sha256(f"{server.base_url.rstrip('/')} {settings.use}".encode()).hexdigest()[:16]
        self.folder = settings.folder / FOLDER
        self.file = self.folder / f"{name}.json"
        self.state = BatchState(settings.name, server.base_url)
        if self.file.exists():
            self.state.batches = _batches_in(self.file)

    def keys_file(self, batch: Batch) -> Path:
        """Return where the work keys of a batch stand, one a line."""
        return self.folder / f"{batch.token}.keys"

    def keys(self, batch: Batch) -> list[str]:
        """Return the work keys of a batch that was not fetched."""
        return self.keys_file(batch).read_text("utf-8").split("\n")

    def answers_file(self, batch: Batch) -> Path:
        """Return where answers lie that no trial has taken, one a line as the API gave them."""
        return self.folder / f"{batch.token}.answers"

    def answers(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Iterate over the answers of a fetched batch that no trial has taken."""
        if self.answers_file(batch).exists():
            for line in self.answers_file(batch).read_text("utf-8").split("\n"):
                yield json.loads(line)

    def keep_unread(self, file_id: str, number: int, line: str) -> None:
        """Keep a line of results that is no JSON, for people to look at."""
        (self.folder / f"{file_id}-{number}.unread").write_text(line, "utf-8")

    def keep_answers(self, batch: Batch, lines: Iterable[Mapping[str, Any]]) -> None:
        """Write down which answers of a batch no trial has taken."""
        said = "\n".join(json.dumps(line) for line in lines)
        if said:
            replace_file(self.answers_file(batch), said)
        else:
            self.answers_file(batch).unlink(missing_ok=True)

    def save(self) -> None:
        """Write all down, at once and whole."""
        replace_file(self.file, json.dumps({**asdict(self.state), "wrods": 1}, indent=1))


def known_batches(folder: Path) -> list[dict[str, Any]]:
    """Return all batches of a study as they were last seen, with their ``model``; nobody is asked.

    ``waiting`` says how many answers no trial has taken.
    """
    found = []
    for file in sorted((folder / FOLDER).glob("*.json")):
        kept = json.loads(file.read_text("utf-8"))
        for one in _batches_in(file):
            answers = file.parent / f"{one.token}.answers"
            lines = answers.read_text("utf-8").splitlines() if answers.exists() else []
            waiting = sum(is_answered(json.loads(line)) for line in lines)
            found.append({"model": kept["model"], **asdict(one), "said": str(one), "waiting": waiting})
    return sorted(found, key=lambda one: str(one["submitted_at"]))


def is_answered(line: Mapping[str, Any]) -> bool:
    """Say whether a line of results holds an answer."""
    response = line.get("response")
    return isinstance(response, dict) and response.get("status_code") == 200


def _batches_in(file: Path) -> list[Batch]:
    names = {one.name for one in fields(Batch)}
    kept = json.loads(file.read_text("utf-8"))["batches"]
    return [Batch(**{name: value for name, value in one.items() if name in names}) for one in kept]
