"""Tiny random models that look at pictures, written as checkpoints with their processors; no torchvision is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.experiment.models.tiny_models import byte_pair_tokenizer

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>\n{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


LLAMA = {
    **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"num_key_value_heads": 2, "max_position_embeddings": 4096, "initializer_range": 0.3},
    **{"bos_token_id": 0, "eos_token_id": 1},
}
EYE = {
    **{"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    **{"image_size": 56, "patch_size": 14},
}


def template_with(mark: str) -> str:
    """Return the template with another mark where a picture stands."""
    return TEMPLATE.replace("<image>", mark)


def tokens_of(folder: Path, marks: list[str], **named: str) -> Any:
    """Return the tokenizer with marks for pictures, of which some have names as attributes."""
    from transformers import AutoTokenizer

    byte_pair_tokenizer(folder, template=None, adds_bos=True)
    tokenizer = AutoTokenizer.from_pretrained(str(folder), extra_special_tokens=named or None)
    tokenizer.add_special_tokens({"additional_special_tokens": marks, "pad_token": "</s>"})
    return tokenizer


def kept(model: Any, processor: Any, folder: Path, *seeing: Any) -> Path:
    """Write model and processor, with weights of what sees so large that it matters to what is said."""
    import torch

    with torch.no_grad():
        for part in seeing:
            for weights in part.parameters():
                weights.normal_(0.0, 0.3)
    processor.save_pretrained(str(folder))
    model.save_pretrained(str(folder))
    return folder


def tiny_llava(folder: Path, seed: int = 0) -> Path:
    import torch
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    tokenizer = tokens_of(folder, ["<image>"])
    # the picture as it is, not its middle: a line of text is many times wider than high
    size = {"height": 56, "width": 56}
    images = CLIPImageProcessorPil(size=size, crop_size=size, do_center_crop=False)
    processor = LlavaProcessor(
        image_processor=images, tokenizer=tokenizer, patch_size=14, vision_feature_select_strategy="default",
        num_additional_image_tokens=1, chat_template=TEMPLATE,
    )  # fmt: skip
    torch.manual_seed(seed)
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**EYE, projection_dim=32).to_dict(),
        text_config=LlamaConfig(**LLAMA, vocab_size=410).to_dict(),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=16,
        vision_feature_layer=-1,
    )
    model = LlavaForConditionalGeneration(config)
    return kept(model, processor, folder, model.model.vision_tower, model.model.multi_modal_projector)


def tiny_gemma3(folder: Path, seed: int = 0) -> Path:
    import torch
    from transformers import Gemma3Config, Gemma3ForConditionalGeneration, Gemma3Processor
    from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil

    named = {
        "boi_token": "<start_of_image>",
        "eoi_token": "<end_of_image>",
        "image_token": "<image_soft_token>",
    }
    tokenizer = tokens_of(folder, [], **named)
    begins, ends, soft = tokenizer.convert_tokens_to_ids(list(named.values()))
    processor = Gemma3Processor(
        image_processor=Gemma3ImageProcessorPil(size={"height": 56, "width": 56}, image_seq_length=4),
        tokenizer=tokenizer,
        image_seq_length=4,
        chat_template=template_with("<start_of_image>"),
    )
    torch.manual_seed(seed)
    config = Gemma3Config(
        text_config={**LLAMA, "vocab_size": 415, "head_dim": 8, "sliding_window": 64},
        vision_config=EYE,
        mm_tokens_per_image=4,
        boi_token_index=begins,
        eoi_token_index=ends,
        image_token_index=soft,
    )
    model = Gemma3ForConditionalGeneration(config)
    return kept(model, processor, folder, model.model.vision_tower, model.model.multi_modal_projector)


def tiny_idefics3(folder: Path, seed: int = 0) -> Path:
    """Write one of the family of Idefics 3 and SmolVLM, which cuts large pictures into tiles."""
    import torch
    from transformers import Idefics3Config, Idefics3ForConditionalGeneration, Idefics3Processor
    from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

    marks = ["<fake_token_around_image>", "<image>", "<end_of_utterance>", "<global-img>"]
    tokenizer = tokens_of(folder, marks)
    processor = Idefics3Processor(
        image_processor=Idefics3ImageProcessorPil(
            size={"longest_edge": 112}, max_image_size={"longest_edge": 56}
        ),
        tokenizer=tokenizer,
        image_seq_len=4,
        chat_template=TEMPLATE,
    )
    torch.manual_seed(seed)
    config = Idefics3Config(
        text_config={"model_type": "llama", **LLAMA, "vocab_size": 420},
        vision_config=EYE,
        scale_factor=2,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    model = Idefics3ForConditionalGeneration(config)
    return kept(model, processor, folder, model.model.vision_model, model.model.connector)


def tiny_qwen2_vl(folder: Path, seed: int = 0) -> Path:
    """Write a model of Qwen2-VL as the hub has it; its processor has a part for videos, which needs torchvision."""
    import torch
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    tokenizer = tokens_of(folder, marks)
    begins, ends, picture, video = tokenizer.convert_tokens_to_ids(marks)
    torch.manual_seed(seed)
    rope = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10_000.0}
    config = Qwen2VLConfig(
        text_config={**LLAMA, "vocab_size": 420, "rope_parameters": rope},
        vision_config={
            "depth": 2,
            "embed_dim": 32,
            "hidden_size": 32,
            "num_heads": 4,
            "mlp_ratio": 2,
            "patch_size": 14,
        },
        image_token_id=picture,
        video_token_id=video,
        vision_start_token_id=begins,
        vision_end_token_id=ends,
    )
    model = Qwen2VLForConditionalGeneration(config)
    size = {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 64}
    images = Qwen2VLImageProcessorPil(patch_size=14, merge_size=2, size=size)
    kept(model, images, folder, model.model.visual)
    tokenizer.save_pretrained(str(folder))
    file = folder / "preprocessor_config.json"
    told = {**json.loads(file.read_text("utf-8")), "processor_class": "Qwen2VLProcessor"}
    file.write_text(json.dumps(told), "utf-8")
    template = template_with("<|vision_start|><|image_pad|><|vision_end|>")
    (folder / "chat_template.jinja").write_text(template, "utf-8")
    return folder
