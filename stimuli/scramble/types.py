"""What a scramble type is, and the types that come with wrods: what each does to which words, and where it is from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from stimuli.errors import UserError
from stimuli.scramble.alphabets import Alphabet, alphabet
from stimuli.scramble.edits import AllSubstituted, Deleted, Inserted, Nothing, Unmoved
from stimuli.scramble.exchanges import Exchanges
from stimuli.scramble.options import (
    ANY_CV,
    COUNT,
    DISTANCE,
    EXCHANGED,
    FEWER,
    GAP,
    KEEP_CV,
    LETTER,
    LETTERS,
    REPLACED,
    SHAPE,
    SPACED,
    UNSPACED,
    Option,
    Value,
    min_letters,
)
from stimuli.scramble.orders import Neighbours, Reversed, Rule, Shuffled, ShuffledButDrawn
from stimuli.scramble.sites import POSITIONS, Replacements, Substituted, SubstitutedOne, Transposed

Unit = Literal["letter", "word", "sentence"]
Operates = Literal["none", "reorder", "insert", "delete", "substitute"]
RuleMaker = Callable[[str, Mapping[str, Value]], Rule]


@dataclass(frozen=True)
class Preset:
    """A paper's name for a type with certain options or rates."""

    name: str
    options: tuple[tuple[str, Value], ...] = ()
    rate: float | None = None
    texts: float | None = None


@dataclass(frozen=True, eq=False)
class ScrambleType:
    """A way to scramble texts.

    Parameters
    ----------
    name : str
        ``family:position``, as written in a study: ``keep: first_and_last`` is ``keep:first_and_last``.
    unit : {"letter", "word", "sentence"}
        What is moved, put in or taken out: letters of a word, words of a sentence, sentences of a text.
    operation : {"none", "reorder", "insert", "delete", "substitute"}
        What is done to them.
    eligibility : str
        What it changes, in words.
    source : str
        Where the type was described.
    rule : Rule, or callable
        The rule itself, or a function of a language and the options that gives it.
    min_letters : int
        Fewest letters of a word that it changes unless the option says otherwise.
    own_options : tuple of Option
        Options of this type; letter types have ``min_letters``, ``spaced``, ``gap`` and ``unspaced`` beside them.
    aliases : tuple of str
        Names that papers use for the type as it is; ``ALIAS-50`` also sets the rate to 50 %.
    presets : tuple of Preset
        Names that papers use for the type with certain options.
    """

    name: str
    unit: Unit
    operation: Operates
    eligibility: str
    source: str
    rule: Rule | RuleMaker
    min_letters: int = 2
    own_options: tuple[Option, ...] = ()
    aliases: tuple[str, ...] = ()
    presets: tuple[Preset, ...] = ()

    @property
    def family(self) -> str:
        """The part of the name before the colon."""
        return self.name.partition(":")[0]

    @property
    def position(self) -> str | None:
        """The part of the name after the colon, None where there is none."""
        return self.name.partition(":")[2] or None

    @property
    def options(self) -> tuple[Option, ...]:
        """All options in the order in which a canonical name gives them."""
        if self.unit != "letter" or self.operation == "none":
            return self.own_options
        spaced = (GAP,) if self.family == "space" else (SPACED, GAP)
        return (*self.own_options, min_letters(self.min_letters), *spaced, UNSPACED)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name: its own, then those of papers."""
        return (self.name, *self.aliases, *(preset.name for preset in self.presets))

    def bound(self, language: str, options: Mapping[str, Value]) -> Rule:
        """Return the rule for a language with options, those not given at their defaults.

        Raises
        ------
        UserError
            When it needs letters of a language that we have none for.
        """
        if not callable(self.rule):
            return self.rule
        return self.rule(language, {option.name: option.default for option in self.options} | dict(options))


_CAO, _TYPO = "Cao et al. (2023)", "TypoBench (2024)"
_RAYNER, _WHITE = "Rayner et al. (2006)", "White et al. (2008)"
_PEREA, _PAAP = "Perea & Lupker (2004)", "Paap et al. (1984)"
_OURS = "wrods"
REFERENCES: Mapping[str, str] = {
    _CAO: "Cao, Kojima, Matsuo & Iwasawa, Unnatural error correction: GPT-4 can almost perfectly handle unnatural "
    "scrambled text, EMNLP",
    _PAAP: "Paap, Newsome & Noel, Word shape's in poor shape for the race to the lexicon, Journal of Experimental "
    "Psychology: Human Perception and Performance 10",
    _PEREA: "Perea & Lupker, Can CANISO activate CASINO? Transposed-letter similarity effects with nonadjacent letter "
    "positions, Journal of Memory and Language 51",
    _RAYNER: "Rayner, White, Johnson & Liversedge, Raeding wrods with jubmled lettres: there is a cost, Psychological "
    "Science 17",
    _TYPO: "Mind Scramble: unveiling large language model psychology via typoglycemia, 2024",
    _WHITE: "White, Johnson, Liversedge & Rayner, Eye movements when reading transposed text: the importance of "
    "word-beginning letters, Journal of Experimental Psychology: Human Perception and Performance 34",
}
"""Works that types' sources name, by the short form used there."""


