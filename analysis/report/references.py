"""Reads the references that reports may cite, and writes those that a report does cite: in APA style and as BibTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from markupsafe import Markup, escape

from stimuli.errors import unknown_name

_ENTRY = re.compile(r"^@(\w+)\{([^,\s]+),(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"(\w+)\s*=\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")
"""A field and its value, in which braces are nested twice at most."""
_ACCENTS = {
    '{\\"a}': "ä", '{\\"e}': "ë", '{\\"o}': "ö", '{\\"u}': "ü", "{\\'e}": "é", "{\\'a}": "á", "{\\'E}": "É", "{\\'o}": "ó",
    "{\\'i}": "í", "{\\~n}": "ñ", "{\\c c}": "ç", "{\\c{c}}": "ç", "{\\ss}": "ß", "{\\o}": "ø", "{\\v{c}}": "č",
    "\\&": "&", "\\%": "%", "---": "—", "--": "–", "~": "\u00a0", "{": "", "}": "",
}  # fmt: skip
"""What BibTeX writes for letters and signs, in the order in which it is read."""


@dataclass(frozen=True)
class Reference:
    """One entry of a bibliography."""

    key: str
    kind: str
    fields: dict[str, str]
    source: str

    @property
    def year(self) -> str:
        """The year, or ``n.d.``."""
        return self.fields.get("year", "n.d.")

    @property
    def authors(self) -> list[tuple[str, str]]:
        """Family name and initials of each author; an organisation has no initials."""
        names = []
        for name in re.split(
            r"\s+and\s+", self.fields.get("author") or self.fields.get("editor") or self.key
        ):
            if name.startswith("{") and name.endswith("}"):
                names.append((plain(name), ""))
                continue
            family, _, given = plain(name).partition(", ")
            parts = [_initial(part) for part in given.split()]
            names.append((family, " ".join(parts)))
        return names

    def cited(self) -> str:
        """Write the reference as a sentence cites it: ``Bates et al., 2015``."""
        if "shortauthor" in self.fields:
            return f"{plain(self.fields['shortauthor'])}, {self.year}"
        families = [family for family, _ in self.authors]
        authors = families[0] if len(families) == 1 else " & ".join(families)
        authors = authors if len(families) < 3 else f"{families[0]} et al."
        return f"{authors}, {self.year}"

    def is_cited_in(self, text: str) -> bool:
        """Return whether a text cites it, in parentheses or in running text: ``Bates et al. (2015)``."""
        authors, year = map(re.escape, self.cited().rsplit(", ", 1))
        authors = authors.replace(r"\&", "(?:&|and)")
        return re.search(rf"(?<![\w-]){authors},? \(?{year}(?!\w)", text) is not None

    def apa(self) -> Markup:
        """Write the entry as a list of references has it (APA, 7th edition)."""
        names = [f"{family}, {given}" if given else family for family, given in self.authors]
        authors = names[0] if len(names) == 1 else f"{', '.join(names[:-1])}, & {names[-1]}"
        if len(names) > 20:
            authors = f"{', '.join(names[:19])}, … {names[-1]}"
        title, where = plain(self.fields.get("title", "")), self._where()
        stop = "" if authors.endswith(".") else "."
        alone = self.kind in ("book", "manual", "misc", "software", "phdthesis", "techreport")
        entry = Markup("{}{} ({}). ").format(authors, stop, self.year)
        version = f" (Version {plain(self.fields['version'])})" if "version" in self.fields else ""
        kind = " [Computer software]" if self.kind in ("manual", "software") else ""
        entry += (Markup("<i>{}</i>").format(title) if alone else escape(title)) + version + kind
        entry += "." if title[-1:] not in "?!." else ""
        entry += (Markup(" ") + where) if where else Markup("")
        link = f"https://doi.org/{self.fields['doi']}" if "doi" in self.fields else self.fields.get("url", "")
        return entry + (f" {link}" if link else "")

    def _where(self) -> Markup:
        field = {name: plain(value) for name, value in self.fields.items()}
        if self.kind == "article":
            source = Markup("<i>{}</i>").format(field.get("journal", ""))
            if "volume" in field:
                source += Markup(", <i>{}</i>").format(field["volume"])
                source += f"({field['number']})" if "number" in field else ""
            pages = field.get("pages", "")
            article = "Article " if pages.isalnum() and "–" not in pages else ""
            return source + (f", {article}{pages}." if pages else ".")
        if self.kind in ("inproceedings", "incollection"):
            pages = f" (pp. {field['pages']})" if "pages" in field else ""
            source = Markup("In <i>{}</i>{}.").format(field.get("booktitle", ""), pages)
            return source + (f" {field['publisher']}." if "publisher" in field else "")
        names = ("publisher", "organization", "howpublished", "school")
        by = next((field[name] for name in names if field.get(name)), "")
        return escape(f"{by}.") if by else Markup("")


def _initial(given: str) -> str:
    return "-".join(f"{part[0]}." for part in given.replace("~", " ").split("-") if part)


def plain(text: str) -> str:
    """Read BibTeX's text: braces, accents and dashes."""
    for code, letter in _ACCENTS.items():
        text = text.replace(code, letter)
    return re.sub(r"\s+", " ", text).strip()


def read_bibtex(text: str) -> dict[str, Reference]:
    """Read a bibliography; each entry ends with a brace at the beginning of a line."""
    references: dict[str, Reference] = {}
    for match in _ENTRY.finditer(text):
        kind, key, body = match.groups()
        references[key] = Reference(
            key, kind.lower(), {name.lower(): value for name, value in _FIELD.findall(body)}, match.group(0)
        )
    return references


@cache
def known() -> dict[str, Reference]:
    """Return all references that reports may cite, by key."""
    return read_bibtex(resources.files(__package__).joinpath("references.bib").read_text("utf-8"))


def reference(key: str) -> Reference:
    """Return one reference; a UserError names the nearest key where there is none of this name."""
    if key not in known():
        raise unknown_name("references.bib:", key, known())
    return known()[key]


def cited_in(text: str) -> list[Reference]:
    """Return the known references that a text cites."""
    return [entry for entry in known().values() if entry.is_cited_in(text)]


def written(key: str, kind: str, fields: dict[str, str]) -> Reference:
    """Make a reference from fields; its BibTeX is written from them."""
    given = {name: value for name, value in fields.items() if value}
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in given.items())
    return Reference(key, kind, given, f"@{kind}{{{key},\n{lines}\n}}")


def in_order(references: Iterable[Reference]) -> list[Reference]:
    """Return each reference once, by the names of its authors and its year."""
    once = {entry.key: entry for entry in references}
    return sorted(
        once.values(), key=lambda entry: (*(f.casefold() for f, _ in entry.authors), entry.year, entry.key)
    )


def as_bibtex(references: Iterable[Reference]) -> str:
    """Write a bibliography of these entries."""
    return "\n\n".join(entry.source for entry in references) + "\n"


def cite(key: str) -> str:
    """Write a reference as a sentence cites it."""
    return reference(key).cited()
