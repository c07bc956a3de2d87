"""How long each turn of a conversation is, asked or still to come: what was said before is sent again with every turn.

Stored answers count as they are; missing ones are taken as long as those that are known, or as the right ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from sqlalchemy import select

from experiment.models.engine import Request
from experiment.models.money.growth import Ahead, Asked
from experiment.models.planning import ModelSession, Told, told_of
from experiment.models.planning.script import right_answer
from experiment.models.runs.planned import CHUNK, stored_counts
from experiment.store.tables import trials

if TYPE_CHECKING:
    from experiment.models.runs.asking import Asking

LEARNT, FRESH = 48, 8
"""Of so many conversations that were begun, and so many that were not, turns are counted; the others are taken as these."""

GOLDEN = (math.sqrt(5) - 1) / 2


def grows(session: ModelSession) -> bool:
    """Say whether a session's prompts hold what was said before."""
    return session.manner.context != "independent"


def turns_of(
    session: ModelSession, stored: Mapping[int, Told], *, answer: str | None = None, accuracy: float = 1.0
) -> dict[int, tuple[int, int]]:
    """Return the characters and messages that each turn of a conversation sends, by trial index."""
    found: dict[int, tuple[int, int]] = {}
    calls = {}
    if session.manner.strategy == "unscramble_first":
        for key in session.keys:
            texts = [text for text in session.trial_of(key)["shown"].values() if isinstance(text, str)]
            calls[f"{key}:unscramble"] = max(texts, key=len, default="")
    requests: list[Request] = session.begin({}, calls)
    if session.manner.context == "teacher_forced":
        return {int(session.trial_of(one.work_key)["trial_index"]): _size(one) for one in requests}
    number = 0
    while requests:
        request = requests[0]
        trial = session.trial_of(request.work_key)
        index = int(trial["trial_index"])
        found[index] = _size(request)
        number += 1
        told = stored.get(index)
        if told is None:
            is_right = math.fmod(number * GOLDEN, 1.0) < accuracy
            told = Told(right_answer(trial) if answer is None else answer, is_right)
        requests = session.begin({index: told}, calls)
    return found


def _size(request: Request) -> tuple[int, int]:
    return sum(len(message.content) for message in request.messages), len(request.messages)


@dataclass
class _Known:
    """Answers that are stored: their lengths, and whether they were right."""

    lengths: list[int] = field(default_factory=list)
    verdicts: list[bool] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def take(self, stored: Mapping[int, Told]) -> None:
        for told in stored.values():
            self.lengths.append(len(told.text or ""))
            self.texts.append(told.text or "")
            if told.correct is not None:
                self.verdicts.append(told.correct)


def ahead_of(asking: Asking) -> tuple[list[Asked], Ahead] | None:
    """Return what stored turns of a model's conversations cost, and how long those are that are missing.

    None where its trials stand alone.
    """
    first = next(iter(asking.plan()), None)
    if first is None or not grows(first):
        return None
    begun, fresh = _chosen(asking)
    known = _Known()
    sessions: list[tuple[ModelSession, Mapping[int, Told], float]] = []
    for session in asking.plan():
        weight = begun.get(session.session_id) or fresh.get(session.session_id)
        if weight is not None:
            stored = asking.recording.read(partial(told_of, session_id=session.session_id))
            known.take(stored)
            sessions.append((session, stored, weight))
    length = fmean(known.lengths) if known.lengths else None
    # an answer of the usual length stands in for each that is missing
    answer = None if length is None else min(known.texts, key=lambda text: abs(len(text) - length))
    accuracy = fmean(known.verdicts) if known.verdicts else 1.0
    spread = pstdev(known.lengths) if len(known.lengths) > 1 else (length or 8.0)
    asked: list[Asked] = []
    ahead = Ahead()
    own = together = 0.0
    lengths: dict[float, list[int]] = {}
    for session, there, weight in sessions:
        sizes = turns_of(session, there, answer=answer, accuracy=accuracy)
        asked += _asked(asking, session, sizes)
        missing = [size for index, size in sizes.items() if index not in there]
        ahead.turns += [(float(chars), messages, weight) for chars, messages in missing]
        lengths.setdefault(weight, []).append(sum(chars for chars, _ in missing))
        if session.manner.context == "session":
            after = range(len(missing))
            own += weight * spread**2 * sum(one**2 for one in after)
            together += weight * spread * sum(after)
    # conversations that were not counted differ from those that were
    own += sum(len(some) * weight * (weight - 1) * pstdev(some) ** 2 for weight, some in lengths.items())
    own += together**2 / max(1, len(known.lengths))
    ahead.spread = math.sqrt(own)
    counted = sum(weight for _, _, weight in ahead.turns)
    share = sum(asking.found.kinds.values()) / counted if counted else 0.0
    ahead.turns = [(chars, messages, weight * share) for chars, messages, weight in ahead.turns]
    ahead.spread *= share
    return asked, ahead


def _chosen(asking: Asking) -> tuple[dict[str, float], dict[str, float]]:
    """Return which conversations are counted and for how many others each stands, of those begun and of those not."""
    begun: list[str] = []
    fresh: list[str] = []
    plan = ((session.session_id, len(session)) for session in asking.plan())
    while chunk := list(islice(plan, CHUNK)):
        held = stored_counts(asking.store, [name for name, _ in chunk])
        for name, _ in chunk:
            if name not in asking.found.ended:
                (begun if held.get(name, (0, ""))[0] else fresh).append(name)
    return _some(begun, LEARNT), _some(fresh, FRESH)


def _some(names: list[str], most: int) -> dict[str, float]:
    """Choose at most so many, evenly over the plan."""
    count = min(most, len(names))
    return {names[place * len(names) // count]: len(names) / count for place in range(count)}


def _asked(asking: Asking, session: ModelSession, sizes: Mapping[int, tuple[int, int]]) -> list[Asked]:
    query = select(trials.c.trial_index, trials.c.cost_usd, trials.c.prompt_tokens).where(
        trials.c.session_id == session.session_id, trials.c.cost_usd > 0
    )
    rows = asking.recording.read(lambda connection: connection.execute(query).all())
    return [
        Asked(
            float(sizes[row.trial_index][0]),
            sizes[row.trial_index][1],
            float(row.cost_usd),
            row.prompt_tokens,
            session.session_id,
        )
        for row in rows
        if row.trial_index in sizes
    ]
