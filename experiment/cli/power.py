"""``wrods power``: simulates the planned analyses of a study over possible sample sizes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, WorkProgress, option, print_json
from stimuli.errors import UserError

if TYPE_CHECKING:
    from analysis.plan import Plan
    from analysis.power.assumptions import Assumptions, EffectStatement
    from analysis.power.curves import PowerReport
    from analysis.tables import Tables
    from experiment.study import Study
    from stimuli.item import Item

_EXAMPLE = """\b
Examples:
  wrods power my-study --planned comprehension --participants 20,40,60 --items 40,80 \\
    --mean human:intact=95 --mean human:swapped=88
  wrods power my-study --effects pilot-study --participants 20,40,60
"""


class WholeNumbers(click.ParamType[tuple[int, ...]]):
    """Whole numbers separated by commas."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """Return numbers such as ``20,40,60``."""
        try:
            return tuple(int(part) for part in str(value).split(","))
        except ValueError:
            self.fail(f"{value!r} is no list of whole numbers, such as 20,40,60", param, ctx)


@dataclass(frozen=True)
class PlannedDesign:
    """A study's plans and sample sizes; None if the study leaves them open."""

    planned: Mapping[str, Any]
    factors: Mapping[str, list[str]]
    kinds: Mapping[str, str]
    folder: Path
    participants: int | None = None
    items: int | None = None
    prompts: int = 1
    replicates: int = 1
    layouts: Mapping[str, str] = field(default_factory=dict)
    own_measures: Mapping[str, Any] = field(default_factory=dict)


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=PATH)
@option("--planned NAME", "Only this planned analysis. Repeatable.", multiple=True)
@option("--participants N,N,…", "Default: half, all and twice those wanted.", type=WholeNumbers())
@option("--items N,N,…", "Items a participant sees. Default: those built.", type=WholeNumbers())
@option("--prompts N,N,…", "Prompt variants of each model. Default: the study's.", type=WholeNumbers())
@option("--replicates N,N,…", "Answers of a model to each item. Default: the study's.", type=WholeNumbers())
@option(
    "--effects",
    "Where effects come from: a pilot (a study with answers, or an exported folder), what `wrods fit --json` printed "
    "(.json), a table of the literature (.csv: quantity, of, condition, value, unit, source), or a file by hand (.yaml).",
    type=PATH,
)
@option(
    "--mean READER:CONDITION=VALUE",
    "Percent correct, ms, tokens, bits … of a condition. Repeatable; overrides files.",
    name="means",
    multiple=True,
)
@option(
    "--effect READER:CONDITION=VALUE",
    "Difference from the first condition: points, ms, tokens, or a unit behind the number (5percent, 0.4log_odds).",
    name="differences",
    multiple=True,
)
@option("--sd COMPONENT=VALUE", "participant, participant_slope, item, residual …", multiple=True)
@option("--null", "Set all differences to zero: power is then the false-alarm rate.", name="no_effects")
@option("--layout NAME", "latin_square, crossed, between_items or between_participants.")
@click.option(
    "--studies",
    "--fits",
    "studies",
    default=1000,
    show_default=True,
    metavar="N",
    help="Simulated studies of each size.",
)
@option("--wanted SHARE", "Power to find the size for.", default=0.8, show_default=True)
@option("--equivalence BOUND", "Bound of equivalence, such as '5 points'. Default: the plan's.")
@option("--seed N", "Of all draws.", default=1, show_default=True)
@option("--processes N", "At work at once. Default: one for each core.", type=int)
@option("--out", "Folder of the results. Default: power/ in the study.", type=PATH)
@option("--json", "Print everything as JSON.", name="as_json")
def power(study: Path, **asked: Any) -> None:
    """Estimate how many participants and items a study needs.

    Simulates studies of every size from assumed effects, analyses each as `wrods report` does, and counts how often each
    contrast, human–model difference and equivalence test detects the effect. STUDY is a study's folder, or a folder that
    `wrods report` exported. Effects come from --effects, in which --mean, --effect and --sd
    override single values, or from these alone (docs/power.md).

    Tables (CSV, JSON) and the power curves (SVG, PNG) are written to the folder.
    """
    from analysis.power.assumptions import without_effects
    from analysis.power.curves import check_wanted, tell, write
    from analysis.power.simulation import (
        SimulationQuestion,
        grid,
        layout_named,
        layout_of,
        planned_of,
        simulate,
        sizes_of,
    )
    from analysis.readers import PARTICIPANT_KINDS

    check_wanted(asked["wanted"])
    design = _read(study)
    plans, remarks = planned_of(
        design.planned,
        design.factors,
        only=asked["planned"],
        equivalence=asked["equivalence"],
        own_measures=design.own_measures,
    )
    given = _statements(asked, plans)
    readers = {plan.name: kinds_of_plan(plan, design) for plan in plans}
    with_people = any(kind in PARTICIPANT_KINDS for kinds in readers.values() for kind in kinds.values())
    sizes = grid(
        _sizes(asked, "participants", design, _around(design.participants)) if with_people else (2,),
        _sizes(asked, "items", design, (design.items,) if design.items else ()),
        _sizes(asked, "prompts", design, (design.prompts,)),
        _sizes(asked, "replicates", design, (design.replicates,)),
    )
    if any(size.replicates > 1 for size in sizes):
        remarks.append(
            "Replicates are sampled answers: a model at temperature 0 repeats itself, and further ones add nothing."
        )
    reports: list[PowerReport] = []
    folder = asked["out"] or design.folder / "power"
    for plan in plans:
        truth = _assumed(plan, design, asked, given)
        truth = without_effects(truth, plan) if asked["no_effects"] else truth
        layout = layout_named(asked["layout"] or layout_of(plan, design.layouts))
        question = SimulationQuestion(plan, truth, layout, asked["seed"])
        with WorkProgress("studies") as progress:
            outcomes = simulate(
                question,
                sizes_of(plan, readers[plan.name], sizes),
                asked["studies"],
                processes=asked["processes"] or os.cpu_count() or 1,
                progress=partial(progress.draw, plan.name),
            )
        reports.append(
            tell(question, outcomes, asked["wanted"], [*remarks, *plan.remarks, _laid_out(layout)])
        )
        files = write(reports[-1], folder)
        if not asked["as_json"]:
            click.echo(reports[-1].text())
            click.echo("\nWritten: " + ", ".join(str(file) for file in files) + "\n")
    if asked["as_json"]:
        print_json([report.to_json() for report in reports])


