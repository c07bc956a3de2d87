from __future__ import annotations

import csv
import http.client
import io
import json
import threading
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from flask.testing import FlaskClient

from experiment.checking import load_study
from experiment.columns import trial_columns
from experiment.exporting.export import hand_over
from experiment.languages import pack_for
from experiment.people.app import create_app
from experiment.people.connections import CallerLimits, listen
from experiment.people.pages import script_json
from experiment.people.server import StudyServer
from experiment.store import Store, StoreError
from experiment.store.records import TrialPlace, add_flag
from stimuli.errors import UserError
from tests.experiment.people.conftest import config_of


@pytest.fixture
def visitor(site: Any) -> FlaskClient:
    client: FlaskClient = site.app.test_client()
    return client


@pytest.fixture
def experimenter(site: Any, visitor: FlaskClient) -> FlaskClient:
    assert visitor.get(f"/admin/enter/{site.state.make_link()}").status_code == 302
    return visitor


def test_every_page_speaks_the_language_of_the_study(make_study, serve_study):
    own = {"texts": {"not_here": "אין דף כזה"}}
    study = make_study(("title: A", "participants: {recruit: prolific}\nlanguage: he\ntitle: A"))
    (study.folder / "texts.json").write_text(json.dumps(own), "utf-8")
    hebrew = pack_for("he").texts
    visitor = serve_study(load_study(study.folder)).app.test_client()
    for path, said in (
        ("/small/?PROLIFIC_PID=5f0000000000000000000001", hebrew["no_script"]),
        ("/small/", hebrew["missing_title"]),
        ("/nothing/", own["texts"]["not_here"]),
    ):
        page = visitor.get(path).text
        assert '<html lang="he" dir="rtl"' in page and said in page, path
    told = visitor.get("/small/?PROLIFIC_PID=5f0000000000000000000001").text
    assert config_of(told)["messages"]["not_here"] == own["texts"]["not_here"]


def test_of_several_studies_each_speaks_its_language_at_every_address_below_it(
    make_study, serve_study, settings
):
    service = serve_study(make_study()).service
    japanese = replace(service, study="ja", pack=pack_for("ja"), language="ja")
    visitor = create_app({"small": service, "ja": japanese}, config=settings).test_client()
    places = {"/ja/index.html": "ja", "/ja/x/y": "ja", "/small/index.html": "en", "/none/": "en"}
    for path, language in places.items():
        told = visitor.get(path)
        assert told.status_code == 404 and f'<html lang="{language}"' in told.text, path
        assert pack_for(language).texts["not_here"] in told.text


def test_whom_the_database_turns_away_reads_how_to_come_back(make_study, serve_study, monkeypatch):
    site = serve_study(make_study(("title: A", "participants: {recruit: prolific}\nlanguage: es\ntitle: A")))

    def fail(_: Store) -> None:
        raise StoreError("damaged")

    monkeypatch.setattr(Store, "read", fail)
    told = site.app.test_client().get("/small/?PROLIFIC_PID=5f0000000000000000000001")
    words = pack_for("es").texts
    assert told.status_code == 503 and int(told.headers["Retry-After"]) > 0
    assert words["out_of_order"] in told.text and f'<a href="">{words["reload"]}</a>' in told.text


def test_whom_the_server_turns_away_reads_it_in_the_studys_language_and_a_script_in_json(
    make_study, serve_study
):
    app = serve_study(make_study(("title: A", "language: es\ntitle: A"))).app
    server = StudyServer(app, listen("127.0.0.1", 0), limits=CallerLimits(requests=1, window_s=600))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    told = {}
    for path in ("/health", "/small/", "/api/small/sessions", "/admin/"):
        line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        line.request("GET", path)
        answer = line.getresponse()
        told[path] = (answer.status, answer.headers, answer.read().decode())
        line.close()
    server.close()
    thread.join(60)
    assert told["/health"][0] == 200 and "Retry-After" not in told["/health"][1]
    for path in ("/small/", "/api/small/sessions", "/admin/"):
        assert told[path][0] == 429 and int(told[path][1]["Retry-After"]) > 0, path
    page = told["/small/"][2]
    assert '<html lang="es"' in page and pack_for("es").texts["out_of_order"] in page
    assert set(json.loads(told["/api/small/sessions"][2])) == {"error", "mend"}


