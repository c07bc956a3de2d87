"""The Method section: who took part, which models were asked, materials, procedure, how the answers were analysed, with what."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from markupsafe import Markup, escape

from analysis import apa
from analysis.names import in_words
from analysis.plan import MEASURES
from analysis.preparing import keeps_right_answers_alone, time_bounds
from analysis.preparing.flow import flow_steps
from analysis.random_structure import CONDITIONS_APART, ITEMS_FOR_A_COLUMN, MOST_COLUMNS
from analysis.readers import PARTICIPANT_KINDS
from analysis.report.method_models import imported, sessions_told, told_of_models
from analysis.report.method_rating import fillers_named, rules_asked_for, told_of_rating
from analysis.report.references import Reference, reference, software
from analysis.results import Analysis
from analysis.tables import Tables

PACKAGES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib")
_RULES = {"attention check": "attention checks"}


@dataclass(frozen=True)
class MethodPart:
    """A subsection of the Method section.

    Attributes
    ----------
    heading : str
    paragraphs : tuple of Markup
    origin : str
        Where its numbers come from, in words.
    """

    heading: str
    paragraphs: tuple[Markup, ...]
    origin: str = ""


def method_parts(
    tables: Tables, analyses: tuple[Analysis, ...], models_table: str | None, *, has_models: bool = True
) -> list[MethodPart]:
    """Write the Method section.

    Parameters
    ----------
    tables : Tables
    analyses : tuple of Analysis
        Every analysis of the report.
    models_table : str or None
        Number of the table of models, where there is one.
    has_models : bool
        Whether the report holds a fitted model, be it of an analysis or of a chapter; ``models.R`` is written where it does.
    """
    parts = [
        MethodPart("Participants", tuple(_participants(tables)), "tables of the flow; `dictionary: participants` in numbers.json"),
        MethodPart("Language models", tuple(told_of_models(tables, models_table)), "`dictionary: readers` in numbers.json"),
        MethodPart("Materials and design", tuple(_materials(tables)), "trials.csv; `dictionary: procedure` in numbers.json"),
        MethodPart("Procedure", tuple(_procedure(tables)), "`dictionary: procedure` in numbers.json"),
        MethodPart("Rating", tuple(told_of_rating(tables)), "`dictionary: rating` in numbers.json"),
        MethodPart(
            "Data analysis", tuple(_analysis(tables, analyses, has_models)), "rules of wrods; `dictionary: exclude` in numbers.json"
        ),
    ]  # fmt: skip
    return [part for part in parts if part.paragraphs]


def _participants(tables: Tables) -> Iterator[Markup]:
    trials = tables.trials
    for group, noun in (("human", "person"), ("simulated", "simulated reader")):
        own = trials[(trials["reader_group"] == group) & ~trials["is_pilot"].astype(bool)]
        told = tables.dictionary["readers"].get(group) or {}
        if own.empty and not told.get("sessions"):
            continue
        people = {"person": "people"}.get(noun)
        used = own[own["excluded_reason"].isna()]
        begun = int(told.get("sessions") or own["session_id"].nunique()) - int(
            told.get("pilot_sessions") or 0
        )
        wanted = tables.dictionary.get("participants_wanted") if group == "human" else None
        planned = f" The planned sample was {apa.count(wanted)}." if wanted else ""
        if own.empty:
            yield escape(_without_trials(begun, people or f"{noun}s") + sessions_told(told) + planned)
            continue
        many = apa.worded(int(own["reader"].nunique()), noun, people)
        said = (
            f"Participants were {many}"
            if group == "human"
            else f"The sample consisted of {many} (programs with known effects, not participants)"
        )
        came = tables.dictionary.get("participants") or {}
        imported = group == "human" and bool(came.get("imported"))
        sessions = apa.worded(max(begun, 0), "session")
        if imported and not came.get("first_session"):
            said += f", whose {sessions} were imported from a table that does not say when they were held"
        else:
            said += f", who began {sessions}"
            said += f" ({apa.count(came['imported'])} of them imported)" if imported else ""
        if group == "human" and came.get("first_session"):
            said += f" {apa.between_dates(came['first_session'], came['last_session'])}"
        said += "." + sessions_told(told) + planned
        left = int(used["reader"].nunique())
        said += f" {_excluded(tables, group)} This left {apa.worded(left, noun, people)} and "
        said += f"{apa.worded(len(used), 'trial')} for analysis."
        yield escape(said)
        if group == "human":
            yield from _of_themselves(came)


def _without_trials(begun: int, people: str) -> str:
    """Report that sessions began but no trial was answered."""
    if begun < 1:
        return f"No session of {people} was held but pilots."
    sessions, were, them = (
        apa.worded(begun, "session").capitalize(),
        *(("was", "it") if begun == 1 else ("were", "them")),
    )
    return f"{sessions} of {people} {were} begun; no trial was answered in {them}."


def _first(text: str) -> str:
    return text[0].upper() + text[1:]


def _excluded(tables: Tables, group: str) -> str:
    steps = flow_steps(tables.trials[tables.trials["reader_group"] == group])
    lost = [one for one in steps.to_dict("records") if one["step"] and one["trials_lost"]]
    if not lost:
        return "No participant and no trial was excluded."
    parts = []
    names = _RULES | {"filler": fillers_named(tables, group)}
    for one in lost:
        readers = int(one["readers_lost"])
        whole = f", {apa.counted(readers, 'reader')} altogether" if readers else ""
        parts.append(
            f"{names.get(one['why'], one['why'])} ({apa.counted(int(one['trials_lost']), 'trial')}{whole})"
        )
    return f"The following were excluded, in this order: {'; '.join(parts)}."


def _of_themselves(came: Mapping[str, Any]) -> Iterator[Markup]:
    """Describe how people were recruited and what they answered about themselves."""
    said = []
    if came.get("recruit"):
        said.append(f"They were recruited by {_recruitment(str(came['recruit']))}.")
    if came.get("eligible"):
        rules = "; ".join(
            f"{str(name).replace('_', ' ')}: {_range(rule)}" for name, rule in came["eligible"].items()
        )
        said.append(f"The criteria of eligibility were {rules}.")
    for one in came.get("answers") or []:
        if "mean" in one:
            sd = "" if one.get("sd") is None else f", SD = {apa.number(one['sd'])}"
            said.append(
                f"{_first(str(one['name']).replace('_', ' '))}: M = {apa.number(one['mean'])}{sd}, range "
                f"{one['low']:g} to {one['high']:g} (n = {apa.count(one['n'])})."
            )
        else:
            counts = ", ".join(f"{apa.count(n)} {value}" for value, n in one["counts"].items())
            said.append(
                f"{_first(str(one['name']).replace('_', ' '))}: {counts} (n = {apa.count(one['n'])})."
            )
    if came.get("people") and not came.get("answers"):
        said.append("Age, gender, and languages were not recorded.")
    if said:
        yield _set(" ".join(said))


def _recruitment(name: str) -> str:
    known = {
        "prolific": "Prolific",
        "sona": "SONA",
        "mturk": "Amazon Mechanical Turk",
        "lab": "the laboratory",
    }
    return known.get(name, {"link": "a link"}.get(name, name))


def _range(rule: Any) -> str:
    if (
        isinstance(rule, list | tuple)
        and len(rule) == 2
        and all(isinstance(one, int | float) for one in rule)
    ):
        return f"{rule[0]} to {rule[1]}"
    return apa.listing([str(one) for one in rule]) if isinstance(rule, list | tuple) else str(rule)


def _set(text: str) -> Markup:
    """Set M, SD and n in italics."""
    said = str(escape(text))
    for symbol in ("M", "SD", "n"):
        said = said.replace(f" {symbol} = ", f" <i>{symbol}</i> = ").replace(
            f"({symbol} = ", f"(<i>{symbol}</i> = "
        )
    return Markup(said)


def _materials(tables: Tables) -> Iterator[Markup]:
    told = {} if _all_imported(tables) else tables.dictionary.get("procedure") or {}
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    said = [f"The materials comprised {_first_small(told['materials'])}"] if told else []
    said.append(f"The analyses include {apa.worded(int(used['item_id'].nunique()), 'item')}.")
    language = str(tables.dictionary["language"])
    if language:
        said.append(f"The language was {LANGUAGES.get(language.split('-')[0], language)}.")
    yield escape(" ".join(said))
    factors = [
        f"{name} ({apa.listing([str(level) for level in levels])}; reference: {next(iter(levels))})"
        for name, levels in tables.factors.items()
    ]
    if factors:
        design = f"The design had {apa.worded(len(factors), 'factor')}: {'; '.join(factors)}."
        lists = f" The design used {told['lists']}" if told else ""
        yield escape(f"{design}{lists}")


def _first_small(text: str) -> str:
    return text[0].lower() + text[1:] if text[:2].istitle() else text


LANGUAGES = {
    "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "he": "Hebrew", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "tr": "Turkish",
    "zh": "Chinese",
}  # fmt: skip


def _all_imported(tables: Tables) -> bool:
    """Return whether every session of people was imported, so that the study's own procedure was not theirs."""
    came = tables.dictionary.get("participants") or {}
    return bool(came.get("imported")) and not came.get("first_session")


