"""What an engine does when memory runs out, a way fails, a row cannot be computed, or it is closed."""

from __future__ import annotations

import pytest

from experiment.models import Message, Request
from tests.experiment.models.tiny_models import FAMILIES, T5, ask, checkpoint, requests_of, scored_and_written

torch = pytest.importorskip("torch")

from experiment.models.local.causal_model import CausalModel  # noqa: E402
from experiment.models.local.engine import LEAST_TOKENS  # noqa: E402
from experiment.models.local.packed import Branches, Continuations, NotUnderstood  # noqa: E402
from experiment.models.local.plain import EncoderDecoderBackend  # noqa: E402


def answers_of(engine, requests) -> dict[str, object]:
    replies = list(engine.answer(requests))
    assert sorted(reply.work_key for reply in replies) == sorted(request.work_key for request in requests)
    return {reply.work_key: reply for reply in replies}


def test_running_out_of_memory_while_texts_are_generated_loses_nothing(plain_model, local, monkeypatch):
    requests = requests_of(20, labels=None, max_tokens=6)
    exact = answers_of(local(plain_model, determinism="exact"), requests)
    engine = local(plain_model)
    list(engine.answer(requests[:1]))
    original = Continuations.attend

    def narrow(self, *given):
        if len(self.lengths) > 3:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
        return original(self, *given)

    monkeypatch.setattr(Continuations, "attend", narrow)
    engine.budget.held = 200
    found = answers_of(engine, requests)
    assert {key: reply.text for key, reply in found.items()} == {
        key: reply.text for key, reply in exact.items()
    }


class Small:
    """A device on which no pass holds more than some number of tokens, or of rows."""

    def __init__(self, monkeypatch, most: int, rows: int = 1000) -> None:
        self.refused = 0
        original = CausalModel.logits

        def logits(model, tokens, keep, **given):
            self.see(tokens.numel(), most if tokens.shape[0] <= rows else 0)
            return original(model, tokens, keep, **given)

        monkeypatch.setattr(CausalModel, "logits", logits)
        encdec_pass = EncoderDecoderBackend._pass

        def decoded(way, tokens, read, *given, **how):
            self.see(tokens.numel() + read.last_hidden_state.shape[:2].numel(), most)
            return encdec_pass(way, tokens, read, *given, **how)

        monkeypatch.setattr(EncoderDecoderBackend, "_pass", decoded)

    def see(self, size: int, most: int) -> None:
        if size > most:
            self.refused += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")


@pytest.mark.parametrize(
    "name",
    ["Llama", "T5", *(pytest.param(name, marks=pytest.mark.full) for name in ("Bloom", "Mamba", "Rwkv"))],
)
def test_on_every_way_memory_that_runs_out_halves_what_is_computed_at_once(
    tmp_path, local, monkeypatch, name
):
    path, settings = ("batched", T5) if name == "T5" else FAMILIES[name]
    checkpoint(tmp_path, name, settings)
    requests = scored_and_written(18)
    exact = answers_of(local(tmp_path, determinism="exact"), requests)
    engine = local(tmp_path, token_budget=2048)
    list(engine.answer(requests[:1]))
    tokens = [engine.wording.tokens(one) for one in requests]
    longest = max(len(one.source or one.ids) for one in tokens)
    small = Small(monkeypatch, longest + (200 if name == "T5" else 8), rows=5)
    for key, reply in answers_of(engine, requests).items():
        assert (reply.status in ("answered", "truncated"), reply.path) == (True, path)
        assert reply.text == exact[key].text
        expected = exact[key].label_logprobs or {}
        assert (reply.label_logprobs or {}) == pytest.approx(expected, abs=1e-3 if name == "T5" else 1e-4)
    assert small.refused and engine.budget.tokens < 2048


def test_a_row_that_never_fits_gets_an_error_and_the_rest_go_on(plain_model, local, monkeypatch):
    engine = local(plain_model)
    list(engine.answer(requests_of(1)))
    long = ask("long", "engine jumps all night " * 40, labels=("A", "B"), before="")
    original = Branches.attend

    def narrow(self, *given):
        if self.start + len(self.positions) > 160:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, *given)

    monkeypatch.setattr(Branches, "attend", narrow)
    found = answers_of(engine, [*requests_of(12), long])
    assert found["long"].status == "error" and "memory" in found["long"].error
    assert {reply.status for key, reply in found.items() if key != "long"} == {"answered"}
    assert engine.budget.tokens > LEAST_TOKENS, "the budget is not that of the row that did not fit"


