"""The chapter on cost: people's times on two scales and word by word, models' tokens and bits, and both side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from markupsafe import Markup

from analysis.costs import fewer_participants, unit_costs, word_table
from analysis.costs.words import WordTable
from analysis.readers import PARTICIPANT_KINDS
from analysis.report.blocks import Chapter, Material, marks_of
from analysis.report.chapters import cost_linking, cost_ratios, cost_times, cost_words
from analysis.report.chapters.cost_parts import Part
from analysis.report.parted import Part as Shown
from analysis.report.parted import of_part, parts_by
from analysis.tables import Tables
from stimuli.errors import UserError


def write(material: Material) -> Chapter | None:
    """Write what reading cost people and models; None where nobody has a time, tokens or surprisal in two conditions.

    Parameters
    ----------
    material : Material
    """
    tables, left = fewer_participants(material.tables)
    whole = Part()
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    for factor, levels in material.tables.factors.items():
        if len(levels) > 1:
            shown = parts_by(factor, used, tables)
            whole.add(_of_factor(material, tables, factor, shown, left))
    for cells in material.tables.crossed:
        if cost_times.are_timed_by(material, cells):
            whole.add(cost_times.on_two_scales(material, tables, cells, left))
    if not whole.blocks:
        return None
    if left:
        whole.methods.append(
            Markup("Cost: {}").format(" ".join(left))
            + Markup(" Conditions and order of drawing had no part in it; models of language are whole.")
        )
    return Chapter(
        "cost",
        "Cost",
        tuple(whole.blocks),
        marks=marks_of(whole.groups, material.kinds),
        methods=tuple(whole.methods),
        fits=tuple(whole.fits),
        sources=tuple(whole.sources),
    )


def _of_factor(
    material: Material, tables: Tables, factor: str, shown: Sequence[Shown], left: tuple[str, ...]
) -> Part:
    part = Part()
    if cost_times.has_times(tables):
        for one in shown:
            part.add(_named(cost_times.distributions(one.of(material.tables), factor), one))
        part.add(cost_times.on_two_scales(material, tables, factor, left))
    for one in shown:
        material.told(f"cost: each item's cost by {factor}{one.told}")
        own = replace(material, tables=one.of(material.tables))
        part.add(_named(_side_by_side(own, one.of(tables), factor, left), one))
    return part


def _named(part: Part, one: Shown) -> Part:
    """Name what was written of a part of the trials by it."""
    fits = [replace(fit, title=f"{fit.title}{one.told}") for fit in part.fits]
    return replace(part, blocks=of_part(part.blocks, one), fits=fits)


def _side_by_side(material: Material, tables: Tables, factor: str, left: tuple[str, ...]) -> Part:
    part = Part()
    words, why = _words(tables, factor)
    costs = unit_costs(tables, factor, words, of_words=words is not None)
    if words is not None:
        part.add(_word_by_word(material, tables, factor, words, left))
    elif why and not costs.rows.empty:
        part.say(why)
    if not costs.rows.empty:
        part.add(cost_ratios.side_by_side(material.tables, costs, left))
    return part


def _words(tables: Tables, factor: str) -> tuple[WordTable | None, str]:
    """Return the words of a study, or why single words are not compared by this factor."""
    try:
        words = word_table(tables, factor)
    except UserError as error:
        return None, f"Single words are not compared by {factor}: {error.message}."
    if cost_words.base_changes_words(words) or not cost_words.has_targets(words):
        return None, (
            f"Single words are not compared by {factor}: texts in {words.levels[0]} have changed words too, so that it is no "
            "baseline for them."
        )
    return words, ""


def _word_by_word(
    material: Material, tables: Tables, factor: str, words: WordTable, left: tuple[str, ...]
) -> Part:
    part = Part()
    kinds = tables.trials["reader_kind"]
    if kinds.isin(PARTICIPANT_KINDS).any():
        part.add(cost_words.spilling(material, tables, factor, words, left))
    part.add(cost_words.profile(material, tables, factor, words, left))
    if kinds.isin(PARTICIPANT_KINDS).any() and (~kinds.isin(PARTICIPANT_KINDS)).any():
        part.add(cost_linking.milliseconds_a_bit(material, tables, factor, words))
    return part
