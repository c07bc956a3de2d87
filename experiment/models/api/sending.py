"""Requests in flight on one event loop: each is sent when the limiter allows it, and returns answered or recorded as failed.

A run ends when many requests in a row fail for the same reason, since its set-up is then wrong. If a server is known to answer
this model, its refusals concern the prompts, not the set-up: the remaining requests are still sent. A failure that may be
billed is not retried.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import heapq
import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiment.models.api.calls import send
from experiment.models.api.formats import ApiCall, Conversation
from experiment.models.api.probe import Questions
from experiment.models.api.responses import output_limit, read_json
from experiment.models.api.retrying import (
    ALIKE_TRIES,
    FIRST_TRIES,
    FIRST_WAIT_S,
    LIMITED_TRIES,
    TRIES,
    Retry,
    RunStopped,
    ServerResponse,
    can_be_streamed,
    encoded,
    judge_failure,
    judge_refusal,
    said,
    shape_of,
    unreached,
    without_marks,
    words_about_parameters,
)  # fmt: skip
from experiment.models.engine import Reply, ReplyStatus, Request
from experiment.models.journal import request_digest

START = 20
CONCURRENCY = 100
"""Most requests at once, unless the study sets another number."""
COOLDOWN_S = 5.0
CUT = 0.8
SATURATED = 0.8
"""Share of the limit that must be in use for an answer to raise it."""


class Limiter:
    """The limit on requests in flight at one server, which grows while requests succeed and shrinks after a 429; thread-safe.

    A fixed number is too low all night or too high in the first minute, and many retries at once prolong a rate limit. The
    limiter uses additive increase and multiplicative decrease, as in TCP.

    - A round is as many answers as the limit. While the limit is used, each successful round increases it twofold until the
      first 429; after that, each adds a tenth, at least one.
    - A burst of 429s shrinks the limit once: later ones to requests sent before the cut carry no new information. The limit
      does not grow until the cooldown ends, which lasts as long as the server asked to wait.
    - A waiting request does not count as in flight. If every response is a 429, nothing is sent until the wait is over.
    - All models of a run that use the same address and key share one limiter, across threads.
    """

    def __init__(
        self, *, start: int = START, cap: int = CONCURRENCY, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.cap = max(1, cap)
        self.limit = max(1, min(start, cap))
        self.in_flight = 0
        self.cuts = 0
        self._clock = clock
        self._lock = threading.Lock()
        self._good = 0
        self._is_slow_start = True
        self._cut_at = float("-inf")
        self._calm_from = float("-inf")
        self._held_until = float("-inf")
        self._only_limits = 0
        self._listeners: set[Callable[[], None]] = set()

    def take(self) -> bool:
        """Count a request as in flight if the limit allows it and no pause is in force."""
        with self._lock:
            if self.in_flight >= self.limit or self._clock() < self._held_until:
                return False
            self.in_flight += 1
            return True

    def leave(self) -> None:
        """Count a request as finished, and notify other models that wait."""
        with self._lock:
            self.in_flight -= 1
            listeners = tuple(self._listeners) if len(self._listeners) > 1 else ()
        for listener in listeners:
            listener()

    def succeeded(self) -> None:
        """Record an answer, before :meth:`leave` is called for it."""
        with self._lock:
            self._only_limits = 0
            if self.limit >= self.cap or self._clock() < self._calm_from:
                return
            if self.in_flight < SATURATED * self.limit:
                return
            self._good += 1
            if self._good < self.limit:
                return
            self._good = 0
            more = self.limit if self._is_slow_start else max(1, self.limit // 10)
            self.limit = min(self.cap, self.limit + more)

    def limited(self, sent_at: float, after: float | None) -> None:
        """Record a 429 to a request sent at ``sent_at`` (by the same clock); ``after`` is the wait that the server asks for."""
        with self._lock:
            now = self._clock()
            self._good = 0
            self._only_limits += 1
            wait = COOLDOWN_S if after is None else max(COOLDOWN_S, after)
            if self._only_limits > max(3, self.limit) and after:
                self._held_until = max(self._held_until, now + after)
            if sent_at <= self._cut_at or now < self._calm_from:
                self._calm_from = max(self._calm_from, now + (after or 0.0))
                return
            self._is_slow_start = False
            self.cuts += 1
            self._cut_at = now
            self._calm_from = now + wait
            self.limit = max(1, min(int(self.limit * CUT), self.limit - 1))

    def held_for(self) -> float:
        """Return the seconds until requests may be sent again."""
        return max(0.0, self._held_until - self._clock())

    def listen(self, listener: Callable[[], None]) -> None:
        """Register a function to call whenever a request may be sent."""
        with self._lock:
            self._listeners.add(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        """Unregister a function."""
        with self._lock:
            self._listeners.discard(listener)


_shared: dict[tuple[str, str], Limiter] = {}
_shared_lock = threading.Lock()


def limiter_of(base_url: str, key: str | None, *, start: int, cap: int) -> Limiter:
    """Return the limiter that all models of this run share at one address with one key."""
    name = (base_url.rstrip("/"), hashlib.sha256((key or "").encode()).hexdigest())
    with _shared_lock:
        limiter = _shared.get(name)
        if limiter is None:
            limiter = _shared[name] = Limiter(start=start, cap=cap)
        limiter.cap = max(limiter.cap, cap)
        return limiter


class InFlightRequest:
    """A request in flight."""

    __slots__ = (
        "alike", "call", "cost_usd", "failed_at", "fault", "limited", "lost", "may_be_billed", "request", "rounds", "talk",
        "tries", "unsettled", "waits_for",
    )  # fmt: skip

    def __init__(self, request: Request, talk: Conversation) -> None:
        self.request = request
        self.talk = talk
        self.call: ApiCall | None = None
        self.tries = self.limited = self.lost = self.unsettled = self.alike = 0
        self.fault = self.waits_for = ""
        self.cost_usd = 0.0  # of the calls that were answered
        self.may_be_billed = False  # the last try, which brought no answer
        self.failed_at, self.rounds = 0.0, 0

    @property
    def counted(self) -> int:
        """Tries that the server received while it was up."""
        return self.tries - self.limited - self.lost

    def failed(self, reason: str, status: ReplyStatus, *, model: str, path: str) -> Reply:
        """Return the reply that reports why the request failed."""
        return Reply(
            self.request.work_key, None, status, error=reason, attempts=self.tries, requested_model=model, path=path,
            cost_usd=None if self.unsettled else self.cost_usd,
        )  # fmt: skip


@dataclass(frozen=True)
class Status:
    """State for the progress bar."""

    in_flight: int = 0  # requests in flight, and the current limit
    limit: int = 0
    waiting: int = 0  # requests that wait to be retried
    # time of the next retry in seconds since the epoch; None if nothing waits
    waiting_until: float | None = None
    why: str | None = None  # why it waits
    retries: int = 0  # tries after the first

    def __str__(self) -> str:
        text = f"{self.in_flight} of {self.limit} at once"
        if self.waiting_until is not None:
            at = time.strftime("%H:%M:%S", time.localtime(self.waiting_until))
            text += f", {self.waiting} waiting until {at}: {self.why}"
        return text + (f", {self.retries} tried again" if self.retries else "")


DOWN_S = 600.0
"""Seconds for which a server may fail on everything before the run ends."""

LONGEST_WAIT_S = 15.0

MOST_ROUNDS = 3
"""Rounds of retries of one request that met a server which was down; a request that crashes the server would be retried forever."""

Doubtful = tuple[InFlightRequest, Retry]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one call: its number in the journal, content, and times if it was timed."""

    number: int
    payload: Mapping[str, Any]
    times: tuple[float | None, float | None]


