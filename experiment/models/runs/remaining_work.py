"""Remaining work of a run: planned minus stored, without prompts that exceed the model's context.

Sessions come in waves (all lists of one prompt variant and replicate, or several of these if each session answers one trial
after another), and a wave in rounds: the first block of each of its sessions, then the second. A run that ends between two
trials leaves lists and conditions within one block of each other.

An independent prompt is one trial: a flag records that it cannot be answered, and why. In a conversation every later turn would
be longer still, so the conversation ends; earlier answers stay. Settings are part of a session's name, so with other settings
everything is sent again; if only the server's settings have changed, :func:`ask_again` removes the flags.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, func, select, update

from experiment.models.api.retrying import without_texts
from experiment.models.engine import UNFINISHED, Reply, Request
from experiment.models.planning.session import ModelSession
from experiment.procedure import trials_of
from experiment.procedure.plan_builder import STEP_NAME, PlannedTrial, with_further_answers
from experiment.store import Store, records
from experiment.store.records import TEACHER_FORCED, excluded_sessions
from experiment.store.session_activity import end_session
from experiment.store.tables import TRIAL_KEY, calls, flags, sessions, trials

ENDED = "ended"
"""State of a session that ended without all of its trials."""
BEGINS = "the conversation became longer than the model reads"
REST = "the prompts that are left are longer than the model reads"
TOO_LONG, ASKED_AGAIN = "too_long", "asked_again"
"""Kinds of trial flags; the newest applies."""
BY = "wrods run"
_AT_ONCE = 400
_SAID = re.compile(
    r"the model (?:reads|writes) at most|(?:context|prompt|input|sequence)[ _-]?(?:length|size|window)?\b[^.\n]{0,60}"
    r"(?:exceed|too long|too large|longer than|maximum|overflow)|(?:maximum|max|exceeds?)[^.\n]{0,40}context|too many tokens"
    r"|inputs?`? (?:tokens )?[^.\n]{0,40}must (?:be|have) (?:<=?|less than|at most) ?\d+",
    re.IGNORECASE,
)

CHUNK = 400
"""Sessions that are compared with the store in one query."""

MOST_IN_WAVE = 64
"""Largest number of sessions run in parallel if trials are independent."""

ENOUGH = 256
"""Trials of one block, over all sessions of a wave, that keep a server or GPU busy: then a wave ends at the end of a prompt
variant.
"""

MOST_TALKS = 256
"""The same if each session is one growing conversation, so that equally many requests can be in flight."""

Round = tuple[int, int]
"""Wave and block, from 0."""


def is_too_long(request: Request, reply: Reply) -> bool:
    """Return whether a request was refused because it exceeds the model's context, by the error's text."""
    if reply.status != "error" or reply.error is None:
        return False
    return bool(_SAID.search(without_texts(reply.error, [message.content for message in request.messages])))


def reason_of(session: ModelSession, request: Request, reply: Reply) -> str | None:
    """Return why a conversation ends with a reply (its next turn exceeds the context); None if it continues."""
    manner = session.manner
    in_talk = manner.context == "session" or (
        manner.practice == "answered" and bool(session.trial_of(reply.work_key)["is_practice"])
    )
    if not in_talk or not is_too_long(request, reply):
        return None
    return f"{BEGINS}: {str(reply.error).splitlines()[0][:200]}"


def fault_of(session: ModelSession, request: Request, reply: Reply) -> str | None:
    """Return why a trial can never be answered (its prompt exceeds the context); None if it can."""
    if session.manner.context == "session" or not is_too_long(request, reply):
        return None
    trial = session.trial_of(reply.work_key)
    return f"item {trial['item_id']} (trial {trial['trial_index']}): {str(reply.error).splitlines()[0][:300]}"


def faults_of(session: ModelSession, request: Request, reply: Reply) -> dict[int, str]:
    """Return the fault of a reply's trial, and with it of the further answers about it, by trial index."""
    if (fault := fault_of(session, request, reply)) is None:
        return {}
    trial, *further = session.trials_lost_with(reply.work_key)
    faults = {each["trial_index"]: f"{each[STEP_NAME]} of {fault}" for each in further}
    return {trial["trial_index"]: fault, **faults}


def flag(connection: Connection, session_id: str, trial_index: int, fault: str) -> None:
    """Record once that a trial can never be answered, and why."""
    if trial_index not in flagged(connection, [session_id]).get(session_id, {}):
        records.add_flag(connection, session_id, TOO_LONG, fault, BY, records.TrialPlace(trial_index))


