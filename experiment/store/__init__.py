"""Storage of sessions, trials, calls and scores, which are safe on disk before they are confirmed."""

from experiment.store.database import DamagedStore, RefusedOperation, SessionGone, StoreError
from experiment.store.store import Store, open_store

__all__ = ["DamagedStore", "RefusedOperation", "SessionGone", "Store", "StoreError", "open_store"]
