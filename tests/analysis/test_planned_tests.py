"""What a plan states is what is tested: directions, bounds, families, models of one's own, exclusions, departures."""

from __future__ import annotations

import re
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import Tables, load
from analysis.contrasts import one_sided
from analysis.frames import check_own_formula
from analysis.multiple_comparisons import by_largest_t, two_one_sided
from analysis.plan import MEASURES, PLANNABLE, PlanFault, read_bound
from analysis.plan_deviations import standing_of, with_bounds_fixed_beforehand
from analysis.plan_runner import carry_out
from analysis.planned import plans
from analysis.report.content import gather
from analysis.report.method import method_parts
from analysis.report.results import adjusted_by
from analysis.results import Analysis, Contrast
from stimuli.errors import UserError
from tests.analysis.conftest import Make, planned_analyses
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

PAIR = ["initial - internal", "final - internal"]


def rows_with_quantities() -> pd.DataFrame:
    rows = study_rows(human=8, models=("restorer", "second"), items=16)
    draw, machine = np.random.default_rng(5), rows["reader_kind"] == "model"
    cost = rows["position"].map({"intact": 0.0, "initial": 4.0, "internal": 2.0, "final": 3.0}).fillna(0.0)
    rows["surprisal"] = np.where(machine, 30 + cost + draw.normal(0, 1, len(rows)), np.nan)
    tokens = np.round(np.exp(4 + cost / 20 + draw.normal(0, 0.1, len(rows))))
    rows["completion_tokens"] = np.where(machine, tokens, np.nan)
    return rows


def carried(
    handover: Make,
    planned: dict[str, dict[str, Any]],
    *,
    rows: pd.DataFrame | None = None,
    companion: bool = False,
    **more: Any,
) -> tuple[Tables, list[Analysis]]:
    """Carry out plans; mixed models that stand beside shares are fitted only if a test needs them."""
    given = {
        name: {"measure": "correct", "compare": "position", "between": ["human"], "contrasts": PAIR, **spec}
        for name, spec in planned.items()
    }
    rows = rows_with_quantities() if rows is None else rows
    tables = load(handover(rows, dictionary={"planned": given, **more}))
    return tables, planned_analyses(tables, companion=companion)


@pytest.mark.parametrize(
    ("said", "measure", "half_width"),
    [("5 points", "correct", 5.0), ("10%", "rt", log(1.1)), ("1.2 times", "completion_tokens", log(1.2)),
     ("0.5 bits", "surprisal", 0.5)],
)  # fmt: skip
def test_a_bound_is_read_on_the_scale_of_its_measure(said: str, measure: str, half_width: float) -> None:
    assert read_bound(said, [PLANNABLE[measure]]).half_width == pytest.approx(half_width)


@pytest.mark.parametrize(
    ("said", "measure"),
    [("5 points", "rt"), ("10%", "correct"), ("0.5 bits", "margin"), ("1 times", "rt"), ("0 points", "correct"),
     ("100 points", "correct"), ("five", "rt")],
)  # fmt: skip
def test_a_bound_of_another_scale_or_of_nothing_is_refused(said: str, measure: str) -> None:
    with pytest.raises(PlanFault, match="is '"):
        read_bound(said, [PLANNABLE[measure]])


def test_a_difference_that_two_families_test_has_one_interval_which_keeps_the_error_rate_of_both(
    handover: Make,
) -> None:
    few, many = {"contrasts": PAIR[:1]}, {"contrasts": [*PAIR, "initial - intact", "final - intact"]}
    both = {"narrow": {**few, "family": "one"}, "broad": {**many, "family": "two"}}
    _, (narrow, broad) = carried(handover, both)
    _, (alone,) = carried(handover, {"broad": many})
    shared = {one.label: one for one in broad.contrasts}[narrow.contrasts[0].label]
    elsewhere = narrow.contrasts[0].elsewhere
    assert elsewhere.endswith(" two") and not shared.elsewhere
    for name in ("p_adjusted", "low", "high", "reach", "family"):
        value = getattr(narrow.contrasts[0], name)
        assert value == getattr(shared, name) == getattr(alone.contrasts[0], name)
    told = [[remark for remark in one.remarks if elsewhere in remark] for one in (narrow, broad)]
    assert [len(remarks) for remarks in told] == [1, 0] and "initial − internal" in told[0][0]
    for one in (narrow, broad):
        assert re.search(f" four .*{elsewhere}", adjusted_by(one))


