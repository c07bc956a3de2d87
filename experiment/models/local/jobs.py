"""Jobs: requests as rows of tokens, and outcomes of rows as replies.

A request for labels from a reasoning model takes two jobs: the first generates the reasoning, the second scores the labels
after it. Everything else is one job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from experiment.models.engine import RegionScore, Reply, ReplyStatus, Request, State, disjoint_logprobs
from experiment.models.local.rows import (
    Continuation,
    Decoding,
    Ids,
    MemoryBudget,
    Row,
    RowOutcome,
    common_length,
)
from experiment.models.local.tokens import FoilTokens, Stops, Tokens, Wording, region_targets, score_regions
from stimuli.seeds import stable_seed


@dataclass
class Job:
    """A request that is being computed."""

    request: Request
    tokens: Tokens
    # The prompt's own row first, if it has one; then those of labels of several tokens, and those of foils
    rows: list[Row] = field(default_factory=list)
    found: dict[int, RowOutcome] = field(default_factory=dict)  # by place in ``rows``
    attempts: int = 1
    error: str | None = None
    thought_only: bool = False  # whether labels are still to be scored after what this job generates
    before: Job | None = None  # the job that generated the reasoning

    @property
    def is_done(self) -> bool:
        """Whether all its rows are computed, or it failed."""
        return self.error is not None or len(self.found) == len(self.rows)

    @property
    def thought(self) -> Continuation:
        """The reasoning that this job generated."""
        decoded = self.found[0].decoded
        assert decoded is not None
        return decoded


def job_of(request: Request, tokens: Tokens, wording: Wording) -> Job:
    """Return a job with its rows; labels that continue from the same tokens share one."""
    thinks = wording.thinking and wording.thoughts.marks is not None and tokens.source is None
    thought_only = bool(request.labels) and thinks and request.max_tokens > 0
    opened = wording.thoughts.is_opened_by(tokens.text)
    targets, borders = region_targets(tokens.regions, tokens.ids)
    decoding = None
    if (request.labels is None or request.also_text or thought_only) and request.max_tokens > 0:
        stops = Stops(
            request.stop, wording.thoughts, wording.decode, opened=opened, thought_only=thought_only
        )
        decoding = _decoding(request, request.max_tokens, stops)
    prompt = Row(
        _ids(tokens.ids), tuple(targets), tuple(borders), states=tuple(_state_positions(request, tokens).values()), decoding=decoding,
        source=None if tokens.source is None else _ids(tokens.source), mean=_wants_mean(request, tokens),
        entropies=tuple(sorted({region.first for region in tokens.regions if region.is_scored})),
    )  # fmt: skip
    foils = [row for foil in tokens.foils if (row := _foil_row(foil)) is not None]
    if thought_only:
        return Job(request, tokens, [prompt, *foils], thought_only=True)
    return Job(request, tokens, [*_rows(prompt, tokens), *foils])


def _foil_row(foil: FoilTokens | None) -> Row | None:
    """Return the row that scores a foil; None if there is nothing to score."""
    if foil is None or not foil.region.is_scored:
        return None
    targets, borders = region_targets([foil.region], foil.ids)
    return Row(_ids(foil.ids), tuple(targets), tuple(borders))


def _with_foils(
    scores: Sequence[RegionScore], job: Job, *, marks_beginnings: bool
) -> tuple[RegionScore, ...]:
    """Return the scores of regions with those of the foils in their place, whose rows are a job's last."""
    place = len(job.rows) - sum(_foil_row(foil) is not None for foil in job.tokens.foils)
    scored = []
    for score, foil in zip(scores, job.tokens.foils, strict=True):
        if foil is not None and _foil_row(foil) is not None:
            found = job.found[place]
            (of_foil,) = score_regions(
                [foil.region], foil.ids, found.logprobs, found.borders, {}, marks_beginnings=marks_beginnings
            )
            score = replace(score, foil=of_foil.surprisal)
            place += 1
        scored.append(score)
    return tuple(scored)


def answer_job(thought: Job, wording: Wording) -> Job:
    """Return the job that scores a request's labels after its reasoning, and generates free text if requested."""
    request, decoded = thought.request, thought.thought
    divided = wording.thoughts.apart(decoded.ids, opened=wording.thoughts.is_opened_by(thought.tokens.text))
    ids = decoded.ids[: divided.tokens] if divided.reasoning is not None or divided.tokens else []
    tokens = wording.after_thought(thought.tokens, ids, request.labels or ())
    left = request.max_tokens - len(ids)
    decoding = None
    if request.also_text and left > 0:
        stops = Stops(request.stop, wording.thoughts, wording.decode, opened=False)
        # the reasoning has used the random numbers of the request's own seed
        seed = stable_seed("answer after thought", request.seed)
        decoding = replace(_decoding(request, left, stops), seed=seed)
    job = Job(request, tokens, _rows(Row(_ids(tokens.ids), decoding=decoding), tokens), before=thought)
    job.attempts = thought.attempts
    return job


