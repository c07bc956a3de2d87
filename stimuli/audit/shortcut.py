"""Shortcuts to the correct answer: classifiers that sort the items by what they are not about, and clues in the choices alone.

Two classifiers, one straight (logistic regression on all nuisance features and a bag of words) and one that bends (a
small gradient boosting on the features and one number for the vocabulary), are cross-validated with the members of a
pair always in one fold. A task passes when the upper bound of its interval, simultaneous over all tasks and both
classifiers, is at most .05 above chance with at least 2,000 items; with fewer it may fail, but never pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stimuli.audit.balance import shared_answers
from stimuli.audit.findings import (
    AuditFinding,
    AuditSettings,
    Level,
    ShareInterval,
    by_set,
    cluster_interval,
    counted,
    exact_interval,
    line_weights,
    whole,
)
from stimuli.features import FEATURES, bag, exempt, text_features, unavailable_features
from stimuli.item import Item
from stimuli.seeds import stable_seed
from stimuli.words import without_case

SECTION = "choices"
_MOST_ANSWERS = 12

PAIR, CARRIER = "pair", "carrier"
PAIR_COVARIATES = (PAIR, CARRIER)
SIMILAR = 0.8
"""Texts that share at least this part of their different words (Jaccard index) count as of one carrier."""

_LARGEST_GROUP = 0.1


@dataclass(frozen=True)
class Heuristic:
    """A way to answer without reading: its accuracy with a simultaneous 95% interval, and chance accuracy."""

    name: str
    right: float
    items: float
    accuracy: ShareInterval
    chance: float

    @property
    def leaks(self) -> bool:
        """Return whether the heuristic reliably exceeds chance."""
        return self.accuracy.low > self.chance


@dataclass(frozen=True)
class ChoiceSet:
    """The choices of one set."""

    set_name: str
    # items with choices and an answer that a session shows; means over lists, as the rest, where answers depend on the condition
    items: float
    options: tuple[int, ...]  # numbers of choices that occur
    places: tuple[float, ...]  # how often the right answer stands in the first, second … place
    answers: tuple[tuple[str, float], ...]  # how often each answer is right, the most frequent first
    heuristics: tuple[Heuristic, ...]  # best first


@dataclass(frozen=True)
class Choices:
    """The choices of every set that has any."""

    sets: tuple[ChoiceSet, ...]

    def findings(self) -> list[AuditFinding]:
        """Return the heuristics that exceed chance."""
        findings = []
        for choice_set in self.sets:
            for best in [heuristic for heuristic in choice_set.heuristics if heuristic.leaks][:1]:
                right = f"is right for {best.right:g} of {best.items} items"
                shares = f"({best.accuracy.estimate:.0%}, chance {best.chance:.0%})"
                text = f"{choice_set.set_name}: “{best.name}” {right} {shares}"
                findings.append(AuditFinding("mend", SECTION, text))
        return findings


def choices(items: Sequence[Item], *, every_line: bool = False) -> Choices | None:
    """Test what the choices of each set give away; None where no item has choices."""
    sets = []
    offered = by_set(item for item in items if item.choices and item.answer in item.choices)
    for set_name, members in offered.items():
        sets.append(_choice_set(set_name, members, line_weights(members, every_line=every_line)))
    return Choices(tuple(sets)) if sets else None


def _choice_set(set_name: str, items: Sequence[Item], weights: Sequence[Fraction]) -> ChoiceSet:
    lists = [list(item.choices or ()) for item in items]
    right = [choice.index(str(item.answer)) for choice, item in zip(lists, items, strict=True)]
    most = max(map(len, lists))
    places: dict[int, Fraction] = {}
    answers: dict[str, Fraction] = {}
    for item, place, weight in zip(items, right, weights, strict=True):
        places[place] = places.get(place, Fraction(0)) + weight
        answers[str(item.answer)] = answers.get(str(item.answer), Fraction(0)) + weight
    named = [(f"take choice {place + 1}", partial(_at, place)) for place in range(most)]
    if shared_answers(items):
        named += [(f"answer {answer}", partial(_being, answer)) for answer in sorted(answers)]
    else:
        often = Counter(choice for options in lists for choice in options)
        named += [
            ("take the longest choice", partial(_extreme, len)),
            ("take the shortest choice", partial(_extreme, lambda choice: -len(choice))),
            (
                "take the choice that is rarest over all lists",
                partial(_extreme, lambda choice: -often[choice]),
            ),
            ("take the choice that is commonest over all lists", partial(_extreme, often.__getitem__)),
        ]
    number = sum(weights, Fraction(0))
    expected = sum((w / len(one) for one, w in zip(lists, weights, strict=True)), Fraction(0)) / number
    chance = round(float(expected), 4)
    heuristics = []
    for name, pick in named:
        score = _score(pick, lists, right, weights)
        bounds = exact_interval(int(score), int(number), len(named))
        accuracy = ShareInterval(round(float(score / number), 4), bounds.low, bounds.high)
        heuristics.append(Heuristic(name, round(float(score), 2), whole(number), accuracy, chance))
    most_frequent = sorted(answers.items(), key=lambda one: (-one[1], one[0]))[:_MOST_ANSWERS]
    return ChoiceSet(
        set_name,
        whole(number),
        tuple(sorted(set(map(len, lists)))),
        tuple(whole(places.get(place, Fraction(0))) for place in range(most)),
        tuple((answer, whole(right_for)) for answer, right_for in most_frequent),
        tuple(sorted(heuristics, key=lambda heuristic: (-heuristic.accuracy.estimate, heuristic.name))),
    )


def _at(place: int, options: list[str]) -> list[int]:
    return [place] if place < len(options) else []


def _being(answer: str, options: list[str]) -> list[int]:
    return [options.index(answer)] if answer in options else []


def _extreme(key: Callable[[str], int], options: list[str]) -> list[int]:
    best = max(map(key, options))
    return [place for place, option in enumerate(options) if key(option) == best]


def _score(
    pick: Callable[[list[str]], list[int]],
    lists: Sequence[list[str]],
    right: Sequence[int],
    weights: Sequence[Fraction],
) -> Fraction:
    """Return the weighted number of items that a heuristic gets right."""
    score = Fraction(0)
    for options, answer, weight in zip(lists, right, weights, strict=True):
        picked = pick(options)
        if answer in picked:
            score += weight / len(picked)
    return score


def shown_text(item: Item) -> str:
    """Return all that an item shows, field by field."""
    return "\n".join(item.shown.values())


def folded(text: str) -> str:
    """Return a text as the eye compares it: composed, without case, spaces as one."""
    return " ".join(without_case(text).split())


def groups_of(items: Sequence[Item]) -> list[int]:
    """Give every item the number of its group of items that belong together, groups in the order of their first item.

    Items belong together when they share their id, their pair or carrier (covariates ``pair`` and ``carrier``),
    or their text up to case and spaces. Where an item names neither pair nor carrier, texts that share most of
    their words belong together too, unless that would chain more than a tenth of all items into one group.
    """
    named = [
        [(name, item.covariates[name]) for name in PAIR_COVARIATES if item.covariates.get(name) is not None]
        for item in items
    ]
    keys = (
        [("id", item.item_id), ("text", folded(shown_text(item))), *pairs]
        for item, pairs in zip(items, named, strict=True)
    )
    equal = _equal_pairs(keys)
    groups = _joined(len(items), equal)
    alone = [place for place, pairs in enumerate(named) if not pairs]
    if len(alone) > 1:
        near = _similar_pairs([bag(shown_text(items[place])) for place in alone])
        similar = _joined(len(items), [*equal, *((alone[first], alone[second]) for first, second in near)])
        largest, before = (max(Counter(numbers).values(), default=0) for numbers in (similar, groups))
        if largest <= max(_LARGEST_GROUP * len(items), before):
            groups = similar
    return groups


def folds_of(groups: Sequence[int], names: Sequence[str], folds: int, seed: int) -> list[int]:
    """Deal whole groups to folds, the largest first, each to the fold with the fewest items so far."""
    members: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    order = sorted(
        members,
        key=lambda g: (-len(members[g]), stable_seed(seed, "fold", min(names[i] for i in members[g]))),
    )
    sizes = [0] * folds
    fold = [0] * len(groups)
    for group in order:
        smallest = sizes.index(min(sizes))
        sizes[smallest] += len(members[group])
        for place in members[group]:
            fold[place] = smallest
    return fold


def _joined(number: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """Return the number of each thing's group when the things of each pair belong together."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(list(pairs), dtype=np.int64).reshape(-1, 2)
    graph = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(number, number))
    numbers: dict[int, int] = {}
    components = connected_components(graph, directed=False)[1].tolist()
    return [numbers.setdefault(component, len(numbers)) for component in components]


