"""The API engine against a real server on a socket that misbehaves: each request answered or recorded, in a window."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiment.configuration import config_file
from experiment.models import Message, ModelSettings, Request
from experiment.models.api.engine import ApiEngine
from experiment.models.api.retrying import ALIKE_TRIES, TRIES, RunStopped, retry_after
from experiment.models.api.sending import MOST_ALIKE, MOST_ALIKE_LATER, Limiter
from experiment.models.engine import REPLY_STATUSES
from stimuli.errors import UserError
from tests.experiment.models.api_requests import api_engine, choice, choices
from tests.scripted_openai import BEHAVIOURS, ScriptedOpenAI


def test_every_request_is_answered_once_with_all_its_counts(server):
    replies = list(api_engine(server).answer(choices(40)))
    assert sorted(reply.work_key for reply in replies) == sorted(f"k{n}" for n in range(40))
    assert len(server.requests) == 40
    for reply in replies:
        assert (reply.text, reply.status) == ("A" if int(reply.work_key[1:]) % 2 else "B", "answered")
        assert (reply.requested_model, reply.resolved_model) == ("scripted", "scripted-2026-01-01")
        assert (reply.prompt_tokens, reply.cached_tokens, reply.reasoning_tokens) == (4, 2, 5)
        assert (reply.finish_reason, reply.attempts) == ("stop", 1)
        assert (reply.latency_ms, reply.ttft_ms) == (None, None)


@pytest.mark.parametrize(
    "fault",
    [
        ("429", "0"),
        "429",
        "500",
        "503",
        "cut",
        "drop",
        "malformed",
        "html",
        "no_choices",
        "error_200",
        "stall",
    ],
)
def test_a_fault_that_passes_is_asked_again(server, fault):
    server.script.extend([fault] * 3)
    timeout = 0.5 if fault == "stall" else 5.0
    replies = list(api_engine(server, timeout=timeout).answer(choices(12)))
    assert sorted(reply.work_key for reply in replies) == sorted(f"k{n}" for n in range(12))
    assert {reply.status for reply in replies} == {"answered"}
    assert len(server.requests) == 15
    assert sum(reply.attempts for reply in replies) == 15


@pytest.mark.parametrize(
    ("behaviour", "status", "text"),
    [
        ("empty", "empty", ""),
        ("null", "empty", None),
        ("length", "truncated", "B"),
        ("refusal", "refused", "I cannot help with that."),
        ("filter", "refused", None),
    ],
)
def test_an_answer_is_recorded_as_what_it_is_and_not_asked_again(server, behaviour, status, text):
    server.script.append(behaviour)
    (reply,) = api_engine(server).answer(choices(1))
    assert (reply.status, reply.text) == (status, text)
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["401", "quota"])
def test_what_no_repetition_can_mend_stops_the_run_and_loses_nothing(server, fault):
    server.script.extend(["ok"] * 6)
    server.always["trial 6 "] = fault
    replies = []
    with pytest.raises(RunStopped) as stopped:
        for reply in api_engine(server, concurrency=2).answer(choices(50)):
            replies.append(reply)
    assert {f"k{n}" for n in range(6)} <= {reply.work_key for reply in replies}
    assert {reply.status for reply in replies} == {"answered"}
    assert len(server.requests) < 12
    assert stopped.value.mend


@pytest.mark.parametrize("fault", ["403", "404"])
def test_a_key_or_model_that_never_worked_stops_the_run_and_one_that_did_costs_one_request(server, fault):
    server.always["trial 6 "] = fault
    replies = {reply.work_key: reply for reply in api_engine(server, concurrency=2).answer(choices(20))}
    assert {key for key, reply in replies.items() if reply.status == "error"} == {"k6"}
    server.always["trial"] = fault
    with pytest.raises(RunStopped, match=fault):
        list(api_engine(server, concurrency=2).answer(choices(20)))


def test_a_key_is_never_part_of_an_error(server, monkeypatch):
    monkeypatch.setenv("SCRIPTED_API_KEY", "sk-very-secret")
    server.always["trial"] = "400"
    asked = api_engine(server, key_env="SCRIPTED_API_KEY")
    (reply,) = asked.answer(choices(1))
    assert server.keys == ["Bearer sk-very-secret"]
    assert reply.status == "error" and "very-secret" not in reply.error
    assert "very-secret" not in str(asked.describe())
    server.always["trial"] = "401"
    with pytest.raises(RunStopped) as stopped:
        list(api_engine(server, key_env="SCRIPTED_API_KEY").answer(choices(1)))
    assert "very-secret" not in str(stopped.value)


@pytest.mark.parametrize("refused", ["max_tokens", "seed", "stop", "temperature"])
def test_a_refused_parameter_is_left_out_from_then_on(server, refused):
    server.refuses.add(refused)
    requests = [Request(f"k{n}", (Message("user", "say"),), None, 8, 0.7, n, ("\n",)) for n in range(5)]
    asked = api_engine(server, concurrency=1, probe=False)
    assert {reply.status for reply in asked.answer(requests)} == {"answered"}
    assert len(server.requests) == 6
    assert refused not in server.requests[-1]
    if refused == "max_tokens":
        assert server.requests[-1]["max_completion_tokens"] == 8


def test_a_temperature_that_the_study_gives_is_never_dropped(server):
    server.refuses.add("temperature")
    with pytest.raises(RunStopped, match="refuses temperature"):
        list(api_engine(server, temperature=0).answer(choices(2)))


@pytest.mark.parametrize("fault", ["400", "500", "html"])
def test_a_run_in_which_all_fails_alike_ends_soon_with_the_reason(server, fault):
    server.always["trial"] = fault
    replies = []
    with pytest.raises(RunStopped, match=r"\b20\b") as stopped:
        for reply in api_engine(server, probe=False).answer(choices(200)):
            replies.append(reply)
    assert replies[0].error in str(stopped.value)
    assert {reply.status for reply in replies} == {"error"}
    assert MOST_ALIKE <= len(replies) < MOST_ALIKE + 4
    assert len(server.requests) <= len(replies) * TRIES + 4 * TRIES


def test_refusals_that_differ_or_an_answer_among_them_let_the_run_go_on(server):
    server.script.extend(("400", f"word {'x' * n} is not allowed") for n in range(40))
    assert len(list(api_engine(server, concurrency=1).answer(choices(50)))) == 50
    server.script.extend(["ok"] + ["400"] * 40)
    assert len(list(api_engine(server, concurrency=1).answer(choices(50)))) == 50


@pytest.mark.parametrize("shown_by", ["probe", "store"])
def test_a_model_that_is_known_to_answer_is_asked_on_behind_any_number_of_refusals(server, shown_by):
    """More than would ever end a run, each for the same reason: the prompts behind them are answered."""
    refused = MOST_ALIKE_LATER + 30
    server.script.extend([("400", "Your prompt was flagged")] * refused)
    asked = api_engine(server, concurrency=1, probe=shown_by == "probe")
    asked.has_answered = shown_by == "store"
    replies = list(asked.answer(choices(refused + 5)))
    assert [reply.status for reply in replies] == ["error"] * refused + ["answered"] * 5
    assert len(server.requests) == refused + 5


@pytest.mark.parametrize("concurrency", [1, 8])
def test_prompts_at_which_a_server_always_fails_are_set_aside_however_many_follow_each_other(
    server, concurrency, monkeypatch
):
    """It answers a plain question meanwhile, so these prompts are at fault, and those behind them are asked."""
    monkeypatch.setattr("experiment.models.api.sending.MOST_ALIKE_LATER", 12)
    failing = 20
    server.always["is odd"] = "500"
    requests = choices(2 * failing + 3)
    few, odd, rest = requests[:3:2], requests[1::2], requests[4::2]
    replies = list(api_engine(server, concurrency=concurrency).answer([*few, *odd, *rest]))
    assert Counter(reply.status for reply in replies) == {"answered": len(few + rest), "error": len(odd)}
    assert {reply.attempts for reply in replies if reply.status == "error"} == {ALIKE_TRIES}


def test_a_server_that_is_down_for_a_while_is_waited_for_and_no_request_is_set_aside(server):
    asked = api_engine(server, concurrency=4)
    replies = []
    for reply in asked.answer(choices(60)):
        replies.append(reply)
        if len(replies) == 10:
            server.down = 4 * ALIKE_TRIES + 10
    assert [reply.status for reply in replies] == ["answered"] * 60
    assert max(reply.attempts for reply in replies) > ALIKE_TRIES


def test_a_server_that_stays_down_ends_the_run_and_sets_little_aside(server):
    replies = []
    with pytest.raises(RunStopped):
        for reply in api_engine(server, concurrency=4).answer(choices(500)):
            replies.append(reply)
            if len(replies) == 10:
                server.down = 10**9
    assert {reply.status for reply in replies} == {"answered"}
    assert len(replies) < 20


def test_a_prompt_that_brings_its_server_down_is_given_up_in_the_end(server):
    """Each of its tries is followed by a while in which nothing is answered."""

    class Falling(dict[str, object]):
        def items(self):  # type: ignore[no-untyped-def]
            return [("trial 3 ", self["fall"]())]

    def fall() -> str:
        server.down = ALIKE_TRIES + 1
        return "500"

    server.always = Falling(fall=fall)
    asked = api_engine(server, concurrency=1)
    replies = {reply.work_key: reply.status for reply in asked.answer([choices(4)[n] for n in (0, 3, 1)])}
    assert replies == {"k0": "answered", "k3": "error", "k1": "answered"}


def test_openai_itself_needs_a_key_and_an_own_server_does_not(server, monkeypatch):
    with pytest.raises(UserError, match="OPENAI_API_KEY"):
        ApiEngine(ModelSettings("openai:gpt-x"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    ApiEngine(ModelSettings("openai:gpt-x"))
    list(api_engine(server).answer(choices(1)))
    assert "sk-mine" not in "".join(server.keys)


def test_a_key_may_stand_in_the_users_own_file_that_no_one_else_reads(server):
    config_file().parent.mkdir(parents=True)
    config_file().write_text('[keys]\nLAB_API_KEY = "sk-file"\n')
    config_file().chmod(0o644)
    with pytest.raises(UserError, match="chmod 600"):
        api_engine(server, key_env="LAB_API_KEY")
    config_file().chmod(0o600)
    list(api_engine(server, key_env="LAB_API_KEY").answer(choices(1)))
    assert server.keys == ["Bearer sk-file"]


def test_a_study_cannot_send_any_variable_of_the_environment_to_a_server(server, monkeypatch):
    monkeypatch.setenv("HOME_SECRET", "x")
    with pytest.raises(UserError, match="_API_KEY"):
        api_engine(server, key_env="HOME_SECRET")


def test_a_password_in_a_servers_address_is_refused_and_not_repeated(server):
    with pytest.raises(UserError, match="key_env") as refused:
        api_engine(server, base_url=server.url.replace("127", "me:very-secret@127"))
    assert "very-secret" not in str(refused.value)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from([one for one in BEHAVIOURS if one != "stall"]), max_size=30))
def test_whatever_a_server_does_replies_are_unique_and_their_status_is_a_known_one(script):
    with ScriptedOpenAI() as server:
        server.script.extend(script)
        replies = []
        try:
            for reply in api_engine(server).answer(choices(15)):
                replies.append(reply)
            assert len(replies) == 15
        except RunStopped:
            assert set(script) & {"401", "403", "404", "quota"}
        assert len({reply.work_key for reply in replies}) == len(replies)
        assert {reply.status for reply in replies} <= set(REPLY_STATUSES)


def test_retry_after_is_read_as_seconds_milliseconds_or_date():
    assert retry_after({"retry-after": "2.5"}) == 2.5
    assert retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    date = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 100))
    assert 90 < retry_after({"retry-after": date}) < 101
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None


def test_a_million_requests_are_read_only_as_there_is_room(server):
    read = []

    def planned() -> Iterator[Request]:
        for number in range(1_000_000):
            read.append(number)
            yield choice(number)

    engine = api_engine(server, concurrency=4)
    answered = 0
    for _ in engine.answer(planned()):
        answered += 1
        assert len(read) - answered <= 2 * 4 + 64 + 1
        if answered == 50:
            engine.close()
    assert 50 <= answered < 200


def test_a_request_told_to_wait_gives_its_place_back_and_the_others_go_on(server):
    server.always["trial 0 "] = ("429", "1")
    limiter = Limiter(start=1, cap=1)
    engine = api_engine(server, limiter, concurrency=1, pace=1.0)
    begun = time.monotonic()
    seen = []
    for reply in engine.answer(choices(20)):
        seen.append(reply.work_key)
        if len(seen) == 19:
            assert time.monotonic() - begun < 60
            waiting = engine.status()
            assert waiting.waiting == 1 and "429" in str(waiting.why)
            assert waiting.waiting_until is not None and waiting.waiting_until > time.time() - 5
            assert re.search(r"\d\d:\d\d:\d\d", str(waiting))
            server.always.clear()
    assert seen[-1] == "k0" and len(seen) == 20


def test_two_models_share_the_places_of_one_server(server):
    server.delay = 0.01
    limiter = Limiter(start=6, cap=6)
    replies: list[str] = []

    def ask(first: int) -> None:
        engine = api_engine(server, limiter, concurrency=6)
        replies.extend(reply.work_key for reply in engine.answer(choice(first + n) for n in range(60)))

    threads = [threading.Thread(target=ask, args=(first,)) for first in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(replies) == len(set(replies)) == 120
    assert server.most_at_once <= 6


def test_a_caller_that_goes_away_ends_the_run(server):
    server.delay = 0.01
    for _ in api_engine(server).answer(choices(10_000)):
        break
    sent = len(server.requests)
    time.sleep(0.1)
    assert len(server.requests) == sent < 200


def test_a_network_that_comes_back_costs_no_request():
    with ScriptedOpenAI() as first:
        port = int(first.url.split(":")[2].split("/")[0])
        engine = api_engine(first, concurrency=2, pace=0.02)
        source = engine.answer(choices(40))
        replies = [next(source).work_key for _ in range(5)]
    later: list[ScriptedOpenAI] = []

    def come_back() -> None:
        time.sleep(0.3)
        later.append(ScriptedOpenAI(port=port).__enter__())

    thread = threading.Thread(target=come_back)
    thread.start()
    rest = list(source)
    thread.join()
    later[0].__exit__(None, None, None)
    assert sorted(replies + [reply.work_key for reply in rest]) == sorted(f"k{n}" for n in range(40))
    assert {reply.status for reply in rest} == {"answered"}


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("https://models.example.org/v1/chat/completions", "https://models.example.org/v1 "),
        ("/openai/v1/chat/completions", "/openai/v1 "),
        ("https://login.example.org/?next=1", "https://login.example.org/?next=1 "),
        ("", "base_url"),
    ],
)
def test_no_redirect_is_followed_with_the_key_and_where_it_leads_is_named(server, location, named):
    server.elsewhere = location
    for probe, sent in ((True, (1, 0)), (False, (1, 1))):
        with pytest.raises(RunStopped, match=r"30[278]") as stopped:
            list(api_engine(server, probe=probe, concurrency=1).answer(choices(50)))
        assert named in str(stopped.value)
        assert (len(server.probes), len(server.requests)) == sent


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def full(limiter: Limiter) -> None:
    while limiter.take():
        pass


def good_round(limiter: Limiter) -> None:
    full(limiter)
    for _ in range(limiter.limit):
        limiter.succeeded()


def test_places_double_in_good_rounds_until_the_cap():
    limiter = Limiter(start=4, cap=20)
    seen = []
    for _ in range(4):
        seen.append(limiter.limit)
        good_round(limiter)
    assert seen == [4, 8, 16, 20]


def test_an_episode_shrinks_once_and_growth_waits_as_long_as_the_server_said():
    clock = Clock()
    limiter = Limiter(start=50, cap=100, clock=clock)
    full(limiter)
    for _ in range(30):
        limiter.limited(99.0, 8.0)
    assert (limiter.limit, limiter.cuts) == (40, 1)
    good_round(limiter)
    assert limiter.limit == 40
    clock.now += 9
    good_round(limiter)
    assert limiter.limit == 44


def test_when_nothing_but_refusals_comes_back_nothing_is_sent_until_the_wait_is_over():
    clock = Clock()
    limiter = Limiter(start=4, cap=4, clock=clock)
    for _ in range(6):
        limiter.limited(99.0, 20.0)
    assert not limiter.take() and 19 < limiter.held_for() <= 20
    clock.now += 21
    assert limiter.take()


@given(st.lists(st.sampled_from(["take", "leave", "good", "limited", "later"]), max_size=200))
def test_places_stay_between_one_and_the_cap_and_no_more_are_taken(steps):
    clock = Clock()
    limiter = Limiter(start=3, cap=9, clock=clock)
    for step in steps:
        before = limiter.in_flight
        if step == "take":
            assert limiter.take() == (before < limiter.limit and limiter.held_for() == 0)
        elif step == "leave" and before:
            limiter.leave()
        elif step == "good" and before:
            limiter.succeeded()
        elif step == "limited" and before:
            limiter.limited(clock.now, 1.0)
        elif step == "later":
            clock.now += 3
        assert 1 <= limiter.limit <= 9 and limiter.in_flight >= 0
