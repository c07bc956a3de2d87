"""Between aiohttp's requests and the Flask application: WSGI, with bodies and answers kept whole.

A body is read before a thread has to do with it, and an answer is whole before it is sent, so that neither a slow sender nor
a slow reader holds a thread. What is large waits in a temporary file.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from aiohttp.web import BaseRequest, Response, StreamResponse

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


class _File:
    """An open file as an answer (PEP 3333's ``wsgi.file_wrapper``)."""

    def __init__(self, file: IO[bytes], block_size: int = IN_MEMORY) -> None:
        self.file = file
        self._block_size = block_size

    def __iter__(self) -> Iterator[bytes]:
        while block := self.file.read(self._block_size):
            yield block

    def close(self) -> None:
        self.file.close()


@dataclass(frozen=True)
class Answer:
    """An answer of the application: its body is bytes, or an open file from which it is sent."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes | IO[bytes]


def head_of(request: BaseRequest, *, address: str, is_secure: bool, believes_proxy: bool) -> WSGIEnvironment:
    """Return what a request says before its body, as WSGI has it; of headers that a proxy sets only what may be believed.

    ``REMOTE_ADDR`` is the caller's address: what the proxy added last to ``X-Forwarded-For``, else the connection's.
    """
    path, _, query = request.raw_path.partition("?")
    if not path.startswith("/"):  # the whole address, as one writes to a proxy
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
        "wsgi.file_wrapper": _File,
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
    """Return a request's body and its size; of one that is larger than ``most`` as much as shows that it is."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # what is written here is no part of the answer
        request.writer.output_size = 0
    body: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
    size = 0
    while size <= most and (part := await request.content.readany()):
        body.write(part)
        size += len(part)
    body.seek(0)
    return body, size


def call(application: WSGIApplication, environ: WSGIEnvironment) -> Answer:
    """Call the application; this can take long, and runs in a worker's thread."""
    started: list[Any] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], problem: Any = None
    ) -> Callable[..., Any]:
        started[:] = [status, headers]
        return _no_write

    parts = application(environ, start_response)
    try:
        if isinstance(parts, _File):
            body: bytes | IO[bytes] = parts.file
        else:
            body = _whole(parts)
        status, headers = started
    except BaseException:
        _close(parts)
        raise
    if not isinstance(parts, _File):
        _close(parts)
    code, _, reason = status.partition(" ")
    return Answer(int(code), reason, headers, body)


def _no_write(data: bytes) -> None:
    raise NotImplementedError("answers are returned")


def _close(parts: Iterable[bytes]) -> None:
    close = getattr(parts, "close", None)
    if close is not None:
        close()


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
    request: BaseRequest, answer: Answer, moved: Callable[[], None], *, closes: bool
) -> StreamResponse:
    """Send an answer, in parts that wait for their reader; ``moved`` is called as each has been taken."""
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
