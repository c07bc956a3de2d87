"""A training at a provider: files checked and uploaded, one job made, its end awaited. After a kill, nothing is made or paid twice.

The file's rules are those of the API's reference: a JSON object per line with ``messages``, each with a role and a text, the last
one the assistant's; ten examples or more; a limit on an example's tokens and on a file's bytes.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from experiment.models.api.retrying import Provider, RunStopped
from experiment.models.costs import format_usd
from experiment.models.journal import book, spending
from experiment.models.runs.limits import Deadline, Stop
from experiment.models.runs.orchestrator import budget_of
from experiment.models.servers import server_of
from experiment.papers.inside.tuning.batches import parted
from experiment.papers.inside.tuning.records import (
    FINISHED,
    Curve,
    LearningPoint,
    Outcome,
    Records,
    built_again,
    make_records,
    messages_of,
    opening_record,
    require_same,
    write_record,
)
from experiment.papers.inside.tuning.settings import Training
from experiment.store import Store
from experiment.store.database import lock_for_change
from experiment.study import Study
from experiment.study.study import read_record
from stimuli.errors import UserError
from stimuli.files import file_sha256, replace_file

POLL_S = 30.0
ENDED = ("succeeded", "failed", "cancelled")
_LOSSES = ("step", "train_loss", "valid_loss")


@dataclass(frozen=True)
class PreparedJob:
    """A job that could be made."""

    files: JobFiles
    spec: Mapping[str, Any]  # what it is made with
    most_usd: float | None  # the most that it can cost; None where no price is known
    likely_usd: float | None  # about what it will cost


def prepare(
    study: Study, training: Training, *, say: Callable[[str], None] = lambda line: None
) -> PreparedJob:
    """Write a job's files; nothing is sent."""
    require_same(training, read_record(training.folder))
    records = make_records(study, training, say=say)
    files = write_job_files(training, records)
    spec = job_of(training, files)
    price = _price(training)
    tokens = files.most_tokens * training.epochs_of(replies=True)
    job = _read(training)
    if not job:
        _write(training, {"spec": spec, "sha256": files.sha256})
    if price is None:
        return PreparedJob(files, spec, None, None)
    return PreparedJob(files, spec, tokens * price / 1e6, tokens * price / 4e6)


def finished(study: Study, training: Training) -> Outcome | None:
    """Return the outcome of a training that is finished already; None where it is not."""
    record = read_record(training.folder)
    if record.get("state") != FINISHED:
        return None
    require_same(training, record)
    outcome = _outcome(training, _read(training), FINISHED, record)
    return replace(outcome, was_finished=True, remark=built_again(study, training))


def is_submitted(training: Training) -> bool:
    """Return whether a job was made, or was about to be."""
    return "token" in _read(training)


def submit(
    study: Study, training: Training, prepared: PreparedJob, store: Store, *, max_cost: float | None = None
) -> str:
    """Upload the files and make the job, or find the one that was made; return its name."""
    most = prepared.most_usd
    if most is None:
        raise UserError(
            f"{training.place}: no price is known for training {training.model.use}",
            mend="Give the provider's in the training, such as `price: 25` (US dollars for a million tokens trained).",
        )
    job = _read(training)
    if "token" not in job:
        if max_cost is not None and most > max_cost:
            raise UserError(
                f"training {training.name} can cost up to {format_usd(most)}, and --max-cost is {format_usd(max_cost)}",
                mend="Raise --max-cost, or train for fewer epochs.",
            )
        token = job.setdefault("next_token", secrets.token_hex(16))
        # before money is booked under it: a command that dies in between books nothing twice
        _write(training, job)
        _set_aside(study, training, store, token, most)
        job |= {"token": token, "most_usd": most}
        job |= {"sha256": prepared.files.sha256, "spec": dict(prepared.spec)}
        _write(training, job)
        write_record(training.folder, {**opening_record(study, training), "state": "handed over"})
    desk = _Desk(training)
    if job.get("job_id") is None and job.get("is_creating"):
        job["job_id"] = desk.found(job["token"])
    if job.get("job_id") is None:
        spec = dict(job["spec"])
        files = prepared.files
        for key, file in (("training_file", files.training), ("validation_file", files.validation)):
            if file is None:
                continue
            if f"{key}_id" not in job:
                job[f"{key}_id"] = desk.upload(file.name, file.read_bytes())
                _write(training, job)
            spec[key] = job[f"{key}_id"]
        job["is_creating"] = True
        _write(training, job)
        job["job_id"] = desk.create({**spec, "metadata": {"wrods": job["token"]}})
    _write(training, job)
    return str(job["job_id"])


