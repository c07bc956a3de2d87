"""Draw studies of a given size and analyse each as planned; layouts decide who answers what."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis import apa
from analysis.arrays import Array, Index, Mask
from analysis.contrasts import compared
from analysis.crossed_variance import EstimateLayout as Units
from analysis.crossed_variance import ItemAnswers, estimate, model_means
from analysis.estimation import analyse
from analysis.frames import ModelData, quantity_data, time_data
from analysis.mixed import Fit
from analysis.mixed.fitting import fit_model, make_model
from analysis.mixed.result import Model
from analysis.multiple_comparisons import adjusted
from analysis.plan import (
    MEASURES,
    OF_MODELS,
    OF_REGIONS,
    RATING,
    LevelDifference,
    Plan,
    PlanFault,
    read_bound,
)
from analysis.planned import plans
from analysis.power.assumptions import Assumptions, sides
from analysis.processes import run_tasks
from analysis.readers import PARTICIPANT_KINDS
from analysis.results import Contrast
from analysis.shares import Means, contrast_in_points, sums_of_readers
from analysis.tables import Tables, TableSource
from stimuli.errors import UserError, error_at, unknown_name
from stimuli.seeds import stable_seed

Layout = str
"""One of :data:`LAYOUTS`; of two factors that are laid out differently one for each, joined by a plus."""
LAYOUTS = ("latin_square", "crossed", "between_items", "between_participants")
MOST_TRIALS = 5_000_000


@dataclass(frozen=True, order=True)
class Sizes:
    """The size of a study."""

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
    minimum = {"participants": 2, "items": 2, "prompts": 1, "replicates": 1}
    sizes = {"participants": participants, "items": items, "prompts": prompts, "replicates": replicates}
    for name, numbers in sizes.items():
        if not numbers:
            raise UserError(f"no number of {name} is given", mend=f"For example --{name} 20,40,60.")
        for number in numbers:
            if number < minimum[name]:
                raise UserError(f"{name}: {number} is too few; {minimum[name]} is the least")
    return [Sizes(*size) for size in sorted(set(product(participants, items, prompts, replicates)))]


def sizes_of(plan: Plan, kinds: Mapping[str, str], sizes: list[Sizes]) -> list[Sizes]:
    """Return the sizes that differ for a plan: one of models alone has no participants, and surprisal no repeats.

    A text's surprisal does not depend on what is asked afterwards: all variants and replicates give one value.
    """
    if any(kinds.get(group) in PARTICIPANT_KINDS for group in plan.groups):
        return sizes
    if plan.measure.kind in ("surprisal", "entropy"):
        sizes = [replace(size, prompts=1, replicates=1) for size in sizes]
    return sorted({replace(size, participants=0) for size in sizes})


def layout_named(name: str) -> Layout:
    """Return a layout by its name."""
    for part in name.split("+"):
        if part not in LAYOUTS:
            raise unknown_name("layout", part, LAYOUTS)
    return name


def layout_of(plan: Plan, layouts: Mapping[str, str]) -> Layout:
    """Return the layout of a plan's comparison, from that of each factor; a Latin square if nothing is known."""
    factors = (plan.factor,) if plan.crossing is None else plan.crossing.factors
    factor_layouts = [layouts.get(name, "latin_square") for name in factors]
    return factor_layouts[0] if len(set(factor_layouts)) == 1 else "+".join(factor_layouts)


def laid_out(plan: Plan, layout: Layout) -> tuple[tuple[int, str], ...]:
    """Return how many levels vary and their layout; cells of two factors with one layout count together."""
    parts = layout.split("+")
    if len(set(parts)) == 1 and len(parts) <= 2:
        return ((len(plan.levels), parts[0]),)
    if plan.crossing is None or len(parts) != 2:
        raise UserError(
            f"--layout is {layout!r}; {plan.name} compares {'two factors' if plan.crossing else 'one factor'}",
            mend=f"Give one of {', '.join(LAYOUTS)}{', or two joined by +' if plan.crossing else ''}.",
        )
    return tuple((len(levels), part) for levels, part in zip(plan.crossing.levels, parts, strict=True))


