"""Versions of a study's design and provenance of its items, so that no session shows items built from a different design.

The record has the settings that affect items and the digest of every source file. Texts outside items (questions, time limits,
screens) are not included, because changing them requires no rebuild.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, exists, func, select, update

from experiment.store import Store
from experiment.store.database import lock_for_change
from experiment.store.session_activity import stamp
from experiment.store.tables import sessions, trials, versions
from experiment.study import Study
from experiment.study.study import ITEMS
from stimuli.errors import UserError
from stimuli.files import file_sha256
from stimuli.item import Item, read_meta

BUILT_FROM = "built_from"
"""Key of the record in ``items.meta.json``."""
IMPORTED = "imported"
"""Operation in the provenance of imported items."""
SHOWN = 12
STEP_PARTS = ("show", "read_as")
"""Settings of a trial's step that affect items, in addition to its kind and the labels of its keys."""


class DesignChanged(UserError):
    """The design differs from the one under which data were collected."""

    def __init__(self, study: str, version: int, held: int, lines: Sequence[str]) -> None:
        self.study, self.version, self.held, self.lines = study, version, held, tuple(lines)
        super().__init__(
            f"the design of {study} changed after {held} session{'s' if held != 1 else ''}: {shortened(lines)}",
            mend="Take the change back, or start a new version of the study with --new-version.",
        )