def follow(
    study: Study,
    training: Training,
    store: Store,
    *,
    stop: Stop,
    clock: Deadline,
    tell: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Wait for a job's end, at most until the command ends; note the trained model's name and what it cost."""
    record = read_record(training.folder)
    job = _read(training)
    desk = _Desk(training)
    before = ""
    while True:
        seen = desk.seen(job["job_id"])
        status = str(seen.status)
        if status != before:
            tell(f"{training.name}: job {job['job_id']} is {status}")
            before = status
        job |= {"status": status}
        if status in ENDED:
            break
        _write(training, job)
        if stop.is_asked or clock.is_over:
            why = stop.reason or "the time of this command (--max-minutes) is over"
            outcome = _outcome(training, job, status, record)
            return replace(outcome, stopped=why, interrupted=stop.interrupted)
        stop.wait(POLL_S if clock.left is None else min(POLL_S, clock.left + 0.01))
    tokens = seen.trained_tokens
    price = _price(training)
    cost = None if tokens is None or price is None else int(tokens) * price / 1e6
    if cost is not None:
        job["cost_usd"] = cost
        store.write(partial(_booked, study, training, job["token"], cost)).result()
    _write(training, job)
    if status != "succeeded":
        error = getattr(seen, "error", None)
        words = getattr(error, "message", None) or "it says nothing more"
        stays = f"; {format_usd(job['most_usd'])}, the most that it can have cost, stay counted"
        counted = stays if cost is None else ""
        raise UserError(
            f"the job of training {training.name} ({job['job_id']}) has {status}: {words}{counted}",
            mend=f"See the provider's page of the job; to make another, remove {training.folder / JOB_FILE}.",
            exit_code=1,
        )
    _keep_curve(training, desk, seen)
    record |= {
        "state": FINISHED,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "model_name": str(seen.fine_tuned_model),
        "job_id": job["job_id"],
        "trained_tokens": tokens,
        "cost_usd": cost,
        "training_sha256": job["sha256"],
    }
    write_record(training.folder, record)
    return _outcome(training, job, FINISHED, record)


class _Desk(Provider):
    """Talks to a provider about jobs."""

    def __init__(self, training: Training) -> None:
        super().__init__(training.model.options)

    def upload(self, name: str, content: bytes) -> str:
        return str(self._ask(lambda: self.client.files.create(file=(name, content), purpose="fine-tune")).id)

    def create(self, spec: Mapping[str, Any]) -> str:
        once = self.client.with_options(max_retries=0)
        return str(self._ask(lambda: once.fine_tuning.jobs.create(**spec)).id)

    def found(self, token: str) -> str | None:
        """Return the job that carries a token; None where it was never made."""
        for job in self._ask(lambda: list(self.client.fine_tuning.jobs.list(limit=100))):
            if (getattr(job, "metadata", None) or {}).get("wrods") == token:
                return str(job.id)
        return None

    def seen(self, job_id: str) -> Any:
        return self._ask(lambda: self.client.fine_tuning.jobs.retrieve(job_id))

    def content(self, file_id: str) -> str:
        return str(self._ask(lambda: self.client.files.content(file_id).text))

    def _ask(self, call: Callable[[], Any]) -> Any:
        return self.answer(call, f"{self.server.base_url} refuses the training")


def _price(training: Training) -> float | None:
    """Return US dollars per million tokens: the study's price, 0 on the user's own server, else None."""
    if training.price is not None:
        return training.price
    return 0.0 if server_of(training.model.options).is_own else None


def _set_aside(study: Study, training: Training, store: Store, token: str, most: float) -> None:
    """Book the most that a job can cost, where the study's budget holds it."""
    budget = budget_of(study)

    def write(connection: Connection) -> float | None:
        lock_for_change(connection)
        _booked(study, training, token, 0.0, connection)  # where a command died behind booking it
        left = None if budget is None else budget - spending(connection, study).total
        if left is None or most <= left:
            _booked(study, training, token, most, connection)
            return None
        return left

    left = store.write(write).result()
    if left is not None:
        raise UserError(
            f"training {training.name} can cost up to {format_usd(most)}, and {format_usd(max(0.0, left))} of the study's budget "
            "are left",
            mend="Raise models: budget in the study, or train for fewer epochs.",
            exit_code=1,
        )


def _booked(study: Study, training: Training, token: str, cost: float, connection: Connection) -> None:
    book(connection, study.id, f"tuned:{training.name}", f"tuning-{token}", cost)


def _keep_curve(training: Training, desk: _Desk, seen: Any) -> None:
    """Write the loss curve that a provider tells as ``loss.csv``; where it tells none, there is none."""
    files = list(getattr(seen, "result_files", None) or ())
    if not files:
        return
    try:
        text = desk.content(files[0])
    except RunStopped:
        return
    if not text.startswith(_LOSSES[0]):
        try:
            text = base64.b64decode(text, validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            return
    replace_file(training.folder / "api-results.csv", text)
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row.get("step", "").isdigit()]
    steps = max((int(row["step"]) for row in rows), default=0)
    if not steps:
        return
    curve = Curve(training.folder, None)
    epochs = training.epochs_of(replies=True)
    for row in rows:
        losses = [float(row[name]) if row.get(name) else None for name in _LOSSES[1:]]
        step = int(row["step"])
        curve.add(LearningPoint(step, epochs * step / steps, 0, losses[0], losses[1], 0.0, 0.0))


def _read(training: Training) -> dict[str, Any]:
    try:
        return dict(json.loads((training.folder / JOB_FILE).read_text("utf-8")))
    except FileNotFoundError:
        return {}


def _write(training: Training, job: Mapping[str, Any]) -> None:
    replace_file(training.folder / JOB_FILE, json.dumps(job, ensure_ascii=False, indent=1))


def _outcome(training: Training, job: Mapping[str, Any], state: str, record: Mapping[str, Any]) -> Outcome:
    of_job = {name: job.get(name) for name in ("most_usd", "cost_usd", "job_id")}
    tokens = int(record.get("trained_tokens") or 0)
    return Outcome.of(training, state, tokens=tokens, model_name=record.get("model_name"), **of_job)


TRAINING_FILE, VALIDATION_FILE, JOB_FILE = "api-training.jsonl", "api-validation.jsonl", "api-job.json"
FEWEST_EXAMPLES = 10
MOST_TOKENS = 65_536
"""Of one example: what the models that can be trained read at most in training."""
MOST_BYTES = 512 * 10**6
ROLES = ("system", "user", "assistant")
MESSAGE_TOKENS = 16
"""Most tokens that a chat's form puts around a message."""
MOST_SUFFIX = 64


@dataclass(frozen=True)
class JobFiles:
    """The files of a job."""

    training: Path
    validation: Path | None
    examples: int
    held_out: int
    most_tokens: int  # the most tokens that an epoch can have: a tokenizer makes at most one of a byte
    sha256: str  # of the training file


def write_job_files(training: Training, records: Records) -> JobFiles:
    """Write the files that a provider trains on; what is there already is written again the same."""
    if not records.replies:
        raise UserError(
            f"{training.place}: {training.on} is running text, and {training.model.use} is trained on prompts with replies",
            mend="Give prompts with replies, or name a local model (hf:…) for running text.",
        )
    trained, apart = parted(records.number, training.validation, training.seed)
    held_out = set(apart.tolist()) if min(len(trained), len(apart)) >= FEWEST_EXAMPLES else set()
    parts: dict[bool, list[dict[str, Any]]] = {False: [], True: []}
    for place, record in enumerate(records):
        messages = [{"role": turn.role, "content": turn.content} for turn in messages_of(record)]
        messages.append({"role": "assistant", "content": record["reply"]})
        parts[place in held_out].append({"messages": messages})
    paths = {False: training.folder / TRAINING_FILE, True: training.folder / VALIDATION_FILE}
    for is_held_out, chats in parts.items():
        if chats:
            lines = [json.dumps(chat, ensure_ascii=False, separators=(",", ":")) for chat in chats]
            check_chats(lines, paths[is_held_out])
            replace_file(paths[is_held_out], "\n".join(lines) + "\n")
    return JobFiles(
        paths[False],
        paths[True] if parts[True] else None,
        len(parts[False]),
        len(parts[True]),
        sum(most_tokens(chat) for chat in parts[False]),
        file_sha256(paths[False]),
    )


def job_of(training: Training, files: JobFiles) -> dict[str, Any]:
    """Return what a job is made with, but for the names that uploaded files get."""
    epochs = {"hyperparameters": {"n_epochs": training.epochs_of(replies=True)}}
    return {
        "model": training.model.name,
        "training_file": files.training.name,
        **({"validation_file": files.validation.name} if files.validation else {}),
        "seed": training.seed % 2**31,
        "suffix": training.name[:MOST_SUFFIX],
        "method": {"type": "supervised", "supervised": epochs},
    }


def most_tokens(chat: Mapping[str, Any]) -> int:
    """Return the most tokens that a chat can have."""
    return sum(len(message["content"].encode("utf-8")) + MESSAGE_TOKENS for message in chat["messages"])


def check_chats(lines: Iterable[str], file: Path) -> None:
    """Hold a file of chats against the rules of the format."""
    number = size = 0
    for number, line in enumerate(lines, 1):
        size += len(line.encode("utf-8")) + 1
        fault = _fault(line)
        if fault is not None:
            raise UserError(
                f"{file.name}, line {number}: {fault}",
                mend='A line is {"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}.',
            )
    if number < FEWEST_EXAMPLES:
        raise UserError(
            f"{file.name} has {number} examples, and a provider trains on {FEWEST_EXAMPLES} or more",
            mend="Give more prompts with replies.",
        )
    if size > MOST_BYTES:
        raise UserError(
            f"{file.name} has {size / 1e6:,.0f} MB, and a file of a job holds {MOST_BYTES / 1e6:,.0f} MB at most",
            mend="Train on fewer records (texts: N).",
        )


def _fault(line: str) -> str | None:
    """Describe which rule a line breaks; None where it keeps all."""
    try:
        chat = json.loads(line)
    except ValueError as fault:
        return f"no JSON ({fault})"
    messages = chat.get("messages") if isinstance(chat, dict) else None
    if not isinstance(messages, list) or not messages:
        return "it has no messages"
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            role = message.get("role") if isinstance(message, dict) else message
            return f"the role {role!r} is none of {', '.join(ROLES)}"
        if not isinstance(message.get("content"), str) or not message["content"]:
            return f"a message of the {message['role']} is empty"
    if messages[-1]["role"] != "assistant":
        return (
            f"its last message is the {messages[-1]['role']}'s, and what is learnt is the assistant's reply"
        )
    if all(message["role"] != "user" for message in messages):
        return "nothing is asked: it has no message of the user"
    tokens = most_tokens(chat)
    if tokens > MOST_TOKENS * 4:
        return f"it has about {tokens // 4:,} tokens, and an example may have {MOST_TOKENS:,}"
    return None