def trials(plan: Plan, kinds: Mapping[str, str], sizes: Sizes, layout: Layout) -> pd.DataFrame:
    """Return a trials table of a study of this size, without answers."""
    dimensions = laid_out(plan, layout)
    levels = len(plan.levels)
    people, machines = sides(plan, kinds)
    for n_levels, part in dimensions:
        n_shown = {"between_items": sizes.items, "between_participants": sizes.participants}.get(
            part, n_levels
        )
        if n_shown < n_levels and (people or part == "between_items"):
            raise UserError(
                f"{sizes.participants} participants and {sizes.items} items cannot show {n_levels} conditions ({part})",
                mend="Give more, or another --layout.",
            )
    seen = prod(n_levels for n_levels, part in dimensions if part == "crossed")
    shown = prod(n_levels for n_levels, part in dimensions if part != "between_items")
    size = sizes.items * (
        len(people) * sizes.participants * seen + len(machines) * sizes.prompts * sizes.replicates * shown
    )
    if size > MOST_TRIALS:
        raise UserError(f"a study with {size:,} trials is too large to simulate; {MOST_TRIALS:,} is the most")
    parts = [_people(group, sizes, levels, dimensions) for group in people]
    parts += [_machine(group, sizes, levels, dimensions) for group in machines]
    table = pd.concat(parts, ignore_index=True)
    table["reader_kind"] = table["reader_group"].map(dict(kinds))
    level_code = table.pop("place").to_numpy()
    table[plan.factor] = np.array(plan.levels, dtype=object)[level_code]
    if plan.crossing is not None:
        pairs = np.array([plan.crossing.pair_of(cell) for cell in plan.levels], dtype=object)[level_code]
        table[list(plan.crossing.factors)] = pairs
    table["item_id"] = "i" + table.pop("number").astype(str)
    table["excluded_reason"] = None
    table["set"] = "items"
    table["trial_type"] = plan.trials or ""
    for factor, level in plan.within:
        table[factor] = level
    table["response_status"] = "valid"
    return table


Places = Index


def _people(group: str, sizes: Sizes, levels: int, dimensions: tuple[tuple[int, str], ...]) -> pd.DataFrame:
    person, item, level = (axis.ravel() for axis in np.mgrid[: sizes.participants, : sizes.items, :levels])
    shown = _shown(item, level, dimensions, person)
    reader = pd.Series(person[shown]).map(lambda number: f"{group}{number}")
    table = pd.DataFrame(
        {"reader": reader, "session_id": reader, "number": item[shown], "place": level[shown]}
    )
    return table.assign(reader_group=group, prompt_variant=np.nan, replicate=0)


def _machine(group: str, sizes: Sizes, levels: int, dimensions: tuple[tuple[int, str], ...]) -> pd.DataFrame:
    item, level, prompt, replicate = (
        axis.ravel() for axis in np.mgrid[: sizes.items, :levels, : sizes.prompts, : sizes.replicates]
    )
    session = pd.Series(prompt * sizes.replicates + replicate).astype(str)
    table = pd.DataFrame({"session_id": session, "number": item, "place": level, "replicate": replicate})
    table = table.assign(reader_group=group, reader=group, prompt_variant=prompt.astype(float))
    return table[_shown(item, level, dimensions)]


def _shown(
    item: Places, level: Places, dimensions: tuple[tuple[int, str], ...], person: Places | None = None
) -> Mask:
    """Mark the trials that a layout has; a Latin square turns within what the other factor leaves, and models see all of it."""
    shown, remaining = np.ones(len(item), dtype=bool), level
    counts = {layout: n_levels for n_levels, layout in dimensions}
    for n_levels, layout in reversed(dimensions):
        remaining, index = np.divmod(remaining, n_levels)
        if layout == "between_items":
            shown &= index == item % n_levels
        elif layout == "between_participants" and person is not None:
            shown &= index == person % n_levels
        elif layout == "latin_square" and person is not None:
            turn = person // counts.get("between_participants", 1) + item // counts.get("between_items", 1)
            shown &= index == turn % n_levels
    return shown


def answered(plan: Plan, table: pd.DataFrame, values: np.ndarray) -> ModelData:
    """Put drawn values (logarithms, or bits and nats) into trials and make the mixed model's data.

    Trials are drawn as those that the plan's exclusions leave.
    """
    plan, measure = replace(plan, exclude={}), plan.measure
    with_values = table.assign(**{measure.name: np.exp(values) if measure.logged else values})
    return quantity_data(with_values, plan) if measure.of == "models" else time_data(with_values, plan, None)


_COLUMNS = ("excluded_reason", "reader_group", "reader_kind", "response_status")


