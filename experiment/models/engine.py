"""Requests, replies, models' settings and the engine protocol: the interface between the planner of a run and whatever answers it.

A request is one trial prepared for a model; a reply is the answer with every count that the store records. Engines know nothing
of studies or stores, so a new one (another server, a GPU cluster) is one class with three methods.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args, runtime_checkable

from experiment.models.pictures import MARK, Picture
from stimuli.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


LEAST_LEFT = 1e-9
"""Least share of a label's probability that remains after the subtraction; less than this is rounding."""

ReplyStatus = Literal["answered", "truncated", "refused", "empty", "timeout", "error"]
REPLY_STATUSES: tuple[ReplyStatus, ...] = get_args(ReplyStatus)
UNFINISHED: frozenset[ReplyStatus] = frozenset({"timeout", "error"})
"""Statuses that say nothing about the reader: the next run requests the trial again."""

ANSWERS = ("answer", "read")
"""Purposes of the requests that answer a trial, one per trial; others (``unscramble``) come before."""

STATES = ("last", "regions", "mean")
"""Positions of a prompt whose hidden states can be stored."""

Role = Literal["system", "user", "assistant"]


def begins_another(label: str, labels: Sequence[str]) -> bool:
    """Return whether a label is the beginning of another one."""
    return any(other != label and other.startswith(label) for other in labels)


def disjoint_logprobs(
    logprobs: Mapping[str, float], tokens: Mapping[str, Sequence[Hashable]]
) -> dict[str, float]:
    """Return log-probabilities of labels as mutually exclusive answers.

    The probability of "agree" includes that of "agree strongly", so the longer label could never have the higher one: the
    probability of the longer labels is subtracted from that of the shorter.

    Parameters
    ----------
    logprobs : mapping of str to float
        Natural-log probability that an answer begins with each label's tokens.
    tokens : mapping of str to sequence
        Tokens of each label. Only a label whose tokens begin another's is changed: no answer begins with both of two labels
        whose tokens differ.

    Returns
    -------
    dict of str to float
        In nats; the shorter of two labels gets log(p(short) - p(long)).
    """
    paths = {label: tuple(tokens[label]) for label in logprobs}
    disjoint = {}
    for label, value in logprobs.items():
        longer = [path for path in paths.values() if _goes_on(paths[label], path)]
        nearest = {path for path in longer if not any(_goes_on(between, path) for between in longer)}
        lost = sum(
            math.exp(min(0.0, logprobs[other] - value))
            for other in {
                paths[logprob]: logprob for logprob in logprobs if paths[logprob] in nearest
            }.values()
        )
        disjoint[label] = value + math.log(max(LEAST_LEFT, 1.0 - lost)) if nearest else value
    return disjoint


def _goes_on(path: tuple[Hashable, ...], other: tuple[Hashable, ...]) -> bool:
    return len(other) > len(path) and other[: len(path)] == path


class NotThereYet(UserError):
    """A model is named correctly, but something that it needs is missing on this machine: a folder, a package, a key."""


@dataclass(frozen=True)
class ModelSettings:
    """One model of a study, for its engine."""

    use: str  # `kind:name`, as written in the study
    # the other settings of the model (`temperature`, `base_url`, `dtype` …)
    options: Mapping[str, object] = field(default_factory=dict)
    folder: Path = Path()  # folder to which a relative model path refers
    # work key to correct answer; only the oracle uses it
    answers: Mapping[str, str] = field(default_factory=dict)
    # work key to the possible answers, even if a prompt asks for them as text; only baselines use it
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sends: bool = True  # whether requests will be sent; a preview needs no key

    @classmethod
    def of(cls, given: Mapping[str, Any], folder: Path) -> ModelSettings:
        """Return the settings of a model from its entry in a study: ``use`` and other settings."""
        return cls(str(given["use"]), {name: value for name, value in given.items() if name != "use"}, folder)

    @property
    def kind(self) -> str:
        """The part before the colon."""
        return self.use.partition(":")[0]

    @property
    def name(self) -> str:
        """The part after the colon."""
        return self.use.partition(":")[2]


@dataclass(frozen=True)
class Message:
    """One turn of a model's input.

    Attributes
    ----------
    content : str
        Text, with :data:`experiment.models.pictures.MARK` at the place of each picture.
    pictures : tuple of Picture
        One per mark, in order; in a message without pictures a mark is an ordinary character.
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
        """Approximate upper limit of the tokens that a server counts for the message's pictures."""
        return sum(picture.tokens for picture in self.pictures)

    @property
    def parts(self) -> tuple[str | Picture, ...]:
        """The texts and pictures of the message, in order, without empty texts."""
        if not self.pictures:
            return (self.content,)
        texts = self.content.split(MARK)
        parts: list[str | Picture] = [texts[0]]
        for picture, text in zip(self.pictures, texts[1:], strict=True):
            parts += [picture, text]
        return tuple(part for part in parts if part)


