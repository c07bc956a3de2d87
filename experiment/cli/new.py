"""``wrods new``: creates a study folder."""

from __future__ import annotations

import re
import shlex
import shutil
import unicodedata
from pathlib import Path

import click

from experiment.cli.terminal import PATH, option
from experiment.templates import (
    ABOUT_FILE,
    consent_form,
    data_path,
    filled,
    part_named,
    parts_of,
    template_folders,
    templates,
)
from experiment.templates import FILE as CONSENT
from stimuli.errors import UserError, unknown_name

_EXAMPLE = """\b
Examples:
  wrods new my-study --from letter-position
  wrods new recover --from scrambled-bench --part scrrec --data data/realtimeqa
"""
_PLAIN = ("ss", "ae", "oe", "o", "d", "d", "h", "i", "l", "n", "th")
WITHOUT_MARKS = str.maketrans(dict(zip("ßæœøđðħıłŋþ", _PLAIN, strict=True)))
"""Letters of Latin alphabets that Unicode does not decompose into a plain letter and a mark."""


@click.command(epilog=_EXAMPLE)
@click.argument("directory", metavar="DIR", required=False, type=PATH)
@option("--from TEMPLATE", "What to start from.", name="template", default="your-own", show_default=True)
@option("--part PART", "Which study, of a template that is a set of studies.")
@option(
    "--data PATH", "Your copy of the data set that the template needs, or a folder of several.", type=PATH
)
@option(
    "--corrected",
    "A paper's study as the paper describes it, errors corrected; otherwise as released, errors included.",
)
@option("--list", "List the templates and their parts.", name="list_them")
def new(
    directory: Path | None,
    template: str,
    part: str | None,
    data: Path | None,
    corrected: bool,
    list_them: bool,
) -> None:
    """Make a study folder to start from.

    The folder's name becomes the study's id. Nothing that exists is overwritten.
    """
    if list_them:
        for name, about in templates().items():
            click.echo(f"{name:<18}{about}")
            parts = parts_of(name)
            width = max(map(len, parts), default=0) + 2
            for part_name, template_part in parts.items():
                click.echo(f"  --part {part_name:<{width}}{template_part.about}")
        return
    if directory is None:
        raise UserError("no folder is named", mend="Say where: wrods new my-study --from your-own")
    copy_template(template, directory, part=part, data=data, corrected=corrected)
    source = template if part is None else f"{template}, part {part}"
    click.echo(f"Made {directory} from {source}.")
    named = shlex.quote(str(directory))
    click.echo(
        f"Next: edit {directory / 'study.yaml'}, then `wrods check {named}` and `wrods build {named}`."
    )
    click.echo(f"Before people take part, complete the consent form in {directory / CONSENT}.")


def copy_template(
    template: str,
    directory: Path,
    *,
    part: str | None = None,
    data: Path | None = None,
    corrected: bool = False,
) -> None:
    """Copy a template into a new folder and name the study after the folder."""
    if template not in templates():
        raise unknown_name("template", template, templates())
    chosen = part_named(template, part)
    if chosen is None and (data is not None or corrected):
        raise UserError(
            f"template {template} takes neither --data nor --corrected",
            mend="Leave them out; edit study.yaml.",
        )
    if chosen is not None and chosen.folder and corrected:
        raise UserError(
            f"template {template} has no published form", mend="Leave --corrected out; edit study.yaml."
        )
    path = "" if chosen is None else data_path(chosen, data, directory)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise UserError(f"{directory} exists and is not empty", mend="Name a new folder.")
    missing = [folder for folder in (directory, *directory.parents) if not folder.exists()]
    created = missing[-1] if missing else None
    try:
        source, parts = template_folders()[template], parts_of(template).values()
        others = [ABOUT_FILE, *(f"{part.name}.yaml" for part in parts), *(part.folder for part in parts)]
        _lay(source, directory, *others)
        if chosen is not None:
            if chosen.folder:
                _lay(source / chosen.folder, directory)
            text = (source / f"{chosen.name}.yaml").read_text("utf-8")
            (directory / "study.yaml").write_text(filled(text, path, corrected=corrected), "utf-8")
        form = directory / CONSENT
        form.parent.mkdir(exist_ok=True)
        form.write_text(consent_form(template, None if chosen is None else chosen.name), "utf-8")
        study_id = id_of(directory.resolve().name) or template
        file = directory / "study.yaml"
        text = file.read_text("utf-8")
        file.write_text(re.sub(r"(?m)^study: \S+", f"study: {study_id}", text, count=1), "utf-8")
    except BaseException:
        _take_away(directory, created)
        raise


def _lay(source: Path, directory: Path, *others: str) -> None:
    """Copy a folder's files into another one, except those named."""
    left = shutil.ignore_patterns("__pycache__", "*.py", *filter(None, others))
    shutil.copytree(source, directory, dirs_exist_ok=True, ignore=left)


def id_of(name: str) -> str:
    """Return a folder's name as a study's id: lower-case letters without marks, digits, ``-`` and ``_``; may be empty."""
    letters = unicodedata.normalize("NFKD", name.lower().translate(WITHOUT_MARKS))
    plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return re.sub(r"[^a-z0-9_-]+", "-", plain).strip("-_")[:64].rstrip("-_")


def _take_away(directory: Path, created: Path | None) -> None:
    """Remove an incomplete study, so that the command can be repeated; an existing folder stays, empty."""
    for path in [created] if created is not None else list(directory.iterdir()):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
