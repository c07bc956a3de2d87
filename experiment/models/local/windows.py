"""Which requests are computed together: windows of planned ones, and the turns of few conversations at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from experiment.models.engine import Request
from experiment.models.local.jobs import Job
from experiment.models.local.rows import Budget, Row, common_length

WINDOW = 8192
"""Requests that are planned together."""

FIRST = 32
"""Requests of the first window where replies may lead to further requests."""


class Windows:
    """The order of requests.

    ``bundle``: how many planned requests always come together; then every turn that follows comes by itself.
    ``leads_on``: whether replies may lead to further requests.
    ``conversations``: whether a reply has led to a further request so far.
    """

    def __init__(self, requests: Iterable[Request], bundle: int | None, *, leads_on: bool) -> None:
        self._planned = deque(requests)
        self._turns: deque[Request] = deque()
        self._news: list[Request] = []
        self._bundle = bundle
        self._is_first = leads_on
        self.conversations = False

    def __bool__(self) -> bool:
        return bool(self._planned or self._turns or self._news)

    def follow(self, requests: Sequence[Request]) -> None:
        """Take what a reply has made possible; it comes before all that waits."""
        self._news += requests
        self.conversations |= bool(requests)

    def next(self, most: int) -> tuple[list[Request], bool]:
        """Return the next window, and whether what it leaves in memory is likely to be gone on from.

        ``most``: how many conversations memory holds; others wait until these are at their end.
        """
        self._turns.extendleft(reversed(self._news))
        self._news = []
        if self._turns:
            size, waiting = (1 if self._bundle else max(1, most)), self._turns
        else:
            size, waiting = self._bundle or (FIRST if self._is_first else WINDOW), self._planned
        holds = self.conversations or self._is_first
        if self.conversations and not self._bundle:
            size = min(size, max(1, most))
        self._is_first = False
        return [waiting.popleft() for _ in range(min(size, len(waiting)))], holds


def conversations_held(rows: Sequence[Row], budget: Budget, *, share: bool) -> int:
    """Return how many conversations as long as these memory holds.

    ``share``: whether what all of them begin with is held once.
    """
    longest = max(len(row.ids) for row in rows)
    common = min(common_length(rows[0].ids, row.ids) for row in rows) if share and len(rows) > 1 else 0
    return max(1, (budget.held - common) // max(1, longest - common))


@dataclass(eq=False)
class Work:
    """One row to compute and all jobs that wait for it, each with the row's place in it."""

    row: Row
    waiting: list[tuple[Job, int]]


def merged(jobs: Sequence[Job], *, apart: bool = False) -> list[Work]:
    """Return the rows of all jobs, those that say the same once; ``apart`` keeps those of different jobs apart."""
    found: dict[tuple[object, ...], Work] = {}
    for job in jobs:
        for place, row in enumerate(job.rows):
            how = row.decoding
            said: tuple[object, ...] = ()
            if how is not None:
                draws = (how.temperature, how.seed, how.top_p, how.top_k) if how.temperature > 0 else ()
                said = (how.max_tokens, job.request.stop, job.thought_only, *draws)
            source = None if row.source is None else row.source.tobytes()
            key = (id(job) if apart else None, source, row.ids.tobytes(), said)
            one = found.get(key)
            if one is None:
                found[key] = one = Work(row, [])
            else:
                one.row = replace(
                    one.row,
                    targets=tuple(dict.fromkeys([*one.row.targets, *row.targets])),
                    borders=tuple(sorted({*one.row.borders, *row.borders})),
                    states=tuple(sorted({*one.row.states, *row.states})),
                    mean=one.row.mean or row.mean,
                )
            one.waiting.append((job, place))
    return list(found.values())


def going_on_from(work: Sequence[Work]) -> set[int]:
    """Return the places of rows that a next turn goes on from: of each request its prompt, or what is scored behind it."""
    shortest: dict[int, int] = {}
    for place, one in enumerate(work):
        for job, _ in one.waiting:
            before = shortest.setdefault(id(job), place)
            if len(one.row.ids) < len(work[before].row.ids):
                shortest[id(job)] = place
    return set(shortest.values())
