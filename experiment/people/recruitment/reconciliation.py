"""Comparison of a platform's submissions with the store: whom to approve, whom to review, and who was paid without taking part.

A rejection costs a participant more than the pay, so it is suggested only if instructed-response checks meet the platform's own
rule on attention checks, and always with the evidence. Comprehension and speed never count.

The platform's CSV of submissions is read and the latest import of each is stored: only the person's id, and the submission's
id, status, code and times; anything else that a platform exports about a person (age, country, approval rate) is ignored.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Literal

from charset_normalizer import from_bytes
from sqlalchemy import Connection, select, update

from experiment.people.recruitment.codes import (
    OUTCOME_OF_STATE,
    Platform,
    Recruitment,
    Reward,
    code_of,
    code_of_session,
    platforms,
)
from experiment.people.recruitment.return_links import code_when_held, failed_checks
from experiment.store import Store, records
from experiment.store.session_activity import change_session
from experiment.store.tables import people, submissions
from stimuli.corpora.encodings import refuse_other_kinds
from stimuli.errors import UserError

Verdict = Literal["approve", "review", "reject", "settled"]
MARKS: Mapping[str, str] = {
    "paid_without_data": "paid, but without answers here",
    "submission_without_data": "submitted, but without answers here",
    "data_without_submission": "answers here, but no submission",
    "returned": "returned",
    "timed_out": "timed out",
    "awaiting_review": "awaiting review",
    "wrong_code": "another code than the session's",
}


@dataclass(frozen=True)
class FailedCheck:
    """A failed instructed-response check."""

    trial_index: int
    asked: str
    answered: str
    expected: str


@dataclass(frozen=True)
class Line:
    """One person in the platform's list or the store."""

    external_id: str | None
    submission_id: str | None
    session_id: str | None
    reader: str | None
    state: str | None
    status: str | None
    code: str | None
    expected_code: str | None
    minutes: float | None
    minutes_here: float | None
    verdict: Verdict
    trials: int = 0
    planned: int = 0
    marks: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    evidence: tuple[FailedCheck, ...] = ()


@dataclass(frozen=True)
class Report:
    """Comparison of the platform's list with the store."""

    study: str
    platform: str
    imported_at: str | None
    lines: tuple[Line, ...] = field(default=())
    median_minutes: float | None = None
    reward: Reward | None = None
    hourly: Decimal | None = None
    rule: str = ""

    def with_verdict(self, verdict: Verdict) -> list[Line]:
        """Return the lines with a verdict."""
        return [line for line in self.lines if line.verdict == verdict]

    def marked(self, mark: str) -> list[Line]:
        """Return the lines with a mark."""
        return [line for line in self.lines if mark in line.marks]

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        data = asdict(self)
        data["reward"] = None if self.reward is None else str(self.reward)
        data["hourly"] = None if self.hourly is None else float(self.hourly)
        data["counts"] = {mark: len(self.marked(mark)) for mark in MARKS} | {
            verdict: len(self.with_verdict(verdict)) for verdict in ("approve", "review", "reject", "settled")
        }
        return data


ANSWERS = "answer."
INPUTS = "input."
MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class Submission:
    """One person's submission as the platform reports it."""

    external_id: str
    submission_id: str | None
    status: str
    code: str | None
    minutes: float | None


@dataclass(frozen=True)
class Export:
    """The contents of a platform's file."""

    platform: Platform
    rows: tuple[Submission, ...]
    unknown_columns: tuple[str, ...] = ()
    reward: Reward | None = None
    skipped: int = field(default=0)


def read_export(file: Path, *, expected: Platform | None = None) -> Export:
    """Return the contents of a CSV exported by any supported platform."""
    if not file.is_file():
        raise UserError(f"there is no file {file}", mend="Give the CSV that the platform lets you download.")
    if file.stat().st_size > MOST_BYTES:
        raise UserError(f"{file} has more than 50 MB", mend="Give the platform's CSV of submissions.")
    return parse_export(file.read_bytes(), str(file), expected=expected)


