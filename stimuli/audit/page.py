"""Writes an audit: ``audit.json`` (canonical), one self-contained page, and its figures; the same bytes on every build."""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stimuli.audit.audit import CHECKS, Audit
from stimuli.audit.balance import Covariate, CovariateGrouping
from stimuli.audit.changed import Changes
from stimuli.audit.shortcut import CLASSIFIERS, ENOUGH_ITEMS, MARGIN, Choices, ShortcutTest
from stimuli.files import replace_file
from stimuli.fonts import font_families

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID, SOFT = "#1b1b1b", "#dedede", "#6e6e6e"
# Okabe & Ito (2008), Color universal design.
BLUE, VERMILION, GREEN = "#0072b2", "#d55e00", "#009e73"
WIDTH = 6.7
_ROW = 0.27
_MOST_ROWS_DRAWN = 40
_SETTINGS: dict[str, Any] = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "axes.spines.left", "legend.frameon"), False),
    **dict.fromkeys(("axes.axisbelow", "axes.grid"), True),
    "axes.grid.axis": "x",
    "backend": "agg",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "svg.fonttype": "path",
    "svg.hashsalt": "wrods",
    "ytick.major.size": 0,
}


_WIDEST_SMD = 2.0


@dataclass(frozen=True)
class AuditFigure:
    """A finished figure: file name without ending, section, title, note, its content in words, and its SVG."""

    name: str
    section: str
    title: str
    note: str
    alternative: str
    svg: str


def drawings(audit: Audit) -> tuple[AuditFigure, ...]:
    """Return the figures of an audit's sections."""
    import matplotlib as mpl

    drawn: list[AuditFigure] = []
    with mpl.rc_context({**mpl.rcParamsDefault, **_SETTINGS, "font.family": font_families()}):
        if audit.balance is not None:
            by_grouping: dict[str, list[CovariateGrouping]] = {}
            for grouping in audit.balance.groupings:
                by_grouping.setdefault(grouping.by, []).append(grouping)
            drawn += [_balance(by, of_kind, audit.balance.limit) for by, of_kind in by_grouping.items()]
        if audit.changes is not None:
            drawn.append(_changes(audit.changes))
        if audit.choices is not None:
            drawn.append(_choices(audit.choices))
        if audit.shortcut is not None and any(task.accuracy for task in audit.shortcut.tasks):
            drawn.append(_shortcut(audit.shortcut))
    return tuple(drawn)


def _canvas(rows: int, left: float) -> tuple[Figure, Axes]:
    """Return a figure for some rows of names and the axes right of them; ``left`` is the names' room in inches."""
    from matplotlib.figure import Figure

    height = _ROW * max(rows, 2) + 1.0
    figure = Figure(figsize=(WIDTH, height))
    axes = figure.add_axes(
        (left / WIDTH, 0.62 / height, 1 - (left + 0.15) / WIDTH, _ROW * max(rows, 2) / height)
    )
    axes.set_ylim(max(rows, 2) - 0.5, -0.5)
    return figure, axes


def _room(names: Sequence[str]) -> float:
    return min(0.25 + 0.075 * max(map(len, names), default=0), 3.0)


def _named(axes: Axes, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [_short(name) for name in names])


def _short(name: str, most: int = 38) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"


