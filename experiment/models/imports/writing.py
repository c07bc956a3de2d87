"""Store the sessions of an import as if the study's procedure had run them, in one transaction."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, func, select

from experiment.integrity.build_provenance import IMPORTED, note_design, require_current_items
from experiment.integrity.freezing import refuse_if_changed
from experiment.lists import SessionPlace, blocks_showing
from experiment.models.imports.fixations import Fixation, region_rows
from experiment.models.planning.session import canonical_hash, words_of
from experiment.models.runs.limits import Stop, interruptible
from experiment.procedure import Plan, PlannedTrial
from experiment.procedure.plan_builder import STEP_NAME, PlanBuilder, Screen, as_plan
from experiment.scoring.published import Score, parser_of
from experiment.scoring.trial import score_trial
from experiment.store import Store, chain, records
from experiment.store.tables import sessions
from experiment.store.tables import trials as stored_trials
from experiment.study import Study
from experiment.study.study import ITEMS
from experiment.trials import OWN_TYPE, UNANSWERED, name_of
from experiment.version import installed_version
from stimuli.errors import UserError, did_you_mean, together
from stimuli.item import Item, build_meta, items_content, meta_path, write_items

SHOWN = 20
"""Different values or predictions that are listed one by one."""


@dataclass(frozen=True)
class ImportedResponse:
    """One response from a table or a released file."""

    where: str  # file and line
    item: Item
    response: str | None
    rt: float | None = None  # milliseconds
    more: Mapping[str, Any] = field(default_factory=dict)  # additional columns of the trials table
    prompt: str | None = None
    prediction: str | None = None  # an earlier reading of it by others
    fixations: Sequence[Fixation] = ()  # of the text that is read
    step: str | None = None  # the step whose further answer it is; None for the trial's own


@dataclass(frozen=True)
class GivenSession:
    """One reader's responses in the order of the source."""

    reader: str
    key: str
    list_id: int
    responses: Sequence[ImportedResponse]


@dataclass(frozen=True)
class GivenSource:
    """A file's sessions, the origin that is stored with each, and messages about the file."""

    name: str
    sha256: str
    sessions: Sequence[GivenSession]
    about: Mapping[str, Any]
    remarks: Sequence[str] = ()

    def responses(self) -> Iterator[ImportedResponse]:
        """Yield the responses of all sessions."""
        for session in self.sessions:
            yield from session.responses


@dataclass
class Unread:
    """A participant's answer that is not valid in the study: how often, where first, and what may have been meant."""

    count: int
    where: str
    labels: tuple[str, ...]


@dataclass
class Imported:
    """Result of an import."""

    source: str
    sha256: str
    # sessions and trials that were stored now
    sessions: int = 0
    trials: int = 0
    same: int = 0  # trials that were already stored
    statuses: dict[str, int] = field(default_factory=dict)  # trials of the source by response status
    # Participants' answers that are not labels of the study, by answer
    unread: dict[str, Unread] = field(default_factory=dict)
    repeated: int = 0  # trials that repeat an item for a reader in the same condition and session
    first_repeated: str | None = None  # place of the first of them
    # stored predictions, and how many of them equal wrods' reading of the same response
    predictions: int = 0
    agreeing: int = 0
    differing: list[str] = field(default_factory=list)  # the first that differ
    lacking: int = 0  # further answers that the study asks for and the source does not have
    remarks: list[str] = field(default_factory=list)  # warnings


OPERATION = IMPORTED


@dataclass(frozen=True)
class Items:
    """A study with the items of an import."""

    study: Study  # with these items, whether or not they are on disk yet
    content: bytes | None = None  # the file to be written; None if the study has its items
    meta: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # the file's sidecar

    @property
    def sha256(self) -> str | None:
        """Digest of the file to be written."""
        return None if self.content is None else hashlib.sha256(self.content).hexdigest()


