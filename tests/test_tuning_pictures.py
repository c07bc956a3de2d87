"""The studies behind the pictures of docs/tuning.md stay such as wrods reads, and every picture has its study."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from experiment.checking import load_study
from experiment.papers.inside.tuning import trainings
from tests.write_tuning_pictures import PICTURES, ROOT, STUDIES


@pytest.mark.parametrize(("name", "number"), [("trained_rules", 10), ("trained_words", 3)])
def test_every_training_of_a_study_is_read_by_a_model(name: str, number: int, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "sample" / name, tmp_path / name)
    (tmp_path / name / "words.csv").write_text("word\n" + "\n".join(["garden"] * 40) + "\n", "utf-8")
    study = load_study(tmp_path / name)
    assert len(trainings(study)) == number
    assert {one.get("trained") for one in study.models.values()} == {None, *trainings(study)}


def test_the_pictures_of_the_page_are_those_that_are_made() -> None:
    page = (ROOT / "docs" / "tuning.md").read_text("utf-8")
    assert re.findall(r"\(images/([\w-]+)\.png\)", page) == list(PICTURES)
    assert {of for of, _ in PICTURES.values()} == set(STUDIES)
