"""The command line: ``wrods COMMAND``. One file per command, loaded on use; errors that a user can fix have no traceback."""

from __future__ import annotations

import errno
import sys
from importlib import import_module
from keyword import iskeyword
from typing import NoReturn

import click

from experiment.version import installed_version
from stimuli.errors import UserError

SECTIONS: dict[str, tuple[str, ...]] = {
    "Design": ("new", "check", "build", "preview", "scramble", "power", "freeze"),
    "Collect": (
        "demo",
        "serve",
        "invite",
        "reconcile",
        "import",
        "simulate",
        "tune",
        "run",
        "status",
        "score",
        "user",
    ),
    "Analyse": ("report", "analyse", "fit", "reproduce"),
    "Maintenance": ("export", "backup", "restore", "withdraw"),
}

WHOLE_SENTENCE = 200
"""Characters that are room for the first sentence of any command's help."""


class Commands(click.Group):
    """The commands by section; each is imported only when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return command names in the order of the help page."""
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command's file."""
        if cmd_name not in self.list_commands(ctx):
            return None
        name = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command = getattr(import_module(f".{name}", __package__), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Name the nearest command where one is misspelt."""
        from stimuli.errors import nearest

        name = args[0]
        if name not in self.list_commands(ctx) and not name.startswith("-"):
            close = nearest(name, self.list_commands(ctx))
            hint = f" Did you mean `wrods {close}`?" if close else ""
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands grouped by what a user is doing."""
        for section, names in SECTIONS.items():
            rows = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(section):
                formatter.write_dl(
                    [(name, command.get_short_help_str(WHOLE_SENTENCE)) for name, command in rows if command]
                )

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; print an error that a user can fix, and exit with its code."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            _leave_with(error)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            from experiment.cli.os_errors import as_user_error

            _leave_with(as_user_error(error))
        except KeyboardInterrupt:
            click.echo("Stopped. Finished work is stored; run the same command to resume.", err=True)
            sys.exit(1)


def _leave_with(error: UserError) -> NoReturn:
    click.echo(click.style("Error: ", fg="red", bold=True) + str(error), err=True)
    sys.exit(error.exit_code)


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Start with `wrods demo`, then `wrods new my-study --from your-own`.",
)
@click.version_option(installed_version(), prog_name="wrods")
def main() -> None:
    """People and language models, one experiment.

    wrods builds scrambled-text and H-TEST items, runs them in timed sessions with people in a browser and with language
    models, and compares the two with mixed-effects models.
    """
