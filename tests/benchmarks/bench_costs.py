"""Seconds and peak memory of the word-level costs as the number of regions grows.

Run with ``python -m tests.benchmarks.bench_costs [regions …]``. Each row is a process of its own. A study has 60 items of 12 words
in four conditions; people read each item once, a model has all of them.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.analysis.letter_study import LEVELS, study_rows, write_handover
from tests.analysis.word_study import TARGETS, WORDS, shown_words, word_costs

ITEMS = 60
PARTS = ("unit_costs", "spill_over", "linking")


def write(folder: Path, regions: int) -> None:
    """Write a study with about that many regions of people."""
    draw = np.random.default_rng(1)
    people = max(8, regions // (ITEMS * len(WORDS)))
    trials = study_rows(human=people, models=("m",), items=ITEMS, timeouts=0)
    trials = trials[~trials["is_practice"]].reset_index(drop=True)
    write_handover(folder, trials)
    shown = {level: shown_words(level) for level in LEVELS}
    costs = {level: word_costs(level) for level in LEVELS}
    bits = draw.gamma(4, 1.5, (ITEMS, len(WORDS)))
    writer = None
    for start in range(0, len(trials), 20_000):
        part = trials.iloc[start : start + 20_000]
        many, long = len(part), len(WORDS)
        item = part["item_id"].str[1:].astype(int).to_numpy() - 1
        person = np.repeat((part["reader_kind"] == "human").to_numpy(), long)
        mean = 320 + np.concatenate([costs[level] for level in part["position"]])
        table = pa.table(
            {
                "session_id": np.repeat(part["session_id"].to_numpy(dtype=str), long),
                "trial_index": np.repeat(part["trial_index"].to_numpy(dtype=int), long),
                "attempt": np.ones(many * long, dtype=int),
                "region": np.tile(np.arange(long), many),
                "shown": [word for level in part["position"] for word in shown[level]],
                "intact": WORDS * many,
                "is_changed": [
                    n in TARGETS and lv != "intact" for lv in part["position"] for n in range(long)
                ],
                "rt": pa.array(np.where(person, draw.gamma(16, mean / 16), np.nan), from_pandas=True),
                "surprisal": pa.array(np.where(person, np.nan, bits[item].ravel()), from_pandas=True),
            }
        )
        writer = writer or pq.ParquetWriter(folder / "regions.parquet", table.schema)
        writer.write_table(table, row_group_size=65_536)
    assert writer is not None
    writer.close()


def measure(folder: Path, part: str) -> None:
    """Print seconds and peak memory of one part, beyond what loading the trials took."""
    from analysis import costs, load

    tables = load(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    getattr(costs, part)(tables, "position")
    seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{part:12} {seconds:8.1f} s {before / 1024:8.0f} MB loaded {after / 1024:8.0f} MB peak", flush=True
    )


def main(sizes: list[int]) -> None:
    """Measure every part at every size."""
    for regions in sizes:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            write(folder, regions)
            known = pd.read_parquet(folder / "regions.parquet", columns=["region"])
            print(f"{len(known):,} regions", flush=True)
            for part in PARTS:
                subprocess.run([sys.executable, "-m", __spec__.name, "--one", place, part], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        measure(Path(sys.argv[2]), sys.argv[3])
    else:
        main([int(one) for one in sys.argv[1:]] or [100_000, 1_000_000])
