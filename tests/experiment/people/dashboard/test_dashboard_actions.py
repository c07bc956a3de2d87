"""What experimenters do: who may, what changes in the counts, and that each deed is in the audit under a name."""

from __future__ import annotations

import io
import json
import re
import socket
import uuid
import zipfile
from select import select as readable
from typing import Any

import pytest
from sqlalchemy import select

from experiment.exporting.tables import trial_rows
from experiment.people.dashboard.study_pages import pooled
from experiment.people.quality import signs
from experiment.store import chain, records
from experiment.store.erasure import DUE, note_due
from experiment.store.records import collection_of, exclusions
from experiment.store.tables import audit
from tests.experiment.people.conftest import Visitor, page_of, settings_of, words_of

RULES = (
    "  - debrief: debrief.md\n",
    "  - debrief: debrief.md\nanalysis: {exclude: {sessions: {too_fast: above 50%}}}\n",
)


def audit_rows(site: Any) -> list[tuple[str, str, str | None]]:
    rows = site.rows(select(audit).where(audit.c.action != "signed in").order_by(audit.c.audit_id))
    return [(row.actor, row.action, (row.detail or {}).get("reason")) for row in rows]


def test_an_exclusion_opens_the_place_again_and_can_be_taken_back(recruiting, visit):
    site = recruiting("link", {}, wanted=1)
    first = site.begin()
    first.complete()
    assert site.opening().body["rule"] == "full"
    owner = visit("ada", site)

    def excluded() -> set[str | None]:
        return {row["excluded_reason"] for row in site.read(trial_rows, "small")}

    assert owner.post(page_of(first, "exclude"), reason="fire alarm").status_code == 302
    assert excluded() == {"fire alarm"}
    assert site.begin().status == 201
    owner.post(page_of(first, "restore"), reason="it was the other room")
    assert excluded() == {None}
    assert audit_rows(site) == [
        ("ada", "excluded", "fire alarm"), ("ada", "restored", "it was the other room"),
    ]  # fmt: skip


def test_a_pilot_becomes_real_and_counts_follow(site, visit):
    person = site.begin()
    taken = site.session(person)["list_id"]
    assistant = visit("ben")
    assistant.post(page_of(person, "pilot"), reason="a colleague tried it")
    assert site.session(person)["is_pilot"] is True
    assert site.session(site.begin())["list_id"] in site.service.list_ids
    assistant.post(page_of(person, "pilot"), reason="no, it was a participant")
    row = site.session(person)
    assert (row["is_pilot"], row["list_id"]) == (False, taken)
    assert audit_rows(site) == [
        ("ben", "made a pilot", "a colleague tried it"), ("ben", "made real", "no, it was a participant"),
    ]  # fmt: skip


def test_an_ended_session_keeps_its_trials_and_the_reason(site, visit):
    person = site.begin()
    person.answer(0)
    owner = visit("ada")
    owner.post(page_of(person, "end"), reason="felt unwell")
    row = site.session(person)
    assert (row["state"], row["ended_reason"]) == ("ended", "experimenter: felt unwell")
    assert site.read(records.done_keys, person.session_id) == [(0, 1)]
    owner.post(page_of(person, "end"), reason="again")
    assert [action for _, action, _ in audit_rows(site)] == ["ended"]


def test_each_deed_is_open_to_its_roles_only_and_leaves_the_chain_whole(site, visit):
    visitors = {name: visit(name) for name in ("cora", "ben", "ada")}
    person = site.begin()
    person.answer(0)
    for deed, allowed in (
        ("note", {"ada", "ben"}), ("flag", {"ada", "ben"}), ("pilot", {"ada", "ben"}), ("exclude", {"ada"}),
        ("restore", {"ada"}), ("end", {"ada"}), ("withdrawal", {"ada"}),
    ):  # fmt: skip
        reader = site.session(person)["reader"]
        for name, visitor in visitors.items():
            told = visitor.post(page_of(person, deed), reason="because", typed=reader)
            assert told.status_code == (302 if name in allowed else 403), (deed, name)
        assert site.read(chain.verify, person.session_id).broken is None, deed
    waiting = site.begin()
    assert visitors["ada"].post(page_of(waiting, "end"), reason="left").status_code == 302
    assert site.read(records.session, waiting.session_id) is None, "who has not agreed is erased"


def test_each_page_is_open_to_its_roles_only(visit):
    visitors = {name: visit(name) for name in ("ada", "ben", "cora")}
    for path, allowed in (
        ("", {"ada", "ben"}), ("data.json", {"ada", "ben"}), ("small/flags", {"ada", "ben"}),
        ("small/quality", {"ada", "ben"}), ("small/audit", {"ada"}), ("small/trials.csv", {"ada"}),
        ("small/pilot", {"ada", "ben"}),
    ):  # fmt: skip
        for name, visitor in visitors.items():
            told = visitor.get(f"/admin/{path}").status_code
            assert (told in (200, 302)) == (name in allowed), (path, name, told)


