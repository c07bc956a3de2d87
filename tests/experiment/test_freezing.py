"""A frozen study cannot change unnoticed: neither its design, nor its plan, nor a row of its data."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from typing import Any

import pytest

from experiment.checking import load_study
from experiment.people.service import service_for
from experiment.store import open_store
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.commands import change, let_take_part, worked, wrods
from tests.experiment.test_simulated import TRUTH

PLAN = """\
analysis:
  exclude: {trials: {rt: outside 200 ms to 5 s}}
  planned:
    accuracy: {measure: correct, compare: position, between: [human]}
participants: {wanted: 24, eligible: {age: [18, 65]}}
"""


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    made = make_study()
    file = made.folder / "study.yaml"
    file.write_text(file.read_text("utf-8") + PLAN, "utf-8")
    (made.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    return load_study(made.folder)


def frozen(study: Study) -> dict[str, Any]:
    done = worked("freeze", study.folder, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def verified(study: Study, *more: object) -> tuple[int, dict[str, Any]]:
    done = wrods("freeze", study.folder, "--verify", "--json", *more)
    return done.exit_code, json.loads(done.stdout)


def changed_study(study: Study, old: str, new: str) -> Study:
    change(study.folder / "study.yaml", (old, new))
    return load_study(study.folder)


def collect(study: Study, readers: int = 2) -> None:
    with open_store(study.folder) as store:
        let_take_part(study, store, readers=readers)


def run_sql(study: Study, statement: str) -> None:
    with sqlite3.connect(study.folder / "study.db") as connection:
        assert connection.execute(statement).rowcount > 0


def test_the_registration_says_design_items_plan_defaults_exclusions_and_sample(study):
    told = frozen(study)
    text = (study.folder / "registration.md").read_text("utf-8")
    assert text.startswith("# A small study\n") and len(re.findall(r"^## ", text, re.M)) == 9
    for part in (
        told["hash"], "24 participants", "outside 200 ms to 5 s", "age: 18 to 65",
        "two-sided",
        "contrasts (default): initial - intact",
        "largest |t|", ": intact, initial",
        str(study.design["items"]),
    ):  # fmt: skip
        assert part in text, part
    assert not re.search(r"[{}]|,,|: \[", text), "settings are told in words"


def test_a_model_that_the_frozen_plan_does_not_name_is_told_to_be_exploratory(study):
    run = ("run", study.folder, "--max-trials", "1", "--not-registered")
    models = ("--model", "hf:./not-there", "--model", "baseline:random")
    assert "exploratory" not in wrods(*run, *models).output
    frozen(study)
    (told,) = [line for line in wrods(*run, *models).output.splitlines() if "exploratory" in line]
    assert told.startswith("hf:./not-there ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("measure: correct", "measure: rt", 'analysis.planned.accuracy.measure: "correct" → "rt"'),
        ("wanted: 24", "wanted: 48", "participants.wanted: 24 → 48"),
        ("break_every: 2", "break_every: 3", "break_every: 2 → 3"),
        ("outside 200 ms", "outside 300 ms", "analysis.exclude.trials.rt"),
    ],
)
def test_a_changed_study_is_neither_served_nor_built(study, old, new, said):
    frozen(study)
    changed = changed_study(study, old, new)
    with (
        open_store(study.folder) as store,
        pytest.raises(UserError, match="--amend") as refused,
    ):
        service_for(changed, store)
    assert said in str(refused.value)
    built = wrods("build", study.folder)
    assert built.exit_code == 2 and said in built.output
    code, found = verified(changed)
    assert code == 1 and any(said in line for line in found["changes"])


def test_an_unchanged_study_is_served_and_verifies(study):
    frozen(study)
    collect(study)
    code, found = verified(study)
    assert code == 0 and found["holds"] and found["sessions"] == {"simulated": 2}
    assert found["rows"] > 10 and found["broken"] == found["changes"] == []


def test_a_row_changed_in_the_database_is_named(study):
    frozen(study)
    collect(study)
    run_sql(
        study,
        "UPDATE trials SET response_raw = 'x' WHERE trial_index = 2 AND session_id = (SELECT min(session_id) FROM sessions)",
    )
    code, found = verified(study)
    assert code == 1 and [one["row"] for one in found["broken"]] == ["trial 2 (attempt 1)"]
    shown = wrods("freeze", study.folder, "--verify")
    assert shown.exit_code == 1 and "trial 2 (attempt 1)" in shown.output


def test_it_verifies_after_a_withdrawal_and_counts_it(study):
    frozen(study)
    collect(study)
    before = verified(study)[1]["rows"]
    worked("withdraw", study.folder, "--participant", "S001", "--yes")
    code, found = verified(study)
    assert code == 0 and found["sessions"] == {"simulated": 1, "withdrawn": 1} and found["rows"] == before


def test_links_noted_elsewhere_show_what_the_chain_alone_cannot(study, tmp_path):
    frozen(study)
    collect(study)
    heads = tmp_path / "stick" / "heads.json"
    heads.parent.mkdir()
    assert verified(study, "--heads", heads)[0] == 0
    # the newest row and its link go together: the chain by itself is whole, only shorter
    last = "(SELECT session_id, max(place) FROM chain GROUP BY session_id LIMIT 1)"
    with sqlite3.connect(study.folder / "study.db") as connection:
        kind, key = connection.execute(
            f"SELECT kind, row_key FROM chain WHERE (session_id, place) IN {last}"
        ).fetchone()
        connection.execute(f"DELETE FROM {kind}s WHERE {kind}_id = ?", (key,))
        connection.execute(f"DELETE FROM chain WHERE (session_id, place) IN {last}")
    assert verified(study)[0] == 0
    code, found = verified(study, "--heads", heads)
    assert code == 1 and found["broken"][0]["row"].startswith("link ")


def test_a_freeze_edited_by_hand_is_refused(study):
    frozen(study)
    file = study.folder / "freeze.json"
    change(file, ('"wanted": 24', '"wanted": 12'))
    refused = wrods("freeze", study.folder, "--verify")
    assert refused.exit_code == 1 and "freeze.json" in refused.output


def test_a_freeze_is_replaced_only_with_a_reason_and_the_former_registration_stays(study):
    first = frozen(study)
    assert wrods("freeze", study.folder).exit_code == 2
    changed = changed_study(study, "wanted: 24", "wanted: 48")
    worked("freeze", study.folder, "--amend", "the pilot was noisier than planned")
    now = json.loads((study.folder / "freeze.json").read_text("utf-8"))
    assert now["earlier"][0]["hash"] == first["hash"] != now["hash"]
    assert now["earlier"][0]["changes"] == ["participants.wanted: 24 → 48"]
    assert first["hash"] in (study.folder / "registration-1.md").read_text("utf-8")
    assert "the pilot was noisier than planned" in (study.folder / "registration.md").read_text("utf-8")
    assert verified(changed)[0] == 0


def test_a_freeze_is_amended_neither_without_a_reason_nor_without_a_change(study):
    first = frozen(study)
    refused = wrods("freeze", study.folder, "--amend", "why")
    assert refused.exit_code == 2 and "--amend" in refused.output
    changed_study(study, "wanted: 24", "wanted: 48")
    refused = wrods("freeze", study.folder, "--amend", " ")
    assert refused.exit_code == 2 and "--amend" in refused.output
    assert json.loads((study.folder / "freeze.json").read_text("utf-8"))["hash"] == first["hash"]
    assert not (study.folder / "registration-1.md").exists()


def test_the_rows_of_a_study_that_was_never_frozen_are_checked_all_the_same(study):
    collect(study)
    code, found = verified(study)
    assert code == 1 and not found["holds"] and found["hash"] is None
    assert found["rows"] > 0 and found["broken"] == []
    assert "NEVER FROZEN" in wrods("freeze", study.folder, "--verify").output
    run_sql(study, "UPDATE trials SET response_raw = 'x' WHERE trial_index = 2")
    assert verified(study)[1]["broken"]
