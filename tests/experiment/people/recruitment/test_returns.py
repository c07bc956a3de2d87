from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from experiment.people.recruitment.codes import lines_to_add, missing_lines, recruitment_for
from experiment.people.recruitment.return_links import failed_checks, return_for
from experiment.study import Study
from stimuli.errors import UserError
from tests.experiment.people.conftest import config_of, settings_of

SONA_URL = "https://school.sona-systems.com/webstudy_credit.aspx?experiment_id=123&credit_token=abc9"


def if_left(site: Any, given: dict[str, str]) -> dict[str, Any]:
    """What a page knows from the start of the way back of who declines or stops: it needs no session for that."""
    return dict(config_of(site.caller().get(f"/small/?{urlencode(given)}").text)["if_left"])


def recruitment(make_study: Callable[..., Study], recruit: str, config: dict[str, Any]) -> Any:
    study = make_study(settings_of(f"recruit: {recruit}"))
    return recruitment_for(study, {"recruitment": {"small": config}})


def test_who_finishes_declines_or_deletes_on_prolific_goes_back_with_a_code(recruiting, prolific):
    site = recruiting("prolific")
    told = if_left(site, prolific)
    assert told["completion_code"] == "C2NOCON"
    assert told["return_url"] == "https://app.prolific.com/submissions/complete?cc=C2NOCON"
    assert site.sessions == []
    told = site.begin(platform=prolific).complete().body
    assert told["completion_code"] == "C1DONE"
    assert told["return_url"] == "https://app.prolific.com/submissions/complete?cc=C1DONE"
    assert told["return_by_itself"] is True and "Prolific" in told["return_text"]


@pytest.mark.parametrize(
    ("event", "code"),
    [(("stop", {"then": "keep"}), "C2NOCON"), (("device", {"passed": False, "missed": ["screen"]}), None)],
)
def test_who_stops_has_a_code_and_whose_device_does_not_fit_returns_the_place(
    recruiting, prolific, event, code
):
    """Only the browser knows the device, and a script can report any: such an end is never paid by a code."""
    site = recruiting("prolific", eligible="{device: computer}")
    participant = site.begin(platform=prolific)
    participant.event("consent", participant.agreement)
    assert participant.event(*event).status == 201
    told = participant.leave().body
    assert told["completion_code"] == code
    if code is None:
        assert told["return_url"] is None
        assert told["return_text"] == site.service.pack.texts["return_prolific_screened_out"]
    else:
        assert told["return_url"].endswith(f"?cc={code}")


@pytest.mark.parametrize("event", [("device", {"passed": False}), ("practice", {"then": "end"})])
def test_an_end_that_the_plan_does_not_have_brings_no_code(make_study, serve_study, event):
    """Else a script is paid for a screening that the study does not have."""
    participant = serve_study(make_study((", pass: 50%", ""))).begin()
    participant.agree()
    assert participant.event(*event).status == 400
    assert participant.finish(0).status == 409


def test_without_codes_people_are_asked_to_return_their_place_or_prolific_is_told_so(recruiting, prolific):
    site = recruiting("prolific", {})
    told = if_left(site, prolific)
    assert told["return_url"] is None and told["completion_code"] is None
    assert told["return_text"] == site.service.pack.texts["return_prolific_no_consent"]
    told = site.begin(platform=prolific).complete().body
    assert told["return_url"] == "https://app.prolific.com/submissions/complete?cc=NOCODE"


@pytest.mark.parametrize("given", [SONA_URL, SONA_URL + "&survey_code=XXXX"])
def test_sona_grants_credit_to_the_survey_code_of_the_link(recruiting, given):
    told = recruiting("sona", {"credit_url": given}).begin(platform={"survey_code": "4711"}).complete().body
    assert told["return_url"] == f"{SONA_URL}&survey_code=4711"


