"""People's reading time beside models' surprisal and accuracy, place by place: the main figure of letter position and its table."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analysis import load
from analysis.costs.crossed import Profile
from analysis.figures.drawing import Drawing
from analysis.figures.letter_beside import letter_beside_figures
from analysis.letters.beside import Beside, Cost, Pair, beside
from analysis.letters.costs_of_letters import GroupCosts
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Block
from analysis.report.chapters import letters_beside, letters_measured
from analysis.report.chapters.letters_beside import costs_beside
from tests.analysis.letter_study import TIME, study_rows, write_handover
from tests.analysis.word_study import WORDS, shown_words

BITS = {"intact": 50.0, "initial": 59.0, "internal": 54.0, "final": 56.0}


def blocks_of(folder: Path, monkeypatch: pytest.MonkeyPatch, **readers: object) -> list[Block]:
    """Write a study whose model tells surprisal of known size, and return what is said of it."""
    for module in (letters_beside, letters_measured):
        monkeypatch.setattr(module, "RESAMPLES", 200)
    rows = study_rows(items=12, **readers)  # type: ignore[arg-type]
    tells = rows["reader"] == "restorer"
    rows["surprisal"] = rows["position"].map(BITS).where(tells).astype(float)
    handed = write_handover(folder, rows)
    items = pd.read_parquet(handed / "items.parquet")
    items["shown"] = [json.dumps({"sentence": " ".join(shown_words(level))}) for level in items["position"]]
    items["intact"] = json.dumps({"sentence": " ".join(WORDS)})
    items["changes"], items["provenance"] = "[]", json.dumps({"operation": "imported"})
    items.to_parquet(handed / "items.parquet")
    tables = load(handed)
    return costs_beside(tables, [], kinds_of(tables.trials))


def test_costs_that_were_put_in_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of(tmp_path / "s", monkeypatch, human=24, models=("restorer", "gpt"))
    table = next(one for one in blocks if isinstance(one, ApaTable))
    heads = [row[0] for row in table.rows if isinstance(row, Head)]
    assert heads == ["restorer", "gpt"]
    of_restorer, of_gpt = table.rows[1:4], table.rows[5:8]
    for row, place in zip(of_restorer, ("initial", "internal", "final"), strict=True):
        assert row[0] == f"Two letters transposed, {place}"
        low, high = row[2].values[1:]  # type: ignore[attr-defined]
        assert low - 5 < 100 * (2.718281828 ** TIME[place] - 1) < high + 5
        assert row[4].startswith(f"{BITS[place] - 50:.2f} ")
    assert [row[4] for row in of_gpt] == ["–"] * 3
    assert [row[2] for row in of_gpt] == [row[2] for row in of_restorer]
    said = " ".join(str(one) for one in blocks)
    orders = re.findall(
        r"surprisal of (?:<[^>]+>|the model |model )*(\w+)[^:]*: ([^;.]+)", html.unescape(said)
    )
    assert orders == [("restorer", "initial > final > internal")]
    assert "Some models tell no surprisal" in table.note
    drawing = next(one for one in blocks if isinstance(one, Drawing))
    assert "tells no surprisal" in drawing.svg or len(drawing.figure.axes) == 4
    assert "9.00 bits" in drawing.alternative


@pytest.mark.parametrize(
    "readers", [{"human": 6}, {"models": ("restorer",)}, {"human": 6, "models": ("gpt",)}]
)
def test_without_times_or_surprisal_nothing_is_put_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, readers: dict[str, object]
) -> None:
    assert blocks_of(tmp_path / "s", monkeypatch, **readers) == []


def test_people_come_before_simulated_readers_and_baselines_are_no_models() -> None:
    def costs(group: str, kind: str, value: float) -> GroupCosts:
        draws = np.full((50, 1), value)
        profile = Profile("intact", ("transposition / initial",), np.array([value]), draws, 5, 9, "items")
        return GroupCosts(group, kind, profile, {"transposition / initial": 9})

    times = [costs("simulated", "simulated", 0.3), costs("human", "human", 0.1)]
    right = [costs("human", "human", 0.02), costs("net", "model", 0.2), costs("guesser", "baseline", 0.0)]
    (pair,) = beside(times, [costs("net", "model", 7.0)], right, ("transposition",), ("initial", "outer"))
    assert (pair.people, pair.model) == ("human", "net")
    (row,) = pair.rows
    assert row.people["time"].value == 0.1 and row.model["bits"] == Cost(7.0, 7.0, 7.0, 9)


def test_five_models_take_two_figures_with_common_axes() -> None:
    def pair(name: str, bits: float) -> Pair:
        people = {"time": Cost(0.1, 0.05, 0.15, 20)}
        rows = tuple(
            Beside("substitution", place, people, {"bits": Cost(bits, bits - 1, bits + 1, 20)})
            for place in ("initial", "internal", "final", "outer")
        )
        return Pair("human", "human", name, rows)

    first, second = letter_beside_figures("beside", [pair(f"m{n}", 3.0 + n) for n in range(5)], "T", "N")
    assert (first.name, second.name) == ("beside", "beside_2")
    assert len(first.figure.axes) == 8 and len(second.figure.axes) == 2
    assert first.figure.axes[0].get_xlim() == second.figure.axes[0].get_xlim()
    assert second.figure.axes[1].texts[0].get_text() == "answers no questions"
