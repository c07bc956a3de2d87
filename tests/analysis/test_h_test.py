"""H-TEST: accuracy, paired tests, letter geometry, pictures and readings of answers, on trials whose shares are known."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis import Tables, apa, load
from analysis.apa import MISSING
from analysis.figures import Drawing
from analysis.multiple_comparisons import interval_levels
from analysis.plan_deviations import why_no_bound
from analysis.plan_runner import carry_out_all
from analysis.planned import plans
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Chapter
from experiment.papers.h_test.chapter import parsers_blocks, together, write, write_geometry
from experiment.papers.h_test.chapter.measures import (
    ALL,
    TASKS,
    accuracy,
    asked,
    between_makings,
    both_parsers,
    both_tests,
    by_option_alone,
    family_pairs,
    geometry,
    is_as_published,
    label_maps,
    mean_with_ends,
    paired,
    picture_pairs,
    pictures_by_part,
    printed,
    rules_by_task,
    rules_stated,
    share,
    thinking_pairs,
)
from stimuli.errors import UserError
from stimuli.recipes.htest import geometry_released_items
from tests.analysis.chapters import chapter_of, material_of, rows_by_head, rows_in, tables_in, words_in
from tests.analysis.letter_study import trial, write_handover
from tests.experiment.models.running import invoke

KS = (4, 14, 28, 50)
BETWEEN: dict[str, dict[str, Any]] = {
    "items_from": {name: {"items": name} for name in ("released", "fresh", "matched")},
    "examples": {f"k{k}": {"exemplars": k} for k in KS},
}
READERS: dict[str, dict[str, Any]] = {
    "small": {"kind": "model", "use": "hf:small", "settings": {"family": "F", "parameters": "1B"}},
    "large": {"kind": "model", "use": "hf:large", "settings": {"family": "F", "parameters": "7B"}},
    "large-thinks": {"kind": "model", "use": "hf:large", "settings": {"strategy": "chain_of_thought"}},
}
RIGHT = {"small": 0.5, "large": 0.8, "large-thinks": 0.8, "P1": 0.9, "reads": 0.5, "looks": 0.5}


def rows_of(
    reader: str, kind: str, *, items: int = 10, tasks: tuple[str, ...] = TASKS, ks: tuple[int, ...] = KS
) -> list[dict[str, Any]]:
    """Make a reader's trials: right in a share of items that is its own, ten points fewer with matched items."""
    made: list[dict[str, Any]] = []
    for making in BETWEEN["items_from"]:
        share = RIGHT[reader] - (0.1 if making == "matched" else 0)
        for k in ks:
            session = f"{reader}-{making}-{k}"
            for task in tasks:
                if task == "rhyme" and making == "fresh":
                    continue
                for item in range(items + 1):
                    stated = item == items
                    unread = reader == "large-thinks" and item == 0
                    right = item >= round((1 - share) * items)
                    rated = stated and kind == "human"
                    told = {
                        **{"session_id": session, "set": task, "task": task, "items_from": making},
                        **{"examples": f"k{k}", "is_filler": stated, "label_map": "A=A,B=B"},
                        "trial_type": "answer" if stated else "choose",
                        "response_status": "unparsed" if unread else "valid",
                        "correct": None if stated or unread else right,
                        "score": (1.0 if task != "rhyme" else 0.5) if rated else None,
                        "scorer": "rated-1" if rated else None,
                    }
                    name = f"{task} rule" if stated else f"{making}-{task}-{item}"
                    made.append(trial(reader, kind, name, len(made), **told))
    return made


