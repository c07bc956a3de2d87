"""A very small model that says whether a string is a word, trained in minutes so that a sample report has a model in it.

It is trained for the sample report and stands for no language model: it knows letters of single strings and two answers.
Words are frequent ones of wordfreq, nonwords are made of them by wrods' own recipe for lexical decision. Strings that
people judge in the sample are in no step of the training.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from experiment.demo.training.network import build_network, build_tokenizer, save_model
from experiment.demo.training.recipe import read_recipe
from stimuli.errors import UserError
from stimuli.recipes.conditions import ItemDesign
from stimuli.recipes.tasks import task_items
from stimuli.seeds import generator
from tests.stimuli.designs import word_records

if TYPE_CHECKING:
    import torch

SEED = 20261122
LETTERS = (6, 9)
NONWORDS = {
    "transposed": {"transpose": "internal", "distance": 2, "letters": "consonants"},
    "replaced": {"substitute": "internal", "distance": 2, "letters": "consonants"},
}
ANSWERS = ("nonword", "word")
TEMPLATE = """\
{%- set ns = namespace(asked='', answer=none) -%}
{%- for message in messages -%}
  {%- if message['role'] == 'user' -%}{%- set ns.asked = message['content'] -%}{%- set ns.answer = none -%}
  {%- elif message['role'] == 'assistant' -%}{%- set ns.answer = message['content'] -%}{%- endif -%}
{%- endfor -%}
{{- bos_token -}}
{%- set ns.shown = ns.asked.strip().split('\\n')[0].strip() | lower -%}
{{- ns.shown + ' ' -}}
{%- if ns.answer is not none -%}{{- ns.answer + '\\n' + eos_token -}}{%- endif -%}
"""
"""Keeps the string alone, in small letters: words stand in capitals in the table, and case would give answers away."""


@dataclass(frozen=True)
class Strings:
    """Strings and whether each is a word.

    Attributes
    ----------
    words, nonwords : tuple of str
        In small letters.
    """

    words: tuple[str, ...]
    nonwords: tuple[str, ...]


def training_strings(number: int, without: Collection[str], seed: int = SEED) -> Strings:
    """Return frequent words and the nonwords made of them.

    Parameters
    ----------
    number : int
        Words to take, the most frequent first.
    without : collection of str
        Strings that must not be among them, capitals aside.
    seed : int

    Returns
    -------
    Strings
        A word whose nonwords could not be made stays in as a word.
    """
    from wordfreq import top_n_list

    barred = {one.lower() for one in without}
    fits = re.compile(f"[a-z]{{{LETTERS[0]},{LETTERS[1]}}}").fullmatch
    words = [one for one in top_n_list("en", 6 * number) if fits(one) and one not in barred][:number]
    nonwords: set[str] = set()
    for word in words:
        nonwords |= _nonwords(word, seed)
    return Strings(tuple(words), tuple(sorted(nonwords - barred - set(words))))


def _nonwords(word: str, seed: int) -> set[str]:
    """Return the nonwords of a word; none where its letters allow none."""
    try:
        made = task_items(
            "lexical_decision",
            word_records([word], source="wordfreq"),
            ItemDesign(factor="kind", levels=NONWORDS, seed=seed),
            options={"fillers": 0},
        )
    except UserError:
        return set()
    return {item.shown["word"].lower() for item in made.items}


def train_judge(
    folder: Path,
    without: Collection[str],
    *,
    words: int = 10000,
    steps: int = 2500,
    batch: int = 192,
    tell: Callable[[str], None] = print,
) -> dict[str, float]:
    """Train a judge and store it as ``from_pretrained`` reads it.

    Parameters
    ----------
    folder : Path
        Where to, with a card and a table of what it reached.
    without : collection of str
        Strings that it must not see.
    words, steps, batch : int
        Words to learn from, optimiser steps, strings in a step (half of them words).
    tell : callable
        Told how far it is.

    Returns
    -------
    dict
        ``parameters``, ``words``, ``nonwords``, ``steps``, ``last_loss`` (nats a string, mean of the last 50 steps).
    """
    import torch

    strings = training_strings(words, without)
    tell(f"{len(strings.words)} words, {len(strings.nonwords)} nonwords")
    recipe = replace(read_recipe(), seed=SEED, width=96, depth=3, heads=4, inner_width=256)
    tokenizer = build_tokenizer()
    tokenizer.chat_template = TEMPLATE
    network = build_network(recipe, tokenizer)
    torch.set_num_threads(1)  # sums in a fixed order: the same machine gives the same weights
    network.train()
    optimiser = torch.optim.AdamW(network.parameters(), lr=1.0, betas=(0.9, 0.98), weight_decay=0.05)
    draw = generator(SEED, "letter judge", "batches")
    lots = [
        [_encoded(one, answer, tokenizer) for one in pool]
        for answer, pool in zip(ANSWERS, (strings.nonwords, strings.words), strict=True)
    ]
    losses: list[float] = []
    for step in range(steps):
        rate = 0.003 * min((step + 1) / 100, 0.5 * (1 + math.cos(math.pi * step / steps)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        drawn = [lot[draw.randrange(len(lot))] for lot in lots for _ in range(batch // 2)]
        rows, wanted = _padded(drawn, int(tokenizer.pad_token_id))
        logits = network(input_ids=rows).logits
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), wanted.flatten(), ignore_index=-100, reduction="sum"
        ) / len(drawn)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(float(loss.detach()))
        if (step + 1) % 250 == 0:
            tell(f"step {step + 1} of {steps}: {sum(losses[-50:]) / len(losses[-50:]):.3f} nats a string")
    network.eval()
    save_model(network, tokenizer, folder)
    told = {
        "parameters": sum(weight.numel() for weight in network.parameters()),
        "words": len(strings.words),
        "nonwords": len(strings.nonwords),
        "steps": steps,
        "last_loss": sum(losses[-50:]) / len(losses[-50:]),
    }
    (folder / "trained.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return told


def _encoded(string: str, answer: str, tokenizer: object) -> tuple[list[int], int]:
    """Return the tokens of a string with its answer, and how many of them are the prompt."""
    prompt: list[int] = tokenizer(f"{string} ")["input_ids"]  # type: ignore[operator]
    rest: list[int] = tokenizer(f"{answer}\n", add_special_tokens=False)["input_ids"]  # type: ignore[operator]
    return prompt + rest + [tokenizer.eos_token_id], len(prompt)  # type: ignore[attr-defined]


def _padded(drawn: list[tuple[list[int], int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Lay rows side by side, padded on the right; only the answer is wanted."""
    import torch

    width = max(len(row) for row, _ in drawn) - 1
    rows = torch.full((len(drawn), width), pad)
    wanted = torch.full((len(drawn), width), -100)
    for place, (row, prompt) in enumerate(drawn):
        rows[place, : len(row) - 1] = torch.tensor(row[:-1])
        wanted[place, prompt - 1 : len(row) - 1] = torch.tensor(row[prompt:])
    return rows, wanted
