"""``wrods score``: rescores stored responses, without new requests."""

from __future__ import annotations

import secrets
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import PATH, WorkProgress, option, print_json
from stimuli.papers import papers

if TYPE_CHECKING:
    from experiment.scoring.rescoring import Rescored
    from experiment.store import Store
    from experiment.study import Study


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
@option(
    "--parser NAME",
    "corrected (wrods' own), published (the paper of the materials), "
    f"{', '.join(name for paper in papers().values() for name in paper.parsers)}; the study's own unless given.",
)
@option("--judge MODEL", "Let this model of the study read replies to choices; the only calls made.")
@option(
    "--similarity", "Compare free answers, and the texts shown, by the embedding model that the study names."
)
@option(
    "--prompts",
    "With --similarity: compare whole prompts too, instruction and question included, as Mind Scramble's code did.",
)
@option("--execute", "Run programs that were answered (MBPP) against their tests, in isolation (Linux only).")
@option("--model NAME", "Only this reader's responses.", name="reader")
@option("--dry-run", "Report what would change; write and send nothing.")
@option("--json", "Print the outcome as JSON.", name="as_json")
def score(study: Path, **options: Any) -> None:
    """Rescore stored responses, and report which verdicts change in the tables and which are only stored alongside.

    Scores are only added. Tables take the newest verdict by the scorer that the study names: a model's judge, the papers'
    with published scoring, otherwise wrods' own. Verdicts of another scorer are stored but enter no table, so that a
    paper's parser can be compared with ours. People's ratings are not changed.

    With --similarity the cosine of text vectors is computed (models: embeddings: {use: hf:FOLDER}): of each condition's text
    and the intact text, compared with that of different items; and of each free answer and the correct answer, or else the
    same reader's answer about the intact text (of a program, the reference program). It is stored separately and is not a measure of
    correctness; --json prints each. Texts can be compared before any answers exist. The similarities of the texts shown are
    kept in the study's folder (similarity.json), from where reports take them, their vectors in vectors.db; vectors of answers are
    not kept.

    With --execute programs run against their tests, each in a process without network, environment or other processes, with
    an empty folder and limits on time and memory. If the machine cannot isolate them, none is run. These verdicts count.

    Example: wrods score my-study --parser published --dry-run
    """
    from experiment.cli.study_store import note_action, opened_study
    from experiment.scoring.rescoring import score_again

    chosen = SimpleNamespace(**options)
    if sum((chosen.parser is not None, chosen.judge is not None, chosen.similarity, chosen.execute)) > 1:
        raise click.UsageError("Give one of --parser, --judge, --similarity and --execute.")
    if chosen.prompts and not chosen.similarity:
        raise click.UsageError("--prompts goes with --similarity.")
    if chosen.execute:
        _execute(study, chosen)
        return
    if chosen.similarity:
        _similarity(study, chosen)
        return
    with opened_study(study) as opened:
        if chosen.judge is not None:
            outcome, sent = _judge(
                opened.study, opened.store, chosen.judge, chosen.reader, dry_run=chosen.dry_run
            )
        else:
            sent = None
            outcome = score_again(
                opened.study, opened.store, parser=chosen.parser, reader=chosen.reader, dry_run=chosen.dry_run
            )
        detail = {
            "scorer": outcome.scorer,
            "changed": outcome.changed,
            "beside": outcome.beside,
            "added": outcome.added,
            "responses": outcome.responses,
            "reader": chosen.reader,
        }
        if not chosen.dry_run:
            note_action(opened.store, opened.study.id, "score", detail)
    if chosen.as_json:
        summary = outcome.as_json() | {"dry_run": chosen.dry_run} | ({} if sent is None else {"judged": sent})
        print_json(summary)
        return
    _tell(outcome, sent, dry_run=chosen.dry_run)
    judges = {
        str(settings["judge"]): name
        for name, settings in opened.study.models.items()
        if settings.get("judge")
    }
    for name, judged in judges.items() if chosen.judge is None else ():
        click.echo(f"What {judged} thinks is read by {name} with: wrods score {study} --judge {name}")


def _similarity(study: Path, options: SimpleNamespace) -> None:
    """Compare texts by their embeddings and print the result; shown texts even before any answers exist."""
    from experiment.checking import load_study
    from experiment.cli.study_store import note_action, store_of
    from experiment.models.judges.similarity import (
        CACHE,
        Embedder,
        compare_texts,
        embedding_settings,
        store_nearness,
        told,
    )
    from experiment.scoring.similarities import SIMILARITY

    loaded = load_study(study)
    embedder = Embedder(embedding_settings(loaded))
    with store_of(loaded) or nullcontext() as store, WorkProgress("texts") as progress:
        outcome = compare_texts(
            loaded,
            store,
            embedder,
            reader=options.reader,
            dry_run=options.dry_run,
            with_prompts=options.prompts,
            materials=embedder if options.dry_run else embedder.keeping(loaded.folder / CACHE),
            told=partial(progress.draw, "similarity"),
        )
        stored = (
            None if options.dry_run else store_nearness(loaded, outcome.use, outcome.texts, outcome.prompts)
        )
        if store is not None and not options.dry_run:
            detail = {
                "scorer": SIMILARITY,
                **embedder.describe(),
                "responses": len(outcome.answers),
                "reader": options.reader,
            }
            note_action(store, loaded.id, "score", detail)
    if options.as_json:
        print_json(outcome.as_json() | {"dry_run": options.dry_run})
        return
    click.echo(f"similarity by {outcome.use} (mean cosine):")
    for line in told(outcome):
        click.echo(line)
    click.echo(
        "Nothing was written."
        if options.dry_run
        else "These values are stored separately and are not verdicts."
    )
    if stored is not None:
        click.echo(f"{stored}: shown and intact texts, for reports")


