"""Linear probes of hidden states, layer by layer and condition by condition (Cao et al., 2023, appendix A.3)."""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.names import plain
from analysis.tables import Tables, item_names, mapping_in
from experiment.papers.inside.chapters.layers.hidden_states import (
    LAST,
    RESULTS,
    LayersDone,
    StoredStates,
    fingerprint,
    kept_states,
    read_arrays,
    write_arrays,
)
from experiment.papers.inside.chapters.probing.probing_fit import (
    FOLDS,
    INNER_FOLDS,
    MOST_CELLS,
    TARGETS,
    UNTESTED,
    ProbedLayer,
    Settings,
    Split,
    probe_layer,
    settings_of,
)
from stimuli.errors import UserError, reason_of, unknown_name
from stimuli.seeds import stable_seed

MOST_CLASSES = 10
"""Answers of more kinds than this are no categories."""
Texts = pd.Series


def conditions_of(rows: pd.DataFrame, factors: Sequence[str]) -> Texts:
    """Name the condition of each trial by its levels; ``all`` without factors, None where a level is missing."""
    if not factors:
        return pd.Series("all", index=rows.index, dtype=object)
    named = [
        None if any(pd.isna(level) for level in levels) else ", ".join(map(str, levels))
        for levels in zip(*(rows[name] for name in factors), strict=True)
    ]
    return pd.Series(named, index=rows.index, dtype=object)


def labels_of(rows: pd.DataFrame, items: pd.DataFrame, target: str, factors: Sequence[str]) -> Texts:
    """Return the label of each trial; None where it has none."""
    if target == "condition":
        return conditions_of(rows, factors)
    answers = rows[target].astype(object).where(rows[target].notna(), None)
    if target == "response":
        answers = answers.where(rows["response_status"] == "valid", None)
    options = _options(rows, items, factors)
    if len({option for option in options if option is not None}) > 1:
        labelled = [_letter(*shown) for shown in zip(answers, options, rows["choice_order"], strict=True)]
    else:
        # which label stood for which class (``Yes=A,No=B``)
        texts = rows["label_map"].dropna().unique()
        maps = {text: dict(pair.split("=", 1) for pair in text.split(",") if "=" in pair) for text in texts}
        labelled = [
            None if answer is None else maps.get(label_map, {}).get(str(answer), str(answer))
            for answer, label_map in zip(answers, rows["label_map"], strict=True)
        ]
    labels = pd.Series(labelled, index=rows.index, dtype=object)
    return labels if 0 < labels.nunique() <= MOST_CLASSES else pd.Series(None, index=rows.index, dtype=object)


def _options(rows: pd.DataFrame, items: pd.DataFrame, factors: Sequence[str]) -> list[tuple[str, ...] | None]:
    """Return the options of each trial's item in that condition; None where it has none."""
    if "choices" not in items:
        return [None] * len(rows)
    keys = ["set", "item_id", *(name for name in factors if name in items)]
    options: dict[tuple[str, ...], tuple[str, ...]] = {}
    for *key, text in items[[*keys, "choices"]].itertuples(index=False):
        if isinstance(text, str) and (choices := json.loads(text)):
            identity = tuple(map(str, key))
            options[identity] = options[identity[:2]] = tuple(map(str, choices))
    cells = zip(*(rows[name].astype(str) for name in keys), strict=True)
    return [options.get(cell, options.get(cell[:2])) for cell in cells]


def _letter(answer: str | None, options: tuple[str, ...] | None, order: object) -> str | None:
    """Return the letter at which an answer stood; an answer that is a letter itself stays."""
    if answer is None or options is None:
        return None
    letters = string.ascii_uppercase[: len(options)]
    if answer not in options:
        return answer if len(answer) == 1 and answer in letters else None
    position = options.index(answer)
    shown = [int(number) for number in order.split(",")] if isinstance(order, str) and order else None
    return letters[shown.index(position) if shown and position in shown else position]


