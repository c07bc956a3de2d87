"""The rows of the regions table: a stored region, and why its time is in no analysis, where the study bounds such times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from analysis.plan import read_times
from experiment.store import queries
from experiment.study import Study


def region_rows(connection: Connection, study: Study) -> Iterator[dict[str, Any]]:
    """Iterate over a study's regions with ``excluded_reason``; every region is there, whatever its time."""
    said = study.get("analysis", "exclude", "regions", "rt")
    bounds = None if said is None else read_times(said)
    for row in queries.all_regions(connection, study.id):
        is_out = bounds is not None and row["rt"] is not None and not bounds[0] <= row["rt"] <= bounds[1]
        yield {**row, "excluded_reason": f"rt {said}" if is_out else None}