def _execute(study: Path, options: SimpleNamespace) -> None:
    """Run programs against their tests and print the result."""
    from experiment.cli.study_store import note_action, opened_study
    from experiment.scoring.sandbox import execute_programs

    with opened_study(study) as opened:
        outcome = execute_programs(opened.study, opened.store, reader=options.reader, dry_run=options.dry_run)
        if not options.dry_run:
            detail = {"scorer": "executed", "responses": outcome.programs, "reader": options.reader}
            note_action(opened.store, opened.study.id, "score", detail)
    if options.as_json:
        print_json(outcome.as_json() | {"dry_run": options.dry_run})
        return
    for line in outcome.told():
        click.echo(line)
    click.echo("Nothing was written." if options.dry_run else "These verdicts count in the tables.")


def _judge(
    study: Study, store: Store, judge: str, reader: str | None, *, dry_run: bool
) -> tuple[Rescored, int]:
    from experiment.models.api.prices import price_of
    from experiment.models.engine import ModelSettings
    from experiment.models.engines import open_engine
    from experiment.models.journal import calls_of
    from experiment.models.judges.judging import OpenedJudge, first_judged, judge_again
    from experiment.models.runs.orchestrator import budget_of
    from experiment.scoring.rescoring import require_judge

    settings = ModelSettings.of(require_judge(study, judge), study.folder)
    if dry_run:
        first = first_judged(study, store, judge, settings, reader=reader)
        for message in first.messages if first is not None else ():
            click.echo(f"── {judge} would be sent first ".ljust(100, "─"), err=True)
            click.echo(f"{message.content}\n{'─' * 100}", err=True)
        return judge_again(study, store, None, judge, settings, reader=reader)
    price = price_of(settings)
    warn = partial(click.echo, err=True)
    run_id, name = f"judge-{secrets.token_hex(6)}", f"judge {judge}"
    with (
        closing(open_engine(settings)) as engine,
        calls_of(study, store, price, run_id=run_id, reader=name, budget=budget_of(study), say=warn) as calls,
    ):
        return judge_again(study, store, OpenedJudge(engine, calls, run_id), judge, settings, reader=reader)


def _tell(outcome: Rescored, sent: int | None, *, dry_run: bool) -> None:
    """Print what changes in the tables, and separately what is only stored in addition."""
    would = "would change" if dry_run else "changed"
    if sent is not None and dry_run:
        click.echo(f"{outcome.scorer}: {sent} replies would be sent to the judge. Nothing was sent.")
        return
    judged = "" if sent is None else f", {sent} of them read by the judge now"
    click.echo(
        f"{outcome.scorer}: {outcome.responses} responses{judged}; {outcome.changed} verdicts {would} in the tables."
    )
    _tell_moved(outcome, in_tables=True)
    if outcome.beside:
        counts = ", ".join(f"{number} by {scorer}" for scorer, number in outcome.kept.most_common())
        click.echo(f"Another {outcome.beside} verdicts differ but enter no table; the tables keep {counts}.")
        _tell_moved(outcome, in_tables=False)
    if outcome.failed:
        click.echo(f"  {outcome.failed} could not be asked about; the same command asks for these again.")
    if outcome.stopped is not None:
        click.echo(f"  Stopped: {outcome.stopped}; run the same command to resume.")
    if outcome.rated:
        click.echo(f"  {outcome.rated} responses stay as people rated them.")
    if outcome.executed:
        click.echo(f"  {outcome.executed} responses stay as their tests judged them.")
    if not outcome.counts:
        click.echo("The study names another scorer: these verdicts are stored but enter no table.")
    if outcome.renewed:
        click.echo(f"  {outcome.renewed} verdicts in the tables are the same under the present rules.")
    if dry_run:
        click.echo("Nothing was written.")


def _tell_moved(outcome: Rescored, *, in_tables: bool) -> None:
    """Print the changes between scores, with the first few replies."""
    for (old, new), number in (outcome.moved if in_tables else outcome.moved_beside).most_common():
        arrow = "→" if in_tables else "in the tables, here"
        click.echo(f"  {number:>7}  {old} {arrow} {new}" + (" (another response)" if old == new else ""))
    for example in outcome.examples:
        if example["in_tables"] is in_tables:
            reply = " ".join(example["reply"].split())[:60]
            click.echo(
                f"    {example['reader']}, item {example['item_id']}: {reply!r}: {example['before']} → {example['now']}"
            )
