"""Requirements of a study for each of its models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from experiment.models.api.probe import Need
from experiment.models.label_ends import begins_another
from experiment.models.planning import PromptingSettings, read_prompting_settings
from experiment.models.planning.plans import require_permission
from experiment.models.planning.prompting_settings import is_remote, state_positions
from experiment.models.prompts import Prompter, read_step
from experiment.models.settings import ModelSettings
from experiment.procedure import trials_of
from experiment.study import Study
from experiment.trials import CHOSEN, TYPED
from stimuli.errors import UserError

SHORT_LABEL = 4
"""Letters of a label that most tokenizers encode as one token; longer ones may be several."""


@dataclass(frozen=True)
class ModelRequirement:
    """One requirement of a study for a model, with its reason."""

    need: Need
    because: str


def needs_of(study: Study, settings: ModelSettings, plan: Mapping[str, Any]) -> list[ModelRequirement]:
    """Return a study's requirements for a model."""
    manner = read_prompting_settings(study, settings)
    prompter = Prompter(plan, strategy=manner.strategy, is_local=manner.is_local)
    trials = [trial for trial in trials_of(plan) if not trial["is_practice"]]
    labels = _scored(prompter, trials)
    requirements: list[ModelRequirement] = []
    is_forced = manner.context == "teacher_forced"
    if is_forced:
        requirements.append(ModelRequirement("likelihoods", "the log-probability of what people answered"))
    elif any(trial["trial_type"] in CHOSEN for trial in trials):
        requirements.append(ModelRequirement("choices", "choices among labels"))
    if labels:
        if not is_forced:
            requirements.append(ModelRequirement("label_logprobs", "label_logprobs and margin of choices"))
        long = [label for label in labels if _may_be_long(label)]
        short = next((label for label in labels if begins_another(label, labels)), None)
        if short is not None:
            longer = next(label for label in labels if label != short and label.startswith(short))
            requirements.append(
                ModelRequirement(
                    "long_labels",
                    f"labels of which one begins another ({short!r}, {longer!r}): {short!r} stands for answers that do not go on "
                    "to the longer one, and if only first tokens are reported, the choice is read from the model's text",
                )
            )
        elif long:
            requirements.append(
                ModelRequirement("long_labels", f"labels that may be several tokens, such as {long[0]!r}")
            )
    if manner.reads and any(read_step(trial) for trial in trials):
        requirements.append(ModelRequirement("surprisal", "surprisal of the words that are read"))
    if is_forced and any(trial["trial_type"] in TYPED for trial in trials):
        requirements.append(ModelRequirement("long_labels", "the log-probability of what people typed"))
    if manner.presentation != "image" and (states := state_positions(study)):
        requirements.append(ModelRequirement("states", f"hidden states ({', '.join(states)})"))
    replicates = int(study.get("models", "replicates", default=1))
    if replicates > 1:
        requirements.append(ModelRequirement("sampling", f"{replicates} replicates that differ"))
    if manner.presentation == "image":
        requirements.append(ModelRequirement("pictures", "items as pictures"))
    if manner.system:
        requirements.append(ModelRequirement("system_role", "instructions in a system message"))
    if settings.options.get("reasoning_effort") not in (None, "none"):
        requirements.append(ModelRequirement("reasoning", "reasoning_tokens"))
    return requirements


def _scored(prompter: Prompter, trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the labels whose probability is needed; none if reasoning comes first or a paper requested text."""
    labels: dict[str, None] = {}
    for trial in trials:
        if trial["trial_type"] in CHOSEN:
            labels |= dict.fromkeys(prompter.turn(trial, with_words=False).labels or ())
    return list(labels)


def _may_be_long(label: str) -> bool:
    return len(label.split()) > 1 or len(label) > SHORT_LABEL


def replicates_alike(
    study: Study, settings: ModelSettings, manner: PromptingSettings | None = None
) -> str | None:
    """Return a message if replicates would repeat the same answer; None if something is random, or there is only one."""
    manner = manner or read_prompting_settings(study, settings)
    replicates = int(study.get("models", "replicates", default=1))
    if replicates < 2 or settings.kind not in ("hf", "openai") or manner.temperature:
        return None
    return (
        f"{replicates} replicates at temperature 0 ask for the most probable answer each time: they add nothing to a single "
        "one. Set a temperature, or replicates: 1"
    )


def refused_answers(study: Study, settings: ModelSettings) -> str | None:
    """Return why participants' answers may not be sent to a model that follows them; None if they may or are not."""
    if study.get("models", "context") != "teacher_forced" or not is_remote(settings):
        return None
    try:
        require_permission(study, settings)
    except UserError as fault:
        return fault.message
    return None
