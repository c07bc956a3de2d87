"""Sensitivity and bias: signal detection where one of two classes is the answer, from counts and from a mixed model."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.families import with_adjusted
from analysis.figures.measures import sensitivity_figure
from analysis.measures.signal_detection import (
    GROUP,
    Classes,
    ProbitModel,
    differences_in_sensitivity,
    of_groups,
    probit_model,
    sensitivity_and_bias,
    signal_detection,
    two_class_trials,
)
from analysis.names import plain
from analysis.preparing import each_answer_once, not_told_apart, unseen
from analysis.readers import headed, kinds_of, named
from analysis.report.blocks import Block, Chapter, Material, ReportedFit, marks_of
from analysis.report.chapters.sensitivity_tables import cells_table, counts_table, differences_table
from analysis.report.differences import EQUALS
from analysis.report.felt import p_said

SPOKEN_LEVELS = 6
"""Beyond so many levels the text names only the differences that are significant."""
ALPHA = 0.05


def write(material: Material) -> Chapter | None:
    """Write signal detection for each pair of classes that a study asks for; None where there is none."""
    tables = material.tables
    asked = two_class_trials(tables.trials, tables.items)
    if not asked:
        return None
    material.told("signal detection")
    blocks: list[Block] = []
    fits: list[ReportedFit] = []
    kinds: dict[str, str] = {}
    for number, classes in enumerate(asked, 1):
        stem = f"sensitivity_{number}" if len(asked) > 1 else "sensitivity"
        kinds |= kinds_of(classes.trials)
        blocks += [_opening(classes, several=len(asked) > 1)]
        own, models = _of_classes(classes, stem, material)
        blocks += own
        fits += models
    return Chapter(
        "signal-detection",
        "Signal detection: sensitivity and bias",
        tuple(blocks),
        marks_of(tuple(kinds), kinds),
        methods=(METHOD,),
        fits=tuple(fits),
        sources=("hautus1995", "decarlo1998"),
    )


METHOD = Markup(
    "Sensitivity is d′ = <i>z</i>(hits) − <i>z</i>(false alarms) and the criterion c = −[<i>z</i>(hits) + <i>z</i>(false alarms)]/2, "
    "with the log-linear correction (Hautus, 1995). Differences were tested in a probit mixed model of the answer by truth (±½) × "
    "condition × reader (DeCarlo, 1998; Laplace approximation), in which coefficients of truth are differences in d′ and the others "
    "differences in −c. Participants differed in bias, sensitivity, and, where trials sufficed, condition effects on both; items "
    "differed in how they were answered. Components without variance were removed. Answers that could not be scored are in neither "
    "rate."
)


def _opening(classes: Classes, *, several: bool) -> Markup:
    where = f" ({', '.join(classes.sets)})" if several and classes.sets else ""
    text = (
        f"In {apa.counted(len(classes.trials), 'trial')}{where} the answer was one of two classes, {classes.signal} or "
        f"{classes.other}. Accuracy alone mixes how well a reader tells them apart (sensitivity d′) with a leaning to one answer "
        f"(criterion c: below 0 to {classes.signal}, above 0 to {classes.other}); a reader that always gives one answer is right as "
        f"often as its answer is the key, and has no sensitivity."
    )
    return escape(text)


def _of_classes(classes: Classes, stem: str, material: Material) -> tuple[list[Block], list[ReportedFit]]:
    factors = {
        name: [level for level in levels if (classes.trials[name] == level).any()]
        for name, levels in material.tables.factors.items()
    }
    factors = {name: levels for name, levels in factors.items() if levels}
    blocks: list[Block] = []
    fits: list[ReportedFit] = []
    settled = [name for name in factors if _settles_the_answer(classes.trials, name)]
    if settled:
        blocks.append(
            escape(
                f"Not told by {apa.listing(settled)}: every level has one right answer, so that no condition has both hits and false "
                "alarms."
            )
        )
        factors = {name: levels for name, levels in factors.items() if name not in settled}
    if not factors:
        blocks += _described(_each_once(classes, []), None, [], stem)
    for factor, levels in factors.items():
        own, told = f"{stem}_{plain(factor)}", _each_once(classes, [factor])
        blocks += _described(told, factor, levels, own)
        if len(levels) < 2:
            continue
        blind = _blind(told.trials, factor, levels)
        if blind:
            # one answer under the name of each level is no answer to each of them
            told = replace(told, trials=told.trials[~told.trials[GROUP].isin(blind)])
            said = " ".join(unseen(headed(group), factor) for group in blind)
            blocks.append(
                escape(f"{said} The model of responses by {factor} is without {apa.listing(blind)}.")
            )
        if told.trials.empty:
            continue
        material.told(f"signal detection: model by {factor}")
        model = probit_model(told, factor, levels)
        if isinstance(model, ProbitModel):
            blocks += _modelled(model, factor, told, own, material.kinds)
            fits.append(ReportedFit(f"signal detection by {factor}", model.fit))
        else:
            blocks.append(escape(" ".join(model)))
    return blocks, fits


def _each_once(classes: Classes, by: list[str]) -> Classes:
    """Count answers of a model once that copy one another within the levels of some factors."""
    return replace(classes, trials=each_answer_once(classes.trials, by))


def _blind(trials: pd.DataFrame, factor: str, levels: list[str]) -> list[str]:
    """Name the models whose prompts do not show which level of a factor they have."""
    return not_told_apart(trials[trials[factor].isin(levels)], factor) if "same_prompt" in trials else []


def _settles_the_answer(trials: pd.DataFrame, factor: str) -> bool:
    """Say whether all trials of each level of a factor have one right answer."""
    told = trials[trials[factor].notna()].groupby(factor, observed=True)["answer"].nunique()
    return bool((told == 1).all())


def _described(classes: Classes, factor: str | None, levels: list[str], stem: str) -> list[Block]:
    cells = of_groups(classes, factor, levels)
    readers = signal_detection(classes.trials, [factor] if factor else [], classes.signal)
    kinds = {str(one[GROUP]): str(one["kind"]) for one in cells.to_dict("records")}
    told = [
        Markup("[[table:{0}]] and [[figure:{0}]] show it{1}.").format(stem, f" by {factor}" if factor else "")
    ]
    if len(levels) <= SPOKEN_LEVELS:
        told += [
            _cells_in_words(str(group), own, kinds)
            for group, own in cells.groupby(GROUP, sort=False)
            if kinds[str(group)] != "baseline"
        ]
    flat = _one_answer(cells, kinds)
    if flat:
        told.append(escape(f"One answer throughout: {apa.listing(flat)}. That is bias alone."))
    return [
        Markup(" ").join(told),
        counts_table(stem, cells, factor, classes.signal),
        sensitivity_figure(stem, cells, readers, factor, classes.signal, classes.other),
    ]


def _one_answer(cells: pd.DataFrame, kinds: dict[str, str]) -> list[str]:
    """Name the readers that give the same answer to every trial of a level."""
    said, asked = cells["hits"] + cells["false_alarms"], cells["signals"] + cells["others"]
    always = cells[(asked > 0) & ((said == 0) | (said == asked))]
    told = []
    for group, own in always.groupby(GROUP, sort=False):
        every = len(own) == (cells[GROUP] == group).sum()
        where = "every condition" if every else apa.listing(list(own["level"]))
        told.append(
            f"{named(str(group), kinds)} in {where}" if own["level"].iloc[0] else named(str(group), kinds)
        )
    return told


def _cells_in_words(group: str, own: pd.DataFrame, kinds: dict[str, str]) -> Markup:
    parts = []
    for cell in own.to_dict("records"):
        where = f" in {cell['level']}" if cell["level"] else ""
        parts.append(
            str(
                Markup("d′{0}{1}, 95%\u00a0CI\u00a0{2}, and c{0}{3}, 95%\u00a0CI\u00a0{4},{5}").format(
                    EQUALS,
                    apa.number(cell["d_prime"]),
                    apa.interval(cell["d_prime_low"], cell["d_prime_high"]),
                    apa.number(cell["criterion"]),
                    apa.interval(cell["criterion_low"], cell["criterion_high"]),
                    where,
                )
            ).rstrip(",")
        )
    who = named(group, kinds)
    return Markup("{}: {}.").format(
        f"{who[0].upper()}{who[1:]}" if who.startswith("the ") else who.capitalize(), Markup("; ".join(parts))
    )


def _modelled(
    model: ProbitModel, factor: str, classes: Classes, stem: str, kinds: dict[str, str]
) -> list[Block]:
    estimates = sensitivity_and_bias(model.fit, model.data)
    differences = with_adjusted(differences_in_sensitivity(model.fit, model.data), "ci_low", "ci_high")
    text = Markup(
        "Response by {} was modelled in a probit mixed model (<code>{}</code>), "
        "{} answers ([[table:{}_model]], [[table:{}_differences]])."
    ).format(
        apa.listing(["truth", factor, *(["reader"] if len(model.groups) > 1 else [])]),
        model.fit.formula,
        apa.count(model.fit.nobs),
        stem,
        stem,
    )
    doubts = []
    if not model.fit.converged:
        doubts.append("The fit did not converge; its numbers are not to be trusted.")
    if model.fit.singular:
        doubts.append(
            "The fit is singular: some variance is estimated as zero, and intervals may be too narrow."
        )
    if model.steps:
        doubts.append(f"Taken out of its random effects: {'; then '.join(model.steps)}.")
    told = [
        text,
        *(escape(one) for one in (*model.remarks, *doubts)),
        *_findings(differences, factor, model.groups[0], kinds),
    ]
    return [
        Markup(" ").join(told),
        cells_table(f"{stem}_model", estimates, model, factor, kinds),
        differences_table(f"{stem}_differences", differences, model, factor),
    ]


def _findings(differences: pd.DataFrame, factor: str, only: str, kinds: dict[str, str]) -> list[Markup]:
    few = differences["first"].nunique() < SPOKEN_LEVELS
    told = []
    for one in differences.to_dict("records"):
        significant = one["p_adjusted"] < ALPHA
        if not significant and not few:
            continue
        noun = "Sensitivity" if one["measure"] == "d_prime" else "The criterion"
        levels = f"{one['first']} and {one['second']}"
        first, *others = (named(group or only, kinds) for group in one["groups"])
        if others:
            what = "sensitivity" if one["measure"] == "d_prime" else "the criterion"
            text = f"The difference in {what} between {levels} differed between {first} and {others[0]}, "
            if not significant:
                text = f"Whether the difference in {what} between {levels} differs between {first} and {others[0]} remains open, "
        elif significant:
            how = "higher" if one["estimate"] > 0 else "lower"
            text = f"{noun} of {first} was {how} in {one['first']} than in {one['second']}, "
        else:
            text = f"Whether {noun[0].lower()}{noun[1:]} of {first} differs between {levels} remains open, "
        told.append(
            escape(text)
            + Markup("<i>b</i>{0}{1}, <i>SE</i>{0}{2}, <i>z</i>{0}{3}, {4}, 95%\u00a0CI\u00a0{5}.").format(
                EQUALS,
                apa.number(one["estimate"]),
                apa.number(one["se"]),
                apa.number(one["statistic"]),
                p_said(one["p_adjusted"]),
                apa.interval(one["ci_low"], one["ci_high"]),
            )
        )
    if not few and not told:
        told.append(escape(f"No difference between levels of {factor} is significant."))
    if (differences["p_adjusted"] >= ALPHA).any():
        told.append(Markup("A difference that is not significant is no evidence that there is none."))
    return told
