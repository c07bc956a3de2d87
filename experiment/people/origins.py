"""Refuses what another site's page sends: an origin is ours where its host is one that this server knows.

The Host header alone proves nothing. A stranger's name may point to this computer for a moment, and then names itself as host
and as origin (DNS rebinding). An address cannot: a page read from an address is sent back to that address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from flask import Flask, abort, request

from experiment.people.lab.authority import own_names
from experiment.people.problems import Problem
from experiment.people.settings import PeopleSettings

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def refuse_other_origins(app: Flask, settings: PeopleSettings) -> None:
    """Let an application refuse every request that writes and comes from another site's page."""
    public = None if settings.public_url is None else origin_of(settings.public_url)
    known = frozenset(own_names()) | {name.lower() for name in settings.hosts}

    @app.before_request
    def _only_ours() -> None:
        origin = request.headers.get("Origin")
        if request.method in SAFE or origin is None or origin == public:
            return
        if origin == f"{request.scheme}://{request.host}" and is_known(request.host, known):
            return
        refusal = Problem(
            403,
            "the request came from another site",
            rule="the origin is the study's own",
            mend=f"If {request.host!r:.80} is a name of this server, add it to hosts under [serve] in config.toml.",
        )
        if request.path.startswith("/api/"):
            raise refusal
        abort(403, f"{refusal}. {refusal.body['mend']}")


def origin_of(address: str) -> str:
    """Return scheme, host and port of an address."""
    return "/".join(address.split("/")[:3])


def is_known(host: str, names: Iterable[str]) -> bool:
    """Return whether a host, with or without a port, is an address or one of some names."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name in names
    return True
