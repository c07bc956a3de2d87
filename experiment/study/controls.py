"""Control conditions that remove the evidence from items that have their own factor, and settings of whole sessions.

Removing only the stimulus shows how much an answer depends on it. What can be done to an item is declared with its factor
(:class:`stimuli.papers.OwnFactor`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiment.study.factors import GROUP, levels_of
from experiment.study.yaml_source import Faults
from experiment.trials import TYPES
from stimuli.errors import UserError, did_you_mean
from stimuli.papers import OwnFactor, own_factors

if TYPE_CHECKING:
    from experiment.study.study import Study

LABELS_SHUFFLED = "shuffled"
WITH_ROWS = frozenset({"sentences", "words"})
"""Materials whose rows levels can pick (`where`)."""
LEVELS = ("intact", "substituted", "nothing")
"""Names of levels in an example."""


def check_controls(study: Study, own: OwnFactor) -> None:
    """Raise an error for an invalid factor in addition to that of the items."""
    factors = study.get("design", "factors", default={})
    if not factors:
        return
    place = study.place("design", "factors")
    most = 1 if own.controls else 0
    if len(factors) > most:
        example = ", ".join(f"{name}: {control}" for name, control in zip(LEVELS, own.controls, strict=False))
        raise UserError(
            f"{place}: items of {own.about} have their own factor, and {len(factors)} more {'is' if len(factors) == 1 else 'are'} "
            "given",
            mend=f"Add one factor at most, whose levels take the evidence away: {{{example}}}."
            if most
            else "Take factors out of the design.",
        )
    ((factor, given_levels),) = factors.items()
    levels = levels_of(given_levels)
    for level, given in levels.items():
        _check_level(study, own, factor, level, given)
    first, given = next(iter(levels.items()))
    if given != next(iter(own.controls)):
        raise UserError(
            f"{study.place('design', 'factors', factor, first)}: the first level is the reference, and {given!r} changes the "
            "items",
            mend="Begin with the items as they are, such as intact: none.",
        )
    if len(set(levels.values())) < len(levels):
        raise UserError(
            f"{study.place('design', 'factors', factor)}: two levels show the same",
            mend="Let each level show something different.",
        )
    if "items" in study.published:
        raise UserError(
            f"{place}: no paper changed items of {own.about}",
            mend="Take items out of published, or the factor out of the design.",
        )


def _check_level(study: Study, own: OwnFactor, factor: str, level: str, given: object) -> None:
    if given in tuple(own.controls):
        return
    shown = given if isinstance(given, str) else dict(given) if isinstance(given, Mapping) else given
    hint = did_you_mean(str(given), own.controls)
    controls = "; ".join(f"{control}, {about}" for control, about in own.controls.items())
    raise UserError(
        f"{study.place('design', 'factors', factor, level)} is {shown!r}, which cannot be done to items of {own.about}",
        mend=f"{hint}Levels are: {controls}. {own.advice}".strip(),
    )


def check_between(study: Study, faults: Faults) -> None:
    """Check the settings of levels between sessions: those of the material, and replaced texts."""
    texts = {name for name, path in study.text_files() if path[0] == "procedure"}
    consents = {screen["consent"] for screen in study.get("procedure") if "consent" in screen}
    for factor, levels in study.between.items():
        for level, given in levels.items():
            faults.check(_check_settings, study, (factor, level), given)
            faults.check(_check_texts, study, (factor, level), given.get("texts", {}), texts, consents)


def _check_settings(study: Study, at: tuple[str, str], given: Mapping[str, object]) -> None:
    known = () if study.own is None else study.own[1].session_settings
    for name in given:
        if name == "where" and not WITH_ROWS & set(study.get("materials")):
            raise UserError(
                f"{study.place('design', 'between', *at, name)}: only {' and '.join(sorted(WITH_ROWS))} have rows to pick",
                mend="Remove where from the level.",
            )
        if name not in ("texts", "where", GROUP, *TYPES, *study.own_types, *known):
            able = [keyword for keyword, (_, own) in own_factors().items() if name in own.session_settings]
            raise UserError(
                f"{study.place('design', 'between', *at, name)}: only studies with materials: {' or '.join(able)} can set "
                f"{name} for whole sessions",
                mend=f"Remove {name} from the level.",
            )


def _check_texts(
    study: Study, at: tuple[str, str], given: Mapping[str, str], shown_texts: set[str], consents: set[str]
) -> None:
    for name in given:
        place = study.place("design", "between", *at, "texts", name)
        if name in consents:
            raise UserError(
                f"{place}: everybody agrees to the same text", mend="Let levels differ in instructions."
            )
        if name not in shown_texts:
            hint = did_you_mean(name, shown_texts)
            raise UserError(
                f"{place}: no screen of the procedure shows {name!r}",
                mend=f"{hint}Texts of the procedure: {', '.join(sorted(shown_texts - consents)) or 'none'}.",
            )
