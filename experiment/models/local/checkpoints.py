"""Finds and loads a local checkpoint, and says what to do where there is none to load."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.models.settings import ModelSettings, NotThereYet
from stimuli.errors import UserError, unknown_name

DTYPES = ("float32", "bfloat16", "float16")
_WHOLE_BYTES = 2**30
_CHUNKS = 256
_CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Source:
    """Where a checkpoint is read from: a folder on this machine or a name on the Hugging Face hub."""

    place: str
    is_folder: bool
    revision: str | None


def require_torch(use: str) -> None:
    """Say how to get PyTorch where a local model needs it and it is missing."""
    if importlib.util.find_spec("torch") is None:
        raise NotThereYet(
            f"{use} is a local model, and PyTorch is not installed",
            mend='Install the extra "local": pip install "wrods[local]".',
        )


def find_source(settings: ModelSettings) -> Source:
    """Find what a model's ``use: hf:…`` names.

    Raises
    ------
    UserError
        When PyTorch is missing, or a folder is named that is not there or holds no model.
    """
    require_torch(settings.use)
    name = settings.name
    given = Path(name).expanduser()
    for folder in (settings.folder / given, given):
        if folder.is_dir():
            if not (folder / "config.json").is_file():
                raise NotThereYet(
                    f"{folder} holds no model: it has no config.json",
                    mend="Name a folder written by save_pretrained, or a model of the Hugging Face hub.",
                )
            return Source(str(folder), True, None)
    if Path(name).exists():
        raise UserError(
            f"{name} is a file; a model is a folder with config.json and its weights",
            mend="Name the folder. For GGUF files run a server (llama.cpp, Ollama) and use openai:NAME with base_url.",
        )
    if name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise NotThereYet(
            f"there is no folder {name} (looked from {settings.folder.resolve()} and from here)",
            mend="Correct the path after hf:, or name a model of the Hugging Face hub as owner/name.",
        )
    revision = settings.options.get("revision")
    return Source(name, False, str(revision) if revision is not None else None)


def choose_device(asked: object) -> str:
    """Return ``cuda``, ``mps`` or ``cpu``: the one asked for, else the fastest that is there."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked is None:
        return next(name for name, present in there.items() if present)
    kind = str(asked).partition(":")[0]
    if kind not in there:
        raise unknown_name("device", str(asked), there)
    if not there[kind]:
        raise UserError(
            f"device {asked} is not on this machine", mend="Leave device out to take what is there."
        )
    return str(asked)


def choose_dtype(asked: object, device: str) -> str:
    """Return the number format: float32 on a CPU, bfloat16 elsewhere, unless one is asked for."""
    if asked is None:
        return "float32" if device == "cpu" else "bfloat16"
    if asked not in DTYPES:
        raise unknown_name("dtype", str(asked), DTYPES)
    return str(asked)


def load_tokenizer(source: Source) -> tuple[Any, Any]:
    """Load configuration and tokenizer, which is all that a preview needs.

    Returns
    -------
    tuple
        The transformers configuration and tokenizer.
    """
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(source.place, revision=source.revision)
        tokenizer = AutoTokenizer.from_pretrained(source.place, revision=source.revision)
    except Exception as error:
        raise _load_fault(source, error) from error
    return config, tokenizer


def load_model(source: Source, device: str, dtype: str) -> Any:
    """Load the weights for computing, cast to ``dtype``, on ``device``."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    if not sys.stderr.isatty():
        logging.disable_progress_bar()
    try:
        model = AutoModelForCausalLM.from_pretrained(
            source.place, revision=source.revision, dtype=getattr(torch, dtype)
        )
    except Exception as error:
        raise _load_fault(source, error) from error
    return model.to(device).eval().requires_grad_(False)


MODEL_SUFFIXES = frozenset({".safetensors", ".bin", ".model", ".jinja"})
MODEL_FILES = frozenset(
    {
        *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "vocab.json"),
        *("added_tokens.json", "special_tokens_map.json", "chat_template.json"),
    }
)


def name_revision(source: Source, config: Any) -> str:
    """Return what pins the weights: the hub's commit, or a hash over the files that make a model what it is.

    Notes that lie beside a model (a card, a recipe, measurements) do not make it another one.

    Weights up to 1 GiB a file are hashed whole; of larger files size and 256 MiB spread evenly.
    """
    if not source.is_folder:
        return str(getattr(config, "_commit_hash", None) or source.revision or "main")
    total = hashlib.sha256()
    for path in sorted(Path(source.place).iterdir()):
        of_model = (
            path.suffix in MODEL_SUFFIXES or path.name in MODEL_FILES or path.name.endswith(".index.json")
        )
        if of_model and path.is_file():
            total.update(json.dumps([path.name, path.stat().st_size]).encode())
            _hash_file(path, total)
    return f"sha256:{total.hexdigest()[:16]}"


def _hash_file(path: Path, total: hashlib._Hash) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= _WHOLE_BYTES:
            while chunk := file.read(_CHUNK_BYTES):
                total.update(chunk)
            return
        for number in range(_CHUNKS):
            file.seek((size - _CHUNK_BYTES) * number // (_CHUNKS - 1))
            total.update(file.read(_CHUNK_BYTES))


def _load_fault(source: Source, error: Exception) -> UserError:
    """Say which of the many ways of not loading this was."""
    causes = []
    cause: BaseException | None = error
    while cause is not None:
        causes.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, MemoryError):
        return UserError(
            f"{source.place} does not fit into memory", mend="Take a smaller model or dtype.", exit_code=1
        )
    if source.is_folder:
        return UserError(
            f"the model in {source.place} cannot be loaded: {first}",
            mend="The folder needs config.json, weights and tokenizer of a text-generating (causal) model.",
        )
    if "GatedRepoError" in causes:
        return UserError(
            f"{source.place} on the Hugging Face hub wants its terms accepted first",
            mend="Accept them on the model's page, then log in with: hf auth login.",
        )
    if "RepositoryNotFoundError" in causes or "HFValidationError" in causes:
        return UserError(
            f"the Hugging Face hub has no model {source.place!r}, or it is private",
            mend="Check the name (owner/name); for private models log in with: hf auth login.",
        )
    offline = {
        "OfflineModeIsEnabled",
        "LocalEntryNotFoundError",
        "ConnectError",
        "ConnectionError",
        "ConnectTimeout",
    }
    if offline & set(causes):
        return UserError(
            f"{source.place!r} is not a folder here, and the Hugging Face hub cannot be reached to look for it there",
            mend="Give the path of a local folder after hf:, or run once with a connection so that it is kept.",
            exit_code=1,
        )
    return UserError(
        f"{source.place} cannot be loaded: {first}",
        mend="It must be a text-generating (causal) model with a tokenizer.",
    )