def _equal_pairs(keys: Iterable[Iterable[Hashable]]) -> list[tuple[int, int]]:
    """Return each thing with the first one that has a key in common with it."""
    first: dict[Hashable, int] = {}
    return [
        (first.setdefault(key, place), place)
        for place, keys_of_item in enumerate(keys)
        for key in keys_of_item
    ]


def _similar_pairs(bags: Sequence[frozenset[str]]) -> list[tuple[int, int]]:
    if not any(bags):
        return []
    presence = _presence(bags)
    shared = (presence @ presence.T).tocoo()
    sizes = np.array([len(words) for words in bags])
    first, second = shared.coords
    union = sizes[first] + sizes[second] - shared.data
    near = (first < second) & (shared.data >= SIMILAR * union)
    return sorted(zip(first[near].tolist(), second[near].tolist(), strict=True))


_MOST = 6
_FEWEST_TEXTS = 5


@dataclass(frozen=True)
class Telling:
    """One feature that differs between answers."""

    feature: str  # name of a feature, or word: …
    measures: str  # what it is, in plain words
    by_answer: tuple[float, ...]  # mean in each answer class (for a word: the share of texts that hold it)
    alone: float  # share of texts that one cut on this feature alone sorts rightly, classes weighted alike


def most_telling(
    names: Sequence[str],
    numbers: NDArray[np.float64],
    bags: Sequence[frozenset[str]],
    labels: NDArray[np.int64],
    answers: Sequence[str],
) -> tuple[Telling, ...]:
    """Return the features and words that sort the most texts by one cut each, best first."""
    classes = len(answers)
    features = [
        Telling(name, FEATURES[name], _means(values, labels, classes), _cut(values, labels, classes))
        for name, values in zip(names, numbers.T, strict=True)
    ]
    texts: dict[str, list[int]] = {}
    for place, words in enumerate(bags):
        for word in words:
            texts.setdefault(word, []).append(place)
    sizes = np.bincount(labels, minlength=classes)
    for word in sorted(texts):
        if len(texts[word]) < _FEWEST_TEXTS:
            continue
        shares = np.bincount(labels[texts[word]], minlength=classes) / sizes
        alone = 1 / classes + (float(shares.max()) - float(shares.min())) / classes
        by_answer = tuple(np.round(shares, 3).tolist())
        features.append(Telling(f"word: {word}", "texts that hold this word", by_answer, round(alone, 3)))
    informative = [feature for feature in features if feature.alone > 1 / classes + 5e-4]
    return tuple(sorted(informative, key=lambda feature: (-feature.alone, feature.feature))[:_MOST])


