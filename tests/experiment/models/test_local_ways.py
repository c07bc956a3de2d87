"""Every way through a model gives the numbers of plain passes, for every family of attention."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.experiment.models.tiny_models import tiny_family

torch = pytest.importorskip("torch")

from experiment.models.local.causal_model import CausalModel  # noqa: E402
from experiment.models.local.engine import choose_way, require_causal  # noqa: E402
from experiment.models.local.packed import PackedBackend, Trie  # noqa: E402
from experiment.models.local.plain import PlainBackend  # noqa: E402
from experiment.models.local.rows import Decoding, MemoryBudget, Row  # noqa: E402

KINDS = ("Llama", "Gemma3Text", "GPT2", "OPT", "GptOss", "DeepseekV3")
"""One family of each kind of attention; their relatives are in the full suite."""
RELATIVES = ("Mistral", "Qwen3", "Gemma2", "GPTNeoX", "Phi3")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def some_rows() -> list[Row]:
    """Rows with two long stems and a short one, asked at ends and in the middle, some continued, two the same."""
    draws = np.random.default_rng(0)
    stem = draws.integers(2, 400, 60)
    other = np.concatenate([stem[:30], draws.integers(2, 400, 25)])
    rows = []
    for number in range(24):
        base = [stem, other, stem[:10]][number % 3]
        ids = np.concatenate([base, draws.integers(2, 400, draws.integers(3, 12))]).astype(np.int32)
        decoding = Decoding(3 + number % 6, 0.0, 1, lambda _: False) if number % 2 else None
        targets = ((len(ids), 5), (len(ids), 7), (12 if len(ids) > 12 else 3, 9), (1, 4))
        states = (0, len(ids) // 2, len(ids) - 1)
        borders = (len(ids), 2) if number % 4 else (len(ids),)
        rows.append(
            Row(ids, targets, borders, states, decoding, mean=number % 5 != 1, entropies=(len(ids), 2))
        )
    begins = Row(stem[:30].astype(np.int32), ((30, 4),), decoding=Decoding(5, 0.0, 1, lambda _: False))
    return [*rows, rows[3], begins]


def late_rows() -> list[Row]:
    """The same rows, with nothing asked before their ends, so that they may go on from what they share."""
    rows = some_rows()
    return [
        replace(
            row,
            targets=row.targets[:2],
            borders=row.borders[:1],
            entropies=row.entropies[:1],
            states=row.states[-1:],
        )
        for row in rows[:-1]
    ]


def model_of(name: str) -> CausalModel:
    model = tiny_family(name).to(DEVICE)
    return CausalModel(model, DEVICE, {1}, lambda count: [number % 3 == 0 for number in range(count)])


def held_against_transformers(model: CausalModel, rows: list[Row], found: dict) -> None:
    begins = torch.tensor([number % 3 == 0 for number in range(model.vocabulary)])
    for place, row in enumerate(rows):
        with torch.no_grad():
            given = torch.tensor(row.ids.astype(np.int64), device=DEVICE)[None]
            output = model.model(given, output_hidden_states=bool(row.states or row.mean))
        logprobs = output.logits[0].float().cpu().log_softmax(-1)
        for position, token in row.targets:
            assert found[place].logprobs[position, token] == pytest.approx(
                logprobs[position - 1, token].item(), abs=5e-5
            )
        for position in row.borders:
            mass = logprobs[position - 1][begins].logsumexp(-1).item()
            assert found[place].borders[position] == pytest.approx(mass, abs=5e-5)
        for position in row.entropies:
            expected = logprobs[position - 1].double()
            if position in row.borders:
                expected = expected[begins] - expected[begins].logsumexp(-1)
            entropy = -(expected.exp() * expected).sum().item()
            assert found[place].entropies[position] == pytest.approx(entropy, abs=5e-5)
        for position in row.states:
            states = found[place].states[position]
            assert states.dtype == np.float16 and len(states) == len(output.hidden_states)
            for layer in range(len(states) - 1):
                expected = output.hidden_states[layer][0, position].cpu().numpy()
                np.testing.assert_allclose(states[layer], expected, rtol=2e-3, atol=2e-3)
        mean = found[place].mean
        assert (mean is not None) == row.mean
        if mean is not None:
            assert mean.dtype == np.float16 and len(mean) == len(output.hidden_states)
            for layer in range(len(mean) - 1):
                expected = output.hidden_states[layer][0].mean(dim=0).cpu().numpy()
                np.testing.assert_allclose(mean[layer], expected, rtol=2e-3, atol=2e-3)
        if row.decoding is not None:
            ids = row.ids.tolist()
            for _ in range(row.decoding.max_tokens):
                with torch.no_grad():
                    ids.append(int(model.model(torch.tensor([ids], device=DEVICE)).logits[0, -1].argmax()))
                if ids[-1] == 1:
                    break
            assert found[place].decoded.ids == ids[len(row.ids) :]


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        *(("Llama", tokens) for tokens in (16, 4096)),
        *((name, 64) for name in KINDS),
        *(pytest.param(name, 64, marks=pytest.mark.full) for name in RELATIVES),
    ],
)
def test_branches_side_by_side_give_the_numbers_of_plain_passes(name, tokens):
    model, rows = model_of(name), some_rows()
    found = dict(PackedBackend(model).compute(rows, MemoryBudget(tokens, 100_000)))
    held_against_transformers(model, rows, found)
    generated = sum(len(one.decoded.ids) - 1 for one in found.values() if one.decoded is not None)
    assert model.forwarded == Trie(rows).size + generated, (
        "each shared token once, each generated one but the last"
    )
    assert sum(one.computed for one in found.values()) == Trie(rows).size


@pytest.mark.parametrize(
    ("name", "asked"),
    [("Bloom", some_rows), ("Bloom", late_rows), ("Falcon", late_rows), ("Mistral", late_rows)],
)
def test_batches_behind_a_prefix_give_the_numbers_of_plain_passes(name, asked):
    model, rows = model_of(name), asked()
    found = dict(PlainBackend(model, alone=False, shares=True).compute(rows, MemoryBudget(256, 100_000)))
    held_against_transformers(model, rows, found)
    if asked is late_rows:
        assert sum(one.computed for one in found.values()) < sum(len(row.ids) for row in rows) * 0.4


def test_tokens_of_the_check_for_tokens_behind_are_counted_apart():
    model = model_of("Llama")
    require_causal(model, some_rows()[0].ids, "float32", "m")
    assert (model.forwarded, model.calls, model.check_tokens) == (0, 0, 2 * 16)


def test_a_small_fault_is_not_taken_for_rounding(monkeypatch):
    from experiment.models.local.causal_model import OutputSelection

    original = OutputSelection.note

    def faulty(self, model, found, logits, hidden) -> None:
        original(self, model, found, logits, hidden)
        for one in found:
            one.logprobs = {pick: value + 8e-4 for pick, value in one.logprobs.items()}

    monkeypatch.setattr(OutputSelection, "note", faulty)
    model = model_of("Llama")
    choice = choose_way(model, some_rows(), "float32", PlainBackend(model))
    assert choice.record["path"] == "plain" and set(choice.record["refused"]) == {
        "packed",
        "expanded",
        "batched",
    }


def test_the_last_layer_of_hidden_states_is_the_last_block_before_the_final_norm():
    model = model_of("Llama")
    row = Row(np.arange(2, 40, dtype=np.int32), states=(37,))
    ((_, found),) = PackedBackend(model).compute([row], MemoryBudget(64, 1000))
    normed = model.model.model.norm(torch.tensor(found.states[37][-1]).float().to(DEVICE)[None])
    with torch.no_grad():
        given = torch.arange(2, 40, device=DEVICE)[None]
        last = model.model(given, output_hidden_states=True).hidden_states[-1][0, -1]
    np.testing.assert_allclose(normed[0].cpu(), last.cpu(), rtol=1e-2, atol=5e-3)
