"""Each training of a study with every setting written out, and the checks that a schema cannot make."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from experiment.models.engine import ModelSettings
from experiment.papers.h_test.grammar import tasks_of
from experiment.study import Study
from experiment.study.study import EACH, KIND, given_trainings, training_folder
from stimuli.durations import milliseconds
from stimuli.errors import UserError, unknown_name

Method = Literal["lora", "full"]
Decay = Literal["cosine", "linear", "none"]
Asked = Literal["study", "bare"]

HTEST, RELEASED = "htest", "released"
OF_HTEST = (HTEST, RELEASED)
"""What `on` says where lines of H-TEST are trained: made by the rule, or those that the paper's authors released."""
TEXT_EPOCHS, REPLY_EPOCHS = 1, 3
"""Passes over running text, and over prompts with replies (H-TEST, Appendix F)."""
TEXT_BATCH, REPLY_BATCH = 8192, 16
"""Tokens of a step of running text, prompts of a step where they have replies."""
LEARNING_RATES: Mapping[Method, float] = {"lora": 2e-4, "full": 2e-5}


@dataclass(frozen=True)
class Lora:
    """The small matrices that are trained alongside the weights (Hu et al., 2022)."""

    rank: int = 16
    alpha: float = 32.0  # what they add is multiplied by ``alpha / rank``
    dropout: float = 0.05


