"""Items for the tests of the audit, and what it says of them."""

from __future__ import annotations

from stimuli.item import Item, Provenance

ORIGIN = Provenance(source="made", source_id=None, split=None, licence=None, operation="none", seed=1)


def item(item_id, text, answer=None, *, role="test", set_name="words", condition=None, choices=None, **also):
    shown = {"text": text, **also.pop("shown", {})}
    told = (item_id, set_name, role, condition or {}, shown, also.pop("intact", {}), choices, answer)
    return Item(*told, ORIGIN, **also)


def change(intact, shown, *, displaced=2):
    order = [1, 0, *range(2, len(shown))] if displaced else list(range(len(shown)))
    moved = {"permutation": order, "displaced": displaced, "mean_displacement": 0.5}
    return {"field": "text", "word": 0, "start": 0, "intact": intact, "shown": shown, **moved}


def told(audit, section):
    return [one.line() for one in audit.findings() if one.section == section]
