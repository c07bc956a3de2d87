"""Registration before data collection, and a check that analysis can fit custom model formulas."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from experiment.cli.terminal import option
from experiment.columns import trial_columns
from stimuli.errors import UserError, together

if TYPE_CHECKING:
    from experiment.store import Store
    from experiment.study import Study

NOT_REGISTERED = "not registered"


def registration_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--registered`` and ``--not-registered`` to a command that begins sessions."""
    for added in (
        option("--not-registered", "Specify before the first session that the study's plan is not registered."),
        option("--registered URL", "Specify before the first session where the study's plan is registered."),
    ):  # fmt: skip
        command = added(command)
    return command


def ask_registration(study: Study, store: Store, url: str | None, *, is_not_registered: bool) -> None:
    """Store where a study with planned analyses is registered, before its first session other than a pilot.

    A given answer is stored and replaces an earlier one; without one, a user at the terminal is asked.
    """
    from experiment.cli.study_store import this_user
    from experiment.integrity.freezing import needs_registration, note_registration, registration_of

    if url is not None and is_not_registered:
        raise UserError("--registered and --not-registered are both given", mend="Choose one.")
    if url is not None or is_not_registered:
        with store.read() as connection:
            stored = registration_of(connection, study.id)
        if stored is not None and stored.url == url:
            return
    elif not needs_registration(study, store):
        return
    else:
        url = _asked(study)
    note_registration(study, store, url, this_user())


def _asked(study: Study) -> str | None:
    """Ask a user at the terminal where a study is registered; None if it is not."""
    from experiment.integrity.freezing import check_address

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError(
            f"{study.id} plans analyses, but it is not known where the plan is registered; this must be specified before the first "
            "session other than a pilot",
            mend="Give --registered URL (`wrods freeze` writes the text to register) or --not-registered.",
        )
    click.echo(
        f"{study.id} plans analyses. Where is the plan registered? `wrods freeze` writes the text to register. The answer is stored "
        "and printed in the report."
    )
    while True:
        answer = str(click.prompt(f"Its address, or {NOT_REGISTERED!r}")).strip()
        if answer.lower() == NOT_REGISTERED:
            return None
        try:
            check_address(answer)
        except UserError as fault:
            click.echo(str(fault))
        else:
            return answer


def tell_unplanned(study: Study, models: Mapping[str, Mapping[str, Any]]) -> None:
    """Report models that no planned analysis of a frozen study names: their results are exploratory."""
    from experiment.integrity.freezing import read_freeze
    from experiment.study.study import planned_analyses

    planned = planned_analyses(study)
    if not planned or read_freeze(study.folder) is None:
        return
    named = {reader for plan in planned for reader in plan.measures}
    for name, settings in models.items():
        if name not in named and not str(settings["use"]).startswith("baseline:"):
            click.echo(
                f"{name} is in no planned analysis, and the plan is frozen: what it answers is reported as exploratory.",
                err=True,
            )


def check_factor_names(study: Study) -> None:
    """Check that no factor is named like a column that the tables of items, an analysis or its formulas have in every study."""
    from analysis.frames import TAKEN
    from experiment.exporting.tables import AS_JSON

    faults = [
        UserError(
            f"{study.place('design', kind, factor)}: {factor!r} is the name of a column with another meaning in tables and models",
            mend=f"Give the factor another name, such as {factor}_condition.",
        )
        for kind in ("factors", "between")
        for factor in study.get("design", kind, default={})
        if factor in {*TAKEN, *AS_JSON, "role"} - set(trial_columns())
    ]
    if faults:
        raise together(faults)


def check_own_formulas(study: Study) -> None:
    """Check each formula and fallback of the planned analyses."""
    from experiment.study.study import PLANNED, planned_analyses

    given = [
        (analysis, key, text)
        for analysis in planned_analyses(study)
        for key, text in (("formula", analysis.formula), ("fallback", analysis.fallback))
        if text is not None
    ]
    for plan, key, text in given:
        from analysis.frames import check_own_formula

        measure, several = next(iter(plan.by_measure)), len(plan.readers) > 1
        try:
            check_own_formula(text, measure, plan.factors, list(study.factors), several_readers=several)
        except UserError as fault:
            place = study.place(*PLANNED, plan.name, key)
            raise UserError(f"{place}: {fault.message}", mend=fault.mend) from None
