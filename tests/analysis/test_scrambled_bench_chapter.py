"""Scrambled Bench's tables and figures from a study's own run: every cell is known beforehand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import load
from analysis.figures import Drawing
from analysis.planned import plans
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Chapter, Material
from experiment.papers.scrambled_bench.chapter import write
from experiment.papers.scrambled_bench.chapter.measures import study_parts
from experiment.papers.scrambled_bench.chapter.reproduction import all_printed_cells
from tests.analysis.letter_study import write_handover

OPERATIONS = {"a": "none", "b": "shuffle:all", "c": "keep:first_and_last", "d": "substitute:all"}
"""Levels have names that say nothing: only the operation does."""
RIGHT = {"a": 10, "b": 4, "c": 7, "d": 2}
"""Of ten questions."""


def row(reader: str, kind: str, item: str, index: int, **more: Any) -> dict[str, Any]:
    return {
        "study": "bench", "version": 1, "design_hash": "d1", "session_id": f"{reader}-1", "reader_kind": kind, "reader": reader,
        "participant_id": None, "list_id": 1, "block": "b", "trial_index": index, "attempt": 1, "item_id": item,
        "is_practice": False, "is_filler": False, "is_attention_check": False, "is_pilot": False, "replicate": 1,
        "context": "independent", "prompt_variant": 1, "temperature": 0.0, "excluded_reason": None, "response_status": "valid",
        "score": None, **more,
    }  # fmt: skip


def written(
    folder: Path,
    trials: Iterable[dict[str, Any]],
    items: Iterable[dict[str, Any]],
    levels: dict[str, list[str]],
    **told: Any,
) -> Material:
    factors = {name: {"levels": some, "reference": some[0]} for name, some in levels.items()}
    where = write_handover(folder, pd.DataFrame(list(trials)), factors=factors, study="bench", **told)
    pd.DataFrame(list(items)).to_parquet(where / "items.parquet")
    tables = load(where)
    return Material(tables, (), kinds_of(tables.trials))


def questions(folder: Path, *, field: str = "dialogue", **told: Any) -> Material:
    """Ten questions in four levels; the even ones are logic, the odd ones logic and arithmetic."""
    items = [
        {
            "item_id": f"q{n}", "set": "question", "role": "test", "position": level, "choices": '["x", "y"]',
            "shown": json.dumps({field: "t", "question": "?"}), "intact": json.dumps({field: "t"}),
            "provenance": json.dumps({"operation": done}),
            "cov_categories": "logic" if n % 2 == 0 else "logic, arithmetic",
        }
        for n in range(10) for level, done in OPERATIONS.items()
    ]  # fmt: skip
    trials = [
        row(
            reader, "model", f"q{n}", index, set="question", trial_type="choose", position=level, answer="x",
            response="x" if n < RIGHT[level] else "y", correct=n < RIGHT[level],
        )
        for reader in ("small", "large")
        for index, (n, level) in enumerate((n, level) for n in range(10) for level in OPERATIONS)
    ]  # fmt: skip
    return written(folder, trials, items, {"position": list(OPERATIONS)}, **told)


def table(chapter: Chapter | None, name: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return a table's cells by reader and row, and then column."""
    assert chapter is not None
    found = next(one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == name)
    cells, reader = {}, ""
    for line in found.rows:
        if len(line) == 1:
            continue
        reader = str(line[0]) or reader
        cells[reader, str(line[1])] = dict(zip(found.columns[2:], map(str, line[2:]), strict=True))
    return cells


def figures(chapter: Chapter | None) -> dict[str, Drawing]:
    assert chapter is not None
    return {one.name: one for one in chapter.blocks if isinstance(one, Drawing)}


def test_the_printed_cells_of_all_tables_are_whole() -> None:
    cells = all_printed_cells()
    many = cells["table"].value_counts().to_dict()
    assert many == {"1": 48, "3": 190, "4": 190, "5": 266, "6": 266, "7": 210, "8": 210}
    assert not cells.duplicated(["table", "model", "measure", "column"]).any()
    one = cells.set_index(["table", "model", "measure", "column"])["printed"]
    assert one["1", "GPT-4", "Acc examples 50%", "100%"] == "64.96"
    assert one["8", "text-davinci-003", "RPG summary", "100%"] == "< 0"
    # "all" of Tables 7 and 8 is Table 6
    for table, measure in (("7", "Acc"), ("8", "RPG")):
        for model in ("GPT-4", "Llama-2-70b"):
            assert one[table, model, f"{measure} all", "KF"] == one["6", model, measure, "KF"]


