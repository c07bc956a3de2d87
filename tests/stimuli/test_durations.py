"""Durations are said in the unit that fits, in a sentence, as a rough guess, and beside a bar."""

from __future__ import annotations

import pytest

from stimuli.durations import duration_in_words, rough_duration_in_words, short_duration


@pytest.mark.parametrize(
    ("seconds", "words", "rough", "short"),
    [
        (0.2, "1 second", "less than a minute", "0 s"),
        (40, "40 seconds", "less than a minute", "40 s"),
        (65, "65 seconds", "65 seconds", "65 s"),
        (90, "2 minutes", "2 minutes", "2 min"),
        (720, "12 minutes", "12 minutes", "12 min"),
        (5399, "90 minutes", "90 minutes", "90 min"),
        (5760, "1.6 hours", "1.6 hours", "1.6 h"),
    ],
)
def test_a_duration_is_said_in_the_unit_that_fits(seconds, words, rough, short):
    assert duration_in_words(seconds) == words
    assert rough_duration_in_words(seconds) == rough
    assert short_duration(seconds) == short
