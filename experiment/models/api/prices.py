"""Prices of models' tokens: from the study, the user's config or a dated list, but never guessed.

Models on the user's own machine or network cost nothing. A provider's model without a known price is refused until the user
gives one, because no budget could be enforced.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

from experiment.configuration import config_file, read_config
from experiment.models.api.formats import parse_request_options
from experiment.models.costs import FREE, Price
from experiment.models.engine import ModelSettings
from experiment.models.servers import server_of
from stimuli.errors import UserError

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$|-\d{4}$")
_PARTS = ("input", "cached_input", "output", "batch")
FORM_TOKENS = 256
"""Most tokens that a schema of the labels adds to the prompt."""

DEAR_PICTURES = 34
"""Factor for gpt-4o-mini, which counts 2,833 tokens per picture and 5,667 per tile; others count 85 and 170 (OpenAI's images
guide).
"""


def price_of(settings: ModelSettings) -> Price:
    """Return a model's price: ``price`` in the study, ``[prices]`` in config.toml, OpenAI's price list, or free."""
    price = _known(settings)
    if settings.kind != "openai":
        return price
    wishes = parse_request_options(settings)
    return replace(
        price,
        room=wishes.room,
        picture=DEAR_PICTURES if settings.name.startswith("gpt-4o-mini") else 1,
        form=FORM_TOKENS if wishes.label_only else 0,
        calls_for_labels=wishes.whole_labels,
    )


def _known(settings: ModelSettings) -> Price:
    given = settings.options.get("price")
    if given is not None:
        return _given(given, f"the study's price of {settings.name}")
    if settings.kind != "openai":
        return FREE
    configured = read_config().get("prices", {}).get(settings.name)
    if configured is not None:
        return _given(configured, f"[prices] in {config_file()}")
    server = server_of(settings.options)
    if server.is_openai:
        listed = _listed(settings.name)
        if listed is not None:
            return listed
    elif server.is_own:
        return FREE
    raise UserError(
        f"no price is known for {settings.use}" + ("" if server.is_openai else f" at {server.base_url}"),
        mend="Give one with the model in the study, such as `price: {input: 0.40, output: 1.60}` in US dollars for a "
        "million tokens, or `price: free`.",
    )


def _given(given: object, place: str) -> Price:
    """Return the price that the user wrote."""
    if given == "free":
        return Price(0.0, 0.0, 0.0, 1.0, place)
    if not isinstance(given, Mapping) or not {"input", "output"} <= set(given):
        raise UserError(
            f"{place} is {given!r}, which is no price",
            mend="Write `free`, or input and output (and cached_input, batch) in US dollars for a million tokens.",
        )
    parts: dict[str, Any] = {"cached_input": given["input"], "batch": 1.0, **given}
    unknown = set(parts) - set(_PARTS)
    wrong = [name for name in _PARTS if not _is_amount(parts[name])]
    if unknown or wrong:
        name = next(iter(unknown or wrong))
        raise UserError(
            f"{place} has {name} {given.get(name)!r}",
            mend="A price has input, cached_input, output and batch, each a number of at least 0.",
        )
    read, cached, written, batch = (float(parts[name]) for name in _PARTS)
    return Price(read, cached, written, batch, place)


def _is_amount(value: object) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
    )


@cache
def _list() -> dict[str, Any]:
    return dict(json.loads(resources.files(__package__).joinpath("prices.json").read_text("utf-8")))


def _listed(name: str) -> Price | None:
    """Return the listed price of a model, or of the model behind a dated snapshot."""
    listed = _list()
    price = listed["models"].get(name) or listed["models"].get(_SNAPSHOT.sub("", name))
    if price is None:
        return None
    source = f"price list of {listed['checked']} ({listed['source']})"
    return Price(price["input"], price["cached_input"], price["output"], listed["batch"], source)
