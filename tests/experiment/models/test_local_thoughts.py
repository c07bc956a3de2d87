"""Thoughts apart from answers, and labels scored behind a thought."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment.models import Message, Request
from experiment.models.local.tokens import Stops, Thoughts
from tests.experiment.models.tiny_models import CHAT_TEMPLATE, tiny_llama

torch = pytest.importorskip("torch")

from experiment.models.local.causal_model import CausalModel  # noqa: E402

THINKING = CHAT_TEMPLATE.replace(
    "<|assistant|>\n", "<|assistant|>\n{% if enable_thinking %}<think>\n{% endif %}"
)


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose template opens the thought, with marks of its own in the vocabulary."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tiny_llama(tmp_path_factory.mktemp("thinker"), template=THINKING)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    torch.manual_seed(1)
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(folder)
    return folder


def ask(key: str, labels=None, **more) -> Request:
    more = {"max_tokens": 12, "temperature": 0.0, "seed": 1, **more}
    return Request(key, (Message("user", f"Does the dog bark? {key}"),), labels, **more)


class Scripted:
    """Lets the engine's model say certain tokens, whatever it computes."""

    def __init__(self, engine, monkeypatch, ids: list[int]) -> None:
        list(engine.answer([ask("before", max_tokens=1)]))  # the way is chosen with the model's own choices
        self.given: dict[int, int] = {}

        def choose(logits, how, draws):
            chosen = []
            for one in draws:
                step = self.given.get(id(one), 0)
                self.given[id(one)] = step + 1
                self.draws.append(one)
                chosen.append(ids[step] if step < len(ids) else ids[-1])
            return chosen

        self.draws: list[object] = []
        monkeypatch.setattr("experiment.models.local.causal_model.choose", choose)


def ids_of(engine, text: str) -> list[int]:
    return engine.wording.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_thought_and_answer_are_kept_apart(thinker, local, monkeypatch):
    engine = local(thinker, thinking=True, determinism="exact")
    said = ids_of(engine, "the dog\n</think>\n\nyes")
    Scripted(engine, monkeypatch, [*said, 1])
    (reply,) = engine.answer([ask("k")])
    assert (reply.reasoning, reply.text, reply.status, reply.finish_reason) == (
        "the dog",
        "yes",
        "answered",
        "eos",
    )
    assert reply.reasoning_tokens == said.index(ids_of(engine, "</think>")[0]) + 1
    assert reply.completion_tokens == len(said) + 1


def test_a_thought_without_an_end_is_no_answer(thinker, local, monkeypatch):
    engine = local(thinker, thinking=True, determinism="exact")
    Scripted(engine, monkeypatch, ids_of(engine, "the dog and the fox and the word and the garden"))
    (reply,) = engine.answer([ask("k", max_tokens=6)])
    assert (reply.text, reply.status, reply.reasoning_tokens) == ("", "truncated", 6)
    assert reply.reasoning


@pytest.mark.parametrize("determinism", ["fast", "exact"])
def test_labels_are_scored_behind_the_thought(thinker, local, monkeypatch, determinism):
    engine = local(thinker, thinking=True, determinism=determinism)
    thought = ids_of(engine, "the dog\n</think>")
    Scripted(engine, monkeypatch, [*thought, *ids_of(engine, "of course")])
    (reply,) = engine.answer([ask("k", ("A", "of course"), also_text=True)])
    prompt = list(engine.wording.tokens(ask("k")).ids)
    for label in ("A", "of course"):
        own = ids_of(engine, "\n\n" + label)
        start = len(ids_of(engine, "\n\n"))
        ids = [*prompt, *thought, *own]
        with torch.no_grad():
            logprobs = engine._load().model(torch.tensor([ids])).logits[0].log_softmax(-1)
        first = len(prompt) + len(thought) + start
        expected = sum(logprobs[at - 1, ids[at]].item() for at in range(first, len(ids)))
        assert reply.label_logprobs[label] == pytest.approx(expected, abs=1e-4)
    assert (reply.reasoning, reply.reasoning_tokens, reply.status) == ("the dog", len(thought), "answered")
    assert reply.generated is not None and reply.text in ("A", "of course")


def test_sampled_thoughts_and_answers_do_not_depend_on_their_neighbours(thinker, local, monkeypatch):
    engine = local(thinker, thinking=True)
    end, original = ids_of(engine, "</think>")[0], CausalModel.logits

    def soon_at_an_end(self, *given, **how):
        logits = original(self, *given, **how)
        logits[..., end] += 6.0
        return logits

    monkeypatch.setattr(CausalModel, "logits", soon_at_an_end)
    asked = [
        ask(str(n), ("A", "of course"), also_text=True, temperature=1.0, seed=n, max_tokens=24)
        for n in range(12)
    ]

    def said(requests) -> dict[str, tuple[object, ...]]:
        return {one.work_key: (one.reasoning, one.generated, one.text) for one in engine.answer(requests)}

    together = said(asked)
    assert together == said(asked[::-1]) == {key: told for one in asked for key, told in said([one]).items()}
    assert len({thought for thought, _, _ in together.values()}) > 6
    assert len({answer for _, answer, _ in together.values()}) > 6


def test_a_model_told_not_to_think_is_scored_at_once(thinker, local):
    engine = local(thinker)
    (reply,) = engine.answer([ask("k", ("A", "B"))])
    assert (reply.completion_tokens, reply.reasoning, reply.status) == (0, None, "answered")


def test_thoughts_of_models_that_write_two_turns_are_found():
    class Spelled:
        all_special_tokens = ("<|channel|>", "<|message|>", "<|end|>", "<|start|>")
        chat_template = ""

        def get_added_vocab(self):
            return {}

        def decode(self, ids, **how):
            return "".join(ids)

    pieces = ["<|channel|>", "analysis", "<|message|>", "hm ", "so", "<|end|>", "<|start|>", "assistant"]
    pieces += ["<|channel|>", "final", "<|message|>", "yes"]
    plain = lambda ids: "".join(one for one in ids if not one.startswith("<|"))  # noqa: E731
    thoughts = Thoughts(Spelled(), plain)
    apart = thoughts.apart(pieces, opened=False)
    assert (apart.reasoning, apart.answer, apart.tokens) == ("hm so", "yes", len(pieces) - 1)
    stops = Stops(("so",), thoughts, plain, opened=False)
    assert [stops(pieces[: n + 1]) for n in range(len(pieces))] == [False] * len(pieces)
    assert Stops(("y",), thoughts, plain, opened=False)(pieces)
