"""``wrods power``: from a study's folder to needed numbers, and what is told where something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from tests.analysis.letter_study import PLANNED, study_rows, write_handover
from tests.experiment.commands import wrods

MEANS = ["--mean", "human:intact=93", "--mean", "human:swapped=80"]
SMALL = ["--participants", "6,12", "--items", "12", "--studies", "40", "--processes", "1"]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = tmp_path / "study"
    assert wrods("new", folder, "--from", "your-own").exit_code == 0
    return folder


def test_a_study_without_items_or_answers_gets_its_power(study):
    done = wrods("power", study, "--planned", "comprehension", *SMALL, *MEANS)
    assert done.exit_code == 0, done.output
    assert "80 simulated studies" in done.output
    assert "Needed for a power of 0.8" in done.output
    table = pd.read_csv(study / "power" / "power_comprehension.csv")
    assert table["participants"].tolist() == [6, 12]
    assert (table["studies"] == 40).all()
    for ending in (".json", ".svg", ".png", "_needed.csv"):
        assert (study / "power" / f"power_comprehension{ending}").stat().st_size > 0


def test_effects_come_from_a_file_by_hand_or_a_table(study, tmp_path):
    hand = tmp_path / "effects.yaml"
    hand.write_text("source: a guess\nmeans: {human: {intact: 93, swapped: 80}}\n", "utf-8")
    table = tmp_path / "effects.csv"
    table.write_text(
        "quantity,of,condition,value,unit,source\n"
        "mean,human,intact,93,percent,A (2001)\nmean,human,swapped,80,percent,B (2002)\n",
        "utf-8",
    )
    words = ["power", study, "--planned", "comprehension", *SMALL, "--json"]
    by_hand, by_table = wrods(*words, "--effects", hand), wrods(*words, "--literature", table)
    (one,), (other,) = json.loads(by_hand.stdout), json.loads(by_table.stdout)
    assert one["power"] == other["power"]
    assert "a guess" in one["source"]
    assert "A (2001); B (2002)" in other["source"]


def test_a_handover_is_study_and_pilot_in_one(tmp_path):
    rows = study_rows(simulated=12, items=16, models=("restorer",))
    folder = write_handover(tmp_path / "handover", rows, planned=PLANNED)
    words = ["--participants", "8", "--items", "12", "--fits", "2", "--processes", "1", "--json"]
    done = wrods("power", folder, "--pilot", folder, "--replicates", "2", *words)
    assert done.exit_code == 0, done.output
    accuracy, times = json.loads(done.stdout)
    assert {one["readers"] for one in accuracy["power"]} == {"human", "restorer", "human − restorer"}
    assert {one["kind"] for one in times["power"]} == {"difference"}
    assert any("Simulated readers stand in" in one for one in accuracy["remarks"])
    assert any("a model at temperature 0 repeats itself" in one for one in accuracy["remarks"])


def test_a_study_with_answers_is_a_pilot_without_a_report(tmp_path):
    folder = tmp_path / "study"
    for words in (
        ("new", folder, "--from", "letter-position"),
        ("build", folder),
        ("simulate", folder, "--readers", 8),
    ):
        assert wrods(*words).exit_code == 0
    words = ["--planned", "reading", "--participants", "6", "--fits", "2", "--processes", "1", "--json"]
    done = wrods("power", folder, "--pilot", folder, *words)
    assert done.exit_code == 0, done.output
    (told,) = json.loads(done.stdout)
    assert told["source"] == f"pilot {folder}"
    assert told["power"][0]["items"] > 1
    assert not (folder / "reports").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "nothing says how large the effects are"),
        (MEANS, "values belong to one planned analysis"),
        (["--planned", "comprehention", *MEANS], "Did you mean 'comprehension'"),
        (["--planned", "comprehension", *MEANS[:2]], "nothing says how human does in swapped"),
        (["--planned", "comprehension", "--mean", "human:swaped=80"], "Did you mean 'swapped'"),
        (["--planned", "comprehension", *MEANS, "--items", "few"], "no list of whole numbers"),
        (["--planned", "comprehension", *MEANS, "--items", "1"], "items: 1 is too few"),
        (["--planned", "comprehension", *MEANS, "--layout", "latin"], "layout 'latin' is not known"),
        (["--planned", "comprehension", *MEANS, "--fits", "0"], "studies is 0"),
        (["--planned", "comprehension", *MEANS, "--wanted", "80"], "between 0 and 1"),
        (["--planned", "comprehension", *MEANS, "--equivalence", "5 ms"], "not a bound of accuracy"),
        (["--planned", "comprehension", "--effects", "none.yaml"], "is no file"),
        (["--pilot", "a", "--fit", "b"], "effects come from one place; pilot and fit"),
        (["--pilot", "nowhere"], "is missing"),
    ],
)
def test_what_is_missing_or_wrong_ends_with_two(words, told, study):
    done = wrods(
        "power", study, "--participants", "6", "--items", "8", "--fits", "1", "--processes", "1", *words
    )
    assert done.exit_code == 2, done.output
    assert told in done.output
