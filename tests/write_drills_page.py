"""Writes docs/drills.md from the rows that the drills are held against: ``python -m tests.write_drills_page``."""

from __future__ import annotations

from pathlib import Path

from tests.experiment.people.drills import rows

PAGE = Path(__file__).resolve().parent.parent / "docs" / "drills.md"
HEAD = """\
# Drills

Made from `tests/experiment/people/drills.json` by `python -m tests.write_drills_page`; do not edit by hand.

Each row is a fault that a test makes while people answer at a real `wrods serve`, with a real database. An answer is *confirmed*
when the server told the page that it is stored. It is *lost* unless the store holds it exactly once afterwards, byte for byte as
the page sent it. The tests compare what they count with this table. Unless a row says otherwise, eight participants give 20
answers each, sent as the page in the browser sends them: again after no reply, and after one that promises better times.

<!-- not run: it takes the tests' environment and some minutes -->
```sh
make test-full
```

"""
FOOT = """

A disk that is destroyed takes with it what no other disk and no open page holds: the answers of those who finished since the
newest backup. Backups are made every hour, when the server starts and when it ends; `wrods serve --backup-to DIR` puts them on
another disk as well, as long as it is attached.

A database restored from a backup does not know the sessions that began after it. Their pages say at the end that the answers are
not confirmed, and offer a copy to send to you; `wrods import` refuses it, because the session's plan is lost.

A clock that was set back leaves backups with dates in the future. They count as older than the others, and push none of these
out.
"""


def drills_page() -> str:
    """Return the page as Markdown."""
    table = [
        "| fault | how | what was observed | confirmed | lost | test |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows():
        file, _, name = row["test"].partition("::")
        told = f"[`{name}`](../{file})"
        cells = (row["fault"], row["how"], row["observed"], str(row["confirmed"]), str(row["lost"]), told)
        table.append(f"| {' | '.join(cells)} |")
    return HEAD + "\n".join(table) + FOOT


if __name__ == "__main__":
    PAGE.write_text(drills_page(), "utf-8")
