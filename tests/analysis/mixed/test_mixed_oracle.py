"""Every reference fit of lme4 at tight control, within the tolerances that its README advises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.mixed import (
    anova,
    fit,
    likelihood_ratio_test,
    linear_contrasts,
    margins,
    predict,
    profile_intervals,
    r_squared,
    random_modes,
    with_degrees,
)
from tests.analysis.mixed.conftest import Oracle, OracleFit

FITS = {
    "sleepstudy": "slopes_reml slopes_ml intercept_reml intercept_ml uncorrelated_reml null_slopes_ml",
    "sim_acc": "intercepts slope_scr factor_coding_emmeans slope_scr_uncorrelated no_interaction",
    "sim_rt": "intercepts slope_scr maximal factor_coding_emmeans slope_scr_ml no_interaction_ml",
    "sim_tiny": "rt_intercepts rt_slope_near_singular rt_factor_emmeans acc_intercepts acc_slope_singular",
    "sim_hard": "near_separation singular_item singular_intercepts",
    "VerbAgg": "crossed crossed_no_gender slope_situ",
    "cbpp": "period_laplace null_laplace period_olre",
    "grouseticks": "poisson_three_factors poisson_brood",
}
CASES = [(dataset, name) for dataset, names in FITS.items() for name in names.split()]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def found(request: pytest.FixtureRequest, oracle: Oracle) -> OracleFit:
    return oracle.fit(*request.param)


def those_with(oracle: Oracle, key: str) -> list[tuple[OracleFit, Any]]:
    """Return the fits whose reference has a table of this name, and that table."""
    every = [oracle.fit(*case) for case in CASES]
    having = [(found, found.expected[key]) for found in every if found.expected.get(key)]
    assert len(having) >= 3, key
    return having


def column(found: OracleFit, key: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([row[key] for row in found.expected["fixed_effects"].values()], dtype=float)


def test_no_reference_fit_is_left_out(oracle: Oracle) -> None:
    listed = {(d, f["id"]) for d in FITS for f in oracle.description(d)["fits"]}
    assert listed == set(CASES)
    assert {p.stem for p in oracle.folder.glob("*.json")} == set(FITS)


def test_fixed_effects_and_their_names_are_lme4s(found: OracleFit) -> None:
    assert list(found.fitted.fixed["term"]) == list(found.expected["fixed_effects"])
    distance = np.abs(found.fitted.fixed["estimate"] - column(found, "estimate")) / column(found, "se")
    assert distance.max() < (1e-5 if found.is_linear else 1e-3)


def test_standard_errors_and_their_covariance_are_lme4s(found: OracleFit) -> None:
    tolerance = 1e-4 if found.is_linear else 1e-3
    if found.expected["id"] == "near_separation":
        tolerance = 2e-3
    if found.expected["is_singular"] and not found.is_linear:
        tolerance = 5e-3
    se = column(found, "se")
    assert found.fitted.fixed["se"].to_numpy() == pytest.approx(se, rel=tolerance)
    expected = np.array(found.expected["vcov_beta"]["values"]).reshape(len(se), len(se))
    assert np.abs(found.fitted.vcov.to_numpy() - expected).max() < 2 * tolerance * (se**2).max()


def test_statistics_and_p_values_are_lme4s(found: OracleFit) -> None:
    fixed = found.fitted.fixed
    assert fixed["statistic"].to_numpy() == pytest.approx(
        column(found, "t" if found.is_linear else "z"), rel=2e-3, abs=1e-3
    )
    # lme4's GLMM standard errors carry finite-difference noise, see the test against glmmTMB below.
    assert np.abs(fixed["p"] - column(found, "p")).max() < (1e-5 if found.is_linear else 5e-4)
    if found.is_linear:
        assert fixed["df"].to_numpy() == pytest.approx(column(found, "df"), rel=1e-3)
    else:
        assert fixed["df"].isna().all()


def test_generalised_fits_agree_closely_with_automatic_differentiation(oracle: Oracle) -> None:
    """glmmTMB's exact Hessian serves as second oracle for generalised models."""
    for found, other in those_with(oracle, "glmmTMB"):
        if found.is_linear:
            continue
        se = np.array(list(other["se"].values()), dtype=float)
        estimate = np.array(list(other["fixef"].values()), dtype=float)
        assert found.fitted.fixed["se"].to_numpy() == pytest.approx(se, rel=1e-4)
        assert np.abs((found.fitted.fixed["estimate"] - estimate) / se).max() < 5e-4
        assert found.fitted.loglik > other["logLik"] - 1e-7


