"""Requests per second and processor time through an API: wrods with every record stored, beside three peers.

``python tests/benchmarks/bench_api.py [--at-once 50 200 1000] [--peers DIR] [--rounds 3]``. A scripted server answers
after 200 ms in a process of its own; each client runs in a process of its own, in turn. wrods keeps its window, counts and
label bounds, writes intent and raw reply of each call to the journal, and then trial, call and score to SQLite before it counts
(all with ``synchronous=FULL``); the others keep their answers in memory, Inspect in its log. lm-evaluation-harness and Inspect
are installed into environments that are thrown away, or found in ``DIR/lmeval`` and ``DIR/inspect``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from collections import deque
from collections.abc import Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tests" / "benchmarks"))

import api_peers  # noqa: E402

REQUIREMENTS = {"lm-eval": ["lm_eval[api]==0.4.13"], "inspect": ["inspect-ai==0.3.285", "openai"]}
COUNTS = {
    50: {"wrods": 1000, "bare": 1000, "lm-eval": 500, "inspect": 200},
    200: {"wrods": 3000, "bare": 3000, "lm-eval": 1000, "inspect": 400},
    1000: {"wrods": 6000, "bare": 6000, "lm-eval": 2000, "inspect": 1000},
}
"""Requests of each client, by how many run at once: few where a client is slow."""

NAMES = {
    "wrods": "wrods, every record stored",
    "wrods-memory": "wrods, replies in memory",
    "bare": "AsyncOpenAI (aiohttp transport)",
    "lm-eval": "lm-eval local-chat-completions",
    "inspect": "Inspect openai-api",
}


@contextmanager
def scripted_server(*arguments: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Run the scripted server in its own process; what it met stands in the dictionary afterwards."""
    program = str(ROOT / "tests" / "benchmarks" / "api_server.py")
    met: dict[str, Any] = {}
    with subprocess.Popen(
        [sys.executable, program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), met
        rest, _ = process.communicate("")
        met.update(json.loads(rest))


def environments(folder: Path | None, made_in: Path, wanted: Collection[str]) -> dict[str, str]:
    """Return the Python of each wanted peer: found, or made anew."""
    pythons = {"wrods": sys.executable, "wrods-memory": sys.executable, "bare": sys.executable}
    for name, needs in REQUIREMENTS.items():
        if name not in wanted:
            continue
        place = (folder or made_in) / name.replace("-", "")
        if not (place / "bin" / "python").exists():
            venv.create(place, with_pip=True)
            subprocess.run([place / "bin" / "python", "-m", "pip", "install", "-q", *needs], check=True)
        pythons[name] = str(place / "bin" / "python")
    return pythons


def ask(name: str, python: str, url: str, count: int, at_once: int, *rest: str) -> dict[str, Any]:
    """Run one client in its own process and return what it says."""
    program = (
        [str(Path(__file__)), "--client", name]
        if name.startswith("wrods")
        else [str(ROOT / "tests" / "benchmarks" / "api_peers.py"), name]
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [python, *program, url, str(count), str(at_once), *rest],
        capture_output=True, text=True, env=environment, timeout=1800,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def wrods(
    url: str, count: int, at_once: int, seconds: float | None, *, stored: bool = True
) -> dict[str, Any]:
    """Our own engine, its places open from the start, one durable write a reply in groups."""
    from experiment.models import Message, ModelSettings, Request
    from experiment.models.api.engine import ApiEngine
    from experiment.models.api.sending import Limiter
    from experiment.models.journal import Journal, JournaledRun, ModelCalls

    options = {"base_url": url, "concurrency": at_once, **({} if seconds is None else {"timeout": seconds})}
    engine = ApiEngine(ModelSettings("openai:m", options), limiter=Limiter(start=at_once, cap=at_once))
    requests = (
        Request(f"k{number}", (Message("user", api_peers.prompt(number)),), ("A", "B"), 8, 0.0, number)
        for number in range(count)
    )
    engine.probe()

    def work(keep: _Records | None) -> dict[str, Any]:
        statuses = []
        for reply in engine.answer(requests):
            statuses.append(reply.status)
            if keep is not None:
                keep.add(reply)
        if keep is not None:
            keep.finish()
        good = statuses.count("answered")
        return {"answered": good, "faults": len(statuses) - good, "ended": "as it should"}

    with tempfile.TemporaryDirectory() as folder:
        records = _Records(Path(folder)) if stored else None
        journal = Journal(Path(folder)) if stored else None
        if journal is not None:
            engine.calls = ModelCalls(run=JournaledRun.begin(journal, "bench", "r", "m"))
        found = api_peers.timed(lambda: work(records))
        if journal is not None:
            journal.close()
        if records is not None:
            records.check()
    return {**found, "tries": engine.describe()["failed_tries"]}


class _Records:
    """Stores each reply as a run does: trial, call and score in one transaction, in groups."""

    def __init__(self, folder: Path) -> None:
        from experiment.integrity.build_provenance import ensure_version
        from experiment.scoring.trial import score_trial
        from experiment.store import open_store, records

        self.records = records
        self.score_trial = score_trial
        self.store = open_store(folder / "study.db")
        self.rows = 0
        self.writes: deque[Future[Any]] = deque()
        plan = {
            "study": "bench", "version": 1, "design_hash": "x", "list_id": 1, "label_map": {}, "prompt_variant": 1,
            "replicate": 1, "context": "independent", "screens": [],
        }  # fmt: skip
        self.store.write(
            lambda connection: ensure_version(connection, "bench", "x", "{}", new_version=False)
        ).result()
        self.store.write(
            lambda connection: records.create_session(
                connection, plan, reader_kind="model", reader="m", session_id="s", run_id="r"
            )
        ).result()

    def add(self, reply: Any) -> None:
        """Hand one reply to the writer; wait where it falls far behind."""
        records = self.records
        trial = _trial(self.rows)
        self.rows += 1
        place = {"session_id": "s", "trial_index": trial["trial_index"], "attempt": 1}
        counts = {
            name: getattr(reply, name)
            for name in ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "path")
        }
        verdict = self.score_trial(trial, reply.text, reply_status=reply.status)
        created = records.now()
        call = {
            **place, **counts, "request_key": reply.work_key, "work_key": reply.work_key, "run_id": "r",
            "request": {"messages": []}, "text": reply.text, "status": reply.status, "finish_reason": reply.finish_reason,
            "requested_model": reply.requested_model, "resolved_model": reply.resolved_model, "error": reply.error,
            "attempts": reply.attempts, "temperature": 0.0, "seed": 1, "created_at": created,
        }  # fmt: skip
        row = {
            **records.planned_columns(trial), **place, **counts, "work_key": reply.work_key, "response_raw": reply.text,
            "temperature": 0.0, "seed": 1, "plugin_version": "wrods bench", "created_at": created,
        }  # fmt: skip

        def write(connection: Any) -> None:
            records.store_trial(connection, row, verdict=verdict)
            records.store_call(connection, call)

        self.writes.append(self.store.write(write))
        while len(self.writes) > 2048 or (self.writes and self.writes[0].done()):
            self.writes.popleft().result()

    def finish(self) -> None:
        """Wait for the disk."""
        for future in self.writes:
            future.result()

    def check(self) -> None:
        """See that all is on the disk."""
        from sqlalchemy import text

        with self.store.read() as connection:
            held = connection.execute(text("SELECT count(*) FROM calls")).scalar()
        if held != self.rows:
            raise SystemExit(f"{self.rows} replies, {held} stored")
        self.store.close()


def _trial(index: int) -> dict[str, Any]:
    step = {
        "step": "choose", "caption": None, "text": "Which?", "ask": None, "labels": ["A", "B"], "responses": ["A", "B"],
        "options": None, "keys": ["f", "j"], "time_limit_ms": None,
    }  # fmt: skip
    return {
        "trial_index": index, "block": "b", "item_id": f"i{index}", "set": "words", "condition": {}, "trial_type": "choose",
        "is_practice": False, "is_filler": False, "is_attention_check": False, "answer": "A", "shown": {}, "intact": {},
        "exemplars": [], "choice_order": [0, 1], "fixation_ms": 0, "interval_ms": 0, "steps": [step],
    }  # fmt: skip


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at-once", type=int, nargs="+", default=[50, 200, 1000])
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(NAMES))
    given = parser.parse_args()
    print("| at once | client | requests | requests/s (range) | of 5 x at once/s | CPU-s per 1000 |")
    print("| --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as made_in:
        pythons = environments(given.peers, Path(made_in), given.only)
        for at_once in given.at_once:
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in given.only}
            with scripted_server("--latency", "0.2") as (url, _):
                for one in range(given.rounds):
                    for name in given.only:
                        if one and name in REQUIREMENTS:
                            continue
                        count = COUNTS[at_once].get(name, COUNTS[at_once]["wrods"])
                        found[name].append({**ask(name, pythons[name], url, count, at_once), "count": count})
            for name, rounds in found.items():
                rates = [one["count"] / one["wall"] for one in rounds]
                cpu = statistics.median(1000 * one["cpu"] / one["count"] for one in rounds)
                rate = statistics.median(rates)
                spread = f" ({min(rates):.0f} to {max(rates):.0f})" if len(rates) > 1 else ""
                share = f"{100 * rate / (5 * at_once):.0f}%"
                print(
                    f"| {at_once} | {NAMES[name]} | {rounds[0]['count']} | {rate:.0f}{spread} | {share} | {cpu:.2f} |",
                    flush=True,
                )
                if any(one["answered"] != one["count"] for one in rounds):
                    print(f"  not all answered: {rounds}")


if __name__ == "__main__":
    if "--client" in sys.argv:
        name, url, count, at_once, *rest = sys.argv[2:]
        seconds = float(rest[0]) if rest else None
        outcome = wrods(url, int(count), int(at_once), seconds, stored=name == "wrods")
        missing = int(count) - outcome["answered"] - outcome["faults"]
        print(json.dumps({**outcome, "missing": missing}))
    else:
        main()
