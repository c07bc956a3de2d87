"""A cache of paid replies: a SQLite file in the study's folder, keyed by everything that makes up a request.

The cache is in the study's folder, as the store is, because it contains requests and replies: it is copied with the study, and
a withdrawal finds it. The key includes server, model, revision, form, every field of the request, replicate included, and the
server's dialect; if any of them changes, the key changes. Failures are not cached, and a reply from the cache has no times.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from experiment.models.api.batch import FOLDER
from experiment.models.api.retrying import parsed
from experiment.models.engine import Message, RegionScore, Reply, Request
from experiment.store.database import use_wal
from experiment.store.erasure import empty_log
from stimuli.errors import UserError
from stimuli.files import replace_file

FILE = "answers-cache.db"
SCHEMA = 1
READING = 2
"""Increase this when responses are parsed differently: the cache stores parsed replies."""
COMMIT_EVERY = 200
COMMIT_EVERY_S = 0.5

_COLUMNS = ("key", "work_key", "reply", "created_at")

_NOT_OF_THE_REQUEST = frozenset({"work_key", "purpose"})
_NOT_KEPT = frozenset(
    {
        "work_key",
        "latency_ms",
        "ttft_ms",
        "states",
        "cost_usd",
        "from_cache",
        "attempts",
        "error",
        "dtype",
        "unsettled_tries",
    }
)


def cache_key(about: Mapping[str, object], request: Request) -> str:
    """Return the key of a request: SHA-256 of canonical JSON."""
    described = {name: value for name, value in asdict(request).items() if name not in _NOT_OF_THE_REQUEST}
    described["messages"] = [_said(message) for message in request.messages]
    text = json.dumps(
        {"schema": SCHEMA, "reading": READING, "about": about, "request": described},
        sort_keys=True,
        ensure_ascii=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(text.encode()).hexdigest()


def _said(message: Message) -> dict[str, object]:
    """Return a message as JSON, with pictures identified by their pixels, which a new renderer may change."""
    pictures = [picture.sha256 for picture in message.pictures]
    described: dict[str, object] = {"role": message.role, "content": message.content}
    return described | ({"pictures": pictures} if pictures else {})


def is_worth_keeping(reply: Reply) -> bool:
    """Return whether a reply is final: errors, empty and truncated answers are requested again."""
    if reply.from_cache or reply.states:
        return False
    return reply.status in ("answered", "refused")


class NoCache(Exception):
    """A file is not a reply cache, or has another format; it was left unchanged."""


class Cache:
    """The SQLite file; used from one thread."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.hits = 0
        self._connection = sqlite3.connect(file, timeout=30, isolation_level=None)
        try:
            _check(self._connection)
        except BaseException:
            self._connection.close()
            raise
        use_wal(self._connection)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute("PRAGMA secure_delete = ON")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS answers "
            "(key TEXT PRIMARY KEY, work_key TEXT NOT NULL, reply TEXT NOT NULL, created_at REAL NOT NULL) WITHOUT ROWID"
        )
        self._connection.execute("CREATE INDEX IF NOT EXISTS answers_work_key ON answers (work_key)")
        self._connection.execute(f"PRAGMA user_version={SCHEMA}")
        self._new: dict[str, tuple[str, str]] = {}
        self._since = time.monotonic()

    def find(self, key: str, request: Request) -> Reply | None:
        """Return the answer to an identical request, marked as cached."""
        written = self._new.get(key)
        if written is None:
            row = self._connection.execute("SELECT reply FROM answers WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            text = str(row[0])
        else:
            text = written[1]
        self.hits += 1
        return _read(text, request)

    def keep(self, key: str, reply: Reply) -> None:
        """Store an answer; it is on disk after the next :meth:`commit`, which happens about twice a second."""
        if not is_worth_keeping(reply):
            return
        self._new[key] = (reply.work_key, _write(reply))
        if len(self._new) >= COMMIT_EVERY or time.monotonic() - self._since > COMMIT_EVERY_S:
            self.commit()

    def commit(self) -> None:
        """Write new answers to the file."""
        self._since = time.monotonic()
        if not self._new:
            return
        rows = [(key, work_key, text, time.time()) for key, (work_key, text) in self._new.items()]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?)", rows)
        self._connection.execute("COMMIT")
        self._new.clear()

    def forget(self, work_keys: Iterable[str]) -> int:
        """Erase the answers to trials and to the calls made before them, for a withdrawal; return how many."""
        self.commit()
        count = 0
        for work_key in work_keys:
            deleted = self._connection.execute(
                "DELETE FROM answers WHERE work_key = ? OR (work_key > ? AND work_key < ?)",
                (work_key, f"{work_key}:", f"{work_key};"),
            )
            count += deleted.rowcount
        if not empty_log(self._connection):
            raise UserError(
                f"{self.file}-wal may still hold erased answers: other programs are reading the file",
                mend="Repeat this when no run is in progress.",
            )
        return count

    def close(self) -> None:
        """Write new answers and close the file."""
        self.commit()
        self._connection.close()

    def abandon(self) -> None:
        """Close the file without writing."""
        self._connection.close()


