"""Condition profiles: found to be people's own where they are, and not where they are noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis import load
from analysis.figures import Drawing
from analysis.measures.condition_profiles import Profiles, plane, profiles, told_of
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Material
from analysis.report.chapters.condition_profiles import write
from analysis.report.document import SIMULATED
from tests.analysis.inside.profile_study import LEVELS, profile_study


def found(folder: Path, measure: str) -> Profiles:
    one = profiles(load(folder).trials, "position", LEVELS, measure, "s")
    assert one is not None
    return one


def test_profiles_of_their_own_are_found_and_noise_is_not(tmp_path: Path) -> None:
    theirs = found(profile_study(tmp_path / "own", 0.6), "rt")
    told = told_of(theirs, "s")
    assert told.identified.matched > 16 and told.identified.p == told.identified.least_p
    assert told.whole > 0.8 and theirs.models == ()
    shares, p = [], []
    for seed in range(8):
        noise = told_of(
            found(profile_study(tmp_path / f"noise{seed}", 0.0, people=10, each=4, seed=seed), "rt"), "s"
        )
        shares.append(noise.identified.matched / noise.identified.halves)
        p.append(noise.identified.p)
    assert np.mean(shares) == pytest.approx(0.1, abs=0.06)
    assert np.mean(np.array(p) <= 0.05) <= 0.16


def test_models_are_placed_among_people_by_the_peoples_mean_profile(tmp_path: Path) -> None:
    one = found(profile_study(tmp_path / "own", 0.3, each=16), "correct")
    told = told_of(one, "s")
    assert one.models == ("net",) and 0 <= told.below[0] <= 1
    people, centre = one.whole, one.whole.mean(axis=0)
    assert told.of_models[0] == pytest.approx(np.corrcoef(one.of_models[0], centre)[0, 1])
    others = np.delete(people, 3, axis=0).mean(axis=0)
    assert told.typical[3] == pytest.approx(np.corrcoef(people[3], others)[0, 1])
    where = plane(one)
    assert where.people.shape == (16, 2) and where.models.shape == (1, 2)
    np.testing.assert_allclose(where.people.mean(axis=0), 0, atol=1e-12)
    assert where.shares[0] >= where.shares[1] > 0


def test_the_chapter_has_tables_and_a_figure_and_marks_what_is_no_data(tmp_path: Path) -> None:
    folder = profile_study(tmp_path / "simulated", 0.5, kind="simulated")
    kinds = {"simulated": "simulated", "net": "model"}
    chapter = write(Material(load(folder), kinds=kinds))
    assert chapter is not None and set(SIMULATED) <= set(chapter.marks)
    tables = {one.name: one for one in chapter.blocks if isinstance(one, ApaTable)}
    assert [row[0] for row in tables["profiles_position"].rows] == [
        "proportion correct (failures as wrong)",
        "mean log response time of valid answers",
    ]
    assert [row[0] for row in tables["profiles_models_position"].rows][1] == "net"
    (drawn,) = [one for one in chapter.blocks if isinstance(one, Drawing)]
    assert "not data" in drawn.svg and "net at" in drawn.alternative


def test_people_with_one_trial_a_condition_have_no_halves(tmp_path: Path) -> None:
    assert write(Material(load(profile_study(tmp_path / "few", 0.5, each=1)))) is None
    assert write(Material(load(profile_study(tmp_path / "alone", 0.5, people=3)))) is None
