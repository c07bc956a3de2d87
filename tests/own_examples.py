"""The example studies of docs/own-trials.md, written as folders from the blocks of the page."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "own-trials.md"
_BLOCK = re.compile(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TEXTS = {
    "consent.md": "# Consent\n\nYou may stop at any time.\n",
    "debrief.md": "# Thank you\n\nThat was all.\n",
}


def write_examples(folder: Path) -> dict[str, Path]:
    """Write each example of the page as a study's folder; return the folders by the study's id."""
    studies: dict[str, Path] = {}
    for section in PAGE.read_text("utf-8").split("\n## Example: ")[1:]:
        blocks = dict(_BLOCK.findall(section))
        (name,) = re.findall(r"^study: (\S+)$", blocks["study.yaml"], re.MULTILINE)
        studies[name] = folder / name
        for path, text in (blocks | TEXTS).items():
            file = studies[name] / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    return studies
