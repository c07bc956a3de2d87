"""What leaves and enters by the dashboard: every form of export, copies of answers, a platform's books."""

from __future__ import annotations

import io
import json
import re
import socket
import uuid
import zipfile
from select import select
from typing import Any

from tests.experiment.people.conftest import Visitor, settings_of, words_of


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
    with socket.create_connection(("127.0.0.1", site.port), timeout=30) as wire:
        given = {"Host": "127.0.0.1", "Content-Length": str(len(body)), "X-Wrods": "1", "Connection": "close"}
        given |= {"Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        wire.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode())
        for start in range(0, len(body), 65536):
            if select([wire], [], [], 0.05 if start == 0 else 0)[0]:
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
