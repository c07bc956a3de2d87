"""H-TEST in small: a model that knows nothing learns where a capital stands, and sorts items that it was not trained on."""

from __future__ import annotations

import pytest

from tests.experiment.tuning.byte_model import byte_model
from tests.experiment.tuning.conftest import wrods
from tests.experiment.tuning.test_training import shares_right

STUDY = """\
wrods: 1
study: capitals
title: Where is the capital?
seed: 7
models:
  who:
    base: {use: "hf:tiny"}
    whole: {use: "tuned:whole"}
    started: {use: "tuned:started"}
    beside: {use: "tuned:beside"}
tuning:
  whole: {model: base, on: htest, task: uppercase, method: full, epochs: 4, learning_rate: 0.01, validation: 0.1}
  started: {model: base, on: htest, task: uppercase, method: full, epochs: 1, learning_rate: 0.01}
  beside: {model: started, on: htest, task: uppercase, epochs: 4, learning_rate: 0.01, lora: {dropout: 0}}
materials: {htest: {rules: [uppercase], exemplars: 0, items: 80}}
procedure:
  - block:
      trial:
        - choose: {show: text, ask: "?", keys: {A: f, B: j}}
"""


@pytest.mark.full
def test_a_task_of_h_test_is_learnt_whole_and_beside_the_weights(tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY, "utf-8")
    byte_model(tmp_path / "tiny")
    for command in (("build",), ("tune",), ("run",)):
        done = wrods(*command, tmp_path, *(("--not-registered",) if command == ("run",) else ()))
        assert done.exit_code == 0, done.output
    right = shares_right(tmp_path)
    print(right)
    assert abs(right["base"] - 0.5) < 0.15 and right["started"] < 0.75, right
    assert right["whole"] > 0.85, right
    assert right["beside"] > 0.85, right
