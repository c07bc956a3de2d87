"""What every drill shares: people who answer while something breaks, a ledger of what was confirmed, and the drill's row.

A row of ``drills.json`` says which fault a test makes, how, what was observed, how many answers were confirmed and how many of
them were lost. :func:`tests.write_drills_page.drills_page` prints the rows; the tests hold them against what they count.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from experiment.configuration import config_file
from experiment.people.response_intake import parse
from experiment.store import open_store
from experiment.store import records as q
from experiment.store.records import payload_hash
from tests.experiment.people.conftest import WITHOUT_PRACTICE, agreement, settings_of, word_items

ROWS = Path(__file__).with_name("drills.json")
TRIALS = 20
LAST = 3
"""So many trials people keep back until the fault is over, so that none has finished before it."""
PATIENCE_S = 120.0


def rows() -> list[dict[str, Any]]:
    """Return the table's rows as ``drills.json`` has them."""
    return list(json.loads(ROWS.read_text("utf-8")))


def study_of_twenty_trials(
    make_study: Any, participants: str = "recruit: link", *changes: tuple[str, str], trials: int = TRIALS
) -> Path:
    """Write a study of so many trials, and let one address begin as many sessions as it likes; return its folder."""
    given = (WITHOUT_PRACTICE, settings_of(participants), *changes)
    folder = make_study(*given, items=word_items(trials)).folder
    file = config_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[serve]\nentries_per_minute = 100000\n", "utf-8")
    file.chmod(0o600)
    return Path(folder)


@dataclass
class Ledger:
    """Answers that a server confirmed, as they were sent, and what it said to every request."""

    confirmed: dict[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, status: str) -> None:
        with self._changed:
            self.told[status] += 1
            self._changed.notify_all()

    def confirm(self, session_id: str, payload: Mapping[str, Any]) -> None:
        with self._changed:
            self.confirmed[session_id, payload["trial_index"]] = payload
            self._changed.notify_all()

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait until something that the ledger counts is so."""
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S), f"waited in vain; {dict(self.told)}"

    def lost(self, target: Path | str) -> int:
        """Count the confirmed answers that a store does not hold exactly once, byte for byte as they were sent."""
        with open_store(target) as store, store.read() as connection:
            stored = [
                ((row["session_id"], row["trial_index"]), row) for row in q.trials_with_scores(connection)
            ]
        times, by_key = Counter(key for key, _ in stored), dict(stored)
        same = (
            times[key] == 1
            and by_key[key]["payload_hash"] == payload_hash(parse(json.dumps(sent).encode()))
            and all(by_key[key][name] == value for name, value in sent.items() if name in by_key[key])
            for key, sent in self.confirmed.items()
        )
        return sum(not one for one in same)


@dataclass
class Page:
    """A participant's page: it keeps every answer and sends it again until the server confirms it."""

    caller: Any
    ledger: Ledger
    port: Callable[[], int]
    number: int
    study: str = "small"
    session_id: str = ""
    token: str = ""
    sent: list[dict[str, Any]] = field(default_factory=list)
    detail: dict[str, Any] = field(default_factory=dict)
    agreement: dict[str, Any] = field(default_factory=dict)

    def begin(self) -> None:
        opened = self.send(f"/api/{self.study}/sessions", {"client_uuid": str(uuid.uuid4())})
        assert opened.status in (200, 201), opened.text
        self.take(opened.body)

    def take(self, opened: dict[str, Any]) -> None:
        """Go on with a session that the server has opened."""
        self.session_id, self.token = opened["session_id"], opened["token"]
        self.detail = agreement(opened["plan"])

    def agree(self) -> None:
        self.agreement = {"client_uuid": str(uuid.uuid4()), "kind": "consent", "detail": self.detail}
        assert self.send(f"{self.base}/events", self.agreement).status in (200, 201)

    @property
    def base(self) -> str:
        return f"/api/{self.study}/sessions/{self.session_id}"

    def send(self, path: str, body: object) -> Any:
        """Send as the page does: again after no reply and after one that promises better times."""
        end = time.monotonic() + PATIENCE_S
        wait = 0.02
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        while time.monotonic() < end:
            try:
                self.caller.port = self.port()
                told = self.caller.post(path, body, **headers)
            except (OSError, http.client.HTTPException):
                self.caller.connection = None
                self.ledger.note("no reply")
            else:
                self.ledger.note(str(told.status))
                if told.status == 425:
                    self.send(f"{self.base}/events", self.agreement)
                elif told.status not in (408, 429) and told.status < 500:
                    return told
            time.sleep(wait)
            wait = min(2 * wait, 0.5)
        raise AssertionError(f"no answer to {path} in {PATIENCE_S:g} seconds: {dict(self.ledger.told)}")

    def payload(self, index: int) -> dict[str, Any]:
        return {
            "client_uuid": str(uuid.uuid4()), "trial_index": index, "attempt": 1, "timed_out": False,
            "response_raw": f"réponse {self.number}·{index} «答え» " + "x" * 300, "rt": 500.25 + index,
            "created_at": "2026-11-21T10:00:00.000Z",
        }  # fmt: skip

    def answer(self, index: int) -> None:
        self.sent.append(self.payload(index))
        self.deliver(self.sent[-1])

    def deliver(self, payload: dict[str, Any]) -> None:
        told = self.send(f"{self.base}/trials", payload)
        assert told.status in (200, 201), told.text
        self.ledger.confirm(self.session_id, payload)

    def finish(self) -> None:
        """End the session; what the server says it lacks is sent again first."""
        for _ in range(2):
            told = self.send(f"{self.base}/finish", {"trials": len(self.sent)})
            if told.status == 200:
                assert told.body["state"] == "finished"
                return
            assert told.status == 409, told.text
            for payload in self.sent:
                self.deliver(payload)
        raise AssertionError(told.text)


