"""Guessing passwords and codes is slow, and locks nobody else out: not an account, not the server."""

from __future__ import annotations

import json
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pyotp
import pytest
from click.testing import Result

from experiment.configuration import config_file, read_config
from experiment.people.dashboard import sign_ins as second_factor
from experiment.people.dashboard import sign_ins as sign_in_limits
from experiment.people.dashboard.sign_ins import (
    FAILED,
    FREE_TRIES,
    FREE_TRIES_OF_NETWORK,
    LONGEST_WAIT_S,
    Caller,
    FailedTries,
    Lane,
    SignInLimits,
    TooManyTries,
)
from tests.experiment.commands import wrods
from tests.experiment.people.conftest import PASSWORD, Visitor


def at(app: Any, address: str) -> Visitor:
    client = app.test_client()
    client.environ_base["REMOTE_ADDR"] = address
    return Visitor(client)


def guesses(visitor: Visitor, name: str, number: int) -> list[int]:
    return [visitor.sign_in(name, f"guess {one}").status_code for one in range(number)]


def test_an_address_gets_five_tries_and_then_waits_ever_longer(site, people):
    guesser = at(site.app, "192.0.2.1")
    assert guesses(guesser, "ada", 8) == [401] * FREE_TRIES + [429] * 3
    told = guesser.sign_in("ada", people["ada"])
    assert told.status_code == 429, "the right password is not looked at either"


def test_guesses_from_one_address_lock_nobody_out_and_end_no_sign_in(site, people, visit):
    mine = visit("ada")
    for address in ("192.0.2.1", "127.0.0.1"):
        for name in ("ada", "ben", "cora", "", "nobody"):
            guesses(at(site.app, address), name, 5)
    for name in ("ada", "ben", "cora"):
        elsewhere = at(site.app, "192.0.2.2")
        assert elsewhere.sign_in(name, people[name]).status_code == 302, name
    assert mine.get("/admin/").status_code == 200


def test_who_shares_a_guessers_address_still_gets_in_by_a_browser_that_did_before(site, people):
    mine = at(site.app, "192.0.2.1")
    assert mine.sign_in("ada", people["ada"]).status_code == 302
    mine.post("/admin/logout")
    assert guesses(at(site.app, "192.0.2.1"), "ada", 12)[-1] == 429
    assert mine.sign_in("ada", people["ada"]).status_code == 302
    # the mark is the account's own: it opens no way to guess at others, and has a count as well
    mine.post("/admin/logout")
    assert mine.sign_in("ben", people["ben"]).status_code == 429
    assert guesses(mine, "ada", 7) == [401] * FREE_TRIES + [429] * 2


def test_guessers_of_one_network_are_slowed_together_and_keep_the_owner_out_nowhere(site, people):
    told = [
        code for host in range(4) for code in guesses(at(site.app, f"192.0.2.{host}"), "ada", 4)
    ]  # fewer from each address than are free
    assert told.count(401) == FREE_TRIES_OF_NETWORK + 1 and told.count(429) == 5
    assert at(site.app, "192.0.2.77").sign_in("ada", people["ada"]).status_code == 302
    many = [code for host in range(100, 150) for code in guesses(at(site.app, f"192.0.2.{host}"), "ada", 4)]
    assert many == [401, 429, 429, 429] * 50, "one try of each"
    assert at(site.app, "192.0.2.78").sign_in("ada", people["ada"]).status_code == 302
    assert at(site.app, "192.0.2.0").sign_in("ben", people["ben"]).status_code == 302, "another account"


def test_nobody_restarts_the_wait_of_another_address():
    now = [1000.0]
    tries = FailedTries(FREE_TRIES, lambda: now[0])
    for host in range(12):
        tries.begin(Caller(f"192.0.2.{host}", "ada"))
    mine = Caller("192.0.2.77", "ada")
    tries.begin(mine)
    with pytest.raises(TooManyTries) as refused:
        tries.begin(mine)
    for second in range(1, int(refused.value.wait_s) + 1):
        now[0] = 1000.0 + second
        tries.begin(Caller(f"192.0.2.{100 + second}", "ada"))
        with pytest.raises(TooManyTries):
            tries.begin(Caller("192.0.2.0", "ada"))
    tries.forgive(mine)  # who typed it right is not held by the tries of others
    tries.begin(mine)


