"""The fastest way through a model: the trie of all rows, with branches side by side in each pass.

Rows are continued together, one token each a pass, behind a path that all share. What follows the shared path is each row's own,
in buffers with room for all that it may still generate. A row leaves when it is finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiment.models.local.attention import Branches, Continuations, NotUnderstood, passing
from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.head import CausalModel
from experiment.models.local.kept import SLACK, Layers
from experiment.models.local.memory import Memory, Remembered
from experiment.models.local.noting import Asked
from experiment.models.local.rows import Budget, Decoded, Decoding, Found, Row, common_length
from experiment.models.local.sums import Marks, up_to
from experiment.models.local.trie import Line, Pass, Trie
from stimuli.seeds import generator


@dataclass
class _UnderWay:
    """Rows that are being computed."""

    rows: Sequence[Row]
    found: Sequence[Found]
    hold: Set[int]  # rows whose keys and values are kept
    floor: int  # length of the path that no walk writes over
    # Rows to be continued, by the length of the path that they share
    waiting: dict[int, Waiting] = field(default_factory=dict)
    # Of rows whose keys and values are kept: sums of hidden states over their first so many tokens
    marks: dict[int, Marks] = field(default_factory=dict)

    @property
    def held(self) -> int:
        """How many tokens the rows that wait will hold."""
        return sum(group.tokens for group in self.waiting.values())


class BranchingWay:
    """Computes rows along their trie.

    ``remembers``: whether a window of rows goes on from what the window before has left in memory.
    """

    name = "packed"

    def __init__(self, model: CausalModel, *, remembers: bool = True) -> None:
        self.model = model
        self.remembers = remembers
        self.memory = Remembered()

    def forget(self) -> None:
        """Give up what is remembered."""
        self.memory.forget()

    def compute(
        self, rows: Sequence[Row], budget: Budget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, Found]]:
        """Yield the place of each row and what was found of it, as soon as it is complete.

        ``hold``: places of rows that later ones will go on from.
        """
        import torch

        if not self.remembers:
            self.memory.forget()
        if not hold:
            self.memory.kept.shrink(0)
        found = [Found() for _ in rows]
        try:
            walks = self.memory.walks(rows)
            floor = min(_common([row.ids for row in rows]), *(walk.known for walk in walks)) if walks else 0
            under_way = _UnderWay(rows, found, hold, floor if len(walks) > 1 else -1)
            for walk in walks:
                with torch.inference_mode():
                    known = self.memory.begin(walk, rows[walk.places[0]])
                for place in self._walk(under_way, walk.places, known, budget):
                    yield place, found[place]
                self.memory.kept.shrink(budget.held)
            for place in self._continue(under_way, under_way.waiting):
                yield place, found[place]
            self.memory.kept.shrink(budget.held)
        except BaseException:
            self.memory.forget()
            raise

    def _walk(self, under_way: _UnderWay, places: Sequence[int], known: int, budget: Budget) -> Iterator[int]:
        """Yield the rows of a walk as they are complete; what waits at the floor may stay for the next walk."""
        waiting = under_way.waiting
        trie = Trie([under_way.rows[place] for place in places])
        for one in trie.passes(budget, known):
            yield from self._continue(under_way, [length for length in waiting if length > one.start])
            yield from self._pass(under_way, places, one)
            while waiting and under_way.held >= budget.held:
                largest = max(waiting, key=lambda length: waiting[length].tokens)
                yield from self._continue(under_way, [largest])
            full = [length for length, group in waiting.items() if len(group.places) >= budget.positions]
            yield from self._continue(under_way, full)
        yield from self._continue(under_way, [length for length in waiting if length != under_way.floor])

    def _pass(self, under_way: _UnderWay, places: Sequence[int], one: Pass) -> list[int]:
        """Compute one pass, note what was asked of it, and return the rows that are complete."""
        import torch

        asked = Asked()
        path = self.memory.path
        before = path.marks.get(one.start)
        for line in one.lines:
            place = places[line.place]
            asked.add(
                place, under_way.rows[place], line.index, start=one.start, ends=line.ends, before=before
            )
        marks = _marks(under_way, places, one, asked)
        with torch.inference_mode():
            positions = torch.from_numpy(one.depths).to(self.model.device)
            seen = None
            if not one.extends or one.start:
                seen = torch.from_numpy(_seen(one)).to(self.model.device)
            tokens = torch.from_numpy(one.tokens.astype(np.int64)).to(self.model.device)
            path.cut(one.start)
            with (
                passing(self.model.model, Branches(path, one.start, positions, seen)),
                self.model.watched(*asked.watched()) as hidden,
            ):
                columns = asked.columns()
                logits = self.model.logits(
                    tokens[None], list(columns), position_ids=positions[None], use_cache=False
                )
            if not path.keys:
                raise NotUnderstood(f"{type(self.model.model).__name__} has no attention")
            self.model.forwarded += len(one.tokens)
            asked.note(self.model, under_way.found, logits, hidden)
            sums = asked.summed(hidden)
            for owner, depths in marks.items():
                news: Marks = {
                    depth: sums[name] if before is None else np.add(sums[name], before)
                    for depth, name in depths.items()
                }
                if owner is None:
                    path.marks |= news
                else:
                    under_way.marks[owner] = {**up_to(path.marks, one.start), **news}
            complete = []
            alone = len(places) == 1
            for line in one.lines:
                place = places[line.place]
                under_way.found[place].computed += line.new
                if not line.ends:
                    continue
                decoding = under_way.rows[place].decoding
                if decoding is not None and decoding.max_tokens > 0:
                    after = logits[0, columns[int(line.index[-1])]].clone()
                    self._wait(under_way, place, one, line, after, alone=alone)
                    continue
                under_way.found[place].decoded = None if decoding is None else Decoded()
                if place in under_way.hold:
                    own = path.taken(self._places(one, line, one.start))
                    self.memory.keep(
                        under_way.rows[place].ids, one.start, *own, under_way.marks.get(place, {})
                    )
                complete.append(place)
            first = one.tokens if one.extends else one.tokens[: len(one.lines[0].index)]
            path.ids = np.concatenate([path.ids, first])
        return complete

    def _wait(
        self, under_way: _UnderWay, place: int, one: Pass, line: Line, logits: Any, *, alone: bool
    ) -> None:
        """Let a row wait to be continued with others that share a path; one alone in its walk shares no more than all do."""
        decoding = under_way.rows[place].decoding
        assert decoding is not None
        length = one.start + len(one.tokens) if one.extends else one.start
        if alone and 0 <= under_way.floor < length:
            length = under_way.floor
        own = self.memory.path.taken(self._places(one, line, length))
        under_way.waiting.setdefault(length, Waiting()).add(place, decoding, own, logits)

    def _places(self, one: Pass, line: Line, first: int) -> Any:
        """Return where a row's tokens from position ``first`` on lie in the path's buffers during a pass."""
        import torch

        places: NDArray[np.int64] = np.concatenate([np.arange(one.start), one.start + line.index])[first:]
        return torch.from_numpy(places).to(self.model.device)

    def _continue(self, under_way: _UnderWay, lengths: Sequence[int] | dict[int, Waiting]) -> Iterator[int]:
        """Continue the rows that wait behind paths of these lengths, the longest path first."""
        for length in sorted(lengths, reverse=True):
            group = under_way.waiting.pop(length)
            for ended in continued(self.model, self.memory.path, length, group):
                under_way.found[ended.place].decoded = ended.decoded
                if ended.place in under_way.hold:
                    self._keep(under_way.rows[ended.place], ended, under_way.marks.get(ended.place, {}))
                yield ended.place

    def _keep(self, row: Row, ended: Ended, marks: Marks) -> None:
        """Keep a continued row, but for its last token."""
        import torch

        news = np.asarray(ended.decoded.ids[:-1], dtype=np.int32)
        with torch.inference_mode():
            ids = np.concatenate([row.ids, news])
            self.memory.keep(ids, ended.start, ended.keys, ended.values, marks)


def _marks(
    under_way: _UnderWay, places: Sequence[int], one: Pass, asked: Asked
) -> dict[int | None, dict[int, tuple[int, int]]]:
    """Ask for the sums from which later passes and turns go on, where a row of a walk wants a mean.

    For the path (None), and for each row that is kept: length and name of each sum. On the path these are what all
    rows of the pass share and its end; of a row its end, and the place from which a turn goes on that has not all
    of it.
    """
    if not any(under_way.rows[place].mean for place in places):
        return {}
    first = one.lines[0].index
    common = min((len(line.index) - line.new for line in one.lines[1:]), default=len(first))
    shared = {one.start + length: asked.sum(first[:length]) for length in (common, len(first)) if length}
    found: dict[int | None, dict[int, tuple[int, int]]] = {None: shared}
    for line in one.lines:
        place = places[line.place]
        if line.ends and place in under_way.hold and under_way.rows[place].mean:
            lengths = [common, len(line.index) - SLACK, len(line.index)]
            found[place] = {
                one.start + length: asked.sum(line.index[:length]) for length in lengths if length > 0
            }
    return found


def _common(rows: Sequence[NDArray[np.int32]]) -> int:
    """Return how many leading tokens all rows have in common."""
    return min((common_length(rows[0], row) for row in rows[1:]), default=len(rows[0]))


def _seen(one: Pass) -> NDArray[np.bool_]:
    """Return which tokens of a pass each token sees: itself and its ancestors, shape (n, n)."""
    count = len(one.tokens)
    if one.extends:
        return np.tri(count, dtype=bool)
    seen = np.zeros((count, count), dtype=bool)
    for line in one.lines:
        own = line.index[len(line.index) - line.new :]
        for number, at in enumerate(own, start=len(line.index) - line.new):
            seen[at, line.index[: number + 1]] = True
    return seen


@dataclass
class Waiting:
    """Rows that share a path of one length and are to be continued."""

    places: list[int] = field(default_factory=list)
    decodings: list[Decoding] = field(default_factory=list)
    # keys, values: shape (kv heads, own tokens, width); what lies behind the path, by layer
    keys: list[Layers] = field(default_factory=list)
    values: list[Layers] = field(default_factory=list)
    logits: list[Any] = field(default_factory=list)  # shape (vocabulary,)
    tokens: int = 0  # most tokens that the rows will hold, the path left out

    def add(self, place: int, decoding: Decoding, own: tuple[Layers, Layers], logits: Any) -> None:
        """Take a row with the keys and values of its own."""
        self.places.append(place)
        self.decodings.append(decoding)
        self.keys.append(own[0])
        self.values.append(own[1])
        self.logits.append(logits)
        self.tokens += _own_tokens(own[0]) + decoding.max_tokens


@dataclass(frozen=True)
class Ended:
    """A row that is done."""

    place: int
    decoded: Decoded
    start: int  # length of the path
    # keys, values: shape (kv heads, own tokens, width); what lies behind the path; the last token was chosen
    # and not computed
    keys: Layers
    values: Layers


def continued(model: CausalModel, memory: Memory, start: int, group: Waiting) -> Iterator[Ended]:
    """Continue rows and yield each when it is done.

    ``memory``: its first ``start`` entries are the path of all rows.
    """
    import torch

    how = group.decodings
    draws = [generator("sampling", one.seed) for one in how]
    done = [Decoded() for _ in how]
    with torch.inference_mode():
        state = _state(model, memory, start, group)
        logits = torch.stack(group.logits)
    active = list(range(len(how)))
    while active:
        with torch.inference_mode():
            chosen = choose(logits, [how[line] for line in active], [draws[line] for line in active])
        stay = [
            number
            for number, (line, token) in enumerate(zip(active, chosen, strict=True))
            if goes_on(done[line], token, how[line], model.ends)
        ]
        for number in sorted({*range(len(active))} - {*stay}):
            own = int(state.lengths[number])
            keys = {layer: buffer[number, :, :own] for layer, buffer in state.keys.items()}
            values = {layer: buffer[number, :, :own] for layer, buffer in state.values.items()}
            yield Ended(group.places[active[number]], done[active[number]], start, keys, values)
        if not stay:
            return
        with torch.inference_mode():
            if len(stay) < len(active):
                state.stay(torch.tensor(stay, device=model.device))
            logits = _step(model, state, [chosen[number] for number in stay])
        active = [active[number] for number in stay]


def _state(model: CausalModel, memory: Memory, start: int, group: Waiting) -> Continuations:
    import torch

    own = [_own_tokens(keys) for keys in group.keys]
    room = max(count + one.max_tokens for count, one in zip(own, group.decodings, strict=True))
    lengths = torch.tensor(own, device=model.device)
    keys, values = _stacked(group.keys, room), _stacked(group.values, room)
    return Continuations(memory, start, lengths, max(own), keys, values)


def _step(model: CausalModel, state: Continuations, tokens: Sequence[int]) -> Any:
    """Compute one token more of each row; return the next logits, shape (rows, vocabulary)."""
    import torch

    positions = (state.start + state.lengths)[None]
    given = torch.tensor([list(tokens)], device=model.device)
    with passing(model.model, state):
        logits = model.logits(given, range(len(tokens)), position_ids=positions, use_cache=False)
    model.forwarded += len(tokens)
    state.goes_on()
    return logits[0]


def _own_tokens(layers: Layers) -> int:
    return int(layers[min(layers)].shape[1])


def _stacked(parts: Sequence[Layers], room: int) -> Layers:
    """Return the rows' own keys or values, shape (rows, kv heads, room, width) a layer."""
    stacked = {}
    for layer, first in parts[0].items():
        buffer = first.new_zeros((len(parts), first.shape[0], room, first.shape[2]))
        for number, part in enumerate(parts):
            buffer[number, :, : part[layer].shape[1]] = part[layer]
        stacked[layer] = buffer
    return stacked
