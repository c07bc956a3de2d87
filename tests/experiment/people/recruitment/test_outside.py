from __future__ import annotations

import http.client
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from experiment.people.app import create_app
from experiment.people.recruitment.codes import recruitment_for
from experiment.people.recruitment.outside import (
    Bell,
    Finding,
    example_link,
    look_from_outside,
    return_addresses,
)
from experiment.people.server import Server
from experiment.people.service import service_for
from experiment.store import open_store
from experiment.study import Study

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "date", "server", "content-length"}


def certificate(folder: Path, name: str, days: int = 365) -> Path:
    """Make a self-signed certificate with its key in one file."""
    file = folder / f"{name}-{days}.pem"
    key, signed = folder / "key.pem", folder / "signed.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", signed, "-days", str(days), "-subj", f"/CN={name}",
         "-addext", f"subjectAltName=DNS:{name}"],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_bytes(key.read_bytes() + signed.read_bytes())
    return file


class Proxy:
    """A small proxy with TLS before a server; what it does to requests and answers can be changed.

    Parameters
    ----------
    backends : sequence of int
        Ports of the servers, which get the requests in turn.
    pem : Path or None
        Certificate and key; None for plain http.
    request : callable
        Changes the headers that are passed on, given the headers and the proxy's own address.
    path : callable
        Changes the path.
    answer : callable
        Changes the headers of answers.
    keeps : bool
        Gives the first answer to a path again.
    """

    def __init__(
        self,
        backends: Sequence[int],
        pem: Path | None,
        *,
        request: Callable[[dict[str, str], str], None] = lambda headers, address: None,
        path: Callable[[str], str] = lambda path: path,
        answer: Callable[[dict[str, str]], None] = lambda headers: None,
        keeps: bool = False,
    ) -> None:
        kept: dict[str, Any] = {}
        turn = cycle(backends)

        class Passing(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if keeps and self.path in kept:
                    return self.give(*kept[self.path])
                scheme = "http" if pem is None else "https"
                headers = {
                    name: value for name, value in self.headers.items() if name.lower() != "connection"
                }
                headers |= {
                    "X-Forwarded-Proto": scheme, "X-Forwarded-Host": self.headers["Host"],
                    "X-Forwarded-For": self.client_address[0],
                }  # fmt: skip
                request(headers, self.headers["Host"])
                connection = http.client.HTTPConnection("127.0.0.1", next(turn), timeout=20)
                try:
                    connection.request("GET", path(self.path), headers=headers)
                    told = connection.getresponse()
                    body = told.read()
                    given = {n: v for n, v in told.getheaders() if n.lower() not in HOP_BY_HOP}
                    answer(given)
                    kept[self.path] = (told.status, given, body)
                except OSError:
                    kept[self.path] = (502, {}, b"bad gateway")
                finally:
                    connection.close()
                self.give(*kept[self.path])

            def give(self, status: int, headers: dict[str, str], body: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
        if pem is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pem)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"{'http' if pem is None else 'https'}://localhost:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def behind(
    make_study: Callable[..., Study], settings: Any, tmp_path: Path
) -> Iterator[Callable[..., list[Finding]]]:
    """Return a function that serves a study behind a proxy and looks at it from outside."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificates of this test")
    study = make_study(("seed: 7\n", "seed: 7\nparticipants: {recruit: sona}\n"))
    with ExitStack() as running:

        def look(
            *, name: str = "localhost", trusted: bool = True, tls: bool = True, prefix: str = "",
            servers: int = 1, credit_host: str | None = None, **changes: Any,
        ) -> list[Finding]:  # fmt: skip
            pem = certificate(tmp_path, name)
            store = running.enter_context(open_store(study.folder))
            service = service_for(study, store)
            ports = []
            for _ in range(max(servers, 1)):
                with socket.socket() as free:
                    free.bind(("127.0.0.1", 0))
                    ports.append(free.getsockname()[1])
            given = Proxy(ports, pem if tls else None, **changes)
            running.callback(given.close)
            url = given.url + prefix
            host = credit_host or given.url.removeprefix("http://").removeprefix("https://")
            address = f"https://{host}/webstudy_credit.aspx?experiment_id=1&credit_token=t"
            config = {"recruitment": {study.id: {"credit_url": address}}}
            service = replace(service, recruitment=recruitment_for(study, config))
            bells = []
            for _ in ports:
                app = create_app({study.id: service}, config=replace(settings, public_url=url))
                bells.append(Bell(app))
                bells[-1].hang()
            for bell, port in zip(bells[:servers], ports, strict=False):
                server = Server(bell.app, "127.0.0.1", port, behind_proxy=True)
                threading.Thread(target=server.run, daemon=True).start()
                running.callback(server.close)
            context = ssl.create_default_context(cafile=str(pem)) if trusted else None
            links = {study.id: example_link(service)}
            return list(
                look_from_outside(
                    url, bells[0], links=links, returns=return_addresses(service), context=context
                )
            )

        yield look


def wrong(findings: list[Finding]) -> list[str]:
    return [str(finding) for finding in findings if not finding.is_right]


def test_behind_a_proxy_that_does_its_work_everything_is_right(behind: Callable[..., list[Finding]]) -> None:
    findings = behind()
    assert wrong(findings) == []
    told = "\n".join(str(finding) for finding in findings)
    for part in (
        "certificate of localhost",
        "requests arrive at this server",
        "cookies",
        "page of small",
        "participants return to",
    ):
        assert part in told


def test_servers_that_share_a_key_may_answer_for_each_other(behind: Callable[..., list[Finding]]) -> None:
    assert wrong(behind(servers=2)) == []


def drop(name: str) -> Callable[[dict[str, str], str], None]:
    return lambda headers, _: headers.pop(name, None) and None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            {"request": drop("X-Forwarded-Proto")},
            "X-Forwarded-Proto (participants use https, wrods receives http)",
        ),
        (
            {
                "request": lambda headers, _: headers.update(
                    {"X-Forwarded-Host": "10.0.0.7", "Host": "10.0.0.7"}
                )
            },
            "wrods receives 10.0.0.7",
        ),
        ({"request": drop("X-Forwarded-For")}, "all participants share the limits of one address"),
        ({"request": drop("Authorization")}, "Authorization, which is sent with answers"),
        ({"path": lambda path: path.partition("?")[0]}, "platform ids would be lost"),
        ({"answer": lambda headers: headers.pop("Set-Cookie", None)}, "without Secure and HttpOnly"),
        (
            {"answer": lambda headers: headers.pop("Cross-Origin-Opener-Policy", None)},
            "are lost: Cross-Origin-Opener-Policy",
        ),
        ({"keeps": True}, "caches responses and returns old ones"),
        ({"servers": 0}, "answers 502: it does not reach wrods"),
        ({"path": lambda path: "/robots.txt"}, "another program answers at this address (status 200)"),
    ],
)
def test_what_a_proxy_does_wrong_is_named_with_the_mend(
    behind: Callable[..., list[Finding]], changes: dict[str, Any], told: str
) -> None:
    found = wrong(behind(**changes))
    assert any(told in finding for finding in found), found
    assert all("\n" in finding for finding in found), "each says what to do"


def test_a_certificate_for_another_name_is_told(behind: Callable[..., list[Finding]]) -> None:
    found, *_ = wrong(behind(name="other.example.org"))
    assert "is for another name" in found and "Get a certificate for localhost" in found


def test_a_certificate_that_nobody_trusts_is_told(behind: Callable[..., list[Finding]]) -> None:
    assert any("certificate of localhost is self-signed" in one for one in wrong(behind(trusted=False)))


def test_plain_http_is_told(behind: Callable[..., list[Finding]]) -> None:
    assert any("is plain http" in one for one in wrong(behind(tls=False)))


def test_a_return_address_that_does_not_answer_is_told(behind: Callable[..., list[Finding]]) -> None:
    found = wrong(behind(credit_host="localhost:9"))
    assert len(found) == 1 and "participants return to localhost, which does not answer" in found[0]


def test_a_server_below_a_path_of_the_proxy_is_told_of_its_prefix(
    behind: Callable[..., list[Finding]],
) -> None:
    cut = {"path": lambda path: path.removeprefix("/study-server")}
    assert any("X-Forwarded-Prefix" in one for one in wrong(behind(prefix="/study-server", **cut)))
    told = {"request": lambda headers, _: headers.update({"X-Forwarded-Prefix": "/study-server"})}
    assert wrong(behind(prefix="/study-server", **cut, **told)) == []


@pytest.mark.parametrize(
    ("url", "told"),
    [("https://no-such-name.invalid", "cannot be resolved"), ("https://localhost:9", "localhost, port 9")],
)
def test_a_server_that_cannot_be_reached_is_told(settings: Any, url: str, told: str) -> None:
    bell = Bell(create_app({}, config=settings))
    (found,) = look_from_outside(url, bell)
    assert not found.is_right and told in found.what and found.mend


def test_the_bell_answers_only_to_its_nonce(settings: Any) -> None:
    app = create_app({}, config=settings)
    bell = Bell(app)
    bell.hang()
    visitor = app.test_client()
    assert visitor.get("/assets/outside/guess").status_code == 404
    assert visitor.get(f"/assets/outside/{bell.nonce}").status_code == 200
    other = create_app({}, config=replace(settings, secret=b"another signing key for tests"))
    assert Bell(other).nonce != bell.nonce
