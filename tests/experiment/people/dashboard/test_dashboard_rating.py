"""Rating: blind, in each rater's own order, agreed or decided, and then the newest score."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from experiment.exporting.export import export_study
from experiment.exporting.tables import own_columns, read_csv
from experiment.rating import StoredRating, answers_of, told_of_rating
from experiment.scoring.trial import VERSION
from experiment.store import chain, records
from experiment.store.records import create_session, planned_columns, store_score, store_trial
from experiment.store.tables import sessions
from experiment.study import read_study
from stimuli.item import Item
from tests.experiment.people.conftest import Visitor, words_of

RUBRIC = "Two points for **both** halves of the story, one for either, else none."
CHANGES = (
    ("materials: {words: words.txt}", "materials: {words: words.txt}\nrating: {rubric: rubric.md}"),
    (
        "        - choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}\n",
        "        - answer: {show: word, ask: What is it about?, multiline: true}\n",
    ),
    ("  - practice: {items: practice.csv, feedback: true, pass: 50%}\n", ""),
)
TEXTS = ["It is about plants.", "Something to carry things in", "A round thing in the sky", "A game"]

TYPED = {
    "attempt": 1, "timed_out": False, "rt": 3000.0, "onset_ts": 1000.0, "paint_ts": 1004.0, "response_ts": 4000.0,
    "handler_ts": 4001.0, "frame_period": 16.67, "dropped_frames": 0, "hidden_ms": 0, "blurred_ms": 0,
    "first_key_ms": 400.0, "typing_ms": 2000.0, "paste_count": 0, "keyless_chars": 0, "key_log": [], "regions": [],
    "plugin_version": "wrods-answer 0.1.0", "created_at": "2026-11-21T10:00:00.000Z",
}  # fmt: skip


def stories() -> list[Item]:
    words = ["garden", "basket", "planet", "marble"]
    return [
        Item(
            item_id=f"w{i}", set_name="words", role="test", condition={"position": level},
            shown={"word": word if level == "intact" else word[1] + word[0] + word[2:]}, intact={"word": word},
            choices=None, answer=None,
            provenance={"source": "words.txt", "source_id": f"w{i}", "split": None, "licence": None, "operation": level, "seed": 7},
            covariates={},
        )
        for i, word in enumerate(words)
        for level in ("intact", "initial")
    ]  # fmt: skip


@pytest.fixture
def rated(make_study: Any, serve_study: Any, tmp_path: Any) -> Any:
    """A study whose free answers are rated, with a participant's and a model's session of two and two answers."""
    (tmp_path / "rated").mkdir()
    (tmp_path / "rated" / "rubric.md").write_text(RUBRIC, "utf-8")
    site = serve_study(make_study(*CHANGES, items=stories(), name="rated"))
    person = site.begin()
    person.agree()
    for index, text in enumerate(TEXTS):
        body = TYPED | {"client_uuid": str(uuid.uuid4()), "trial_index": index, "response_raw": text}
        told = person.caller.post(f"{person.base}/trials", body, **person.auth)
        assert told.status == 201, told.text

    def model(connection: Any) -> None:
        plan = records.session(connection, person.session_id)["plan"]  # type: ignore[index]
        create_session(connection, plan, session_id="f" * 32, reader_kind="model", reader="restorer")
        trials = [trial for screen in plan["screens"] for trial in screen.get("trials", ())]
        for trial in trials[:2]:
            row = planned_columns(trial) | {
                "session_id": "f" * 32,
                "response_raw": f"model says {trial['item_id']}",
            }
            store_trial(connection, row)
            verdict = site.service.score(trial, row["response_raw"])
            store_score(connection, "f" * 32, trial["trial_index"], 1, verdict)

    site.do(model)
    return site


def token_in(page: str) -> str:
    found = re.search(r'name="answer" value="([^"]+)"', page)
    return found[1] if found else ""


def rate_all(visitor: Visitor, values: Callable[[str], int]) -> list[str]:
    """Rate whatever the page offers until it is done; returns the answers in the order in which they came."""
    seen = []
    while True:
        page = visitor.get("/admin/small/rating").text
        if not (token := token_in(page)):
            return seen
        quoted = re.search(r"<blockquote[^>]*>(.*?)</blockquote>", page, re.S)
        assert quoted
        seen.append(quoted[1])
        visitor.post("/admin/small/rating", answer=token, value=values(quoted[1]))


def scores_of(site: Any, session_id: str) -> list[tuple[str, float | None, bool | None]]:
    return [
        (row["scorer"], row["score"], row["correct"])
        for row in site.read(records.trials_of_session, session_id)
    ]


def test_raters_see_the_intact_text_and_nothing_of_reader_or_condition(rated, visit):
    page = visit("cora", rated).get("/admin/small/rating").text
    told = words_of(page)
    assert re.search("garden|basket|planet|marble", told) and "What is it about?" in told and "both" in told
    secrets = [
        "agrden",
        "absket",
        "lpanet",
        "amrble",
        "initial",
        "P001",
        "restorer",
        "human",
        "correct",
        "ffffffffffff",
    ]
    assert not [secret for secret in secrets if secret in told]
    assert "f" * 32 not in page


def test_each_rater_has_an_order_of_their_own_that_mixes_readers(rated, visit):
    orders = [rate_all(visit(name, rated), lambda _: 1) for name in ("cora", "dan")]
    assert sorted(orders[0]) == sorted(orders[1]) and len(orders[0]) == 6
    assert orders[0] != orders[1]


def told_of(site: Any) -> dict[str, Any]:
    study = read_study(site.service.folder)
    with site.store.read() as connection:
        told = told_of_rating(study, connection)
    assert told is not None
    return told


def test_agreed_answers_get_their_score_and_others_wait_for_a_decision(rated, visit):
    cora, dan = visit("cora", rated), visit("dan", rated)
    rate_all(cora, lambda text: 2 if "plants" in text else 1)
    before = scores_of(rated, "f" * 32)
    assert {scorer for scorer, _, _ in before} == {f"accepted-{VERSION}"}
    assert dan.get("/admin/small/rating/agreement").status_code == 403
    rate_all(dan, lambda text: 0 if "game" in text else 2 if "plants" in text else 1)
    assert scores_of(rated, "f" * 32) == [("rated", 0.5, None)] * 2
    page = dan.get("/admin/small/rating/agreement").text
    assert "A game" in page and "plants" not in page and "Cohen’s kappa" in page
    token = token_in(page)
    own = dan.post("/admin/small/rating/agreement", answer=token, value=1, how="third")
    assert own.status_code == 400
    dan.post("/admin/small/rating/agreement", answer=token, value=2, how="discussion", note="both halves")
    with rated.store.read() as connection:
        (person,) = [row for row in records.sessions_overview(connection) if row["reader"] == "P001"]
        rows = {
            row["response_raw"]: row for row in records.trials_of_session(connection, person["session_id"])
        }
        assert chain.verify(connection, person["session_id"]).broken is None
    assert (rows["A game"]["scorer"], rows["A game"]["score"]) == ("rated", 1.0)
    assert (rows["It is about plants."]["score"], rows["A round thing in the sky"]["score"]) == (1.0, 0.5)
    assert "A game" not in dan.get("/admin/small/rating/agreement").text
    told = told_of(rated)
    assert (told["decided"], told["by_discussion"], told["people"], told["scale"]) == (1, 1, 2, [0, 2])
    assert told["rubric"] == "rubric.md"


def test_reports_are_told_how_far_raters_agree_and_not_who_they_are(rated, visit):
    told = told_of(rated)
    assert (told["answers"], told["complete"], told["agreements"]) == (6, 0, [])
    rate_all(visit("dan", rated), lambda text: 0 if "game" in text else 2 if "plants" in text else 1)
    rate_all(visit("cora", rated), lambda text: 2 if "plants" in text else 1)
    told = told_of(rated)
    counts = {"raters": 2, "answers": 6, "complete": 6, "differing": 1, "decided": 0}
    assert {name: told[name] for name in counts} == counts
    (pair,) = told["agreements"]
    assert (pair["raters"], pair["answers"], pair["same"], pair["weights"]) == ([1, 2], 6, 5, "quadratic")
    assert pair["low"] < pair["kappa"] < pair["high"]
    assert "cora" not in str(told)


def test_what_people_rated_stands_when_answers_are_scored_again(rated, visit):
    for name in ("cora", "dan"):
        rate_all(visit(name, rated), lambda _: 2)
    assert scores_of(rated, "f" * 32) == [("rated", 1.0, None)] * 2

    def score_again(connection: Any) -> None:
        for trial in rated.planned("f" * 32)[:2]:
            verdict = rated.service.score(trial, "something else")
            store_score(connection, "f" * 32, trial["trial_index"], 1, verdict)

    rated.do(score_again)
    assert scores_of(rated, "f" * 32) == [("rated", 1.0, None)] * 2
    given = [row["scorer"] for row in rated.read(records.all_scores) if row["session_id"] == "f" * 32]
    assert sorted(given) == [f"accepted-{VERSION}"] * 4 + ["rated"] * 2, "nothing is overwritten"


def test_raters_are_told_what_the_labels_of_an_answer_meant(rated, visit):
    rater = visit("cora", rated)

    def relabel(connection: Any, label_map: dict[str, str]) -> None:
        for row in connection.execute(select(sessions.c.session_id, sessions.c.plan)).all():
            plan = row.plan | {"label_map": label_map}
            connection.execute(
                update(sessions).where(sessions.c.session_id == row.session_id).values(plan=plan)
            )

    for label_map, told in (
        ({"A": "A", "B": "B"}, ["“A” means A", "“B” means B"]),
        ({"A": "B", "B": "A"}, ["“B” means A", "“A” means B"]),
        ({}, []),
    ):
        rated.do(lambda connection, label_map=label_map: relabel(connection, label_map))
        page = rater.get("/admin/small/rating").text
        assert all(meaning in page for meaning in told) and ('class="labels"' in page) == bool(told)


def test_a_third_rater_decides_without_having_rated_and_every_rating_is_exported(rated, visit, tmp_path):
    rate_all(visit("cora", rated), lambda _: 0)
    rate_all(visit("dan", rated), lambda text: 2 if "game" in text else 0)
    owner = visit("ada", rated)
    assert rate_all(owner, lambda _: 1) == []
    given = {"answer": token_in(owner.get("/admin/small/rating/agreement").text), "value": 1, "how": "third"}
    assert owner.post("/admin/small/rating/agreement", **given).status_code == 302
    decided = [one for one in rated.read(answers_of, "small", rated.service.rating) if one.decided]
    assert [(one.text, one.value) for one in decided] == [("A game", 1)]
    exported = export_study(read_study(rated.service.folder), rated.store, tmp_path / "out", "csv")
    rows = list(read_csv(tmp_path / "out" / "ratings.csv", own_columns("ratings")))
    assert exported.rows["ratings"] == len(rows) == 13
    (game,) = {row["trial_index"] for row in rows if row["role"] == "adjudicator"}
    told = [(row["rating_index"], row["rater"], row["value"]) for row in rows if row["trial_index"] == game]
    assert told[:2] == [(0, 1, 0), (1, 2, 2)] and (2, 3, 1) in told, "as rated, and who rated is a number"


def test_a_rating_can_be_changed_until_the_other_has_rated(rated, visit):
    cora = visit("cora", rated)
    first = cora.get("/admin/small/rating?at=1").text
    token = token_in(first)
    for value in (0, 2):
        cora.post("/admin/small/rating", answer=token, value=value)
    assert re.search(r'value="2"[^>]* class="given"', cora.get("/admin/small/rating?at=1").text)
    assert cora.post("/admin/small/rating", answer="guess", value=1).status_code == 400
    cora.post("/admin/small/rating", answer=token, value=7)
    given = [one.ratings for one in rated.read(answers_of, "small", rated.service.rating) if one.ratings]
    assert given == [(StoredRating("cora", 2, None),)]


def test_pilots_and_excluded_sessions_are_not_rated(rated, visit):
    (person,) = (row["session_id"] for row in rated.sessions if row["reader"] == "P001")
    visit("ada", rated).post(f"/admin/small/sessions/{person[:12]}/exclude", reason="slept")
    left = rated.read(answers_of, "small", rated.service.rating)
    assert {one.place[0] for one in left} == {"f" * 32}
