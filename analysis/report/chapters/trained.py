"""The chapter on trained models: what they were trained on, how their loss fell, and what training changed, item by item."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup, escape

from analysis import apa
from analysis.figures.inside import TaskRow, conditions_figure, loss_figure, tasks_figure
from analysis.inside.trained import (
    RECOVERY,
    Cell,
    Diagonal,
    Difference,
    Family,
    Modelled,
    Part,
    Transfer,
    cells_of,
    differences,
    families,
    loss_of,
    modelled,
    parts_of,
    printed_diagonal,
    transfer,
)
from analysis.names import plain
from analysis.plan import ALPHA
from analysis.published.h_test import Asked, asked, mean_with_ends
from analysis.report.blocks import Block, Chapter, Material, ReportedFit, marks_of
from analysis.report.chapters.h_test.pictures import NAMES, bound_of, no_bound
from analysis.report.chapters.trained_tables import cells_table, differences_table, transfer_table
from analysis.report.chapters.trained_words import told_of_trainings, trainings_table

MOST_NAMED = 4
METHOD = Markup(
    "Trained models were compared with the model that they were made from over the items that both were asked, each difference in "
    "shares right or recovery rates by one paired t test, to which its interval belongs; if fewer than five items changed, the "
    "variance of a difference in shares was that of one more; rates were linearised. <i>p</i> values were adjusted "
    "after Benjamini and Hochberg (1995) over the cells of each table. Models trained on scrambled texts were also compared with the "
    "one trained on the same texts as they are: the effect of scrambles beyond that of more training. Logistic mixed models with "
    "random intercepts of items have training, condition and their interaction, tested by likelihood ratios."
)
METHOD_TRANSFER = Markup(
    "What training gains on the task trained was set against what it gains on other tasks: the mean gain in the diagonal of the table "
    "of transfer minus that off it, with a percentile bootstrap over items within tasks, tested against all orders of the trainings "
    "(9,999 drawn ones beyond seven tasks), which leave alone how easy a task is and how much a training gains everywhere."
)


def write(material: Material) -> Chapter | None:
    """Write what training changed; None where no model of the study was trained."""
    tables = material.tables
    found = families(tables)
    if not found:
        return None
    material.told("trained models")
    study, seed = str(tables.dictionary["study"]), int(tables.dictionary.get("seed") or 0)
    blocks: list[Block] = [*_trainings(material, found)]
    fits: list[ReportedFit] = []
    asked_h_test = asked(tables)
    half, bound = bound_of(material)
    is_transferred = False
    for place, family in enumerate(found, 1):
        stem = f"_{place}" if len(found) > 1 else ""
        if not family.base_was_asked:
            names = apa.listing([one.group for one in family.models])
            blocks.append(
                escape(f"{family.base} itself did not read the study: {names} cannot be compared with it.")
            )
        if asked_h_test is not None:
            one = transfer(asked_h_test.trials, family, half, seed)
            if one is not None:
                blocks += _transfer(one, asked_h_test, stem, bound, no_bound(material))
                is_transferred = True
        some, models = _conditions(parts_of(tables, family), family, stem, study)
        blocks += some
        fits += models
    members = {
        name: "model" for family in found for name in (family.base, *(one.group for one in family.models))
    }
    methods = [paragraph for family in found for paragraph in told_of_trainings(family)]
    sources = ["benjamini1995"]
    sources += ["lee2024htest"] if is_transferred else []
    sources += ["cao2023"] if any(one.rule for family in found for one in family.models) else []
    sources += ["loshchilov2019"] if any(one.settings for family in found for one in family.models) else []
    sources += (
        ["hu2022"] if any(one.settings.get("method") == "lora" for f in found for one in f.models) else []
    )
    return Chapter(
        "trained-models",
        "Trained models",
        tuple(blocks),
        marks_of(tuple(members), members),
        methods=(*methods, METHOD, *((METHOD_TRANSFER,) if is_transferred else ())),
        fits=tuple(fits),
        sources=tuple(dict.fromkeys(sources)),
    )


def _trainings(material: Material, found: list[Family]) -> Iterator[Block]:
    """Say what was trained and draw how losses fell."""
    curves = [
        (one.group, losses)
        for family in found
        for one in family.models
        if (losses := loss_of(material.tables, one.training)) is not None
        and losses["training_loss"].notna().any()
    ]
    where = Markup("[[table:trained_models]] lists the models that were trained")
    where += Markup(" and [[figure:trained_loss]] has their losses.") if curves else Markup(".")
    rising = [
        one.group
        for family in found
        for one in family.models
        if (one.record.get("validation_loss") or 0)
        > (one.record.get("first_validation_loss") or float("inf"))
    ]
    if rising:
        where += escape(
            f" The loss of held-out records was higher after training than before it in {apa.listing(rising)}."
        )
    yield where
    yield trainings_table("trained_models", found)
    if curves:
        yield loss_figure("trained_loss", "Loss of each training by step", curves)


def _transfer(found: Transfer, h_test: Asked, stem: str, bound: str | None, why: str) -> Iterator[Block]:
    names = f"trained_transfer{stem}", f"trained_transfer_cells{stem}", f"trained_tasks{stem}"
    differ = sorted(
        (one for one in found.cells if one.p_adjusted < ALPHA), key=lambda one: -abs(one.compared.difference)
    )
    told = [
        f"Of {apa.counted(len(found.cells), 'cell')}, each compared with {found.base} over the same items, "
        f"{_many(len(differ))} {'differs' if len(differ) < 2 else 'differ'} at adjusted p < .05"
    ]
    own = [one for one in found.cells if one.in_domain]
    beyond = [one for one in differ if not one.in_domain]
    if own:
        better = [one for one in differ if one.in_domain and one.compared.difference > 0]
        are = "is" if len(better) < 2 else "are"
        told[0] += f"; of the {apa.counted(len(own), 'cell')} in domain {_many(len(better))} {are} better"
    if own and len(own) < len(found.cells):
        told[0] += f", of the {apa.count(len(found.cells) - len(own))} out of domain {_many(len(beyond))} "
        told[0] += "differs" if len(beyond) < 2 else "differ"
    told[0] += "."
    for few in (beyond, [one for one in differ if one.in_domain]):
        told += [_cell(one) for one in few[:MOST_NAMED]]
        told += (
            [f"The table of comparisons has {apa.count(len(few) - MOST_NAMED)} more."]
            if len(few) > MOST_NAMED
            else []
        )
    if bound is None:
        told.append(f"No cell is said to be without effect, since {why}.")
    else:
        alike = sum(one.compared.p_equal < ALPHA for one in found.cells)
        told.append(
            f"Within {bound} of the base by two one-sided tests: {apa.count(alike)} of {apa.count(len(found.cells))}."
        )
    yield Markup(
        "[[table:{}]] and [[figure:{}]] have every model on every task; [[table:{}]] has the tests. "
    ).format(names[0], names[2], names[1]) + escape(" ".join(told))
    yield transfer_table(names[0], found)
    yield _tasks_figure(names[2], found, h_test)
    yield cells_table(names[1], found, bound)
    if found.diagonal is not None:
        yield escape(_diagonal(found.diagonal))


def _cell(one: Cell) -> str:
    """Tell one cell that differs from the base."""
    return (
        f"{one.model.group}, tested on {NAMES[one.task].lower()}{' (in domain)' if one.in_domain else ''}: "
        f"{apa.number(100 * one.compared.difference, 1)} points, 95% CI "
        f"{apa.interval(100 * one.compared.low, 100 * one.compared.high, 1)}, adjusted {apa.p_phrase(one.p_adjusted)}."
    )


def _tasks_figure(name: str, found: Transfer, h_test: Asked) -> Block:
    rows_of = {str(group): own for group, own in h_test.trials.groupby("reader_group")}
    rows = []
    for task in found.tasks:
        values = {
            one.group: mean_with_ends(own)
            for one in found.models
            if len(own := rows_of[one.group][rows_of[one.group]["task"] == task])
        }
        mine = [values[one.group] for one in found.models if one.task == task and one.group in values]
        others = tuple(
            values[one.group][0] for one in found.models if one.task != task and one.group in values
        )
        base = rows_of[found.base]
        rows.append(
            TaskRow(
                NAMES[task], mean_with_ends(base[base["task"] == task]), mine[0] if mine else None, others
            )
        )
    title = f"{found.base} before and after training on tasks of H-TEST, as Figure 6 of Lee and Lim (2024)"
    return tasks_figure(name, title, rows, found.base)


def _diagonal(found: Diagonal) -> str:
    """Say whether training helps on its own task more than on others, here and in print."""
    printed = printed_diagonal()
    told = (
        f"On the task trained models gained {_points(found.within)} points on average, on the other trained tasks "
        f"{_points(found.across)}: {_points(found.difference)} points more in domain, 95% CI "
        f"{apa.interval(100 * found.low, 100 * found.high, 1)}, permutation {apa.p_phrase(found.p)} over {found.tasks} tasks."
    )
    if found.smallest_p > ALPHA:
        told += f" With so few tasks p cannot be below {apa.number(found.smallest_p, 2, leading_zero=False)}."
    return told + (
        f" In print (Lee & Lim, 2024, Table 8) gains are {_points(printed.within)} and {_points(printed.across)} points, a "
        f"difference of {_points(printed.difference)}, permutation {apa.p_phrase(printed.p)}."
    )


def _many(number: int) -> str:
    return apa.count(number) if number else "none"


def _points(share: float) -> str:
    return apa.number(100 * share, 1)


def _conditions(
    parts: list[Part], family: Family, stem: str, study: str
) -> tuple[list[Block], list[ReportedFit]]:
    """Compare models condition by condition, materials by materials, and draw all of them together."""
    told: list[Markup] = []
    laid: list[Block] = []
    fits: list[ReportedFit] = []
    panels = []
    for part in parts:
        compared = differences(part, family)
        if not compared:
            continue
        name = f"trained_conditions{stem}_{plain(part.name)}"
        cells = cells_of(part, study)
        label = "Recovery rate" if part.measure == RECOVERY else "Right answers"
        panels.append((part.title, label, cells, tuple(part.levels.values())))
        model = modelled(part, family)
        told.append(Markup("[[table:{}]]: ").format(name) + escape(_told(part, compared, model)))
        laid.append(differences_table(name, part, compared))
        if isinstance(model, Modelled):
            of = f" ({part.title})" if part.title else ""
            fits.append(ReportedFit(f"Training by condition{of}", model.fit))
    if not panels:
        return [], []
    figure = f"trained_conditions{stem}"
    groups = [family.base] * family.base_was_asked + [one.group for one in family.models]
    title = f"{family.base} and the models trained from it by condition, as Figure 9 of Cao et al. (2023)"
    opening = Markup("[[figure:{}]] has every model in every condition. ").format(figure)
    return [opening + Markup(" ").join(told), conditions_figure(figure, title, panels, groups), *laid], fits


def _told(part: Part, compared: list[Difference], model: Modelled | str) -> str:
    of = f"{part.title}. " if part.title else ""
    told = [of + _counted([one for one in compared if not one.against_control], "from the base")]
    beyond = [one for one in compared if one.against_control]
    if beyond:
        told.append(_counted(beyond, f"from {beyond[0].first}, the control,"))
    if isinstance(model, str):
        told.append(f"No mixed model: {model}.")
        return " ".join(one for one in told if one)
    what = "Words recovered of words changed" if part.measure == RECOVERY else "Right answers"
    test = model.training
    said = f"{what}, logistic mixed model: training χ²({test.df}) = {apa.number(test.statistic)}, {apa.p_phrase(test.p)}"
    if model.interaction is not None:
        test = model.interaction
        said += f"; training × condition χ²({test.df}) = {apa.number(test.statistic)}, {apa.p_phrase(test.p)}"
    told.append(said + ".")
    told += [f"The model warns: {warning}." for warning in map(str, model.fit.warnings)]
    return " ".join(one for one in told if one)


def _counted(compared: list[Difference], what: str) -> str:
    if not compared:
        return ""
    differ = [one for one in compared if one.p_adjusted < ALPHA]
    named = "; ".join(
        f"{one.second}, {one.condition}: {apa.number(one.difference, 1)} points, 95% CI {apa.interval(one.low, one.high, 1)}, "
        f"adjusted {apa.p_phrase(one.p_adjusted)}"
        for one in sorted(differ, key=lambda one: -abs(one.difference))[:MOST_NAMED]
    )
    more = len(differ) - MOST_NAMED
    listed = f" ({named}{f'; and {apa.count(more)} more' if more > 0 else ''})" if named else ""
    return (
        f"Of {apa.counted(len(compared), 'difference')} {what} {_many(len(differ))} "
        f"{'is' if len(differ) < 2 else 'are'} significant at adjusted p < .05{listed}."
    )
