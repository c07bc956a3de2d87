"""Eye movements of an imported reader: first-pass and later times on words and named regions, from a table of fixations.

A fixation is on a word (an interest area), or outside all of them, which ends a first pass. A region that is skipped at first has no
first-pass times; one that is never fixated has no times at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from experiment.models.planning.session import words_of

EYE_MEASURES = ("first_fixation", "gaze", "go_past", "total_time")


class Fixation(NamedTuple):
    """One fixation: the word that it is on, from 0 (None outside all of them), and its duration in ms."""

    word: int | None
    duration: float


def eye_measures(fixations: Sequence[Fixation], first: int, end: int) -> dict[str, float | None]:
    """Return the times on the words from ``first`` to before ``end``: None for those that a reader has not.

    ``first_fixation`` and ``gaze`` are the first fixation and all fixations before the region is left, ``go_past`` all fixations on
    words until one is to the right of the region, if it is entered before any word to its right; ``total_time`` is the sum of all.
    """
    on_region = [fixation.word is not None and first <= fixation.word < end for fixation in fixations]
    beyond = next(
        (place for place, (word, _) in enumerate(fixations) if word is not None and word >= end),
        len(fixations),
    )
    entry = next((place for place in range(beyond) if on_region[place]), None)
    times = [duration for _, duration in fixations]
    total = sum(time for time, is_on in zip(times, on_region, strict=True) if is_on)
    measures: dict[str, float | None] = dict.fromkeys(EYE_MEASURES)
    measures["total_time"] = total or None
    if entry is None:
        return measures
    left = next((place for place in range(entry, len(fixations)) if not on_region[place]), len(fixations))
    passed = [fixations[place] for place in range(entry, beyond)]
    return measures | {
        "first_fixation": times[entry],
        "gaze": sum(times[entry:left]),
        "go_past": sum(duration for word, duration in passed if word is not None),
    }


def region_rows(trial: Mapping[str, Any], fixations: Sequence[Fixation]) -> Iterator[dict[str, Any]]:
    """Yield a trial's rows of the regions table: one for each word, and one for each named region of several words.

    A region's first-pass times are not sums over its words, so that such a region has a row of its own, which has its name.
    """
    words = words_of(trial)
    longer = {name: span for name, span in trial.get("regions", {}).items() if span[1] - span[0] > 1}
    for word in words:
        names = [name for name in (word["region_names"] or "").split(",") if name and name not in longer]
        place = word["region"]
        yield word | {"region_names": ",".join(names) or None} | eye_measures(fixations, place, place + 1)
    for number, (name, (first, end)) in enumerate(longer.items()):
        texts = {
            form: None
            if any(word[form] is None for word in words[first:end])
            else " ".join(word[form] for word in words[first:end])
            for form in ("shown", "intact")
        }
        yield {
            "region": len(words) + 1 + 2 * number,  # beside no word
            **texts,
            "is_changed": None if texts["intact"] is None else texts["intact"] != texts["shown"],
            "line": words[first]["line"],
            "region_names": name,
            **eye_measures(fixations, first, end),
        }
