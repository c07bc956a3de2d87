"""The template h-test: released, fresh and matched items for sessions of their own, and what it says of itself."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from analysis import load
from analysis.report.blocks import Material
from experiment.building import make_items
from experiment.checking import load_study
from experiment.checking.settings import model_settings
from experiment.cli.study_store import opened_study
from experiment.exporting.export import hand_over
from experiment.lists import items_of_list, list_ids
from experiment.models.pictures import Picture
from experiment.papers.h_test.chapter import write, write_geometry
from experiment.papers.h_test.chapter.measures import TASKS, asked, both_parsers
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from experiment.summaries.plain_english import sent_as_published, tell
from experiment.templates import template_folders
from stimuli.errors import UserError
from stimuli.htest.rules import rule
from tests.analysis.chapters import chapter_of, rows_by_head, tables_in
from tests.experiment.commands import change, worked, wrods
from tests.experiment.models.tiny_models import tiny_llama
from tests.experiment.models.tiny_seers import tiny_llava
from tests.scripted_answers import last_text
from tests.scripted_openai import ScriptedOpenAI

SMALL = (
    ("tasks: all", "tasks: [rhyme, uppercase]"),
    ("items: 12 ", "items: 4 #"),
    ("exemplars: 50 ", "exemplars: 14 "),
)
FEW = (
    ("      k28: {exemplars: 28}\n      k50: {exemplars: 50}\n", ""),
    ("[k14 - k4, k28 - k14, k50 - k28, k50 - k4]", "[k14 - k4]"),
)


def made(folder: Path, data: Path, *changes: tuple[str, str], options: tuple[str, ...] = ()) -> Study:
    """Make the study of the ten tasks, with changes to its file."""
    worked("new", folder, "--from", "h-test", "--part", "tasks", "--data", data, *options)
    change(folder / "study.yaml", *changes)
    return load_study(folder)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, shared: Path) -> Study:
    return made(tmp_path_factory.mktemp("h") / "s", shared / "data", *SMALL, *FEW)


def test_a_session_shows_items_and_examples_of_one_making(small):
    items = make_items(small).items
    seen: dict[str, set[str]] = {}
    for list_id in list_ids(small, items):
        plan = plan_session(small, items, list_id=list_id)
        asked = [one for one in trials_of(plan) if not one["is_practice"] and not one["is_attention_check"]]
        makings = {one["condition"]["items_from"] for one in asked}
        assert len(makings) == 1
        (making,) = makings
        shown = {one["item_id"] for one in asked if not one["is_filler"]}
        assert all(name.startswith(f"{making}-") for name in shown)
        seen[making] = seen.get(making, set()) | shown
        exemplars = [item for item in items if item.role == "exemplar"]
        own = {one.shown["text"] for one in exemplars if one.condition.get("items_from") == making}
        assert {example["text"] for one in asked for example in one["exemplars"]} <= own
        sizes = {len(one["exemplars"]) for one in asked}
        assert sizes == {int(asked[0]["condition"]["examples"].removeprefix("k"))}
    assert {making: len(names) for making, names in seen.items()} == {"released": 8, "fresh": 8, "matched": 8}


def test_every_list_shows_both_classes_of_every_task_equally_often(small):
    items = make_items(small).items
    lists = list_ids(small, items)
    assert len(lists) == 3 * 2 * 2
    for list_id in lists:
        counted = Counter((item.set_name, item.answer) for item in items_of_list(small, items, list_id))
        assert set(counted.values()) == {2}


@pytest.mark.parametrize(
    ("part", "options", "tokens"), [("tasks", (), 5), ("geometry", (), 1), ("tasks", ("--corrected",), None)]
)
def test_models_that_the_template_proposes_are_asked_as_the_paper_asked_and_check_says_so(
    tmp_path, shared, part, options, tokens
):
    folder = tmp_path / "s"
    data = ("--data", str(shared / "data"))
    worked("new", folder, "--from", "h-test", "--part", part, *data, *options)
    file = folder / "study.yaml"
    file.write_text(re.sub(r"(?m)^    # (gpt[\w-]*:)", r"    \1", file.read_text("utf-8")), "utf-8")
    study = load_study(folder)
    gpt = model_settings(study, "gpt")
    if tokens is None:
        assert gpt.options["temperature"] == 0 and sent_as_published(study, gpt) == []
        return
    assert "temperature" not in gpt.options
    (sent,) = sent_as_published(study, gpt)
    assert "temperature 0.7" in sent and f"{tokens} token" in sent
    (cold,) = sent_as_published(study, replace(gpt, options={**gpt.options, "temperature": 0}))
    assert "temperature 0 " in cold and "0.7" in cold


def test_plans_of_every_part_stand_with_people_alone_and_with_models_named(tmp_path, shared):
    people, models = tmp_path / "people", tmp_path / "models"
    made(people, shared / "data", *SMALL, *FEW)
    made(models, shared / "data", *SMALL, *FEW, ("between: [human]", "between: [human, guesser]"))
    worked("check", people, "--explain")
    told = wrods("check", models)
    assert told.exit_code == 2 and "reader_group" in told.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("fresh: {items: fresh}", "fresh: {items: released}"), "design.between.items_from: "),
        (
            ("fresh: {items: fresh}", "fresh: {texts: {texts/task.md: texts/keys.md}}"),
            "design.between.items_from: ",
        ),
        (("k4: {exemplars: 4}", "k4: {exemplars: 4, items: fresh}"), "items_from and examples"),
        (("    from: ", "    fresh: true\n    from: "), "`from:`"),
        (
            ("  between:       ", "  factors: {seen: {whole: none, other: Sub}}\n  between:       "),
            "design.factors",
        ),
        (("fresh: {items: fresh}", "fresh: {items: frsh}"), "released"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(tmp_path, shared, change, said):
    with pytest.raises(UserError) as error:
        made(tmp_path / "s", shared / "data", *SMALL, *FEW, change)
    assert said in str(error.value) and "study.yaml, line" in str(error.value)


@pytest.mark.parametrize("more", [[], ["--corrected"]])
def test_baselines_choose_among_symbols_whoever_words_the_prompt(tmp_path, shared, more):
    folder = lettered(tmp_path / "letters", shared / "data", *more)
    for name in ("random", "always_a", "oracle"):
        worked("run", folder, "--model", f"baseline:{name}")
    with opened_study(folder) as opened:
        trials = load(hand_over(opened.study, opened.store, tmp_path / "tables")).trials
    assert set(trials["response_status"]) == {"valid"}
    right = trials.groupby("reader")["correct"].mean()
    assert right["baseline:oracle"] == 1 and 0.1 < right["baseline:random"] < 0.4
    assert right["baseline:always_a"] < 0.5


def lettered(folder: Path, data: Path, *more: str) -> Path:
    """Make and build the study of letter geometry."""
    worked("new", folder, "--from", "h-test", "--part", "geometry", "--data", data, *more)
    worked("build", folder)
    return folder


def said(body: dict[str, Any]) -> str:
    """Answer as a chatty model: now a letter, now a sentence, now that it cannot tell; of symbols always the second."""
    text = last_text(body)
    if "own words" in text:
        return "Lines of A have a capital."
    if "Label" not in text:
        return text.splitlines()[2]
    return ("A", "B", "I cannot tell", "Label: B", "The answer is A")[sum(text.encode()) % 5]


def shown(folder: Path, tables: Path, *commands: list[str]) -> Material:
    """Carry commands out on a study and hand its tables over."""
    for command in commands:
        worked(command[0], folder, *command[1:])
    with opened_study(folder) as opened:
        return Material(load(hand_over(opened.study, opened.store, tables)))


@pytest.mark.full
def test_the_template_runs_from_a_folder_to_the_papers_tables(tmp_path, shared, monkeypatch):
    """People-like readers, tiny models of this machine (one with thoughts), one behind a server, and a baseline."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    models = [tiny_llama(tmp_path / name, seed=seed) for seed, name in enumerate(("one", "two"))]
    local = [f'use: "hf:{model}", device: cpu, dtype: float32' for model in models]
    folder, letters = tmp_path / "s", tmp_path / "letters"
    with ScriptedOpenAI(answer=said) as server:
        talker = f'talker: {{use: "openai:{server.model}", base_url: "{server.url}"}}'
        who = (
            f'guesser: {{use: "baseline:random"}}\n    {talker}\n'
            f"    small: {{{local[0]}, family: Tiny, parameters: 1M}}\n"
            f"    large: {{{local[1]}, family: Tiny, parameters: 2M}}\n"
            f"    thinks: {{{local[1]}, strategy: chain_of_thought, max_tokens: 4}}"
        )
        made(folder, shared / "data", *SMALL, *FEW, ('guesser: {use: "baseline:random"}', who))
        run = ["run", "--not-registered"]
        material = shown(folder, tmp_path / "tables", ["build"], run, ["simulate", "--readers", "12"])
        file = lettered(letters, shared / "data") / "study.yaml"
        change(file, ("    guesser: {", f"    {talker}\n    guesser: {{"), count=1)
        questions = shown(letters, tmp_path / "answers", ["build"], run)
    tables = tables_in(chapter_of(write, material))
    assert {"h_test_full_released", "h_test_full_fresh", "h_test_makings", "h_test_thoughts"} <= set(tables)
    assert {"h_test_parsers", "h_test_labels", "h_test_read", "h_test_rules_tasks"} <= set(tables)
    rows = {row[0] for row in tables["h_test_full_matched"].rows}
    assert {"k = 4", "k = 14", "Rhyme", "Uppercase", "Average"} == rows
    assert "Rhyme" in {row[0] for row in tables["h_test_full_fresh"].rows}
    # "I cannot tell" is A to the published parser, and no answer to a correct one
    (talked,) = (
        one
        for one in both_parsers(asked_rows(material), material.tables.folder)
        if one.task == "average" and one.reader_group == "talker"
    )
    assert talked.unread_published == 0 and talked.unread_corrected > 0.05 and talked.turned > 0
    assert write_geometry(questions) is not None
    worked("reproduce", "h-test", tmp_path / "tables", tmp_path / "answers", "--out", tmp_path / "o")
    assert "talker" in (tmp_path / "o" / "figure_5_numbers.csv").read_text("utf-8-sig")
    assert (tmp_path / "o" / "figure_5.png").exists()


