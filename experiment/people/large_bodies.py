"""Lets accounts that may upload send large files, and nobody else: judged when the headers have come, before the body is read."""

from __future__ import annotations

from copy import copy
from typing import Any

from flask import Flask
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser

from experiment.people.dashboard.signing_in import LARGEST_UPLOAD, takes_a_file

LARGEST_REQUEST = 1024 * 1024
"""Bytes of any other request; beyond the application's own limit, so that what is a little too large is refused in its words."""


def channel_for(app: Flask) -> type[HTTPChannel]:
    """Return the kind of connection on which an application's uploads may be large."""

    class Parser(HTTPRequestParser):  # type: ignore[misc]
        adj: Any

        def parse_header(self, header_plus: bytes) -> None:
            super().parse_header(header_plus)
            if not self.chunked and self.content_length < self.adj.max_request_body_size:
                return
            if self.command == "POST" and _may_be_large(app, self.path, self.headers.get("COOKIE", "")):
                self.adj = _with_room(self.adj)

    class Channel(HTTPChannel):  # type: ignore[misc]
        parser_class = Parser

    return Channel


def _may_be_large(app: Flask, path: str, cookie: str) -> bool:
    with app.test_request_context(path, method="POST", headers={"Cookie": cookie}):
        return takes_a_file()


def _with_room(settings: Any) -> Any:
    roomy = copy(settings)
    roomy.max_request_body_size = LARGEST_UPLOAD + LARGEST_REQUEST
    return roomy
