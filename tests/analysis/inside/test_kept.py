"""Hidden states come back beside the trials that they belong to, whatever runs and positions they were kept in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import load
from experiment.models.engine import State
from experiment.models.states import StateWriter
from experiment.papers.inside.chapters.layers.hidden_states import StoredStates, kept_states, states_folder
from stimuli.errors import UserError
from tests.analysis.measured_study import class_study

LAYERS, WIDTH = 3, 4


def vectors(key: str, position: str) -> np.ndarray:
    """Return states that only this trial has at this position."""
    seed = int(key[1:]) * 10 + len(position) + (ord(position[-1]) % 7)
    return np.random.default_rng(seed).normal(size=(LAYERS, WIDTH)).astype(np.float16)


def written(folder: Path, keys: list[str], places: tuple[str, ...], width: int = WIDTH) -> None:
    with StateWriter(folder) as writer:
        for key in keys:
            writer.add(key, [State(place, vectors(key, place)[:, :width]) for place in places])


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two models of which `net` answered in two runs, and `stuck` in the second one."""
    folder = class_study(tmp_path / "study" / "reports" / "now" / "data", people=2, items=6)
    trials = pd.read_parquet(folder / "trials.parquet")
    trials["work_key"] = [
        f"k{n}" if kind == "model" else None for n, kind in enumerate(trials["reader_kind"])
    ]
    trials.to_parquet(folder / "trials.parquet")
    return tmp_path / "study"


def keys_of(study: Path, reader: str) -> list[str]:
    trials = pd.read_parquet(study / "reports" / "now" / "data" / "trials.parquet")
    return list(trials.loc[trials["reader"] == reader, "work_key"])


def by_group(study: Path, position: str) -> dict[str, StoredStates]:
    return {kept.group: kept for kept in kept_states(load(study / "reports" / "now" / "data"), position)}


def test_states_stand_beside_their_trials_over_runs_and_in_any_order(study: Path) -> None:
    net, stuck = keys_of(study, "net"), keys_of(study, "stuck")
    written(study / "states" / "run-a", [*reversed(net[:9]), "k999"], ("last", "mean"))
    written(study / "states" / "run-b", [*net[9:20], *stuck], ("mean", "last"))
    kept = by_group(study, "mean")
    assert list(kept) == ["net", "stuck"] and kept["net"].run == "run-b"
    one = kept["net"]
    assert (one.layers, one.width, one.position, len(one.rows)) == (LAYERS, WIDTH, "mean", 20)
    assert list(one.rows.index) == list(range(20)) and set(one.rows["work_key"]) == set(net[:20])
    assert {"item_id", "set", "position", "answer", "correct", "session_id"} <= set(one.rows.columns)
    where = np.array([19, 3, 3, 0], dtype=np.intp)
    for number in range(LAYERS):
        expected = np.array([vectors(key, "mean")[number] for key in one.rows["work_key"]])
        read = one.layer(number)
        assert read.dtype == np.float32 and (read == expected.astype(np.float32)).all()
        assert (one.layer(number, where) == read[where]).all()
    assert one.folder == (study / "states" / "run-b").resolve()
    with pytest.raises(UserError, match=r"\b3\b.*net"):
        one.layer(3)


def test_regions_come_one_by_one_or_as_their_mean(study: Path) -> None:
    net = keys_of(study, "net")
    written(study / "states" / "run-a", net[:4], ("last", "region 0", "region 1", "region 10"))
    written(study / "states" / "run-b", net[4:6], ("region 0",))
    assert len(by_group(study, "region 1")["net"].rows) == 4 and not by_group(study, "region 2")
    kept = by_group(study, "regions")["net"]
    places = ["region 0", "region 1", "region 10"]
    for number, key in enumerate(kept.rows["work_key"]):
        own = [vectors(key, place)[2].astype(np.float32) for place in places[: 3 if key in net[:4] else 1]]
        np.testing.assert_allclose(kept.layer(2)[number], np.mean(own, axis=0), rtol=1e-6)


def test_excluded_trials_and_people_have_no_states(study: Path) -> None:
    file = study / "reports" / "now" / "data" / "trials.parquet"
    trials = pd.read_parquet(file)
    net = keys_of(study, "net")
    trials["excluded_reason"] = trials["excluded_reason"].astype(object)
    trials.loc[trials["work_key"] == net[1], "excluded_reason"] = "by hand"
    trials.to_parquet(file)
    written(study / "states" / "run-a", net[:3], ("last",))
    assert list(by_group(study, "last")["net"].rows["work_key"]) == [net[0], net[2]]
    trials.drop(columns="work_key").to_parquet(file)
    assert not by_group(study, "last")


def test_runs_of_unlike_shape_come_apart_and_damage_is_named(study: Path) -> None:
    net = keys_of(study, "net")
    tables = load(study / "reports" / "now" / "data")
    assert states_folder(tables) is None and kept_states(tables, "last") == []
    written(study / "states" / "run-a", net[:3], ("last",))
    written(study / "states" / "run-b", net[3:5], ("last",), width=2)
    assert sorted((one.run, one.width, len(one.rows)) for one in kept_states(tables, "last")) == [
        ("run-a", 4, 3), ("run-b", 2, 2),
    ]  # fmt: skip
    (study / "states" / "run-a" / "layer_01.npy").write_bytes(b"no array")
    with pytest.raises(UserError, match=r"run-a .*layer_01\.npy"):
        kept_states(tables, "last")
    (study / "states" / "run-a" / "layer_01.npy").unlink()
    with pytest.raises(UserError, match=r"run-a .*\[4\]"):
        kept_states(tables, "last")
