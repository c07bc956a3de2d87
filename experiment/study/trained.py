"""What a study trains, by name, and how a model that was trained is read: ``use: tuned:NAME``.

A trained model is asked as the model that it was made from, with the same options, unless the study says otherwise of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from stimuli.errors import UserError, unknown_name

KIND = "tuned"
FOLDER = "tuning"
RECORD = "tuning.json"
EACH = "each"
NOT_INHERITED = frozenset({"use", "revision", "quantisation", "family", "parameters", "price", "cache"})
"""Options of a base model that say nothing of what was trained from it."""


class Trains(Protocol):
    """A study, as far as trainings need it (:class:`experiment.study.Study` is one)."""

    @property
    def folder(self) -> Path:
        """The study's folder."""

    @property
    def htest_tasks(self) -> tuple[str, ...]:
        """The tasks of H-TEST that it uses."""

    def get(self, *path: str | int, default: Any = None) -> Any:
        """Return a setting by its path, or the default."""


def given_trainings(study: Trains) -> dict[str, dict[str, Any]]:
    """Return what the study says of each training, by name; ``task: each`` is one training a task, named ``NAME-TASK``."""
    found: dict[str, dict[str, Any]] = {}
    for name, given in study.get("tuning", default={}).items():
        if given.get("task") == EACH and study.get("materials", "htest") is not None:
            found |= {
                f"{name}-{task}": {**given, "task": task, "entry": str(name)} for task in study.htest_tasks
            }
        else:
            found[str(name)] = {**given, "entry": str(name)}
    return found


def training_folder(folder: Path, name: str) -> Path:
    """Return where a training keeps what it makes."""
    return folder / FOLDER / name


def as_trained(study: Trains, given: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a model's settings with ``use: tuned:NAME`` turned into what runs; settings of other models as they are.

    ``trained`` and ``base`` then say which training it went through and from which model of the study.
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
    known = study.get("models", "who", default={})
    if base not in known:
        raise UserError(
            f"{place}: training {name} names the model {base!r}, which is not under models: who",
            mend=unknown_name("model", base, known).mend if known else "Name the model there.",
        )
    inherited = {key: value for key, value in known[base].items() if key not in NOT_INHERITED}
    own = {key: value for key, value in given.items() if key != "use"}
    use = _use_of(study, name, str(known[base]["use"]))
    return {"use": use, **inherited, **own, "trained": name, "base": base}


def trained_name(folder: Path, name: str) -> str | None:
    """Return the name that a provider gave to a trained model; None where there is none yet."""
    try:
        told = json.loads((training_folder(folder, name) / RECORD).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    found = told.get("model_name")
    return str(found) if found else None


def _use_of(study: Trains, name: str, base: str) -> str:
    """Return the kind and name under which a trained model runs; where it is not made yet, those that it will have."""
    if base.startswith("openai:"):
        return f"openai:{trained_name(study.folder, name) or f'{KIND}:{name}'}"
    return f"hf:{FOLDER}/{name}/model"
