"""Prompting of one model in a study, and what the sessions of one list and prompt variant share: trials, texts and digests.

The plan of a list is built once, and its prompts once per variant, for any number of replicates and models; only a digest
per trial is stored, and a prompt is rendered again when it is sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal, cast

from experiment.models.engine import STATES, ModelSettings
from experiment.models.pictures import LOOK
from experiment.models.prompts.prompter import BLANK, Presentation, Prompter, Strategy, Turn
from experiment.models.servers import server_of
from experiment.parsing.label_sets import BETWEEN, answers_in
from experiment.procedure import Plan, PlannedTrial, trials_of
from experiment.procedure.plan_builder import STEP_NAME
from experiment.study import Study
from experiment.trials import CHOSEN, RATED, TYPED, UNANSWERED, answering_step
from stimuli.errors import UserError

Context = Literal["independent", "session", "teacher_forced"]
Practice = Literal["none", "shown", "answered"]

DIGEST = 32
"""Length of a trial's digest in bytes."""


@dataclass(frozen=True)
class PromptingSettings:
    """Settings with which a study prompts one model."""

    context: Context
    practice: Practice  # practice trials are left out, included as solved examples, or answered first
    strategy: Strategy
    feedback: bool  # whether a conversation includes the feedback that a participant would see
    system: bool  # whether instructions are a system message
    also_text: bool  # whether the model's free answer is generated as well as scored labels
    # whether surprisal of the words that are read is requested; servers that cannot report it omit it
    reads: bool
    tells: bool
    states: tuple[str, ...]  # positions whose hidden states are stored, from STATES
    is_local: bool  # whether the model runs here, so that stop texts are sent
    stops: bool
    max_tokens: int | None  # as the study sets it, or None
    temperature: float | None
    top_p: float
    top_k: int | None
    # whether the items, and solved examples before them, are shown as text or as pictures
    presentation: Presentation = "text"
    of_examples: Presentation = "text"

    def to_json(self) -> dict[str, Any]:
        """Return the settings that work keys hash; those added later are left out at their defaults."""
        usual: dict[str, Any] = {"also_text": False, "states": (), "top_p": 1.0, "top_k": None}
        usual |= {"presentation": "text", "of_examples": "text"}
        described = {
            name: value for name, value in asdict(self).items() if name not in usual or value != usual[name]
        }
        return described if self.presentation == "text" else {**described, "pictures": dict(LOOK)}


def read_prompting_settings(study: Study, settings: ModelSettings) -> PromptingSettings:
    """Return how a study prompts a model."""
    options = settings.options
    is_baseline = settings.kind == "baseline"
    context = cast(Context, study.get("models", "context", default="independent"))
    usual = "answered" if context == "session" else "none"
    practice = cast(Practice, study.get("models", "practice", default=usual))
    strategy = cast(Strategy, options.get("strategy", study.get("models", "strategy", default="direct")))
    presentation = cast(Presentation, options.get("presentation", "text"))
    sees = presentation == "image"
    # solved examples follow the items by default
    of_examples = cast(Presentation, options.get("examples_presentation", "image") if sees else "text")
    manner = PromptingSettings(
        context=context,
        practice=practice if context != "teacher_forced" else "answered",
        strategy="direct" if is_baseline else strategy,
        feedback=study.get("models", "feedback", default="as_people") != "none",
        system=options.get("system", "user") == "system",
        also_text=bool(options.get("also_text", False)),
        # words in a picture have no surprisal, and no tokens with hidden states; servers report no states
        reads=not is_baseline and not sees,
        tells=tells_of_prompts(settings.kind, options) and not sees,
        states=state_positions(study) if settings.kind == "hf" and not sees else (),
        is_local=settings.kind == "hf",
        stops=settings.kind != "openai",
        max_tokens=_integer(options, "max_tokens"),
        temperature=_number(options, "temperature"),
        top_p=_number(options, "top_p") or 1.0,
        top_k=_integer(options, "top_k"),
        presentation=presentation,
        of_examples=of_examples,
    )
    _check(study, manner, settings)
    return manner


def state_positions(study: Study) -> tuple[str, ...]:
    """Return the requested positions of states without duplicates in a fixed order, so that reordering the file changes nothing."""
    positions: str | Sequence[str] = study.get("models", "states", default=())
    names = (positions,) if isinstance(positions, str) else positions
    return tuple(position for position in STATES if position in names)


