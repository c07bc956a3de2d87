"""The consent form of a template: one form for all, with each template's own purpose, task and duration.

Each element has wording that must stay, since it says what the program does or what a form must say, and some have wording that
is recommended. What only the researcher knows is a placeholder (:mod:`experiment.study.texts`).
"""

from __future__ import annotations

import json
import textwrap
from importlib import resources
from typing import Any

FILE = "texts/consent.md"
WIDTH = 120


def consent_source() -> dict[str, Any]:
    """Return ``consent.json``: the form's elements, and the sentences of each template."""
    text = resources.files(__package__).joinpath("consent.json").read_text("utf-8")
    return dict(json.loads(text))


def consent_form(template: str, part: str | None = None) -> str:
    """Return a template's consent form as Markdown."""
    source = consent_source()
    own = source["templates"]
    sentences = own[f"{template}/{part}"] if f"{template}/{part}" in own else own[template]
    paragraphs = [source["first"], f"# {source['title']}"]
    for one in source["elements"]:
        words = " ".join(filter(None, (one["minimum"], one.get("recommended"))))
        for name, sentence in sentences.items():
            words = words.replace(f"{{{name}}}", sentence)
        paragraphs.append(f"**{one['heading']}.** {words}")
    paragraphs.append(source["last"])
    filled = (textwrap.fill(one, WIDTH, break_long_words=False, break_on_hyphens=False) for one in paragraphs)
    return "\n\n".join(filled) + "\n"
