"""Scoring of programs by their items' tests, in a sandbox and only on request (``wrods score --execute``).

Mind Scramble never ran the programs of MBPP; it compared their embeddings with those of a different model's programs. Here a
program is correct if every test holds; its score is the proportion that hold. A program that exits, or uses too much time or
memory, is wrong. Scores have the scorer ``executed`` and count until others are requested.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from experiment.scoring.rescoring import EXECUTED, StoredResponse, responses, write_scores
from experiment.scoring.sandbox import LIMITS, Ran, SandboxLimits, require_sandbox, run_program
from experiment.scoring.trial import Score
from experiment.store import Store
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item

VERSION = 2
AT_ONCE = 64
FATES = {
    "passed": "every test held",
    "failed": "a test did not hold, or the program does not run",
    "ended": "ended before the tests were through (memory, processor time, or by itself)",
    "too_slow": "took too long",
}


@dataclass
class Executed:
    """Result of running programs.

    ``programs``: programs that were run; ``fates``: how they ended, by reader: (reader, one of :data:`FATES`); ``unread``:
    replies without a program (empty, refused, truncated); ``unknown``: answers to items that the study no longer has, which
    were not run; ``on_trust``: tests of those programs that cannot be judged outside the program's own process.
    """

    programs: int = 0
    fates: Counter[tuple[str, str]] = field(default_factory=Counter)
    unread: int = 0
    unknown: int = 0
    on_trust: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        fates = [
            {"reader": reader, "fate": fate, "programs": n}
            for (reader, fate), n in sorted(self.fates.items())
        ]
        numbers = {name: getattr(self, name) for name in ("programs", "unread", "unknown", "on_trust")}
        return {**numbers, "fates": fates}

    def told(self) -> Iterator[str]:
        """Yield the outcome in lines."""
        yield f"{EXECUTED}: {self.programs} programs run against their tests."
        for (reader, fate), number in sorted(self.fates.items()):
            yield f"  {number:>6}  {reader}: {FATES[fate]}"
        if self.unread:
            yield f"  {self.unread} replies hold no program and count as they stand."
        if self.on_trust:
            yield (
                f"  {self.on_trust} tests ran in the programs' own processes, where a program can make them pass: write "
                "each as `assert call == value`."
            )
        if self.unknown:
            yield f"  {self.unknown} answers are to items that the study no longer has: build it as it was."


def execute_programs(
    study: Study,
    store: Store,
    *,
    reader: str | None = None,
    dry_run: bool = False,
    limits: SandboxLimits = LIMITS,
) -> Executed:
    """Run every program in a study's answers, and store the scores."""
    tested = {item.item_id: item for item in study.items if item.key.get("tests")}
    if not tested:
        raise UserError(
            "no item of this study has tests that a program must pass",
            mend="Programs come from the corpus mbpp with the task complete, answered with read_as: code.",
        )
    require_sandbox()
    outcome = Executed()
    workers = max(1, min(8, os.cpu_count() or 1))
    with store.read() as connection, ThreadPoolExecutor(workers) as pool:
        stream = responses(study, connection, reader=reader)
        while batch := list(islice(stream, AT_ONCE)):
            judged = pool.map(lambda response: _judged(response, tested, limits), batch)
            scored = [done for done in map(_noted(outcome), batch, judged) if done is not None]
            if not dry_run:
                write_scores(store, scored)
    return outcome


@dataclass(frozen=True)
class _Verdict:
    score: Score
    ran: Ran | None
    known: bool = True


def _judged(response: StoredResponse, tested: Mapping[str, Item], limits: SandboxLimits) -> _Verdict | None:
    """Return the score of one response; None if it is not a program."""
    if response.trial["steps"][-1].get("read_as") != "code" or response.trial.get("is_practice"):
        return None
    read = response.scored()
    named = replace(read, scorer=f"{EXECUTED}-{VERSION}", version=VERSION)
    if read.response_status != "valid" or read.response is None:
        return _Verdict(named, None)
    item = tested.get(str(response.trial["item_id"]))
    if item is None:
        return _Verdict(named, None, known=False)
    tests: Sequence[str] = item.key["tests"]
    ran = run_program(read.response, tests, setup=str(item.key.get("setup") or ""), limits=limits)
    passed = ran.fate == "passed"
    score = replace(named, correct=passed, score=ran.held / len(tests))
    return _Verdict(score, ran)


def _noted(outcome: Executed) -> Any:
    def note(response: StoredResponse, verdict: _Verdict | None) -> tuple[StoredResponse, Score] | None:
        if verdict is None:
            return None
        if not verdict.known:
            outcome.unknown += 1
            return None
        if verdict.ran is None:
            outcome.unread += 1
        else:
            outcome.programs += 1
            outcome.on_trust += verdict.ran.on_trust
            outcome.fates[response.reader, verdict.ran.fate] += 1
        return (response, verdict.score) if _is_new(response, verdict.score) else None

    return note


def _is_new(response: StoredResponse, score: Score) -> bool:
    """Return whether a score differs from the one that counts."""
    current = response.counts
    return current is None or (
        current["scorer"],
        current["response"],
        current["correct"],
        current["score"],
    ) != (
        score.scorer,
        score.response,
        score.correct,
        score.score,
    )
