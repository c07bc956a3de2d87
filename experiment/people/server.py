"""The server: one process, one event loop for all connections, worker threads for answers.

Requests pass from aiohttp to the Flask application through WSGI. A body is read before a thread handles it, and an answer is
complete before it is sent, so that neither a slow sender nor a slow reader blocks a thread. Large bodies are kept in temporary
files. Only accounts that may upload can send large files: this is decided from the headers, before the body is read.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import json
import queue
import signal
import socket
import ssl
import sys
import tempfile
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote_to_bytes

from aiohttp import web
from aiohttp.http_exceptions import PayloadEncodingError
from aiohttp.web import BaseRequest, Response, StreamResponse
from flask import Flask
from werkzeug.test import EnvironBuilder
from werkzeug.wsgi import FileWrapper

from experiment.people.connections import (
    BEHIND_PROXY,
    CallerLimits,
    Connection,
    Connections,
    InProgress,
    Phase,
    caller_of,
    raise_file_limit,
    within_files,
)
from experiment.people.dashboard.authentication import LARGEST_UPLOAD, SECURE, takes_a_file
from experiment.people.headers import headers_for
from experiment.people.response_intake import LARGEST_BODY
from experiment.people.service import Throttle

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

IN_MEMORY = 64 * 1024
"""Bytes of a body or an answer's file that are held in memory, and that are sent at once."""
LARGEST_IN_MEMORY = 1024 * 1024
FORWARDED = frozenset(
    f"HTTP_{name}"
    for name in ("FORWARDED", "X_FORWARDED_FOR", "X_FORWARDED_PROTO", "X_FORWARDED_HOST", "X_FORWARDED_PORT",
                 "X_FORWARDED_PREFIX", "X_FORWARDED_BY", "X_REAL_IP")
)  # fmt: skip
SERVER_NAME = "wrods"
WAITING_PAGES = "wrods_waiting_pages"
"""Where an application keeps, by study, the page of a participant who is asked to come back."""


@dataclass(frozen=True)
class HttpAnswer:
    """An answer of the application: its body is bytes, or an open file from which it is sent."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes | IO[bytes]


def head_of(request: BaseRequest, *, address: str, is_secure: bool, believes_proxy: bool) -> WSGIEnvironment:
    """Return a request's head in WSGI's format, with only trusted headers of a proxy.

    ``REMOTE_ADDR`` is the caller's address: what the proxy added last to ``X-Forwarded-For``, else the connection's.
    """
    path, _, query = request.raw_path.partition("?")
    if not path.startswith("/"):  # an absolute address, as sent to a proxy
        path = "/" + path.partition("://")[2].partition("/")[2]
    socket_name = request.transport.get_extra_info("sockname") if request.transport is not None else None
    host, port = (socket_name or ("", 0))[:2]
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": str(host),
        "SERVER_PORT": str(port),
        "SERVER_PROTOCOL": f"HTTP/{request.version.major}.{request.version.minor}",
        "REMOTE_ADDR": address,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "https" if is_secure else "http",
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.file_wrapper": FileWrapper,
    }
    for raw_name, raw_value in request.raw_headers:
        # X_Forwarded_For would be the same variable as X-Forwarded-For
        if b"_" in raw_name:
            continue
        name = "HTTP_" + raw_name.decode("latin-1").upper().replace("-", "_")
        value = raw_value.decode("latin-1")
        if name in FORWARDED and not believes_proxy:
            continue
        if name == "HTTP_CONTENT_TYPE":
            environ["CONTENT_TYPE"] = value
        elif name not in ("HTTP_CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING"):
            joint = "; " if name == "HTTP_COOKIE" else ","
            environ[name] = f"{environ[name]}{joint}{value}" if name in environ else value
    forwarded = environ.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
    environ["REMOTE_ADDR"] = forwarded or address
    return environ


async def read_body(request: BaseRequest, most: int) -> tuple[IO[bytes], int]:
    """Return a request's body and its size; if it is larger than ``most``, only enough to detect that."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # what is written here is not part of the answer
        request.writer.output_size = 0
    body: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
    size = 0
    while size <= most and (part := await request.content.readany()):
        body.write(part)
        size += len(part)
    body.seek(0)
    return body, size


def call(application: WSGIApplication, environ: WSGIEnvironment) -> HttpAnswer:
    """Return the application's answer; this can take long, and runs in a worker's thread."""
    started: list[Any] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], problem: Any = None
    ) -> Callable[..., Any]:
        started[:] = [status, headers]
        return _no_write

    parts = application(environ, start_response)
    is_sent_later = False
    try:
        body: bytes | IO[bytes] = parts.file if isinstance(parts, FileWrapper) else _whole(parts)
        status, headers = started
        is_sent_later = isinstance(parts, FileWrapper)
    finally:
        if not is_sent_later and hasattr(parts, "close"):
            parts.close()
    code, _, reason = status.partition(" ")
    return HttpAnswer(int(code), reason, headers, body)


