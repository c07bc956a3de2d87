"""A training at a provider: files uploaded, one job made, its end awaited; killed at any moment, nothing is made or paid twice.

A job carries a token of ours among its own data, written down before it is made; a command that died before it learnt the
job's name finds it again by that token. Money is booked before the job is made, at the most that it can cost.
"""

from __future__ import annotations

import base64
import binascii
import csv
import io
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection

from experiment.models.api.provider import Provider
from experiment.models.api.retrying import RunStopped
from experiment.models.money import spending, written
from experiment.models.money.purse import book
from experiment.models.runs import budget_of
from experiment.models.runs.limits import Clock, Stop
from experiment.models.servers import server_of
from experiment.store import Store
from experiment.store.database import lock_for_change
from experiment.study import Study
from experiment.tuning.api_job import JOB_FILE, JobFiles, job_of, write_job_files
from experiment.tuning.curve import Curve, Point
from experiment.tuning.outcome import Outcome
from experiment.tuning.record import FINISHED, opening_record, read_record, require_same, write_record
from experiment.tuning.records import built_again, make_records
from experiment.tuning.settings import Training
from stimuli.errors import UserError
from stimuli.files import replace_file

POLL_S = 30.0
ENDED = ("succeeded", "failed", "cancelled")
_LOSSES = ("step", "train_loss", "valid_loss")


@dataclass(frozen=True)
class Prepared:
    """A job that could be made.

    Attributes
    ----------
    files : JobFiles
    spec : mapping
        What it is made with.
    most_usd, likely_usd : float or None
        The most that it can cost, and about what it will; None where no price is known.
    """

    files: JobFiles
    spec: Mapping[str, Any]
    most_usd: float | None
    likely_usd: float | None


def prepare(study: Study, training: Training, *, say: Callable[[str], None] = lambda line: None) -> Prepared:
    """Write a job's files; nothing is sent.

    Raises
    ------
    UserError
        Settings have changed since a job was made, or records break the format.
    """
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
        return Prepared(files, spec, None, None)
    return Prepared(files, spec, tokens * price / 1e6, tokens * price / 4e6)


def finished(study: Study, training: Training) -> Outcome | None:
    """Return the outcome of a training that is finished already; None where it is not.

    Raises
    ------
    UserError
        Settings have changed since.
    """
    told = read_record(training.folder)
    if told.get("state") != FINISHED:
        return None
    require_same(training, told)
    found = _outcome(training, _read(training), FINISHED, told, was_finished=True)
    return replace(found, remark=built_again(study, training))


def is_submitted(training: Training) -> bool:
    """Say whether a job was made, or was about to be."""
    return "token" in _read(training)


