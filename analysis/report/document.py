"""A report as a sequence of headings, paragraphs, lists, tables and figures: what page, Word file and LaTeX file all render.

Every format goes over the same nodes, so that none says more than another. Paragraphs have an anchor by which
``numbers.json`` says where their numbers come from.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape

from analysis import apa
from analysis.report.blocks import marks_of
from analysis.report.methods import METHOD_KEYS, cited_keys, software_references
from analysis.report.numbered import Content, Illustrated, Numbered, Section
from analysis.report.references import Reference, in_order, reference

DESIGN_CHANGED = (
    "The study's design has changed since these answers were collected. Conditions, items and the plan on this page are "
    "those of the study as it is now; what each session was shown is kept with the session in the store."
)
EXPLORATORY = "exploratory"


@dataclass(frozen=True)
class Heading:
    """A heading of level 2 (a part) or 3 (a section), with marks that say what in it is no data."""

    level: int
    text: Markup
    marks: tuple[str, ...] = ()
    anchor: str = ""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph.

    Attributes
    ----------
    text : Markup
        With ``<i>``, ``<b>``, ``<code>``, ``<sub>`` and ``<sup>`` at most.
    kind : {'body', 'warning', 'small', 'reference'}
    anchor : str
        ``p1`` …; empty where it holds no number of the study.
    tables : tuple of int
        Numbers of the tables that hold its numbers.
    models : tuple of int
        Numbers of the models.
    origin : str
        Where else they come from, in words.
    """

    text: Markup
    kind: str = "body"
    anchor: str = ""
    tables: tuple[int, ...] = ()
    models: tuple[int, ...] = ()
    origin: str = ""


@dataclass(frozen=True)
class Bullets:
    """A list, numbered where its order matters."""

    items: tuple[Markup, ...]
    ordered: bool = False


@dataclass(frozen=True)
class Facts:
    """Terms with what is said of each."""

    pairs: tuple[tuple[str, str], ...]


Node = Heading | Paragraph | Bullets | Facts | Numbered | Illustrated


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


def document_of(content: Content, when: datetime) -> Document:
    """Lay out a report's content as a document."""
    dictionary = content.tables.dictionary
    references = _references(content, when)
    nodes = list(_with_anchors(_numbered_paragraphs(_nodes(content, references))))
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


def _nodes(content: Content, references: Sequence[Reference]) -> Iterator[Node]:
    marks = marks_of(tuple(content.kinds), content.kinds)
    yield from _method(content, marks)
    yield Heading(2, Markup("Descriptive results"), marks)
    yield from _descriptive(content)
    yield from _planned(content)
    if content.exploratory:
        yield Heading(2, Markup("Exploratory analyses"))
        yield Paragraph(Markup("These were not planned. Take them as suggestions for a next study."))
        for section in content.exploratory:
            yield from _section(section, content)
    for part in content.chapters:
        yield from _chapter(content, part)
    yield from _recovery(content)
    if references:
        yield Heading(2, Markup("References"), anchor="references")
        for one in references:
            yield Paragraph(one.apa(), "reference")


def _method(content: Content, marks: tuple[str, ...]) -> Iterator[Node]:
    yield Heading(2, Markup("Method"), marks)
    flow = content.flow.number
    for part in content.method:
        yield Heading(3, escape(part.heading))
        for text in part.paragraphs:
            yield Paragraph(
                text, tables=(flow,) if part.heading == "Participants" else (), origin=part.origin
            )
        if part.heading == "Language models" and content.models_table is not None:
            yield content.models_table
    for chapter in content.chapters:
        if chapter.methods:
            yield Heading(3, escape(chapter.chapter.heading))
            for text in chapter.methods:
                yield Paragraph(text, origin=f"settings of the chapter {chapter.chapter.name}")
    yield Heading(3, Markup("In short"))
    items = [("Items", item) for item in [content.items_in_short]]
    yield Facts((*content.readers_in_short, *items))
    yield content.flow


