"""Shared state of one server's parts, and its health: problems with its databases, backups and disk.

``/health``, the dashboard's banner and the console use the same facts (:meth:`ServerHealth.concerns`). Strangers can read
``/health``, so each concern has a text without paths as well as the full one.
"""

from __future__ import annotations

import http.client
import shutil
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from flask import abort, current_app

from experiment.people.dashboard.sign_ins import (
    LINK,
    OWNER,
    Account,
    Accounts,
    FailedSignIns,
    SignInLimits,
    SignIns,
)
from experiment.people.headers import HEADERS
from experiment.people.quality import SessionMetrics
from experiment.people.recruitment.return_links import KeySets
from experiment.people.response_intake import Cleaning, Departed
from experiment.people.service import LiveSessions, Passes, PeopleSettings, StudyService, Throttle
from experiment.store import DamagedStore, StoreError
from experiment.store.backups import FOLDER, backups_in
from experiment.store.database import prove_writable
from stimuli.errors import reason_of

BACKUP_EVERY = timedelta(hours=2)
"""Age of the newest backup from which one was missed; backups are made every hour."""
LEAST_FREE = 200_000_000
"""Bytes that must be free on a study's disk, in addition to two copies of its database (the next backup, and one more)."""
LOOK_EVERY_S = 5.0
PROVE_EVERY_S = 10.0
PROVE_WITHIN_S = 5.0

SENDINGS_PER_MINUTE = 1200
"""Limit on one session's requests: far above a reader's pace, and enough to send the answers of a long offline period."""
KILOBYTES_PER_HOUR = 64 * 1024
"""Limit on a session's uploads: one of a thousand typed answers with their key strokes sends some 10 MB."""


@dataclass(frozen=True)
class Concern:
    """A problem of a server."""

    kind: str
    study: str
    stops_answers: bool
    public: str
    words: str


class ServerHealth:
    """Health of the studies that a server process serves."""

    def __init__(
        self,
        services: Mapping[str, StudyService],
        *,
        clock: Callable[[], float] = time.monotonic,
        disk_usage: Callable[[Path], tuple[int, int, int]] = shutil.disk_usage,
    ) -> None:
        self._services = services
        self._clock = clock
        self._disk_usage = disk_usage
        self._since = clock()
        self._lock = threading.Lock()
        self._failed: dict[str, str] = {}
        self._backs_up = False
        self._proving = threading.Lock()
        self._proven_at: float | None = None
        self._unanswered: set[str] = set()

    def backed_up(self, study: str, failure: Exception | None) -> None:
        """Record the result of an hourly backup; after the first, missing backups are a concern too."""
        self._backs_up = True
        with self._lock:
            if failure is None:
                self._failed.pop(study, None)
            else:
                self._failed[study] = reason_of(failure)

    def concerns(self) -> list[Concern]:
        """Return the current concerns, those that stop answers first."""
        concerns = [concern for service in self._services.values() for concern in self._of(service)]
        return sorted(concerns, key=lambda concern: not concern.stops_answers)

    def report(self) -> tuple[int, dict[str, Any]]:
        """Return HTTP status and body of ``/health``: 503 while answers cannot be stored, and no paths."""
        self._prove()
        concerns = self.concerns()
        stops = any(concern.stops_answers for concern in concerns)
        described = [
            {"study": concern.study, "kind": concern.kind, "what": concern.public} for concern in concerns
        ]
        status = "failing" if stops else "warning" if concerns else "ok"
        return 503 if stops else 200, {"status": status, "concerns": described}

    def _prove(self) -> None:
        """Have each store write something, at most every few seconds; failures become the store's trouble."""
        with self._proving:
            if self._proven_at is not None and self._clock() - self._proven_at < PROVE_EVERY_S:
                return
            for service in self._services.values():
                self._unanswered.discard(service.study)
                try:
                    service.store.write(prove_writable).result(timeout=PROVE_WITHIN_S)
                except NotInTime:
                    self._unanswered.add(service.study)
                except StoreError:
                    pass
            self._proven_at = self._clock()

    def _of(self, service: StudyService) -> list[Concern]:
        trouble = service.store.trouble
        if isinstance(trouble, DamagedStore):
            # a damaged database is not backed up, and needs no second warning for that
            return [Concern("damaged", service.study, True, "the database is damaged", str(trouble))]
        concerns = [self._disk(service), self._backups(service)]
        if trouble is not None:
            words = f"No answers can be stored: {trouble}"
            concerns.append(Concern("unusable", service.study, True, "the database cannot be used", words))
        elif service.study in self._unanswered:
            words = (
                f"The database has taken nothing for {PROVE_WITHIN_S:g} seconds: another program may hold it."
            )
            concerns.append(Concern("unusable", service.study, True, "the database does not answer", words))
        return [concern for concern in concerns if concern is not None]

    def _disk(self, service: StudyService) -> Concern | None:
        file = service.store.path
        folder = service.folder if file is None else file.parent
        if folder is None:
            return None
        try:
            free = self._disk_usage(folder)[2]
            needed = LEAST_FREE + (0 if file is None else 2 * file.stat().st_size)
        except OSError:
            return None  # unreadable files are reported where they are needed
        if free >= needed:
            return None
        words = (
            f"The disk that holds {folder} is nearly full: {_megabytes(free)} are free, and {_megabytes(needed)} are "
            "needed for answers and the next backups. Free some space."
        )
        return Concern("disk", service.study, False, "the disk is nearly full", words)

    def _backups(self, service: StudyService) -> Concern | None:
        if service.folder is None or not self._backs_up:
            return None
        with self._lock:
            failure = self._failed.get(service.study)
        folder = service.folder / FOLDER
        if failure is not None:
            words = (
                f"The latest backup failed: {failure}. Check {folder} and the folders of --backup-to; the next try is "
                "within an hour."
            )
            return Concern("backup failed", service.study, False, "the latest backup failed", words)
        now = datetime.now(UTC)
        made = [backup.made_at for backup in backups_in(folder) if backup.made_at is not None]
        times = [moment for moment in made if moment <= now]  # later ones come from a clock that was set back
        age = now - max(times) if times else None
        is_old = age is None or age > BACKUP_EVERY
        # by the server's own time as well, so that a clock set forward does not make an old backup look new
        if not is_old or self._clock() - self._since < BACKUP_EVERY.total_seconds():
            return None
        hours = 0.0 if age is None else age.total_seconds() / 3600
        when = "There is no backup" if age is None else f"The newest backup is {hours:.1f} hours old"
        words = f"{when}, although one is made every hour. Check {folder}."
        return Concern("no recent backup", service.study, False, "there is no recent backup", words)


