"""What a plan writes: measures with their scale and words, contrasts, bounds of equivalence, times, signs and priors.

``a - b`` is a difference; of two factors it is averaged over the other one, ``a - b in c`` is the simple effect at one of its
levels, and ``(a - b) x (c - d)`` the interaction: the difference at ``c`` minus the difference at ``d``. A text is compared with
the levels of the factors, so that levels may contain these signs and words themselves (``swapped in word``, ``no - go``). In place
of a level, ``(a + b) / 2`` is the mean of several.
What is wrong with a plan is a :class:`PlanFault`, which each package reports with its own places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import combinations, product
from math import inf, log
from typing import Any, Literal, get_args

Scale = Literal["points", "ratio", "raw"]

Direction = Literal["two-sided", "greater", "less"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
Levels = Mapping[str, Sequence[str]]
"""Levels of each factor that is compared, the reference first."""
TIMES = " × "
"""The sign between two factors whose cells are named after both."""
IN = "/"
MOST_CELLS = 12
"""Cells of two factors whose interaction is tested although nobody planned it."""

_MINUS = re.compile(r"\s+[-−–]\s+")
_PRODUCT = re.compile(r"\)\s+[x×*]\s+\(")
_IN = re.compile(r"\s+in\s+")
_MEAN = re.compile(r"\((.+)\)\s*/\s*([0-9]+)")
_PLUS = re.compile(r"\s+\+\s+")
Key = str | int

RIGHT_SHARE = "question_accuracy"
"""The one sign of which little is bad."""
KEYLESS = "keyless"
"""The sign of text without key strokes, which no rule holds where a study allows assistive input."""
NOT_IN_TRIALS = ("same_key", "regular_typing", "fast_typing", "question_checks_failed")
"""Signs made of key strokes or of answers to questions, which the trials do not have."""
SIGNS = (
    *("attention_checks_failed", RIGHT_SHARE, "too_fast", "hidden", "dropped_frames", "pastes", KEYLESS),
    *NOT_IN_TRIALS,
)
"""Signs of careless answering by which sessions can be excluded."""

_NUMBER = r"([0-9]+\.?[0-9]*|\.[0-9]+)"
_BOUND = re.compile(rf"{_NUMBER} ?(points?|%|times|ms|bits?|nats?|tokens?)")
_TIMES = re.compile(rf"outside {_NUMBER} ?(ms|s|min) to {_NUMBER} ?(ms|s|min)")
_OR_MORE = re.compile(r"([0-9]+) or more")
_SIDED = re.compile(rf"(above|below) {_NUMBER} ?(%|ms|s|min)?")
_UNITS = {"%": 0.01, "ms": 1.0, "s": 1000.0, "min": 60_000.0, None: 1.0}
_JUST_BELOW = 1e-9


@dataclass(frozen=True)
class Measure:
    """One dependent variable."""

    name: str  # the column of the trials table
    title: str  # what a heading calls it
    noun: str  # what a sentence calls it
    family: str  # ``binomial`` (logit link) or ``gaussian``
    logged: bool  # whether the natural logarithm is modelled
    unit: str  # unit of the raw value; empty for proportions, and for own numbers without one
    response: str  # what the formula names on its left side
    link: str | None = None  # link of its model where it is not the family's usual one
    of: Literal["all", "people", "models"] = "all"  # which readers can have it
    said: str = ""  # what it is, for the description of a plan
    model: str = ""  # what its model is called
    region: str | None = None  # the named region of the texts that it is of; None for whole trials
    is_own: bool = False  # whether it is a number that a trial type of the study's own records

    @property
    def kind(self) -> str:
        """Its name in a plan, whatever region it is of."""
        return self.name if self.region is None else self.name.removesuffix(f"_{self.region}")

    def in_region(self, region: str | None) -> Measure:
        """Return this measure of the words of a named region; itself of none."""
        if region is None:
            return self
        name, of_region = f"{self.name}_{region}", f"of the {region} region"
        noun = self.noun.removeprefix("region ")
        return replace(
            self,
            name=name,
            title=f"{noun[0].upper()}{noun[1:]} {of_region}",
            noun=f"{noun} {of_region}",
            response=self.response.replace(self.name, name),
            region=region,
        )

    @property
    def scale(self) -> Scale:
        """Scale on which a difference is reported and bounded: percentage points, a ratio, or the measure's own unit."""
        return "points" if self.family == "binomial" else "ratio" if self.logged else "raw"

    @property
    def is_share(self) -> bool:
        """Whether it is a proportion, which tables and figures show in percent."""
        return not self.unit and not self.is_own

    @property
    def is_quantity(self) -> bool:
        """Whether it is modelled in every trial that has it, whatever the answer: what only models have, and own numbers."""
        return self.of == "models" or self.is_own

    @property
    def of_means(self) -> bool:
        """Whether differences are estimated from condition means (shares and ratings), and a mixed model is a check of them."""
        return self.scale == "points" or self.name == "rating"

    @property
    def value(self) -> str:
        """Column of an analysis' rows with what its estimates average: the share of words of an answer, or the measure's own."""
        return "share" if self.response.startswith("cbind") else self.name

    @property
    def subject(self) -> str:
        """The noun for a difference between readers: ``accuracy``, ``the mean rating``, ``the share of recovered words``."""
        if self.family == "binomial" and self.name != "correct":
            return f"the share of {self.noun}"
        if self.name == "rating":
            return "the mean rating"
        is_countable = self.noun.partition(" ")[0] in ("margin", "latency", "number")
        return f"the {self.noun}" if is_countable else self.noun

    @property
    def unit_of_difference(self) -> str:
        """Unit of a difference of means on that scale: percentage points, or the measure's own."""
        return "percentage points" if self.scale == "points" else self.unit