def _no_write(data: bytes) -> None:
    raise NotImplementedError("answers are returned")


def _whole(parts: Iterable[bytes]) -> bytes | IO[bytes]:
    held: list[bytes] = []
    size = 0
    remaining = iter(parts)
    for part in remaining:
        held.append(part)
        size += len(part)
        if size > LARGEST_IN_MEMORY:
            file = tempfile.TemporaryFile()  # noqa: SIM115
            file.writelines(held)
            file.writelines(remaining)
            file.seek(0)
            return file
    return b"".join(held)


async def send(
    request: BaseRequest, answer: HttpAnswer, moved: Callable[[], None], *, closes: bool
) -> StreamResponse:
    """Send an answer in parts, each after the reader has taken the previous one and ``moved`` was called."""
    headers = [*answer.headers, ("Server", SERVER_NAME)]
    response: StreamResponse
    if isinstance(answer.body, bytes) and len(answer.body) <= IN_MEMORY:
        response = Response(status=answer.status, reason=answer.reason, headers=headers, body=answer.body)
        parts: Iterable[bytes] = ()
    else:
        response = StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
        file = io.BytesIO(answer.body) if isinstance(answer.body, bytes) else answer.body
        parts = iter(lambda: file.read(IN_MEMORY), b"")
    if closes:
        response.force_close()
    try:
        await response.prepare(request)
        for part in parts:
            await response.write(part)
            moved()
        await response.write_eof()
    finally:
        if not isinstance(answer.body, bytes):
            answer.body.close()
    return response


T = TypeVar("T")
THREADS = 32
THREADS_A_CALLER = 24
WAITING_A_CALLER = 1_000

_Job = tuple[Callable[[], Any], "asyncio.Future[Any]", str]


class TooManyWaiting(Exception):
    """A caller has more requests waiting than the queue holds."""


class Workers:
    """The worker threads of one event loop.

    All but :meth:`_work` runs in the loop's thread, so that nothing here needs a lock.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._taken: queue.Queue[_Job | None] = queue.Queue()
        self._waiting: OrderedDict[str, deque[_Job]] = OrderedDict()
        self._busy: dict[str, int] = {}
        self._free = THREADS
        self._threads = [
            threading.Thread(target=self._work, name=f"wrods-worker-{number}", daemon=True)
            for number in range(THREADS)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        """Return the result of a caller's work, run in one of the threads."""
        future: asyncio.Future[T] = self._loop.create_future()
        waiting = self._waiting.get(caller)
        if waiting is None:
            waiting = self._waiting[caller] = deque()
        elif len(waiting) >= WAITING_A_CALLER:
            raise TooManyWaiting
        waiting.append((work, future, caller))
        self._give_out()
        return await future

    def close(self) -> None:
        """End each thread after its current work, without waiting for long ones."""
        for _ in self._threads:
            self._taken.put(None)

    def _give_out(self) -> None:
        passed = 0
        while self._free and passed < len(self._waiting):
            caller, waiting = next(iter(self._waiting.items()))
            self._waiting.move_to_end(caller)
            if self._busy.get(caller, 0) >= THREADS_A_CALLER:
                passed += 1
                continue
            passed = 0
            job = waiting.popleft()
            if not waiting:
                del self._waiting[caller]
            self._free -= 1
            self._busy[caller] = self._busy.get(caller, 0) + 1
            self._taken.put(job)

    def _work(self) -> None:
        while (job := self._taken.get()) is not None:
            work, future, caller = job
            try:
                outcome: tuple[Any, BaseException | None] = work(), None
            except BaseException as error:  # every error is passed to the caller that waits
                outcome = None, error
            try:
                self._loop.call_soon_threadsafe(self._done, future, caller, *outcome)
            except RuntimeError:  # the loop has ended, and nobody waits any more
                return
            del job, work, future, outcome

    def _done(
        self, future: asyncio.Future[Any], caller: str, value: Any, error: BaseException | None
    ) -> None:
        self._free += 1
        self._busy[caller] -= 1
        if not self._busy[caller]:
            del self._busy[caller]
        if not future.done():
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)
        self._give_out()