def test_what_adjusts_a_test_is_that_of_its_whole_family(handover: Make) -> None:
    initial, final = (f"{level} - internal" for level in ("initial", "final"))
    directed, both_sides = {"contrasts": [initial], "direction": "less"}, {"contrasts": [final]}
    _, (alone,) = carried(handover, {"a": directed})
    assert {one.correction for one in alone.contrasts} == {"the largest t"}
    _, of_one_measure = carried(handover, {"a": directed, "b": both_sides})
    assert {adjusted_by(one) for one in of_one_measure} == {
        "the largest |t| over the two planned tests of accuracy"
    }
    wide = {"contrasts": [initial, final, "final - intact"], "direction": {initial: "less"}, "family": "wide"}
    pair = {"contrasts": [initial, final], "direction": "less", "family": "own"}
    _, (several, _) = carried(handover, {"a": pair, "b": wide})
    taken, own = several.contrasts
    assert (taken.correction, own.correction) == ("the largest |t|", "the largest t"), "as in its family"
    assert adjusted_by(several).count("of the family") == 2 and ", and by the largest t" in adjusted_by(
        several
    )


def test_readers_with_measures_of_their_own_are_compared_as_ratios(handover: Make) -> None:
    measure = {"human": "reading_time", "restorer": "completion_tokens"}
    spec = {"measure": measure, "between": ["human", "restorer"], "equivalence": "10%"}
    _, (people, model) = carried(handover, {"a": spec})
    between = [one for one in model.contrasts if one.between]
    own = {one.label: one for one in (*people.contrasts, *model.contrasts) if one.groups == ("human",)}
    tokens = {one.label: one for one in model.contrasts if one.groups == ("restorer",)}
    for one in between:
        assert one.estimate == pytest.approx(own[one.label].estimate - tokens[one.label].estimate)
        assert one.se == pytest.approx(np.hypot(own[one.label].se, tokens[one.label].se))
        assert one.equivalence is not None and one.equivalence.half_width == pytest.approx(log(1.1))
    assert any("independent" in remark for remark in model.remarks)


@pytest.mark.full
def test_a_named_family_is_corrected_over_all_its_analyses(handover: Make) -> None:
    surprisal = {"measure": "surprisal", "between": ["restorer"], "family": "F"}
    apart = {"contrasts": ["initial - intact", "final - intact"]}
    _, analyses = carried(handover, {"a": {"family": "F"}, "b": surprisal, "c": apart})
    families = {one.plan.key: {contrast.family for contrast in one.contrasts} for one in analyses}
    assert families == {"a": {4}, "b": {4}, "c": {2}}
    named = [contrast for one in analyses[:2] for contrast in one.contrasts]
    assert len({one.df for one in named}) > 1
    for one in named:
        assert one.p - 1e-3 <= one.p_adjusted <= min(1.0, 4 * one.p) + 1e-12
        assert (one.p_adjusted < 0.05) == one.excludes_zero


