"""A model that will be simplified is sketched: found as ever, but without the second derivatives that nobody reads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis import load
from analysis.estimation import fitted_as_written
from analysis.frames import accuracy_data
from analysis.mixed import completed, fit, fitting, sketch
from analysis.planned import plans
from tests.analysis.conftest import Make
from tests.analysis.letter_study import study_rows
from tests.analysis.mixed.conftest import Simulate

SINGULAR = "correct ~ cond + (1 + cond | participant) + (1 | item) + (1 | none)"


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MANY", 1)


def test_a_sketch_is_completed_from_where_it_ended(crossed: Simulate, many: None) -> None:
    """A grouping column without any variance stands beside participants and items."""
    data = crossed(seed=3, participants=30, items=24)
    answers = data.assign(none=np.arange(len(data)) % 6)
    whole = fit(SINGULAR, answers, "binomial")
    found = completed(sketch(SINGULAR, answers, family="binomial"))
    assert found.fixed["se"].to_numpy() == pytest.approx(whole.fixed["se"].to_numpy(), rel=1e-4)
    assert found.converged and not found.is_sketch
    assert found.warnings == whole.warnings
    assert found.evaluations <= whole.n_parameters + 3, "no second search"
    assert completed(found) is found


def test_a_written_model_that_has_no_fallback_is_completed(handover: Make, many: None) -> None:
    tables = load(handover(study_rows(human=14, models=("m",), items=16)))
    usual = plans(tables)[0]
    data = accuracy_data(tables.trials, usual)
    data = replace(data, rows=data.rows.assign(none=np.arange(len(data.rows)) % 6))
    text = "correct ~ position + (1 | item) + (1 | none)"
    for fallback in (None, "correct ~ position + (1 | nowhere)"):
        plan = replace(usual, formula=text, fallback=fallback)
        model, _ = fitted_as_written(plan, data)
        assert model is not None and model.singular and model.formula == text
        assert fitting.SKETCHED not in model.warnings