def study(
    folder: Path, rows: list[dict[str, Any]], readers: Mapping[str, Any] = READERS, **more: Any
) -> Tables:
    """Write a handover and load it."""
    levels_of = {"task": list(TASKS), **{name: list(levels) for name, levels in BETWEEN.items()}}
    factors = {name: {"levels": levels, "reference": levels[0]} for name, levels in levels_of.items()}
    trials = pd.DataFrame(rows).astype({"score": float, "scorer": "string"})
    return load(
        write_handover(folder, trials, factors=factors, between=BETWEEN, readers=dict(readers), **more)
    )


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    rows = [row for name in READERS for row in rows_of(name, "model")] + rows_of("P1", "human", ks=(4,))
    return study(tmp_path_factory.mktemp("h"), rows, {**READERS, "human": {"kind": "human"}})


@pytest.fixture(scope="module")
def chapter(tables: Tables) -> Chapter:
    return chapter_of(write, tables)


def test_what_cannot_be_read_is_wrong_and_adjusted_accuracy_leaves_it_out(tables: Tables) -> None:
    found = asked(tables)
    assert found is not None and found.ks == KS and found.makings == ("released", "fresh", "matched")
    shares = accuracy(found.trials, ("k", "making"))
    shares = shares.set_index(["reader_group", "k", "making", "task"])
    one = shares.loc["large-thinks", 14, "released", "average"]
    assert one["accuracy"] == pytest.approx(0.8) and one["out_of_context"] == pytest.approx(0.1)
    assert one["adjusted"] == pytest.approx(8 / 9)
    assert shares.loc["small", 50, "matched", "uppercase"]["accuracy"] == pytest.approx(0.4)


def test_the_full_table_is_laid_out_as_the_papers(chapter: Chapter) -> None:
    full = tables_in(chapter)["h_test_full_released"]
    names = [full.rows[place][0] for place in (0, 1, 11, 12)]
    assert names == ["k = 4", "Uppercase", "Average", "k = 14"]
    assert full.columns[1:] == ("People", "large", "large-thinks", "small")
    assert full.rows[11] == ("Average", "90.0", "80.0", "80.0", "50.0")
    assert full.rows[13][1] == "–"


def test_p_and_interval_of_a_pair_are_of_one_t_test() -> None:
    first = pd.DataFrame({"making": "", "task": "t", "item_id": range(40), "right": [1.0] * 20 + [0.0] * 20})
    second = first.assign(right=[1.0] * 15 + [0.0] * 5 + [1.0] * 13 + [0.0] * 7)
    found = paired(first, second, 0.5)
    assert found is not None and found.changed == 18 and found.items == 40
    test = stats.ttest_rel(second["right"], first["right"])
    assert found.p == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(test.confidence_interval()))
    assert found.difference == pytest.approx(8 / 40) and found.p_equal < 0.01
    twice = paired(pd.concat([first, first]), pd.concat([second, second]), 0.5)
    assert twice == found


def test_conditions_without_a_difference_are_alike_only_with_enough_items() -> None:
    few = pd.DataFrame({"making": "", "task": "t", "item_id": range(10), "right": 1.0})
    many = pd.DataFrame({"making": "", "task": "t", "item_id": range(100), "right": 1.0})
    one, other = paired(few, few, 0.05), paired(many, many, 0.05)
    assert one is not None and other is not None
    assert one.p == other.p == 1 and one.p_equal > 0.2 and other.p_equal < 0.01
    assert other.difference == 0 and other.high == -other.low == pytest.approx(0.02, abs=0.001)
    gone = paired(many, many.assign(right=0.0))
    assert gone is not None and gone.difference == gone.low == -1 and -1 < gone.high < -0.9
    assert paired(few[:9], few[:9]) is None


def test_makings_are_contrasted_over_the_tasks_that_both_have(tables: Tables, chapter: Chapter) -> None:
    found = asked(tables)
    assert found is not None
    own = found.trials[found.trials["reader_group"] == "large"]
    one = between_makings(own[own["making"] == "fresh"], own[own["making"] == "matched"])
    assert one is not None and one.tasks == 9 and one.difference == pytest.approx(-0.1)
    told = {(row[0], row[1]): row[4] for row in tables_in(chapter)["h_test_makings"].rows}
    assert told["large", "fresh − released"] == "0.0" and told["large", "matched − fresh"] == "−10.0"