def test_a_deed_needs_a_reason_and_a_form_of_ours(site, visit):
    person, owner = site.begin(), visit("ada")
    assert owner.post(page_of(person, "exclude"), reason="  ").status_code == 400
    assert owner.client.post(page_of(person, "exclude"), data={"reason": "x"}).status_code == 400
    assert owner.post(page_of(person, "nothing"), reason="x").status_code == 404
    assert owner.post("/admin/small/sessions/000000000000/note", reason="x").status_code == 404
    assert audit_rows(site) == []


def test_a_declared_rule_excludes_only_a_session_that_breaks_it(make_study, serve_study, visit):
    site = serve_study(make_study(RULES, name="ruled"))
    quick, calm = site.begin(), site.begin()
    for index in range(5):
        quick.answer(index, rt=90.0, response_ts=10324.1, handler_ts=10325.0)
        calm.answer(index)
    owner = visit("ada", site)
    by_rule = 'name="rule" value="too_fast"'
    assert by_rule in owner.get(page_of(quick)).text and by_rule not in owner.get(page_of(calm)).text
    assert owner.post(page_of(calm, "exclude"), rule="too_fast").status_code == 400
    assert owner.post(page_of(quick, "exclude"), rule="hidden").status_code == 400
    assert owner.post(page_of(quick, "exclude"), rule="too_fast").status_code == 302
    (reason,) = site.read(exclusions, "small").values()
    assert re.search(r"too_fast above 50% \(4 of 4 .* 90 ms\)", reason)


def test_a_rule_on_accuracy_shows_no_number_until_the_study_is_closed(make_study, serve_study, visit):
    rule = ("seed: 7\n", "seed: 7\nanalysis: {exclude: {sessions: {question_accuracy: below 90%}}}\n")
    site = serve_study(make_study(rule, name="blind"))
    wrong, right = site.begin(), site.begin()
    for person, is_right in ((wrong, False), (right, True)):
        for index, trial in enumerate(site.planned(person)):
            step = trial["steps"][-1]
            told = zip(step["labels"], step["responses"], strict=True)
            given = next(label for label, meaning in told if (meaning == trial["answer"]) == is_right)
            person.answer(index, response_raw=given)
    owner = visit("ada", site)
    pages = (page_of(wrong), page_of(right), "/admin/small/flags")
    row = re.compile(rf".*<t[dh][^>]*>{signs()['question_accuracy']['label']}.*")
    shown = [owner.get(address).text for address in pages]
    rows = [row.findall(text)[0] for text in shown]
    assert not any(re.search(r"\b[04] of 4\b", line) for line in rows)
    assert ['class="flagged"' in line for line in rows[:2]] == [True, False]
    assert "P001" in shown[2] and "P002" not in shown[2]
    assert owner.post(page_of(wrong, "exclude"), rule="question_accuracy").status_code == 302
    (reason,) = site.read(exclusions, "small").values()
    assert reason == "declared rule: question_accuracy below 90%"
    assert owner.post("/admin/small/collection", state="closed", reason="enough").status_code == 302
    assert "0 of 4" in row.findall(owner.get(page_of(wrong)).text)[0]


def test_assistants_pause_a_study_and_only_owners_close_and_reopen_it(site, visit):
    running = site.begin(participant="1")
    owner, assistant, address = visit("ada"), visit("ben"), "/admin/small/collection"
    assert assistant.post(address, state="paused").status_code == 302
    assert site.opening(participant="2").status in (403, 409), "a paused study takes nobody new"
    assert running.complete().status == 200, "and lets the others finish"
    assert site.begin(**{"pass": site.make_pass("pilot")})
    assistant.post(address, state="open")
    assert site.opening(participant="2").status == 201
    assert assistant.post(address, state="closed").status_code == 403
    assert owner.post(address, state="closed").status_code == 302
    assert assistant.post(address, state="open").status_code == 403
    assert site.opening().status in (403, 409)
    assert owner.post(address, state="gone").status_code == 400
    told = site.read(collection_of, "small")
    assert (told.state, told.by) == ("closed", "ada")
    assert audit_rows(site)[-1] == ("ada", "collection closed", None)


def test_looks_are_pooled_logged_and_by_condition_only_when_closed(site, visit):
    person = site.begin()
    person.answer_all()
    assistant, owner = visit("ben"), visit("ada")
    assert "0 so far" in assistant.get("/admin/small/quality").text
    told = words_of(assistant.post("/admin/small/quality").text)
    assert "People" in told and "initial" not in told
    owner.post("/admin/small/collection", state="closed")
    assert "initial" in words_of(owner.post("/admin/small/quality").text)
    looks = [row for row in audit_rows(site) if row[1].startswith("look")]
    assert looks == [("ben", "look", None), ("ada", "look by condition", None)]


