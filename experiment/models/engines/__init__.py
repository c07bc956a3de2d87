"""Turns ``use: hf:…`` of a study into a running engine; packages add kinds under the entry point ``wrods.engines``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from experiment.models.engine import Engine
from experiment.models.settings import ModelSettings, NotThereYet
from stimuli.errors import UserError, unknown_name

Opener = Callable[[ModelSettings], Engine]


def _open_local(settings: ModelSettings) -> Engine:
    from experiment.models.local import LocalEngine, VisionEngine

    return (
        VisionEngine(settings) if settings.options.get("presentation") == "image" else LocalEngine(settings)
    )


def _open_api(settings: ModelSettings) -> Engine:
    from experiment.models.api import ApiEngine

    return ApiEngine(settings)


def _open_baseline(settings: ModelSettings) -> Engine:
    from experiment.models.engines.baselines import BaselineEngine

    return BaselineEngine(settings)


BUILT_IN: dict[str, Opener] = {"hf": _open_local, "openai": _open_api, "baseline": _open_baseline}


def known_kinds() -> tuple[str, ...]:
    """Return what may stand before the colon of ``use``: what wrods has, then what installed packages add."""
    return (*BUILT_IN, *(name for name in _added() if name not in BUILT_IN))


def check_use(use: str) -> None:
    """Check that a model's ``use`` can mean something, without opening it."""
    settings = ModelSettings(use)
    if not settings.name:
        raise UserError(
            f"model {use!r} does not say what to run",
            mend="Write kind:name, such as hf:Qwen/Qwen3-8B, openai:gpt-4.1-mini or baseline:random.",
        )
    if settings.kind not in known_kinds():
        raise unknown_name("kind of model", settings.kind, known_kinds())
    if settings.kind == "baseline":
        from experiment.models.engines.baselines import BASELINES

        if settings.name not in BASELINES:
            raise unknown_name("baseline", settings.name, BASELINES)


def use_remark(use: str, folder: Path, options: Mapping[str, object] | None = None) -> str | None:
    """Describe what a model still lacks on this machine (its folder, PyTorch, its key); None where nothing is missing."""
    check_use(use)
    settings = ModelSettings(use, options or {}, folder)
    try:
        _require_trained(settings)
        if settings.kind == "hf":
            from experiment.models.local.checkpoints import find_source

            find_source(settings)
        elif settings.kind == "openai":
            from experiment.models.servers import find_key, server_of

            server = server_of(settings.options)
            find_key(settings.options, is_openai=server.is_openai, is_azure=server.is_azure)
    except NotThereYet as lack:
        return f"{lack.message}. {lack.mend}"
    return None


def open_engine(settings: ModelSettings) -> Engine:
    """Open the engine that a model's ``use`` names."""
    check_use(settings.use)
    _require_trained(settings)
    if settings.kind in BUILT_IN:
        return BUILT_IN[settings.kind](settings)
    opener: Opener = _added()[settings.kind].load()
    return opener(settings)


def unfinished_training(settings: ModelSettings) -> str | None:
    """Return the training that a model still waits for; None where it is done, and of a model that no training makes."""
    name = settings.options.get("trained")
    if name is None:
        return None
    is_there = (
        (settings.folder / settings.name).is_dir()
        if settings.kind == "hf"
        else settings.name != f"tuned:{name}"
    )
    return None if is_there else str(name)


def _require_trained(settings: ModelSettings) -> None:
    """Refuse with what to do where the study trains a model and the training is not done yet."""
    name = unfinished_training(settings)
    if name is not None:
        raise NotThereYet(
            f"training {name} is not finished, so there is no model of it yet",
            mend=f"Train it with `wrods tune STUDY --training {name}`.",
        )


def _added() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="wrods.engines")}
