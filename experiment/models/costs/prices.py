"""Prices of models' tokens: from the study, the user's config or a dated list, but never guessed.

Models on the user's own machine or network cost nothing. A provider's model without a known price is refused until the user
gives one, because no budget could be enforced.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

from experiment.configuration import config_file, read_config
from experiment.models.api.formats import parse_request_options
from experiment.models.api.responses import Usage
from experiment.models.engine import Reply, Request
from experiment.models.servers import server_of
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError

_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$|-\d{4}$")
_PARTS = ("input", "cached_input", "output")
MESSAGE_TOKENS = 16
"""Most tokens that a chat template adds around one message."""

FORM_TOKENS = 256
"""Most tokens that a schema of the labels adds to the prompt."""

DEAR_PICTURES = 34
"""Factor for gpt-4o-mini, which counts 2,833 tokens per picture and 5,667 per tile; others count 85 and 170 (OpenAI's images
guide).
"""


@dataclass(frozen=True)
class Price:
    """A model's prices per token."""

    # US dollars per million tokens read, read from the provider's cache, and written (reasoning included)
    input: float
    cached_input: float
    output: float
    batch: float  # factor for prices in a batch
    source: str  # source of the price, with the date of a list
    room: int = 0
    form: int = 0
    picture: int = 1  # factor for the tokens of a picture, relative to most models
    calls_for_labels: bool = False  # whether each label is scored in a separate call (`label_scoring: whole`)

    @property
    def is_free(self) -> bool:
        """Whether the model costs nothing."""
        return self.input == self.cached_input == self.output == 0

    def of(self, reply: Reply) -> float | None:
        """Return the cost of a reply in US dollars, reasoning and cached tokens included; None if the server counted no tokens."""
        if reply.from_cache or self.is_free:
            return 0.0
        if reply.prompt_tokens is None or reply.completion_tokens is None:
            return None
        usage = Usage(reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens)
        return self.of_usage(usage)

    def of_usage(self, usage: Usage) -> float:
        """Return the cost of token counts in US dollars; missing counts are 0."""
        read = usage.prompt or 0
        cached = min(usage.cached or 0, read)
        written = (usage.completion or 0) * self.output
        return ((read - cached) * self.input + cached * self.cached_input + written) / 1e6

    def most(self, request: Request) -> float:
        """Return the most that one request can cost in US dollars: one token per byte read, and ``max_tokens`` written."""
        return self.most_of(*self.most_tokens(request))

    def most_of(self, read: int, written: int) -> float:
        """Return the most that these numbers of tokens read and written can cost in US dollars."""
        return (read * max(self.input, self.cached_input) + written * self.output) / 1e6

    def most_tokens(self, request: Request) -> tuple[int, int]:
        """Return the most tokens that one request can read and write in all its calls."""
        messages = (len(message.content.encode("utf-8")) + MESSAGE_TOKENS for message in request.messages)
        seen = self.picture * sum(message.picture_tokens for message in request.messages)
        prompt = sum(messages) + seen + self.form
        written = request.max_tokens + self.room
        if not self.calls_for_labels or request.labels is None:
            return prompt, written
        labels = sum(len(label.encode("utf-8")) + MESSAGE_TOKENS for label in request.labels)
        return prompt * (1 + len(request.labels)) + labels, written + len(request.labels)

    def describe(self) -> dict[str, object]:
        """Return the price as JSON for the record of a run."""
        return asdict(self)


FREE = Price(0.0, 0.0, 0.0, 1.0, "own machine")


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
    unknown = set(parts) - {*_PARTS, "batch"}
    wrong = [name for name in (*_PARTS, "batch") if not _is_amount(parts[name])]
    if unknown or wrong:
        name = next(iter(unknown or wrong))
        raise UserError(
            f"{place} has {name} {given.get(name)!r}",
            mend="A price has input, cached_input, output and batch, each a number of at least 0.",
        )
    return Price(
        float(parts["input"]),
        float(parts["cached_input"]),
        float(parts["output"]),
        float(parts["batch"]),
        place,
    )


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


_AMOUNT = re.compile(
    r"(?:(?P<before>[^\W\d_]+|[$€£¥])\s*)?(?P<number>\d+(?:[.,]\d+)?|\.\d+)\s*(?P<after>[^\W\d_]+|[$€£¥])?"
)
_THOUSANDS = re.compile(r"\d+,\d{3}")
_DOLLARS = frozenset({"USD", "$", "US$"})


def parse_usd(given: object, place: str) -> float:
    """Return an amount in US dollars."""
    text = str(given).strip()
    match = _AMOUNT.fullmatch(text)
    if isinstance(given, bool) or match is None:
        raise UserError(f"{place} is {given!r}, which is no amount of money", mend="Write it as 40 USD.")
    if _THOUSANDS.fullmatch(match["number"]):
        whole = match["number"].replace(",", "")
        point = match["number"].replace(",", ".")
        raise UserError(
            f"{place} is {text!r}, which may be {whole} or {point}", mend=f"Write {whole} USD or {point} USD."
        )
    currencies = {part.upper() for part in (match["before"], match["after"]) if part}
    if not currencies:
        raise UserError(f"{place} is {text!r}, without a currency", mend=f"Write it as {text} USD.")
    if not currencies <= _DOLLARS:
        named = next(iter(currencies - _DOLLARS))
        raise UserError(
            f"{place} is {text!r}; prices are in US dollars, and rates of {named} change",
            mend="Write the amount in US dollars, such as 40 USD.",
        )
    amount = float(match["number"].replace(",", "."))
    if not math.isfinite(amount) or amount <= 0:
        raise UserError(f"{place} is {text!r}; it must be above zero", mend="Write it as 40 USD.")
    return amount


def format_usd(amount: float) -> str:
    """Return an amount as text: cents, or three significant digits below a dollar."""
    if amount == 0 or abs(amount) >= 1:
        return f"{amount:,.2f} USD"
    return f"{Decimal(f'{amount:.3g}'):f} USD"
