"""CPU seconds an item for H-TEST by local models: the engine of wrods beside naive generation, lm-eval and Inspect.

Run by ``make bench``, or ``python tests/benchmarks/bench_local.py [--peers PYTHON] [--sizes 30,120] [--k 4,14,28,50]``.
``--peers`` names the Python of an environment that holds lm-eval and inspect-ai; without it their columns stay empty.
Models are random, so the figures are of speed alone. One thread; process CPU time; every round measures each method once,
in turn, and the table gives the median of the rounds. Ours includes tokenising and the check of the way at the start; no
figure includes loading.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from experiment.models import Message, ModelSettings, Request  # noqa: E402
from experiment.models.local import LocalEngine  # noqa: E402
from stimuli.recipes.htest import generate  # noqa: E402

SEED, ITEMS, ROUNDS = 20_240, 200, 3
VOCABULARY = 8192
SHAPES = {
    30: {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8, "num_attention_heads": 8},
    120: {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12},
}
NAIVE_ITEMS, PEER_ITEMS, SHORT, LONG = 4, 8, 5, 48


def model_folder(folder: Path, size: int) -> Path:
    """Write a random Llama of some million parameters with a byte-pair tokenizer trained on English."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from wordfreq import top_n_list

    words = top_n_list("en", 30_000)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], initial_alphabet=alphabet
    )
    weighted = (" " + " ".join(words[:n]) for n in (300, 1000, 3000, 10_000, 30_000))
    tokenizer.train_from_iterator(weighted, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>"
    )
    fast.save_pretrained(str(folder))
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, num_key_value_heads=4, max_position_embeddings=4096, bos_token_id=0, eos_token_id=1,
        pad_token_id=1, **SHAPES[size],
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    model.generation_config.eos_token_id = None
    model.save_pretrained(str(folder))
    return folder


def prompts_of(k: int) -> list[str]:
    """Return the prompts of the test items of one task behind ``k`` exemplars."""
    made = generate("end_punctuation", exemplars=k, items=ITEMS, seed=SEED)
    before = "Decide which group a sentence belongs to: A or B.\n\n"
    before += "".join(f"Sentence: {one.text}\nGroup: {one.label}\n\n" for one in made.exemplars)
    return [f"{before}Sentence: {one.text}\nGroup:" for one in made.test]


class Subject:
    """One model with its prompts, measured in several ways."""

    def __init__(self, folder: Path, prompts: list[str], peers: str | None) -> None:
        self.folder, self.prompts, self.peers = folder, prompts, peers
        self.versions: set[str] = set()
        self.tokens = 0
        self.forwarded = 0
        self._naive: tuple[object, object] | None = None

    def ours(self, tokens: int | None) -> float:
        """CPU seconds an item of our engine: labels scored, or so many tokens generated."""
        engine = LocalEngine(ModelSettings(f"hf:{self.folder}", {"device": "cpu"}))
        engine._load().ends = set()
        labels = ("A", "B") if tokens is None else None
        asked = [
            Request(str(n), (Message("user", text),), labels, tokens or 1, 0.0, 1)
            for n, text in enumerate(self.prompts)
        ]
        began = time.process_time()
        replies = list(engine.answer(asked))
        took = time.process_time() - began
        assert len(replies) == len(asked) and all(
            reply.status in ("answered", "truncated") for reply in replies
        )
        if tokens is None:
            self.tokens = sum(reply.prompt_tokens or 0 for reply in replies)
            self.forwarded = int(str(engine.describe()["tokens_forwarded"]))
        return took / len(asked)

    def naive(self, tokens: int) -> float:
        """CPU seconds an item of transformers' own generation, one prompt after the other."""
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        if self._naive is None:
            model = AutoModelForCausalLM.from_pretrained(self.folder, dtype=torch.float32).eval()
            self._naive = AutoTokenizer.from_pretrained(self.folder), model
        tokenizer, model = self._naive
        some = self.prompts[: NAIVE_ITEMS if tokens <= SHORT else 2]
        began = time.process_time()
        for text in some:
            given = tokenizer(text, return_tensors="pt")
            with torch.inference_mode():
                model.generate(
                    given["input_ids"], attention_mask=given["attention_mask"], max_new_tokens=tokens,
                    min_new_tokens=tokens, do_sample=False, pad_token_id=1,
                )  # fmt: skip
        return (time.process_time() - began) / len(some)

    def peer(self, kind: str, tokens: int) -> float | None:
        """CPU seconds an item of a peer, in its own environment and process."""
        if self.peers is None:
            return None
        some = self.prompts[: PEER_ITEMS if tokens <= SHORT else 2]
        job = {"kind": kind, "model": str(self.folder), "prompts": some, "tokens": tokens, "batch": 16}
        script = Path(__file__).with_name("local_peers.py")
        done = subprocess.run(
            [self.peers, str(script)], input=json.dumps(job), capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"  {kind}: {done.stderr.strip().splitlines()[-1][:160]}", file=sys.stderr)
            return None
        said = json.loads(done.stdout.strip().splitlines()[-1])
        self.versions.add(said["version"])
        return float(said["seconds"]) / len(some)


