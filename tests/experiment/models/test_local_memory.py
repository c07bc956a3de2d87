"""What stays in memory between requests: a conversation's next turn costs its new tokens only."""

from __future__ import annotations

import numpy as np
import pytest

from experiment.models import Message, Reply, Request
from stimuli.seeds import stable_seed
from tests.experiment.models.tiny_models import ask, tiny_llama

torch = pytest.importorskip("torch")

from experiment.models.local import windows  # noqa: E402
from experiment.models.local.kept import SLACK  # noqa: E402
from experiment.models.local.rows import Row  # noqa: E402
from experiment.models.local.trie import Trie  # noqa: E402

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
def test_a_turn_costs_its_new_tokens_only(request, local, template, sessions) -> None:
    engine = local(request.getfixturevalue(template))
    talk = Conversations(sessions, 6)
    replies = list(engine.answer(talk.begun, talk.follow))
    assert sorted(reply.work_key for reply in replies) == sorted(talk.sent)
    assert len(replies) == sessions * 6
    assert engine.describe()["tokens_forwarded"] <= least_tokens(engine, talk.sent) + len(replies)
    late = [reply for reply in replies if int(reply.work_key.split(":")[1]) > 0]
    assert all(reply.prompt_tokens - reply.cached_tokens < 60 for reply in late)


@pytest.mark.parametrize("labels", [("of course not", "of course"), ("unscramble it", "garden")])
def test_labels_of_several_tokens_let_a_turn_cost_its_new_tokens_too(plain_model, local, labels) -> None:
    engine, exact = local(plain_model), local(plain_model, determinism="exact")
    talk, again = Conversations(4, 5, labels=labels), Conversations(4, 5, labels=labels)
    replies = list(engine.answer(talk.begun, talk.follow))
    for reply in exact.answer(again.begun, again.follow):
        told = next(one for one in replies if one.work_key == reply.work_key)
        assert told.label_logprobs == pytest.approx(reply.label_logprobs, abs=2e-5)
    scored = sum(
        len(label.ids) - len(engine.wording.tokens(talk.sent["0:0"]).ids)
        for label in engine.wording.tokens(talk.sent["0:0"]).labels
    )
    assert engine.describe()["tokens_forwarded"] <= least_tokens(engine, talk.sent) + len(replies) * scored


def test_numbers_of_growing_conversations_are_those_of_plain_passes(chat_model, local) -> None:
    fast, exact = local(chat_model), local(chat_model, determinism="exact")
    left, right = Conversations(4, 6), Conversations(4, 6)
    told = {reply.work_key: reply for reply in fast.answer(left.begun, left.follow)}
    for reply in exact.answer(right.begun, right.follow):
        assert left.sent[reply.work_key].messages == right.sent[reply.work_key].messages
        assert told[reply.work_key].label_logprobs == pytest.approx(reply.label_logprobs, abs=2e-5)
    assert fast.describe()["tokens_forwarded"] < exact.describe()["tokens_forwarded"] / 4


def test_generated_turns_are_not_computed_again(chat_model, local) -> None:
    engine = local(chat_model)
    engine._load().ends = set()
    talk = Conversations(3, 5, labels=None, max_tokens=6)
    replies = list(engine.answer(talk.begun, talk.follow))
    exact = local(chat_model, determinism="exact")
    exact._load().ends = set()
    again = Conversations(3, 5, labels=None, max_tokens=6)
    texts = {reply.work_key: reply.text for reply in exact.answer(again.begun, again.follow)}
    assert {reply.work_key: reply.text for reply in replies} == texts
    assert engine.describe()["tokens_forwarded"] < exact.describe()["tokens_forwarded"] / 2


def test_more_conversations_than_memory_holds_are_led_to_their_end_in_turn(plain_model, local) -> None:
    engine = local(plain_model)
    engine._load()
    engine.budget.held = 600
    talk = Conversations(40, 4)
    order = [reply.work_key for reply in engine.answer(talk.begun, talk.follow)]
    assert len(order) == 160
    done = [key for key in order if key.endswith(":3")]
    first_end, last_begin = order.index(done[0]), max(order.index(key) for key in order if key.endswith(":1"))
    assert first_end < last_begin, "some conversations end before others go on"
    lost = engine.describe()["tokens_forwarded"] - least_tokens(engine, talk.sent)
    again = sum(len(engine.wording.tokens(talk.sent[f"{n}:0"]).ids) for n in range(40))
    assert lost < again, "at most what memory could not hold was computed twice, once a conversation"
    assert engine._computing._ways[0].memory.kept.tokens <= 600


