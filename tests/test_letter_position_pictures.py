"""The pictures of screens in docs/letter-position.md are those that their program takes, of the parts that the page names."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.write_letter_position_pictures import IMAGES, PICTURES, SHOWN, taken


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
    text, picture = taken(tmp_path / "study", PICTURES[name])
    assert text and text not in (
        tmp_path / "study" / f"{'words' if 'lexical' in name else 'sentences'}.csv"
    ).read_text("utf-8")
    with Image.open(BytesIO(picture)) as screen:
        assert screen.size == (SHOWN["width"], SHOWN["height"])
        middle = screen.convert("L").crop((300, 240, 1066, 330))
        assert middle.getextrema()[0] < 80 < 200 < middle.getextrema()[1]  # dark letters on a light ground
