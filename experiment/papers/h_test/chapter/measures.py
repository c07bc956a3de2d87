"""H-TEST's tables from a study's own trials (Lee & Lim, 2024), with the paired tests that the paper lacks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.answers import is_valid, never_answered
from analysis.crossed_variance import EstimateLayout, estimate, sums_of_model
from analysis.exclusions import FILLER, RULE
from analysis.intervals import over_items, reach, share_over_items
from analysis.multiple_comparisons import interval_levels, with_adjusted
from analysis.readers import PARTICIPANT_KINDS, group_order
from analysis.tables import Tables, joined_beside

TASKS = (
    *("uppercase", "start_vowel", "end_punctuation", "palindrome", "end_ly"),
    *("spelled_math", "spelled_number", "rhyme", "repeated_word", "hyphenated_word"),
)
"""In the order of the paper's Tables 2 and 6."""
MAKINGS = ("released", "fresh", "matched")
UNANSWERED = "error"
FEWEST_ITEMS = 10


@dataclass(frozen=True)
class HTestPrompting:
    """Prompting of H-TEST in a study."""

    trials: pd.DataFrame
    statements: pd.DataFrame
    ks: tuple[int, ...]  # from few to many; empty where not varied
    makings: tuple[str, ...]  # in the study's order; one empty name where not varied
    unanswered: int = 0


def asked(tables: Tables) -> HTestPrompting | None:
    """Return a study's H-TEST trials; None where it has none of the paper's tasks."""
    trials = tables.trials
    if "task" not in tables.factors or not set(TASKS) & set(tables.factors["task"]):
        return None
    between: Mapping[str, Any] = tables.dictionary.get("between") or {}
    k = _set_by(trials, between, "exemplars").astype(float)
    making = _set_by(trials, between, "items")
    trials = trials.assign(k=k, making=making.where(making.notna(), ""))
    usable = trials[trials["excluded_reason"].isna() & trials["task"].isin(TASKS)]
    all_trials = usable[~usable["is_filler"].astype(bool)]
    is_unanswered = all_trials["response_status"] == UNANSWERED
    rows = all_trials[~is_unanswered & ~never_answered(all_trials)]
    extra = trials["is_practice"].astype(bool) | trials["is_pilot"].astype(bool)
    # what asks for a rule is marked as a filler; any other reason holds for its session, or for the trial as it does elsewhere
    counts = trials["excluded_reason"].isna() | (trials["excluded_reason"] == FILLER)
    stated = trials[~extra & counts & trials["item_id"].astype(str).str.endswith(RULE)]
    if rows.empty and stated.empty:
        return None
    rows = _scored(rows)
    makings = [str(fromkey) for fromkey in dict.fromkeys(rows["making"])]
    ks = sorted({int(number) for number in rows["k"].dropna()})
    return HTestPrompting(rows, stated, tuple(ks), tuple(sorted(makings, key=rank)), int(is_unanswered.sum()))


