"""The state of a plan: when it was frozen, where it was registered, and every visible deviation from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from analysis import apa
from analysis.plan import Plan, Remark, StudyPlan, plan_in_brief, remarks_about
from analysis.planned import planned_analyses
from analysis.readers import PARTICIPANT_KINDS, kinds_of, spoken
from analysis.results import Analysis
from analysis.tables import Tables


@dataclass(frozen=True)
class PlanStatus:
    """The state of a plan as a whole."""

    told: tuple[str, ...] = ()  # when it was frozen and where it was registered, in sentences
    plans: tuple[tuple[str, str], ...] = ()  # name and wording of each planned analysis
    departures: tuple[str, ...] = ()  # what differs from the plan, in sentences


def standing_of(tables: Tables, analyses: Sequence[Analysis]) -> PlanStatus:
    """State how a study's plan stands."""
    planned = [analysis for analysis in analyses if analysis.plan.planned]
    if not planned:
        return PlanStatus()
    dictionary = tables.dictionary
    frozen, registration = dictionary.get("frozen"), dictionary.get("registration")
    target = dictionary.get("participants_wanted")
    departures = [*_of_freeze(frozen, registration), *_of_sample(tables, planned, target)]
    plan = StudyPlan(tuple(planned_analyses(tables)), tables.factors, dictionary.get("exclude") or {}, target)
    departures += [
        departure for analysis in planned for departure in _of_analysis(analysis, tables.trials, target)
    ]
    return PlanStatus(
        tuple(_told(frozen, registration)),
        tuple((analysis.name, plan_in_brief(analysis, plan)) for analysis in plan.analyses),
        tuple(dict.fromkeys(departures)),
    )


def why_no_bound(plans: Iterable[Plan]) -> str:
    """State of plans without a bound of equivalence why they have none: it was not frozen before the data, or there was none."""
    if any(remarks_about(plan.remarks, "no bound") for plan in plans):
        return "the plan's bound of equivalence was not fixed before the data"
    return "no bound was fixed beforehand"


def with_bounds_fixed_beforehand(plans: Iterable[Plan], dictionary: Mapping[str, Any]) -> list[Plan]:
    """Return plans without bounds of equivalence that were not frozen before people took part; a remark says of each why."""
    frozen, result = dictionary.get("frozen"), []
    reason = ""
    if frozen is None:
        reason = "was not frozen (wrods freeze)"
    elif frozen.get("sessions_before"):
        reason = "was frozen only when people had begun to take part"
    elif any(".equivalence" in str(line) for line in frozen.get("changes") or []):
        reason = "was changed since the freeze"
    plans = list(plans)
    keys = Counter(plan.key for plan in plans if plan.key)
    for plan in plans:
        if reason and plan.equivalence is not None and len(plan.groups) < 2 and keys[plan.key] < 2:
            plan = replace(plan, equivalence=None)  # there is no second reader to be equivalent to
        elif reason and plan.equivalence is not None:
            remark = (
                f"The equivalence bound ({plan.equivalence.said}) {reason}, so equivalence was not tested."
            )
            plan = replace(plan, equivalence=None, remarks=(*plan.remarks, Remark(remark, "no bound")))
        result.append(plan)
    return result


def _told(frozen: Mapping[str, Any] | None, registration: Mapping[str, Any] | None) -> Iterator[str]:
    if frozen is None:
        yield "The plan was not frozen (wrods freeze), so nothing shows that it was made before the data."
    else:
        yield (
            f"The plan was frozen on {apa.day(frozen['frozen_at'])} (hash {str(frozen['hash'])[:16]}…), "
            + (
                "before any person took part."
                if not frozen.get("sessions_before")
                else f"after {apa.worded(int(frozen['sessions_before']), 'session')} of people had begun."
            )
        )
    url = (registration or {}).get("url")
    if url:
        yield f"It is registered at {url}."
    elif registration is not None:
        yield "It was declared as not registered when the first session began."


