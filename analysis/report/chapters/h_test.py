"""The chapter on H-TEST: the paper's tables and figures from the study's own run, with a test behind every "no effect"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures import Drawing
from analysis.figures.h_test import Line, lines_figure
from analysis.intervals import OF_SHARES
from analysis.mixed.adjustments import corrected
from analysis.plan import ALPHA
from analysis.published.h_test_pairs import family_pairs, in_common, sizes_of, thinking_pairs
from analysis.published.h_test_readings import is_as_published
from analysis.published.h_test_tables import (
    Asked,
    Contrast,
    Paired,
    accuracy,
    asked,
    between_makings,
    covers,
    mean_with_ends,
    paired,
    rules_stated,
)
from analysis.readers import PARTICIPANT_KINDS, group_order, headed, kinds_of, named
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.h_test_laid_out import (
    full_table,
    makings_table,
    paired_table,
    printed_table,
    reader_table,
    rules_table,
    thoughts_table,
)
from analysis.report.chapters.h_test_pictures import bound_of, no_bound, pictures
from analysis.report.chapters.h_test_readings import raters_said, readings, sorted_and_stated

MOST_TOLD = 8
"""More comparisons than these are counted in the text, and told in the table."""
SIGN = " (differences are the second condition minus the first)"
ORDINALS = ("2nd", "3rd", *(f"{place}th" for place in range(4, 20)))
METHOD = Markup(
    "H-TEST (Lee &amp; Lim, 2024): conditions that asked a model about the same items were compared item by item by one paired "
    "t test, to which the interval belongs; if fewer than five items changed, the variance was that of one more. "
    "<i>p</i> values of all comparisons together were adjusted after Benjamini and "
    "Hochberg (1995). Conditions are called alike only where two one-sided tests (Schuirmann, 1987) reject the bound of the plan. "
    "The same model shown text and shown pictures was compared task by task in the same way. "
    "Makings of items were compared over the tasks that both have, with items as units. People's numbers of examples differ between "
    "persons: they are compared in the mixed models of the planned analyses, not here."
)


def write(material: Material) -> Chapter | None:
    """Write the tables of H-TEST; None where a study asks none of its tasks."""
    found = asked(material.tables)
    if found is None:
        return None
    material.told("H-TEST")
    readers = material.tables.dictionary["readers"]
    kinds = kinds_of(pd.concat([found.trials, found.statements]))
    blocks: list[Block] = []
    if len(found.trials):
        blocks += _classified(found, readers, kinds)
        blocks += _compared(found, readers, kinds, material)
        blocks += pictures(found.trials, readers, *bound_of(material), why=no_bound(material))
        blocks += _makings(found, kinds, material)
        blocks += readings(found, kinds, material)
    blocks += _stated(found, kinds, material.tables.dictionary.get("rating"))
    blocks += [
        Markup(
            "[[table:h_test_printed]] has the averages of the paper's Table 6 beside the means of its cells: these numbers are "
            "quoted, not of this study."
        ),
        printed_table("h_test_printed"),
    ]
    return Chapter(
        "h-test",
        "H-TEST: rules learnt from examples",
        tuple(blocks),
        marks_of(tuple(kinds), kinds),
        methods=(METHOD,),
        sources=("lee2024htest", "benjamini1995", "schuirmann1987"),
    )


def _of(making: str) -> str:
    return f", {making} items" if making else ""


def _stem(name: str, making: str) -> str:
    return f"{name}_{making}" if making else name


def _classified(found: Asked, readers: Mapping[str, Any], kinds: dict[str, str]) -> Iterator[Block]:
    """Lay out accuracy by task, number of examples and reader, for each making of items, and draw it."""
    order = group_order(found.trials)
    families = {
        name: str((one.get("settings") or {}).get("family") or "")
        for name, one in readers.items()
        if isinstance(one, Mapping)
    }
    shares = accuracy(found.trials, ("k", "making"))
    if found.unanswered:
        yield escape(
            f"{apa.counted(found.unanswered, 'trial')} left out: the server failed, or the prompt is longer than the model reads."
        )
    for making in found.makings:
        own = shares[shares["making"] == making]
        most = own["k"].max()
        at_most = own if pd.isna(most) else own[own["k"] == most]
        present = [reader for reader in order if (own["reader_group"] == reader).any()]
        names = _stem("h_test_full", making), _stem("h_test_readers", making)
        told = []
        means = at_most[at_most["task"] == "average"].set_index("reader_group")["accuracy"]
        for group in (one for one in present if kinds[one] != "baseline" and pd.notna(means.get(one))):
            told.append(f"{named(group, kinds)} {apa.percent(means[group])}")
        where = "" if pd.isna(most) else f" at k = {int(most)}"
        said = f" Mean over tasks{where}{_of(making)}: {'; '.join(told)}; chance is 50%." if told else ""
        yield Markup("[[table:{}]] and [[table:{}]] have the share of right answers{}.").format(
            *names, _of(making)
        ) + escape(said)
        yield full_table(names[0], own, present, kinds, _of(making))
        yield reader_table(
            names[1], at_most, present, kinds, families, sizes_of(readers), f"{where}{_of(making)}"
        )
    if len(found.ks) > 1:
        yield Markup("[[figure:h_test_examples]] has accuracy by the number of examples.")
        yield _examples_figure(found, kinds)
    if family_pairs(readers):
        figure = _family_figure(found, readers, kinds)
        if figure is not None:
            yield Markup("[[figure:h_test_families]] has accuracy by size within families.")
            yield figure
    pairs = [pair for pair in thinking_pairs(readers) if set(pair) <= set(order)]
    if pairs:
        yield Markup(
            "[[table:h_test_thoughts]] and [[figure:h_test_thoughts]] set answers with and without thoughts side by side."
        )
        yield thoughts_table("h_test_thoughts", shares, pairs)
        yield _thoughts_figure(found, pairs, kinds)


def _line(label: str, group: str, steps: Mapping[int, pd.DataFrame], *, is_open: bool = False) -> Line | None:
    points = [(place, *mean_with_ends(rows)) for place, rows in steps.items() if len(rows)]
    if not points:
        return None
    places, values, low, high = zip(*points, strict=True)
    return Line(label, group, places, values, low, high, is_open)


def _left_out(partial: Iterable[str]) -> str:
    """Name readers of which a point would be of other tasks or conditions than those of the others."""
    names = [headed(one) for one in partial]
    if not names:
        return ""
    return f" Left out where not all tasks or conditions were answered: {apa.listing(names)}."


NOTE = (
    f"Points are means, bars 95% intervals: Student's over people, for a model {OF_SHARES}. What cannot be read counts as "
    "wrong."
)


def _examples_figure(found: Asked, kinds: dict[str, str]) -> Drawing:
    panels = []
    partial: list[str] = []
    for making in found.makings:
        own = found.trials[found.trials["making"] == making]
        lines = []
        for group in group_order(own):
            steps = {}
            for place, k in enumerate(found.ks):
                every = own[own["k"] == k]
                rows = every[every["reader_group"] == group]
                if covers(rows, every):
                    steps[place] = rows
                elif len(rows) and group not in partial:
                    partial.append(group)
            line = _line(group, group, steps)
            lines += [line] if line is not None else []
        panels.append((f"{making} items".capitalize() if making else "", lines))
    present = {group: kinds[group] for group in group_order(found.trials)}
    title = "H-TEST by the number of examples (k) and reader, as Figure 3 of Lee and Lim (2024)"
    note = NOTE + _left_out(partial)
    return lines_figure(
        "h_test_examples", title, note, panels, [str(k) for k in found.ks], "Solved examples (k)", present
    )


def _family_figure(found: Asked, readers: Mapping[str, Any], kinds: dict[str, str]) -> Drawing | None:
    rows_of = {str(group): own for group, own in found.trials.groupby("reader_group")}
    families: dict[str, list[str]] = {}
    partial: dict[str, None] = {}
    for family, small, large in family_pairs(readers):
        for name in (small, large):
            if name in rows_of and not covers(rows_of[name], found.trials):
                partial[name] = None
            elif name in rows_of and name not in families.setdefault(family, []):
                families[family].append(name)
    lines = [
        line
        for family, names in families.items()
        if len(names) > 1
        and (line := _line(family, names[0], {place: rows_of[name] for place, name in enumerate(names)}))
    ]
    if not lines:
        return None
    only = next(iter(families.values())) if len(lines) == 1 else []
    steps = only or _steps(max(len(line.places) for line in lines))
    told = "; ".join(f"{family}: {', '.join(names)}" for family, names in families.items())
    present = {line.group: kinds[line.group] for line in lines}
    title = "H-TEST by size within families of models, as Figure 2 of Lee and Lim (2024)"
    note = f"{NOTE} From small to large: {told}. All numbers of examples and makings together.{_left_out(partial)}"
    return lines_figure(
        "h_test_families", title, note, [("", lines)], steps, "Size within the family", present
    )


def _steps(most: int) -> list[str]:
    """Name the sizes of families that have at most so many models."""
    if most == 2:
        return ["smaller", "larger"]
    return ["smallest", *(f"{ordinal} smallest" for ordinal in ORDINALS[: most - 1])]


def _thoughts_figure(found: Asked, pairs: list[tuple[str, str]], kinds: dict[str, str]) -> Drawing:
    rows_of = {str(group): own for group, own in found.trials.groupby("reader_group")}
    lines = []
    for direct, thinks in pairs:
        both = in_common(rows_of[direct], rows_of[thinks])
        read = tuple(rows[rows["answered"] == 1] for rows in both)
        for label, (first, second), is_open in ((direct, both, False), (f"{direct}, adjusted", read, True)):
            line = _line(label, direct, {0: first, 1: second}, is_open=is_open)
            lines += [line] if line is not None else []
    present = {direct: kinds[direct] for direct, _ in pairs}
    title = "H-TEST with and without a chain of thought, as Figure 4 of Lee and Lim (2024)"
    note = f"{NOTE} Open marks: adjusted accuracy, of the answers that could be read.{_pooled(found)}"
    steps = ["direct", "with thoughts"]
    return lines_figure(
        "h_test_thoughts", title, note, [("", lines)], steps, "How models were asked", present
    )


def _pooled(found: Asked) -> str:
    """Say over which numbers of examples and makings a figure goes, where the paper's is of one."""
    together = [f"all numbers of examples ({apa.listing([str(k) for k in found.ks])})"] if found.ks else []
    together += [f"{apa.listing(found.makings)} items"] if len(found.makings) > 1 else []
    return (
        f" Over {apa.listing(together)}; the paper's figure is of k = 14 and of released items alone."
        if together
        else ""
    )


