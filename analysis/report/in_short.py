"""The first thing that a report says: who answered, what the planned comparisons found, and what to distrust."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from markupsafe import Markup, escape

from analysis import apa
from analysis.readers import named
from analysis.report.differences import level_of, told_after
from analysis.report.felt import felt, p_said
from analysis.report.many_conditions import crowds, of_many_conditions
from analysis.report.many_levels import MOST_TOLD
from analysis.report.many_readers import of_many, runs
from analysis.report.nodes import Paragraph
from analysis.report.numbered import Content, Section
from analysis.report.verdicts import outcome, verdict
from analysis.results import Analysis, Contrast

MOST_FINDINGS = 6
"""So many comparisons, or several of models that came to the same, are told; tables hold the others."""
FEW_MODELS = 8
"""No claim is made about models in general from fewer."""
MANY_MISSING = 0.05
"""A reader with a greater share of answers that could not be scored is named."""


def in_short(content: Content) -> Iterator[Paragraph]:
    """Write the paragraphs of the part that opens a report.

    Parameters
    ----------
    content : Content
    """
    yield Paragraph(escape(_who(content)), tables=(content.flow.number,))
    yield from _findings(content)
    doubts = list(_doubts(content))
    if doubts:
        yield Paragraph(Markup(" ").join(escape(one) for one in doubts), tables=(content.flow.number,))


def _who(content: Content) -> str:
    tables = content.tables
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    if used.empty:
        return "No trial can be analysed yet."
    told = []
    for group, one, several in (
        ("human", "person", "people"),
        ("simulated", "simulated reader", "simulated readers"),
    ):
        many = int(used.loc[used["reader_group"] == group, "reader"].nunique())
        told += [apa.worded(many, one, several)] if many else []
    for kind, noun in (("model", "language model"), ("baseline", "baseline")):
        names = [
            name
            for name, own in content.kinds.items()
            if own == kind and (used["reader_group"] == name).any()
        ]
        told += [f"{apa.worded(len(names), noun)} ({apa.listing(names)})"] if names else []
    shown = {
        name: [level for level in levels if (used[name] == level).any()]
        for name, levels in tables.factors.items()
    }
    factors = apa.listing([f"{name} ({_levels(levels)})" for name, levels in shown.items() if levels])
    absent = [
        f"no trial of {name} {apa.listing(without)} could be analysed"
        for name, levels in tables.factors.items()
        if (without := [level for level in levels if level not in shown[name]])
    ]
    lacking = f" N{apa.listing(absent)[1:]}." if absent else ""
    where = f", shown in conditions of {factors}" if factors else ""
    items = apa.worded(int(used["item_id"].nunique()), "item")
    trials = apa.worded(len(used), "trial")
    return f"The {trials} analysed are answers of {apa.listing(told)} to {items}{where}.{lacking}"


def _levels(levels: Sequence[str]) -> str:
    """Name the levels of a factor; of many the first and the last."""
    many = len(levels) > MOST_TOLD
    return f"{len(levels)} conditions, {levels[0]} to {levels[-1]}" if many else ", ".join(levels)


@dataclass(frozen=True)
class _Finding:
    """A comparison with the analysis that it is told of, and the same comparison in analyses planned after that one."""

    place: int
    section: Section
    contrast: Contrast
    again: tuple[tuple[Section, Contrast], ...] = ()

    @property
    def sections(self) -> tuple[Section, ...]:
        """All analyses that made it."""
        return (self.section, *(section for section, _ in self.again))


def _findings(content: Content) -> Iterator[Paragraph]:
    """Write a paragraph for each difference between conditions: of each reader, and between readers."""
    sections = content.planned or content.exploratory
    found = _each_once(sections)
    if not found:
        yield Paragraph(Markup("No comparison between conditions could be tested."))
        return
    if not content.planned:
        yield Paragraph(Markup("No analysis was planned, so that all results are exploratory."))
    crowded, found = crowds(found, lambda one: one.contrast, lambda one: one.section)
    headings = {one.section.heading for crowd in crowded for one in crowd}
    begun: set[str] = set()
    for crowd in crowded:
        yield _crowd(crowd, content, is_headed=bool(found) or len(headings) > 1)
        begun.add(crowd[0].section.heading)
    order = {id(section): place for place, section in enumerate(sections)}
    told = sorted(_parted(found, content.kinds), key=lambda run: run[0].place)[:MOST_FINDINGS]
    told.sort(key=lambda run: order[id(run[0].section)])
    several = len(headings | {run[0].section.heading for run in told}) > 1
    for (heading, _), own in groupby(told, key=lambda run: (run[0].section.heading, run[0].contrast.label)):
        together = list(own)
        findings = [one for run in together for one in run]
        is_headed = several or findings[0].section.analysis.plan.subset
        said = [Markup("<i>{}.</i>").format(heading)] if is_headed and heading not in begun else []
        begun.add(heading)
        of = {id(section) for one in findings for section in one.sections}
        involved = [section for section in sections if id(section) in of]
        yield Paragraph(
            Markup(" ").join([*said, *(part for run in together for part in _told(run, content.kinds))]),
            tables=tuple(one.number for section in involved for one in section.tables),
            models=tuple(number for section in involved for number in _models(section, content)),
        )
    others = len(found) - sum(len(run) for run in told)
    if others:
        further = apa.worded(others, "further comparison").capitalize()
        yield Paragraph(escape(f"{further} {'is' if others == 1 else 'are'} reported below."))


def _crowd(found: Sequence[_Finding], content: Content, *, is_headed: bool) -> Paragraph:
    """Write what the differences of many conditions from one reference come to, and where a later analysis finds otherwise."""
    section = found[0].section
    analysis, heading = section.analysis, section.heading
    said = of_many_conditions(
        [one.contrast for one in found], analysis, content.kinds, lambda one: _in_brackets(one, analysis)
    )
    again: dict[str, list[bool]] = {}
    for one in found:
        for other, contrast in one.again:
            first, second = (
                outcome(own, by.analysis.plan.alpha)
                for own, by in ((one.contrast, section), (contrast, other))
            )
            again.setdefault(other.heading, []).append(first == second)
    for name, same in again.items():
        many = apa.counted(len(same), "difference")
        said += escape(
            f" The analysis {name} comes to the same in {'all' if all(same) else f'{sum(same)} of'} {many}."
        )
    involved = [section, *{id(other): other for one in found for other, _ in one.again}.values()]
    return Paragraph(
        Markup("<i>{}.</i> {}").format(heading, said) if is_headed or analysis.plan.subset else said,
        tables=tuple(one.number for each in involved for one in each.tables),
        models=tuple(number for each in involved for number in _models(each, content)),
    )


def _parted(found: Sequence[_Finding], kinds: dict[str, str]) -> Iterator[list[_Finding]]:
    """Put together what models have in common in one difference of one analysis."""
    alike: dict[tuple[int, str], list[_Finding]] = {}
    for one in found:
        alike.setdefault((id(one.section), one.contrast.label), []).append(one)
    for own in alike.values():
        alpha = own[0].section.analysis.plan.alpha
        yield from runs(own, lambda one: one.contrast, kinds, alpha, alone=lambda one: bool(one.again))


def _each_once(sections: Sequence[Section]) -> list[_Finding]:
    """Return every comparison that could be tested, once also where two analyses make it."""
    found: dict[tuple[object, ...], _Finding] = {}
    for section in sections:
        analysis = section.analysis
        plan = analysis.plan
        for place, label in enumerate(dict.fromkeys(one.label for one in analysis.contrasts)):
            for contrast in analysis.contrasts:
                if contrast.label != label or not contrast.estimable:
                    continue
                key = (plan.measure.name, plan.factor, plan.trials, plan.within, label, contrast.groups)
                first = found.get(key)
                found[key] = (
                    _Finding(place, section, contrast)
                    if first is None
                    else replace(first, again=(*first.again, (section, contrast)))
                )
    return list(found.values())


def _told(run: Sequence[_Finding], kinds: dict[str, str]) -> Iterator[Markup]:
    """Say a comparison, and what the same one is in other analyses; or what several have in common."""
    one = run[0]
    analysis = one.section.analysis
    if len(run) > 1:
        yield of_many([each.contrast for each in run], analysis, kinds)
        return
    yield _finding(one.contrast, analysis, kinds)
    for section, other in one.again:
        yield escape(_likewise(one.contrast, analysis, other, section)) + _in_brackets(
            other, section.analysis
        )


def _likewise(first: Contrast, analysis: Analysis, other: Contrast, section: Section) -> str:
    """Say whether another analysis comes to the same."""
    both = [each.p_adjusted < own.plan.alpha for each, own in ((first, analysis), (other, section.analysis))]
    name = f"the analysis {section.heading}"
    if both == [True, True]:
        same = (first.estimate < 0) == (other.estimate < 0)
        return (
            f"{name[0].upper()}{name[1:]} finds the same" if same else f"In {name} it is the other way round"
        )
    if both == [False, False]:
        return f"Nor is it significant in {name}"
    return f"In {name} it is {'' if both[1] else 'not '}significant"


def _models(section: Section, content: Content) -> tuple[int, ...]:
    model = section.analysis.model
    return content.number_of_fit(None if model is None else model.source)


def _finding(one: Contrast, analysis: Analysis, kinds: dict[str, str]) -> Markup:
    """Say one comparison with the size of its effect, its interval and p."""
    said = escape(verdict([one], analysis, kinds)) + _in_brackets(one, analysis)
    return said + escape(told_after(one, analysis))


def _in_brackets(one: Contrast, analysis: Analysis) -> Markup:
    """Write the end of a sentence: the size of an effect and its p."""
    size = felt([one], analysis.plan.measure)
    return Markup(" ({}, {} {}, {}).").format(
        size.size, level_of(analysis), size.interval, p_said(one.p_adjusted)
    )


def _doubt(section: Section) -> str:
    """Say what is to be distrusted in a model; empty for nothing."""
    model = section.analysis.model
    if not section.analysis.has_results:
        return "Nothing could be estimated for {}."
    if model is None or section.analysis.companion is not None:
        return ""
    if not model.converged:
        return "The fit of {} did not converge; its numbers are not to be trusted."
    return "The fit of {} is singular, so that its intervals may be too narrow." if model.singular else ""


def _doubts(content: Content) -> Iterator[str]:
    """Say what limits these results, the gravest first."""
    yield from content.cautions
    found: dict[str, list[str]] = {}
    for section in (*content.planned, *(() if content.planned else content.exploratory)):
        found.setdefault(_doubt(section), []).append(section.heading)
    for doubt, headings in found.items():
        if doubt:
            yield doubt.format(
                f"the {'analysis' if len(headings) == 1 else 'analyses'} {apa.listing(headings)}"
            )
    if content.standing.departures:
        many = apa.worded(len(content.standing.departures), "departure")
        yield f"{many[0].upper()}{many[1:]} from the plan {'is' if len(content.standing.departures) == 1 else 'are'} listed below."
    trials = content.tables.trials
    used = trials[trials["excluded_reason"].isna()]
    for group, own in used.groupby("reader_group", sort=False):
        lost = float((own["response_status"] != "valid").mean())
        if lost > MANY_MISSING and content.kinds.get(str(group)) != "baseline":
            yield f"Of the answers of {named(str(group), content.kinds)}, {apa.percent(lost)} could not be scored and count as wrong."
    models = used.loc[used["reader_kind"] == "model", "reader_group"].nunique()
    if 0 < models < FEW_MODELS:
        yield f"With {apa.worded(models, 'language model')}, nothing is said about language models in general."
