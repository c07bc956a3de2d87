"""Plans over all rows: every token that rows share is computed once, whatever the rows and the budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.models.local.packed import Trie
from experiment.models.local.plain import batches, plan_groups
from experiment.models.local.rows import Decoding, MemoryBudget, Row
from tests.experiment.models.test_local_surprisal import tokenizer_of

torch = pytest.importorskip("torch")

from experiment.models.local.tokens import TextEncoder  # noqa: E402


def row(ids, continued: bool = False, asked: int = 0) -> Row:
    decoding = Decoding(4, 0.0, 1, lambda _: False) if continued else None
    targets = tuple((position, 1) for position in range(max(1, len(ids) - asked), len(ids) + 1))
    return Row(np.asarray(ids, dtype=np.int32), targets, decoding=decoding)


stems = st.sampled_from([(), (0,) * 20, (0, 1) * 10, (2,) * 40])
ids = st.builds(lambda stem, rest: [*stem, *rest], stems, st.lists(st.integers(0, 2), min_size=1, max_size=8))
rows = st.lists(st.builds(row, ids, st.booleans(), st.integers(0, 5)), min_size=1, max_size=24)
budgets = st.builds(MemoryBudget, st.integers(1, 200), st.just(1000), st.integers(1, 100))


def prefixes(given_rows) -> set[tuple[int, ...]]:
    return {tuple(one.ids[: n + 1]) for one in given_rows for n in range(len(one.ids))}


@given(rows)
def test_the_size_of_a_trie_is_the_number_of_different_beginnings(given_rows):
    assert Trie(given_rows).size == len(prefixes(given_rows))


@given(rows, budgets)
@settings(max_examples=150)
def test_a_walk_computes_every_beginning_once_and_every_row_whole(given_rows, budget):
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


@given(rows)
def test_a_plan_never_computes_more_than_row_by_row(given_rows):
    planned = sum(
        group.prefix + sum(len(given_rows[place].ids) - group.prefix for place in group.members)
        for group in plan_groups(given_rows)
    )
    assert planned <= sum(len(row.ids) for row in given_rows)


def test_nested_beginnings_of_a_thousand_steps_are_planned():
    given_rows = [row(range(n)) for n in range(1, 1000)]
    groups = plan_groups(given_rows)
    assert sum(len(group.members) for group in groups) == 999


@given(rows, st.integers(1, 40))
def test_batches_hold_every_member_once_within_the_budget(given_rows, tokens):
    budget = MemoryBudget(tokens, 10_000)
    for group in plan_groups(given_rows):
        found = list(batches(group, given_rows, budget))
        assert sorted(place for batch in found for place in batch) == sorted(group.members)
        for batch in found:
            lengths = [len(given_rows[place].ids) - group.prefix for place in batch]
            assert len(batch) == 1 or len(batch) * max(lengths) <= tokens
            continued = {given_rows[place].decoding is not None for place in batch}
            assert continued == {False} or (continued == {True} and len(set(lengths)) == 1)


EXAMPLES = "".join(
    f"Sentence {n}: The qiuck brwon fox, “it’s” {n * 37} jumps…\nGroup: {'AB'[n % 2]}\n\n" for n in range(40)
)
KINDS = ["merges", "trimmed", "pieces", "pieces first", "pieces never", "bytes"]
endings = st.text(st.sampled_from(" \n\tabzABTe.,’\u0301é🙂👩‍🚀単1 "), max_size=30)
TOKENIZERS = {kind: tokenizer_of(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.tuples(st.integers(0, len(EXAMPLES)), endings), min_size=3, max_size=8))
@settings(max_examples=30, deadline=None)
def test_tokens_are_always_those_of_the_whole_text(kind, asked):
    tokenizer = TOKENIZERS[kind]
    encoder = TextEncoder(tokenizer)
    for cut, ending in [(len(EXAMPLES), "a"), (len(EXAMPLES), "b"), *asked]:
        text = EXAMPLES[:cut] + ending
        assert encoder.ids(text) == tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def test_a_tokenizer_that_does_not_split_is_asked_for_the_whole():
    from tokenizers import Tokenizer, models, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.train_from_iterator([EXAMPLES], trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>"]))
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")
    encoder = TextEncoder(whole)
    for n in range(4):
        text = EXAMPLES + str(n)
        assert encoder.ids(text) == tuple(whole(text, add_special_tokens=False)["input_ids"])
    assert encoder.characters >= 4 * len(EXAMPLES)