def _declared() -> dict[str, Measure]:
    text = resources.files(__package__).joinpath("measures.json").read_text("utf-8")
    return {name: Measure(name, **given) for name, given in json.loads(text)["measures"].items()}


PLANNABLE = _declared()
"""The measures that a plan may name in every study."""


def own_measure(column: str, prose: str, unit: str | None) -> Measure:
    """Return the measure of a number that a trial type of a study's own records, compared by means in its own unit."""
    prose = prose.strip().rstrip(".")
    noun, model = prose[:1].lower() + prose[1:], "mixed-effects linear regression"
    title = prose[:1].upper() + prose[1:]
    return Measure(
        column, title, noun, "gaussian", False, unit or "", column, said=noun, model=model, is_own=True
    )


MEASURES = {name: PLANNABLE[name] for name in ("correct", "reading_time", "rt")}
"""The measures that are compared as exploratory if nothing is planned."""

MISSING = PLANNABLE["missing"]
"""Whether a trial brought no valid answer (timeouts, refusals, unreadable replies): missingness by condition is a result."""

WORDS = PLANNABLE["recovered"]
"""Words of a typed answer that are as they were, of the words that were changed."""

WORDS_WITH_ONE_TYPO = PLANNABLE["recovered_with_one_typo"]
"""The same, where a word may have one typo."""

OF_FIXATIONS = ("first_fixation", "gaze", "go_past", "total_time")
"""Measures of imported eye movements."""

OF_REGIONS = ("region_time", "surprisal", "entropy", *OF_FIXATIONS)
"""Measures of named regions; only surprisal is one of whole texts too."""

COVARIATES = {
    "trial_index": "trial number",
    "letters": "number of letters",
    "zipf": "word frequency (Zipf)",
    "previous_zipf": "frequency of the previous word (Zipf)",
}
"""What a plan can hold constant, in words: the place of a trial, and the length and frequency of what is read."""

COVARIED = ("reading_time", "rt", "region_time", *OF_FIXATIONS)
"""Measures whose models can hold covariates constant."""

OF_MODELS = {name: measure for name, measure in PLANNABLE.items() if measure.of == "models"}
"""What only models have. A margin is a difference of logarithms as it stands."""

RECOVERED = Measure("score", "Mean recovery", "recovery", "gaussian", False, "", "score")
"""How close a typed answer comes to the intact text: described for trials of type ``recover``, in no model."""

RATING = PLANNABLE["rating"]
"""A number on a scale; it is compared as exploratory where the trials have it."""

