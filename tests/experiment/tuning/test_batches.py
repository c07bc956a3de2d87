"""What a step is trained on: every token once an epoch, the same for the same seed, only replies scored."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiment.models.engine import Message, Request
from experiment.models.local.tokens import Wording
from experiment.tuning.batches import IGNORED, Order, Rows, held_out_pieces, parts_of

lengths = st.lists(st.integers(2, 40), min_size=2, max_size=30)


def rows(of: list[int], *, replies: bool) -> Rows:
    ids = np.arange(sum(of), dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum(of)]).astype(np.int64)
    return Rows(
        ids, starts, np.asarray([1 if not replies else n - 1 for n in of], dtype=np.int32), replies, 0, "k"
    )


def order(of: list[int], *, replies: bool, seed: int = 1) -> Order:
    return Order(
        rows(of, replies=replies), np.arange(len(of)), seed=seed, batch_tokens=50, sequence_length=16
    )


@given(lengths)
def test_running_text_is_predicted_once_an_epoch_but_for_the_very_first_token(of):
    steps = order(of, replies=False)
    for epoch in (0, 1):
        predicted: Counter[int] = Counter()
        for step in range(steps.steps_in(epoch)):
            for piece in steps.pieces(epoch, step):
                assert 2 <= len(piece.ids) <= 17 and piece.scored == 1
                predicted.update(piece.ids[1:].tolist())
        assert set(predicted.values()) == {1} and len(predicted) == sum(of) - 1


@given(lengths)
def test_prompts_are_taken_whole_once_an_epoch_within_the_budget(of):
    steps = order(of, replies=True)
    seen: list[int] = []
    for step in range(steps.steps_in(0)):
        pieces = steps.pieces(0, step)
        assert len(pieces) == 1 or sum(len(piece.ids) for piece in pieces) <= 50
        seen += [int(piece.ids[0]) for piece in pieces]
    assert sorted(seen) == [0, *np.cumsum(of)[:-1].tolist()]


@given(lengths, st.integers(1, 200))
def test_parts_hold_every_piece_and_score_the_reply_alone(of, most):
    pieces = held_out_pieces(rows(of, replies=True), np.arange(len(of)), 16)
    scored: list[int] = []
    for part in parts_of(pieces, most, padding=0):
        assert part.ids.size <= most or len(part.ids) == 1
        scored += part.wanted[part.wanted != IGNORED].tolist()
    assert sorted(scored) == sorted(int(piece.ids[-1]) for piece in pieces)


@pytest.mark.parametrize("template", [None, "chat"])
def test_a_reply_is_learnt_where_its_label_is_scored(tmp_path, template):
    from transformers import AutoTokenizer

    from experiment.tuning.batches import encoded
    from experiment.tuning.records import Records
    from tests.experiment.models.tiny_models import CHAT_TEMPLATE, byte_pair_tokenizer

    byte_pair_tokenizer(
        tmp_path / "t", template=CHAT_TEMPLATE if template else None, adds_bos=template is None
    )
    wording = Wording(AutoTokenizer.from_pretrained(str(tmp_path / "t")))
    file = tmp_path / "training.jsonl"
    file.write_text('{"prompt": "Teh dgo barks. A or B?", "reply": "A"}\n' * 12, "utf-8")
    found = encoded(tmp_path, Records(file, 12, True, "x", {}), wording, most=None)
    request = Request("k", (Message("user", "Teh dgo barks. A or B?"),), ("A",), 1, 0.0, 0)
    label = wording.tokens(request).labels[0]
    assert found.row(3).tolist() == [*label.ids, wording.tokenizer.eos_token_id]
    assert found.scored[3] == label.start
    again = encoded(tmp_path, Records(file, 12, True, "x", {}), wording, most=None)
    assert again.key == found.key
    with pytest.raises(Exception, match="every one of 12 prompts is longer"):
        encoded(tmp_path, Records(file, 12, True, "x", {}), wording, most=3)
