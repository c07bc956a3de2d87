"""``wrods scramble``: scrambles text (lines, or a field of JSONL) to standard output, with a report on standard error."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

import click
from click.core import ParameterSource

from experiment.cli.terminal import PATH, option
from stimuli.corpora.corpus import json_object
from stimuli.errors import UserError, did_you_mean
from stimuli.scramble.alignment import count_asked, count_made
from stimuli.scramble.changes import Change
from stimuli.scramble.conditions import Scrambled, ScrambleSettings
from stimuli.scramble.letter_forms import OTHER_SCRIPT
from stimuli.scramble.published import describe, published_operation, published_pass
from stimuli.scramble.text import scramble_stream
from stimuli.scramble.types import Operation, checked_rate, parse_operation, scramble_types
from stimuli.words import WITHOUT_SPACES, word_starts

_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_ENDS = (b"\r\n", b"\n")


@dataclass
class InputLine:
    """One line: number, JSON object if any, text (None for an empty line of JSONL), and line end."""

    number: int
    record: dict[str, Any] | None
    field: str | None
    text: str | None
    ended: bytes = b"\n"

    def write(self, out: IO[bytes], shown: str | None) -> None:
        """Write the line with another text, otherwise unchanged."""
        if self.record is not None and self.field is not None:
            whole = {**self.record, self.field: shown}
            shown = json.dumps(whole, ensure_ascii=False)
            if not shown.isascii() and _SURROGATE.search(shown):
                shown = json.dumps(
                    whole
                )  # an unpaired surrogate is not valid UTF-8, but JSON can represent it
        out.write((shown or "").encode("utf-8") + self.ended)


@dataclass
class LineSource:
    """A source of lines; an unreadable line ends the work after those before it are written."""

    file: Path | None
    field: str | None
    read: int = 0

    def lines(self) -> Iterator[InputLine]:
        """Yield the lines."""
        where = self._where()
        with ExitStack() as open_files:
            ended = b"\n"
            stream = sys.stdin.buffer if self._is_stdin() else open_files.enter_context(self._open())
            for number, raw in enumerate(stream, 1):
                line = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
                self.read = number
                # a last line without a line end gets that of the lines before it
                ended = next((mark for mark in _LINE_ENDS if line.endswith(mark)), ended)
                line = line.removesuffix(ended)
                try:
                    input_line = self._read(number, line, f"{where}, line {number}")
                except UserError as error:
                    mend = f"{error.mend or ''} Lines before it are written.".strip()
                    raise UserError(error.message, mend=mend) from None
                yield replace(input_line, ended=ended)

    def _read(self, number: int, line: bytes, where: str) -> InputLine:
        if self.field is None:
            return InputLine(number, None, None, _decoded(line, where))
        if not line.strip():
            return InputLine(number, None, self.field, None)
        record = json_object(line, where)
        if self.field not in record:
            hint = did_you_mean(self.field, record)
            raise UserError(
                f"{where}: field {self.field!r} is missing",
                mend=f"{hint}Say which field with --field; there are: {', '.join(record) or 'none'}.",
            )
        text = record[self.field]
        if not isinstance(text, str):
            raise UserError(
                f"{where}: field {self.field!r} holds no text but {json.dumps(text)[:60]}",
                mend='Write a text there ("" for none), or name another field with --field.',
            )
        return InputLine(number, record, self.field, text)

    def tell_empty(self) -> None:
        """Report on standard error that there was no line."""
        if not self.read:
            click.echo(f"{self._where()} is empty: nothing to scramble", err=True)

    def _where(self) -> str:
        return "standard input" if self._is_stdin() else str(self.file)

    def _is_stdin(self) -> bool:
        return self.file is None or str(self.file) == "-"

    def _open(self) -> IO[bytes]:
        assert self.file is not None
        try:
            return self.file.open("rb")
        except FileNotFoundError:
            raise UserError(
                f"{self.file} does not exist", mend="Check the name, or pipe the text in."
            ) from None
        except (IsADirectoryError, PermissionError) as error:
            raise UserError(
                f"{self.file} cannot be read: {error.strerror}", mend="Name a text file that you may read."
            ) from None


def _decoded(line: bytes, where: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{where}: byte {error.start + 1} ({line[error.start]:#04x}) is not UTF-8",
            mend="Save the text as UTF-8.",
        ) from None


CORRECTED_SEED = 1
CORRECTED_ONLY = ("language", "texts", "changes")


@click.command()
@option(
    "--type T",
    "Such as shuffle:all, keep:first_and_last, transpose:internal(distance=2), delete:internal(count=3), "
    "words:shuffle, or a paper's name: RS, KFL, REO-INT_2, RS-50; --list shows all.",
    name="kind",
)
@option("--list", "Show every type with its options and other names.", name="show_list")
@option(
    "--rate R",
    "Share of the eligible words (sentences, where words move) to change, 0 to 1.  [default: 1]",
    type=float,
)
@option(
    "--texts S",
    "Share of the lines to change, 0 to 1; each line has its own draw, so the share is met on average only "
    "(--summary reports how many).  [default: 1]",
    type=float,
)
@option("--seed N", "Same seed, same result.  [default: 1; published: the paper's]", type=int)
@option(
    "--mode",
    "published: as the code of Cao et al. (2023) or TypoBench (2024) did it, one pass over all lines in order.",
    type=click.Choice(["corrected", "published"]),
    default="corrected",
    show_default=True,
)
@option("--field F", "Scramble this field; each line is a JSON object.")
@option("--language", "Language tag, for letters, capitals and real words.", default="en", show_default=True)
@option(
    "--changes FILE",
    "Write what changed, as JSONL: line, changes with their permutations (and of types with a count how many "
    "were made), words left intact.",
    type=click.Path(path_type=Path, dir_okay=False),
)
@option(
    "--summary",
    "Tell on standard error how much changed, and what did not and why; with --mode published, what is copied.",
)
@click.argument("file", required=False, type=PATH)
def scramble(file: Path | None, **options: Any) -> None:
    """Scramble text, one text per line, from FILE or standard input.

    A line's result depends only on the seed and the line (and on how often the same line occurred before), not on the
    lines around it; with --mode published it depends on all lines before it, as in the papers.

    Example: wrods scramble --type KFL --rate 0.5 --seed 7 story.txt
    """
    given = SimpleNamespace(**options)
    if given.show_list:
        click.echo(type_list())
        return
    if given.kind is None:
        raise UserError(
            "--type is missing", mend="Say what to do, such as --type KFL; --list shows every type."
        )
    source = LineSource(file, given.field)
    if given.mode == "published":
        out = sys.stdout.buffer
        _refuse_corrected_only(click.get_current_context())
        operation = published_operation(given.kind, rate=given.rate)
        lines = list(source.lines())
        shown = iter(
            published_pass([line.text for line in lines if line.text is not None], operation, seed=given.seed)
        )
        for line in lines:
            line.write(out, None if line.text is None else next(shown))
        source.tell_empty()
        if given.summary or (operation.protocol is not None and operation.protocol.stand_in):
            click.echo(describe(given.kind), err=True)
        return
    chosen = parse_operation(given.kind, rate=given.rate)
    if given.texts is not None:
        chosen = replace(chosen, texts=checked_rate(given.texts, "texts"))
    settings = ScrambleSettings(language=given.language)
    summary = ChangeSummary(chosen, given.summary)
    changes_letters = chosen.type.unit == "letter" and not chosen.changes_nothing
    if changes_letters and settings.strictness == "off":
        click.echo(
            f"no word list for language {given.language!r}: changed forms that are words are not avoided",
            err=True,
        )
    with ExitStack() as open_files:
        record = (
            None
            if given.changes is None
            else open_files.enter_context(given.changes.open("w", encoding="utf-8"))
        )
        _scramble_lines(
            source,
            chosen,
            CORRECTED_SEED if given.seed is None else given.seed,
            settings,
            record,
            summary,
        )
    source.tell_empty()
    summary.tell()


def _scramble_lines(
    source: LineSource,
    operation: Operation,
    seed: int,
    settings: ScrambleSettings,
    record: IO[str] | None,
    summary: ChangeSummary,
) -> None:
    out = sys.stdout.buffer
    waiting: list[InputLine] = []

    def texts() -> Iterator[str]:
        for line in source.lines():
            if line.text is None:
                line.write(out, None)
            else:
                waiting.append(line)
                yield line.text

    for result in scramble_stream(texts(), operation, seed=seed, settings=settings):
        line = waiting.pop()
        line.write(out, result.text)
        summary.count(line, result)
        if record is not None:
            entry = {
                "line": line.number,
                "changes": [_recorded(change, summary.asked) for change in result.changes],
                "left_intact": [left._asdict() for left in result.left_intact],
            }
            record.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")


def _recorded(change: Change, requested: int | None) -> dict[str, Any]:
    return change._asdict() | ({} if requested is None else {"made": count_made(change), "asked": requested})


def type_list() -> str:
    """Return every type with its effect, options and other names, as text."""
    parts = []
    for kind in scramble_types().values():
        also = [*kind.aliases, *(preset.name for preset in kind.presets)]
        options = [
            f"{option.name} ({option.values}; default {str(option.default).lower()})"
            for option in kind.options
        ]
        parts.append(
            "\n".join(
                [
                    kind.name + (f"   also: {', '.join(also)}" if also else ""),
                    f"    {kind.operation}, unit {kind.unit}: {kind.eligibility}",
                    *([f"    options: {', '.join(options)}"] if options else []),
                    f"    source: {kind.source}",
                ]
            )
        )
    return "\n".join(parts)


def _refuse_corrected_only(ctx: click.Context) -> None:
    for name in CORRECTED_ONLY:
        if ctx.get_parameter_source(name) != ParameterSource.DEFAULT:
            raise UserError(
                f"--{name.replace('_', '-')} has no say with --mode published",
                mend="Leave it out, or use --mode corrected.",
            )


_WAYS_OUT = {
    WITHOUT_SPACES: " (unspaced=change takes each run as one word)",
    OTHER_SCRIPT: " (--language says whose letters come in)",
}


@dataclass
class ChangeSummary:
    """Counts changes for the summary."""

    operation: Operation
    wanted: bool
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
        """Number of exchanges, insertions or deletions that the operation requests."""
        return count_asked(self.operation)

    def count(self, line: InputLine, result: Scrambled) -> None:
        """Add a line to the counts."""
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
        """Print the summary if requested, or else only what a user would not expect."""
        if self.wanted:
            self._tell_summary()
        elif self.asked is not None:
            for n_made, words in sorted(self.made.items()):
                if n_made != self.asked:
                    click.echo(f"made {n_made} of {self.asked}: {words:,} words", err=True)
            for reason, number in self.reasons.items():
                if "fewer than" in reason:
                    click.echo(
                        f"{number:,} words stay as they are: each {reason} (fewer=make makes as many as it can)",
                        err=True,
                    )
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
        units = {"letter": "words", "word": "sentences", "sentence": "texts"}[operation.type.unit]
        mean = self.displacement / self.changed if self.changed else 0.0
        click.echo(
            f"{operation.label}: {self.lines:,} lines, {self.words:,} words; {self.changed:,} {units} changed, "
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
        for n_made, words in sorted(self.made.items()):
            click.echo(f"made {n_made} of {self.asked}: {words:,} words", err=True)
        for reason, number in self.reasons.most_common():
            click.echo(f"left intact, {reason}: {number:,}{_WAYS_OUT.get(reason, '')}", err=True)

    def _why_unchanged(self) -> str:
        if self.first_reasons:
            return ", ".join(self.first_reasons)
        operation, unit = self.operation, self.operation.type.unit
        if unit != "letter":
            return f"{operation.name} changes {operation.type.eligibility}"
        return f"no word of {operation.min_letters} or more letters, the fewest that {operation.name} changes"


def _reasons(result: Scrambled) -> list[str]:
    return [part.rpartition(": ")[2] for left in result.left_intact for part in left.reason.split("; ")]
