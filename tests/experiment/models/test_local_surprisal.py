"""Surprisal of regions, against sums over the whole vocabulary that share nothing with the engine."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from experiment.models import Message, Request
from experiment.models.engine import Span
from tests.experiment.models.tiny_models import CHAT_TEMPLATE, CORPUS, tiny_llama

torch = pytest.importorskip("torch")

BEFORE = "Read the sentence. "
SENTENCES = [
    "Teh dgo barks, of course: does it bark?",
    "“The quick” fox’s dog — every word…",
    "the 🙂 dog 👩‍🚀 jumps",
    "単語 を 読む 犬",
    "cafe\u0301 naïve re\u0301sume\u0301",
    "  the  dog   jumps ",
    "word\nword\n\nword\tword",
]


def tokenizer_of(kind: str):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<s>", "</s>", "<unk>"]
    if kind.startswith("pieces"):
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True))
        scheme = {"pieces": "always", "pieces first": "first", "pieces never": "never"}[kind]
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
        tokenizer.decoder = decoders.Sequence(
            [decoders.Metaspace(prepend_scheme=scheme), decoders.ByteFallback(), decoders.Fuse()]
        )
        trainer = trainers.BpeTrainer(
            vocab_size=480, special_tokens=[*special, *(f"<0x{n:02X}>" for n in range(256))]
        )
        tokenizer.train_from_iterator(CORPUS, trainer)
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    else:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        size = len(special) + 256 + (0 if kind == "bytes" else 120)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=alphabet)
        tokenizer.train_from_iterator(CORPUS, trainer)
        tokenizer.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=kind == "trimmed"),
                processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)]),
            ]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory):
    from experiment.models import ModelSettings
    from experiment.models.local import LocalEngine

    engines: dict[tuple[str, str | None], LocalEngine] = {}

    def engine(kind: str, template: str | None = None) -> LocalEngine:
        if (kind, template) not in engines:
            folder = tmp_path_factory.mktemp("model")
            tokenizer = tokenizer_of(kind)
            tiny_model(folder, len(tokenizer))
            if template is not None:
                tokenizer.chat_template = template
            tokenizer.save_pretrained(str(folder))
            engines[kind, template] = LocalEngine(ModelSettings(f"hf:{folder}"))
        return engines[kind, template]

    return engine


def tiny_model(folder: Path, size: int) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=512, initializer_range=0.4, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(str(folder))


def words_of(text: str) -> list[tuple[int, int]]:
    found, start = [], None
    for at, letter in enumerate([*text, " "]):
        if letter.isspace() and start is not None:
            found.append((start, at))
            start = None
        elif not letter.isspace() and start is None:
            start = at
    return found


def asked(text: str, spans, before: str = BEFORE) -> Request:
    regions = tuple(Span(0, start + len(before), end + len(before)) for start, end in spans)
    return Request("k", (Message("user", before + text),), ("A",), 1, 0.0, 1, regions=regions)


def begins_word(piece: str, special: bool) -> bool:
    return special or piece in {"<0x20>", "<0x0A>", "<0x09>", "<0x0D>"} or piece[0] in "ĠĊĉčċČ▁ \n\t\r"


class Judge:
    """Log-probabilities of a whole text by one pass of transformers, and the tokens' pieces."""

    def __init__(self, engine, text: str) -> None:
        tokenizer = engine.wording.tokenizer
        self.ids = [0, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        if text.startswith("<s>"):
            self.ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            self.logprobs = engine._load().model(torch.tensor([self.ids])).logits[0].double().log_softmax(-1)
        pieces = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
        self.begins = [begins_word(piece, number < 3) for number, piece in enumerate(pieces)]

    def token(self, at: int) -> float:
        return self.logprobs[at - 1, self.ids[at]].item()

    def mass(self, at: int) -> float:
        return math.log(
            sum(self.logprobs[at - 1, n].exp().item() for n, one in enumerate(self.begins) if one)
        )

    def entropy(self, at: int) -> float:
        """Entropy over the tokens that can begin a word."""
        logprobs = [
            self.logprobs[at - 1, n].item() - self.mass(at) for n, one in enumerate(self.begins) if one
        ]
        return -sum(math.exp(value) * value for value in logprobs)

    def words(self) -> list[tuple[int, int]]:
        """First and last token of each stretch that begins with a token that can begin a word."""
        starts = [at for at in range(1, len(self.ids)) if self.begins[self.ids[at]]]
        return list(zip(starts, [*starts[1:], len(self.ids)], strict=True))

    def surprisal(self, first: int, last: int) -> float:
        total = sum(self.token(at) for at in range(first, last)) + self.mass(last)
        return -(total - self.mass(first))


@pytest.mark.parametrize("kind", ["merges", "trimmed", "pieces", "pieces first", "pieces never", "bytes"])
def test_words_cost_what_the_definition_says(opened, kind):
    engine = opened(kind)
    text = "Teh dgo barks of course does it bark"
    request = asked(text, words_of(text))
    (reply,) = engine.answer([request])
    judge = Judge(engine, request.messages[0].content)
    words = judge.words()[-8:]
    assert len(reply.regions) == 8
    for (first, last), region in zip(words, reply.regions, strict=True):
        assert region.surprisal == pytest.approx(judge.surprisal(first, last), abs=1e-4)
        assert region.tokens == last - first
        assert region.entropy == pytest.approx(judge.entropy(first), abs=1e-4)
    assert reply.surprisal == pytest.approx(sum(region.surprisal for region in reply.regions))


@pytest.mark.parametrize(("kind", "labels"), [("merges", ("A",)), ("pieces", None), ("bytes", None)])
def test_a_foil_costs_what_it_would_cost_in_the_place_of_the_word(opened, kind, labels):
    engine = opened(kind)
    words, foils = ["Teh", "dgo", "barks", "of", "course"], [None, "zebra", "of", None, "barks!"]
    spans = words_of(" ".join(words))
    plain = replace(asked(" ".join(words), spans), labels=labels)
    with_foils = tuple(replace(span, foil=foil) for span, foil in zip(plain.regions, foils, strict=True))
    (alone,) = engine.answer([plain])
    (reply,) = engine.answer([replace(plain, regions=with_foils)])
    assert [region.surprisal for region in reply.regions] == pytest.approx(
        [region.surprisal for region in alone.regions]
    )
    for place, foil in enumerate(foils):
        if foil is None:
            assert reply.regions[place].foil is None
            continue
        beginning = " ".join([*words[:place], foil])
        other = asked(beginning, words_of(beginning))
        (instead,) = engine.answer([other])
        assert reply.regions[place].foil == pytest.approx(instead.regions[place].surprisal, abs=1e-4)


@pytest.mark.parametrize("kind", ["merges", "pieces", "bytes"])
@pytest.mark.parametrize("text", SENTENCES)
def test_regions_side_by_side_sum_to_the_text_that_they_make(opened, kind, text):
    engine = opened(kind)
    spans = words_of(text)
    whole = asked(text, [(spans[0][0], spans[-1][1])])
    (apart,) = engine.answer([asked(text, spans)])
    (together,) = engine.answer([whole])
    judge = Judge(engine, BEFORE + text)
    assert all(region.surprisal is not None and region.tokens for region in apart.regions)
    if "  " not in text and "\n" not in text and "\t" not in text:
        assert apart.surprisal == pytest.approx(together.surprisal, abs=1e-4)
        assert sum(region.tokens for region in apart.regions) == together.regions[0].tokens
    for region in apart.regions:
        assert math.isfinite(region.surprisal)
    assert together.regions[0].tokens < len(judge.ids)


STRIPPING = CHAT_TEMPLATE.replace("{{ message['content'] }}", "{{ message['content'] | trim }}")


@pytest.mark.parametrize("template", [CHAT_TEMPLATE, STRIPPING])
def test_regions_are_found_behind_a_template_also_when_it_strips(opened, template):
    engine = opened("merges", template)
    content = "  user \n"
    messages = (Message("system", "user"), Message("user", content))
    request = Request("k", messages, None, 0, 0.0, 1, regions=(Span(1, 2, 6), Span(0, 0, 4))[::-1])
    (reply,) = engine.answer([request])
    rendered = engine.wording.text(messages)
    judge = Judge(engine, rendered)
    tokenizer = engine.wording.tokenizer
    offsets = tokenizer(rendered, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    at = rendered.rindex("user", 0, rendered.rindex("<|assistant|>"))
    mine = [
        n
        for n, (start, end) in enumerate(offsets)
        if start >= at - 1 and end <= at + 4 and rendered[start:end] != "\n"
    ]
    expected = -sum(judge.token(n) for n in mine)
    if judge.begins[judge.ids[mine[0]]]:
        expected += judge.mass(mine[0])
    if judge.begins[judge.ids[mine[-1] + 1]]:
        expected -= judge.mass(mine[-1] + 1)
    assert reply.regions[1].surprisal == pytest.approx(expected, abs=1e-4)
    assert reply.regions[0].surprisal != pytest.approx(reply.regions[1].surprisal, abs=1e-3)


def test_a_template_that_changes_a_message_has_no_regions_and_says_so(opened):
    engine = opened("merges", CHAT_TEMPLATE.replace("message['content'] }}", "message['content'] | upper }}"))
    request = Request("k", (Message("user", "the dog"),), None, 0, 0.0, 1, regions=(Span(0, 0, 3),))
    (reply,) = engine.answer([request])
    assert reply.status == "error" and "chat template" in reply.error


def test_the_first_token_of_all_has_no_surprisal(tmp_path, local):
    engine = local(tiny_llama(tmp_path, adds_bos=False))
    request = Request(
        "k", (Message("user", "the dog barks"),), None, 0, 0.0, 1, regions=(Span(0, 0, 3), Span(0, 4, 7))
    )
    (reply,) = engine.answer([request])
    assert reply.regions[0].surprisal is None and reply.regions[1].surprisal is not None
    assert reply.surprisal is None
