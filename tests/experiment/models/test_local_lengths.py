"""Requests longer than a model takes are refused by their number of tokens, and models that see what comes behind at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from stimuli.errors import UserError
from tests.experiment.models import tiny_models
from tests.experiment.models.tiny_models import byte_pair_tokenizer

torch = pytest.importorskip("torch")

SHORT, LONG = "Teh dgo barks.", "The quick borwn fox jumps over the lazy dog. " * 12
_BART = {
    **{"vocab_size": 400, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "init_std": 0.3},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64},
    **{"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1, "decoder_start_token_id": 1, "forced_eos_token_id": None},
}  # fmt: skip
ENCODER_DECODERS = {
    "bart": ("BartConfig", "BartForConditionalGeneration", {**_BART, "max_position_embeddings": 96}),
    "mbart": ("MBartConfig", "MBartForConditionalGeneration", {**_BART, "max_position_embeddings": 96}),
    "marian": ("MarianConfig", "MarianMTModel", {**_BART, "max_position_embeddings": 96}),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", {**_BART, "max_position_embeddings": 96}),
    "led": (
        "LEDConfig",
        "LEDForConditionalGeneration",
        {**_BART, "attention_window": 8, "max_encoder_position_embeddings": 96, "max_decoder_position_embeddings": 96},
    ),
}  # fmt: skip


def ask(key: str, text: str, labels: tuple[str, ...] | None = None, *, max_tokens: int = 8):
    return tiny_models.ask(key, text, labels=labels, max_tokens=max_tokens, before="")


def saved(folder: Path, config: str, model: str, settings: dict[str, object]) -> Path:
    import transformers

    byte_pair_tokenizer(folder, template=None, adds_bos=True)
    torch.manual_seed(0)
    made = getattr(transformers, config)(**settings)
    getattr(transformers, model)(made).save_pretrained(str(folder))
    return folder


@pytest.mark.parametrize("name", ENCODER_DECODERS)
def test_a_text_beyond_an_encoders_positions_is_refused_and_the_others_go_the_fast_way(name, local, tmp_path):
    engine = local(saved(tmp_path, *ENCODER_DECODERS[name]))
    requests = [
        ask(str(n), (LONG if n % 2 else SHORT) + " Does it bark?" * n, ("yes", "no")) for n in range(6)
    ]
    replies = {reply.work_key: reply for reply in engine.answer(requests)}
    for n in range(6):
        count = len(engine.wording.tokens(requests[n]).source)
        if n % 2:
            said = f"the prompt takes {count} tokens, and the model reads at most 96"
            assert (replies[str(n)].status, replies[str(n)].error) == ("error", said)
        else:
            assert count < 96 and replies[str(n)].status == "answered"
    assert engine.describe()["parity"]["path"] == "batched"


def test_an_answer_longer_than_a_decoder_writes_is_refused_with_the_way_out(local, tmp_path):
    config, model, settings = ENCODER_DECODERS["bart"]
    engine = local(saved(tmp_path, config, model, settings))
    fits, longer = (ask(str(most), SHORT, max_tokens=most) for most in (95, 96))
    replies = {reply.work_key: reply for reply in engine.answer([fits, longer])}
    assert replies["95"].status in ("answered", "truncated", "empty") and replies["95"].error is None
    assert "may take 97 tokens, and the model writes at most 96; a lower max_tokens" in replies["96"].error


@pytest.mark.parametrize(
    ("config", "model", "more"),
    [
        ("BertConfig", "BertLMHeadModel", {}),
        ("RobertaConfig", "RobertaForCausalLM", {"pad_token_id": 1}),
        ("XLNetConfig", "XLNetLMHeadModel", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
    ],
)
@pytest.mark.parametrize("determinism", ["fast", "exact"])
def test_a_model_that_sees_the_tokens_behind_is_refused(local, tmp_path, config, model, more, determinism):
    small = {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    settings = {**small, "intermediate_size": 64, "initializer_range": 0.3, **more}
    if config == "XLNetConfig":
        settings = {"vocab_size": 400, "initializer_range": 0.3, **more}
    engine = local(saved(tmp_path, config, model, settings), determinism=determinism)
    with pytest.raises(UserError, match=f"{model}.* sees the tokens that come behind"):
        list(engine.answer([ask("k", SHORT, ("yes", "no"))]))


def test_check_names_texts_longer_than_an_encoder_reads(tmp_path):
    from transformers import BartConfig

    from tests.experiment.models.test_checking import checked, one, written

    settings = ENCODER_DECODERS["bart"][2]
    for folder, most in ((tmp_path / "short", 16), (tmp_path / "long", 400)):
        BartConfig(**{**settings, "max_position_embeddings": most}).save_pretrained(str(folder))
        byte_pair_tokenizer(folder, template=None, adds_bos=True)
        gaps = " ".join(checked(written(tmp_path / f"s{most}", one(f"hf:{folder}")))["gaps"])
        assert ("longer than the 16 tokens that it reads: such trials get no answer" in gaps) == (most == 16)