ACCEPTED_IN_A_ROW = 16
LAST_ANSWERS_S = 20
TLS_FIRST_BYTE = 0x16
HANDSHAKE_WITHIN_S = 15
LONGEST_HEADER = 16 * 1024
MOST_HEADERS = 64
NEVER_S = 10.0**9
OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class StudyServer:
    """A bound server; :meth:`run` answers until it is stopped. Private methods run in the loop's thread."""

    def __init__(
        self,
        app: Flask,
        listening: Sequence[socket.socket],
        *,
        behind_proxy: bool = False,
        tls: ssl.SSLContext | None = None,
        on_visitor: Callable[[str], None] = lambda address: None,
        limits: CallerLimits | None = None,
    ) -> None:
        self._app = app
        self._listening = list(listening)
        self._behind_proxy = behind_proxy
        self.tls = tls
        self.on_visitor = on_visitor
        limits = limits or (BEHIND_PROXY if behind_proxy else CallerLimits())
        self._limits = within_files(limits, raise_file_limit())
        self._requests = Throttle(limits.requests, limits.window_s)
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = int(self._listening[0].getsockname()[1])
        self._gate = threading.Lock()
        self._is_stopped = False
        self._stop: Callable[[], object] | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        """Answer requests; on Ctrl-C or SIGTERM finish the requests in progress and return."""
        # imported modules stay alive: garbage collection skips them while participants wait
        gc.collect()
        gc.freeze()
        try:
            with _told_by_signals(self._ask_to_stop), asyncio.Runner() as runner:
                runner.run(self._serve())
        finally:
            self._ended.set()
            self._stop_listening()

    def close(self) -> None:
        """Stop from another thread: finish the requests in progress, and return afterwards."""
        if self._ask_to_stop():
            self._ended.wait(timeout=LAST_ANSWERS_S + 5)
        self._stop_listening()

    def _ask_to_stop(self) -> bool:
        """Ask the loop to stop; return whether one is running. Any thread may call it."""
        with self._gate:
            self._is_stopped = True
            if self._stop is not None:
                self._stop()
            return self._stop is not None

    def _stop_listening(self) -> None:
        for listening in self._listening:
            listening.close()

    async def _serve(self) -> None:
        """Answer until told to stop, then finish the requests in progress."""
        loop = asyncio.get_running_loop()
        stopping = asyncio.Event()
        with self._gate:
            self._stop = partial(loop.call_soon_threadsafe, stopping.set)
            if self._is_stopped:
                stopping.set()
        loop.set_exception_handler(_quietly)
        everybody = {"per_address": sys.maxsize, "per_network": sys.maxsize} if self._behind_proxy else {}
        self._connections = Connections(replace(self._limits, **everybody))
        self._in_progress = InProgress(self._limits)
        self._workers = Workers()
        self.manager = web.Server(self._answer)
        for socket_listening in self._listening:
            self.begin(self._accept(socket_listening))
        self.begin(self._look_after())
        try:
            await stopping.wait()
        finally:
            try:
                for task in (tasks := list(self._tasks)):
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                await self._finish()
                self._workers.close()
            finally:
                with self._gate:
                    self._stop = None

    def begin(self, work: Any) -> None:
        """Run a task without waiting for it."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        # a loop holds only weak references to its tasks
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

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
        # transports close in the loop's next iterations
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
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(lambda: _Door(self, connection), accepted)
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
                answer, closes = self._patience(HTTPStatus.TOO_MANY_REQUESTS, request, 2), True
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
    ) -> tuple[HttpAnswer, bool]:
        """Return the answer to a request, and whether the connection closes after it."""
        caller = caller_of(str(head["REMOTE_ADDR"]))
        wait = self._requests.wait(caller)
        if wait:
            return self._patience(HTTPStatus.TOO_MANY_REQUESTS, request, int(wait) + 1), True
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
                # for an oversized body, the application receives only its size, and refuses it with its own message
                environ = head | {"wsgi.input": body, "CONTENT_LENGTH": str(size)}
                return await self._workers.run(caller, partial(call, self._app, environ)), is_too_large
        except TooManyWaiting:
            return self._patience(HTTPStatus.SERVICE_UNAVAILABLE, request, 2), True

    def _patience(self, status: HTTPStatus, request: web.BaseRequest, retry_after_s: int) -> HttpAnswer:
        """Ask a caller to come back: a participant in the words of the study, a page's script in JSON."""
        first = request.path.lstrip("/").partition("/")[0]
        page = self._app.extensions.get(WAITING_PAGES, {}).get(first)
        if first == "api":
            told = {"error": status.phrase, "mend": "The browser tries again by itself."}
            refusal = _refusal(status, request, "application/json", json.dumps(told).encode())
        elif page is not None:
            refusal = _refusal(status, request, "text/html; charset=utf-8", page)
        else:
            refusal = _refusal(status, request)
        return replace(refusal, headers=[*refusal.headers, ("Retry-After", str(retry_after_s))])


