"""Sensitivity and bias from counts, and the same from a probit mixed model."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis.measures.signal_detection import (
    probit_data,
    sensitivity,
    sensitivity_and_bias,
    signal_detection,
)
from analysis.mixed import fit
from stimuli.errors import UserError
from tests.analysis.measured import trials_of

Z = NormalDist().inv_cdf
CDF = NormalDist().cdf


def answers(hits: int, signals: int, alarms: int, others: int, **more: Any) -> list[dict[str, Any]]:
    said = ["A"] * hits + ["B"] * (signals - hits) + ["A"] * alarms + ["B"] * (others - alarms)
    truth = ["A"] * signals + ["B"] * others
    return [
        {"answer": key, "response": given, "correct": float(key == given), **more}
        for key, given in zip(truth, said, strict=True)
    ]


def test_d_prime_and_criterion_have_the_log_linear_correction() -> None:
    found = sensitivity(hits=40, signals=50, false_alarms=10, others=50)
    high, low = Z(40.5 / 51), Z(10.5 / 51)
    assert found.d_prime == pytest.approx(high - low) == pytest.approx(1.6414, abs=5e-4)
    assert found.criterion == pytest.approx(0, abs=1e-12)
    biased = sensitivity(hits=45, signals=50, false_alarms=25, others=50)
    assert biased.criterion == pytest.approx(-(Z(45.5 / 51) + Z(25.5 / 51)) / 2)
    assert biased.criterion < 0  # leans to answering "signal"
    assert biased.beta == pytest.approx(biased.d_prime * biased.criterion)


def test_perfect_answers_have_a_finite_d_prime() -> None:
    found = sensitivity(100, 100, 0, 100)
    assert found.d_prime == pytest.approx(2 * Z(100.5 / 101))
    assert sensitivity(50, 100, 50, 100).d_prime == 0


def test_the_standard_error_is_the_spread_of_d_prime_over_samples() -> None:
    draw = np.random.default_rng(2)
    hits, alarms = draw.binomial(100, CDF(0.9), 4000), draw.binomial(100, CDF(-0.4), 4000)
    found = [sensitivity(h, 100, f, 100) for h, f in zip(hits, alarms, strict=True)]
    spread = np.std([one.d_prime for one in found])
    assert np.mean([one.d_prime_se for one in found]) == pytest.approx(spread, rel=0.05)
    spread_c = np.std([one.criterion for one in found])
    assert np.mean([one.criterion_se for one in found]) == pytest.approx(spread_c, rel=0.05)


@pytest.mark.parametrize("counts", [(-1, 5, 0, 5), (6, 5, 0, 5), (1, 5, 6, 5)])
def test_impossible_counts_are_refused(counts: tuple[int, int, int, int]) -> None:
    with pytest.raises(UserError, match="between 0 and their numbers"):
        sensitivity(*counts)


def test_always_answering_a_is_all_bias_and_no_sensitivity() -> None:
    table = signal_detection(trials_of(answers(100, 100, 100, 100)))
    (row,) = table.to_dict("records")
    assert row["d_prime"] == 0
    assert row["criterion"] == pytest.approx(-Z(100.5 / 101))
    assert trials_of(answers(100, 100, 100, 100))["correct"].mean() == 0.5


def test_missing_answers_are_counted_and_belong_to_neither_rate() -> None:
    lost = [{"answer": "A", "response": None, "response_status": "refused", "correct": None}] * 7
    trials = trials_of([*answers(40, 50, 10, 50, cond="kf"), *[{**one, "cond": "kf"} for one in lost]])
    (row,) = signal_detection(trials, ["cond"]).to_dict("records")
    assert (row["hits"], row["signals"], row["false_alarms"], row["others"]) == (40, 50, 10, 50)
    assert row["missing"] == 7
    other = signal_detection(trials, ["cond"], signal="B").to_dict("records")[0]
    assert other["d_prime"] == pytest.approx(row["d_prime"])
    assert other["criterion"] == pytest.approx(-row["criterion"])


def test_more_than_two_classes_are_refused() -> None:
    trials = trials_of([{"answer": one, "response": one} for one in "ABC"])
    with pytest.raises(UserError, match=r"these trials have 3 \('A', 'B', 'C'\)"):
        signal_detection(trials)
    with pytest.raises(UserError, match="signal: 'C'"):
        signal_detection(trials_of(answers(1, 2, 1, 2)), signal="C")


def test_the_probit_models_coefficients_are_the_z_differences_of_the_cells() -> None:
    """Items that are all answered alike leave them no variance, and the counts uncorrected."""
    rows = [
        row
        for n in range(20)
        for row in [
            *answers(4, 5, 2, 5, cond="intact", item_id=f"i{n}"),
            *answers(3, 5, 1, 5, cond="kf", item_id=f"i{n}"),
        ]
    ]
    data = probit_data(trials_of(rows), "cond", ["intact", "kf"], ["m"])
    assert data.formula == "said_signal ~ truth * cond + (1 | item)"
    table = sensitivity_and_bias(fit(data.formula, data.rows, **data.settings), data)
    told = table.set_index(["cond", "measure"])["estimate"]
    assert told["intact", "d_prime"] == pytest.approx(Z(0.8) - Z(0.4), abs=1e-4)
    assert told["intact", "criterion"] == pytest.approx(-(Z(0.8) + Z(0.4)) / 2, abs=1e-4)
    assert told["kf", "d_prime"] == pytest.approx(Z(0.6) - Z(0.2), abs=1e-4)
    assert told["kf", "criterion"] == pytest.approx(-(Z(0.6) + Z(0.2)) / 2, abs=1e-4)


def simulated() -> pd.DataFrame:
    """People with d' 2 and 1, c -0.3 and 0.2, and a model with d' 0.5 throughout and c -1."""
    draw = np.random.default_rng(11)
    item = draw.normal(0, 0.25, 60)
    d_prime = {"human": {"intact": 2.0, "kf": 1.0}, "model": {"intact": 0.5, "kf": 0.5}}
    criterion = {"human": {"intact": -0.3, "kf": 0.2}, "model": {"intact": -1.0, "kf": -1.0}}
    rows = []
    for kind, readers in (("human", 40), ("model", 1)):
        for reader in range(readers):
            own, own_d = (draw.normal(0, 0.2), draw.normal(0, 0.2)) if kind == "human" else (0.0, 0.0)
            for i in range(60):
                conditions = (
                    ("intact", "kf") if kind == "model" else (("intact", "kf")[(i // 2 + reader) % 2],)
                )
                for cond in conditions:
                    for _ in range(20 if kind == "model" else 1):
                        truth = 0.5 if i % 2 else -0.5
                        eta = (d_prime[kind][cond] + own_d) * truth - criterion[kind][cond] + own + item[i]
                        said = draw.random() < CDF(eta)
                        rows.append(
                            {
                                "item_id": f"i{i}", "cond": cond, "reader_kind": kind, "reader_group": kind,
                                "reader": f"{kind}{reader}", "answer": "A" if truth > 0 else "B",
                                "response": "A" if said else "B",
                            }
                        )  # fmt: skip
    return trials_of(rows)


def test_a_probit_mixed_model_gives_back_sensitivity_and_bias_of_people_and_model() -> None:
    data = probit_data(simulated(), "cond", ["intact", "kf"], ["human", "model"])
    assert "(0 + people + people_truth | participant)" in data.formula
    assert "(1 | item_reader)" in data.formula
    table = sensitivity_and_bias(fit(data.formula, data.rows, **data.settings), data)
    truth = {
        ("human", "intact", "d_prime"): 2.0, ("human", "kf", "d_prime"): 1.0,
        ("human", "intact", "criterion"): -0.3, ("human", "kf", "criterion"): 0.2,
        ("model", "intact", "d_prime"): 0.5, ("model", "kf", "d_prime"): 0.5,
        ("model", "intact", "criterion"): -1.0, ("model", "kf", "criterion"): -1.0,
    }  # fmt: skip
    for key, row in table.set_index(["reader_group", "cond", "measure"]).iterrows():
        assert abs(row["estimate"] - truth[key]) < 3 * row["se"], key
        assert row["se"] < 0.25
    assert len(table) == len(truth)
