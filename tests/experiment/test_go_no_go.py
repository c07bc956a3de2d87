"""Go/no-go: a label whose key is ``none`` is given by waiting until time runs out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiment.building import build_study, make_items
from experiment.checking import load_study
from experiment.procedure import plan_session, trials_of
from experiment.simulated.reader import SimulatedReader
from experiment.simulated.truth import read_truth
from experiment.study import Study
from experiment.summaries.plain_english import tell
from stimuli.errors import UserError

CHOOSE = "{show: sentence, keys: {word: space, nonword: none}, time_limit: 900 ms}"
TRUTH = """{"accuracy": {"intercept": 9, "effects": {}, "participant_sd": 0, "item_sd": 0},
"time": {"intercept": 6, "effects": {}, "participant_sd": 0, "item_sd": 0, "residual_sd": 0.1}}"""


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(choose: str = CHOOSE, block: str = "") -> Study:
        rows = [f"w{i},garden,word" for i in range(8)] + [f"n{i},gadren,nonword" for i in range(8)]
        (tmp_path / "strings.csv").write_text("item,sentence,answer\n" + "\n".join(rows) + "\n", "utf-8")
        (tmp_path / "simulated.json").write_text(TRUTH, "utf-8")
        (tmp_path / "study.yaml").write_text(
            "wrods: 1\nstudy: go\ntitle: Go\nseed: 3\nmaterials: {sentences: strings.csv}\n"
            f"procedure:\n  - block:\n      trial: [{{choose: {choose}}}]\n{block}",
            "utf-8",
        )
        return load_study(tmp_path)

    return study


def test_a_simulated_reader_waits_where_waiting_is_the_answer(make):
    study = make()
    plan = plan_session(study, build_study(study).items, list_id=1)
    reader = SimulatedReader("S001", study, read_truth(study.folder / "simulated.json"))
    for trial in trials_of(plan):
        row = reader.answer(trial)
        assert row["response_raw"] == trial["answer"]
        assert row["timed_out"] is False
        assert (row["rt"] is None) == (trial["answer"] == "nonword")


def test_checks_of_attention_ask_for_a_key_and_are_counted_in_words(make):
    study = make(block="      attention_checks: 4\n")
    items = make_items(study).items
    plan = plan_session(study, items, list_id=1)
    assert "(20 trials, including four attention checks; " in tell(study, items).session.told
    checks = [trial for trial in trials_of(plan) if trial["is_attention_check"]]
    assert {trial["answer"] for trial in checks} == {"word"}


@pytest.mark.parametrize(
    ("choose", "block", "place"),
    [
        ("{show: sentence, keys: {word: space, nonword: none}}", "", "keys"),
        ("{show: sentence, keys: {word: none, nonword: none}, time_limit: 1 s}", "", "keys"),
        (CHOOSE, "      feedback: late\n", "feedback"),
    ],
)
def test_waiting_needs_an_end_and_another_answer(make, choose, block, place):
    with pytest.raises(UserError, match=rf"study\.yaml, line \d+: procedure\[1\]\.block.*{place}"):
        make(choose, block)