def test_the_chapter_compares_what_the_paper_claims_has_no_effect(chapter: Chapter) -> None:
    under = rows_by_head(tables_in(chapter)["h_test_paired"])
    compared = {(head, row[0]): row for head, rows in under.items() for row in rows}
    assert compared["small, released items", "k = 4, k = 50"][5] == "0.0"
    assert compared["small, released items", "small, large (F)"][5] == "30.0"
    assert ("large, matched items", "direct, chain of thought (large-thinks)") in compared
    text = words_in(chapter)
    assert why_no_bound([]) in text and "large 80.0%" in text and "adjusted p < .05" in text


def test_adjusted_intervals_are_headed_by_the_levels_that_they_have(chapter: Chapter) -> None:
    for name in ("h_test_paired", "h_test_makings"):
        table = tables_in(chapter)[name]
        at = {head: place for place, head in enumerate(table.columns)}
        p = [str(row[at["p adjusted"]]) for row in rows_in(table) if str(row[at["p"]]) != MISSING]
        levels = interval_levels(np.array([p_of(text) for text in p]))
        by_size = sorted(set(100 * levels), reverse=True)
        assert " or ".join(f"{level:.1f}".removesuffix(".0") for level in by_size) + "% CI" in at


def p_of(text: str) -> float:
    """Read a printed p."""
    return 0.0 if text.startswith("<") else 1.0 if text.startswith(">") else float(text)


def test_what_the_results_test_has_no_second_interval_in_the_chapter(tmp_path: Path) -> None:
    rows = rows_of("small", "model", tasks=TASKS[:2], ks=(4, 14)) + rows_of("P1", "human", ks=(4,))
    plan = {"measure": "correct", "compare": "items_from", "between": ["human", "small"]}
    planned = {"items": {**plan, "contrasts": ["fresh - released"]}}
    tables = study(
        tmp_path / "t", rows, {"small": READERS["small"], "human": {"kind": "human"}}, planned=planned
    )
    alone = chapter_of(write, tables)
    with_results = chapter_of(write, material_of(tables, carry_out_all(plans(tables), tables)))
    contrasts = {row[0] for row in tables_in(alone)["h_test_makings"].rows}
    assert contrasts == {"small"}, "of people the variance is also that of participants"
    told = {row[1] for row in tables_in(with_results)["h_test_makings"].rows}
    assert told == {"matched − fresh"}


def test_a_run_that_is_not_finished_is_compared_over_labels_that_both_conditions_asked(
    tmp_path: Path,
) -> None:
    """Swapped labels, all answered wrong, were asked with four examples alone: fourteen examples are no better for that."""
    rows = [
        one | {"label_map": labels, "correct": labels == "A=A,B=B" and not one["is_filler"]}
        for one in rows_of("small", "model", tasks=TASKS[:1], ks=(4, 14))
        for labels in ("A=A,B=B", "A=B,B=A")
        if labels == "A=A,B=B" or one["examples"] == "k4"
    ]
    chapter = chapter_of(write, study(tmp_path / "t", rows))
    told = {row[0]: row for row in rows_in(tables_in(chapter)["h_test_paired"])}
    assert told["k = 4, k = 14"][1:6] == ("10", "0", "100.0", "100.0", "0.0")
    assert told["labels as published, swapped"][3:6] == ("100.0", "0.0", "\u2212100.0")


def test_rules_that_people_state_are_counted_as_in_table_7(tables: Tables, chapter: Chapter) -> None:
    found = asked(tables)
    assert found is not None
    stated = rules_stated(found.statements).query("reader_group == 'human'").iloc[0]
    assert (stated["rated"], stated["right"], stated["readers"]) == (29, 27, 1)
    rules = tables_in(chapter)["h_test_rules"]
    assert rules.columns == ("", "k = 4", "k = 14", "k = 28", "k = 50")
    place = [row[0] for row in rules.rows].index("People")
    right, given, readers = rules.rows[place + 1 : place + 4]
    assert right[1:] == ("27/29", "–", "–", "–") and given[1] == "29" and readers[1:] == ("1", "0", "0", "0")


