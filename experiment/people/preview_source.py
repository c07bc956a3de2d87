"""Ties the preview to studies and models: items built in memory, prompts as runs send them, tokens of a local model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from experiment.checking import load_study
from experiment.people.preview import PreviewStudy, PromptView, RenderPrompt
from experiment.study import Study
from stimuli.errors import UserError, unknown_name


def preview_study(path: Path) -> PreviewStudy:
    """Read a study and build its items in memory, so that the preview shows what ``study.yaml`` says now."""
    from experiment.building import build_items
    from experiment.lists import list_ids
    from experiment.procedure import participant_view, plan_session

    study = load_study(path)
    items = build_items(study)
    plans: dict[tuple[int, int], dict[str, Any]] = {}

    def plan(list_id: int, variant: int) -> dict[str, Any]:
        if (list_id, variant) not in plans:
            plans[list_id, variant] = plan_session(study, items, list_id=list_id, prompt_variant=variant)
        return plans[list_id, variant]

    return PreviewStudy(
        study=study.id,
        title=study.title,
        language=study.language,
        pack=study.pack,
        list_ids=tuple(list_ids(study, items)),
        variants=int(study.get("models", "prompt_variants", default=1)),
        plan=plan,
        participant_view=partial(participant_view, is_preview=True),
    )


def prompt_maker(study: Study, model: str | None) -> RenderPrompt:
    """Return the function that makes a trial's prompt, with tokens where a local model is named."""
    from experiment.models.planning import prompt_in_context
    from experiment.models.prompts import render
    from experiment.models.settings import ModelSettings

    cut = None if model is None else _cutter(study, model)
    named = model if model in study.models else next(iter(study.models), None)
    options = {} if named is None else study.models[named]
    settings = ModelSettings(str(options.get("use", "hf:")), options, study.folder)

    def make(plan: Mapping[str, Any], trial: Mapping[str, Any]) -> PromptView:
        shown = prompt_in_context(study, settings, plan, trial)
        rendered = render(plan, trial) if shown is None else shown.request
        return PromptView(
            messages=[(message.role, message.content) for message in rendered.messages],
            labels=rendered.labels,
            model=model,
            tokens=None if cut is None else cut(rendered.messages),
        )

    return make


def _cutter(study: Study, model: str) -> Callable[[Any], list[str]]:
    from experiment.models.local.checkpoints import find_source, load_tokenizer
    from experiment.models.local.tokens import Wording
    from experiment.models.settings import ModelSettings

    if model in study.models:
        settings = study.models[model]
    elif model.startswith("hf:"):
        settings = {"use": model}
    else:
        raise unknown_name("model", model, [*study.models, "hf:PATH"])
    use = str(settings["use"])
    if not use.startswith("hf:"):
        raise UserError(
            f"{model} is {use}; only local models (hf:…) tell their tokens",
            mend="Leave --model out, or name a local model.",
        )
    _, tokenizer = load_tokenizer(find_source(ModelSettings(use, settings, study.folder)))
    wording = Wording(
        tokenizer,
        template=settings.get("template"),
        leading_space=settings.get("leading_space"),
        thinking=bool(settings.get("thinking", False)),
    )
    return lambda messages: token_pieces(tokenizer, wording.text(messages))


def token_pieces(tokenizer: Any, text: str) -> list[str]:
    """Cut a text where a tokenizer cuts it; tokens that share one character stay together."""
    if not getattr(tokenizer, "is_fast", False):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        return [str(piece) for piece in tokenizer.convert_ids_to_tokens(ids)]
    offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    cuts = sorted({0, len(text), *(start for start, _ in offsets)})
    return [text[start:end] for start, end in pairwise(cuts)]