def parse_export(contents: bytes, name: str, *, expected: Platform | None = None) -> Export:
    """Return the contents of a platform's CSV; see :func:`read_export`."""
    header, rows = table_of(contents, name)
    platform = _platform_of(header, name, expected)
    assert platform.export is not None
    places = {part: _place(header, columns) for part, columns in platform.export.items()}
    if places["code"] is None:
        answer_columns = [place for place, column in enumerate(header) if _plain(column).startswith(ANSWERS)]
        places["code"] = answer_columns[0] if len(answer_columns) == 1 else None
    read: list[Submission] = []
    skipped = 0
    for number, row in enumerate(rows, start=2):
        cells = {part: None if at is None else row[at].strip() for part, at in places.items()}
        if not cells["external_id"]:
            skipped += 1
            continue
        read.append(
            Submission(
                external_id=cells["external_id"],
                submission_id=cells.get("submission_id") or None,
                status=_status(platform, cells["status"], f"{name}, line {number}"),
                code=cells.get("code") or None,
                minutes=_minutes(cells.get("seconds")),
            )
        )
    if not read:
        raise UserError(f"{name} holds no submissions", mend="Download it again when people have taken part.")
    return Export(platform, tuple(read), _unknown(platform, header), _reward(header, rows), skipped)


def table_of(contents: bytes, name: str) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a CSV, with every row as long as the header."""
    refuse_other_kinds(contents, Path(name))
    text = _text_of(contents)
    first = text.lstrip("\ufeff").splitlines()[0] if text.strip() else ""
    delimiter = max(",;\t", key=first.count)
    table = rows_of_csv(text, name, delimiter)
    if len(table) < 2:
        raise UserError(f"{name} holds no table", mend="Give the CSV that the platform lets you download.")
    header, *rows = table
    return header, [(row + [""] * len(header))[: len(header)] for row in rows]


def rows_of_csv(text: str, name: str, delimiter: str = ",") -> list[list[str]]:
    """Return the non-empty rows of a CSV; zero bytes, which a database cannot store, become U+FFFD."""
    reading = csv.reader(
        io.StringIO(text.replace("\0", "\ufffd"), newline=""), delimiter=delimiter, strict=True
    )
    try:
        return [row for row in reading if any(row)]
    except csv.Error as error:
        mend = "Check the quotation marks up to this line, or save the file as CSV again."
        raise UserError(f"{name}, line {reading.line_num}: {error}", mend=mend) from error


def _text_of(contents: bytes) -> str:
    try:
        return contents.decode("utf-8-sig")
    except UnicodeDecodeError:
        best = from_bytes(contents).best()
        return str(best) if best is not None else contents.decode("cp1252", "replace")


def _plain(column: str) -> str:
    return " ".join(column.strip().lower().split())


def _place(header: Sequence[str], columns: Sequence[str]) -> int | None:
    names = [_plain(column) for column in header]
    return next((names.index(column) for column in columns if column in names), None)


def _platform_of(header: Sequence[str], name: str, expected: Platform | None) -> Platform:
    fitting = [
        platform
        for platform in platforms().values()
        if platform.export is not None
        and _place(header, platform.export["external_id"]) is not None
        and _place(header, platform.export["status"]) is not None
    ]
    if expected is not None and expected in fitting:
        return expected
    if expected is not None and fitting:
        raise UserError(
            f"{name} comes from {fitting[0].name}, and the study recruits from {expected.name}",
            mend="Give that platform's file, or change participants.recruit.",
        )
    if not fitting:
        candidates = [expected] if expected is not None and expected.export else list(platforms().values())
        needed = "; ".join(
            f"{candidate.name}: {candidate.export['external_id'][0]!r} and {candidate.export['status'][0]!r}"
            for candidate in candidates
            if candidate.export is not None
        )
        raise UserError(
            f"{name} is no platform's list of submissions; its columns are {', '.join(header[:12])}",
            mend=f"Columns that are needed: {needed}.",
        )
    return fitting[0]


def _status(platform: Platform, given: str | None, where: str) -> str:
    plain = _plain(given or "")
    if plain in platform.statuses:
        return platform.statuses[plain]
    raise UserError(
        f"{where}: {platform.name} has no status {given!r}",
        mend=f"Known: {', '.join(sorted(status for status in platform.statuses if status))}.",
    )


def _minutes(seconds: str | None) -> float | None:
    try:
        return float(seconds or "") / 60
    except ValueError:
        return None


def _unknown(platform: Platform, header: Sequence[str]) -> tuple[str, ...]:
    assert platform.export is not None
    known = {column for columns in platform.export.values() for column in columns} | set(
        platform.ignored_columns
    )
    return tuple(
        column
        for column in header
        if (plain := _plain(column)) and plain not in known and not plain.startswith((ANSWERS, INPUTS))
    )


def _reward(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Reward | None:
    at = _place(header, ["reward"])
    if at is None:
        return None
    try:
        amount = Decimal(rows[0][at].strip().lstrip("$"))
    except InvalidOperation:
        return None
    return Reward(amount, "USD") if amount.is_finite() and amount > 0 else None


def store_export(connection: Connection, study: str, export: Export) -> tuple[int, int]:
    """Store the submissions of an export; return the numbers of added and updated ones."""
    known: dict[tuple[str, str | None], Any] = {}
    stored = select(submissions).filter_by(study=study, source=export.platform.source)
    for row in connection.execute(stored):
        known[(row.external_id, (row.details or {}).get("submission_id"))] = row
    moment = records.now()
    new = changed = 0
    for submission in export.rows:
        values = {
            "status": submission.status,
            "code": submission.code,
            "details": {"submission_id": submission.submission_id, "minutes": submission.minutes},
            "imported_at": moment,
        }
        before = known.get((submission.external_id, submission.submission_id))
        if before is None:
            names = {"study": study, "source": export.platform.source, "external_id": submission.external_id}
            connection.execute(submissions.insert().values(**names, **values))
            new += 1
            continue
        changed += (before.status, before.code) != (submission.status, submission.code)
        earlier = update(submissions).filter_by(submission_id=before.submission_id)
        connection.execute(earlier.values(**values))
    return new, changed


def stored_submissions(
    connection: Connection, study: str, source: str
) -> tuple[list[Submission], str | None]:
    """Return a study's submissions on a platform as last imported, and the time of that import."""
    query = select(submissions).filter_by(study=study, source=source)
    rows = connection.execute(query.order_by(submissions.c.submission_id)).all()
    submissions_found = [
        Submission(
            external_id=row.external_id,
            submission_id=(row.details or {}).get("submission_id"),
            status=row.status,
            code=row.code,
            minutes=(row.details or {}).get("minutes"),
        )
        for row in rows
    ]
    return submissions_found, max((row.imported_at for row in rows), default=None)


