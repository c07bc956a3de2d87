"""Families of tests: adjusted p values, and intervals that agree with them.

Planned contrasts of a measure are adjusted by the largest of their correlated |t| (Hothorn, Bretz and Westfall, 2008), equivalence
tests by Bonferroni's method, exploratory tests by Benjamini and Hochberg's with the intervals of Benjamini and Yekutieli (2005). A
difference of several families has the wider of their intervals in all of them. A planned test that could not be made stays in its
family.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats

from analysis.mixed import equivalence_tests
from analysis.mixed.inference import DIRECTIONS, LargestT
from analysis.mixed.inference import corrected as by_p_alone
from analysis.plan import PLANNABLE, Plan
from analysis.readers import spoken
from analysis.results import Analysis, Contrast, Equivalence

Floats = NDArray[np.float64]
Place = tuple[int, int]
"""Of a contrast: which analysis, which of its contrasts."""

FEW_DIRECTIONS = 2**13
"""Directions of the largest |t| where many tests are made in a simulation: p to about .001."""
MANY_TESTS = 64
"""Families of more tests than this use a quarter of the directions."""


def across_analyses(analyses: Sequence[Analysis]) -> list[Analysis]:
    """Adjust the tests of all analyses of a report, families that span several of them included."""
    all_contrasts = adjusted([(analysis.plan, analysis.contrasts) for analysis in analyses], DIRECTIONS)
    all_remarks = _one_interval_each(analyses, all_contrasts)
    families = [family_of(analysis.plan, number) for number, analysis in enumerate(analyses)]
    tested = {
        family
        for family, contrasts in zip(families, all_contrasts, strict=True)
        if any(contrast.estimable for contrast in contrasts)
    }
    for family, contrasts, remarks in zip(families, all_contrasts, all_remarks, strict=True):
        if untested := _untested_in_words(contrasts):
            counted = " Each still counts as a test when p values are adjusted." if family in tested else ""
            remarks.insert(0, f"Planned but not estimable: {untested}.{counted}")
    return [
        replace(
            analysis,
            contrasts=tuple(contrasts),
            remarks=(*analysis.remarks, *remarks),
            companion=_adjusted_alike(analysis.companion, contrasts),
        )
        for analysis, contrasts, remarks in zip(analyses, all_contrasts, all_remarks, strict=True)
    ]


def _untested_in_words(contrasts: Iterable[Contrast]) -> str:
    """State which planned differences are not in the model, in which readers, and why; empty where all are."""
    by_why: dict[str, dict[str, list[str]]] = {}
    for contrast in contrasts:
        if contrast.left_out:
            readers = " vs. ".join(spoken(group) for group in contrast.groups)
            by_why.setdefault(contrast.left_out, {}).setdefault(readers, []).append(contrast.label)
    parts = []
    for reason, by_reader in by_why.items():
        labels = list(dict.fromkeys(label for names in by_reader.values() for label in names))
        parts.append(f"{', '.join(labels)} for {', and for '.join(by_reader)} ({reason})")
    return "; ".join(parts)


def _adjusted_alike(companion: Analysis | None, contrasts: Sequence[Contrast]) -> Analysis | None:
    """Return the mixed model that checks contrasts with intervals adjusted as theirs, and without p values of its own."""
    if companion is None:
        return None
    checked = {(contrast.label, contrast.groups): contrast for contrast in contrasts}
    checking = []
    for contrast in companion.contrasts:
        of = checked.get((contrast.label, contrast.groups))
        if contrast.estimable and of is not None and of.estimable:
            ends = replace(of, furthest=contrast.furthest)
            low, high = ends.ends_around(contrast.estimate, contrast.se, contrast.df)
            contrast = replace(contrast, p_adjusted=float("nan"), low=low, high=high)
        checking.append(contrast)
    return replace(companion, contrasts=tuple(checking))


def _one_interval_each(analyses: Sequence[Analysis], all_contrasts: list[list[Contrast]]) -> list[list[str]]:
    """Give a difference the widest interval of its families, with its p, in all of them; return remarks of each analysis."""
    tests: dict[Hashable, list[Place]] = {}
    for number, analysis in enumerate(analyses):
        plan = analysis.plan
        of_trials = (plan.measure, plan.factor, plan.trials, plan.within, repr(plan.exclude), plan.alpha)
        for index, contrast in enumerate(all_contrasts[number]):
            if plan.planned and contrast.estimable:
                # sums over readers in another order differ in their last digits
                numbers = (round(contrast.estimate, 9), round(contrast.se, 9))
                key = (*of_trials, *numbers, contrast.label, contrast.groups, contrast.direction)
                tests.setdefault(key, []).append((number, index))
    labels: list[dict[str, dict[str, None]]] = [{} for _ in analyses]
    for positions in tests.values():
        number, index = max(positions, key=lambda position: all_contrasts[position[0]][position[1]].reach)
        widest, name = all_contrasts[number][index], family_name(analyses[number].plan)
        bounded = [
            test
            for n, test_index in positions
            if (test := all_contrasts[n][test_index].equivalence) is not None
        ]
        for number, index in positions:
            contrast = all_contrasts[number][index]
            if family_name(analyses[number].plan) != name and contrast.reach < widest.reach:
                adjusted_in = ("p_adjusted", "low", "high", "reach", "family", "correction")
                contrast = replace(
                    contrast, **{field: getattr(widest, field) for field in adjusted_in}, elsewhere=name
                )
                labels[number].setdefault(name, {})[contrast.label] = None
            if (test := contrast.equivalence) is not None:
                same_width = [other for other in bounded if other.half_width == test.half_width]
                contrast = replace(contrast, equivalence=max(same_width, key=lambda other: other.family))
            all_contrasts[number][index] = contrast
    explanation = "The p value and interval are from that adjustment, whose interval is wider."
    return [
        [
            f"Also among the planned tests of {name}: {', '.join(contrast_labels)}. {explanation}"
            for name, contrast_labels in by_family.items()
        ]
        for by_family in labels
    ]


def adjusted(
    tested: Sequence[tuple[Plan, Sequence[Contrast]]], directions: int = FEW_DIRECTIONS
) -> list[list[Contrast]]:
    """Return the contrasts of each analysis with adjusted p values and their intervals."""
    all_contrasts = [list(contrasts) for _, contrasts in tested]
    families: dict[Hashable, list[Place]] = {}
    equivalences: dict[Hashable, list[Place]] = {}
    for number, (plan, contrasts) in enumerate(tested):
        for index, contrast in enumerate(contrasts):
            name = family_of(plan, number)
            families.setdefault(name, []).append((number, index))
            if contrast.equivalence is not None or (contrast.between and plan.equivalence is not None):
                equivalences.setdefault(name, []).append((number, index))
    for positions in families.values():
        members = [all_contrasts[number][index] for number, index in positions]
        alphas = [tested[number][0].alpha for number, _ in positions]
        planned = tested[positions[0][0]][0].planned
        family = by_largest_t(members, alphas, directions) if planned else by_false_discovery(members, alphas)
        for (number, index), adjusted_contrast in zip(positions, family, strict=True):
            all_contrasts[number][index] = adjusted_contrast
    for positions in equivalences.values():
        for number, index in positions:
            all_contrasts[number][index] = _equivalent(
                all_contrasts[number][index], tested[number][0].alpha, len(positions)
            )
    return all_contrasts


def family_of(plan: Plan, number: int = 0) -> tuple[object, ...]:
    """Name the family to which the tests of an analysis belong; ``number`` keeps exploratory ones apart."""
    if not plan.planned:
        return ("exploratory", number)
    return ("named", plan.family) if plan.family else ("measure", plan.measure.kind)


def family_name(plan: Plan) -> str:
    """Name the family of a planned analysis in a sentence: ``the family reading``, ``accuracy``."""
    return f"the family {plan.family}" if plan.family else PLANNABLE.get(plan.measure.kind, plan.measure).noun


def _equivalent(contrast: Contrast, alpha: float, n_tests: int) -> Contrast:
    """Correct an equivalence test for ``n_tests``: p by Bonferroni's method, and the interval that agrees with it."""
    test = contrast.equivalence
    if test is None:
        return contrast
    corrected = two_one_sided(test.estimate, test.se, test.df, test.half_width, alpha / n_tests)
    p = min(1.0, n_tests * test.p)
    return replace(
        contrast, equivalence=replace(corrected, p_adjusted=p, family=n_tests, equivalent=p < alpha)
    )


