"""Changes letters of words, the order of words, and the order of sentences in one text under several conditions.

Words move among the positions of words; marks, spaces and a capital at the beginning of a sentence stay. An abbreviation
keeps its full stop, which also ends the sentence if the abbreviation is last. Sentences move with their marks; the
separators between them stay in place.
"""

from __future__ import annotations

import functools
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress, repeat
from typing import Literal, NamedTuple, cast

from stimuli.errors import UserError
from stimuli.lexicon import STRICTNESSES, Strictness, require_lexicon, tells_words
from stimuli.scramble.changes import Change, SpanForm, described
from stimuli.scramble.edits import Unmoved, lower, upper
from stimuli.scramble.letter_forms import TOO_SHORT, LetterForms, Outcome, Writing
from stimuli.scramble.orders import ScrambleRule
from stimuli.scramble.sentences import (
    TextSpan,
    find_sentences,
    gains_capital,
    is_abbreviation,
    loses_capital,
    word_pieces,
)
from stimuli.scramble.types import FEWER, UNSPACED, Operation, Options, ScrambleType
from stimuli.seeds import stable_draws_of
from stimuli.words import WITHOUT_SPACES, cut, find_words, nfc, word_starts, written_without_spaces

Capitals = Literal["stay_in_place", "move"]
Dose = Literal["equal", "as_published"]


@dataclass(frozen=True)
class ScrambleSettings:
    """Scramble settings of a whole set of materials, apart from the operation."""

    min_letters: int = 0  # fewest letters of a word that may change; a type's own holds where it is higher
    capitals: Capitals = "stay_in_place"  # whether a capital keeps its place or goes with its letter
    # never show a real word (see stimuli.lexicon) in place of another: a word with no other form stays intact. true is
    # words, false off; None is words where the language has a word list
    avoid_real_words: Strictness | bool | None = None
    language: str = "en"  # language tag, for the word list and for capitals
    words: Literal["all", "starred"] = "all"  # which words may change; stars are read with the materials
    dose: Dose = (
        "equal"  # equal: the same words change in every condition; as_published: those that each can change
    )
    rate: float = 1.0  # share of the eligible words that change, where an operation does not say its own

    def __post_init__(self) -> None:
        given = self.avoid_real_words
        if given not in (None, True, False, *STRICTNESSES):
            raise UserError(
                f"avoid_real_words is {given!r}, which is not a strictness",
                mend=f"Write one of: {', '.join(STRICTNESSES)}.",
            )
        if self.strictness != "off":
            require_lexicon(self.language)

    @property
    def strictness(self) -> Strictness:
        """Which forms are real words and are passed over."""
        given = self.avoid_real_words
        if given is None:
            given = tells_words(self.language)
        if isinstance(given, bool):
            return "words" if given else "off"
        return given


DEFAULT = ScrambleSettings()


class LeftIntact(NamedTuple):
    """A word that was meant to change and stays as it is; a named tuple, as :class:`Change` is, for there are many."""

    word: int
    intact: str
    reason: str


class Scrambled(NamedTuple):
    """A scrambled text in NFC, its changed words, and the words that were meant to change and could not."""

    text: str
    changes: tuple[Change, ...] = ()
    left_intact: tuple[LeftIntact, ...] = ()


class TextRandom(NamedTuple):
    """The draws that belong to one text."""

    seed: int  # the study's seed
    item: str  # id of the item, or the text itself
    occurrence: int  # how many times the same text came before
    # for each word of a version of a text the place of its draws in the row, so that versions draw alike for the same word
    places: tuple[int, ...] | None = None

    def numbers(self, count: int, purpose: str, *names: str) -> tuple[int, ...]:
        """Return 64 random bits for each of a row of words or sentences."""
        places = self.places if self.places is not None and len(self.places) == count else None
        drawn = count if places is None else max(places, default=-1) + 1
        row = stable_draws_of(drawn, (self.seed, f"scramble: {purpose}", *names), self.item, self.occurrence)
        return row if places is None else tuple(row[place] for place in places)


