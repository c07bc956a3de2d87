"""Training: cross-entropy on the answer bytes only, with the prompt's fixed opening computed once per batch part."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from experiment.demo.training.network import answer_for, prompt_for
from experiment.demo.training.recipe import Recipe
from experiment.demo.training.words import Example, ExampleSource

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

IGNORED = -100


@dataclass(frozen=True)
class ExampleBatch:
    """Examples of similar length, ready for the network.

    Attributes
    ----------
    opening : Tensor, (1, P), int64
        Begin token and the bytes that all prompts share.
    rest : Tensor, (B, S), int64
        What follows the opening, padded on the right.
    wanted : Tensor, (B, S), int64
        The next byte if it belongs to the answer, else :data:`IGNORED`.
    """

    opening: torch.Tensor
    rest: torch.Tensor
    wanted: torch.Tensor


def encode_part(examples: list[Example], tokenizer: PreTrainedTokenizerFast) -> ExampleBatch:
    """Return examples as token numbers, cut after the opening that every prompt shares."""
    import torch

    opening = tokenizer(prompt_for("").split("\n")[0])["input_ids"]
    rows, answers = [], []
    for example in examples:
        prompt = tokenizer(prompt_for(example.shown))["input_ids"][len(opening) :]
        answer = tokenizer(answer_for(example.word), add_special_tokens=False)["input_ids"]
        rows.append(prompt + answer + [tokenizer.eos_token_id])
        answers.append(len(answer) + 1)
    width = max(map(len, rows)) - 1
    rest = torch.full((len(rows), width), int(tokenizer.pad_token_id))
    wanted = torch.full((len(rows), width), IGNORED)
    for number, (row, answer_length) in enumerate(zip(rows, answers, strict=True)):
        end = len(row) - 1
        rest[number, :end] = torch.tensor(row[:-1])
        wanted[number, end - answer_length : end] = torch.tensor(row[-answer_length:])
    return ExampleBatch(torch.tensor([opening]), rest, wanted)


def answer_logits(network: LlamaForCausalLM, part: ExampleBatch) -> torch.Tensor:
    """Return next-byte logits at the answer positions, (answer bytes, vocabulary).

    The opening goes through the network once and its keys and values are repeated for every row, which
    under causal attention gives the same result as full sequences.
    """
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache()
    network.model(part.opening, past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(part.rest))
    hidden = network.model(part.rest, past_key_values=cache, use_cache=True).last_hidden_state
    logits: torch.Tensor = network.lm_head(hidden[part.wanted != IGNORED])
    return logits


def learning_rate(recipe: Recipe, step: int, steps: int) -> float:
    """Return the rate of a step (from 0): linear warm-up to the peak, then half a cosine to zero."""
    warmup = min(recipe.warmup_steps, steps)
    if step < warmup:
        return recipe.peak_rate * (step + 1) / warmup
    return recipe.peak_rate * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def train(
    network: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    source: ExampleSource,
    steps: int,
    tell: Callable[[int, float], None],
) -> list[float]:
    """Train the network in place and return the mean loss (nats per answer byte) of every step.

    Parameters
    ----------
    network, tokenizer
        The network to train, and its tokenizer.
    recipe : Recipe
        All settings except the number of steps.
    source : ExampleSource
        Returns the examples of a step.
    steps : int
        Optimiser steps; the learning-rate schedule is stretched to this number.
    tell : callable
        Called with each step's number (from 1) and loss.
    """
    import torch

    torch.set_num_threads(1)  # sums in a fixed order: the same machine gives the same weights
    network.set_attn_implementation("eager")
    network.train()
    matrices = [weight for weight in network.parameters() if weight.dim() > 1]
    gains = [weight for weight in network.parameters() if weight.dim() == 1]
    optimiser = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": gains, "weight_decay": 0.0}],
        betas=(recipe.beta1, recipe.beta2),
    )
    losses = []
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(recipe, step, steps)
        examples = sorted(source.batch(step), key=lambda example: len(example.word))
        size = math.ceil(len(examples) / recipe.parts)
        parts = [
            encode_part(examples[start : start + size], tokenizer) for start in range(0, len(examples), size)
        ]
        scored = sum(int((part.wanted != IGNORED).sum()) for part in parts)
        total = 0.0
        for part in parts:
            with torch.autocast("cpu", torch.bfloat16, enabled=recipe.autocast):
                logits = answer_logits(network, part)
            wanted = part.wanted[part.wanted != IGNORED]
            loss = torch.nn.functional.cross_entropy(logits.float(), wanted, reduction="sum") / scored
            loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(total)
        tell(step + 1, total)
    network.eval()
    return losses
