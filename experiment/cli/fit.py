"""``wrods fit``: a linear, generalised or mixed-effects model on any CSV file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from experiment.cli.terminal import PATH, WorkProgress, option, print_json
from stimuli.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from analysis.fitted_model import FittedModel

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    option(
        "--against FORMULA",
        "Likelihood-ratio test against this nested model; with --ml where fixed effects differ.",
    ),
    option(
        "--df",
        "Degrees of freedom of gaussian models; satterthwaite by default. none gives z tests.",
        type=click.Choice(["satterthwaite", "kenward-roger", "none"]),
    ),
    option(
        "--intervals",
        "Intervals of all parameters, variances too.",
        type=click.Choice(["wald", "profile", "bootstrap"]),
        default="wald",
        show_default=True,
    ),
    option("--replicates N", "Bootstrap refits.", type=int, default=1000, show_default=True),
    option("--seed N", "Of the bootstrap.", type=int, default=0, show_default=True),
    option("--processes N", "Refits at work at once.", type=int, default=1, show_default=True),
    option("--anova", "Test every term (type III)."),
    option("--r2", "Nakagawa's R squared and the intraclass correlation.", name="r_squared"),
    option(
        "--means A,B | C",
        "Marginal means of these factors and their pairwise comparisons, within levels of those after the bar.",
    ),
    option("--slopes COLUMN", "Slopes of a covariate, in the cells of --means."),
    option("--control LEVEL", "Compare means with this level's instead of every two."),
    option(
        "--scale",
        "Of means and comparisons; ratio gives odds ratios. Ordinal models: link is the latent scale, response the "
        "probability of each category, mean the mean rating.",
        type=click.Choice(["link", "response", "ratio", "mean"]),
        default="link",
        show_default=True,
    ),
    option(
        "--adjust",
        "Correction of the comparisons, per family; holm by default, dunnett with --control.",
        type=click.Choice(["none", "holm", "bonferroni", "BH", "sidak", "tukey", "dunnett", "mvt"]),
    ),
    option(
        "--equivalence BOUND",
        "Test that comparisons of --means lie within plus or minus BOUND (ratios: 1/BOUND to BOUND).",
        type=float,
    ),
)


def question_options(command: Command) -> Command:
    """Add the options to a command in order."""
    for added in reversed(_OPTIONS):
        command = added(command)
    return command


_OF_FIT = (
    "formula", "family", "link", "weights", "offset", "nagq", "information", "dispersion", "penalty", "df", "signal",
)  # fmt: skip
_ONLY_BOOTSTRAP = ("replicates", "seed", "processes")
_QUESTIONS = (
    "against", "df", "intervals", "replicates", "seed", "processes", "anova", "r_squared", "means", "slopes",
    "control", "scale", "adjust", "equivalence",
)  # fmt: skip


def _given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _spelt(name: str) -> str:
    return "--r2" if name == "r_squared" else f"--{name}"


def refuse_idle_options(context: click.Context) -> None:
    """Raise an error for options that others make ineffective."""
    options: dict[str, Any] = context.params
    if options["as_json"] and options["r_script"]:
        raise UserError("--json and --r-script are both given", mend="Choose one.")
    linear = options["family"] == "gaussian" and options["link"] in {None, "", "identity"}
    if options["reml"] and not linear:
        kind = (
            options["family"]
            if options["link"] is None
            else f"{options['family']} with the {options['link']} link"
        )
        raise UserError(
            f"--reml is for the gaussian family with the identity link, not for {kind}", mend="Leave it out."
        )
    idle = [name for name in _QUESTIONS if _given(context, name)] if options["r_script"] else []
    if idle:
        raise UserError(
            f"--r-script writes the program of the fit; {_spelt(idle[0])} has no part in it",
            mend=f"Leave {_spelt(idle[0])} out, or ask without --r-script.",
        )
    for name in _ONLY_BOOTSTRAP:
        if _given(context, name) and options["intervals"] != "bootstrap":
            raise UserError(f"--{name} belongs to the bootstrap", mend="Add --intervals bootstrap.")
    for name in ("link", "weights", "offset", "penalty", "means", "slopes", "against"):
        if options[name] is not None and not str(options[name]).strip():
            raise UserError(f"{_spelt(name)} is empty", mend=f"Leave {_spelt(name)} out, or give it a value.")
    if options["means"] is None and options["slopes"] is None:
        for name in ("adjust", "scale"):
            if _given(context, name):
                raise UserError(
                    f"--{name} is of means and comparisons, and none are requested",
                    mend="Ask for them with --means or --slopes, or leave it out.",
                )
    if options["means"] is None and options["equivalence"] is not None:
        raise UserError("equivalence is tested on comparisons of means", mend="Say which with --means.")
    if options["means"] is None and options["control"] is not None:
        raise UserError("a control is compared with other means", mend="Say of which factor with --means.")


def _by_column(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """Return repeated NAME=VALUE options as a mapping."""
    result: dict[str, str] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise UserError(
                f"{option} {text!r} is not of the form NAME=VALUE",
                mend=f"For example {option} cond={_VALUES[option]}.",
            )
        if name.strip() in result:
            raise UserError(f"{option} names {name.strip()!r} twice")
        result[name.strip()] = value
    return result


_VALUES = {"--levels": "intact,scrambled", "--contrasts": "sum"}


def _coding(name: str, text: str) -> str | list[list[float]]:
    """Return contrasts: a name, or numbers with commas between levels and semicolons between contrasts."""
    if "," not in text:
        return text.strip()
    try:
        return [[float(cell) for cell in part.split(",")] for part in text.split(";")]
    except ValueError:
        raise UserError(
            f"--contrasts {name}={text!r} is neither a name nor numbers",
            mend=f"For example --contrasts {name}=sum, or --contrasts '{name}=-1,1,0;-1,0,1'.",
        ) from None


_EXAMPLE = """\b
Example:
  wrods fit trials.csv --family binomial --levels cond=intact,scrambled \\
    --formula 'correct ~ agent * cond + (1 + cond | participant) + (1 | item)'
