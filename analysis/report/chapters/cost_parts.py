"""What the parts of the chapter on cost share: a part that grows, and words and numbers that all of them write alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.report.blocks import Block, ReportedFit
from stimuli.errors import UserError

FAILURES = (UserError, np.linalg.LinAlgError, FloatingPointError)
"""What a fit may end with; the chapter names it and goes on."""

OWN_SCALE = Markup(
    "Times in milliseconds: the dispersion of the Gamma distribution was estimated by maximum likelihood, with the observed "
    "information in the Laplace approximation. That is glmmTMB's criterion; glmer of lme4 has another, which is no likelihood, "
    "and gives other estimates and standard errors for these models. So <code>models.R</code> writes this criterion out over "
    "lme4's matrices instead of calling glmer."
)
"""How models of milliseconds are computed, in the methods of every part that has one."""


@dataclass
class Part:
    """A part of the chapter while it is written.

    Attributes
    ----------
    blocks : list of Markup, ApaTable or Drawing
    methods : list of Markup
    fits : list of ReportedFit
    groups : list of str
        Reader groups that are in it.
    sources : list of str
    """

    blocks: list[Block] = field(default_factory=list)
    methods: list[Markup] = field(default_factory=list)
    fits: list[ReportedFit] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)

    def add(self, other: Part) -> None:
        """Put another part behind this one; methods and sources are said once."""
        self.blocks += other.blocks
        self.fits += other.fits
        for name in ("methods", "groups", "sources"):
            own = getattr(self, name)
            own += [one for one in getattr(other, name) if one not in own]

    def head(self, text: str) -> None:
        """Begin under a heading."""
        self.blocks.append(Markup("<h3>{}</h3>").format(text))

    def say(self, *sentences: str) -> None:
        """Add a paragraph of sentences; plain text is escaped, Markup stays; nothing where there are none."""
        told = [escape(one) for one in sentences if one]
        if told:
            self.blocks.append(Markup(" ").join(told))


def sentence(text: str) -> str:
    """Begin with a capital and end with a stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def with_ends(value: float, low: float, high: float, decimals: int = 2, unit: str = "") -> str:
    """Write an estimate with its 95% interval, as ``12.3% [4.5, 20.1]``; alone where there is no interval, or none of any width."""
    told = apa.number(value, decimals) + (unit if np.isfinite(value) else "")
    is_known = np.isfinite(low) and np.isfinite(high) and not apa.without_width(low, high)
    return f"{told} {apa.interval(low, high, decimals)}" if is_known else told


def as_percent(log_ratio: float) -> float:
    """Turn a difference of natural logarithms into percent."""
    return 100.0 * float(np.expm1(log_ratio))


def chosen_words(names: Iterable[str]) -> str:
    """List names in a sentence."""
    return apa.listing(list(dict.fromkeys(names)))