def two_one_sided(
    estimate: float, se: float, df: float | None, half_width: float, alpha: float
) -> Equivalence:
    """Test a difference between readers for lying within a bound on its scale (points, log ratio or the measure's unit)."""
    table = pd.DataFrame({"estimate": [estimate], "se": [se], "df": [np.nan if df is None else df]})
    row = equivalence_tests(table, half_width, alpha=alpha).iloc[0]
    p, low, high, statistic = (float(row[name]) for name in ("p", "ci_low", "ci_high", "statistic"))
    return Equivalence(
        estimate, se, half_width, statistic, df, p, p, 1, low, high, 1 - 2 * alpha, bool(p < alpha)
    )


def by_largest_t(
    family: Sequence[Contrast], alphas: Sequence[float], directions: int = DIRECTIONS
) -> list[Contrast]:
    """Return one family adjusted by the largest |t|: each t is mapped to the largest df (a t copula); no p exceeds Bonferroni's."""
    correction = "the largest t" if all(contrast.side for contrast in family) else "the largest |t|"
    family = [replace(contrast, family=len(family), correction=correction) for contrast in family]
    estimable = [contrast for contrast in family if contrast.estimable]
    if not estimable:
        return [replace(contrast, p_adjusted=float("nan")) for contrast in family]
    df, joint = max(_df(contrast) for contrast in estimable), None
    tails = sum(1 if contrast.side else 2 for contrast in family)
    if len(family) > 1:
        directions = directions if len(family) <= MANY_TESTS else directions // 4
        sides = np.array([contrast.side for contrast in family], dtype=np.int64)
        joint = LargestT(correlations(family), directions, sides=sides)
    limits = dict.fromkeys(alphas, 0.0)
    for alpha in limits:
        shared = 0.0 if joint is None else float(stats.t.sf(joint.isf(alpha, df), df))
        limits[alpha] = max(alpha / tails, shared)
    results = []
    for contrast, alpha in zip(family, alphas, strict=True):
        tail = float(
            stats.t.sf(
                contrast.side * contrast.statistic if contrast.side else abs(contrast.statistic),
                _df(contrast),
            )
        )
        p = min(1.0, tails * tail)
        if joint is not None:
            p = min(p, joint.sf(float(stats.t.isf(tail, df)), df))
        results.append(_with_interval(contrast, p, float(stats.t.isf(limits[alpha], _df(contrast)))))
    return results


