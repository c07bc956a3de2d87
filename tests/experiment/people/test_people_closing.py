from __future__ import annotations

import threading
import time
import urllib.request
from contextlib import suppress

from experiment.demo.tour import LocalServer
from experiment.store import open_store


def test_a_server_closed_under_requests_says_nothing_of_broken_sockets(make_study, caplog):
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
