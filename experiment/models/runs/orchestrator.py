"""Orchestration of one run: probe servers, open models, compare plan and store, refuse changed settings, run models in parallel.

A session's name depends on all of its texts and on the model. If the plan has a different session in the place of a stored one,
the stored answers belong to another experiment: the run stops and reports what differs and how many trials are affected.
"""

from __future__ import annotations

import gc
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from experiment.completions import asks_for_completions, given_completions
from experiment.integrity.build_provenance import note_design, require_current_items
from experiment.integrity.freezing import refuse_if_changed
from experiment.models.api.prices import price_of
from experiment.models.api.probe import Capabilities
from experiment.models.api.retrying import RunStopped
from experiment.models.costs import parse_usd
from experiment.models.engine import Engine, ModelSettings
from experiment.models.engines import open_engine
from experiment.models.journal import (
    CommandLimit,
    Journal,
    JournaledRun,
    ModelCalls,
    SpendingLimits,
    warn_of_missing_runs,
)
from experiment.models.leases import leased
from experiment.models.planning.plans import People, needs_people, plan_sessions
from experiment.models.planning.session import ModelSession
from experiment.models.runs import environment
from experiment.models.runs.limits import CommandLimits, Deadline, Gate, Stop, interruptible
from experiment.models.runs.model_worker import Batches, ModelWorker, PlannedModel
from experiment.models.runs.recording import Answerer, Recording, ServedModel, names_stored
from experiment.models.runs.remaining_work import Survey, ask_again, reasons_of, survey
from experiment.models.runs.status import (
    SHOWN_ERRORS,
    RunOutcome,
    RunStatus,
    RunStatusTable,
    Speed,
    describe_blocks,
    describe_endpoint,
    describe_parity,
    new_run_id,
)
from experiment.procedure import Plan, trials_of
from experiment.store import Store, records
from experiment.store.records import EXCLUDED, RESTORED, excluded_sessions, exclusions
from experiment.store.tables import flags, sessions, trials, versions
from experiment.study import Study
from stimuli.audit.findings import counted
from stimuli.errors import UserError

Place = tuple[int | None, int | None, int | None, str | None]
"""List, prompt variant, replicate, and the followed session."""
SHOWN = 12
REASON = "superseded by sessions under other settings"
BY = "wrods run"
BESIDE = "beside"
"""Flag of sessions that stay in the tables together with sessions under other settings."""

LOOK_S = 0.5
"""Interval between checks of the limits and updates of the display."""


@dataclass
class ReplacedSessions:
    """Stored sessions whose places in the plan now have other sessions."""

    session_ids: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)  # place of each of them
    trials: int = 0  # their stored trials
    lines: list[str] = field(default_factory=list)  # what differs, such as `model.revision: "a" → "b"`
    others: int = 0  # other stored sessions that are no longer planned, in places that the plan lacks


def changed_sessions(
    store: Store,
    whose: tuple[str, int, str],
    surveyed: Survey,
    about: Mapping[str, Any],
    planned: Sequence[ModelSession],
) -> ReplacedSessions:
    """Compare the stored sessions of a study, version and reader with the plan; ``about`` describes the model in planned ones."""
    study, version, reader = whose
    changed = ReplacedSessions()
    current_ids = set(surveyed.places.values())
    columns = (
        sessions.c.session_id, sessions.c.list_id, sessions.c.prompt_variant, sessions.c.replicate, sessions.c.yoked_to,
        sessions.c.client,
    )  # fmt: skip
    query = (
        select(*columns, func.count(trials.c.trial_index).label("n"))
        .join(trials, trials.c.session_id == sessions.c.session_id, isouter=True)
        .where(sessions.c.study == study, sessions.c.version == version, sessions.c.reader == reader)
        .where(sessions.c.session_id.not_in(excluded_sessions()))
        .where(sessions.c.session_id.not_in(select(flags.c.session_id).where(flags.c.kind == BESIDE)))
        .group_by(sessions.c.session_id)
    )
    first: tuple[str, dict[str, Any], Place] | None = None
    with store.read() as connection:
        for row in connection.execute(query):
            client = dict(row.client or {})
            if row.session_id in current_ids or "imported" in client:
                continue
            if bool(client.get("timed")) != bool(about.get("timed")):
                continue  # timed sessions are stored in addition to the others
            place = (row.list_id, row.prompt_variant, row.replicate, row.yoked_to)
            if place not in surveyed.places:
                changed.others += 1
                continue
            changed.session_ids.append(row.session_id)
            changed.places.append(place)
            changed.trials += int(row.n)
            first = first or (row.session_id, client, place)
        if first is not None:
            session_id, client, place = first
            names = ("model", "settings")
            before = _leaves({name: client.get(name) for name in names}) if client else {}
            after = _leaves({name: about.get(name) for name in names}) if client else {}
            changed.lines = [
                f"{path}: {before.get(path, 'not there')} → {after.get(path, 'not there')}"
                for path in dict.fromkeys((*before, *after))
                if before.get(path) != after.get(path)
            ]
            if not changed.lines:
                plan = connection.scalar(select(sessions.c.plan).where(sessions.c.session_id == session_id))
                new_id = surveyed.places[place]
                now = next((session for session in planned if session.session_id == new_id), None)
                changed.lines = _different_trials(plan, now)
    return changed


