"""Accounts and sign-in: who gets in, what they may, and how a changed password ends it."""

from __future__ import annotations

import json
import re
import stat
import sys

import pytest
from click.testing import Result

from experiment.configuration import config_file, read_config
from experiment.people.dashboard import accounts
from experiment.people.dashboard.sign_ins import FailedSignIns
from experiment.people.service import read_settings
from experiment.people.session_cache import Throttle
from stimuli.errors import UserError
from tests.experiment.commands import wrods
from tests.experiment.people.dashboard.conftest import Visitor, words_of


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
    assert accounts.is_password("another horse", after) and not accounts.is_password("correct horse", after)
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
        (["add", "owner", "--role", "owner"], "long enough", "server's own account"),
        (["add", "Mara!", "--role", "owner"], "long enough", "small letters"),
        (["add", "mara", "--role", "owner"], "short", "at least 10"),
        (["remove", "marra"], "", "Did you mean 'mara'?"),
        (["password", "nobody"], "long enough", "Known: mara"),
        (["add", "mara", "--role", "rater"], "long enough", "already"),
    ],
)
def test_what_cannot_be_is_told_with_a_mend(words, typed, told):
    if words[1] != "mara" or words[-1] == "rater":
        accounts.add_account("mara", "assistant", "long enough")
    done = user(*words, typed=f"{typed}\n")
    assert done.exit_code == 2 and told in done.output


def test_an_account_without_a_role_is_told_with_the_command_that_mends_it():
    with pytest.raises(UserError, match="wrods user add mara"):
        accounts.read_accounts({"accounts": {"mara": {"role": "king", "password_hash": "x"}}})


def test_a_changed_password_signs_out_everywhere_at_once(visit):
    first, second, other = visit("ada"), visit("ada"), visit("ben")
    assert {one.get("/admin/").status_code for one in (first, second, other)} == {200}
    accounts.change_password("ada", "a password made today")
    assert first.get("/admin/").status_code == second.get("/admin/").status_code == 302
    assert first.get("/admin/data.json").status_code == 401
    assert other.get("/admin/").status_code == 200
    accounts.remove_account("ben")
    assert other.get("/admin/").status_code == 302


def test_a_stale_form_asks_again_and_then_works(site, people):
    visitor = Visitor(site.app.test_client())
    told = visitor.client.post("/admin/login", data={"csrf": "old", "name": "ada", "password": people["ada"]})
    assert told.status_code == 400
    assert "expired" in told.text and 'value="ada"' in told.text
    assert visitor.post("/admin/login", name="ada", password=people["ada"]).status_code == 302


def test_failed_sign_ins_stand_in_the_audit_and_are_shown_to_the_owner_alone(site, people, visit):
    assert "failed" not in words_of(visit("ada").get("/admin/").text)
    stranger = Visitor(site.app.test_client())
    stranger.sign_in("ada", "a guess")
    stranger.sign_in(people["ben"], "typed into the wrong field")
    owner, assistant = visit("ada"), visit("ben")
    assert "2 failed sign-ins in the last seven days" in words_of(owner.get("/admin/").text)
    assert "failed" not in words_of(assistant.get("/admin/").text)
    audit = words_of(owner.get("/admin/small/audit").text)
    assert "sign-in failed" in audit and "account: ada" in audit and "account: unknown name" in audit
    assert people["ben"] not in audit and "127.0.0.1" not in audit


def test_a_flood_of_failed_sign_ins_gets_a_few_lines_that_count_them_all():
    moment = [0.0]
    counter = FailedSignIns(Throttle(3, 60, clock=lambda: moment[0]))
    lines = [counter.told(None, "too many tries") for _ in range(50)]
    assert [line is not None for line in lines] == [True] * 3 + [False] * 47
    moment[0] = 61.0
    later = counter.told("ada", "wrong")
    assert later is not None and (later["tries"], later["account"]) == (48, "ada")


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
