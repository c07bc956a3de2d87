"""Tables of probes: where an answer can be read out, every layer and condition, and what the probes were like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from analysis import apa
from analysis.inside.probing import Probing
from analysis.inside.probing_fit import CONDITION
from analysis.inside.probing_intervals import RESAMPLES, Accuracies, Estimates
from analysis.report.apa_tables import ApaTable, Head, Origin
from analysis.report.filters import USED, where
from analysis.tables import Tables

SIMULTANEOUS = "95% CI of all"
CHANCE_OF_A_CONDITION = "the share of all trials that the probe takes for it"


@dataclass(frozen=True, eq=False)
class Probed:
    """One model's probes with what they get right."""

    probing: Probing
    found: Accuracies

    @property
    def name(self) -> str:
        """The model."""
        return self.probing.group

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions without all of them together."""
        return self.probing.conditions

    def first_above(self, place: int) -> int | None:
        """Return the first layer at which a condition's accuracy lies above chance, all layers and conditions taken together."""
        above = np.flatnonzero(self.found.accuracy.low_all[place] > self.found.chance[place])
        return int(above[0]) if len(above) else None

    def steepest(self, place: int) -> int | None:
        """Return the layer that adds most to a condition's accuracy; None where none adds anything."""
        gained = self.found.steps.value[place]
        return int(np.argmax(gained)) + 1 if gained.size and gained.max() > 0 else None


def overview_table(name: str, title: str, models: Sequence[Probed], tables: Tables) -> ApaTable:
    """Lay out of each model and condition the accuracy at both ends, its difference from the first condition, and where it rises."""
    rows: list[tuple[str, ...]] = []
    several = any(len(one.conditions) > 1 for one in models)
    for one in models:
        found = one.found
        last = found.accuracy.value.shape[1] - 1
        rows.append(Head([f"{one.name}, {apa.counted(last, 'layer')}, chance {_chance(one)}"]))
        for place, level in enumerate(one.conditions):
            first = one.first_above(place)
            best = one.steepest(place)
            against = (
                _with_interval(found.against, (place - 1, last), 1, together=True) if place else apa.MISSING
            )
            rows.append(
                (
                    level,
                    apa.number(100 * found.accuracy.value[place, 0], 1),
                    _with_interval(found.accuracy, (place, last), 1),
                    *((against,) if several else ()),
                    apa.MISSING if first is None else apa.count(first),
                    apa.MISSING
                    if best is None
                    else _with_interval(found.steps, (place, best - 1), 1, together=True),
                    apa.MISSING if best is None else apa.count(best),
                )
            )
    columns = ["Condition", "Layer 0", "Last layer [95% CI]", *(["Difference [95% CI]"] if several else [])]
    columns += ["Above chance from", "Largest gain [95% CI]", "at"]
    note = (
        "Percentages of held-out trials; layer 0 is the embedding. Chance: the label most frequent in training, or "
        "guessing"
        + ("" if models[0].probing.target != CONDITION else f"; in one condition, {CHANCE_OF_A_CONDITION}")
        + ". Above chance from, and at: layers. "
        + ("Difference: from the first condition, at the last layer, in points. " if several else "")
        + f"Intervals at the last layer: {models[0].found.intervals}. Those of differences and gains, and the layer from which "
        "accuracy lies above chance, hold for all layers and conditions of a model together (max-t)."
    )
    return ApaTable(name, title, tuple(columns), tuple(rows), note, _origin(models, tables))


def _chance(one: Probed) -> str:
    # of a probe that tells conditions apart, chance in one of them differs from layer to layer: the longer table has it
    chance = one.found.chance[-1:] if one.probing.target == CONDITION else one.found.chance
    low, high = (f"{apa.number(100 * end, 1)}%" for end in (chance.min(), chance.max()))
    return low if low == high else f"{low} to {high}"


def layers_table(name: str, title: str, models: Sequence[Probed], tables: Tables) -> ApaTable:
    """Lay out every layer and condition: accuracy, gain, difference, control task and selectivity, with all intervals."""
    columns = (
        *("Model", "Condition", "Layer", "Accuracy [95% CI]", SIMULTANEOUS),
        *("Gain [95% CI]", f"Gain, {SIMULTANEOUS}", "Difference [95% CI]", f"Difference, {SIMULTANEOUS}"),
        *("Control", "Selectivity [95% CI]", "Chance"),
    )
    rows = [row for one in models for row in _rows(one)]
    note = (
        "In percent and percentage points. Gain: accuracy minus that at the layer before. Difference: from the first condition. "
        "Control: accuracy with random labels, mean of the control tasks; selectivity: accuracy minus control. Intervals: "
        f"{models[0].found.intervals}; those of all hold for all layers and conditions of a model together."
    )
    return ApaTable(name, title, columns, tuple(rows), note, _origin(models, tables), drawn=True)