def _transposed(position: str) -> RuleMaker:
    def rule(language: str, options: Mapping[str, Value]) -> Rule:
        of_class = str(options["letters"])
        known = None if of_class == "any" else alphabet(language, f"letters: {of_class}")
        return Transposed(
            position, int(options.get("distance", 1)), of_class, int(options.get("letter", 1)), known
        )

    return rule


def _substituted(position: str) -> RuleMaker:
    def rule(language: str, options: Mapping[str, Value]) -> Rule:
        known = alphabet(language, f"substitute:{position}")
        replacements = Replacements(known, str(options["cv"]), str(options["shape"]))
        of_class = str(options["letters"])
        _refuse_what_changes_nothing(position, of_class, known, replacements, options)
        makes = SubstitutedOne if options["count"] == 1 else Substituted
        return makes(
            position,
            int(options.get("distance", 1)),
            of_class,
            int(options.get("letter", 1)),
            known,
            replacements=replacements,
        )

    return rule


def _refuse_what_changes_nothing(
    position: str, of_class: str, known: Alphabet, replacements: Replacements, options: Mapping[str, Value]
) -> None:
    """Refuse options under which no letter of the class has another that may replace it."""
    meant = [
        letter
        for letter in known.letters
        if of_class == "any" or known.letter_class(letter) == of_class.removesuffix("s")
    ]
    if any(replacements.of(letter, letter) for letter in meant):
        return
    written = ", ".join(f"{name}: {options[name]}" for name in ("letters", "shape", "cv"))
    raise UserError(
        f"substitute:{position} with {written} can change no word of language {known.language!r}: no letter of the "
        "kind has another of the kind that fits",
        mend="Write cv: any to let consonants stand for vowels, or take another shape or letters.",
    )


def _all_substituted(language: str, options: Mapping[str, Value]) -> Rule:
    known = alphabet(language, "substitute:all")
    return AllSubstituted(Replacements(known, str(options["cv"]), str(options["shape"])))


def _inserted(position: str) -> RuleMaker:
    return lambda language, options: Inserted(
        position,
        int(options["count"]),
        alphabet(language, f"insert:{position}"),
        full=options["fewer"] != "make",
    )


def _deleted(position: str) -> RuleMaker:
    return lambda language, options: Deleted(position, int(options["count"]), full=options["fewer"] != "make")


_PAIRS: Mapping[str, tuple[int, str, str]] = {
    "initial": (3, "whose first two differ", f"{_RAYNER}: beginning"),
    "internal": (4, "with two different neighbours between the first and the last", f"{_RAYNER}: internal"),
    "final": (3, "whose last two differ", f"{_RAYNER}: ending"),
    "external": (4, "whose first or last two differ, one of the two pairs drawn", f"{_WHITE}: external"),
    "internal_initial": (4, "whose second and third differ", f"{_WHITE}: internal, beginning"),
    "internal_final": (4, "whose last two before the last differ", f"{_WHITE}: internal, ending"),
    "after_first": (3, "with two different neighbours after the first", f"{_CAO}, appendix A.4"),
    "any": (3, "with two different neighbours", _OURS),
    "first_and_last": (3, "whose first and last differ", _OURS),
    "N": (3, "whose letters N and N + 1 differ: transpose: 3 is letters 3 and 4", _OURS),
}
_MORE_NAMES: Mapping[str, tuple[Preset, ...]] = {
    "initial": (Preset("REO-BEG", (("min_letters", 4),)),),
    "final": (Preset("REO-END", (("min_letters", 4),)),),
    "after_first": (Preset("KF&Adj", (), rate=0.3, texts=0.6),),
}
_NUMBER_WORDS = {3: "three", 4: "four"}


def _pair_types() -> tuple[ScrambleType, ...]:
    assert set(_PAIRS) == set(POSITIONS)
    transposed, substituted = [], []
    for position, (least, which, source) in _PAIRS.items():
        distance = () if position == "first_and_last" else (DISTANCE,)
        named = (LETTER,) if position == "N" else ()
        words = f"words of {_NUMBER_WORDS[least]} or more letters {which}"
        transposed.append(
            ScrambleType(
                f"transpose:{position}",
                "letter",
                "reorder",
                words,
                source if position != "any" else f"{_PEREA} (with distance=2,letters=consonants)",
                _transposed(position),
                least,
                (*named, *distance, LETTERS),
                presets=_MORE_NAMES.get(position, ()),
            )
        )
        substituted.append(
            ScrambleType(
                f"substitute:{position}",
                "letter",
                "substitute",
                f"{words}; the pair that transpose:{position} exchanges",
                f"control for transpose:{position} ({_PEREA}); outlines: {_PAAP}",
                _substituted(position),
                least,
                (*named, *distance, LETTERS, REPLACED, SHAPE, KEEP_CV),
            )
        )
    return (*transposed, *substituted)


def _counted(prefix: str) -> tuple[Preset, ...]:
    return tuple(Preset(f"{prefix}_{k}", (("count", k),)) for k in (2, 3, 4))


