"""Makes the pictures of docs/tuning.md again: ``python -m tests.write_tuning_pictures``.

Two studies are built, tuned and run on the processor, and the report's chapter on trained models is written: the ten tasks of H-TEST
learnt by a model of random weights, and the demo model trained on paragraphs of the documentation. What comes out is drawn,
also where training did not help. With a folder as argument the studies are kept there, with the chapter's words and tables
beside them, and steps that were done are not done again.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from analysis import load
from analysis.figures import Drawing
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Material
from experiment.cli import main
from experiment.cli.study_store import opened_study
from experiment.exporting.export import hand_over
from experiment.papers.inside.chapters.trained import write
from stimuli.seeds import generator
from tests.experiment.tuning.byte_model import byte_model

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
WIDTH = 1200
"""Dots from left to right of a picture in the documentation."""
WORDS, SHORTEST = 40, 6
TEXTS = 100
PARAGRAPH = range(300, 700)
"""Characters of the paragraphs that are trained on."""
SEED = 20261122


def rules(folder: Path) -> None:
    """Put a model of one layer over bytes, of random weights, beside the study of H-TEST tasks."""
    byte_model(folder / "base")


def words(folder: Path) -> None:
    """Put the demo model, words that it never saw, and paragraphs of the documentation beside the study of scrambled words."""
    from experiment.demo.training.recipe import read_recipe
    from experiment.demo.training.words import split_words

    shutil.copytree(ROOT / "experiment" / "demo" / "model", folder / "base")
    held_out = [word for word in split_words(read_recipe()).held_out if len(word) >= SHORTEST]
    generator(SEED, "words of the pictures").shuffle(held_out)
    with (folder / "words.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([["word"], *([word] for word in sorted(held_out[:WORDS]))])
    texts = [
        " ".join(part.split())
        for page in sorted((ROOT / "docs").glob("*.md"))
        for part in page.read_text("utf-8").split("\n\n")
        if part[:1].isalpha() and len(part) in PARAGRAPH
    ]
    generator(SEED, "texts of the pictures").shuffle(texts)
    lines = [json.dumps({"text": text}, ensure_ascii=False) for text in texts[:TEXTS]]
    (folder / "texts.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


STUDIES = {"trained_rules": rules, "trained_words": words}
PICTURES = {
    "trained-loss": ("trained_rules", "trained_loss"),
    "trained-tasks": ("trained_rules", "trained_tasks"),
    "trained-conditions": ("trained_words", "trained_conditions"),
}


def make(name: str, work: Path) -> dict[str, Drawing]:
    """Take a study from its design to the chapter on its trained models, and return the chapter's figures by name."""
    study = work / name
    if not study.exists():
        shutil.copytree(ROOT / "tests" / "sample" / name, study)
        STUDIES[name](study)
    if not (study / "items.jsonl").exists():
        _wrods("build", study)
    _wrods("tune", study)
    _wrods("run", study, "--not-registered")
    with opened_study(study) as opened:
        tables = load(hand_over(opened.study, opened.store, study / "handed-over"))
    chapter = write(Material(tables, (), kinds_of(tables.trials)))
    assert chapter is not None
    for block in chapter.blocks:
        if isinstance(block, ApaTable):
            block.save(study / "chapter")
    words = [str(block) for block in chapter.blocks if not isinstance(block, ApaTable | Drawing)]
    (study / "chapter" / "words.txt").write_text("\n\n".join(words) + "\n", "utf-8")
    return {block.name: block for block in chapter.blocks if isinstance(block, Drawing)}


def draw(name: str, drawing: Drawing, work: Path) -> None:
    """Put a figure among the pictures of the documentation."""
    from PIL import Image

    _, file = drawing.save(work)
    with Image.open(file) as picture:
        small = picture.convert("RGB").resize((WIDTH, round(picture.height * WIDTH / picture.width)))
    small.quantize(128).save(IMAGES / f"{name}.png", optimize=True)


def _wrods(*given: object) -> None:
    print(f"wrods {given[0]} {Path(str(given[1])).name}", flush=True)
    done = CliRunner().invoke(main, [str(one) for one in given])
    print(done.output, flush=True)
    if done.exit_code:
        raise SystemExit(done.exit_code)


def _all(work: Path) -> None:
    for study in STUDIES:
        figures = make(study, work)
        for name, (of, figure) in PICTURES.items():
            if of == study:
                draw(name, figures[figure], work / study / "chapter")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _all(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            _all(Path(folder))
