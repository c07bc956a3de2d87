"""The planned analyses of a study, with every default stated, and each analysis to run that follows from them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from analysis.plan.grammar import (
    PLANNABLE,
    Bound,
    CrossedFactors,
    LevelDifference,
    Measure,
    Prior,
    factors_compared,
    read_bound,
    read_prior,
    with_directions,
)

ALPHA = 0.05
"""Default level of every test."""
Within = tuple[tuple[str, str], ...]
"""Factors and the level of each that trials show."""


class Remark(str):
    """A sentence about an analysis that other code looks for by what it is about, never by its words."""

    about: About

    def __new__(cls, text: str, about: About) -> Remark:
        """Return the sentence ``text`` with what it is ``about``."""
        remark = super().__new__(cls, text)
        remark.about = about
        return remark


About = Literal["model", "uncorrelated slopes", "replaced model", "no bound"]
"""What a remark is about: the fitted mixed model, in particular how its random slopes began or that it replaces the planned one; the
bound of equivalence that a plan lost."""


def remarks_about(remarks: Iterable[str], *about: About) -> list[Remark]:
    """Return the remarks that are about one of these."""
    return [remark for remark in remarks if isinstance(remark, Remark) and remark.about in about]


_PARTICIPANTS = re.compile(r"(?:at )?([0-9]+) participants?")


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of an analysis, from its plan or by default."""

    alpha: float = ALPHA  # level of its tests
    family: str | None = None  # adjusted together; None where all planned contrasts of a measure are one
    equivalence: Bound | None = None
    formula: str | None = None  # its own model in lme4's notation, and its fallback
    fallback: str | None = None
    exclude: Mapping[str, Any] = field(default_factory=dict, hash=False)  # beyond the study's own
    stop: str | None = None  # when collection stops; None for the study's wanted participants
    trials: str | None = None  # only trials that end with this step (choose, recover …)
    items: str = "random"  # ``random`` or ``fixed``
    bayes: Prior | None = None  # of the Bayes factors of its contrasts; None where none is wanted
    covariates: tuple[str, ...] = ()  # centred, in the models of times
    coding: Mapping[str, str] = field(
        default_factory=dict, hash=False
    )  # of the factors for which it is given

    def coding_of(self, factor: str, compared: Collection[str]) -> str:
        """Return how a factor is coded in mixed models: unless given, by sums where two factors are compared."""
        is_factorial = self.formula is None and factor in compared and len(compared) > 1
        return self.coding.get(factor, "sum" if is_factorial else "treatment")


@dataclass(frozen=True)
class PlannedAnalysis(Rules):
    """One planned analysis with its defaults."""

    name: str
    measures: Mapping[str, Measure]  # of each reader, in the order in which the study names them
    levels_of: Mapping[str, tuple[str, ...]]  # of each compared factor, the reference first
    contrasts: tuple[LevelDifference, ...]
    within: Mapping[str, str]  # levels of other factors that its trials show
    stated: frozenset[str]  # the keys that the study gives; everything else is a default
    regions: tuple[
        str, ...
    ] = ()  # the named regions of the texts that it is of; none where it is of whole trials

    @property
    def readers(self) -> tuple[str, ...]:
        """Names of the readers, in order."""
        return tuple(self.measures)

    @property
    def by_measure(self) -> dict[Measure, tuple[str, ...]]:
        """The readers of each measure."""
        kinds = dict.fromkeys(self.measures.values())
        return {
            kind: tuple(reader for reader in self.measures if self.measures[reader] == kind) for kind in kinds
        }

    @property
    def questions(self) -> tuple[tuple[Measure, tuple[str, ...]], ...]:
        """Each measure, in each region that the analysis names, with its readers."""
        return tuple(
            (measure.in_region(region), readers)
            for measure, readers in self.by_measure.items()
            for region in self.regions or (None,)
        )

    @property
    def factors(self) -> tuple[str, ...]:
        """The factor that is compared, or the two whose interaction is tested."""
        return tuple(self.levels_of)

    @property
    def crossing(self) -> CrossedFactors | None:
        """The two factors that are compared together; None of one."""
        if len(self.factors) == 1:
            return None
        first, second = self.factors
        return CrossedFactors((first, second), (self.levels_of[first], self.levels_of[second]))

    def to_json(self) -> dict[str, Any]:
        """Return the plan in the study's own words with every default written out, as it is exported."""
        levels: Any = {name: list(factor_levels) for name, factor_levels in self.levels_of.items()}
        if len(self.factors) == 1:
            levels = levels[self.factors[0]]
        return {
            "measure": {reader: measure.name for reader, measure in self.measures.items()},
            "compare": self.factors[0] if len(self.factors) == 1 else list(self.factors),
            **({"levels": levels} if "levels" in self.stated else {}),
            "between": list(self.readers),
            "contrasts": [contrast.written for contrast in self.contrasts],
            "direction": {contrast.written: contrast.direction for contrast in self.contrasts},
            "alpha": self.alpha,
            "family": self.family,
            "equivalence": None if self.equivalence is None else self.equivalence.said,
            "formula": self.formula,
            "fallback": self.fallback,
            "exclude": dict(self.exclude),
            "stop": self.stop,
            "trials": self.trials,
            **({"within": dict(self.within)} if self.within else {}),
            **({"region": list(self.regions)} if self.regions else {}),
            **({"covariates": list(self.covariates)} if self.covariates else {}),
            **({"items": self.items} if "items" in self.stated else {}),
            **({"bayes": self.bayes.given} if self.bayes else {}),
            **({"coding": dict(self.coding)} if self.coding else {}),
        }


