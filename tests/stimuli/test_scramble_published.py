"""The order-bound copies of Cao et al. (2023) give the published stimuli, string for string."""

from __future__ import annotations

import hashlib

import pytest

from stimuli.errors import UserError
from stimuli.recipes.tasks import published_list
from stimuli.scramble.published import published_pass

# First 16 hex digits of SHA-256 of scrambled texts inside the prompts that the authors released (their repository,
# commit 60725fb, output/scrambled_qa, gpt-4-0314): corpus and part, condition, place among those asked.
RELEASED_PROMPTS = {
    ("test", "RS-100", 511): "9fe68e6ed2569a5e",
    ("test", "RS-100", 510): "2cfcc43c08f232b6",
    ("test", "KF", 511): "a4598865b7f57d66",
    ("test", "KFL", 511): "08ebaf53d907bd89",
    ("test", "Sub", 511): "26b571990ec8d5d8",
    ("dev", "RS-100", 512): "a63a2189a173bdd7",
    ("dev", "KF", 512): "07614f2c6f16563d",
    ("dev", "KF", 511): "153b8eedad86c3bf",
    ("dev", "KFL", 512): "158ad7ed3bcf038b",
    ("dev", "Sub", 512): "01d17a2678c72b68",
    ("aqua", "RS-20", 253): "5927e757890e1dc8",
    ("aqua", "RS-50", 236): "e811a3001b4f2033",
    ("aqua", "RS-50", 238): "c75d05d289ef015e",
    ("aqua", "RS-100", 228): "8028089cf348cc39",
    ("aqua", "RS-100", 229): "c4bdc7e65d528a49",
}


FIELDS = {"dream": "dialogue", "aqua": "question"}


def shown_in(listed, condition):
    """Return what the pass over the whole list makes of the records that were asked about."""
    done = published_pass([record.texts[FIELDS[record.corpus]] for record in listed.pass_over], condition)
    place = {record.record_id: number for number, record in enumerate(listed.pass_over)}
    return [done[place[record.record_id]] for record in listed.records]


@pytest.fixture(scope="module")
def lists(shared):
    """The lists of DREAM's two parts and of AQuA's test questions."""
    dream = {
        split: published_list("dream", shared / "data/dream", task="question", split=split)
        for split in ("test", "dev")
    }
    return {**dream, "aqua": published_list("aqua", shared / "data/aqua", task="problem")}


@pytest.mark.shared
@pytest.mark.parametrize(("corpus", "condition", "place"), list(RELEASED_PROMPTS))
def test_dream_and_aqua_come_out_as_in_the_released_prompts(corpus, condition, place, lists):
    shown = shown_in(lists[corpus], condition)[place]
    fingerprint = hashlib.sha256(shown.encode("utf-8")).hexdigest()[:16]
    assert fingerprint == RELEASED_PROMPTS[corpus, condition, place]


@pytest.mark.parametrize(
    ("operation", "rate", "said"),
    [
        ("transpose:finel", None, "'transpose:finel'"),
        ("transpose:internal", None, "published transpose:internal: "),
        ("transpose:internal", None, "WORD-REO-REV (words:reverse)"),
        ("keep:two_random", None, "published KR2 "),
        ("transpose:after_first", None, "published KF&ADJ "),
        ("KFL(min_letters=5)", None, "min_letters: 5"),
        ("delete:initial(count=2)", None, "count: 2"),
        ("REO-INT_2(fewer=make)", None, "fewer: make"),
        ("shuffle:all(spaced=true)", None, "spaced: true"),
        ("shuffle:all(distance=2)", None, "'distance'"),
        ("words:reverse;texts=0.5", None, "share 0.5 "),
        ("RS", 0.25, "steps of 0.1"),
        ("RS-120", None, "0 and 100 %"),
        ("RS-50", 0.2, "rate 0.5"),
        ("KF", 0.5, "published"),
        ("KR2", None, "published KR2 "),
        ("kl&kr1", None, "published KL&KR1 "),
        ("KF&KR1", None, "released"),
        ("KF&Adj-30", None, "corrected"),
        ("KFFL", None, "'KFL'"),
        ("REO-INT_5", None, "'REO-INT_"),
        ("REO-IN", None, "'REO-INT'?"),
        ("REO-INT@0.5", None, "published REO-INT "),
        ("char_swap", None, "'CHAR_SWAP'"),
    ],
)
def test_what_was_not_published_is_refused(operation, rate, said):
    with pytest.raises(UserError) as raised:
        published_pass(["text"], operation, rate=rate)
    assert said in str(raised.value)
