"""Accuracy, modelled otherwise: with a weak prior, with models as a sample of models, by label probabilities.

Each stands beside an analysis of the report and is exploratory; where none applies there is no such chapter.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from analysis.companions import Companion, companions
from analysis.descriptives import Cell, describe, describe_rows, described_rows
from analysis.mixed.penalty import Penalty
from analysis.quantities import LEAD
from analysis.random_structure import MODELS_FOR_A_CLAIM
from analysis.report.blocks import Block, Chapter, Material, ReportedFit, marks_of
from analysis.report.model_tables import contrast_table, model_table
from analysis.report.prose import paragraphs, warnings_of
from analysis.within import held_by

OPENING = {
    "weak prior": "A reader who is always right, or always wrong, in some condition has no finite log odds there and stays out "
    "of the logistic model above. A weakly informative prior keeps it in the comparison: its direction comes from the "
    "data, its size on the logit scale from the prior, so that percentage points say more than odds ratios.",
    "models in general": "With models as a sample of models, the comparison is one of people with models in general.",
    "label probabilities": "How far the correct label led in log-probability (its best rival taken away; with two labels, the "
    "log odds of the correct one) needs no repeated answers and says more than right or wrong.",
}
METHODS = {
    "weak prior": f"Weak prior: {Penalty()}, on the scale of log odds (Gelman et al., 2008); the fit maximises the penalised "
    "Laplace likelihood, which lme4 does not: models.R refits it by lme4's likelihood with the same prior written out.",
    "models in general": f"Models in general: from {MODELS_FOR_A_CLAIM} models on, with a random intercept of each model and a "
    "variance of model × condition (a covariance matrix of slopes from ten models a condition on); Student's t with as many "
    "degrees of freedom as models but one. Models are no random draw from all there are: readers judge what they stand for.",
    "label probabilities": "Label probabilities: linear mixed models of the lead of the correct label in nats, items and "
    "conditions as in the model of accuracy, without people, who have none.",
}


def write(material: Material) -> Chapter | None:
    """Write the chapter, or None where no companion applies."""
    found = companions(material.analyses, material.tables, material.told)
    shown = [one for one in found if one.analysis.model is not None or one.analysis.remarks]
    if not shown:
        return None
    blocks: list[Block] = []
    for place, one in enumerate(shown, 1):
        blocks += _told(one, place, material)
    kinds = dict.fromkeys(one.kind for one in shown)
    fits = [
        ReportedFit(one.analysis.plan.name, one.analysis.model.source)
        for one in shown
        if one.analysis.model is not None and one.analysis.model.source is not None
    ]
    groups = dict.fromkeys(group for one in shown for group in one.analysis.plan.groups)
    return Chapter(
        "accuracy-otherwise",
        "Accuracy, modelled otherwise",
        tuple(blocks),
        marks=marks_of(tuple(groups), material.kinds),
        methods=tuple(escape(METHODS[kind]) for kind in kinds),
        fits=tuple(fits),
        supplement=True,
        sources=("gelman2008",) if "weak prior" in kinds else (),
    )


def _told(one: Companion, place: int, material: Material) -> list[Block]:
    analysis = one.analysis
    name = analysis.plan.name
    blocks: list[Block] = [
        Markup("<h3>{}</h3>").format(name[0].upper() + name[1:]),
        escape(OPENING[one.kind]),
    ]
    if analysis.model is None:
        return [*blocks, *paragraphs(analysis, (), material.kinds, None)]
    doubts = " ".join(warnings_of(analysis))
    blocks += [escape(doubts)] if doubts else []
    stem = f"otherwise_{place}"
    blocks += paragraphs(analysis, _cells(one, material), material.kinds, None)
    blocks += [model_table(analysis, f"{stem}_model")]
    blocks += [contrast_table(analysis, f"{stem}_differences")] if analysis.contrasts else []
    return blocks


def _cells(one: Companion, material: Material) -> Sequence[Cell]:
    plan = one.analysis.plan
    if plan.measure == LEAD:
        rows = described_rows(one.analysis.rows, plan.measure)
        return describe_rows(rows, plan.measure, plan.factor, one.analysis.levels)
    used = material.tables.trials[material.tables.trials["excluded_reason"].isna()]
    return describe(used[held_by(plan, used)], plan.measure, plan.factor, plan.levels)