def number_at(rate: float, eligible: int) -> int:
    """Return how many of the eligible change at a rate: to the nearest, a half up."""
    return int(rate * eligible + 0.5)


NO_COMMON_PAIR = "no pair of letters that every condition can use"

Outcomes = list[Outcome]
_MAKE = tuple.__new__  # half the time of a call


@functools.lru_cache(maxsize=32)
def _letter_forms(
    kind: ScrambleType, options: Options, least: int, capitals: str, strictness: Strictness, language: str
) -> LetterForms:
    operation = Operation(kind, options=options)
    rule = kind.bound(language, dict(options))
    writing = Writing(
        gap=operation.gap,
        as_it_is=isinstance(rule, Unmoved),
        capitals_stay=capitals == "stay_in_place",
        strictness=strictness,
        language=language,
    )
    return LetterForms(
        rule,
        max(least, operation.min_letters),
        writing,
        leaves_runs=dict(options).get(UNSPACED.name, UNSPACED.default) == UNSPACED.default,
        reorders=kind.operation == "reorder",
    )


def _settled_options(operation: Operation, *, common: bool) -> Options:
    """Return an operation's options with ``fewer: auto`` settled by the dose."""
    options = dict(operation.options)
    if FEWER in operation.type.options and options.get(FEWER.name, FEWER.default) == FEWER.default:
        return (*operation.options, (FEWER.name, "leave" if common else "make"))
    return operation.options


class LetterConditions:
    """Conditions that change letters, made ready for any number of texts."""

    def __init__(self, operations: Mapping[str, Operation], settings: ScrambleSettings) -> None:
        self._common = settings.dose == "equal"
        self._names = {level: operation.name for level, operation in operations.items()}
        self._rates = {level: operation.rate for level, operation in operations.items()}
        self._types = {operation.name: operation.type.name for operation in operations.values()}
        self._makers = {
            operation.name: _letter_forms(
                operation.type,
                _settled_options(operation, common=self._common),
                settings.min_letters,
                settings.capitals,
                settings.strictness,
                settings.language,
            )
            for operation in operations.values()
        }
        groups: dict[object, list[str]] = {}
        for name, maker in self._makers.items():
            groups.setdefault(maker.site_rule.key if maker.site_rule else name, []).append(name)
        self._groups = list(groups.values())
        # The one level of a single condition that changes all words, which goes a shorter way.
        self._whole = (
            next(iter(operations)) if [operation.rate for operation in operations.values()] == [1] else None
        )
        self._has_sites = any(maker.site_rule for maker in self._makers.values())

    def scrambled(self, text: str, draws: TextRandom, asked: Collection[int] | None) -> dict[str, Scrambled]:
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

    def _every_word(self, pieces: list[str], draws: TextRandom) -> Scrambled:
        ((name, maker),) = self._makers.items()
        size = len(pieces) // 2
        sites = draws.numbers(size, "which letters") if self._has_sites else ()
        numbers = sites if maker.draws_sites_only else draws.numbers(size, "new form", self._types[name])
        text, changes, failed = maker.changed(pieces, numbers, sites)
        if not failed:
            return _MAKE(Scrambled, (text, changes, ()))
        reasons = {reason: f"{name}: {reason}" for _, reason in failed}
        left = [
            _MAKE(LeftIntact, (place, pieces[2 * place + 1], reasons[reason])) for place, reason in failed
        ]
        return _MAKE(Scrambled, (text, changes, tuple(left)))

    def _outcomes(
        self, words: Sequence[str], places: Sequence[int], draws: TextRandom
    ) -> dict[str, Outcomes]:
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
        draws: TextRandom,
        sites: Sequence[int],
    ) -> dict[str, Outcomes]:
        """Return the forms of types that share a site, all at the first drawn site that suits every one of them."""
        makers = [self._makers[name] for name in names]
        numbers = [draws.numbers(len(words), "new form", self._types[name]) for name in names]
        outcomes: dict[str, Outcomes] = {name: [TOO_SHORT] * len(words) for name in names}
        for place in places:
            drawn = [row[place] for row in numbers]
            forms = _together(makers, words[place], drawn, sites[place], common=self._common)
            for name, outcome in zip(names, forms, strict=True):
                outcomes[name][place] = outcome
        return outcomes


