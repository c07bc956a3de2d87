"""A table of responses as sessions of a study: lists and row order as they were, items made from the table or found.

Each reader's rows become one session with a plan of its own, so that models can take the same strings in the same order
(``models: yoke: human``). A session is named by study and reader: importing a table again adds nothing, and another answer
under the same place is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from experiment.lists import blocks_showing
from experiment.models.imports.mapping import Columns, Line, Source
from experiment.models.imports.sessions import plan_of_items
from experiment.models.planning import canonical_hash
from experiment.procedure import Plan, PlannedTrial, trials_of
from experiment.published_scoring import parser_of
from experiment.scoring import score_trial
from experiment.store import Store, records
from experiment.store.tables import sessions
from experiment.study import Study
from experiment.study.study import ITEMS
from experiment.version import installed_version
from stimuli.errors import UserError
from stimuli.item import Item, build_meta, write_items

SET = "imported"
DEFAULT_SESSION = "1"
_TOKENS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True)
class Given:
    """One response, as a table or a released file gives it.

    Attributes
    ----------
    where : str
        File and line.
    item : Item
    rt : float or None
        Milliseconds.
    more : mapping
        Further columns of the trials table.
    prediction : str or None
        What somebody read from it before.
    """

    where: str
    item: Item
    response: str | None
    rt: float | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    prompt: str | None = None
    prediction: str | None = None


@dataclass(frozen=True)
class GivenSession:
    """One reader's responses in the order of the source."""

    reader: str
    key: str
    list_id: int
    responses: Sequence[Given]
    condition: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Imported:
    """What an import came to.

    Attributes
    ----------
    sessions, trials : int
        Stored now.
    same : int
        Trials that were here already.
    predictions, agreeing : int
        Stored predictions, and how many of them wrods reads from the same response.
    differing : list of str
        The first that differ.
    """

    source: str
    sha256: str
    sessions: int = 0
    trials: int = 0
    same: int = 0
    predictions: int = 0
    agreeing: int = 0
    differing: list[str] = field(default_factory=list)


def import_responses(
    study: Study, store: Store, source: Source, columns: Columns, *, version: int
) -> Imported:
    """Import a table of responses.

    Parameters
    ----------
    version : int
        The study's version in the store.

    Raises
    ------
    UserError
        A row cannot be read, names an item or label that the study does not have, or is stored with another answer.
    """
    made = Imported(source.file.name, source.sha256)
    items = {_key(item.set_name, item.item_id, item.condition): item for item in study.items}
    given = _sessions(study, source, columns, items)
    about = {
        "imported": {"source": source.file.name, "sha256": source.sha256, "columns": _plain(columns.given)}
    }
    return write_sessions(study, store, given, made, kind=columns.reader_kind, about=about, version=version)


def write_sessions(
    study: Study,
    store: Store,
    given: Iterable[GivenSession],
    made: Imported,
    *,
    kind: str,
    about: Mapping[str, Any],
    version: int,
    parser: str | None = None,
) -> Imported:
    """Store sessions with their trials, scores and (for models) calls; each session in one transaction."""
    scorer = parser or parser_of(study)
    plugin = f"wrods {installed_version()} import"
    for one in given:
        items = [response.item for response in one.responses]
        plan, places = plan_of_items(
            study, items, list_id=one.list_id, version=version, condition=one.condition
        )
        trials = {trial["trial_index"]: trial for trial in trials_of(plan)}
        rows = [(trials[index], response) for index, response in zip(places, one.responses, strict=True)]
        name = canonical_hash([study.id, version, "imported", kind, one.reader, one.key])[:32]
        is_new, stored, same = store.write(
            _writing(study, plan, rows, one, kind, name, about, scorer, plugin)
        ).result()
        made.sessions += is_new
        made.trials += stored
        made.same += same
        for trial, response in rows:
            _compare(made, trial, response, scorer)
    return made


def _writing(
    study: Study, plan: Plan, rows: Sequence[tuple[PlannedTrial, Given]], one: GivenSession, kind: str, name: str,
    about: Mapping[str, Any], scorer: str | None, plugin: str,
) -> Any:  # fmt: skip
    def write(connection: Connection) -> tuple[bool, int, int]:
        is_new = connection.scalar(select(sessions.c.session_id).where(sessions.c.session_id == name)) is None
        records.create_session(
            connection, plan, reader_kind=kind, reader=one.reader, session_id=name, client=dict(about),
            participant_id=one.reader if kind == "human" else None,
        )  # fmt: skip
        counts = {"stored": 0, "same": 0}
        for trial, response in rows:
            place = {"session_id": name, "trial_index": trial["trial_index"], "attempt": 1}
            verdict = score_trial(
                trial,
                response.response,
                parser=scorer,
                timed_out=kind == "human" and response.response is None,
            )
            row = {
                **records.planned_columns(trial), **place, **response.more, "response_raw": response.response,
                "rt": response.rt, "timed_out": kind == "human" and response.response is None,
                "plugin_version": plugin,
            }  # fmt: skip
            contents = {key: value for key, value in row.items() if key != "plugin_version"}
            try:
                stored = records.store_trial(
                    connection, row | {"payload_hash": records.payload_hash(contents)}
                )
            except records.TrialConflict as conflict:
                raise UserError(
                    f"{response.where}: {one.reader} is stored with another answer to item {trial['item_id']}",
                    mend="A session is imported once; give the readers of another table other names.",
                    exit_code=1,
                ) from conflict
            counts[stored] += 1
            if stored == "stored":
                if kind == "model":
                    _store_call(connection, place, response, name)
                records.store_score(connection, **place, verdict=verdict)
        if is_new:
            records.finish_session(connection, name)
        return is_new, counts["stored"], counts["same"]

    return write