def _means(values: NDArray[np.float64], labels: NDArray[np.int64], classes: int) -> tuple[float, ...]:
    return tuple(round(float(values[labels == label].mean()), 3) for label in range(classes))


def _cut(values: NDArray[np.float64], labels: NDArray[np.int64], classes: int) -> float:
    """Return the best balanced share that one cut sorts: what lies above to one class, the rest to another."""
    steps = np.unique(values)
    if len(steps) < 2:
        return round(1 / classes, 3)
    place = np.searchsorted(steps, values)
    counts = np.stack([np.bincount(place[labels == label], minlength=len(steps)) for label in range(classes)])
    below = np.cumsum(counts, axis=1)[:, :-1] / counts.sum(axis=1, keepdims=True)
    best = 0.0
    for low in range(classes):
        for high in range(classes):
            if low != high:
                best = max(best, float((below[low] + 1 - below[high]).max()))
    return round(best / classes, 3)


Verdict = Literal["passes", "leaks", "too few to tell", "not settled"]
TOO_FEW: Verdict = "too few to tell"
Numbers = NDArray[np.float64]
Labels = NDArray[np.int64]

ENOUGH_ITEMS = 2000
MARGIN = 0.05
CLASSIFIERS = ("logistic regression", "gradient boosting")
_FOLDS, _FOLDS_OF_FEW, _FEW = 5, 10, 500
_INNER_FOLDS = 5
_FEWEST_PER_ANSWER = 10
_SMOOTH = 1.0