def _only_imported_models(tables: Tables) -> bool:
    """Return whether only models answered, all of them elsewhere."""
    readers = tables.dictionary["readers"].values()
    return bool(readers) and all(one.get("kind") == "model" and imported(one) for one in readers)


def _procedure(tables: Tables) -> Iterator[Markup]:
    if _all_imported(tables):
        fewest, most = tables.dictionary["participants"]["imported_trials"]
        trials = apa.count(fewest) if fewest == most else f"{apa.count(fewest)} to {apa.count(most)}"
        yield escape(
            f"The answers of people were imported from a table, with its lists and the order of its rows; a session had {trials} "
            "trials. The table does not say how sessions were held."
        )
        return
    if _only_imported_models(tables):
        yield Markup("All answers were imported from tables, which do not say how they were asked for.")
        return
    told = tables.dictionary.get("procedure")
    if not told:
        return
    screens = [in_words(str(one)) for one in told["screens"]]
    said = f"A session consisted of {apa.listing(screens)}. {told['trials']}"
    if tables.trials["reader_kind"].isin(PARTICIPANT_KINDS).any():
        said += f", {told['length']}. {told['limits']}".rstrip()
    else:
        said += "."
    said = f"{said} {rules_asked_for(tables)}".rstrip()
    yield escape(said)
    if told["told"]:
        yield escape(told["told"])


