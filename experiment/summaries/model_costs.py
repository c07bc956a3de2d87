"""What a model's answers, and a judge's reading of its reasoning, will cost, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from experiment.models.api.prices import price_of
from experiment.models.costs import Price, format_usd
from experiment.models.engine import ModelSettings
from experiment.models.planning.prompt_preview import CHARACTERS_PER_TOKEN
from experiment.models.planning.prompting_settings import SessionTemplate, read_prompting_settings
from experiment.models.prompts.prompter import Prompter, judge_prompt
from experiment.scoring.published import judge_of
from experiment.study import Study
from experiment.trials import CHOSEN
from stimuli.errors import UserError


@dataclass(frozen=True)
class Judging:
    """A judge's work for one model."""

    judge: str
    calls: int
    prompt_tokens: int
    answer_tokens: int
    costs: str

    def said(self) -> str:
        """Return the judge's work in sentences."""
        tokens_each = f"{self.prompt_tokens / max(self.calls, 1):,.0f}"
        text = (
            f"{self.judge} then reads its reasoning (`wrods score STUDY --judge {self.judge}`): {self.calls:,} calls of at most "
            f"{tokens_each} tokens each, {self.prompt_tokens:,} together."
        )
        return f"{text} {self.costs}".strip()


def judging_of(
    study: Study,
    model: ModelSettings,
    judge: ModelSettings,
    plans: Sequence[Mapping[str, Any]],
    sessions: int,
) -> Judging:
    """Return the number and tokens of a judge's requests for a model."""
    counted = [_of_plan(study, model, judge, plan) for plan in plans]
    calls, read, answered = (round(sessions * fmean(numbers)) for numbers in zip(*counted, strict=True))
    name = str(model.options["judge"])
    return Judging(name, calls, read, answered, most_words(judge, read, answered))


def _of_plan(
    study: Study, model: ModelSettings, judge: ModelSettings, plan: Mapping[str, Any]
) -> tuple[int, float, int]:
    """Return calls, most tokens read and most tokens written of one session."""
    script = SessionTemplate(dict(plan), read_prompting_settings(study, model))
    calls = answered = 0
    read = 0.0
    for number, place in enumerate(script.places):
        if place.trial["trial_type"] not in CHOSEN or place.trial["is_practice"]:
            continue
        answering = place.trial["steps"][-1]
        name = judge_of(place.trial) if "prompts" in study.published else None
        if name is not None:
            paper = judge_prompt(name, "", answering["labels"])
            frame, room = paper.text, paper.max_tokens
        else:
            turn = Prompter(plan).judge("", answering["labels"])
            frame, room = turn.text, int(str(judge.options.get("max_tokens", turn.max_tokens)))
        calls += 1
        read += (script.manner.max_tokens or script.turn(number).max_tokens) + len(
            frame
        ) / CHARACTERS_PER_TOKEN
        answered += room
    return calls, read, answered


def cost_words(model: ModelSettings, trials: int, prompt_tokens: int, answer_tokens: int) -> str:
    """Describe the cost at a model's price, and the maximum answer length; empty for baselines, which write none."""
    if model.kind == "baseline":
        return ""
    tokens_each = answer_tokens / max(trials, 1)
    size = f"{tokens_each:.0f} tokens each"
    size += "" if tokens_each == round(tokens_each) else " on average: some may be longer than others"
    price = _price(model)
    if isinstance(price, str):
        return f"Its answers have at most {answer_tokens:,} tokens together ({size}). {price}".strip()
    prompt_cost = format_usd(prompt_tokens * price.input / 1e6)
    answers = format_usd(answer_tokens * price.output / 1e6)
    unseen = "what a reasoning model thinks unseen comes on top"
    return f"Its prompts cost about {prompt_cost}, answers at most {answers} ({size}; {unseen})."


def most_words(model: ModelSettings, prompt_tokens: int, answer_tokens: int) -> str:
    """Return the maximum cost of prompts and answers in words; empty if nothing is to be paid."""
    price = _price(model)
    if isinstance(price, str):
        return price
    most = prompt_tokens * price.input + answer_tokens * price.output
    return f"That costs at most {format_usd(most / 1e6)}."


def _price(model: ModelSettings) -> Price | str:
    """Return a model's price, or a sentence if it is unknown; empty if the model is free."""
    try:
        price = price_of(model)
    except UserError as error:
        return f"What it costs is not known: {error.message}. {error.mend or ''}".strip()
    return "" if price.is_free else price