class HealthWatch:
    """The thread that reports each new and each resolved problem to the console once; a context manager."""

    def __init__(
        self,
        health: ServerHealth,
        services: Mapping[str, StudyService],
        tell: Callable[[str], None],
        *,
        every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._health = health
        self._services = services
        self._tell = tell
        self._every_s = every_s
        self._told: dict[tuple[str, str], Concern] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="wrods-health", daemon=True)

    def __enter__(self) -> HealthWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=self._every_s)
        self.look()  # the last backup may have failed

    def _work(self) -> None:
        for service in self._services.values():
            if not service.store.is_checked:
                service.store.check()
        while True:
            self.look()
            if self._end.wait(self._every_s):
                return

    def look(self) -> None:
        """Report new and resolved problems."""
        now = {(concern.study, concern.kind): concern for concern in self._health.concerns()}
        for key, concern in now.items():
            if key not in self._told:
                self._tell(f"{concern.study}: {concern.words}")
        for key, concern in self._told.items():
            if key not in now:
                self._tell(f"{concern.study}: no longer so: {concern.public}")
        self._told = now


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"


def public_address_problems(public_url: str) -> list[str]:
    """Return the problems on the route from a public address through its proxy to this server, one sentence each."""
    try:
        with urllib.request.urlopen(f"{public_url}/health", timeout=PROVE_EVERY_S) as reply:
            status, headers, body, address = reply.status, reply.headers, reply.read(), reply.geturl()
    except urllib.error.HTTPError as error:
        status, headers, body, address = error.code, error.headers, error.read(), error.geturl()
    except (OSError, http.client.HTTPException) as error:
        return [f"{public_url} does not answer: {getattr(error, 'reason', error)}"]
    if b'"concerns"' not in body:
        return [
            f"{public_url} answers with status {status}, and not from wrods: the proxy does not reach this server"
        ]
    problems = []
    if not address.startswith(public_url):
        problems.append(f"the proxy redirects to {address}: serve with that address (--public)")
    if not public_url.startswith("https://"):
        problems.append("answers can be read in transit, and browsers offer no precise clock: use https")
    elif "Strict-Transport-Security" not in headers:
        problems.append("the proxy does not pass on X-Forwarded-Proto and the name of the host")
    lost = [name for name in HEADERS if headers.get(name) != HEADERS[name]]
    if lost:
        problems.append(f"the proxy changes headers that protect pages: {', '.join(lost)}")
    return problems


class Site:
    """Studies, settings, and temporary state of one server process."""

    def __init__(self, services: Mapping[str, StudyService], settings: PeopleSettings) -> None:
        self.services = dict(services)
        self.settings = settings
        self.passes = Passes(settings.secret)
        self.entries = Throttle(settings.entries_per_minute, 60)
        self.sendings = Throttle(SENDINGS_PER_MINUTE, 60)
        self.volumes = Throttle(KILOBYTES_PER_HOUR, 3600)
        self.limits = SignInLimits()
        self.sign_ins = SignIns(next((service.store for service in services.values()), None))
        self.accounts = Accounts(Account(OWNER, "owner", settings.password_hash))
        self.failed_sign_ins = FailedSignIns()
        self.key_sets = KeySets()
        self.live = LiveSessions()
        self.findings = SessionMetrics()
        self.cleaning = Cleaning()
        self.health = ServerHealth(services)

    def make_link(self) -> str:
        """Return the secret part of a link that opens the dashboard once, as the owner, without a password."""
        owner = self.accounts.find(OWNER)
        assert owner is not None
        return self.sign_ins.begin(LINK, owner.name, owner.stamp())

    def let_go(self, service: StudyService, departed: Departed) -> None:
        """Drop erased sessions from memory, and clean the study's files."""
        self.drop(departed.sessions)
        self.cleaning.after(service, departed)

    def drop(self, session_ids: Iterable[str]) -> None:
        """Drop sessions from memory."""
        for session_id in session_ids:
            self.live.forget(session_id)
            self.findings.forget(session_id)


def this_site() -> Site:
    """Return the site of the running application."""
    site = current_app.extensions["wrods"]
    assert isinstance(site, Site)
    return site


def service_of(study: str) -> StudyService:
    """Return a served study."""
    service = this_site().services.get(study)
    if service is None:
        abort(404)
    return service
