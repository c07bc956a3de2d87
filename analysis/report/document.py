"""A report as a sequence of headings, paragraphs, lists, tables and figures: what page, Word file and LaTeX file all render.

Every format goes over the same nodes, so that none says more than another. Paragraphs have an anchor by which
``numbers.json`` says where their numbers come from.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from markupsafe import Markup

from analysis.report.inline import plain_text, with_symbols
from analysis.report.layout import SENTENCES
from analysis.report.method import software_references
from analysis.report.nodes import Bullets, Heading, Node, Paragraph, PlannedFinding
from analysis.report.numbering import Illustrated, Numbered, ReportContent, in_order
from analysis.report.reading_order import manuscript, running_text, supplement
from analysis.report.references import Reference, cited_in
from analysis.report.references import in_order as sorted_references


@dataclass(frozen=True)
class Document:
    """A whole report."""

    title: str
    byline: Markup
    banner: tuple[str, ...]
    warnings: tuple[str, ...]
    nodes: tuple[Node, ...]
    supplement: tuple[Node, ...]
    references: tuple[Reference, ...]

    @property
    def all_nodes(self) -> tuple[Node, ...]:
        """The manuscript's nodes and the supplement's."""
        return (*self.nodes, *self.supplement)

    @property
    def parts(self) -> tuple[Heading, ...]:
        """The headings of level 2, each with its anchor, and the supplement's of level 3: the table of contents."""
        headings = [node for node in self.nodes if isinstance(node, Heading) and node.level == 2]
        more = [
            node for node in self.supplement if isinstance(node, Heading) and node.level < 4 and node.anchor
        ]
        return (*headings, *more)


def of_printed(nodes: Sequence[Node], sources: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the sources of the tables among some nodes, by their number, in order."""
    printed = {node.number for node in nodes if isinstance(node, Numbered)}
    return sorted(
        (source for source in sources.items() if source[0] in printed), key=lambda source: in_order(source[0])
    )


def document_of(content: ReportContent, when: datetime) -> Document:
    """Lay out a report's content as a document."""
    dictionary = content.tables.dictionary
    nodes, remaining = manuscript(content)
    cited = sorted_references([*_cited_by(nodes), *software_references(dictionary)])
    nodes += _list_of_references(Heading(2, Markup("References"), anchor="references"), cited)
    more = supplement(content, remaining)
    further = _cited_by(more)
    more += _list_of_references(
        Heading(3, Markup("References of the supplement"), anchor="more-references"), further
    )
    marked_nodes = list(_marked([*nodes, *more]))
    stamp = when.strftime("%-d %B %Y, %H:%M" if platform.system() != "Windows" else "%d %B %Y, %H:%M")
    stamped = {"study": str(dictionary["study"]), "versions": dictionary["versions"] or [], "stamp": stamp}
    facts = {"kinds": set(content.kinds.values()), "has_people": content.has_people}
    return Document(
        title=str(dictionary["title"] or dictionary["study"]),
        byline=SENTENCES.sentences("byline", **stamped),
        banner=SENTENCES.paragraphs("banner", **facts),
        warnings=SENTENCES.paragraphs("design_changed") if content.tables.design_changed else (),
        nodes=tuple(marked_nodes[: len(nodes)]),
        supplement=tuple(marked_nodes[len(nodes) :]),
        references=tuple(sorted_references([*cited, *further])),
    )


def _marked(nodes: Iterable[Node]) -> Iterator[Node]:
    """Set the statistical symbols of running text in italics, and give each part and each paragraph with numbers its anchor."""
    number = 0
    for node in nodes:
        if isinstance(node, Paragraph):
            node = replace(node, text=with_symbols(str(node.text)))
        elif isinstance(node, Bullets):
            node = replace(node, items=tuple(with_symbols(str(item)) for item in node.items))
        elif isinstance(node, Heading) and node.level == 2 and not node.anchor:
            node = replace(node, anchor="-".join(["part", *plain_text(node.text).lower().split()]))
        if isinstance(node, PlannedFinding) or (
            isinstance(node, Paragraph) and (node.tables or node.models or node.origin)
        ):
            number += 1
            node = replace(node, anchor=f"p{number}")
        yield node


def _cited_by(nodes: Sequence[Node]) -> list[Reference]:
    """Return the references that running text, tables and notes cite, in the order of a list."""
    texts = list(running_text(nodes))
    for node in nodes:
        if isinstance(node, Numbered):
            rows = (node.table.columns, *node.table.rows)
            texts += [node.table.title, node.table.note, *(str(cell) for row in rows for cell in row)]
        elif isinstance(node, Illustrated):
            texts += [node.drawing.title, node.drawing.note]
    return sorted_references(cited_in("\n".join(texts)))


def _list_of_references(heading: Heading, references: Sequence[Reference]) -> list[Node]:
    return [heading, *(Paragraph(entry.apa(), "reference") for entry in references)] if references else []
