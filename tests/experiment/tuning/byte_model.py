"""A network of one layer over bytes with random weights: small enough to learn a rule of letters within a minute."""

from __future__ import annotations

from pathlib import Path


def byte_model(folder: Path) -> None:
    """Save it, with its tokenizer, as transformers does."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from experiment.demo.training.network import build_tokenizer

    tokenizer = build_tokenizer()
    tokenizer.chat_template = None
    tokenizer.save_pretrained(str(folder))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        initializer_range=0.1,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    LlamaForCausalLM(config).save_pretrained(str(folder))
