"""Keeps what was answered: sessions, trials, calls and scores, safe on disk before anyone is told so."""

from experiment.store.database import DamagedStore, RefusedOperation, SessionGone, StoreError
from experiment.store.store import Store, open_store

__all__ = ["DamagedStore", "RefusedOperation", "SessionGone", "Store", "StoreError", "open_store"]
