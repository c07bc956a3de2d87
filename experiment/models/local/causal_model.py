"""A loaded causal model for the backends: takes tokens and positions, returns logits and hidden states at requested places."""

from __future__ import annotations

import copy
import inspect
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiment.models.local.rows import (
    LARGEST,
    Continuation,
    Decoding,
    Hidden,
    Row,
    RowOutcome,
    Sums,
    weights_of,
)
from stimuli.seeds import generator

_SIZES = ("num_attention_heads", "num_heads", "num_key_value_heads", "head_dim", "hidden_size")
LOGITS_AT_ONCE = 2**27
"""Most logits held at once (512 MiB in float32)."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out, on a GPU or on the machine."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    message = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in message or "can't allocate memory" in message
    )


def give_back() -> None:
    """Free memory that nothing refers to."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


class Closed(Exception):
    """The engine was closed before a pass."""


class CausalModel:
    """A transformers causal language model in evaluation mode."""

    def __init__(
        self, model: Any, device: str, ends: set[int], begins_word: Callable[[int], Any] | None = None
    ) -> None:
        self.model = model
        self.device = device
        self.ends = ends  # tokens that end a generation
        self.forwarded = self.calls = 0  # tokens sent through the model without padding, and number of passes
        self.check_tokens = 0  # tokens sent to check a backend, which are not in ``forwarded``
        self.is_closed = False
        self.beyond_16_bits = 0  # number of hidden-state values outside the range of 16 bits
        self._begins_word = begins_word
        self._mask: Any = None
        self._taken = inspect.signature(model.forward).parameters

    @contextmanager
    def as_check(self) -> Iterator[None]:
        """Count tokens sent through the model meanwhile separately."""
        forwarded, calls = self.forwarded, self.calls
        try:
            yield
        finally:
            self.check_tokens += self.forwarded - forwarded
            self.forwarded, self.calls = forwarded, calls

    @property
    def cache_name(self) -> str | None:
        """Name of the model's cache argument; None if it takes no cache."""
        return next((name for name in ("past_key_values", "cache_params") if name in self._taken), None)

    def going_on(self, cache: Any) -> dict[str, Any]:
        """Return the arguments of :meth:`logits` to continue from a cache, or from nothing if it is None."""
        if cache is None or self.cache_name is None:
            return {"use_cache": False}
        return {self.cache_name: cache, "use_cache": True}

    @property
    def vocabulary(self) -> int:
        """Size of the vocabulary in the model's output."""
        head = self.model.get_output_embeddings()
        weight = getattr(head, "weight", None)
        if weight is not None and getattr(head, "out_features", weight.shape[0]) == weight.shape[0]:
            return int(weight.shape[0])
        return int(self.model.config.get_text_config().vocab_size)

    @property
    def window(self) -> int | None:
        """Attention window in tokens of a layer with sliding attention, or None."""
        config = self.model.config.get_text_config()
        names = ("sliding_window", "attention_window_size", "attention_chunk_size")
        windows = [
            size for name in names if isinstance(size := getattr(config, name, None), int) and size > 0
        ]
        return min(windows, default=None)

    @property
    def positions_by_length(self) -> bool:
        """Whether a position's encoding depends on the length of the text."""
        config = self.model.config.get_text_config()
        given = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
        return "dynamic" in str(given) or "longrope" in str(given)

    @property
    def bytes_a_token(self) -> int:
        """Bytes of keys and values per token."""
        config = self.model.config.get_text_config()
        layers = getattr(config, "per_layer_config", None) or [config] * config.num_hidden_layers
        numbers = 0
        for layer in layers:
            sizes: dict[str, Any] = {name: getattr(layer, name, None) for name in _SIZES}
            heads = sizes["num_attention_heads"] or sizes["num_heads"] or 1
            width = sizes["head_dim"] or sizes["hidden_size"] // heads
            numbers += 2 * (sizes["num_key_value_heads"] or heads) * width
        return int(numbers * next(self.model.parameters()).element_size())

    @property
    def most_positions(self) -> int:
        """Number of positions whose logits may be held at once."""
        return max(1, LOGITS_AT_ONCE // self.vocabulary)

    def logits(self, tokens: Any, keep: Sequence[int], **given: Any) -> Any:
        """Return logits of one pass at the positions ``keep``, shape (rows, len(keep), vocabulary), float32."""
        import torch

        if self.is_closed:
            raise Closed
        self.calls += 1
        places = torch.tensor(list(keep), dtype=torch.long, device=self.device)
        extra = {"logits_to_keep": places} if "logits_to_keep" in self._taken else {}
        output = self.model(input_ids=tokens, **extra, **given).logits
        return (output if extra else output[:, places]).float()

    def layers(self) -> Sequence[Any]:
        """Return the model's blocks in order."""
        import torch

        count = self.model.config.get_text_config().num_hidden_layers
        decoder = self.model.get_decoder() if hasattr(self.model, "get_decoder") else self.model
        for part in (decoder, self.model):  # a vision model has other kinds of blocks as well
            for module in part.modules():
                if isinstance(module, torch.nn.ModuleList) and len(module) == count:
                    return list(module)
        raise ValueError(f"no list of {count} blocks is found in {type(self.model).__name__}")

    @contextmanager
    def watched(
        self, places: Sequence[tuple[int, int]], sums: Sequence[tuple[int, Sequence[int]]] = ()
    ) -> Iterator[Hidden]:
        """Yield an object that one pass fills with hidden states at the (line, token) ``places`` and with sums over tokens."""
        import torch

        states = Hidden()
        if not places and not sums:
            yield states
            return
        blocks = self.layers()
        lines = torch.tensor([row for row, _ in places], device=self.device)
        columns = torch.tensor([position for _, position in places], device=self.device)
        weighed: list[Any] = []

        def note(hidden: Any) -> None:
            whole = hidden[0] if isinstance(hidden, tuple) else hidden
            if places:
                states.at.append(whole[lines, columns].float().cpu().numpy())
            if sums:
                if not weighed:
                    weighed.extend(weights_of(sums, whole.shape[0], whole.shape[1], whole.device))
                weights, at = weighed
                states.sums.append(torch.bmm(weights, whole.float())[at[:, 0], at[:, 1]].cpu().numpy())

        def before(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            note(given[0] if given else named["hidden_states"])

        hooks = [blocks[0].register_forward_pre_hook(before, with_kwargs=True)]
        hooks += [block.register_forward_hook(lambda _module, _given, out: note(out)) for block in blocks]
        try:
            yield states
        finally:
            for hook in hooks:
                hook.remove()

    def in_16_bits(self, states: NDArray[np.float32]) -> NDArray[np.float16]:
        """Return hidden states as float16, and count the values outside its range."""
        self.beyond_16_bits += int((np.abs(states) > LARGEST).sum())
        return states.clip(-LARGEST, LARGEST).astype(np.float16)

    def word_beginnings(self) -> Any:
        """Return which tokens can begin a word, shape (vocabulary,), bool."""
        import torch

        if self._mask is None:
            if self._begins_word is None:
                raise ValueError(
                    "borders of words are asked and the tokenizer's word beginnings are not known"
                )
            self._mask = torch.tensor(self._begins_word(self.vocabulary), device=self.device)
        return self._mask


def choose(logits: Any, decodings: Sequence[Decoding], draws: Sequence[random.Random]) -> list[int]:
    """Return each row's next token from logits (rows, vocabulary): the best at temperature 0, else by inverse transform sampling."""
    import torch

    best: list[int] = logits.argmax(dim=-1).tolist()
    sampled = [line for line, decoding in enumerate(decodings) if decoding.temperature > 0]
    if not sampled:
        return best
    heat = torch.tensor([decodings[line].temperature for line in sampled], device=logits.device)
    weights = torch.softmax(logits[sampled] / heat[:, None], dim=-1)
    for row, line in enumerate(sampled):
        if decodings[line].top_k is not None or decodings[line].top_p < 1:
            weights[row] = _nucleus(weights[row], decodings[line])
    if weights.device.type == "mps":
        weights = weights.cpu()  # MPS has no double precision
    cumulated = weights.double().cumsum(dim=-1)
    drawn = torch.tensor(
        [[draws[line].random()] for line in sampled], dtype=torch.float64, device=weights.device
    )
    chosen = torch.searchsorted(cumulated, drawn * cumulated[:, -1:], right=True)
    for line, token in zip(sampled, chosen[:, 0].tolist(), strict=True):
        best[line] = min(token, logits.shape[-1] - 1)
    return best


def continue_rows(
    logits: Any,
    decodings: Sequence[Decoding],
    ends: set[int],
    advance: Callable[[list[int] | None, list[int]], Any],
) -> Iterator[tuple[int, int, Continuation]]:
    """Continue rows in parallel, each with its own random numbers; yield each with its place in the batch when it ends."""
    import torch

    draws = [generator("sampling", decoding.seed) for decoding in decodings]
    done = [Continuation() for _ in decodings]
    active = list(range(len(decodings)))
    while active:
        with torch.inference_mode():
            chosen = choose(logits, [decodings[row] for row in active], [draws[row] for row in active])
        unfinished = [
            place
            for place, (row, token) in enumerate(zip(active, chosen, strict=True))
            if append_token(done[row], token, decodings[row], ends)
        ]
        for place in sorted({*range(len(active))} - {*unfinished}):
            yield place, active[place], done[active[place]]
        if not unfinished:
            return
        with torch.inference_mode():
            logits = advance(
                None if len(unfinished) == len(active) else unfinished,
                [chosen[place] for place in unfinished],
            )
        active = [active[place] for place in unfinished]


def append_token(decoded: Continuation, token: int, decoding: Decoding, ends: set[int]) -> bool:
    """Add a token to a row; return whether the row continues."""
    decoded.first_at = decoded.first_at or time.perf_counter()
    decoded.ids.append(token)
    if token in ends:
        decoded.finish = "eos"
    elif decoding.stopped(decoded.ids):
        decoded.finish = "stop"
    else:
        return len(decoded.ids) < decoding.max_tokens
    return False


def _nucleus(weights: Any, decoding: Decoding) -> Any:
    """Return probabilities with all but the most probable tokens set to 0."""
    import torch

    ranked, places = weights.sort(descending=True)
    before = ranked.cumsum(0) - ranked
    excluded = before >= decoding.top_p
    if decoding.top_k is not None:
        excluded[decoding.top_k :] = True
    excluded[0] = False
    return torch.zeros_like(weights).index_put((places,), ranked.masked_fill(excluded, 0.0))


_STATES = frozenset(
    {
        *("LinearAttentionLayer", "LinearAttentionAndFullAttentionLayer"),
        "LinearAttentionAndSlidingWindowAttentionLayer",
    }
)
_FORKABLE = _STATES | {"DynamicLayer", "DynamicSlidingWindowLayer", "DynamicIndexedLayer", "DummyLayer"}


def new_cache(model: CausalModel) -> Any:
    """Return an empty cache of the model's kind."""
    from transformers import DynamicCache

    return DynamicCache(config=model.model.config)


def fork(cache: Any, count: int, device: str) -> Any:
    """Return a separate cache for ``count`` rows that continue a cache of one row."""
    import torch

    forked = copy.deepcopy(cache)
    forked.reorder_cache(torch.zeros(count, dtype=torch.long, device=device))
    return forked


def is_forkable(model: CausalModel) -> bool:
    """Return whether the cache of every layer can be forked."""
    kinds = _layer_kinds(model)
    return bool(kinds) and kinds <= _FORKABLE


def has_states(model: CausalModel) -> bool:
    """Return whether a layer has a state of fixed size."""
    return bool(_layer_kinds(model) & _STATES)


def _layer_kinds(model: CausalModel) -> frozenset[str]:
    """Return the kinds of layers of a model's cache; empty if it has no such cache."""
    if model.cache_name is None:
        return frozenset()
    try:
        return frozenset(type(layer).__name__ for layer in new_cache(model).layers)
    except (KeyError, AttributeError, ValueError):
        return frozenset()


Wanting = list[tuple[int, int]]
"""Places of rows, with the position whose output each requests."""


class RowSpan(NamedTuple):
    """The tokens of a row from position ``start`` on, which are at ``places`` of a line of the batch, shape (n,)."""

    places: Sequence[int] | NDArray[np.int64]
    start: int = 0
    line: int = 0


_AT_ONCE = 64
"""Distributions whose entropies are computed together."""


class OutputSelection:
    """The outputs requested of one batch; sums over tokens are identified by line and last token."""

    def __init__(self) -> None:
        self.states: dict[tuple[int, int], Wanting] = {}  # by line and token
        self.sums: dict[tuple[int, int], Sequence[int] | NDArray[np.int64]] = {}
        self._means: list[tuple[tuple[int, int], int, int, Sums | None]] = []
        self._after: set[int] = set()
        self._targets: dict[tuple[int, int, int], Wanting] = {}
        self._borders: dict[tuple[int, int], Wanting] = {}
        self._entropies: dict[tuple[int, int, bool], Wanting] = {}  # the last: over tokens that begin a word

    def add(
        self, place: int, row: Row, span: RowSpan, *, ends: bool = True, before: Sums | None = None
    ) -> None:
        """Add the requests of a row whose tokens are in a span of the batch."""
        index, start, line = span
        end = start + len(index)

        def before_of(position: int) -> int:
            """Return where the token before a position is; the distribution after it is needed."""
            at = int(index[position - 1 - start])
            self._after.add(at)
            return at

        for position, token in row.targets:
            if start < position <= end:
                key = (line, before_of(position), token)
                self._targets.setdefault(key, []).append((place, position))
        for position in row.borders:
            if start < position <= end:
                self._borders.setdefault((line, before_of(position)), []).append((place, position))
        for position in row.entropies:
            if start < position <= end:
                over = (line, before_of(position), position in row.borders)
                self._entropies.setdefault(over, []).append((place, position))
        for position in row.states:
            if start <= position < end:
                self.states.setdefault((line, int(index[position - start])), []).append((place, position))
        if row.decoding is not None and ends:
            self._after.add(int(index[-1]))
        if row.mean and ends:
            self._means.append((self.sum(index, line=line), place, len(row.ids), before))

    def sum(self, index: Sequence[int] | NDArray[np.int64], *, line: int = 0) -> tuple[int, int]:
        """Request the sum of hidden states over a row's tokens in the batch up to some place; return its name."""
        name = (line, int(index[-1]))
        self.sums.setdefault(name, index)
        return name

    def watched(self) -> tuple[list[tuple[int, int]], list[tuple[int, Any]]]:
        """Return places and sums as arguments of :meth:`~CausalModel.watched`."""
        return list(self.states), [(line, index) for (line, _), index in self.sums.items()]

    def summed(self, hidden: Hidden) -> dict[tuple[int, int], Sums]:
        """Return the requested sums by name."""
        return {name: hidden.of_sum(number) for number, name in enumerate(self.sums)}

    def columns(self) -> dict[int, int]:
        """Return the columns of a line's tokens whose next-token distribution is needed; at least one."""
        return {at: column for column, at in enumerate(sorted(self._after) or [0])}

    def note(self, model: CausalModel, outcomes: Sequence[RowOutcome], logits: Any, hidden: Hidden) -> None:
        """Store the batch's outputs in its rows' outcomes; ``logits`` of shape (lines, columns, vocabulary)."""
        import torch

        column = self.columns()
        if self._targets or self._borders:
            normaliser = torch.logsumexp(logits, dim=-1)
        if self._targets:
            lines, places, tokens = torch.tensor(
                [(line, column[at], token) for line, at, token in self._targets], device=logits.device
            ).unbind(1)
            values = (logits[lines, places, tokens] - normaliser[lines, places]).tolist()
            for ((_, _, token), wanting), value in zip(self._targets.items(), values, strict=True):
                for place, position in wanting:
                    outcomes[place].logprobs[position, token] = value
        if self._borders:
            lines, places = torch.tensor(
                [(line, column[at]) for line, at in self._borders], device=logits.device
            ).unbind(1)
            begin = model.word_beginnings()
            masses = torch.logsumexp(logits[lines, places].masked_fill(~begin, -torch.inf), dim=-1)
            values = (masses - normaliser[lines, places]).tolist()
            for wanting, value in zip(self._borders.values(), values, strict=True):
                for place, position in wanting:
                    outcomes[place].borders[position] = value
        for is_border in (True, False):
            asked = [key for key in self._entropies if key[2] == is_border]
            for first in range(0, len(asked), _AT_ONCE):
                some = asked[first : first + _AT_ONCE]
                lines, places = zip(*((line, column[at]) for line, at, _ in some), strict=True)
                logs = logits[list(lines), list(places)].float()
                logs = (logs[:, model.word_beginnings()] if is_border else logs).log_softmax(dim=-1)
                values = torch.special.entr(logs.exp()).sum(dim=-1).tolist()
                for key, value in zip(some, values, strict=True):
                    for place, position in self._entropies[key]:
                        outcomes[place].entropies[position] = value
        for number, wanting in enumerate(self.states.values()):
            stack = model.in_16_bits(hidden.of_place(number))
            for place, position in wanting:
                outcomes[place].states[position] = stack
        if self._means:
            sums = self.summed(hidden)
            for name, place, count, before in self._means:
                total = sums[name] if before is None else sums[name] + before
                outcomes[place].mean = model.in_16_bits(total / np.float32(count))


def asked_of(rows: Sequence[Row], start: int = 0, before: Sums | None = None) -> OutputSelection:
    """Return the outputs that rows request of a batch, with each row on its own line from position ``start`` on."""
    selection = OutputSelection()
    for number, row in enumerate(rows):
        selection.add(number, row, RowSpan(range(len(row.ids) - start), start, number), before=before)
    return selection
