"""From rows to matrices: X and its rank, Z by grouping factor, terms in lme4's order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stimuli.errors import UserError

from .blocks import Effects
from .covariance import Covariance, TermCovariance, orthonormalising
from .design import Design, independent_columns, make_design
from .factors import Factor
from .families import Family
from .formula import Formula
from .frame import Frame, Grouping

Array = NDArray[np.float64]

FEW_LEVELS = 3
"""Levels of a grouping factor up to which its variance is hardly estimated."""


@dataclass(frozen=True)
class Matrices:
    """Everything that the deviance is a function of.

    Attributes
    ----------
    x : ndarray, shape (n, p)
        Fixed-effects columns, dependent ones dropped.
    names : tuple of str, length p
        Their names.
    dropped : tuple of str
        Names of dependent columns.
    kept : tuple of int, length p
        Positions of the columns of ``x`` among all columns of ``design``.
    alias : ndarray, shape (p, dropped)
        The dropped columns as combinations of ``x``; tells which cell means the data can say.
    design : Design
        Makes the fixed columns for other rows.
    effects : tuple of Effects
        Per grouping factor, the one with most columns first; a column of zeros where there is none.
    groupings : tuple of Grouping
        Parallel to ``effects``; empty where there is none.
    covariance : Covariance
        Terms in lme4's order.
    labels : tuple of str
        Grouping name per term, ``g.1`` for the second term on g.
    notes : tuple of str
        What was dropped.
    """

    x: Array
    names: tuple[str, ...]
    dropped: tuple[str, ...]
    kept: tuple[int, ...]
    alias: Array
    design: Design
    effects: tuple[Effects, ...]
    groupings: tuple[Grouping, ...]
    covariance: Covariance
    labels: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def groups(self) -> dict[str, int]:
        """Number of levels by grouping factor, in lme4's order."""
        order = dict.fromkeys(t.factor for t in self.covariance.terms)
        return {self.groupings[f].name: len(self.groupings[f].levels) for f in order}


def make_matrices(formula: Formula, frame: Frame, family: Family) -> Matrices:
    """Make the model matrices.

    Parameters
    ----------
    formula : Formula
        The model.
    frame : Frame
        Rows to fit.
    family : Family
        Decides whether an observation-level grouping factor is allowed.

    Raises
    ------
    UserError
        For factors with one level, and for grouping factors that cannot be estimated.
    """
    design = make_design(formula.fixed, frame.variables)
    if family.dispersion == "thresholds" and not formula.fixed.intercept:
        raise UserError(
            f"{formula.text!r} leaves the intercept out; an ordinal model has thresholds in its place",
            mend="Write it without 0 + (or - 1).",
        )
    whole = design.matrix(frame.data)
    kept = independent_columns(whole)
    dropped = tuple(design.names[j] for j in range(whole.shape[1]) if j not in kept)
    notes = []
    if dropped:
        plural = "" if len(dropped) == 1 else "s"
        notes.append(
            f"fixed-effect model matrix is rank deficient so dropping {len(dropped)} column{plural}: "
            + ", ".join(dropped)
        )
    if len(kept) >= len(frame.y):
        many = max(
            (v for v in design.variables if isinstance(v, Factor)), key=lambda v: len(v.levels), default=None
        )
        held = f"; {many.label} is a factor with {len(many.levels)} levels" if many is not None else ""
        raise UserError(
            f"{len(kept)} fixed effects cannot be estimated from {len(frame.y)} rows{held}",
            mend="Use fewer terms, or make a column of numbers of one that should be no factor.",
        )

    groupings = [frame.grouping(term) for term in formula.random]
    for term, grouping in zip(formula.random, groupings, strict=True):
        _check_grouping(term.text(), grouping, frame, family)
    designs = [make_design(term.design, frame.variables) for term in formula.random]
    order = _lme4_order([len(g.levels) for g in groupings])
    raw = [d.matrix(frame.data) for d in designs]
    for i in order:
        _check_size(formula.random[i].text(), raw[i], len(groupings[i].levels), len(frame.y), family)

    # Terms that share a grouping factor share a block.
    unique = list(dict.fromkeys(g.name for g in groupings))
    widths = {
        name: sum(raw[i].shape[1] for i, g in enumerate(groupings) if g.name == name) for name in unique
    }
    by_name = {g.name: g for g in groupings}
    unique.sort(key=lambda name: -widths[name] * len(by_name[name].levels))
    columns: dict[str, list[Array]] = {name: [] for name in unique}
    terms = []
    at_theta = 0
    for i in order:
        name = groupings[i].name
        transform = orthonormalising(raw[i])
        k = raw[i].shape[1]
        at = sum(c.shape[1] for c in columns[name])
        size = k * (k + 1) // 2
        terms.append(
            TermCovariance(
                unique.index(name),
                at,
                designs[i].names,
                transform,
                slice(at_theta, at_theta + size),
                len(groupings[i].levels),
            )
        )
        columns[name].append(raw[i] @ transform)
        at_theta += size
    effects = tuple(
        Effects(by_name[name].codes, len(by_name[name].levels), np.hstack(columns[name])) for name in unique
    )
    if not effects:
        # Without random effects one that is zero in every row stands in, so that no deviance needs a second form.
        n = len(frame.y)
        effects = (Effects(np.zeros(n, dtype=np.intp), 1, np.zeros((n, 1))),)
    notes += _repeated(formula, designs, raw, groupings) + _few_levels(groupings) + _seen_once(groupings)
    return Matrices(
        x=whole[:, kept],
        names=tuple(design.names[j] for j in kept),
        dropped=dropped,
        kept=tuple(kept),
        alias=_alias(whole, kept),
        design=design,
        effects=effects,
        groupings=tuple(by_name[name] for name in unique),
        covariance=Covariance(terms, [e.width for e in effects]),
        labels=_distinct([groupings[i].name for i in order]),
        notes=tuple(notes),
    )


