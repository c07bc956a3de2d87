"""A small moving-window study with known costs of single words, for people and a model, as its handover."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.analysis.letter_study import LEVELS, trial_rows, write_handover

WORDS = ["The", "old", "man", "counted", "some", "heavy", "wooden", "boxes", "into", "that", "small", "house"]
TARGETS = (3, 7)
COSTS_MS = {"initial": 90.0, "internal": 30.0, "final": 60.0}
SPILL = (0.5, 0.2)
BASE_MS = 320.0
BITS = {"initial": 9.0, "internal": 4.0, "final": 6.0}
MS_PER_BIT = 10.0


def swapped(word: str, level: str) -> str:
    """Exchange two letters at the level's place."""
    at = {"initial": 0, "internal": 2, "final": len(word) - 2}[level]
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def shown_words(level: str) -> list[str]:
    return [swapped(w, level) if n in TARGETS and level != "intact" else w for n, w in enumerate(WORDS)]


def word_costs(level: str) -> np.ndarray:
    """Milliseconds that a level adds to each word."""
    added = np.zeros(len(WORDS))
    if level != "intact":
        for target in TARGETS:
            for back, share in enumerate((1.0, *SPILL)):
                added[target + back] += share * COSTS_MS[level]
    return added


def study(
    folder: Path,
    *,
    people: int = 24,
    items: int = 24,
    seed: int = 5,
    linked: bool = False,
    kind: str = "human",
    dictionary: dict[str, Any] | None = None,
) -> Path:
    """Write a study in which people's words cost what is said above, or ``MS_PER_BIT`` for each bit of a model's surprisal."""
    draw = np.random.default_rng(seed)
    flat = dict.fromkeys(["intercept", *LEVELS], 0.0) | {"intercept": 2.0}
    rows: list[dict[str, Any]] = []
    for number in range(people):
        rows += trial_rows(
            f"P{number:03d}", kind, number, items, draw, flat, flat | {"intercept": 8.0}, timeouts=0
        )
    for name in ("reader-net",):
        rows += trial_rows(name, "model", 0, items, draw, flat, None, all_conditions=True)
    trials = pd.DataFrame(rows)
    trials["position"] = trials["position"].where(~trials["is_practice"], "intact")
    where = write_handover(folder, trials, **(dictionary or {}))
    item_ms, word_bits = draw.normal(0, 20, items), draw.gamma(4, 1.5, (items, len(WORDS)))
    speeds = {name: draw.normal(0, 30) for name in trials["reader"].unique()}
    regions = []
    for trial in trials[~trials["is_practice"].astype(bool)].itertuples():
        item = int(trial.item_id[1:]) - 1
        bits = word_bits[item] + np.array(
            [
                BITS[trial.position] if n in TARGETS and trial.position != "intact" else 0.0
                for n in range(len(WORDS))
            ]
        )
        person = trial.reader_kind != "model"
        added = MS_PER_BIT * (bits - 6.0) if linked else word_costs(trial.position)
        mean = BASE_MS + item_ms[item] + speeds[trial.reader] + added
        times = draw.gamma(16, np.maximum(mean, 60) / 16) if person else [None] * len(WORDS)
        for n, form in enumerate(shown_words(trial.position)):
            regions.append(
                {
                    "session_id": trial.session_id,
                    "trial_index": trial.trial_index,
                    "attempt": 1,
                    "region": n,
                    "shown": form,
                    "intact": WORDS[n],
                    "is_changed": form != WORDS[n],
                    "rt": times[n],
                    "surprisal": None if person else bits[n],
                }
            )
    table = pd.DataFrame(regions)
    table["rt"], table["surprisal"] = table["rt"].astype(float), table["surprisal"].astype(float)
    table.to_parquet(where / "regions.parquet")
    return where


def rewrite_dictionary(folder: Path, **changes: Any) -> None:
    file = folder / "dictionary.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | changes), "utf-8")


def with_forms(folder: Path) -> Path:
    """Give a study's items the forms of this study, and no record of changes, as imports have it."""
    items = pd.read_parquet(folder / "items.parquet")
    items["shown"] = [json.dumps({"sentence": " ".join(shown_words(level))}) for level in items["position"]]
    items["intact"] = json.dumps({"sentence": " ".join(WORDS)})
    items["changes"] = "[]"
    items["provenance"] = json.dumps({"operation": "imported"})
    items.to_parquet(folder / "items.parquet")
    return folder
