"""Models shown pictures: who is compared with whom, and the table that sets text beside pictures, on trials whose shares are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis import Tables
from analysis.report.apa_tables import ApaTable, Head
from analysis.report.blocks import Chapter, Material
from experiment.papers.h_test.chapter import write, write_geometry
from experiment.papers.h_test.chapter.measures import (
    ALL,
    asked,
    family_pairs,
    picture_pairs,
    pictures_by_part,
    thinking_pairs,
)
from tests.analysis.test_h_test_geometry import questions
from tests.analysis.test_report_h_test import RIGHT, rows_of, study


def reader(use: str = "openai:m", **settings: Any) -> dict[str, Any]:
    return {"kind": "model", "use": use, "settings": {"use": use, **settings}}


TWINS = {
    "reads": reader(family="F", parameters="1B"),
    "looks": reader(family="F", parameters="1B", presentation="image"),
    "larger": reader("openai:n", family="F", parameters="7B"),
    "larger-looks": reader("openai:n", family="F", parameters="7B", presentation="image"),
    "thinks": reader(strategy="chain_of_thought"),
    "looks-thinks": reader(strategy="chain_of_thought", presentation="image"),
    "half": reader("openai:n", presentation="image", examples_presentation="text"),
}


def test_a_model_shown_pictures_is_never_compared_with_one_shown_text_but_with_itself() -> None:
    assert thinking_pairs(TWINS) == [("reads", "thinks"), ("looks", "looks-thinks")]
    assert family_pairs(TWINS) == [("F", "reads", "larger"), ("F, pictures", "looks", "larger-looks")]
    assert picture_pairs(TWINS) == [
        ("reads", "looks"),
        ("larger", "larger-looks"),
        ("thinks", "looks-thinks"),
        ("larger", "half"),
    ]
    alone = {name: TWINS[name] for name in ("reads", "looks-thinks", "half")}
    assert picture_pairs(alone) == thinking_pairs(alone) == []


def test_of_two_partners_the_one_with_the_same_settings_is_taken() -> None:
    readers = {
        "warm": reader(temperature=1.0),
        "cold": reader(temperature=0),
        "elsewhere": reader(base_url="http://lab"),
        "looks": reader(temperature=0, presentation="image"),
        "thinks": reader(temperature=1.0, strategy="chain_of_thought"),
    }
    assert picture_pairs(readers) == [("cold", "looks")] and thinking_pairs(readers) == [("warm", "thinks")]
    assert picture_pairs({**readers, "human": {"kind": "human"}}) == [("cold", "looks")]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """One model right in half of the lines as text; as pictures right in all of *uppercase*, alike in all others."""
    RIGHT.update(reads=0.5, looks=0.5)
    rows = rows_of("reads", "model") + rows_of("looks", "model")
    for row in rows:
        if row["reader"] == "looks" and row["task"] == "uppercase" and row["correct"] is not None:
            row["correct"] = True
    kept = [row for row in rows if not (row["reader"] == "looks" and row["examples"] == "k50")]
    return study(tmp_path_factory.mktemp("p"), kept, {name: TWINS[name] for name in ("reads", "looks")})


@pytest.fixture(scope="module")
def chapter(tables: Tables) -> Chapter:
    made = write(Material(tables))
    assert made is not None
    return made


def cells(table: ApaTable) -> dict[str, tuple[str, ...]]:
    return {row[0]: row[1:] for row in table.rows if not isinstance(row, Head)}


def test_text_and_pictures_are_paired_by_item_in_each_task(tables: Tables, chapter: Chapter) -> None:
    table = next(one for one in chapter.blocks if isinstance(one, ApaTable) and one.name == "h_test_pictures")
    assert table.rows[0] == ("reads (text), looks (pictures)",)
    told = cells(table)
    names = list(told)
    assert names[0] == "Uppercase" and names[10:] == [
        "All tasks",
        *(f"{making} items" for making in ("Released", "Fresh", "Matched")),
        *(f"k\u00a0=\u00a0{k}" for k in (4, 14, 28)),
    ]
    # 30 lines: 5 of 10 wrong as text, 6 of 10 where matched
    assert told["Uppercase"][:5] == ("30", "16", "46.7", "100.0", "53.3")
    assert told["Rhyme"][:7] == ("20", "0", "45.0", "45.0", "0.0", "–", "> .999")
    found = asked(tables)
    assert found is not None
    one, other = (found.trials[found.trials["reader_group"] == name] for name in ("reads", "looks"))
    parts = {(part.task, part.making, part.k): part.compared for part in pictures_by_part(one, other, 0.05)}
    at_four = parts[ALL, "", 4]
    assert at_four.changed == 16 and at_four.p < 0.001
    gains = np.repeat([1.0, 0.0], [16, at_four.items - 16])
    reach = stats.t.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    assert (at_four.low, at_four.high) == pytest.approx((gains.mean() - reach, gains.mean() + reach))


def test_letter_geometry_sets_questions_as_text_beside_pictures(tmp_path: Path) -> None:
    tables = questions(tmp_path / "g")
    tables.dictionary["readers"] = {"small": reader(), "large": reader(presentation="image")}
    made = write_geometry(Material(tables))
    assert made is not None
    table = next(
        one for one in made.blocks if isinstance(one, ApaTable) and one.name == "letter_geometry_pictures"
    )
    told = cells(table)
    # 10 of 40 right as text, 30 as pictures
    assert list(told) == ["Rotation", "Flip", "All questions"]
    assert told["All questions"][:5] == ("40", "20", "25.0", "75.0", "50.0")
    assert told["All questions"][6] == "< .001"
    assert table.note is not None and "the question is a picture in the participants' font" in table.note
    assert "making" not in table.note
    assert "Only the same questions are compared." in table.note and "examples" not in table.note
