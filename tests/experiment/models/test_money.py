"""Prices that are known or asked for, and limits of one command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models import Message, ModelSettings, Reply, Request
from experiment.models.api.prices import price_of
from experiment.models.costs import format_usd, parse_usd
from experiment.models.runs.model_worker import batch_price
from stimuli.errors import UserError


def settings(name: str, **options: object) -> ModelSettings:
    return ModelSettings(f"openai:{name}", options)


def test_a_listed_model_and_its_dated_snapshot_have_one_price_with_its_date():
    price = price_of(settings("gpt-4.1-mini-2025-04-14"))
    assert (price.input, price.cached_input, price.output) == (0.4, 0.1, 1.6)
    assert price_of(settings("gpt-4.1-mini")) == price
    assert "2026-10-03" in price.source


def test_a_model_without_a_price_is_refused_until_one_is_given():
    with pytest.raises(UserError, match="openai:gpt-unheard-of") as error:
        price_of(settings("gpt-unheard-of"))
    assert "price: {input" in str(error.value.mend)
    with pytest.raises(UserError, match=r"https://api\.example\.org/v1"):
        price_of(settings("gpt-4.1-mini", base_url="https://api.example.org/v1"))
    assert price_of(settings("gpt-unheard-of", price={"input": 1, "output": 2})).cached_input == 1
    assert price_of(settings("gpt-unheard-of", price="free")).is_free


@pytest.mark.parametrize(
    "url",
    ["http://localhost:8000/v1", "http://127.0.0.1:1/v1", "http://192.168.1.7/v1", "http://gpu3:8000/v1"],
)
def test_a_server_of_ones_own_costs_nothing(url):
    assert price_of(settings("Qwen/Qwen3-8B", base_url=url)).is_free
    assert price_of(ModelSettings("hf:Qwen/Qwen3-8B")).is_free


@pytest.mark.parametrize(
    "price", [{"input": 1}, {"input": -1, "output": 2}, {"input": 1, "output": "2"}, {"input": 1, "output": 2, "out": 3}, "cheap", 3]
)  # fmt: skip
def test_a_price_that_is_none_is_refused(price):
    with pytest.raises(UserError, match=r"price.*\bm\b"):
        price_of(settings("m", price=price))


def test_a_reply_costs_its_fresh_its_cached_and_its_written_tokens():
    price = price_of(settings("m", price={"input": 2, "cached_input": 0.5, "output": 8, "batch": 0.5}))
    reply = Reply(
        "k",
        "A",
        "answered",
        prompt_tokens=1000,
        cached_tokens=600,
        completion_tokens=100,
        reasoning_tokens=90,
    )
    assert price.of(reply) == pytest.approx((400 * 2 + 600 * 0.5 + 100 * 8) / 1e6)
    assert batch_price(price).of(reply) == pytest.approx(price.of(reply) / 2)
    assert price.of(Reply("k", "A", "answered", from_cache=True)) == 0
    assert price.of(Reply("k", "A", "answered")) is None


@given(st.text(max_size=300), st.integers(0, 500), st.integers(0, 500))
def test_no_reply_costs_more_than_its_request_can(text, cached, written):
    price = price_of(settings("m", price={"input": 2, "cached_input": 0.5, "output": 8}))
    request = Request("k", (Message("user", text),), None, 500, 0.0, 1)
    read = len(text.encode()) + 16
    reply = Reply(
        "k", "", "answered", prompt_tokens=read, cached_tokens=min(cached, read), completion_tokens=written
    )
    assert price.of(reply) <= price.most(request) + 1e-12


@pytest.mark.parametrize(
    ("options", "read", "written"),
    [
        ({}, 1 + 16, 8),
        ({"thinking_tokens": 500}, 1 + 16, 508),
        ({"reasoning_effort": "low"}, 1 + 16, 8 + 4096),
        ({"label_only": True}, 1 + 16 + 256, 8 + 16),
        ({"label_scoring": "whole"}, 3 * 17 + 2 * 17, 8 + 2),
        ({"api": "responses"}, 1 + 16, 8 + 16),
    ],
)
def test_the_worst_case_holds_all_that_a_request_may_read_and_write(options, read, written):
    price = price_of(settings("x", price={"input": 1e6, "output": 1e6}, **options))
    request = Request("k", (Message("user", "a"),), ("A", "B"), 8, 0.0, 0)
    assert price.most_tokens(request) == (read, written)
    assert price.most(request) == read + written


@pytest.mark.parametrize(
    ("given", "amount"), [("40 USD", 40), ("$40", 40), ("0.50 usd", 0.5), ("USD 12,5", 12.5)]
)
def test_amounts_are_read_as_people_write_them(given, amount):
    assert parse_usd(given, "--max-cost") == amount


def test_small_amounts_keep_three_digits():
    assert (format_usd(12.3), format_usd(0.00123), format_usd(0)) == ("12.30 USD", "0.00123 USD", "0.00 USD")
