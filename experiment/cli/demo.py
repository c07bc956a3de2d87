"""``wrods demo`` and ``wrods simulate``: simulated readers take part, in the whole path on built-in parts or in any study."""

from __future__ import annotations

import itertools
import shlex
import shutil
import sys
import time
import webbrowser
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import click

from experiment.cli.terminal import PATH, WorkProgress, has_screen, option, tell_report
from stimuli.audit.findings import counted

if TYPE_CHECKING:
    from rich.console import Console

    from experiment.demo.tour import Links
    from experiment.models.runs.status import RunOutcome
    from experiment.store import Store
    from experiment.study import Study


DEFAULT = "wrods-demo"
READERS = 40
PAUSE_TO_WATCH = 0.05
VISIT_POLL_S = 1.0


@click.command()
@option("--out", f"Folder to make; {DEFAULT} (or {DEFAULT}-2, …) unless given.", type=PATH)
def demo(out: Path | None) -> None:
    """See the whole path in a few minutes: study, readers, model, report.

    Makes a small study, sends simulated readers through the real server, runs a small built-in language model and two
    baselines on the same lists, fits the models and writes a report that compares each simulated effect with the effect
    recovered. On a terminal it waits for you to be one more reader (ninety seconds, stored as a pilot). No network is used.

    Example: wrods demo --out my-demo
    """
    from rich.console import Console

    from experiment.building import build_study
    from experiment.checking import load_study
    from experiment.demo.tour import LocalServer, make_study
    from experiment.models.local.checkpoints import require_torch
    from experiment.store import open_store

    require_torch("The demonstration's reader")
    started = time.monotonic()
    console = Console(highlight=False, soft_wrap=True)
    folder = _new_folder(out)
    watched = sys.stdin.isatty() and sys.stdout.isatty()
    opens = watched and has_screen()
    make_study(folder)
    built = build_study(load_study(folder))
    study = load_study(folder)
    console.print(f"[bold]1 of 5[/bold]  The study: {study.title} {len(built.items)} item lines in {folder}")
    with ExitStack() as opened:
        store = opened.enter_context(open_store(study.folder))
        server = opened.enter_context(LocalServer(study, store))
        links = server.links
        console.print(
            "[bold]2 of 5[/bold]  The server. Watch it fill on the dashboard (the link is good once):"
        )
        console.print(f"        {links.sessions}")
        if opens:
            webbrowser.open(links.sessions)
        _people(console, study, links, pause=PAUSE_TO_WATCH if watched else 0.0)
        _models(console, study, store)
        report = _report(console, study, store)
        console.print(f"        {report}")
        console.print(f"        Everything so far took {time.monotonic() - started:.0f} seconds.")
        if opens:
            webbrowser.open(report.as_uri())
        if watched:
            report = _visit(console, study, store, links, report, opens=opens)
    _farewell(study.folder, report)


def _new_folder(out: Path | None) -> Path:
    from stimuli.errors import UserError

    if out is not None:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UserError(f"{out} exists and is not empty", mend="Name a new folder with --out.")
        out.mkdir(parents=True, exist_ok=True)
        return out
    names = itertools.chain([DEFAULT], (f"{DEFAULT}-{number}" for number in itertools.count(2)))
    folder = next(Path(name) for name in names if not Path(name).exists())
    folder.mkdir()
    return folder


def _people(console: Console, study: Study, links: Links, *, pause: float) -> None:
    from experiment.demo.tour import fill

    console.print(
        f"[bold]3 of 5[/bold]  {READERS} simulated readers take part through the real interface (simulated: not data)"
    )
    count = itertools.count(1)
    with WorkProgress("readers") as progress:

        def told(_: int) -> None:
            progress.draw("        simulated", next(count), READERS)

        acknowledged = fill(study, links, readers=READERS, pause=pause, told=told)
    console.print(f"        {acknowledged} trials acknowledged, each on disk before it was")


def _models(console: Console, study: Study, store: Store) -> None:
    from experiment.models.runs.orchestrator import version_of

    console.print("[bold]4 of 5[/bold]  The same lists for a small built-in language model and two baselines")
    version = version_of(study, store)
    for name, settings in study.models.items():
        outcome = _one_model(study, store, name, version)
        console.print(
            f"        {name:<14}{outcome.answered} trials in {outcome.sessions} sessions ({settings['use']})"
        )


