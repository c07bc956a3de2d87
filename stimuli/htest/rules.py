"""The rules of H-TEST: the decision of each, matched pairs for it, and the registry of all rules.

A word is a run between spaces without the marks around it; letters are compared without accents.

Packages add rules through entry-point group ``wrods.rules``: an entry names a :class:`~stimuli.htest.rules.Rule`,
several, or a function that returns them.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import regex

from stimuli.entry_points import registry
from stimuli.errors import unknown_name
from stimuli.features import vowel_groups
from stimuli.files import data_file
from stimuli.lexicon import pronunciations, zipf
from stimuli.lexicon.neighbourhoods import BIGRAM_MEASURES, bigram_frequency, neighbourhoods
from stimuli.words import nfc

Label = Literal["A", "B"]


@dataclass(frozen=True)
class Pair:
    """Two texts of one carrier, one of each class."""

    a: str  # the texts
    b: str
    carrier: str  # names the pair; no carrier is used twice
    # what must not be in exemplars and test items both, such as a set of rhyming words: all families of a
    # pair are of one part. The carrier where not given
    families: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rule:
    """A rule that sorts texts into A and B."""

    name: str  # name of the task
    statement: str  # the rule in words, as a reader is told it
    predicate: Callable[[str], Label]  # any text → ``A`` or ``B``
    # random generator → one pair; may repeat carriers and miss a match, the caller draws again
    pair: Callable[[random.Random], Pair]
    source: str  # where the rule was described
    # features and families of :mod:`stimuli.features` that decide the label or follow from it by necessity.
    # In every other feature the members of a pair are equal: a pair in which they differ is not used
    about: frozenset[str] = frozenset()
    # how far the members of a pair may differ in a feature where they cannot be equal; no rule of ours needs
    # it
    tolerance: Mapping[str, float] = field(default_factory=dict)


_GAP = re.compile(r"\{([a-z]+)(\d?)\}")
_NOUNS = {"person": "people", "thing": "things", "animal": "animals"}


def data(name: str) -> Mapping[str, Any]:
    """Return a list of words by its name (``nouns``, ``sentences``, ``numbers``, ``rhymes``, ``mentioned``)."""
    return cast(Mapping[str, Any], data_file(f"htest/words/{name}.json"))


@functools.cache
def listed(name: str, *, of: str = "sentences") -> tuple[str, ...]:
    """Return one list of a data file, such as ``listed("people", of="nouns")``."""
    return tuple(data(of)[name])


def drawn(kind: str, draw: random.Random) -> str:
    """Draw a word of a kind that a carrier sentence names (``person``, ``things``, ``verb``, ``place``)."""
    if kind in _NOUNS:
        return draw.choice(listed(_NOUNS[kind], of="nouns"))
    if kind == "people" or kind in _NOUNS.values():
        return draw.choice(listed(kind, of="nouns")) + "s"
    if kind in ("verb", "base"):
        return draw.choice(listed("verbs")) + ("s" if kind == "verb" else "")
    return draw.choice(listed(kind))


def fill(sentence: str, draw: random.Random, **given: str) -> str:
    """Fill the gaps of a carrier: with what is given, else with draws; a gap's name gets one word, others another."""
    words = dict(given)

    def word(gap: re.Match[str]) -> str:
        name = gap[1] + gap[2]
        if name not in words:
            chosen = drawn(_KINDS.get(gap[1], gap[1]), draw)
            while chosen in words.values():
                chosen = drawn(_KINDS.get(gap[1], gap[1]), draw)
            words[name] = chosen
        return words[name]

    return _GAP.sub(word, sentence)


@functools.cache
def mentioned_words() -> tuple[str, ...]:
    """Return the words of all kinds that a sentence can mention as words, by the alphabet."""
    nouns = (noun for kind in _NOUNS.values() for noun in listed(kind, of="nouns"))
    return tuple(sorted({*listed("ly", of="mentioned"), *listed("rest", of="mentioned"), *nouns}))


@functools.cache
def twins(*, as_long: bool = True) -> tuple[tuple[str, str], ...]:
    """Return every two mentioned words with one Zipf frequency and as many runs of vowels, in both orders."""
    alike: dict[tuple[float | None, int], list[str]] = {}
    for word in mentioned_words():
        alike.setdefault((zipf(word, "en"), vowel_groups(word)), []).append(word)
    return tuple(
        (one, other)
        for words in alike.values()
        for one, other in itertools.permutations(words, 2)
        if (len(one) == len(other) if as_long else len(one) > len(other))
    )


