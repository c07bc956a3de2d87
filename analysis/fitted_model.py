"""``wrods.fit``: a mixed-effects model of any table, with its tests, means, predictions and figures; ``wrods fit`` prints the same."""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import pandas as pd

from analysis import apa, mixed
from analysis.mixed.fitting import EngineOptions
from analysis.mixed.formula import (
    FunctionCall,
    Name,
    Node,
    as_r,
    columns_of,
    expand_terms,
    parts_of,
    read_expression,
)
from analysis.mixed.result import Fit, format_p, lined_up, plain
from analysis.mixed.variables import Factor, level_name
from stimuli.corpora.encodings import kind_of_bytes, refuse_other_kinds
from stimuli.errors import UserError, unknown_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INTERVALS = ("profile", "bootstrap")
ALPHA = 0.05

Factors = str | Sequence[str]
"""Columns whose means are wanted: their names, or as on the command line ``"a, b | c"``, a and b within the levels of c."""


class FitOptions(EngineOptions, total=False):
    """The rarer options of :func:`fit`; see there."""

    df: str | None
    signal: str | None


class ContrastOptions(TypedDict, total=False):
    """The options of comparisons; see :meth:`FittedModel.contrasts`."""

    slopes: str | None
    control: str | None
    scale: str
    adjust: str | None


class Refitting(TypedDict, total=False):
    """The options of a bootstrap; see :meth:`FittedModel.intervals`."""

    replicates: int
    seed: int
    processes: int
    keep: str | None


def fit(
    data: pd.DataFrame | str | PathLike[str],
    formula: str,
    family: str = "gaussian",
    link: str | None = None,
    **options: Unpack[FitOptions],
) -> FittedModel:
    """Fit a mixed-effects model, or one of fixed effects alone.

    The numbers are those of R's lme4 at tight control, or of lm and glm; the options have the names that ``wrods fit`` gives them.

    Parameters
    ----------
    data : DataFrame or path
        One row per observation, or the CSV file that has them. Rows with missing values in the columns used are dropped, with a
        warning. Text columns are factors with their levels in alphabetical order; grouping columns are factors whatever they hold.
    formula : str
        In lme4's spelling: ``"rt ~ cond + (1 + cond | participant) + (1 | item)"``; random effects may be left out.
    family : str
        Distribution of the response: ``gaussian``, ``binomial``, ``betabinomial``, ``poisson``, ``negative.binomial``, ``Gamma``,
        ``inverse.gaussian``, ``shifted_lognormal`` and ``exgaussian`` for response times, or ``ordinal`` for ratings and other
        ordered categories.
    link : str, optional
        Default: the family's own. For forced choice ``guess(0.5)``.
    **options
        reml : bool
            Gaussian models: restricted likelihood (default), or False for full maximum likelihood.
        weights, offset : str or array_like of shape (rows,)
            A column, an expression of columns, or numbers.
        levels : mapping of str to sequence of str
            Makes a column a factor with these levels, the first as reference; for an ordinal response from low to high.
        contrasts : mapping of str to contrasts
            By column ``treatment`` (default), ``sum``, ``helmert``, ``poly``, ``sdif``, or numbers: per contrast one number per
            level.
        nagq : int
            Points of adaptive Gauss-Hermite quadrature, for one grouping factor; 1 is the Laplace approximation.
        information : {'expected', 'observed'}
            In the Laplace determinant where the link is not canonical.
        dispersion : {'ml', 'glmer'}
            Of Gamma and inverse.gaussian: by maximum likelihood, or lme4's criterion, to compare with.
        penalty : {'normal'}
            A weakly informative prior, for data that separate.
        df : {'satterthwaite', 'kenward-roger', 'none'}
            Degrees of freedom of gaussian models.
        signal : str
            Signal detection: a column that is 1 on signal trials and 0 on noise trials, or ``"column=level"``. The formula is
            that of "yes" answers; its terms act on sensitivity d' and on criterion c, see :meth:`FittedModel.signal_detection`.

    Returns
    -------
    FittedModel

    Raises
    ------
    UserError
        For what the user can correct: the file, the formula, columns, levels, the response, options not available.

    Examples
    --------
    >>> model = fit("trials.csv", "correct ~ cond + (1 | participant)", "binomial")  # doctest: +SKIP
    >>> print(model.summary())  # doctest: +SKIP
    """
    for name in options:
        if name not in FitOptions.__annotations__:
            raise unknown_name("option of fit()", name, FitOptions.__annotations__)
    table = data if isinstance(data, pd.DataFrame) else _read_csv(Path(data))
    settings: dict[str, Any] = {**options, "family": family, "link": link}
    df, signal = settings.pop("df", None), settings.pop("signal", None)
    detection: tuple[str, str] | None = None
    if signal is not None:
        if (family, link) not in itertools.product(("gaussian", "binomial"), (None, "probit")):
            raise UserError(
                f"signal detection has the binomial family and the probit link, not {family}"
                + (f" and {link}" if link else ""),
                mend="Leave family and link out.",
            )
        settings |= {"family": "binomial", "link": "probit"}
        formula, marker = _signal_formula(formula, signal, table)
        detection = signal, marker
    fitted = mixed.fit(formula, table, **settings)
    _refuse_idle_columns(fitted, settings)
    return FittedModel(
        mixed.with_degrees(fitted, df) if df is not None else fitted, table, settings, detection
    )


