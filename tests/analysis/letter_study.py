"""A small letter-position study as its handover, with effects that the tests know."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LEVELS = ["intact", "initial", "internal", "final"]
ACCURACY = {"intercept": 2.2, "initial": -1.2, "internal": -0.4, "final": -0.7}
TIME = {"intercept": 7.2, "initial": 0.30, "internal": 0.12, "final": 0.20}
TRUTH = {
    "accuracy": {
        "scale": "logit",
        "intercept": ACCURACY["intercept"],
        "effects": {"position": {k: v for k, v in ACCURACY.items() if k != "intercept"}},
        "participant_sd": 0.6,
        "item_sd": 0.4,
        "slope_sd": 0.0,
    },
    "time": {
        "scale": "log_ms",
        "intercept": TIME["intercept"],
        "effects": {"position": {k: v for k, v in TIME.items() if k != "intercept"}},
        "participant_sd": 0.2,
        "item_sd": 0.1,
        "slope_sd": 0.05,
        "residual_sd": 0.3,
    },
}
PLANNED = {
    "comprehension": {
        "measure": "correct",
        "compare": "position",
        "between": ["human", "restorer"],
        "contrasts": ["initial - internal", "final - internal"],
    },
    "reading": {"measure": "reading_time", "compare": "position", "between": ["human"], "contrasts": []},
}


def comparison(
    *contrasts: str, measure: Any = "correct", between: Sequence[str] = ("human",)
) -> dict[str, Any]:
    """Return the plan of one analysis that compares positions."""
    return {
        "a": {"measure": measure, "compare": "position", "between": [*between], "contrasts": [*contrasts]}
    }


def trial(reader: str, kind: str, item: str, index: int, **more: Any) -> dict[str, Any]:
    """Return a trial as exports have it, of a person or of a machine (a model or a baseline)."""
    person = kind in ("human", "simulated")
    return {
        "study": "positions",
        "version": 1,
        "design_hash": "d1",
        "session_id": f"{reader}-session",
        "reader_kind": kind,
        "reader": reader,
        "participant_id": reader if person else None,
        "list_id": 1,
        "block": "block-1",
        "set": "sentences",
        "trial_index": index,
        "attempt": 1,
        "item_id": item,
        "trial_type": "choose",
        **dict.fromkeys(("is_practice", "is_filler", "is_attention_check", "is_pilot"), False),
        "replicate": None if person else 1,
        "context": "independent",
        "prompt_variant": None if person else 1,
        "label_map": None,
        "temperature": None if person else 0.0,
        "response_status": "valid",
        "excluded_reason": None,
        **more,
    }


def trial_rows(
    reader: str,
    kind: str,
    number: int,
    items: int,
    draw: np.random.Generator,
    shift: dict[str, float],
    time_shift: dict[str, float] | None,
    *,
    all_conditions: bool = False,
    item_effects: np.ndarray | None = None,
    time_item_effects: np.ndarray | None = None,
    pilot: bool = False,
    timeouts: float = 0.01,
) -> list[dict[str, Any]]:
    """One reader's rows: a Latin-square list, or every item in every condition."""
    own, own_time = 0.0, 0.0
    slope = dict.fromkeys(LEVELS, 0.0)
    if kind in ("human", "simulated"):
        own, own_time = draw.normal(0, 0.6), draw.normal(0, 0.2)
        slope = {level: draw.normal(0, 0.05) for level in LEVELS}
    rows = []
    pairs = [
        (item, level)
        for item in range(items)
        for place, level in enumerate(LEVELS)
        if all_conditions or place == (item + number) % 4
    ]
    for index, (item, level) in enumerate(pairs):
        logit = shift["intercept"] + (shift[level] if level != "intact" else 0.0) + own
        logit += 0.0 if item_effects is None else item_effects[item]
        right = bool(draw.random() < 1 / (1 + np.exp(-logit)))
        time = None
        if time_shift is not None:
            log = (
                time_shift["intercept"]
                + (time_shift[level] if level != "intact" else 0.0)
                + own_time
                + slope[level]
            )
            log += 0.0 if time_item_effects is None else time_item_effects[item]
            time = float(np.exp(log + draw.normal(0, 0.3)))
        late = time_shift is not None and draw.random() < timeouts
        told = {
            "list_id": number % 4 + 1,
            "position": level,
            "is_pilot": pilot,
            "response": None if late else ("yes" if right else "no"),
            "response_status": "timeout" if late else "valid",
            "correct": None if late else right,
            "score": None if late else float(right),
            "rt": None if late or time is None else float(np.exp(log + draw.normal(0, 0.3))),
            "reading_time": time,
            "surprisal": None,
            "temperature": 0.0 if kind == "model" else None,
        }
        rows.append(trial(reader, kind, f"s{item + 1:02d}", index + 4, **told))
    practice = [
        {**rows[0], "trial_index": i, "item_id": f"practice-{i}", "is_practice": True, "position": None}
        for i in range(4)
    ]
    return [*practice, *rows]


