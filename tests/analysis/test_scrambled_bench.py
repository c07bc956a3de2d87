"""Scrambled Bench: its printed tables from released outputs and from a study's own run, and what its scoring faults cost."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import LinearConstraint, milp

from analysis import load
from analysis.answers import failures_as_wrong
from analysis.measures import accuracy
from analysis.measures.recovery import recovery_trials
from analysis.planned import plans
from analysis.report.blocks import Chapter, Material
from analysis.reproductions import Reproduction, reproduce_paper, scrambled_bench_tables, write_page
from analysis.tables import Tables
from experiment.cli.report import own_choice, own_text
from experiment.cli.study_store import opened_study
from experiment.exporting.export import hand_over
from experiment.papers.scrambled_bench.chapter import write
from experiment.papers.scrambled_bench.chapter.measures import study_parts
from experiment.papers.scrambled_bench.chapter.reproduction import (
    CATEGORIES,
    NAMES,
    all_printed_cells,
    compare_with_print,
    inside_a_word,
    method_of,
    options_of,
    printed_cells,
    released_trials,
    with_missing_as_empty,
)
from stimuli.corpora import load_corpus
from stimuli.corpora.corpus import Record
from stimuli.errors import UserError
from tests.analysis.chapters import chapter_of, drawings_in, material_of, rows_in, tables_in
from tests.analysis.letter_study import trial, write_handover
from tests.experiment.models.running import invoke

MODELS = ("GPT-4", "GPT-3.5-turbo", "Falcon-180b", "Llama-2-70b", "Llama-2-7b-chat", "MPT-30b", "Flan-T5-xxl")
CELLS = {"3": 7 * 2 * 5, "4": 7 * 2 * 5, "5": 7 * 2 * 7}


@pytest.fixture(scope="module")
def made(shared: Path) -> dict[str, pd.DataFrame]:
    return scrambled_bench_tables(shared / "data" / "scrambled_bench", printed=True)


@pytest.mark.parametrize("table", CELLS)
def test_every_printed_cell_of_the_seven_models_comes_out(made: dict[str, pd.DataFrame], table: str) -> None:
    cells = compare_with_print({table: made[table]})
    assert tuple(dict.fromkeys(cells["model"])) == MODELS
    assert len(cells) == CELLS[table]
    different = cells[~cells["same"]]
    assert different.empty, different.to_string()


def test_numbers_stand_behind_the_printed_cells(shared: Path, made: dict[str, pd.DataFrame]) -> None:
    numbers = scrambled_bench_tables(shared / "data" / "scrambled_bench")
    golden = json.loads((shared / "data" / "scrambled_bench" / "golden_metrics.json").read_text("utf-8"))
    rate = numbers["4"].loc[("Llama-2-7b-chat", "RR"), "20%"]
    told = golden["scrrec"]["Llama-2-7b-chat-hf"]["zero-shot"]["rs20"]
    assert rate == pytest.approx(100 * (told["sum_ed_scr"] - told["sum_ed_rec"]) / told["sum_ed_scr"])
    assert rate == pytest.approx(-80.74, abs=0.005)


OPTIONS = ["Salad dressing", "Baby formula", "Ground beef", "Whole milk"]


def release(folder: Path, model: str = "gpt-4-0314") -> Path:
    """Write one sentence and two questions, answered by one model; the second answer is a letter inside a word."""
    (folder / "stimuli").mkdir(parents=True)
    (folder / "outputs").mkdir()
    sentence = {"i": 0, "original": "An old book.", "rs20": "An odl book."}
    evidence = dict.fromkeys(("original", "rs20", "rs50", "rs100", "kf", "kfl", "sub"), "So it is.")
    question = {"question": "Which?", "choices": OPTIONS, "answer": "B", "evidence": evidence}
    (folder / "stimuli" / "rec_realtimeqa.jsonl").write_text(json.dumps(sentence) + "\n", "utf-8")
    lines = "\n".join(json.dumps({"i": n, **question}) for n in range(2))
    (folder / "stimuli" / "qa_realtimeqa.jsonl").write_text(lines + "\n", "utf-8")
    rec = {"task": "rec", "method": "zero-shot", "cond": "rs20", "i": 0}
    said = "An old book.\n\nScrambled Sentence: Teh"
    rows = [rec | {"output": said, "recovered": said}]
    for cond in ("original", "rs20", "sub"):
        base = {"task": "qa", "method": "zero-shot", "cond": cond, "gold": "B"}
        rows.append(base | {"i": 0, "output": "(B) Baby formula", "pred": "B"})
        rows.append(base | {"i": 1, "output": "Based on this I cannot tell", "pred": "B"})
    text = "\n".join(json.dumps(one) for one in rows)
    (folder / "outputs" / f"{model}.jsonl").write_text(text + "\n", "utf-8")
    return folder


OF_DREAM = '{"task": "qa", "ds": "dream", "method": "zero-shot", "cond": "kf", "i": 0, "output": "A", "pred": "A", "gold": "A"}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"task": "rec", "method": "few-shot", "cond": "rs30", "i": 0, "recovered": ""}', "'rs30'"),
        (OF_DREAM, "ds is 'dream'"),
        ("{", "JSON"),
    ],
)
def test_faulty_outputs_are_named_with_their_line(tmp_path: Path, line: str, said: str) -> None:
    folder = release(tmp_path)
    (folder / "outputs" / "other.jsonl").write_text(line + "\n", "utf-8")
    with pytest.raises(UserError, match=rf"other\.jsonl, line 1.*{said}"):
        released_trials(folder)


def test_an_import_refuses_what_would_make_false_cells(tmp_path: Path) -> None:
    folder = release(tmp_path / "release")
    stimuli = folder / "stimuli" / "qa_realtimeqa.jsonl"
    broken = stimuli.read_text("utf-8").replace("kfl", "klf")
    for file, text, said in (
        (folder / "outputs" / "other.jsonl", OF_DREAM, "ds is 'dream'"),
        (stimuli, broken, "qa_realtimeqa.jsonl, line 1 "),
    ):
        file.write_text(text, "utf-8")
        done = invoke("import", tmp_path / "study", "--from", "scrambled_bench", folder)
        assert done.exit_code == 2 and said in done.output
        assert not (tmp_path / "study").exists()
    with pytest.raises(UserError, match="outputs") as none_there:
        reproduce_paper("scrambled-bench", tmp_path / "authors", READINGS)
    assert "output/" in str(none_there.value.mend)


def imported_trials(tables: Tables) -> pd.DataFrame:
    """Score an imported study's responses by wrods' own measures."""
    measured = with_missing_as_empty(recovery_trials(tables.trials, tables.items, list(tables.factors)))
    chosen = accuracy.asked(tables.trials)
    chosen = chosen[chosen["trial_type"] == "choose"]
    right = failures_as_wrong(chosen)
    parts = [measured.assign(task="rec"), chosen.assign(task="qa", correct=right)]
    trials = pd.concat(
        [part.rename(columns={"text": "condition", "item_id": "item", "reader": "model"}) for part in parts]
    )
    trials["method"] = method_of(trials)
    return trials.reindex(
        columns=["model", "task", "method", "condition", "item", "ed_shown", "ed_given", "correct"]
    )


@pytest.mark.full
def test_the_imported_study_gives_the_same_cells_through_its_own_parser_and_measures(
    shared: Path, tmp_path: Path
) -> None:
    """The model of the seven with the oddest answers through ``wrods import``, the store and the handover."""
    released, part = shared / "data" / "scrambled_bench", tmp_path / "released"
    (part / "outputs").mkdir(parents=True)
    (part / "stimuli").symlink_to(released / "stimuli")
    outputs = Path("outputs") / "Llama-2-7b-chat-hf.jsonl.gz"
    (part / outputs).symlink_to(released / outputs)
    done = invoke("import", tmp_path / "bench", "--from", "scrambled_bench", part)
    assert done.exit_code == 0, done.output
    with opened_study(tmp_path / "bench") as opened:
        hand_over(opened.study, opened.store, tmp_path / "data")
    trials = imported_trials(load(tmp_path / "data"))
    cells = compare_with_print(scrambled_bench_tables(trials, printed=True))
    assert len(cells) == sum(CELLS.values()) / len(MODELS)
    assert cells["same"].all(), cells[~cells["same"]].to_string()


READINGS = {"choice": own_choice, "text": own_text}
CONDITIONS = {
    "Ori": "original", "20%": "random_20%", "50%": "random_50%", "100%": "random_100%", "KF": "keepfirst", "KFL": "keepfirstlast",
    "Sub": "substituted",
}  # fmt: skip
PROBLEMS = tuple(CONDITIONS)[:4]
FILES = {name: file for file, name in NAMES.items()}
TURNS = (["W: Where is the cat?", "M: On the mat."], ["W: Six plus two?", "M: That is eight."])


def wrote(folder: Path, place: str, lines: Iterable[Mapping[str, str]]) -> None:
    file = folder / "output" / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")


def prompt(question: str, options: Sequence[str], dialogue: str = "W: Where?") -> str:
    listed = " ".join(f"({letter}){text}" for letter, text in zip("ABCDE", options, strict=False))
    return f"Dialogue:\n{dialogue}\nQuestion: {question}\nChoices: {listed}\nAnswer: Among A through C, the answer is"


def asked(record: Record, *, is_right: bool) -> dict[str, str]:
    choices = record.choices or ()
    key = "ABC"[choices.index(str(record.answer))]
    read = key if is_right else "ABC"["ABC".index(key) - 1]
    return {
        "input": prompt(record.texts["question"], choices),
        "output": f"({read})",
        "pred": read,
        "GT": key,
    }


def problem(place: int, right: int) -> dict[str, str]:
    is_right = place < right
    read = "B" if is_right else ""
    text = "Question: How many?\nChoices: (A)1 (B)2 (C)3 (D)4 (E)5\nAnswer:"
    return {"input": text, "output": "2", "pred_strict": read, "pred_loose": "B", "GT": "B"}


def small_dream(folder: Path) -> Path:
    """Write a copy of DREAM with two questions in each half: the first about logic, the second about arithmetic and logic."""
    folder.mkdir()
    for split in ("test", "dev"):
        questions = [
            {"question": f"{split} {n}?", "choice": ["on the mat", "eight", "neither"], "answer": "eight"}
            for n in (1, 2)
        ]
        dialogues = [[TURNS[n], [questions[n]], f"{split}-{n}"] for n in (0, 1)]
        (folder / f"{split}.json").write_text(json.dumps(dialogues), "utf-8")
        rows = ["dialogueID\tquestionIndex\ttype", f"{split}-0\t1\tl", f"{split}-1\t1\tal"]
        for annotator in (1, 2):
            (folder / f"annotator{annotator}_{split}.txt").write_text("\n".join(rows), "utf-8")
    return folder


def small_release(folder: Path, dream: Path, right: Mapping[str, int], model: str = "gpt-4-0314") -> Path:
    """Write answers to the four questions, the first ``right`` of which are right, by condition."""
    for split in ("test", "dev"):
        records = load_corpus("dream", dream, split=split, selection="annotated").records
        for column, many in right.items():
            lines = [
                asked(one, is_right=place + 2 * (split == "dev") < many) for place, one in enumerate(records)
            ]
            wrote(
                folder, f"scrambled_qa/scrambled_DREAM_{split}/zero-shot/{CONDITIONS[column]}/{model}", lines
            )
    return folder


def cells(made: Reproduction, number: str) -> pd.DataFrame:
    return next(one.cells for one in made.tables if one.number == number)


def test_dialogues_have_accuracy_gain_and_categories(tmp_path: Path) -> None:
    dream = small_dream(tmp_path / "dream")
    folder = small_release(tmp_path / "release", dream, {"Ori": 4, "KF": 3, "Sub": 2})
    made = reproduce_paper("scrambled-bench", folder, READINGS, data={"dream": dream})
    assert [one.number for one in made.tables] == ["6", "7", "8"]
    assert cells(made, "6").loc[("GPT-4", "Acc")].to_dict() == {
        "Ori": "100.00",
        "KF": "75.00",
        "Sub": "50.00",
    }
    assert cells(made, "6").loc[("GPT-4", "RPG")].to_dict() == {"Ori": "100.0", "KF": "50.00", "Sub": "0.0"}
    # of the two questions about arithmetic the last is wrong under KF; with substituted letters one of them is right
    assert cells(made, "7").loc[("GPT-4", "Acc arithmetic"), "KF"] == "50.00"
    assert cells(made, "7").loc[("GPT-4", "Acc logic"), "KF"] == "75.00"
    assert cells(made, "8").loc[("GPT-4", "RPG arithmetic"), "KF"] == "0.00"
    assert {one.name for one in made.faults} == {"letter_inside_a_word_dream", "reading_of_answers_dream"}
    told = " ".join(made.lacking)
    assert all(f"Table {number}:" in told for number in "1345") and "Tables 7 and 8" not in told
    page = write_page(made, tmp_path / "page", "1.0").read_text("utf-8")
    assert "output/scrambled_qa/scrambled_AQuA" in page


def test_without_a_copy_of_dream_there_are_no_categories_and_that_is_said(tmp_path: Path) -> None:
    folder = small_release(tmp_path / "release", small_dream(tmp_path / "dream"), {"Ori": 4})
    made = reproduce_paper("scrambled-bench", folder, READINGS)
    assert [one.number for one in made.tables] == ["6"]
    assert any("--dream" in one for one in made.lacking)


def test_a_half_of_dream_makes_no_cell(tmp_path: Path) -> None:
    dream = small_dream(tmp_path / "dream")
    folder = small_release(tmp_path / "release", dream, {"Ori": 4, "KF": 3})
    (folder / "output/scrambled_qa/scrambled_DREAM_dev/zero-shot/keepfirst/gpt-4-0314").unlink()
    made = reproduce_paper("scrambled-bench", folder, READINGS, data={"dream": dream})
    assert list(cells(made, "6").columns) == ["Ori"]
    assert any("gpt-4-0314 kf" in one for one in made.lacking)


def test_files_out_of_place_and_lines_about_something_else_are_named(tmp_path: Path) -> None:
    dream = small_dream(tmp_path / "dream")
    folder = small_release(tmp_path / "release", dream, {"Ori": 4})
    file = folder / "output/scrambled_qa/scrambled_DREAM_test/zero-shot/original/gpt-4-0314"
    lines = file.read_text("utf-8").splitlines()

    def fault() -> str:
        with pytest.raises(UserError) as caught:
            reproduce_paper("scrambled-bench", folder, READINGS, data={"dream": dream})
        return caught.value.message

    file.write_text("\n".join(reversed(lines)), "utf-8")
    assert re.search(r"gpt-4-0314, line 1 .*'test 1\?'", fault())
    file.write_text(lines[0] + "\n", "utf-8")
    assert re.search(r"gpt-4-0314 .*\b1 lines.*\b2 questions", fault())
    file.write_text(lines[0] + "\n{}\n", "utf-8")
    assert "line 2: 'input'" in fault()
    file.write_text("[]\n", "utf-8")
    assert "line 1 is '[]'" in fault()
    file.write_text("\n".join(lines), "utf-8")
    wrote(folder, "scrambled_qa/scrambled_DREAM_test/zero-shot/random_30%/gpt-4-0314", [])
    assert "random_30%" in fault()


def test_word_problems_have_a_row_for_each_scramble_of_the_examples(tmp_path: Path) -> None:
    for examples, right in (("0", 3), ("50", 1)):
        place = f"scrambled_qa/scrambled_AQuA/few-shot-cot/demo_random_{examples}%/random_20%/my-model"
        wrote(tmp_path, place, [problem(n, right) for n in range(4)])
    made = reproduce_paper("scrambled-bench", tmp_path, READINGS)
    table = cells(made, "1")
    assert table["20%"].to_dict() == {
        ("my-model", "Acc examples Ori"): "75.00",
        ("my-model", "Acc examples 50%"): "25.00",
    }
    price = next(one for one in made.faults if one.name == "only_behind_answer_is").price
    assert price["20%"].to_dict() == {("my-model", "Ori"): 25.0, ("my-model", "50%"): 75.0}


def test_the_authors_files_of_realtimeqa_give_the_other_tables(tmp_path: Path) -> None:
    sentence = {
        "output": "An old boo. ",
        "scrambled": "An odl book.",
        "original": "An old book.",
        "recovered": " An old boo.",
    }
    wrote(tmp_path, "scrambled_rec/scrambled_realtimeQA/few-shot/random_20%/ul2", [sentence])
    text = prompt("Which?", ["Salad. dressing", "(un)safe formula"])
    for column, read in (("Ori", "B"), ("100%", "A"), ("Sub", "A")):
        line = {"input": text, "output": read, "pred": read, "GT": "B"}
        wrote(tmp_path, f"scrambled_qa/scrambled_realtimeQA/zero-shot/{CONDITIONS[column]}/ul2", [line])
    made = reproduce_paper("scrambled-bench", tmp_path, READINGS)
    assert [one.number for one in made.tables] == ["3", "5"]
    assert cells(made, "3").loc[("UL2", "RR"), "20%"] == "50.0"
    assert cells(made, "5").loc[("UL2", "RPG")].to_dict() == {"Ori": "100.0", "100%": "0.00", "Sub": "0.0"}
    assert options_of(text) == ("Salad. dressing", "(un)safe formula")


def patterns(records: Sequence[Record], wanted: Mapping[str, int]) -> set[int]:
    """Choose which questions are right so that each category, and all together, have as many as wanted."""
    kinds: dict[str, list[int]] = defaultdict(list)
    for place, record in enumerate(records):
        kinds[str(record.extra["categories"])].append(place)
    names = list(kinds)
    counts = np.array(
        [[1.0 if name == "all" or name in kind.split(", ") else 0.0 for kind in names] for name in wanted]
    )
    target = np.array(list(wanted.values()), dtype=float)
    found = milp(
        np.zeros(len(names)), integrality=np.ones(len(names)), constraints=LinearConstraint(counts, target, target),
        bounds=(0, [len(kinds[name]) for name in names]),
    )  # fmt: skip
    assert found.x is not None, wanted
    return {place for kind, many in zip(names, found.x, strict=True) for place in kinds[kind][: round(many)]}


@pytest.mark.full
def test_every_printed_cell_comes_out_of_answers_that_are_as_often_right(
    tmp_path: Path, shared: Path
) -> None:
    """The number of right answers behind each printed percentage, spread over the real questions, gives the tables again."""
    dream = shared / "data" / "dream"
    halves = {
        split: load_corpus("dream", dream, split=split, selection="annotated").records
        for split in ("test", "dev")
    }
    records = [*halves["test"], *halves["dev"]]
    sizes = Counter(name for one in records for name in str(one.extra["categories"]).split(", ")) | {
        "all": 1024
    }
    assert [sizes[name] for name in CATEGORIES] == [46, 358, 745, 108, 131]
    printed = all_printed_cells().set_index(["table", "model", "measure", "column"])["printed"]
    for model, file in FILES.items():
        for column, condition in CONDITIONS.items():
            wanted = {
                name: round(float(printed[("7", model, f"Acc {name}", column)]) * sizes[name] / 100)
                for name in ("all", *CATEGORIES)
                if ("7", model, f"Acc {name}", column) in printed.index
            } or {"all": round(float(printed[("6", model, "Acc", column)]) * 10.24)}
            right = patterns(records, wanted)
            for split, start in (("test", 0), ("dev", 512)):
                lines = [
                    asked(one, is_right=place in right) for place, one in enumerate(halves[split], start)
                ]
                wrote(tmp_path, f"scrambled_qa/scrambled_DREAM_{split}/zero-shot/{condition}/{file}", lines)
        for rate in ("0", "20", "50", "100"):
            examples = "Ori" if rate == "0" else f"{rate}%"
            for column in PROBLEMS:
                if ("1", model, f"Acc examples {examples}", column) not in printed.index:
                    continue
                many = round(float(printed[("1", model, f"Acc examples {examples}", column)]) * 2.54)
                place = f"scrambled_qa/scrambled_AQuA/few-shot-cot/demo_random_{rate}%/{CONDITIONS[column]}/{file}"
                wrote(tmp_path, place, [problem(n, many) for n in range(254)])
    done = invoke("reproduce", "scrambled-bench", tmp_path, "--dream", dream, "--out", tmp_path / "page")
    made = pd.read_csv(tmp_path / "page" / "cells.csv", dtype=str)
    assert made["table"].value_counts().to_dict() == {"1": 48, "6": 266, "7": 210, "8": 210}
    different = made[made["same"] == "False"]
    assert set(different.loc[different["table"] == "1", "printed"]) == {"33.47"}
    # RPG is a ratio of counts: those of UL2 cannot all come from the counts behind its accuracies
    assert set(different.loc[different["table"] == "6", "model"]) <= {"UL2"}
    assert set(different["table"]) <= {"1", "6"}, different.to_string()
    assert done.exit_code == 0, done.output
    assert f"{len(different)} of the others" in done.output


@pytest.mark.parametrize(
    ("reply", "is_inside"),
    [
        ("Based on the evidence", True),
        ("According to it", True),
        ("(B) something", False),
        ("B", False),
        ("Baby formula, says CNN", False),
        ("none of them", False),
        ("it is so. Based", False),
    ],
)
def test_a_letter_inside_a_word_is_told_from_one_that_stands_alone(reply: str, is_inside: bool) -> None:
    assert inside_a_word(reply, OPTIONS) is is_inside


def test_each_fault_has_its_price(tmp_path: Path) -> None:
    made = reproduce_paper("scrambled-bench", release(tmp_path / "release"), READINGS)
    faults = {one.name: one for one in made.faults}
    inside = faults["letter_inside_a_word"].price.loc["GPT-4"]
    assert inside.to_dict() == {"replies": 6, "letter inside a word": 3, "of them scored right": 3}
    # one of two answers is no answer to wrods
    assert faults["reading_of_answers"].price.loc["GPT-4", "Ori"] == -50
    rates = faults["values_below_zero"].price.loc[("GPT-4", "zero-shot"), "20%"]
    assert rates < 0, "the next example was left in the answer, for it begins with a capital"
    assert faults["sign_of_equation_1"].price.loc[("GPT-4", "zero-shot"), "20%"] == -rates


def test_the_page_is_one_file_that_marks_cells_that_differ_from_print(tmp_path: Path) -> None:
    made = reproduce_paper("scrambled-bench", release(tmp_path / "release"), READINGS)
    page = write_page(made, tmp_path / "page", "1.0").read_text("utf-8")
    # GPT-4 has 97.69 in print, and all right here
    assert 'class="other">100.00 (97.69)' in page.replace("'", '"')
    assert "http" not in page and "<script" not in page and "src=" not in page
    cells = pd.read_csv(tmp_path / "page" / "cells.csv", dtype=str)
    assert len(cells) == 2 * 3 + 2
    files = {file.name for file in (tmp_path / "page").glob("*.csv")}
    assert {"table_4.csv", "table_5.csv", "cells.csv", "letter_inside_a_word.csv"} <= files
    assert all(f"href='{name}'" in page for name in files - {"cells.csv"})


def test_the_command_says_what_differs_and_names_what_is_missing(tmp_path: Path) -> None:
    done = invoke(
        "reproduce", "scrambled-bench", release(tmp_path / "r"), "--out", tmp_path / "page", "--json"
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert done.exit_code == 1 and told["cells"] == 8 and told["same"] < 8
    unknown = invoke("reproduce", "scrambled-bensh", tmp_path)
    assert unknown.exit_code == 2 and "scrambled-bench" in unknown.output


@pytest.mark.full
def test_the_released_outputs_give_every_cell_and_small_prices(shared: Path, tmp_path: Path) -> None:
    done = invoke(
        "reproduce", "scrambled-bench", shared / "data" / "scrambled_bench", "--out", tmp_path / "page"
    )
    assert done.exit_code == 0, done.output
    assert "238 of 238 cells" in done.output and "2 of 16,954 answers" in done.output
    assert 'class="other"' not in (tmp_path / "page" / "index.html").read_text("utf-8").replace("'", '"')


OPERATIONS = {"a": "none", "b": "shuffle:all", "c": "keep:first_and_last", "d": "substitute:all"}
"""Levels have names that say nothing: only the operation does."""
RIGHT = {"a": 10, "b": 4, "c": 7, "d": 2}
"""Of ten questions."""


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
    return material_of(load(where))


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
        trial(
            reader, "model", f"q{n}", index, set="question", trial_type="choose", position=level, answer="x",
            response="x" if n < RIGHT[level] else "y", correct=n < RIGHT[level],
        )
        for reader in ("small", "large")
        for index, (n, level) in enumerate((n, level) for n in range(10) for level in OPERATIONS)
    ]  # fmt: skip
    return written(folder, trials, items, {"position": list(OPERATIONS)}, **told)


def paper_cells(chapter: Chapter, name: str) -> dict[tuple[str, str], dict[str, str]]:
    """Return a table's cells by reader and row, and then column."""
    table = tables_in(chapter)[name]
    cells, reader = {}, ""
    for line in rows_in(table):
        reader = str(line[0]) or reader
        cells[reader, str(line[1])] = dict(zip(table.columns[2:], map(str, line[2:]), strict=True))
    return cells


