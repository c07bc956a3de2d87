"""Families of models that look at pictures, each with its own processor: what is asked of one holds of all."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace

import pytest

from experiment.models.engine import ModelSettings
from experiment.models.engines import open_engine
from stimuli.errors import UserError
from tests.experiment.models.test_local_pictures import WORDS, answers, engine, look
from tests.experiment.models.tiny_seers import tiny_gemma3, tiny_idefics3, tiny_qwen2_vl

HAS_TORCHVISION = importlib.util.find_spec("torchvision") is not None
FAMILIES = [
    pytest.param(tiny_gemma3, id="gemma3"),
    pytest.param(tiny_idefics3, id="idefics3"),
    pytest.param(
        tiny_qwen2_vl,
        id="qwen2-vl",
        marks=pytest.mark.skipif(not HAS_TORCHVISION, reason="its processor needs torchvision"),
    ),
]


@pytest.mark.parametrize("make", FAMILIES)
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
