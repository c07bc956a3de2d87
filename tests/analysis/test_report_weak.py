"""With every chapter in it, a report of whatever is there is written in every format."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import docx
import pandas as pd
import pytest

from analysis import load
from analysis.report.write import write_report
from tests.analysis.letter_study import PLANNED, study_rows, write_handover

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("error::RuntimeWarning")]


def half_done() -> pd.DataFrame:
    rows = study_rows(human=6, models=("restorer",), items=8)
    return rows[~((rows["reader"] == "P006") & (rows["trial_index"] > 6))]


STUDIES = {
    "models only": lambda: study_rows(models=("a", "b"), items=8),
    "one participant": lambda: study_rows(human=1, items=8),
    "one item": lambda: study_rows(human=4, items=1),
    "an empty condition": lambda: study_rows(human=5, items=8).query("position != 'final'"),
    "half done": half_done,
    "baselines": lambda: study_rows(baselines=("random", "oracle"), items=8),
    "pilots only": lambda: study_rows(pilot=True, items=8),
    "simulated": lambda: study_rows(simulated=5, models=("a",), items=8),
    "no trial": lambda: study_rows(human=1, items=4).iloc[:0],
}


@pytest.mark.parametrize("name", STUDIES)
def test_every_format_is_written_of_whatever_is_there(tmp_path: Path, name: str) -> None:
    rows = STUDIES[name]().assign(rt=None)  # one time is enough
    tables = load(write_handover(tmp_path / "handover", rows, planned=PLANNED))
    folder = write_report(tables, tmp_path, datetime(2026, 11, 21, tzinfo=UTC)).parent
    told = json.loads((folder / "numbers.json").read_text("utf-8"))
    for stem in ("report", "supplement"):
        tables_of, figures_of = (
            [
                one
                for one in told[name]
                if one.get("printed", not one["number"].startswith("F"))
                and one["number"].startswith("S") == (stem == "supplement")
            ]
            for name in ("tables", "figures")
        )
        if not (folder / f"{stem}.docx").exists():
            assert stem == "supplement" and not tables_of and not figures_of
            continue
        word = docx.Document(str(folder / f"{stem}.docx"))
        tex = (folder / f"{stem}.tex").read_text("utf-8")
        assert len(word.tables) == len(tables_of) == tex.count("\\input{latex/")
        assert len(word.inline_shapes) == len(figures_of) == tex.count("\\includegraphics")
    for one in told["tables"]:
        assert all((folder / one[file]).is_file() for file in ("shown", "unrounded", "latex"))
        assert not re.search(r"\bnan\b", (folder / one["shown"]).read_text("utf-8-sig")), one["title"]
    for one in told["models"]:
        assert len(pd.read_csv(folder / one["rows_file"])) == one["rows"]
    assert (folder / "models.R").is_file() is bool(told["models"] or told["estimates"])
