"""Sign-ins live in the store: they end when they are ended, in every process, and links to them work once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from experiment.people.app import create_app
from experiment.people.dashboard import accounts
from experiment.people.dashboard.authentication import LARGEST_UPLOAD
from experiment.people.dashboard.sign_ins import LINK, SIGN_IN, SignIns
from experiment.people.request_validation import LARGEST_BODY
from experiment.people.server import largest_body
from experiment.store import open_store
from experiment.store.backups import copy_sqlite
from experiment.store.restoring import check_backup, take_place
from experiment.store.tables import sign_ins
from tests.experiment.people.dashboard.conftest import Visitor, words_of


def same_cookie(visitor: Visitor, app: Any) -> Visitor:
    """Return another browser with a copy of the cookie, at this server or another process."""
    copy = app.test_client()
    copy.set_cookie("wrods_admin", visitor.client.get_cookie("wrods_admin").value)  # type: ignore[union-attr]
    return Visitor(copy)


def another_process(site: Any, settings: Any) -> Any:
    return create_app({"small": site.service}, config=settings)


@pytest.fixture
def later(site: Any) -> Callable[[timedelta], None]:
    """Return a function that moves the server's clock."""
    moved = [timedelta()]
    site.app.extensions["wrods"].sign_ins._clock = lambda: datetime.now(UTC) + moved[0]

    def move(by: timedelta) -> None:
        moved[0] += by

    return move


def test_signing_out_ends_the_sign_in_for_copies_of_the_cookie_and_in_every_process(site, settings, visit):
    mine, other = visit("ada"), visit("ada")
    elsewhere = another_process(site, settings)
    copies = [same_cookie(mine, site.app), same_cookie(mine, elsewhere)]
    assert [one.get("/admin/").status_code for one in copies] == [200, 200]
    assert mine.post("/admin/logout").status_code == 302
    assert [one.get("/admin/data.json").status_code for one in copies] == [401, 401]
    assert other.get("/admin/").status_code == 200


def test_the_cookie_is_a_random_token_that_scripts_cannot_read(site, people):
    visitor = Visitor(site.app.test_client())
    visitor.client.get("/admin/login")
    before = visitor.client.get_cookie("wrods_admin")
    told = visitor.post("/admin/login", name="ada", password=people["ada"])
    given = next(one for one in told.headers.getlist("Set-Cookie") if one.startswith("wrods_admin="))
    assert "HttpOnly" in given and "SameSite=Lax" in given and "Path=/" in given
    assert "Secure" not in given, "it came over plain http"
    after = visitor.client.get_cookie("wrods_admin")
    assert before is not None and after is not None and before.value != after.value and len(after.value) == 43
    with site.store.read() as connection:
        rows = connection.execute(select(sign_ins)).mappings().all()
    assert {row["account"] for row in rows} == {"ada"}
    assert after.value not in str(rows) and people["ada"] not in str(rows)


@pytest.mark.parametrize("by_proxy", [False, True])
def test_over_tls_the_cookie_is_sent_over_tls_alone_and_lets_files_in(site, settings, people, by_proxy):
    app, base, told = site.app, {"base_url": "https://localhost/"}, {}
    if by_proxy:
        app = create_app({"small": site.service}, config=replace(settings, public_url="https://localhost"))
        base, told = {"base_url": "http://localhost/"}, {"X-Forwarded-Proto": "https"}
    client = app.test_client()
    form = client.get("/admin/login", headers=told, **base)
    given = form.headers["Set-Cookie"]
    assert given.startswith("__Host-wrods_admin=") and "Secure" in given and "Path=/" in given
    fields = {"csrf": re.search(r'name="csrf" value="([^"]+)', form.text)[1], "name": "ada"}  # type: ignore[index]
    cookie = {"Cookie": given.partition(";")[0]}
    done = client.post(
        "/admin/login", data=fields | {"password": people["ada"]}, headers=told | cookie, **base
    )
    mine = next(one for one in done.headers.getlist("Set-Cookie") if one.startswith("__Host-wrods_admin="))
    cookie = {"Cookie": mine.partition(";")[0]}
    assert client.get("/admin/", headers=told | cookie, **base).status_code == 200
    assert largest_body(app, "/admin/small/copy", cookie["Cookie"]) > LARGEST_UPLOAD
    assert largest_body(app, "/admin/small/copy", "__Host-wrods_admin=guess") == LARGEST_BODY


