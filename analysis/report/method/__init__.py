"""The Method section: participants, models, materials, procedure, analyses and software.

``text.md.j2`` holds every sentence; this module gathers what they say.
"""

from __future__ import annotations

import platform
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup
from scipy import stats

from analysis import apa
from analysis.answers import is_choice, is_valid, judged, never_answered
from analysis.crossed_variance import FEW, RARE
from analysis.descriptives import levels_shared
from analysis.exclusions import (
    NO_RESPONSE,
    flow_steps,
    is_statement,
    keeps_right_answers_alone,
    reasons_named,
    time_bounds,
)
from analysis.mixed import Fit
from analysis.names import in_words
from analysis.plan import ALPHA, CODED, MEASURES, OF_FIXATIONS
from analysis.planned import trials_named
from analysis.random_structure import CONDITIONS_APART, ITEMS_FOR_A_COLUMN, MOST_COLUMNS
from analysis.readers import PARTICIPANT_KINDS, group_order, kinds_of, spoken
from analysis.report.apa_tables import ApaTable
from analysis.report.fit_warnings import without_end
from analysis.report.layout import ChapterLayout
from analysis.report.references import Reference, cite, written
from analysis.results import Analysis
from analysis.tables import Tables

LAYOUT = ChapterLayout(Path(__file__).parent)
PACKAGES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib")
MOST_SINGLY = 3
"""Largest number of models described separately; more share one sentence."""
LANGUAGES = {
    "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French", "he": "Hebrew", "it": "Italian",
    "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ru": "Russian", "tr": "Turkish",
    "zh": "Chinese",
}  # fmt: skip
_RULES = {"scrambled_bench": "cao2023", "typobench": "yu2024", "htest": "lee2024htest"}
"""The papers by whose published rules replies are scored."""
_UNSCORED = {"unparsed": "unreadable"}
"""What replies that could not be scored are called where their status is jargon."""
_SETTINGS = {
    ("device", "cpu"): "a CPU as the device", ("device", "cuda"): "a GPU as the device",
    ("dtype", "float32"): "32-bit floating point", ("dtype", "float16"): "16-bit floating point",
    ("context", "independent"): "a separate context for each trial",
    ("leading_space", "yes"): "a space before each label", ("leading_space", "no"): "no space before labels",
}  # fmt: skip
"""What settings are called whose names and values are code."""
_NO_REPLY = ("error", "timeout")
_FAILURES = {
    "unparsed": "answers that could not be scored", "truncated": "truncated answers", "empty": "empty answers",
    "refused": "refusals", "skipped": "skipped trials", "timeout": "timeouts", "error": "failed calls",
}  # fmt: skip
"""What answers that count as incorrect are called, by their status."""
_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


@dataclass(frozen=True)
class MethodPart:
    """A subsection of the Method section; ``origin`` says in words where its numbers come from."""

    heading: str
    paragraphs: tuple[Markup, ...]
    origin: str = ""


def method_parts(
    tables: Tables, analyses: tuple[Analysis, ...], models_table: str | None, fits: Sequence[Fit] = ()
) -> list[MethodPart]:
    """Write the Method section."""
    of_models = _models(tables, models_table)
    parts = (
        ("Participants", "participants", _participants(tables), "tables of the flow; `dictionary: participants` in numbers.json"),
        (
            "Language models" if of_models["models"] or of_models["silent"] else "Reference baselines", "models", of_models,
            "`dictionary: readers` in numbers.json",
        ),
        ("Materials and design", "materials", _materials(tables), "trials.csv; `dictionary: procedure` in numbers.json"),
        ("Procedure", "procedure", _procedure(tables), "`dictionary: procedure` in numbers.json"),
        ("Rating", "rating", _rating(tables), "`dictionary: rating` in numbers.json"),
        (
            "Data analysis", "analysis", _analysis(tables, analyses, fits),
            "rules of wrods; `dictionary: exclude` in numbers.json",
        ),
    )  # fmt: skip
    sections = (
        (heading, LAYOUT.paragraphs(passage, **facts), origin)
        for heading, passage, facts, origin in parts
        if facts
    )
    return [MethodPart(*section) for section in sections if section[1]]


