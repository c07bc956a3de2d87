"""What stands before a model that looks at pictures: one text with marks for pictures, and the pictures, by its own processor.

A processor of transformers knows how its model wants pictures cut, and by which tokens they are marked in a text. Prompt and
label are always one text, as in :mod:`experiment.models.local.tokens`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from experiment.models.engine import Message, Request
from experiment.models.local.checkpoints import Source
from experiment.models.local.tokens import LabelTokens, Tokens
from experiment.models.local.torchvision_beside import how_to_get_it
from experiment.models.pictures import Picture
from stimuli.errors import UserError


@dataclass(frozen=True)
class Look:
    """A request as the processor takes it."""

    text: str  # by the chat template, with the processor's own marks for pictures
    pictures: tuple[Picture, ...]  # in order
    tokens: Tokens  # of the prompt and of prompt and labels, those that stand for pictures among them
    # Prompt and label as one text, a label each; the prompt alone where text is generated
    texts: tuple[str, ...]


class Eyes:
    """The processor of a checkpoint.

    ``config``: the checkpoint's configuration.
    ``name``: what the study calls the model.
    """

    def __init__(self, source: Source, config: Any, name: str, *, leading_space: bool = False) -> None:
        import transformers

        if type(config) not in transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
            raise UserError(
                f"{name} ({(config.architectures or [type(config).__name__])[0]}) takes no pictures: it is none of transformers' "
                "models from image and text to text",
                mend="Name one that is (LLaVA, Qwen-VL, SmolVLM, Gemma 3 …), or show this model text (presentation: text).",
            )
        try:
            self.processor: Any = transformers.AutoProcessor.from_pretrained(
                source.place, revision=source.revision
            )
        except (ImportError, ValueError, OSError) as error:
            said = " ".join(str(error).split())[:200]
            raise UserError(
                f"the processor of {name}, which prepares its pictures, cannot be loaded: {said}",
                mend=_mend_of(said),
            ) from error
        tokenizer = getattr(self.processor, "tokenizer", None)
        if tokenizer is None or not getattr(self.processor, "chat_template", None):
            raise UserError(
                f"the processor of {name} has no chat template that says where pictures stand",
                mend="Take the checkpoint's instruction-tuned form, or show this model text (presentation: text).",
            )
        self.tokenizer = tokenizer
        self.leading_space = leading_space
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        tokenizer.padding_side = "right"

    def text(self, messages: Sequence[Message]) -> str:
        """Return the text that the template makes of messages, a processor's mark for each picture."""
        turns = [{"role": message.role, "content": _content(message)} for message in messages]
        try:
            text: str = self.processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # templates refuse what they like, as they like
            raise UserError(
                f"the chat template of this model cannot render the messages: {error}",
                mend="Leave `system: system` out, or name another model.",
            ) from error
        return text

    def look(self, request: Request) -> Look:
        """Return a request as text, pictures and tokens."""
        text = self.text(request.messages)
        pictures = tuple(picture for message in request.messages for picture in message.pictures)
        ids = self._ids(text, pictures)
        if request.labels is None:
            return Look(text, pictures, Tokens(text, ids, ()), (text,))
        space = " " if self.leading_space and not text[-1:].isspace() else ""
        texts = tuple(f"{text}{space}{label}" for label in request.labels)
        whole = [self._ids(one, pictures) for one in texts]
        start = min(_common(ids, one) for one in whole)
        for label, one in zip(request.labels, whole, strict=True):
            if start < 1 or len(one) <= start:
                raise ValueError(f"label {label!r} cannot be scored: it adds no token after the prompt")
        labels = [LabelTokens(label, one, start) for label, one in zip(request.labels, whole, strict=True)]
        return Look(text, pictures, Tokens(text, ids, tuple(labels)), texts)

    def inputs(self, texts: Sequence[str], pictures: Sequence[Sequence[Picture]]) -> Any:
        """Return what the model takes for texts side by side, padded on the right."""
        images = [[_image(picture) for picture in of_text] for of_text in pictures]
        given = {"images": images} if any(images) else {}
        return self.processor(
            text=list(texts), **given, padding=True, return_tensors="pt", add_special_tokens=False
        )

    def _ids(self, text: str, pictures: Sequence[Picture]) -> tuple[int, ...]:
        try:
            return tuple(self.inputs([text], [pictures])["input_ids"][0].tolist())
        except (ValueError, IndexError, KeyError) as fault:
            raise ValueError(f"the processor does not take the pictures of this prompt: {fault}") from fault


def _mend_of(said: str) -> str:
    if "torchvision" in said.casefold():
        return how_to_get_it()
    return "Install what is named; the folder needs preprocessor_config.json or processor_config.json."


@functools.lru_cache(maxsize=512)
def _image(picture: Picture) -> Any:
    return picture.image()


def _content(message: Message) -> list[dict[str, str]]:
    return [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
        for part in message.parts
    ]


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    return next(
        (place for place, (one, other) in enumerate(zip(left, right, strict=False)) if one != other),
        min(len(left), len(right)),
    )
