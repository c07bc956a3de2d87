"""A lab's own trial types: the examples of docs/own-trials.md as studies, read, planned, agreed to, answered and exported."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli import main
from experiment.people.response_intake import take_copy
from experiment.procedure import participant_view, plan_session, trials_of
from experiment.scoring.sandbox import read_reply
from experiment.store import open_store
from experiment.store.records import all_flags, trials_with_scores
from experiment.trials.own import record_faults, simulate_record
from experiment.trust import agree, require_trust, trust_file
from stimuli.errors import UserError
from stimuli.seeds import generator
from tests.experiment.commands import change
from tests.experiment.people.conftest import Participant, serve_study, settings
from tests.own_examples import write_examples
from tests.scripted_openai import ScriptedOpenAI

__all__ = ["serve_study", "settings"]

TAP = "trial_types/tap"


@pytest.fixture
def examples(tmp_path: Path) -> dict[str, Path]:
    """Return the folders of the page's example studies by study."""
    return write_examples(tmp_path)


@pytest.fixture
def tapping(examples: dict[str, Path]) -> Path:
    return examples["tapping"]


@pytest.fixture
def associations(examples: dict[str, Path]) -> Path:
    return examples["associations"]


def said(*arguments: object, given: str = "") -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)], input=given)


def declare(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    file = folder / "declaration.json"
    declared = json.loads(file.read_text("utf-8"))
    change(declared)
    file.write_text(json.dumps(declared), "utf-8")


def faults_of(folder: Path) -> str:
    with pytest.raises(UserError) as caught:
        load_study(folder)
    return str(caught.value)


def plan_of(folder: Path) -> dict[str, Any]:
    build_study(load_study(folder))
    study = load_study(folder)
    return plan_session(study, study.items, list_id=1)


def test_the_page_gets_the_plan_and_the_hash_of_the_plugin_and_no_answer(associations: Path) -> None:
    plan = plan_of(associations)
    seen = participant_view(plan)
    text = json.dumps(seen)
    assert seen["plugins"] == {"associate": plan["own_types"]["associate"]["plugin"]}
    assert "pepper" not in text and "parser" not in text and "first word" not in text
    (step,) = trials_of(seen)[0]["steps"]
    assert (step["step"], step["type"], step["time_limit_ms"]) == ("own", "associate", 10_000)
    assert step["text"] in ("salt", "doctor", "bread", "table")


def test_a_factor_sets_an_own_step(tapping: Path) -> None:
    plan = plan_of(tapping)
    found = {trial["condition"]["tempo"]: trial["steps"][0]["interval_ms"] for trial in trials_of(plan)}
    assert found == {"fast": 300, "slow": 600}
    assert {trial["trial_type"] for trial in trials_of(plan)} == {"tap"}


def test_every_error_of_a_declaration_is_told_at_once(tapping: Path) -> None:
    def change(declared: dict[str, Any]) -> None:
        declared["plan"]["taps"]["from"] = "tapz"
        declared["response"] = "moments"
        declared["simulated"]["pause"] = {"normal": [1, 2]}
        declared["simulated"]["mean_interval"] = {"normal": ["interval", 40]}
        declared["fields"]["hand"] = {"type": "string", "prose": "the hand"}
        declared["simulated"]["hand"] = {"one_of": ["left", 2]}

    declare(tapping / TAP, change)
    (tapping / TAP / "parse.py").write_text("", "utf-8")
    (tapping / TAP / "parser.py").write_text("def parse(reply):\n    return {}\n", "utf-8")
    told = faults_of(tapping)
    for part in (
        "'tapz'",
        "did you mean 'taps'",
        "'moments'",
        "pause",
        "'interval_ms'",
        "2 is no string",
        "parser.py",
        "prompt.j2",
    ):
        assert part.lower() in told.lower(), part


def test_misspelt_settings_of_a_declaration_are_told_with_line_and_name_and_blame_no_plan(
    tapping: Path,
) -> None:
    def change(declared: dict[str, Any]) -> None:
        declared["verson"] = declared.pop("version")
        declared["response"] = 3

    plan(tapping, "tap_mean_interval")
    declare(tapping / TAP, change)
    told = faults_of(tapping)
    for part in (
        f"{TAP}/declaration.json, line 1: version is missing",
        "verson is not a setting; did you mean 'version'?",
        "response is 3; it should be text",
    ):
        assert part in told, told
    assert "measure" not in told


def test_a_field_that_is_no_single_number_is_refused_as_a_measure_with_the_reason(tapping: Path) -> None:
    plan(tapping, "tap_moments")
    assert 'measure is "tap_moments", which holds a list; a plan measures single numbers' in faults_of(
        tapping
    )


def plan(folder: Path, measure: str) -> None:
    study = folder / "study.yaml"
    planned = f"analysis: {{planned: {{p: {{measure: {measure}, compare: tempo, between: [human]}}}}}}\n"
    study.write_text(study.read_text("utf-8").partition("\nanalysis:")[0] + "\n" + planned, "utf-8")


def test_settings_of_an_own_step_are_checked_by_its_declaration(tapping: Path) -> None:
    file = tapping / "study.yaml"
    change(file, ("flashes: 3, taps: 4", "flashes: 1, tapz: 4"))
    told = faults_of(tapping)
    assert "flashes is 1" in told and "tapz" in told and "'taps'" in told


@pytest.mark.parametrize(("name", "near"), [("tapp", "'tap'"), ("chose", "'choose'")])
def test_a_step_without_a_folder_is_refused_with_the_nearest_name(
    tapping: Path, name: str, near: str
) -> None:
    file = tapping / "study.yaml"
    change(file, ("- tap:", f"- {name}:"))
    told = faults_of(tapping)
    assert name in told and near in told


@pytest.mark.parametrize("name", ["choose", "read", "say"])
def test_names_of_wrods_are_refused(tapping: Path, name: str) -> None:
    (tapping / TAP).rename(tapping / "trial_types" / name)
    assert f"trial_types/{name}" in faults_of(tapping)


def test_two_studies_may_have_different_types_of_one_name(tapping: Path, tmp_path: Path) -> None:
    other = write_examples(tmp_path / "other")["tapping"]
    declare(
        other / TAP,
        lambda declared: declared["fields"].pop("moments") and declared["simulated"].pop("moments"),
    )
    assert list(load_study(other).own_types["tap"].recorded) == ["mean_interval"]
    assert list(load_study(tapping).own_types["tap"].recorded) == ["moments", "mean_interval"]


def test_a_changed_byte_changes_the_design_and_asks_again(tapping: Path) -> None:
    before = load_study(tapping)
    with pytest.raises(UserError, match="wrods trust"):
        require_trust(before)
    agree(before)
    require_trust(before)
    plugin = tapping / TAP / "plugin.js"
    plugin.write_text(plugin.read_text("utf-8") + " ", "utf-8")
    after = load_study(tapping)
    assert after.design_hash != before.design_hash
    with pytest.raises(UserError, match=r"plugin\.js") as caught:
        require_trust(after)
    assert "declaration.json" not in str(caught.value)


def test_serve_preview_and_run_refuse_until_the_user_agrees(associations: Path) -> None:
    assert said("build", associations).exit_code == 0
    for command in (("serve", associations, "--pilot"), ("preview", associations), ("run", associations)):
        refused = said(*command)
        assert refused.exit_code == 2 and "wrods trust" in refused.output
    assert said("trust", associations, given="n\n").exit_code == 1
    assert not trust_file().exists()
    agreed = said("trust", associations, given="y\n")
    assert agreed.exit_code == 0
    for name in ("declaration.json", "plugin.js", "prompt.j2", "parser.py"):
        assert f"trial_types/associate/{name}" in agreed.output
    assert said("run", associations, "--not-registered").exit_code == 0


def test_checking_and_building_run_nothing_of_the_lab(associations: Path, tmp_path: Path) -> None:
    folder, mark = associations / "trial_types" / "associate", tmp_path / "ran"
    (folder / "parser.py").write_text(
        f"open({str(mark)!r}, 'w').close()\n\n\ndef parse(reply, plan):\n    return None\n", "utf-8"
    )
    (folder / "prompt.j2").write_text("{{ plan.text / 0 }}", "utf-8")
    assert said("check", associations).exit_code == 0
    assert said("build", associations).exit_code == 0
    assert not mark.exists()


def test_recorded_fields_are_held_against_their_declaration(tapping: Path) -> None:
    fields = plan_of(tapping)["own_types"]["tap"]["fields"]
    assert record_faults(fields, {"moments": [0, 2.5], "mean_interval": 300}) == {}
    assert set(record_faults(fields, {"moments": [1, "2"], "mean_interval": -1, "pause": 3})) == {
        "moments", "mean_interval", "pause",
    }  # fmt: skip
    assert set(record_faults(fields, {"moments": 3, "mean_interval": True})) == {"moments", "mean_interval"}


def test_what_breaks_its_declaration_is_stored_and_marked(
    tapping: Path, serve_study: Callable[..., Any]
) -> None:
    build_study(load_study(tapping))
    study = load_study(tapping)
    running = serve_study(study)
    person: Participant = running.begin()
    person.agree()
    given = {"moments": [1, 2], "mean_interval": 99_999, "pause": 3}
    body = answered(person, 0, {"tap": given})
    assert person.post("trials", body).status == 201
    assert person.post("trials", body).status == 200, "the same trial"
    assert person.post("trials", answered(person, 1, {"tip": {}})).status == 400
    assert person.post("trials", answered(person, 1, {"tap": {"moments": ["x" * 1000] * 200}})).status == 413
    offline = answered(person, 1, {"tap": {"moments": [3], "mean_interval": 3}})
    assert take_copy(running.store, study.id, person.copy(("trials", offline), study=study.id)).new == 1
    with running.store.read() as connection:
        row, later = trials_with_scores(connection)
        (flag,) = all_flags(connection, study.id)
    assert later["recorded"] == offline["recorded"]
    assert row["recorded"] == {"tap": given}
    assert "pause" in flag["reason"] and "mean_interval" in flag["reason"]


def answered(person: Participant, index: int, recorded: dict[str, Any]) -> dict[str, Any]:
    person_plan = person.trials()
    person_plan[index]["steps"][-1].setdefault("labels", [None])
    return person.payload(index, response_raw=None, recorded=recorded)


@pytest.mark.parametrize(
    ("reply", "fields"),
    [
        ("Pepper.", {"word": "pepper"}),
        ("salt", None),
        ("…", None),
    ],
)
def test_a_parser_reads_replies(associations: Path, reply: str, fields: dict[str, Any] | None) -> None:
    plan = plan_of(associations)
    agree(load_study(associations))
    step = next(t["steps"][-1] for t in trials_of(plan) if t["steps"][-1]["text"] == "salt")
    found, why = read_reply(plan["own_types"]["associate"], step, reply)
    assert found == fields and (why is None) == (fields is not None)


@pytest.mark.parametrize(
    "body",
    [
        "open('/etc/passwd').read()",
        "__import__('socket').create_connection(('127.0.0.1', 1))",
        "__import__('os').fork()",
        "[0 for _ in iter(int, 1)]",
        "{'word': 3}",
        "{'other': 'x'}",
        "'word'",
    ],
)
def test_a_parser_has_no_files_no_network_and_two_seconds(associations: Path, body: str) -> None:
    file = associations / "trial_types" / "associate" / "parser.py"
    file.write_text(f"def parse(reply, plan):\n    return {body}\n", "utf-8")
    plan = plan_of(associations)
    agree(load_study(associations))
    found, why = read_reply(plan["own_types"]["associate"], trials_of(plan)[0]["steps"][-1], "pepper")
    assert found is None and why


def test_a_model_answers_and_is_scored_like_people(associations: Path) -> None:
    replies = {"salt": "Pepper", "doctor": "hospital", "bread": "bread", "table": "I would say chair"}
    with ScriptedOpenAI(
        answer=lambda body: next(
            r for cue, r in replies.items() if f'"{cue}"' in body["messages"][-1]["content"]
        )
    ) as server:
        file = associations / "study.yaml"
        model = f'{{use: "openai:scripted", base_url: "{server.url}"}}'
        change(file, ('{use: "baseline:random"}', model))
        assert said("build", associations).exit_code == 0
        assert said("trust", associations, given="y\n").exit_code == 0
        ran = said("run", associations, "--not-registered")
        assert ran.exit_code == 0, ran.output
        assert said("score", associations).exit_code == 0
    study = load_study(associations)
    with open_store(associations) as store, store.read() as connection:
        rows = {row["shown"]["sentence"]: row for row in trials_with_scores(connection)}
    assert {cue: (row["response"], row["response_status"], row["correct"]) for cue, row in rows.items()} == {
        "salt": ("pepper", "valid", True),
        "doctor": ("hospital", "valid", False),
        "bread": (None, "unparsed", None),
        "table": ("i", "valid", False),
    }
    assert rows["salt"]["recorded"] == {"associate": {"word": "pepper"}}
    assert rows["salt"]["response_raw"] == "Pepper"
    assert study.own_types["associate"].columns == ["associate_word", "associate_first_key_ms"]


def test_models_leave_out_what_only_people_can_do(tapping: Path) -> None:
    file = tapping / "study.yaml"
    text = file.read_text("utf-8").replace(
        "materials:", 'models: {who: {guesses: {use: "baseline:random"}}}\n\nmaterials:'
    )
    file.write_text(text, "utf-8")
    assert "people only" in faults_of(tapping)
    recovering = "  - block: {trial: [{recover: {show: sentence}}]}\n  - debrief:"
    plan = "{measure: missing, compare: tempo, between: [human, guesses], trials: tap}"
    file.write_text(
        text.replace("  - debrief:", recovering) + f"\nanalysis:\n  planned:\n    tempo: {plan}\n", "utf-8"
    )
    told = said("check", tapping).output
    assert "trial_types/tap" in told


def test_a_type_without_a_scorer_has_no_accuracy_to_plan(tapping: Path) -> None:
    file = tapping / "study.yaml"
    plan = "\nanalysis:\n  planned:\n    tempo: {measure: %s, compare: tempo, between: [human]}\n"
    text = file.read_text("utf-8")
    file.write_text(text + plan % "correct", "utf-8")
    assert "'correct'" in faults_of(tapping) and "tap" in faults_of(tapping)
    file.write_text(text + plan % "rt", "utf-8")
    load_study(tapping)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  - block:\n", "  - practice: {items: tunes.csv, pass: 50%}\n  - block:\n"),
        ("  - block:\n", "  - block:\n      feedback: accuracy\n"),
        ("  - block:\n", "  - block:\n      attention_checks: 1\n"),
        ("taps: 4}\n", "taps: 4}\n        - tap: {interval: 1 s}\n"),
    ],
)
def test_what_needs_right_answers_or_one_step_is_refused(tapping: Path, old: str, new: str) -> None:
    file = tapping / "study.yaml"
    change(file, (old, new))
    assert "tap" in faults_of(tapping)


