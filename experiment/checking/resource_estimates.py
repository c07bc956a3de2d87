"""Resources of a model's run, estimated where possible: hours, and gigabytes of a local model's hidden states.

Gigabytes follow from the study and the model's configuration: a row for each trial and position, a file for each layer and the
embedding, 16-bit numbers. Hours can only be estimated from an earlier run of the same model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select

from experiment.checking.model_capabilities import checkpoint_folder
from experiment.models.engine import ANSWERS, UNFINISHED, ModelSettings
from experiment.models.planning.prompting_settings import SessionTemplate, read_prompting_settings
from experiment.store import Store
from experiment.store.tables import calls, sessions
from experiment.study import Study
from stimuli.durations import duration_in_words
from stimuli.errors import UserError
from stimuli.files import free_bytes, gigabytes

BYTES = 2
ENOUGH = 50
"""Least number of trials in a run for an estimate of speed."""


@dataclass(frozen=True)
class StatesSize:
    """Size of one model's hidden states.

    ``files, width``: layers and the embedding, and numbers in each; None if the model's configuration is not on this machine;
    ``free``: bytes free at their location.
    """

    positions: tuple[str, ...]
    rows: int
    files: int | None
    width: int | None
    free: int

    @property
    def bytes(self) -> int | None:
        """Bytes of all layers; None if the configuration is not known."""
        return (
            None if self.files is None or self.width is None else self.rows * self.files * self.width * BYTES
        )

    def said(self) -> str:
        """Return the size in a sentence."""
        rows = f"Hidden states ({', '.join(self.positions)}): {self.rows:,} rows"
        if self.bytes is None:
            return (
                f"{rows}; their gigabytes are known once its files are on this machine: "
                f"rows × (layers + 1) × width × {BYTES} bytes."
            )
        size = f"{rows} of {self.files} layers (the embedding is one) × {self.width:,} numbers, {gigabytes(self.bytes)}"
        if self.free < self.bytes:
            return f"{size}, and only {gigabytes(self.free)} are free where the study lies: free some space before a run."
        return f"{size} ({gigabytes(self.free)} are free)."

    def describe(self) -> dict[str, Any]:
        """Return the size as ``--json`` prints it."""
        return {
            "positions": list(self.positions),
            "rows": self.rows,
            "files": self.files,
            "width": self.width,
            "bytes": self.bytes,
            "free_bytes": self.free,
        }


def states_size(
    study: Study, settings: ModelSettings, plan: Mapping[str, Any], trials: int
) -> StatesSize | None:
    """Return the size of a model's hidden states; None if it stores none."""
    if settings.kind != "hf":
        return None
    script = SessionTemplate(dict(plan), read_prompting_settings(study, settings))
    positions = script.manner.states
    n_trials = len(script.places)
    if not positions or not n_trials:
        return None
    shape = _shape(settings)
    if shape == (0, 0):
        return None
    files, width = shape or (None, None)
    return StatesSize(
        positions,
        round(script.state_rows * trials / n_trials),
        files,
        width,
        free_bytes(study.folder / "states"),
    )


def _shape(settings: ModelSettings) -> tuple[int, int] | None:
    """Return number of files and width of a model's states; None if unknown, zeros if it stores none."""
    from transformers import AutoConfig

    try:
        folder = checkpoint_folder(settings)
        if folder is None:
            return None
        config = AutoConfig.from_pretrained(str(folder), local_files_only=True)
    except (UserError, OSError, ValueError):
        return None
    if getattr(config, "is_encoder_decoder", False):
        return 0, 0
    text = config.get_text_config()
    layers, width = getattr(text, "num_hidden_layers", None), getattr(text, "hidden_size", None)
    return (layers + 1, width) if isinstance(layers, int) and isinstance(width, int) else None


def stored_speeds(store: Store, study: str) -> dict[str, float]:
    """Return trials per second in the longest run of each model, by its ``use`` in the study."""
    query = (
        select(
            calls.c.requested_model,
            func.count().label("answered"),
            func.min(calls.c.created_at).label("first"),
            func.max(calls.c.created_at).label("last"),
        )
        .join(sessions, sessions.c.session_id == calls.c.session_id)
        .where(sessions.c.study == study, calls.c.purpose.in_(ANSWERS), calls.c.status.not_in(UNFINISHED))
        .group_by(calls.c.requested_model, calls.c.run_id)
    )
    longest: dict[str, tuple[int, float]] = {}
    with store.read() as connection:
        for row in connection.execute(query):
            seconds = (datetime.fromisoformat(row.last) - datetime.fromisoformat(row.first)).total_seconds()
            if row.answered >= ENOUGH and seconds > 0:
                speed = (int(row.answered), (row.answered - 1) / seconds)
                longest[str(row.requested_model)] = max(longest.get(str(row.requested_model), speed), speed)
    return {use: speed for use, (_, speed) in longest.items()}


def hours_words(use: str, trials: int, speeds: Mapping[str, float]) -> str:
    """Return a sentence on the hours of a model's trials, or on how to measure its speed if no run is stored."""
    speed = speeds.get(use)
    if speed is None:
        return (
            "How long that takes is not known before its first run: `wrods run STUDY --max-minutes 5` asks for five minutes, keeps "
            f"every answer, and tells the speed here once {ENOUGH} trials are answered."
        )
    return (
        f"At the speed of its longest run so far ({speed:,.1f} trials a second) all of it takes roughly "
        f"{duration_in_words(trials / speed)}."
    )


def size_of(
    study: Study, settings: ModelSettings, plan: Mapping[str, Any], trials: int, speeds: Mapping[str, float]
) -> dict[str, Any]:
    """Return a model's gigabytes of hidden states and hours as numbers, and in sentences (``size``); empty for a baseline."""
    if settings.kind == "baseline":
        return {}
    size, speed = states_size(study, settings, plan, trials), speeds.get(settings.use)
    return {
        "states": None if size is None else size.describe(),
        "hours": None if speed is None else trials / speed / 3600,
        "size": [*([] if size is None else [size.said()]), hours_words(settings.use, trials, speeds)],
    }
