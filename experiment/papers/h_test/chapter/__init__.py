"""The chapters on H-TEST and on letter geometry: the paper's tables and figures from the study's own run, each "no effect" tested.

``wrods reproduce h-test rules letters`` makes a page of both (Figure 5), after each study has its report (or an export).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from analysis import apa, load
from analysis.figures import Drawing
from analysis.figures.drawing import WIDTH, MarkStyle, looks, shortened, styled
from analysis.figures.marks import DASHED, SOFT, IntervalMarks, dodged, label_ends, numbered, percent, points
from analysis.figures.panels import Room
from analysis.intervals import OF_SHARES
from analysis.mixed.inference import corrected
from analysis.names import in_words, upper_first
from analysis.plan import ALPHA
from analysis.plan_deviations import why_no_bound
from analysis.readers import PARTICIPANT_KINDS, group_order, headed, kinds_of, named
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Material
from analysis.report.layout import ChapterLayout
from analysis.report.method import agreement_said
from analysis.report.studies_page import Page
from experiment.papers.h_test.chapter import measures as paper
from experiment.papers.h_test.chapter.measures import Fitted, ReaderPoint
from stimuli.errors import UserError

WORDS = Path(__file__).with_name("figures.yaml")

CHANCE = 50.0
MOST_LABELLED = 10


@dataclass(frozen=True)
class PanelLine:
    """One line of a panel: percentages right of a reader group with the ends of their intervals at places of the axis."""

    label: str
    group: str
    places: tuple[int, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    is_open: bool = False  # has open marks and dashes, such as adjusted accuracy
    is_joined: bool = True  # places that are not ordered are not joined


def lines_figure(
    name: str,
    caption: tuple[str, str],
    panels: Sequence[tuple[str, Sequence[PanelLine]]],
    steps: Sequence[str],
    axis: str,
    kinds: dict[str, str],
) -> Drawing:
    """Draw accuracy over steps, one panel per making of items, one below the other, on one axis."""
    look = looks(kinds)
    tallest = max((len(lines) for _, lines in panels), default=1)
    height = max(1.7, 0.2 * min(tallest, MOST_LABELLED) + 0.5)
    room = Room(height, left=0.09 * WIDTH, columns=1, above=0.45, gap=0.05, top=0, widest=0.6 * WIDTH)
    with styled():
        figure, drawn = room.panels(len(panels))
        for axes, (heading, lines) in zip(drawn, panels, strict=True):
            axes.set(xlim=(-0.3, len(steps) - 0.7), ylim=(0, 103), yticks=range(0, 101, 25))
            axes.set_xticks(range(len(steps)), list(steps))
            numbered(
                axes.yaxis, lambda value: f"chance\n{CHANCE:.0f}%" if value == CHANCE else percent(value)
            )
            axes.set_ylabel("Correct answers")
            axes.set_title(heading, loc="left", fontsize=9)
            axes.axhline(CHANCE, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
            ends = []
            for turn, line in enumerate(lines):
                mark = replace(look[line.group], is_hollow=line.is_open)
                mark = replace(mark, line=(0, (1, 1.5))) if line.is_open else mark
                x = np.array(line.places) + dodged(turn, len(lines), 0.05, 0.2)
                y = IntervalMarks(line.values, np.array(line.low), np.array(line.high))
                points(axes, mark, x, y, join=1.2 * line.is_joined, size=5, edge=1.0, bar=0.8)
                label = mark.label if line.label == line.group else line.label
                ends.append((float(x[-1]), line.values[-1], label, mark.colour))
            label_ends(axes, ends[:MOST_LABELLED], len(steps) - 0.6)
        drawn[-1].set_xlabel(axis)
    title, note = caption
    return Drawing.described(
        name, figure, look, WORDS / "h_test", title=title, note=note, panels=panels, steps=steps
    )


_GREY, _LINE, _PRINTED_LINE = "#777777", "#B3261E", "#999999"
_LONGEST = 30
_LETTER, _LEAST_X, _MOST_X, _LEAST_Y, _MOST_Y = 0.8, 18.5, 102.5, -5.5, 99.0
_UPWARDS, _NEAR = (1.2, -4.2, 4.4, -7.4), 4.3
"""How far above its point a name may stand, the nearest first; the first two are near."""
_FARTHER, _MOST_STRUCK = 2.0, 4
"""What standing farther off costs, in lines that a name may rather be struck by, and how many of these count."""

Box = tuple[float, float, float, float]  # left, right, lower and upper edge


def geometry_figure(
    name: str,
    caption: tuple[str, str],
    reader_points: Sequence[ReaderPoint],
    printed: Sequence[ReaderPoint],
    lines: tuple[Fitted | None, Fitted | None],
) -> Drawing:
    """Draw readers as points with intervals both ways, the paper's printed models in grey behind; lines are of either."""
    look = looks({point.group: point.kind for point in reader_points})
    models = [point for point in reader_points if point.kind == "model"]
    with styled():
        figure = Figure(figsize=(WIDTH, 4.4))
        axes = figure.add_axes((0.1, 0.12, 0.86, 0.82))
        axes.set(xlim=(18, 103), ylim=(-6, 103), xlabel="H-TEST", ylabel="Letter geometry")
        for axis in (axes.xaxis, axes.yaxis):
            numbered(axis, percent)
        axes.axvline(50, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
        axes.axhline(25, color=SOFT, lw=0.8, ls=DASHED, zorder=1)
        axes.text(50.6, 102, "chance", fontsize=7, color=SOFT, va="top")
        axes.text(19, 25.8, "chance", fontsize=7, color=SOFT)
        boxes: list[Box] = [(49.8, 50.2, -6.0, 103.0), (18.0, 103.0, 24.7, 25.3)]
        for through, line, colour, dashes in (
            (printed, lines[1], _PRINTED_LINE, (0, (1, 1.5))),
            (models, lines[0], _LINE, "-"),
        ):
            if line is not None:
                ends = np.array([min(point.x[0] for point in through), max(point.x[0] for point in through)])
                axes.plot(ends, line.intercept + line.slope * ends, color=colour, ls=dashes, lw=1.3, zorder=2)
                for x in map(float, np.arange(ends[0], ends[1], 0.5)):
                    y = line.intercept + line.slope * x
                    boxes.append((x - 0.3, x + 0.3, y - 0.4, y + 0.4))
        hollow = MarkStyle(_GREY, "o", is_hollow=True)
        for point in printed:
            points(axes, hollow, point.x[0], point.y[0], size=4, edge=1.0, zorder=2)
        for point in reader_points:
            mark, x, y = look[point.group], point.x[0], point.y[0]
            both = IntervalMarks(*point.x), IntervalMarks(*point.y)
            points(axes, mark, *both, size=6, bar=1, edge=1.0, face=mark.colour)
            boxes += [(*point.x[1:], y - 0.3, y + 0.3), (x - 0.2, x + 0.2, *point.y[1:])]
        labelled = [(point, look[point.group].colour, look[point.group].label) for point in reader_points]
        _labels(axes, [*labelled, *((point, _GREY, point.group) for point in printed)], boxes)
    title, note = caption
    values = {"title": title, "note": note, "printed": printed, "line": lines[0]}
    return Drawing.described(name, figure, look, WORDS / "h_test_geometry", own=reader_points, **values)


def _labels(axes: Axes, labelled: Sequence[tuple[ReaderPoint, str, str]], drawn: Sequence[Box]) -> None:
    """Write each name next to its point, away from other points and names, and where it touches the fewest lines."""
    occupied: list[Box] = [
        (point.x[0] - 1.0, point.x[0] + 1.0, point.y[0] - 1.5, point.y[0] + 1.5) for point, _, _ in labelled
    ]
    for point, colour, label in labelled:
        text = shortened(label, _LONGEST)
        x, y, wide = point.x[0], point.y[0], _LETTER * len(text)
        sides = (x + 1.2, x + 1.2 + wide), (x - 1.2 - wide, x - 1.2)
        tries: list[Box] = [(*ends, y + up, y + up + 3.0) for up in _UPWARDS for ends in sides]
        inside = [
            box for box in tries if box[0] > _LEAST_X and box[1] < _MOST_X and _LEAST_Y < box[2] < _MOST_Y
        ]
        free = [box for box in inside or tries if not _struck(box, occupied)] or inside or tries
        costs = [
            min(_struck(box, drawn), _MOST_STRUCK) + _FARTHER * (abs(box[2] - y) > _NEAR) for box in free
        ]
        chosen = free[int(np.argmin(costs))]
        occupied.append(chosen)
        anchor, side = (chosen[1], "right") if chosen[1] < x else (chosen[0], "left")
        written = axes.text(anchor, chosen[2] + 0.4, text, ha=side, fontsize=7, color=colour, zorder=6)
        written.set_path_effects([withStroke(linewidth=2, foreground="white")])


def _struck(box: Box, drawn: Sequence[Box]) -> int:
    """Count what a name would be written over."""
    left, right, low, high = box
    return sum(left < r and le < right and low < h and lo < high for le, r, lo, h in drawn)


NAMES = {
    **{task: upper_first(in_words(task)) for task in (*paper.TASKS, "letter_geometry")},
    **{"average": "Average", paper.ALL: "All tasks"},
}
ALL = "All questions"
QUESTIONS = {
    **{family: upper_first(family.replace("_", " or ")) for family in paper.FAMILIES},
    **{paper.ALL: ALL, "average": ALL},
}
MOST_TOLD = 8  # more comparisons than these are counted in the text and listed in the table only
LAYOUT = ChapterLayout(
    Path(__file__).parent, names=NAMES, of_shares=OF_SHARES, alpha=ALPHA, most=MOST_TOLD, fewest=paper.FEWEST_ITEMS
)  # fmt: skip
Row = dict[str, Any]
Tested = tuple[str, frozenset[object]]
"""A reader group and the two numbers of examples, or generation methods of items, whose difference the Results test."""


@dataclass(frozen=True)
class StatedBound:
    """The plan's bound for equivalence of accuracy: half its width as a share, in words, or why there is none."""

    half: float | None = None
    said: str | None = None
    why: str = ""

    @classmethod
    def of(cls, material: Material) -> StatedBound:
        """Return the first bound of the plan that is in points."""
        plans = [analysis.plan for analysis in material.analyses if analysis.plan.measure.name == "correct"]
        for bound in (plan.equivalence for plan in plans):
            if bound is not None and bound.unit == "points":
                return cls(bound.half_width / 100, bound.said or f"{bound.value:g} points")
        return cls(why=why_no_bound(plans))


@dataclass(frozen=True)
class TestRun:
    """One of the two tests in a study: its trials, the dictionary's readers, and numbers and generation methods of examples."""

    trials: pd.DataFrame
    readers: Mapping[str, Any]
    kinds: dict[str, str] = field(default_factory=dict)
    bound: StatedBound = StatedBound()
    ks: tuple[int, ...] = ()
    makings: tuple[str, ...] = ("",)
    is_h_test: bool = True
    tested: frozenset[Tested] = frozenset()

    @cached_property
    def order(self) -> list[str]:
        """The reader groups."""
        return group_order(self.trials)

    @cached_property
    def rows_of(self) -> dict[str, pd.DataFrame]:
        """The trials of each reader group."""
        return {str(group): rows for group, rows in self.trials.groupby("reader_group")}


def write(material: Material) -> Chapter | None:
    """Write the tables of H-TEST; None where a study asks none of its tasks."""
    tables = material.tables
    prompting = paper.asked(tables)
    if prompting is None:
        return None
    material.told("H-TEST")
    kinds = kinds_of(pd.concat([prompting.trials, prompting.statements]))
    readers, tested = tables.dictionary["readers"], frozenset(_tested(material, prompting.trials))
    own = prompting.trials, readers, kinds, StatedBound.of(material), prompting.ks, prompting.makings
    run = TestRun(*own, tested=tested)
    blocks: list[Block] = []
    tabled = dict.fromkeys(("compared", "pictured", "contrasted"), False)
    if len(prompting.trials):
        if prompting.unanswered:
            blocks.append(LAYOUT.sentences("unanswered", unanswered=prompting.unanswered))
        compared, pictured, contrasted = list(_compared(run)), list(pictures(run)), list(_makings(run))
        blocks += [*_classified(run), *compared, *pictured, *contrasted]
        used = {"compared": compared, "pictured": pictured, "contrasted": contrasted}
        for name, written in used.items():
            tabled[name] = any(isinstance(block, ApaTable) for block in written)
        blocks += _readings(run, tables.folder)
    blocks += _stated(run, prompting.statements, tables.dictionary.get("rating"))
    blocks += LAYOUT.blocks("printed", table=LAYOUT.table("h_test_printed", _printed()))
    methods = [LAYOUT.sentences("methods", is_tested=bool(run.tested), **tabled)]
    return LAYOUT.chapter("h-test", blocks, kinds, kinds, [one for one in methods if one])


def _tested(material: Material, trials: pd.DataFrame) -> Iterator[Tested]:
    """Yield what the analyses of accuracy test of these trials: one quantity has one interval."""
    for analysis in material.analyses:
        plan = analysis.plan
        if plan.measure.name != "correct" or plan.subset or plan.factor not in trials:
            continue
        for column in ("k", "making"):
            settings = {
                level: values[0]
                for level, values in trials.groupby(plan.factor, observed=True)[column].unique().items()
                if len(values) == 1
            }
            for contrast in analysis.estimable:
                levels = (contrast.first, contrast.second)
                if not (contrast.between or contrast.at) and settings.keys() >= set(levels):
                    yield contrast.groups[0], frozenset(settings[level] for level in levels)


def _printed() -> Iterator[Row]:
    cells = paper.printed().dropna(subset=["k"]).set_index("task")
    for (k, model), accuracies in cells.astype({"k": int}).groupby(["k", "model"], sort=False)["printed"]:
        means = {"mean": accuracies.drop("average").mean(), "average": accuracies["average"]}
        yield {"k": k, "model": model, **means}


def _shares(shares: pd.DataFrame, index: str, columns: str) -> dict[Any, dict[Any, Any]]:
    """Return accuracy by row and column of a table."""
    return shares.pivot(index=index, columns=columns, values="accuracy").to_dict("index")


def _classified(run: TestRun) -> Iterator[Block]:
    """Lay out accuracy by task, number of examples and reader, for each making of items, and draw it."""
    kinds = run.kinds
    shares = paper.accuracy(run.trials, ("k", "making"))
    for making in run.makings:
        making_shares = shares[shares["making"] == making]
        most = making_shares["k"].max()
        at_most = making_shares if pd.isna(most) else making_shares[making_shares["k"] == most]
        stem = f"_{making}" if making else ""
        present = [reader for reader in run.order if (making_shares["reader_group"] == reader).any()]
        by_task = _shares(at_most, "task", "reader_group")
        means = {reader: by_task["average"].get(reader) for reader in present if kinds[reader] != "baseline"}
        full: list[dict[str, Any]] = [
            {"k": k, "task": task, "shares": cells[task]}
            for k, rows in making_shares.groupby("k", dropna=False)
            for cells in [_shares(rows, "task", "reader_group")]
            for task in (*paper.TASKS, "average")
            if task in cells
        ]
        values: dict[str, Any] = {
            "of": f", {making} items" if making else "",
            "making": making,
            "where": "" if pd.isna(most) else f" at k = {int(most)}",
            "kinds": kinds,
        }
        tasks = [task for task in (*sorted(paper.TASKS), "average") if task in by_task]
        by_reader = _reader_rows(at_most, present, run.readers)
        yield from LAYOUT.blocks(
            "accuracy",
            full=LAYOUT.table(
                "h_test_full",
                full,
                f"h_test_full{stem}",
                readers=present,
                is_any_missing=any(not set(present) <= set(row["shares"]) for row in full),
                **values,
            ),
            readers=LAYOUT.table("h_test_readers", by_reader, f"h_test_readers{stem}", tasks=tasks, **values),
            means={reader: mean for reader, mean in means.items() if pd.notna(mean)},
            **values,
        )
    if len(run.ks) > 1:
        yield from LAYOUT.blocks("figure", drawing=_examples_figure(run), what="the number of examples")
    if (figure := _family_figure(run)) is not None:
        yield from LAYOUT.blocks("figure", drawing=figure, what="size within families")
    pairs = [pair for pair in paper.thinking_pairs(run.readers) if set(pair) <= set(run.order)]
    if pairs:
        rows = [
            {**row, "headed": headed(reader), "how": how}
            for pair in pairs
            for reader, how in zip(pair, ("direct", "chain of thought"), strict=True)
            for row in _means(shares, [reader])
        ]
        table = LAYOUT.table("h_test_thoughts", rows)
        yield from LAYOUT.blocks("thoughts", table=table, drawing=_thoughts_figure(run, pairs))


def _means(shares: pd.DataFrame, readers: Sequence[str]) -> list[dict[Any, Any]]:
    """Return readers' means over tasks: released items first, then fresh, then matched ones, and few examples before many."""
    means = shares[shares["task"] == "average"]
    means = means.assign(_rank=means["making"].map(paper.rank)).sort_values(["_rank", "k"], kind="stable")
    return [row for name in readers for row in means[means["reader_group"] == name].to_dict("records")]


def _reader_rows(shares: pd.DataFrame, readers: list[str], described: Mapping[str, Any]) -> Iterator[Row]:
    """Yield accuracy as in Table 5 for one k: readers in rows by family, from small to large, and tasks in columns."""
    sizes = paper.sizes_of(described)
    settings = {reader: (described.get(reader) or {}).get("settings") or {} for reader in readers}
    families = {reader: str(settings[reader].get("family") or "") for reader in readers}
    by_reader = _shares(shares, "reader_group", "task")
    for family in sorted(dict.fromkeys(families.values()), key=bool):
        for reader in sorted(readers, key=lambda reader: sizes.get(reader, 0.0)) if family else readers:
            if families[reader] == family and reader in by_reader:
                yield {"reader": reader, "family": family, "shares": by_reader[reader]}


def _line(label: str, group: str, steps: Mapping[int, pd.DataFrame], **style: bool) -> list[PanelLine]:
    """Return the line through the means of those steps that have rows, or none."""
    points = [(position, *paper.mean_with_ends(rows)) for position, rows in steps.items() if len(rows)]
    if not points:
        return []
    places, values, low, high = zip(*points, strict=True)
    return [PanelLine(label, group, places, values, low, high, **style)]


def _examples_figure(run: TestRun) -> Drawing:
    panels = []
    partial: dict[str, None] = {}
    for making in run.makings:
        trials = run.trials[run.trials["making"] == making]
        lines = []
        for group in group_order(trials):
            steps = {}
            for position, k in enumerate(run.ks):
                all_rows = trials[trials["k"] == k]
                rows = all_rows[all_rows["reader_group"] == group]
                if paper.covers(rows, all_rows):
                    steps[position] = rows
                elif len(rows):
                    partial[headed(group)] = None
            lines += _line(group, group, steps)
        panels.append((f"{making} items".capitalize() if making else "", lines))
    caption = LAYOUT.caption("h_test_examples", partial=list(partial))
    kinds = {group: run.kinds[group] for group in run.order}
    steps_named = [str(k) for k in run.ks]
    return lines_figure("h_test_examples", caption, panels, steps_named, "Solved examples (k)", kinds)


def _family_figure(run: TestRun) -> Drawing | None:
    """Draw accuracy over sizes; None where no family has two models that answered everything, or one has two and none more."""
    rows_of = run.rows_of
    families: dict[str, list[str]] = {}
    partial: dict[str, None] = {}
    for family, *pair in paper.family_pairs(run.readers):
        for name in pair:
            if name in rows_of and not paper.covers(rows_of[name], run.trials):
                partial[headed(name)] = None
            elif name in rows_of and name not in families.setdefault(family, []):
                families[family].append(name)
    several = {family: names for family, names in families.items() if len(names) > 1}
    lines = [
        line
        for family, names in several.items()
        for line in _line(family, names[0], {position: rows_of[name] for position, name in enumerate(names)})
    ]
    if sum(map(len, several.values())) <= 2:
        return None  # the tables have two points as well
    most = max(map(len, several.values()))
    steps = ["smaller", "larger"] if most == 2 else ["smallest", *_NTH[: most - 1]]
    steps = next(iter(families.values())) if len(lines) == 1 else steps
    members = "; ".join(f"{family}: {', '.join(names)}" for family, names in families.items())
    caption = LAYOUT.caption("h_test_families", families=members, partial=list(partial))
    kinds = {line.group: run.kinds[line.group] for line in lines}
    return lines_figure("h_test_families", caption, [("", lines)], steps, "Size within the family", kinds)


_NTH = [f"{nth} smallest" for nth in ("2nd", "3rd", *(f"{rank}th" for rank in range(4, 20)))]


def _thoughts_figure(run: TestRun, pairs: list[tuple[str, str]]) -> Drawing:
    lines = []
    for pair in pairs:
        common = paper.in_common(run.rows_of[pair[0]], run.rows_of[pair[1]])
        read = {position: rows[rows["answered"] == 1] for position, rows in enumerate(common)}
        lines += _line(pair[0], pair[0], dict(enumerate(common)), is_joined=False)
        lines += _line(f"{pair[0]}, adjusted", pair[0], read, is_open=True, is_joined=False)
    pooled = [f"all numbers of examples ({apa.listing([str(k) for k in run.ks])})"] if run.ks else []
    pooled += [f"{apa.listing(run.makings)} items"] if len(run.makings) > 1 else []
    caption = LAYOUT.caption("h_test_thoughts_figure", pooled=pooled)
    steps, kinds = ["direct", "chain of thought"], {direct: run.kinds[direct] for direct, _ in pairs}
    return lines_figure("h_test_thoughts", caption, [("", lines)], steps, "Prompting strategy", kinds)


Compared = tuple[str, str, str, pd.DataFrame, pd.DataFrame]
"""A reader, what is compared, the making of items, and the trials of both conditions."""


def _pairs(run: TestRun) -> Iterator[Compared]:
    """Yield the comparisons that the paper makes."""

    def by_making(
        group: str, label: str, first: pd.DataFrame, second: pd.DataFrame, varied: str | None = None
    ) -> Iterator[Compared]:
        for making in run.makings:
            of_making = [rows[rows["making"] == making] for rows in (first, second)]
            yield group, label, making, *paper.in_common(of_making[0], of_making[1], varied=varied)

    models = {g: rows for g, rows in run.rows_of.items() if run.kinds[g] not in PARTICIPANT_KINDS}
    ks = run.ks
    steps = list(pairwise(ks)) + ([(ks[0], ks[-1])] if len(ks) > 2 else [])
    for group, rows in models.items():
        for fewer, more in steps:
            if len(run.makings) == 1 and (group, frozenset({fewer, more})) in run.tested:
                continue
            label = f"k = {fewer}, k = {more}"
            yield from by_making(group, label, rows[rows["k"] == fewer], rows[rows["k"] == more], "k")
        if "label_map" in rows:
            published = rows["label_map"].astype(str).map(paper.is_as_published)
            if published.any() and not published.all():
                common = paper.in_common(rows[published], rows[~published], varied="label_map")
                yield group, "labels as published, swapped", "", *common
    for direct, thinks in paper.thinking_pairs(run.readers):
        if direct in models and thinks in models:
            label = f"direct, chain of thought ({thinks})"
            for comparison in by_making(direct, label, models[direct], models[thinks]):
                yield comparison
                *_, making, first, second = comparison
                read = paper.in_common(first[first["answered"] == 1], second[second["answered"] == 1])
                if 0 < len(read[1]) < len(second):
                    yield direct, f"{label}, both read", making, *read
    for family, small, large in paper.family_pairs(run.readers):
        if small in models and large in models:
            yield from by_making(small, f"{small}, {large} ({family})", models[small], models[large])


def _adjusted(rows: Sequence[Row], kinds: Mapping[str, str] | None = None) -> list[Row]:
    """Return comparisons with Benjamini-Hochberg's p; with ``kinds`` those of baselines, which are not data, only if alone."""
    if kinds is not None:
        rows = [row for row in rows if kinds[row["reader"]] != "baseline"] or rows
    found = paper.agreeing(rows).to_dict("records")
    return [
        row
        | {"low": new["low"], "high": new["high"], "adjusted": new["p_adjusted"]}
        | {"level": _level(new["level"])}
        for row, new in zip(rows, found, strict=True)
    ]


def _level(share: float) -> str:
    """Write the level of an interval in percent; empty where nothing was tested."""
    return "" if np.isnan(share) else apa.number(100 * share, 1).removesuffix(".0")


def _levels(rows: Sequence[Row]) -> str:
    """Write the levels that the intervals of a table have, the wider first: two where only some differences are significant."""
    levels = dict.fromkeys(row["level"] for row in sorted(rows, key=lambda row: row["adjusted"]))
    return " or ".join(filter(None, levels)) or "95"


def _compared(run: TestRun) -> Iterator[Block]:
    """Test every claim that a condition has no effect, over the items that both conditions asked."""
    kinds, order, bound = run.kinds, run.order, run.bound
    tested: list[Row] = [
        {"reader": reader, "what": label, "making": making, **vars(comparison)}
        for reader, label, making, first, second in _pairs(run)
        if (comparison := paper.paired(first, second, bound.half)) is not None
    ]
    is_any_data = any(kinds[row["reader"]] != "baseline" for row in tested)
    if not tested or (run.tested and not is_any_data):
        is_any_model = any(kind == "model" for kind in kinds.values())
        yield from [LAYOUT.sentences("not_paired")] if is_any_model and not run.tested else []
        return
    rows = _adjusted(tested, kinds)
    data = [row for row in rows if kinds[row["reader"]] != "baseline"]
    ordered = sorted(rows, key=lambda row: (order.index(row["reader"]), paper.rank(row["making"])))
    heads: dict[str, Any] = {"first_head": "% first", "second_head": "% second"}
    yield from LAYOUT.blocks(
        "paired",
        table=LAYOUT.table(
            "h_test_paired", ordered, kinds=kinds, bound=bound.said, levels=_levels(rows), **heads
        ),
        number_of=len(data),
        differ=[row for row in data if row["adjusted"] < ALPHA],
        alike=sum(row["p_equal"] < ALPHA for row in data),
        bound=bound.said,
        why=bound.why,
    )


def _makings(run: TestRun) -> Iterator[Block]:
    """Contrast released with fresh, and fresh with matched items."""
    if len(run.makings) < 2:
        return
    kinds, bound = run.kinds, run.bound
    contrasted: list[Row] = []
    # the Results compare people, whose variance these contrasts of items do not hold
    for group in (group for group in run.order if kinds[group] not in PARTICIPANT_KINDS):
        group_trials = run.trials[run.trials["reader_group"] == group]
        for first, second in pairwise(run.makings):
            if (group, frozenset({first, second})) in run.tested:
                continue
            by_making = {making: group_trials[group_trials["making"] == making] for making in (first, second)}
            comparison = paper.between_makings(by_making[first], by_making[second], bound.half)
            if comparison is not None:
                contrasted.append({"reader": group, "what": f"{second} − {first}", **vars(comparison)})
    is_tested = any(set(run.makings) >= values for _, values in run.tested)
    is_any_data = any(kinds[row["reader"]] != "baseline" for row in contrasted)
    if not contrasted or (is_tested and not is_any_data):
        yield from [LAYOUT.sentences("no_makings")] if not is_tested else []
        return
    rows = _adjusted(contrasted, kinds)
    data = [row for row in rows if kinds[row["reader"]] != "baseline"]
    differ = [row for row in data if row["adjusted"] < ALPHA]
    yield from LAYOUT.blocks(
        "makings",
        table=LAYOUT.table("h_test_makings", rows, kinds=kinds, bound=bound.said, levels=_levels(rows)),
        shown=data if len(data) <= MOST_TOLD else differ[:MOST_TOLD],
        number_of=len(data),
        differ=len(differ),
        kinds=kinds,
    )


def _by_reader(rows: pd.DataFrame, order: list[str]) -> pd.DataFrame:
    return rows.sort_values("reader_group", key=lambda names: names.map(order.index), kind="stable")


def _readings(run: TestRun, folder: Path) -> Iterator[Block]:
    """Compare parsers and labels, and count answers that could not be read."""
    order, kinds = run.order, run.kinds
    yield from parsers_blocks("h_test_parsers", paper.both_parsers(run.trials, folder), kinds)
    maps = paper.label_maps(run.trials)
    if len(maps):
        rows = _by_reader(maps, order).to_dict("records")
        yield from LAYOUT.blocks(
            "labels", table=LAYOUT.table("h_test_labels", rows, kinds=kinds), rows=rows, kinds=kinds
        )
    readers = [group for group in order if kinds[group] != "baseline"]
    if (run.trials["answered"] != 0).all():
        yield LAYOUT.sentences("all_read")
    elif readers:
        means = _means(paper.accuracy(run.trials, ("making", "k")), readers)
        yield from LAYOUT.blocks("read", table=LAYOUT.table("h_test_read", means, kinds=kinds))


def _stated(run: TestRun, stated: pd.DataFrame, rating: Mapping[str, Any] | None) -> Iterator[Block]:
    """Return the number of correctly stated rules, as in Table 7, and of items that the same readers sorted correctly."""
    statements = stated[stated["reader_kind"] != "baseline"]
    if statements.empty:
        return
    order, kinds = group_order(statements), run.kinds
    rules = _by_reader(paper.rules_stated(statements), order)
    rules["head"] = ["All" if pd.isna(k) else f"k = {int(k)}" for k in rules["k"]]
    heads = list(dict.fromkeys(rules.sort_values("k")["head"]))
    counted = ["readers", "stated", "rated", "right"]
    rows: list[dict[str, Any]] = [
        {"reader_group": group, "what": outcome, "totals": totals}
        for group, group_rules in rules.groupby("reader_group", sort=False)
        for totals in [{head: group_rules.loc[group_rules["head"] == head, counted].sum() for head in heads}]
        for outcome in ("right", "stated", "readers")
    ]
    unrated = any(not row["totals"][head]["rated"] for row in rows for head in heads)
    table = LAYOUT.table("h_test_rules", rows, kinds=kinds, examples=heads, is_any_unrated=unrated)
    withheld = "" if rules["rated"].any() else "no rule is rated yet"
    yield from LAYOUT.blocks(
        "rules",
        table=replace(table, of_paper=False, withheld=withheld) if withheld else table,
        rated=int(rules["rated"].sum()),
        rating=rating,
        agreement=agreement_said(rating) if rating and rating["agreements"] else "",
    )
    by_task = paper.rules_by_task(run.trials[run.trials["reader_group"].isin(order)], statements)
    if len(by_task):
        table = LAYOUT.table("h_test_rules_tasks", _by_reader(by_task, order), kinds=kinds)
        yield from LAYOUT.blocks("rules_tasks", table=replace(table, withheld=withheld))


def pictures(run: TestRun) -> Iterator[Block]:
    """Compare models that were shown pictures with the same models shown text, by task; nothing where there is no such pair."""
    rows_of, order, bound = run.rows_of, run.order, run.bound
    tasks, names = (paper.TASKS, NAMES) if run.is_h_test else (paper.FAMILIES, QUESTIONS)
    pairs = [pair for pair in paper.picture_pairs(run.readers) if set(pair) <= set(rows_of)]
    rows: list[Row] = []
    for text, pictured in sorted(pairs, key=lambda pair: [order.index(group) for group in pair]):
        how = ", examples as text" if paper.shows_examples_as_text(run.readers[pictured]) else ""
        models = {"text": text, "looks": pictured, "head": f"{text} (text), {pictured} (pictures{how})"}
        for part in paper.pictures_by_part(rows_of[text], rows_of[pictured], bound.half, tasks):
            name = names[part.task] if part.k is None else f"k\u00a0=\u00a0{part.k}"
            name = f"{part.making.capitalize()} items" if part.making else name
            rows.append({**models, "part": part, "name": name, **vars(part.compared)})
    if not rows:
        if pairs:
            yield LAYOUT.sentences("too_few_pictures")
        return
    rows = _adjusted(rows)
    values: dict[str, Any] = {"noun": "task" if run.is_h_test else "kind", "bound": bound.said}
    table = LAYOUT.table(
        "pictures",
        rows,
        "h_test_pictures" if run.is_h_test else "letter_geometry_pictures",
        first_head="% text",
        second_head="% pictures",
        levels=_levels(rows),
        is_parted=any(row["part"].making or row["part"].k is not None for row in rows),
        **values,
    )
    heads = dict.fromkeys(row["head"] for row in rows)
    told_pairs = [_pair([row for row in rows if row["head"] == head]) for head in heads]
    yield from LAYOUT.blocks("pictures", table=table, pairs=told_pairs, why=bound.why, **values)


def _pair(rows: Sequence[Row]) -> Row:
    """Return one pair's comparison over all items, and the tasks in which pictures help, harm, make no difference, or neither."""
    overall = [
        row for row in rows if row["part"] == paper.ItemPart(paper.ALL, "", None, row["part"].compared)
    ]
    sorted_by: dict[str, list[str]] = {name: [] for name in ("better", "worse", "alike", "rest")}
    for row in rows:
        if row["part"].task != paper.ALL:
            kind = "alike" if row["p_equal"] < ALPHA else "rest"
            if row["adjusted"] < ALPHA:
                kind = "better" if row["difference"] > 0 else "worse"
            sorted_by[kind].append(row["name"].lower())
    return {"text": rows[0]["text"], "looks": rows[0]["looks"], "whole": overall, **sorted_by}


def parsers_blocks(
    name: str, read: Sequence[paper.BothParsers], kinds: dict[str, str], names: Mapping[str, str] = NAMES
) -> list[Block]:
    """Compare the published parser with a correct one, task by task and model by model; nothing without readings by both."""
    if not read:
        return []
    replies: Counter[str] = Counter()
    for comparison in read:
        replies[comparison.reader_group] += comparison.replies if comparison.task != "average" else 0
    rows = [vars(comparison) | {"of_reader": replies[comparison.reader_group]} for comparison in read]
    unit = "Task" if names is NAMES else "Questions"
    means = [one for one in read if one.task == "average" and one.compared is not None]
    means = [one for one in means if kinds[one.reader_group] != "baseline"]
    is_any_changed = any(one.turned or one.unread_published != one.unread_corrected for one in read)
    table = LAYOUT.table("parsers", rows, name, kinds=kinds, names=names, unit=unit)
    return LAYOUT.blocks(
        "parsers",
        table=table if is_any_changed else replace(table, withheld="both parsers read every reply alike"),
        kinds=kinds,
        differing=[one for one in means if one.published != one.corrected],
        alike=[named(one.reader_group, kinds) for one in means if one.published == one.corrected],
    )


def write_geometry(material: Material) -> Chapter | None:
    """Write correct answers to letter geometry; None where a study asks none."""
    tables = material.tables
    rows = paper.geometry(tables)
    if rows is None:
        return None
    material.told("letter geometry")
    kinds, readers = kinds_of(rows), tables.dictionary["readers"]
    run = TestRun(rows, readers, kinds, StatedBound.of(material), is_h_test=False)
    shown = {g: vars(paper.share(run.rows_of[g])) for g in run.order if kinds[g] != "baseline"}
    blocks: list[Block] = LAYOUT.blocks(
        "geometry",
        table=geometry_table("letter_geometry", rows, kinds),
        shares=[{"group": group, **share} for group, share in shown.items()],
        alone=paper.by_option_alone(tables.items),
        kinds=kinds,
    )
    blocks += pictures(run)
    read = paper.both_parsers(rows, tables.folder, paper.FAMILIES, is_pooled=True)
    blocks += parsers_blocks("letter_geometry_parsers", read, kinds, QUESTIONS)
    return LAYOUT.chapter("letter-geometry", blocks, kinds, kinds, part="geometry_")


def geometry_table(name: str, rows: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Show correct answers by reader and kind of question, each against chance."""
    results: list[Row] = []
    for group in group_order(rows):
        group_rows = rows[rows["reader_group"] == group]
        parts = {QUESTIONS[family]: group_rows[group_rows["task"] == family] for family in paper.FAMILIES}
        parts[ALL] = group_rows
        results += [
            {"reader_group": group, "what": question, **vars(paper.share(part))}
            for question, part in parts.items()
            if len(part)
        ]
    # baselines are not data: their p values are adjusted only where nothing else is there
    is_data = np.array([kinds[row["reader_group"]] != "baseline" for row in results])
    p = np.array([row["p"] for row in results])
    counted = np.isfinite(p) & (is_data | (not is_data.any()))
    p_adjusted = np.full(len(p), np.nan)
    p_adjusted[counted] = corrected(p[counted], "BH")
    cells = [row | {"adjusted": value} for row, value in zip(results, p_adjusted, strict=True)]
    return LAYOUT.table("letter_geometry", cells, name, kinds=kinds, chance=f"{100 * paper.CHANCE:.0f}")


ABOUT = Page(
    "H-TEST and letter geometry in these studies",
    "After Lee and Lim (2024), H-TEST, Figure 5.",
    "Numbers come from these studies' own runs; those of models that the paper names are quoted.",
)
_RANK = {"human": 0, "simulated": 1, "model": 2, "baseline": 3}
_BOTH = "Give two studies: one made with --part tasks, the other with --part geometry."


def beside_figure(
    name: str, points: Sequence[paper.ReaderPoint], partial: Sequence[str] = ()
) -> tuple[Drawing, paper.Fitted | None, paper.Fitted | None]:
    """Draw Figure 5 with the study's readers over the paper's printed models, and return the two lines drawn."""
    printed = paper.printed_points()
    models = [point for point in points if point.kind == "model"]
    line, printed_line = paper.fitted(models), paper.fitted(printed)
    caption = LAYOUT.caption("beside_figure", line=line, theirs=printed_line, partial=partial)
    return geometry_figure(name, caption, points, printed, (line, printed_line)), line, printed_line


def together(
    folders: Sequence[Path], told: Callable[[str], None] = lambda _: None
) -> list[ApaTable | Drawing]:
    """Lay out both tests of two studies (or their exports) side by side and draw Figure 5; ``told`` hears remarks on them."""
    if len(folders) != 2:
        raise UserError(f"Figure 5 needs two studies; {len(folders)} given", mend=_BOTH)
    sorted_lines = answered = None
    for folder in folders:
        tables = load(folder)
        for remark in tables.remarks:
            told(remark)
        lines, questions = paper.asked(tables), paper.geometry(tables)
        if lines is None and questions is None:
            raise UserError(f"{folder} has neither H-TEST's tasks nor letter geometry", mend=_BOTH)
        sorted_lines, answered = lines or sorted_lines, answered if questions is None else questions
    if sorted_lines is None or answered is None:
        missing = "has H-TEST's tasks" if sorted_lines is None else "has letter geometry"
        raise UserError(f"neither of {folders[0]} and {folders[1]} {missing}", mend=_BOTH)
    points = sorted(paper.both_tests(sorted_lines, answered), key=lambda test: (_RANK[test.kind], test.group))
    completed = {point.group for point in points}
    partial = sorted((set(sorted_lines.trials["reader_group"]) & set(answered["reader_group"])) - completed)
    if partial:
        told(f"Excluded because not all tasks were answered: {apa.listing(partial)}.")
    if not points:
        raise UserError(
            f"no reader of {folders[0]} completed both tests, in {folders[1]} too",
            mend="Give the same models the same names in both studies, or let people take part in both.",
        )
    drawing, _, _ = beside_figure("figure_5", points, partial)
    rows = map(vars, (*points, *paper.printed_points()))
    kinds = {point.group: point.kind for point in points}
    return [drawing, LAYOUT.table("beside", rows, "figure_5_numbers", kinds=kinds)]
