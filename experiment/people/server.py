"""The server: one process, one event loop for all connections, threads that answer.

Only accounts that may upload can send large files: this is decided from the head, before the body is read.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.http_exceptions import PayloadEncodingError
from flask import Flask
from werkzeug.test import EnvironBuilder

from experiment.people.access import Throttle
from experiment.people.bodies import LARGEST_BODY
from experiment.people.connections import (
    BEHIND_PROXY,
    Connection,
    Connections,
    InProgress,
    Limits,
    Phase,
    caller_of,
    raise_file_limit,
    within_files,
)
from experiment.people.dashboard.signing_in import LARGEST_UPLOAD, SECURE, takes_a_file
from experiment.people.gateway import SERVER_NAME, Answer, call, head_of, read_body, send
from experiment.people.headers import headers_for
from experiment.people.listening import listen
from experiment.people.workers import TooManyWaiting, Workers

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

ACCEPTED_IN_A_ROW = 16
LAST_ANSWERS_S = 20
TLS_FIRST_BYTE = 0x16
HANDSHAKE_WITHIN_S = 15
LONGEST_HEADER = 16 * 1024
MOST_HEADERS = 64
NEVER_S = 10.0**9
OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Server:
    """A bound server; :meth:`run` answers until it is told to stop."""

    def __init__(
        self,
        app: Flask,
        host: str,
        port: int,
        *,
        behind_proxy: bool = False,
        tls: ssl.SSLContext | None = None,
        on_visitor: Callable[[str], None] = lambda address: None,
        limits: Limits | None = None,
        listening: Sequence[socket.socket] = (),
    ) -> None:
        self._site = _Site(
            app, behind_proxy, tls, on_visitor, limits or (BEHIND_PROXY if behind_proxy else Limits())
        )
        self._listening = list(listening) or listen(host, port)
        self.port = int(self._listening[0].getsockname()[1])
        self._gate = threading.Lock()
        self._is_stopped = False
        self._stop: Callable[[], object] | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        """Answer requests; on Ctrl-C or SIGTERM finish the requests in progress and return."""
        # what was imported stays: no collection of garbage goes through it again while participants wait
        gc.collect()
        gc.freeze()
        try:
            with _told_by_signals(self._ask_to_stop), asyncio.Runner() as runner:
                runner.run(self._serve())
        finally:
            self._ended.set()
            self._stop_listening()

    def close(self) -> None:
        """Stop, from another thread: finish the requests in progress, and return when that is done."""
        if self._ask_to_stop():
            self._ended.wait(timeout=LAST_ANSWERS_S + 5)
        self._stop_listening()

    def _ask_to_stop(self) -> bool:
        """Ask the loop to stop; return whether one is running."""
        with self._gate:
            self._is_stopped = True
            if self._stop is not None:
                self._stop()
            return self._stop is not None

    def _stop_listening(self) -> None:
        for listening in self._listening:
            listening.close()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        with self._gate:
            self._stop = partial(loop.call_soon_threadsafe, stopping.set)
            if self._is_stopped:
                stopping.set()
        try:
            await self._site.answer_at(self._listening, stopping)
        finally:
            with self._gate:
                self._stop = None


class _Site:
    """The connections of a running server and what answers them; all of it runs in the loop's thread."""

    def __init__(
        self,
        app: Flask,
        behind_proxy: bool,
        tls: ssl.SSLContext | None,
        on_visitor: Callable[[str], None],
        limits: Limits,
    ) -> None:
        self._app = app
        self._behind_proxy = behind_proxy
        self.tls = tls
        self.on_visitor = on_visitor
        self._limits = within_files(limits, raise_file_limit())
        self._requests = Throttle(limits.requests, limits.window_s)
        self.tasks: set[asyncio.Task[None]] = set()

    async def answer_at(self, listening: Sequence[socket.socket], stopping: asyncio.Event) -> None:
        """Answer until told to stop, then finish the requests in progress."""
        asyncio.get_running_loop().set_exception_handler(_quietly)
        everybody = {"per_address": sys.maxsize, "per_network": sys.maxsize} if self._behind_proxy else {}
        self._connections = Connections(replace(self._limits, **everybody))
        self._in_progress = InProgress(self._limits)
        self._workers = Workers()
        self.manager = web.Server(self._answer)
        for one in listening:
            self.begin(self._accept(one))
        self.begin(self._look_after())
        try:
            await stopping.wait()
        finally:
            for task in (tasks := list(self.tasks)):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._finish()
            self._workers.close()

    def begin(self, work: Any) -> None:
        """Run a task for which nobody waits."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        # a loop keeps no hold of its tasks
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _finish(self) -> None:
        for handler in self.manager.connections:
            handler.close()
        until = asyncio.get_running_loop().time() + LAST_ANSWERS_S
        while True:
            for connection in self._connections:
                if connection.is_waiting:
                    connection.end()
            if not len(self._connections) or asyncio.get_running_loop().time() > until:
                break
            await asyncio.sleep(0.02)
        for connection in self._connections:
            connection.cut()
        # transports close in the loop's next rounds
        await asyncio.sleep(0.05)

    async def _look_after(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._connections.cut_overdue()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        in_a_row = 0
        while True:
            in_a_row += 1
            if in_a_row % ACCEPTED_IN_A_ROW == 0:
                await asyncio.sleep(0)
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:  # a caller that hung up at once, or too many open files
                if error.errno in OUT_OF_FILES:
                    self._connections.make_room()
                await asyncio.sleep(0.02)
                continue
            connection = self._connections.admit(str(address[0]))
            if connection is None:
                accepted.close()
            else:
                self.begin(self._open(accepted, connection))

    async def _open(self, accepted: socket.socket, connection: Connection) -> None:
        try:
            accepted.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: _Door(self, connection), accepted
            )
        except OSError:
            accepted.close()
            connection.forget()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.protocol.connection  # type: ignore[attr-defined]
        connection.turn_to(Phase.BODY)
        head = head_of(
            request,
            address=connection.address,
            is_secure=connection.is_secure,
            believes_proxy=self._behind_proxy,
        )
        address = str(head["REMOTE_ADDR"])
        # without a proxy a connection has one request in progress, and connections are counted
        is_counted = self._behind_proxy and self._in_progress.begin(address)
        try:
            if self._behind_proxy and not is_counted:
                answer, closes = _refusal(HTTPStatus.TOO_MANY_REQUESTS, request, retry_after_s=2), True
            else:
                answer, closes = await self._answer_to(request, connection, head)
            connection.turn_to(Phase.ANSWER)
            return await send(request, answer, connection.moved, closes=closes)
        finally:
            if is_counted:
                self._in_progress.end(address)
            connection.turn_to(Phase.HEAD)

    async def _answer_to(
        self, request: web.BaseRequest, connection: Connection, head: WSGIEnvironment
    ) -> tuple[Answer, bool]:
        """Return the answer to a request, and whether the connection ends with it."""
        caller = caller_of(str(head["REMOTE_ADDR"]))
        wait = self._requests.wait(caller)
        if wait:
            return _refusal(HTTPStatus.TOO_MANY_REQUESTS, request, retry_after_s=int(wait) + 1), True
        most = LARGEST_BODY
        try:
            if (request.content_length or 0) > most and request.method == "POST":
                cookie = head.get("HTTP_COOKIE", "")
                most = await self._workers.run(
                    caller, partial(largest_body, self._app, head["PATH_INFO"], cookie)
                )
            size = request.content_length
            is_too_large = size is not None and size > most
            if not is_too_large and request.body_exists:
                body, size = await read_body(request, most)
                is_too_large = size > most
            else:
                body, size = io.BytesIO(), size or 0
            connection.turn_to(Phase.WORK)
            with body:
                # of what is too large nothing reaches the application but its size, which it refuses in its own words
                environ = head | {"wsgi.input": body, "CONTENT_LENGTH": str(size)}
                return await self._workers.run(caller, partial(call, self._app, environ)), is_too_large
        except TooManyWaiting:
            return _refusal(HTTPStatus.SERVICE_UNAVAILABLE, request, retry_after_s=2), True


class _Door(asyncio.Protocol):
    """Waits for a connection's first bytes: they tell whether its caller speaks TLS."""

    def __init__(self, site: _Site, connection: Connection) -> None:
        self._site = site
        self._connection = connection
        self._early: list[bytes] = []
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connection.transport = transport
        if self._connection.is_forgotten:  # it had to make room before it was made
            transport.abort()

    def connection_lost(self, problem: Exception | None) -> None:
        self._is_lost = True
        self._connection.forget()

    def data_received(self, data: bytes) -> None:
        if self._connection.is_secure:  # what came in the handshake's last packet
            self._early.append(data)
            return
        transport = self._connection.transport
        assert transport is not None
        self._site.on_visitor(self._connection.address)
        if data[0] != TLS_FIRST_BYTE:
            self._hand_over(transport, data)
        elif self._site.tls is None:
            transport.abort()
        else:
            self._connection.is_secure = True
            self._site.begin(self._greet_in_tls(transport, self._site.tls, data))

    async def _greet_in_tls(self, plain: asyncio.Transport, tls: ssl.SSLContext, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        # the first bytes have been taken from the socket; the handshake gets them once it has begun
        loop.call_soon(loop.call_soon, _feed, plain, data)
        try:
            secure = await loop.start_tls(
                plain, self, tls, server_side=True, ssl_handshake_timeout=HANDSHAKE_WITHIN_S
            )
        except (OSError, TimeoutError):  # also what TLS has to complain of, such as a caller without trust
            self._connection.cut()
            return
        if secure is not None and not self._is_lost:
            self._hand_over(secure, b"".join(self._early))

    def _hand_over(self, transport: asyncio.Transport, data: bytes) -> None:
        handler = _Handler(self._site.manager, self._connection)
        transport.set_protocol(handler)
        handler.connection_made(transport)
        if data:
            handler.data_received(data)


def _feed(plain: asyncio.Transport, data: bytes) -> None:
    """Give a handshake the bytes that came before it."""
    handshake = plain.get_protocol()
    if isinstance(handshake, asyncio.BufferedProtocol) and not plain.is_closing():
        buffer = memoryview(handshake.get_buffer(len(data)))
        buffer[: len(data)] = data
        handshake.buffer_updated(len(data))


class _Handler(web.RequestHandler):
    """aiohttp's reader of requests, whose connection is watched."""

    def __init__(self, manager: web.Server, connection: Connection) -> None:
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=NEVER_S,
            access_log=None,  # type: ignore[arg-type]
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
            max_headers=MOST_HEADERS,
            lingering_time=2,
            auto_decompress=False,
        )
        self.connection = connection

    def data_received(self, data: bytes) -> None:
        self.connection.heard(len(data))
        super().data_received(data)

    def connection_lost(self, problem: BaseException | None) -> None:
        super().connection_lost(problem)
        self.connection.forget()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer malformed requests without logging them; every other failure is logged."""
        if request.transport is None or isinstance(exc, ConnectionError):
            raise ConnectionResetError from exc
        if isinstance(exc, web.RequestPayloadError | PayloadEncodingError):
            status = HTTPStatus.BAD_REQUEST
        if status >= 500:
            self.log_exception("a request could not be answered", exc_info=exc)
        refusal = _refusal(HTTPStatus(status), request)
        headers = [*refusal.headers, ("Server", SERVER_NAME)]
        answer = web.Response(status=status, body=refusal.body, headers=headers)
        answer.force_close()
        return answer


def _refusal(status: HTTPStatus, request: web.BaseRequest, retry_after_s: int | None = None) -> Answer:
    """Return what is answered before the application has to do with it."""
    connection: Connection = request.protocol.connection  # type: ignore[attr-defined]
    host = request.headers.get("Host", "localhost")
    protecting = headers_for(is_secure=connection.is_secure, host=host, is_public=False)
    headers = [
        ("Content-Type", "text/plain; charset=utf-8"),
        ("Cache-Control", "no-store"),
        *protecting.items(),
    ]
    if retry_after_s is not None:
        headers.append(("Retry-After", str(retry_after_s)))
    return Answer(status.value, status.phrase, headers, f"{status.phrase}\n".encode())


@contextmanager
def _told_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call a function on Ctrl-C and SIGTERM; a second one interrupts at once."""
    was_told = False

    def tell(number: int, frame: FrameType | None) -> None:
        nonlocal was_told
        if was_told:
            raise KeyboardInterrupt
        was_told = True
        stop()

    if (
        threading.current_thread() is not threading.main_thread()
    ):  # whoever started the thread has the signals
        yield
        return
    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _quietly(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log nothing about callers that hang up, do not trust the certificate, or come as the server stops: it happens all day.

    A connection that arrives in the loop's round in which accepting is cancelled is an ``InvalidStateError`` of asyncio.
    """
    if not isinstance(context.get("exception"), OSError | asyncio.InvalidStateError | None):
        loop.default_exception_handler(context)


ROOM_OF_A_FORM = 64 * 1024
"""Bytes of a form beside the file that it sends."""


def largest_body(app: Flask, path: str, cookie: str) -> int:
    """Return how many bytes may be sent to an address by whoever holds a cookie."""
    if "wrods" not in app.extensions:  # the preview, to which nothing is sent
        return LARGEST_BODY
    # behind a proxy the head does not say yet that the browser uses TLS, but its cookie does
    base = "https://localhost" if SECURE in cookie else "http://localhost"
    # as an environment, not as an address: what callers send as a path need not be one
    environ = EnvironBuilder(base_url=base, method="POST", headers=[("Cookie", cookie)]).get_environ()
    environ["PATH_INFO"] = path
    with app.request_context(environ):
        return LARGEST_UPLOAD + ROOM_OF_A_FORM if takes_a_file() else LARGEST_BODY
