"""Generated text of the local engine: greedy equals transformers' own, sampling is each request's own."""

from __future__ import annotations

import pytest

from tests.experiment.models.tiny_models import ask

torch = pytest.importorskip("torch")


TEXTS = ["Teh dgo barks.", "The dog", "reads every word of the", "garden", "Which group does the fox", "B"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_does_not_depend_on_what_is_asked_beside_it(plain_model, local, temperature):
    requests = [
        ask(str(n), text, max_tokens=10, temperature=temperature, seed=n) for n, text in enumerate(TEXTS * 2)
    ]
    together = {reply.work_key: reply.text for reply in local(plain_model).answer(requests)}
    backwards = {reply.work_key: reply.text for reply in local(plain_model).answer(requests[::-1])}
    alone = {}
    for request in requests:
        alone.update({reply.work_key: reply.text for reply in local(plain_model).answer([request])})
    assert together == backwards == alone


def test_sampling_follows_the_models_distribution(plain_model, local):
    engine = local(plain_model)
    engine._load()
    ids = engine.wording.tokens(ask("k", "The dog")).ids
    with torch.no_grad():
        probability = engine._load().model(torch.tensor([ids])).logits[0, -1].softmax(-1)
    best = int(probability.argmax())
    requests = [ask(str(n), "The dog", max_tokens=1, temperature=1.0, seed=n) for n in range(600)]
    hits = sum(reply.text == engine.wording.decode([best]) for reply in engine.answer(requests))
    expected = float(probability[best])
    assert abs(hits / 600 - expected) < 5 * (expected * (1 - expected) / 600) ** 0.5


def test_a_stop_text_ends_the_answer_and_is_left_out(plain_model, local):
    engine = local(plain_model)
    (whole,) = engine.answer([ask("k", "Teh dgo", max_tokens=12)])
    stop = whole.text[4:6]
    (reply,) = engine.answer([ask("k", "Teh dgo", max_tokens=12, stop=(stop,))])
    assert reply.text == whole.text[: whole.text.index(stop)]
    assert (reply.status, reply.finish_reason) == ("answered", "stop")
    assert reply.completion_tokens < 12
