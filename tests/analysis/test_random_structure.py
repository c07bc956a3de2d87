"""Where random structures start, what stands beside a model of accuracy, and what becomes of models as a sample."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.estimation import analyse
from analysis.frames import accuracy_data, in_model, missing_rows
from analysis.mixed import VarianceComponent
from analysis.plan import MISSING
from analysis.plan_runner import analyse_shares, by_label_probabilities, companions, in_general
from analysis.planned import plans
from analysis.random_structure import RandomTerm, formula, justified, on_models_in_general, reduced
from analysis.readers import MODELS_IN_GENERAL
from analysis.report.blocks import Material
from analysis.report.chapters.companions import write
from analysis.results import Analysis, FittedModelResult
from analysis.tables import Tables
from tests.analysis.conftest import Make
from tests.analysis.letter_study import PLANNED, study_rows, timed_out

PEOPLE = "(0 + people + people_initial + people_internal + people_final | participant)"


def planned(*readers: str) -> dict[str, Any]:
    return {"comprehension": {**PLANNED["comprehension"], "between": list(readers)}}


def started(handover: Make, rows: pd.DataFrame, *readers: str, **dictionary: Any) -> tuple[str, list[str]]:
    """Return the random part that the design of a study justifies, planned of these readers, and the remarks."""
    told = {"planned": planned(*readers), **dictionary} if readers else dictionary
    tables = load(handover(rows, dictionary=told))
    plan = plans(tables)[0]
    terms, remarks = justified(accuracy_data(tables.trials, plan), plan.factor)
    return formula("y", "x", terms).removeprefix("y ~ x + "), remarks


def repeated(rows: pd.DataFrame, sessions: int, prompts: int = 1) -> pd.DataFrame:
    """Let models answer everything once in each of several sessions, prompt wordings in turn, now and then otherwise."""
    machine, draw = rows[rows["reader_kind"] == "model"], np.random.default_rng(4)
    more = []
    for number in range(1, sessions):
        own = machine.assign(session_id=machine["reader"] + f"-{number}", prompt_variant=1 + number % prompts)
        own["correct"] = np.where(draw.random(len(own)) < 0.8, own["correct"], ~own["correct"].astype(bool))
        more.append(own.assign(replicate=number + 1, temperature=1.0))
    return pd.concat([rows, *more], ignore_index=True)


APART = "(0 + position_intact + position_initial + position_internal + position_final || item_condition)"


class TestWhereItStarts:
    """The design says which effects of items, models, prompts and sessions are in the first fit."""

    def test_people_and_one_model_that_answers_once(self, handover: Make) -> None:
        rows = study_rows(human=12, models=("restorer",), items=12)
        structure, _ = started(handover, rows, "human", "restorer")
        apart = "people_intact + people_initial + people_internal + people_final"
        assert structure == f"{PEOPLE} + (1 + model | item) + (0 + {apart} || item_condition)"

    def test_two_models_share_what_a_condition_does_to_an_item_in_models(self, handover: Make) -> None:
        rows = study_rows(human=12, models=("a", "b"), items=12)
        shared = "(1 + model | item) + (1 + model | item_condition) + (0 + model | item_reader)"
        assert started(handover, rows, "human", "a", "b")[0] == f"{PEOPLE} + {shared}"

    def test_sessions_of_one_condition_each_are_no_variance_of_their_own(self, handover: Make) -> None:
        rows = repeated(study_rows(human=12, models=("a", "b"), items=12), sessions=2)
        machine = rows["reader_kind"] == "model"
        of_one = rows["session_id"] + "-" + rows["position"].fillna("none")
        rows["session_id"] = rows["session_id"].mask(machine, of_one)
        structure, remarks = started(handover, rows, "human", "a", "b")
        assert "item_cell" in structure and "model_session" not in structure
        assert any(re.search("session .*position", one) for one in remarks)

    def test_repeated_answers_bring_cells_and_sessions(self, handover: Make) -> None:
        rows = repeated(study_rows(human=12, models=("a", "b"), items=12), sessions=6, prompts=2)
        structure, remarks = started(handover, rows, "human", "a", "b")
        assert structure.endswith(
            "(0 + model | item_reader) + (0 + model | item_cell) + (0 + model | model_session)"
        )
        assert any("2 prompt variants" in one for one in remarks)

    def test_a_session_for_each_wording_is_the_wording(self, handover: Make) -> None:
        rows = repeated(study_rows(human=12, models=("restorer",), items=12), sessions=6, prompts=6)
        structure, remarks = started(handover, rows, "human", "restorer")
        assert structure.endswith("(1 + model | item_condition) + (0 + model | prompt)")
        assert any(re.search("prompt variant .*one session", one) for one in remarks)

    def test_four_columns_with_ten_items_each_have_a_matrix_of_their_own(self, handover: Make) -> None:
        structures = [started(handover, study_rows(human=8, items=items))[0] for items in (40, 36)]
        assert structures == [
            f"(1 + position | participant) + {own}"
            for own in ("(1 + position | item)", f"(1 | item) + {APART}")
        ]

    def test_conditions_have_an_item_variance_each_where_there_are_three_to_six(self, handover: Make) -> None:
        levels = {2: "(1 | item_condition)", 3: "(0 + {} || item_condition)", 7: "(1 | item_condition)"}
        for many, expected in levels.items():
            names = [f"c{place}" for place in range(many)]
            rows = study_rows(human=24, items=16)
            reader, item = (rows[name].str.extract(r"(\d+)")[0].astype(int) for name in ("reader", "item_id"))
            rows["position"] = [names[place] for place in (reader + item) % many]
            factors = {"position": {"levels": names, "reference": "c0"}}
            structure, _ = started(handover, rows, factors=factors)
            apart = " + ".join(f"position_{name}" for name in names)
            assert structure.endswith(f"(1 | item) + {expected.format(apart)}"), many

    def test_two_conditions_let_kinds_and_slopes_correlate(self, handover: Make) -> None:
        rows = repeated(study_rows(human=12, models=("restorer",), items=40), sessions=2)
        rows = rows[rows["position"].isin(["intact", "initial"]) | rows["position"].isna()]
        factors = {"position": {"levels": ["intact", "initial"], "reference": "intact"}}
        plan = {"comprehension": {**PLANNED["comprehension"], "contrasts": ["initial - intact"]}}
        structure, _ = started(handover, rows, planned=plan, factors=factors)
        assert structure == "(0 + people + people_initial | participant) + (1 + model * position | item)"

    def test_items_that_are_shown_in_one_condition_have_no_slopes(self, handover: Make) -> None:
        rows = study_rows(human=12, items=24)
        own = rows["item_id"].str.removeprefix("s").where(~rows["is_practice"].astype(bool), "0").astype(int)
        level = np.array(["intact", "initial", "internal", "final"])[own % 4]
        rows["position"] = rows["position"].where(rows["is_practice"].astype(bool), level)
        structure, remarks = started(handover, rows)
        assert structure.endswith("| participant) + (1 | item)")
        assert not any("by item" in one for one in remarks)

    def test_too_few_answers_of_people_to_an_item_are_said(self, handover: Make) -> None:
        structure, remarks = started(handover, study_rows(human=4, items=24))
        assert structure == "(1 + position | participant) + (1 | item)"
        assert any("answers of people" in one for one in remarks)

    @pytest.mark.parametrize(("share", "is_sloped"), [(0.03, False), (0.4, True), (0.6, True), (0.97, False)])
    def test_slopes_of_missing_answers_need_answers_that_are_missing_and_some_that_are_not(
        self, handover: Make, share: float, is_sloped: bool
    ) -> None:
        rows = repeated(study_rows(human=24, models=("a", "b"), items=48, timeouts=0.0), sessions=4)
        rows = timed_out(rows, np.random.default_rng(3).random(len(rows)) < share)
        tables = load(handover(rows, dictionary={"planned": planned("human", "a", "b")}))
        plan = replace(plans(tables)[0], measure=MISSING)
        terms, remarks = justified(
            in_model(missing_rows(tables.trials, plan)[0], plan, share="missing"), plan.factor
        )
        structure = formula("y", "x", terms).removeprefix("y ~ x + ")
        assert (PEOPLE in structure) == is_sloped
        assert any(re.search("Participants .*rarer outcome", one) for one in remarks) != is_sloped
        assert ("item_reader" in structure) == is_sloped
        if not is_sloped:
            assert structure == "(0 + people | participant) + (1 + model | item)"

    @pytest.mark.parametrize(("models", "said"), [(("a",), "this model"), (("a", "b"), "these two models")])
    def test_few_models_are_no_sample(self, handover: Make, models: tuple[str, ...], said: str) -> None:
        rows = study_rows(human=8, models=models, items=24, seed=5)
        scope = on_models_in_general(load(handover(rows)).trials)
        assert scope is not None and said in scope


def test_the_lead_of_the_correct_label_is_the_margin_with_its_sign(handover: Make) -> None:
    rows = study_rows(human=8, models=("restorer",), items=24, timeouts=0.0)
    machine, draw = rows["reader_kind"] == "model", np.random.default_rng(2)
    slope = rows["position"].map({"intact": 2.0, "initial": -0.5, "internal": 1.0, "final": 0.4}).fillna(0)
    lead = (slope + draw.normal(0, 0.5, len(rows))).where(machine)
    rows["margin"] = lead.abs()
    rows.loc[machine, "correct"] = lead[machine] > 0
    tables = load(handover(rows, dictionary={"planned": PLANNED}))
    found = by_label_probabilities(plans(tables)[0], tables)
    assert found is not None and found.model is not None
    assert found.model.formula == "lead ~ position + (1 | item)" and found.groups == ("restorer",)
    by = {one.label: one.estimate for one in found.contrasts}
    assert by["initial − internal"] == pytest.approx(-1.5, abs=0.35)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """People and nine models, one of them always right when nothing is scrambled."""
    from tests.analysis.letter_study import write_handover

    names = tuple(f"m{number}" for number in range(9))
    rows = study_rows(human=16, models=names, items=12, seed=7)
    rows.loc[(rows["reader"] == "m0") & (rows["position"] == "intact"), "correct"] = True
    return load(write_handover(tmp_path_factory.mktemp("many"), rows, planned=planned("human", "m1")))


class TestModelsInGeneral:
    """Nine models are a sample: how much they differ widens the interval."""

    def test_people_are_compared_with_the_models_means(self, many: Tables) -> None:
        found = in_general(plans(many)[0], many)
        assert found is not None and found.model is None
        assert {one.groups for one in found.contrasts} == {("human", MODELS_IN_GENERAL)}
        assert all(one.crossed is not None and one.crossed.to.endswith("models") for one in found.contrasts)
        assert any("9 models" in one for one in found.remarks)

    def test_seven_models_are_none(self, many: Tables) -> None:
        fewer = many.trials["reader_group"].isin(["human", *(f"m{number}" for number in range(1, 8))])
        assert in_general(plans(many)[0], replace(many, trials=many.trials[fewer])) is None

    def test_the_same_question_of_two_plans_is_answered_once(self, many: Tables) -> None:
        plan = plans(many)[0]
        analyses = [
            Analysis(replace(plan, groups=("human", other)), None, (), (), (), ()) for other in ("m1", "m2")
        ]
        assert [one.kind for one in companions(analyses, many)] == ["models in general"]

    def test_the_report_has_a_chapter_of_companions(self, many: Tables) -> None:
        analyses = (analyse_shares(plans(many)[0], many, companion=False),)
        kinds = {"human": "human"} | {f"m{number}": "model" for number in range(9)}
        chapter = write(Material(many, analyses, kinds))
        assert chapter is not None and not chapter.planned
        text = " ".join(str(block) for block in chapter.blocks)
        assert MODELS_IN_GENERAL in text
        assert len(companions(analyses, many)) == 1 and not chapter.fits


def test_slopes_without_correlations_do_not_hang_on_the_reference(handover: Make) -> None:
    plan = {"comprehension": {**PLANNED["comprehension"], "contrasts": ["internal - initial"]}}
    rows = study_rows(human=24, items=24, seed=3)
    found = []
    for order in (["intact", "initial", "internal", "final"], ["internal", "final", "intact", "initial"]):
        factors = {"position": {"levels": order, "reference": order[0]}}
        tables = load(handover(rows, dictionary={"planned": plan, "factors": factors}))
        asked = replace(plans(tables)[0], groups=("human",), planned=False)
        found.append(analyse(asked, accuracy_data(tables.trials, asked), most_columns=0, reduce=False))
    first, second = found
    assert first.model is not None and second.model is not None
    assert "|| participant" in first.model.formula and first.model.formula != second.model.formula
    assert first.model.loglik == pytest.approx(second.model.loglik, abs=1e-5)
    one, other = ({each.label: each for each in analysis.contrasts} for analysis in found)
    label = next(name for name in one if name in other)
    assert one[label].estimate == pytest.approx(other[label].estimate, abs=1e-3)
    assert one[label].se == pytest.approx(other[label].se, rel=1e-3)


@pytest.mark.parametrize(
    ("sd", "says"), [(3.0, ""), (6.0, "see the percentage points"), (24.5, "see the means")]
)
def test_what_a_large_random_effect_makes_of_odds_ratios_and_points_is_said(sd: float, says: str) -> None:
    """With a spread of 24 log odds each item is always right or always wrong: the model's points are no shares either."""
    terms = (VarianceComponent("item", ("(Intercept)",), np.array([[sd**2]])),)
    source: Any = SimpleNamespace(family="binomial", variance=terms, groups={"item": 9}, warnings=())
    told = FittedModelResult(source, {}, source.groups).warnings
    assert (not told) if not says else (len(told) == 1 and says in told[0])


