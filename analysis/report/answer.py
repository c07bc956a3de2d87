"""The Answer: each planned question in one sentence with its certainty, one figure, one table, and what limits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.departures import why_no_bound
from analysis.descriptives import Cell
from analysis.random_structure import MODELS_FOR_A_CLAIM
from analysis.readers import is_several, listed, named
from analysis.report.apa_tables import ApaTable, Head, as_percent
from analysis.report.chapters.robustness import contrast_in_words
from analysis.report.felt import ODDS, PERCENT, POINTS, felt
from analysis.report.grades import (
    CLEAR,
    CONTRADICTED,
    EQUIVALENT,
    FRAGILE,
    OPEN,
    SUPPORTED,
    grade_of,
    support_of,
)
from analysis.report.many_levels import MOST_TOLD
from analysis.report.model_tables import origin_of_contrasts
from analysis.report.nodes import Facts, Finding, Node, Paragraph
from analysis.report.numbered import Content, Section
from analysis.report.results import crowds, of_many_conditions, words_of_direction
from analysis.results import Analysis, Contrast
from analysis.robustness.matrix import Checked, Matrix

MOST_FINDINGS = 6
"""Questions that are answered in sentences; the table has the others."""
LONGEST_TABLE = 48
"""Rows above which the table of contrasts is in its file only, so that the Answer takes two pages."""
MOST_SINGLY = 2
"""Models whose comparison with people is a question of its own; more are summed up in one sentence."""
MANY_MISSING = 0.05
"""A reader with a greater share of answers that could not be scored is named."""


def answer(content: Content, recovered: str) -> Iterator[Node]:
    """Write the Answer."""
    sections = content.planned or content.exploratory
    findings = list(_findings(content, sections))
    if not findings:
        yield Paragraph(Markup("No comparison between conditions could be tested."))
    elif not content.planned:
        yield Paragraph(Markup("No analysis was planned, so all results are exploratory."))
    yield from findings[:MOST_FINDINGS]
    if len(findings) > MOST_FINDINGS and content.answer_table is not None:
        further = apa.worded(len(findings) - MOST_FINDINGS, "further answer").capitalize()
        yield Paragraph(escape(f"{further}: see Table {content.answer_table.number}."))
    yield from content.figures[:1]
    if content.answer_table is not None:
        many = len(content.answer_table.table.rows)
        if many <= LONGEST_TABLE:
            yield content.answer_table
        else:
            yield Paragraph(
                escape(f"Table {content.answer_table.number} has every contrast ({many} rows, in its file).")
            )
    yield Facts(tuple(_limits(content, sections, recovered)))


def _findings(content: Content, sections: Sequence[Section]) -> Iterator[Finding]:
    for section in sections:
        crowded, others = crowds(section.analysis.contrasts)
        for crowd in crowded:
            yield _of_crowd(crowd, section, content)
        rest = [one for one in others if not one.left_out]
        for label in dict.fromkeys(one.label for one in rest):
            yield from _of_label([one for one in rest if one.label == label], section, content)


def _of_label(found: Sequence[Contrast], section: Section, content: Content) -> Iterator[Finding]:
    """Answer for participants, then whether each model differs from them; without participants, for the models."""
    kinds = content.kinds
    people = [one for one in found if not one.between and is_several(one.groups[0], kinds)]
    between = [one for one in found if one.between]
    models = [one for one in found if not one.between and kinds.get(one.groups[0]) == "model"]
    for some in (people, between if people else [*models, *between]):
        if len(some) <= MOST_SINGLY or some is people:
            yield from (_finding(one, section, content) for one in some)
        else:
            yield _together(some, section, content)


def _finding(one: Contrast, section: Section, content: Content) -> Finding:
    analysis, checked = section.analysis, _checked(one, content.matrix)
    grade = grade_of(one, analysis, checked)
    text = Markup("This cannot be estimated from these data.")
    if one.estimable:
        opening = grade.opening or "This remains open:"
        text = Markup("<b>{}</b> {}.").format(
            opening, _size(one, section, content.kinds, told=bool(grade.opening))
        )
    question = _asked(one, analysis, content.kinds)
    return Finding(
        _of_trials(question, analysis), text, grade.word, support_of(checked), *_sources(section, content)
    )


def _size(one: Contrast, section: Section, kinds: dict[str, str], *, told: bool) -> str:
    """Return direction and size of a difference in a few words after its question; the table has the test."""
    measure = section.analysis.plan.measure
    size = felt([one], measure).size
    if one.between:
        return f"{_of_both(one, section.analysis, kinds)}{size}"
    if one.interaction:
        return f"the estimate is {size}"
    means = _means(one, section.cells, section.analysis)
    if not told:
        return f"{means}{size}"
    words = words_of_direction(section.analysis.plan.measure) or ("lower", "higher")
    return f"{words[0 if one.estimate < 0 else 1]} in the {one.first} condition ({means}{size})"


def _of_both(one: Contrast, analysis: Analysis, kinds: dict[str, str]) -> str:
    """Name the difference of each of two readers: ``it is -17.5 for people and 3.1 for the model m, a difference of ``."""
    own = {
        each.groups[0]: felt([each], analysis.plan.measure)
        for each in analysis.contrasts
        if not each.between and each.estimable and (each.label, each.at) == (one.label, one.at)
    }
    if not set(one.groups) <= own.keys() or any(size.scale == ODDS for size in own.values()):
        return "the estimate is "
    first, second = (
        f"{apa.number(own[group].values[0], own[group].places)} for {named(group, kinds)}"
        for group in one.groups
    )
    return f"it is {first} and {second}, a difference of "


def _means(one: Contrast, cells: Sequence[Cell], analysis: Analysis) -> str:
    own = {cell.level: cell.mean for cell in cells if cell.group == one.groups[0]}
    if one.first not in own or one.second not in own or one.at:
        return ""
    measure = analysis.plan.measure
    if measure.family == "binomial":
        told = [apa.percent(own[level]) for level in (one.first, one.second)]
    else:
        places = 0 if measure.unit == "ms" else 2
        told = [
            f"{apa.number(own[level], places)} {measure.unit}".strip() for level in (one.first, one.second)
        ]
    return f"{told[0]} vs. {told[1]}; "


def _of_trials(question: str, analysis: Analysis) -> str:
    """Put the name of an analysis of some of the trials, which says of which, before its question."""
    name = analysis.plan.name
    return f"{name[0].upper()}{name[1:]}: {question}" if analysis.plan.subset else question


def _asked(one: Contrast, analysis: Analysis, kinds: dict[str, str]) -> str:
    noun = analysis.plan.measure.noun
    where = f" within {one.at[0]}" if len(one.at) == 1 else ""
    both = f"the {one.first} and the {one.second} condition{where}"
    difference = f"the difference in {noun} between {both}"
    if one.interaction:
        difference = f"{difference}, {one.at[0]} compared with {one.at[1]},"
    if one.between:
        return f"Does {difference} differ between {named(one.groups[0], kinds)} and {named(one.groups[1], kinds)}?"
    if one.interaction:
        return f"Does {difference} change for {named(one.groups[0], kinds)}?"
    return f"Does {noun} of {named(one.groups[0], kinds)} differ between {both}?"


def _together(found: Sequence[Contrast], section: Section, content: Content) -> Finding:
    """Sum up one difference of many models, or of many pairs."""
    analysis, first = section.analysis, found[0]
    grades = [(one, grade_of(one, analysis, _checked(one, content.matrix))) for one in found]
    who = (
        "models differ from " + named(first.groups[0], content.kinds)
        if first.between
        else "models show this difference"
    )
    parts = []
    for grade in (CLEAR, SUPPORTED, FRAGILE, CONTRADICTED, EQUIVALENT, OPEN):
        own = [one.groups[-1] for one, given in grades if given is grade]
        if own:
            names = f" ({listed(own, content.kinds)})" if len(own) <= 3 else ""
            parts.append(f"{len(own)} {grade.word.lower()}{names}")
    size = felt([one for one in found if one.estimable] or found, analysis.plan.measure)
    text = escape(f"{'; '.join(parts)}. Estimates: {size.range}.")
    noun = analysis.plan.measure.noun
    question = f"{noun[0].upper()}{noun[1:]}, {first.label}: which of {len(found)} {who}?"
    return Finding(_of_trials(question, section.analysis), text, "", "", *_sources(section, content))


def _of_crowd(found: Sequence[Contrast], section: Section, content: Content) -> Finding:
    """Sum up the differences of many conditions from one reference; readers without any share a sentence."""
    analysis, kinds, none = section.analysis, content.kinds, dict[str, list[str]]()
    shown = {one.groups for one in found if one.p_adjusted < analysis.plan.alpha}
    for groups in dict.fromkeys(one.groups for one in found if one.groups not in shown):
        many = sum(one.groups == groups for one in found)
        who = " vs. ".join(named(group, kinds) for group in groups)
        none.setdefault(apa.worded(many, "condition"), []).append(who)
    some = [one for one in found if one.groups in shown]
    told = [of_many_conditions(some, analysis, kinds, brief=True)] if some else []
    told += [
        escape(f"No difference is shown in {conditions} for {apa.listing(readers)}.")
        for conditions, readers in none.items()
    ]
    noun, first = analysis.plan.measure.noun, found[0]
    question = f"In which conditions does {noun} differ from the {first.second} condition?"
    text = Markup(" ").join(told)
    return Finding(_of_trials(question, analysis), text, "", "", *_sources(section, content))


def _sources(section: Section, content: Content) -> tuple[tuple[str, ...], tuple[int, ...]]:
    model = section.analysis.model
    own = [content.answer_table.number] if content.answer_table is not None else []
    tables = (*own, *content.described_in(section.analysis), *(one.number for one in section.tables))
    return tables, content.number_of_fit(None if model is None else model.source)


def _checked(one: Contrast, matrix: Matrix) -> Checked | None:
    return next((row for row in matrix.rows if row.contrast is one), None)


def answer_table(analyses: Sequence[Analysis], matrix: Matrix) -> ApaTable | None:
    """Lay out the planned contrasts with what the study could have detected, their checks and grades."""
    rows: list[tuple[str, ...]] = []
    for analysis in analyses:
        tested = [one for one in analysis.contrasts if one.estimable]
        if not tested:
            continue
        scale = felt(tested[:1], analysis.plan.measure).scale
        unit = {POINTS: "percentage points", PERCENT: "percent", ODDS: "odds ratio"}.get(
            scale, analysis.plan.measure.unit
        )
        rows.append(Head([f"{analysis.plan.name[0].upper()}{analysis.plan.name[1:]} ({unit})"]))
        for one in tested:
            size, checked = felt([one], analysis.plan.measure), _checked(one, matrix)
            counts = (0, 0) if checked is None else (checked.agreeing, len(checked.cells))
            agreeing = [apa.count(many) if counts[1] else apa.MISSING for many in counts]
            estimate = (
                apa.ratio(size.values[0]) if size.scale == ODDS else apa.number(size.values[0], size.places)
            )
            cells = (
                apa.joined(estimate, size.interval),
                apa.p_value(one.p_adjusted),
                detectable(one, analysis),
            )
            rows.append((contrast_in_words(one), *cells, *agreeing, grade_of(one, analysis, checked).word))
    if not rows:
        return None
    note = (
        "Each interval belongs to its p, adjusted as in the Method. Detectable: the smallest difference that 80% of such studies "
        "would find. Agree: how many of the checks find the same (Supplement, Robustness). Clear: all checks agree; supported: other "
        "preparations weaken it, or no check applies; fragile: another scale, clustering or set of items weakens it; open: neither "
        "a difference nor equivalence shown."
    )
    columns = ("Contrast", "Estimate [95% CI]", "p", "Detectable", "Agree", "Checks", "Grade")
    title = "Planned contrasts, what the study could detect, and how many checks agree"
    return ApaTable(
        "answer",
        title,
        columns,
        tuple(rows),
        note,
        origin_of_contrasts([one for one in analyses if any(each.estimable for each in one.contrasts)]),
    )


def detectable(one: Contrast, analysis: Analysis) -> str:
    """Return the smallest difference that 80% of studies with this standard error would find, on the scale of the estimate."""
    size = felt([one], analysis.plan.measure)
    if size.scale == PERCENT:
        return apa.number(as_percent(one.detectable), 1)
    return (
        apa.ratio(float(np.exp(one.detectable)))
        if size.scale == ODDS
        else apa.number(one.detectable, size.places)
    )


def _limits(content: Content, sections: Sequence[Section], recovered: str) -> Iterator[tuple[str, str]]:
    yield from _named("Robustness", _robustness(content, sections))
    yield from _named("What cannot be concluded", _not_concluded(content, sections))
    yield from _named("Sensitivity", _sensitivity(sections))
    yield from _named("Plan", _plan(content))
    yield from _named("Sample", _sample(content))
    yield from _named("Fit", _doubts(sections))
    yield from _named("Software check", [recovered] if recovered else [])


def _named(term: str, sentences: Iterator[str] | list[str]) -> Iterator[tuple[str, str]]:
    said = " ".join(sentences)
    if said:
        yield term, said


def _robustness(content: Content, sections: Sequence[Section]) -> Iterator[str]:
    """Report for every contrast how many checks agree; contrasts of which the same is said share a sentence."""
    measures = {section.analysis.plan.measure.noun for section in sections}
    said: dict[str, list[str]] = {}
    for section in sections:
        noun = section.analysis.plan.measure.noun
        before = f"{noun[0].upper()}{noun[1:]}, " if len(measures) > 1 else ""
        for one in section.analysis.contrasts:
            if one.estimable:
                support = support_of(_checked(one, content.matrix))
                said.setdefault(support, []).append(f"{before}{contrast_in_words(one)}")
    for support, names in said.items():
        listed_names = "; ".join(names) if len(names) <= MOST_FINDINGS else f"{len(names)} contrasts"
        yield f"{listed_names}: {support}."


def _not_concluded(content: Content, sections: Sequence[Section]) -> Iterator[str]:
    open_ones = [
        one
        for section in sections
        for one in section.analysis.contrasts
        if grade_of(one, section.analysis, None) is OPEN
    ]
    if open_ones:
        plans = [section.analysis.plan for section in sections]
        without = all(plan.equivalence is None for plan in plans)
        why = f": {why_no_bound(plans)}, so equivalence was not tested" if without else ""
        yield f"That conditions or readers are alike where the answer is open{why}."
    if not content.has_people and "simulated" in content.kinds.values():
        yield "Anything about people: none took part."
    models = sum(kind == "model" for kind in content.kinds.values())
    if 0 < models < MODELS_FOR_A_CLAIM:
        yield f"Anything about language models in general: {apa.worded(models, 'model')} {'was' if models == 1 else 'were'} tested."
    yield from content.cautions


def _sensitivity(sections: Sequence[Section]) -> Iterator[str]:
    for section in sections:
        analysis = section.analysis
        tested = [one for one in analysis.contrasts if one.estimable]
        known = [
            (float(value.values[0]), str(value))
            for one in tested
            if isinstance(value := detectable(one, analysis), apa.Written)
        ]
        if not known:
            continue
        unit = felt(tested[:1], analysis.plan.measure).unit
        least, most = min(known), max(known)
        size = least[1] if least[1] == most[1] else f"{least[1]} to {most[1]}"
        yield f"{analysis.plan.name[0].upper()}{analysis.plan.name[1:]}: differences of {size}{unit} could be detected with 80% power."


def _plan(content: Content) -> Iterator[str]:
    yield from content.standing.told
    many = len(content.standing.departures)
    if many:
        yield from content.standing.departures[:2]
        if many > 2:
            yield f"{apa.worded(many - 2, 'further departure').capitalize()}: see the Method section."
    elif content.planned:
        yield "No departure from the plan is known."


def _sample(content: Content) -> Iterator[str]:
    tables = content.tables
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    if used.empty:
        yield "No trial can be analysed yet."
        return
    told = []
    for group, one, several in (
        ("human", "participant", "participants"),
        ("simulated", "simulated reader", "simulated readers"),
    ):
        own = used[used["reader_group"] == group]
        many = int(own["reader"].nunique())
        told += [f"{apa.counted(many, one, several)} ({apa.counted(len(own), 'trial')})"] if many else []
    for kind, noun in (("model", "language model"), ("baseline", "baseline")):
        own = used[
            used["reader_group"].isin([name for name, given in content.kinds.items() if given == kind])
        ]
        names = list(dict.fromkeys(own["reader_group"].astype(str)))
        of = f"{apa.counted(len(names), noun)}{f' ({apa.listing(names)})' if len(names) <= 3 else ''}"
        told += [f"{of}, {apa.counted(len(own), 'trial')}"] if names else []
    yield f"{'; '.join(told)}; {apa.counted(int(used['item_id'].nunique()), 'item')}."
    for name, levels in tables.factors.items():
        absent = [level for level in levels if not (used[name] == level).any()]
        if absent:
            yield f"No trial of {name} {apa.listing(absent)} could be analysed."
        elif len(levels) > MOST_TOLD:
            yield f"{name[0].upper()}{name[1:]} had {len(levels)} conditions."
    lost = Counter(str(reason) for reason in tables.trials["excluded_reason"].dropna())
    parts = [f"{apa.counted(many, 'trial')} ({reason})" for reason, many in lost.most_common(3)]
    yield f"Excluded: {apa.listing(parts)}." if parts else "No trial was excluded."
    for name, kind in content.kinds.items():
        missing = float((used.loc[used["reader_group"] == name, "response_status"] != "valid").mean())
        if missing > MANY_MISSING and kind != "baseline":
            yield f"{apa.percent(missing)} of the answers of {named(name, content.kinds)} could not be scored and count as wrong."


def _doubts(sections: Sequence[Section]) -> Iterator[str]:
    """Name the models that failed, did not converge, or are singular."""
    found: dict[str, list[str]] = {}
    for section in sections:
        found.setdefault(_doubt(section.analysis), []).append(section.analysis.plan.name)
    for doubt, names in found.items():
        if doubt:
            yield doubt.format(apa.listing(names))


def _doubt(analysis: Analysis) -> str:
    model = analysis.model
    if model is None:
        return "No model could be fitted for {}."
    if not model.converged:
        return "The fit of {} did not converge; its numbers cannot be trusted."
    return "The fit of {} is singular, so its intervals may be too narrow." if model.singular else ""
