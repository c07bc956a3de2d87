"""How a sentence-embedding model wants to be read: as the files beside its weights say that its makers read it.

The library sentence-transformers keeps three files beside a checkpoint: how many tokens of a text are read, which states make the
vector, and what stands behind them. A checkpoint without them is read to the end, and the mean of its states is the vector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.models.local.checkpoints import Source

LENGTH, MODULES, POOLING = "sentence_bert_config.json", "modules.json", "1_Pooling/config.json"
MEAN, FIRST, LAST = "mean", "cls", "lasttoken"
_WITHOUT_WEIGHTS = ("Transformer", "Pooling", "Normalize")
_OLDER = {"mean_tokens": MEAN, "cls_token": FIRST, "lasttoken": LAST}


@dataclass(frozen=True)
class Reading:
    """How texts are read.

    Attributes
    ----------
    most : int or None
        Tokens of a text at most; None where the model's own reach is meant.
    pooling : str
        ``mean`` over all tokens, ``cls`` (the first) or ``lasttoken``.
    """

    most: int | None = None
    pooling: str = MEAN


def reading_of(source: Source, name: str) -> Reading:
    """Read how a model wants to be read.

    Raises
    ------
    UserError
        It makes its vectors in a way that wrods does not follow.
    """
    most = _file(source, LENGTH).get("max_seq_length")
    pooling = _pooling(_file(source, POOLING), name)
    modules = _file(source, MODULES).get("modules", ())
    kinds = [str(one.get("type", "")).rpartition(".")[2] for one in modules]
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


def _file(source: Source, name: str) -> dict[str, Any]:
    """Return what a file beside the weights says; nothing where there is none. A list stands under ``modules``."""
    if source.is_folder:
        path: Path | None = Path(source.place) / name
    else:
        from transformers.utils import cached_file

        found = cached_file(
            source.place,
            name,
            revision=source.revision,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=False,
        )
        path = None if found is None else Path(found)
    if path is None or not path.is_file():
        return {}
    try:
        said = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is not JSON: {error}", mend="Get the model's files again.") from error
    return {"modules": said} if isinstance(said, list) else dict(said)