def forget_answers(folder: Path, work_keys: Iterable[str]) -> int:
    """Erase the answers to trials from a study's cache, if it has one; return how many there were."""
    file = folder / FILE
    if not file.exists():
        return 0
    try:
        cache = Cache(file)
        try:
            return cache.forget(work_keys)
        finally:
            cache.close()
    except (sqlite3.Error, NoCache) as error:
        raise UserError(
            f"{file} cannot be read ({error}), and may hold answers that are to be erased",
            mend="Delete the file: runs start a new one, and requests for the replies in it would be repeated.",
        ) from error


def _check(connection: sqlite3.Connection) -> None:
    """Raise NoCache for a file of another format before anything is written to it; an empty file is a new cache."""
    (form,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables and form in (0, SCHEMA):
        return
    if "answers" not in tables:
        raise NoCache("it is another database, and was left as it is")
    columns = tuple(row[1] for row in connection.execute("PRAGMA table_info(answers)"))
    # the first caches of this format had no version number
    if form not in (0, SCHEMA) or columns != _COLUMNS:
        raise NoCache(f"it was written by another version of wrods (form {form}; this one reads {SCHEMA})")


def _write(reply: Reply) -> str:
    stored = {
        field.name: getattr(reply, field.name)
        for field in fields(reply)
        if field.name not in _NOT_KEPT | {"regions"}
    }
    stored["regions"] = [[score.surprisal, score.tokens] for score in reply.regions]
    return json.dumps(stored, ensure_ascii=True, separators=(",", ":"))


def _read(text: str, request: Request) -> Reply:
    stored: dict[str, Any] = parsed(text)
    regions = tuple(RegionScore(surprisal, tokens) for surprisal, tokens in stored.pop("regions"))
    return replace(Reply(work_key=request.work_key, **stored), regions=regions, from_cache=True)


def forget_replies(folder: Path, work_keys: Iterable[str]) -> tuple[int, list[str]]:
    """Erase the replies to trials, and to earlier calls for them, from a study's folder; return their number and problems."""
    keys, left, count = set(work_keys), [], 0
    if not keys:
        return 0, []
    try:
        count += forget_answers(folder, keys)
    except UserError as fault:
        left.append(str(fault))
    for file in sorted((folder / FOLDER).glob("*.answers")):
        lines = file.read_text("utf-8").splitlines()
        works = [str(json.loads(line).get("custom_id")).partition(":")[0] for line in lines]
        retained = [line for line, work in zip(lines, works, strict=True) if work not in keys]
        if len(retained) == len(lines):
            continue
        count += len(lines) - len(retained)
        # replies that remain are on disk before the old bytes are erased, which the open file still holds
        with file.open("r+b") as opened:
            size = file.stat().st_size
            if retained:
                replace_file(file, "\n".join(retained))
            else:
                file.unlink()
            opened.write(b"\0" * size)
            opened.flush()
            os.fsync(opened.fileno())
    return count, left


T = TypeVar("T")

_UNREADABLE = (sqlite3.Error, NoCache, ValueError, TypeError, KeyError, AttributeError)


class ReplyCache:
    """Replies that were paid for before, if the study's cache can be read."""

    def __init__(self, folder: Path | None, about: Callable[[], Mapping[str, object]]) -> None:
        self.hits = 0
        self.fault: str | None = None
        self.say: Callable[[str], None] = lambda line: None
        self._folder, self._about = folder, about
        self._cache: Cache | None = None
        self._keys: dict[str, str] = {}

    def describe(self) -> dict[str, object]:
        """Return the number of hits, the error if any, and whether a cache is used."""
        return {"hits": self.hits, "fault": self.fault, "used": self._folder is not None}

    def open(self) -> None:
        """Open the file in the thread that uses it."""
        self._keys.clear()
        if self._folder is None or self.fault is not None:
            return
        try:
            self._cache = Cache(self._folder / FILE)
        except _UNREADABLE as error:
            self._give_up(error)

    def find(self, request: Request) -> Reply | None:
        """Return the answer to an identical request, or None."""
        if self._cache is None:
            return None
        key = cache_key(self._about(), request)
        hit = self._try(lambda cache: cache.find(key, request))
        if hit is None:
            self._keys[request.work_key] = key
        self.hits += hit is not None
        return hit

    def keep(self, reply: Reply) -> None:
        """Store the answer to a request that :meth:`find` did not have."""
        key = self._keys.pop(reply.work_key, None)
        if key is not None:
            self._try(lambda cache: cache.keep(key, reply))

    def close(self) -> None:
        """Write new answers and close the file."""
        self._try(lambda cache: cache.close())
        self._cache = None

    def _try(self, use: Callable[[Cache], T]) -> T | None:
        try:
            return None if self._cache is None else use(self._cache)
        except _UNREADABLE as error:
            self._give_up(error)
            return None

    def _give_up(self, error: Exception) -> None:
        cache, self._cache = self._cache, None
        if cache is not None:
            with contextlib.suppress(sqlite3.Error):
                cache.abandon()
        if self.fault is None and self._folder is not None:
            self.fault = str(error) if isinstance(error, sqlite3.Error | NoCache) else f"it holds {error!r}"
            self.say(
                f"{self._folder / FILE} cannot be used: {self.fault}. No answer is taken from it and none is kept in it, so that "
                "what a killed run had received is asked and paid again; move the file away, and the next run begins a new one"
            )
