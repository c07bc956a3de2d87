"""Takes the pictures of reports in docs/real-input.md: ``python -m tests.write_real_input_pictures [h-test|recovery]``.

Builds the page's two studies from the released files (``$WRODS_SHARED``), lets the local model and the baselines answer, writes the
reports and takes the opening of each in Chromium. The reader that a server answered for is left out: its answers are those of the
local model where it gives text, and none where labels' probabilities are asked.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner
from playwright.sync_api import sync_playwright

from experiment.cli import main

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
STUDIES = ("h-test", "recovery")
SHOWN = {"width": 800, "height": 1680}


def study_of(name: str, folder: Path) -> Path:
    """Copy a study with paths that hold where the copy lies, without the reader behind a server."""
    made = folder / name
    shutil.copytree(ROOT / "docs" / "studies" / name, made)
    design = (made / "study.yaml").read_text("utf-8")
    shared = Path(os.environ.get("WRODS_SHARED", ROOT.parent / "shared")).resolve()
    shutil.copytree(ROOT / "experiment" / "demo" / "model", folder / "restorer", dirs_exist_ok=True)
    design = design.replace("hf:../../../experiment/demo/model", "hf:../restorer")
    design = design.replace("../../../../shared", str(shared))
    design = re.sub(r"\n    served: .*", "", design)
    (made / "study.yaml").write_text(design, "utf-8")
    return made


def reported(study: Path) -> Path:
    """Build, run and report a study; return the report's page."""
    for words in (("build",), ("run", "--not-registered"), ("report",)):
        done = CliRunner().invoke(main, [words[0], str(study), *words[1:]])
        if done.exit_code:
            raise SystemExit(f"wrods {' '.join(words)}: {done.output}")
    return max((study / "reports").glob("*/report.html"))


def take(names: list[str]) -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = {name: reported(study_of(name, Path(folder))) for name in names}
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, page in pages.items():
            view = browser.new_page(viewport=SHOWN)
            view.goto(page.as_uri())
            view.screenshot(path=IMAGES / f"real-{name}-report.png")
        browser.close()


if __name__ == "__main__":
    take(sys.argv[1:] or list(STUDIES))