def codes_of(labels: Texts) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return labels as numbers, −1 for none, and the names of the numbers in alphabetical order."""
    codes, names = pd.factorize(labels.map(str, na_action="ignore"), sort=True)
    return codes.astype(np.intp), tuple(names)


Codes = NDArray[np.intp]
TRAIN = "train"
TOGETHER = ("pair", "dialogue")
"""Covariates of items that name what they share, where a study has them."""
GEOMETRY = "geometry:"
"""Operations of letter geometry, whose covariate ``group`` names what the forms of one question share."""


@dataclass(frozen=True, eq=False)
class Dealt:
    """Rows assigned to training and test."""

    splits: tuple[Split, ...]
    test_splits: tuple[str, ...]  # the data set's splits that test; empty where items are dealt to folds
    left_out: int
    training: int  # rows that would train, the most of any split

    def parts(self, rows: int) -> Codes:
        """Return which split tests each row, −1 where none does; shape (rows,)."""
        split_numbers = np.full(rows, -1, dtype=np.intp)
        for number, split in enumerate(self.splits):
            split_numbers[split.test] = number
        return split_numbers

    @property
    def is_thinned(self) -> bool:
        """Whether families were drawn for training, as all of them are too many to hold."""
        return max(len(split.train) for split in self.splits) < self.training


def families_of(rows: pd.DataFrame, items: pd.DataFrame, keep_together: Sequence[str]) -> Codes:
    """Return the family of each trial's item."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    columns = [_column(name, items) for name in keep_together]
    covariates = ["cov_group" if name == "group" else f"cov_{name}" for name in TOGETHER]
    columns += [name for name in covariates if name in items and name not in columns]
    item_keys = list(zip(rows["set"].astype(str), rows["item_id"].astype(str), strict=True))
    number = {name: index for index, name in enumerate(dict.fromkeys(item_keys))}
    keys: dict[Any, int] = {}
    edges = [
        (index, len(number) + keys.setdefault(key, len(keys)))
        for item in items.to_dict("records")
        if (index := number.get((str(item.get("set")), str(item.get("item_id"))))) is not None
        for key in _shared(item, columns)
    ]
    size = len(number) + len(keys)
    pairs = np.array(edges, dtype=np.intp).reshape(-1, 2)
    graph = coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    return np.array([component[number[name]] for name in item_keys], dtype=np.intp)


def _column(name: str, items: pd.DataFrame) -> str:
    for column in (name, f"cov_{name}"):
        if column in items:
            return column
    names = [str(column).removeprefix("cov_") for column in items]
    raise unknown_name("analysis.probing.keep_together: column of items", name, names)