def test_repeats_that_differ_by_numerical_error_are_one_value_of_surprisal(handover: Make) -> None:
    """Prompt variants ask about the same text, of which a model computes the same surprisal in several passes."""
    once = rows_with_quantities().query("reader == 'restorer'")
    spec = {"measure": "surprisal", "between": ["restorer"]}
    _, (expected,) = carried(handover, {"a": spec}, rows=once)
    for error, counts in ((0.0, 1), (5e-3, 1), (1.0, 5)):
        draw = np.random.default_rng(9)
        passes = [
            once.assign(
                session_id=once["session_id"] + f"-{number}",
                prompt_variant=float(number),
                surprisal=once["surprisal"] + error * draw.normal(0, 1, len(once)),
            )
            for number in range(5)
        ]
        _, (found,) = carried(handover, {"a": spec}, rows=pd.concat(passes, ignore_index=True))
        assert found.fit is not None and expected.fit is not None
        assert found.fit.nobs == counts * expected.fit.nobs
        for one, other in zip(found.contrasts, expected.contrasts, strict=True) if counts == 1 else ():
            assert one.estimate == pytest.approx(other.estimate, abs=5 * error + 1e-6)
            assert one.se == pytest.approx(other.se, rel=0.01)


def test_surprisal_is_modelled_in_bits_and_recovers_what_was_put_in(handover: Make) -> None:
    _, (analysis,) = carried(handover, {"a": {"measure": "surprisal", "between": ["restorer", "second"]}})
    assert analysis.model is not None and analysis.model.family == "gaussian"
    for one in analysis.contrasts:
        if not one.between:
            truth = {"initial − internal": 2.0, "final − internal": 1.0}[one.label]
            assert abs(one.estimate - truth) < 4 * one.se


@pytest.mark.full
def test_a_planned_model_is_fitted_as_written_and_gives_way_to_its_fallback(handover: Make) -> None:
    fallback = "correct ~ position + (1 | item)"
    two = {"levels": ["initial", "internal"], "contrasts": PAIR[:1]}
    full = "correct ~ position + (1 + position | participant) + (1 + position | item)"
    _, (written, replaced_) = carried(
        handover,
        {"a": {**two, "formula": fallback}, "b": {**two, "formula": full, "fallback": fallback}},
        rows=study_rows(human=8, items=12),
        companion=True,
    )
    assert written.model is not None and written.model.formula == fallback
    assert replaced_.model is not None and replaced_.model.steps[0].formula == full
    if replaced_.model.steps[0].singular or not replaced_.model.steps[0].converged:
        assert replaced_.model.formula == fallback
        assert any("fallback" in remark for remark in replaced_.remarks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rt ~ position + (1 | item)", "'rt'"),
        ("correct ~ position + (1 | itm)", "'item'"),
        ("correct ~ trial_index + (1 | item)", "effect of position"),
        ("correct ~ position", "random-effects"),
    ],
)
def test_a_model_of_ones_own_is_checked_before_there_are_data(text: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        check_own_formula(text, MEASURES["correct"], ["position"], ["position"], several_readers=False)
    assert said in str(refused.value)


def test_a_plan_leaves_out_more_than_the_study_and_says_how_much(
    plain: tuple[Tables, list[Analysis]],
) -> None:
    all_of_them, fewer = plain[1]
    left_out = len(all_of_them.rows) - len(fewer.rows)
    assert left_out > 0
    parts = f"{len(all_of_them.rows):,} trials", f"{left_out:,} (", "outside 800 ms to 2 s"
    assert any(all(part in remark for part in parts) for remark in fewer.remarks)


def test_every_departure_from_a_plan_is_told(handover: Make) -> None:
    frozen = {
        "hash": "f" * 64, "frozen_at": "2026-11-01T10:00:00Z", "sessions_before": 2,
        "earlier": [{"frozen_at": "2026-10-01T10:00:00Z", "replaced_because": "a typo", "changes": ["wanted: 24 → 48"]}],
        "changes": ['analysis.planned.a.alpha: 0.05 → 0.1'],
    }  # fmt: skip
    registration = {"url": "https://osf.io/abcde", "at": "2026-11-02", "freeze_hash": "e" * 64}
    tables, analyses = carried(
        handover, {"a": {"between": ["human", "absent"], "stop": "at 20 participants"}},
        frozen=frozen, registration=registration,
    )  # fmt: skip
    standing = standing_of(tables, analyses)
    told = " ".join(standing.departures)
    for part in (
        r"\bbegun\b", "a typo", "October 1, 2026.* wanted: 24 → 48", r"0\.05 → 0\.1", "another freeze",
        r"\b8 participants.*\b20\b", r"\babsent\b",
    ):  # fmt: skip
        assert re.search(part, told), part
    assert "osf.io/abcde" in " ".join(standing.told)


def test_a_plan_that_was_kept_has_no_departures(plain: tuple[Tables, list[Analysis]]) -> None:
    frozen = {"hash": "f", "frozen_at": "2026-11-01T10:00:00Z", "sessions_before": 0, "earlier": [], "changes": []}  # fmt: skip
    registration = {"url": "https://osf.io/abcde", "at": "2026-11-02", "freeze_hash": "f"}
    tables, analyses = plain
    said = {"frozen": frozen, "registration": registration, "participants_wanted": 8}
    tables = replace(tables, dictionary={**tables.dictionary, **said})
    assert standing_of(tables, analyses).departures == ()
    unfrozen = replace(tables, dictionary={**tables.dictionary, "frozen": None})
    standing = standing_of(unfrozen, analyses)
    assert "not frozen" in standing.told[0] and not any("not frozen" in one for one in standing.departures)


BOUNDED = {
    "between": ["human", "restorer"],
    "equivalence": "40 points",
    "formula": "correct ~ reader_group * position + (1 | participant) + (1 | item)",
}


def once(factory: pytest.TempPathFactory, planned: dict[str, dict[str, Any]]) -> Any:
    """Carry out plans for all tests of this module."""

    def handover(rows: pd.DataFrame, dictionary: dict[str, Any]) -> Path:
        return write_handover(factory.mktemp("once"), rows, **dictionary)

    return carried(handover, planned)


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, list[Analysis]]:
    return once(tmp_path_factory, {"a": BOUNDED})


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, list[Analysis]]:
    """The plan with and without trials that it alone leaves out."""
    exclude = {"trials": {"rt": "outside 800 ms to 2 s"}}
    return once(tmp_path_factory, {"a": {}, "b": {"exclude": exclude}})


