"""Matched sets are disjoint, within tolerance, as large as they can be, and the same whatever the order."""

from __future__ import annotations

import itertools
import math
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stimuli.errors import UserError
from stimuli.matching import SMD_LIMIT, MatchCandidate, Tolerance, balance, match_lists, match_sets


def words(number, groups, *, shift=0.0, seed=1):
    """Make candidates whose groups lie ``shift`` standard deviations of frequency apart."""
    draw, made = random.Random(seed), []
    for place in range(number):
        group = place % len(groups)
        covariates = {"length": draw.randint(3, 9), "zipf": round(draw.gauss(4 + shift * group, 1), 2)}
        made.append(MatchCandidate(f"w{place:04d}", groups[group], covariates))
    return made


def of(matched, candidates, covariate):
    known = {one.id: one for one in candidates}
    return {group: [known[name].covariates[covariate] for name in ids] for group, ids in matched.sets.items()}


candidate_lists = st.lists(
    st.tuples(st.sampled_from("ABC"), st.integers(3, 7), st.integers(0, 60)), min_size=2, max_size=40
).map(
    lambda rows: [
        MatchCandidate(f"c{place}", group, {"length": length, "zipf": zipf / 10})
        for place, (group, length, zipf) in enumerate(rows)
    ]
)


@given(candidate_lists, st.integers(1, 6) | st.none(), st.integers(0, 3))
def test_sets_are_disjoint_of_one_size_and_within_every_tolerance(candidates, size, seed):
    groups = {one.group for one in candidates}
    if len(groups) < 2:
        with pytest.raises(UserError, match="1 group"):
            match_sets(candidates, {"length": 0}, size, seed=seed)
        return
    matched = match_sets(candidates, {"length": 0, "zipf": 0.5}, size, seed=seed)
    ids = list(itertools.chain(*matched.sets.values()))
    assert len(set(ids)) == len(ids) == matched.reachable * len(groups)
    assert {len(one) for one in matched.sets.values()} == {matched.reachable}
    assert bool(matched.unmet) == (size is not None and matched.reachable < size)
    assert size is None or matched.reachable <= size
    group_of = {one.id: one.group for one in candidates}
    assert all(group_of[name] == group for group, own in matched.sets.items() for name in own)
    lengths, zipfs = of(matched, candidates, "length"), of(matched, candidates, "zipf")
    for one, other in itertools.combinations(matched.sets, 2):
        assert lengths[one] == lengths[other]
        assert all(abs(a - b) <= 0.5 + 1e-8 for a, b in zip(zipfs[one], zipfs[other], strict=True))
    for contrast in matched.balance.contrasts:
        assert contrast.smd is not None and abs(contrast.smd) <= SMD_LIMIT


@given(candidate_lists, st.randoms(use_true_random=False), st.integers(0, 3))
def test_the_order_of_candidates_changes_nothing(candidates, draw, seed):
    if len({one.group for one in candidates}) < 2:
        return
    shuffled = candidates.copy()
    draw.shuffle(shuffled)
    on = {"length": 1, "zipf": Tolerance(None)}
    assert match_sets(candidates, on, 3, seed=seed) == match_sets(shuffled, on, 3, seed=seed)
    lists = min(3, len(candidates))
    assert match_lists(candidates, lists, on, seed=seed) == match_lists(shuffled, lists, on, seed=seed)


@given(candidate_lists, st.integers(2, 4))
def test_lists_are_a_partition_of_equal_sizes_with_every_group_spread_evenly(items, lists):
    if len(items) < lists:
        with pytest.raises(UserError, match=f"{len(items)} .* {lists} "):
            match_lists(items, lists, {"zipf": 0}, seed=1)
        return
    divided = match_lists(items, lists, {"zipf": 0}, seed=1)
    assert sorted(itertools.chain(*divided.sets.values())) == sorted(one.id for one in items)
    sizes = [len(ids) for ids in divided.sets.values()]
    assert max(sizes) - min(sizes) <= 1
    for group in "ABC":
        own = {one.id for one in items if one.group == group}
        counts = [len(own & set(ids)) for ids in divided.sets.values()]
        assert max(counts) - min(counts) <= 1


