"""Who answers what: the trials of a planned study of a given size, without answers.

People work through one session each. A model sees every item in every condition that the layout gives the item, once for each
prompt wording and replicate, as the lists of a study lead it to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.frames import ModelData, time_data
from analysis.plan import Plan
from analysis.quantities import quantity_data
from analysis.readers import PARTICIPANT_KINDS
from stimuli.errors import UserError, unknown_name

Layout = str
"""One of :data:`LAYOUTS`; of two factors that are laid out differently one for each, joined by a plus."""
LAYOUTS = ("latin_square", "crossed", "between_items", "between_participants")
MOST_TRIALS = 5_000_000


@dataclass(frozen=True, order=True)
class Sizes:
    """How large a study is."""

    participants: int  # 0 in a plan of models alone (`sizes_of`)
    items: int  # items that a participant sees; with a Latin square each in one condition
    prompts: int = 1  # prompt wordings given to each model
    replicates: int = 1

    @property
    def key(self) -> str:
        """Short name of the size, from which its draws are seeded."""
        return f"{self.participants}x{self.items}x{self.prompts}x{self.replicates}"


def grid(
    participants: tuple[int, ...],
    items: tuple[int, ...],
    prompts: tuple[int, ...],
    replicates: tuple[int, ...],
) -> list[Sizes]:
    """Cross the sizes, in ascending order."""
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
    """Return a layout by its name."""
    for one in name.split("+"):
        if one not in LAYOUTS:
            raise unknown_name("layout", one, LAYOUTS)
    return name


def layout_of(plan: Plan, layouts: Mapping[str, str]) -> Layout:
    """Return the layout of what a plan compares, from that of each factor; a Latin square where nothing is known."""
    factors = (plan.factor,) if plan.crossing is None else plan.crossing.factors
    found = [layouts.get(name, "latin_square") for name in factors]
    return found[0] if len(set(found)) == 1 else "+".join(found)


def laid_out(plan: Plan, layout: Layout) -> tuple[tuple[int, str], ...]:
    """Return how many levels vary and their layout; cells of two factors with one layout count together."""
    named = layout.split("+")
    if len(set(named)) == 1 and len(named) <= 2:
        return ((len(plan.levels), named[0]),)
    if plan.crossing is None or len(named) != 2:
        raise UserError(
            f"--layout is {layout!r}; {plan.name} compares {'two factors' if plan.crossing else 'one factor'}",
            mend=f"Give one of {', '.join(LAYOUTS)}{', or two joined by +' if plan.crossing else ''}.",
        )
    return tuple((len(own), one) for own, one in zip(plan.crossing.levels, named, strict=True))


def trials(plan: Plan, kinds: Mapping[str, str], sizes: Sizes, layout: Layout) -> pd.DataFrame:
    """Return a trials table of a study of this size, without answers."""
    laid = laid_out(plan, layout)
    levels = len(plan.levels)
    people = [group for group in plan.groups if kinds[group] in PARTICIPANT_KINDS]
    for many, one in laid:
        short = {"between_items": sizes.items, "between_participants": sizes.participants}.get(one, many)
        if short < many and (people or one == "between_items"):
            raise UserError(
                f"{sizes.participants} participants and {sizes.items} items cannot show {many} conditions ({one})",
                mend="Give more, or another --layout.",
            )
    machines = [group for group in plan.groups if kinds[group] not in PARTICIPANT_KINDS]
    seen = prod(many for many, one in laid if one == "crossed")
    shown = prod(many for many, one in laid if one != "between_items")
    size = sizes.items * (
        len(people) * sizes.participants * seen + len(machines) * sizes.prompts * sizes.replicates * shown
    )
    if size > MOST_TRIALS:
        raise UserError(f"a study with {size:,} trials is too large to simulate; {MOST_TRIALS:,} is the most")
    parts = [_people(group, sizes, laid) for group in people]
    parts += [_machine(group, sizes, levels, laid) for group in machines]
    table = pd.concat(parts, ignore_index=True)
    table["reader_kind"] = table["reader_group"].map(dict(kinds))
    place = table.pop("place").to_numpy()
    table[plan.factor] = np.array(plan.levels, dtype=object)[place]
    if plan.crossing is not None:
        pairs = np.array([plan.crossing.pair_of(cell) for cell in plan.levels], dtype=object)[place]
        table[list(plan.crossing.factors)] = pairs
    table["item_id"] = "i" + table.pop("number").astype(str)
    table["excluded_reason"] = None
    table["set"] = "items"
    table["trial_type"] = plan.trials or ""
    for factor, level in plan.within:
        table[factor] = level
    table["response_status"] = "valid"
    return table


def _people(group: str, sizes: Sizes, laid: tuple[tuple[int, str], ...]) -> pd.DataFrame:
    person, item = (one.ravel() for one in np.mgrid[: sizes.participants, : sizes.items])
    place = np.zeros(len(item), dtype=np.intp)
    for number, (many, layout) in enumerate(laid):
        if layout == "crossed":
            person, item, place = (np.repeat(one, many) for one in (person, item, place))
            own = np.tile(np.arange(many), len(item) // many)
        else:
            own = _own_place(person, item, number, laid)
        place = place * many + own
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


def _own_place(
    person: NDArray[np.intp], item: NDArray[np.intp], number: int, laid: tuple[tuple[int, str], ...]
) -> NDArray[np.intp]:
    """Return which level of one factor a person sees of an item; a Latin square turns within what the other factor leaves."""
    many, layout = laid[number]
    if layout == "between_items":
        return item % many
    if layout == "between_participants":
        return person % many
    others = {other: count for place, (count, other) in enumerate(laid) if place != number}
    return (person // others.get("between_participants", 1) + item // others.get("between_items", 1)) % many


def _machine(group: str, sizes: Sizes, levels: int, laid: tuple[tuple[int, str], ...]) -> pd.DataFrame:
    item, place, prompt, replicate = (
        one.ravel() for one in np.mgrid[: sizes.items, :levels, : sizes.prompts, : sizes.replicates]
    )
    replicates = sizes.replicates
    shown, rest = np.ones(len(item), dtype=bool), place
    for many, layout in reversed(laid):
        rest, own = np.divmod(rest, many)
        if layout == "between_items":
            shown &= item % many == own
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
    """Put drawn values (logarithms, or bits and nats) into trials and make the mixed model's data."""
    measure = plan.measure
    told = table.assign(**{measure.name: np.exp(values) if measure.logged else values})
    return quantity_data(told, plan) if measure.of == "models" else time_data(told, plan, None)
