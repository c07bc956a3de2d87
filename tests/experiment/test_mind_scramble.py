"""The template mind-scramble: eight studies, published and corrected, from the user's own copy of the data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.papers.mind_scramble import verdicts
from experiment.papers.mind_scramble.verdicts import CORRECTED, RELEASED, SCORERS, fault_rows, values_of
from experiment.scoring.sandbox import FATES, SandboxUnavailable, require_sandbox
from experiment.study import Study
from experiment.templates import parts_of
from tests.experiment.commands import change, worked
from tests.experiment.models.tiny_models import CHAT_TEMPLATE, tiny_llama

TEMPLATE = "mind-scramble"
PARTS = sorted(parts_of(TEMPLATE))
FEW = ("BASE", "DEL-BEG", "REO-REV")
SOME = (
    *("BASE", "REO-ALL", "REO-REV", "REO-INT_2", "REO-INT_4", "INS-BEG", "DEL-BEG"),
    *("DEL-INT_1", "WORD-REO-ALL", "SENT-REO-ALL"),
)
UNPLANNED = ("summarise", "translate")
REPORTED = ("boolq", "gsm8k", "mbpp", "rectify", "squad", "summarise")
"""One part of each way to score: csqa is scored as squad is, and translate as summarise."""
ONCE = {"replicates: 3": "replicates: 1"}
LEVELS = {"BASE": 1, "REO": 8, "DEL": 6, "INS": 6, "WORD": 3, "SENT": 3}


def made(
    folder: Path,
    part: str,
    data: Path,
    *,
    corrected: bool,
    items: int = 2,
    levels: tuple[str, ...] = (),
    edits: Mapping[str, str] = MappingProxyType({}),
) -> Path:
    """Make a study of few items, with all levels or those that are named."""
    study = folder / f"{part}-{'mended' if corrected else 'released'}"
    copy_template(TEMPLATE, study, part=part, data=data, corrected=corrected)
    file = study / "study.yaml"
    text = re.sub(r"(?m)^  items: \d+", f"  items: {items}", file.read_text("utf-8"))
    if levels:
        kept = "".join(f"      {level}: {'none' if level == 'BASE' else level}\n" for level in levels)
        text = re.sub(r"(?ms)^      BASE: none\n.*?(?=^  lists:)", kept, text)
        text = text.replace("BASE - REO-INT, REO-INT - REO-ALL, REO-END - REO-BEG", "BASE - REO-REV")
        text = text.replace("REO-INT - REO-ALL, REO-END - REO-BEG", f"{levels[1]} - {levels[2]}")
    file.write_text(text, "utf-8")
    change(file, *edits.items())
    truth = json.loads((study / "simulated.json").read_text("utf-8"))
    for part_of in ("accuracy", "time"):
        effects = truth[part_of]["effects"]["scramble"]
        truth[part_of]["effects"]["scramble"] = {
            name: effects[name] for name in effects if not levels or name in levels
        }
    (study / "simulated.json").write_text(json.dumps(truth), "utf-8")
    return study


@pytest.mark.shared
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("corrected", [False, True])
def test_every_part_is_a_valid_study_with_all_typofuncs(tmp_path, shared, part, corrected):
    study: Study = load_study(made(tmp_path, part, shared / "data", corrected=corrected))
    (levels,) = study.factors.values()
    counted = {kind: sum(level.split("-")[0].split("_")[0] == kind for level in levels) for kind in LEVELS}
    one_sentence = corrected and part in ("mbpp", "csqa")  # most texts have no sentences to exchange
    assert counted == LEVELS | ({"REO": 9} if corrected else {}) | ({"SENT": 0} if one_sentence else {})
    assert next(iter(levels)) == "BASE"
    assert set(study.published) == (set() if corrected else {"items", "prompts", "scoring"})
    assert bool(study.get("analysis", "planned", default=None)) == (part not in UNPLANNED)


@pytest.mark.full
@pytest.mark.shared
@pytest.mark.parametrize(
    ("part", "corrected"), [*((part, True) for part in PARTS), ("mbpp", False), ("boolq", False)]
)
def test_every_part_has_as_many_items_as_it_says(tmp_path, shared, part, corrected):
    """MBPP's 700 are more than its test split has, and a published list is of one split or of all."""
    number = {"gsm8k": 400, "mbpp": 400 if corrected else 700, "squad": 500, "csqa": 1000}.get(part, 600)
    folder = made(tmp_path, part, shared / "data", corrected=corrected, items=0, levels=FEW)
    file = folder / "study.yaml"
    change(file, ("  items: 0", f"  items: {number}"))
    copy_template(TEMPLATE, tmp_path / "as-it-comes", part=part, data=shared / "data", corrected=corrected)
    assert f"  items: {number} " in (tmp_path / "as-it-comes" / "study.yaml").read_text("utf-8")
    items = make_items(load_study(folder)).items
    assert len({item.item_id for item in items if item.role == "test"}) == number


