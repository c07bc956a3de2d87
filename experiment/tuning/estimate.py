"""What a training will take, roughly and before it begins: parameters, memory, disk, tokens, hours, dollars.

A pass forward costs about two operations a weight and token, one backward four, two of which only where the weights
themselves are trained (Kaplan et al., 2020, section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiment.disk import free_bytes, gigabytes
from experiment.tuning.networks import Base
from experiment.tuning.settings import Training
from stimuli.errors import UserError

OPERATIONS_A_SECOND = {"cpu": 5e10, "mps": 2e12, "cuda": 1e14}
"""Rough: a processor of a desk computer, Apple's graphics, one NVIDIA GPU of a computing centre."""
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
_ACTIVATIONS = 0.25
"""Memory for what is computed, as a share of the rest; rough."""


@dataclass(frozen=True)
class Size:
    """How large a model and its training are."""

    parameters: int
    trained: int
    # memory, checkpoint, disk: bytes: while it trains, of one checkpoint, of all that lies in the folder at
    # most
    memory: int
    checkpoint: int
    disk: int


def size_of(base: Base, training: Training) -> Size:
    """Return how large a model and its training are; no weights are loaded."""
    import torch

    with torch.device("meta"):
        network = _empty(base)
        parameters = int(network.num_parameters())
        trained = parameters if training.lora is None else _beside(network, training.lora.rank)
    moving = 16 * trained  # weights, gradients and two moments in 32 bits
    still = 0 if training.lora is None else (2 if base.device.startswith("cuda") else 4) * parameters
    checkpoint = 12 * trained
    written = parameters * _BYTES.get(base.stored_dtype, 4) + (4 * trained if training.lora else 0)
    return Size(
        parameters, trained, int((moving + still) * (1 + _ACTIVATIONS)), checkpoint, 2 * checkpoint + written
    )


def _empty(base: Base) -> Any:
    from experiment.models.local.checkpoints import kind_of

    return kind_of(base.config).from_config(base.config)


def _beside(network: Any, rank: int) -> int:
    """Return how many weights the small matrices have that stand beside every matrix but the last."""
    head = network.get_output_embeddings()
    number = 0
    for module in network.modules():
        weight = getattr(module, "weight", None)
        if (
            module is head
            or weight is None
            or weight.dim() != 2
            or type(module).__name__ not in ("Linear", "Conv1D")
        ):
            continue
        number += rank * (weight.shape[0] + weight.shape[1])
    return number


def require_room(training: Training, base: Base) -> None:
    """Refuse where the disk lacks room for checkpoints and the trained model."""
    free, needed = free_bytes(training.folder), size_of(base, training).disk
    if free < needed:
        raise UserError(
            f"training {training.name} needs {gigabytes(needed)} for checkpoints and the trained model, and "
            f"{gigabytes(free)} are free where {training.folder.name} will lie",
            mend="Free some space, or train with method: lora, whose checkpoints are small.",
            exit_code=1,
        )


def hours_of(size: Size, training: Training, tokens: int, device: str) -> float:
    """Return roughly how many hours so many tokens take."""
    per_token = 6 if training.lora is None else 4
    again = 4 / 3 if training.gradient_checkpointing else 1.0
    speed = OPERATIONS_A_SECOND[device.partition(":")[0]]
    return per_token * again * size.parameters * tokens / speed / 3600