def _balance(by: str, groupings: Sequence[CovariateGrouping], limit: float) -> AuditFigure:
    rows = [(grouping.set_name, c) for grouping in groupings for c in grouping.covariates]
    shown = rows
    if len(rows) > _MOST_ROWS_DRAWN:
        worst = sorted(rows, key=lambda row: (not row[1].flagged, -_size(row[1])))[:_MOST_ROWS_DRAWN]
        shown = [row for row in rows if row in worst]
    several = len(groupings) > 1
    names = [f"{set_name}: {c.name}" if several else c.name for set_name, c in shown]
    figure, axes = _canvas(len(names), _room(names))
    most = min(_WIDEST_SMD, max([0.3, *(c.largest for _, c in shown if c.largest is not None)]) * 1.06)
    axes.axvspan(0, limit, color=GREEN, alpha=0.16, lw=0)
    axes.axvline(limit, color=GREEN, lw=1)
    looks: dict[str, dict[str, Any]] = {
        "should agree and does": {"marker": "o", "color": BLUE, "ms": 5},
        "should agree and differs": {"marker": "D", "color": VERMILION, "ms": 5.5},
        _OF_CONDITION: {"marker": "o", "color": SOFT, "ms": 5, "mfc": "none"},
    }
    for label, look in looks.items():
        points = [(row, c) for row, (_, c) in enumerate(shown) if _kind(c.role, c.flagged) == label]
        if points:
            x = [min(_size(c), most) for _, c in points]
            axes.plot(x, [row for row, _ in points], ls="", label=label, clip_on=False, zorder=5, **look)
    for row, (_, c) in enumerate(shown):
        if c.largest is not None and c.largest > most:
            axes.annotate(
                f"{c.largest:.1f}", (most, row), (7, 0), textcoords="offset points", va="center", fontsize=8
            )
    axes.set_xlim(0, most)
    _named(axes, names)
    axes.set_xlabel("Largest absolute standardised mean difference")
    _legend(figure, axes)
    title = f"Balance of covariates between groups by {by}"
    note = (
        f"The shaded band ends at {limit:g}, the largest difference that counts as matched. "
        "A point at the right edge lies beyond it, as its number says, or has no spread to divide by."
    )
    if len(shown) < len(rows):
        note += f" The {len(shown)} largest of {len(rows)} differences are drawn."
    off = [
        f"{c.name} of {name} ({'no spread' if c.largest is None else f'{c.largest:.2f}'})"
        for name, c in rows
        if c.flagged
    ]
    alternative = f"{title}. " + (f"Above {limit:g}: {', '.join(off)}." if off else f"All within {limit:g}.")
    return _finished(f"balance-{_slug(by)}", "balance", title, note, alternative, figure)


_OF_CONDITION = "follows from the condition, or varied by design"


def _kind(role: str, flagged: bool) -> str:
    if flagged:
        return "should agree and differs"
    return "should agree and does" if role == "item" else _OF_CONDITION


def _size(covariate: Covariate) -> float:
    return math.inf if covariate.largest is None else covariate.largest


def _changes(changed: Changes) -> AuditFigure:
    rows = changed.conditions[:_MOST_ROWS_DRAWN]
    several = len({row.set_name for row in rows}) > 1
    names = [f"{row.set_name}: {row.level}" if several else row.level for row in rows]
    room = _room(names)
    figure, axes = _canvas(len(rows), room)
    box = axes.get_position()
    wide = (box.width - 0.04) / 2
    axes.set_position((box.x0, box.y0, wide, box.height))
    right = figure.add_axes((box.x0 + wide + 0.04, box.y0, wide, box.height))
    line: dict[str, Any] = {"color": BLUE, "lw": 1.5, "alpha": 0.5, "solid_capstyle": "round"}
    point: dict[str, Any] = {"clip_on": False, "zorder": 5}
    for row, condition in enumerate(rows):
        axes.plot([condition.fewest, condition.most], [row, row], **line)
        axes.plot([condition.words], [row], marker="o", ms=5.5, color=BLUE, **point)
        right.plot([condition.displacement], [row], marker="s", ms=5, color=VERMILION, **point)
    for side, label in ((axes, "Changed words per item"), (right, "Places that displaced letters moved")):
        side.set_ylim(axes.get_ylim())
        side.set_xlim(left=0)
        side.margins(x=0.08)
        side.set_xlim(0, max(side.get_xlim()[1], 1) * 1.04)
        side.set_xlabel(label)
    _named(axes, names)
    right.set_yticks(range(len(names)), [""] * len(names))
    title = "What each condition changes"
    note = (
        "Left: mean number of changed words per item, with the range over items. "
        "Right: how many places displaced letters (words, sentences) moved, on average."
    )
    alternative = f"{title}. " + "; ".join(
        f"{name}: {row.words:g} words, displacement {row.displacement:g}"
        for name, row in zip(names, rows, strict=True)
    )
    return _finished("changes", "changes", title, note, alternative + ".", figure)


