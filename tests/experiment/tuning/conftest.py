"""A small study whose question a tiny model can learn: which animal a sentence names."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiment.cli import main
from tests.experiment.models.tiny_models import short_collections, tiny_llama

__all__ = ["short_collections"]

STUDY = """\
wrods: 1
study: tunes
title: Which animal is named?
seed: 7
models:
  context: independent
  who:
    base: {{use: "hf:tiny"}}
    whole: {{use: "tuned:whole"}}
    beside: {{use: "tuned:beside"}}
tuning:
  whole: {{model: base, on: prompts.jsonl, method: full, epochs: 3, learning_rate: 0.01, validation: 0.1{whole}}}
  beside: {{model: base, on: prompts.jsonl, epochs: 4, learning_rate: 0.02, validation: 0.1, lora: {{rank: 8}}{beside}}}
  texts: {{model: base, on: texts.txt, rule: FT-RS, method: full, epochs: 2, sequence_length: 32, batch_tokens: 96{texts}}}
materials: {{sentences: sentences.csv}}
design:
  lists: one
procedure:
  - block:
      trial:
        - choose: {{show: sentence, ask: Cat?, keys: {{"yes": f, "no": j}}}}
"""
PLACES = "garden kitchen street forest station library office museum harbour village"
DEEDS = "sleeps waits jumps hides rests stays sits plays walks runs"


def sentences(number: int, seed: int, apart_from: Sequence[tuple[str, str]] = ()) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    found: list[tuple[str, str]] = []
    while len(found) < number:
        animal, answer = ("cat", "yes") if len(found) % 2 else ("dog", "no")
        one = (f"The {animal} {draw.choice(DEEDS.split())} in the {draw.choice(PLACES.split())}.", answer)
        found += [] if one in apart_from else [one]
    return found


def prompt_of(sentence: str) -> str:
    return f"{sentence}\nCat?\n\nAnswer with exactly one of: yes, no.\nAnswer:"


def tiny_model(folder: Path) -> None:
    """A model of one layer over single characters, drawn large enough that small matrices beside its weights move it."""
    how = {"initializer_range": 0.15, "attention_dropout": 0.1}
    tiny_llama(folder, num_hidden_layers=1, num_attention_heads=2, max_position_embeddings=256, **how)


def write_study(folder: Path, **more: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"whole": "", "beside": "", "texts": "", **more}
    texts = [
        f"{text} {other}" for (text, _), (other, _) in zip(sentences(40, 3), sentences(40, 4), strict=True)
    ]
    (folder / "texts.txt").write_text("\n\n".join(texts) + "\n", "utf-8")
    if not (folder / "tiny").exists():
        tiny_model(folder / "tiny")
    return build_study(folder, STUDY.format(**settings), asked=24, learnt=240)


def build_study(folder: Path, study: str, *, asked: int, learnt: int, prompt=prompt_of) -> Path:
    """Build a study of so many sentences, with so many other ones as prompts to learn."""
    (folder / "study.yaml").write_text(study, "utf-8")
    test = sentences(asked, 1)
    rows = [f"{n},{text},Cat?,{answer}" for n, (text, answer) in enumerate(test)]
    (folder / "sentences.csv").write_text("\n".join(["item,sentence,question,answer", *rows]) + "\n", "utf-8")
    others = sentences(learnt, 2, apart_from=test)
    lines = [json.dumps({"prompt": prompt(text), "reply": answer}) for text, answer in others]
    (folder / "prompts.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    done = wrods("build", folder)
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path / "study")


def wrods(*arguments: object):
    return CliRunner().invoke(main, [str(one) for one in arguments])
