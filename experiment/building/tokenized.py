"""Adds what a language model's tokenizer makes of each item, where the study names a tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item
from stimuli.tokens import Tokenizer, load_tokenizer, token_measures


def tokenizer_of(study: Study) -> Tokenizer | None:
    """Load the tokenizer that the study names; a path starts from the study's folder."""
    named = study.get("materials", "tokenizer")
    if named is None:
        return None
    beside = study.folder / Path(named).expanduser()
    try:
        return load_tokenizer(beside if beside.exists() else named)
    except UserError as error:
        place = study.place("materials", "tokenizer")
        raise UserError(f"{place}: {error.message}", mend=error.mend) from None


def with_token_measures(items: Sequence[Item], tokenizer: Tokenizer | None) -> list[Item]:
    """Return the items with tokens before and after the change among their covariates, over all fields shown."""
    if tokenizer is None:
        return list(items)
    return [replace(item, covariates={**item.covariates, **_measures(item, tokenizer)}) for item in items]


def _measures(item: Item, tokenizer: Tokenizer) -> dict[str, float | None]:
    shown = "\n".join(item.shown.values())
    intact = "\n".join(item.intact.get(name, text) for name, text in item.shown.items())
    return {
        name: value if value is None else round(value, 3)
        for name, value in token_measures(intact, shown, tokenizer).items()
    }