def test_an_effect_whose_interval_is_endless_keeps_its_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ["estimate", "se", "statistic", "df", "p", "ci_low", "ci_high"]
    rows = [[7.0, 0.1, 70.0, 1.2, 0.01, 6.0, 8.0], [0.9, 0.12, 7.9, 0.04, 0.5, -9e9, 9e9]]
    table = pd.DataFrame(rows, columns=columns)
    monkeypatch.setattr("analysis.results.linear_contrasts", lambda *_: table)
    fixed = pd.DataFrame({"term": ["(Intercept)", "xb"]})
    source: Any = SimpleNamespace(
        family="gaussian",
        link="identity",
        variance=(),
        groups={},
        warnings=(),
        fixed=fixed,
        vcov=pd.DataFrame(np.eye(2)),
    )
    whole, endless = FittedModelResult(source, {}, {}).coefficients
    assert whole.has_interval and (whole.low, whole.high) == (6.0, 8.0)
    assert endless.estimable and not endless.has_interval
    assert (endless.estimate, endless.se) == (0.9, 0.12) and np.isnan(
        [endless.df, endless.p, endless.low]
    ).all()


SLOPES = RandomTerm("participant", "1", "position", ("position_a", "position_b"), "correlated", "")
LOOSE, BARE = replace(SLOPES, state="uncorrelated"), replace(SLOPES, state="intercept", columns=())
ITEMS = RandomTerm("item", "1", "", (), "intercept", "")
PLAIN = RandomTerm("item", "1", "model", ("model",), "correlated", "")
ALIKE = RandomTerm("item_condition", "1", "model", ("model",), "correlated", "", may_go=True)
SHARED = replace(ALIKE, state="uncorrelated")
WHOLE = RandomTerm("item", "1", "model * position", (), "correlated", "", instead=(PLAIN, ALIKE))
EQUAL = RandomTerm("item_condition", "people", "", (), "intercept", "", may_go=True)
EACH = RandomTerm(
    "item_condition", "people_a", "", ("people_b", "people_c"), "uncorrelated", "", True, (EQUAL,)
)
PROMPTS = RandomTerm("prompt", "model", "", (), "intercept", "", may_go=True)
OF_EACH = "(0 + people_a + people_b + people_c || item_condition)"
Zero = dict[str, list[str]]
REDUCTIONS: dict[str, tuple[list[RandomTerm], Zero, set[str], bool, str, str]] = {
    "correlations go first": (
        [SLOPES, ITEMS], {}, {"participant"}, True,
        "(1 + position_a + position_b || participant) + (1 | item)", "participant: correlations dropped"),
    "then slopes without variance": (
        [LOOSE, ITEMS], {"participant": ["position_b"]}, {"participant"}, True,
        "(1 + position_a || participant) + (1 | item)", "position_b"),
    "without convergence all slopes": (
        [LOOSE, ITEMS], {}, {"participant", "item"}, False, "(1 | participant) + (1 | item)", "participant"),
    "the intercept of a term that must stay": (
        [LOOSE], {"participant": ["(Intercept)", "position_a", "position_b"]}, {"participant"}, True, "(1 | participant)",
        "slopes dropped"),
    "an intercept never in silence": (
        [BARE, ITEMS], {"item": ["(Intercept)"]}, {"item"}, True, "(1 | participant) + (1 | item)", ""),
    "a matrix gives way to independent slopes": (
        [WHOLE], {}, {"item"}, True, "(1 + model | item) + (1 + model | item_condition)",
        "item: slopes taken to be independent between conditions"),
    "a first condition without variance lets all have one": (
        [EACH], {"item_condition": ["people_a"]}, {"item_condition"}, True, EQUAL.text(), "equal in all conditions"),
    "a last condition without variance": (
        [EACH], {"item_condition": ["people_c"]}, {"item_condition"}, True, EQUAL.text(), "equal in all conditions"),
    "conditions without convergence": (
        [EACH], {}, {"item_condition"}, False, EQUAL.text(), "equal in all conditions"),
    "conditions while another group is doubtful": ([EACH], {}, {"participant"}, True, OF_EACH, ""),
    "what people and models share goes before what models have": (
        [SHARED], {"item_condition": ["(Intercept)"]}, {"item_condition"}, True, "(0 + model | item_condition)", "shared"),
    "nothing is left of a term without any variance": (
        [SHARED, PLAIN], {"item_condition": ["(Intercept)", "model"]}, {"item_condition"}, True, "(1 + model | item)",
        "item_condition"),
    "a term with variance stays though its group is doubtful": ([PROMPTS], {}, {"prompt"}, True, PROMPTS.text(), ""),
}  # fmt: skip


@pytest.mark.parametrize(
    ("terms", "at_zero", "doubtful", "converged", "left", "said"), REDUCTIONS.values(), ids=REDUCTIONS
)
def test_a_random_structure_is_reduced_in_stated_steps(
    terms: list[RandomTerm], at_zero: Zero, doubtful: set[str], converged: bool, left: str, said: str
) -> None:
    found, told = reduced(terms, at_zero, doubtful, converged)
    assert " + ".join(term.text() for term in found) == left
    assert said in told and bool(said) == bool(told)
