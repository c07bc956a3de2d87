"""Names for files, columns and anchors, made of names that a study gave."""

from __future__ import annotations


def plain(*names: str) -> str:
    """Return names in letters, digits and underscores alone, joined by underscores."""
    return "_".join("".join(sign if sign.isalnum() else "_" for sign in name) for name in names)


def in_words(name: str) -> str:
    """Return a name as running text writes it: blanks in the place of underscores."""
    return name.replace("_", " ")