def test_as_many_matches_are_found_as_there_are():
    # Nearest-first picking takes b with a's only partner and finds one match; assignment finds both.
    zipfs = (("a", "x", 3.0), ("b", "x", 3.2), ("p", "y", 3.2), ("q", "y", 3.5))
    candidates = [MatchCandidate(name, group, {"zipf": zipf}) for name, group, zipf in zipfs]
    matched = match_sets(candidates, {"zipf": Tolerance(0.3, smd=9)}, seed=1)
    assert set(zip(matched.sets["x"], matched.sets["y"], strict=True)) == {("a", "p"), ("b", "q")}


def test_a_size_that_cannot_be_met_names_the_covariate_and_the_size_that_can():
    candidates = words(90, "ABC", shift=0.6)
    matched = match_sets(candidates, {"length": 3, "zipf": 0.3}, 25, seed=1)
    assert matched.reachable < 25
    by_name = {one.covariate: one for one in matched.unmet}
    assert by_name["zipf"].without > matched.reachable
    again = match_sets(candidates, {"length": 3, "zipf": 0.3}, matched.reachable, seed=1)
    assert not again.unmet and again.require() is again
    with pytest.raises(UserError, match=rf"\b{matched.reachable}\b"):
        matched.require()


def test_a_missing_covariate_is_named_or_its_candidate_left_out_by_name():
    candidates = [*words(20, "AB"), MatchCandidate("odd", "A", {"length": 4, "zipf": None})]
    with pytest.raises(UserError, match=r"'odd'.*zipf"):
        match_sets(candidates, {"zipf": 1}, seed=1)
    matched = match_sets(candidates, {"zipf": 1}, seed=1, missing="exclude")
    assert matched.excluded == (("odd", "zipf"),)
    assert "odd" not in itertools.chain(*matched.sets.values())


def test_mixed_kinds_are_refused():
    mixed = [MatchCandidate("a", "x", {"zipf": 1}), MatchCandidate("b", "y", {"zipf": "high"})]
    with pytest.raises(UserError, match=r"zipf is 1.* 'a'.*'high'.* 'b'"):
        match_sets(mixed, {"zipf": 1}, seed=1)


def test_lists_of_many_items_agree_closely():
    items = words(400, "AB", shift=1.0)
    divided = match_lists(items, 4, {"length": 0, "zipf": 0}, seed=3)
    assert not divided.unmet and divided.reachable == 100
    assert all(one.smd is not None and abs(one.smd) < 0.01 for one in divided.balance.contrasts)


def test_the_means_of_lists_are_held_to_a_tolerance_given_for_items():
    items = [MatchCandidate(f"i{n}", "all", {"zipf": value}) for n, value in enumerate((1, 1, 1, 1, 1, 1.6))]
    loose = Tolerance(within=0.5, smd=9)
    assert not match_lists(items, 2, {"zipf": loose}, seed=1).unmet
    (unmet,) = match_lists(items, 2, {"zipf": Tolerance(within=0.1, smd=9)}, seed=1).unmet
    assert unmet.covariate == "zipf" and re.search(r"0\.2\b.* 0\.1\b", unmet.rule)
    with pytest.raises(UserError, match=r"zipf.* 0\.1\b"):
        match_lists(items, 2, {"zipf": Tolerance(within=0.1, smd=9)}, seed=1).require()


def test_the_standardised_difference_is_that_of_the_textbook():
    # Means 3 and 5, sample variances 2.5 and 2.5: -2 / sqrt(2.5).
    groups = {
        "spread": {"a": [1, 2, 3, 4, 5], "b": [3, 4, 5, 6, 7]},
        "same": {"a": [2, 2], "b": [2, 2]},
        "apart": {"a": [2, 2], "b": [3, 3]},
    }
    differences = [contrast.smd for contrast in balance(groups).contrasts]
    assert differences == [round(-2 / math.sqrt(2.5), 6), 0.0, None]
