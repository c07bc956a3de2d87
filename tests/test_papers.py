"""The paper of docs/papers.md, as an installed package: made, checked, built, run and reported without a change to wrods."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.experiment.commands import change

ROOT = Path(__file__).resolve().parent.parent
FILE = re.compile(r"(?m)^`(?P<name>[\w./-]+)`\n\n```\w+\n(?P<text>.*?)^```$", re.DOTALL)
SOLVER = '''
from wrods.experiment.models import Reply


class Solver:
    """Names the option that has the letters of the word."""

    def __init__(self, settings):
        self.settings = settings

    def describe(self):
        return {"identity": {"kind": "solver", "model": self.settings.name}}

    def answer(self, requests, follow=None):
        for request in requests:
            (message,) = request.messages
            question, *options, last = message.content.splitlines()
            assert (question[:14], last) == ("Which word is ", "Answer with the word."), message.content
            right = next(one for one in options if sorted(one) == sorted(question[14:-1]))
            yield Reply(request.work_key, f"It is {right}.", "answered")

    def close(self):
        pass
'''


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page and a scripted engine, where pip would put them."""
    folder = tmp_path_factory.mktemp("site")
    files = {m["name"]: m["text"] for m in FILE.finditer((ROOT / "docs/papers.md").read_text("utf-8"))}
    assert len(files) == 11
    entries = (
        "[wrods.papers]\n" + files["pyproject.toml"].partition('[project.entry-points."wrods.papers"]\n')[2]
    )
    files |= {
        "solver.py": SOLVER,
        "anagrams-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: anagrams\nVersion: 1.0\n",
        "anagrams-1.0.dist-info/entry_points.txt": entries.replace('"', "")
        + "[wrods.engines]\nsolver = solver:Solver\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


WRODS = """
import atexit, json, sys
from wrods.experiment.cli import main
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
main()
"""
LIGHT = "|".join(
    (
        r"wrods\.experiment\.tuning(\.settings|\.record)?",
        r"wrods\.experiment\.papers\.inside(\.chapters)?",
        r"wrods\.analysis\.inside(\.hidden_states)?",
    )
)
"""What says whether a study trains models or keeps hidden states."""


def wrods(site: Path, *words: object, code: int = 0) -> str:
    """Run a command as an installed wrods does, with the package beside it; nothing of training and probing is imported."""
    done = subprocess.run(
        [sys.executable, "-c", WRODS, *map(str, words)],
        cwd=site,
        env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    loaded = [
        name for name in json.loads(done.stderr.splitlines()[-1]) if re.search(r"\.(tuning|inside)\b", name)
    ]
    assert [name for name in loaded if not re.fullmatch(LIGHT, name)] == []
    return done.stdout if code == 0 else done.stderr


def test_a_paper_of_another_package_goes_from_template_to_report(site: Path, tmp_path: Path) -> None:
    study = tmp_path / "mine"
    assert "Author (2026)" in wrods(site, "new", "--list")
    wrods(site, "new", study, "--from", "anagrams")
    assert "solve anagrams" in (study / "texts/consent.md").read_text("utf-8")
    wrods(site, "check", study)
    wrods(site, "build", study)
    items = [json.loads(line) for line in (study / "items.jsonl").read_text("utf-8").splitlines()]
    assert len(items) == 8 and {item["set"] for item in items} == {"anagrams"}
    ran = wrods(site, "run", study, "--model", "solver:first", "--not-registered", "--json")
    assert json.loads(ran)["models"][0]["answered"] == 8
    again = wrods(site, "score", study, "--parser", "anagrams", "--dry-run", "--json")
    assert json.loads(again)["responses"] == 8 and json.loads(again)["changed"] == 0
    wrods(site, "report", study)
    (page,) = study.glob("reports/*/report.html")
    (table,) = page.parent.glob("tables/*anagrams_solved.csv")
    assert table.name in page.read_text("utf-8") and "100.0" in table.read_text("utf-8-sig")


PRACTICE = """

def practice(study, settings, name):
    design = replace(item_design(study), set_name=name, role="practice", source="Author (2026)")
    made = word_items([settings["rule"]], design, foils={settings["rule"]: "mirror"}).items
    return [replace(item, condition={}) for item in made if item.condition["moved"] == "all"]
"""


def test_a_paper_of_another_package_makes_practice_items_of_a_rule(site: Path, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / "site")
    for name, old, new in (
        ("__init__.py", "    prompt=", '    practice={"anagrams": "items:practice"},\n    prompt='),
        ("items.py", "\n\ndef items", f"{PRACTICE}\n\ndef items"),
        ("templates/anagrams/study.yaml", "  - block:", "  - practice: {rule: candle}\n  - block:"),
    ):
        change(tmp_path / "site/anagrams" / name, (old, new), count=1)
    study = tmp_path / "practised"
    wrods(tmp_path / "site", "new", study, "--from", "anagrams")
    wrods(tmp_path / "site", "build", study)
    items = [json.loads(line) for line in (study / "items.jsonl").read_text("utf-8").splitlines()]
    assert [item["answer"] for item in items if item["role"] == "practice"] == ["candle"]


OWN = """

def kinds(study):
    return "tools", "places"


def few(study, faults):
    if study.get("materials", "anagrams", "words") == 3:
        raise UserError("three words are an odd number")


def kinds_of_items(study):
    made = word_items(list(FOILS), replace(item_design(study), set_name="anagrams", levels={"": "shuffle:all"}), foils=FOILS)
    return Made([replace(item, condition={"kind": kinds(study)[n % 2]}) for n, item in enumerate(made.items)])
"""


def test_items_of_another_package_s_paper_may_have_a_factor_by_themselves(site: Path, tmp_path: Path) -> None:
    shutil.copytree(site, tmp_path / "site")
    own = 'OwnFactor("kind", "anagrams", "items:kinds", {"none": "as it is", "blank": "no letters"}, check="items:few")'
    for name, old, new in (
        ("__init__.py", "import Paper", "import OwnFactor, Paper"),
        ("__init__.py", '"items:items"}', f'"items:kinds_of_items"}}, own_factors={{"anagrams": {own}}}'),
        ("items.py", "from wrods", "from wrods.stimuli.errors import UserError\nfrom wrods"),
        ("items.py", "\n\ndef items", f"{OWN}\n\ndef items"),
    ):
        change(tmp_path / "site/anagrams" / name, (old, new), count=1)
    study = tmp_path / "own"
    wrods(tmp_path / "site", "new", study, "--from", "anagrams")
    file = study / "study.yaml"
    text = file.read_text("utf-8")
    refused = wrods(tmp_path / "site", "check", study, code=2)
    assert "anagrams" in refused and "blank, no letters" in refused
    text = re.sub(r"(?m)^design:\n(  .*\n)+", "", text)
    file.write_text(re.sub(r"(?m)^analysis:\n(  .*\n)+", "", text), "utf-8")
    assert "tools, places" in wrods(tmp_path / "site", "check", study)
    wrods(tmp_path / "site", "build", study)
    items = [json.loads(line) for line in (study / "items.jsonl").read_text("utf-8").splitlines()]
    assert {item["condition"]["kind"] for item in items} == {"tools", "places"}
    file.write_text(text.replace("{words: 4}", "{words: 3}"), "utf-8")
    assert "an odd number" in wrods(tmp_path / "site", "check", study, code=2)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("itms:items", "anagrams.itms"),
        ("items:itms", "'itms'"),
    ],
)
def test_a_part_that_is_not_there_is_told_with_its_place(site: Path, place: str, told: str) -> None:
    asked = f"from stimuli.papers import Paper; Paper('anagrams', 'anagrams').part({place!r})"
    done = subprocess.run(
        [sys.executable, "-c", f"import wrods; {asked.replace('stimuli', 'wrods.stimuli')}"],
        cwd=site,
        env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    (error,) = (line for line in done.stderr.splitlines() if "UserError: paper 'anagrams'" in line)
    assert repr(place) in error and told in error


def test_a_setting_that_the_paper_s_schema_lacks_is_refused_with_its_line(site: Path, tmp_path: Path) -> None:
    study = tmp_path / "wrong"
    wrods(site, "new", study, "--from", "anagrams")
    change(study / "study.yaml", ("{words: 4}", "{wrods: 4}"))
    assert "anagrams.wrods" in wrods(site, "check", study, code=2)
