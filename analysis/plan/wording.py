"""Planned analyses in words: for ``wrods check``, the registration and the report, with every default marked as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from analysis.plan.grammar import (
    COVARIATES,
    COVARIED,
    OF_FIXATIONS,
    PLANNABLE,
    LevelDifference,
    Measure,
    Prior,
    levels_in,
)
from analysis.plan.plans import PlannedAnalysis, StudyPlan

DEFAULT = " (default)"
HINT = "; participants: wanted sets one"
SETTING = " (participants: wanted)"
EXPECTED = {
    "two-sided": "two-sided",
    "greater": "one-sided: greater than 0 expected",
    "less": "one-sided: less than 0 expected",
}
CODED = {
    "sum": "sum coding",
    "treatment": "treatment coding",
    "helmert": "Helmert coding",
    "sdif": "sliding-difference coding",
    "planned": "planned-contrast coding",
}
READERS_SAID = {"human": "people", "simulated": "simulated readers"}
STRUCTURE = (
    "random effects start at an intercept and slopes of {compare} for participants and for items, which may differ between people "
    "and models, and, where models answer so, items by model, items by model and condition, prompt variants and sessions; if a "
    "fit is singular or does not converge, correlations go first, then slopes without variance, and all slopes if it still does not "
    "converge; every step is reported"
)


def plans_in_words(plan: StudyPlan) -> list[list[str]]:
    """Return the lines of each planned analysis: its question first, then how it is tested, modelled, cut and stopped."""
    return [list(_lines(analysis, plan)) for analysis in plan.analyses]


def plan_in_brief(analysis: PlannedAnalysis, plan: StudyPlan) -> str:
    """Describe a planned analysis in sentences, without the usual model."""
    rules = list(rules_in_words(analysis.exclude, plan.signs))
    measured = [f"{measure.noun} of {listing(_names(readers))}" for measure, readers in analysis.questions]
    directions = [EXPECTED[contrast.direction] for contrast in analysis.contrasts]
    is_shared = len(set(directions)) == 1
    contrasts = [
        contrast.label + ("" if is_shared else f" ({direction})")
        for contrast, direction in zip(analysis.contrasts, directions, strict=True)
    ]
    parts = [
        f"The plan compares {listing(measured)} by {_compared(analysis)}",
        f"The planned contrast{'s are' if len(contrasts) > 1 else ' is'} {listing(contrasts)}"
        + (f" ({directions[0]})" if is_shared else ""),
        f"Tests use {_level(analysis)}, {_family(analysis, plan)}",
        *(f"{line[0].upper()}{line[1:]}" for line in _equivalence(analysis, plan)),
        *([_bayes(analysis.bayes)] if analysis.bayes else []),
        *(
            [
                f"The model of times is adjusted for {listing([COVARIATES[name] for name in analysis.covariates])}"
            ]
            if analysis.covariates
            else []
        ),
        *([f"The planned model is {analysis.formula}"] if analysis.formula is not None else []),
        *(
            [f"If it is singular or does not converge, the model is {analysis.fallback}"]
            if analysis.fallback
            else []
        ),
        *([f"Beyond the study's exclusions, the plan excludes {'; '.join(rules)}"] if rules else []),
        _stopping(analysis, plan),
    ]
    return ". ".join(parts) + "."


def summary_of(plan: StudyPlan) -> str:
    """Summarize the planned analyses of a study."""
    if not plan.analyses:
        return "Analysis: nothing is planned; all of the report will be exploratory."
    described = "; ".join(
        f"{analysis.name}: {_measured(analysis)} by {_compared(analysis)} ({_contrasts(analysis)}){_restricted(analysis)}"
        for analysis in plan.analyses
    )
    return f"Planned analyses: {described}. `wrods check --explain` prints them with every default."


def hypotheses(plan: StudyPlan) -> Iterator[tuple[str, list[str]]]:
    """Yield each planned analysis by name with what its contrasts are expected to show, for each measure."""
    for analysis in plan.analyses:
        lines = [
            f"{_of(measure, readers)}: {_expected(contrast)}"
            for measure, readers in analysis.questions
            for contrast in analysis.contrasts
        ]
        if analysis.equivalence is not None:
            lines.append(f"differences of less than {analysis.equivalence.said} count as equivalent.")
        yield analysis.name, lines


def _restricted(analysis: PlannedAnalysis) -> str:
    """Describe the trials to which an analysis is restricted, and whether it leaves out wrong answers."""
    levels = [f"{name} {level}" for name, level in analysis.within.items()]
    parts = [
        *([f"of {analysis.trials}"] if analysis.trials is not None else []),
        *([f"in trials with {listing(levels)}"] if levels else []),
        *(["without wrong answers"] if (analysis.exclude or {}).get("answers") else []),
    ]
    return "".join(f", {part}" for part in parts)


def rules_in_words(exclude: Mapping[str, Any], signs: Mapping[str, str]) -> Iterator[str]:
    """Yield each rule of exclusion: of trials, regions, sessions and wrong answers; ``signs`` describes signs of sessions."""
    for unit, rules in exclude.items():
        if isinstance(rules, str):
            yield "trials with an incorrect answer"
        elif rules is not None:
            names = (
                signs if unit == "sessions" else {name: measure.noun for name, measure in PLANNABLE.items()}
            )
            yield from (f"{unit}: {names.get(name, name)} {rule}" for name, rule in rules.items())


def readers_in_words(readers: Iterable[str]) -> str:
    """Return names of readers as a sentence names them: people, simulated readers, a model by its name."""
    return ", ".join(_names(readers))


def _names(readers: Iterable[str]) -> list[str]:
    return [READERS_SAID.get(reader, reader) for reader in readers]


def listing(parts: Sequence[str]) -> str:
    """Join parts with commas and "and"."""
    return (
        f"{', '.join(parts[:-1])}{',' if len(parts) > 2 else ''} and {parts[-1]}" if parts[1:] else parts[0]
    )


NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def worded(value: int, singular: str, plural: str | None = None) -> str:
    """Write a count with its noun inside a sentence: numbers below 10 as words (APA, section 6.33)."""
    noun = singular if value == 1 else plural or f"{singular}s"
    return f"{NUMBERS[value] if 0 <= value < len(NUMBERS) else f'{int(value):,}'} {noun}"


def _lines(analysis: PlannedAnalysis, plan: StudyPlan) -> Iterator[str]:
    of_levels = "; ".join(
        (f"{name}: " if len(analysis.factors) > 1 else "")
        + f"{', '.join(levels)}; {levels[0]} is the reference"
        for name, levels in analysis.levels_of.items()
    )
    yield f"{analysis.name}: {_measured(analysis)}, compared by {_compared(analysis)} ({of_levels})"
    for name, levels in analysis.levels_of.items():
        others = [level for level in plan.factors[name] if level not in levels]
        if others:
            yield f"levels: trials with {name} {' or '.join(others)} are not included"
    mark = "" if "contrasts" in analysis.stated else DEFAULT
    yield f"contrasts{mark}: {_contrasts(analysis)}{'' if 'direction' in analysis.stated else DEFAULT}"
    if len(analysis.factors) > 1:
        yield from _of_contrasts(analysis)
    if analysis.regions:
        names = listing(analysis.regions)
        of_words = any(measure.name not in OF_FIXATIONS for measure in analysis.by_measure)
        yield (
            (
                f"region: values are summed over the words of {names}; one excluded word excludes the region"
                if of_words
                else f"region: eye movements on {names}, each as a whole"
            )
            + (
                "; the contrasts of all regions are one family of each measure"
                if analysis.regions[1:]
                else ""
            )
        )
    if analysis.trials is not None:
        yield f"trials: only those that end with {analysis.trials}"
    if analysis.within:
        yield (
            "within: only trials with "
            f"{', '.join(f'{name} {level}' for name, level in analysis.within.items())}"
        )
    yield (
        f"tests: alpha {analysis.alpha:g}{'' if 'alpha' in analysis.stated else DEFAULT}; "
        f"{_family(analysis, plan)}{'' if analysis.family else DEFAULT}"
    )
    if analysis.items == "fixed":
        yield "items: fixed; results on shares hold for these items only"
    unbounded = DEFAULT if analysis.equivalence is None else ""
    yield from (f"equivalence: {line}{unbounded}" for line in _equivalence(analysis, plan))
    if analysis.bayes is not None:
        yield _bayes(analysis.bayes)
    yield from _model(analysis)
    rules = list(rules_in_words(analysis.exclude, plan.signs))
    shared = "; ".join(rules_in_words(plan.exclude, plan.signs)) or "none"
    beyond = f"beyond them {'; '.join(rules)}" if rules else f"nothing beyond them{DEFAULT}"
    yield f"left out: the study's exclusions ({shared}); {beyond}"
    yield f"stop: {_stop(analysis, plan)}{'' if analysis.stop else DEFAULT}"


def _level(analysis: PlannedAnalysis) -> str:
    return f"α = {analysis.alpha:g}".replace("= 0.", "= .")


def _measured(analysis: PlannedAnalysis) -> str:
    of_regions = f" in {listing(analysis.regions)}" if analysis.regions else ""
    return "; ".join(_of(measure, readers) for measure, readers in analysis.by_measure.items()) + of_regions


def _of(measure: Measure, readers: Iterable[str]) -> str:
    of_region = "" if measure.region is None else f" in {measure.region}"
    return f"{measure.kind} ({measure.said}) of {readers_in_words(readers)}{of_region}"


def _compared(analysis: PlannedAnalysis) -> str:
    return " × ".join(analysis.factors)


def _contrasts(analysis: PlannedAnalysis) -> str:
    return "; ".join(f"{contrast.written}, {EXPECTED[contrast.direction]}" for contrast in analysis.contrasts)


def _expected(contrast: LevelDifference) -> str:
    """Return which way a contrast is expected to go."""
    verb = {"greater": "is higher in", "less": "is lower in"}.get(contrast.direction, "differs between")
    joint = "than in" if contrast.direction in ("greater", "less") else "and"
    if len(contrast.at) == 2:
        first, second = contrast.at
        return (
            f"the difference between {contrast.first} and {contrast.second} {verb} {first} {joint} {second}."
        )
    condition = f", in trials with {contrast.at[0]}" if contrast.at else ""
    return f"it {verb} {contrast.first} {joint} {contrast.second}{condition}."


def _of_contrasts(analysis: PlannedAnalysis) -> Iterator[str]:
    """Describe what each contrast of two factors is."""
    for contrast in analysis.contrasts:
        difference = f"{contrast.first} minus {contrast.second}"
        if len(contrast.at) == 2:
            meaning = (
                f"{difference} in {contrast.at[0]}, less {difference} in {contrast.at[1]} (the interaction)"
            )
        elif contrast.at:
            meaning = f"{difference} in trials with {contrast.at[0]} (a simple effect)"
        else:
            other = next(
                name
                for name, levels in analysis.levels_of.items()
                if not {*levels_in(contrast.first)} <= {*levels}
            )
            meaning = f"{difference}, averaged over the levels of {other}"
        yield f"what is tested: {contrast.written} is {meaning}"
    if any(len(contrast.at) == 2 for contrast in analysis.contrasts) and any(
        measure.scale == "points" for measure in analysis.measures.values()
    ):
        yield (
            "scale: interactions are tested in percentage points; if log odds point the other way, the report states that the "
            "interaction depends on the scale"
        )


def _family(analysis: PlannedAnalysis, plan: StudyPlan) -> str:
    def shared_by(member: PlannedAnalysis) -> list[tuple[Measure, tuple[str, ...]]]:
        """Return the measures of a member that are in the family, with their readers."""
        own = set(analysis.measures.values())
        return [pair for pair in member.by_measure.items() if analysis.family is not None or pair[0] in own]

    members = [
        other
        for other in plan.analyses
        if other.family == analysis.family
        and (analysis.family or set(other.measures.values()) & set(analysis.measures.values()))
    ]
    is_one_sided = all(
        contrast.direction != "two-sided" and not any(len(readers) > 1 for _, readers in shared_by(member))
        for member in members
        for contrast in member.contrasts
    )
    adjusted = f"adjusted by the largest {'t' if is_one_sided else '|t|'}"
    if analysis.family is None:
        return f"{adjusted} over all planned contrasts of the measure"
    return (
        f"{adjusted} over all contrasts of the family {analysis.family} "
        f"({', '.join(member.name for member in members)}), with equivalence tests adjusted by Bonferroni's method"
    )


def _equivalence(analysis: PlannedAnalysis, plan: StudyPlan) -> Iterator[str]:
    bound, has_several = analysis.equivalence, len(analysis.readers) > 1
    if bound is None and has_several:
        yield "similarity is not tested, since no bound was set"
    if bound is not None and has_several:
        first = readers_in_words(analysis.readers[:1])
        others = (
            readers_in_words(analysis.readers[1:])
            if len(analysis.readers) == 2
            else "each of the other readers"
        )
        yield (
            f"{first} and {others} count as equal in a contrast if two one-sided tests "
            f"at {_level(analysis)} reject a difference of {bound.said} or more "
            "between them, by Bonferroni's method over all such tests of the measure"
        )
    if (
        bound is not None
        and plan.compares_items
        and any(measure.name == "correct" for measure in analysis.by_measure)
    ):
        yield (
            "conditions that asked a model about the same items count as equal if two one-sided tests reject a "
            f"difference of {bound.said} or more, frozen beforehand"
        )


def _bayes(prior: Prior) -> str:
    return f"Bayes factors compare each contrast with no difference, with a {prior.said} around 0; a direction keeps half of it"


def _model(analysis: PlannedAnalysis) -> Iterator[str]:
    shares = [measure.name for measure in analysis.by_measure if measure.scale == "points"]
    if shares:
        yield (
            f"estimate of {', '.join(shares)}: differences in percentage points over participants and items (crossed-variance "
            "estimator), people compared with a model item by item; the logistic model of people is a check on the log-odds scale"
        )
    codings = [f"{CODED[analysis.coding_of(name, analysis.factors)]} of {name}" for name in analysis.factors]
    yield f"coding{'' if 'coding' in analysis.stated else DEFAULT}: {listing(codings)}; contrasts do not depend on it"
    if analysis.formula is not None:
        yield f"model: {analysis.formula}"
        yield (
            f"fallback: {analysis.fallback}, if the model is singular or does not converge"
            if analysis.fallback is not None
            else f"fallback: none; the model is reported as it is{DEFAULT}"
        )
        return
    crossed = len(analysis.factors) > 1
    fixed = f"{' and '.join(analysis.factors)} with their interaction" if crossed else analysis.factors[0]
    for measure, readers in analysis.by_measure.items():
        crossed_with = "the reader crossed with " if len(readers) > 1 and measure.name not in shares else ""
        of_measure = f" of {measure.name}" if len(analysis.by_measure) > 1 else ""
        held = analysis.covariates if measure.kind in COVARIED else ()
        also = (
            f", adjusted for {listing([COVARIATES[name] for name in held])}, each minus its mean"
            if held
            else ""
        )
        yield f"model{of_measure}{DEFAULT}: {measure.model}; fixed effects are {crossed_with}{fixed}{also}"
    slopes = (
        f"{', '.join(analysis.factors)} and their interaction (where they vary within a unit)"
        if crossed
        else fixed
    )
    yield f"random structure{DEFAULT}: {STRUCTURE.format(compare=slopes)}"
    if any(measure.name == "correct" for measure in analysis.measures.values()):
        yield f"missing answers{DEFAULT}: unreadable answers and timeouts count as wrong"


def _stopping(analysis: PlannedAnalysis, plan: StudyPlan) -> str:
    """Return the stopping rule as a sentence without its stop; what a study says of it is quoted as it is."""
    rule = _stop(analysis, plan).removesuffix(HINT).removesuffix(SETTING).removesuffix(".")
    if analysis.stop is not None:
        return f"Stopping rule: {rule}"
    return (
        f"Data collection was to stop {rule.removesuffix('has run')}{'had run' * rule.endswith('has run')}"
        if rule.startswith(("at ", "when "))
        else f"{rule[0].upper()}{rule[1:]}"
    )


def _stop(analysis: PlannedAnalysis, plan: StudyPlan) -> str:
    if analysis.stop is not None:
        return analysis.stop
    if "human" not in analysis.readers:
        return (
            f"when every planned session{'' if 'simulated' in analysis.readers else ' of the models'} has run"
        )
    if plan.wanted is None:
        return f"no number of participants is planned{HINT}"
    return f"at {plan.wanted} participants with a finished session that is not excluded{SETTING}"
