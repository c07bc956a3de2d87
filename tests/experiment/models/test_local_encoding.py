"""Texts are tokenised in parts only where the tokens are those of the whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.experiment.models.test_local_surprisal import tokenizer_of

torch = pytest.importorskip("torch")

from experiment.models.local.tokens import TextEncoder  # noqa: E402

EXAMPLES = "".join(
    f"Sentence {n}: The qiuck brwon fox, “it’s” {n * 37} jumps…\nGroup: {'AB'[n % 2]}\n\n" for n in range(40)
)
KINDS = ["merges", "trimmed", "pieces", "pieces first", "pieces never", "bytes"]
endings = st.text(st.sampled_from(" \n\tabzABTe.,’\u0301é🙂👩‍🚀単1 "), max_size=30)
TOKENIZERS = {kind: tokenizer_of(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.tuples(st.integers(0, len(EXAMPLES)), endings), min_size=3, max_size=8))
@settings(max_examples=60, deadline=None)
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
