"""Exploratory analyses of one measure by one factor in several parts of a study, told together with one table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markupsafe import Markup, escape

from analysis import apa
from analysis.descriptives import ConditionMean
from analysis.names import plain
from analysis.readers import named
from analysis.report.apa_tables import ApaTable
from analysis.report.effect_sizes import ResponseScaleEffect, felt
from analysis.report.results import LAYOUT, MOST_LEVELS, adjusted_by, adjustment, mean_in_words
from analysis.report.results.tables import contrast_table, origin_of_contrasts, part_of
from analysis.results import Analysis, Contrast


@dataclass(frozen=True)
class Together:
    """Analyses that differ only in which trials they analyse."""

    analyses: tuple[Analysis, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, analyses: Sequence[Analysis], kinds: Mapping[str, str]) -> list[Together]:
        """Group unplanned analyses of one measure by one factor on one scale; every other analysis stays alone."""
        by_key: dict[Any, list[Analysis]] = {}
        for analysis in analyses:
            plan = analysis.plan
            key: Any = id(analysis)
            if not plan.planned and plan.subset and analysis.estimable:
                key = (plan.measure.name, plan.factor, felt(analysis.estimable, plan.measure).scale)
            by_key.setdefault(key, []).append(analysis)
        return [cls(tuple(members), kinds) for members in by_key.values()]

    @property
    def name(self) -> str:
        """Findings that they have in common."""
        return f"{self.analyses[0].plan.measure.noun} by {self.analyses[0].plan.factor}"

    @property
    def heading(self) -> str:
        """Their name with how many they are."""
        return f"{self.name} ({apa.worded(len(self.analyses), 'analysis', 'analyses')})"

    @property
    def tested(self) -> list[Contrast]:
        """All differences that could be estimated."""
        return [contrast for analysis in self.analyses for contrast in analysis.estimable]

    def differing(self) -> list[tuple[Analysis, list[Contrast]]]:
        """Return the analyses with significant differences, and these, the largest first."""
        pairs = []
        for analysis in self.analyses:
            significant = [
                contrast for contrast in analysis.estimable if contrast.p_adjusted < analysis.plan.alpha
            ]
            pairs += (
                [(analysis, sorted(significant, key=lambda contrast: -abs(contrast.estimate)))]
                if significant
                else []
            )
        return pairs

    def findings(self) -> Markup:
        """State how many differences are significant, in which analyses, and how large the largest is in each."""
        measure, differing = self.analyses[0].plan.measure, self.differing()
        significant = [contrast for _, contrasts in differing for contrast in contrasts]
        others = [contrast for contrast in self.tested if not any(contrast is other for other in significant)]
        return LAYOUT.sentences(
            "found_together",
            analyses=self.analyses,
            tested=self.tested,
            significant=significant,
            differing=[
                (
                    part_of(analysis),
                    contrasts,
                    len(analysis.estimable),
                    self._who(contrasts[0]),
                    felt(contrasts, measure),
                )
                for analysis, contrasts in differing
            ],
            most_told=MOST_LEVELS,
            others=others,
            size=felt(others, measure) if others else None,
            lost=sum(not contrast.estimable for analysis in self.analyses for contrast in analysis.contrasts),
            reversed=sum(contrast.reverses for contrast in significant),
        )

    def _who(self, contrast: Contrast) -> str:
        return " vs. ".join(named(group, dict(self.kinds)) for group in contrast.groups)

    def paragraphs(
        self, cells: Collection[ConditionMean], of_analyses: str | None, of_differences: str | None
    ) -> list[Markup]:
        """Write the Results of all of them: how, what was found, and what limits it."""
        first, plan = self.analyses[0], self.analyses[0].plan
        means: dict[str, list[float]] = {}
        for cell in cells:
            means.setdefault(cell.group, []).append(cell.mean)
        texts = [
            LAYOUT.sentences(
                "together",
                analyses=self.analyses,
                plan=plan,
                measure=plan.measure,
                kinds=self.kinds,
                within=list(
                    dict.fromkeys(name for analysis in self.analyses for name, _ in analysis.plan.within)
                ),
                has_kinds=len({analysis.plan.trials for analysis in self.analyses}) > 1,
                means=[
                    (group, *(mean_in_words(end, plan.measure) for end in (min(values), max(values))))
                    for group, values in means.items()
                ],
                estimated=first.companion is not None or first.model is None,
                with_people=sum(
                    "human" in analysis.groups or "simulated" in analysis.groups for analysis in self.analyses
                ),
                checked=[
                    part_of(analysis)
                    for analysis in self.analyses
                    if analysis.model is not None and not analysis.model.runs_away
                ],
                rows=sorted(
                    len(analysis.rows) if analysis.model is None else analysis.model.rows
                    for analysis in self.analyses
                ),
                of_analyses=of_analyses,
                of_differences=of_differences,
            ),
            self.findings(),
            adjustment(self.analyses, dict(self.kinds), None, is_short=False),
            Markup(" ").join(self.by_part([analysis.remarks for analysis in self.analyses])),
        ]
        return [text for text in texts if text]

    def by_part(self, said: Sequence[Collection[str]]) -> Iterator[Markup]:
        """Write remarks of each analysis: those of all first, the others behind the analyses that they are of."""
        parts: dict[str, list[str]] = {}
        for analysis, texts in zip(self.analyses, said, strict=True):
            for remark in texts:
                parts.setdefault(remark, []).append(part_of(analysis))
        by_analyses: dict[tuple[str, ...], list[str]] = {}
        for remark, texts in sorted(parts.items(), key=lambda item: -len(item[1])):
            by_analyses.setdefault(tuple(texts), []).append(remark)
        for names, remarks in by_analyses.items():
            texts = Markup(" ").join(map(escape, remarks))
            yield LAYOUT.sentences("of_parts", names=names, all=len(self.analyses), said=texts)

    def tables(self) -> list[ApaTable]:
        """Return the table of all differences, and the one with a row for each analysis, for where that is too long."""
        first, stem = self.analyses[0], plain(self.name)
        measure = first.plan.measure
        differences = contrast_table(first, f"differences_{stem}", self.analyses[1:])
        rows = []
        for analysis in self.analyses:
            order = sorted(analysis.estimable, key=lambda contrast: contrast.estimate)
            ends = [felt([contrast], measure) for contrast in (order[0], order[-1])]
            significant = sum(contrast.p_adjusted < analysis.plan.alpha for contrast in analysis.estimable)
            least = min(contrast.p_adjusted for contrast in analysis.estimable)
            rows.append(
                {
                    "one": analysis,
                    "part": part_of(analysis),
                    "ends": ends,
                    "significant": significant,
                    "least": least,
                }
            )
        return [
            differences,
            LAYOUT.table(
                "together",
                rows,
                f"analyses_{stem}",
                origin=origin_of_contrasts(self.analyses),
                measure=measure,
                plan=first.plan,
                unit=_unit(felt(first.estimable[:1], measure), measure.unit),
                level=f"{100 * (1 - first.plan.alpha):g}",
                adjusted_by=adjusted_by(*self.analyses),
            ),
        ]


def _unit(size: ResponseScaleEffect, unit: str) -> str:
    text = size.unit.strip().replace("%", "percent") or (size.scale if size.scale == "odds ratio" else unit)
    return text or "the unit of the measure"
