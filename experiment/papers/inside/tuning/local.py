"""A training on this machine from its texts to a folder that ``hf:`` reads, whatever ends it on the way."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiment.models.local.causal_model import give_back
from experiment.models.runs.limits import Deadline, Stop
from experiment.papers.inside.tuning.batches import TOKENS, Order, encoded, held_out_pieces, parted
from experiment.papers.inside.tuning.networks import Base, load_network, look_at, require_room, size_of
from experiment.papers.inside.tuning.record import (
    FINISHED,
    Outcome,
    opening_record,
    read_curve,
    require_same,
    write_record,
)
from experiment.papers.inside.tuning.records import built_again, make_records
from experiment.papers.inside.tuning.settings import Training
from experiment.papers.inside.tuning.training import CHECKPOINTS, Progress, Trainer, TrainingEnd, as_os_error
from experiment.study import Study
from experiment.study.trained import CURVE, read_record
from stimuli.errors import UserError

MODEL, ADAPTER = "model", "adapter"


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
    trainer = Trainer(
        network,
        training,
        order,
        held_out_pieces(data, held_out, length),
        epochs=epochs,
        device=base.device,
        padding=int(padding),
        settings=_named(training, data.key, base),
    )
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
            generation.temperature = generation.top_p = generation.top_k = (
                None  # transformers refuses to write them
            )
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
    return Outcome(
        training.name,
        training.base,
        f"tuned:{training.name}",
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
        folder=str(training.folder),
    )
