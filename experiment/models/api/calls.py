"""One call to a server: sent once, with its outcome in the journal before anything else is done with it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiment.models.api.responses import read_json, read_usage
from experiment.models.api.retrying import Retry, RunStopped, ServerResponse, Transport, judge_failure
from experiment.models.costs import Usage
from experiment.models.journal import LOST, REFUSED, Call, ModelCalls


@dataclass(frozen=True, slots=True)
class SentCall:
    """The result of a call: an answer, a refusal (a response without ``payload`` and ``failure``), or a failure."""

    response: ServerResponse  # its status is 0 if none came
    payload: Mapping[str, Any] | None = None  # of an answer
    failure: Retry | None = None
    cost_usd: float = 0.0
    times: tuple[float | None, float | None] = (None, None)  # to the whole answer and to its first token, ms


async def send(
    transport: Transport, calls: ModelCalls, call: Call, path: str, content: bytes, *, is_timed: bool = False
) -> SentCall:
    """Send a call that the journal has begun."""
    started = time.perf_counter()
    response = ServerResponse(0, {}, "")
    try:
        response = await transport.post(path, content)
        took = (time.perf_counter() - started) * 1000
        if response.status >= 300:
            await calls.ended(call, REFUSED)
            return SentCall(response)
        payload = read_json(response.body)
    except RunStopped:
        raise
    except Exception as error:
        failure = judge_failure(error, seconds=transport.timeout)
        if response.status:
            await calls.answered(call, response.body, Usage(), is_readable=False)
        else:
            await calls.ended(call, REFUSED if failure.kind == "unreachable" else LOST)
        return SentCall(response, failure=failure)
    first = None if response.first_at is None else (response.first_at - started) * 1000
    times = (took, first) if is_timed else (None, None)
    usage = Usage() if calls.price.is_free else read_usage(payload)
    return SentCall(
        response, payload, None, await calls.answered(call, response.body, usage, times=times), times
    )