def test_printed_cells_show_which_averages_the_paper_got_wrong() -> None:
    cells = printed().dropna(subset=["k"]).set_index(["k", "model", "task"])["printed"].sort_index()
    claude = cells.loc[(50, "Claude V2")]
    assert claude["average"] == 0.619 and claude.drop("average").mean() == pytest.approx(0.6185)
    llama = cells.loc[(50, "LLaMA 2 70B")]
    assert llama["average"] == 0.448 and llama.drop("average").mean() == pytest.approx(0.4515)
    geometry = printed()[printed()["k"].isna()]
    assert set(geometry["task"]) == {"letter_geometry"} and len(geometry) == 6


SHARES = {"small": 10, "large": 30, "P1": 36}


def questions(folder: Path) -> Tables:
    """Write a study of 40 questions, of which each reader answers so many right."""
    rows = [
        trial(reader, "human" if reader == "P1" else "model", f"q{item}", item, set="letter_geometry",
              family="rotation" if item % 2 else "flip", correct=item < right)
        for reader, right in SHARES.items() for item in range(40)
    ]  # fmt: skip
    factors = {"family": {"levels": ["rotation", "flip"], "reference": "rotation"}}
    return load(write_handover(folder, pd.DataFrame(rows), factors=factors, readers={}))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, Tables]:
    folder = tmp_path_factory.mktemp("both")
    rows = [row for name in ("small", "large") for row in rows_of(name, "model", ks=(4, 50))]
    return study(folder / "tasks", rows, READERS), questions(folder / "letters")


def test_shares_are_tested_against_chance(both: tuple[Tables, Tables]) -> None:
    rows = geometry(both[1])
    assert rows is not None
    for reader, right in SHARES.items():
        own = share(rows[rows["reader"] == reader])
        assert (own.items, own.value) == (40, right / 40)
        if reader != "P1":
            assert own.p == pytest.approx(stats.binomtest(right, 40, 0.25).pvalue)
    twice = rows[rows["reader"] == "small"]
    again = share(pd.concat([twice, twice]))
    units = [1.0] * 10 + [0.0] * 30
    assert again.answers == 80 and again.p == pytest.approx(stats.ttest_1samp(units, 0.25).pvalue)


def test_the_chapter_tells_each_kind_of_question(both: tuple[Tables, Tables]) -> None:
    chapter = chapter_of(write_geometry, both[1])
    assert write_geometry(material_of(both[0])) is None
    table = next(iter(tables_in(chapter).values()))
    assert [row[0] for row in table.rows] == ["People", "Rotation", "Flip", "All questions"] + [
        name for reader in ("large", "small") for name in (reader, "Rotation", "Flip", "All questions")
    ]
    assert table.rows[3][3] == "90.0" and "large 75.0%" in words_in(chapter)


@pytest.mark.shared
def test_a_rule_about_options_alone_answers_79_of_the_90_released_questions(shared: Path) -> None:
    items = [
        {"set": item.set_name, "item_id": item.item_id, "role": item.role, "answer": item.answer}
        | {"choices": json.dumps(item.choices)}
        for item in geometry_released_items(shared / "data" / "htest")
    ]
    assert by_option_alone(pd.DataFrame(items)) == (79, 90)
    assert by_option_alone(pd.DataFrame(items).assign(set="other")) is None
    assert by_option_alone(pd.DataFrame()) is None


