"""People's reading time beside models' surprisal and accuracy, place by place: the main figure of letter position and its table."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from analysis import load
from analysis.costs.ratios import Profile
from analysis.figures.drawing import Drawing
from analysis.letters import letter_costs
from analysis.letters.letter_costs import GroupCosts, beside, surprisal_parts
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Block, Material
from experiment.papers.letter_position import chapter as letters
from experiment.papers.letter_position.chapter import costs_beside, measures
from experiment.papers.letter_position.chapter.figures import letter_beside_figures, percent_added
from tests.analysis.letter_study import TIME, study_rows, write_handover
from tests.analysis.word_study import BITS as WORD_BITS
from tests.analysis.word_study import TARGETS, WORDS, shown_words, study

AFTER_BITS = 1.5
BITS = {"intact": 50.0, "initial": 59.0, "internal": 54.0, "final": 56.0}


def tell_forms(folder: Path) -> None:
    """Write the sentences of :mod:`tests.analysis.word_study` into a study's items, as imported ones."""
    items = pd.read_parquet(folder / "items.parquet")
    items["shown"] = [json.dumps({"sentence": " ".join(shown_words(level))}) for level in items["position"]]
    items["intact"] = json.dumps({"sentence": " ".join(WORDS)})
    items["changes"], items["provenance"] = "[]", json.dumps({"operation": "imported"})
    items.to_parquet(folder / "items.parquet")


def blocks_of(folder: Path, monkeypatch: pytest.MonkeyPatch, **readers: object) -> list[Block]:
    """Write a study whose model tells surprisal of known size, and return what is said of it."""
    for module in (letters, measures):
        monkeypatch.setattr(module, "RESAMPLES", 200)
    rows = study_rows(items=12, **readers)  # type: ignore[arg-type]
    tells = rows["reader"] == "restorer"
    rows["surprisal"] = rows["position"].map(BITS).where(tells).astype(float)
    handed = write_handover(folder, rows)
    tell_forms(handed)
    tables = load(handed)
    return costs_beside(tables, [], kinds_of(tables.trials))


def test_costs_that_were_put_in_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of(tmp_path / "s", monkeypatch, human=24, models=("restorer", "gpt"))
    table = next(one for one in blocks if isinstance(one, ApaTable))
    heads = [row[0] for row in table.rows if isinstance(row, Head)]
    assert heads == ["restorer", "gpt"]
    of_restorer, of_gpt = table.rows[1:4], table.rows[5:8]
    assert [one.name for one in blocks if isinstance(one, ApaTable)] == [
        "letter_costs_beside"
    ]  # no words were recorded
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
    assert "Some models provide no surprisal" in table.note
    drawing = next(one for one in blocks if isinstance(one, Drawing))
    assert "tells no surprisal" in drawing.svg or len(drawing.figure.axes) == 4
    assert "9.00 bits" in drawing.alternative


def test_the_chapter_opens_with_the_main_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "explanations", lambda *_: letters.Explanations())
    blocks_of(tmp_path / "s", monkeypatch, human=6, models=("restorer",))
    tables = load(tmp_path / "s")
    chapter = letters.write(Material(tables, (), kinds_of(tables.trials)))
    assert chapter is not None
    assert [one.name for one in chapter.blocks if isinstance(one, Drawing)][:2] == [
        "letter_costs_beside",
        "letter_curves",
    ]
    heads = [one for one in chapter.blocks if str(one).startswith("<h3>")]
    assert [str(one) for one in heads][:2] == ["<h3>People and models</h3>", "<h3>Place by place</h3>"]


def of_levels(group: str, kind: str, values: dict[str, float]) -> GroupCosts:
    """Costs of one reader group that are known without error, of nine items each."""
    estimate = np.array(list(values.values()))
    profile = Profile("intact", tuple(values), estimate, np.tile(estimate, (50, 1)), 5, 9, "items")
    return GroupCosts(group, kind, profile, dict.fromkeys(values, 9))


NEAR_AND_FAR = {"transposition / initial / 1": 0.25, "transposition / initial / 2": 0.35}
TOGETHER = {"transposition / initial": 0.3, "transposition / outer": 0.4}


def test_distances_of_a_place_stand_apart_and_both_ends_have_none() -> None:
    ends = {f"transposition / outer / {n}": 0.4 for n in (5, 6, 7)}
    times = [
        of_levels("human", "human", TOGETHER),
        of_levels("human", "human", NEAR_AND_FAR | ends),
    ]
    bits = {
        "bits": [
            of_levels("net", "model", {name: 10 * value for name, value in costs.items()})
            for costs in (TOGETHER, NEAR_AND_FAR)
        ]
    }
    (pair,) = beside(times, bits, [], ("transposition",), ("initial", "outer"))
    assert [
        (row.place, row.distance, row.people["time"].value, row.model["bits"].value) for row in pair.rows
    ] == [
        ("initial", "", 0.3, 3.0),
        ("initial", "1", 0.25, 2.5),
        ("initial", "2", 0.35, 3.5),
        ("outer", "", 0.4, 4.0),
    ]
    assert [row.distance for row in pair.together] == ["", ""]
    assert [(row.place, row.distance) for row in pair.apart] == [
        ("initial", "1"),
        ("initial", "2"),
        ("outer", ""),
    ]
    (drawing,) = letter_beside_figures("beside", [pair], "T", "N")
    marks = {
        line.get_ydata()[0]: to_hex(line.get_markerfacecolor())
        for line in drawing.figure.axes[0].lines
        if line.get_marker() in ("^", "D")
    }
    near, far, both = (marks[percent_added(value)] for value in (0.25, 0.35, 0.4))
    assert near == both != far
    assert sum(to_rgb(far)) > sum(to_rgb(near)) + 0.5
    key = [one.get_text() for one in drawing.figure.legends[0].get_texts()]
    assert key[:2] == ["initial letters", "first and last letter (all distances)"]
    assert key[-2:] == ["distance 1", "distance 2"]
    assert "initial letters, distance 2: " in drawing.alternative


def test_surprisal_is_split_into_changed_words_and_the_intact_ones_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (letters, measures):
        monkeypatch.setattr(module, "RESAMPLES", 50)
    folder = study(tmp_path / "s", people=4, items=8)
    tell_forms(folder)
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
    rows = [row for row in table.rows if not isinstance(row, Head)]
    assert [row[0] for row in rows] == [
        f"Two letters transposed, {place}" for place in ("initial", "internal", "final")
    ]
    for row, bits in zip(rows, (9.0, 4.0, 6.0), strict=True):
        assert [cell.split(" ")[0] for cell in row[2:]] == [
            f"{one:.2f}" for one in (2 * bits + 10.5, 2 * bits, 10.5)
        ]
