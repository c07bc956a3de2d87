"""Before the first session that counts, a study with a plan says where it is registered, or that it is not."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli import main
from experiment.cli.registering import ask_registration
from experiment.exporting.export import hand_over
from experiment.integrity.freezing import Registration, registration_of
from experiment.store import open_store
from experiment.study import Study
from stimuli.errors import UserError

PLAN = """\
analysis:
  planned:
    accuracy: {measure: correct, compare: position, between: [human], stop: at 30 participants}
"""
URL = "https://osf.io/abcde"


BUILT: dict[str, bytes] = {}
"""What the first build of this study wrote, by file: it is the same in every test."""


@pytest.fixture
def study(make_study: Callable[..., Study]) -> Study:
    made = make_study()
    file = made.folder / "study.yaml"
    file.write_text(file.read_text("utf-8") + PLAN, "utf-8")
    if not BUILT:
        build_study(load_study(made.folder))
        BUILT.update({one.name: one.read_bytes() for one in made.folder.glob("items.*")})
    for name, content in BUILT.items():
        (made.folder / name).write_bytes(content)
    return load_study(made.folder)


def wrods(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(one) for one in arguments])


def stored(study: Study) -> Registration | None:
    with open_store(study.folder) as store, store.read() as connection:
        return registration_of(connection, study.id)


def answer(study: Study, url: str | None = None, *, is_not_registered: bool = False) -> None:
    with open_store(study.folder) as store:
        ask_registration(study, store, url, is_not_registered=is_not_registered)


def test_sessions_of_a_planned_study_do_not_begin_before_it_is_said_where_it_is_registered(study):
    with pytest.raises(UserError, match="not known where the plan is registered") as refused:
        answer(study)
    assert "--not-registered" in str(refused.value.mend) and stored(study) is None
    answer(study, URL)
    answer(study)  # nobody is asked twice
    found = stored(study)
    assert found is not None and found.url == URL and found.freeze_hash is None


def test_not_registered_is_an_answer_of_its_own_and_may_be_replaced(study):
    answer(study, is_not_registered=True)
    found = stored(study)
    assert found is not None and found.url is None
    answer(study, URL)
    later = stored(study)
    assert later is not None and later.url == URL


@pytest.mark.parametrize("url", ["osf.io/abcde", "https://osf", "https://osf.io/a b", "ftp://osf.io/x"])
def test_what_is_no_address_is_refused(study, url):
    with pytest.raises(UserError, match="full address of a page"):
        answer(study, url)
    assert stored(study) is None


def test_serve_asks_unless_every_session_is_a_pilot(study):
    refused = wrods("serve", study.folder, "--no-browser", "--port", 0)
    assert refused.exit_code == 2 and "--registered URL" in refused.output
    both = wrods("serve", study.folder, "--pilot", "--registered", URL)
    assert both.exit_code == 2 and "applies to a single study, and not to pilots" in both.output


def test_runs_of_models_ask_and_runs_of_baselines_do_not(study):
    refused = wrods("run", study.folder, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
    assert refused.exit_code == 2 and "--not-registered" in refused.output
    done = wrods("run", study.folder, "--model", "baseline:random", "--max-trials", 2)
    assert "--not-registered" not in done.output and stored(study) is None


def test_the_handover_tells_analysis_the_freeze_the_registration_and_the_whole_plan(study, tmp_path):
    locked = json.loads(wrods("freeze", study.folder, "--json").stdout)
    answer(study, URL)
    file = study.folder / "study.yaml"
    file.write_text(file.read_text("utf-8").replace("at 30 participants", "at 20 participants"), "utf-8")
    with open_store(study.folder) as store:
        hand_over(load_study(study.folder), store, tmp_path / "handover")
    dictionary = json.loads((tmp_path / "handover" / "dictionary.json").read_text("utf-8"))
    assert dictionary["registration"]["url"] == URL
    assert dictionary["registration"]["freeze_hash"] == locked["hash"] == dictionary["frozen"]["hash"]
    assert any("at 30 participants" in line for line in dictionary["frozen"]["changes"])
    plan = dictionary["planned"]["accuracy"]
    levels = list(study.factors["position"])
    expected = [f"{level} - {levels[0]}" for level in levels[1:]]
    assert plan["contrasts"] == expected and plan["direction"] == dict.fromkeys(expected, "two-sided")
    assert (plan["alpha"], plan["family"], plan["formula"]) == (0.05, None, None)
