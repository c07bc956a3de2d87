"""The items of an import: those of the study, or new ones, which are written with the sessions that show them or not at all."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from experiment.custody.origin import IMPORTED
from experiment.lists import blocks_showing
from experiment.store import Store
from experiment.store.tables import sessions
from experiment.study import Study
from experiment.study.study import ITEMS
from stimuli.errors import UserError
from stimuli.item import Item, build_meta, items_content, meta_path, write_items

OPERATION = IMPORTED


@dataclass(frozen=True)
class Items:
    """A study with the items of an import."""

    study: Study  # with these items, whether or not they are on disk yet
    content: bytes | None = None  # the file that is to be written; None where the study has its items
    meta: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # the file's sidecar

    @property
    def sha256(self) -> str | None:
        """Digest of the file that is to be written."""
        return None if self.content is None else hashlib.sha256(self.content).hexdigest()


def items_for(
    study: Study, store: Store | None, sources: Iterable[Path], make: Callable[[], Sequence[Item]]
) -> Items:
    """Return the items for an import: the study's own, or such as are made where it has none.

    Items of an import that came to nothing (there is no session yet) are made anew.

    ``store``: None where there is none yet.
    ``make``: makes items from what is imported.
    """
    if (study.folder / ITEMS).exists() and not _is_left_over(study, store):
        return Items(study)
    made = make()
    content = items_content(made)
    _check_blocks(study, made)
    _check_lists(study, made)
    with_items = dataclasses.replace(study)
    # what is not on disk yet stands where the study would keep what it read
    vars(with_items)["items"] = tuple(made)
    vars(with_items)["design"] = {**study.design, "items": hashlib.sha256(content).hexdigest()}
    return Items(with_items, content, build_meta(study.seed, sources))


@contextmanager
def written(items: Items) -> Iterator[None]:
    """Write new items, and put back what was there where what is done with them fails."""
    if items.content is None:
        yield
        return
    file = items.study.folder / ITEMS
    before = [(path, path.read_bytes() if path.exists() else None) for path in (file, meta_path(file))]
    try:
        write_items(file, items.study.items, items.meta, content=items.content)
        yield
    except BaseException:
        for path, content in before:
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
        raise


def is_imported(items: Iterable[Item]) -> bool:
    """Say whether all items were made from an imported table."""
    return all(item.provenance["operation"] == OPERATION for item in items)


def _is_left_over(study: Study, store: Store | None) -> bool:
    if not is_imported(study.items):
        return False
    if store is None:
        return True
    query = select(func.count()).select_from(sessions).where(sessions.c.study == study.id)
    with store.read() as connection:
        return not connection.scalar(query)


def _check_blocks(study: Study, items: Sequence[Item]) -> None:
    for name in dict.fromkeys(item.set_name for item in items):
        if not blocks_showing(study, name):
            raise UserError(
                f"{study.place('procedure')}: no block shows the set {name!r}",
                mend="Name it under `sets` of a block, or let a block name no sets.",
            )


def _check_lists(study: Study, items: Sequence[Item]) -> None:
    """Refuse a Latin square of items that do not all come in every condition, which no other build can mend."""
    if study.get("design", "lists") == "one":
        return
    counts: dict[tuple[str, str], int] = {}
    for item in items:
        key = (item.set_name, item.item_id)
        counts[key] = counts.get(key, 0) + 1
    most = max(counts.values(), default=0)
    short = [item_id for (_, item_id), number in counts.items() if number < most]
    if short:
        raise UserError(
            f"{study.place('design')}: a Latin square needs every item in every condition, and {len(short)} of "
            f"{len(counts)} items in the table (first: {short[0]!r}) lack a condition that others have",
            mend="Write `lists: one` under `design`: imported sessions keep the list and row order of the table either way.",
        )