DESCRIBED = (*MEASURES.values(), RATING, RECOVERED)
"""The measures that tables and figures describe in every study."""


@dataclass(eq=False)
class PlanFault(Exception):
    """A setting of a plan that cannot be carried out."""

    problem: str
    remedy: str
    at: tuple[Key, ...] = ()  # the keys from the analysis to the setting
    given: str = ""
    known: Iterable[str] = ()

    def __post_init__(self) -> None:
        super().__init__(self.problem, self.remedy, self.given, tuple(self.known))

    @property
    def path(self) -> str:
        """The keys from the analysis to the setting, as they follow its name: ``.contrasts[1]``."""
        return "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in self.at)

    def below(self, *keys: Key) -> PlanFault:
        """Return the same error for a setting under these keys."""
        return replace(self, at=(*keys, *self.at))


def unknown(kind: str, name: str, known: Iterable[str], *at: Key) -> PlanFault:
    """Return the error for a name that is not among the known ones."""
    names = sorted(known)
    return PlanFault(
        f": {kind} {name!r} is not known", f"Known: {', '.join(names) or 'none'}.", at, name, names
    )


class LevelMean(str):
    """The mean of several levels in words, with the levels."""

    levels: tuple[str, ...]

    def __new__(cls, levels: Sequence[str]) -> LevelMean:
        """Return the mean of these levels."""
        *others, last = levels
        mean = super().__new__(cls, f"mean of {', '.join(others)} and {last}")
        mean.levels = tuple(levels)
        return mean

    def __reduce__(self) -> tuple[type[LevelMean], tuple[tuple[str, ...]]]:
        return LevelMean, (self.levels,)

    @property
    def written(self) -> str:
        """The mean as a plan writes it."""
        return f"({' + '.join(self.levels)}) / {len(self.levels)}"


def levels_in(side: str) -> tuple[str, ...]:
    """Return the levels of one side of a difference, each of which counts alike: one, or those of a mean."""
    return side.levels if isinstance(side, LevelMean) else (side,)


def _written(side: str) -> str:
    return side.written if isinstance(side, LevelMean) else side


@dataclass(frozen=True)
class LevelDifference:
    """A contrast between two levels of a compared factor, or means of levels: ``first`` minus ``second``."""

    first: str
    second: str
    direction: Direction = "two-sided"
    at: tuple[str, ...] = ()  # one level of another factor: a simple effect; two: an interaction

    @property
    def label(self) -> str:
        """The contrast in words, with a true minus."""
        return label_of(self.first, self.second, self.at)

    def direction_in(self, groups: Sequence[str]) -> Direction:
        """Return what is expected of it in one reader group; comparisons of two are two-sided."""
        return self.direction if len(groups) == 1 else "two-sided"

    @property
    def written(self) -> str:
        """The contrast as a plan writes it."""
        first, second, *at = map(_written, (self.first, self.second, *self.at))
        return label_of(first, second, tuple(at), minus=" - ", times=" x ")

    @property
    def level_weights(self) -> dict[str, float]:
        """The weight of each level of the factor."""
        return side_weights(self.first, self.second)


def side_weights(first: str, second: str) -> dict[str, float]:
    """Return the weight of each level in a difference of two levels or means."""
    sides = ((1.0, levels_in(first)), (-1.0, levels_in(second)))
    return {level: sign / len(levels) for sign, levels in sides for level in levels}


def label_of(
    first: str, second: str, at: tuple[str, ...] = (), *, minus: str = " − ", times: str = TIMES
) -> str:
    """Write a contrast as tables have it: ``a − b``, ``a − b in c``, or ``(a − b) × (c − d)``."""
    label = f"{first}{minus}{second}"
    if not at:
        return label
    return f"{label} in {at[0]}" if len(at) == 1 else f"({label}){times}({at[0]}{minus}{at[1]})"


def read_contrast(text: str, levels: Levels, direction: Direction = "two-sided") -> LevelDifference:
    """Read a contrast of these levels."""
    reading = next(_readings(text.strip(), levels), None)
    if reading is None:
        raise _no_contrast(text, levels)
    first, second, at = reading
    return LevelDifference(first, second, direction, at)