def test_simulated_readers_fill_the_fields_as_declared(tapping: Path, associations: Path) -> None:
    plan = plan_of(tapping)
    tap = load_study(tapping).own_types["tap"]
    for trial in trials_of(plan):
        step = trial["steps"][-1]
        made = simulate_record(tap, step, None, True, generator(1, "test", trial["trial_index"]))
        assert record_faults(plan["own_types"]["tap"]["fields"], made) == {}
        assert len(made["moments"]) == step["taps"]
        assert abs(made["mean_interval"] - step["interval_ms"]) < 250
    associate = load_study(associations).own_types["associate"]
    step, draw = {"step": "own", "type": "associate"}, generator(1, "test")
    assert simulate_record(associate, step, "pepper", True, draw)["word"] == "pepper"
    assert simulate_record(associate, step, "water", False, draw)["word"] in ("thing", "house")


PLANNED = """
analysis:
  planned:
    beat: {measure: mean_interval, compare: tempo, between: [human], equivalence: 20 ms}
"""


def test_a_number_that_an_own_type_records_is_planned_and_reported_in_its_unit(
    tapping: Path, tmp_path: Path
) -> None:
    file = tapping / "study.yaml"
    study = file.read_text("utf-8")
    for name, problem in (("mean_intervall", "mean_interval"), ("moments", "tap_mean_interval")):
        file.write_text(
            study + PLANNED.replace("mean_interval", name).replace(", equivalence: 20 ms", ""), "utf-8"
        )
        told = faults_of(tapping)
        assert f'"{name}"' in told and problem in told, told
    file.write_text(study + PLANNED, "utf-8")
    assert "the analysis has one" in faults_of(tapping)
    more = PLANNED.replace("[human], equivalence: 20 ms", "[human, simulated], equivalence: 20 bits")
    file.write_text(study + more, "utf-8")
    assert "Write it like: 0.5 ms" in faults_of(tapping)
    file.write_text(study + PLANNED.replace(", equivalence: 20 ms", ""), "utf-8")
    none = {"effects": {}, "participant_sd": 0.1, "item_sd": 0.1}
    truth = {"accuracy": {"intercept": 2} | none, "time": {"intercept": 7, "residual_sd": 0.2} | none}
    (tapping / "simulated.json").write_text(json.dumps(truth), "utf-8")
    checked = said("check", tapping)
    assert checked.exit_code == 0 and "mean time between taps" in checked.output, checked.output
    for command in (("build",), ("simulate", "--readers", 8), ("report",)):
        done = said(command[0], tapping, *command[1:])
        assert done.exit_code == 0, done.output
    (report,) = (tapping / "reports").iterdir()
    means = (report / "tables" / "table_02_descriptives_tap_mean_interval_tempo.csv").read_text("utf-8")
    assert [line.split(",")[0] for line in means.splitlines()[-2:]] == ["fast", "slow"]
    answer = (report / "tables" / "table_01_answer.csv").read_text("utf-8")
    difference = float(answer.split('simulated readers","')[1].split()[0])
    assert "beat (ms)" in answer and abs(difference - 300) < 75, "the flashes are 300 ms further apart"
    power = said("power", tapping, "--participants", "8")
    told = " ".join(power.output.split())
    assert "beat is left out: mean time between taps cannot be simulated" in told, told


