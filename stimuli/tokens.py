"""Tokens of a text before and after a change, by a language model's tokenizer."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from stimuli.errors import UserError


class Tokenizer(Protocol):
    """An object that encodes text: a transformers tokenizer, one of the tokenizers library, a tiktoken encoding."""

    def encode(self, text: str, /) -> Any:
        """Return the ids of a text's tokens, or an object that has them as ``ids``."""
        ...


def token_measures(intact: str, shown: str, tokenizer: Tokenizer) -> dict[str, float | None]:
    """Compare the tokens of a text before and after a change."""
    from rapidfuzz.distance import Levenshtein

    before = token_ids(intact, tokenizer)
    after = before if shown == intact else token_ids(shown, tokenizer)
    return {
        "tokens_intact": len(before),
        "tokens_shown": len(after),
        "token_edit_distance": int(Levenshtein.distance(before, after)),
        "characters_per_token": len(shown) / len(after) if after else None,
    }


def token_ids(text: str, tokenizer: Tokenizer) -> Sequence[int]:
    """Return the ids of a text's tokens, without those set around every text."""
    encoded: Any = tokenizer.encode(text, **_plain(tokenizer))
    ids = getattr(encoded, "ids", encoded)
    return [int(token) for token in ids]


def _plain(tokenizer: Tokenizer) -> dict[str, Any]:
    try:
        known = inspect.signature(tokenizer.encode).parameters
    except (TypeError, ValueError):
        return {"add_special_tokens": False} if hasattr(tokenizer, "token_to_id") else {}
    if "add_special_tokens" in known:
        return {"add_special_tokens": False}
    return {"disallowed_special": ()} if "disallowed_special" in known else {}


def load_tokenizer(name_or_path: str | Path) -> Tokenizer:
    """Load a tokenizer from a folder, a ``tokenizer.json`` or the Hugging Face hub (offline: its local cache)."""
    given = str(name_or_path)
    place = Path(given).expanduser()
    if not given.strip():
        raise UserError("tokenizer '' names nothing", mend="Give a folder, a tokenizer.json or owner/name.")
    try:
        loaded: Tokenizer
        if place.is_file():
            from tokenizers import Tokenizer as FastTokenizer

            loaded = FastTokenizer.from_file(str(place))
            return loaded
        if not place.is_dir() and (
            given.startswith((".", "/", "~")) or given.count("/") > 1 or "\\" in given
        ):
            raise UserError(
                f"tokenizer {given!r}: there is no such folder or file",
                mend="Correct the path, or name a model of the Hugging Face hub as owner/name.",
            )
        from transformers import AutoTokenizer

        loaded = AutoTokenizer.from_pretrained(str(place) if place.is_dir() else given)
        return loaded
    except UserError:
        raise
    except Exception as error:  # each tokenizer class fails in its own way on a damaged or missing file
        why = " ".join(str(error).split())[:200]
        raise UserError(
            f"tokenizer {given!r} cannot be loaded: {why}",
            mend="Give a folder with tokenizer.json or tokenizer_config.json, the file tokenizer.json itself, or the"
            " name of a model on the Hugging Face hub (owner/name), which must be in the local cache when offline.",
        ) from error
