"""``wrods check`` and ``wrods build``: validates and summarizes a study; builds and audits its items."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, option, print_error, print_json
from experiment.trials import answering_step, choice_settings
from stimuli.errors import UserError

if TYPE_CHECKING:
    from analysis.plan import Measure, Plan
    from analysis.power.expected import Expected
    from experiment.building import Built
    from experiment.study import Study
    from stimuli.item import Item
    from stimuli.recipes.conditions import ConditionSummary


MOST_TOLD = 12
IN_WORDS = ("condition", "words that took fewer", "left intact")

ACCURACIES = (75.0, 95.0)
"""Percent correct for which the sensitivity of accuracy is computed: mid-scale and near ceiling."""
SUGGESTED = {"points": "10 points", "ratio": "10%"}
REASONS = {"points": "one answer in ten", "ratio": "a tenth of the time or length"}


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
def build(study: Path) -> None:
    """Build and audit a study's items.

    Writes items.jsonl, its sidecar (seed, versions, hashes of the sources and of the audit) and the folder audit/
    (a page, JSON, figures): covariates by condition, duplicates, changed forms that are words, leaks, and whether
    anything other than the rule predicts the answer. The same study gives the same bytes on every machine.

    Example: wrods build my-study
    """
    from experiment.building import build_study
    from experiment.checking import load_study
    from experiment.trust import are_trusted, files_of
    from stimuli.recipes.conditions import describe_conditions

    loaded = load_study(study)
    built = build_study(loaded)
    for line in built.made.remarks:
        click.echo(line)
    tell_skipped(built.made.skipped)
    roles = Counter(item.role for item in built.items)
    parts = ", ".join(f"{count} {role}" for role, count in roles.items())
    click.echo(f"Built {len(built.items)} lines ({parts}) into {built.file}")
    _tell_conditions(describe_conditions(built.items), loaded)
    _tell_audit(built)
    click.echo(f"SHA-256 {built.sha256}")
    named = shlex.quote(str(study))
    first = "" if are_trusted(files_of(loaded).values()) else f"wrods trust {named}, then "
    click.echo(f"Next: {first}wrods preview {named}, wrods serve {named} or wrods run {named}")


def tell_skipped(skipped: list[str]) -> None:
    """Print the first of the skipped records, and their number."""
    if not skipped:
        return
    click.secho(f"Left out, because they could not be used: {len(skipped)}", fg="yellow")
    for line in skipped[:MOST_TOLD]:
        click.echo(f"  {line}")
    if len(skipped) > MOST_TOLD:
        click.echo(f"  and {len(skipped) - MOST_TOLD} more; items.meta.json lists them all after a build")


def _tell_conditions(conditions: list[ConditionSummary], study: Study) -> None:
    """Print a line for each condition: number of items, what changed in them, and what could not for want of a nonword."""
    from experiment.building.material_context import item_design
    from stimuli.lexicon import words_source
    from stimuli.recipes.conditions import doses_that_do_not_rise

    several = len({condition.set_name for condition in conditions}) > 1
    changed = any(condition.changed_words or condition.moved_sentences for condition in conditions)
    fewer = any(condition.fewer for condition in conditions)
    heads = [
        "condition",
        "items",
        *(["changed words", "of all", "edits", "displaced", "by"] if changed else []),
    ]
    heads += [*(["words that took fewer"] if fewer else []), "left intact"]
    rows = []
    for condition in conditions:
        name = ", ".join(condition.condition.values()) or "all"
        if several and name != condition.set_name:
            name = f"{condition.set_name}: {name}"
        numbers = [
            f"{condition.changed_words:.1f}",
            f"{condition.share_changed:.0%}",
            f"{condition.edits:.1f}",
            _displaced(condition),
            f"{condition.displacement:.2f}" if f"{condition.displaced:.1f}" != "0.0" else "–",
        ]
        left = ", ".join(f"{n} {reason}" for reason, n in condition.left_intact.items())
        short = ", ".join(
            f"{words} took {number} of {condition.asked}" for number, words in condition.fewer.items()
        )
        rows.append(
            [name, str(condition.items), *(numbers if changed else []), *([short] if fewer else []), left]
        )
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    for row in [heads, *rows]:
        cells = [
            cell.ljust(width) if heads[place] in IN_WORDS else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  " + "  ".join(cells).rstrip())
    if changed:
        click.echo(
            "  (means: changed words and edit distance an item; letters displaced a changed word; places that each moved by"
            + (
                "; where words or sentences move, those displaced of a clause, sentence or text)"
                if any(condition.unit != "letter" for condition in conditions)
                else ")"
            )
        )
    leaving: dict[str, list[str]] = {}
    for condition in conditions:
        shares = [(f"{share:.0%}", n) for n, share in condition.only_words.items() if share >= 0.005]
        left = ", ".join(f"{share} of the words of {letters} letters" for share, letters in shares)
        leaving.setdefault(left, []).append(", ".join(condition.condition.values()) or condition.set_name)
    for left, names in leaving.items():
        if left:
            click.echo(f"  Left intact, because every other form is a word: {left} ({', '.join(names)}).")
    changes_letters = any(condition.changed_words and condition.unit == "letter" for condition in conditions)
    source = words_source(study.language, item_design(study).settings.strictness)
    if changes_letters and source and "items" not in study.published:
        click.echo(f"  Scrambles avoid the words of {source}.")
    for note in doses_that_do_not_rise(conditions, study.crossing.factor):
        click.secho(f"  {note}", fg="yellow")


def _displaced(summary: ConditionSummary) -> str:
    """Return how many letters moved, with the unit for words and sentences."""
    number = f"{summary.displaced:.1f}"
    units = "/".join(f"{unit}s" for unit in summary.unit.split(", "))
    return number if summary.unit == "letter" else f"{number} {units}"


def _tell_audit(built: Built) -> None:
    problems, remarks = built.audit.problems(), built.audit.remarks()
    if not problems and not remarks:
        click.secho(f"Audit: nothing found. {built.audit_page}", fg="green")
        return
    click.secho(
        f"Audit: {len(problems)} to fix, {len(remarks)} to review; see {built.audit_page}",
        fg="red" if built.audit.grave else "yellow",
    )
    for line in [*problems, *remarks][:MOST_TOLD]:
        click.echo(f"  {line}")


@dataclass(frozen=True)
class SensitivityReport:
    """A paragraph for each planned analysis, and its numbers for ``--json``."""

    paragraphs: tuple[str, ...]
    numbers: tuple[dict[str, Any], ...]


def sensitivity_of(study: Study, items: Sequence[Item]) -> SensitivityReport:
    """Return what the planned analyses of a study can detect, assuming typical variances of participants and items.

    Empty if the study plans no analysis, or sets no number of participants.
    """
    from analysis.power.simulation import planned_of
    from analysis.readers import PARTICIPANT_KINDS
    from experiment.cli.power import kinds_of_plan, planned_of_study

    design = planned_of_study(study, items)
    if not design.planned or not design.items:
        return SensitivityReport((), ())
    try:
        plans, _ = planned_of(design.planned, design.factors, own_measures=design.own_measures)
    except UserError:
        return SensitivityReport((), ())
    paragraphs, numbers = [], []
    for plan in plans:
        kinds = kinds_of_plan(plan, design)
        with_people = any(kind in PARTICIPANT_KINDS for kind in kinds.values())
        if plan.measure.scale not in SUGGESTED or (with_people and not design.participants):
            continue
        tests = _tests(plan, plans)
        values = _numbers(plan, kinds, replace(design, items=_items_within(plan, study, items)), tests)
        if values is not None:
            numbers.append(values)
            paragraphs.append(_told(plan, values))
    return SensitivityReport(tuple(paragraphs), tuple(numbers))


def _items_within(plan: Plan, study: Study, items: Sequence[Item]) -> int:
    """Return the number of test items with a trial that takes a plan's measure, at the levels to which it is restricted."""
    from experiment.shown_steps import items_measured

    return len(
        {
            (item.set_name, item.item_id)
            for item, levels in items_measured(study, items, plan.measure, plan.trials)
            if dict(plan.within).items() <= levels.items()
        }
    )


