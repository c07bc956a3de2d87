"""Writes a report folder: one self-contained page, figures, tables, the trials and an R script that refits every model."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.measures import MEASURES
from analysis.mixed import lme4_program
from analysis.preparing import time_bounds
from analysis.report.apa_tables import Head
from analysis.report.blocks import ReportedFit, marks_of
from analysis.report.content import Content, Illustrated, Numbered, gather
from analysis.tables import Tables, write_trials_csv
from stimuli.errors import UserError

PACKAGES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib")
DESIGN_CHANGED = (
    "The study's design has changed since these answers were collected. Conditions, items and the plan on this page are "
    "those of the study as it is now; what each session was shown is kept with the session in the store."
)
NOTE_SYMBOLS = re.compile(r"\b(N|n|SD|p)\b(?= (=|is|adjusted)\b| =)")


def write_report(
    tables: Tables,
    out_folder: str | Path,
    when: datetime | None = None,
    told: Callable[[str], None] = lambda _: None,
) -> Path:
    """Write a dated report folder and return the path of its page.

    Parameters
    ----------
    tables : Tables
        From :func:`analysis.load`.
    out_folder : str or pathlib.Path
        The report goes to a new folder in it, named by date and time.
    when : datetime.datetime, optional
        Now, unless given.
    told : callable
        Called with a line before each slow step.

    Returns
    -------
    pathlib.Path
        ``<out_folder>/<date-time>/report.html``; beside it ``figures/``, ``tables/``, ``models/``, ``models.R`` and
        ``trials.csv``.

    Raises
    ------
    UserError
        Where the study's plan names what does not exist, or the folder cannot be written.
    """
    when = when or datetime.now().astimezone()
    content = gather(tables, told)
    folder = Path(out_folder) / when.strftime("%Y-%m-%d_%H-%M-%S")
    told("files")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in content.all_figures():
            one.drawing.save(folder / "figures")
        for numbered in content.all_tables():
            numbered.table.save(folder / "tables")
        write_trials_csv(tables, folder / "trials.csv")
        _write_models(content, folder)
        page = folder / "report.html"
        own_copy = tables.folder.resolve().parent == folder.resolve()
        page.write_text(render(content, when, tables.folder.name if own_copy else None), "utf-8")
    except OSError as error:
        raise UserError(
            f"{folder} cannot be written: {error}", mend="Choose another folder with --out."
        ) from error
    return page


def render(content: Content, when: datetime, data: str | None = None) -> str:
    """Return the report's page: HTML with its style and figures inside, nothing fetched from elsewhere.

    Parameters
    ----------
    content : Content
    when : datetime.datetime
    data : str, optional
        Name of the folder beside the page that holds the handed-over tables, where there is one.
    """
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("analysis.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["figure"] = lambda drawing: Markup(drawing.svg)
    environment.filters["symbol"] = _symbol
    environment.filters["note"] = _note
    environment.filters["number"] = apa.number
    environment.tests["numbered_table"] = lambda block: isinstance(block, Numbered)
    environment.tests["numbered_figure"] = lambda block: isinstance(block, Illustrated)
    environment.tests["head"] = lambda row: isinstance(row, Head)
    dictionary = content.tables.dictionary
    kinds = content.kinds
    page = environment.get_template("report.html.jinja")
    return page.render(
        content=content,
        title=dictionary["title"] or dictionary["study"],
        dictionary=dictionary,
        when=when.strftime("%-d %B %Y, %H:%M")
        if platform.system() != "Windows"
        else when.strftime("%d %B %Y, %H:%M"),
        banner=banner(kinds, content.has_people),
        warnings=[DESIGN_CHANGED] if content.tables.design_changed else [],
        marks=marks_of(tuple(kinds), kinds),
        readers=reader_facts(dictionary["readers"]),
        items=item_facts(content),
        method=method_facts(content),
        recovery=recovery_words(content),
        software=software(dictionary),
        data=data,
        has_models=bool(reported_fits(content)),
        style=(environment.loader.get_source(environment, "style.css")[0] if environment.loader else ""),
    )


def banner(kinds: dict[str, str], has_people: bool) -> list[str]:
    """Say at the head of the page which readers are not data, and whether any are."""
    told = []
    present = set(kinds.values())
    if "simulated" in present:
        told.append(
            "This report holds simulated readers. Their answers and times were generated by wrods from known effects; they "
            "are not data and nothing here says anything about people."
            if not has_people
            else "This report holds simulated readers beside people. Simulated answers and times were generated by wrods "
            "from known effects; they are not data."
        )
    if "baseline" in present:
        told.append(
            "Baseline readers (random answers, fixed answers, the answer key) are yardsticks, not data."
        )
    return told


def reader_facts(readers: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Describe each reader of the study in one line: sessions, what was asked for, what answered, settings."""
    order = ["human", "simulated", "model", "baseline"]
    told = []
    for name, spec in sorted(readers.items(), key=lambda one: (order.index(str(one[1].get("kind"))), one[0])):
        sessions, pilots = int(spec.get("sessions") or 0), int(spec.get("pilot_sessions") or 0)
        if pilots == sessions > 0:
            parts = [f"{apa.counted(sessions, 'pilot session')}, in no model"]
        else:
            parts = [f"{apa.counted(sessions, 'session')} begun"]
            parts += [f"{apa.counted(pilots, 'pilot session')} among them, in no model"] if pilots else []
        if spec.get("finished") is not None and int(spec["finished"]) < sessions:
            parts.append(f"{apa.count(sessions - int(spec['finished']))} not finished")
        if spec.get("use"):
            parts.append(f"requested {spec['use']}")
        if spec.get("resolved"):
            parts.append(f"answered by {spec['resolved']}")
        settings = spec.get("settings") or {}
        parts += [
            f"{str(key).replace('_', ' ')}: {_setting(value)}"
            for key, value in settings.items()
            if key != "use"
        ]
        heads = {
            "human": "People",
            "simulated": "Simulated readers (not data)",
            "baseline": f"{name} (baseline)",
        }
        told.append((heads.get(str(spec.get("kind")), f"{name} (model)"), "; ".join(parts)))
    return told


