"""Letters: what was done to them, what it cost, which explanation was put in, and the chapter on letter position."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D

from analysis import Tables, load
from analysis.apa import Written
from analysis.figures import Drawing
from analysis.figures.drawing import looks
from analysis.letters import competing_predictors, letter_changes, letter_contrast, letter_costs
from analysis.letters.changes import of_forms
from analysis.letters.letter_costs import surprisal_parts
from analysis.letters.predictor_comparison import MATCHES
from analysis.readers import group_order, kinds_of
from analysis.report.apa_tables import ApaTable
from analysis.report.blocks import Block, Chapter
from analysis.report.document import SIMULATED
from analysis.report.references import cited_in
from experiment.papers.letter_position import chapter as letters
from experiment.papers.letter_position.chapter import Explanations, costs_beside, measures
from stimuli.errors import UserError
from stimuli.scramble import scramble_text
from stimuli.scramble.types import parse_operation
from stimuli.similarity import match_scores
from tests.analysis import decision_study
from tests.analysis.chapters import chapter_of, drawings_in, material_of, rows_by_head, rows_in, tables_in
from tests.analysis.letter_study import LEVELS, TIME, study_rows, trial_rows, write_handover
from tests.analysis.word_study import BITS as WORD_BITS
from tests.analysis.word_study import TARGETS, WORDS, rewrite_dictionary, study, with_forms

NOUNS = (
    "planet garden winter silver market bridge forest pocket basket candle picture journey "
    "captain blanket monster kitchen problem library husband freedom mountain hospital elephant "
    "children daughter question language computer exercise triangle adventure chocolate education "
    "president newspaper furniture landscape crocodile butterfly orchestra "
)
TARGET_WORDS = NOUNS.split()
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
    for number, word in enumerate(TARGET_WORDS):
        for level in LEVELS:
            shown, order = changed(word, level, number)
            new = sum(one is None for one in order)
            moved = sum(one is not None and one != at for at, one in enumerate(order))
            change = {
                "field": "word", "unit": "letter", "word": 0, "intact": word, "shown": shown, "permutation": order,
                "displaced": moved, "substituted": new, "inserted": 0, "deleted": 0,
            }  # fmt: skip
            row = {"set": "sentences", "item_id": f"s{number + 1:02d}", "position": level}
            row["changes"] = json.dumps([] if level == "intact" else [change])
            covariates = {f"cov_{name}": value for name, value in match_scores(word, shown).items()}
            rows.append(row | {"cov_letters": float(len(word)), **covariates})
    return pd.DataFrame(rows)


def letter_tables(folder: Path, *, people: int = 24, seed: int = 3) -> Tables:
    """People whose log times cost ``SPREAD`` x (1 - spatial coding match); a model whose answers cost by the first letter."""
    draw = np.random.default_rng(seed)
    items = item_rows()
    match = items.set_index(["item_id", "position"])["cov_match_spatial"].to_dict()
    flat = dict.fromkeys(["intercept", *LEVELS], 0.0)
    rows: list[dict[str, Any]] = []
    right, times, many = flat | {"intercept": 3.0}, flat | {"intercept": 7.0}, len(TARGET_WORDS)
    for number in range(people):
        for row in trial_rows(f"P{number:03d}", "human", number, many, draw, right, times, timeouts=0):
            if not row["is_practice"]:
                slower = np.exp(SPREAD * (1 - match[row["item_id"], row["position"]]))
                rows.append(row | {"reading_time": row["reading_time"] * slower})
    shift = flat | {"intercept": 1.5, "initial": -2.5}
    for session in range(6):
        named = {"session_id": f"m-{session}", "temperature": 1.0, "replicate": session}
        made = trial_rows("m", "model", 0, many, draw, shift, None, all_conditions=True)
        rows += [row | named for row in made if not row["is_practice"]]
    where = write_handover(folder, pd.DataFrame(rows))
    items.to_parquet(where / "items.parquet")
    return load(where)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return letter_tables(tmp_path_factory.mktemp("letters"))


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
    made = json.dumps([one._asdict() for one in form])
    items = pd.DataFrame({"set": ["a"], "item_id": ["i"], "changes": [made]})
    row = letter_changes(items, []).iloc[0]
    assert (row["zone"], row["kind"], row["changed_words"]) == (zone, "other", 1)
    assert place is None or (row["place"], row["place_from_end"]) == (place, from_end)


def test_sentences_that_moved_whole_are_no_letters_and_broken_changes_are_refused() -> None:
    moved = json.dumps([{"unit": "word", "permutation": [1, 0], "displaced": 2}])
    items = pd.DataFrame({"set": ["a"], "item_id": ["i"], "changes": [moved]})
    assert letter_changes(items, []).empty
    with pytest.raises(UserError, match=r"'changes' .*JSON"):
        letter_changes(items.assign(changes="{"), [])
    with pytest.raises(UserError, match="'changes'"):
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
    assert any("token edit distance" in one for one in found.remarks)


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
    with pytest.raises(UserError, match=r"'shown' .*JSON"):
        letter_changes(bare.assign(shown="{"), ["position"])


@pytest.mark.parametrize("recorded", ["[]", None])
def test_a_text_that_is_withheld_is_not_intact(recorded: str | None) -> None:
    items = pd.DataFrame(
        {
            "item_id": ["a", "b"],
            "position": ["same", "none"],
            "intact": json.dumps({"s": "market", "q": "Where?"}),
            "shown": [json.dumps({"s": text, "q": "Where?"}) for text in ("market", "")],
            "provenance": [json.dumps({"operation": operation}) for operation in ("none", "withheld")],
            "changes": recorded,
        }
    )
    assert letter_changes(items, ["position"])["item_id"].tolist() == ["a"]
    if recorded is None:
        assert letter_changes(items.drop(columns="provenance"), ["position"])["item_id"].tolist() == ["a"]


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


def test_levels_of_any_name_that_have_all_trials_of_a_place_are_that_place() -> None:
    levels = ["plain", "swapped", "early", "late", "both"]
    zones = ["intact", "internal", "initial", "final", "outer"]
    rows = pd.DataFrame({"spelling": [*levels, "late"], "zone": [*zones, "outer"], "font": "serif"})
    factors = {"spelling": levels, "font": ["serif"]}
    assert measures.places_of(rows, factors) == {"plain": "intact", "swapped": "internal", "early": "initial"}
    of_words = rows[["zone"]]
    assert measures.places_of(of_words, {"position": ["intact", "final"]}) == {
        "intact": "intact",
        "final": "final",
    }


def test_a_curve_of_places_ends_with_the_last_place_that_any_reader_has_drawn() -> None:
    table = pd.DataFrame({"reader_group": ["a"] * 4 + ["b"] * 4, "place": [1, 2, 3, 4] * 2})
    table = table.assign(items_of_level=[9, 9, 1, 1, 9, 9, 9, 2], change="transposition", cost=1.0)
    table = table.assign(low=0.0, high=2.0, is_tested=False)
    for group, backwards in (("a", False), ("b", True)):
        segment = measures._segment(table, group, "letter", backwards=backwards)
        assert segment is not None and segment[1] == (("3", "2", "1") if backwards else ("1", "2", "3"))


AFTER_BITS = 1.5
BITS = {"intact": 50.0, "initial": 59.0, "internal": 54.0, "final": 56.0}


def blocks_of(folder: Path, monkeypatch: pytest.MonkeyPatch, **readers: object) -> list[Block]:
    """Write a study whose model tells surprisal of known size, and return what is said of it."""
    for module in (letters, measures):
        monkeypatch.setattr(module, "RESAMPLES", 200)
    rows = study_rows(items=12, **readers)  # type: ignore[arg-type]
    tells = rows["reader"] == "restorer"
    rows["surprisal"] = rows["position"].map(BITS).where(tells).astype(float)
    handed = write_handover(folder, rows)
    with_forms(handed)
    tables = load(handed)
    kinds = kinds_of(tables.trials)
    return costs_beside(tables, [], {group: kinds[group] for group in group_order(tables.trials)})


def test_costs_that_were_put_in_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of(tmp_path / "s", monkeypatch, human=24, models=("restorer", "gpt"))
    # no words were recorded
    (table,) = [one for one in blocks if isinstance(one, ApaTable)]
    assert table.name == "letter_costs_beside"
    (drawing,) = [one for one in blocks if isinstance(one, Drawing)]
    drawn = {line.get_marker() for axes in drawing.figure.axes for line in axes.lines}
    (key,) = drawing.figure.legends
    assert {mark.get_marker() for mark in key.legend_handles if isinstance(mark, Line2D)} <= drawn
    assert len(key.legend_handles) == 3, "one kind of change needs no entry"
    colours = {text.get_text(): text.get_color() for text in drawing.figure.texts}
    look = looks({"gpt": "model", "restorer": "model"})
    assert {name: colours[name] for name in look} == {name: mark.colour for name, mark in look.items()}, (
        "the order of the report, not that of the rows"
    )
    under = rows_by_head(table)
    assert list(under) == ["restorer", "gpt"]
    of_restorer, of_gpt = under.values()
    for row, place in zip(of_restorer, ("initial", "internal", "final"), strict=True):
        assert row[0] == f"Two letters transposed, {place}"
        low, high = row[2].values[1:]  # type: ignore[attr-defined]
        assert low - 5 < 100 * (2.718281828 ** TIME[place] - 1) < high + 5
        assert row[4] == f"{BITS[place] - 50:.2f}", (
            "each item costs the same, so that no interval has a width"
        )
    assert [row[4] for row in of_gpt] == ["–"] * 3
    assert [row[2] for row in of_gpt] == [row[2] for row in of_restorer]
    said = " ".join(str(one) for one in blocks)
    orders = re.findall(
        r"surprisal of (?:<[^>]+>|the model |model )*(\w+)[^:]*: ([^;.]+)", html.unescape(said)
    )
    assert orders == [("restorer", "initial > final > internal")]
    assert "surprisal" in table.note
    drawing = next(one for one in blocks if isinstance(one, Drawing))
    assert "9.00 bits" in drawing.alternative


def test_surprisal_is_split_into_changed_words_and_the_intact_ones_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (letters, measures):
        monkeypatch.setattr(module, "RESAMPLES", 50)
    folder = study(tmp_path / "s", people=4, items=8)
    with_forms(folder)
    regions = pd.read_parquet(folder / "regions.parquet")
    trials = pd.read_parquet(folder / "trials.parquet")
    level = trials.set_index(["session_id", "trial_index"])["position"]
    changed = regions.set_index(["session_id", "trial_index"]).index.map(level) != "intact"
    after = (regions["region"] > TARGETS[0]) & ~regions["region"].isin(TARGETS)
    regions.loc[changed & after, "surprisal"] += AFTER_BITS
    regions.to_parquet(folder / "regions.parquet")
    sums = regions.groupby(["session_id", "trial_index"])["surprisal"].sum(min_count=1)
    trials["surprisal"] = sums.reindex(
        pd.MultiIndex.from_frame(trials[["session_id", "trial_index"]])
    ).to_numpy()
    trials.to_parquet(folder / "trials.parquet")
    tables = load(folder)
    parts = {"whole": tables, **surprisal_parts(tables)}
    found = {
        name: letter_costs(one, "zone", "surprisal", resamples=50).set_index("level")["cost"]
        for name, one in parts.items()
    }
    for place, bits in WORD_BITS.items():
        assert found["bits_changed"][place] == pytest.approx(len(TARGETS) * bits)
        assert found["bits_after"][place] == pytest.approx(
            AFTER_BITS * (len(WORDS) - TARGETS[0] - len(TARGETS))
        )
        assert found["whole"][place] == pytest.approx(
            found["bits_changed"][place] + found["bits_after"][place]
        )
    blocks = costs_beside(tables, [], kinds_of(tables.trials))
    table = next(one for one in blocks if isinstance(one, ApaTable) and one.name == "letter_surprisal_split")
    rows = rows_in(table)
    assert [row[0] for row in rows] == [
        f"Two letters transposed, {place}" for place in ("initial", "internal", "final")
    ]
    for row, bits in zip(rows, (9.0, 4.0, 6.0), strict=True):
        assert [cell.split(" ")[0] for cell in row[2:]] == [
            f"{one:.2f}" for one in (2 * bits + 10.5, 2 * bits, 10.5)
        ]


def zones_of(chapter: Chapter) -> dict[str, list[tuple[str, ...]]]:
    return rows_by_head(tables_in(chapter)["letter_zones"])


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Chapter:
    folder = with_forms(study(tmp_path_factory.mktemp("words"), people=12, items=12))
    return chapter_of(letters.write, load(folder))


def test_words_of_their_own_carry_the_costs_that_were_put_in(words: Chapter) -> None:
    zones = {head: {row[0]: row[1:] for row in rows} for head, rows in zones_of(words).items()}
    for level, bits in (("initial", "9.00"), ("internal", "4.00"), ("final", "6.00")):
        cells = zones["reader-net"][f"Two letters transposed, {level}"]
        assert cells[-1] == bits, "the same in every item: nothing tells of other items"
    times = {
        level: float(zones["People"][f"Two letters transposed, {level}"][3].split()[0])
        for level in LEVELS[1:]
    }
    assert times["initial"] > times["final"] > times["internal"] > 0
    assert zones["People"]["Two letters transposed, initial"][4] == "–"


def test_every_model_that_is_named_can_be_refitted(words: Chapter) -> None:
    (rows,) = rows_by_head(tables_in(words)["letter_predictors_reading_time"]).values()
    fit = next(one for one in words.fits if one.title.startswith("reading time"))
    assert f"{fit.fit.aic:,.1f}".replace("-", "−") == rows[0][2]
    gains = [row[5] for row in rows if row[0] != "Length and frequency alone"]
    assert all(isinstance(gain, Written) and len(gain.values) == 3 for gain in gains), "unrounded in its file"
    assert "(1 | participant) + (1 | item)" in fit.fit.formula


def single_words(folder: Path, **readers: Any) -> Path:
    """A study of single words without a record of changes."""
    rows = study_rows(items=12, **readers)
    write_handover(folder, rows)
    items = pd.read_parquet(folder / "items.parquet")
    order = {"intact": None, "initial": (0, 1), "internal": (2, 3), "final": (-2, -1)}
    shown = []
    for item, level in zip(items["item_id"], items["position"], strict=True):
        letters_of = list(TARGET_WORDS[int(item[1:]) - 1])
        if (swap := order[level]) is not None:
            one, other = swap
            letters_of[one], letters_of[other] = letters_of[other], letters_of[one]
        shown.append(json.dumps({"word": "".join(letters_of).upper()}))
    items["shown"] = shown
    items["intact"] = [json.dumps({"word": TARGET_WORDS[int(item[1:]) - 1]}) for item in items["item_id"]]
    items.to_parquet(folder / "items.parquet")
    return folder


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the slow part out."""
    nothing = Explanations()
    monkeypatch.setattr(letters, "explanations", lambda *_: nothing)