def test_people_and_a_model_are_compared_on_a_number_without_a_unit(associations: Path) -> None:
    folder = associations / "trial_types" / "associate"

    def count_letters(declared: dict[str, Any]) -> None:
        declared["fields"]["letters"] = {"type": "number", "prose": "letters of the word"}
        declared["simulated"]["letters"] = {"normal": [6, 1]}

    declare(folder, count_letters)
    change(folder / "parser.py", ("words[0].lower()}", 'words[0].lower(), "letters": len(words[0])}'))
    cues = [("salt", "thing"), ("doctor", "person"), ("bread", "thing"), ("teacher", "person")]
    rows = "".join(f"{cue},{cue},{kind}\n" for cue, kind in cues)
    (associations / "cues.csv").write_text(f"item,sentence,kind\n{rows}", "utf-8")
    none = {"effects": {}, "participant_sd": 0.1, "item_sd": 0.1}
    truth = {"accuracy": {"intercept": 2} | none, "time": {"intercept": 7, "residual_sd": 0.2} | none}
    (associations / "simulated.json").write_text(json.dumps(truth), "utf-8")
    with ScriptedOpenAI(
        answer=lambda body: (
            "gardener" if re.search('"(doctor|teacher)"', body["messages"][-1]["content"]) else "stone"
        )
    ) as server:
        kinds = "{kind: {thing: {where: {kind: thing}}, person: {where: {kind: person}}}}"
        planned = "{measure: letters, compare: kind, between: [human, echo]}"
        change(
            associations / "study.yaml",
            ('{use: "baseline:random"}', f'{{use: "openai:scripted", base_url: "{server.url}"}}'),
            (
                "procedure:\n",
                f"design: {{factors: {kinds}}}\nanalysis: {{planned: {{length: {planned}}}}}\nprocedure:\n",
            ),
        )
        for command in (("build",), ("run", "--not-registered"), ("simulate", "--readers", 6), ("report",)):
            if command[0] == "run":
                agree(load_study(associations))
            done = said(command[0], associations, *command[1:])
            assert done.exit_code == 0, done.output
    (report,) = (associations / "reports").iterdir()
    answer = (report / "tables" / "table_01_answer.csv").read_text("utf-8")
    assert 'echo,"3.00' in answer, answer
    means = (report / "tables" / "table_02_descriptives_associate_letters_kind.csv").read_text("utf-8")
    (thing, person) = (line.split(",")[3] for line in means.partition("echo")[2].splitlines()[1:3])
    assert (thing, person) == ("5.00", "8.00"), means


def test_simulated_readers_take_part(associations: Path) -> None:
    assert said("build", associations).exit_code == 0
    none = {"effects": {}, "participant_sd": 0.1, "item_sd": 0.1}
    truth = {"accuracy": {"intercept": 2} | none, "time": {"intercept": 7, "residual_sd": 0.2} | none}
    (associations / "simulated.json").write_text(json.dumps(truth), "utf-8")
    done = said("simulate", associations, "--readers", 4)
    assert done.exit_code == 0, done.output
    with open_store(associations) as store, store.read() as connection:
        rows = list(trials_with_scores(connection))
    assert len(rows) == 16
    assert all(row["recorded"]["associate"]["first_key_ms"] > 0 for row in rows)
    assert {row["response_status"] for row in rows} <= {"valid", "timeout"}
    assert sum(bool(row["correct"]) for row in rows) >= 8
