"""Signal detection as a model: the probability of answering "yes" under the probit link (DeCarlo 1998).

With s = 1/2 on signal trials and -1/2 on noise trials, P(yes) = Phi(d' s - c). Written as a formula, every term of criterion c
enters alone, with its sign reversed, and every term of sensitivity d' multiplied by s.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from stimuli.errors import UserError, unknown_name

from .expression import Name, Node, as_r, read_expression
from .formula import expand_terms, parts_of
from .inference import linear_contrasts
from .result import Fit


def signal_formula(formula: str, signal: str, data: pd.DataFrame) -> tuple[str, str]:
    """Give every term of a formula its part in sensitivity, for people and items too."""
    name, sign, level = (part.strip() for part in signal.partition("="))
    if name not in data.columns:
        raise unknown_name("column", name, [str(c) for c in data.columns])
    present = data[name].dropna().unique()
    if sign and level not in {str(value) for value in present}:
        raise unknown_name(f"level of {name}", level, [str(value) for value in present])
    if not sign and not set(present) <= {0, 1}:
        odd = next(value for value in present if value not in {0, 1})
        raise UserError(
            f"signal column {name!r} holds {str(odd)!r}; it must be 1 on signal trials and 0 on noise trials",
            mend=f"Name the level that is the signal: {name}={odd}.",
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


def signal_table(fit: Fit, marker: str) -> pd.DataFrame:
    """Read sensitivity and criterion off the coefficients: measure, term, and the columns of ``linear_contrasts``."""
    terms = [str(term).split(":") for term in fit.fixed["term"]]
    is_sensitivity = np.array([marker in parts for parts in terms])
    names = [":".join(part for part in parts if part != marker) or "(Intercept)" for parts in terms]
    order = np.argsort(~is_sensitivity, kind="stable")
    signs = np.diag(np.where(is_sensitivity, 1.0, -1.0))
    table = linear_contrasts(fit, signs[order], [names[i] for i in order]).rename(
        columns={"contrast": "term"}
    )
    table.insert(0, "measure", np.where(is_sensitivity[order], "d'", "c"))
    return table