def refuse(reader: str, changed: ReplacedSessions) -> UserError:
    """Return the error for a run whose stored sessions have other settings."""
    more = [f"… and {len(changed.lines) - SHOWN} more"] if len(changed.lines) > SHOWN else []
    lines = "".join(f"\n    {line}" for line in (*changed.lines[:SHOWN], *more))
    return UserError(
        f"{reader} has changed: {len(changed.session_ids)} stored sessions with {changed.trials} trials used other settings "
        f"and would be run again. What changed:{lines}",
        mend="Undo the change; or give the model another name in the study; or choose with --if-changed what happens to "
        "the earlier sessions: set_aside (flagged as excluded, with the reason) or keep_both (both are in the tables, "
        "told apart by session and run).",
        exit_code=1,
    )


def settle(
    store: Store,
    whose: tuple[str, str],
    changed: ReplacedSessions,
    planned: Mapping[Place, str],
    if_changed: str,
) -> list[str]:
    """Set aside or restore a changed model's sessions (``whose``: study and reader) in one transaction; return what was done.

    Sessions that an earlier change had set aside are restored where that change is undone.
    """
    study, reader = whose
    with store.read() as connection:
        marks = exclusions(connection, study)
    names = set(planned.values())
    back = {
        name for (name, trial, _), why in marks.items() if trial is None and why == REASON and name in names
    }
    is_taken_back = all(planned.get(place) in back for place in changed.places)
    if changed.session_ids and if_changed == "stop" and not is_taken_back:
        raise refuse(reader, changed)
    kind, reason = (
        (BESIDE, "kept together with sessions under other settings")
        if if_changed == "keep_both"
        else (EXCLUDED, REASON)
    )

    def flag(connection: Connection) -> None:
        for session_id in sorted(back):
            records.add_flag(connection, session_id, RESTORED, "planned again", BY)
        for session_id in changed.session_ids:
            records.add_flag(connection, session_id, kind, reason, BY)

    done = []
    if back:
        done.append(f"{counted(len(back), 'session')} made before the change that was taken back count again")
    if changed.session_ids and kind == EXCLUDED:
        done.append(f"{counted(len(changed.session_ids), 'session')} under other settings are set aside")
    if back or changed.session_ids:
        store.write(flag).result()
    return done


def _different_trials(plan: Plan | None, now: ModelSession | None) -> list[str]:
    """Return lines on the differences between a stored session's trials and those planned in its place."""
    if now is None or not plan:
        return ["what the sessions say"]
    old, new = trials_of(plan), trials_of(now.plan)
    lines = []
    if len(old) != len(new):
        lines.append(f"trials a session: {len(old)} → {len(new)}")
    if [trial["item_id"] for trial in old] != [trial["item_id"] for trial in new]:
        lines.append("which items a session shows, or their order")
    for name in ("shown", "answer", "exemplars", "steps"):
        count = sum(a.get(name) != b.get(name) for a, b in zip(old, new, strict=False))
        if count:
            lines.append(f"{name} of {count} trials")
    return lines or ["the wording of the prompts (this version of wrods words them otherwise)"]


def _leaves(value: object, path: str = "") -> dict[str, str]:
    if isinstance(value, Mapping) and value:
        return {
            key: leaf
            for name, part in value.items()
            for key, leaf in _leaves(part, f"{path}.{name}" if path else str(name)).items()
        }
    return {path: json.dumps(value, ensure_ascii=False)}


