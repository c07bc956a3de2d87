"""Worker for one model in a run: takes its missing trials in order, round by round, and stores the engine's replies.

A submitted batch is billed whether or not it is collected: the most that each request can cost is in the journal before the
batch is created, and its cost once it was fetched, whether a trial takes the answer or not.
"""

from __future__ import annotations

import heapq
import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import update

from experiment.models.api.batch import Batch, BatchApi, Ledger, costs_of, is_answered
from experiment.models.api.retrying import RunStopped
from experiment.models.costs import Price, format_usd
from experiment.models.engine import UNFINISHED, Engine, ModelSettings, Reply, Request
from experiment.models.journal import Journal, ModelCalls, begin_batch, settle_batch, total_of
from experiment.models.planning.plans import told_of
from experiment.models.planning.session import ModelSession
from experiment.models.runs.limits import Gate, Stop
from experiment.models.runs.recording import WORDS, Recording, ServedModel
from experiment.models.runs.remaining_work import Blocks, Round, Survey, waves
from experiment.store import Store
from experiment.store.tables import reservations
from stimuli.errors import UserError
from stimuli.seeds import generator

Say = Callable[[str], None]

AHEAD_OF_SERVERS = 0.5
"""Share of a block that a waiting server model must be allowed before it continues, so that it does not stop after each trial."""

_SUMMED = ("tokens_forwarded", "tokens_of_check")
"""Counts that an engine totals since it was opened."""


def batch_price(price: Price) -> Price:
    """Return a model's price in a batch."""
    share = price.batch
    return replace(
        price,
        input=price.input * share,
        cached_input=price.cached_input * share,
        output=price.output * share,
        batch=1.0,
    )


