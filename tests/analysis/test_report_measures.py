"""The chapters of measures: signal detection, restored texts, ratios and chance, on studies whose truth is known."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import Tables, apa, load
from analysis.figures.drawing import Drawing
from analysis.measures.levels import done_to, levels_of
from analysis.measures.signal_detection import (
    ProbitModel,
    of_groups,
    probit_model,
    sensitivity_and_bias,
    two_class_trials,
)
from analysis.report.blocks import Chapter
from analysis.report.chapters import rankings, ratios, recovered_text, sensitivity
from analysis.report.content import _cells_of, gather
from analysis.report.described import planned_means
from analysis.report.planned_effects import planned_effects
from analysis.robustness import Matrix
from tests.analysis.chapters import chapter_of, material_of, rows_by_head, rows_in, tables_in, words_in
from tests.analysis.conftest import planned_analyses
from tests.analysis.measured_study import (
    CRITERION,
    D_PRIME,
    LEVELS,
    RECOVERED_WORDS,
    class_study,
    typed_study,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(class_study(tmp_path_factory.mktemp("classes")))


@pytest.fixture(scope="module")
def rated(classes: Tables) -> Chapter:
    return chapter_of(ratios.write, classes)


def test_what_a_level_does_is_read_from_the_items_and_not_from_its_name(classes: Tables) -> None:
    does = levels_of(classes.items, "position", LEVELS)
    assert (does.intact, does.changed) == ("red", ("green",))
    assert (does.substituted, does.withheld, does.unknown) == (("blue",), ("grey",), ())


@pytest.mark.parametrize(
    ("operation", "shown", "expected"),
    [
        ("none", "x", "intact"),
        ("shuffle:all@0", "a b", "intact"),
        ("transpose:after_first@0.3;texts=0", "a b", "intact"),
        ("transpose:internal(distance=2)", "a b", "changed"),
        ("substitute:internal", "a c", "changed"),
        ("substitute:all(shape=keep)@0.5", "a c", "substituted"),
        ("other symbols", "a c", "substituted"),
        ("published SUB", "a c", "substituted"),
        ("published RS@0.2", "b a", "changed"),
        ("withheld", "", "withheld"),
        ("rule:rhyme", "a b", "intact"),
        ("hand-made", "b a", "changed"),
        ("", "a b", "intact"),
    ],
)
def test_an_operation_at_rate_0_is_intact_and_where_none_is_recorded_the_texts_decide(
    operation: str, shown: str, expected: str
) -> None:
    texts = json.dumps({"sentence": shown}), json.dumps({"sentence": "a b"})
    assert done_to(json.dumps({"operation": operation}), *texts) == expected


def test_the_probit_model_of_the_chapter_gives_back_what_was_put_in(classes: Tables) -> None:
    (found,) = two_class_trials(classes.trials, classes.items)
    assert (found.signal, found.other) == ("A", "B")
    model = probit_model(found, "position", LEVELS)
    assert isinstance(model, ProbitModel)
    assert model.groups == ("human", "net")
    assert any("stuck" in one for one in model.remarks)
    told = sensitivity_and_bias(model.fit, model.data)
    for one in told.to_dict("records"):
        truth = (D_PRIME if one["measure"] == "d_prime" else CRITERION)[one["reader_group"]]
        assert abs(one["estimate"] - truth[LEVELS.index(one["position"])]) < 3.2 * one["se"], one
    assert len(told) == 16


def test_the_probit_model_has_no_model_that_repeats_itself(classes: Tables) -> None:
    """The variance of its items has no limit: d′ in the probit model would be of another size than that of its counts."""
    trials = classes.trials
    again = trials[trials["reader_group"] == "net"].assign(session_id="again")
    (found,) = two_class_trials(pd.concat([trials, again], ignore_index=True), classes.items)
    model = probit_model(found, "position", LEVELS)
    assert isinstance(model, ProbitModel) and model.groups == ("human",)
    assert any("net" in remark for remark in model.remarks)


def test_a_reader_without_valid_answers_has_no_numbers_and_another_reason_than_one_with_one_answer(
    classes: Tables,
) -> None:
    trials = classes.trials.copy()
    is_net = trials["reader_group"] == "net"
    trials["response_status"] = trials["response_status"].mask(is_net, "unparsed")
    trials[["response", "correct"]] = trials[["response", "correct"]].mask(is_net)
    (found,) = two_class_trials(trials, classes.items)
    model = probit_model(found, "position", LEVELS)
    assert isinstance(model, ProbitModel) and model.groups == ("human",)
    said = {group: [one for one in model.remarks if group in one] for group in ("net", "stuck")}
    assert said["net"] and said["net"] != [one.replace("stuck", "net") for one in said["stuck"]]
    detected = chapter_of(sensitivity.write, replace(classes, trials=trials))
    assert not re.search("[=–] –|= –", words_in(detected)) and "DeCarlo" in str(detected.methods)
    alone = replace(classes, trials=trials[is_net])
    assert "DeCarlo" not in str(chapter_of(sensitivity.write, alone).methods), "no model was fitted"


def test_a_figure_of_sensitivity_has_levels_in_their_order_and_needs_one_estimate(classes: Tables) -> None:
    trials = classes.trials
    late = trials[(trials["reader_group"] != "human") | (trials["position"] != "red")]
    blocks = chapter_of(sensitivity.write, replace(classes, trials=late)).blocks
    (drawn,) = (block for block in blocks if isinstance(block, Drawing))
    assert [axes.get_title(loc="left") for axes in drawn.figure.axes] == LEVELS
    is_first, is_a = trials["position"].isin(LEVELS[:2]), trials["answer"] == "A"
    one_class = trials[(is_first == is_a) == (trials["reader_group"] == "human")]
    without = chapter_of(sensitivity.write, replace(classes, trials=one_class))
    assert not any(isinstance(block, Drawing) for block in without.blocks)


def test_few_trials_of_a_class_bound_sensitivity(classes: Tables) -> None:
    is_human = classes.trials["reader_group"] == "human"
    trials, others = classes.trials[is_human], classes.trials[~is_human]
    few = trials[trials.groupby(["reader", "position", "answer"]).cumcount() < 2]
    said = words_in(chapter_of(sensitivity.write, replace(classes, trials=few)))
    assert "two trials" in said and "1.93" in said, "z of 2.5/3 minus z of 0.5/3"
    assert "exceed" not in words_in(chapter_of(sensitivity.write, replace(classes, trials=others)))


def test_the_chapter_tells_bias_from_sensitivity_and_its_numbers_are_those_of_its_tables(
    classes: Tables,
) -> None:
    detected = chapter_of(sensitivity.write, classes)
    text = words_in(detected)
    assert re.search("model stuck .*bias", text) and re.search("people .*green .*red", text)
    stuck = [row for row in tables_in(detected)["sensitivity_position"].rows if row[0] == "red"][-1]
    assert stuck[2:5] == ("100.0% (20/20)", "100.0% (20/20)", "0.00")
    cells = tables_in(detected)["sensitivity_position_model"].rows
    red = next(row for row in cells if row[0] == "red")
    differences = tables_in(detected)["sensitivity_position_differences"].rows
    first = next(row for row in differences if row[:2] == ("green − red", "People"))
    assert f"b = {first[2]}, SE = {first[3]}, z = {first[4]}" in text
    green = next(row for row in cells if row[0] == "green")
    number = [float(one.replace("−", "-")) for one in (green[1], red[1], first[2])]
    assert number[0] - number[1] == pytest.approx(number[2], abs=0.011)
    assert "differ from the descriptive ones ([[table:sensitivity_position]])" in text, (
        "two d′ of one condition"
    )
    assert "Cite the descriptive values for single conditions" in text
    assert len(detected.fits) == 1 and detected.fits[0].fit.link == "probit"


def test_retention_of_a_model_at_chance_is_no_robustness(classes: Tables, rated: Chapter) -> None:
    kept = rows_by_head(tables_in(rated)["retention_position"])
    flags = {head: {row[-1] for row in rows} for head, rows in kept.items() if rows}
    assert [head for head, flag in flags.items() if flag == {"flagged"}] == ["stuck"]
    ranked = tables_in(chapter_of(rankings.write, classes))["robustness"].rows
    assert [row[0] for row in ranked] == ["net", "stuck†"] and ranked[1][-2] == apa.MISSING != ranked[0][-2]


def test_relative_gain_and_retention_are_the_ratios_of_the_accuracies_shown(rated: Chapter) -> None:
    gain, kept = (rows_in(tables_in(rated)[f"{name}_position"])[0] for name in ("relative_gain", "retention"))
    accuracy = {row[0].split(" (")[0]: float(row[2]) for row in tables_in(rated)["chance_position"].rows[1:5]}
    expected = 100 * (accuracy["green"] - accuracy["blue"]) / (accuracy["red"] - accuracy["blue"])
    assert float(gain[3]) == pytest.approx(expected, abs=3.0)  # items weigh alike here, trials there
    assert float(kept[3]) == pytest.approx(100 * float(kept[2]) / float(kept[1]), abs=0.1)
    text = words_in(rated)
    assert re.search("red, .*blue, .*grey, .*green", text)


def test_a_ratio_whose_denominator_may_be_0_is_flagged(rated: Chapter) -> None:
    stuck = rows_by_head(tables_in(rated)["relative_gain_position"])["stuck"][0]
    assert stuck[-1] == "flagged" and stuck[3] == "–"
    assert re.search("model stuck, .*red and blue", words_in(rated))


def test_costs_are_ratios_against_the_same_item_intact(rated: Chapter) -> None:
    rows = rows_by_head(tables_in(rated)["cost_ratio_position"])["Prompt tokens: net"]
    assert [row[4] for row in rows] == ["1.250", "1.500", "1.750"]
    assert "wrods run --timing" in words_in(rated)


@pytest.mark.parametrize("whole", [False, True])
def test_recovered_is_a_planned_measure_from_plan_to_contrast(tmp_path: Path, whole: bool) -> None:
    tables = load(typed_study(tmp_path, whole=whole, planned=RECOVERED_WORDS))
    (analysis,) = planned_analyses(tables)
    assert analysis.model is not None and analysis.levels == ("green", "blue")
    (contrast,) = analysis.of_model.contrasts
    truth = np.log(0.3 / 0.7) - np.log(0.85 / 0.15)
    assert contrast.estimable and abs(contrast.estimate - truth) < 3 * contrast.se
    (contrast,) = analysis.contrasts
    assert contrast.p_adjusted < 0.001 and contrast.direction == "less"
    assert contrast.estimate == pytest.approx(-55, abs=12) and contrast.high < 0
    counted_once = any(" once" in one for one in analysis.remarks)
    assert counted_once is whole
    assert ("answer_given" in analysis.model.steps[0].formula) is not whole
    assert any("changed" in one for one in analysis.remarks)
    chapter = chapter_of(recovered_text.write, material_of(tables, [analysis]))
    assert "Recovered words by position" in words_in(chapter)
    asked = planned_effects([analysis], Matrix(), [], {})
    ((drawing, means),) = planned_means(analysis, _cells_of(analysis), tables.trials, tables, asked)
    assert drawing.effects and drawing.title.startswith("Recovered words by position")
    assert means.title.startswith("Recovered words (%) by position")
    assert means.origin is not None and means.origin.file == "trials.csv" and not means.origin.fits


@pytest.mark.usefixtures("without_chapters", "without_figures")
def test_tables_of_means_have_the_order_of_the_plan(tmp_path: Path) -> None:
    exact = RECOVERED_WORDS["words"]
    planned = {"exact": exact, "typos": exact | {"measure": "recovered_with_one_typo"}}
    content = gather(load(typed_study(tmp_path, planned=planned)))
    shown = [table.table.name for table in content.descriptives if "recovered" in table.table.name]
    assert ["typo" in name for name in shown] == [False, True]


def test_restored_texts_have_words_copies_edit_distance_and_a_model(tmp_path: Path) -> None:
    chapter = chapter_of(recovered_text.write, load(typed_study(tmp_path)))
    rows, rates = (
        {row[0]: row for row in rows_in(tables_in(chapter)[f"recovered_text_position{end}"])}
        for end in ("", "_rates")
    )
    assert rows["red"][2:4] == ("0", "–") and rows["red"][7] == "100.0"
    assert abs(float(rows["green"][3]) - 85) < 6 and abs(float(rows["blue"][3]) - 30) < 8
    assert float(rates["green"][3]) == pytest.approx(-float(rates["green"][5].replace("−", "-")))
    shown, answered = float(rates["green"][1]), float(rates["green"][2])
    assert float(rates["green"][3]) == pytest.approx(100 * (shown - answered) / shown, abs=0.5)
    text = words_in(chapter)
    assert "In red, " in text and re.search("blue .*green", text) and "typo" in text
    (fit,) = chapter.fits
    assert fit.fit.formula.startswith("cbind(recovered, not_recovered) ~ position")
    (tmp_path / "tables").mkdir()
    saved = tables_in(chapter)["recovered_text_position"].save(tmp_path / "tables")
    assert next(csv.reader(saved.open(encoding="utf-8-sig")))[3] == "% recovered"


@pytest.mark.parametrize("whole", [False, True])
def test_a_share_of_recovered_words_has_one_value_and_one_interval_in_a_report(
    tmp_path: Path, whole: bool
) -> None:
    """Sentences differ in length, so that a share pooled over words is another number than the mean of answers."""
    folder = typed_study(tmp_path, whole=whole, planned=RECOVERED_WORDS)
    trials, items = (pd.read_parquet(folder / f"{name}.parquet") for name in ("trials", "items"))
    long = trials["item_id"] == "s07"
    trials.loc[long, ["answer", "response"]] += " and more words follow here again and again"
    trials.to_parquet(folder / "trials.parquet")
    own = items["item_id"] == "s07"
    whole_text = trials.loc[long, "answer"].iloc[0]
    turned = " ".join(word[::-1] if word.isalpha() else word for word in whole_text.split())
    items.loc[own, "intact"] = json.dumps({"sentence": whole_text})
    items.loc[own, "shown"] = [
        json.dumps({"sentence": whole_text if level == "red" else turned})
        for level in items.loc[own, "position"]
    ]
    items.to_parquet(folder / "items.parquet")
    tables = load(folder)
    (analysis,) = planned_analyses(tables)
    cells = {cell.level: cell for cell in _cells_of(analysis)}
    (effect,) = analysis.contrasts
    rows = analysis.rows
    for level in ("green", "blue"):
        own_rows = rows[rows["position"] == level]
        mean = (own_rows["recovered"] / own_rows["changed"]).groupby(own_rows["reader"]).mean().mean()
        assert whole or cells[level].mean == pytest.approx(mean)
    assert 100 * (cells["blue"].mean - cells["green"].mean) == pytest.approx(effect.estimate, abs=3)
    chapter = chapter_of(recovered_text.write, material_of(tables, [analysis]))
    shown = {row[0]: row for row in rows_in(tables_in(chapter)["recovered_text_position"])}
    for level in ("green", "blue"):
        cell = cells[level]
        assert shown[level][3] == f"{100 * cell.mean:.1f}"
        assert shown[level][4] == f"[{100 * cell.low:.1f}, {100 * cell.high:.1f}]"
        assert f"{100 * cell.mean:.1f}%" in words_in(chapter)


def test_counts_rates_and_number_of_readers_of_a_cell_are_of_the_same_readers(tmp_path: Path) -> None:
    tables = load(class_study(tmp_path, people=4, items=24))
    trials = tables.trials
    people = trials["reader_kind"] == "human"
    one_sided = (
        people & (trials["reader"] == trials.loc[people, "reader"].iloc[0]) & (trials["answer"] == "B")
    )
    tables = replace(tables, trials=trials[~one_sided])
    (classes,) = two_class_trials(tables.trials, tables.items)
    cell = of_groups(classes, None).set_index("reader_group").loc["human"]
    assert (cell["readers"], cell["of"]) == (3, 4)
    assert (cell["signals"], cell["others"]) == (3 * 12, 3 * 12)
    assert cell["hit_rate"] == pytest.approx(cell["hits"] / cell["signals"])
    assert cell["false_alarm_rate"] == pytest.approx(cell["false_alarms"] / cell["others"])


def test_choices_of_more_than_two_classes_have_no_signal_detection(tmp_path: Path) -> None:
    folder = class_study(tmp_path, people=2, items=8)
    items = pd.read_parquet(folder / "items.parquet")
    items.assign(choices='["A", "B", "C"]').to_parquet(folder / "items.parquet")
    assert sensitivity.write(material_of(load(folder))) is None


def test_what_neither_record_nor_text_says_is_unknown_and_arms_without_examples_are_known() -> None:
    assert done_to(json.dumps({"operation": "rule:rhyme"}), json.dumps({"sentence": "a"}), "{}") is None
    assert done_to(None, None, None) is None
    sets = {
        "examples": {
            "many": {"exemplars": 28},
            "none": {"exemplars": 0},
            "mixed": {"example_labels": "shuffled"},
        }
    }
    does = levels_of(pd.DataFrame(), "examples", ["many", "none", "mixed"], sets)
    assert does.withheld == ("none", "mixed") and does.unknown == ("many",) and does.intact is None