def _readings(text: str, levels: Levels) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the ways in which a text is a contrast: a difference, a simple effect, an interaction."""
    yield from ((first, second, ()) for _, first, second in _differences(text, levels))
    if len(levels) < 2:
        return
    for word in _IN.finditer(text):
        level = text[word.end() :]
        for factor, first, second in _differences(text[: word.start()], levels):
            if any(level in factor_levels for name, factor_levels in levels.items() if name != factor):
                yield first, second, (level,)
    if text.startswith("(") and text.endswith(")"):
        for sign in _PRODUCT.finditer(text):
            for factor, first, second in _differences(text[1 : sign.start()], levels):
                for other, at_first, at_second in _differences(text[sign.end() : -1], levels):
                    if other != factor:
                        yield first, second, (at_first, at_second)


def _differences(text: str, levels: Levels) -> Iterator[tuple[str, str, str]]:
    """Yield each way in which a text is the difference of two levels of one factor, with the factor."""
    for sign in _MINUS.finditer(text):
        sides = text[: sign.start()].strip(), text[sign.end() :].strip()
        for factor, factor_levels in levels.items():
            first, second = (_side(side, factor_levels) for side in sides)
            if first and second and set(levels_in(first)).isdisjoint(levels_in(second)):
                yield factor, first, second


def _side(text: str, levels: Sequence[str]) -> str | None:
    """Return one side of a difference: a level, or the mean of several; None if it is neither."""
    if text in levels:
        return text
    match = _MEAN.fullmatch(text)
    if match is None:
        return None
    named = [part.strip() for part in _PLUS.split(match[1])]
    is_mean = set(named) <= set(levels) and len({*named}) == len(named) == int(match[2]) > 1
    return LevelMean(named) if is_mean else None


def _no_contrast(text: str, levels: Levels) -> PlanFault:
    all_levels = [level for factor_levels in levels.values() for level in factor_levels]
    words = [
        part.strip() for part in re.split(r"\s+(?:[-−–x×*+]|in)\s+|[()]|/ *[0-9]+", text) if part.strip()
    ]
    listing = "; ".join(
        f"levels of {name}: {', '.join(factor_levels)}" for name, factor_levels in levels.items()
    )
    forms = "A contrast is `level - level`, with a space on each side of the minus"
    if len(levels) > 1 and all(len(factor_levels) > 1 for factor_levels in levels.values()):
        a, b = (f"{factor_levels[1]} - {factor_levels[0]}" for factor_levels in levels.values())
        reference = list(levels.values())[1][0]
        forms = (
            f"Write the interaction as `({a}) x ({b})`, a simple effect as `{a} in {reference}`, "
            f"a difference averaged over the other factor as `{a}`"
        )
    if "+" in text:
        forms += "; instead of a level, the mean of two is `(level + level) / 2`, so that the weights cancel"
    given = next((word for word in words if word not in all_levels), "")
    reason = (
        f"{given!r} is not a compared level"
        if given
        else "it must be the difference of two levels of one factor"
    )
    read_as = next((level for level in all_levels if _is_number(level) and _is_number(given, level)), None)
    if read_as is not None:
        forms = f"`{given}` was read as the number {read_as}: write it in quotes in the design to keep it as it is. {forms}"
    return PlanFault(f" is {text!r}; {reason}", f"{forms}; {listing}.", given=given, known=all_levels)


def _is_number(text: str, other: str = "") -> bool:
    """Return whether a text is a number, and the same one as another if that is given."""
    try:
        return float(text) == float(other or text)
    except ValueError:
        return False


def planned_differences(
    contrasts: Iterable[LevelDifference], levels: Collection[str]
) -> dict[str, dict[str, float]]:
    """Return the differences of one factor that contrasts contain: its weights by the difference in words."""
    sides = [
        pair
        for contrast in contrasts
        for pair in ((contrast.first, contrast.second), contrast.at)
        if len(pair) == 2 and set(side_weights(*pair)) <= set(levels)
    ]
    return {label_of(*pair): side_weights(*pair) for pair in sides}


def usual_contrasts(levels: Levels) -> tuple[LevelDifference, ...]:
    """Return the contrasts of a plan that names none: each level against the reference; of two factors their interactions."""
    (reference, *compared), *other_factors = levels.values()
    if not other_factors:
        return against_reference([reference, *compared])
    other_reference, *other_compared = other_factors[0]
    return tuple(
        LevelDifference(level, reference, at=(other_level, other_reference))
        for level in compared
        for other_level in other_compared
    )


def against_reference(levels: Sequence[str]) -> tuple[LevelDifference, ...]:
    """Compare each level with the first, the reference."""
    return tuple(LevelDifference(level, levels[0]) for level in levels[1:])


def with_directions(texts: Sequence[str], given: Any, levels: Levels) -> tuple[LevelDifference, ...]:
    """Read contrasts with the direction of each, which is given for all or by contrast."""
    contrasts = [read_contrast(text, levels) for text in texts] or list(usual_contrasts(levels))
    directions: dict[LevelDifference, Any]
    if not isinstance(given, Mapping):
        directions = dict.fromkeys(contrasts, given or "two-sided")
    else:
        directions = {}
        for text, direction in given.items():
            try:
                contrast = read_contrast(str(text), levels)
            except PlanFault:
                contrast = None
            if contrast not in contrasts:
                raise unknown(
                    "contrast",
                    str(text),
                    [contrast.written for contrast in contrasts],
                    "direction",
                    str(text),
                )
            directions[contrast] = direction
    for direction in directions.values():
        if direction not in DIRECTIONS:
            raise unknown("direction", str(direction), DIRECTIONS, "direction")
    return tuple(
        LevelDifference(contrast.first, contrast.second, directions.get(contrast, "two-sided"), contrast.at)
        for contrast in contrasts
    )


@dataclass(frozen=True)
class CrossedFactors:
    """Two factors compared together: their cells are levels of one column (``item_type × font`` with ``word/plain`` …)."""

    factors: tuple[str, str]  # the two, in the order of the plan
    levels: tuple[tuple[str, ...], tuple[str, ...]]  # levels of each, the reference first

    @property
    def name(self) -> str:
        """Name of the column of cells."""
        return crossed_name(*self.factors)

    @property
    def cells(self) -> tuple[str, ...]:
        """Every cell, that of both references first; the second factor varies fastest."""
        return tuple(cell_name(*pair) for pair in product(*self.levels))

    @property
    def by_factor(self) -> dict[str, tuple[str, ...]]:
        """Levels of each factor by its name."""
        return dict(zip(self.factors, self.levels, strict=True))

    def pair_of(self, cell: str) -> tuple[str, str]:
        """Return the levels of both factors that a cell shows."""
        return dict(zip(self.cells, product(*self.levels), strict=True))[cell]

    def among(self, cells: Collection[str]) -> CrossedFactors:
        """Return the crossing of the levels that these cells show."""
        pairs = [pair for pair in product(*self.levels) if cell_name(*pair) in cells]
        first, second = (
            tuple(level for level in levels if any(pair[index] == level for pair in pairs))
            for index, levels in enumerate(self.levels)
        )
        return CrossedFactors(self.factors, (first, second))

    def is_filled(self, cells: Collection[str]) -> bool:
        """Return whether every cell is among these."""
        return set(self.cells) <= set(cells)

    def weights(self, first: str, second: str, at: Sequence[str]) -> dict[str, float]:
        """Return the weight of each cell in a contrast."""
        of_levels = side_weights(first, second)
        at_levels = {level for side in at for level in levels_in(side)}
        is_swapped = not (set(of_levels) <= set(self.levels[0]) and at_levels <= set(self.levels[1]))
        others = levels_in(at[0]) if len(at) == 1 else self.levels[0 if is_swapped else 1]
        by_other = side_weights(at[0], at[1]) if len(at) == 2 else dict.fromkeys(others, 1.0 / len(others))
        weights = {}
        for level, weight in of_levels.items():
            for other, share in by_other.items():
                weights[cell_name(other, level) if is_swapped else cell_name(level, other)] = weight * share
        return weights


def crossed_name(first: str, second: str) -> str:
    """Name the column of the cells of two factors."""
    return f"{first}{TIMES}{second}"


def cell_name(first: str, second: str) -> str:
    """Name a cell by the levels that it shows."""
    return f"{first}{IN}{second}"


def factors_compared(spec: Mapping[str, Any]) -> list[str]:
    """Return the factor that a plan compares, or the two whose interaction it tests."""
    given = spec["compare"]
    return [str(name) for name in given] if isinstance(given, list | tuple) else [str(given)]


def compared_together(
    planned: Mapping[str, Mapping[str, Any]], factors: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Return the pairs of factors whose cells are compared: those of plans; without any plan all that are small enough."""
    if planned:
        pairs = [factors_compared(spec) for spec in planned.values()]
        crossed = [(pair[0], pair[1]) for pair in pairs if len(pair) == 2 and set(pair) <= set(factors)]
        return list(dict.fromkeys(crossed))
    return [
        (first, second)
        for first, second in combinations(factors, 2)
        if min(len(factors[first]), len(factors[second])) > 1
        and len(factors[first]) * len(factors[second]) <= MOST_CELLS
    ]


