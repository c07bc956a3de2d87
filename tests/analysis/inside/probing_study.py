"""A study with hidden states in which the letter of the right answer is planted where a test wants it, and nowhere else.

States of an item have much in common over its conditions, and those of items about one passage do, as in real models: whoever
lets an item into training and test at once can read its answer off what it has seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiment.models.engine import State
from experiment.models.states import StateWriter
from tests.analysis.letter_study import trial, write_handover

LEVELS = ("base", "mild", "severe")


def probing_study(
    folder: Path,
    *,
    items: int = 60,  # with three options each, the right one as often A as B as C, in one of six orders
    passages: int | None = None,  # items i and i + passages ask about one, with one right letter
    from_layer: Mapping[str, int] | None = None,  # the first with the right letter planted, by condition
    strength: float = 2.0,  # of what is planted; noise has SD 1
    common: float = 1.0,  # size of what states of an item, and of a passage, have in common
    layers: int = 4,
    width: int = 20,
    seed: int = 3,
    planted: int | None = None,  # seeds the directions of letters, which are drawn with the rest unless given
    split: Sequence[str] = ("test",),  # of the data set, dealt to the items in turn
    models: Sequence[str] = ("net",),
    levels: Sequence[str] = LEVELS,
    **dictionary: Any,
) -> Path:
    """Write a study and return the folder of its tables; its states lie in ``folder/states/run-1``."""
    random = np.random.default_rng(seed)
    many = passages or items
    rows: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    states: dict[str, np.ndarray] = {}
    letters = (random if planted is None else np.random.default_rng(planted)).normal(size=(layers, 3, width))
    letters /= np.linalg.norm(letters, axis=2, keepdims=True)
    of_passage = random.normal(0, common, (many, layers, width))
    for number in range(items):
        own = random.normal(0, common, (layers, width)) + of_passage[number % many]
        wanted = number % many % 3
        for level in levels:
            order = list(random.permutation(3))
            right = order[wanted]
            choices = [f"option {place} of question {number}" for place in range(3)]
            lines.append(
                {
                    "item_id": f"q{number:04d}", "set": "news", "role": "test", "position": level,
                    "shown": json.dumps({"passage": f"{level} passage {number % many}", "question": f"question {number}"}),
                    "intact": json.dumps({"passage": f"passage {number % many}"}),
                    "choices": json.dumps(choices), "answer": choices[right],
                    "provenance": json.dumps(
                        {"source": "news", "source_id": f"q{number:04d}", "split": split[number % len(split)], "operation": level}
                    ),
                }
            )  # fmt: skip
            for model in models:
                chosen = int(random.integers(3))
                key = f"{model}-{number}-{level}"
                said = {
                    "study": "planted", "session_id": f"{model}-1", "set": "news", "position": level, "answer": choices[right],
                    "response": choices[chosen], "correct": chosen == right, "work_key": key,
                    "choice_order": ",".join(str(one) for one in order),
                }  # fmt: skip
                rows.append(trial(model, "model", f"q{number:04d}", len(rows), **said))
                told = own + random.normal(size=(layers, width))
                first = (from_layer or {}).get(level)
                if first is not None:
                    told[first:] += strength * letters[first:, wanted]
                states[key] = told.astype(np.float16)
    factors = {"position": {"levels": list(levels), "reference": levels[0]}}
    told = {"study": "planted", "factors": factors, **dictionary}
    data = write_handover(folder / "reports" / "now" / "data", pd.DataFrame(rows), **told)
    pd.DataFrame(lines).to_parquet(data / "items.parquet")
    with StateWriter(folder / "states" / "run-1") as writer:
        for key, vectors in states.items():
            writer.add(key, [State("last", vectors)])
    return data