def seen(parts: list[dict[str, Any]], texts: dict[str, str]) -> str:
    """Answer as a model that sees capitals and has learnt from its first example which letter they have."""
    pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    lines = [texts.get(url, "") for url in pictures]
    after = [part["text"] for part in parts if part["type"] == "text" and "Label:" in part["text"]]
    labels = [found[1] for one in after if (found := re.search(r"Label: ([AB])", one))]
    if not labels:
        return "A"  # an attention check has no examples
    has_capital = [any(letter.isupper() for letter in line) for line in lines]
    other = {"A": "B", "B": "A"}
    return labels[0] if has_capital[-1] == has_capital[0] else other[labels[0]]


@pytest.mark.full
def test_the_image_arm_runs_from_a_folder_to_text_beside_pictures(tmp_path, shared, monkeypatch):
    """A server that sees capitals in pictures and guesses at text, and a tiny image-text model, each once with either."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    folder, llava = tmp_path / "s", tiny_llava(tmp_path / "llava")
    texts: dict[str, str] = {}

    def looked(body: dict[str, Any]) -> str:
        parts = body["messages"][-1]["content"]
        if isinstance(parts, str):
            return said(body)
        if "own words" in last_text(body):
            return "Lines of A have a capital."
        return seen(parts, texts)

    with ScriptedOpenAI(answer=looked) as server:
        at = f'use: "openai:{server.model}", base_url: "{server.url}"'
        here = f'use: "hf:{llava}", device: cpu, dtype: float32'
        who = (
            f"reads: {{{at}}}\n    looks: {{{at}, presentation: image}}\n"
            f"    blind: {{{here}}}\n    sees: {{{here}, presentation: image, examples_presentation: text}}"
        )
        small = made(
            folder,
            shared / "data",
            *SMALL,
            *FEW,
            ("k14: {exemplars: 14}", "k6: {exemplars: 6}"),
            ("[k14 - k4]", "[k6 - k4]"),
            ("tasks: [rhyme, uppercase]", "tasks: [uppercase]"),
            ('guesser: {use: "baseline:random"}', who),
            ("between: [human]", "between: [reads, looks]"),
            ("correct ~ items_from", "correct ~ reader_group * items_from"),
        )
        for item in make_items(small).items:
            if text := item.shown.get("text"):
                texts[Picture.of(text).data_url] = text
        material = shown(folder, tmp_path / "tables", ["build"], ["run", "--not-registered"])
    trials = material.tables.trials
    told = trials.groupby("reader")["presentation"].unique().map(list).to_dict()
    assert told == {"reads": ["text"], "looks": ["image"], "blind": ["text"], "sees": ["image"]}
    asked_of = asked_rows(material)
    matched = asked_of[(asked_of["making"] == "matched") & (asked_of["reader"] == "looks")]
    # every line of the task came as its own picture, behind its own examples, with labels either way round
    assert len(matched) == 16 and matched["right"].all() and matched["label_map"].nunique() == 2
    found = rows_by_head(tables_in(chapter_of(write, material))["h_test_pictures"])
    heads = ["blind (text), sees (pictures, examples as text)", "reads (text), looks (pictures)"]
    assert list(found) == heads
    first = found[heads[1]][0]
    assert first[0] == "Uppercase" and first[1] == "12" and float(first[4]) > 95 > float(first[3])


def asked_rows(material: Material) -> pd.DataFrame:
    """Return the analysed trials of a study of the ten tasks."""
    found = asked(material.tables)
    assert found is not None
    return found.trials


@pytest.mark.parametrize("template", ["h-test", "htest-people"])
def test_the_rubric_tells_raters_every_rule_that_is_stated(template):
    rubric = (template_folders()[template] / "rubric.md").read_text("utf-8")
    for task in TASKS:
        assert f"*{task.replace('_', ' ')}*: {rule(task).statement}" in rubric


def test_the_method_names_what_varies_between_sessions_what_levels_are_and_when_sessions_are_excluded(small):
    session = tell(small, make_items(small).items).session
    assert (
        small.between and all(name in session.lists for name in small.between) and "labels" in session.lists
    )
    assert all(session.levels[name][level] for name, levels in small.between.items() for level in levels)
    rules = small.get("analysis", "exclude", "sessions")
    assert rules and all(str(bound) in session.exclusion for bound in rules.values())
    assert not any(name in session.exclusion for name in rules)