def test_the_printed_cells_of_all_tables_are_whole() -> None:
    cells = all_printed_cells()
    assert set(NAMES.values()) == set(printed_cells()["model"]), "each model of the paper has its file's name"
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
    chapter = chapter_of(write, questions(tmp_path))
    made = paper_cells(chapter, "scrambled_bench_6")
    note = tables_in(chapter)["scrambled_bench_6"].note
    assert "KFL" in note and "KF&KR1" not in note and "< 0" not in note
    assert "RPG" in chapter.methods[0] and "ED is" not in chapter.methods[0]
    assert re.search(r"\S shows? this study", str(chapter.blocks[0]))
    assert made["small", "Acc"] == {"Ori": "100.00", "100%": "40.00", "KFL": "70.00", "Sub": "20.00"}
    assert made["small", "RPG"] == {"Ori": "100.00", "100%": "25.00", "KFL": "62.50", "Sub": "0.00"}
    assert made["GPT-4", "Acc"] == {"Ori": "96.68", "100%": "87.40", "KFL": "96.39", "Sub": "46.48"}


def test_a_gain_has_its_interval_and_a_mark_where_its_denominator_may_be_0(tmp_path: Path) -> None:
    material = questions(tmp_path)
    plain = paper_cells(chapter_of(write, material), "scrambled_bench_6")
    low, high = (float(end) for end in plain["small", "95% CI"]["KFL"].strip("[]").split(", "))
    assert low < 62.5 < high and plain["small", "95% CI"]["Ori"] == "–"
    trials = material.tables.trials
    own = (trials["reader"] == "small") & (trials["position"] == "d")
    trials.loc[own, "correct"] = (trials.loc[own, "item_id"] != "q9").astype(float)
    made = chapter_of(write, material)
    marked = paper_cells(made, "scrambled_bench_6")
    assert marked["small", "RPG"]["100%"] == "−500.00†", "intact 100%, substituted 90% of ten questions"
    assert "†" not in marked["large", "RPG"]["100%"]
    assert paper_cells(made, "scrambled_bench_8")["small", "all"]["100%"] == "−500.00†"
    for name in ("scrambled_bench_6", "scrambled_bench_8"):
        assert "†" in tables_in(made)[name].note