def test_pooled_accuracy_is_that_of_the_table(site):
    person = site.begin()
    for index in range(5):
        person.answer(index, **({"response_raw": None, "timed_out": True} if index == 2 else {}))
    with site.store.read() as connection:
        rows = [row for row in trial_rows(connection, "small") if not row["is_practice"]]
        (told,) = pooled(connection, "small")
        by_condition = pooled(connection, "small", ("position",))
    assert told.accuracy == pytest.approx(sum(bool(row["correct"]) for row in rows) / 4)
    assert (told.sessions, told.trials, told.unreadable) == (1, 4, 0.25)
    assert {one.condition for one in by_condition} == {("intact",), ("initial",)}
    assert sum(one.trials for one in by_condition) == 4


def test_a_withdrawn_participant_is_asked_for_twice_and_then_gone(site, visit):
    person, other = site.begin(participant="17"), site.begin(participant="18")
    person.answer(0)
    owner = visit("ada")
    asked = owner.says(page_of(person, "withdrawal"))
    assert "17: 1 trial," in asked
    assert owner.post(page_of(person, "withdrawal"), typed="18").status_code == 400
    assert owner.post(page_of(person, "withdrawal"), typed="17").status_code == 302
    assert [row["session_id"] for row in site.sessions] == [other.session_id]
    assert owner.get(page_of(person)).status_code == 404


def test_the_history_keeps_what_was_done_about_a_withdrawn_person_but_no_details(site, visit):
    person = site.begin(participant="17")
    owner = visit("ada")
    owner.post(page_of(person, "note"), reason="wore glasses")
    owner.post(page_of(person, "withdrawal"), typed="17")
    site.do(lambda connection: note_due(connection, site.service.study))
    history = owner.says("/admin/small/audit")
    assert "noted" in history and "glasses" not in history
    assert DUE not in history, "the store's own note, which is removed once the files are clean"


def test_notes_and_flags_stand_on_the_sessions_page_and_in_the_audit_under_their_makers_name(site, visit):
    person = site.begin()
    assistant = visit("ben")
    assistant.post(page_of(person, "note"), reason="wore <b>glasses</b>")
    assistant.post(page_of(person, "flag"), reason="spoke during block 1")
    told = assistant.get(page_of(person)).text
    assert "wore &lt;b&gt;glasses&lt;/b&gt;" in told and "spoke during block 1" in told
    assert ("ben", "noted", "wore <b>glasses</b>") in audit_rows(site)
    assert "glasses" in visit("ada").says("/admin/small/audit")


def test_every_form_of_export_comes_as_one_file_to_owners(site, visit):
    site.begin().answer_all()
    owner, assistant = visit("ada"), visit("ben")
    for form, file in (
        ("csv", "trials.csv"), ("parquet", "trials.parquet"), ("jspsych", ".json"), ("psych-ds", "dataset_description.json"),
    ):  # fmt: skip
        told = owner.get(f"/admin/small/export/{form}.zip")
        names = zipfile.ZipFile(io.BytesIO(told.data)).namelist()
        assert any(name.endswith(file) for name in names), names
        assert assistant.get(f"/admin/small/export/{form}.zip").status_code == 403
        assert form in owner.says("/admin/small/audit")


def send(visitor: Visitor, path: str, contents: bytes, name: str) -> Any:
    body = {"csrf": visitor.token(), "file": (io.BytesIO(contents), name)}
    return visitor.client.post(path, data=body, content_type="multipart/form-data", follow_redirects=True)


def test_a_participants_copy_brings_what_did_not_arrive(site, visit):
    person = site.begin()
    person.answer(0)
    copy = person.copy(*(("trials", person.payload(index)) for index in range(2)))
    owner = visit("ada")
    told = words_of(send(owner, "/admin/small/copy", json.dumps(copy).encode(), "answers.json").text)
    assert re.search(r"P001: 1 .*, 1 .*, 0 ", told)
    assert [row["trial_index"] for row in site.trials] == [0, 1]
    wrong = copy | {"token": "x" * 43}
    refused = words_of(send(owner, "/admin/small/copy", json.dumps(wrong).encode(), "answers.json").text)
    assert "P001: " not in refused and len(site.trials) == 2


