"""Token measures under a tokenizer that the test builds itself."""

from __future__ import annotations

import re

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from stimuli.covariates import load_tokenizer, token_ids, token_measures
from stimuli.errors import UserError


@pytest.fixture(scope="module")
def fast():
    """Words it knows are one token, others one per letter; it marks the start of every text."""
    letters = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    vocab = letters | {"[S]": 26, "ju": 27, "jud": 28, "judg": 29, "judge": 30, "th": 31, "the": 32}
    merges = [("j", "u"), ("ju", "d"), ("jud", "g"), ("judg", "e"), ("t", "h"), ("th", "e")]
    made = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(single="[S] $A", special_tokens=[("[S]", 26)])
    return made


def test_tokens_before_and_after_a_change(fast):
    assert token_measures("the judge", "the jugde", fast) == {
        "tokens_intact": 2,
        "tokens_shown": 5,  # the ju g d e
        "token_edit_distance": 4,
        "characters_per_token": 9 / 5,
    }


def test_marks_around_a_text_are_not_its_tokens(fast):
    wrapped = PreTrainedTokenizerFast(tokenizer_object=fast, bos_token="[S]")
    assert list(token_ids("the judge", wrapped)) == list(token_ids("the judge", fast)) == [32, 30]


def test_a_tokenizer_is_loaded_from_its_folder_and_from_its_file(fast, tmp_path):
    PreTrainedTokenizerFast(tokenizer_object=fast, bos_token="[S]").save_pretrained(tmp_path)
    for place in (tmp_path, str(tmp_path / "tokenizer.json")):
        assert list(token_ids("the judge", load_tokenizer(place))) == [32, 30]


@pytest.mark.parametrize(
    "given", ["./nowhere", "/no/such/folder", "nobody/no-such-model", "no such model", ""]
)
def test_a_tokenizer_that_is_not_there_is_named_with_what_to_do(given):
    with pytest.raises(UserError) as told:
        load_tokenizer(given)
    assert repr(given) in told.value.message
    assert told.value.mend


def test_a_damaged_tokenizer_file_is_named(tmp_path):
    broken = tmp_path / "tokenizer.json"
    broken.write_text('{"version": "1.0", "model": ', "utf-8")
    for given in (broken, tmp_path):
        with pytest.raises(UserError, match=re.escape(repr(str(given)))):
            load_tokenizer(given)
