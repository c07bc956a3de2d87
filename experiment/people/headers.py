"""HTTP headers of every answer: what a page may load, who may frame it, what may be cached."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flask import Flask, Response, request

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'self'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    # cross-origin isolation also gives the browser its most precise clock
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": (
        "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), "
        "microphone=(), midi=(), payment=(), usb=()"
    ),
}
OF_BUNDLE, BY_HASH = ("pages.bundle", "pages.asset"), ("pages.media", "pages.plugin")
"""Static files: those with a version in their address on request, and those whose address is their hash."""
A_DAY_S = 86_400
A_YEAR_S = 31_536_000
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")


def headers_for(*, is_secure: bool, host: str, is_public: bool) -> Mapping[str, str]:
    """Return the headers of an answer, given the scheme and host of its request.

    Over TLS, browsers are told to use only TLS: for a year at a public address, for a day in a laboratory, where the next study
    may be served under the same name over plain http (``--kiosk``), and never for this computer's own names, which other
    programs share.
    """
    name = re.sub(r":\d*$", "", host)
    if not is_secure or name in LOOPBACK_NAMES:
        return HEADERS
    return HEADERS | {"Strict-Transport-Security": f"max-age={A_YEAR_S if is_public else A_DAY_S}"}


def add_headers(app: Flask, *, is_public: bool = False) -> None:
    """Add these headers to every answer of an application; only versioned static files may be cached for long."""
    answer: WSGIApplication = app.wsgi_app

    # outgoing answers are the cheapest place to add what is missing
    def wrapped(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        wanted = headers_for(
            is_secure=environ["wsgi.url_scheme"] == "https",
            host=environ.get("HTTP_HOST", ""),
            is_public=is_public,
        )

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            present = {name.lower() for name, _ in headers}
            missing = [header for header in wanted.items() if header[0].lower() not in present]
            return start_response(status, [*headers, *missing], *rest)

        return answer(environ, start)

    app.wsgi_app = wrapped  # type: ignore[method-assign]

    @app.after_request
    def _keep(response: Response) -> Response:
        if request.endpoint in (*OF_BUNDLE, *BY_HASH) and response.status_code == 200:
            if "v" in request.args or request.endpoint in BY_HASH:
                response.headers["Cache-Control"] = f"public, max-age={A_YEAR_S}, immutable"
            else:
                response.headers["Cache-Control"] = "public, max-age=3600"
        elif response.status_code != 304:
            response.headers["Cache-Control"] = "no-store"
        if response.location is not None and response.location.startswith(request.host_url):
            # a made-up name in the Host header is not repeated
            response.location = "/" + response.location.removeprefix(request.host_url).lstrip("/")
        return response