def test_a_changed_role_ends_sign_ins(site, visit):
    visitor = visit("ben")
    assert visitor.get("/admin/").status_code == 200
    accounts.remove_account("ben")
    accounts.add_account("ben", "owner", "another long one")
    assert visitor.get("/admin/").status_code == 302
    del site


def test_a_sign_in_ends_when_no_page_was_opened_for_long_and_after_a_week_in_any_case(visit, later):
    idle, busy = visit("ada"), visit("ben")
    for _ in range(2):
        later(timedelta(hours=7))
        assert busy.get("/admin/").status_code == 200
        # the live page's own requests keep nobody signed in
        idle.get("/admin/data.json")
    assert idle.get("/admin/").status_code == 302
    for _ in range(16):
        later(timedelta(hours=10))
        last = busy.get("/admin/").status_code
    assert last == 302


def test_an_owner_sees_and_ends_sign_ins_and_others_their_own(visit):
    owner, assistant, rater = visit("ada"), visit("ben"), visit("cora")
    page = words_of(owner.get("/admin/signed-in").text)
    assert all(name in page for name in ("ada", "ben", "cora")) and "this browser" in page
    assert "ada" not in words_of(assistant.get("/admin/signed-in").text)
    assert rater.get("/admin/signed-in").status_code == 200
    assert assistant.post("/admin/signed-in/end", sign_in=rows_of(owner, of="ada")[0]).status_code == 302
    assert owner.get("/admin/").status_code == 200, "an assistant ends nobody else's"
    owner.post("/admin/signed-in/end", sign_in=rows_of(owner, of="ben")[0])
    assert assistant.get("/admin/").status_code == 302 and rater.get("/admin/signed-in").status_code == 200
    assert "ended a sign-in" in words_of(owner.get("/admin/small/audit").text)


def rows_of(visitor: Visitor, of: str | None = None) -> list[str]:
    found = visitor.client.application.extensions["wrods"].sign_ins.open_ones(of)
    return [one.token_hash for one in found]


def test_sign_out_everywhere_ends_all_of_ones_own_and_nobody_elses(visit):
    here, there, other = visit("ada"), visit("ada"), visit("ben")
    assert here.post("/admin/signed-in/end-all").status_code == 302
    assert [one.get("/admin/").status_code for one in (here, there, other)] == [302, 302, 200]


def test_one_time_links_work_once_in_any_process_and_grow_old(site, settings, later):
    links = site.app.extensions["wrods"]
    first, second, third = links.make_link(), links.make_link(), links.make_link()
    again = another_process(site, settings).test_client()
    assert again.get(f"/admin/enter/{first}").status_code == 302
    assert site.app.test_client().get(f"/admin/enter/{first}").status_code == 403
    assert site.app.test_client().get("/admin/enter/guess").status_code == 403
    later(timedelta(minutes=14))
    assert site.app.test_client().get(f"/admin/enter/{second}").status_code == 302
    later(timedelta(minutes=2))
    assert site.app.test_client().get(f"/admin/enter/{third}").status_code == 403


def test_a_link_made_under_another_password_opens_nothing(site, settings):
    link = site.app.extensions["wrods"].make_link()
    changed = another_process(site, replace(settings, password_hash="changed"))
    assert changed.test_client().get(f"/admin/enter/{link}").status_code == 403


def test_rows_that_are_over_are_removed(site):
    moved = [timedelta()]
    kept = SignIns(site.store, lambda: datetime.now(UTC) + moved[0])
    for kind in (SIGN_IN, LINK):
        kept.begin(kind, "ada", "s")
    moved[0] = timedelta(days=8)
    kept.begin(LINK, "ben", "s")
    with site.store.read() as connection:
        assert connection.execute(select(sign_ins.c.account)).scalars().all() == ["ben"]


def test_a_restored_backup_brings_no_ended_sign_in_back(site, visit):
    visitor = visit("ada")
    folder: Path = site.service.folder
    backup = folder / "copy.db"
    copy_sqlite(folder / "study.db", backup)
    visitor.post("/admin/logout")
    site.store.close()
    checked = check_backup(folder / "study.db", backup, "small")
    take_place(folder / "study.db", checked.ready)
    with open_store(folder) as store, store.read() as connection:
        assert connection.execute(select(sign_ins)).all() == []
