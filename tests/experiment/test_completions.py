"""Completions (cloze): read as continuations, counted among people, and scored by local models."""

from __future__ import annotations

import csv
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import Table, select, update

from experiment.building import build_study
from experiment.checking import load_study
from experiment.completions import GivenCompletions, cloze_of, given_completions
from experiment.models.engine import ModelSettings, Reply
from experiment.models.planning.prompting_settings import SessionTemplate, read_prompting_settings
from experiment.models.planning.session import ModelSession, SessionTaker
from experiment.parsing.free_answers import completion_of
from experiment.procedure import plan_session, trials_of
from experiment.scoring.trial import score_trial
from experiment.store import open_store, records
from experiment.store.tables import scores, sessions, trials
from experiment.study import Study
from tests.experiment.commands import wrods

STUDY = """\
wrods: 1
study: cloze
title: Which word is expected?
language: en
seed: 3
materials: {sentences: sentences.csv}
design: {factors: {constraint: [strong, weak]}}
procedure:
  - block: {trial: [{answer: {show: sentence, ask: Which word comes next?, read_as: completion}}]}
participants: {wanted: 8}
analysis: {planned: {expected: {measure: correct, compare: constraint, between: [human]}}}
"""
ROWS = (
    "item,sentence:strong,sentence:weak,answer\n"
    "s1,The bride wore a white ...,My cousin saw a white ...,dress | gown\n"
    "s2,The bees flew to their ...,They went back to their ...,hive\n"
    "s3,He posted the ...,He looked at the ...,letter\n"
)


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "sentences.csv").write_text(ROWS, "utf-8")
    (tmp_path / "study.yaml").write_text(STUDY, "utf-8")
    spread = {"participant_sd": 0.1, "item_sd": 0.1}
    truth = {
        "accuracy": {"intercept": 2.0, "effects": {"constraint": {"weak": -4.0}}, **spread},
        "time": {"intercept": 7, "effects": {}, "residual_sd": 0.2, **spread},
    }
    (tmp_path / "simulated.json").write_text(json.dumps(truth), "utf-8")
    build_study(load_study(tmp_path))
    return load_study(tmp_path)


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("Dress", "dress"),
        ("  white   dress. ", "white dress"),
        ("The bride wore a white dress.", "dress"),
        ("“dress”", "dress"),
        ("... dress!", "dress"),
        ("don't", "don't"),
        ("...", ""),
    ],
)
def test_completions_are_compared_without_case_blanks_punctuation_and_the_text_before_them(
    given: str, read: str
) -> None:
    assert completion_of(given, "The bride wore a white ...") == read


def test_a_completion_is_right_if_it_is_one_of_the_answers(study: Study) -> None:
    trial = next(t for t in trials_of(plan_session(study, study.items, list_id=1)) if t["item_id"] == "s1")
    for given, status, correct in (
        ("Gown", "valid", True), ("a dress", "valid", False), ("cat", "valid", False), ("...", "unparsed", None),
    ):  # fmt: skip
        score = score_trial(trial, given)
        assert (score.response_status, score.correct) == (status, correct)
    assert score_trial(trial, " GOWN. ").response == "gown"


def test_shares_entropy_and_cloze_are_those_of_people_in_the_condition() -> None:
    def given(level: str, **counts: int) -> GivenCompletions:
        return GivenCompletions({"constraint": level, "group": "a"}, Counter(counts), {})

    row = cloze_of(
        [given("strong", dress=3, gown=1), given("weak", cat=9)], {"constraint": "strong"}, ["Dress"]
    )
    assert row["completions_n"] == 4 and json.loads(row["completions"]) == {"dress": 0.75, "gown": 0.25}
    assert row["completions_entropy"] == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))
    assert row["cloze"] == 0.75
    assert cloze_of([], {}, ["dress"])["completions_n"] == 0
    assert cloze_of([given("strong", dress=1)], {}, [])["cloze"] is None