def _shared(item: Mapping[Any, Any], columns: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield what an item shares with those that belong to it."""
    intact, shown = mapping_in(item.get("intact")), mapping_in(item.get("shown"))
    origin = mapping_in(item.get("provenance"))
    if origin.get("source_id") is not None:
        yield ("record", str(origin.get("source")), str(origin["source_id"]))
    if any(str(text).strip() for text in intact.values()):
        yield from (("text", str(name), str(text)) for name, text in intact.items() if str(text).strip())
    elif shown:
        yield ("shown", json.dumps(shown, sort_keys=True))
    for name in columns:
        if (value := item.get(name)) is not None and value == value:
            yield (name, str(value))
    group = item.get("cov_group")
    if str(origin.get("operation") or "").startswith(GEOMETRY) and isinstance(group, str):
        yield ("group", group)


def splits_of(rows: pd.DataFrame, items: pd.DataFrame) -> list[str | None]:
    """Return the data set's split of each trial's item; None where the item names none."""
    if "provenance" not in items:
        return [None] * len(rows)
    of_items, of_rows = (
        zip(t["set"].astype(str), t["item_id"].astype(str), strict=True) for t in (items, rows)
    )
    splits = (mapping_in(provenance).get("split") for provenance in items["provenance"])
    split_of = dict(zip(of_items, splits, strict=True))
    return [split_of.get(key) for key in of_rows]


def deal(rows: pd.DataFrame, settings: Settings, study: str, most: int) -> Dealt:
    """Assign rows (``name``, ``label``, ``family``, ``split``) to training and test, at most ``most`` to training."""
    families = rows["family"].to_numpy()

    def split(train: Codes, test: Codes) -> Split:
        train = _drawn(rows, train, study, most)
        return Split(train, test, dealt_folds(rows.iloc[train], INNER_FOLDS, (study, "probing penalty")))

    tests = _test_splits(rows["split"], settings)
    if not tests:
        folds = settings.folds or FOLDS
        n_families = len(np.unique(families))
        if n_families < folds:
            raise UserError(
                f"{n_families} independent items cannot be divided into {folds} folds",
                mend="Items of one text or pair count once. Give more of them.",
            )
        fold = dealt_folds(rows, folds, (study, "probing folds"))
        parts = [(np.flatnonzero(fold != number), np.flatnonzero(fold == number)) for number in range(folds)]
        training = max(len(train) for train, _ in parts)
        return Dealt(tuple(split(*part) for part in parts), (), 0, training)
    testing = rows["split"].isin(tests).to_numpy()
    mixed = np.isin(families, np.intersect1d(families[testing], families[~testing]))
    train, test = np.flatnonzero(~testing & ~mixed), np.flatnonzero(testing & ~mixed)
    if not len(train) or not len(test):
        raise UserError(
            f"analysis.probing.test: {', '.join(tests)} leaves no item to {'test' if len(train) else 'train'} on",
            mend="Name splits that contain some but not all items of the study.",
        )
    return Dealt((split(train, test),), tests, int(mixed.sum()), len(train))


def _test_splits(splits: Texts, settings: Settings) -> tuple[str, ...]:
    present = sorted(splits.dropna().astype(str).unique())
    for name in settings.test:
        if name not in present:
            raise unknown_name("analysis.probing.test: split of the items", name, present)
    if settings.test or settings.folds is not None:
        return settings.test
    others = tuple(name for name in present if name != TRAIN)
    return others if TRAIN in present else ()


def _drawn(rows: pd.DataFrame, train: Codes, study: str, most: int) -> Codes:
    """Return the training rows, of drawn families where they are too many."""
    if len(train) <= most:
        return train
    rows = rows.iloc[train]
    by_family = rows.groupby("family")["name"].agg(["min", "size"])
    seeds = [stable_seed(study, "probing rows", name) for name in by_family["min"]]
    by_family = by_family.assign(seed=seeds).sort_values(["seed", "min"])
    n_families = max(1, int(np.searchsorted(by_family["size"].cumsum(), most, side="right")))
    return train[rows["family"].isin(by_family.index[:n_families]).to_numpy()]


def dealt_folds(rows: pd.DataFrame, folds: int, seed: tuple[str, ...]) -> Codes:
    """Deal families of rows (``name``, ``label``, ``family``) to folds of nearly equal size and label shares."""
    counts = rows.groupby(["family", "name", "label"]).size().unstack(fill_value=0)
    profile = counts.idxmax(axis=1).groupby(level="family").agg(sorted)
    called = rows.groupby("family")["name"].min()

    def place(family: int) -> tuple[list[int], int, str]:
        return profile[family], stable_seed(*seed, called[family]), called[family]

    fold = {family: index % folds for index, family in enumerate(sorted(profile.index, key=place))}
    return rows["family"].map(fold).to_numpy(dtype=np.intp)


def control_labels(
    names: pd.Series[str], labels: Codes, parts: Codes, tasks: int, seed: tuple[str, ...]
) -> Codes:
    """Give each item a random label for all its trials, keeping the labels' counts in each part."""
    rows = pd.DataFrame({"name": names, "label": labels, "part": parts})
    counts = rows.groupby(["name", "label"]).size().reset_index(name="trials")
    # of equally frequent labels one by a hash: the first would be that of all items
    counts["hash"] = [
        stable_seed(*seed, name, "label", int(k))
        for name, k in zip(counts["name"], counts["label"], strict=True)
    ]
    counts = counts.sort_values(["trials", "hash", "label"], ascending=[False, True, True])
    label_of = dict(counts.drop_duplicates("name")[["name", "label"]].to_numpy())
    controls = np.empty((tasks, len(labels)), dtype=np.intp)
    for task in range(tasks):
        random_labels: dict[str, int] = {}
        for items in rows.groupby("part")["name"].unique():
            drawn = sorted(items, key=lambda name: (stable_seed(*seed, task, name), name))
            random_labels |= {name: label_of[other] for name, other in zip(sorted(items), drawn, strict=True)}
        controls[task] = rows["name"].map(random_labels)
    return controls


def shuffled_within(
    names: pd.Series[str], labels: Codes, keys: Sequence[str], tasks: int, seed: tuple[str, ...]
) -> Codes:
    """Shuffle labels among the trials of each item: the control where the label is the condition itself."""
    controls = np.empty((tasks, len(labels)), dtype=np.intp)
    for places in pd.Series(range(len(names))).groupby(list(names)).groups.values():
        ordered = sorted(places, key=lambda index: keys[index])
        for task in range(tasks):
            drawn = sorted(ordered, key=lambda index: stable_seed(*seed, task, keys[index]))
            controls[task, ordered] = labels[drawn]
    return controls


LAYOUT = 1
"""Another number makes what was kept before be computed again."""
_FIELDS = ("predicted", "controls", "penalties", "trained", "trained_controls")
_COUNTS = ("fits", "unconverged", "clipped")


def folder_of(states: Path, target: str, settings: Mapping[str, Any], parts: Sequence[Any]) -> Path:
    """Return the folder for the results of one probing, named by a hash of all that they are made of."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    lists = [list(part) for part in parts if not isinstance(part, np.ndarray)]
    mark = fingerprint({"layout": LAYOUT, **settings, "parts": lists}, *arrays)
    return states / RESULTS / f"probing_{plain(target)}_{mark[:16]}"


def read_layer(file: Path, rows: int) -> ProbedLayer | None:
    """Return the kept results of a layer; None where there are none, or none that can be read."""
    stored: dict[str, Any] = read_arrays(file) or {}
    if not {*_FIELDS, "counts"} <= set(stored) or stored["predicted"].shape != (rows,):
        return None
    counts = dict(zip(_COUNTS, stored["counts"].tolist(), strict=False))
    if len(counts) != len(_COUNTS):
        return None
    return ProbedLayer(**{name: stored[name] for name in _FIELDS}, **counts)


@dataclass(frozen=True, eq=False)
class Probing:
    """The results of one model's probes for one target."""

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
        """Whether each row was held out once, shape (rows,)."""
        return np.asarray(self.layers[0].predicted != UNTESTED)

    @property
    def majority(self) -> Codes:
        """The most frequent label of the rows that trained when a row was held out, shape (rows,)."""
        labels = np.full(len(self.label), UNTESTED, dtype=np.intp)
        for split in self.dealt.splits:
            labels[split.test] = np.bincount(self.label[split.train], minlength=len(self.classes)).argmax()
        return labels


@dataclass(frozen=True)
class Unprobed:
    """A model that keeps states and could not be probed."""

    group: str
    target: str
    why: str  # in words, a whole sentence


def probings(
    tables: Tables, progress: Callable[[str], None] = lambda _: None
) -> tuple[list[Probing], list[Unprobed]]:
    """Probe every model of a study that kept the states of its prompts' last tokens."""
    settings = settings_of(tables.dictionary.get("probing"))
    if settings is None:
        return [], []
    probed: list[Probing] = []
    failed: list[Unprobed] = []
    models = kept_states(tables, LAST)
    for target in settings.predict:
        if target not in TARGETS:
            raise unknown_name("analysis.probing.predict:", target, TARGETS)
        for states in models:
            result = _probed(states, tables, target, settings, progress)
            if isinstance(result, Probing):
                probed.append(result)
            else:
                failed.append(result)
    return probed, failed


def _probed(
    states: StoredStates, tables: Tables, target: str, settings: Settings, progress: Callable[[str], None]
) -> Probing | Unprobed:
    study = str(tables.dictionary["study"])
    factors = [name for name in tables.factors if states.rows[name].notna().any()]
    labels = labels_of(states.rows, tables.items, target, factors)
    conditions = conditions_of(states.rows, factors)
    if not labels.notna().any():
        no_answers = "Answers are free texts, or of more than ten kinds."
        why = "The study has no conditions." if target == "condition" else no_answers
        return Unprobed(states.group, target, why)
    usable = labels.notna() & conditions.notna()
    left_out = _counted((~usable).sum(), "without an answer among the options or without a condition")
    everyone = families_of(states.rows, tables.items, settings.keep_together)
    independent = pd.Series(everyone).groupby(labels.where(usable)).nunique()
    for name in independent.index[independent < (settings.folds or FOLDS)]:
        left_out += _counted((usable & (labels == name)).sum(), f"whose label is {name}, of too few items")
        usable &= labels != name
    if labels[usable].nunique() < 2:
        return Unprobed(states.group, target, "Fewer than two answers have enough independent items.")
    where = np.flatnonzero(usable.to_numpy())
    rows = states.rows.iloc[where]
    label, classes = codes_of(labels.iloc[where])
    names, families = item_names(rows), everyone[where]
    answers = label if target == "answer" else codes_of(labels_of(rows, tables.items, "answer", factors))[0]
    columns = {"name": names, "label": answers, "family": families, "split": splits_of(rows, tables.items)}
    try:
        dealt = deal(pd.DataFrame(columns), settings, study, max(1, MOST_CELLS // states.width))
    except UserError as error:
        if settings.test:
            raise
        why = reason_of(error)
        return Unprobed(states.group, target, f"{why[0].upper()}{why[1:]}.")
    left_out += _counted(dealt.left_out, "of items that belong together with some of another split")
    keys = rows["work_key"].astype(str).tolist()
    seed = (study, "probing control")
    controls = (
        shuffled_within(names, label, keys, settings.controls, seed)
        if target == "condition"
        else control_labels(names, label, dealt.parts(len(label)), settings.controls, seed)
    )
    ordered, condition = _ordered(conditions.iloc[where].tolist(), tables, factors)
    probing = Probing(
        states.group,
        target,
        classes,
        ordered,
        label,
        condition,
        np.unique(families, return_inverse=True)[1].astype(np.intp),
        controls,
        names.nunique(),
        len(np.unique(families)),
        dealt,
        (),
        states.width,
        tuple(left_out),
        kept=False,
    )
    return _with_layers(probing, states, settings, where, keys, progress)


def _with_layers(
    probing: Probing,
    states: StoredStates,
    settings: Settings,
    where: Codes,
    keys: Sequence[str],
    progress: Callable[[str], None],
) -> Probing:
    """Probe layer after layer; those that are kept are read."""
    label, controls, dealt, target = probing.label, probing.controls, probing.dealt, probing.target
    parts = [part for split in dealt.splits for part in (split.train, split.test, split.inner)]
    used = {**asdict(settings), "layers": states.layers, "width": states.width}
    folder = folder_of(states.folder, target, used, [keys, label, controls, *parts])
    layers: list[ProbedLayer] = []
    is_kept = True
    task = f"probing {states.group} ({TARGETS[target]})"
    for number in range(states.layers):
        file = folder / f"layer_{number:02d}.npz"
        before = read_layer(file, len(label))
        if before is None:
            progress(LayersDone(task, number, states.layers))
            before = probe_layer(
                lambda places, number=number: states.layer(number, where[places]),  # type: ignore[misc]
                label,
                controls,
                dealt.splits,
                settings.penalties,
            )
            arrays = {name: getattr(before, name) for name in _FIELDS}
            is_kept &= write_arrays(
                file, arrays | {"counts": np.array([getattr(before, name) for name in _COUNTS])}
            )
        layers.append(before)
    return replace(probing, layers=tuple(layers), kept=is_kept)


def _counted(count: int, reason: str) -> list[str]:
    return [f"{count:,} trial{'' if count == 1 else 's'} {reason}"] if count else []


def _ordered(
    conditions: Sequence[str], tables: Tables, factors: Sequence[str]
) -> tuple[tuple[str, ...], Codes]:
    """Return the conditions that occur in the order of the study's levels, and each row's place among them."""
    present = set(conditions)
    crossed = [", ".join(levels) for levels in product(*(tables.factors[name] for name in factors))]
    ordered = [condition for condition in crossed if condition in present] if factors else ["all"]
    ordered += sorted(present - set(ordered))
    return tuple(ordered), pd.Categorical(pd.Series(conditions, dtype=object), ordered).codes.astype(np.intp)