def _participants(tables: Tables) -> dict[str, Any]:
    trials, came = tables.trials, tables.dictionary.get("participants") or {}
    samples: list[dict[str, Any]] = []
    for group, noun in (("human", "person"), ("simulated", "simulated reader")):
        group_trials = trials[(trials["reader_group"] == group) & ~trials["is_pilot"].astype(bool)]
        entry = tables.dictionary["readers"].get(group) or {}
        if group_trials.empty and not entry.get("sessions"):
            continue
        used = group_trials[group_trials["excluded_reason"].isna()]
        begun = int(entry.get("sessions") or group_trials["session_id"].nunique())
        begun -= int(entry.get("pilot_sessions") or 0)
        of_people = came if group == "human" else {}
        samples.append(
            {
                **{"group": group, "noun": noun, "nouns": "people" if group == "human" else f"{noun}s"},
                **{
                    "recorded": len(group_trials),
                    "readers": group_trials["reader"].nunique(),
                    "begun": max(begun, 0),
                },
                **{"imported": of_people.get("imported"), "first": of_people.get("first_session")},
                "last": of_people.get("last_session"),
                "undated": bool(of_people.get("imported")) and not of_people.get("first_session"),
                "wanted": None if samples else tables.dictionary.get("participants_wanted"),
                **_of_sessions(entry),
                **{"lost": _excluded(tables, group), "left": used["reader"].nunique(), "trials": len(used)},
            }
        )
    came = {"recruit": None, "eligible": None, "answers": None, "people": None} | came
    came["answers"] = [_in_english(answer) | _reliability(answer) for answer in came["answers"] or []]
    return (
        {"samples": samples, "came": came, "criteria": list(_criteria(came["eligible"] or {}))}
        if samples
        else {}
    )


