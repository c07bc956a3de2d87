"""Letters: what was done to them, what it cost, and which explanation was put in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import Tables, load
from analysis.letters import competing_predictors, letter_changes, letter_contrast, letter_costs
from analysis.letters.changes import of_forms
from stimuli.errors import UserError
from stimuli.scramble import scramble_text
from stimuli.scramble.types import parse_operation
from stimuli.similarity import match_scores
from tests.analysis.letter_study import LEVELS, trial_rows, write_handover

WORDS = [
    "planet",
    "garden",
    "winter",
    "silver",
    "market",
    "bridge",
    "forest",
    "pocket",
    "basket",
    "candle",
    "picture",
    "journey",
    "captain",
    "blanket",
    "monster",
    "kitchen",
    "problem",
    "library",
    "husband",
    "freedom",
    "mountain",
    "hospital",
    "elephant",
    "children",
    "daughter",
    "question",
    "language",
    "computer",
    "exercise",
    "triangle",
    "adventure",
    "chocolate",
    "education",
    "president",
    "newspaper",
    "furniture",
    "landscape",
    "crocodile",
    "butterfly",
    "orchestra",
]
SPREAD = 1.2


def changed(word: str, level: str, number: int) -> tuple[str, list[int | None]]:
    """Return the shown form and its permutation: initial and internal transpositions, and internal substitutions."""
    order: list[int | None] = list(range(len(word)))
    if level == "intact":
        return word, order
    if level == "initial":
        order[0], order[1] = 1, 0
        return word[1] + word[0] + word[2:], order
    first = 1
    last = first + 1 + number % 3
    letters = list(word)
    if level == "internal":
        letters[first], letters[last] = letters[last], letters[first]
        order[first], order[last] = last, first
    else:
        letters[first], letters[last] = "q", "z"
        order[first] = order[last] = None
    return "".join(letters), order


def item_rows() -> pd.DataFrame:
    rows = []
    for number, word in enumerate(WORDS):
        for level in LEVELS:
            shown, order = changed(word, level, number)
            new = sum(one is None for one in order)
            moved = sum(one is not None and one != at for at, one in enumerate(order))
            change = {
                "field": "word",
                "unit": "letter",
                "word": 0,
                "intact": word,
                "shown": shown,
                "permutation": order,
                "displaced": moved,
                "substituted": new,
                "inserted": 0,
                "deleted": 0,
            }
            covariates = {f"cov_{name}": value for name, value in match_scores(word, shown).items()}
            rows.append(
                {
                    "set": "sentences",
                    "item_id": f"s{number + 1:02d}",
                    "position": level,
                    "changes": json.dumps([] if level == "intact" else [change]),
                    "cov_letters": float(len(word)),
                    **covariates,
                }
            )
    return pd.DataFrame(rows)


def letter_tables(folder: Path, *, people: int = 24, seed: int = 3) -> Tables:
    """People whose log times cost ``SPREAD`` x (1 - spatial coding match); a model whose answers cost by the first letter."""
    draw = np.random.default_rng(seed)
    items = item_rows()
    match = items.set_index(["item_id", "position"])["cov_match_spatial"].to_dict()
    flat = dict.fromkeys(["intercept", *LEVELS], 0.0)
    rows: list[dict[str, Any]] = []
    for number in range(people):
        own = trial_rows(
            f"P{number:03d}",
            "human",
            number,
            len(WORDS),
            draw,
            flat | {"intercept": 3.0},
            flat | {"intercept": 7.0},
            timeouts=0,
        )
        rows += [
            row
            | {
                "reading_time": row["reading_time"]
                * np.exp(SPREAD * (1 - match[row["item_id"], row["position"]]))
            }
            for row in own
            if not row["is_practice"]
        ]
    shift = flat | {"intercept": 1.5, "initial": -2.5}
    for session in range(6):
        made = trial_rows("m", "model", 0, len(WORDS), draw, shift, None, all_conditions=True)
        rows += [
            row | {"session_id": f"m-{session}", "temperature": 1.0, "replicate": session}
            for row in made
            if not row["is_practice"]
        ]
    where = write_handover(folder, pd.DataFrame(rows))
    items.to_parquet(where / "items.parquet")
    return load(where)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return letter_tables(tmp_path_factory.mktemp("letters"))


def test_changes_say_where_how_and_how_far(tables: Tables) -> None:
    found = letter_changes(tables.items, ["position"]).set_index(["item_id", "position"])
    first = found.loc[("s01", "initial")]
    assert (first["zone"], first["kind"], first["place"], first["distance"]) == (
        "initial",
        "transposition",
        1,
        1,
    )
    inner = found.loc[("s02", "internal")]
    assert (inner["zone"], inner["kind"], inner["place"], inner["distance"]) == (
        "internal",
        "transposition",
        2,
        2,
    )
    assert inner["place_from_end"] == len("garden") - 3
    replaced = found.loc[("s02", "final")]
    assert (replaced["zone"], replaced["kind"], replaced["distance"]) == ("internal", "substitution", 2)
    intact = found.loc[("s01", "intact")]
    assert (intact["zone"], intact["kind"], intact["changed_words"]) == ("intact", "intact", 0)


@pytest.mark.parametrize(
    ("permutation", "zone", "kind"),
    [
        ([1, 2, 3, 0], "outer", "shuffle"),
        ([0, 1, 3, 2], "final", "transposition"),
        ([3, 1, 2, 0], "outer", "transposition"),
        ([0, None, 2, 3], "internal", "substitution"),
    ],
)
def test_zones_and_kinds_by_hand(permutation: list[int | None], zone: str, kind: str) -> None:
    new = permutation.count(None)
    moved = sum(o is not None and o != n for n, o in enumerate(permutation))
    change = {"unit": "letter", "permutation": permutation, "displaced": moved, "substituted": new}
    change |= {"inserted": 0, "deleted": 0}
    items = pd.DataFrame({"set": ["a"], "item_id": ["i"], "changes": [json.dumps([change])]})
    row = letter_changes(items, []).iloc[0]
    assert (row["zone"], row["kind"]) == (zone, kind)


@pytest.mark.parametrize(
    ("operation", "zone", "place", "from_end"),
    [
        ("DEL-BEG", "initial", 1, 6),
        ("DEL-END", "final", 6, 1),
        ("DEL-INT_1", "internal", None, None),
        ("INS-BEG", "initial", 1, 7),
        ("INS-END", "final", 7, 1),
        ("INS-INT_1", "internal", None, None),
    ],
)
def test_letters_put_in_and_taken_out_are_where_they_were_not_where_others_moved_to(
    operation: str, zone: str, place: int | None, from_end: int | None
) -> None:
    form = scramble_text("garden", parse_operation(operation), seed=7, avoid_real_words=False).changes
    items = pd.DataFrame(
        {"set": ["a"], "item_id": ["i"], "changes": [json.dumps([one._asdict() for one in form])]}
    )
    row = letter_changes(items, []).iloc[0]
    assert (row["zone"], row["kind"], row["changed_words"]) == (zone, "other", 1)
    assert place is None or (row["place"], row["place_from_end"]) == (place, from_end)


def test_sentences_that_moved_whole_are_no_letters_and_broken_changes_are_refused() -> None:
    moved = json.dumps([{"unit": "word", "permutation": [1, 0], "displaced": 2}])
    items = pd.DataFrame({"set": ["a"], "item_id": ["i"], "changes": [moved]})
    assert letter_changes(items, []).empty
    with pytest.raises(UserError, match="not JSON"):
        letter_changes(items.assign(changes="{"), [])
    with pytest.raises(UserError, match="'changes' is missing"):
        letter_changes(items.drop(columns="changes"), [])


def test_costs_by_place_and_kind_are_those_put_in(tables: Tables) -> None:
    items = tables.items.assign(cost=SPREAD * (1 - tables.items["cov_match_spatial"]))
    expected = items.groupby("position")["cost"].mean()
    found = letter_costs(tables, ("kind", "zone"), "reading_time", resamples=500)
    table = found[found["reader_group"] == "human"].set_index("level")
    for level, name in (("initial", "transposition / initial"), ("internal", "transposition / internal")):
        assert table.loc[name, "low"] < expected[level] < table.loc[name, "high"]
        assert table.loc[name, "cost"] == pytest.approx(expected[level], abs=0.05)
    assert set(found["reader_group"]) == {"human"}
    places = letter_costs(tables, "place", "correct", resamples=300)
    model = places[places["reader_group"] == "m"].set_index("level")
    assert model.loc["1", "cost"] > 0.35
    assert abs(model.loc["2", "cost"]) < 0.12
    assert list(model.index) == ["1", "2"]


def test_substitution_against_transposition_is_the_difference_put_in(tables: Tables) -> None:
    items = tables.items.assign(cost=SPREAD * (1 - tables.items["cov_match_spatial"]))
    expected = items.groupby("position")["cost"].mean()
    names = ("substitution / internal", "transposition / internal")
    found = letter_contrast(tables, *names, by=("kind", "zone"), measure="reading_time", resamples=500)
    row = found.iloc[0]
    assert row["low"] < expected["final"] - expected["internal"] < row["high"]
    with pytest.raises(UserError, match="'deletion'"):
        letter_contrast(tables, "deletion", "transposition", measure="reading_time", resamples=50)
    with pytest.raises(UserError, match="'size'"):
        letter_costs(tables, "size")


def test_the_explanation_that_was_put_in_wins(tables: Tables) -> None:
    found = competing_predictors(tables, "reading_time", folds=4)
    table = found.table.set_index("name")
    near = {"match_spatial", "match_spatial_length"}
    assert table.index[0] in near
    assert table.loc["match_spatial", "delta_aic"] < 3
    assert table.loc["match_spatial", "gain_low"] > 0
    assert table.loc["match_spatial", "held_out"] > table.loc["letter place", "held_out"]
    assert table.loc["distance", "delta_aic"] > 10
    assert table["weight"].sum() == pytest.approx(1.0)
    terms = next(c for c in found.competitions["human"].candidates if c.name == "match_spatial").terms
    slope = terms.set_index("term").loc["cov_match_spatial"]
    spread = tables.items.query("position != 'intact'")["cov_match_spatial"].std()
    assert slope["low"] < -SPREAD * spread * 1.05 or slope["low"] < -SPREAD * spread < slope["high"]
    assert any("token edit distance cannot compete" in one for one in found.remarks)


def test_a_model_that_minds_only_the_first_letter_is_explained_by_letter_place(tables: Tables) -> None:
    found = competing_predictors(tables, "correct", folds=3, groups=["m"])
    assert set(found.table["reader_group"]) == {"m"}
    table = found.table.set_index("name")
    assert table.index[0] == "letter place"
    assert table.loc["letter place", "gain_low"] > 0.05
    assert table.loc["length and frequency", "gain"] == 0


@pytest.mark.parametrize(
    ("intact", "shown", "expected"),
    [
        ("REMOVAL", "revomal", ("internal", "transposition", 3, 3, 2)),
        ("EVIDENT", "ebiwent", ("internal", "substitution", 2, 4, 2)),
        ("market", "makket", ("internal", "substitution", 3, 4, 0)),
        ("market", "amrket", ("initial", "transposition", 1, 5, 1)),
        ("market", "markte", ("final", "transposition", 5, 1, 1)),
        ("market", "mrkaet", ("internal", "shuffle", 2, 3, 2)),
        ("market", "rtekam", ("outer", "shuffle", 1, 1, 5)),
        ("market", "markets", ("final", "other", 7, 1, 0)),
    ],
)
def test_changes_without_a_record_are_found_by_comparing_forms(
    intact: str, shown: str, expected: tuple[Any, ...]
) -> None:
    found = of_forms(intact, shown)
    assert found is not None
    assert tuple(found[name] for name in ("zone", "kind", "place", "place_from_end", "distance")) == expected


def test_derived_changes_are_those_recorded(tables: Tables) -> None:
    changes = [json.loads(text) for text in tables.items["changes"]]
    words = [one[0] if one else None for one in changes]
    bare = tables.items.drop(columns="changes").assign(
        intact=[json.dumps({"word": one["intact"] if one else "same"}) for one in words],
        shown=[json.dumps({"word": one["shown"] if one else "same"}) for one in words],
    )
    names = ["zone", "kind", "place", "place_from_end", "distance", "letters"]
    recorded, derived = letter_changes(tables.items, ["position"]), letter_changes(bare, ["position"])
    pd.testing.assert_frame_equal(recorded[names], derived[names])
    assert derived["derived"].all() and not recorded["derived"].any()
    with pytest.raises(UserError, match="not JSON"):
        letter_changes(bare.assign(shown="{"), ["position"])


def test_items_whose_words_are_changed_in_different_places_are_at_no_place() -> None:
    made = [
        {"field": "s", "unit": "letter", "word": word, "intact": "market", "shown": "x", "permutation": order,
         "displaced": 2, "substituted": 0, "inserted": 0, "deleted": 0}
        for word, order in ((0, [0, 2, 1, 3, 4, 5]), (1, [0, 1, 3, 2, 4, 5]))
    ]  # fmt: skip
    items = pd.DataFrame(
        {"item_id": ["a", "b"], "position": "internal", "changes": [json.dumps(made), json.dumps(made[:1])]}
    )
    found = letter_changes(items, ["position"]).set_index("item_id")
    assert found.loc["a", ["zone", "kind", "same_place", "same_distance"]].tolist() == [
        "internal", "transposition", False, True
    ]  # fmt: skip
    assert found.loc["b", "same_place"] and found.loc["b", "place"] == 2