class FittedModel:
    """A fitted mixed-effects model; :func:`fit` returns it."""

    def __init__(
        self,
        fitted: Fit,
        data: pd.DataFrame,
        settings: dict[str, Any],
        detection: tuple[str, str] | None = None,
    ) -> None:
        self._fit, self._data, self._settings, self._detection = fitted, data, settings, detection

    def __repr__(self) -> str:
        return repr(self._fit).replace("<Fit", "<FittedModel", 1)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    @property
    def coefficients(self) -> pd.DataFrame:
        """The fixed effects: term, estimate, se, statistic, df, p, ci_low, ci_high."""
        return self._fit.told.copy()

    @property
    def thresholds(self) -> pd.DataFrame | None:
        """Of an ordinal model the thresholds between categories: term, estimate, se, ci_low, ci_high; else None."""
        return None if self._fit.thresholds is None else self._fit.thresholds.copy()

    @property
    def distribution(self) -> pd.DataFrame | None:
        """Of response times sigma and the shift ndt (shifted_lognormal) or mean beta (exgaussian); None for other models."""
        return self._fit.distribution

    @property
    def converged(self) -> bool:
        """Whether the search for the estimates ended well."""
        return self._fit.converged

    @property
    def warnings(self) -> tuple[str, ...]:
        """Rows and columns dropped, singular terms, no convergence, separation."""
        return self._fit.warnings

    def summary(self) -> str:
        """Return counts, random effects, fixed effects, fit and warnings as text."""
        return self._fit.summary()

    def to_json(self) -> dict[str, Any]:
        """Return the estimates as plain numbers, texts and lists, as ``wrods fit --json`` prints them."""
        return self._fit.to_json()

    def r_script(self, file: str) -> str:
        """Return the R program that reads this CSV file and gives the same numbers by lme4."""
        return mixed.lme4_program(self._fit, file)

    def intervals(
        self,
        method: str = "profile",
        *,
        progress: Callable[[int, int], None] | None = None,
        **options: Unpack[Refitting],
    ) -> pd.DataFrame:
        """Compute 95% intervals of all parameters, variances too.

        Parameters
        ----------
        method : {'profile', 'bootstrap'}
        progress : callable, optional
            Called with what is done and what there is to do.
        **options
            Of the bootstrap: replicates (default 1000), seed (0), processes (1), and keep, a file that keeps the refits.

        Returns
        -------
        DataFrame, shape (parameters, …)

        Raises
        ------
        UserError
            For an unknown method, or a model that has no profile.
        """
        if method not in INTERVALS:
            raise unknown_name("kind of interval", method, INTERVALS)
        if method == "profile":
            if options:
                raise UserError(
                    f"{next(iter(options))} belongs to the bootstrap", mend="Ask for method='bootstrap'."
                )
            table = mixed.profile_intervals(self._fit, progress=progress)
            basis = " (by maximum likelihood)" if self._fit.model.reml else ""
            title = f"Profile-likelihood 95 % intervals{basis}"
            return _titled(table, "intervals", title, {"method": "profile", "level": 0.95})
        drawn = mixed.bootstrap(self._fit, progress=progress, **options)
        facts = {
            "method": "bootstrap, percentile",
            "level": 0.95,
            "replicates": len(drawn.replicates),
            "failed": drawn.failed,
            "unconverged": drawn.unconverged,
            "singular": drawn.singular,
            "seed": options.get("seed", 0),
        }
        title = f"Bootstrap 95 % percentile intervals: {drawn.sentence()}"
        return _titled(drawn.intervals(), "intervals", title, facts)

    def against(self, formula: str) -> pd.DataFrame:
        """Test this model against another of the same rows, of which one is nested in the other, by likelihood ratio.

        Parameters
        ----------
        formula : str
            Of the other model, which gets the same options.

        Raises
        ------
        UserError
            If the two cannot be compared.
        """
        full_formula = (
            _signal_formula(formula, self._detection[0], self._data)[0] if self._detection else formula
        )
        test = mixed.likelihood_ratio_test(self._fit, mixed.fit(full_formula, self._data, **self._settings))
        p_boundary = np.nan if test.p_boundary is None else test.p_boundary
        row = {"chi-squared": test.statistic, "df": test.df, "p": test.p, "p_boundary": p_boundary}
        title = f"Likelihood-ratio test against {formula}\n  {test.sentence()}"
        facts = {"formula": formula, "boundary": test.boundary, "words": test.sentence()}
        return _titled(pd.DataFrame([row]), "likelihood_ratio", title, facts)

    def anova(self) -> pd.DataFrame:
        """Test every term given all others (type III)."""
        fitted = self._fit
        basis = f"df by {fitted.degrees.name}" if fitted.degrees is not None else "Wald chi-squared / df"
        table = mixed.anova(fitted)
        untested = table.attrs["untold"]
        empty = f"; cells are empty, so there is no test of {', '.join(untested)}" if untested else ""
        return _titled(table, "anova", f"Tests of terms (type III, {basis}{empty})", {"type": 3, "df": basis})

    def signal_detection(self) -> pd.DataFrame:
        """Return sensitivity d' and criterion c of a model that was fitted with ``signal``.

        Returns
        -------
        DataFrame, shape (coefficients, 9)
            measure (d' or c), term, estimate, se, df, statistic, p, ci_low, ci_high. A positive c is a tendency to answer no.

        Raises
        ------
        UserError
            If the model was fitted without ``signal``.
        """
        if self._detection is None:
            raise UserError(
                "this is not a signal detection model",
                mend="Name the column of signal trials: fit(…, signal='is_old').",
            )
        title = "Signal detection (equal variances; c positive: answers no more often)"
        return _titled(
            _signal_table(self._fit, self._detection[1]),
            "signal_detection",
            title,
            {"model": "equal variance"},
        )

    def r_squared(self) -> pd.DataFrame:
        """Compute Nakagawa's R squared, the intraclass correlation, and the variances that they are made of."""
        explained = mixed.r_squared(self._fit)
        rows = [
            ("R2 marginal", explained.marginal),
            ("R2 conditional", explained.conditional),
            ("ICC adjusted", explained.icc_adjusted),
            ("ICC unadjusted", explained.icc_unadjusted),
            ("variance, fixed", explained.fixed),
            ("variance, random", explained.random),
            ("variance, observations", explained.observation),
        ]
        title = f"Explained variance (Nakagawa; observations: {explained.basis})"
        table = pd.DataFrame(rows, columns=["quantity", "value"])
        return _titled(table, "r_squared", title, {"basis": explained.basis})

    def means(self, factors: Factors, *, slopes: str | None = None, scale: str = "link") -> pd.DataFrame:
        """Compute marginal means, or slopes of a covariate.

        Parameters
        ----------
        factors : str or sequence of str
            Columns in whose cells the means are wanted: names, or ``"a, b | c"``. Empty for the mean of all cells.
        slopes : str, optional
            A covariate whose slopes are wanted instead of means.
        scale : {'link', 'response', 'mean'}
            Of the linear predictor, or of the response: probabilities, counts, milliseconds (shifted_lognormal: the mean time
            ndt + exp(eta + sigma²/2), random effects at zero). Of an ordinal model ``link`` is the
            latent scale, ``response`` gives the probability of each category, and ``mean`` the mean rating.

        Returns
        -------
        DataFrame, shape (cells, …)
            The cell, estimate, se, df, statistic, p, ci_low, ci_high.

        Raises
        ------
        UserError
            For a column that the fixed part does not have.
        """
        compared, conditioning = _names(factors)
        margins, own_scale = self._margins([*compared, *conditioning], slopes, scale)
        within = f" within {' x '.join(conditioning)}" if conditioning else ""
        label = f"Marginal means of {' x '.join(compared)}{within}".removesuffix(" of ")
        if isinstance(margins, mixed.CategoryMargins):
            kind = "Mean ratings" if scale == "mean" else "Probabilities of categories"
            label = label.replace("Marginal means", kind)
        label = f"Slopes of {slopes}" if slopes else label
        title = f"{label} ({scale} scale)"
        return _titled(margins.table(own_scale), "slopes" if slopes else "means", title, {"scale": scale})

    def contrasts(self, factors: Factors, **options: Unpack[ContrastOptions]) -> pd.DataFrame:
        """Compare marginal means, or slopes, with one another.

        Parameters
        ----------
        factors : str or sequence of str
            As for :meth:`means`. With ``"a | b"`` the levels of a are compared within each level of b, each of which is a family.
        **options
            slopes : str
                Compare the slopes of this covariate instead of means.
            control : str
                Compare with this level instead of every two; levels of several factors are joined by commas.
            scale : {'link', 'response', 'ratio', 'mean'}
                Differences of linear predictors, differences of means, or ratios (odds ratios under the logit link); of an
                ordinal model see :meth:`means`.
            adjust : str
                ``none``, ``holm``, ``bonferroni``, ``BH``, ``sidak``, ``tukey``, ``dunnett`` or ``mvt``; by default holm, with a
                control dunnett.

        Returns
        -------
        DataFrame, shape (comparisons, …)
            contrast, estimate, se, df, statistic, p, ci_low, ci_high.

        Raises
        ------
        UserError
            For a level that does not exist, a scale that the model does not have, or one mean alone.
        """
        compared, conditioning = _names(factors)
        control, scale, adjust = options.get("control"), options.get("scale", "link"), options.get("adjust")
        margins, own_scale = self._margins([*compared, *conditioning], options.get("slopes"), scale)
        if not is_comparable(margins.grid, factors):
            raise UserError(
                f"one {'slope' if options.get('slopes') else 'mean'} leaves nothing to compare",
                mend="Name a factor, before the bar if there is one.",
            )
        conditioning = [
            *conditioning,
            *(str(name) for name in margins.grid if name not in {*compared, *conditioning}),
        ]
        if control is None:
            table = margins.pairs(conditioning, scale=own_scale, adjust=adjust or "holm")
        else:
            levels = tuple(level.strip() for level in control.split(","))
            table = margins.against(levels, conditioning, scale=own_scale, adjust=adjust or "dunnett")
        used = table.attrs["adjustment"]
        title = f"Comparisons ({scale} scale; adjustment: {used}{', per family' if conditioning else ''})"
        return _titled(table, "contrasts", title, {"scale": scale, "adjustment": used})

    def equivalence(self, factors: Factors, bound: float, **options: Unpack[ContrastOptions]) -> pd.DataFrame:
        """Test that comparisons lie within bounds, by two one-sided tests.

        Parameters
        ----------
        factors : str or sequence of str
            As for :meth:`contrasts`.
        bound : float
            Largest effect that is negligible, in the units of the comparisons; a ratio r means 1/r to r.
        **options
            As for :meth:`contrasts`.

        Returns
        -------
        DataFrame, shape (comparisons, …)
            The comparisons with their bounds, p of the less favourable test, 90% intervals and ``equivalent``.
        """
        tested = mixed.equivalence_tests(self.contrasts(factors, **options), bound)
        ends = f"{tested['lower'].iloc[0]:g} to {tested['upper'].iloc[0]:g}"
        title = f"Equivalence within {ends} (two one-sided tests, 90 % intervals)"
        facts = {"bound": bound, "level": 0.9, "scale": options.get("scale", "link")}
        return _titled(tested, "equivalence", title, facts)

    def predict(
        self,
        data: pd.DataFrame | None = None,
        *,
        random: bool = True,
        scale: str = "response",
        se: bool = False,
        new_levels: str = "refuse",
    ) -> pd.DataFrame:
        """Predict rows.

        Parameters
        ----------
        data : DataFrame, optional
            New rows with the model's columns; by default the rows that were fitted. A row with a missing cell gets nan.
        random : bool
            With the random effects of each row's participant, item and so on; False for an average one.
        scale : {'response', 'link'}
            Of an ordinal model ``response`` gives a column with the probability of each category, without standard errors.
        se : bool
            Also standard errors and 95% intervals.
        new_levels : {'refuse', 'population'}
            What to do with a participant or item that the fit has not seen: refuse, or predict an average one.

        Returns
        -------
        DataFrame, shape (rows, 1) or (rows, 4)
            estimate, and with ``se`` also se, ci_low, ci_high.

        Raises
        ------
        UserError
            If a column is missing or a cell holds a level not seen.
        """
        return mixed.predict(self._fit, data, random=random, scale=scale, se=se, new_levels=new_levels)

    def simulate(self, count: int = 1, *, seed: int | str = 0, conditional: bool = False) -> pd.DataFrame:
        """Draw responses from the model.

        Parameters
        ----------
        count : int
            How many data sets.
        seed : int or str
            The same seed gives the same draws on every machine.
        conditional : bool
            Keep the random effects as estimated; else draw new ones.

        Returns
        -------
        DataFrame, shape (rows fitted, count)
            With the index of the rows in the data. Categories of an ordinal model are numbers: their own, or 1, 2, 3, …
            where they are words.
        """
        drawn = mixed.simulate(self._fit, count, seed=seed, conditional=conditional)
        if self._fit.cuts is not None:
            drawn = self._fit.cuts.scores[drawn.astype(int)]
        return pd.DataFrame(drawn, index=self._data.index[self._fit.rows])

    def diagnostics(self, *, seed: int | str = 0) -> pd.DataFrame:
        """Check the model by simulated residuals, and find the unit of each grouping factor that matters most.

        Parameters
        ----------
        seed : int or str
            Of the 250 simulated data sets.

        Returns
        -------
        DataFrame
            ``check, value, p, unit``: the distance of the residuals from uniform ones (Kolmogorov and Smirnov), their dispersion
            (1 if the model holds) and the number of outliers, each tested against the simulations; then, for each grouping factor,
            the largest change of a fixed effect in standard errors if one of its units is left out (not of ordinal
            models or response times).
        """
        residuals = mixed.simulated_residuals(self._fit, seed=seed)
        rows: list[tuple[str, float, float, str]] = [
            ("uniformity", residuals.distance, residuals.p_uniform, ""),
            ("dispersion", residuals.dispersion, residuals.p_dispersion, ""),
            ("outliers", residuals.outliers, residuals.p_outliers, ""),
        ]
        for group in () if self._fit.cuts or self._fit.shape else self._fit.groups:
            changes = mixed.influence(self._fit, group).abs() / np.sqrt(np.diag(self._fit.vcov))
            largest = changes.max(axis=1)
            rows.append((f"influence of {group}", float(largest.max()), np.nan, str(largest.idxmax())))
        return pd.DataFrame(rows, columns=["check", "value", "p", "unit"])

    def plot(self, factors: Factors | None = None, *, scale: str = "response") -> Figure:
        """Draw marginal means with 95% intervals, or all coefficients.

        Parameters
        ----------
        factors : str or sequence of str, optional
            As for :meth:`means`: the first from left to right, the cells of the others next to each other. By default the
            coefficients are drawn.
        scale : {'response', 'link', 'mean'}
            Of the means, see :meth:`means`.

        Returns
        -------
        matplotlib.figure.Figure
            To show, change or save (``.savefig("means.png")``).
        """
        from analysis.figures.conditions import estimates_figure

        if factors is None:
            table = self._fit.told
            return estimates_figure(table, [], f"Coefficient ({self._fit.link} link)")
        table = self.means(factors, scale=scale)
        names = [str(name) for name in table.columns[: table.columns.get_loc("estimate")]]
        axis = f"Linear predictor of {self._response()}" if scale == "link" else self._response()
        if scale == "response" and self._fit.cuts is not None:
            axis = "Probability"
        return estimates_figure(table, names, axis)

    def to_apa(self, factors: Factors | None = None, **options: Unpack[ContrastOptions]) -> str:
        """Write results as the APA manual wants them (Markdown).

        Parameters
        ----------
        factors : str or sequence of str, optional
            As for :meth:`contrasts`: one sentence a comparison. By default one line a coefficient.
        **options
            As for :meth:`contrasts`, on the link scale. Several comparisons are adjusted together by default (``mvt``), so that
            p and interval agree.

        Returns
        -------
        str
        """
        if factors is None:
            model = self._fit.summary().splitlines()[0]
            lines = [f"- `{row['term']}`: {self._statistics(row)}." for row in _records(self._fit.told)]
            return "\n".join([f"{model}, `{self._fit.formula}`:", "", *lines])
        if options.get("scale", "link") != "link":
            raise UserError("sentences give estimates on the link scale", mend="Leave scale out.")
        compared, conditioning = _names(factors)
        chosen: ContrastOptions = {"adjust": "mvt", **options}
        table = self.contrasts(factors, **chosen)
        shown = "response" if self._fit.cuts is None else "mean"
        means = self.means(factors, slopes=chosen.get("slopes"), scale=shown)
        pairs = _pairs(means, compared, conditioning, chosen.get("control"))
        lines = [
            self._sentence(row, conditioning, *pair) for row, pair in zip(_records(table), pairs, strict=True)
        ]
        adjustment = table.attrs["adjustment"]
        if adjustment != "none":
            count = (
                f"{len(lines) // len(means[conditioning].drop_duplicates())}"
                if conditioning
                else f"{len(lines)}"
            )
            lines.append(f"*p* values and intervals are adjusted for {count} comparisons ({adjustment}).")
        return "\n".join(lines)

    def _margins(self, factors: Sequence[str], slopes: str | None, scale: str) -> tuple[mixed.Margins, str]:
        """Return means or slopes, and what they call the scale."""
        if slopes:
            return mixed.trends(self._fit, slopes, factors), scale
        if scale == "mean" or (scale == "response" and self._fit.cuts is not None):
            return mixed.category_margins(self._fit, factors, mean=scale == "mean"), "response"
        return mixed.margins(self._fit, factors), scale

    def _response(self) -> str:
        """Name what means on the response scale are of."""
        response = self._fit.model.formula.response
        if self._fit.model.family.takes_trials:
            return f"Probability of {self._fit.model.frame.success or as_r(response)}"
        match response:
            case FunctionCall("log", (inner,)):
                return f"{as_r(inner)} (geometric mean)"
        return as_r(response)

    def _statistics(self, row: Mapping[str, Any]) -> str:
        """Write estimate, standard error, test and interval of a row on the link scale."""
        ratio = self._fit.model.link.ratio
        df, estimate = float(row["df"]), float(row["estimate"])
        test = "*z*" if np.isnan(df) else f"*t*({apa.degrees_of_freedom(df)})"
        p = apa.p_value(row["p"])
        parts = [
            f"*b* = {apa.number(estimate)}",
            f"*SE* = {apa.number(row['se'])}",
            f"{test} = {apa.number(row['statistic'])}",
            f"*p* {p}" if p[0] in "<>" else f"*p* = {p}",
            *(
                [f"{'OR' if ratio == 'odds ratio' else ratio} = {apa.ratio(np.exp(estimate))}"]
                if ratio
                else []
            ),
            f"95% CI {'of *b* ' if ratio else ''}{apa.interval(row['ci_low'], row['ci_high'])}",
        ]
        return ", ".join(parts)

    def _sentence(
        self, row: Mapping[str, Any], conditioning: Sequence[str], left: dict[str, Any], right: dict[str, Any]
    ) -> str:
        """Write one comparison of two cells; b is the first's value less the second's."""
        share = self._fit.model.family.takes_trials
        first, second = (
            f"{cell['name']} (*M* = {apa.percent(cell['estimate']) if share else apa.number(cell['estimate'])})"
            for cell in (left, right)
        )
        within = "".join(f"{name} = {level_name(left[name])}, " for name in conditioning)
        start, response = (f"For {within}" if within else ""), self._response()
        if row["p"] < ALPHA:
            direction = "higher" if row["estimate"] > 0 else "lower"
            text = (
                f"{start}{response} was {direction} for {first} than for {second}, {self._statistics(row)}."
            )
        else:
            whether = "whether" if start else "Whether"
            text = f"{start}{whether} {response} differs between {first} and {second} remains open, {self._statistics(row)}."
        return text