def test_questions_have_accuracy_and_gain_in_the_papers_columns(tmp_path: Path) -> None:
    chapter = write(questions(tmp_path))
    made = table(chapter, "scrambled_bench_6")
    assert chapter is not None
    assert re.search(r"\S shows? this study", str(chapter.blocks[0]))
    assert made["small", "Acc"] == {"Ori": "100.00", "100%": "40.00", "KFL": "70.00", "Sub": "20.00"}
    assert made["small", "RPG"] == {"Ori": "100.00", "100%": "25.00", "KFL": "62.50", "Sub": "0.00"}
    assert made["GPT-4", "Acc"] == {"Ori": "96.68", "100%": "87.40", "KFL": "96.39", "Sub": "46.48"}


def test_a_gain_has_its_interval_and_a_mark_where_its_denominator_may_be_0(tmp_path: Path) -> None:
    material = questions(tmp_path)
    plain = table(write(material), "scrambled_bench_6")
    low, high = (float(end) for end in plain["small", "95% CI"]["KFL"].strip("[]").split(", "))
    assert low < 62.5 < high and plain["small", "95% CI"]["Ori"] == "–"
    trials = material.tables.trials
    own = (trials["reader"] == "small") & (trials["position"] == "d")
    trials.loc[own, "correct"] = (trials.loc[own, "item_id"] != "q9").astype(float)
    made = write(material)
    marked = table(made, "scrambled_bench_6")
    assert marked["small", "RPG"]["100%"] == "−500.00†", "intact 100%, substituted 90% of ten questions"
    assert "†" not in marked["large", "RPG"]["100%"]
    assert table(made, "scrambled_bench_8")["small", "all"]["100%"] == "−500.00†"
    assert made is not None
    notes = {one.name: one.note for one in made.blocks if isinstance(one, ApaTable)}
    assert all(
        "† the interval of intact − substituted includes 0" in notes[f"scrambled_bench_{n}"] for n in (6, 8)
    )


def test_a_reader_to_whom_intact_text_is_worth_nothing_has_no_gain(tmp_path: Path) -> None:
    material = questions(tmp_path)
    trials = material.tables.trials
    own = (trials["reader"] == "small") & trials["position"].isin(
        [n for n, d in OPERATIONS.items() if d == "none"]
    )
    trials.loc[own, "correct"] = 0.0
    chapter = write(material)
    made = table(chapter, "scrambled_bench_6")
    assert set(made["small", "RPG"].values()) == {"–"}
    assert made["large", "RPG"]["KFL"] == "62.50"
    drawn = figures(chapter)["scrambled_bench_6_scrambles"]
    (legend,) = drawn.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["large"]
    assert "No value, and therefore no point: small." in drawn.note


def test_dream_has_its_categories_and_each_question_counts_in_all_of_its_own(tmp_path: Path) -> None:
    chapter = write(questions(tmp_path))
    accuracies, gains = table(chapter, "scrambled_bench_7"), table(chapter, "scrambled_bench_8")
    # arithmetic: 1, 3, 5, 7, 9; of them right below 4: 1 and 3; below 7: 1, 3 and 5; below 2: 1
    assert accuracies["large", "arithmetic"] == {
        "Ori": "100.00",
        "100%": "40.00",
        "KFL": "60.00",
        "Sub": "20.00",
    }
    assert gains["large", "arithmetic"]["KFL"] == "50.00"
    assert accuracies["large", "logic"] == accuracies["large", "all"]
    assert "scrambled_bench_6_categories" in figures(chapter)
    assert "matching" in {name for _, name in accuracies}, "the paper's rows stand below"


def sentences(folder: Path, *, few_shot: bool) -> Material:
    shown = {"a": "abcd efgh", "b": "bacd efgh", "c": "abdc efgh"}
    given = {"a": "abcd efgh", "b": "abcd efgh", "c": "zzzz zzzz"}
    done = {"a": "none", "b": "shuffle:all@0.5", "c": "keep:last_and_one"}
    base = {"set": "recover", "intact": '{"evidence": "abcd efgh"}', "choices": None}
    items = [
        {"item_id": "s", "role": "test", "position": level, "shown": json.dumps({"evidence": text}),
         "provenance": json.dumps({"operation": done[level]}), **base}
        for level, text in shown.items()
    ]  # fmt: skip
    if few_shot:
        items.append({**items[0], "item_id": "example-1", "role": "exemplar", "position": None})
    trials = [
        row("net", "model", "s", n, set="recover", trial_type="recover", position=level, answer="abcd efgh",
            response=given[level], correct=False)
        for n, level in enumerate(shown)
    ]  # fmt: skip
    return written(folder, trials, items, {"position": list(shown)})


