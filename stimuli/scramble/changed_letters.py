"""Changes letters of words in one text under several conditions: which words, which form, and what the text becomes."""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, repeat

from stimuli.scramble.changes import Change
from stimuli.scramble.letter_forms import TOO_SHORT, LetterForms, Outcome
from stimuli.scramble.options import FEWER, UNSPACED
from stimuli.scramble.registry import Operation, Options
from stimuli.scramble.settings import Draws, LeftIntact, Scrambled, ScrambleSettings, number_at
from stimuli.scramble.types import ScrambleType
from stimuli.scramble.words import cut

NO_COMMON_PAIR = "no pair of letters that every condition can use"

Outcomes = list[Outcome]
_MAKE = tuple.__new__  # half the time of a call


@functools.lru_cache(maxsize=32)
def _letter_forms(
    kind: ScrambleType, options: Options, least: int, capitals: str, avoid_real_words: bool, language: str
) -> LetterForms:
    operation = Operation(kind, options=options)
    return LetterForms(
        kind.bound(language, dict(options)),
        max(least, operation.min_letters),
        gap=operation.gap,
        leaves_runs=dict(options).get(UNSPACED.name, UNSPACED.default) == UNSPACED.default,
        reorders=kind.operation == "reorder",
        capitals_stay=capitals == "stay_in_place",
        avoid_real_words=avoid_real_words,
        language=language,
    )


def _settled_options(operation: Operation, *, common: bool) -> Options:
    """Return an operation's options with ``fewer: auto`` settled by the eligibility."""
    options = dict(operation.options)
    if FEWER in operation.type.options and options.get(FEWER.name, FEWER.default) == FEWER.default:
        return (*operation.options, (FEWER.name, "leave" if common else "make"))
    return operation.options


class LetterConditions:
    """Conditions that change letters, made ready for any number of texts."""

    def __init__(self, operations: Mapping[str, Operation], settings: ScrambleSettings) -> None:
        self._common = settings.eligibility == "common"
        self._names = {level: operation.name for level, operation in operations.items()}
        self._rates = {level: operation.rate for level, operation in operations.items()}
        self._types = {operation.name: operation.type.name for operation in operations.values()}
        self._makers = {
            operation.name: _letter_forms(
                operation.type,
                _settled_options(operation, common=self._common),
                settings.min_letters,
                settings.capitals,
                settings.avoids_real_words,
                settings.language,
            )
            for operation in operations.values()
        }
        groups: dict[object, list[str]] = {}
        for name, maker in self._makers.items():
            groups.setdefault(maker.site_rule.key if maker.site_rule else name, []).append(name)
        self._groups = list(groups.values())
        # The one level of a single condition that changes all words, which goes a shorter way.
        self._whole = next(iter(operations)) if [one.rate for one in operations.values()] == [1] else None
        self._has_sites = any(maker.site_rule for maker in self._makers.values())

    def scrambled(self, text: str, draws: Draws, asked: Collection[int] | None) -> dict[str, Scrambled]:
        """Change letters of words of one text under every condition."""
        pieces, fixed = cut(text)
        if self._whole is not None and asked is None and not fixed:
            return {self._whole: self._every_word(pieces, draws)}
        words = pieces[1::2]
        places: Sequence[int] = range(len(words))
        if asked is not None:
            places = [place for place in places if place in asked]
        if fixed:
            words = ["" if place in fixed else word for place, word in enumerate(words)]
        outcomes = self._outcomes(words, places, draws)
        ranks: Sequence[int] | None = None
        shared = None
        results = {}
        for level, name in self._names.items():
            if shared is None or not self._common:
                compared = outcomes if self._common else {name: outcomes[name]}
                shared = _eligible(pieces, places, compared, asked is not None)
            eligible, left = shared
            chosen: Sequence[int] = eligible
            if self._rates[level] < 1:
                if ranks is None:
                    ranks = draws.numbers(len(words), "which words")
                ranked = sorted(eligible, key=ranks.__getitem__)
                chosen = sorted(ranked[: number_at(self._rates[level], len(ranked))])
            results[level] = _with_forms(pieces, outcomes[name], chosen, left)
        return results

    def _every_word(self, pieces: list[str], draws: Draws) -> Scrambled:
        ((name, maker),) = self._makers.items()
        size = len(pieces) // 2
        sites = draws.numbers(size, "which letters") if self._has_sites else ()
        numbers = sites if maker.draws_sites_only else draws.numbers(size, "new form", self._types[name])
        text, changes, failed = maker.changed(pieces, numbers, sites)
        if not failed:
            return _MAKE(Scrambled, (text, changes, ()))
        told = {reason: f"{name}: {reason}" for _, reason in failed}
        left = [_MAKE(LeftIntact, (place, pieces[2 * place + 1], told[reason])) for place, reason in failed]
        return _MAKE(Scrambled, (text, changes, tuple(left)))

    def _outcomes(self, words: Sequence[str], places: Sequence[int], draws: Draws) -> dict[str, Outcomes]:
        """Return, by type, every word's new form or why there is none; words not asked for count as too short."""
        size = len(words)
        sites = draws.numbers(size, "which letters") if self._has_sites else ()
        outcomes: dict[str, Outcomes] = {}
        for names in self._groups:
            if len(names) > 1:
                outcomes |= self._at_one_site(names, words, places, draws, sites)
                continue
            (name,) = names
            maker = self._makers[name]
            numbers = sites if maker.draws_sites_only else draws.numbers(size, "new form", self._types[name])
            if len(places) == size:
                outcomes[name] = maker.row(words, numbers, sites)
            else:
                outcomes[name] = [TOO_SHORT] * size
                for place in places:
                    site = sites[place] if sites else 0
                    outcomes[name][place] = maker.first(words[place], numbers[place], site)
        return outcomes

    def _at_one_site(
        self,
        names: Sequence[str],
        words: Sequence[str],
        places: Sequence[int],
        draws: Draws,
        sites: Sequence[int],
    ) -> dict[str, Outcomes]:
        """Return the forms of types that share a site, all at the first drawn site that suits every one of them."""
        makers = [self._makers[name] for name in names]
        numbers = [draws.numbers(len(words), "new form", self._types[name]) for name in names]
        outcomes: dict[str, Outcomes] = {name: [TOO_SHORT] * len(words) for name in names}
        for place in places:
            drawn = [row[place] for row in numbers]
            found = _together(makers, words[place], drawn, sites[place], common=self._common)
            for name, outcome in zip(names, found, strict=True):
                outcomes[name][place] = outcome
        return outcomes


