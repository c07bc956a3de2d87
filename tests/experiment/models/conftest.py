"""Fixtures: tiny checkpoints, an opener of the local engine, a study to run and a server to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from experiment.models import ModelSettings
from experiment.models.api import retrying
from tests.experiment.models.running import named, server, study
from tests.experiment.models.tiny_models import CHAT_TEMPLATE, short_collections, tiny_llama
from tests.experiment.postgres import postgres_cluster, postgres_url

__all__ = ["named", "postgres_cluster", "postgres_url", "server", "short_collections", "study"]


@pytest.fixture(scope="session", autouse=True)
def _ask_again_soon() -> Iterator[None]:
    """Repeat a request that failed after hundredths of a second: how long a run waits is asked of its engine."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(retrying, "FIRST_WAIT_S", 0.02)
        yield


@pytest.fixture(scope="session")
def plain_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model: no chat template, the tokenizer puts a BOS token before a text."""
    return tiny_llama(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chat model whose template writes the BOS token itself."""
    return tiny_llama(tmp_path_factory.mktemp("chat"), template=CHAT_TEMPLATE)


@pytest.fixture
def local() -> Callable[..., object]:
    from experiment.models.local import LocalEngine

    def opened(folder: Path, **options: object) -> LocalEngine:
        return LocalEngine(ModelSettings(f"hf:{folder}", options))

    return opened