@pytest.mark.parametrize(("few_shot", "number"), [(False, "4"), (True, "3")])
def test_sentences_have_distance_and_rate_in_the_table_of_their_manner(
    tmp_path: Path, few_shot: bool, number: str
) -> None:
    made = table(write(sentences(tmp_path, few_shot=few_shot)), f"scrambled_bench_{number}")
    assert made["net", "ED"] == {"Ori": "0.00", "50%": "0.00", "KL&KR1": "8.00"}
    # two letters exchanged are two edits; eight are left in the last
    assert made["net", "RR"] == {"Ori": "–", "50%": "100.00", "KL&KR1": "−300.00"}


def test_problems_cross_the_scramble_of_the_examples(tmp_path: Path) -> None:
    crossed = [(p, e) for p in ("original", "RS-50") for e in ("intact", "at-100")]
    done = {"original": "none", "RS-50": "shuffle:all@0.5"}
    right = {
        ("original", "intact"): 4,
        ("original", "at-100"): 3,
        ("RS-50", "intact"): 2,
        ("RS-50", "at-100"): 0,
    }
    items = [
        {"item_id": f"p{n}", "set": "problem", "role": "test", "position": p, "examples": e, "choices": '["1", "2"]',
         "shown": '{"question": "?"}', "intact": '{"question": "?"}', "provenance": json.dumps({"operation": done[p]})}
        for n in range(4) for p, e in crossed
    ]  # fmt: skip
    trials = [
        row("net", "model", f"p{n}", n, set="problem", trial_type="answer", position=p, examples=e, answer="1", response="A",
            correct=n < right[p, e])
        for n in range(4) for p, e in crossed
    ]  # fmt: skip
    levels = {"position": ["original", "RS-50"], "examples": ["intact", "at-100"]}
    made = written(tmp_path, trials, items, levels)
    (part,) = study_parts(made.tables)
    assert (part.factor, part.examples) == ("position", "examples")
    cells = table(write(made), "scrambled_bench_1")
    assert cells["net", "Ori"] == {"Examples Ori": "100.00", "Examples 100%": "75.00"}
    assert cells["net", "50%"] == {"Examples Ori": "50.00", "Examples 100%": "0.00"}
    assert cells["GPT-4", "100%"] == {"Examples Ori": "64.17", "Examples 100%": "60.24"}


def test_wordings_are_no_manner_of_asking_unless_the_answers_were_released(tmp_path: Path) -> None:
    made = sentences(tmp_path, few_shot=False).tables
    made.trials["prompt_variant"] = 2.0
    made.trials["set"] = made.items["set"] = "recovery"
    assert [(part.imported, part.few_shot) for part in study_parts(made)] == [(False, False)]
    source = {"source": "Scrambled Bench (Cao et al., 2023), released stimuli"}
    levels = ["rs20", "kf", "kfl"]
    made.items["provenance"] = [json.dumps({**source, "operation": level}) for level in levels]
    made.dictionary["factors"] = {"position": {"levels": levels, "reference": "rs20"}}
    made.items["position"] = levels
    assert [(part.imported, part.few_shot) for part in study_parts(made)] == [(True, True)]


def test_texts_to_recover_and_questions_are_no_one_accuracy(tmp_path: Path) -> None:
    asked, restored = questions(tmp_path / "q").tables, sentences(tmp_path / "s", few_shot=False).tables
    both = replace(asked, trials=pd.concat([asked.trials, restored.trials], ignore_index=True))
    told = [(plan.name, plan.trials) for plan in plans(both) if plan.measure.name == "correct"]
    assert told == [
        ("accuracy by position (choose)", "choose"),
        ("accuracy by position (recover)", "recover"),
    ]
    assert [plan.trials for plan in plans(asked) if plan.measure.name == "correct"] == [None]
    # sentences are never shown intact: the first scramble is what the others are held against
    both.trials.loc[
        (both.trials["trial_type"] == "recover") & (both.trials["position"] == "a"), "position"
    ] = "b"
    choose, recover = [plan for plan in plans(both) if plan.measure.name == "correct"]
    assert choose.levels[0] == "a" and "a" not in recover.levels and len(recover.levels) > 1
    assert {one.second for one in recover.contrasts} == {recover.levels[0]}