def _rows(one: Probed) -> Iterator[tuple[str, ...]]:
    found = one.found
    for place, level in enumerate(found.names):
        for layer in range(found.accuracy.value.shape[1]):
            compared = 0 < place < len(one.conditions)
            at, step, against = (place, layer), (place, layer - 1), (place - 1, layer)
            yield (
                one.name,
                level,
                apa.count(layer),
                _with_interval(found.accuracy, at, 1),
                _interval(found.accuracy, at, together=True),
                _with_interval(found.steps, step, 1) if layer else apa.MISSING,
                _interval(found.steps, step, together=True) if layer else apa.MISSING,
                _with_interval(found.against, against, 1) if compared else apa.MISSING,
                _interval(found.against, against, together=True) if compared else apa.MISSING,
                apa.number(100 * found.control.value[at], 1),
                _with_interval(found.selectivity, at, 1),
                apa.number(100 * found.chance[at], 1),
            )


def control_table(name: str, title: str, models: Sequence[Probed], tables: Tables) -> ApaTable:
    """Lay out of every layer what the probes were like: penalty, accuracy on training items, the same of the control tasks."""
    rows: list[tuple[str, ...]] = []
    for one in models:
        found, place = one.found, len(one.found.names) - 1
        weights = np.array([len(split.train) for split in one.probing.dealt.splits], dtype=float)
        for layer, probed in enumerate(one.probing.layers):
            learnt = (
                np.average(probed.trained_controls.mean(axis=1), weights=weights)
                if probed.trained_controls.size
                else np.nan
            )
            low, high = probed.penalties.min(), probed.penalties.max()
            rows.append(
                (
                    one.name,
                    apa.count(layer),
                    f"{low:g}" if low == high else f"{low:g} to {high:g}",
                    apa.number(100 * float(np.average(probed.trained, weights=weights)), 1),
                    apa.number(100 * found.accuracy.value[place, layer], 1),
                    apa.number(100 * float(learnt), 1),
                    _with_interval(found.control, (place, layer), 1),
                    _with_interval(found.selectivity, (place, layer), 1),
                )
            )
    columns = (
        *("Model", "Layer", "C", "Accuracy in training", "Accuracy", "Control in training"),
        *("Control [95% CI]", "Selectivity [95% CI]"),
    )
    note = (
        "Percentages of trials in all conditions. C: inverse strength of the ridge penalty, as chosen (over folds). "
        "Control: random labels, "
        + (
            "constant over the conditions of an item"
            if models[0].probing.target != CONDITION
            else "the conditions of an item shuffled among its trials"
        )
        + "; in training it says how much a probe can memorise, on held-out items it "
        "lies at chance."
    )
    return ApaTable(name, title, columns, tuple(rows), note, _origin(models, tables), drawn=True)


def _with_interval(
    estimates: Estimates, at: tuple[int, int], decimals: int, *, together: bool = False
) -> str:
    return apa.joined(
        apa.number(100 * estimates.value[at], decimals), _interval(estimates, at, decimals, together=together)
    )


def _interval(estimates: Estimates, at: tuple[int, int], decimals: int = 1, *, together: bool = False) -> str:
    low, high = (estimates.low_all, estimates.high_all) if together else (estimates.low, estimates.high)
    return apa.interval(100 * low[at], 100 * high[at], decimals)


def _origin(models: Sequence[Probed], tables: Tables) -> Origin:
    return Origin(
        columns=(
            *("work_key", "reader_group", "set", "item_id", *tables.factors),
            *("answer", "response", "choice_order", "label_map"),
        ),
        rows="those with hidden states at the prompt’s last token (states/<run>, by work_key)",
        where=(USED, where("reader_group", *(one.name for one in models))),
        computed=f"logistic regressions on the states, a layer each, tested on held-out items; {RESAMPLES:,} resamples of items",
        seed=("probing items", "reader", "what is predicted"),
        beside=("items.csv",),
    )