def _one_model(study: Study, store: Store, name: str, version: int) -> RunOutcome:
    from experiment.models.runs.orchestrator import run_model

    with WorkProgress("trials") as progress:

        def told(done: int, total: int, statuses: Mapping[str, int]) -> None:
            progress.draw(f"        {name}", done, total)

        return run_model(study, name, study.models[name], store, version=version, progress=told)


def _report(console: Console, study: Study, store: Store) -> Path:
    from analysis import load
    from analysis.report import write_report
    from experiment.exporting.export import hand_over

    console.print("[bold]5 of 5[/bold]  The report")
    tables = load(hand_over(study, store, study.folder / "handover"))

    def told(lines: str) -> None:
        console.print(indent(lines, " " * 8), markup=False, highlight=False, soft_wrap=True)

    page = write_report(tables, study.folder / "reports", told=told)
    return page.resolve()


def _visit(console: Console, study: Study, store: Store, links: Links, report: Path, *, opens: bool) -> Path:
    """Wait for visitors; after each, rewrite the report with their answers added to its figures."""
    from experiment.demo.tour import finished_pilots

    console.print(
        "\n[bold]Be one more reader[/bold]: ninety seconds, stored as a pilot, laid over the figures, in no model:"
    )
    console.print(f"        {links.take_part}")
    console.print("        Waiting for you; Ctrl-C ends the demonstration.")
    seen = finished_pilots(study, store)
    try:
        while True:
            time.sleep(VISIT_POLL_S)
            if finished_pilots(study, store) > seen:
                seen = finished_pilots(study, store)
                console.print("        Thank you. Your answers are being laid over the figures …")
                report = _report(console, study, store)
                if opens:
                    webbrowser.open(report.as_uri())
                console.print(f"        {report}\n        Once more: {links.take_part}\n        or Ctrl-C.")
    except KeyboardInterrupt:
        return report


def _farewell(folder: Path, report: Path) -> None:
    click.echo(f"\nMade in {folder}:")
    click.echo("  study.yaml     the design, to read and to change")
    click.echo("  items.jsonl    the items, every word in every condition")
    click.echo("  study.db       sessions and trials")
    click.echo("  handover/      the tables for analysis")
    click.echo(f"  {report.relative_to(folder.resolve())}   the report: open {report.as_uri()}")
    click.echo("Simulated readers and baselines are not data. Next, create your own study:")
    # without an active environment its bare name is not on the path
    command = "wrods" if shutil.which("wrods") else shlex.quote(sys.argv[0])
    click.echo(f"  {command} new my-study --from your-own")


@click.command()
@click.argument("study", type=PATH)
@option("--readers", "Number of readers.", default=20, show_default=True, type=click.IntRange(1, 100_000))
@option(
    "--truth FILE",
    "JSON file that specifies their effects.  [default: simulated.json in the study]",
    type=PATH,
)
def simulate(study: Path, readers: int, truth: Path | None) -> None:
    """Let simulated readers take part in a study.

    They answer through a temporary local server, as participants' browsers do. A JSON file specifies their effects on accuracy
    and time; every template includes one. Their sessions are marked and never count as data: use them to rehearse a study and
    to check whether its analysis recovers the simulated effects. Run the command again to add the same number of readers.

    Example: wrods simulate my-study --readers 40
    """
    from experiment.checking import load_study
    from experiment.cli.study_store import own_store
    from experiment.exporting.dictionary import TRUTH_FILE
    from experiment.people.app import LocalServer
    from experiment.simulated import StudyEntrance, begin_at, fill, read_truth

    loaded = load_study(study)
    _ = loaded.items
    given = read_truth(truth or loaded.folder / TRUTH_FILE, loaded)
    with own_store(loaded) as store:
        first = begin_at(store, loaded.id)
        with LocalServer(loaded, store) as server, WorkProgress("readers") as progress:
            count = itertools.count(1)
            done = fill(
                loaded,
                given,
                StudyEntrance(server.links.api, server.links.simulated),
                range(first, first + readers),
                told=lambda _: progress.draw(loaded.id, next(count), readers),
            )
    click.echo(
        f"{counted(readers, 'simulated reader')} answered {counted(done, 'trial')}; all are stored and marked as simulated."
    )
    tell_report(loaded, study)
