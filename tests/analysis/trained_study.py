"""Handovers of studies with trained models whose gains are known: H-TEST after training on its tasks, and scrambled sentences."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import Tables, load
from experiment.papers.h_test.chapter.measures import TASKS
from stimuli.scramble.text import scramble_text
from tests.analysis.letter_study import trial, write_handover

SETTINGS: dict[str, Any] = {
    "use": "hf:base", "revision": None, "base": "base", "on": "htest", "rule": None, "task": None, "asked": "study", "texts": None,
    "field": "text", "method": "lora", "epochs": None, "learning_rate": 2e-4, "warmup": 0.03, "decay": "cosine", "weight_decay": 0.0,
    "clip": 1.0, "batch_tokens": None, "sequence_length": 1024, "validation": 0.05,
    "lora": {"rank": 16, "alpha": 32.0, "dropout": 0.05}, "gradient_checkpointing": False, "seed": 7,
}  # fmt: skip
"""As ``tuning.json`` records them."""


def record(training: str, *, replies: bool, **settings: Any) -> dict[str, Any]:
    return {
        "training": training, "state": "finished", "base": "base", "settings": {**SETTINGS, **settings},
        "records": {
            "number": 1000, "trained_on": 950, "held_out": 50,
            "kind": "prompts with replies" if replies else "running text",
            "about": {}
            if replies
            else {"samples_left_out": 2, "share_of_samples_drawn": 0.688, "share_of_words_changed": 0.299},
        },
        "schedule": {"epochs": 3 if replies else 1, "batch_tokens": 512 if replies else 8192, "sequence_length": 1024},
        "steps": 40, "tokens": 61_000, "first_validation_loss": 2.0, "validation_loss": 1.1, "training_loss": 1.0,
    }  # fmt: skip


def write_training(study: Path, told: Mapping[str, Any]) -> None:
    folder = study / "tuning" / str(told["training"])
    folder.mkdir(parents=True)
    (folder / "tuning.json").write_text(json.dumps(told), "utf-8")
    with (folder / "loss.csv").open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(
            ["step", "epoch", "tokens", "training_loss", "validation_loss", "learning_rate", "seconds"]
        )
        writer.writerow([0, "0.0", 0, "", "2.0", "0", "0.0"])
        for step in range(1, 41):
            loss = 1 + math.exp(-step / 10) + 0.1 * math.sin(step * 7)
            held = f"{1.1 + 0.9 * math.exp(-step / 8):.6f}" if step % 10 == 0 else ""
            writer.writerow(
                [step, f"{step / 13:.4f}", 1500 * step, f"{loss:.6f}", held, "0.0001", f"{step * 0.5:.2f}"]
            )


def readers(trained: Mapping[str, str | None]) -> dict[str, dict[str, Any]]:
    """Return readers as the dictionary tells them: a model by name, with its training or None for the base."""
    found: dict[str, dict[str, Any]] = {}
    for name, training in trained.items():
        settings = (
            {}
            if training is None
            else {"trained": training, "base": "base", "use": f"hf:tuning/{training}/model"}
        )
        found[name] = {
            "kind": "model",
            "use": settings.get("use", "hf:base"),
            "settings": settings,
            "sessions": 1,
        }
    return found


def row(reader: str, item: str, index: int, **more: Any) -> dict[str, Any]:
    return trial(reader, "model", item, index, **{"study": "trained", "score": None, **more})


def right_items(items: int, share: float, draw: random.Random) -> set[int]:
    return set(draw.sample(range(items), round(share * items)))


def h_test_study(
    folder: Path,
    tasks: Sequence[str] = TASKS,
    *,
    items: int = 60,
    in_domain: float = 0.85,
    records: bool = True,
) -> Tables:
    """A base at half, models of each task better on it alone; ``in_domain`` is their share right there."""
    draw = random.Random(5)
    models: dict[str, str | None] = {"base": None, **{f"on-{task}": f"each-{task}" for task in tasks}}
    trials = []
    for name, training in models.items():
        for number, task in enumerate(tasks):
            share = in_domain if training == f"each-{task}" else 0.5
            right = right_items(items, share, draw)
            trials += [
                row(
                    name, f"{task}-{item}", number * items + item, set=task, task=task, trial_type="choose", answer="A",
                    label_map="A=A,B=B", response="A" if item in right else "B", correct=item in right,
                )
                for item in range(items)
            ]  # fmt: skip
    if records:
        for task in tasks:
            write_training(folder, record(f"each-{task}", replies=True, task=task))
    lines = [
        {"item_id": f"{task}-{item}", "set": task, "role": "test", "task": task, "choices": '["A", "B"]'}
        for task in tasks
        for item in range(items)
    ]
    factors = {"task": {"levels": list(tasks), "reference": tasks[0]}}
    return _written(folder, trials, lines, factors, readers(models))


CONDITIONS = {"RS": "shuffle:all", "KF": "keep:first", "KFL": "keep:first_and_last"}
RULES = {"ft-rs": "FT-RS", "ft-kf": "FT-KF&Adj", "ft-ori": "FT-Ori"}
RESTORED = {
    "base": {"RS": 0.1, "KF": 0.3, "KFL": 0.5},
    "ft-ori": {"RS": 0.1, "KF": 0.3, "KFL": 0.5},
    "ft-kf": {"RS": 0.1, "KF": 0.6, "KFL": 0.8},
    "ft-rs": {"RS": 0.7, "KF": 0.8, "KFL": 0.8},
}
"""Share of the changed words that each model puts right."""
SENTENCE = (
    "the {0} council said on {1} that every village near the northern river would receive clean water before the {2} winter "
    "festival"
)


def scrambled_study(folder: Path, *, items: int = 40, base_asked: bool = True) -> Tables:
    """Sentences to recover; words of each text are put right at shares that are known."""
    draw = random.Random(9)
    names = ("regional", "central", "eastern", "western", "federal")
    texts = [
        SENTENCE.format(names[n % 5], ("Monday", "Tuesday", "Friday")[n % 3], ("coming", "following")[n % 2])
        + f" number {n}"
        for n in range(items)
    ]
    lines, trials = [], []
    shown = {
        (n, level): scramble_text(text, done, seed=3, item_id=str(n))
        for n, text in enumerate(texts)
        for level, done in CONDITIONS.items()
    }
    for (n, level), made in shown.items():
        lines.append(
            {
                "item_id": f"s{n}", "set": "recover", "role": "test", "scramble": level, "choices": None,
                "shown": json.dumps({"sentence": made.text}), "intact": json.dumps({"sentence": texts[n]}),
                "provenance": json.dumps({"operation": CONDITIONS[level]}),
            }
        )  # fmt: skip
    models = {"base": None, **{name: name for name in RULES}}
    for name in models:
        if name == "base" and not base_asked:
            continue
        for index, ((n, level), made) in enumerate(shown.items()):
            answer = made.text
            for change in made.changes:
                if draw.random() < RESTORED[name][level]:
                    answer = (
                        answer[: change.start] + change.intact + answer[change.start + len(change.shown) :]
                    )
            trials.append(
                row(
                    name, f"s{n}", index, set="recover", scramble=level, trial_type="recover", answer=texts[n], response=answer,
                    label_map=None, correct=answer == texts[n],
                )
            )  # fmt: skip
    for training, rule in RULES.items():
        write_training(
            folder,
            record(training, replies=False, on="wiki", rule=rule, asked=None, method="full", lora=None),
        )
    factors = {"scramble": {"levels": list(CONDITIONS), "reference": "RS"}}
    return _written(folder, trials, lines, factors, readers(models))


def _written(
    folder: Path,
    trials: list[dict[str, Any]],
    lines: list[dict[str, Any]],
    factors: dict[str, Any],
    who: dict[str, dict[str, Any]],
) -> Tables:
    place = folder / "reports" / "handover"
    table = pd.DataFrame(trials)
    table["position"] = None
    write_handover(place, table, factors=factors, study="trained", readers=who, title="Trained models")
    pd.DataFrame(lines).to_parquet(place / "items.parquet")
    return load(place)
