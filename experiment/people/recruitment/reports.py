"""What comes of comparing a platform's books with the store: a line for each person, and sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Literal

from experiment.people.recruitment.codes import Reward

Verdict = Literal["approve", "review", "reject", "settled"]
Mark = Literal[
    "paid_without_data",
    "submission_without_data",
    "data_without_submission",
    "returned",
    "timed_out",
    "awaiting_review",
    "wrong_code",
]
MARKS: Mapping[Mark, str] = {
    "paid_without_data": "paid, but without answers here",
    "submission_without_data": "submitted, but without answers here",
    "data_without_submission": "answers here, but no submission",
    "returned": "returned",
    "timed_out": "timed out",
    "awaiting_review": "awaiting review",
    "wrong_code": "another code than the session's",
}


@dataclass(frozen=True)
class FailedCheck:
    """An instructed-response check that was answered wrongly."""

    trial_index: int
    asked: str
    answered: str
    expected: str


@dataclass(frozen=True)
class Line:
    """One person in the books."""

    external_id: str | None
    submission_id: str | None
    session_id: str | None
    reader: str | None
    state: str | None
    status: str | None
    code: str | None
    expected_code: str | None
    trials: int
    planned: int
    minutes: float | None
    minutes_here: float | None
    verdict: Verdict
    marks: tuple[Mark, ...] = ()
    reasons: tuple[str, ...] = ()
    evidence: tuple[FailedCheck, ...] = ()


@dataclass(frozen=True)
class Report:
    """The books compared."""

    study: str
    platform: str
    imported_at: str | None
    lines: tuple[Line, ...] = field(default=())
    median_minutes: float | None = None
    reward: Reward | None = None
    hourly: Decimal | None = None
    rule: str = ""

    def with_verdict(self, verdict: Verdict) -> list[Line]:
        """Return the lines with a verdict."""
        return [line for line in self.lines if line.verdict == verdict]

    def marked(self, mark: Mark) -> list[Line]:
        """Return the lines with a mark."""
        return [line for line in self.lines if mark in line.marks]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        told = asdict(self)
        told["reward"] = None if self.reward is None else str(self.reward)
        told["hourly"] = None if self.hourly is None else float(self.hourly)
        told["counts"] = {mark: len(self.marked(mark)) for mark in MARKS} | {
            verdict: len(self.with_verdict(verdict)) for verdict in ("approve", "review", "reject", "settled")
        }
        return told
