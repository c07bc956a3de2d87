"""What a model's trials may cost in US dollars, said before a study is built: its prompts, and answers as long as they may be."""

from __future__ import annotations

from experiment.models.money import price_of, written
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError

PER_ANSWER = 100
"""Tokens of an answer by which the cost is told where the study does not limit them."""


def cost_words(model: ModelSettings, trials: int, prompt_tokens: int) -> str:
    """Say what asking costs at a model's price; empty where nothing is to be paid.

    Parameters
    ----------
    model : ModelSettings
    trials : int
    prompt_tokens : int
        Of all trials together, without what a provider caches.
    """
    try:
        price = price_of(model)
    except UserError as error:
        return f"What it costs is not known: {error.message}. {error.mend or ''}".strip()
    if price.is_free:
        return ""
    asked = written(prompt_tokens * price.input / 1e6)
    given = model.options.get("max_tokens")
    longest = given if isinstance(given, int) else 0
    answers = written(trials * (longest or PER_ANSWER) * price.output / 1e6)
    if longest:
        return f"Its prompts cost about {asked}, answers at most {answers} ({longest} tokens each; thoughts come on top)."
    return f"Its prompts cost about {asked}, each {PER_ANSWER} tokens of all answers {answers} (max_tokens is not set)."