@pytest.mark.shared
def test_published_items_bear_the_faults_of_the_code_and_corrected_ones_do_not(tmp_path, shared):
    shown = {}
    for corrected in (False, True):
        folder = made(tmp_path, "gsm8k", shared / "data", corrected=corrected, items=2, levels=FEW)
        items = make_items(load_study(folder)).items
        shown[corrected] = {
            level: [one.shown["question"] for one in items if one.condition["scramble"] == level]
            for level in FEW
        }

    def digits(texts: list[str]) -> list[str]:
        return [number for text in texts for number in re.findall(r"\d+", text)]

    assert all("_" in text for text in shown[False]["DEL-BEG"])
    assert not any("_" in text for text in shown[True]["DEL-BEG"])
    assert digits(shown[True]["REO-REV"]) == digits(shown[True]["BASE"])
    assert digits(shown[False]["REO-REV"]) == [one[::-1] for one in digits(shown[False]["BASE"])]


@pytest.mark.shared
def test_programs_are_judged_by_their_tests_and_stay_judged(tmp_path, shared):
    try:
        require_sandbox()
    except SandboxUnavailable as error:
        pytest.skip(f"no sandbox here: {error.message}")
    folder = made(tmp_path, "mbpp", shared / "data", corrected=True, items=2, levels=FEW, edits=ONCE)
    worked("build", folder)
    assert "wrods score" in worked("run", folder, "--model", "oracle").output
    assert "wrods score" in worked("simulate", folder, "--readers", "1").output
    before = worked("score", folder, "--execute", "--dry-run").output
    assert f"oracle: {FATES['passed']}" in before and "S001: " in before
    worked("score", folder, "--execute")
    assert re.search(r"[6-8] responses", worked("score", folder).output)


@pytest.mark.full
@pytest.mark.shared
@pytest.mark.parametrize("part", PARTS)
def test_every_part_runs_with_simulated_people_and_a_local_model(tmp_path, shared, part):
    model = tiny_llama(tmp_path / "model", template=CHAT_TEMPLATE, max_position_embeddings=4096)
    local = f'tiny: {{use: "hf:{model}", device: cpu, max_tokens: 8}}\n    oracle:'
    edits = {"oracle:": local, **ONCE}
    folder = made(
        tmp_path,
        part,
        shared / "data",
        corrected=part != "boolq",
        items=2,
        levels=SOME[:-1] if part in ("mbpp", "csqa") else SOME,
        edits=edits,
    )
    worked("check", folder)
    worked("build", folder)
    worked("run", folder, "--model", "tiny", *(() if part in UNPLANNED else ("--not-registered",)))
    worked("simulate", folder, "--readers", "2")
    if part == "mbpp":
        worked("score", folder, "--execute", "--model", "tiny")
    if part not in REPORTED:
        worked("export", folder, "--out", tmp_path / "out")
        return
    worked("report", folder)
    page = next(folder.glob("reports/*/report.html")).read_text("utf-8")
    assert 'id="mind-scramble"' in page
    # the model's random text follows no format, but simulated people's programs and summaries wait for their scores
    assert ("wrods score --similarity" in page) == (part in ("mbpp", "summarise"))
    assert "Simulated readers" in page


