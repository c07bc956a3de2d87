"""What a model's hidden states tell of an answer, layer by layer and condition by condition (Cao et al., 2023, appendix A.3).

One probe a layer is trained on items in all conditions together and tested on held-out items, each condition by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.inside.kept import LAST, Kept, kept_states
from analysis.inside.layers_done import LayersDone
from analysis.inside.probing_fit import MOST_CELLS, UNTESTED, ProbedLayer, probe_layer
from analysis.inside.probing_folds import (
    Dealt,
    control_labels,
    deal,
    families_of,
    shuffled_within,
    splits_of,
)
from analysis.inside.probing_kept import folder_of, keep_layer, read_layer
from analysis.inside.probing_labels import codes_of, conditions_of, labels_of
from analysis.inside.probing_settings import FOLDS, TARGETS, Settings, settings_of
from analysis.tables import Tables, item_names
from stimuli.errors import UserError, reason_of, unknown_name

Codes = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Probing:
    """What the probes of one model gave for one target."""

    group: str  # the model
    target: str  # ``answer``, ``response`` or ``condition``
    classes: tuple[str, ...]  # labels that are told apart; conditions in the order of the study
    conditions: tuple[str, ...]
    label: Codes  # shape (rows,): of each row (a trial)
    condition: Codes  # shape (rows,)
    family: Codes  # shape (rows,)
    controls: Codes  # shape (control tasks, rows): random labels
    items: int  # items of these rows, and those that are independent of each other
    families: int
    dealt: Dealt
    layers: tuple[ProbedLayer, ...]  # from the embedding on
    width: int
    left_out: tuple[str, ...]  # which trials are not among the rows, and why, in words
    kept: bool  # whether results lie beside the states

    @property
    def tested(self) -> NDArray[np.bool_]:
        """Which rows were held out once, shape (rows,)."""
        return np.asarray(self.layers[0].predicted != UNTESTED)

    @property
    def majority(self) -> Codes:
        """The most frequent label of the rows that trained when a row was held out, shape (rows,)."""
        found = np.full(len(self.label), UNTESTED, dtype=np.intp)
        for split in self.dealt.splits:
            found[split.test] = np.bincount(self.label[split.train], minlength=len(self.classes)).argmax()
        return found


@dataclass(frozen=True)
class Unprobed:
    """A model that keeps states and could not be probed."""

    group: str
    target: str
    why: str  # in words, a whole sentence


def probings(
    tables: Tables, told: Callable[[str], None] = lambda _: None
) -> tuple[list[Probing], list[Unprobed]]:
    """Probe every model of a study that kept the states of its prompts' last tokens."""
    settings = settings_of(tables.dictionary.get("probing"))
    if settings is None:
        return [], []
    found: list[Probing] = []
    failed: list[Unprobed] = []
    models = kept_states(tables, LAST)
    for target in settings.predict:
        if target not in TARGETS:
            raise unknown_name("analysis.probing.predict:", target, TARGETS)
        for kept in models:
            one = _probed(kept, tables, target, settings, told)
            if isinstance(one, Probing):
                found.append(one)
            else:
                failed.append(one)
    return found, failed


