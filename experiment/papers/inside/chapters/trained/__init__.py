"""The chapter on trained models: what they were trained on, how their loss fell, and what training changed, item by item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from analysis import apa
from analysis.names import in_words, plain
from analysis.plan import ALPHA
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter, Draft, Material, ReportedFit
from analysis.report.layout import ChapterLayout
from analysis.tables import Tables
from experiment.papers.h_test.chapter import NAMES, StatedBound
from experiment.papers.h_test.chapter.measures import HTestPrompting, asked, mean_with_ends
from experiment.papers.inside.chapters.layers.layer_figures import (
    TaskRow,
    conditions_figure,
    loss_figure,
    tasks_figure,
)
from experiment.papers.inside.chapters.trained import measures as inside

LAYOUT = ChapterLayout(
    Path(__file__).parent, names=NAMES, most=4, alpha=ALPHA, control=inside.CONTROL, of_task=in_words
)
IN_DOMAIN, DIFFERS = "†", "*"


def write(material: Material) -> Chapter | None:
    """Write what training changed; None where no model of the study was trained."""
    tables = material.tables
    families = inside.families(tables)
    if not families:
        return None
    material.told("trained models")
    study, seed = str(tables.dictionary["study"]), int(tables.dictionary.get("seed") or 0)
    draft, asked_h_test, bound = (
        Draft(_trainings(material, families)),
        asked(tables),
        StatedBound.of(material),
    )
    is_transferred = False
    for number, family in enumerate(families, 1):
        stem = f"_{number}" if len(families) > 1 else ""
        draft.methods.append(LAYOUT.sentences("trainings", **_told_of(family)))
        draft.groups += [family.base, *(model.group for model in family.models)]
        if not family.base_was_asked:
            names = [model.group for model in family.models]
            draft.blocks.append(LAYOUT.sentences("no_base", base=family.base, models=names))
        if asked_h_test is not None:
            transfer = inside.transfer(asked_h_test.trials, family, bound.half, seed)
            if transfer is not None:
                draft.blocks += _transfer(transfer, asked_h_test, stem, bound)
                is_transferred = True
        draft.add(_conditions(inside.parts_of(tables, family), family, stem, study))
    draft.methods.append(LAYOUT.sentences("methods"))
    draft.methods += [LAYOUT.sentences("transfer_methods")] if is_transferred else []
    groups = dict.fromkeys(draft.groups, "model")
    return LAYOUT.chapter("trained-models", draft, groups, groups, draft.methods)


def answers(tables: Tables) -> list[tuple[Markup, Markup]]:
    """Return for each base whether training changed its answers, over all tasks of H-TEST or by condition, and if more in domain."""
    asked_h_test, seed = asked(tables), int(tables.dictionary.get("seed") or 0)
    found: list[tuple[Markup, Markup]] = []

    def answered(
        base: str,
        what: str,
        rows: list[dict[str, Any]],
        own: Sequence[dict[str, Any]] = (),
        *,
        by_condition: bool = False,
    ) -> None:
        differ, own_differ = (
            sorted(
                (row for row in some if row["p_adjusted"] < ALPHA), key=lambda row: -abs(row["difference"])
            )
            for some in (rows, own)
        )
        facts = {"base": base, "what": what, "by_condition": by_condition, "rows": rows, "differ": differ}
        facts |= {"own": own, "own_differ": own_differ}
        found.append((LAYOUT.sentences("answer_question", **facts), LAYOUT.sentences("answer", **facts)))

    for family in inside.families(tables):
        transfer = None if asked_h_test is None else inside.transfer(asked_h_test.trials, family, seed=seed)
        if transfer is not None and transfer.averages:
            rows, own = (
                [
                    {
                        "name": score.model.group,
                        "p_adjusted": score.p_adjusted,
                        **{end: 100 * getattr(score.compared, end) for end in ("difference", "low", "high")},
                    }
                    for score in scores
                ]
                for scores in (transfer.averages, [cell for cell in transfer.cells if cell.in_domain])
            )
            number = len(transfer.tasks)
            over = f" over all items of the {apa.worded(number, 'task')}" if number > 1 else ""
            answered(family.base, f"accuracy{over}", rows, own if number > 1 else ())
            if transfer.diagonal is not None:
                told = ("answer_question_of_domain", "domain")
                question, answer = (LAYOUT.sentences(name, diagonal=transfer.diagonal) for name in told)
                found.append((question, answer))
            continue
        for part in inside.parts_of(tables, family):
            compared = [one for one in inside.differences(part, family) if not one.against_control]
            rows = [{**vars(one), "name": f"{one.second}, {one.condition}"} for one in compared]
            what = "the recovery rate" if part.measure == inside.RECOVERY else "accuracy"
            if rows:
                what += f" ({part.title})" if part.title else ""
                answered(family.base, what, rows, by_condition=True)
    return found


def _trainings(material: Material, families: list[inside.ModelFamily]) -> list[Block]:
    """State what was trained and draw how losses fell."""
    models = [(family, model) for family in families for model in family.models]
    rows = [
        {"family": family, "one": model, "record": model.record, "many": _records(model).get("trained_on")}
        for family, model in models
    ]
    losses = {model.group: inside.loss_of(material.tables, model.training) for _, model in models}
    curves = [
        (group, curve)
        for group, curve in losses.items()
        if curve is not None and curve["training_loss"].notna().any()
    ]
    ends = {
        model.group: [model.record.get(f"{when}validation_loss") for when in ("first_", "")]
        for _, model in models
    }
    return LAYOUT.blocks(
        "models",
        table=LAYOUT.table("trained_models", rows),
        loss=loss_figure("trained_loss", "Loss of each training run by step", curves) if curves else None,
        rising=[group for group, (before, after) in ends.items() if (after or 0) > (before or np.inf)],
    )


def _told_of(family: inside.ModelFamily) -> dict[str, Any]:
    """Return what was trained from one model, and how."""
    recorded = [model for model in family.models if model.settings]
    ways: dict[str, list[inside.Trained]] = {}
    for model in recorded:
        ways.setdefault(repr(_way(model)), []).append(model)
    batches = {way: sorted({batch for one in alike if (batch := _batch(one))}) for way, alike in ways.items()}
    on_texts = [model.settings for model in recorded if model.rule is not None]
    left_out = [_about(model).get("samples_left_out") for model in recorded if model.task is None]
    counts = sorted(
        {int(number) for number in left_out if number is not None} if None not in left_out else ()
    )
    same = {(text["on"], text["texts"], text["seed"]) for text in on_texts}
    is_one_way = len(ways) == 1
    return {
        "base": family.base,
        "number_of": len(family.models),
        "data": list(_data(family)),
        "ways": [
            {
                **_way(alike[0]),
                "batches": batches[way],
                "is_one": len(alike) == 1 or is_one_way,
                "who": "Each"
                if is_one_way and len(alike) > 1
                else apa.listing([model.group for model in alike]),
            }
            for way, alike in ways.items()
        ],
        "same_texts": len(on_texts) > 1 and len(same) == 1,
        "has_tasks": any(model.task for model in recorded),
        "left_out": " to ".join(map(apa.count, dict.fromkeys((counts[0], counts[-1])))) if counts else "",
        "several": len(left_out) > 1,
        "lacking": [model.group for model in family.models if not model.settings],
    }


def _records(trained: inside.Trained) -> Mapping[str, Any]:
    return trained.record.get("records") or {}


def _about(trained: inside.Trained) -> Mapping[str, Any]:
    return _records(trained).get("about") or {}


def _data(family: inside.ModelFamily) -> Iterator[dict[str, Any]]:
    """Yield what each model was trained on, those on tasks of H-TEST together."""
    on_tasks: dict[str, list[str]] = {}
    for model in family.models:
        records = _records(model)
        number = records.get("trained_on") or records.get("number")
        amount = "" if number is None else f"{apa.count(number)} "
        if model.task is not None:
            lines = "released lines" if model.settings.get("on") == "released" else "lines"
            on_tasks.setdefault(f"{amount}{lines} of", []).append(
                f"{in_words(str(model.task))} ({model.group})"
            )
            continue
        about = _about(model)
        texts, words = (about.get(name) for name in ("share_of_samples_drawn", "share_of_words_changed"))
        yield {
            "one": model,
            "many": amount,
            "kind": "records" if "prompt" in str(records.get("kind", "")) else "texts",
            "texts": "in some" if texts is None else f"in {apa.percent(texts, 0)}",
            "words": "30%" if words is None else apa.percent(words, 0),
        }
    for lines, models in on_tasks.items():
        yield {"lines": lines, "models": models}


SHARED = ("method", "learning_rate", "warmup", "decay", "weight_decay", "clip", "asked", "validation", "seed")
"""Settings that the training runs of one study have in common."""


def _way(trained: inside.Trained) -> dict[str, Any]:
    """Return the settings of a model's training, without those that differ between training runs of one study."""
    settings, schedule = trained.settings, trained.record.get("schedule") or {}
    is_ours = not str(settings.get("use", "")).startswith("openai:")
    return {
        "settings": {name: settings.get(name) for name in SHARED},
        "lora": settings.get("lora") if settings.get("method") == "lora" else None,
        "is_ours": is_ours,
        "is_task": trained.task is not None,
        "epochs": int(schedule.get("epochs") or settings.get("epochs") or 0),
        "length": schedule.get("sequence_length") or settings.get("sequence_length"),
    }


