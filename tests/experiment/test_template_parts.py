"""Templates that are sets of studies: parts, the user's data, published or corrected."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.report.document import SIMULATED
from experiment.building import build_study
from experiment.building.build import make_items
from experiment.checking import load_study
from experiment.checking.settings import model_settings
from experiment.cli.new import copy_template, templates
from experiment.papers.inside.tuning import trainings
from experiment.papers.inside.tuning.training_sets import PUBLISHED_RULES
from experiment.papers.scrambled_bench.chapter import IN_PRINT
from experiment.summaries.plain_english import sent_as_published
from experiment.templates import filled, parts_of, template_folders
from stimuli.errors import UserError
from stimuli.htest.released import RELEASED_TASKS
from stimuli.scramble.published import published_operation, published_pass
from stimuli.scramble.types import parse_operation
from tests.experiment.commands import change, worked
from tests.experiment.models.running import invoke
from tests.experiment.models.tiny_models import CHAT_TEMPLATE, tiny_llama

PARTS = ("scrrec", "scrrec-few-shot", "realtimeqa", "dream", "aqua")
TRAINING = "scrrec-training"
PAPERS = ["original", "RS-20", "RS-50", "RS-100", "KF", "KFL", "Sub"]
LETTERS = ["KR2", "KL-KR1", "KF-KR1"]


def test_scrambled_bench_has_the_papers_parts():
    assert tuple(parts_of("scrambled-bench")) == (*PARTS, TRAINING)
    assert parts_of("your-own") == {}
    told = invoke("new", "--list").output
    assert all(f"--part {name}" in told for name in (*PARTS, TRAINING))
    assert all(name in told for name in templates())


def test_what_is_published_and_what_is_corrected_never_stand_together():
    text = "a: @DATA@   #-- published\n#-- corrected: b: @DATA@\n  c: 1   # a remark\n"
    assert filled(text, "../x", corrected=False) == "a: ../x\n  c: 1   # a remark\n"
    assert filled(text, "my data: x", corrected=True) == 'b: "my data: x"\n  c: 1   # a remark\n'


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("corrected", [False, True])
def test_each_part_is_a_valid_study_in_both_forms(tmp_path, part, corrected):
    data = tmp_path / "some data"
    copy = data / parts_of("scrambled-bench")[part].data
    copy.mkdir(parents=True)
    copy_template("scrambled-bench", tmp_path / "study", part=part, data=data, corrected=corrected)
    study = load_study(tmp_path / "study")
    assert sorted(study.published) == ([] if corrected else ["items", "prompts", "scoring"])
    assert study.get("analysis", "planned", default=None)
    assert (study.folder / study.get("materials", "corpus", "from")).resolve() == copy.resolve()
    levels = list(study.factors[next(iter(study.factors))])
    if part == "aqua":
        assert levels == PAPERS[:4]
        assert list(study.factors["examples"]) == ["intact", "at-20", "at-50", "at-100"]
    elif part.startswith("scrrec"):
        assert levels == (PAPERS[:6] + LETTERS if corrected else PAPERS[1:6])
    else:
        assert levels == PAPERS + (LETTERS if corrected else [])
    assert {file.name for file in study.folder.glob("*.json")} == {"simulated.json"}
    assert len(list(study.folder.glob("*.yaml"))) == 1
    assert "#--" not in (study.folder / "study.yaml").read_text("utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"part": None}, "is a set of studies: scrrec"),
        ({"part": "dreem"}, "did you mean 'dream'"),
        ({"part": "dream"}, "needs your copy of dream"),
        ({"part": "dream", "data": Path("nowhere")}, "there is no nowhere"),
    ],
)
def test_what_a_part_lacks_is_said(tmp_path, arguments, said):
    with pytest.raises(UserError) as caught:
        copy_template("scrambled-bench", tmp_path / "study", **arguments)  # type: ignore[arg-type]
    assert said.casefold() in f"{caught.value.message} {caught.value.mend}".casefold()
    assert not (tmp_path / "study").exists()


def small(folder: Path, data: Path, part: str, *, corrected: bool = False, items: int = 3) -> Path:
    """Make a part of the template with few items."""
    copy_template("scrambled-bench", folder, part=part, data=data, corrected=corrected)
    file = folder / "study.yaml"
    text = re.sub(r"(?m)^  # items: \d+ ", f"  items: {items} ", file.read_text("utf-8"))
    assert f"items: {items} " in text
    file.write_text(text, "utf-8")
    return folder


@pytest.mark.parametrize("part", (*PARTS, TRAINING))
def test_open_models_get_the_text_alone_as_published_and_check_says_where_they_do_not(tmp_path, shared, part):
    """The template's own line for a local model stands in a comment, but for the training."""
    folders = {form: tmp_path / form for form in ("published", "corrected")}
    for form, folder in folders.items():
        copy_template(
            "scrambled-bench", folder, part=part, data=shared / "data", corrected=form == "corrected"
        )
        file = folder / "study.yaml"
        file.write_text(file.read_text("utf-8").replace("    # llama:", "    llama:"), "utf-8")
    name = "base" if part == TRAINING else "llama"
    published, corrected = (load_study(folder) for folder in folders.values())
    assert published.models[name]["template"] == "plain" and "template" not in corrected.models[name]
    asked = model_settings(published, name)
    (sent,) = sent_as_published(published, asked)
    assert "temperature 0 " in sent and "256 tokens" in sent
    bare = {key: value for key, value in asked.options.items() if key != "template"}
    told = sent_as_published(published, replace(asked, options=bare))
    assert len(told) == 2 and "template: plain" in told[1]
    assert sent_as_published(corrected, model_settings(corrected, name)) == []


