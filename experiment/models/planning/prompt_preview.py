"""Preview of prompts before anything is sent: the first of each kind, and that of any trial in its context.

Earlier answers in a conversation do not exist yet; correct answers replace them, and the preview states this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from experiment.models.engine import ModelSettings, Reply, Request
from experiment.models.planning.prompting_settings import (
    SessionTemplate,
    read_prompting_settings,
    right_answer,
)
from experiment.models.planning.session import UNSCRAMBLE, ModelSession, SessionTaker, TrialFeedback
from experiment.models.prompts.prompter import changed_field
from experiment.procedure import PlannedTrial
from experiment.study import Study
from experiment.trials import UNANSWERED

CHARACTERS_PER_TOKEN = 4
STAND_IN = "…"
"""Placeholder for an answer without a known correct one."""


@dataclass(frozen=True)
class PromptKind:
    """The properties that distinguish kinds of prompts."""

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


def cell_of(trial: Mapping[str, Any], purpose: str) -> PromptKind:
    """Return the kind of prompt for a trial and the purpose of a call."""
    condition = tuple((str(factor), str(level)) for factor, level in (trial["condition"] or {}).items())
    return PromptKind(
        str(trial["block"] or ""), str(trial["set"]), str(trial["trial_type"]), condition, bool(trial["is_practice"]), purpose,
    )  # fmt: skip


@dataclass(frozen=True)
class PreviewedRequest:
    """One request as it would be sent."""

    trial: PlannedTrial
    request: Request
    turn: int  # number of the question in its conversation, from 1
    stands_in: bool  # whether answers in it are placeholders for those of the model

    @property
    def kind(self) -> tuple[str, str, str, bool]:
        """Materials, trial type, purpose of the call, and whether it is practice."""
        trial = self.trial
        return (trial["set"], trial["trial_type"], self.request.purpose, trial["is_practice"])

    @property
    def cell(self) -> PromptKind:
        """The kind with block and condition."""
        return cell_of(self.trial, self.request.purpose)


def first_prompts(session: ModelSession, *, by_cell: bool = False) -> list[PreviewedRequest]:
    """Return the first request of each kind in a session without answers, and in a conversation its second turn.

    This consumes the session.
    """
    previews: dict[object, PreviewedRequest] = {}
    second: PreviewedRequest | None = None
    waiting = session.begin({})
    while waiting:
        after: list[Request] = []
        for request in waiting:
            trial = session.trial_of(request.work_key)
            turn = sum(message.role == "user" for message in request.messages)
            is_own = session.manner.context == "teacher_forced"  # the earlier answers are the participant's
            stands_in = (
                not is_own
                and request.purpose != UNSCRAMBLE
                and (turn > 1 or session.manner.strategy == "unscramble_first")
            )
            shown = PreviewedRequest(trial, request, turn, stands_in)
            kind = shown.cell if by_cell else shown.kind
            is_new = kind not in previews
            previews.setdefault(kind, shown)
            if turn == 2 and second is None and not is_new:
                second = shown
            if is_new or session.script.talks:
                after += session.follow(_stand_in(trial, request))
        waiting = after
    return [*previews.values(), *([second] if second is not None else [])]


def prompt_in_context(
    study: Study,
    settings: ModelSettings,
    plan: Mapping[str, Any],
    trial: Mapping[str, Any],
    *,
    reader: str = "model",
) -> PreviewedRequest | None:
    """Return what a model would receive for one trial, with correct answers for earlier ones; None if nothing is sent."""
    script = SessionTemplate(dict(plan), read_prompting_settings(study, settings))
    session = ModelSession(script, [study.id], SessionTaker(reader, study.seed, int(plan["replicate"])))
    index = trial["trial_index"]
    stood_in = {
        place.trial["trial_index"]: TrialFeedback(right_answer(place.trial) or STAND_IN, correct=True)
        for place in script.places
        if place.trial["trial_index"] < index
    }
    for request in session.begin(stood_in):
        prompted = session.trial_of(request.work_key)
        if prompted["trial_index"] == index:
            turn = sum(message.role == "user" for message in request.messages)
            return PreviewedRequest(prompted, request, turn, turn > 1)
    return None


def longest_prompt(study: Study, settings: ModelSettings, plan: Mapping[str, Any]) -> Request | None:
    """Return a plan's longest request, in a conversation its last turn with correct answers; None if nothing is sent."""
    script = SessionTemplate(dict(plan), read_prompting_settings(study, settings))
    if not script.places:
        return None
    if script.manner.context == "independent":
        number = max(range(len(script.places)), key=lambda place_number: len(script.turn(place_number).text))
    else:
        number = len(script.places) - 1
    if script.manner.context == "teacher_forced":
        return None
    shown = prompt_in_context(study, settings, plan, script.places[number].trial)
    return None if shown is None else shown.request


