"""Says each thing once and in words: names without underscores, notes that do not repeat notes, long tables in their files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from markupsafe import Markup

from analysis import apa
from analysis.names import in_words
from analysis.report.apa_tables import Head
from analysis.report.inline import with_symbols
from analysis.report.nodes import Bullets, Facts, Filed, Heading, Node, Paragraph
from analysis.report.numbered import Illustrated, Numbered

LONGEST = 24
"""Tables of more rows than this stand in their files alone; no journal would print them."""
_SENTENCE = re.compile(r"(?<=[.;])(?<!vs\.)(?<!al\.) (?=[A-Z]|n =|p |d′)")
_POINTS_BACK = re.compile(r"(It|Its|They|Their)\b")
_CODE = re.compile(r"(<code>.*?</code>|<[^>]+>)")
_FORMULA = re.compile(r"([\w.]+ ~ [^;]+)")
_NO_INTERVAL = re.compile(rf", 9\d%[ \u00a0]CI[ \u00a0]{apa.MISSING}(?=[,;.:)]| \()")
WITHOUT_WIDTH = (
    "An en dash in place of an interval: nothing varies there, so that nothing tells of other cases."
)
"""What a table says of intervals whose ends are the same."""


def in_plain_words(nodes: Iterable[Node], names: Iterable[str]) -> Iterator[Node]:
    """Write names of factors, levels and measures as words wherever they stand in running text, tables and notes.

    Parameters
    ----------
    nodes : iterable of Node
    names : iterable of str
        Names that the study gave; formulas in ``<code>`` keep them, names of models are not among them.
    """
    known = sorted({name for name in names if "_" in name}, key=len, reverse=True)
    if not known:
        yield from nodes
        return
    known += [f"{name[0].upper()}{name[1:]}" for name in known if name[0].islower()]
    pattern = re.compile(rf"(?<![\w/])({'|'.join(map(re.escape, known))})(?![\w/])")

    def said(text: str) -> str:
        return pattern.sub(lambda found: in_words(found.group()), text)

    for node in nodes:
        yield _said(node, said)


def _said(node: Node, said: Callable[[str], str]) -> Node:
    def marked(text: Markup) -> Markup:
        parts = _CODE.split(str(text))
        return Markup("".join(part if _CODE.fullmatch(part) else said(part) for part in parts))

    if isinstance(node, Heading | Paragraph):
        return replace(node, text=marked(node.text))
    if isinstance(node, Bullets):
        return replace(node, items=tuple(marked(one) for one in node.items))
    if isinstance(node, Facts):
        return replace(
            node, pairs=tuple((said(name), _beside_formulas(words, said)) for name, words in node.pairs)
        )
    if isinstance(node, Numbered):
        return replace(node, table=node.table.reworded(said))
    if isinstance(node, Filed):
        return replace(node, shown=replace(node.shown, table=node.shown.table.reworded(said)))
    if isinstance(node, Illustrated):
        drawing = node.drawing
        worded = replace(drawing, title=said(drawing.title), note=said(drawing.note))
        return replace(node, drawing=replace(worded, alternative=said(drawing.alternative)))
    return node


def _beside_formulas(words: str, said: Callable[[str], str]) -> str:
    """Reword plain text and leave its formulas as they are: a name in one is that of a column."""
    parts = _FORMULA.split(words)
    return "".join(part if _FORMULA.fullmatch(part) else said(part) for part in parts)


def with_missing_intervals_told(nodes: Iterable[Node]) -> Iterator[Node]:
    """Say below a table that an interval is missing where nothing varies, and leave it unmentioned in running text."""
    for node in nodes:
        if isinstance(node, Numbered) and any(
            _is_without_width(one) for row in node.table.rows for one in row
        ):
            note = f"{node.table.note} {WITHOUT_WIDTH}".strip()
            yield replace(node, table=replace(node.table, note=note))
        elif isinstance(node, Paragraph):
            yield replace(node, text=Markup(_NO_INTERVAL.sub("", str(node.text))))
        else:
            yield node


def _is_without_width(cell: str) -> bool:
    values = cell.values if isinstance(cell, apa.Written) and cell.endswith(apa.MISSING) else ()
    return len(values) > 1 and apa.without_width(*values[-2:])


def with_symbols_set(nodes: Iterable[Node]) -> Iterator[Node]:
    """Set the statistical symbols of running text in italics."""
    for node in nodes:
        if isinstance(node, Paragraph):
            yield replace(node, text=with_symbols(str(node.text)))
        elif isinstance(node, Bullets):
            yield replace(node, items=tuple(with_symbols(str(one)) for one in node.items))
        else:
            yield node


def without_repeated_remarks(nodes: Iterable[Node], names: Iterable[str]) -> Iterator[Node]:
    """Leave out of body text each general sentence that was said before.

    General is what holds no number, no markup, none of the study's own names and does not begin with a pronoun for one of them;
    such a sentence says how something is to be read, and once is enough. Warnings are kept.

    Parameters
    ----------
    nodes : iterable of Node
    names : iterable of str
        Of factors, levels and readers.
    """
    own = re.compile("|".join([r"\d", "<", *(rf"\b{re.escape(name)}\b" for name in names if name)]))
    told: set[str] = set()
    for node in nodes:
        if not isinstance(node, Paragraph) or node.kind not in ("body", "small"):
            yield node
            continue
        kept = []
        for sentence in _SENTENCE.split(str(node.text)):
            if sentence in told:
                continue
            if own.search(sentence) is None and not _POINTS_BACK.match(sentence) and sentence.endswith("."):
                told.add(sentence)
            kept.append(sentence)
        if kept:
            yield replace(node, text=Markup(" ".join(kept)))


def without_repeated_notes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Leave out of each note the sentences that an earlier note has said, and name the table or figure that did."""
    told: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, Numbered):
            note = _shortened(node.table.note, f"Table {node.number}", told)
            yield replace(node, table=replace(node.table, note=note))
        elif isinstance(node, Illustrated):
            note = _shortened(node.drawing.note, f"Figure {node.number}", told)
            yield replace(node, drawing=replace(node.drawing, note=note))
        else:
            yield node


def _shortened(note: str, here: str, told: dict[str, str]) -> str:
    kept, elsewhere = [], []
    for sentence in _SENTENCE.split(note.strip()) if note.strip() else []:
        if sentence in told:
            elsewhere.append(told[sentence])
        else:
            told[sentence] = here
            kept.append(sentence)
    if elsewhere:
        where = " and ".join(dict.fromkeys(elsewhere))
        kept.append(f"See also the note of {where}." if kept else f"See the note of {where}.")
    return " ".join(kept)


def with_long_tables_filed(nodes: Iterable[Node]) -> Iterator[Node]:
    """Put in the place of a table of more than ``LONGEST`` rows, or that a figure shows, a line that says where it lies.

    Tables laid out as those of a paper that the study copies are what its reader looks for, and stay.
    """
    for node in nodes:
        rows = sum(not isinstance(row, Head) for row in node.table.rows) if isinstance(node, Numbered) else 0
        if isinstance(node, Numbered) and (node.table.drawn or (rows > LONGEST and not node.table.of_paper)):
            yield Filed(node, rows)
        else:
            yield node
