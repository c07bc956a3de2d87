"""Reads a platform's own CSV of submissions and keeps what reconciliation needs of it, the latest import of each.

Only the person's id, the submission's, its status, code and times are kept; whatever else a platform exports about a
person (age, country, approval rate) is left in the file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from charset_normalizer import from_bytes
from sqlalchemy import Connection, select, update

from experiment.people.recruitment.codes import Reward
from experiment.people.recruitment.platforms import Platform, platforms
from experiment.store import records
from experiment.store.tables import submissions
from stimuli.corpora.encodings import refuse_other_kinds
from stimuli.errors import UserError

ANSWERS = "answer."
INPUTS = "input."
MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class Submission:
    """One person's submission as the platform knows it."""

    external_id: str
    submission_id: str | None
    status: str
    code: str | None
    minutes: float | None


@dataclass(frozen=True)
class Export:
    """A platform's file, read."""

    platform: Platform
    rows: tuple[Submission, ...]
    unknown_columns: tuple[str, ...] = ()
    reward: Reward | None = None
    skipped: int = field(default=0)


def read_export(file: Path, *, expected: Platform | None = None) -> Export:
    """Read a CSV that a platform exports, whichever it is."""
    if not file.is_file():
        raise UserError(f"there is no file {file}", mend="Give the CSV that the platform lets you download.")
    if file.stat().st_size > MOST_BYTES:
        raise UserError(f"{file} has more than 50 MB", mend="Give the platform's CSV of submissions.")
    return parse_export(file.read_bytes(), str(file), expected=expected)


def parse_export(contents: bytes, name: str, *, expected: Platform | None = None) -> Export:
    """Read the bytes of a platform's CSV; see :func:`read_export`."""
    header, rows = table_of(contents, name)
    platform = _platform_of(header, name, expected)
    assert platform.export is not None
    places = {part: _place(header, columns) for part, columns in platform.export.items()}
    if places["code"] is None:
        places["code"] = _only_answer(header)
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
                minutes=_minutes(cells),
            )
        )
    if not read:
        raise UserError(f"{name} holds no submissions", mend="Download it again when people have taken part.")
    return Export(platform, tuple(read), _unknown(platform, header), _reward(header, rows), skipped)


def table_of(contents: bytes, name: str) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of a CSV, every row as long as the header."""
    refuse_other_kinds(contents, Path(name))
    text = _text_of(contents)
    first = text.lstrip("\ufeff").splitlines()[0] if text.strip() else ""
    delimiter = max(",;\t", key=first.count)
    table = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if any(row)]
    if len(table) < 2:
        raise UserError(f"{name} holds no table", mend="Give the CSV that the platform lets you download.")
    header, *rows = table
    return header, [(row + [""] * len(header))[: len(header)] for row in rows]


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


def _only_answer(header: Sequence[str]) -> int | None:
    """Return the column of a task's only answer, which is then the code whatever the task calls it."""
    found = [place for place, column in enumerate(header) if _plain(column).startswith(ANSWERS)]
    return found[0] if len(found) == 1 else None


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
        asked = [expected] if expected is not None and expected.export else list(platforms().values())
        needed = "; ".join(
            f"{one.name}: {one.export['external_id'][0]!r} and {one.export['status'][0]!r}"
            for one in asked
            if one.export is not None
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


def _minutes(cells: Mapping[str, str | None]) -> float | None:
    seconds = cells.get("seconds")
    if seconds:
        try:
            return float(seconds) / 60
        except ValueError:
            return None
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
    """Keep the submissions of an export: new ones are added, known ones brought up to date."""
    known: dict[tuple[str, str | None], Any] = {}
    for row in connection.execute(
        select(submissions).where(
            submissions.c.study == study, submissions.c.source == export.platform.source
        )
    ):
        known[(row.external_id, (row.details or {}).get("submission_id"))] = row
    moment = records.now()
    new = changed = 0
    for one in export.rows:
        values = {
            "status": one.status,
            "code": one.code,
            "details": {"submission_id": one.submission_id, "minutes": one.minutes},
            "imported_at": moment,
        }
        before = known.get((one.external_id, one.submission_id))
        if before is None:
            names = {"study": study, "source": export.platform.source, "external_id": one.external_id}
            connection.execute(submissions.insert().values(**names, **values))
            new += 1
            continue
        changed += (before.status, before.code) != (one.status, one.code)
        connection.execute(
            update(submissions).where(submissions.c.submission_id == before.submission_id).values(**values)
        )
    return new, changed


def stored_submissions(
    connection: Connection, study: str, source: str
) -> tuple[list[Submission], str | None]:
    """Return a study's submissions on a platform as last imported, and when that was."""
    rows = connection.execute(
        select(submissions)
        .where(submissions.c.study == study, submissions.c.source == source)
        .order_by(submissions.c.submission_id)
    ).all()
    found = [
        Submission(
            external_id=row.external_id,
            submission_id=(row.details or {}).get("submission_id"),
            status=row.status,
            code=row.code,
            minutes=(row.details or {}).get("minutes"),
        )
        for row in rows
    ]
    return found, max((row.imported_at for row in rows), default=None)