NO_CODE = (None, "", "NOCODE")
PAID = ("approved", "screened_out")


@dataclass(frozen=True)
class ReconciliationResult:
    """Result of an import: submissions added and changed, sessions whose place reopened."""

    new: int
    changed: int
    returned: int
    timed_out: int


def import_submissions(
    store: Store, recruitment: Recruitment, export: Export, *, actor: str
) -> ReconciliationResult:
    """Store a platform's export and reopen the places of those who returned or timed out there."""

    def keep(connection: Connection) -> ReconciliationResult:
        new, changed = store_export(connection, recruitment.study, export)
        theirs = _sessions_of(connection, recruitment.study, export.platform)
        gone = {"returned": 0, "timed_out": 0}
        for submission in export.rows:
            row = theirs.of(submission)
            # a participant who has given every answer keeps the place although the platform's time ran out
            ends = {"returned": ("started", "finished", "timed_out"), "timed_out": ("started",)}
            if row is None or row["state"] not in ends.get(submission.status, ()):
                continue
            reason = f"{submission.status.replace('_', ' ')} on {export.platform.name}"
            change_session(connection, row["session_id"], state=submission.status, ended_reason=reason)
            gone[submission.status] += 1
        done = ReconciliationResult(new, changed, **gone)
        records.add_audit(connection, actor, "reconcile", study=recruitment.study, detail=asdict(done))
        return done

    return store.write(keep).result()


