"""Engines for the ``use`` setting of a study's models; packages add kinds under the entry point ``wrods.engines``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from experiment.models.engine import Engine, Follow, ModelSettings, NotThereYet, Reply, Request
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import generator

Opener = Callable[[ModelSettings], Engine]


BASELINES = ("random", "always_a", "oracle", "oracle_with_lapses")
LAPSE_RATE = 0.1


class BaselineEngine:
    """Answers by rule.

    ``random`` draws a label with each request's own seed, ``always_a`` takes the first, ``oracle`` gives the correct answer,
    and ``oracle_with_lapses`` does so except in a proportion ``lapse_rate`` of trials, which it answers like ``random``. Labels
    are all possible choices, even if a model must write the choice: a paper's prompt that asks for the symbol itself. If an
    answer must be typed, only the oracles have one; the others, and lapses, return status ``empty``.
    """

    def __init__(self, settings: ModelSettings) -> None:
        if settings.name not in BASELINES:
            raise unknown_name("baseline", settings.name, BASELINES)
        rate = settings.options.get("lapse_rate", LAPSE_RATE)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise UserError(f"lapse_rate is {rate!r}; it is a share of trials, from 0 to 1")
        self.settings = settings
        self.lapse_rate = float(rate)
        self._closed = False

    def describe(self) -> dict[str, object]:
        """Return the baseline's name, and its lapse rate if it has lapses."""
        identity: dict[str, object] = {"kind": "baseline", "model": self.settings.name}
        if self.settings.name == "oracle_with_lapses":
            identity["lapse_rate"] = self.lapse_rate
        return {**identity, "identity": identity}

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that a model would read."""
        return {"text": "\n\n".join(message.content for message in request.messages)}

    def close(self) -> None:
        """Stop answering."""
        self._closed = True

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield one reply for each request and each follow-up request."""
        waiting = deque(requests)
        while waiting and not self._closed:
            request = waiting.popleft()
            text = self._text(request)
            reply = Reply(
                work_key=request.work_key,
                text=text,
                status="answered" if text else "empty",
                requested_model=self.settings.use,
                resolved_model=self.settings.use,
                path="rule",
            )
            waiting.extend(follow(reply) if follow is not None else ())
            yield reply

    def _text(self, request: Request) -> str | None:
        name = self.settings.name
        if name == "oracle_with_lapses":
            draw = generator("baseline:lapse", request.seed, request.work_key).random()
            name = "random" if draw < self.lapse_rate else "oracle"
        if name == "oracle":
            return self.settings.answers[request.work_key]
        labels = request.labels or self.settings.choices.get(request.work_key)
        if not labels:
            return None
        if name == "always_a":
            return labels[0]
        return generator("baseline:random", request.seed, request.work_key).choice(labels)


def _open_local(settings: ModelSettings) -> Engine:
    from experiment.models.local import LocalEngine, VisionEngine

    return (
        VisionEngine(settings) if settings.options.get("presentation") == "image" else LocalEngine(settings)
    )


def _open_api(settings: ModelSettings) -> Engine:
    from experiment.models.api.engine import ApiEngine

    return ApiEngine(settings)


BUILT_IN: dict[str, Opener] = {"hf": _open_local, "openai": _open_api, "baseline": BaselineEngine}


def known_kinds() -> tuple[str, ...]:
    """Return the valid kinds before the colon of ``use``: those of wrods, then those of installed packages."""
    return (*BUILT_IN, *(name for name in _added() if name not in BUILT_IN))


def check_use(use: str) -> None:
    """Raise an error if a model's ``use`` is not valid, without opening it."""
    settings = ModelSettings(use)
    if not settings.name:
        raise UserError(
            f"model {use!r} does not say what to run",
            mend="Write kind:name, such as hf:Qwen/Qwen3-8B, openai:gpt-4.1-mini or baseline:random.",
        )
    if settings.kind not in known_kinds():
        raise unknown_name("kind of model", settings.kind, known_kinds())
    if settings.kind == "baseline" and settings.name not in BASELINES:
        raise unknown_name("baseline", settings.name, BASELINES)


def use_remark(use: str, folder: Path, options: Mapping[str, object] | None = None) -> str | None:
    """Describe what a model still lacks on this machine (its folder, PyTorch, its key); None if nothing is missing."""
    check_use(use)
    settings = ModelSettings(use, options or {}, folder)
    try:
        _require_trained(settings)
        if settings.kind == "hf":
            from experiment.models.local.checkpoints import find_source

            find_source(settings)
        elif settings.kind == "openai":
            from experiment.models.servers import find_key

            find_key(settings.options)
    except NotThereYet as lack:
        return f"{lack.message}. {lack.mend}"
    return None


def open_engine(settings: ModelSettings) -> Engine:
    """Return the engine that a model's ``use`` names."""
    check_use(settings.use)
    _require_trained(settings)
    if settings.kind in BUILT_IN:
        return BUILT_IN[settings.kind](settings)
    opener: Opener = _added()[settings.kind].load()
    return opener(settings)


def unfinished_training(settings: ModelSettings) -> str | None:
    """Return the name of the unfinished training run that a model needs; None if it is finished or the model needs none."""
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
    """Raise an error with a remedy if the study trains this model and the training is not finished."""
    name = unfinished_training(settings)
    if name is not None:
        raise NotThereYet(
            f"training {name} is not finished, so there is no model of it yet",
            mend=f"Train it with `wrods tune STUDY --training {name}`.",
        )


def _added() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group="wrods.engines")}
