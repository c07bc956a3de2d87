"""Submit many requests to a provider's batch API, and collect the replies later at a lower price.

The ledger in the study's ``batches/`` folder records the names of batches and the work keys in them, not the prompts. Each
batch carries a token in its metadata, which is recorded before the batch is created: if the command dies before it records the
batch's name, the next command finds the batch by its token and does not create it twice. A request's ``custom_id`` is its work
key.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiment.models.api.formats import PATHS, ApiFormat, Dialect, parse_request_options
from experiment.models.api.responses import read_json, read_usage
from experiment.models.api.retrying import (
    Provider,
    RunStopped,
    judge_failure,
    judge_status,
    parsed,
    whole_characters,
)
from experiment.models.costs import Usage
from experiment.models.engine import ModelSettings, Reply, Request
from experiment.models.servers import server_of
from stimuli.errors import UserError
from stimuli.files import overwrite, replace_file

FOLDER = "batches"
GONE = "gone"
"""Status of a batch that its provider no longer knows."""

ENDED = frozenset({"completed", "failed", "expired", "cancelled", GONE})


def moment() -> str:
    """Return the current UTC time as the ledger writes it."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class Batch:
    """A batch, as last reported by the API."""

    token: str  # from the batch's metadata
    requests: int
    batch_id: str | None = None  # the API's name; None until the batch is known to exist
    status: str = "preparing"  # the API's word; `preparing` before it reports one
    completed: int = 0
    failed: int = 0
    output_file: str | None = None
    error_file: str | None = None
    error: str | None = None  # why the API rejected the whole batch
    submitted_at: str = ""
    is_collected: bool = False  # whether its answers were fetched
    reader: str = ""  # the model's name in the study, and the run that submitted the batch
    run_id: str = ""
    most_usd: float = 0.0  # the most that it can cost
    seen_at: str = ""  # when the API last reported on it
    is_decided: bool = False  # whether the user decided what happens to it after its plan changed

    @property
    def has_ended(self) -> bool:
        """Whether the batch has reached a final status."""
        return self.status in ENDED

    @property
    def name(self) -> str:
        """The batch's name in messages."""
        return self.batch_id or "a batch that is not made yet"

    def __str__(self) -> str:
        return (
            f"{self.batch_id or 'not made yet'}: {self.status}, {self.completed + self.failed} of {self.requests} done"
            + (f" ({self.failed} failed)" if self.failed else "")
            + (f": {self.error}" if self.error else "")
            + (", collected" if self.is_collected else "")
        )


class Ledger:
    """The record of all batches of one model in the study's folder."""

    def __init__(self, settings: ModelSettings) -> None:
        self.model, self.base_url = settings.name, server_of(settings.options).base_url
        name = hashlib.sha256(f"{self.base_url.rstrip('/')} {settings.use}".encode()).hexdigest()[:16]
        self.folder = settings.folder / FOLDER
        self.file = self.folder / f"{name}.json"
        self.batches = _batches_in(self.file) if self.file.exists() else []

    def __str__(self) -> str:
        return "\n".join(
            [self.model if self.batches else f"{self.model}: no batch was submitted", *map(str, self.batches)]
        )

    @property
    def open(self) -> list[Batch]:
        """Batches that are still running."""
        return [batch for batch in self.batches if not batch.has_ended]

    def keys_file(self, batch: Batch) -> Path:
        """Return the file with a batch's work keys, one per line."""
        return self.folder / f"{batch.token}.keys"

    def keys(self, batch: Batch) -> list[str]:
        """Return the work keys of a batch that was not fetched."""
        return self.keys_file(batch).read_text("utf-8").split("\n")

    def answers_file(self, batch: Batch) -> Path:
        """Return the file with the answers that no trial has taken, one per line, as the API sent them."""
        return self.folder / f"{batch.token}.answers"

    def answers(self, batch: Batch) -> Iterator[dict[str, Any]]:
        """Yield the answers of a fetched batch that no trial has taken."""
        if self.answers_file(batch).exists():
            for line in self.answers_file(batch).read_text("utf-8").split("\n"):
                yield json.loads(line)

    def keep_answers(self, batch: Batch, lines: Iterable[Mapping[str, Any]]) -> None:
        """Save the answers of a batch that no trial has taken."""
        written = "\n".join(json.dumps(line) for line in lines)
        if written:
            replace_file(self.answers_file(batch), written)
        else:
            self.answers_file(batch).unlink(missing_ok=True)

    def save(self) -> None:
        """Save the ledger atomically."""
        batches = [asdict(batch) for batch in self.batches]
        content = {"model": self.model, "base_url": self.base_url, "batches": batches, "wrods": 1}
        replace_file(self.file, json.dumps(content, indent=1))


