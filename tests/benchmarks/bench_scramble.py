"""Scrambles: words per second of each type beside nlpaug (and TextAttack, asked for) on the same sentences in one run.

``make bench`` or ``python tests/benchmarks/bench_scramble.py [--textattack]``. Peers run in an environment of their own
that the program makes with pip and throws away. Ours makes the permutation records, theirs has none. The second table
holds time and peak memory of one stream of up to ten million words. Texts are BoolQ passages cut into sentences, from
``../shared/data/boolq`` or from a JSONL file given with ``--texts`` (field ``passage``).
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from stimuli.scramble.conditions import ScrambleSettings  # noqa: E402
from stimuli.scramble.sentences import find_sentences  # noqa: E402
from stimuli.scramble.text import scramble_stream  # noqa: E402
from stimuli.scramble.types import parse_operation, scramble_types  # noqa: E402
from stimuli.words import nfc, word_starts  # noqa: E402

ROUNDS = 5
SENTENCES = 8_000
CHECKED = ", no real words"
STREAMED = (1_000_000, 3_000_000, 10_000_000)
STREAM_TYPES = ("keep:first_and_last", "insert:internal")
# TextAttack leaves the versions of what it needs open, and does not import with the newest of them.
PEERS = {
    "nlpaug": ("nlpaug==1.1.11",),
    "textattack": ("textattack==0.3.10", "transformers==4.51.3", "flair==0.15.1", "datasets==3.6.0"),
}
PEER_TEXTS = {"textattack": 50}  # it reads a few hundred words a second
MORE = (
    "exchange:internal(count=2)",
    "substitute:internal(count=1)",
    "shuffle:all(spaced=true)",
    f"shuffle:all{CHECKED}",
    f"transpose:internal{CHECKED}",
)


def sentences_of(file: Path) -> list[str]:
    found = []
    for line in file.read_text("utf-8").splitlines():
        passage = nfc(json.loads(line)["passage"])
        found += [passage[span.begin : span.end] for span in find_sentences(passage, "en")]
    return found


def ours(kind: str, file: Path) -> float:
    """Time one type in a process of its own, which has met other sentences of the same making before."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", kind, str(file)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def one(kind: str, file: Path) -> None:
    """Scramble the sentences of a JSON file and print the processor seconds of the timed ones."""
    texts = json.loads(file.read_text("utf-8"))
    operation = parse_operation(kind.removesuffix(CHECKED))
    settings = ScrambleSettings(avoid_real_words=kind.endswith(CHECKED))
    for _ in scramble_stream(texts["before"], operation, seed=1, settings=settings):
        pass
    began = time.process_time()
    results = scramble_stream(texts["timed"], operation, seed=1, settings=settings)
    changed = sum(len(result.changes) for result in results)
    seconds = time.process_time() - began
    assert changed or operation.type.unit == "sentence"
    print(seconds)


