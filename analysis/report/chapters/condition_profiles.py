"""Chapter on condition profiles: whether how a person goes up and down over conditions is the person's own, and where models lie."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.profile_plane import profile_plane
from analysis.inside.condition_profiles import (
    FEWEST_CONDITIONS,
    PeopleTold,
    Profiles,
    plane,
    profiles,
    told_of,
)
from analysis.names import plain
from analysis.readers import headed, marked
from analysis.report.apa_tables import ApaTable, Origin
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.filters import JUDGED, filled, timed_well

MEASURES = {"correct": "share right (failures as wrong)", "rt": "mean log response time of valid answers"}
METHOD = Markup(
    "Condition profiles. Each person’s trials in each condition were split into halves by a seeded order of the items. "
    "Profiles over "
    "conditions were freed of each condition’s mean over people and of each person’s own mean, so that only their "
    "shape is left, and a "
    "half was assigned to the person whose other half it correlates with most (after Finn et al., 2015); p is the "
    "share of assignments "
    "of second halves to people, all or 9,999 drawn and the right one, with as many matches. The reliability of whole "
    "profiles is the "
    "mean correlation of halves by Spearman and Brown’s formula. Models were set among people by the correlation of "
    "their profile with "
    "the people’s mean one, beside that of each person with the mean of the others."
)


def write(material: Material) -> Chapter | None:
    """Write the chapter; None without enough people who saw several items in each of three conditions or more."""
    tables = material.tables
    study = str(tables.dictionary["study"])
    found: list[tuple[Profiles, PeopleTold, str]] = []
    for factor, levels in tables.factors.items():
        if len(levels) < FEWEST_CONDITIONS:
            continue
        for measure in MEASURES:
            one = profiles(tables.trials, factor, list(levels), measure, study)
            if one is not None:
                found.append((one, told_of(one, study), factor))
    if not found:
        return None
    blocks: list[Block] = []
    for factor in dict.fromkeys(factor for _, _, factor in found):
        own = [(one, told) for one, told, other in found if other == factor]
        blocks += _of_factor(own, factor, material)
    groups = dict.fromkeys(group for one, _, _ in found for group in (one.group, *one.models))
    return Chapter(
        "profiles",
        "Condition profiles of people and models",
        tuple(blocks),
        marks_of(tuple(groups), material.kinds),
        methods=(METHOD,),
        sources=("finn2015", "spearman1910", "brown1910"),
    )


def _of_factor(found: list[tuple[Profiles, PeopleTold]], factor: str, material: Material) -> Iterator[Block]:
    name = f"profiles_{plain(factor)}"
    yield Markup("[[table:{}]] tells whether profiles over {} are people’s own. {}").format(
        name, factor, escape(" ".join(_said(one, told) for one, told in found))
    )
    yield _people_table(name, found, factor)
    for one, told in found:
        if not one.models:
            continue
        placed = f"profiles_models_{plain(factor)}"
        yield Markup("[[table:{}]] and [[figure:{}]] set models among people.").format(
            placed, f"{placed}_plane"
        )
        yield _model_table(placed, one, told, factor, material.kinds)
        where = plane(one)
        yield profile_plane(
            f"{placed}_plane",
            f"Condition profiles over {factor}",
            (one.group, where.people),
            (one.models, where.models),
            where.shares,
            material.kinds,
            f"Shares right in {len(one.conditions)} conditions by the two principal components of what is between "
            f"people; 0 is the mean of "
            "people. Models did not take part in finding the components.",
        )


def _said(one: Profiles, told: PeopleTold) -> str:
    who = told.identified
    what = "accuracy" if one.measure == "correct" else "response times"
    return (
        f"By {what}, {apa.count(who.matched)} of {apa.count(who.halves)} halves are most like the other half of their own person "
        f"(chance {apa.number(who.halves * who.chance, 1)}), {apa.p_phrase(who.p)}; the reliability of whole profiles is "
        f"{apa.correlation(told.whole)}."
    )


def _people_table(name: str, found: list[tuple[Profiles, PeopleTold]], factor: str) -> ApaTable:
    rows: list[tuple[str, ...]] = []
    for one, told in found:
        who = told.identified
        rows.append(
            (
                MEASURES[one.measure],
                apa.count(len(one.people)),
                apa.count(len(one.conditions)),
                apa.correlation(who.within),
                apa.correlation(who.between),
                apa.correlation(told.whole),
                apa.percent(who.matched / who.halves),
                apa.percent(who.chance),
                apa.p_value(who.p),
            )
        )
    left = max(one.left_out for one, _ in found)
    measures = [one.measure for one, _ in found]
    return ApaTable(
        name,
        f"Profiles over {factor}: halves of one person against halves of others",
        ("Measure", "People", "Conditions", "Within", "Between", "Reliability", "Matched", "Chance", "p"),
        tuple(rows),
        "Within, between: mean correlation of the shape of halves’ profiles, of one person and of different ones. "
        "Matched: halves that are most "
        "like the other half of their own person; one that is like several as much matches none. Between lies a "
        "little below 0 where people differ, for each is held against the mean of all."
        + (
            f" {apa.counted(left, 'person', 'people')} without trials in each half of each condition left out."
            if left
            else ""
        ),
        Origin(
            columns=("correct", "response_status", "rt", "reader", "item_id", factor),
            where=(
                *(
                    JUDGED
                    if measures == ["correct"]
                    else JUDGED
                    if "correct" in measures
                    else timed_well("rt")
                ),
                *filled(factor),
            ),
            computed="means of halves of each person’s items in each condition; correlations of their shapes",
            seed=("halves of a person", "item"),
        ),
    )


def _model_table(name: str, one: Profiles, told: PeopleTold, factor: str, kinds: dict[str, str]) -> ApaTable:
    known = told.typical[np.isfinite(told.typical)]
    low, middle, high = np.quantile(known, [0.05, 0.5, 0.95]) if len(known) else (np.nan,) * 3
    rows: list[tuple[str, ...]] = [
        (
            f"{headed(one.group)}, one against the others",
            apa.count(len(known)),
            apa.correlation(float(middle)),
            apa.correlations(float(low), float(high)),
            apa.MISSING,
        )
    ]
    rows += [
        (
            marked(model, kinds.get(model, "model")),
            apa.MISSING,
            apa.correlation(float(r)),
            apa.MISSING,
            apa.percent(float(below), 0),
        )
        for model, r, below in zip(one.models, told.of_models, told.below, strict=True)
    ]
    return ApaTable(
        name,
        f"Profiles over {factor} and the people’s mean profile",
        ("Reader", "People", "r", "5% to 95%", "People below"),
        tuple(rows),
        "r: correlation over conditions of a reader’s shares right with those of people; of a person with the mean of "
        "the others (median, and the "
        "middle 90% of people)."
        + (
            f" {apa.counted(unlike, 'person', 'people')} with the same share right in every condition left out."
            if (unlike := len(told.typical) - len(known))
            else ""
        )
        + " Models are means of many more trials than a person’s, so that noise lowers theirs less.",
        Origin(
            columns=("correct", "response_status", "reader", "item_id", factor),
            where=(*JUDGED, *filled(factor)),
            computed="shares right by reader and condition; correlations over conditions",
        ),
    )