def _decoding(request: Request, most: int, stops: Stops) -> Decoding:
    return Decoding(most, request.temperature, request.seed, stops, request.top_p, request.top_k)


def _rows(prompt: Row, tokens: Tokens) -> list[Row]:
    """Return the prompt's row with its requested outputs, and one row for each other beginning of labels."""
    wanted: dict[bytes, list[tuple[int, int]]] = {}
    ids = {prompt.ids.tobytes(): prompt.ids}
    for label in tokens.labels:
        whole = _ids(label.ids[:-1])
        ids.setdefault(whole.tobytes(), whole)
        wanted.setdefault(whole.tobytes(), []).extend(
            (label.start + step, token) for step, token in enumerate(label.targets)
        )
    targets = tuple(dict.fromkeys([*prompt.targets, *wanted.pop(prompt.ids.tobytes(), [])]))
    needed = targets or prompt.borders or prompt.states or prompt.mean or prompt.decoding is not None
    rows = [replace(prompt, targets=targets)] if needed else []
    return rows + [
        Row(ids[key], tuple(dict.fromkeys(places)), source=prompt.source) for key, places in wanted.items()
    ]


def _ids(ids: Sequence[int]) -> Ids:
    return np.asarray(ids, dtype=np.int32)


def _state_positions(request: Request, tokens: Tokens) -> dict[str, int]:
    """Return the positions whose hidden states are stored, by name."""
    positions: dict[str, int] = {}
    if tokens.source is not None:
        return positions
    if "last" in request.states:
        positions["last"] = len(tokens.ids) - 1
    if "regions" in request.states:
        positions |= {
            f"region {number}": region.last - 1
            for number, region in enumerate(tokens.regions)
            if region.first < region.last
        }
    return positions


def _wants_mean(request: Request, tokens: Tokens) -> bool:
    return "mean" in request.states and tokens.source is None


def label_logprobs(job: Job) -> dict[str, float]:
    """Return log-probabilities of the labels as mutually exclusive answers, in the order of the request."""
    values: dict[tuple[bytes, int, int], float] = {}
    for place, outcome in job.found.items():
        key = job.rows[place].ids.tobytes()
        values |= {(key, position, token): value for (position, token), value in outcome.logprobs.items()}
    begin_logprobs = {
        label.label: float(
            sum(
                values[_ids(label.ids[:-1]).tobytes(), label.start + step, token]
                for step, token in enumerate(label.targets)
            )
        )
        for label in job.tokens.labels
    }
    return disjoint_logprobs(begin_logprobs, {label.label: label.targets for label in job.tokens.labels})


def reply_of(job: Job, wording: Wording, path: str) -> Reply:
    """Return the reply to a request whose rows are all computed."""
    request, first = job.request, job.before or job
    outcomes = [*job.found.values(), *(first.found.values() if job.before is not None else ())]
    computed = sum(
        outcome.computed for outcome in (first.found if job.before is not None else job.found).values()
    )
    length = len(first.tokens.ids if first.tokens.source is None else first.tokens.source)
    reply = Reply(
        request.work_key,
        None,
        "answered",
        prompt_tokens=length,
        cached_tokens=max(0, length - computed),
        completion_tokens=sum(
            len(outcome.decoded.ids) for outcome in outcomes if outcome.decoded is not None
        ),
        path=path,
        attempts=job.attempts,
        latency_ms=_sum(outcome.milliseconds for outcome in outcomes),
        ttft_ms=next((outcome.first_ms for outcome in (first.found.get(0),) if outcome is not None), None),
        finish_reason="scored",
    )
    prompt = first.found.get(0)
    thinks = wording.thoughts.marks is not None and first.tokens.source is None
    answer: str | None = None
    if prompt is not None and prompt.decoded is not None:
        decoded = prompt.decoded
        divided = wording.thoughts.apart(decoded.ids, opened=wording.thoughts.is_opened_by(first.tokens.text))
        answer, status = _read(divided.answer, decoded, request.stop, is_ended=divided.is_ended)
        reply = replace(
            reply,
            text=answer,
            status=status,
            reasoning=divided.reasoning,
            reasoning_tokens=divided.tokens if thinks else None,
            finish_reason=decoded.finish,
        )
    if request.labels is not None:
        cut_short = job.before is not None and reply.status == "truncated" and reply.reasoning is not None
        first_outcome = job.found.get(0)
        if job.before is not None:
            answer = None
            if first_outcome is not None and first_outcome.decoded is not None:
                answer, _ = _read(
                    wording.decode(first_outcome.decoded.ids),
                    first_outcome.decoded,
                    request.stop,
                    is_ended=True,
                )
        logprobs = label_logprobs(job)
        reply = replace(
            reply,
            text=max(request.labels, key=lambda label: logprobs[label]),
            status="truncated" if cut_short else "answered",
            label_logprobs=logprobs,
            generated=answer,
            finish_reason="length" if cut_short else "scored",
        )
    if first.tokens.regions and prompt is not None:
        scores = score_regions(
            first.tokens.regions,
            first.tokens.ids,
            prompt.logprobs,
            prompt.borders,
            prompt.entropies,
            marks_beginnings=wording.marks_beginnings,
        )
        if any(first.tokens.foils):
            scores = _with_foils(scores, first, marks_beginnings=wording.marks_beginnings)
        reply = replace(reply, regions=scores)
    if request.states and prompt is not None:
        places = _state_positions(request, first.tokens)
        states = tuple(State(name, prompt.states[at]) for name, at in places.items())
        if prompt.mean is not None and _wants_mean(request, first.tokens):
            states = (*states, State("mean", prompt.mean))
        reply = replace(reply, states=states)
    return reply


