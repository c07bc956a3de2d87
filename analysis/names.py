"""Names for files, columns and anchors, made of names that a study gave."""

from __future__ import annotations

from collections.abc import Iterable

from analysis.plan import TIMES

MARK = "\ua788"
"""Letter at the end of a factor's name where a report calculates a column of that name; what is written has the name without it."""


def as_given(text: str) -> str:
    """Return a text with factors under the names that the user gave them."""
    return text.replace(MARK, "")


def plain(*names: str) -> str:
    """Return names in letters, digits and underscores alone, joined by underscores."""
    return "_".join("".join(sign if sign.isalnum() else "_" for sign in name) for name in names)


def in_words(name: str) -> str:
    """Return a name as running text writes it: blanks in the place of underscores."""
    return name.replace("_", " ")


def upper_first(text: str) -> str:
    """Return a text with a capital at its head; Markup stays Markup."""
    return text[:1].upper() + text[1:]


def sentence(text: str) -> str:
    """Return text that begins with a capital and ends with a stop."""
    text = upper_first(text.strip())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def stem_of(factor: str, trials: str | None, within: Iterable[tuple[str, str]]) -> str:
    """Name the means by a factor, of trials of one kind and within levels of other factors, as files are named."""
    return "_".join([*factor.split(TIMES), *([trials] if trials else []), *(plain(*pair) for pair in within)])
