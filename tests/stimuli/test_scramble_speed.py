"""What words of any length cost, told by counts of work and of what is kept, never by a clock."""

from __future__ import annotations

import random
import sys

import pytest

from stimuli.scramble import scramble_text
from stimuli.scramble.types import scramble_types

LENGTHS = (1_000, 4_000)
NEARLY_LINEAR = 5.5  # four times the letters; with a factor for logarithms, far from the sixteen of a square

TYPES = [
    *(
        kind.name.replace(":N", ":3")
        for kind in scramble_types().values()
        if kind.unit == "letter" and kind.name != "none"
    ),
    "exchange:internal(count=2)",
    "exchange:internal(count=4,fewer=make)",
    "insert:internal(count=3)",
    "delete:internal(count=4)",
    "substitute:internal(count=1)",
    "transpose:any(distance=3,letters=vowels)",
]


def word_of(letters, size):
    return "".join(random.Random(size).choices(letters, k=size))


WORDS = {
    "DNA": lambda size: word_of("ACGT", size),
    "one letter": lambda size: "a" * size,
    "two other letters": lambda size: "x" + "a" * (size // 2) + "bb" + "a" * (size // 2) + "x",
}


def lines_run(work):
    """Count the lines of Python that a piece of work runs, those of comprehensions each time round."""
    count = 0

    def step(frame, event, value):
        nonlocal count
        count += event == "line"
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("kind", TYPES)
def test_a_word_four_times_as_long_takes_about_four_times_the_work(kind):
    for name, make in WORDS.items():
        words = [make(size) for size in LENGTHS]
        short, long = (lines_run(lambda word=word: scramble_text(word, kind, seed=1)) for word in words)
        # What does not hang on the length (up to sixty-four tries) weighs in short words only, so it is left out.
        assert long <= NEARLY_LINEAR * max(short, 2 * LENGTHS[0]), (name, short, long)


def test_a_long_word_nearly_of_one_letter_still_takes_its_exchanges():
    word = "x" + "a" * 3000 + "bc" + "a" * 3000 + "x"
    (change,) = scramble_text(word, "exchange:internal(count=2)", seed=3).changes
    assert sorted(change.shown) == sorted(word) and change.shown[0] == change.shown[-1] == "x"
    assert change.displaced in (3, 4) and sum(a != b for a, b in zip(word, change.shown, strict=True)) >= 3
    (left,) = scramble_text(word.replace("c", "a"), "exchange:internal(count=2)", seed=3).left_intact
    assert "2 exchanges" in left.reason
