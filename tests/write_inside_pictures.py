"""Draws the picture of probing in docs/inside.md from planted states: ``python -m tests.write_inside_pictures``."""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image

from analysis import load
from analysis.figures.probing import ModelLayers, accuracy_figures, step_figure
from analysis.inside.probing import probings
from analysis.inside.probing_intervals import accuracies
from tests.analysis.inside.probing_study import probing_study

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "inside-probing.png"
FROM_LAYER = {"original": 5, "RS-20": 6, "KFL": 8, "RS-100": 14}
DOTS = 170
"""To the inch."""


def main() -> None:
    """Probe 300 items in whose states the answer is planted from a layer on, and write both figures below each other."""
    with tempfile.TemporaryDirectory() as folder:
        data = probing_study(
            Path(folder), items=300, layers=17, from_layer=FROM_LAYER, strength=5.0, models=("planted states",),
            levels=(*FROM_LAYER, "Sub"), probing={"penalties": [0.01, 0.1], "controls": 3},
        )  # fmt: skip
        (one,), _ = probings(load(data))
    model = ModelLayers(one.group, accuracies(one, "planted"))
    drawn = [*accuracy_figures("a", "a", [model], "the right answer"), step_figure("b", "b", model)]
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
    whole.quantize(64).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
