"""Checkpoints that are there whole or not at all: weights, AdamW's moments and the place, written apart and then renamed.

What a step draws derives from the seed and the step, and the learning rate from the step, so that no state of a generator or
schedule has to be kept: training goes on from a checkpoint as if it had never stopped.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stimuli.files import settle

FOLDER = "checkpoints"
_MOMENTS = ("exp_avg", "exp_avg_sq")
_PARTIAL = ".partial-"


@dataclass(frozen=True)
class Place:
    """How far a training is."""

    step: int  # steps made
    tokens: int  # tokens read
    seconds: float  # spent in steps, all starts together
    tokens_at_once: int  # most tokens computed at once; halved where memory ran out
    settings: str  # names settings, records and base model


def save(folder: Path, place: Place, weights: Mapping[str, Any], optimiser: Any) -> Path:
    """Write a checkpoint and remove those before it.

    ``folder``: the training's.
    ``weights``: what is trained, by name.
    ``optimiser``: AdamW over these weights.
    """
    tensors = {f"weight:{name}": weight.detach() for name, weight in weights.items()}
    for name, weight in weights.items():
        state = optimiser.state.get(weight)
        if state:
            tensors |= {f"{moment}:{name}": state[moment] for moment in _MOMENTS}
            tensors[f"step:{name}"] = state["step"]
    there = folder / FOLDER
    there.mkdir(parents=True, exist_ok=True)
    _clear(there)
    partial = there / f"{_PARTIAL}{place.step:08d}"
    partial.mkdir()
    try:
        write_tensors(partial / "state.safetensors", tensors)
        (partial / "place.json").write_text(json.dumps(asdict(place)), "utf-8")
        for file in partial.iterdir():
            settle(file)
        settle(partial)
        target = there / f"step-{place.step:08d}"
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
        settle(there)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    for older in _all(there):
        if older != target:
            shutil.rmtree(older, ignore_errors=True)
    return target


def last(folder: Path) -> tuple[Path, Place] | None:
    """Return a training's last checkpoint and where it stands; None where it has none."""
    for path in reversed(_all(folder / FOLDER)):
        try:
            return path, Place(**json.loads((path / "place.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            continue
    return None


def load(path: Path, weights: Mapping[str, Any], optimiser: Any) -> None:
    """Put a checkpoint's weights and moments where they were."""
    import torch
    from safetensors import safe_open

    with safe_open(path / "state.safetensors", framework="pt") as kept, torch.no_grad():
        names = set(kept.keys())
        if {name.removeprefix("weight:") for name in names if name.startswith("weight:")} != set(weights):
            raise ValueError(f"{path} holds other weights than those that are trained")
        for name, weight in weights.items():
            weight.copy_(kept.get_tensor(f"weight:{name}"))
            if f"step:{name}" not in names:
                continue
            optimiser.state[weight] = {
                "step": kept.get_tensor(f"step:{name}"),
                **{
                    moment: kept.get_tensor(f"{moment}:{name}").to(weight.device, weight.dtype)
                    for moment in _MOMENTS
                },
            }


def write_tensors(file: Path, tensors: Mapping[str, Any]) -> None:
    """Write tensors by name; a full disk is told as such."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, str(file))
    except SafetensorError as fault:
        raise as_os_error(fault, file) from fault


def as_os_error(fault: Exception, file: Path) -> OSError:
    """Return the error of the operating system that the writer of weights has put into words."""
    said = str(fault).lower()
    number = errno.ENOSPC if "no space" in said or "os error 28" in said else errno.EIO
    return OSError(number, os.strerror(number), str(file))


def _all(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*")) if folder.is_dir() else []


def _clear(folder: Path) -> None:
    """Remove what a killed process left half written."""
    for partial in folder.glob(f"{_PARTIAL}*"):
        shutil.rmtree(partial, ignore_errors=True)