def test_log_likelihood_is_no_lower_than_lme4s_and_the_criteria_follow(found: OracleFit) -> None:
    ours, theirs = found.fitted.loglik, found.expected["logLik"]
    assert ours > theirs - (1e-5 if found.is_linear else 1e-4)
    assert ours == pytest.approx(theirs, abs=1e-5 if found.is_linear else 1e-3)
    assert found.fitted.aic == pytest.approx(found.expected["AIC"], abs=2e-3)
    assert found.fitted.bic == pytest.approx(found.expected["BIC"], abs=2e-3)
    assert found.fitted.deviance == pytest.approx(found.expected["deviance_minus2ll"], abs=2e-3)
    assert found.fitted.n_parameters == found.expected["n_par"]
    assert found.fitted.converged


def test_singular_fits_and_only_those_are_flagged(found: OracleFit) -> None:
    assert found.fitted.singular is found.expected["is_singular"]
    assert any("singular" in w for w in found.fitted.warnings) is found.expected["is_singular"]


def test_variance_components_are_lme4s(found: OracleFit) -> None:
    assert [c.group for c in found.fitted.variance] == list(found.expected["random_effects"])
    assert dict(found.fitted.groups) == found.expected["n_groups"]
    for component in found.fitted.variance:
        expected = found.expected["random_effects"][component.group]
        terms = expected["terms"]
        assert list(component.terms) == ([terms] if isinstance(terms, str) else terms)
        if not found.expected["is_singular"]:
            cov = np.array(expected["variance_cov"]).reshape(component.cov.shape)
            assert np.abs(component.cov - cov).max() < (1e-3 if found.is_linear else 2e-3) * np.abs(cov).max()
    assert found.fitted.sigma == pytest.approx(found.expected["sigma"], rel=1e-5)


def test_intervals_of_generalised_models_are_lme4s_and_those_of_linear_ones_go_with_their_p(
    found: OracleFit,
) -> None:
    ours, se = found.fitted.fixed[["ci_low", "ci_high"]].to_numpy(), column(found, "se")
    normal = np.array(found.expected["wald_ci95"]["values"]).reshape(-1, 2)
    # lme4's Wald intervals are normal even where lmerTest tests by t.
    wider = stats.t.ppf(0.975, column(found, "df")) / stats.norm.ppf(0.975) if found.is_linear else 1.0
    expected = column(found, "estimate")[:, None] + np.transpose(
        wider * (normal - column(found, "estimate")[:, None]).T
    )
    assert (np.abs(ours - expected) / se[:, None]).max() < (1e-3 if found.is_linear else 1e-2)


def test_fitted_values_modes_and_population_predictions_are_lme4s(found: OracleFit) -> None:
    if found.expected["is_singular"]:  # compared on likelihood, fixed effects and flag only
        return
    ours = found.fitted
    scale = max(1.0, float(np.abs(ours.fitted).max()))
    if "fitted_first10" in found.expected:
        assert ours.fitted[:10] == pytest.approx(found.expected["fitted_first10"], abs=2e-4 * scale)
        assert ours.fitted.sum() == pytest.approx(found.expected["fitted_sum"], rel=1e-4)
    if "predict_population_first10" in found.expected:
        population = predict(ours, found.data.head(10), random=False)["estimate"].to_numpy()
        assert population == pytest.approx(found.expected["predict_population_first10"], abs=2e-4 * scale)
    for group, modes in ours.modes.items():
        expected = (found.expected.get("ranef_modes") or {}).get(group)
        if expected is None:
            continue
        values = np.array(expected["values"], dtype=float).reshape(len(expected["levels"]), -1)
        aligned = modes.loc[[str(v) for v in expected["levels"]]].to_numpy()
        assert np.abs(aligned - values).max() < 2e-3 * max(1e-3, np.abs(values).max())


