"""The stored demo model loads like any other, reads what its card says, and was trained on other words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.demo.training.__main__ import model_card
from experiment.demo.training.network import TEMPLATE_FILE, build_network, build_tokenizer, prompt_for
from experiment.demo.training.recipe import RECIPE_FILE, ExampleSource, read_recipe, split_words, words_sha256

torch = pytest.importorskip("torch")

MODEL = Path(__file__).parents[2] / "experiment" / "demo" / "model"
TRAINING_WORDS = (
    "after again before children country different family garden government history interest "
    "language large member music national nothing people public question school several "
    "system table together water without world young"
)
LIGHT = ("intact", "internal_transposition", "final_transposition", "adjacent_transposition")


@pytest.fixture(scope="module", autouse=True)
def offline() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(MODEL)


@pytest.fixture(scope="module")
def network() -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()


@pytest.fixture(scope="module")
def metrics() -> Any:
    return json.loads((MODEL / "metrics.json").read_text(encoding="utf-8"))


def test_weights_are_bfloat16_and_under_four_megabytes():
    from safetensors import safe_open

    assert (MODEL / "model.safetensors").stat().st_size < 4_000_000
    with safe_open(MODEL / "model.safetensors", "pt") as stored:
        assert {stored.get_tensor(name).dtype for name in stored.keys()} == {torch.bfloat16}  # noqa: SIM118


@settings(max_examples=200, deadline=None)
@given(text=st.text())
def test_any_unicode_text_comes_back_from_the_tokenizer(tokenizer, text):
    numbers = tokenizer(text)["input_ids"]
    assert numbers[0] == tokenizer.bos_token_id
    assert len(numbers) == 1 + len(text.encode("utf-8"))
    assert tokenizer.decode(numbers, skip_special_tokens=True) == text


def test_held_out_words_are_those_of_the_card_and_training_never_draws_them():
    split = split_words(read_recipe())
    metrics = json.loads((MODEL / "metrics.json").read_text(encoding="utf-8"))
    assert words_sha256(split.held_out) == metrics["training"]["held_out_sha256"]
    assert not set(split.held_out) & set(split.training)
    assert len(split.held_out) + len(split.training) == 20_000
    drawn = {example.word for step in range(20) for example in _source().batch(step)}
    assert drawn and not drawn & set(split.held_out)


def test_the_words_of_the_demonstration_are_held_out_words():
    study = Path(MODEL).parent / "study"
    words = [
        line.split(",")[0] for line in (study / "words.csv").read_text(encoding="utf-8").splitlines()[1:]
    ]
    assert len(words) >= 32
    assert set(words) <= set(split_words(read_recipe()).held_out)


def _source() -> ExampleSource:
    recipe = read_recipe()
    return ExampleSource(recipe, split_words(recipe).training)


def test_greedy_answers_restore_training_words_that_are_intact_or_lightly_scrambled(network, tokenizer):
    from experiment.demo.training.network import greedy_answers, scrambled_once

    words = TRAINING_WORDS.split()
    assert set(words) <= set(split_words(read_recipe()).training)
    examples = [example for kind in LIGHT for example in scrambled_once(words, kind)]
    answers = greedy_answers(network, tokenizer, examples)
    restored = [answer == example.word for answer, example in zip(answers, examples, strict=True)]
    assert sum(restored) / len(restored) >= 0.85


def test_log_probabilities_are_those_of_a_letter_by_letter_reading(network, tokenizer):
    from experiment.demo.training.network import log_probabilities
    from experiment.demo.training.recipe import Example

    prompt = tokenizer(prompt_for("gadren"))["input_ids"]
    total = 0.0
    for number in tokenizer(" warden", add_special_tokens=False)["input_ids"]:
        with torch.inference_mode():
            logits = network(torch.tensor([prompt])).logits[0, -1]
        total += float(logits.log_softmax(-1)[number])
        prompt.append(number)
    [value] = log_probabilities(network, tokenizer, [Example("gadren", "garden")], ["warden"])
    assert value == pytest.approx(total, abs=1e-4)


def test_training_twice_from_one_seed_gives_the_same_weights():
    def weights(seed: int) -> dict[str, Any]:
        from experiment.demo.training.network import train

        recipe = replace(read_recipe(), seed=seed, width=32, heads=2, inner_width=64, depth=2, batch=16)
        tokenizer = build_tokenizer()
        network = build_network(recipe, tokenizer)
        losses = train(network, tokenizer, recipe, ExampleSource(recipe, words), 2, lambda step, loss: None)
        assert len(losses) == 2
        return dict(network.state_dict())

    words = split_words(read_recipe()).training
    first, again, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


def test_the_stored_model_carries_the_recipe_and_template_of_the_training_code(tokenizer, metrics):
    assert (MODEL / "recipe.json").read_bytes() == RECIPE_FILE.read_bytes()
    assert metrics["training"]["steps"] == read_recipe().steps
    assert tokenizer.chat_template == TEMPLATE_FILE.read_text(encoding="utf-8")


def test_the_card_states_the_measured_numbers_and_their_limits(metrics):
    card = (MODEL / "README.md").read_text(encoding="utf-8")
    assert card == model_card(metrics)
    full = metrics["held_out"]["exact"]["full"]
    assert f"| full | {full['proportion']:.3f} [{full['ci_low']:.3f}, {full['ci_high']:.3f}] |" in card
