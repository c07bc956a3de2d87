"""Encoder–decoders: labels and texts against transformers' own forward and generate."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment.models import Message, Request
from experiment.models.engine import Span

torch = pytest.importorskip("torch")

TEXTS = [
    "Teh dgo barks.",
    "The quick borwn fox jumps over the lazy dog.",
    "yes",
    "garden",
    "which word is it? engine",
]


def pieces_tokenizer(folder: Path) -> int:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    from tests.experiment.models.tiny_models import CORPUS

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    trainer = trainers.UnigramTrainer(
        vocab_size=150, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>"
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    fast.save_pretrained(str(folder))
    return len(fast)


@pytest.fixture(scope="module", params=["t5", "ul2", "byt5"])
def folder(request, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import ByT5Tokenizer, T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "byt5":
        ByT5Tokenizer().save_pretrained(str(folder))
        size = 384
    else:
        size = pieces_tokenizer(folder)
    torch.manual_seed(2)
    more = {} if request.param == "t5" else {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
    config = T5Config(
        vocab_size=size, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0,
        pad_token_id=0, eos_token_id=1, initializer_factor=3.0, **more,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(str(folder))
    return folder


def parts(folder: Path):
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    return AutoTokenizer.from_pretrained(folder), T5ForConditionalGeneration.from_pretrained(folder).eval()


def ask(key: str, text: str, labels=None, **more) -> Request:
    return Request(key, (Message("user", text),), labels, 8, more.pop("temperature", 0.0), 1, **more)


@pytest.mark.parametrize("determinism", ["fast", "exact"])
def test_labels_are_scored_by_teacher_forcing_in_the_decoder(folder, local, determinism):
    tokenizer, model = parts(folder)
    labels = ("yes", "no", "of course not")
    engine = local(folder, determinism=determinism)
    replies = {
        r.work_key: r for r in engine.answer([ask(str(n), text, labels) for n, text in enumerate(TEXTS)])
    }
    for n, text in enumerate(TEXTS):
        for label in labels:
            target = tokenizer(label, add_special_tokens=False, return_tensors="pt")["input_ids"]
            with torch.no_grad():
                logits = model(**tokenizer(text, return_tensors="pt"), labels=target).logits[0]
            expected = logits.log_softmax(-1)[range(target.shape[1]), target[0]].sum().item()
            assert replies[str(n)].label_logprobs[label] == pytest.approx(expected, rel=1e-4, abs=1e-4)
        assert replies[str(n)].prompt_tokens == len(tokenizer(text)["input_ids"])
    assert engine.describe()["parity"]["path"] == ("batched" if determinism == "fast" else "plain")


def test_surprisal_is_not_defined_for_an_encoder_and_the_description_says_so(folder, local):
    engine = local(folder)
    (reply,) = engine.answer([ask("k", TEXTS[0], ("yes", "no"), regions=(Span(0, 0, 3),), states=("last",))])
    assert (reply.status, reply.regions, reply.states, reply.surprisal) == ("answered", (), (), None)
    assert "encoder" in engine.describe()["surprisal"]
