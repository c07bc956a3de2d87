"""The chapter on cost: numbers in its text are those of its tables, what was put in comes out, weak studies break nothing."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from analysis import Tables, load
from analysis.costs.ratios import unit_costs
from analysis.costs.words import linking, reading_profile
from analysis.figures import Drawing
from analysis.readers import kinds_of
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Chapter, Material
from analysis.report.chapters import cost
from analysis.report.chapters.cost import By, distributions, side_by_side, write
from tests.analysis import word_study
from tests.analysis.cost_study import STEP, rows_of, study
from tests.analysis.letter_study import write_handover

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

LEVELS = ("as written", "mild", "strong")


@dataclass(frozen=True)
class Written:
    chapter: Chapter
    tables: Tables

    @property
    def words(self) -> str:
        text = " ".join(str(one) for one in self.chapter.blocks if not isinstance(one, ApaTable | Drawing))
        return " ".join(html.unescape(re.sub("<[^>]+>", "", text)).split())

    def table(self, name: str) -> ApaTable:
        return next(one for one in self.chapter.blocks if isinstance(one, ApaTable) and one.name == name)

    @property
    def drawings(self) -> dict[str, Drawing]:
        return {one.name: one for one in self.chapter.blocks if isinstance(one, Drawing)}


def written(tables: Tables) -> Written | None:
    chapter = write(Material(tables, (), kinds_of(tables.trials)))
    return None if chapter is None else Written(chapter, tables)


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = study(tmp_path_factory.mktemp("forms"), LEVELS, people=18, models=("small", "large"), items=18)
    found = written(load(folder))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Written:
    tables = load(word_study.study(tmp_path_factory.mktemp("words"), people=10, items=12, linked=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "linking", partial(linking, folds=4))
        found = written(tables)
    assert found is not None
    return found


def rows_under(table: ApaTable, head: str) -> Iterator[tuple[str, ...]]:
    """Yield the rows under the first head that begins so."""
    inside = False
    for row in table.rows:
        if isinstance(row, Head):
            inside = row[0].startswith(head)
        elif inside:
            yield row


def test_costs_put_in_are_those_of_the_table_and_the_text(forms: Written) -> None:
    table = forms.table("cost_ratios_form")
    people = list(rows_under(table, "People: reading time"))
    assert [row[0] for row in people] == list(LEVELS)
    assert people[0][3:] == ("–", "–", "–")
    for place, row in enumerate(people[1:], 1):
        (ratio,), (low, high) = row[3].values, row[4].values  # type: ignore[attr-defined]
        assert low < STEP * place < high
        assert ratio == pytest.approx(STEP * place, abs=0.08)
        assert f"{row[3]} {row[4]} ({row[5]}%) in the {row[0]}" in forms.words
    tokens = list(rows_under(table, "small: completion tokens"))
    assert float(tokens[2][3]) == pytest.approx(4 * STEP, abs=0.05)
    assert "reasoning tokens of model large" in forms.words.lower()


def test_words_and_bits_stand_in_tables_whose_numbers_the_text_has(words: Written) -> None:
    spill = words.table("spill_over_position")
    rows = [row for row in rows_under(spill, "People: the changed word") if row[1] == "ms"]
    assert [row[0] for row in rows] == ["initial", "internal", "final"]
    for row in rows:
        assert f"{row[0]} {row[3]} {row[7]} ms" in words.words
    linked = words.table("linking_position")
    full = next(row for row in rows_under(linked, "People by") if row[:3] == ("all", "yes", "yes"))
    _, low, high = full[3].values  # type: ignore[attr-defined]
    assert low < word_study.MS_PER_BIT < high
    assert str(full[3]) in words.words and f"gain {full[5]}" in words.words
    assert len(words.chapter.fits) >= 6
    assert {"reading_profile_position", "time_distributions_position"} <= set(words.drawings)


def test_the_reading_profile_counts_places_from_the_changed_word_and_averages_readers(words: Written) -> None:
    table = reading_profile(words.tables, "position").table
    own = table[table["measure"] == "surprisal"]
    keys = zip(own["position"], own["place"], strict=True)
    bits = dict(zip(keys, own["mean"].astype(float), strict=True))
    for level, more in word_study.BITS.items():
        rise = bits[level, 0] - bits["intact", 0]
        assert rise == pytest.approx(more)
        for place in (-2, -1, 1, 2):
            assert bits[level, place] == pytest.approx(bits["intact", place])
    assert sorted(table["place"].unique()) == [-2, -1, 0, 1, 2, 3]
    regions = words.tables.regions
    own = regions[(regions["reader_kind"] == "human") & (regions["position"] == "final")]
    on = own[own["region"].isin(word_study.TARGETS)].groupby("reader")["rt"].mean()
    row = table[(table["measure"] == "time") & (table["position"] == "final") & (table["place"] == 0)].iloc[0]
    assert row["mean"] == pytest.approx(on.mean())
    assert (row["units"], row["interval"]) == (10, "within participants")


def texts_of(figure: Figure) -> list[tuple[str, Any]]:
    """Return what is written and where; ticks outside an axis are kept by matplotlib and never drawn."""
    figure.canvas.draw()
    unseen = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not low <= tick.get_loc() <= high:
                    unseen |= {id(tick.label1), id(tick.label2)}
    return [
        (text.get_text(), text.get_window_extent())
        for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and id(text) not in unseen
    ]


@pytest.mark.parametrize(
    ("levels", "models"),
    [
        (("plain", "shuffled"), ()),
        (LEVELS, ("meta-llama/Llama-3.3-70B-Instruct-Turbo-Free", "m2")),
        pytest.param(
            tuple(f"condition number {n} of eight" for n in range(8)),
            tuple(f"maker/model-{n}-with-a-long-name" for n in range(8)),
            marks=pytest.mark.full,
        ),
    ],
)
def test_nothing_written_in_a_figure_overlaps(
    tmp_path: Path, levels: tuple[str, ...], models: tuple[str, ...]
) -> None:
    tables = load(study(tmp_path, levels, people=6, models=models, items=8))
    parts = [
        distributions(tables, "form"),
        side_by_side(By(Material(tables), tables, "form"), unit_costs(tables, "form", of_words=False)),
    ]
    drawings = [one for part in parts for one in part.blocks if isinstance(one, Drawing)]
    assert drawings
    for drawing in drawings:
        texts = [one for one in texts_of(drawing.figure) if one[1].width > 0]
        for place, (text, box) in enumerate(texts):
            for other, second in texts[place + 1 :]:
                overlap = box.padded(-1).overlaps(second.padded(-1))
                assert not overlap or text == other, f"{drawing.name}: {text!r} over {other!r}"


def changed(rows: pd.DataFrame, folder: Path, **dictionary: Any) -> Tables:
    rows = rows.assign(position=rows["form"])
    factors = {"form": {"levels": list(LEVELS), "reference": LEVELS[0]}}
    return load(
        write_handover(
            folder, rows.reset_index(drop=True), **{"factors": factors, "study": "forms"} | dictionary
        )
    )


def test_what_costs_nothing_anywhere_is_named_and_in_no_table(tmp_path: Path) -> None:
    rows = rows_of(LEVELS, people=0, models=("m",), items=9).assign(
        cost_usd=0.0, completion_tokens=0.0, surprisal=None
    )
    found = written(changed(rows, tmp_path))
    assert found is not None
    assert "Zero in every condition: completion tokens of m and cost of calls of m" in found.words
    missing = found.words.split("Not recorded for any model: ")[1].split(".")[0]
    assert (
        "reasoning tokens" in missing
        and "completion tokens" not in missing
        and "cost of calls" not in missing
    )
    heads = [row[0] for row in found.table("cost_ratios_form").rows if isinstance(row, Head)]
    assert heads and not any("m: completion tokens" in one or "cost of calls" in one for one in heads)
    assert (
        "most costly" not in found.words and "no condition cost at least half a percent more" in found.words
    )


def test_a_study_without_times_tokens_and_bits_has_no_chapter(tmp_path: Path) -> None:
    rows = rows_of(LEVELS, people=2, models=("m",), items=6, with_tokens=False).assign(reading_time=None)
    assert written(changed(rows, tmp_path / "bare")) is None
    pilots = rows_of(LEVELS, people=2, items=6).assign(is_pilot=True)
    assert written(changed(pilots, tmp_path / "pilots")) is None
    assert written(changed(rows.iloc[:0], tmp_path / "empty")) is None


def test_two_factors_have_a_part_each(tmp_path: Path) -> None:
    rows = rows_of(LEVELS, people=6, items=9)
    rows["size"] = np.where(rows["item_id"].str[-1].astype(int) % 2 == 0, "short", "long")
    factors = {"form": {"levels": list(LEVELS)}, "size": {"levels": ["short", "long"]}}
    found = written(changed(rows, tmp_path, factors=factors))
    assert found is not None
    assert {"cost_ratios_form", "cost_ratios_size"} <= {
        b.name for b in found.chapter.blocks if isinstance(b, ApaTable)
    }
    assert "<h3>Costs side by side: size</h3>" in [str(one) for one in found.chapter.blocks]


def test_ways_of_asking_by_which_sessions_differ_have_parts(tmp_path: Path) -> None:
    ways = 2
    rows = rows_of(LEVELS, people=3 * ways, items=9)
    names = [f"w{number}" for number in range(ways)]
    places = {reader: number % ways for number, reader in enumerate(sorted(rows["reader"].unique()))}
    rows["way"] = rows["reader"].map(lambda reader: names[places[reader]])
    factors = {"form": {"levels": list(LEVELS)}, "way": {"levels": names}}
    found = written(changed(rows, tmp_path, factors=factors))
    assert found is not None
    tables = {b.name: b for b in found.chapter.blocks if isinstance(b, ApaTable)}
    for name in names:
        own = tables[f"cost_ratios_form_way_{name}"]
        assert f"way {name}" in own.title
    assert "cost_ratios_form" not in tables
