"""What ``wrods scramble`` says on standard error of what it changed and what it left."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass, field

import click

from experiment.cli.scramble_lines import Line
from stimuli.scramble import Operation, Scrambled
from stimuli.scramble.doses import count_asked, count_made
from stimuli.scramble.letter_forms import OTHER_SCRIPT
from stimuli.scramble.word_order import WITHOUT_SPACES
from stimuli.scramble.words import word_starts

_WAYS_OUT = {
    WITHOUT_SPACES: " (unspaced=change takes each run as one word)",
    OTHER_SCRIPT: " (--language says whose letters come in)",
}


@dataclass
class Told:
    """Counts what changed, for the summary."""

    operation: Operation
    wanted: bool
    least: int = 0
    lines: int = 0
    with_words: int = 0
    changed_lines: int = 0
    unchanged: int = 0
    first_unchanged: int = 0
    first_reasons: tuple[str, ...] = ()
    words: int = 0
    changed: int = 0
    displacement: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    made: Counter[int] = field(default_factory=Counter)

    @functools.cached_property
    def asked(self) -> int | None:
        """How many exchanges, insertions or deletions the operation asks for."""
        return count_asked(self.operation)

    def count(self, line: Line, result: Scrambled) -> None:
        """Take in one more line."""
        self.lines += 1
        if result.changes:
            self.changed_lines += 1
        elif result.text.strip():
            self.unchanged += 1
            if not self.first_unchanged:
                self.first_unchanged = line.number
                self.first_reasons = tuple(dict.fromkeys(_reasons(result)))
        if self.asked is not None:
            self.made.update(map(count_made, result.changes))
        if self.wanted or self.asked is not None:
            self.reasons.update(_reasons(result))
        if self.wanted:
            words = len(word_starts(line.text or ""))
            self.words += words
            self.with_words += words > 0
            self.changed += len(result.changes)
            self.displacement += sum(change.mean_displacement for change in result.changes)

    def tell(self) -> None:
        """Print the summary where it is wanted, and what nobody would guess where it is not."""
        if self.wanted:
            self._tell_summary()
        elif self.asked is not None:
            self._tell_short_of_count()
        operation = self.operation
        everything = operation.rate == operation.texts == 1 and not operation.changes_nothing
        if everything and self.unchanged:
            lines = f"{self.unchanged:,} lines stay" if self.unchanged > 1 else "1 line stays"
            click.echo(
                f"{lines} as before, the first is line {self.first_unchanged}: {self._why_unchanged()}",
                err=True,
            )

    def _tell_summary(self) -> None:
        operation = self.operation
        what = {"letter": "words", "word": "sentences", "sentence": "texts"}[operation.type.unit]
        mean = self.displacement / self.changed if self.changed else 0.0
        click.echo(
            f"{operation.label}: {self.lines:,} lines, {self.words:,} words; {self.changed:,} {what} changed, "
            f"mean displacement {mean:.3f} over all their {operation.type.unit}s",
            err=True,
        )
        if operation.texts < 1 and self.with_words:
            met = self.changed_lines / self.with_words
            click.echo(
                f"share of lines with words: {operation.texts:g} asked for, {met:.3f} met "
                f"({self.changed_lines:,} of {self.with_words:,})",
                err=True,
            )
        for made, words in sorted(self.made.items()):
            click.echo(f"made {made} of {self.asked}: {words:,} words", err=True)
        for reason, number in self.reasons.most_common():
            click.echo(f"left intact, {reason}: {number:,}{_WAYS_OUT.get(reason, '')}", err=True)

    def _tell_short_of_count(self) -> None:
        """Say, even where no summary is asked for, that words did not take the whole count."""
        for made, words in sorted(self.made.items()):
            if made != self.asked:
                click.echo(f"made {made} of {self.asked}: {words:,} words", err=True)
        for reason, number in self.reasons.items():
            if "fewer than" in reason:
                click.echo(
                    f"{number:,} words stay as they are: each {reason} (fewer=make makes as many as it can)",
                    err=True,
                )

    def _why_unchanged(self) -> str:
        if self.first_reasons:
            return ", ".join(self.first_reasons)
        operation, unit = self.operation, self.operation.type.unit
        if unit != "letter":
            return f"{operation.name} changes {operation.type.eligibility}"
        least = max(operation.min_letters, self.least)
        return f"no word of {least} or more letters, the fewest that {operation.name} changes"


def _reasons(result: Scrambled) -> list[str]:
    return [part.rpartition(": ")[2] for left in result.left_intact for part in left.reason.split("; ")]