def test_mturk_gives_each_a_code_to_take_along_and_leads_to_the_right_site(recruiting):
    site = recruiting("mturk", {})
    given = {"workerId": "A1", "assignmentId": "3X", "hitId": "3H"}
    told = site.begin(platform=given).complete().body
    assert len(told["completion_code"]) == 8
    assert told["return_url"] == "https://worker.mturk.com/tasks"
    assert told["return_by_itself"] is False, "the code has to be copied first"
    sandbox = {"workerId": "A2", "assignmentId": "3Y", "turkSubmitTo": "https://workersandbox.mturk.com"}
    other = site.begin(platform=given | sandbox).complete().body
    assert other["return_url"] == "https://workersandbox.mturk.com/tasks"
    assert other["completion_code"] != told["completion_code"]


@pytest.mark.parametrize(("wrong", "code"), [(True, "C4CHECK"), (False, "C1DONE")])
def test_failed_attention_checks_have_a_code_of_their_own(recruiting, prolific, wrong, code):
    site = recruiting("prolific", None, ("break_every: 2", "attention_checks: 2"))
    participant = site.begin(platform=prolific)
    planned, failed = site.planned(participant), []
    for trial in planned:
        labels = trial["steps"][-1]["labels"]
        answer = labels[0]
        if trial["is_attention_check"]:
            answer = next(label for label in labels if (label == trial["answer"]) is not wrong)
            failed += [trial["trial_index"]] if wrong else []
        assert participant.answer(trial["trial_index"], response_raw=answer).status == 201
    assert participant.finish(len(planned)).body["completion_code"] == code
    with site.store.read() as connection:
        assert failed_checks(connection, participant.session_id) == failed
    assert len(failed) == (2 if wrong else 0)


@pytest.mark.parametrize(
    ("rule", "limit"),
    [
        ("{attention_checks_failed: 2 or more}", 2),
        ("{attention_checks_failed: above 0}", 1),
        ("{pastes: 3 or more}", None),
    ],
)
def test_what_the_study_declares_of_checks_comes_before_the_platforms_rule(make_study, rule, limit):
    study = make_study(("seed: 7\n", f"seed: 7\nanalysis: {{exclude: {{sessions: {rule}}}}}\n"))
    assert recruitment_for(study, {}).failed_checks_at == limit


@pytest.mark.parametrize(("recruit", "mend"), [("prolific", 'complete = "…"'), ("mturk", "MTurk")])
def test_a_code_in_the_study_is_refused_where_people_are_paid_by_it(make_study, recruit, mend):
    study = make_study(settings_of(f"recruit: {recruit}, completion_code: SECRET7"))
    with pytest.raises(UserError, match=r"participants\.completion_code") as refused:
        recruitment_for(study, {})
    assert mend in str(refused.value) and "SECRET7" not in str(refused.value)


def test_missing_codes_are_told_with_the_lines_to_add(make_study):
    given = recruitment(make_study, "prolific", {"complete": "C1"})
    lines = lines_to_add(given)
    assert lines[0].startswith("[recruitment.small]")
    assert [line.split(" = ")[0] for line in lines[1:]] == ["no_consent", "screened_out", "failed_checks"]
    told = "\n".join(missing_lines(given, Path("/home/me/config.toml")))
    assert all(line in told for line in lines) and "/home/me/config.toml" in told
    codes = {"complete": "C1", "no_consent": "C2", "screened_out": "C3", "failed_checks": "C4"}
    assert list(missing_lines(recruitment(make_study, "prolific", codes), Path("c"))) == []
    assert list(missing_lines(recruitment(make_study, "lab", {}), Path("c"))) == []


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"complet": "C1"}, "'complete'"),
        ({"complete": "https://app.prolific.com/x?cc=C1"}, "complete is 'https"),
        ({"complete": "C1", "screened_out": "C1"}, "C1"),
        ({"credit_url": "http://school.example.org"}, "experiment_id and credit_token"),
        ({"reward": "a lot"}, "2.50 GBP"),
        ({"minutes": 0}, "minutes"),
    ],
)
def test_a_wrong_setting_says_what_to_write(make_study, config, told):
    with pytest.raises(UserError, match=told):
        recruitment(make_study, "prolific", config)


def test_a_code_is_escaped_in_the_return_address(recruiting):
    service = recruiting("prolific").service
    row = {"session_id": "x", "completion_code": "A&B=C"}
    assert (return_for(service, row, "complete", platform={}).url or "").endswith("?cc=A%26B%3DC")
