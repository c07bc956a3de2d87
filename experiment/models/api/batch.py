"""Batch API: hand over many requests, leave, come back and collect, at a lower price.

What was handed over is written down in ``batches/`` of the study's folder: the names of batches and of the pieces of
work in them, nothing of what was asked. Every batch carries a token of ours among its own data, written down before it
is made; a command that died between making a batch and writing down its name finds it again by that token and never
makes it twice. A request's ``custom_id`` is its work key.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from experiment.models.api.batch_ledger import (
    FOLDER,
    GONE,
    Batch,
    BatchState,
    Ledger,
    is_answered,
    known_batches,
    moment,
)
from experiment.models.api.counts import Usage, read_usage
from experiment.models.api.dialects import PATHS, Dialect, read_wishes
from experiment.models.api.provider import Provider
from experiment.models.api.reading import read_json
from experiment.models.api.retrying import (
    RunStopped,
    judge_failure,
    judge_status,
    parsed,
    whole_characters,
)
from experiment.models.api.surfaces import Speaker
from experiment.models.engine import Reply, Request
from experiment.models.servers import server_of
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError
from stimuli.files import replace_file

MOST_REQUESTS = 50_000
MOST_BYTES = 190_000_000
"""What one file may hold; the API's own bound is 200 MB."""


class NoBatch(RunStopped):
    """The server does not know a batch, or has none at all."""


class _Desk(Provider):
    """Talks to the API about one model's batches."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings.options)
        self.settings = settings
        self.wishes = read_wishes(settings)
        self.ledger = Ledger(settings, self.server)

    def speaker(self, dialect: Dialect | None) -> Speaker:
        """Return what makes and reads requests."""
        return Speaker(
            self.settings.name, dialect or Dialect.usual(self.server, self.wishes), self.wishes, {}
        )

    def ask(self, call: Any) -> Any:
        """Call the client; what stops a run is raised as such."""
        import openai

        def known() -> Any:
            try:
                return call()
            except openai.APIStatusError as error:
                if error.status_code not in (404, 405, 501):
                    raise
                raise NoBatch(
                    f"{self.server.base_url} has no such batch, or no batches at all ({error.status_code})",
                    mend="Leave out --batch: OpenAI and Azure have batches, most other servers do not. A batch that is out and "
                    "that the server does not know any more is given up with --cancel-batches.",
                ) from error

        return self.answer(known, "the Batch API failed")

    def look(self, *, gives_up: bool = False) -> None:
        """See what became of the batches that have not ended, those included whose making was cut short.

        Where it ``gives_up``, a batch that the server does not know any more counts as gone.
        """
        lost = {one.token: one for one in self.ledger.state.batches if one.batch_id is None}
        if lost:
            for found in self.ask(lambda: list(self.client.batches.list(limit=100))):
                token = (found.metadata or {}).get("wrods")
                if token in lost:
                    _update(lost.pop(token), found)
            for one in lost.values():
                self.ledger.state.batches.remove(one)
                self.ledger.keys_file(one).unlink(missing_ok=True)
        try:
            for one in self.ledger.state.open:
                try:
                    _update(one, self.ask(lambda name=one.batch_id: self.client.batches.retrieve(name)))
                except NoBatch:
                    if not gives_up:
                        raise
                    one.status, one.is_collected = GONE, True
                    self.ledger.keys_file(one).unlink(missing_ok=True)
        finally:
            if self.ledger.state.batches or lost:
                self.ledger.save()

    def fetch(self) -> None:
        """Fetch the answers of batches that have ended; they lie beside the ledger until trials take them."""
        for batch in self.ledger.state.to_collect:
            left = dict.fromkeys(self.ledger.keys(batch))
            came = []
            for file_id in (batch.output_file, batch.error_file):
                for line in self.lines_of(file_id):
                    if str(line.get("custom_id")) in left:
                        del left[str(line.get("custom_id"))]
                        came.append(line)
            why = f"the batch is {batch.status}" + (
                f": {batch.error}" if batch.error else " without an answer"
            )
            came += [{"custom_id": key, "response": None, "error": {"message": why}} for key in left]
            self.ledger.keep_answers(batch, came)
            batch.is_collected = True
            self.ledger.save()
            self.ledger.keys_file(batch).unlink(missing_ok=True)

    def hand_over(
        self, lines: list[bytes], keys: list[str], *, reader: str, run_id: str, most: float
    ) -> None:
        """Make one batch: write down that it is to be, upload, make it, write down its name."""
        batch = Batch(
            secrets.token_hex(16),
            len(keys),
            submitted_at=moment(),
            reader=reader,
            run_id=run_id,
            most_usd=most,
        )
        replace_file(self.ledger.keys_file(batch), "\n".join(keys))
        self.ledger.state.batches.append(batch)
        self.ledger.save()
        path = PATHS[self.wishes.surface]
        name = f"wrods-{batch.token}.jsonl"
        uploaded = self.ask(lambda: self.client.files.create(file=(name, b"\n".join(lines)), purpose="batch"))
        made = self.ask(
            lambda: self.client.with_options(max_retries=0).batches.create(
                input_file_id=uploaded.id,
                endpoint=path if self.server.is_azure else f"/v1{path}",
                completion_window="24h",
                metadata={"wrods": batch.token},
            )
        )
        _update(batch, made)
        self.ledger.save()

    def lines_of(self, file_id: str | None) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a file of results."""
        if file_id is None:
            return
        content = self.ask(lambda: self.client.files.content(file_id).text)
        # JSON may hold other line ends than this one inside its texts
        for number, line in enumerate(content.split("\n")):
            if not line.strip():
                continue
            try:
                yield parsed(line)
            except ValueError:
                self.ledger.keep_unread(file_id, number, line)


