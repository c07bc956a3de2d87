"""Records in tokens, kept beside them: long texts are never all in memory, and a second start tokenises nothing again.

Prompts are worded by :class:`~experiment.models.local.tokens.Wording`, which words them for the test, so that a reply is
learnt where its label will be scored.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiment.models.engine import Request
from experiment.models.local.tokens import Wording
from experiment.models.runs.limits import Stop
from experiment.tuning.records import Records, messages_of
from stimuli.errors import UserError
from stimuli.seeds import stable_seed

FOLDER = "tokens"
MOST_HELD_OUT = 500
"""Records that are kept for the validation loss at most."""
_TEXTS_AT_ONCE = 256

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Rows:
    """Records in tokens."""

    ids: Ids  # the tokens of all records, one after the other; a memory map
    starts: NDArray[np.int64]  # shape (records + 1,); where each record begins in ``ids``
    # shape (records,); the first token of each that is to be predicted, counted from its beginning
    scored: NDArray[np.int32]
    replies: bool  # whether records are prompts with replies
    left_out: int  # records that are longer than the model reads
    key: str  # names records, tokenizer and wording

    def __len__(self) -> int:
        return len(self.scored)

    def lengths(self) -> NDArray[np.int64]:
        """Return how many tokens each record has."""
        return np.diff(self.starts)

    def row(self, number: int) -> Ids:
        """Return the tokens of a record."""
        return self.ids[self.starts[number] : self.starts[number + 1]]


def parted(number: int, share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which of so many records are trained on and which are held out, drawn by the seed."""
    apart = min(MOST_HELD_OUT, max(1, round(share * number))) if share > 0 and number > 1 else 0
    order = permutation(number, seed, "training: which records are held out")
    return np.sort(order[apart:]), np.sort(order[:apart])


def permutation(number: int, *parts: str | int) -> NDArray[np.int64]:
    """Return the numbers below ``number`` in an order drawn by named parts."""
    return np.random.Generator(np.random.PCG64(stable_seed(*parts))).permutation(number)


def encoded(
    folder: Path, records: Records, wording: Wording, *, most: int | None, stop: Stop | None = None
) -> Rows:
    """Return a training's records in tokens; made once, read ever after.

    ``most``: tokens that the model reads; longer prompts with replies are left out. Running text is cut.
    ``stop``: where the end is asked for, nothing is kept.
    """
    told = [records.sha256, wording.describe(), most]
    key = hashlib.sha256(json.dumps(told, sort_keys=True, default=str).encode()).hexdigest()[:16]
    place = folder / FOLDER
    kept = _kept(place, key, replies=records.replies)
    if kept is not None:
        return kept
    partial = folder / f".{FOLDER}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    lengths, scored, left_out = [0], [], 0
    ends = _end(wording)
    of_records = _replies(records, wording) if records.replies else _texts(records, wording)
    try:
        with (partial / "ids.bin").open("wb") as stream:
            for ids, start in of_records:
                if stop is not None and stop.is_asked:
                    raise KeyboardInterrupt
                whole = (*ids, *ends)
                if records.replies and most is not None and len(whole) > most:
                    left_out += 1
                    continue
                stream.write(np.asarray(whole, dtype=np.int32).tobytes())
                lengths.append(len(whole))
                scored.append(start)
        if not scored:
            raise UserError(
                f"every one of {left_out} prompts is longer than the {most} tokens that the model reads",
                mend="Train with asked: bare, with fewer examples, or a model that reads more.",
            )
        np.save(partial / "starts.npy", np.cumsum(lengths, dtype=np.int64))
        np.save(partial / "scored.npy", np.asarray(scored, dtype=np.int32))
        (partial / "about.json").write_text(json.dumps({"key": key, "left_out": left_out}), "utf-8")
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    found = _kept(place, key, replies=records.replies)
    assert found is not None
    return found


def _kept(place: Path, key: str, *, replies: bool) -> Rows | None:
    try:
        about = json.loads((place / "about.json").read_text("utf-8"))
        if about["key"] != key:
            return None
        return Rows(
            np.memmap(place / "ids.bin", dtype=np.int32, mode="r"),
            np.load(place / "starts.npy"),
            np.load(place / "scored.npy"),
            replies,
            int(about["left_out"]),
            key,
        )
    except (OSError, ValueError, KeyError):
        return None


def _end(wording: Wording) -> tuple[int, ...]:
    end = wording.tokenizer.eos_token_id
    if end is None:
        raise UserError(
            "the tokenizer of this model has no token that ends a text (eos_token)",
            mend="Set eos_token in its tokenizer_config.json.",
        )
    return (int(end),)


def _replies(records: Records, wording: Wording) -> Iterator[tuple[Sequence[int], int]]:
    """Yield prompt and reply as one row, and where the reply begins."""
    for number, record in enumerate(records, 1):
        request = Request(str(number), messages_of(record), (record["reply"],), 1, 0.0, 0)
        try:
            label = wording.tokens(request).labels[0]
        except ValueError as fault:
            raise UserError(f"record {number} of {records.file.name}: {fault}") from fault
        yield label.ids, label.start


def _texts(records: Records, wording: Wording) -> Iterator[tuple[Sequence[int], int]]:
    """Yield each text behind the tokenizer's opening token, all of it to be predicted."""
    plain = wording if wording.template == "plain" else Wording(wording.tokenizer, template="plain")
    opening = plain.ids("")
    texts = (record["text"] for record in records)
    while some := list(islice(texts, _TEXTS_AT_ONCE)):
        # texts are cut into sequences that the model reads: what the tokenizer would say of long ones does not hold
        for ids in wording.tokenizer(some, add_special_tokens=False, verbose=False)["input_ids"]:
            yield (*opening, *ids), 1
