"""The rows of the regions table: a stored region, and why its time is in no analysis, where the study bounds such times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection

from experiment.store import queries
from experiment.study import Study
from experiment.study.bounds import region_bounds


def region_rows(connection: Connection, study: Study) -> Iterator[dict[str, Any]]:
    """Iterate over a study's regions with ``excluded_reason``; every region is there, whatever its time.

    Parameters
    ----------
    connection : Connection
        A reading connection.
    study : Study
        Its ``analysis.exclude.regions`` bounds the time on a region; a model's region has none.
    """
    bounds = region_bounds(study)
    for row in queries.all_regions(connection, study.id):
        is_out = bounds is not None and row["rt"] is not None and not bounds.low <= row["rt"] <= bounds.high
        yield {**row, "excluded_reason": f"rt {bounds.said}" if bounds is not None and is_out else None}
