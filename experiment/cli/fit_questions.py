"""The options of ``wrods fit`` that ask more of a fit: degrees of freedom, intervals, terms, means, equivalence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from analysis.mixed import Questions

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--against",
        metavar="FORMULA",
        help="Likelihood-ratio test against this nested model; with --ml where fixed effects differ.",
    ),
    click.option(
        "--df",
        type=click.Choice(["satterthwaite", "kenward-roger", "none"]),
        help="Degrees of freedom of gaussian models; satterthwaite by default. none gives z tests.",
    ),
    click.option(
        "--intervals",
        type=click.Choice(["wald", "profile", "bootstrap"]),
        default="wald",
        show_default=True,
        help="Intervals of all parameters, variances too.",
    ),
    click.option(
        "--replicates", type=int, default=1000, show_default=True, metavar="N", help="Bootstrap refits."
    ),
    click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Of the bootstrap."),
    click.option(
        "--processes", type=int, default=1, show_default=True, metavar="N", help="Refits at work at once."
    ),
    click.option(
        "--keep",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Keep refits as they are made; the same command goes on after an interruption.",
    ),
    click.option("--anova", is_flag=True, help="Test every term (type III)."),
    click.option(
        "--r2", "r_squared", is_flag=True, help="Nakagawa's R squared and the intraclass correlation."
    ),
    click.option(
        "--means",
        metavar="A,B | C",
        help="Marginal means of these factors and their pairwise comparisons, within levels of those after the bar.",
    ),
    click.option("--slopes", metavar="COLUMN", help="Slopes of a covariate, in the cells of --means."),
    click.option("--control", metavar="LEVEL", help="Compare means with this level's instead of every two."),
    click.option(
        "--scale",
        type=click.Choice(["link", "response", "ratio"]),
        default="link",
        show_default=True,
        help="Of means and comparisons; ratio gives odds ratios.",
    ),
    click.option(
        "--adjust",
        type=click.Choice(["none", "holm", "bonferroni", "BH", "sidak", "tukey", "dunnett", "mvt"]),
        help="Correction of the comparisons, per family; holm by default, dunnett with --control.",
    ),
    click.option(
        "--equivalence",
        type=float,
        metavar="BOUND",
        help="Test that comparisons of --means lie within plus or minus BOUND (ratios: 1/BOUND to BOUND).",
    ),
)


def question_options(command: Command) -> Command:
    """Add the options to a command, in the order of the list."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def questions_from(options: dict[str, Any]) -> Questions:
    """Read the options' values."""
    from analysis.mixed import Questions

    return Questions(**{field.name: options[field.name] for field in fields(Questions)})


def shown_progress(questions: Questions) -> Callable[[int, int], None] | None:
    """Count refits on standard error where someone watches."""
    if questions.intervals == "wald" or not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        click.echo(f"\r{questions.intervals}: {done} of {total}", nl=done == total, err=True)

    return show
