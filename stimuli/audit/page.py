"""Writes an audit: ``audit.json`` (canonical), one self-contained page, and its figures; the same bytes on every build."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from stimuli.audit.audit import CHECKS, Audit
from stimuli.audit.figures import Drawing, drawings, inline
from stimuli.files import replace_file

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
    drawn = drawings(audit.balance, audit.changes, audit.choices, audit.shortcut)
    figures = folder / "figures"
    for old in figures.glob("*.svg"):
        old.unlink()
    for one in drawn:
        head = b'<?xml version="1.0" encoding="utf-8"?>\n'
        replace_file(figures / f"{one.name}.svg", head + one.svg.encode("utf-8"))
    replace_file(folder / "audit.html", render(audit, drawn))
    replace_file(folder / "audit.json", content)
    return hashlib.sha256(content).hexdigest()


def canonical(audit: Audit) -> bytes:
    """Return the bytes of ``audit.json``, newline included; they hold to :func:`audit_schema`."""
    text = json.dumps(audit.to_json(), ensure_ascii=False, indent=1, allow_nan=False)
    return text.encode("utf-8") + b"\n"


@functools.cache
def audit_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of ``audit.json``."""
    text = resources.files(__package__).joinpath("audit.schema.json").read_text(encoding="utf-8")
    found: Mapping[str, Any] = json.loads(text)
    return found


def render(audit: Audit, drawn: Sequence[Drawing] | None = None) -> str:
    """Return the audit's page: HTML with its style and figures inside, nothing fetched from elsewhere.

    Figures that are drawn already need not be drawn again.
    """
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    filters: dict[str, Callable[..., object]] = {
        "figure": lambda drawing: Markup(inline(drawing)),
        "number": number,
        "smd": lambda value: "no spread" if value is None else f"{value:.2f}",
        "percent": lambda value: f"{100 * value:.1f}%",
        "interval": lambda one: f"{100 * one.estimate:.1f}% [{100 * one.low:.1f}, {100 * one.high:.1f}]",
    }
    environment.filters.update(filters)
    if drawn is None:
        drawn = drawings(audit.balance, audit.changes, audit.choices, audit.shortcut)
    style = resources.files(__package__).joinpath("templates/audit.css").read_text(encoding="utf-8")
    return environment.get_template("audit.html.jinja").render(
        audit=audit,
        findings=audit.findings(),
        checks=[(name, claim, audit.status(name)) for name, claim in CHECKS.items()],
        counts={name: sum(one.section == name for one in audit.findings()) for name in CHECKS},
        status=STATUS,
        figures={name: [one for one in drawn if one.section == name] for name in CHECKS},
        overall=next((one for one in ("grave", "mend", "look") if one in _levels(audit)), "clear"),
        most=_MOST_ROWS,
        style=Markup(style),
    )


def number(value: float) -> str:
    """Return a number with at most three digits after the point, none that says nothing."""
    return f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"


def _levels(audit: Audit) -> set[str]:
    return {one.level for one in audit.findings()}
