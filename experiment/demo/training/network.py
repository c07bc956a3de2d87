"""The demo model's tokenizer (one token per byte) and its untrained network, as plain Hugging Face objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiment.demo.training.recipe import Recipe
from stimuli.seeds import stable_seed

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

TEMPLATE_FILE = Path(__file__).with_name("chat_template.jinja")
BOS, EOS, PAD = "<bos>", "<eos>", "<pad>"
LONGEST_CONTEXT = 2048


def prompt_for(shown: str) -> str:
    """Return the prompt, which the model should continue with a space, the word and a line end."""
    return f"Scrambled word: {shown}\nWord:"


def answer_for(word: str) -> str:
    """Return the continuation that the model is trained to give, up to the end-of-sequence token."""
    return f" {word}\n"


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token for each of the 256 bytes and three for begin, end and padding.

    A byte-pair tokenizer without merges: any Unicode text is restored unchanged, unless it spells out one of the three special
    tokens.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: number for number, symbol in enumerate([*alphabet, BOS, EOS, PAD])}
    fast = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    fast.decoder = decoders.ByteLevel()
    fast.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, vocabulary[BOS])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=fast,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        model_max_length=LONGEST_CONTEXT,
        clean_up_tokenization_spaces=False,
        chat_template=TEMPLATE_FILE.read_text(encoding="utf-8"),
    )


def build_network(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return the network with initial weights drawn from the recipe's seed, in float32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        intermediate_size=recipe.inner_width,
        num_hidden_layers=recipe.depth,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=LONGEST_CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stable_seed(recipe.seed, "demo model", "initial weights"))
        return LlamaForCausalLM(config)


def save_model(network: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write network (rounded to bfloat16) and tokenizer as ``from_pretrained`` reads them.

    Parameters
    ----------
    network, tokenizer
        What to store; the network in memory keeps its precision.
    folder : Path
        Created if missing.
    """
    import copy

    import torch
    from transformers import GenerationConfig

    stored: Any = copy.deepcopy(network).to(torch.bfloat16)
    stored.generation_config = GenerationConfig(
        do_sample=False,
        max_new_tokens=16,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    stored.save_pretrained(folder)
    tokenizer.save_pretrained(folder, save_jinja_files=False)
