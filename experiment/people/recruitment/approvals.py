"""Makes the file by which a platform is told whom to approve, in the form that the platform takes."""

from __future__ import annotations

import csv
import io

from experiment.people.recruitment.platforms import Platform
from experiment.people.recruitment.reports import Report
from experiment.people.recruitment.submissions import table_of

APPROVE, REJECT = "Approve", "Reject"


def approve_csv(report: Report, platform: Platform, exported: bytes, name: str) -> str:
    """Return the text of the file for approving in bulk.

    Prolific takes participant ids and SONA survey codes, one a line; MTurk takes its own file back with an x in the
    column Approve. Nobody is rejected by it: that is left to whoever read the evidence.
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