def _laid_out(layout: str) -> str:
    if "+" in layout:
        return f"Layout: the first factor is laid out as {layout.replace('+', ', the second as ')}."
    return {
        "latin_square": "Layout: a participant sees each item once, in a condition that a Latin square gives.",
        "crossed": "Layout: a participant sees each item in every condition.",
        "between_items": "Layout: each item has one condition.",
        "between_participants": "Layout: each participant has one condition.",
    }[layout] + " A model sees every item in every condition that it has."


def _read(path: Path) -> PlannedDesign:
    """Return plans and sizes of a study's folder, or of an analysis export."""
    from experiment.study.study import FILE

    if (path / FILE).is_file() or path.name == FILE or not (path / "dictionary.json").is_file():
        from experiment.checking import load_study
        from experiment.study.study import ITEMS

        study = load_study(path)
        return planned_of_study(study, study.items if (study.folder / ITEMS).is_file() else ())
    from analysis import load
    from analysis.readers import kinds_of

    tables = load(path)
    dictionary = tables.dictionary
    items = tables.items
    roles = items[items["role"] == "test"] if "role" in items.columns else items
    count = int(roles["item_id"].nunique()) if "item_id" in roles.columns else 0
    readers = {name: str(entry["kind"]) for name, entry in dictionary["readers"].items() if "kind" in entry}
    wanted = dictionary.get("participants_wanted")
    return PlannedDesign(
        dictionary["planned"],
        tables.factors,
        {**kinds_of(tables.trials), **readers},
        path,
        int(wanted) if wanted else None,
        count or None,
        own_measures=dictionary.get("own_measures") or {},
    )


def planned_of_study(study: Study, items: Sequence[Item]) -> PlannedDesign:
    """Return a study's plans and sizes; the number of items is open without items."""
    from experiment.study.factors import kind_of, operation_families
    from experiment.trials.own import measures_in_dictionary

    layouts = dict.fromkeys(study.between, "between_participants")
    for name, levels in study.factors_of_items.items():
        is_own_factor = all(does is None for does in levels.values())
        if is_own_factor or kind_of(levels, operation_families()) == "rows":
            layouts[name] = "between_items"
        elif study.get("design", "lists") == "one":
            layouts[name] = "crossed"
    count = len({(item.set_name, item.item_id) for item in items if item.role == "test"}) or None
    kinds = {
        name: "baseline" if str(model.get("use", "")).startswith("baseline:") else "model"
        for name, model in study.models.items()
    }
    wanted = study.get("participants", "wanted")
    return PlannedDesign(
        study.get("analysis", "planned", default={}),
        {name: list(levels) for name, levels in study.factors.items()},
        kinds,
        study.folder,
        int(wanted) if wanted else None,
        count,
        int(study.get("models", "prompt_variants", default=1)),
        int(study.get("models", "replicates", default=1)),
        layouts,
        measures_in_dictionary(study.own_types),
    )