def test_dream_has_its_categories_and_each_question_counts_in_all_of_its_own(tmp_path: Path) -> None:
    chapter = chapter_of(write, questions(tmp_path))
    accuracies, gains = (paper_cells(chapter, f"scrambled_bench_{number}") for number in (7, 8))
    # arithmetic: 1, 3, 5, 7, 9; of them right below 4: 1 and 3; below 7: 1, 3 and 5; below 2: 1
    own = {"Ori": "100.00", "100%": "40.00", "KFL": "60.00", "Sub": "20.00"}
    assert accuracies["large", "arithmetic"] == own
    assert gains["large", "arithmetic"]["KFL"] == "50.00"
    assert accuracies["large", "logic"] == accuracies["large", "all"]
    assert "scrambled_bench_6_categories" in drawings_in(chapter)
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
        trial("net", "model", "s", n, set="recover", trial_type="recover", position=level, answer="abcd efgh",
            response=given[level], correct=False)
        for n, level in enumerate(shown)
    ]  # fmt: skip
    return written(folder, trials, items, {"position": list(shown)})


@pytest.mark.parametrize(("few_shot", "number"), [(False, "4"), (True, "3")])
def test_sentences_have_distance_and_rate_in_the_table_of_their_manner(
    tmp_path: Path, few_shot: bool, number: str
) -> None:
    chapter = chapter_of(write, sentences(tmp_path, few_shot=few_shot))
    made = paper_cells(chapter, f"scrambled_bench_{number}")
    assert made["net", "ED"] == {"Ori": "0.00", "50%": "0.00", "KL&KR1": "8.00"}
    assert "< 0" in tables_in(chapter)[f"scrambled_bench_{number}"].note
    assert "ED is" in chapter.methods[0] and "RPG" not in chapter.methods[0]
    # two letters exchanged are two edits; eight are left in the last
    assert made["net", "RR"] == {"Ori": "–", "50%": "100.00", "KL&KR1": "−300.00"}