def close(connection: Connection, session_id: str, planned: int) -> None:
    """End a session whose remaining trials can never be answered."""
    count = select(func.count()).select_from(trials).where(trials.c.session_id == session_id)
    never = flagged(connection, [session_id]).get(session_id, {})
    if never and int(connection.scalar(count) or 0) + len(never) >= planned:
        end_session(connection, session_id, ENDED, REST)


def flagged(connection: Connection, session_ids: Sequence[str]) -> dict[str, dict[int, str]]:
    """Return the trials of some sessions that can never be answered, with the reason, by session and trial index."""
    faults: dict[str, dict[int, str]] = defaultdict(dict)
    for start in range(0, len(session_ids), _AT_ONCE):
        chunk = session_ids[start : start + _AT_ONCE]
        for row in connection.execute(never_trials(flags.c.session_id.in_(chunk))):
            faults[row.session_id][int(row.trial_index)] = str(row.reason)
    return dict(faults)


def never_trials(where: ColumnElement[bool]) -> Any:
    """Return the query for trials that can never be answered, in the order of their flags."""
    is_kind = flags.c.kind.in_((TOO_LONG, ASKED_AGAIN))
    newest = (
        select(func.max(flags.c.flag_id))
        .where(where, is_kind)
        .group_by(flags.c.session_id, flags.c.trial_index)
    )
    is_same_trial = and_(
        trials.c.session_id == flags.c.session_id, trials.c.trial_index == flags.c.trial_index
    )
    return (
        select(flags.c.session_id, flags.c.trial_index, flags.c.reason)
        .join(trials, is_same_trial, isouter=True)
        .where(flags.c.flag_id.in_(newest), flags.c.kind == TOO_LONG, trials.c.session_id.is_(None))
        .order_by(flags.c.flag_id)
    )


def ask_again(connection: Connection, study: str, reader: str) -> int:
    """Allow prompts that were too long to be sent again, for example after a server's context grew; return the number of sessions."""
    of_reader = and_(sessions.c.study == study, sessions.c.reader == reader)
    sessions_of_reader = select(sessions.c.session_id).where(of_reader)
    named: set[str] = set()
    for row in connection.execute(never_trials(flags.c.session_id.in_(sessions_of_reader))).all():
        records.add_flag(
            connection,
            row.session_id,
            ASKED_AGAIN,
            "wrods run --ask-again",
            BY,
            records.TrialPlace(row.trial_index),
        )
        named.add(row.session_id)
    ours = sessions.c.ended_reason.startswith(BEGINS) | (sessions.c.ended_reason == REST)
    opened = (
        update(sessions)
        .where(of_reader, sessions.c.state == ENDED, ours)
        .values(state="started", ended_reason=None)
        .returning(sessions.c.session_id)
    )
    return len(named | set(connection.scalars(opened)))


@dataclass(frozen=True)
class UnansweredTrial:
    """A trial whose last call failed and that has no answer, or a further answer that was not requested for this reason."""

    planned: PlannedTrial
    last: Mapping[str, Any]  # the call that failed
    calls: Sequence[Mapping[str, Any]]  # all calls of this trial


def unanswered_trials(
    connection: Connection, study: str, columns: Sequence[str] = ()
) -> Iterator[UnansweredTrial]:
    """Yield the unanswered trials of a study in the order of sessions and trials; calls have these columns and their status."""
    same_trial = and_(*(trials.c[name] == calls.c[name] for name in TRIAL_KEY))
    query = (
        select(*(calls.c[name] for name in (*TRIAL_KEY, *columns, "status")), sessions.c.context)
        .join(sessions, sessions.c.session_id == calls.c.session_id)
        .join(trials, same_trial, isouter=True)
        # a finished session has all its trials, so the calls of most studies are not read
        .where(
            sessions.c.study == study,
            sessions.c.state != "finished",
            trials.c.session_id.is_(None),
            calls.c.trial_index.is_not(None),
        )
        .order_by(sessions.c.created_at, *(calls.c[name] for name in TRIAL_KEY), calls.c.call_id)
    )
    with connection.execute(query.execution_options(yield_per=500)) as result:
        for session_id, of_session in groupby(result.mappings(), key=lambda call: str(call["session_id"])):
            calls_of = {
                int(index): [dict(call) for call in of_trial]
                for index, of_trial in groupby(of_session, key=lambda call: call["trial_index"])
            }
            # other calls are a step before the answer, after which the run ended
            failed = {index for index, each in calls_of.items() if each[-1]["status"] in UNFINISHED}
            if failed:
                plan = connection.scalar(select(sessions.c.plan).where(sessions.c.session_id == session_id))
                yield from _unanswered_of(plan or {"screens": []}, calls_of, failed)


