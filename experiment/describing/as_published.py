"""How a study with a paper's prompts asks its models, in words: in whose wording, and with which settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiment.checking.papers import papers_prompt
from experiment.languages import wording_language
from experiment.models.prompts.published import paper_prompts
from experiment.models.settings import ModelSettings
from experiment.study import Study


def papers_wording(study: Study) -> str:
    """Return whose wording the trials of models have (``Lee & Lim (2024), H-TEST``); empty where it is wrods' own.

    A paper's prompt is all that a model reads: the study's instructions are not sent with it.
    """
    name = papers_prompt(study) if "prompts" in study.published else None
    return "" if name is None else str(paper_prompts()[name]["source"]).partition(";")[0]


def asked_in_english(study: Study, models: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a warning where models are asked in English about a study of another language; empty where they are not."""
    papers = papers_wording(study)
    language = "en" if papers else wording_language(study.language)
    is_own = study.own_texts.wording is not None and not papers
    asked = any(not str(model["use"]).startswith("baseline:") for model in models.values())
    if not asked or is_own or language == study.language.split("-")[0]:
        return ""
    why = (
        f"they read the prompt of {papers}"
        if papers
        else "wrods asks in English, German and Spanish only. Give wordings of your own under `prompts` in texts.json "
        "(docs/study.md#language)"
    )
    return f"Warning: models are asked for their answers in English, and the study's language is {study.language!r}: {why}."


def sent_as_published(study: Study, settings: ModelSettings) -> list[str]:
    """Say with which temperature and length a paper's prompt is sent, and what a chat template makes of it; nothing elsewhere."""
    name = papers_prompt(study) if "prompts" in study.published else None
    if name is None or settings.kind == "baseline":
        return []
    prompt = _prompt(name, study, settings)
    papers = float(prompt["temperature"])
    own = float(str(settings.options.get("temperature", papers)))
    room = _tokens(settings.options.get("max_tokens", prompt["max_tokens"]))
    replicates = study.get("models", "replicates", default=1)
    answers = "one answer" if replicates == 1 else f"{replicates} answers"
    if settings.kind == "hf" and prompt.get("scored"):
        drawn = f"temperature {papers:g}, at most {_tokens(prompt['max_tokens'])}"
        said = [
            f"Its labels are compared by their log-probability, so that nothing is drawn (the paper: {drawn})."
        ]
    else:
        heat = f"temperature {own:g}" + (" as in the paper" if own == papers else f" (the paper: {papers:g})")
        said = [f"Sent at {heat}, with at most {room} an answer; {answers} to an item in each list."]
    if (
        settings.kind == "hf"
        and prompt.get("template") == "plain"
        and settings.options.get("template") != "plain"
    ):
        said.append(
            "The paper gave open chat models the text alone: write template: plain. A chat template would frame it, and as answers "
            "end at the first line break, a chat model's opening line (“Sure! Here is …”) would be taken for its answer."
        )
    return said


def _tokens(number: object) -> str:
    return f"{number} token" if number == 1 else f"{number} tokens"


def _prompt(name: str, study: Study, settings: ModelSettings) -> Mapping[str, Any]:
    """Return the prompt that a model is sent: with thoughts, and on this machine, papers had others of the same kind."""
    prompts = paper_prompts()
    strategy = settings.options.get("strategy", study.get("models", "strategy", default="direct"))
    thinking = f"{name}_chain_of_thought"
    if strategy == "chain_of_thought" and thinking in prompts:
        return prompts[thinking]
    return prompts[name if settings.kind == "hf" else name.removesuffix("_local")]
