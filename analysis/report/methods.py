"""The Method section: who took part, which models were asked, materials, procedure, how the answers were analysed, with what."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from markupsafe import Markup, escape

from analysis import apa
from analysis.measures import MEASURES
from analysis.preparing import time_bounds
from analysis.preparing.flow import flow_steps
from analysis.random_structure import ITEMS_FOR_A_COLUMN, MOST_COLUMNS
from analysis.report.method_models import told_of_models
from analysis.report.references import Reference, reference, software
from analysis.results import Analysis
from analysis.tables import Tables

PACKAGES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib")
_RULES = {
    "practice": "practice", "filler": "filler items", "attention check": "attention checks",
}  # fmt: skip


@dataclass(frozen=True)
class MethodPart:
    """A subsection of the Method section.

    Attributes
    ----------
    heading : str
    paragraphs : tuple of Markup
    origin : str
        Where its numbers come from, in words.
    """

    heading: str
    paragraphs: tuple[Markup, ...]
    origin: str = ""


def method_parts(
    tables: Tables, analyses: tuple[Analysis, ...], models_table: int | None
) -> list[MethodPart]:
    """Write the Method section.

    Parameters
    ----------
    tables : Tables
    analyses : tuple of Analysis
        Every analysis of the report.
    models_table : int or None
        Number of the table of models, where there is one.
    """
    parts = [
        MethodPart("Participants", tuple(_participants(tables)), "tables of the flow; `dictionary: participants` in numbers.json"),
        MethodPart("Language models", tuple(told_of_models(tables, models_table)), "`dictionary: readers` in numbers.json"),
        MethodPart("Materials and design", tuple(_materials(tables)), "trials.csv; `dictionary: procedure` in numbers.json"),
        MethodPart("Procedure", tuple(_procedure(tables)), "`dictionary: procedure` in numbers.json"),
        MethodPart("Analysis", tuple(_analysis(tables, analyses)), "rules of wrods; `dictionary: exclude` in numbers.json"),
        MethodPart("Software", (escape(software_words(tables.dictionary)),), "versions installed when the report was written"),
    ]  # fmt: skip
    return [part for part in parts if part.paragraphs]


def _participants(tables: Tables) -> Iterator[Markup]:
    trials = tables.trials
    for group, noun in (("human", "person"), ("simulated", "simulated reader")):
        own = trials[(trials["reader_group"] == group) & ~trials["is_pilot"].astype(bool)]
        told = tables.dictionary["readers"].get(group) or {}
        if own.empty and not told.get("sessions"):
            continue
        people = {"person": "people"}.get(noun)
        used = own[own["excluded_reason"].isna()]
        begun = int(told.get("sessions") or own["session_id"].nunique()) - int(
            told.get("pilot_sessions") or 0
        )
        many = apa.worded(int(own["reader"].nunique()), noun, people)
        said = f"Participants were {many}" if group == "human" else f"In place of participants stood {many}"
        said += f", who answered at least one trial in {apa.worded(max(begun, 0), 'session')}"
        came = tables.dictionary.get("participants") or {}
        imported = group == "human" and bool(came.get("imported"))
        if imported and not came.get("first_session"):
            said += ", imported from a table that does not tell when they were held"
        else:
            said += f" begun, {apa.count(came['imported'])} of them imported," if imported else " begun"
        if group == "human" and came.get("first_session"):
            said += f" {apa.between_dates(came['first_session'], came['last_session'])}"
        left = int(used["reader"].nunique())
        said += f"; the answers of {apa.worded(left, noun, people)} to {apa.worded(len(used), 'trial')} are analysed."
        wanted = tables.dictionary.get("participants_wanted")
        if group == "human" and wanted:
            said += f" The study wanted {apa.count(wanted)}."
        if group == "simulated":
            said += " They are programs with known effects, not people, and no data."
        yield escape(f"{said} {_excluded(tables, group)}".strip())
        if group == "human":
            yield from _of_themselves(came)


def _first(text: str) -> str:
    return text[0].upper() + text[1:]


def _excluded(tables: Tables, group: str) -> str:
    steps = flow_steps(tables.trials[tables.trials["reader_group"] == group])
    lost = [one for one in steps.to_dict("records") if one["step"] and one["trials_lost"]]
    if not lost:
        return "Nobody and no trial was left out."
    parts = []
    for one in lost:
        who = (
            f" ({apa.counted(int(one['readers_lost']), 'reader')} altogether)" if one["readers_lost"] else ""
        )
        parts.append(
            f"{_RULES.get(one['why'], one['why'])}: {apa.counted(int(one['trials_lost']), 'trial')}{who}"
        )
    return f"Left out, in this order: {'; '.join(parts)}."


def _of_themselves(came: Mapping[str, Any]) -> Iterator[Markup]:
    """Say how people were found and what they answered about themselves."""
    said = []
    if came.get("recruit"):
        said.append(f"They were recruited by {_recruitment(str(came['recruit']))}.")
    if came.get("eligible"):
        rules = "; ".join(
            f"{str(name).replace('_', ' ')}: {_range(rule)}" for name, rule in came["eligible"].items()
        )
        said.append(f"Eligible were those who met: {rules}.")
    for one in came.get("answers") or []:
        if "mean" in one:
            sd = "" if one.get("sd") is None else f", SD = {apa.number(one['sd'])}"
            said.append(
                f"{_first(str(one['name']).replace('_', ' '))}: M = {apa.number(one['mean'])}{sd}, range "
                f"{one['low']:g} to {one['high']:g} (n = {apa.count(one['n'])})."
            )
        else:
            counts = ", ".join(f"{apa.count(n)} {value}" for value, n in one["counts"].items())
            said.append(
                f"{_first(str(one['name']).replace('_', ' '))}: {counts} (n = {apa.count(one['n'])})."
            )
    if came.get("people") and not came.get("answers"):
        said.append(
            "The study asked them nothing about themselves that can be summed (age, gender, languages)."
        )
    if said:
        yield _set(" ".join(said))


def _recruitment(name: str) -> str:
    known = {
        "prolific": "Prolific",
        "sona": "SONA",
        "mturk": "Amazon Mechanical Turk",
        "lab": "the laboratory",
    }
    return known.get(name, {"link": "a link"}.get(name, name))


def _range(rule: Any) -> str:
    if (
        isinstance(rule, list | tuple)
        and len(rule) == 2
        and all(isinstance(one, int | float) for one in rule)
    ):
        return f"{rule[0]} to {rule[1]}"
    return apa.listing([str(one) for one in rule]) if isinstance(rule, list | tuple) else str(rule)


def _set(text: str) -> Markup:
    """Set M, SD and n in italics."""
    said = str(escape(text))
    for symbol in ("M", "SD", "n"):
        said = said.replace(f" {symbol} = ", f" <i>{symbol}</i> = ").replace(
            f"({symbol} = ", f"(<i>{symbol}</i> = "
        )
    return Markup(said)


def _materials(tables: Tables) -> Iterator[Markup]:
    yield escape(f"Analysed: {item_words(tables)}")
    told = [
        one for one in tables.dictionary.get("procedure") or [] if one.startswith(("Materials:", "Design:"))
    ]
    if _all_imported(tables):
        # Lists are those of the table; what the study would draw itself was shown to nobody.
        told = [_OWN_LISTS.sub("", one) for one in told if one.startswith("Design:")]
    yield from (escape(one.partition(": ")[2]) for one in told)
    language = str(tables.dictionary["language"])
    if language:
        yield escape(f"The language of the study was {LANGUAGES.get(language.split('-')[0], language)}.")


LANGUAGES = {
    "en": "English",
    "de": "German",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "ja": "Japanese",
}


def item_words(tables: Tables) -> str:
    """Say how many items were analysed and in which conditions."""
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna()]
    factors = [f"{name} ({', '.join(levels)})" for name, levels in tables.factors.items()]
    told = apa.counted(int(used["item_id"].nunique()), "item")
    return f"{told}; {apa.counted(len(factors), 'factor')}: {'; '.join(factors)}." if factors else f"{told}."


_OWN_LISTS = re.compile(r" [0-9,]+ lists?; a session shows .*", re.DOTALL)


def _all_imported(tables: Tables) -> bool:
    """Say whether every session of people was imported, so that the study's own procedure was not theirs."""
    came = tables.dictionary.get("participants") or {}
    return bool(came.get("imported")) and not came.get("first_session")


