"""``wrods preview``: each screen as a participant sees it, next to the prompt for a model."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path

import click


@click.command()
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
@click.option(
    "--model", metavar="NAME", help="Show the tokens of this local model: its name in the study, or hf:PATH."
)
@click.option(
    "--port", default=8001, show_default=True, type=click.IntRange(0, 65535), help="Port to listen at."
)
def preview(study: Path, model: str | None, port: int) -> None:
    """Show every screen of a study next to the exact prompt that a model gets.

    The items are made in memory from study.yaml as it is now; the page follows when you save. Nothing is stored.

    Example: wrods preview my-study --model hf:Qwen/Qwen3-0.6B
    """
    from experiment.checking import load_study
    from experiment.cli.terminal import has_screen
    from experiment.people.preview import create_preview_app
    from experiment.people.server import StudyServer

    loaded = load_study(study)
    app = create_preview_app(loaded, model)
    server = StudyServer(app, "127.0.0.1", port)
    address = f"http://127.0.0.1:{server.port}/"
    click.echo(click.style("Preview", bold=True) + f" of {loaded.title}: {address}")
    click.echo("Nothing is stored; the page follows when you save. Ctrl-C ends it.")
    sys.stdout.flush()
    if has_screen():
        webbrowser.open(address)
    server.run()
