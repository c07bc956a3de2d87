"""Takes twelve published designs through Chromium, a small local model and simulated readers, and writes what comes back.

``python -m tests.walk_designs [NAME …]`` prints the rows of the table in docs/classics.md, a minute or two each. Ten designs
are the parts of the template classics; two are studies of ``experiment/published_designs``.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import TimeoutError as PlaywrightTimeout
from playwright.sync_api import sync_playwright

from analysis import load
from analysis.parameter_recovery import recovered, recovery_plans
from analysis.plan_runner import carry_out
from experiment.checking import load_study
from experiment.exporting.export import hand_over
from experiment.people.app import LocalServer
from experiment.store import Store, open_store, records
from experiment.study import Study
from experiment.templates import parts_of
from tests.conftest import PATIENCE_S, new_context, program
from tests.experiment.commands import worked
from tests.experiment.models.tiny_seers import tiny_llava
from tests.experiment.test_published_designs import MODEL, written

READERS = 24
TIMES = {"intercept": 6.4, "participant_sd": 0.15, "item_sd": 0.04, "residual_sd": 0.2}
RIGHT = {"intercept": 3.0, "effects": {}, "participant_sd": 0.4, "item_sd": 0.3}
TRUTHS: dict[str, Any] = {
    "three-soas": {
        "relation": {"unrelated": 0.02}, "relation x soa": {"unrelated x medium": 0.05, "unrelated x long": 0.15},
    },
    "neighbourhood": {"frequency": {"rare": 0.15}, "frequency x neighbours": {"rare x many": -0.1}},
}  # fmt: skip
"""Effects on log times of the readers of designs that no template has."""
DESIGNS = [*parts_of("classics"), *TRUTHS]
SHOWN = """() => {
  const has = (what) => document.querySelector(what) !== null, trial = document.querySelector(".trial");
  return {
    kind: trial?.className, text: trial?.innerText, heading: document.querySelector("h2")?.innerText,
    isPage: has("#wrods-stage button.main"), isSlider: has(".trial input[type=range]"),
    maze: [...document.querySelectorAll(".trial .maze .stimulus")].map((word) => word.innerText.trim()),
  };
}"""
ACCEPTED = ("en", "computer", "yes", "7", "right")


def made(folder: Path, name: str) -> str:
    """Make a study with a local model; return the model's name."""
    if name in TRUTHS:
        folder.mkdir()
        written(folder, name)
        truth = {"accuracy": RIGHT, "time": TIMES | {"effects": TRUTHS[name]}}
        (folder / "simulated.json").write_text(json.dumps(truth), "utf-8")
        return "qwen"
    worked("new", folder, "--from", "classics", "--part", name)
    return with_model(folder)


def with_model(folder: Path) -> str:
    """Do what the comments of a template say of a model, with a small one; return its name."""
    file = folder / "study.yaml"
    lines, measure, name = file.read_text("utf-8").splitlines(), "", ""
    for place, line in enumerate(lines):
        if (found := re.match(r"    # ([\w-]+): \{use: .*?(, presentation: image)?\}", line)) is not None:
            name, image = found[1], found[2] or ""
            model = tiny_llava(folder / "model") if image else MODEL
            lines[place] = f'    {name}: {{use: "hf:{model}", device: cpu{image}}}'
        elif "# with a model" in line or "# to a model" in line or "with a model that" in line:
            told = re.search(r"measure: \{.*?\}", line)
            measure = told[0] if told else ""
        elif measure and line.startswith("      measure:"):
            lines[place] = f"      {measure}"
        elif line == "      between: [human]":
            lines[place], measure = f"      between: [human, {name}]", ""
    file.write_text("\n".join(lines) + "\n", "utf-8")
    return name


def keys_of(plan: dict[str, Any]) -> list[tuple[list[str], str]]:
    """Return the words of each choice of a plan, of mazes too, and the key of the right one."""
    found = []
    for trial in (trial for screen in plan["screens"] for trial in screen.get("trials", ())):
        for step in trial["steps"]:
            if step["step"] == "choose":
                keys = dict(zip(step["responses"], step["keys"], strict=True))
                words = [step[name] for name in ("text", "ask") if step[name]]
                found.append((words, keys.get(trial["answer"], step["keys"][0])))
            elif step["step"] == "read" and step["as"] == "maze":
                for pair in zip(step["parts"], step["foils"], step["sides"], strict=True):
                    is_left = pair[2] == "left"
                    found.append(
                        (list(pair[:2] if is_left else pair[1::-1]), step["keys"][0 if is_left else 1])
                    )
    return found


