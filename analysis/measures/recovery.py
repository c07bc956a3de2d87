"""Recovery of scrambled text: edit distance, recovery rate (Cao et al., 2023, equation 1) and recovered words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from rapidfuzz.distance import OSA, LCSseq, Levenshtein

from analysis.answers import never_answered
from analysis.measures.accuracy import cell_columns
from analysis.measures.resampling import bootstrap
from analysis.readers import PARTICIPANT_KINDS
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import stable_seed
from stimuli.words import cut, nfc


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text as they are compared: NFC, typographic apostrophes straightened, case folded."""
    pieces = cut(nfc(text).replace("\u2019", "'")).pieces
    return tuple(word.casefold() for word in pieces[1::2])


def same_place(intact: Sequence[str], given: Sequence[str]) -> list[int | None]:
    """Find for each intact word the given word that stands for it."""
    positions: list[int | None] = [None] * len(intact)
    for block in LCSseq.opcodes(list(intact), list(given)):
        if block.tag == "equal":
            for step in range(block.src_end - block.src_start):
                positions[block.src_start + step] = block.dest_start + step
    start = given_start = 0
    for end in [index for index, position in enumerate(positions) if position is not None] + [len(intact)]:
        anchor = positions[end] if end < len(intact) else None
        given_end = len(given) if anchor is None else anchor
        if start < end and given_start < given_end:
            gap = _matched(tuple(intact[start:end]), tuple(given[given_start:given_end]))
            for offset, position in enumerate(gap):
                positions[start + offset] = None if position is None else given_start + position
        start, given_start = end + 1, given_end + 1
    return positions


@lru_cache(maxsize=4096)
def _matched(intact: tuple[str, ...], given: tuple[str, ...]) -> tuple[int | None, ...]:
    """Align words in order by the largest sum of similarities (Needleman & Wunsch, 1970), gaps free."""
    rows, columns = len(intact), len(given)
    if rows * columns > 1_000_000:
        return tuple(None for _ in intact)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(rows - 1, -1, -1):
        for j in range(columns - 1, -1, -1):
            paired = OSA.normalized_similarity(intact[i], given[j]) + best[i + 1][j + 1]
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    positions: list[int | None] = [None] * rows
    i = j = 0
    while i < rows and j < columns:
        score = OSA.normalized_similarity(intact[i], given[j])
        if score > 0 and best[i][j] == score + best[i + 1][j + 1]:
            positions[i] = j
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return tuple(positions)


def with_one_typo(given: str, intact: str, shown: str) -> bool:
    """Return whether a word is one typo from the intact one, and nearer to it than to the shown form."""
    distance = int(OSA.distance(given, intact))
    return distance == 0 or (distance == 1 and int(OSA.distance(given, shown)) > 1)


GROUP = "reader_group"
SIGNS = ("corrected", "printed")
"""Equation 1 as printed takes the difference the other way round; the paper's tables hold the corrected values."""


@dataclass(frozen=True)
class RecoveredWords:
    """Counts of the words of a text by what an answer did with them."""

    changed: int  # words that were shown in another form than the intact one (case aside)
    recovered: int
    with_one_typo: int
    unchanged: int
    kept: int


def edit_distance(text: str, other: str) -> int:
    """Return the Levenshtein distance in characters, spaces, case and punctuation included, as Scrambled Bench takes it."""
    return int(Levenshtein.distance(text.strip(), other.strip()))


def recovery_rate(before: float, after: float, sign: str = "corrected") -> float:
    """Return the share of the edit distance that an answer took away, in percent."""
    if sign not in SIGNS:
        raise unknown_name("sign:", sign, SIGNS)
    if not before:
        return float("nan")
    rate = 100.0 * (before - after) / before
    return rate if sign == "corrected" else -rate


def recovered_words(intact: str, shown: str, given: str | None) -> RecoveredWords:
    """Count the words of an answer that stand for changed words of a text."""
    intact_words, shown_words = words_of(intact), words_of(shown)
    if len(intact_words) == len(shown_words):
        forms: list[str | None] = list(shown_words)
    else:
        forms = [
            None if position is None else shown_words[position]
            for position in same_place(intact_words, shown_words)
        ]
    answer = words_of(given) if given else ()
    given_words = [
        None if position is None else answer[position] for position in same_place(intact_words, answer)
    ]
    changed = recovered = tolerant = unchanged = 0
    for word, form, word_given in zip(intact_words, forms, given_words, strict=True):
        is_back = word_given == word
        if form == word:
            unchanged += is_back
            continue
        changed += 1
        recovered += is_back
        tolerant += is_back or (word_given is not None and with_one_typo(word_given, word, form or ""))
    return RecoveredWords(changed, recovered, tolerant, len(intact_words) - changed, unchanged)


