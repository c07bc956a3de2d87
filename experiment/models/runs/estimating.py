"""The cost of the rest of a run, from stored trials or a probe of each model; a run ends before too much is spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from sqlalchemy import select

from experiment.models.money import Allowance, Spending, spending, written
from experiment.models.runs.affording import rest_of, shortfall, too_dear
from experiment.models.runs.asking import Asking
from experiment.models.runs.limits import Clock, Stop
from experiment.models.runs.parts import Part
from experiment.models.runs.planned import kind_of
from experiment.models.runs.telling import told_estimate
from experiment.store import Store
from experiment.store.tables import trials

PROBE = 20
"""Trials of each model that costs money from which the price of the rest is estimated."""

Work = Callable[[Part], None]
InThreads = Callable[[Sequence[Part], Work], None]


class Prices:
    """Estimates of one run's models."""

    def __init__(
        self,
        store: Store,
        study: str,
        *,
        budget: float | None,
        cost: Allowance | None,
        trials: int | None,
        stop: Stop,
        yes: bool,
        say: Callable[[str], None],
    ) -> None:
        self._store, self._study = store, study
        self._budget, self._cost, self._trials = budget, cost, trials
        self._stop, self._yes, self._say = stop, yes, say

    def foresee(self, parts: Sequence[Part], clock: Clock) -> None:
        """End the run before anything is paid, where trials that are stored tell that the money will not suffice."""
        parts = [part for part in parts if not part.asking.price.is_free]
        if self._yes or not parts or any(learn_costs(part.asking) < PROBE for part in parts):
            return
        long = [part for part in parts if part.asking.found.left > 2 * PROBE]
        estimates = [one for part in long if (one := rest_of(part)) is not None]
        order = sorted({r for part in parts for r, n in part.asking.found.missing.items() if n > 0})
        missing = [part.asking.found.missing.get(order[0], 0) if order else 0 for part in parts]
        why = too_dear(estimates, self._left(self._spending()))
        why = why or shortfall(parts, missing, clock, self._cost, None, self._budget)
        if why is not None:
            self._stop.ask(why)

    def probe(self, parts: Sequence[Part], in_threads: InThreads) -> None:
        """Ask the first trials of each model that costs money, and say what the rest will cost.

        What earlier runs stored tells too, so that a run that is begun again and again does not run ahead with its probes.
        """
        parts = [part for part in parts if part.asking.found.left > 2 * PROBE]
        if not parts:
            return
        most = PROBE if self._trials is None else min(PROBE, self._trials)
        wanted = {part.outcome.reader: most - learn_costs(part.asking) for part in parts}
        asked = [part for part in parts if wanted[part.outcome.reader] > 0]
        for part in asked:
            part.figures.state = "probe"
        timed = [part for part in asked if part.asking.settings.options.get("timing")]
        # times are taken of one model after the other
        for some in [[part] for part in timed] or [asked]:
            in_threads(some, lambda part: part.asking.probe(wanted[part.outcome.reader]))
        estimates = [(part, one) for part in parts if (one := rest_of(part)) is not None]
        for part, one in estimates:
            part.outcome.estimate = part.figures.estimate = one.describe()
            self._say(told_estimate(part.outcome.reader, one))
        spent = self._spending()
        if self._budget is not None:
            self._say(f"budget {written(self._budget)}, spent so far {written(spent.spent)}{_unknown(spent)}")
        why = too_dear([one for _, one in estimates], self._left(spent))
        if why is not None and not self._yes and not self._stop.is_asked:
            self._stop.ask(why)

    def _spending(self) -> Spending:
        with self._store.read() as connection:
            return spending(connection, self._study)

    def _left(self, spent: Spending) -> float | None:
        """Return what the budget leaves; None where there is none."""
        return None if self._budget is None else self._budget - spent.spent - spent.unknown


def _unknown(spent: Spending) -> str:
    if not spent.unknown:
        return ""
    return f", {written(spent.unknown)} may have been spent on what was never answered"


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
