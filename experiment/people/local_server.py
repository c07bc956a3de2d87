"""A study's own server on this computer, for as long as a piece of work needs it: the demonstration, simulated readers."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from experiment.people.app import create_app
from experiment.people.server import Server
from experiment.people.service import service_for
from experiment.people.settings import PeopleSettings
from experiment.store import Store
from experiment.study import Study

HOST = "127.0.0.1"
ENTRIES = 1_000_000
"""Sessions a minute: all readers of a local server come from one address."""


@dataclass(frozen=True)
class Links:
    """Where a visitor goes: the dashboard (once), the participants' page, that of one more reader (a pilot).

    ``simulated`` is the pass with which simulated readers begin.
    """

    sessions: str
    page: str
    take_part: str
    api: str
    simulated: str


class LocalServer:
    """The study's own server on this computer, running while the context is open."""

    def __init__(self, study: Study, store: Store) -> None:
        # entered by links only: no password is accepted
        settings = PeopleSettings(
            password_hash="", secret=secrets.token_bytes(32), entries_per_minute=ENTRIES
        )
        app = create_app({study.id: service_for(study, store)}, config=settings)
        self._site = app.extensions["wrods"]
        self._study = study.id
        self._server = Server(app, HOST, 0)
        self._thread = threading.Thread(target=self._server.run, name="wrods-server", daemon=True)

    @property
    def links(self) -> Links:
        """Make the links; the one to the dashboard is good for one visit."""
        base = f"http://{HOST}:{self._server.port}"
        return Links(
            sessions=f"{base}/admin/enter/{self._site.make_link()}",
            page=f"{base}/{self._study}/",
            take_part=f"{base}/{self._study}/?pilot={self._site.passes.make(self._study, 'pilot')}",
            api=f"{base}/api/{self._study}",
            simulated=self._site.passes.make(self._study, "simulated"),
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self._thread.join(timeout=5)
        self._site.cleaning.close()
