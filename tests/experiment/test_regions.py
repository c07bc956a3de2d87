"""Named regions: marked in the text or counted from a mark, through versions and scrambles, into the tables and the analysis."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.costs.words import region_profile
from analysis.frames import time_data
from analysis.parameter_recovery import recovered, recovery_plans
from analysis.plan_runner import carry_out, carry_out_all
from analysis.planned import plans
from analysis.report.chapters.regions import write as write_chapter
from analysis.report.content import _cells_of
from analysis.report.described import planned_means
from analysis.report.planned_effects import planned_of
from analysis.robustness import gee_check
from analysis.tables import Tables, load
from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.models.engine import RegionScore
from experiment.models.planning.session import region_rows
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.store import open_store
from experiment.study import Study
from stimuli.errors import UserError
from tests.analysis.chapters import chapter_of, drawings_in, material_of, rows_in, tables_in
from tests.experiment.commands import let_take_part

REGIONS = "{critical: marked, spill: 2 after critical, pre: 1 before critical}"
TABLE = """\
item,sentence,question,answer
1,"While Anna *dressed*{|,} the [critical: *little* baby spat up] on the bed.",Baby?,Yes
2,"As Bill *counted*{|,} [critical: {the money|the coins}] fell to the floor [[sic]].",Bill?,No
"""
FILLER = "9,They read the whole letter.,Letter?,Yes,filler\n"
COMMA = "comma: [absent, present]"
SPELLING = "spelling: {intact: none, inner: {transpose: internal}}"
TRUTH = {
    "accuracy": {"intercept": 3.0, "effects": {}, "participant_sd": 0.0, "item_sd": 0.0},
    "time": {"intercept": 6.0, "effects": {}, "participant_sd": 0.0, "item_sd": 0.0, "residual_sd": 0.1},
    "words": {"residual_sd": 0.1, "participant_sd": 0.1},
    "regions": {"effects": {"critical": {"comma": {"present": -0.4}}, "spill": {"comma": {"present": -0.1}}}},
}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(
        table: str = TABLE,
        *,
        regions: str = REGIONS,
        factors: str = f"{COMMA}, {SPELLING}",
        planned: str = "",
        words: str = "starred",
        read: str = "as: moving_window",
    ) -> Study:
        (tmp_path / "sentences.csv").write_text(table, "utf-8")
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: regions\ntitle: Regions\nseed: 5\n"
            f"materials:\n  sentences: sentences.csv\n  scramble: {{words: {words}, min_letters: 5}}\n"
            + (f"  regions: {regions}\n" if regions else "")
            + f"design:\n  factors: {{{factors}}}\n"
            f"procedure:\n  - block:\n      trial:\n        - read: {{show: sentence, {read}}}\n"
            '        - choose: {show: question, keys: {"Yes": j, "No": f}}\n'
            + (f"analysis:\n  planned:\n    cost: {planned}\n" if planned else ""),
            "utf-8",
        )
        return load_study(tmp_path)

    return study


def collected(study: Study, readers: int, truth: dict[str, Any] = TRUTH) -> Tables:
    """Let simulated readers take part in a study, and return its tables."""
    build_study(study)
    study = load_study(study.folder)
    (study.folder / "simulated.json").write_text(json.dumps(truth), "utf-8")
    store = open_store(study.folder)
    let_take_part(study, store, readers=readers)
    folder = hand_over(study, store, study.folder / "handover")
    store.close()
    return load(folder)


def words_of(item: Any) -> dict[str, list[str]]:
    words = item.shown["sentence"].split()
    return {name: words[first:end] for name, (first, end) in item.key["regions"]["sentence"].items()}


def test_marks_name_the_same_words_in_every_version_and_form_and_are_in_no_text(make):
    made = make_items(make())
    by_condition = {(item.item_id, *item.condition.values()): item for item in made.items}
    intact = by_condition["1", "present", "intact"]
    assert intact.shown["sentence"] == "While Anna dressed, the little baby spat up on the bed."
    assert words_of(intact) == {
        "critical": ["little", "baby", "spat", "up"],
        "spill": ["on", "the"],
        "pre": ["the"],
    }
    scrambled = by_condition["1", "absent", "inner"]
    assert scrambled.shown["sentence"] != scrambled.intact["sentence"]
    assert words_of(scrambled)["critical"][1:] == ["baby", "spat", "up"]
    assert words_of(by_condition["2", "absent", "intact"])["critical"] == ["the", "money"]
    assert words_of(by_condition["2", "present", "intact"])["critical"] == ["the", "coins"]
    assert by_condition["2", "absent", "intact"].shown["sentence"].endswith("[sic].")
    bare = TABLE.replace("[critical: ", "").replace("] on", " on").replace("}] fell", "} fell")
    unmarked = make_items(make(bare.replace("[[sic]]", "[sic]"), regions=""))
    for item, other in zip(made.items, unmarked.items, strict=True):
        assert (item.shown, item.covariates, item.changes) == (other.shown, other.covariates, other.changes)


def test_marks_are_text_unless_regions_are_named(make):
    (item, *_) = make_items(make(regions="")).items
    assert "[critical: little" in item.shown["sentence"]
    assert "regions" not in item.key


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[critical: *", "[critcal: *", "critical"),
        ("spat up] on", "spat up on", "critical"),
        ("on the bed", "on [critical: the] bed", "critical"),
        ("on the bed", "on [spill: the] bed", "spill"),
        ("[critical: *little* baby spat up]", "[critical: ]*little* baby", "critical"),
        ("[critical: {the money|the coins}]", "{[critical: the money]|the coins}", "critical"),
    ],
)
def test_a_mark_that_cannot_be_meant_is_reported_with_its_line_and_every_other(make, old, new, named):
    with pytest.raises(UserError) as caught:
        make_items(make(TABLE.replace(old, new).replace("fell to", "fell [crit: to]")))
    assert "line 3" in str(caught.value)
    assert ("line 2" in str(caught.value)) == (old not in "[critical: {the money|the coins}]")
    assert named in str(caught.value)


def test_fillers_need_no_mark_and_a_region_beyond_the_text_is_reported(make):
    table = TABLE.replace("item,sentence,question,answer", "item,sentence,question,answer,role")
    table = table.replace(",Yes\n", ",Yes,\n").replace(",No\n", ",No,\n") + FILLER
    made = make_items(make(table, regions="{critical: marked, far: 4 after critical}", factors=COMMA))
    filler = next(item for item in made.items if item.role == "filler")
    assert "regions" not in filler.key
    (told,) = [remark for remark in made.remarks if "regions:" in remark]
    assert "critical 2 of 2 items" in told
    assert "far 1 of 2 items" in told
    assert any("far" in remark and remark.endswith(": 1") for remark in made.remarks)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"regions": "{critical: marked, spill: 2 after critcal}"}, "critical"),
        ({"regions": "{critical: marked, one: 1 after two, two: 1 after one}"}, "counted from it"),
        ({"factors": "order: {intact: none, moved: {words: shuffle}}"}, "moves words"),
        (
            {
                "read": "as: whole",
                "planned": "{measure: region_time, region: critical, compare: comma, between: [human]}",
            },
            "word by word",
        ),
        ({"planned": "{measure: region_time, compare: comma, between: [human]}"}, "critical, spill"),
        (
            {"planned": "{measure: reading_time, region: critical, compare: comma, between: [human]}"},
            "region_time",
        ),
        (
            {"planned": "{measure: region_time, region: [critical, spil], compare: comma, between: [human]}"},
            "spill",
        ),
        (
            {
                "planned": "{measure: rt, covariates: [previous_zipf, leters], compare: comma, between: [human]}"
            },
            "letters",
        ),
        (
            {"planned": "{measure: correct, covariates: [letters], compare: comma, between: [human]}"},
            "region_time",
        ),
    ],
)
def test_what_regions_cannot_mean_is_refused(make, settings, named):
    with pytest.raises(UserError) as caught:
        make(**settings)
    assert named in str(caught.value)


def test_pages_get_no_region_and_rows_of_people_and_models_have_their_names(make):
    study = make()
    build_study(study)
    study = load_study(study.folder)
    plan = plan_session(study, study.items, list_id=1, session_key="s")
    assert "critical" not in json.dumps(participant_view(plan))
    (trial,) = [trial for trial in trials_of(plan) if trial["item_id"] == "2"]
    n_words = len(trial["shown"]["sentence"].split())
    rows = region_rows(trial, [RegionScore(1.0, 1, 2.0)] * n_words)
    names = [row["region_names"] for row in rows]
    assert names[:7] == [None, None, "pre", "critical", "critical", "spill", "spill"]
    assert rows[3]["entropy"] == pytest.approx(2.0 / math.log(2))


def test_effects_on_regions_are_found_by_the_plan_with_its_covariates(make):
    subjects = ["Anna dressed", "the man hunted", "Bill ate", "Susan bathed", "Tom washed", "Mary sewed"]
    rows = [
        f'{n},"While {subject}{{|,}} the {noun} [critical: {verb} slowly] over the old garden wall.",So?,Yes'
        for n, (subject, noun, verb) in enumerate(
            zip(
                subjects * 2,
                ["baby", "deer", "cake", "puppy"] * 3,
                ["cried", "wandered", "fell"] * 4,
                strict=True,
            )
        )
    ]
    table = "item,sentence,question,answer\n" + "\n".join(rows)
    planned = (
        "{measure: region_time, region: [critical, spill], compare: comma, between: [human], "
        "contrasts: [absent - present], covariates: [trial_index, letters, zipf, previous_zipf]}"
    )
    tables = collected(make(table, factors=COMMA, planned=planned), 10)
    analyses = carry_out_all(plans(tables), tables)
    assert [analysis.plan.measure.name for analysis in analyses] == [
        "region_time_critical",
        "region_time_spill",
    ]
    for analysis, effect in zip(analyses, (0.4, 0.1), strict=True):
        (contrast,) = analysis.contrasts
        assert abs(contrast.estimate - effect) < 4 * contrast.se
        assert contrast.family == 2
        key = planned_of(analysis)
        ((drawing, _),) = planned_means(
            analysis, _cells_of(analysis), tables.trials, tables, {key: ("%", ())}
        )
        assert drawing.name == f"condition_{'_'.join(key)}"
        assert "letters_centred + zipf_centred + previous_zipf_centred" in analysis.model.formula
        checks = gee_check(tables, analysis.plan)
        assert checks["estimate"].to_numpy() == pytest.approx(contrast.estimate, abs=0.02)
    regions = tables.regions
    in_critical = regions[
        regions["region_names"].fillna("").str.split(",").map(lambda names: "critical" in names)
    ]
    sums = in_critical.groupby(["session_id", "trial_index"])["rt"].sum()
    at = tables.trials.set_index(["session_id", "trial_index"])["region_time_critical"]
    assert at.loc[sums.index].to_numpy() == pytest.approx(sums.to_numpy())
    profile = region_profile(tables, "comma", "critical")
    assert profile.regions == {"pre": (-1, 0), "critical": (0, 2), "spill": (2, 4)}
    means = profile.table.set_index(["comma", "place"])["mean"]
    assert means["present", 0] / means["absent", 0] == pytest.approx(math.exp(-0.4), rel=0.1)
    assert means["present", -1] / means["absent", -1] == pytest.approx(1.0, rel=0.1)
    chapter = chapter_of(write_chapter, material_of(tables, analyses))
    assert list(drawings_in(chapter)) == ["regions_comma"]
    assert len(rows_in(tables_in(chapter)["regions_comma"])) == len(profile.table)
    assert [plan.measure.name for plan in recovery_plans(tables)] == [
        "region_time_critical",
        "region_time_spill",
    ]
    (simulated,) = recovered(carry_out(recovery_plans(tables)[0], tables), tables)
    assert simulated.truth == pytest.approx(-0.4)
    assert simulated.covered


def test_an_interaction_put_into_a_region_is_recovered(make):
    rows = [
        f'{n},"While {name} dressed{{comma: |,}} the {{age: baby|boy}} [critical: cried slowly] over the wall.",So?,Yes'
        for n, name in enumerate(["Anna", "Bill", "Carl", "Dora"] * 2)
    ]
    contrast = "(present - absent) x (old - young)"
    planned = (
        "{measure: region_time, region: critical, compare: [comma, age], between: [human], "
        f"contrasts: [{contrast}]}}"
    )
    table = "item,sentence,question,answer\n" + "\n".join(rows)
    study = make(table, factors=f"{COMMA}, age: [young, old]", planned=planned, regions="{critical: marked}")
    effects = {"comma": {"present": -0.2}, "comma x age": {"present x old": 0.6}}
    tables = collected(study, 8, {**TRUTH, "regions": {"effects": {"critical": effects}}})
    compared = [one for plan in recovery_plans(tables) for one in recovered(carry_out(plan, tables), tables)]
    assert [one.truth for one in compared] == pytest.approx([-0.2 + 0.6 / 2, 0.6 / 2, 0.6])
    assert all(one.covered for one in compared)


def test_covariates_of_whole_texts_are_those_of_the_items_in_each_condition(make):
    planned = (
        "{measure: reading_time, compare: comma, between: [human], covariates: [letters, zipf, trial_index]}"
    )
    tables = collected(make(factors=COMMA, planned=planned), 4)
    (plan,) = plans(tables)
    data = time_data(tables.trials, plan, None)
    shown = {
        (row["item_id"], row["comma"]): json.loads(row["shown"])["sentence"]
        for row in tables.items.to_dict("records")
    }
    letters = [
        sum(map(str.isalpha, shown[key]))
        for key in zip(data.rows["item_id"], data.rows["comma"], strict=True)
    ]
    assert data.rows["letters_centred"].mean() == pytest.approx(0, abs=1e-9)
    assert data.rows["letters_centred"].to_numpy() == pytest.approx(
        [count - sum(letters) / len(letters) for count in letters], abs=0.02
    )


def test_one_excluded_word_excludes_its_region(make, tmp_path):
    tables_of = {}
    for bounds in ("outside 1 ms to 60 s", "outside 330 ms to 60 s"):
        folder = tmp_path / bounds[8:11].strip()
        folder.mkdir()
        study = make(
            factors=COMMA,
            planned="{measure: region_time, region: critical, compare: comma, between: [human]}",
        )
        yaml = (study.folder / "study.yaml").read_text("utf-8")
        yaml = yaml.replace("analysis:\n", f"analysis:\n  exclude: {{regions: {{rt: {bounds}}}}}\n")
        (folder / "study.yaml").write_text(yaml, "utf-8")
        (folder / "sentences.csv").write_text(TABLE, "utf-8")
        tables_of[bounds] = collected(load_study(folder), 6)
    every, some = tables_of.values()
    trials = every.trials.assign(excluded_reason="set aside")
    assert replace(every, trials=trials).regions["excluded_reason"].eq("set aside").all()
    assert not every.regions["is_excluded_itself"].any()
    assert every.trials["region_time_critical"].notna().all()
    regions = some.regions
    critical = regions[regions["region_names"].fillna("").str.contains("critical")]
    is_out = critical.groupby(["session_id", "trial_index"])["excluded_reason"].apply(
        lambda r: r.notna().any()
    )
    at = some.trials.set_index(["session_id", "trial_index"])["region_time_critical"]
    assert is_out.any()
    assert at.loc[is_out.index].isna().to_numpy().tolist() == is_out.tolist()


@pytest.mark.parametrize("by", ["word", "chunk", "sentence"])
def test_regions_are_counted_in_chunks_and_found_in_every_part_that_is_read(make, by):
    table = (
        "item,sentence,question,answer\n"
        "1,The old man / [critical: counted / the coins] / on the table. / He smiled.,Coins?,Yes\n"
        "2,那个老人/[critical: 数了]/硬币/然后笑了。,硬币?,Yes\n"
    )
    study = make(
        table,
        factors="spelling: {intact: none, same: none}",
        words="all",
        read=f"as: moving_window, by: {by}",
    )
    made = make_items(study)
    plan = plan_session(study, made.items, list_id=1, session_key="s")
    first, second = sorted(trials_of(plan), key=lambda trial: trial["item_id"])

    def named(trial: dict[str, Any], name: str) -> str:
        parts = trial["steps"][0]["parts"] or trial["steps"][0]["text"].split()
        begin, end = trial["regions"][name]
        return " ".join(parts[begin:end])

    assert "regions" in first
    if by == "chunk":
        assert named(first, "critical") == "counted the coins"
        assert named(first, "spill") == "on the table. He smiled."
        assert named(first, "pre") == "The old man"
        assert [named(second, name) for name in ("critical", "spill", "pre")] == [
            "数了",
            "硬币 然后笑了。",
            "那个老人",
        ]
    elif by == "word":
        assert named(first, "critical").startswith("counted")
    else:
        assert named(first, "critical") == "The old man / counted / the coins / on the table."