@pytest.mark.parametrize("dataset", ["sleepstudy", "sim_acc", "sim_rt", "VerbAgg", "cbpp", "grouseticks"])
def test_likelihood_ratio_tests_are_lme4s(oracle: Oracle, dataset: str) -> None:
    description = oracle.description(dataset)
    for key, expected in description["likelihood_ratio_tests"].items():
        # The same two formulas may have been fitted by ML and by REML; the log-likelihoods say which are meant.
        pair = []
        for formula, loglik in zip(
            (expected["smaller"], expected["larger"]), expected["logLik"], strict=True
        ):
            same = [f for f in description["fits"] if f["formula"] == formula]
            pair.append(min(same, key=lambda f: abs(f["logLik"] - loglik))["id"])
        test = likelihood_ratio_test(*(oracle.fit(dataset, name).fitted for name in pair))
        assert test.statistic == pytest.approx(expected["chisq"], abs=2e-3), key
        assert test.df == expected["df"]
        assert test.p == pytest.approx(expected["p"], rel=2e-3, abs=1e-12)


def close(ours: Any, table: list[dict[str, Any]], linear: bool, monte_carlo: bool = False) -> None:
    """Compare a margins table with emmeans' row by row; its ``mvt`` is drawn at random."""
    tolerance = 1e-5 if linear else 2e-3
    assert len(ours) == len(table)
    for (_, row), expected in zip(ours.iterrows(), table, strict=True):
        name = next(
            k for k in ("estimate", "emmean", "prob", "odds.ratio", "response", "ratio") if k in expected
        )
        assert row["se"] == pytest.approx(expected["SE"], rel=1e-4 if linear else 2e-3)
        assert row["estimate"] == pytest.approx(expected[name], abs=tolerance * max(row["se"], 1e-3))
        assert row["p"] == pytest.approx(
            expected["p.value"], abs=2e-3 if monte_carlo else 1e-5 if linear else 1e-3
        )
        low, high = ("lower.CL", "upper.CL") if "lower.CL" in expected else ("asymp.LCL", "asymp.UCL")
        assert row["ci_low"] == pytest.approx(expected[low], abs=1e-2 * row["se"])
        assert row["ci_high"] == pytest.approx(expected[high], abs=1e-2 * row["se"])
        if expected.get("df") is not None:
            assert row["df"] == pytest.approx(expected["df"], rel=1e-3)


FACTORIAL = [
    ("sim_acc", "factor_coding_emmeans"),
    ("sim_tiny", "rt_factor_emmeans"),
]
ADJUSTMENTS = ["none", "bonferroni", "holm", "BH", "sidak", "tukey", "mvt"]


@pytest.mark.parametrize(("dataset", "name"), FACTORIAL)
def test_factorial_means_and_contrasts_are_emmeans(oracle: Oracle, dataset: str, name: str) -> None:
    found = oracle.fit(dataset, name)
    expected = found.expected["emmeans"]
    cells = margins(found.fitted, ["agent", "cond"])
    close(cells.table(), expected["link_means"], found.is_linear)
    marginal = margins(found.fitted, "cond")
    for adjust in ADJUSTMENTS:
        drawn = adjust == "mvt"
        close(
            cells.pairs("cond", adjust=adjust), expected["agent_within_cond"][adjust], found.is_linear, drawn
        )
        close(
            cells.pairs("agent", adjust=adjust),
            expected["cond_pairs_within_agent"][adjust],
            found.is_linear,
            drawn,
        )
        close(marginal.pairs(adjust=adjust), expected["cond_pairs_marginal"][adjust], found.is_linear, drawn)
        interaction = cells.interaction({"agent": "revpairwise", "cond": "treatment"}, adjust=adjust)
        close(interaction, expected["interaction_pairwise"][adjust], found.is_linear, drawn)
    if not found.is_linear:
        close(cells.table("response"), expected["response_means"], False)
        close(
            cells.pairs("cond", adjust="none", scale="ratio"), expected["odds_ratio_agent_within_cond"], False
        )


