"""The plan of a session: the screens that one reader sees, the same for participants and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiment.lists import label_map_of, session_levels
from experiment.procedure.plan_builder import PlanBuilder, PlannedTrial, Screen
from experiment.procedure.questions import seen_question
from experiment.study import Study
from experiment.study.durations import milliseconds
from stimuli.item import Item

Plan = dict[str, Any]
SEEN_OF_PLAN = (
    "study",
    "title",
    "language",
    "items_language",
    "version",
    "list_id",
    "order_row",
    "if_interrupted",
    "withdraw_until",
    "display",
    "assistive_input",
)
SEEN_OF_TRIAL = (
    "trial_index",
    "block",
    "trial_type",
    "is_practice",
    "is_filler",
    "is_attention_check",
    "exemplars",
    "fixation_ms",
    "interval_ms",
    "steps",
)
HIDDEN_OF_STEP = ("responses", "read_as", "decimal")


def plan_session(
    study: Study,
    items: Sequence[Item],
    *,
    list_id: int,
    session_key: str | None = None,
    order_row: int = 0,
    prompt_variant: int = 1,
    replicate: int = 1,
    version: int = 1,
) -> Plan:
    """Return the plan of one session of a study (the format is in ``docs/contracts.md``).

    Parameters
    ----------
    items : sequence of Item
        All built items of the study.
    list_id : int
        Row of the Latin square, label map and levels between sessions, from 1.
    session_key : str, optional
        Seed of the session's order; models leave it out and share the list's order.
    order_row : int
        Row of the balanced order of sets or blocked conditions: the number of the list's earlier sessions.
    """
    session = PlanBuilder(
        study,
        items,
        list_id=list_id,
        session_key=session_key,
        order_row=order_row,
        label_map=label_map_of(study, items, list_id),
        between=session_levels(study, items, list_id),
    )
    return as_plan(
        session,
        session.screens(),
        version=version,
        prompt_variant=prompt_variant,
        replicate=replicate,
        context=study.get("models", "context", default="independent"),
    )


def as_plan(
    session: PlanBuilder,
    screens: list[Screen],
    *,
    version: int,
    prompt_variant: int = 1,
    replicate: int = 1,
    context: str = "independent",
) -> Plan:
    """Return the plan of a session that shows some screens."""
    study = session.study
    until = study.get("participants", "withdraw_until")
    return {
        "study": study.id,
        "title": study.shown_title,
        "language": study.language,
        **({} if study.items_language == study.language else {"items_language": study.items_language}),
        **({} if study.own_texts.wording is None else {"wording": study.own_texts.wording}),
        "version": version,
        "design_hash": study.design_hash,
        "list_id": session.list_id,
        "order_row": session.order_row,
        "label_map": dict(session.labels.shown),
        "prompt_variant": prompt_variant,
        "replicate": replicate,
        "context": context,
        "published": sorted(study.published),
        "if_interrupted": if_interrupted(study),
        **({} if until is None else {"withdraw_until": until}),
        "display": {"polarity": study.get("display", "polarity", default="dark_on_light")},
        "assistive_input": bool(study.get("participants", "assistive_input", default=False)),
        "screens": screens,
    }


def if_interrupted(study: Study) -> dict[str, Any]:
    """Return the rule for abandoned sessions: ``then`` and, in ms, the time ``within`` which they may resume (null: any)."""
    given = study.get("participants", "if_interrupted", default={})
    within = given.get("within")
    return {"then": given.get("then", "resume"), "within_ms": milliseconds(within) if within else None}


def trials_of(plan: Mapping[str, Any]) -> list[PlannedTrial]:
    """Return all trials of a plan in order, practice included."""
    return [trial for screen in plan["screens"] for trial in screen.get("trials", [])]


def participant_view(plan: Mapping[str, Any], *, is_preview: bool = False) -> Plan:
    """Return what a browser may know of a plan: the contents of its page, and the answers of practice trials only.

    A trial's item is left out with its answer key, because the item may be named after its answer (a word); so are the order of
    its choices and the meaning of its labels. Practice keeps answer and meanings, because the page shows feedback at once.
    Accepted answers to eligibility questions are left out.

    Parameters
    ----------
    is_preview : bool
        For the study's authors: no server scores, and blocks with feedback on accuracy keep correct answers.
    """
    return {name: plan[name] for name in SEEN_OF_PLAN if name in plan} | {
        "screens": [_seen_screen(screen, is_preview) for screen in plan["screens"]]
    }


def _seen_screen(screen: Mapping[str, Any], is_preview: bool) -> dict[str, Any]:
    seen = dict(screen)
    if "trials" in screen:
        is_told = is_preview and bool(screen["feedback"])
        seen["trials"] = [_seen_trial(trial, is_told or trial["is_practice"]) for trial in screen["trials"]]
    if "questions" in screen:
        seen["questions"] = [seen_question(question) for question in screen["questions"]]
    return seen


def _seen_trial(trial: PlannedTrial, is_told: bool) -> PlannedTrial:
    if is_told:
        return {name: trial[name] for name in (*SEEN_OF_TRIAL, "answer", "accepted")}
    steps = [
        {name: part for name, part in step.items() if name not in HIDDEN_OF_STEP} for step in trial["steps"]
    ]
    return {name: trial[name] for name in SEEN_OF_TRIAL} | {"steps": steps}
