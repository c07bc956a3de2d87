"""The plan of a session whose items and order are given: what a reader met elsewhere, as a study's procedure shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiment.lists import blocks_showing
from experiment.procedure import Plan, PlannedTrial
from experiment.procedure.plan import as_plan
from experiment.procedure.unfolding import Screen, Unfolding
from experiment.study import Study
from stimuli.item import Item


class _AsGiven(Unfolding):
    """A procedure whose blocks show given items in their order; nothing is drawn, and practice is left out."""

    def __init__(
        self, study: Study, items: Sequence[Item], *, list_id: int, condition: Mapping[str, str]
    ) -> None:
        super().__init__(
            study, study.items, list_id=1, session_key=None, order_row=0, label_map=0,
            between={"condition": dict(condition), "exemplars": None},
        )  # fmt: skip
        self.list_id = list_id
        self.places: dict[int, int] = {}
        self._of_block: dict[int, list[tuple[int, Item]]] = {}
        for row, item in enumerate(items):
            number = blocks_showing(study, item.set_name)[0]
            self._of_block.setdefault(number, []).append((row, item))

    def given_screens(self) -> list[Screen]:
        """Return instructions and blocks."""
        found: list[Screen] = []
        number = 0
        for screen in self.study.get("procedure"):
            kind, value = next(iter(screen.items()))
            if kind == "instructions":
                found.append(self._instructions(value))
            elif kind == "block":
                number += 1
                if number - 1 in self._of_block:
                    found.append(self._given_block(value, number))
        return found

    def _given_block(self, settings: Mapping[str, object], number: int) -> Screen:
        name = f"block-{number}"
        trials: list[PlannedTrial] = []
        for row, item in self._of_block[number - 1]:
            self.places[row] = self.next_index
            trials.append(self._trial(item, name, settings))
        return {
            "kind": "block", "block": name, "name": settings.get("name"), "break_every": None, "break_minimum_ms": 0,
            "feedback": None, "trials": trials,
        }  # fmt: skip


def plan_of_items(
    study: Study,
    items: Sequence[Item],
    *,
    list_id: int,
    version: int,
    condition: Mapping[str, str] | None = None,
    prompt_variant: int = 1,
) -> tuple[Plan, list[int]]:
    """Return the plan of a session that shows given items, and the trial index of each of them.

    Parameters
    ----------
    items : sequence of Item
        In the order in which they were shown; those of one block stay together.
    condition : mapping, optional
        Levels that hold for the whole session.
    prompt_variant : int
        Which wording the reader was asked in.
    """
    unfolding = _AsGiven(study, items, list_id=list_id, condition=condition or {})
    screens = unfolding.given_screens()
    plan = as_plan(unfolding, screens, version=version, prompt_variant=prompt_variant)
    return plan, [unfolding.places[row] for row in range(len(items))]
