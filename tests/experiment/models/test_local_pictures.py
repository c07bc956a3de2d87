"""Local models that look at pictures: labels in batches and alone, texts, settings and what is refused."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiment.models import Message, ModelSettings, Request
from experiment.models.engines import open_engine
from experiment.models.local import VisionEngine
from experiment.models.local.rows import Row, RowOutcome
from experiment.models.local.vision import VisionBackend
from experiment.models.pictures import MARK, Picture
from stimuli.errors import UserError
from tests.experiment.models.tiny_seers import tiny_gemma3, tiny_idefics3, tiny_llava, tiny_qwen2_vl

HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None
WORDS = ["noon", "the Artist sells kale", "a dog", "early", "put-up", "night. night."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_llava(tmp_path_factory.mktemp("llava"))


def engine(folder: Path, **options: object) -> VisionEngine:
    opened = open_engine(ModelSettings(f"hf:{folder}", {"presentation": "image", **options}))
    assert isinstance(opened, VisionEngine)
    return opened


def look(number: int, text: str, examples: int = 1, **given: object) -> Request:
    before = f'Input: "{MARK}" Label: A\n' * examples
    message = Message(
        "user", f'{before}Input: "{MARK}" Label: ', (*[Picture.of("an Example")] * examples, Picture.of(text))
    )
    fields = {"labels": ("A", "B"), "max_tokens": 6, "temperature": 0.0, "seed": number, **given}
    return Request(f"k{number}", (message,), **fields)


def answers(opened: VisionEngine, requests: list[Request]) -> dict[str, object]:
    return {reply.work_key: reply for reply in opened.answer(requests)}


def test_batches_give_what_each_request_gives_alone_and_pictures_matter(folder):
    requests = [look(number, text, examples=1 + number % 2) for number, text in enumerate(WORDS)]
    together, alone = (
        answers(engine(folder), requests),
        answers(engine(folder, determinism="exact"), requests),
    )
    for key, reply in together.items():
        assert reply.status == "answered" and reply.text in ("A", "B")
        assert reply.label_logprobs == pytest.approx(alone[key].label_logprobs, abs=1e-4)
        assert reply.path == "batched+pictures" and alone[key].path == "plain+pictures"
        assert reply.regions == () and reply.latency_ms is None
    # the prompts differ in their pictures alone
    of_one = {round(together[f"k{number}"].label_logprobs["A"], 4) for number in (0, 2, 4)}
    assert len(of_one) == 3
    assert answers(engine(folder, determinism="exact"), requests) == alone


def test_what_was_done_is_recorded(folder):
    opened = engine(folder)
    answers(opened, [look(number, text) for number, text in enumerate(WORDS)])
    told = opened.describe()
    assert told["parity"]["path"] == "batched" and told["parity"]["max_abs_difference"] < 5e-4
    assert told["identity"]["image_processor"] == "CLIPImageProcessorPil"
    assert "source-code-pro-latin-wght-normal.woff2" in told["pictures"] and told["pictures"]["freetype"]
    shown = opened.preview(look(0, "noon"))
    assert [one["text"] for one in shown["pictures"]] == ["an Example", "noon"]
    assert shown["text"].count("<image>") == 2 and shown["tokens"] > 2 * 16


def test_timed_trials_run_alone_and_have_times(folder):
    reply = answers(engine(folder, timing=True), [look(0, "noon", labels=None)])["k0"]
    assert reply.latency_ms > 0 and 0 < reply.ttft_ms <= reply.latency_ms


def test_a_request_that_is_too_long_gets_an_error_and_the_others_go_on(folder):
    long = Request("long", (Message("user", "many words " * 4000),), ("A", "B"), 6, 0.0, 1)
    found = answers(engine(folder), [long, look(0, "noon")])
    assert found["long"].status == "error" and "4096" in found["long"].error
    assert found["k0"].status == "answered"


def test_where_memory_runs_out_a_batch_is_halved(folder, monkeypatch):
    opened, score = engine(folder), VisionBackend._score

    def tight(self: VisionBackend, rows: list[object]) -> None:
        if len(rows) > 2:
            raise RuntimeError("CUDA out of memory")
        score(self, rows)

    monkeypatch.setattr(VisionBackend, "_score", tight)
    found = answers(opened, [look(number, text) for number, text in enumerate(WORDS)])
    assert {reply.status for reply in found.values()} == {"answered"}


def test_the_check_at_the_start_pads_short_prompts_in_a_batch_of_longer_ones(folder, monkeypatch):
    opened, score = engine(folder), VisionBackend._score

    def faulty(self: VisionBackend, rows: list[tuple[Row, RowOutcome]]) -> None:
        score(self, rows)
        most = max(len(row.ids) for row, _ in rows)
        for row, found in rows:
            found.logprobs = {at: value - (len(row.ids) < most) for at, value in found.logprobs.items()}

    monkeypatch.setattr(VisionBackend, "_score", faulty)
    found = answers(opened, [look(number, "noon", examples=1 + number // 4) for number in range(6)])
    assert {reply.path for reply in found.values()} == {"plain+pictures"}
    assert "1 nats" in opened.describe()["parity"]["refused"]["batched"]


def test_a_model_of_texts_alone_is_refused(chat_model):
    with pytest.raises(UserError, match="presentation: text"):
        engine(chat_model)


def test_a_processor_without_places_for_pictures_is_refused(tmp_path):
    folder = tiny_llava(tmp_path)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(UserError, match="chat template"):
        engine(folder)


@pytest.mark.parametrize(
    "make",
    [
        tiny_gemma3,
        tiny_idefics3,
        pytest.param(
            tiny_qwen2_vl,
            marks=pytest.mark.skipif(not HAS_TORCHVISION, reason="its processor needs torchvision"),
        ),
    ],
)
def test_a_family_scores_labels_and_writes_as_transformers_does(tmp_path, make):
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    folder = make(tmp_path)
    requests = [look(number, text, examples=1 + number % 2) for number, text in enumerate(WORDS)]
    opened = engine(folder)
    together = answers(opened, requests)
    alone = answers(engine(folder, determinism="exact"), requests)
    for key, reply in together.items():
        assert reply.status == "answered", reply.error
        assert reply.label_logprobs == pytest.approx(alone[key].label_logprobs, abs=5e-4)
    # prompts that differ in their pictures alone
    assert len({round(together[f"k{number}"].label_logprobs["A"], 5) for number in (0, 2, 4)}) == 3

    model = AutoModelForImageTextToText.from_pretrained(str(folder)).eval()
    processor = AutoProcessor.from_pretrained(str(folder))
    parts = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "image": part.image()}
        for part in requests[0].messages[0].parts
    ]
    given = processor.apply_chat_template(
        [{"role": "user", "content": parts}], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )  # fmt: skip
    (label,) = processor.tokenizer("A", add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logprobs = model(**given).logits[0, -1].log_softmax(-1)
        own = model.generate(**given, max_new_tokens=5, do_sample=False)[0, given["input_ids"].shape[1] :]
    assert alone["k0"].label_logprobs["A"] == pytest.approx(float(logprobs[label]), abs=1e-4)
    written = answers(opened, [replace(requests[0], work_key="w", labels=None, max_tokens=5)])["w"]
    assert written.text == opened.wording.decode(own.tolist())
    assert written.completion_tokens == len(own)


@pytest.mark.skipif(HAS_TORCHVISION, reason="torchvision is there")
def test_a_processor_that_needs_torchvision_is_told_to(tmp_path):
    with pytest.raises(UserError, match=r"(?i)torchvision") as told:
        open_engine(ModelSettings(f"hf:{tiny_qwen2_vl(tmp_path)}", {"presentation": "image"}))
    assert re.search(r"pip install torchvision==0\.\d+\.\d+", told.value.mend or "")
