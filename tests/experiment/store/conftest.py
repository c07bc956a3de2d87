"""A small plan and trials of it: what the store is given by people's pages and by runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiment.store import Store, open_store, records
from experiment.store import records as r
from tests.experiment.postgres import postgres_cluster, postgres_url

__all__ = ["postgres_cluster", "postgres_url"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path) as opened:
        yield opened


@pytest.fixture
def plan() -> dict[str, Any]:
    trials = [
        {
            "trial_index": index, "block": "block-1", "item_id": f"s{index:02d}", "set": "sentences",
            "condition": {"position": "initial"}, "trial_type": "choose", "is_practice": False,
            "is_filler": False, "is_attention_check": False, "answer": "yes",
            "shown": {"sentence": "Teh dgo barks."}, "choice_order": [0, 1],
        }
        for index in range(200)
    ]  # fmt: skip
    return {
        "study": "positions", "version": 1, "design_hash": "d1", "list_id": 1, "label_map": {"A": "A"},
        "prompt_variant": 1, "replicate": 1, "context": "independent",
        "screens": [{"kind": "block", "block": "block-1", "trials": trials}],
    }  # fmt: skip


@pytest.fixture
def session_id(store: Store, plan: dict[str, Any]) -> str:
    return begin(store, plan)


@pytest.fixture
def make_trial(plan: dict[str, Any]) -> Callable[..., dict[str, Any]]:
    def make(session_id: str, index: int, **changed: Any) -> dict[str, Any]:
        planned = plan["screens"][0]["trials"][index]
        row = r.planned_columns(planned) | {
            "session_id": session_id, "client_uuid": f"{session_id}-{index}", "response_raw": "yes", "rt": 812.25,
        }  # fmt: skip
        return row | changed

    return make


ROOT = Path(__file__).resolve().parents[3]
HERS = "I am Xanthippe of Alopeke"


def do(store: Store, operation: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """Let the store's writer do something, and wait for it."""
    return store.write(lambda connection: operation(connection, *given, **more)).result()


def look(store: Store, reading: Callable[..., Any], *given: Any, **more: Any) -> Any:
    """Return what the store says: a list where it is told row by row."""
    with store.read() as connection:
        found = reading(connection, *given, **more)
        return list(found) if isinstance(found, Iterator) else found


def begin(store: Store, plan: dict[str, Any], reader: str = "P001", **more: Any) -> str:
    kind = more.pop("reader_kind", "human")
    return str(do(store, r.create_session, plan, reader_kind=kind, reader=reader, **more))


def answer(
    store: Store,
    plan: dict[str, Any],
    make_trial: Callable[..., dict[str, Any]],
    reader: str = "P001",
    trials: int = 1,
) -> str:
    """Begin a session and store so many answers with somebody's own words."""
    session = begin(store, plan, reader)
    for index in range(trials):
        do(store, r.store_trial, make_trial(session, index, response_raw=HERS))
    return session


def sessions_in(target: Path | str, study: str | None = None) -> list[dict[str, Any]]:
    with open_store(target) as store, store.read() as connection:
        return records.sessions_overview(connection, study)


def files_with(folder: Path, words: str) -> list[str]:
    """Return the names of the files below a folder that hold some words."""
    return sorted(
        file.name for file in folder.rglob("*") if file.is_file() and words.encode() in file.read_bytes()
    )
