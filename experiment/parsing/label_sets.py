"""Sets of labels: what a reader ticks, as one text (``A, C``), and the set that a reply names as a whole."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from experiment.parsing.text import Parsed, fold, tidy, unmarked, words
from experiment.trials import labels_of
from stimuli.item import ANSWERS_BETWEEN

BETWEEN = ", "
"""Between the labels of a set, in the order in which they are offered."""
MOST_IN_SETS = 5
"""Most labels of which every set is scored by its log-probability; of more, a model's text is read."""
_SIGNS = re.compile(r"[\s,;&+|•*\-–]*")
_AND = re.compile(r"(?:and|und|y|e)(?!\w)")


def label_sets(step: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every set of labels that a planned step can be answered with; none for single labels, or too many of them."""
    labels = labels_of(step)
    if not step.get("several") or len(labels) > MOST_IN_SETS:
        return ()
    return tuple(
        BETWEEN.join(chosen)
        for number in range(1, len(labels) + 1)
        for chosen in combinations(labels, number)
    )


def answers_in(text: str | None) -> list[str]:
    """Return the correct answers in a text of several."""
    return [part.strip() for part in (text or "").split(ANSWERS_BETWEEN.strip()) if part.strip()]


def read_set(reply: str | None, labels: Sequence[str], options: Sequence[str] | None = None) -> Parsed:
    """Return the labels in a reply, as one text; ``unparsed`` unless the reply, its answer or its first line names only labels."""
    if reply is None or not reply.strip():
        return Parsed(None, "empty")
    plain = unmarked(tidy(reply))
    if re.match(rf"(?:{words('refused')})(?!\w)", plain.replace("’", "'"), re.IGNORECASE):
        return Parsed(None, "refused")
    announced = re.split(
        rf"(?<!\w)(?:{words('answer')})\s?(?:is|are|ist|sind|es|son)?\s?[:=]?\s", plain, flags=re.IGNORECASE
    )
    lines = plain.strip().splitlines()
    for text in (plain, announced[-1], announced[-1].strip().splitlines()[:1], lines[:1]):
        found = _only_labels(text if isinstance(text, str) else "".join(text), labels, options or ())
        if found:
            return Parsed(BETWEEN.join(label for label in labels if label in found), "valid")
    return Parsed(None, "unparsed")


def _only_labels(text: str, labels: Sequence[str], options: Sequence[str]) -> set[str]:
    """Return the labels that a text consists of; none if anything else is in it."""
    named = {
        fold(name): label
        for name, label in (*zip(options, labels, strict=False), *zip(labels, labels, strict=True))
    }
    found: set[str] = set()
    rest, place, is_joined = fold(text).strip().rstrip(".! "), 0, False
    while (place := _end(_SIGNS, rest, place)) < len(rest):
        after = next(
            (
                (label, end)
                for name, label in sorted(named.items(), key=lambda pair: -len(pair[0]))
                if (end := _end(_quoted(name), rest, place)) > place
            ),
            None,
        )
        if after is not None:
            label, place = after
            found.add(label)
            option = fold(options[labels.index(label)]) if options else ""
            place = _end(re.compile(rf"[:.)]?\s?{re.escape(option)}(?!\w)"), rest, place) if option else place
            is_joined = False
        elif found and not is_joined and (end := _end(_AND, rest, place)) > place:
            place, is_joined = end, True
        else:
            return set()
    return set() if is_joined else found


def _quoted(name: str) -> re.Pattern[str]:
    return re.compile(rf"[(\"'„“«]?{re.escape(name)}[)\"'”“».]?(?!\w)")


def _end(pattern: re.Pattern[str], text: str, begin: int) -> int:
    """Return where a pattern ends that is matched at a place; the place itself if it is not."""
    match = pattern.match(text, begin)
    return begin if match is None else match.end()
