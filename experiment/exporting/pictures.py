"""The pictures that models were shown, drawn again from what the store holds of each: its text, its look, the hash of its pixels."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from experiment.models.pictures import picture_of
from stimuli.errors import UserError


def write_pictures(folder: Path, calls: Iterable[Mapping[str, Any]]) -> tuple[int, int]:
    """Write each picture of some calls once, named by its hash; return how many were written, and how many came out otherwise.

    Parameters
    ----------
    folder : Path
        Made where there are any.
    calls : iterable of mapping
        Rows of the calls table with their ``request``.
    """
    told: dict[str, Mapping[str, Any]] = {}
    for call in calls:
        if call.get("request") and '"pictures"' in call["request"]:
            for message in json.loads(call["request"])["messages"]:
                told |= {one["sha256"]: one for one in message.get("pictures", ())}
    lost = 0
    for sha256, one in told.items():
        try:
            picture = picture_of(one)
        except UserError:
            lost += 1
            continue
        folder.mkdir(exist_ok=True)
        (folder / f"{sha256}.png").write_bytes(picture.png)
    return len(told) - lost, lost
