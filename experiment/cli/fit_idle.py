"""Options of ``wrods fit`` that would change nothing are refused: who gives one expects something of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from stimuli.errors import UserError

if TYPE_CHECKING:
    from analysis.mixed import Fit

_ONLY_BOOTSTRAP = ("replicates", "seed")
_QUESTIONS = (
    "against", "df", "intervals", "replicates", "seed", "processes", "keep", "anova", "r_squared", "means", "slopes",
    "control", "scale", "adjust", "equivalence",
)  # fmt: skip


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _spelt(name: str) -> str:
    return "--r2" if name == "r_squared" else f"--{name}"


def refuse_idle_options(context: click.Context) -> None:
    """Refuse options that others of the same command leave without effect.

    Raises
    ------
    UserError
        Naming the option and what it belongs to.
    """
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


def refuse_idle_columns(fit: Fit, levels: Iterable[str], contrasts: Iterable[str]) -> None:
    """Refuse levels and contrasts of columns that the model has no factor of.

    Raises
    ------
    UserError
        Naming the column and where the formula has it, if at all.
    """
    from analysis.mixed.expression import columns_of
    from analysis.mixed.variables import Factor

    formula = fit.model.formula
    designs = [formula.fixed, *(term.design for term in formula.random)]
    nodes = [node for terms in designs for node in terms.variables]
    named = {column for node in nodes for column in columns_of(node)}
    made = [fit.model.frame.variables.make(node) for node in nodes]
    coded = {v.column for v in made if isinstance(v, Factor) and v.condition is None}
    grouping = {column for term in formula.random for node in term.group for column in columns_of(node)}
    for option, names, used in (
        ("--levels", levels, named | set(columns_of(formula.response))),
        ("--contrasts", contrasts, coded),
    ):
        for name in names:
            if name in used:
                continue
            why = "which the formula does not read"
            if name in grouping:
                why = "which only groups rows; a grouping factor has neither order nor contrasts"
            elif name in named or name in columns_of(formula.response):
                why = "of which the model has no factor"
            raise UserError(
                f"{option} names {name!r}, {why}", mend=f"Leave it out, or add {name} to the fixed part."
            )
