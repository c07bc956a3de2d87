"""An engine's use of the cache: a file that cannot be used is said once, then nothing is taken from it and nothing kept."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from experiment.models.api.cache import FILE, Cache, NoCache, cache_key
from experiment.models.engine import Reply, Request

Say = Callable[[str], None]
_UNREADABLE = (sqlite3.Error, NoCache, ValueError, TypeError, KeyError, AttributeError)


class Remembered:
    """Answers that were paid for before, as far as the study's file gives them.

    Parameters
    ----------
    folder : Path or None
        The study's; None uses no cache.
    about : callable
        Gives server, model and dialect as they are now (:func:`experiment.models.api.cache.cache_key`).

    Attributes
    ----------
    hits : int
    fault : str or None
        Why the file is not used.
    say : callable
        Takes the line that says so.
    """

    def __init__(self, folder: Path | None, about: Callable[[], Mapping[str, object]]) -> None:
        self.hits = 0
        self.fault: str | None = None
        self.say: Say = lambda line: None
        self._folder, self._about = folder, about
        self._cache: Cache | None = None
        self._keys: dict[str, str] = {}

    def describe(self) -> dict[str, object]:
        """Return hits, fault and whether a cache is used at all."""
        return {"hits": self.hits, "fault": self.fault, "used": self._folder is not None}

    def open(self) -> None:
        """Open the file; from the thread that uses it."""
        self._keys.clear()
        if self._folder is None or self.fault is not None:
            return
        try:
            self._cache = Cache(self._folder / FILE)
        except _UNREADABLE as error:
            self._give_up(error)

    def find(self, request: Request) -> Reply | None:
        """Return the answer to an identical request; None where there is none."""
        if self._cache is None:
            return None
        key = cache_key(self._about(), request)
        try:
            hit = self._cache.find(key, request)
        except _UNREADABLE as error:
            self._give_up(error)
            return None
        if hit is None:
            self._keys[request.work_key] = key
        self.hits += hit is not None
        return hit

    def keep(self, reply: Reply) -> None:
        """Keep the answer to a request that was looked for."""
        key = self._keys.pop(reply.work_key, None)
        if self._cache is None or key is None:
            return
        try:
            self._cache.keep(key, reply)
        except sqlite3.Error as error:
            self._give_up(error)

    def close(self) -> None:
        """Write what is new and close the file."""
        cache, self._cache = self._cache, None
        if cache is not None:
            try:
                cache.close()
            except sqlite3.Error as error:
                self._give_up(error)

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
