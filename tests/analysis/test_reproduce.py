"""``wrods reproduce``: a public page with a paper's tables and the price of each scoring fault."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from analysis.reproductions.reproductions import reproduce_paper, write_page
from experiment.cli.reproduce import own_choice, own_text
from experiment.papers.scrambled_bench.chapter.reproduction import inside_a_word
from stimuli.errors import UserError
from tests.experiment.models.running import invoke

READINGS = {"choice": own_choice, "text": own_text}
OPTIONS = ["Salad dressing", "Baby formula", "Ground beef", "Whole milk"]


def release(folder: Path, model: str = "gpt-4-0314") -> Path:
    """Write one sentence and two questions, answered by one model; the second answer is a letter inside a word."""
    (folder / "stimuli").mkdir(parents=True)
    (folder / "outputs").mkdir()
    sentence = {"i": 0, "original": "An old book.", "rs20": "An odl book."}
    questions = [{"i": n, "choices": OPTIONS, "answer": "B"} for n in range(2)]
    lines = "\n".join(json.dumps(one) for one in questions)
    (folder / "stimuli" / "rec_realtimeqa.jsonl").write_text(json.dumps(sentence) + "\n", "utf-8")
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
    with pytest.raises(UserError, match="has no outputs"):
        reproduce_paper("scrambled-bench", tmp_path, READINGS)


@pytest.mark.full
def test_the_released_outputs_give_every_cell_and_small_prices(shared: Path, tmp_path: Path) -> None:
    done = invoke(
        "reproduce", "scrambled-bench", shared / "data" / "scrambled_bench", "--out", tmp_path / "page"
    )
    assert done.exit_code == 0, done.output
    assert "238 of 238 cells are those in print." in done.output
    assert "2 of 16,954 answers were read so; 0 of" in done.output
    assert 'class="other"' not in (tmp_path / "page" / "index.html").read_text("utf-8").replace("'", '"')
