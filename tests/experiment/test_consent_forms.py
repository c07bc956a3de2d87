"""Consent forms of templates: what each says, and that a text with placeholders reaches nobody but pilots."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from experiment.cli.new import templates
from experiment.study.texts import render_text
from experiment.templates import consent_form, consent_source, parts_of
from tests.experiment.commands import worked, wrods

ELEMENTS = (
    "purpose", "tasks", "duration", "risks", "payment", "data", "withdrawal", "contact", "ethics approval",
)  # fmt: skip
FORMS = [(name, part) for name in templates() for part in (parts_of(name) or {"": None})]
FILLED = ("payment", "data", "withdrawal", "contact", "ethics approval")
"""Elements that only the researcher can complete."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "mine"
    worked("new", folder)
    worked("build", folder)
    return folder


@pytest.fixture
def study(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "mine")


@pytest.fixture(autouse=True)
def _served_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiment.people.server.StudyServer.run", lambda _: None)


def complete(text: Path) -> None:
    text.write_text(re.sub(r"\[FILL IN[^\]]*\]", "written", text.read_text("utf-8")), "utf-8")


@pytest.mark.parametrize(("template", "part"), FORMS, ids="-".join)
def test_every_template_s_form_has_the_nine_elements_with_their_placeholders(template, part):
    form = render_text(consent_form(template, part or None))
    assert [one["element"] for one in consent_source()["elements"]] == [*ELEMENTS]
    plain = " ".join(form.text.split())
    missing = " ".join(one.words for one in form.placeholders)
    for one in consent_source()["elements"]:
        assert f"{one['heading']}. " in plain.replace("**", "")
        fixed = re.split(r"\[FILL IN[^\]]*\]|\{\w+\}", one["minimum"])
        assert all(words.strip() in plain for words in fixed)
        named = re.findall(r"\[FILL IN[^\]]*\]", one["minimum"])
        assert bool(named) == (one["element"] in FILLED) and all(words in missing for words in named)
    assert plain.count("[FILL IN") == len(form.placeholders)
    assert "{" not in plain and "anonym" not in plain.lower()


def test_a_study_with_placeholders_is_served_to_pilots_only(study):
    done = wrods("serve", study, "--port", 0, "--no-browser")
    assert done.exit_code == 2
    line = (study / "texts/consent.md").read_text("utf-8").splitlines()
    (of_date,) = [number for number, words in enumerate(line, 1) if "[FILL IN: date" in words]
    assert f"texts/consent.md, line {of_date}: [FILL IN: date, the same as" in done.output
    assert f"wrods serve {study} --pilot" in done.output
    assert not (study / "study.db").exists()
    worked("serve", study, "--port", 0, "--no-browser", "--pilot")
    complete(study / "texts/consent.md")
    worked("build", study)
    worked("serve", study, "--port", 0, "--no-browser", "--not-registered")


def test_placeholders_count_in_study_yaml_and_in_a_lab_s_own_texts(study):
    complete(study / "texts/consent.md")
    (study / "texts.json").write_text('{"texts": {\n"welcome": "Welcome to [FILL IN: laboratory]"}}', "utf-8")
    file = study / "study.yaml"
    remarked = f"# [FILL IN: a remark]\n{file.read_text('utf-8')}".replace(
        "seed:", "seed:  # [FILL IN: one]\n "
    )
    file.write_text(remarked, "utf-8")
    done = wrods("serve", study, "--port", 0, "--no-browser")
    assert done.exit_code == 2 and "texts.json, line 2: [FILL IN: laboratory]" in done.output
    assert "1 placeholder" in done.output
    (study / "texts.json").unlink()
    title = re.sub(
        r"(?m)^  title: .*$", '  title: "Reading [FILL IN: what]"', file.read_text("utf-8"), count=1
    )
    file.write_text(title, "utf-8")
    done = wrods("serve", study, "--port", 0, "--no-browser")
    assert done.exit_code == 2 and "study.yaml, line" in done.output and "[FILL IN: what]" in done.output


def test_a_plan_is_not_frozen_with_placeholders_unless_only_models_take_part(study):
    done = wrods("freeze", study)
    assert done.exit_code == 2 and "[FILL IN: " in done.output
    assert not (study / "freeze.json").exists()
    file = study / "study.yaml"
    file.write_text(re.sub(r"(?m)^  wanted: .*\n", "", file.read_text("utf-8")), "utf-8")
    worked("freeze", study)


def test_check_names_what_is_to_be_completed_and_finds_the_study_valid(study):
    done = wrods("check", study)
    assert done.exit_code == 0 and "[FILL IN: " in done.output
    numbers = json.loads(wrods("check", study, "--json").output)
    assert len(numbers["placeholders"]) == done.output.count("texts/consent.md, line") > 9
    complete(study / "texts/consent.md")
    assert "FILL IN" not in wrods("check", study).output