def test_a_study_cannot_take_the_name_of_a_page(site, settings):
    with pytest.raises(UserError, match="admin"):
        create_app({"admin": site.service}, config=settings)


def test_the_page_tells_the_browser_what_it_needs(visitor):
    page = visitor.get("/small/?PROLIFIC_PID=abc&password=x&pilot=forged").text
    assert config_of(page) == {
        "api": "/api/small", "media": "/small/media/", "plugins": "/own/", "study": "small", "title": "A small study",
        "language": "en", "mode": "session",
        "participant": None, "platform": {}, "pass": None, "ask_participant": True, "any_browser": False,
        "preview_plan": None, "finish_wait_ms": 60_000, "stations": False, "station": None, "station_help": None,
        "direction": "ltr", "messages": dict(pack_for("en").texts),
        "if_left": {"completion_code": None, "return_url": None, "return_by_itself": False, "return_text": ""},
    }  # fmt: skip
    assert '<main id="wrods-root">' in page and "<h1>A small study</h1>" in page
    by_link = config_of(visitor.get("/small/?participant=17").text)
    assert (by_link["participant"], by_link["ask_participant"]) == ("17", False)
    assert visitor.get("/nothing/").status_code == 404


def test_nothing_in_a_link_can_leave_the_data_block(visitor):
    bad = "</script><script>alert(1)</script>"
    page = visitor.get("/small/", query_string={"participant": bad}).text
    assert config_of(page)["participant"] == bad
    assert page.count("<script") == 2
    assert json.loads(script_json({"a": "<>&'\""})) == {"a": "<>&'\""}


def test_participants_get_no_cookie(site):
    told = [site.caller().get("/small/"), site.opening(), site.caller().get("/small/nothing")]
    person = site.begin()
    told += [person.answer(0), person.event("consent", person.agreement)]
    assert [one.headers.get("Set-Cookie") for one in told] == [None] * 5


def test_a_pilot_opened_from_the_sessions_page_is_marked(site, experimenter):
    page = experimenter.get("/admin/small/pilot", follow_redirects=True)
    config = config_of(page.text)
    assert config["mode"] == "pilot"
    pilot = site.begin(**{"pass": config["pass"]})
    assert site.opening(**{"pass": "forged"}).status == 403
    assert config_of(experimenter.get("/small/?pilot=1").text)["mode"] == "pilot"
    assert config_of(site.app.test_client().get("/small/?pilot=1").text)["mode"] == "session"
    person = site.begin()
    told = {row["session_id"]: (row["is_pilot"], row["reader"]) for row in site.sessions}
    assert told == {pilot.session_id: (True, "T001"), person.session_id: (False, "P001")}


def test_serving_as_a_pilot_marks_every_session(make_study, serve_study):
    site = serve_study(make_study(), is_pilot=True)
    site.begin()
    assert [row["is_pilot"] for row in site.sessions] == [True]
    assert config_of(site.app.test_client().get("/small/").text)["mode"] == "pilot"


def test_the_download_and_the_hand_over_hold_the_same_rows(site, experimenter, make_study, tmp_path):
    person = site.begin()
    person.answer_all()
    site.do(lambda c: add_flag(c, person.session_id, "excluded", "a talk", "experimenter", TrialPlace(2)))
    told = experimenter.get("/admin/small/trials.csv").text
    downloaded = list(csv.DictReader(io.StringIO(told)))
    handed = pd.read_parquet(hand_over(make_study(), site.store, tmp_path / "handover") / "trials.parquet")
    texts = [name for name, column in trial_columns().items() if column.type == "string"]
    given = handed[texts].astype(object).where(handed[texts].notna(), "").to_dict("records")
    assert [{name: row[name] for name in texts} for row in downloaded] == given
    assert [row["excluded_reason"] for row in downloaded] == ["", "", "a talk", "", ""]
    assert {row["choice_order"] for row in downloaded} == {"0,1"}