def _sum(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) if present else None


def _read(
    text: str, decoded: Continuation, stops: Sequence[str], *, is_ended: bool
) -> tuple[str, ReplyStatus]:
    """Return generated text up to the first stop text, and how it ended."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    text = text[: min(places)] if places else text
    if (decoded.finish == "length" or not is_ended) and not places:
        return text, "truncated"
    return text, "answered" if text.strip() else "empty"


WINDOW = 8192
"""Requests that are planned together."""

FIRST = 32
"""Requests of the first window if replies may have follow-up requests."""


class Windows:
    """Orders requests in windows of ``size``, which are planned together."""

    def __init__(self, requests: Iterable[Request], *, leads_on: bool, size: int = WINDOW) -> None:
        self._size = size
        self._planned = deque(requests)
        self._turns: deque[Request] = deque()
        self._news: list[Request] = []
        self._is_first = leads_on
        self.conversations = False

    def __bool__(self) -> bool:
        return bool(self._planned or self._turns or self._news)

    def follow(self, requests: Sequence[Request]) -> None:
        """Queue follow-up requests before all others."""
        self._news += requests
        self.conversations |= bool(requests)

    def next(self, most: int) -> tuple[list[Request], bool]:
        """Return the next window, of ``most`` conversations, and whether what it leaves in memory will probably be continued."""
        self._turns.extendleft(reversed(self._news))
        self._news = []
        waiting = self._turns or self._planned
        size = FIRST if self._is_first else self._size
        if self._turns or self.conversations:
            size = most
        holds = self.conversations or self._is_first
        self._is_first = False
        return [waiting.popleft() for _ in range(min(size, len(waiting)))], holds


def conversations_held(rows: Sequence[Row], budget: MemoryBudget, *, share: bool) -> int:
    """Return how many conversations of this length fit in memory; a common beginning counts once if they ``share`` it."""
    longest = max(len(row.ids) for row in rows)
    common = min(common_length(rows[0].ids, row.ids) for row in rows) if share and len(rows) > 1 else 0
    return max(1, (budget.held - common) // max(1, longest - common))


@dataclass(eq=False)
class Work:
    """One row to compute, and all jobs that wait for it with the row's place in each."""

    row: Row
    waiting: list[tuple[Job, int]]


def merged(jobs: Sequence[Job], *, apart: bool = False) -> list[Work]:
    """Return the rows of all jobs without duplicates; ``apart`` keeps equal rows of different jobs."""
    work_of: dict[tuple[object, ...], Work] = {}
    for job in jobs:
        for place, row in enumerate(job.rows):
            decoding = row.decoding
            settings: tuple[object, ...] = ()
            if decoding is not None:
                draws = (
                    (decoding.temperature, decoding.seed, decoding.top_p, decoding.top_k)
                    if decoding.temperature > 0
                    else ()
                )
                settings = (decoding.max_tokens, job.request.stop, job.thought_only, *draws)
            source = None if row.source is None else row.source.tobytes()
            key = (id(job) if apart else None, source, row.seen, row.ids.tobytes(), settings)
            work = work_of.get(key)
            if work is None:
                work_of[key] = work = Work(row, [])
            else:
                work.row = replace(
                    work.row,
                    targets=tuple(dict.fromkeys([*work.row.targets, *row.targets])),
                    borders=tuple(sorted({*work.row.borders, *row.borders})),
                    entropies=tuple(sorted({*work.row.entropies, *row.entropies})),
                    states=tuple(sorted({*work.row.states, *row.states})),
                    mean=work.row.mean or row.mean,
                )
            work.waiting.append((job, place))
    return list(work_of.values())


def going_on_from(work: Sequence[Work]) -> set[int]:
    """Return the places of rows that a next turn continues: each request's prompt, or the longer row scored after it."""
    shortest: dict[int, int] = {}
    for place, row_work in enumerate(work):
        for job, _ in row_work.waiting:
            before = shortest.setdefault(id(job), place)
            if len(row_work.row.ids) < len(work[before].row.ids):
                shortest[id(job)] = place
    return set(shortest.values())
