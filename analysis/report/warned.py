"""Says in words what a fit warns of: its own notes name columns and grouping factors as formulas do."""

from __future__ import annotations

import re

from markupsafe import Markup

from analysis import apa
from analysis.report.layout import SENTENCES
from analysis.report.terms import UNITS, term_in_words
from analysis.results import Analysis

NAMED = ("participant", "item")
"""Grouping factors whose levels a reader of a report knows by name."""
_SEEN_ONCE = re.compile(r"(\w+): (\d+) of (\d+) levels? (?:is|are) seen once \((.*)\); .*")
_FEW_LEVELS = re.compile(r"(\w+) has \d levels; a variance estimated from (\w+) levels is very imprecise, .*")
_DROPPED = re.compile(r"fixed-effect model matrix is rank deficient so dropping \d+ columns?: (.*)")
_RUNS_AWAY = re.compile(r"possible separation: the standard deviation of (.*) by (\w+) runs away")


def in_words(note: str, analysis: Analysis) -> str:
    """Return a note of a fit as a sentence without its full stop."""
    if found := _SEEN_ONCE.fullmatch(note):
        return _seen_once(*found.groups())
    if found := _FEW_LEVELS.fullmatch(note):
        units = UNITS.get(found[1], f"levels of {found[1]}")
        return f"With only {found[2]} {units}, the variation among {units} is estimated very imprecisely"
    if found := _RUNS_AWAY.fullmatch(note):
        effects = found[1].replace("(Intercept)", "the intercept").replace(" (", ": ").replace(")", "")
        return f"Possible separation: the variance of {UNITS.get(found[2], found[2])} could not be estimated (SD of {effects})"
    if found := _DROPPED.fullmatch(note):
        effects = apa.listing([term_in_words(one, analysis) for one in found[1].split(", ")])
        return f"The data do not determine every effect; left out of the model: {effects}"
    return f"{note[0].upper()}{note[1:]}"


def _seen_once(group: str, once: str, of: str, names: str) -> str:
    units = UNITS.get(group, f"levels of {group}")
    which = f" ({names})" if group in NAMED else ""
    have = (
        f"{'has' if once == '1' else 'have'} only one trial, which says little about the variance of {units}"
    )
    return f"Of the {apa.count(int(of))} {units}, {apa.count(int(once))}{which} {have}"


def warnings_of(analysis: Analysis) -> tuple[Markup, ...]:
    """Say in sentences what is doubtful about the fit of an analysis."""
    model = analysis.model
    if model is None:
        return ()
    notes = [text for text in model.warnings if "singular" not in text and "failed to converge" not in text]
    told = [in_words(one, analysis) for one in notes]
    return SENTENCES.paragraphs(
        "fit_warnings", model=model, is_check=analysis.companion is not None, notes=told
    )
