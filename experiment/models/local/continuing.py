"""Rows that are continued together: one token each a pass, behind a path that all of them share.

What lies behind the shared path is each row's own, in buffers that have room for all that it may still say. A row leaves
when it is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiment.models.local.attention import Continuations, passing
from experiment.models.local.drawing import choose, goes_on
from experiment.models.local.head import CausalModel
from experiment.models.local.kept import Layers
from experiment.models.local.memory import Memory
from experiment.models.local.rows import Decoded, Decoding
from stimuli.seeds import generator


@dataclass
class Waiting:
    """Rows that share a path of one length and are to be continued.

    Attributes
    ----------
    places : list of int
    decodings : list of Decoding
    keys, values : list of dict of int to tensor, shape (kv heads, own tokens, width)
        What lies behind the path, by layer.
    logits : list of tensor, shape (vocabulary,)
    tokens : int
        Most tokens that the rows will hold, the path left out.
    """

    places: list[int] = field(default_factory=list)
    decodings: list[Decoding] = field(default_factory=list)
    keys: list[Layers] = field(default_factory=list)
    values: list[Layers] = field(default_factory=list)
    logits: list[Any] = field(default_factory=list)
    tokens: int = 0

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
    """A row that is done.

    Attributes
    ----------
    place : int
    decoded : Decoded
    start : int
        Length of the path.
    keys, values : dict of int to tensor, shape (kv heads, own tokens, width)
        What lies behind the path; the last token was chosen and not computed.
    """

    place: int
    decoded: Decoded
    start: int
    keys: Layers
    values: Layers


def continued(model: CausalModel, memory: Memory, start: int, group: Waiting) -> Iterator[Ended]:
    """Continue rows and yield each when it is done.

    Parameters
    ----------
    memory : Memory
        Its first ``start`` entries are the path of all rows.
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