def _around(wanted: int | None) -> tuple[int, ...]:
    return (max(2, wanted // 2), wanted, 2 * wanted) if wanted else ()


def _sizes(
    options: Mapping[str, Any], name: str, design: PlannedDesign, default: tuple[int, ...]
) -> tuple[int, ...]:
    given: tuple[int, ...] | None = options[name]
    if given is None and not default:
        why = "has no built items" if name == "items" else f"does not say how many {name} are wanted"
        raise UserError(f"{design.folder} {why}", mend=f"Give them, such as --{name} 20,40,60.")
    return default if given is None else given


def _statements(asked: Mapping[str, Any], plans: list[Plan]) -> list[EffectStatement]:
    """Return the specified effects and variances, those of the file before options."""
    from analysis.power.assumptions import from_mapping, from_option, from_table

    file: Path | None = asked["effects"]
    options = [("mean", "means"), ("effect", "differences"), ("sd", "sd")]
    given: list[EffectStatement] = []
    if file is not None and not file.is_dir():
        if not file.is_file():
            raise UserError(
                f"{file} is neither a file nor a folder", mend=f"Looked in {file.resolve().parent}."
            )
        if file.suffix in (".yaml", ".yml"):
            from experiment.study.yaml_source import read_yaml

            begin = "Give means by reader and condition: `means: {human: {intact: 95}}`."
            given += from_mapping(read_yaml(file, begin=begin).data, str(file))
        elif file.suffix == ".csv":
            given += from_table(file)
        elif file.suffix != ".json":
            raise UserError(
                f"--effects {file} is none of the files that effects come from",
                mend="Name a folder, or a file that ends in .json, .csv or .yaml.",
            )
    given += [from_option(quantity, text) for quantity, name in options for text in asked[name]]
    if file is None and not given:
        raise UserError(
            "nothing says how large the effects are",
            mend="Give --effects with a pilot's folder or a file, or --mean READER:CONDITION=VALUE.",
        )
    if given and len(plans) > 1:
        is_told_by_key = [plan.key for plan in plans].count(plans[0].key) == 1 and bool(plans[0].key)
        quoted = f'"{plans[0].name}"' if " " in plans[0].name else plans[0].name
        raise UserError(
            f"values belong to one planned analysis; this study plans {', '.join(plan.name for plan in plans)}",
            mend=f"Say which: --planned {plans[0].key if is_told_by_key else quoted}.",
        )
    return given


def _tables(pilot: Path) -> Tables:
    """Return a pilot's tables: exported ones, or those of a study's current store."""
    from analysis import load
    from experiment.study.study import FILE

    if not (pilot / FILE).is_file() or (pilot / "trials.parquet").is_file():
        return load(pilot)
    from experiment.cli.study_store import opened_study
    from experiment.exporting.export import hand_over

    with opened_study(pilot) as opened, TemporaryDirectory() as folder:
        return load(hand_over(opened.study, opened.store, Path(folder)))


def kinds_of_plan(plan: Plan, design: PlannedDesign) -> dict[str, str]:
    """Return the reader kind of each group of a plan."""
    return {group: "human" if group == "human" else design.kinds.get(group, "model") for group in plan.groups}


def _assumed(
    plan: Plan, design: PlannedDesign, options: Mapping[str, Any], given: list[EffectStatement]
) -> Assumptions:
    from analysis.power.assumptions import assumed
    from analysis.power.pilots import from_fit_file, from_pilot

    kinds = kinds_of_plan(plan, design)
    begun, file = None, options["effects"]
    if file is not None and file.is_dir():
        begun = from_pilot(plan, _tables(file), kinds, str(file))
    elif file is not None and file.suffix == ".json":
        begun = from_fit_file(plan, file, kinds)
    sources_of_effects = list(dict.fromkeys(statement.source for statement in given if statement.source))
    source = "; ".join(sources_of_effects) or "by hand"
    if file is not None and begun is None:
        source = f"{file}: {source}"
    return assumed(plan, kinds, given, source, begun)
