"""Worker for one model in a run: takes its missing trials in order, round by round, and stores the engine's replies."""

from __future__ import annotations

import heapq
import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiment.models.api.retrying import RunStopped
from experiment.models.costs import Price
from experiment.models.engine import UNFINISHED, Engine, Reply, Request
from experiment.models.journal import ModelCalls
from experiment.models.planning import ModelSession, calls_before, told_of
from experiment.models.runs.context_overflow import flagged
from experiment.models.runs.limits import Gate, Stop
from experiment.models.runs.recording import Recording, ServedModel
from experiment.models.runs.remaining_work import Blocks, Round, Survey, waves
from experiment.models.settings import ModelSettings
from stimuli.seeds import generator

AHEAD_OF_SERVERS = 0.5
"""Share of a block that a waiting server model must be allowed before it continues, so that it does not stop after each trial."""

_SUMMED = ("tokens_forwarded", "tokens_of_check")
"""Counts that an engine totals since it was opened."""


@dataclass
class PlannedModel:
    """One model of a run with its plan."""

    reader: str  # its name in the study
    settings: ModelSettings
    engine: Engine
    plan: Callable[[], Iterable[ModelSession]]  # returns its sessions from the first; the same each time
    found: Survey
    price: Price


class ModelWorker:
    """Prompts one model."""

    def __init__(
        self,
        model: PlannedModel,
        recording: Recording,
        calls: ModelCalls,
        stop: Stop,
        *,
        most_trials: int | None = None,
        seed: int = 0,
    ) -> None:
        self.model, self.recording, self.calls, self.stop = model, recording, calls, stop
        self.reader, self.settings, self.found = model.reader, model.settings, model.found
        self.asked_trials = 0
        self.waits: str | None = None  # the part of the run that it waits for
        self.served: ServedModel | None = None  # checks which model a user's own server reports to be
        self.out: set[str] = set()  # work keys of requests that are pending in a batch and are not sent
        self.computed: Callable[[], None] = lambda: None  # called after each block of a local model
        self._most_trials, self._seed = most_trials, seed
        self._enough: str | None = None
        self._streams = model.settings.kind == "openai"
        self._is_timed = bool(model.settings.options.get("timing"))
        self._in_flight = InFlightRequests()
        self._earlier: dict[str, object] | None = None
        self._gate: Gate | None = None
        self._pending = self._to_ask({})
        self._has_paused = True
        self._fault: RunStopped | None = None
        self._keeps_journal = hasattr(model.engine, "calls")
        self._equip()

    @property
    def engine(self) -> Engine:
        """The current engine."""
        return self.model.engine

    @property
    def full(self) -> str | None:
        """Why no further trial is sent although some remain."""
        return self._enough or self.calls.full

    def _equip(self) -> None:
        """Give the journal to an engine that records its calls by itself."""
        engine: Any = self.engine
        if self._keeps_journal:
            engine.calls, engine.has_answered = self.calls, self.found.stored > 0

    def replace_engine(self, engine: Engine) -> None:
        """Continue with the same model in a new engine."""
        self._earlier = self.describe()
        self.model.engine = engine
        self._equip()

    def describe(self) -> dict[str, object]:
        """Return the engine's description; for a new engine that was not used yet, that of the previous one."""
        now, earlier = self.engine.describe(), self._earlier
        if earlier is None:
            return now
        latest = earlier if now.get("parameters") is None else now
        return {**latest, **{name: _number(now, name) + _number(earlier, name) for name in _SUMMED}}

    def ready(self, order: dict[Round, int]) -> Iterator[tuple[ModelSession, Request]]:
        """Yield all requests that can be sent now, round by round."""
        pending = self._to_ask(order)
        while pending.peek() is not None:
            due = pending.pop()
            yield due.session, due.request

    def work(
        self,
        gate: Gate,
        order: dict[Round, int],
        turns: threading.Lock | None,
        release: Callable[[], None],
    ) -> None:
        """Prompt for everything that is missing, within the limits."""
        self._gate, self._pending = gate, self._to_ask(order)
        ahead = AHEAD_OF_SERVERS if turns is None and self._streams else 1.0
        try:
            while not self.stop.is_asked and self.full is None and self._pending.peek() is not None:
                self._advance()
                self.waits = "for models that are a block behind"
                if not gate.wait(self.reader, self._pending.place, self.stop, ahead=ahead):
                    break
                self.waits = None
                if turns is None and self._streams:
                    self._answer(self._stream())
                else:
                    self._turn(gate, turns, release)
        finally:
            self.waits = None
            gate.leave(self.reader)
            self._pending.close()
            self.recording.settle(0)

    def _stream(self) -> Iterator[Request]:
        """Yield requests while they may be sent without waiting."""
        self._has_paused = False
        assert self._gate is not None
        while (due := self._pending.peek()) is not None and self._gate.may_ask(self.reader, due.place):
            self._pending.pop()
            if not self._register(due.session, due.request, due.place):
                break
            yield due.request
        self._has_paused = True

    def _block(self, gate: Gate) -> list[Request]:
        """Return the requests of the next block of each list."""
        requests: list[Request] = []
        while (due := self._pending.peek()) is not None and gate.may_ask(self.reader, due.place):
            if self.stop.is_asked or self.full is not None:
                break
            self._pending.pop()
            if not self._register(due.session, due.request, due.place):
                break
            requests.append(due.request)
        return requests

    def _turn(self, gate: Gate, turns: threading.Lock | None, release: Callable[[], None]) -> None:
        """Complete blocks while the others are not behind: the last in a round is the first in the next."""
        if turns is not None:
            self.waits = "for its turn"
            while not turns.acquire(timeout=0.25):
                if self.stop.is_asked:
                    return
            self.waits = None
        has_worked = False
        try:
            while not self.stop.is_asked and self.full is None:
                due = self._pending.peek()
                if due is None or not gate.may_ask(self.reader, due.place, ahead=1.0):
                    break
                block = self._block(gate)
                if not block:
                    break
                has_worked = True
                try:
                    self._answer(block)
                except Exception as fault:
                    if not (self.stop.is_asked and self.settings.kind == "hf" and _is_closing(fault)):
                        raise
                self.recording.write_held()
                self._advance()
                self.computed()
        finally:
            if turns is not None:
                if has_worked:
                    release()
                turns.release()

    def _advance(self) -> None:
        """Record this model's progress for the others."""
        if self._gate is not None:
            self._gate.advance(self.reader, min(self._in_flight.first, self._pending.place))

    def _waves(self) -> Iterator[tuple[int, list[ModelSession]]]:
        """Yield the incomplete waves with their numbers."""
        lacking = {wave for (wave, _), count in self.found.missing.items() if count > 0}
        if not lacking:
            return
        last = max(lacking)
        for number, wave in enumerate(waves(self.model.plan())):
            if number in lacking:
                yield number, wave
            if number == last:
                return

    def _to_ask(self, order: dict[Round, int]) -> Pending:
        """Return the remaining requests in order."""

        def shuffle(number: Round, ready: list[Due]) -> None:
            generator(self._seed, "timing", self.reader, *number).shuffle(ready)

        return Pending(
            self._waves(), self._begin, order, whole=self._is_timed,
            arrange=shuffle if self._is_timed else None,
        )  # fmt: skip

    def _begin(self, session: ModelSession) -> Sequence[Request]:
        """Return the requests that follow from a session's stored answers; none if its conversation has ended."""
        if session.session_id in self.found.ended:
            return []
        stored = self.recording.read(lambda connection: told_of(connection, session.session_id))
        if len(stored) >= len(session):
            return []
        before: dict[str, str] = {}
        if stored or self.found.stored:
            before = self.recording.read(lambda connection: calls_before(connection, session.session_id))
        name = session.session_id
        never = self.recording.read(lambda connection: flagged(connection, [name])).get(name, {})
        self.recording.expect(session.session_id, len(session) - len(stored) - len(never))
        requests = [
            request
            for request in session.begin(stored, before)
            if request.work_key not in self.out
            and session.trial_of(request.work_key)["trial_index"] not in never
        ]
        if self.settings.kind == "baseline":
            self.settings.choices.update(session.choices())  # type: ignore[attr-defined]
            if self.settings.name.startswith("oracle"):
                self.settings.answers.update(session.right_answers())  # type: ignore[attr-defined]
        return requests

    def _register(self, session: ModelSession, request: Request, place: float) -> bool:
        """Register a request to be sent; return False if it may not be."""
        if self.stop.is_asked or self.full is not None:
            return False
        is_new = not self._in_flight.is_second(request)
        if is_new and self._most_trials is not None and self.asked_trials >= self._most_trials:
            self._enough = f"{self._most_trials} trials were run (--max-trials)"
            return False
        if not self._keeps_journal and not self.calls.take(request):
            return False
        self.asked_trials += is_new
        self._in_flight.add(session, request, place)
        return True

    def _answer(self, requests: Iterable[Request]) -> None:
        """Send requests and their follow-ups to the engine, and store the replies."""
        try:
            if self._streams:
                for reply in self.engine.answer(requests, self._follow):  # type: ignore[arg-type]
                    self._keep(reply)
            else:
                request_list = list(requests)
                # a local engine keeps conversations that may continue in memory
                leads_on = self._in_flight.lead_on
                follow = self._follow if leads_on else None
                for reply in self.engine.answer(request_list, follow):
                    self._keep(reply)
        finally:
            self._in_flight.clear()
            self.calls.end()
        if self._fault is not None:
            raise self._fault

    def _follow(self, reply: Reply) -> list[Request]:
        if self.stop.is_asked or reply.work_key not in self._in_flight:
            return []
        session, _, place = self._in_flight[reply.work_key]
        now = []
        for request in session.follow(reply):
            if request.work_key.partition(":")[0] == reply.work_key.partition(":")[0]:
                if self._register(session, request, place):
                    now.append(request)
            else:
                now += self._turn_of(session, request)
        if self._streams and self._has_paused:
            now += self._stream()
        return now

    def _turn_of(self, session: ModelSession, request: Request) -> list[Request]:
        """Return the next turn of a conversation if it may be sent now; otherwise queue it."""
        place = self._pending.place_of(session, session.trial_of(request.work_key))
        if self._gate is not None and self._gate.may_ask(self.reader, place):
            return [request] if self._register(session, request, place) else []
        self._pending.put(Due(place, session, request))
        return []

    def _keep(self, reply: Reply) -> None:
        if reply.work_key not in self._in_flight:
            return
        session, request, place = self._in_flight[reply.work_key]
        self._in_flight.forget(reply.work_key)
        if self.settings.kind == "baseline":
            self.settings.choices.pop(reply.work_key, None)  # type: ignore[attr-defined]
            self.settings.answers.pop(reply.work_key, None)  # type: ignore[attr-defined]
        cost = self.calls.settle(reply)
        if self.served is not None:
            try:
                self.served.require(reply.resolved_model)
            except RunStopped as fault:
                # no answer of another model is stored, or taken from the journal later; those of the right one still are
                self.calls.discard_trial(reply.work_key)
                if not reply.from_cache:
                    self._fault = self._fault or fault
                    self.engine.close()
                    return
                error = f"the reply that an earlier run received is not of this model: {fault.message}"
                reply = replace(reply, text=None, status="error", error=error)
        self.recording.keep(session, request, reply, cost=cost)
        self._in_flight.came(place)
        self._advance()
        if reply.status not in UNFINISHED and ":" not in reply.work_key:
            number = self._pending.round_of(session, session.trial_of(reply.work_key))
            if number in self.found.missing:
                self.found.missing[number] -= 1