@pytest.mark.parametrize(
    ("frozen", "why"),
    [
        (None, "wrods freeze"),
        ({"sessions_before": 3}, "begun"),
        ({"changes": ["analysis.planned.a.equivalence: 5 points → 40 points"]}, "changed"),
        ({"changes": ["analysis.planned.a.alpha: 0.05 → 0.1"]}, ""),
        ({}, ""),
    ],
)
def test_readers_count_as_equivalent_by_a_bound_that_was_frozen_before_people_alone(
    frozen: dict[str, object] | None, why: str, bounded: tuple[Tables, list[Analysis]]
) -> None:
    given = None if frozen is None else {"hash": "f", "frozen_at": "2026-11-01T10:00:00Z", **frozen}
    tables, analyses = bounded
    tables = replace(tables, dictionary={**tables.dictionary, "frozen": given})
    (plan,) = with_bounds_fixed_beforehand([analyses[0].plan], tables.dictionary)
    assert (plan.equivalence is None) == bool(why)
    assert [why in remark for remark in plan.remarks] == [True] * bool(why)
    departures = standing_of(tables, [replace(analyses[0], plan=plan)]).departures
    assert [one for one in departures if "bound" in one] == [f"a: {remark}" for remark in plan.remarks]


def test_a_planned_comparison_stays_in_its_family_where_its_reader_has_no_trials(handover: Make) -> None:
    spec = {"between": ["human", "restorer", "absent"], "equivalence": "60 points"}
    _, (analysis,) = carried(handover, {"a": spec})
    assert analysis.groups == ("human", "restorer")
    by = {(one.label, one.groups): one for one in analysis.contrasts}
    assert len(by) == len(analysis.contrasts) == 2 * (3 + 2)
    lost = [one for one in analysis.contrasts if "absent" in one.groups]
    assert len(lost) == 4 and all("absent: " in one.left_out for one in lost)
    assert not any(one.estimable or np.isfinite([one.estimate, one.p, one.p_adjusted]).any() for one in lost)
    assert {one.family for one in analysis.contrasts} == {10}
    test = by["initial − internal", ("human", "restorer")].equivalence
    assert test is not None and test.family == 4
    assert test.p_adjusted == pytest.approx(min(1.0, 4 * test.p)) and test.p > 0
    (told,) = (remark for remark in analysis.remarks if "not estimable" in remark)
    assert "people vs. absent" in told


