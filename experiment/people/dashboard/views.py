"""All views of the experimenter's pages; importing this module adds them to the blueprint."""

from __future__ import annotations

from experiment.people.dashboard import (
    rating_pages,
    session_pages,
    sign_in_pages,
    study_pages,
    transfers,
    watching,
    withdrawing,
)
from experiment.people.dashboard.blueprint import admin

__all__ = [
    "admin",
    "rating_pages",
    "session_pages",
    "sign_in_pages",
    "study_pages",
    "transfers",
    "watching",
    "withdrawing",
]
