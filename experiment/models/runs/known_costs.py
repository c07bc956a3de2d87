"""What trials of a model cost that earlier runs stored."""

from __future__ import annotations

from itertools import islice

from sqlalchemy import select

from experiment.models.runs.asking import Asking
from experiment.models.runs.planned import kind_of
from experiment.store.tables import trials

SESSIONS_LEARNT, TRIALS_LEARNT = 64, 400
"""Of so many sessions, so many trials of earlier runs tell what a trial costs."""


def learn_costs(asking: Asking) -> int:
    """Take over what stored trials cost, by kind; return of how many that is known."""
    some = list(islice(asking.plan(), SESSIONS_LEARNT))
    kinds = {(one.session_id, trial["trial_index"]): kind_of(trial) for one in some for trial in one.trials}
    query = (
        select(trials.c.session_id, trials.c.trial_index, trials.c.cost_usd)
        .where(trials.c.session_id.in_([one.session_id for one in some]), trials.c.cost_usd > 0)
        .limit(TRIALS_LEARNT)
    )
    asking.costs = {}
    for row in asking.recording.read(lambda connection: connection.execute(query).all()):
        asking.costs.setdefault(kinds[row.session_id, row.trial_index], []).append(float(row.cost_usd))
    return sum(map(len, asking.costs.values()))
