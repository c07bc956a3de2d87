"""Choices of the local engine against an independent, plain computation with transformers."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models.engine import disjoint_logprobs
from tests.experiment.models.tiny_models import CHAT_TEMPLATE, TEXTS, ask, tiny_llama

torch = pytest.importorskip("torch")

from experiment.models import Message, Request  # noqa: E402


@functools.cache
def loaded(folder: Path) -> tuple[Any, Any]:
    """A tokenizer and a model as transformers loads them."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return AutoTokenizer.from_pretrained(folder), model


def judged(folder: Path, text: str, label: str, *, bos: bool) -> float:
    """Log-probability of a label after a text: one full pass over one string, nothing of the engine."""
    tokenizer, model = loaded(folder)
    prompt = tokenizer(text, add_special_tokens=bos)["input_ids"]
    whole = tokenizer(text + label, add_special_tokens=bos)["input_ids"]
    start = next((i for i, (a, b) in enumerate(zip(prompt, whole, strict=False)) if a != b), len(prompt))
    with torch.no_grad():
        logprobs = model(torch.tensor([whole])).logits[0].log_softmax(-1)
    return sum(logprobs[i - 1, whole[i]].item() for i in range(start, len(whole)))


@pytest.mark.parametrize("labels", [("A", "B"), ("of course not", "yes", "zzyzx")])
def test_label_logprobs_of_a_chat_model_equal_a_plain_pass(chat_model, local, labels):
    tokenizer, _ = loaded(chat_model)
    requests = [
        Request(str(n), (Message("system", "Be brief."), Message("user", text)), labels, 4, 0.0, 1)
        for n, text in enumerate(TEXTS)
    ]
    replies = {reply.work_key: reply for reply in local(chat_model).answer(requests)}
    for request in requests:
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        expected = {label: judged(chat_model, text, label, bos=False) for label in labels}
        assert replies[request.work_key].label_logprobs == pytest.approx(expected, abs=1e-4)


def test_a_label_that_merges_with_the_end_of_the_prompt_is_scored_in_its_merged_form(plain_model, local):
    tokenizer, _ = loaded(plain_model)
    prompt, label = "unscramble the wo", "rd"
    apart = tokenizer(prompt)["input_ids"] + tokenizer(label, add_special_tokens=False)["input_ids"]
    assert tokenizer(prompt + label)["input_ids"] != apart, "the tokenizer must merge across the border here"
    request = Request("k", (Message("user", prompt),), (label,), 1, 0.0, 1)
    (reply,) = local(plain_model, leading_space=False).answer([request])
    assert reply.label_logprobs[label] == pytest.approx(
        judged(plain_model, prompt, label, bos=True), abs=1e-4
    )


def test_a_template_without_a_system_role_gets_the_system_text_in_the_first_turn(tmp_path, local):
    strict = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    engine = local(tiny_llama(tmp_path, template=strict + CHAT_TEMPLATE))
    request = Request("k", (Message("system", "Be brief."), Message("user", "yes?")), ("A", "B"), 1, 0.0, 1)
    text = engine.preview(request)["text"]
    assert "<|user|>\nBe brief.\n\nyes?" in text and "<|system|>" not in text
    assert engine.describe()["system_role"] == "joined to the first user message"


def test_a_label_that_begins_another_leaves_it_the_answers_that_go_on_to_it(plain_model, local):
    labels = ("of", "of course", "of course not", "garden")
    request = ask("1", "engine jumps", labels=labels)
    (reply,) = local(plain_model).answer([request])
    share = {
        label: math.exp(judged(plain_model, request.messages[0].content, " " + label, bos=True))
        for label in labels
    }
    wanted = share | {
        "of": share["of"] - share["of course"],
        "of course": share["of course"] - share["of course not"],
    }
    told = {label: math.exp(value) for label, value in reply.label_logprobs.items()}
    assert told == pytest.approx(wanted, rel=1e-4)
    assert reply.text == max(wanted, key=lambda label: wanted[label])


PATHS = {"agree": (1,), "agree strongly": (1, 2), "agree strongly now": (1, 2, 3), "agreeable": (4,)}


@given(st.lists(st.floats(0.01, 0.99), min_size=4, max_size=4))
def test_what_labels_share_is_counted_once(steps):
    first, second, third, other = steps
    shares = {
        "agree": first,
        "agree strongly": first * second,
        "agree strongly now": first * second * third,
        "agreeable": (1 - first) * other,
    }
    found = disjoint_logprobs({label: math.log(share) for label, share in shares.items()}, PATHS)
    total = sum(math.exp(value) for value in found.values())
    assert total == pytest.approx(first + shares["agreeable"], rel=1e-6)


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