def _together(
    makers: Sequence[LetterForms], word: str, numbers: Sequence[int], site_number: int, *, common: bool
) -> Outcomes:
    letters = makers[0].plan(word).letters
    if not any(maker.too_short(letters) for maker in makers):
        for forms in _by_site(makers, word, numbers, site_number):
            if not any(isinstance(outcome, str) for outcome in forms):
                return forms
    separate = [maker.first(word, number, site_number) for maker, number in zip(makers, numbers, strict=True)]
    if not common:
        return _as_many_together(makers, word, numbers, site_number, separate)
    if not any(isinstance(outcome, str) for outcome in separate):
        return [NO_COMMON_PAIR for _ in separate]
    return separate


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
    waiting = {place for place, outcome in enumerate(own) if not isinstance(outcome, str)}
    sites = list(_by_site(makers, word, numbers, site_number)) if len(waiting) > 1 else []
    while len(waiting) > 1 and sites:
        suits = [{place for place in waiting if not isinstance(forms[place], str)} for forms in sites]
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
        reasons = {
            name: by_word[place] for name, by_word in outcomes.items() if isinstance(by_word[place], str)
        }
        if not reasons:
            eligible.append(place)
        # A word too short for every type is reported only where it was asked for by name.
        elif asked or len(reasons) < len(outcomes) or set(reasons.values()) != {TOO_SHORT}:
            reason_text = "; ".join(f"{name}: {reason}" for name, reason in reasons.items())
            left.append(LeftIntact(place, pieces[2 * place + 1], reason_text))
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


_OTHER_MARKS = tuple("?!…,;:")
ONE_WORD = "one word"
ONE_SENTENCE = "one sentence"
NO_OTHER_ORDER = "no other order"


class Sentence(NamedTuple):
    """A sentence of a text."""

    span: TextSpan  # where it stands
    pieces: list[str]  # what stands before its first word that may move, that word, what stands between, …


def sentences_of(text: str, language: str, allowed: Sequence[TextSpan] | None = None) -> list[Sentence]:
    """Return the sentences of a text that have words, of which only those that touch an ``allowed`` span may move."""
    sentences = []
    ends = [span.end for span in allowed or ()]
    for span in find_sentences(text, language):
        pieces = word_pieces(text[span.begin : span.end], language)
        if allowed is not None:
            pieces = _only(pieces, span.begin, allowed, ends)
        if len(pieces) > 1:
            sentences.append(Sentence(span, pieces))
    return sentences


def _only(pieces: Sequence[str], start: int, allowed: Sequence[TextSpan], ends: Sequence[int]) -> list[str]:
    """Keep the words that touch a span; the spans are in reading order, with their ends."""
    retained = [""]
    for place, piece in enumerate(pieces):
        end = start + len(piece)
        near = bisect_right(ends, start)
        if place % 2 and near < len(allowed) and allowed[near].begin < end:
            retained += [piece, ""]
        else:
            retained[-1] += piece
        start = end
    return retained