class _Door(asyncio.Protocol):
    """Waits for a connection's first bytes, which show whether its caller uses TLS."""

    def __init__(self, server: StudyServer, connection: Connection) -> None:
        self._server = server
        self._connection = connection
        self._early: list[bytes] = []
        self._is_lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._connection.transport = transport
        if self._connection.is_forgotten:  # it had to make room before it was created
            transport.abort()

    def connection_lost(self, problem: Exception | None) -> None:
        self._is_lost = True
        self._connection.forget()

    def data_received(self, data: bytes) -> None:
        if self._connection.is_secure:  # data from the handshake's last packet
            self._early.append(data)
            return
        transport = self._connection.transport
        assert transport is not None
        self._server.on_visitor(self._connection.address)
        if data[0] != TLS_FIRST_BYTE:
            self._hand_over(transport, data)
        elif self._server.tls is None:
            transport.abort()
        else:
            self._connection.is_secure = True
            self._server.begin(self._greet_in_tls(transport, self._server.tls, data))

    async def _greet_in_tls(self, plain: asyncio.Transport, tls: ssl.SSLContext, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        # the first bytes have been taken from the socket; the handshake gets them once it has begun
        loop.call_soon(loop.call_soon, _feed, plain, data)
        try:
            secure = await loop.start_tls(
                plain, self, tls, server_side=True, ssl_handshake_timeout=HANDSHAKE_WITHIN_S
            )
        except (OSError, TimeoutError):  # also TLS errors, such as a caller that distrusts the certificate
            self._connection.cut()
            return
        if secure is not None and not self._is_lost:
            self._hand_over(secure, b"".join(self._early))

    def _hand_over(self, transport: asyncio.Transport, data: bytes) -> None:
        handler = _Handler(self._server.manager, self._connection)
        transport.set_protocol(handler)
        handler.connection_made(transport)
        if data:
            handler.data_received(data)


def _feed(plain: asyncio.Transport, data: bytes) -> None:
    """Pass to a handshake the bytes that arrived before it."""
    handshake = plain.get_protocol()
    if isinstance(handshake, asyncio.BufferedProtocol) and not plain.is_closing():
        buffer = memoryview(handshake.get_buffer(len(data)))
        buffer[: len(data)] = data
        handshake.buffer_updated(len(data))


class _Handler(web.RequestHandler):
    """aiohttp's request handler with a monitored connection."""

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


def _refusal(
    status: HTTPStatus,
    request: web.BaseRequest,
    kind: str = "text/plain; charset=utf-8",
    body: bytes | None = None,
) -> HttpAnswer:
    """Return an answer made before the application is called."""
    connection: Connection = request.protocol.connection  # type: ignore[attr-defined]
    host = request.headers.get("Host", "localhost")
    protecting = headers_for(is_secure=connection.is_secure, host=host, is_public=False)
    headers = [("Content-Type", kind), ("Cache-Control", "no-store"), *protecting.items()]
    return HttpAnswer(status.value, status.phrase, headers, body or f"{status.phrase}\n".encode())


@contextmanager
def _told_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """Call a function on Ctrl-C and SIGTERM; a second signal interrupts at once."""
    was_told = False

    def tell(number: int, frame: FrameType | None) -> None:
        nonlocal was_told
        if was_told:
            raise KeyboardInterrupt
        was_told = True
        stop()

    if threading.current_thread() is not threading.main_thread():  # whose caller handles the signals
        yield
        return
    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _quietly(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Suppress log messages about callers that hang up, distrust the certificate, or connect during shutdown: these are routine.

    A connection that arrives in the loop's iteration in which accepting is cancelled is an ``InvalidStateError`` of asyncio.
    """
    if not isinstance(context.get("exception"), OSError | asyncio.InvalidStateError | None):
        loop.default_exception_handler(context)


ROOM_OF_A_FORM = 64 * 1024
"""Largest size in bytes of a form, not counting the file that it uploads."""


def largest_body(app: Flask, path: str, cookie: str) -> int:
    """Return the number of bytes that the holder of a cookie may send to an address."""
    if "wrods" not in app.extensions:  # the preview, to which nothing is sent
        return LARGEST_BODY
    # behind a proxy the headers do not show yet that the browser uses TLS, but its cookie does
    base = "https://localhost" if SECURE in cookie else "http://localhost"
    # as an environment, not as an address: a caller's path need not be a valid one
    environ = EnvironBuilder(base_url=base, method="POST", headers=[("Cookie", cookie)]).get_environ()
    environ["PATH_INFO"] = path
    with app.request_context(environ):
        return LARGEST_UPLOAD + ROOM_OF_A_FORM if takes_a_file() else LARGEST_BODY
