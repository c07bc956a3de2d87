"""What a model's trials may cost in tokens and US dollars, before a study is built: prompts, and answers as long as they may be."""

from __future__ import annotations

from experiment.models.money import Price, price_of, written
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError


def cost_words(model: ModelSettings, trials: int, prompt_tokens: int, answer_tokens: int) -> str:
    """Say what asking costs at a model's price, and how long answers may be; empty for baselines, which write none."""
    if model.kind == "baseline":
        return ""
    each = answer_tokens / max(trials, 1)
    size = f"{each:.0f} tokens each"
    size += "" if each == round(each) else " on average: some may be longer than others"
    price = _price(model)
    if isinstance(price, str):
        return f"Its answers have at most {answer_tokens:,} tokens together ({size}). {price}".strip()
    asked = written(prompt_tokens * price.input / 1e6)
    answers = written(answer_tokens * price.output / 1e6)
    unseen = "what a reasoning model thinks unseen comes on top"
    return f"Its prompts cost about {asked}, answers at most {answers} ({size}; {unseen})."


def most_words(model: ModelSettings, prompt_tokens: int, answer_tokens: int) -> str:
    """Say what prompts and answers cost at most, where both are counted as long as they may be; empty where nothing is to be paid."""
    price = _price(model)
    if isinstance(price, str):
        return price
    most = prompt_tokens * price.input + answer_tokens * price.output
    return f"That costs at most {written(most / 1e6)}."


def _price(model: ModelSettings) -> Price | str:
    """Return a model's price; a sentence where it is not known, and nothing where nothing is to be paid."""
    try:
        price = price_of(model)
    except UserError as error:
        return f"What it costs is not known: {error.message}. {error.mend or ''}".strip()
    return "" if price.is_free else price