@dataclass(frozen=True)
class Shortcut:
    """Accuracy with which nuisance features sort the items of one task."""

    task: str  # the set
    items: int  # tested (lines, where the answer of an item depends on its condition)
    groups: int  # of items that belong together
    answers: tuple[str, ...]  # the classes
    chance: float  # share right by guessing; classes of unequal size are weighted alike
    accuracy: Mapping[str, ShareInterval]  # by classifier; simultaneous 95% intervals
    upper: float | None  # bounds of the classifier that does better
    lower: float | None
    verdict: Verdict  # passes, leaks, too few to tell or not settled
    about: tuple[str, ...]  # what the rule declares itself to be about; not used
    telling: tuple[Telling, ...]  # the features and words that differ most between the classes

    @property
    def best(self) -> float | None:
        """Return the accuracy of the classifier that does better."""
        return max((interval.estimate for interval in self.accuracy.values()), default=None)

    def in_words(self) -> str:
        """Return the verdict in a few words."""
        return f"{self.verdict}: {self.items}" if self.verdict == TOO_FEW else self.verdict


@dataclass(frozen=True)
class ShortcutTest:
    """The shortcut test of every task, the number of intervals that hold together, and what could not be measured."""

    tasks: tuple[Shortcut, ...]
    intervals: int
    unavailable: Mapping[str, str]

    def findings(self) -> list[AuditFinding]:
        """Name the tasks that nuisance features sort, and those with too few items to tell."""
        findings: list[tuple[Level, str]] = []
        for task in self.tasks:
            if task.verdict == "leaks" and task.best is not None:
                clue = "; ".join(f"{each.feature} alone {each.alone:.0%}" for each in task.telling[:2])
                sorts = f"sorts {task.best:.0%} of the items (at least {task.lower:.0%}, chance {task.chance:.0%})"
                summary = f"{task.task}: a classifier that does not know the rule {sorts}"
                findings.append(("mend", f"{summary}: {clue}" if clue else summary))
        few = [f"{task.task} ({task.items})" for task in self.tasks if task.verdict == "too few to tell"]
        if few:
            needed = f"too few items to rule a shortcut out ({ENOUGH_ITEMS:,} are needed)"
            findings.append(("look", f"{needed}: {', '.join(few)}"))
        unsettled = [task.task for task in self.tasks if task.verdict == "not settled"]
        if unsettled:
            number, names = counted(len(unsettled), "task"), ", ".join(unsettled)
            findings.append(("look", f"{number} with an upper bound above chance + {MARGIN:.2f}: {names}"))
        return [AuditFinding(level, "shortcut", text) for level, text in findings]


def shortcut_test(
    tasks: Mapping[str, Sequence[Item]],
    *,
    about: Mapping[str, Collection[str]] | None = None,
    together: int | None = None,
    **settings: Any,
) -> ShortcutTest:
    """Test whether nuisance features tell the answers; ``settings`` are those of :class:`AuditSettings`."""
    # The limit holds for libraries that are loaded when it is set.
    import sklearn.ensemble
    import sklearn.linear_model  # noqa: F401
    from threadpoolctl import threadpool_limits

    declared = {name: tuple(sorted((about or {}).get(name, ()))) for name in tasks}
    intervals = max(len(tasks), together or 0) * len(CLASSIFIERS)
    study = AuditSettings(**settings)
    tokenizer = getattr(study.tokenizer, "tokenize", study.tokenizer)
    study = replace(study, tokenizer=tokenizer)
    with threadpool_limits(1):  # sums over several threads differ in their last digits from run to run
        tested = tuple(_test(name, items, declared[name], intervals, study) for name, items in tasks.items())
    return ShortcutTest(tested, intervals, unavailable_features(study.language, tokenizer))


