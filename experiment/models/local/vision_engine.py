"""The local engine of models that look at pictures (transformers' image-text-to-text models).

Labels are scored in plain batches of requests of like length, texts are generated one request at a time; nothing is shared
between requests, for what a picture makes of a text's beginning differs from item to item. Before the first batch a few
requests are computed together and alone; where log-probabilities differ by more than rounding, each is computed alone.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiment.models.engine import Follow, Message, Reply, Request
from experiment.models.local import checkpoints
from experiment.models.local.causal_model import append_token, choose, is_out_of_memory
from experiment.models.local.checkpoints import CheckpointSource, how_to_get_it
from experiment.models.local.engine import WARM_UP, CheckpointEngine
from experiment.models.local.jobs import Job, job_of, reply_of
from experiment.models.local.parity import TOLERANCE, TOLERANCE_16_BIT
from experiment.models.local.rows import Continuation, Decoding, RowOutcome
from experiment.models.local.tokens import Tokens, Wording, digest_of, labels_behind, require_fitting
from experiment.models.pictures import Picture, drawn_with
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError
from stimuli.seeds import generator


@dataclass(frozen=True)
class ProcessorInput:
    """A request as the processor takes it."""

    text: str  # by the chat template, with the processor's own marks for pictures
    pictures: tuple[Picture, ...]  # in order
    tokens: Tokens  # of the prompt and of prompt and labels, those that stand for pictures among them
    # Prompt and label as one text, a label each; the prompt alone where text is generated
    texts: tuple[str, ...]


class ImageProcessor:
    """The processor of a checkpoint; ``name`` is what the study calls the model."""

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

    def look(self, request: Request) -> ProcessorInput:
        """Return a request as text, pictures and tokens."""
        text = self.text(request.messages)
        pictures = tuple(picture for message in request.messages for picture in message.pictures)
        ids = self._ids(text, pictures)
        if request.labels is None:
            return ProcessorInput(text, pictures, Tokens(text, ids, ()), (text,))
        space = " " if self.leading_space and not text[-1:].isspace() else ""
        texts = tuple(f"{text}{space}{label}" for label in request.labels)
        whole = [self._ids(text, pictures) for text in texts]
        return ProcessorInput(
            text, pictures, Tokens(text, ids, labels_behind(ids, request.labels, whole)), texts
        )

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


_BUDGETS = {"cpu": 2048, "mps": 8192, "cuda": 32_768}
"""Most tokens of a batch, those of pictures among them."""
_AHEAD = 64
_CHECKED = 4


class VisionEngine(CheckpointEngine):
    """Answers with a checkpoint on this machine that takes pictures."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(settings)
        leading_space = bool(settings.options.get("leading_space", False))
        self.images = ImageProcessor(self.source, self.config, settings.name, leading_space=leading_space)
        self.wording = Wording(self.images.tokenizer, template="plain", leading_space=leading_space)
        self.tokens = self._token_budget(_BUDGETS)
        self.record: dict[str, object] = {"path": None, "checked": 0}
        self.forwarded = 0
        self._alone = self.determinism != "fast" or self.timing
        self._model: Any = None
        self._is_checked = False

    def describe(self) -> dict[str, object]:
        """Return model, revision, numbers, processor, versions and the outcome of the check of batches."""
        processor = self.images.processor
        look = {
            "template": "chat",
            "template_hash": digest_of(str(processor.chat_template)),
            "image_processor": type(processor.image_processor).__name__,
        }
        return {
            **self._described(self.quantisation, look),
            "parameters": self._model.num_parameters() if self._model is not None else None,
            "architecture": (self.config.architectures or [type(self.config).__name__])[0],
            "encoder": False,
            "surprisal": "not defined: words in a picture are no tokens",
            "parity": dict(self.record),
            "token_budget": self.tokens,
            "tokens_forwarded": self.forwarded,
            "pictures": drawn_with(),
        }

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that the model reads, the pictures in it and the number of tokens; loads no weights."""
        look = self.images.look(request)
        labels = {label.label: len(label.targets) for label in look.tokens.labels}
        told = [picture.to_json() for picture in look.pictures]
        return {
            "text": look.text,
            "pictures": told,
            "tokens": len(look.tokens.ids),
            "label_tokens": labels or None,
        }

    def close(self) -> None:
        """Begin no further batch."""
        self._closed = True

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield a reply for each request as soon as it is computed; what follows from replies comes after."""
        waiting = self._ordered(requests)
        while waiting and not self._closed:
            some, waiting = waiting[:_AHEAD], waiting[_AHEAD:]
            for reply in self._together(some):
                if follow is not None:
                    waiting += follow(reply)
                yield reply
                if self._closed:
                    return

    def _together(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Score labels in batches, then generate what is to be generated, request by request."""
        begun: list[tuple[Job, ProcessorInput]] = []
        for request in requests:
            try:
                look = self.images.look(request)
                require_fitting(look.tokens, request, self._context_length, thinks=False)
                begun.append((job_of(request, look.tokens, self.wording), look))
            except ValueError as error:
                yield self._failed(request, str(error))
        if not begun:
            return
        if self.timing and not self._is_warm:
            self._is_warm = True
            for _ in range(WARM_UP):
                self._compute(begun[:1])
        elif not self._is_checked:
            self._check([one for one in begun if one[0].request.labels is not None])
        for batch in self._batches(begun):
            if self._closed:
                return
            yield from self._answered(batch)

    def _answered(self, batch: list[tuple[Job, ProcessorInput]]) -> Iterator[Reply]:
        """Compute a batch; where memory runs out, its halves, and from then on half as much."""
        try:
            self._compute(batch)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                yield self._failed(
                    batch[0][0].request, f"it does not fit into memory, also alone: {str(error)[:120]}"
                )
                return
            self.tokens = max(1, self.tokens // 2)
            half = len(batch) // 2
            yield from self._answered(batch[:half])
            yield from self._answered(batch[half:])
            return
        for job, _ in batch:
            yield self._reply(job)

    def _batches(
        self, begun: Sequence[tuple[Job, ProcessorInput]]
    ) -> Iterator[list[tuple[Job, ProcessorInput]]]:
        """Yield requests that are computed together: of like length, as many as the budget holds."""
        ordered = (
            list(begun)
            if self._alone
            else sorted(begun, key=lambda one: (len(one[0].tokens.ids), one[1].text))
        )
        batch: list[tuple[Job, ProcessorInput]] = []
        for one in ordered:
            lines = sum(_lines(job) for job, _ in [*batch, one])
            if batch and (self._alone or lines * _length(one[0]) > self.tokens):
                yield batch
                batch = []
            batch.append(one)
        if batch:
            yield batch

    def _compute(self, batch: Sequence[tuple[Job, ProcessorInput]]) -> None:
        """Find what every job of a batch asks."""
        started = time.perf_counter()
        scored = [one for one in batch if one[0].request.labels is not None]
        if scored:
            self._score(scored)
        for job, look in batch:
            row = job.rows[0] if job.rows else None
            if row is not None and row.decoding is not None:
                found = job.found.setdefault(0, RowOutcome(computed=len(row.ids)))
                found.decoded, found.first_ms = self._continue(look, row.decoding)
        if self._alone and batch[0][0].found:
            next(iter(batch[0][0].found.values())).milliseconds = (time.perf_counter() - started) * 1000

    def _score(self, batch: Sequence[tuple[Job, ProcessorInput]]) -> None:
        """Fill in log-probabilities of labels: one line a row of a job, the first label that goes on from it as its text."""
        import torch

        lines: list[tuple[Job, int, str, ProcessorInput]] = []
        for job, look in batch:
            for place, row in enumerate(job.rows):
                if row.targets:
                    own = row.ids.tobytes()
                    text = next(
                        text
                        for text, label in zip(look.texts, job.tokens.labels, strict=True)
                        if np.asarray(label.ids[:-1], np.int32).tobytes() == own
                    )
                    lines.append((job, place, text, look))
        inputs = self._on_device(
            self.images.inputs([text for _, _, text, _ in lines], [look.pictures for *_, look in lines])
        )
        keep = sorted({position - 1 for job, place, _, _ in lines for position, _ in job.rows[place].targets})
        with torch.inference_mode():
            logits = self._load()(**inputs, use_cache=False).logits[:, keep].float().log_softmax(-1)
        self.forwarded += int(inputs["attention_mask"].sum())
        for number, (job, place, _, _) in enumerate(lines):
            row = job.rows[place]
            job.found[place] = RowOutcome(
                {(at, token): float(logits[number, keep.index(at - 1), token]) for at, token in row.targets},
                computed=len(row.ids),
            )

    def _continue(self, look: ProcessorInput, how: Decoding) -> tuple[Continuation, float | None]:
        """Generate behind a prompt by transformers' own generation, each token drawn as the study asks."""
        import torch
        from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria, StoppingCriteriaList

        started = time.perf_counter()
        decoded, draws, ends = Continuation(), generator("sampling", how.seed), self._ends(self._load())
        seen = {"goes_on": True}

        class Drawing(LogitsProcessor):  # type: ignore[misc]
            def __call__(self, input_ids: Any, scores: Any) -> Any:
                token = choose(scores.float(), [how], [draws])[0]
                seen["goes_on"] = append_token(decoded, token, how, ends)
                only = torch.full_like(scores, -torch.inf)
                only[0, token] = 0.0
                return only

        engine = self

        class Ended(StoppingCriteria):  # type: ignore[misc]
            def __call__(self, input_ids: Any, scores: Any, **given: Any) -> Any:
                over = not seen["goes_on"] or engine._closed
                return torch.full((input_ids.shape[0],), over, device=input_ids.device, dtype=torch.bool)

        inputs = self._on_device(self.images.inputs([look.text], [look.pictures]))
        with torch.inference_mode():
            self._load().generate(
                **inputs, max_new_tokens=how.max_tokens, do_sample=False, num_beams=1, repetition_penalty=1.0,
                logits_processor=LogitsProcessorList([Drawing()]), stopping_criteria=StoppingCriteriaList([Ended()]),
            )  # fmt: skip
        self.forwarded += len(look.tokens.ids) + len(decoded.ids)
        first = None if decoded.first_at is None else (decoded.first_at - started) * 1000
        return decoded, first

    def _check(self, begun: Sequence[tuple[Job, ProcessorInput]]) -> None:
        """Compute a few requests together and alone; batch no more where they differ by more than rounding."""
        self._is_checked = True
        some = sorted(begun, key=lambda one: -len(one[0].tokens.ids))[:: max(1, len(begun) // _CHECKED)][
            :_CHECKED
        ]
        if self._alone or len(some) < 2:
            self._is_checked = self._alone
            self.record = {"path": "plain" if self._alone else "batched", "checked": 0}
            return
        forwarded = self.forwarded
        told = []
        for groups in ([some], [[one] for one in some]):
            for group in groups:
                self._score(group)
            told.append(
                [
                    value
                    for job, _ in some
                    for found in job.found.values()
                    for value in found.logprobs.values()
                ]
            )
            for job, _ in some:
                job.found.clear()
        self.forwarded = forwarded
        apart = max(abs(one - other) for one, other in zip(*told, strict=True))
        tolerance = TOLERANCE.get(self.dtype, TOLERANCE_16_BIT)
        self._alone = not apart <= tolerance
        self.record = {
            "path": "plain" if self._alone else "batched", "checked": len(some), "tolerance": tolerance,
            "max_abs_difference": apart,
        }  # fmt: skip

    def _load(self) -> Any:
        if self._model is None:
            self._model = checkpoints.load_model(
                self.source, self.device, self.dtype, self.quantisation, sees=True
            )
        return self._model

    def _on_device(self, inputs: Any) -> dict[str, Any]:
        import torch

        kind = getattr(torch, self.dtype)
        return {
            name: value.to(self.device, kind) if torch.is_floating_point(value) else value.to(self.device)
            for name, value in inputs.items()
        }

    def _reply(self, job: Job) -> Reply:
        reply = reply_of(job, self.wording, "plain" if self._alone else "batched")
        return self._signed(replace(reply, cached_tokens=0, path=f"{reply.path}+pictures"))


def _lines(job: Job) -> int:
    return max(1, sum(bool(row.targets) for row in job.rows))


def _length(job: Job) -> int:
    return max(len(job.tokens.ids), *(len(label.ids) for label in job.tokens.labels), 1)
