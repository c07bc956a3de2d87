"""The model card, written from the recipe and the measures so that its numbers cannot deviate from them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

CARD_FILE = Path(__file__).with_name("card.md.jinja")


def model_card(metrics: Mapping[str, Any]) -> str:
    """Return the card's text with the contents of ``metrics.json``.

    Parameters
    ----------
    metrics : mapping
        ``recipe``, ``training`` and ``held_out``, as the training command writes them.
    """
    import jinja2

    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(CARD_FILE.read_text(encoding="utf-8")).render(metrics)
