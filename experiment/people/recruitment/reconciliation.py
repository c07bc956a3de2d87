"""Compares a platform's books with the store: who can be approved, who has to be looked at, who was paid for nothing.

A rejection costs a participant more than the pay, so it is suggested only where the platform's own rule on attention
checks is met by instructed-response checks, and always with the evidence. Comprehension never counts, nor does speed.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, func, select, update

from experiment.people.recruitment.codes import OUTCOME_OF_STATE, Recruitment, code_of, code_of_session
from experiment.people.recruitment.platforms import Platform
from experiment.people.recruitment.reports import FailedCheck, Line, Mark, Report, Verdict
from experiment.people.recruitment.returns import code_when_held, failed_checks
from experiment.people.recruitment.submissions import Export, Submission, store_export, stored_submissions
from experiment.store import Store, queries, records
from experiment.store.tables import people, sessions, trials
from stimuli.errors import UserError

NO_CODE = (None, "", "NOCODE")
PAID = ("approved", "screened_out")


@dataclass(frozen=True)
class Imported:
    """What an import did: submissions added and changed, sessions whose place reopened."""

    new: int
    changed: int
    returned: int
    timed_out: int


def import_submissions(store: Store, recruitment: Recruitment, export: Export, *, actor: str) -> Imported:
    """Keep a platform's export and give back the places of those who returned or timed out there."""

    def keep(connection: Connection) -> Imported:
        new, changed = store_export(connection, recruitment.study, export)
        found = _sessions_of(connection, recruitment.study, export.platform)
        gone = {"returned": 0, "timed_out": 0}
        for one in export.rows:
            row = found.of(one)
            # who has given every answer keeps the place although the platform's clock ran out
            ends = {"returned": ("started", "finished", "timed_out"), "timed_out": ("started",)}
            if row is None or row["state"] not in ends.get(one.status, ()):
                continue
            connection.execute(
                update(sessions)
                .where(sessions.c.session_id == row["session_id"])
                .values(
                    state=one.status, ended_reason=f"{one.status.replace('_', ' ')} on {export.platform.name}"
                )
            )
            gone[one.status] += 1
        done = Imported(new, changed, **gone)
        records.add_audit(connection, actor, "reconcile", study=recruitment.study, detail=asdict(done))
        return done

    return store.write(keep).result()


def reconciliation(store: Store, recruitment: Recruitment) -> Report:
    """Compare the submissions that were imported last with the sessions of the store."""
    platform = recruitment.platform
    if platform is None or platform.export is None:
        raise UserError(
            f"{recruitment.study} recruits from no platform, so there are no books to compare",
            mend="Set participants.recruit to prolific, sona or mturk.",
        )
    with store.read() as connection:
        given, imported_at = stored_submissions(connection, recruitment.study, platform.source)
        found = _sessions_of(connection, recruitment.study, platform)
        median = _median(given, found.rows.values())
        minutes = recruitment.minutes or median
        needed = None if platform.checks is None or minutes is None else platform.checks.needed(minutes)
        judge = _Judge(connection, recruitment, platform, needed)
        lines = [judge.submission(one, found.of(one)) for one in given]
        matched = {line.session_id for line in lines}
        lines += [judge.alone(row) for row in found.rows.values() if row["session_id"] not in matched]
    reward = recruitment.reward
    hourly = None
    if reward is not None and median:
        hourly = (reward.amount / Decimal(str(median)) * 60).quantize(Decimal("0.01"))
    return Report(
        recruitment.study,
        platform.name,
        imported_at,
        tuple(lines),
        median,
        reward,
        hourly,
        _rule(platform, minutes, needed),
    )


def _checks(number: int) -> str:
    return f"{number} attention check{'' if number == 1 else 's'}"


def _rule(platform: Platform, minutes: float | None, needed: int | None) -> str:
    if platform.checks is None:
        return f"{platform.name} has no rule on attention checks: nobody is suggested for rejection."
    if minutes is None or needed is None:
        return "How long the study takes is not known: nobody is suggested for rejection."
    checks = "one failed check" if needed == 1 else f"{needed} failed checks"
    length = f"{minutes:.0f} minute{'' if f'{minutes:.0f}' == '1' else 's'}"
    return f"{platform.name}, a study of {length}: {checks} may count as a reason to reject."


