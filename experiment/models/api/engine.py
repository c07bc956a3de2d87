"""The API engine: sends many requests at once to any OpenAI-compatible server and returns a reply to each.

A cache that cannot be used is reported once; after that it is neither read nor written.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import cast

from experiment.models.api.formats import ApiFormat, Dialect, parse_request_options
from experiment.models.api.limiter import CONCURRENCY, START, Limiter, limiter_of
from experiment.models.api.probe import Billing, Capabilities, Questions, probe
from experiment.models.api.reply_cache import ReplyCache
from experiment.models.api.responses import without_bytes
from experiment.models.api.sending import GRACE_S, Allow, Sending, SendingOptions, Status
from experiment.models.api.transport import Transport
from experiment.models.engine import Follow, Reply, Request
from experiment.models.pictures import drawn_with
from experiment.models.servers import find_key, server_of
from experiment.models.settings import ModelSettings
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
        self.price: Callable[[Reply], float | None] | None = None  # fills ``cost_usd`` of replies
        # awaited before a request is sent, and again after a try that may be billed; False or RunStopped ends the run
        self.allow: Allow | None = None
        # called with requests that were refused, which are not billed
        self.release: Callable[[Request], None] | None = None
        self.has_answered = (
            False  # whether this model has answered before, for example in the study's stored trials
        )
        # pays for :meth:`probe` and for tiny test requests to a server that fails
        self.billing: Billing | None = None
        is_openai, is_azure = self.server.is_openai, self.server.is_azure
        self._key = find_key(options, is_openai=is_openai, is_azure=is_azure) if settings.sends else None
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
        is_cached = bool(options.get("cache", settings.folder.is_absolute())) and not self.timing
        self.cache = ReplyCache(settings.folder if is_cached else None, self._about)
        self._resolved: set[str] = set()
        self._failures: dict[str, int] = {}
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
            "dialect": self.dialect.describe(),
            "probe": None if self._capabilities is None else self._capabilities.describe(),
            "concurrency": self.concurrency,
            "limit_now": self._limiter.limit,
            "limit_cuts": self._limiter.cuts,
            "timeout_s": self.timeout,
            "requests_sent": self._sent,
            "failed_tries": dict(self._failures),
            "cache": self.cache.describe(),
            "openai": importlib.metadata.version("openai"),
            **({"pictures": drawn_with()} if self.request_options.pictures else {}),
        }

    def preview(self, request: Request) -> dict[str, object]:
        """Return address and JSON as they would be sent; pictures are listed in ``pictures`` and their bytes left out."""
        path, body = self._format.body(request)
        shown: dict[str, object] = {"url": self.base_url.rstrip("/") + path, "body": without_bytes(body)}
        pictures = [picture.to_json() for message in request.messages for picture in message.pictures]
        return shown | ({"pictures": pictures} if pictures else {})

    def probe(self) -> Capabilities:
        """Return the endpoint's capabilities, found with a few tiny requests; RunStopped if server, key or model is missing."""
        if self._capabilities is None:
            # in a separate thread, because the caller's may already run a loop, as in a notebook
            with ThreadPoolExecutor(1, "wrods-probe") as thread:
                self._capabilities = thread.submit(asyncio.run, self._probe()).result()
        return self._capabilities

    async def _probe(self) -> Capabilities:
        async with self._transport() as transport:
            return await probe(Questions(transport, self._format, self.billing, self._pace))

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
        self.cache.open()
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
            self.cache.close()

    def _exchange(
        self, source: Iterator[Request], follow: Follow | None, replies: queue.Queue[object]
    ) -> Iterator[Reply]:
        """Keep the window of requests full, and yield the replies."""
        most = 2 * self.concurrency + AHEAD
        outstanding = 0
        exhausted = False
        cached: deque[Reply] = deque()
        arrived: deque[Reply] = deque()

        def look_up(requests: Iterable[Request]) -> list[Request]:
            missing = []
            for request in requests:
                hit = self.cache.find(request)
                if hit is None:
                    missing.append(request)
                else:
                    cached.append(hit)
            return missing

        while True:
            batch: list[Request] = []
            while not (exhausted or cached or outstanding + len(batch) >= most or self._closed.is_set()):
                request = next(source, None)
                if request is None:
                    exhausted = True
                else:
                    batch += look_up((request,))
                if len(batch) >= AHEAD and (arrived or not replies.empty()):
                    break
            outstanding += len(batch)
            if batch:
                self._call("add", batch)
            if not cached and not arrived:
                if outstanding == 0 and (exhausted or self._closed.is_set()):
                    return
                item = _next(replies)
                if item is _DONE:
                    return
                if isinstance(item, BaseException):
                    raise item
                assert isinstance(item, list)
                arrived.extend(item)
            for _ in range(min(AHEAD, len(cached) + len(arrived))):
                if arrived:
                    outstanding -= 1
                reply = self._finished(arrived.popleft() if arrived else cached.popleft())
                if follow is not None:
                    after = look_up(follow(reply))
                    outstanding += len(after)
                    if after:
                        self._call("add", after, front=True)
                yield reply

    def _finished(self, reply: Reply) -> Reply:
        """Return a reply with its cost, after caching it."""
        if reply.from_cache:
            return replace(reply, cost_usd=0.0)
        if self.price is not None and reply.prompt_tokens is not None:
            reply = replace(reply, cost_usd=self.price(reply))
        self.cache.keep(reply)
        return reply

    def _about(self) -> dict[str, object]:
        return {
            "engine": "openai",
            "base_url": self.base_url.rstrip("/"),
            "api_version": self.server.api_version,
            "model": self.settings.name,
            "wishes": self.request_options.describe(),
            "dialect": self.dialect.describe(),
        }

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
        options = SendingOptions(
            self.concurrency, self.allow, self.release, self.has_answered, capabilities is not None and capabilities.answered,
            self._pace, self.timing,
        )  # fmt: skip
        async with self._transport() as transport:
            questions = Questions(transport, self._format, self.billing, 0.0)
            self._sending = sending = Sending(questions, self._limiter, replies.put, options)
            if self._closed.is_set():
                sending.end()
            begun.set()
            if self.timing:
                await transport.connect()
            await sending.run()
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
        for kind, count in sending.failures.items():
            self._failures[kind] = self._failures.get(kind, 0) + count


def _next(replies: queue.Queue[object]) -> object:
    """Wait for a reply in short steps, so that signals are handled on every system (a ``SimpleQueue`` blocks them)."""
    while True:
        with contextlib.suppress(queue.Empty):
            return replies.get(timeout=0.5)


def capabilities(settings: ModelSettings, billing: Billing | None = None) -> Capabilities:
    """Return the capabilities of a model's endpoint, found with a few tiny requests that ``billing`` pays for."""
    engine = ApiEngine(settings)
    engine.billing = billing
    return engine.probe()