def tells_of_prompts(kind: str, options: Mapping[str, object]) -> bool:
    """Return whether a model reports log-probabilities of its prompt: local ones, and servers set to do so."""
    return kind == "hf" or (kind == "openai" and options.get("label_scoring") == "whole")


def is_remote(settings: ModelSettings) -> bool:
    """Return whether a model's prompts leave the user's own machine and network."""
    if settings.kind in ("hf", "package", "baseline"):
        return False
    return settings.kind != "openai" or not server_of(settings.options).is_own


def _check(study: Study, manner: PromptingSettings, settings: ModelSettings) -> None:
    _check_pictures(study, manner, settings)
    place = study.place("models", "context")
    if "prompts" in study.published and (manner.context != "independent" or manner.practice != "none"):
        raise UserError(
            f"{study.place('published')}: the papers asked each trial alone and without practice",
            mend="Take prompts out of published, or set models: context: independent and practice: none.",
        )
    if manner.strategy == "unscramble_first" and (
        manner.context != "independent" or manner.practice == "answered"
    ):
        raise UserError(
            f"{place}: a model that restores each text first is asked about each trial alone",
            mend="Set context: independent and practice: none or shown, or strategy: direct.",
        )
    steps = [
        answering_step(screen["block"]["trial"]) for screen in study.get("procedure") if "block" in screen
    ]
    answering = {next(iter(step)) for step in steps}
    scales = {given.get("as") for step in steps for kind, given in step.items() if kind in RATED}
    if scales and manner.practice == "shown":
        raise UserError(
            f"{study.place('models', 'practice')} is 'shown', which shows practice with its right answers, and no rating is right",
            mend="Set practice: none, or answered: the model then rates the practice items itself.",
        )
    if manner.strategy == "unscramble_first" and "recover" in answering:
        raise UserError(
            f"{study.place('models')}: strategy unscramble_first restores the text, which is what `recover` asks for already",
            mend="Set strategy: direct or chain_of_thought.",
        )
    if manner.context == "teacher_forced" and manner.strategy != "direct":
        raise UserError(
            f"{place}: a person's answers are scored as they stand; nothing is thought or restored before",
            mend="Set strategy: direct for this model.",
        )
    for_people = {name for name, declared in study.own_types.items() if not declared.is_for_models}
    shown = [
        {kind for step in screen["block"]["trial"] for kind in step} & for_people
        for screen in study.get("procedure")
        if "block" in screen
    ]
    if all(shown):
        name = min(shown[0])
        raise UserError(
            f"{place}: every trial has {name}, which is for people only: trial_types/{name} has no prompt.j2 and parser.py",
            mend="Add them (docs/own-trials.md), or name no model in this study.",
        )
    own = sorted(answering & set(study.own_types))
    if own and (manner.context == "teacher_forced" or manner.strategy == "chain_of_thought"):
        setting = (
            "context: teacher_forced" if manner.context == "teacher_forced" else "strategy: chain_of_thought"
        )
        raise UserError(
            f"{place}: {setting} does not apply to {own[0]}, a trial type of this study: its own prompt says how to answer",
            mend="Take it out for this study.",
        )
    is_free = answering & set(TYPED) or "slider" in scales
    if manner.context == "teacher_forced" and not manner.tells and is_free:
        raise UserError(
            f"{place}: what people typed or set on a slider is scored by its log-probability, which {settings.use} cannot tell",
            mend="Use a local model (hf:…), a server that tells log-probabilities of prompts with label_scoring: whole, or "
            "another context for this study.",
        )


def _check_pictures(study: Study, manner: PromptingSettings, settings: ModelSettings) -> None:
    """Raise an error unless pictures are possible: independent trials, no restoration or separate reasoning, a model with vision."""
    place = study.place("models")
    if manner.presentation == "text":
        if "examples_presentation" in settings.options:
            raise UserError(
                f"{place}: examples_presentation is {settings.options['examples_presentation']!r}, and {settings.use} "
                "is shown items as text",
                mend="Add presentation: image, or take examples_presentation out.",
            )
        return
    if settings.kind == "baseline":
        raise UserError(
            f"{place}: presentation: image does not apply to {settings.use}: a baseline looks at nothing",
            mend="Take presentation out.",
        )
    if manner.context != "independent" or manner.practice != "none":
        raise UserError(
            f"{study.place('models', 'context')}: a model that is shown pictures (presentation: image) is asked each trial by "
            "itself and without practice",
            mend="Set context: independent and practice: none, or show this model text.",
        )
    if manner.strategy == "unscramble_first":
        raise UserError(
            f"{place}: strategy: unscramble_first asks about a text as it was restored, and presentation: image shows none",
            mend="Set strategy: direct or chain_of_thought for this model.",
        )
    if settings.kind == "hf" and (
        settings.options.get("thinking") or settings.options.get("template") == "plain"
    ):
        name = "thinking: true" if settings.options.get("thinking") else "template: plain"
        raise UserError(
            f"{place}: {name} cannot be combined with presentation: image: a local model receives pictures through its own chat "
            "template, and answers without reasoning first",
            mend=f"Take {name} out; strategy: chain_of_thought lets the model think aloud in its answer.",
        )