def _procedure(tables: Tables) -> Iterator[Markup]:
    if _all_imported(tables):
        fewest, most = tables.dictionary["participants"]["imported_trials"]
        trials = apa.count(fewest) if fewest == most else f"{apa.count(fewest)} to {apa.count(most)}"
        yield escape(
            f"Answers of people were imported, with lists and row order as they stand in the table: {trials} trials in a session. "
            "How sessions were held is not told."
        )
        return
    told = tables.dictionary.get("procedure") or []
    yield from (
        escape(one.removeprefix("Procedure: "))
        for one in told
        if not one.startswith(("Materials:", "Design:"))
    )


def _analysis(tables: Tables, analyses: tuple[Analysis, ...]) -> Iterator[Markup]:
    fitted = [one for one in analyses if one.model is not None]
    logistic = any(one.model is not None and one.model.family == "binomial" for one in fitted)
    logged = any(one.plan.measure.logged for one in fitted)
    bates, barr = cite("bates2015lme4"), cite("barr2013")
    yield escape(
        "Accuracy: logistic mixed-effects models (Laplace approximation). An answer that cannot be scored, a refusal and "
        "a timeout count as wrong, for people and models alike; accuracy of valid answers only stands beside it."
        if logistic or not fitted
        else "No model of accuracy is in this report."
    )
    if logged or not fitted:
        yield escape(
            "Times: linear mixed-effects models of natural logarithms (REML, Satterthwaite degrees of freedom; "
            f"{cite('kuznetsova2017')}), all valid answers, right and wrong. A log scale can hide or make an interaction "
            f"({cite('loftus1978')})."
        )
    yield escape(
        f"Random effects start at what the design justifies ({barr}): participants with an intercept and slopes of the conditions; "
        "items likewise, each also otherwise in models than in people; what is particular to an item in one model, to it in one "
        "condition of one model, to a prompt wording and to a session of a model, where answers are repeated so that it can be told "
        "from chance. Item slopes begin with all variances and correlations where that takes at most "
        f"{MOST_COLUMNS} columns and there are {ITEMS_FOR_A_COLUMN} items for each; otherwise all conditions scatter alike. "
        "A model is one level of reader group and has no participant variance; deterministic repeats count "
        f"once. Where a fit is singular or does not converge ({cite('bates2015parsimonious')}), correlations go first, then slopes "
        "without variance, then all slopes. Where a model's items differ by a standard deviation above 4 log odds (it answers "
        "most of them alike in every condition), that variance is dropped; so is what conditions do to items, where its standard "
        "deviation passes 4 log odds. Every step is printed."
    )
    yield escape(
        f"Planned differences: two-sided, alpha .05, Holm's correction ({cite('holm1979')}) over the reader groups of one difference, "
        "where the plan says nothing else. Exploratory ones: Benjamini–Hochberg "
        f"({cite('benjamini1995')}) over all rows of a table. Coding is treatment coding; the first level of each factor is the "
        "reference. Intervals "
        "are 95% Wald intervals of estimates, and within-participant ones (Cousineau–Morey; "
        f"{cite('cousineau2005')}; {cite('morey2008')}) of means."
    )
    yield escape(
        "Explained variance is Nakagawa's R² on the scale of the linear predictor, marginal (fixed effects) and conditional (fixed "
        "and "
        f"random effects; {cite('nakagawa2013')}; {cite('nakagawa2017')}; random slopes: {cite('johnson2014')}). Every model was "
        "fitted by "
        f"wrods; the program models.R refits each with lme4 ({bates}), whose results are the judge."
    )
    if any(one.plan.equivalence is not None for one in fitted):
        yield escape(
            f"Equivalence: two one-sided tests against the bound that the plan fixed ({cite('schuirmann1987')}; {cite('lakens2017')})."
        )
    for measure in MEASURES.values():
        bounds = time_bounds(tables.dictionary["exclude"], measure.name) if measure.logged else None
        if bounds is not None:
            yield escape(
                f"{measure.title}: only times from {apa.count(bounds.low)} to {apa.count(bounds.high)} ms, as the study says."
            )
    if any(one.plan.stand_in for one in analyses):
        yield escape(
            "The plan names people; none have answered yet. Simulated readers stand in for them, as a rehearsal."
        )


