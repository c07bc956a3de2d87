"""The fastest way through a model: one walk over the trie of all rows, branches side by side in each pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiment.models.local.attention import Branches, Continuations, passing
from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.head import CausalModel
from experiment.models.local.memory import Memory, Strand, Strands
from experiment.models.local.rows import Budget, Decoded, Decoding, Found, Row
from experiment.models.local.trie import Line, Pass, Trie
from stimuli.seeds import generator


@dataclass
class _Waiting:
    """Rows that share a path of one length and are to be continued."""

    places: list[int] = field(default_factory=list)
    keys: list[dict[int, Any]] = field(default_factory=list)
    values: list[dict[int, Any]] = field(default_factory=list)
    logits: list[Any] = field(default_factory=list)
    tokens: int = 0


@dataclass
class _Walking:
    """One walk under way.

    Attributes
    ----------
    waiting : dict
        Rows to be continued, by the length of their path.
    hold : set of int
        Rows whose keys and values are kept.
    """

    rows: Sequence[Row]
    found: Sequence[Found]
    strand: Strand
    hold: Set[int]
    waiting: dict[int, _Waiting] = field(default_factory=dict)

    @property
    def memory(self) -> Memory:
        return self.strand.memory


class BranchingWay:
    """Computes rows along their trie.

    Parameters
    ----------
    model : CausalModel
    remembers : bool
        Whether a window of rows goes on from what the window before has left in memory.
    """

    name = "packed"

    def __init__(self, model: CausalModel, *, remembers: bool = True) -> None:
        self.model = model
        self.remembers = remembers
        self.strands = Strands()

    def forget(self) -> None:
        """Give up what is remembered."""
        self.strands.forget()

    def compute(
        self, rows: Sequence[Row], budget: Budget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, Found]]:
        """Yield the place of each row and what was found of it, as soon as it is complete.

        Parameters
        ----------
        hold : set of int
            Places of rows that later ones will go on from.

        Raises
        ------
        NotUnderstood
            The model's attention needs what this way does not do.
        """
        import torch

        if not self.remembers:
            self.strands.forget()
        if not hold:
            self.strands.kept = []
        found = [Found() for _ in rows]
        try:
            for walk in self.strands.walks(rows):
                some = [rows[place] for place in walk.places]
                held = {number for number, place in enumerate(walk.places) if place in hold}
                with torch.inference_mode():
                    strand = self.strands.begin(walk)
                walking = _Walking(some, [found[place] for place in walk.places], strand, held)
                for number in self._walk(walking, walk.known, budget):
                    yield walk.places[number], found[walk.places[number]]
                self.strands.shrink(budget)
        except BaseException:
            self.strands.forget()
            raise

    def _walk(self, walking: _Walking, known: int, budget: Budget) -> Iterator[int]:
        """Yield the rows of a walk as they are complete."""
        waiting = walking.waiting
        for one in Trie(walking.rows).passes(budget, known):
            for length in [length for length in waiting if length > one.start]:
                yield from self._continue(walking, length, waiting.pop(length))
            yield from self._pass(walking, one)
            while waiting and sum(group.tokens for group in waiting.values()) >= budget.held:
                length = max(waiting, key=lambda length: waiting[length].tokens)
                yield from self._continue(walking, length, waiting.pop(length))
            for length in [
                length for length, group in waiting.items() if len(group.places) >= budget.positions
            ]:
                yield from self._continue(walking, length, waiting.pop(length))
        while waiting:
            length = max(waiting)
            yield from self._continue(walking, length, waiting.pop(length))

    def _pass(self, walking: _Walking, one: Pass) -> list[int]:
        """Compute one pass, note what was asked of it, and return the rows that are complete."""
        import torch

        device, rows, found = self.model.device, walking.rows, walking.found
        picks = _picks(rows, one)
        with torch.inference_mode():
            positions = torch.from_numpy(one.depths).to(device)
            seen = None if one.extends and one.start == 0 else torch.from_numpy(_seen(one)).to(device)
            branches = Branches(walking.memory, one.start, positions, seen)
            tokens = torch.from_numpy(one.tokens.astype(np.int64)).to(device)
            walking.strand.ids = walking.strand.ids[: one.start]
            with (
                passing(self.model.model, branches),
                self.model.watched([(0, place) for place in picks.states]) as hidden,
            ):
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
                    if line.place in walking.hold:
                        self._keep(walking, one, line)
                    continue
                length = one.start + len(one.tokens) if one.extends else one.start
                own = torch.from_numpy(line.index[:0] if one.extends else line.index).to(device)
                keys, values = walking.memory.taken(one.start, own)
                group = walking.waiting.setdefault(length, _Waiting())
                group.places.append(line.place)
                group.logits.append(logits[picks.column[int(line.index[-1])]].clone())
                group.keys.append(keys)
                group.values.append(values)
                group.tokens += len(own) + decoding.max_tokens
            first = one.tokens if one.extends else one.tokens[: len(one.lines[0].index)]
            walking.strand.ids = np.concatenate([walking.strand.ids, first])
        return complete

    def _keep(self, walking: _Walking, one: Pass, line: Line) -> None:
        """Keep what a finished row has left: in its place where that row is all that lies there, else in a copy."""
        import torch

        strand, ids = walking.strand, walking.rows[line.place].ids
        alone = one.extends or (line is one.lines[0] and line.new == len(line.index))
        if strand is not self.strands.path and alone and len(walking.hold) == 1:
            self.strands.keep(strand)
            return
        own = torch.from_numpy(line.index).to(self.model.device)
        memory = strand.memory.copied(one.start, *strand.memory.taken(one.start, own))
        self.strands.keep(Strand(memory, ids))

    def _note(
        self,
        rows: Sequence[Row],
        found: Sequence[Found],
        one: Pass,
        picks: _Picks,
        logits: Any,
        hidden: list[Any],
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

    def _continue(self, walking: _Walking, length: int, group: _Waiting) -> Iterator[int]:
        """Continue rows that share a path, one token each a pass; a row leaves when it is done."""
        import torch

        rows, found = walking.rows, walking.found
        decodings = [decoding for place in group.places if (decoding := rows[place].decoding) is not None]
        draws = [generator("sampling", one.seed) for one in decodings]
        done = [Decoded() for _ in group.places]
        with torch.inference_mode():
            state = self._state(walking.memory, length, group, decodings)
            logits = torch.stack(group.logits)
        active = list(range(len(group.places)))
        while active:
            with torch.inference_mode():
                chosen = choose(
                    logits, [decodings[line] for line in active], [draws[line] for line in active]
                )
            stay = [
                number
                for number, (line, token) in enumerate(zip(active, chosen, strict=True))
                if goes_on(done[line], token, decodings[line], self.model.ends)
            ]
            for number in sorted({*range(len(active))} - {*stay}):
                line = active[number]
                found[group.places[line]].decoded = done[line]
                if group.places[line] in walking.hold:
                    self._keep_continued(walking, state, number, group.places[line], done[line].ids)
                yield group.places[line]
            if not stay:
                return
            with torch.inference_mode():
                if len(stay) < len(active):
                    state.stay(torch.tensor(stay, device=self.model.device))
                logits = self._step(state, [chosen[number] for number in stay])
            active = [active[number] for number in stay]

    def _keep_continued(
        self, walking: _Walking, state: Continuations, number: int, place: int, news: Sequence[int]
    ) -> None:
        """Keep what a continued row has left; its last token was chosen and not computed."""
        import torch

        with torch.inference_mode():
            own = int(state.lengths[number])
            keys = {layer: buffer[number, :, :own] for layer, buffer in state.keys.items()}
            values = {layer: buffer[number, :, :own] for layer, buffer in state.values.items()}
            memory = walking.memory.copied(state.start, keys, values)
        ids = np.concatenate([walking.rows[place].ids, np.asarray(news, dtype=np.int32)])[: state.start + own]
        self.strands.keep(Strand(memory, ids))

    def _state(
        self, memory: Memory, length: int, group: _Waiting, decodings: Sequence[Decoding]
    ) -> Continuations:
        import torch

        own = [int(keys[min(keys)].shape[1]) for keys in group.keys]
        room = max(count + one.max_tokens for count, one in zip(own, decodings, strict=True))
        lengths = torch.tensor(own, device=self.model.device)
        keys, values = _stacked(group.keys, room), _stacked(group.values, room)
        return Continuations(memory, length, lengths, max(own), keys, values)

    def _step(self, state: Continuations, tokens: Sequence[int]) -> Any:
        """Compute one token more of each row; return the next logits, shape (rows, vocabulary)."""
        import torch

        positions = (state.start + state.lengths)[None]
        given = torch.tensor([list(tokens)], device=self.model.device)
        with passing(self.model.model, state):
            logits = self.model.logits(given, range(len(tokens)), position_ids=positions, use_cache=False)
        self.model.forwarded += len(tokens)
        state.goes_on()
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
