"""The same claims on a CUDA device, in 32 and 16 bits; skipped where there is none."""

from __future__ import annotations

import pytest

from tests.experiment.models.tiny_models import scored_and_written

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is no CUDA device on this machine"
)


def test_numbers_on_a_gpu_are_those_of_plain_passes_on_the_cpu(plain_model, local):
    there = local(plain_model, device="cuda", dtype="float32")
    here = local(plain_model, device="cpu", determinism="exact")
    found = {reply.work_key: reply for reply in there.answer(scored_and_written(20))}
    assert there.describe()["parity"]["path"] == "packed"
    for reply in here.answer(scored_and_written(20)):
        if reply.label_logprobs is not None:
            assert found[reply.work_key].label_logprobs == pytest.approx(reply.label_logprobs, abs=2e-3)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_16_bits_on_a_gpu_take_the_fast_way(plain_model, local, dtype):
    engine = local(plain_model, device="cuda", dtype=dtype)
    replies = list(engine.answer(scored_and_written(20)))
    assert {reply.status for reply in replies} <= {"answered", "truncated"}
    assert engine.describe()["parity"]["path"] == "packed"


def test_exact_holds_on_a_gpu(plain_model, local):
    from tests.experiment.models.test_local_settings import computed_apart

    assert computed_apart(local, plain_model, "exact", device="cuda") == (0, 0)


def test_memory_of_a_gpu_that_runs_out_halves_the_budget(plain_model, local):
    engine = local(plain_model, device="cuda")
    list(engine.answer(scored_and_written(1)))
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(max(2**27 / total, 1e-3))
    try:
        replies = list(engine.answer(scored_and_written(200)))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert {reply.status for reply in replies} <= {"answered", "truncated"}


def test_times_on_a_gpu_end_when_its_work_is_done(plain_model, local):
    engine = local(plain_model, device="cuda", timing=True)
    for reply in engine.answer(scored_and_written(5)):
        assert reply.latency_ms > 0