class Peer:
    """A peer in an environment of its own; ``missing`` says why it could not be installed."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.missing = name, ""
        environment = folder / name
        venv.create(environment, with_pip=True)
        self.python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        pip = [
            str(self.python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *PEERS[name],
        ]
        try:
            done = subprocess.run(pip, capture_output=True, text=True, timeout=1_800, check=False)
        except subprocess.TimeoutExpired:
            self.missing = "pip took more than half an hour"
        else:
            if done.returncode:
                self.missing = (done.stderr.strip().splitlines() or ["pip failed"])[-1]

    def seconds(self, texts: Path) -> dict[str, float]:
        """Return the processor seconds of each of its scrambles, for the first ``PEER_TEXTS`` of the texts or all."""
        if self.missing:
            return {}
        program = Path(__file__).with_name("scramble_peers.py")
        done = subprocess.run(
            [str(self.python), str(program), self.name, str(texts), str(PEER_TEXTS.get(self.name, ""))],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            self.missing = (done.stderr.strip().splitlines() or ["it failed"])[-1]
            return {}
        return dict(json.loads(done.stdout.splitlines()[-1]))


def speeds(texts: list[str], names: list[str], wanted: list[str]) -> None:
    kinds = wanted or [
        kind.name.replace(":N", ":3") for kind in scramble_types().values() if kind.name != "none"
    ]
    kinds += [kind for kind in MORE if kind not in kinds and not wanted]
    before, texts = texts[: len(texts) // 2], texts[len(texts) // 2 :]
    words = sum(len(word_starts(text)) for text in texts)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.json"
        file.write_text(json.dumps({"before": before, "timed": texts}), "utf-8")
        peers = [Peer(name, Path(folder)) for name in names]
        rounds: list[list[dict[str, float]]] = []
        for _ in range(ROUNDS):
            rounds.append(
                [{kind: ours(kind, file) for kind in kinds}, *[peer.seconds(file) for peer in peers]]
            )
    print(
        f"{len(texts):,} sentences, {words:,} words; processor seconds, best of {ROUNDS} rounds in turn; each type has met as many "
        "other sentences before. Ours with permutation records and, where nothing else is said, without looking for real words, "
        "as the peers.\n"
    )
    for peer in peers:
        if peer.missing:
            print(f"{peer.name} is not here: {peer.missing}\n")
    columns = "".join(f" | {name} | wrods / {name}" for name in names)
    print(f"| scramble | wrods, words/s{columns} |")
    print("| --- | --- |" + " --- | --- |" * len(names))
    read = [sum(len(word_starts(text)) for text in texts[: PEER_TEXTS.get(name)]) for name in names]
    for kind in kinds:
        mine = words / min(times[0][kind] for times in rounds)
        cells = []
        for place in range(1, 1 + len(names)):
            taken = [times[place][kind] for times in rounds if kind in times[place]]
            if taken:
                theirs = read[place - 1] / min(taken)
                cells.append(f" {theirs:,.0f} | {mine / theirs:,.1f} |")
            else:
                cells.append(" – | – |")
        print(f"| {kind} | {mine:,.0f} |" + "".join(cells))


def endless(sentences: list[str], words: int) -> Iterator[str]:
    """Yield lines of two drawn sentences, hardly any of them twice, until so many words."""
    draw = random.Random(1)
    counted = [(text, len(word_starts(text))) for text in sentences]
    while words > 0:
        (one, n), (other, m) = draw.choice(counted), draw.choice(counted)
        words -= n + m
        yield f"{one} {other}"


def stream(file: Path, kind: str, words: int) -> None:
    """Scramble so many words and print seconds and peak memory as JSON; run in a process of its own."""
    import resource

    sentences = sentences_of(file)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, lines = time.process_time(), 0
    for result in scramble_stream(endless(sentences, words), kind, seed=1):
        lines += 1
        assert result.text
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([time.process_time() - began, before / 1024, peak / 1024, lines]))


def memory(file: Path) -> None:
    print("\n| stream | million words | lines | seconds | words/s | peak MB | before the stream |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for kind in STREAM_TYPES:
        for words in STREAMED:
            program = [sys.executable, __file__, "--texts", str(file), "--stream", kind, str(words)]
            done = subprocess.run(program, capture_output=True, text=True, check=True)
            seconds, before, peak, lines = json.loads(done.stdout)
            print(
                f"| {kind} | {words / 1e6:g} | {lines:,} | {seconds:.0f} | {words / seconds:,.0f} | {peak:.0f} | {before:.0f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, default=ROOT.parent / "shared/data/boolq/boolq_subset.jsonl")
    parser.add_argument(
        "--textattack", action="store_true", help="install TextAttack too: it brings PyTorch along"
    )
    parser.add_argument("--only", choices=["speed", "memory"])
    parser.add_argument("--types", nargs="+", default=[], metavar="TYPE", help="time these types only")
    parser.add_argument("--stream", nargs=2, metavar=("TYPE", "WORDS"), help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=2, metavar=("TYPE", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one[0], Path(given.one[1]))
        return
    if given.stream:
        stream(given.texts, given.stream[0], int(given.stream[1]))
        return
    if not given.texts.is_file():
        print(f"no texts at {given.texts}: give a JSONL file with a field passage (--texts FILE)")
        return
    if given.only != "memory":
        names = ["nlpaug", *(["textattack"] if given.textattack else [])]
        speeds(sentences_of(given.texts)[:SENTENCES], names, given.types)
    if given.only != "speed":
        memory(given.texts)


if __name__ == "__main__":
    main()