def _unanswered_of(
    plan: Mapping[str, Any], calls_of: Mapping[int, Sequence[Mapping[str, Any]]], failed: Collection[int]
) -> Iterator[UnansweredTrial]:
    for group in with_further_answers(trials_of(plan)):
        last: Mapping[str, Any] | None = None  # without its answer, nothing more is requested about the item
        for trial in group:
            of_trial = calls_of.get(trial["trial_index"], [])
            if trial["trial_index"] in failed:
                last = of_trial[-1]
            elif last is None or last["context"] == TEACHER_FORCED:
                continue
            yield UnansweredTrial(trial, last, of_trial)


def reasons_of(connection: Connection, session_ids: Iterable[str]) -> dict[str, int]:
    """Return the number of ended conversations by reason."""
    counts: dict[str, int] = {}
    for session_id in sorted(session_ids):
        query = select(sessions.c.ended_reason).where(sessions.c.session_id == session_id)
        reason = str(connection.scalar(query) or BEGINS)
        if reason != REST:
            counts[reason] = counts.get(reason, 0) + 1
    return counts


def ended_of(connection: Connection, study: str) -> dict[str, dict[str, Any]]:
    """Return the sessions and trials that each reader can never answer."""
    by_reader: dict[str, dict[str, Any]] = {}

    def of(reader: object) -> dict[str, Any]:
        return by_reader.setdefault(str(reader), {"sessions": 0, "reason": None, "trials": 0, "faults": []})

    counted = and_(sessions.c.study == study, sessions.c.session_id.not_in(excluded_sessions()))
    query = select(sessions.c.reader, sessions.c.ended_reason).where(
        counted, sessions.c.state == ENDED, sessions.c.ended_reason.startswith(BEGINS)
    )
    for row in connection.execute(query.order_by(sessions.c.created_at, sessions.c.session_id)):
        entry = of(row.reader)
        entry["sessions"] += 1
        entry["reason"] = entry["reason"] or row.ended_reason
    flagged_sessions = select(flags.c.session_id).where(flags.c.kind == TOO_LONG)
    whose = select(sessions.c.session_id, sessions.c.reader).where(
        counted, sessions.c.session_id.in_(flagged_sessions)
    )
    readers = {row.session_id: row.reader for row in connection.execute(whose)}
    for row in connection.execute(
        never_trials(flags.c.session_id.in_(select(sessions.c.session_id).where(counted)))
    ):
        entry = of(readers[row.session_id])
        entry["trials"] += 1
        entry["faults"].append(row.reason)
    return by_reader


@dataclass
class Survey:
    """A model's plan compared with the store."""

    sessions: int = 0
    planned: int = 0
    stored: int = 0
    # trials that exceed the context, or belong to conversations that did (too_long)
    given_up: int = 0
    ended: set[str] = field(default_factory=set)  # sessions that ended for this reason
    # by session, the indices of trials that can never be answered, with the reason
    never: dict[str, dict[int, str]] = field(default_factory=dict)
    missing: dict[Round, int] = field(default_factory=dict)  # trials without an answer, by round
    # trials without an answer that are pending in a batch, by round; not in `missing`
    out: Counter[Round] = field(default_factory=Counter)
    # sessions whose trials are all stored but that are not marked as finished
    unfinished: list[str] = field(default_factory=list)
    # `(list, prompt variant, replicate, yoked to)` to session id
    places: dict[tuple[Any, ...], str] = field(default_factory=dict)
    rounds: set[Round] = field(default_factory=set)  # all rounds of the plan

    @property
    def left(self) -> int:
        """Trials without an answer."""
        return self.planned - self.stored - self.given_up

    @property
    def to_ask(self) -> int:
        """Number of trials without an answer that are not pending in a batch."""
        return self.left - sum(self.out.values())


def place_of(session: ModelSession) -> tuple[Any, ...]:
    """Return a session's place in the design, whatever its texts."""
    plan = session.plan
    return (plan["list_id"], plan["prompt_variant"], plan["replicate"], session.yoked_to)


def waves(plan: Iterable[ModelSession]) -> Iterator[list[ModelSession]]:
    """Yield the sessions of a plan in waves; a large enough wave ends with a prompt variant or replicate."""
    wave: list[ModelSession] = []
    last: tuple[Any, Any] | None = None
    at_once = 0
    for session in plan:
        talks = is_talk(session)
        most = MOST_TALKS if talks else MOST_IN_WAVE
        which = (session.plan["prompt_variant"], session.plan["replicate"])
        is_enough = len(wave) >= MOST_TALKS // 2 if talks else at_once >= ENOUGH
        if wave and (len(wave) >= most or (last is not None and which != last and is_enough)):
            yield wave
            wave, at_once = [], 0
        wave.append(session)
        blocks = sum(screen["kind"] == "block" for screen in session.plan["screens"])
        at_once += len(session) // max(1, blocks)
        last = which
    if wave:
        yield wave


