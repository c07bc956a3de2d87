"""The registry of rules: the ten published tasks, five of our own, and those of installed packages.

Packages add rules through entry-point group ``wrods.rules``: an entry names a :class:`~stimuli.htest.rule.Rule`,
several, or a function that returns them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from stimuli.entry_points import added
from stimuli.errors import UserError, unknown_name
from stimuli.htest import letter_pairs, predicates, word_pairs
from stimuli.htest.rule import Rule

ENTRY_POINTS = "wrods.rules"
_LEE = "Lee & Lim (2024), Language models don't learn the physical manifestation of language (H-TEST)"
_OURS = "wrods"


def _about(*names: str) -> frozenset[str]:
    return frozenset(names)


BUILT_IN = (
    Rule(
        "end_ly",
        "The last word of an A text ends in the letters -ly; the last word of a B text does not.",
        predicates.ends_with_ly,
        letter_pairs.ly_pair,
        f"{_LEE}: End Ly",
        _about("last_character"),
    ),
    Rule(
        "end_punctuation",
        "An A text ends with a punctuation mark; a B text does not.",
        predicates.ends_with_mark,
        word_pairs.end_mark_pair,
        f"{_LEE}: End Punctuation",
        _about("final_mark", "last_not_letter", "mark_position"),
    ),
    Rule(
        "hyphenated_word",
        "An A text has a hyphen between two letters; in a B text no hyphen joins letters.",
        predicates.has_hyphenated_word,
        word_pairs.hyphen_pair,
        f"{_LEE}: Hyphenated Word",
        _about("hyphen_position", "mark_position"),
    ),
    Rule(
        "palindrome",
        "An A text reads the same backwards; a B text does not.",
        predicates.is_palindrome,
        letter_pairs.palindrome_pair,
        f"{_LEE}: Palindrome",
        _about("mirrored"),
    ),
    Rule(
        "repeated_word",
        "An A text says a word twice in a row; a B text does not.",
        predicates.repeats_word,
        word_pairs.repeated_pair,
        f"{_LEE}: Repeated Word",
        _about("adjacent_repeats"),
    ),
    Rule(
        "rhyme",
        "The two words of each couple in an A text rhyme; in a B text they do not.",
        predicates.rhymes,
        letter_pairs.rhyme_pair,
        f"{_LEE}: Rhyme",
    ),
    Rule(
        "spelled_math",
        "In an A text the operation before a number is spelled in words; in a B text it is a sign.",
        predicates.spells_operation,
        word_pairs.operation_pair,
        f"{_LEE}: Spelled Math",
    ),
    Rule(
        "spelled_number",
        "In an A text the first number is written in letters; in a B text it is written in digits.",
        predicates.spells_first_number,
        word_pairs.number_pair,
        f"{_LEE}: Spelled Number",
        _about("digit_position"),
    ),
    Rule(
        "start_vowel",
        "The first letter of an A text is a vowel letter (a, e, i, o, u); the first letter of a B text is not.",
        predicates.starts_with_vowel,
        letter_pairs.first_letter_pair,
        f"{_LEE}: Start Vowel",
        _about("first_character"),
    ),
    Rule(
        "uppercase",
        "An A text has a capital letter; a B text has none.",
        predicates.has_capital,
        letter_pairs.capital_pair,
        f"{_LEE}: Uppercase",
        _about("capitals", "capital_position"),
    ),
    Rule(
        "shared_initial",
        "In an A text two neighbouring words begin with the same letter; in a B text no neighbours do.",
        predicates.neighbours_share_initial,
        word_pairs.shared_initial_pair,
        _OURS,
    ),
    Rule(
        "longest_last",
        "In an A text the longest word comes last; in a B text it comes earlier.",
        predicates.longest_word_is_last,
        word_pairs.longest_last_pair,
        _OURS,
        _about("longest_position", "last_word_letters"),
    ),
    Rule(
        "alphabetical",
        "The words of an A text are in alphabetical order; the words of a B text are not.",
        predicates.is_alphabetical,
        word_pairs.alphabetical_pair,
        _OURS,
    ),
    Rule(
        "word_chain",
        "In an A text every word begins with the letter that the word before it ends with; in a B text not every word does.",
        predicates.is_word_chain,
        word_pairs.chain_pair,
        _OURS,
        _about("doubled_letters"),
    ),
    Rule(
        "inner_capital",
        "An A text has a capital letter inside a word; in a B text the capital begins a word.",
        predicates.has_inner_capital,
        letter_pairs.inner_capital_pair,
        _OURS,
        _about("capitalised_words", "capital_position"),
    ),
)


@functools.cache
def rules() -> Mapping[str, Rule]:
    """Return every rule by its name, those of installed packages included."""
    found = {one.name: one for one in BUILT_IN}
    for where, one in added(ENTRY_POINTS, Rule):
        if one.name in found:
            raise UserError(
                f"{where} adds rule {one.name!r}, which exists already",
                mend="Give the added rule another name.",
            )
        found[one.name] = one
    return found


def rule(name: str) -> Rule:
    """Return a rule by its name."""
    if name not in rules():
        raise unknown_name("H-TEST rule", name, rules())
    return rules()[name]
