"""The planned analyses of a study, with every default stated, and the checks that a schema cannot make.

What a plan leaves unsaid has a default that is the same everywhere: it is told by ``wrods check --explain``, stands in the
registration, and is handed over to analysis with the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from experiment.study.bounds import read_bounds, read_rule
from experiment.study.contrasts import Levels, how_written, read_sides, usual_contrasts
from experiment.study.factors import OWN_FACTOR
from experiment.study.faults import FACTORS, Faults
from stimuli.errors import UserError, did_you_mean, unknown_name

if TYPE_CHECKING:
    from experiment.study.study import Study

ALPHA = 0.05
TWO_SIDED = "two-sided"
PEOPLE = ("human", "simulated")
OF_READING = {"reading_time", "surprisal", "prompt_tokens"}
"""Measures that do not depend on how a trial ends."""
OF_WORDS = {"recovered", "recovered_with_one_typo"}
WITH_ANSWERS = {"correct", "missing", *OF_WORDS}
"""Measures of the answer itself: to leave out wrong answers would leave out what is measured."""


@dataclass(frozen=True)
class PlannedMeasure:
    """What is known of a measure: what it is in words, of whom, and on which scale its differences are bounded."""

    name: str
    said: str
    of: str
    scale: str
    unit: str
    model: str


@dataclass(frozen=True)
class PlannedContrast:
    """``first`` minus ``second`` (at levels of another factor), as the study writes it, and what is expected of it."""

    said: str
    first: str
    second: str
    direction: str
    at: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlannedAnalysis:
    """One planned analysis with its defaults.

    Attributes
    ----------
    name : str
    measures : dict
        Of each reader, in the order in which the study names them.
    levels_of : dict
        Of each factor that is compared, one or two, the levels that are: the reference first; all unless the study names some.
    contrasts : tuple of PlannedContrast
    alpha : float
    family : str or None
        None where each contrast is a family of its own, over its readers.
    equivalence, formula, fallback : str or None
    exclude : dict
        Beyond the study's own.
    stop : str or None
        None for the study's wanted participants.
    trials : str or None
    within : dict
        Levels of other factors that its trials show.
    stated : frozenset of str
        The keys that the study gives; everything else is a default.
    """

    name: str
    measures: Mapping[str, PlannedMeasure]
    levels_of: Mapping[str, tuple[str, ...]]
    contrasts: tuple[PlannedContrast, ...]
    alpha: float
    family: str | None
    equivalence: str | None
    formula: str | None
    fallback: str | None
    exclude: Mapping[str, Any]
    stop: str | None
    trials: str | None
    within: Mapping[str, str]
    stated: frozenset[str]

    @property
    def readers(self) -> tuple[str, ...]:
        """Names of the readers, in order."""
        return tuple(self.measures)

    @property
    def factors(self) -> tuple[str, ...]:
        """The factor that is compared, or the two whose interaction is tested."""
        return tuple(self.levels_of)

    @property
    def compare(self) -> str:
        """What is compared, in words: ``font``, or ``item_type × font``."""
        return " × ".join(self.factors)

    def to_json(self) -> dict[str, Any]:
        """Return the plan in the study's own words with every default written out, as it is handed over."""
        return {
            "measure": {reader: one.name for reader, one in self.measures.items()},
            "compare": self.factors[0] if len(self.factors) == 1 else list(self.factors),
            **({"levels": self._levels_to_json()} if "levels" in self.stated else {}),
            "between": list(self.readers),
            "contrasts": [one.said for one in self.contrasts],
            "direction": {one.said: one.direction for one in self.contrasts},
            "alpha": self.alpha,
            "family": self.family,
            "equivalence": self.equivalence,
            "formula": self.formula,
            "fallback": self.fallback,
            "exclude": dict(self.exclude),
            "stop": self.stop,
            "trials": self.trials,
            **({"within": dict(self.within)} if self.within else {}),
        }

    def _levels_to_json(self) -> list[str] | dict[str, list[str]]:
        told = {name: list(own) for name, own in self.levels_of.items()}
        return told if len(told) > 1 else next(iter(told.values()))


@cache
def planned_measures() -> dict[str, PlannedMeasure]:
    """Return every measure that a plan may name."""
    text = resources.files(__package__).joinpath("measures.json").read_text("utf-8")
    return {name: PlannedMeasure(name, **given) for name, given in json.loads(text)["measures"].items()}


def planned_analyses(study: Study) -> list[PlannedAnalysis]:
    """Return the planned analyses of a study that passed its checks, with every default."""
    return [
        _read(str(name), spec, study) for name, spec in study.get("analysis", "planned", default={}).items()
    ]


