"""One model in a run: takes its missing trials round by round, has the engine answer them, and writes what comes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

from experiment.models.api.retrying import RunStopped
from experiment.models.engine import UNFINISHED, Engine, Reply, Request
from experiment.models.money import Allowance, Price, Purse
from experiment.models.planning import ModelSession, calls_before, told_of
from experiment.models.runs.gate import Gate
from experiment.models.runs.limits import Stop, most_tokens
from experiment.models.runs.planned import Blocks, Round, Survey, is_talk, kind_of, waves
from experiment.models.runs.recording import Recording
from experiment.models.settings import ModelSettings
from experiment.store import Store
from stimuli.seeds import generator

TURN_S = 20.0
"""How long a model on this machine works before the next has its turn."""

MOST_ROUNDS = 4096
"""Rounds in one turn at most."""

Plan = Callable[[], Iterable[ModelSession]]


class Asking:
    """Asks one model.

    Parameters
    ----------
    plan : callable
        Gives the model's sessions from the first; the same each time.
    most_trials : int or None
    told : callable
        Called after each answer.
    """

    def __init__(
        self,
        reader: str,
        settings: ModelSettings,
        engine: Engine,
        plan: Plan,
        found: Survey,
        store: Store,
        recording: Recording,
        *,
        price: Price,
        purse: Purse,
        tokens: Allowance | None,
        stop: Stop,
        most_trials: int | None = None,
        told: Callable[[], None] = lambda: None,
        seed: int = 0,
    ) -> None:
        self.reader, self.settings, self.engine = reader, settings, engine
        self.plan, self.found, self.store, self.recording = plan, found, store, recording
        self.price, self.purse, self.tokens, self.stop = price, purse, tokens, stop
        self.costs: dict[str, list[float]] = {}
        self.round_seconds: float | None = None
        self.stride = 1
        self.in_group = 1
        self.asked_trials = 0
        self.full: str | None = None
        self._most_trials = most_trials
        self._told = told
        self._seed = seed
        self._asked: dict[str, tuple[ModelSession, Request, Round]] = {}
        self._taken: dict[str, tuple[float, int]] = {}
        self._later: dict[Round, list[tuple[ModelSession, Request]]] = {}
        self._blocks: dict[str, tuple[int, Blocks]] = {}
        self._now: Round = (-1, -1)
        self._gate: Gate | None = None
        self._order: dict[Round, int] = {}
        self._open: Counter[int] = Counter()
        self._wanted = 0
        self._is_probe = False
        self._paid = not price.is_free
        self._allows = hasattr(engine, "allow")
        self._equip(engine)

    def _equip(self, engine: Engine) -> None:
        """Give an engine that pays by itself its price and its purse."""
        if self._allows:
            engine.price = self.price.of  # type: ignore[attr-defined]
            if self._paid or self.tokens is not None:
                engine.allow = self._allow  # type: ignore[attr-defined]

    def replace_engine(self, engine: Engine) -> None:
        """Go on with the same model opened anew."""
        self.engine = engine
        self._equip(engine)

    # the probe

    def probe(self, count: int) -> None:
        """Ask some trials, spread over kinds and lists, before all others; their answers count."""
        wave = next((one for number, one in self._waves()), None)
        if wave is None:
            return
        by_kind: dict[str, list[tuple[ModelSession, Request]]] = {}
        lists = [[(session, request) for request in self._begin(session)] for session in wave]
        for place in range(max(map(len, lists), default=0)):
            for session, request in (one[place] for one in lists if place < len(one)):
                by_kind.setdefault(kind_of(session.trial_of(request.work_key)), []).append((session, request))
        chosen: list[tuple[ModelSession, Request]] = []
        for kind in by_kind.values():
            kind.reverse()
        while len(chosen) < count and any(by_kind.values()):
            chosen += [kind.pop() for kind in by_kind.values() if kind][: count - len(chosen)]
        self._is_probe = True
        try:
            self._answer([request for session, request in chosen if self._register(session, request)])
        finally:
            self._is_probe = False
            self._later.clear()
        self.recording.settle(0)

    def ready(self, order: dict[Round, int]) -> Iterator[tuple[ModelSession, Request]]:
        """Iterate over all requests that can be sent now, round by round."""
        for _, ready in self._rounds(order):
            yield from ready

    # the work

    def work(
        self,
        gate: Gate,
        order: dict[Round, int],
        turns: threading.Lock | None,
        release: Callable[[], None],
        on_fault: Callable[[], None],
    ) -> None:
        """Ask for everything that is missing, as far as limits allow.

        Parameters
        ----------
        order : mapping of Round to int
            Numbers of the rounds, the same for all models of the run.
        turns : Lock or None
            Held while a model on this machine works; None for one elsewhere.
        release : callable
            Called at the end of a turn.
        on_fault : callable
            Called where the model can go on no more, before the others go on without it.
        """
        self._gate, self._order = gate, order
        streams = self.settings.kind == "openai"
        rounds = self._rounds(order)
        waiting: list[tuple[Round, list[tuple[ModelSession, Request]]]] = []

        def next_round() -> tuple[Round, list[tuple[ModelSession, Request]]] | None:
            if not waiting:
                one = next(rounds, None)
                if one is None:
                    return None
                waiting.append(one)
            return waiting[0]

        def stream() -> Iterator[Request]:
            """Yield the requests of rounds as long as these may begin without waiting."""
            while (one := next_round()) is not None:
                if not self._may_begin(gate, order[one[0]]):
                    return
                waiting.pop()
                yield from self._requests_of(*one)
                if is_talk(one[1][0][0]):
                    return

        try:
            while not self.stop.is_asked and self.full is None and (one := next_round()) is not None:
                gate.advance(self.reader, order[one[0]])
                if not gate.wait(self.reader, order[one[0]], self.stop):
                    break
                if streams:
                    self._answer(stream())
                    continue
                self._turn(gate, order, turns, next_round, waiting, release)
        except BaseException:
            on_fault()
            raise
        finally:
            gate.leave(self.reader)
            rounds.close()
            self.recording.settle(0)

    def _may_begin(self, gate: Gate, number: int, *, in_turn: int = 0) -> bool:
        """Say whether a round may begin; the rounds that this model has open are not finished yet."""
        self._wanted = number
        if not in_turn:
            gate.advance(self.reader, min(self._open, default=number))
        return gate.may_begin(self.reader, number)

    def _turn(
        self, gate: Gate, order: dict[Round, int], turns: threading.Lock | None, next_round: Any, waiting: list[Any],
        release: Callable[[], None],
    ) -> None:  # fmt: skip
        """Do several rounds at once, as many as fit a turn."""
        if turns is not None:
            while not turns.acquire(timeout=0.25):
                if self.stop.is_asked:
                    return
        try:
            batch: list[Request] = []
            count = 0
            while count < self.stride and (one := next_round()) is not None:
                if not self._may_begin(gate, order[one[0]], in_turn=count):
                    break
                waiting.pop()
                batch += self._requests_of(*one)
                count += 1
                if one[1] and is_talk(one[1][0][0]):
                    break
            self.in_group = count
            began = time.monotonic()
            if batch:
                self._answer(batch)
            took = time.monotonic() - began
            if count:
                self.round_seconds = max(1e-4, took / count)
                self.stride = min(MOST_ROUNDS, max(1, int(TURN_S / self.round_seconds)), 4 * self.stride)
                gate.slack = max(gate.slack, self.stride - 1)
        finally:
            self.in_group = 1
            if turns is not None:
                release()
                turns.release()

    def _waves(self) -> Iterator[tuple[int, list[ModelSession]]]:
        """Iterate over the waves that lack something, with their numbers."""
        lacking = {wave for wave, _ in self.found.missing}
        if not lacking:
            return
        last = max(lacking)
        for number, wave in enumerate(waves(self.plan())):
            if number in lacking:
                yield number, wave
            if number == last:
                return

    def _rounds(self, order: dict[Round, int]) -> Generator[tuple[Round, list[tuple[ModelSession, Request]]]]:
        """Iterate over rounds with the requests that can be sent, lists taking turns trial by trial."""
        for number, wave in self._waves():
            self._blocks.clear()
            by_block: dict[int, list[list[tuple[ModelSession, Request]]]] = {}
            for session in wave:
                blocks = Blocks(session)
                self._blocks[session.session_id] = (number, blocks)
                mine: dict[int, list[tuple[ModelSession, Request]]] = {}
                for request in self._begin(session):
                    index = int(session.trial_of(request.work_key)["trial_index"])
                    mine.setdefault(blocks.of_trial[index], []).append((session, request))
                for block, requests in mine.items():
                    by_block.setdefault(block, []).append(requests)
            numbers = sorted(block for wave_number, block in order if wave_number == number)
            for block in numbers:
                lists = by_block.pop(block, [])
                longest = max(map(len, lists), default=0)
                ready = [one[place] for place in range(longest) for one in lists if place < len(one)]
                ready += self._later.pop((number, block), [])
                if ready:
                    yield (number, block), ready

    def _begin(self, session: ModelSession) -> Sequence[Request]:
        """Return the requests that a session's stored answers leave."""
        with self.store.read() as connection:
            stored = told_of(connection, session.session_id)
            if len(stored) >= len(session):
                return []
            before = calls_before(connection, session.session_id) if stored or self.found.stored else {}
        self.recording.expect(session.session_id, len(session) - len(stored))
        requests = session.begin(stored, before)
        if self.settings.kind == "baseline" and self.settings.name.startswith("oracle"):
            self.settings.answers.update(session.right_answers())  # type: ignore[attr-defined]
        return requests

    def _requests_of(self, number: Round, ready: Sequence[tuple[ModelSession, Request]]) -> Iterator[Request]:
        self._now = number
        if self.settings.options.get("timing"):
            ready = list(ready)
            generator(self._seed, "timing", self.reader, *number).shuffle(ready)
        for session, request in ready:
            if not self._register(session, request):
                return
            yield request

    # one request

    def _register(self, session: ModelSession, request: Request) -> bool:
        """Note that a request is to be sent; False where it may not."""
        if self.stop.is_asked or self.full is not None:
            return False
        is_new = not self._is_second(request)
        if is_new and self._most_trials is not None and self.asked_trials >= self._most_trials:
            self.full = f"{self._most_trials} trials were asked (--max-trials)"
            return False
        if not self._allows and not self._take(request):
            self.full = self._refusal()
            return False
        self.asked_trials += is_new
        number = self._round_of(session, request, self._now)
        self._asked[request.work_key] = (session, request, number)
        self._open[self._order.get(number, 0)] += 1
        return True

    def _is_second(self, request: Request) -> bool:
        """Say whether a request belongs to a trial that another request began."""
        return ":" not in request.work_key and any(
            f"{request.work_key}:{purpose}" in self._asked for purpose in ("unscramble", "reason")
        )

    def _take(self, request: Request) -> bool:
        """Set aside what a request can cost and use at most."""
        most = self.price.most(request)
        if not self.purse.take(most):
            return False
        count = 0 if self.tokens is None else most_tokens(request)
        if self.tokens is not None and not self.tokens.take(count):
            self.purse.untake(most)
            return False
        self._taken[request.work_key] = (most, count)
        return True

    def _refusal(self) -> str:
        return self.purse.why or "the tokens of this command (--max-tokens) are used"

    async def _allow(self, request: Request) -> bool:
        """Wait until there is money for a request: what is under way gives back what it did not cost."""
        while not self.stop.is_asked:
            if self.purse.has(self.price.most(request)):
                taken = self._take(request)
            else:
                taken = await asyncio.to_thread(self._take, request)
            if taken:
                return True
            shared = (self.purse.limit, self.tokens)
            if not self._taken and not any(one is not None and one.is_awaited for one in shared):
                self.full = self._refusal()
                return False
            await asyncio.sleep(0.05)
        return False

    def _answer(self, requests: Iterable[Request]) -> None:
        """Have the engine answer requests and what follows from them, and write what comes."""
        if self.settings.kind == "openai" and self._is_probe is False:
            given: Any = requests
            leads_on = True
        else:
            given = list(requests)
            # a local engine keeps in memory what replies may lead on from
            leads_on = any(self._asked[request.work_key][0].leads_on for request in given)
        try:
            for reply in self.engine.answer(given, self._follow if leads_on else None):
                self._keep(reply)
        finally:
            self._asked.clear()
            self._open.clear()
            # requests that were sent and never came back: what was set aside for them stays counted
            self._taken.clear()

    def _follow(self, reply: Reply) -> list[Request]:
        session, _, number = self._asked[reply.work_key]
        if self.stop.is_asked:
            return []
        now = []
        for request in session.follow(reply):
            own = self._round_of(session, request, number)
            is_same_trial = request.work_key.partition(":")[0] == reply.work_key.partition(":")[0]
            if own <= self._now or is_same_trial:
                if (not self._is_probe or is_same_trial) and self._register(session, request):
                    now.append(request)
            else:
                self._later.setdefault(own, []).append((session, request))
        return now

    def _round_of(self, session: ModelSession, request: Request, number: Round) -> Round:
        if session.session_id not in self._blocks:
            return number
        wave, blocks = self._blocks[session.session_id]
        return (wave, blocks.of_trial[int(session.trial_of(request.work_key)["trial_index"])])

    def _keep(self, reply: Reply) -> None:
        session, request, number = self._asked[reply.work_key]
        if ":" not in reply.work_key:
            self._asked.pop(reply.work_key)
            if self.settings.answers:
                self.settings.answers.pop(reply.work_key, None)  # type: ignore[attr-defined]
        self._finish_in_round(self._order.get(number, 0))
        most, count = self._taken.pop(reply.work_key, (0.0, 0))
        cost = self._cost(reply, most)
        self.recording.keep(session, request, reply, most=most, cost=cost)
        if cost is not None:
            self.purse.give_back(most, cost)
        if self.tokens is not None and count:
            used = (reply.prompt_tokens or 0) + (reply.completion_tokens or 0)
            self.tokens.give_back(count, 0 if reply.from_cache else used)
        if reply.status not in UNFINISHED:
            trial = session.trial_of(reply.work_key)
            if cost is not None and not reply.from_cache:
                self.costs.setdefault(kind_of(trial), []).append(cost)
            if ":" not in reply.work_key:
                self._note_done(session, trial, number)
        self._told()

    def _finish_in_round(self, number: int) -> None:
        """Note an answer of a round, and tell the others once the round is finished."""
        self._open[number] -= 1
        if self._open[number] <= 0:
            del self._open[number]
            if self._gate is not None:
                self._gate.advance(self.reader, min(self._open, default=self._wanted))

    def _note_done(self, session: ModelSession, trial: Any, number: Round) -> None:
        kind = kind_of(trial)
        self.found.kinds[kind] = max(0, self.found.kinds[kind] - 1)
        if session.session_id in self._blocks:
            wave, blocks = self._blocks[session.session_id]
            number = (wave, blocks.of_trial[int(trial["trial_index"])])
        if number in self.found.missing and not self._is_probe:
            self.found.missing[number] -= 1

    def _cost(self, reply: Reply, most: float) -> float | None:
        """Return what a reply cost; the most it can have cost where the server did not count, None where it is unknown."""
        if not self._paid or reply.from_cache:
            return 0.0
        known = reply.cost_usd if reply.cost_usd is not None else self.price.of(reply)
        if known is not None:
            return known
        if reply.status == "timeout":
            return None
        return 0.0 if reply.status == "error" else most


__all__ = ["TURN_S", "Asking", "RunStopped"]
