"""Published tables recomputed from released outputs, cell by cell.

A paper names its function ``reproduce(folder, readings, told, data) -> Reproduction`` (:class:`stimuli.papers.Paper`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pandas as pd
from jinja2 import Environment
from markupsafe import Markup

from analysis import apa
from stimuli.errors import unknown_name
from stimuli.papers import papers

Reading = Callable[[str, Sequence[str]], str]
"""From a raw reply and the options (none if the answer is a text) to the answer read from it; empty if there is none."""


@dataclass(frozen=True)
class PublishedTable:
    """A table laid out as in the paper."""

    number: str
    caption: str
    cells: pd.DataFrame  # text, as printed; the index names the rows


@dataclass(frozen=True)
class ScoringError:
    """An error in the published scoring and its effect."""

    name: str  # letters, digits and underscores; the CSV's name
    title: str
    about: str  # what the code or paper does, what is corrected, and how much it changes, in sentences
    price: pd.DataFrame  # numbers; the index names the rows
    decimals: int = 2

    @property
    def shown(self) -> pd.DataFrame:
        """The price as the page prints it."""
        return self.price.map(lambda x: apa.MISSING if pd.isna(x) else str(apa.number(x, self.decimals)))


@dataclass(frozen=True)
class Reproduction:
    """The content of a reproduction page."""

    paper: str  # ``source`` says what the outputs are and how many
    citation: str
    source: str
    tables: tuple[PublishedTable, ...]
    cells: pd.DataFrame
    faults: tuple[ScoringError, ...]
    lacking: tuple[str, ...] = ()  # what is not made again, and why

    @property
    def unexplained(self) -> int:
        """Number of cells that differ from print for an unknown reason."""
        return int((~self.cells["same"] & ~self.cells["known"]).sum())


def reproduce_paper(
    paper: str,
    folder: Path,
    readings: Mapping[str, Reading],
    told: Callable[[str], None] = lambda _: None,
    data: Mapping[str, Path] = MappingProxyType({}),
) -> Reproduction:
    """Recompute a paper's tables and the effect of its scoring errors."""
    available = {name: spec for name, spec in papers().items() if spec.reproduction}
    if paper not in available:
        raise unknown_name("paper", paper, available)
    reproduction: Reproduction = available[paper].part(available[paper].reproduction)(
        folder, readings, told, data
    )
    return reproduction


STYLE = Path(__file__).parents[1] / "report" / "templates" / "style.css"
OTHER = "td.other { background: #fbf1ec; color: #8a1c00; font-weight: 600; }"
"""How a cell looks that is not the printed one."""


def public_page(title: str, byline: str, body: Iterable[Markup], style: str = "") -> str:
    """Return a whole page."""
    head = Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{}</title>\n'
        "<style>\n{}\n{}</style></head><body>\n<h1>{}</h1><p class='byline'>{}</p>"
    ).format(title, Markup(STYLE.read_text("utf-8")), Markup(style), title, byline)
    return str(Markup("\n").join([head, *body, Markup("</body></html>")])) + "\n"


def write_page(result: Reproduction, folder: Path, version: str) -> Path:
    """Write ``index.html``, and a CSV for each table, the cells and the effect of each error."""
    folder.mkdir(parents=True, exist_ok=True)
    priced = {f"table_{table.number}": table.cells for table in result.tables}
    for name, frame in (priced | {fault.name: fault.price for fault in result.faults}).items():
        frame.to_csv(folder / f"{name}.csv", encoding="utf-8-sig")
    result.cells.to_csv(folder / "cells.csv", index=False, encoding="utf-8-sig")
    template = Path(__file__).with_name("page.html.jinja").read_text("utf-8")
    same = int(result.cells["same"].sum())
    body = Environment(autoescape=True).from_string(template).render(
        made=result, version=version, same=same, known=len(result.cells) - same - result.unexplained,
        count=apa.count, rows_of=_rows, printed_in=_printed,
    )  # fmt: skip
    page = folder / "index.html"
    page.write_text(
        public_page(f"{result.paper}, made again", result.citation, [Markup(body)], OTHER), "utf-8"
    )
    return page


def _rows(cells: pd.DataFrame) -> Iterator[tuple[list[str], Iterable[tuple[object, object]]]]:
    """Yield the names of each row and its values by column, empty where there is none."""
    shown = cells.astype(object).where(cells.notna(), "")
    for key, values in zip(cells.index, shown.itertuples(index=False, name=None), strict=True):
        names = [str(part) for part in (key if isinstance(key, tuple) else (key,))]
        yield names, zip(cells.columns, values, strict=True)


def _printed(cells: pd.DataFrame) -> dict[tuple[str, ...], str]:
    """Return the printed values by model, measure and column."""
    keys = cells[["model", "measure", "column"]].itertuples(index=False, name=None)
    return dict(zip(keys, cells["printed"], strict=True))


def scrambled_bench_tables(
    source: str | Path | pd.DataFrame, *, printed: bool = False
) -> dict[str, pd.DataFrame]:
    """Make Tables 3, 4 and 5 of Cao et al. (2023) from their released outputs; numbers, or ``printed`` text as in the paper."""
    make = papers()["scrambled-bench"].part("chapter.reproduction:released_tables")
    tables: dict[str, pd.DataFrame] = make(source, printed=printed)
    return tables
