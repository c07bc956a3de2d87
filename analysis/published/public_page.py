"""One HTML page that needs no network: what every page of ``wrods reproduce`` begins and ends with."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from markupsafe import Markup

STYLE = Path(__file__).parents[1] / "report" / "templates" / "style.css"


def public_page(title: str, byline: str, body: Iterable[Markup], style: str = "") -> str:
    """Return a whole page."""
    rules = STYLE.read_text("utf-8")
    head = Markup(
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>{}</title>\n'
        "<style>\n{}\n{}</style></head><body>\n<h1>{}</h1><p class='byline'>{}</p>"
    ).format(title, Markup(rules), Markup(style), title, byline)
    return str(Markup("\n").join([head, *body, Markup("</body></html>")])) + "\n"
