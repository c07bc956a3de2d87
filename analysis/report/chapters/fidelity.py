"""Chapter on fidelity: whether models show people's effects, find the same items hard, and order conditions alike."""

from __future__ import annotations

from markupsafe import Markup, escape

from analysis.readers import PARTICIPANT_KINDS
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.fidelity_effects import compared, effects_blocks, methods_of_effects
from analysis.report.chapters.fidelity_items import METHODS, items_part, order_part

SOURCES = ("spearman1904", "spearman1910", "brown1910")


def write(material: Material) -> Chapter | None:
    """Write the chapter; None without people (or their stand-ins) and a model to hold them against."""
    trials = material.tables.trials
    used = trials[trials["excluded_reason"].isna()]
    present = set(used["reader_kind"].unique())
    if not present & set(PARTICIPANT_KINDS) or "model" not in present or not material.tables.factors:
        return None
    groups = [str(one) for one in used["reader_group"].unique()]
    found = compared(material)
    blocks: list[Block] = [
        Markup(
            "A model can be as accurate as people for other reasons. Three questions are asked of each model by itself: whether "
            "it shows people's effects, whether the same items are hard, "
            "and whether conditions come in the same order. No claim "
            "is made about "
            "models in general."
        )
    ]
    missing: list[str] = []
    for analysis, table in found:
        blocks += effects_blocks(analysis, table, material)
    if not found:
        missing.append(
            "Effects: no analysis holds people and a model together, so no effect can be set beside another."
        )
    for factor in _factors(material, [one.plan.factor for one, _ in found]):
        for part in (items_part(material, factor), order_part(material, factor)):
            blocks += part.blocks
            missing += part.missing
    if missing:
        blocks.append(Markup(escape("What could not be said. " + " ".join(dict.fromkeys(missing)))))
    bounded = any(one.plan.equivalence is not None for one, _ in found)
    return Chapter(
        "fidelity",
        "Fidelity: how like people each model is",
        tuple(blocks),
        marks=marks_of(groups, material.kinds),
        planned=any(one.plan.planned for one, _ in found),
        methods=(*((methods_of_effects(found),) if found else ()), *METHODS),
        sources=(*SOURCES, *(("schuirmann1987", "lakens2017") if bounded else ())),
    )


def _factors(material: Material, compared_by: list[str]) -> list[str]:
    """Return the factors by which people and models were compared; every factor where none was."""
    known = material.tables.factors
    own = [factor for factor in dict.fromkeys(compared_by) if factor in known]
    return own or list(known)