def _tests(plan: Plan, plans: Sequence[Plan]) -> tuple[int, int]:
    """Return the numbers of differences and of equivalences that are adjusted together with those of a plan."""
    from analysis.contrasts import compared
    from analysis.power.simulation import is_joined

    family = [other for other in plans if other is plan or is_joined(plan, other)]
    return (
        sum(len(other.contrasts) * len(compared(other.groups)) for other in family),
        max(1, sum(len(other.contrasts) * (len(other.groups) - 1) for other in family)),
    )


def _numbers(plan: Plan, kinds: dict[str, str], design: Any, tests: tuple[int, int]) -> dict[str, Any] | None:
    from analysis.plan import read_bound
    from analysis.power.assumptions import EffectStatement, assumed
    from analysis.power.expected import expected_precision, items_needed
    from analysis.power.simulation import Sizes, layout_of

    layout = layout_of(plan, design.layouts)
    sizes = Sizes(design.participants or 0, design.items, design.prompts, design.replicates)
    bound = plan.equivalence or read_bound(SUGGESTED[plan.measure.scale], [plan.measure])
    half_width = bound.half_width
    several = len(plan.groups) > 1
    assumptions = []
    for mean in ACCURACIES if plan.measure.scale == "points" else (1000.0,):
        statements = [
            EffectStatement("mean", group, level, mean) for group in plan.groups for level in plan.levels
        ]
        try:
            truth = assumed(plan, kinds, statements, "usual spreads")
            expected = expected_precision(plan, truth, sizes, layout, tests[0])
        except UserError:
            return None
        least = _of_readers(expected)
        data: dict[str, Any] = {
            "mean": mean if plan.measure.scale == "points" else None,
            "contrast": {readers: contrast.difference.written for readers, contrast in least.items()},
        } | {
            name: {
                readers: _shown(getattr(contrast, name), plan.measure, len(contrast.groups))
                for readers, contrast in least.items()
            }
            for name in ("detectable", "half_width")
        }
        if several:
            widest = max(
                (contrast for contrast in expected if len(contrast.groups) == 2),
                key=lambda contrast: contrast.se,
            )
            data["equivalence"] = {
                "probability": round(widest.equivalence(half_width, tests[1]), 3),
                "reachable_bound": _shown(widest.reachable_bound(tests[1]), plan.measure, 1),
                "items_needed": items_needed(plan, truth, sizes, layout, half_width, tests),
            }
        assumptions.append(data)
    return {
        "plan": plan.name,
        "measure": plan.measure.name,
        "participants": sizes.participants or None,
        "items": sizes.items,
        "tests": tests[0],
        "unit": "points" if plan.measure.scale == "points" else "percent",
        "equivalence_bound": plan.equivalence.said if plan.equivalence else None,
        "suggested_bound": SUGGESTED[plan.measure.scale] if several and plan.equivalence is None else None,
        "assumed": assumptions,
    }