def is_talk(session: ModelSession) -> bool:
    """Return whether a session's trials depend on each other's answers."""
    return bool(session.script.talks) and session.manner.context != "teacher_forced"


FINENESS = 1 << 20
"""Shares of a block are multiples of 1 / this, so that sums of places are exact."""


class Blocks:
    """The round in its wave of each trial of a session (practice joins the next), and the share of its block before it."""

    def __init__(self, session: ModelSession) -> None:
        self.of_trial: dict[int, int] = {}
        self.share: dict[int, float] = {}
        number, last = -1, None
        members: dict[int, list[int]] = {}
        for trial in session.trials:
            if not trial["is_practice"] and trial["block"] != last:
                number, last = number + 1, trial["block"]
            index = int(trial["trial_index"])
            self.of_trial[index] = max(0, number)
            members.setdefault(max(0, number), []).append(index)
        self.count = number + 1 if self.of_trial else 0
        for indices in members.values():
            for place, index in enumerate(indices):
                self.share[index] = place * FINENESS // len(indices) / FINENESS


Shapes = dict[int, tuple[object, Blocks, Counter[int]]]
"""Blocks of sessions with the number of trials in each, computed once for all sessions with the same script."""


def _blocks_of(session: ModelSession, shapes: Shapes) -> tuple[Blocks, Counter[int]]:
    script, blocks, sizes = shapes.get(id(session.script), (None, None, None))
    if blocks is None or sizes is None or script is not session.script:
        blocks = Blocks(session)
        sizes = Counter(blocks.of_trial.values())
        if session.yoked_to is None:
            shapes[id(session.script)] = (session.script, blocks, sizes)
    return blocks, sizes


def survey(plan: Iterable[ModelSession], store: Store) -> Survey:
    """Compare a plan with the store in one pass."""
    surveyed = Survey()
    shapes: Shapes = {}
    numbered = ((number, session) for number, wave in enumerate(waves(plan)) for session in wave)
    while chunk := list(islice(numbered, CHUNK)):
        counts = stored_counts(store, [session.session_id for _, session in chunk])
        begun = [name for name, (_, state) in counts.items() if state != "finished"]
        with store.read() as connection:
            surveyed.never |= flagged(connection, begun)
        for number, session in chunk:
            _count(surveyed, shapes, number, session, counts.get(session.session_id), store)
    return surveyed


def _count(
    surveyed: Survey,
    shapes: Shapes,
    wave: int,
    session: ModelSession,
    stored_and_state: tuple[int, str] | None,
    store: Store,
) -> None:
    total = len(session)
    stored, state = stored_and_state or (0, "")
    surveyed.sessions += 1
    surveyed.planned += total
    surveyed.stored += stored
    surveyed.places[place_of(session)] = session.session_id
    blocks, sizes = _blocks_of(session, shapes)
    surveyed.rounds.update((wave, block) for block in sizes)
    if stored >= total:
        if state != "finished":
            surveyed.unfinished.append(session.session_id)
        return
    if state == ENDED:
        surveyed.given_up += total - stored
        surveyed.ended.add(session.session_id)
        return
    never = surveyed.never.get(session.session_id, {})
    surveyed.given_up += len(never)
    if stored or never:
        done = stored_trials(store, session.session_id) | never.keys()
        left = [trial for trial in session.trials if trial["trial_index"] not in done]
        sizes = Counter(blocks.of_trial[trial["trial_index"]] for trial in left)
    for block, count in sizes.items():
        surveyed.missing[wave, block] = surveyed.missing.get((wave, block), 0) + count


def stored_counts(store: Store, session_ids: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return the number of stored trials and the state by session; ids hash all trials, so counting suffices."""
    query = (
        select(sessions.c.session_id, sessions.c.state, func.count(trials.c.trial_index))
        .join(trials, trials.c.session_id == sessions.c.session_id, isouter=True)
        .where(sessions.c.session_id.in_(session_ids))
        .group_by(sessions.c.session_id, sessions.c.state)
    )
    with store.read() as connection:
        return {str(name): (int(count), str(state)) for name, state, count in connection.execute(query)}


def stored_trials(store: Store, session_id: str) -> set[int]:
    """Return the indices of a session's stored trials."""
    query = select(trials.c.trial_index).where(trials.c.session_id == session_id)
    with store.read() as connection:
        return {int(index) for index in connection.scalars(query)}