def known_batches(folder: Path) -> list[dict[str, Any]]:
    """Return all batches of a study as last reported, with ``model`` and ``waiting`` (number of answers no trial has taken)."""
    batches = []
    for file in sorted((folder / FOLDER).glob("*.json")):
        ledger = json.loads(file.read_text("utf-8"))
        for batch in _batches_in(file):
            answers = file.parent / f"{batch.token}.answers"
            lines = answers.read_text("utf-8").splitlines() if answers.exists() else []
            waiting = sum(is_answered(json.loads(line)) for line in lines)
            batches.append(
                {"model": ledger["model"], **asdict(batch), "said": str(batch), "waiting": waiting}
            )
    return sorted(batches, key=lambda row: str(row["submitted_at"]))


def is_answered(line: Mapping[str, Any]) -> bool:
    """Return whether a line of results has an answer."""
    response = line.get("response")
    return isinstance(response, dict) and response.get("status_code") == 200


def _batches_in(file: Path) -> list[Batch]:
    names = {item.name for item in fields(Batch)}
    rows = json.loads(file.read_text("utf-8"))["batches"]
    return [Batch(**{name: value for name, value in row.items() if name in names}) for row in rows]


MOST_REQUESTS = 50_000
MOST_BYTES = 190_000_000
"""Limits of one file; the API accepts 200 MB."""


class NoBatch(RunStopped):
    """The server does not know a batch, or has no batch API."""


Settle = Callable[[Batch, Sequence[Mapping[str, Any]] | None], None]
"""Called with a batch that has ended and its lines of results, none if it was never made; None if its provider lost it."""