@dataclass
class Crowd:
    """People who answer at once; the last trials of each wait until the fault is over."""

    ledger: Ledger
    pages: list[Page]
    running: list[Future[None]]
    is_over: threading.Event

    def reach(self, answers: int) -> None:
        """Wait until so many answers are confirmed; the people go on answering."""
        self.ledger.wait(lambda: len(self.ledger.confirmed) >= answers)

    def done(self) -> int:
        """Let everybody finish; return how many answers were confirmed."""
        self.is_over.set()
        for one in self.running:
            one.result(timeout=2 * PATIENCE_S)
        return len(self.ledger.confirmed)


@contextlib.contextmanager
def crowd(people: int, port: Callable[[], int], caller_at: Callable[[int], Any]) -> Iterator[Crowd]:
    """Let people take part in a study of twenty trials, a few answers a second each, through whatever happens."""
    ledger, is_over = Ledger(), threading.Event()
    pages = [Page(caller_at(port()), ledger, port, number) for number in range(people)]

    def take_part(page: Page) -> None:
        page.begin()
        page.agree()
        for index in range(TRIALS):
            if index == TRIALS - LAST:
                assert is_over.wait(2 * PATIENCE_S)
            page.answer(index)
            time.sleep(0.03)
        page.finish()

    with ThreadPoolExecutor(people) as pool:
        try:
            yield Crowd(ledger, pages, [pool.submit(take_part, page) for page in pages], is_over)
        finally:
            is_over.set()


def listen(page: Any, ledger: Ledger) -> None:
    """Note every answer of a real page that its server confirms, as the page sent it."""

    def hear(reply: Any) -> None:
        place = re.search(r"/sessions/(\w+)/trials$", reply.url)
        if place is not None and reply.request.method == "POST" and reply.status in (200, 201):
            ledger.confirm(place[1], reply.request.post_data_json)

    page.on("response", hear)


def rows_of(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Return the rows of the test that asks."""
    found = [one for one in rows() if one["test"] == request.node.nodeid]
    assert found, f"drills.json has no row for {request.node.nodeid}"
    return found


def held_against(row: Mapping[str, Any], confirmed: int, lost: int) -> None:
    """Check that a drill counted what its row in the table says."""
    assert (confirmed, lost) == (row["confirmed"], row["lost"]), row["fault"]