def _pairs(
    found: Asked, readers: Mapping[str, Any], kinds: dict[str, str]
) -> Iterator[tuple[str, str, str, pd.DataFrame, pd.DataFrame]]:
    """Go through the comparisons that the paper makes: reader, what is compared, making, first and second trials."""
    rows_of = {str(group): own for group, own in found.trials.groupby("reader_group")}
    models = {group: rows for group, rows in rows_of.items() if kinds[group] not in PARTICIPANT_KINDS}
    for group, rows in models.items():
        for making in found.makings:
            own = rows[rows["making"] == making]
            steps = list(pairwise(found.ks))
            if len(found.ks) > 2:
                steps.append((found.ks[0], found.ks[-1]))
            for few, many in steps:
                first, second = in_common(own[own["k"] == few], own[own["k"] == many], varied="k")
                yield group, f"k = {few}, k = {many}", making, first, second
        if "label_map" in rows:
            published = rows["label_map"].astype(str).map(is_as_published)
            if published.any() and not published.all():
                first, second = in_common(rows[published], rows[~published], varied="label_map")
                yield group, "labels as published, swapped", "", first, second
    for direct, thinks in thinking_pairs(readers):
        if direct in models and thinks in models:
            for making in found.makings:
                both = [models[name][models[name]["making"] == making] for name in (direct, thinks)]
                first, second = in_common(both[0], both[1])
                yield direct, f"direct, with thoughts ({thinks})", making, first, second
                read = in_common(first[first["answered"] == 1], second[second["answered"] == 1])
                if len(read[1]) < len(second) and len(read[1]):
                    yield direct, f"direct, with thoughts ({thinks}), both read", making, read[0], read[1]
    for family, small, large in family_pairs(readers):
        if small in models and large in models:
            for making in found.makings:
                both = [models[name][models[name]["making"] == making] for name in (small, large)]
                first, second = in_common(both[0], both[1])
                yield small, f"{small}, {large} ({family})", making, first, second


