"""The requests of a model that are under way, and where in the run the first of them stands."""

from __future__ import annotations

import heapq
import math
from collections import Counter

from experiment.models.engine import Request
from experiment.models.planning import ModelSession

BEFORE = ("unscramble", "reason")
"""Purposes of calls that come before a trial's answer."""

Known = tuple[ModelSession, Request, float]
"""Session, request, and the place of its trial in the run."""


class BeingAsked:
    """Requests by work key; a trial's earlier calls stay known until its answer is there."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._open: Counter[float] = Counter()
        self._places: list[float] = []

    def __contains__(self, work_key: str) -> bool:
        return work_key in self._known

    def __getitem__(self, work_key: str) -> Known:
        return self._known[work_key]

    def add(self, session: ModelSession, request: Request, place: float) -> None:
        """Know that a request is to be sent."""
        self._known[request.work_key] = (session, request, place)
        if not self._open[place]:
            heapq.heappush(self._places, place)
        self._open[place] += 1

    def is_second(self, request: Request) -> bool:
        """Say whether a request belongs to a trial that another request began."""
        return ":" not in request.work_key and any(
            f"{request.work_key}:{purpose}" in self._known for purpose in BEFORE
        )

    def forget(self, work_key: str) -> None:
        """Know that a reply came; with a trial's answer its earlier calls are forgotten, too."""
        if ":" not in work_key:
            for name in (work_key, *(f"{work_key}:{purpose}" for purpose in BEFORE)):
                self._known.pop(name, None)

    def came(self, place: float) -> None:
        """Know that a reply of a place was written."""
        self._open[place] -= 1

    @property
    def first(self) -> float:
        """The first place of which a reply is awaited; infinite where none is."""
        while self._places and not self._open[self._places[0]]:
            self._open.pop(heapq.heappop(self._places), None)
        return self._places[0] if self._places else math.inf

    @property
    def lead_on(self) -> bool:
        """Whether a reply to any of them may make a further request possible."""
        return any(session.leads_on for session, _, _ in self._known.values())

    def clear(self) -> None:
        """Know that none is under way."""
        self._known.clear()
        self._open.clear()
        self._places.clear()