def _test(
    task: str, items: Sequence[Item], about: tuple[str, ...], intervals: int, study: AuditSettings
) -> Shortcut:
    without, seed = exempt(about), study.seed
    items = sorted(items, key=lambda item: stable_seed(seed, "shortcut order", item.item_id))
    answers = tuple(sorted({str(item.answer) for item in items}))
    labels = np.array([answers.index(str(item.answer)) for item in items], dtype=np.int64)
    shares = np.array(list(map(float, line_weights(items, every_line=study.every_line))))
    counts = np.bincount(labels, minlength=len(answers))
    groups = groups_of(items)
    number = max(groups, default=-1) + 1
    chance = round(1 / max(len(answers), 1), 4)
    if len(answers) < 2 or counts.min() < _FEWEST_PER_ANSWER or number < _FOLDS_OF_FEW:
        nothing: dict[str, ShareInterval] = {}
        return Shortcut(task, len(items), number, answers, chance, nothing, None, None, TOO_FEW, about, ())
    texts = [shown_text(item) for item in items]
    of_study: dict[str, Any] = {
        "language": study.language,
        "tokenizer": study.tokenizer,
        "leave_out": without.features,
    }
    measured = [text_features(text, **of_study) for text in texts]
    names = [name for name in FEATURES if all(name in features for features in measured)]
    numbers = np.array([[features[name] for name in names] for features in measured], dtype=float)
    bags = [bag(text, without) for text in texts]
    ids, number_of_folds = [item.item_id for item in items], _FOLDS_OF_FEW if len(items) < _FEW else _FOLDS
    folds = np.array(folds_of(groups, ids, number_of_folds, stable_seed(seed, task)))
    shown = np.bincount(labels, weights=shares, minlength=len(answers))
    weights = shares * (len(items) / (len(answers) * shown))[labels]
    classified = _Classified(numbers, bags, labels, weights, np.array(groups))
    guesses = _cross_validated(classified, folds, stable_seed(seed, task))
    accuracy = {
        classifier: _interval(guess == labels, weights, groups, intervals)
        for classifier, guess in guesses.items()
    }
    upper = max(interval.high for interval in accuracy.values())
    lower = max(interval.low for interval in accuracy.values())
    verdict = _verdict(len(items), upper, lower, chance)
    telling = most_telling(names, numbers, bags, labels, answers)
    of_items = (task, len(items), number, answers, chance)
    return Shortcut(*of_items, accuracy, upper, lower, verdict, about, telling)


def _verdict(items: int, upper: float, lower: float, chance: float) -> Verdict:
    if items >= ENOUGH_ITEMS and upper <= chance + MARGIN:
        return "passes"
    if lower > chance:
        return "leaks"
    return TOO_FEW if items < ENOUGH_ITEMS else "not settled"


def _interval(
    right: NDArray[np.bool_], weights: Numbers, groups: Sequence[int], intervals: int
) -> ShareInterval:
    number = max(groups) + 1
    scores = np.bincount(groups, weights=weights * right, minlength=number)
    totals = np.bincount(groups, weights=weights, minlength=number)
    return cluster_interval(scores.tolist(), totals.tolist(), intervals)


@dataclass(frozen=True)
class _Classified:
    """What classifiers get of the items: features, words, correct answers, weights, and groups that stay in one fold."""

    numbers: Numbers
    bags: Sequence[frozenset[str]]
    labels: Labels
    weights: Numbers
    groups: Labels


