"""The same comparisons under every usual preparation of the data: time rules, scales, answers, sessions, failures."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.drawing import Drawing
from analysis.figures.heat_map import heat_map_figure
from analysis.figures.multiverse import multiverse_figure
from analysis.frames import FAILURES
from analysis.multiverse import accuracy_multiverse, time_multiverse
from analysis.plan import Plan
from analysis.preparing import keeps_right_answers_alone, own_bounds
from analysis.readers import headed, marked, named
from analysis.report.blocks import Block, Chapter, Material, ReportedFit, marks_of
from analysis.report.chapters.alternatives_sessions import other_sessions
from analysis.report.chapters.alternatives_tables import (
    excludes_zero,
    same_conclusion,
    summary_table,
    universes_tables,
)
from analysis.results import Analysis
from analysis.robustness import drawn_readers
from analysis.tables import Tables
from stimuli.errors import UserError

MOST_TRIALS = 200_000
"""Analysed trials above which universes take whole readers drawn by a stable hash."""
MOST_PLANS = 4
MOST_BLOCKS = 3
"""Contrasts of a heat map of universes."""


def write(material: Material) -> Chapter | None:
    """Write the multiverse of each comparison of times and of accuracy."""
    wanted = list(_comparisons(material))
    blocks: list[Block] = []
    groups: list[str] = []
    fits: list[ReportedFit] = []
    ranked = sorted(material.analyses, key=lambda one: not one.plan.planned)
    if any(one.model is not None for one in ranked):
        blocks += [
            Markup("<h3>With and without flagged sessions</h3>"),
            *other_sessions(ranked, material, fits),
        ]
        groups += [group for one in ranked for group in one.plan.groups]
    tables, drawn = material.tables, ""
    if wanted:
        tables, drawn = drawn_readers(tables, MOST_TRIALS)
    for number, analysis in enumerate(wanted[:MOST_PLANS], 1):
        plan = analysis.plan
        material.told(f"other ways to prepare: {plan.name}")
        try:
            told = list(_told(plan, tables, material, number))
        except UserError as error:
            told = [escape(f"Not compared: {error.message}.")]
        if told:
            blocks += [Markup("<h3>{}</h3>").format(f"{plan.name[0].upper()}{plan.name[1:]}"), *told]
            groups += plan.groups
    if not blocks:
        return None
    left = [one.plan.name for one in wanted[MOST_PLANS:]]
    end = [drawn] if drawn else []
    if left:
        end.append(f"Not compared here, to stay quick: {apa.listing(left)}.")
    end.append(
        "Beyond other sessions no mixed models were fitted to data prepared otherwise, since each takes minutes; the Python package "
        "fits them when asked."
    )
    blocks.append(escape(" ".join(end)))
    return Chapter(
        "alternatives",
        "Other ways to prepare the data",
        tuple(blocks),
        marks=marks_of(tuple(dict.fromkeys(groups)), material.kinds),
        methods=(METHOD,),
        fits=tuple(fits),
        sources=("steegen2016",),
        supplement=True,
    )


METHOD = escape(
    "Each difference was computed again under every usual choice of preparation (a multiverse; Steegen et al., 2016): for times, "
    "the study's own bounds, none, wide and narrow fixed bounds, or limits of 2 to 3 standard deviations or median absolute "
    "deviations within participant and condition, with all valid or only right answers, in log or raw milliseconds; for accuracy, "
    "failures as wrong, left out, or at chance; for both, with and without excluded sessions. Differences are means over "
    "participants (items, for a model) with Student's 95% intervals and are no further tests."
)


def _comparisons(material: Material) -> Iterator[Analysis]:
    """Yield the analyses of times and accuracy, each comparison once, planned ones first."""
    seen: set[tuple[object, ...]] = set()
    for one in sorted(material.analyses, key=lambda one: not one.plan.planned):
        plan = one.plan
        if plan.measure.name != "correct" and plan.measure.unit != "ms":
            continue
        if plan.measure.of == "models":
            continue
        key = (plan.measure.name, plan.factor, plan.groups, plan.trials, plan.within)
        if key not in seen:
            seen.add(key)
            yield one


def _told(plan: Plan, tables: Tables, material: Material, number: int) -> Iterator[Block]:
    if plan.measure.name == "correct":
        yield from _accuracy(plan, tables, material, number)
    else:
        yield from _times(plan, tables, material, number)


def _times(plan: Plan, tables: Tables, material: Material, number: int) -> Iterator[Block]:
    found = time_multiverse(tables, plan)
    if found.empty or not found["low"].notna().any():
        yield escape(
            f"Fewer than two participants have a {plan.measure.noun} in both conditions of a contrast, so that no universe has an "
            "interval."
        )
        return
    bounds = own_bounds(tables.dictionary["exclude"], plan.exclude, plan.measure.name)
    of_right = " of right answers" if keeps_right_answers_alone(plan.exclude) else ""
    own = (
        f"The study fixed beforehand that only times{of_right} from {apa.count(bounds.low)} to {apa.count(bounds.high)} ms count."
        if bounds is not None
        else f"The study fixed no bounds for {plan.measure.noun}: its own choice is that every time{of_right} counts."
    )
    if bounds is not None:
        took = found[found["is_primary"]].drop_duplicates("group")
        shares = [
            f"{apa.percent(one['removed'])} of the times of {named(str(one['group']), material.kinds)}"
            for one in took.to_dict("records")
        ]
        own += f" They take away {apa.listing(shares)}." if shares else ""
    name = f"multiverse_{number}"
    each = universes_tables(found, f"{name}_universes", plan.measure.noun, material.kinds)
    yield (
        escape(own)
        + Markup(" [[table:{0}]] sums up the universes, [[table:{1}]] has each of them. ").format(
            name, each[0].name
        )
        + escape(" ".join(_sentences(found, material.kinds)))
        + escape(_uneven(found))
    )
    for group, part in found.groupby("group", sort=False):
        figure = multiverse_figure(
            f"multiverse_{number}_{'people' if group == 'human' else 'simulated'}",
            f"Differences in {plan.measure.noun} under every usual choice: {headed(str(group)).lower()}",
            part,
            {str(group): material.kinds.get(str(group), "human")},
        )
        yield Markup("[[figure:{}]] shows them.").format(figure.name)
        yield figure
    yield summary_table(found, name, plan.measure.noun, material.kinds)
    yield from each


def _uneven(found: pd.DataFrame) -> str:
    """Say which rule took most unevenly from two conditions: it moves the difference by itself."""
    apart = (found["removed_first"] - found["removed_second"]).abs()
    if not apart.max() > 0:
        return ""
    one = found.iloc[int(apart.argmax())]
    first, second = str(one["contrast"]).split(" − ", 1)
    return (
        f" Most uneven is the rule {one['rule']}, which took {apa.percent(one['removed_first'])} of the times in {first} and "
        f"{apa.percent(one['removed_second'])} in {second} ({one['answers']})."
    )


def _accuracy(plan: Plan, tables: Tables, material: Material, number: int) -> Iterator[Block]:
    remark = ""
    try:
        found = accuracy_multiverse(tables, plan)
    except UserError as error:
        remark = f"Failures could not be put at chance: {error.message}."
        found = accuracy_multiverse(tables, plan, failures=FAILURES[:2])
    if found.empty or not found["estimate"].notna().any():
        yield escape(f"No reader has answers in both conditions of a contrast. {remark}".strip())
        return
    if not found["removed"].max() > 0 and found["sessions"].nunique() == 1:
        yield escape(
            "Every answer of these readers is valid and no session was flagged or meets a declared rule: there is one universe "
            "of "
            f"accuracy, and nothing to compare. {remark}".strip()
        )
        return
    name = f"multiverse_{number}"
    each = universes_tables(found, f"{name}_universes", "accuracy", material.kinds)
    yield (
        Markup("[[table:{0}]] sums up the universes of accuracy, [[table:{1}]] has each of them. ").format(
            name, each[0].name
        )
        + escape(" ".join([*_sentences(found, material.kinds), remark]).strip())
    )
    figure = _map(found, number, material.kinds)
    if figure is not None:
        yield Markup("[[figure:{}]] shows them side by side.").format(figure.name)
        yield figure
    yield summary_table(found, name, "accuracy", material.kinds)
    yield from each


def _sentences(found: pd.DataFrame, kinds: dict[str, str]) -> Iterator[str]:
    for (group, contrast), both in found.groupby(["group", "contrast"], sort=False):
        alike = same_conclusion(both)
        who = named(str(group), kinds)
        told = f"{contrast}, {who}: "
        if alike.all():
            told += f"all {apa.count(len(both))} universes lead to the same conclusion"
            how = (
                "the interval leaves 0 out on the same side"
                if excludes_zero(both).all()
                else "the interval holds 0"
            )
            yield f"{told} ({how})."
            continue
        other = both[~alike]
        choices = [name for name in ("sessions", "answers", "rule", "scale") if both[name].nunique() > 1]
        most = {name: (~alike).groupby(both[name]).mean().sort_values(ascending=False) for name in choices}
        hangs = max(most, key=lambda name: float(most[name].iloc[0] - most[name].iloc[-1]))
        yield (
            f"{told}{apa.count(int(alike.sum()))} of {apa.count(len(both))} universes lead to the conclusion of the study's own "
            f"choice, {apa.count(len(other))} to another one, most often with {_choice(str(most[hangs].index[0]))}."
        )


def _choice(said: str) -> str:
    return {"log": "log times", "ms": "times in ms"}.get(said, said)


def _map(found: pd.DataFrame, number: int, kinds: dict[str, str]) -> Drawing | None:
    """Draw readers by universes, a block a contrast."""
    several = found["sessions"].nunique() > 1
    blocks = []
    shown = list(dict.fromkeys(found["contrast"]))[:MOST_BLOCKS]
    for contrast in shown:
        for sessions, own in found[found["contrast"] == contrast].groupby("sessions", sort=False):
            table = own.pivot_table(index="group", columns="rule", values="estimate", sort=False)
            table = table.reindex(columns=list(dict.fromkeys(found["rule"])))
            table.index = [marked(str(group), kinds.get(str(group), "model")) for group in table.index]
            blocks.append((f"{contrast}, sessions {sessions}" if several else str(contrast), table))
    if not blocks:
        return None
    groups = {str(group): kinds.get(str(group), "model") for group in found["group"].unique()}
    note = "Differences of mean accuracy in percentage points. The first column is the study's own choice."
    further = found["contrast"].nunique() - len(shown)
    note += f" {further} further contrasts are in the table." if further > 0 else ""
    return heat_map_figure(
        f"multiverse_{number}_accuracy", "Differences in accuracy under every choice", blocks, groups,
        unit="percentage points", written=lambda value: apa.number(value, 1), note=note,
    )  # fmt: skip
