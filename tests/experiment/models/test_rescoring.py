"""Stored responses scored again: scores are only added, the study's own scorer counts, what people rated stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from experiment.exporting.tables import trial_rows
from experiment.integrity.build_provenance import ensure_version
from experiment.models import ModelSettings, Reply, Request
from experiment.models.costs import Price
from experiment.models.engine import Follow
from experiment.models.journal import calls_of, spending
from experiment.models.judges.judging import OpenedJudge, judge_again
from experiment.models.planning.plans import plan_sessions
from experiment.models.runs.limits import Stop
from experiment.models.runs.recording import Answerer, Recording
from experiment.models.runs.status import RunOutcome
from experiment.scoring.rescoring import score_again
from experiment.scoring.trial import VERSION, Score
from experiment.store import Store, open_store, records
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.models.running import invoke
from tests.experiment.models.test_planning import with_models

HTEST = (
    "[f, j], answer_by: text}", "{A: f, B: j}}",
)  # fmt: skip


class Scripted:
    """Answers every request with the same words."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.asked: list[Request] = []

    def describe(self) -> dict[str, object]:
        return {"identity": {"model": "scripted"}}

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        for request in requests:
            self.asked.append(request)
            yield Reply(
                request.work_key, self.texts[len(self.asked) % len(self.texts)], "answered", prompt_tokens=3
            )

    def close(self) -> None:
        """Nothing to close."""


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    from tests.experiment.conftest import small_items

    items = [
        replace(one, choices=None, answer="A" if number % 4 < 2 else "B")
        for number, one in enumerate(small_items())
    ]
    who = 'm: {use: "hf:m"}, t: {use: "hf:m", strategy: chain_of_thought, judge: j}, j: {use: "hf:j"}'
    return make_study(
        with_models(who=who),
        HTEST,
        ("\n  - practice: {items: practice.csv, feedback: true, pass: 50%}", ""),
        items=items,
    )


@pytest.fixture
def store(study: Study) -> Iterator[Store]:
    with open_store(study.folder) as opened:
        opened.write(lambda c: ensure_version(c, study.id, study.design_hash, "{}")).result()
        yield opened


def run(
    study: Study, store: Store, text: Callable[[dict[str, Any]], str], *, reader: str = "m", **options: object
) -> None:
    """Store replies as a run does."""
    outcome = RunOutcome(reader, "hf:m", f"run-{reader}")
    recording = Recording(store, outcome, Answerer("model", {"model": reader}), Stop())
    settings = ModelSettings("hf:m", options, study.folder)
    for session in plan_sessions(study, reader, settings, {"model": reader}):
        for request in recording.begin(session, 0):
            said = text(session.trial_of(request.work_key))
            recording.keep(session, request, Reply(request.work_key, said, "answered"), cost=None)
    recording.settle(0)


def latest(store: Store, study: Study) -> list[dict[str, Any]]:
    with store.read() as connection:
        return list(trial_rows(connection, study.id))


def all_scores(store: Store) -> list[dict[str, Any]]:
    with store.read() as connection:
        return list(records.all_scores(connection))


def test_a_papers_parser_stands_beside_and_says_what_it_would_change(study, store):
    run(study, store, lambda trial: "I cannot tell")
    assert {row["response_status"] for row in latest(store, study)} == {"refused"}
    dry = score_again(study, store, parser="htest", dry_run=True)
    assert (dry.responses, dry.changed, dry.beside, dry.added, dry.counts) == (8, 0, 8, 8, False)
    assert dry.moved_beside == {("refused", "right"): 4, ("refused", "wrong"): 4} and not dry.moved
    assert dry.kept == {f"exact-{VERSION}": 8}, "the tables keep the study's own"
    assert len(all_scores(store)) == 8
    score_again(study, store, parser="htest")
    assert {row["response_status"] for row in latest(store, study)} == {"refused"}, (
        "tables take the study's own scorer"
    )
    assert {row["scorer"] for row in all_scores(store)[8:]} == {"also:published_htest-1"}
    assert len(all_scores(store)) == 16
    score_again(study, store, parser="htest")
    assert len(all_scores(store)) == 16, "the same verdict is not added twice"


def test_verdicts_by_older_rules_are_renewed_and_those_that_stay_the_same_are_no_change(study, store):
    run(study, store, lambda trial: "I believe it is B.")
    for row in all_scores(store):
        place = {name: row[name] for name in ("session_id", "trial_index", "attempt")}
        same = row["trial_index"] % 2
        old = Score("B", "valid", row["correct"], row["score"], "exact-3", 3)
        old = old if same else Score(None, "unparsed", None, None, "exact-3", 3)
        store.write(lambda c, place=place, old=old: records.store_score(c, **place, verdict=old)).result()
    outcome = score_again(study, store)
    assert (outcome.changed, outcome.renewed, outcome.added, outcome.beside) == (4, 4, 8, 0)
    assert set(outcome.moved) == {("unparsed", "right"), ("unparsed", "wrong")}
    assert {(row["scorer"], row["response"]) for row in latest(store, study)} == {(f"exact-{VERSION}", "B")}
    again = score_again(study, store)
    assert (again.changed, again.renewed, again.added) == (0, 0, 0)


