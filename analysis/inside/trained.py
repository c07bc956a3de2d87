"""Which readers are trained models, of which base, and what is recorded of their trainings.

The data dictionary names of a trained model the training (``settings: trained``) and the model of the study that it was made from
(``settings: base``). What was done stands in ``tuning/<name>/tuning.json`` of the study's folder, the loss of every step in
``loss.csv`` beside it; a handover may hold the records itself (``tuning`` in the dictionary).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.tables import Tables
from stimuli.errors import UserError

FOLDER, RECORD, LOSS = "tuning", "tuning.json", "loss.csv"
CONTROL = "FT-Ori"
"""The rule that leaves texts as they are: what more training does without scrambles."""
_UP = 4
_LOSS_COLUMNS = ("step", "epoch", "tokens", "training_loss", "validation_loss", "learning_rate", "seconds")


@dataclass(frozen=True)
class Trained:
    """A trained model that read the study."""

    group: str  # ``reader_group`` of its trials
    base: str  # ``reader_group`` of the model that it was made from
    training: str  # name of the training
    record: Mapping[str, Any] = field(default_factory=dict)  # ``tuning.json``; empty where it is not at hand

    @property
    def settings(self) -> Mapping[str, Any]:
        """Every setting of the training."""
        return dict(self.record.get("settings") or {})

    @property
    def task(self) -> str | None:
        """The task of H-TEST that it was trained on; None for texts."""
        return self.settings.get("task")

    @property
    def rule(self) -> str | None:
        """What was done to running text, such as ``FT-RS``; None for H-TEST."""
        return self.settings.get("rule")

    @property
    def is_control(self) -> bool:
        """Whether it was trained on texts as they are."""
        return bool(self.settings) and self.task is None and self.rule in (None, CONTROL)


@dataclass(frozen=True)
class Family:
    """A model and what was trained from it, in the order in which the trainings began."""

    base: str
    base_was_asked: bool  # whether the base has used trials
    models: tuple[Trained, ...]

    @property
    def control(self) -> Trained | None:
        """The model trained on texts as they are; None where there is none, or more than one."""
        found = [one for one in self.models if one.is_control]
        return found[0] if len(found) == 1 else None


def families(tables: Tables) -> list[Family]:
    """Return the models of a study that were trained, by base; empty where none has used trials."""
    used = tables.trials[tables.trials["excluded_reason"].isna()]
    asked = set(used["reader_group"].astype(str))
    found: dict[str, list[Trained]] = {}
    for group, reader in tables.dictionary["readers"].items():
        settings = (reader.get("settings") or {}) if isinstance(reader, Mapping) else {}
        training, base = settings.get("trained"), settings.get("base")
        if training and base and group in asked:
            one = Trained(str(group), str(base), str(training), record_of(tables, str(training)))
            found.setdefault(str(base), []).append(one)
    return [
        Family(
            base, base in asked, tuple(sorted(models, key=lambda one: str(one.record.get("began_at") or "")))
        )
        for base, models in found.items()
    ]


def record_of(tables: Tables, training: str) -> Mapping[str, Any]:
    """Return what is recorded of a training; empty where nothing is at hand."""
    folder = _folder_of(tables, training)
    file = None if folder is None else folder / RECORD
    if file is None or not file.is_file():
        return dict((tables.dictionary.get("tuning") or {}).get(training) or {})
    try:
        told = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {error}", mend="Restore it from a backup.") from error
    if not isinstance(told, dict):
        raise UserError(f"{file} is no record of a training", mend="Restore it from a backup.")
    return told


def loss_of(tables: Tables, training: str) -> pd.DataFrame | None:
    """Return the losses of a training; None where they are not at hand."""
    folder = _folder_of(tables, training)
    file = None if folder is None else folder / LOSS
    if file is None or not file.is_file():
        return None
    losses = pd.read_csv(file, on_bad_lines="skip")
    if not set(_LOSS_COLUMNS) <= set(losses.columns):
        return None
    return losses[losses["seconds"].notna()].astype(dict.fromkeys(_LOSS_COLUMNS, float))


def _folder_of(tables: Tables, training: str) -> Path | None:
    here = tables.folder.resolve()
    # a Psych-DS export keeps them among what is for analysis
    for folder in [here / "analysis", here, *here.parents][: _UP + 1]:
        if (folder / FOLDER / training).is_dir():
            return folder / FOLDER / training
    return None
