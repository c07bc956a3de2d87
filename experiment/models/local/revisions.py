"""What pins a checkpoint: the hub's commit, or a hash over the files of a folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from experiment.models.local.checkpoints import Source

_WHOLE_BYTES = 2**30
_CHUNKS = 256
_CHUNK_BYTES = 2**20

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