def _descriptive(content: Content) -> Iterator[Node]:
    if not content.descriptives:
        yield Paragraph(Markup("There are no trials to describe yet."))
    for caution in content.cautions:
        yield Paragraph(escape(caution), "warning", tables=(content.flow.number,))
    for remark in content.remarks:
        yield Paragraph(escape(remark))
    yield from content.figures
    yield from content.descriptives


def _planned(content: Content) -> Iterator[Node]:
    yield Heading(2, Markup("Planned analyses"))
    if not content.planned:
        yield Paragraph(Markup("The study planned no analyses. All that follows is exploratory."))
        return
    yield Heading(3, Markup("The plan, and what departs from it"))
    yield from (Paragraph(escape(line)) for line in content.standing.told)
    yield Facts(tuple(content.standing.plans))
    if content.standing.departures:
        yield Paragraph(Markup("Departures from the plan:"))
        yield Bullets(tuple(escape(line) for line in content.standing.departures))
    else:
        yield Paragraph(
            Markup(
                "No departure from the frozen plan is known. Analyses beyond it stand apart as exploratory."
            )
        )
    for section in content.planned:
        yield from _section(section, content)


def _section(section: Section, content: Content) -> Iterator[Node]:
    yield Heading(3, escape(section.heading), section.marks)
    for warning in section.warnings:
        yield Paragraph(Markup("<b>Warning.</b> ") + escape(warning), "warning")
    model = section.analysis.model
    own = content.number_of_fit(None if model is None else model.source)
    tables = (*content.described_in(section.analysis), *(one.number for one in section.tables))
    for text in section.paragraphs:
        yield Paragraph(text, tables=tables, models=own)
    yield from section.tables
    if model is not None and len(model.steps) > 1:
        yield Paragraph(Markup("How the random-effects structure of this model was reduced:"), "small")
        steps = (
            Markup("<code>{}</code>: {} (log-likelihood {})").format(
                s.formula, s.verdict, apa.number(s.loglik)
            )
            for s in model.steps
        )
        yield Bullets(tuple(steps), ordered=True)


def _chapter(content: Content, part: Any) -> Iterator[Node]:
    chapter = part.chapter
    marks = chapter.marks if chapter.planned else (*chapter.marks, EXPLORATORY)
    yield Heading(2, escape(chapter.heading), marks, chapter.name)
    tables = tuple(one.number for one in part.blocks if isinstance(one, Numbered))
    models = tuple(number for one in chapter.fits for number in content.number_of_fit(one.fit))
    for block in part.blocks:
        if isinstance(block, Numbered | Illustrated):
            yield block
        elif block.startswith("<h3>"):
            yield Heading(3, Markup(str(block).removeprefix("<h3>").removesuffix("</h3>")))
        else:
            yield Paragraph(
                block, tables=tables, models=models, origin="" if tables or models else "trials.csv"
            )


def _recovery(content: Content) -> Iterator[Node]:
    if not content.recovery:
        return
    yield Heading(2, Markup("Effects put in and effects recovered"), ("simulated readers: not data",))
    assert content.recovery_table is not None
    yield Paragraph(escape(recovery_words(content)), tables=(content.recovery_table.number,))
    if content.recovery_figure:
        yield content.recovery_figure
    yield content.recovery_table
    for section in content.recovery_sections:
        yield from _section(section, content)


def _references(content: Content, when: datetime) -> list[Reference]:
    """Return what the report cites: software, what the Method names, what chapters name."""
    method = tuple(text for part in content.method for text in part.paragraphs)
    keys = cited_keys(method, METHOD_KEYS)
    keys += [key for part in content.chapters for key in part.chapter.sources]
    keys += ["rcore"] if content.all_fits() else []
    return in_order(
        [*(reference(key) for key in keys), *software_references(content.tables.dictionary, when.year)]
    )


def recovery_words(content: Content) -> str:
    """Say how many of the effects that were put in lie inside their intervals."""
    effects = [one for one in content.recovery if one.covered is not None]
    inside = sum(bool(one.covered) for one in effects)
    return (
        f"Simulated readers were given known effects and went through the same pages, store and models as people. "
        f"{inside} of {apa.counted(len(effects), 'effect')} put in lie inside the 95% interval recovered."
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