@pytest.mark.full
def test_recovery_is_built_of_the_released_stimuli(tmp_path, shared):
    folder = small(tmp_path / "study", shared / "data", "scrrec")
    build_study(load_study(folder))
    lines = (shared / "data/scrambled_bench/stimuli/rec_realtimeqa.jsonl").read_text("utf-8").splitlines()
    released = {row["original"]: row for row in map(json.loads, lines)}
    items = [json.loads(line) for line in (folder / "items.jsonl").read_text("utf-8").splitlines()]
    tests = [item for item in items if item.get("role") == "test"]
    assert len(tests) == 15
    for item in tests:
        level = item["condition"]["scramble"].lower().replace("-", "")
        assert item["shown"]["evidence"] == released[item["intact"]["evidence"]][level]


@pytest.mark.full
@pytest.mark.parametrize("part", PARTS)
def test_each_part_runs_with_simulated_people_and_a_tiny_model_and_is_reported(tmp_path, shared, part):
    model = tiny_llama(tmp_path / "model", template=CHAT_TEMPLATE)
    # a pass over all dialogues takes minutes: DREAM runs mended, the others as released
    folder = small(tmp_path / "study", shared / "data", part, corrected=part == "dream", items=2)
    file = folder / "study.yaml"
    local = f'tiny: {{use: "hf:{model}", device: cpu, max_tokens: 8}}\n    oracle:'
    once = [("prompt_variants: 5", "prompt_variants: 1")] if part == "dream" else []
    text = change(file, ("oracle:", local), *once, count=1)
    for words in (
        ("check", folder),
        ("build", folder),
        ("run", folder, *(["--not-registered"] if "\nanalysis:" in text else [])),
        ("simulate", folder, "--readers", "2"),
        ("report", folder),
    ):
        worked(*words)
    page = next(folder.glob("reports/*/report.html")).read_text("utf-8")
    table = {"scrrec": "4", "scrrec-few-shot": "3", "realtimeqa": "5", "dream": "6", "aqua": "1"}[part]
    assert f"Scrambled Bench, Table {table}" in page and IN_PRINT in page and SIMULATED[0] in page


