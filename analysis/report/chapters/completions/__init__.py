"""Completions of texts (cloze): people's shares, their entropy, and how models agree with them."""

from __future__ import annotations

from pathlib import Path

from analysis.measures.cloze import OF_ITEMS, agreement, cells, completion_trials, has_completions, likely
from analysis.names import plain
from analysis.readers import group_order, in_order, kinds_of
from analysis.report.blocks import Chapter, Draft, Material
from analysis.report.layout import ChapterLayout

LAYOUT = ChapterLayout(Path(__file__).parent)
MOST_ITEMS = 100
"""Most items and conditions that are listed; more are in the items table alone."""


def write(material: Material) -> Chapter | None:
    """Write how readers continued the texts; None where they continued none."""
    tables = material.tables
    if not has_completions(tables):
        return None
    rows = completion_trials(tables)
    if rows.empty:
        return None
    material.told("completions")
    groups, kinds = group_order(rows), kinds_of(rows)
    draft = Draft()
    for factor, levels in tables.factors.items():
        of_factor = rows[rows[factor].notna()]
        if of_factor.empty:
            continue
        means = in_order(cells(of_factor, factor), groups, factor, tuple(levels))
        has_answers, has_probabilities = means["correct"].notna().any(), means["p_answer"].notna().any()
        table = LAYOUT.table(
            "shares", means, plain("completions", factor), factor=factor, kinds=kinds,
            has_answers=bool(has_answers), has_probabilities=bool(has_probabilities),
        )  # fmt: skip
        draft.blocks += LAYOUT.blocks("shares", table=table, factor=factor, kinds=kinds)
    found = [{"group": group, "r": r, "n": n} for group, (r, n) in agreement(rows).items()]
    if found:
        draft.blocks += LAYOUT.blocks("agreement", found=found, kinds=kinds)
    items = tables.items[tables.items["completions"].notna()]
    if len(items) <= MOST_ITEMS:
        factors = [name for name in tables.factors if name in items and items[name].notna().any()]
        items = items.sort_values(factors, kind="stable") if factors else items
        most = [likely(text) for text in items["completions"]]
        listed = items[["item_id", *OF_ITEMS]].assign(
            first=[text for text, _ in most],
            first_share=[share for _, share in most],
            condition=items[factors].astype(str).agg(" × ".join, axis=1) if factors else "all",
        )
        draft.blocks += LAYOUT.blocks(
            "items", table=LAYOUT.table("items", listed, "completions_items", kinds=kinds)
        )
    return LAYOUT.chapter("completions", draft, groups, kinds)
