"""What stays in memory between requests: a conversation's next turn costs its new tokens only."""

from __future__ import annotations

import numpy as np
import pytest

from experiment.models import Message, Reply, Request
from stimuli.seeds import stable_seed

torch = pytest.importorskip("torch")

from experiment.models.local.packed import Trie  # noqa: E402
from experiment.models.local.rows import Row  # noqa: E402

ITEMS = [
    "Teh dgo barks.",
    "The quick borwn fox.",
    "every wrod of it",
    "yes",
    "engine jumps",
    "garden",
    "the lazy dog",
]
BEFORE = "Which group does the sentence belong to? Answer A or B. " * 3


class Conversations:
    """Sessions that grow by the answer given and the next item."""

    def __init__(self, sessions: int, turns: int, **asked: object) -> None:
        self.turns = turns
        self.asked = {"labels": ("A", "B"), "max_tokens": 4, "temperature": 0.0, **asked}
        self.sent: dict[str, Request] = {}
        self.begun = [
            self._request(f"{n}:0", (Message("user", BEFORE + ITEMS[n % len(ITEMS)] + str(n)),))
            for n in range(sessions)
        ]

    def _request(self, key: str, messages: tuple[Message, ...]) -> Request:
        request = Request(key, messages, seed=stable_seed(key), **self.asked)
        self.sent[key] = request
        return request

    def follow(self, reply: Reply) -> list[Request]:
        session, turn = map(int, reply.work_key.split(":"))
        if turn + 1 == self.turns:
            return []
        item = ITEMS[(session + turn + 1) % len(ITEMS)] + f" {session} {turn}"
        told = (Message("assistant", reply.text or "?"), Message("user", item))
        return [self._request(f"{session}:{turn + 1}", (*self.sent[reply.work_key].messages, *told))]


def least_tokens(engine, sent: dict[str, Request]) -> int:
    ids = [engine.wording.tokens(request).ids for request in sent.values()]
    return Trie([Row(np.asarray(one, dtype=np.int32)) for one in ids]).size


@pytest.mark.parametrize("template", ["plain_model", "chat_model"])
@pytest.mark.parametrize("sessions", [1, 5])
def test_a_turn_costs_its_new_tokens_only(request, local, template, sessions):
    engine = local(request.getfixturevalue(template))
    talk = Conversations(sessions, 6)
    replies = list(engine.answer(talk.begun, talk.follow))
    assert sorted(reply.work_key for reply in replies) == sorted(talk.sent)
    assert len(replies) == sessions * 6
    assert engine.describe()["tokens_forwarded"] <= least_tokens(engine, talk.sent) + len(replies)
    late = [reply for reply in replies if int(reply.work_key.split(":")[1]) > 0]
    assert all(reply.prompt_tokens - reply.cached_tokens < 60 for reply in late)


def test_numbers_of_growing_conversations_are_those_of_plain_passes(chat_model, local):
    fast, exact = local(chat_model), local(chat_model, determinism="exact")
    left, right = Conversations(4, 6), Conversations(4, 6)
    told = {reply.work_key: reply for reply in fast.answer(left.begun, left.follow)}
    for reply in exact.answer(right.begun, right.follow):
        assert left.sent[reply.work_key].messages == right.sent[reply.work_key].messages
        assert told[reply.work_key].label_logprobs == pytest.approx(reply.label_logprobs, abs=2e-5)
    assert fast.describe()["tokens_forwarded"] < exact.describe()["tokens_forwarded"] / 4


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_conversations_generate_side_by_side_as_they_would_alone(chat_model, local, temperature):
    together, alone = local(chat_model), local(chat_model, determinism="exact")
    for engine in (together, alone):
        engine._load().ends = set()
    found = []
    for engine in (together, alone):
        talk = Conversations(8, 4, labels=None, max_tokens=12, temperature=temperature)
        found.append({reply.work_key: reply.text for reply in engine.answer(talk.begun, talk.follow)})
    assert found[0] == found[1]
    assert len(set(found[0].values())) > 16, "answers are not all the same"
    assert together._load().calls < alone._load().calls / 2