def _df(contrast: Contrast) -> float:
    return float("inf") if contrast.df is None else contrast.df


def _with_interval(contrast: Contrast, p: float, reach: float) -> Contrast:
    """Return a contrast with its adjusted p and the interval of this reach; without, where it is not estimable."""
    if not contrast.estimable:
        return replace(contrast, p_adjusted=float("nan"))
    reaching = replace(contrast, p_adjusted=p, reach=reach)
    low, high = reaching.ends_around(contrast.estimate, contrast.se, contrast.df)
    return replace(reaching, low=low, high=high)


def by_false_discovery(family: Sequence[Contrast], alphas: Sequence[float]) -> list[Contrast]:
    """Return an exploratory family corrected for false discoveries, its intervals with the levels of :func:`interval_levels`."""
    p = np.array([contrast.p if contrast.estimable else 1.0 for contrast in family])
    q = by_p_alone(p, "BH")
    results = []
    for index, (contrast, alpha) in enumerate(zip(family, alphas, strict=True)):
        tail = 1 - float(interval_levels(q, alpha)[index])
        reach = float(stats.t.isf(tail if contrast.side else tail / 2, _df(contrast)))
        in_family = replace(contrast, family=len(family), correction="Benjamini and Hochberg's method")
        results.append(_with_interval(in_family, float(q[index]), reach))
    return results


