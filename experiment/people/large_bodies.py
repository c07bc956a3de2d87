"""Lets accounts that may upload send large files, and nobody else: judged when the head has come, before the body is read."""

from __future__ import annotations

from flask import Flask
from werkzeug.test import EnvironBuilder

from experiment.people.bodies import LARGEST_BODY
from experiment.people.dashboard.signing_in import LARGEST_UPLOAD, SECURE, takes_a_file

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
