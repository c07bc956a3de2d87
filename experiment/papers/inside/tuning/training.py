"""A training on this machine: step by step, AdamW on the mean loss of a step's tokens, to a folder that ``hf:`` reads.

transformers' own ``Trainer`` is not used: its checkpoints are not there whole or not at all, it finds its place again by going
through the data, and its batches are rows, not tokens. What is left of it once these are made otherwise is this loop.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiment.models.local.causal_model import give_back, is_out_of_memory
from experiment.models.runs.limits import Deadline, Stop
from experiment.papers.inside.tuning.batches import (
    IGNORED,
    TOKENS,
    Order,
    Piece,
    TrainingBatch,
    encoded,
    held_out_pieces,
    parted,
    parts_of,
)
from experiment.papers.inside.tuning.networks import (
    Base,
    load_network,
    look_at,
    require_room,
    seed_draws,
    size_of,
    trained_weights,
    weight_groups,
)
from experiment.papers.inside.tuning.records import (
    FINISHED,
    Curve,
    LearningPoint,
    Outcome,
    built_again,
    make_records,
    opening_record,
    read_curve,
    require_same,
    write_record,
)
from experiment.papers.inside.tuning.settings import Training
from experiment.study import Study
from experiment.study.study import CURVE, read_record
from stimuli.errors import UserError
from stimuli.files import settle
from stimuli.seeds import stable_seed

CHECKPOINTS = "checkpoints"
_MOMENTS = ("exp_avg", "exp_avg_sq")
_PARTIAL = ".partial-"

MODEL, ADAPTER = "model", "adapter"


@dataclass(frozen=True)
class TrainingPlace:
    """Progress of a training run."""

    step: int  # steps made
    tokens: int  # tokens read
    seconds: float  # spent in steps, all starts together
    tokens_at_once: int  # most tokens computed at once; halved where memory ran out
    settings: str  # names settings, records and base model


def save_checkpoint(folder: Path, place: TrainingPlace, weights: Mapping[str, Any], optimiser: Any) -> Path:
    """Write a checkpoint of the weights that are trained, by name, and of AdamW over them; remove those before it."""
    tensors = {f"weight:{name}": weight.detach() for name, weight in weights.items()}
    for name, weight in weights.items():
        state = optimiser.state.get(weight)
        if state:
            tensors |= {f"{moment}:{name}": state[moment] for moment in _MOMENTS}
            tensors[f"step:{name}"] = state["step"]
    there = folder / CHECKPOINTS
    there.mkdir(parents=True, exist_ok=True)
    for left_by_a_killed_process in there.glob(f"{_PARTIAL}*"):
        shutil.rmtree(left_by_a_killed_process, ignore_errors=True)
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
            moments = {moment: stored.get_tensor(f"{moment}:{name}") for moment in _MOMENTS}
            optimiser.state[weight] = {
                "step": stored.get_tensor(f"step:{name}"),
                **{moment: tensor.to(weight.device, weight.dtype) for moment, tensor in moments.items()},
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


AT_ONCE = {"cpu": 2048, "mps": 2048, "cuda": 8192}
"""Tokens that are computed at once, unless the study sets another number."""
VALIDATIONS = 20
"""How often the validation loss is computed, in addition to the start and the end of each epoch."""


@dataclass(frozen=True)
class Progress:
    """Progress of a training run."""

    step: int
    steps: int
    loss: float | None  # of the last step
    validation_loss: float | None  # the last that was taken
    tokens_per_second: float | None
    seconds_left: float | None


@dataclass(frozen=True)
class TrainingEnd:
    """The end of a training."""

    place: TrainingPlace
    steps: int  # all that there are
    stopped: str | None  # why before the end


@dataclass(frozen=True)
class TrainingData:
    """What a training reads: its texts in order, for some epochs, held-out pieces, and a token for where there is none."""

    order: Order
    epochs: int
    held_out: Sequence[Piece]
    padding: int


class Trainer:
    """Trains one network.

    ``network``: with what is trained set free.
    ``settings``: names settings, records and base; a checkpoint of others is not gone on from.
    """

    def __init__(
        self, network: Any, training: Training, data: TrainingData, *, device: str, settings: str
    ) -> None:
        import torch

        self.network = network
        self.training = training
        self.data = data
        self.device = device
        self.folder = training.folder
        self.settings = settings
        self.weights = trained_weights(network)
        self.optimiser = torch.optim.AdamW(
            [group for group in weight_groups(network, training.weight_decay) if group["params"]],
            lr=training.learning_rate,
        )
        self.bounds = [0]
        for epoch in range(data.epochs):
            self.bounds.append(self.bounds[-1] + data.order.steps_in(epoch))
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
            is_measured = self.step % max(1, self.steps // VALIDATIONS) == 0 or self.step in self.bounds
            measured = self.validation_loss() if is_measured else None
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

        held_out = self.data.held_out
        if not held_out:
            return None
        self.network.eval()
        try:
            with torch.no_grad():
                total = self._computed(held_out, lambda parts: sum(float(self._loss(part)) for part in parts))
        finally:
            self.network.train()
        return total / sum(piece.targets for piece in held_out)

    def _one_step(self, epoch: int, rate: float) -> float:
        """Make one step and return its loss."""
        import torch

        pieces = self.data.order.pieces(epoch, self.step - self.bounds[epoch])
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
                return compute(list(parts_of(pieces, self.at_once, self.data.padding)))
            except Exception as fault:
                longest = max(len(piece.ids) for piece in pieces)
                if not is_out_of_memory(fault):
                    raise
                if self.at_once <= longest:
                    raise UserError(
                        f"memory ran out with {longest} tokens of one {'prompt' if self.data.order.rows.replies else 'text'}",
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

    def _place(self) -> TrainingPlace:
        return TrainingPlace(self.step, self.tokens, self.seconds, self.at_once, self.settings)

    def _save(self) -> None:
        save_checkpoint(self.folder, self._place(), self.weights, self.optimiser)


def train_here(
    study: Study,
    training: Training,
    *,
    stop: Stop,
    clock: Deadline,
    tell: Callable[[Progress], None] = lambda progress: None,
    say: Callable[[str], None] = lambda line: None,
) -> Outcome:
    """Train a model on this machine, or go on where an earlier command stopped; the caller holds the training."""
    record = read_record(training.folder)
    require_same(training, record)
    if record.get("state") == FINISHED and (training.folder / MODEL).is_dir():
        _tidied(training.folder)
        return replace(_outcome(training, record, was_finished=True), remark=built_again(study, training))
    base = look_at(training)
    if record.get("base_revision", base.revision) != base.revision:
        raise UserError(
            f"{training.place}: training {training.name} was begun with revision {record['base_revision']} of {training.model.use}, "
            f"which is {base.revision} now",
            mend=f"Name the revision with the model, or remove {training.folder} to train again.",
        )
    require_room(training, base)
    say(f"{training.name}: makes its records")
    records = make_records(study, training, stop=stop, say=say)
    say(f"{training.name}: {records.number:,} records, in tokens")
    data = encoded(training.folder, records, base.wording, most=base.most, stop=stop)
    train, held_out = parted(len(data), training.validation, training.seed)
    length = min(training.sequence_length, base.most or training.sequence_length)
    epochs = training.epochs_of(replies=records.replies)
    batch = training.batch_of(replies=records.replies, mean_length=float(data.lengths()[train].mean()))
    order = Order(data, train, seed=training.seed, batch_tokens=batch, sequence_length=length)
    record = record or {
        **opening_record(study, training),
        "base_revision": base.revision,
        "wording": base.wording.describe(),
        "device": base.device,
        "records": {
            "number": records.number, "trained_on": len(train), "held_out": len(held_out), "longer_than_the_model": data.left_out,
            "sha256": records.sha256, "kind": "prompts with replies" if records.replies else "running text",
            "tokens_an_epoch": order.tokens_in_epoch(), "about": dict(records.about),
        },
        "schedule": {
            "epochs": epochs, "batch_tokens": batch, "sequence_length": length,
            "optimiser": "AdamW, betas 0.9 and 0.999, epsilon 1e-8",
        },
    }  # fmt: skip
    write_record(training.folder, record)
    say(f"{training.name}: loads {training.model.use}")
    network = load_network(base, training)
    tokenizer = base.wording.tokenizer
    padding = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    dealt = TrainingData(order, epochs, held_out_pieces(data, held_out, length), int(padding))
    settings = _named(training, data.key, base)
    trainer = Trainer(network, training, dealt, device=base.device, settings=settings)
    if trainer.resume():
        say(f"{training.name}: resumes after step {trainer.step:,} of {trainer.steps:,}")
    ended = trainer.train(stop=stop, clock=clock, tell=tell)
    if ended.stopped is not None:
        return _outcome(training, record, ended=ended, interrupted=stop.interrupted)
    say(f"{training.name}: writes the trained model")
    del trainer
    size = size_of(base, training)
    write_model(network, base, training)
    del network
    give_back()
    record |= {
        "state": FINISHED,
        "finished_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "trained_parameters": size.trained,
        "parameters": size.parameters,
        "saved_as": base.stored_dtype,
        "steps": ended.steps,
        "tokens": ended.place.tokens,
        "seconds": round(ended.place.seconds, 2),
        "tokens_at_once": ended.place.tokens_at_once,
        **_losses(training.folder),
    }
    write_record(training.folder, record)
    _tidied(training.folder)
    return _outcome(training, record, ended=ended)


def write_model(network: Any, base: Base, training: Training) -> None:
    """Write a trained network so that ``hf:`` reads it: matrices alongside the weights are added to them, and kept by themselves.

    The numbers are of the format in which the base model is stored.
    """
    import torch
    from transformers import GenerationConfig
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = training.folder
    partial = folder / f".{MODEL}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        if training.lora is not None:
            _saved(network, partial / ADAPTER)
            (partial / ADAPTER / "README.md").unlink(missing_ok=True)  # an empty form of a model card
            network = network.merge_and_unload()
        network = network.to(getattr(torch, base.stored_dtype))
        generation: Any = network.generation_config
        if isinstance(generation, GenerationConfig) and not generation.do_sample:
            # transformers refuses to write them
            generation.temperature = generation.top_p = generation.top_k = None
        _saved(network, partial / MODEL)
        base.wording.tokenizer.save_pretrained(str(partial / MODEL))
        for name in (ADAPTER, MODEL):
            shutil.rmtree(folder / name, ignore_errors=True)
            if (partial / name).is_dir():
                (partial / name).rename(folder / name)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _tidied(folder: Path) -> None:
    """Remove files that only an unfinished training run needs."""
    for name in (CHECKPOINTS, TOKENS):
        shutil.rmtree(folder / name, ignore_errors=True)


def _saved(network: Any, folder: Path) -> None:
    from safetensors import SafetensorError

    try:
        network.save_pretrained(str(folder))
    except SafetensorError as fault:
        raise as_os_error(fault, folder) from fault


def _named(training: Training, data: str, base: Base) -> str:
    """Return what names settings, records and base model of a checkpoint."""
    parts = json.dumps([training.hash, data, base.revision])
    return hashlib.sha256(parts.encode("utf-8")).hexdigest()[:16]


def _losses(folder: Path) -> dict[str, float | None]:
    """Return the losses of a curve: before the first step, after the last, and of the last tenth of the steps."""
    points = read_curve(folder / CURVE)
    validation = [point.validation_loss for point in points if point.validation_loss is not None]
    training = [point.training_loss for point in points if point.training_loss is not None]
    tail = training[-max(1, len(training) // 10) :]
    return {
        "first_validation_loss": validation[0] if validation else None,
        "validation_loss": validation[-1] if validation else None,
        "training_loss": sum(tail) / len(tail) if tail else None,
    }


def _outcome(
    training: Training,
    record: dict[str, Any],
    *,
    ended: TrainingEnd | None = None,
    was_finished: bool = False,
    interrupted: bool = False,
) -> Outcome:
    losses = _losses(training.folder)
    stopped = None if ended is None else ended.stopped
    return Outcome.of(
        training,
        "stopped" if stopped else FINISHED,
        was_finished=was_finished,
        steps=record.get("steps", 0) if ended is None else ended.place.step,
        planned=record.get("steps", 0) if ended is None else ended.steps,
        tokens=record.get("tokens", 0) if ended is None else ended.place.tokens,
        seconds=record.get("seconds", 0.0) if ended is None else round(ended.place.seconds, 2),
        stopped=stopped,
        interrupted=interrupted,
        first_validation_loss=losses["first_validation_loss"],
        validation_loss=losses["validation_loss"],
    )
