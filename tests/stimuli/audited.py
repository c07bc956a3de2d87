"""Items for the tests of the audit, and what it says of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stimuli.audit.audit import Audit
from stimuli.item import ChangeRecord, Item, Provenance, Role

ORIGIN = Provenance(source="made", source_id=None, split=None, licence=None, operation="none", seed=1)


def item(
    item_id: str,
    text: str,
    answer: str | None = None,
    *,
    role: Role = "test",
    set_name: str = "words",
    condition: Mapping[str, str] | None = None,
    choices: tuple[str, ...] | None = None,
    **also: Any,
) -> Item:
    shown = {"text": text, **also.pop("shown", {})}
    return Item(
        item_id,
        set_name,
        role,
        condition or {},
        shown,
        also.pop("intact", {}),
        choices,
        answer,
        ORIGIN,
        **also,
    )


def change(intact: str, shown: str, *, displaced: int = 2) -> ChangeRecord:
    made: dict[str, Any] = {
        "field": "text",
        "word": 0,
        "start": 0,
        "intact": intact,
        "shown": shown,
        "permutation": [1, 0, *range(2, len(shown))] if displaced else list(range(len(shown))),
        "displaced": displaced,
        "mean_displacement": 0.5,
    }
    return made  # type: ignore[return-value]


def told(audit: Audit, section: str) -> list[str]:
    return [one.line() for one in audit.findings() if one.section == section]
