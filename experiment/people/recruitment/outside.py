"""Looks at a public server the way participants reach it: through name, certificate, proxy and back.

The server rings its own bell from outside: a request with a nonce goes to the public address and, if everything is right,
arrives here again, or at another server with the same signing key. What arrived is compared with what was sent.
"""

from __future__ import annotations

import hmac
import http.client
import json
import re
import secrets
import socket
import ssl
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

from flask import Flask, Response, abort, jsonify, request, session

from stimuli.audit.findings import counted

PATH = "/assets/outside/"
PATIENCE_S = 10
RENEW_DAYS = 14
MARK = "a b+c&d=%41"
"""A value that a proxy which rewrites queries changes."""
CERTIFICATE_TROUBLE = {10: "has expired", 9: "is not valid yet", 18: "is self-signed", 19: "is self-signed"}
NEEDED_HEADERS = ("Content-Security-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Embedder-Policy")
IN_CADDY = "In a Caddyfile, `reverse_proxy wrods:8000` does this"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    is_right: bool
    what: str
    mend: str = ""

    def __str__(self) -> str:
        told = f"{'OK' if self.is_right else 'FAIL':<4}  {self.what}"
        return told if not self.mend else f"{told}\n        {self.mend}"


@dataclass
class Bell:
    """An address of the application that only servers with its signing key know; it says how a request arrived."""

    app: Flask

    @property
    def nonce(self) -> str:
        """The address's secret part."""
        secret: bytes = self.app.extensions["wrods"].settings.secret
        return hmac.digest(secret, b"bell outside", "sha256").hex()

    def hang(self) -> None:
        """Add the address to the application, before it answers its first request."""
        self.app.add_url_rule(f"{PATH}<nonce>", "outside", self._answer)

    def _answer(self, nonce: str) -> Response:
        if not secrets.compare_digest(nonce.encode(), self.nonce.encode()):
            abort(404)
        session["outside"] = ring = secrets.token_hex(8)
        return jsonify(
            scheme=request.scheme,
            host=request.host,
            root=request.script_root,
            mark=request.args.get("mark"),
            authorization=request.headers.get("Authorization"),
            forwarded_for=request.headers.get("X-Forwarded-For"),
            ring=ring,
        )


@dataclass(frozen=True)
class _Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> dict[str, Any] | None:
        try:
            told = json.loads(self.body)
        except ValueError:
            return None
        return told if isinstance(told, dict) else None


def look_from_outside(
    public_url: str,
    bell: Bell,
    *,
    links: Mapping[str, Mapping[str, str]] | None = None,
    returns: Sequence[str] = (),
    context: ssl.SSLContext | None = None,
) -> Iterator[Finding]:
    """Yield what is right and wrong with the way in and the way back; call it while the server runs."""
    address = urlsplit(public_url)
    trusted = context or ssl.create_default_context()
    reached = yield from _reach(address, trusted)
    if reached:
        reply = _ask(address, f"{PATH}{bell.nonce}", trusted, {"mark": MARK}, nonce=bell.nonce)
        arrived = isinstance(reply, _Reply) and reply.status == 200 and (reply.json() or {}).get("ring")
        if arrived and isinstance(reply, _Reply):
            yield from _arrived(address, reply, bell)
            again = _ask(address, f"{PATH}{bell.nonce}", trusted, {"mark": MARK}, nonce=bell.nonce)
            yield _not_kept(reply, again)
            for study, parameters in (links or {}).items():
                yield _page(address, study, parameters, trusted)
        else:
            yield _not_arrived(reply)
    for host in dict.fromkeys(_origin(one) for one in returns):
        yield _return(host, trusted)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"


