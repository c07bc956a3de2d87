"""Scramble types: their definition, the built-in types, and the registry with types of installed packages.

A package adds types with an entry point in group ``wrods.scrambles`` that names a :class:`ScrambleType`, several of
them, or a function that returns them.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from stimuli.entry_points import added
from stimuli.errors import UserError, did_you_mean, unknown_name
from stimuli.scramble.edits import (
    AllSubstituted,
    Alphabet,
    Deleted,
    Inserted,
    Nothing,
    Replacements,
    Substituted,
    SubstitutedOne,
    Transposed,
    Unmoved,
    alphabet,
)
from stimuli.scramble.orders import Exchanges, Neighbours, Reversed, ScrambleRule, Shuffled, ShuffledButDrawn
from stimuli.words import scramble_data

Value = int | str | bool

_YES, _NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})


@dataclass(frozen=True)
class Option:
    """One option of a scramble type."""

    name: str  # as written: ``distance``
    default: Value  # value where none is given; its type is the option's
    about: str  # what it says, in words
    choices: tuple[str, ...] = ()  # values of an option in words
    low: int = 1  # bounds of an option in numbers
    high: int = 99

    @property
    def values(self) -> str:
        """The values that it takes, for tables."""
        if isinstance(self.default, bool):
            return "true, false"
        return ", ".join(self.choices) or f"{self.low} to {self.high}"

    def read(self, given: object, where: str) -> Value:
        """Return a given value in the option's type; ``where`` names the scramble type, for the error."""
        text = str(given).strip().lower()
        if self.choices:
            if text not in self.choices:
                raise unknown_name(f"{where}: {self.name}", str(given), self.choices)
            return text
        if isinstance(self.default, bool):
            if text not in _YES | _NO:
                raise UserError(f"{where}: {self.name} is {given!r}; it is true or false")
            return text in _YES
        whole = text.isascii() and text.isdecimal() and not isinstance(given, bool)
        if not whole or not self.low <= int(text) <= self.high:
            bounds = f"a whole number from {self.low} to {self.high}"
            raise UserError(f"{where}: {self.name} is {given!r}; it is {bounds}")
        return int(text)


_OPTIONS = {
    key: Option(**{"name": key, **row, "choices": tuple(row.get("choices", ()))})
    for key, row in scramble_data("types")["options"].items()
}
"""The options of types in ``data/types.json``, by the names under which types have them."""
FEWER, UNSPACED, SPACED = _OPTIONS["fewer"], _OPTIONS["unspaced"], _OPTIONS["spaced"]
GAPS = {"dot": "\u00b7", "narrow": "\u202f", "no_break": "\u00a0", "space": " "}
"""Separators of the letters of a spaced word: middle dot, narrow no-break space, no-break space, space."""
_WITHOUT_GAPS = str.maketrans("", "", "".join(GAPS.values()))
GAP = Option("gap", "dot", "separator of the letters of a spaced word", tuple(GAPS))


def without_gaps(word: str) -> str:
    """Return a word without what a spaced form has between its letters; no word has it by itself."""
    return word.translate(_WITHOUT_GAPS)


Unit = Literal["letter", "word", "sentence"]
Operates = Literal["none", "reorder", "insert", "delete", "substitute"]
RuleMaker = Callable[[str, Mapping[str, Value]], ScrambleRule]


@dataclass(frozen=True)
class Preset:
    """A paper's name for a type with certain options or rates."""

    name: str
    options: tuple[tuple[str, Value], ...] = ()
    rate: float | None = None
    texts: float | None = None