def _of_readers(expected: Sequence[Expected]) -> dict[str, Expected]:
    """Return the least precise contrast of each reader, and of each pair of compared readers."""
    widest: dict[str, Expected] = {}
    for contrast in expected:
        readers = " − ".join(contrast.groups)
        if readers not in widest or contrast.se > widest[readers].se:
            widest[readers] = contrast
    return widest


def _shown(value: float, measure: Measure, readers: int) -> float | None:
    """Return a difference in points, or a log ratio in percent; None if no difference of one or two readers can be as large."""
    from math import expm1

    if measure.scale != "points":
        return round(100 * expm1(value), 1)
    return round(value, 1) if value <= 100 * readers else None


def _told(plan: Plan, data: dict[str, Any]) -> str:
    unit = " points" if data["unit"] == "points" else "%"
    people = f"{data['participants']} participants, " if data["participants"] else ""
    first, *others = data["assumed"]
    accuracy_note = f" at {first['mean']:g}% correct" if first["mean"] is not None else ""
    together = f", {data['tests']} tests adjusted together" if data["tests"] > 1 else ""
    listed = []
    for readers, value in first["detectable"].items():
        elsewhere = ", ".join(
            f"{_number(other['detectable'][readers])} at {other['mean']:g}%" for other in others
        )
        of_contrast = f", for {first['contrast'][readers]}" if len(plan.contrasts) > 1 else ""
        listed.append(
            f"{readers} {_number(value, unit)}" + (f" ({elsewhere})" if elsewhere else "") + of_contrast
        )
    lines = [
        f"Sensitivity of {data['plan']} ({people}{data['items']} items{together}; usual variation between participants and items): "
        f"the smallest difference that 80% of such studies find{accuracy_note}: {'; '.join(listed)}."
    ]
    if len(plan.contrasts) > 1:
        lines[0] += " The other contrasts of the plan need no larger ones."
    if any(value is None for assumption in data["assumed"] for value in assumption["detectable"].values()):
        lines[0] += " None means that no possible difference is large enough."
    if "equivalence" in first:
        lines += _equivalence_told(plan, data, unit)
    return "\n".join(lines)