def walk(page: Any, store: Store, study: Study) -> None:
    """Take part as a person who answers correctly, until the page says thank you."""
    keys: list[tuple[list[str], str]] = []
    end = time.monotonic() + 10 * PATIENCE_S
    while (shown := page.evaluate(SHOWN))["heading"] != "Thank you":
        assert time.monotonic() < end, page.locator("#wrods-stage").inner_text()
        if shown["kind"] and not keys:
            with store.read() as connection:
                (row,) = records.sessions_overview(connection, study.id)
                session = records.session(connection, row["session_id"])
                assert session is not None
                keys = keys_of(session["plan"])
        with suppress(PlaywrightTimeout):  # the page may have gone on since it was looked at
            if shown["kind"]:
                answer(page, shown, keys)
            elif shown["isPage"]:
                fill_in(page)
                page.locator("#wrods-stage button.main").first.click()
        page.wait_for_timeout(10)


def fill_in(page: Any) -> None:
    if page.locator("#wrods-participant").count():
        page.fill("#wrods-participant", "1")
    for question in page.locator("fieldset.question").all():
        values = [one.get_attribute("value") for one in question.locator("input").all()]
        question.locator(f'input[value="{next(one for one in values if one in ACCEPTED)}"]').check()
    for listed in page.locator(".question select").all():
        listed.select_option("en")
    for field in page.locator(".question input[type=text]").all():
        field.fill("30")


def answer(page: Any, shown: dict[str, Any], keys: list[tuple[list[str], str]]) -> None:
    if "choose" in shown["kind"]:
        key = next((key for words, key in keys if all(word in shown["text"] for word in words)), "none")
        if key != "none":  # a nonword of go/no-go has no key
            page.keyboard.press("Space" if key == "space" else key)
    elif shown["isSlider"]:
        page.locator(".trial input[type=range]").click()
        page.locator(".trial .actions button").first.click()
    elif "rate" in shown["kind"]:
        page.keyboard.press("4")
    elif "answer" in shown["kind"]:
        page.keyboard.type("word")
        page.keyboard.press("Enter")
    elif shown["maze"]:
        page.keyboard.press(next((key for words, key in keys if words == shown["maze"]), "f"))
    elif "read" in shown["kind"]:
        for _ in range(3):
            page.keyboard.press("Space")


def measured(name: str, folder: Path, chromium: Any) -> str:
    """Take a design through its whole path; return its row of the table."""
    study_folder = folder / name
    model = made(study_folder, name)
    worked("check", study_folder)
    worked("build", study_folder)
    study = load_study(study_folder)
    context = new_context(chromium)
    page, troubles = context.new_page(), list[str]()
    page.set_default_timeout(3000)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    # a copy, since simulated readers stand in for people only where there are none
    with (
        open_store(shutil.copytree(study_folder, folder / "walked")) as store,
        LocalServer(study, store) as server,
    ):
        page.goto(server.links.page)
        walk(page, store, study)
        with store.read() as connection:
            (walked,) = records.sessions_overview(connection, study.id)
    context.close()
    assert walked["state"] == "finished" and walked["n_trials"] >= walked["planned_trials"]
    assert not troubles
    worked("run", study_folder, "--not-registered")
    worked("simulate", study_folder, "--readers", READERS)
    with open_store(study_folder) as store:
        tables = load(hand_over(study, store, study_folder / "handover"))
    answers = tables.trials[tables.trials["reader"] == model]
    assert len(answers) and (answers["response_status"] != "error").all()
    rows = []
    for plan in recovery_plans(tables):
        rows += [
            f"{one.label} ({one.measure})".replace("|", "/")
            + f": {one.truth:.2f} → {one.estimate:.2f} [{one.low:.2f}, {one.high:.2f}]"
            for one in recovered(carry_out(plan, tables), tables)
            if one.low is not None and one.high is not None
        ]
    return f"| {name} | {walked['n_trials']} | {len(answers)} | {'; '.join(rows)} |"


if __name__ == "__main__":
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=["--no-sandbox"])
        for design in sys.argv[1:] or DESIGNS:
            with tempfile.TemporaryDirectory() as place:
                print(measured(design, Path(place), browser), flush=True)