def reconciliation(store: Store, recruitment: Recruitment) -> Report:
    """Compare the submissions that were last imported with the stored sessions."""
    platform = recruitment.platform
    if platform is None or platform.export is None:
        raise UserError(
            f"{recruitment.study} recruits from no platform, so there are no books to compare",
            mend="Set participants.recruit to prolific, sona or mturk.",
        )
    with store.read() as connection:
        given, imported_at = stored_submissions(connection, recruitment.study, platform.source)
        theirs = _sessions_of(connection, recruitment.study, platform)
        median = _median(given, theirs.rows.values())
        minutes = recruitment.minutes or median
        needed = None if platform.checks is None or minutes is None else platform.checks.needed(minutes)
        judge = _Judge(connection, recruitment, platform, needed)
        lines = [judge.submission(submission, theirs.of(submission)) for submission in given]
        matched = {line.session_id for line in lines}
        # before a list is there, no session lacks a submission
        others = [row for row in theirs.rows.values() if row["session_id"] not in matched] if given else []
        lines += [judge.alone(row) for row in others]
    reward = recruitment.reward
    hourly = None
    if reward is not None and median and given:
        hourly = (reward.amount / Decimal(str(median)) * 60).quantize(Decimal("0.01"))
    return Report(
        recruitment.study,
        platform.name,
        imported_at,
        tuple(lines),
        median if given else None,
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
    """Participants' sessions by id, and their ids on the platform."""

    rows: Mapping[str, Mapping[str, Any]]
    by_submission: Mapping[str, str]
    by_person: Mapping[str, Sequence[str]]

    def of(self, submission: Submission) -> Mapping[str, Any] | None:
        """Return the session of a submission: the one with its number, else the person's session with most answers.

        A session with another submission's number belongs to that submission only: a person who returned a place in a pilot on
        the platform still has their session in the study.
        """
        exact = self.by_submission.get(submission.submission_id or "")
        if exact is not None:
            return self.rows[exact]
        others = set(self.by_submission.values()) if submission.submission_id else set()
        theirs = [self.rows[s] for s in self.by_person.get(submission.external_id, ()) if s not in others]
        return max(theirs, key=lambda row: (row["state"] == "finished", row["n_trials"]), default=None)


def _sessions_of(connection: Connection, study: str, platform: Platform) -> _Found:
    rows = {
        row["session_id"]: row | {"external_id": None}
        for row in reversed(records.sessions_overview(connection, study))
        if row["reader_kind"] == "human" and not row["is_pilot"]
    }
    by_submission: dict[str, str] = {}
    by_person: dict[str, list[str]] = {}
    known = select(people.c.external_id, people.c.session_id, people.c.details)
    for external_id, session_id, details in connection.execute(
        known.filter_by(study=study, source=platform.source)
    ):
        if session_id not in rows:
            continue
        rows[session_id]["external_id"] = external_id
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
    theirs = [
        submission.minutes
        for submission in given
        if submission.minutes and submission.status in ("awaiting_review", "approved")
    ]
    ours = [minutes for row in rows if row["state"] == "finished" and (minutes := _minutes_here(row))]
    times = theirs or ours
    return statistics.median(times) if times else None


@dataclass(frozen=True)
class _Judge:
    """Assesses one person after another."""

    connection: Connection
    recruitment: Recruitment
    platform: Platform
    needed: int | None

    def submission(self, submission: Submission, row: Mapping[str, Any] | None) -> Line:
        """Assess a submission and its session, if any."""
        verdict: Verdict = "settled"
        marks: list[str] = []
        reasons: list[str] = []
        evidence: tuple[FailedCheck, ...] = ()
        expected = self._expected(row)
        # a participant with a held session entered another code, which the platform keeps when the session is released
        held = None if row is None else code_when_held(self.platform, str(row["session_id"]))
        is_wrong = (
            row is not None and expected is not None and submission.code not in (*NO_CODE, expected, held)
        )
        if is_wrong:
            marks.append("wrong_code")
            reasons.append(f"entered {submission.code}; the session's code is {expected}")
        if submission.status == "awaiting_review":
            marks.append("awaiting_review")
            verdict, evidence = self._awaiting(submission, row, marks, reasons)
        elif submission.status in PAID:
            if row is None or (row["n_trials"] == 0 and row["state"] not in OUTCOME_OF_STATE):
                marks.append("paid_without_data")
                reasons.append("no session has this id" if row is None else "the session has no answers")
            elif row["held_reason"]:
                reasons.append(f"paid, though held for review: {row['held_reason']}")
            elif row["state"] == "started":
                reasons.append(f"paid at trial {row['n_trials']} of {row['planned_trials']}")
        elif submission.status == "returned":
            marks.append("returned")
            reasons.append("never began here" if row is None else "the place is open again")
        elif submission.status == "timed_out":
            marks.append("timed_out")
            if row is not None and row["state"] == "finished":
                reasons.append("all answers are here: can be paid by hand")
        elif submission.status == "rejected" and row is not None and row["state"] == "finished":
            if self.needed is None or len(self._failed(row)) < self.needed:
                verdict = "review"
                reasons.append("rejected, but all answers are here and the rule on checks is not met")
        elif submission.status == "active" and row is not None and row["state"] == "finished":
            reasons.append("all answers are here; not submitted yet")
        return self._line(submission, row, verdict, marks, reasons, evidence)

    def alone(self, row: Mapping[str, Any]) -> Line:
        """Assess a session without a submission."""
        is_under_way = row["state"] == "started"
        reasons = ["perhaps still under way"] if is_under_way else []
        if row["held_reason"]:
            reasons.append(f"held for review: {row['held_reason']}")
        verdict: Verdict = "review" if row["state"] == "finished" else "settled"
        return self._line(None, row, verdict, ["data_without_submission"], reasons, ())

    def _awaiting(
        self, submission: Submission, row: Mapping[str, Any] | None, marks: list[str], reasons: list[str]
    ) -> tuple[Verdict, tuple[FailedCheck, ...]]:
        if row is None:
            if submission.code is not None and submission.code == code_of(self.recruitment, "no_consent"):
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
        if submission.code in NO_CODE and self.platform.export and self.platform.export["code"]:
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
        failed = failed_checks(self.connection, str(row["session_id"]))
        stored = records.trials_of_session(self.connection, str(row["session_id"])) if failed else ()
        trials_by_index = {trial["trial_index"]: trial for trial in reversed(list(stored))}
        return tuple(
            FailedCheck(
                index,
                " ".join(str(text) for text in (trial["shown"] or {}).values()),
                str(trial["response_raw"] or ""),
                str(trial["answer"] or ""),
            )
            for index in failed
            for trial in [trials_by_index[index]]
        )

    def _line(
        self,
        submission: Submission | None,
        row: Mapping[str, Any] | None,
        verdict: Verdict,
        marks: Sequence[str],
        reasons: Sequence[str],
        evidence: tuple[FailedCheck, ...],
    ) -> Line:
        here: Mapping[str, Any] = {} if row is None else row
        told: Mapping[str, Any] = {} if submission is None else asdict(submission)
        return Line(
            # by which the platform knows the person
            external_id=told.get("external_id", here.get("external_id")),
            submission_id=told.get("submission_id"),
            session_id=here.get("session_id"),
            reader=here.get("reader"),
            state=here.get("state"),
            status=told.get("status"),
            code=told.get("code"),
            expected_code=self._expected(row),
            minutes=told.get("minutes"),
            minutes_here=None if row is None else _minutes_here(row),
            verdict=verdict,
            trials=here.get("n_trials", 0),
            planned=here.get("planned_trials") or 0,
            marks=tuple(marks),
            reasons=tuple(reasons),
            evidence=evidence,
        )


def _unfinished(row: Mapping[str, Any]) -> str:
    state = str(row["state"])
    reasons = {
        "declined": "did not consent: ask for a return",
        "screened_out": "was not eligible: pay as agreed for that, or ask for a return",
        "failed_practice": "did not pass the practice: pay as agreed for that, or ask for a return",
        "failed_comprehension": "did not understand the instructions: pay as agreed for that, or ask for a return",
        "returned": "returned before, submitted now",
        "stopped": f"stopped at trial {row['n_trials']} of {row['planned_trials']} and let us keep the answers: pay in part",
    }
    if state in reasons:
        return reasons[state]
    return f"stopped at trial {row['n_trials']} of {row['planned_trials']}: ask for a return, or pay in part"


APPROVE, REJECT = "Approve", "Reject"


def approve_csv(report: Report, platform: Platform, exported: bytes, name: str) -> str:
    """Return the file for bulk approval.

    Prolific accepts participant ids and SONA survey codes, one per line; MTurk accepts its own file with an x in the column
    Approve. The file rejects nobody: that is left to the person who has read the evidence.
    """
    approved = report.with_verdict("approve")
    if platform.key != "mturk":
        return "".join(f"{line.external_id}\n" for line in approved)
    header, rows = table_of(exported, name)
    names = [column.strip().lower() for column in header]
    numbers = {line.submission_id for line in approved}
    for column in (APPROVE, REJECT):
        if column.lower() not in names:
            header.append(column)
            names.append(column.lower())
            for row in rows:
                row.append("")
    for row in rows:
        if row[names.index("assignmentid")].strip() in numbers:
            row[names.index(APPROVE.lower())] = "x"
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n", quoting=csv.QUOTE_ALL).writerows([header, *rows])
    return text.getvalue()
