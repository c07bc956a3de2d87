"""What crosses between the planner of a run and whatever answers it: requests, replies and the engine protocol.

A request is one trial made ready for a model; a reply is what came back, with every count that the store keeps.
Engines know nothing of studies or stores, so a new one (another server, a farm of GPUs) is one class with three
methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, get_args, runtime_checkable

from experiment.models.pictures import MARK, Picture

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ReplyStatus = Literal["answered", "truncated", "refused", "empty", "timeout", "error"]
REPLY_STATUSES: tuple[ReplyStatus, ...] = get_args(ReplyStatus)
UNFINISHED: frozenset[ReplyStatus] = frozenset({"timeout", "error"})
"""Statuses that say nothing about the reader: the next run requests the trial again."""

ANSWERS = ("answer", "read")
"""Purposes of the requests that answer a trial, one a trial; others (``unscramble``) go before."""

STATES = ("last", "regions", "mean")
"""Positions of a prompt at which hidden states can be kept."""

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Message:
    """One turn of what a model reads.

    Attributes
    ----------
    content : str
        Where a picture stands, it holds :data:`experiment.models.pictures.MARK`.
    pictures : tuple of Picture
        As many as there are marks, in their order; of a message without pictures a mark is a letter like others.
    """

    role: Role
    content: str
    pictures: tuple[Picture, ...] = ()

    def __post_init__(self) -> None:
        if self.pictures and self.content.count(MARK) != len(self.pictures):
            raise ValueError(
                f"{len(self.pictures)} pictures for {self.content.count(MARK)} marks in {self.content!r}"
            )

    @property
    def picture_tokens(self) -> int:
        """About the most tokens that a server counts for the pictures of the message."""
        return sum(picture.tokens for picture in self.pictures)

    @property
    def parts(self) -> tuple[str | Picture, ...]:
        """The texts and pictures of the message, in order; texts that are empty are left out."""
        if not self.pictures:
            return (self.content,)
        texts = self.content.split(MARK)
        found: list[str | Picture] = [texts[0]]
        for picture, text in zip(self.pictures, texts[1:], strict=True):
            found += [picture, text]
        return tuple(part for part in found if part)


@dataclass(frozen=True)
class Span:
    """A stretch of one message, in characters: a region whose surprisal is asked.

    Attributes
    ----------
    message : int
        Which of the request's messages.
    start, end : int
        From its first character to before its last, blanks around it left out.
    """

    message: int
    start: int
    end: int


@dataclass(frozen=True)
class Request:
    """One trial, or one step of it, as a model gets it.

    Attributes
    ----------
    work_key : str
        Name of this piece of work, unique within a run; the reply carries it back.
    messages : tuple of Message
        What the model reads, in order.
    labels : tuple of str or None
        Choices to score; None where text is to be generated.
    max_tokens : int
        Most tokens to generate.
    temperature : float
        0 takes the most probable token each time.
    seed : int
        Seed of this request alone, so that an answer does not depend on what was asked beside it.
    stop : tuple of str
        Texts that end a generation; they are not part of the answer.
    also_text : bool
        Beside scored labels, generate what the model would answer by itself.
    regions : tuple of Span
        Regions whose surprisal is asked.
    states : tuple of str
        Where hidden states are kept: ``last`` (the prompt's last token), ``regions`` (the last token of each), ``mean`` (the mean
        over all tokens of the prompt as the model reads it, template and special tokens included).
    top_p : float
        Draws come from the most probable tokens that together reach this probability.
    top_k : int or None
        Draws come from this many most probable tokens.
    purpose : str
        What this call does for its trial: ``answer``, ``reason``, ``unscramble``, ``judge``, ``read``.
    replicate : int
        Which repetition of its session it belongs to; two replicates never share a cached answer.
    """

    work_key: str
    messages: tuple[Message, ...]
    labels: tuple[str, ...] | None
    max_tokens: int
    temperature: float
    seed: int
    stop: tuple[str, ...] = ()
    also_text: bool = False
    regions: tuple[Span, ...] = ()
    states: tuple[str, ...] = ()
    top_p: float = 1.0
    top_k: int | None = None
    purpose: str = "answer"
    replicate: int = 1


@dataclass(frozen=True)
class RegionScore:
    """What a model's reading of one region cost.

    Attributes
    ----------
    surprisal : float or None
        Minus natural-log probability of the region after all before it, corrected for where words begin; None for the
        first token of all, which nothing precedes.
    tokens : int
        Tokens that begin in the region.
    """

    surprisal: float | None
    tokens: int


@dataclass(frozen=True, eq=False)
class State:
    """Hidden states of a prompt.

    Attributes
    ----------
    position : str
        ``last``, ``region N`` or ``mean``.
    layers : ndarray of float16, shape (layers + 1, width)
    """

    position: str
    layers: NDArray[np.float16]


@dataclass(frozen=True)
class Reply:
    """What came back for one request.

    Attributes
    ----------
    text : str or None
        The label with the highest probability, or the generated text; of a server that tells first tokens the label where its reply
        gives it too, else the reply.
    status : ReplyStatus
        How the answer ended; ``error`` and ``timeout`` are faults of the way, not answers.
    label_logprobs : dict of str to float or None
        Natural-log probability of each label where the engine can tell.
    prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens : int or None
        Unpadded counts; ``cached_tokens`` is the part of ``prompt_tokens`` that was not computed for this request.
    latency_ms, ttft_ms : float or None
        Milliseconds; null unless this request ran alone.
    path : str or None
        Which of an engine's ways of computing was taken.
    attempts : int
        How often the request was sent or computed.
    generated : str or None
        The model's own answer, where it was asked beside scored labels.
    reasoning : str or None
        What the model thought before its answer, kept apart from it.
    regions : tuple of RegionScore
        As many as were asked, or none where the engine cannot tell.
    states : tuple of State
    cost_usd : float or None
        What the call cost, by the price list of the run.
    from_cache : bool
        Whether the reply is that of an earlier, identical call; such a reply has no times.
    unsettled_tries : int
        Tries that brought no answer and may have been worked on, and billed, by the server all the same.
    label_bounds : dict of str to float or None
        Of each label whose log-probability the server did not tell, what it cannot exceed.
    """

    work_key: str
    text: str | None
    status: ReplyStatus
    label_logprobs: dict[str, float] | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_ms: float | None = None
    ttft_ms: float | None = None
    finish_reason: str | None = None
    requested_model: str | None = None
    resolved_model: str | None = None
    dtype: str | None = None
    path: str | None = None
    error: str | None = None
    attempts: int = field(default=1)
    generated: str | None = None
    reasoning: str | None = None
    regions: tuple[RegionScore, ...] = ()
    states: tuple[State, ...] = ()
    cost_usd: float | None = None
    from_cache: bool = False
    label_bounds: dict[str, float] | None = None
    unsettled_tries: int = 0

    @property
    def margin(self) -> float | None:
        """Log-probability of the best label minus that of the second best, in nats; None where an untold one may be either."""
        if self.label_logprobs is None or len(self.label_logprobs) < 2:
            return None
        best, second = sorted(self.label_logprobs.values(), reverse=True)[:2]
        return None if any(bound > second for bound in (self.label_bounds or {}).values()) else best - second

    @property
    def surprisal(self) -> float | None:
        """Surprisal of all regions together, in nats; None where none was asked, or one with tokens of its own has none."""
        if not self.regions or any(region.surprisal is None and region.tokens for region in self.regions):
            return None
        return sum(region.surprisal or 0.0 for region in self.regions)


Follow = Callable[[Reply], Sequence[Request]]
"""Gives the requests that a reply makes possible: the next trial of a conversation, the answer after a thought."""


@runtime_checkable
class Engine(Protocol):
    """Whatever answers requests."""

    def describe(self) -> dict[str, object]:
        """Return what was run and how, as JSON; its ``identity`` part names all that may change an answer."""

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield one reply for each request and for each that follows from a reply, in any order."""

    def close(self) -> None:
        """Begin no further work; a running :meth:`answer` yields what is finished and ends."""


@runtime_checkable
class Previews(Protocol):
    """An engine that can show a request exactly as it would send it."""

    def preview(self, request: Request) -> dict[str, object]:
        """Return ``text`` or ``body`` as sent, and ``tokens`` where known; sends nothing."""