def _reach(address: SplitResult, context: ssl.SSLContext) -> Generator[Finding, None, bool]:
    """Yield findings on name, port and certificate; the generator's value says whether the server can be asked."""
    host = address.hostname or ""
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        plain = socket.create_connection((host, port), PATIENCE_S)
    except socket.gaierror:
        yield Finding(
            False,
            f"the name {host} cannot be resolved",
            "Check the spelling, or add an A (and AAAA) record at your provider; new names take up to an hour.",
        )
        return False
    except OSError as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error.strerror or error)
        yield Finding(
            False,
            f"{host}, port {port}: {reason}",
            f"Start the proxy, and open port {port} in the firewalls of the server and the provider.",
        )
        return False
    with plain:
        if address.scheme != "https":
            yield Finding(
                False,
                f"{address.geturl()} is plain http: answers can be read in transit, and browsers offer no precise clock",
                "Use a proxy with TLS (the Caddyfile in deploy/ gets certificates automatically) and serve https://…",
            )
            return True
        try:
            with context.wrap_socket(plain, server_hostname=host) as secure:
                certificate = secure.getpeercert() or {}
        except ssl.SSLCertVerificationError as error:
            yield Finding(
                False, f"the certificate of {host} {_trouble(error)}", _certificate_mend(error, host)
            )
            return False
        except (ssl.SSLError, OSError) as error:
            yield Finding(
                False,
                f"{host}, port {port} does not speak TLS ({type(error).__name__})",
                "Make the proxy answer https on this port, or give the port on which it does: https://name:port",
            )
            return False
    yield _validity(host, certificate)
    return True


