"""A report as headings, paragraphs, lists, tables and figures, in reading order: what page, Word file and LaTeX file all render.

Every format goes over the same nodes, so that none says more than another. Paragraphs have an anchor by which
``numbers.json`` says where their numbers come from.

The manuscript (Method and Results) has a budget of words: planned analyses that do not fit go into the supplement whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeVar

from markupsafe import Markup, escape

from analysis.apa import day
from analysis.figures import Drawing
from analysis.names import plain
from analysis.parameter_recovery import RECOVERY_OF
from analysis.readers import spoken
from analysis.report.answer import answer
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import marks_of
from analysis.report.grades import CONTRADICTED, FRAGILE, grade_of
from analysis.report.inline import plain_text, with_symbols
from analysis.report.layout import SENTENCES
from analysis.report.method import software_references
from analysis.report.nodes import SUPPLEMENT, Bullets, Facts, Heading, Node, Paragraph, PlannedFinding
from analysis.report.numbering import (
    MANUSCRIPT,
    MOST_WORDS,
    Illustrated,
    Numbered,
    NumberedChapter,
    ReportContent,
    Section,
    in_order,
    place_of,
)
from analysis.report.numbering import SUPPLEMENT as IN_SUPPLEMENT
from analysis.report.references import Reference, cited_in
from analysis.report.references import in_order as sorted_references

NOT_PLANNED = "These analyses were not planned and need confirmation in new data."
SIMULATED = ("simulated readers: not data",)
Shown = TypeVar("Shown", Numbered, Illustrated, Numbered | Illustrated)


def manuscript(content: ReportContent) -> tuple[list[Node], list[Section]]:
    """Return the nodes of Answer, Method and Results, and the planned analyses that did not fit."""
    marks = marks_of(tuple(content.kinds), content.kinds)
    nodes: list[Node] = [Heading(2, Markup("Answer"), anchor="answer")]
    nodes += answer(content, _recovered(content) if content.recovery else "")
    body = list(_method(content))
    results, left = _results(content, marks, MOST_WORDS - words_in(body))
    return [*nodes, *body, *results], left


def words_in(nodes: Iterable[Node]) -> int:
    """Count the words of running text."""
    return sum(len(text.split()) for text in running_text(nodes))


def running_text(nodes: Iterable[Node]) -> Iterator[str]:
    """Yield the texts of some nodes without markup, tables and figures left out."""
    for node in nodes:
        if isinstance(node, Heading | Paragraph | PlannedFinding):
            yield plain_text(node.text)
        elif isinstance(node, Bullets):
            yield from map(plain_text, node.items)
        elif isinstance(node, Facts):
            yield from (plain_text(str(text)) for pair in node.pairs for text in pair)


def _method(content: ReportContent) -> Iterator[Node]:
    yield Heading(2, Markup("Method"))
    for part in content.method:
        yield Heading(3, escape(part.heading))
        for text in part.paragraphs:
            tables = (content.flow.number,) if part.heading == "Participants" else ()
            yield Paragraph(text, tables=tables, origin=part.origin)
        if part.heading == "Language models" and content.models_table is not None:
            yield from _here([content.models_table])
    if content.planned:
        yield Heading(3, Markup("Planned analyses"))
        yield Facts(tuple(content.standing.plans))
        if content.standing.departures:
            yield Paragraph(Markup("The study or its analysis differs from the plan as follows."))
            yield Bullets(tuple(escape(line) for line in content.standing.departures))


def _here(shown: Iterable[Shown], place: str = MANUSCRIPT) -> Iterator[Shown]:
    """Yield what has its place in the manuscript, or in the supplement."""
    return (exhibit for exhibit in shown if place_of(exhibit.number)[0] == place)


def _results(content: ReportContent, marks: tuple[str, ...], most: int) -> tuple[list[Node], list[Section]]:
    """Lay out the Results within a number of words; return also the analyses that are left for the supplement."""
    nodes: list[Node] = [Heading(2, Markup("Results"), marks)]
    sections = content.planned or content.exploratory
    facts = {"remarks": content.remarks, "planned": content.planned}
    has_trials = bool(content.descriptives or content.further_tables)
    nodes += map(Paragraph, SENTENCES.paragraphs("results", has_trials=has_trials, **facts))
    contrasts = content.answer_excerpt or content.answer_table
    exhibits: dict[str, list[str]] = {
        "contrasts": [table.number for table in _here([contrasts] if contrasts else [])],
        "means": [table.number for table in _here(content.descriptives)],
        "figures": [figure.number for figure in _here(content.figures)],
    }
    if any(exhibits.values()):
        whole = content.answer_table if content.answer_excerpt is not None else None
        numbered = [content.answer_excerpt, whole] if whole is not None else []
        values = {
            "planned": content.planned,
            "all_in": whole.number if whole is not None else "",
            "contrasts_of": [
                sum(not isinstance(row, Head) for row in one.table.rows)
                for one in numbered
                if one is not None
            ],
        }
        nodes.append(Paragraph(SENTENCES.sentences("exhibits", **values, **exhibits)))
    remaining: list[Section] = []
    for section in sections:
        section_nodes = list(_section(section, content))
        fits = words_in([*nodes, *section_nodes]) <= most
        if fits or section is sections[0]:
            nodes += section_nodes
        else:
            remaining.append(section)
    if remaining:
        names = [section.analysis.plan.name for section in remaining]
        nodes.append(Paragraph(SENTENCES.sentences("left", names=names)))
    nodes += _here(content.descriptives)
    nodes += _here(content.figures[1:])
    return nodes, remaining


def _section(section: Section, content: ReportContent) -> Iterator[Node]:
    yield Heading(3, escape(section.heading), section.marks)
    for warning in section.warnings:
        yield Paragraph(warning, "warning")
    fit_numbers = tuple(
        number for subsection in section.each for number in content.number_of_fit(subsection.analysis.fit)
    )
    described = (
        number for subsection in section.each for number in content.described_in(subsection.analysis)
    )
    tables = (*dict.fromkeys(described), *(table.number for table in section.tables))
    for text in section.paragraphs:
        yield Paragraph(text, tables=tables, models=fit_numbers)
    tentative = [
        f"{contrast.label} ({' vs. '.join(map(spoken, contrast.groups))})"
        for part in section.each
        for contrast in part.analysis.contrasts
        if grade_of(contrast, part.analysis, content.matrix) in (FRAGILE, CONTRADICTED)
    ]
    if tentative:
        text = SENTENCES.sentences("tentative", names=list(dict.fromkeys(tentative)))
        yield Paragraph(text, tables=tables, models=fit_numbers)


def _recovered(content: ReportContent) -> Markup:
    """State how many of the simulated effects lie inside their intervals."""
    checked = [effect.covered for effect in content.recovery if effect.covered is not None]
    others = [effect for effect in content.recovery if effect.covered is None and effect.low is not None]
    unconverged = sum(not effect.converged for effect in others)
    return SENTENCES.sentences(
        "recovered",
        inside=sum(map(bool, checked)),
        all=len(checked),
        unconverged=unconverged,
        without=len(others) - unconverged,
        unfitted=list(
            dict.fromkeys(
                section.analysis.plan.name.removeprefix(RECOVERY_OF)
                for section in content.recovery_sections
                if not section.analysis.has_results and section.analysis.plan.crossing is None
            )
        ),
    )


def supplement(content: ReportContent, left: Sequence[Section]) -> list[Node]:
    """Return the nodes of the supplement."""
    first = [chapter for chapter in content.chapters if chapter.chapter.name == "robustness"]
    nodes = [node for part in first for node in _chapter(content, part)]
    if not content.flow.refused:
        nodes += [Heading(3, Markup("Sessions and trials"), anchor="flow"), content.flow]
    if content.models_table is not None and not content.models_table.refused:
        nodes += _here([content.models_table], IN_SUPPLEMENT)
    nodes += [*_models(content, left), *_means(content), *_explored(content), *_recovery(content)]
    nodes += _in_files(content)
    return [Heading(2, Markup("Supplement"), anchor=SUPPLEMENT), *nodes] if nodes else []


def _models(content: ReportContent, left: Sequence[Section]) -> Iterator[Node]:
    """Yield the models behind the results: what the manuscript left, tables, and the steps by which random effects were reduced."""
    for section in content.planned or content.exploratory:
        behind = list(_behind(section))
        if section in left:
            yield from _section(section, content)
        elif behind:
            name = section.heading if section.parts else f"Model: {section.analysis.plan.name}"
            yield Heading(3, escape(name), section.marks)
        yield from behind


def _behind(section: Section) -> Iterator[Node]:
    """Yield the printed tables of a section and of its parts, with the steps by which random effects were reduced."""
    yield from _printed(section.tables)
    for part in section.each:
        steps = list(_steps(part))
        if section.parts and steps:
            yield Heading(4, escape(part.heading))
        yield from [*(_printed(part.tables) if section.parts else ()), *steps]


def _means(content: ReportContent) -> Iterator[Node]:
    tables = [*content.descriptives, *content.further_tables]
    figures = [*content.figures, *content.further_figures]
    shown: list[Numbered | Illustrated] = [*_here(tables, IN_SUPPLEMENT), *_here(figures, IN_SUPPLEMENT)]
    if shown:
        yield Heading(3, Markup("Further means"), anchor="further-means")
        yield from shown


def _explored(content: ReportContent) -> Iterator[Node]:
    for index, section in enumerate(content.exploratory if content.planned else ()):
        yield from _section(section, content)
        if index == 0:
            yield Paragraph(Markup(NOT_PLANNED))
        yield from _behind(section)
    for part in content.chapters:
        if part.chapter.name != "robustness":
            yield from _chapter(content, part)


def _chapter(content: ReportContent, part: NumberedChapter) -> Iterator[Node]:
    chapter = part.chapter
    yield Heading(3, escape(chapter.heading), chapter.marks, chapter.name)
    if part.question:
        yield Paragraph(
            Markup("<b>{}</b>{}").format(part.question, "" if chapter.planned else " Exploratory.")
        )
    tables = tuple(block.number for block in part.blocks if isinstance(block, Numbered))
    models = tuple(number for fit in chapter.fits for number in content.number_of_fit(fit.fit))
    for block in part.blocks:
        if isinstance(block, Numbered | Illustrated):
            yield from _printed([block])
        elif block.startswith("<h3>"):
            yield Heading(4, Markup(str(block).removeprefix("<h3>").removesuffix("</h3>")))
        else:
            yield Paragraph(
                block, tables=tables, models=models, origin="" if tables or models else "trials.csv"
            )
    for text in part.methods:
        yield Paragraph(text, "small", origin=f"settings of the chapter {chapter.name}")


def _printed(shown: Iterable[Numbered | Illustrated]) -> Iterator[Numbered | Illustrated]:
    return (exhibit for exhibit in shown if not exhibit.refused)


def _recovery(content: ReportContent) -> Iterator[Node]:
    if not content.recovery or content.recovery_table is None:
        return
    # without simulated readers, it is of the lapses of a baseline
    marks = SIMULATED if "simulated" in content.kinds.values() else ()
    yield Heading(3, Markup("Parameter recovery"), marks, "recovery")
    text = SENTENCES.sentences("recovery", recovered=_recovered(content), kinds=content.kinds)
    yield Paragraph(text, tables=(content.recovery_table.number,))
    figure = [content.recovery_figure] if content.recovery_figure else []
    yield from _printed([*figure, content.recovery_table])
    fitted = [section for section in content.recovery_sections if section.analysis.has_results]
    if fitted:
        yield Paragraph(SENTENCES.sentences("models_of_recovery", many=len(fitted)))
    for section in fitted:
        yield from [*_section(section, content), *_behind(section)]


def _in_files(content: ReportContent) -> Iterator[Node]:
    """List what is in files only, with the reason."""
    shown: list[tuple[str, Numbered | Illustrated, ApaTable | Drawing, str]] = [
        *(("Table", table, table.table, "tables/{}.csv") for table in content.all_tables()),
        *(("Figure", figure, figure.drawing, "figures/{}.svg") for figure in content.all_figures()),
    ]
    line = Markup("<b>{} {}.</b> {}: {}. <code>{}</code>")
    items = [
        line.format(word, exhibit.number, body.title, exhibit.refused, file.format(body.name))
        for word, exhibit, body, file in shown
        if exhibit.refused
    ]
    if items:
        yield Heading(3, Markup("Tables and figures in files"), anchor="in-files")
        yield Bullets(tuple(items))


def _steps(section: Section) -> Iterator[Node]:
    """Yield the steps to a model, with the table of which they are: analyses may share a model."""
    model = section.analysis.model
    is_first = any(
        f"_model_{plain(section.analysis.plan.name)}" in table.table.name for table in section.tables
    )
    if model is None or model.runs_away or len(model.steps) < 2 or not is_first:
        return
    yield Heading(4, Markup("Reduction of random effects"))
    steps = tuple(SENTENCES.sentences("step", step=step) for step in model.steps)
    yield Bullets(steps, ordered=True)


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
    running_head: str = ""  # which readers are not data

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
    stamp = f"{day(when.isoformat())}, {when:%H:%M}"
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
        running_head=str(SENTENCES.sentences("running_head", **facts)),
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