def _integer(options: Mapping[str, object], name: str) -> int | None:
    return None if options.get(name) is None else int(str(options[name]))


def _number(options: Mapping[str, object], name: str) -> float | None:
    return None if options.get(name) is None else float(str(options[name]))


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
        self.plan = {**plan, "strategy": manner.strategy}
        if manner.practice != "answered":
            self.plan["screens"] = [screen for screen in plan["screens"] if screen["kind"] != "practice"]
        self.manner = manner
        self.prompter = Prompter(
            plan,
            strategy=manner.strategy,
            is_local=manner.is_local,
            presentation=manner.presentation,
            of_examples=manner.of_examples,
        )
        _require_descriptions(plan, manner)
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
                is_asked = True
                for trial in screen["trials"]:
                    # a further answer is about one that was given
                    is_asked = self._is_asked(trial) and (is_asked or STEP_NAME not in trial)
                    if not is_asked:
                        texts_since += (
                            [self.prompter.turn(trial).text] if in_talk and _is_for_models(trial) else []
                        )
                        continue
                    if in_talk:
                        lead, texts_since = BLANK.join(texts_since), []
                    is_new = not in_talk or not shown or trial["exemplars"] != shown
                    shown = trial["exemplars"] if in_talk else None
                    places.append(TrialSlot(trial, lead, _feedback_of(screen), is_new))
        return places

    def _is_asked(self, trial: PlannedTrial) -> bool:
        return _is_for_models(trial) and (trial["trial_type"] not in UNANSWERED or self.manner.tells)

    def _solved(self, screen: Mapping[str, Any]) -> list[str]:
        solved = [
            self.prompter.solved(trial, right_answer(trial), _feedback_of(screen))
            for trial in screen["trials"]
            if _is_for_models(trial) and STEP_NAME not in trial
        ]
        return [text] if (text := self.prompter.practice(solved)) else []


def _require_descriptions(plan: Plan, manner: PromptingSettings) -> None:
    """Raise an error for what a model cannot see or hear and nothing describes; baselines look at nothing."""
    sees = manner.presentation == "image"
    if not sees and not manner.reads:
        return
    for trial in trials_of(plan):
        for file in (
            file for step in trial["steps"] for file in (*step.get("media", ()), *step.get("pictures", ()))
        ):
            if file["text"] is None and not (sees and file["kind"] == "image"):
                raise UserError(
                    f"item {trial['item_id']!r}: nothing describes its {file['kind']}, which the model does not "
                    f"{'hear' if file['kind'] == 'audio' else 'see'}",
                    mend="Describe it in a column called like its own with `_text` (picture: picture_text), or, for a picture, set "
                    "presentation: image for a model with vision.",
                )


def _is_for_models(trial: Mapping[str, Any]) -> bool:
    """Return whether models can do every step of a trial: a lab's own type may be for people only."""
    return all(step.get("for_models", True) for step in trial["steps"])


def right_answer(trial: Mapping[str, Any]) -> str:
    """Return a trial's correct answer as a reader would give it: the label, or the text; empty if there is none."""
    step = trial["steps"][-1]
    if step["step"] in CHOSEN and step.get("several"):
        right = answers_in(trial["answer"])
        places = [place for place, response in enumerate(step["responses"]) if response in right]
        return BETWEEN.join(step["labels"][place] for place in places)
    if step["step"] in CHOSEN and trial["answer"] is not None:
        return str(step["labels"][step["responses"].index(trial["answer"])])
    return str(trial["answer"] or "")


def _feedback_of(screen: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a screen's feedback settings; plans of earlier versions, as in participants' sessions, had no texts for it."""
    feedback = screen.get("feedback")
    return feedback if isinstance(feedback, Mapping) else None