T = TypeVar("T", bound=tuple[Any, ...])


def _data_first(tested: list[T], kinds: Mapping[str, str]) -> list[T]:
    """Leave baselines out: they are no data, and enter a table, and what its p is adjusted over, only where nothing else is there."""
    return [one for one in tested if kinds[one[0]] != "baseline"] or tested


def _compared(
    found: Asked, readers: Mapping[str, Any], kinds: dict[str, str], material: Material
) -> Iterator[Block]:
    """Test every claim that a condition has no effect, over the items that both conditions asked."""
    half, bound = bound_of(material)
    order = group_order(found.trials)
    tested: list[tuple[str, str, str, Paired]] = []
    for reader, what, making, first, second in _pairs(found, readers, kinds):
        one = paired(first, second, half)
        if one is not None:
            tested.append((reader, what, making, one))
    if not tested:
        yield escape(
            "No two conditions asked a model about the same items: nothing can be compared item by item."
        )
        return
    tested = _data_first(tested, kinds)
    adjusted = corrected(np.array([one.p for *_, one in tested]), "BH")
    rows = [(*one, float(p)) for one, p in zip(tested, adjusted, strict=True)]
    differ = [row for row in rows if row[4] < ALPHA and kinds[row[0]] != "baseline"]
    alike = [row for row in rows if row[3].p_equal < ALPHA and kinds[row[0]] != "baseline"]
    data = [row for row in rows if kinds[row[0]] != "baseline"]
    if not data:
        yield Markup(
            "[[table:h_test_paired]] compares conditions item by item; only baselines answered the same items in several."
        )
        yield paired_table("h_test_paired", rows, order, kinds, bound)
        return
    told = [
        f"Of {apa.counted(len(data), 'comparison')} of models over the same items {apa.count(len(differ))} "
        f"{'differs' if len(differ) == 1 else 'differ'} at adjusted p < .05{SIGN if differ else ''}."
    ]
    for reader, what, making, one, p in differ[:MOST_TOLD]:
        told.append(
            f"{reader}, {what}{_of(making)}: {apa.number(100 * one.difference, 1)} points, 95% CI "
            f"{apa.interval(100 * one.low, 100 * one.high, 1)}, adjusted {apa.p_phrase(p)}."
        )
    if bound is None:
        told.append(f"None of the others is said to be without effect, since {no_bound(material)}.")
    else:
        told.append(
            f"Within {bound} of each other by two one-sided tests: "
            f"{apa.count(len(alike))} of {apa.count(len(data))}. A difference neither significant nor within the bound is open."
        )
    yield Markup("[[table:h_test_paired]] tests each condition against its neighbour. ") + escape(
        " ".join(told)
    )
    yield paired_table("h_test_paired", rows, order, kinds, bound)


