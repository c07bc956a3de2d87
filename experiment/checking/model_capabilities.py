"""What a study requires of its models, their capabilities by probe, checkpoint or kind, and planned analyses that lack values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from sqlalchemy import select

from analysis.plan import Measure
from experiment.models.api.formats import parse_request_options
from experiment.models.api.probe import NEEDS, Capabilities, Need
from experiment.models.engine import ModelSettings, NotThereYet, Request, begins_another
from experiment.models.planning.plans import require_permission
from experiment.models.planning.prompt_preview import CHARACTERS_PER_TOKEN
from experiment.models.planning.prompting_settings import (
    PromptingSettings,
    is_remote,
    read_prompting_settings,
    state_positions,
)
from experiment.models.prompts.prompter import Prompter, read_step
from experiment.models.servers import server_of
from experiment.procedure import trials_of
from experiment.procedure.plan_builder import STEP_NAME
from experiment.procedure.steps import points_of_slider
from experiment.store import Store
from experiment.store.tables import audit
from experiment.study import Study
from experiment.study.study import planned_analyses
from experiment.trials import RATED, TYPED, UNANSWERED, labels_of
from stimuli.errors import UserError

SHORT_LABEL = 4
"""Letters of a label that most tokenizers encode as one token; longer ones may be several."""

PROBE = "probe"
"""Name in the audit log of a probe that was requested separately."""
Probed = tuple[str, Capabilities]
"""Time and result of a probe."""

INSTEAD = {
    "rt": " (a model's latency_ms is a measure only with `wrods run --timing`)",
    "reading_time": " (a model's surprisal of what is read is in the regions table)",
    "region_time": " (a model's surprisal of the same words is one: surprisal)",
}
"""The measure of models that corresponds to a measure of people."""
NEEDED: dict[str, Need] = {
    "surprisal": "surprisal",
    "entropy": "surprisal",
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

    def require(need: Need, because: str) -> None:
        requirements.append(ModelRequirement(need, because))

    is_forced = manner.context == "teacher_forced"
    if is_forced:
        require("likelihoods", "the log-probability of what people answered")
    elif any(labels_of(trial["steps"][-1]) for trial in trials):
        require("choices", "choices among labels")
    if labels:
        if not is_forced:
            require("label_logprobs", "label_logprobs and margin of choices")
        long = [label for label in labels if len(label.split()) > 1 or len(label) > SHORT_LABEL]
        short = next((label for label in labels if begins_another(label, labels)), None)
        if short is not None:
            longer = next(label for label in labels if label != short and label.startswith(short))
            require(
                "long_labels",
                f"labels of which one begins another ({short!r}, {longer!r}): {short!r} stands for answers that do not go on to "
                "the longer one, and if only first tokens are reported, the choice is read from the model's text",
            )
        elif long:
            require("long_labels", f"labels that may be several tokens, such as {long[0]!r}")
    if manner.reads and any(read_step(trial) for trial in trials):
        require("surprisal", "surprisal of the words that are read")
    if is_forced and any(trial["trial_type"] in TYPED for trial in trials):
        require("long_labels", "the log-probability of what people typed")
    if is_forced and any(points_of_slider(trial["steps"][-1]) for trial in trials):
        require("long_labels", "the log-probability of what people set on a slider")
    if manner.presentation != "image" and (states := state_positions(study)):
        require("states", f"hidden states ({', '.join(states)})")
    replicates = int(study.get("models", "replicates", default=1))
    if replicates > 1:
        require("sampling", f"{replicates} replicates that differ")
    if manner.presentation == "image":
        require("pictures", "items as pictures")
    if manner.system:
        require("system_role", "instructions in a system message")
    if settings.options.get("reasoning_effort") not in (None, "none"):
        require("reasoning", "reasoning_tokens")
    return requirements


def _scored(prompter: Prompter, trials: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the labels whose probability is needed; none if reasoning comes first or a paper requested text."""
    labels: dict[str, None] = {}
    for trial in trials:
        if labels_of(trial["steps"][-1]):
            labels |= dict.fromkeys(prompter.turn(trial, with_words=False).labels or ())
    return list(labels)


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


@dataclass(frozen=True)
class KnownCapabilities:
    """Known capabilities of a model.

    ``known_from``: ``its probe of 2026-11-21``, ``its checkpoint``, ``its kind``; None if nothing is known yet; ``gaps``: a
    sentence for each requirement that it does not meet; ``remark``: why nothing is known, and how to find out; ``lacks``:
    everything that it is known not to support, required or not.
    """

    known_from: str | None
    gaps: tuple[str, ...] = ()
    remark: str | None = None
    lacks: frozenset[Need] = frozenset()


def address_of(settings: ModelSettings) -> tuple[str, str, str]:
    """Return the key of a probe: model, address and form of the API."""
    return settings.name, server_of(settings.options).base_url, parse_request_options(settings).surface


