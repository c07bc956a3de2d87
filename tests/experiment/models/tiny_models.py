"""Tiny random models with real tokenizers, written as checkpoints that the engine loads like any other."""

from __future__ import annotations

from pathlib import Path

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


def tiny_llama(folder: Path, *, template: str | None = None, adds_bos: bool = True, seed: int = 0) -> Path:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    byte_pair_tokenizer(folder, template=template, adds_bos=adds_bos)
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )
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


_SMALL = {
    "vocab_size": 400,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 512,
}
_GROUPED = {**_SMALL, "num_key_value_heads": 2, "initializer_range": 0.3}
_SLIDING = {**_GROUPED, "head_dim": 8, "sliding_window": 20}
_LATENT = {
    **{"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8},
    **{
        "n_routed_experts": 4,
        "n_group": 1,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
    },
    **{"first_k_dense_replace": 1, "num_key_value_heads": 4},
}
_GPT = {
    "vocab_size": 400,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    "n_positions": 512,
    "initializer_range": 0.3,
}
FAMILIES: dict[str, tuple[str, str, dict[str, object]]] = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", _GROUPED),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**_GROUPED, "sliding_window": 20}),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {**_GROUPED, "head_dim": 8}),
    "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", _SLIDING),
    "gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM", _SLIDING),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", _GPT),
    "neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", {**_SMALL, "initializer_range": 0.3}),
    "opt": (
        "OPTConfig",
        "OPTForCausalLM",
        {
            **{key: value for key, value in _SMALL.items() if key != "intermediate_size"},
            **{"ffn_dim": 64, "init_std": 0.3, "word_embed_proj_dim": 32},
        },
    ),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", {**_GROUPED, "pad_token_id": 0}),
    "gptoss": ("GptOssConfig", "GptOssForCausalLM", {**_SLIDING, "num_local_experts": 4}),
    "deepseek": ("DeepseekV3Config", "DeepseekV3ForCausalLM", {**_GROUPED, **_LATENT}),
    "bloom": (
        "BloomConfig",
        "BloomForCausalLM",
        {"vocab_size": 400, "hidden_size": 32, "n_layer": 3, "n_head": 4},
    ),
    "falcon": (
        "FalconConfig",
        "FalconForCausalLM",
        {
            "vocab_size": 400,
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "alibi": False,
        },
    ),
    "mamba": (
        "MambaConfig",
        "MambaForCausalLM",
        {"vocab_size": 400, "hidden_size": 32, "num_hidden_layers": 2},
    ),
}


def tiny_family(name: str, seed: int = 0):
    """A random model of one family of attention, ready to compute."""
    import torch
    import transformers

    config, model, settings = FAMILIES[name]
    torch.manual_seed(seed)
    return (
        getattr(transformers, model)(getattr(transformers, config)(**settings)).eval().requires_grad_(False)
    )
