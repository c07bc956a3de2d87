"""The demo model: its tokenizer (one token per byte), its network, its training, and its performance on held-out words."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiment.demo.training.recipe import SCRAMBLES, Example, ExampleSource, Recipe, scramble
from stimuli.seeds import generator, stable_seed

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast


TEMPLATE_FILE = Path(__file__).with_name("chat_template.jinja")
BOS, EOS, PAD = "<bos>", "<eos>", "<pad>"
LONGEST_CONTEXT = 2048
IGNORED = -100
BATCH = 256
LONGEST_ANSWER = 16


def prompt_for(shown: str) -> str:
    """Return the prompt, which the model should continue with a space, the word and a line end."""
    return f"Scrambled word: {shown}\nWord:"


def answer_for(word: str) -> str:
    """Return the continuation that the model is trained to give, up to the end-of-sequence token."""
    return f" {word}\n"


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer with one token for each of the 256 bytes and three for begin, end and padding.

    A byte-pair tokenizer without merges: any Unicode text is restored unchanged, unless it spells out one of the three special
    tokens.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: number for number, symbol in enumerate([*alphabet, BOS, EOS, PAD])}
    fast = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    fast.decoder = decoders.ByteLevel()
    fast.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, vocabulary[BOS])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=fast,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=PAD,
        padding_side="left",
        model_max_length=LONGEST_CONTEXT,
        clean_up_tokenization_spaces=False,
        chat_template=TEMPLATE_FILE.read_text(encoding="utf-8"),
    )


def build_network(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return the network with initial weights drawn from the recipe's seed, in float32."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.width,
        intermediate_size=recipe.inner_width,
        num_hidden_layers=recipe.depth,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=LONGEST_CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(stable_seed(recipe.seed, "demo model", "initial weights"))
        return LlamaForCausalLM(config)


def save_model(network: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write a copy of the network in bfloat16, and the tokenizer, as ``from_pretrained`` reads them."""
    import copy

    import torch
    from transformers import GenerationConfig

    stored: Any = copy.deepcopy(network).to(torch.bfloat16)
    stored.generation_config = GenerationConfig(
        do_sample=False,
        max_new_tokens=16,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    stored.save_pretrained(folder)
    tokenizer.save_pretrained(folder, save_jinja_files=False)


@dataclass(frozen=True)
class ExampleBatch:
    """Examples of similar length, ready for the network."""

    opening: torch.Tensor  # (1, P), int64: begin token and the bytes that all prompts share
    rest: torch.Tensor  # (B, S), int64: what follows the opening, padded on the right
    wanted: torch.Tensor  # (B, S), int64: the next byte if it belongs to the answer, else IGNORED


def encode_part(examples: list[Example], tokenizer: PreTrainedTokenizerFast) -> ExampleBatch:
    """Return examples as token numbers, cut after the opening that every prompt shares."""
    import torch

    opening = tokenizer(prompt_for("").split("\n")[0])["input_ids"]
    rows, answers = [], []
    for example in examples:
        prompt = tokenizer(prompt_for(example.shown))["input_ids"][len(opening) :]
        answer = tokenizer(answer_for(example.word), add_special_tokens=False)["input_ids"]
        rows.append(prompt + answer + [tokenizer.eos_token_id])
        answers.append(len(answer) + 1)
    width = max(map(len, rows)) - 1
    rest = torch.full((len(rows), width), int(tokenizer.pad_token_id))
    wanted = torch.full((len(rows), width), IGNORED)
    for number, (row, answer_length) in enumerate(zip(rows, answers, strict=True)):
        end = len(row) - 1
        rest[number, :end] = torch.tensor(row[:-1])
        wanted[number, end - answer_length : end] = torch.tensor(row[-answer_length:])
    return ExampleBatch(torch.tensor([opening]), rest, wanted)


def answer_logits(network: LlamaForCausalLM, part: ExampleBatch) -> torch.Tensor:
    """Return next-byte logits at the answer positions, (answer bytes, vocabulary).

    The opening goes through the network once and its keys and values are repeated for every row, which
    under causal attention gives the same result as full sequences.
    """
    from transformers.cache_utils import DynamicCache

    cache = DynamicCache()
    network.model(part.opening, past_key_values=cache, use_cache=True)
    cache.batch_repeat_interleave(len(part.rest))
    hidden = network.model(part.rest, past_key_values=cache, use_cache=True).last_hidden_state
    logits: torch.Tensor = network.lm_head(hidden[part.wanted != IGNORED])
    return logits


def learning_rate(recipe: Recipe, step: int, steps: int) -> float:
    """Return the rate of a step (from 0): linear warm-up to the peak, then half a cosine to zero."""
    warmup = min(recipe.warmup_steps, steps)
    if step < warmup:
        return recipe.peak_rate * (step + 1) / warmup
    return recipe.peak_rate * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def train(
    network: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    recipe: Recipe,
    source: ExampleSource,
    steps: int,
    tell: Callable[[int, float], None],
) -> list[float]:
    """Train the network in place and return the mean loss (nats per answer byte) of every step.

    The learning-rate schedule is stretched to ``steps``; ``tell`` gets each step's number (from 1) and loss.
    """
    import torch

    torch.set_num_threads(1)  # sums in a fixed order: the same machine gives the same weights
    network.set_attn_implementation("eager")
    network.train()
    matrices = [weight for weight in network.parameters() if weight.dim() > 1]
    gains = [weight for weight in network.parameters() if weight.dim() == 1]
    optimiser = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": gains, "weight_decay": 0.0}],
        betas=(recipe.beta1, recipe.beta2),
    )
    losses = []
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(recipe, step, steps)
        examples = sorted(source.batch(step), key=lambda example: len(example.word))
        size = math.ceil(len(examples) / recipe.parts)
        parts = [
            encode_part(examples[start : start + size], tokenizer) for start in range(0, len(examples), size)
        ]
        scored = sum(int((part.wanted != IGNORED).sum()) for part in parts)
        total = 0.0
        for part in parts:
            with torch.autocast("cpu", torch.bfloat16, enabled=recipe.autocast):
                logits = answer_logits(network, part)
            wanted = part.wanted[part.wanted != IGNORED]
            loss = torch.nn.functional.cross_entropy(logits.float(), wanted, reduction="sum") / scored
            loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(total)
        tell(step + 1, total)
    network.eval()
    return losses


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
    """Return measures of a stored model on held-out words, with its bfloat16 weights computed in float32.

    ``exact`` and ``choice`` have for each kind of scramble ``{correct, n, proportion, ci_low, ci_high}`` with 95 % Wilson
    intervals.
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