def table_text(table: pd.DataFrame) -> str:
    """Write a table of a fitted model to read, under its title."""
    cells = [[_cell(name, value) for name, value in row.items()] for row in _records(table)]
    words = {index for index, name in enumerate(table.columns) if not _is_number(table[name])}
    return "\n".join([table.attrs["title"], *lined_up([list(map(str, table.columns)), *cells], words)])


def table_json(table: pd.DataFrame) -> dict[str, Any]:
    """Return facts and rows of a table of a fitted model as plain numbers and texts."""
    rows = [{name: plain(value) for name, value in row.items()} for row in _records(table)]
    return {**table.attrs["facts"], "rows": rows}


def is_comparable(cells: pd.DataFrame, factors: Factors) -> bool:
    """Return whether the cells of some factors, or a table of their means, leave anything to compare."""
    compared, conditioning = _names(factors)
    count = len(cells[[*compared, *conditioning]].drop_duplicates())
    return bool(compared) and count > (len(cells[conditioning].drop_duplicates()) if conditioning else 1)


def _titled(table: pd.DataFrame, key: str, title: str, facts: dict[str, Any]) -> pd.DataFrame:
    table.attrs.update(key=key, title=title, facts=facts)
    return table


def _read_csv(path: Path) -> pd.DataFrame:
    """Read a comma-separated file; only empty cells, NA and NaN are missing, as in R."""
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