def settings_of(study: Study, given: Mapping[str, Any]) -> ModelSettings:
    """Return a model's settings (``use`` and others), with those that the study sets for all models."""
    determinism = study.get("models", "determinism")
    if determinism is not None and str(given["use"]).startswith("hf:"):
        given = {"determinism": determinism, **given}
    return ModelSettings.of(given, study.folder)


def sessions_of(
    study: Study, reader: str, settings: ModelSettings, engine: Engine, store: Store | None, version: int
) -> Callable[[], Iterable[ModelSession]]:
    """Return a function that yields a model's sessions in a study, from the first each time."""
    identity = dict(identity_of(engine, settings))
    people = People(store, study.id, version) if store is not None and needs_people(study) else None
    completions = {}
    if store is not None and settings.kind == "hf" and asks_for_completions(study):
        with store.read() as connection:
            completions = given_completions(connection, study)
    return lambda: plan_sessions(
        study, reader, settings, identity, version=version, people=people, completions=completions
    )


def identity_of(engine: Engine, settings: ModelSettings) -> dict[str, object]:
    """Return the identity that a model's session names hash besides the study; timed sessions are separate."""
    identity = engine.describe()["identity"]
    assert isinstance(identity, Mapping)
    return {**identity, "timed": True} if settings.options.get("timing") else dict(identity)


def budget_of(study: Study) -> float | None:
    """Return the total budget of a study in US dollars; None if it sets none."""
    given = study.get("models", "budget")
    return None if given is None else parse_usd(given, str(study.place("models", "budget")))


@dataclass
class ModelRun:
    """One model of a run: its worker, outcome and status."""

    worker: ModelWorker
    outcome: RunOutcome
    recording: Recording
    batches: Batches
    status: RunStatus
    speed: Speed = field(default_factory=Speed)
    fault: BaseException | None = None
    is_checked: bool = False

    @property
    def engine(self) -> Any:
        """The current engine."""
        return self.worker.engine

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine."""
        return self.worker.settings.kind == "hf"

    @property
    def is_timed(self) -> bool:
        """Whether times are measured, so that nothing runs in parallel."""
        return bool(self.worker.settings.options.get("timing"))

    @property
    def to_ask(self) -> int:
        """Number of trials that can be sent."""
        return self.worker.found.to_ask

    def status_now(self) -> RunStatus:
        """Return the current status."""
        status, outcome, worker = self.status, self.outcome, self.worker
        copied_names = (
            "planned", "stored_before", "answered", "failed", "given_up", "cached", "cost_usd", "error_kinds", "tokens",
            "response_statuses", "stopped",
        )  # fmt: skip
        for name in copied_names:
            setattr(status, name, getattr(outcome, name))
        if worker.waits and not outcome.answered:
            self.speed = (
                Speed()
            )  # the time that a model waits for others before it begins does not count for its speed
        status.per_second = self.speed.of(outcome.answered)
        status.seconds_left = outcome.left / status.per_second if status.per_second else None
        engine_status = self.engine.status() if callable(getattr(self.engine, "status", None)) else None
        status.engine = None if engine_status is None else str(engine_status)
        status.waits = (
            self.recording.waits_for
            or worker.calls.waits_for
            or getattr(engine_status, "why", None)
            or worker.waits
        )
        return status

    def count_questions(self) -> None:
        """Add the cost of the engine's probes since the last call."""
        self.outcome.cost_usd += getattr(self.engine, "of_no_trial_usd", 0.0)
        if hasattr(self.engine, "of_no_trial_usd"):
            self.engine.of_no_trial_usd = 0.0

    def summary(self) -> dict[str, Any]:
        """Return the final entry of the run's record."""
        copied_names = (
            "answered", "left", "error_kinds", "response_statuses", "given_up", "ended", "first_tokens", "statuses", "tokens",
            "cost_usd", "cached", "lost_usd", "unanswered_usd", "blocks", "interrupted", "stopped", "engine",
        )  # fmt: skip
        outcome = self.outcome
        return {name: getattr(outcome, name) for name in copied_names} | {
            "errors": outcome.failed, "too_long": outcome.too_long[:SHOWN_ERRORS]
        }  # fmt: skip