def test_waits_double_up_to_five_minutes_are_forgotten_and_are_kept_for_few_addresses(monkeypatch):
    now = [1000.0]
    tries = FailedTries(2, lambda: now[0])
    waits = []
    for _ in range(12):
        try:
            tries.begin(Caller("x"))
        except TooManyTries as refusal:
            waits.append(refusal.wait_s)
            with pytest.raises(TooManyTries):  # a try that is refused does not lengthen the wait
                tries.begin(Caller("x"))
            now[0] += refusal.wait_s
            tries.begin(Caller("x"))
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, LONGEST_WAIT_S, LONGEST_WAIT_S]
    now[0] += 3601  # a quiet hour
    tries.begin(Caller("x"))
    tries.begin(Caller("x"))
    monkeypatch.setattr(sign_in_limits, "MOST_COUNTS", 100)
    for number in range(1000):
        tries.begin(Caller(f"host {number}"))
    assert len(tries._counts) == 100


def test_a_flood_of_passwords_holds_few_threads_and_leaves_known_browsers_their_lane():
    limits = SignInLimits()
    go_on = threading.Event()
    inside = threading.Semaphore(0)

    def slow() -> str:
        inside.release()
        assert go_on.wait(60)
        return "found"

    def stranger(number: int) -> str:
        try:
            return limits.password("ada", f"10.{number}.0.1", None, slow) or "wrong"
        except TooManyTries:
            return "busy"

    with ThreadPoolExecutor(40) as pool:
        flood = [pool.submit(stranger, number) for number in range(40)]
        assert inside.acquire(timeout=60)
        # one is compared, three wait, and the others were sent away at once
        end = time.monotonic() + 60
        while sum(one.done() for one in flood) < 36:
            assert time.monotonic() < end
            time.sleep(0.01)
        assert limits.password("ada", "10.0.0.1", "a browser", lambda: "in") == "in"
        go_on.set()
        told = [one.result() for one in flood]
    assert told.count("busy") == 36 and told.count("found") == 4
    # who was sent away as the server was busy has used up no try
    assert limits.password("ada", "10.39.0.1", None, lambda: "in") == "in"


# the second factor


def test_a_lane_that_moves_too_slowly_sends_those_away_who_wait():
    lane = Lane(queue=1, wait_s=0.01)
    with lane.turn(), pytest.raises(TooManyTries), lane.turn():
        pass
    with lane.turn():
        pass


def user(*words: str, typed: str = "") -> Result:
    return wrods("user", *words, given=typed)


@pytest.fixture
def secret(monkeypatch: pytest.MonkeyPatch) -> str:
    chosen = pyotp.random_base32()
    monkeypatch.setattr(pyotp, "random_base32", lambda: chosen)
    return chosen


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The phone's and the server's time."""
    now = [1_800_000_000.0]
    monkeypatch.setattr(second_factor, "time", SimpleNamespace(time=lambda: now[0]))
    return now


def code(secret: str, moment: list[float]) -> str:
    return pyotp.TOTP(secret).at(int(moment[0]))


@pytest.fixture
def recovery_codes(people: dict[str, str], secret: str, moment: list[float]) -> list[str]:
    """Ada has a second factor; return her recovery codes."""
    done = user("totp", "ada", typed=f"{code(secret, moment)}\n")
    assert done.exit_code == 0, done.output
    del people
    return [line.strip() for line in done.output.splitlines() if line.startswith("  ")]


def halfway(site: Any, people: dict[str, str], address: str = "127.0.0.1") -> Visitor:
    """Return a browser in which Ada's password was given."""
    visitor = at(site.app, address)
    told = visitor.sign_in("ada", people["ada"])
    assert told.status_code == 302 and told.headers["Location"].endswith("/login/code")
    assert 'name="code"' in visitor.get("/admin/login/code").text
    assert visitor.get("/admin/").status_code == 302, "the password alone opens nothing"
    return visitor


def test_the_command_shows_what_an_app_needs_and_keeps_no_recovery_code(recovery_codes, secret):
    kept = read_config()["accounts"]["ada"]
    assert kept["totp_secret"] == secret and len(kept["recovery_codes"]) == len(recovery_codes) == 8
    assert recovery_codes[0] not in config_file().read_text("utf-8")
    told = {one["name"]: one["second_factor"] for one in json.loads(user("list", "--json").output)}
    assert told == {"owner": False, "ada": True, "ben": False, "cora": False, "dan": False}
    assert re.search(r"^ada .*\b8\b", user("list").output, re.MULTILINE)