class Batches:
    """The batches of one model (``who``: study, reader and run) in one run, with their money."""

    def __init__(
        self,
        settings: ModelSettings,
        store: Store,
        price: Price,
        journal: Journal | None,
        who: tuple[str, str, str],
        say: Say,
    ) -> None:
        self._settings, self._store, self._price = settings, store, batch_price(price)
        self._journal, (self._study, self._reader, self._run_id) = journal, who
        self._say = say

    @property
    def are_there(self) -> bool:
        """Whether this model ever had a batch in this study."""
        return self._settings.kind == "openai" and bool(self._ledger.batches)

    @property
    def _ledger(self) -> Ledger:
        return Ledger(self._settings)

    def look(self, *, cancels: bool = False) -> None:
        """Fetch and record finished batches, whatever the study's current settings; cancel pending ones first if requested."""
        if not self.are_there:
            return
        if cancels:
            BatchApi(self._settings, self._settle).cancel(self._reader)
        if any(not batch.is_collected for batch in self._ledger.batches):
            BatchApi(self._settings, self._settle).fetch()
        if cancels:
            self._decide(self._own())
            for pending in self._own():
                self._say(f"{self._reader}: {pending}")

    def take(
        self,
        plan: Callable[[], Iterable[ModelSession]],
        surveyed: Survey,
        recording: Recording,
        *,
        refuses: bool,
    ) -> int:
        """Store fetched answers in a plan's trials, report those that no trial takes, and return the number stored."""
        if not self.are_there:
            return 0
        keys_by_batch = self._named()
        wanted = {key.partition(":")[0] for keys in keys_by_batch.values() for key in keys}
        requests: dict[str, tuple[ModelSession, Request]] = {}
        planned: set[str] = set()
        for session in plan() if wanted else ():
            keys_of_session = wanted.intersection(session.keys)
            if keys_of_session:
                planned |= keys_of_session
                begun = recording.begin(session, len(surveyed.never.get(session.session_id, ())))
                requests |= {request.work_key: (session, request) for request in begun}
        self._check(keys_by_batch, planned, refuses=refuses)
        taken = 0
        failed: Counter[str] = Counter()
        api = BatchApi(self._settings, self._settle)
        for reply in api.collect(
            (request for _, request in requests.values()), stored=lambda: recording.settle(0)
        ):
            session, request = requests[reply.work_key]
            if reply.status in UNFINISHED:
                failed[(reply.error or reply.status).splitlines()[0][:WORDS]] += 1
            cost = self._price.of(reply)
            if cost is None:
                # requests that the provider did not process cost nothing; an answer without token counts may have cost the most
                cost = 0.0 if reply.status in UNFINISHED else self._price.most(request)
            recording.keep(session, request, reply, cost=cost)
            taken += 1
        recording.settle(0)
        for reason, count in failed.items():
            self._say(
                f"{self._reader}: {count} requests of a batch brought no answer and are repeated: {reason}"
            )
        return taken

    def out(self) -> set[str]:
        """Return the work keys of submitted requests that have no answer yet."""
        ledger = self._ledger
        return {key for batch in ledger.batches if not batch.is_collected for key in ledger.keys(batch)}

    def leave_out(
        self, plan: Callable[[], Iterable[ModelSession]], surveyed: Survey, recording: Recording
    ) -> set[str]:
        """Subtract pending requests from a run's survey and report them; return their work keys."""
        pending = self.out() if self.are_there else set()
        wanted = {key.partition(":")[0] for key in pending}
        theirs: set[str] = set()
        for number, wave in enumerate(waves(plan())) if pending else ():
            for session in wave:
                keys_of_session = wanted.intersection(session.keys)
                if not keys_of_session:
                    continue
                stored = recording.read(partial(told_of, session_id=session.session_id))
                blocks = Blocks(session).of_trial
                for key in keys_of_session:
                    trial = session.trial_of(key)
                    if trial["trial_index"] in stored:
                        continue
                    theirs.add(key)
                    place = (number, blocks[trial["trial_index"]])
                    surveyed.missing[place] = surveyed.missing.get(place, 0) - 1
                    surveyed.out[place] += 1
        own_pending = {key for key in pending if key.partition(":")[0] in theirs}
        if own_pending:
            names = ", ".join(batch.name for batch in self._ledger.open) or "fetched soon"
            self._say(
                f"{self._reader}: {len(own_pending)} requests are out in a batch ({names}) and are not sent again; give "
                "the same command later, or --batch, to collect them, or --cancel-batches to give them up"
            )
        return own_pending

    def hand_over(
        self, requests: Iterable[Request], dialect: Any, *, budget: float | None, limit: float | None
    ) -> tuple[int, str]:
        """Submit the missing requests that the budget allows, after earlier batches; return their number and a message."""
        if self._settings.kind != "openai":
            raise UserError(
                f"{self._settings.use} has no batches",
                mend="Leave out --batch; it is for models behind OpenAI's Batch API.",
            )
        ledger = self._ledger
        if any(not batch.is_collected and batch.reader == self._reader for batch in ledger.batches):
            return 0, str(ledger)
        journal = self._journal
        assert journal is not None
        left = float("inf") if limit is None else limit
        if budget is not None:
            left = min(left, budget - journal.write(lambda connection: total_of(connection, self._study)))
        chosen: list[Request] = []
        for request in requests:
            left -= self._price.most(request)
            if left < 0:
                break
            chosen.append(request)
        else:
            if not chosen:
                return 0, str(ledger)
        if not chosen:
            raise UserError(
                "the money that is left does not suffice for one request of a batch",
                mend="Raise models: budget in the study, or --max-cost.",
                exit_code=1,
            )

        def begin(batch: Batch, most: Mapping[str, float]) -> None:
            whose = (self._study, self._reader, batch.token)
            journal.write(lambda connection: begin_batch(connection, *whose, most))

        api = BatchApi(self._settings, self._settle, dialect)
        api.submit(chosen, reader=self._reader, run_id=self._run_id, most=self._price.most, begin=begin)
        return len(chosen), str(api.ledger)

    def _own(self) -> list[Batch]:
        return [batch for batch in self._ledger.batches if batch.reader in ("", self._reader)]

    def _named(self) -> dict[str, list[str]]:
        """Return the work keys of each batch that is pending or has answers that no trial has taken."""
        ledger = self._ledger
        return {
            batch.token: [str(line.get("custom_id")) for line in ledger.answers(batch)]
            if batch.is_collected
            else ledger.keys(batch)
            for batch in ledger.batches
        }

    def _check(self, named: dict[str, list[str]], planned: set[str], *, refuses: bool) -> None:
        """Report submitted requests that the plan lacks; raise an error if the user has not decided what happens to them."""
        ledger = self._ledger
        strange: list[Batch] = []
        n_pending = n_answered = 0
        for batch in self._own():
            if batch.is_decided:
                continue
            lines = {str(line.get("custom_id")): is_answered(line) for line in ledger.answers(batch)}
            keys = [key for key in named[batch.token] if key.partition(":")[0] not in planned]
            here = [key for key in keys if lines.get(key, not batch.is_collected)]
            if here:
                strange.append(batch)
                n_answered += len(here) if batch.is_collected else 0
                n_pending += 0 if batch.is_collected else len(here)
        if not strange:
            return
        names = ", ".join(batch.name for batch in strange)
        costs = [costs_of(ledger.answers(batch), self._price.of_usage).values() for batch in strange]
        cost = format_usd(sum(cost or 0.0 for of_batch in costs for cost in of_batch))
        fates = [
            f"{n_answered} answers, which cost {cost}" if n_answered else "",
            f"{n_pending} requests that are out" if n_pending else "",
        ]
        description = " and ".join(filter(None, fates))
        if refuses:
            raise UserError(
                f"{self._reader} has changed: a batch ({names}) was submitted under another plan or other settings, and "
                f"it matches no trial of the plan: {description}; the cost is recorded",
                mend="Undo the change, and they are stored; or give the model another name in the study; or set "
                "--if-changed set_aside or keep_both to continue without them; --cancel-batches cancels pending batches.",
                exit_code=1,
            )
        self._say(
            f"{self._reader}: {description} match no trial of the plan ({names}); the cost is recorded, and the replies are kept in "
            "batches/ and stored if the plan includes their trials again"
        )
        self._decide(strange)

    def _decide(self, batches: Iterable[Batch]) -> None:
        ledger, tokens = self._ledger, {batch.token for batch in batches}
        for batch in ledger.batches:
            batch.is_decided = batch.is_decided or batch.token in tokens
        ledger.save()

    def _settle(self, batch: Batch, lines: Sequence[Mapping[str, Any]] | None) -> None:
        """Record what a batch that has ended cost; the most that it can have cost if its provider does not know it any more."""
        assert self._journal is not None
        costs = None if lines is None else costs_of(lines, self._price.of_usage)
        whose = (self._study, batch.reader or self._reader, batch.token)
        self._journal.write(lambda connection: settle_batch(connection, *whose, costs, batch.most_usd))
        # the sum that an earlier version had set aside for it
        earlier = update(reservations).where(
            reservations.c.study == self._study, reservations.c.name == f"batch-{batch.run_id}"
        )
        self._store.write(
            lambda connection: connection.execute(earlier.values(state="closed", open_usd=0.0)).rowcount
        ).result()


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
        self, gate: Gate, order: dict[Round, int], turns: threading.Lock | None, release: Callable[[], None]
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
                block = list(self._stream())
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
        never = self.found.never.get(session.session_id, {})
        requests = [
            request
            for request in self.recording.begin(session, len(never))
            if request.work_key not in self.out
            and session.trial_of(request.work_key)["trial_index"] not in never
        ]
        if requests and self.settings.kind == "baseline":
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
