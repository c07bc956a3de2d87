"""Names fixed effects, random effects and grouping factors of a model in words instead of column names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise, product
from typing import Any

from analysis.factorial import slopes_in_words
from analysis.frames import CENTRED
from analysis.mixed import VarianceComponent
from analysis.names import plain
from analysis.plan import COVARIATES, TIMES
from analysis.readers import headed, spoken
from analysis.results import Analysis, Contrast

_GROUPING = {
    "participant": ("Participant", "participants"),
    "item": ("Item", "items"),
    "item_cell": ("Item × condition × reader", "item-by-condition cells"),
    "item_reader": ("Item × reader", "item-by-reader cells"),
    "prompt": ("Prompt wording", "prompt wordings"),
    "item_condition": ("Item × condition", "items in conditions"),
    "answer_given": ("Answer", "answers"),
    "model_session": ("Session of a model", "sessions of models"),
    "machine": ("Model", "models"),
    "machine_condition": ("Model × condition", "models in conditions"),
}
GROUPS = {name: words for name, (words, _) in _GROUPING.items()}
"""The grouping factors of random effects by their names."""
UNITS = {name: units for name, (_, units) in _GROUPING.items()}
"""What the levels of each are."""


def contrast_in_words(contrast: Contrast) -> str:
    """Name a contrast with its readers: ``initial − internal, people vs. gpt``."""
    return f"{contrast.label}, {' vs. '.join(map(spoken, contrast.groups))}"


def term_in_words(term: str, analysis: Analysis) -> str:
    """Name a fixed effect in words instead of column names."""
    factor, reference = analysis.plan.factor, analysis.levels[0]
    coded = _coded_terms(analysis)
    if term == "(Intercept)":
        if coded:
            reference = _centre(analysis)
        where = f"{spoken(analysis.groups[0])}, {reference}" if len(analysis.groups) > 1 else reference
        return f"Intercept ({where})"
    if (covariate := COVARIATES.get(term.removesuffix(CENTRED))) is not None and term.endswith(CENTRED):
        return f"{covariate[0].upper()}{covariate[1:]}, centered"
    if coded:
        return coded.get(term, term)
    parts = _parts_of(term, analysis)
    if analysis.plan.crossing is not None and not any(part.startswith("reader_group") for part in parts):
        words = slopes_in_words(analysis.plan.crossing.among(analysis.levels))
        return words.get(term, term)
    if len(parts) > 1:
        parts.sort(key=lambda part: not part.startswith(factor))
        return " × ".join(_level_of(part, analysis) for part in parts)
    if term.startswith("reader_group"):
        return f"{headed(term.removeprefix('reader_group'))} vs. {spoken(analysis.groups[0])}"
    column = _column_of(term, analysis)
    if column is None:
        return f"{term.removeprefix(factor)} vs. {reference}"
    return f"{_level_of(term, analysis)} vs. {_reference_of(column, analysis)}"


def _centre(analysis: Analysis) -> str:
    """Return what the intercept of a model is the mean of, whose factors are not all treatment coded."""
    codings = analysis.plan.codings
    return ", ".join(
        levels[0] if codings[name] == "treatment" else f"mean of {name}"
        for name, levels in _compared(analysis).items()
    )


def _coded_terms(analysis: Analysis) -> dict[str, str]:
    """Return the fixed effects in words where a factor is not treatment coded; empty otherwise."""
    contrasts = {} if analysis.model is None else analysis.model.settings.get("contrasts", {})
    if not contrasts:
        return {}
    parts = [
        {
            f"reader_group{group}": f"{headed(group)} vs. {spoken(analysis.groups[0])}"
            for group in analysis.groups[1:]
        },
        *(
            _columns_in_words(name, levels, contrasts.get(name, "treatment"))
            for name, levels in _compared(analysis).items()
        ),
    ]
    words: dict[str, str] = {}
    for used in product((False, True), repeat=len(parts)):
        chosen = [part.items() for part, is_used in zip(parts, used, strict=True) if is_used]
        for columns in product(*chosen) if chosen else ():
            words[":".join(name for name, _ in columns)] = TIMES.join(label for _, label in columns)
    return words


def _columns_in_words(name: str, levels: Sequence[str], coding: str | Mapping[str, Any]) -> dict[str, str]:
    """Return what the coefficient of each of a factor's columns compares."""
    if not isinstance(coding, str):
        return {f"{name}{label}": label for label in coding}
    if coding == "sum":
        return {f"{name}{number}": f"{level} vs. mean" for number, level in enumerate(levels[:-1], 1)}
    if coding == "helmert":
        return {f"{name}{number}": f"{level} vs. levels before" for number, level in enumerate(levels[1:], 1)}
    if coding == "sdif":
        return {f"{name}{after}-{before}": f"{after} vs. {before}" for before, after in pairwise(levels)}
    return {f"{name}{level}": f"{level} vs. {levels[0]}" for level in levels[1:]}