def reordered_words(
    text: str, sentence: Sentence, rule: ScrambleRule, number: int, *, capital_stays: bool, language: str
) -> SpanForm | str:
    """Return a sentence with its words in another order, or why there is none."""
    words = sentence.pieces[1::2]
    if len(words) < max(2, rule.least):
        return WITHOUT_SPACES if any(map(written_without_spaces, words)) else ONE_WORD
    intact = text[sentence.span.begin : sentence.span.end]
    before = sentence.pieces[0]
    front = words[0][_front(words[0]) :]
    heads = capital_stays and front[:1].isupper() and not (before and any(map(str.isalnum, before)))
    loose = _with_own_stop(words, sentence.pieces[-1], language)
    lent = loose[-1] != words[-1]
    if heads and loses_capital(front, words[1], text, language):
        loose[0] = _with_front(loose[0], lower, language)
    stops = _stops(sentence.pieces, intact)
    for arrangement in rule.candidates(tuple(loose), number):
        sources = cast(tuple[int, ...], arrangement)
        if str in map(type, arrangement):
            sources = tuple([source for source in sources if isinstance(source, int)])
        placed = list(map(loose.__getitem__, sources))
        if heads and gains_capital(placed[0]):
            placed[0] = _with_front(placed[0], upper, language)
        pieces = sentence.pieces.copy()
        pieces[1::2] = placed
        for place in stops:
            at_end = place == len(pieces) - 1
            pieces[place] = _marks_after(pieces[place - 1], pieces[place], lent=lent and at_end)
        shown = "".join(pieces)
        if shown != intact and (shown.isascii() or nfc(shown) == shown):
            return described(intact, shown, sources, pieces=len(words), unit="word")
    return NO_OTHER_ORDER


def _stops(pieces: Sequence[str], intact: str) -> list[int]:
    """Return the places of the marks between words that open with a full stop."""
    if intact.find(".", 0, -1) < 0:
        return [len(pieces) - 1] if pieces[-1][:1] == "." else []
    return [place for place in range(2, len(pieces), 2) if pieces[place][:1] == "."]


def _front(word: str) -> int:
    """Return the place of the letter that takes a capital: after an apostrophe of the word (``’Twas``)."""
    return 1 if word[0] in "'’‘" and len(word) > 1 else 0


def _with_front(word: str, cased: Callable[[str, str], str], language: str) -> str:
    place = _front(word)
    return word[:place] + cased(word[place], language) + word[place + 1 :]


def _with_own_stop(words: Sequence[str], after: str, language: str) -> list[str]:
    """Return words of which the last, an abbreviation whose full stop ends the sentence too, has its stop with it."""
    last = words[-1]
    if after[:1] == "." and after[:2] != ".." and is_abbreviation(last, language):
        return [*words[:-1], f"{last}."]
    return list(words)


def _marks_after(word: str, marks: str, *, lent: bool) -> str:
    """Return marks that open with a full stop, without it where the word has it itself or it went with an abbreviation."""
    doubled = word.endswith(".") and marks[:2] != ".."
    return marks[1:] if doubled or (lent and marks[1:2] in _OTHER_MARKS) else marks


def reordered_sentences(
    text: str, spans: Sequence[TextSpan], rule: ScrambleRule, number: int
) -> SpanForm | str:
    """Return a text with its sentences in another order, or why there is none."""
    if len(spans) < max(2, rule.least):
        return ONE_SENTENCE
    sentences = tuple(text[span.begin : span.end] for span in spans)
    intact = text[spans[0].begin : spans[-1].end]
    for arrangement in rule.candidates(sentences, number):
        sources = [source for source in arrangement if isinstance(source, int)]
        parts = []
        for place, source in enumerate(sources):
            between = text[spans[place].end : spans[place + 1].begin] if place + 1 < len(spans) else ""
            parts += [sentences[source], between]
        shown = "".join(parts)
        if shown != intact and nfc(shown) == shown:
            return described(intact, shown, sources, pieces=len(sentences), unit="sentence")
    return NO_OTHER_ORDER


