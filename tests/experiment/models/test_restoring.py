"""Scrambled texts that are restored before the question is asked: what is sent, and what of a reply is the text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from experiment.models.engine import RegionScore
from experiment.models.planning.session import given_back, restored_text
from tests.experiment.conftest import small_items
from tests.experiment.models.test_planning import READ, reply, sessions, with_models


def test_a_text_is_restored_first_and_the_question_asked_about_it(make_study):
    study = make_study(with_models(), READ)
    session = sessions(study, strategy="unscramble_first")[1]
    first, *_ = session.begin({})
    trial = session.trial_of(first.work_key)
    assert first.work_key.endswith(":unscramble") and first.purpose == "unscramble"
    assert trial["shown"]["word"] in first.messages[0].content
    (answer,) = session.follow(reply(first, "Restored text: “thing”"))
    assert answer.work_key == first.work_key.partition(":")[0] and answer.purpose == "answer"
    assert "\n\nthing\n\nWhich word was it?" in answer.messages[0].content
    assert session.request_of(answer.work_key) == answer
    again = sessions(study, strategy="unscramble_first")[1]
    begun = again.begin({}, {first.work_key: "thing"})
    assert [one.purpose for one in begun] == ["answer", *["unscramble"] * 3]
    assert begun[0].messages == answer.messages


def test_fields_that_are_read_together_keep_their_intact_words_and_are_restored_in_place(make_study):
    both = (
        READ[0],
        "- read: {show: [word, note]}\n        - choose: {ask: Which word was it?, keys: [f, j], answer_by: text}",
    )
    items = [replace(one, shown={**one.shown, "note": "stays as is"}) for one in small_items()]
    study = make_study(with_models(), both, items=items)
    session = sessions(study)[0]
    request = next(
        one
        for one in session.begin({})
        if session.trial_of(one.work_key)["condition"] == {"position": "initial"}
    )
    trial = session.trial_of(request.work_key)
    rows = session.region_rows(reply(request, "x", regions=(RegionScore(1.0, 1),) * 4))
    assert [row["intact"] for row in rows] == [trial["intact"]["word"], "stays", "as", "is"]
    assert [row["is_changed"] for row in rows] == [True, False, False, False]
    again = sessions(study, strategy="unscramble_first")[0]
    first = next(one for one in again.begin({}) if again.trial_of(one.work_key) == trial)
    (answer,) = again.follow(reply(first, "thing"))
    assert "thing\n\nstays as is\n\nWhich word was it?" in answer.messages[0].content


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        (
            "**The captain slept.**\n\nNote: I corrected one word (cpatain -> captain). Let me know!",
            "The captain slept.",
        ),
        ("Here is the corrected text:\n\nThe captain slept.", "The captain slept."),
        ("No changes needed.", "The cpatain slept."),
        ("The text is correct as it is.", "The cpatain slept."),
        ("The text is correct:\n\nThe captain slept.", "The captain slept."),
        ("The captain slept. (I corrected 'cpatain'.)", "The captain slept."),
        ("<think>\nA captain?\n</think>\n\nThe captain slept.", "The captain slept."),
        ("I cannot make sense of this text.", None),
        ("", None),
    ],
)
def test_a_line_is_asked_about_as_it_was_restored_without_the_models_remarks(said, asked):
    assert restored_text("The cpatain slept.", said) == asked
    assert restored_text("The cpatain\nslept.", "The captain\nslept.") == "The captain\nslept."


@pytest.mark.parametrize(
    ("remark", "stays"),
    [("\n\nNote: I corrected one word.", False), ("\n\n**Changes:** cpatain", False), ("\n\nLet me know!", False),
     ("\n\nI fixed one word.", False), ("\nI fixed supper.", False), ("\nHe had a note.", True)],
)  # fmt: skip
def test_remarks_below_a_text_of_several_lines_are_no_part_of_it(remark, stays):
    text = "The captain\nslept."
    assert restored_text("The cpatain\nslept.", text + remark) == (text + remark if stays else text)
    as_long = "The captain\nNote: slept."
    assert restored_text("The cpatain\nNoet: slept.", as_long) == as_long, "a line of the text itself"


@pytest.mark.parametrize("status", ["truncated", "refused", "empty"])
def test_a_restoring_call_that_gave_no_whole_text_is_not_used_and_not_made_again(make_study, status):
    study = make_study(with_models(), READ)
    session = sessions(study, strategy="unscramble_first")[1]
    first, *_ = session.begin({})
    shown = session.trial_of(first.work_key)["shown"]["word"]
    half = {"truncated": "thi", "refused": "I can", "empty": None}[status]
    (answer,) = session.follow(reply(first, half, status=status))
    assert f"\n\n{shown}\n\nWhich word was it?" in answer.messages[0].content
    assert session.request_of(answer.work_key) == answer
    assert session.mark_of(answer.work_key) == "+as_shown"
    again = sessions(study, strategy="unscramble_first")[1]
    second = session.begin({})[1]
    begun = again.begin({}, {first.work_key: given_back(half, status), second.work_key: "thing"})
    assert [again.mark_of(one.work_key) for one in begun[:2]] == ["+as_shown", ""]
