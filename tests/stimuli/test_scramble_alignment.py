"""What changed in scrambles made elsewhere: by hand, by published procedures, by our own engine."""

from __future__ import annotations

from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.scramble import scramble_text
from stimuli.scramble.alignment import changes_between
from stimuli.words import nfc

TEXT = "The company asks 3.5 parents, don’t they? Yes. Größe zählt!"
KINDS = ["RS", "KR2", "REO-INT_2", "transpose:internal", "REO-REV"]
EDITS = ["Sub", "substitute:internal", "INS-BEG", "INS-INT_3", "DEL-INT_2", "DEL-END"]
ANY_TEXT = st.text(alphabet="abcdeÉß ’.,-3_*🙂\n", max_size=40)


@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_our_own_reorders_are_found_again(kind, seed):
    made = scramble_text(TEXT, kind, seed=seed, capitals="move")
    assert changes_between(TEXT, made.text) == made.changes


@given(st.sampled_from(EDITS), st.integers(0, 2**32), st.booleans())
def test_our_own_edits_are_found_again_against_the_operation_or_as_made_by_hand(kind, seed, by_hand):
    made = scramble_text(TEXT, kind, seed=seed)
    found = changes_between(TEXT, made.text, "any" if by_hand else kind)
    told = attrgetter("word", "start", "shown")
    assert list(map(told, found)) == list(map(told, made.changes))
    if not by_hand:
        counts = attrgetter("substituted", "inserted", "deleted")
        assert list(map(counts, found)) == list(map(counts, made.changes))


@given(st.sampled_from(["WORD-REO-ALL", "WORD-REO-REV", "SENT-REO-ALL"]), st.integers(0, 2**32))
def test_our_own_reordered_words_and_sentences_are_found_again(kind, seed):
    made = scramble_text(TEXT, kind, seed=seed)
    found = changes_between(TEXT, made.text, kind)
    told = attrgetter("start", "shown", "permutation")
    assert list(map(told, found)) == list(map(told, made.changes))


@given(ANY_TEXT, ANY_TEXT, st.sampled_from([*KINDS, *EDITS, "WORD-REO-ALL", "SENT-REO-ADJ", "any"]))
def test_no_pair_of_texts_is_too_far_apart_to_be_described(one, other, kind):
    intact, shown = nfc(one), nfc(other)
    for change in changes_between(intact, shown, kind):
        assert shown[change.start : change.start + len(change.shown)] == change.shown
        assert change.intact in intact and change.intact != change.shown
        assert min(change.substituted, change.inserted, change.deleted, change.displaced) >= 0
        sources = [source for source in change.permutation if source is not None]
        assert len(set(sources)) == len(sources)


@pytest.mark.parametrize(
    ("intact", "shown", "permutation", "counts"),
    [
        ("problem", "porblem", (0, 2, 1, 3, 4, 5, 6), (0, 0, 0)),
        ("problem", "porblam", (0, 2, 1, 3, 4, None, 6), (1, 0, 0)),
        ("problem", "problm", (0, 1, 2, 3, 4, 6), (0, 0, 1)),
        ("problem", "probblem", (0, 1, 2, 3, None, 4, 5, 6), (0, 1, 0)),
        ("Problem", "rPoblem", (1, 0, 2, 3, 4, 5, 6), (0, 0, 0)),
        ("Problem", "Rpoblem", (1, 0, 2, 3, 4, 5, 6), (0, 0, 0)),
        ("problem", "p o r b l e m", (0, 2, 1, 3, 4, 5, 6), (0, 0, 0)),
    ],
)
def test_a_scramble_by_hand_says_what_moved_and_what_is_new(intact, shown, permutation, counts):
    (change,) = changes_between(f"a {intact} here", f"a {shown} here", "any")
    assert (change.word, change.start, change.intact, change.shown) == (1, 2, intact, shown)
    if shown == "probblem":  # either of the two equal letters may be the new one
        assert change.permutation.count(None) == 1
        assert [one for one in change.permutation if one is not None] == list(range(7))
    else:
        assert change.permutation == permutation
    assert (change.substituted, change.inserted, change.deleted) == counts


def test_words_that_were_glued_together_or_torn_apart_keep_their_neighbours():
    glued = changes_between("one two three four", "one twotrhee four", "any")
    assert [(change.word, change.shown) for change in glued] == [(2, "trhee")]
    torn = changes_between("one three four", "one th ree four", "any")
    assert [(change.word, change.shown) for change in torn] == [(1, "th ree")]
