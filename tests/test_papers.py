"""The paper of docs/papers.md, as an installed package: made, checked, built, run and reported without a change to wrods."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

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
import json, sys
from click.testing import CliRunner
from wrods.experiment.cli import main
done = [CliRunner().invoke(main, words, prog_name="wrods") for words in json.load(sys.stdin)]
print(json.dumps([[[one.exit_code, one.output] for one in done], sorted(sys.modules)]))
"""
LIGHT = "|".join(
    (
        r"wrods\.experiment\.tuning(\.settings|\.record)?",
        r"wrods\.experiment\.papers\.inside(\.chapters)?",
        r"wrods\.analysis\.inside(\.hidden_states)?",
    )
)
"""What says whether a study trains models or keeps hidden states."""


def wrods(site: Path, *commands: tuple[object, ...], code: int = 0) -> list[str]:
    """Run commands as an installed wrods does, with the package beside it; nothing of training and probing is imported."""
    done = subprocess.run(
        [sys.executable, "-c", WRODS],
        input=json.dumps([[str(word) for word in words] for words in commands]),
        cwd=site,
        env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}", "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results, modules = json.loads(done.stdout.splitlines()[-1])
    assert [exit_code for exit_code, _ in results] == [code] * len(commands), results
    loaded = [name for name in modules if re.search(r"\.(tuning|inside)\b", name)]
    assert [name for name in loaded if not re.fullmatch(LIGHT, name)] == []
    return [output for _, output in results]


def items_of(study: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (study / "items.jsonl").read_text("utf-8").splitlines()]


def test_a_paper_of_another_package_goes_from_template_to_report(site: Path, tmp_path: Path) -> None:
    study = tmp_path / "mine"
    listed, *_, ran, again, _ = wrods(
        site,
        ("new", "--list"),
        ("new", study, "--from", "anagrams"),
        ("check", study),
        ("build", study),
        ("run", study, "--model", "solver:first", "--not-registered", "--json"),
        ("score", study, "--parser", "anagrams", "--dry-run", "--json"),
        ("report", study),
    )
    assert "Author (2026)" in listed
    assert "solve anagrams" in (study / "texts/consent.md").read_text("utf-8")
    items = items_of(study)
    assert len(items) == 8 and {item["set"] for item in items} == {"anagrams"}
    assert json.loads(ran)["models"][0]["answered"] == 8
    assert json.loads(again)["responses"] == 8 and json.loads(again)["changed"] == 0
    (page,) = study.glob("reports/*/report.html")
    (table,) = page.parent.glob("tables/*anagrams_solved.csv")
    assert table.name in page.read_text("utf-8") and "100.0" in table.read_text("utf-8-sig")
    change(study / "study.yaml", ("{words: 4}", "{wrods: 4}"))
    (refused,) = wrods(site, ("check", study), code=2)
    assert "anagrams.wrods" in refused


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
    wrods(tmp_path / "site", ("new", study, "--from", "anagrams"), ("build", study))
    assert [item["answer"] for item in items_of(study) if item["role"] == "practice"] == ["candle"]


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
    study, free, odd = (tmp_path / name for name in ("own", "free", "odd"))
    wrods(tmp_path / "site", *(("new", folder, "--from", "anagrams") for folder in (study, free, odd)))
    text = re.sub(r"(?m)^(design|analysis):\n(  .*\n)+", "", (free / "study.yaml").read_text("utf-8"))
    (free / "study.yaml").write_text(text, "utf-8")
    (odd / "study.yaml").write_text(text.replace("{words: 4}", "{words: 3}"), "utf-8")
    confounded, uneven = wrods(tmp_path / "site", ("check", study), ("check", odd), code=2)
    assert "anagrams" in confounded and "blank, no letters" in confounded
    assert "an odd number" in uneven
    checked, _ = wrods(tmp_path / "site", ("check", free), ("build", free))
    assert "tools, places" in checked
    assert {item["condition"]["kind"] for item in items_of(free)} == {"tools", "places"}


def test_a_part_that_is_not_there_is_told_with_its_place(site: Path) -> None:
    code = """
import wrods
from wrods.stimuli.errors import UserError
from wrods.stimuli.papers import Paper
for place in ("itms:items", "items:itms"):
    try:
        Paper("anagrams", "anagrams").part(place)
    except UserError as error:
        print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=site,
        env=os.environ | {"PYTHONPATH": f"{site}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    no_module, no_function = (line for line in done.stdout.splitlines() if "paper 'anagrams'" in line)
    assert "'itms:items'" in no_module and "anagrams.itms" in no_module
    assert "'items:itms'" in no_function and "'itms'" in no_function
