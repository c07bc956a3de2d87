"""A public page of tables and figures from several studies of one paper, as ``wrods reproduce`` writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from analysis.figures.drawing import Drawing
from analysis.report.apa_tables import ApaTable
from analysis.reproductions import public_page

WIDE = (
    "body { max-width: 76rem; } table.flat { font-size: 0.8em; } table.flat td, table.flat th { padding: 0.2em 0.4em; } "
    "th[scope=rowgroup] { font-weight: 600; text-align: left; padding-top: 0.6em !important; }"
)
"""Tables of fifteen columns are seen whole, and the names of studies stand out among their rows."""


@dataclass(frozen=True)
class Page:
    """The text before the tables of a page."""

    title: str
    citation: str
    about: str


def write_studies_page(
    page: Page, exhibits: Sequence[ApaTable | Drawing], folder: Path, version: str
) -> Path:
    """Write tables and figures as one page that needs no network, and each separately as CSV (figures as SVG and PNG)."""
    folder.mkdir(parents=True, exist_ok=True)
    for exhibit in exhibits:
        exhibit.save(folder)
    file = folder / "index.html"
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    body = environment.get_template("studies.html.jinja").render(page=page, found=exhibits, version=version)
    file.write_text(public_page(page.title, page.citation, [Markup(body)], WIDE), "utf-8")
    return file