def _refuse_idle_columns(fitted: Fit, settings: Mapping[str, Any]) -> None:
    """Refuse levels and contrasts of columns that the model has no factor of, which would have no effect."""
    formula = fitted.model.formula
    designs = [formula.fixed, *(term.design for term in formula.random)]
    nodes = [node for terms in designs for node in terms.variables]
    named = {column for node in nodes for column in columns_of(node)}
    variables = [fitted.model.frame.variables.make(node) for node in nodes]
    coded = {v.column for v in variables if isinstance(v, Factor) and v.condition is None}
    grouping = {column for term in formula.random for node in term.group for column in columns_of(node)}
    response = set(columns_of(formula.response))
    for option, used in (("levels", named | response), ("contrasts", coded)):
        for name in settings.get(option) or ():
            if name in used:
                continue
            reason = "which the formula does not read"
            if name in grouping:
                reason = "which only groups rows; a grouping factor has neither order nor contrasts"
            elif name in named | response:
                reason = "of which the model has no factor"
            raise UserError(
                f"{option} names {name!r}, {reason}", mend=f"Leave it out, or add {name} to the fixed part."
            )


def _names(factors: Factors) -> tuple[list[str], list[str]]:
    """Read ``a, b | c``: factors compared, and those within whose levels."""
    if not isinstance(factors, str):
        return list(factors), []
    left, _, right = factors.partition("|")
    compared, conditioning = (
        [name.strip() for name in side.split(",") if name.strip()] for side in (left, right)
    )
    return compared, conditioning


