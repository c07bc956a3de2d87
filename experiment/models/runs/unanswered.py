"""The trials of a run that have no answer: each once, with what came last, until an answer comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from experiment.models.engine import Reply, Request
from experiment.models.runs.outcome import SHOWN_ERRORS, Outcome

KINDS = 20
"""Errors that are told apart in what a run came to."""
WORDS = 120
"""Characters of an error's first line by which errors are told apart."""


@dataclass(frozen=True, slots=True)
class _Failed:
    status: str
    kind: str


class Unanswered:
    """Keeps what an outcome says of trials without an answer; a trial is asked by at most one thread at a time."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._failed: dict[str, _Failed] = {}
        self._kinds: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()

    def add(self, session_id: str, trial: Mapping[str, Any], request: Request, reply: Reply) -> None:
        """Note that a call for a trial brought no answer."""
        key = _trial(reply.work_key)
        self._take_out(key)
        error = reply.error or reply.status
        one = _Failed(reply.status, error.splitlines()[0][:WORDS])
        self._failed[key] = one
        self._kinds[one.kind] += 1
        self._statuses[one.status] += 1
        if len(self._outcome.errors) < SHOWN_ERRORS:
            self._outcome.errors.append(
                {
                    "session_id": session_id, "trial_index": trial["trial_index"], "item_id": trial["item_id"],
                    "purpose": request.purpose, "error": error, "work_key": key,
                }
            )  # fmt: skip
        self._tell()

    def answered(self, work_key: str) -> None:
        """Know that a trial has its answer."""
        if self._failed and self._take_out(_trial(work_key)):
            self._tell()

    def handed_over(self, work_keys: Container[str]) -> None:
        """Know that what failed is out in a batch again."""
        for key in [one for one in self._failed if one in work_keys]:
            self._take_out(key)
        self._tell()

    def _take_out(self, key: str) -> bool:
        before = self._failed.pop(key, None)
        if before is None:
            return False
        self._kinds[before.kind] -= 1
        self._statuses[before.status] -= 1
        self._outcome.errors = [one for one in self._outcome.errors if one["work_key"] != key]
        return True

    def _tell(self) -> None:
        outcome = self._outcome
        outcome.failed = len(self._failed)
        outcome.error_kinds = dict((+self._kinds).most_common(KINDS))
        outcome.unanswered = dict(+self._statuses)


def _trial(work_key: str) -> str:
    return work_key.partition(":")[0]
