"""Headers that every answer carries: what a page may load, who may frame it, what may be kept."""

from __future__ import annotations

from collections.abc import Iterable
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
    # cross-origin isolation also gives the browser its finest clock
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
A_YEAR_S = 31_536_000


def _with_headers(answer: WSGIApplication) -> WSGIApplication:
    """Add the headers that an answer lacks as it goes out, where that costs least."""

    def wrapped(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            present = {name.lower() for name, _ in headers}
            missing = [header for header in HEADERS.items() if header[0].lower() not in present]
            return start_response(status, [*headers, *missing], *rest)

        return answer(environ, start)

    return wrapped


def add_headers(app: Flask) -> None:
    """Give every answer of an application these headers; only versioned static files may be kept for long."""
    app.wsgi_app = _with_headers(app.wsgi_app)  # type: ignore[method-assign,assignment]

    @app.after_request
    def _keep(response: Response) -> Response:
        if request.endpoint in ("pages.bundle", "pages.asset") and response.status_code == 200:
            if "v" in request.args:
                response.headers["Cache-Control"] = f"public, max-age={A_YEAR_S}, immutable"
            else:
                response.headers["Cache-Control"] = "public, max-age=3600"
        elif response.status_code != 304:
            response.headers["Cache-Control"] = "no-store"
        return response
