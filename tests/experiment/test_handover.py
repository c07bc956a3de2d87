from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd

from experiment.checking import load_study
from experiment.demo.tour import LocalServer, fill
from experiment.exporting import export_study
from experiment.exporting.export import hand_over
from experiment.store import open_store, queries
from experiment.store.tables import regions
from tests.experiment.test_simulated import TRUTH


def dictionary_of(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "dictionary.json").read_text("utf-8"))
    return told


def test_the_dictionary_says_that_the_design_changed_since_the_sessions(make_study, tmp_path):
    study = make_study()
    (study.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    with open_store(study.folder) as store:
        with LocalServer(study, store) as server:
            fill(study, server.links, readers=1, pause=0, told=lambda _: None)
        before = dictionary_of(hand_over(study, store, tmp_path / "before"))
        (study.folder / "debrief.md").write_text("Another farewell.", "utf-8")
        changed = load_study(study.folder)
        after = dictionary_of(hand_over(changed, store, tmp_path / "after"))
    assert before["design_changed"] is False and after["design_changed"] is True
    assert after["collected_design_hash"] == before["design_hash"] != after["design_hash"]


def test_regions_outside_the_declared_bounds_stay_and_say_so(make_study, tmp_path):
    rule = "analysis: {exclude: {regions: {rt: outside 50 ms to 10 s}}}"
    study = make_study(("seed: 7\n", f"seed: 7\n{rule}\n"))
    times = {0: 49.9, 1: 50.0, 2: 10_000.0, 3: 10_000.5, 4: None}
    with open_store(study.folder) as store:
        with LocalServer(study, store) as server:
            (study.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
            fill(study, server.links, readers=1, pause=0, told=lambda _: None)

        def read_word_by_word(connection: Any) -> None:
            first = next(iter(queries.trials_with_scores(connection, study.id)))
            key = {name: first[name] for name in ("session_id", "trial_index", "attempt")}
            rows = [key | {"region": place, "shown": "x", "rt": rt} for place, rt in times.items()]
            connection.execute(regions.insert(), rows)

        store.write(read_word_by_word).result()
        folder = hand_over(study, store, tmp_path / "out")
        export_study(study, store, tmp_path / "csv", "csv")
    told = pd.read_parquet(folder / "regions.parquet").set_index("region")["excluded_reason"].astype(object)
    reason = "rt outside 50 ms to 10 s"
    assert told.where(told.notna(), None).to_dict() == {0: reason, 1: None, 2: None, 3: reason, 4: None}
    assert dictionary_of(folder)["exclude"] == {"regions": {"rt": "outside 50 ms to 10 s"}}
    assert (tmp_path / "csv" / "regions.csv").read_text("utf-8").count(reason) == 2
