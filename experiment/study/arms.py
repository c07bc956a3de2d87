"""Control conditions that remove the evidence from items that have their own factor (H-TEST, letter geometry).

Removing only the stimulus shows how much an answer depends on it. In H-TEST the letters of the text are replaced (``Sub``); the
examples' information is removed for whole sessions (``design: between``), because a reader who has seen a rule's examples knows
it. In letter geometry the symbols of the question are replaced, or the question is withheld.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from experiment.study.faults import Faults
from stimuli.errors import UserError, did_you_mean

if TYPE_CHECKING:
    from experiment.study.study import Study

AS_IT_IS, SUBSTITUTED, WITHHELD = "none", "Sub", "withhold"
ARMS: Mapping[str, tuple[str, ...]] = {
    "htest": (AS_IT_IS, SUBSTITUTED),
    "letter_geometry": (AS_IT_IS, SUBSTITUTED, WITHHELD),
}
"""Operations allowed as levels for items with their own factor, by material."""
MATERIAL = {"htest": "H-TEST", "letter_geometry": "letter geometry"}
LABELS_SHUFFLED = "shuffled"


def check_arms(study: Study, kind: str) -> None:
    """Raise an error for an invalid factor in addition to that of the items."""
    factors = study.get("design", "factors", default={})
    if not factors:
        return
    place = study.place("design", "factors")
    if len(factors) > 1:
        raise UserError(
            f"{place}: items of {MATERIAL[kind]} have their own factor, and {len(factors)} more are given",
            mend="Add one factor at most, whose levels take the evidence away: "
            f"{{{', '.join(_example(kind))}}}.",
        )
    ((factor, levels),) = factors.items()
    for level, given in levels.items():
        _check_level(study, kind, factor, level, given)
    first, given = next(iter(levels.items()))
    if given != AS_IT_IS:
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
            f"{place}: no paper changed items of {MATERIAL[kind]}",
            mend="Take items out of published, or the factor out of the design.",
        )


def _check_level(study: Study, kind: str, factor: str, level: str, given: object) -> None:
    if given in ARMS[kind]:
        return
    place = study.place("design", "factors", factor, level)
    if kind == "htest" and given == WITHHELD:
        raise UserError(
            f"{place}: the examples distinguish the classes of H-TEST, and a reader who has seen those of a rule once knows it",
            mend="Withhold them for whole sessions, design: between: {evidence: {examples: {exemplars: 4}, none: "
            "{exemplars: 0}}}, or shuffle their labels: {exemplars: 4, example_labels: shuffled}.",
        )
    shown = given if isinstance(given, str) else dict(given) if isinstance(given, Mapping) else given
    hint = did_you_mean(str(given), ARMS[kind])
    raise UserError(
        f"{place} is {shown!r}, which cannot be done to items of {MATERIAL[kind]}",
        mend=f"{hint}Levels are {', '.join(ARMS[kind])}: the item as it is, other letters instead of its own"
        + (", the question left out." if WITHHELD in ARMS[kind] else "."),
    )


def _example(kind: str) -> list[str]:
    names = {AS_IT_IS: "intact", SUBSTITUTED: "substituted", WITHHELD: "nothing"}
    return [f"{names[arm]}: {arm}" for arm in ARMS[kind]]


def check_between(study: Study, faults: Faults) -> None:
    """Check the settings of levels between sessions: examples of H-TEST, and replaced texts."""
    most = study.get("materials", "htest", "exemplars", default=4)
    texts = {name for name, path in study.text_files() if path[0] == "procedure"}
    consents = {screen["consent"] for screen in study.get("procedure") if "consent" in screen}
    for factor, levels in study.between.items():
        for level, given in levels.items():
            faults.check(_check_examples, study, (factor, level), given, most)
            faults.check(_check_texts, study, (factor, level), given.get("texts", {}), texts, consents)


def _check_examples(study: Study, at: tuple[str, str], given: Mapping[str, object], most: int) -> None:
    for name in ("exemplars", "example_labels"):
        if name in given and study.get("materials", "htest") is None:
            raise UserError(
                f"{study.place('design', 'between', *at, name)}: only H-TEST studies show a number of exemplars"
            )
    shown = int(str(given.get("exemplars", most)))
    if shown > most or shown % 2:
        raise UserError(
            f"{study.place('design', 'between', *at, 'exemplars')} is {shown}; it is even and at most the {most} that "
            "materials.htest makes",
            mend="Raise materials: htest: exemplars to the largest level.",
        )
    if given.get("example_labels") == LABELS_SHUFFLED and (shown % 4 or not shown):
        raise UserError(
            f"{study.place('design', 'between', *at, 'example_labels')}: half of the examples of each class get the other "
            f"label, which {shown} examples do not allow",
            mend="Show a multiple of 4 exemplars at this level.",
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