def _choices(offered: Choices) -> AuditFigure:
    rows = [(choice_set, choice_set.heuristics[0]) for choice_set in offered.sets[:_MOST_ROWS_DRAWN]]
    names = [offered_set.set_name for offered_set, _ in rows]
    figure, axes = _canvas(len(rows), _room(names))
    for row, (_, best) in enumerate(rows):
        colour, marker = (VERMILION, "D") if best.leaks else (BLUE, "o")
        axes.plot([best.chance] * 2, [row - 0.36, row + 0.36], color=SOFT, lw=1.6)
        axes.plot([best.accuracy.low, best.accuracy.high], [row, row], color=colour, lw=1.5)
        axes.plot([best.accuracy.estimate], [row], marker=marker, ms=5.5, color=colour)
        left = best.accuracy.high > 0.6
        end, away, side = (best.accuracy.low, -5, "right") if left else (best.accuracy.high, 5, "left")
        look: dict[str, Any] = {"textcoords": "offset points", "fontsize": 7.5, "va": "center", "color": INK}
        axes.annotate(best.name, (end, row), (away, 0), ha=side, **look)
    _percent(axes, 0.0)
    _named(axes, names)
    axes.set_xlabel("Right without reading, by the best rule of thumb")
    title = "What the choices alone give away"
    note = "Points: share correct, with simultaneous 95% exact intervals; upright ticks: chance. Diamonds are reliably above chance."
    alternative = f"{title}. " + "; ".join(
        f"{offered_set.set_name}: {best.name} {best.accuracy.estimate:.0%}, chance {best.chance:.0%}"
        for offered_set, best in rows
    )
    return _finished("choices", "choices", title, note, alternative + ".", figure)


def _shortcut(test: ShortcutTest) -> AuditFigure:
    rows = [task for task in test.tasks if task.accuracy][:_MOST_ROWS_DRAWN]
    names = [f"{row.task} ({row.items:,})" for row in rows]
    figure, axes = _canvas(len(rows), _room(names))
    look = {CLASSIFIERS[0]: ("o", BLUE, -0.14), CLASSIFIERS[1]: ("s", VERMILION, 0.14)}
    chance = min(row.chance for row in rows)
    axes.axvspan(0, chance + MARGIN, color=GREEN, alpha=0.13, lw=0)
    axes.axvline(chance, color=SOFT, lw=1, ls=(0, (3, 2)))
    for row, one in enumerate(rows):
        for classifier, interval in one.accuracy.items():
            marker, colour, shift = look[classifier]
            axes.plot([interval.low, interval.high], [row + shift] * 2, color=colour, lw=1.5)
            point: dict[str, Any] = {"marker": marker, "ms": 4.5, "color": colour, "ls": "", "zorder": 5}
            label = classifier if row == 0 else None
            axes.plot([interval.estimate], [row + shift], clip_on=False, label=label, **point)
    lowest = min(i.low for row in rows for i in row.accuracy.values())
    _percent(axes, min(0.4, lowest - 0.02))
    _named(axes, names)
    axes.set_xlabel("Items sorted correctly by nuisance features only (cross-validated)")
    _legend(figure, axes)
    title = "The shortcut test"
    note = (
        f"Intervals are 95%, simultaneous over {test.intervals}; dashed: chance; the shaded region ends at chance + {MARGIN:g}. "
        f"A task passes with both intervals inside it and at least {ENOUGH_ITEMS:,} items (number after the name)."
    )
    alternative = f"{title}. " + "; ".join(
        f"{row.task}: {row.best:.0%} sorted, upper bound {row.upper:.0%}, {row.in_words()}" for row in rows
    )
    return _finished("shortcut", "shortcut", title, note, alternative + ".", figure)


def _percent(axes: Axes, low: float) -> None:
    from matplotlib.ticker import FuncFormatter, MultipleLocator

    axes.set_xlim(low, 1.0)
    axes.xaxis.set_major_locator(MultipleLocator(0.1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}%"))


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.0, 1.0), "handletextpad": 0.3}
        figure.legend(handles, labels, ncols=len(handles), **place)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "group"


