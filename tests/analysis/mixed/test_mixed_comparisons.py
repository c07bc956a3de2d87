"""Which models may be compared, and that degrees of freedom are changed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.fitted_model import FittedModel, table_text
from analysis.mixed import (
    anova,
    fit,
    likelihood_ratio_test,
    margins,
    with_degrees,
)
from analysis.mixed.inference import corrected
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Simulate


@pytest.fixture(scope="module")
def data(crossed: Simulate) -> pd.DataFrame:
    return crossed(seed=41)


ML: dict[str, Any] = {"reml": False}


@pytest.mark.parametrize(
    ("smaller", "larger", "options", "says"),
    [
        ("rt ~ cond + (1 | item)", "rt ~ cond + (1 + log.freq | participant)", ML, "((Intercept) | item)"),
        ("rt ~ 1 + (1 | participant)", "rt ~ 1 + (0 + log.freq | participant) + (1 | item)", ML, "nested"),
        ("rt ~ 1 + (log.freq | item)", "rt ~ 1 + (log.freq || item) + (cond | item)", ML, "nested"),
        ("rt ~ log.freq + (1 | item)", "rt ~ cond + (1 | item)", ML, "log.freq"),
        ("rt ~ 1 + (1 | item)", "rt ~ cond + (1 | item)", {**ML, "offset": "log.freq"}, "offsets"),
        ("rt ~ 1 + (1 | item)", "rt ~ cond + (1 | item)", {}, "different fixed effects"),
        ("rt ~ cond + (1 | item)", "`one less` ~ cond + (1 | item)", ML, "different data"),
        ("rt ~ cond + (1 | item)", "rt ~ cond + (1 | item)", ML, "nested"),
    ],
)
def test_models_that_are_not_nested_are_not_compared(
    smaller: str, larger: str, options: dict[str, Any], says: str, data: pd.DataFrame
) -> None:
    data["one less"] = data["rt"].mask(data.index == 0)
    one, other = fit(smaller, data, reml=options.get("reml", True)), fit(larger, data, **options)
    with pytest.raises(UserError) as error:
        likelihood_ratio_test(one, other)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        ("rt ~ cond + (1 | participant)", "rt ~ cond + (1 | participant) + (1 | item)"),
        ("rt ~ cond + (log.freq || participant)", "rt ~ cond + (log.freq | participant)"),
        ("rt ~ cond + (1 | item)", "rt ~ cond + (0 + agent | item)"),
        ("rt ~ cond + (1 | participant)", "rt ~ cond + (scale(log.freq) | participant)"),
    ],
)
def test_models_whose_random_terms_are_nested_are_compared(
    smaller: str, larger: str, data: pd.DataFrame
) -> None:
    assert 0.0 <= likelihood_ratio_test(fit(smaller, data), fit(larger, data)).p <= 1.0


@pytest.mark.parametrize("method", ["kenward-roger", "satterthwaite", "none"])
def test_degrees_are_changed_on_the_fit_itself_only(method: str, data: pd.DataFrame) -> None:
    adjusted = with_degrees(fit("rt ~ cond + (1 | item)", data), "kenward-roger")
    with pytest.raises(UserError, match="Kenward-Roger"):
        with_degrees(adjusted, method)
    plain = with_degrees(fit("rt ~ cond + (1 | item)", data), "none")
    assert with_degrees(plain, "kenward-roger").fixed.equals(adjusted.fixed)


def test_terms_are_tested_where_cells_are_empty_as_far_as_the_data_can_tell(data: pd.DataFrame) -> None:
    holes = data[~((data["cond"] == "internal") & (data["agent"] == "model"))]
    found = fit("rt ~ cond * agent + log.freq + (1 | participant) + (1 | item)", holes)
    table = anova(found)
    assert table.attrs["untold"] == ["cond", "agent"]
    told = table.set_index("term")
    assert told.loc[["cond", "agent"], "p"].isna().all()
    terms = found.fixed.set_index("term")
    for term, coefficient in (("log.freq", "log.freq"), ("cond:agent", found.fixed["term"].iloc[-1])):
        assert told.loc[term, "numerator"] == 1
        assert told.loc[term, "statistic"] == pytest.approx(
            terms.loc[coefficient, "statistic"] ** 2, rel=1e-6
        )
        assert told.loc[term, "p"] == pytest.approx(terms.loc[coefficient, "p"], rel=1e-5)
    assert "cond, agent" in table_text(FittedModel(found, holes, {}).anova())


@pytest.mark.parametrize(
    ("adjust", "method"), [("holm", "holm"), ("BH", "fdr_bh"), ("bonferroni", "bonferroni")]
)
def test_corrections_of_p_values_are_those_of_statsmodels(adjust: str, method: str) -> None:
    draw = np.random.default_rng(3)
    for many in (1, 2, 3, 7, 40):
        for p in (draw.random(many), draw.choice([0.0, 0.01, 0.01, 0.2, 1.0], many)):
            assert corrected(p, adjust) == pytest.approx(multipletests(p, method=method)[1], abs=1e-15)
    assert len(corrected(np.array([]), adjust)) == 0


@pytest.mark.parametrize(
    ("adjust", "times", "alpha"),
    [
        ("none", 1, 0.05),
        ("holm", 3, 0.05 / 3),
        ("bonferroni", 3, 0.05 / 3),
        ("BH", 3, 0.05 / 3),
        ("sidak", None, 1 - 0.95 ** (1 / 3)),
    ],
)
def test_an_empty_cell_takes_its_own_comparisons_alone_and_leaves_the_family_whole(
    adjust: str, times: int | None, alpha: float
) -> None:
    draw = np.random.default_rng(3)
    rows = pd.DataFrame(
        [(f"p{n}", cond, "old" if n % 2 else "young") for n in range(24) for cond in "abc" for _ in range(4)],
        columns=["who", "cond", "age"],
    )
    person = dict(zip(rows["who"].unique(), draw.normal(0, 20, 24), strict=True))
    effect = rows["cond"].map({"a": 0.0, "b": 14.0, "c": 9.0}) + rows["who"].map(person)
    rows["y"] = 400 + effect + draw.normal(0, 40, len(rows))
    rows = rows[(rows["cond"] != "c") | (rows["age"] != "old")]
    found = fit("y ~ cond * age + (1 | who)", rows, "gaussian")
    means = margins(found, ["cond"])
    table = means.pairs(adjust=adjust).set_index("contrast")
    assert list(table.index[table["p"].isna()]) == ["a - c", "b - c"]
    one, (first, second) = table.loc["a - b"], means.matrix[:2]
    row = first - second
    assert one["estimate"] == pytest.approx(float(row @ found.fixed["estimate"].to_numpy()))
    assert one["se"] == pytest.approx(float(np.sqrt(row @ found.vcov.to_numpy() @ row)))
    bare = 2 * stats.t.sf(abs(one["statistic"]), one["df"])
    assert one["p"] == pytest.approx(min(1.0, bare * times if times else 1 - (1 - bare) ** 3))
    half = stats.t.isf(alpha / 2, one["df"]) * one["se"]
    assert one["ci_high"] - one["estimate"] == pytest.approx(half)
    shown = means.pairs(scale="response").set_index("contrast")
    assert shown.loc["a - b", "estimate"] == pytest.approx(one["estimate"])