def _number(value: float | None, unit: str = "") -> str:
    return f"{value:g}{unit}" if value is not None else "none"


def _equivalence_told(plan: Plan, data: dict[str, Any], unit: str) -> list[str]:
    first, *others = data["assumed"]
    planned, suggested = data["equivalence_bound"], data["suggested_bound"]
    lines = []
    if planned is None:
        lines.append(
            "No equivalence bound is planned, so the report cannot conclude that readers are similar, however small the difference. "
            f"Which difference would be too small to matter? Add it to the plan before data collection, for example `equivalence: "
            f"{suggested}` ({REASONS[plan.measure.scale]})."
        )
    chance = f"{100 * first['equivalence']['probability']:.0f}%"
    chance += "".join(
        f" ({100 * other['equivalence']['probability']:.0f}% at {other['mean']:g}%)" for other in others
    )
    needed = first["equivalence"]["items_needed"]
    line = f"If there is no difference, {chance} of such studies conclude equivalence within {planned or suggested}"
    reachable = first["equivalence"]["reachable_bound"]
    line += "." if reachable is None else f"; 80% would within {reachable:g}{unit}."
    if first["equivalence"]["probability"] < 0.8:
        line += (
            f" For 80% within {planned or suggested}, plan about {needed} items."
            if needed
            else f" No number of items up to {20 * data['items']:,} is enough with these participants."
        )
    return [*lines, line]


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
@option(
    "--explain",
    "Also show the planned analyses with all defaults, the first trial as sent to a model, and the results of probes.",
)
@option(
    "--probe",
    "Query each server for its capabilities with a few tiny requests, and store the result with the study.",
)
@option("--json", "Print the numbers as JSON.", name="as_json")
def check(study: Path, explain: bool, probe: bool, as_json: bool) -> None:
    """Validate a study and summarize it in plain English.

    Reads study.yaml, its texts and materials; builds the items in memory only, writes nothing, and reports if the built items
    have another design. Minutes and tokens are rough estimates. What the study asks of each model is compared with what is
    known about it: about a server from its last probe, in a run or with --probe (which needs its key, and costs a few hundred
    tokens and the reasoning for one answer); about a local model from its checkpoint.

    For each planned analysis of accuracy or times, check gives the smallest difference that the planned sample can detect, and
    asks for an equivalence bound if readers are compared without one.

    Example: wrods check my-study
    """
    from experiment.building import check_language, check_tables, make_items
    from experiment.checking import load_study
    from experiment.checking.settings import placeholders
    from experiment.cli.registering import check_factor_names, check_own_formulas
    from experiment.cli.terminal import wrapped
    from experiment.configuration import config_file, read_config
    from experiment.exporting.dictionary import TRUTH_FILE
    from experiment.integrity.build_provenance import changed_since_build
    from experiment.people.recruitment.codes import missing_lines, recruitment_for
    from experiment.simulated import read_truth
    from experiment.study.screens import check_consent_first
    from experiment.study.study import ITEMS
    from experiment.study.yaml_source import Faults, factor_settings
    from experiment.summaries.plain_english import tell
    from stimuli.recipes.conditions import describe_conditions

    faults = Faults()
    loaded = load_study(study, faults)
    faults.check(check_language, loaded, faults, reads=[("language",), ("procedure",)])
    faults.check(check_consent_first, loaded, reads=[("procedure",)])
    faults.check(check_factor_names, loaded, reads=factor_settings())
    faults.check(
        check_own_formulas, loaded, reads=[("analysis", "planned"), *factor_settings(), ("models", "who")]
    )
    if (truth := loaded.folder / TRUTH_FILE).is_file():
        reads = [*factor_settings(), ("materials", "regions"), ("procedure",)]
        faults.check(read_truth, truth, loaded, reads=reads)
    if faults.found:
        check_tables(loaded, faults)
    faults.report()
    made = make_items(loaded)
    changed = changed_since_build(loaded) if (loaded.folder / ITEMS).exists() else []
    unprobed = _probe_all(loaded) if probe else {}
    probes, speeds = _known(loaded)
    summary = tell(loaded, made.items, probes, speeds)
    sensitivity = sensitivity_of(loaded, made.items)
    to_train, training_words = {}, []
    if loaded.get("tuning"):
        from experiment.papers.inside.tuning import trainings
        from experiment.papers.inside.tuning.estimates import tell_trainings, told_together

        to_train = tell_trainings(loaded, trainings(loaded).values())
        training_words = told_together(to_train)
    if as_json:
        trained = {name: training.numbers for name, training in to_train.items()}
        faults_of_probes = {name: str(fault) for name, fault in unprobed.items()}
        print_json({
            **summary.numbers,
            **({"trainings": trained} if trained else {}),
            **({"not_probed": faults_of_probes} if probe else {}),
            "sensitivity": sensitivity.numbers,
            "changed_since_build": changed,
            "placeholders": placeholders(loaded),
        })  # fmt: skip
        sys.exit(1 if unprobed else 0)
    for line in made.remarks:
        click.echo(line)
    tell_skipped(made.skipped)
    if made.remarks or made.skipped:
        click.echo()
    probing = probing_lines(loaded, summary.numbers["models"])
    told_last = (*sensitivity.paragraphs, *training_words)
    click.echo("\n\n".join(map(wrapped, (*summary.paragraphs, *probing, *told_last))))
    conditions = describe_conditions(made.items)
    if any(condition.changed_words or condition.moved_sentences for condition in conditions):
        click.echo("\nDoses:")
        _tell_conditions(conditions, loaded)
    if explain:
        _explain_plan(loaded)
        _explain(loaded, made.items)
        _explain_probes(loaded, probes)
    usual = loaded.get("models", "determinism")
    local = {name: model for name, model in loaded.models.items() if model["use"].startswith("hf:")}
    if former := [name for name, model in local.items() if model.get("determinism", usual) == "stable"]:
        click.echo(
            f"\ndeterminism: stable no longer exists; {', '.join(former)} will be computed with exact."
        )
    for line in missing_lines(recruitment_for(loaded, read_config()), config_file()):
        click.echo(f"\n{line}" if line.startswith(loaded.id) else line)
    click.echo(
        click.style("\nThe study is valid.", fg="green") + f" Next: wrods build {shlex.quote(str(study))}"
    )
    missing = placeholders(loaded)
    if missing:
        click.secho(
            "Texts to complete before people take part (until then only `wrods serve --pilot`):", fg="yellow"
        )
        click.echo("\n".join(f"  {line}" for line in missing))
    if changed:
        click.secho(f"The items were built from another design: {'; '.join(changed)}", fg="yellow")
        click.echo("serve, run and simulate refuse them until they are built again.")
    for name, fault in unprobed.items():
        print_error(f"{name} was not probed: {fault}")
    if unprobed:
        sys.exit(1)


