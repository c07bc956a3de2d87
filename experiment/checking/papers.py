"""Checks that the papers' prompts are asked for where a paper had some."""

from __future__ import annotations

from collections.abc import Mapping

from experiment.models.prompts.published import paper_prompts, prompt_name
from experiment.study import Study
from experiment.study.meaning import kind_of_material
from stimuli.corpora import corpora
from stimuli.errors import UserError


def check_papers(study: Study) -> None:
    """Check that a study which wants a paper's prompts asks what a paper asked."""
    if "prompts" not in study.published or papers_prompt(study) is not None:
        return
    raise UserError(
        f"{study.place('published')}: no paper's prompt asks what this study asks",
        mend="Papers asked H-TEST and letter geometry (choose), RealtimeQA, DREAM, AQuA, BoolQ, SQuAD, CSQA, GSM8K and MBPP "
        "(question, problem or complete), recovery of sentences (recover), and BoolQ's passages (rectify, summarise, "
        "translate). Take prompts out of published for anything else; wrods' own wordings are used then.",
    )


def papers_prompt(study: Study) -> str | None:
    """Return the name of the prompt that a paper used for a study's trials, as far as the study file tells."""
    kind = kind_of_material(study)
    answering = {
        next(iter(screen["block"]["trial"][-1])) for screen in study.get("procedure") if "block" in screen
    }
    if kind in ("htest", "letter_geometry"):
        return kind if answering == {"choose"} else None
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
    name = prompt_name(
        task, [field], has_options=has_options, has_exemplars=bool((options or {}).get("exemplars"))
    )
    if name is None or name.startswith("htest"):
        return None
    shows_options = any(mark in paper_prompts()[name]["item"] for mark in ("{choices}", "{choice_list}"))
    return name if not shows_options or _answers_with_options(study) else None


def _answers_with_options(study: Study) -> bool:
    """Say whether every block is answered with one of the item's options."""
    steps = [
        next(iter(one["block"]["trial"][-1].items())) for one in study.get("procedure") if "block" in one
    ]
    return all(kind == "choose" or settings.get("read_as") == "option" for kind, settings in steps)