def test_only_valid_completions_of_the_newest_version_count_without_the_text_before_them(
    study: Study,
) -> None:
    assert wrods("simulate", study.folder, "--readers", 8).exit_code == 0
    with open_store(study.folder) as store:

        def of_item() -> list[tuple[dict[str, int], dict[str, str]]]:
            with store.read() as connection:
                given = given_completions(connection, study).get(("sentences", "s1"), [])
            return [
                (dict(one.counts), dict(one.spellings))
                for one in given
                if one.condition == {"constraint": "strong"}
            ]

        with store.read() as connection:
            query = select(trials.c.session_id, trials.c.trial_index).where(trials.c.item_id == "s1")
            strong = [
                tuple(row)
                for row in connection.execute(query.add_columns(trials.c.condition))
                if row.condition == {"constraint": "strong"}
            ]

        def change(place: int, table: Table, **values: object) -> None:
            session_id, trial_index, _ = strong[place]
            query = update(table).where(table.c.session_id == session_id).values(**values)
            if table is not sessions:
                query = query.where(table.c.trial_index == trial_index)
            store.write(lambda connection: connection.execute(query).close()).result()

        for place in range(4):
            change(place, trials, response_raw="The bride wore a white Gown.")
            change(place, scores, response="gown", response_status="valid")
        assert of_item() == [({"gown": 4}, {"gown": "Gown"})]
        change(0, scores, response=None, response_status="refused")
        assert of_item()[0][0] == {"gown": 3}
        change(1, sessions, version=0)
        assert of_item()[0][0] == {"gown": 2}
        plan = store.write(lambda connection: records.session(connection, strong[2][0])).result()["plan"]
        for trial in trials_of(plan):
            trial["steps"][-1]["read_as"] = "text"
        change(2, sessions, plan=plan)
        assert of_item()[0][0] == {"gown": 1}


def session_of(study: Study, use: str = "hf:tiny") -> ModelSession:
    manner = read_prompting_settings(study, ModelSettings(use, {}, study.folder))
    cells = (("weak", "a", {"hive": 3, "home": 2}), ("weak", "b", {"queen": 4}), ("strong", "a", {"nest": 9}))
    completions = {
        ("sentences", "s2"): [
            GivenCompletions(
                {"constraint": level, "group": group}, Counter(counts), {text: text for text in counts}
            )
            for level, group, counts in cells
        ]
    }
    script = SessionTemplate(plan_session(study, study.items, list_id=1), manner)
    return ModelSession(script, [study.id], SessionTaker("m", 1), completions=completions)


def test_a_local_model_scores_peoples_completions_and_writes_its_own(study: Study) -> None:
    session = session_of(study)
    requests, shown = {}, {}
    for request in session.begin({}):
        trial = session.trial_of(request.work_key)
        requests[trial["item_id"]], shown[trial["item_id"]] = request, trial["condition"]["constraint"]
    assert requests["s1"].labels == ("dress", "gown") and requests["s1"].also_text
    assert (shown["s2"], requests["s2"].labels) == ("weak", ("hive", "queen", "home"))
    assert "nothing else" in requests["s1"].messages[-1].content
    logprobs = {"hive": -1.0, "home": -2.0}
    reply = Reply(
        requests["s2"].work_key, "hive", "answered", label_logprobs=logprobs, generated=" the garden.\n"
    )
    assert session.response_raw(reply) == " the garden.\n" and session.margin(reply) is None
    assert (session.verdict(reply).response, session.verdict(reply).correct) == ("the garden", False)
    other = session_of(study, "openai:m")
    assert all(request.labels is None and not request.also_text for request in other.begin({}))


def test_the_items_table_and_the_report_have_the_cloze_probabilities(study: Study, tmp_path: Path) -> None:
    for command in (("simulate", "--readers", 8), ("export", "--out", tmp_path / "out"), ("report",)):
        done = wrods(command[0], study.folder, *command[1:])
        assert done.exit_code == 0, done.output
    with (tmp_path / "out" / "items.csv").open(encoding="utf-8") as file:
        items = list(csv.DictReader(file))
    for item in items:
        shares = json.loads(item["completions"])
        assert sum(shares.values()) == pytest.approx(1) and int(item["completions_n"]) == 4
        right = {"dress", "gown"} if item["item_id"] == "s1" else {item["answer"]}
        assert float(item["cloze"]) == pytest.approx(sum(shares.get(answer, 0) for answer in right))
    strong, weak = (
        [float(item["cloze"]) for item in items if item["constraint"] == level]
        for level in ("strong", "weak")
    )
    assert sum(strong) > sum(weak)
    (report,) = (study.folder / "reports").iterdir()
    (table,) = (report / "tables").glob("table_s*_completions_constraint_full.csv")
    with table.open(encoding="utf-8") as file:
        rows = {row[0]: row for row in csv.reader(file) if len(row) > 2}
    assert float(rows["strong"][3]) == pytest.approx(100 * sum(strong) / 3)
