"""``wrods fit``: a mixed-effects model on any CSV file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stimuli.corpora.file_kinds import kind_of_bytes, refuse_other_kinds
from stimuli.errors import UserError

from .fit_idle import refuse_idle_columns, refuse_idle_options
from .fit_questions import question_options, questions_from, shown_progress

if TYPE_CHECKING:
    import pandas as pd


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a comma-separated file; only empty cells, NA and NaN are missing, as in R."""
    import pandas as pd

    if not path.exists():
        raise UserError(f"{path} does not exist", mend=f"Looked in {path.resolve().parent}.")
    if path.is_dir():
        raise UserError(f"{path} is a folder", mend="Name a CSV file.")
    with path.open("rb") as stream:
        if kind_of_bytes(stream.read(16)) is not None:
            refuse_other_kinds(path.read_bytes(), path)
    try:
        data = pd.read_csv(
            path, keep_default_na=False, na_values=["", "NA", "NaN"], encoding="utf-8-sig", low_memory=False
        )
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text", mend="Save it as CSV in UTF-8.") from error
    except pd.errors.EmptyDataError as error:
        raise UserError(f"{path} is empty") from error
    except pd.errors.ParserError as error:
        raise UserError(f"{path} is no regular CSV: {str(error).strip()}") from error
    if len(data.columns) == 1:
        header = str(data.columns[0])
        for sign, name in ((";", "semicolons"), ("\t", "tabs")):
            if sign in header:
                raise UserError(
                    f"{path} is separated by {name}", mend="Save it with commas between the columns."
                )
    if data.empty:
        raise UserError(f"{path} has a header and no rows")
    return data


def _by_column(option: str, given: tuple[str, ...]) -> dict[str, str]:
    """Split repeated NAME=VALUE options."""
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
    """Read contrasts: a name, or numbers with commas between levels and semicolons between contrasts."""
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
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--formula", required=True, metavar="F", help="The model in lme4's spelling.")
@click.option(
    "--family",
    default="gaussian",
    show_default=True,
    metavar="NAME",
    help="gaussian, binomial, poisson, negative.binomial, Gamma or inverse.gaussian.",
)
@click.option(
    "--link",
    metavar="NAME",
    help="Link function; default the family's own. binomial: logit, probit, cloglog, or guess(0.5) for forced choice; "
    "times: identity, log, inverse.",
)
@click.option(
    "--weights", metavar="COLUMN", help="Prior weights; for binomial proportions the number of trials."
)
@click.option(
    "--offset",
    metavar="COLUMN",
    help="Known part of the linear predictor; may be an expression such as log(words).",
)
@click.option("--reml/--ml", default=None, help="Gaussian: restricted (default) or full maximum likelihood.")
@click.option(
    "--nagq",
    default=1,
    show_default=True,
    metavar="N",
    help="Points of adaptive Gauss-Hermite quadrature, for one grouping factor; 1 is the Laplace approximation.",
)
@click.option(
    "--information",
    type=click.Choice(["expected", "observed"]),
    help="In the Laplace determinant where the link is not canonical: expected as lme4, observed as glmmTMB. Default "
    "expected; observed for Gamma and inverse.gaussian.",
)
@click.option(
    "--dispersion",
    type=click.Choice(["ml", "glmer"]),
    default="ml",
    show_default=True,
    help="Gamma and inverse.gaussian: phi by maximum likelihood, or lme4's criterion, to compare with.",
)
@click.option(
    "--penalty",
    metavar="NAME",
    help="normal: a weakly informative prior on coefficients and variances, for data that separate. Default none.",
)
@click.option(
    "--levels",
    multiple=True,
    metavar="NAME=a,b,c",
    help="Make a column a factor with these levels, the first as reference. Repeatable.",
)
@click.option(
    "--contrasts",
    multiple=True,
    metavar="NAME=KIND",
    help="treatment (default), sum, helmert, poly, sdif, or numbers: one per level, contrasts apart by semicolons "
    "(cond=-1,1,0;-1,0,1). Repeatable.",
)
@question_options
@click.option("--json", "as_json", is_flag=True, help="Print all numbers as JSON.")
@click.option(
    "--r-script",
    is_flag=True,
    help="Print the R program (lme4) that gives the same numbers, instead of the results.",
)
def fit(
    file: Path,
    formula: str,
    family: str,
    link: str | None,
    weights: str | None,
    offset: str | None,
    reml: bool | None,
    nagq: int,
    information: str | None,
    dispersion: str,
    penalty: str | None,
    levels: tuple[str, ...],
    contrasts: tuple[str, ...],
    as_json: bool,
    r_script: bool,
    against: str | None,
    **asked: Any,
) -> None:
    """Fit a mixed-effects model to the rows of a CSV file.

    The numbers are lme4's at tight control, with Satterthwaite degrees of freedom for gaussian models; for times under
    Gamma and inverse.gaussian, where lme4's criterion is no likelihood, they are glmmTMB's. Text columns are
    factors in alphabetical order; grouping columns are factors whatever they hold. Rows with missing values, singular
    terms, columns dropped and signs of separation are reported under the results.
    """
    from analysis.mixed import answer, comparison, likelihood_ratio_test, lme4_program
    from analysis.mixed import fit as fit_model

    refuse_idle_options(click.get_current_context())
    data = _read_csv(file)
    factor_levels = {
        name: [level.strip() for level in value.split(",")]
        for name, value in _by_column("--levels", levels).items()
    }
    codings = {name: _coding(name, value) for name, value in _by_column("--contrasts", contrasts).items()}
    options: dict[str, Any] = {
        "family": family,
        "link": link,
        "reml": reml is not False,
        "weights": weights,
        "offset": offset,
        "levels": factor_levels,
        "contrasts": codings,
        "nagq": nagq,
        "information": information,
        "dispersion": dispersion,
        "penalty": penalty,
    }
    result = fit_model(formula, data, **options)
    refuse_idle_columns(result, factor_levels, codings)
    if r_script:
        click.echo(lme4_program(result, str(file)), nl=False)
        return
    questions = questions_from(asked)
    compared = None if against is None else likelihood_ratio_test(result, fit_model(against, data, **options))
    result, answers = answer(result, questions, shown_progress(questions))
    if compared is not None:
        answers.insert(0, comparison(compared, against or ""))
    if as_json:
        numbers = result.to_json() | {found.key: found.to_json() for found in answers}
        click.echo(json.dumps(numbers, ensure_ascii=False, indent=1))
    else:
        click.echo("\n\n".join([result.summary(), *(found.text() for found in answers)]))