def readers_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the readers of a plan; people where it names none."""
    return [str(reader) for reader in spec.get("between") or ["human"]]


def measures_by_reader(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return the name of each reader's measure."""
    given = spec["measure"]
    by_reader = given if isinstance(given, Mapping) else dict.fromkeys(readers_of(spec), given)
    return {str(reader): str(name) for reader, name in by_reader.items()}


def regions_of(spec: Mapping[str, Any]) -> list[str]:
    """Return the regions that a plan names."""
    given = spec.get("region") or []
    return [str(name) for name in ([given] if isinstance(given, str) else given)]


def levels_compared(
    spec: Mapping[str, Any], factors: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the levels of each factor that a plan compares: all unless it names some."""
    names, given = factors_compared(spec), spec.get("levels") or {}
    by_factor = given if isinstance(given, Mapping) else {names[0]: given}
    return {name: tuple(str(level) for level in by_factor.get(name) or factors[name]) for name in names}


def read_plan(
    name: str,
    spec: Mapping[str, Any],
    factors: Mapping[str, Sequence[str]],
    own: Mapping[str, Measure] = MappingProxyType({}),
) -> PlannedAnalysis:
    """Read a planned analysis in which :func:`analysis.plan.faults_of` finds nothing wrong; ``own``: the study's own measures."""
    levels, by_reader, known = levels_compared(spec, factors), measures_by_reader(spec), {**PLANNABLE, **own}
    measures = {reader: known[by_reader[reader]] for reader in readers_of(spec) if reader in by_reader}
    different, bound, prior = [*dict.fromkeys(measures.values())], spec.get("equivalence"), spec.get("bayes")
    texts = {key: spec.get(key) for key in ("stop", "formula", "fallback")}
    return PlannedAnalysis(
        name=name,
        measures=measures,
        levels_of=levels,
        contrasts=with_directions(spec.get("contrasts") or (), spec.get("direction"), levels),
        alpha=float(spec.get("alpha", ALPHA)),
        family=spec.get("family") or None,
        equivalence=None if bound is None else read_bound(bound, different),
        **{key: None if text is None else str(text) for key, text in texts.items()},
        exclude=dict(spec.get("exclude") or {}),
        trials=spec.get("trials"),
        within={str(factor): str(level) for factor, level in (spec.get("within") or {}).items()},
        items=str(spec.get("items") or "random"),
        bayes=read_prior(prior, different) if prior else None,
        covariates=tuple(map(str, spec.get("covariates") or ())),
        regions=tuple(regions_of(spec)),
        coding=coding_by_factor(spec.get("coding") or {}, factors),
        stated=frozenset(key for key, given in spec.items() if given not in (None, [], {})),
    )


def coding_by_factor(given: str | Mapping[str, str], factors: Iterable[str]) -> dict[str, str]:
    """Return the coding of each factor for which one is given: for all, or by factor."""
    if isinstance(given, str):
        return dict.fromkeys(factors, given)
    return {str(factor): str(coding) for factor, coding in given.items()}


@dataclass(frozen=True)
class StudyPlan:
    """The planned analyses of a study, and what of the study their description depends on."""

    analyses: tuple[PlannedAnalysis, ...]
    factors: Mapping[str, Sequence[str]]  # levels of each factor of the study
    exclude: Mapping[str, Any] = field(default_factory=dict)  # the study's own exclusions
    wanted: int | None = None  # participants at which collection stops
    compares_items: bool = False
    signs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan(Rules):
    """One analysis to run."""

    name: str  # the key in the study, or a name for an exploratory analysis
    planned: bool  # whether the study named it
    measure: Measure
    factor: str
    levels: tuple[str, ...]  # levels of the factor, reference first
    groups: tuple[str, ...]  # reader groups, in the order in which the study names them
    contrasts: tuple[LevelDifference, ...]  # with the direction of each
    stand_in: bool = False  # whether simulated readers take the place of people
    remarks: tuple[str, ...] = ()  # what of the plan could not be taken as written
    within: Within = ()  # only trials that show these levels of other factors
    key: str = ""  # the key in the study, shared by its measures; empty for exploratory ones
    factors: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    crossing: CrossedFactors | None = None  # then ``factor`` and ``levels`` are those of its cells

    @property
    def compared(self) -> tuple[str, ...]:
        """The factor that is compared, or both."""
        return (self.factor,) if self.crossing is None else self.crossing.factors

    @property
    def codings(self) -> dict[str, str]:
        """The coding of each factor that is compared."""
        return {factor: self.coding_of(factor, self.compared) for factor in self.compared}

    def weights(self, difference: LevelDifference) -> dict[str, float]:
        """Return what a contrast weighs each level (or cell of two factors) with."""
        if self.crossing is None:
            return difference.level_weights
        return self.crossing.weights(difference.first, difference.second, difference.at)

    @property
    def heading(self) -> str:
        """Its name where a heading or a row begins with it; one that the study gave is never rewritten."""
        return self.name if self.planned else self.name[:1].upper() + self.name[1:]

    @property
    def subset(self) -> bool:
        """Whether it is of some of a study's trials alone."""
        return self.trials is not None or bool(self.within)

    @property
    def participants_at_stop(self) -> int | None:
        """Number of participants in its own stopping rule; None if it has none or states it otherwise."""
        match = _PARTICIPANTS.fullmatch(self.stop.strip()) if self.stop else None
        return int(match[1]) if match else None