def _batch(trained: inside.Trained) -> int | None:
    """Return the tokens of a batch, which follow from the records; None if a provider chose them."""
    if str(trained.settings.get("use", "")).startswith("openai:"):
        return None
    tokens = (trained.record.get("schedule") or {}).get("batch_tokens") or trained.settings.get(
        "batch_tokens"
    )
    return None if tokens is None else int(tokens)


def _transfer(
    transfer: inside.Transfer, h_test: HTestPrompting, stem: str, bound: StatedBound
) -> list[Block]:
    differ = sorted(
        (cell for cell in transfer.cells if cell.p_adjusted < ALPHA),
        key=lambda cell: -abs(cell.compared.difference),
    )
    in_domain, beyond = ([cell for cell in differ if cell.in_domain is is_own] for is_own in (True, False))
    tested = {(score.task, score.model.group): score for score in (*transfer.cells, *transfer.averages)}
    rows = []
    for task in (*transfer.tasks, inside.AVERAGE):
        cells = {}
        for model in transfer.models:
            value = 100 * float(transfer.accuracy[model.group][task])
            score = tested.get((task, model.group))
            mark = IN_DOMAIN if model.task == task else ""
            mark += DIFFERS if score is not None and score.p_adjusted < ALPHA else ""
            cells[model.group] = apa.Written.of(f"{apa.number(value, 1)}{mark}", value)
        rows.append({"task": task, "base": 100 * transfer.base_accuracy[task], "cells": cells})
    heads = {model.group: NAMES.get(model.task or "", model.group) for model in transfer.models}
    return LAYOUT.blocks(
        "transfer",
        table=LAYOUT.table("transfer", rows, f"trained_transfer{stem}", base_name=transfer.base, heads=heads),
        drawing=_tasks_figure(f"trained_tasks{stem}", transfer, h_test),
        tests=_cells_table(f"trained_transfer_cells{stem}", transfer, bound.said),
        found=transfer,
        diagonal=transfer.diagonal,
        differ=len(differ),
        own=sum(cell.in_domain for cell in transfer.cells),
        better=sum(cell.compared.difference > 0 for cell in in_domain),
        told=[beyond, in_domain],
        alike=sum(cell.compared.p_equal < ALPHA for cell in transfer.cells),
        printed=inside.printed_diagonal(),
        **{"bound": bound.said, "why": bound.why},
    )