@dataclass(frozen=True)
class Span:
    """A region of one message whose surprisal is requested.

    Attributes
    ----------
    message : int
        Index of the message in the request.
    start, end : int
        Start and end (exclusive) in characters, without surrounding blanks.
    foil : str or None
        Another text in its place, whose surprisal after the same text is requested as well.
    """

    message: int
    start: int
    end: int
    foil: str | None = None


@dataclass(frozen=True)
class Request:
    """One trial, or one step of it, as a model receives it.

    Attributes
    ----------
    work_key : str
        Identifier of the trial, unique within a run; repeated in the reply.
    messages : tuple of Message
        The prompt, in order.
    labels : tuple of str or None
        Choices to score; None if text is to be generated.
    max_tokens : int
        Most tokens to generate.
    temperature : float
        0 takes the most probable token each time.
    seed : int
        Seed of this request alone, so that an answer does not depend on the other requests.
    stop : tuple of str
        Texts that end a generation; they are not part of the answer.
    also_text : bool
        Generate the model's free answer as well as scoring the labels.
    regions : tuple of Span
        Regions whose surprisal is requested.
    states : tuple of str
        Hidden states to store: ``last`` (the prompt's last token), ``regions`` (the last token of each), ``mean`` (the mean
        over all tokens of the prompt as the model reads it, template and special tokens included).
    top_p : float
        Sample from the most probable tokens that together reach this probability.
    top_k : int or None
        Sample from this many most probable tokens.
    purpose : str
        Role of this call in its trial: ``answer``, ``reason``, ``unscramble``, ``judge``, ``read``.
    replicate : int
        Repetition of the session; two replicates never share a cached answer.
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
    """A model's reading cost of one region.

    Attributes
    ----------
    surprisal : float or None
        Negative natural-log probability of the region given all before it, corrected for where words begin; None for the
        very first token, which nothing precedes.
    tokens : int
        Number of tokens that begin in the region.
    entropy : float or None
        Entropy, in nats, of the distribution over the region's first token given all before it, where a word begins there over
        the tokens that can begin one; None if the engine does not report whole distributions.
    foil : float or None
        Surprisal of the foil in its place; None without one, or if the engine does not score foils.
    """

    surprisal: float | None
    tokens: int
    entropy: float | None = None
    foil: float | None = None


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
    """The reply to one request.

    Attributes
    ----------
    text : str or None
        The label with the highest probability, or the generated text. If a server reports first tokens, the label if its reply
        states the same one, or else the reply.
    status : ReplyStatus
        How the answer ended; ``error`` and ``timeout`` are transmission faults, not answers.
    label_logprobs : dict of str to float or None
        Natural-log probability of each label, if the engine knows it.
    prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens : int or None
        Unpadded counts; ``cached_tokens`` is the part of ``prompt_tokens`` that was not computed for this request.
    latency_ms, ttft_ms : float or None
        Milliseconds; None unless this request ran alone.
    path : str or None
        How the engine computed the reply.
    attempts : int
        How often the request was sent or computed.
    generated : str or None
        The model's free answer, if it was requested as well as scored labels.
    reasoning : str or None
        The model's reasoning before its answer.
    regions : tuple of RegionScore
        One per requested region, or none if the engine cannot score them.
    states : tuple of State
    cost_usd : float or None
        Cost of the call in US dollars, by the run's price list.
    from_cache : bool
        Whether the reply is that of an earlier, identical call; such a reply has no times.
    label_bounds : dict of str to float or None
        Upper bound of the log-probability of each label that the server did not report.
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

    @property
    def margin(self) -> float | None:
        """Log-probability of the best label minus that of the second best, in nats; None if an unreported one may be either."""
        if self.label_logprobs is None or len(self.label_logprobs) < 2:
            return None
        best, second = sorted(self.label_logprobs.values(), reverse=True)[:2]
        return None if any(bound > second for bound in (self.label_bounds or {}).values()) else best - second

    @property
    def surprisal(self) -> float | None:
        """Surprisal of all regions together, in nats; None if none has one, or one that has tokens lacks it."""
        known = [region.surprisal for region in self.regions if region.surprisal is not None]
        if not known or any(region.surprisal is None and region.tokens for region in self.regions):
            return None
        return math.fsum(known)


Follow = Callable[[Reply], Sequence[Request]]
"""Returns the requests that a reply makes possible: the next trial of a conversation, the answer after reasoning."""


@runtime_checkable
class Engine(Protocol):
    """Answers requests."""

    def describe(self) -> dict[str, object]:
        """Return what was run and how, as JSON; its ``identity`` part includes everything that can change an answer."""

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield one reply for each request and for each that follows from a reply, in any order."""

    def close(self) -> None:
        """Start no further work; a running :meth:`answer` yields what is finished and ends."""


@runtime_checkable
class Previews(Protocol):
    """An engine that can show a request exactly as it would send it."""

    def preview(self, request: Request) -> dict[str, object]:
        """Return ``text`` or ``body`` as they would be sent, and ``tokens`` if known; nothing is sent."""