def stored_probes(store: Store, study: str) -> dict[tuple[str, str, str], Probed]:
    """Return the last probe of each model at its address, from a study's runs and from ``wrods check --probe``."""
    query = (
        select(audit.c.at, audit.c.detail)
        .where(audit.c.study == study, audit.c.action.in_((PROBE, "run", "run_ended")))
        .order_by(audit.c.audit_id)
    )
    probes: dict[tuple[str, str, str], Probed] = {}
    with store.read() as connection:
        for row in connection.execute(query):
            detail = row.detail or {}
            probe = detail.get(PROBE) or (detail.get("engine") or {}).get("probe")
            if isinstance(probe, Mapping):
                # without fields added by later versions
                known = (field.name for field in fields(Capabilities) if field.name in probe)
                given: dict[str, Any] = {
                    name: tuple(probe[name]) if isinstance(probe[name], list) else probe[name]
                    for name in known
                }
                found = Capabilities(**given)
                probes[found.model, found.base_url, found.api] = str(row.at), found
    return probes


def giving_of(
    settings: ModelSettings,
    asked: Sequence[ModelRequirement],
    probes: Mapping[tuple[str, str, str], Probed],
    longest: Request | None = None,
) -> KnownCapabilities:
    """Compare a model's requirements with its known capabilities, without requests and without loading weights."""
    needs = [requirement.need for requirement in asked]
    if settings.kind == "openai":
        probed = probes.get(address_of(settings))
        if probed is None:
            return KnownCapabilities(
                None,
                remark="Not probed yet: `wrods check --probe` queries the server, as every run does first.",
            )
        probed_at, capabilities = probed
        gaps = capabilities.gaps(needs)
        is_first_token = settings.options.get("label_scoring") != "whole"
        if "long_labels" in needs and capabilities.prompt_logprobs and is_first_token:
            gaps = [
                *gaps,
                f"{settings.name} can score whole labels, but the study requests only their first token: set label_scoring: whole.",
            ]
        return KnownCapabilities(
            f"its probe of {probed_at[:10]}",
            tuple(gaps),
            lacks=frozenset(need for need in NEEDS if capabilities.gaps([need])),
        )
    if settings.kind == "hf":
        return _of_checkpoint(settings, needs, longest)
    if settings.kind == "baseline":
        return KnownCapabilities(
            "its kind",
            tuple(f"{settings.use} {lack}." for need, lack in OF_BASELINES.items() if need in needs),
            lacks=frozenset((*OF_BASELINES, "surprisal", "reasoning", "pictures")),
        )
    return KnownCapabilities(None, remark=f"Only the package of {settings.use} knows what it can do.")


OF_BASELINES: Mapping[Need, str] = {
    "label_logprobs": "reports no probabilities of labels, so margins and label_logprobs stay empty",
    "likelihoods": "has no probabilities of answers, so people's answers cannot be scored with it",
    "states": "has no hidden states",
}


def reads_with_encoder(settings: ModelSettings) -> bool:
    """Return whether a local model is known to have an encoder; False if its files are not on this machine."""
    try:
        folder = checkpoint_folder(settings)
    except UserError:
        return False
    return folder is not None and _has_encoder(folder)


def checkpoint_folder(settings: ModelSettings) -> Path | None:
    """Return the folder on this machine with a local model's configuration; None if it is not downloaded."""
    from experiment.models.local.checkpoints import find_source

    source = find_source(settings)
    if source.is_folder:
        return Path(source.place)
    from huggingface_hub import try_to_load_from_cache

    cached_file = try_to_load_from_cache(source.place, "config.json", revision=source.revision)
    return Path(cached_file).parent if isinstance(cached_file, str) else None


def _of_checkpoint(
    settings: ModelSettings, needs: Sequence[Need], longest: Request | None
) -> KnownCapabilities:
    """Return a local model's capabilities by its configuration, and its template if a system message is required."""
    try:
        folder = checkpoint_folder(settings)
    except NotThereYet as lack:
        return KnownCapabilities(None, remark=f"Not examined: {lack.message}.")
    if folder is None:
        return KnownCapabilities(
            None,
            remark=f"Not examined: the files of {settings.name} are not on this machine yet; a run downloads them.",
        )
    gaps = []
    lacks: frozenset[Need] = frozenset(("surprisal", "states") if _has_encoder(folder) else ())
    if lacks & set(needs):
        gap_of_need = {
            "surprisal": "reads with an encoder, in both directions, so it has no surprisal and the regions table has no rows of it",
            "states": "reads with an encoder, so its hidden states are not kept",
        }
        gaps += [f"{settings.name} {gap_of_need[need]}." for need in needs if need in gap_of_need]
    if "pictures" in needs:
        gaps += _of_pictures(folder, settings)
        lacks |= {"surprisal", "states"}
    else:
        gaps += _too_long(folder, settings, longest)
    if "system_role" in needs and not _takes_system(folder, settings):
        gaps.append(
            f"{settings.name} has no system message in its chat template, so the instructions open the first user message."
        )
    return KnownCapabilities("its checkpoint", tuple(gaps), lacks=lacks)