def _read(name: str, spec: Mapping[str, Any], study: Study) -> PlannedAnalysis:
    known, given = planned_measures(), spec["measure"]
    levels = _compared(spec, study)
    directions = spec.get("direction", TWO_SIDED)
    contrasts = []
    for text in spec.get("contrasts") or usual_contrasts(levels):
        sides = read_sides(text, levels)
        assert sides is not None, "the check lets no other contrast through"
        way = directions if isinstance(directions, str) else directions.get(text, TWO_SIDED)
        contrasts.append(PlannedContrast(text, sides.first, sides.second, way, sides.at))
    return PlannedAnalysis(
        name=name,
        measures={
            str(reader): known[given if isinstance(given, str) else given[reader]]
            for reader in spec["between"]
        },
        levels_of=levels,
        contrasts=tuple(contrasts),
        alpha=float(spec.get("alpha", ALPHA)),
        family=spec.get("family"),
        equivalence=spec.get("equivalence"),
        formula=spec.get("formula"),
        fallback=spec.get("fallback"),
        exclude=spec.get("exclude", {}),
        stop=spec.get("stop"),
        trials=spec.get("trials"),
        within=spec.get("within", {}),
        stated=frozenset(spec),
    )


def factors_compared(spec: Mapping[str, Any]) -> list[str]:
    """Return the factor that a plan compares, or the two whose interaction it tests."""
    given = spec["compare"]
    return [given] if isinstance(given, str) else [str(name) for name in given]


def _compared(spec: Mapping[str, Any], study: Study) -> dict[str, tuple[str, ...]]:
    """Return the levels of each factor that is compared."""
    names, given = factors_compared(spec), spec.get("levels") or {}
    by = given if isinstance(given, Mapping) else {names[0]: given}
    return {name: tuple(str(level) for level in by.get(name) or study.factors[name]) for name in names}


def check_planned(study: Study, faults: Faults) -> None:
    """Check that every planned analysis names what there is, and can be carried out as it is written.

    What is wrong is added to ``faults``.
    """
    given = study.get("analysis", "planned", default={})
    names = [str(name) for name in given] if isinstance(given, Mapping) else []
    for name in names:
        path, spec = ("analysis", "planned", name), given[name]
        factors, models = [path, *FACTORS], [path, ("models", "who")]
        faults.check(_check_measures, study, path, spec, reads=models)
        faults.check(_check_trials, study, path, spec, reads=[path, ("procedure",)])
        if faults.check(_check_factors, study, path, spec, reads=factors):
            for check in (_check_levels, _check_within, _check_contrasts):
                faults.check(check, study, path, spec, reads=factors)
        for check in (_check_bound, _check_model, _check_exclusions):
            faults.check(check, study, path, spec, reads=[path])
    faults.check(_check_families, study, reads=[("analysis", "planned")])


def _check_families(study: Study) -> None:
    level_of: dict[str, tuple[str, float]] = {}
    for name, spec in study.get("analysis", "planned", default={}).items():
        family, alpha = spec.get("family"), float(spec.get("alpha", ALPHA))
        if family is None:
            continue
        first, other = level_of.setdefault(family, (name, alpha))
        if other != alpha:
            place = study.place("analysis", "planned", name, "alpha" if "alpha" in spec else "family")
            raise UserError(
                f"{place}: {name} has alpha {alpha:g} and {first}, of the same family {family!r}, has {other:g}; a family "
                "has one level",
                mend="Give both the same alpha.",
            )


Path = tuple[str, str, str]