def test_intervals_are_students_over_people_and_wilsons_of_a_models_answers() -> None:
    rows = pd.DataFrame(
        {"reader": reader, "task": "flip", "item_id": f"q{item}", "right": float(item < right)}
        for reader, right in {"P1": 4, "P2": 7, "P3": 9}.items()
        for item in range(10)
    )
    people = mean_with_ends(rows.assign(reader_kind="human"))
    low, high = stats.t.interval(0.95, 2, loc=200 / 3, scale=stats.sem([40, 70, 90]))
    assert high > 100 and people == pytest.approx((200 / 3, low, 100.0))
    alone = mean_with_ends(rows[rows["reader"] == "P1"].assign(reader_kind="human"))
    assert alone[0] == 40 and np.isnan(alone[1:]).all()
    # a model that is right in all of ten items may be wrong in others
    perfect = mean_with_ends(rows.assign(reader_kind="model", right=1.0))
    assert perfect == pytest.approx(
        (100.0, 100 * stats.binomtest(10, 10).proportion_ci(method="wilson").low, 100.0)
    )
    # of three answers to an item all count, as far as items do not differ
    half = rows.assign(
        reader_kind="model", right=[1.0] * 5 + [0.0] * 5 + [0.0] * 5 + [1.0] * 5 + [1.0] * 5 + [0.0] * 5
    )
    thrice = mean_with_ends(half)
    few, many = (stats.binomtest(n // 2, n).proportion_ci(method="wilson") for n in (10, 30))
    assert 100 * few.low < thrice[1] <= 100 * many.low < 100 * many.high <= thrice[2] < 100 * few.high
    assert thrice[2] - thrice[1] == pytest.approx(100 * (many.high - many.low), rel=0.1)


def test_reproducing_h_test_makes_a_page_of_figure_5_from_both_studies_in_either_order(
    both: tuple[Tables, Tables], tmp_path: Path
) -> None:
    tasks, letters = (one.folder for one in both)
    done = invoke("reproduce", "h-test", letters, tasks, "--out", tmp_path / "o")
    assert done.exit_code == 0, done.output
    page = (tmp_path / "o" / "index.html").read_text("utf-8")
    assert "<svg" in page and "figure_5_numbers.csv" in page
    assert {one.name for one in (tmp_path / "o").iterdir()} >= {
        "figure_5.png", "figure_5.svg", "figure_5_numbers.csv",
    }  # fmt: skip
    assert [one.name for one in together([tasks, letters])] == ["figure_5", "figure_5_numbers"]
    for given, said in (
        ([tasks], "two .*1 given"),
        ([tasks, tasks], "letter geometry"),
        ([letters, letters], "H-TEST's tasks"),
    ):
        with pytest.raises(UserError, match=said):
            together(given)


def test_a_reader_who_has_not_answered_all_tasks_has_no_average_and_no_point(
    both: tuple[Tables, Tables], tmp_path: Path
) -> None:
    """Tasks differ in how hard they are: a mean of some is no mean of all."""
    tables = both[0]
    trials = tables.trials
    last = sorted(trials["task"].dropna().unique())[-1]
    gone = (trials["reader"] == "small") & (trials["task"] == last) & (trials["examples"] == "k50")
    part = study(tmp_path / "part", trials[~gone].to_dict("records"), READERS)
    found, rows = asked(part), geometry(both[1])
    assert found is not None and rows is not None
    assert {one.group for one in both_tests(found, rows)} == {"large"}
    shares = accuracy(found.trials, ("k",))
    means = shares[shares["task"] == "average"].set_index(["reader_group", "k"])["accuracy"]
    assert np.isnan(means["small", 50]) and means[[("small", 4), ("large", 4)]].notna().all()
    told: list[str] = []
    drawing, _ = together([part.folder, both[1].folder], told.append)
    assert len(told) == 1 and told[0].endswith(": small.")
    assert isinstance(drawing, Drawing) and drawing.note.endswith(told[0])


def trials(task: str, number: int = 20, reader: str = "talker") -> pd.DataFrame:
    return pd.DataFrame(
        {
            **{"reader_group": reader, "reader_kind": "model", "session_id": f"{reader}-{task}"},
            "trial_index": range(number),
            **{"attempt": 1, "making": "", "task": task, "item_id": [f"{task}-{n}" for n in range(number)]},
        }
    )


def parsed(
    rows: pd.DataFrame, published: Sequence[float | None], corrected: Sequence[float | None]
) -> pd.DataFrame:
    place = rows[["session_id", "trial_index", "attempt"]]
    return place.assign(
        published=pd.Series(published, dtype=float), corrected=pd.Series(corrected, dtype=float)
    )


def test_both_parsers_are_told_with_what_each_leaves_unread(tmp_path: Path) -> None:
    one, other = trials("uppercase"), trials("rhyme")
    # of 20 replies 5 are "I cannot tell": A to the published parser (right 4 times), nothing to a correct one
    told = parsed(one, [1.0] * 14 + [0.0] * 6, [1.0] * 10 + [0.0] * 5 + [None] * 5)
    alike = parsed(other, [1.0] * 10 + [0.0] * 10, [1.0] * 10 + [0.0] * 10)
    pd.concat([told, alike]).to_parquet(tmp_path / "published_parsing.parquet")
    unasked = trials("uppercase", reader="P1")
    found = both_parsers(pd.concat([one, other, unasked]), tmp_path, TASKS)
    assert [(read.reader_group, read.task) for read in found] == [
        ("talker", "uppercase"),
        ("talker", "rhyme"),
        ("talker", "average"),
    ]
    first, second, mean = found
    assert (first.published, first.corrected, first.turned) == (0.7, 0.5, 9)
    assert (first.unread_published, first.unread_corrected) == (0.0, 0.25)
    assert first.compared is not None and first.compared.p > 0.05 and first.compared.high > 0
    assert second.turned == 0 and second.compared is not None and second.compared.p == 1
    blocks = parsers_blocks("own", [second], {"talker": "model"})
    assert [block.withheld for block in blocks if isinstance(block, ApaTable)] == [
        "both parsers read every reply alike"
    ]
    assert (
        mean.replies == 40 and mean.published == pytest.approx(0.6) and mean.corrected == pytest.approx(0.5)
    )
    assert mean.unread_corrected == pytest.approx(0.125)


def test_a_reader_that_says_a_throughout_is_found_out_by_swapped_labels() -> None:
    maps = ["A=A,B=B"] * 10 + ["A=B,B=A"] * 10
    classes = ["A"] * 6 + ["B"] * 4 + ["A"] * 6 + ["B"] * 4
    meant = ["A"] * 10 + ["B"] * 10  # the letter A stands for class A, then for class B
    rows = pd.DataFrame({"reader_group": "m", "label_map": maps, "response": meant, "answered": 1.0})
    rows["right"] = [float(a == b) for a, b in zip(classes, meant, strict=True)]
    (one,) = label_maps(rows).to_dict("records")
    assert (one["published"], one["swapped"]) == (0.6, 0.4) and one["counterbalanced"] == pytest.approx(0.5)
    assert one["says_a_published"] == one["says_a_swapped"] == 1.0
    assert label_maps(rows[:10]).empty and is_as_published("A=A,B=B") and not is_as_published("A=B,B=A")


def test_rules_stand_beside_what_the_same_readers_sorted() -> None:
    sorting = [
        {"reader_group": "human", "session_id": who, "task": "rhyme", "right": right}
        for who, rights in (("a", (1, 1)), ("b", (1, 0)), ("c", (0, 0)))
        for right in rights
    ]
    stating: list[dict[str, Any]] = [
        {"session_id": "a", "score": 1.0, "scorer": "rated-1"},
        {"session_id": "b", "score": 0.5, "scorer": "rated-1"},
        {"session_id": "c", "score": None, "scorer": None},
    ]
    said = pd.DataFrame(stating).assign(
        reader_group="human", item_id="released-rhyme rule", response_status="valid"
    )
    (one,) = rules_by_task(pd.DataFrame(sorting), said).to_dict("records")
    assert one["task"] == "rhyme" and one["sorted"] == pytest.approx(0.5)
    assert (one["stated"], one["rated"], one["right"]) == (3, 2, 1)
    assert one["sorted_knowing"] == 1.0 and one["sorted_otherwise"] == 0.5


def test_the_chapter_shows_parsers_labels_and_rules(tmp_path: Path) -> None:
    rows = rows_of("small", "model", tasks=("uppercase", "rhyme"), ks=(4, 14)) + rows_of(
        "P1", "human", tasks=("uppercase", "rhyme"), ks=(4,)
    )
    for number, row in enumerate(rows):
        row["label_map"] = "A=A,B=B" if number % 2 else "A=B,B=A"
        row["response"] = None if row["is_filler"] else "A"
    folder = tmp_path / "h"
    tables = study(folder, rows, {**READERS, "human": {"kind": "human"}})
    found = asked(tables)
    assert found is not None
    own = found.trials[found.trials["reader_group"] == "small"]
    place = own[["session_id", "trial_index", "attempt"]]
    place.assign(published=own["right"], corrected=1.0).to_parquet(folder / "published_parsing.parquet")
    chapter = chapter_of(write, tables)
    shown = tables_in(chapter)
    assert {"h_test_parsers", "h_test_labels", "h_test_rules_tasks"} <= set(shown)
    assert not shown["h_test_parsers"].withheld
    assert not shown["h_test_rules_tasks"].withheld
    unrated = replace(tables, trials=tables.trials.assign(scorer=None))
    rules = {name: table for name, table in tables_in(chapter_of(write, unrated)).items() if "rules" in name}
    assert rules and {table.withheld for table in rules.values()} == {"no rule is rated yet"}
    average = shown["h_test_parsers"].rows[-1]
    assert average[0] == "Average" and average[2] == "100.0" and len(shown["h_test_parsers"].rows) == 4
    text = words_in(chapter)
    assert "out of context" in text and re.search(r"small: .* 100\.0%", text)


def reader(use: str = "openai:m", **settings: Any) -> dict[str, Any]:
    return {"kind": "model", "use": use, "settings": {"use": use, **settings}}


TWINS = {
    "reads": reader(family="F", parameters="1B"),
    "looks": reader(family="F", parameters="1B", presentation="image"),
    "larger": reader("openai:n", family="F", parameters="7B"),
    "larger-looks": reader("openai:n", family="F", parameters="7B", presentation="image"),
    "thinks": reader(strategy="chain_of_thought"),
    "looks-thinks": reader(strategy="chain_of_thought", presentation="image"),
    "half": reader("openai:n", presentation="image", examples_presentation="text"),
}


def test_a_model_shown_pictures_is_never_compared_with_one_shown_text_but_with_itself() -> None:
    assert thinking_pairs(TWINS) == [("reads", "thinks"), ("looks", "looks-thinks")]
    assert family_pairs(TWINS) == [("F", "reads", "larger"), ("F, pictures", "looks", "larger-looks")]
    same_examples = [("reads", "looks"), ("larger", "larger-looks"), ("thinks", "looks-thinks")]
    assert picture_pairs(TWINS) == [*same_examples, ("larger", "half")]
    alone = {name: TWINS[name] for name in ("reads", "looks-thinks", "half")}
    assert picture_pairs(alone) == thinking_pairs(alone) == []


def test_of_two_partners_the_one_with_the_same_settings_is_taken() -> None:
    readers = {
        "warm": reader(temperature=1.0),
        "cold": reader(temperature=0),
        "elsewhere": reader(base_url="http://lab"),
        "looks": reader(temperature=0, presentation="image"),
        "thinks": reader(temperature=1.0, strategy="chain_of_thought"),
    }
    assert picture_pairs(readers) == [("cold", "looks")] and thinking_pairs(readers) == [("warm", "thinks")]
    assert picture_pairs({**readers, "human": {"kind": "human"}}) == [("cold", "looks")]


def test_text_and_pictures_are_paired_by_item_in_each_task(tmp_path: Path) -> None:
    """One model right in half of the lines as text; as pictures right in all of *uppercase*, alike in all others."""
    rows = rows_of("reads", "model") + rows_of("looks", "model", ks=KS[:3])
    for row in rows:
        if row["reader"] == "looks" and row["task"] == "uppercase" and row["correct"] is not None:
            row["correct"] = True
    tables = study(tmp_path, rows, {name: TWINS[name] for name in ("reads", "looks")})
    ((head, under),) = rows_by_head(tables_in(chapter_of(write, tables))["h_test_pictures"]).items()
    assert head == "reads (text), looks (pictures)"
    told = {row[0]: row[1:] for row in under}
    names = list(told)
    assert names[0] == "Uppercase" and names[10:] == [
        "All tasks",
        *(f"{making} items" for making in ("Released", "Fresh", "Matched")),
        *(f"k\u00a0=\u00a0{k}" for k in (4, 14, 28)),
    ]
    # 30 lines: 5 of 10 wrong as text, 6 of 10 where matched
    assert told["Uppercase"][:5] == ("30", "16", "46.7", "100.0", "53.3")
    assert told["Rhyme"][:7] == ("20", "0", "45.0", "45.0", "0.0", "[−13.0, 13.0]", "> .999")
    found = asked(tables)
    assert found is not None
    one, other = (found.trials[found.trials["reader_group"] == name] for name in ("reads", "looks"))
    parts = {(part.task, part.making, part.k): part.compared for part in pictures_by_part(one, other, 0.05)}
    at_four = parts[ALL, "", 4]
    assert at_four.changed == 16 and at_four.p < 0.001
    gains = np.repeat([1.0, 0.0], [16, at_four.items - 16])
    reach = stats.t.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    assert (at_four.low, at_four.high) == pytest.approx((gains.mean() - reach, gains.mean() + reach))


def test_letter_geometry_sets_questions_as_text_beside_pictures(tmp_path: Path) -> None:
    tables = questions(tmp_path / "g")
    tables.dictionary["readers"] = {"small": reader(), "large": reader(presentation="image")}
    table = tables_in(chapter_of(write_geometry, tables))["letter_geometry_pictures"]
    told = {row[0]: row[1:] for row in rows_in(table)}
    # 10 of 40 right as text, 30 as pictures
    assert list(told) == ["Rotation", "Flip", "All questions"]
    assert told["All questions"][:5] == ("40", "20", "25.0", "75.0", "50.0")
    assert told["All questions"][6] == "< .001"
    assert table.note is not None and "picture" in table.note
    assert "making" not in table.note and "examples" not in table.note


@pytest.mark.full
def test_equal_shares_hold_the_level_of_the_test() -> None:
    """Of 400 pairs of conditions without a difference about one in twenty is significant."""
    draw = np.random.default_rng(2)
    p = []
    for _ in range(400):
        one, other = (
            pd.DataFrame({"making": "", "task": "t", "item_id": range(80), "right": right.astype(float)})
            for right in draw.integers(0, 2, (2, 80))
        )
        p.append(paired(one, other).p)
    assert 0.005 < np.mean(np.array(p) < 0.05) < 0.07


def test_the_chapter_of_people_alone_describes_no_comparison_of_models_and_no_sign_that_it_lacks(
    tmp_path: Path, tables: Tables, chapter: Chapter
) -> None:
    alone = chapter_of(write, study(tmp_path, rows_of("P1", "human"), {"human": {"kind": "human"}}))
    assert chapter.methods and not alone.methods

    def full(of: Chapter) -> list[ApaTable]:
        return [one for one in of.blocks if isinstance(one, ApaTable) and "h_test_full" in one.name]

    for table in (*full(alone), *full(chapter)):
        lacks = any(apa.MISSING in row for row in table.rows)
        assert ("dash" in table.note) == lacks
    assert any(apa.MISSING in row for table in full(chapter) for row in table.rows)
