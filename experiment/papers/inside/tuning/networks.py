"""The model to train: loaded completely, with all weights trainable or with small additional matrices (peft).

On CUDA, trained weights are stored in 32 bits and computed in bfloat16; frozen weights are in bfloat16.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from experiment.models.local import checkpoints
from experiment.models.local.checkpoints import name_revision
from experiment.models.local.tokens import Wording, context_length_of
from experiment.papers.inside.tuning.settings import Lora, Training
from stimuli.errors import UserError
from stimuli.files import free_bytes, gigabytes
from stimuli.seeds import stable_seed

_SEED_BITS = 63


@dataclass(frozen=True)
class Base:
    """Properties of a model before its weights are loaded."""

    source: checkpoints.CheckpointSource
    config: Any  # the transformers configuration
    wording: Wording  # how it is asked in the study
    device: str
    revision: str  # what pins its weights
    most: int | None  # tokens that it reads

    @property
    def stored_dtype(self) -> str:
        """The number format of its stored weights, in which the trained ones are written."""
        return str(getattr(self.config, "dtype", None) or "float32").removeprefix("torch.")


def look_at(training: Training) -> Base:
    """Find a model to train, and read its configuration and tokenizer."""
    options = training.model.options
    source = checkpoints.find_source(training.model)
    if training.method == "lora":
        require_peft(training)
    config, tokenizer = checkpoints.load_tokenizer(source)
    if getattr(config, "is_encoder_decoder", False):
        raise UserError(
            f"{training.place}: {training.base} ({training.model.use}) reads with an encoder, and wrods trains models that read "
            "and write in one direction",
            mend="Name such a model, like those of the Llama, Qwen or Pythia families.",
        )
    stored = checkpoints.stored_quantisation(config)
    if stored is not None:
        raise UserError(
            f"{training.place}: the weights of {training.model.use} are stored quantised ({stored}), and such weights are not trained",
            mend="Name the model with weights of 16 or 32 bits.",
        )
    template: Any = options.get("template")
    space: Any = options.get("leading_space")
    wording = Wording(
        tokenizer, template=template, leading_space=space, thinking=bool(options.get("thinking", False))
    )
    device, length = checkpoints.choose_device(options.get("device")), context_length_of(config).text
    return Base(source, config, wording, device, name_revision(source, config), length)


def require_peft(training: Training) -> None:
    """Refuse with how to get peft where it is missing."""
    if importlib.util.find_spec("peft") is None:
        raise UserError(
            f"{training.place}: method: lora needs the package peft, which is not installed",
            mend="Install it with pip install 'wrods[inside]', or train every weight with method: full.",
        )


def load_network(base: Base, training: Training) -> Any:
    """Load a model ready to be trained, what is trained set free."""
    is_whole = training.lora is None
    dtype = "bfloat16" if base.device.startswith("cuda") and not is_whole else "float32"
    network = checkpoints.load_model(base.source, base.device, dtype)
    seed_draws(stable_seed(training.seed, "training: first weights"))
    if training.gradient_checkpointing:
        if not getattr(network, "supports_gradient_checkpointing", False):
            raise UserError(
                f"{training.place}: {training.model.use} knows no gradient_checkpointing", mend="Take it out."
            )
        with _newer_names():
            network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if training.lora is None:
        network.requires_grad_(True)
    else:
        network = _with_adapter(network, training.lora, training)
    network.train()
    return network


@contextmanager
def _newer_names() -> Iterator[None]:
    """Keep still that transformers has newer names for what peft and we ask by the names that all supported versions have."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _with_adapter(network: Any, lora: Lora, training: Training) -> Any:
    from peft import LoraConfig, get_peft_model

    wanted = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type, unused-ignore]
        lora_dropout=lora.dropout,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )
    try:
        with _newer_names():
            return get_peft_model(network, wanted)
    except ValueError as fault:
        raise UserError(
            f"{training.place}: {training.model.use} has no matrices to which adapters could be added: {fault}",
            mend="Train every weight with method: full.",
        ) from fault


def trained_weights(network: Any) -> dict[str, Any]:
    """Return what is trained, by name."""
    return {name: weight for name, weight in network.named_parameters() if weight.requires_grad}


def weight_groups(network: Any, decay: float) -> Iterator[dict[str, Any]]:
    """Yield matrices, which decay, and vectors (gains, biases), which do not."""
    weights = list(trained_weights(network).values())
    yield {"params": [weight for weight in weights if weight.dim() > 1], "weight_decay": decay}
    yield {"params": [weight for weight in weights if weight.dim() <= 1], "weight_decay": 0.0}


def seed_draws(seed: int) -> None:
    """Seed what torch draws on all devices."""
    import torch

    torch.manual_seed(seed % 2**_SEED_BITS)


OPERATIONS_A_SECOND = {"cpu": 5e10, "mps": 2e12, "cuda": 1e14}
"""Rough: a processor of a desk computer, Apple's graphics, one NVIDIA GPU of a computing centre."""
_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}
_ACTIVATIONS = 0.25
"""Memory for what is computed, as a share of the rest; rough."""


@dataclass(frozen=True)
class TrainingSize:
    """Sizes of a model and its training run."""

    parameters: int
    trained: int
    # memory, checkpoint, disk: bytes: while it trains, of one checkpoint, of all that lies in the folder at
    # most
    memory: int
    checkpoint: int
    disk: int


def size_of(base: Base, training: Training) -> TrainingSize:
    """Return how large a model and its training are; no weights are loaded."""
    import torch

    from experiment.models.local.checkpoints import kind_of

    with torch.device("meta"):
        network = kind_of(base.config).from_config(base.config)
        parameters = int(network.num_parameters())
        trained = parameters if training.lora is None else _beside(network, training.lora.rank)
    moving = 16 * trained  # weights, gradients and two moments in 32 bits
    still = 0 if training.lora is None else (2 if base.device.startswith("cuda") else 4) * parameters
    checkpoint = 12 * trained
    written = parameters * _BYTES.get(base.stored_dtype, 4) + (4 * trained if training.lora else 0)
    return TrainingSize(
        parameters, trained, int((moving + still) * (1 + _ACTIVATIONS)), checkpoint, 2 * checkpoint + written
    )


def _beside(network: Any, rank: int) -> int:
    """Return the number of weights in the small matrices added to every matrix but the last."""
    head = network.get_output_embeddings()
    number = 0
    for module in network.modules():
        weight = getattr(module, "weight", None)
        is_linear = type(module).__name__ in ("Linear", "Conv1D")
        if module is head or weight is None or weight.dim() != 2 or not is_linear:
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


def hours_of(size: TrainingSize, training: Training, tokens: int, device: str) -> float:
    """Return roughly how many hours so many tokens take."""
    per_token = 6 if training.lora is None else 4
    again = 4 / 3 if training.gradient_checkpointing else 1.0
    speed = OPERATIONS_A_SECOND[device.partition(":")[0]]
    return per_token * again * size.parameters * tokens / speed / 3600