def _number(description: Mapping[str, object], name: str) -> int:
    value = description.get(name)
    return value if isinstance(value, int) else 0


def _is_closing(fault: Exception) -> bool:
    """Return whether a fault only means that a local model was closed before its first pass."""
    from experiment.models.local.causal_model import Closed

    return isinstance(fault, Closed)


BEFORE = ("unscramble", "reason")
"""Purposes of calls before a trial's answer."""

Known = tuple[ModelSession, Request, float]
"""Session, request, and the place of its trial in the run."""


class InFlightRequests:
    """Requests by work key; a trial's earlier calls are remembered until its answer arrives."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._open: Counter[float] = Counter()
        self._places: list[float] = []

    def __contains__(self, work_key: str) -> bool:
        return work_key in self._known

    def __getitem__(self, work_key: str) -> Known:
        return self._known[work_key]

    def add(self, session: ModelSession, request: Request, place: float) -> None:
        """Register a request that is to be sent."""
        self._known[request.work_key] = (session, request, place)
        if not self._open[place]:
            heapq.heappush(self._places, place)
        self._open[place] += 1

    def is_second(self, request: Request) -> bool:
        """Return whether a request belongs to a trial that another request began."""
        return ":" not in request.work_key and any(
            f"{request.work_key}:{purpose}" in self._known for purpose in BEFORE
        )

    def forget(self, work_key: str) -> None:
        """Remove an answered request; with a trial's answer its earlier calls are removed, too."""
        if ":" not in work_key:
            for name in (work_key, *(f"{work_key}:{purpose}" for purpose in BEFORE)):
                self._known.pop(name, None)

    def came(self, place: float) -> None:
        """Record that a reply at a place was stored."""
        self._open[place] -= 1

    @property
    def first(self) -> float:
        """The first place with an outstanding reply; infinite if there is none."""
        while self._places and not self._open[self._places[0]]:
            self._open.pop(heapq.heappop(self._places), None)
        return self._places[0] if self._places else math.inf

    @property
    def lead_on(self) -> bool:
        """Whether a reply to any of them may have follow-up requests."""
        return any(session.leads_on for session, _, _ in self._known.values())

    def clear(self) -> None:
        """Remove all requests."""
        self._known.clear()
        self._open.clear()
        self._places.clear()


