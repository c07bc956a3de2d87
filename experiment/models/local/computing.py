"""Computes rows whatever happens: memory that runs out, a way that fails under way, a row that no way can compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from experiment.models.local import parity
from experiment.models.local.head import CausalModel, Closed, is_out_of_memory
from experiment.models.local.parity import Way
from experiment.models.local.rows import Budget, Found, Row
from experiment.models.local.windows import Work

LEAST_TOKENS = 32
"""A budget of fewer tokens is not tried before the longest row is tried alone."""


class Computing:
    """Computes rows on the fastest way that works.

    ``ways``: the fastest first, the plain one last.
    ``record``: what is known of the choice; every change of way is added.
    """

    def __init__(self, model: CausalModel, ways: Sequence[Way], record: dict[str, object]) -> None:
        self.model = model
        self.record = record
        self._ways = list(ways)
        tolerance = record.get("tolerance")
        self._tolerance = tolerance if isinstance(tolerance, float) else 0.0

    def compute(
        self, work: Sequence[Work], budget: Budget, hold: Set[int]
    ) -> Iterator[tuple[Work, Found | str, str]]:
        """Yield each row with what was found of it, or why nothing was, and the way that was taken.

        ``hold``: places of rows that later ones will go on from.
        """
        left = list(enumerate(work))
        alone = False
        before = budget.tokens, budget.held, budget.positions
        while left:
            if alone:
                left.sort(key=lambda one: -len(one[1].row.ids))
            some = left[:1] if alone else left
            held = {number for number, (place, _) in enumerate(some) if place in hold}
            way, done, fault = self._ways[0], set[int](), None
            try:
                for number, found in way.compute([one.row for _, one in some], budget, held):
                    done.add(number)
                    yield some[number][1], found, way.name
            except Closed:
                return
            except Exception as error:
                # nothing may hold on to the error's frames, or their tensors stay in memory
                fault = (is_out_of_memory(error), f"{type(error).__name__}: {error}".splitlines()[0][:300])
            if fault is None:
                alone = False
            else:
                out_of_memory, said = fault
                for _, one in some:
                    for job, _ in one.waiting:
                        job.attempts += 1
                if out_of_memory:
                    if not done and alone and budget.tokens <= LEAST_TOKENS:
                        done.add(0)
                        yield some[0][1], "memory ran out with this request alone", way.name
                        budget.tokens, budget.held, budget.positions = before
                        alone = False
                    elif not done and budget.tokens <= LEAST_TOKENS:
                        alone = True
                    else:
                        budget.halve()
                        give_back()
                elif not self._slower(said, [one.row for _, one in some]):
                    if alone or len(some) == 1:
                        done.add(0)
                        yield some[0][1], said, way.name
                    alone = not alone
            left = [one for number, one in enumerate(left) if number not in done]

    def forget(self) -> None:
        """Give up what the ways remember."""
        for way in self._ways:
            way.forget()

    def _slower(self, said: str, rows: Sequence[Row]) -> bool:
        """Take the next way that is right from now on, and note why; False where there is none."""
        if len(self._ways) < 2:
            return False
        change: dict[str, object] = {"from": self._ways.pop(0).name, "why": said}
        refused = {}
        while len(self._ways) > 1:
            worst = parity.apart_from_plain(self.model, self._ways[0], rows, self._ways[-1])
            if isinstance(worst, float) and worst <= self._tolerance:
                change["max_abs_difference"] = worst
                break
            refused[self._ways.pop(0).name] = str(worst)
        change["to"] = self._ways[0].name
        if refused:
            change["refused"] = refused
        changes = self.record.get("changes")
        self.record["changes"] = [*(changes if isinstance(changes, list) else []), change]
        self.record["path"] = self._ways[0].name
        return True


def give_back() -> None:
    """Give memory back that nothing holds any more."""
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
