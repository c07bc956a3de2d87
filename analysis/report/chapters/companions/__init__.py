"""Alternative analyses of accuracy: with models as a sample of models, and by label probabilities.

Each accompanies an analysis of the report and is exploratory; the chapter is absent if none applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from analysis.descriptives import ConditionMean, describe, describe_rows, described_rows
from analysis.exclusions import usable
from analysis.frames import LEAD
from analysis.plan_runner import SupplementaryModel, companions
from analysis.planned import held_by
from analysis.random_structure import MODELS_FOR_A_CLAIM
from analysis.report.blocks import Block, Chapter, Draft, Material, ReportedFit
from analysis.report.fit_warnings import warnings_of
from analysis.report.layout import ChapterLayout
from analysis.report.results import paragraphs
from analysis.report.results.tables import contrast_table, model_table

LAYOUT = ChapterLayout(Path(__file__).parent)


def write(material: Material) -> Chapter | None:
    """Write the chapter, or None where no companion applies."""
    models = companions(material.analyses, material.tables, material.told)
    shown = [model for model in models if model.analysis.has_results or model.analysis.remarks]
    draft = Draft()
    for number, model in enumerate(shown, 1):
        draft.blocks += _told(model, number, material)
        if model.analysis.fit is not None:
            draft.fits.append(ReportedFit(model.analysis.plan.name, model.analysis.fit))
    kinds = dict.fromkeys(model.kind for model in shown)
    groups = dict.fromkeys(group for model in shown for group in model.analysis.plan.groups)
    methods = [
        LAYOUT.sentences(f"methods_of_{kind.replace(' ', '_')}", fewest=MODELS_FOR_A_CLAIM) for kind in kinds
    ]
    return LAYOUT.chapter("accuracy-otherwise", draft, groups, material.kinds, methods)


def _told(model: SupplementaryModel, number: int, material: Material) -> list[Block]:
    analysis = model.analysis
    blocks = LAYOUT.blocks(
        model.kind.replace(" ", "_"),
        name=analysis.plan.heading,
        doubts=warnings_of(analysis) if analysis.has_results else [],
    )
    if not analysis.has_results:
        return [*blocks, *paragraphs(analysis, (), material.kinds)]
    stem = f"otherwise_{number}"
    blocks += paragraphs(analysis, _cells(model, material), material.kinds)
    blocks += [model_table(analysis, f"{stem}_model")] if analysis.model is not None else []
    blocks += [contrast_table(analysis, f"{stem}_differences")] if analysis.contrasts else []
    return blocks


def _cells(model: SupplementaryModel, material: Material) -> Sequence[ConditionMean]:
    plan = model.analysis.plan
    if plan.measure == LEAD:
        rows = described_rows(model.analysis.rows, plan.measure)
        return describe_rows(rows, plan.measure, plan.factor, model.analysis.levels)
    trials = material.tables.trials
    used = trials[usable(trials, plan.trials) & held_by(plan, trials)]
    return describe(used, plan.measure, plan.factor, plan.levels)