def _explain_plan(study: Study) -> None:
    """Print each planned analysis in words, with every default."""
    from analysis.plan import plans_in_words
    from experiment.study.study import study_plan

    for first, *more in plans_in_words(study_plan(study)):
        click.echo(f"\n--- planned analysis {first} ---")
        for line in more:
            click.echo(click.wrap_text(line, 96, "  ", "    "))


def _explain(study: Study, items: Any) -> None:
    """Print the first trial as a model receives it."""
    from experiment.lists import list_ids
    from experiment.models.prompts.prompter import render
    from experiment.procedure import plan_session, trials_of

    plan = plan_session(study, items, list_id=list_ids(study, items)[0])
    trial = next(t for t in trials_of(plan) if not t["is_practice"])
    rendered = render(plan, trial)
    for message in rendered.messages:
        click.echo(f"\n--- first trial, {message.role} ---\n{message.content}")
    if rendered.labels:
        click.echo(f"--- labels: {', '.join(rendered.labels)} ---")


def _explain_probes(study: Study, probes: dict[Any, Any]) -> None:
    """Print each server's capabilities found by its probe."""
    from experiment.checking.model_capabilities import address_of
    from experiment.checking.settings import model_settings

    for name in study.models:
        settings = model_settings(study, name)
        probed = probes.get(address_of(settings)) if settings.kind == "openai" else None
        if probed is not None:
            probed_at, capabilities = probed
            click.echo(
                f"\n--- {name}, {settings.use} at {capabilities.base_url}, probed {probed_at[:10]} ---"
            )
            for sentence in capabilities.sentences():
                click.echo(sentence)