def test_the_command_prints_address_and_secret_and_refuses_a_wrong_code(people, secret, moment):
    wrong = f"{(int(code(secret, moment)) + 1) % 1_000_000:06d}"
    done = user("totp", "ada", typed=f"{wrong}\n")
    assert done.exit_code == 2
    assert f"otpauth://totp/wrods:ada?secret={secret}&issuer=wrods" in done.output
    assert "totp_secret" not in read_config()["accounts"]["ada"]
    unknown = user("totp", "adda", typed="1\n")
    assert unknown.exit_code == 2 and "'ada'" in unknown.output
    del people


def test_a_code_is_asked_for_after_the_password_and_counts_once(site, people, recovery_codes, secret, moment):
    del recovery_codes
    first, second = halfway(site, people), halfway(site, people)
    given = code(secret, moment)
    assert first.post("/admin/login/code", code=f"{given[:3]} {given[3:]}").status_code == 302
    assert first.get("/admin/").status_code == 200
    told = second.post("/admin/login/code", code=given)
    assert told.status_code == 401
    moment[0] += 3600
    moment[0] -= 3600  # a clock that jumps there and back makes no used code good again
    assert second.post("/admin/login/code", code=given).status_code == 401
    moment[0] += 60
    assert second.post("/admin/login/code", code=code(secret, moment)).status_code == 302
    audit = first.says("/admin/small/audit")
    assert FAILED in audit


def test_a_code_of_the_step_before_or_after_counts_and_no_other(recovery_codes, secret, moment):
    del recovery_codes
    factor = second_factor.SecondFactor(secret)
    steps = [
        factor.step_of(pyotp.TOTP(secret).at(int(moment[0]) + 30 * apart)) is not None
        for apart in range(-3, 4)
    ]
    assert steps == [False, False, True, True, True, False, False]


def test_a_recovery_code_signs_in_once_and_is_crossed_out(site, people, recovery_codes):
    assert halfway(site, people).post("/admin/login/code", code=recovery_codes[0].lower()).status_code == 302
    again = halfway(site, people)
    assert again.post("/admin/login/code", code=recovery_codes[0]).status_code == 401
    assert again.post("/admin/login/code", code=recovery_codes[1]).status_code == 302
    assert re.search(r"^ada .*\b6\b", user("list").output, re.MULTILINE)


def test_codes_are_limited_and_whoever_knows_the_password_cannot_lock_the_owner_out(
    site, people, recovery_codes, secret, moment
):
    mine = halfway(site, people, "198.51.100.7")
    mine.post("/admin/login/code", code=code(secret, moment))
    mine.post("/admin/logout")
    told = []
    for number in range(20):
        thief = halfway(site, people, f"10.0.{number}.1")
        told.append(thief.post("/admin/login/code", code=f"{number:06d}").status_code)
    assert told == [401] * FREE_TRIES_OF_NETWORK + [429] * 10
    # a browser that signed in before, and a recovery code from anywhere
    moment[0] += 60
    assert mine.sign_in("ada", people["ada"]).status_code == 302
    assert mine.post("/admin/login/code", code=code(secret, moment)).status_code == 302
    elsewhere = halfway(site, people, "203.0.113.9")
    assert elsewhere.post("/admin/login/code", code=recovery_codes[0]).status_code == 302


def test_a_second_factor_ends_open_sign_ins_and_is_removed_by_command(site, visit, people, secret, moment):
    before = visit("ada")
    assert user("totp", "ada", typed=f"{code(secret, moment)}\n").exit_code == 0
    assert before.get("/admin/").status_code == 302
    visitor = halfway(site, people)
    assert user("totp", "ada", "--remove").exit_code == 0
    assert visitor.post("/admin/login/code", code=code(secret, moment)).status_code == 400
    assert at(site.app, "127.0.0.1").sign_in("ada", people["ada"]).headers["Location"].endswith("/admin/")


def test_the_servers_own_account_can_have_one_too(site, secret, moment):
    assert user("totp", "owner", typed=f"{code(secret, moment)}\n").exit_code == 0
    assert read_config()["serve"]["totp_secret"] == secret
    visitor = at(site.app, "127.0.0.1")
    assert visitor.sign_in("", PASSWORD).headers["Location"].endswith("/login/code")
    assert visitor.post("/admin/login/code", code=code(secret, moment)).status_code == 302
    # whoever sits at the server's console needs no phone
    link = site.state.make_link()
    assert site.app.test_client().get(f"/admin/enter/{link}").headers["Location"].endswith("/admin/")
