"""A small study folder with built items, made by the test itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from experiment.checking import load_study
from experiment.integrity.build_provenance import BUILT_FROM, origin_of
from experiment.study import Study
from stimuli.item import Item, build_meta, write_items

YAML = """\
wrods: 1
study: small
title: A small study
seed: 7
materials: {words: words.txt}
design:
  factors:
    position: {intact: none, initial: {transpose: initial}}
procedure:
  - consent: consent.md
  - instructions: instructions.md
  - practice: {items: practice.csv, feedback: true, pass: 50%}
  - block:
      trial:
        - choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}
      break_every: 2
  - debrief: debrief.md
"""


def make_item(item_id: str, level: str, shown: str, answer: str, foil: str, *, role: str = "test") -> Item:
    return Item(
        item_id=item_id,
        set_name="words" if role == "test" else "practice-1",
        role=role,  # type: ignore[arg-type]
        condition={"position": level},
        shown={"word": shown},
        intact={"word": answer},
        choices=(answer, foil),
        answer=answer,
        provenance={
            "source": "words.txt",
            "source_id": item_id,
            "split": None,
            "licence": None,
            "operation": level,
            "seed": 7,
        },
        covariates={"letters": len(answer)},
    )


def small_items() -> list[Item]:
    words = [("garden", "warden"), ("basket", "casket"), ("planet", "plants"), ("marble", "market")]
    items = [
        make_item(f"w{i}", level, word if level == "intact" else word[1] + word[0] + word[2:], word, foil)
        for i, (word, foil) in enumerate(words)
        for level in ("intact", "initial")
    ]
    return [*items, make_item("p0", "initial", "etacher", "teacher", "reached", role="practice")]


def write_built(study: Study, items: Sequence[Item]) -> None:
    """Write items as a build of this study writes them."""
    origin = origin_of(study, [study.folder / name for name in ("words.txt", "practice.csv")])
    write_items(study.folder / "items.jsonl", items, {**build_meta(study.seed), BUILT_FROM: origin})


@pytest.fixture
def make_study(tmp_path: Path) -> Callable[..., Study]:
    """Return a function that writes a study folder (text changed by replacements) with built items and loads it."""

    def make(*changes: tuple[str, str], items: list[Item] | None = None, name: str = "small") -> Study:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        text = YAML
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        (folder / "study.yaml").write_text(text, "utf-8")
        for name_of_text in ("consent", "instructions", "debrief"):
            (folder / f"{name_of_text}.md").write_text(f"# The {name_of_text}\n\nSome *text*.", "utf-8")
        (folder / "practice.csv").write_text("item,word,foil,position\np0,teacher,reached,initial\n", "utf-8")
        (folder / "words.txt").write_text("garden\nbasket\nplanet\nmarble\n", "utf-8")
        write_built(load_study(folder), small_items() if items is None else items)
        return load_study(folder)

    return make