def items_for(
    study: Study, store: Store | None, sources: Iterable[Path], make: Callable[[], Sequence[Item]]
) -> Items:
    """Return the study's items, or new ones if it has none or only those of a failed import."""
    if (study.folder / ITEMS).exists() and not _is_left_over(study, store):
        return Items(study)
    items = make()
    content = items_content(items)
    for name in dict.fromkeys(item.set_name for item in items):
        if not blocks_showing(study, name):
            raise UserError(
                f"{study.place('procedure')}: no block shows the set {name!r}",
                mend="Name it under `sets` of a block, or let a block name no sets.",
            )
    _check_lists(study, items)
    with_items = dataclasses.replace(study)
    # new items are placed where the study stores the items that it has loaded
    vars(with_items)["items"] = tuple(items)
    vars(with_items)["design"] = {**study.design, "items": hashlib.sha256(content).hexdigest()}
    return Items(with_items, content, build_meta(study.seed, sources))


@contextmanager
def written(items: Items) -> Iterator[None]:
    """Write new items; restore the previous file if an error follows."""
    if items.content is None:
        yield
        return
    file = items.study.folder / ITEMS
    before = [(path, path.read_bytes() if path.exists() else None) for path in (file, meta_path(file))]
    try:
        write_items(file, items.study.items, items.meta, content=items.content)
        yield
    except BaseException:
        for path, content in before:
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
        raise


def is_imported(items: Iterable[Item]) -> bool:
    """Return whether all items were made from an imported table."""
    return all(item.provenance["operation"] == OPERATION for item in items)


def _is_left_over(study: Study, store: Store | None) -> bool:
    if not is_imported(study.items):
        return False
    if store is None:
        return True
    query = select(func.count()).select_from(sessions).where(sessions.c.study == study.id)
    with store.read() as connection:
        return not connection.scalar(query)


def _check_lists(study: Study, items: Sequence[Item]) -> None:
    """Raise an error for a Latin square whose items do not all have every condition, which no rebuild can fix."""
    if study.get("design", "lists") == "one":
        return
    counts: dict[tuple[str, str], int] = {}
    for item in items:
        key = (item.set_name, item.item_id)
        counts[key] = counts.get(key, 0) + 1
    most = max(counts.values(), default=0)
    short = [item_id for (_, item_id), number in counts.items() if number < most]
    if short:
        raise UserError(
            f"{study.place('design')}: a Latin square needs every item in every condition, and {len(short)} of "
            f"{len(counts)} items in the table (first: {short[0]!r}) lack a condition that others have",
            mend="Write `lists: one` under `design`: imported sessions keep the list and row order of the table either way.",
        )


TOKENS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True)
class Import:
    """Everything that is to be stored, read and checked."""

    items: Items  # the study with its items
    sources: Sequence[GivenSource]
    kind: str  # ``human`` or ``model``
    parser: str | None = None  # a paper's parser; None is the study's own
    asks_further: bool = False  # whether the sources have further answers


def refuse(faults: Sequence[UserError]) -> None:
    """Raise one error for faults of rows, if there are any: each different one once, with the first row that has it."""
    if faults:
        first = {re.sub(r"line \d+", "", str(fault)): fault for fault in reversed(faults)}
        raise together(list(first.values())[::-1])


def write_import(given: Import, store: Store, *, actor: str, new_version: bool = False) -> list[Imported]:
    """Store sessions, trials, scores, model calls and items in one transaction; return the result for each source."""
    items, study = given.items, given.items.study
    if items.content is None:
        require_current_items(study, store)
    refuse_if_changed(study, items=items.sha256)
    stop = Stop()

    def write(connection: Connection) -> list[Imported]:
        version = note_design(connection, study, new_version=new_version)
        results = []
        for source in given.sources:
            imported = Imported(source.name, source.sha256, remarks=list(source.remarks))
            writing = _Writing(study, connection, imported, source, given, version)
            for session in source.sessions:
                if stop.is_asked:
                    raise _Stopped
                with chain.gathering(connection):
                    writing.session(session)
            refuse(writing.faults)
            detail = {name: getattr(imported, name) for name in _TOLD}
            records.add_audit(connection, actor, "imported responses", study=study.id, detail=detail)
            results.append(imported)
        return results

    # a signal raised here could fall between the submission to the writer and its future: the sessions would be stored without
    # their items
    try:
        with interruptible(stop), written(items):
            future = store.write(write)
            try:
                return future.result()
            except KeyboardInterrupt:  # second interrupt
                if future.exception() is None:
                    return future.result()
                raise
    except _Stopped:
        raise KeyboardInterrupt from None


