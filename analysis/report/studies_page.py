"""A public page of tables and figures made from several studies of one paper: what ``wrods reproduce`` writes of one's own runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from analysis.figures.drawing import Drawing
from analysis.published.reproductions import public_page
from analysis.report.apa_tables import ApaTable, Head

WIDE = (
    "body { max-width: 76rem; } table.flat { font-size: 0.8em; } table.flat td, table.flat th { padding: 0.2em 0.4em; } "
    "th[scope=rowgroup] { font-weight: 600; text-align: left; padding-top: 0.6em !important; }"
)
"""Tables of fifteen columns are seen whole, and the names of studies stand out among their rows."""
NOT_DATA = "Simulated readers and baselines, marked as such, are no data."


@dataclass(frozen=True)
class Page:
    """What a page says before its tables."""

    title: str
    citation: str
    about: str


def write_studies_page(page: Page, found: Sequence[ApaTable | Drawing], folder: Path, version: str) -> Path:
    """Write tables and figures as one page that needs no network, and each as CSV (figures as SVG and PNG) beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in found:
        one.save(folder)
    file = folder / "index.html"
    file.write_text(public_page(page.title, page.citation, _body(page, found, version), WIDE), "utf-8")
    return file


def _body(page: Page, found: Sequence[ApaTable | Drawing], version: str) -> Iterator[Markup]:
    yield Markup("<p>{} {} Made by wrods {}.</p>").format(page.about, NOT_DATA, version)
    for one in found:
        yield _table(one) if isinstance(one, ApaTable) else _figure(one)


def _figure(one: Drawing) -> Markup:
    return Markup(
        "<figure><figcaption>{}</figcaption>{}<p class='note'>{} <a href='{}.png'>PNG</a></p></figure>"
    ).format(one.title, Markup(one.svg), one.note, one.name)


def _table(table: ApaTable) -> Markup:
    heads = Markup("").join(Markup("<th scope='col'>{}</th>").format(one) for one in table.columns)
    rows = []
    for row in table.rows:
        if isinstance(row, Head):
            rows.append(
                Markup("<tr><th scope='rowgroup' colspan='{}'>{}</th></tr>").format(
                    len(table.columns), row[0]
                )
            )
            continue
        first, *rest = row
        cells = Markup("").join(Markup("<td>{}</td>").format(one) for one in rest)
        rows.append(Markup("<tr><th scope='row'>{}</th>{}</tr>").format(first, cells))
    return Markup(
        "<div class='table'><span class='number'>{}</span><span class='name'>{}</span>"
        "<table class='flat'><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        "<p class='note'>{} <a href='{}.csv'>CSV</a></p></div>"
    ).format(_number(table), table.title, heads, Markup("\n").join(rows), table.note, table.name)


def _number(table: ApaTable) -> str:
    """Return the number that the paper gives a table; empty for what it does not have."""
    paper, _, rest = table.name.partition("_")
    number, _, beside = rest.partition("_")
    return f"Table {number}" if paper == "table" and (not beside or beside.isdigit()) else ""
