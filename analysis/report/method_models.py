"""What the Method section tells of language models: what was asked for and answered, when, with which settings, at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup, escape

from analysis import apa
from analysis.report.apa_tables import ApaTable, Origin
from analysis.tables import Tables

_TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens")


def told_of_models(tables: Tables, table: int | None) -> Iterator[Markup]:
    """Write the paragraphs on language models and baselines; ``table`` is the number of the table of models."""
    readers = tables.dictionary["readers"]
    models = [name for name, spec in readers.items() if spec.get("kind") == "model"]
    baselines = [name for name, spec in readers.items() if spec.get("kind") == "baseline"]
    if models:
        where = f"; Table {table} gives snapshots, dates, tokens and cost" if table else ""
        yield escape(
            f"The same items were read as text, under the same instructions, by {apa.worded(len(models), 'language model')} ("
            f"{apa.listing(models)}{where}). Each is a reader of its own: nothing is claimed about models in general"
            f"{' from fewer than eight' if len(models) < 8 else ' beyond those asked'}, and repeated sessions of one model are no "
            "participants."
        )
        for name in models:
            yield escape(_one_model(name, readers[name], tables))
    if baselines:
        yield escape(
            f"As yardsticks, not data, stand {apa.worded(len(baselines), 'baseline')} beside them ({apa.listing(baselines)})."
        )


def _one_model(name: str, spec: Mapping[str, Any], tables: Tables) -> str:
    parts = [f"requested as {spec['use']}"] if spec.get("use") else []
    parts += [f"answered by its own account as {spec['resolved']}"] if spec.get("resolved") else []
    parts += [f"{spec['parameters']:,} parameters"] if isinstance(spec.get("parameters"), int) else []
    if spec.get("first_call"):
        parts.append(
            f"accessed {apa.between_dates(spec['first_call'], spec['last_call'])} in {apa.counted(spec['calls'], 'call')}"
        )
    settings = {key: value for key, value in (spec.get("settings") or {}).items() if key != "use"}
    parts += [f"{str(key).replace('_', ' ')} {_setting(value)}" for key, value in settings.items()]
    parts += [f"computed in {apa.listing(spec['dtype'])}"] if spec.get("dtype") else []
    own = tables.trials[tables.trials["reader_group"] == name]
    for column, words in (
        ("temperature", "temperature"),
        ("context", "context"),
        ("prompt_variant", "prompt wordings"),
    ):
        seen = sorted(own[column].dropna().unique().tolist()) if column in own else []
        if column == "prompt_variant" and len(seen) > 1:
            parts.append(f"{len(seen)} {words}")
        elif column != "prompt_variant" and seen and column not in settings:
            parts.append(
                f"{words} {apa.listing([f'{one:g}' if isinstance(one, float) else str(one) for one in seen])}"
            )
    if own["session_id"].nunique():
        parts.append(
            f"{apa.counted(own['session_id'].nunique(), 'session')} with {apa.counted(len(own), 'trial')}"
        )
    unknown = [] if spec.get("first_call") else ["access dates, tokens and cost are not in the tables"]
    return f"{name}: {'; '.join(parts + unknown)}."


def _setting(value: Any) -> str:
    """Write a setting as a reader of the study would: truth values as yes and no."""
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def reader_facts(readers: dict[str, dict[str, Any]]) -> list[tuple[str, str]]:
    """Describe each reader of the study in one line: sessions, what was asked for, what answered, settings."""
    order = ["human", "simulated", "model", "baseline"]
    told = []
    for name, spec in sorted(readers.items(), key=lambda one: (order.index(str(one[1].get("kind"))), one[0])):
        sessions, pilots = int(spec.get("sessions") or 0), int(spec.get("pilot_sessions") or 0)
        if pilots == sessions > 0:
            parts = [f"{apa.counted(sessions, 'pilot session')}, in no model"]
        else:
            parts = [f"{apa.counted(sessions, 'session')} begun"]
            parts += [f"{apa.counted(pilots, 'pilot session')} among them, in no model"] if pilots else []
        if spec.get("finished") is not None and int(spec["finished"]) < sessions:
            parts.append(f"{apa.count(sessions - int(spec['finished']))} not finished")
        if spec.get("use"):
            parts.append(f"requested {spec['use']}")
        if spec.get("resolved"):
            parts.append(f"answered by {spec['resolved']}")
        settings = spec.get("settings") or {}
        parts += [
            f"{str(key).replace('_', ' ')}: {_setting(value)}"
            for key, value in settings.items()
            if key != "use"
        ]
        heads = {
            "human": "People",
            "simulated": "Simulated readers (not data)",
            "baseline": f"{name} (baseline)",
        }
        told.append((heads.get(str(spec.get("kind")), f"{name} (model)"), "; ".join(parts)))
    return told


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
            first if first == last else f"{first} to {last}",
        ]
        cells += [apa.count(spec["calls"])]
        cells += [apa.MISSING if spec.get(one) is None else apa.count(spec[one]) for one in tokens]
        cells += [apa.number(spec.get("cost_usd"))] if paid else []
        rows.append(tuple(cells))
    note = (
        "Snapshot: the model that answered by its own account. Tokens and cost are of every call that reached the model, pilots and "
        "repeated tries among them; answers from the cache are not counted again. An en dash: not told."
    )
    origin = Origin(
        columns=("first_call", "last_call", "calls", *_TOKENS, "cost_usd"),
        rows="by reader",
        file="numbers.json (dictionary: readers)",
    )
    return ApaTable("models", "Language models that were asked", columns, tuple(rows), note, origin)
