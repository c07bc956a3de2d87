"""CPU seconds and memory for hidden states of every layer: wrods beside a plain loop over transformers that stacks them.

Run ``python tests/benchmarks/bench_states.py [--prompts 500,2000] [--tokens 300]``. Both keep the states of the last token and
their mean over the prompt, of prompts that begin alike (instructions and worked examples) and end in an item of their own. The
plain loop is what a script does: batches of 16, ``output_hidden_states=True``, each layer's states masked, averaged and
appended, and one array saved at the end. Ours goes through the local engine and the writer of a run (16-bit memory maps,
durable as it goes). Each is measured in a process of its own, in turn; process CPU time and the most memory beyond what the
loaded model takes. Loading is counted for neither. The model is random, so the figures are of speed alone. One thread.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

ROUNDS, BATCH, SIZE = 3, 16, 30


def prompts_of(count: int, tokens: int) -> list[str]:
    """Return prompts of roughly so many tokens: nine tenths common to all."""
    from wordfreq import top_n_list

    from stimuli.seeds import generator

    words = top_n_list("en", 3000)[200:]
    common = " ".join(generator("bench states", 0).choices(words, k=tokens * 9 // 10))
    return [
        f"{common}. {' '.join(generator('bench states', n + 1).choices(words, k=tokens // 10))}?"
        for n in range(count)
    ]


def ours(model: Path, prompts: list[str], out: Path) -> Callable[[], float]:
    from experiment.models import Message, ModelSettings, Request
    from experiment.models.local import LocalEngine
    from experiment.models.states import StateWriter, read_layer

    engine = LocalEngine(ModelSettings(f"hf:{model}", {}, ROOT))
    requests = [
        Request(str(n), (Message("user", text),), ("A", "B"), 8, 0.0, 1, states=("last", "mean"))
        for n, text in enumerate(prompts)
    ]
    list(engine.answer([replace(requests[0], work_key="first")]))

    def measured() -> float:
        with StateWriter(out) as writer:
            for reply in engine.answer(requests):
                writer.add(reply.work_key, reply.states)
        return float(read_layer(out, 4)[:, 0].astype(float).sum())

    return measured


def plain(model: Path, prompts: list[str], out: Path) -> Callable[[], float]:
    import numpy as np
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(model), padding_side="left")
    network = AutoModelForCausalLM.from_pretrained(str(model)).eval()
    ordered = sorted(prompts, key=len)

    def measured() -> float:
        last, mean = [], []
        for start in range(0, len(ordered), BATCH):
            given = tokenizer(ordered[start : start + BATCH], return_tensors="pt", padding=True)
            given.pop("token_type_ids", None)
            with torch.inference_mode():
                hidden = network(**given, output_hidden_states=True).hidden_states
            stacked = torch.stack(hidden)
            seen = given["attention_mask"][None, :, :, None]
            last.append(stacked[:, :, -1].numpy().copy())
            mean.append(((stacked * seen).sum(2) / seen.sum(2)).numpy())
        states = [np.concatenate(parts, axis=1) for parts in (last, mean)]
        np.save(out.with_suffix(".npy"), np.stack(states).astype(np.float16))
        return float(sum(one[4, :, 0].astype(float).sum() for one in states))

    return measured


METHODS = {"wrods": ours, "plain loop": plain}


def most_memory() -> float:
    """Return the most memory that this process has had, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(method: str, model: Path, count: int, tokens: int) -> dict[str, float]:
    """Run one method in this process."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        run = METHODS[method](model, prompts_of(count, tokens), Path(folder) / "states")
        before, started = most_memory(), time.process_time()
        total = run()
        return {"cpu": time.process_time() - started, "mb": most_memory() - before, "sum": total}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", default="500,2000")
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        method, model, count = given.one.split("|")
        print(json.dumps(measure(method, Path(model), int(count), given.tokens)))
        return
    from tests.benchmarks.bench_local import model_folder

    print(
        f"{SIZE} M random Llama, 8 layers of 512, prompts of about {given.tokens} words, nine tenths common; "
        "ratios are method / wrods\n"
    )
    print(
        "| prompts | method | CPU-s | ms a prompt | memory beyond the model (MB) | CPU ratio | memory ratio |"
    )
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        model = model_folder(Path(folder), SIZE)
        for count in map(int, given.prompts.split(",")):
            found: dict[str, list[dict[str, float]]] = {name: [] for name in METHODS}
            for _ in range(given.rounds):
                for name in METHODS:
                    command = [
                        sys.executable,
                        __file__,
                        "--tokens",
                        str(given.tokens),
                        "--one",
                        f"{name}|{model}|{count}",
                    ]
                    done = subprocess.run(command, capture_output=True, text=True, check=True)
                    found[name].append(json.loads(done.stdout.splitlines()[-1]))
            sums = [found[name][0]["sum"] for name in METHODS]
            if abs(sums[0] - sums[1]) > 0.02 * max(1.0, abs(sums[1])):
                raise SystemExit(f"the methods disagree: {sums}")
            cpu, mb = (
                {n: statistics.median(one[what] for one in own) for n, own in found.items()}
                for what in ("cpu", "mb")
            )
            for name in METHODS:
                print(
                    f"| {count:,} | {name} | {cpu[name]:.1f} | {1000 * cpu[name] / count:.1f} | {mb[name]:.0f} | "
                    f"{cpu[name] / cpu['wrods']:.1f} | {mb[name] / mb['wrods']:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
