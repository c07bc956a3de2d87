"""What a study says of one model, as a run takes it: settings, sessions, budget, where hidden states go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from experiment.models.engine import Engine
from experiment.models.money import dollars
from experiment.models.planning import ModelSession, People, needs_people, plan_sessions
from experiment.models.settings import ModelSettings
from experiment.store import Store
from experiment.study import Study


def settings_of(study: Study, use: str, options: Mapping[str, object]) -> ModelSettings:
    """Return a model's settings, with what the study says of all its models."""
    given = dict(options)
    determinism = study.get("models", "determinism")
    if determinism is not None and use.startswith("hf:"):
        given.setdefault("determinism", determinism)
    return ModelSettings(use, given, study.folder, {})


def sessions_of(
    study: Study, reader: str, settings: ModelSettings, engine: Engine, store: Store | None, version: int
) -> Callable[[], Iterable[ModelSession]]:
    """Return what gives the sessions that a study asks of a model, from the first each time."""
    identity = dict(identity_of(engine, settings))
    people = People(store, study.id, version) if store is not None and needs_people(study) else None
    return lambda: plan_sessions(study, reader, settings, identity, version=version, people=people)


def identity_of(engine: Engine, settings: ModelSettings) -> dict[str, object]:
    """Return what names the sessions of a model beside the study; timed sessions stand beside the others."""
    identity = engine.describe()["identity"]
    assert isinstance(identity, Mapping)
    return {**identity, "timed": True} if settings.options.get("timing") else dict(identity)


def budget_of(study: Study) -> float | None:
    """Return what a study may cost in all, in US dollars; None where it sets no limit."""
    given = study.get("models", "budget")
    return None if given is None else dollars(given, str(study.place("models", "budget")))


def state_writer(study: Study, run_id: str, session: ModelSession, left: int) -> Any:
    """Return what keeps hidden states, where the study asks for them; ``left`` trials are to come at most."""
    if not session.manner.states or not session.manner.is_local:
        return None
    from experiment.models.states import StateWriter

    script = session.script
    expected = round(left * script.state_rows / max(1, len(script.places)))
    return StateWriter(study.folder / "states" / run_id, expected=expected)


def has_probe(engine: Engine, settings: ModelSettings) -> bool:
    """Say whether an engine finds out what its server can give before it is asked anything."""
    return callable(getattr(engine, "probe", None)) and bool(settings.options.get("probe", True))
