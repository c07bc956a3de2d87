"""Mind Scramble's tables over several studies, a data set or task each, and perception against completion.

``wrods reproduce mind-scramble gsm8k boolq csqa rectify`` makes a page of them, after each study has its report (or an export).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd
from markupsafe import Markup

from analysis import load
from analysis.published.mind_scramble import Values, factor_of, fault_prices, values_of
from analysis.published.public_page import public_page
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.chapters.mind_scramble_tables import (
    edit_table,
    fault_table,
    rank_table,
    reordering_table,
    similarity_of_inputs,
    similarity_table,
)
from stimuli.errors import UserError

TITLE = "Mind Scramble’s tables from these studies"
CITATION = "After Mind Scramble (2024), arXiv:2410.01677."


def tables_together(folders: Sequence[Path], told: Callable[[str], None] = lambda _: None) -> list[ApaTable]:
    """Lay out Tables 1 to 4, ranks and faults over several studies.

    Parameters
    ----------
    folders : sequence of Path
        Studies with a report, or their exports.
    told : callable
        Called with what must be said of a study's tables: that they are older than its store.

    Raises
    ------
    UserError
        A study has none of the paper's operations, or two have the same name.
    """
    completed: list[tuple[str, Values]] = []
    restored: list[tuple[str, Values]] = []
    kinds: dict[str, str] = {}
    prices, near, use = [], [], ""
    for folder in folders:
        tables = load(folder)
        for remark in tables.remarks:
            told(remark)
        factor = factor_of(tables)
        if factor is None:
            raise UserError(
                f"{folder} has none of Mind Scramble's operations",
                mend="Give studies made from the template mind-scramble, whose levels keep their names.",
            )
        name = str(tables.dictionary["study"])
        if any(name == other for other, _ in (*completed, *restored)):
            raise UserError(f"two studies are called {name}", mend="Name each once.")
        kinds |= kinds_of(tables.trials)
        if (values := values_of(tables, factor)) is not None:
            (restored if values.is_restored else completed).append((name, values))
        prices.append(fault_prices(tables))
        if (stored := similarity_of_inputs(tables.folder)) is not None:
            use = stored[0]
            near.append((name, stored[1]))
    found: list[ApaTable] = []
    if completed:
        found += [
            reordering_table("table_1", completed, kinds, number=1),
            edit_table("table_3", completed, kinds),
        ]
    if restored:
        found.append(reordering_table("table_2", restored, kinds, number=2))
    if near:
        found.append(similarity_table("table_4", near, use))
    if len(completed) + len(restored) > 1:
        found.append(rank_table("ranks", [*completed, *restored], kinds))
    together = pd.concat(prices, ignore_index=True) if prices else pd.DataFrame()
    return [*found, fault_table("faults", together, kinds)] if len(together) else found


def write_together(found: Sequence[ApaTable], folder: Path, version: str) -> Path:
    """Write the tables as one page that needs no network, and each as CSV beside it.

    Parameters
    ----------
    found : sequence of ApaTable
        From :func:`tables_together`.
    folder : pathlib.Path
        Made where it is not there; files of an earlier page are overwritten.
    version : str
        Of wrods.

    Returns
    -------
    pathlib.Path
        The page.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for table in found:
        table.save(folder)
    page = folder / "index.html"
    page.write_text(public_page(TITLE, CITATION, _body(found, version)), "utf-8")
    return page


def _body(found: Sequence[ApaTable], version: str) -> Iterator[Markup]:
    yield Markup(
        "<p>Laid out as in the paper; every number is from these studies’ own runs. Made by wrods {}.</p>"
    ).format(version)
    for table in found:
        yield _table(table)


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
        "<div class='table'><span class='name'>{}</span><table class='flat'><thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        "<p class='note'>{} <a href='{}.csv'>CSV</a></p></div>"
    ).format(table.title, heads, Markup("\n").join(rows), table.note, table.name)
