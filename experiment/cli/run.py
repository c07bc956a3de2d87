"""``wrods run``: runs the same sessions with models as with participants."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.registering import ask_registration, registration_options, tell_unplanned
from experiment.cli.terminal import PATH, option, print_error, print_json, tell_report
from experiment.trials import CHOSEN
from stimuli.errors import UserError, unknown_name

if TYPE_CHECKING:
    from experiment.models.engine import Request
    from experiment.models.planning.session import ModelSession
    from experiment.models.runs.limits import CommandLimits
    from experiment.models.runs.status import RunOutcome
    from experiment.store import Store
    from experiment.study import Study

PICTURES = "pictures"
"""Folder in the study for the pictures that would be sent."""

MOST_NAMED = 100
"""Kinds of prompts that are named if they are not shown."""


def preview(study: Study, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model would receive: the first prompt of each kind, and the number of requests of each kind."""
    from experiment.models.engine import Previews
    from experiment.models.engines import open_engine
    from experiment.models.planning.prompt_preview import kinds_of
    from experiment.models.planning.session import request_json
    from experiment.models.runs.orchestrator import latest_version, sessions_of, settings_of

    model = replace(settings_of(study, settings), sends=False)
    engine = open_engine(model)
    with closing(engine), store_of_people(study) as store:
        plan = sessions_of(study, name, model, engine, store, latest_version(study, store))
        kinds = kinds_of(plan())
        if not kinds.trials:
            raise UserError(
                "no trial of this study asks for an answer",
                mend="Give the block a choose, recover or answer step.",
            )
        show = engine.preview if isinstance(engine, Previews) else request_json
        prompts = [
            {
                "set": example.cell.materials, "trial_type": example.cell.trial_type, "purpose": example.cell.purpose,
                "is_practice": example.cell.is_practice, "block": example.cell.block, "condition": dict(example.cell.condition),
                "kind": str(example.cell), "of_this_kind": kinds.counts[example.cell],
                "item_id": example.trial["item_id"], "turn": example.turn, "stands_in": example.stands_in,
                "labels": example.request.labels, **show(example.request),
            }
            | _pictures_of(study, example.request)
            for example in kinds.examples
        ]  # fmt: skip
        judged = _judged(study, name, model.options.get("judge"), next(iter(plan())))
    return {
        "model": name,
        "use": settings["use"],
        "sessions": kinds.sessions,
        "trials": kinds.trials,
        "kinds": [{"kind": str(cell), "requests": count} for cell, count in kinds.counts.items()],
        "prompts": prompts + judged,
    }


def _pictures_of(study: Study, request: Request) -> dict[str, Any]:
    """Write the pictures of a request into the study's folder and return their paths; empty if it has none."""
    files = []
    for message in request.messages:
        for picture in message.pictures:
            file = study.folder / PICTURES / f"{picture.sha256[:16]}.png"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(picture.png)
            files.append({**picture.to_json(), "file": str(file)})
    return {"pictures": files} if files else {}


def _judged(study: Study, name: str, judge: object, session: ModelSession) -> list[dict[str, Any]]:
    """Return what the model's judge would receive about its first reply to a choice, with the correct answer in its place."""
    from experiment.models.engine import Previews
    from experiment.models.engines import open_engine
    from experiment.models.judges.judging import judge_request
    from experiment.models.planning.prompting_settings import right_answer
    from experiment.models.planning.session import request_json
    from experiment.models.runs.orchestrator import settings_of
    from experiment.scoring.rescoring import StoredResponse

    trial = next((trial for trial in session.trials if trial["steps"][-1]["step"] in CHOSEN), None)
    if judge is None or str(judge) not in study.models or trial is None:
        return []
    settings = replace(settings_of(study, study.models[str(judge)]), sends=False)
    reply = right_answer(trial)
    key, session_id = next(session.keys), session.session_id
    stored = StoredResponse(
        name, "model", session_id, session.plan, trial, 1, key, reply, False, "answered", None
    )
    request = judge_request(study, str(judge), settings, stored)
    with closing(open_engine(settings)) as engine:
        show = engine.preview if isinstance(engine, Previews) else request_json
        return [
            {
                "set": trial["set"], "trial_type": trial["trial_type"], "purpose": f"judge {judge}", "is_practice": False,
                "block": trial["block"], "condition": dict(trial["condition"] or {}), "kind": "judge", "of_this_kind": None,
                "item_id": trial["item_id"], "turn": 1, "stands_in": True, "labels": request.labels, **show(request),
            }
        ]  # fmt: skip