def prompt_characters(study: Study, settings: ModelSettings, plan: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return a plan's number of trials, the characters read (earlier turns again each time), and the most output tokens."""
    script = SessionTemplate(dict(plan), read_prompting_settings(study, settings))
    trials = total = earlier = longest = 0
    for number, place in enumerate(script.places):
        turn = script.turn(number)
        seen = CHARACTERS_PER_TOKEN * sum(picture.tokens for picture in turn.pictures)
        turn_length = len(place.lead) + len(turn.text) + seen
        stays = script.talks and (script.manner.context != "independent" or number < script.practice)
        total += earlier + turn_length
        earlier += turn_length + len(right_answer(place.trial)) if stays else 0
        longest += script.manner.max_tokens or turn.max_tokens
        trials += 1
    return trials, total, longest


def _stand_in(trial: Mapping[str, Any], request: Request) -> Reply:
    if request.purpose == UNSCRAMBLE:
        return Reply(request.work_key, next(iter(trial["intact"].values()), STAND_IN), "answered")
    return Reply(request.work_key, right_answer(trial) or STAND_IN, "answered")


MOST_SHOWN = 24
"""Prompts that are shown in full; all kinds are counted."""

LOOKED_AT = 64
"""Sessions that are searched for examples of a kind: in usual designs these include all lists of a prompt variant."""


@dataclass
class Kinds:
    """The kinds of prompts in a plan."""

    sessions: int = 0
    trials: int = 0
    # number of requests of each kind, over all sessions
    counts: Counter[PromptKind] = field(default_factory=Counter)
    # the first prompt of each kind, the most different first; in conversations also one second turn
    examples: list[PreviewedRequest] = field(default_factory=list)


def kinds_of(plan: Iterable[ModelSession], *, most: int = MOST_SHOWN) -> Kinds:
    """Return the number of prompts of each kind in a plan, and the first prompt of at most ``most`` kinds."""
    kinds = Kinds()
    cells_of_script: dict[int, tuple[object, Counter[PromptKind]]] = {}
    shown: dict[tuple[PromptKind, bool], PreviewedRequest] = {}
    for session in plan:
        kinds.sessions += 1
        kinds.trials += len(session)
        script = session.script
        of_script, cells = cells_of_script.get(id(script), (None, Counter()))
        if of_script is not script:
            cells = _cells(session)
            if session.yoked_to is None:
                cells_of_script[id(script)] = (script, cells)
        is_new = any(cell not in kinds.counts for cell in cells)
        kinds.counts.update(cells)
        if is_new and kinds.sessions <= LOOKED_AT:
            for prompt in first_prompts(session, by_cell=True):
                shown.setdefault((prompt.cell, prompt.turn == 2), prompt)
    seconds = [
        preview for (_, is_second), preview in shown.items() if is_second and (preview.cell, False) in shown
    ]
    firsts = [preview for preview in shown.values() if preview not in seconds]
    kinds.examples = [*_varied(firsts, most), *seconds[:1]]
    return kinds


def _cells(session: ModelSession) -> Counter[PromptKind]:
    cells: Counter[PromptKind] = Counter()
    for trial in session.trials:
        purpose = "read" if trial["trial_type"] in UNANSWERED else "answer"
        cells[cell_of(trial, purpose)] += 1
        if session.manner.strategy == "unscramble_first" and changed_field(trial) is not None:
            cells[cell_of(trial, UNSCRAMBLE)] += 1
    return cells


def _varied(shown: list[PreviewedRequest], most: int) -> list[PreviewedRequest]:
    """Return at most ``most`` prompts, preferring those with a property that no earlier one has, in their order."""
    if len(shown) <= most:
        return shown
    chosen: list[int] = []
    seen: set[tuple[str, object]] = set()
    for number, request in enumerate(shown):
        cell = request.cell
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
