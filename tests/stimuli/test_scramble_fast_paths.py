"""What is done a shorter way for speed comes out as the long way says."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import struct

from hypothesis import given
from hypothesis import strategies as st

from stimuli.scramble.changes import fewest_moves, settled, tail_of
from stimuli.scramble.edits import Replacements, SubstitutedOne
from stimuli.scramble.letter_forms import WordPlan, Writing
from stimuli.scramble.orders import Neighbours, _exchanged, _needed_for, _two_exchanged, exchanges_needed
from stimuli.scramble.types import parse_operation
from stimuli.seeds import Draw, stable_draws_of
from stimuli.words import _words_by_cluster, cut

KINDS = ("shuffle:all", "insert:initial", "insert:internal(count=2)", "delete:final", "substitute:all", "RS")

numbers = st.integers(0, 2**64 - 1)


@given(st.integers(0, 40), st.integers(), st.text(), st.text(), st.integers(0))
def test_draws_of_texts_with_parts_in_common_are_the_draws_of_all_parts(count, seed, purpose, text, number):
    for common in ((seed, purpose), (seed, purpose, None, 1.5), *((one, purpose) for one in (True, 1, 1.0))):
        drawn = stable_draws_of(count, common, text, number)
        parts = json.dumps([*common, text, number], ensure_ascii=False, separators=(",", ":"))
        stream = hashlib.shake_128(parts.encode("utf-8", "surrogatepass")).digest(8 * count)
        assert drawn == struct.unpack(f">{count}Q", stream)


@given(st.integers(4, 64), numbers)
def test_two_exchanges_drawn_at_once_are_those_drawn_one_by_one(size, number):
    at_once = _two_exchanged(size, number)
    if at_once is not None:
        assert at_once == _exchanged(size, 2, Draw(number))


@given(st.text("abcd", min_size=5, max_size=12), st.integers(1, 3), numbers)
def test_exchanges_of_letters_that_differ_are_counted_as_all_are(letters, count, number):
    sources = _exchanged(len(letters), min(count, len(letters) - 3), Draw(number))
    before, after = [letters[one] for one in sources], [letters[one] for one in sources.values()]
    assert _needed_for(letters, sources) == exchanges_needed(before, after)


@given(st.text("abcdef", max_size=12), st.integers(0))
def test_equal_letters_settle_as_they_move_least(letters, seed):
    order = list(range(len(letters)))
    random.Random(seed).shuffle(order)
    wanted = [letters[source] for source in order]
    assert settled(letters, list(order)) == fewest_moves(letters, wanted)
    assert settled(tuple(letters), list(order)) == fewest_moves(letters, wanted)


@given(st.text("aBc1_'-. ’é", max_size=20))
def test_words_found_at_once_are_those_found_cluster_by_cluster(text):
    pieces, fixed = cut(text)
    if not fixed:
        assert pieces == _words_by_cluster(text)


@given(st.text("abc", min_size=2, max_size=20), numbers)
def test_passes_over_neighbours_move_equal_pieces_least(pieces, coins):
    order, place = list(range(len(pieces))), 0
    while place < len(pieces) - 1:
        if coins >> place & 1:
            order[place], order[place + 1] = place + 1, place
            place += 1
        place += 1
    assert list(Neighbours()._passed(pieces, coins)) == fewest_moves(pieces, [pieces[one] for one in order])


@given(
    st.from_regex(r"[A-Z]?[a-z]{1,7}('[a-z0-9]{1,2})?", fullmatch=True),
    st.sampled_from(KINDS),
    numbers,
    st.booleans(),
    st.sampled_from(("", "-")),
)
def test_letters_with_something_after_them_are_put_together_at_once_as_one_by_one(
    word, kind, number, stay, gap
):
    operation = parse_operation(kind)
    rule = operation.type.bound("en", dict(operation.options))
    writing = Writing(gap=gap, as_it_is=False, capitals_stay=stay, avoid_real_words=False, language="en")
    plan = WordPlan(tuple(word.partition("'")[0].lower()), sum(map(str.isalpha, word)), "mixed")
    for arrangement in itertools.islice(rule.candidates(plan.letters, number), 3):
        if [plan.letters[one] if isinstance(one, int) else one for one in arrangement] != list(plan.letters):
            slow = writing._one_by_one(word, plan.counted, arrangement)
            assert writing.arranged(word, plan, arrangement) == slow


@given(st.from_regex(r"[a-z]{4,12}", fullmatch=True), st.sampled_from(("keep", "any")), numbers, numbers)
def test_the_one_new_letter_is_the_one_that_a_number_draws_among_those_that_fit(
    letters, cv, number, site_number
):
    operation = parse_operation(f"substitute:internal(count=1,cv={cv})")
    rule = operation.type.bound("en", dict(operation.options))
    assert isinstance(rule, SubstitutedOne)
    ready = rule.ready(letters)
    if ready is None:
        return
    sites = rule.sites(letters)
    i, j = sites[site_number % len(sites)]
    replacements = Replacements(rule.new_letters, cv, "any")
    place = i if number & 1 else j
    pool = replacements.of(letters[place], (letters[i], letters[j]))
    spelt = rule.spelled(letters, ready, number, site_number)
    if pool:
        new = pool[(number >> 1) % len(pool)]
        permutation = tuple(None if at == place else at for at in range(len(letters)))
        assert spelt == (letters[:place] + new + letters[place + 1 :], tail_of(permutation, len(letters)))
    else:
        assert spelt is None