@pytest.mark.parametrize(("wanted", "told"), [(48, " with 4 readers instead of 48)."), (4, "(a rehearsal).")])
def test_a_rehearsal_with_another_number_of_readers_than_planned_says_so(
    handover: Make, wanted: int, told: str
) -> None:
    entries = {
        "planned": {"a": {**PLANNED["comprehension"], "between": ["human"]}},
        "participants_wanted": wanted,
    }
    tables = load(handover(study_rows(simulated=4, items=8), dictionary=entries))
    analyses = planned_analyses(tables, companion=False)
    (departure,) = standing_of(tables, analyses).departures
    assert departure.endswith(told)
    method = " ".join(method_parts(tables, tuple(analyses), None)[0].paragraphs)
    assert f"planned sample was {wanted} participants." in method


def test_tests_that_nothing_is_adjusted_with_are_not_said_to_count(handover: Make) -> None:
    told = {}
    for between in (["absent"], ["human", "absent"]):
        _, (analysis,) = carried(handover, {"a": {"between": between}})
        (told[len(between)],) = (remark for remark in analysis.remarks if "not estimable" in remark)
    assert told[1].endswith(").") and "). " in told[2]


def test_a_condition_without_trials_leaves_its_planned_contrasts_in_the_family(handover: Make) -> None:
    rows = rows_with_quantities().query("position != 'final'")
    tables, found = carried(
        handover, {"a": {"family": "F"}, "b": {"measure": "rt", "family": "F"}}, rows=rows
    )
    every = [contrast for one in found for contrast in one.contrasts]
    assert [one.estimable for one in every] == [True, False] * 2
    assert {one.family for one in every} == {4}
    assert all(one.p_adjusted > one.p for one in every if one.estimable)
    assert all(re.match("People: .*final", one.left_out) for one in every if not one.estimable)
    told = standing_of(tables, found).departures
    assert any("final − internal" in one for one in told)


def test_an_exploratory_analysis_corrects_over_what_it_tested(handover: Make) -> None:
    rows = study_rows(human=12, models=("restorer",), items=24)
    rows = rows[(rows["reader"] != "restorer") | (rows["position"] != "final")]
    tables = load(handover(rows))
    plan = next(one for one in plans(tables) if one.measure.name == "correct")
    accuracy = carry_out(plan, tables, companion=False)
    assert {one.groups for one in accuracy.contrasts} == {("human",), ("restorer",), ("human", "restorer")}
    assert {one.family for one in accuracy.contrasts} == {7}


def test_a_comparison_across_measures_that_cannot_be_made_stays_in_its_equivalence_family(
    handover: Make,
) -> None:
    rows = rows_with_quantities()
    rows.loc[rows["reader"] == "second", "completion_tokens"] = np.nan
    measure = {"human": "reading_time", "restorer": "completion_tokens", "second": "completion_tokens"}
    spec = {"measure": measure, "between": list(measure), "equivalence": "10%"}
    _, (_, models) = carried(handover, {"a": spec}, rows=rows)
    by = {(one.label, one.groups): one for one in models.contrasts}
    made, lost = (by["initial − internal", ("human", name)] for name in ("restorer", "second"))
    assert made.estimable and not lost.estimable and "no trials" in lost.left_out
    test = made.equivalence
    assert test is not None and test.family > 1
    assert test.p_adjusted == pytest.approx(min(1.0, test.family * test.p))


