"""What a judge is sent of the thoughts of another model, said before a study is built: calls, tokens and dollars, at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from experiment.describing.dollars import most_words
from experiment.models.planning import manner_of
from experiment.models.planning.script import Script
from experiment.models.planning.showing import CHARACTERS_PER_TOKEN
from experiment.models.prompts import Prompter
from experiment.models.prompts.published import judge_prompt
from experiment.models.settings import ModelSettings
from experiment.study import Study


@dataclass(frozen=True)
class Judging:
    """What a judge reads of one model.

    Attributes
    ----------
    judge : str
        Its name in the study.
    calls : int
        One for each choice that is thought about.
    prompt_tokens, answer_tokens : int
        The most that all of them together may have: thoughts as long as they may be.
    costs : str
        What that costs at most, in a sentence; empty where nothing is to be paid.
    """

    judge: str
    calls: int
    prompt_tokens: int
    answer_tokens: int
    costs: str

    def said(self) -> str:
        """Say it in sentences."""
        each = f"{self.prompt_tokens / max(self.calls, 1):,.0f}"
        told = (
            f"{self.judge} then reads its thoughts (`wrods score STUDY --judge {self.judge}`): {self.calls:,} calls of at most "
            f"{each} tokens each, {self.prompt_tokens:,} together."
        )
        return f"{told} {self.costs}".strip()


def judging_of(
    study: Study,
    model: ModelSettings,
    judge: ModelSettings,
    plans: Sequence[Mapping[str, Any]],
    sessions: int,
) -> Judging:
    """Count what a model's judge is sent.

    Parameters
    ----------
    study : Study
    model : ModelSettings
        The one that thinks; ``judge`` among its options names the other.
    judge : ModelSettings
    plans : sequence of mapping
        A planned session of each combination of levels between sessions: others are as long.
    sessions : int
        Of the model that thinks.
    """
    counted = [_of_plan(study, model, judge, plan) for plan in plans]
    calls, read, answered = (round(sessions * fmean(numbers)) for numbers in zip(*counted, strict=True))
    name = str(model.options["judge"])
    return Judging(name, calls, read, answered, most_words(judge, read, answered))


def _of_plan(
    study: Study, model: ModelSettings, judge: ModelSettings, plan: Mapping[str, Any]
) -> tuple[int, float, int]:
    """Return calls, most tokens read and most tokens answered of one session."""
    script = Script(dict(plan), manner_of(study, model))
    calls = answered = 0
    read = 0.0
    for number, place in enumerate(script.places):
        if place.trial["trial_type"] != "choose" or place.trial["is_practice"]:
            continue
        answering = place.trial["steps"][-1]
        if "prompts" in study.published:
            paper = judge_prompt("", answering["labels"])
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
