"""Draws the pictures of docs/inside.md from states and answers of known truth: ``python -m tests.write_inside_pictures``.

Probing shows answers that were planted in states, representations show states that were moved by a stated amount in each condition,
and profiles show people and a model drawn from profiles of their own: no reader, and drawn by the code that draws a report.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path

from PIL import Image

from analysis import load
from analysis.figures import Drawing
from analysis.readers import kinds_of
from analysis.report.blocks import Chapter, Material
from analysis.report.chapters import condition_profiles
from experiment.papers.inside.chapters import representations
from experiment.papers.inside.chapters.probing.probes import probings
from experiment.papers.inside.chapters.probing.probing_figures import (
    ModelLayers,
    accuracy_figures,
    step_figure,
)
from experiment.papers.inside.chapters.probing.probing_intervals import accuracies
from tests.analysis.inside.probing_study import probing_study
from tests.analysis.inside.profile_study import profile_study
from tests.analysis.inside.representation_study import representation_study

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
FROM_LAYER = {"original": 5, "RS-20": 6, "KFL": 8, "RS-100": 14}
MOVED = {
    "BASE": 0.0, "REO-ALL": 0.9, "REO-INT": 0.6, "REO-BEG": 0.65, "REO-END": 0.55, "REO-REV": 1.1, "INS-INT_3": 0.6,
    "DEL-INT_3": 0.5, "WORD-REO-ALL": 0.45, "WORD-REO-ADJ": 0.25, "WORD-REO-REV": 0.4, "SENT-REO-ALL": 0.15,
    "SENT-REO-ADJ": 0.1, "SENT-REO-REV": 0.2,
}  # fmt: skip
"""How far each condition moves the states of a text, against 1 of the text's own part."""
DOTS = 170
"""To the inch."""


def probing(folder: Path) -> list[Drawing]:
    """Probe 300 items in whose states the answer is planted from a layer on."""
    data = probing_study(
        folder, items=300, layers=17, from_layer=FROM_LAYER, strength=5.0, models=("planted states",),
        levels=(*FROM_LAYER, "Sub"), probing={"penalties": [0.01, 0.1], "controls": 3},
    )  # fmt: skip
    (one,), _ = probings(load(data))
    model = ModelLayers(one.group, accuracies(one, "planted"))
    return [*accuracy_figures("a", "a", [model], "the right answer"), step_figure("b", "b", model)]


def cognitive_patterns(folder: Path) -> list[Drawing]:
    """Map 60 texts in 14 conditions, of states that were moved in one manner in 17 layers and in another in 13."""
    models = {"planted states, first pattern": (0, 17), "planted states, second pattern": (1, 13)}
    study = representation_study(folder, models=models, items=60, moved=MOVED)
    return _drawn(study / "reports" / "data", representations.write)


def profiles(folder: Path) -> list[Drawing]:
    """Set a drawn model among 16 people who were drawn from profiles of their own."""
    return _drawn(profile_study(folder, 0.3, each=16), condition_profiles.write)


PICTURES: dict[str, Callable[[Path], list[Drawing]]] = {
    "inside-probing": probing,
    "inside-representations": cognitive_patterns,
    "inside-profiles": profiles,
}


def _drawn(study: Path, write: Callable[[Material], Chapter | None]) -> list[Drawing]:
    tables = load(study)
    chapter = write(Material(tables, kinds=kinds_of(tables.trials)))
    assert chapter is not None
    return [block for block in chapter.blocks if isinstance(block, Drawing)][:1]


def below_each_other(drawn: Sequence[Drawing], file: Path) -> None:
    """Write figures as one picture."""
    parts = []
    for drawing in drawn:
        taken = BytesIO()
        drawing.figure.savefig(taken, format="png", dpi=DOTS, facecolor="white")
        parts.append(Image.open(taken).convert("RGB"))
    whole = Image.new("RGB", (max(one.width for one in parts), sum(one.height for one in parts)), "white")
    top = 0
    for part in parts:
        whole.paste(part, (0, top))
        top += part.height
    whole.quantize(64).save(file, optimize=True)


def main() -> None:
    """Draw all of them."""
    for name, draw in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            below_each_other(draw(Path(folder)), IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
