"""Which way is taken for each family of models, and that its numbers are those of full passes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from experiment.models import Message, Request
from experiment.models.engine import Span
from stimuli.errors import UserError
from tests.experiment.models import tiny_models
from tests.experiment.models.tiny_models import (
    FAMILIES,
    HEADS,
    SEES,
    SMALL,
    T5,
    TEXTS,
    byte_pair_tokenizer,
    checkpoint,
    scored_and_written,
)

torch = pytest.importorskip("torch")


def held_against_full_passes(engine, model, requests: list[Request]) -> None:
    replies = {reply.work_key: reply for reply in engine.answer(requests)}
    for request in requests:
        tokens, reply = engine.wording.tokens(request), replies[request.work_key]
        assert reply.error is None
        if request.labels is None:
            ids = list(tokens.ids)
            for _ in range(request.max_tokens):
                with torch.no_grad():
                    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1]
                chosen = engine.wording.decode([*ids[len(tokens.ids) :], int(logits.argmax())])
                ids.append(int(logits.argmax()))
                if ids[-1] in engine._load().ends:
                    break
            assert reply.text == chosen
            continue
        for label in tokens.labels:
            with torch.no_grad():
                logprobs = (
                    model(input_ids=torch.tensor([label.ids]), use_cache=False).logits[0].log_softmax(-1)
                )
            expected = sum(
                logprobs[at - 1, label.ids[at]].item() for at in range(label.start, len(label.ids))
            )
            assert reply.label_logprobs[label.label] == pytest.approx(expected, abs=5e-4)


PLAINEST = (
    *("Llama", "Mixtral", "Gemma3Text", "GPT2", "OPT", "DeepseekV3"),
    *("GptOss", "Bloom", "Qwen3Next", "Mamba"),
)
"""One family of each kind of attention; their relatives are in the full suite."""


@pytest.mark.parametrize(
    "name", [name if name in PLAINEST else pytest.param(name, marks=pytest.mark.full) for name in FAMILIES]
)
def test_a_family_answers_as_its_own_full_passes_do(tmp_path, local, name):
    path, settings = FAMILIES[name]
    model = checkpoint(tmp_path, name, settings)
    engine = local(tmp_path)
    held_against_full_passes(engine, model, scored_and_written(6))
    said = engine.describe()["parity"]
    assert (said["path"], "changes" in said) == (path, False), said
    assert said["max_abs_difference"] < 3e-4
    order = ["packed", "expanded", "batched"]
    assert set(said["refused"]) <= set(order[: order.index(path)]), (
        "each faster way says why it was not taken"
    )
    assert path == "packed" or said["refused"]["packed"]
    if path != "batched":
        assert engine.describe()["tokens_forwarded"] < sum(
            len(engine.wording.tokens(request).ids) for request in scored_and_written(6)
        )


def test_a_model_that_also_sees_answers_from_text_alone(tmp_path, local):
    settings = {
        "text_config": {**SMALL, **HEADS, "sliding_window": 20},
        "vision_config": SEES,
        "mm_tokens_per_image": 4,
    }
    model = checkpoint(tmp_path, "Gemma3", settings)
    engine = local(tmp_path)
    held_against_full_passes(engine, model, scored_and_written(4))
    assert engine.describe()["parity"]["path"] == "packed"
    blocks = engine._load().layers()
    assert blocks[0] is engine._load().model.get_decoder().layers[0], "states are those of the text's blocks"


def test_a_model_that_is_only_known_as_one_that_sees_is_loaded_too(tmp_path, local):
    text = {**SMALL, "model_type": "qwen2"}
    settings = {
        "text_config": text,
        "vision_config": {**SEES, "model_type": "clip_vision_model"},
        "image_token_id": 5,
    }
    model = checkpoint(tmp_path, "Llava", settings)
    engine = local(tmp_path)
    held_against_full_passes(engine, model, scored_and_written(4))
    assert engine.describe()["parity"]["path"] == "packed"


ENCODED = {
    **{"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4},
    **{"decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": 400},
    **{"max_position_embeddings": 256, "init_std": 0.3, "decoder_start_token_id": 1, "pad_token_id": 1},
    **{"bos_token_id": 0, "eos_token_id": 1},
}
ENCODERS: dict[str, dict[str, object]] = {
    "T5": {**T5, "vocab_size": 384},
    "Bart": ENCODED,
    "M2M100": ENCODED,
    "T5Gemma": {
        "vocab_size": 400,
        "encoder": {**SMALL, **HEADS, "sliding_window": 20},
        "decoder": {**SMALL, **HEADS, "sliding_window": 20, "cross_attention_hidden_size": 32},
    },
}


@pytest.mark.parametrize(
    ("name", "first", "way"),
    [
        ("T5", None, "plain"),
        ("Bart", 7, "batched"),
        ("M2M100", None, "batched"),
        ("T5Gemma", None, "batched"),
    ],
)
def test_an_encoder_decoder_answers_as_its_own_forward_and_generate_do(tmp_path, local, name, first, way):
    from transformers import ByT5Tokenizer

    model = checkpoint(tmp_path, name, ENCODERS[name])
    if name == "T5":  # a tokenizer of bytes, which does not say which characters its tokens stand for
        (tmp_path / "tokenizer.json").unlink()
        ByT5Tokenizer().save_pretrained(str(tmp_path))
    model.generation_config.forced_bos_token_id = first
    model.generation_config.save_pretrained(str(tmp_path))
    engine = local(tmp_path, determinism="fast" if way == "batched" else "exact")
    begun = engine.wording.decoder_start
    assert begun[1:] == (() if first is None else (first,)), (
        "what a model is made to say first is no part of a label"
    )
    requests = [
        Request(f"{n}{kind}", (Message("user", text),), labels, 6, 0.0, 1)
        for n, text in enumerate(TEXTS)
        for kind, labels in (("c", ("yes", "of course not")), ("t", None))
    ]
    replies = {reply.work_key: reply for reply in engine.answer(requests)}
    assert engine.describe()["parity"]["path"] == way
    tokenizer = engine.wording.tokenizer
    for n, text in enumerate(TEXTS):
        given = {key: tokenizer(text, return_tensors="pt")[key] for key in ("input_ids", "attention_mask")}
        for label in ("yes", "of course not"):
            ids = [*begun, *tokenizer(label, add_special_tokens=False)["input_ids"]]
            with torch.no_grad():
                logprobs = model(**given, decoder_input_ids=torch.tensor([ids])).logits[0].log_softmax(-1)
            expected = sum(logprobs[at - 1, ids[at]].item() for at in range(len(begun), len(ids)))
            assert replies[f"{n}c"].label_logprobs[label] == pytest.approx(expected, rel=2e-6, abs=5e-4)
        whole = model.generate(
            **given, max_new_tokens=len(begun) + 5, do_sample=False, num_beams=1, forced_eos_token_id=None
        )
        expected_text = tokenizer.decode(whole[0, len(begun) : len(begun) + 6], skip_special_tokens=True)
        assert replies[f"{n}t"].text == expected_text


SHORT, LONG = "Teh dgo barks.", "The quick borwn fox jumps over the lazy dog. " * 12
BART = {**ENCODED, "forced_eos_token_id": None, "max_position_embeddings": 96}
ENCODER_DECODERS: dict[str, dict[str, object]] = {
    **dict.fromkeys(("Bart", "Marian"), BART),
    "LED": {
        **BART,
        "attention_window": 8,
        "max_encoder_position_embeddings": 96,
        "max_decoder_position_embeddings": 96,
    },
}


def ask(key: str, text: str, labels: tuple[str, ...] | None = None, *, max_tokens: int = 8):
    return tiny_models.ask(key, text, labels=labels, max_tokens=max_tokens, before="")


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_a_text_beyond_an_encoders_positions_is_refused_and_the_others_go_the_fast_way(name, local, tmp_path):
    checkpoint(tmp_path, name, ENCODER_DECODERS[name])
    engine = local(tmp_path)
    requests = [
        ask(str(n), (LONG if n % 2 else SHORT) + " Does it bark?" * n, ("yes", "no")) for n in range(6)
    ]
    replies = {reply.work_key: reply for reply in engine.answer(requests)}
    for n in range(6):
        count = len(engine.wording.tokens(requests[n]).source)
        if n % 2:
            assert replies[str(n)].status == "error"
            assert re.search(rf"\b{count}\b.*\b96$", replies[str(n)].error)
        else:
            assert count < 96 and replies[str(n)].status == "answered"
    assert engine.describe()["parity"]["path"] == "batched"


def test_an_encoder_decoder_has_no_surprisal_and_refuses_a_longer_answer_than_it_writes(local, tmp_path):
    checkpoint(tmp_path, "Bart", BART)
    engine = local(tmp_path)
    regions, states = (Span(0, 0, 3),), ("last",)
    (scored,) = engine.answer([replace(ask("k", SHORT, ("yes", "no")), regions=regions, states=states)])
    assert (scored.status, scored.regions, scored.states, scored.surprisal) == ("answered", (), (), None)
    assert "encoder" in engine.describe()["surprisal"]
    fits, longer = (ask(str(most), SHORT, max_tokens=most) for most in (95, 96))
    replies = {reply.work_key: reply for reply in engine.answer([fits, longer])}
    assert replies["95"].status in ("answered", "truncated", "empty") and replies["95"].error is None
    assert re.search(r"\b97\b.*\b96\b.*max_tokens", replies["96"].error)


@pytest.mark.parametrize(
    ("name", "settings", "determinism"),
    [
        ("Bert", {}, "fast"),
        ("Roberta", {"pad_token_id": 1}, "exact"),
        ("XLNet", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}, "fast"),
    ],
)
def test_a_model_that_sees_the_tokens_behind_is_refused(local, tmp_path, name, settings, determinism):
    small: dict[str, object] = {"vocab_size": 400, "initializer_range": 0.3}
    if name != "XLNet":
        small |= {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 64,
        }
    checkpoint(tmp_path, name, {**small, **settings})
    engine = local(tmp_path, determinism=determinism)
    with pytest.raises(UserError, match=rf"\({name}\w+\) sees the tokens that come behind"):
        list(engine.answer([ask("k", SHORT, ("yes", "no"))]))


def test_check_names_texts_longer_than_an_encoder_reads(tmp_path):
    from transformers import BartConfig

    from tests.experiment.models.test_checking import checked, one, written

    settings = BART
    for folder, most in ((tmp_path / "short", 16), (tmp_path / "long", 400)):
        BartConfig(**{**settings, "max_position_embeddings": most}).save_pretrained(str(folder))
        byte_pair_tokenizer(folder, template=None, adds_bos=True)
        gaps = " ".join(checked(written(tmp_path / f"s{most}", one(f"hf:{folder}")))["gaps"])
        assert ("16 tokens" in gaps) == (most == 16)