@dataclass(frozen=True, eq=False)
class ScrambleType:
    """A way to scramble texts."""

    name: str  # ``family:position``; a study may write ``keep: first_and_last`` for ``keep:first_and_last``
    unit: Unit  # what is moved, put in or taken out: letters of a word, words of a sentence, sentences of a text
    operation: Operates  # what is done to them
    eligibility: str  # what it changes, in words
    source: str  # where the type was described
    rule: ScrambleRule | RuleMaker  # the rule itself, or what gives it for a language and options
    min_letters: int = 2  # fewest letters of a word that it changes unless the option says otherwise
    own_options: tuple[Option, ...] = ()  # those that not all letter types have
    aliases: tuple[str, ...] = ()  # names in papers for it as it is; ``ALIAS-50`` sets the rate to 50 %
    presets: tuple[Preset, ...] = ()  # names that papers use for the type with certain options
    does: str = ""  # what it does, in the words of a Method section; ``{letters}`` or ``{pair}`` are the letters that it changes

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
        fewest = Option("min_letters", self.min_letters, "fewest letters of a word that may change")
        return (*self.own_options, fewest, *spaced, UNSPACED)

    @property
    def names(self) -> tuple[str, ...]:
        """Every name: its own, then those of papers."""
        return (self.name, *self.aliases, *(preset.name for preset in self.presets))

    def bound(self, language: str, options: Mapping[str, Value]) -> ScrambleRule:
        """Return the rule for a language with options, those not given at their defaults."""
        if not callable(self.rule):
            return self.rule
        return self.rule(language, {option.name: option.default for option in self.options} | dict(options))


REFERENCES: Mapping[str, str] = scramble_data("types")["references"]
"""Works that types' sources name, by the short form used there."""


PAIRS: Mapping[str, Mapping[str, str]] = scramble_data("types")["pairs"]
"""The two letters that a transposition or substitution changes, in words, by position: next to each other, or apart."""


def _transposed(position: str) -> RuleMaker:
    def rule(language: str, options: Mapping[str, Value]) -> ScrambleRule:
        of_class = str(options["letters"])
        known = None if of_class == "any" else alphabet(language, f"letters: {of_class}")
        return Transposed(
            position, int(options.get("distance", 1)), of_class, int(options.get("letter", 1)), known
        )

    return rule


def _substituted(position: str) -> RuleMaker:
    def rule(language: str, options: Mapping[str, Value]) -> ScrambleRule:
        known = alphabet(language, f"substitute:{position}")
        replacements = Replacements(known, str(options["cv"]), str(options["shape"]))
        of_class = str(options["letters"])
        distance, letter = (int(options.get(name, 1)) for name in ("distance", "letter"))
        _refuse_what_changes_nothing(position, of_class, known, replacements, options)
        makes = SubstitutedOne if options["count"] == 1 else Substituted
        return makes(position, distance, of_class, letter, known, replacements=replacements)

    return rule


def _refuse_what_changes_nothing(
    position: str, of_class: str, known: Alphabet, replacements: Replacements, options: Mapping[str, Value]
) -> None:
    """Refuse options under which no letter of the class has another that may replace it."""
    for letter in known.letters:
        of_kind = of_class == "any" or known.letter_class(letter) == of_class.removesuffix("s")
        if of_kind and replacements.of(letter, letter):
            return
    written = ", ".join(f"{name}: {options[name]}" for name in ("letters", "shape", "cv"))
    raise UserError(
        f"substitute:{position} with {written} can change no word of language {known.language!r}: no letter of the "
        "kind has another of the kind that fits",
        mend="Write cv: any to let consonants stand for vowels, or take another shape or letters.",
    )


def _all_substituted(language: str, options: Mapping[str, Value]) -> ScrambleRule:
    known = alphabet(language, "substitute:all")
    return AllSubstituted(Replacements(known, str(options["cv"]), str(options["shape"])))


def _inserted(position: str) -> RuleMaker:
    def rule(language: str, options: Mapping[str, Value]) -> ScrambleRule:
        known = alphabet(language, f"insert:{position}")
        return Inserted(position, int(options["count"]), known, full=options["fewer"] != "make")

    return rule


def _deleted(position: str) -> RuleMaker:
    return lambda language, options: Deleted(position, int(options["count"]), full=options["fewer"] != "make")


_PLACED: Mapping[str, Callable[[str], RuleMaker]] = {
    "transpose": _transposed,
    "substitute": _substituted,
    "insert": _inserted,
    "delete": _deleted,
}
"""What makes the rules of families whose types differ in the position alone."""
RULES: Mapping[str, ScrambleRule | RuleMaker] = {
    "none": Nothing(),
    "shuffle:all": Shuffled(),
    "keep:first": Shuffled(1),
    "keep:first_and_last": Shuffled(1, 1),
    "keep:two_random": ShuffledButDrawn(0, 0, 2),
    "keep:last_and_one": ShuffledButDrawn(0, 1, 1),
    "keep:first_and_one": ShuffledButDrawn(1, 0, 1),
    "reverse:all": Reversed(),
    "exchange:internal": lambda language, options: Exchanges(
        int(options["count"]), full=options["fewer"] != "make"
    ),
    "substitute:all": _all_substituted,
    "space:letters": Unmoved(),
    **{
        f"{unit}:{name}": rule
        for unit in ("words", "sentences")
        for name, rule in (("shuffle", Shuffled()), ("neighbours", Neighbours()), ("reverse", Reversed()))
    },
}
"""The rule of every other type of ``data/types.json``."""


