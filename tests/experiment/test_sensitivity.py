"""``wrods check`` gives what the planned sample can detect, and asks for an equivalence bound."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiment.cli import main

PLANNED = "comprehension: {measure: correct, compare: spelling, between: [human]}"


def checked(folder: Path, planned: str, *options: str) -> str:
    """Return what check says of a study with this planned analysis of people, or of people and a baseline."""
    runner = CliRunner()
    if not folder.exists():
        assert runner.invoke(main, ["new", str(folder), "--from", "your-own"]).exit_code == 0
        text = (folder / "study.yaml").read_text("utf-8")
        assert PLANNED in text
        (folder / "study.yaml").write_text(text.replace(PLANNED, planned), "utf-8")
    done = runner.invoke(main, ["check", str(folder), *options])
    assert done.exit_code == 0, done.output
    return " ".join(done.output.split()) if not options else done.output


def numbers(folder: Path, planned: str) -> dict[str, Any]:
    (found,) = [
        one
        for one in json.loads(checked(folder, planned, "--json"))["sensitivity"]
        if one["measure"] == "correct"
    ]
    return dict(found)


@pytest.fixture(scope="module")
def unbounded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sensitivity") / "unbounded"


BETWEEN = PLANNED.replace("[human]", "[human, guesser]")


def test_without_a_bound_check_asks_for_one_and_gives_its_reason(unbounded):
    told = checked(unbounded, BETWEEN)
    assert "No equivalence bound is planned, so the report cannot conclude that readers are similar" in told
    assert "`equivalence: 10 points` (one answer in ten)" in told
    assert "of such studies conclude equivalence within 10 points" in told
    found = numbers(unbounded, BETWEEN)
    assert (found["equivalence_bound"], found["suggested_bound"], found["tests"]) == (None, "10 points", 3)
    middle, near_ceiling = found["assumed"]
    assert middle["detectable"].keys() == {"human", "guesser", "human − guesser"}
    for readers, value in middle["detectable"].items():
        assert value > middle["half_width"][readers] > 0
        assert near_ceiling["detectable"][readers] < value
    assert middle["equivalence"]["probability"] <= near_ceiling["equivalence"]["probability"]


def test_a_planned_bound_is_judged_and_none_is_suggested(tmp_path):
    folder = tmp_path / "study"
    planned = BETWEEN.replace("]}", "], equivalence: 45 points}")
    told = checked(folder, planned)
    assert "conclude equivalence within 45 points" in told
    assert "No equivalence bound" not in told
    found = numbers(folder, planned)
    assert (found["equivalence_bound"], found["suggested_bound"]) == ("45 points", None)
