"""A million planned trials: how long planning and resuming take, in how much memory, and how fast replies become durable.

    python tests/benchmarks/bench_runs.py [--trials 1000000] [--answered 5000]

Each row is measured in a process of its own, whose greatest resident size is told beside it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.models.engines import BaselineEngine
from experiment.models.planning import ModelSession
from experiment.models.runs import CommandLimits, CommandRun, RunOptions, sessions_of, settings_of, version_of
from experiment.models.runs.remaining_work import survey
from experiment.store import Store, open_store, records
from experiment.store.store import RUN_GROUP_MS
from experiment.store.tables import sessions, trials
from experiment.study import Study

USE = "baseline:always_a"
READER = "guesser"
PER_REPLICATE = 480
CHUNK = 100


def make_study(folder: Path, wanted: int) -> None:
    """Write the letter-position study with as many replicates as the number of trials takes."""
    copy_template("letter-position", folder)
    file = folder / "study.yaml"
    text = file.read_text("utf-8").replace(
        "  prompt_variants: 5", f"  prompt_variants: 5\n  replicates: {-(-wanted // PER_REPLICATE)}"
    )
    file.write_text(text.replace("baseline:random", USE), "utf-8")
    build_study(load_study(folder))


def plan_of(study: Study, store: Store) -> Callable[[], Any]:
    """Return what gives the sessions of the model."""
    settings = settings_of(study, {"use": USE})
    return sessions_of(study, READER, settings, BaselineEngine(settings), store, version_of(study, store))


def planning(folder: Path) -> dict[str, Any]:
    """Plan everything and compare it with the store."""
    study = load_study(folder)
    with open_store(folder) as store:
        plan = plan_of(study, store)
        began, cpu = time.perf_counter(), time.process_time()
        found = survey(plan(), store)
        return {
            "trials": found.planned, "stored": found.stored, "sessions": found.sessions,
            "seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu,
        }  # fmt: skip


def fill(folder: Path) -> dict[str, Any]:
    """Store all trials but those of the last ten sessions, without calls and scores, as an earlier run would have left them."""
    study = load_study(folder)
    with open_store(folder) as store:
        total = survey(plan_of(study, store)(), store).sessions
        plan = iter(islice(plan_of(study, store)(), total - 10))
        while some := list(islice(plan, CHUNK)):
            store.write(lambda connection, some=some: _fill(connection, some)).result()
    return {}


def _fill(connection: Any, some: list[ModelSession]) -> None:
    moment = records.now()
    common = {
        "created_at": moment,
        "received_at": moment,
        "timed_out": False,
        "payload_hash": "",
        "attempt": 1,
    }
    flags = {"is_practice": False, "is_filler": False, "is_attention_check": False}
    for one in some:
        records.create_session(
            connection,
            {**one.plan, "screens": []},
            reader_kind="baseline",
            reader=READER,
            session_id=one.session_id,
        )
        connection.execute(
            sessions.update().where(sessions.c.session_id == one.session_id).values(state="finished")
        )
        connection.execute(
            trials.insert(),
            [
                {
                    **common, **flags, "session_id": one.session_id, "trial_index": trial["trial_index"], "work_key": key,
                    "item_id": trial["item_id"], "trial_type": trial["trial_type"], "response_raw": "Yes",
                }
                for trial, key in zip(one.trials, one.keys, strict=True)
            ],
        )  # fmt: skip


def answering(folder: Path, count: int) -> dict[str, Any]:
    """Have a reader that takes no time answer, each reply with call, trial and score on disk."""
    study = load_study(folder)
    with open_store(folder, group_ms=RUN_GROUP_MS) as store:
        run = CommandRun(
            study, store, RunOptions(version=version_of(study, store), limits=CommandLimits(trials=count))
        )
        began, cpu = time.perf_counter(), time.process_time()
        (outcome,) = run.run({READER: {"use": USE}})
        return {
            "trials": outcome.answered, "seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu,
            "sessions": outcome.sessions, "stored": outcome.stored_before,
        }  # fmt: skip


def _measured(work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], pipe: Any) -> None:
    found = work(*arguments)
    pipe.send({**found, "megabytes": peak_megabytes()})


def peak_megabytes() -> float:
    """Return the greatest resident size of this process; Linux counts that of its parent too, unless asked elsewhere."""
    try:
        lines = Path("/proc/self/status").read_text("utf-8").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def measured(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Do something in a fresh process, and return what it found with the greatest memory it took."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_measured, args=(work, arguments, there))
    process.start()
    found: dict[str, Any] = here.recv()
    process.join()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1_000_000)
    parser.add_argument("--answered", type=int, default=5000)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        small, large = Path(place) / "small", Path(place) / "large"
        make_study(small, max(PER_REPLICATE, given.trials // 100))
        make_study(large, given.trials)
        rows.append(("planning a hundredth", measured(planning, small)))
        rows.append(("planning all", measured(planning, large)))
        rows.append(("answering some", measured(answering, small, given.answered)))
        measured(fill, large)
        rows.append(("resuming, all but ten sessions stored", measured(planning, large)))
    print("| what | trials | sessions | stored | seconds | processor seconds | peak memory, MB |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, row in rows:
        print(
            f"| {name} | {row['trials']:,} | {row['sessions']:,} | {row['stored']:,} | {row['seconds']:.1f} | "
            f"{row['cpu']:.1f} | {row['megabytes']:.0f} |"
        )
    print(json.dumps(dict(rows)), file=sys.stderr)


if __name__ == "__main__":
    main()
