"""Whether conclusions hang on a few items, on random effects, or on how models were asked; which items and readers deviate."""

from __future__ import annotations

from markupsafe import Markup, escape

from analysis.report.blocks import Block, Chapter, Material, ReportedFit, marks_of
from analysis.report.chapters.robustness_asking import ASKING, asked_in_ways
from analysis.report.chapters.robustness_checks import EQUATIONS, LEAVING_OUT, without_items, without_random
from analysis.report.chapters.robustness_shown import DEVIATIONS, by_class, deviating


def write(material: Material) -> Chapter | None:
    """Write all checks that the study at hand allows, and name those that it does not."""
    analyses = sorted(material.analyses, key=lambda one: not one.plan.planned)
    fits: list[ReportedFit] = []
    parts: tuple[tuple[str, list[Block], str], ...] = (
        ("Accuracy by class of items", list(by_class(material)), ""),
        ("Which items and readers deviate", list(deviating(analyses, material)), DEVIATIONS),
        ("Without each set of items", list(without_items(analyses, material, fits)), LEAVING_OUT),
        ("Without random effects", list(without_random(analyses, material)), EQUATIONS),
        ("How models were asked", list(asked_in_ways(material, fits)), ASKING),
    )
    blocks: list[Block] = []
    for heading, told, _ in parts:
        if told:
            blocks += [Markup("<h3>{}</h3>").format(heading), *told]
    if not blocks:
        return None
    return Chapter(
        "robustness",
        "Robustness: items, random effects, ways of asking",
        tuple(blocks),
        marks=marks_of(tuple(material.kinds), material.kinds),
        methods=tuple(escape(method) for _, told, method in parts if told and method),
        fits=tuple(fits),
        sources=("bates2015lme4", "liang1986", "mancl2001"),
        supplement=True,
    )
