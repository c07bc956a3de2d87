"""The order in which a report is read: in short, Method, planned results, exploratory results, references, supplement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from analysis import apa
from analysis.report.blocks import marks_of
from analysis.report.in_short import in_short
from analysis.report.nodes import SUPPLEMENT, Bullets, Facts, Heading, Node, Paragraph
from analysis.report.numbered import Content, Illustrated, Numbered, NumberedChapter, Section
from analysis.report.references import Reference

NOT_PLANNED = "These analyses were not planned; they suggest hypotheses and test none."
FINDINGS_OF_SIMULATED = ("simulated readers: not data",)


def in_reading_order(content: Content, references: Sequence[Reference]) -> Iterator[Node]:
    """Return the nodes of a report in the order of reading; paragraphs have no anchors yet.

    Parameters
    ----------
    content : Content
    references : sequence of Reference
        What is cited, in order.
    """
    marks = marks_of(tuple(content.kinds), content.kinds)
    yield Heading(2, Markup("In short"), marks, "in-short")
    yield from in_short(content)
    yield from _method(content)
    yield from _planned(content, marks)
    yield from _exploratory(content)
    yield from _recovery(content)
    if references:
        yield Heading(2, Markup("References"), anchor="references")
        for one in references:
            yield Paragraph(one.apa(), "reference")
    yield from _supplement(content)


def _method(content: Content) -> Iterator[Node]:
    yield Heading(2, Markup("Method"))
    flow = content.flow.number
    for part in content.method:
        yield Heading(3, escape(part.heading))
        for text in part.paragraphs:
            yield Paragraph(
                text, tables=(flow,) if part.heading == "Participants" else (), origin=part.origin
            )
        if part.heading == "Language models" and content.models_table is not None:
            yield content.models_table
    yield content.flow


def _planned(content: Content, marks: tuple[str, ...]) -> Iterator[Node]:
    yield Heading(2, Markup("Planned results" if content.planned else "Results"), marks)
    if not (content.descriptives or content.further_tables):
        yield Paragraph(Markup("There are no trials to describe yet."))
    for remark in content.remarks:
        yield Paragraph(escape(remark))
    if content.planned:
        yield from _plan(content)
    else:
        yield Paragraph(Markup("The study planned no analyses. All that follows is exploratory."))
    if content.descriptives or content.figures:
        yield Heading(3, Markup("Means"))
        yield Paragraph(escape(_where_means_are(content)))
        yield from content.descriptives
        yield from content.figures
    for section in content.planned:
        yield from _section(section, content)
    for part in content.chapters:
        if part.chapter.planned:
            yield from _chapter(content, part)


def _where_means_are(content: Content) -> str:
    tables = _numbered("Table", [one.number for one in content.descriptives])
    figures = _numbered("Figure", [one.number for one in content.figures])
    verb = "shows" if len(content.descriptives) + len(content.figures) == 1 else "show"
    return f"{apa.listing([one for one in (tables, figures) if one])} {verb} the means of each reader in each condition."


def _numbered(noun: str, numbers: Sequence[int]) -> str:
    """Name tables or figures by number: ``Table 3``, ``Figures 1 to 3``."""
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f"{noun} {numbers[0]}"
    between = " and " if len(numbers) == 2 else " to "
    return f"{noun}s {numbers[0]}{between}{numbers[-1]}"


def _plan(content: Content) -> Iterator[Node]:
    standing = content.standing
    yield Heading(3, Markup("The plan, and what departs from it"))
    if standing.told:
        yield Paragraph(escape(" ".join(standing.told)))
    yield Facts(tuple(standing.plans))
    if standing.departures:
        yield Paragraph(Markup("The study departed from the plan as follows."))
        yield Bullets(tuple(escape(line) for line in standing.departures))
    else:
        yield Paragraph(Markup("No departure from the frozen plan is known."))


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


def _exploratory(content: Content) -> Iterator[Node]:
    chapters = [one for one in content.chapters if not one.chapter.planned and not one.chapter.supplement]
    if not content.exploratory and not chapters:
        return
    yield Heading(2, Markup("Exploratory results"))
    yield Paragraph(Markup(NOT_PLANNED))
    for section in content.exploratory:
        yield from _section(section, content)
    for part in chapters:
        yield from _chapter(content, part)


def _chapter(content: Content, part: NumberedChapter) -> Iterator[Node]:
    chapter = part.chapter
    yield Heading(3, escape(chapter.heading), chapter.marks, chapter.name)
    if chapter.supplement:
        yield from _chapter_methods(part)
    tables = tuple(one.number for one in part.blocks if isinstance(one, Numbered))
    models = tuple(number for one in chapter.fits for number in content.number_of_fit(one.fit))
    for block in part.blocks:
        if isinstance(block, Numbered | Illustrated):
            yield block
        elif block.startswith("<h3>"):
            yield Heading(4, Markup(str(block).removeprefix("<h3>").removesuffix("</h3>")))
        else:
            yield Paragraph(
                block, tables=tables, models=models, origin="" if tables or models else "trials.csv"
            )


def _chapter_methods(part: NumberedChapter) -> Iterator[Node]:
    for text in part.methods:
        yield Paragraph(text, "small", origin=f"settings of the chapter {part.chapter.name}")


def _recovery(content: Content) -> Iterator[Node]:
    if not content.recovery:
        return
    yield Heading(2, Markup("Effects put in and effects recovered"), FINDINGS_OF_SIMULATED)
    assert content.recovery_table is not None
    yield Paragraph(escape(recovery_words(content)), tables=(content.recovery_table.number,))
    if content.recovery_figure:
        yield content.recovery_figure
    yield content.recovery_table


def recovery_words(content: Content) -> str:
    """Say how many of the effects that were put in lie inside their intervals."""
    effects = [one for one in content.recovery if one.covered is not None]
    inside = sum(bool(one.covered) for one in effects)
    return (
        "Simulated readers with known effects went through the same pages, store, and models as people. "
        f"{inside} of {apa.counted(len(effects), 'effect')} put in lie inside the 95% interval recovered."
    )


def _supplement(content: Content) -> Iterator[Node]:
    sections = list(_supplementary(content))
    if sections:
        yield Heading(2, Markup("Supplement"), anchor=SUPPLEMENT)
        yield from sections


def _supplementary(content: Content) -> Iterator[Node]:
    told = [one for one in content.chapters if not one.chapter.supplement and one.methods]
    if told:
        yield Heading(3, Markup("Methods of the exploratory analyses"))
        for part in told:
            for place, text in enumerate(part.methods):
                head = Markup("<b>{}.</b> ").format(part.chapter.heading) if place == 0 else Markup("")
                yield Paragraph(head + text, "small", origin=f"settings of the chapter {part.chapter.name}")
    if content.further_tables or content.further_figures:
        yield Heading(3, Markup("Means of other measures and conditions"))
        yield from content.further_tables
        yield from content.further_figures
    reduced = [one for one in content.sections if one.analysis.model and len(one.analysis.model.steps) > 1]
    if reduced:
        yield Heading(3, Markup("Reduction of random effects"))
        for section in reduced:
            yield from _steps(section)
    for section in content.recovery_sections:
        yield from _section(section, content)
    for part in content.chapters:
        if part.chapter.supplement:
            yield from _chapter(content, part)


def _steps(section: Section) -> Iterator[Node]:
    model = section.analysis.model
    assert model is not None
    yield Paragraph(Markup("<b>{}.</b>").format(section.heading), "small")
    steps = (
        Markup("<code>{}</code>: {} (log-likelihood {})").format(
            step.formula, step.verdict, apa.number(step.loglik)
        )
        for step in model.steps
    )
    yield Bullets(tuple(steps), ordered=True)
