"""What the Method section tells of language models: what was asked for and answered, when, with which settings, at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup, escape

from analysis import apa
from analysis.names import in_words
from analysis.report.apa_tables import ApaTable, Origin
from analysis.tables import Tables

_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


def told_of_models(tables: Tables, table: str | None) -> Iterator[Markup]:
    """Write the paragraphs on language models and baselines; ``table`` is the number of the table of models."""
    readers = tables.dictionary["readers"]
    models = [name for name, spec in readers.items() if spec.get("kind") == "model"]
    baselines = [name for name, spec in readers.items() if spec.get("kind") == "baseline"]
    if models:
        where = f" (Table {table})" if table else ""
        many = apa.worded(len(models), "language model")
        of_all = "Each model was one reader; its repeated sessions were not treated as participants."
        elsewhere = all(imported(readers[name]) for name in models)
        said = (
            f"The answers of {many} were imported{where}."
            if elsewhere
            else f"{many.capitalize()} read the same items{_shown(readers, models)} {_instructed(tables)}{where}."
        )
        yield escape(f"{said} {of_all}")
        yield escape(" ".join(_each_model(models, readers, tables)))
    if baselines:
        rest = (
            "served as a yardstick and is not data"
            if len(baselines) == 1
            else "served as yardsticks and are not data"
        )
        yield escape(
            f"{apa.worded(len(baselines), 'baseline').capitalize()} ({apa.listing(baselines)}) {rest}."
        )


def _instructed(tables: Tables) -> str:
    """Say what models read beside the items: the instructions, or a paper's prompt in their place."""
    wording = (tables.dictionary.get("procedure") or {}).get("wording")
    return (
        f"in the wording of {wording}, without the instructions" if wording else "under the same instructions"
    )


def sessions_told(spec: Mapping[str, Any]) -> str:
    """Say in sentences how many of a reader's sessions were not finished, and how many were pilots; nothing where none was."""
    pilots = int(spec.get("pilot_sessions") or 0)
    left = int(spec.get("sessions") or 0) - int(spec["finished"]) if spec.get("finished") is not None else 0
    told = ""
    if left > 0:
        told += f" {apa.worded(left, 'session').capitalize()} {'was' if left == 1 else 'were'} not finished."
    if pilots:
        told += f" {apa.worded(pilots, 'pilot session').capitalize()} {'is' if pilots == 1 else 'are'} in no model."
    return told


def _shown(readers: Mapping[str, Any], models: list[str]) -> str:
    """Say whether items were text or, for which models, pictures of it."""
    looking = [
        name for name in models if (readers[name].get("settings") or {}).get("presentation") == "image"
    ]
    if not looking:
        return " as text"
    if len(looking) == len(models):
        return " as pictures in the participants’ font"
    return f", as text or, for {apa.listing(looking)}, as pictures in the participants’ font,"


class _Imported(NamedTuple):
    """All that is known of a model whose answers were imported, where no more is known of it."""

    answers: int
    when: str
    trials: int
    sessions: int
    settings: tuple[str, ...]

    def told(self, names: list[str]) -> str:
        """Say it of several models."""
        settings = f" Their settings were {apa.listing(self.settings)}." if self.settings else ""
        return (
            f"The models {apa.listing(names)} gave their answers elsewhere ({apa.counted(self.answers, 'answer')} each, imported "
            f"{self.when}) and have {apa.worded(self.trials, 'trial')} in {apa.worded(self.sessions, 'session')} each.{settings}"
        )


def _each_model(models: list[str], readers: Mapping[str, Any], tables: Tables) -> Iterator[str]:
    """Say of each model what it is and did; those whose answers were imported alike are told together, first."""
    alike: dict[_Imported, list[str]] = {}
    for name in models:
        facts = _imported_facts(readers[name], tables.trials[tables.trials["reader_group"] == name])
        if facts is not None:
            alike.setdefault(facts, []).append(name)
    together = {facts: names for facts, names in alike.items() if len(names) > 1}
    for facts, names in together.items():
        yield facts.told(names)
    told = {name for names in together.values() for name in names}
    for name in models:
        if name not in told:
            yield _one_model(name, readers[name], tables)


def _imported_facts(spec: Mapping[str, Any], own: pd.DataFrame) -> _Imported | None:
    """Return what there is to say of a model whose answers were imported; None where there is more, or they were not."""
    sessions = own["session_id"].nunique()
    named = any(spec.get(key) for key in ("use", "resolved", "parameters"))
    if not imported(spec) or named or not sessions or sessions_told(spec):
        return None
    when = apa.between_dates(spec["first_call"], spec["last_call"])
    return _Imported(int(spec["calls"]), when, len(own), sessions, tuple(_settings_in_words(spec, own)))