def shortened(lines: Sequence[str]) -> str:
    """Return the first lines on differences, and how many more there are."""
    more = [f"… and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return "; ".join((*lines[:SHOWN], *more))


def _leaves(value: object, path: str = "") -> dict[str, str]:
    """Return a JSON value as one text per leaf, with dotted paths."""
    if isinstance(value, dict) and value:
        parts = {f"{path}.{name}" if path else name: part for name, part in value.items()}
    elif isinstance(value, list) and value:
        parts = {f"{path}[{place}]": part for place, part in enumerate(value)}
    else:
        return {path: json.dumps(value, ensure_ascii=False)}
    return {name: leaf for inner, part in parts.items() for name, leaf in _leaves(part, inner).items()}


def differences(before: str, after: str) -> list[str]:
    """Return lines such as ``design.lists: 4 → 2`` on the differences between two designs (JSON texts)."""
    old, new = _leaves(json.loads(before)), _leaves(json.loads(after))
    lines = []
    for path in dict.fromkeys((*old, *new)):
        if path not in new:
            lines.append(f"{path}: {old[path]} is gone")
        elif path not in old:
            lines.append(f"{path}: {new[path]} is new")
        elif old[path] != new[path]:
            lines.append(f"{path}: {old[path]} → {new[path]}")
    return lines


def ensure_version(
    connection: Connection, study: str, design_hash: str, design: str, *, new_version: bool = False
) -> int:
    """Return the version number of a design, recording the design the first time it is used.

    A changed design replaces the last version only while no session was held under it; after pilots and simulated readers alone
    it becomes the next version, so that a version's sessions all have one design.
    """
    lock_for_change(connection)
    known = connection.execute(
        select(versions).where(versions.c.study == study).order_by(versions.c.version.desc())
    ).all()
    for row in known:
        if row.design_hash == design_hash:
            return int(row.version)
    moment = stamp(datetime.now(UTC))
    values = {"design_hash": design_hash, "design": design, "created_at": moment}
    latest = known[0] if known else None
    if latest is not None:
        held = _sessions_held(connection, study, int(latest.version))
        if held.binding and not new_version:
            raise DesignChanged(study, int(latest.version), held.binding, differences(latest.design, design))
        if not held.all and not new_version:
            mine = update(versions).filter_by(study=study, version=latest.version)
            connection.execute(mine.values(**values))
            return int(latest.version)
    number = 1 if latest is None else int(latest.version) + 1
    connection.execute(versions.insert().values(study=study, version=number, **values))
    return number


@dataclass(frozen=True)
class _Held:
    """Number of sessions of a version, and of those that bind its design."""

    all: int
    binding: int


def _sessions_held(connection: Connection, study: str, version: int) -> _Held:
    kinds = (sessions.c.reader_kind, sessions.c.is_pilot)
    counted = select(*kinds, func.count()).filter_by(study=study, version=version).group_by(*kinds)
    rows = connection.execute(counted).all()
    binding = sum(int(n) for kind, is_pilot, n in rows if kind != "simulated" and not is_pilot)
    return _Held(sum(int(n) for *_, n in rows), binding)


def origin_of(study: Study, files: Iterable[Path]) -> dict[str, Any]:
    """Return the provenance record of items."""
    origin = {"settings": _settings(study), "files": dict(sorted(_files(study, files)))}
    text = json.dumps(origin, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return {"sha256": hashlib.sha256(text.encode("utf-8")).hexdigest(), **origin}


def changed_since_build(study: Study) -> list[str]:
    """Return lines on the differences between the built items' sources and the study's current ones.

    A missing file cannot be compared and gives no line: studies are shared without their corpora.
    """
    if _has_only_its_items(study):
        return []
    noted = read_meta(study.folder / ITEMS).get(BUILT_FROM)
    if noted is None:
        return []
    lines = differences(json.dumps(noted["settings"]), json.dumps(_settings(study)))
    for name, digest in noted["files"].items():
        file = _path(study, name)
        if file.is_file() and file_sha256(file) != digest:
            lines.append(f"{name} was edited")
    return lines


def require_current_items(study: Study, store: Store | None = None) -> None:
    """Raise an error for items built from a different design, before anything is stored for them."""
    items = study.items
    if _has_only_its_items(study) or all(item.provenance["operation"] == IMPORTED for item in items):
        return
    lines = changed_since_build(study)
    if lines:
        raise UserError(
            f"the items were built from another design: {shortened(lines)}",
            mend=f"Run `wrods build {study.folder}`, or take the change back.",
            exit_code=1,
        )
    if store is None or read_meta(study.folder / ITEMS).get(BUILT_FROM) is not None:
        return
    has_sessions = exists().where(sessions.c.study == study.id, sessions.c.design_hash == study.design_hash)
    with store.read() as connection:
        if not connection.scalar(select(has_sessions)):
            raise UserError(
                f"{ITEMS} does not say what it was built from: an earlier wrods built it",
                mend=f"Run `wrods build {study.folder}`: the same study gives the same items.",
                exit_code=1,
            )


def _has_only_its_items(study: Study) -> bool:
    """Return whether the study has no material other than imported items."""
    return bool(study.get("materials", "words") == ITEMS)


def _settings(study: Study) -> dict[str, Any]:
    materials = {name: value for name, value in study.get("materials").items() if name != "audit"}
    design = study.get("design", default=None) or {}
    settings = {
        "seed": study.seed,
        "language": study.language,
        "published_items": "items" in study.published,
        "materials": materials,
        "design": {name: design[name] for name in ("factors", "lists") if name in design},
        "procedure": _procedure(study),
    }
    plain: dict[str, Any] = json.loads(json.dumps(settings, ensure_ascii=False))
    return plain


def _procedure(study: Study) -> dict[str, Any]:
    """Return the settings of practice and blocks that affect items, by their index among screens of their kind."""
    screens: dict[str, Any] = {}
    for screen in study.get("procedure"):
        for kind in ("practice", "block"):
            if kind not in screen:
                continue
            name = f"{kind}-{1 + sum(name_of_screen.startswith(kind) for name_of_screen in screens)}"
            settings = screen[kind]
            if kind == "practice":
                screens[name] = {
                    part: settings[part] for part in ("items", "rule", "number") if part in settings
                }
            else:
                sets = {"sets": settings["sets"]} if "sets" in settings else {}
                screens[name] = {**sets, "trial": [_step(step) for step in settings["trial"]]}
    return screens


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    kind, settings = next(iter(step.items()))
    given = {part: settings[part] for part in STEP_PARTS if part in settings}
    keys = settings.get("keys")
    labels = {"labels": list(keys)} if isinstance(keys, Mapping) else {}
    return {kind: {**given, **labels}}


def _files(study: Study, files: Iterable[Path]) -> Iterable[tuple[str, str]]:
    named = sorted(_named(study), key=lambda entry: -len(entry[1].parts))
    home = study.folder.resolve()
    for given in files:
        source = given.resolve()
        # a folder that contains the study also contains what wrods writes
        inside = [path for path in source.rglob("*") if path.is_file()] if source.is_dir() else [source]
        if source.is_dir() and (source == home or source in home.parents):
            inside = [path for path in inside if home not in path.parents]
        for file in inside:
            match = next((entry for entry in named if entry[1] == file or entry[1] in file.parents), None)
            if match is not None:
                within = file.relative_to(match[1]).as_posix()
                yield match[0] if within == "." else f"{match[0]}/{within}", file_sha256(file)


def _named(study: Study) -> Iterable[tuple[str, Path]]:
    """Yield files and folders named in the materials and practice screens, with their paths on this machine."""

    def texts(value: object) -> Iterable[str]:
        if isinstance(value, Mapping | list):
            for part in value.values() if isinstance(value, Mapping) else value:
                yield from texts(part)
        elif isinstance(value, str) and value:
            yield value

    given = [study.get("materials"), [name for name, _ in study.practice_files()]]
    for text in dict.fromkeys(texts(given)):
        try:
            path = _path(study, text)
            is_there = path.exists()
        except (OSError, RuntimeError, ValueError):
            continue  # a text that cannot be a file name
        if is_there:
            yield text, path


def _path(study: Study, name: str) -> Path:
    return (study.folder / Path(name).expanduser()).resolve()


SHOWN_TEXT = 60
"""Characters of a text that are shown."""
ITEMS_LINE = "items: "


def note_design(connection: Connection, study: Study, *, new_version: bool = False) -> int:
    """Record a study's design and return its version (:func:`ensure_version`)."""
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
    """Return a line on how the items seen by a version's readers have changed, from one session per list."""
    one_per_list = (
        select(func.min(sessions.c.session_id))
        .where(sessions.c.study == study.id, sessions.c.version == version)
        .where(sessions.c.reader_kind != "simulated")
        .group_by(sessions.c.list_id)
    )
    columns = (
        trials.c.item_set, trials.c.item_id, trials.c.condition, trials.c.shown, trials.c.answer, trials.c.trial_index
    )  # fmt: skip
    query = select(*columns).where(trials.c.session_id.in_(one_per_list)).order_by(trials.c.trial_index)
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
        line = _difference(dict(row), now)
        if line is not None:
            differing.append(line)
            intact += [line] if now is None or not now.changes else []
    if not differing:
        return f"the items were rebuilt; the {len(seen)} checked of those that readers saw are unchanged"
    # unscrambled words show an edit most clearly
    shown = (intact or differing)[0]
    return f"the items were rebuilt: {len(differing)} of {len(seen)} that readers saw differ, such as {shown}"


def _now(condition: Mapping[str, str], items: list[Item]) -> Item | None:
    return next((item for item in items if item.condition.items() <= condition.items()), None)


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
    written = json.dumps(text, ensure_ascii=False)
    return written if len(written) <= SHOWN_TEXT else f'{written[: SHOWN_TEXT - 2]}…"'
