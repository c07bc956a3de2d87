"""Tables of trained models: transfer between tasks of H-TEST, as the paper's Table 8, and differences condition by condition."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import apa
from analysis.inside.trained import AVERAGE, RECOVERY, Cell, Difference, Part, Transfer
from analysis.plan import ALPHA
from analysis.published.h_test import Paired
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.chapters.h_test.pictures import NAMES
from analysis.report.filters import USED

ONE_TEST = "p and interval come from one paired t test over items; if fewer than five items changed, its variance is that of one more."
ORIGIN = Origin(
    columns=("task", "item_id", "correct", "response_status", "reader_group"),
    rows="excluded_reason empty, is_filler false, response_status not error; makings and numbers of examples are factors "
    "between sessions; correct empty counts as 0",
)


def compared_columns(what: str, first: str, second: str, *, has_bound: bool) -> tuple[str, ...]:
    """Return the heads of a table of comparisons by item."""
    heads = (what, "n", "Changed", first, second, "Difference", "95% CI", "p", "p adjusted")
    return (*heads, "p equal") if has_bound else heads


def compared_interval(one: Paired) -> str:
    """Write the interval of a difference; a dash where no item differs, which leaves nothing to reckon it from."""
    return apa.interval(100 * one.low, 100 * one.high, 1) if one.changed else apa.MISSING


def compared_cells(one: Paired, adjusted: float, *, has_bound: bool) -> tuple[str, ...]:
    """Return the cells of a comparison by item, behind what is compared."""
    return (
        apa.count(one.items),
        apa.count(one.changed),
        apa.number(100 * one.first, 1),
        apa.number(100 * one.second, 1),
        apa.number(100 * one.difference, 1),
        compared_interval(one),
        apa.p_value(one.p),
        apa.p_value(adjusted),
        *((apa.p_value(one.p_equal),) if has_bound else ()),
    )


IN_DOMAIN, DIFFERS = "†", "*"


def transfer_table(name: str, found: Transfer) -> ApaTable:
    """Lay transfer out as Table 8: a row a test task, a column a training, marks for cells in domain and cells that differ."""
    tested = {(one.task, one.model.group): one for one in (*found.cells, *found.averages)}
    rows = []
    for task in (*found.tasks, AVERAGE):
        cells = [apa.number(100 * found.base_accuracy[task], 1)]
        for model in found.models:
            value = 100 * float(found.accuracy[model.group][task])
            one = tested.get((task, model.group))
            mark = IN_DOMAIN if model.task == task else ""
            mark += DIFFERS if one is not None and one.p_adjusted < ALPHA else ""
            cells.append(apa.Written.of(f"{apa.number(value, 1)}{mark}", value))
        rows.append((NAMES[task], *cells))
    note = (
        f"Percentage right; rows: task tested, columns: models by what they were trained on. {IN_DOMAIN} trained on the task tested. "
        f"{DIFFERS} differs from the base over the same items, p < .05 after Benjamini and Hochberg over the cells (averages by "
        "themselves); the table of comparisons has every test. Average: mean of the tasks. Chance is 50. Answers that name no label "
        "are wrong."
    )
    columns = (
        "Task tested",
        f"{found.base}, not trained",
        *(_head(one.group, one.task) for one in found.models),
    )
    title = f"Transfer of training between tasks, {found.base}, laid out as Table 8 of Lee and Lim (2024)"
    return ApaTable(name, title, columns, tuple(rows), note, ORIGIN)


def _head(group: str, task: str | None) -> str:
    return NAMES.get(task, group) if task is not None else group


def cells_table(name: str, found: Transfer, bound: str | None) -> ApaTable:
    """Tell the test behind every cell of the table of transfer."""
    rows: list[tuple[str, ...]] = []
    for model in found.models:
        on = f", trained on {NAMES[model.task].lower()}" if model.task in NAMES else ""
        rows.append(Head([f"{model.group}{on}"]))
        own = [one for one in (*found.cells, *found.averages) if one.model is model]
        rows += [
            (_task(one), *compared_cells(one.compared, one.p_adjusted, has_bound=bound is not None))
            for one in own
        ]
    note = (
        f"Trained minus {found.base} in points, paired by item (n: items; changed: those with another share right). "
        f"{ONE_TEST} "
        "Adjusted after Benjamini "
        f"and Hochberg over all cells, and over all averages. {IN_DOMAIN} trained on the task tested."
    )
    if bound:
        note += f" p equal: two one-sided tests against {bound}, the bound of the plan; small values say that both are alike."
    columns = compared_columns("Task tested", "% base", "% trained", has_bound=bound is not None)
    title = f"Every trained model beside {found.base}, task by task"
    return ApaTable(name, title, columns, tuple(rows), note, ORIGIN, drawn=True)


def _task(one: Cell) -> str:
    name = "All items" if one.task == AVERAGE else NAMES[one.task]
    return f"{name}{IN_DOMAIN}" if one.in_domain else name


def differences_table(name: str, part: Part, found: Sequence[Difference]) -> ApaTable:
    """Tell every difference between models, condition by condition; those from the control below those from the base."""
    rows: list[tuple[str, ...]] = []
    for against_control in (False, True):
        own = [one for one in found if one.against_control is against_control]
        if not own:
            continue
        rest = (
            "trained on the same texts as they are (what scrambles do beyond more training)"
            if against_control
            else "not trained"
        )
        rows.append(Head([f"Compared with {own[0].first}, {rest}"]))
        for one in own:
            rows.append(
                (
                    one.second,
                    one.condition,
                    apa.count(one.items),
                    apa.number(one.before, 1),
                    apa.number(one.after, 1),
                    apa.number(one.difference, 1),
                    apa.interval(one.low, one.high, 1),
                    apa.p_value(one.p),
                    apa.p_value(one.p_adjusted),
                )
            )
    recovered = part.measure == RECOVERY
    unit = "RR" if recovered else "% right"
    note = (
        "RR = recovery rate in %, the share of the edit distance that answers take away. Points of RR; p and interval are of one "
        "t test over items, whose contributions to the two rates are linearised."
        if recovered
        else f"{ONE_TEST} Failures count as wrong."
    )
    note += " Paired by item (n). Adjusted after Benjamini and Hochberg over the table."
    of = f": {part.title}" if part.title else ""
    return ApaTable(
        name,
        f"Trained models beside each other, condition by condition{of}",
        (
            "Model",
            "Condition",
            "n",
            f"{unit}, compared with",
            f"{unit}, model",
            "Difference",
            "95% CI",
            "p",
            "p adjusted",
        ),
        tuple(rows),
        f"{note}",
        Origin(
            columns=(
                "answer",
                "response",
                "correct",
                "response_status",
                "item_id",
                "reader_group",
                *([part.factor] if part.factor else []),
            ),
            rows=f"set of the title; {USED.said()}",
            computed="means by item",
            beside=("items.csv",) if recovered else (),
        ),
    )
