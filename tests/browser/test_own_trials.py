"""A lab's own trial types in Chromium: the examples of docs/own-trials.md from the page's files to stored and exported rows."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from experiment.building import build_study
from experiment.checking import load_study
from experiment.exporting import export_study
from experiment.people.app import create_app
from experiment.people.connections import listen
from experiment.people.preview import create_preview_app
from experiment.people.server import StudyServer
from experiment.people.service import PeopleSettings, service_for
from experiment.store import open_store
from experiment.store.records import all_flags, trials_with_scores
from experiment.trials.own import sha256
from experiment.trust import agree
from tests.browser.plans import TEXTS
from tests.browser.walking import leave, trial_shown
from tests.own_examples import write_examples

pytestmark = pytest.mark.browser


@contextmanager
def served(folder: Path) -> Iterator[tuple[Any, Any, str]]:
    """Yield the study, its store and the address of its page."""
    build_study(load_study(folder))
    study = load_study(folder)
    agree(study)
    with open_store(folder) as store, ExitStack() as running:
        settings = PeopleSettings(password_hash="-", secret=b"a signing key for tests")
        service = service_for(study, store, is_pilot=True)
        server = StudyServer(create_app({study.id: service}, config=settings), listen("127.0.0.1", 0))
        threading.Thread(target=server.run, daemon=True).start()
        running.callback(server.close)
        yield study, store, f"http://127.0.0.1:{server.port}/{study.id}/"


def begin(page: Any) -> None:
    page.get_by_role("button", name=TEXTS["start"]).click()
    page.get_by_role("button", name=TEXTS["agree"]).click()


def end(page: Any) -> None:
    leave(page.get_by_role("heading", name=TEXTS["debrief_title"]))
    page.get_by_role("heading", name=TEXTS["finished_title"]).wait_for()


def tap_through(page: Any) -> None:
    trial_shown(page, "own")
    shown = page.locator(".trial.own p")
    first = shown.element_handle()
    for _ in range(60):
        page.keyboard.press("Space")
        page.wait_for_timeout(60)
        if not first.is_visible() and not first.evaluate("node => node.isConnected"):
            return
    raise AssertionError("the trial did not end")


def test_taps_are_recorded_stored_and_exported(
    tmp_path: Path, new_page: Callable[..., Any], bundle: Path
) -> None:
    folder = write_examples(tmp_path)["tapping"]
    with served(folder) as (study, store, address):
        page = new_page(address)
        begin(page)
        trial_shown(page, "own")
        page.get_by_role("button", name=TEXTS["stop"], exact=True).click()
        page.get_by_role("button", name=TEXTS["stop_continue"]).click()
        for _ in range(4):
            tap_through(page)
        end(page)
        with store.read() as connection:
            rows = list(trials_with_scores(connection))
            flags = list(all_flags(connection, study.id))
        for form in ("csv", "jspsych", "psych-ds", "parquet"):
            export_study(study, store, tmp_path / form, form)
    assert not flags
    assert [file.name for file in sorted((tmp_path / "psych-ds").rglob("trial_types/tap/*"))] == [
        "declaration.json",
        "plugin.js",
    ]
    assert [(row["trial_index"], row["attempt"]) for row in rows] == [(0, 2), (1, 1), (2, 1), (3, 1)]
    for row in rows:
        taps = row["recorded"]["tap"]
        assert len(taps["moments"]) == 4
        assert taps["mean_interval"] == pytest.approx((taps["moments"][-1] - taps["moments"][0]) / 3)
        assert (row["trial_type"], row["response_raw"], row["correct"]) == ("tap", None, None)
        assert row["rt"] == pytest.approx(row["response_ts"] - row["onset_ts"])
    table = next((tmp_path / "csv").rglob("trials.csv"))
    exported = list(csv.DictReader(table.open(encoding="utf-8", newline="")))
    assert [json.loads(row["tap_moments"]) for row in exported] == [
        row["recorded"]["tap"]["moments"] for row in rows
    ]


def test_associations_are_scored_limited_and_survive_a_reload(
    tmp_path: Path, new_page: Callable[..., Any], bundle: Path
) -> None:
    folder = write_examples(tmp_path)["associations"]
    given: dict[str, str] = {}
    with served(folder) as (_, store, address):
        page = new_page(address)
        begin(page)
        for trial in range(4):
            trial_shown(page, "own")
            cue = page.locator(".trial.own p").inner_text()
            given[cue] = {"salt": "Pepper", "bread": "water"}.get(cue, "chair")
            page.keyboard.type(given[cue])
            page.keyboard.press("Enter")
            page.locator(".trial.own p", has_text=cue).wait_for(state="detached")
            if trial == 1:
                page.reload()
                page.get_by_role("button", name=TEXTS["go_on"]).click()
        end(page)
        with store.read() as connection:
            rows = list(trials_with_scores(connection))
    by_cue = {row["shown"]["sentence"]: row for row in rows}
    assert {cue: row["response"] for cue, row in by_cue.items()} == given
    assert {cue: row["correct"] for cue, row in by_cue.items()} == {
        "salt": True, "doctor": False, "bread": False, "table": True,
    }  # fmt: skip
    assert all(row["recorded"]["associate"]["first_key_ms"] > 0 for row in rows)


def test_the_preview_shows_the_plugin_and_the_prompt(
    tmp_path: Path, new_page: Callable[..., Any], bundle: Path
) -> None:
    folder = write_examples(tmp_path)["associations"]
    study = load_study(folder)
    agree(study)
    server = StudyServer(create_preview_app(study), listen("127.0.0.1", 0))
    threading.Thread(target=server.run, daemon=True).start()
    home = f"http://127.0.0.1:{server.port}"
    try:
        page = new_page(f"{home}/screen?list=1&screen=1&trial=0")
        trial_shown(page, "own")
        cue = page.locator(".trial.own p").inner_text()
        prompt = page.request.get(f"{home}/prompt.json?list=1&trial=0").json()
        assert f'"{cue}"' in prompt["messages"][-1]["content"]
        plugin = folder / "trial_types" / "associate" / "plugin.js"
        shown = f"{home}/own/{sha256(plugin.read_text('utf-8'))}.js"
        assert page.request.get(shown).status == 200
        plugin.write_text(plugin.read_text("utf-8") + "\n", "utf-8")
        assert page.request.get(shown).status == 404
        assert page.request.get(f"{home}/own/{sha256(plugin.read_text('utf-8'))}.js").status == 404
        assert "wrods trust" in page.request.get(f"{home}/").text()
    finally:
        server.close()