@pytest.mark.parametrize(
    "readers",
    [
        {"human": 6},
        {"human": 1},
        {"models": ("a", "b")},
        {"simulated": 4, "baselines": ("random",)},
        {"human": 3, "pilot": True},
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.usefixtures("quick")
def test_whoever_there_is_has_a_chapter(tmp_path: Path, readers: dict[str, Any]) -> None:
    chapter = chapter_of(letters.write, load(single_words(tmp_path, **readers)))
    zones = zones_of(chapter)
    who = {"human": "People", "simulated": "Simulated readers (not data)"}
    expected = {who[kind] for kind in who if kind in readers} | set(readers.get("models", ()))
    assert set(zones) == expected
    assert chapter.marks == (SIMULATED if "simulated" in readers else ())
    if readers.get("human") == 1:
        assert "[" not in "".join(row[2] for row in zones["People"])


@pytest.mark.usefixtures("quick")
def test_texts_name_only_the_places_kinds_and_factors_of_the_study(tmp_path: Path) -> None:
    chapter = chapter_of(letters.write, load(single_words(tmp_path, human=6)))
    texts = " ".join((*chapter.methods, *(drawing.note for drawing in drawings_in(chapter).values())))
    absent = ("both ends", "substitution", "all other factors")
    assert not [name for name in absent if name in texts]
    assert "internal" in texts and "transposition" in texts


def test_without_changed_letters_there_is_no_chapter(tmp_path: Path) -> None:
    def has_chapter(folder: Path) -> bool:
        return letters.write(material_of(load(folder))) is not None

    assert not has_chapter(write_handover(tmp_path / "none", study_rows(human=3)))
    folder = single_words(tmp_path / "flat", human=3)
    items = pd.read_parquet(folder / "items.parquet")
    items.assign(shown=items["intact"]).to_parquet(folder / "items.parquet")
    assert not has_chapter(folder)
    rewrite_dictionary(folder, factors={})
    assert not has_chapter(folder)


@pytest.fixture(scope="module")
def decisions(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """124 people's lexical decisions with the strings that they saw, as an import hands them over."""
    rows = decision_study.decision_rows(shared, words=True)
    factors = {"position": {"levels": ["replaced", "transposed", "word"], "reference": "replaced"}}
    folder = write_handover(tmp_path_factory.mktemp("decisions"), rows, factors=factors)
    items = rows.drop_duplicates(["item_id", "position"])
    told = items[["set", "item_id", "position"]].assign(
        shown=[json.dumps({"string": one}) for one in items["string"]],
        intact=[json.dumps({"string": one}) for one in items["item_id"]],
        changes="[]",
        provenance=json.dumps({"operation": "imported"}),
    )
    told.to_parquet(folder / "items.parquet")
    return load(folder)


@pytest.mark.shared
def test_real_people_take_transposed_letters_for_words_more_often_than_substituted_ones(
    decisions: Tables, quick: None
) -> None:
    contrasts = tables_in(chapter_of(letters.write, decisions))["letter_contrasts"]
    (row,) = rows_by_head(contrasts)["People: accuracy (percentage points)"]
    assert row[0] == "Cost of substitution minus cost of transposition", (
        "a contrast of accuracy has the other sign"
    )
    assert "kinds" in contrasts.title and "places" not in contrasts.title
    assert "errors" in contrasts.note and "bits" not in contrasts.note
    difference = float(row[1].replace("−", "-"))
    used = decisions.trials[decisions.trials["position"] != "word"]
    means = used.groupby(["reader", "position"])["correct"].mean().unstack()
    assert difference == pytest.approx(100 * (means["transposed"] - means["replaced"]).mean(), abs=0.6)
    found = letter_contrast(decisions, "transposition", "substitution", "kind", "rt", resamples=300).iloc[0]
    assert 0 < found["low"] < found["high"] < 0.2


def test_answers_that_no_change_ever_turns_explain_nothing(tmp_path: Path) -> None:
    """Of a model that says Yes whatever stands there, half of the items are right in every condition: no predictor competes."""
    folder = with_forms(write_handover(tmp_path / "study", study_rows(human=12, models=("m",), items=24)))
    trials = pd.read_parquet(folder / "trials.parquet")
    own = trials["reader_kind"] == "model"
    trials.loc[own, "correct"] = trials.loc[own, "item_id"].map(lambda one: int(str(one)[-1]) % 2 == 0)
    trials.to_parquet(folder / "trials.parquet")
    found = competing_predictors(load(folder), "correct", groups=["m"])
    assert found.table.empty
    assert found.remarks[0].startswith("m: ")


def test_a_model_without_surprisal_is_not_said_to_have_no_changed_trial(tables: Tables) -> None:
    m = tables.trials[tables.trials["reader_group"] == "m"]
    with_surprisal = m.assign(
        reader_group="tiny", reader="tiny", surprisal=np.arange(len(m), dtype=float) % 7
    )
    unlisted = with_surprisal.assign(reader_group="intact", reader="intact")
    unlisted = unlisted[unlisted["position"] == "intact"]
    rows = pd.concat([tables.trials.assign(surprisal=np.nan), with_surprisal, unlisted], ignore_index=True)
    found = competing_predictors(
        replace(tables, trials=rows), "surprisal", folds=2, groups=["m", "intact", "tiny"]
    )
    without, unchanged = (
        next(one for one in found.remarks if one.startswith(who)) for who in ("m:", "intact:")
    )
    assert without.partition(": ")[2] != unchanged.partition(": ")[2]
    assert "changed" not in without and "changed" in unchanged


def test_each_predictor_that_can_compete_is_explained_and_cited() -> None:
    text = html.unescape(str(letters.LAYOUT.sentences("methods_of_predictors")))
    names = [
        letters.PREDICTORS[name]
        for name in (*MATCHES, "shown_bigram_mean", "token ratio", "token edit distance")
    ]
    assert [name for name in names if name.lower() not in text.lower()] == []
    cited = {entry.key for entry in cited_in(text)}
    assert {"whitney2001", "davis2010", "gomez2008", "levenshtein1966", "damerau1964"} <= cited
    assert {"grainger2003", "grainger2006", "mcclelland1981"} <= cited
