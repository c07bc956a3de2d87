"""The common part of the sessions of one list and prompt variant: trials, texts between them, digests.

The plan of a list is built once, and its prompts once per variant, for any number of replicates and models; only a digest
per trial is stored, and a prompt is rendered again when it is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from experiment.models.planning.prompting_settings import PromptingSettings
from experiment.models.prompts import Prompter, Turn
from experiment.models.prompts.prompter import BLANK
from experiment.procedure import Plan, PlannedTrial
from experiment.trials import CHOSEN, UNANSWERED

DIGEST = 32
"""Length of a trial's digest in bytes."""


@dataclass(frozen=True, slots=True)
class TrialSlot:
    """One trial at its place."""

    trial: PlannedTrial
    lead: str  # instructions and other texts since the previous trial
    feedback: Mapping[str, Any] | None  # the feedback settings of its block
    # whether its solved examples differ from those of the previous trial in the conversation
    shows_exemplars: bool = True


class SessionTemplate:
    """The turns of one plan for one model."""

    def __init__(self, plan: Plan, manner: PromptingSettings) -> None:
        self.plan = {
            **(plan if manner.practice == "answered" else _without_practice(plan)), "strategy": manner.strategy
        }  # fmt: skip
        self.manner = manner
        self.prompter = Prompter(
            plan,
            strategy=manner.strategy,
            is_local=manner.is_local,
            presentation=manner.presentation,
            of_examples=manner.of_examples,
        )
        self.places = self._places(plan)
        self.practice = sum(1 for place in self.places if place.trial["is_practice"])

    def turn(self, number: int, *, text: str | None = None) -> Turn:
        """Return the turn of the trial at a place; ``text`` replaces its changed text."""
        place = self.places[number]
        return self.prompter.turn(place.trial, with_exemplars=place.shows_exemplars, text=text)

    @cached_property
    def digests(self) -> bytes:
        """One digest per trial, :data:`DIGEST` bytes each, of everything in its turn and before it."""
        leads: dict[str, Any] = {}
        digests_so_far = bytearray()
        for place in self.places:
            if place.lead not in leads:
                leads[place.lead] = hashlib.sha256(place.lead.encode("utf-8", "surrogatepass"))
            trial = place.trial
            turn = self.prompter.turn(trial, with_exemplars=place.shows_exemplars, with_words=False)
            # word positions follow from text and trial
            prompt_parts = (
                turn.labels,
                turn.max_tokens,
                turn.stop,
                turn.temperature,
                place.feedback if self.talks else None,
            )
            identity = (trial["item_id"], *trial["condition"].items(), trial["trial_index"], len(turn.text))
            digest = leads[place.lead].copy()
            seen = repr(turn.pictures) if turn.pictures else ""
            digest.update(f"{prompt_parts!r}{identity!r}{turn.text}{seen}".encode("utf-8", "surrogatepass"))
            digests_so_far += digest.digest()
        return bytes(digests_so_far)

    @cached_property
    def state_rows(self) -> int:
        """Number of rows of hidden states for its prompts: one per position, and one per word read under ``regions``."""
        positions = self.manner.states
        rows = len(self.places) * sum(position != "regions" for position in positions)
        if "regions" in positions and self.manner.reads:
            rows += sum(len(self.turn(number).words) for number in range(len(self.places)))
        return rows

    @property
    def talks(self) -> bool:
        """Whether trials are part of a conversation."""
        return self.manner.context != "independent" or self.manner.practice == "answered"

    def _places(self, plan: Plan) -> list[TrialSlot]:
        """Return the trials that are prompted; a text that is only read joins the next one if it cannot be prompted."""
        manner = self.manner
        is_conversation = manner.context != "independent"
        places: list[TrialSlot] = []
        texts_since: list[str] = []
        shown: list[Mapping[str, Any]] | None = None
        if self.prompter.is_published:
            return [TrialSlot(trial, "", None) for screen in plan["screens"] if screen["kind"] == "block"
                    for trial in screen["trials"] if self._is_asked(trial)]  # fmt: skip
        for screen in plan["screens"]:
            kind = screen["kind"]
            if kind == "instructions":
                texts_since += [page["text"] for page in screen["pages"] if page["text"]]
            elif kind == "break" and screen.get("text") and is_conversation:
                texts_since.append(screen["text"])
            elif kind == "practice" and manner.practice == "shown":
                texts_since += self._solved(screen)
            elif kind == "block" or (kind == "practice" and manner.practice == "answered"):
                in_talk = is_conversation or kind == "practice"
                lead = BLANK.join(texts_since)
                for trial in screen["trials"]:
                    if not self._is_asked(trial):
                        texts_since += [self.prompter.turn(trial).text] if in_talk else []
                        continue
                    if in_talk:
                        lead, texts_since = BLANK.join(texts_since), []
                    is_new = not in_talk or not shown or trial["exemplars"] != shown
                    shown = trial["exemplars"] if in_talk else None
                    places.append(TrialSlot(trial, lead, _feedback_of(screen), is_new))
        return places

    def _is_asked(self, trial: PlannedTrial) -> bool:
        return trial["trial_type"] not in UNANSWERED or self.manner.tells

    def _solved(self, screen: Mapping[str, Any]) -> list[str]:
        solved = [
            self.prompter.solved(trial, right_answer(trial), _feedback_of(screen))
            for trial in screen["trials"]
        ]
        return [text] if (text := self.prompter.practice(solved)) else []


def right_answer(trial: Mapping[str, Any]) -> str:
    """Return a trial's correct answer as a reader would give it: the label, or the text; empty if there is none."""
    step = trial["steps"][-1]
    if step["step"] in CHOSEN:
        return str(step["labels"][step["responses"].index(trial["answer"])])
    return str(trial["answer"] or "")


def _feedback_of(screen: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a screen's feedback settings; plans of earlier versions, as in participants' sessions, had no texts for it."""
    feedback = screen.get("feedback")
    return feedback if isinstance(feedback, Mapping) else None


def _without_practice(plan: Plan) -> Plan:
    return {**plan, "screens": [screen for screen in plan["screens"] if screen["kind"] != "practice"]}