@dataclass(frozen=True)
class Bound:
    """The smallest difference between readers that matters; a smaller one is negligible."""

    value: float  # points, a ratio above 1, or the measure's own unit
    unit: Scale  # one of 'points', 'ratio', 'raw'
    said: str = ""  # as the study writes it

    @property
    def half_width(self) -> float:
        """The bound on the scale of the test: points, a natural logarithm, or the measure's unit."""
        return log(self.value) if self.unit == "ratio" else self.value


def read_bound(text: str, measures: Sequence[Measure]) -> Bound:
    """Read ``5 points``, ``10%``, ``1.2 times`` or ``0.5 bits``."""
    first = measures[0]
    if len({measure.scale for measure in measures}) > 1 or (len(measures) > 1 and first.scale == "raw"):
        raise PlanFault(
            f" is {text!r}; differences in {' and '.join(measure.name for measure in measures)} have no scale in common",
            "Times and tokens can be compared as ratios; take the bound out otherwise.",
        )
    match = _BOUND.fullmatch(str(text).strip())
    if first.is_own:
        match = re.fullmatch(rf"{_NUMBER} ?({re.escape(first.unit)})", str(text).strip())
    if match is None:
        forms = f"0.5 {first.unit}" if first.is_own else "5 points, 10%, 1.2 times, or 0.5 bits"
        raise PlanFault(f" is {text!r}", f"Write it like: {forms.strip()}.")
    number, unit = float(match[1]), match[2]
    own_unit = "points" if first == RATING else first.unit  # of its scale, not of a percentage
    scale: Scale = "points" if unit.startswith("point") else "ratio" if unit in ("%", "times") else "raw"
    scale = first.scale if first == RATING and scale == "points" else scale
    if scale != first.scale or (scale == "raw" and unit.removesuffix("s") != own_unit.removesuffix("s")):
        wanted = {"points": "5 points", "ratio": "10% or 1.2 times", "raw": f"0.5 {own_unit}"}[first.scale]
        raise PlanFault(f" is {text!r}, which is not a bound of {first.noun}", f"Write it like: {wanted}.")
    bound = Bound(1 + number / 100 if unit == "%" else number, scale, str(text))
    if bound.half_width <= 0 or (scale == "points" and number >= 100):
        rule = f"above {1 if unit == 'times' else 0}" + (" and below 100" if scale == "points" else "")
        raise PlanFault(f" is {text!r}", f"A bound must be {rule}.")
    return bound


