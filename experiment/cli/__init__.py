"""The command line ``wrods COMMAND``: files of one or a few commands, loaded on use.

Errors that a user can fix have no traceback.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from keyword import iskeyword
from typing import NoReturn

import click

from experiment.version import installed_version
from stimuli.errors import UserError

SECTIONS: dict[str, tuple[str, ...]] = {
    "Design": ("new", "check", "build", "trust", "preview", "scramble", "power", "freeze"),
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

FILES = {
    "analyse": "report",
    "build": "check",
    "import": "import_",
    "preview": "serve",
    "reconcile": "invite",
    "reproduce": "report",
    "restore": "backup",
    "simulate": "demo",
}
"""Files of the commands whose file has another name."""

WHOLE_SENTENCE = 200
"""Characters that suffice for the first sentence of any command's help."""

MENDS: dict[int, str] = {
    errno.ENOSPC: "Free some space, then give the same command again.",
    errno.EDQUOT: "Free some space of your quota, then give the same command again.",
    errno.EACCES: "Choose a place that is yours to write to, or change its permissions.",
    errno.EPERM: "Choose a place that is yours to write to, or change its permissions.",
    errno.EROFS: "Choose a place that can be written to.",
    errno.ENOENT: "Check the path; the folder above it must exist and take new files.",
    errno.ENOTDIR: "Check the path; a part of it is a file where a folder is needed.",
    errno.EISDIR: "Check the path; it is a folder where a file is needed.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EMFILE: "Close other programs or raise the limit of open files (ulimit -n).",
    errno.EIO: "The disk may be failing or disconnected: check it, then give the same command again.",
}
_NUMBERED = re.compile(r"\[errno (\d+)\]", re.IGNORECASE)


class Commands(click.Group):
    """The commands by section, each imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return command names in the order of the help page."""
        return [name for names in SECTIONS.values() for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command from its file."""
        if cmd_name not in self.list_commands(ctx):
            return None
        file = import_module(f".{FILES.get(cmd_name, cmd_name)}", __package__)
        command = getattr(file, f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or raise an error with the nearest name if it is misspelt."""
        from stimuli.errors import nearest

        name = args[0]
        if name not in self.list_commands(ctx) and not name.startswith("-"):
            close = nearest(name, self.list_commands(ctx))
            hint = f" Did you mean `wrods {close}`?" if close else ""
            raise click.UsageError(f"There is no command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands grouped by task."""
        for section, names in SECTIONS.items():
            rows = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(section):
                formatter.write_dl(
                    [(name, command.get_short_help_str(WHOLE_SENTENCE)) for name, command in rows if command]
                )

    def invoke(self, ctx: click.Context) -> object:
        """Run a command; for an error that a user can fix, print it and exit with its code."""
        try:
            return super().invoke(ctx)
        except UserError as error:
            _leave_with(error)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            _leave_with(as_user_error(error))
        except KeyboardInterrupt:
            click.echo("Stopped. Finished work is stored; run the same command to resume.", err=True)
            sys.exit(1)


def _leave_with(error: UserError) -> NoReturn:
    from experiment.cli.terminal import print_error

    print_error(error)
    sys.exit(error.exit_code)


def as_user_error(error: OSError) -> UserError:
    """Return an operating system error as a UserError with file, reason and remedy.

    ``error``: also ``shutil.Error``, which combines several, and errors of pyarrow, which have the number in their text.
    """
    number, file, text = _first_cause(error)
    reason = os.strerror(number) if number else text
    place = f"{file}: " if file else ""
    mend = MENDS.get(number or 0, "Check the disk and the path, then give the same command again.")
    return UserError(f"{place}{reason[:1].lower()}{reason[1:]}", mend=mend, exit_code=1)


def _first_cause(error: OSError) -> tuple[int | None, str | None, str]:
    """Return number, file and message of an error, from its text if necessary."""
    if error.errno is not None:
        files = [str(name) for name in (error.filename, error.filename2) if name is not None]
        return error.errno, " → ".join(files) or None, str(error)
    for file, words in _gathered(error):
        return _number_in(words), file, words
    words = str(error).strip() or type(error).__name__
    return _number_in(words), None, words.splitlines()[0]


def _gathered(error: OSError) -> Iterator[tuple[str, str]]:
    """Yield target and reason of each file that ``shutil`` could not copy."""
    if error.args and isinstance(error.args[0], list):
        for failure in error.args[0]:
            if isinstance(failure, tuple) and len(failure) == 3:
                yield str(failure[1]), str(failure[2])


def _number_in(words: str) -> int | None:
    match = _NUMBERED.search(words)
    return int(match[1]) if match else None


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
