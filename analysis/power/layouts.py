"""Who answers what: the trials of a planned study of a given size, without answers.

People work through one session each. A model sees every item in every condition that the layout gives the item, once for each
prompt wording and replicate, as the lists of a study lead it to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

import numpy as np
import pandas as pd

from analysis.frames import ModelData, accuracy_data, time_data
from analysis.plan import Plan
from analysis.quantities import quantity_data
from analysis.readers import PARTICIPANT_KINDS
from stimuli.errors import UserError, unknown_name

Layout = Literal["latin_square", "crossed", "between_items", "between_participants"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
MOST_TRIALS = 5_000_000


@dataclass(frozen=True, order=True)
class Sizes:
    """How large a study is.

    Attributes
    ----------
    participants : int
        0 in a plan of models alone (:func:`sizes_of`).
    items : int
        Items that a participant sees; with a Latin square each in one condition.
    prompts : int
        Prompt wordings given to each model.
    replicates : int
        Times that a model answers the same item in the same condition and wording; answers of a model without chance
        (temperature 0) repeat themselves and are one.
    """

    participants: int
    items: int
    prompts: int = 1
    replicates: int = 1

    @property
    def key(self) -> str:
        """Short name of the cell in a file of fits."""
        return f"{self.participants}x{self.items}x{self.prompts}x{self.replicates}"


def grid(
    participants: tuple[int, ...],
    items: tuple[int, ...],
    prompts: tuple[int, ...],
    replicates: tuple[int, ...],
) -> list[Sizes]:
    """Cross the sizes, in ascending order.

    Raises
    ------
    UserError
        Where a list is empty or a number is too small.
    """
    least = {"participants": 2, "items": 2, "prompts": 1, "replicates": 1}
    given = {"participants": participants, "items": items, "prompts": prompts, "replicates": replicates}
    for name, numbers in given.items():
        if not numbers:
            raise UserError(f"no number of {name} is given", mend=f"For example --{name} 20,40,60.")
        for number in numbers:
            if number < least[name]:
                raise UserError(f"{name}: {number} is too few; {least[name]} is the least")
    return [Sizes(*one) for one in sorted(set(product(participants, items, prompts, replicates)))]


def sizes_of(plan: Plan, kinds: Mapping[str, str], sizes: list[Sizes]) -> list[Sizes]:
    """Return the sizes that differ for a plan: one of models alone has no participants."""
    if any(kinds.get(group) in PARTICIPANT_KINDS for group in plan.groups):
        return sizes
    return sorted({replace(one, participants=0) for one in sizes})


def layout_named(name: str) -> Layout:
    """Return a layout by its name.

    Raises
    ------
    UserError
        For another name.
    """
    for layout in LAYOUTS:
        if layout == name:
            return layout
    raise unknown_name("layout", name, LAYOUTS)


def trials(plan: Plan, kinds: Mapping[str, str], sizes: Sizes, layout: Layout) -> pd.DataFrame:
    """Return a trials table of a study of this size, with all columns that the models of analysis read but no answers.

    Raises
    ------
    UserError
        Where the layout needs more items or participants than there are, or the table would not fit into memory.
    """
    levels = len(plan.levels)
    people = [group for group in plan.groups if kinds[group] in PARTICIPANT_KINDS]
    short = {"between_items": sizes.items, "between_participants": sizes.participants}.get(layout, levels)
    if short < levels and (people or layout == "between_items"):
        raise UserError(
            f"{sizes.participants} participants and {sizes.items} items cannot show {levels} conditions ({layout})",
            mend="Give more, or another --layout.",
        )
    machines = [group for group in plan.groups if kinds[group] not in PARTICIPANT_KINDS]
    repeats = sizes.prompts * sizes.replicates
    size = sizes.items * (
        len(people) * sizes.participants * (levels if layout == "crossed" else 1)
        + len(machines) * repeats * (1 if layout == "between_items" else levels)
    )
    if size > MOST_TRIALS:
        raise UserError(f"a study with {size:,} trials is too large to simulate; {MOST_TRIALS:,} is the most")
    parts = [_people(group, sizes, levels, layout) for group in people]
    parts += [_machine(group, sizes, levels, layout) for group in machines]
    table = pd.concat(parts, ignore_index=True)
    table["reader_kind"] = table["reader_group"].map(dict(kinds))
    table[plan.factor] = np.array(plan.levels, dtype=object)[table.pop("place").to_numpy()]
    table["item_id"] = "i" + table.pop("number").astype(str)
    table["excluded_reason"] = None
    table["set"] = "items"
    table["trial_type"] = plan.trials or ""
    for factor, level in plan.within:
        table[factor] = level
    table["response_status"] = "valid"
    return table


def _people(group: str, sizes: Sizes, levels: int, layout: Layout) -> pd.DataFrame:
    person, item = (one.ravel() for one in np.mgrid[: sizes.participants, : sizes.items])
    place = {
        "latin_square": (person + item) % levels,
        "between_items": item % levels,
        "between_participants": person % levels,
        "crossed": None,
    }[layout]
    if place is None:
        person, item = np.repeat(person, levels), np.repeat(item, levels)
        place = np.tile(np.arange(levels), sizes.participants * sizes.items)
    reader = pd.Series(person).map(lambda one: f"{group}{one}")
    return pd.DataFrame(
        {
            "reader_group": group,
            "reader": reader,
            "session_id": reader,
            "number": item,
            "place": place,
            "prompt_variant": np.nan,
            "replicate": 0,
        }
    )


def _machine(group: str, sizes: Sizes, levels: int, layout: Layout) -> pd.DataFrame:
    item, place, prompt, replicate = (
        one.ravel() for one in np.mgrid[: sizes.items, :levels, : sizes.prompts, : sizes.replicates]
    )
    replicates = sizes.replicates
    shown = (item % levels == place) if layout == "between_items" else np.ones(len(item), dtype=bool)
    return pd.DataFrame(
        {
            "reader_group": group,
            "reader": group,
            "session_id": pd.Series(prompt * replicates + replicate)[shown].astype(str).to_numpy(),
            "number": item[shown],
            "place": place[shown],
            "prompt_variant": prompt[shown].astype(float),
            "replicate": replicate[shown],
        }
    )


def answered(plan: Plan, table: pd.DataFrame, values: np.ndarray) -> ModelData:
    """Put drawn values (0 and 1, logarithms, or bits and nats) into a table of trials and make the data of the model.

    Parameters
    ----------
    plan : Plan
    table : pandas.DataFrame
        From :func:`trials`.
    values : ndarray, shape (rows,)
    """
    measure = plan.measure
    if measure.family == "binomial":
        return accuracy_data(table.assign(**{measure.name: values}), plan)
    told = table.assign(**{measure.name: np.exp(values) if measure.logged else values})
    return quantity_data(told, plan) if measure.of == "models" else time_data(told, plan, None)