def test_means_average_over_other_factors_and_hold_covariates_at_their_mean(oracle: Oracle) -> None:
    found = oracle.fit("VerbAgg", "crossed")
    means = margins(found.fitted, "btype")
    close(means.table(), found.expected["emmeans"]["means"], False)
    close(means.pairs(adjust="tukey"), found.expected["emmeans"]["pairs_tukey"], False)
    close(means.pairs(adjust="holm"), found.expected["emmeans"]["pairs_holm"], False)


def test_means_of_a_count_model_are_emmeans_on_every_scale(oracle: Oracle) -> None:
    found = oracle.fit("cbpp", "period_laplace")
    expected = found.expected["emmeans"]
    means = margins(found.fitted, "period")
    close(means.table(), expected["means"], False)
    close(means.table("response"), expected["response"], False)
    close(means.pairs(adjust="tukey"), expected["pairs_tukey"], False)
    close(means.pairs(adjust="holm"), expected["pairs_holm"], False)
    close(means.pairs(adjust="tukey", scale="ratio"), expected["odds_ratio"], False)


def test_proportions_with_weights_give_the_fit_of_counts(oracle: Oracle) -> None:
    counts = oracle.fit("cbpp", "period_laplace").fitted
    proportions = fit(
        "incidence / size ~ period + (1 | herd)",
        oracle.data("cbpp"),
        "binomial",
        weights="size",
        levels={"period": ["1", "2", "3", "4"]},
    )
    assert proportions.loglik == pytest.approx(counts.loglik, abs=1e-8)
    assert proportions.fixed["estimate"].to_numpy() == pytest.approx(counts.fixed["estimate"].to_numpy())


def test_a_contrast_row_has_the_satterthwaite_df_of_its_coefficient(oracle: Oracle) -> None:
    found = oracle.fit("sleepstudy", "slopes_reml").fitted
    table = linear_contrasts(found, [[0.0, 1.0], [0.0, 3.0]], ["Days", "three days"])
    assert table["df"].to_numpy() == pytest.approx([17.0, 17.0], rel=1e-4)
    assert table["estimate"][1] == pytest.approx(3 * table["estimate"][0])
    assert table["p"][0] == pytest.approx(table["p"][1])


def test_kenward_roger_tables_are_pbkrtests(oracle: Oracle) -> None:
    for found, expected in those_with(oracle, "fixed_effects_kenward_roger"):
        ours = with_degrees(found.fitted, "kenward-roger").fixed
        for (_, row), (term, other) in zip(ours.iterrows(), expected.items(), strict=True):
            assert row["term"] == term
            assert row["se"] == pytest.approx(other["se"], rel=1e-4)
            assert row["df"] == pytest.approx(other["df"], rel=1e-3)
            assert row["statistic"] == pytest.approx(other["t"], rel=1e-4)
            assert row["p"] == pytest.approx(other["p"], abs=1e-5)


@pytest.mark.parametrize("method", ["satterthwaite", "kenward-roger"])
def test_type_three_tests_are_lmertests(oracle: Oracle, method: str) -> None:
    for found, expected in those_with(oracle, f"anova_type3_{method.replace('-', '_')}"):
        if found.expected["is_singular"]:  # compared on likelihood, fixed effects and flag only
            continue
        ours = anova(with_degrees(found.fitted, method))
        for (_, row), other in zip(ours.iterrows(), expected, strict=True):
            assert row["term"] == other["term"]
            assert row["numerator"] == other["NumDF"]
            assert row["denominator"] == pytest.approx(other["DenDF"], rel=1e-3)
            assert row["statistic"] == pytest.approx(other["F value"], rel=1e-4)
            assert row["p"] == pytest.approx(other["Pr(>F)"], abs=1e-5)