def _of_freeze(frozen: Mapping[str, Any] | None, registration: Mapping[str, Any] | None) -> Iterator[str]:
    if frozen is None:
        return
    if frozen.get("sessions_before"):
        yield "The plan was frozen after people had begun to take part."
    for earlier in frozen.get("earlier") or []:
        day = apa.day(earlier["frozen_at"])
        yield f"A freeze of {day} was replaced, because: {earlier['replaced_because']}"
        for line in earlier.get("changes") or []:
            yield f"Changed when the freeze of {day} was replaced: {line}."
    for line in frozen.get("changes") or []:
        yield f"Changed since the freeze: {line}."
    freeze_hash = (registration or {}).get("freeze_hash")
    if (registration or {}).get("url") and freeze_hash and freeze_hash != frozen["hash"]:
        yield "The registration was given for another freeze than the present one."


def _of_sample(tables: Tables, planned: Sequence[Analysis], target: Any) -> Iterator[str]:
    number = _participants(tables.trials, "human")
    for analysis in planned:
        expected = _expected(analysis.plan, target)
        if expected and "human" in analysis.plan.groups and number != expected:
            word = "fewer" if number < expected else "more"
            yield (
                f"The analyses include {apa.counted(number, 'participant')}, {word} than the {expected} at which collection was to "
                "stop."
            )


def _participants(trials: pd.DataFrame, kind: str) -> int:
    """Count the people, or what stands in for them, whose trials are analyzed."""
    used = trials[trials["excluded_reason"].isna() & (trials["reader_kind"] == kind)]
    return int(used["reader"].nunique())


def _expected(plan: Plan, target: Any) -> int | None:
    """Return the number of participants at which collection was to stop; None where there is none."""
    return plan.participants_at_stop if plan.stop else int(target) if target else None


def _of_analysis(analysis: Analysis, trials: pd.DataFrame, target: Any) -> Iterator[str]:
    plan = analysis.plan
    if plan.stand_in:
        number, expected = _participants(trials, "simulated"), _expected(plan, target)
        sample = (
            f" with {apa.counted(number, 'reader')} instead of {expected}"
            if expected and number != expected
            else ""
        )
        yield f"Simulated readers stand in for people, who have not taken part yet (a rehearsal{sample})."
    if not analysis.has_results:
        # its section of the Results has the details
        # a contrast between readers may have a reason for each of them
        given = (contrast.left_out.split("; ") for contrast in analysis.contrasts if contrast.left_out)
        reasons = dict.fromkeys(reason for several in given for reason in several)
        why = (
            f" ({'; '.join(reasons)})."
            if reasons
            else f". {analysis.remarks[0]}"
            if analysis.remarks
            else "."
        )
        yield f"The analysis {plan.name} could not be carried out{why}"
        return
    missing = [group for group in plan.groups if group not in analysis.groups]
    if missing:
        is_one = (
            len(missing) == 1 and kinds_of(analysis.rows).get(missing[0], missing[0]) not in PARTICIPANT_KINDS
        )
        verb, pronoun = ("was", "it has") if is_one else ("were", "they have")
        of_what = plan.measure.noun if plan.measure.logged else "trials"
        reason = (
            "" if analysis.rows["reader_group"].isin(missing).any() else f", because {pronoun} no {of_what}"
        )
        yield f"{plan.name}: {apa.listing([spoken(group) for group in missing])} {verb} not analyzed{reason}."
    levels = [level for level in plan.levels if level not in analysis.levels]
    # where no word changes, none can be recovered
    if levels and plan.measure.value != "share":
        yield f"{plan.name}: no trials of {apa.listing(levels)} were analyzed."
    tested = {contrast.label for contrast in analysis.contrasts if not contrast.left_out}
    untested = [contrast.label for contrast in plan.contrasts if contrast.label not in tested]
    if untested:
        yield f"{plan.name}: not tested: {'; '.join(untested)}."
    departures = remarks_about(analysis.remarks, "replaced model"), remarks_about(plan.remarks, "no bound")
    yield from (f"{plan.name}: {remark}" for remarks in departures for remark in remarks)