class BatchApi(Provider):
    """Client of the batch API for one model."""

    def __init__(
        self,
        settings: ModelSettings,
        settle: Settle = lambda batch, lines: None,
        dialect: Dialect | None = None,
    ) -> None:
        super().__init__(settings.options)
        self.settle = settle
        self.options = parse_request_options(settings)
        self.ledger = Ledger(settings)
        usual = dialect or Dialect.usual(self.server, self.options)
        self.form = ApiFormat(settings.name, usual, self.options)
        path = PATHS[self.options.surface]
        self.endpoint = path if self.server.is_azure else f"/v1{path}"

    def ask(self, call: Any) -> Any:
        """Call the client; raise RunStopped for errors that end a run."""
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
        """Update open batches from the API; with ``gives_up``, a batch that the server no longer knows is marked as gone."""
        lost = {batch.token: batch for batch in self.ledger.batches if batch.batch_id is None}
        if lost:
            for remote in self.ask(lambda: list(self.client.batches.list(limit=100))):
                token = (remote.metadata or {}).get("wrods")
                if token in lost:
                    _update(lost.pop(token), remote)
            for batch in lost.values():
                self.settle(batch, ())
                self.ledger.batches.remove(batch)
                self.ledger.keys_file(batch).unlink(missing_ok=True)
        try:
            for batch in self.ledger.open:
                try:
                    _update(batch, self.ask(lambda name=batch.batch_id: self.client.batches.retrieve(name)))
                except NoBatch:
                    if not gives_up:
                        raise
                    self.settle(batch, None)
                    batch.status, batch.is_collected = GONE, True
                    self.ledger.keys_file(batch).unlink(missing_ok=True)
        finally:
            if self.ledger.batches or lost:
                self.ledger.save()

    def fetch(self) -> None:
        """Update the batches, and save the answers of those that have ended next to the ledger until trials take them."""
        self.look()
        for batch in self.ledger.batches:
            if batch.is_collected or not batch.has_ended:
                continue
            left = dict.fromkeys(self.ledger.keys(batch))
            answer_lines = []
            for file_id in filter(None, (batch.output_file, batch.error_file)):
                for line in self._lines_of(file_id):
                    if str(line.get("custom_id")) in left:
                        del left[str(line.get("custom_id"))]
                        answer_lines.append(line)
            why = f"the batch is {batch.status}" + (
                f": {batch.error}" if batch.error else " without an answer"
            )
            answer_lines += [{"custom_id": key, "response": None, "error": {"message": why}} for key in left]
            self.ledger.keep_answers(batch, answer_lines)
            self.settle(batch, answer_lines)
            batch.is_collected = True
            self.ledger.save()
            self.ledger.keys_file(batch).unlink(missing_ok=True)

    def cancel(self, reader: str = "") -> None:
        """Cancel all batches that are still running (of one reader); mark those that the server no longer knows as gone."""
        self.look(gives_up=True)
        for batch in self.ledger.open:
            if reader in ("", batch.reader) or not batch.reader:
                _update(batch, self.ask(lambda name=batch.batch_id: self.client.batches.cancel(name)))
        self.ledger.save()

    def submit(
        self,
        requests: Iterable[Request],
        *,
        reader: str = "",
        run_id: str = "",
        most: Callable[[Request], float] = lambda request: 0.0,
        begin: Callable[[Batch, Mapping[str, float]], None] = lambda batch, most: None,
    ) -> None:
        """Submit all requests that are in no open or uncollected batch.

        ``most`` is the most that one can cost in US dollars; ``begin`` receives these by work key before a batch is created.
        """
        if self.options.whole_labels:
            raise UserError(
                "label_scoring: whole takes several calls a request, and a batch gives one",
                mend="Leave out --batch, or score labels by their first token.",
            )
        self.look()
        pending = {
            key for batch in self.ledger.batches if not batch.is_collected for key in self.ledger.keys(batch)
        }
        lines: list[bytes] = []
        costs: dict[str, float] = {}
        size = 0

        def hand_over() -> None:
            batch = Batch(secrets.token_hex(16), len(costs), submitted_at=moment())
            batch.reader, batch.run_id, batch.most_usd = reader, run_id, sum(costs.values())
            begin(batch, costs)
            self._create(lines, batch, list(costs))

        for request in requests:
            if request.work_key in pending:
                continue
            body = {
                "custom_id": request.work_key,
                "method": "POST",
                "url": self.endpoint,
                "body": self.form.body(request)[1],
            }
            line = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(
                "utf-8", "surrogatepass"
            )
            if costs and (len(costs) >= MOST_REQUESTS or size + len(line) + 1 > MOST_BYTES):
                hand_over()
                lines, costs, size = [], {}, 0
            lines.append(line)
            costs[request.work_key] = most(request)
            size += len(line) + 1
        if costs:
            hand_over()

    def collect(
        self, requests: Iterable[Request], stored: Callable[[], None] = lambda: None
    ) -> Iterator[Reply]:
        """Yield a reply to each given request in a batch that has ended; a request without an answer gets an error.

        Answers are removed after all replies of their batch were taken and ``stored`` returned, so an interrupted command collects
        them again.
        """
        self.fetch()
        awaited = {request.work_key: request for request in requests}
        for batch in self.ledger.batches:
            remaining, taken = [], 0
            for line in self.ledger.answers(batch):
                request = awaited.pop(str(line.get("custom_id")), None)
                if request is None:
                    remaining.append(line)
                    continue
                taken += 1
                yield _reply(line, request, self.form, self.key)
            if taken:
                stored()
                self.ledger.keep_answers(batch, remaining)

    def _create(self, lines: list[bytes], batch: Batch, keys: list[str]) -> None:
        """Create one batch: record it, upload its requests, create it, record its name."""
        replace_file(self.ledger.keys_file(batch), "\n".join(keys))
        self.ledger.batches.append(batch)
        self.ledger.save()
        name = f"wrods-{batch.token}.jsonl"
        uploaded = self.ask(lambda: self.client.files.create(file=(name, b"\n".join(lines)), purpose="batch"))
        created = self.ask(
            lambda: self.client.with_options(max_retries=0).batches.create(
                input_file_id=uploaded.id,
                endpoint=self.endpoint,
                completion_window="24h",
                metadata={"wrods": batch.token},
            )
        )
        _update(batch, created)
        self.ledger.save()

    def _lines_of(self, file_id: str) -> Iterator[Mapping[str, Any]]:
        content = self.ask(lambda: self.client.files.content(file_id).text)
        # texts inside the JSON may contain other line separators
        for number, line in enumerate(content.split("\n")):
            if not line.strip():
                continue
            try:
                yield parsed(line)
            except ValueError:
                # kept for inspection
                (self.ledger.folder / f"{file_id}-{number}.unread").write_text(line, "utf-8")


