"""Properties of inference for which there is no reference: identities, edges, refusals, reproducibility."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from analysis.mixed import (
    Fit,
    anova,
    bootstrap,
    equivalence_tests,
    fit,
    kenward_roger,
    likelihood_ratio_test,
    linear_contrasts,
    margins,
    predict,
    profile_intervals,
    r_squared,
    random_modes,
    simulate,
    trends,
    with_degrees,
)
from analysis.mixed.inference import LargestT
from analysis.mixed.intervals import parameters_of, pinned
from stimuli.errors import UserError
from tests.analysis.mixed.conftest import Simulate

LINEAR = "rt ~ cond * agent + (1 + log.freq | participant) + (1 | item)"


@pytest.fixture(scope="module")
def data(crossed: Simulate) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    made = crossed(seed=12, participants=16, items=12, spread=0.9)
    made["log.freq"] = made["log.freq"] - 3.0
    slopes = dict(zip(made["participant"].unique(), rng.normal(0, 0.3, 16), strict=True))
    made["rt"] += made["participant"].map(slopes) * made["log.freq"]
    made["seconds"] = np.exp(made["rt"] - 6.0)
    made["pace"] = rng.wald(made["seconds"], 4.0)
    made["many"] = rng.negative_binomial(2, 0.3, len(made))
    return made[rng.random(len(made)) < 0.9].reset_index(drop=True)


@pytest.fixture(scope="module")
def linear(data: pd.DataFrame) -> Fit:
    return fit(LINEAR, data, weights="trials")


@pytest.fixture(scope="module")
def logistic(data: pd.DataFrame) -> Fit:
    return fit("correct ~ cond * agent + log.freq + (1 | participant) + (1 | item)", data, "binomial")


@pytest.mark.parametrize(("count", "df"), [(3, 4.0), (5, 40.0), (8, np.inf)])
def test_the_joint_distribution_is_tukeys_where_tukeys_is_exact(count: int, df: float) -> None:
    first, second = np.triu_indices(count, 1)
    pairs = np.eye(count)[first] - np.eye(count)[second]
    largest = LargestT(pairs @ pairs.T / 2.0)
    for t in (1.0, 2.0, 3.0, 4.5):
        exact = stats.studentized_range.sf(t * np.sqrt(2.0), count, df)
        assert largest.sf(t, df) == pytest.approx(exact, abs=5e-4)
    exact = stats.studentized_range.isf(0.05, count, df) / np.sqrt(2.0)
    assert largest.isf(0.05, df) == pytest.approx(exact, abs=5e-3)


def test_an_adjustment_that_does_not_apply_is_replaced_and_said(logistic: Fit) -> None:
    cells = margins(logistic, ["cond", "agent"])
    interaction = cells.interaction({"cond": "pairwise", "agent": "pairwise"}, adjust="tukey")
    plain = cells.interaction({"cond": "pairwise", "agent": "pairwise"}, adjust="sidak")
    assert interaction["p"].tolist() == plain["p"].tolist()
    assert re.match("sidak .*tukey", interaction.attrs["adjustment"])
    assert re.match("sidak .*dunnett", cells.pairs("agent", adjust="dunnett").attrs["adjustment"])
    single = cells.pairs("cond", adjust="tukey")
    assert single.attrs["adjustment"] == "none"
    assert single["p"].tolist() == cells.pairs("cond", adjust="none")["p"].tolist()
    assert cells.pairs("agent", adjust="tukey").attrs["adjustment"] == "tukey"


def test_kenward_rogers_sums_over_levels_are_the_matrix_formula(linear: Fit) -> None:
    """With prior weights, which pbkrtest leaves out, against rows-by-rows algebra."""
    matrices, frame = linear.model.matrices, linear.model.frame
    x = matrices.x
    pieces = []
    for term in matrices.covariance.terms:
        effect = matrices.effects[term.factor]
        z = np.zeros((len(x), effect.n_levels, term.width))
        z[np.arange(len(x)), effect.codes] = effect.columns[:, term.at : term.at + term.width]
        for i in range(term.width):
            for j in range(i + 1):
                product = z[:, :, i] @ z[:, :, j].T
                pieces.append(product if i == j else product + product.T)
    pieces.append(np.diag(1.0 / frame.weights))
    v = linear.sigma**2 * np.diag(1.0 / frame.weights)
    for term in matrices.covariance.terms:
        effect = matrices.effects[term.factor]
        columns = effect.columns[:, term.at : term.at + term.width] @ term.template(linear.theta)
        same = effect.codes[:, None] == effect.codes
        v += linear.sigma**2 * same * (columns @ columns.T)
    inverse = np.linalg.inv(v)
    phi = np.linalg.inv(x.T @ inverse @ x)
    assert linear.vcov.to_numpy() == pytest.approx(phi, rel=1e-6, abs=1e-12)
    d = len(pieces)
    p = [-x.T @ inverse @ g @ inverse @ x for g in pieces]
    q = [[x.T @ inverse @ g @ inverse @ h @ inverse @ x for h in pieces] for g in pieces]
    half = [inverse @ g for g in pieces]
    information = np.array(
        [
            [
                np.sum(half[r] * half[s].T)
                - 2 * np.sum(phi * q[r][s])
                + np.sum((phi @ p[r]) * (phi @ p[s]).T)
                for s in range(d)
            ]
            for r in range(d)
        ]
    )
    w = 2 * np.linalg.inv(information)
    u = sum(w[r, s] * (q[r][s] - p[r] @ phi @ p[s]) for r in range(d) for s in range(d))
    ours = kenward_roger(linear)
    size = np.sqrt(np.diag(phi))
    assert np.abs((ours.vcov - (phi + 2 * phi @ u @ phi)) / np.outer(size, size)).max() < 1e-6


def test_kenward_roger_is_refused_where_it_is_not_defined(data: pd.DataFrame, logistic: Fit) -> None:
    with pytest.raises(UserError, match=r"Kenward-Roger.* ML\b"):
        kenward_roger(fit("rt ~ cond + (1 | item)", data, reml=False))
    with pytest.raises(UserError, match=r"Kenward-Roger.*binomial"):
        with_degrees(logistic, "kenward-roger")
    with pytest.raises(UserError, match=r"Satterthwaite.*binomial"):
        with_degrees(logistic, "satterthwaite")


def test_degrees_of_freedom_asked_for_reach_every_table(linear: Fit) -> None:
    adjusted, plain = with_degrees(linear, "kenward-roger"), with_degrees(linear, "none")
    assert (adjusted.fixed["se"] >= linear.fixed["se"] * (1 - 1e-9)).all()
    assert margins(adjusted, "cond").table()["se"].to_numpy() == pytest.approx(
        linear_contrasts(adjusted, margins(linear, "cond").matrix)["se"].to_numpy()
    )
    assert plain.fixed["df"].isna().all()
    assert plain.fixed["p"].to_numpy() == pytest.approx(2 * stats.norm.sf(np.abs(plain.fixed["statistic"])))
    assert np.isinf(anova(plain)["denominator"]).all()
    assert "Kenward-Roger" in adjusted.summary()
    with pytest.raises(UserError, match="Kenward-Roger"):
        with_degrees(adjusted, "satterthwaite")


def test_a_new_variance_is_tested_by_the_mixture_that_it_has(data: pd.DataFrame) -> None:
    base, item = (fit(f"rt ~ cond + (1 | participant){more}", data) for more in ("", " + (1 | item)"))
    slope = fit("rt ~ cond + (1 + log.freq | participant)", data)
    loose = fit("rt ~ cond + (1 + log.freq || participant)", data)
    one = likelihood_ratio_test(base, item)
    assert (one.mixture, one.df) == ((0, 1), 1)
    assert one.p_boundary == one.p / 2
    two = likelihood_ratio_test(base, slope)
    assert two.mixture == (1, 2)
    expected = (stats.chi2.sf(two.statistic, 1) + stats.chi2.sf(two.statistic, 2)) / 2
    assert two.p_boundary == pytest.approx(expected)
    assert re.search(r"chi-squared\(1\).*chi-squared\(2\)", two.sentence())
    correlation = likelihood_ratio_test(loose, slope)
    assert (correlation.boundary, correlation.p_boundary) == (False, None)
    both = likelihood_ratio_test(base, fit("rt ~ cond + (1 + log.freq | participant) + (1 | item)", data))
    assert both.boundary
    assert both.mixture is None
    assert "conservative" in both.sentence()


@pytest.mark.parametrize(
    ("formula", "family", "link", "names"),
    [
        (LINEAR, "gaussian", None, ["sigma", "cor_log.freq.(Intercept)|participant", "agentmodel"]),
        ("seconds ~ cond + (1 | participant)", "Gamma", "log", ["sigma", "sd_(Intercept)|participant"]),
        ("many ~ cond + (1 | participant)", "negative.binomial", None, ["theta", "(Intercept)"]),
        ("pmin(many, 3) ~ cond + agent + (1 | participant)", "ordinal", None, ["condinternal", "agentmodel"]),
        ("seconds ~ cond + (1 | participant)", "shifted_lognormal", None, ["condinternal"]),
    ],
)
def test_a_profile_ends_where_the_deviance_has_risen_by_the_quantile(
    data: pd.DataFrame, formula: str, family: str, link: str | None, names: list[str]
) -> None:
    found = fit(formula, data, family, link, reml=False)
    table = profile_intervals(found, names, level=0.9)
    assert list(table["parameter"]) == names
    for row in table.itertuples():
        assert row.ci_low < row.estimate < row.ci_high
        parameter = next(p for p in parameters_of(found) if p.name == row.parameter)
        for end in (row.ci_low, row.ci_high, row.estimate):
            objective, start = pinned(found, parameter, end, None)
            lowest = optimize.minimize(objective, start, jac=True, method="BFGS").fun - found.deviance
            if end == row.estimate:
                assert lowest == pytest.approx(0.0, abs=1e-4)
            elif end in (0.0, -1.0, 1.0):
                assert lowest < stats.chi2.ppf(0.9, 1)
            else:
                assert lowest == pytest.approx(stats.chi2.ppf(0.9, 1), abs=1e-3)


def test_a_profile_that_reaches_the_edge_ends_there(data: pd.DataFrame) -> None:
    calm = data.assign(rt=np.random.default_rng(1).normal(size=len(data)))
    found = fit("rt ~ cond + (1 + log.freq | participant)", calm)
    table = profile_intervals(found).set_index("parameter")
    assert table.loc["sd_log.freq|participant", "ci_low"] == 0.0
    cor = table.loc["cor_log.freq.(Intercept)|participant"]
    assert (cor["ci_low"], cor["ci_high"]) == (-1.0, 1.0)
    assert table["ci_high"].notna().all()


def test_a_profile_refuses_what_is_no_likelihood_and_unknown_names(data: pd.DataFrame, logistic: Fit) -> None:
    penalised = fit("correct ~ cond + (1 | item)", data, "binomial", penalty="normal")
    with pytest.raises(UserError, match=re.escape(penalised.method)):
        profile_intervals(penalised)
    with pytest.raises(UserError, match="parameter 'agentmodle'"):
        profile_intervals(logistic, ["agentmodle"])


FAMILIES = {
    "gaussian": ("rt ~ cond + (1 | participant)", None),
    "binomial": ("cbind(hits, trials - hits) ~ cond + (1 | participant)", None),
    "poisson": ("errors ~ cond + (1 | participant)", None),
    "negative.binomial": ("many ~ cond + (1 | participant)", None),
    "Gamma": ("seconds ~ cond + (1 | participant)", "log"),
    "inverse.gaussian": ("pace ~ cond + (1 | participant)", "log"),
}


@pytest.mark.parametrize("family", list(FAMILIES))
def test_responses_drawn_have_the_fits_means_and_residual_spread(data: pd.DataFrame, family: str) -> None:
    formula, link = FAMILIES[family]
    found = fit(formula, data, family, link)
    drawn = simulate(found, 400, seed=2, conditional=True)
    assert drawn.shape == (found.nobs, 400)
    spread = drawn.std(axis=1, ddof=1)
    assert np.abs((drawn.mean(axis=1) - found.fitted) / (spread / 20.0)).mean() == pytest.approx(0.8, abs=0.1)
    d = found.dispersion if found.dispersion is not None else 1.0
    phi = found.sigma**2 if family in {"gaussian", "Gamma", "inverse.gaussian"} else 1.0
    expected = phi * found.model.family.variance(found.fitted, d) / found.model.frame.weights
    if family == "poisson":
        expected = found.fitted
    assert np.mean(spread**2) == pytest.approx(np.mean(expected), rel=0.1)
    assert (simulate(found, 2, seed=2, conditional=True)[:, 0] == drawn[:, 0]).all()
    assert not (simulate(found, 1, seed=3)[:, 0] == drawn[:, 0]).all()


def test_new_random_effects_are_drawn_with_the_fits_covariance(linear: Fit) -> None:
    drawn = simulate(linear, 600, seed=1)
    fixed = linear.model.matrices.x @ linear.fixed["estimate"].to_numpy()
    observed = np.mean((drawn - fixed[:, None]) ** 2)
    found = r_squared(linear)
    expected = found.random + linear.sigma**2 * np.mean(1.0 / linear.model.frame.weights)
    assert observed == pytest.approx(expected, rel=0.05)


def test_a_bootstrap_repeats_itself_and_agrees_with_the_profile(data: pd.DataFrame) -> None:
    found = fit("rt ~ cond + (1 | participant)", data, reml=False)
    drawn = bootstrap(found, 100, seed="one")
    again = bootstrap(found, 10, seed="one")
    assert (again.replicates == drawn.replicates[:10]).all()
    assert list(drawn.names) == list(profile_intervals(found)["parameter"])
    ours, profile = drawn.intervals(kind="normal"), profile_intervals(found)
    width = (profile["ci_high"] - profile["ci_low"]).to_numpy()
    assert (np.abs(ours["ci_low"] - profile["ci_low"]) / width).max() < 0.25
    assert (np.abs(ours["ci_high"] - profile["ci_high"]) / width).max() < 0.25
    assert "100 refits" in drawn.sentence()
    odds = bootstrap(found, 25, statistic=lambda f: [f.sigma**2], names=["variance"])
    assert odds.intervals()["parameter"].tolist() == ["variance"]


def test_errors_of_predictions_solve_hendersons_equations(linear: Fit) -> None:
    matrices, w = linear.model.matrices, linear.model.frame.weights
    n = linear.nobs
    columns, precision = [matrices.x], [np.zeros((matrices.x.shape[1],) * 2)]
    for effect, lam in zip(matrices.effects, matrices.covariance.lambdas(linear.theta), strict=True):
        z = np.zeros((n, effect.n_levels, effect.width))
        z[np.arange(n), effect.codes] = effect.columns
        columns.append(z.reshape(n, -1))
        precision.append(np.kron(np.eye(effect.n_levels), np.linalg.inv(lam @ lam.T)))
    whole = np.hstack(columns)
    left = whole.T @ (w[:, None] * whole)
    at = 0
    for block in precision:
        left[at : at + len(block), at : at + len(block)] += block
        at += len(block)
    variance = linear.sigma**2 * np.einsum("ni,ij,nj->n", whole, np.linalg.inv(left), whole)
    ours = predict(linear, se=True)
    assert ours["se"].to_numpy() == pytest.approx(np.sqrt(variance), rel=1e-6)
    assert predict(linear, se=True, random=False)["se"].to_numpy() == pytest.approx(
        np.sqrt(np.einsum("ni,ij,nj->n", matrices.x, linear.vcov.to_numpy(), matrices.x)), rel=1e-9
    )
    spread = random_modes(linear)
    total = np.concatenate([c.sd**2 for c in linear.variance]).sum()
    assert (spread["sd"] ** 2).max() < total


def test_a_level_not_seen_is_refused_or_carries_its_whole_variance(data: pd.DataFrame, logistic: Fit) -> None:
    new = data.head(2).assign(participant="nobody")
    with pytest.raises(UserError, match="'nobody' of participant"):
        predict(logistic, new)
    ours = predict(logistic, new, scale="link", se=True, new_levels="population")
    known = predict(logistic, data.head(2), scale="link", se=True)
    variance = next(c for c in logistic.variance if c.group == "participant").cov[0, 0]
    assert (ours["se"] > np.sqrt(variance)).all()
    assert (ours["se"] > known["se"]).all()
    response = predict(logistic, new, se=True, new_levels="population")
    assert ((response["ci_low"] > 0) & (response["ci_high"] < 1)).all()


def test_predictions_keep_missing_rows_and_take_the_offset(data: pd.DataFrame) -> None:
    found = fit("errors ~ cond + (1 | participant)", data, "poisson", offset="log(trials)")
    gappy = data.head(4).copy()
    gappy.loc[1, "cond"] = np.nan
    ours = predict(found, gappy)["estimate"]
    assert ours.isna().tolist() == [False, True, False, False]
    assert ours[0] == pytest.approx(found.fitted[0])
    twice = predict(found, data.head(1).assign(trials=lambda d: 2 * d["trials"]))["estimate"]
    assert twice.iloc[0] == pytest.approx(2 * found.fitted[0])
    with pytest.raises(UserError, match="trials"):
        predict(found, data.drop(columns="trials"))
    numbers = fit("errors ~ cond + (1 | item)", data, "poisson", offset=np.zeros(len(data)))
    with pytest.raises(UserError, match="offset"):
        predict(numbers, data)


def test_equivalence_is_shown_when_the_ninety_percent_interval_lies_inside(logistic: Fit) -> None:
    pairs = margins(logistic, "cond").pairs(adjust="none")
    for bound in (0.2, 0.8, 3.0):
        tested = equivalence_tests(pairs, bound)
        inside = (tested["ci_low"] > -bound) & (tested["ci_high"] < bound)
        assert tested["equivalent"].tolist() == inside.tolist() == (tested["p"] < 0.05).tolist()
    ratios = equivalence_tests(margins(logistic, "cond").pairs(adjust="none", scale="ratio"), np.exp(0.8))
    assert ratios["p"].to_numpy() == pytest.approx(equivalence_tests(pairs, 0.8)["p"].to_numpy())
    assert ratios["ci_low"].to_numpy() == pytest.approx(
        np.exp(equivalence_tests(pairs, 0.8)["ci_low"].to_numpy())
    )
    one_sided = equivalence_tests(pairs, (-3.0, 0.5))
    assert one_sided[["lower", "upper"]].iloc[0].tolist() == [-3.0, 0.5]
    holm = equivalence_tests(pairs, 0.8, adjust="holm")
    assert (holm["p"] >= equivalence_tests(pairs, 0.8)["p"]).all()
    for wrong in (0.0, -1.0, (0.1, 0.5), float("nan")):
        with pytest.raises(UserError, match="equivalence bound"):
            equivalence_tests(pairs, wrong)


def test_slopes_on_the_response_scale_are_derivatives_of_the_mean(data: pd.DataFrame) -> None:
    found = fit("correct ~ cond * log.freq + (1 | participant)", data, "binomial")
    ours = trends(found, "log.freq", "cond", at={"log.freq": 0.4}).table("response")
    for row in ours.itertuples():
        ends = [
            margins(found, "cond", at={"log.freq": x, "cond": [row.cond]}).table("response")["estimate"][0]
            for x in (0.3999, 0.4001)
        ]
        assert row.estimate == pytest.approx((ends[1] - ends[0]) / 2e-4, rel=1e-5)
    straight = trends(found, "log.freq", "cond").table()
    assert straight["estimate"][0] == pytest.approx(found.fixed.set_index("term").loc["log.freq", "estimate"])
    with pytest.raises(UserError, match="'cond'"):
        trends(found, "cond")


@pytest.mark.parametrize("method", ["satterthwaite", "kenward-roger", "none"])
def test_an_interval_ends_where_p_is_a_twentieth(data: pd.DataFrame, method: str) -> None:
    found = with_degrees(fit(LINEAR, data), method)
    for table in (found.fixed, margins(found, ["cond"]).pairs(adjust="none")):
        df = table["df"].fillna(np.inf)
        for end in ("ci_low", "ci_high"):
            distance = np.abs(table[end] - table["estimate"]) / table["se"]
            assert 2.0 * stats.t.sf(distance, df) == pytest.approx(0.05)
        assert (table["p"] < 0.05).equals(table["ci_low"] * table["ci_high"] > 0)


def test_an_offset_given_as_numbers_counts_by_its_mean(data: pd.DataFrame) -> None:
    named = fit("rt ~ cond + (1 | participant)", data, offset="log.freq")
    given = fit("rt ~ cond + (1 | participant)", data, offset=data["log.freq"])
    one, other = (margins(found, "cond").table()["estimate"].to_numpy() for found in (named, given))
    assert one == pytest.approx(other, abs=1e-9)


def test_grids_that_cannot_be_laid_out_are_refused(data: pd.DataFrame) -> None:
    found = fit("rt ~ cond + log.freq + (1 | participant)", data)
    for factors, at, says in (
        (["cond", "cond"], {}, "'cond' is named twice"),
        ("cond", {"log.freq": "two"}, "log.freq is a covariate"),
        ("cond", {"cond": "finale"}, "level of cond 'finale'"),
    ):
        with pytest.raises(UserError, match=says):
            margins(found, factors, at)  # type: ignore[arg-type]