def read_times(text: str) -> tuple[float, float]:
    """Read the times in milliseconds between which a measure counts: ``outside 200 ms to 10 s``."""
    match = _TIMES.fullmatch(str(text).strip())
    if match is None:
        raise PlanFault(f" is {text!r}", "Write it like: outside 200 ms to 10 s.")
    low, high = float(match[1]) * _UNITS[match[2]], float(match[3]) * _UNITS[match[4]]
    if low >= high:
        raise PlanFault(
            f" is {text!r}; the first bound must be the lower one", "Write it like: outside 200 ms to 10 s."
        )
    return low, high


@dataclass(frozen=True)
class SignRule:
    """A rule by which sessions may be excluded."""

    sign: str
    said: str  # as the study writes it
    bound: float  # in the sign's unit: shares from 0 to 1, milliseconds, counts
    side: str  # one of 'or more', 'above', 'below'

    def meets(self, values: Any) -> Any:
        """Return which values meet the rule; one that was not measured does not."""
        if self.side == "or more":
            return values >= self.bound
        return values > self.bound if self.side == "above" else values < self.bound

    @property
    def above(self) -> float:
        """The value above which the sign counts; the sign of which little is bad is kept as its complement to 1."""
        if self.side == "or more":
            return self.bound - _JUST_BELOW
        return 1 - self.bound if self.side == "below" else self.bound