UNLIKE_THE_RELEASED = {"REO-INT", "REO-INT_1", "REO-INT_2", "REO-INT_4"}
"""Conditions that the released code undoes in many words (its shuffles and exchanges cancel) or does not have (INT_1)."""


@pytest.mark.shared
@pytest.mark.parametrize(("template", "part"), [("scrambled-bench", "scrrec"), ("mind-scramble", "boolq")])
def test_corrected_conditions_change_as_many_words_as_the_released_ones(tmp_path, shared, template, part):
    def changed(intact: str, shown: str) -> int:
        words = zip(intact.split(), shown.split(), strict=True)  # reversed numbers are mended on purpose
        return sum(one != other for one, other in words if not any(map(str.isdecimal, one)))

    copy_template(template, tmp_path / "study", part=part, data=shared / "data", corrected=True)
    file = tmp_path / "study" / "study.yaml"
    file.write_text(re.sub(r"(?m)^  (# )?items: \d+ ", "  items: 40 ", file.read_text("utf-8")), "utf-8")
    study = load_study(tmp_path / "study")
    texts: dict[str, list[tuple[str, str]]] = {}
    for item in make_items(study).items:
        (level,) = item.condition.values()
        texts.setdefault(level, []).extend((text, item.shown[field]) for field, text in item.intact.items())
    compared = []
    for level, written in study.crossing.levels.items():
        operation = parse_operation(written)
        if operation.type.unit != "letter" or level in UNLIKE_THE_RELEASED or level in LETTERS:
            continue
        intact, shown = zip(*texts[level], strict=True)
        released = published_pass(intact, published_operation(written))
        words = sum(len(text.split()) for text in intact)
        doses = [sum(map(changed, intact, forms)) / words for forms in (shown, released)]
        assert doses[0] == pytest.approx(doses[1], abs=0.02), level
        compared.append(level)
    assert len(compared) >= 6


def made(folder: Path, template: str, part: str, *, corrected: bool):
    data = folder / "data"
    (data / parts_of(template)[part].data).mkdir(parents=True)
    copy_template(template, folder / "study", part=part, data=data, corrected=corrected)
    return load_study(folder / "study")


@pytest.mark.parametrize("corrected", [False, True])
def test_h_test_trains_a_model_a_task_from_the_released_lines(tmp_path, corrected):
    study = made(tmp_path, "h-test", "training", corrected=corrected)
    found = trainings(study)
    assert {one.task for one in found.values()} == set(RELEASED_TASKS) == set(study.own_factor["task"])
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


@pytest.mark.parametrize(("template", "part"), [("your-own", None), ("letter-position", "short")])
def test_a_list_that_confounds_answers_with_conditions_is_reported(tmp_path, template, part):
    def told():
        return [
            line for line in make_items(load_study(tmp_path / "study")).remarks if "change the order" in line
        ]

    copy_template(template, tmp_path / "study", part=part)
    assert not told()
    table = tmp_path / "study" / "sentences.csv"
    first, *rows = table.read_text("utf-8").splitlines()
    by_answer = sorted(rows, key=lambda row: row.rsplit(",", 1)[1])
    half = len(rows) // 2
    alternating = [row for pair in zip(by_answer[:half], by_answer[half:], strict=True) for row in pair]
    table.write_text("\n".join([first, *alternating]), "utf-8")
    (line,) = told()
    assert re.search(r"'No' .* 0 of ", line)


def test_the_title_of_every_template_is_its_question_and_not_what_participants_see():
    files = [file for folder in template_folders().values() for file in folder.glob("*.yaml")]
    texts = [text for file in files if "\nparticipants:" in (text := file.read_text("utf-8"))]
    assert texts
    for text in texts:
        question = re.search(r"^title: (.*)$", text, re.MULTILINE)
        seen = re.search(r"^participants:\n  title: (.*?)(?: +#.*)?$", text, re.MULTILINE)
        assert question and question[1].endswith("?")
        assert seen and seen[1] != question[1], question[1]
