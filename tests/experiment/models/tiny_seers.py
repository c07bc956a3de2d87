"""Tiny random models that look at pictures, written as checkpoints with their processors; no torchvision is needed."""

from __future__ import annotations

from pathlib import Path

from tests.experiment.models.tiny_models import byte_pair_tokenizer

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>\n{% if message['content'] is string %}"
    "{{ message['content'] }}{% else %}{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


def tiny_llava(folder: Path, seed: int = 0) -> Path:
    import torch
    from transformers import (
        AutoTokenizer,
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    byte_pair_tokenizer(folder, template=None, adds_bos=True)
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"], "pad_token": "</s>"})
    # the picture as it is, not its middle: a line of text is many times wider than high
    size = {"height": 56, "width": 56}
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size=size, crop_size=size, do_center_crop=False),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    )
    processor.save_pretrained(str(folder))
    torch.manual_seed(seed)
    vision = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=56,
        patch_size=14,
        projection_dim=32,
    )
    text = LlamaConfig(
        vocab_size=410,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )
    config = LlavaConfig(
        vision_config=vision.to_dict(),
        text_config=text.to_dict(),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=16,
        vision_feature_layer=-1,
    )
    model = LlavaForConditionalGeneration(config)
    with torch.no_grad():  # what it sees must matter to what it says
        for part in model.model.multi_modal_projector.parameters():
            part.normal_(0.0, 0.5)
        for part in model.model.vision_tower.parameters():
            part.normal_(0.0, 0.2)
    model.save_pretrained(str(folder))
    return folder
