"""Chapter on representations: how near hidden states stay to those of the intact text, by layer (Mind Scramble, RQ4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.inside import Panel, pattern_figures
from analysis.inside.pattern_similarity import (
    SeveralModels,
    accuracy_of,
    between_models,
    between_sets,
    cells,
    reliability,
    with_accuracy,
)
from analysis.inside.representations import Represented, represented
from analysis.measures.levels import levels_of
from analysis.names import plain
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.representations_tables import (
    Told,
    cell_table,
    condition_table,
    halves_table,
    models_table,
    sets_table,
)
from analysis.tables import Tables
from stimuli.seeds import stable_seed

METHOD = Markup(
    "Representations. Hidden states of every layer were averaged over the tokens of each prompt (instruction and question "
    "included), and the cosine was taken of each item’s mean in a condition and intact, in the same wording of the "
    "prompt (after Mind "
    "Scramble, 2024, section 4.5). States of one model share a large common part, so that cosines lie near 1 whatever "
    "was read; beside "
    "each stand the cosine after the mean state of all trials was taken away, layer by layer, and the mean cosine of "
    "different intact "
    "items. Intervals are 95% percentile bootstraps over items (2,000 resamples). How alike two maps of conditions and "
    "layers are was "
    "told by their correlation after each layer’s mean over conditions was taken away (and, as a second measure, each "
    "condition’s mean "
    "over layers), tested by permuting the conditions of one map; the cosine of whole maps that the paper gives is near 1 "
    "for any two of "
    "them. Whether models differ in more than the noise of items was told by maps of disjoint halves of the items: correlations "
    "between models, divided by the geometric mean of those within them (Spearman, 1904); by the difference of whole "
    "maps against that "
    "of items exchanged between two models at random (999 times, Holm over pairs); and by assigning halves to the model whose other "
    "half is most like them (after Finn et al., 2015), tested exactly over all assignments in one split that was fixed "
    "by a hash. Models "
    "of unlike depth were compared at relative depths."
)


def write(material: Material) -> Chapter | None:
    """Write the chapter; None where no run kept hidden states, or no factor has an intact level."""
    tables = material.tables
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    blocks: list[Block] = []
    groups: list[str] = []
    for factor, names in tables.factors.items():
        present = [name for name in names if (used[factor] == name).any()]
        if len(present) < 2:
            continue
        does = levels_of(tables.items, factor, present, tables.dictionary.get("between"))
        found = represented(tables, does, material.told)
        if found:
            blocks += _of_factor(found, tables)
            groups += [one.group for one in found]
    if not blocks:
        return None
    return Chapter(
        "representations",
        "How near representations stay to the intact text",
        tuple(blocks),
        marks_of(tuple(dict.fromkeys(groups)), material.kinds),
        methods=(METHOD,),
        sources=("yu2024", "spearman1904", "spearman1910", "brown1910", "finn2015"),
    )


def _of_factor(found: Sequence[Represented], tables: Tables) -> Iterator[Block]:
    """Write maps, their reliability, and what is between data sets and between models."""
    study = str(tables.dictionary["study"])
    told = [_told(one, tables, study) for one in found]
    stem = plain(found[0].factor)
    maps, conditions, whole, by_halves = (
        f"representations{part}_{stem}" for part in ("_map", "", "_cells", "_halves")
    )
    drawn = pattern_figures(
        maps,
        f"Representations by {found[0].factor} and layer",
        [_panel(one) for one in told],
        f"Mean cosine with the same item at {found[0].intact}. Layer 0 is what the embedding gives. Different items: all pairs of "
        "different items, intact; what lies below a scale is drawn in its darkest colour."
        + (" % right: failures as wrong." if any(np.isfinite(one.accuracy).any() for one in told) else ""),
    )
    yield Markup(
        "[[figure:{}]] and [[table:{}]] show how near the representations of each text stay to those of the same text intact. {}"
    ).format(maps, conditions, escape(" ".join(_said(one) for one in told[:_TOLD_IN_FULL])))
    yield from drawn
    yield condition_table(
        conditions, f"Cosine of hidden states with the intact text by {found[0].factor}", told
    )
    yield cell_table(whole, f"Cosine of hidden states by {found[0].factor} and layer", told)
    yield Markup(
        "[[table:{}]] says how alike the maps of two halves of the items are. Their cosine as vectors, the paper’s "
        "measure, is {} or more; of vectors whose cells all lie between {} and {} it says little. All cells are in [[table:{}]]."
    ).format(by_halves, apa.number(_least(told), 4), *_ends(told), whole)
    yield halves_table(by_halves, f"Reliability of maps by {found[0].factor}", told)
    yield from _sets(found, stem, study)
    for part in dict.fromkeys(one.part for one in found):
        several = between_models([one for one in found if one.part == part], study)
        if several is not None:
            yield from _models(several, stem if not part else f"{stem}_{plain(part)}", part)


_TOLD_IN_FULL = 4
"""Up to so many models are told one by one; of more, tables and figures tell."""


def _told(one: Represented, tables: Tables, study: str) -> Told:
    seed = stable_seed(study, "representations", one.group, one.part)
    accuracy = accuracy_of(tables.trials, one)
    return Told(
        f"{one.group}, {one.part}" if one.part else one.group,
        one,
        cells(one.pattern.cosine, seed),
        cells(one.pattern.centred, seed),
        accuracy,
        with_accuracy(one, accuracy, study),
        reliability(one, study),
    )


def _panel(one: Told) -> Panel:
    pattern = one.found.pattern
    return Panel(
        one.title,
        pattern.conditions,
        one.raw.value[:, :-1],
        one.centred.value[:, :-1],
        pattern.apart,
        pattern.apart_centred,
        tuple(float(value) for value in one.accuracy) if np.isfinite(one.accuracy).any() else (),
    )


def _said(one: Told) -> str:
    """Say which condition is nearest and farthest, and what different items have."""
    pattern = one.found.pattern
    order = np.argsort(one.centred.value[:, -1])
    far, near = (pattern.conditions[int(order[place])] for place in (0, -1))
    rho, p, _ = one.by_accuracy
    with_answers = (
        f" Over conditions the centred cosine goes with accuracy, rs = {apa.correlation(rho)}, {apa.p_phrase(p)}."
        if np.isfinite(rho)
        else ""
    )
    if len(order) == 1:
        return (
            f"{one.title}: {far}, {_both(one, int(order[0]))}; different items "
            f"{apa.number(float(pattern.apart.mean()), 3)} and {apa.number(float(pattern.apart_centred.mean()), 3)}.{with_answers}"
        )
    return (
        f"{one.title}: farthest is {far} (mean over layers {_both(one, int(order[0]))}), nearest {near} "
        f"({_both(one, int(order[-1]))}); different "
        f"items have {apa.number(float(pattern.apart.mean()), 3)} and "
        f"{apa.number(float(pattern.apart_centred.mean()), 3)}.{with_answers}"
    )


def _both(one: Told, place: int) -> str:
    return f"cosine {apa.number(one.raw.value[place, -1], 3)}, centred {apa.number(one.centred.value[place, -1], 3)}"


def _least(told: Sequence[Told]) -> float:
    """Return the least cosine of halves, rounded down to four decimals."""
    known = [one.halves[0].cosine for one in told if np.isfinite(one.halves[0].cosine)]
    return math.floor(min(known) * 1e4) / 1e4 if known else float("nan")


def _ends(told: Sequence[Told]) -> tuple[str, str]:
    """Return the least and the largest cosine of all maps."""
    cells = np.concatenate([one.raw.value[:, :-1].ravel() for one in told])
    return apa.number(float(np.nanmin(cells)), 2), apa.number(float(np.nanmax(cells)), 2)


def _sets(found: Sequence[Represented], stem: str, study: str) -> Iterator[Block]:
    """Compare one model's maps in the study's sets of items."""
    pairs = list(between_sets([(one.part, one) for one in found if one.part], study))
    if pairs:
        name = f"representations_sets_{stem}"
        yield Markup("[[table:{}]] compares each model’s maps in different sets of items.").format(name)
        yield sets_table(name, "One model’s maps in several data sets", pairs)


def _models(several: SeveralModels, stem: str, part: str) -> Iterator[Block]:
    name = f"representations_models_{stem}"
    found = several.identified
    how = "all" if found.exact else "9,999 drawn"
    yield Markup("[[table:{}]] compares the maps of models{}. {}").format(
        name,
        f" in {part}" if part else "",
        escape(
            f"Of {apa.count(found.halves)} maps of halves of the items, {apa.count(found.matched)} are most like the "
            f"other half of their own model "
            f"(chance {apa.number(found.halves * found.chance, 1)}), {apa.p_phrase(found.p)} over {how} assignments, "
            f"which cannot fall below "
            f"{apa.p_value(found.least_p)}; over 200 random splits {apa.percent(found.share, 0)} are. Halves of one model correlate "
            f"{apa.correlation(found.within)} on average, halves of two models {apa.correlation(found.between)}."
        ),
    )
    title = "Maps of models against those of halves of one model’s items"
    yield models_table(name, f"{title}, {part}" if part else title, several)
