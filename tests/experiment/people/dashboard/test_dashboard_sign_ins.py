"""Sign-ins live in the store: they end when they are ended, in every process, and links to them work once."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from sqlalchemy import select

from experiment.configuration import config_file, read_config
from experiment.people.app import create_app
from experiment.people.dashboard.authentication import LARGEST_UPLOAD
from experiment.people.dashboard.sign_ins import (
    FAILED,
    LINK,
    SIGN_IN,
    FailedSignIns,
    SignIns,
    add_account,
    change_password,
    is_password,
    read_accounts,
    remove_account,
)
from experiment.people.response_intake import LARGEST_BODY
from experiment.people.server import largest_body
from experiment.people.service import Throttle, read_settings
from experiment.store import open_store
from experiment.store.backups import copy_sqlite
from experiment.store.restoring import check_backup, take_place
from experiment.store.tables import sign_ins
from stimuli.errors import UserError
from tests.experiment.commands import wrods
from tests.experiment.people.conftest import Visitor


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
    site.state.sign_ins._clock = lambda: datetime.now(UTC) + moved[0]

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
    rows = site.rows(sign_ins)
    assert {row.account for row in rows} == {"ada"}
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
    page = owner.says("/admin/signed-in")
    assert all(name in page for name in ("ada", "ben", "cora"))
    assert "ada" not in assistant.says("/admin/signed-in")
    assert rater.get("/admin/signed-in").status_code == 200
    assert assistant.post("/admin/signed-in/end", sign_in=rows_of(owner, of="ada")[0]).status_code == 302
    assert owner.get("/admin/").status_code == 200, "an assistant ends nobody else's"
    owner.post("/admin/signed-in/end", sign_in=rows_of(owner, of="ben")[0])
    assert assistant.get("/admin/").status_code == 302 and rater.get("/admin/signed-in").status_code == 200
    assert "account: ben" in owner.says("/admin/small/audit")
    elsewhere = visit("ada")
    assert owner.post("/admin/signed-in/end-all").status_code == 302
    assert [one.get("/admin/").status_code for one in (owner, elsewhere)] == [302, 302]
    assert rater.get("/admin/signed-in").status_code == 200, "all of one's own, and nobody else's"


def rows_of(visitor: Visitor, of: str | None = None) -> list[str]:
    found = visitor.client.application.extensions["wrods"].sign_ins.open_ones(of)
    return [one.token_hash for one in found]


def test_one_time_links_work_once_in_any_process_and_grow_old(site, settings, later):
    links = site.state
    first, second, third = links.make_link(), links.make_link(), links.make_link()
    again = another_process(site, settings).test_client()
    assert again.get(f"/admin/enter/{first}").status_code == 302
    assert site.app.test_client().get(f"/admin/enter/{first}").status_code == 403
    assert site.app.test_client().get("/admin/enter/guess").status_code == 403
    later(timedelta(minutes=14))
    assert site.app.test_client().get(f"/admin/enter/{second}").status_code == 302
    changed = another_process(site, replace(settings, password_hash="changed")).test_client()
    assert changed.get(f"/admin/enter/{third}").status_code == 403, "made under another password"
    later(timedelta(minutes=2))
    assert site.app.test_client().get(f"/admin/enter/{third}").status_code == 403


def test_rows_that_are_over_are_removed(site):
    moved = [timedelta()]
    kept = SignIns(site.store, lambda: datetime.now(UTC) + moved[0])
    for kind in (SIGN_IN, LINK):
        kept.begin(kind, "ada", "s")
    moved[0] = timedelta(days=8)
    kept.begin(LINK, "ben", "s")
    assert site.rows(sign_ins.c.account) == ["ben"]


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


def user(*words: str, typed: str = "") -> Result:
    return wrods("user", *words, given=typed)


def test_accounts_are_added_listed_changed_and_removed_by_command():
    assert user("add", "mara", "--role", "assistant", typed="correct horse\n").exit_code == 0
    assert user("add", "noor", "--role", "rater", typed="battery staple\n").exit_code == 0
    told = json.loads(user("list", "--json").output)
    assert told == [
        {"name": name, "role": role, "second_factor": False}
        for name, role in (("owner", "owner"), ("mara", "assistant"), ("noor", "rater"))
    ]
    before = read_config()["accounts"]["mara"]["password_hash"]
    assert user("password", "mara", typed="another horse\n").exit_code == 0
    after = read_config()["accounts"]["mara"]["password_hash"]
    assert before != after and "horse" not in config_file().read_text("utf-8")
    assert is_password("another horse", after) and not is_password("correct horse", after)
    assert user("remove", "noor").exit_code == 0
    assert "noor" not in user("list").output


@pytest.mark.skipif(sys.platform == "win32", reason="files there have no such modes")
def test_only_the_user_can_read_the_accounts_and_the_rest_of_the_file_stays():
    file = config_file()
    file.parent.mkdir(parents=True)
    text = '# my settings\nstore = "postgresql:///lab"  # at home\n\n[serve]\nsecret = "sixteen letters !"\n'
    file.write_text(text, "utf-8")
    file.chmod(0o600)
    user("add", "mara", "--role", "owner", typed="correct horse\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text("utf-8").startswith(text)
    user("remove", "mara")
    assert read_config(file)["store"] == "postgresql:///lab"


@pytest.mark.parametrize(
    ("words", "typed", "told"),
    [
        (["add", "owner", "--role", "owner"], "long enough", "'owner'"),
        (["add", "Mara!", "--role", "owner"], "long enough", "'Mara!'"),
        (["add", "mara", "--role", "owner"], "short", " 10 "),
        (["remove", "marra"], "", "'mara'"),
        (["password", "nobody"], "long enough", ": mara"),
        (["add", "mara", "--role", "rater"], "long enough", "wrods user password mara"),
    ],
)
def test_what_cannot_be_is_told_with_a_mend(words, typed, told):
    if words[1] != "mara" or words[-1] == "rater":
        add_account("mara", "assistant", "long enough")
    done = user(*words, typed=f"{typed}\n")
    assert done.exit_code == 2 and told in done.output
    with pytest.raises(UserError, match="wrods user add mara"):
        read_accounts({"accounts": {"mara": {"role": "king", "password_hash": "x"}}})


def test_a_changed_password_or_role_signs_out_everywhere_at_once(visit):
    first, second, other = visit("ada"), visit("ada"), visit("ben")
    assert {one.get("/admin/").status_code for one in (first, second, other)} == {200}
    change_password("ada", "a password made today")
    assert first.get("/admin/").status_code == second.get("/admin/").status_code == 302
    assert first.get("/admin/data.json").status_code == 401
    assert other.get("/admin/").status_code == 200
    remove_account("ben")
    assert other.get("/admin/").status_code == 302
    add_account("ben", "owner", "another long one")
    assert other.get("/admin/").status_code == 302, "of another role now"


def test_a_stale_form_asks_again_and_then_works(site, people):
    visitor = Visitor(site.app.test_client())
    told = visitor.client.post("/admin/login", data={"csrf": "old", "name": "ada", "password": people["ada"]})
    assert told.status_code == 400
    assert "expired" in told.text and 'value="ada"' in told.text
    assert visitor.post("/admin/login", name="ada", password=people["ada"]).status_code == 302


def test_failed_sign_ins_stand_in_the_audit_and_are_shown_to_the_owner_alone(site, people, visit):
    notice = '<p class="told"'
    assert notice not in visit("ada").get("/admin/").text
    stranger = Visitor(site.app.test_client())
    stranger.sign_in("ada", "a guess")
    stranger.sign_in(people["ben"], "typed into the wrong field")
    owner, assistant = visit("ada"), visit("ben")
    assert re.search(f"{notice}[^>]*>2 ", owner.get("/admin/").text)
    assert notice not in assistant.get("/admin/").text
    audit = owner.says("/admin/small/audit")
    assert audit.count(FAILED) >= 2 and "account: ada" in audit
    assert people["ben"] not in audit and "127.0.0.1" not in audit


def test_a_flood_of_failed_sign_ins_gets_a_few_lines_that_count_them_all():
    moment = [0.0]
    counter = FailedSignIns(Throttle(3, 60, clock=lambda: moment[0]))
    lines = [counter.told(None, "too many tries") for _ in range(50)]
    assert [len(line) for line in lines] == [1] * 3 + [0] * 47
    moment[0] = 61.0
    later = {(line["account"], line["why"]): line["tries"] for line in counter.told("ada", "wrong")}
    assert later == {("unknown name", "too many tries"): 47, ("ada", "wrong"): 1}


def test_the_servers_own_password_stays_under_the_same_key_and_signs_nobody_out(monkeypatch):
    monkeypatch.setenv("WRODS_PASSWORD", "correct horse")
    monkeypatch.setenv("WRODS_SECRET", "a key that stays as it is")
    (first, _), (second, _) = read_settings({}), read_settings({})
    assert first.password_hash == second.password_hash
    monkeypatch.setenv("WRODS_PASSWORD", "another horse")
    assert read_settings({})[0].password_hash != first.password_hash


def test_no_view_is_open_to_strangers_and_each_says_what_it_needs(site):
    client = site.app.test_client()
    open_to_all = {"admin.login_form", "admin.login", "admin.code_form", "admin.take_code", "admin.enter"}
    open_to_all.add("admin.logout")
    for rule in site.app.url_map.iter_rules():
        if not rule.endpoint.startswith("admin.") or rule.endpoint in open_to_all:
            continue
        path = re.sub(r"<any\((\w+)[^>]*>", r"\1", rule.rule.replace("<study>", "small"))
        path = re.sub(r"<[^>]+>", "1", path)
        if "GET" in (rule.methods or ()):
            assert client.get(path).status_code in (302, 401), path
        if "POST" in (rule.methods or ()):
            assert client.post(path).status_code == 400, path
