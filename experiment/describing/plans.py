"""Says the planned analyses of a study in words, every default among them, and says which are defaults."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from experiment.describing.criteria import rules_in_words
from experiment.study import Study
from experiment.study.plans import PlannedAnalysis, compares_items, planned_analyses

DEFAULT = " (default)"
STRUCTURE = (
    "random effects start at participants with an intercept and slopes of {compare}, items likewise, which may differ between "
    "people and models, and, where models answer so, items by model, items by model and condition, prompt wordings and sessions; "
    "where a fit is singular or does not converge, correlations go first, then slopes without variance, then all slopes, and "
    "every step is reported"
)


def plans_in_words(study: Study) -> list[list[str]]:
    """Return the lines of each planned analysis: its question first, then how it is tested, modelled, cut and stopped."""
    return [list(_lines(one, study)) for one in planned_analyses(study)]


def _lines(one: PlannedAnalysis, study: Study) -> Iterator[str]:
    of_levels = "; ".join(
        (f"{name}: " if len(one.factors) > 1 else "") + f"{', '.join(levels)}; {levels[0]} is the reference"
        for name, levels in one.levels_of.items()
    )
    yield f"{one.name}: {_measured(one)}, compared by {one.compare} ({of_levels})"
    for name, levels in one.levels_of.items():
        others = [level for level in study.factors[name] if level not in levels]
        if others:
            yield f"levels: trials with {name} {' or '.join(others)} are not in it"
    told = (
        ""
        if "contrasts" in one.stated and study.get("analysis", "planned", one.name, "contrasts")
        else DEFAULT
    )
    contrasts = "; ".join(f"{contrast.said}, {_expected(contrast.direction)}" for contrast in one.contrasts)
    yield f"contrasts{told}: {contrasts}{'' if 'direction' in one.stated else DEFAULT}"
    if len(one.factors) > 1:
        yield from _of_contrasts(one)
    if one.trials is not None:
        yield f"trials: only those that end with {one.trials}"
    if one.within:
        yield f"within: only trials with {', '.join(f'{name} {level}' for name, level in one.within.items())}"
    yield f"tests: alpha {one.alpha:g}{'' if 'alpha' in one.stated else DEFAULT}; {_family(one, study)}"
    if one.equivalence is not None and len(one.readers) > 1:
        pairs = ", ".join(f"{one.readers[0]} and {other}" for other in one.readers[1:])
        yield (
            f"equivalence: {pairs} count as equal in a contrast where two one-sided tests at alpha {one.alpha:g} reject a "
            f"difference of {one.equivalence} or more between them, Holm's correction over them"
        )
    if one.equivalence is not None and compares_items(study):
        yield (
            f"equivalence: conditions that asked a model about the same items count as equal where two one-sided tests reject a "
            f"difference of {one.equivalence} or more, frozen beforehand"
        )
    elif one.equivalence is None and len(one.readers) > 1:
        yield f"equivalence: no bound, so that nothing is claimed to be equal{DEFAULT}"
    yield from _model(one)
    yield f"left out: {_left_out(one, study)}"
    yield f"stop: {_stop(one, study)}"


def _of_contrasts(one: PlannedAnalysis) -> Iterator[str]:
    """Say what each contrast of two factors is."""
    for contrast in one.contrasts:
        difference = f"{contrast.first} minus {contrast.second}"
        if len(contrast.at) == 2:
            told = (
                f"{difference} in {contrast.at[0]}, less {difference} in {contrast.at[1]} (the interaction)"
            )
        elif contrast.at:
            told = f"{difference} in trials with {contrast.at[0]} (a simple effect)"
        else:
            other = next(name for name, own in one.levels_of.items() if contrast.first not in own)
            told = f"{difference}, averaged over the levels of {other}"
        yield f"what is tested: {contrast.said} is {told}"
    if any(len(contrast.at) == 2 for contrast in one.contrasts) and any(
        measure.scale == "points" for measure in one.measures.values()
    ):
        yield (
            "scale: interactions are tested in log odds and told in percentage points beside them; where only one of the two "
            "shows an interaction, the report says that it depends on the scale"
        )


def _measured(one: PlannedAnalysis) -> str:
    measures = list(dict.fromkeys(one.measures.values()))
    if len(measures) == 1:
        return f"{measures[0].name} ({measures[0].said}) of {readers_in_words(one.readers)}"
    return "; ".join(
        f"{measure.name} ({measure.said}) of {readers_in_words([r for r in one.readers if one.measures[r] is measure])}"
        for measure in measures
    )


def readers_in_words(readers: Iterable[str]) -> str:
    """Return names of readers as a sentence names them: people, simulated readers, a model by its name."""
    return ", ".join({"human": "people", "simulated": "simulated readers"}.get(one, one) for one in readers)


def _expected(direction: str) -> str:
    return direction if direction == "two-sided" else f"one-sided: {direction} than 0 expected"


def _family(one: PlannedAnalysis, study: Study) -> str:
    if one.family is None:
        return f"Holm's correction over the readers of each contrast{DEFAULT}"
    others = [other.name for other in planned_analyses(study) if other.family == one.family]
    return (
        f"family {one.family}: Holm's correction over all its contrasts ({', '.join(others)}), within readers, between readers and "
        "of equivalence each by itself"
    )


def _model(one: PlannedAnalysis) -> Iterator[str]:
    if one.formula is not None:
        yield f"model: {one.formula}"
        yield (
            "fallback: " + one.fallback + ", where the model is singular or does not converge"
            if one.fallback is not None
            else f"fallback: none; the model is reported as it is{DEFAULT}"
        )
        return
    for measure in dict.fromkeys(one.measures.values()):
        own = [reader for reader in one.readers if one.measures[reader] is measure]
        by = "the reader crossed with " if len(own) > 1 else ""
        named = f" of {measure.name}" if len(set(one.measures.values())) > 1 else ""
        fixed = one.compare
        if len(one.factors) > 1:
            fixed = f"{' and '.join(one.factors)} with their interaction"
        yield f"model{named}{DEFAULT}: {measure.model}; fixed effects are {by}{fixed}"
    slopes = one.compare
    if len(one.factors) > 1:
        slopes = f"{one.factors[0]}, {one.factors[1]} and their interaction, as far as they vary within a participant"
    yield f"random structure{DEFAULT}: {STRUCTURE.format(compare=slopes)}"
    if any(measure.name == "correct" for measure in one.measures.values()):
        yield f"missing answers{DEFAULT}: unreadable answers and timeouts count as wrong"


def _left_out(one: PlannedAnalysis, study: Study) -> str:
    own = list(rules_in_words(one.exclude))
    shared = list(rules_in_words(study.get("analysis", "exclude", default={})))
    told = f"the study's exclusions ({'; '.join(shared) or 'none'})"
    return f"{told}; beyond them {'; '.join(own)}" if own else f"{told}; nothing beyond them{DEFAULT}"


def _stop(one: PlannedAnalysis, study: Study) -> str:
    if one.stop is not None:
        return one.stop
    wanted = study.get("participants", "wanted")
    if "human" not in one.readers:
        return f"when every planned session of the models has run{DEFAULT}"
    return (
        f"no number of participants is planned; participants: wanted says one{DEFAULT}"
        if wanted is None
        else f"at {wanted} participants with a finished session that is not excluded (participants: wanted){DEFAULT}"
    )
