"""Scrambled Bench's Tables 1, 6, 7 and 8 from files as the authors' repository has them, written here with known answers."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import LinearConstraint, milp

from analysis.reproductions.reproductions import Reproduction, reproduce_paper, write_page
from experiment.cli.reproduce import own_choice, own_text
from experiment.papers.scrambled_bench.chapter.reproduction import (
    CATEGORIES,
    NAMES,
    all_printed_cells,
    options_of,
)
from stimuli.corpora import load_corpus
from stimuli.corpora.corpus import Record
from stimuli.errors import UserError
from tests.experiment.models.running import invoke

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
    assert (
        "Accuracy by category of question" in page
        and "would be in output/scrambled_qa/scrambled_AQuA" in page
    )


def test_without_a_copy_of_dream_there_are_no_categories_and_that_is_said(tmp_path: Path) -> None:
    folder = small_release(tmp_path / "release", small_dream(tmp_path / "dream"), {"Ori": 4})
    made = reproduce_paper("scrambled-bench", folder, READINGS)
    assert [one.number for one in made.tables] == ["6"]
    assert any("give your copy of it with --dream" in one for one in made.lacking)


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
    assert "gpt-4-0314, line 1 does not ask 'test 1?'" in fault()
    file.write_text(lines[0] + "\n", "utf-8")
    assert "has 1 lines; 2 questions" in fault()
    file.write_text(lines[0] + "\n{}\n", "utf-8")
    assert "line 2: 'input' is missing or unknown" in fault()
    file.write_text("[]\n", "utf-8")
    assert "line 1 is '[]'" in fault()
    file.write_text("\n".join(lines), "utf-8")
    wrote(folder, "scrambled_qa/scrambled_DREAM_test/zero-shot/random_30%/gpt-4-0314", [])
    assert "random_30%" in fault() and "not where the authors put" in fault()


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


def test_realtimeqa_is_not_counted_twice_where_both_layouts_stand_in_one_folder(tmp_path: Path) -> None:
    for column, right in (("Ori", 2), ("20%", 1)):
        place = f"scrambled_qa/scrambled_AQuA/few-shot-cot/demo_random_0%/{CONDITIONS[column]}/m"
        wrote(tmp_path, place, [problem(n, right) for n in range(2)])
    wrote(tmp_path, "scrambled_qa/scrambled_realtimeQA/zero-shot/original/m", [{"pred": "not read"}])
    (tmp_path / "stimuli").mkdir()
    (tmp_path / "outputs").mkdir()
    (tmp_path / "stimuli" / "qa_realtimeqa.jsonl").write_text(
        '{"i": 0, "choices": ["x", "y"], "answer": "A"}', "utf-8"
    )
    row = {
        "task": "qa",
        "method": "zero-shot",
        "cond": "original",
        "i": 0,
        "output": "A",
        "pred": "A",
        "gold": "A",
    }
    (tmp_path / "outputs" / "m.jsonl").write_text(json.dumps(row), "utf-8")
    made = reproduce_paper("scrambled-bench", tmp_path, READINGS)
    assert [one.number for one in made.tables] == ["1", "5"]
    assert cells(made, "5").loc[("m", "Acc"), "Ori"] == "100.00"


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
    assert "of the others are known to differ" in done.output
