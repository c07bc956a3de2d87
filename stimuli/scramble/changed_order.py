"""Moves words within sentences, and sentences within a text, under several conditions."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from itertools import compress

from stimuli.scramble.changes import Change, Form
from stimuli.scramble.orders import Rule
from stimuli.scramble.registry import Operation
from stimuli.scramble.sentences import Span, find_sentences
from stimuli.scramble.settings import Draws, LeftIntact, Scrambled, ScrambleSettings, number_at
from stimuli.scramble.word_order import (
    reordered_sentences,
    reordered_words,
    sentences_of,
)
from stimuli.scramble.words import find_words, word_starts


class OrderConditions:
    """Conditions that move words within sentences, or sentences within a text, made ready for any number of texts."""

    def __init__(self, operations: Mapping[str, Operation], settings: ScrambleSettings) -> None:
        self._settings = settings
        self._common = settings.eligibility == "common"
        self._operations = {
            level: (operation.name, operation.rate) for level, operation in operations.items()
        }
        kinds = {operation.name: operation for operation in operations.values()}
        self._types = {name: kind.type.name for name, kind in kinds.items()}
        self._rules: dict[str, Rule] = {
            name: kind.type.bound(settings.language, dict(kind.options)) for name, kind in kinds.items()
        }
        self._whole = all(kind.type.unit == "sentence" for kind in kinds.values())

    def scrambled(self, text: str, draws: Draws, asked: Collection[int] | None) -> dict[str, Scrambled]:
        """Change the order of words, or of sentences, of one text under every condition."""
        spans, outcomes = self._texts(text, draws) if self._whole else self._sentences(text, draws, asked)
        starts = word_starts(text) if len(spans) > 1 else ()
        some = any(rate < 1 for _, rate in self._operations.values())
        ranks = draws.numbers(len(spans), "which sentences") if some else ()
        results = {}
        for level, (name, rate) in self._operations.items():
            compared = outcomes if self._common else {name: outcomes[name]}
            left = []
            fails = [str in map(type, of_place) for of_place in zip(*compared.values(), strict=True)]
            for place in compress(range(len(spans)), fails):
                reasons = [
                    f"{one}: {row[place]}" for one, row in compared.items() if isinstance(row[place], str)
                ]
                begin, end = spans[place]
                left.append(LeftIntact(bisect_left(starts, begin), text[begin:end], "; ".join(reasons)))
            eligible = [place for place, fail in enumerate(fails) if not fail]
            chosen = eligible
            if rate < 1:
                ranked = sorted(eligible, key=ranks.__getitem__)
                chosen = sorted(ranked[: number_at(rate, len(ranked))])
            results[level] = _with_forms(text, starts, spans, outcomes[name], chosen, tuple(left))
        return results

    def _texts(self, text: str, draws: Draws) -> tuple[list[Span], dict[str, list[Form | str]]]:
        spans = find_sentences(text, self._settings.language)
        if not spans:
            return [], {name: [] for name in self._rules}
        whole = Span(spans[0].begin, spans[-1].end)
        return [whole], {
            name: [reordered_sentences(text, spans, rule, *draws.numbers(1, "new form", self._types[name]))]
            for name, rule in self._rules.items()
        }

    def _sentences(
        self, text: str, draws: Draws, asked: Collection[int] | None
    ) -> tuple[list[Span], dict[str, list[Form | str]]]:
        allowed = None
        if asked is not None:
            allowed = [Span(word.start, word.end) for word in find_words(text) if word.index in asked]
        sentences = sentences_of(text, self._settings.language, allowed)
        outcomes = {}
        for name, rule in self._rules.items():
            numbers = draws.numbers(len(sentences), "new form", self._types[name])
            outcomes[name] = [
                reordered_words(
                    text,
                    sentence,
                    rule,
                    number,
                    capital_stays=self._settings.capitals == "stay_in_place",
                    language=self._settings.language,
                )
                for sentence, number in zip(sentences, numbers, strict=True)
            ]
        return [sentence.span for sentence in sentences], outcomes


def _with_forms(
    text: str,
    starts: Sequence[int],
    spans: Sequence[Span],
    outcomes: Sequence[Form | str],
    chosen: Sequence[int],
    left: tuple[LeftIntact, ...],
) -> Scrambled:
    parts: list[str] = []
    changes: list[Change] = []
    position = shown = 0
    for place in chosen:
        form, span = outcomes[place], spans[place]
        assert isinstance(form, Form)
        parts += [text[position : span.begin], form.shown]
        shown += span.begin - position
        changes.append(form.at(bisect_left(starts, span.begin), shown))
        shown += len(form.shown)
        position = span.end
    return Scrambled("".join([*parts, text[position:]]), tuple(changes), left)
