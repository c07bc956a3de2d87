"""Before the first session that counts, a study with a plan says where it is registered, or that it is not."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis.plan import plans_in_words
from experiment.building import build_study
from experiment.checking import load_study
from experiment.checking.model_capabilities import reads_with_encoder
from experiment.cli.registering import ask_registration
from experiment.demo.tour import LocalServer, fill
from experiment.exporting import export_study
from experiment.exporting.export import hand_over
from experiment.integrity.freezing import Registration, registration_of
from experiment.models.engine import ModelSettings
from experiment.people.dashboard.reading import audit_of, in_words
from experiment.store import open_store, records
from experiment.store.tables import regions
from experiment.study import Study
from experiment.study.study import planned_analyses, study_plan
from experiment.summaries.registration import registration
from stimuli.errors import UserError
from tests.experiment.commands import change, let_take_part, wrods
from tests.experiment.conftest import small_items
from tests.experiment.test_simulated import TRUTH

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


def stored(study: Study) -> Registration | None:
    with open_store(study.folder) as store, store.read() as connection:
        return registration_of(connection, study.id)


def answer(study: Study, url: str | None = None, *, is_not_registered: bool = False) -> None:
    with open_store(study.folder) as store:
        ask_registration(study, store, url, is_not_registered=is_not_registered)


def test_sessions_of_a_planned_study_do_not_begin_before_it_is_said_where_it_is_registered(study):
    with pytest.raises(UserError, match="--not-registered"):
        answer(study)
    assert stored(study) is None
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
    with open_store(study.folder) as store, store.read() as connection:
        entries = [in_words(line["detail"]) for line in audit_of(connection, study.id)]
    assert "registered: no" in entries, "the history shows the answer"


@pytest.mark.parametrize("url", ["osf.io/abcde", "https://osf", "https://osf.io/a b", "ftp://osf.io/x"])
def test_what_is_no_address_is_refused(study, url):
    with pytest.raises(UserError, match=re.escape(repr(url))):
        answer(study, url)
    assert stored(study) is None


def test_serve_asks_unless_every_session_is_a_pilot(study):
    refused = wrods("serve", study.folder, "--no-browser", "--port", 0)
    assert refused.exit_code == 2 and "--registered URL" in refused.output
    both = wrods("serve", study.folder, "--pilot", "--registered", URL)
    assert both.exit_code == 2 and "--registered" in both.output


def test_runs_of_models_ask_and_runs_of_baselines_do_not(study):
    refused = wrods("run", study.folder, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
    assert refused.exit_code == 2 and "--not-registered" in refused.output
    done = wrods("run", study.folder, "--model", "baseline:random", "--max-trials", 2)
    assert "--not-registered" not in done.output and stored(study) is None


def test_the_handover_tells_analysis_the_freeze_the_registration_and_the_whole_plan(study, tmp_path):
    locked = json.loads(wrods("freeze", study.folder, "--json").stdout)
    answer(study, URL)
    file = study.folder / "study.yaml"
    change(file, ("at 30 participants", "at 20 participants"))
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


FACTORS = "\n    band: {high: {where: {band: high}}, low: {where: {band: low}}}"
INTERACTION = "(initial - intact) x (low - high)"


def made(make_study: Callable[..., Study], **more: Any) -> Study:
    items = [
        replace(one, condition={**one.condition, "band": "high" if int(one.item_id[1:]) % 2 else "low"})
        for one in small_items()
    ]
    spec = {"measure": "correct", "compare": "[position, band]", "between": "[human]", **more}
    told = ", ".join(f"{key}: {value}" for key, value in spec.items())
    return make_study(
        ("{transpose: initial}}", f"{{transpose: initial}}}}{FACTORS}"),
        ("  - debrief: debrief.md\n", f"  - debrief: debrief.md\nanalysis:\n  planned:\n    a: {{{told}}}\n"),
        items=items,
    )


def test_an_interaction_is_registered_in_words(make_study):
    contrasts = f"[{INTERACTION}, initial - intact in low, initial - intact]"
    study = made(make_study, contrasts=contrasts, direction=f"{{{INTERACTION}: less}}")
    text = registration(study, sessions_before=0)
    assert re.search(r"position × band \(position: intact, initial;.* band: high, low;", text)
    assert f"{INTERACTION}, one-sided" in text
    for term in ("interaction", "simple effect", "averaged over", "fixed effects", "percentage points"):
        assert term in text


def test_a_plan_of_two_factors_is_handed_over_as_it_is_written(make_study):
    study = made(make_study)
    told = planned_analyses(study)[0].to_json()
    assert told["compare"] == ["position", "band"] and told["contrasts"] == [INTERACTION]
    assert told["direction"] == {INTERACTION: "two-sided"}
    (lines,) = plans_in_words(study_plan(study))
    assert lines[1] == f"contrasts (default): {INTERACTION}, two-sided (default)"


def dictionary_of(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "dictionary.json").read_text("utf-8"))
    return told


def test_the_dictionary_says_that_the_design_changed_since_the_sessions(make_study, tmp_path):
    study = make_study()
    (study.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
    with open_store(study.folder) as store:
        let_take_part(study, store, readers=1)
        before = dictionary_of(hand_over(study, store, tmp_path / "before"))
        (study.folder / "debrief.md").write_text("Another farewell.", "utf-8")
        changed = load_study(study.folder)
        after = dictionary_of(hand_over(changed, store, tmp_path / "after"))
    assert before["design_changed"] is False and after["design_changed"] is True
    assert after["collected_design_hash"] == before["design_hash"] != after["design_hash"]


def test_regions_outside_the_declared_bounds_stay_and_say_so(make_study, tmp_path):
    rule = "analysis: {exclude: {regions: {rt: outside 50 ms to 10 s}}}"
    study = make_study(("seed: 7\n", f"seed: 7\n{rule}\n"))
    times = {0: 49.9, 1: 50.0, 2: 10_000.0, 3: 10_000.5, 4: None}
    with open_store(study.folder) as store:
        with LocalServer(study, store) as server:
            (study.folder / "simulated.json").write_text(json.dumps(TRUTH), "utf-8")
            fill(study, server.links, readers=1, pause=0, told=lambda _: None)

        def read_word_by_word(connection: Any) -> None:
            first = next(iter(records.trials_with_scores(connection, study.id)))
            key = {name: first[name] for name in ("session_id", "trial_index", "attempt")}
            rows = [key | {"region": place, "shown": "x", "rt": rt} for place, rt in times.items()]
            connection.execute(regions.insert(), rows)

        store.write(read_word_by_word).result()
        folder = hand_over(study, store, tmp_path / "out")
        export_study(study, store, tmp_path / "csv", "csv")
    told = pd.read_parquet(folder / "regions.parquet").set_index("region")["excluded_reason"].astype(object)
    reason = "rt outside 50 ms to 10 s"
    assert told.where(told.notna(), None).to_dict() == {0: reason, 1: None, 2: None, 3: reason, 4: None}
    assert dictionary_of(folder)["exclude"] == {"regions": {"rt": "outside 50 ms to 10 s"}}
    assert (tmp_path / "csv" / "regions.csv").read_text("utf-8").count(reason) == 2


@pytest.mark.parametrize(
    ("config", "has_encoder"),
    [
        ({"is_encoder_decoder": True}, True),
        ({"is_encoder_decoder": False}, False),
        ({"architectures": ["LlamaForCausalLM"]}, False),
    ],
)
def test_a_configuration_that_says_whether_it_has_an_encoder_loads_no_transformers(
    tmp_path, monkeypatch, config, has_encoder
):
    monkeypatch.setitem(sys.modules, "transformers", None)
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert reads_with_encoder(ModelSettings("hf:.", folder=tmp_path)) is has_encoder
