"""Performance of a stored demo model on held-out words: greedy answers and forced choices by scramble."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiment.demo.training.network import prompt_for
from experiment.demo.training.words import SCRAMBLES, Example, scramble
from stimuli.seeds import generator

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

BATCH = 256
LONGEST_ANSWER = 16


def scrambled_once(words: Sequence[str], kind: str) -> list[Example]:
    """Return each word scrambled once, without words that a kind other than intact leaves unchanged."""
    examples = [
        Example(scramble(word, kind, generator("demo model", "measure", kind, word)), word) for word in words
    ]
    return [example for example in examples if kind == "intact" or example.shown != example.word]


def foils(words: Sequence[str]) -> dict[str, str]:
    """Return each word's nearest other word of equal length: fewest edits, then first in the alphabet.

    Anagrams are skipped, because no reader could distinguish them once shuffled. A word without another of its length has no
    foil. Edits are insertions, deletions, substitutions and transpositions of neighbours (optimal string alignment).
    """
    from rapidfuzz.distance import OSA

    nearest = {}
    for word in words:
        rivals = [other for other in words if len(other) == len(word) and sorted(other) != sorted(word)]
        if rivals:
            nearest[word] = min(rivals, key=lambda other: (OSA.distance(word, other), other))
    return nearest


def greedy_answers(
    network: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, examples: Sequence[Example]
) -> list[str]:
    """Return the first line that the model writes after each prompt, in the order of the examples."""
    import torch

    answers = [""] * len(examples)
    for numbers in _same_length_batches(examples):
        prompts = tokenizer([prompt_for(examples[number].shown) for number in numbers], return_tensors="pt")
        with torch.inference_mode():
            rows: Any = network.generate(**prompts, max_new_tokens=LONGEST_ANSWER, do_sample=False)
        written = tokenizer.batch_decode(rows[:, prompts["input_ids"].shape[1] :], skip_special_tokens=True)
        for number, text in zip(numbers, written, strict=True):
            answers[number] = text.split("\n")[0].strip()
    return answers


def log_probabilities(
    network: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    examples: Sequence[Example],
    candidates: Sequence[str],
) -> list[float]:
    """Return, for each example, the log-probability (nats) of a space and the candidate after its prompt.

    Each candidate has as many letters as its example's word.
    """
    import torch

    sums = [0.0] * len(examples)
    for numbers in _same_length_batches(examples):
        texts = [f"{prompt_for(examples[number].shown)} {candidates[number]}" for number in numbers]
        tokens = tokenizer(texts, return_tensors="pt")["input_ids"]
        answer = len(candidates[numbers[0]]) + 1
        with torch.inference_mode():
            logits = network(tokens, logits_to_keep=answer + 1).logits[:, :-1].float()
        chosen = logits.log_softmax(-1).gather(-1, tokens[:, -answer:, None]).sum((1, 2))
        for number, value in zip(numbers, chosen.tolist(), strict=True):
            sums[number] = value
    return sums


def measure(folder: Path, words: Sequence[str], tell: Callable[[str], None]) -> dict[str, Any]:
    """Return measures of a stored model, with its bfloat16 weights computed in float32.

    Parameters
    ----------
    folder : Path
        Model folder.
    words : sequence of str
        Words that the model was not trained on.
    tell : callable
        Called with one line per kind of scramble.

    Returns
    -------
    dict
        ``exact`` and ``choice``: kind of scramble → ``{correct, n, proportion, ci_low, ci_high}`` with
        95 % Wilson intervals.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    nearest = foils(words)
    exact, choice = {}, {}
    for kind in SCRAMBLES:
        examples = scrambled_once(words, kind)
        answers = greedy_answers(network, tokenizer, examples)
        restored = [answer == example.word for answer, example in zip(answers, examples, strict=True)]
        paired = [example for example in examples if example.word in nearest]
        true = log_probabilities(network, tokenizer, paired, [example.word for example in paired])
        false = log_probabilities(network, tokenizer, paired, [nearest[example.word] for example in paired])
        exact[kind] = _proportion(restored)
        choice[kind] = _proportion([right > wrong for right, wrong in zip(true, false, strict=True)])
        tell(f"{kind}: restored {exact[kind]['proportion']:.3f}, chosen {choice[kind]['proportion']:.3f}")
    return {"exact": exact, "choice": choice}


def _same_length_batches(examples: Sequence[Example]) -> Iterator[list[int]]:
    # prompts of one length need no padding, so that a row's sums do not depend on its neighbours
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for number, example in enumerate(examples):
        by_length[len(example.shown)].append(number)
    for numbers in by_length.values():
        yield from (numbers[start : start + BATCH] for start in range(0, len(numbers), BATCH))


def _proportion(outcomes: Sequence[bool]) -> dict[str, float]:
    from scipy.stats import binomtest

    if not outcomes:
        return {"correct": 0, "n": 0, "proportion": float("nan"), "ci_low": 0.0, "ci_high": 1.0}
    result = binomtest(sum(outcomes), len(outcomes))
    interval = result.proportion_ci(confidence_level=0.95, method="wilson")
    return {
        "correct": sum(outcomes),
        "n": len(outcomes),
        "proportion": round(sum(outcomes) / len(outcomes), 4),
        "ci_low": round(float(interval.low), 4),
        "ci_high": round(float(interval.high), 4),
    }