def costs_of(
    lines: Iterable[Mapping[str, Any]], cost_of: Callable[[Usage], float]
) -> dict[str, float | None]:
    """Return the cost in US dollars of each answer by its work key; None if the server counted no tokens."""
    costs: dict[str, float | None] = {}
    for line in filter(is_answered, lines):
        usage = _usage(line["response"])
        is_counted = usage.prompt is not None and usage.completion is not None
        costs[str(line.get("custom_id"))] = cost_of(usage) if is_counted else None
    return costs


def forget_answers(folder: Path, work_keys: Collection[str]) -> int:
    """Erase the answers to trials, and to calls made before them, that wait in a study's folder; return their number."""
    count = 0
    for file in sorted((folder / FOLDER).glob("*.answers")):
        lines = file.read_text("utf-8").splitlines()
        works = [str(json.loads(line).get("custom_id")).partition(":")[0] for line in lines]
        retained = [line for line, work in zip(lines, works, strict=True) if work not in work_keys]
        if len(retained) == len(lines):
            continue
        count += len(lines) - len(retained)
        overwrite(file, "\n".join(retained))
    return count


def _reply(line: Mapping[str, Any], request: Request, form: ApiFormat, key: str | None) -> Reply:
    """Return the reply in one line of results."""
    response = line.get("response")
    if not isinstance(response, dict):
        error = line.get("error")
        words = error.get("message") if isinstance(error, dict) else error
        return _error(request, form, whole_characters(f"not answered: {words}"))
    body = json.dumps(response.get("body"))
    status = response.get("status_code")
    if status != 200:
        try:
            verdict = judge_status(int(status or 500), body, {}, secret=key, answered=True)
        except RunStopped as stop:
            return _error(request, form, stop.message)
        reply = _error(request, form, verdict.reason)
        return replace(reply, status="refused") if verdict.filtered else reply
    talk = form.ask(request)
    next(talk)
    try:
        talk.send(read_json(body))
    except StopIteration as ended:
        answered: Reply = ended.value
        return replace(answered, path=f"{answered.path}+batch")
    except Exception as fault:
        return _billed(_error(request, form, judge_failure(fault, seconds=0).reason), response)
    return _billed(_error(request, form, "one call was not enough"), response)


def _usage(response: Mapping[str, Any]) -> Usage:
    body = response.get("body")
    return read_usage(body if isinstance(body, dict) else {})


def _billed(reply: Reply, response: Mapping[str, Any]) -> Reply:
    """Return an unreadable answer with the provider's token counts, because it is billed."""
    return replace(reply, **_usage(response).of_reply)


def _error(request: Request, form: ApiFormat, reason: str) -> Reply:
    path = f"{form.options.surface}+batch"
    return Reply(request.work_key, None, "error", error=reason, requested_model=form.model, path=path)


def _update(batch: Batch, seen: Any) -> None:
    """Copy what the API reports about a batch."""
    batch.batch_id = str(seen.id)
    batch.status = str(seen.status)
    batch.seen_at = moment()
    batch.output_file, batch.error_file = seen.output_file_id, seen.error_file_id
    counts = seen.request_counts
    if counts is not None:
        batch.completed, batch.failed = int(counts.completed), int(counts.failed)
    data = seen.errors.data if seen.errors is not None else None
    if data:
        batch.error = "; ".join(str(fault.message) for fault in data)[:500]
