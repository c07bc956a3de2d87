"""The template mind-scramble: eight studies, published and corrected, from the user's own copy of the data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiment.checking import load_study
from experiment.cli import main
from experiment.cli.new import copy_template
from experiment.study import Study
from experiment.templates.parts import parts_of

TEMPLATE = "mind-scramble"
PARTS = sorted(parts_of(TEMPLATE))
LEVELS = {
    "BASE": 1, "REO": 8, "DEL": 6, "INS": 6, "WORD": 3, "SENT": 3,
}  # fmt: skip


def made(folder: Path, part: str, data: Path, *, corrected: bool, items: int = 2, **edits: str) -> Path:
    study = folder / f"{part}-{'mended' if corrected else 'released'}"
    copy_template(TEMPLATE, study, part=part, data=data, corrected=corrected)
    file = study / "study.yaml"
    text = re.sub(r"(?m)^  items: \d+", f"  items: {items}", file.read_text("utf-8"))
    for old, new in edits.items():
        text = text.replace(old, new)
    file.write_text(text, "utf-8")
    return study


def wrods(*words: object) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.shared
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("corrected", [False, True])
def test_every_part_is_a_valid_study_with_all_typofuncs(
    tmp_path: Path, shared: Path, part: str, corrected: bool
) -> None:
    study: Study = load_study(made(tmp_path, part, shared / "data", corrected=corrected))
    (levels,) = study.factors.values()
    counted = {kind: sum(level.split("-")[0].split("_")[0] == kind for level in levels) for kind in LEVELS}
    assert counted == LEVELS | ({"REO": 9} if corrected else {})
    assert next(iter(levels)) == "BASE"
    assert set(study.published) == (set() if corrected else {"items", "prompts", "scoring"})


@pytest.mark.shared
def test_checking_says_the_study_back_with_trials_tokens_and_minutes(tmp_path: Path, shared: Path) -> None:
    said = wrods("check", "--explain", made(tmp_path, "csqa", shared / "data", corrected=False))
    assert re.search(r"81 sessions, 162 trials, roughly [\d,]+ prompt\s+tokens", said)
    assert "SENT-REO-REV" in said
    assert re.search(r"roughly\s+(a|[\d.]+)\s+minutes?|minute", said)
    assert "TypoBench released no sample of csqa" in said


@pytest.mark.shared
def test_published_items_bear_the_faults_of_the_code_and_corrected_ones_do_not(
    tmp_path: Path, shared: Path
) -> None:
    shown = {}
    for corrected in (False, True):
        folder = made(tmp_path, "gsm8k", shared / "data", corrected=corrected, items=4)
        wrods("build", folder)
        study = load_study(folder)
        shown[corrected] = {
            level: [one.shown["question"] for one in study.items if one.condition["scramble"] == level]
            for level in ("BASE", "DEL-BEG", "REO-REV")
        }

    def digits(texts: list[str]) -> list[str]:
        return [number for text in texts for number in re.findall(r"\d+", text)]

    assert all("_" in text for text in shown[False]["DEL-BEG"])
    assert not any("_" in text for text in shown[True]["DEL-BEG"])
    assert digits(shown[True]["REO-REV"]) == digits(shown[True]["BASE"])
    assert digits(shown[False]["REO-REV"]) == [one[::-1] for one in digits(shown[False]["BASE"])]
