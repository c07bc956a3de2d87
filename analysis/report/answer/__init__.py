"""The Answer: each planned question in one sentence with its certainty, one figure, one table, and what limits them.

``text.md.j2`` holds the sentences, ``tables.yaml`` the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from analysis import apa
from analysis.answers import is_valid, judged, never_answered
from analysis.exclusions import reasons_named
from analysis.multiple_comparisons import family_of
from analysis.plan_deviations import why_no_bound
from analysis.random_structure import MODELS_FOR_A_CLAIM
from analysis.readers import PARTICIPANT_KINDS, is_several, named, spoken
from analysis.report.apa_tables import ApaTable
from analysis.report.condense_levels import MOST_TOLD
from analysis.report.effect_sizes import ODDS, PERCENT, POINTS, ResponseScaleEffect, felt
from analysis.report.grades import (
    CLEAR,
    CONTRADICTED,
    EQUIVALENT,
    FOUND,
    FRAGILE,
    NOT_ESTIMABLE,
    OPEN,
    SUPPORTED,
    Grade,
    grade_of,
    is_open,
    support_of,
)
from analysis.report.inline import plain_text
from analysis.report.layout import ChapterLayout
from analysis.report.nodes import Facts, Node, Paragraph, PlannedFinding
from analysis.report.numbering import LONGEST, MANUSCRIPT, ExhibitNumbers, Numbered, ReportContent, Section
from analysis.report.results import MOST_LEVELS, adds_up, crowds, of_many_conditions, words_of_direction
from analysis.report.results.tables import origin_of_contrasts
from analysis.report.results.together import Together
from analysis.report.terms import contrast_in_words
from analysis.results import Analysis, Contrast, as_percent, each_test
from analysis.robustness import Matrix

LAYOUT = ChapterLayout(Path(__file__).parent)
MOST_FINDINGS = 6
"""Questions that are answered in sentences; the table has the others."""
UNANSWERED = (OPEN.word, NOT_ESTIMABLE.word)
"""Grades of questions that are left to the table first."""
FEWER_LEVELS = 2
"""Conditions with one reference that are still told one by one where there are more questions than that."""
HIGH, FEW = 5.5, 3
"""Inches of a figure, and questions, above which these do not share a page."""
LONGEST_TABLE = 12
"""Contrasts that share a page with the figure; of more, the Answer shows those with the smallest *p* and a file has all."""
SPARE = 3
"""Contrasts beyond these that are shown rather than left to the file."""
MOST_SINGLY = 2
"""Largest number of models whose comparisons with people are separate questions; more share one sentence."""
MOST_SUPPORTS = 4
"""Sentences on contrasts with which not all checks agree."""
MOST_REASONS = 3
"""Reasons of exclusion that are named; further ones are counted together."""
MANY_MISSING = 0.05
"""A reader with a greater share of answers that could not be scored is named."""


def answer(content: ReportContent, recovered: str) -> Iterator[Node]:
    """Write the Answer; ``recovered`` is what the check of recovery found, empty without simulated readers."""
    reported = content.planned or content.exploratory
    sections = [subsection for section in reported for subsection in section.each]
    findings = [PlannedFinding(question, text, "", "") for question, text in content.leading]
    findings += _findings(content, reported)
    for text in LAYOUT.paragraphs("opening", findings=findings, planned=content.planned):
        yield Paragraph(text)
    yield from findings[:MOST_FINDINGS]
    shown = content.answer_table
    further = findings[MOST_FINDINGS:]
    if shown is not None and further:
        grades = Counter(finding.grade.lower() for finding in further)
        yield Paragraph(LAYOUT.sentences("further", grades=grades, shown=shown))
    exhibits: list[Node] = [*content.figures[:1]]
    if shown is not None and shown.refused:
        exhibits.append(Paragraph(LAYOUT.sentences("in_file", shown=shown)))
    exhibits += filter(None, [content.answer_excerpt or shown])
    if any(one.drawing.figure.get_figheight() > HIGH for one in content.figures[:1]) and len(findings) > FEW:
        exhibits = [*exhibits[1:], exhibits[0]]  # the questions leave it no room on their page, but a table
    yield from exhibits
    limits: dict[str, tuple[str, dict[str, Any]]] = {
        "Robustness": ("robustness", _supports(content, sections)),
        "What cannot be concluded": ("not_concluded", _not_concluded(content, sections)),
        "Sensitivity": ("sensitivity", _sensitivity(sections)),
        "Plan": ("plan", {"standing": content.standing, "planned": content.planned}),
        "Sample": ("sample", _sample(content)),
        "Fit": ("doubts", {"doubts": _doubts(content, sections)}),
    }
    texts: dict[str, str] = {
        term: LAYOUT.sentences(passage, **facts) for term, (passage, facts) in limits.items()
    }
    texts["Software check"] = recovered
    yield Facts(tuple((term, text) for term, text in texts.items() if text))


def as_text(nodes: Iterable[Node]) -> str:
    """Return the sentences of the Answer in lines for a terminal; its figure and table are on the page alone."""
    lines = ["Answer"]
    for node in nodes:
        if isinstance(node, Paragraph | PlannedFinding):
            lines.append(plain_text(node.text if isinstance(node, Paragraph) else node.markup))
        elif isinstance(node, Facts):
            lines += [f"{term}: {plain_text(text)}" for term, text in node.pairs]
    return "\n".join(fill(line, 100, subsequent_indent="  ") for line in lines)


def _findings(content: ReportContent, sections: Sequence[Section]) -> list[PlannedFinding]:
    """Answer all questions, the first of each analysis first; of too many, those that are answered before those that remain open.

    If there are too many, those on conditions with one reference are answered together.
    """
    findings: list[list[PlannedFinding]] = []
    for most_levels in (MOST_LEVELS, FEWER_LEVELS):
        if not findings or sum(map(len, findings)) > MOST_FINDINGS:
            answered: set[tuple[object, ...]] = set()
            findings = [
                list(_Question(section, content, answered).findings(most_levels)) for section in sections
            ]
    # a question and those that refer to it stay together
    begun: dict[tuple[int, int], tuple[int, int]] = {}
    for index, section_findings in enumerate(findings):
        for turn, finding in enumerate(section_findings):
            begun[turn, index] = begun[turn - 1, index] if finding.follows else (turn, index)
    is_answered = {begun[place] for place in begun if findings[place[1]][place[0]].grade not in UNANSWERED}
    in_turn = sorted(begun, key=lambda place: (begun[place] not in is_answered, place))
    first, remaining = in_turn[:MOST_FINDINGS], sorted(in_turn[MOST_FINDINGS:])
    by_section = sorted(first, key=lambda indices: indices[::-1])
    return [findings[index][turn] for turn, index in (*by_section, *remaining)]


@dataclass(frozen=True)
class _Question:
    """The questions of one analysis."""

    section: Section
    content: ReportContent
    answered: set[tuple[object, ...]]  # the tests that questions before this one report

    def findings(self, most_levels: int) -> Iterator[PlannedFinding]:
        """Answer for participants, then whether each model differs from them; without participants, for the models."""
        kinds = self.content.kinds
        if self.section.parts:
            together = Together(tuple(part.analysis for part in self.section.parts), kinds)
            yield self._finding("question_together", "together", together=together)
            return
        value = self.section.analysis.only_value
        if value is not None:
            contrasts = self.section.analysis.estimable
            widest = max(contrasts, key=lambda contrast: contrast.high - contrast.low)
            size = felt([widest], self.section.analysis.plan.measure, contrasts)
            told: dict[str, Any] = {
                "value": value,
                "widest": widest,
                "size": size,
                "possible": size.interval[1:-1].split(", "),
            }
            groups = {group for contrast in contrasts for group in contrast.groups}
            yield self._finding("question_uniform", "uniform", groups=groups, **told)
            return
        crowded, others = crowds(self.section.analysis.contrasts, most_levels)
        for crowd in crowded:
            yield self._of_crowd(crowd)
        unanswered = [
            other
            for other in others
            if not other.left_out and self.section.analysis.test_of(other) not in self.answered
        ]
        self.answered.update(map(self.section.analysis.test_of, unanswered))
        for label in dict.fromkeys(contrast.label for contrast in unanswered):
            labelled = [contrast for contrast in unanswered if contrast.label == label]
            people = [
                contrast
                for contrast in labelled
                if not contrast.between and is_several(contrast.groups[0], kinds)
            ]
            between = [contrast for contrast in labelled if contrast.between]
            models = [
                contrast
                for contrast in labelled
                if not contrast.between and kinds.get(contrast.groups[0]) == "model"
            ]
            again = False
            for contrasts in (people, [] if people else models, between):
                if len(contrasts) <= MOST_SINGLY or contrasts is people:
                    yield from (self._of_one(contrast, again) for contrast in contrasts)
                else:
                    yield self._of_many(contrasts, again)
                again |= bool(contrasts)

    def _finding(
        self, question: str, text: str, certainty: tuple[str, str] = ("", ""), **facts: Any
    ) -> PlannedFinding:
        plan, content = self.section.analysis.plan, self.content
        facts |= {"plan": plan, "measure": plan.measure, "kinds": content.kinds}
        is_one_of_several = len(content.tables.factors) > 1 and plan.crossing is None
        facts["of_factor"] = f" of {plan.factor}" if is_one_of_several else ""
        answer_numbers = [content.answer_table.number] if content.answer_table is not None else []
        described = dict.fromkeys(
            number for section in self.section.each for number in content.described_in(section.analysis)
        )
        models = [
            number for section in self.section.each for number in content.number_of_fit(section.analysis.fit)
        ]
        return PlannedFinding(
            LAYOUT.sentences(question, **facts),
            LAYOUT.sentences(text, **facts),
            *certainty,
            (*answer_numbers, *described, *(table.number for table in self.section.tables)),
            tuple(models),
            follows=bool(facts.get("again")),
        )

    def _of_one(self, contrast: Contrast, again: bool) -> PlannedFinding:
        """Answer with direction and size of a difference in a few words; ``again`` after another question on it."""
        analysis = self.section.analysis
        checked = self.content.matrix.checked(analysis, contrast)
        grade = grade_of(contrast, analysis, self.content.matrix)
        size, of_both = felt([contrast], analysis.plan.measure, analysis.estimable), self._of_both(contrast)
        return self._finding(
            "question",
            "finding",
            (grade.word, support_of(checked)),
            one=contrast,
            again=again,
            grade=grade,
            size=size,
            possible=size.interval[1:-1].split(", "),
            of_both=[
                f"{apa.number(value, size.places)}{'%' if size.scale == PERCENT else ''}" for value in of_both
            ],
            simple=[
                str(felt([replace(contrast, estimate=value)], analysis.plan.measure, analysis.estimable).size)
                for value in (contrast.simple if size.scale != ODDS else ())
            ],
            loses=contrast.crossed is not None and contrast.crossed.sums.lost > 0,
            adds_up=size.scale == PERCENT or len(of_both) < 2 or adds_up(of_both, size, size.places),
            **self._means(contrast, size),
            direction=words_of_direction(analysis.plan.measure) or ("lower", "higher"),
        )

    def _of_both(self, contrast: Contrast) -> list[float]:
        """Return the difference of each of two readers; nothing where it is not known of both on a scale that subtracts."""
        analysis = self.section.analysis
        sizes = {
            other.groups[0]: felt([other], analysis.plan.measure, analysis.estimable)
            for other in analysis.contrasts
            if not other.between
            and other.estimable
            and (other.label, other.at) == (contrast.label, contrast.at)
        }
        if not set(contrast.groups) <= sizes.keys() or any(size.scale == ODDS for size in sizes.values()):
            return []
        return [sizes[group].values[0] for group in contrast.groups]

    def _means(self, contrast: Contrast, size: ResponseScaleEffect) -> dict[str, str]:
        """Return the means of both conditions, and how the estimate came about if it is not their difference."""
        plan = self.section.analysis.plan
        measure, where = plan.measure, " in the trials of this analysis" if plan.exclude else ""
        means = {cell.level: cell.mean for cell in self.section.cells if cell.group == contrast.groups[0]}
        if contrast.first not in means or contrast.second not in means or contrast.at:
            return {"means": "", "how": ""}
        first, second = means[contrast.first], means[contrast.second]
        times, places = (100, 1) if measure.family == "binomial" else (1, 0 if measure.unit == "ms" else 2)
        how = "in the mixed model, " if contrast.crossed is None else "if every item counts alike, "
        if size.scale == ODDS or adds_up((times * first, times * second), size, places):
            how = ""
        if measure.family == "binomial":
            return {"means": f"{apa.percent(first)} vs. {apa.percent(second)}{where}", "how": how}
        text = f"{apa.number(first, places)} vs. {apa.number(second, places)} {measure.unit}"
        return {"means": f"{text.strip()}{where}", "how": how}

    def _of_many(self, contrasts: Sequence[Contrast], again: bool) -> PlannedFinding:
        """Sum up one difference of many models, or of many pairs."""
        analysis, matrix = self.section.analysis, self.content.matrix
        of_pairs = contrasts[0].between and not is_several(contrasts[0].groups[0], self.content.kinds)
        order = (CLEAR, SUPPORTED, FRAGILE, CONTRADICTED, EQUIVALENT, OPEN, NOT_ESTIMABLE)
        grades: dict[Grade, list[Contrast]] = {grade: [] for grade in order}
        for contrast in contrasts:
            grades[grade_of(contrast, analysis, matrix)].append(contrast)

        def name(contrast: Contrast) -> str:
            return " vs. ".join(contrast.groups) if of_pairs else contrast.groups[-1]

        return self._finding(
            "question_of_many",
            "many",
            first=contrasts[0],
            again=again,
            found=contrasts,
            of_pairs=of_pairs,
            grades=[
                (grade, list(map(name, graded)), felt(graded, analysis.plan.measure, analysis.estimable))
                for grade, graded in grades.items()
                if graded
            ],
        )

    def _of_crowd(self, contrasts: Sequence[Contrast]) -> PlannedFinding:
        """Sum up the differences of many conditions from one reference; readers without any share a sentence."""
        analysis, kinds = self.section.analysis, self.content.kinds
        without, pairs = dict[int, list[str]](), list[str]()
        shown = {contrast.groups for contrast in contrasts if contrast.p_adjusted < analysis.plan.alpha}
        for groups in dict.fromkeys(
            contrast.groups for contrast in contrasts if contrast.groups not in shown
        ):
            count = sum(contrast.groups == groups for contrast in contrasts)
            told = apa.listing([named(group, kinds) for group in groups])
            (without.setdefault(count, []) if len(groups) == 1 else pairs).append(told)
        shown_contrasts = [contrast for contrast in contrasts if contrast.groups in shown]
        differing = of_many_conditions(shown_contrasts, analysis, kinds, brief=True)
        matrix, significant = (
            self.content.matrix,
            [contrast for contrast in shown_contrasts if contrast.p_adjusted < analysis.plan.alpha],
        )
        grades = Counter(grade_of(contrast, analysis, matrix).word for contrast in significant)
        certainty = ("", "")
        if len(significant) == 1:
            certainty = (next(iter(grades)), support_of(matrix.checked(analysis, significant[0])))
        directions = {contrast.direction for contrast in contrasts if not contrast.between}
        expected = {"less": "lower", "greater": "higher"}.get(*directions) if len(directions) == 1 else None
        facts: dict[str, Any] = {"differing": differing, "without": without, "pairs": pairs}
        facts |= {"reference": contrasts[0].second, "expected": expected}
        facts["grades"] = grades if len(significant) > 1 else {}
        return self._finding("question_of_crowd", "crowd", certainty, **facts)


def answer_tables(
    analyses: Sequence[Analysis], matrix: Matrix, numbers: ExhibitNumbers
) -> tuple[Numbered | None, Numbered | None]:
    """Lay out the planned contrasts; if they are too many for the page, also those with the smallest *p*."""
    rows = _answer_rows(analyses, matrix)
    if not rows:
        return None, None
    if len(rows) <= LONGEST_TABLE + SPARE:
        return numbers.table(_answer_table(rows), MANUSCRIPT), None
    smallest = sorted(range(len(rows)), key=lambda index: _by_p(rows[index]))
    shown = _shown(rows, smallest)
    if shown == len(rows):
        return numbers.table(_answer_table(rows), MANUSCRIPT), None
    fewer = _answer_table([rows[index] for index in sorted(smallest[:shown])], len(rows))
    # the shorter one first: it must not count as shown by the longer
    excerpt = numbers.table(replace(fewer, name="answer_excerpt"), MANUSCRIPT)
    return numbers.table(_answer_table(rows), refused=f"{len(rows)} rows"), excerpt


def _by_p(row: dict[str, Any]) -> tuple[float, float]:
    contrast = row["contrast"]
    return tuple(np.nan_to_num([contrast.p_adjusted, contrast.p], nan=2.0))


def _shown(rows: Sequence[dict[str, Any]], smallest: Sequence[int]) -> int:
    """Return how many contrasts, in the order of *p*, are shown: all significant ones, and of equal *p* all or none."""
    ordered = [rows[index]["contrast"] for index in smallest]
    significant = sum(
        bool(contrast.p_adjusted < rows[index]["analysis"].plan.alpha)
        for index, contrast in zip(smallest, ordered, strict=True)
    )
    printed = [apa.p_value(contrast.p_adjusted) for contrast in ordered]
    ends = [n for n in range(1, len(ordered)) if printed[n - 1] != printed[n]]
    fitting = [n for n in ends if n <= LONGEST_TABLE + SPARE]
    # if more have one p than fit, the unadjusted ones decide
    shown = max(significant, fitting[-1] if fitting else 0)
    return min(shown if shown > 1 else LONGEST_TABLE, LONGEST)


def _answer_rows(analyses: Sequence[Analysis], matrix: Matrix) -> list[dict[str, Any]]:
    """Return the planned contrasts with what the study could have detected, their checks and grades."""
    rows: list[dict[str, Any]] = []
    for index, (analysis, contrasts) in enumerate(each_test(analyses)):
        measure = analysis.plan.measure
        units = {POINTS: "percentage points", PERCENT: "percent", ODDS: "odds ratio"}
        unit = units.get(felt(analysis.estimable[:1], measure).scale, measure.unit)
        by_label = max(Counter(contrast.label for contrast in contrasts).values(), default=0) > 1
        for contrast in contrasts:
            groups = " vs. ".join(map(spoken, contrast.groups))
            rows.append(
                {
                    "index": index,
                    "analysis": analysis,
                    "contrast": contrast,
                    "name": groups if by_label else contrast_in_words(contrast),
                    "part": analysis.plan.heading + (f": {contrast.label}" if by_label else ""),
                    "size": felt([contrast], measure, analysis.estimable),
                    "unit": unit,
                    "detectable": _sized(contrast.detectable, contrast, analysis),
                    "checked": matrix.checked(analysis, contrast),
                    "grade": grade_of(contrast, analysis, matrix),
                }
            )
    return rows


def _answer_table(rows: Sequence[dict[str, Any]], of: int = 0) -> ApaTable:
    """Lay out contrasts; ``of`` is how many there are if these are some of them."""
    analyses = list({row["index"]: row["analysis"] for row in rows}.values())
    planned = any(analysis.plan.planned for analysis in analyses)
    contrasts = [row["contrast"] for row in rows]
    facts: dict[str, Any] = {"some": len(rows), "of": of, "planned": planned}
    facts["is_any_constant"] = any(contrast.is_constant for contrast in contrasts)
    facts["has_checks"] = any(row["checked"] and row["checked"].cells for row in rows)
    facts["has_few_df"] = any(contrast.has_few_df for contrast in contrasts)
    facts["is_any_unchecked"] = any(row["checked"] is None for row in rows)
    facts["grades"] = {row["grade"].word for row in rows}
    facts["is_any_cut"] = any(contrast.is_cut for contrast in contrasts)
    facts["is_any_one_sided"] = any(contrast.direction != "two-sided" for contrast in contrasts)
    facts["is_any_undetectable"] = any(np.isinf(contrast.detectable) for contrast in contrasts)
    table = LAYOUT.table("answer", rows, origin=origin_of_contrasts(analyses), **facts)
    return replace(table, of_paper=True)


def _sized(difference: float, contrast: Contrast, analysis: Analysis) -> str:
    """Return a difference on the scale on which the report prints this contrast."""
    size = felt([contrast], analysis.plan.measure, analysis.estimable)
    if np.isinf(difference):
        return apa.Written.of("none", difference)
    if size.scale == PERCENT:
        return apa.number(as_percent(difference), 1)
    if size.scale == ODDS:
        return apa.ratio(float(np.exp(difference)))
    return apa.number(difference, size.places)


def _supports(content: ReportContent, sections: Sequence[Section]) -> dict[str, Any]:
    """Count the contrasts on which all checks agree, and name the others; contrasts with the same outcome share a sentence.

    If that takes more than :data:`MOST_SUPPORTS` sentences, the others are counted by what any check finds.
    """
    by_support: dict[str, list[str]] = {}
    outcomes: Counter[str] = Counter()
    agreeing = total = 0
    for analysis, tested in each_test(section.analysis for section in sections):
        before = f"{analysis.plan.name}, " if len(sections) > 1 else ""
        for contrast in tested:
            checked = content.matrix.checked(analysis, contrast)
            total += 1
            if checked is not None and checked.cells and checked.agreeing == len(checked.cells):
                agreeing += 1
            else:
                by_support.setdefault(support_of(checked), []).append(
                    f"{before}{contrast_in_words(contrast)}"
                )
                cells = {} if checked is None else checked.cells
                outcomes.update({cell.outcome for cell in cells.values()} or {""})
    in_short = [(words, outcomes[outcome]) for outcome, words in FOUND.items() if outcomes[outcome]]
    return {
        **{"supports": by_support, "agreeing": agreeing, "many": total, "unchecked": outcomes[""]},
        "in_short": in_short if len(by_support) > MOST_SUPPORTS else [],
    }


def _not_concluded(content: ReportContent, sections: Sequence[Section]) -> dict[str, Any]:
    plans = [section.analysis.plan for section in sections]
    grades = {
        grade_of(contrast, section.analysis, content.matrix)
        for section in sections
        for contrast in section.analysis.contrasts
    }
    kinds = list(content.kinds.values())
    trials = content.tables.trials
    is_of_model = trials["excluded_reason"].isna() & (trials["reader_kind"] == "model")
    return {
        "is_open": OPEN in grades,
        "has_pairs": any(len(plan.groups) > 1 for plan in plans),
        "no_bound": why_no_bound(plans) if all(plan.equivalence is None for plan in plans) else "",
        "is_simulated": not content.has_people and "simulated" in kinds,
        "models": trials.loc[is_of_model, "reader_group"].nunique(),
        "models_for_a_claim": MODELS_FOR_A_CLAIM,
        "cautions": content.cautions,
    }


def _sensitivity(sections: Sequence[Section]) -> dict[str, Any]:
    """State what could be detected, and the bounds within which differences between readers that stay open would be equivalent."""
    tested = each_test(section.analysis for section in sections)
    families = {
        id(section.analysis): family_of(section.analysis.plan, number)
        for number, section in enumerate(sections)
    }
    # those that could not be made count as well, and one of several analyses once
    questions = {
        (families[id(analysis)], analysis.test_of(contrast)[:4], contrast.label, contrast.groups)
        for analysis in (section.analysis for section in sections)
        for contrast in analysis.contrasts
        if contrast.between
    }
    between = Counter(family for family, *_ in questions)

    def bound(contrast: Contrast, analysis: Analysis) -> float:
        return contrast.smallest_bound(analysis.plan.alpha, between[families[id(analysis)]])

    still_open = [
        (analysis, [contrast for contrast in contrasts if contrast.between and is_open(contrast, analysis)])
        for analysis, contrasts in tested
    ]
    return {
        "detectable": list(_extremes(tested, lambda contrast, _: contrast.detectable)),
        "bounds": list(_extremes(still_open, bound)),
    }


def _extremes(
    tested: Sequence[tuple[Analysis, list[Contrast]]], value_of: Callable[[Contrast, Analysis], float]
) -> Iterator[tuple[str, list[str], ResponseScaleEffect, int]]:
    """Yield for each analysis, of many for each measure and scale, the ends of finite values, their scale, and a count of others."""
    by_scale: dict[tuple[str, str], list[tuple[Analysis, list[Contrast]]]] = {}
    analyses = sum(bool(contrasts) for _, contrasts in tested)
    for analysis, contrasts in tested:
        if contrasts:
            name = analysis.plan.heading if analysis.plan.planned else analysis.plan.name
            if analyses > apa.MOST_TESTS_NAMED or name.endswith(")"):  # parentheses around it would be nested
                name = analysis.plan.measure.noun
            scale = felt(contrasts[:1], analysis.plan.measure).scale
            by_scale.setdefault((name, scale), []).append((analysis, contrasts))
    for (name, _), entries in by_scale.items():
        values = [
            _sized(value_of(contrast, analysis), contrast, analysis)
            for analysis, contrasts in entries
            for contrast in contrasts
        ]
        texts = {value.values[0]: str(value) for value in values if isinstance(value, apa.Written)}
        sizes = sorted(size for size in texts if np.isfinite(size))
        if sizes or np.inf in texts:
            ends = [texts[size] for size in (*sizes[:1], *sizes[1:][-1:])]
            size = felt(entries[0][1][:1], entries[0][0].plan.measure)
            yield name, list(dict.fromkeys(ends)), size, sum(value == texts.get(np.inf) for value in values)


def _sample(content: ReportContent) -> dict[str, Any]:
    tables, kinds = content.tables, content.kinds
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    readers = []
    nouns = {"human": "participant", "simulated": "simulated reader", "model": "language model"}
    for kind, noun in {**nouns, "baseline": "baseline"}.items():
        rows = used[used["reader_kind"] == kind]
        is_person = kind in PARTICIPANT_KINDS
        names = None if is_person else sorted(set(rows["reader_group"].astype(str)))
        count = int(rows["reader"].nunique()) if names is None else len(names)
        readers += [{"noun": noun, "readers": count, "trials": len(rows), "names": names}] if count else []
    excluded: dict[str, list[str]] = {}
    for kind, noun in nouns.items():
        reasons = Counter(reasons_named(tables.trials[tables.trials["reader_kind"] == kind]).dropna())
        most = reasons.most_common(MOST_REASONS if len(reasons) > MOST_REASONS + 1 else None)
        phrases = [f"{apa.worded(count, 'trial')} ({reason})" for reason, count in most]
        if others := reasons.total() - sum(count for _, count in most):
            phrases.append(f"{apa.worded(others, 'trial')} for other reasons")
        whose = (
            f"{noun}s"
            if kind in PARTICIPANT_KINDS or sum(one == "model" for one in kinds.values()) > 1
            else noun
        )
        excluded |= {whose: phrases} if phrases else {}
    judged_trials = judged(used)
    rated = used["trial_type"] == "rate" if "trial_type" in used else ~used.index.isin(used.index)
    missing = []
    never = never_answered(used)
    rated &= ~never
    for kind_of_answer, asked in (
        ("judged", used[judged_trials]),
        ("never", used[never]),
        ("unjudged", used[used["response_status"].notna() & ~judged_trials & ~rated & ~never]),
        ("rating", used[used["response_status"].notna() & ~judged_trials & rated]),
    ):
        failed = (~is_valid(asked)).groupby(asked["reader_group"], observed=True).mean()
        missing += [
            (group, failed[group], kind_of_answer)
            for group in kinds
            if kinds[group] != "baseline" and failed.get(group, 0) > MANY_MISSING
        ]
    return {
        "kinds": kinds,
        "readers": readers,
        "items": int(used["item_id"].nunique()),
        "factors": tables.factors,
        "absent": {
            name: [level for level in levels if not (used[name] == level).any()]
            for name, levels in tables.factors.items()
        },
        "most_told": MOST_TOLD,
        "excluded": excluded,
        "missing": missing,
    }


def _doubts(content: ReportContent, sections: Sequence[Section]) -> dict[str, list[str]]:
    """Name the analyses without a model, and those whose model did not converge, is singular, or does not fit the residuals."""
    by_doubt: dict[str, list[str]] = {}
    departures = {name for numbered in content.chapters for name in numbered.chapter.departures}
    for section in sections:
        analysis, model = section.analysis, section.analysis.model
        is_check = analysis.companion is not None
        found = {
            "none": model is None and not any(contrast.crossed for contrast in analysis.contrasts),
            "not converged": model is not None and not model.converged and not is_check,
            "check not converged": model is not None and not model.converged and is_check,
            "singular": model is not None and model.converged and model.singular and not is_check,
            "departs": analysis.plan.name in departures and not is_check,
        }
        for doubt in (doubt for doubt, holds in found.items() if holds):
            by_doubt.setdefault(doubt, []).append(analysis.plan.name)
    return by_doubt
