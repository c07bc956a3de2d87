"""Token counts of calls, prices, and amounts of money."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from experiment.models.engine import Reply, Request
from stimuli.errors import UserError

MESSAGE_TOKENS = 16
"""Most tokens that a chat template adds around one message."""

_FIELDS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


@dataclass(frozen=True)
class Usage:
    """Token counts of one response."""

    prompt: int | None = None  # all tokens read, and those of them from the provider's cache
    cached: int | None = None
    completion: int | None = None  # all tokens written, and those of them for reasoning
    reasoning: int | None = None

    def __add__(self, other: Usage) -> Usage:
        pairs = zip(self.counts, other.counts, strict=True)
        return Usage(*(sum_of_counts(count, another) for count, another in pairs))

    @property
    def counts(self) -> tuple[int | None, int | None, int | None, int | None]:
        """The four counts, in order."""
        return (self.prompt, self.cached, self.completion, self.reasoning)

    @property
    def of_reply(self) -> dict[str, Any]:
        """The counts as the fields of a reply."""
        return dict(zip(_FIELDS, self.counts, strict=True))


def sum_of_counts(left: int | None, other: int | None) -> int | None:
    """Return the sum of two counts, either of which may be unknown."""
    return other if left is None else left if other is None else left + other


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
        prompt = self._prompt_tokens(request)
        written = request.max_tokens + self.room
        if not self.calls_for_labels or request.labels is None:
            return prompt, written
        labels = sum(len(label.encode("utf-8")) + MESSAGE_TOKENS for label in request.labels)
        return prompt * (1 + len(request.labels)) + labels, written + len(request.labels)

    def tokens_of_call(self, request: Request, written: int) -> tuple[int, int]:
        """Return the most tokens that one call for a request can read and write, with the output limit that it gives."""
        labels = (len(label.encode("utf-8")) + MESSAGE_TOKENS for label in request.labels or ())
        return self._prompt_tokens(request) + (
            max(labels, default=0) if self.calls_for_labels else 0
        ), written

    def _prompt_tokens(self, request: Request) -> int:
        messages = (len(message.content.encode("utf-8")) + MESSAGE_TOKENS for message in request.messages)
        return (
            sum(messages)
            + self.picture * sum(message.picture_tokens for message in request.messages)
            + self.form
        )


FREE = Price(0.0, 0.0, 0.0, 1.0, "own machine")


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
