"""The hidden states that a study has kept, results computed from them, and progress over their layers."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.readers import group_order
from analysis.tables import Tables, as_frame, column_names, found_above, read_columns
from stimuli.errors import UserError
from stimuli.files import replacing

LAST, MEAN, REGIONS = "last", "mean", "regions"
"""The prompt's last token; the mean over all its tokens; the mean over the words read of which states were kept."""

INDEX = "index.parquet"
_PLACE = ["session_id", "trial_index", "attempt"]


@dataclass(frozen=True, eq=False)
class StoredStates:
    """Hidden states of one model at one position of its prompts."""

    run: str
    group: str  # ``reader_group`` of the trials: one model
    position: str  # ``last``, ``mean``, ``region N``, or ``regions`` (their mean)
    rows: pd.DataFrame
    layers: int
    width: int
    folder: Path  # ``states/<run>``; what is computed from the states may be kept in ``results`` beside them
    _parts: tuple[_Part, ...]

    def layer(self, number: int, where: NDArray[np.intp] | None = None) -> NDArray[np.float32]:
        """Read one layer."""
        if not 0 <= number < self.layers:
            raise UserError(
                f"layer {number} is none of {self.group}'s", mend=f"Layers go from 0 to {self.layers - 1}."
            )
        trial_indices = np.arange(len(self.rows)) if where is None else np.asarray(where, dtype=np.intp)
        states = np.zeros((len(trial_indices), self.width), dtype=np.float32)
        counts = np.zeros(len(trial_indices), dtype=np.float32)
        for part in self._parts:
            stored = _mapped(part.folder, number, part.most)
            targets, rows = part.rows_of(trial_indices)
            for start in range(0, len(targets), _AT_ONCE):
                batch = slice(start, start + _AT_ONCE)
                np.add.at(states, targets[batch], stored[rows[batch]].astype(np.float32))
            counts += np.bincount(targets, minlength=len(trial_indices))
        if self.position == REGIONS:
            states /= counts[:, None]
        return states


_AT_ONCE = 8192


