"""Tiny random models with real tokenizers, written as checkpoints that the engine loads like any other."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiment.models import Message, Request

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}{{ eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
CORPUS = [
    "Teh dgo barks. Does it bark? Answer yes or no, of course not: unscramble the word garden.",
    "The quick brown fox jumps over the lazy dog and reads every word of the sentence again.",
    "Which group does the sentence belong to? A or B? engine jumps all night aCcurately.",
] * 20


@pytest.fixture(scope="module", autouse=True)
def short_collections() -> Iterator[None]:
    """Limit explicit garbage collections to young objects: a whole suite has a million old ones.

    When memory runs out, a model collects garbage at each attempt.
    """
    whole = gc.collect
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gc, "collect", lambda generation=1: whole(generation))
        yield


def byte_pair_tokenizer(folder: Path, *, template: str | None, adds_bos: bool) -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if adds_bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
        )
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    if template is not None:
        fast.chat_template = template
    fast.save_pretrained(str(folder))


def tiny_llama(
    folder: Path, *, template: str | None = None, adds_bos: bool = True, seed: int = 0, **more: object
) -> Path:
    """Write a random Llama model with a tokenizer beside it; other sizes than the usual ones are named."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    byte_pair_tokenizer(folder, template=template, adds_bos=adds_bos)
    torch.manual_seed(seed)
    usual = {name: value for name, value in SMALL.items() if name != "pad_token_id"}
    config = LlamaConfig(**{**usual, "num_hidden_layers": 2, **more})
    LlamaForCausalLM(config).save_pretrained(str(folder))
    return folder


INSTRUCTIONS = (
    "Which group does the sentence belong to? Answer A or B. engine jumps all night aCcurately. " * 2
)


def ask(
    key: str,
    text: str,
    *,
    labels: tuple[str, ...] | None = None,
    max_tokens: int = 8,
    temperature: float = 0.0,
    seed: int = 1,
    stop: tuple[str, ...] = (),
    before: str = INSTRUCTIONS,
) -> Request:
    return Request(key, (Message("user", before + text),), labels, max_tokens, temperature, seed, stop)


TEXTS = ["Teh dgo barks.", "The quick borwn fox.", "every wrod of the sentence again", "yes", "engine jumps"]


def requests_of(count: int, **more: Any) -> list[Request]:
    """Return requests for choices between labels of one and of several tokens."""
    return [
        ask(str(n), f"{n} {TEXTS[n % 5]}", **{"labels": ("A", "of course"), **more}) for n in range(count)
    ]


def scored_and_written(count: int) -> list[Request]:
    """Return as many requests for a choice as for a text."""
    scored = requests_of(count)
    return [*scored, *(replace(one, work_key=f"t{one.work_key}", labels=None) for one in scored)]


SMALL = {
    **{"vocab_size": 400, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512},
    **{"initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1},
}
HEADS = {"head_dim": 8}
EXPERTS = {
    **{"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    **{"shared_expert_intermediate_size": 32, "n_routed_experts": 4, "n_shared_experts": 1},
    **{"num_local_experts": 4, "norm_topk_prob": True, "first_k_dense_replace": 1},
    **{"n_group": 1, "topk_group": 1},
}
BY_LAYER = {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 400}
MIXED = {"attn_layer_period": 3, "attn_layer_offset": 1, "mamba_d_state": 8, "use_mamba_kernels": False}
LATENT = {
    **{"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8},
    "num_key_value_heads": 4,
}
LINEAR = {
    **{"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8},
    **{"linear_value_head_dim": 8, "layer_types": ["linear_attention", "linear_attention", "full_attention"]},
}
STATES = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_ssm": 64, "mamba_d_state": 8, "mamba_n_groups": 1}
GPT = {
    **{"vocab_size": 400, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 512, "rotary_dim": 4},
    **{"initializer_range": 0.3, "bos_token_id": 0, "eos_token_id": 1},
}
T5 = {
    **{"vocab_size": 400, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    **{"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1, "initializer_factor": 3.0},
}
SEES = {
    **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4},
    **{"image_size": 28, "patch_size": 14},
}

FAMILIES: dict[str, tuple[str, dict[str, object]]] = {
    "Llama": ("packed", SMALL),
    "Mistral": ("packed", {**SMALL, "sliding_window": 20}),
    "Mixtral": ("packed", {**SMALL, **EXPERTS}),
    "Qwen3": ("packed", {**SMALL, **HEADS}),
    "Qwen3Moe": ("packed", {**SMALL, **HEADS, **EXPERTS}),
    "Gemma2": ("packed", {**SMALL, **HEADS, "sliding_window": 20}),
    "Gemma3Text": ("packed", {**SMALL, **HEADS, "sliding_window": 20}),
    "Gemma4Text": ("packed", {**SMALL, **HEADS, "sliding_window": 20, **BY_LAYER}),
    "GPT2": ("packed", GPT),
    "GPTNeoX": ("packed", SMALL),
    "OPT": ("packed", {**SMALL, "ffn_dim": 64, "word_embed_proj_dim": 32, "init_std": 0.3}),
    "Phi3": ("packed", SMALL),
    "Olmo2": ("packed", SMALL),
    "Cohere2": ("packed", {**SMALL, "sliding_window": 20}),
    "Glm4": ("packed", {**SMALL, **HEADS}),
    "DeepseekV3": ("packed", {**SMALL, **EXPERTS, **LATENT}),
    "GptOss": ("packed", {**SMALL, **HEADS, **EXPERTS, "sliding_window": 20}),
    "Bloom": ("expanded", {**GPT, "hidden_size": 32}),
    "Mpt": ("expanded", {"vocab_size": 400, "d_model": 32, "n_heads": 4, "n_layers": 3, "max_seq_len": 512}),
    "Falcon": ("expanded", {**SMALL, "alibi": False}),
    "GPTJ": ("expanded", GPT),
    "Lfm2": ("expanded", {**SMALL, "layer_types": ["conv", "conv", "full_attention"], "conv_L_cache": 3}),
    "Qwen3Next": ("expanded", {**SMALL, **HEADS, **EXPERTS, **LINEAR}),
    "FalconH1": ("expanded", {**SMALL, **STATES}),
    "Mamba2": ("expanded", {**SMALL, "num_heads": 8, "head_dim": 8, "state_size": 8, "n_groups": 1}),
    "Mamba": ("batched", {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 3, "state_size": 8}),
    "Jamba": ("batched", {**SMALL, **EXPERTS, **MIXED}),
    "Rwkv": (
        "batched",
        {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 3, "context_length": 512},
    ),
}


def checkpoint(folder: Path, name: str, settings: dict[str, object]):
    """Write a random model of a family with a tokenizer beside it, and return it as transformers has it."""
    byte_pair_tokenizer(folder, template=None, adds_bos=True)
    model = _made(name, settings)
    model.save_pretrained(str(folder))
    return model


def tiny_family(name: str):
    """A random model of one family of attention, ready to compute."""
    return _made(name, FAMILIES[name][1]).requires_grad_(False)


def _made(name: str, settings: dict[str, object]):
    import torch
    import transformers

    from experiment.models.local.checkpoints import kind_of

    config = getattr(transformers, f"{name}Config")(**settings)
    torch.manual_seed(0)
    return kind_of(config).from_config(config).eval()
