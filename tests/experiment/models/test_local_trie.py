"""The walk over all rows: every token that rows share is computed once, whatever the rows and the budget."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiment.models.local.kv_cache_tree import CacheMemory, KVCacheTree
from experiment.models.local.packed import Trie
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


@given(rows, budgets, st.integers(0, 60))
def test_what_is_known_of_all_rows_is_not_computed_again(given_rows, budget, most):
    common = 0
    while common < most and len({tuple(one.ids[: common + 1]) for one in given_rows}) == 1:
        if common >= min(one.shareable for one in given_rows):
            break
        common += 1
    computed = sum(len(one.tokens) for one in Trie(given_rows).passes(budget, common))
    assert computed == Trie(given_rows).size - common


def of_places(ids) -> tuple[dict, dict]:
    """Keys and values that say which tokens they belong to: what stands at a position and all before it."""
    sums = torch.tensor([hash(tuple(int(one) for one in ids[: n + 1])) % 10_007 for n in range(len(ids))])
    return {0: sums[None, :, None].float()}, {0: -sums[None, :, None].float()}


def keep(kept: KVCacheTree, one) -> None:
    keys, values = of_places(one)
    kept.keep(one, lambda depth: ({0: keys[0][:, depth:].clone()}, {0: values[0][:, depth:].clone()}))


@given(st.lists(ids, min_size=1, max_size=8), ids, st.integers(0, 90))
@settings(deadline=None)
def test_conversations_come_back_as_they_were_kept_and_share_what_they_begin_with(held, asked, most):
    kept = KVCacheTree()
    arrays = [np.asarray(one, dtype=np.int32) for one in held]
    for one in arrays:
        keep(kept, one)
    whole = Trie([row(one) for one in held]).size
    assert kept.tokens <= whole, "each beginning is held once"
    assert kept.find(arrays[-1])[1] == len(arrays[-1])
    if most < kept.tokens:
        kept.shrink(most)
        assert kept.tokens <= most
    for one in [*arrays, np.asarray(asked, dtype=np.int32)]:
        known, place = kept.find(one)[1], 0
        keys, values = of_places(one)
        for place_of, some_keys, some_values in kept.load(one, 0):
            assert place_of == place
            end = place + some_keys[0].shape[1]
            assert torch.equal(some_keys[0], keys[0][:, place:end])
            assert torch.equal(some_values[0], values[0][:, place:end])
            place = end
        assert place == known


@given(st.lists(ids, min_size=1, max_size=6), rows)
@settings(deadline=None)
def test_memory_shares_every_row_out_once_and_brings_what_a_row_begins_with_onto_the_path(held, given_rows):
    memory = CacheMemory()
    lying = np.asarray(held[0], dtype=np.int32)
    keys, values = of_places(lying)
    memory.path.write(0, 0, keys[0], values[0])
    memory.path.ids = lying
    for one in held[1:]:
        keep(memory.kept, np.asarray(one, dtype=np.int32))
    walks = memory.walks(given_rows)
    assert sorted(place for walk in walks for place in walk.places) == list(range(len(given_rows)))
    for walk in walks:
        first = given_rows[walk.places[0]]
        known = memory.begin(walk, first)
        assert known == walk.known
        for place in walk.places:
            assert (given_rows[place].ids[:known] == first.ids[:known]).all()
            assert known <= given_rows[place].shareable
        expected, _ = of_places(first.ids[:known])
        assert torch.equal(memory.path.path(0, known)[0], expected[0])
        # what a walk writes stands behind what it goes on from
        keys, values = of_places(first.ids)
        memory.path.write(0, known, keys[0][:, known:], values[0][:, known:])
        memory.path.ids = first.ids


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