_KINDS = {"place": "places"}


_END_MARKS = frozenset(".?!;:,…‽。！？；：，、؟؛۔।")
_CLOSERS = frozenset({"Pe", "Pf", "Pi"})
_HYPHENATED = regex.compile(r"\p{L}\p{M}*[-‐‑]\p{L}")
_AROUND = regex.compile(r"^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$")
_DIGITS = r"\d+"


def _label(holds: bool) -> Label:
    return "A" if holds else "B"


def plain_words(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents and without marks around them."""
    if text.isascii():
        bare = text.lower()
    else:
        decomposed = unicodedata.normalize("NFD", text.casefold())
        bare = "".join(character for character in decomposed if not unicodedata.combining(character))
    stripped = (word if word.isalnum() else _AROUND.sub("", word) for word in bare.split())
    return [word for word in stripped if word]


def has_capital(text: str) -> Label:
    """Return A if there is a capital letter."""
    return _label(any(character.isupper() or character.istitle() for character in text))


def repeats_word(text: str) -> Label:
    """Return A if two adjacent words are the same, ignoring case and surrounding marks (``night. night.``)."""
    return _label(any(word == following for word, following in itertools.pairwise(plain_words(text))))


def ends_with_mark(text: str) -> Label:
    """Return A if the last character is a punctuation mark, ignoring closing quotes and brackets after it."""
    end = len(text)
    while end and (
        text[end - 1].isspace() or text[end - 1] in "\"'" or unicodedata.category(text[end - 1]) in _CLOSERS
    ):
        end -= 1
    return _label(bool(end) and text[end - 1] in _END_MARKS)


def ends_with_ly(text: str) -> Label:
    """Return A if the last word ends in *ly*, whether or not it is an adverb (``early``, ``family``)."""
    words = plain_words(text)
    return _label(bool(words) and words[-1].endswith("ly"))


def has_hyphenated_word(text: str) -> Label:
    """Return A if there is a hyphen directly between two letters (not a dash, a number range or a suspended hyphen)."""
    return _label(_HYPHENATED.search(text) is not None)


def is_palindrome(text: str) -> Label:
    """Return A if the text reads the same backwards, ignoring case; inner marks and spaces count (``put-up`` is B)."""
    clusters = regex.findall(r"\X", unicodedata.normalize("NFC", text.strip().casefold()))
    return _label(any(cluster[0].isalpha() for cluster in clusters) and clusters == clusters[::-1])


def starts_with_vowel(text: str) -> Label:
    """Return A if the first letter is a, e, i, o or u, with or without accent, whatever its sound (``hour`` is B)."""
    words = "".join(plain_words(text))
    first = next((character for character in words if character.isalpha()), "")
    return _label(first != "" and first in "aeiou")


def spells_operation(text: str) -> Label:
    """Return A if words for an operation (*plus*, *less than*) directly precede a number; signs are B."""
    return _label(_operation().search(text.casefold()) is not None)


@functools.cache
def _operation() -> re.Pattern[str]:
    numbers = data("numbers")
    spelled = "|".join(sorted(map(re.escape, numbers["spelled"]), key=len, reverse=True))
    values = "|".join([_DIGITS, *(rf"{word}\b" for word in numbers["number_words"])])
    return re.compile(rf"\b(?:{spelled})\s+(?:{values})")


def spells_first_number(text: str) -> Label:
    """Return A if the first number is written in letters; B if in digits, or if there is none."""
    match = _number().search(text.casefold())
    return _label(match is not None and not match[0][0].isdigit())


@functools.cache
def _number() -> re.Pattern[str]:
    words = "|".join(sorted(data("numbers")["number_words"], key=len, reverse=True))
    return re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])|{_DIGITS}")


def rhymes(text: str) -> Label:
    """Return A if the first and the last word of each couple rhyme; commas separate couples.

    Words rhyme if they have the same sounds from the last stressed vowel on, in any listed pronunciation.
    Homophones rhyme; a word does not rhyme with itself, nor does a word that the CMU Pronouncing Dictionary lacks.
    """
    couples = [words for part in text.split(",") if (words := plain_words(part))]
    return _label(
        bool(couples)
        and all(words[0] != words[-1] and _rimes(words[0]) & _rimes(words[-1]) for words in couples)
    )


def sound_alike(one: str, other: str) -> bool:
    """Return whether two words have a pronunciation in common: ``pair`` and ``pear``."""
    others = pronunciations(other)
    return any(sounds in others for sounds in pronunciations(one))


def _rimes(word: str) -> frozenset[tuple[str, ...]]:
    # Abbreviations are listed with their last stop.
    return frozenset(_rime(sounds) for sounds in pronunciations(word) or pronunciations(f"{word}."))


def _rime(sounds: list[str]) -> tuple[str, ...]:
    stressed = [place for place, sound in enumerate(sounds) if sound[-1] in "12"]
    return tuple(sound.rstrip("012") for sound in sounds[stressed[-1] if stressed else 0 :])


def neighbours_share_initial(text: str) -> Label:
    """Return A if two adjacent words begin with the same letter or digit."""
    return _label(any(word[0] == following[0] for word, following in itertools.pairwise(plain_words(text))))


def longest_word_is_last(text: str) -> Label:
    """Return A if the last of two or more words has more characters than any other."""
    lengths = [len(word) for word in plain_words(text)]
    return _label(len(lengths) > 1 and lengths[-1] > max(lengths[:-1]))


def is_alphabetical(text: str) -> Label:
    """Return A if two or more words are in alphabetical order (repeated words are in order)."""
    words = plain_words(text)
    return _label(len(words) > 1 and all(word <= following for word, following in itertools.pairwise(words)))


def is_word_chain(text: str) -> Label:
    """Return A if each of two or more words begins with the last letter of the word before it."""
    words = plain_words(text)
    return _label(
        len(words) > 1 and all(word[-1] == following[0] for word, following in itertools.pairwise(words))
    )


def has_inner_capital(text: str) -> Label:
    """Return A if a capital directly follows another letter (``seLls``); capitals at the start of a word are B."""
    return _label(
        any(previous.isalpha() and letter.isupper() for previous, letter in itertools.pairwise(nfc(text)))
    )


_BIGRAMS_ALIKE = 0.25
"""Largest difference between the bigram frequencies of two invented strings, log10(1 + count)."""
_NEIGHBOURS_ALIKE = 0.1
"""How far their OLD20 may be apart, in letters."""
_CONSONANTS = "bdfgklmnprstv"
_VOWELS = "aeiou"


def _plain_sentence(draw: random.Random) -> str:
    return fill(draw.choice(listed("plain")), draw)


def _with_capital(text: str, place: int) -> str:
    return text[:place] + text[place].upper() + text[place + 1 :]


def capital_pair(draw: random.Random) -> Pair:
    """One sentence with a capital anywhere after its first letter, and the sentence without."""
    plain = _plain_sentence(draw)
    letters = [place for place in range(1, len(plain)) if plain[place].isalpha()]
    return Pair(_with_capital(plain, draw.choice(letters)), plain, plain)


def inner_capital_pair(draw: random.Random) -> Pair:
    """One sentence with one capital: inside a word, or at the start of that word or of the next."""
    plain = _plain_sentence(draw)
    starts = [place + 1 for place, character in enumerate(plain) if character == " "]
    which = draw.randrange(len(starts) - 1)
    inner = list(range(starts[which] + 1, starts[which + 1] - 1))
    if not inner:
        return inner_capital_pair(draw)
    begin = starts[which + draw.randrange(2)]
    return Pair(_with_capital(plain, draw.choice(inner)), _with_capital(plain, begin), plain)


def palindrome_pair(draw: random.Random) -> Pair:
    """Seven or nine letters that no one knows as a word, mirrored, and the same letters with inner ones moved.

    Invented strings because the rule's published look, one real word, cannot be matched: of the words in the
    lexicon's vocabulary few are palindromes, they are short, readers may know them by heart, and no other word
    has their letters. First and last letter are the same in both, and both look about as much like English.
    """
    while True:
        outer, inner = (_CONSONANTS, _VOWELS) if draw.randrange(2) else (_VOWELS, _CONSONANTS)
        a, c, *more = draw.sample(outer, draw.choice((2, 3)))
        b, d = draw.sample(inner, 2)
        half = (a, b, c, d, *more)
        mirrored = "".join(half + half[-2::-1])
        broken = draw.choice(_with_two_exchanged(mirrored))
        if not any(zipf(text, "en") for text in (mirrored, broken)) and _as_regular(mirrored, broken):
            return Pair(mirrored, broken, mirrored)


def _with_two_exchanged(mirrored: str) -> list[str]:
    """Return the strings in which two inner letters, both vowels or both consonants, are swapped."""
    places = range(1, len(mirrored) - 1)
    moved = []
    for place in places:
        for other in places[place + 1 :: 2]:
            letters = list(mirrored)
            letters[place], letters[other] = letters[other], letters[place]
            moved.append("".join(letters))
    return sorted({text for text in moved if text != text[::-1]})


def _as_regular(one: str, other: str) -> bool:
    """Return whether two strings are about as far from English, by their bigrams and by the words near them."""
    pairs = [bigram_frequency(text, "en") for text in (one, other)]
    for measure in BIGRAM_MEASURES:
        low, high = sorted(getattr(pair, measure) for pair in pairs)
        if high - low > _BIGRAMS_ALIKE:
            return False
    near, also = neighbourhoods((one, other), "en")
    if near is None or also is None:
        return False
    return near.coltheart_n == also.coltheart_n and abs(near.old20 - also.old20) <= _NEIGHBOURS_ALIKE


def first_letter_pair(draw: random.Random) -> Pair:
    """Two mentioned words that begin a sentence, the vowel-initial one first (A) or second (B)."""
    sentence, vowel, other = _mentioned(draw, "starting_words", _begins_with_vowel)
    return Pair(sentence.format(vowel, other), sentence.format(other, vowel), sentence.format(vowel, other))


def ly_pair(draw: random.Random) -> Pair:
    """Two mentioned words that end a sentence, the one in *ly* last (A) or last but one (B)."""
    sentence, ly, other = _mentioned(draw, "ending_words", _ends_in_ly)
    return Pair(sentence.format(other, ly), sentence.format(ly, other), sentence.format(ly, other))


def _begins_with_vowel(word: str) -> bool:
    return word[0] in _VOWELS


def _ends_in_ly(word: str) -> bool:
    return word.endswith("ly")


def _mentioned(draw: random.Random, frames: str, holds: Callable[[str], bool]) -> tuple[str, str, str]:
    """Return a sentence with two places, and twins to fill them: one that holds and one that does not."""
    sentence = fill(draw.choice(listed(frames)), draw, first="{0}", second="{1}")
    return sentence, *draw.choice(_twins(holds))


@functools.cache
def _twins(holds: Callable[[str], bool]) -> tuple[tuple[str, str], ...]:
    """Return every two mentioned words that no nuisance feature tells apart, one that holds and one that does not."""
    return tuple((one, other) for one, other in twins() if holds(one) and not holds(other))


def rhyme_pair(draw: random.Random) -> Pair:
    """Two couples of words that rhyme (A), and the same words with the two inner ones exchanged (B).

    The released items show one couple. Two of them here, so that A and B have every word in common and begin and
    end with the same one: with one couple the last words differ, words are too few for those to be equally
    common, and the audit's classifiers sorted 2,000 items at up to .56 (upper bound .59). The inner words are as
    long and as common as each other, and the words of a couple end in different spellings, in A as in B. A set of
    rhyming words is in exemplars or in test items, never in both.
    """
    rhyming, alike = _rhyming()
    while True:
        w1, w2, first_set = draw.choice(rhyming)
        following = alike[_look(w2)]
        if not following:
            continue
        w3, w4, second_set = draw.choice(following)
        if first_set != second_set and w1[-2:] != w3[-2:] and w2[-2:] != w4[-2:]:
            families = tuple(f"set {number}" for number in (first_set, second_set))
            return Pair(
                f"{w1} {w2}, {w3} {w4}", f"{w1} {w3}, {w2} {w4}", " ".join(sorted((w1, w2, w3, w4))), families
            )


_Rhymes = tuple[tuple[str, str, int], ...]


@functools.cache
def _rhyming() -> tuple[_Rhymes, dict[object, _Rhymes]]:
    """Return every two words of a set, in both orders, with their set; and the same sorted by the look of the first."""
    every = tuple(
        (one, other, number)
        for number, words in enumerate(data("rhymes")["sets"])
        for one, other in itertools.permutations(words.split(), 2)
        if one[-2:] != other[-2:] and not sound_alike(one, other)
    )
    by_look: dict[object, list[tuple[str, str, int]]] = {}
    for rhyme in every:
        by_look.setdefault(_look(rhyme[0]), []).append(rhyme)
        by_look.setdefault(_look(rhyme[1]), [])
    return every, {look: tuple(rhymes) for look, rhymes in by_look.items()}


def _look(word: str) -> tuple[int, int, float | None]:
    return len(word), vowel_groups(word), zipf(word, "en")


_LONG = 9
"""Letters of a word that few words of a sentence exceed."""


def repeated_pair(draw: random.Random) -> Pair:
    """Two clauses with a word in common: said twice in a row (A), or once in each clause (B)."""
    frame = draw.choice(data("sentences")["doubled"])
    x = drawn(frame["kind"], draw)
    a, b = fill(f"{frame['a']}\n{frame['b']}", draw, x=x).split("\n")
    return Pair(a, b, b)


def end_mark_pair(draw: random.Random) -> Pair:
    """Two clauses with one mark, at the end (A) or between them (B)."""
    if draw.randrange(3):
        kind, mark = "statements", draw.choice(listed("statement_marks"))
    else:
        kind, mark = "questions", "?"
    first, second = (fill(sentence, draw) for sentence in draw.sample(listed(kind), 2))
    return Pair(f"{first} {second}{mark}", f"{first}{mark} {second}", f"{first} {second}")


def hyphen_pair(draw: random.Random) -> Pair:
    """Two trades and two numbers: the trades joined by a hyphen and the numbers by a stroke (A), or the reverse."""
    low = draw.randrange(1, 80)
    trades = draw.sample(listed("trades"), 2)
    carrier, span = draw.choice(listed("ranges")), f"{low}{{1}}{low + draw.randrange(1, 4)}"
    sentence = fill(carrier, draw, trades="{0}".join(trades), range=span)
    return Pair(sentence.format("-", "/"), sentence.format("/", "-"), sentence)


def operation_pair(draw: random.Random) -> Pair:
    """Sum and name of its sign: spelled between the numbers and a sign as the name (A), or the reverse.

    The released items have one notation (``The sum plus 12.``, ``The limit < 10.``). These have both, because a
    spelled operation alone makes a text longer in words, letters and tokens than a sign: with both, A and B have
    the same characters and words and differ only in which notation is between the numbers.
    """
    operation = draw.choice(data("numbers")["used_in_items"])
    low, high = sorted(draw.sample(range(2, 13), 2))
    match operation["numbers"]:
        case "rising":
            numbers = low, high
        case "falling":
            numbers = high, low
        case "multiple":
            numbers = low * high, low
        case _:
            numbers = (low, high) if draw.randrange(2) else (high, low)
    ways = operation["word"], operation["sign"]
    sentence = fill(draw.choice(listed("sums")), draw, sum="{sum}", sign="{sign}")
    a, b = (
        sentence.format(sum=f"{numbers[0]} {between} {numbers[1]}", sign=named)
        for between, named in (ways, ways[::-1])
    )
    return Pair(a, b, b)


def number_pair(draw: random.Random) -> Pair:
    """One number twice, first in letters and then in digits (A), or the reverse.

    The released items show it once. These have both notations, because a number in letters alone is longer than in
    digits and adds a frequent word: with both, A and B have the same characters and words and differ only in which
    notation is first.
    """
    value = draw.randrange(2, 21)
    ways = data("numbers")["number_words"][value], str(value)
    sentence = fill(draw.choice(listed("numbers")), draw, n="{n}", m="{m}")
    a, b = (sentence.format(n=n, m=m) for n, m in (ways, ways[::-1]))
    return Pair(a, b, b)


def shared_initial_pair(draw: random.Random) -> Pair:
    """Four listed things, two of them with the same first letter: side by side (A) or parted by another (B)."""
    kind = draw.choice(("things", "animals"))
    first, other, last = (drawn(kind, draw) for _ in range(3))
    twins = [noun + "s" for noun in listed(kind, of="nouns") if noun[0] == first[0] and noun + "s" != first]
    if not twins:
        return shared_initial_pair(draw)
    twin = draw.choice(twins)
    near = (first, twin, other, last), (first, other, twin, last)
    far = (other, first, twin, last), (other, first, last, twin)
    return _listing(draw, *draw.choice((near, far)))


def longest_last_pair(draw: random.Random) -> Pair:
    """Three or four mentioned words, the longest last (A), or before a word as common as it is (B)."""
    longest, last = draw.choice(_long_twins())
    others = draw.sample(mentioned_words(), draw.choice((1, 2)))
    rarity = [-(zipf(word, "en") or 0.0) for word in (*others, longest)]
    if max(map(len, others)) >= len(longest) or rarity[0] <= max(rarity[1:]):
        # Another word would be the longest, or the rarest word would change its place.
        return longest_last_pair(draw)
    place = draw.randrange(1, len(others) + 1)
    return _listing(
        draw, (*others, last, longest), (*others[:place], longest, *others[place:], last), "word_lists"
    )


@functools.cache
def _long_twins() -> tuple[tuple[str, str], ...]:
    """Return twins of which the first is longer than most words of a sentence are."""
    return tuple((long, short) for long, short in twins(as_long=False) if len(long) >= _LONG)


def _listing(draw: random.Random, a: tuple[str, ...], b: tuple[str, ...], frames: str = "listing") -> Pair:
    sentence = fill(draw.choice(listed(frames)), draw, list="{list}")
    texts = [sentence.format(list=f"{', '.join(words[:-1])} and {words[-1]}") for words in (a, b)]
    return Pair(texts[0], texts[1], sentence + " ".join(sorted(a)))


def alphabetical_pair(draw: random.Random) -> Pair:
    """Four or five mentioned words in alphabetical order (A), or with two like inner ones exchanged (B)."""
    one, other = sorted(draw.choice(twins()))
    words = sorted({one, other, *draw.sample(mentioned_words(), draw.choice((2, 3)))})
    if one == words[0] or other == words[-1]:
        return alphabetical_pair(draw)
    place, following = words.index(one), words.index(other)
    moved = words.copy()
    moved[place], moved[following] = other, one
    return Pair(", ".join(words), ", ".join(moved), " ".join(words))


def chain_pair(draw: random.Random) -> Pair:
    """Four or five words of which each begins as the one before ends (A), or with two like inner ones exchanged (B)."""
    words = list(draw.choice(_linked_twins()))
    place = 0
    for before in draw.choice(((True, False), (True, True, False), (True, False, False))):
        end = words[0][0] if before else words[-1][-1]
        fitting = [
            word for word in mentioned_words() if word[-1 if before else 0] == end and word not in words
        ]
        if not fitting:
            return chain_pair(draw)
        words.insert(0 if before else len(words), draw.choice(fitting))
        place += before
    moved = [*words[:place], words[place + 1], words[place], *words[place + 2 :]]
    return Pair(", ".join(words), ", ".join(moved), " ".join(sorted(words)))


@functools.cache
def _linked_twins() -> tuple[tuple[str, str], ...]:
    return tuple((one, other) for one, other in twins() if one[-1] == other[0] != one[0])


ENTRY_POINTS = "wrods.rules"
_DECISION_AND_PAIRS: Mapping[str, tuple[Callable[[str], Label], Callable[[random.Random], Pair]]] = {
    "end_ly": (ends_with_ly, ly_pair),
    "end_punctuation": (ends_with_mark, end_mark_pair),
    "hyphenated_word": (has_hyphenated_word, hyphen_pair),
    "palindrome": (is_palindrome, palindrome_pair),
    "repeated_word": (repeats_word, repeated_pair),
    "rhyme": (rhymes, rhyme_pair),
    "spelled_math": (spells_operation, operation_pair),
    "spelled_number": (spells_first_number, number_pair),
    "start_vowel": (starts_with_vowel, first_letter_pair),
    "uppercase": (has_capital, capital_pair),
    "shared_initial": (neighbours_share_initial, shared_initial_pair),
    "longest_last": (longest_word_is_last, longest_last_pair),
    "alphabetical": (is_alphabetical, alphabetical_pair),
    "word_chain": (is_word_chain, chain_pair),
    "inner_capital": (has_inner_capital, inner_capital_pair),
}
BUILT_IN = tuple(
    Rule(
        name, told["statement"], *_DECISION_AND_PAIRS[name], told["source"], frozenset(told.get("about", ()))
    )
    for name, told in data_file("htest/rules.json").items()
)


@functools.cache
def rules() -> Mapping[str, Rule]:
    """Return every rule by its name, those of installed packages included."""
    return registry(BUILT_IN, ENTRY_POINTS, Rule)


def rule(name: str) -> Rule:
    """Return a rule by its name."""
    if name not in rules():
        raise unknown_name("H-TEST rule", name, rules())
    return rules()[name]
