"""What a model would be sent, shown before anything is sent: the first prompt of each kind, and any trial's in its context.

Answers that stand earlier in a conversation are not there yet; right answers stand in for them, and it is said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiment.models.engine import Reply, Request
from experiment.models.planning.manner import manner_of
from experiment.models.planning.restoring import UNSCRAMBLE
from experiment.models.planning.script import Script, right_answer
from experiment.models.planning.session import ModelSession, Told
from experiment.models.settings import ModelSettings
from experiment.procedure import PlannedTrial
from experiment.study import Study

CHARACTERS_PER_TOKEN = 4
STAND_IN = "…"
"""What stands for an answer of which nothing says what is right."""


@dataclass(frozen=True)
class Cell:
    """What tells one kind of prompt from another."""

    block: str
    materials: str
    trial_type: str
    condition: tuple[tuple[str, str], ...]  # factors with their levels
    is_practice: bool
    purpose: str

    def __str__(self) -> str:
        levels = ", ".join(f"{factor} {level}" for factor, level in self.condition)
        parts = [
            self.block,
            self.materials,
            self.trial_type,
            levels,
            self.purpose if self.purpose != "answer" else "",
        ]
        return ", ".join(filter(None, [*parts, "practice" if self.is_practice else ""]))


def cell_of(trial: Mapping[str, Any], purpose: str) -> Cell:
    """Return the kind of prompt that a trial and the purpose of a call make."""
    condition = tuple((str(factor), str(level)) for factor, level in (trial["condition"] or {}).items())
    return Cell(
        str(trial["block"] or ""), str(trial["set"]), str(trial["trial_type"]), condition, bool(trial["is_practice"]), purpose,
    )  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """One request as it would be sent."""

    trial: PlannedTrial
    request: Request
    turn: int  # which of the conversation's questions it is, from 1
    stands_in: bool  # answers in it stand in for those that the model will give

    @property
    def kind(self) -> tuple[str, str, str, bool]:
        """Materials, type of trial, purpose of the call, practice or not."""
        trial = self.trial
        return (trial["set"], trial["trial_type"], self.request.purpose, trial["is_practice"])

    @property
    def cell(self) -> Cell:
        """The kind with block and condition."""
        return cell_of(self.trial, self.request.purpose)


def first_prompts(session: ModelSession, *, by_cell: bool = False) -> list[Shown]:
    """Return the first request of each kind of a session that has nothing answered; in a conversation also its second turn.

    The session is used up.
    """
    found: dict[object, Shown] = {}
    second: Shown | None = None
    waiting = session.begin({})
    while waiting:
        after: list[Request] = []
        for request in waiting:
            trial = session.trial_of(request.work_key)
            turn = sum(message.role == "user" for message in request.messages)
            is_own = (
                session.manner.context == "teacher_forced"
            )  # what stands before is what the person answered
            stands_in = (
                not is_own
                and request.purpose != UNSCRAMBLE
                and (turn > 1 or session.manner.strategy == "unscramble_first")
            )
            shown = Shown(trial, request, turn, stands_in)
            kind = shown.cell if by_cell else shown.kind
            is_new = kind not in found
            found.setdefault(kind, shown)
            if turn == 2 and second is None and not is_new:
                second = shown
            if is_new or session.script.talks:
                after += session.follow(_stand_in(trial, request))
        waiting = after
    return [*found.values(), *([second] if second is not None else [])]


def prompt_in_context(
    study: Study,
    settings: ModelSettings,
    plan: Mapping[str, Any],
    trial: Mapping[str, Any],
    *,
    reader: str = "model",
) -> Shown | None:
    """Return what a model would be sent for one trial of a plan, right answers standing in for earlier ones.

    None where it would not be asked (practice that is not answered, a text to read for a model that tells no surprisal).
    """
    script = Script(dict(plan), manner_of(study, settings))
    session = ModelSession(
        script, [study.id], seed=study.seed, reader=reader, replicate=int(plan["replicate"])
    )
    index = trial["trial_index"]
    stood_in = {
        place.trial["trial_index"]: Told(right_answer(place.trial) or STAND_IN, correct=True)
        for place in script.places
        if place.trial["trial_index"] < index
    }
    for request in session.begin(stood_in):
        asked = session.trial_of(request.work_key)
        if asked["trial_index"] == index:
            turn = sum(message.role == "user" for message in request.messages)
            return Shown(asked, request, turn, turn > 1)
    return None


def longest_prompt(study: Study, settings: ModelSettings, plan: Mapping[str, Any]) -> Request | None:
    """Return the longest request of a plan: a conversation's last turn, right answers standing in; else that of the longest trial.

    None where nothing is asked.
    """
    script = Script(dict(plan), manner_of(study, settings))
    if not script.places:
        return None
    if script.manner.context == "independent":
        number = max(range(len(script.places)), key=lambda one: len(script.turn(one).text))
    else:
        number = len(script.places) - 1
    if script.manner.context == "teacher_forced":
        return None
    shown = prompt_in_context(study, settings, plan, script.places[number].trial)
    return None if shown is None else shown.request


def prompt_characters(study: Study, settings: ModelSettings, plan: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return how many trials of a plan a model is asked, how many characters it reads and how many tokens it may answer in all.

    In a conversation each turn is read again with every turn behind it; answers are counted as if they were right, pictures as the
    characters of as many tokens.
    """
    script = Script(dict(plan), manner_of(study, settings))
    trials = total = said = longest = 0
    for number, place in enumerate(script.places):
        turn = script.turn(number)
        seen = CHARACTERS_PER_TOKEN * sum(picture.tokens for picture in turn.pictures)
        own = len(place.lead) + len(turn.text) + seen
        stays = script.talks and (script.manner.context != "independent" or number < script.practice)
        total += said + own
        said += own + len(right_answer(place.trial)) if stays else 0
        longest += script.manner.max_tokens or turn.max_tokens
        trials += 1
    return trials, total, longest


def _stand_in(trial: Mapping[str, Any], request: Request) -> Reply:
    if request.purpose == UNSCRAMBLE:
        return Reply(request.work_key, next(iter(trial["intact"].values()), STAND_IN), "answered")
    return Reply(request.work_key, right_answer(trial) or STAND_IN, "answered")