def submit(
    study: Study, training: Training, prepared: Prepared, store: Store, *, max_cost: float | None = None
) -> str:
    """Upload the files and make the job, or find the one that was made; return its name.

    Raises
    ------
    UserError
        No price is known, or the study's budget or this command's limit does not hold it.
    RunStopped
        The provider refuses.
    """
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
                f"training {training.name} can cost up to {written(most)}, and --max-cost is {written(max_cost)}",
                mend="Raise --max-cost, or train for fewer epochs.",
            )
        token = job.setdefault("next_token", secrets.token_hex(16))
        _write(
            training, job
        )  # before money is booked under it: a command that dies in between books nothing twice
        _set_aside(study, training, store, token, most)
        job |= {
            "token": token,
            "most_usd": most,
            "sha256": prepared.files.sha256,
            "spec": dict(prepared.spec),
        }
        _write(training, job)
        write_record(training.folder, {**opening_record(study, training), "state": "handed over"})
    desk = _Desk(training)
    if job.get("job_id") is None and job.get("is_creating"):
        job["job_id"] = desk.found(job["token"])
    if job.get("job_id") is None:
        spec = dict(job["spec"])
        for key, file in (
            ("training_file", prepared.files.training),
            ("validation_file", prepared.files.validation),
        ):
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
    clock: Clock,
    tell: Callable[[str], None] = lambda line: None,
    poll_s: float = POLL_S,
) -> Outcome:
    """Wait for a job's end, at most until the command ends; note the trained model's name and what it cost.

    Raises
    ------
    UserError
        The job failed; says what the provider says.
    RunStopped
        The provider cannot be asked.
    """
    told = read_record(training.folder)
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
            return _outcome(training, job, status, told, stopped=why, interrupted=stop.interrupted)
        stop.wait(poll_s if clock.left is None else min(poll_s, clock.left + 0.01))
    tokens = seen.trained_tokens
    price = _price(training)
    cost = None if tokens is None or price is None else int(tokens) * price / 1e6
    if cost is not None:
        job["cost_usd"] = cost
        _book(study, training, store, job["token"], cost)
    _write(training, job)
    if status != "succeeded":
        error = getattr(seen, "error", None)
        words = getattr(error, "message", None) or "it says nothing more"
        counted = (
            ""
            if cost is not None
            else f"; {written(job['most_usd'])}, the most that it can have cost, stay counted"
        )
        raise UserError(
            f"the job of training {training.name} ({job['job_id']}) has {status}: {words}{counted}",
            mend=f"See the provider's page of the job; to make another, remove {training.folder / JOB_FILE}.",
            exit_code=1,
        )
    _keep_curve(training, desk, seen)
    told |= {
        "state": FINISHED,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "model_name": str(seen.fine_tuned_model),
        "job_id": job["job_id"],
        "trained_tokens": tokens,
        "cost_usd": cost,
        "training_sha256": job["sha256"],
    }
    write_record(training.folder, told)
    return _outcome(training, job, FINISHED, told)


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
    """Return US dollars for a million tokens: as the study says, nothing on a server of one's own, else unknown."""
    if training.price is not None:
        return training.price
    return 0.0 if server_of(training.model.options).is_own else None


def _set_aside(study: Study, training: Training, store: Store, token: str, most: float) -> None:
    """Book the most that a job can cost, where the study's budget holds it."""
    budget = budget_of(study)

    def write(connection: Connection) -> float | None:
        lock_for_change(connection)
        _booked(connection, study, training, token, 0.0)  # where a command died behind booking it
        left = None if budget is None else budget - spending(connection, study.id).total
        if left is None or most <= left:
            _booked(connection, study, training, token, most)
            return None
        return left

    left = store.write(write).result()
    if left is not None:
        raise UserError(
            f"training {training.name} can cost up to {written(most)}, and {written(max(0.0, left))} of the study's budget are left",
            mend="Raise models: budget in the study, or train for fewer epochs.",
            exit_code=1,
        )


def _book(study: Study, training: Training, store: Store, token: str, cost: float) -> None:
    store.write(lambda connection: _booked(connection, study, training, token, cost)).result()


def _booked(connection: Connection, study: Study, training: Training, token: str, cost: float) -> None:
    name = f"tuning-{token}"
    book(connection, name, cost, study=study.id, run_id=name[:24], reader=f"tuned:{training.name}")


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
        curve.add(Point(step, epochs * step / steps, 0, losses[0], losses[1], 0.0, 0.0))


def _read(training: Training) -> dict[str, Any]:
    try:
        return dict(json.loads((training.folder / JOB_FILE).read_text("utf-8")))
    except FileNotFoundError:
        return {}


def _write(training: Training, job: Mapping[str, Any]) -> None:
    replace_file(training.folder / JOB_FILE, json.dumps(job, ensure_ascii=False, indent=1))


def _outcome(
    training: Training,
    job: Mapping[str, Any],
    state: str,
    told: Mapping[str, Any],
    *,
    was_finished: bool = False,
    stopped: str | None = None,
    interrupted: bool = False,
) -> Outcome:
    return Outcome(
        training.name,
        training.base,
        f"tuned:{training.name}",
        state,
        was_finished=was_finished,
        tokens=int(told.get("trained_tokens") or 0),
        stopped=stopped,
        interrupted=interrupted,
        folder=str(training.folder),
        most_usd=job.get("most_usd"),
        cost_usd=job.get("cost_usd"),
        job_id=job.get("job_id"),
        model_name=told.get("model_name"),
    )
