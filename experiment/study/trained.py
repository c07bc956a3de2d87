"""Training runs of a study by name, and models that result from them: ``use: tuned:NAME``.

A trained model is prompted like its base model, with the same options, unless the study sets others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from stimuli.errors import UserError, unknown_name

KIND = "tuned"
FOLDER = "tuning"
RECORD, CURVE = "tuning.json", "loss.csv"
"""Files of a training run: what is known about it, and its losses step by step."""
TASK, EACH = "task", "each"
NOT_INHERITED = frozenset({"use", "revision", "quantisation", "family", "parameters", "price", "cache"})
"""Options of a base model that do not apply to a model trained from it."""


class Trains(Protocol):
    """The part of a study that training runs need (:class:`experiment.study.Study` has it)."""

    @property
    def folder(self) -> Path:
        """The study's folder."""

    @property
    def own_factor(self) -> Mapping[str, Mapping[str, Any]]:
        """The factor that the material's items have by themselves, with its levels."""

    def get(self, *path: str | int, default: Any = None) -> Any:
        """Return a setting by its path, or the default."""


def given_trainings(study: Trains) -> dict[str, dict[str, Any]]:
    """Return the settings of each training run, by name; ``task: each`` is one run per task, named ``NAME-TASK``."""
    trainings: dict[str, dict[str, Any]] = {}
    for name, given in study.get("tuning", default={}).items():
        if given.get("task") == EACH and TASK in study.own_factor:
            trainings |= {
                f"{name}-{task}": {**given, "task": task, "entry": str(name)}
                for task in study.own_factor[TASK]
            }
        else:
            trainings[str(name)] = {**given, "entry": str(name)}
    return trainings


def training_folder(folder: Path, name: str) -> Path:
    """Return the folder of a training run."""
    return folder / FOLDER / name


def read_record(folder: Path) -> dict[str, Any]:
    """Return what a training has recorded; nothing where it has not begun."""
    try:
        record = json.loads((folder / RECORD).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as fault:
        raise UserError(
            f"{folder / RECORD} cannot be read: {fault}",
            mend=f"Remove {folder} to train again.",
        ) from fault
    return dict(record)


def as_trained(study: Trains, given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a model's settings with ``use: tuned:NAME`` resolved; settings of other models unchanged.

    ``trained`` and ``base`` then name its training run and its base model in the study.
    """
    kind, _, name = str(given["use"]).partition(":")
    if kind != KIND:
        return dict(given)
    trainings = given_trainings(study)
    if name not in trainings:
        fault = unknown_name("training", name, trainings) if trainings else None
        raise UserError(
            f"{place}: {fault.message if fault else 'the study trains nothing'}",
            mend=fault.mend if fault else "Say under `tuning:` what is to be trained.",
        )
    base = str(trainings[name]["model"])
    models = study.get("models", "who", default={})
    if base not in models:
        raise UserError(
            f"{place}: training {name} names the model {base!r}, which is not under models: who",
            mend=unknown_name("model", base, models).mend if models else "Name the model there.",
        )
    inherited = {key: value for key, value in models[base].items() if key not in NOT_INHERITED}
    overrides = {key: value for key, value in given.items() if key != "use"}
    use = _use_of(study, name, str(models[base]["use"]))
    return {"use": use, **inherited, **overrides, "trained": name, "base": base}


def trained_name(folder: Path, name: str) -> str | None:
    """Return the name that a provider gave to a trained model; None if there is none yet."""
    try:
        record = json.loads((training_folder(folder, name) / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    model_name = record.get("model_name")
    return str(model_name) if model_name else None


def _use_of(study: Trains, name: str, base: str) -> str:
    """Return the kind and name under which a trained model runs, or will run."""
    if base.startswith("openai:"):
        return f"openai:{trained_name(study.folder, name) or f'{KIND}:{name}'}"
    return f"hf:{FOLDER}/{name}/model"
