"""Template parts with trainings: every model that is to read the study is trained, and nothing is trained in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.templates.parts import parts_of
from experiment.tuning import trainings
from experiment.tuning.training_sets import PUBLISHED_RULES
from stimuli.htest.released import RELEASED_TASKS


def made(folder: Path, template: str, part: str, *, corrected: bool):
    data = folder / "data"
    (data / parts_of(template)[part].data).mkdir(parents=True)
    copy_template(template, folder / "study", part=part, data=data, corrected=corrected)
    return load_study(folder / "study")


@pytest.mark.parametrize("corrected", [False, True])
def test_h_test_trains_a_model_a_task_from_the_released_lines(tmp_path, corrected):
    study = made(tmp_path, "h-test", "training", corrected=corrected)
    found = trainings(study)
    assert {one.task for one in found.values()} == set(RELEASED_TASKS) == set(study.htest_tasks)
    assert {one.on for one in found.values()} == {"released"}
    assert {one.asked for one in found.values()} == {"study" if corrected else "bare"}
    readers = {one.get("trained"): one.get("base") for one in study.models.values()}
    assert readers == {None: None, **dict.fromkeys(found, "base")}


@pytest.mark.parametrize("corrected", [False, True])
def test_scrambled_bench_trains_under_the_three_rules_of_the_paper(tmp_path, corrected):
    study = made(tmp_path, "scrambled-bench", "scrrec-training", corrected=corrected)
    found = trainings(study)
    assert {one.rule for one in found.values()} == set(PUBLISHED_RULES)
    assert len({(one.on, one.seed, one.texts, one.epochs, one.learning_rate) for one in found.values()}) == 1
    assert {one.get("trained") for one in study.models.values()} == {None, *found}