def _store_call(connection: Connection, place: Mapping[str, Any], response: Given, name: str) -> None:
    asked = None if response.prompt is None else {"messages": [{"role": "user", "content": response.prompt}]}
    records.store_call(
        connection,
        {
            **place, "request_key": canonical_hash([name, place["trial_index"], asked]), "request": asked,
            "text": response.response, "status": "answered" if response.response else "empty",
            **{key: response.more.get(key) for key in _TOKENS},
        },
    )  # fmt: skip


def _compare(made: Imported, trial: PlannedTrial, response: Given, scorer: str | None) -> None:
    """Count whether a stored prediction is what wrods reads from the response."""
    if response.prediction is None:
        return
    verdict = score_trial(trial, response.response, parser=scorer)
    made.predictions += 1
    read = verdict.response or ""
    step = trial["steps"][-1]
    letters = {
        str(name): label
        for label, name in zip(step.get("labels", ()), step.get("responses", ()), strict=False)
    }
    if response.prediction in (read, letters.get(read)):
        made.agreeing += 1
    elif len(made.differing) < 20:
        made.differing.append(f"{response.where}: stored {response.prediction!r}, read {read!r}")


# a table's items and sessions


def make_items(study: Study, source: Source, columns: Columns) -> int:
    """Write the items that a table shows, where the study has none yet; return how many. They are part of its design.

    Raises
    ------
    UserError
        The mapping does not say what was shown, or rows of one item and condition show different things.
    """
    if (study.folder / ITEMS).exists():
        return 0
    if "show" not in columns.given:
        raise UserError(
            f"{study.folder.name} has no items and {columns.file.name} does not say what was shown",
            mend="Give `show` (field to column), or build the study's items first.",
        )
    found: dict[tuple[str, str, str], Item] = {}
    for row in source.rows():
        item = _item_of(study, columns, row)
        known = found.setdefault(_key(item.set_name, item.item_id, item.condition), item)
        if (known.shown, known.answer) != (item.shown, item.answer):
            raise UserError(
                f"{row.where}: item {item.item_id!r} shows {dict(item.shown)} here and {dict(known.shown)} before in "
                "the same condition",
                mend="Let `item` and `condition` name columns that tell apart what was shown.",
            )
    write_items(study.folder / ITEMS, list(found.values()), build_meta(study.seed, [source.file]))
    return len(found)


def _item_of(study: Study, columns: Columns, row: Line) -> Item:
    condition = columns.texts("condition", row)
    _check_condition(study, condition, row)
    item_id = _needed(columns, "item", row)
    choices = columns.given.get("choices")
    return Item(
        item_id=item_id,
        set_name=columns.text("set", row) or SET,
        role="test",
        condition=condition,
        shown=columns.texts("show", row),
        intact=columns.texts("intact", row),
        choices=None if choices is None else tuple(choices),
        answer=columns.text("answer", row),
        provenance={
            "source": str(columns.given.get("source", row.file.name)), "source_id": item_id, "split": None,
            "licence": columns.given.get("licence"), "operation": "imported", "seed": None,
        },
    )  # fmt: skip


def _check_condition(study: Study, condition: Mapping[str, str], row: Line) -> None:
    for factor, levels in study.factors.items():
        level = condition.get(factor)
        if level is None or level not in levels:
            said = "leaves it empty" if level is None else f"has {level!r}"
            raise UserError(
                f"{row.where} {said} for the factor {factor}",
                mend=f"Levels are {', '.join(levels)}; map the values of the table to them under `condition`.",
            )


def _sessions(
    study: Study, source: Source, columns: Columns, items: Mapping[tuple[str, str, str], Item]
) -> Iterable[GivenSession]:
    by_session: dict[tuple[str, str], list[Line]] = {}
    for row in source.rows():
        name = (_needed(columns, "reader", row), columns.text("session", row) or DEFAULT_SESSION)
        by_session.setdefault(name, []).append(row)
    if not by_session:
        raise UserError(
            f"{source.file.name} has no rows", mend="Give a table with a header and a row a response."
        )
    for number, ((reader, key), rows) in enumerate(by_session.items(), 1):
        listed = columns.text("list", rows[0])
        if listed is not None and not listed.isdigit():
            raise UserError(f"{rows[0].where}: the list is {listed!r}; it must be a number from 1")
        responses = [_given(study, columns, row, items) for row in rows]
        yield GivenSession(reader, key, int(listed) if listed is not None else number, responses)


