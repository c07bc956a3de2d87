"""``wrods trust``: shows the files of a study's own trial types and records the user's consent to run them."""

from __future__ import annotations

from pathlib import Path

import click

from experiment.cli.terminal import PATH


@click.command()
@click.argument("study", metavar="STUDY", type=PATH)
def trust(study: Path) -> None:
    """Agree to run the code of a study's own trial types.

    Lists each file under trial_types/ with its SHA-256 and asks. A plugin runs in participants' browsers with everything
    that the study's page can do; a prompt and a parser run on this computer, in sandboxes. Read them first.

    Your consent is kept in your configuration folder, for exactly these files: after any change, `wrods serve`, `preview`
    and `run` refuse the study until you agree again. See docs/own-trials.md.

    Example: wrods trust my-study
    """
    from experiment.checking import load_study
    from experiment.trust import agree, consents, files_of, trust_file
    from stimuli.errors import UserError

    loaded = load_study(study)
    files = files_of(loaded)
    if not files:
        raise UserError(
            f"{loaded.folder} has no trial types of its own",
            mend="Nothing needs your consent: run the study.",
        )
    known = consents()
    before = {entry["file"] for entry in known.values() if entry["study"] == loaded.id}
    for path, digest in files.items():
        state = "agreed" if digest in known else "CHANGED" if path in before else "new"
        lines = len((loaded.folder / path).read_text("utf-8").splitlines())
        click.echo(f"{state:<8} {path} ({lines} lines)")
        click.echo(f"         {digest}")
    if all(digest in known for digest in files.values()):
        click.echo("You have agreed to these files already.")
        return
    if not click.confirm("Have you read them, and may they run?"):
        raise UserError("nothing was agreed to", mend="The study cannot run until you agree.", exit_code=1)
    agree(loaded)
    click.echo(f"Agreed; recorded in {trust_file()}.")