class OrderConditions:
    """Conditions that move words within sentences, or sentences within a text, made ready for any number of texts."""

    def __init__(self, operations: Mapping[str, Operation], settings: ScrambleSettings) -> None:
        self._settings = settings
        self._common = settings.dose == "equal"
        self._operations = {
            level: (operation.name, operation.rate) for level, operation in operations.items()
        }
        kinds = {operation.name: operation for operation in operations.values()}
        self._types = {name: kind.type.name for name, kind in kinds.items()}
        self._rules: dict[str, ScrambleRule] = {
            name: kind.type.bound(settings.language, dict(kind.options)) for name, kind in kinds.items()
        }
        self._whole = all(kind.type.unit == "sentence" for kind in kinds.values())

    def scrambled(self, text: str, draws: TextRandom, asked: Collection[int] | None) -> dict[str, Scrambled]:
        """Change the order of words, or of sentences, of one text under every condition."""
        spans, outcomes = self._texts(text, draws) if self._whole else self._sentences(text, draws, asked)
        starts = word_starts(text) if len(spans) > 1 else ()
        rated = any(rate < 1 for _, rate in self._operations.values())
        ranks = draws.numbers(len(spans), "which sentences") if rated else ()
        results = {}
        for level, (name, rate) in self._operations.items():
            compared = outcomes if self._common else {name: outcomes[name]}
            left = []
            fails = [str in map(type, of_place) for of_place in zip(*compared.values(), strict=True)]
            for place in compress(range(len(spans)), fails):
                reasons = [
                    f"{kind}: {row[place]}" for kind, row in compared.items() if isinstance(row[place], str)
                ]
                begin, end = spans[place]
                left.append(LeftIntact(bisect_left(starts, begin), text[begin:end], "; ".join(reasons)))
            eligible = [place for place, fail in enumerate(fails) if not fail]
            chosen = eligible
            if rate < 1:
                ranked = sorted(eligible, key=ranks.__getitem__)
                chosen = sorted(ranked[: number_at(rate, len(ranked))])
            results[level] = _with_reordered(text, starts, spans, outcomes[name], chosen, tuple(left))
        return results

    def _texts(self, text: str, draws: TextRandom) -> tuple[list[TextSpan], dict[str, list[SpanForm | str]]]:
        spans = find_sentences(text, self._settings.language)
        if not spans:
            return [], {name: [] for name in self._rules}
        whole = TextSpan(spans[0].begin, spans[-1].end)
        return [whole], {
            name: [reordered_sentences(text, spans, rule, *draws.numbers(1, "new form", self._types[name]))]
            for name, rule in self._rules.items()
        }

    def _sentences(
        self, text: str, draws: TextRandom, asked: Collection[int] | None
    ) -> tuple[list[TextSpan], dict[str, list[SpanForm | str]]]:
        allowed = None
        if asked is not None:
            allowed = [TextSpan(word.start, word.end) for word in find_words(text) if word.index in asked]
        sentences = sentences_of(text, self._settings.language, allowed)
        outcomes = {}
        for name, rule in self._rules.items():
            numbers = draws.numbers(len(sentences), "new form", self._types[name])
            stays, language = self._settings.capitals == "stay_in_place", self._settings.language
            outcomes[name] = [
                reordered_words(text, sentence, rule, number, capital_stays=stays, language=language)
                for sentence, number in zip(sentences, numbers, strict=True)
            ]
        return [sentence.span for sentence in sentences], outcomes


def _with_reordered(
    text: str,
    starts: Sequence[int],
    spans: Sequence[TextSpan],
    outcomes: Sequence[SpanForm | str],
    chosen: Sequence[int],
    left: tuple[LeftIntact, ...],
) -> Scrambled:
    parts: list[str] = []
    changes: list[Change] = []
    position = shown = 0
    for place in chosen:
        form, span = outcomes[place], spans[place]
        assert isinstance(form, SpanForm)
        parts += [text[position : span.begin], form.shown]
        shown += span.begin - position
        changes.append(form.at(bisect_left(starts, span.begin), shown))
        shown += len(form.shown)
        position = span.end
    return Scrambled("".join([*parts, text[position:]]), tuple(changes), left)