_TOLD = ("source", "sha256", "sessions", "trials", "same", "statuses", "predictions", "agreeing")


_Waiting = dict[int, dict[str | None, PlannedTrial | None]]
"""By item (each item of a study is one object) the trials of its latest row by step; None once they have their answer."""


class _Stopped(Exception):
    """The import was interrupted."""


class _Writing:
    """The writes of one source inside a transaction."""

    def __init__(
        self,
        study: Study,
        connection: Connection,
        made: Imported,
        source: GivenSource,
        given: Import,
        version: int,
    ) -> None:
        self.study, self.connection, self.made, self.source = study, connection, made, source
        self.kind, self.version, self.parser = given.kind, version, given.parser or parser_of(study)
        self.plugin, self.asks_further = f"wrods {installed_version()} import", given.asks_further
        self.faults: list[UserError] = []

    def session(self, session: GivenSession) -> None:
        unfolding = _AsGiven(self.study, session, asks_further=self.asks_further)
        plan = as_plan(unfolding, unfolding.given_screens(), version=self.version)
        name_parts = [self.study.id, self.version, "imported", self.kind, session.reader, session.key]
        name = canonical_hash(name_parts)[:32]
        is_new = self._begin(name, plan, session)
        there = {} if is_new else self._there(name)
        waiting: _Waiting = {}
        for row, response in enumerate(session.responses):
            try:
                trial = self._planned(unfolding, session.reader, row, response, waiting)
                self._trial(name, session, trial, response, there)
            except UserError as fault:
                self.faults.append(fault)
        self.made.lacking += sum(map(len, unfolding.trials.values())) - len(session.responses)
        if is_new:
            records.finish_session(self.connection, name)
            self.made.sessions += 1

    def _planned(
        self, unfolding: _AsGiven, reader: str, row: int, response: ImportedResponse, waiting: _Waiting
    ) -> PlannedTrial:
        """Return the trial of a response, which is not ``waiting`` for it any more."""
        item, item_id, step = id(response.item), response.item.item_id, response.step
        if step is None:
            if item in waiting:
                if not self.asks_further:
                    _refuse_further(unfolding, reader, response)
                self.made.repeated += 1
                self.made.first_repeated = self.made.first_repeated or f"{item_id!r}, {response.where}"
            waiting[item] = {trial.get(STEP_NAME): trial for trial in unfolding.trials[row]}
        elif item not in waiting:
            raise UserError(
                f"{response.where}: {reader} has no answer to item {item_id!r} before the further answer {step}",
                mend="Let a trial's own answer, whose step is empty, come before its further answers.",
                exit_code=1,
            )
        elif step not in waiting[item]:
            names = [str(name) for name in waiting[item] if name is not None]
            raise UserError(
                f"{response.where}: the step is {step!r}; further answers to item {item_id!r} are "
                f"{', '.join(names) or 'not asked for'}",
                mend=f"{did_you_mean(step, names)}Use the names of the study's steps under `step` or `further`.",
                exit_code=1,
            )
        trial = waiting[item].get(step)
        if trial is None:
            raise UserError(
                f"{response.where}: {reader} has a second further answer {step} to the same trial of item {item_id!r}",
                mend="Leave one of the rows out.",
                exit_code=1,
            )
        waiting[item][step] = None
        return trial

    def _begin(self, name: str, plan: Plan, session: GivenSession) -> bool:
        query = select(sessions.c.planned_trials).where(sessions.c.session_id == name)
        planned = self.connection.scalar(query)
        if planned is not None and planned < len(session.responses):
            raise UserError(
                f"{session.responses[0].where}: {session.reader} is stored with {planned} trials, and {self.source.name} has "
                f"{len(session.responses)}",
                mend="A session is imported once; give the readers of another table other names, or tell several sessions "
                "of a reader apart by `session`.",
                exit_code=1,
            )
        if planned is not None:
            return False
        records.create_session(
            self.connection, plan, reader_kind=self.kind, reader=session.reader, session_id=name,
            client=dict(self.source.about), participant_id=session.reader if self.kind == "human" else None,
        )  # fmt: skip
        return True

    def _there(self, name: str) -> dict[int, str]:
        query = select(stored_trials.c.trial_index, stored_trials.c.payload_hash)
        stored = self.connection.execute(query.where(stored_trials.c.session_id == name))
        return {row.trial_index: row.payload_hash for row in stored}

    def _trial(
        self,
        name: str,
        session: GivenSession,
        trial: PlannedTrial,
        response: ImportedResponse,
        there: Mapping[int, str],
    ) -> None:
        if self.kind == "model" and trial["steps"][-1]["step"] == OWN_TYPE:
            raise UserError(
                f"{response.where}: item {trial['item_id']} is of {trial['trial_type']}, a trial type of this study, whose "
                "parser reads replies of `wrods run` only",
                mend="Import answers of people, or ask the model here.",
                exit_code=1,
            )
        if response.fixations and response.response is None and trial["trial_type"] not in UNANSWERED:
            raise UserError(
                f"{response.where}: the trial asks for an answer ({trial['trial_type']}), and the table has none",
                mend="Name its column under `response`, or let the study's trials end with `read`.",
                exit_code=1,
            )
        timed_out = self.kind == "human" and response.response is None and not response.fixations
        verdict = score_trial(trial, response.response, parser=self.parser, timed_out=timed_out)
        self._count(trial, response, verdict)
        place = {"session_id": name, "trial_index": trial["trial_index"], "attempt": 1}
        row = {
            **records.planned_columns(trial), **place, **response.more, "response_raw": response.response,
            "rt": response.rt, "timed_out": timed_out,
        }  # fmt: skip
        parts = _region_rows(trial, response)
        digest = records.payload_hash([row, parts] if parts else row)
        stored = there.get(trial["trial_index"])
        if stored is not None and stored != digest:
            raise UserError(
                f"{response.where}: {session.reader} is stored with another answer to item {trial['item_id']}",
                mend="A session is imported once; give the readers of another table other names.",
                exit_code=1,
            )
        if stored is not None:
            self.made.same += 1
            return
        row_stored = row | {"plugin_version": self.plugin, "payload_hash": digest}
        records.store_trial(self.connection, row_stored, parts, verdict)
        if self.kind == "model":
            _store_call(self.connection, place, response, name)
        self.made.trials += 1

    def _count(self, trial: PlannedTrial, response: ImportedResponse, verdict: Score) -> None:
        imported, step = self.made, trial["steps"][-1]
        status = verdict.response_status
        imported.statuses[status] = imported.statuses.get(status, 0) + 1
        if self.kind == "human" and status not in ("valid", "timeout"):
            labels = tuple(map(str, step.get("responses", ())))
            unread = imported.unread.setdefault(str(response.response), Unread(0, response.where, labels))
            unread.count += 1
        if response.prediction is None:
            return
        read = verdict.response or ""
        letters = {
            str(name): label
            for label, name in zip(step.get("labels", ()), step.get("responses", ()), strict=False)
        }
        imported.predictions += 1
        if response.prediction in (read, letters.get(read)):
            imported.agreeing += 1
        elif len(imported.differing) < SHOWN:
            imported.differing.append(f"{response.where}: stored {response.prediction!r}, read {read!r}")