@dataclass
class RunOptions:
    """Options of one command that runs a study's models."""

    version: int = 1  # the study's version in the store
    limits: CommandLimits = field(default_factory=CommandLimits)
    # the store's address, for the lease of each model; without it there is none
    lease_at: Path | str | None = None
    # treatment of sessions of a changed model: `stop`, `set_aside` or `keep_both`
    if_changed: str = "stop"
    is_batch: bool = False  # missing requests are submitted as batches
    cancels: bool = False  # pending batches are cancelled, and nothing is sent
    asks_again: bool = False  # prompts that were too long are sent again
    opener: Callable[[ModelSettings], Engine] = open_engine
    # called with the status of all models twice a second, and with messages
    draw: Callable[[Sequence[RunStatus]], None] = lambda figures: None
    say: Callable[[str], None] = lambda line: None


class CommandRun:
    """One command's run of some models of a study."""

    def __init__(self, study: Study, store: Store, options: RunOptions) -> None:
        self.study, self.store, self.options = study, store, options
        self.limits = options.limits
        self.budget = budget_of(study)
        self.stop = Stop()
        self.faults: dict[str, UserError] = {}
        self._say = options.say
        self._spending = SpendingLimits(
            self.budget, None if self.limits.cost is None else CommandLimit(self.limits.cost)
        )
        self._journal: Journal | None = None
        self._clock = Deadline(self.limits.minutes)
        self._table = RunStatusTable(store, study.id, options.version)
        self._gate = Gate(())
        self._runs: list[ModelRun] = []

    def run(self, models: Mapping[str, Mapping[str, Any]]) -> list[RunOutcome]:
        """Run models (name → settings with ``use``) and return their outcomes; ``faults`` has those that could not start."""
        self._clock = Deadline(self.limits.minutes)
        with ExitStack() as stack:
            for name, given in models.items():
                try:
                    self._runs.append(self._prepare(stack, name, given))
                except UserError as fault:
                    self.faults[name] = fault
            with interruptible(self.stop):
                unfinished = [run for run in self._runs if run.worker.found.left or run.outcome.answered]
                ready_runs = self._begin(unfinished)
                if self.options.is_batch and not self.options.cancels:
                    self._hand_over(ready_runs)
                elif ready_runs and not self.options.cancels and not self.stop.is_asked:
                    self._work(ready_runs)
            for run in self._runs:
                self._end(run)
        return [run.outcome for run in self._runs]

    # before

    def _prepare(self, stack: ExitStack, reader: str, given: Mapping[str, Any]) -> ModelRun:
        study, store, options = self.study, self.store, self.options
        if options.lease_at is not None:
            stack.enter_context(leased(options.lease_at, study.id, reader, lost=self.stop.ask))
        settings = settings_of(study, given)
        price = price_of(settings)
        engine = options.opener(settings)
        stack.callback(engine.close)
        plan = sessions_of(study, reader, settings, engine, store, options.version)
        run_id = new_run_id()
        journaled = (
            self._journaled(stack, run_id, reader) if settings.kind == "openai" or not price.is_free else None
        )
        batches = Batches(settings, store, price, self._journal, (study.id, reader, run_id), self._say)
        batches.look(cancels=options.cancels)
        if options.asks_again:
            store.write(lambda connection: ask_again(connection, study.id, reader)).result()
        surveyed = survey(plan(), store)
        if not surveyed.planned:
            raise UserError(
                "no trial of this study asks for an answer",
                mend="Give the block a choose, recover or answer step.",
            )
        outcome = RunOutcome(
            reader, settings.use, run_id, surveyed.sessions, surveyed.planned, surveyed.stored
        )
        outcome.given_up = surveyed.given_up
        outcome.too_long = [
            fault for trial_faults in surveyed.never.values() for fault in trial_faults.values()
        ]
        if surveyed.ended:
            with store.read() as connection:
                outcome.ended = reasons_of(connection, surveyed.ended)
        is_timed = bool(settings.options.get("timing"))
        answerer = Answerer(
            "baseline" if settings.kind == "baseline" else "model",
            identity_of(engine, settings),
            {"timed": True} if is_timed else {},
        )
        first = list(islice(plan(), 64))
        outcome.other_sessions = self._settle_changes(reader, surveyed, answerer, first)
        outcome.lost_usd = 0.0 if journaled is None else journaled.lost_usd
        states = self._state_writer(run_id, first[0], surveyed.left)
        recording = Recording(store, outcome, answerer, self.stop, states)
        stack.callback(recording.close)
        calls = ModelCalls(price, self._spending, journaled, lambda: self.stop.is_asked)
        stack.callback(calls.end)
        # timed sessions are separate from those in batches
        refuses = options.if_changed == "stop" and not options.cancels
        if not is_timed and batches.take(plan, surveyed, recording, refuses=refuses):
            surveyed = survey(plan(), store)
        model = PlannedModel(reader, settings, engine, plan, surveyed, price)
        worker = ModelWorker(
            model, recording, calls, self.stop, most_trials=self.limits.trials, seed=study.seed
        )
        worker.served = self._served(reader, engine, recording)
        worker.out = set() if is_timed else batches.leave_out(plan, surveyed, recording)
        run = ModelRun(worker, outcome, recording, batches, RunStatus(reader))
        worker.computed = lambda: self._computed(run)
        recording.finish(surveyed.unfinished)
        return run

    def _journaled(self, stack: ExitStack, run_id: str, reader: str) -> JournaledRun:
        """Return a run in the study's journal, which is opened for the first."""
        if self._journal is None:
            self._journal = Journal(self.study.folder)
            stack.callback(self._journal.close)
            with self.store.read() as connection:
                self._spending = self._spending.without_spent_elsewhere(connection, self.study, self._journal)
                warn_of_missing_runs(connection, self.study, self._say)
        return JournaledRun.begin(self._journal, self.study.id, run_id, reader)

    def _state_writer(self, run_id: str, session: ModelSession, left: int) -> Any:
        """Return the writer of hidden states, if the study stores them; ``left`` is the most trials to come."""
        if not session.manner.states or not session.manner.is_local:
            return None
        from experiment.models.states import StateWriter

        script = session.script
        expected = round(left * script.state_rows / max(1, len(script.places)))
        return StateWriter(self.study.folder / "states" / run_id, expected=expected)

    def _served(self, reader: str, engine: Any, recording: Recording) -> ServedModel | None:
        """Return a check that a user's own server keeps reporting the same model."""
        server = getattr(engine, "server", None)
        if server is None or not server.is_own or self.options.if_changed == "keep_both":
            return None
        stored = partial(names_stored, study=self.study.id, reader=reader)
        return ServedModel(reader, server.base_url, lambda: recording.read(stored))

    def _settle_changes(
        self, reader: str, surveyed: Survey, answerer: Answerer, first: Sequence[ModelSession]
    ) -> int:
        """Stop, set aside or keep both if stored sessions have other settings; return the number of unplanned ones."""
        about = {"model": answerer.identity, "settings": first[0].manner.to_json(), **answerer.about}
        changed = changed_sessions(
            self.store, (self.study.id, self.options.version, reader), surveyed, about, first
        )
        if_changed = self.options.if_changed
        done = settle(self.store, (self.study.id, reader), changed, surveyed.places, if_changed)
        if done:
            self._say(f"{reader}: {', and '.join(done)}")
        return changed.others + (len(changed.session_ids) if if_changed == "keep_both" else 0)

    # capabilities of endpoints and costs of trials, before anything is sent

    def _begin(self, runs: Sequence[ModelRun]) -> list[ModelRun]:
        """Probe the models' servers, report and record the result; return the models that can be prompted."""
        probing = [
            run
            for run in runs
            if callable(getattr(run.engine, "probe", None))
            and run.worker.settings.options.get("probe", True)
            and run.to_ask
            and not self.options.cancels
        ]
        for run in probing:
            run.status.state = "probe"
        # probes cost money too: a run that is killed while probing must be recorded
        for run in runs:
            self._table.begin(run.outcome.run_id, run.status_now())
        if probing and not self.stop.is_asked:
            self._in_threads(probing, self._probe, leaves=True)
        for run in probing:
            run.status.state = "waits"
            if isinstance(run.fault, UserError):
                self.faults[run.outcome.reader] = run.fault
                self._runs.remove(run)
                run.outcome.stopped, run.status.state = str(run.fault), "failed"
                self._table.tell(run.outcome.run_id, run.status_now(), is_last=True)
            elif run.fault is not None:
                raise run.fault
        able = [run for run in runs if run in self._runs]
        for run in able:
            for line in describe_endpoint(run.outcome.reader, run.engine.describe().get("probe")):
                self._say(line)
            surveyed = run.worker.found
            self._note(
                run,
                "run",
                {"planned": surveyed.planned, "stored_before": surveyed.stored, **self._facts(run)},
            )
        return [run for run in able if run.to_ask]

    def _probe(self, run: ModelRun) -> None:
        """Probe a model's server; raise RunStopped if it is missing or lacks what these sessions need."""
        try:
            capabilities_found = run.engine.probe()
        finally:
            run.count_questions()
        if not isinstance(capabilities_found, Capabilities):
            return
        if run.worker.served is not None:
            run.worker.served.require(capabilities_found.resolved_model)
        is_forced = self.study.get("models", "context") == "teacher_forced"
        if is_forced and (gaps := capabilities_found.gaps(["likelihoods"])):
            raise RunStopped(
                gaps[0].removesuffix("."),
                mend="Name a model whose server reports them (vLLM with label_scoring: whole), or hf: on this machine.",
            )

    def _facts(self, run: ModelRun) -> dict[str, Any]:
        model = run.worker.model
        return {
            "wrods": environment.versions()["wrods"],
            "version": self.options.version,
            "design_hash": self.study.design_hash,
            "options": {name: value for name, value in model.settings.options.items() if name != "key_env"},
            "settings": next(iter(model.plan())).manner.to_json(),
            "engine": model.engine.describe(),
            "git": environment.git_state(self.study.folder),
            "versions": environment.versions(),
            "hardware": dict(environment.hardware()),
            "price": asdict(model.price),
            "budget_usd": self.budget,
            "limits": vars(self.limits),
        }

    def _computed(self, run: ModelRun) -> None:
        """Report and record the backend of a local model, once it was checked against plain passes."""
        parity = run.engine.describe().get("parity")
        if not run.is_checked and isinstance(parity, Mapping) and parity.get("path"):
            run.is_checked = True
            detail = {"parity": dict(parity)}
            run.recording.patiently(lambda: self._note(run, "run_checked", detail))
            for line in describe_parity(run.outcome.reader, parity):
                self._say(line)

    # the work

    def _hand_over(self, runs: Sequence[ModelRun]) -> None:
        """Submit the batches of each model, one after another."""
        for run in runs:
            order = {number: place for place, number in enumerate(sorted(run.worker.found.missing))}
            wanted = (request for _, request in run.worker.ready(order))
            dialect = getattr(run.engine, "dialect", None)
            try:
                run.outcome.handed_over, run.outcome.batches = run.batches.hand_over(
                    islice(wanted, self.limits.trials),
                    dialect,
                    budget=self._spending.budget,
                    limit=self.limits.cost,
                )
            except UserError as fault:
                run.fault = fault
            run.recording.unanswered.handed_over(run.batches.out())

    def _work(self, runs: Sequence[ModelRun]) -> None:
        rounds = sorted({number for run in runs for number, left in run.worker.found.missing.items() if left})
        order = {number: place for place, number in enumerate(rounds)}
        self._gate = Gate(run.outcome.reader for run in runs)
        local = [run for run in runs if run.is_local]
        turns = threading.Lock()
        stay_loaded = len(local) < 2 or (
            not any(hasattr(run.engine, "rest") for run in local)
            and environment.fit_together([run.worker.settings for run in local])
        )

        def work(run: ModelRun) -> None:
            run.status.state = "runs"
            run.worker.work(
                self._gate,
                order,
                turns if run.is_local or run.is_timed else None,
                (lambda: None) if stay_loaded or not run.is_local else lambda: self._make_room(run),
            )

        self._in_threads(runs, work)

    def _make_room(self, run: ModelRun) -> None:
        """Free the memory of a model's weights for the next one."""
        rest = getattr(run.engine, "rest", None)
        if callable(rest):
            rest()
            return
        engine = self.options.opener(run.worker.settings)
        run.engine.close()
        run.worker.replace_engine(engine)
        gc.collect()

    def _in_threads(
        self, runs: Sequence[ModelRun], work: Callable[[ModelRun], None], *, leaves: bool = False
    ) -> None:
        """Run each model in its own thread and check limits; with ``leaves``, failed models are not waited for."""

        def guarded(run: ModelRun) -> None:
            try:
                work(run)
            except BaseException as fault:
                run.fault = fault
            finally:
                self._gate.leave(run.outcome.reader)

        threads = [
            threading.Thread(target=guarded, args=(run,), name=f"wrods-{run.outcome.reader}", daemon=True)
            for run in runs
        ]
        for thread in threads:
            thread.start()
        has_ended = False
        while any(thread.is_alive() for thread in threads):
            for thread in threads:
                thread.join(LOOK_S / len(threads))
            if self._clock.is_over:
                self.stop.ask("the time of this command (--max-minutes) is over")
            if self.stop.is_asked and not has_ended:
                has_ended = True
                for run in runs:
                    run.engine.close()
                if leaves:
                    return
            figures = [run.status_now() for run in self._runs]
            for run, figure in zip(self._runs, figures, strict=True):
                if run in runs:
                    self._table.tell(run.outcome.run_id, figure)
            self.options.draw(figures)

    # after

    def _end(self, run: ModelRun) -> None:
        outcome, worker = run.outcome, run.worker
        run.count_questions()
        try:
            run.recording.settle(0)
        except UserError as fault:
            run.fault = run.fault or fault
        if isinstance(run.fault, Exception):
            outcome.stopped = str(run.fault)
        elif run.fault is not None:
            raise run.fault
        left = outcome.left - outcome.failed > 0 and outcome.left > 0
        if outcome.stopped is None and left:
            outcome.interrupted = self.stop.interrupted
            why = self.stop.reason or worker.full or ""
            # a requested end is not a fault
            if not outcome.interrupted and not why.endswith("(--max-trials)"):
                outcome.stopped = why or None
        outcome.blocks = describe_blocks(worker.found, outcome.left + outcome.given_up)
        worker.calls.end()
        outcome.unanswered_usd, outcome.dearest = worker.calls.unanswered_usd, worker.calls.dearest
        outcome.engine = worker.describe()
        run.status.state = (
            "failed" if run.fault is not None else "interrupted" if outcome.interrupted
            else "finished" if outcome.left <= 0 else "stopped"
        )  # fmt: skip
        if outcome.planned == outcome.stored_before and not outcome.answered and not outcome.failed:
            return
        run.recording.close()
        self._table.tell(outcome.run_id, run.status_now(), is_last=True)
        try:
            self._note(run, "run_ended", run.summary())
        except UserError as fault:
            outcome.stopped = outcome.stopped or str(fault)

    def _note(self, run: ModelRun, action: str, detail: Mapping[str, Any]) -> None:
        outcome = run.outcome
        details = {"run_id": outcome.run_id, "reader": outcome.reader, "use": outcome.use, **detail}
        self.store.write(
            lambda connection: records.add_audit(
                connection, "wrods run", action, study=self.study.id, detail=details
            )
        ).result()


