"""How simulated readers type: a log of keys with times between them that are log-normal, as people's are, and pauses at words."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

from stimuli.seeds import generator

if TYPE_CHECKING:
    from experiment.simulated.truth import Typing

KeyLog = list[tuple[float, str]]


def typed(text: str, given: Typing, seed: int, name: str, draw: Random) -> KeyLog:
    """Return the keys by which a reader types a text, each with its time after the first in ms.

    Parameters
    ----------
    text : str
        What is typed; a line break is typed by Enter.
    given : Typing
        How readers type.
    seed, name : int, str
        The study's seed and the reader, who keeps a speed of their own.
    draw : Random
        Of this trial.
    """
    own = generator(seed, "simulated reader", "typing", name).gauss(0, given.participant_sd)
    moment, log = 0.0, KeyLog()
    for place, letter in enumerate(text):
        if place:
            moment += given.key_ms * math.exp(own + draw.gauss(0, given.residual_sd))
            if text[place - 1].isspace():
                moment += draw.expovariate(1 / given.word_pause_ms) if given.word_pause_ms else 0.0
        log.append((moment, "Enter" if letter == "\n" else letter))
    return log