@contextmanager
def store_of_people(study: Study) -> Iterator[Store | None]:
    """Open the store if models follow participants; None if they do not, or nobody has answered yet."""
    from experiment.cli.study_store import store_of
    from experiment.models.planning.plans import needs_people

    store = store_of(study) if needs_people(study) else None
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def print_previews(shown: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print previews, as JSON or as text."""
    if as_json:
        print_json(shown)
        return
    for model in shown:
        for prompt in model["prompts"]:
            levels = ", ".join(f"{factor} {level}" for factor, level in prompt["condition"].items())
            answers = ", ".join(prompt["labels"]) if prompt["labels"] else "text"
            more = "".join(
                part
                for part, holds in (
                    (f", {prompt['purpose']}", prompt["purpose"] != "answer"),
                    (", practice", prompt["is_practice"]),
                    (f", question {prompt['turn']} of a conversation", prompt["turn"] > 1),
                    (f", {levels}", bool(levels)),
                    (f", {prompt['of_this_kind']} of this kind", prompt["of_this_kind"] is not None),
                    (", correct responses replace the model's", prompt["stands_in"]),
                )
                if holds
            )
            rule = f"── {model['model']}: {prompt['block']}, {prompt['set']}, item {prompt['item_id']}, answers {answers}{more} "
            click.echo(rule.ljust(100, "─"))
            if "url" in prompt:
                click.echo(f"POST {prompt['url']}")
            click.echo(
                prompt["text"]
                if "text" in prompt
                else json.dumps(prompt["body"], ensure_ascii=False, indent=1)
            )
            for number, picture in enumerate(prompt.get("pictures", ()), 1):
                size = f"{picture['width']} × {picture['height']} pixels"
                click.echo(f"picture {number}: {picture['file']} ({size}): {picture['text']}")
        click.echo("─" * 100)
        hidden = len(model["kinds"]) - sum(prompt["of_this_kind"] is not None for prompt in model["prompts"])
        if hidden > 0:
            click.echo(f"{model['model']}: {len(model['kinds'])} kinds of prompts; these as well, not shown:")
            seen = {prompt["kind"] for prompt in model["prompts"]}
            for kind in [
                kind_of_prompt for kind_of_prompt in model["kinds"] if kind_of_prompt["kind"] not in seen
            ][:MOST_NAMED]:
                click.echo(f"  {kind['requests']} of {kind['kind']}")
        click.echo(
            f"{model['model']} ({model['use']}): {model['trials']} trials in {model['sessions']} sessions"
        )
        if str(model["use"]).startswith("openai:"):
            click.echo(
                "  Before the first trial a few tiny requests find out what the server takes; what it refuses by name is left "
                "out of these."
            )
    click.echo("Nothing was sent.")


_EXAMPLE = """\b
Examples:
  wrods run my-study --dry-run
  wrods run my-study
  wrods run my-study --model baseline:random
  wrods run my-study --model gpt --max-cost "5 USD" --max-minutes 60
  wrods run my-study --model openai:my-model --base-url http://localhost:8000/v1
"""


@click.command(epilog=_EXAMPLE)
@click.argument("study", metavar="STUDY", type=PATH)
@option(
    "--model NAME",
    "Only this model: its name in the study, or hf:PATH, openai:NAME, tuned:TRAINING, baseline:NAME; can be repeated.",
    name="names",
    multiple=True,
)
@option("--base-url URL", "Ask this OpenAI-compatible server (it usually ends in /v1).")
@option(
    "--key-env NAME",
    "Send that server the key in this variable (…_API_KEY); without it your own server gets none.",
)
@option("--dry-run", "Show the first prompts exactly as sent; send nothing.")
@option(
    "--timing",
    "Measure times: each trial alone, nothing shared or cached, in random order, in separate sessions.",
)
@option("--batch", "Collect finished batches, submit the remaining requests at the batch price, and exit.")
@option(
    "--cancel-batches", "Cancel pending batches at the provider, collect finished requests, and send nothing."
)
@option(
    "--engine",
    "ray: local models on all GPUs of a Ray cluster, one engine each.",
    name="engine_name",
    type=click.Choice(["ray"]),
)
@option(
    "--workers N",
    "With --engine ray: how many engines; one a GPU, or one for two processors, unless given.",
    type=click.IntRange(min=1),
)
@option("--max-cost AMOUNT", 'Spend at most this amount in this command, such as "5 USD".')
@option("--max-minutes N", "Work for at most N minutes.", type=click.FloatRange(min=0, min_open=True))
@option(
    "--max-trials N",
    "Stop after N trials of each model; run the same command to resume.",
    type=click.IntRange(min=1),
)
@registration_options
@option("--new-version", "Store a design that changed since data were collected as a new version.")
@option(
    "--if-changed",
    "How stored sessions are handled if a model has changed since (revision, settings, prompts).",
    type=click.Choice(["stop", "set_aside", "keep_both"]),
    default="stop",
    show_default=True,
)
@option(
    "--ask-again",
    "Repeat requests that were longer than a model reads, for example because its server now reads more.",
)
@option("--json", "Print the outcome as JSON.", name="as_json")
def run(study: Path, **options: Any) -> None:
    """Run a study's sessions with language models, all that the study names or some.

    Every answer is stored as soon as it arrives. The same command resumes an interrupted run and requests only missing
    answers; a study with more replicates, variants or models is extended. Models run in parallel, one block at a time, so that
    a run that ends early leaves all models and lists within one block of each other. In another terminal, `wrods status` shows
    the progress of a run.

    Money: `models: budget: 40 USD` in the study applies to all commands and days, --max-cost to this command.
    `wrods check` estimates what a study will cost.

    If a study plans analyses, you are asked once, before the first session of a model other than a baseline, where its plan is
    registered. Answer in advance with --registered URL or --not-registered.

    Exit code 0: nothing is left to request; trials that can never be answered (longer than the model reads) are listed each
    time. 1: something is left, because a call failed, or because a limit, the budget or Ctrl-C ended the run. 2: the study or an
    option is not valid.

    Keys of servers come from the environment or from your config.toml: OPENAI_API_KEY is sent to OpenAI only; another server
    gets the key that key_env in the study or --key-env names.
    """
    from experiment.checking import load_study
    from experiment.cli.study_store import own_store
    from experiment.integrity.build_provenance import require_current_items
    from experiment.models.costs import parse_usd
    from experiment.models.runs.limits import CommandLimits
    from experiment.summaries.plain_english import asked_in_english
    from experiment.trust import require_trust

    chosen = SimpleNamespace(**options)
    loaded = load_study(study)
    require_trust(loaded)
    given = {"--base-url": chosen.base_url, "--key-env": chosen.key_env}
    models = _chosen(
        loaded, chosen.names, {name: value for name, value in given.items() if value is not None}
    )
    kinds = {str(settings["use"]).partition(":")[0] for settings in models.values()}
    is_local = "hf" in kinds
    faults = {
        "--batch": chosen.batch and chosen.timing and "answers of a batch have no times; leave out --timing or --batch",
        "--workers": chosen.workers and not chosen.engine_name and "it counts the engines of --engine ray",
        "--cancel-batches": chosen.cancel_batches and (chosen.batch or chosen.timing) and "it asks nothing; give it alone",
        "--engine ray": chosen.engine_name and not is_local and "it is for local models (hf:…), and none is asked here",
        "--max-minutes": chosen.max_minutes != chosen.max_minutes and "it is no number",
    }  # fmt: skip
    for name, why in faults.items():
        if why:
            raise UserError(f"{name} cannot be given here: {why}", mend="See `wrods run --help`.")
    if chosen.workers is not None:
        models = {name: {**settings, "workers": chosen.workers} for name, settings in models.items()}
    if chosen.timing:
        models = {name: {**settings, "timing": True} for name, settings in models.items()}
    require_current_items(loaded)
    if chosen.dry_run:
        print_previews(
            [preview(loaded, name, settings) for name, settings in models.items()], as_json=chosen.as_json
        )
        return
    limits = CommandLimits(
        cost=None if chosen.max_cost is None else parse_usd(chosen.max_cost, "--max-cost"),
        minutes=chosen.max_minutes,
        trials=chosen.max_trials,
    )
    if not chosen.cancel_batches and kinds != {"baseline"}:
        with own_store(loaded) as store:
            ask_registration(loaded, store, chosen.registered, is_not_registered=chosen.not_registered)
        tell_unplanned(loaded, models)
        if warning := asked_in_english(loaded, models):
            click.secho(warning, fg="yellow", err=True)
    outcomes, failed = _run_all(loaded, models, limits, chosen)
    _finish(loaded, models, outcomes, failed, as_json=chosen.as_json)


def _finish(
    study: Study,
    models: Mapping[str, Mapping[str, Any]],
    outcomes: list[RunOutcome],
    faults: Mapping[str, UserError],
    *,
    as_json: bool,
) -> None:
    """Print the run's outcomes, and exit with the resulting code."""
    if as_json:
        results = [{**asdict(outcome), "left": outcome.left} for outcome in outcomes]
        failed = [
            {"reader": name, "use": models[name]["use"], "error": str(fault)}
            for name, fault in faults.items()
        ]
        summary = {"study": study.id, "models": [*results, *failed]}
        print_json(summary)
    elif len(faults) == len(models) == 1:
        raise next(iter(faults.values()))
    for name, fault in faults.items():
        print_error(f"{name}: {fault}")
    for outcome in outcomes:
        if not as_json:
            print_outcome(outcome)
        if outcome.stopped is not None:
            print_error(f"{outcome.reader}: {outcome.stopped}")
    if outcomes and not as_json and all(outcome.is_whole and not outcome.left for outcome in outcomes):
        tell_report(study, study.folder)
    if any(outcome.interrupted for outcome in outcomes):
        # a probe may still wait for a server that does not answer; everything else is closed
        if any(thread.name.startswith("wrods-probe") for thread in threading.enumerate()):
            click.echo("Stopped. Finished trials are stored; run the same command to resume.", err=True)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(1)
        raise KeyboardInterrupt
    if faults and not outcomes:
        sys.exit(max(fault.exit_code for fault in faults.values()))
    if faults or not all(outcome.is_whole for outcome in outcomes):
        sys.exit(1)


def _chosen(study: Study, names: tuple[str, ...], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of the models to run, by name; server options apply only to models of servers."""
    from experiment.models.engines import check_use, known_kinds
    from experiment.study.study import as_trained

    if not names and not study.models:
        raise UserError(
            f"{study.place('models')}: the study names no models",
            mend="Add some under models: who:, or give one with --model, such as --model baseline:random.",
        )
    chosen: dict[str, dict[str, Any]] = {}
    for name in names or study.models:
        if name in study.models:
            chosen[name] = dict(study.models[name])
        elif ":" in name:
            chosen[name] = as_trained(study, {"use": name}, "--model")
            check_use(str(chosen[name]["use"]))
        else:
            raise unknown_name("model", name, [*study.models, *(f"{kind}:NAME" for kind in known_kinds())])
    api_models = [settings for settings in chosen.values() if str(settings["use"]).startswith("openai:")]
    if given and not api_models:
        raise UserError(
            f"{next(iter(given))} cannot be given here: it is for models of a server (openai:…), and none is asked here",
            mend="Name one, such as --model openai:my-model --base-url http://localhost:8000/v1.",
        )
    for settings in api_models:
        settings |= {option.removeprefix("--").replace("-", "_"): value for option, value in given.items()}
    return chosen


def _run_all(
    study: Study, models: Mapping[str, dict[str, Any]], limits: CommandLimits, given: SimpleNamespace
) -> tuple[list[RunOutcome], dict[str, UserError]]:
    """Run models together; if one cannot start (a wrong key, another run of it), the others still run."""
    from experiment.cli.study_store import store_place
    from experiment.cli.terminal import RunTable
    from experiment.models.engines import open_engine
    from experiment.models.runs.orchestrator import CommandRun, RunOptions, version_of
    from experiment.store import open_store
    from experiment.store.store import RUN_GROUP_MS

    opener = open_engine
    if given.engine_name == "ray":
        from experiment.models.engines.ray_engine import open_on_ray

        opener = open_on_ray
    target = store_place(study)
    # Ray prints messages about workers between our results
    redirected = redirect_stdout(sys.stderr) if given.engine_name == "ray" else nullcontext()
    with open_store(target, group_ms=RUN_GROUP_MS) as store, RunTable() as display, redirected:
        version = version_of(study, store, new_version=given.new_version)
        options = RunOptions(
            version=version, limits=limits, lease_at=target, opener=opener, draw=display.draw, say=display.say,
            is_batch=given.batch, if_changed=given.if_changed, cancels=given.cancel_batches,
            asks_again=given.ask_again,
        )  # fmt: skip
        run = CommandRun(study, store, options)
        outcomes = run.run(models)
    return outcomes, run.faults


SHOWN_ERRORS = 20


def print_outcome(outcome: RunOutcome) -> None:
    """Print the outcome of one model's run."""
    from experiment.models.costs import format_usd
    from experiment.models.runs.status import describe_read_from_reply, describe_unanswerable, describe_unread

    named = ", ".join(f"{n} {status}" for status, n in sorted(outcome.unanswered.items()))
    given_up = f", {outcome.given_up} can never be answered" if outcome.given_up else ""
    before = f", {outcome.stored_before} were stored before" if outcome.stored_before else ""
    click.echo(
        f"{outcome.reader}: {outcome.answered} trials answered{before}, {outcome.left or 'none'} of {outcome.planned} left"
        f"{f' ({named})' if named else ''}{given_up}; {outcome.blocks}"
    )
    if not_valid := describe_unread(outcome.response_statuses):
        click.echo(
            f"  {not_valid}: wrods export shows them, and wrods score parses them again without a new request",
            err=True,
        )
    if outcome.first_tokens:
        click.echo(f"  {describe_read_from_reply(outcome.first_tokens, outcome.answered)}", err=True)
    if outcome.unrestored:
        click.echo(
            f"  {outcome.unrestored} texts were not restored (refused, or cut off): the questions after them are about the texts "
            "as shown; the calls say which (purpose unscramble)",
            err=True,
        )
    for line in describe_unanswerable(outcome):
        click.echo(f"  {line}", err=True)
    tokens = outcome.tokens
    if tokens.get("prompt_tokens"):
        click.echo(
            f"  {tokens['prompt_tokens']} prompt tokens ({tokens['cached_tokens']} of them shared or cached), "
            f"{tokens['completion_tokens']} generated"
        )
    if outcome.batches:
        click.echo(f"  {outcome.handed_over} submitted; run the same command to collect finished batches")
        click.echo("  " + outcome.batches.replace("\n", "\n  "))
    if outcome.cost_usd or outcome.cached:
        cached = f"; {outcome.cached} answers came from the call journal" if outcome.cached else ""
        click.echo(f"  cost {format_usd(outcome.cost_usd)}{cached}")
    if outcome.dearest > 1:
        click.echo(
            f"  the server counts up to {outcome.dearest:.3g} times the tokens that a request's length and max_tokens allow; what "
            "it counts is booked. Look at its bill, or at what it adds to prompts.",
            err=True,
        )
    if outcome.lost_usd:
        click.echo(
            f"  up to {format_usd(outcome.lost_usd)} may have been spent by an earlier run that was killed; it counts "
            "against the budget",
            err=True,
        )
    if outcome.unanswered_usd:
        click.echo(
            f"  up to {format_usd(outcome.unanswered_usd)} may have been spent on tries that brought no answer; it counts against "
            "the budget",
            err=True,
        )
    if outcome.other_sessions:
        click.echo(
            f"  {outcome.other_sessions} earlier sessions of {outcome.reader} are not part of this plan (another "
            "revision, setting or wider plan); they stay in the store and in the tables.",
            err=True,
        )
    for kind, count in outcome.error_kinds.items():
        click.echo(f"  {count} × {kind}", err=True)
    for error in outcome.errors[:SHOWN_ERRORS]:
        click.echo(
            f"  no answer: item {error['item_id']} (trial {error['trial_index']}): {error['error']}", err=True
        )
    if outcome.failed:
        more = outcome.failed - SHOWN_ERRORS
        further = f"… and {more} more. " if more > 0 else ""
        click.echo(f"  {further}The same command asks for these again.", err=True)
