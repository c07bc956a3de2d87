"""The kinds of prompts that a plan has: by block, materials, type of trial, condition, practice and step, each with one example.

A plan is gone through once; what its lists share is counted once, so that a million trials take seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from experiment.models.planning.restoring import UNSCRAMBLE
from experiment.models.planning.session import ModelSession
from experiment.models.planning.showing import Cell, Shown, cell_of, first_prompts
from experiment.models.prompts import changed_field

MOST_SHOWN = 24
"""Prompts that are shown whole; all kinds are counted."""

LOOKED_AT = 64
"""Sessions in which an example of a kind is looked for: they hold all lists of a prompt variant in any usual design."""


@dataclass
class Kinds:
    """What a plan asks."""

    sessions: int = 0
    trials: int = 0
    # how many requests there are of each kind, all sessions together
    counts: Counter[Cell] = field(default_factory=Counter)
    # the first prompt of kinds, those first that differ most; in conversations also one second turn
    examples: list[Shown] = field(default_factory=list)


def kinds_of(plan: Iterable[ModelSession], *, most: int = MOST_SHOWN) -> Kinds:
    """Count the kinds of a plan's prompts and show the first of each, at most so many."""
    found = Kinds()
    known: dict[int, tuple[object, Counter[Cell]]] = {}
    shown: dict[tuple[Cell, bool], Shown] = {}
    for session in plan:
        found.sessions += 1
        found.trials += len(session)
        script = session.script
        of_script, cells = known.get(id(script), (None, Counter()))
        if of_script is not script:
            cells = _cells(session)
            if session.yoked_to is None:
                known[id(script)] = (script, cells)
        is_new = any(cell not in found.counts for cell in cells)
        found.counts.update(cells)
        if is_new and found.sessions <= LOOKED_AT:
            for one in first_prompts(session, by_cell=True):
                shown.setdefault((one.cell, one.turn == 2), one)
    seconds = [one for (_, is_second), one in shown.items() if is_second and (one.cell, False) in shown]
    firsts = [one for one in shown.values() if one not in seconds]
    found.examples = [*_varied(firsts, most), *seconds[:1]]
    return found


def _cells(session: ModelSession) -> Counter[Cell]:
    cells: Counter[Cell] = Counter()
    for trial in session.trials:
        purpose = "read" if trial["trial_type"] == "read" else "answer"
        cells[cell_of(trial, purpose)] += 1
        if session.manner.strategy == "unscramble_first" and changed_field(trial) is not None:
            cells[cell_of(trial, UNSCRAMBLE)] += 1
    return cells


def _varied(shown: list[Shown], most: int) -> list[Shown]:
    """Choose at most so many, those first that have something which none before them has; keep their order."""
    if len(shown) <= most:
        return shown
    chosen: list[int] = []
    seen: set[tuple[str, object]] = set()
    for number, one in enumerate(shown):
        cell = one.cell
        parts: set[tuple[str, object]] = {
            ("how", (cell.materials, cell.trial_type, cell.purpose, cell.is_practice)),
            ("condition", cell.condition),
            ("block", cell.block),
        }
        if parts - seen and len(chosen) < most:
            chosen.append(number)
            seen |= parts
    rest = (number for number in range(len(shown)) if number not in set(chosen))
    chosen += [number for number, _ in zip(rest, range(most - len(chosen)), strict=False)]
    return [shown[number] for number in sorted(chosen)]