@dataclass(frozen=True, slots=True)
class Due:
    """A request that can be sent."""

    place: float  # place of its trial in the run (gate)
    session: ModelSession
    request: Request


class Pending:
    """The requests of a model that can be sent and were not taken yet."""

    def __init__(
        self,
        waves: Iterable[tuple[int, list[ModelSession]]],
        begin: Callable[[ModelSession], Sequence[Request]],
        order: Mapping[Round, int],
        *,
        whole: bool = False,
        arrange: Callable[[Round, list[Due]], None] | None = None,
    ) -> None:
        self._begin, self._order = begin, order
        self._whole, self._arrange = whole, arrange
        self._blocks: dict[str, tuple[int, Blocks]] = {}
        self._before = -1
        self._rounds = self._unfolded(waves)
        self._now: deque[Due] = deque()
        self._later: list[tuple[float, int, Due]] = []
        self._count = 0

    def place_of(self, session: ModelSession, trial: Mapping[str, Any]) -> float:
        """Return the place of a trial of an active session in the run."""
        if session.session_id not in self._blocks:
            return 0.0
        index = int(trial["trial_index"])
        wave, blocks = self._blocks[session.session_id]
        number = self._order.get((wave, blocks.of_trial[index]), 0)
        return float(number) if self._whole else number + blocks.share[index]

    def round_of(self, session: ModelSession, trial: Mapping[str, Any]) -> Round | None:
        """Return the round of a trial of an active session."""
        if session.session_id not in self._blocks:
            return None
        wave, blocks = self._blocks[session.session_id]
        return (wave, blocks.of_trial[int(trial["trial_index"])])

    def peek(self) -> Due | None:
        """Return the next request; None if all were taken."""
        while not self._now and (next_round := next(self._rounds, None)) is not None:
            self._now.extend(next_round)
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
        """Queue a follow-up turn whose place is not reached yet."""
        self._count += 1
        heapq.heappush(self._later, (due.place, self._count, due))

    @property
    def place(self) -> float:
        """The place of the next request; infinite if there is none."""
        due = self.peek()
        return math.inf if due is None else due.place

    def close(self) -> None:
        """Read no further session."""
        self._rounds.close()

    def _unfolded(self, waves: Iterable[tuple[int, list[ModelSession]]]) -> Any:
        """Yield the requests of rounds, alternating between lists trial by trial."""
        for number, wave in waves:
            # requests of the previous wave may still be in flight
            self._blocks = {
                name: blocks for name, blocks in self._blocks.items() if blocks[0] >= self._before
            }
            self._before = number
            self._blocks |= {session.session_id: (number, Blocks(session)) for session in wave}
            rounds: dict[int, list[tuple[float, Due]]] = {}
            for session in wave:
                blocks = self._blocks[session.session_id][1]
                for request in self._begin(session):
                    trial = session.trial_of(request.work_key)
                    index = int(trial["trial_index"])
                    due = Due(self.place_of(session, trial), session, request)
                    rounds.setdefault(blocks.of_trial[index], []).append((blocks.share[index], due))
            for block in sorted(rounds):
                shares = rounds.pop(block)
                shares.sort(key=lambda share: share[0])
                ready = [due for _, due in shares]
                if self._arrange is not None:
                    self._arrange((number, block), ready)
                yield ready
