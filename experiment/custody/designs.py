"""Notes under which design answers are stored, and says readably where it is another one than that of the answers there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from experiment.store.tables import sessions, trials
from experiment.store.versions import DesignChanged, ensure_version
from experiment.study import Study
from stimuli.item import Item

SHOWN_TEXT = 60
"""Characters of a text that are shown of it."""
ITEMS_LINE = "items: "


def note_design(connection: Connection, study: Study, *, new_version: bool = False) -> int:
    """Note a study's design as a version of it (:func:`experiment.store.versions.ensure_version`)."""
    design = json.dumps(study.design, ensure_ascii=False, sort_keys=True)
    try:
        return ensure_version(connection, study.id, study.design_hash, design, new_version=new_version)
    except DesignChanged as changed:
        lines = [
            _items_line(connection, study, changed.version) if line.startswith(ITEMS_LINE) else line
            for line in changed.lines
        ]
        raise DesignChanged(changed.study, changed.version, changed.held, lines) from None


def _items_line(connection: Connection, study: Study, version: int) -> str:
    """Say what became of the items that readers of a version saw, one session a list."""
    some = (
        select(func.min(sessions.c.session_id))
        .where(sessions.c.study == study.id, sessions.c.version == version)
        .where(sessions.c.reader_kind != "simulated")
        .group_by(sessions.c.list_id)
    )
    columns = (
        trials.c.item_set, trials.c.item_id, trials.c.condition, trials.c.shown, trials.c.answer, trials.c.trial_index
    )  # fmt: skip
    query = select(*columns).where(trials.c.session_id.in_(some)).order_by(trials.c.trial_index)
    by_name: dict[tuple[str, str], list[Item]] = {}
    for item in study.items:
        by_name.setdefault((item.set_name, item.item_id), []).append(item)
    seen: set[str] = set()
    differing: list[str] = []
    intact: list[str] = []
    for row in connection.execute(query).mappings():
        name = json.dumps([row["item_set"], row["item_id"], row["condition"]], sort_keys=True)
        if name in seen:
            continue
        seen.add(name)
        now = _now(row["condition"] or {}, by_name.get((row["item_set"], row["item_id"]), []))
        told = _difference(dict(row), now)
        if told is not None:
            differing.append(told)
            intact += [told] if now is None or not now.changes else []
    if not differing:
        return f"the items were built anew; the {len(seen)} looked at that readers saw are as they were"
    # unscrambled words say best what was edited
    shown = (intact or differing)[0]
    return (
        f"the items were built anew: {len(differing)} of {len(seen)} that readers saw differ, such as {shown}"
    )


def _now(condition: Mapping[str, str], items: list[Item]) -> Item | None:
    return next((one for one in items if one.condition.items() <= condition.items()), None)


def _difference(row: Mapping[str, Any], now: Item | None) -> str | None:
    condition = row["condition"] or {}
    levels = ", ".join(map(str, condition.values()))
    named = f"{row['item_id']!r}" + (f" ({levels})" if levels else "")
    if now is None:
        return f"{named}, which is gone"
    for field, text in (row["shown"] or {}).items():
        if now.shown.get(field) != text:
            return f"{field} of {named}: {_short(text)} → {_short(now.shown.get(field))}"
    if now.answer != row["answer"]:
        return f"the answer to {named}: {_short(row['answer'])} → {_short(now.answer)}"
    return None


def _short(text: object) -> str:
    said = json.dumps(text, ensure_ascii=False)
    return said if len(said) <= SHOWN_TEXT else f'{said[: SHOWN_TEXT - 2]}…"'