def _analysis(tables: Tables, analyses: tuple[Analysis, ...], has_models: bool) -> Iterator[Markup]:
    fitted = [one for one in analyses if one.model is not None]
    said = []
    estimated = [one for one in analyses if any(each.crossed is not None for each in one.contrasts)]
    if not has_models and not estimated:
        said.append(
            "No mixed-effects model could be fitted to these answers; conditions are described by means, with intervals where "
            "these can be computed."
        )
    if estimated:
        said.append(_of_shares(estimated))
    said.append(
        "Answers that could not be scored, refusals, and timeouts counted as incorrect for both people and models."
    )
    timed = [one for one in fitted if one.plan.measure.logged]
    if timed:
        said.append(
            f"Log-transformed times of valid answers{_right_or_wrong(timed)} were analysed with linear mixed-effects models "
            f"(REML, Satterthwaite degrees of freedom; {cite('kuznetsova2017')}). Because a log scale can hide or create an "
            f"interaction ({cite('loftus1978')}), times were also analysed in milliseconds."
        )
    for measure in MEASURES.values():
        bounds = time_bounds(tables.dictionary["exclude"], measure.name) if measure.logged else None
        if bounds is not None:
            said.append(
                f"{measure.title}s outside {apa.count(bounds.low)} to {apa.count(bounds.high)} ms were excluded."
            )
    yield escape(" ".join(said))
    if has_models:
        yield escape(
            f"The random effects of each mixed model started from those that the design justified ({cite('barr2013')}): random "
            "intercepts and condition slopes for participants and items. Item slopes had all correlations if these took at most "
            f"{MOST_COLUMNS} columns with {ITEMS_FOR_A_COLUMN} items each; otherwise, they were independent between conditions, with "
            f"one variance or with one for each of {CONDITIONS_APART[0]} to {CONDITIONS_APART[-1]} conditions. If a fit was "
            f"singular or did not converge ({cite('bates2015parsimonious')}), correlations were removed first (which leaves "
            "independent deviations in each condition), then slopes with zero variance, then all slopes. Conditions were treatment "
            f"coded. Explained variance is Nakagawa’s marginal and conditional R² ({cite('nakagawa2013')}; {cite('nakagawa2017')}; "
            f"with random slopes: {cite('johnson2014')})."
            + (_OF_TWO_FACTORS if any(one.plan.crossing is not None for one in fitted) else "")
        )
    means = f"Means have {_intervals(tables)}."
    if any(one.has_results for one in analyses):
        means = (
            "Unless the plan stated otherwise, tests were two-sided at α = .05. All planned differences in one measure (of people, of "
            "each model, and between them) were adjusted together by the distribution of the largest of their correlated |t| values "
            f"({cite('hothorn2008')}), which yields simultaneous intervals: An adjusted p is below α exactly when its interval "
            f"excludes zero. Exploratory differences were corrected within each analysis ({cite('benjamini1995')}), with intervals "
            f"that agree with that correction ({cite('benjamini2005')}). {means}"
        )
    yield escape(means)
    software = f"The analyses were run in {software_words(tables.dictionary)}"
    if any(one.plan.equivalence is not None and len(one.plan.groups) > 1 for one in analyses):
        yield escape(
            "Equivalence was tested with two one-sided tests against the bound set in the plan, with Bonferroni’s correction "
            f"({cite('schuirmann1987')}; {cite('lakens2017')})."
        )
    if any(one.plan.stand_in for one in analyses):
        yield escape(
            "The plan is about people, none of whom have answered yet; as a rehearsal, simulated readers took their place."
        )
    parts = [
        *(["recomputes the estimates in base R"] if estimated else []),
        *([f"refits every model with lme4 ({cite('bates2015lme4')})"] if has_models else []),
    ]
    if parts:
        software += f" The program models.R {' and '.join(parts)}."
    yield escape(software)