"""


@click.command(epilog=_EXAMPLE)
@click.argument("file", type=PATH)
@option(
    "--formula F",
    "The model in lme4's spelling; random effects such as (1 | participant) may be left out.",
    required=True,
)
@option(
    "--family NAME",
    "gaussian, binomial, betabinomial, poisson, negative.binomial, Gamma, inverse.gaussian, shifted_lognormal or exgaussian "
    "for response times, or ordinal for ratings and other ordered categories (cumulative model).",
    default="gaussian",
    show_default=True,
)
@option(
    "--link NAME",
    "Link function; default the family's own. binomial: logit, probit, cloglog, or guess(0.5) for forced choice; "
    "ordinal: logit, probit, cloglog; times: identity, log, inverse.",
)
@option("--weights COLUMN", "Prior weights; for binomial proportions the number of trials.")
@option("--offset COLUMN", "Known part of the linear predictor; may be an expression such as log(words).")
@click.option(
    "--reml/--ml",
    default=None,
    help="Gaussian: restricted (default) or full maximum likelihood; without random effects least squares is the default.",
)
@option(
    "--nagq N",
    "Points of adaptive Gauss-Hermite quadrature, for one grouping factor; 1 is the Laplace approximation.",
    default=1,
    show_default=True,
)
@option(
    "--information",
    "In the Laplace determinant where the link is not canonical: expected as lme4, observed as glmmTMB. Default "
    "expected; observed for Gamma and inverse.gaussian.",
    type=click.Choice(["expected", "observed"]),
)
@option(
    "--dispersion",
    "Gamma and inverse.gaussian: phi by maximum likelihood, or lme4's criterion, to compare with.",
    type=click.Choice(["ml", "glmer"]),
    default="ml",
    show_default=True,
)
@option(
    "--penalty NAME",
    "normal: a weakly informative prior on coefficients and variances, for data that separate. Default none.",
)
@option(
    "--signal COLUMN",
    "Signal detection of yes answers: every term of the formula acts on d' and on c. COLUMN is 1 on signal trials and 0 on "
    "noise trials, or write COLUMN=LEVEL. Probit link.",
)
@option(
    "--levels NAME=a,b,c",
    "Make a column a factor with these levels, the first as reference; for an ordinal response from low to high. "
    "Repeatable.",
    multiple=True,
)
@option(
    "--contrasts NAME=KIND",
    "treatment (default), sum, helmert, poly, sdif, or numbers: one per level, contrasts apart by semicolons "
    "(cond=-1,1,0;-1,0,1). Repeatable.",
    multiple=True,
)
@question_options
@option("--json", "Print all numbers as JSON.", name="as_json")
@option(
    "--r-script",
    "Print the R program (lme4; ordinal's clmm) that gives the same numbers, instead of the results.",
)
def fit(file: Path, **asked: Any) -> None:
    """Fit a mixed-effects model, or one of fixed effects alone, to the rows of a CSV file.

    The numbers are lme4's at tight control, with Satterthwaite degrees of freedom for gaussian models; for times under
    Gamma and inverse.gaussian, where lme4's criterion is not a likelihood, they are glmmTMB's; for ordered categories they
    are those of ordinal's clmm; without random effects they are those of R's lm, glm and clm. Text columns are
    factors in alphabetical order; grouping columns are factors whatever they hold. Rows with missing values, singular
    terms, columns dropped and signs of separation are reported under the results.
    """
    from analysis.fitted_model import fit as fit_model
    from analysis.fitted_model import table_json, table_text

    refuse_idle_options(click.get_current_context())
    levels = {
        name: [level.strip() for level in value.split(",")]
        for name, value in _by_column("--levels", asked["levels"]).items()
    }
    given = _by_column("--contrasts", asked["contrasts"])
    contrasts = {name: _coding(name, value) for name, value in given.items()}
    options = {name: asked[name] for name in _OF_FIT} | {"levels": levels, "contrasts": contrasts}
    model = fit_model(file, reml=asked["reml"] is not False, **options)
    if asked["r_script"]:
        click.echo(model.r_script(str(file)), nl=False)
        return
    tables = ([model.signal_detection()] if asked["signal"] else []) + list(_answers(model, asked))
    if asked["as_json"]:
        numbers = model.to_json() | {table.attrs["key"]: table_json(table) for table in tables}
        print_json(numbers)
    else:
        click.echo("\n\n".join([model.summary(), *map(table_text, tables)]))


def _answers(model: FittedModel, given: dict[str, Any]) -> Iterator[pd.DataFrame]:
    """Yield a table for each question beyond the coefficients."""
    from analysis.fitted_model import is_comparable

    if given["against"] is not None:
        yield model.against(given["against"])
    if (method := given["intervals"]) != "wald":
        names = ("replicates", "seed", "processes") if method == "bootstrap" else ()
        with WorkProgress("refits") as progress:
            draw = partial(progress.draw, method)
            yield model.intervals(method, progress=draw, **{name: given[name] for name in names})
    if given["anova"]:
        yield model.anova()
    if given["r_squared"]:
        yield model.r_squared()
    factors, slopes, scale = given["means"] or "", given["slopes"], given["scale"]
    if given["means"] is None and slopes is None:
        return
    means = model.means(factors, slopes=slopes, scale="link" if scale == "ratio" else scale)
    yield means
    options = {"slopes": slopes, "control": given["control"], "scale": scale, "adjust": given["adjust"]}
    if is_comparable(means, factors):
        yield model.contrasts(factors, **options)
        if given["equivalence"] is not None:
            yield model.equivalence(factors, given["equivalence"], **options)
    else:
        _refuse_comparing(given)


def _refuse_comparing(options: dict[str, Any]) -> None:
    """Raise an error for options of comparisons if a single mean or slope leaves nothing to compare."""
    given = {
        "an equivalence test": options["equivalence"] is not None,
        "an adjustment": options["adjust"] is not None,
        "a control": options["control"] is not None,
        "the ratio scale": options["scale"] == "ratio",
    }
    for name, is_given in given.items():
        if is_given:
            raise UserError(
                f"{name} is of comparisons, and one {'slope' if options['slopes'] else 'mean'} leaves nothing to compare",
                mend="Name a factor before the bar of --means.",
            )