def _edit_types() -> tuple[ScrambleType, ...]:
    made = []
    for family, operation, maker, short, what in (
        ("insert", "insert", _inserted, "INS", "get new letters of the language's alphabet"),
        ("delete", "delete", _deleted, "DEL", "lose letters"),
    ):
        for position, paper in (("initial", "BEG"), ("internal", "INT"), ("final", "END")):
            one = Preset(f"{short}-{paper}_1")
            made.append(
                ScrambleType(
                    f"{family}:{position}",
                    "letter",
                    "insert" if operation == "insert" else "delete",
                    f"words of four or more letters; they {what}, at most half as many as they have",
                    f"{_TYPO}: {short}-{paper}",
                    maker(position),
                    4,
                    (COUNT, FEWER),
                    (f"{short}-{paper}",),
                    (one, *_counted(f"{short}-{paper}")) if paper == "INT" else (),
                )
            )
    return tuple(made)


def _order_types(unit: Unit, family: str, paper: str, what: str) -> tuple[ScrambleType, ...]:
    return tuple(
        ScrambleType(f"{family}:{name}", unit, "reorder", what, f"{_TYPO}: {alias}", rule, aliases=(alias,))
        for name, alias, rule in (
            ("shuffle", f"{paper}-REO-ALL", Shuffled()),
            ("neighbours", f"{paper}-REO-ADJ", Neighbours()),
            ("reverse", f"{paper}-REO-REV", Reversed()),
        )
    )


NONE = ScrambleType(
    "none",
    "letter",
    "none",
    "no word",
    "the intact text",
    Nothing(),
    0,
    aliases=("original", "intact", "BASE"),
)


def _letter_type(
    name: str,
    least: int,
    eligibility: str,
    source: str,
    rule: Rule | RuleMaker,
    *aliases: str,
    operation: Operates = "reorder",
    options: tuple[Option, ...] = (),
    presets: tuple[Preset, ...] = (),
) -> ScrambleType:
    return ScrambleType(
        name, "letter", operation, eligibility, source, rule, least, options, aliases, presets
    )


_FOUR = "words of four or more letters"

BUILT_IN: tuple[ScrambleType, ...] = (
    NONE,
    _letter_type(
        "shuffle:all",
        2,
        "words of two or more letters that are not all the same",
        f"{_CAO}: Randomly Scramble; {_TYPO}: REO-ALL",
        Shuffled(),
        "RS",
        presets=(Preset("REO-ALL", (("min_letters", 4),)),),
    ),
    _letter_type(
        "keep:first",
        3,
        "words of three or more letters that differ after the first",
        f"{_CAO}: Keep First",
        Shuffled(1),
        "KF",
    ),
    _letter_type(
        "keep:first_and_last",
        4,
        f"{_FOUR} that differ between the first and the last",
        f"{_CAO}: Keep First and Last; {_TYPO}: REO-INT",
        Shuffled(1, 1),
        "KFL",
        "REO-INT",
    ),
    _letter_type(
        "keep:two_random",
        4,
        f"{_FOUR}; two letters at drawn places stay",
        f"{_CAO}: KR2",
        ShuffledButDrawn(0, 0, 2),
        "KR2",
    ),
    _letter_type(
        "keep:last_and_one",
        4,
        f"{_FOUR}; the last and another at a drawn place stay",
        f"{_CAO}: KL&KR1",
        ShuffledButDrawn(0, 1, 1),
        "KL&KR1",
    ),
    _letter_type(
        "keep:first_and_one",
        4,
        f"{_FOUR}; the first and another at a drawn place stay",
        f"{_CAO}: KF&KR1",
        ShuffledButDrawn(1, 0, 1),
        "KF&KR1",
    ),
    _letter_type(
        "reverse:all",
        2,
        "words of two or more letters that are no palindromes; digits stay",
        f"{_TYPO}: REO-REV",
        Reversed(),
        presets=(Preset("REO-REV", (("min_letters", 4),)),),
    ),
    _letter_type(
        "exchange:internal",
        4,
        f"{_FOUR} that differ between the first and the last",
        f"{_TYPO}: REO-INT_k; here the exchanges never cancel",
        lambda language, options: Exchanges(int(options["count"]), full=options["fewer"] != "make"),
        options=(EXCHANGED, FEWER),
        presets=(Preset("REO-INT_1"), *_counted("REO-INT")),
    ),
    *_pair_types(),
    _letter_type(
        "substitute:all",
        2,
        "words of two or more letters; every letter becomes another of the language's alphabet",
        f"{_CAO}: Sub",
        _all_substituted,
        "Sub",
        operation="substitute",
        options=(SHAPE, ANY_CV),
    ),
    *_edit_types(),
    _letter_type(
        "space:letters",
        2,
        "words of two or more letters; a gap between every two characters, none moves",
        "control: letters become tokens of their own, as in a spaced scramble (spaced: true)",
        Unmoved(),
        operation="insert",
    ),
    *_order_types(
        "word", "words", "WORD", "sentences of two or more words; marks, spaces and the first capital stay"
    ),
    *_order_types("sentence", "sentences", "SENT", "texts of two or more sentences; each keeps its own mark"),
)