def _of_shares(estimated: list[Analysis]) -> str:
    """Describe how shares were estimated."""
    nouns = apa.listing(list(dict.fromkeys(one.plan.measure.noun for one in estimated)))
    several = any(len(one.groups) > 1 for one in estimated)
    fixed = any(one.plan.items == "fixed" for one in estimated)
    units = " or ".join(dict.fromkeys(one.plan.measure.unit_of_difference for one in estimated))
    told = f"Differences in {nouns} were estimated in {units} from condition means in which every item had the same weight. "
    shares = [one for one in estimated if one.plan.measure.scale == "points"]
    retained = "; conditions with 0% or 100% correct answers were retained" if shares else ""
    told += (
        "The variance of a difference adds the contributions of participants and of items and subtracts that of single answers, "
        f"which both contain ({cite('clark1973')}; {cite('cameron2011')}), with approximate degrees of freedom "
        f"({cite('satterthwaite1946')}){retained}."
    )
    if several:
        told += (
            " To compare people with a model over the same items, the model’s mean answer to an item in a condition was subtracted "
            "from each participant’s answer to it. If fewer than five items of a model differed between conditions, its variance was "
            "that of one more item."
        )
    if fixed:
        told += " Where the plan treats items as fixed, the results hold for these items only."
    if any(one.companion is not None for one in estimated if one not in shares):
        told += " Linear mixed-effects models of people’s ratings served as a check."
    if any(one.companion is not None for one in shares):
        told += " Logistic mixed-effects models of people (Laplace approximation) served as a check on the scale of log odds."
    return told


_OF_TWO_FACTORS = (
    " If two factors were compared together, participants had random slopes for each and for their interaction, as far as these "
    "varied within participants (in centred columns once correlations were removed); the conditions of items were the cells."
)


def _intervals(tables: Tables) -> str:
    """Describe the intervals of means: over participants or, without participants, over items."""
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    people = used[used["reader_kind"].isin(PARTICIPANT_KINDS)]
    if people.empty:
        return "intervals over items (Wilson’s of the effective number of answers for accuracy, Student’s for other measures)"
    told = f"within-participant intervals (Cousineau–Morey; {cite('cousineau2005')}; {cite('morey2008')})"
    if any(
        people[name].nunique() > 1 and bool((people.groupby("reader")[name].nunique() <= 1).all())
        for name in tables.factors
    ):
        told += ", or Student’s intervals if each participant was in one condition"
    return told


def _right_or_wrong(timed: list[Analysis]) -> str:
    """Name the answers whose times were analysed according to the plans."""
    without = [one for one in timed if keeps_right_answers_alone(one.plan.exclude)]
    if not without:
        return ", correct and incorrect,"
    if len(without) == len(timed):
        return " that were correct"
    return (
        f", correct and incorrect (only correct ones in {apa.listing([one.plan.name for one in without])}),"
    )


def cite(key: str) -> str:
    """Write a reference as a sentence cites it."""
    return reference(key).cited()


def cited_keys(paragraphs: tuple[Markup, ...], keys: tuple[str, ...]) -> list[str]:
    """Return which of these references a text cites."""
    said = " ".join(str(one) for one in paragraphs)
    return [key for key in keys if str(escape(reference(key).cited())) in said]


METHOD_KEYS = (
    "bates2015lme4", "barr2013", "kuznetsova2017", "loftus1978", "bates2015parsimonious", "benjamini1995", "benjamini2005",
    "hothorn2008", "clark1973", "cameron2011", "satterthwaite1946",
    "cousineau2005", "morey2008", "nakagawa2013", "nakagawa2017", "johnson2014", "schuirmann1987", "lakens2017",
)  # fmt: skip
"""What the Method section may cite."""


def software_words(dictionary: Mapping[str, Any]) -> str:
    """Name the versions of everything that made the numbers."""
    names = [f"wrods {dictionary.get('wrods') or metadata.version('wrods')} (own mixed-model engine)"]
    names += [f"Python {platform.python_version()}"]
    names += [f"{package} {metadata.version(package)}" for package in PACKAGES]
    return f"{apa.listing(names)}."


def software_references(dictionary: Mapping[str, Any], year: int) -> list[Reference]:
    """Return wrods with the version that made the report, as a reference."""
    version = str(dictionary.get("wrods") or metadata.version("wrods"))
    title = "wrods: People and language models, one experiment"
    return [software("wrods", "The wrods developers", title, version, str(year), "")]
