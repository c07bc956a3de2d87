"""A study whose answers are typed: exact matches stand beside how near the answers came."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.descriptives import describe, over_items
from analysis.plan import RECOVERED
from tests.analysis.letter_study import LEVELS, study_rows, write_handover
from tests.analysis.test_weak_studies import told

pytestmark = pytest.mark.usefixtures("without_chapters")

PROSE = "for recovery 1 minus edit distance; in teacher-forced sessions the log-likelihood"
COLUMNS = {"score": {"type": "number", "unit": None, "prose": PROSE}}
NEAR = {"intact": 0.9, "initial": 0.3, "internal": 0.6, "final": 0.5}


def typed_rows(*, exact: bool | None, **readers: int | tuple[str, ...]) -> pd.DataFrame:
    """Rows of typed answers whose mean recovery by condition is known, all exactly right, all wrong, or as they are."""
    rows = study_rows(timeouts=0.0, **readers).assign(trial_type="recover")  # type: ignore[arg-type]
    if exact is not None:
        rows["correct"] = exact
    rows["score"] = rows["position"].map(NEAR) + np.where(rows.index // 4 % 2 == 0, 0.05, -0.05)
    return rows


def test_mean_recovery_is_the_mean_of_the_scores_with_failures_as_nothing(tmp_path: Path) -> None:
    rows = typed_rows(exact=False, models=("restorer",), items=8)
    failed = (rows["position"] == "intact") & (rows["item_id"] == "s01")
    rows.loc[failed, "response_status"] = "refused"
    trials = load(write_handover(tmp_path, rows)).trials
    used = trials[trials["excluded_reason"].isna()]
    cells = {cell.level: cell for cell in describe(used, RECOVERED, "position", tuple(LEVELS))}
    given = used[used["position"] == "intact"]
    assert cells["intact"].mean == pytest.approx(given["score"].where(given["item_id"] != "s01", 0.0).mean())
    scores = used.loc[used["position"] == "final", "score"].to_numpy()
    assert (cells["final"].low, cells["final"].high) == over_items(scores)
    assert cells["final"].low < scores.mean() < cells["final"].high


def test_recovery_stands_beside_exact_accuracy_and_has_a_figure(tmp_path: Path) -> None:
    rows = typed_rows(exact=None, human=4, models=("restorer",), items=8).assign(rt=None)
    content, _ = told(tmp_path, rows, columns=COLUMNS)
    (table,) = [one.table for one in content.descriptives if "recovery" in one.table.title]
    assert table.columns[3:] == ("M exact", "SD", "95% CI", "M recovery", "SD", "95% CI")
    assert "edit distance" in table.note and "teacher-forced" not in table.note
    machine = [row for row in table.rows if len(row) == 9][len(LEVELS) :]
    for row in machine:
        assert float(row[6]) == pytest.approx(100 * NEAR[row[0]], abs=5.1)
    names = [one.drawing.name for one in content.figures]
    assert "condition_score_position" in names and "condition_correct_position" in names
