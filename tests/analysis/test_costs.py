"""Costs of people and models: what was put in comes out, in numbers and in the chapter on cost; small cases are as by hand."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis import Tables, load
from analysis.costs.ratios import (
    cost_profiles,
    crossed_profile,
    log_ratios,
    paired_profile,
    profiles,
    time_scales,
    unit_costs,
)
from analysis.costs.words import linking, reading_profile, spill_over, word_table
from analysis.figures import Drawing
from analysis.planned import plans
from analysis.report.blocks import Chapter
from analysis.report.chapters import cost
from analysis.report.chapters.cost import By, distributions, side_by_side, write
from analysis.report.inline import plain_text
from stimuli.errors import UserError
from tests.analysis import decision_study, word_study
from tests.analysis.chapters import (
    chapter_of,
    drawings_in,
    material_of,
    rows_under,
    tables_in,
    words_in,
)
from tests.analysis.cost_study import STEP, rows_of
from tests.analysis.cost_study import study as forms_study
from tests.analysis.letter_study import LEVELS, TIME, study_rows, write_handover
from tests.analysis.word_study import BASE_MS, COSTS_MS, MS_PER_BIT, SPILL, study


@pytest.fixture(scope="module")
def moving_window(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(study(tmp_path_factory.mktemp("words")))


@pytest.fixture(scope="module")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(study(tmp_path_factory.mktemp("linked"), people=16, items=18, linked=True))


def cells_of(text: str) -> pd.DataFrame:
    """Read cells from text: reader, item, position and value of each, parted by semicolons."""
    rows = pd.DataFrame(
        [cell.split() for cell in text.split(";")], columns=["reader", "item", "position", "value"]
    )
    return rows.astype({"value": float})


INTACT_AND_FINAL: Any = ("position", ("intact", "final"), 1, 200)


def test_a_profile_is_the_mean_over_participants_of_their_own_differences() -> None:
    cells = "a 1 intact 1; a 2 intact 3; a 3 final 5; b 1 intact 10; b 2 final 11; b 3 final 14"
    found = crossed_profile(cells_of(cells), *INTACT_AND_FINAL)
    assert found.estimate[0] == pytest.approx(((5 - 2) + (12.5 - 10)) / 2)
    assert (found.participants, found.items, found.resampled) == (2, 3, "participants and items")
    alone = crossed_profile(cells_of("a 1 intact 1; a 2 final 3"), *INTACT_AND_FINAL)
    assert alone.estimate[0] == 2.0 and np.isnan(alone.interval(0).low), "one participant has no interval"


def test_a_models_profile_pairs_its_items_and_leaves_out_those_without_both() -> None:
    cells = "m 1 intact 1; m 1 final 2; m 2 intact 4; m 2 final 7; m 3 final 100; m 4 intact 1; m 4 final 3"
    found = paired_profile(cells_of(cells), *INTACT_AND_FINAL)
    assert found.items == 3
    ends = (found.estimate[0], found.draws.min(), found.draws.max())
    assert ends == pytest.approx((2.0, 1.0, 3.0))


def test_a_profile_without_an_intact_level_is_refused() -> None:
    for make, said in ((crossed_profile, "'intact'"), (paired_profile, r"item .*'intact'")):
        with pytest.raises(UserError, match=said):
            make(cells_of("a 1 final 1"), *INTACT_AND_FINAL)


def test_the_crossed_bootstrap_covers_the_true_cost_about_as_often_as_it_says() -> None:
    """Items and participants vary in the effect; an interval over participants alone would miss it far more often."""
    draw = np.random.default_rng(7)
    covered, narrow = 0, 0
    for run in range(50):
        slopes_p, slopes_i = draw.normal(0, 0.05, 16), draw.normal(0, 0.15, 16)
        rows = [
            (
                f"p{p}",
                f"i{i}",
                level,
                (0.2 + slopes_p[p] + slopes_i[i]) * (level == "final") + draw.normal(0, 0.1),
            )
            for p in range(16)
            for i in range(16)
            for level in ("intact", "final")
        ]
        table = pd.DataFrame(rows, columns=["reader", "item", "position", "value"])
        ends = crossed_profile(table, "position", ("intact", "final"), seed=run, resamples=400).interval(0)
        covered += ends.low <= 0.2 <= ends.high
        own = table.pivot_table(index="reader", columns="position", values="value")
        difference = own["final"] - own["intact"]
        narrow += abs(difference.mean() - 0.2) <= 2.13 * difference.std() / 4
    assert covered >= 43
    assert narrow < 30


def test_log_ratios_of_people_are_those_put_in(tmp_path: Path) -> None:
    tables = load(write_handover(tmp_path, study_rows(human=48, items=48, seed=8)))
    found = cost_profiles(unit_costs(tables, "position"), study="t", resamples=500)
    table = log_ratios(found, "position").query("measure == 'reading_time'").set_index("position")
    for level in LEVELS[1:]:
        assert table.loc[level, "low"] < TIME[level] < table.loc[level, "high"]
        assert table.loc[level, "log_ratio"] == pytest.approx(TIME[level], abs=0.05)
    assert (table["participants"] == 48).all()
    assert table.loc["final", "percent"] == pytest.approx(100 * np.expm1(table.loc["final", "log_ratio"]))


def test_tokens_and_people_stand_side_by_side_as_ratios_and_profiles(tmp_path: Path) -> None:
    rows = study_rows(human=24, models=("m",), items=24)
    tokens = {"intact": 100.0, "initial": 200.0, "internal": 125.0, "final": 150.0}
    rows["reasoning_tokens"] = rows["position"].map(tokens).where(rows["reader_kind"] == "model")
    tables = load(write_handover(tmp_path, rows))
    found = cost_profiles(unit_costs(tables, "position"), study="t", resamples=300)
    table = log_ratios(found, "position").query("measure == 'reasoning_tokens'").set_index("position")
    assert table["log_ratio"].to_dict() == pytest.approx(
        {k: np.log(v / 100) for k, v in tokens.items() if v > 100}
    )
    shapes = profiles(found, "position")
    own = shapes.query("measure == 'reasoning_tokens'").set_index("position")
    logs = np.log([2.0, 1.25, 1.5])
    assert own["scaled"].to_numpy() == pytest.approx(logs / logs.mean())
    people = shapes.query("measure == 'reading_time'").set_index("position")
    assert people["scaled"].mean() == pytest.approx(1.0)
    assert own["difference"].to_numpy() == pytest.approx((own["scaled"] - people["scaled"]).to_numpy())
    assert people["difference"].isna().all()
    with pytest.raises(UserError, match="nobody"):
        profiles(found, "position", ("nobody", "rt"))


def test_spill_over_in_milliseconds_is_what_was_put_in(moving_window: Tables) -> None:
    found = spill_over(moving_window, "position", covariates=())
    table = found.table[found.table["scale"] == "ms"].set_index(["zone", "position"])
    shares = {"target": 1.0, "target + 1": SPILL[0], "target + 2": SPILL[1]}
    for zone, share in shares.items():
        for level, added in COSTS_MS.items():
            row = table.loc[(zone, level)]
            assert abs(row["estimate"] - share * added) < 3.5 * row["se"]
            assert row["low"] < row["estimate"] < row["high"]
    assert table.loc[("target", "initial"), "low"] > 60
    assert table["intact"].to_numpy() == pytest.approx(BASE_MS, rel=0.06)
    logs = found.table[found.table["scale"] == "log"].set_index(["zone", "position"])
    ratio = 100 * (COSTS_MS["initial"] / BASE_MS)
    assert logs.loc[("target", "initial"), "percent"] == pytest.approx(ratio, abs=6)
    assert set(found.table["reader_group"]) == {"human"}


def test_covariates_that_are_unknown_everywhere_are_told_once(of_words: Tables) -> None:
    table = word_table(of_words, "position")
    unknown = replace(table, words=table.words.assign(zipf=np.nan, previous_zipf=np.nan, letters=5.0))
    told = [one for one in spill_over(of_words, "position", table=unknown).remarks if "constant" in one]
    assert len(told) == 1 and "length of a word" in told[0] and told[0].count("frequency") == 2


def test_surprisal_of_changed_words_and_of_those_after_is_told_apart(moving_window: Tables) -> None:
    costs = unit_costs(moving_window, "position")
    table = costs.rows.groupby(["measure", "position"])["cost"].mean()
    for level, bits in word_study.BITS.items():
        rise = table["surprisal_changed"][level] - table["surprisal_changed"]["intact"]
        assert rise == pytest.approx(bits)
        assert table["surprisal_after"][level] == pytest.approx(table["surprisal_after"]["intact"])
    times = table["time_after"]
    assert times["initial"] > times["internal"] > times["intact"]


def test_milliseconds_per_bit_are_recovered_and_surprisal_foretells_unseen_items(linked: Tables) -> None:
    told = linking(linked, "position", words=("all", "unchanged"), folds=4)
    found = told.set_index(["words", "baseline", "spill_over"])
    for key in (("all", False, False), ("unchanged", True, True), ("all", True, True)):
        row = found.loc[key]
        assert row["slope_low"] < MS_PER_BIT < row["slope_high"]
        assert row["total_low"] < MS_PER_BIT < row["total_high"]
        assert row["gain"] > 0.1
        assert row["gain_high"] > row["gain"] > row["gain_low"] > 0
        assert row["delta_aic"] < -50
        assert row["sound"]
    assert len(found) == 8
    assert np.isfinite(found["slope"]).all()


def test_times_on_both_scales_agree_with_what_was_put_in(tmp_path: Path) -> None:
    planned = {
        "reading": {"measure": "reading_time", "compare": "position", "between": ["human"], "contrasts": []}
    }
    tables = load(write_handover(tmp_path, study_rows(human=24, items=24), planned=planned))
    plan = next(one for one in plans(tables) if one.measure.name == "reading_time")
    found = time_scales(plan, tables)
    assert found.own.model is not None
    assert (found.own.model.family, found.own.model.link) == ("Gamma", "identity")
    table = found.table.set_index("contrast")
    middle = np.exp(TIME["intercept"] + 0.2**2 / 2 + 0.1**2 / 2 + 0.3**2 / 2)
    for level in LEVELS[1:]:
        row = table.loc[f"{level} − intact"]
        assert row["percent_low"] < 100 * np.expm1(TIME[level]) < row["percent_high"]
        assert row["ms_low"] < middle * np.expm1(TIME[level]) * 1.25
        assert row["ms_high"] > middle * np.expm1(TIME[level]) * 0.75
    assert table.loc["initial − intact", "agree"] == "same"
    with pytest.raises(UserError, match=plan.measure.noun):
        time_scales(replace(plan, measure=replace(plan.measure, unit="")), tables)
    with pytest.raises(UserError, match="'poisson'"):
        time_scales(plan, tables, "poisson")


@pytest.fixture(scope="module")
def decisions(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(decision_study.study(tmp_path_factory.mktemp("decisions"), shared))


@pytest.mark.shared
def test_real_decisions_on_transposed_nonwords_take_longer_on_either_scale(decisions: Tables) -> None:
    found = time_scales(next(one for one in plans(decisions) if one.planned), decisions)
    row = found.table.iloc[0]
    used = decisions.trials[decisions.trials["rt_excluded"].isna()]
    own = used.assign(log=np.log(used["rt"])).pivot_table(
        index="reader", columns="position", values=["rt", "log"]
    )
    assert row["log_low"] > 0
    assert row["ms_low"] > 0
    assert row["agree"] == "same"
    log = (own["log"]["transposed"] - own["log"]["replaced"]).mean()
    assert row["log_estimate"] == pytest.approx(log, abs=0.01)
    ms = (own["rt"]["transposed"] - own["rt"]["replaced"]).mean()
    assert row["ms_low"] < ms < row["ms_high"]


FORM_LEVELS = ("as written", "mild", "strong")


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Chapter:
    folder = forms_study(
        tmp_path_factory.mktemp("forms"), FORM_LEVELS, people=18, models=("small", "large"), items=18
    )
    return chapter_of(write, load(folder))


@pytest.fixture(scope="module")
def of_words(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return load(word_study.study(tmp_path_factory.mktemp("words"), people=10, items=12, linked=True))


@pytest.fixture(scope="module")
def words(of_words: Tables) -> Chapter:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "linking", partial(linking, folds=4))
        return chapter_of(write, of_words)


def test_costs_put_in_are_those_of_the_table_and_the_text(forms: Chapter) -> None:
    table = tables_in(forms)["cost_ratios_form"]
    people = rows_under(table, "People: reading time")
    assert [row[0] for row in people] == list(FORM_LEVELS)
    assert people[0][3:] == ("–", "–", "–")
    for place, row in enumerate(people[1:], 1):
        (ratio,), (low, high) = row[3].values, row[4].values  # type: ignore[attr-defined]
        assert low < STEP * place < high
        assert ratio == pytest.approx(STEP * place, abs=0.08)
        assert f"{row[3]} {row[4]} ({row[5]}%) in the {row[0]}" in words_in(forms)
    tokens = rows_under(table, "small: completion tokens")
    assert float(tokens[2][3]) == pytest.approx(4 * STEP, abs=0.05)
    assert re.search("reasoning tokens .*large", words_in(forms), re.IGNORECASE)


def test_words_and_bits_stand_in_tables_whose_numbers_the_text_has(words: Chapter) -> None:
    spill = tables_in(words)["spill_over_position"]
    rows = [row for row in rows_under(spill, "People: the changed word") if row[1] == "ms"]
    assert [row[0] for row in rows] == ["initial", "internal", "final"]
    for row in rows:
        assert f"{row[0]} {row[3]} {row[7]} ms" in words_in(words)
    full = next(
        row
        for row in rows_under(tables_in(words)["linking_position"], "People by")
        if row[:3] == ("all", "yes", "yes")
    )
    _, low, high = full[3].values  # type: ignore[attr-defined]
    assert low < word_study.MS_PER_BIT < high
    assert str(full[3]) in words_in(words) and f"gain {full[5]}" in words_in(words)
    assert len(words.fits) >= 6
    assert any("glmer" in plain_text(one) for one in words.methods)
    assert any("glmer" in told for one in words.fits for told in one.fit.warnings)
    assert {"reading_profile_position", "time_distributions_position"} <= set(drawings_in(words))


def texts_of(figure: Figure) -> list[tuple[str, Any]]:
    """Return what is written and where; ticks outside an axis are kept by matplotlib and never drawn."""
    figure.canvas.draw()
    unseen = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not low <= tick.get_loc() <= high:
                    unseen |= {id(tick.label1), id(tick.label2)}
    return [
        (text.get_text(), text.get_window_extent())
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in unseen
    ]


@pytest.mark.parametrize(
    ("levels", "models"),
    [
        (("plain", "shuffled"), ()),
        (FORM_LEVELS, ("meta-llama/Llama-3.3-70B-Instruct-Turbo-Free", "m2")),
        pytest.param(
            tuple(f"condition number {n} of eight" for n in range(8)),
            tuple(f"maker/model-{n}-with-a-long-name" for n in range(8)),
            marks=pytest.mark.full,
        ),
    ],
)
def test_nothing_written_in_a_figure_overlaps(
    tmp_path: Path, levels: tuple[str, ...], models: tuple[str, ...]
) -> None:
    tables = load(forms_study(tmp_path, levels, people=6, models=models, items=8))
    parts = [
        distributions(tables, "form"),
        side_by_side(By(material_of(tables), tables, "form"), unit_costs(tables, "form", of_words=False)),
    ]
    drawings = [one for part in parts for one in part.blocks if isinstance(one, Drawing)]
    assert drawings
    for drawing in drawings:
        texts = [one for one in texts_of(drawing.figure) if one[1].width > 0]
        for place, (text, box) in enumerate(texts):
            for other, second in texts[place + 1 :]:
                overlap = box.padded(-1).overlaps(second.padded(-1))
                assert not overlap or text == other, f"{drawing.name}: {text!r} over {other!r}"


def changed(rows: pd.DataFrame, folder: Path, **dictionary: Any) -> Tables:
    rows = rows.assign(position=rows["form"])
    factors = {"form": {"levels": list(FORM_LEVELS), "reference": FORM_LEVELS[0]}}
    return load(write_handover(folder, rows, **{"factors": factors, "study": "forms"} | dictionary))


def test_a_study_without_times_tokens_and_bits_has_no_chapter(tmp_path: Path) -> None:
    rows = rows_of(FORM_LEVELS, people=2, models=("m",), items=6, with_tokens=False).assign(reading_time=None)
    pilots = rows_of(FORM_LEVELS, people=2, items=6).assign(is_pilot=True)
    for name, own in (("bare", rows), ("pilots", pilots), ("empty", rows.iloc[:0])):
        assert write(material_of(changed(own, tmp_path / name))) is None


def test_two_factors_have_a_part_each(tmp_path: Path) -> None:
    rows = rows_of(FORM_LEVELS, people=6, items=9)
    rows["size"] = np.where(rows["item_id"].str[-1].astype(int) % 2 == 0, "short", "long")
    factors = {"form": {"levels": list(FORM_LEVELS)}, "size": {"levels": ["short", "long"]}}
    chapter = chapter_of(write, changed(rows, tmp_path, factors=factors))
    assert {"cost_ratios_form", "cost_ratios_size"} <= set(tables_in(chapter))


def test_ways_of_asking_by_which_sessions_differ_have_parts(tmp_path: Path) -> None:
    ways = 2
    rows = rows_of(FORM_LEVELS, people=3 * ways, items=9)
    names = [f"w{number}" for number in range(ways)]
    places = {reader: number % ways for number, reader in enumerate(sorted(rows["reader"].unique()))}
    rows["way"] = rows["reader"].map(lambda reader: names[places[reader]])
    factors = {"form": {"levels": list(FORM_LEVELS)}, "way": {"levels": names}}
    tables = tables_in(chapter_of(write, changed(rows, tmp_path, factors=factors)))
    for name in names:
        own = tables[f"cost_ratios_form_way_{name}"]
        assert f"way {name}" in own.title
    assert "cost_ratios_form" not in tables


def test_the_reading_profile_counts_places_from_the_changed_word_and_averages_readers(
    of_words: Tables,
) -> None:
    table = reading_profile(of_words, "position").table
    own = table[table["measure"] == "surprisal"]
    keys = zip(own["position"], own["place"], strict=True)
    bits = dict(zip(keys, own["mean"].astype(float), strict=True))
    for level, more in word_study.BITS.items():
        rise = bits[level, 0] - bits["intact", 0]
        assert rise == pytest.approx(more)
        for place in (-2, -1, 1, 2):
            assert bits[level, place] == pytest.approx(bits["intact", place])
    assert sorted(table["place"].unique()) == [-2, -1, 0, 1, 2, 3]
    regions = of_words.regions
    own = regions[(regions["reader_kind"] == "human") & (regions["position"] == "final")]
    on = own[own["region"].isin(word_study.TARGETS)].groupby("reader")["rt"].mean()
    row = table[(table["measure"] == "time") & (table["position"] == "final") & (table["place"] == 0)].iloc[0]
    assert row["mean"] == pytest.approx(on.mean())
    assert (row["units"], row["interval"]) == (10, "within participants")
