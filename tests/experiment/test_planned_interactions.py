"""Two factors that a plan compares together: how it is written, what is refused, how it is told and registered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from analysis.plan import plans_in_words
from experiment.study import Study
from experiment.study.plans import planned_analyses, study_plan
from experiment.summaries.registration import registration
from tests.experiment.conftest import small_items

FACTORS = "\n    band: {high: {where: {band: high}}, low: {where: {band: low}}}"
INTERACTION = "(initial - intact) x (low - high)"


def made(make_study: Callable[..., Study], **more: Any) -> Study:
    items = [
        replace(one, condition={**one.condition, "band": "high" if int(one.item_id[1:]) % 2 else "low"})
        for one in small_items()
    ]
    spec = {"measure": "correct", "compare": "[position, band]", "between": "[human]", **more}
    told = ", ".join(f"{key}: {value}" for key, value in spec.items())
    return make_study(
        ("{transpose: initial}}", f"{{transpose: initial}}}}{FACTORS}"),
        ("  - debrief: debrief.md\n", f"  - debrief: debrief.md\nanalysis:\n  planned:\n    a: {{{told}}}\n"),
        items=items,
    )


def test_an_interaction_is_registered_in_words(make_study):
    contrasts = f"[{INTERACTION}, initial - intact in low, initial - intact]"
    study = made(make_study, contrasts=contrasts, direction=f"{{{INTERACTION}: less}}")
    text = registration(study, sessions_before=0)
    assert (
        "compared by position × band (position: intact, initial; intact is the reference; band: high, low;"
        in text
    )
    assert f"{INTERACTION}, one-sided: less than 0 expected" in text
    assert "initial minus intact in low, less initial minus intact in high (the interaction)" in text
    assert "initial minus intact in trials with low (a simple effect)" in text
    assert "initial minus intact, averaged over the levels of band" in text
    assert "fixed effects are position and band with their interaction" in text
    assert "interactions are tested in percentage points" in text


def test_a_plan_of_two_factors_is_handed_over_as_it_is_written(make_study):
    study = made(make_study)
    told = planned_analyses(study)[0].to_json()
    assert told["compare"] == ["position", "band"] and told["contrasts"] == [INTERACTION]
    assert told["direction"] == {INTERACTION: "two-sided"}
    (lines,) = plans_in_words(study_plan(study))
    assert lines[1] == f"contrasts (default): {INTERACTION}, two-sided (default)"