def test_readers_are_equivalent_where_the_interval_lies_inside_the_bound() -> None:
    near, wide = (two_one_sided(1.0, se, None, 5.0, 0.05) for se in (2.0, 3.0))
    assert near.equivalent
    assert (near.low, near.high) == pytest.approx((1 - 1.6449 * 2, 1 + 1.6449 * 2), abs=1e-3)
    assert not wide.equivalent and wide.high > 5.0
    assert near.p == pytest.approx(0.02275, abs=1e-5)  # z = (1 - 5) / 2


def test_a_one_sided_p_is_half_the_two_sided_one_where_the_effect_is_as_expected() -> None:
    assert one_sided(0.04, -2.05, "less") == pytest.approx(0.02)
    assert one_sided(0.04, -2.05, "greater") == pytest.approx(0.98)
    assert one_sided(0.04, -2.05, "two-sided") == 0.04


@pytest.mark.full
@pytest.mark.usefixtures("without_chapters", "without_figures")
def test_a_report_tests_no_equivalence_by_a_bound_that_was_not_frozen(handover: Make) -> None:
    tables, _ = carried(handover, {"a": BOUNDED})
    (section,) = [one for one in gather(tables).sections if one.analysis.plan.planned]
    between = [one for one in section.analysis.contrasts if one.between]
    assert len(between) == 2 and not any(one.equivalence for one in between)


def test_a_one_sided_test_counts_once_in_the_bound_of_its_family() -> None:
    def one_sided_test(statistic: float) -> Contrast:
        numbers = (statistic, 1.0, statistic, None, 0.5, -9.0, 9.0, 0.5, 1)
        return Contrast("a", "b", ("human",), *numbers, direction="greater")

    for statistic in (2.0, -0.5):
        (alone,) = by_largest_t([one_sided_test(statistic)], [0.05])
        assert alone.p_adjusted == pytest.approx(stats.norm.sf(statistic))
        assert alone.low == pytest.approx(statistic - stats.norm.isf(0.05)) and alone.high == np.inf
    pair = by_largest_t([one_sided_test(2.0), replace(one_sided_test(1.0), first="c")], [0.05, 0.05])
    for contrast in pair:
        assert contrast.p_adjusted <= 2 * stats.norm.sf(contrast.statistic)
        assert contrast.reach <= stats.norm.isf(0.025) + 1e-9
    # the larger of two independent normal values exceeds -1 unless both are below it, also where neither test looks there
    for statistic in (1.0, -1.0, -2.5):
        first = one_sided_test(statistic)
        pair = by_largest_t([first, replace(first, first="c")], [0.05, 0.05])
        exact = 1 - stats.norm.cdf(statistic) ** 2
        assert [contrast.p_adjusted for contrast in pair] == pytest.approx([exact, exact], abs=2e-4)


@pytest.mark.parametrize(("estimate", "df", "tests"), [(3.0, None, 1), (-8.0, 21.4, 4), (0.0, 5.0, 2)])
def test_the_smallest_bound_is_where_the_equivalence_test_turns(
    estimate: float, df: float | None, tests: int
) -> None:
    told = (estimate, 2.5, estimate / 2.5, df, 0.5, -9.0, 9.0, 0.5, tests)
    open_difference = Contrast("a", "b", ("human", "gpt"), *told)
    least = open_difference.smallest_bound(0.05, tests)
    for half_width, equivalent in ((0.999 * least, False), (1.001 * least, True)):
        tested = two_one_sided(estimate, 2.5, df, half_width, 0.05 / tests)
        assert tested.equivalent is equivalent
        bounded = replace(open_difference, equivalence=tested)
        assert bounded.smallest_bound(0.05, 1) == pytest.approx(least), "its own correction counts"
    assert replace(open_difference, furthest=least).smallest_bound(0.05, tests) == float("inf")