def measured(ways: dict[str, Callable[[], float | None]], rounds: int) -> dict[str, float | None]:
    """Return the median of each way over rounds in which each is measured once, in turn."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            if (seconds := way()) is not None:
                found[name].append(seconds)
    return {name: statistics.median(some) if some else None for name, some in found.items()}


def row(cells: list[str]) -> None:
    """Print a line of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def shown(seconds: float | None, ours: float) -> str:
    """Write seconds and how many times ours they are."""
    return "" if seconds is None else f"{seconds:.3f} ({seconds / ours:.0f}×)"


def main() -> None:
    """Print the tables."""
    import torch
    import transformers

    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--peers", metavar="PYTHON")
    asked.add_argument("--sizes", default="30")
    asked.add_argument("--k", default="4,14,28,50")
    asked.add_argument("--rounds", type=int, default=ROUNDS)
    asked.add_argument("--only", choices=["scored", "generated"])
    chosen = asked.parse_args()
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    sizes, counts = [int(one) for one in chosen.sizes.split(",")], [int(one) for one in chosen.k.split(",")]
    versions = {f"torch {torch.__version__}", f"transformers {transformers.__version__}"}
    print(f"{ITEMS} items of H-TEST, CPU seconds an item, one thread, median of {chosen.rounds} rounds")
    if chosen.only != "generated":
        row(["parameters", "k", "tokens", "of these forwarded", "wrods, labels", f"naive generate, {SHORT} tokens",
             "lm-eval, labels", f"Inspect hf, {SHORT} tokens"])  # fmt: skip
        row(["---:"] * 8)
    with tempfile.TemporaryDirectory() as room:
        folders = {size: model_folder(Path(room) / str(size), size) for size in sizes}
        for size in sizes:
            for k in counts:
                subject = Subject(folders[size], prompts_of(k), chosen.peers)
                if chosen.only == "generated":
                    continue
                found = measured(
                    {
                        "ours": lambda one=subject: one.ours(None),
                        "naive": lambda one=subject: one.naive(SHORT),
                        "lm-eval": lambda one=subject: one.peer("choices", 1),
                        "inspect": lambda one=subject: one.peer("inspect", SHORT),
                    },
                    chosen.rounds,
                )
                ours = found["ours"]
                assert ours is not None
                row([f"{size} M", str(k), str(subject.tokens), f"{subject.forwarded / subject.tokens:.1%}", f"{ours:.4f}",
                     *(shown(found[name], ours) for name in ("naive", "lm-eval", "inspect"))])  # fmt: skip
                versions |= subject.versions
        if chosen.only != "scored":
            print()
            row(["parameters", "k", "wrods", "naive generate", "lm-eval generate_until"])
            row(["---:"] * 5)
            for size in sizes:
                subject = Subject(folders[size], prompts_of(max(counts)), chosen.peers)
                found = measured(
                    {
                        "ours": lambda one=subject: one.ours(LONG),
                        "naive": lambda one=subject: one.naive(LONG),
                        "lm-eval": lambda one=subject: one.peer("texts", LONG),
                    },
                    chosen.rounds,
                )
                ours = found["ours"]
                assert ours is not None
                others = (shown(found[name], ours) for name in ("naive", "lm-eval"))
                row([f"{size} M, {LONG} tokens", str(max(counts)), f"{ours:.4f}", *others])
                versions |= subject.versions
    print("\n" + ", ".join(sorted(versions)))


if __name__ == "__main__":
    main()
