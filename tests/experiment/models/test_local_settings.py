"""Numbers, determinism and times of a local model: what may be asked, what is recorded, what is promised."""

from __future__ import annotations

import importlib.util
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from stimuli.errors import UserError
from tests.experiment.models.tiny_models import ask, requests_of, tiny_llama

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_of_every_format_are_computed_and_recorded(plain_model, local, dtype):
    engine = local(plain_model, dtype=dtype)
    replies = list(engine.answer(requests_of(12)))
    assert {reply.dtype for reply in replies} == {dtype} == {engine.describe()["identity"]["dtype"]}
    assert next(engine._load().model.parameters()).dtype == getattr(torch, dtype)
    exact = {r.work_key: r for r in local(plain_model).answer(requests_of(12))}
    apart = max(abs(r.label_logprobs["A"] - exact[r.work_key].label_logprobs["A"]) for r in replies)
    assert apart < {"bfloat16": 0.5, "float16": 0.1}[dtype]


def test_quantisation_without_its_packages_says_what_to_install(plain_model, local, monkeypatch):
    original = importlib.util.find_spec
    missing = ("torchao", "bitsandbytes")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in missing else original(name))
    for bits, package in (("8bit", "torchao"), ("4bit", "bitsandbytes")):
        with pytest.raises(UserError, match=f"pip install {package} accelerate"):
            local(plain_model, quantisation=bits, device="cpu")
    with pytest.raises(UserError, match="4bit, 8bit"):
        local(plain_model, quantisation="3bit")


def test_a_checkpoint_that_is_stored_quantised_is_loaded_as_it_is_and_said_to_be_so(tmp_path, local):
    pytest.importorskip("bitsandbytes")
    pytest.importorskip("accelerate")
    folder = wide_llama(tmp_path)
    first = local(folder, quantisation="4bit", device="cpu")
    stored = shutil.copytree(folder, tmp_path / "stored")
    first._load().model.save_pretrained(str(stored))  # before its first pass, which lays weights out anew
    expected = {reply.work_key: reply.label_logprobs for reply in first.answer(requests_of(6))}
    folder = stored
    engine = local(folder, device="cpu")
    for reply in engine.answer(requests_of(6)):
        assert reply.label_logprobs == pytest.approx(expected[reply.work_key], abs=1e-5)
    assert engine.describe()["identity"]["quantisation"] == "bitsandbytes"
    with pytest.raises(UserError, match="bitsandbytes"):
        local(folder, quantisation="8bit", device="cpu")


def wide_llama(folder: Path) -> Path:
    """A model whose layers are wide enough for weights to be stored in groups."""
    return tiny_llama(folder, hidden_size=128, intermediate_size=256, initializer_range=0.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"determinism": "always"}, "exact, fast"), ({"token_budget": 0}, "token_budget: 0")],
)
def test_settings_that_mean_nothing_are_refused(plain_model, local, options, words):
    with pytest.raises(UserError, match=words):
        local(plain_model, **options)


def computed_apart(local, checkpoint, level, **options):
    """Return how far log-probabilities and answers of single, shuffled and interrupted computations are from those of a batch."""
    requests = [replace(one, also_text=True, max_tokens=4) for one in requests_of(12)]
    shuffled = [*requests]
    random.Random(1).shuffle(shuffled)
    orders = ([requests], [[one] for one in requests], [shuffled], [requests[:8], requests[8:]])
    replies = []
    for order in orders:
        found = {}
        for part in order:
            engine = local(checkpoint, determinism=level, **options)
            found |= {reply.work_key: reply for reply in engine.answer(part)}
        replies.append(found)
    together, *others = replies
    pairs = [(together[key], other[key]) for other in others for key in together]
    apart = max(
        abs(value - right.label_logprobs[label])
        for left, right in pairs
        for label, value in left.label_logprobs.items()
    )
    return apart, sum((left.text, left.generated) != (right.text, right.generated) for left, right in pairs)


def test_what_each_level_of_determinism_promises_holds(plain_model, local):
    """Company, order and an interruption move no number of ``exact``, and those of ``fast`` by rounding alone."""
    apart, changed = computed_apart(local, plain_model, "exact")
    assert apart == 0 and not changed
    apart, _ = computed_apart(local, plain_model, "fast")
    assert 0 < apart < 1e-4


def test_timed_trials_that_ask_the_same_are_each_computed(plain_model, local):
    """In one list a text of one sentence reads alike intact and with its sentences shuffled: times are of either."""
    requests = [
        *(ask(f"same {n}", "The dog barks.", max_tokens=4) for n in range(4)),
        *(ask(f"alike {n}", "Which one?", labels=("A", "B")) for n in range(4)),
    ]
    engine = local(plain_model, timing=True)
    replies = list(engine.answer(requests))
    assert all(reply.cached_tokens == 0 for reply in replies)
    assert len({reply.latency_ms for reply in replies}) == len(replies)
    forwarded = engine._load().forwarded
    untimed = local(plain_model, determinism="exact")
    shared = list(untimed.answer(requests))
    assert sum(reply.cached_tokens > 0 for reply in shared) == 6
    assert forwarded == 4 * untimed._load().forwarded
    assert [reply.text for reply in sorted(replies, key=lambda one: one.work_key)] == [
        reply.text for reply in sorted(shared, key=lambda one: one.work_key)
    ]


def test_only_timed_trials_have_times(plain_model, local):
    requests = [*requests_of(20), ask("t", "The dog", max_tokens=4)]
    engine = local(plain_model, timing=True)
    replies = list(engine.answer(requests))
    assert sorted(reply.work_key for reply in replies) == sorted(one.work_key for one in requests)
    assert all(
        reply.latency_ms > 0 and reply.path == "plain" and reply.cached_tokens == 0 for reply in replies
    )
    (text,) = [reply for reply in replies if reply.work_key == "t"]
    assert 0 < text.ttft_ms <= text.latency_ms
    assert engine.describe()["timing"] is True
    untimed = list(local(plain_model, determinism="exact").answer(requests))
    assert all(reply.latency_ms is None and reply.ttft_ms is None for reply in untimed)