def _parts_of(term: str, analysis: Analysis) -> list[str]:
    """Take an interaction apart; names of readers (``hf:path``) and levels may hold colons themselves."""
    names = [f"reader_group{group}" for group in analysis.groups]
    names += [f"{name}{level}" for name, levels in _compared(analysis).items() for level in levels]
    names = sorted((name for name in names if ":" in name), key=len, reverse=True)
    parts: list[str] = []
    remaining = term
    while remaining:
        part = next(
            (name for name in names if remaining == name or remaining.startswith(f"{name}:")),
            remaining.partition(":")[0],
        )
        parts.append(part)
        remaining = remaining[len(part) + 1 :]
    return parts


def _compared(analysis: Analysis) -> dict[str, tuple[str, ...]]:
    """Return the levels of what is compared: of one factor, or of both that are compared together."""
    crossing = analysis.plan.crossing
    if crossing is None:
        return {analysis.plan.factor: analysis.levels}
    return dict(zip(crossing.factors, crossing.among(analysis.levels).levels, strict=True))


def _column_of(term: str, analysis: Analysis) -> str | None:
    """Return the other factor of a planned formula that a term is a level of; None of the factor that is compared."""
    if analysis.plan.formula is None or term.startswith(analysis.plan.factor):
        return None
    rows = analysis.rows
    columns = [
        str(name)
        for name in rows.columns
        if term.startswith(str(name)) and (rows[name].astype(str) == term.removeprefix(str(name))).any()
    ]
    return max(columns, key=len, default=None)


def _level_of(term: str, analysis: Analysis) -> str:
    """Name the level that a term stands for."""
    if term.startswith("reader_group"):
        return spoken(term.removeprefix("reader_group"))
    column = _column_of(term, analysis)
    if column is None:
        column = next((name for name in _compared(analysis) if term.startswith(name)), analysis.plan.factor)
    return term.removeprefix(column)


def _reference_of(column: str, analysis: Analysis) -> str:
    """Name the level of a factor that has no term."""
    model = analysis.model
    terms = {coefficient.term for coefficient in model.coefficients} if model is not None else set()
    levels = [str(level) for level in analysis.rows[column].dropna().unique()]
    return next((level for level in levels if f"{column}{level}" not in terms), analysis.levels[0])


def component_in_words(name: str, analysis: Analysis, *, confined: bool = False, alone: bool = False) -> str:
    """Name a random effect in words; ``confined``: its term is of people or models alone; ``alone``: it correlates with no other."""
    factor = analysis.plan.factor
    if (coded := _coded_terms(analysis)) and name in coded:
        return coded[name]
    if analysis.plan.crossing is not None:
        crossed = slopes_in_words(analysis.plan.crossing.among(analysis.levels))
        if name in crossed:
            return crossed[name]
    if name in ("(Intercept)", "people"):
        return "intercept" if name == "(Intercept)" or not confined else "intercept of people"
    kind, _, slope = name.partition(":")
    if slope and kind == "model":
        return f"{component_in_words(slope, analysis)}, model vs. people"
    if name == "model" and confined:
        return "intercept of models"
    if name == "model":
        return "model vs. " + ("people" if "human" in analysis.groups else "simulated readers")
    for stem in (f"{factor}_", "people_", "model_", factor):
        if name.startswith(stem):
            column = name.removeprefix(stem)
            level = next((level for level in analysis.levels if plain(level) == column), column)
            is_deviation = alone and stem.endswith("_")
            return f"in {level}" if is_deviation else f"{level} vs. {analysis.levels[0]}"
    return name


def in_order(term: VarianceComponent, analysis: Analysis) -> tuple[int, int]:
    """Order random terms: participants, items, the rest; intercept first, then slopes by level."""
    crossing, name = analysis.plan.crossing, term.terms[0]
    if crossing is None:
        slopes = list(analysis.levels)
        name = component_in_words(name, analysis).removesuffix(f" vs. {analysis.levels[0]}")
    else:
        slopes = list(slopes_in_words(crossing.among(analysis.levels)))
    rank = {"participant": 0, "item": 1}.get(term.group, 2)
    return rank, slopes.index(name) if name in slopes else -1
