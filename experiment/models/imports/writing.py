"""Store the sessions of an import, as the study's procedure would have shown them: all in one transaction, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from experiment.custody.freezing import refuse_if_changed
from experiment.custody.origin import note_design, require_current_items
from experiment.lists import blocks_showing
from experiment.models.imports.given import SHOWN, Given, GivenSession, GivenSource, Imported, Unread
from experiment.models.imports.items import Items, written
from experiment.models.planning import canonical_hash
from experiment.models.runs.limits import Stop, interruptible
from experiment.procedure import Plan, PlannedTrial, trials_of
from experiment.procedure.plan import as_plan
from experiment.procedure.unfolding import Screen, Unfolding
from experiment.scoring.published import parser_of
from experiment.scoring.scores import Score
from experiment.scoring.trial import score_trial
from experiment.store import Store, chain, records
from experiment.store.tables import sessions
from experiment.store.tables import trials as stored_trials
from experiment.study import Study
from experiment.version import installed_version
from stimuli.errors import UserError
from stimuli.item import Item

TOKENS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True)
class Import:
    """All that is to be stored, read and checked."""

    items: Items  # the study with its items
    sources: Sequence[GivenSource]
    kind: str  # ``human`` or ``model``
    parser: str | None = None  # a paper's parser; None is the study's own


def write_import(given: Import, store: Store, *, actor: str, new_version: bool = False) -> list[Imported]:
    """Store sessions with their trials, scores and (for models) calls, and the items where they were made for them.

    Whatever fails, nothing of it is left: the store takes all in one transaction, and the items go again.

    ``actor``: who imports, for the audit log.
    What became of each source.
    """
    items, study = given.items, given.items.study
    if items.content is None:
        require_current_items(study, store)
    refuse_if_changed(study, items=items.sha256)
    parser = given.parser or parser_of(study)
    stop = Stop()

    def write(connection: Connection) -> list[Imported]:
        version = note_design(connection, study, new_version=new_version)
        found = []
        for source in given.sources:
            made = Imported(source.name, source.sha256, remarks=list(source.remarks))
            writing = _Writing(study, connection, made, source, given.kind, version, parser)
            for one in source.sessions:
                if stop.is_asked:
                    raise _Stopped
                with chain.gathering(connection):
                    writing.session(one)
            detail = {name: getattr(made, name) for name in _TOLD}
            records.add_audit(connection, actor, "imported responses", study=study.id, detail=detail)
            found.append(made)
        return found

    # a signal that raised in here could fall between the hand-over to the writer and its future: the sessions would come
    # without their items
    try:
        with interruptible(stop), written(items):
            future = store.write(write)
            try:
                return future.result()
            except KeyboardInterrupt:  # asked twice
                if future.exception() is None:
                    return future.result()
                raise
    except _Stopped:
        raise KeyboardInterrupt from None


_TOLD = ("source", "sha256", "sessions", "trials", "same", "statuses", "predictions", "agreeing")


class _Stopped(Exception):
    """The import was interrupted."""


class _Writing:
    """The writes of one source inside a transaction."""

    def __init__(
        self, study: Study, connection: Connection, made: Imported, source: GivenSource, kind: str, version: int,
        parser: str | None,
    ) -> None:  # fmt: skip
        self.study, self.connection, self.made, self.source = study, connection, made, source
        self.kind, self.version, self.parser = kind, version, parser
        self.plugin = f"wrods {installed_version()} import"

    def session(self, one: GivenSession) -> None:
        items = [response.item for response in one.responses]
        plan, places = plan_of_items(
            self.study, items, list_id=one.list_id, version=self.version, condition=one.condition,
            prompt_variant=one.prompt_variant,
        )  # fmt: skip
        trials = {trial["trial_index"]: trial for trial in trials_of(plan)}
        rows = [(trials[index], response) for index, response in zip(places, one.responses, strict=True)]
        given = [self.study.id, self.version, "imported", self.kind, one.reader, one.key]
        name = canonical_hash(given)[:32]
        is_new = self._begin(name, plan, one)
        there = {} if is_new else self._there(name)
        seen: set[int] = set()
        for trial, response in rows:
            # items of a study are one object each
            if id(response.item) in seen:
                self.made.repeated += 1
                self.made.first_repeated = (
                    self.made.first_repeated or f"{response.item.item_id!r}, {response.where}"
                )
            seen.add(id(response.item))
            timed_out = self.kind == "human" and response.response is None
            verdict = score_trial(trial, response.response, parser=self.parser, timed_out=timed_out)
            self._count(trial, response, verdict)
            self._trial(name, one, trial, response, verdict, timed_out, there)
        if is_new:
            records.finish_session(self.connection, name)
            self.made.sessions += 1

    def _begin(self, name: str, plan: Plan, one: GivenSession) -> bool:
        query = select(sessions.c.planned_trials).where(sessions.c.session_id == name)
        planned = self.connection.scalar(query)
        if planned is not None and planned < len(one.responses):
            raise UserError(
                f"{one.responses[0].where}: {one.reader} is stored with {planned} trials, and {self.source.name} has "
                f"{len(one.responses)}",
                mend="A session is imported once; give the readers of another table other names, or tell several sessions "
                "of a reader apart by `session`.",
                exit_code=1,
            )
        if planned is not None:
            return False
        records.create_session(
            self.connection, plan, reader_kind=self.kind, reader=one.reader, session_id=name,
            client=dict(self.source.about), participant_id=one.reader if self.kind == "human" else None,
        )  # fmt: skip
        return True

    def _there(self, name: str) -> dict[int, str]:
        query = select(stored_trials.c.trial_index, stored_trials.c.payload_hash)
        found = self.connection.execute(query.where(stored_trials.c.session_id == name))
        return {row.trial_index: row.payload_hash for row in found}

    def _trial(
        self, name: str, one: GivenSession, trial: PlannedTrial, response: Given, verdict: Score, timed_out: bool,
        there: Mapping[int, str],
    ) -> None:  # fmt: skip
        place = {"session_id": name, "trial_index": trial["trial_index"], "attempt": 1}
        row = {
            **records.planned_columns(trial), **place, **response.more, "response_raw": response.response,
            "rt": response.rt, "timed_out": timed_out,
        }  # fmt: skip
        digest = records.payload_hash(row)
        stored = there.get(trial["trial_index"])
        if stored is not None and stored != digest:
            raise UserError(
                f"{response.where}: {one.reader} is stored with another answer to item {trial['item_id']}",
                mend="A session is imported once; give the readers of another table other names.",
                exit_code=1,
            )
        if stored is not None:
            self.made.same += 1
            return
        told = row | {"plugin_version": self.plugin, "payload_hash": digest}
        records.store_trial(self.connection, told, verdict=verdict)
        if self.kind == "model":
            _store_call(self.connection, place, response, name)
        self.made.trials += 1

    def _count(self, trial: PlannedTrial, response: Given, verdict: Score) -> None:
        made, step = self.made, trial["steps"][-1]
        status = verdict.response_status
        made.statuses[status] = made.statuses.get(status, 0) + 1
        if self.kind == "human" and status not in ("valid", "timeout"):
            labels = tuple(map(str, step.get("responses", ())))
            unread = made.unread.setdefault(str(response.response), Unread(0, response.where, labels))
            unread.count += 1
        if response.prediction is None:
            return
        read = verdict.response or ""
        letters = {
            str(name): label
            for label, name in zip(step.get("labels", ()), step.get("responses", ()), strict=False)
        }
        made.predictions += 1
        if response.prediction in (read, letters.get(read)):
            made.agreeing += 1
        elif len(made.differing) < SHOWN:
            made.differing.append(f"{response.where}: stored {response.prediction!r}, read {read!r}")


def _store_call(connection: Connection, place: Mapping[str, Any], response: Given, name: str) -> None:
    asked = None if response.prompt is None else {"messages": [{"role": "user", "content": response.prompt}]}
    records.store_call(
        connection,
        {
            **place, "request_key": canonical_hash([name, place["trial_index"], asked]), "request": asked,
            "text": response.response, "status": "answered" if response.response else "empty",
            **{key: response.more.get(key) for key in TOKENS},
        },
    )  # fmt: skip


class _AsGiven(Unfolding):
    """A procedure whose blocks show given items in their order; nothing is drawn, and practice is left out."""

    def __init__(
        self, study: Study, items: Sequence[Item], *, list_id: int, condition: Mapping[str, str]
    ) -> None:
        super().__init__(
            study, study.items, list_id=1, session_key=None, order_row=0, label_map=0,
            between={"condition": dict(condition), "exemplars": None},
        )  # fmt: skip
        self.list_id = list_id
        self.places: dict[int, int] = {}
        self._of_block: dict[int, list[tuple[int, Item]]] = {}
        for row, item in enumerate(items):
            number = blocks_showing(study, item.set_name)[0]
            self._of_block.setdefault(number, []).append((row, item))

    def given_screens(self) -> list[Screen]:
        """Return instructions and blocks."""
        found: list[Screen] = []
        number = 0
        for screen in self.study.get("procedure"):
            kind, value = next(iter(screen.items()))
            if kind == "instructions":
                found.append(self._instructions(value))
            elif kind == "block":
                number += 1
                if number - 1 in self._of_block:
                    found.append(self._given_block(value, number))
        return found

    def _given_block(self, settings: Mapping[str, object], number: int) -> Screen:
        name = f"block-{number}"
        trials: list[PlannedTrial] = []
        for row, item in self._of_block[number - 1]:
            self.places[row] = self.next_index
            trials.append(self._trial(item, name, settings))
        return {
            "kind": "block", "block": name, "name": settings.get("name"), "break_every": None, "break_minimum_ms": 0,
            "feedback": None, "trials": trials,
        }  # fmt: skip


def plan_of_items(
    study: Study,
    items: Sequence[Item],
    *,
    list_id: int,
    version: int,
    condition: Mapping[str, str] | None = None,
    prompt_variant: int = 1,
) -> tuple[Plan, list[int]]:
    """Return the plan of a session that shows given items, and the trial index of each of them.

    ``items``: in the order in which they were shown; those of one block stay together.
    ``condition``: levels that hold for the whole session.
    ``prompt_variant``: which wording the reader was asked in.
    """
    unfolding = _AsGiven(study, items, list_id=list_id, condition=condition or {})
    screens = unfolding.given_screens()
    plan = as_plan(unfolding, screens, version=version, prompt_variant=prompt_variant)
    return plan, [unfolding.places[row] for row in range(len(items))]