GRACE_S = 5.0
"""Seconds that requests in flight may take after a run is ended."""

LOST_S = 600.0
"""Seconds without a network, after the server was reached, before the run ends."""

LONGEST_LOST_WAIT_S = 15.0

REST_S = 0.02
"""Pause before a timed request, long enough to notice that the server closed the connection, so that no timed request fails on it."""


@dataclass(frozen=True)
class SendingOptions:
    """Settings of one engine's sending window."""

    cap: int  # most requests of this engine in flight, whatever the limiter allows
    has_answered: bool = False
    was_probed: bool = False
    pace: float = 1.0  # share of each wait that is actually waited; tests use 0
    is_timed: bool = False  # whether response times are measured, since each request runs alone


class Sending:
    """The sending window of one engine; ``deliver`` receives replies in groups."""

    def __init__(
        self,
        questions: Questions,
        limiter: Limiter,
        deliver: Callable[[list[Reply]], None],
        options: SendingOptions,
    ) -> None:
        self._transport, self._form, self._calls = questions.transport, questions.form, questions.calls
        self._limiter, self._deliver, self._options = limiter, deliver, options
        self._pace = options.pace
        self._alike = IdenticalFailures(has_answered=options.has_answered, was_probed=options.was_probed)
        self._has_answered = options.has_answered
        self._answered_at = 0.0
        self._questions = questions
        # failed requests for which it is not yet known whether they or their server are at fault
        self._doubtful: list[Doubtful] = []
        # why the server fails on everything, and when it is tested next
        self._down, self._down_until = "", 0.0
        self._loop = asyncio.get_running_loop()
        self._ready: deque[InFlightRequest | Request] = deque()
        self._waiting: list[tuple[float, int, InFlightRequest]] = []
        self._order = itertools.count()
        self._running: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._came_in: list[Reply] = []
        self._over = asyncio.Event()
        self._is_ending = False
        self._no_more = False
        self._reached = self._answered = False
        self._answered_shapes: set[frozenset[tuple[str, object]]] = set()
        self._lost_since: float | None = None
        self._lost_tries = 0
        self.stopped: BaseException | None = None
        self.failures: Counter[str] = Counter()
        self.resolved: set[str] = set()
        self.sent = self.retries = 0
        self.last_error: str | None = None

    def call(self, name: str, *arguments: Sequence[Request], front: bool = False) -> None:
        """Run ``add``, ``finish`` or ``end`` in the loop's thread; nothing happens after the loop has ended."""
        given = {"front": True} if front else {}
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(functools.partial(getattr(self, name), *arguments, **given))

    def add(self, requests: Sequence[Request], *, front: bool = False) -> None:
        """Queue requests; follow-up requests go to the front, and none is accepted once the run is ending."""
        if self._is_ending:
            return
        if front:
            self._ready.extendleft(reversed(requests))
        else:
            self._ready.extend(requests)
        self._fill()

    def finish(self) -> None:
        """Mark that no more requests will be added."""
        self._no_more = True
        self._fill()

    def end(self) -> None:
        """Send nothing more; requests in flight have a few seconds to finish."""
        if self._is_ending:
            return
        self._is_ending = True
        self._ready.clear()
        self._waiting.clear()
        self._doubtful.clear()
        self._loop.call_later(GRACE_S, self._cut_off)
        self._fill()

    async def run(self) -> None:
        """Send until all requests are answered or the run ends."""

        def wake() -> None:
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._fill)

        self._limiter.listen(wake)
        try:
            self._fill()
            await self._over.wait()
            if self._running:
                await asyncio.gather(*self._running, return_exceptions=True)
        finally:
            self._hand_on()
            self._limiter.forget(wake)
            if self._timer is not None:
                self._timer.cancel()

    def status(self) -> Status:
        """Return the current state; safe from any thread."""
        now = self._loop.time()
        due, why = None, None
        pause = self._limiter.held_for()
        waiting = self._waiting[:1]
        if waiting:
            due, why = waiting[0][0] - now, waiting[0][2].waits_for
        if pause and (self._ready or waiting):
            due, why = pause, self.last_error
        if self._down:
            due, why = self._down_until - now, f"the server fails with everything: {self._down}"
        return Status(
            in_flight=len(self._running),
            limit=min(self._options.cap, self._limiter.limit),
            waiting=len(self._waiting) + len(self._doubtful),
            waiting_until=None if due is None else time.time() + max(0.0, due),
            why=why,
            retries=self.retries,
        )

    def _fill(self) -> None:
        """Start requests up to the limit; end the loop when none remain."""
        now = self._loop.time()
        while self._waiting and self._waiting[0][0] <= now:
            self._ready.appendleft(heapq.heappop(self._waiting)[2])
        is_up = not self._down
        while is_up and self._ready and len(self._running) < self._options.cap and self._limiter.take():
            self._begin(self._attempt(self._ready.popleft()))
        self._set_timer(now)
        idle = not (self._running or self._ready or self._waiting)
        if (idle and self._no_more) or (self._is_ending and not self._running):
            self._over.set()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._stop(error)
        self._fill()

    def _set_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = [self._waiting[0][0]] if self._waiting else []
        if self._ready and (pause := self._limiter.held_for()):
            due.append(now + pause * self._pace + 0.001)
        if due:
            self._timer = self._loop.call_at(min(due), self._fill)

    def _cut_off(self) -> None:
        for task in tuple(self._running):
            task.cancel()

    def _stop(self, error: BaseException) -> None:
        self.stopped = self.stopped or error
        self.end()

    # one try

    async def _attempt(self, work: InFlightRequest | Request) -> None:
        """Send one call of one request, and release its slot afterwards."""
        try:
            if isinstance(work, Request):
                work = InFlightRequest(work, self._form.ask(work))
                work.call = next(work.talk)
            outcome = await self._try(work)
        finally:
            self._limiter.leave()
        if isinstance(outcome, Reply):
            self._finish_one(outcome)
        elif isinstance(outcome, Retry):
            self._again_or_not(work, outcome)
        elif not self._is_ending:
            self._ready.appendleft(work)

    async def _try(self, request: InFlightRequest) -> Reply | Retry | None:
        """Take the reply to the current call from the journal, or send it.

        Returns the reply to the request, a decision about the failure, or None if another call follows.
        """
        assert request.call is not None
        body = self._timed(request.call.body()) if self._options.is_timed else request.call.body()
        content = encoded(body)
        asked = request.request
        digest = request_digest(
            *self._transport.place,
            request.call.path,
            asked.seed,
            asked.replicate,
            self._options.is_timed,
            body=content,
        )
        stored = self._calls.find(digest)
        number = 0 if stored is None else stored.number
        try:
            if stored is None:
                found = await self._send(request, body, content, digest)
                if not isinstance(found, Answer):
                    return found
                number, payload, times = found.number, found.payload, found.times
                self._succeeded(body)
            else:
                payload, times = read_json(stored.body), stored.times
            request.call = request.talk.send(payload)
        except StopIteration as ended:
            reply: Reply = ended.value
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if number:
                await self._calls.discard(number)
            request.talk = self._form.ask(asked)
            request.call, request.may_be_billed = next(request.talk), True
            if isinstance(error, RunStopped):
                raise
            return judge_failure(error, seconds=self._transport.timeout)
        else:
            return None
        if reply.resolved_model is not None:
            self.resolved.add(reply.resolved_model)
        took_ms, first_ms = times if request.tries <= 1 else (None, None)
        return replace(
            reply, attempts=max(1, request.tries), cost_usd=request.cost_usd,
            from_cache=request.tries == 0, latency_ms=took_ms, ttft_ms=first_ms,
        )  # fmt: skip

    async def _send(
        self, request: InFlightRequest, body: dict[str, Any], content: bytes, digest: bytes
    ) -> Answer | Reply | Retry | None:
        """Send one call and record its outcome; return the answer, or else what :meth:`_try` returns."""
        assert request.call is not None
        price = self._calls.price
        tokens = (0, 0) if price.is_free else price.tokens_of_call(request.request, output_limit(body))
        call = await self._calls.begin(request.request.work_key, tokens, digest)
        if call is None:
            self.end()
            reason = Retry.no(request.waits_for)
            return self._failed(request, reason, "error") if request.unsettled else None
        request.tries += 1
        request.may_be_billed = False
        self.sent += 1
        self.retries += request.tries > 1
        if self._options.is_timed:
            await asyncio.sleep(REST_S)
        sent_at = time.monotonic()
        outcome = await send(
            self._transport, self._calls, call, request.call.path, content, is_timed=self._options.is_timed
        )
        if outcome.response.status:
            self._reached, self._lost_since, self._lost_tries = True, None, 0
        if (failure := outcome.failure) is not None:
            request.may_be_billed = failure.kind != "unreachable"
            self._reached = self._reached or request.may_be_billed
            request.unsettled += request.may_be_billed
            return failure
        if outcome.payload is None:
            return self._refused(request, body, outcome.response, sent_at)
        request.cost_usd += outcome.cost_usd
        return Answer(call.number, outcome.payload, outcome.times)

    def _timed(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body with streaming on, so that the time to the first token can be measured."""
        dialect = self._form.dialect
        if not dialect.stream or not can_be_streamed(body):
            return body
        has_counts = dialect.stream_options and "input" not in body
        options = {"stream_options": {"include_usage": True}} if has_counts else {}
        return {**body, "stream": True, **options}

    def _refused(
        self, request: InFlightRequest, body: dict[str, Any], response: ServerResponse, sent_at: float
    ) -> Reply | Retry:
        assert request.call is not None
        text = response.body
        verdict = judge_refusal(self._transport, request.call.path, response, answered=self._answered)
        if verdict.kind == "rate_limit":
            self._limiter.limited(sent_at, verdict.after)
        if verdict.filtered:
            self._answered = True
            return self._failed(request, replace(verdict, reason=said(text, self._transport.key)), "refused")
        # a refusal of parameters with which the server has answered is about the prompt
        if verdict.kind == "no" and shape_of(body) not in self._answered_shapes:
            words = words_about_parameters(text, body, self._transport.key)
            if self._form.dialect.learn(words, body, self._form.options):
                return Retry.reworded(verdict.reason)
        return verdict

    def _succeeded(self, body: dict[str, Any]) -> None:
        self._answered = self._has_answered = True
        self._answered_at = self._loop.time()
        self._answered_shapes.add(shape_of(body))
        self._alike.answered()
        self._limiter.succeeded()

    def _again_or_not(self, request: InFlightRequest, verdict: Retry) -> None:
        self.failures[verdict.kind] += 1
        self.last_error = verdict.reason
        if self._is_ending:
            return
        fault = without_marks(verdict.reason)
        request.alike = request.alike + 1 if fault == request.fault else 1
        request.fault = fault
        request.limited += verdict.kind == "rate_limit"
        if verdict.kind == "unreachable":
            request.lost += 1
            if not self._wait_for_network(request, verdict):
                return
        if not verdict.again or self._is_given_up(request, verdict):
            is_own = verdict.kind == "no" and not request.may_be_billed
            # a server that has answered before fails without billing
            if (
                verdict.again
                and verdict.kind == "transient"
                and not request.may_be_billed
                and self._has_answered
            ):
                is_own = self._answered_at > request.failed_at
                if not is_own and request.rounds < MOST_ROUNDS:
                    self._doubtful.append((request, verdict))
                    if len(self._doubtful) == 1:
                        self._begin(self._test_server())
                    return
            self._set_aside(request, verdict, is_own=is_own)
            return
        request.failed_at = self._loop.time()
        if verdict.kind == "reworded":
            self._ready.appendleft(request)
            return
        request.waits_for = verdict.reason
        wait = verdict.wait(
            request.limited if verdict.kind == "rate_limit" else request.tries, request.request.work_key
        )
        if verdict.kind == "unreachable":
            wait = min(wait, LONGEST_LOST_WAIT_S)
        if verdict.at_once and request.tries == 1:
            wait = 0.0
        heapq.heappush(self._waiting, (self._loop.time() + wait * self._pace, next(self._order), request))

    def _set_aside(self, request: InFlightRequest, verdict: Retry, *, is_own: bool) -> None:
        """Record a request without an answer; end the run after too many identical failures."""
        if (end := self._alike.failed(request.fault, verdict.reason, is_own=is_own)) is not None:
            self._stop(end)
        status: ReplyStatus = "timeout" if verdict.kind == "timeout" else "error"
        self._finish_one(self._failed(request, verdict, status))

    async def _test_server(self) -> None:
        """Test the server until it answers; then resend requests if it was down, and record them if it fails on them alone."""
        began, count = time.monotonic(), 0
        while not self._is_ending and (why := await self._questions.ask_plainly()) is not None:
            self._down = why
            count += 1
            if time.monotonic() - began > DOWN_S or (self._pace == 0 and count > 100 * FIRST_TRIES):
                raise RunStopped(
                    f"the server fails with every request, even with a plain question of a few words: {why}",
                    mend="Check the server, then run the same command again to resume.",
                )
            wait = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** min(count, 20)) * self._pace
            self._down_until = self._loop.time() + wait
            await asyncio.sleep(wait)
        if self._is_ending:
            return
        self._down = ""
        doubtful, self._doubtful = self._doubtful, []
        for request, verdict in doubtful:
            if count:
                # earlier tries do not count against the request
                request.lost += request.counted
                request.alike, request.fault = 0, ""
                request.rounds += 1
                self._ready.append(request)
            else:
                self._set_aside(request, verdict, is_own=True)
        self._fill()

    def _is_given_up(self, request: InFlightRequest, verdict: Retry) -> bool:
        if verdict.kind == "rate_limit":
            return request.limited >= LIMITED_TRIES
        if verdict.kind in ("unreachable", "reworded"):
            return verdict.kind == "reworded" and request.tries > 4 * TRIES
        return request.counted >= TRIES or (verdict.kind == "transient" and request.alike >= ALIKE_TRIES)

    def _wait_for_network(self, request: InFlightRequest, verdict: Retry) -> bool:
        """Hold all requests while the network is away; end the run if it stays away."""
        now = time.monotonic()
        self._lost_since = self._lost_since or now
        self._lost_tries += 1
        away = now - self._lost_since
        was_never_there = not self._reached and request.lost >= FIRST_TRIES
        is_gone = away > LOST_S or (self._pace == 0 and self._lost_tries > 100 * FIRST_TRIES)
        if was_never_there or (self._reached and is_gone):
            self._stop(unreached(self._transport.base_url, verdict.reason))
            return False
        return True

    def _failed(self, request: InFlightRequest, verdict: Retry, status: ReplyStatus) -> Reply:
        form = self._form
        return request.failed(verdict.reason, status, model=form.model, path=form.options.surface)

    def _finish_one(self, reply: Reply) -> None:
        self._came_in.append(reply)
        if len(self._came_in) == 1:
            self._loop.call_soon(self._hand_on)

    def _hand_on(self) -> None:
        """Deliver replies in groups: waking the caller's thread costs more than a reply."""
        if self._came_in:
            self._deliver(self._came_in)
            self._came_in = []


MOST_ALIKE = 20
"""Consecutive requests that may fail for the same reason before any was answered."""

MOST_ALIKE_LATER = 100
"""The same after there were answers; refusals then do not count."""


class IdenticalFailures:
    """Counts consecutive identical failures."""

    def __init__(self, *, has_answered: bool, was_probed: bool = False) -> None:
        self._has_answered = has_answered
        self._was_probed = was_probed
        self._fault = ""
        self._in_a_row = 0

    def answered(self) -> None:
        """Record that a request was answered."""
        self._has_answered = True
        self._in_a_row = 0

    def failed(self, fault: str, reason: str, *, is_own: bool) -> RunStopped | None:
        """Record a failed request; return the error that ends the run after too many identical failures."""
        if is_own and (self._has_answered or self._was_probed):
            self._in_a_row = 0
            return None
        self._in_a_row = self._in_a_row + 1 if fault == self._fault else 1
        self._fault = fault
        if self._in_a_row < (MOST_ALIKE_LATER if self._has_answered else MOST_ALIKE):
            return None
        none = "" if self._has_answered else ", and none was answered"
        return RunStopped(
            f"{self._in_a_row} requests in a row failed alike{none}: {reason}",
            mend="Fix that (often the model's name, base_url or an option), then run the same command again: "
            "it requests everything that is missing.",
        )
