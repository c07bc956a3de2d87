"""The options of ``wrods fit`` that ask more of a fit: degrees of freedom, intervals, terms, means, equivalence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from stimuli.errors import UserError

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
        help="Keep refits as they are made; the same command resumes after an interruption.",
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
        type=click.Choice(["link", "response", "ratio", "mean"]),
        default="link",
        show_default=True,
        help="Of means and comparisons; ratio gives odds ratios. Ordinal models: link is the latent scale, response the "
        "probability of each category, mean the mean rating.",
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


_ONLY_BOOTSTRAP = ("replicates", "seed", "processes", "keep")
_QUESTIONS = (
    "against", "df", "intervals", "replicates", "seed", "processes", "keep", "anova", "r_squared", "means", "slopes",
    "control", "scale", "adjust", "equivalence",
)  # fmt: skip


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _spelt(name: str) -> str:
    return "--r2" if name == "r_squared" else f"--{name}"


def refuse_idle_options(context: click.Context) -> None:
    """Refuse options that others of the same command leave without effect."""
    asked: dict[str, Any] = context.params
    if asked["as_json"] and asked["r_script"]:
        raise UserError("--json and --r-script are both given", mend="Choose one.")
    linear = asked["family"] == "gaussian" and asked["link"] in {None, "", "identity"}
    if asked["reml"] and not linear:
        kind = (
            asked["family"] if asked["link"] is None else f"{asked['family']} with the {asked['link']} link"
        )
        raise UserError(
            f"--reml is for the gaussian family with the identity link, not for {kind}", mend="Leave it out."
        )
    idle = [name for name in _QUESTIONS if _given(context, name)] if asked["r_script"] else []
    if idle:
        raise UserError(
            f"--r-script writes the program of the fit; {_spelt(idle[0])} has no part in it",
            mend=f"Leave {_spelt(idle[0])} out, or ask without --r-script.",
        )
    for name in _ONLY_BOOTSTRAP:
        if _given(context, name) and asked["intervals"] != "bootstrap":
            raise UserError(f"--{name} belongs to the bootstrap", mend="Add --intervals bootstrap.")
    for name in ("link", "weights", "offset", "penalty", "means", "slopes", "against", "keep"):
        if asked[name] is not None and not str(asked[name]).strip():
            raise UserError(f"{_spelt(name)} is empty", mend=f"Leave {_spelt(name)} out, or give it a value.")
    if asked["means"] is None and asked["slopes"] is None:
        for name in ("adjust", "scale"):
            if _given(context, name):
                raise UserError(
                    f"--{name} is of means and comparisons, and none are requested",
                    mend="Ask for them with --means or --slopes, or leave it out.",
                )
    if asked["means"] is None and asked["equivalence"] is not None:
        raise UserError("equivalence is tested on comparisons of means", mend="Say which with --means.")
    if asked["means"] is None and asked["control"] is not None:
        raise UserError("a control is compared with other means", mend="Say of which factor with --means.")