def _scored(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(right=rows["correct"].fillna(0).astype(float), answered=is_valid(rows).astype(float))


def rank(making: str) -> int:
    """Return the place of a making of items: released, fresh, matched, others."""
    return MAKINGS.index(making) if making in MAKINGS else len(MAKINGS)


def _set_by(trials: pd.DataFrame, between: Mapping[str, Any], setting: str) -> pd.Series[Any]:
    """Return what the levels between sessions set, trial by trial."""
    for factor, levels in between.items():
        values = {
            str(level): level_settings[setting]
            for level, level_settings in levels.items()
            if setting in level_settings
        }
        if values and factor in trials:
            return trials[factor].map(values)
    return pd.Series(None, trials.index, dtype=object)


def accuracy(rows: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return shares by reader and task, in the paper's order, and the mean of the tasks."""
    keys = ["reader_group", *by]
    grouped = rows.groupby([*keys, "task"], dropna=False, observed=True)
    table = grouped.agg(trials=("right", "size"), right=("right", "sum"), answered=("answered", "sum"))
    table = table.reset_index()
    table["accuracy"] = table["right"] / table["trials"]
    table["adjusted"] = table["right"] / table["answered"].where(table["answered"] > 0)
    table["out_of_context"] = 1 - table["answered"] / table["trials"]
    measures = ["accuracy", "adjusted", "out_of_context"]
    cells = table.groupby(keys, dropna=False, observed=True)
    means = cells[[*measures]].mean().reset_index().merge(cells["trials"].sum().reset_index(), on=keys)
    present = table.assign(_all=0).groupby(["_all", *by], dropna=False, observed=True)["task"]
    of_all, of_reader = present.transform("nunique"), cells["task"].transform("size")
    partial = table[of_reader < of_all][keys].drop_duplicates()
    is_partial = means.merge(partial, on=keys, how="left", indicator=True)["_merge"] == "both"
    means.loc[is_partial, measures] = np.nan
    combined = pd.concat([table, means.assign(task="average")], ignore_index=True)
    combined["_o"] = combined["task"].map([*TASKS, "average"].index)
    combined = combined.sort_values([*keys, "_o"], kind="stable", ignore_index=True)
    return combined[[*keys, "task", "trials", *measures]]


def covers(rows: pd.DataFrame, all_rows: pd.DataFrame) -> bool:
    """Return whether a reader answered each task with each number and making of examples."""
    cells = ["making", "k", "task"]
    return len(rows[cells].drop_duplicates()) == len(all_rows[cells].drop_duplicates())


@dataclass(frozen=True)
class Paired:
    """Two conditions compared over the items that both asked."""

    items: int
    first: float  # shares right
    second: float
    difference: float
    low: float
    high: float
    changed: int  # items whose share right differs
    p: float
    p_equal: float  # larger p of two one-sided tests against the bound; NaN without a bound
    se: float
    df: float


def paired(first: pd.DataFrame, second: pd.DataFrame, bound: float | None = None) -> Paired | None:
    """Compare two conditions item by item; p, interval and equivalence test are of one estimate over items."""
    keys = ["making", "task", "item_id"]
    first_means, second_means = (
        rows.groupby(keys, observed=True)["right"].mean() for rows in (first, second)
    )
    items = pd.concat([first_means, second_means], axis=1, join="inner").to_numpy(dtype=float)
    if len(items) < FEWEST_ITEMS:
        return None
    layout = EstimateLayout(("first", "second"), tuple(range(len(items))))
    result = estimate(sums_of_model(layout, items), {"second": 1, "first": -1})
    assert result is not None
    low, high = result.interval()
    before, after = items.mean(axis=0).tolist()
    p_equal = np.nan if bound is None else result.equivalence_p(bound)
    changed = int((items[:, 0] != items[:, 1]).sum())
    ends_and_test = low, high, changed, result.p(), p_equal, result.se, result.df
    return Paired(len(items), before, after, result.value, *ends_and_test)


def agreeing(compared: Sequence[Mapping[str, Any]], furthest: float = 1.0) -> pd.DataFrame:
    """Return Benjamini and Hochberg's p of differences, each with ``se`` and ``df``, and intervals that agree with them.

    ``level`` is that of an interval. Intervals end at ``furthest``, the largest possible difference.
    """
    columns = ["difference", "se", "df", "p", "low", "high"]
    table = pd.DataFrame(compared, columns=columns, dtype=float).rename(columns={"difference": "estimate"})
    table = with_adjusted(table, "low", "high")
    has_p = table["p"].notna()
    table.loc[has_p, "level"] = interval_levels(table.loc[has_p, "p_adjusted"].to_numpy(dtype=float))
    return table.assign(low=table["low"].clip(-furthest), high=table["high"].clip(upper=furthest))


@dataclass(frozen=True)
class MakingContrast:
    """Comparison of two generation methods of items over their common tasks."""

    tasks: int  # common tasks; items of both makings
    items: int
    difference: float
    low: float
    high: float
    p: float
    se: float
    df: float
    p_equal: float = np.nan  # larger p of two one-sided tests against the bound; NaN without a bound


def between_makings(
    first: pd.DataFrame, second: pd.DataFrame, bound: float | None = None
) -> MakingContrast | None:
    """Compare the items of two generation methods by item means, with equal weights for tasks."""
    if first.empty or second.empty:
        return None
    keys = ["task", "item_id"]
    units = {n: rows.groupby(keys, observed=True)["right"].mean() for n, rows in enumerate((first, second))}
    cells = pd.concat(units).groupby(level=[1, 0]).agg(["mean", "var", "size"]).unstack()
    cells = cells[(cells["size"] > 1).all(axis=1)]
    parts, free = cells["var"].to_numpy() / cells["size"].to_numpy(), cells["size"].to_numpy() - 1
    variance = float(parts.sum())
    if variance == 0:
        return None
    mean = float((cells["mean"][1] - cells["mean"][0]).mean())
    se, df = float(np.sqrt(variance)) / len(cells), variance**2 / float((parts**2 / free).sum())
    half = reach(se, df)
    p = float(2 * stats.t.sf(abs(mean) / se, df))
    p_equal = np.nan if bound is None else float(stats.t.sf((bound - abs(mean)) / se, df))
    n_items = int(cells["size"].to_numpy().sum())
    return MakingContrast(len(cells), n_items, mean, mean - half, mean + half, p, se, df, p_equal)


def mean_with_ends(rows: pd.DataFrame) -> tuple[float, float, float]:
    """Return a mean in percent with the ends of its 95% interval."""
    by_person, means, answers = _units(rows)
    low, high = over_items(means) if by_person else share_over_items(means, answers)
    return 100 * float(means.mean()), 100 * low, 100 * high


def _units(rows: pd.DataFrame) -> tuple[bool, NDArray[np.float64], NDArray[np.float64]]:
    """Return whether the units of a reader group are people, not items, and proportion correct and answers of each."""
    by_person = rows["reader_kind"].iloc[0] in PARTICIPANT_KINDS
    units = rows.groupby(["reader"] if by_person else ["task", "item_id"], observed=True)["right"]
    return by_person, np.asarray(units.mean(), dtype=float), np.asarray(units.size(), dtype=float)


def rules_stated(statements: pd.DataFrame) -> pd.DataFrame:
    """Return, by reader and number of examples, how many rules were stated right (Table 7)."""
    cells = _judged(statements).groupby(["reader_group", "k"], dropna=False, observed=True)
    counts = cells[list(_JUDGED)].sum()
    counts.insert(0, "readers", cells["reader"].nunique())
    return counts.reset_index()


_JUDGED = ("stated", "rated", "right")


def _judged(statements: pd.DataFrame) -> pd.DataFrame:
    """Mark whether each rule was stated, rated, and rated as right."""
    rated = statements["score"].notna() & statements["scorer"].astype(str).str.startswith("rated")
    right = rated & (statements["score"] >= 1)
    return statements.assign(stated=is_valid(statements), rated=rated, right=right)


def printed() -> pd.DataFrame:
    """Return Table 6 as printed: ``model``, ``k``, ``task`` (or ``average``), ``printed`` (a share)."""
    return pd.read_csv(Path(__file__).with_name("printed.csv"), comment="#")


Readers = Mapping[str, Mapping[str, Any]]
"""Readers as the data dictionary tells them: ``kind``, ``use``, ``settings``, ``parameters``."""

_ASKED = ("making", "task", "item_id", "k", "label_map", "prompt_variant")
ALL = "all tasks"


def thinking_pairs(readers: Readers) -> list[tuple[str, str]]:
    """Return pairs of the same model on the same items, without and with the strategy ``chain_of_thought``."""
    return _pairs(readers, _presentation, _strategy, "chain_of_thought", "direct")


def picture_pairs(readers: Readers) -> list[tuple[str, str]]:
    """Return models shown text and shown pictures: the same model asked by the same strategy, one with ``presentation: image``."""
    return _pairs(readers, _strategy, lambda reader: _presentation(reader)[0], "image", "text")


def family_pairs(readers: Readers) -> list[tuple[str, str, str]]:
    """Return ``(family, smaller, larger)`` for models of adjacent sizes without chain of thought, on the same items."""
    families: dict[str, list[str]] = {}
    sizes = sizes_of(readers)
    for name, reader in readers.items():
        family = _settings(reader).get("family")
        if family and name in sizes and _strategy(reader) == "direct":
            of_items, examples = _presentation(reader)
            how = ", pictures" if examples == "image" else ", pictures after examples as text"
            families.setdefault(f"{family}{'' if of_items == 'text' else how}", []).append(name)
    by_size = {family: sorted(models, key=lambda name: sizes[name]) for family, models in families.items()}
    return [(family, *pair) for family, models in by_size.items() for pair in pairwise(models)]


def sizes_of(readers: Readers) -> dict[str, float]:
    """Return the numbers of parameters of the models that have one: counted, or as the study says."""
    sizes = {
        name: reader.get("parameters") or size_of(_settings(reader).get("parameters"))
        for name, reader in readers.items()
    }
    return {name: float(size) for name, size in sizes.items() if size}


def shows_examples_as_text(reader: Mapping[str, Any]) -> bool:
    """Return whether a model that is shown items as pictures is shown the solved examples as text."""
    return _presentation(reader) == ("image", "text")


def size_of(stated: object) -> float | None:
    """Return a number of parameters, such as ``1.4B``, as a number."""
    text = str(stated or "").strip()
    factors = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
    try:
        return float(text[:-1]) * factors[text[-1]] if text[-1:] in factors else float(text)
    except ValueError:
        return None


def in_common(
    first: pd.DataFrame, second: pd.DataFrame, varied: str | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the trials of the same items, examples and labels under both of two conditions."""
    apart = () if varied is None else (varied, "prompt_variant")
    keys = [name for name in _ASKED if name not in apart and name in first and name in second]
    shared = first[keys].drop_duplicates().merge(second[keys].drop_duplicates(), on=keys)
    return first.merge(shared, on=keys), second.merge(shared, on=keys)


@dataclass(frozen=True)
class ItemPart:
    """One part of the items compared between text and pictures."""

    task: str  # a task, or `ALL`
    making: str  # of which making the items are; empty for all
    k: int | None  # behind how many examples; None for all
    compared: Paired  # pictures minus text


def pictures_by_part(
    text: pd.DataFrame, pictures: pd.DataFrame, bound: float | None = None, tasks: Sequence[str] = TASKS
) -> Iterator[ItemPart]:
    """Compare a model shown pictures with the same model shown text, item by item."""
    common = in_common(text, pictures)
    makings = sorted(dict.fromkeys(common[0]["making"]), key=rank)
    ks = sorted({int(number) for number in common[0]["k"].dropna()}) if "k" in common[0] else []
    cells: list[tuple[str, str, int | None]] = [(task, "", None) for task in (*tasks, ALL)]
    cells += [(ALL, making, None) for making in makings if len(makings) > 1]
    cells += [(ALL, "", k) for k in ks if len(ks) > 1]
    for task, making, k in cells:
        sides = [rows[(rows["task"] == task) | (task == ALL)] for rows in common]
        sides = [rows[rows["making"] == making] for rows in sides] if making else sides
        sides = [rows[rows["k"] == k] for rows in sides] if k is not None else sides
        if (compared := paired(sides[0], sides[1], bound)) is not None:
            yield ItemPart(task, making, k, compared)


def _pairs(readers: Readers, alike: Any, differs: Any, second: str, first: str) -> list[tuple[str, str]]:
    """Return pairs of one model that differ in one thing; of several partners the one whose other settings are the most alike."""
    models = {
        name: reader
        for name, reader in readers.items()
        if reader.get("kind") == "model" and reader.get("use")
    }

    def is_partner(other: Mapping[str, Any], model: Mapping[str, Any]) -> bool:
        a, b = _settings(other), _settings(model)
        same = other["use"] == model["use"] and alike(other) == alike(model)
        same &= all(str(a.get(name, "")) == str(b.get(name, "")) for name in ("base_url", "revision"))
        return bool(same and differs(other) == first)

    def unlike(name: str, model: Mapping[str, Any]) -> int:
        a, b = _settings(models[name]), _settings(model)
        return sum(a.get(key) != b.get(key) for key in {*a, *b})

    pairs = []
    for name, model in models.items():
        partners = [other for other, other_reader in models.items() if is_partner(other_reader, model)]
        if partners and differs(model) == second:
            pairs.append((min(partners, key=lambda other: unlike(other, model)), name))
    return pairs


def _settings(reader: Mapping[str, Any]) -> Mapping[str, Any]:
    return reader.get("settings") or {}


def _strategy(reader: Mapping[str, Any]) -> str:
    return str(_settings(reader).get("strategy", "direct"))


def _presentation(reader: Mapping[str, Any]) -> tuple[str, str]:
    """Return how items and solved examples are shown; examples as items unless the study says otherwise."""
    settings = _settings(reader)
    of_items = str(settings.get("presentation", "text"))
    return of_items, str(settings.get("examples_presentation", of_items))


@dataclass(frozen=True)
class BothParsers:
    """A reader's replies to one task, or to all, read by both parsers."""

    reader_group: str  # ``average``: mean of the tasks
    task: str
    replies: int
    published: float  # shares right; what a parser cannot read is wrong
    corrected: float
    unread_published: float  # shares in which the parser found no answer
    unread_corrected: float
    turned: int  # replies that the two judge differently
    compared: Paired | None  # corrected minus published over the items; None for fewer than ten items


def both_parsers(
    trials: pd.DataFrame, folder: Path, tasks: Sequence[str] = TASKS, *, is_pooled: bool = False
) -> list[BothParsers]:
    """Compare the published parser with a correct one, reply by reply."""
    rows = joined_beside(trials, folder, "published_parsing")
    if rows is None:
        return []
    asked_of = set(trials["task"])
    results: list[BothParsers] = []
    for group in group_order(rows):
        group_rows = rows[rows["reader_group"] == group]
        of_tasks = [
            _both(group, task, group_rows[group_rows["task"] == task])
            for task in tasks
            if task in set(group_rows["task"])
        ]
        results += of_tasks
        if len(of_tasks) > 1 and (is_pooled or asked_of <= set(group_rows["task"])):
            pooled = _both(group, "average", group_rows)
            shares = ("published", "corrected", "unread_published", "unread_corrected")
            means: dict[str, Any] = {
                n: float(np.mean([getattr(task, n) for task in of_tasks])) for n in shares
            }
            results.append(pooled if is_pooled else replace(pooled, **means))
    return results


def _both(group: str, task: str, rows: pd.DataFrame) -> BothParsers:
    verdicts = rows[["published", "corrected"]]
    scores = verdicts.fillna(0.0)
    published, corrected = verdicts["published"], verdicts["corrected"]
    differ = ~((published == corrected) | verdicts.isna().all(axis=1))
    compared = paired(rows.assign(right=scores["published"]), rows.assign(right=scores["corrected"]))
    means, unread = scores.mean().tolist(), verdicts.isna().mean().tolist()
    turned = int(differ.sum())
    return BothParsers(group, task, len(rows), means[0], means[1], unread[0], unread[1], turned, compared)


def is_as_published(label_map: str) -> bool:
    """Return whether a trial's labels stood for their own classes."""
    pairs = [pair.split("=", 1) for pair in label_map.split(",") if "=" in pair]
    return all(name == label for name, label in pairs)


def label_maps(trials: pd.DataFrame) -> pd.DataFrame:
    """Return accuracy with published and swapped labels, and the frequency of answer A."""
    columns = ["published", "swapped", "says_a_published", "says_a_swapped"]
    if "label_map" not in trials or "response" not in trials:
        return pd.DataFrame(columns=["reader_group", *columns, "counterbalanced"])
    rows = trials[trials["label_map"].notna()]
    is_published = rows["label_map"].astype(str).map(is_as_published).astype(bool)
    says_a = ((rows["response"] == "A") == is_published).astype(float).where(rows["answered"] == 1)
    cells = rows.assign(own=is_published, a=says_a).groupby(["reader_group", "own"], observed=True)
    right, a = (cells[name].mean().unstack().reindex(columns=[True, False]) for name in ("right", "a"))
    combined = pd.concat([right, a], axis=1).set_axis(columns, axis=1)[right.notna().all(axis=1)]
    return combined.assign(counterbalanced=(combined["published"] + combined["swapped"]) / 2).reset_index()


def rules_by_task(trials: pd.DataFrame, statements: pd.DataFrame) -> pd.DataFrame:
    """Return, by reader and task, how the same readers sorted the items and stated the rule."""
    columns = ["reader_group", "task", "sorted", *_JUDGED, "sorted_knowing", "sorted_otherwise"]
    if statements.empty or trials.empty:
        return pd.DataFrame(columns=columns)
    keys = ["reader_group", "session_id", "task"]
    task = statements["item_id"].astype(str).str.removesuffix(RULE).str.split("-").str[-1]
    judged = _judged(statements).assign(task=task).astype(dict.fromkeys(keys, str))
    shares = trials.astype(dict.fromkeys(keys, str)).groupby(keys)["right"].mean().rename("sorted")
    merged = judged[[*keys, *_JUDGED]].merge(shares.reset_index(), on=keys, how="left")
    merged["sorted_knowing"] = merged["sorted"].where(merged["right"])
    merged["sorted_otherwise"] = merged["sorted"].where(merged["rated"] & ~merged["right"])
    ways = {name: "sum" if name in _JUDGED else "mean" for name in columns[2:]}
    cells = merged.groupby(["reader_group", "task"], as_index=False)[columns[2:]].agg(ways)
    order = {name: index for index, name in enumerate(TASKS)}
    by_task = cells["task"].map(order).fillna(len(order))
    ordered = cells.assign(_o=by_task).sort_values(["reader_group", "_o"], kind="stable", ignore_index=True)
    return ordered[columns]


SET = "letter_geometry"
CHANCE = 0.25
FAMILIES = (
    *("rotation", "flip", "reflection", "add_subtract", "addition", "subtraction"),
    *("composite", "composition"),
)
"""Kinds of questions, released and computed, in the order of the paper's Table 4."""
GIVEAWAYS = frozenset({"O", "E", "Ɛ"})
"""The wrong options of nearly every released question."""
FEWEST_POINTS = 4


def geometry(tables: Tables) -> pd.DataFrame | None:
    """Return a study's analysed letter-geometry trials; None where it has none."""
    trials = tables.trials
    if "family" not in tables.factors or "set" not in trials:
        return None
    usable = trials[trials["excluded_reason"].isna() & (trials["set"] == SET)]
    rows = usable[~usable["is_filler"].astype(bool) & ~usable["is_attention_check"].astype(bool)]
    rows = rows[rows["response_status"] != UNANSWERED]
    silent = ~is_valid(rows).groupby(rows["reader_group"], observed=True).transform("any").astype(bool)
    rows = rows[~(silent & (rows["reader_kind"] == "baseline"))]
    if rows.empty:
        return None
    return _scored(rows).assign(task=rows["family"].astype(str), making="")


@dataclass(frozen=True)
class Share:
    """Proportion correct, and whether it is above or below chance."""

    items: int
    answers: int
    value: float
    low: float
    high: float
    p: float


def share(rows: pd.DataFrame, chance: float = CHANCE) -> Share:
    """Return the proportion correct of one reader group."""
    mean, low, high = (value / 100 for value in mean_with_ends(rows))
    by_person, units, answers = _units(rows)
    p = np.nan
    if not by_person and bool((answers == 1).all()):
        p = float(stats.binomtest(int(units.sum()), len(units), chance).pvalue)
    elif len(units) > 1 and units.std() > 0:
        p = float(stats.ttest_1samp(units, chance).pvalue)
    return Share(rows["item_id"].nunique(), len(rows), mean, low, high, p)


def by_option_alone(items: pd.DataFrame) -> tuple[int, int] | None:
    """Return how many questions "the one option that is not O, E or Ɛ" answers right, and of how many."""
    if not {"set", "item_id", "choices", "answer"} <= set(items.columns):
        return None
    questions = items[(items["set"] == SET) & items["choices"].notna()].drop_duplicates("item_id")
    questions = questions[questions["role"] == "test"] if "role" in questions else questions
    right = 0
    for stored, answer in zip(questions["choices"], questions["answer"], strict=True):
        options = json.loads(stored) if isinstance(stored, str) else stored
        right += [choice for choice in options if choice not in GIVEAWAYS] == [answer]
    return (right, len(questions)) if len(questions) else None


@dataclass(frozen=True)
class ReaderPoint:
    """A reader on H-TEST and on letter geometry: percentages with the ends of their 95% intervals."""

    group: str
    kind: str  # reader kind; empty for a value printed in the paper, which has no interval
    x: tuple[float, float, float]  # percent right, low, high: H-TEST and letter geometry
    y: tuple[float, float, float]


def both_tests(tasks: HTestPrompting, questions: pd.DataFrame) -> list[ReaderPoint]:
    """Return every reader group that took both tests, and answered every task of H-TEST."""
    rows = tasks.trials
    if len(tasks.makings) > 1:
        rows = rows[rows["making"] == tasks.makings[0]]
    if tasks.ks:
        rows = rows[rows["k"] == tasks.ks[-1]]
    points = []
    for group, group_rows in rows.groupby("reader_group", observed=True):
        other = questions[questions["reader_group"] == group]
        if len(other) and covers(group_rows, rows):
            kind = str(group_rows["reader_kind"].iloc[0])
            points.append(ReaderPoint(str(group), kind, mean_with_ends(group_rows), mean_with_ends(other)))
    return points


def printed_points() -> list[ReaderPoint]:
    """Return the models of which the paper prints both numbers, at 50 examples."""
    cells = printed()
    cells = cells[(cells["k"] == 50) & (cells["task"] == "average") | (cells["task"] == SET)]
    wide = 100 * cells.pivot(index="model", columns="task", values="printed").dropna()
    return [
        ReaderPoint(str(model), "", (row["average"],) * 3, (row[SET],) * 3) for model, row in wide.iterrows()
    ]


@dataclass(frozen=True)
class Fitted:
    """A straight line through points, with the correlation and its 95% interval (Fisher's z)."""

    slope: float
    intercept: float
    points: int
    r: float
    low: float
    high: float


def fitted(points: Iterable[ReaderPoint] | Sequence[ReaderPoint]) -> Fitted | None:
    """Return the least-squares line; None for fewer than four points, or where one test does not vary."""
    pairs = np.array([(point.x[0], point.y[0]) for point in points], dtype=float)
    if len(pairs) < FEWEST_POINTS or np.any(np.ptp(pairs, axis=0) == 0):
        return None
    line = stats.linregress(pairs[:, 0], pairs[:, 1])
    reach = float(stats.norm.ppf(0.975)) / np.sqrt(len(pairs) - 3)
    low, high = np.tanh(np.arctanh(np.clip(line.rvalue, -0.999999, 0.999999)) + np.array([-reach, reach]))
    slope, intercept, r = map(float, (line.slope, line.intercept, line.rvalue))
    return Fitted(slope, intercept, len(pairs), r, float(low), float(high))
