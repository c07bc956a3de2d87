"""A study of known truth for the chapter on representations: models whose states move by a stated share of a text's own part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.analysis.letter_study import write_handover
from tests.analysis.measured_study import row as measured_row

MOVED = {
    "BASE": 0.0, "REO-ALL": 0.9, "REO-INT": 0.6, "REO-REV": 1.1, "WORD-REO-ALL": 0.45, "WORD-REO-REV": 0.4,
    "SENT-REO-ALL": 0.15, "SENT-REO-REV": 0.2,
}  # fmt: skip
"""How far each operation moves a text's states, in the middle layers of the first model."""
WIDTH = 24
COMMON = 3.0
"""What all states of a layer share, against 1 of each item's own part: it lifts every raw cosine."""


def depth_of(model: int, layers: int, by: Mapping[str, float] = MOVED) -> np.ndarray:
    """Return how much of each condition's movement is there at each layer, shape (conditions, layers)."""
    depth = np.linspace(0, 1, layers)
    found = []
    for place, moved in enumerate(by.values()):
        turn = np.sin(np.pi * depth) if (place + model) % 2 == 0 else 0.4 + 0.6 * depth
        found.append(moved * (0.3 + turn))
    return np.array(found)


def representation_study(
    folder: Path,
    *,
    models: dict[str, tuple[int, int]]
    | None = None,  # pattern and layers; one pattern differs by noise alone
    items: int = 24,
    sets: tuple[str, ...] = ("complete",),
    seed: int = 1,
    name: str = "gsm8k",
    position: str = "mean",
    moved: Mapping[str, float] = MOVED,  # a text's states, by condition, the intact one (``BASE``, 0) first
) -> Path:
    """Write a study's folder: ``reports/data`` and ``states`` of its models."""
    models = {"one": (0, 7), "two": (1, 5)} if models is None else models
    draw = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for model, (pattern, layers) in models.items():
        states: list[np.ndarray] = []
        keys: list[str] = []
        of_layer = COMMON * np.random.default_rng([seed, pattern]).normal(size=(layers, WIDTH))
        depths = depth_of(pattern, layers, moved)
        for part in sets:
            for item in range(items):
                own = draw.normal(size=WIDTH)
                for place, level in enumerate(moved):
                    right = draw.random() < 0.95 - 0.6 * moved[level]
                    key = f"{model}-{part}-{item}-{level}"
                    told = {"correct": right, "response": "1"}
                    row = measured_row(model, "model", f"i{item:02d}", level, len(rows), **told)
                    row |= {"study": name, "scramble": level, "set": part, "trial_type": "answer"}
                    row |= {"answer": "1", "work_key": key, "score": None, "position": level}
                    rows.append(row)
                    keys.append(key)
                    states.append(of_layer + own + depths[place][:, None] * draw.normal(size=(layers, WIDTH)))
        run = folder / "states" / f"run-{model}"
        run.mkdir(parents=True)
        for layer in range(layers):
            np.save(
                run / f"layer_{layer:02d}.npy", np.array([one[layer] for one in states], dtype=np.float16)
            )
        index = {"work_key": keys, "row": np.arange(len(keys)), "position": position}
        pd.DataFrame(index).to_parquet(run / "index.parquet")
    factors = {"scramble": {"levels": list(moved), "reference": "BASE"}}
    data = write_handover(
        folder / "reports" / "data", pd.DataFrame(rows), study=name, factors=factors, planned=[]
    )
    texts = [
        {
            "item_id": f"i{item:02d}", "set": part, "scramble": level, "role": "test", "choices": None,
            "provenance": json.dumps({"operation": "none" if level == "BASE" else "shuffle:all"}),
            "shown": json.dumps({"text": f"{level} {item}"}), "intact": json.dumps({"text": f"BASE {item}"}),
        }
        for part in sets for item in range(items) for level in moved
    ]  # fmt: skip
    pd.DataFrame(texts).to_parquet(data / "items.parquet")
    return folder