def _cells_table(name: str, transfer: inside.Transfer, bound: str | None) -> ApaTable:
    """Lay out the test behind every cell of the table of transfer."""
    rows = []
    for model in transfer.models:
        on = f", trained on {NAMES[model.task].lower()}" if model.task in NAMES else ""
        for score in (*transfer.cells, *transfer.averages):
            if score.model is model:
                task = "All items" if score.task == inside.AVERAGE else NAMES[score.task]
                names = {"model": f"{model.group}{on}", "task": task + IN_DOMAIN * score.in_domain}
                rows.append({**names, **vars(score.compared), "p_adjusted": score.p_adjusted})
    return LAYOUT.table("cells", rows, name, base=transfer.base, bound=bound)


def _tasks_figure(name: str, transfer: inside.Transfer, h_test: HTestPrompting) -> Block:
    rows_of = {str(group): group_rows for group, group_rows in h_test.trials.groupby("reader_group")}
    rows = []
    for task in transfer.tasks:
        task_rows = {group: rows[rows["task"] == task] for group, rows in rows_of.items()}
        values = [
            (model.task, mean_with_ends(task_rows[model.group]))
            for model in transfer.models
            if len(task_rows[model.group])
        ]
        on_this_task = [value for trained_on, value in values if trained_on == task]
        others = tuple(value[0] for trained_on, value in values if trained_on != task)
        trained = on_this_task[0] if on_this_task else None
        rows.append(TaskRow(NAMES[task], mean_with_ends(task_rows[transfer.base]), trained, others))
    title, _ = LAYOUT.caption("tasks", base=transfer.base)
    return tasks_figure(name, title, rows, transfer.base)