def study_rows(
    *,
    simulated: int = 0,
    human: int = 0,
    models: tuple[str, ...] = (),
    baselines: tuple[str, ...] = (),
    pilot: bool = False,
    items: int = 24,
    seed: int = 3,
    timeouts: float = 0.01,
) -> pd.DataFrame:
    """Rows of a whole study."""
    draw = np.random.default_rng(seed)
    item_effects, time_items = draw.normal(0, 0.4, items), draw.normal(0, 0.1, items)
    rows: list[dict[str, Any]] = []
    known: dict[str, Any] = {
        "item_effects": item_effects,
        "time_item_effects": time_items,
        "timeouts": timeouts,
    }
    for kind, many, letter in (("human", human, "P"), ("simulated", simulated, "S")):
        for number in range(many):
            rows += trial_rows(
                f"{letter}{number + 1:03d}", kind, number, items, draw, ACCURACY, TIME, **known
            )
    worse = {"intercept": 1.2, "initial": -0.8, "internal": -0.9, "final": -0.6}
    for number, name in enumerate(models):
        rows += trial_rows(name, "model", number, items, draw, worse, None, all_conditions=True, **known)
    for name in baselines:
        flat = dict.fromkeys(["intercept", *LEVELS], 0.0) | {"intercept": 0.0 if name == "random" else 9.0}
        rows += trial_rows(name, "baseline", 0, items, draw, flat, None, all_conditions=True)
    if pilot:
        rows += trial_rows("P999", "human", 1, items, draw, ACCURACY, TIME, pilot=True, **known)
    return pd.DataFrame(rows)


def timed_out(rows: pd.DataFrame, lost: Any) -> pd.DataFrame:
    """Return rows of which the lost ones have no answer, by a timeout."""
    answers = [name for name in ("correct", "response") if name in rows]
    missing = {name: rows[name].astype(object).mask(lost, None) for name in answers}
    return rows.assign(response_status=rows["response_status"].mask(lost, "timeout"), **missing)


def write_handover(folder: Path, trials: pd.DataFrame, **changes: Any) -> Path:
    """Write trials and a dictionary as experiment.exporting.export does."""
    folder.mkdir(parents=True, exist_ok=True)
    trials = trials.reset_index(drop=True)
    for name in ("correct", "is_pilot", "is_practice", "is_filler", "is_attention_check"):
        if name in trials:
            trials[name] = trials[name].astype("boolean")
    trials.to_parquet(folder / "trials.parquet")
    pd.DataFrame({"session_id": pd.Series(dtype=str)}).to_parquet(folder / "regions.parquet")
    factors = list(changes.get("factors", ["position"]))
    items = trials.loc[~trials["is_practice"].astype(bool), ["item_id", *factors]].drop_duplicates()
    items.assign(role="test", choices='["yes", "no"]').to_parquet(folder / "items.parquet")
    readers: dict[str, dict[str, Any]] = {}
    for (kind, name), own in trials.groupby(["reader_kind", "reader"]):
        many = {"sessions": int(own["session_id"].nunique())}
        if kind in ("human", "simulated"):
            known = readers.setdefault(str(kind), {"kind": str(kind), "sessions": 0})
            known["sessions"] += 1
        else:
            use = f"hf:models/{name}" if kind == "model" else f"baseline:{name}"
            readers[str(name)] = {"kind": str(kind), "use": use, "resolved": f"{name}-1.0", **many}
    dictionary = {
        "study": "positions",
        "title": "Which letter positions carry a sentence?",
        "versions": [1],
        "design_hash": "d1",
        "language": "en",
        "seed": 1,
        "factors": {"position": {"levels": LEVELS, "reference": "intact"}},
        "readers": readers,
        "planned": {},
        "exclude": {},
        "truth": None,
        "columns": {},
        "created_at": "2026-11-21T10:00:00Z",
        "wrods": "0.1.0",
        **changes,
    }
    (folder / "dictionary.json").write_text(json.dumps(dictionary), "utf-8")
    return folder
