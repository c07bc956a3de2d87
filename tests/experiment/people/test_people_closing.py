from __future__ import annotations

import asyncio
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress

import pytest

from experiment.demo.tour import LocalServer
from experiment.people.server import _quietly
from experiment.store import open_store
from experiment.study import Study


def test_a_connection_that_comes_as_accepting_is_cancelled_is_not_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = asyncio.new_event_loop()
    _quietly(
        loop, {"message": "Exception in callback", "exception": asyncio.InvalidStateError("invalid state")}
    )
    assert not caplog.records
    _quietly(loop, {"message": "Exception in callback", "exception": ValueError("a defect")})
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    loop.close()


def test_a_server_closed_under_requests_says_nothing_of_broken_sockets(
    make_study: Callable[..., Study], caplog: pytest.LogCaptureFixture
) -> None:
    study = make_study()
    ended = threading.Event()

    def poll(address: str) -> None:
        while not ended.is_set():
            with suppress(OSError):
                urllib.request.urlopen(address, timeout=2).read()

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
