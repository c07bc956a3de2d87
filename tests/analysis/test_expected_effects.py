"""What effects lead to in a model of one factor is what simulated readers bring back on average."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from analysis.parameter_recovery import expected_levels

ACCURACY: dict[str, Any] = {
    "scale": "logit",
    "intercept": 3.0,
    "effects": {"form": {"mild": -0.6, "strong": -1.6}, "speed": {"fast": -0.8}, "band": {"rare": -0.5}},
    "participant_sd": 0.6,
    "item_sd": 0.5,
}
TIME: dict[str, Any] = {
    "scale": "log_ms",
    "intercept": 6.0,
    "effects": {"form": {"strong": 0.26}, "speed": {"fast": -0.2}},
    "participant_sd": 0.2,
    "item_sd": 0.06,
    "residual_sd": 0.28,
    "tail_ms": 90.0,
    "learning": -0.05,
}
FORMS = ("intact", "mild", "strong")


def crossed(people: int = 8, items: int = 12) -> pd.DataFrame:
    """Every participant, in one speed, sees every item, in one band, in every form."""
    rows = pd.MultiIndex.from_product(
        [range(people), range(items), FORMS], names=["participant", "item", "form"]
    ).to_frame(index=False)
    rows["speed"] = np.where(rows["participant"] % 4 == 0, "fast", "slow")
    rows["band"] = np.where(rows["item"] % 2 == 0, "rare", "common")
    rows["before"] = rows.groupby("participant").cumcount()
    return rows.assign(chance=0.5)


def test_an_intercept_is_that_over_the_levels_of_the_other_factors() -> None:
    found = expected_levels(crossed(), "form", FORMS, ACCURACY)
    assert found == pytest.approx({"intact": 2.55, "mild": 1.95, "strong": 0.95})
    only = {**ACCURACY, "effects": {"form": ACCURACY["effects"]["form"]}}
    assert expected_levels(crossed(), "form", FORMS, only)["intact"] == pytest.approx(3.0)


def test_a_factor_within_participants_and_items_is_averaged_over_answers() -> None:
    found = expected_levels(crossed(), "speed", ("slow", "fast"), ACCURACY)
    right = expit(2.75 + np.array([0.0, -0.6, -1.6])).mean()
    assert found["slow"] == pytest.approx(logit(right))
    assert logit(right) < 2.75 - (0.6 + 1.6) / 3


def test_times_with_a_tail_lead_to_the_mean_of_their_logarithms() -> None:
    rows, lapses = crossed(people=2000, items=20), {"rate": 0.05, "slower": 2.0}
    draw = np.random.default_rng(4)
    eta = TIME["intercept"] + rows["form"].map(TIME["effects"]["form"]).fillna(0.0)
    eta += rows["speed"].map(TIME["effects"]["speed"]).fillna(0.0) - 0.05 * np.log1p(rows["before"])
    eta += draw.normal(0, 0.2, 2000)[rows["participant"]] + draw.normal(0, 0.28, len(rows))
    eta += draw.normal(0, 0.06, len(rows))
    times = np.exp(eta) + draw.exponential(90.0, len(rows))
    times *= np.where(draw.random(len(rows)) < 0.05, 2.0, 1.0)
    means = np.log(times).groupby(rows["form"]).mean()
    found = expected_levels(rows, "form", FORMS, TIME, lapses)
    assert found == pytest.approx(means.to_dict(), abs=0.012)
    assert found["intact"] > 6.0 and found["strong"] - found["intact"] < 0.25


def test_lapses_are_right_by_chance() -> None:
    found = expected_levels(crossed(), "form", FORMS, ACCURACY, {"rate": 0.1, "slower": 2.0})
    assert found["intact"] == pytest.approx(logit(0.9 * expit(2.55) + 0.05))