@dataclass(frozen=True)
class _Found:
    """Sessions of people by their id, and who they are on the platform."""

    rows: Mapping[str, Mapping[str, Any]]
    by_submission: Mapping[str, str]
    by_person: Mapping[str, Sequence[str]]

    def of(self, one: Submission) -> Mapping[str, Any] | None:
        """Return the session of a submission: the very one, else the person's that has most answers.

        A session that came with another submission's number is that one's alone: whoever returned a place in a pilot
        on the platform still has their session in the study.
        """
        exact = self.by_submission.get(one.submission_id or "")
        if exact is not None:
            return self.rows[exact]
        others = set(self.by_submission.values()) if one.submission_id else set()
        theirs = [self.rows[s] for s in self.by_person.get(one.external_id, ()) if s not in others]
        return max(theirs, key=lambda row: (row["state"] == "finished", row["n_trials"]), default=None)


def _sessions_of(connection: Connection, study: str, platform: Platform) -> _Found:
    answered = connection.execute(
        select(trials.c.session_id, func.count())
        .join(sessions, sessions.c.session_id == trials.c.session_id)
        .where(sessions.c.study == study)
        .group_by(trials.c.session_id)
    )
    counted: dict[str, int] = {str(session_id): int(n) for session_id, n in answered}
    rows = {
        str(row["session_id"]): {**row, "n_trials": counted.get(row["session_id"], 0)}
        for row in connection.execute(
            select(*queries.SESSION_COLUMNS)
            .where(
                sessions.c.study == study, sessions.c.reader_kind == "human", sessions.c.is_pilot.is_(False)
            )
            .order_by(sessions.c.created_at)
        ).mappings()
    }
    by_submission: dict[str, str] = {}
    by_person: dict[str, list[str]] = {}
    for external_id, session_id, details in connection.execute(
        select(people.c.external_id, people.c.session_id, people.c.details).where(
            people.c.study == study, people.c.source == platform.source
        )
    ):
        if session_id not in rows:
            continue
        by_person.setdefault(external_id, []).append(session_id)
        number = (details or {}).get(platform.submission or "")
        if number:
            by_submission[number] = session_id
    return _Found(rows, by_submission, by_person)


def _minutes_here(row: Mapping[str, Any]) -> float | None:
    if row["finished_at"] is None:
        return None
    taken = datetime.fromisoformat(row["finished_at"]) - datetime.fromisoformat(row["created_at"])
    return taken.total_seconds() / 60


def _median(given: Iterable[Submission], rows: Iterable[Mapping[str, Any]]) -> float | None:
    theirs = [one.minutes for one in given if one.minutes and one.status in ("awaiting_review", "approved")]
    ours = [minutes for row in rows if row["state"] == "finished" and (minutes := _minutes_here(row))]
    times = theirs or ours
    return statistics.median(times) if times else None


