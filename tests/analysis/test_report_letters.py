"""The chapter on letter position: costs put in are said, weak studies have what can be said, figures hold what tables hold."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from analysis import Tables, load
from analysis.apa import Written
from analysis.figures import Drawing
from analysis.letters import letter_contrast
from analysis.letters.predictor_comparison import competing_predictors
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Chapter, Material
from experiment.papers.letter_position import chapter as letters
from experiment.papers.letter_position.chapter import Explanations
from tests.analysis.letter_study import LEVELS, study_rows, write_handover
from tests.analysis.word_study import WORDS, rewrite_dictionary, shown_words, study


def chapter_of(tables: Tables) -> Chapter | None:
    return letters.write(Material(tables, (), kinds_of(tables.trials)))


def words_of(chapter: Chapter) -> str:
    text = " ".join(str(one) for one in chapter.blocks if not isinstance(one, ApaTable | Drawing))
    return html.unescape(re.sub("<[^>]+>", "", text))


def table_of(chapter: Chapter, name: str) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the rows of a table under each of its heads."""
    table = next(one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == name)
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for row in table.rows:
        if isinstance(row, Head):
            own = found.setdefault(row[0], {})
        else:
            own[row[0]] = row[1:]
    return found


def with_forms(folder: Path) -> Path:
    """Give a study's items the forms of :mod:`tests.analysis.word_study`, and no record of changes, as imports have it."""
    items = pd.read_parquet(folder / "items.parquet")
    items["shown"] = [json.dumps({"sentence": " ".join(shown_words(level))}) for level in items["position"]]
    items["intact"] = json.dumps({"sentence": " ".join(WORDS)})
    items["changes"] = "[]"
    items["provenance"] = json.dumps({"operation": "imported"})
    items.to_parquet(folder / "items.parquet")
    return folder


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Chapter:
    found = chapter_of(load(with_forms(study(tmp_path_factory.mktemp("words"), people=12, items=12))))
    assert found is not None
    return found


def test_words_of_their_own_carry_the_costs_that_were_put_in(words: Chapter) -> None:
    zones = table_of(words, "letter_zones")
    for level, bits in (("initial", "9.00"), ("internal", "4.00"), ("final", "6.00")):
        cells = zones["reader-net"][f"Two letters transposed, {level}"]
        assert cells[-1] == bits, "the same in every item: nothing tells of other items"
    times = {
        level: float(zones["People"][f"Two letters transposed, {level}"][3].split()[0])
        for level in LEVELS[1:]
    }
    assert times["initial"] > times["final"] > times["internal"] > 0
    assert zones["People"]["Two letters transposed, initial"][4] == "–"


def test_answers_that_no_change_ever_turns_explain_nothing(tmp_path: Path) -> None:
    """Of a model that says Yes whatever stands there, half of the items are right in every condition: no predictor competes."""
    folder = with_forms(write_handover(tmp_path / "study", study_rows(human=12, models=("m",), items=24)))
    trials = pd.read_parquet(folder / "trials.parquet")
    own = trials["reader_kind"] == "model"
    trials.loc[own, "correct"] = trials.loc[own, "item_id"].map(lambda one: int(str(one)[-1]) % 2 == 0)
    trials.to_parquet(folder / "trials.parquet")
    found = competing_predictors(load(folder), "correct", groups=["m"])
    assert found.table.empty
    assert found.remarks[0].startswith("m: each item is always answered right or always wrong")


def test_places_are_drawn_from_both_ends_where_words_tell_them_apart(words: Chapter) -> None:
    drawing = next(one for one in words.blocks if isinstance(one, Drawing) and one.name == "letter_curves")
    assert (
        "letter from the start: 1 " in drawing.alternative and "letter from the end:" in drawing.alternative
    )
    assert "time on the changed word" in drawing.alternative
    starts = table_of(words, "letter_places_start")["reader-net"]
    assert {name.split(", ")[1] for name in starts} == {"letter 1", "letter 3", "letter 4", "letter 6"}
    assert all(
        isinstance(one, ApaTable | Drawing) or "letter_" not in one or "[[" in one for one in words.blocks
    )


def test_every_model_that_is_named_can_be_refitted(words: Chapter) -> None:
    table = table_of(words, "letter_predictors_reading_time")
    (head,) = table
    best = next(iter(table[head].values()))
    fit = next(one for one in words.fits if one.title.startswith("reading time"))
    assert f"{fit.fit.aic:,.1f}".replace("-", "−") == best[1]
    gains = [row[4] for name, row in table[head].items() if name != "Length and frequency alone"]
    assert all(isinstance(gain, Written) and len(gain.values) == 3 for gain in gains), "unrounded in its file"
    assert "(1 | participant) + (1 | item)" in fit.fit.formula


