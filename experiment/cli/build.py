"""``wrods build``: builds and audits the items of a study, and reports the result."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from experiment.building import Built
    from stimuli.recipes.conditions import ConditionSummary

MOST_TOLD = 12
IN_WORDS = ("condition", "words that took fewer", "left intact")


@click.command()
@click.argument("study", metavar="STUDY", type=click.Path(path_type=Path))
def build(study: Path) -> None:
    """Build and audit a study's items.

    Writes items.jsonl, its sidecar (seed, versions, hashes of the sources and of the audit) and the folder audit/
    (a page, JSON, figures): covariates by condition, duplicates, changed forms that are words, leaks, and whether
    anything other than the rule predicts the answer. The same study gives the same bytes on every machine.

    Example: wrods build my-study
    """
    from experiment.building import build_study
    from experiment.checking import load_study
    from stimuli.recipes.conditions import describe_conditions

    loaded = load_study(study)
    built = build_study(loaded)
    conditions = describe_conditions(built.items)
    for line in built.made.remarks:
        click.echo(line)
    tell_skipped(built.made.skipped)
    roles = Counter(item.role for item in built.items)
    parts = ", ".join(f"{count} {role}" for role, count in roles.items())
    click.echo(f"Built {len(built.items)} lines ({parts}) into {built.file}")
    _tell_conditions(conditions)
    _tell_audit(built)
    click.echo(f"SHA-256 {built.sha256}")
    named = shlex.quote(str(study))
    click.echo(f"Next: wrods preview {named}, wrods serve {named} or wrods run {named}")


def tell_skipped(skipped: list[str]) -> None:
    """Print the first of the skipped records, and their number."""
    if not skipped:
        return
    click.secho(f"Left out, because they could not be used: {len(skipped)}", fg="yellow")
    for line in skipped[:MOST_TOLD]:
        click.echo(f"  {line}")
    if len(skipped) > MOST_TOLD:
        click.echo(f"  and {len(skipped) - MOST_TOLD} more; items.meta.json lists them all after a build")


def _tell_conditions(conditions: list[ConditionSummary]) -> None:
    """Print a line for each condition: number of items, and what changed in them."""
    several = len({condition.set_name for condition in conditions}) > 1
    changed = any(condition.changed_words or condition.moved_sentences for condition in conditions)
    fewer = any(condition.fewer for condition in conditions)
    heads = [
        "condition",
        "items",
        *(["changed words", "of all", "displaced", "by"] if changed else []),
        *(["words that took fewer"] if fewer else []),
        "left intact",
    ]
    rows = []
    for condition in conditions:
        name = ", ".join(condition.condition.values()) or "all"
        if several and name != condition.set_name:
            name = f"{condition.set_name}: {name}"
        numbers = [
            f"{condition.changed_words:.1f}",
            f"{condition.share_changed:.0%}",
            _displaced(condition),
            f"{condition.displacement:.2f}" if f"{condition.displaced:.1f}" != "0.0" else "–",
        ]
        left = ", ".join(f"{n} {reason}" for reason, n in condition.left_intact.items())
        short = ", ".join(
            f"{words} took {number} of {condition.asked}" for number, words in condition.fewer.items()
        )
        rows.append(
            [name, str(condition.items), *(numbers if changed else []), *([short] if fewer else []), left]
        )
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    widths = [max(len(row[place]) for row in [heads, *rows]) for place in range(len(heads))]
    for row in [heads, *rows]:
        cells = [
            cell.ljust(width) if heads[place] in IN_WORDS else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        click.echo("  " + "  ".join(cells).rstrip())
    if changed:
        click.echo(
            "  (means: changed words an item; letters displaced a changed word; places that a displaced letter moved by"
            + (
                "; where words or sentences move, those displaced of a clause, sentence or text)"
                if any(condition.unit != "letter" for condition in conditions)
                else ")"
            )
        )


def _displaced(summary: ConditionSummary) -> str:
    """Return how many letters moved, with the unit for words and sentences."""
    number = f"{summary.displaced:.1f}"
    units = "/".join(f"{unit}s" for unit in summary.unit.split(", "))
    return number if summary.unit == "letter" else f"{number} {units}"


def _tell_audit(built: Built) -> None:
    problems, remarks = built.audit.problems(), built.audit.remarks()
    if not problems and not remarks:
        click.secho(f"Audit: nothing found. {built.audit_page}", fg="green")
        return
    click.secho(
        f"Audit: {len(problems)} to fix, {len(remarks)} to review; see {built.audit_page}",
        fg="red" if built.audit.grave else "yellow",
    )
    for line in [*problems, *remarks][:MOST_TOLD]:
        click.echo(f"  {line}")
