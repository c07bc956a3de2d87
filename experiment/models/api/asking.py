"""Sends a server tiny questions one after the other, and pays for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Mapping
from typing import Any, Protocol, TypeVar

from experiment.models.api.counts import Usage, read_usage
from experiment.models.api.reading import read_json
from experiment.models.api.retrying import (
    FIRST_TRIES,
    NoAnswer,
    Retry,
    RunStopped,
    judge_failure,
    judge_status,
    sent_elsewhere,
    unreached,
)
from experiment.models.api.surfaces import Call, Speaker
from experiment.models.api.transport import Transport
from experiment.models.engine import Reply, Request

MOST_REWORDED = 12

T = TypeVar("T")


class Till(Protocol):
    """Pays for each call before it is sent (:class:`experiment.models.money.Till`)."""

    why: str | None

    def take(self, read: int, written: int) -> bool: ...  # noqa: D102
    def settle(self, usage: Usage) -> None: ...  # noqa: D102
    def refused(self) -> None: ...  # noqa: D102
    def lose(self) -> None: ...  # noqa: D102


class Unanswered(Exception):
    """The endpoint refuses this request or never answers it."""


class Refused(Unanswered):
    """The endpoint refuses this request, and may answer others."""


class Asking:
    """Sends tiny questions one after the other, and pays for them."""

    def __init__(
        self,
        transport: Transport,
        speaker: Speaker,
        *,
        key: str | None,
        timeout: float,
        pace: float,
        till: Till | None,
    ) -> None:
        self.transport = transport
        self.speaker = speaker
        self.key = key
        self.timeout = timeout
        self.pace = pace
        self.till = till
        self.count = 0
        self.has_answered = False
        self.has_openai_models = transport.has_openai_models

    async def ask(
        self,
        request: Request,
        speaker: Speaker | None = None,
        *,
        learns: bool = True,
        tries: int = FIRST_TRIES,
    ) -> Reply:
        """Return the reply to a request, or raise Unanswered."""
        speaker = speaker or self.speaker
        return await self.hold(speaker.ask(request), speaker if learns else None, tries)

    async def hold(
        self, talk: Generator[Call, Mapping[str, Any], T], speaker: Speaker | None, tries: int = FIRST_TRIES
    ) -> T:
        """Return what a conversation with the server comes to, or raise Unanswered; learn refusals where a speaker is given."""
        call = next(talk)
        while True:
            payload = await self._send(call.path, call.body, speaker, tries)
            try:
                call = talk.send(payload)
            except StopIteration as ended:
                outcome: T = ended.value
                return outcome
            except NoAnswer as fault:
                raise Unanswered(str(fault)) from fault

    async def _send(self, path: str, body: Any, speaker: Speaker | None, tries: int) -> Mapping[str, Any]:
        failures = reworded = 0
        while True:
            self.count += 1
            sent = body()
            verdict = await self._try(path, sent)
            if not isinstance(verdict, Retry):
                return verdict
            is_learned = (
                verdict.kind in ("no", "transient")
                and speaker is not None
                and reworded < MOST_REWORDED
                and speaker.dialect.learn(verdict.refusal, sent, speaker.wishes)
            )
            if is_learned:
                reworded += 1
                continue
            if verdict.kind == "no":
                raise Refused(verdict.reason)
            failures += 1
            if failures >= tries:
                if verdict.kind in ("unreachable", "timeout") and not self.has_answered:
                    raise unreached(self.transport.base_url, verdict.reason)
                raise Unanswered(verdict.reason)
            await asyncio.sleep(verdict.wait(failures, "probe") * self.pace)

    async def _try(self, path: str, sent: Mapping[str, Any]) -> Mapping[str, Any] | Retry:
        till = self.till
        if till is not None:
            self._pay(till, sent)
        try:
            response = await self.transport.post(path, sent, seconds=self.timeout)
            if response.status >= 300:
                if till is not None:
                    till.refused()
                if response.status < 400:
                    raise sent_elsewhere(response.status, response.headers, self.transport.base_url, path)
                return judge_status(
                    response.status,
                    response.body,
                    response.headers,
                    secret=self.key,
                    answered=self.has_answered,
                )
            payload = read_json(response.body)
        except RunStopped:
            raise
        except Exception as error:
            verdict = judge_failure(error, seconds=self.timeout)
            if till is not None:
                till.refused() if verdict.kind == "unreachable" else till.lose()
            return verdict
        if till is not None:
            till.settle(read_usage(payload))
        self.has_answered = True
        return payload

    @staticmethod
    def _pay(till: Till, sent: Mapping[str, Any]) -> None:
        """Set aside the most that a call can cost: a token for each byte that is sent, and what it may write."""
        limits = (sent.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"))
        written = next(limit for limit in limits if limit is not None)
        if not till.take(len(json.dumps(sent, ensure_ascii=False).encode()), int(written)):
            raise RunStopped(
                f"there is no money left to find out what the model's server can give: {till.why}",
                mend="Raise models: budget in the study or the limit of this command, or write `probe: false` with the model: then "
                "its server is not asked beforehand.",
            )
