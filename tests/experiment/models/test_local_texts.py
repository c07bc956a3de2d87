"""Generated text of the local engine: greedy equals transformers' own, sampling is each request's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiment.models.tiny_models import ask

torch = pytest.importorskip("torch")


TEXTS = ["Teh dgo barks.", "The dog", "reads every word of the", "garden", "Which group does the fox", "B"]


def generated(folder: Path, text: str, max_tokens: int) -> list[int]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    inputs = tokenizer(text, return_tensors="pt")
    found = model.generate(
        input_ids=inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        max_new_tokens=max_tokens,
        do_sample=False,
        pad_token_id=1,
    )
    return found[0, inputs["input_ids"].shape[1] :].tolist()


def test_greedy_text_equals_generate_of_transformers(plain_model, local) -> None:
    engine = local(plain_model)
    requests = [ask(str(n), text, max_tokens=12) for n, text in enumerate(TEXTS)]
    for reply in engine.answer(requests):
        expected = generated(plain_model, requests[int(reply.work_key)].messages[0].content, 12)
        assert reply.text == engine.wording.decode(expected)
        assert reply.completion_tokens == len(expected)
        assert reply.path == "packed"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_does_not_depend_on_what_is_asked_beside_it(plain_model, local, temperature) -> None:
    requests = [
        ask(str(n), text, max_tokens=10, temperature=temperature, seed=n) for n, text in enumerate(TEXTS * 2)
    ]
    together = {reply.work_key: reply.text for reply in local(plain_model).answer(requests)}
    backwards = {reply.work_key: reply.text for reply in local(plain_model).answer(requests[::-1])}
    alone = {}
    for request in requests:
        alone.update({reply.work_key: reply.text for reply in local(plain_model).answer([request])})
    assert together == backwards == alone


def test_sampled_answers_follow_the_seed_of_their_request(plain_model, local) -> None:
    requests = [ask(str(n), "The dog", max_tokens=8, temperature=1.0, seed=n) for n in range(12)]
    texts = [reply.text for reply in local(plain_model).answer(requests)]
    assert len(set(texts)) > 6
    same = [ask(str(n), "The dog", max_tokens=8, temperature=1.0, seed=7) for n in range(3)]
    assert len({reply.text for reply in local(plain_model).answer(same)}) == 1


def test_sampling_follows_the_models_distribution(plain_model, local) -> None:
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


def test_a_text_that_hits_the_limit_is_truncated(plain_model, local) -> None:
    (reply,) = local(plain_model).answer([ask("k", "Teh dgo", max_tokens=3)])
    assert (reply.status, reply.finish_reason, reply.completion_tokens) == ("truncated", "length", 3)


def test_a_stop_text_ends_the_answer_and_is_left_out(plain_model, local) -> None:
    engine = local(plain_model)
    (whole,) = engine.answer([ask("k", "Teh dgo", max_tokens=12)])
    stop = whole.text[4:6]
    (reply,) = engine.answer([ask("k", "Teh dgo", max_tokens=12, stop=(stop,))])
    assert reply.text == whole.text[: whole.text.index(stop)]
    assert (reply.status, reply.finish_reason) == ("answered", "stop")
    assert reply.completion_tokens < 12


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512}),
        ("Mistral", {"sliding_window": 24}),
        ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
        ("Mamba", {"hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}),
    ],
)
def test_other_families_answer_like_their_own_plain_passes(tmp_path, local, name, options) -> None:
    import transformers

    from tests.experiment.models.tiny_models import byte_pair_tokenizer

    byte_pair_tokenizer(tmp_path, template=None, adds_bos=True)
    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    small = {**small, "num_key_value_heads": 2} if name == "Mistral" else {}
    torch.manual_seed(3)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=400, initializer_range=0.3, bos_token_id=0, eos_token_id=1, **{**small, **options}
    )
    model = getattr(transformers, f"{name}{'LMHeadModel' if name == 'GPT2' else 'ForCausalLM'}")(
        config
    ).eval()
    model.save_pretrained(str(tmp_path))
    engine = local(tmp_path)
    requests = [ask(f"c{n}", text, labels=("A", "of course")) for n, text in enumerate(TEXTS)]
    requests += [ask(f"t{n}", text, max_tokens=6) for n, text in enumerate(TEXTS)]
    for reply in engine.answer(requests):
        request = next(one for one in requests if one.work_key == reply.work_key)
        tokens = engine.wording.tokens(request)
        if request.labels is None:
            ids = list(tokens.ids)
            for _ in range(6):
                with torch.no_grad():
                    ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
                if ids[-1] == 1:
                    break
            assert reply.text == engine.wording.decode(ids[len(tokens.ids) :])
            continue
        for label in tokens.labels:
            with torch.no_grad():
                logprobs = model(torch.tensor([list(label.ids)])).logits[0].log_softmax(-1)
            expected = sum(logprobs[i - 1, label.ids[i]].item() for i in range(label.start, len(label.ids)))
            assert reply.label_logprobs[label.label] == pytest.approx(expected, abs=1e-3)
    assert engine.describe()["parity"]["path"] == {"Mamba": "stepwise", "Bloom": "expanded"}.get(
        name, "packed"
    )
