"""Training step by step: AdamW on the mean loss of a step's tokens, summed over parts that fit into memory.

transformers' own ``Trainer`` is not used: its checkpoints are not there whole or not at all, it finds its place again by going
through the data, and its batches are rows, not tokens. What is left of it once these are made otherwise is this loop.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiment.models.local.causal_model import give_back, is_out_of_memory
from experiment.models.runs.limits import Deadline, Stop
from experiment.papers.inside.tuning.batches import IGNORED, Order, Piece, TrainingBatch, parts_of
from experiment.papers.inside.tuning.networks import seed_draws, trained_weights, weight_groups
from experiment.papers.inside.tuning.record import Curve, LearningPoint
from experiment.papers.inside.tuning.settings import Training
from stimuli.errors import UserError
from stimuli.files import settle
from stimuli.seeds import stable_seed

CHECKPOINTS = "checkpoints"
_MOMENTS = ("exp_avg", "exp_avg_sq")
_PARTIAL = ".partial-"


@dataclass(frozen=True)
class TrainingPlace:
    """Progress of a training run."""

    step: int  # steps made
    tokens: int  # tokens read
    seconds: float  # spent in steps, all starts together
    tokens_at_once: int  # most tokens computed at once; halved where memory ran out
    settings: str  # names settings, records and base model


def save_checkpoint(folder: Path, place: TrainingPlace, weights: Mapping[str, Any], optimiser: Any) -> Path:
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
    there = folder / CHECKPOINTS
    there.mkdir(parents=True, exist_ok=True)
    _clear_partial(there)
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
    for older in _checkpoints_in(there):
        if older != target:
            shutil.rmtree(older, ignore_errors=True)
    return target


def last_checkpoint(folder: Path) -> tuple[Path, TrainingPlace] | None:
    """Return a training's last checkpoint and where it stands; None where it has none."""
    for path in reversed(_checkpoints_in(folder / CHECKPOINTS)):
        try:
            return path, TrainingPlace(**json.loads((path / "place.json").read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            continue
    return None


def load_checkpoint(path: Path, weights: Mapping[str, Any], optimiser: Any) -> None:
    """Put a checkpoint's weights and moments where they were."""
    import torch
    from safetensors import safe_open

    with safe_open(path / "state.safetensors", framework="pt") as stored, torch.no_grad():
        names = set(stored.keys())
        if {name.removeprefix("weight:") for name in names if name.startswith("weight:")} != set(weights):
            raise ValueError(f"{path} holds other weights than those that are trained")
        for name, weight in weights.items():
            weight.copy_(stored.get_tensor(f"weight:{name}"))
            if f"step:{name}" not in names:
                continue
            optimiser.state[weight] = {
                "step": stored.get_tensor(f"step:{name}"),
                **{
                    moment: stored.get_tensor(f"{moment}:{name}").to(weight.device, weight.dtype)
                    for moment in _MOMENTS
                },
            }


def write_tensors(file: Path, tensors: Mapping[str, Any]) -> None:
    """Write tensors by name; a full disk raises a clear error."""
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


def _checkpoints_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*")) if folder.is_dir() else []


def _clear_partial(folder: Path) -> None:
    """Remove what a killed process left half written."""
    for partial in folder.glob(f"{_PARTIAL}*"):
        shutil.rmtree(partial, ignore_errors=True)


AT_ONCE = {"cpu": 2048, "mps": 2048, "cuda": 8192}
"""Tokens that are computed at once, unless the study sets another number."""
VALIDATIONS = 20
"""How often the validation loss is computed, in addition to the start and the end of each epoch."""


@dataclass(frozen=True)
class Progress:
    """Progress of a training run."""

    step: int
    steps: int
    # loss, validation_loss: of the last step, and the last that was taken
    loss: float | None
    validation_loss: float | None
    tokens_per_second: float | None
    seconds_left: float | None


@dataclass(frozen=True)
class TrainingEnd:
    """The end of a training."""

    place: TrainingPlace
    steps: int  # all that there are
    stopped: str | None  # why before the end


class Trainer:
    """Trains one network.

    ``network``: with what is trained set free.
    ``padding``: a token for where there is none.
    ``settings``: names settings, records and base; a checkpoint of others is not gone on from.
    """

    def __init__(
        self,
        network: Any,
        training: Training,
        order: Order,
        held_out: Sequence[Piece],
        *,
        epochs: int,
        device: str,
        padding: int,
        settings: str,
    ) -> None:
        import torch

        self.network = network
        self.training = training
        self.order = order
        self.held_out = held_out
        self.device = device
        self.padding = padding
        self.folder = training.folder
        self.settings = settings
        self.weights = trained_weights(network)
        self.optimiser = torch.optim.AdamW(
            [group for group in weight_groups(network, training.weight_decay) if group["params"]],
            lr=training.learning_rate,
        )
        self.bounds = [0]
        for epoch in range(epochs):
            self.bounds.append(self.bounds[-1] + order.steps_in(epoch))
        self.steps = self.bounds[-1]
        self.step = self.tokens = 0
        self.seconds = 0.0
        self.at_once = training.tokens_at_once or AT_ONCE[device.partition(":")[0]]

    def resume(self) -> bool:
        """Go on from the last checkpoint; say whether there was one."""
        checkpoint = last_checkpoint(self.folder)
        if checkpoint is None:
            return False
        path, place = checkpoint
        other = UserError(
            f"{path} is of other settings or another model than the study has now",
            mend=f"Remove {self.folder} to train again, or give the training another name.",
        )
        if place.settings != self.settings:
            raise other
        try:
            load_checkpoint(path, self.weights, self.optimiser)
        except ValueError as fault:
            raise other from fault
        self.step, self.tokens, self.seconds = place.step, place.tokens, place.seconds
        self.at_once = place.tokens_at_once
        return True

    def train(self, *, stop: Stop, clock: Deadline, tell: Callable[[Progress], None]) -> TrainingEnd:
        """Run the remaining steps; if interrupted on request, the checkpoint includes all completed steps."""
        begun = last_checkpoint(self.folder) is not None
        curve = Curve(self.folder, self.step if begun else None)
        validation = None
        if not begun:
            validation = self.validation_loss()
            curve.add(LearningPoint(0, 0.0, 0, None, validation, 0.0, 0.0))
            self._save()
        saved = time.monotonic()
        began, before = time.monotonic(), self.tokens
        stopped = None
        while self.step < self.steps:
            if stop.is_asked or clock.is_over:
                stopped = stop.reason or "the time of this command (--max-minutes) is over"
                break
            at = time.monotonic()
            rate, epoch = self.learning_rate(self.step), self._epoch(self.step)
            loss = self._one_step(epoch, rate)
            measured = self.validation_loss() if self._is_measured() else None
            validation = measured if measured is not None else validation
            self.seconds += time.monotonic() - at
            curve.add(LearningPoint(self.step, self._done(), self.tokens, loss, measured, rate, self.seconds))
            speed = (self.tokens - before) / max(1e-9, time.monotonic() - began)
            left = (self.steps - self.step) * (self.seconds / self.step)
            tell(Progress(self.step, self.steps, loss, validation, speed, left))
            if time.monotonic() - saved > 60 * self.training.checkpoint_minutes:
                self._save()
                saved = time.monotonic()
        self._save()
        return TrainingEnd(self._place(), self.steps, stopped)

    def learning_rate(self, step: int) -> float:
        """Return the rate of a step, counted from 0: a straight rise, then the decay towards zero."""
        peak, rise = self.training.learning_rate, math.ceil(self.training.warmup * self.steps)
        if step < rise:
            return peak * (step + 1) / rise
        if self.training.decay == "none":
            return peak
        share = (step - rise) / max(1, self.steps - rise)
        return peak * (
            1 - share if self.training.decay == "linear" else 0.5 * (1 + math.cos(math.pi * share))
        )

    def validation_loss(self) -> float | None:
        """Return the mean loss, in nats a token, of the records that are held out; None where there are none."""
        import torch

        if not self.held_out:
            return None
        self.network.eval()
        try:
            with torch.no_grad():
                total = self._computed(
                    self.held_out, lambda parts: sum(float(self._loss(part)) for part in parts)
                )
        finally:
            self.network.train()
        return total / sum(piece.targets for piece in self.held_out)

    def _one_step(self, epoch: int, rate: float) -> float:
        """Make one step and return its loss."""
        import torch

        pieces = self.order.pieces(epoch, self.step - self.bounds[epoch])
        scored = sum(piece.targets for piece in pieces)

        def backward(parts: Sequence[TrainingBatch]) -> float:
            self.optimiser.zero_grad(set_to_none=True)
            seed_draws(stable_seed(self.training.seed, "training: draws of a step", self.step))
            total = 0.0
            for part in parts:
                loss = self._loss(part) / scored
                loss.backward()
                total += float(loss.detach())
            return total

        loss = self._computed(pieces, backward)
        if not math.isfinite(loss):
            raise UserError(
                f"the loss of step {self.step + 1} is {loss}: the training has diverged",
                mend="Lower the learning_rate; the checkpoint before is kept, and another rate is another training.",
                exit_code=1,
            )
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), self.training.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        self.step += 1
        self.tokens += sum(len(piece.ids) for piece in pieces)
        return loss

    def _computed(
        self, pieces: Sequence[Piece], compute: Callable[[Sequence[TrainingBatch]], float]
    ) -> float:
        """Compute pieces in parts, in smaller ones if memory is insufficient, and return the result."""
        while True:
            try:
                return compute(list(parts_of(pieces, self.at_once, self.padding)))
            except Exception as fault:
                longest = max(len(piece.ids) for piece in pieces)
                if not is_out_of_memory(fault):
                    raise
                if self.at_once <= longest:
                    raise UserError(
                        f"memory ran out with {longest} tokens of one {'prompt' if self.order.rows.replies else 'text'}",
                        mend="Set gradient_checkpointing: true, a shorter sequence_length, method: lora, or take a smaller model.",
                        exit_code=1,
                    ) from None
            self.optimiser.zero_grad(set_to_none=True)
            give_back()
            self.at_once = max(longest, self.at_once // 2)

    def _loss(self, part: TrainingBatch) -> Any:
        """Return the summed loss of a part, in nats."""
        import torch

        def there(array: Any) -> Any:
            return torch.from_numpy(array).to(self.device)

        wanted = there(part.wanted)
        mask = None if part.mask is None else there(part.mask)
        on_cuda = self.device.startswith("cuda")
        computing: Any = torch.autocast("cuda", torch.bfloat16) if on_cuda else contextlib.nullcontext()
        with computing:
            logits = self.network(input_ids=there(part.ids), attention_mask=mask, use_cache=False).logits
        scored = wanted != IGNORED
        return torch.nn.functional.cross_entropy(logits[scored].float(), wanted[scored], reduction="sum")

    def _epoch(self, step: int) -> int:
        return next(epoch for epoch, end in enumerate(self.bounds[1:]) if step < end)

    def _done(self) -> float:
        """Return how many epochs are done."""
        if self.step >= self.steps:
            return float(len(self.bounds) - 1)
        epoch = self._epoch(self.step)
        return epoch + (self.step - self.bounds[epoch]) / (self.bounds[epoch + 1] - self.bounds[epoch])

    def _is_measured(self) -> bool:
        """Return whether the validation loss is taken after the step that was just made."""
        every = max(1, self.steps // VALIDATIONS)
        return self.step % every == 0 or self.step in self.bounds

    def _place(self) -> TrainingPlace:
        return TrainingPlace(self.step, self.tokens, self.seconds, self.at_once, self.settings)

    def _save(self) -> None:
        save_checkpoint(self.folder, self._place(), self.weights, self.optimiser)
