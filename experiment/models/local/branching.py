"""The fastest way through a model: one walk over the trie of all rows, branches side by side in each pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiment.models.local.attention import NAME, Branches, Continuations, Memory, NotUnderstood, passing, register
from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.head import CausalModel
from experiment.models.local.rows import Budget, Decoded, Decoding, Found, Row
from experiment.models.local.trie import Pass, Trie
from stimuli.seeds import generator


@dataclass
class _Waiting:
    """Rows that share a path of one length and are to be continued."""

    places: list[int] = field(default_factory=list)
    keys: list[dict[int, Any]] = field(default_factory=list)
    values: list[dict[int, Any]] = field(default_factory=list)
    logits: list[Any] = field(default_factory=list)
    tokens: int = 0


class BranchingWay:
    """Computes rows along their trie.

    Parameters
    ----------
    model : CausalModel
    """

    name = "packed"

    def __init__(self, model: CausalModel) -> None:
        self.model = model
        self._memory = Memory()

    def compute(self, rows: Sequence[Row], budget: Budget) -> Iterator[tuple[int, Found]]:
        """Yield the place of each row and what was found of it, as soon as it is complete.

        Raises
        ------
        NotUnderstood
            The model's attention needs what this way does not do.
        """
        import torch

        self._memory = Memory()
        found = [Found() for _ in rows]
        waiting: dict[int, _Waiting] = {}
        with _attention_of(self.model.model):
            for one in Trie(rows).passes(budget):
                for length in [length for length in waiting if length > one.start]:
                    yield from self._continue(rows, found, length, waiting.pop(length))
                with torch.inference_mode():
                    complete = self._pass(rows, found, one, waiting)
                for place in complete:
                    yield place, found[place]
                for length in list(waiting):
                    if waiting[length].tokens >= budget.held:
                        yield from self._continue(rows, found, length, waiting.pop(length))
            for length, group in waiting.items():
                yield from self._continue(rows, found, length, group)
        self._memory = Memory()

    def _pass(
        self, rows: Sequence[Row], found: Sequence[Found], one: Pass, waiting: dict[int, _Waiting]
    ) -> list[int]:
        """Compute one pass, note what was asked of it, and return the rows that are complete."""
        import torch

        device = self.model.device
        picks = _picks(rows, one)
        positions = torch.from_numpy(one.depths).to(device)
        seen = None if one.extends and one.start == 0 else torch.from_numpy(_seen(one)).to(device)
        branches = Branches(self._memory, one.start, positions, seen)
        tokens = torch.from_numpy(one.tokens.astype(np.int64)).to(device)
        states = picks.states
        with passing(branches), self.model.watched([(0, place) for place in states]) as hidden:
            logits = self.model.logits(
                tokens[None], picks.keep or [0], position_ids=positions[None], use_cache=False
            )[0]
        self.model.forwarded += len(one.tokens)
        self._note(rows, found, one, picks, logits, hidden)
        complete = []
        for line in one.lines:
            found[line.place].computed += line.new
            decoding = rows[line.place].decoding
            if not line.ends:
                continue
            if decoding is None or decoding.max_tokens <= 0:
                found[line.place].decoded = None if decoding is None else Decoded()
                complete.append(line.place)
                continue
            length = one.start + len(one.tokens) if one.extends else one.start
            own = line.index[:0] if one.extends else line.index
            group = waiting.setdefault(length, _Waiting())
            group.places.append(line.place)
            group.logits.append(logits[picks.column[int(line.index[-1])]])
            where = torch.from_numpy(one.start + own).to(device)
            group.keys.append({layer: buffer[:, where] for layer, buffer in self._memory.keys.items()})
            group.values.append({layer: buffer[:, where] for layer, buffer in self._memory.values.items()})
            group.tokens += len(own) + decoding.max_tokens
        return complete

    def _note(
        self, rows: Sequence[Row], found: Sequence[Found], one: Pass, picks: _Picks, logits: Any, hidden: list[Any]
    ) -> None:
        """Write what a pass tells of its rows."""
        import torch

        if picks.keep:
            normaliser = torch.logsumexp(logits, dim=-1)
            if picks.targets:
                lines = torch.tensor([column for column, _ in picks.targets], device=logits.device)
                tokens = torch.tensor([token for _, token in picks.targets], device=logits.device)
                values = dict(
                    zip(picks.targets, (logits[lines, tokens] - normaliser[lines]).tolist(), strict=True)
                )
                for place, position, pick in picks.asked_targets:
                    found[place].logprobs[position, pick[1]] = values[pick]
            if picks.borders:
                lines = torch.tensor(picks.borders, device=logits.device)
                begin = self.model.word_beginnings()
                masses = torch.logsumexp(logits[lines].masked_fill(~begin, -torch.inf), dim=-1)
                values_at = dict(zip(picks.borders, (masses - normaliser[lines]).tolist(), strict=True))
                for place, position, column in picks.asked_borders:
                    found[place].borders[position] = values_at[column]
        for number, at in enumerate(picks.states):
            stack = np.stack([layer[number] for layer in hidden])
            for place, position in picks.asked_states[at]:
                found[place].states[position] = stack

    def _continue(
        self, rows: Sequence[Row], found: Sequence[Found], length: int, group: _Waiting
    ) -> Iterator[tuple[int, Found]]:
        """Continue rows that share a path, one token each a pass; a row leaves when it is done."""
        import torch

        decodings = [decoding for place in group.places if (decoding := rows[place].decoding) is not None]
        draws = [generator("sampling", one.seed) for one in decodings]
        done = [Decoded() for _ in group.places]
        with torch.inference_mode():
            state = self._state(length, group, decodings)
            logits = torch.stack(group.logits)
        active = list(range(len(group.places)))
        while active:
            chosen = choose(logits, [decodings[line] for line in active], [draws[line] for line in active])
            stay = [
                number
                for number, (line, token) in enumerate(zip(active, chosen, strict=True))
                if goes_on(done[line], token, decodings[line], self.model.ends)
            ]
            for line in {*active} - {active[number] for number in stay}:
                found[group.places[line]].decoded = done[line]
                yield group.places[line], found[group.places[line]]
            if not stay:
                return
            with torch.inference_mode():
                if len(stay) < len(active):
                    state.stay(torch.tensor(stay, device=self.model.device))
                logits = self._step(state, [chosen[number] for number in stay])
            active = [active[number] for number in stay]

    def _state(self, length: int, group: _Waiting, decodings: Sequence[Decoding]) -> Continuations:
        import torch

        own = [int(keys[min(keys)].shape[1]) for keys in group.keys]
        room = max(count + one.max_tokens for count, one in zip(own, decodings, strict=True))
        lengths = torch.tensor(own, device=self.model.device)
        keys, values = _stacked(group.keys, room), _stacked(group.values, room)
        return Continuations(self._memory, length, lengths, keys, values)

    def _step(self, state: Continuations, tokens: Sequence[int]) -> Any:
        """Compute one token more of each row; return the next logits, shape (rows, vocabulary)."""
        import torch

        positions = (state.start + state.lengths)[None]
        given = torch.tensor([list(tokens)], device=self.model.device)
        with passing(state):
            logits = self.model.logits(given, range(len(tokens)), position_ids=positions, use_cache=False)
        self.model.forwarded += len(tokens)
        state.lengths = state.lengths + 1
        return logits[0]


@dataclass
class _Picks:
    """Where in a pass something is asked, each place once.

    Attributes
    ----------
    keep : list of int
        Tokens of the pass after which the distribution is needed.
    column : dict
        Token of the pass to its place in ``keep``.
    targets : list of (int, int)
        Column and token, each once.
    borders : list of int
        Columns.
    states : list of int
        Tokens of the pass.
    """

    keep: list[int]
    column: dict[int, int]
    targets: list[tuple[int, int]]
    borders: list[int]
    states: list[int]
    asked_targets: list[tuple[int, int, tuple[int, int]]]
    asked_borders: list[tuple[int, int, int]]
    asked_states: dict[int, list[tuple[int, int]]]


def _picks(rows: Sequence[Row], one: Pass) -> _Picks:
    targets: list[tuple[int, int, int, int]] = []
    borders: list[tuple[int, int, int]] = []
    states: dict[int, list[tuple[int, int]]] = {}
    keep: set[int] = set()
    for line in one.lines:
        row, end = rows[line.place], one.start + len(line.index)
        for position, token in row.targets:
            if one.start < position <= end:
                targets.append((line.place, position, int(line.index[position - 1 - one.start]), token))
        for position in row.borders:
            if one.start < position <= end:
                borders.append((line.place, position, int(line.index[position - 1 - one.start])))
        for position in row.states:
            if one.start <= position < end:
                states.setdefault(int(line.index[position - one.start]), []).append((line.place, position))
        if row.decoding is not None and line.ends:
            keep.add(int(line.index[-1]))
    keep |= {at for *_, at, _ in targets} | {at for *_, at in borders}
    column = {at: number for number, at in enumerate(sorted(keep))}
    asked_targets = [(place, position, (column[at], token)) for place, position, at, token in targets]
    asked_borders = [(place, position, column[at]) for place, position, at in borders]
    return _Picks(
        sorted(keep),
        column,
        list(dict.fromkeys(pick for _, _, pick in asked_targets)),
        list(dict.fromkeys(at for _, _, at in asked_borders)),
        list(states),
        asked_targets,
        asked_borders,
        states,
    )


def _seen(one: Pass) -> Any:
    """Return which tokens of a pass each token sees: itself and its ancestors, shape (n, n)."""
    count = len(one.tokens)
    seen = np.zeros((count, count), dtype=bool)
    if one.extends:
        return np.tri(count, dtype=bool)
    for line in one.lines:
        own = line.index[len(line.index) - line.new :]
        for number, at in enumerate(own, start=len(line.index) - line.new):
            seen[at, line.index[: number + 1]] = True
    return seen


def _stacked(parts: Sequence[dict[int, Any]], room: int) -> dict[int, Any]:
    """Return the rows' own keys or values, shape (rows, kv heads, room, width) a layer."""
    stacked = {}
    for layer, first in parts[0].items():
        buffer = first.new_zeros((len(parts), first.shape[0], room, first.shape[2]))
        for number, part in enumerate(parts):
            buffer[number, :, : part[layer].shape[1]] = part[layer]
        stacked[layer] = buffer
    return stacked


class _attention_of:
    """While entered, the model uses the attention of branches."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._before: str = model.config._attn_implementation

    def __enter__(self) -> None:
        register()
        self._model.set_attn_implementation(NAME)
        if self._model.config._attn_implementation != NAME:
            raise NotUnderstood(f"{type(self._model).__name__} brings attention of its own")

    def __exit__(self, *_: object) -> None:
        self._model.set_attn_implementation(self._before)