def _makings(found: Asked, kinds: dict[str, str], material: Material) -> Iterator[Block]:
    """Contrast released with fresh, and fresh with matched items."""
    if len(found.makings) < 2:
        return
    half, bound = bound_of(material)
    contrasted: list[tuple[str, str, Contrast]] = []
    for group in group_order(found.trials):
        own = found.trials[found.trials["reader_group"] == group]
        for first, second in pairwise(found.makings):
            one = between_makings(own[own["making"] == first], own[own["making"] == second], half)
            if one is not None:
                contrasted.append((group, f"{second} − {first}", one))
    if not contrasted:
        yield escape("Makings of items could not be contrasted: no task has two items of each.")
        return
    contrasted = _data_first(contrasted, kinds)
    adjusted = corrected(np.array([one.p for *_, one in contrasted]), "BH")
    rows = [(*one, float(p)) for one, p in zip(contrasted, adjusted, strict=True)]
    data = [row for row in rows if kinds[row[0]] != "baseline"]
    differ = [row for row in data if row[3] < ALPHA]
    counts = (
        f"Of {apa.counted(len(data), 'contrast')} {apa.count(len(differ))} "
        f"{'differs' if len(differ) == 1 else 'differ'} from 0 at adjusted p < .05."
    )
    is_few = len(data) <= MOST_TOLD
    told = [] if is_few else [counts]
    told += [
        f"{headed(group)}, {what}: {apa.number(100 * one.difference, 1)} points, 95% CI "
        f"{apa.interval(100 * one.low, 100 * one.high, 1)}, adjusted {apa.p_phrase(p)}."
        for group, what, one, p in (data if is_few else differ[:MOST_TOLD])
    ]
    yield Markup("[[table:h_test_makings]] contrasts the makings of items. ") + escape(" ".join(told))
    yield makings_table("h_test_makings", rows, kinds, bound)


def _stated(found: Asked, kinds: dict[str, str], rating: Mapping[str, Any] | None) -> Iterator[Block]:
    """Lay out how many rules were stated right."""
    statements = found.statements[found.statements["reader_kind"] != "baseline"]
    if statements.empty:
        return
    order = group_order(statements)
    stated = rules_stated(statements).sort_values(
        "reader_group", key=lambda names: names.map(order.index), kind="stable"
    )
    rated = int(stated["rated"].sum())
    said = (
        ""
        if rated
        else " None is rated yet: raters do so on the dashboard, and the report is then written again."
    )
    yield Markup("[[table:h_test_rules]] has the rules that were stated.") + escape(
        said or f" {raters_said(rating)}".rstrip()
    )
    yield rules_table("h_test_rules", stated, kinds)
    yield from sorted_and_stated(found, kinds)