def _probed(
    kept: Kept, tables: Tables, target: str, settings: Settings, told: Callable[[str], None]
) -> Probing | Unprobed:
    study = str(tables.dictionary["study"])
    factors = [name for name in tables.factors if kept.rows[name].notna().any()]
    labels = labels_of(kept.rows, tables.items, target, factors)
    conditions = conditions_of(kept.rows, factors)
    if not labels.notna().any():
        return Unprobed(kept.group, target, _no_labels(target))
    usable = labels.notna() & conditions.notna()
    left_out = _counted(int((~usable).sum()), "without an answer among the options or without a condition")
    everyone = families_of(kept.rows, tables.items, settings.keep_together)
    rare = _rare(labels.where(usable), everyone, settings)
    left_out += [
        text
        for name in rare
        for text in _counted(
            int((usable & (labels == name)).sum()), f"whose label is {name}, of too few items"
        )
    ]
    usable &= ~labels.isin(rare)
    if labels[usable].nunique() < 2:
        return Unprobed(kept.group, target, "Fewer than two answers have enough independent items.")
    where = np.flatnonzero(usable.to_numpy())
    rows = kept.rows.iloc[where]
    label, classes = codes_of(labels.iloc[where])
    names = item_names(rows).tolist()
    families = everyone[where]
    try:
        dealt = deal(
            names,
            codes_of(labels_of(rows, tables.items, "answer", factors))[0] if target != "answer" else label,
            families,
            splits_of(rows, tables.items).tolist(),
            settings,
            study,
            max(1, MOST_CELLS // kept.width),
        )
    except UserError as error:
        if settings.test:
            raise
        return Unprobed(kept.group, target, _sentence(reason_of(error)))
    left_out += _counted(dealt.left_out, "of items that belong together with some of another split")
    keys = rows["work_key"].astype(str).tolist()
    seed = (study, "probing control")
    controls = (
        shuffled_within(names, label, keys, settings.controls, seed)
        if target == "condition"
        else control_labels(names, label, dealt.parts(len(label)), settings.controls, seed)
    )
    layers, is_kept = _layers(kept, target, settings, where, label, controls, dealt, keys, told)
    ordered, condition = _ordered(conditions.iloc[where].tolist(), tables, factors)
    return Probing(
        kept.group,
        target,
        classes,
        ordered,
        label,
        condition,
        np.unique(families, return_inverse=True)[1].astype(np.intp),
        controls,
        len(set(names)),
        len(np.unique(families)),
        dealt,
        layers,
        kept.width,
        tuple(left_out),
        is_kept,
    )


def _layers(
    kept: Kept,
    target: str,
    settings: Settings,
    where: Codes,
    label: Codes,
    controls: Codes,
    dealt: Dealt,
    keys: Sequence[str],
    told: Callable[[str], None],
) -> tuple[tuple[ProbedLayer, ...], bool]:
    """Probe layer after layer; those that are kept are read."""
    parts = [part for one in dealt.splits for part in (one.train, one.test, one.inner)]
    folder = folder_of(
        kept.folder,
        target,
        {**asdict(settings), "layers": kept.layers, "width": kept.width},
        [keys, label, controls, *parts],
    )
    found: list[ProbedLayer] = []
    is_kept = True
    what = f"probing {kept.group} ({TARGETS[target]})"
    begun, computed = time.monotonic(), 0
    for number in range(kept.layers):
        before = read_layer(folder, number, len(label))
        if before is None:
            seconds = (time.monotonic() - begun) / computed if computed else None
            told(LayersDone.before(what, number, kept.layers, seconds))
            before = probe_layer(
                lambda places, number=number: kept.layer(number, where[places]),  # type: ignore[misc]
                label,
                controls,
                dealt.splits,
                settings.penalties,
            )
            computed += 1
            is_kept &= keep_layer(folder, number, before)
        found.append(before)
    return tuple(found), is_kept


def _rare(labels: pd.Series[Any], families: Codes, settings: Settings) -> list[str]:
    """Return the labels of fewer independent items than there are parts to deal them to."""
    told = pd.DataFrame({"label": labels, "family": families}).dropna()
    many = told.groupby("label")["family"].nunique()
    return [str(name) for name, count in many.items() if count < (settings.folds or FOLDS)]


def _no_labels(target: str) -> str:
    if target == "condition":
        return "The study has no conditions."
    return "Answers are free texts, or of more than ten kinds."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _counted(many: int, what: str) -> list[str]:
    return [f"{many:,} trial{'' if many == 1 else 's'} {what}"] if many else []


def _ordered(
    conditions: Sequence[str], tables: Tables, factors: Sequence[str]
) -> tuple[tuple[str, ...], Codes]:
    """Return the conditions that occur in the order of the study's levels, and each row's place among them."""
    there = set(conditions)
    crossed = [", ".join(levels) for levels in product(*(tables.factors[name] for name in factors))]
    named = [one for one in crossed if one in there] if factors else ["all"]
    named += sorted(there - set(named))
    place = {name: number for number, name in enumerate(named)}
    return tuple(named), np.array([place[one] for one in conditions], dtype=np.intp)