def interval_levels(p_adjusted: Floats, alpha: float = 0.05) -> Floats:
    """Return levels of intervals that agree with adjusted p: 1 - R alpha / m for R significant of m (Benjamini & Yekutieli, 2005)."""
    n_tests = max(1, len(p_adjusted))
    significant = p_adjusted < alpha
    n_significant = int(significant.sum())
    return np.where(
        significant,
        1 - n_significant * alpha / n_tests,
        1 - min(n_significant + 1, n_tests) * alpha / n_tests,
    )


def correlations(family: Sequence[Contrast]) -> Floats:
    """Return how the estimates of a family correlate, shape (r, r); of different models they count as independent."""
    cov = np.zeros((len(family), len(family)))
    models: dict[int, list[int]] = {}
    crossed: dict[tuple[int, int], list[int]] = {}
    for index, contrast in enumerate(family):
        if contrast.estimable and contrast.crossed is not None:
            layout = contrast.crossed.sums.layout
            crossed.setdefault((len(layout.participants), len(layout.items)), []).append(index)
        elif contrast.estimable and contrast.vcov is not None:
            models.setdefault(id(contrast.vcov), []).append(index)
    for indices in models.values():
        weights = np.array([family[index].weights for index in indices])
        cov[np.ix_(indices, indices)] = weights @ family[indices[0]].vcov @ weights.T
    for indices in crossed.values():
        cov[np.ix_(indices, indices)] = _shared([family[index] for index in indices])
    has_variance = np.diag(cov) > 0
    cov[~has_variance] = cov[:, ~has_variance] = 0.0
    cov[~has_variance, ~has_variance] = 1.0
    values, vectors = np.linalg.eigh(_rescaled(cov))
    return _rescaled((vectors * np.clip(values, 0.0, None)) @ vectors.T)


def _rescaled(cov: Floats) -> Floats:
    sd = np.sqrt(np.diag(cov))
    return np.asarray(cov / np.outer(sd, sd))


def _shared(contrasts: Sequence[Contrast]) -> Floats:
    """Return the covariances of estimates of shares: what participants and items add to both, less what answers do."""
    participants, items, answers = [], [], []
    for contrast in contrasts:
        assert contrast.crossed is not None
        sums = contrast.crossed.sums
        w = np.array([contrast.crossed.weights.get(name, 0.0) for name in sums.layout.conditions])
        as_sample = 0.0 if contrast.crossed.to in ("participants", "these answers") else 1.0
        participants.append(sums.participants @ w)
        items.append(as_sample * (sums.items @ w))
        answers.append(as_sample * (sums.answers @ sparse.csr_array(w[:, None])))
    p, i = np.array(participants), np.array(items)
    u = sparse.hstack(answers, format="csc")
    return np.asarray(p @ p.T + i @ i.T - (u.T @ u).toarray())


def with_adjusted(table: pd.DataFrame, low: str = "", high: str = "") -> pd.DataFrame:
    """Add ``p_adjusted`` by Benjamini and Hochberg over the rows that have a p."""
    has_p = table["p"].notna().to_numpy()
    adjusted = np.full(len(table), np.nan)
    if has_p.any():
        adjusted[has_p] = by_p_alone(table.loc[has_p, "p"].to_numpy(dtype=float), "BH")
    table = table.assign(p_adjusted=adjusted)
    if low and has_p.any():
        rows = table[has_p]
        df = rows["df"].fillna(np.inf).to_numpy(dtype=float) if "df" in rows else np.inf
        reach = stats.t.isf((1 - interval_levels(adjusted[has_p])) / 2, df) * rows["se"]
        table.loc[has_p, low] = rows["estimate"] - reach
        table.loc[has_p, high] = rows["estimate"] + reach
    return table