def test_problems_cross_the_scramble_of_the_examples(tmp_path: Path) -> None:
    crossed = [(p, e) for p in ("original", "RS-50") for e in ("intact", "at-100")]
    done = {"original": "none", "RS-50": "shuffle:all@0.5"}
    right = dict(zip(crossed, (4, 3, 2, 0), strict=True))
    items = [
        {"item_id": f"p{n}", "set": "problem", "role": "test", "position": p, "examples": e, "choices": '["1", "2"]',
         "shown": '{"question": "?"}', "intact": '{"question": "?"}', "provenance": json.dumps({"operation": done[p]})}
        for n in range(4) for p, e in crossed
    ]  # fmt: skip
    trials = [
        trial("net", "model", f"p{n}", n, set="problem", trial_type="answer", position=p, examples=e, answer="1", response="A",
            correct=n < right[p, e])
        for n in range(4) for p, e in crossed
    ]  # fmt: skip
    levels = {"position": ["original", "RS-50"], "examples": ["intact", "at-100"]}
    made = written(tmp_path, trials, items, levels)
    (part,) = study_parts(made.tables)
    assert (part.factor, part.examples) == ("position", "examples")
    cells = paper_cells(chapter_of(write, made), "scrambled_bench_1")
    assert cells["net", "Ori"] == {"Examples Ori": "100.00", "Examples 100%": "75.00"}
    assert cells["net", "50%"] == {"Examples Ori": "50.00", "Examples 100%": "0.00"}
    assert cells["GPT-4", "100%"] == {"Examples Ori": "64.17", "Examples 100%": "60.24"}