@dataclass(frozen=True, eq=False)
class _Part:
    """The states of some trials that one folder holds."""

    folder: Path
    trial: NDArray[np.intp]  # shape (m,): places in ``StoredStates.rows``, in order
    row: NDArray[np.int64]  # shape (m,): rows of the memory maps

    @property
    def most(self) -> int:
        """Largest number of rows that the memory maps need."""
        return int(self.row.max()) + 1

    def rows_of(self, trial_indices: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return places in ``wanted`` and rows of the memory maps, as many of each."""
        first = np.searchsorted(self.trial, trial_indices, side="left")
        counts = np.searchsorted(self.trial, trial_indices, side="right") - first
        targets = np.repeat(np.arange(len(trial_indices)), counts)
        within = np.arange(len(targets)) - np.repeat(np.cumsum(counts) - counts, counts)
        return targets, self.row[np.repeat(first, counts) + within]


def states_folder(tables: Tables) -> Path | None:
    """Return the folder of hidden states of the study that the tables lie in; None where there is none."""
    folder = found_above(tables.folder, "states")
    return folder if folder is not None and any(_runs(folder)) else None


def kept_states(tables: Tables, position: str) -> list[StoredStates]:
    """Return the hidden states of every model at one position."""
    folder = states_folder(tables)
    trials = _trials_with_keys(tables) if folder is not None else pd.DataFrame()
    if folder is None or trials.empty:
        return []
    states = []
    indices = {run: index for run in _runs(folder) if len(index := _index(run, position))}
    shapes = {run: _shape(run) for run in indices}
    models = dict(iter(trials.groupby("reader_group")))
    for group in group_order(trials):
        model_trials = models[group]
        for shape in dict.fromkeys(shapes.values()):
            runs = {run: index for run, index in indices.items() if shapes[run] == shape}
            states.append(_joined(group, position, model_trials, runs, shape))
    return [state for state in states if state is not None]


def _runs(folder: Path) -> Iterator[Path]:
    yield from sorted(path.parent for path in folder.glob(f"*/{INDEX}"))


def _trials_with_keys(tables: Tables) -> pd.DataFrame:
    """Return the used trials of models with their ``work_key``, in the order of the table."""
    trials = tables.trials
    used = trials[trials["excluded_reason"].isna() & (trials["reader_kind"] == "model")]
    if "work_key" in used:
        return used[used["work_key"].notna()]
    if "work_key" not in column_names(tables.source.trials):
        return used.iloc[:0]
    keys = as_frame(
        read_columns(tables.source.trials, [*_PLACE, "work_key"], tables.source.types.get("trials"))
    )
    keys = keys.assign(**{name: keys[name].astype(float) for name in _PLACE[1:]})
    return used.merge(keys[keys["work_key"].notna()], on=_PLACE, how="inner")


def _index(run: Path, position: str) -> pd.DataFrame:
    """Return work key and row of the states of a run at one position."""
    index = pd.read_parquet(run / INDEX)
    named = index["position"].astype(str)
    at_position = named.str.startswith("region ") if position == REGIONS else named == position
    return index.loc[at_position, ["work_key", "row"]]


def _joined(
    group: str, position: str, trials: pd.DataFrame, indices: dict[Path, pd.DataFrame], shape: tuple[int, int]
) -> StoredStates | None:
    """Return what several runs hold of a model's trials; None where it is nothing. A trial is read from one run alone."""
    stored = pd.concat([index.assign(run=number) for number, index in enumerate(indices.values())])
    stored = stored[stored["work_key"].isin(trials["work_key"])]
    stored = stored[stored["run"] == stored.groupby("work_key")["run"].transform("min")]
    if stored.empty:
        return None
    rows = trials[trials["work_key"].isin(stored["work_key"])].reset_index(drop=True)
    trial_number = pd.Series(np.arange(len(rows)), index=rows["work_key"])
    stored = stored.assign(trial=stored["work_key"].map(trial_number)).sort_values("trial", kind="stable")
    by_run = [(run, stored[stored["run"] == number]) for number, run in enumerate(indices)]
    parts = [
        _Part(run, part["trial"].to_numpy(dtype=np.intp), part["row"].to_numpy(dtype=np.int64))
        for run, part in by_run
        if len(part)
    ]
    home = max(parts, key=lambda part: len(part.trial)).folder
    return StoredStates(home.name, group, position, rows, *shape, home, tuple(parts))


def _shape(run: Path) -> tuple[int, int]:
    """Return number of layers and width of a run's states."""
    layers = 0
    widths = set()
    while (run / f"layer_{layers:02d}.npy").is_file():
        widths.add(int(_mapped(run, layers, 0).shape[1]))
        layers += 1
    if len(widths) != 1 or layers != len(list(run.glob("layer_*.npy"))):
        raise _broken(run, f"layers are missing, or of unlike width: {sorted(widths)}")
    return layers, widths.pop()


def _mapped(run: Path, layer: int, rows: int) -> NDArray[np.float16]:
    """Return the memory map of a layer that has at least so many rows."""
    path = run / f"layer_{layer:02d}.npy"
    try:
        stored: NDArray[np.float16] = np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise _broken(run, f"{path.name} cannot be read ({error})") from error
    if stored.ndim != 2 or len(stored) < rows:
        raise _broken(run, f"{path.name} is shorter than {INDEX} says")
    return stored


def _broken(run: Path, what: str) -> UserError:
    return UserError(
        f"the hidden states in {run} are damaged: {what}",
        mend="Restore the folder from a backup, or move it away; its trials then have no states.",
    )


RESULTS = "results"

Arrays = dict[str, NDArray[Any]]


def fingerprint(settings: Mapping[str, Any], *arrays: NDArray[Any]) -> str:
    """Return a hash of settings (JSON) and of arrays with their shapes and types."""
    digest = hashlib.sha256(
        json.dumps(settings, sort_keys=True, ensure_ascii=False, default=str).encode("utf-8")
    )
    for array in arrays:
        digest.update(f"|{array.dtype.str}{array.shape}|".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def remembered(folder: Path, name: str, mark: str, compute: Callable[[], Arrays]) -> Arrays:
    """Return stored arrays; compute and store them where there are none."""
    file = folder / RESULTS / f"{name}-{mark[:20]}.npz"
    cached = read_arrays(file)
    if cached is None:
        cached = compute()
        write_arrays(file, cached)
    return cached


def read_arrays(file: Path) -> Arrays | None:
    """Return the arrays of a file; None where there is none, or none that can be read."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (OSError, ValueError, zipfile.BadZipFile, EOFError):
        return None


def write_arrays(file: Path, arrays: Arrays) -> bool:
    """Write arrays to a file in one step; return whether that was possible."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as begun, begun.open("wb") as opened:
            np.savez_compressed(opened, allow_pickle=False, **arrays)
    except OSError:
        return False
    return True


class LayersDone(str):
    """Progress: ``done`` of ``of`` layers of one step for one model (``what``)."""

    what: str
    done: int
    of: int

    def __new__(cls, what: str, done: int, of: int) -> Self:
        """Return the progress message that precedes a layer."""
        message = super().__new__(cls, f"{what}: layer {done} of {of - 1}")
        message.what, message.done, message.of = what, done, of
        return message
