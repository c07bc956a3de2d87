"""The declarations of trial types, held against everything that must agree with them."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from experiment.building import make_items
from experiment.parsing.replies import PARSERS
from experiment.people.response_intake import validator as body_validator
from experiment.procedure import plan_session, trials_of
from experiment.scoring.trial import SCORERS
from experiment.study.format import key_fault, key_name
from experiment.study.format import validator as study_validator
from experiment.trials import (
    RATED,
    TYPES,
    PlanEntry,
    StepParameter,
    check_declaration,
    recorded_fields,
    step_schema,
    trial_type,
)
from experiment.trials.generate import PAGE, ROOT, TYPESCRIPT, page, typescript
from stimuli.errors import UserError

DECLARATIONS = Path(__file__).resolve().parents[2] / "experiment" / "trials"
ENVELOPE = {
    "next",
    "recorded",
    "client_uuid",
    "trial_index",
    "attempt",
    "regions",
    "plugin_version",
    "created_at",
}
CHOOSE = (
    "choose: {show: word, caption: Scrambled word, ask: Which word is it?, keys: [f, j], answer_by: text}"
)
STEPS = {
    "read": "read: {show: word, minimum: 2 s}",
    "choose": CHOOSE,
    "choose by letter": CHOOSE.replace("answer_by: text", "time_limit: 10 s"),
    "rate": "rate: {show: word, from: 1, to: 7, low: odd, time_limit: 10 s}",
    "rate by name": "rate: {show: word, points: [odd, usual]}",
    "rate on a slider": "rate: {show: word, as: slider, from: 0, to: 2.5}",
    "recover": "recover: {show: word, ask: Which word is it?, time_limit: 1 min, multiline: true}",
}


NO_CRITERION = (", feedback: true, pass: 50%", "")  # ratings take none


def declaration(name: str) -> dict[str, Any]:
    given: dict[str, Any] = json.loads((DECLARATIONS / f"{name}.json").read_text("utf-8"))
    return given


@pytest.mark.parametrize(("place", "made"), [(TYPESCRIPT, typescript), (PAGE, page)], ids=["types", "page"])
def test_what_is_made_from_the_declarations_is_up_to_date(place, made):
    assert (ROOT / place).read_bytes() == made().encode("utf-8"), "run: python -m experiment.trials.generate"


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"parser": 7}, "parser"),
        ({"scorer": None}, "parser"),
        ({"colour": "red"}, "the declaration"),
        ({"parameters": {"show": {"type": "text"}}}, "parameters.show"),
        ({"parameters": {"labels": {"type": "choice", "prose": "which"}}}, "parameters.labels"),
        ({"plan": {"text": {"type": "poem", "prose": "lines"}}}, "plan.text.type"),
        ({"fields": {"rt": {"type": "boolean"}}}, "fields.rt"),
        ({"plan": {}}, "plan"),
    ],
)
def test_a_broken_declaration_is_refused_with_its_place(change, place):
    given = declaration("choose")
    for key, value in change.items():
        given[key] = given[key] | value if isinstance(value, dict) and value else value
    with pytest.raises(ValueError, match=f"^choose.json: {place}: "):
        check_declaration("choose", given)


@pytest.mark.parametrize("name", TYPES)
def test_parsers_and_scorers_are_looked_up_by_the_declared_name(name):
    declared = trial_type(name)
    assert (declared.parser is None) == (declared.scorer is None)
    assert declared.parser is None or declared.parser in PARSERS
    assert declared.scorer is None or declared.scorer in SCORERS


def study_schema() -> dict[str, Any]:
    schema: dict[str, Any] = dict(study_validator().schema)
    return schema


def test_the_study_format_refuses_what_a_parameter_rules_out():
    prime = {"prime": {"show": "word", "frames": 0, "mask": ""}}
    schema = {"$defs": study_schema()["$defs"], **step_schema()}
    faults = {".".join(map(str, one.path)) for one in Draft202012Validator(schema).iter_errors(prime)}
    assert faults == {"prime.frames", "prime.mask"}


@pytest.mark.parametrize("name", TYPES)
def test_declared_entries_refer_to_declared_parameters_and_entries(name):
    declared = trial_type(name)
    entries = declared.plan.values()
    assert {one.setting for one in entries} - {None} <= set(declared.parameters)
    assert {*declared.lasts, *(one.frames for one in entries if one.frames)} <= set(declared.plan)


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_planned_step_holds_the_declared_entries(make_study, step):
    study = make_study((CHOOSE, step), NO_CRITERION)
    for trial in trials_of(plan_session(study, study.items, list_id=1)):
        planned = dict(trial["steps"][-1])
        entries = trial_type(planned.pop("step")).plan
        assert set(planned) == set(entries)
        wrong = {key: planned[key] for key, entry in entries.items() if not holds(entry, planned[key])}
        assert not wrong


def holds(entry: PlanEntry, value: Any) -> bool:
    if value is None:
        return entry.nullable
    if entry.many:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    kinds = {"string": str, "key": str, "number": (int, float), "integer": int, "boolean": bool}
    return isinstance(value, kinds[entry.type]) and (entry.type == "boolean" or not isinstance(value, bool))


@pytest.mark.parametrize("name", TYPES)
def test_defaults_of_parameters_are_what_a_plan_gets(make_study, name):
    declared = trial_type(name).parameters
    samples = {"fields": "word", "keys": "[f, j]", "duration": "2 s", "text": "Word"}
    needed = {key: samples[one.type] for key, one in declared.items() if one.required or key == "show"}
    needed |= {"points": "[a, b]"} if name in RATED else {}
    least = ", ".join(f"{key}: {sample}" for key, sample in needed.items())
    is_before = trial_type(name).parser is None and name != "read"
    after = f"\n        - {CHOOSE}" if is_before else ""
    study = make_study((CHOOSE, f"{name}: {{{least}}}{after}"), NO_CRITERION)
    step = trials_of(plan_session(study, study.items, list_id=1))[-1]["steps"][0]
    same_name = {
        key: one.default for key, one in declared.items() if key in step and is_plain(one) and key != "mask"
    }
    assert {key: step[key] for key in same_name} == same_name
    if name == "prime":
        assert (step["mask"], step["mask_ms"], step["prime_ms"]) == ("#" * len(step["text"]), 500, 50)
    if name == "choose":
        assert declared["answer_by"].default == "letter" and step["labels"] == ["A", "B"]


def is_plain(parameter: StepParameter) -> bool:
    return parameter.type in ("text", "flag") or parameter.values[:1] == ("whole",)


def test_the_server_takes_exactly_the_recorded_fields():
    taken: dict[str, Any] = body_validator("trial").schema["properties"]  # type: ignore[index,assignment]
    assert set(taken) == set(recorded_fields()) | ENVELOPE


NAMES = json.loads(Path(__file__).with_name("key_names.json").read_text("utf-8"))


@pytest.mark.parametrize(("written", "name"), NAMES.items())
def test_a_key_has_one_name_however_it_is_written(written, name):
    assert key_name(written) == name


@pytest.mark.parametrize("key", [*"fJ9٣éñßйжλשعกक;/", 1, "ArrowLeft", "left", "space", "enter"])
def test_what_one_stroke_sends_is_a_key(key):
    assert key_fault(key) is None


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("banana", "ArrowLeft"),
        ("left arrow", "'ArrowLeft'"),
        ("arow left", "'ArrowLeft'"),
        ("space bar", "'Space'"),
        ("numpad 4", "'4'"),
        ("KeyJ", "'j'"),
        ("→", "'ArrowRight'"),
        (12, "ArrowLeft"),
        ("", "ArrowLeft"),
        ("Esc", "full screen"),
        ("Tab", "control"),
        ("shift", "Sticky Keys"),
        ("F5", "F5"),
        ("ctrl+j", "one key"),
        ("字", "input method"),
        ("가", "input method"),
        ("ṽ", "by itself"),
        ("😀", "by itself"),
    ],
)
def test_what_no_stroke_sends_or_the_screens_use_is_no_key(key, said):
    assert said in str(key_fault(key))


@pytest.mark.parametrize("keys", ["[f, banana]", "{a: f, b: left arrow}", "[f, Escape]", "{a: f, b: 12}"])
def test_an_impossible_key_is_refused_with_its_line(make_study, keys):
    with pytest.raises(UserError, match=r"study\.yaml, line 15: .*keys"):
        make_study(("keys: [f, j]", f"keys: {keys}"))


@pytest.mark.parametrize(
    "keys", ["[f, F]", "{a: left, b: ArrowLeft}", '{a: 1, b: "١"}', "{a: ' ', b: space}", "[i, ı]"]
)
def test_two_answers_with_one_key_are_refused(make_study, keys):
    with pytest.raises(UserError, match=r"study\.yaml, line 15: .*keys"):
        make_study(("keys: [f, j]", f"keys: {keys}"))


def test_a_sign_that_other_keyboards_write_otherwise_is_remarked(make_study):
    made = make_items(make_study(("keys: [f, j]", "keys: [';', j]")))
    assert any("line 15" in remark and "';'" in remark and "Shift" in remark for remark in made.remarks)


STUDY_OF_TYPE = """
import sys
from experiment.cli import main
AFTER = (["simulate", "--readers", "2"], ["run"], ["export", "--out", "data"], ["report", "--with", "ratios"])
for words in (["new"], ["check"], ["build"], *AFTER):
    sys.argv = ["wrods", words[0], "study", *words[1:]]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
    text = open("study/study.yaml").read()
    open("study/study.yaml", "w").write(text.replace("- choose:", "- pick:"))
"""


def test_a_second_type_of_choice_needs_nothing_but_its_declaration_and_its_screen(tmp_path):
    shutil.copytree(DECLARATIONS.parent, tmp_path / "experiment")  # with what is compiled
    declared = declaration("choose") | {"type": "pick"}
    (tmp_path / "experiment/trials/pick.json").write_text(json.dumps(declared), "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", STUDY_OF_TYPE],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with (tmp_path / "data/trials.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    asked = Counter((row["reader_kind"], row["trial_type"], row["response_status"]) for row in rows)
    assert asked == {("simulated", "pick", "valid"): 20, ("baseline", "pick", "valid"): 16}
    assert all(row["label_map"] == "Yes=Yes,No=No" for row in rows)
    assert all((row["correct"] == "TRUE") == (row["response"] == row["answer"]) for row in rows)
    for table in ("chance", "sensitivity"):
        assert list((tmp_path / "study/reports").glob(f"*/tables/*_{table}_spelling.csv"))
