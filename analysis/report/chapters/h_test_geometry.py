"""The chapter on letter geometry: right answers by kind of question and reader, against chance and a rule that sees no letter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.figures import Drawing
from analysis.figures.h_test_geometry import geometry_figure
from analysis.intervals import OF_SHARES
from analysis.mixed.adjustments import corrected
from analysis.published.h_test_geometry import (
    CHANCE,
    FAMILIES,
    Fitted,
    Point,
    Share,
    by_option_alone,
    fitted,
    geometry,
    printed_points,
    share,
)
from analysis.published.h_test_pairs import ALL as EVERY
from analysis.published.h_test_readings import both_parsers
from analysis.readers import group_order, kinds_of, marked, named
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.blocks import Block, Chapter, Material, marks_of
from analysis.report.chapters.h_test_pictures import Wording, bound_of, no_bound, pictures
from analysis.report.chapters.h_test_readings import parsers_said
from analysis.report.chapters.h_test_readings_tables import parsers_table

NAMES = {family: family.replace("_", " or ").capitalize() for family in FAMILIES}
ALL = "All questions"
METHOD = Markup(
    "Letter geometry (Lee &amp; Lim, 2024): shares of right answers were compared with 25%, by an exact binomial test where a model "
    "answered each question once, else by a <i>t</i> test over questions, and over people for people; intervals are Wilson's of the "
    "effective number of answers for a model, Student's over people; "
    "<i>p</i> values were adjusted after Benjamini and Hochberg (1995). The same model shown text and shown pictures was "
    "compared question by question."
)


def write(material: Material) -> Chapter | None:
    """Write right answers to letter geometry; None where a study asks none."""
    rows = geometry(material.tables)
    if rows is None:
        return None
    material.told("letter geometry")
    kinds = kinds_of(rows)
    told = [
        f"{named(group, kinds)} {apa.percent(one.value)} (95% CI {apa.interval(100 * one.low, 100 * one.high, 1)})"
        for group in group_order(rows)
        if kinds[group] != "baseline"
        for one in (share(rows[rows["reader_group"] == group]),)
    ]
    said = f" Of all questions: {'; '.join(told)}; chance is 25%." if told else ""
    blocks: list[Block] = [
        Markup("[[table:letter_geometry]] has right answers by kind of question.") + escape(said),
        geometry_table("letter_geometry", rows, kinds),
    ]
    alone = by_option_alone(material.tables.items)
    if alone is not None:
        right, of = alone
        blocks.append(
            escape(
                f"A rule that looks at no letter, “the one option that is not O, E or Ɛ”, answers {right} of {of} questions right: "
                + (
                    "above-chance accuracy on these items says nothing about geometry by itself."
                    if right > of / 2
                    else "the options do not give the answer away."
                )
            )
        )
    blocks += pictures(
        rows,
        material.tables.dictionary["readers"],
        *bound_of(material),
        QUESTIONS,
        why=no_bound(material),
    )
    read = both_parsers(rows, material.tables.folder, FAMILIES, is_pooled=True)
    if read:
        blocks += [
            Markup("[[table:letter_geometry_parsers]] reads every reply of a model by both parsers. ")
            + escape(parsers_said(read, kinds)),
            parsers_table("letter_geometry_parsers", read, kinds, {**NAMES, "average": ALL}, PARSER_NOTE),
        ]
    return Chapter(
        "letter-geometry",
        "Letter geometry",
        tuple(blocks),
        marks_of(tuple(kinds), kinds),
        methods=(METHOD,),
        sources=("lee2024htest", "benjamini1995"),
    )


QUESTIONS = Wording(
    "letter_geometry_pictures",
    FAMILIES,
    {**NAMES, EVERY: ALL},
    "kind",
    "answers",
    "of the questions",
    "Options and instructions",
    "the question",
    "the same questions",
)
PARSER_NOTE = "The published parser takes a reply that is exactly the symbol."


def geometry_table(name: str, rows: pd.DataFrame, kinds: Mapping[str, str]) -> ApaTable:
    """Tell right answers by reader and kind of question, each against chance."""
    found: list[tuple[str, str, Share]] = []
    for group in group_order(rows):
        own = rows[rows["reader_group"] == group]
        present = [family for family in FAMILIES if (own["task"] == family).any()]
        found += [(group, NAMES[family], share(own[own["task"] == family])) for family in present]
        found.append((group, ALL, share(own)))
    adjusted = np.array([one.p for *_, one in found], dtype=np.float64)
    # baselines are no data: they take part in what p is adjusted over only where nothing else is there
    counts = np.array([kinds[group] != "baseline" for group, *_ in found])
    adjusted[~counts] = np.nan if counts.any() else adjusted[~counts]
    told = np.isfinite(adjusted)
    adjusted[told] = corrected(adjusted[told], "BH")
    cells: list[tuple[str, ...]] = []
    before = ""
    for (group, what, one), p in zip(found, adjusted, strict=True):
        if group != before:
            cells.append(Head([marked(group, kinds[group])]))
            before = group
        cells.append(
            (
                what,
                apa.count(one.items),
                apa.count(one.answers),
                apa.number(100 * one.value, 1),
                apa.interval(100 * one.low, 100 * one.high, 1),
                apa.p_value(one.p),
                apa.p_value(float(p)),
            )
        )
    columns = ("Questions", "n", "Answers", "% right", "95% CI", "p", "p adjusted")
    note = (
        f"n: questions. What cannot be read is wrong. p: against {100 * CHANCE:.0f}%, adjusted after Benjamini and Hochberg over the "
        "table; baselines, which are no data, are not part of that. "
        "The paper's Table 6 prints one number a model, over all 90 questions."
    )
    origin = Origin(
        columns=("family", "correct", "response_status", "reader_group"),
        rows="set letter_geometry, excluded_reason empty; correct empty counts as 0",
    )
    return ApaTable(
        name,
        "Letter geometry by kind of question and reader",
        columns,
        tuple(cells),
        note,
        origin,
        of_paper=True,
    )


def beside_table(name: str, points: Sequence[Point], printed: Sequence[Point]) -> ApaTable:
    """Set H-TEST beside letter geometry, the study's readers first and the paper's printed numbers below."""
    rows: list[tuple[str, ...]] = [
        (
            marked(one.group, one.kind),
            apa.number(one.x[0], 1),
            apa.interval(one.x[1], one.x[2], 1),
            apa.number(one.y[0], 1),
            apa.interval(one.y[1], one.y[2], 1),
        )
        for one in points
    ]
    if printed:
        rows.append(Head(["As printed in the paper"]))
        rows += [
            (one.group, apa.number(one.x[0], 1), apa.MISSING, apa.number(one.y[0], 1), apa.MISSING)
            for one in printed
        ]
    columns = ("Reader", "% right, H-TEST", "95% CI", "% right, letter geometry", "95% CI")
    note = (
        "H-TEST: released items at the largest number of examples; chance is 50. Letter geometry: chance is 25. "
        f"Intervals: Student's over people, for a model {OF_SHARES}. The paper draws seven models and prints both numbers "
        "of six."
    )
    return ApaTable(
        name,
        "H-TEST beside letter geometry",
        columns,
        tuple(rows),
        note,
        Origin(columns=("correct", "reader_group"), rows="of both studies; printed numbers from h_test.csv"),
    )


def beside_figure(name: str, points: Sequence[Point]) -> tuple[Drawing, Fitted | None, Fitted | None]:
    """Draw Figure 5 with the study's readers over the paper's printed models, and return the two lines drawn."""
    printed = printed_points()
    line, theirs = fitted([one for one in points if one.kind == "model"]), fitted(printed)
    told = [
        f"{what} r = {apa.correlation(one.r)}, 95% CI {apa.correlations(one.low, one.high)}, n = {one.points}."
        for what, one in (
            ("Red line, models of this study:", line),
            ("Dotted line, printed models:", theirs),
        )
        if one is not None
    ]
    few = (
        ""
        if line is not None
        else " Fewer than four models of this study differ: no line is drawn through them."
    )
    note = (
        f"Points are means, bars 95% intervals: Student's over people, for a model {OF_SHARES}. Open grey points are printed "
        f"in the paper and are no data of this study. {' '.join(told)}{few}"
    )
    title = "H-TEST against letter geometry, as Figure 5 of Lee and Lim (2024)"
    return geometry_figure(name, title, note, points, printed, line, theirs), line, theirs