def _known(study: Study) -> tuple[dict[Any, Any], dict[str, float]]:
    """Return the stored probes of the study's servers, and the speeds of its models; empty without a store."""
    from experiment.checking.model_capabilities import stored_probes
    from experiment.checking.resource_estimates import stored_speeds
    from experiment.cli.study_store import store_of

    if not any(str(model["use"]).startswith(("openai:", "hf:")) for model in study.models.values()):
        return {}, {}
    store = store_of(study)
    if store is None:
        return {}, {}
    with store:
        return stored_probes(store, study.id), stored_speeds(store, study.id)


def _probe_all(study: Study) -> dict[str, UserError]:
    """Probe every server in the study, pay for it and store the results; return the errors that prevented a probe."""
    from experiment.checking.model_capabilities import PROBE
    from experiment.checking.settings import model_settings
    from experiment.cli.study_store import note_action, own_store
    from experiment.models.api.engine import capabilities
    from experiment.models.api.prices import price_of
    from experiment.models.journal import calls_of
    from experiment.models.runs.orchestrator import budget_of
    from experiment.models.runs.status import new_run_id

    servers = {name: model_settings(study, name) for name in study.models}
    servers = {name: settings for name, settings in servers.items() if settings.kind == "openai"}
    if not servers:
        return {}
    faults: dict[str, UserError] = {}
    warn = partial(click.echo, err=True)
    with own_store(study) as store:
        for name, settings in servers.items():
            run_id, whose, budget = new_run_id(), f"check {name}", budget_of(study)
            try:
                price = price_of(settings)
                with calls_of(
                    study, store, price, run_id=run_id, reader=whose, budget=budget, say=warn
                ) as calls:
                    found_capabilities = capabilities(settings, calls).describe()
            except UserError as fault:
                faults[name] = fault
                continue
            detail = {"reader": name, "use": study.models[name]["use"], PROBE: found_capabilities}
            note_action(store, study.id, PROBE, detail)
    return faults


def probing_lines(study: Study, models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the approximate duration of probing, one line per model; empty if nothing is probed or sizes are unknown.

    ``models``: check's numbers for each model: ``trials`` and ``states`` (``positions``, ``files``, ``width``).
    """
    states = {name: numbers.get("states") or {} for name, numbers in models.items()}
    probed = {
        name: size
        for name, size in states.items()
        if "last" in size.get("positions", ()) and size.get("files") and size.get("width")
    }
    blocks = (screen["block"] for screen in study.get("procedure") if "block" in screen)
    if not probed or not any(choice_settings(answering_step(block["trial"])) for block in blocks):
        return []
    from experiment.papers.inside.chapters.probing.probing_fit import (
        probing_bytes,
        probing_seconds,
        settings_of,
    )
    from stimuli.durations import duration_in_words
    from stimuli.files import gigabytes

    settings = settings_of(study.get("analysis", "probing"))
    if settings is None:
        return []
    lines = []
    for name, size in probed.items():
        trials = int(models[name]["trials"])
        seconds = probing_seconds(trials, int(size["files"]), int(size["width"]), settings)
        memory = max(1e8, probing_bytes(trials, int(size["width"])))
        lines.append(
            f"Probing the states of {name} (wrods report): about {duration_in_words(seconds)} of one core, less with several, and "
            f"{gigabytes(memory)} of memory; kept layer by layer, so that it is computed once."
        )
    return lines