def _trouble(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code == 62 or "match" in str(error.verify_message):
        return "is for another name"
    return CERTIFICATE_TROUBLE.get(error.verify_code, f"is not trusted ({error.verify_message})")


def _certificate_mend(error: ssl.SSLCertVerificationError, host: str) -> str:
    if error.verify_code == 10:
        return "Make the proxy renew it; Caddy renews it if ports 80 and 443 are open."
    return (
        f"Get a certificate for {host} from a public authority; Caddy gets one if ports 80 and 443 are open."
    )


def _validity(host: str, certificate: Mapping[str, Any]) -> Finding:
    ends = str(certificate.get("notAfter", ""))
    days = int((ssl.cert_time_to_seconds(ends) - time.time()) // 86400) if ends else 0
    told = f"the certificate of {host} is valid for {counted(days, 'day')}"
    if days < RENEW_DAYS:
        return Finding(False, told, "Renew it before participants arrive.")
    return Finding(True, told)


def _ask(
    address: SplitResult,
    path: str,
    context: ssl.SSLContext,
    query: Mapping[str, str],
    *,
    nonce: str | None = None,
) -> _Reply | str:
    host = address.hostname or ""
    connection = (
        http.client.HTTPSConnection(host, address.port, timeout=PATIENCE_S, context=context)
        if address.scheme == "https"
        else http.client.HTTPConnection(host, address.port, timeout=PATIENCE_S)
    )
    headers = {"User-Agent": "wrods"} | ({"Authorization": f"Bearer {nonce}"} if nonce else {})
    try:
        connection.request("GET", f"{address.path.rstrip('/')}{path}?{urlencode(query)}", headers=headers)
        response = connection.getresponse()
        return _Reply(response.status, response.headers, response.read(1_000_000))
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        connection.close()


def _not_arrived(reply: _Reply | str) -> Finding:
    if isinstance(reply, str):
        return Finding(False, f"the proxy closed the connection ({reply})", "Check its log.")
    if 300 <= reply.status < 400:
        return Finding(
            False,
            f"the proxy redirects to {reply.headers.get('Location')}",
            "Serve with that address: --public URL",
        )
    if reply.status in (502, 503, 504):
        return Finding(
            False,
            f"the proxy answers {reply.status}: it does not reach wrods",
            "Make it pass requests to the address and port of wrods (--host, --port); "
            "in a container, run wrods with --host 0.0.0.0.",
        )
    if reply.status in (401, 403):
        return Finding(
            False,
            f"the proxy asks for a password or refuses ({reply.status})",
            "Allow everyone; the dashboard has its own password.",
        )
    return Finding(
        False,
        f"another program answers at this address (status {reply.status})",
        "Make the proxy pass every path below the address to wrods unchanged.",
    )


def _arrived(address: SplitResult, reply: _Reply, bell: Bell) -> Iterator[Finding]:
    told = reply.json() or {}
    yield Finding(True, "requests arrive at this server")
    yield _header(
        told.get("scheme") == address.scheme,
        f"X-Forwarded-Proto (participants use {address.scheme}, wrods receives {told.get('scheme')})",
        f"Make the proxy set X-Forwarded-Proto to {address.scheme}",
    )
    yield _header(
        told.get("host") == address.netloc,
        f"X-Forwarded-Host (participants use {address.netloc}, wrods receives {told.get('host')})",
        "Make the proxy pass on the name that participants use, as X-Forwarded-Host or Host",
    )
    yield _header(
        bool(told.get("forwarded_for")),
        "X-Forwarded-For",
        "Make the proxy set X-Forwarded-For; without it all participants share the limits of one address",
    )
    prefix = address.path.rstrip("/")
    if prefix:
        yield _header(
            told.get("root") == prefix,
            f"X-Forwarded-Prefix (participants use {prefix}, wrods receives {told.get('root') or 'none'})",
            f"Make the proxy remove {prefix} from the path and set X-Forwarded-Prefix to it",
        )
    yield _header(
        told.get("authorization") == f"Bearer {bell.nonce}",
        "Authorization, which is sent with answers",
        "Make the proxy pass on the Authorization header",
    )
    is_whole = told.get("mark") == MARK
    yield Finding(
        is_whole,
        "the query of a link arrives "
        + ("unchanged" if is_whole else "changed, so platform ids would be lost"),
        "" if is_whole else "Make the proxy pass on the query unchanged.",
    )
    cookie = str(reply.headers.get("Set-Cookie") or "").lower()
    is_safe = "secure" in re.split(r"[;\s]+", cookie) and "httponly" in cookie
    if address.scheme == "https":
        yield Finding(
            is_safe,
            "cookies are sent over https only" if is_safe else "cookies arrive without Secure and HttpOnly",
            "" if is_safe else "Make the proxy leave Set-Cookie unchanged.",
        )
    lost = [name for name in NEEDED_HEADERS if not reply.headers.get(name)]
    yield Finding(
        not lost,
        "headers that protect pages and enable the precise clock"
        + (f" are lost: {', '.join(lost)}" if lost else " arrive"),
        "Make the proxy leave response headers unchanged." if lost else "",
    )


def _header(is_right: bool, what: str, mend: str) -> Finding:
    return Finding(is_right, f"header {what}", "" if is_right else f"{mend}. {IN_CADDY}.")


def _not_kept(first: _Reply, again: _Reply | str) -> Finding:
    rings = [(one.json() or {}).get("ring") for one in (first, again) if isinstance(one, _Reply)]
    is_fresh = None not in rings and len(set(rings)) == 2
    return Finding(
        is_fresh,
        "the proxy does not cache responses"
        if is_fresh
        else "the proxy caches responses and returns old ones",
        "" if is_fresh else "Turn off caching for this site, in the proxy and in any service in front of it.",
    )


def _page(
    address: SplitResult, study: str, parameters: Mapping[str, str], context: ssl.SSLContext
) -> Finding:
    reply = _ask(address, f"/{study}/", context, parameters)
    page = reply.body.decode("utf-8", "replace") if isinstance(reply, _Reply) else ""
    if isinstance(reply, _Reply) and reply.status == 200 and all(one in page for one in parameters.values()):
        return Finding(True, f"the page of {study} opens with the parameters of its platform")
    if isinstance(reply, _Reply) and reply.status == 403:
        return Finding(True, f"the page of {study} opens and refuses an example link")
    status = reply.status if isinstance(reply, _Reply) else reply
    return Finding(False, f"the page of {study} does not open ({status})", "Check the server's log.")


def _return(origin: str, context: ssl.SSLContext) -> Finding:
    address = urlsplit(origin)
    host = address.hostname or ""
    if address.scheme != "https":
        return Finding(
            False, f"participants return to {origin}, which is not https", "Give an https address."
        )
    try:
        with (
            socket.create_connection((host, address.port or 443), PATIENCE_S) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return Finding(True, f"participants return to {host}, which answers")
    except OSError as error:
        return Finding(
            False,
            f"participants return to {host}, which does not answer from here ({error.strerror or error})",
            "Check the address in your config.toml; if this server is not allowed to reach it, try it in a browser.",
        )


def example_link(service: Any) -> dict[str, str]:
    """Return the parameters of a link like those of a study's platform."""
    platform = None if service.recruitment is None else service.recruitment.platform
    if platform is None:
        return {}
    return dict.fromkeys(platform.parameters, platform.example or "outside-check")


def return_addresses(service: Any) -> list[str]:
    """Return the addresses to which a study's participants go."""
    from experiment.people.recruitment.codes import OUTCOMES
    from experiment.people.recruitment.returns import return_for

    link = example_link(service)
    row = {"session_id": "", "completion_code": None}
    found = [return_for(service, row, outcome, platform=link).url for outcome in OUTCOMES]
    return list(dict.fromkeys(url for url in found if url is not None))