def _pairs(
    means: pd.DataFrame, compared: Sequence[str], conditioning: Sequence[str], control: str | None
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the two cells of each comparison, in the order of the table of contrasts."""
    cells = [{**row, "name": " ".join(level_name(row[name]) for name in compared)} for row in _records(means)]
    families: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for cell in cells:
        families.setdefault(tuple(cell[name] for name in conditioning), []).append(cell)
    control_name = control and " ".join(level.strip() for level in control.split(","))
    for family in families.values():
        if control_name is None:
            yield from itertools.combinations(family, 2)
        else:
            base = next(cell for cell in family if cell["name"] == control_name)
            yield from ((cell, base) for cell in family if cell is not base)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _is_number(column: pd.Series[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def _cell(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if pd.api.types.is_bool(value):
        return "yes" if value else "no"
    number = plain(value)
    if number is None:
        return "-"
    if name in {"p", "p_boundary"}:
        return format_p(number)
    return f"{number:.1f}" if name in {"df", "denominator"} else f"{number:.4g}"


def _signal_formula(formula: str, signal: str, data: pd.DataFrame) -> tuple[str, str]:
    """Give every term of a formula its part in sensitivity, for people and items too: the formula, and what marks sensitivity.

    With s = 1/2 on signal trials and -1/2 on noise trials, P(yes) = Phi(d' s - c) (DeCarlo 1998): every term of criterion c
    enters alone, with its sign reversed, and every term of sensitivity d' multiplied by s.
    """
    name, sign, level = (part.strip() for part in signal.partition("="))
    if name not in data.columns:
        raise unknown_name("column", name, [str(c) for c in data.columns])
    present = data[name].dropna().unique()
    if sign and level not in {str(value) for value in present}:
        raise unknown_name(f"level of {name}", level, [str(value) for value in present])
    if not sign and not set(present) <= {0, 1}:
        invalid = next(value for value in present if value not in {0, 1})
        raise UserError(
            f"signal column {name!r} holds {str(invalid)!r}; it must be 1 on signal trials and 0 on noise trials",
            mend=f"Name the level that is the signal: {name}={invalid}.",
        )
    column = as_r(Name(name))
    is_signal = f"{column} == {json.dumps(level, ensure_ascii=False)}" if sign else column
    marker = as_r(read_expression(f"I(as.numeric({is_signal}) - 0.5)"))
    response, fixed, bars, offsets = parts_of(formula)
    if offsets:
        raise UserError("a signal detection model takes no offset()", mend="Leave the offset out.")

    def crossed(part: Node | None) -> str:
        terms = expand_terms(part, formula)
        if not terms.intercept:
            raise UserError(
                f"formula {formula!r} leaves an intercept out, which is a criterion and, times the signal, a sensitivity",
                mend="Write it without 0 + (or - 1).",
            )
        # Written out, since 1 * s is the intercept alone in R.
        labels = terms.labels()
        return " + ".join(["1", *labels, marker, *(f"{label}:{marker}" for label in labels)])

    random = [f" + ({crossed(bar.left)} {bar.op} {as_r(bar.right)})" for bar in bars]
    return f"{as_r(response)} ~ {crossed(fixed)}{''.join(random)}", marker


def _signal_table(fit: Fit, marker: str) -> pd.DataFrame:
    """Read sensitivity and criterion off the coefficients: measure, term, and the columns of ``linear_contrasts``."""
    terms = [str(term).split(":") for term in fit.fixed["term"]]
    is_sensitivity = np.array([marker in parts for parts in terms])
    names = [":".join(part for part in parts if part != marker) or "(Intercept)" for parts in terms]
    order = np.argsort(~is_sensitivity, kind="stable")
    signs = np.diag(np.where(is_sensitivity, 1.0, -1.0))
    table = mixed.linear_contrasts(fit, signs[order], [names[i] for i in order]).rename(
        columns={"contrast": "term"}
    )
    table.insert(0, "measure", np.where(is_sensitivity[order], "d'", "c"))
    return table