def _refuse_further(unfolding: _AsGiven, reader: str, response: ImportedResponse) -> None:
    """Raise an error for a second row of an item whose trials ask for further answers, which would count as a repetition."""
    block = unfolding.blocks[blocks_showing(unfolding.study, response.item.set_name)[0]]
    if names := [name for step in block["trial"] if (name := name_of(step)) is not None]:
        raise UserError(
            f"{response.where}: {reader} has a second row for item {response.item.item_id!r}, whose trials ask for further "
            f"answers ({', '.join(names)})",
            mend="Name the columns of further answers under `further` or, if they have rows of their own, the column with the "
            "name of the step under `step`; or tell several sessions of a reader apart by `session`.",
            exit_code=1,
        )


def _region_rows(trial: PlannedTrial, response: ImportedResponse) -> list[dict[str, Any]]:
    """Return the rows of the regions table that a response's fixations give."""
    if not response.fixations:
        return []
    rows = list(region_rows(trial, response.fixations))
    farthest = max((word for word, _ in response.fixations if word is not None), default=0)
    n_words = len(words_of(trial))
    if farthest >= n_words:
        raise UserError(
            f"{response.where}: a fixation is on word {farthest + 1} of item {trial['item_id']}, whose text has {n_words}",
            mend="Let interest areas count the words that the study's text has between blanks (its chunks, if it is read by "
            "chunk), from `first`.",
            exit_code=1,
        )
    return rows


