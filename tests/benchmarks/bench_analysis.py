"""What it takes to read and sum up the trials of a large study: seconds and peak memory, by number of trials.

Run ``python -m tests.benchmarks.bench_analysis [TRIALS ...]``; 100,000 and 1,000,000 by default. Beside the steps stands the same
file read by pandas alone, all columns of it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

LEVELS = ["intact", "rs20", "rs50", "kf", "kfl"]
ITEMS = 400
PART = 100_000
MACHINES = 6
SPREAD = {"reader": 0.6, "reader × condition": 0.3, "item": 0.5, "item × condition": 0.3, "item × model": 0.4}
"""Standard deviations of what a study draws, in log odds; models' sessions and cells of item, model and condition have 0.2."""
OWN = {
    "study": "large", "version": 1, "design_hash": "d", "attempt": 1, "set": "sentences", "trial_type": "choose",
    "is_practice": False, "is_filler": False, "is_attention_check": False, "is_pilot": False, "replicate": 1,
    "context": "independent", "prompt_variant": 1, "choice_order": "0,1", "answer": "yes", "excluded_reason": None,
}  # fmt: skip


class Truth:
    """How likely a right answer is and how long it takes, for sessions of people and models.

    Parameters
    ----------
    sessions : int
    machines, conditions : int
        Language models, and conditions.
    """

    def __init__(self, sessions: int, machines: int = MACHINES, conditions: int = len(LEVELS)) -> None:
        draw = np.random.default_rng(8)
        many = conditions
        self.machines = machines
        self.reader = draw.normal(0, SPREAD["reader"], sessions)
        self.reader_level = draw.normal(0, SPREAD["reader × condition"], (sessions, many))
        self.model = draw.normal(0.5, SPREAD["reader"], machines)
        self.session = draw.normal(0, 0.2, sessions)
        self.item = draw.normal(0, SPREAD["item"], ITEMS)
        self.item_level = draw.normal(0, SPREAD["item × condition"], (2, ITEMS, many))
        self.item_model = draw.normal(0, SPREAD["item × model"], (ITEMS, machines))
        self.cell = draw.normal(0, 0.2, (ITEMS, machines, many))

    def machine_of(self, session: Index) -> Index:
        """Return which language model has a session, by its number; every second session is a person's."""
        return session // 2 % self.machines

    def log_odds(self, session: Index, item: Index, level: Index) -> Array:
        """Log odds of a right answer, shape (rows,): each condition takes 0.3 more than the one before."""
        person, model = session % 2 == 0, self.machine_of(session)
        own = np.where(
            person,
            self.reader[session] + self.reader_level[session, level],
            self.model[model]
            + self.session[session]
            + self.item_model[item, model]
            + self.cell[item, model, level],
        )
        return np.asarray(
            1.5 - 0.3 * level + own + self.item[item] + self.item_level[person.astype(int), item, level]
        )


def write_study(folder: Path, trials: int, machines: int = MACHINES, conditions: int = len(LEVELS)) -> None:
    """Write the handover of people and models that answered so many trials, with raw replies and keys as runs write them."""
    draw, truth = np.random.default_rng(7), Truth(trials // ITEMS + 1, machines, conditions)
    levels = LEVELS[:conditions]
    writer: pq.ParquetWriter | None = None
    for start in range(0, trials, PART):
        many = min(PART, trials - start)
        place = np.arange(start, start + many)
        session = place // ITEMS
        person = session % 2 == 0
        # each list of a person, and of a model's sessions, moves every item to its next condition
        turn = session // 2 // np.where(person, 1, machines)
        level = (place + turn) % conditions
        eta = truth.log_odds(session, place % ITEMS, level)
        right = draw.random(many) < 1 / (1 + np.exp(-eta))
        rows = pd.DataFrame(
            {
                **OWN,
                "session_id": [f"session-{one:08d}" for one in session],
                "reader_kind": np.where(person, "human", "model"),
                "reader": np.where(person, [f"P{one:05d}" for one in session], [f"model-{one}" for one in truth.machine_of(session)]),
                "list_id": turn % conditions + 1,
                "trial_index": place % ITEMS,
                "item_id": [f"s{one:03d}" for one in place % ITEMS],
                "text": np.array(levels)[level],
                "response": np.where(right, "yes", "no"),
                "response_raw": [f"The answer, I think after {one} words, is this one" for one in place],
                "work_key": [f"{one:064x}" for one in place],
                "label_logprobs": [json.dumps({"yes": -0.1 * (one % 97), "no": -2.5}) for one in place],
                "response_status": np.where(draw.random(many) < 0.98, "valid", "timeout"),
                "correct": right,
                "rt": np.where(person, np.exp(draw.normal(7.2 - 0.2 * eta, 0.4)), np.nan),
                "temperature": np.where(person, np.nan, 0.7),
                "prompt_tokens": np.where(person, np.nan, 80.0 + place % 30),
                "created_at": [f"2026-11-22T10:00:00.{one % 1000:03d}Z" for one in place],
            }
        )  # fmt: skip
        table = pa.Table.from_pandas(rows, preserve_index=False)
        writer = writer or pq.ParquetWriter(folder / "trials.parquet", table.schema)
        writer.write_table(table.cast(writer.schema))
    assert writer is not None
    writer.close()
    items = [
        {
            "item_id": f"s{n:03d}",
            "set": "sentences",
            "role": "test",
            "text": level,
            "choices": '["yes", "no"]',
        }
        for n in range(ITEMS)
        for level in levels
    ]
    pd.DataFrame(items).to_parquet(folder / "items.parquet")
    dictionary = {"study": "large", "factors": {"text": {"levels": levels, "reference": "intact"}}}
    (folder / "dictionary.json").write_text(json.dumps(dictionary), "utf-8")


def steps(folder: Path, name: str) -> Callable[[], Any]:
    """Return a step to measure in a process of its own."""
    from analysis import load
    from analysis.exclusions import flow_steps
    from analysis.measures.accuracy import accuracy, with_chance
    from analysis.measures.retention import cost_ratios

    def measured() -> Any:
        tables = load(folder)
        if name == "load":
            return tables
        if name == "flow":
            return flow_steps(tables.trials)
        if name == "accuracy":
            return accuracy(with_chance(tables.trials, tables.items, tables.factors), ["text"])
        return cost_ratios(tables.trials, "text", intact="intact")

    return (lambda: pd.read_parquet(folder / "trials.parquet")) if name == "pandas" else measured


def measure(folder: Path, name: str) -> tuple[float, float]:
    """Return seconds and peak megabytes of a step in a fresh process, imports included in the memory."""
    code = f"from tests.benchmarks.bench_analysis import own; own({str(folder)!r}, {name!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def own(folder: str, name: str) -> None:
    """Run a step and print its seconds and the peak megabytes of this process."""
    step = steps(Path(folder), name)
    begun = time.perf_counter()
    kept = step()
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    del kept
    print(seconds, peak)


def main(given: list[str]) -> None:
    """Print the table."""
    print(f"{'trials':>10}  {'step':<28}{'seconds':>9}{'peak MB':>9}")
    names = {
        "pandas": "pandas reads all columns",
        "load": "load",
        "flow": "load, flow of exclusions",
        "accuracy": "load, accuracy three ways",
        "cost": "load, token ratios",
    }
    for trials in [int(one) for one in given] or [100_000, 1_000_000]:
        with tempfile.TemporaryDirectory() as place:
            write_study(Path(place), trials)
            for name, told in names.items():
                seconds, megabytes = measure(Path(place), name)
                print(f"{trials:>10,}  {told:<28}{seconds:>9.1f}{megabytes:>9.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