def submit(
    settings: ModelSettings,
    requests: Iterable[Request],
    *,
    dialect: Dialect | None = None,
    reader: str = "",
    run_id: str = "",
    most: Callable[[Request], float] = lambda request: 0.0,
) -> BatchState:
    """Hand over all requests that are in no open or uncollected batch."""
    desk = _Desk(settings)
    if desk.wishes.whole_labels:
        raise UserError(
            "label_scoring: whole takes several calls a request, and a batch gives one",
            mend="Leave out --batch, or score labels by their first token.",
        )
    desk.look()
    pending = {
        key for one in desk.ledger.state.batches if not one.is_collected for key in desk.ledger.keys(one)
    }
    speaker = desk.speaker(dialect)
    endpoint = PATHS[desk.wishes.surface] if desk.server.is_azure else f"/v1{PATHS[desk.wishes.surface]}"
    lines: list[bytes] = []
    keys: list[str] = []
    size, cost = 0, 0.0
    for request in requests:
        if request.work_key in pending:
            continue
        _, body = speaker.body(request)
        line = json.dumps(
            {"custom_id": request.work_key, "method": "POST", "url": endpoint, "body": body},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode("utf-8", "surrogatepass")
        if keys and (len(keys) >= MOST_REQUESTS or size + len(line) + 1 > MOST_BYTES):
            desk.hand_over(lines, keys, reader=reader, run_id=run_id, most=cost)
            lines, keys, size, cost = [], [], 0, 0.0
        lines.append(line)
        keys.append(request.work_key)
        size += len(line) + 1
        cost += most(request)
    if keys:
        desk.hand_over(lines, keys, reader=reader, run_id=run_id, most=cost)
    return desk.ledger.state


def state(settings: ModelSettings) -> BatchState:
    """Ask the API what became of this model's batches."""
    desk = _Desk(settings)
    desk.look()
    return desk.ledger.state


def cancel(settings: ModelSettings, *, reader: str = "") -> BatchState:
    """Cancel all batches that still run (of one reader); what is done by then can be collected.

    One that the server does not know any more counts as gone.
    """
    desk = _Desk(settings)
    desk.look(gives_up=True)
    for one in desk.ledger.state.open:
        if reader in ("", one.reader) or not one.reader:
            _update(one, desk.ask(lambda name=one.batch_id: desk.client.batches.cancel(name)))
    desk.ledger.save()
    return desk.ledger.state


def fetch(settings: ModelSettings) -> BatchState:
    """See what became of this model's batches, and fetch the answers of those that have ended."""
    desk = _Desk(settings)
    desk.look()
    desk.fetch()
    return desk.ledger.state


def ledger_of(settings: ModelSettings) -> Ledger:
    """Return what is written down about a model's batches; nobody is asked."""
    return Ledger(settings, server_of(settings.options))


def owed(ledger: Ledger, cost_of: Callable[[Usage], float]) -> dict[str, float]:
    """Return what fetched answers cost that no trial has taken, in US dollars by token of their batch.

    An answer whose tokens the server did not count costs its share of the most that its batch can have cost.
    """
    found = {}
    for batch in ledger.state.batches:
        if not batch.is_collected:
            continue
        total = 0.0
        for line in filter(is_answered, ledger.answers(batch)):
            body = line["response"].get("body")
            usage = read_usage(body if isinstance(body, dict) else {})
            is_counted = usage.prompt is not None and usage.completion is not None
            total += cost_of(usage) if is_counted else batch.most_usd / max(1, batch.requests)
        found[batch.token] = total
    return found


def collect(
    settings: ModelSettings,
    requests: Iterable[Request],
    *,
    dialect: Dialect | None = None,
    settle: Callable[[], None] = lambda: None,
) -> Iterator[Reply]:
    """Yield a reply to each of the given requests that stands in a batch that has ended.

    Answers are forgotten once all replies of their batch were taken and ``settle`` returned, so that a command that dies on
    the way collects again; requests that are stored by then are simply not given. What nobody asks for stays
    (:func:`owed`). What a batch did not come to (it expired, was cancelled or refused) is yielded as an error, and
    can be handed over again.
    """
    desk = _Desk(settings)
    desk.look()
    desk.fetch()
    speaker = desk.speaker(dialect)
    asked = {request.work_key: request for request in requests}
    for batch in desk.ledger.state.batches:
        kept, taken = [], 0
        for line in desk.ledger.answers(batch):
            request = asked.pop(str(line.get("custom_id")), None)
            if request is None:
                kept.append(line)
                continue
            taken += 1
            yield _reply(line, request, speaker, desk.key)
        if taken:
            settle()
            desk.ledger.keep_answers(batch, kept)


def _reply(line: Mapping[str, Any], request: Request, speaker: Speaker, key: str | None) -> Reply:
    """Read one line of results."""
    response = line.get("response")
    if not isinstance(response, dict):
        error = line.get("error")
        words = error.get("message") if isinstance(error, dict) else error
        return _error(request, speaker, whole_characters(f"not answered: {words}"))
    body = json.dumps(response.get("body"))
    status = response.get("status_code")
    if status != 200:
        try:
            verdict = judge_status(int(status or 500), body, {}, secret=key, answered=True)
        except RunStopped as stop:
            return _error(request, speaker, stop.message)
        reply = _error(request, speaker, verdict.reason)
        return replace(reply, status="refused") if verdict.filtered else reply
    talk = speaker.ask(request)
    next(talk)
    try:
        talk.send(read_json(body))
    except StopIteration as ended:
        answered: Reply = ended.value
        return replace(answered, path=f"{answered.path}+batch")
    except Exception as fault:
        return _billed(_error(request, speaker, judge_failure(fault, seconds=0).reason), response)
    return _billed(_error(request, speaker, "one call was not enough"), response)


def _billed(reply: Reply, response: Mapping[str, Any]) -> Reply:
    """Return an answer that cannot be read with what the provider counted of it, for it is billed all the same."""
    body = response.get("body")
    usage = read_usage(body if isinstance(body, dict) else {})
    return replace(
        reply,
        prompt_tokens=usage.prompt,
        cached_tokens=usage.cached,
        completion_tokens=usage.completion,
        reasoning_tokens=usage.reasoning,
        unsettled_tries=1,
    )


def _error(request: Request, speaker: Speaker, reason: str) -> Reply:
    path = f"{speaker.wishes.surface}+batch"
    return Reply(request.work_key, None, "error", error=reason, requested_model=speaker.model, path=path)


def _update(batch: Batch, seen: Any) -> None:
    """Take over what the API says of a batch."""
    batch.batch_id = str(seen.id)
    batch.status = str(seen.status)
    batch.seen_at = moment()
    batch.output_file, batch.error_file = seen.output_file_id, seen.error_file_id
    counts = seen.request_counts
    if counts is not None:
        batch.completed, batch.failed = int(counts.completed), int(counts.failed)
    data = seen.errors.data if seen.errors is not None else None
    if data:
        batch.error = "; ".join(str(one.message) for one in data)[:500]


__all__ = [
    "FOLDER",
    "NoBatch",
    "cancel",
    "collect",
    "fetch",
    "known_batches",
    "ledger_of",
    "owed",
    "state",
    "submit",
]