def test_a_way_that_fails_under_way_is_changed_and_the_change_recorded(plain_model, local, monkeypatch):
    exact = answers_of(local(plain_model, determinism="exact"), requests_of(10, labels=None, max_tokens=5))
    engine = local(plain_model)
    list(engine.answer(requests_of(3)))
    assert engine.describe()["parity"]["path"] == "packed"

    def refuse(self, *given):
        raise NotUnderstood("attention that continues is not known here")

    monkeypatch.setattr(Continuations, "attend", refuse)
    found = answers_of(engine, requests_of(10, labels=None, max_tokens=5))
    assert {key: reply.text for key, reply in found.items()} == {
        key: reply.text for key, reply in exact.items()
    }
    assert {reply.path for reply in found.values()} == {"expanded"}
    parity = engine.describe()["parity"]
    assert parity["path"] == "expanded"
    (change,) = parity["changes"]
    assert (change["from"], change["to"]) == ("packed", "expanded")
    assert change["why"] == "NotUnderstood: attention that continues is not known here"
    assert change["max_abs_difference"] < 1e-4, "the next way is checked too before it is taken"


def test_a_row_that_no_way_can_compute_gets_an_error_and_the_rest_go_on(plain_model, local, monkeypatch):
    engine = local(plain_model)
    list(engine.answer(requests_of(1)))
    bad = engine.wording.tokens(ask("bad", "unscramble zzz", labels=("A", "B"))).ids[-1]
    original = CausalModel.logits

    def broken(self, tokens, keep, **given):
        if (tokens == bad).any():
            raise IndexError("index out of range in self")
        return original(self, tokens, keep, **given)

    monkeypatch.setattr(CausalModel, "logits", broken)
    found = answers_of(engine, [*requests_of(6), ask("bad", "unscramble zzz", labels=("A", "B"))])
    assert found["bad"].status == "error" and "index out of range" in found["bad"].error
    assert {reply.status for key, reply in found.items() if key != "bad"} == {"answered"}


def test_an_engine_closed_under_way_ends_after_what_is_finished(plain_model, local):
    engine = local(plain_model, token_budget=40)
    replies = engine.answer(requests_of(40))
    first = next(replies)
    engine.close()
    assert first.status == "answered"
    assert len(list(replies)) == 0


def test_closing_ends_a_generation_between_two_tokens(plain_model, local, monkeypatch):
    engine = local(plain_model)
    list(engine.answer(requests_of(1)))
    engine._load().ends = set()
    original, steps = Continuations.attend, []

    def counted(self, *given):
        steps.append(1)
        if len(steps) == 6:
            engine.close()
        return original(self, *given)

    monkeypatch.setattr(Continuations, "attend", counted)
    assert list(engine.answer([ask("k", "The dog", max_tokens=100)])) == []
    assert len(steps) < 10


def test_a_prompt_that_is_empty_is_an_error_of_its_own(tmp_path, local):
    from tests.experiment.models.tiny_models import tiny_llama

    engine = local(tiny_llama(tmp_path, adds_bos=False))
    empty = Request("empty", (Message("user", ""),), ("A", "B"), 1, 0.0, 1)
    found = answers_of(engine, [empty, *requests_of(2)])
    assert found["empty"].status == "error" and found["0"].status == "answered"


def test_a_check_that_runs_out_of_memory_is_made_with_less(plain_model, local, monkeypatch):
    original = CausalModel.logits

    def narrow(self, tokens, keep, **given):
        if tokens.shape[1] > 40:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(self, tokens, keep, **given)

    monkeypatch.setattr(CausalModel, "logits", narrow)
    engine = local(plain_model)
    assert {reply.status for reply in answers_of(engine, requests_of(8)).values()} == {"answered"}
    assert engine.describe()["parity"]["path"] == "packed"
