"""Writes the tables of docs/corpora.md from the registry: ``python -m tests.write_corpora_page``."""

from __future__ import annotations

import re
from pathlib import Path

from stimuli.corpora import Corpus, corpora

PAGE = Path(__file__).resolve().parent.parent / "docs" / "corpora.md"
_BETWEEN = re.compile(r"(?<=<!-- made from the registry -->\n\n).*?(?=\n<!-- end -->)", re.DOTALL)


def corpora_page(page: str) -> str:
    """Return the page with the table of corpora made anew."""
    made = "".join(f"{line}\n" for line in _table())
    return _BETWEEN.sub(lambda _: made, page)


def _table() -> list[str]:
    rows = ["| name | corpus | texts (scrambled first) | licence | splits | selections | on the hub |"]
    rows.append("| " + " | ".join(["---"] * 7) + " |")
    return rows + [_row(corpus) for corpus in corpora().values()]


def _row(corpus: Corpus) -> str:
    others = [field for field in corpus.fields if field != corpus.reading_field]
    splits = [part.split for part in corpus.parts if part.split]
    cells = [
        f"`{corpus.name}`",
        corpus.citation,
        ", ".join(f"`{field}`" for field in (corpus.reading_field, *others)),
        corpus.licence or "none stated",
        ", ".join(f"`{split}`" for split in splits) or "given by the record or by you",
        ", ".join(f"`{name}`" for name in corpus.selections) or "–",
        f"`{corpus.hub.repository}`" if corpus.hub else "–",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(corpora_page(PAGE.read_text("utf-8")), "utf-8")
