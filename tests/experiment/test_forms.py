"""Levels that change the form of a text (capitals, blanks) or its look (font, colour, size)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiment.building import make_items
from experiment.checking import load_study
from experiment.models.pictures import Picture, picture_of
from experiment.models.prompts.prompter import pictured
from experiment.procedure import plan_session, trials_of
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.item import Item

LOOK = (
    "look: {plain: none, mixed: {case: alternating}, large: {style: {size: 150%, colour: red, font: sans}}}"
)
SPELLING = "spelling: {intact: none, transposed: {transpose: internal}}"
PLAN = "\nanalysis: {planned: {a: {measure: correct, compare: [look, spelling], between: [human, qwen]%s}}}\n"
CHINESE = ("我 / 喜欢 / 3 / [critical: 读书] / 。", "他 / 不 / [critical: 看] / 电影 / 。")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Study]:
    def study(
        factors: str = f"{LOOK}, {SPELLING}",
        *,
        read: str = "{show: sentence}",
        texts: tuple[str, ...] = ("The old *gardener* watched",) * 6,
        materials: str = "scramble: {words: starred}, ",
        model: str = "",
        more: str = "",
        language: str = "en",
        ending: str = "choose: {show: question, keys: {A: j, B: f}}",
    ) -> Study:
        rows = [f"s{number},{text},Which?,{'AB'[number % 2]}" for number, text in enumerate(texts)]
        (tmp_path / "s.csv").write_text("\n".join(["item,sentence,question,answer", *rows]), "utf-8")
        (tmp_path / "study.yaml").write_text(
            f"wrods: 1\nstudy: looks\ntitle: Looks\nseed: 8\nlanguage: {language}\n"
            f"materials: {{sentences: s.csv, {materials}audit: {{shortcut: false}}}}\n"
            f"models: {{who: {{qwen: {{use: 'hf:Qwen/Qwen3-8B'{model}}}}}}}\n"
            f"design:\n  factors: {{{factors}}}\nprocedure:\n  - block:\n      trial:\n"
            f"        - read: {read}\n        - {ending}\n" + more,
            "utf-8",
        )
        return load_study(tmp_path)

    return study


def shown(study: Study) -> dict[str, Item]:
    """Return the first item in each of its conditions."""
    items = make_items(study).items
    return {" ".join(item.condition.values()): item for item in items if item.item_id == items[0].item_id}


def test_case_is_given_to_the_text_as_scrambled(make):
    items = shown(make())
    assert items["mixed intact"].shown["sentence"] == "tHe oLd gArDeNeR wAtChEd"
    changed = items["mixed transposed"]
    assert changed.shown["sentence"].lower() == items["plain transposed"].shown["sentence"].lower()
    assert changed.shown["question"] == "Which?"
    (record,) = changed.changes
    start = record["start"]
    assert changed.shown["sentence"][start : start + 8] == record["shown"] and record["intact"] == "gArDeNeR"


@pytest.mark.parametrize(
    ("case", "text"), [("upper", "THE GROẞE HUND"), ("lower", "the große hund"), ("title", "The Große Hund")]
)
def test_each_case_keeps_the_number_of_signs(make, case, text):
    factors = f"case: {{as_is: none, changed: {{case: {case}}}}}"
    study = make(factors, texts=("the große Hund",) * 2, materials="", language="en")
    assert shown(study)["changed"].shown["sentence"] == text


def test_blanks_stand_between_the_words_of_a_script_without_blanks(make):
    study = make(
        "spacing: {unspaced: none, spaced: {space: words}}",
        read="{show: sentence, as: moving_window, by: chunk}",
        texts=CHINESE,
        materials="regions: {critical: marked, spill: 1 after critical}, ",
        language="zh",
        ending="choose: {show: question, keys: {A: j, B: f}, only: question}",
    )
    items = shown(study)
    assert items["unspaced"].shown["sentence"] == "我喜欢3 读书。"
    assert items["spaced"].shown["sentence"] == "我 喜欢 3 读书 。"
    for trial in trials_of(plan_session(study, make_items(study).items, list_id=1)):
        read = trial["steps"][0]
        first, end = trial["regions"]["critical"]
        assert read["parts"][first:end] in (["读书"], ["看"])
        assert "".join(read["text"].split()) == "".join(read["parts"])


def test_a_text_loses_its_blanks_and_keeps_what_changed(make):
    spacing = "spacing: {spaced: none, unspaced: {space: none}}"
    item = shown(make(f"{spacing}, {SPELLING}"))["unspaced transposed"]
    (record,) = item.changes
    assert item.intact["sentence"] == "Theoldgardenerwatched" and " " not in item.shown["sentence"]
    assert item.shown["sentence"][record["start"] :].startswith(record["shown"])


@pytest.mark.parametrize("case", ["", ", case: upper"])
@pytest.mark.parametrize(
    ("unit", "text", "parts"),
    [
        ("chunk", "The old gardener / slept. / He woke.", ["Theoldgardener", "slept.", "Hewoke."]),
        ("sentence", "The gardener slept. He woke.", ["Thegardenerslept.", "Hewoke."]),
    ],
)
def test_parts_of_a_text_lose_their_blanks_with_it(make, unit, text, parts, case):
    study = make(
        f"spacing: {{spaced: none, unspaced: {{space: none{case}}}}}",
        read=f"{{show: sentence, as: rsvp, by: {unit}, for: 300 ms}}",
        texts=(text,) * 2,
        materials="",
    )
    items = make_items(study).items
    reads = {
        trial["condition"]["spacing"]: trial["steps"][0]
        for trial in trials_of(plan_session(study, items, list_id=1))
    }
    shown = [part.upper() for part in parts] if case else parts
    assert (reads["unspaced"]["parts"], reads["unspaced"]["text"]) == (shown, "".join(shown))
    assert " " in "".join(reads["spaced"]["parts"])


def test_a_style_is_that_of_every_step_and_models_see_it_in_pictures(make):
    study = make()
    looks = {
        trial["condition"]["look"]: [step.get("style") for step in trial["steps"]]
        for trial in trials_of(plan_session(study, make_items(study).items, list_id=1))
    }
    large = {"size": "150%", "colour": "red", "font": "sans"}
    assert looks == {"plain": [None, None], "mixed": [None, None], "large": [large, large]}
    trials = trials_of(plan_session(study, make_items(study).items, list_id=1))
    trial = next(one for one in trials if one["condition"]["look"] == "large")
    _, (picture, *_) = pictured(trial, of_examples=False)
    assert picture.style == large and picture_of(picture.to_json()) == picture
    assert picture.sha256 != Picture.of(picture.text).sha256


def test_models_are_compared_at_levels_that_they_can_tell_apart(make):
    with pytest.raises(UserError, match="reads text, but the compared level large is a style") as refused:
        make(more=PLAN % "")
    assert (
        "levels: {look: [plain, mixed]}" in refused.value.mend and "presentation: image" in refused.value.mend
    )
    make(more=PLAN % ", levels: {look: [plain, mixed]}")
    make(more=PLAN % "", model=", presentation: image")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"ending": "recover: {show: sentence}"}, "typed as they should be"),
        ({"factors": "space: {a: none, b: {space: none}}", "read": "{show: sentence, as: centred}"}, "word by word"),
        ({"read": "{show: sentence, as: moving_window}"}, "words would move"),
        ({"factors": f"{LOOK}, more: {{a: none, b: {{case: upper}}}}"}, "look sets case as well"),
        ({"factors": "look: {a: none, b: {style: {font: cursive}}}"}, "font"),
        ({"factors": "space: {a: none, b: {space: words}}", "texts": ("我喜欢读书。",) * 2, "language": "zh",
          "materials": ""}, "where the words of"),
    ],
)  # fmt: skip
def test_forms_that_cannot_be_honoured_are_refused(make, given: dict[str, Any], words):
    with pytest.raises(UserError, match=words):
        make_items(make(**given))
