"""Means that a planned analysis tells are those of the trials that its model analyses, in the levels that it compares."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from analysis import load
from analysis.report import chapters
from analysis.report.content import gather
from tests.analysis.letter_study import study_rows, write_handover

LEVELS = ["initial", "final"]
PLANNED = {
    "quick": {
        "measure": "reading_time",
        "compare": "position",
        "levels": LEVELS,
        "between": ["human"],
        "exclude": {"trials": {"reading_time": "outside 200 ms to 4 s"}, "answers": "wrong"},
    },
    "right": {"measure": "correct", "compare": "position", "levels": LEVELS, "between": ["human"]},
}


def test_means_of_a_plan_are_of_its_own_trials_and_levels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chapters, "declared", lambda: ())
    rows = study_rows(human=16, items=16, timeouts=0.0)
    test = ~rows["is_practice"].astype(bool)
    slow = rows.index[test & (rows["trial_index"] % 7 == 0)]
    rows.loc[slow, "reading_time"] = 9000.0
    tables = load(write_handover(tmp_path, rows, planned=PLANNED))
    content = gather(tables)
    quick, right = content.planned

    used = tables.trials[tables.trials["excluded_reason"].isna() & tables.trials["position"].isin(LEVELS)]
    outside = int((used["reading_time"] > 4000).sum())
    wrong = int(((used["reading_time"] <= 4000) & (used["correct"] == 0)).sum())
    kept = used[(used["reading_time"] <= 4000) & (used["correct"] == 1)]
    logs = np.log(kept["reading_time"]).groupby([kept["reader"], kept["position"]]).mean()
    means = np.exp(logs.groupby(level=1).mean())

    said = re.sub(r"<[^>]+>", "", " ".join(map(str, quick.paragraphs))).replace("\u00a0", " ")
    for level in LEVELS:
        assert f"M = {means[level]:,.0f} ms" in said
    assert "intact" not in said.split("condition (geometric means).")[0]
    assert (
        f"of {len(used):,} trials: {outside} (reading_time outside 200 ms to 4 s), {wrong} (answered incorrectly)."
        in said
    )
    (table,) = [one for one in quick.tables if one.table.name.endswith("means_quick")]
    assert f"These are means of the trials that the model analyses (Table {table.number})." in said
    assert [row[1] for row in table.table.rows if len(row) > 1] == [
        f"{(kept['position'] == level).sum()}" for level in LEVELS
    ]
    assert quick.analysis.model is not None and quick.analysis.model.rows == len(kept)
    # accuracy has all trials of its levels, whose means the table of all trials has already
    assert not any("means_" in one.table.name for one in right.tables)
