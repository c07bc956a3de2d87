"""Scrambled Bench's Tables 3, 4 and 5 from its released outputs, cell for cell."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest

from analysis import load
from analysis.reproductions import scrambled_bench_tables
from experiment.cli.study_store import opened_study
from experiment.exporting.export import hand_over
from experiment.papers.scrambled_bench.chapter.reproduction import (
    NAMES,
    compare_with_print,
    imported_trials,
    printed_cells,
    released_trials,
)
from stimuli.errors import UserError
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


def test_tables_are_laid_out_as_in_the_paper(made: dict[str, pd.DataFrame]) -> None:
    assert list(made["5"].columns) == ["Ori", "20%", "50%", "100%", "KF", "KFL", "Sub"]
    assert list(made["3"].index[:4]) == [
        ("GPT-4", "ED"),
        ("GPT-4", "RR"),
        ("GPT-3.5-turbo", "ED"),
        ("GPT-3.5-turbo", "RR"),
    ]
    assert made["4"].loc[("Llama-2-7b-chat", "RR"), "20%"] == "< 0"


def test_numbers_stand_behind_the_printed_cells(shared: Path, made: dict[str, pd.DataFrame]) -> None:
    numbers = scrambled_bench_tables(shared / "data" / "scrambled_bench")
    golden = json.loads((shared / "data" / "scrambled_bench" / "golden_metrics.json").read_text("utf-8"))
    rate = numbers["4"].loc[("Llama-2-7b-chat", "RR"), "20%"]
    told = golden["scrrec"]["Llama-2-7b-chat-hf"]["zero-shot"]["rs20"]
    assert rate == pytest.approx(100 * (told["sum_ed_scr"] - told["sum_ed_rec"]) / told["sum_ed_scr"])
    assert rate == pytest.approx(-80.74, abs=0.005)


def test_the_printed_figures_are_whole() -> None:
    cells = printed_cells()
    assert len(cells) == 19 * 2 * (5 + 5 + 7) == 646
    assert cells.groupby("table")["model"].nunique().to_dict() == {"3": 19, "4": 19, "5": 19}
    assert not cells.duplicated(["table", "model", "measure", "column"]).any()
    assert set(NAMES.values()) == set(cells["model"]), "each model of the paper has its file's name"


def small_release(folder: Path) -> Path:
    (folder / "stimuli").mkdir(parents=True)
    (folder / "outputs").mkdir()
    texts = {"i": 0, "original": "An old book.", "rs20": "An odl book."}
    (folder / "stimuli" / "rec_realtimeqa.jsonl").write_text(json.dumps(texts) + "\n", "utf-8")
    evidence = dict.fromkeys(("original", "rs20", "rs50", "rs100", "kf", "kfl", "sub"), "So it is.")
    base = {"question": "Is it?", "choices": ["x", "y"], "answer": "A", "evidence": evidence}
    questions = [json.dumps({"i": n, **base}) for n in range(2)]
    (folder / "stimuli" / "qa_realtimeqa.jsonl").write_text("\n".join(questions), "utf-8")
    rows = [
        {"task": "rec", "method": "few-shot", "cond": "rs20", "i": 0, "output": "", "recovered": "An old boo."},
        *({"task": "qa", "method": "zero-shot", "cond": cond, "i": n, "output": pred, "pred": pred, "gold": "A"}
          for cond, preds in (("original", "AA"), ("rs20", "AB"), ("sub", "BB")) for n, pred in enumerate(preds)),
    ]  # fmt: skip
    with gzip.open(folder / "outputs" / "some-model.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(map(json.dumps, rows)))
    return folder


def test_other_models_of_the_same_form_have_their_tables_too(tmp_path: Path) -> None:
    tables = scrambled_bench_tables(small_release(tmp_path))
    # 2 edits were made ("odl"), 1 is left ("boo")
    assert tables["3"].loc[("some-model", "ED"), "20%"] == 1
    assert tables["3"].loc[("some-model", "RR"), "20%"] == 50
    assert tables["5"].loc[("some-model", "RPG"), ["Ori", "20%", "Sub"]].to_list() == [100, 50, 0]
    assert tables["4"].empty


def test_faulty_releases_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no outputs"):
        scrambled_bench_tables(tmp_path)
    folder = small_release(tmp_path / "release")
    file = folder / "outputs" / "other.jsonl"
    file.write_text(
        '{"task": "rec", "method": "few-shot", "cond": "rs30", "i": 0, "recovered": ""}\n', "utf-8"
    )
    with pytest.raises(UserError, match=r"other\.jsonl, line 1: 'rs30'"):
        released_trials(folder)
    file.write_text("{\n", "utf-8")
    with pytest.raises(UserError, match="line 1 is not JSON"):
        released_trials(folder)


def test_what_would_make_false_cells_is_refused(tmp_path: Path) -> None:
    folder = small_release(tmp_path / "release")
    line = {
        "task": "qa",
        "ds": "dream",
        "method": "zero-shot",
        "cond": "kf",
        "i": 0,
        "output": "A",
        "pred": "A",
        "gold": "A",
    }
    (folder / "outputs" / "z.jsonl").write_text(json.dumps(line) + "\n", "utf-8")
    with pytest.raises(UserError, match=r"z\.jsonl, line 1: ds is 'dream'"):
        released_trials(folder)
    done = invoke("import", tmp_path / "study", "--from", "scrambled_bench", folder)
    assert done.exit_code == 2 and "ds is 'dream'; the stimuli are those of realtimeqa" in done.output
    assert not (tmp_path / "study").exists()
    stimuli = folder / "stimuli" / "qa_realtimeqa.jsonl"
    stimuli.write_text(stimuli.read_text("utf-8").replace("kfl", "klf"), "utf-8")
    done = invoke("import", tmp_path / "study", "--from", "scrambled_bench", folder)
    assert done.exit_code == 2 and "qa_realtimeqa.jsonl, line 1 has no kfl" in done.output
    with pytest.raises(UserError, match="has no outputs") as none_there:
        released_trials(tmp_path / "authors")
    assert "the authors' own repository" in str(none_there.value.mend)


@pytest.mark.full
def test_the_imported_study_gives_the_same_cells_through_its_own_parser_and_measures(
    shared: Path, tmp_path: Path
) -> None:
    """All seven models through ``wrods import``, the store and the handover; takes minutes on a busy machine."""
    done = invoke(
        "import", tmp_path / "bench", "--from", "scrambled_bench", shared / "data" / "scrambled_bench"
    )
    assert done.exit_code == 0, done.output
    with opened_study(tmp_path / "bench") as opened:
        hand_over(opened.study, opened.store, tmp_path / "data")
    trials = imported_trials(load(tmp_path / "data"))
    cells = compare_with_print(scrambled_bench_tables(trials, printed=True))
    assert len(cells) == sum(CELLS.values())
    assert cells["same"].all(), cells[~cells["same"]].to_string()
