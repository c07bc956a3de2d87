"""How long a million planned trials take, in how much memory: planning alone, and a resume that finds everything stored.

2,500 sentences in four conditions on four lists, five prompt wordings, twenty replicates: 400 sessions of 2,500 trials. Run
by ``make bench``, or ``python tests/benchmarks/bench_planning.py [--context session]``.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from experiment.checking import load_study  # noqa: E402
from experiment.models import ModelSettings  # noqa: E402
from experiment.models.planning import plan_sessions  # noqa: E402
from stimuli.item import Item, build_meta, write_items  # noqa: E402
from stimuli.seeds import generator  # noqa: E402

SENTENCES, VARIANTS, REPLICATES = 2_500, 5, 20
LEVELS = ("intact", "initial", "internal", "final")
YAML = """\
wrods: 1
study: million
title: A million trials
seed: 7
materials: {{sentences: sentences.csv}}
models:
  context: {context}
  prompt_variants: {variants}
  replicates: {replicates}
  who: {{m: {{use: "hf:m"}}}}
design:
  factors:
    position: {{intact: none, initial: {{transpose: initial}}, internal: {{transpose: internal}}, final: {{transpose: final}}}}
procedure:
  - instructions: instructions.md
  - block:
      trial:
        - read: {{show: sentence}}
        - choose: {{show: question, keys: {{"Yes": j, "No": f}}}}
"""


def items() -> Iterator[Item]:
    """Make sentences of twelve drawn words with a question each, in every condition."""
    draw = generator("bench planning")
    words = ["".join(draw.choices("aeioulnrst", k=draw.randint(3, 9))) for _ in range(2_000)]
    for number in range(SENTENCES):
        sentence = " ".join(draw.choices(words, k=12))
        for level in LEVELS:
            yield Item(
                item_id=f"s{number:04d}",
                set_name="sentences",
                role="test",
                condition={"position": level},
                shown={"sentence": f"{sentence} {level}.", "question": f"Does {sentence[:12]} come?"},
                intact={"sentence": f"{sentence} intact."},
                choices=None,
                answer="Yes" if number % 2 else "No",
                provenance={
                    "source": "drawn", "source_id": None, "split": None, "licence": None, "operation": level, "seed": 7,
                },
                covariates={"words": 12},
            )  # fmt: skip


def peak_mib() -> float:
    """Return the most memory that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print seconds and memory after each replicate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--context", default="independent", choices=("independent", "session"))
    context = parser.parse_args().context
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = YAML.format(context=context, variants=VARIANTS, replicates=REPLICATES)
        (folder / "study.yaml").write_text(text, "utf-8")
        (folder / "instructions.md").write_text("Read each sentence and answer the question. " * 12, "utf-8")
        (folder / "sentences.csv").write_text("item,sentence\n", "utf-8")
        write_items(folder / "items.jsonl", list(items()), build_meta(7))
        study = load_study(folder)
        print(f"{len(study.items):,} item lines read: {peak_mib():.0f} MiB")
        settings = ModelSettings("hf:m", {}, folder)
        for what in ("first plan", "the same again (a resume)"):
            began, keys = time.perf_counter(), 0
            for session in plan_sessions(study, "m", settings, {"model": "m"}):
                for _ in session.keys:
                    keys += 1
                last = session.plan
                if (
                    last["prompt_variant"] == VARIANTS
                    and last["list_id"] == len(LEVELS)
                    and last["replicate"] in (1, 2, 20)
                ):
                    spent = time.perf_counter() - began
                    print(
                        f"  {what}: replicate {last['replicate']:>2}: {keys:>9,} keys, {spent:5.1f} s, {peak_mib():.0f} MiB"
                    )


if __name__ == "__main__":
    main()
