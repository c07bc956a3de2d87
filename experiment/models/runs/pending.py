"""What one model is still to be asked, in order: the trials of one round after the other, and turns that wait for their place."""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiment.models.engine import Request
from experiment.models.planning import ModelSession
from experiment.models.runs.planned import Blocks, Round


@dataclass(frozen=True, slots=True)
class Due:
    """A request that can be sent.

    Attributes
    ----------
    place : float
        Where its trial stands in the run (:mod:`experiment.models.runs.gate`).
    is_company : bool
        It was answered before, and is only computed again beside others with which it always comes together.
    """

    place: float
    session: ModelSession
    request: Request
    is_company: bool = False


@dataclass(frozen=True)
class Begun:
    """What a session can be asked now; ``stored`` names what of it is only company."""

    requests: Sequence[Request]
    stored: frozenset[str] = frozenset()


class Pending:
    """The requests of a model that can be sent and were not taken yet.

    Parameters
    ----------
    waves : iterable of (int, list of ModelSession)
        Sessions that are asked side by side, with the number of their wave; read as far as is needed.
    begin : callable
        Gives what a session can be asked now.
    order : mapping of Round to int
        Numbers of the rounds, the same for all models of the run.
    whole : bool
        The trials of a round share their place, so that a round is asked as a whole before the next one begins.
    bundle : int, optional
        Requests that always come together, in the order of the plan; those of bundles of which nothing is missing are left out.
    arrange : callable, optional
        Puts the requests of a round into another order.
    """

    def __init__(
        self,
        waves: Iterable[tuple[int, list[ModelSession]]],
        begin: Callable[[ModelSession], Begun],
        order: Mapping[Round, int],
        *,
        whole: bool = False,
        bundle: int | None = None,
        arrange: Callable[[Round, list[Due]], None] | None = None,
    ) -> None:
        self._begin, self._order = begin, order
        self._whole, self._bundle, self._arrange = whole, bundle, arrange
        self._blocks: dict[str, tuple[int, Blocks]] = {}
        self._before = -1
        self._rounds = self._unfolded(waves)
        self._now: deque[Due] = deque()
        self._later: list[tuple[float, int, Due]] = []
        self._count = 0

    def see(self, number: int, wave: Iterable[ModelSession]) -> None:
        """Know the blocks of a wave; those of the wave before, of which requests may still be under way, stay known."""
        self._blocks = {name: one for name, one in self._blocks.items() if one[0] >= self._before}
        self._before = number
        self._blocks |= {session.session_id: (number, Blocks(session)) for session in wave}

    def place_of(self, session: ModelSession, trial: Mapping[str, Any]) -> float:
        """Return where a trial of a session under way stands in the run."""
        if session.session_id not in self._blocks:
            return 0.0
        index = int(trial["trial_index"])
        wave, blocks = self._blocks[session.session_id]
        number = self._order.get((wave, blocks.of_trial[index]), 0)
        return float(number) if self._whole else number + blocks.share[index]

    def round_of(self, session: ModelSession, trial: Mapping[str, Any]) -> Round | None:
        """Return the round of a trial of a session under way."""
        if session.session_id not in self._blocks:
            return None
        wave, blocks = self._blocks[session.session_id]
        return (wave, blocks.of_trial[int(trial["trial_index"])])

    def peek(self) -> Due | None:
        """Return the next request; None where all were taken."""
        while not self._now and (some := next(self._rounds, None)) is not None:
            self._now.extend(some)
        if self._later and (not self._now or self._later[0][0] <= self._now[0].place):
            return self._later[0][2]
        return self._now[0] if self._now else None

    def pop(self) -> Due:
        """Take the request that :meth:`peek` returned."""
        due = self.peek()
        assert due is not None
        if self._later and self._later[0][2] is due:
            heapq.heappop(self._later)
        else:
            self._now.popleft()
        return due

    def put(self, due: Due) -> None:
        """Keep a turn that a reply has made possible and whose place is not reached yet."""
        self._count += 1
        heapq.heappush(self._later, (due.place, self._count, due))

    @property
    def place(self) -> float:
        """The place of the next request; infinite where there is none."""
        due = self.peek()
        return math.inf if due is None else due.place

    def close(self) -> None:
        """Read no further session."""
        self._rounds.close()

    def _unfolded(self, waves: Iterable[tuple[int, list[ModelSession]]]) -> Any:
        """Iterate over the requests of rounds, lists taking turns trial by trial."""
        for number, wave in waves:
            self.see(number, wave)
            rounds: dict[int, list[tuple[float, Due]]] = {}
            for session in wave:
                blocks = self._blocks[session.session_id][1]
                begun = self._begin(session)
                for request in begun.requests:
                    trial = session.trial_of(request.work_key)
                    index = int(trial["trial_index"])
                    is_company = request.work_key in begun.stored
                    due = Due(self.place_of(session, trial), session, request, is_company)
                    rounds.setdefault(blocks.of_trial[index], []).append((blocks.share[index], due))
            for block in sorted(rounds):
                shares = rounds.pop(block)
                shares.sort(key=lambda one: one[0])
                ready = [due for _, due in shares]
                if self._arrange is not None:
                    self._arrange((number, block), ready)
                yield list(_bundled(ready, self._bundle))


def _bundled(ready: Sequence[Due], bundle: int | None) -> Iterator[Due]:
    """Iterate over the requests of a round, leaving out bundles of which everything was answered before."""
    if bundle is None:
        yield from ready
        return
    for start in range(0, len(ready), bundle):
        some = ready[start : start + bundle]
        if not all(due.is_company for due in some):
            yield from some
