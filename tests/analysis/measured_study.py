"""Two small studies with known truth for the chapters of measures: two classes under four sorts of text, and restored sentences.

Levels have names that do not tell what they do: only the operation that each item records says it.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd

from tests.analysis.letter_study import trial, write_handover

CDF = NormalDist().cdf
LEVELS = ["red", "green", "blue", "grey"]
OPERATIONS = {"red": "none", "green": "shuffle:all@0.5", "blue": "substitute:all", "grey": "withheld"}
FACTORS = {"position": {"levels": LEVELS, "reference": "red"}}
D_PRIME = {"human": [2.4, 1.2, 0.0, 0.0], "net": [1.8, 0.9, 0.0, 0.0]}
CRITERION = {"human": [-0.3, 0.2, 0.0, 0.0], "net": [-0.8, -0.8, -0.8, -0.8]}
RECOVERED_WORDS = {
    "words": {
        "measure": "recovered",
        "compare": "position",
        "between": ["human"],
        "trials": "recover",
        "contrasts": ["blue - green"],
        "direction": "less",
    }
}
SENTENCES = ["The old captain watched seven silver boats", "Many quiet farmers planted yellow winter wheat"]


def row(reader: str, kind: str, item: str, level: str, index: int, **more: Any) -> dict[str, Any]:
    sampled = {"temperature": None if kind == "human" else 1.0}
    return trial(reader, kind, item, index, **{"study": "measured", "position": level, **sampled, **more})


def class_study(folder: Path, *, people: int = 16, items: int = 40, seed: int = 8, **dictionary: Any) -> Path:
    """Write a study of A and B in which people and a model have the d' and criteria above, and one model always says A."""
    draw = np.random.default_rng(seed)
    of_item = draw.normal(0, 0.2, items)
    rows: list[dict[str, Any]] = []
    readers = [(f"P{n:02d}", "human") for n in range(people)] + [("net", "model"), ("stuck", "model")]
    for number, (reader, kind) in enumerate(readers):
        bias, sense = draw.normal(0, 0.2, 2) if kind == "human" else (0.0, 0.0)
        name = "human" if kind == "human" else "net"
        for item in range(items):
            # both classes come in every level of a list
            own = [(item // 2 + number) % 4] if kind == "human" else range(4)
            for place in own:
                truth = 0.5 if item % 2 else -0.5
                eta = (D_PRIME[name][place] + sense) * truth - CRITERION[name][place] + bias + of_item[item]
                says_a = reader == "stuck" or draw.random() < CDF(eta)
                answer, response = "A" if truth > 0 else "B", "A" if says_a else "B"
                rows.append(
                    row(
                        reader,
                        kind,
                        f"s{item:02d}",
                        LEVELS[place],
                        len(rows),
                        trial_type="choose",
                        answer=answer,
                        response=response,
                        correct=answer == response,
                        score=None,
                        prompt_tokens=None if kind == "human" else 40.0 + 10 * place,
                        completion_tokens=None if kind == "human" else 1.0,
                    )
                )
    return _written(folder, pd.DataFrame(rows), '["A", "B"]', dictionary)


def typed_study(
    folder: Path,
    *,
    people: int = 16,
    whole: bool = False,
    single: bool = False,
    seed: int = 4,
    **dictionary: Any,
) -> Path:
    """Write a study of restored sentences, or of single words.

    Each changed word comes back with a known chance, or all of an answer together.
    """
    draw = np.random.default_rng(seed)
    chance = {"red": 1.0, "green": 0.85, "blue": 0.3}
    rows: list[dict[str, Any]] = []
    for number in range(people):
        shift = draw.normal(0, 0.3)
        for item in range(18):
            level = LEVELS[(item + number) % 3]
            sentence = f"{SENTENCES[item % 2].split()[-1] if single else SENTENCES[item % 2]} {item}"
            p = (
                1.0
                if level == "red"
                else 1 / (1 + np.exp(-(np.log(chance[level] / (1 - chance[level])) + shift)))
            )
            lucky = draw.random() < p
            words = [
                word if (lucky if whole else draw.random() < p) or not word.isalpha() else _other(word)
                for word in sentence.split()
            ]
            given = " ".join(words)
            rows.append(
                row(
                    f"P{number:02d}",
                    "human",
                    f"s{item:02d}",
                    level,
                    len(rows),
                    trial_type="recover",
                    answer=sentence,
                    response=given,
                    correct=given == sentence,
                    score=float(given == sentence),
                )
            )
    factors = {"position": {"levels": LEVELS[:3], "reference": "red"}}
    where = _written(folder, pd.DataFrame(rows), None, {"factors": factors, **dictionary})
    return where


def _other(word: str) -> str:
    """Give a word that is more than one typo away."""
    return "x" * len(word)


def _written(folder: Path, trials: pd.DataFrame, choices: str | None, dictionary: dict[str, Any]) -> Path:
    trials["rt"] = trials["reading_time"] = trials["surprisal"] = np.nan
    write_handover(folder, trials, **{"study": "measured", "factors": FACTORS, **dictionary})
    seen = trials[["item_id", "position", "answer"]].drop_duplicates()
    lines = []
    for item, level, answer in seen.itertuples(index=False, name=None):
        text = answer if choices is None else f"line {item}"
        shown = {"red": text, "grey": ""}.get(
            level, " ".join(word[::-1] if word.isalpha() else word for word in text.split())
        )
        lines.append(
            {
                "item_id": item,
                "set": "sentences",
                "role": "test",
                "position": level,
                "choices": choices,
                "shown": json.dumps({"sentence": shown}),
                "intact": json.dumps({"sentence": text}),
                "provenance": json.dumps({"operation": OPERATIONS[level], "seed": 1}),
            }
        )
    pd.DataFrame(lines).to_parquet(folder / "items.parquet")
    return folder
