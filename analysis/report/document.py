"""A report as a sequence of headings, paragraphs, lists, tables and figures: what page, Word file and LaTeX file all render.

Every format goes over the same nodes, so that none says more than another. Paragraphs have an anchor by which
``numbers.json`` says where their numbers come from.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from markupsafe import Markup

from analysis.plan import PLANNABLE, RATING
from analysis.readers import headed, spoken
from analysis.report.methods import METHOD_KEYS, cited_keys, software_references
from analysis.report.nodes import Bullets, Facts, Filed, Heading, Node, Paragraph
from analysis.report.numbered import Content, Numbered
from analysis.report.reading_order import in_reading_order
from analysis.report.references import Reference, in_order, reference
from analysis.report.wording import (
    in_plain_words,
    with_long_tables_filed,
    with_missing_intervals_told,
    with_symbols_set,
    without_repeated_notes,
    without_repeated_remarks,
)

DESIGN_CHANGED = (
    "The study's design has changed since these answers were collected. Conditions, items and the plan on this page are "
    "those of the study as it is now; what each session was shown is kept with the session in the store."
)
__all__ = ["Bullets", "Document", "Facts", "Filed", "Heading", "Node", "Paragraph", "banner", "document_of"]


@dataclass(frozen=True)
class Document:
    """A whole report.

    Attributes
    ----------
    title, byline : str
    banner : tuple of str
        What must be said on every page: which readers are not data.
    warnings : tuple of str
    nodes : tuple of Node
    references : tuple of Reference
        What is cited, in order.
    """

    title: str
    byline: Markup
    banner: tuple[str, ...]
    warnings: tuple[str, ...]
    nodes: tuple[Node, ...]
    references: tuple[Reference, ...]

    @property
    def parts(self) -> tuple[Heading, ...]:
        """The headings of level 2, each with its anchor: the table of contents."""
        return tuple(one for one in self.nodes if isinstance(one, Heading) and one.level == 2)

    def of_printed(self, sources: Mapping[int, str]) -> list[tuple[int, str]]:
        """Return what is said of the tables that stand in the text, by their number, in order; the rest lie in files."""
        printed = {one.number for one in self.nodes if isinstance(one, Numbered)}
        return [(number, words) for number, words in sorted(sources.items()) if number in printed]


def document_of(content: Content, when: datetime) -> Document:
    """Lay out a report's content as a document."""
    dictionary = content.tables.dictionary
    references = _references(content, when)
    names = list(_names(content))
    laid = with_long_tables_filed(in_reading_order(content, references))
    laid = without_repeated_notes(with_missing_intervals_told(laid))
    said = in_plain_words(without_repeated_remarks(laid, [*names, *_readers(content)]), names)
    nodes = list(_with_anchors(_numbered_paragraphs(with_symbols_set(said))))
    versions = (
        f", version {', '.join(str(one) for one in dictionary['versions'])}" if dictionary["versions"] else ""
    )
    stamp = when.strftime("%-d %B %Y, %H:%M" if platform.system() != "Windows" else "%d %B %Y, %H:%M")
    return Document(
        title=str(dictionary["title"] or dictionary["study"]),
        byline=Markup("Study <code>{}</code>{}. Report of {}.").format(dictionary["study"], versions, stamp),
        banner=tuple(banner(content.kinds, content.has_people)),
        warnings=(DESIGN_CHANGED,) if content.tables.design_changed else (),
        nodes=tuple(nodes),
        references=tuple(references),
    )


def _names(content: Content) -> Iterator[str]:
    """Yield the names that a study gave to its factors and their levels, and those of measures."""
    for factor, levels in content.tables.factors.items():
        yield factor
        yield from (str(level) for level in levels)
    yield from (*PLANNABLE, RATING.name)


def _readers(content: Content) -> Iterator[str]:
    """Yield readers as sentences name them."""
    for group in content.kinds:
        yield from (group, spoken(group), headed(group))


def _numbered_paragraphs(nodes: Iterator[Node]) -> Iterator[Node]:
    """Give each paragraph that holds numbers its anchor."""
    number = 0
    for node in nodes:
        if isinstance(node, Paragraph) and (node.tables or node.models or node.origin):
            number += 1
            yield replace(node, anchor=f"p{number}")
        else:
            yield node


def _with_anchors(nodes: Iterator[Node]) -> Iterator[Node]:
    """Give each part that has no anchor of its own one made of its heading, for the table of contents."""
    for node in nodes:
        if isinstance(node, Heading) and node.level == 2 and not node.anchor:
            words = Markup(node.text).striptags().lower().split()
            yield replace(node, anchor="part-" + "-".join(words))
        else:
            yield node


def _references(content: Content, when: datetime) -> list[Reference]:
    """Return what the report cites: software, what the Method names, what chapters name."""
    method = tuple(text for part in content.method for text in part.paragraphs)
    keys = cited_keys(method, METHOD_KEYS)
    keys += [key for part in content.chapters for key in part.chapter.sources]
    keys += ["rcore"] if content.all_fits() else []
    return in_order(
        [*(reference(key) for key in keys), *software_references(content.tables.dictionary, when.year)]
    )


def banner(kinds: dict[str, str], has_people: bool) -> list[str]:
    """Say at the head of the report which readers are not data, and whether any are."""
    told = []
    present = set(kinds.values())
    if "simulated" in present:
        told.append(
            "This report holds simulated readers. Their answers and times were generated by wrods from known effects; they "
            "are not data and nothing here says anything about people."
            if not has_people
            else "This report holds simulated readers beside people. Simulated answers and times were generated by wrods "
            "from known effects; they are not data."
        )
    if "baseline" in present:
        told.append(
            "Baseline readers (random answers, fixed answers, the answer key) are yardsticks, not data."
        )
    return told
