"""Papers whose released outputs give their tables again, and the public page about a reproduction.

A further paper is a module with ``reproduce(folder, readings, told, data) -> Reproduction`` and a line in :data:`PAPERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from stimuli.errors import unknown_name

PAPERS = {"scrambled-bench": ".scrambled_bench"}
"""Module of this package by the name that a user gives."""

Reading = Callable[[str, Sequence[str]], str]
"""From a raw reply and the options (none where a text is asked for) to what is read from it; empty where nothing is."""


@dataclass(frozen=True)
class PublishedTable:
    """A table laid out as in the paper."""

    number: str
    caption: str
    cells: pd.DataFrame  # text, as printed; the index names the rows


@dataclass(frozen=True)
class Fault:
    """A fault of the published scoring and what it is worth."""

    name: str  # letters, digits and underscores; the CSV's name
    title: str
    about: str  # what the code or paper does, what is mended, and how much it changes, in sentences
    price: pd.DataFrame  # numbers; the index names the rows
    decimals: int = 2


@dataclass(frozen=True)
class Reproduction:
    """What a page shows."""

    paper: str  # ``source`` says what the outputs are and how many
    citation: str
    source: str
    tables: tuple[PublishedTable, ...]
    cells: pd.DataFrame
    faults: tuple[Fault, ...]
    lacking: tuple[str, ...] = ()  # what is not made again, and why

    @property
    def unexplained(self) -> int:
        """How many cells differ from print that are not known to."""
        return int((~self.cells["same"] & ~self.cells["known"]).sum())


def reproduce_paper(
    paper: str,
    folder: Path,
    readings: Mapping[str, Reading],
    told: Callable[[str], None] = lambda _: None,
    data: Mapping[str, Path] = MappingProxyType({}),
) -> Reproduction:
    """Make a paper's tables again and price its faults."""
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    module: Any = import_module(PAPERS[paper], __package__)
    made: Reproduction = module.reproduce(folder, readings, told, data)
    return made


STYLE = Path(__file__).parents[1] / "report" / "templates" / "style.css"


def public_page(title: str, byline: str, body: Iterable[Markup], style: str = "") -> str:
    """Return a whole page."""
    rules = STYLE.read_text("utf-8")
    head = Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{}</title>\n'
        "<style>\n{}\n{}</style></head><body>\n<h1>{}</h1><p class='byline'>{}</p>"
    ).format(title, Markup(rules), Markup(style), title, byline)
    return str(Markup("\n").join([head, *body, Markup("</body></html>")])) + "\n"


def write_page(made: Reproduction, folder: Path, version: str) -> Path:
    """Write ``index.html`` and a CSV for each table, the cells and the price of each fault."""
    folder.mkdir(parents=True, exist_ok=True)
    for table in made.tables:
        _save(table.cells, folder / f"table_{table.number}.csv")
    made.cells.to_csv(folder / "cells.csv", index=False, encoding="utf-8-sig")
    for fault in made.faults:
        _save(fault.price, folder / f"{fault.name}.csv")
    page = folder / "index.html"
    page.write_text(
        public_page(f"{made.paper}, made again", made.citation, _body(made, version), OTHER), "utf-8"
    )
    return page


def _save(frame: pd.DataFrame, file: Path) -> None:
    frame.to_csv(file, encoding="utf-8-sig")


OTHER = "td.other { background: #fbf1ec; color: #8a1c00; font-weight: 600; }"
"""How a cell looks that is not the printed one."""


def _body(made: Reproduction, version: str) -> Iterator[Markup]:
    same, many = int(made.cells["same"].sum()), len(made.cells)
    yield Markup("<p>{} <strong>{} of {} cells are those in print.</strong> Made by wrods {}.</p>").format(
        made.source, apa.count(same), apa.count(many), version
    )
    known = many - same - made.unexplained
    if known:
        yield Markup("<p>{} of the others are known not to come from the released answers.</p>").format(
            apa.count(known)
        )
    yield Markup("<h2>Tables</h2>")
    for table in made.tables:
        own = made.cells[made.cells["table"] == table.number]
        printed = {
            (str(one["model"]), str(one["measure"]), str(one["column"])): str(one["printed"])
            for one in own.to_dict("records")
        }
        told = (
            f"{apa.count(int(own['same'].sum()))} of {apa.count(len(own))} cells are those in print"
            + ("." if own["same"].all() else "; the others are marked, with the printed value in brackets.")
            if len(own)
            else "The paper prints none of these models."
        )
        yield _table(
            f"Table {table.number}", table.caption, table.cells, told, f"table_{table.number}.csv", printed
        )
    yield Markup("<h2>What each fault is worth</h2>")
    for number, fault in enumerate(made.faults, 1):
        yield Markup("<h3>{}. {}</h3><p>{}</p>").format(number, fault.title, fault.about)
        shown = fault.price.map(lambda value, places=fault.decimals: _number(value, places))
        yield _table(f"Price {number}", "", shown, "", f"{fault.name}.csv", {})
    if made.lacking:
        yield Markup("<h2>What is not here</h2><ul>")
        for one in made.lacking:
            yield Markup("<li>{}</li>").format(one)
        yield Markup("</ul>")
    yield Markup(
        "<footer>Files beside this page: cells.csv (every cell beside the printed one), a CSV for each table.</footer>"
    )


def _number(value: object, places: int) -> str:
    number = float(str(value))
    return apa.MISSING if number != number else str(apa.number(number, places))


def _table(
    number: str,
    caption: str,
    cells: pd.DataFrame,
    note: str,
    file: str,
    printed: dict[tuple[str, str, str], str],
) -> Markup:
    names = [str(name) for name in cells.index.names]
    head = Markup("").join(
        Markup("<th scope='col'>{}</th>").format("" if name == "None" else name.capitalize())
        for name in names
    ) + Markup("").join(Markup("<th scope='col'>{}</th>").format(column) for column in cells.columns)
    rows, last = [], ""
    for key, values in zip(cells.index, cells.itertuples(index=False, name=None), strict=True):
        parts = [str(one) for one in (key if isinstance(key, tuple) else (key,))]
        first, *rest = parts
        line = Markup("<tr><th scope='row'>{}</th>").format("" if first == last else first)
        line += Markup("").join(Markup("<td>{}</td>").format(one) for one in rest)
        for column, value in zip(cells.columns, values, strict=True):
            there = printed.get((parts[0], parts[-1], str(column)))
            if there is None or there == value:
                line += Markup("<td>{}</td>").format("" if pd.isna(value) else value)
            else:
                line += Markup("<td class='other'>{} ({})</td>").format(value, there)
        rows.append(line + Markup("</tr>"))
        last = first
    return Markup(
        "<div class='table'><span class='number'>{}</span><span class='name'>{}</span><table class='flat'><thead><tr>{}</tr></thead>"
        "<tbody>{}</tbody></table><p class='note'>{} <a href='{}'>CSV</a></p></div>"
    ).format(number, caption, head, Markup("\n").join(rows), escape(note), file)
