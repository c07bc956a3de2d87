"""Vision models (transformers' image-text-to-text models): their processor and backend.

Rows share nothing, because pictures make the beginnings of texts differ between items.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiment.models.engine import Message, Request
from experiment.models.local.causal_model import CausalModel, Closed, append_token, choose
from experiment.models.local.checkpoints import CheckpointSource, how_to_get_it
from experiment.models.local.rows import Continuation, Decoding, MemoryBudget, Row, RowOutcome, Seen
from experiment.models.local.tokens import Tokens, labels_behind
from experiment.models.pictures import Picture
from stimuli.errors import UserError
from stimuli.seeds import generator


@dataclass(frozen=True)
class ProcessorInput:
    """A request as input of the processor."""

    tokens: Tokens  # of the prompt and of prompt and labels, those for pictures included
    pictures: tuple[Picture, ...]  # in order
    texts: tuple[str, ...]  # prompt and label as one text, for each label

    def seen(self, row: Row) -> Seen:
        """Return the model's input for one of the request's rows."""
        row_bytes = row.ids.tobytes()
        scored = (
            text
            for text, label in zip(self.texts, self.tokens.labels, strict=True)
            if np.asarray(label.ids[:-1], np.int32).tobytes() == row_bytes
        )
        return Seen(self.tokens.text, next(scored, self.tokens.text), self.pictures)


class ImageProcessor:
    """The processor of a checkpoint; ``name`` is the model's name in the study."""

    def __init__(
        self, source: CheckpointSource, config: Any, name: str, *, leading_space: bool = False
    ) -> None:
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
            message = " ".join(str(error).split())[:200]
            raise UserError(
                f"the processor of {name}, which prepares its pictures, cannot be loaded: {message}",
                mend=how_to_get_it()
                if "torchvision" in message.casefold()
                else "Install what is named; the folder needs preprocessor_config.json or processor_config.json.",
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
        """Return the templated text of messages, with a processor's mark for each picture."""
        turns = [{"role": message.role, "content": _content(message)} for message in messages]
        try:
            text: str = self.processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # templates raise any exception with any message
            raise UserError(
                f"the chat template of this model cannot render the messages: {error}",
                mend="Leave `system: system` out, or name another model.",
            ) from error
        return text

    def look(self, request: Request) -> ProcessorInput:
        """Return a request as text, pictures and tokens."""
        text = self.text(request.messages)
        pictures = tuple(picture for message in request.messages for picture in message.pictures)
        ids = self._ids(text, pictures)
        if request.labels is None:
            return ProcessorInput(Tokens(text, ids, ()), pictures, ())
        space = " " if self.leading_space and not text[-1:].isspace() else ""
        texts = tuple(f"{text}{space}{label}" for label in request.labels)
        sequences = [self._ids(text, pictures) for text in texts]
        tokens = Tokens(text, ids, labels_behind(ids, request.labels, sequences))
        return ProcessorInput(tokens, pictures, texts)

    def inputs(self, texts: Sequence[str], pictures: Sequence[Sequence[Picture]]) -> Any:
        """Return the model's input for several texts, padded on the right."""
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


@functools.lru_cache(maxsize=512)
def _image(picture: Picture) -> Any:
    return picture.image()


def _content(message: Message) -> list[dict[str, str]]:
    return [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
        for part in message.parts
    ]


class VisionBackend:
    """Computes rows that a processor prepares: scored ones in batches or each ``alone``, generated texts one at a time."""

    def __init__(self, model: CausalModel, images: ImageProcessor, *, alone: bool = False) -> None:
        self.model, self.images, self.alone = model, images, alone
        self.name = "plain" if alone else "batched"

    def compute(
        self, rows: Sequence[Row], budget: MemoryBudget, hold: Set[int] = frozenset()
    ) -> Iterator[tuple[int, RowOutcome]]:
        """Yield the place and outcome of each row as soon as it is complete."""
        waiting = sorted(range(len(rows)), key=lambda place: 0 if self.alone else -len(rows[place].ids))
        while waiting:
            if self.model.is_closed:
                raise Closed
            count = 1 if self.alone else max(1, budget.tokens // len(rows[waiting[0]].ids))
            places, waiting = waiting[:count], waiting[count:]
            started = time.perf_counter()
            outcomes = {place: RowOutcome(computed=len(rows[place].ids)) for place in places}
            self._score([(rows[place], outcomes[place]) for place in places if rows[place].targets])
            for place in places:
                if (decoding := rows[place].decoding) is not None:
                    outcomes[place].decoded = self._continue(rows[place], decoding)
                if self.alone:
                    outcomes[place].time_since(started)
                yield place, outcomes[place]

    def _score(self, rows: Sequence[tuple[Row, RowOutcome]]) -> None:
        """Fill in the labels' log-probabilities."""
        import torch

        if not rows:
            return
        seen = [_seen(row) for row, _ in rows]
        inputs = self._inputs([shown.scored for shown in seen], [shown.pictures for shown in seen])
        keep = sorted({position - 1 for row, _ in rows for position, _ in row.targets})
        with torch.inference_mode():
            logits = self.model.model(**inputs, use_cache=False).logits[:, keep].float().log_softmax(-1)
        self.model.forwarded += int(inputs["attention_mask"].sum())
        for number, (row, outcome) in enumerate(rows):
            outcome.logprobs = {
                (at, token): float(logits[number, keep.index(at - 1), token]) for at, token in row.targets
            }

    def _continue(self, row: Row, decoding: Decoding) -> Continuation:
        """Generate text after a prompt with transformers' generation, each token chosen as the study sets."""
        import torch
        from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

        model, decoded, draws = self.model, Continuation(), generator("sampling", decoding.seed)
        goes_on = True

        class ChosenToken(LogitsProcessor):  # type: ignore[misc]
            def __call__(self, input_ids: Any, scores: Any) -> Any:
                nonlocal goes_on
                token = choose(scores.float(), [decoding], [draws])[0]
                goes_on = append_token(decoded, token, decoding, model.ends)
                only = torch.full_like(scores, -torch.inf)
                only[0, token] = 0.0
                return only

        class ReplyOver(StoppingCriteria):  # type: ignore[misc]
            def __call__(self, input_ids: Any, scores: Any, **given: Any) -> Any:
                over = not goes_on or model.is_closed
                return torch.full((input_ids.shape[0],), over, device=input_ids.device, dtype=torch.bool)

        inputs = self._inputs([_seen(row).text], [_seen(row).pictures])
        with torch.inference_mode():
            model.model.generate(
                **inputs, max_new_tokens=decoding.max_tokens, do_sample=False, num_beams=1, repetition_penalty=1.0,
                logits_processor=LogitsProcessorList([ChosenToken()]), stopping_criteria=StoppingCriteriaList([ReplyOver()]),
            )  # fmt: skip
        model.forwarded += len(row.ids) + len(decoded.ids)
        return decoded

    def _inputs(self, texts: Sequence[str], pictures: Sequence[Sequence[Picture]]) -> dict[str, Any]:
        """Return the model's input on its device, in its number format."""
        import torch

        inputs, kind = self.images.inputs(texts, pictures), self.model.model.dtype
        return {
            name: value.to(self.model.device, kind)
            if torch.is_floating_point(value)
            else value.to(self.model.device)
            for name, value in inputs.items()
        }


def _seen(row: Row) -> Seen:
    assert row.seen is not None
    return row.seen