@pytest.mark.parametrize("dataset", ["sim_acc", "sim_rt", "sim_tiny"])
def test_joint_tests_are_emmeans(oracle: Oracle, dataset: str) -> None:
    name = "rt_factor_emmeans" if dataset == "sim_tiny" else "factor_coding_emmeans"
    found = oracle.fit(dataset, name)
    ours = anova(found.fitted)
    for (_, row), other in zip(ours.iterrows(), found.expected["emmeans"]["joint_tests"], strict=True):
        assert row["term"] == other["model term"]
        assert row["numerator"] == other["df1"]
        # emmeans rounds F to three digits.
        assert row["statistic"] == pytest.approx(other["F.ratio"], abs=6e-4 + 1e-3 * row["statistic"])
        # emmeans takes the smallest df of the rows, lmerTest (and we) pool them.
        assert row["p"] == pytest.approx(other["p.value"], abs=1e-4)


def test_profile_intervals_are_lme4s(oracle: Oracle) -> None:
    for found, expected in those_with(oracle, "profile_ci95"):
        ours = profile_intervals(found.fitted)
        assert list(ours["parameter"]) == expected["rows"]
        ends = np.array(expected["values"], dtype=float).reshape(-1, 2)
        se = (ends[:, 1] - ends[:, 0]) / (2 * 1.96)
        # The README advises 1e-2; lme4 interpolates, ours are solved for.
        assert (np.abs(ours[["ci_low", "ci_high"]].to_numpy() - ends) / se[:, None]).max() < 2e-3


def performance_is_wrong(found: OracleFit) -> bool:
    """Whether a fit meets a fault of performance 0.10.2: ``||`` taken for one term, slopes that are no fixed effects left out."""
    terms = {t for c in found.fitted.variance for t in c.terms}
    if len({c.group for c in found.fitted.variance}) != len(found.fitted.groups):
        return True
    return not terms <= set(found.fitted.fixed["term"]) and "situself" not in terms


def test_explained_variance_and_icc_are_performances(oracle: Oracle) -> None:
    compared = 0
    for found, expected in those_with(oracle, "r2_nakagawa"):
        if performance_is_wrong(found):
            continue
        ours, icc = r_squared(found.fitted), found.expected["icc"]
        tolerance = 1e-5 if found.is_linear else 1e-4
        assert ours.marginal == pytest.approx(expected["marginal"], abs=tolerance)
        assert ours.conditional == pytest.approx(expected["conditional"], abs=tolerance)
        assert ours.icc_adjusted == pytest.approx(icc["adjusted"], abs=tolerance)
        assert ours.icc_unadjusted == pytest.approx(icc["unadjusted"], abs=tolerance)
        compared += 1
    assert compared > len(CASES) // 2


def test_independent_slopes_explain_what_the_formula_says(oracle: Oracle) -> None:
    """performance says .415 for the marginal share; by hand it is near that of the correlated model, .279."""
    fitted = oracle.fit("sleepstudy", "uncorrelated_reml").fitted
    days = oracle.data("sleepstudy")["Days"].to_numpy(dtype=float)
    fixed = np.var(days * fitted.fixed["estimate"][1], ddof=1)
    intercept, slope = (c.cov[0, 0] for c in fitted.variance)
    if fitted.variance[0].terms == ("Days",):
        intercept, slope = slope, intercept
    random = intercept + slope * np.mean(days**2)
    ours = r_squared(fitted)
    total = fixed + random + fitted.sigma**2
    assert ours.marginal == pytest.approx(fixed / total, rel=1e-9)
    assert ours.conditional == pytest.approx((fixed + random) / total, rel=1e-9)
    assert ours.marginal == pytest.approx(0.28, abs=0.01)


def test_conditional_predictions_and_modes_belong_together(found: OracleFit) -> None:
    ours = predict(found.fitted, found.data)["estimate"].to_numpy()
    assert ours == pytest.approx(found.fitted.fitted, rel=1e-9, abs=1e-12)
    first = found.expected.get("fitted_first10")
    if first is not None and not found.expected["is_singular"]:
        assert ours[:10] == pytest.approx(first, abs=2e-4 * max(1.0, float(np.abs(ours).max())))
    modes = random_modes(found.fitted)
    assert len(modes) == sum(m.size for m in found.fitted.modes.values())
    assert (modes["sd"] >= 0).all()
