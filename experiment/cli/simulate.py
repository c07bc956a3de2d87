"""``wrods simulate``: simulated readers with known effects take part in a study."""

from __future__ import annotations

import itertools
from pathlib import Path

import click

from experiment.cli.progress import WorkProgress
from experiment.cli.terminal import tell_report
from stimuli.audit.findings import counted


@click.command()
@click.argument("study", type=click.Path(path_type=Path))
@click.option(
    "--readers", default=20, show_default=True, type=click.IntRange(1, 100_000), help="Number of readers."
)
@click.option(
    "--truth",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="JSON file that specifies their effects.  [default: simulated.json in the study]",
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
    from experiment.simulated import begin_at, fill, read_truth

    loaded = load_study(study)
    _ = loaded.items
    given = read_truth(truth or loaded.folder / TRUTH_FILE)
    with own_store(loaded) as store:
        first = begin_at(store, loaded.id)
        with LocalServer(loaded, store) as server, WorkProgress("readers") as progress:
            count = itertools.count(1)
            done = fill(
                loaded,
                given,
                server.links.api,
                server.links.simulated,
                readers=readers,
                first=first,
                told=lambda _: progress.draw(loaded.id, next(count), readers),
            )
    click.echo(
        f"{counted(readers, 'simulated reader')} answered {counted(done, 'trial')}; all are stored and marked as simulated."
    )
    tell_report(loaded, study)
