"""Words the warnings of a fit, whose own notes name columns and grouping factors as formulas do."""

from __future__ import annotations

from markupsafe import Markup

from analysis import apa
from analysis.mixed import Fit, Note
from analysis.readers import PARTICIPANT_KINDS
from analysis.report.layout import SENTENCES
from analysis.report.terms import UNITS, term_in_words
from analysis.results import Analysis

NAMED = ("participant", "item")
"""Grouping factors whose levels a reader of a report knows by name."""
TOLD_APART = {"singular_variance", "singular_covariance", "not_converged"}
"""Codes of notes in whose place the report has a sentence about the whole fit."""


def in_words(note: Note, analysis: Analysis) -> str:
    """Return a note of a fit as a sentence without its full stop."""
    values = note.values
    group = values.get("group", "")
    units = UNITS.get(group, f"levels of {group}")
    is_check = analysis.companion is not None
    separation = f"Possible separation{' in the mixed model that serves as a check' if is_check else ''}"
    match note.code:
        case "seen_once":
            which = f" ({values['names']})" if group in NAMED else ""
            have = "has" if values["once"] == 1 else "have"
            return (
                f"Of the {apa.count(values['of'])} {units}, {apa.count(values['once'])}{which} {have} only one trial, "
                f"which says little about the variance of {units}"
            )
        case "few_levels":
            kinds = set() if "reader_kind" not in analysis.rows else set(analysis.rows["reader_kind"])
            units = "readers" if group == "participant" and not kinds <= set(PARTICIPANT_KINDS) else units
            return f"With only {values['counted']} {units}, the variation among {units} is estimated very imprecisely"
        case "variance_runs_away":
            sds = [
                f"{name.replace('(Intercept)', 'the intercept')}: {sd:.3g}"
                for name, sd in values["sds"].items()
            ]
            return (
                f"{separation}: the variance of {UNITS.get(group, group)} could not be estimated "
                f"(SD of {', '.join(sds)})"
            )
        case "columns_dropped":
            effects = apa.listing([term_in_words(column, analysis.of_model) for column in values["columns"]])
            return f"The data do not determine every effect; left out of the model: {effects}"
        case "large_se":
            effects = apa.listing([term_in_words(term, analysis.of_model) for term in values["terms"]])
            if len(values["terms"]) > 1:
                return f"{separation}: the standard errors of {effects} are so large that these estimates are uninformative"
            return f"{separation}: the standard error of {effects} is so large that the estimate is uninformative"
    return f"{note[0].upper()}{note[1:]}"


def warnings_of(analysis: Analysis) -> tuple[Markup, ...]:
    """State in sentences what is doubtful about the fit of an analysis."""
    model = analysis.model
    if model is None:
        return ()
    is_check = analysis.companion is not None
    # the second note of a variance that grows without limit has its size and what follows from it; the Results have it of a check
    again = {"variance_runs_away", "large_se", *(["odds_ratios_without_meaning"] if is_check else [])}
    omitted = TOLD_APART | (again if model.runs_away else set())
    notes = [in_words(note, analysis) for note in model.warnings if note.code not in omitted]
    return SENTENCES.paragraphs("fit_warnings", model=model, is_check=is_check, notes=notes)


RUNS_AWAY = 100.0
"""Standard errors on a log or logit scale above this are those of estimates that grow without end."""


def without_end(fit: Fit) -> list[str]:
    """Return what grows without end in a model whose likelihood has no maximum, so that R finds none to compare; else nothing."""
    endless = fit.fixed.loc[fit.fixed["se"] > RUNS_AWAY, "term"].tolist() if fit.link != "identity" else []
    return endless + [
        f"the standard deviation by {note.values['group']}"
        for note in fit.warnings
        if note.code == "variance_runs_away"
    ]
