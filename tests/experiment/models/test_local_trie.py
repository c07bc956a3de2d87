"""The walk over all rows: every token that rows share is computed once, whatever the rows and the budget."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.models.local.memory import Strand, Strands
from experiment.models.local.rows import Budget, Decoding, Row
from experiment.models.local.trie import WORTH_SHARING, Trie


def row(ids, continued: bool = False, asked: int = 0) -> Row:
    decoding = Decoding(4, 0.0, 1, lambda _: False) if continued else None
    targets = tuple((position, 1) for position in range(max(1, len(ids) - asked), len(ids) + 1))
    return Row(np.asarray(ids, dtype=np.int32), targets, decoding=decoding)


stems = st.sampled_from([(), (0,) * 20, (0, 1) * 10, (2,) * 40])
ids = st.builds(lambda stem, rest: [*stem, *rest], stems, st.lists(st.integers(0, 2), min_size=1, max_size=8))
rows = st.lists(st.builds(row, ids, st.booleans(), st.integers(0, 5)), min_size=1, max_size=24)
budgets = st.builds(Budget, st.integers(1, 200), st.just(1000), st.integers(1, 100))


def prefixes(given_rows) -> set[tuple[int, ...]]:
    return {tuple(one.ids[: n + 1]) for one in given_rows for n in range(len(one.ids))}


@given(rows)
def test_the_size_of_a_trie_is_the_number_of_different_beginnings(given_rows) -> None:
    assert Trie(given_rows).size == len(prefixes(given_rows))


@given(rows, budgets)
@settings(max_examples=300)
def test_a_walk_computes_every_beginning_once_and_every_row_whole(given_rows, budget) -> None:
    path: list[tuple[int, ...]] = []
    computed: list[tuple[int, ...]] = []
    ended: list[int] = []
    for one in Trie(given_rows).passes(budget):
        assert one.start <= len(path), "a pass goes on from tokens that are still on the path"
        del path[one.start :]
        here: dict[int, tuple[int, ...]] = {}
        for line in one.lines:
            own = given_rows[line.place].ids
            whole = tuple(own[: one.start + len(line.index)])
            assert tuple(own[: one.start]) == (path[-1] if path else ()), "a row sees its own beginning"
            assert [int(token) for token in one.tokens[line.index]] == list(whole[one.start :])
            assert [int(depth) for depth in one.depths[line.index]] == list(range(one.start, len(whole)))
            for number, at in enumerate(line.index):
                assert (
                    here.setdefault(int(at), whole[: one.start + number + 1])
                    == whole[: one.start + number + 1]
                )
            if line.ends:
                assert len(whole) == len(own)
                ended.append(line.place)
        assert sum(line.new for line in one.lines) == len(one.tokens) == len(here)
        computed += here.values()
        if one.extends:
            path += [
                tuple(given_rows[one.lines[0].place].ids[: n + 1])
                for n in range(one.start, one.start + len(one.tokens))
            ]
        assert len(one.tokens) <= budget.tokens
    assert sorted(ended) == list(range(len(given_rows)))
    assert len(computed) == len(set(computed)) == Trie(given_rows).size


@given(rows, budgets, st.integers(0, 60))
def test_what_is_known_of_all_rows_is_not_computed_again(given_rows, budget, most) -> None:
    common = 0
    while common < most and len({tuple(one.ids[: common + 1]) for one in given_rows}) == 1:
        if common >= min(one.shareable for one in given_rows):
            break
        common += 1
    computed = sum(len(one.tokens) for one in Trie(given_rows).passes(budget, common))
    assert computed == Trie(given_rows).size - common


def test_rows_to_be_continued_share_a_path_also_when_rows_to_be_scored_stand_between() -> None:
    stem = list(range(10, 10 + 2 * WORTH_SHARING))
    mixed = [row([*stem, 1], True), row([*stem, 1, 7]), row([*stem, 2], True), row([*stem, 2, 7])]
    first = next(Trie(mixed).passes(Budget(10_000, 10_000)))
    assert first.extends and len(first.tokens) == len(stem)


def test_two_tasks_at_nested_sizes_cost_the_examples_of_the_largest_only() -> None:
    examples = [[task * 1000 + n for n in range(400)] for task in (1, 2)]
    given_rows = [
        row([0, *examples[task][:size], 9000 + item])
        for task in (0, 1)
        for size in (50, 100, 200, 400)
        for item in range(20)
    ]
    computed = sum(len(one.tokens) for one in Trie(given_rows).passes(Budget(128, 1000)))
    assert computed == 1 + 2 * 400 + len(given_rows)


@given(st.lists(ids, min_size=1, max_size=6), rows)
def test_memory_shares_every_row_out_once_and_gives_only_what_a_row_begins_with(held, given_rows) -> None:
    strands = Strands()
    strands.path.ids = np.asarray(held[0], dtype=np.int32)
    strands.kept = [Strand(ids=np.asarray(one, dtype=np.int32)) for one in held[1:]]
    walks = strands.walks(given_rows)
    assert sorted(place for walk in walks for place in walk.places) == list(range(len(given_rows)))
    reached: dict[int, int] = {}
    for walk in walks:
        assert walk.known <= reached.get(id(walk.strand), 10_000), (
            "a later walk goes on from less than an earlier one"
        )
        reached[id(walk.strand)] = walk.known
        for place in walk.places:
            one = given_rows[place]
            assert (one.ids[: walk.known] == walk.strand.ids[: walk.known]).all()
            assert walk.known <= one.shareable
