"""The published and simulated fits that lme4 made at tight control, and small data sets of our own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.mixed import Fit, fit


@dataclass(frozen=True)
class OracleFit:
    """One reference fit and ours of the same model."""

    expected: dict[str, Any]
    fitted: Fit
    data: pd.DataFrame

    @property
    def is_linear(self) -> bool:
        return bool(self.expected["family"] == "gaussian")


class Oracle:
    """Reads the reference fits, and fits each model once in a test session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._fits: dict[tuple[str, str], OracleFit] = {}

    def description(self, dataset: str) -> dict[str, Any]:
        return dict(json.loads((self.folder / f"{dataset}.json").read_text("utf-8")))

    def data(self, dataset: str) -> pd.DataFrame:
        data = pd.read_csv(self.folder / f"{dataset}.csv")
        return data.assign(obs=np.arange(1, len(data) + 1)) if dataset == "cbpp" else data

    def fit(self, dataset: str, name: str) -> OracleFit:
        if (dataset, name) not in self._fits:
            expected = next(f for f in self.description(dataset)["fits"] if f["id"] == name)
            data = self.data(dataset)
            fitted = fit(
                expected["formula"],
                data,
                family=expected["family"],
                link=expected["link"],
                reml=expected["method"] == "REML",
                levels=expected["factor_levels"] or None,
            )
            self._fits[dataset, name] = OracleFit(expected, fitted, data)
        return self._fits[dataset, name]


@pytest.fixture(scope="session")
def oracle(shared: Path) -> Oracle:
    return Oracle(shared / "oracle" / "mixed")


Simulate = Callable[..., pd.DataFrame]


@pytest.fixture(scope="session")
def crossed() -> Simulate:
    """Return a maker of crossed data: participants by items, a three-level condition, a covariate, three responses."""

    def make(seed: int = 1, participants: int = 16, items: int = 12, spread: float = 0.6) -> pd.DataFrame:
        rng = np.random.default_rng(seed)
        rows = pd.DataFrame(
            [(p, i) for p in range(participants) for i in range(items)], columns=["who", "what"]
        )
        n = len(rows)
        rows["participant"] = [f"p{k:02d}" for k in rows["who"]]
        rows["item"] = rows["what"] + 100
        rows["agent"] = np.where(rows["who"] % 2 == 0, "human", "model")
        rows["cond"] = np.array(["intact", "internal", "initial"])[(rows["who"] + rows["what"]) % 3]
        rows["log.freq"] = np.round(rng.normal(3.0, 1.0, items)[rows["what"]], 4)
        slow = (rows["cond"] != "intact").to_numpy(dtype=float)
        intercepts, slopes = rng.normal(0, spread, participants), rng.normal(0, spread / 2, participants)
        eta = (
            0.4
            + intercepts[rows["who"]]
            + slopes[rows["who"]] * slow
            + rng.normal(0, spread, items)[rows["what"]]
            - 0.5 * slow
            + 0.15 * (rows["log.freq"].to_numpy() - 3.0)
        )
        rows["rt"] = np.round(6.5 + 0.2 * eta + rng.normal(0, 0.3, n), 5)
        rows["correct"] = (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(int)
        rows["errors"] = rng.poisson(np.exp(0.3 * eta))
        rows["trials"] = rng.integers(3, 9, n)
        rows["hits"] = rng.binomial(rows["trials"], 1.0 / (1.0 + np.exp(-eta)))
        return rows.drop(columns=["who", "what"])

    return make