def _in_english(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Write the answers to a question of ours as prose has them; a study's own are never rewritten."""
    if answer["name"] != "first_language":
        return dict(answer)
    counts = {_language(code): number for code, number in answer["counts"].items()}
    return {**answer, "name": in_words(answer["name"]), "counts": counts}


def _reliability(answer: Mapping[str, Any]) -> dict[str, tuple[float, float] | None]:
    """Return the 95% interval of a scale's alpha (Feldt, Woodruff, & Salih, 1987); None of answers without one."""
    if "alpha" not in answer:
        return {"interval": None}
    people, items = answer["n"] - 1, answer["rows"] - 1
    quantiles = stats.f.ppf([0.975, 0.025], people, people * items)
    low, high = 1 - (1 - answer["alpha"]) * quantiles
    return {"interval": (float(low), float(high))}


def _of_sessions(entry: Mapping[str, Any]) -> dict[str, Markup]:
    """Return the sentences on a reader's sessions that were not finished, and on its pilots; empty if there are none."""
    finished = entry.get("finished")
    unfinished = int(entry.get("sessions") or 0) - int(finished) if finished is not None else 0
    pilots = int(entry.get("pilot_sessions") or 0)
    return {"uncounted": LAYOUT.sentences("uncounted", unfinished=max(unfinished, 0), pilots=pilots)}


def _excluded(tables: Tables, group: str) -> list[dict[str, Any]]:
    group_trials = tables.trials[tables.trials["reader_group"] == group]
    steps = flow_steps(group_trials)
    lost = steps[steps["step"].astype(bool) & (steps["trials_lost"] > 0)]
    losses = zip(lost["why"], lost["trials_lost"], lost["readers_lost"], strict=True)
    return [{"name": why, "trials": int(trials), "readers": int(readers)} for why, trials, readers in losses]


def _criteria(eligible: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each criterion of eligibility with what it accepts, in words."""
    for name, rule in eligible.items():
        values = rule if isinstance(rule, list | tuple) else [rule]
        if name == "questions":
            yield from (
                (f"“{question['ask']}”", next(_criteria({"": question["accept"]}))[1])
                for question in rule.values()
            )
        elif len(values) == 2 and all(isinstance(end, int | float) for end in values):
            unit = {"age": " years", "refresh_rate": " Hz"}.get(name, "")
            yield in_words(name), f"{values[0]} to {values[1]}{unit}"
        elif name == "screen":
            yield "window", f"at least {str(rule).replace('x', ' × ')} pixels"
        else:
            texts = [_language(str(value)) if name == "first_language" else str(value) for value in values]
            yield in_words(name), " or ".join(texts)


def _language(code: str) -> str:
    """Name a language by its code."""
    return LANGUAGES.get(code.split("-")[0], code)


def _models(tables: Tables, table: str | None) -> dict[str, Any]:
    readers, silent = tables.dictionary["readers"], _without_responses(tables)
    models = sorted(
        name for name, entry in readers.items() if entry.get("kind") == "model" and name not in silent
    )
    baselines = sorted(name for name, entry in readers.items() if entry.get("kind") == "baseline")
    trials = {name: tables.trials[tables.trials["reader_group"] == name] for name in models}
    by_key: dict[tuple[Any, ...], list[str]] = {}
    for name in models:
        key = _imported_alike(readers[name], trials[name])
        if key is not None:
            by_key.setdefault(key, []).append(name)
    together = [(key, names) for key, names in by_key.items() if len(names) > 1]
    grouped = {name for _, names in together for name in names}
    heads = ("answers", "when", "trials", "sessions", "settings")
    described = [_one_model(name, readers[name], trials[name]) for name in models if name not in grouped]
    scored = pd.concat([*trials.values(), tables.trials.iloc[:0]])
    scored = scored[scored["scorer"].astype("str").str.match("published_(?!none)")]
    return {
        "published": int((is_valid(scored) & scored["response"].fillna("").eq("")).sum())
        if len(scored)
        else None,
        **{"models": len(models), "silent": silent, "baselines": baselines, "table": table},
        "all_imported": all(_imported(readers[name]) for name in models),
        "has_same": len(models) > 1 or bool(tables.trials["reader_kind"].isin(PARTICIPANT_KINDS).any()),
        "looking": [
            model for model in models if (readers[model].get("settings") or {}).get("presentation") == "image"
        ],
        "rules": [
            cite(key)
            for rule, key in _RULES.items()
            if scored["scorer"].astype("str").str.startswith(f"published_{rule}").any()
        ],
        "wording": (tables.dictionary.get("procedure") or {}).get("wording"),
        "alike": [{**dict(zip(heads, key, strict=True)), "names": names} for key, names in together],
        **{"told": described, "shared": _shared(described), "most_singly": MOST_SINGLY},
        "excluded": _reasons(pd.concat([*trials.values(), tables.trials.iloc[:0]])),
    }


def _without_responses(tables: Tables) -> list[str]:
    """Return the models whose rows in an imported table have no response at all."""
    of_models = tables.trials[tables.trials["reader_kind"] == "model"]
    has_none = (of_models["excluded_reason"] == NO_RESPONSE).groupby(of_models["reader_group"]).all()
    return sorted(str(name) for name in has_none.index[has_none])


def _reasons(trials: pd.DataFrame) -> list[str]:
    """Return how many trials were excluded for each reason."""
    reasons = reasons_named(trials).value_counts()
    return [f"{apa.count(int(number))} ({why})" for why, number in reasons.items()]


def _shared(facts: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return what several models have in common, to be stated once, if each model's sentence keeps a verb."""
    common = {
        key: [phrase for phrase in facts[0][key] if all(phrase in model[key] for model in facts)]
        if len(facts) > 1
        else []
        for key in ("done", "settings")
    }
    has_verbs = len(facts) > MOST_SINGLY or all(set(model["done"]) - set(common["done"]) for model in facts)
    return common if has_verbs else common | {"done": []}


def _imported_alike(entry: Mapping[str, Any], model_trials: pd.DataFrame) -> tuple[Any, ...] | None:
    """Return all that there is to report of a model whose answers were imported; None if more is known, or they were not."""
    sessions = model_trials["session_id"].nunique()
    more = {**_identity(entry), **_of_sessions(entry)}
    if not _imported(entry) or entry.get("resolved") or not sessions or any(more.values()):
        return None
    when = apa.between_dates(entry["first_call"], entry["last_call"])
    return int(entry["calls"]), when, len(model_trials), sessions, tuple(_settings(entry, model_trials))


def _identity(entry: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return how a model was requested and trained, and its family and size."""
    settings = entry.get("settings") or {}
    server = f" from {settings['base_url']}" if settings.get("base_url") else ""
    weights = _local_weights(entry)
    identity = [f"local weights{weights}"] if weights is not None else []
    if entry.get("use") and not identity:
        identity = [f"requested as {entry['use']}{server}"]
    if settings.get("trained"):
        identity.append(f"trained from {settings['base']} as {settings['trained']}")
    kind = [f"family {settings['family']}"] if settings.get("family") else []
    size = entry.get("parameters") or settings.get("parameters")
    kind += [f"{size if isinstance(size, str) else apa.count(size)} parameters"] if size else []
    return {"identity": identity, "kind": kind}


def _local_weights(entry: Mapping[str, Any]) -> str | None:
    """Return the hash of weights that were loaded from a folder, whose path means nothing elsewhere; None for other models."""
    path = str(entry.get("use") or "").partition(":")[2]
    if not path.startswith(("/", "./", "../", "~")):
        return None
    digest = str(entry.get("resolved") or "").partition("@sha256:")[2]
    return f", SHA-256 {digest}" if digest else ""


def _one_model(name: str, entry: Mapping[str, Any], model_trials: pd.DataFrame) -> dict[str, Any]:
    """Gather what a model is, what it did, and its settings."""
    is_imported = _imported(entry)
    has_name = bool(entry.get("resolved")) and _local_weights(entry) is None
    in_table = [f"identified itself as {entry['resolved']}"] if has_name else []
    if entry.get("first_call"):
        when, calls = apa.between_dates(entry["first_call"], entry["last_call"]), entry["calls"]
        elsewhere = f"gave its answers elsewhere ({apa.counted(calls, 'answer')}, imported {when})"
        in_table.append(elsewhere if is_imported else f"was accessed {when} ({apa.counted(calls, 'call')})")
    done = [*in_table]
    statuses = model_trials["response_status"]
    failed = 0 if is_imported else int(statuses.isin(_NO_REPLY).sum())
    if model_trials["session_id"].nunique():
        sessions = apa.worded(model_trials["session_id"].nunique(), "session")
        replies = len(model_trials) - failed
        gave = (
            f"had {apa.worded(replies, 'trial')}" if is_imported else f"gave {apa.worded(replies, 'answer')}"
        )
        why = ""
        if never_answered(model_trials).any():
            gave = f"returned {apa.worded(replies, 'reply', 'replies')}" if replies else "returned no reply"
            kinds = statuses[~statuses.isin(_NO_REPLY) & never_answered(model_trials)].value_counts()
            reasons = apa.listing(
                [
                    apa.worded(int(count), said := _UNSCORED.get(str(name), str(name)), said)
                    for name, count in kinds.items()
                ]
            )
            why = f", none of which could be scored ({reasons})" if replies else ""
        done.append(f"{gave} in {sessions}{why}")
    return {
        **{"name": name, **_identity(entry), "done": done, "failed": failed, "in_table": in_table},
        **{
            "settings": _settings(entry, model_trials),
            "is_dated": bool(entry.get("first_call")),
            **_of_sessions(entry),
        },
    }


def _imported(entry: Mapping[str, Any]) -> bool:
    """Whether all answers of a model were imported, so that the dates of its calls are those of the import."""
    return bool(entry.get("calls")) and entry.get("imported_calls") == entry.get("calls")


def _settings(entry: Mapping[str, Any], model_trials: pd.DataFrame) -> list[str]:
    """Name a model's settings in the study: number format, temperature, context and prompt variants."""
    reported_elsewhere = {"use", "base_url", "trained", "base", "price", "family", "parameters"}
    reported_elsewhere |= {
        "cache",
        "concurrency",
        "concurrency_start",
        "key_env",
        "probe",
    }  # no answer depends on them
    reported_elsewhere |= {"dtype"} if entry.get("dtype") else set()
    settings = {
        key: value for key, value in (entry.get("settings") or {}).items() if key not in reported_elsewhere
    }
    texts = []
    for key, value in settings.items():
        text = str(value) if not isinstance(value, bool) else "yes" if value else "no"
        phrase = f"{in_words(str(key))} {in_words(text) if key == 'strategy' else text}"
        if key == "max_tokens" and isinstance(value, int):
            phrase = f"at most {apa.worded(value, 'token')} per reply"
        texts.append(_SETTINGS.get((str(key), text), phrase))
    formats = [_SETTINGS.get(("dtype", name), name) for name in entry.get("dtype") or []]
    texts += [f"weights in {apa.listing(formats)}"] if formats else []
    for column in ("temperature", "context"):
        used_values = (
            sorted(model_trials[column].dropna().unique().tolist()) if column in model_trials else []
        )
        if used_values and column not in settings:
            text = _by_kind_of_trial(model_trials, column, used_values)
            texts.append(_SETTINGS.get((column, text), f"{column} {text}"))
    repeats = model_trials["replicate"].dropna().nunique() if "replicate" in model_trials else 0
    texts += [f"{repeats} replicates"] if repeats > 1 else []
    wordings = model_trials["prompt_variant"].dropna().nunique() if "prompt_variant" in model_trials else 0
    return texts + ([f"{wordings} prompt variants"] if wordings > 1 else [])


def _by_kind_of_trial(trials: pd.DataFrame, column: str, values: Sequence[Any]) -> str:
    """Name the values of a setting; if there are several, each with the trials that had it."""
    written = {value: f"{value:g}" if isinstance(value, float) else str(value) for value in values}
    if len(values) == 1:
        return written[values[0]]
    kinds = trials["trial_type"].astype(str).map(trials_named)
    kinds = kinds.mask(is_choice(trials), "choices").mask(is_statement(trials), "statements of rules")
    parts = [
        f"{written[value]} ({apa.listing(list(dict.fromkeys(kinds[trials[column] == value])))})"
        for value in values
    ]
    return apa.listing(parts)


def models_table(tables: Tables) -> ApaTable | None:
    """Lay out what each language model is, when it was asked and what it took; None if no call of one is known."""
    recorded = sorted(tables.dictionary["readers"].items())
    readers = {name: entry for name, entry in recorded if entry.get("kind") == "model" and entry.get("calls")}
    if not readers:
        return None
    rows = []
    for name, entry in readers.items():
        first, last = apa.day(entry["first_call"]), apa.day(entry["last_call"])
        accessed = apa.MISSING if _imported(entry) else first if first == last else f"{first}, to {last}"
        snapshot = str(entry.get("resolved") or entry.get("use") or apa.MISSING)
        usage = {column: entry.get(column) for column in ("calls", *_TOKENS, "cost_usd")}
        rows.append({"name": name, "snapshot": snapshot, "accessed": accessed, **usage})
    used = {column: any(entry.get(column) for entry in readers.values()) for column in _TOKENS}
    is_paid = any(entry.get("cost_usd") is not None for entry in readers.values())
    is_imported = any(_imported(entry) for entry in readers.values())
    return LAYOUT.table("models", rows, used=used, is_paid=is_paid, is_imported=is_imported)


def _materials(tables: Tables) -> dict[str, Any]:
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    items = tables.items
    made = items[items["role"] == "test"] if "role" in items.columns else items
    return {
        "made": int(made["item_id"].nunique()) if "item_id" in made.columns else 0,
        "procedure": {} if _all_imported(tables) else tables.dictionary.get("procedure") or {},
        "items": int(used["item_id"].nunique()),
        "language": _language(str(tables.dictionary["language"])),
        "factors": {name: [str(level) for level in levels] for name, levels in tables.factors.items()},
        "between": _between_participants(tables, used),
        "lower_first": lambda text: text[0].lower() + text[1:] if text[:2].istitle() else text,
    }


def _between_participants(tables: Tables, used: pd.DataFrame) -> list[str]:
    """Return the factors of which each participant saw one level."""
    people = used[used["reader_kind"].isin(PARTICIPANT_KINDS)]
    return [
        name
        for name in tables.factors
        if people[name].nunique() > 1 and bool((people.groupby("reader")[name].nunique() <= 1).all())
    ]


def _all_imported(tables: Tables) -> bool:
    """Return whether every session of people was imported, so that the study's own procedure was not theirs."""
    came = tables.dictionary.get("participants") or {}
    return bool(came.get("imported")) and not came.get("first_session")


def _procedure(tables: Tables) -> dict[str, Any]:
    procedure, silent = tables.dictionary.get("procedure") or {}, _without_responses(tables)
    readers = [entry for name, entry in tables.dictionary["readers"].items() if name not in silent]
    stated = tables.trials[is_statement(tables.trials)]
    came = tables.dictionary.get("participants") or {}
    imported = [reader.get("kind") == "model" and _imported(reader) for reader in readers]
    return {
        "imported_trials": came["imported_trials"] if _all_imported(tables) else None,
        "only_imported_models": bool(imported) and all(imported),
        "procedure": procedure,
        "screens": [
            {"block": "a block of trials", "full_screen": "a switch to full screen"}.get(
                screen, in_words(screen)
            )
            for screen in procedure.get("screens", ())
        ],
        "has_participants": bool(tables.trials["reader_kind"].isin(PARTICIPANT_KINDS).any()),
        # a session that was broken off has fewer
        "rules": 0 if stated.empty else int(stated.groupby("session_id").size().max()),
    }


def _rating(tables: Tables) -> dict[str, Any]:
    """Gather how free answers were rated; nothing if a study has none rated or none to rate."""
    rating: dict[str, Any] | None = tables.dictionary.get("rating")
    if not rating or not rating["answers"]:
        return {}
    trials = tables.trials[is_valid(tables.trials)]
    is_stated = bool(is_statement(tables.trials).any())
    kinds = set(trials.loc[is_statement(trials) if is_stated else trials.index, "reader_kind"])
    nouns = [word for kind, word in (("human", "people"), ("model", "language models")) if kind in kinds]
    talked = rating.get("by_discussion", 0)
    ways = ((talked, "discussion"), (rating["decided"] - talked, "a third rater"))
    return {
        "rating": {"people": 0, "scale": None} | rating,
        "stated": is_stated,
        "whose": apa.listing(nouns) or "simulated readers",
        "ways": ", ".join(f"{apa.count(number)} by {how}" for number, how in ways if number),
        "has_simulated": bool(nouns) and bool((tables.trials["reader_kind"] == "simulated").any()),
        "agreement": agreement_said(rating),
    }


def agreement_said(rating: Mapping[str, Any]) -> Markup:
    """Report the number of fully rated answers, the agreement of each two raters, and the number of resolved differences."""
    return LAYOUT.sentences("agreement", rating=rating)


def _analysis(tables: Tables, analyses: tuple[Analysis, ...], fits: Sequence[Fit]) -> dict[str, Any]:
    fitted = [analysis for analysis in analyses if analysis.model is not None]
    estimated = [
        analysis
        for analysis in analyses
        if any(contrast.crossed is not None for contrast in analysis.contrasts)
    ]
    shares = [analysis for analysis in estimated if analysis.plan.measure.scale == "points"]
    linear = [
        analysis
        for analysis in fitted
        if analysis not in estimated and analysis.plan.measure.family == "gaussian"
    ]
    timed = [
        analysis for analysis in linear if analysis.plan.measure.logged and analysis.plan.measure.unit == "ms"
    ]
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    people = used[used["reader_kind"].isin(PARTICIPANT_KINDS)]
    participants = apa.listing([spoken(group) for group in group_order(people)]) if len(people) else "people"
    exclude = tables.dictionary["exclude"]
    is_wrong = judged(used) & ~is_valid(used) & (used["reader_kind"] != "baseline")
    failed = set(used.loc[is_wrong, "response_status"])
    priors = list(
        dict.fromkeys(f"a {analysis.plan.bayes.said}" for analysis in analyses if analysis.plan.bayes)
    )
    planned_contrasts = [
        contrast for analysis in analyses if analysis.plan.planned for contrast in analysis.contrasts
    ]
    bounded = {
        measure.title: time_bounds(exclude, measure.name) for measure in MEASURES.values() if measure.logged
    }
    return {
        **{
            "has_models": bool(fits),
            "is_any_endless": any(map(without_end, fits)),
            "estimated": bool(estimated),
            "has_shares": bool(shares),
            "timed": len(timed),
            "has_regions": any(
                analysis.plan.measure.region and analysis.plan.measure.kind not in OF_FIXATIONS
                for analysis in analyses
            ),
            "other_linear": list(
                dict.fromkeys(
                    f"{'log ' * analysis.plan.measure.logged}{analysis.plan.measure.noun}"
                    for analysis in linear
                    if analysis not in timed
                )
            ),
            # only planned times have the checks of which this is one
            "in_milliseconds": any(
                analysis.plan.planned and not analysis.plan.covariates for analysis in timed
            ),
            "has_answers": bool(used["response_status"].notna().any()),
            "is_judged": bool(judged(used).any()),
        },
        "nouns": list(dict.fromkeys(f"in {analysis.plan.measure.subject}" for analysis in estimated)),
        "units": list(dict.fromkeys(analysis.plan.measure.unit_of_difference for analysis in estimated)),
        "several_groups": any(len(analysis.groups) > 1 for analysis in estimated),
        "machine": _machines({group for analysis in estimated for group in analysis.groups}, used),
        "has_machines": _machines(set(used.loc[~never_answered(used), "reader_group"]), used),
        "intervals": _intervals_of_people(tables, people),
        "is_any_cut": any(contrast.is_cut for analysis in estimated for contrast in analysis.contrasts),
        "is_any_rare": any(
            contrast.crossed is not None and contrast.crossed.parts.least > 0
            for analysis in estimated
            for contrast in analysis.contrasts
        ),
        **{"few": FEW, "rare": RARE},
        **{
            name: any(
                contrast.crossed is not None
                and contrast.crossed.sums.model is not None
                and (contrast.crossed.items_of_model < 2) is is_own
                for analysis in estimated
                for contrast in analysis.contrasts
            )
            for name, is_own in (("has_shared_items", False), ("has_own_items", True))
        },
        "has_fixed_items": any(analysis.plan.items == "fixed" for analysis in estimated),
        "checks": {
            scale: f" of {participants}" if set(groups) <= set(people["reader_group"]) else ""
            for scale, of_scale in (
                ("raw", [one for one in estimated if one not in shares]),
                ("points", shares),
            )
            if (groups := [group for one in of_scale if _has_check(one) for group in one.of_model.groups])
        },
        "correct_only": [
            analysis.plan.name for analysis in timed if keeps_right_answers_alone(analysis.plan.exclude)
        ],
        "bounded": {title: bounds for title, bounds in bounded.items() if bounds is not None and len(people)},
        **{"most_columns": MOST_COLUMNS, "items_for_a_column": ITEMS_FOR_A_COLUMN},
        "conditions_apart": (CONDITIONS_APART[0], CONDITIONS_APART[-1]),
        "codings": sorted(
            {CODED[coding] for analysis in fitted for coding in analysis.plan.codings.values()}
        ),
        "has_two_factors": any(analysis.plan.crossing is not None for analysis in fitted),
        "has_results": any(analysis.has_results for analysis in analyses),
        "is_adjusted": any(contrast.family > 1 for contrast in planned_contrasts),
        "plans_both": any(
            analysis.plan.planned and kinds & set(PARTICIPANT_KINDS) and kinds & {"model", "baseline"}
            for analysis in analyses
            for kinds in (set(analysis.rows["reader_kind"]) if len(analysis.rows) else set(),)
        ),
        "has_formula": any(analysis.plan.formula is not None for analysis in fitted),
        "largest": [
            statistic
            for statistic in ("|t|", "t")
            if any(contrast.correction == f"the largest {statistic}" for contrast in planned_contrasts)
        ],
        "has_families": any(analysis.plan.planned and analysis.plan.family for analysis in analyses),
        "has_directed": any(
            contrast.direction != "two-sided" for analysis in analyses for contrast in analysis.contrasts
        ),
        "is_all_directed": all(
            contrast.direction != "two-sided" for analysis in analyses for contrast in analysis.contrasts
        ),
        "has_other_alpha": any(analysis.plan.alpha != ALPHA for analysis in analyses),
        "has_exploratory": any(analysis.contrasts and not analysis.plan.planned for analysis in analyses),
        "failures": [said for status, said in _FAILURES.items() if status in failed],
        "unscored": group_order(used[never_answered(used)]),
        "kinds": kinds_of(used),
        "has_models_of_language": bool((used["reader_kind"] == "model").any()),
        "has_participants": int(people["reader"].nunique()),
        "participants": participants,
        "has_equivalence": any(
            analysis.plan.equivalence is not None and len(analysis.plan.groups) > 1 for analysis in analyses
        ),
        "priors": priors and apa.listing(priors),
        "software": software_words(tables.dictionary),
    }


def _machines(groups: Collection[str], used: pd.DataFrame) -> str:
    """Name the kinds of these readers that are no participants, as one of them is called; empty if there are none."""
    kinds = set(used.loc[used["reader_group"].isin(groups), "reader_kind"])
    return " or ".join(kind for kind in ("model", "baseline") if kind in kinds)


def _intervals_of_people(tables: Tables, people: pd.DataFrame) -> dict[str, bool]:
    """Return which intervals the means of participants can have: at least two must have been in all conditions that they share."""
    kinds = set()
    for factor in tables.factors:
        for _, group in people[people[factor].notna()].groupby("reader_group"):
            shown = group.pivot_table(index="reader", columns=factor, values="trial_index", aggfunc="size")
            for shared in levels_shared(shown):
                if len(shown[shared].dropna()) > 1:
                    kinds.add("within" if len(shared) > 1 else "between")
    return {"within": "within" in kinds, "between": "between" in kinds, "factors": bool(tables.factors)}


def _has_check(analysis: Analysis) -> bool:
    """Whether a mixed model of people checks the estimates of an analysis."""
    model = None if analysis.companion is None else analysis.companion.model
    return model is not None and not model.runs_away


def software_words(dictionary: Mapping[str, Any]) -> str:
    """Name the versions of everything that made the numbers."""
    (own,) = software_references(dictionary)
    names = [f"wrods {own.fields['version']} ({own.cited()}; own mixed-model engine)"]
    names += [f"Python {platform.python_version()}"]
    names += [f"{package} {metadata.version(package)}" for package in PACKAGES]
    return f"{apa.listing(names)}."


def software_references(dictionary: Mapping[str, Any]) -> list[Reference]:
    """Return wrods as a reference, with its version and the year in which it made the tables."""
    version = str(dictionary.get("wrods") or metadata.version("wrods"))
    title = "wrods: People and language models, one experiment"
    year = str(dictionary.get("created_at") or "n.d.")[:4]
    fields = {"author": "{The wrods developers}", "title": title, "version": version, "year": year}
    return [written("wrods", "software", fields)]
