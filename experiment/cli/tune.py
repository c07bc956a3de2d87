"""``wrods tune``: trains the models that a study names, on this machine or at a provider."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, WorkProgress, compact, confirm, option, print_error, print_json
from stimuli.durations import short_duration
from stimuli.errors import UserError, unknown_name

if TYPE_CHECKING:
    from experiment.papers.inside.tuning import Training
    from experiment.papers.inside.tuning.records import Outcome
    from experiment.papers.inside.tuning.training import Progress as Step
    from experiment.study import Study

_EXAMPLE = """\b
Examples:
  wrods tune my-study
  wrods tune my-study --training ft-rs --max-minutes 60
  wrods tune my-study --training uppercase --submit --max-cost "5 USD"
  wrods run my-study --model tuned:ft-rs
"""


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=PATH)
@option(
    "--training NAME",
    "Only this training, by its name in the study; can be repeated.",
    name="names",
    multiple=True,
)
@option(
    "--max-minutes N",
    "Work for at most N minutes; run the same command to resume.",
    type=click.FloatRange(min=0, min_open=True),
)
@option(
    "--submit", "Models of a provider (openai:…): upload the files, create the job and wait until it ends."
)
@option("--max-cost AMOUNT", 'Create no job that can cost more, such as "5 USD".')
@option("--yes", "Do not ask for confirmation before creating a job that costs money.")
@option("--json", "Print the outcome as JSON.", name="as_json")
def tune(study: Path, **options: Any) -> None:
    """Train models on scrambled text or on lines of H-TEST, as specified by `tuning:` in the study.

    Local models are trained on this machine, with small matrices added to the weights (lora) or in full (full). Checkpoints are
    written during training: after Ctrl-C, a crash or a power cut, the same command resumes, and on a CPU ends with the very same
    weights. The result is in tuning/NAME in the study's folder; `use: tuned:NAME` under models: who, or
    `wrods run STUDY --model tuned:NAME`, lets the trained model read the same study.

    For models of a provider, the files of a fine-tuning job are written, and nothing is sent without --submit. The maximum cost
    of a job counts against `models: budget` before it is created. A job that exists is followed without --submit. `wrods check`
    reports what each training run takes.

    Exit code 0: all models are trained, or all files are written. 1: something is left; run the same command to resume. 2: the
    study or an option is not valid.
    """
    from experiment.checking import load_study
    from experiment.models.costs import parse_usd
    from experiment.models.runs.limits import Deadline, Stop, interruptible
    from experiment.papers.inside.tuning import trainings

    given = SimpleNamespace(**options)
    loaded = load_study(study)
    chosen = _chosen(trainings(loaded), loaded, given.names)
    if given.submit and not any(training.is_api for training in chosen):
        raise UserError(
            "--submit cannot be given here: it is for models of a provider (openai:…), and none is trained here",
            mend="Leave it out.",
        )
    given.most = None if given.max_cost is None else parse_usd(given.max_cost, "--max-cost")
    outcomes: list[Outcome] = []
    faults: dict[str, UserError] = {}
    stop, clock = Stop(), Deadline(given.max_minutes)
    with interruptible(stop):
        for training in chosen:
            if stop.is_asked or clock.is_over:
                break
            try:
                if training.is_api:
                    outcome = _at_provider(loaded, training, stop, clock, given)
                else:
                    outcome = _here(loaded, training, stop, clock)
            except UserError as fault:
                faults[training.name] = fault
                continue
            outcomes.append(outcome)
            if not given.as_json:
                _print(outcome)
    _finish(loaded, chosen, outcomes, faults, as_json=given.as_json, interrupted=stop.interrupted)


def _chosen(all_: dict[str, Training], study: Study, names: tuple[str, ...]) -> list[Training]:
    if not all_:
        raise UserError(
            f"{study.folder} trains nothing: study.yaml has no `tuning:`",
            mend="Say there what is to be trained, such as {ft-rs: {model: base, on: texts.txt, rule: FT-RS}}.",
        )
    for name in names:
        if name not in all_:
            raise unknown_name("training", name, all_)
    return [all_[name] for name in names or all_]


def _here(study: Study, training: Training, stop: Any, clock: Any) -> Outcome:
    """Train on this machine, with a progress bar."""
    from experiment.papers.inside.tuning.records import held
    from experiment.papers.inside.tuning.training import train_here

    with held(training), WorkProgress("steps") as shown:

        def tell(step: Step) -> None:
            shown.draw(training.name, step.step, step.steps, figures(step))

        outcome = train_here(study, training, stop=stop, clock=clock, tell=tell, say=shown.say)
    if outcome.steps:
        _draw_curve(training)
    return outcome


def _draw_curve(training: Training) -> None:
    """Draw the loss curve next to its numbers."""
    import pandas as pd

    from experiment.papers.inside.chapters.layers.layer_figures import loss_figure
    from experiment.study.study import CURVE

    curve = pd.read_csv(training.folder / CURVE)
    loss_figure("loss", f"Loss of training {training.name}", [(training.name, curve)]).save(training.folder)


def _at_provider(study: Study, training: Training, stop: Any, clock: Any, given: SimpleNamespace) -> Outcome:
    """Write a job's files; create and follow the job if requested."""
    from experiment.cli.study_store import own_store
    from experiment.models.costs import format_usd
    from experiment.papers.inside.tuning import api
    from experiment.papers.inside.tuning.records import Outcome, held

    def say(line: str) -> None:
        click.echo(line, err=True)

    with held(training):
        if (done := api.finished(study, training)) is not None:
            return done
        prepared = api.prepare(study, training, say=say)
        files = prepared.files
        summary = (
            f"{training.name}: {files.examples:,} examples in {files.training}"
            + (f", {files.held_out:,} held out" if files.held_out else "")
            + f"; {training.epochs_of(replies=True)} epochs"
        )
        if prepared.most_usd and prepared.likely_usd:
            summary += f", about {format_usd(prepared.likely_usd)}, at most {format_usd(prepared.most_usd)}"
        if not api.is_submitted(training):
            say(summary)
            if not given.submit:
                return Outcome(
                    training.name, training.base, f"tuned:{training.name}", "written", folder=str(training.folder),
                    most_usd=prepared.most_usd, remark="nothing was sent; --submit makes the job",
                )  # fmt: skip
            if prepared.most_usd and not given.yes:
                cost = format_usd(prepared.most_usd)
                if given.as_json or not sys.stdin.isatty():
                    raise UserError(
                        f"training {training.name} can cost up to {cost}, and nobody is here to agree",
                        mend="Add --yes to agree beforehand.",
                    )
                confirm(f"Train {training.base} ({training.model.use}) for up to {cost}?", "nothing was sent")
        with own_store(study) as store:
            api.submit(study, training, prepared, store, max_cost=given.most)
            outcome = api.follow(study, training, store, stop=stop, clock=clock, tell=say)
    if (training.folder / "loss.csv").is_file():
        _draw_curve(training)
    return outcome