def _built_in(row: Mapping[str, Any]) -> ScrambleType:
    family, _, position = row["name"].partition(":")
    presets = [
        Preset(**{**given, "options": tuple(given.get("options", {}).items())})
        for given in row.get("presets", ())
    ]
    if row["name"] not in RULES and family not in _PLACED:
        raise UserError(
            f"data/types.json describes scramble type {row['name']!r}, but RULES has no rule with this name",
            mend=f"Add {row['name']!r} to RULES in stimuli/scramble/types.py.",
        )
    parts = {
        "rule": RULES[row["name"]] if row["name"] in RULES else _PLACED[family](position),
        "own_options": tuple(_OPTIONS[name] for name in row.get("own_options", ())),
        "aliases": tuple(row.get("aliases", ())),
        "presets": tuple(presets),
    }
    return ScrambleType(**{**row, **parts})


BUILT_IN = tuple(map(_built_in, scramble_data("types")["types"]))
ENTRY_POINTS = "wrods.scrambles"
_WRITTEN = re.compile(
    r"(?P<name>[^(@;]+?)\s*(?:\((?P<options>[^)]*)\))?\s*(?:-(?P<percent>\d{1,3}(?:\.\d+)?))?"
    r"\s*(?:@(?P<rate>[^;]+))?(?:;\s*texts\s*=\s*(?P<texts>.+))?"
)
_NUMBERED = re.compile(r"(?P<family>\w+):(?P<letter>\d+)")
Options = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Operation:
    """A scramble type with options, at a rate."""

    type: ScrambleType
    rate: float = 1.0  # share of the eligible words (for words that move: sentences) that change, 0 to 1
    # share of the texts that change at all, 0 to 1: each text has its own stable draw, so texts that change at a
    # lower share also do at a higher one; how many do in a list is met on average only
    texts: float = 1.0
    # the name as given, in capitals, without options' defaults and rates: KFL, REO-INT
    said: str = field(default="", compare=False)
    options: Options = ()  # options that differ from their defaults, in the type's order

    @property
    def name(self) -> str:
        """Canonical name: ``transpose:internal(distance=2)``."""
        options = dict(self.options)
        name = self.type.name
        if "letter" in options or name.endswith(":N"):
            name = f"{self.type.family}:{options.pop('letter', 1)}"
        written = ",".join(
            f"{key}={str(value).lower() if isinstance(value, bool) else value}"
            for key, value in options.items()
        )
        return f"{name}({written})" if written else name

    @property
    def label(self) -> str:
        """Name for provenance, with rates that are not 1: ``shuffle:all@0.5``, ``transpose:after_first@0.3;texts=0.6``."""
        rate = "" if self.rate == 1 else f"@{self.rate:.15g}"
        return self.name + rate + ("" if self.texts == 1 else f";texts={self.texts:.15g}")

    @property
    def in_words(self) -> str:
        """What is done, in the words of a Method section: ``all letters shuffled in 20% of the words``."""
        options = dict(self.options)
        defaults = {option.name: option.default for option in self.type.options}
        count, distance = (int(options.pop(name, defaults.get(name, 1))) for name in ("count", "distance"))
        pair = PAIRS.get(self.type.position or "", {}).get("neighbours" if distance == 1 else "apart", "")
        said = self.type.does.format(
            letters="one letter" if count == 1 else f"{count} letters",
            exchanges="one exchange" if count == 1 else f"{count} exchanges",
            pair=("one of " if defaults.get("count") == 2 and count == 1 else "")
            + pair.format(letter=options.pop("letter", 1), distance=distance),
            others="another" if count == 1 else "others",
        )
        least = options.pop("min_letters", None)
        units = "sentences" if self.type.unit == "word" else "words"
        parts = [
            said or self.name,
            f"in {units} of at least {least} letters" if least else "",
            f"in {100 * self.rate:.3g}% of the {units}" if self.rate != 1 else "",
            f"in {100 * self.texts:.3g}% of the texts" if self.texts != 1 else "",
        ]
        more = ", ".join(f"{name} {value}" for name, value in options.items()) if said else ""
        return " ".join(filter(None, parts)) + (f" ({more})" if more else "")

    @property
    def changes_nothing(self) -> bool:
        """Whether this is the intact condition."""
        return self.type.operation == "none"

    @property
    def min_letters(self) -> int:
        """Fewest letters of a word that it changes."""
        return int(dict(self.options).get("min_letters", self.type.min_letters))

    @property
    def spaced(self) -> bool:
        """Whether gaps are set between letters."""
        return self.type.family == "space" or bool(dict(self.options).get("spaced", False))

    @property
    def gap(self) -> str:
        """Separator of the letters; empty if there is none."""
        return GAPS[str(dict(self.options).get(GAP.name, GAP.default))] if self.spaced else ""