def _has_encoder(folder: Path) -> bool:
    """Return whether a checkpoint has an encoder; most configurations say so without loading transformers, which takes seconds."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        if "is_encoder_decoder" in config:
            return bool(config["is_encoder_decoder"])
        if any(name.endswith("ForCausalLM") for name in config.get("architectures") or ()):
            return False
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
    except Exception as fault:
        raise UserError(
            f"the configuration in {folder} cannot be read: {fault}",
            mend="Name a folder written by save_pretrained.",
        ) from fault
    return bool(getattr(config, "is_encoder_decoder", False))


def _of_pictures(folder: Path, settings: ModelSettings) -> list[str]:
    """Return why a checkpoint takes no pictures: its kind, its processor, a template without places for them."""
    from experiment.models.local.checkpoints import find_source, load_tokenizer
    from experiment.models.local.vision import ImageProcessor

    source = find_source(settings)
    try:
        ImageProcessor(source, load_tokenizer(source)[0], settings.name)
    except UserError as fault:
        return [f"{fault.message}."]
    return []


def _too_long(folder: Path, settings: ModelSettings, longest: Request | None) -> list[str]:
    """Return a message if a session's longest request exceeds a model's context, by its tokenizer or else by characters."""
    from transformers import AutoConfig, AutoTokenizer

    from experiment.models.local.tokens import context_length_of

    if longest is None:
        return []
    has_encoder = _has_encoder(folder)
    reach = context_length_of(AutoConfig.from_pretrained(str(folder), local_files_only=True))
    most = reach.source if has_encoder else reach.text
    if most is None:
        return []
    text = "\n\n".join(message.content for message in longest.messages)
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        count = len(tokenizer(text, verbose=False)["input_ids"])
    except Exception:  # its tokenizer is missing or incomplete: the run will report it
        count = len(text) // CHARACTERS_PER_TOKEN
    continues = not has_encoder and (longest.labels is None or longest.also_text)
    count += longest.max_tokens if continues else 0
    if count <= most:
        return []
    is_talk = len(longest.messages) > 2
    subject = "the last turn of a session" if is_talk else "the longest trial"
    mend = (
        "a conversation ends where it does not fit any more; ask fewer trials a session, or context: independent"
        if is_talk
        else "such trials get no answer"
    )
    return [
        f"{settings.name}: {subject} takes roughly {count} tokens, longer than the {most} tokens that it reads: {mend}."
    ]


def _takes_system(folder: Path, settings: ModelSettings) -> bool:
    """Return whether a checkpoint's template renders a system message; plain text has no roles."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    except Exception:  # its tokenizer is missing or incomplete: the run will report it
        return True
    if settings.options.get("template") == "plain" or not getattr(tokenizer, "chat_template", None):
        return False
    turns = [{"role": "system", "content": "wrods-system"}, {"role": "user", "content": "wrods-user"}]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    except Exception:  # templates refuse a role with any exception
        return False
    return "wrods-system" in str(text)


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
        own_trials = [
            trial
            for trial in trials
            if (
                trial[STEP_NAME] == analysis.trials
                if STEP_NAME in trial
                else analysis.trials in (None, trial["trial_type"])
            )
        ]
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
    steps = (step for trial in trials for step in trial["steps"])
    own = next((step["type"] for step in steps if not step.get("for_models", True)), None)
    if own is not None:
        return f"trials of {own} are for people only: trial_types/{own} has no prompt.j2 and parser.py"
    need = NEEDED.get(measure.name)
    if measure.name in ("surprisal", "entropy") and not any(read_step(trial) for trial in trials):
        return f"its trials have no `read` step, and only texts of such steps have a {measure.name}"
    if measure.name == "entropy" and settings.kind != "hf":
        return "only local models report the whole distribution over tokens, from which an entropy follows"
    if measure.name == "margin" and not any(labels_of(trial["steps"][-1]) for trial in trials):
        return "its trials offer no labels to choose among"
    if need is not None and need in giving.lacks:
        return LACKS[need]
    is_rated = any(trial["trial_type"] in RATED for trial in trials)
    if measure.name == "rating" and not is_rated:
        return "its trials end with no rating"
    if measure.name != "rating" and (measure.scale != "points" or measure.name == "missing"):
        return None
    if read_prompting_settings(study, settings).context == "teacher_forced":
        return (
            "a teacher-forced session scores what a person answered by its log-likelihood, which is never right or wrong, and "
            "no rating"
        )
    if measure.name == "rating":
        return None
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
    if measure.name == "completion_tokens" and any(labels_of(trial["steps"][-1]) for trial in trials):
        return "a choice that is scored by its labels generates nothing and has no tokens"
    if measure.name in NEEDED and giving.known_from is None:
        return f"whether it gives {measure.name} is unknown until it is probed or downloaded"
    return None