def _print(outcome: Outcome) -> None:
    """Print the outcome of one training run."""
    from experiment.models.costs import format_usd

    if outcome.state == "finished":
        was = "was trained before" if outcome.was_finished else "trained"
        parts = [f"{outcome.training}: {was}"]
        if outcome.steps:
            parts.append(
                f"{outcome.steps:,} steps, {outcome.tokens:,} tokens, {short_duration(outcome.seconds)}"
            )
        if outcome.validation_loss is not None and outcome.first_validation_loss is not None:
            parts.append(
                f"validation loss {outcome.first_validation_loss:.3f} → {outcome.validation_loss:.3f} nats a token"
            )
        if outcome.cost_usd:
            parts.append(f"cost {format_usd(outcome.cost_usd)}")
        if outcome.model_name:
            parts.append(outcome.model_name)
        click.echo(f"{', '.join(parts)}\n  {outcome.folder}")
        if outcome.remark:
            click.secho(f"  {outcome.remark}", fg="yellow", err=True)
    elif outcome.state == "written":
        click.echo(f"{outcome.training}: files of the job are in {outcome.folder}; {outcome.remark}")
    else:
        far = (
            f"after {outcome.steps:,} of {outcome.planned:,} steps"
            if outcome.planned
            else f"the job is {outcome.state}"
        )
        click.echo(f"{outcome.training}: {outcome.stopped}, {far}; run the same command to resume")


def _finish(
    study: Study,
    chosen: list[Training],
    outcomes: list[Outcome],
    faults: dict[str, UserError],
    *,
    as_json: bool,
    interrupted: bool,
) -> None:
    """Report the next step, and exit with the code for whether something is left."""
    if as_json:
        failed = [{"training": name, "error": str(fault)} for name, fault in faults.items()]
        summary = {"study": study.id, "trainings": [*(outcome.to_json() for outcome in outcomes), *failed]}
        print_json(summary)
    elif len(faults) == len(chosen) == 1:
        raise next(iter(faults.values()))
    for name, fault in faults.items():
        print_error(f"{name}: {fault}")
    ready = [outcome.use for outcome in outcomes if outcome.state == "finished"]
    if ready and not as_json and not interrupted:
        named = {str(model.get("use")) for model in study.get("models", "who", default={}).values()}
        options = "" if set(ready) <= named else "".join(f" --model {use}" for use in ready)
        click.echo(f"Next: wrods run {shlex.quote(str(study.folder))}{options}")
    if interrupted:
        click.echo(
            "Stopped. Training so far is saved in its checkpoint; run the same command to resume.", err=True
        )
        sys.exit(1)
    if faults and not outcomes:
        sys.exit(max(fault.exit_code for fault in faults.values()))
    if faults or len(outcomes) < len(chosen) or not all(outcome.is_done for outcome in outcomes):
        sys.exit(1)


def figures(progress: Step) -> str:
    """Return loss and speed as text."""
    parts = []
    if progress.loss is not None:
        parts.append(f"loss {progress.loss:.3f}")
    if progress.validation_loss is not None:
        parts.append(f"validation {progress.validation_loss:.3f}")
    if progress.tokens_per_second:
        parts.append(f"{compact(round(progress.tokens_per_second))} tokens/s")
    return ", ".join(parts)
