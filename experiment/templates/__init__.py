"""Study folders to start from, copied by `wrods new`.

A template is a folder with ``template.json``: a sentence about it, and the sentences of its consent form. A set of studies also
names its parts, each with a sentence and the usual folder of its data set, and may name the default part. A part is
``PART.yaml`` in the same folder; files that it does not share with all other parts are in the folder that it names. In
``PART.yaml`` ``@DATA@`` stands for the user's copy, a line that ends in ``#-- published`` is only in the published form, and
one that begins with ``#-- corrected:`` only in the corrected form.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from stimuli.errors import UserError, unknown_name
from stimuli.papers import papers

FILE = "texts/consent.md"
WIDTH = 120


def consent_source() -> dict[str, Any]:
    """Return ``consent.json``: the form's elements, without the sentences of a template."""
    text = resources.files(__package__).joinpath("consent.json").read_text("utf-8")
    return dict(json.loads(text))


@cache
def template_folders() -> Mapping[str, Path]:
    """Return the folder of each template by name: our smallest study first, then those of papers."""
    homes = (Path(__file__).parent, *(paper.folder / "templates" for paper in papers().values()))
    return {file.parent.name: file.parent for home in homes for file in sorted(home.glob(f"*/{ABOUT_FILE}"))}


def templates() -> dict[str, str]:
    """Return the templates by name, each with a sentence about it."""
    return {name: str(_told_of(name)["about"]) for name in template_folders()}


def consent_sentences(template: str, part: str | None = None) -> Mapping[str, str]:
    """Return the study-specific sentences of a template's consent form: ``purpose``, ``task`` and ``duration``."""
    of_part = {} if part is None else parts_of(template)[part].consent
    given: Mapping[str, str] = of_part or _told_of(template)["consent"]
    return given


def consent_form(template: str, part: str | None = None) -> str:
    """Return a template's consent form as Markdown."""
    source = consent_source()
    paragraphs = [source["first"], f"# {source['title']}"]
    for element in source["elements"]:
        words = " ".join(filter(None, (element["minimum"], element.get("recommended"))))
        for name, sentence in consent_sentences(template, part).items():
            words = words.replace(f"{{{name}}}", sentence)
        paragraphs.append(f"**{element['heading']}.** {words}")
    paragraphs.append(source["last"])
    filled = (
        textwrap.fill(paragraph, WIDTH, break_long_words=False, break_on_hyphens=False)
        for paragraph in paragraphs
    )
    return "\n\n".join(filled) + "\n"


DATA = "@DATA@"
ABOUT_FILE = "template.json"
_PUBLISHED = re.compile(r"[ \t]*#-- published$")
_CORRECTED = re.compile(r"^(?P<space>[ ]*)#-- corrected: ?")
_PLAIN = re.compile(r"[A-Za-z0-9_./~-]+")


@dataclass(frozen=True)
class TemplateStudy:
    """A study of a template.

    ``data``: usual folder name of the required data set; empty if it needs none; ``folder``: folder of the template with files
    for this study in addition to those of all parts; empty without one; ``consent``: sentences of its consent form, if they
    differ from the template's.
    """

    name: str
    about: str
    data: str = ""
    folder: str = ""
    consent: Mapping[str, str] = field(default_factory=dict)


def parts_of(template: str) -> dict[str, TemplateStudy]:
    """Return the parts of a template by name; empty if it is one study."""
    return {name: TemplateStudy(name, **part) for name, part in _told_of(template).get("parts", {}).items()}


def default_part(template: str) -> str | None:
    """Return the default part; None if one must be named, or the template has no parts."""
    named: str | None = _told_of(template).get("default")
    return named


def _told_of(template: str) -> dict[str, Any]:
    return dict(json.loads((template_folders()[template] / ABOUT_FILE).read_text("utf-8")))


def part_named(template: str, name: str | None) -> TemplateStudy | None:
    """Return the part that a user named; None if the template has no parts."""
    parts = parts_of(template)
    if not parts:
        if name is not None:
            raise UserError(f"template {template} has no parts", mend="Leave --part out.")
        return None
    name = default_part(template) if name is None else name
    if name is None:
        raise UserError(
            f"template {template} is a set of studies: {', '.join(parts)}",
            mend=f"Name one, such as --part {next(iter(parts))}; `wrods new --list` says what each is.",
        )
    if name not in parts:
        raise unknown_name(f"{template}: part", name, parts)
    return parts[name]


def data_path(part: TemplateStudy, given: Path | None, study: Path) -> str:
    """Return the path of a part's data in study.yaml, relative to the study's folder."""
    if not part.data:
        if given is not None:
            raise UserError(f"part {part.name} needs no data", mend="Leave --data out.")
        return ""
    if given is None:
        raise UserError(
            f"part {part.name} needs your copy of {part.data}, which is not part of wrods",
            mend=f"Say where it is: --data PATH/TO/{part.data}",
        )
    if not given.exists():
        raise UserError(f"--data: there is no {given}", mend=f"Give the folder that holds {part.data}.")
    inner = given / part.data
    data = (inner if inner.is_dir() else given).resolve()
    try:
        return Path(os.path.relpath(data, study.resolve())).as_posix()
    except ValueError:  # another drive
        return data.as_posix()


def filled(text: str, path: str, *, corrected: bool) -> str:
    """Return a part's study.yaml with the path of its data, in the published or the corrected form."""
    lines = []
    for line in text.splitlines():
        published, mended = _PUBLISHED.search(line), _CORRECTED.match(line)
        if (published and corrected) or (mended and not corrected):
            continue
        plain = _PUBLISHED.sub("", line)
        lines.append(_CORRECTED.sub(r"\g<space>", plain) if mended else plain)
    quoted = path if _PLAIN.fullmatch(path) else json.dumps(path, ensure_ascii=False)
    return "\n".join(lines).replace(DATA, quoted) + "\n"