def read_sign_rule(sign: str, text: str) -> SignRule:
    """Read the rule of a sign: ``2 or more``, ``above 20%``, ``below 70%``."""
    if sign not in SIGNS:
        raise unknown("sign", sign, SIGNS)
    example = "below 70%" if sign == RIGHT_SHARE else "2 or more, or above 20%"
    if match := _OR_MORE.fullmatch(str(text).strip()):
        rule = SignRule(sign, str(text), float(match[1]), "or more")
    elif match := _SIDED.fullmatch(str(text).strip()):
        rule = SignRule(sign, str(text), float(match[2]) * _UNITS[match[3]], match[1])
    else:
        raise PlanFault(f" is {text!r}", f"Write it like: {example}.")
    if (rule.side == "below") != (sign == RIGHT_SHARE):
        raise PlanFault(f" is {text!r}; {sign} is bounded from the other side", f"Write it like: {example}.")
    if match[match.lastindex or 1] == "%" and rule.bound > 1:
        raise PlanFault(f" is {text!r}; a share must be between 0% and 100%", f"Write it like: {example}.")
    return rule


DF = {"normal": inf, "cauchy": 1.0, "t": None}
"""Degrees of freedom of each kind of prior; ``t`` has its own."""


@dataclass(frozen=True)
class Prior:
    """A prior on a difference if there is one: a t distribution around zero, of which a direction keeps one half."""

    kind: str  # one of 'normal', 'cauchy', 't'
    scale: float  # in percentage points, natural-log units of times and counts, or the measure's unit
    df: float  # degrees of freedom; 1 of the Cauchy, infinite of the normal
    unit: str  # of the scale, in words

    @property
    def given(self) -> dict[str, Any]:
        """The prior as a plan writes it."""
        return {"prior": self.kind, "scale": self.scale, **({"df": self.df} if self.kind == "t" else {})}

    @property
    def said(self) -> str:
        """The prior in words."""
        kind = {"normal": "normal", "cauchy": "Cauchy"}.get(self.kind, f"t (df = {self.df:g})")
        return f"{kind} prior with {'SD' if self.kind == 'normal' else 'scale'} {self.scale:g} {self.unit}"


def read_prior(given: Mapping[str, Any], measures: Sequence[Measure]) -> Prior:
    """Read the prior of the differences in these measures."""
    kind, df = str(given.get("prior", "cauchy")), given.get("df")
    if kind not in DF:
        raise unknown("prior", kind, DF, "prior")
    if len({(measure.scale, measure.unit if measure.scale == "raw" else "") for measure in measures}) > 1:
        raise PlanFault(
            f": differences in {' and '.join(measure.name for measure in measures)} have no scale in common",
            "Plan an analysis for each measure.",
        )
    for key, needed in (("scale", True), ("df", kind == "t")):
        value = given.get(key)
        if not needed and value is not None:
            raise PlanFault(
                f" is {value!r}; a {kind} prior has none", "Take it out, or write prior: t.", (key,)
            )
        if needed and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < inf):
            raise PlanFault(f" is {value!r}; it must be a number above 0", "For example 10.", (key,))
    unit = "natural-log units" if measures[0].scale == "ratio" else measures[0].unit_of_difference
    return Prior(kind, float(given["scale"]), float(DF[kind] or df or inf), unit)
