"""Sessions that were run for their times are told apart from the others in every table."""

from __future__ import annotations

import csv
from collections import Counter

from analysis import load
from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.store import open_store
from tests.experiment.models.running import TRIALS, invoke, study, with_models

__all__ = ["study"]


def test_timed_sessions_say_so_in_the_table_and_count_no_trial_twice(study, tmp_path):
    with_models(study, 'r: {use: "baseline:random"}')
    for more in ((), ("--timing",)):
        done = invoke("run", study, *more)
        assert done.exit_code == 0, done.output
    assert invoke("export", study, "--out", tmp_path / "out").exit_code == 0
    with (tmp_path / "out" / "trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["timed"] for row in rows) == {"TRUE": TRIALS, "FALSE": TRIALS}
    by_session = {(row["session_id"], row["timed"]) for row in rows}
    assert len(by_session) == 8
    with open_store(study) as store:
        tables = load(hand_over(load_study(study), store, tmp_path / "handover"))
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    assert len(used) == TRIALS and not used["timed"].any()
    assert tables.dictionary["columns"]["timed"]["type"] == "boolean"
