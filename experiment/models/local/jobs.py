"""From a request to rows of tokens, and from what was found of them to its reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from experiment.models.engine import Reply, ReplyStatus, Request, State
from experiment.models.local import regions
from experiment.models.local.rows import Decoded, Decoding, Found, Row
from experiment.models.local.tokens import Tokens


@dataclass
class Job:
    """One request under way.

    Attributes
    ----------
    rows : list of Row
        The prompt's own row first; further ones for labels of several tokens.
    found : dict of int to Found
        By place in ``rows``.
    """

    request: Request
    tokens: Tokens
    rows: list[Row] = field(default_factory=list)
    found: dict[int, Found] = field(default_factory=dict)
    attempts: int = 1
    error: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether all its rows are computed, or it failed."""
        return self.error is not None or len(self.found) == len(self.rows)


def job_of(request: Request, tokens: Tokens, stopped: Callable[[Sequence[int]], bool]) -> Job:
    """Return a job with its rows: labels that go on from the same tokens share one."""
    job = Job(request, tokens)
    targets, borders = regions.asked(tokens.regions, tokens.ids)
    states = _state_positions(request, tokens)
    continued = request.labels is None or request.also_text
    decoding = (
        Decoding(request.max_tokens, request.temperature, request.seed, stopped, request.top_p, request.top_k)
        if continued and request.max_tokens > 0
        else None
    )
    prompt = Row(_ids(tokens.ids), tuple(targets), tuple(borders), tuple(states.values()), decoding)
    asked: dict[bytes, list[tuple[int, int]]] = {}
    ids = {prompt.ids.tobytes(): prompt.ids}
    for label in tokens.labels:
        whole = _ids(label.ids[:-1])
        ids.setdefault(whole.tobytes(), whole)
        asked.setdefault(whole.tobytes(), []).extend(
            (label.start + step, token) for step, token in enumerate(label.targets)
        )
    first = prompt.ids.tobytes()
    own = tuple(dict.fromkeys([*targets, *asked.pop(first, [])]))
    job.rows = [replace(prompt, targets=own)] if own or borders or states or decoding is not None else []
    job.rows += [Row(ids[key], tuple(dict.fromkeys(places))) for key, places in asked.items()]
    return job


def _ids(ids: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.asarray(ids, dtype=np.int32)


def _state_positions(request: Request, tokens: Tokens) -> dict[str, int]:
    """Return the positions whose hidden states are kept, by name."""
    found: dict[str, int] = {}
    if "last" in request.states:
        found["last"] = len(tokens.ids) - 1
    if "regions" in request.states:
        found |= {
            f"region {number}": region.last - 1
            for number, region in enumerate(tokens.regions)
            if region.first < region.last
        }
    return found


def label_logprobs(job: Job) -> dict[str, float]:
    """Return the log-probability of each label, in the order of the request."""
    values: dict[tuple[bytes, int, int], float] = {}
    for place, found in job.found.items():
        key = job.rows[place].ids.tobytes()
        values |= {(key, position, token): value for (position, token), value in found.logprobs.items()}
    return {
        label.label: float(
            sum(
                values[_ids(label.ids[:-1]).tobytes(), label.start + step, token]
                for step, token in enumerate(label.targets)
            )
        )
        for label in job.tokens.labels
    }


def reply_of(
    job: Job, *, decode: Callable[[Sequence[int]], str], marks_beginnings: Callable[[], bool], path: str, thinks: str | None
) -> Reply:
    """Return the reply to a request whose rows are all computed.

    Parameters
    ----------
    thinks : str or None
        What ends a model's thought where it writes one before its answer.
    """
    request, prompt = job.request, job.found.get(0)
    computed = sum(found.computed for found in job.found.values())
    reply = Reply(
        request.work_key,
        None,
        "answered",
        prompt_tokens=len(job.tokens.ids),
        cached_tokens=max(0, len(job.tokens.ids) - computed),
        completion_tokens=0,
        path=path,
        attempts=job.attempts,
        latency_ms=_sum(found.milliseconds for found in job.found.values()),
        finish_reason="scored",
    )
    text: str | None = None
    status: ReplyStatus = "answered"
    if prompt is not None and prompt.decoded is not None:
        raw = decode(prompt.decoded.ids)
        reasoning, answer = _apart(raw, thinks)
        thought = len(prompt.decoded.ids) - _tokens_after(prompt.decoded.ids, decode, thinks) if reasoning else 0
        text, status = _read(answer, prompt.decoded, request.stop)
        if reasoning is not None and answer == "" and prompt.decoded.finish == "length":
            status = "truncated"
        reply = replace(
            reply,
            text=text,
            status=status,
            reasoning=reasoning,
            reasoning_tokens=thought if thinks else None,
            completion_tokens=len(prompt.decoded.ids),
            finish_reason=prompt.decoded.finish,
            ttft_ms=prompt.first_ms,
        )
    if request.labels is not None:
        logprobs = label_logprobs(job)
        reply = replace(
            reply,
            text=max(request.labels, key=lambda label: logprobs[label]),
            status="answered",
            label_logprobs=logprobs,
            generated=text,
            finish_reason="scored",
        )
    if job.tokens.regions and prompt is not None:
        scores = regions.score(
            job.tokens.regions, job.tokens.ids, prompt.logprobs, prompt.borders, marks_beginnings=marks_beginnings()
        )
        reply = replace(reply, regions=scores)
    if request.states and prompt is not None:
        places = _state_positions(request, job.tokens)
        reply = replace(reply, states=tuple(State(name, prompt.states[at]) for name, at in places.items()))
    return reply


def _sum(values: object) -> float | None:
    known = [value for value in values if value is not None]  # type: ignore[attr-defined]
    return sum(known) if known else None


def _apart(text: str, thinks: str | None) -> tuple[str | None, str]:
    """Return thought and answer; a text that never ends its thought is all thought."""
    if thinks is None:
        return None, text
    opening = thinks.replace("/", "", 1)
    before, end, after = text.partition(thinks)
    if not end:
        return (text.replace(opening, "", 1).strip(), "") if opening in text else (None, text)
    return before.replace(opening, "", 1).strip(), after.lstrip("\n")


def _tokens_after(ids: Sequence[int], decode: Callable[[Sequence[int]], str], thinks: str | None) -> int:
    """Return how many tokens stand behind the end of the thought."""
    if thinks is None:
        return len(ids)
    low, high = 0, len(ids)
    if thinks not in decode(ids):
        return 0
    while low < high:
        middle = (low + high) // 2
        if thinks in decode(ids[:middle]):
            high = middle
        else:
            low = middle + 1
    return len(ids) - low


def _read(text: str, decoded: Decoded, stops: Sequence[str]) -> tuple[str, ReplyStatus]:
    """Return generated text up to the first stop text, and how it ended."""
    places = [place for stop in stops if (place := text.find(stop)) >= 0]
    text = text[: min(places)] if places else text
    if decoded.finish == "length" and not places:
        return text, "truncated"
    return text, "answered" if text.strip() else "empty"