def test_a_platforms_books_are_compared_with_what_is_here(make_study, serve_study, visit):
    site = serve_study(make_study(settings_of("recruit: prolific, wanted: 5"), name="online"))
    here, unseen = uuid.uuid4().hex[:24], uuid.uuid4().hex[:24]
    person = site.begin(platform={"PROLIFIC_PID": here, "STUDY_ID": "a" * 24, "SESSION_ID": "b" * 24})
    person.complete()
    owner = visit("ada", site)
    assert unseen not in owner.get("/admin/small/reconciliation").text
    table = (
        "Submission id,Participant id,Status,Started at,Completed at,Time taken,Completion code\n"
        f"s1,{here},AWAITING REVIEW,2026-11-21T10:00:00Z,2026-11-21T10:09:00Z,540,\n"
        f"s2,{unseen},AWAITING REVIEW,2026-11-21T10:00:00Z,2026-11-21T10:05:00Z,300,\n"
    )
    told = words_of(send(owner, "/admin/small/reconciliation", table.encode(), "prolific_export.csv").text)
    assert "2 submissions" in told
    assert here in told and unseen in told and "P001" in told
    assert visit("ben", site).get("/admin/small/reconciliation").status_code == 403


def status_of(site: Any, path: str, body: bytes, **headers: str) -> int:
    """Post a body piece by piece, reading the answer as soon as there is one."""
    with socket.create_connection(("127.0.0.1", site.port), timeout=60) as wire:
        given = {"Host": "127.0.0.1", "Content-Length": str(len(body)), "X-Wrods": "1", "Connection": "close"}
        given |= {"Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        wire.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode())
        for start in range(0, len(body), 65536):
            if readable([wire], [], [], 0.05 if start == 0 else 0)[0]:
                break
            wire.sendall(body[start : start + 65536])
        return int(wire.recv(65536).split()[1])


def multipart(token: str, contents: bytes) -> tuple[bytes, str]:
    edge = "wrods-test-edge"
    head = f'--{edge}\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{token}\r\n--{edge}\r\n'
    head += 'Content-Disposition: form-data; name="file"; filename="answers.json"\r\n\r\n'
    return head.encode() + contents + f"\r\n--{edge}--\r\n".encode(), f"multipart/form-data; boundary={edge}"


def test_a_copy_of_many_megabytes_is_taken_from_who_may_upload_and_from_nobody_else(site, visit):
    """Through the real socket: the size is judged before the body is read."""
    person = site.begin()
    person.agree()
    copy = person.copy(*(("trials", person.payload(index)) for index in range(5)))
    contents = json.dumps(copy).encode() + b" " * 3_000_000
    for name, status in (("ada", 302), ("ben", 413), (None, 413)):
        token, cookie = "none", ""
        if name is not None:
            visitor = visit(name)
            token = visitor.token()
            cookie = visitor.client.get_cookie("wrods_admin").value  # type: ignore[union-attr]
        body, kind = multipart(token, contents)
        given = {"Content_Type": kind, "Cookie": f"wrods_admin={cookie}"}
        assert status_of(site, "/admin/small/copy", body, **given) == status
    assert len(site.trials) == 5


def test_nobody_sends_large_bodies_elsewhere(site, visit):
    visitor = visit("ada")
    cookie = visitor.client.get_cookie("wrods_admin").value  # type: ignore[union-attr]
    for path in ("/api/small/sessions", "/admin/small/collection", "/admin/login"):
        assert status_of(site, path, b"x" * 2_000_000, Cookie=f"wrods_admin={cookie}") == 413


def test_owners_open_the_items_and_the_newest_report_and_no_other_file(site, visit):
    owner, folder = visit("ada"), site.service.folder
    page = owner.get("/admin/").text
    assert "/files/reports/" not in page
    for command in ("preview", "build", "report"):
        assert f"<code>wrods {command} {folder.name}</code>" in page
    for page in ("audit/audit.html", "reports/2026-01-02/report.html", "reports/2026-01-03/report.html"):
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        (folder / page).write_text(f"<title>{page}</title>", "utf-8")
    page = owner.get("/admin/").text
    assert "audit/audit.html" in page and "/files/reports/2026-01-03" in page and "2026-01-02" not in page
    commands = [f"<code>wrods {command}" in page for command in ("preview", "build", "report")]
    assert commands == [True, False, False]
    # assistants open neither items nor reports
    assert "<code>wrods preview" not in visit("ben").get("/admin/").text
    report = owner.get("/admin/small/files/reports/2026-01-03/report.html")
    assert "2026-01-03" in report.text and "script-src" not in report.headers["Content-Security-Policy"]
    assert "opened a report" in owner.says("/admin/small/audit")
    for path in [
        "study.yaml",
        "study.db",
        "reports/../study.yaml",
        "audit/../study.yaml",
        "reports/none.html",
    ]:
        assert owner.get(f"/admin/small/files/{path}").status_code == 404, path
    assert visit("ben").get("/admin/small/files/audit/audit.html").status_code == 403