def _conditions(
    parts: list[inside.TrainedMaterials], family: inside.ModelFamily, stem: str, study: str
) -> Draft:
    """Compare models condition by condition, materials by materials, and draw all of them together."""
    written: list[dict[str, Any]] = []
    draft = Draft()
    panels = []
    for part in parts:
        compared = inside.differences(part, family)
        if not compared:
            continue
        label = "Recovery rate" if part.measure == inside.RECOVERY else "Correct answers"
        panels.append((part.title, label, inside.cells_of(part, study), tuple(part.levels.values())))
        model = inside.modelled(part, family)
        from_base = [difference for difference in compared if not difference.against_control]
        beyond = [difference for difference in compared if difference.against_control]
        counted = [_counted(from_base, "from the base")] if from_base else []
        counted += [_counted(beyond, f"from {beyond[0].first}, the control")] if beyond else []
        table = LAYOUT.table(
            "differences",
            map(vars, [*from_base, *beyond]),
            f"trained_conditions{stem}_{plain(part.name)}",
            unit="RR" if part.measure == inside.RECOVERY else "% correct",
            title=part.title,
            factor=part.factor,
        )
        no_model = model if isinstance(model, str) else ""
        written.append(
            {"table": table, "part": part, "counted": counted, "no_model": no_model, "model": model}
        )
        if isinstance(model, inside.Modelled):
            of = f" ({part.title})" if part.title else ""
            draft.fits.append(ReportedFit(f"Training by condition{of}", model.fit))
    if not panels:
        return draft
    groups = [family.base] * family.base_was_asked + [model.group for model in family.models]
    title, _ = LAYOUT.caption("conditions", base=family.base)
    drawing = conditions_figure(f"trained_conditions{stem}", title, panels, groups)
    draft.blocks += LAYOUT.blocks("conditions", drawing=drawing, parts=written, RECOVERY=inside.RECOVERY)
    return draft


def _counted(compared: list[inside.ModelDifference], what: str) -> dict[str, Any]:
    """Return how many differences there are, and those that are significant, the largest first."""
    differ = sorted(
        (difference for difference in compared if difference.p_adjusted < ALPHA),
        key=lambda difference: -abs(difference.difference),
    )
    return {"what": what, "number_of": len(compared), "differ": differ}