def cite(key: str) -> str:
    """Write a reference as a sentence cites it."""
    return reference(key).cited()


def cited_keys(paragraphs: tuple[Markup, ...], keys: tuple[str, ...]) -> list[str]:
    """Return which of these references a text cites."""
    said = " ".join(str(one) for one in paragraphs)
    return [key for key in keys if str(escape(reference(key).cited())) in said]


METHOD_KEYS = (
    "bates2015lme4", "barr2013", "kuznetsova2017", "loftus1978", "bates2015parsimonious", "holm1979", "benjamini1995",
    "cousineau2005", "morey2008", "nakagawa2013", "nakagawa2017", "johnson2014", "schuirmann1987", "lakens2017",
)  # fmt: skip
"""What the Method section may cite."""


def software_words(dictionary: Mapping[str, Any]) -> str:
    """Name the versions of everything that made the numbers."""
    names = [f"wrods {dictionary.get('wrods') or metadata.version('wrods')} (own mixed-model engine)"]
    names += [f"Python {platform.python_version()}"]
    names += [f"{package} {metadata.version(package)}" for package in PACKAGES]
    return f"{apa.listing(names)}."


def software_references(dictionary: Mapping[str, Any], year: int) -> list[Reference]:
    """Return wrods with the version that made the report, as a reference."""
    version = str(dictionary.get("wrods") or metadata.version("wrods"))
    title = "wrods: People and language models, one experiment"
    return [software("wrods", "The wrods developers", title, version, str(year), "")]
