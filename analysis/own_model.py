"""A model that a plan writes out itself: which columns it may name, and what it has to hold so that its contrasts can be tested."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from analysis.mixed.expression import columns_of
from analysis.mixed.formula import read_formula
from analysis.plan import Measure
from stimuli.errors import UserError, unknown_name

STRUCTURE = (
    *("reader_group", "participant", "item", "item_reader", "item_cell", "prompt", "people", "model"),
    *("item_condition", "model_session", "machine", "machine_condition"),
    *("session_id", "list_id", "block", "set", "trial_index", "prompt_variant", "label_map", "choice_order"),
    *("replicate", "answer_given"),
)
"""Columns that every model may name, beside the response and the study's factors."""


def check_own_formula(
    text: str, measure: Measure, compare: Sequence[str], factors: Collection[str], *, several_readers: bool
) -> None:
    """Check a planned formula before there are data."""
    formula = read_formula(text)
    if not formula.random:
        raise UserError(
            f"{text!r} has no random-effects term; a planned model must generalise over participants or items",
            mend="Add one, for example '+ (1 | participant)'.",
        )
    left, right = text.split("~", 1)
    response = "".join(left.split())
    if response != "".join(measure.response.split()):
        raise UserError(
            f"{text!r} models {left.strip()!r}; {measure.noun} is {measure.response!r} in a model",
            mend=f"Write: {measure.response} ~{right}",
        )
    own = set(columns_of(formula.response))
    known = {*STRUCTURE, *factors, *own}
    for name in formula.columns():
        if name not in known:
            fault = unknown_name(
                f"{text!r} names a column that models do not have:", name, sorted(known - own)
            )
            raise fault
    fixed = {word for label in formula.fixed.labels() for word in label.split(":")}
    for name in [*compare, *(["reader_group"] if several_readers else [])]:
        if name not in fixed:
            raise UserError(
                f"{text!r} has no fixed effect of {name}, which the analysis compares",
                mend=f"Write it as {name}, as a plain column.",
            )
    if len(compare) > 1 and not any(
        set(compare) <= set(label.split(":")) for label in formula.fixed.labels()
    ):
        raise UserError(
            f"{text!r} has no interaction of {' and '.join(compare)}, which the analysis compares",
            mend=f"Write them as {' * '.join(compare)}.",
        )
