"""Callers that take too much: too many connections, too slow, too often; and what of HTTP the application sees."""

from __future__ import annotations

import asyncio
import errno
import http.client
import io
import json
import os
import select
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
from flask import Flask, Response, jsonify, request, send_file

from experiment.demo.tour import LocalServer
from experiment.people import connections as limits_of_server
from experiment.people.connections import (
    CallerLimits,
    Connections,
    Phase,
    caller_of,
    listen,
    network_of,
    raise_file_limit,
    within_files,
)
from experiment.people.lab.serving import server_certificate, tls_of
from experiment.people.server import THREADS, THREADS_A_CALLER, StudyServer, TooManyWaiting, Workers
from experiment.people.serving_lock import _SharedClaim, serving
from experiment.store import open_store
from experiment.store.database import address_of
from stimuli.errors import UserError
from tests.experiment.commands import wrods

T = TypeVar("T")
HERE, THERE, NEAR, FAR = "127.0.0.1", "127.0.7.7", "127.0.7.8", "127.0.9.9"


class Gate:
    """A view that answers when it is told to."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()

    def __call__(self) -> str:
        self.entered.release()
        self.opened.wait(60)
        return "through"


def application(gate: Gate, folder: Path) -> Flask:
    app = Flask(__name__)
    big = folder / "big.bin"
    big.write_bytes(bytes(range(256)) * 40_000)

    @app.route("/who", methods=["GET", "POST"])
    def who() -> Response:
        names = ("REMOTE_ADDR", "wsgi.url_scheme", "PATH_INFO", "QUERY_STRING", "CONTENT_LENGTH")
        told = {name: request.environ.get(name) for name in names}
        return jsonify(told | {"headers": dict(request.headers), "body": len(request.get_data())})

    app.add_url_rule("/wait", "wait", gate)
    app.add_url_rule("/big", "big", lambda: send_file(big, conditional=True))
    app.add_url_rule("/streamed", "streamed", lambda: Response(b"0123456789abcdef" * 4096 for _ in range(40)))

    @app.get("/fails")
    def fails() -> Response:
        return Response(str(1 // number) for number in (1, 0))

    return app


Serve = Callable[..., int]


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def serve(gate: Gate, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as running:

        def run(limits: CallerLimits | None = None, **options: Any) -> int:
            server = StudyServer(application(gate, tmp_path), listen(HERE, 0), limits=limits, **options)
            thread = threading.Thread(target=server.run, daemon=True)
            thread.start()
            running.callback(thread.join, 60)
            running.callback(server.close)
            running.callback(gate.opened.set)
            return server.port

        yield run


def connect(port: int, address: str = HERE) -> socket.socket:
    return socket.create_connection((HERE, port), timeout=60, source_address=(address, 0))


def ask(
    line: socket.socket, path: str = "/who", **headers: str
) -> tuple[int, http.client.HTTPMessage, bytes]:
    told = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    line.sendall(f"GET {path} HTTP/1.1\r\nHost: here\r\n{told}\r\n".encode())
    return read(line)


def read(line: socket.socket) -> tuple[int, http.client.HTTPMessage, bytes]:
    answer = http.client.HTTPResponse(line)
    answer.begin()
    return answer.status, answer.headers, answer.read()


def is_closed(line: socket.socket) -> bool:
    """Wait until the other side has ended a connection; say whether it did."""
    try:
        while line.recv(65_536):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_who_opens_too_many_connections_loses_their_own_that_waited_longest(serve):
    port = serve(CallerLimits(per_address=3))
    kept = connect(port)
    assert ask(kept)[0] == 200
    many = [connect(port, THERE) for _ in range(3)]
    assert [ask(one)[0] for one in many[1:]] == [200, 200]
    late = connect(port, THERE)
    assert ask(late)[0] == 200
    assert is_closed(many[0])
    assert [ask(one)[0] for one in (*many[1:], kept, late)] == [200] * 4


@pytest.mark.parametrize(
    ("limits", "addresses", "cut"),
    [
        (CallerLimits(per_address=3, per_network=4), [f"127.0.7.{n}" for n in range(1, 12)], 7),
        (CallerLimits(total=16), [f"127.0.{n}.1" for n in range(10, 69)], 40),
    ],
    ids=["of a network", "of all together"],
)
def test_many_addresses_have_a_limit_and_newcomers_still_come_in(serve, limits, addresses, cut):
    port = serve(limits)
    silent = [connect(port, address) for address in addresses]
    newcomer = connect(port, FAR)
    assert ask(newcomer)[0] == 200
    assert all(is_closed(one) for one in silent[:cut])
    assert ask(newcomer)[0] == ask(connect(port, addresses[-1]))[0] == 200


def test_a_place_full_of_busy_connections_is_refused_and_others_are_answered(serve, gate):
    port = serve(CallerLimits(per_address=2))
    busy = [connect(port, THERE) for _ in range(2)]
    for one in busy:
        one.sendall(b"GET /wait HTTP/1.1\r\nHost: here\r\n\r\n")
        gate.entered.acquire(timeout=60)
    assert is_closed(connect(port, THERE))
    assert ask(connect(port))[0] == 200
    gate.opened.set()
    assert [read(one)[2] for one in busy] == [b"through"] * 2


def test_requests_of_one_address_are_limited_and_others_do_not_notice(serve):
    port = serve(CallerLimits(requests=5, window_s=600))
    line = connect(port, THERE)
    assert [ask(line)[0] for _ in range(5)] == [200] * 5
    status, headers, _ = ask(line)
    assert status == 429 and int(headers["Retry-After"]) > 1
    assert headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"
    assert ask(connect(port, NEAR))[0] == 200


def test_behind_a_proxy_requests_are_counted_by_the_last_address_that_it_added_on_however_many_lines(serve):
    port = serve(CallerLimits(requests=2, window_s=600), behind_proxy=True)
    # what a caller claims stands before what the proxy adds
    assert ask(connect(port), X_Forwarded_For="x")[0] == 200
    told = [ask(connect(port), **{"X-Forwarded-For": f"10.0.0.{n}, 203.0.113.9"}) for n in range(3)]
    assert [status for status, _, _ in told] == [200, 200, 429], "one caller, whatever it claims"
    assert json.loads(told[0][2])["REMOTE_ADDR"] == "203.0.113.9"
    line = connect(port)
    line.sendall(
        b"GET /who HTTP/1.1\r\nHost: here\r\nX-Forwarded-For: 198.51.100.2, 198.51.100.3\r\n"
        b"X-Forwarded-For: 192.0.2.1, 203.0.113.9\r\n\r\n"
    )
    assert read(line)[0] == 429
    assert ask(connect(port), **{"X-Forwarded-For": "203.0.113.10"})[0] == 200


def test_without_a_proxy_its_headers_are_dropped_and_underscores_never_count(serve):
    port = serve(CallerLimits(requests=3, window_s=600))
    forged = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https", "Forwarded": "for=203.0.113.9",
              "X_Wrods": "1", "X-Other": "kept"}  # fmt: skip
    told = [ask(connect(port), **forged) for _ in range(4)]
    assert [status for status, _, _ in told] == [200, 200, 200, 429]
    text = told[0][2].decode()
    assert "203.0.113.9" not in text and "Wrods" not in text and '"X-Other":"kept"' in text
    assert f'"REMOTE_ADDR":"{HERE}"' in text and '"wsgi.url_scheme":"http"' in text


def test_behind_a_proxy_one_caller_cannot_take_all_connections(serve):
    port = serve(CallerLimits(total=16), behind_proxy=True)
    slow = "POST /who HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 198.51.100.7\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    held = [connect(port) for _ in range(16)]
    told = []
    for line in held:
        line.sendall(slow.encode())
        told.append(line.recv(12))
    assert told == [b"HTTP/1.1 100"] * 8 + [b"HTTP/1.1 429"] * 8
    assert ask(connect(port), **{"X-Forwarded-For": "203.0.113.9"})[0] == 200


def test_behind_a_proxy_requests_in_progress_are_counted_by_address_and_network(serve, gate):
    port = serve(CallerLimits(per_address=2, per_network=3), behind_proxy=True)
    busy = [connect(port) for _ in range(3)]
    for line, address in zip(busy, ("198.51.100.7", "198.51.100.7", "198.51.100.8"), strict=True):
        line.sendall(f"GET /wait HTTP/1.1\r\nHost: here\r\nX-Forwarded-For: {address}\r\n\r\n".encode())
        gate.entered.acquire(timeout=60)
    for address, expected in (("198.51.100.7", 429), ("198.51.100.9", 429), ("203.0.113.9", 200)):
        line = connect(port)
        status, headers, _ = ask(line, **{"X-Forwarded-For": address})
        assert status == expected
        assert status == 200 or (int(headers["Retry-After"]) > 0 and is_closed(line))
    gate.opened.set()
    assert [read(line)[2] for line in busy] == [b"through"] * 3
    assert ask(busy[0], **{"X-Forwarded-For": "198.51.100.7"})[0] == 200


@pytest.mark.parametrize(
    "sent",
    [b"", b"\x16", b"G", b"GET / HTTP/1.1\r\nHost: he", b"POST /who HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx"],
    ids=["nothing", "a byte of TLS", "a byte", "half a head", "half a body"],
)  # fmt: skip
def test_who_goes_on_too_slowly_is_cut(serve, sent, tmp_path):
    limits = CallerLimits(head_s=0.5, silent_s=0.5, idle_s=60, body_grace_s=0.5)
    tls = tls_of(server_certificate(tmp_path / "lab", ["localhost"], [HERE]))
    port = serve(limits, tls=tls)
    kept = connect(port)
    assert ask(kept)[0] == 200
    slow = connect(port, THERE)
    slow.sendall(sent)
    assert is_closed(slow)
    assert ask(kept)[0] == 200


def test_who_reads_no_answer_is_cut(serve):
    port = serve(CallerLimits(stalled_s=0.1))
    deaf = [connect(port, THERE) for _ in range(THREADS + 2)]
    for one in deaf:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(b"GET /big HTTP/1.1\r\nHost: here\r\n\r\n")
    # more of them than threads, and still there is one for others
    assert ask(connect(port))[0] == 200
    assert all(is_hung_up(one) for one in deaf)


def is_hung_up(line: socket.socket) -> bool:
    """Wait until the other side has cut a connection, without reading from it; say whether it did."""
    waiting = select.poll()
    waiting.register(line, 0)  # errors and hanging up are told unasked
    return bool(waiting.poll(60_000))


def to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a thread of its own: in this one a browser's loop may be running, where browser tests came before."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@pytest.mark.parametrize(
    ("phase", "received", "after", "is_cut"),
    [
        (Phase.BODY, 0, 9, False), (Phase.BODY, 0, 11, True), (Phase.BODY, 49_000, 60, True),
        (Phase.BODY, 51_000, 60, False), (Phase.WORK, 0, 10_000, False), (Phase.ANSWER, 0, 29, False),
        (Phase.ANSWER, 0, 31, True), (Phase.HEAD, 0, 74, False), (Phase.HEAD, 0, 76, True),
        (Phase.HEAD, 1, 9, False), (Phase.HEAD, 1, 11, True),
    ],
)  # fmt: skip
def test_each_phase_has_its_own_time(phase, received, after, is_cut):
    async def make() -> Connections:
        return Connections(CallerLimits())

    table, now = to_its_end(make()), 0.0
    table.now = lambda: now
    connection = table.admit(HERE)
    assert connection is not None
    connection.turn_to(Phase.BODY)
    connection.turn_to(phase)
    if received:
        connection.heard(received)
    now = after
    assert table.cut_overdue() == is_cut
    assert len(table) == (not is_cut)


def test_callers_and_networks_are_those_that_a_household_or_a_provider_has():
    assert caller_of("192.0.2.7") != caller_of("192.0.2.8")
    assert network_of("192.0.2.7") == network_of("192.0.2.8") != network_of("192.0.3.7")
    assert caller_of("2001:db8:1:2::1") == caller_of("2001:db8:1:2:ffff::9") != caller_of("2001:db8:1:3::1")
    assert network_of("2001:db8:1:2::1") == network_of("2001:db8:1:3::1") != network_of("2001:db8:2::1")
    assert caller_of("::ffff:192.0.2.7") == caller_of("192.0.2.7")
    assert caller_of("fe80::1%eth0") == caller_of("fe80::2")
    assert caller_of("nonsense") == "nonsense"


def test_the_limit_of_open_files_is_raised_and_bounds_the_connections(monkeypatch):
    resource = pytest.importorskip("resource")
    set_to: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 5000))
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: set_to.append(pair))
    assert raise_file_limit() == 5000 and set_to == [(5000, 5000)]
    assert within_files(CallerLimits(), 5000).total == (5000 - limits_of_server.KEPT_FILES) // 2
    assert within_files(CallerLimits(), 10**6) == CallerLimits()
    few = within_files(CallerLimits(), 512)
    assert few.per_address < few.per_network < few.total, "none of them can take all"


def test_a_server_without_open_files_left_makes_room_and_goes_on(serve, monkeypatch):
    accept = asyncio.SelectorEventLoop.sock_accept
    refusals = iter([errno.EMFILE, errno.EMFILE, errno.ECONNABORTED, errno.ENFILE])
    begun = threading.Event()

    async def short_of_files(loop: Any, listening: socket.socket) -> Any:
        problem = next(refusals, None) if begun.is_set() else None
        if problem is not None:
            raise OSError(problem, "no")
        return await accept(loop, listening)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "sock_accept", short_of_files)
    port = serve()
    waiting = connect(port, THERE)
    assert ask(waiting)[0] == 200
    begun.set()
    kick = connect(port)  # ends the acceptance that was under way
    assert ask(kick)[0] == 200
    assert ask(connect(port))[0] == 200
    assert is_closed(waiting) and next(refusals, None) is None


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(2000)) + b"\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: here\r\n\r\n",
        b"what is this?\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"GET / HTTP/1.1\r\nHost: here\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: here\r\nA: b\rc: d\r\n\r\n",
    ],
    ids=["long header", "many headers", "long address", "nonsense", "two lengths", "lengths differ", "negative", "lone CR"],
)  # fmt: skip
def test_what_is_no_request_is_refused_with_all_headers(serve, sent):
    port = serve()
    line = connect(port)
    line.sendall(sent)
    status, headers, _ = read(line)
    assert 400 <= status < 500
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Content-Security-Policy"]
    assert headers["Server"] == "wrods" and "aiohttp" not in str(headers)
    assert is_closed(line)
    assert ask(connect(port))[0] == 200


def test_bodies_arrive_in_every_way_that_http_has(serve):
    port = serve()
    line = connect(port)
    line.sendall(
        b"POST /who HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n"
    )
    assert b'"body":8' in read(line)[2]
    line.sendall(b"POST /who HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    assert line.recv(25, socket.MSG_WAITALL) == b"HTTP/1.1 100 Continue\r\n\r\n"
    line.sendall(b"hello")
    assert b'"body":5' in read(line)[2]
    # two requests in one breath are answered in their order
    both = connect(port)
    both.sendall(b"GET /who?a=1 HTTP/1.1\r\nHost: h\r\n\r\nGET http://h/who?a=2 HTTP/1.1\r\nHost: h\r\n\r\n")
    said = b""
    while said.count(b'"QUERY_STRING":"a=') < 2:
        more = both.recv(65_536)
        assert more, said
        said += more
    assert said.index(b'"QUERY_STRING":"a=1"') < said.index(b'"QUERY_STRING":"a=2"')
    line.sendall(b"GET /who/%C3%BC%2F HTTP/1.0\r\n\r\n")
    assert read(line)[0] == 404 and is_closed(line)


def test_large_answers_files_and_ranges_arrive_whole(serve):
    line = connect(serve())
    whole = bytes(range(256)) * 40_000
    status, headers, body = ask(line, "/big")
    assert (status, body) == (200, whole) and headers["Content-Length"] == str(len(whole))
    assert ask(line, "/big", Range="bytes=100-199")[2] == whole[100:200]
    assert ask(line, "/big", **{"If-None-Match": str(headers["ETag"])})[0] == 304
    assert ask(line, "/streamed")[2] == b"0123456789abcdef" * 4096 * 40
    line.sendall(b"HEAD /big HTTP/1.1\r\nHost: h\r\n\r\n")
    answer = http.client.HTTPResponse(line, method="HEAD")
    answer.begin()
    assert answer.headers["Content-Length"] == str(len(whole)) and answer.read() == b""
    answer.close()
    assert ask(line)[0] == 200


def test_an_answer_that_breaks_off_is_an_error_and_the_server_goes_on(serve):
    port = serve()
    assert ask(connect(port), "/fails")[0] == 500
    assert ask(connect(port))[0] == 200


def test_a_stopped_server_finishes_what_is_under_way(gate, tmp_path):
    server = StudyServer(application(gate, tmp_path), listen(HERE, 0))
    running = threading.Thread(target=server.run, daemon=True)
    running.start()
    idle, busy = connect(server.port), connect(server.port)
    assert ask(idle)[0] == 200
    busy.sendall(b"GET /wait HTTP/1.1\r\nHost: here\r\n\r\n")
    gate.entered.acquire(timeout=60)
    closing = threading.Thread(target=server.close)
    closing.start()
    assert is_closed(idle)
    gate.opened.set()
    assert read(busy)[2] == b"through" and is_closed(busy)
    closing.join(60)
    running.join(60)
    assert not closing.is_alive() and not running.is_alive()
    with pytest.raises(ConnectionRefusedError):
        connect(server.port)


def test_a_greeting_of_tls_may_come_byte_by_byte(serve, tmp_path):
    certificate = server_certificate(tmp_path / "lab", ["localhost"], [HERE])
    port = serve(tls=tls_of(certificate))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=str(certificate.authority))
    secure = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    line = connect(port)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while True:
        try:
            secure.do_handshake()
            break
        except ssl.SSLWantReadError:
            for byte in outgoing.read():
                line.send(bytes([byte]))
            incoming.write(line.recv(65_536))
    # the end of the handshake and the first request in one packet
    secure.write(b"GET /who HTTP/1.1\r\nHost: here\r\n\r\n")
    line.sendall(outgoing.read())
    text = io.BytesIO()
    while b'"wsgi.url_scheme":"https"' not in text.getvalue():
        try:
            text.write(secure.read())
        except ssl.SSLWantReadError:
            incoming.write(line.recv(65_536))


def test_callers_take_turns_and_none_has_all_threads():
    opened, order = threading.Event(), []

    def work(name: str) -> None:
        opened.wait(60)
        order.append(name)

    async def many() -> None:
        workers = Workers()
        greedy = [asyncio.ensure_future(workers.run("greedy", lambda: work("greedy"))) for _ in range(200)]
        await asyncio.sleep(0)
        modest = [asyncio.ensure_future(workers.run(f"m{n}", lambda: work("modest"))) for n in range(20)]
        await asyncio.sleep(0)
        assert workers._busy["greedy"] == THREADS_A_CALLER < THREADS
        opened.set()
        await asyncio.gather(*greedy, *modest)
        workers.close()

    to_its_end(many())
    assert order.index("modest") < 60 and len(order) == 220
    assert max(place for place, name in enumerate(order) if name == "modest") < 120


def test_a_caller_with_too_much_under_way_is_refused_at_once(monkeypatch):
    opened = threading.Event()
    monkeypatch.setattr("experiment.people.server.WAITING_A_CALLER", 5)

    async def many() -> None:
        workers = Workers()
        asked = [asyncio.ensure_future(workers.run("a", opened.wait)) for _ in range(THREADS_A_CALLER + 6)]
        await asyncio.sleep(0)
        other = asyncio.ensure_future(workers.run("b", lambda: "answered"))
        assert await other == "answered"
        opened.set()
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(one, TooManyWaiting) for one in told) == 1
        workers.close()

    to_its_end(many())


def test_a_server_closed_under_requests_says_nothing_of_broken_sockets(make_study, caplog):
    study = make_study()
    ended = threading.Event()

    def poll(address: str) -> None:
        while not ended.is_set():
            with suppress(OSError):
                urllib.request.urlopen(address, timeout=60).read()

    with open_store(study.folder) as store:
        with LocalServer(study, store) as server:
            address = server.links.take_part
            visitors = [threading.Thread(target=poll, args=(address,)) for _ in range(6)]
            for visitor in visitors:
                visitor.start()
            time.sleep(0.5)
        ended.set()
        for visitor in visitors:
            visitor.join()
    assert not [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")]


KEY, OTHER_KEY = b"a signing key for tests", b"another signing key"


def test_a_second_server_of_a_study_is_refused_and_told_who_serves_it(make_study):
    study = make_study()
    address = address_of(study.folder)
    with serving(address, study.id, KEY) as announce, serving(address, "another-study", KEY):
        announce("http://localhost:8123/small/")
        told = wrods("serve", study.folder, "--no-browser", "--port", "0")
        assert told.exit_code == 1
        for said in (f" {os.getpid()} ", socket.gethostname(), "http://localhost:8123/small/"):
            assert said in told.output
        assert not (study.folder / "study.db").exists(), "the second server touches nothing"
        run = wrods("run", study.folder, "--model", "baseline:random")
        assert run.exit_code == 0, run.output
    with serving(address, study.id, KEY):
        pass
    assert not list(study.folder.glob("*.serving-*.json"))


def test_servers_on_postgresql_share_a_study_with_one_signing_key_and_not_with_two(postgres_url):
    address = address_of(postgres_url)
    with serving(address, "small", KEY), serving(address, "small", KEY):
        with (
            pytest.raises(UserError, match=rf"another signing key: .* process {os.getpid()}"),
            serving(address, "small", OTHER_KEY),
        ):
            pass
        with serving(address, "another-study", OTHER_KEY):
            pass
    with serving(address, "small", OTHER_KEY):
        pass


def test_a_claim_on_postgresql_is_taken_again_after_its_connection_broke(postgres_url):
    address = address_of(postgres_url)
    claim = _SharedClaim(address, "small", KEY)
    claim.take()
    assert claim._connection is not None
    claim._connection.connection.dbapi_connection.close()  # type: ignore[union-attr]
    claim.renew()
    with pytest.raises(UserError, match="WRODS_SECRET"), serving(address, "small", OTHER_KEY):
        pass
    claim.close()
    with serving(address, "small", OTHER_KEY):
        pass
