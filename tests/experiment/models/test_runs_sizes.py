"""What a study and its runs say of a model's size and family reaches analysis."""

from __future__ import annotations

import json

import pytest

from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.store import open_store
from stimuli.errors import UserError
from tests.experiment.models.running import invoke, study, with_models

__all__ = ["study"]


def test_family_size_and_counted_parameters_are_handed_over(study, tmp_path, plain_model):
    with_models(
        study,
        f'small: {{use: "hf:{plain_model}", family: GPT, determinism: fast}}\n'
        '    big: {use: "baseline:random", family: GPT, parameters: 1.4B}',
    )
    done = invoke("run", study, "--max-trials", "4")
    assert done.exit_code == 0, done.output
    with open_store(study) as store:
        folder = hand_over(load_study(study), store, tmp_path / "handover")
    told = json.loads((folder / "dictionary.json").read_text("utf-8"))["readers"]
    assert told["small"]["settings"]["family"] == "GPT"
    assert isinstance(told["small"]["parameters"], int) and told["small"]["parameters"] > 1000
    assert told["big"]["settings"]["parameters"] == "1.4B" and "parameters" not in told["big"]


@pytest.mark.parametrize("size", ["big", "7 billion", "-3", "0"])
def test_a_size_that_is_no_number_of_parameters_is_refused(study, size):
    with_models(
        study,
        f'm: {{use: "baseline:random", parameters: "{size}"}}'
        if size != "0"
        else 'm: {use: "baseline:random", parameters: 0}',
    )
    with pytest.raises(UserError, match="parameters"):
        load_study(study)