def _given(study: Study, columns: Columns, row: Line, items: Mapping[tuple[str, str, str], Item]) -> Given:
    condition = columns.texts("condition", row)
    _check_condition(study, condition, row)
    item_id = _needed(columns, "item", row)
    set_name = columns.text("set", row)
    fitting = [
        item for (where, name, _), item in _narrow(items, item_id)
        if name == item_id and (set_name is None or where == set_name) and dict(item.condition) == condition
    ]  # fmt: skip
    if len(fitting) != 1:
        what = "no item" if not fitting else f"{len(fitting)} items"
        raise UserError(
            f"{row.where}: the study has {what} {item_id!r} in the condition {condition}",
            mend="Let `item`, `set` and `condition` name what the study's items.jsonl has.",
        )
    item = fitting[0]
    shown = columns.texts("show", row)
    if any(item.shown.get(name) != text for name, text in shown.items()):
        raise UserError(
            f"{row.where}: {shown} was shown, and the study's item {item_id!r} shows {dict(item.shown)}",
            mend="Import into the study that showed these items.",
        )
    rt = None
    if "rt" in columns.given:
        rt = row.number_of(columns.given["rt"]["column"])
        if rt is not None and columns.given["rt"]["unit"] == "s":
            rt = round(1000 * rt, 6)
        if rt is not None and rt < 0:
            raise UserError(f"{row.where}: a response time of {rt} ms", mend="Mend or empty the cell.")
    more = {name: _whole(columns, name, row) for name in _TOKENS if name in columns.given}
    return Given(
        row.where, item, _response(study, columns, row, item), rt, more,
        prompt=columns.text("prompt", row), prediction=columns.text("prediction", row),
    )  # fmt: skip


_INDEX: dict[int, dict[str, list[tuple[tuple[str, str, str], Item]]]] = {}


def _narrow(
    items: Mapping[tuple[str, str, str], Item], item_id: str
) -> list[tuple[tuple[str, str, str], Item]]:
    """Return the items of a name."""
    if id(items) not in _INDEX:
        _INDEX.clear()
        index = _INDEX.setdefault(id(items), {})
        for key, item in items.items():
            index.setdefault(key[1], []).append((key, item))
    return _INDEX[id(items)].get(item_id, [])


def _response(study: Study, columns: Columns, row: Line, item: Item) -> str | None:
    given = columns.given["response"]
    if not (isinstance(given, Mapping) and "correct" in given):
        return columns.text("response", row)
    told = row.value(str(given["correct"]))
    if told is None:
        return None
    if told not in ("0", "1", "0.0", "1.0", "true", "false", "True", "False", "TRUE", "FALSE"):
        raise UserError(
            f"{row.where}: {given['correct']} is {told!r}; it must be 1 or 0", mend="Mend or empty the cell."
        )
    labels = _two_labels(study, item)
    is_right = told.lower() in ("1", "1.0", "true")
    if item.answer not in labels:
        raise UserError(
            f"{row.where}: the answer {item.answer!r} is none of the labels {' and '.join(labels)}"
        )
    return next(label for label in labels if (label == item.answer) == is_right)


def _two_labels(study: Study, item: Item) -> list[str]:
    number = blocks_showing(study, item.set_name)[0]
    blocks = [screen["block"] for screen in study.get("procedure") if "block" in screen]
    keys = blocks[number]["trial"][-1].get("choose", {}).get("keys")
    if not isinstance(keys, dict) or len(keys) != 2:
        raise UserError(
            f"{study.place('procedure')}: whether an answer was right tells the answer only where there are two labels",
            mend="Map the column with the answers themselves under `response`.",
        )
    return list(map(str, keys))


def _needed(columns: Columns, name: str, row: Line) -> str:
    value = columns.text(name, row)
    if value is None:
        raise UserError(f"{row.where} has no {name}", mend="Fill the cell, or leave the row out.")
    return value


def _whole(columns: Columns, name: str, row: Line) -> int | None:
    text = columns.text(name, row)
    if text is None:
        return None
    if not text.removesuffix(".0").isdigit():
        raise UserError(f"{row.where}: {name} is {text!r}; it must be a whole number")
    return int(text.removesuffix(".0"))


def _key(set_name: str, item_id: str, condition: Mapping[str, str]) -> tuple[str, str, str]:
    return (set_name, item_id, hashlib.sha256(repr(sorted(condition.items())).encode()).hexdigest())


def _plain(given: Any) -> Any:
    if isinstance(given, Mapping):
        return {str(key): _plain(value) for key, value in given.items()}
    return [_plain(one) for one in given] if isinstance(given, list) else given