def _setting(value: Any) -> str:
    """Write a setting as a reader of the study would: truth values as yes and no."""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def item_facts(content: Content) -> str:
    """Say how many items were analysed and in which conditions."""
    trials = content.tables.trials
    used = trials[trials["excluded_reason"].isna()]
    factors = [f"{name} ({', '.join(levels)})" for name, levels in content.tables.factors.items()]
    told = apa.counted(int(used["item_id"].nunique()), "item")
    return f"{told}; {apa.counted(len(factors), 'factor')}: {'; '.join(factors)}." if factors else f"{told}."


def method_facts(content: Content) -> list[str]:
    """Say by which rules every model of the report was made."""
    told = [
        "Accuracy: logistic mixed-effects models (Laplace approximation). An answer that cannot be scored, a refusal and "
        "a timeout count as wrong, for people and models alike; accuracy of valid answers only stands beside it.",
        "Times: linear mixed-effects models of natural logarithms (REML, Satterthwaite degrees of freedom), all valid "
        "answers, right and wrong. A log scale can hide or make an interaction.",
        "Random effects start at (1 + condition | participant) + (1 | item), with items free to differ between people "
        "and models. A model is one level of reader group and has no participant variance; deterministic repeats count "
        "once. Where a fit is singular or does not converge, correlations go first, then slopes without "
        "variance, then all slopes. Where a model's items differ by a standard deviation above 4 log odds (it answers "
        "most of them alike in every condition), that variance is dropped. Every step is printed.",
        "Planned differences: two-sided, alpha .05, Holm over the reader groups of one difference, where the plan says nothing "
        "else. Exploratory ones: "
        "Benjamini–Hochberg over all rows of a table.",
    ]
    for measure in MEASURES.values():
        bounds = time_bounds(content.tables.dictionary["exclude"], measure.name) if measure.logged else None
        if bounds is not None:
            told.append(
                f"{measure.title}: only times from {apa.count(bounds.low)} to {apa.count(bounds.high)} ms, as the study says."
            )
    if any(section.analysis.plan.stand_in for section in content.planned):
        told.append(
            "The plan names people; none have answered yet. Simulated readers stand in for them, as a rehearsal."
        )
    return told


def recovery_words(content: Content) -> str:
    """Say how many of the effects that were put in lie inside their intervals."""
    effects = [one for one in content.recovery if one.covered is not None]
    inside = sum(bool(one.covered) for one in effects)
    return (
        f"Simulated readers were given known effects and went through the same pages, store and models as people. "
        f"{inside} of {apa.counted(len(effects), 'effect')} put in lie inside the 95% interval recovered."
    )


def software(dictionary: dict[str, Any]) -> str:
    """Name the versions of everything that made the numbers."""
    names = [
        f"wrods {dictionary.get('wrods', '')} (own mixed-model engine)",
        f"Python {platform.python_version()}",
    ]
    names += [f"{package} {metadata.version(package)}" for package in PACKAGES]
    return apa.listing(names)


def _symbol(column: str, symbols: bool) -> Markup:
    if not symbols:
        return escape(column)
    first, _, rest = column.partition(" ")
    return Markup("<i>{}</i>").format(first) + (f" {rest}" if rest else "")


def _note(text: str) -> Markup:
    """Set the statistical symbols of a note in italics."""
    return Markup(NOTE_SYMBOLS.sub(r"<i>\1</i>", str(escape(text))))


def _write_models(content: Content, folder: Path) -> None:
    """Write each model's own rows as CSV and one R program that refits all of them with lme4."""
    programs = []
    for number, reported in enumerate(reported_fits(content), 1):
        name = f"models/model_{number:02d}.csv"
        (folder / "models").mkdir(exist_ok=True)
        rows: pd.DataFrame = reported.fit.model.frame.data
        rows.to_csv(folder / name, index=False)
        programs.append(f"# Model {number}: {reported.title}\n{lme4_program(reported.fit, name)}")
    if programs:
        (folder / "models.R").write_text("\n".join(programs), "utf-8")


def reported_fits(content: Content) -> list[ReportedFit]:
    """Return every model of a report in the order of its number."""
    models = [(one.heading, one.analysis.model) for one in content.sections]
    found = [
        ReportedFit(title, model.source)
        for title, model in models
        if model is not None and model.source is not None
    ]
    return found + [fit for part in content.chapters for fit in part.chapter.fits]