@dataclass(frozen=True)
class _Judge:
    """Looks at one person after the other."""

    connection: Connection
    recruitment: Recruitment
    platform: Platform
    needed: int | None

    def submission(self, one: Submission, row: Mapping[str, Any] | None) -> Line:
        """Judge a submission beside its session, or beside none."""
        verdict: Verdict = "settled"
        marks: list[Mark] = []
        reasons: list[str] = []
        evidence: tuple[FailedCheck, ...] = ()
        expected = self._expected(row)
        # who was held has entered another code, which the platform keeps when the session is released
        held = None if row is None else code_when_held(self.platform, str(row["session_id"]))
        is_wrong = row is not None and expected is not None and one.code not in (*NO_CODE, expected, held)
        if is_wrong:
            marks.append("wrong_code")
            reasons.append(f"entered {one.code}; the session's code is {expected}")
        if one.status == "awaiting_review":
            marks.append("awaiting_review")
            verdict, evidence = self._awaiting(one, row, marks, reasons)
        elif one.status in PAID:
            if row is None or (row["n_trials"] == 0 and row["state"] not in OUTCOME_OF_STATE):
                marks.append("paid_without_data")
                reasons.append("no session has this id" if row is None else "the session has no answers")
            elif row["held_reason"]:
                reasons.append(f"paid, though held for review: {row['held_reason']}")
            elif row["state"] == "started":
                reasons.append(f"paid at trial {row['n_trials']} of {row['planned_trials']}")
        elif one.status == "returned":
            marks.append("returned")
            reasons.append("never began here" if row is None else "the place is open again")
        elif one.status == "timed_out":
            marks.append("timed_out")
            if row is not None and row["state"] == "finished":
                reasons.append("all answers are here: can be paid by hand")
        elif one.status == "rejected" and row is not None and row["state"] == "finished":
            if self.needed is None or len(self._failed(row)) < self.needed:
                verdict = "review"
                reasons.append("rejected, but all answers are here and the rule on checks is not met")
        elif one.status == "active" and row is not None and row["state"] == "finished":
            reasons.append("all answers are here; not submitted yet")
        return self._line(one, row, expected, verdict, marks, reasons, evidence)

    def alone(self, row: Mapping[str, Any]) -> Line:
        """Judge a session that no submission names."""
        is_under_way = row["state"] == "started"
        reasons = ["perhaps still under way"] if is_under_way else []
        verdict: Verdict = "review" if row["state"] == "finished" else "settled"
        return self._line(None, row, self._expected(row), verdict, ["data_without_submission"], reasons, ())

    def _awaiting(
        self, one: Submission, row: Mapping[str, Any] | None, marks: list[Mark], reasons: list[str]
    ) -> tuple[Verdict, tuple[FailedCheck, ...]]:
        if row is None:
            if one.code is not None and one.code == code_of(self.recruitment, "no_consent"):
                reasons.append("did not consent, or had their answers deleted: ask for a return")
                return "review", ()
            marks.append("submission_without_data")
            reasons.append("no session has this id: ask what happened before deciding")
            return "review", ()
        state = str(row["state"])
        if row["held_reason"]:
            reasons.append(f"held for review: {row['held_reason']}")
            return "review", ()
        if state != "finished":
            reasons.append(_unfinished(row))
            if row["n_trials"] == 0 and state == "started":
                marks.append("submission_without_data")
            return "review", ()
        failed = self._failed(row)
        if failed and self.needed is not None and len(failed) >= self.needed:
            reasons.append(f"{_checks(len(failed))} failed; {self.needed} may count as a reason to reject")
            return "reject", failed
        if failed:
            reasons.append(f"{_checks(len(failed))} failed, which is no reason to reject")
        if "wrong_code" in marks:
            return "review", ()
        if one.code in NO_CODE and self.platform.export and self.platform.export["code"]:
            reasons.append("no code was entered, but all answers are here")
        return "approve", ()

    def _expected(self, row: Mapping[str, Any] | None) -> str | None:
        if row is None:
            return None
        if row["held_reason"]:
            return code_when_held(self.platform, str(row["session_id"]))
        outcome = OUTCOME_OF_STATE.get(str(row["state"]))
        return row["completion_code"] if outcome is None else code_of_session(self.recruitment, row, outcome)

    def _failed(self, row: Mapping[str, Any]) -> tuple[FailedCheck, ...]:
        found = []
        for index in failed_checks(self.connection, str(row["session_id"])):
            trial = next(
                one
                for one in queries.trials_of_session(self.connection, str(row["session_id"]))
                if one["trial_index"] == index
            )
            asked = " ".join(str(text) for text in (trial["shown"] or {}).values())
            found.append(
                FailedCheck(index, asked, str(trial["response_raw"] or ""), str(trial["answer"] or ""))
            )
        return tuple(found)

    def _line(
        self,
        one: Submission | None,
        row: Mapping[str, Any] | None,
        expected: str | None,
        verdict: Verdict,
        marks: Sequence[Mark],
        reasons: Sequence[str],
        evidence: tuple[FailedCheck, ...],
    ) -> Line:
        return Line(
            external_id=None if one is None else one.external_id,
            submission_id=None if one is None else one.submission_id,
            session_id=None if row is None else str(row["session_id"]),
            reader=None if row is None else str(row["reader"]),
            state=None if row is None else str(row["state"]),
            status=None if one is None else one.status,
            code=None if one is None else one.code,
            expected_code=expected,
            trials=0 if row is None else int(row["n_trials"]),
            planned=0 if row is None else int(row["planned_trials"] or 0),
            minutes=None if one is None else one.minutes,
            minutes_here=None if row is None else _minutes_here(row),
            verdict=verdict,
            marks=tuple(marks),
            reasons=tuple(reasons),
            evidence=evidence,
        )


def _unfinished(row: Mapping[str, Any]) -> str:
    state = str(row["state"])
    told = {
        "declined": "did not consent: ask for a return",
        "screened_out": "was not eligible: pay as agreed for that, or ask for a return",
        "failed_practice": "did not pass the practice: pay as agreed for that, or ask for a return",
        "failed_comprehension": "did not understand the instructions: pay as agreed for that, or ask for a return",
        "returned": "returned before, submitted now",
        "stopped": f"stopped at trial {row['n_trials']} of {row['planned_trials']} and let us keep the answers: pay in part",
    }
    if state in told:
        return told[state]
    return f"stopped at trial {row['n_trials']} of {row['planned_trials']}: ask for a return, or pay in part"
