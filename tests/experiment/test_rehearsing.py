"""Every study can be rehearsed with simulated readers before anybody takes part, its rating included."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from experiment.cli.new import copy_template, templates
from experiment.rating import answers_of, rating_for
from experiment.simulated import read_truth
from experiment.store import open_store
from experiment.store.tables import sessions
from experiment.templates import parts_of
from tests.experiment.commands import let_take_part
from tests.experiment.people.dashboard.test_dashboard_rating import CHANGES, RUBRIC, stories

PARTS = [(name, part) for name in templates() for part in (parts_of(name) or [None])]


@pytest.mark.parametrize(("template", "part"), PARTS)
def test_every_template_brings_effects_for_its_simulated_readers(tmp_path, template, part):
    data = tmp_path / "data"
    if part is not None and parts_of(template)[part].data:
        (data / parts_of(template)[part].data).mkdir(parents=True)
    copy_template(template, tmp_path / "study", part=part, data=data if data.exists() else None)
    read_truth(tmp_path / "study" / "simulated.json")


def test_answers_of_simulated_readers_are_rated_until_somebody_else_has_answered(make_study, tmp_path):
    (tmp_path / "rated").mkdir()
    (tmp_path / "rated" / "rubric.md").write_text(RUBRIC, "utf-8")
    study = make_study(*CHANGES, items=stories(), name="rated")
    (study.folder / "simulated.json").write_text(TRUTH, "utf-8")
    rating: Any = rating_for(study)
    with open_store(study.folder) as store:
        let_take_part(study, store, readers=2)
        with store.read() as connection:
            rehearsed = answers_of(connection, study.id, rating)
        assert len(rehearsed) == 8 and all(one.is_rehearsed for one in rehearsed)
        store.write(
            lambda connection: connection.execute(
                update(sessions).where(sessions.c.reader == "S001").values(reader_kind="human")
            )
        ).result()
        with store.read() as connection:
            real = answers_of(connection, study.id, rating)
        assert len(real) == 4 and not any(one.is_rehearsed for one in real)


TRUTH = (
    '{"accuracy": {"intercept": 2.0, "effects": {}, "participant_sd": 0.5, "item_sd": 0.3}, '
    '"time": {"intercept": 7.0, "effects": {}, "participant_sd": 0.2, "item_sd": 0.1, "residual_sd": 0.2}}'
)