def _together(
    makers: Sequence[LetterForms], word: str, numbers: Sequence[int], site_number: int, *, common: bool
) -> Outcomes:
    letters = makers[0].plan(word).letters
    if not any(maker.too_short(letters) for maker in makers):
        for found in _by_site(makers, word, numbers, site_number):
            if not any(isinstance(one, str) for one in found):
                return found
    own = [maker.first(word, number, site_number) for maker, number in zip(makers, numbers, strict=True)]
    if not common:
        return _as_many_together(makers, word, numbers, site_number, own)
    if not any(isinstance(one, str) for one in own):
        return [NO_COMMON_PAIR for _ in own]
    return own


def _by_site(
    makers: Sequence[LetterForms], word: str, numbers: Sequence[int], site_number: int
) -> Iterator[Outcomes]:
    """Yield what every type makes of each site, in drawn order."""
    rule = makers[0].site_rule
    assert rule is not None
    for site in rule.drawn_sites(makers[0].plan(word).letters, site_number):
        yield [maker.at_site(word, site, number) for maker, number in zip(makers, numbers, strict=True)]


def _as_many_together(
    makers: Sequence[LetterForms], word: str, numbers: Sequence[int], site_number: int, own: Outcomes
) -> Outcomes:
    """Return, where no site suits all types, the forms at the sites that suit most of them, and the own form of the rest."""
    outcomes = list(own)
    waiting = {place for place, one in enumerate(own) if not isinstance(one, str)}
    sites = list(_by_site(makers, word, numbers, site_number)) if len(waiting) > 1 else []
    while len(waiting) > 1 and sites:
        suits = [{place for place in waiting if not isinstance(found[place], str)} for found in sites]
        most = max(range(len(sites)), key=lambda site: len(suits[site]))
        if len(suits[most]) < 2:
            break
        for place in suits[most]:
            outcomes[place] = sites[most][place]
        waiting -= suits[most]
    return outcomes


def _eligible(
    pieces: Sequence[str], places: Sequence[int], outcomes: Mapping[str, Outcomes], asked: bool
) -> tuple[list[int], tuple[LeftIntact, ...]]:
    """Return the words that every one of some types can change, and those that some cannot although they were meant to."""
    if len(outcomes) == 1:
        ((name, only),) = outcomes.items()
        eligible = [place for place, outcome in enumerate(only) if outcome.__class__ is tuple]
        if not asked and len(eligible) + only.count(TOO_SHORT) == len(only):
            return eligible, ()
        failed = [
            LeftIntact(place, pieces[2 * place + 1], f"{name}: {only[place]}")
            for place in places
            if only[place].__class__ is str and (asked or only[place] != TOO_SHORT)
        ]
        return eligible, tuple(failed)
    eligible = []
    left = []
    for place in places:
        reasons = {name: one[place] for name, one in outcomes.items() if isinstance(one[place], str)}
        if not reasons:
            eligible.append(place)
        # A word too short for every type is reported only where it was asked for by name.
        elif asked or len(reasons) < len(outcomes) or set(reasons.values()) != {TOO_SHORT}:
            told = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
            left.append(LeftIntact(place, pieces[2 * place + 1], told))
    return eligible, tuple(left)


def _with_forms(
    pieces: Sequence[str], outcomes: Sequence[Outcome], chosen: Sequence[int], left: tuple[LeftIntact, ...]
) -> Scrambled:
    if not chosen:
        return Scrambled("".join(pieces), (), left)
    forms, tails = zip(*[outcomes[place] for place in chosen], strict=True)
    at = [2 * place + 1 for place in chosen]
    shown = list(pieces)
    for place, form in zip(at, forms, strict=True):
        shown[place] = form
    starts = list(accumulate(map(len, shown), initial=0))
    heads = zip(chosen, map(starts.__getitem__, at), map(pieces.__getitem__, at), forms, strict=True)
    changes = tuple(map(tuple.__new__, repeat(Change), map(operator.add, heads, tails)))
    return Scrambled("".join(shown), changes, left)
