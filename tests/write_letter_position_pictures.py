"""Takes the pictures of screens in docs/letter-position.md: ``python -m tests.write_letter_position_pictures``.

A simulated reader goes through the real page in Chromium, up to the first trial that shows the condition of the picture. Which
item that is differs from run to run, for sessions differ in their order: the text is printed, for the page names its words.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

from PIL import Image

from experiment.building import build_study
from experiment.checking import load_study
from experiment.cli.new import copy_template
from experiment.people.app import LocalServer
from experiment.simulated import read_truth
from experiment.simulated.page import BROWSERS, _Visit
from experiment.simulated.reader import SimulatedReader
from experiment.store import open_store
from experiment.study import Study

if TYPE_CHECKING:
    from playwright.sync_api import Page

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
SHOWN = {"width": 1366, "height": 560}
DRAWN_MS = 800
"""Until what is on the screen has been drawn, fonts too."""


@dataclass(frozen=True)
class Screen:
    """A picture: which part of the template it is of, and in which condition."""

    part: str
    condition: str


PICTURES = {
    "person-moving-window": Screen("moving-window", "TL1-initial"),
    "person-whole-sentence": Screen("whole-sentence", "TL1-internal"),
    "person-lexical-decision": Screen("words", "TL-external"),
}


class _Taken(Exception):
    """The picture is there."""


class _Photographer(_Visit):
    """Goes through the page to the first trial that shows a condition, and takes its picture there."""

    def __init__(self, page: Page, study: Study, condition: str, given_pass: str) -> None:
        super().__init__(
            page,
            SimulatedReader("S001", study, read_truth(study.folder / "simulated.json")),
            50.0,
            given_pass,
        )
        self.wanted = {
            text: item.changes
            for item in study.items
            if item.role == "test" and item.condition.get("change") == condition
            for text in item.shown.values()
        }
        self.shown, self.picture = "", b""

    def _step(self, step: Mapping[str, Any], trial: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        if step["text"] in self.wanted and step is trial["steps"][0]:
            self.page.locator(f"section.trial.{step['step']}").first.wait_for()
            if step.get("as") == "moving_window":
                for _ in range(int(self.wanted[step["text"]][0]["word"]) + 1):
                    self.page.wait_for_timeout(100)
                    self.page.keyboard.press("Space")
            self.page.wait_for_timeout(DRAWN_MS)
            self.shown, self.picture = str(step["text"]), self.page.screenshot()
            raise _Taken
        super()._step(step, trial, payload)


def without_practice(folder: Path, part: str) -> Study:
    """Make and build a part of the template, without its practice items."""
    copy_template("letter-position", folder, part=part)
    file = folder / "study.yaml"
    kept = [line for line in file.read_text("utf-8").splitlines() if not line.startswith("  - practice:")]
    file.write_text("\n".join(kept) + "\n", "utf-8")
    build_study(load_study(folder))
    return load_study(folder)


def taken(folder: Path, screen: Screen) -> tuple[str, bytes]:
    """Take a picture: the text that it shows, and the picture as PNG."""
    from playwright.sync_api import sync_playwright

    study = without_practice(folder, screen.part)
    program = next(found for name in BROWSERS if (found := which(name)))
    with open_store(folder) as store, LocalServer(study, store) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        links = server.links
        page = browser.new_page(viewport=SHOWN)
        visitor = _Photographer(page, study, screen.condition, links.simulated)
        try:
            visitor.run(links.page)
        except _Taken:
            pass
        finally:
            browser.close()
    return visitor.shown, visitor.picture


def main() -> None:
    """Take all of them."""
    for name, screen in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            text, picture = taken(Path(folder) / "study", screen)
        assert picture, f"no trial of {screen.part} showed {screen.condition}"
        print(f"{name}: {text}")
        with Image.open(BytesIO(picture)) as drawn:
            drawn.convert("RGB").quantize(64).save(IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
