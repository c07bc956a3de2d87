"""Tables of fixations become times on words and named regions, which a plan can compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.plan_runner import carry_out_all
from analysis.planned import plans
from analysis.tables import Tables, load
from experiment.building import build_study
from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.models.imports.fixations import Fixation, eye_measures
from experiment.models.imports.responses import ResponseFile, read_mapping, read_responses
from experiment.models.imports.writing import write_import
from experiment.store import open_store
from stimuli.errors import UserError

STUDY = """\
wrods: 1
study: eyes
title: Eyes
seed: 5
materials:
  sentences: sentences.csv
  regions: {{critical: marked, spill: 1 after critical}}
design:
  factors: {{comma: [absent, present]}}
procedure:
  - block:
      trial:
{steps}
analysis:
  planned:
    gaze:
      measure: gaze
      region: [critical, spill]
      compare: comma
      between: [human]
      contrasts: [absent - present]
      covariates: [letters]
"""
READ = "        - read: {show: sentence}"
ITEMS, WORDS = 12, 11
EYELINK = """\
reader: RECORDING_SESSION_LABEL
item: item
condition: {comma: version}
fixation: {word: CURRENT_FIX_INTEREST_AREA_ID, start: CURRENT_FIX_START, duration: CURRENT_FIX_DURATION}
"""
GAZEPOINT = """\
reader: USER
item: item
condition: {comma: version}
fixation: {word: AOI, first: 0, start: FPOGS, duration: FPOGD, unit: s}
"""


@pytest.mark.parametrize(
    ("words", "region", "expected"),
    [
        # one fixation each, from left to right
        ([0, 1, 2, 3], (1, 3), {"first_fixation": 101, "gaze": 203, "go_past": 203, "total_time": 203}),
        # back from the region, and forth again before going on
        ([0, 2, 2, 0, 2, 3], (2, 3), {"first_fixation": 101, "gaze": 203, "go_past": 410, "total_time": 307}),
        # skipped at first, read later
        ([0, 3, 1, 4], (1, 2), {"first_fixation": None, "gaze": None, "go_past": None, "total_time": 102}),
        # a fixation outside the text ends the first pass, and is on no word
        ([1, None, 1, 2], (1, 2), {"first_fixation": 100, "gaze": 100, "go_past": 202, "total_time": 202}),
        ([0, 3], (1, 2), dict.fromkeys(("first_fixation", "gaze", "go_past", "total_time"))),
    ],
)
def test_measures_of_eye_movements_are_those_of_their_definitions(words, region, expected):
    fixations = [Fixation(word, 100.0 + place) for place, word in enumerate(words)]
    assert eye_measures(fixations, *region) == expected


def study_in(folder: Path, steps: str = READ) -> Path:
    rows = [
        f'{n},"While the {noun} ran{{|,}} an old [critical: woman smiled] at us all.",So?,Yes'
        for n, noun in enumerate(["boy", "girl", "cat", "dog"] * 3, 1)
    ]
    folder.mkdir(exist_ok=True)
    (folder / "sentences.csv").write_text("item,sentence,question,answer\n" + "\n".join(rows), "utf-8")
    (folder / "study.yaml").write_text(STUDY.format(steps=steps), "utf-8")
    build_study(load_study(folder))
    return folder


def table(tracker: str, effect: float = 0.3) -> str:
    """Fixations of twelve readers, each word once, the critical words longer without a comma."""
    draw = np.random.default_rng(7)
    heads = {
        "eyelink": "RECORDING_SESSION_LABEL,item,version,CURRENT_FIX_INTEREST_AREA_ID,CURRENT_FIX_START,CURRENT_FIX_DURATION",
        "gazepoint": "USER,item,version,AOI,FPOGS,FPOGD",
    }
    lines = [heads[tracker]]
    for reader in range(12):
        for item in range(1, ITEMS + 1):
            version = ("absent", "present")[(reader + item) % 2]
            start = 100.0
            for word in range(WORDS):
                longer = effect if word in (6, 7) and version == "absent" else 0.0
                duration = 230.0 * np.exp(longer + draw.normal(0, 0.15))
                values = (start, duration) if tracker == "eyelink" else (start / 1000, duration / 1000)
                area = word + 1 if tracker == "eyelink" else word
                lines.append(f"R{reader},{item},{version},{area},{values[0]:.4f},{values[1]:.4f}")
                start += duration + 20
            lines.append(f"R{reader},{item},{version},.,{start},{100 if tracker == 'eyelink' else 0.1}")
    return "\n".join(lines)


def imported(folder: Path, mapping: str, content: str) -> Tables:
    (folder / "map.yaml").write_text(mapping, "utf-8")
    (folder / "fixations.csv").write_text(content, "utf-8")
    study, store = load_study(folder), open_store(folder)
    try:
        given = read_responses(
            study, store, [ResponseFile(folder / "fixations.csv")], read_mapping(folder / "map.yaml")
        )
        write_import(given, store, actor="test")
        (again,) = write_import(given, store, actor="test")
        assert again.trials == 0
        return load(hand_over(load_study(folder), store, folder / "handover"))
    finally:
        store.close()


@pytest.mark.parametrize(("tracker", "mapping"), [("eyelink", EYELINK), ("gazepoint", GAZEPOINT)])
def test_reports_of_eye_trackers_give_words_regions_and_planned_contrasts(tmp_path, tracker, mapping):
    tables = imported(study_in(tmp_path / "study"), mapping, table(tracker))
    regions = tables.regions
    of_trial: Any = regions[
        (regions["session_id"] == regions["session_id"].iloc[0]) & (regions["trial_index"] == 0)
    ]
    assert len(of_trial) == WORDS + 1, "each word, and the region of two words"
    critical = of_trial[of_trial["region_names"] == "critical"].iloc[0]
    words = of_trial[of_trial["shown"].isin(["woman", "smiled"])]
    assert critical["shown"] == "woman smiled"
    assert critical["gaze"] == pytest.approx(words["gaze"].sum())
    assert critical["first_fixation"] == pytest.approx(words["first_fixation"].iloc[0])
    first, second = carry_out_all(plans(tables), tables)
    assert [len(analysis.rows) for analysis in (first, second)] == [144, 144]
    assert first.contrasts[0].low < 0.3 < first.contrasts[0].high
    assert first.contrasts[0].family == 2
    assert abs(second.contrasts[0].estimate) < 0.1


@pytest.mark.parametrize(
    ("steps", "mapping", "change", "named"),
    [
        (READ, "reader: RECORDING_SESSION_LABEL\nitem: item\n", ("", ""), "fixation"),
        (READ, EYELINK, ("R0,1,present,3,", "R0,1,present,30,"), "word 30"),
        (READ, EYELINK, ("CURRENT_FIX_DURATION\n", "CURRENT_FIX_DURATION\nR0,1,present,3,5,0\n"), "line 2"),
        (
            READ + '\n        - choose: {show: question, keys: {"Yes": j, "No": f}}',
            EYELINK,
            ("", ""),
            "response",
        ),
    ],
)
def test_fixations_that_cannot_be_meant_are_refused(tmp_path, steps, mapping, change, named):
    content = table("eyelink").replace(*change) if change[0] else table("eyelink")
    with pytest.raises(UserError) as caught:
        imported(study_in(tmp_path / "study", steps), mapping, content)
    assert named in str(caught.value)


def test_fixations_and_the_answers_of_their_trial_are_in_the_same_table(tmp_path):
    steps = """\
        - read: {show: sentence}
        - choose: {show: question, keys: {"Yes": j, "No": f}}
        - rate: {name: sure, from: 1, to: 7}"""
    head, *rows = table("eyelink").splitlines()
    content = "\n".join([f"{head},key,confidence", *(f"{row},Yes,5" for row in rows)])
    tables = imported(
        study_in(tmp_path / "study", steps),
        f"{EYELINK}response: key\nfurther: {{sure: confidence}}\n",
        content,
    )
    answers = tables.trials.groupby("step_name", dropna=False)["response"].agg(["first", "nunique", "size"])
    assert answers.values.tolist() == [["5", 1, 144], ["Yes", 1, 144]]
    assert set(tables.regions["trial_index"]) == set(range(0, 2 * ITEMS, 2))