def _one_model(name: str, spec: Mapping[str, Any], tables: Tables) -> str:
    said = f"The model {name}"
    parts = [f"requested as {spec['use']}"] if spec.get("use") else []
    own_settings = spec.get("settings") or {}
    if own_settings.get("trained"):
        parts.append(f"trained from {own_settings['base']} as {own_settings['trained']}")
    parts += [f"{spec['parameters']:,} parameters"] if isinstance(spec.get("parameters"), int) else []
    said += f" ({'; '.join(parts)})" if parts else ""
    done = [f"identified itself as {spec['resolved']}"] if spec.get("resolved") else []
    if imported(spec):
        when = apa.between_dates(spec["first_call"], spec["last_call"])
        done.append(f"gave its answers elsewhere ({apa.counted(spec['calls'], 'answer')}, imported {when})")
    elif spec.get("first_call"):
        done.append(
            f"was accessed {apa.between_dates(spec['first_call'], spec['last_call'])} ({apa.counted(spec['calls'], 'call')})"
        )
    own = tables.trials[tables.trials["reader_group"] == name]
    failed = 0 if imported(spec) else _failed(own)
    if own["session_id"].nunique():
        done.append(
            f"has {apa.worded(len(own), 'trial')} in {apa.worded(own['session_id'].nunique(), 'session')}"
            if imported(spec)
            else f"gave {apa.worded(len(own) - failed, 'answer')} in {apa.worded(own['session_id'].nunique(), 'session')}"
        )
    told = (f"{said} {apa.listing(done)}." if done else f"{said} was asked.") + sessions_told(spec)
    if failed:
        told += (
            f" {apa.worded(failed, 'trial').capitalize()} brought no answer, since the prompt was longer than the model reads or the "
            "call failed."
        )
    settings = _settings_in_words(spec, own)
    if settings:
        told += f" Its settings were {apa.listing(settings)}."
    if not spec.get("first_call"):
        told += " Its access dates, tokens, and cost are not in the tables."
    return told


def _failed(own: pd.DataFrame) -> int:
    """Count the trials of a model that its calls failed to answer."""
    return int(own["response_status"].isin(("error", "timeout")).sum())


def imported(spec: Mapping[str, Any]) -> bool:
    """Whether all answers of a model were imported, so that the dates of its calls are those of the import."""
    return bool(spec.get("calls")) and spec.get("imported_calls") == spec.get("calls")


def _settings_in_words(spec: Mapping[str, Any], own: pd.DataFrame) -> list[str]:
    """Name what a model was set to: what the study set, its number format, temperature, context, prompt wordings."""
    settings = {
        key: value
        for key, value in (spec.get("settings") or {}).items()
        if key not in ("use", "trained", "base", *(["dtype"] if spec.get("dtype") else []))
    }
    told = [f"{in_words(str(key))} {_setting(str(key), value)}" for key, value in settings.items()]
    told += [f"number format {apa.listing(spec['dtype'])}"] if spec.get("dtype") else []
    for column in ("temperature", "context"):
        seen = sorted(own[column].dropna().unique().tolist()) if column in own else []
        if seen and column not in settings:
            values = [f"{one:g}" if isinstance(one, float) else str(one) for one in seen]
            told.append(f"{column} {apa.listing(values)}")
    wordings = own["prompt_variant"].dropna().nunique() if "prompt_variant" in own else 0
    return told + ([f"{wordings} prompt wordings"] if wordings > 1 else [])


def _setting(key: str, value: Any) -> str:
    """Write a setting as a reader of the study would: truth values as yes and no, a strategy in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return in_words(str(value)) if key == "strategy" else str(value)


def models_table(tables: Tables) -> ApaTable | None:
    """Lay out what each language model is, when it was asked and what it took; None where no call of one is known."""
    readers = {
        name: spec
        for name, spec in tables.dictionary["readers"].items()
        if spec.get("kind") == "model" and spec.get("calls")
    }
    if not readers:
        return None
    tokens = [name for name in _TOKENS if any(spec.get(name) for spec in readers.values())]
    paid = any(spec.get("cost_usd") is not None for spec in readers.values())
    heads = [name.removesuffix("_tokens").capitalize() + " tokens" for name in tokens]
    columns = ("Model", "Snapshot", "Accessed", "Calls", *heads, *(["Cost (US$)"] if paid else []))
    rows = []
    for name, spec in readers.items():
        first, last = str(spec["first_call"])[:10], str(spec["last_call"])[:10]
        cells = [
            name,
            str(spec.get("resolved") or spec.get("use") or apa.MISSING),
            apa.MISSING if imported(spec) else first if first == last else f"{first} to {last}",
        ]
        cells += [apa.count(spec["calls"])]
        cells += [apa.MISSING if spec.get(one) is None else apa.count(spec[one]) for one in tokens]
        cells += [apa.number(spec.get("cost_usd"))] if paid else []
        rows.append(tuple(cells))
    note = (
        "Snapshot = the model that answered by its own account. Calls, tokens, and cost include pilots, failed and repeated calls, "
        "not answers taken from the cache."
    )
    if any(imported(spec) for spec in readers.values()):
        note += " En dashes under Accessed: the answers were imported; when they were given is not known."
    origin = Origin(
        columns=("first_call", "last_call", "calls", *_TOKENS, "cost_usd"),
        rows="one entry a reader",
        computed="as the provider or the local engine reported it, call by call",
        file="numbers.json (dictionary: readers)",
    )
    return ApaTable("models", "Language models, dates of access, and use", columns, tuple(rows), note, origin)