OperationSpec = str | Mapping[str, object] | Operation
"""An operation, or how a study or a command line writes it."""


class _Named(NamedTuple):
    type: ScrambleType
    preset: Preset


@functools.cache
def scramble_types() -> Mapping[str, ScrambleType]:
    """Return every scramble type by its name."""
    _by_any_name.cache_clear()
    types = {kind.name: kind for kind in BUILT_IN}
    taken = {name.lower() for kind in BUILT_IN for name in kind.names}
    for where, kind in added(ENTRY_POINTS, ScrambleType):
        names = {name.lower() for name in kind.names}
        if names & taken:
            raise UserError(
                f"{where} adds scramble type {sorted(names & taken)[0]!r}, which exists already",
                mend="Give the added type another name.",
            )
        taken |= names
        types[kind.name] = kind
    return types


@functools.lru_cache(maxsize=1)
def _by_any_name() -> Mapping[str, _Named]:
    named: dict[str, _Named] = {}
    for kind in scramble_types().values():
        for plain in (kind.name, *kind.aliases):
            named[plain.lower()] = _Named(kind, Preset(plain))
        for preset in kind.presets:
            named[preset.name.lower()] = _Named(kind, preset)
    return named


def _names() -> Mapping[str, _Named]:
    scramble_types()  # fills itself anew, and forgets the names, after its cache was cleared
    return _by_any_name()


def scramble_type(name: str) -> ScrambleType:
    """Return a scramble type by its name or alias, in any case."""
    return _found(_plain(name))[0].type


def _plain(name: str) -> str:
    return re.sub(r"\s*:\s*", ":", name.strip())


def _found(name: str) -> tuple[_Named, dict[str, object]]:
    named = _names().get(name.lower())
    if named is not None:
        return named, {}
    numbered = _NUMBERED.fullmatch(name.lower())
    if numbered and f"{numbered['family']}:n" in _names():
        return _names()[f"{numbered['family']}:n"], {"letter": numbered["letter"]}
    kinds = scramble_types().values()
    family = name.partition(":")[0].lower()
    akin = [kind.name for kind in kinds if kind.family == family and ":" in name]
    raise unknown_name("scramble type", name, akin or [n for kind in kinds for n in kind.names])


def parse_operation(
    given: OperationSpec, *, rate: float | None = None, default_rate: float = 1.0
) -> Operation:
    """Read an operation as a study or a command line writes it."""
    if isinstance(given, Operation):
        if rate is None:
            return given
        operation, inside = given, None
    elif isinstance(given, str):
        operation, inside = _from_text(given)
    elif isinstance(given, Mapping):
        operation, inside = _from_mapping(given)
    else:
        raise UserError(f"a scramble is a name or a mapping such as transpose: initial, not {given!r}")
    named = _names().get(operation.said.lower())
    by_itself = named is not None and named.preset.rate == inside
    if rate is not None and inside is not None and not by_itself and checked_rate(rate) != inside:
        twice = f"already says rate {inside:g}, but rate {rate:g} is given as well"
        raise UserError(f"scramble {given!r} {twice}", mend="Say the rate once.")
    chosen_rate = rate if rate is not None else inside
    if chosen_rate is None:
        chosen_rate = 1.0 if operation.type.unit == "sentence" else default_rate
    operation = replace(operation, rate=checked_rate(chosen_rate))
    if operation.type.unit == "sentence" and operation.rate != 1:
        raise UserError(
            f"{operation.name} changes a text as a whole; it has no rate {operation.rate:g}",
            mend="To change a share of the texts write texts: 0.5 (on the command line --texts 0.5).",
        )
    return operation