def _store_call(
    connection: Connection, place: Mapping[str, Any], response: ImportedResponse, name: str
) -> None:
    request = (
        None if response.prompt is None else {"messages": [{"role": "user", "content": response.prompt}]}
    )
    records.store_call(
        connection,
        {
            **place, "request_key": canonical_hash([name, place["trial_index"], request]), "request": request,
            "text": response.response, "status": "answered" if response.response else "empty",
            **{key: response.more.get(key) for key in TOKENS},
        },
    )  # fmt: skip


class _AsGiven(PlanBuilder):
    """A procedure whose blocks show the given items in order, without randomisation or practice."""

    def __init__(self, study: Study, session: GivenSession, *, asks_further: bool) -> None:
        super().__init__(
            study,
            study.items,
            SessionPlace(list_id=1),
            label_map=0,
            between={"condition": {}, "exemplars": None},
        )
        self.place, self.asks_further = SessionPlace(session.list_id), asks_further
        self.trials: dict[int, list[PlannedTrial]] = {}  # by row, its own and those of further answers
        self._of_block: dict[int, list[tuple[int, Item]]] = {}
        for row, response in enumerate(session.responses):
            if response.step is None:
                number = blocks_showing(study, response.item.set_name)[0]
                self._of_block.setdefault(number, []).append((row, response.item))

    def given_screens(self) -> list[Screen]:
        """Return instructions and blocks."""
        screens: list[Screen] = []
        number = 0
        for screen in self.study.get("procedure"):
            kind, value = next(iter(screen.items()))
            if kind == "instructions":
                screens.append(self._instructions(value))
            elif kind == "block":
                number += 1
                if number - 1 in self._of_block:
                    screens.append(self._given_block(value, number))
        return screens

    def _given_block(self, settings: Mapping[str, object], number: int) -> Screen:
        name = f"block-{number}"
        trials: list[PlannedTrial] = []
        for row, item in self._of_block[number - 1]:
            of_row = (
                self._trials_of(item, name, settings)
                if self.asks_further
                else [self._trial(item, name, settings)]
            )
            self.trials[row] = of_row
            trials += of_row
        return {
            "kind": "block", "block": name, "name": settings.get("name"), "break_every": None, "break_minimum_ms": 0,
            "feedback": None, "trials": trials,
        }  # fmt: skip
