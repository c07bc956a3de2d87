"""A public page about a reproduction: one HTML file that needs no network, and its tables as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.published.public_page import public_page
from analysis.published.reproductions import Reproduction


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