def single_words(folder: Path, **readers: Any) -> Path:
    """A study of single words without a record of changes."""
    rows = study_rows(items=12, **readers)
    write_handover(folder, rows)
    items = pd.read_parquet(folder / "items.parquet")
    names = [
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
    ]
    names += ["picture", "journey"]
    order = {"intact": None, "initial": (0, 1), "internal": (2, 3), "final": (-2, -1)}
    shown = []
    for item, level in zip(items["item_id"], items["position"], strict=True):
        letters_of = list(names[int(item[1:]) - 1])
        if (swap := order[level]) is not None:
            one, other = swap
            letters_of[one], letters_of[other] = letters_of[other], letters_of[one]
        shown.append(json.dumps({"word": "".join(letters_of).upper()}))
    items["shown"] = shown
    items["intact"] = [json.dumps({"word": names[int(item[1:]) - 1]}) for item in items["item_id"]]
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
    chapter = chapter_of(load(single_words(tmp_path, **readers)))
    assert chapter is not None
    heads = set(table_of(chapter, "letter_zones"))
    who = {"human": "People", "simulated": "Simulated readers (not data)"}
    expected = {who[kind] for kind in who if kind in readers} | set(readers.get("models", ()))
    assert heads == expected
    assert chapter.marks == (("simulated readers: not data",) if "simulated" in readers else ())
    if readers.get("human") == 1:
        assert "[" not in table_of(chapter, "letter_zones")["People"]["Two letters transposed, initial"][1]


def test_without_changed_letters_there_is_no_chapter(tmp_path: Path) -> None:
    assert chapter_of(load(write_handover(tmp_path / "none", study_rows(human=3)))) is None
    folder = single_words(tmp_path / "flat", human=3)
    items = pd.read_parquet(folder / "items.parquet")
    items.assign(shown=items["intact"]).to_parquet(folder / "items.parquet")
    assert chapter_of(load(folder)) is None
    rewrite_dictionary(folder, factors={})
    assert chapter_of(load(folder)) is None


@pytest.fixture(scope="module")
def decisions(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """124 people's lexical decisions with the strings that they saw, as an import hands them over."""
    data = pd.read_csv(shared / "data" / "tl_lexical_decision" / "trials.csv")
    rows = pd.DataFrame(
        {
            "study": "decisions",
            "version": 1,
            "design_hash": "d1",
            "session_id": data["participant"],
            "reader_kind": "human",
            "reader": data["participant"],
            "list_id": data["list"],
            "trial_index": data.groupby("participant").cumcount(),
            "attempt": 1,
            "item_id": data["base"],
            "set": "imported",
            "trial_type": "choose",
            "position": data["item_type"],
            "answer": np.where(data["item_type"] == "word", "word", "nonword"),
            "response_status": "valid",
            "correct": data["correct"].astype(bool),
            "rt": 1000.0 * data["rt"],
            "excluded_reason": None,
        }
    ).assign(**dict.fromkeys(("is_practice", "is_filler", "is_attention_check", "is_pilot"), False))
    factors = {"position": {"levels": ["replaced", "transposed", "word"], "reference": "replaced"}}
    folder = write_handover(tmp_path_factory.mktemp("decisions"), rows, factors=factors)
    data["position"] = data["item_type"]
    items = data.drop_duplicates(["base", "position"])
    pd.DataFrame(
        {
            "set": "imported",
            "item_id": items["base"],
            "position": items["position"],
            "shown": [json.dumps({"string": one}) for one in items["string"]],
            "intact": [json.dumps({"string": one}) for one in items["base"]],
            "changes": "[]",
            "provenance": json.dumps({"operation": "imported"}),
        }
    ).to_parquet(folder / "items.parquet")
    return load(folder)


@pytest.mark.shared
def test_real_people_take_transposed_letters_for_words_more_often_than_substituted_ones(
    decisions: Tables, quick: None
) -> None:
    chapter = chapter_of(decisions)
    assert chapter is not None
    row = table_of(chapter, "letter_contrasts")["People: accuracy (percentage points)"]
    difference = float(row["Substitution − transposition"][0].replace("−", "-"))
    used = decisions.trials[decisions.trials["position"] != "word"]
    means = used.groupby(["reader", "position"])["correct"].mean().unstack()
    assert difference == pytest.approx(100 * (means["transposed"] - means["replaced"]).mean(), abs=0.6)
    text = words_of(chapter)
    assert (
        "People (accuracy): transposed letters led to" in text
        and "more errors than substituted letters" in text
    )
    assert (
        "People (response time): transposed letters took" in text
        and "longer than substituted letters" in text
    )
    assert "were identified by comparing the form shown with the intact form" in str(chapter.methods[0])
    found = letter_contrast(decisions, "transposition", "substitution", "kind", "rt", resamples=300).iloc[0]
    assert 0 < found["low"] < found["high"] < 0.2
