"""Items as pictures: what is drawn, in which look, where it stands in a prompt, and what cannot be drawn."""

from __future__ import annotations

import re

import pytest
from PIL import Image, ImageChops

from experiment.models.pictures import INK, LINE, MARGIN, MARK, PAPER, SIZE, Picture, picture_of
from experiment.models.prompts.prompter import Prompter
from stimuli.errors import UserError
from tests.conftest import ROOT


def ink_of(picture: Picture) -> tuple[int, int, int, int] | None:
    image = picture.image()
    return ImageChops.difference(image, Image.new("RGB", image.size, PAPER)).getbbox()


def test_a_picture_has_the_look_of_the_participants_pages():
    style = (ROOT / "static" / "src" / "style.css").read_text("utf-8")
    root = style[: style.index("@media")]
    assert re.search(r"--paper: (#\w+)", root)[1] == PAPER
    assert re.search(r"--ink: (#\w+)", root)[1] == INK
    stimulus = re.search(r"\.stimulus \{(.*?)\}", style, re.DOTALL)[1]
    rem = float(re.search(r"html \{ font-size: ([\d.]+)%", style)[1]) / 100 * 16
    assert float(re.search(r"--stimulus-size, ([\d.]+)rem", stimulus)[1]) * rem == pytest.approx(SIZE)
    assert float(re.search(r"line-height: ([\d.]+)", stimulus)[1]) == LINE
    assert "var(--mono)" in stimulus and re.search(r'--mono: "Source Code Pro Variable"', root)


def test_the_same_text_is_the_same_pixels_and_another_text_others():
    one, same, other = (
        Picture.of("an Artist runs"),
        Picture.of("an Artist runs"),
        Picture.of("an artist runs"),
    )
    assert one.sha256 == same.sha256 != other.sha256
    assert one.png == same.png
    assert picture_of(one.to_json()) == one


def test_letters_stand_in_their_cells_and_nothing_is_cut_off():
    picture = Picture.of("Qgj|", ())
    left, top, right, bottom = ink_of(picture)
    assert (picture.width, picture.height) == picture.image().size
    assert left >= MARGIN and right <= picture.width - MARGIN
    assert top >= MARGIN and bottom <= picture.height - MARGIN
    wide = Picture.of("Qgj|x")
    assert wide.width - picture.width in (17, 18)


def test_lines_are_those_of_the_plan_else_those_of_sixty_four_cells():
    text = "a word and another one " * 5
    assert Picture.of(text.strip()).lines == tuple(
        line for line in Picture.of(text.strip()).text.split("\n") if len(line) <= 64
    )
    assert Picture.of("one two", ["one", "two"]).lines == ("one", "two")
    assert Picture.of("one two", ["one", "two"]).height > Picture.of("one two").height


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "presentation: text"),
        ("x" * 117, "44 lines of 116"),
        ("\n".join("x" * 45), "45 lines"),
        ("שלום", "U\\+05E9"),
        ("漢", "U\\+6F22"),
        ("x\u0323\u0301", "U\\+0323"),
        (MARK, "U\\+FFFC"),
    ],
)
def test_what_cannot_be_a_picture_is_refused_with_the_reason(text, said):
    with pytest.raises(UserError, match=said):
        Picture.of(text)


def test_a_picture_that_is_drawn_otherwise_now_is_not_taken_for_the_one_that_was_sent():
    with pytest.raises(UserError, match="0" * 12):
        picture_of({**Picture.of("one").to_json(), "sha256": "0" * 64})


TRIAL = {
    "item_id": "one", "set": "uppercase", "shown": {"text": "an Artist runs"}, "intact": {}, "trial_type": "choose",
    "exemplars": [{"text": "a Dog", "label": "A"}, {"text": "a cat", "label": "B"}],
    "steps": [
        {"step": "choose", "text": "an Artist runs", "lines": ["an Artist", "runs"], "caption": "", "labels": ["A", "B"],
         "ask": "Which group?", "options": None}
    ],
}  # fmt: skip
PLAN = {"language": "en", "prompt_variant": 1}


@pytest.mark.parametrize("published", [(), ("prompts",)])
def test_the_prompt_is_the_same_but_for_the_pictures(published):
    plan = {**PLAN, "published": published}
    text = Prompter(plan).turn(TRIAL)
    seen = Prompter(plan, presentation="image", of_examples="image").turn(TRIAL)
    assert [picture.lines for picture in seen.pictures] == [("a Dog",), ("a cat",), ("an Artist", "runs")]
    filled = seen.text
    for shown in ("a Dog", "a cat", "an Artist runs"):
        filled = filled.replace(MARK, shown, 1)
    assert filled == text.text
    assert (seen.labels, seen.max_tokens, seen.stop, seen.temperature) == (
        text.labels, text.max_tokens, text.stop, text.temperature,
    )  # fmt: skip
    assert not seen.words