def test_what_conversations_begin_with_is_held_once(plain_model, local) -> None:
    engine = local(plain_model)
    talk = Conversations(30, 3)
    list(engine.answer(talk.begun, talk.follow))
    prompts = [engine.wording.tokens(talk.sent[f"{n}:2"]).ids for n in range(30)]
    least = Trie([Row(np.asarray(one, dtype=np.int32)) for one in prompts]).size
    kept = engine._computing._ways[0].memory.kept
    assert kept.tokens <= least + 30 * SLACK < sum(map(len, prompts)) * 0.7
    held = sum(tensor.nelement() for one in kept._stretches() for tensor in one.keys.values())
    assert held == kept.tokens * 2 * 16, "2 layers, 2 heads of 8: nothing else is held on to"


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_conversations_generate_side_by_side_as_they_would_alone(chat_model, local, temperature) -> None:
    together, alone = local(chat_model), local(chat_model, determinism="stable")
    for engine in (together, alone):
        engine._load().ends = set()
    found = []
    for engine in (together, alone):
        talk = Conversations(8, 4, labels=None, max_tokens=12, temperature=temperature)
        found.append({reply.work_key: reply.text for reply in engine.answer(talk.begun, talk.follow)})
    assert found[0] == found[1]
    assert len(set(found[0].values())) > 16, "answers are not all the same"
    assert together._load().calls < alone._load().calls / 2


def test_a_prefix_is_not_computed_anew_at_the_border_of_a_window(plain_model, local, monkeypatch) -> None:
    monkeypatch.setattr(windows, "WINDOW", 7)
    engine = local(plain_model)
    requests = [ask(str(n), f"{n} {text}", labels=("A", "B")) for n, text in enumerate(ITEMS * 4)]
    replies = list(engine.answer(requests))
    assert len(replies) == 28
    least = least_tokens(engine, {request.work_key: request for request in requests})
    assert engine.describe()["tokens_forwarded"] <= least + 4 * 3


@pytest.mark.parametrize("name", ["Bloom"])
def test_batches_behind_a_prefix_remember_too(tmp_path, local, name) -> None:
    import transformers

    folder = tiny_llama(tmp_path)
    torch.manual_seed(0)
    config = transformers.BloomConfig(
        vocab_size=400, hidden_size=32, n_layer=2, n_head=4, initializer_range=0.3
    )
    transformers.BloomForCausalLM(config).save_pretrained(str(folder))
    engine = local(folder)
    talk = Conversations(3, 6)
    replies = list(engine.answer(talk.begun, talk.follow))
    assert {reply.path for reply in replies} == {"expanded"}
    sent = {key: engine.wording.tokens(request).ids for key, request in talk.sent.items()}
    assert engine.describe()["tokens_forwarded"] < sum(map(len, sent.values())) / 3
    with torch.no_grad():
        for reply in replies:
            label = engine.wording.tokens(talk.sent[reply.work_key]).labels[0]
            logprobs = engine._load().model(torch.tensor([label.ids])).logits[0].log_softmax(-1)
            expected = sum(
                logprobs[at - 1, label.ids[at]].item() for at in range(label.start, len(label.ids))
            )
            assert reply.label_logprobs[label.label] == pytest.approx(expected, abs=1e-4)


def test_bundles_of_a_stable_run_remember_nothing_of_each_other(plain_model, local) -> None:
    engine = local(plain_model, determinism="stable")
    requests = [ask(str(n), f"{ITEMS[n % 7]} {n}", labels=("A", "B")) for n in range(70)]
    whole = {reply.work_key: reply.label_logprobs for reply in engine.answer(requests)}
    again = {reply.work_key: reply.label_logprobs for reply in engine.answer(requests[32:64])}
    assert all(whole[key] == again[key] for key in again)