def test_what_people_rated_is_left_as_it_is(study, store):
    run(study, store, lambda trial: "B")
    row = all_scores(store)[0]
    place = {name: row[name] for name in ("session_id", "trial_index", "attempt")}
    rated = Score("x", "valid", None, 2.0, "rated", 1)
    store.write(lambda c: records.store_score(c, **place, verdict=rated)).result()
    outcome = score_again(study, store)
    assert (outcome.rated, outcome.responses) == (1, 7)
    assert sum(one["scorer"] == "rated" for one in latest(store, study)) == 1


def test_a_judge_reads_thoughts_once_and_its_verdict_counts(study, store):
    run(study, store, lambda trial: "Hm. It may be the first group.", reader="t", strategy="chain_of_thought")
    assert {row["response_status"] for row in latest(store, study)} == {"unparsed"}
    judge = Scripted("A", "None")
    settings = ModelSettings("hf:j", {}, study.folder)
    outcome, sent = judge_again(study, store, OpenedJudge(judge), "j", settings)
    assert (sent, outcome.counts, outcome.changed) == (8, True, 4)
    assert all("Hm. It may be the first group." in one.messages[0].content for one in judge.asked)
    assert {one.purpose for one in judge.asked} == {"judge"} and judge.asked[0].labels == ("A", "B", "None")
    rows = latest(store, study)
    assert sorted(row["response_status"] for row in rows) == ["unparsed"] * 4 + ["valid"] * 4
    assert {row["scorer"] for row in rows} == {"judge:j-1"}
    _, again = judge_again(study, store, OpenedJudge(judge), "j", settings)
    assert again == 0 and len(judge.asked) == 8
    ours = score_again(study, store)
    assert {row["scorer"] for row in latest(store, study)} == {"judge:j-1"}, (
        "our parser stands beside where a judge counts"
    )
    assert (ours.changed, ours.beside, ours.counts) == (0, 4, True)
    assert ours.kept == {"judge:j-1": 4} and not ours.moved
    assert "4 by judge:j-1" in invoke("score", study.folder).output
    with store.read() as connection:
        judged = [call for call in records.all_calls(connection) if call["purpose"] == "judge"]
    assert len(judged) == 8 and {call["prompt_tokens"] for call in judged} == {3}


def test_a_judge_is_paid_from_the_studys_budget_and_stops_where_it_ends(study, store):
    run(study, store, lambda trial: "Hm.", reader="t", strategy="chain_of_thought")
    judge, settings = Scripted("A"), ModelSettings("openai:j", {}, study.folder)
    price = Price(1.0, 1.0, 1.0, 1.0, "test")
    one = 4e-4
    with calls_of(study, store, price, run_id="judge-1", reader="j", budget=3.5 * one, say=print) as of_judge:
        outcome, waiting = judge_again(study, store, OpenedJudge(judge, of_judge, "judge-1"), "j", settings)
    assert waiting == 8 and 0 < len(judge.asked) < 8 and "budget" in str(outcome.stopped)
    with store.read() as connection:
        costs = [call["cost_usd"] for call in records.all_calls(connection) if call["purpose"] == "judge"]
        spent = spending(connection, study)
    assert len(costs) == len(judge.asked) and sum(costs) == pytest.approx(spent.total), (
        "a reply that counts no tokens may have cost all that was set aside"
    )
    assert 0 < spent.total <= 3.5 * one
    _, left = judge_again(study, store, OpenedJudge(judge), "j", settings)
    assert left == 8 - len(costs)


def test_the_command_shows_what_changes_and_names_unknown_parsers(study, store):
    run(study, store, lambda trial: "I cannot tell")
    shown = invoke("score", study.folder, "--parser", "htest", "--dry-run")
    assert shown.exit_code == 0, shown.output
    assert f"8 by exact-{VERSION}" in shown.output
    told = invoke("score", study.folder, "--parser", "htest", "--json")
    assert {name: json.loads(told.output)[name] for name in ("changed", "beside", "added")} == {
        "changed": 0,
        "beside": 8,
        "added": 8,
    }
    assert invoke("score", study.folder, "--model", "m").exit_code == 0
    with pytest.raises(UserError, match="'published'"):
        score_again(study, store, parser="publishd")
    with pytest.raises(UserError, match="'n'"):
        score_again(study, store, reader="n")


def test_a_study_that_publishes_scoring_is_scored_as_the_paper_did(study, store):
    from experiment.checking import load_study

    file = study.folder / "study.yaml"
    htest = "materials: {htest: {rules: [uppercase, palindrome], exemplars: 2, items: 2}}"
    text = (
        file.read_text("utf-8")
        .replace("materials: {words: words.txt}", htest)
        .replace("seed: 7", "seed: 7\npublished: [scoring]")
    )
    begin, end = text.index("design:"), text.index("procedure:")
    file.write_text(text[:begin] + text[end:], "utf-8")
    published = load_study(study.folder)
    session = next(plan_sessions(published, "m", ModelSettings("hf:m", {}, published.folder), {}))
    (request, *_) = session.begin({})
    verdict = session.verdict(Reply(request.work_key, "I cannot tell", "answered"))
    assert (verdict.response, verdict.scorer) == ("A", "published_htest-1")
    own = next(plan_sessions(study, "m", ModelSettings("hf:m", {}, study.folder), {}))
    (request, *_) = own.begin({})
    assert own.verdict(Reply(request.work_key, "I cannot tell", "answered")).response_status == "refused"
