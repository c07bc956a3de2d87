"""What the Method section tells of answers that people rated: by whom, blind to what, on which scale, how differences were settled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup, escape

from analysis import apa
from analysis.published.h_test_tables import RULE
from analysis.tables import Tables

STATED = "statements of rules, analysed apart"
"""What is said to be left out where readers were asked for the rule of a set that they had sorted."""


def statements_of(tables: Tables) -> Any:
    """Return which trials ask for the rule of a set of items."""
    trials = tables.trials
    return trials["is_filler"].astype(bool) & trials["item_id"].astype(str).str.endswith(RULE)


def fillers_named(tables: Tables, group: str) -> str:
    """Name what a reader group saw beside the items that are compared: fillers, statements of rules, or both."""
    own = tables.trials["reader_group"] == group
    fillers = own & (tables.trials["excluded_reason"] == "filler")
    stated = fillers & statements_of(tables)
    if not stated.any():
        return "filler items"
    return STATED if stated.sum() == fillers.sum() else f"filler items and {STATED}"


def rules_asked_for(tables: Tables) -> str:
    """Say how many trials of a session ask for a rule; empty where none does."""
    stated = tables.trials[statements_of(tables)]
    if stated.empty:
        return ""
    # a session that was broken off has fewer
    number = apa.count(int(stated.groupby("session_id").size().max()))
    asked = "readers were asked to state the rule of the set that they had just sorted, in their own words"
    return f"In {number} of these trials {asked}."


def told_of_rating(tables: Tables) -> Iterator[Markup]:
    """Write how free answers were rated; nothing where a study has none rated or none to rate."""
    rating: Mapping[str, Any] | None = tables.dictionary.get("rating")
    if not rating or not rating["answers"]:
        return
    stated = bool(statements_of(tables).any())
    what = f"{'statements of rules' if stated else 'free answers'} of {_whose(tables)}"
    by = f"by {apa.worded(rating['raters'], 'person', 'people')} each{_on_scale(rating)}"
    if not rating["agreements"] and not rating["complete"]:
        yield escape(
            f"The {what} are to be rated {by}; none of the {apa.count(rating['answers'])} has all ratings yet."
        )
        return
    shown = (
        "the name of the set, the question, the statement, and which label had stood for which group"
        if stated
        else "the question, the intact text, and the answer"
    )
    several = (
        f", {apa.count(rating['people'])} people in all" if rating.get("people", 0) > rating["raters"] else ""
    )
    said = [
        f"The {what} were rated {by}{several}.",
        f"Raters saw {shown}, in an order of their own, but neither who had answered nor the condition.",
    ]
    if rating["raters"] > 1:
        weights = (
            ", with quadratic weights"
            if any(one["weights"] == "quadratic" for one in rating["agreements"])
            else ""
        )
        where = ": see the chapter on H-TEST" if stated else ""
        said.append(
            f"Agreement was measured by Cohen’s κ of their ratings before any decision{weights}{where}."
        )
        said.append(_settled(rating))
    said.append(
        "A rule counts as stated right with the highest rating."
        if stated
        else "The score of an answer is its rating as a share of the scale."
    )
    if (tables.trials["reader_kind"] == "simulated").any():
        said.append("Simulated readers’ answers were not rated.")
    yield escape(" ".join(said))
    if not stated:
        yield escape(agreement_said(rating))


def _whose(tables: Tables) -> str:
    kinds = {one.get("kind") for one in tables.dictionary["readers"].values()}
    named = [word for kind, word in (("human", "people"), ("model", "language models")) if kind in kinds]
    return apa.listing(named) or "readers"


def _on_scale(rating: Mapping[str, Any]) -> str:
    if not rating.get("scale"):
        return ""
    low, high = rating["scale"]
    return f" on a scale from {low} to {high} (the study’s {rating['rubric']} says what earns which rating)"


def _settled(rating: Mapping[str, Any]) -> str:
    """Say what became of answers on which raters differ."""
    differing, decided, talked = rating["differing"], rating["decided"], rating.get("by_discussion", 0)
    alike = "Where all raters of an answer agreed, that was its rating"
    if not differing:
        return f"{alike}; they differed on none."
    ways = [
        f"{apa.count(number)} by {how}"
        for number, how in ((talked, "discussion"), (decided - talked, "a third rater"))
        if number
    ]
    said = (
        [f"{apa.count(decided)} {'was' if decided == 1 else 'were'} decided ({', '.join(ways)})"]
        if decided
        else []
    )
    if left := differing - decided:
        said.append(
            f"{apa.count(left)} {'is' if left == 1 else 'are'} not decided and {'counts' if left == 1 else 'count'} as not rated"
        )
    return f"{alike}; of {apa.count(differing)} on which they differed, {apa.listing(said)}."


def agreement_said(rating: Mapping[str, Any]) -> str:
    """Say how many answers have all ratings, how far each two raters agree, and how many differences are decided."""
    complete, differing = rating["complete"], rating["differing"]
    told = [f"{apa.count(complete)} of {apa.counted(rating['answers'], 'answer')} have all ratings."]
    for one in rating["agreements"]:
        weights = ", quadratic weights" if one["weights"] == "quadratic" else ""
        kappa = (
            "Cohen's κ is not defined, since both gave one rating throughout"
            if one["kappa"] is None
            else f"Cohen's κ = {apa.correlation(one['kappa'])}{weights}, 95% CI {apa.correlations(one['low'], one['high'])}"
        )
        told.append(
            f"Raters {apa.listing([str(number) for number in one['raters']])} gave the same to {apa.count(one['same'])} of "
            f"{apa.count(one['answers'])} ({apa.percent(one['same'] / one['answers'])}); {kappa}."
        )
    if differing:
        told.append(
            f"Raters differ on {apa.count(differing)}, of which {apa.count(rating['decided']) if rating['decided'] else 'none'} "
            f"{'is' if rating['decided'] < 2 else 'are'} decided; what is not decided counts as not rated."
        )
    return " ".join(told)