DIGITS = "digits are run together: 3.5 is 35, −5 is 5, 5 of 6 is 56"
EMPTY = "an empty answer is right"
LONGER = "an answer that holds the right one is right"
PART = "a part of the right answer is right"
LEFT_OUT = "replies without the field are left out"


def worth(kind: str, reply: str, *accepted: str, mended: float | None = None) -> dict[str, float | None]:
    return dict(values_of(kind, reply, accepted[0], accepted, mended))


@pytest.mark.parametrize(
    ("answer", "gold", "released", "without"),
    [
        ("3.5", "35", 1, 0),
        ("-5", "5", 1, 0),
        ("18.00", "18", 0, 1),
        ("$18", "18", 1, 1),
        ("17", "18", 0, 0),
        ("none", "18", 0, 0),
    ],
)
def test_numbers_by_their_digits(answer, gold, released, without):
    found = worth("gsm8k", f">process: so\n>answer_number: {answer}", gold)
    assert (found[RELEASED], found[DIGITS]) == (released, without)


@pytest.mark.parametrize(
    ("answer", "released", "without"), [("yes", 1, 1), ("'yes'", 1, 1), ("Yes.", 0, 1), ("no", 0, 0)]
)
def test_yes_in_small_letters_only(answer, released, without):
    found = worth("boolq", f">reason: so\n>answer: {answer}", "yes")
    (fault,) = SCORERS["boolq"].without
    assert (found[RELEASED], found[fault]) == (released, without)


@pytest.mark.parametrize(
    ("answer", "wrong_without"),
    [("", EMPTY), ("in the city of Paris or Rome", LONGER), ("Par", PART), ("Paris", None)],
)
@pytest.mark.parametrize("kind", ["squad", "csqa"])
def test_one_text_within_the_other(kind, answer, wrong_without):
    found = worth(kind, f">reason: so\n>answer: {answer}", "Paris")
    assert found[RELEASED] == 1
    for fault in (EMPTY, LONGER, PART):
        assert found[fault] == (fault != wrong_without)


def test_a_reply_without_the_field_is_left_out_as_released_and_counts_once_mended():
    found = worth("rectify", "I cannot do that.", "the old captain")
    assert (found[RELEASED], found[LEFT_OUT]) == (None, 0.0)


@pytest.mark.parametrize("kind", sorted(SCORERS))
@pytest.mark.parametrize(
    "reply", ["", ">answer:", "answer", ">fixed: ", ">answer_number: ∞", "\x00>answer: {}"]
)
def test_no_rule_raises(kind, reply):
    for value in worth(kind, reply, "gold").values():
        assert value is None or 0 <= value <= 1


@pytest.mark.parametrize(("published", "rules"), [(["items", "prompts"], {RELEASED, CORRECTED}), ([], set())])
def test_only_replies_to_the_papers_prompts_are_priced(monkeypatch, published, rules):
    """Who was not asked for the field that the released rule reads is not wrong for want of it."""
    trial = {"trial_index": 1, "steps": [{}], "answer": "Yes", "accepted": []}
    plan, place = {"published": published}, {"session_id": "s", "attempt": 1}
    reply = SimpleNamespace(reader_kind="model", plan=plan, trial=trial, raw="Yes", counts=None, **place)
    monkeypatch.setattr(verdicts, "responses", lambda study, connection: iter([reply]))
    monkeypatch.setattr(verdicts, "data_set_of", lambda trial: "boolq")
    monkeypatch.setattr(verdicts, "_corrected", lambda response, kind: 1.0)
    found = {row["rule"] for row in fault_rows(None, None)}
    assert rules <= found and bool(rules) == bool(found)
