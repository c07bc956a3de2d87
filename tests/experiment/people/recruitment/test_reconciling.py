from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from experiment.people.recruitment.codes import Recruitment, Reward, platforms
from experiment.people.recruitment.reconciliation import (
    Line,
    Report,
    approve_csv,
    import_submissions,
    parse_export,
    reconciliation,
)
from experiment.store.tables import audit, submissions
from stimuli.errors import UserError
from tests.experiment.people.conftest import prolific_id

PROLIFIC_HEADER = [
    "Submission id", "Participant id", "Status", "Custom study tncs accepted at", "Started at", "Completed at",
    "Reviewed at", "Archived at", "Time taken", "Completion code", "Total approvals", "Fluent languages", "Age", "Sex",
]  # fmt: skip
MTURK_HEADER = [
    "HITId", "HITTypeId", "Title", "Reward", "AssignmentId", "WorkerId", "AssignmentStatus", "AcceptTime",
    "SubmitTime", "WorkTimeInSeconds", "Input.url", "Answer.surveycode", "Approve", "Reject",
]  # fmt: skip


def table(header: list[str], rows: Iterable[dict[str, object]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, header, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def submission(
    name: str, status: str, code: str = "C1DONE", seconds: int = 600, **more: object
) -> dict[str, object]:
    return {
        "Submission id": f"sub-{name}", "Participant id": prolific_id(name), "Status": status, "Time taken": seconds,
        "Completion code": code, "Age": 34, "Sex": "Female",
    } | more  # fmt: skip


def person(name: str) -> dict[str, str]:
    return {"PROLIFIC_PID": prolific_id(name), "STUDY_ID": "st", "SESSION_ID": f"sub-{name}"}


def ids(*names: str) -> set[str]:
    return {prolific_id(name) for name in names}


def answer(site: Any, name: str, *, most: int | None = None, fail: int = 0) -> Any:
    """Let somebody take part: all or some trials, with so many failed checks."""
    participant = site.begin(platform=person(name))
    plan = site.planned(participant)
    for one in plan[:most]:
        labels = one["steps"][-1]["labels"]
        given = labels[0]
        if one["is_attention_check"]:
            is_wrong, fail = fail > 0, fail - 1
            given = next(label for label in labels if (label != one["answer"]) is is_wrong)
        assert participant.answer(one["trial_index"], response_raw=given).status == 201
    if most is None:
        assert participant.finish(len(plan)).status == 200
    return participant


@pytest.fixture
def checked(recruiting: Any) -> Any:
    """The small study with two attention checks, recruiting on Prolific."""
    return recruiting("prolific", None, ("break_every: 2", "attention_checks: 2"))


def reconcile(site: Any, contents: bytes, **changed: Any) -> Report:
    recruitment: Recruitment = replace(site.service.recruitment, **changed)
    export = parse_export(contents, "export.csv", expected=recruitment.platform)
    import_submissions(site.store, recruitment, export, actor="test")
    return reconciliation(site.store, recruitment)


def of(report: Report, name: str) -> Line:
    theirs = [line for line in report.lines if line.external_id in (name, prolific_id(name))]
    (found,) = [line for line in theirs if "data_without_submission" not in line.marks]
    return found


def test_a_whole_day_on_prolific_is_sorted_into_whom_to_pay_and_whom_to_look_at(checked):
    answer(checked, "done")
    answer(checked, "nocode")
    answer(checked, "wrong")
    answer(checked, "stopped", most=3)
    answer(checked, "gone", most=2)
    answer(checked, "late")
    answer(checked, "unseen")
    declined = checked.begin(platform=person("declined"))
    declined.event("consent", {"agreed": False})
    rows = [
        submission("done", "AWAITING REVIEW"),
        submission("nocode", "AWAITING REVIEW", "NOCODE"),
        submission("wrong", "AWAITING REVIEW", "C3OUT"),
        submission("stopped", "AWAITING REVIEW", ""),
        submission("gone", "RETURNED", "", 120),
        submission("late", "TIMED-OUT", "", 4000),
        submission("nobody", "APPROVED"),
        submission("ghost", "AWAITING REVIEW"),
        submission("declined", "AWAITING REVIEW", "C2NOCON", 20),
    ]
    report = reconcile(checked, table(PROLIFIC_HEADER, rows))

    def among(lines: list[Line]) -> set[str | None]:
        return {line.external_id for line in lines}

    assert among(report.with_verdict("approve")) == ids("done", "nocode")
    assert among(report.with_verdict("review")) >= ids("wrong", "stopped", "ghost", "declined")
    assert report.with_verdict("reject") == []
    for mark, name in {
        "paid_without_data": "nobody",
        "submission_without_data": "ghost",
        "wrong_code": "wrong",
    }.items():
        assert among(report.marked(mark)) == ids(name)
    assert "C1DONE" in of(report, "wrong").reasons[0]
    assert "3 of 7" in of(report, "stopped").reasons[0]
    assert of(report, "declined").reasons and of(report, "late").reasons
    (alone,) = report.marked("data_without_submission")
    assert (alone.external_id, alone.state, alone.verdict) == (prolific_id("unseen"), "finished", "review")
    assert of(report, "gone").marks == ("returned",)


def test_before_a_list_is_uploaded_nobody_lacks_a_submission_and_no_pay_is_calculated(checked):
    answer(checked, "done")
    recruitment = replace(checked.service.recruitment, reward=Reward(Decimal(3), "GBP"))
    before = reconciliation(checked.store, recruitment)
    assert (before.imported_at, before.lines, before.median_minutes, before.hourly) == (None, (), None, None)
    report = reconcile(
        checked, table(PROLIFIC_HEADER, [submission("other", "APPROVED")]), reward=recruitment.reward
    )
    assert [line.external_id for line in report.marked("data_without_submission")] == [prolific_id("done")]
    assert report.hourly == Decimal("18.00")


def test_places_of_those_who_returned_reopen_and_finished_ones_stay_when_time_ran_out(checked):
    for name, most in (("gone", 2), ("left", 2), ("late", None)):
        answer(checked, name, most=most)
    rows = [submission("gone", "RETURNED"), submission("left", "TIMED-OUT"), submission("late", "TIMED-OUT")]
    report = reconcile(checked, table(PROLIFIC_HEADER, rows))
    assert {name: of(report, name).state for name in ("gone", "left", "late")} == {
        "gone": "returned", "left": "timed_out", "late": "finished",
    }  # fmt: skip
    reasons = {row["ended_reason"] for row in checked.sessions}
    (noted,) = checked.rows(select(audit.c.detail).where(audit.c.action == "reconcile"))
    assert reasons == {"returned on Prolific", "timed out on Prolific", None}
    assert (noted["returned"], noted["timed_out"]) == (1, 1)


def test_rejection_is_suggested_only_under_prolifics_own_rule(checked):
    rule = {
        (12, 2): "reject",
        (12, 1): "approve",
        (12, 0): "approve",
        (4, 1): "reject",
        (4.9, 2): "reject",
        (5, 1): "approve",
    }
    for number, ((minutes, failed), verdict) in enumerate(rule.items()):
        participant = answer(checked, f"p{number}", fail=failed)
        code = participant.finish(len(participant.trials())).body["completion_code"]
        rows = [submission(f"p{number}", "AWAITING REVIEW", code)]
        line = of(reconcile(checked, table(PROLIFIC_HEADER, rows), minutes=minutes), f"p{number}")
        assert line.verdict == verdict, (minutes, failed)
        assert len(line.evidence) == (failed if verdict == "reject" else 0)
        for check in line.evidence:
            assert check.asked and check.answered != check.expected


def test_wrong_answers_to_questions_never_suggest_rejection(checked):
    participant = checked.begin(platform=person("poor"))
    for index, one in enumerate(checked.planned(participant)):
        labels = one["steps"][-1]["labels"]
        wrong = next((label for label in labels if label != one["answer"]), labels[0])
        participant.answer(
            index, response_raw=one["answer"] if one["is_attention_check"] or one["is_practice"] else wrong
        )
    participant.finish(len(participant.trials()))
    line = of(reconcile(checked, table(PROLIFIC_HEADER, [submission("poor", "AWAITING REVIEW")])), "poor")
    assert (line.verdict, line.evidence) == ("approve", ())


def test_importing_again_updates_and_doubles_nothing(checked):
    answer(checked, "one")
    first = table(PROLIFIC_HEADER, [submission("one", "AWAITING REVIEW")])
    assert reconcile(checked, first).lines == reconcile(checked, first).lines
    later = reconcile(checked, table(PROLIFIC_HEADER, [submission("one", "APPROVED")]))
    assert of(later, "one").status == "approved" and of(later, "one").verdict == "settled"
    (row,) = checked.rows(submissions)
    # what a platform tells of a person is not stored
    stored = [str(value) for value in row]
    assert prolific_id("one") in stored, "the platform's id is what submissions are compared by"
    assert not {"Female", "34"} & set(stored)


def test_a_place_returned_in_another_study_of_the_platform_leaves_the_session_alone(checked):
    answer(checked, "one")
    rows = [submission("one", "RETURNED", **{"Submission id": "of-the-pilot"})]
    report = reconcile(checked, table(PROLIFIC_HEADER, rows))
    assert of(report, "one").session_id is None
    assert [line.state for line in report.marked("data_without_submission")] == ["finished"]


def test_mturk_is_read_and_given_back_with_whom_to_approve(recruiting):
    site = recruiting("mturk", {})
    codes = {}
    for name in ("A1", "A2"):
        given = {"workerId": name, "assignmentId": f"as-{name}", "hitId": "h"}
        codes[name] = site.begin(platform=given).complete().body["completion_code"]
    rows: list[dict[str, object]] = [
        {"HITId": "h", "WorkerId": name, "AssignmentId": f"as-{name}", "AssignmentStatus": "Submitted",
         "Reward": "$1.50", "WorkTimeInSeconds": 720, "Answer.surveycode": code}
        for name, code in (("A1", codes["A1"]), ("A2", codes["A1"]), ("A3", "x"))
    ]  # fmt: skip
    contents = table(MTURK_HEADER, rows)
    export = parse_export(contents, "batch.csv", expected=site.service.recruitment.platform)
    assert export.unknown_columns == () and str(export.reward) == "1.50 USD"
    report = reconcile(site, contents, reward=export.reward)
    assert of(report, "A1").verdict == "approve"
    assert of(report, "A2").marks == ("wrong_code", "awaiting_review")
    assert of(report, "A3").marks == ("awaiting_review", "submission_without_data")
    assert report.hourly == Decimal("7.50")
    given_back = list(
        csv.DictReader(io.StringIO(approve_csv(report, export.platform, contents, "batch.csv")))
    )
    assert [row["Approve"] for row in given_back] == ["x", "", ""]
    assert [row["Reject"] for row in given_back] == ["", "", ""]
    assert [row["HITId"] for row in given_back] == ["h"] * 3


def test_sona_is_read_with_its_survey_codes(recruiting):
    site = recruiting("sona", {})
    site.begin(platform={"survey_code": "4711"}).complete()
    contents = "Survey ID;Credit Status;Sign-Up Time\n4711;Awaiting Action;1\n4712;Credit Granted;2\n".encode(
        "utf-16"
    )
    report = reconcile(site, contents)
    assert of(report, "4711").verdict == "approve"
    assert of(report, "4712").marks == ("paid_without_data",)
    assert platforms()["sona"].name in report.rule
    assert approve_csv(report, platforms()["sona"], contents, "x") == "4711\n"


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        (b"", "x.csv"),
        (b"a,b\n1,2\n", "a, b"),
        (b"Participant id,Status\np,VANISHED\n", "line 2: .*'VANISHED'"),
        (b"WorkerId,AssignmentStatus\nA,Submitted\n", "MTurk.*Prolific"),
        (b"Participant id,Status\n,APPROVED\n", "x.csv"),
        (b'Participant id,Status\np,APPROVED\n"q,APPROVED\nr,APPROVED\n', "x.csv, line 4: "),
        (b"Participant id,Status\n" + b"x" * 200_000 + b",APPROVED\n", "x.csv, line 2: "),
    ],
)
def test_a_file_that_cannot_be_read_says_why(contents, told):
    csv.field_size_limit(131_072)  # of the whole process; importing responses raises it
    with pytest.raises(UserError, match=told):
        parse_export(contents, "x.csv", expected=platforms()["prolific"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary(max_size=400)
    | st.text(max_size=200).map(lambda text: b"Participant id,Status\n" + text.encode())
)
def test_any_bytes_are_read_or_refused_in_words(contents):
    try:
        export = parse_export(contents, "x.csv")
    except UserError as refusal:
        assert "x.csv" in str(refusal)
    else:
        assert export.rows