def _finished(
    name: str, section: str, title: str, note: str, alternative: str, figure: Figure
) -> AuditFigure:
    stream = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(stream, format="svg", bbox_inches="tight", metadata=nothing)
    text = stream.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="|href="|url\()#', rf"\1#{name}-", text)
    text = re.sub(
        r' width="[^"]*pt"', ' width="100%"', re.sub(r' height="[^"]*pt"', "", text, count=1), count=1
    )
    label = f'role="img" aria-labelledby="{name}-t {name}-d"'
    words = (
        f'<title id="{name}-t">{_escaped(title)}</title><desc id="{name}-d">{_escaped(alternative)}</desc>'
    )
    svg = re.sub(r"<svg([^>]*)>", lambda m: f"<svg{m.group(1)} {label}>{words}", text, count=1)
    return AuditFigure(name, section, title, note, alternative, svg)


def inline(drawing: AuditFigure) -> str:
    """Return a figure for a page: no background, ink and grid in the page's colours, light or dark."""
    svg = re.sub(rf'<g id="{drawing.name}-patch_1">.*?</g>\s*', "", drawing.svg, count=1, flags=re.DOTALL)
    white = r'<path [^>]*style="fill: #ffffff"/>'
    svg = re.sub(rf'<g id="{drawing.name}-patch_\d+">\s*{white}\s*</g>\s*', "", svg)
    colours = {GRID: "grid", SOFT: "soft", BLUE: "blue", VERMILION: "vermilion", GREEN: "band"}
    for colour, name in colours.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg.replace(INK, "currentColor")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


_MOST_ROWS = 25
STATUS: Mapping[str, tuple[str, str]] = {
    "grave": ("■", "grave fault"),
    "mend": ("▲", "to mend"),
    "look": ("◆", "have a look"),
    "clear": ("✓", "nothing found"),
    "left out": ("–", "does not apply"),
}
"""Sign and words of each status; signs differ in shape, so that colour is not needed to tell them apart."""


def write_audit(folder: Path, audit: Audit) -> str:
    """Write an audit into a folder."""
    content = canonical(audit)
    drawn = drawings(audit)
    figures = folder / "figures"
    for old in figures.glob("*.svg"):
        old.unlink()
    for figure in drawn:
        head = b'<?xml version="1.0" encoding="utf-8"?>\n'
        replace_file(figures / f"{figure.name}.svg", head + figure.svg.encode("utf-8"))
    replace_file(folder / "audit.html", render(audit, drawn))
    replace_file(folder / "audit.json", content)
    return hashlib.sha256(content).hexdigest()


def canonical(audit: Audit) -> bytes:
    """Return the bytes of ``audit.json``, newline included; ``audit.schema.json`` is their JSON Schema."""
    text = json.dumps(audit.to_json(), ensure_ascii=False, indent=1, allow_nan=False)
    return text.encode("utf-8") + b"\n"


def render(audit: Audit, drawn: Sequence[AuditFigure]) -> str:
    """Return the audit's page: HTML with its style and figures inside, nothing fetched from elsewhere."""
    import jinja2
    from markupsafe import Markup

    blocks: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja2.StrictUndefined}
    environment = jinja2.Environment(loader=jinja2.PackageLoader(__package__), autoescape=True, **blocks)
    filters: dict[str, Callable[..., object]] = {
        "figure": lambda drawing: Markup(inline(drawing)),
        "number": number,
        "smd": lambda value: "no spread" if value is None else f"{value:.2f}",
        "percent": lambda value: f"{100 * value:.1f}%",
        "interval": lambda interval: (
            f"{100 * interval.estimate:.1f}% [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
        ),
    }
    environment.filters.update(filters)
    style = resources.files(__package__).joinpath("templates/audit.css").read_text(encoding="utf-8")
    return environment.get_template("audit.html.jinja").render(
        audit=audit,
        findings=audit.findings(),
        checks=[(name, claim, audit.status(name)) for name, claim in CHECKS.items()],
        counts={name: sum(finding.section == name for finding in audit.findings()) for name in CHECKS},
        status=STATUS,
        figures={name: [figure for figure in drawn if figure.section == name] for name in CHECKS},
        overall=next((finding.level for finding in audit.findings()), "clear"),
        most=_MOST_ROWS,
        style=Markup(style),
    )


def number(value: float) -> str:
    """Return a number with at most three digits after the point, none that says nothing."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
