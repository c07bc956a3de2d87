"""Planned analyses for which a model has no values, whatever its capabilities or by its known ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.plan import Measure
from experiment.checking.model_capabilities import KnownCapabilities
from experiment.models.api.probe import Need
from experiment.models.planning import read_prompting_settings
from experiment.models.prompts import read_step
from experiment.models.settings import ModelSettings
from experiment.procedure import trials_of
from experiment.study import Study
from experiment.study.plans import planned_analyses
from experiment.trials import CHOSEN, UNANSWERED

INSTEAD = {
    "rt": " (a model's latency_ms is a measure only with `wrods run --timing`)",
    "reading_time": " (a model's surprisal of what is read is in the regions table)",
}
"""The measure of models that corresponds to a measure of people."""
NEEDED: dict[str, Need] = {
    "surprisal": "surprisal",
    "margin": "label_logprobs",
    "reasoning_tokens": "reasoning",
}
"""The capability of a model that a measure requires."""
LACKS: dict[Need, str] = {
    "surprisal": "it reports no surprisal of the text that it reads",
    "label_logprobs": "it reports no probabilities of labels, so its choices have no margin",
    "reasoning": "it does not count the tokens of its reasoning",
}


@dataclass(frozen=True)
class PlannedForModel:
    """One planned analysis that names a model.

    ``lack``: why the model has no values for it; None if it has, or if nothing is known yet; ``proviso``: the condition for
    having values.
    """

    name: str
    measure: str
    lack: str | None
    proviso: str | None = None


def planned_of(
    study: Study, settings: ModelSettings, name: str, plan: Mapping[str, Any], giving: KnownCapabilities
) -> list[PlannedForModel]:
    """Compare every planned analysis that names a model with its sessions and its known capabilities."""
    trials = [trial for trial in trials_of(plan) if not trial["is_practice"]]
    planned = []
    for analysis in planned_analyses(study):
        if name not in analysis.measures:
            continue
        measure = analysis.measures[name]
        own_trials = [trial for trial in trials if analysis.trials in (None, trial["trial_type"])]
        lack = _lack(study, settings, measure, own_trials, giving)
        proviso = None if lack else _proviso(measure, own_trials, giving)
        planned.append(PlannedForModel(analysis.name, measure.name, lack, proviso))
    return planned


def _lack(
    study: Study,
    settings: ModelSettings,
    measure: Measure,
    trials: Sequence[Mapping[str, Any]],
    giving: KnownCapabilities,
) -> str | None:
    if measure.of == "people":
        return f"{measure.name} is measured for people only{INSTEAD.get(measure.name, '')}"
    need = NEEDED.get(measure.name)
    if measure.name == "surprisal" and not any(read_step(trial) for trial in trials):
        return "its trials have no `read` step, and only texts of such steps have a surprisal"
    if measure.name == "margin" and not any(trial["trial_type"] in CHOSEN for trial in trials):
        return "its trials offer no labels to choose among"
    if need is not None and need in giving.lacks:
        return LACKS[need]
    if measure.scale != "points" or measure.name == "missing":
        return None
    if read_prompting_settings(study, settings).context == "teacher_forced":
        return "a teacher-forced session scores what a person answered by its log-likelihood, which is never right or wrong"
    if not any(
        trial["answer"] is not None or trial["accepted"]
        for trial in trials
        if trial["trial_type"] not in UNANSWERED
    ):
        return "the correct answers are not defined"
    return None


def _proviso(measure: Measure, trials: Sequence[Mapping[str, Any]], giving: KnownCapabilities) -> str | None:
    if measure.name == "latency_ms":
        return "it has latencies only in sessions run with `wrods run --timing`"
    if measure.name == "completion_tokens" and any(trial["trial_type"] in CHOSEN for trial in trials):
        return "a choice that is scored by its labels generates nothing and has no tokens"
    if measure.name in NEEDED and giving.known_from is None:
        return f"whether it gives {measure.name} is unknown until it is probed or downloaded"
    return None
