"""Everything that is wrong with a planned analysis: names that the study does not have, and what cannot be carried out as written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from analysis.plan.grammar import (
    COVARIATES,
    COVARIED,
    KEYLESS,
    NOT_IN_TRIALS,
    OF_REGIONS,
    PLANNABLE,
    RIGHT_SHARE,
    Key,
    Levels,
    Measure,
    PlanFault,
    factors_compared,
    planned_differences,
    read_bound,
    read_contrast,
    read_prior,
    read_sign_rule,
    read_times,
    unknown,
    with_directions,
)
from analysis.plan.plans import (
    ALPHA,
    PlannedAnalysis,
    levels_compared,
    measures_by_reader,
    readers_of,
    regions_of,
)

PEOPLE = ("human", "simulated")
OF_READING = {"reading_time", "prompt_tokens", *OF_REGIONS}
"""Measures that do not depend on how a trial ends."""
OF_WORDS = {"recovered", "recovered_with_one_typo"}
OF_RATINGS = {"rating"}
WITH_ANSWERS = {"correct", "missing", *OF_RATINGS, *OF_WORDS}
"""Measures of the answer itself: to leave out wrong answers would leave out what is measured."""
Spec = Mapping[str, Any]


@dataclass(frozen=True)
class PlanContext:
    """The parts of a study against which its plans are checked; what is None is not known and not checked."""

    factors: Mapping[str, Sequence[str]] | None  # levels of each factor
    models: Collection[str] | None = None  # names of the models
    steps: Collection[str] | None = None  # the steps with which trials end
    compares_items: bool = False
    assistive_input: bool = False  # whether the study allows text without key strokes
    read_alike: Mapping[str, Mapping[str, Sequence[Collection[str]]]] = field(default_factory=dict)
    """By model and factor, the groups of levels between which the model reads the same."""
    drawn_alike: Mapping[str, Sequence[Collection[str]]] = field(default_factory=dict)
    """The same for a model that is shown pictures."""
    regions: Collection[str] | None = None  # named regions of the texts
    times_words: bool = True  # whether people's times on single words are measured
    reads_for_set_times: bool = False  # whether every text that is read ends by itself
    scales: Collection[str] = ()  # the ends of each scale on which trials are rated
    unscored: Collection[
        str
    ] = ()  # further steps with which trials end and that no answer is right or wrong in
    named: Mapping[str, str] = field(
        default_factory=dict
    )  # steps of further answers by name, with their type

    own: Mapping[str, Measure] = field(
        default_factory=dict
    )  # numbers that the study's own trial types record, by the names of a plan

    @property
    def measures(self) -> dict[str, Measure]:
        """The measures that a plan may name."""
        return {**PLANNABLE, **self.own}

    def type_of(self, step: str | None) -> str | None:
        """Return the trial type of a step, by its type or its name."""
        return None if step is None else self.named.get(step, step)


def faults_of(spec: Spec, design: PlanContext, broken: Collection[str] = ()) -> Iterator[PlanFault]:
    """Yield everything that is wrong with a planned analysis."""
    broken = {*broken, *({"measure", "compare"} - set(spec))}
    for check, reads in _CHECKS:
        if broken.isdisjoint(reads):
            yield from check(spec, design)
    if design.factors is None or "compare" in broken:
        return
    faults = [*_factors(spec, design.factors), *_same_for_models(spec, design)]
    yield from faults
    if not faults and "within" not in broken:
        yield from _within(spec, design.factors)
    if not faults and "levels" not in broken:
        faults = list(_levels(spec, design.factors))
        yield from faults
        if not faults and "contrasts" not in broken:
            yield from _contrasts(spec, levels_compared(spec, design.factors), "direction" in broken)


def faults_of_coding(analysis: PlannedAnalysis) -> Iterator[PlanFault]:
    """Yield each factor whose planned contrasts do not make a coding of it, where they are to."""
    for factor, levels in analysis.levels_of.items():
        if analysis.coding.get(factor) != "planned":
            continue
        differences = planned_differences(analysis.contrasts, levels)
        if len(differences) != len(levels) - 1 or not _are_independent(list(differences.values()), levels):
            yield PlanFault(
                f" contain {len(differences)} differences of {factor} ({', '.join(differences) or 'none'}); coding: planned needs "
                f"{len(levels) - 1} that are independent",
                "Plan as many, or choose another coding, such as sum.",
                ("contrasts",) if "contrasts" in analysis.stated else (),
            )


def _are_independent(rows: Sequence[Mapping[str, float]], levels: Sequence[str]) -> bool:
    """Whether no row is a weighted sum of the others (Gaussian elimination)."""
    matrix = [[row.get(level, 0.0) for level in levels] for row in rows]
    for at in range(len(matrix)):
        pivot = max(range(len(levels)), key=lambda column: abs(matrix[at][column]))
        if abs(matrix[at][pivot]) < 1e-9:
            return False
        for below in matrix[at + 1 :]:
            factor = below[pivot] / matrix[at][pivot]
            for column, value in enumerate(matrix[at]):
                below[column] -= factor * value
    return True


def _factors(spec: Spec, factors: Levels) -> Iterator[PlanFault]:
    names, given = factors_compared(spec), spec["compare"]
    for i, name in enumerate(names):
        if name not in factors:
            yield PlanFault(
                f" is {name!r}, which is not a factor of the design",
                f"Factors: {', '.join(factors) or 'none'}.",
                ("compare",) if isinstance(given, str) else ("compare", i),
                given=name,
                known=factors,
            )
    if not isinstance(given, str) and len(set(names)) != 2:
        yield PlanFault(
            f" names {' and '.join(names)}; an interaction is of two factors",
            "Name two, such as [item_type, font].",
            ("compare",),
        )


def _readers(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    readers, by_reader = readers_of(spec), measures_by_reader(spec)
    known_readers = {*PEOPLE, *(design.models or ())}
    keys: tuple[Key, ...]
    for i, reader in enumerate(readers):
        keys = ("between", i)
        if design.models is not None and reader not in known_readers:
            models = ", ".join(design.models) or "none"
            remedy = f"Readers: human, simulated, or a model of the study ({models})."
            yield PlanFault(f" is {reader!r}", remedy, keys, given=reader, known=known_readers)
        elif reader in readers[:i]:
            yield PlanFault(f" names {reader!r} again", "Name it once.", keys)
        elif reader not in by_reader:
            yield PlanFault(
                f": {reader} has no measure",
                f"Say under measure what is measured of {reader}, or take it out of between.",
                keys,
            )
    for reader, name in by_reader.items():
        keys = ("measure", reader) if isinstance(spec["measure"], Mapping) else ("measure",)
        if reader not in readers:
            yield unknown("reader", reader, readers, *keys)
        elif name not in design.measures:
            yield unknown("measure", name, design.measures, *keys)
        elif reader in PEOPLE and design.measures[name].of == "models":
            yield PlanFault(
                f" is {name!r}, which people do not have ({design.measures[name].said})",
                "Give each reader a different measure, such as measure: {human: reading_time, "
                f"MODEL: {name}}}, or compare models alone.",
                keys,
            )


def _same_for_models(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    """Yield each model that reads the same at several of the levels that are compared."""
    assert design.factors is not None
    try:
        compared = levels_compared(spec, design.factors)
    except (KeyError, TypeError, AttributeError):  # reported by another check
        return
    for i, reader in enumerate(readers_of(spec)):
        for name, levels in compared.items():
            unseen = _seen_as_others(levels, design.read_alike.get(reader, {}).get(name, ()))
            if not unseen:
                continue
            is_look = not _seen_as_others(levels, design.drawn_alike.get(name, ()))
            left = ", ".join(level for level in levels if level not in unseen)
            as_picture = f", or write presentation: image for {reader}" if is_look else ""
            if len(levels) - len(unseen) < 2:
                yield PlanFault(
                    f" names {reader}, and models read the same at all levels of {name}",
                    f"Leave {reader} out of this analysis, or leave {name} out of compare{as_picture}.",
                    ("between", i),
                )
            else:
                why = "is a style" if is_look else "changes nothing that models read"
                write = f"levels: {{{name}: [{left}]}}" if len(compared) > 1 else f"levels: [{left}]"
                yield PlanFault(
                    f" names {reader}, which reads text, but the compared level {unseen[0]} {why}",
                    f"Write {write}, or leave {reader} out of this analysis{as_picture}.",
                    ("between", i),
                )


def _seen_as_others(levels: Sequence[str], groups: Sequence[Collection[str]]) -> list[str]:
    """Return the levels that a reader cannot tell from an earlier one."""
    return [level for group in groups for level in [other for other in levels if other in group][1:]]


def _regions(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    names = regions_of(spec)
    by_reader = measures_by_reader(spec)
    measures = [name for name in dict.fromkeys(by_reader.values()) if name in design.measures]
    if not names:
        for name in measures:
            if name in OF_REGIONS and name != "surprisal":
                known = ", ".join(design.regions or ()) or "none; name them under materials: regions"
                yield PlanFault(
                    f" is {name}, which is of a named region",
                    f"Write region: with a name ({known}).",
                    ("measure",),
                )
        return
    for i, name in enumerate(names):
        if design.regions is not None and name not in design.regions:
            keys: tuple[Key, ...] = ("region",) if isinstance(spec["region"], str) else ("region", i)
            yield unknown("region", name, design.regions, *keys)
    for name in measures:
        if name not in OF_REGIONS:
            yield PlanFault(
                f": {name} is not of a region",
                f"Measure one of {', '.join(OF_REGIONS)}, or take region out.",
                ("region",),
            )
    if "region_time" in measures and not design.times_words:
        yield PlanFault(
            " is region_time, and no text of this study is read word by word",
            "Write `as: moving_window` under read.",
            ("measure",),
        )


def _covariates(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    names = [str(name) for name in spec.get("covariates") or ()]
    measures = set(measures_by_reader(spec).values())
    for i, name in enumerate(names):
        if name not in COVARIATES:
            yield unknown("covariate", name, COVARIATES, "covariates", i)
        elif name == "previous_zipf" and not regions_of(spec):
            yield PlanFault(
                " is previous_zipf, the frequency of the word before a region",
                "Write region: with a name, or take it out.",
                ("covariates", i),
            )
    if names and measures <= set(design.measures) and not measures & set(COVARIED):
        yield PlanFault(
            f": covariates are held constant in models of {', '.join(COVARIED)}",
            "Take them out.",
            ("covariates",),
        )
    elif names and spec.get("formula") is not None:
        yield PlanFault(
            ": the plan writes its own formula, which names its covariates itself",
            "Write them into formula, or take formula out.",
            ("covariates",),
        )


def _trials(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    if design.steps is None:
        return
    steps, measured = sorted(design.steps), set(measures_by_reader(spec).values())
    end = f"trials of this study end with {', '.join(steps)}"
    more = f", and further answers are {', '.join(design.named)}" if design.named else ""
    trials = design.type_of(spec.get("trials"))
    if "trials" in spec and spec["trials"] not in (*steps, *design.named):
        yield PlanFault(
            f" is {spec['trials']!r}; {end}{more}",
            f"Write {' or '.join(f'trials: {step}' for step in (*steps, *design.named))}.",
            ("trials",),
        )
    elif measured & OF_WORDS and spec.get("trials", "recover") != "recover":
        yield PlanFault(
            f" is {spec['trials']!r}; words are recovered in trials that end with recover",
            "Write trials: recover.",
            ("trials",),
        )
    elif measured & OF_RATINGS and trials not in (None, "rate"):
        yield PlanFault(
            f" is {spec['trials']!r}; ratings are given in trials that end with rate",
            "Write trials: rate.",
            ("trials",),
        )
    elif "correct" in measured and {trials or step for step in steps} <= {"rate", *design.unscored}:
        step = trials or steps[0]
        yield PlanFault(
            f" is 'correct', and no {'rating' if step == 'rate' else f'answer to {step}'} is right or wrong",
            f"Measure {'rating' if step == 'rate' else 'rt'}, or another step's answers.",
            ("measure",),
        )
    if measured & OF_RATINGS and "rate" not in steps and spec.get("trials") in (None, *steps):
        rated = [name for name, kind in design.named.items() if kind == "rate"]
        yield PlanFault(
            f": {'no trial ends with a rating' if rated else 'nothing is rated in this study'}, and {end}",
            f"Write trials: {rated[0]}." if rated else "Measure correct, or let a block end with `rate`.",
            ("measure",),
        )
    if measured & OF_RATINGS and len(design.scales) > 1 and spec.get("trials") not in design.named:
        yield PlanFault(
            f": ratings from {' and from '.join(sorted(design.scales))} have no mean together",
            "Give all trials that are rated one scale.",
            ("measure",),
        )
    if measured & OF_WORDS and "recover" not in steps:
        yield PlanFault(
            f": no text is restored in this study, and {end}",
            "Measure correct, or let a block end with `recover`.",
            ("measure",),
        )
    if design.reads_for_set_times and "reading_time" in measured:
        yield PlanFault(
            " is 'reading_time', and every text of this study ends by itself (read: for)",
            "Measure how questions are answered, or let readers end the text: take `for` out.",
            ("measure",),
        )
    if len(steps) > 1 and "trials" not in spec and not measured <= OF_READING | OF_RATINGS | OF_WORDS:
        yield PlanFault(
            f" would mix trials that end with {' and with '.join(steps)}", f"Say which: trials: {steps[0]}."
        )


def _levels(spec: Spec, factors: Levels) -> Iterator[PlanFault]:
    names, given = factors_compared(spec), spec.get("levels") or {}
    if isinstance(given, Mapping) == (len(names) == 1) and given:
        given_as, form = (
            ("given by factor", "a list of levels")
            if len(names) == 1
            else (
                f"a list ({', '.join(map(str, given))})",
                f"the levels by factor, such as levels: {{{names[0]}: [a, b]}}",
            )
        )
        compared = f"{names[0]} is" if len(names) == 1 else f"{' and '.join(names)} are"
        yield PlanFault(f" is {given_as}, and {compared} compared", f"Write {form}.", ("levels",))
        return
    faults = []
    for name, levels in (given if isinstance(given, Mapping) else {names[0]: given}).items():
        keys = ("levels",) if len(names) == 1 else ("levels", name)
        if name not in names:
            faults.append(unknown("factor", name, names, *keys))
            continue
        factor_levels = factors[name]
        faults += [
            unknown(f"level of {name}", level, factor_levels, *keys, i)
            for i, level in enumerate(levels)
            if level not in factor_levels
        ]
    yield from faults
    if len(names) > 1 and not faults:
        yield from _crossing(levels_compared(spec, factors))


def _crossing(levels: Levels) -> Iterator[PlanFault]:
    """Yield why two factors cannot be compared together: one has nothing to compare, or a level could be of either."""
    for name, factor_levels in levels.items():
        if len(factor_levels) < 2:
            problem = (
                f": {name} has one level ({', '.join(factor_levels)}), "
                "and an interaction takes two of each factor"
            )
            yield PlanFault(problem, "Name another factor.", ("compare",))
    (first_factor, first_levels), (second_factor, second_levels) = levels.items()
    for level in first_levels:
        if level in second_levels:
            problem = (
                f": {first_factor} and {second_factor} both have a level {level!r}, "
                "so that a contrast could be of either"
            )
            remedy = f"Give it another name in one of them, such as {level}_{second_factor}."
            yield PlanFault(problem, remedy, ("compare",))


def _within(spec: Spec, factors: Levels) -> Iterator[PlanFault]:
    compared = factors_compared(spec)
    others = [name for name in factors if name not in compared]
    for name, level in (spec.get("within") or {}).items():
        if name in compared:
            remedy = "Name levels: of it, or another factor."
            yield PlanFault(f": {name} is what is compared", remedy, ("within", name))
        elif name not in others:
            yield unknown("factor", name, others, "within", name)
        elif level not in factors[name]:
            yield unknown(f"level of {name}", level, factors[name], "within", name)


def _contrasts(spec: Spec, levels: Levels, no_direction: bool) -> Iterator[PlanFault]:
    texts, faults = spec.get("contrasts") or (), list[PlanFault]()
    for i, text in enumerate(texts):
        faults += _caught(partial(read_contrast, str(text), levels), "contrasts", i)
    yield from faults
    if not faults and not no_direction:
        yield from _caught(lambda: with_directions(texts, spec.get("direction"), levels))


def _alpha(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    given = spec.get("alpha", ALPHA)
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 0.5:
        yield PlanFault(f" is {given!r}; it must be above 0 and below 0.5", "For example 0.05.", ("alpha",))


def _bound(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    bound, by_reader = spec.get("equivalence"), measures_by_reader(spec)
    readers = readers_of(spec)
    names = dict.fromkeys(by_reader[reader] for reader in readers if reader in by_reader)
    if bound is None or not names or not set(names) <= set(design.measures):
        return
    of_items = design.compares_items and "correct" in names
    if design.models is not None and len(readers) < 2 and not (of_items and design.models):
        also = " (of accuracy also between conditions of a model, and the study names no model)"
        yield PlanFault(
            f" is {bound!r}; it bounds the difference between readers{also * of_items}, "
            "and the analysis has one",
            "Name a second reader in between, or take the bound out.",
            ("equivalence",),
        )
        return
    yield from _caught(lambda: read_bound(bound, [design.measures[name] for name in names]), "equivalence")


def _caught(read: Callable[[], object], *keys: Key) -> Iterator[PlanFault]:
    """Yield the error of the setting under these keys, if reading it raises one."""
    try:
        read()
    except PlanFault as fault:
        yield fault.below(*keys)


def _prior(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    names = list(dict.fromkeys(measures_by_reader(spec).values()))
    if spec.get("bayes") is None or not names or not set(names) <= set(design.measures):
        return
    yield from _caught(lambda: read_prior(spec["bayes"], [design.measures[name] for name in names]), "bayes")


def _model(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    if spec.get("fallback") is not None and spec.get("formula") is None:
        yield PlanFault(
            ": it takes the place of the plan's own formula, and there is none",
            "Give formula, or take fallback out: the usual model has a rule by which it is reduced.",
            ("fallback",),
        )
    if spec.get("formula") is not None and len(set(measures_by_reader(spec).values())) > 1:
        yield PlanFault(
            ": readers have different measures, and one model cannot hold both",
            "Plan an analysis for each measure.",
            ("formula",),
        )


def _exclude(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    exclude, kinds = spec.get("exclude") or {}, ("trials", "sessions", "answers")
    yield from (unknown("exclusion of", str(kind), kinds, "exclude") for kind in exclude if kind not in kinds)
    yield from (
        fault.below("exclude")
        for fault in faults_of_exclusions(exclude, design.assistive_input, _all_rated(spec, design))
    )
    for sign in exclude.get("sessions") or {}:
        if sign in NOT_IN_TRIALS:
            yield PlanFault(
                " is no sign of trials: the trials table does not hold it",
                "Declare it in analysis.exclude.sessions, where the dashboard applies it.",
                ("exclude", "sessions", sign),
            )
    if exclude.get("answers") not in (None, "wrong"):
        yield PlanFault(f" is {exclude['answers']!r}", "Write wrong.", ("exclude", "answers"))


def _all_rated(spec: Spec, design: PlanContext) -> bool:
    """Return whether all trials of an analysis end with a rating, so that no answer is right or wrong."""
    if "trials" in spec:
        return design.type_of(spec["trials"]) == "rate"
    return set(design.steps or ()) == {"rate"}


def faults_of_exclusions(
    exclude: Mapping[str, Any], assistive_input: bool = False, all_rated: bool = False
) -> Iterator[PlanFault]:
    """Yield what is wrong with rules of exclusion, of a study or of one analysis."""
    for unit in ("trials", "regions", "sessions"):
        for name, rule in (exclude.get(unit) or {}).items():
            read = partial(read_sign_rule, name) if unit == "sessions" else read_times
            yield from _caught(partial(read, rule), unit, name)
            if name == RIGHT_SHARE and all_rated:
                yield PlanFault(
                    " excludes by the proportion of correct responses, and no rating is right or wrong",
                    "Take it out; attention_checks_failed counts the checks among ratings.",
                    (unit, name),
                )
            if name == KEYLESS and assistive_input:
                yield PlanFault(
                    " excludes for text without key strokes, which participants.assistive_input allows",
                    "Take one of the two out.",
                    (unit, name),
                )


def _answers(spec: Spec, design: PlanContext) -> Iterator[PlanFault]:
    of_answers = sorted(set(measures_by_reader(spec).values()) & WITH_ANSWERS)
    if (spec.get("exclude") or {}).get("answers") is not None and of_answers:
        yield PlanFault(
            f": wrong answers are part of what is measured ({', '.join(of_answers)})",
            "Leave them in; they can be left out of times.",
            ("exclude", "answers"),
        )
    elif (spec.get("exclude") or {}).get("answers") is not None and _all_rated(spec, design):
        yield PlanFault(
            " leaves out wrong answers, and no rating is wrong", "Take it out.", ("exclude", "answers")
        )


_CHECKS: tuple[tuple[Callable[[Spec, PlanContext], Iterator[PlanFault]], frozenset[str]], ...] = (
    (_readers, frozenset({"measure", "between"})),
    (_regions, frozenset({"measure", "region"})),
    (_covariates, frozenset({"measure", "region", "covariates", "formula"})),
    (_trials, frozenset({"measure", "trials"})),
    (_alpha, frozenset({"alpha"})),
    (_bound, frozenset({"measure", "between", "equivalence"})),
    (_prior, frozenset({"measure", "bayes"})),
    (_model, frozenset({"measure", "formula", "fallback"})),
    (_exclude, frozenset({"exclude"})),
    (_answers, frozenset({"measure", "exclude"})),
)
"""Each check that needs no factors, and the keys that it reads."""


def faults_of_families(planned: Mapping[str, Spec]) -> Iterator[PlanFault]:
    """Yield an error at each analysis whose level differs from that of its family."""
    level_of: dict[str, tuple[str, float]] = {}
    for name, spec in planned.items():
        family, alpha = spec.get("family"), spec.get("alpha", ALPHA)
        if family is None:
            continue
        first_name, family_alpha = level_of.setdefault(family, (name, alpha))
        if family_alpha != alpha:
            yield PlanFault(
                f": {name} has alpha {alpha:g} and {first_name}, of the same family {family!r}, "
                f"has {family_alpha:g}; a family has one level",
                "Give both the same alpha.",
                (name, "alpha" if "alpha" in spec else "family"),
            )
