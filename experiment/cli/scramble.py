"""``wrods scramble``: scrambles any text, line by line or a field of JSONL, onto standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import click
from click.core import ParameterSource

from experiment.cli.scramble_lines import Line, Source
from experiment.cli.scramble_told import Told
from stimuli.errors import UserError
from stimuli.scramble import (
    Change,
    Operation,
    ScrambleSettings,
    parse_operation,
    scramble_stream,
    scramble_types,
)
from stimuli.scramble.doses import count_made
from stimuli.scramble.published import describe, published_operation, published_pass
from stimuli.scramble.registry import checked_rate
from stimuli.scramble.text import Capitals

CORRECTED_SEED = 1
CORRECTED_ONLY = ("language", "capitals", "min_letters", "avoid_real_words", "texts", "changes")


@click.command()
@click.option(
    "--type",
    "kind",
    metavar="T",
    help="Such as shuffle:all, keep:first_and_last, transpose:internal(distance=2), delete:internal(count=3), "
    "words:shuffle, or a paper's name: RS, KFL, REO-INT_2, RS-50; --list shows all.",
)
@click.option("--list", "show_list", is_flag=True, help="Show every type with its options and other names.")
@click.option(
    "--rate",
    type=float,
    metavar="R",
    help="Share of the eligible words (sentences, where words move) to change, 0 to 1.  [default: 1]",
)
@click.option(
    "--texts",
    type=float,
    metavar="S",
    help="Share of the lines to change, 0 to 1; each line has its own draw, so the share is met on average only "
    "(--summary tells how many).  [default: 1]",
)
@click.option(
    "--seed", type=int, metavar="N", help="Same seed, same result.  [default: 1; published: the paper's]"
)
@click.option(
    "--mode",
    type=click.Choice(["corrected", "published"]),
    default="corrected",
    show_default=True,
    help="published: as the code of Cao et al. (2023) or TypoBench (2024) did it, one pass over all lines in order.",
)
@click.option("--jsonl", is_flag=True, help="Each line is a JSON object; one field is scrambled.")
@click.option("--field", "name", metavar="F", default="text", show_default=True, help="Field, with --jsonl.")
@click.option(
    "--language", default="en", show_default=True, help="Language tag, for letters, capitals and real words."
)
@click.option(
    "--capitals",
    type=click.Choice(["stay_in_place", "move"]),
    default="stay_in_place",
    show_default=True,
    help="Whether a capital stays at its place or goes with its letter.",
)
@click.option(
    "--min-letters", type=int, default=0, show_default=True, help="Fewest letters of a word to change."
)
@click.option(
    "--avoid-real-words/--allow-real-words",
    default=None,
    help="Whether a word may not turn into another word.  [default: it may not, where the language has a word list]",
)
@click.option(
    "--changes",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write what changed, as JSONL: line, changes with their permutations (and of types with a count how many "
    "were made), words left intact.",
)
@click.option(
    "--summary",
    is_flag=True,
    help="Tell on standard error how much changed, and what did not and why; with --mode published, what is copied.",
)
@click.option(
    "--on-bad",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="Whether a line that cannot be read ends the work or is named and left out.",
)
@click.argument("file", required=False, type=click.Path(path_type=Path))
def scramble(
    kind: str | None,
    show_list: bool,
    rate: float | None,
    texts: float | None,
    seed: int | None,
    mode: str,
    jsonl: bool,
    name: str,
    language: str,
    capitals: Capitals,
    min_letters: int,
    avoid_real_words: bool | None,
    changes: Path | None,
    summary: bool,
    on_bad: str,
    file: Path | None,
) -> None:
    """Scramble text, one text a line, from FILE or standard input.

    A line's result depends on the seed and the line alone (and on how often the same line came before), not on the
    lines around it; with --mode published it depends on all lines before it, as in the papers.

    Example: wrods scramble --type KFL --rate 0.5 --seed 7 story.txt
    """
    if show_list:
        click.echo(type_list())
        return
    if kind is None:
        raise UserError(
            "--type is missing", mend="Say what to do, such as --type KFL; --list shows every type."
        )
    if not jsonl and click.get_current_context().get_parameter_source("name") != ParameterSource.DEFAULT:
        raise UserError(
            f"--field {name} has no say without --jsonl",
            mend="Add --jsonl where each line is a JSON object, or leave --field out.",
        )
    source = Source(file, name if jsonl else None, skip_bad=on_bad == "skip")
    out = sys.stdout.buffer
    if mode == "published":
        _refuse_corrected_only(click.get_current_context())
        operation = published_operation(kind, rate=rate)
        lines = list(source.lines())
        shown = iter(
            published_pass([line.text for line in lines if line.text is not None], operation, seed=seed)
        )
        for line in lines:
            line.write(out, None if line.text is None else next(shown))
        source.tell_left_out()
        if summary or (operation.protocol is not None and operation.protocol.stand_in):
            click.echo(describe(kind), err=True)
        return
    chosen = parse_operation(kind, rate=rate)
    if texts is not None:
        chosen = replace(chosen, texts=checked_rate(texts, "texts"))
    settings = ScrambleSettings(min_letters, capitals, avoid_real_words, language)
    told = Told(chosen, summary, min_letters)
    changes_letters = chosen.type.unit == "letter" and not chosen.changes_nothing
    if avoid_real_words is None and changes_letters and not settings.avoids_real_words:
        click.echo(
            f"no word list for language {language!r}: changed forms that are words are not avoided", err=True
        )
    with ExitStack() as open_files:
        record = None if changes is None else open_files.enter_context(changes.open("w", encoding="utf-8"))
        _scramble_lines(source, chosen, CORRECTED_SEED if seed is None else seed, settings, out, record, told)
    source.tell_left_out()
    told.tell()


def _scramble_lines(
    source: Source,
    operation: Operation,
    seed: int,
    settings: ScrambleSettings,
    out: IO[bytes],
    record: IO[str] | None,
    told: Told,
) -> None:
    waiting: list[Line] = []

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
        told.count(line, result)
        if record is not None:
            entry = {
                "line": line.number,
                "changes": [_recorded(change, told.asked) for change in result.changes],
                "left_intact": [left._asdict() for left in result.left_intact],
            }
            record.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")


def _recorded(change: Change, asked: int | None) -> dict[str, Any]:
    return change._asdict() | ({} if asked is None else {"made": count_made(change), "asked": asked})


def type_list() -> str:
    """Return every type with what it changes, its options and its other names, as text."""
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