def shown_texts(items: pd.DataFrame, factors: Sequence[str]) -> dict[tuple[Any, ...], dict[str, str]]:
    """Map an item's line (set, item_id, factor levels) to intact text → shown text."""
    for name in ("item_id", "shown", "intact"):
        if name not in items:
            raise UserError(f"the items table has no column {name!r}", mend="Export the study again.")
    keys = [name for name in ("set", "item_id", *factors) if name in items]
    texts: dict[tuple[Any, ...], dict[str, str]] = {}
    for *key, shown, intact in items[[*keys, "shown", "intact"]].itertuples(index=False, name=None):
        intact_fields, shown_fields = json.loads(intact or "{}"), json.loads(shown or "{}")
        texts[tuple(key)] = {
            str(text): str(shown_fields[field])
            for field, text in intact_fields.items()
            if field in shown_fields
        }
    return texts


def recovery_trials(
    trials: pd.DataFrame, items: pd.DataFrame, factors: Sequence[str], rows_at_once: int = 50_000
) -> pd.DataFrame:
    """Measure every used trial in which a text was to be restored."""
    used = trials["excluded_reason"].isna() & (trials["trial_type"] == "recover")
    used &= trials["response_status"].notna() & trials["answer"].notna() & ~never_answered(trials)
    rows = trials[used]
    texts = shown_texts(items, factors) if len(rows) else {}
    keys = [name for name in ("set", "item_id", *factors) if name in items]
    parts = [pd.DataFrame(columns=[*_KEPT, *factors, *_COUNTS])]
    for start in range(0, len(rows), rows_at_once):
        part = rows.iloc[start : start + rows_at_once]
        counts = pd.DataFrame(_numbers(part, texts, keys), columns=list(_COUNTS), dtype=float)
        parts.append(part[[*_KEPT, *factors]].reset_index(drop=True).join(counts))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def recovery(
    measured: pd.DataFrame,
    by: Sequence[str] | str = (),
    *,
    sign: str = "corrected",
    study: str = "",
    resamples: int = 2000,
) -> pd.DataFrame:
    """Sum recovered characters and words by reader group and cell."""
    if sign not in SIGNS:
        raise unknown_name("sign:", sign, SIGNS)
    by = cell_columns(measured, by)
    results, direction = [], 1.0 if sign == "corrected" else -1.0
    for key, trials in measured.groupby([GROUP, *by], observed=True, sort=False):
        sums = trials[list(_COUNTS)].sum()
        summary: dict[str, Any] = {
            **dict(zip([GROUP, *by], key, strict=True)),
            "trials": len(trials),
            "ed_shown": sums["ed_shown"] / len(trials),
            "ed": sums["ed_given"] / len(trials),
            "rr": recovery_rate(sums["ed_shown"], sums["ed_given"], sign),
            **{name: int(sums[name]) for name in ("changed", "recovered", "with_one_typo", "unchanged")},
        }
        if resamples:
            # a participant's answers hang together, as a model's answers to an item do
            units = ["reader"] if trials["reader_kind"].isin(PARTICIPANT_KINDS).all() else ["set", "item_id"]
            of_unit = (
                trials.groupby(units, dropna=False)[["ed_shown", "ed_given"]].sum().to_numpy(dtype=float)
            )
            seed = stable_seed(study, "recovery", *map(str, key))
            rr = bootstrap(
                of_unit, lambda means: direction * 100.0 * (1.0 - means[:, 1] / means[:, 0]), seed, resamples
            )
            summary |= {"rr_low": rr.low, "rr_high": rr.high, "rr_flagged": not np.isfinite(rr.low)}
        results.append(summary)
    return pd.DataFrame(results)


_KEPT = (
    *("session_id", "trial_index", "attempt", GROUP, "reader_kind", "reader", "set", "item_id"),
    "prompt_variant",
    "response_status",
)
_COUNTS = (
    *("ed_shown", "ed_given", "characters", "changed", "recovered", "with_one_typo", "unchanged", "kept"),
    "not_recovered",
)


def _numbers(
    rows: pd.DataFrame, known_texts: Mapping[tuple[Any, ...], Mapping[str, str]], keys: list[str]
) -> Iterator[tuple[float, ...]]:
    texts = rows[[*keys, "answer", "response", "response_status"]]
    for *key, intact, response, status in texts.itertuples(index=False, name=None):
        shown = known_texts.get(tuple(key), {}).get(intact)
        if shown is None:
            raise UserError(
                f"no line of the items table shows item {key[keys.index('item_id')]!r} as it was to be restored",
                mend="Export the study again, with the items that its sessions showed.",
            )
        yield _counts(intact, shown, response if status == "valid" else None)


@lru_cache(maxsize=200_000)
def _counts(intact: str, shown: str, given: str | None) -> tuple[float, ...]:
    """Return the counts of an answer; a missing one (None) recovers nothing. One report asks for the same answers again."""
    words = recovered_words(intact, shown, given)
    return (
        edit_distance(shown, intact),
        edit_distance(shown if given is None else given, intact),
        len(intact.strip()),
        words.changed,
        words.recovered,
        words.with_one_typo,
        words.unchanged,
        words.kept,
        words.changed - words.recovered,
    )
