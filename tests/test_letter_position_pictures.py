"""The pictures of screens in docs/letter-position.md are those that their program takes, of the parts that the page names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.write_letter_position_pictures import IMAGES, PICTURES, SHOWN

ROOT = Path(__file__).resolve().parent.parent


def test_the_pictures_of_the_page_are_those_that_are_taken() -> None:
    page = (IMAGES.parent / "letter-position.md").read_text("utf-8")
    assert re.findall(r"\(images/(person-[\w-]+)\.png\)", page) == list(PICTURES)
    for name, screen in PICTURES.items():
        after = page.split(f"(images/{name}.png)")[1]
        assert f"`{screen.part}`" in after.split("\n\n")[1]


@pytest.mark.full
@pytest.mark.browser
@pytest.mark.parametrize("name", list(PICTURES))
def test_a_screen_of_the_template_can_be_taken(tmp_path: Path, name: str) -> None:
    # in a process of its own: a browser that other tests hold open leaves no room for a second one
    code = (
        "import sys, json; from pathlib import Path; from tests.write_letter_position_pictures import PICTURES, taken; "
        "text, picture = taken(Path(sys.argv[1]) / 'study', PICTURES[sys.argv[2]]); "
        "(Path(sys.argv[1]) / 'taken.png').write_bytes(picture); print(json.dumps(text))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path, name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = json.loads(done.stdout.splitlines()[-1])
    assert text and text not in (
        tmp_path / "study" / f"{'words' if 'lexical' in name else 'sentences'}.csv"
    ).read_text("utf-8")
    with Image.open(tmp_path / "taken.png") as screen:
        assert screen.size == (SHOWN["width"], SHOWN["height"])
        middle = screen.convert("L").crop((300, 240, 1066, 330))
        assert middle.getextrema()[0] < 80 < 200 < middle.getextrema()[1]  # dark letters on a light ground