@dataclass(frozen=True)
class Training:
    """One training with all its settings."""

    name: str
    base: str  # the name of the model under ``models: who``
    model: ModelSettings  # that model
    on: str  # ``htest``, ``released``, or the path of texts, as the study has it
    rule: str | None  # what is done to running text
    task: str | None  # of H-TEST
    asked: Asked | None  # how lines of H-TEST stand before the model; None for texts
    texts: int | None  # at most so many
    text_field: str  # which field of a row holds the text
    method: Method
    epochs: int | None  # None takes what is usual for the kind of records: see :meth:`epochs_of`
    learning_rate: float  # the highest one
    warmup: float  # share of the steps in which the rate rises
    decay: Decay
    weight_decay: float  # of matrices alone
    clip: float  # the longest gradient
    batch_tokens: int | None  # of one step; None as for ``epochs``
    sequence_length: int
    tokens_at_once: int | None  # None takes what the device usually has room for
    validation: float  # share of the records that is not trained on
    lora: Lora | None  # None where every weight is trained
    gradient_checkpointing: bool
    checkpoint_minutes: float
    seed: int
    price: float | None  # of a provider, US dollars for a million tokens
    place: str = field(default="", compare=False)

    @property
    def is_htest(self) -> bool:
        """Whether lines of H-TEST are trained."""
        return self.on in OF_HTEST

    @property
    def is_api(self) -> bool:
        """Whether a provider trains the model."""
        return self.model.kind == "openai"

    @property
    def folder(self) -> Path:
        """Folder of the training run's files."""
        return training_folder(self.model.folder, self.name)

    def epochs_of(self, *, replies: bool) -> int:
        """Return how often the records are gone through."""
        return self.epochs or (REPLY_EPOCHS if replies else TEXT_EPOCHS)

    def batch_of(self, *, replies: bool, mean_length: float) -> int:
        """Return how many tokens a step takes, where a record has so many on average."""
        return self.batch_tokens or (max(1, round(REPLY_BATCH * mean_length)) if replies else TEXT_BATCH)

    def of_data(self) -> dict[str, Any]:
        """Return what decides on which records the model is trained."""
        same = ("on", "rule", "task", "asked", "texts", "seed")
        return {**{name: getattr(self, name) for name in same}, "field": self.text_field}

    def to_json(self) -> dict[str, Any]:
        """Return every setting that may change the weights, as it is recorded; what may not (price, pauses) is left out."""
        apart = {"name", "model", "place", "price", "checkpoint_minutes", "tokens_at_once"}
        settings = {name: value for name, value in asdict(self).items() if name not in apart}
        return {"use": self.model.use, "revision": self.model.options.get("revision"), **settings}

    @property
    def hash(self) -> str:
        """Return what names these settings."""
        text = json.dumps(self.to_json(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]


def trainings(study: Study) -> dict[str, Training]:
    """Return every training of a study, by name, with all defaults."""
    by_name = {}
    for name, given in given_trainings(study).items():
        place = study.place("tuning", given["entry"])
        model = _model(study, given)
        _check(study, given, model)
        is_htest = given["on"] in OF_HTEST
        usual = "bare" if "prompts" in study.published else "study"
        method: Method = given.get("method", "lora")
        by_name[name] = Training(
            name=name,
            base=str(given["model"]),
            model=model,
            on=str(given["on"]),
            rule=given.get("rule"),
            task=given.get("task"),
            asked=cast(Asked, given.get("asked", usual)) if is_htest else None,
            texts=given.get("texts"),
            text_field=str(given.get("field", "text")),
            method=method,
            epochs=given.get("epochs"),
            learning_rate=float(given.get("learning_rate", LEARNING_RATES[method])),
            warmup=float(given.get("warmup", 0.03)),
            decay=given.get("decay", "cosine"),
            weight_decay=float(given.get("weight_decay", 0.0)),
            clip=float(given.get("clip", 1.0)),
            batch_tokens=given.get("batch_tokens"),
            sequence_length=int(given.get("sequence_length", 1024)),
            tokens_at_once=given.get("tokens_at_once"),
            validation=float(given.get("validation", 0.05)),
            lora=Lora(**given.get("lora", {})) if method == "lora" else None,
            gradient_checkpointing=bool(given.get("gradient_checkpointing", False)),
            checkpoint_minutes=milliseconds(given.get("checkpoint_every", "10 min")) / 60_000,
            seed=int(given.get("seed", study.seed)),
            price=None if given.get("price") is None else float(given["price"]),
            place=place,
        )
    return by_name


def _model(study: Study, given: Mapping[str, Any]) -> ModelSettings:
    """Return the model that a training names."""
    name = str(given["model"])
    models = study.models
    if name not in models:
        place = study.place("tuning", given["entry"], "model")
        if ":" in name:
            raise UserError(
                f"{place} is {name!r}; a training names its model as models: who does",
                mend=f'Write under models: who, say, base: {{use: "{name}"}}, and model: base here.',
            )
        fault = unknown_name("model", name, models) if models else None
        mend = "Name the model to train there, such as {base: {use: hf:Qwen/Qwen3-0.6B}}."
        raise UserError(
            f"{place} is {name!r}, which is not under models: who", mend=fault.mend if fault else mend
        )
    return ModelSettings.of(models[name], study.folder)


def _check(study: Study, given: Mapping[str, Any], model: ModelSettings) -> None:
    entry = given["entry"]

    def place(key: str) -> str:
        return study.place("tuning", entry, key) if key in study.get("tuning", entry) else entry

    if model.kind not in ("hf", "openai"):
        raise UserError(
            f"{place('model')}: {given['model']} is {model.use}, which cannot be trained",
            mend="Name a local model (hf:…), or one of a provider (openai:…).",
        )
    if model.kind == "openai":
        _check_provider(place, given, model)
    elif "price" in given:
        raise UserError(f"{place('price')}: a local model is trained without a price", mend="Take price out.")
    if "quantisation" in model.options:
        raise UserError(
            f"{place('model')}: {given['model']} has quantisation: {model.options['quantisation']}, and weights that are stored in "
            "so few bits are not trained",
            mend="Name a model without quantisation; lora trains a large one in little memory.",
        )
    if "lora" in given and given.get("method") == "full":
        raise UserError(
            f"{place('lora')}: method: full trains every weight, without adapters",
            mend="Take lora out, or set method: lora.",
        )
    if given["on"] in OF_HTEST:
        _check_htest(study, place, given)
        return
    for key in ("task", "asked"):
        if key in given:
            raise UserError(
                f"{place(key)}: {key} does not apply to texts", mend=f"Take it out, or write on: {HTEST}."
            )


def _check_provider(place: Any, given: Mapping[str, Any], model: ModelSettings) -> None:
    if given.get("method") == "full":
        raise UserError(
            f"{place('method')} is full, and {model.use} is trained by its provider, in its own way",
            mend="Take method out; to train every weight, name a local model (hf:…).",
        )
    for key in (
        "lora", "learning_rate", "warmup", "decay", "weight_decay", "clip", "batch_tokens", "sequence_length",
        "tokens_at_once", "gradient_checkpointing", "checkpoint_every",
    ):  # fmt: skip
        if key in given:
            raise UserError(
                f"{place(key)}: the provider of {model.use} sets this itself",
                mend="Take it out; epochs, seed and validation are sent.",
            )
    if "rule" in given:
        raise UserError(
            f"{place('rule')}: {model.use} is trained on prompts with replies, and running text has none",
            mend="Name a local model (hf:…) for running text, or write on: htest.",
        )


def _check_htest(study: Study, place: Any, given: Mapping[str, Any]) -> None:
    if study.get("materials", "htest") is None:
        raise UserError(
            f"{place('on')} is {given['on']}, and the study's materials are not those of H-TEST",
            mend="Name a file or folder of texts, or train in a study with materials: htest.",
        )
    if given["on"] == RELEASED and study.get("materials", "htest", "from") is None:
        raise UserError(
            f"{place('on')} is {RELEASED}, and the study does not say where the released files are",
            mend="Write on: htest for lines made by the rule, or name the folder with materials: htest: from.",
        )
    for key in ("rule", "texts", "field"):
        if key in given:
            raise UserError(
                f"{place(key)}: {key} does not apply to H-TEST",
                mend="Take it out; task says what is trained.",
            )
    task = given.get("task")
    if task is None:
        raise UserError(
            f"{place('on')}: on: {given['on']} needs the task to train",
            mend=f"Add task: {tasks_of(study)[0]}, or task: {EACH} for a training of every task.",
        )
    if task not in tasks_of(study):
        fault = unknown_name("task", task, tasks_of(study))
        raise UserError(f"{place('task')}: {fault.message} in this study", mend=fault.mend)


def check_trainings(study: Study) -> None:
    """Check a study's settings of training runs."""
    entries = study.get("tuning", default={})
    names = list(given_trainings(study))
    twice = next((name for name in names if name in entries and entries[name].get("task") == EACH), None)
    if len(set(names)) < len(names) or twice:
        raise UserError(
            f"{study.place('tuning')}: two training runs would have the same name", mend="Rename one."
        )
    for name, one in study.get("models", "who", default={}).items():
        kind, _, named = str(one["use"]).partition(":")
        if (
            kind == KIND
            and named in given_trainings(study)
            and given_trainings(study)[named]["model"] == name
        ):
            raise UserError(
                f"{study.place('models', 'who', name, 'use')} is {one['use']}, which is trained from {name} itself",
                mend="Let the training name another model.",
            )
    trainings(study)