def version_of(study: Study, store: Store, *, new_version: bool = False) -> int:
    """Record a study's design in the store and return its version."""
    require_current_items(study, store)
    refuse_if_changed(study)
    return store.write(lambda connection: note_design(connection, study, new_version=new_version)).result()


def latest_version(study: Study, store: Store | None) -> int:
    """Return a study's newest version in the store without recording anything; 1 if there is none."""
    if store is None:
        return 1
    query = select(func.max(versions.c.version)).where(versions.c.study == study.id)
    with store.read() as connection:
        return int(connection.scalar(query) or 1)


def run_model(
    study: Study,
    reader: str,
    settings: Mapping[str, Any],
    store: Store,
    *,
    version: int,
    progress: Callable[[int, int, Mapping[str, int]], None] | None = None,
    **given: Any,
) -> RunOutcome:
    """Prompt one model (``settings``: ``use`` and others) for everything that is planned and not stored.

    ``progress`` receives trials done and planned, and the number of replies by status; ``given`` are other fields of
    :class:`RunOptions`.
    """
    outcome: list[RunOutcome] = []

    def draw(figures: Any) -> None:
        for figure in figures:
            if progress is not None:
                progress(figure.done, figure.planned, outcome[0].statuses if outcome else {})

    run = CommandRun(study, store, RunOptions(version=version, draw=draw, **given))
    outcome += run.run({reader: settings})
    for fault in run.faults.values():
        raise fault
    if progress is not None:
        progress(outcome[0].planned - outcome[0].left, outcome[0].planned, outcome[0].statuses)
    return outcome[0]
