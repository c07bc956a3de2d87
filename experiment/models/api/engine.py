"""The API engine: sends many requests at once to any OpenAI-compatible server and returns a reply to each."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib.metadata
import queue
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import cast

from experiment.models.api.formats import ApiFormat, Dialect, parse_request_options
from experiment.models.api.probe import Capabilities, Questions, probe
from experiment.models.api.responses import without_bytes
from experiment.models.api.retrying import Transport
from experiment.models.api.sending import (
    CONCURRENCY,
    GRACE_S,
    START,
    Limiter,
    Sending,
    SendingOptions,
    Status,
    limiter_of,
)
from experiment.models.engine import Follow, ModelSettings, Reply, Request
from experiment.models.journal import ModelCalls
from experiment.models.pictures import drawn_with
from experiment.models.servers import find_key, server_of
from stimuli.errors import UserError

TIMEOUT_S = 120.0
AHEAD = 64
"""Requests taken from the caller beyond twice the number in flight."""

_DONE = object()


class ApiEngine:
    """Engine for an OpenAI-compatible server; tests pass ``pace`` 0 to skip the waits."""

    def __init__(self, settings: ModelSettings, *, limiter: Limiter | None = None, pace: float = 1.0) -> None:
        options = settings.options
        self.settings = settings
        self.server = server_of(options)
        self.base_url = self.server.base_url
        self.request_options = parse_request_options(settings)
        self.dialect = Dialect.usual(self.server, self.request_options)
        self.timing = bool(options.get("timing", False))
        self.concurrency = 1 if self.timing else int(cast(int, options.get("concurrency", CONCURRENCY)))
        if self.concurrency < 1:
            raise UserError(f"concurrency is {self.concurrency}; at least one request must run at a time")
        self.timeout = float(cast(float, options.get("timeout", TIMEOUT_S)))
        # its calls, those of :meth:`probe` and tiny test requests to a server that fails among them
        self.calls = ModelCalls()
        self.has_answered = False  # whether this model has answered before, as in the study's stored trials
        self.of_no_trial_usd = 0.0  # cost of probes and test requests
        self._key = find_key(options) if settings.sends else None
        start = min(int(cast(int, options.get("concurrency_start", START))), self.concurrency)
        self._limiter = limiter or (
            Limiter(start=1, cap=1)
            if self.timing
            else limiter_of(self.base_url, self._key, start=start, cap=self.concurrency)
        )
        self._pace = pace
        self._format = ApiFormat(settings.name, self.dialect, self.request_options)
        self._capabilities: Capabilities | None = None
        self._sending: Sending | None = None
        self._closed = threading.Event()
        self._resolved: set[str] = set()
        self._failures: Counter[str] = Counter()
        self._sent = 0

    def describe(self) -> dict[str, object]:
        """Return server, model, dialect, probe, versions and the number of failures by kind; never the key."""
        # the address of the user's own server does not identify the model: the name that it reports does
        where = {"server": "own"} if self.server.is_own else {"base_url": self.base_url}
        identity = {
            "kind": "openai",
            "model": self.settings.name,
            **where,
            "wishes": self.request_options.describe(),
        }
        return {
            **identity,
            "identity": identity,
            "base_url": self.base_url,
            "resolved_models": sorted(self._resolved),
            "dialect": asdict(self.dialect),
            "probe": None if self._capabilities is None else self._capabilities.describe(),
            "concurrency": self.concurrency,
            "limit_now": self._limiter.limit,
            "limit_cuts": self._limiter.cuts,
            "timeout_s": self.timeout,
            "requests_sent": self._sent,
            "failed_tries": dict(self._failures),
            "openai": importlib.metadata.version("openai"),
            **({"pictures": drawn_with()} if self.request_options.pictures else {}),
        }

    def preview(self, request: Request) -> dict[str, object]:
        """Return address and JSON as they would be sent; pictures are listed in ``pictures`` and their bytes left out."""
        path, body = self._format.body(request)
        shown: dict[str, object] = {"url": self.base_url.rstrip("/") + path, "body": without_bytes(body)}
        pictures = [picture.to_json() for message in request.messages for picture in message.pictures]
        return shown | ({"pictures": pictures} if pictures else {})

    def probe(self, *, is_renewed: bool = False) -> Capabilities:
        """Return the endpoint's capabilities, found with a few tiny requests; RunStopped if server, key or model is missing.

        What a server is paid for is requested once, unless the probe is renewed: later the journal has the replies.
        """
        if self._capabilities is None:
            # in a separate thread, because the caller's may already run a loop, as in a notebook
            with ThreadPoolExecutor(1, "wrods-probe") as thread:
                self._capabilities = thread.submit(
                    asyncio.run, self._probe(reuses_replies=not is_renewed and not self.calls.price.is_free)
                ).result()
        return self._capabilities

    async def _probe(self, *, reuses_replies: bool) -> Capabilities:
        async with self._transport() as transport:
            questions = Questions(
                transport, self._format, self.calls, self._pace, reuses_replies=reuses_replies
            )
            try:
                return await probe(questions)
            finally:
                self.of_no_trial_usd += questions.cost_usd

    def _transport(self) -> Transport:
        return Transport(self.server, self._key, self.settings.name, self.timeout)

    def status(self) -> Status:
        """Return the state for the progress bar; safe from any thread."""
        sending = self._sending
        return Status(limit=self._limiter.limit) if sending is None else sending.status()

    def close(self) -> None:
        """Stop sending; requests in flight have a few seconds to finish."""
        self._closed.set()
        self._call("end")

    def answer(self, requests: Iterable[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield replies as they arrive; follow-up requests go first, and RunStopped is raised after all other replies."""
        if self.settings.options.get("probe", True) and not self._closed.is_set():
            self.probe()
        # what was loaded before is not searched for garbage again and again while replies come in
        gc.freeze()
        replies: queue.Queue[object] = queue.Queue()
        begun = threading.Event()
        thread = threading.Thread(target=self._run, args=(replies, begun), name="wrods-api", daemon=True)
        thread.start()
        begun.wait()
        try:
            yield from self._exchange(iter(requests), follow, replies)
        except BaseException:
            self.close()
            raise
        finally:
            self._call("finish")
            thread.join(timeout=GRACE_S * 2)
            self._take_counts()
            gc.unfreeze()

    def _exchange(
        self, source: Iterator[Request], follow: Follow | None, replies: queue.Queue[object]
    ) -> Iterator[Reply]:
        """Keep the window of requests full, and yield the replies."""
        most = 2 * self.concurrency + AHEAD
        outstanding = 0
        exhausted = False
        arrived: deque[Reply] = deque()
        while True:
            batch: list[Request] = []
            while not (exhausted or outstanding + len(batch) >= most or self._closed.is_set()):
                request = next(source, None)
                if request is None:
                    exhausted = True
                else:
                    batch.append(request)
                if len(batch) >= AHEAD and (arrived or not replies.empty()):
                    break
            outstanding += len(batch)
            if batch:
                self._call("add", batch)
            if not arrived:
                if outstanding == 0 and (exhausted or self._closed.is_set()):
                    return
                item = _next(replies)
                if item is _DONE:
                    return
                if isinstance(item, BaseException):
                    raise item
                assert isinstance(item, list)
                arrived.extend(item)
            for _ in range(min(AHEAD, len(arrived))):
                reply = arrived.popleft()
                outstanding -= 1
                after = [] if follow is None else list(follow(reply))
                outstanding += len(after)
                if after:
                    self._call("add", after, front=True)
                yield reply

    def _run(self, replies: queue.Queue[object], begun: threading.Event) -> None:
        try:
            asyncio.run(self._send(replies, begun))
        except BaseException as error:
            replies.put(error)
        finally:
            begun.set()
            replies.put(_DONE)

    async def _send(self, replies: queue.Queue[object], begun: threading.Event) -> None:
        capabilities = self._capabilities
        was_probed = capabilities is not None and capabilities.answered
        options = SendingOptions(self.concurrency, self.has_answered, was_probed, self._pace, self.timing)
        async with self._transport() as transport:
            questions = Questions(transport, self._format, self.calls, 0.0)
            self._sending = sending = Sending(questions, self._limiter, replies.put, options)
            if self._closed.is_set():
                sending.end()
            begun.set()
            if self.timing:
                await transport.connect()
            await sending.run()
            self.of_no_trial_usd += questions.cost_usd
            if sending.stopped is not None:
                replies.put(sending.stopped)

    def _call(self, name: str, *arguments: Sequence[Request], front: bool = False) -> None:
        """Call a method of the sending window in its own thread."""
        sending = self._sending
        if sending is not None:
            sending.call(name, *arguments, front=front)

    def _take_counts(self) -> None:
        """Add the counts of the sending window to the engine's."""
        sending, self._sending = self._sending, None
        if sending is None:
            return
        self._sent += sending.sent
        self._resolved |= sending.resolved
        self._failures.update(sending.failures)


def _next(replies: queue.Queue[object]) -> object:
    """Wait for a reply in short steps, so that signals are handled on every system (a ``SimpleQueue`` blocks them)."""
    while True:
        with contextlib.suppress(queue.Empty):
            return replies.get(timeout=0.5)


def capabilities(settings: ModelSettings, calls: ModelCalls | None = None) -> Capabilities:
    """Return the capabilities of a model's endpoint, found with a few tiny requests, which are recorded among its calls."""
    engine = ApiEngine(settings)
    engine.calls = calls or engine.calls
    return engine.probe(is_renewed=True)
