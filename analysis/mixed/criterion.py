"""What is maximised: the approximation of the integral, the dispersion's part in it, and a penalty if one is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from stimuli.errors import UserError, unknown_name

from .families import Family, Link
from .frame import Frame
from .laplace import LaplaceDeviance
from .matrices import Matrices
from .penalty import Penalty
from .quadrature import MOST_CELLS, MOST_NODES, QuadratureDeviance

INFORMATION = ("expected", "observed")
DISPERSION = ("ml", "glmer")
PENALTIES = {"normal": Penalty()}
"""Penalties by name."""


@dataclass(frozen=True)
class Criterion:
    """How the likelihood of a generalised model is computed.

    Attributes
    ----------
    nagq : int
        Quadrature points; 1 is the Laplace approximation.
    information : {'expected', 'observed'}
        What the Laplace determinant holds.
    dispersion : {'ml', 'glmer'}
        Whether phi is estimated by maximum likelihood or put in as lme4 does.
    penalty : Penalty or None
        Added to the log-likelihood.
    penalty_name : str or None
        Its name.
    """

    nagq: int = 1
    information: str = "expected"
    dispersion: str = "ml"
    penalty: Penalty | None = None
    penalty_name: str | None = None

    def method(self) -> str:
        """Name the criterion as a report does; plain Laplace under lme4's name."""
        rule = "Laplace" if self.nagq == 1 else "adaptive Gauss-Hermite"
        inside = ", observed information" if self.information == "observed" and self.nagq == 1 else ""
        kind = "ML" if self.dispersion == "ml" else "glmer's criterion"
        if self.penalty is not None:
            kind = f"penalised {kind} ({self.penalty_name})"
        return f"{kind}, {rule} (nAGQ={self.nagq}{inside})"


def choose_criterion(
    family: Family, link: Link, nagq: int, information: str | None, dispersion: str, penalty: str | None
) -> Criterion:
    """Look up a criterion and refuse combinations that make no sense.

    Raises
    ------
    UserError
        Naming the option, what it takes, and what to do.
    """
    if isinstance(nagq, bool) or nagq != int(nagq) or not 1 <= nagq <= MOST_NODES:
        raise UserError(
            f"nAGQ = {nagq} is not available; it takes a whole number from 1 to {MOST_NODES}",
            mend="1 is the Laplace approximation, 9 or more is quadrature for one grouping factor.",
        )
    if information is not None and information not in INFORMATION:
        raise unknown_name("information", information, INFORMATION)
    if dispersion not in DISPERSION:
        raise unknown_name("dispersion", dispersion, DISPERSION)
    if penalty is not None and penalty not in PENALTIES:
        raise unknown_name("penalty", penalty, PENALTIES)
    if family.has_scale:
        given = {"nagq": nagq != 1, "information": information is not None, "penalty": penalty is not None}
        given["dispersion"] = dispersion != "ml"
        for name, is_given in given.items():
            if is_given:
                raise UserError(
                    f"{name} is for generalised models; the integral of a gaussian model is exact",
                    mend="Leave it out, or choose another family.",
                )
        return Criterion()
    if dispersion == "glmer":
        for refused, why in (
            (family.dispersion != "phi", f"the {family.name} family has no dispersion phi"),
            (
                family.name == "gaussian",
                "for gaussian responses glmer's criterion has several minima and takes others in other units",
            ),
            (nagq != 1, "lme4's criterion has no quadrature for it"),
            (information == "observed", "lme4's criterion holds the expected information"),
            (penalty is not None, "lme4's criterion is no likelihood that a prior could join"),
        ):
            if refused:
                raise UserError(f"dispersion = 'glmer': {why}", mend="Leave dispersion out.")
    if family.dispersion in {"thresholds", "shape"} and information == "expected":
        raise UserError(
            f"information = 'expected': {family.name} models have the observed information",
            mend="Leave information out.",
        )
    if family.dispersion == "precision":
        for name, is_given in (
            ("information = 'expected'", information == "expected"),
            ("a penalty", penalty is not None),
        ):
            if is_given:
                raise UserError(f"{name} is not available for the {family.name} family", mend="Leave it out.")
    if penalty is not None and family.dispersion in {"phi", "shape"}:
        raise UserError(
            f"penalty {penalty!r} is for responses without units, not for the {family.name} family",
            mend="Leave it out: times do not separate.",
        )
    # lme4's glmer treats phi as no likelihood does, so there the textbook's approximation stands, glmmTMB's too.
    likelihood = family.dispersion in {"phi", "precision"} and dispersion == "ml"
    exact = family.dispersion in {"thresholds", "shape"} or likelihood
    return Criterion(
        int(nagq),
        information or ("observed" if exact else "expected"),
        dispersion,
        PENALTIES[penalty] if penalty is not None else None,
        penalty,
    )


def refuse_without_random_effects(nagq: int, information: str | None, dispersion: str) -> None:
    """Refuse, for a model of fixed effects alone, what says how to integrate over random effects.

    Raises
    ------
    UserError
        Naming the option.
    """
    for name, given in (
        ("nagq", nagq != 1),
        ("information", information is not None),
        ("dispersion = 'glmer'", dispersion == "glmer"),
    ):
        if given:
            raise UserError(
                f"{name} is for models with random effects; this formula has none, and its likelihood needs no approximation",
                mend="Leave it out, or add a term such as (1 | participant).",
            )


def make_objective(
    frame: Frame, matrices: Matrices, family: Family, link: Link, criterion: Criterion
) -> LaplaceDeviance:
    """Make the deviance that a criterion names, the penalty left out.

    Raises
    ------
    UserError
        If quadrature is asked for more than one grouping factor, or for too many nodes.
    """
    observed = criterion.information == "observed"
    if criterion.nagq == 1:
        return LaplaceDeviance(frame, matrices, family, link, observed, criterion.dispersion == "glmer")
    if len(matrices.effects) > 1:
        names = ", ".join(g.name for g in matrices.groupings)
        raise UserError(
            f"nAGQ = {criterion.nagq} takes one grouping factor; this model has {len(matrices.effects)} ({names})",
            mend="Use nAGQ = 1 (Laplace), or keep one grouping factor.",
        )
    width = matrices.effects[0].width
    nodes = float(criterion.nagq) ** width
    if nodes * len(frame.y) > MOST_CELLS:
        raise UserError(
            f"nAGQ = {criterion.nagq} with {width} random effects a level takes {nodes:.0f} nodes for each of "
            f"{len(frame.y)} rows",
            mend="Use fewer points, or fewer slopes.",
        )
    return QuadratureDeviance(frame, matrices, family, link, criterion.nagq, observed)