def planned_of(
    planned: Mapping[str, Any],
    factors: Mapping[str, Collection[str]],
    *,
    only: Collection[str] = (),
    equivalence: str | None = None,
    own_measures: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[list[Plan], list[str]]:
    """Read the planned analyses of a study before it has data; ``own_measures`` as its dictionary has them."""
    if not planned:
        raise UserError(
            "the study plans no analysis, so there is nothing to find",
            mend="Write `analysis: planned:` into study.yaml: measure, compare, between, contrasts.",
        )
    keys = {name: name if name in planned else name.partition(" (")[0] for name in only}
    for name, key in keys.items():
        if key not in planned:
            raise unknown_name("planned analysis", name, planned)
    dictionary = {
        "planned": {name: spec for name, spec in planned.items() if not only or name in keys.values()},
        "factors": {
            name: {"levels": list(levels), "reference": next(iter(levels))}
            for name, levels in factors.items()
        },
        "own_measures": own_measures,
    }
    nowhere = Path()
    empty = pd.DataFrame(columns=[*_COLUMNS, *factors], dtype=object)
    tables = Tables(
        empty, pd.DataFrame(), dictionary, TableSource(nowhere, nowhere, None, None, dictionary, {})
    )
    selected, remarks = [], []
    read = plans(tables)
    for name, key in keys.items():
        if name != key and name not in {plan.name for plan in read}:
            raise unknown_name("planned analysis", name, [plan.name for plan in read])
    for plan in read:
        if only and plan.name not in only and plan.key not in only:
            continue
        if plan.measure.kind not in {*MEASURES, *OF_MODELS, *OF_REGIONS, RATING.name}:
            remarks.append(
                f"{plan.name} is left out: {plan.measure.noun} cannot be simulated; accuracy, ratings, log times and what models "
                "have can."
            )
            continue
        without = [
            group for group in plan.groups if plan.measure.of == "people" and group not in PARTICIPANT_KINDS
        ]
        if without:
            reason = f"models have no {plan.measure.noun}"
            plan = replace(plan, groups=tuple(group for group in plan.groups if group not in without))
            if not plan.groups:
                remarks.append(f"{plan.name} is left out: {reason}.")
                continue
            remarks.append(
                f"{plan.name}: {reason}, so only people are simulated, without {apa.listing(without)}."
            )
        if plan.covariates:
            remarks.append(
                f"{plan.name} is simulated without its covariates ({apa.listing(list(plan.covariates))}), whose variance is in the "
                "residuals here."
            )
            plan = replace(plan, covariates=())
        if plan.formula is not None:
            if plan.measure.family != "binomial":
                remarks.append(
                    f"{plan.name} has its own formula; power is that of the model that wrods builds for the design."
                )
            plan = replace(plan, formula=None, fallback=None)
        family = [other.name for other in read if plan.name != other.name and is_joined(plan, other)]
        if family:
            remarks.append(
                f"{plan.name} is adjusted together with {', '.join(family)} in a report; here its tests are adjusted by themselves, "
                "so that the power is a little too high."
            )
        if plan.measure == RATING:
            remarks.append(
                f"{plan.name}: ratings are drawn as normal values that no scale ends; where many ratings are at an end, effects "
                "and spreads are smaller than assumed."
            )
        if equivalence is not None:
            try:
                plan = replace(plan, equivalence=read_bound(equivalence, [plan.measure]))
            except PlanFault as fault:
                raise error_at("--equivalence", *fault.args) from None
        selected.append(plan)
    if not selected:
        raise UserError("no planned analysis can be simulated", mend=" ".join(remarks))
    return selected, remarks


def is_joined(plan: Plan, other: Plan) -> bool:
    """Whether two planned analyses are adjusted as one family: by name, or as those of one measure."""
    if plan.family or other.family:
        return plan.family == other.family
    return plan.measure.kind == other.measure.kind


@dataclass(frozen=True)
class SimulationQuestion:
    """Everything that determines a simulated study except its size and number."""

    plan: Plan
    assumptions: Assumptions
    layout: Layout
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in a fixed order."""
        plan = self.plan
        return {
            "measure": plan.measure.name,
            "factor": plan.factor,
            "levels": list(plan.levels),
            "groups": list(plan.groups),
            "contrasts": [contrast.label for contrast in plan.contrasts],
            "assumptions": self.assumptions.to_json(),
            "layout": self.layout,
            "seed": self.seed,
        }


@dataclass(frozen=True)
class SimulatedContrast:
    """The result of one contrast in one study."""

    difference: LevelDifference
    groups: tuple[str, ...]  # the reader group, or the two whose differences are compared
    estimate: float  # in percentage points, as a logarithm, or in the measure's unit
    se: float
    p: float  # unadjusted
    significant: bool  # whether the adjusted p lies below the plan's level
    equivalent: bool | None = None  # whether equivalence is concluded; None if the plan has no bound for it


@dataclass(frozen=True)
class SimulatedStudy:
    """One simulated study."""

    sizes: Sizes
    number: int  # which of the studies of that size, from 0
    found: tuple[SimulatedContrast, ...]  # contrasts that the data determine
    fitted: bool = True  # of the reported mixed model; an estimate in percentage points needs none
    converged: bool = True
    singular: bool = False
    steps: int = 1  # fits on the way to it; more than one where the random structure was reduced


_Asked = tuple[NDArray[Any], ...]
"""Items, conditions and prompt variants of a model's answers, each of shape (answers,)."""


class SimulatedDesign:
    """A planned study of one size, ready to be simulated again and again."""

    def __init__(self, question: SimulationQuestion, sizes: Sizes) -> None:
        self.question, self.sizes = question, sizes
        self.table = trials(question.plan, question.assumptions.kinds, sizes, question.layout)
        self._models: dict[str, Model] = {}

    @cached_property
    def data(self) -> ModelData:
        """The data of a mixed model, with normal noise instead of answers."""
        noise = np.random.default_rng(stable_seed("power", "placed")).normal(size=len(self.table))
        return answered(self.question.plan, self.table, noise)

    @cached_property
    def cells(self) -> tuple[Index, list[tuple[str, str]]]:
        """Reader group and condition of each trial, as a place among those that occur."""
        pairs = pd.MultiIndex.from_frame(self.table[["reader_group", self.question.plan.factor]])
        codes, cells = pairs.factorize()
        return codes, [(str(group), str(level)) for group, level in cells]

    @cached_property
    def eta(self) -> Array:
        """The fixed part of the linear predictor, shape (trials,)."""
        codes, cells = self.cells
        return np.array([self.question.assumptions.cells[cell] for cell in cells], dtype=float)[codes]

    @cached_property
    def effects(self) -> list[tuple[Index, int, Array, Array]]:
        """Random effects to draw: level of each trial, number of levels, columns (trials, k), square root of the covariance."""
        plan, truth = self.question.plan, self.question.assumptions
        codes, cells = self.cells
        terms = []
        for term in truth.variance:
            units = pd.MultiIndex.from_arrays(self._units(term.group)).factorize()
            z = np.array([truth.columns(term, plan, group, level) for group, level in cells])[codes]
            sizes, axes = np.linalg.eigh(term.cov)
            terms.append((units[0], len(units[1]), z, axes * np.sqrt(np.clip(sizes, 0.0, None))))
        return terms

    def _units(self, group: str) -> list[Any]:
        """Return the columns that tell the levels of a grouping factor apart."""
        columns = {
            "participant": ["reader"],
            "item": ["item_id"],
            "item_condition": ["item_id", self.question.plan.factor],
            "item_reader": ["item_id", "reader_group"],
            "item_cell": ["item_id", "reader_group", self.question.plan.factor],
            "prompt": ["reader_group", "prompt_variant"],
            "model_session": ["reader_group", "session_id"],
        }[group]
        return [self.table[name].fillna(-1) for name in columns]

    def draw(self, number: int | str) -> Array:
        """Draw the answers of one study: 0 and 1, logarithms, or points, bits and nats, shape (trials,)."""
        question = self.question
        seed = stable_seed("power", question.seed, question.plan.name, self.sizes.key, number)
        rng = np.random.default_rng(seed)
        eta = self.eta.copy()
        for codes, count, z, root in self.effects:
            b = rng.normal(size=(count, root.shape[1])) @ root.T
            eta += np.einsum("nk,nk->n", z, b[codes])
        if question.plan.measure.family == "binomial":
            return (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
        return np.asarray(eta + rng.normal(scale=question.assumptions.sigma or 0.0, size=len(eta)))

    def simulate(self, number: int) -> SimulatedStudy:
        """Draw one study and analyse it as a report does."""
        values = self.draw(number)
        if self.question.plan.measure.of_means:
            return SimulatedStudy(self.sizes, number, self._estimated(values))
        plan, data = self.question.plan, self.data
        analysis = analyse(plan, data, engine=self._engine(values))
        model = analysis.model
        if model is None:
            return SimulatedStudy(self.sizes, number, (), fitted=False, converged=False, steps=0)
        contrasts = _found(plan, analysis.contrasts)
        return SimulatedStudy(
            self.sizes, number, contrasts, True, model.converged, model.singular, len(model.steps)
        )

    def _engine(self, values: Array) -> Callable[..., Fit]:
        """Return a replacement for ``fit``: the same model with these answers, its matrices made once."""

        def engine(formula: str, rows: pd.DataFrame, **settings: Any) -> Fit:
            if formula not in self._models:
                self._models[formula] = make_model(formula, rows, **settings)
            model = self._models[formula]
            return fit_model(replace(model, frame=replace(model.frame, y=values)))

        return engine

    @cached_property
    def _readers(self) -> tuple[Units, dict[str, tuple[Index, ItemAnswers | _Asked]]]:
        """Return what all estimates share, and the rows of each reader group with what is known about them before the answers."""
        plan, table = self.question.plan, self.table
        people = table["reader_kind"].isin(PARTICIPANT_KINDS)
        item, items = pd.factorize(table["item_id"])
        reader, readers = pd.factorize(table["reader"].where(people))
        units = Units(plan.levels, tuple(items), tuple(readers))
        condition = pd.Categorical(table[plan.factor], plan.levels).codes.astype(np.intp)
        by_group: dict[str, tuple[Index, ItemAnswers | _Asked]] = {}
        for group in plan.groups:
            rows = np.flatnonzero(table["reader_group"] == group)
            if people.iloc[rows].any():
                empty = np.zeros(len(rows))
                by_group[group] = rows, ItemAnswers(units, empty, reader[rows], item[rows], condition[rows])
            else:
                answers = table.iloc[rows]
                columns = tuple(
                    answers[name].to_numpy() for name in ("item_id", plan.factor, "prompt_variant")
                )
                by_group[group] = rows, columns
        return units, by_group

    def _estimated(self, values: Array) -> tuple[SimulatedContrast, ...]:
        """Estimate the planned contrasts in percentage points or points of a scale, adjusted as one family."""
        plan = self.question.plan
        people: dict[str, ItemAnswers] = {}
        models: dict[str, Means] = {}
        units, readers = self._readers
        for group, (rows, design) in readers.items():
            if isinstance(design, ItemAnswers):
                people[group] = replace(design, value=values[rows])
            else:
                item, shown, variant = design
                models[group] = Means(*model_means(values[rows], item, shown, variant, units))
        sums_by_groups = {
            groups: sums_of_readers(groups, people, models, units) for groups in compared(plan.groups)
        }
        contrasts = [
            contrast_in_points(difference, groups, plan, estimated)
            for difference in plan.contrasts
            for groups, sums in sums_by_groups.items()
            if (estimated := estimate(sums, plan.weights(difference), fixed_items=plan.items == "fixed"))
            is not None
        ]
        return _found(plan, adjusted([(plan, contrasts)])[0])


def _found(plan: Plan, contrasts: Iterable[Contrast]) -> tuple[SimulatedContrast, ...]:
    """Keep what a study says of the contrasts that its data determine."""
    return tuple(
        SimulatedContrast(
            LevelDifference(contrast.first, contrast.second, at=contrast.at),
            contrast.groups,
            contrast.estimate,
            contrast.se,
            contrast.p,
            bool(contrast.p_adjusted < plan.alpha),
            None if contrast.equivalence is None else contrast.equivalence.equivalent,
        )
        for contrast in contrasts
        if contrast.estimable
    )


Task = tuple[Sizes, range]
"""Numbers of studies of one size."""

Progress = Callable[[int, int], None]
"""Called with the studies done and those in all."""

BATCH = 20
"""Studies that a process simulates before it asks for more."""


def simulate(
    question: SimulationQuestion,
    grid: Sequence[Sizes],
    studies: int,
    *,
    processes: int = 1,
    progress: Progress | None = None,
) -> list[SimulatedStudy]:
    """Simulate the studies of a grid."""
    if studies < 1:
        raise UserError(f"studies is {studies}; at least one can be simulated", mend="1000 is usual.")
    if processes < 1:
        raise UserError(f"processes is {processes}; at least one is needed")
    tasks = [
        (sizes, range(first, min(first + BATCH, studies)))
        for sizes in grid
        for first in range(0, studies, BATCH)
    ]
    results: list[SimulatedStudy] = []
    for outcomes in run_tasks(_simulate, pickle.dumps(question), tasks, processes):
        results += outcomes
        if progress is not None:
            progress(len(results), len(grid) * studies)
    return sorted(results, key=lambda study: (study.sizes, study.number))


def _simulate(packed: bytes, task: Task) -> list[SimulatedStudy]:
    """Simulate some studies of a size."""
    sizes, numbers = task
    study = _study(packed, sizes)
    return [study.simulate(number) for number in numbers]


@lru_cache(maxsize=1)
def _study(packed: bytes, sizes: Sizes) -> SimulatedDesign:
    """Return the study that is being simulated, replaced when the question or the size changes."""
    return SimulatedDesign(pickle.loads(packed), sizes)
