"""What the audit found, in the words of the person who has to mend it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Level = Literal["grave", "mend", "look"]
LEVELS: tuple[Level, ...] = ("grave", "mend", "look")


@dataclass(frozen=True)
class Finding:
    """One thing found."""

    # grave: results could not be trusted (one text under two answers, test texts among the exemplars); mend: a
    # confound that a reviewer would ask about; look: to be judged by a person
    level: Level
    section: str  # section of the page that holds the details
    text: str  # one sentence

    def line(self) -> str:
        """Return the finding as a line for the command line."""
        return f"{self.level}: {self.text}"


def worst_first(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return findings with the grave ones first, else in their order."""
    return tuple(sorted(findings, key=lambda one: LEVELS.index(one.level)))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: ``1 item``, ``2 items``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def quoted(texts: Sequence[str], most: int = 3) -> str:
    """Return the first few texts in quotation marks, and how many more there are."""
    shown = ", ".join(f"“{text}”" for text in texts[:most])
    return shown + (f" and {len(texts) - most} more" if len(texts) > most else "")