def _cross_validated(items: _Classified, folds: Labels, seed: int) -> dict[str, Labels]:
    """Return each classifier's guess for each item, made by a fit that saw no member of its group."""
    from scipy.sparse import csr_array, hstack
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    numbers, labels, weights = items.numbers, items.labels, items.weights
    presence = _presence(items.bags)
    classes = int(labels.max()) + 1
    guesses = {name: np.zeros(len(labels), dtype=np.int64) for name in CLASSIFIERS}
    for fold in range(int(folds.max()) + 1):
        test, train = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        scaled = _scaled(numbers, train)
        straight = csr_array(hstack([csr_array(scaled), _of_known(presence, train)]))
        logistic: Any = LogisticRegression(max_iter=300, tol=1e-3)
        logistic.fit(straight[train], labels[train], sample_weight=weights[train])
        guesses[CLASSIFIERS[0]][test] = _guess(logistic, straight[test], classes)
        evidence = _evidence(presence, labels, items.groups, train, test, classes)
        bent = np.round(np.concatenate([numbers, evidence], axis=1), 9)
        boosting: Any = HistGradientBoostingClassifier(
            max_iter=40,
            max_leaf_nodes=8,
            learning_rate=0.15,
            min_samples_leaf=10,
            early_stopping=False,
            random_state=seed % 2**32,
            # Where every word is dealt to both answers equally often, a word seen in one answer is due in the other:
            # that is the design and not the words, so evidence may speak for its own answer only.
            monotonic_cst=[0] * numbers.shape[1] + [1] if classes == 2 else None,
        )
        boosting.fit(bent[train], labels[train], sample_weight=weights[train])
        guesses[CLASSIFIERS[1]][test] = _guess(boosting, bent[test], classes)
    return guesses


def _guess(fitted: Any, features: Any, classes: int) -> Labels:
    # Rounded, so that the last digit of a sum never decides between two classes.
    shares = np.round(fitted.predict_proba(features), 6)
    guessed: Labels = np.asarray(fitted.classes_, dtype=np.int64)[np.argmax(shares, axis=1)]
    return guessed


def _presence(bags: Sequence[frozenset[str]]) -> Any:
    from scipy.sparse import csr_array

    place = {word: number for number, word in enumerate(sorted(frozenset().union(*bags)))}
    rows = [row for row, words in enumerate(bags) for _ in words]
    columns = [place[word] for words in bags for word in sorted(words)]
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(bags), max(len(place), 1)))


def _of_known(presence: Any, train: Labels) -> Any:
    """Return word presence divided by the number of words known from training, times its mean."""
    from scipy.sparse import diags_array

    known = presence[:, np.flatnonzero(presence[train].sum(axis=0) > 1)]
    if not known.shape[1]:
        return known
    number = np.asarray(known.sum(axis=1), dtype=float)
    usual = float(number[train].mean())
    return diags_array(usual / np.maximum(number, 1.0)) @ known


def _scaled(numbers: Numbers, train: Labels) -> Numbers:
    centre, spread = numbers[train].mean(axis=0), numbers[train].std(axis=0)
    scaled: Numbers = np.clip((numbers - centre) / np.where(spread > 1e-9, spread, 1.0), -8.0, 8.0)
    return np.round(scaled, 9)


def _evidence(
    presence: Any, labels: Labels, groups: Labels, train: Labels, test: Labels, classes: int
) -> Numbers:
    """Return how much a text's words speak for each class: mean log share over its words (naive Bayes)."""
    evidence = np.zeros((len(labels), classes), dtype=float)
    inner = groups % _INNER_FOLDS
    for fold in range(_INNER_FOLDS):
        learn, apply = train[inner[train] != fold], train[inner[train] == fold]
        evidence[apply] = _mean_log_shares(presence, labels, learn, apply, classes)
    evidence[test] = _mean_log_shares(presence, labels, train, test, classes)
    centred: Numbers = evidence - evidence.mean(axis=1, keepdims=True)
    return centred[:, 1:] if classes == 2 else centred


def _mean_log_shares(presence: Any, labels: Labels, learn: Labels, apply: Labels, classes: int) -> Numbers:
    texts = presence[apply]
    number = np.maximum(np.asarray(texts.sum(axis=1), dtype=float), 1.0)
    columns = []
    for label in range(classes):
        members = learn[labels[learn] == label]
        counts = np.asarray(presence[members].sum(axis=0), dtype=float)
        columns.append((texts @ np.log((counts + _SMOOTH) / (len(members) + 2 * _SMOOTH))) / number)
    return np.stack(columns, axis=1)
