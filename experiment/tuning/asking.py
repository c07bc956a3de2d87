"""Lines of H-TEST to train on, worded as the study asks its test items: same instructions, examples and ways to answer.

Each line takes the place of a test item of its task in one of the study's sessions, drawn by the seed over lists and prompt
variants, so that labels that are swapped between lists are swapped here, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from experiment.lists import list_ids
from experiment.models.planning import manner_of
from experiment.models.planning.session import ModelSession
from experiment.models.planning.session_template import Script
from experiment.procedure import Plan, plan_session
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.seeds import generator

if TYPE_CHECKING:
    from experiment.tuning.settings import Training
    from experiment.tuning.training_sets import Exchange


@dataclass(frozen=True)
class _Slot:
    """A list and prompt variant in which lines can stand."""

    list_id: int
    variant: int


def as_asked(study: Study, training: Training, exchanges: Sequence[Exchange]) -> Iterator[dict[str, Any]]:
    """Yield each line with the messages that the study would send for it, and the label that would be right."""
    manner = manner_of(study, training.model)
    if manner.context != "independent" or manner.practice == "answered" or manner.strategy != "direct":
        raise UserError(
            f"{training.place}: asked: study words each line by itself, and the study asks {training.base} in a conversation, or "
            "for thoughts before the answer",
            mend="Write asked: bare, or set models: context: independent and strategy: direct.",
        )
    if manner.presentation != "text":
        raise UserError(
            f"{training.place}: {training.base} is shown pictures, and training takes text",
            mend="Write asked: bare, or name a model that is shown text.",
        )
    maps = study.get("models", "label_maps", default="balanced")
    variants = range(1, int(study.get("models", "prompt_variants", default=1)) + 1)
    slots = [
        _Slot(one, variant) for one in list_ids(study, study.items, label_maps=maps) for variant in variants
    ]
    draw = generator(training.seed, "training: in which list a line stands", training.task)
    of_slot: dict[_Slot, list[int]] = defaultdict(list)
    order = [slots[place % len(slots)] for place in range(len(exchanges))]
    draw.shuffle(order)
    for place, slot in enumerate(order):
        of_slot[slot].append(place)
    found: dict[int, dict[str, Any]] = {}
    plans: dict[int, Plan] = {}
    for slot, places in of_slot.items():
        plan = plans.setdefault(slot.list_id, plan_session(study, study.items, list_id=slot.list_id))
        plan = {
            **_with_lines(plan, training, [exchanges[place] for place in places]),
            "prompt_variant": slot.variant,
        }
        session = ModelSession(Script(plan, manner), [], seed=study.seed, reader=training.base, replicate=1)
        requests = session.begin({})
        for place, request, trial in zip(places, requests, session.trials, strict=True):
            turns = [{"role": one.role, "content": one.content} for one in request.messages]
            said = {"prompt": turns[0]["content"]} if len(turns) == 1 else {"messages": turns}
            told = {**exchanges[place].provenance, "list": slot.list_id, "prompt_variant": slot.variant}
            found[place] = {**said, "reply": _label(trial), "provenance": told}
    return (found[place] for place in range(len(exchanges)))


def _with_lines(plan: Plan, training: Training, exchanges: Sequence[Exchange]) -> Plan:
    """Return a plan whose blocks ask about the lines, each worded as the first test item of the task."""
    screens = []
    is_found = False
    for screen in plan["screens"]:
        if screen["kind"] != "block":
            screens.append(screen)
            continue
        model = next(
            (
                trial
                for trial in screen["trials"]
                if trial["condition"].get("task") == training.task
                and not trial["is_attention_check"]
                and trial["steps"][-1]["step"] == "choose"
            ),
            None,
        )
        trials = (
            []
            if model is None or is_found
            else [_with_line(model, one, n) for n, one in enumerate(exchanges)]
        )
        is_found = is_found or bool(trials)
        screens.append({**screen, "trials": trials})
    if not is_found:
        raise UserError(
            f"{training.place}: no block of the study asks for a choice about items of {training.task}",
            mend="Write asked: bare.",
        )
    return {**plan, "screens": screens}


def _with_line(trial: dict[str, Any], exchange: Exchange, number: int) -> dict[str, Any]:
    text, label = str(exchange.provenance["text"]), str(exchange.provenance["label"])
    shown = {**trial["shown"], "text": text}
    steps = [
        {**step, "text": text, "lines": [text]} if step.get("text") == trial["shown"]["text"] else step
        for step in trial["steps"]
    ]
    return {
        **trial, "item_id": f"training-{number}", "trial_index": number + 1, "shown": shown, "steps": steps,
        "answer": label, "accepted": [label],
    }  # fmt: skip


def _label(trial: dict[str, Any]) -> str:
    """Return the label that is right for a line, as its list shows labels."""
    step = trial["steps"][-1]
    return str(step["labels"][step["responses"].index(trial["answer"])])