def test_texts_to_recover_and_questions_are_no_one_accuracy(tmp_path: Path) -> None:
    asked, restored = questions(tmp_path / "q").tables, sentences(tmp_path / "s", few_shot=False).tables
    both = replace(asked, trials=pd.concat([asked.trials, restored.trials], ignore_index=True))
    told = [(plan.name, plan.trials) for plan in plans(both) if plan.measure.name == "correct"]
    assert told == [
        ("accuracy by position (choices)", "choose"),
        ("accuracy by position (recovered texts)", "recover"),
    ]
    assert [plan.trials for plan in plans(asked) if plan.measure.name == "correct"] == [None]
    # sentences are never shown intact: the first scramble is what the others are held against
    intact = (both.trials["trial_type"] == "recover") & (both.trials["position"] == "a")
    both.trials.loc[intact, "position"] = "b"
    choose, recover = [plan for plan in plans(both) if plan.measure.name == "correct"]
    assert choose.levels[0] == "a" and "a" not in recover.levels and len(recover.levels) > 1
    assert {one.second for one in recover.contrasts} == {recover.levels[0]}


def test_realtimeqa_is_not_counted_twice_where_both_layouts_stand_in_one_folder(tmp_path: Path) -> None:
    for column, right in (("Ori", 2), ("20%", 1)):
        place = f"scrambled_qa/scrambled_AQuA/few-shot-cot/demo_random_0%/{CONDITIONS[column]}/m"
        wrote(tmp_path, place, [problem(n, right) for n in range(2)])
    wrote(tmp_path, "scrambled_qa/scrambled_realtimeQA/zero-shot/original/m", [{"pred": "not read"}])
    made = reproduce_paper("scrambled-bench", release(tmp_path, "m"), READINGS)
    assert [one.number for one in made.tables] == ["1", "4", "5"]
    assert cells(made, "5").loc[("m", "Acc"), "Ori"] == "100.00"