def _alias(whole: Array, kept: list[int]) -> Array:
    others = [j for j in range(whole.shape[1]) if j not in kept]
    if not others:
        return np.zeros((len(kept), 0))
    return np.asarray(np.linalg.lstsq(whole[:, kept], whole[:, others], rcond=None)[0])


def _lme4_order(levels: list[int]) -> list[int]:
    """Most levels first; lme4 reverses an ascending sort, ties included, and leaves descending lists alone."""
    indices = list(range(len(levels)))
    if all(a >= b for a, b in pairwise(levels)):
        return indices
    return sorted(indices, key=lambda i: levels[i])[::-1]


def _distinct(names: list[str]) -> tuple[str, ...]:
    seen: dict[str, int] = {}
    result = []
    for name in names:
        result.append(name if name not in seen else f"{name}.{seen[name]}")
        seen[name] = seen.get(name, 0) + 1
    return tuple(result)


def _repeated(
    formula: Formula, designs: list[Design], raw: list[Array], groupings: list[Grouping]
) -> list[str]:
    """Tell of random effects that no data could tell apart."""
    notes = []
    for i, (term, columns) in enumerate(zip(formula.random, raw, strict=True)):
        kept = independent_columns(columns)
        repeating = [name for j, name in enumerate(designs[i].names) if j not in kept]
        if repeating:
            notes.append(
                f"({term.text()}): {', '.join(repeating)} can be written by the other columns of this term, so its variances and "
                "correlations cannot be told apart; leave it out"
            )
        for j, other in enumerate(formula.random):
            if i == j or groupings[i].name != groupings[j].name or not _holds(raw[j], columns):
                continue
            if not _holds(columns, raw[j]):
                notes.append(
                    f"({term.text()}) is over-parameterised: ({other.text()}) already allows all of its variation, so their "
                    f"variances cannot be told apart; || does not separate the levels of a factor. Write ({other.text()}) alone, "
                    "or separate the levels by dummy() columns"
                )
            elif j < i:
                notes.append(
                    f"({other.text()}) and ({term.text()}) are one random effect written twice; only the sum of their "
                    "variances can be told"
                )
    return notes


def _holds(columns: Array, others: Array) -> bool:
    """Return whether all ``others`` are combinations of ``columns``, both of shape (n, k)."""
    return len(independent_columns(np.hstack([columns, others]))) == len(independent_columns(columns))


def _few_levels(groupings: list[Grouping]) -> list[str]:
    """Warn of grouping factors whose variance so few levels cannot estimate."""
    return [
        f"{name} has {many} levels; a variance estimated from {'two' if many == 2 else 'three'} levels is very imprecise, and so are "
        f"tests that depend on it; make {name} a fixed effect"
        for name, many in {g.name: len(g.levels) for g in groupings}.items()
        if many <= FEW_LEVELS
    ]


def _seen_once(groupings: list[Grouping]) -> list[str]:
    """Tell of levels that occur in one row; a factor of the rows themselves has no others, and means it."""
    notes = []
    for grouping in {g.name: g for g in groupings}.values():
        counts = np.bincount(grouping.codes, minlength=len(grouping.levels))
        once = [grouping.levels[i] for i in np.flatnonzero(counts == 1)]
        if once and len(once) < len(counts):
            shown = ", ".join(once[:4]) + (", …" if len(once) > 4 else "")
            levels = "level is" if len(once) == 1 else "levels are"
            notes.append(
                f"{grouping.name}: {len(once)} of {len(counts)} {levels} seen once ({shown}); "
                "such levels say next to nothing of a variance and nothing of slopes"
            )
    return notes


def _check_grouping(term: str, grouping: Grouping, frame: Frame, family: Family) -> None:
    m, n = len(grouping.levels), len(frame.y)
    if m < 2:
        raise UserError(
            f"grouping factor {grouping.name!r} in ({term}) has only the level {grouping.levels[0]!r}",
            mend="A random effect needs two levels or more.",
        )
    if m == n and family.has_scale:
        raise UserError(
            f"grouping factor {grouping.name!r} in ({term}) has as many levels as there are rows ({n}); "
            "its variance cannot be told from the residual",
            mend="Drop the term, or group by something that repeats.",
        )


def _check_size(term: str, raw: Array, levels: int, n: int, family: Family) -> None:
    effects = raw.shape[1] * levels
    if family.has_scale and effects >= n:
        raise UserError(
            f"({term}) has {effects} random effects ({raw.shape[1]} columns by {levels} levels) for {n} rows; "
            "they cannot be told from the residual",
            mend="Use fewer slopes in this term.",
        )
