"""Labels as a reader was shown them, and items that are kept together."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.papers.inside.chapters.probing.probes import (
    control_labels,
    dealt_folds,
    families_of,
    labels_of,
)
from experiment.papers.inside.chapters.probing.probing_fit import PENALTIES, Settings, settings_of
from stimuli.errors import UserError

GEOMETRY = {"provenance": {"operation": "geometry:turn"}}


def trials(**columns: list[Any]) -> pd.DataFrame:
    many = len(next(iter(columns.values())))
    common = {"set": "s", "response_status": "valid"}
    common |= dict.fromkeys(("response", "label_map", "choice_order"))
    return pd.DataFrame({name: [value] * many for name, value in common.items()} | columns)


def item(name: str, **more: Any) -> dict[str, Any]:
    """Return a line of the items table; what has parts is JSON."""
    told = {key: json.dumps(part) if isinstance(part, dict | list) else part for key, part in more.items()}
    return {"item_id": name, "set": "s", **told}


def test_the_label_of_an_option_is_the_letter_at_which_this_trial_showed_it() -> None:
    items = pd.DataFrame([item("a", choices=["x", "y", "z"]), item("b", choices=["u", "v", "w"])])
    rows = trials(
        item_id=["a", "a", "b", "b"], answer=["z", "z", "u", "u"], choice_order=["0,1,2", "2,0,1", None, "1,2,0"],
        response=["x", "y", "w", "A"], response_status=["valid", "valid", "unparsed", "valid"],
    )  # fmt: skip
    assert labels_of(rows, items, "answer", ()).tolist() == ["C", "A", "A", "C"]
    assert labels_of(rows, items, "response", ()).tolist() == ["A", "C", None, "A"]


def test_classes_that_are_the_same_throughout_have_the_label_by_which_they_were_answered() -> None:
    items = pd.DataFrame([item("a", choices=["Yes", "No"]), item("b", choices=["Yes", "No"])])
    rows = trials(
        item_id=["a", "b", "a"],
        answer=["Yes", "No", "Yes"],
        label_map=["Yes=foo,No=bar", "Yes=bar,No=foo", None],
    )
    assert labels_of(rows, items, "answer", ()).tolist() == ["foo", "foo", "Yes"]


def together(items: list[dict[str, Any]], keep: tuple[str, ...] = ()) -> list[set[str]]:
    """Return the families of items, as sets of names."""
    table = pd.DataFrame(items)
    rows = trials(item_id=table["item_id"].tolist(), answer=["A"] * len(table))
    found: dict[int, set[str]] = {}
    for name, family in zip(rows["item_id"], families_of(rows, table, keep), strict=True):
        found.setdefault(int(family), set()).add(name)
    return sorted(found.values(), key=sorted)


@pytest.mark.parametrize(
    ("shared", "other"),
    [
        ({"intact": {"text": "one passage"}}, {"intact": {"text": "another"}}),
        ({"provenance": {"source": "s", "source_id": "r1"}}, {"provenance": {"source": "s", "source_id": "r2"}}),
        ({"cov_pair": "p1"}, {"cov_pair": "p2"}),
        ({"cov_dialogue": "d1"}, {"cov_dialogue": "d2"}),
        ({"shown": {"sentence": "same"}}, {"shown": {"sentence": "other"}}),
        ({"cov_group": "g1", **GEOMETRY}, {"cov_group": "g2", **GEOMETRY}),
    ],
)  # fmt: skip
def test_items_that_share_a_text_a_record_or_a_pair_are_one_family(
    shared: dict[str, Any], other: dict[str, Any]
) -> None:
    assert together([item("a", **shared), item("b", **shared), item("c", **other)]) == [{"a", "b"}, {"c"}]


def test_families_are_joined_through_what_they_have_in_common_and_a_plain_covariate_joins_none() -> None:
    items = [
        item("a", intact={"text": "one"}, cov_pair="p", cov_group="all", cov_topic="x"),
        item("b", intact={"text": "two"}, cov_pair="p", cov_group="all", cov_topic="y"),
        item("c", intact={"text": "two"}, cov_group="all", cov_topic="x"),
        item("d", intact={"text": "four"}, cov_group="all", cov_topic="x"),
        item("e", intact={"text": "five"}, shown={"question": "the same?"}, cov_topic="z"),
        item("f", intact={"text": "six"}, shown={"question": "the same?"}),
    ]
    assert together(items) == [{"a", "b", "c"}, {"d"}, {"e"}, {"f"}]
    assert together(items, ("topic",)) == [{"a", "b", "c", "d"}, {"e"}, {"f"}]
    with pytest.raises(UserError, match="'topik'"):
        together(items, ("topik",))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 6), st.lists(st.tuples(st.integers(0, 15), st.integers(0, 2)), min_size=20, max_size=80)
)
def test_a_family_is_in_one_fold_and_folds_are_of_one_size(folds: int, drawn: list[tuple[int, int]]) -> None:
    families = np.array([family for family, _ in drawn])
    labels = np.array([label for _, label in drawn])
    names = [f"item {family}-{label}" for family, label in drawn]
    rows = pd.DataFrame({"name": names, "label": labels, "family": families})
    fold = dealt_folds(rows, folds, ("seed",))
    of_family = {family: set(fold[families == family]) for family in set(families)}
    assert all(len(found) == 1 for found in of_family.values())
    sizes = Counter(next(iter(found)) for found in of_family.values())
    assert max(sizes.values()) - min([sizes[one] for one in range(folds)]) <= 1
    order = np.random.default_rng(len(drawn)).permutation(len(drawn))
    again = dealt_folds(rows.iloc[order], folds, ("seed",))
    assert (again == fold[order]).all(), "what is drawn depends on names alone"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=10, max_size=60), st.integers(1, 3)
)
def test_random_labels_are_those_of_the_items_of_a_part(drawn: list[tuple[int, int]], parts: int) -> None:
    names = [f"i{number}" for number, _ in drawn for _ in range(2)]
    labels = np.array([number % 3 for number, _ in drawn for _ in range(2)])
    part = np.array([number % parts for number, _ in drawn for _ in range(2)])
    given_labels = control_labels(names, labels, part, 2, ("seed",))
    for task in given_labels:
        own = dict(zip(names, task, strict=True))
        assert [own[name] for name in names] == task.tolist()
        for one in range(parts):
            mine = {name for name, place in zip(names, part, strict=True) if place == one}
            true = {name: label for name, label in zip(names, labels, strict=True) if name in mine}
            assert Counter(own[name] for name in mine) == Counter(true.values())


def test_what_a_study_says_is_read_with_its_defaults() -> None:
    assert settings_of(None) == Settings() and settings_of("none") is None
    assert settings_of({"predict": ["answer", "condition"], "penalties": [1, 0.01]}) == Settings(
        predict=("answer", "condition"), penalties=(0.01, 1.0)
    )
    assert settings_of({"test": "dev"}) == Settings(test=("dev",), penalties=PENALTIES)
    with pytest.raises(UserError, match=r"`folds:`.*`test:`"):
        settings_of({"folds": 5, "test": "dev"})