def checked_rate(rate: object, name: str = "rate") -> float:
    """Return a rate as a number from 0 to 1."""
    try:
        value = float("nan") if isinstance(rate, bool) else float(rate)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        value = float("nan")
    if not 0 <= value <= 1:
        percent = 2 <= value <= 100
        mend = f"For {rate} % write {value / 100:g}." if percent else "1 is all of them, 0.5 half of them."
        raise UserError(f"{name} is {rate}; a rate lies between 0 and 1", mend=mend)
    return value


def checked_percent(percent: str, given: str) -> float:
    """Return the rate in names such as ``KFL-50``."""
    if float(percent) > 100:
        raise UserError(f"scramble {given!r}: a rate lies between 0 and 100 %")
    return float(percent) / 100


def _operation(
    named: _Named, given: Mapping[str, object], texts: object, said: str
) -> tuple[Operation, float | None]:
    kind, preset = named
    options = {option.name: option for option in kind.options}
    for name in given:
        if name not in options:
            raise _unknown_option(kind, str(name), list(options))
    values = dict(preset.options) | {
        str(name): options[str(name)].read(value, kind.name) for name, value in given.items()
    }
    differing = tuple(
        (name, values[name])
        for name, option in options.items()
        if name in values and values[name] != option.default
    )
    share = preset.texts if texts is None else checked_rate(texts, "texts")
    return Operation(kind, 1.0, 1.0 if share is None else share, said.upper(), differing), preset.rate


def _unknown_option(kind: ScrambleType, name: str, known: list[str]) -> UserError:
    hint = did_you_mean(name, known)
    return UserError(
        f"scramble type {kind.name} has no option {name!r}",
        mend=hint + (f"Its options: {', '.join(known)}." if known else "It has none."),
    )


def _from_text(given: str) -> tuple[Operation, float | None]:
    text = _plain(given)
    match = _WRITTEN.fullmatch(text)
    if text.lower() in _names() or match is None:
        named, position = _found(text)
        return _operation(named, position, None, text)
    name, percent, rate = match["name"].strip(), match["percent"], match["rate"]
    named, position = _found(name)
    options = {**position, **_written_options(match["options"], given)}
    operation, preset_rate = _operation(named, options, match["texts"], name)
    if percent is not None and rate is not None:
        raise UserError(f"scramble {given!r} says two rates", mend="Say the rate once.")
    if percent is not None:
        return operation, checked_percent(percent, given)
    return operation, preset_rate if rate is None else checked_rate(rate)


def _written_options(written: str | None, given: str) -> dict[str, object]:
    options: dict[str, object] = {}
    for part in (written or "").split(","):
        if not part.strip():
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or not value or name in options:
            raise UserError(
                f"scramble {given!r}: {part.strip()!r} is no option",
                mend="Write options once each, as name=value: transpose:internal(distance=2,letters=consonants).",
            )
        options[name] = value
    return options


def _from_mapping(given: Mapping[str, object]) -> tuple[Operation, float | None]:
    parts = {str(key): value for key, value in given.items()}
    rate = parts.pop("rate", None)
    texts = parts.pop("texts", None)
    families = {kind.family for kind in scramble_types().values()}
    naming = [key for key in parts if key in families or key == "type"]
    others = [key for key in parts if key not in naming]
    if not naming and others:
        raise unknown_name("scramble operation", others[0], families)
    if len(naming) != 1:
        raise UserError(
            f"a scramble names one operation, not {len(naming)}: {dict(given)!r}",
            mend="Write for example {transpose: initial} or {shuffle: all, rate: 0.5}.",
        )
    operation, position = naming[0], parts.pop(naming[0])
    if operation == "type":
        inside, inside_rate = _from_text(str(position))
        named = _Named(inside.type, Preset(inside.said, inside.options, texts=inside.texts))
        made, _ = _operation(named, parts, texts, inside.said)
        preset_rate = inside_rate
    else:
        name = _plain(operation if position in (None, "") else f"{operation}:{position}")
        named, letter = _found(name)
        made, preset_rate = _operation(named, {**letter, **parts}, texts, name)
    return made, preset_rate if rate is None else checked_rate(rate)