def _check_factors(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    given = spec["compare"]
    for i, name in enumerate(factors_compared(spec)):
        if name not in study.factors:
            place = study.place(*path, "compare", *([] if isinstance(given, str) else [i]))
            hint = did_you_mean(name, study.factors)
            raise UserError(
                f"{place} is {name!r}, which is no factor of the design",
                mend=f"{hint}Factors: {', '.join(study.factors) or 'none'}.",
            )


def _check_measures(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    known = {*PEOPLE, *study.models}
    for i, group in enumerate(spec["between"]):
        if group not in known:
            hint = did_you_mean(group, known)
            raise UserError(
                f"{study.place(*path, 'between', i)} is {group!r}",
                mend=f"{hint}Readers: human, simulated, or a model of the study ({', '.join(study.models) or 'none'}).",
            )
        if group in spec["between"][:i]:
            raise UserError(
                f"{study.place(*path, 'between', i)}: {group!r} stands twice", mend="Name it once."
            )
    by_reader = _by_reader(spec)
    for reader in by_reader:
        if reader not in spec["between"]:
            fault = unknown_name("reader", reader, spec["between"])
            raise UserError(f"{study.place(*path, 'measure', reader)}: {fault.message}", mend=fault.mend)
    for i, reader in enumerate(spec["between"]):
        if reader not in by_reader:
            raise UserError(
                f"{study.place(*path, 'between', i)}: {reader} has no measure",
                mend=f"Say under measure what is measured of {reader}, or take it out of between.",
            )
        measure = planned_measures()[by_reader[reader]]
        if reader in PEOPLE and measure.of == "models":
            where = ("measure",) if isinstance(spec["measure"], str) else ("measure", reader)
            raise UserError(
                f"{study.place(*path, *where)} is {measure.name!r}, which people do not have ({measure.said})",
                mend="Give each reader a measure of its own, such as measure: {human: reading_time, "
                f"MODEL: {measure.name}}}, or compare models alone.",
            )


def _by_reader(spec: Mapping[str, Any]) -> dict[str, str]:
    given = spec["measure"]
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(spec["between"], given)


def _check_trials(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    kinds = {
        str(next(iter(screen["block"]["trial"][-1])))
        for screen in study.get("procedure")
        if "block" in screen
    }
    said = set(_by_reader(spec).values())
    if "trials" in spec and spec["trials"] not in kinds:
        raise UserError(
            f"{study.place(*path, 'trials')} is {spec['trials']!r}; trials of this study end with {', '.join(sorted(kinds))}"
        )
    if said & OF_WORDS and spec.get("trials", "recover") != "recover":
        raise UserError(
            f"{study.place(*path, 'trials')} is {spec['trials']!r}; words are recovered in trials that end with recover",
            mend="Write trials: recover.",
        )
    if said & OF_WORDS and "recover" not in kinds:
        raise UserError(
            f"{study.place(*path, 'measure')}: no text is restored in this study, whose trials end with {', '.join(sorted(kinds))}",
            mend="Measure correct, or let a block end with `recover`.",
        )
    if len(kinds) > 1 and "trials" not in spec and not said <= OF_READING | OF_WORDS:
        raise UserError(
            f"{study.place(*path)} would mix trials that end with {' and with '.join(sorted(kinds))}",
            mend=f"Say which: trials: {min(kinds)}.",
        )


def _check_levels(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    names, given = factors_compared(spec), spec.get("levels") or {}
    if isinstance(given, Mapping) == (len(names) == 1) and given:
        form = "a list" if len(names) == 1 else f"by factor, such as levels: {{{names[0]}: [a, b]}}"
        raise UserError(
            f"{study.place(*path, 'levels')} is {given!r}, and {' and '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} compared",
            mend=f"Write the levels as {form}.",
        )
    for name, own in (given if isinstance(given, Mapping) else {names[0]: given}).items():
        place = ("levels",) if len(names) == 1 else ("levels", name)
        if name not in names:
            fault = unknown_name("factor", name, names)
            raise UserError(f"{study.place(*path, *place)}: {fault.message}", mend=fault.mend)
        known = list(study.factors[name])
        for i, level in enumerate(own):
            if level not in known:
                fault = unknown_name(f"level of {name}", level, known)
                raise UserError(f"{study.place(*path, *place, i)}: {fault.message}", mend=fault.mend)
    if len(names) > 1:
        _check_crossed(study, path, _compared(spec, study))


def _check_crossed(study: Study, path: Path, levels: Levels) -> None:
    """Check that two factors can be compared together: each has something to compare, and no level could be of either."""
    place = study.place(*path, "compare")
    for name, own in levels.items():
        if len(own) < 2:
            raise UserError(
                f"{place}: {name} has one level ({', '.join(own)}), and an interaction takes two of each factor",
                mend="Name another factor.",
            )
    (one, first), (other, second) = levels.items()
    for level in first:
        if level in second:
            raise UserError(
                f"{place}: {one} and {other} both have a level {level!r}, so that a contrast could be of either",
                mend=f"Give it another name in one of them, such as {level}_{other}.",
            )


def _check_within(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    compared = factors_compared(spec)
    others = [name for name in study.factors if name not in compared]
    for name, level in spec.get("within", {}).items():
        if name not in others:
            place = study.place(*path, "within", name)
            if name in compared:
                raise UserError(
                    f"{place}: {name} is what is compared", mend="Name levels: of it, or another factor."
                )
            fault = unknown_name("factor", name, others)
            raise UserError(f"{place}: {fault.message}", mend=fault.mend)
        if level not in study.factors[name]:
            fault = unknown_name(f"level of {name}", level, list(study.factors[name]))
            raise UserError(f"{study.place(*path, 'within', name)}: {fault.message}", mend=fault.mend)


def _check_contrasts(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    levels = _compared(spec, study)
    for i, contrast in enumerate(spec.get("contrasts", [])):
        if read_sides(contrast, levels) is None:
            raise UserError(
                f"{study.place(*path, 'contrasts', i)} is {contrast!r}", mend=how_written(contrast, levels)
            )
    said = spec.get("contrasts") or usual_contrasts(levels)
    if isinstance(spec.get("direction"), Mapping):
        for text in spec["direction"]:
            if text not in said:
                fault = unknown_name("contrast", text, said)
                raise UserError(f"{study.place(*path, 'direction', text)}: {fault.message}", mend=fault.mend)


def compares_items(study: Study) -> bool:
    """Whether the report compares conditions of one reader over the same items, and takes a plan's bound for it."""
    return any(study.get("materials", name) is not None for name in OWN_FACTOR)


def _check_bound(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    said = spec.get("equivalence")
    if said is None:
        return
    place = study.place(*path, "equivalence")
    if len(spec["between"]) < 2 and not compares_items(study):
        raise UserError(
            f"{place} is {said!r}; it bounds the difference between readers, and the analysis has one",
            mend="Name a second reader in between, or take the bound out.",
        )
    measures = [planned_measures()[name] for name in dict.fromkeys(_by_reader(spec).values())]
    one = measures[0]
    if len({measure.scale for measure in measures}) > 1 or (len(measures) > 1 and one.scale == "raw"):
        raise UserError(
            f"{place} is {said!r}; differences in {' and '.join(measure.name for measure in measures)} have no scale in common",
            mend="Times and tokens can be compared as ratios; take the bound out otherwise.",
        )
    found = re.fullmatch(r"([0-9.]+) ?(.+)", said)
    assert found is not None, "the schema lets no other form through"
    number, unit = float(found[1]), found[2]
    scale = "points" if unit.startswith("point") else "ratio" if unit in ("%", "times") else "raw"
    if scale != one.scale or (scale == "raw" and unit.removesuffix("s") != one.unit.removesuffix("s")):
        wanted = {"points": "5 points", "ratio": "10% or 1.2 times", "raw": f"0.5 {one.unit}"}[one.scale]
        raise UserError(f"{place} is {said!r}; {one.name} is bounded like: {wanted}")
    low, high = {"points": (0.0, 100.0), "%": (0.0, 1e6), "times": (1.0, 1e4)}.get(
        "points" if scale == "points" else unit, (0.0, float("inf"))
    )
    if not low < number < high:
        upper = "" if scale != "points" else f" and below {high:g}"
        raise UserError(f"{place} is {said!r}; a bound lies above {low:g}{upper}")


def _check_model(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    if "fallback" in spec and "formula" not in spec:
        raise UserError(
            f"{study.place(*path, 'fallback')}: it takes the place of a model of your own, and there is none",
            mend="Give formula, or take fallback out: the usual model has a rule by which it is reduced.",
        )
    if "formula" in spec and len(set(_by_reader(spec).values())) > 1:
        raise UserError(
            f"{study.place(*path, 'formula')}: readers have measures of their own, and one model cannot hold both",
            mend="Plan an analysis for each measure.",
        )


def _check_exclusions(study: Study, path: Path, spec: Mapping[str, Any]) -> None:
    exclude = spec.get("exclude", {})
    for measure, said in exclude.get("trials", {}).items():
        read_bounds(study, (*path, "exclude", "trials", measure), said)
    for sign, text in exclude.get("sessions", {}).items():
        read_rule(study, (*path, "exclude", "sessions", sign), text)
    of_answers = sorted(set(_by_reader(spec).values()) & WITH_ANSWERS)
    if "answers" in exclude and of_answers:
        raise UserError(
            f"{study.place(*path, 'exclude', 'answers')}: wrong answers are part of what is measured ({', '.join(of_answers)})",
            mend="Leave them in; they may be left out of times, where they are said to be.",
        )


def completed_plans(study: Study) -> dict[str, Any]:
    """Return every planned analysis with its defaults written out (:meth:`PlannedAnalysis.to_json`), by name."""
    return {one.name: one.to_json() for one in planned_analyses(study)}


def own_formulas(study: Study) -> Iterator[tuple[str, str, PlannedAnalysis]]:
    """Yield each formula that a plan gives with its place in the study: place, formula, analysis."""
    for one in planned_analyses(study):
        for key, text in (("formula", one.formula), ("fallback", one.fallback)):
            if text is not None:
                yield study.place("analysis", "planned", one.name, key), text, one
