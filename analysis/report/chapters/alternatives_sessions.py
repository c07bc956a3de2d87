"""The mixed models with and without flagged sessions: as the study excluded them, with them back, without all that meet a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from markupsafe import Markup, escape

from analysis import apa
from analysis.carrying_out import carry_out
from analysis.mixed import Fit
from analysis.multiverse import AS_EXCLUDED, session_choices
from analysis.report.apa_tables import ApaTable, Origin
from analysis.report.blocks import Block, Material, ReportedFit
from analysis.report.chapters.robustness_shown import MOST_MODELS, fitted_models, heading_of
from analysis.report.chapters.robustness_tables import readers_in_words
from analysis.results import Analysis, Contrast
from stimuli.errors import UserError

MOST_ROWS = 20_000
"""Rows of a model above which it is not fitted again with other sessions."""


def other_sessions(
    analyses: Sequence[Analysis], material: Material, fits: list[ReportedFit]
) -> Iterator[Block]:
    """Fit the reported models again with each other choice of sessions; the models go into ``fits``."""
    tables = material.tables
    wanted = fitted_models(list(analyses))[:MOST_MODELS]
    small = [one for one in wanted if one.model is not None and one.model.rows <= MOST_ROWS]
    columns = [{AS_EXCLUDED: _by_name(one)} for one in small]
    models = [[one.model.source] if one.model and one.model.source else [] for one in small]
    several = False
    try:
        for name, trials in session_choices(tables):
            if name == AS_EXCLUDED:
                continue
            several = True
            for place, analysis in enumerate(small):
                assert analysis.model is not None
                material.told(f"model: {analysis.plan.name}, {name}")
                written = replace(analysis.plan, formula=analysis.model.formula, fallback=None)
                again = carry_out(written, replace(tables, trials=trials))
                columns[place][name] = _by_name(again)
                if again.model is not None and again.model.source is not None:
                    fits.append(ReportedFit(f"{analysis.plan.name}, {name}", again.model.source))
                    models[place].append(again.model.source)
    except UserError as error:
        yield escape(f"The declared rules could not be held against the sessions: {error.message}.")
        return
    if not several:
        yield escape("No session was excluded by the study, and none that it kept meets a declared rule.")
        return
    for number, (analysis, found, own) in enumerate(zip(small, columns, models, strict=True), 1):
        table = _table(found, analysis, f"sessions_{number}", own)
        yield Markup("{}: [[table:{}]]. ").format(heading_of(analysis), table.name) + escape(_verdict(found))
        yield table
    big = [one.plan.name for one in wanted if one.model is not None and one.model.rows > MOST_ROWS]
    if big:
        yield escape(
            f"Not fitted again with other sessions, to stay quick: {apa.listing(big)}; the differences of means below have them."
        )


def _by_name(analysis: Analysis) -> dict[tuple[str, str], Contrast]:
    return {(one.label, " − ".join(one.groups)): one for one in analysis.contrasts}


def _table(
    columns: dict[str, dict[tuple[str, str], Contrast]], analysis: Analysis, name: str, fits: Sequence[Fit]
) -> ApaTable:
    rows = []
    for key in columns[AS_EXCLUDED]:
        cells = [f"{key[0]}, {readers_in_words(key[1])}"]
        for found in columns.values():
            one = found.get(key)
            known = one is not None and one.estimable
            cells.append(
                apa.joined(apa.number(one.estimate), apa.interval(one.low, one.high))
                if one is not None and known
                else apa.MISSING
            )
        rows.append(tuple(cells))
    scale = {"points": "log odds", "ratio": "log units"}.get(
        analysis.plan.measure.scale, analysis.plan.measure.unit
    )
    note = f"In {scale}, with 95% intervals. The reported model was fitted again as it is. En dashes: not estimable."
    heads = [f"{one[0].upper()}{one[1:]}" for one in columns]
    title = f"Differences in {analysis.plan.measure.noun} with and without flagged sessions ({analysis.plan.name})"
    return ApaTable(
        name, title, ("Difference", *heads), tuple(rows), note, Origin(tuple(fits), computed=OF_SESSIONS)
    )


OF_SESSIONS = (
    "weights of the fixed effects of the reported model, fitted anew with and without flagged sessions"
)


def _verdict(columns: dict[str, dict[tuple[str, str], Contrast]]) -> str:
    own = columns[AS_EXCLUDED]
    moved = []
    for name, found in columns.items():
        for key, one in found.items():
            first = own.get(key)
            if first is None or not (one.estimable and first.estimable):
                continue
            if _side(one) != _side(first):
                moved.append(f"{key[0]}, {readers_in_words(key[1])} ({name})")
    if not moved:
        return "Every interval leaves 0 out, or holds it, as with the study's own choice of sessions."
    return f"The conclusion about 0 is another one for {'; '.join(moved)}."


def _side(one: Contrast) -> int:
    return 1 if one.low > 0 else -1 if one.high < 0 else 0
