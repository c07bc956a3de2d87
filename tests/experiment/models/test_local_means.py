"""The mean of hidden states over all tokens of a prompt, on every way through a model, with what prompts share summed once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from experiment.models import Message, Reply, Request
from stimuli.seeds import stable_seed
from tests.experiment.models.tiny_models import TEXTS, tiny_family

torch = pytest.importorskip("torch")

from experiment.models.local.causal_model import CausalModel  # noqa: E402
from experiment.models.local.engine import choose_way  # noqa: E402
from experiment.models.local.kv_cache_tree import SLACK  # noqa: E402
from experiment.models.local.packed import PackedBackend, Trie  # noqa: E402
from experiment.models.local.plain import PlainBackend  # noqa: E402
from experiment.models.local.rows import Decoding, MemoryBudget, Row  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WAYS = {
    "packed": PackedBackend,
    "expanded": lambda model: PlainBackend(model, alone=False, shares=True),
    "batched": lambda model: PlainBackend(model, alone=False),
    "plain": PlainBackend,
}


def model_of(name: str, dtype: str = "float32") -> CausalModel:
    model = tiny_family(name).to(DEVICE, getattr(torch, dtype))
    return CausalModel(model, DEVICE, {1}, lambda count: [number % 3 == 0 for number in range(count)])


def prompts(count: int = 20, seed: int = 0) -> list[Row]:
    """Rows that share a long stem, some of them a longer one, of unlike length; some are continued."""
    draws = np.random.default_rng(seed)
    stem = np.random.default_rng(99).integers(2, 400, 60)
    rows = []
    for number in range(count):
        base = stem if number % 3 else np.concatenate([stem, stem[:20]])
        ids = np.concatenate([base, draws.integers(2, 400, 3 + number % 9)]).astype(np.int32)
        how = Decoding(3, 0.0, 1, lambda _: False) if number % 4 == 0 else None
        rows.append(Row(ids, ((len(ids), 5),), decoding=how, mean=True))
    return rows


@pytest.mark.parametrize("way", WAYS)
def test_models_in_16_bits_are_summed_in_32(way):
    """In 16 bits a sum of thousands of numbers near 1 stays behind: at 256 one more 1 is lost in bfloat16."""
    model = model_of("Llama", "bfloat16")
    with torch.no_grad():
        model.model.get_input_embeddings().weight.fill_(1.0)
    length = 500
    ids = np.random.default_rng(1).integers(2, 400, length).astype(np.int32)
    rows = [Row(ids, mean=True), Row(np.concatenate([ids[:-3], ids[:9]]), mean=True)]
    found = dict(WAYS[way](model).compute(rows, MemoryBudget(128, 100_000)))
    for place in range(2):
        assert (found[place].mean[0] == 1.0).all()


@pytest.mark.parametrize(("way", "name"), [("packed", "Llama"), ("expanded", "Falcon")])
def test_what_windows_share_is_computed_once_and_counts_in_every_mean(way, name):
    model, fresh = model_of(name), model_of(name)
    windows = [prompts(12, seed) for seed in range(3)]
    budget = MemoryBudget(64, 100_000)
    one, plain = WAYS[way](model), PlainBackend(fresh)
    for rows in windows:
        found, expected = dict(one.compute(rows, budget)), dict(plain.compute(rows, budget))
        for place in range(len(rows)):
            np.testing.assert_allclose(found[place].mean, expected[place].mean, rtol=4e-3, atol=4e-3)
    without = model_of(name)
    one = WAYS[way](without)
    for rows in windows:
        list(one.compute([replace(row, mean=False) for row in rows], budget))
    assert model.forwarded == without.forwarded, "a mean costs no token more"
    assert model.forwarded < fresh.forwarded / 3


@pytest.mark.parametrize(
    ("template", "asked"),
    [("plain_model", {"labels": ("A", "B")}), ("chat_model", {"labels": None, "max_tokens": 6})],
)
def test_conversations_keep_the_mean_of_all_that_was_read(request, local, template, asked):
    folder = request.getfixturevalue(template)
    engine, exact = local(folder), local(folder, determinism="exact")
    talk, again = Conversations(4, 5, **asked), Conversations(4, 5, **asked)
    for one in (talk, again):
        one._request = lambda key, messages, made=one._request, one=one: _with_states(
            one, made(key, messages)
        )
        one.begun = [_with_states(one, first) for first in one.begun]
    told = {reply.work_key: reply for reply in engine.answer(talk.begun, talk.follow)}
    plain = {reply.work_key: reply for reply in exact.answer(again.begun, again.follow)}
    for key, reply in plain.items():
        assert talk.sent[key].messages == again.sent[key].messages
        assert (told[key].label_logprobs or {}) == pytest.approx(reply.label_logprobs or {}, abs=2e-5)
        assert [state.position for state in told[key].states] == ["last", "mean"]
        for own, other in zip(told[key].states, reply.states, strict=True):
            np.testing.assert_allclose(own.layers, other.layers, rtol=4e-3, atol=4e-3)
    assert engine.describe()["tokens_forwarded"] < exact.describe()["tokens_forwarded"] / 3
    if asked["labels"]:  # a template may open an answer otherwise than it stands in the next turn
        most = least_tokens(engine, talk.sent) + len(told) * SLACK
        assert engine.describe()["tokens_forwarded"] <= most


def _with_states(talk: Conversations, request):
    talk.sent[request.work_key] = made = replace(request, states=("last", "mean"))
    return made


def test_a_way_whose_means_are_wrong_is_refused(monkeypatch):
    from experiment.models.local.causal_model import OutputSelection

    original = OutputSelection.summed
    monkeypatch.setattr(
        OutputSelection,
        "summed",
        lambda self, hidden: {name: sums * 1.05 for name, sums in original(self, hidden).items()},
    )
    model = model_of("Llama")
    choice = choose_way(model, prompts(), "float32", PlainBackend(model))
    assert choice.record["path"] == "plain"
    assert all("hidden states" in why for why in choice.record["refused"].values())
    without = choose_way(
        model, [replace(row, mean=False) for row in prompts()], "float32", PlainBackend(model)
    )
    assert without.record["path"] == "packed", "what is not asked is not checked"


ITEMS = [*TEXTS, "garden", "the lazy dog"]
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


@pytest.mark.parametrize(("template", "sessions"), [("plain_model", 1), ("chat_model", 5)])
def test_a_turn_costs_its_new_tokens_only(request, local, template, sessions):
    engine = local(request.getfixturevalue(template))
    talk = Conversations(sessions, 6)
    replies = list(engine.answer(talk.begun, talk.follow))
    assert sorted(reply.work_key for reply in replies) == sorted(talk.sent)
    assert len(replies) == sessions * 6
    assert engine.describe()["tokens_forwarded"] <= least_tokens(engine, talk.sent) + len(replies)
    late = [reply for reply in replies if int(reply.work_key.split(":")[1]) > 0]
    assert all(reply.prompt_tokens - reply.cached_tokens < 60 for reply in late)


def test_conversations_generate_side_by_side_as_they_would_alone(chat_model, local):
    together, alone = local(chat_model), local(chat_model, determinism="exact")
    for engine in (together, alone):
        engine._load().ends = set()
    found = []
    for engine in (together, alone):
        talk = Conversations(8, 4, labels=None, max_tokens=12, temperature=1.0)
        found.append({reply.work_key: reply.text for reply in engine.answer(talk.begun, talk.follow)})
    assert found[0] == found[1]
    assert len(set(found[0].values())) > 16, "answers are not all the same"
    assert together._load().calls < alone._load().calls / 2
