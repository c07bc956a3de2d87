"""The local engine: scores every label of a choice, generates text, and computes surprisal of regions, without repetition.

Models that attend to later tokens are refused: transformers loads BERT, XLNet and similar models under the same name as
language models, but they would see a label before it is scored.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from experiment.models.engine import Follow, Reply, Request
from experiment.models.local import checkpoints, parity
from experiment.models.local.causal_model import CausalModel, is_forkable
from experiment.models.local.encdec import EncoderDecoderBackend
from experiment.models.local.jobs import (
    WINDOW,
    Job,
    Windows,
    answer_job,
    conversations_held,
    going_on_from,
    job_of,
    merged,
    reply_of,
)
from experiment.models.local.packed import PackedBackend
from experiment.models.local.parity import Computing, Plain, require_causal
from experiment.models.local.plain import PlainBackend
from experiment.models.local.rows import MemoryBudget, Row
from experiment.models.local.tokens import Template, Wording, context_length_of, digest_of, require_fitting
from experiment.models.local.vision import ImageProcessor, VisionBackend
from experiment.models.pictures import drawn_with
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import generator

DETERMINISM = ("fast", "exact")
FORMER_DETERMINISM = {"stable": "exact"}
"""Settings of earlier versions and their replacements, which are at least as strict."""

WARM_UP = 3
"""Requests that are computed and discarded before times are measured."""

_HELD = {"cpu": 65_536, "mps": 65_536, "cuda": 524_288}


class LocalEngine:
    """Engine for a checkpoint on this machine, whose weights are loaded when first needed."""

    budgets: Mapping[str, int] = {"cpu": 384, "mps": 4096, "cuda": 8192}
    """Most tokens per pass by device, unless the study sets another number."""
    window = WINDOW

    def __init__(self, settings: ModelSettings) -> None:
        options = settings.options
        self.settings = settings
        self.source = checkpoints.find_source(settings)
        self.device = checkpoints.choose_device(options.get("device"))
        self.dtype = checkpoints.choose_dtype(options.get("dtype"), self.device)
        self.quantisation = checkpoints.choose_quantisation(
            options.get("quantisation"), self.device, self.dtype
        )
        self.config, self.tokenizer = checkpoints.load_tokenizer(self.source)
        self.stored_quantisation = checkpoints.stored_quantisation(self.config)
        if self.quantisation and self.stored_quantisation:
            raise UserError(
                f"the study sets quantisation: {self.quantisation}, but the weights of this model are stored quantised "
                f"({self.stored_quantisation})",
                mend="Leave quantisation out.",
            )
        level = str(options.get("determinism", "fast"))
        self.determinism = FORMER_DETERMINISM.get(level, level)
        if self.determinism not in DETERMINISM:
            raise unknown_name("determinism", level, DETERMINISM)
        self.revision = checkpoints.name_revision(self.source, self.config)
        self.timing = bool(options.get("timing", False))
        self.order_seed = int(cast(int, options.get("order_seed", 1)))
        self._context_length = context_length_of(self.config)
        self._is_warm = self._closed = False
        self.has_encoder = bool(getattr(self.config, "is_encoder_decoder", False))
        self.wording = self._wording()
        kind = self.device.partition(":")[0]
        self.budget = MemoryBudget(self._token_budget(self.budgets[kind]), _HELD[kind])
        self._model: CausalModel | None = None
        self._computing: Computing | None = None
        self._most_talks = self.budget.held

    def _wording(self) -> Wording:
        options = self.settings.options
        begun = checkpoints.decoder_beginning(self.source, self.config) if self.has_encoder else None
        return Wording(
            self.tokenizer,
            template=cast("Template | None", options.get("template")),
            leading_space=cast("bool | None", options.get("leading_space")),
            thinking=bool(options.get("thinking", False)),
            decoder_start=begun,
        )

    def _token_budget(self, usual: int) -> int:
        n_tokens = self.settings.options.get("token_budget", usual)
        if not isinstance(n_tokens, int) or isinstance(n_tokens, bool) or n_tokens < 1:
            raise UserError(
                f"token_budget: {n_tokens} is not a number of tokens",
                mend="Write a whole number, 768 for instance.",
            )
        return n_tokens

    def _ordered(self, requests: Sequence[Request]) -> list[Request]:
        """Return requests in their order, or in random order if times are measured."""
        ordered = list(requests)
        if self.timing:
            generator("order of timed trials", self.order_seed).shuffle(ordered)
        return ordered

    def _ends(self, model: Any) -> set[int]:
        """Return the tokens that end a generation."""
        end_ids = getattr(model.generation_config, "eos_token_id", None)
        ends = set(end_ids) if isinstance(end_ids, list | tuple) else {end_ids}
        return {int(end) for end in (*ends, self.wording.tokenizer.eos_token_id) if end is not None}

    @property
    def parity(self) -> dict[str, object]:
        """The chosen backend, the result of the check at the start, and every later change of backend."""
        return self._computing.record if self._computing is not None else {"path": None, "checked": 0}

    def describe(self) -> dict[str, object]:
        """Return model, revision, number formats, prompt template, versions and the outcome of the parity check."""
        model = self._model
        quantisation = self.quantisation or self.stored_quantisation
        # everything that identifies an answer's origin
        identity: dict[str, object] = {
            "kind": "hf",
            "model": self.settings.name,
            "revision": self.revision,
            "dtype": self.dtype,
            **({"quantisation": quantisation} if quantisation else {}),
            **self._described_wording(),
        }
        surprisal = "not defined: the encoder reads a text in both directions"
        return {
            **identity,
            "identity": identity,
            "quantisation": quantisation,
            "quantised_by": checkpoints.quantisation_package(self.quantisation, self.device, self.dtype),
            "device": self.device,
            "processor": checkpoints.name_processor(self.device),
            "transformers": importlib.metadata.version("transformers"),
            "torch": importlib.metadata.version("torch"),
            "determinism": self.determinism,
            "timing": self.timing,
            "order_seed": self.order_seed if self.timing else None,
            "parameters": model.model.num_parameters() if model else None,
            "architecture": type(model.model).__name__ if model else (self.config.architectures or [None])[0],
            "encoder": self.has_encoder,
            "surprisal": surprisal if self.has_encoder else "per region",
            "system_role": self.wording.system_role if self.wording.template == "chat" else None,
            "parity": dict(self.parity),
            "token_budget": self.budget.tokens,
            "tokens_forwarded": model.forwarded if model else 0,
            "tokens_of_check": model.check_tokens if model else 0,
            **({"states_beyond_16_bits": model.beyond_16_bits} if model and model.beyond_16_bits else {}),
        }

    def _described_wording(self) -> dict[str, object]:
        return self.wording.describe()

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that the model reads and its number of tokens, without loading weights."""
        tokens = self.wording.tokens(request)
        labels = {label.label: len(label.targets) for label in tokens.labels}
        count = len(tokens.ids if tokens.source is None else tokens.source)
        return {"text": tokens.text, "tokens": count, "label_tokens": labels or None}

    def close(self) -> None:
        """Start no further pass."""
        self._closed = True
        if self._model is not None:
            self._model.is_closed = True

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield a reply for each request as soon as its rows are computed; follow-up requests come after."""
        windows = Windows(self._ordered(requests), leads_on=follow is not None, size=self.window)
        while windows and not self._closed:
            window, holds = windows.next(self._most_talks)
            if self.timing and not self._is_warm:
                self._warm_up(window[0])
            for reply in self._window(window, holds=holds):
                if follow is not None:
                    windows.follow(follow(reply))
                yield reply
                if self._closed:
                    return

    def _warm_up(self, request: Request) -> None:
        """Compute a request a few times before times are measured."""
        model = self._load()
        forwarded, calls = model.forwarded, model.calls
        for _ in range(WARM_UP):
            list(self._window([request], holds=False))
        model.forwarded, model.calls = forwarded, calls
        self._is_warm = True

    def _window(self, requests: Sequence[Request], *, holds: bool) -> Iterator[Reply]:
        jobs: list[Job] = []
        for request in requests:
            if self._closed:
                return
            try:
                jobs.append(self._job(request))
            except ValueError as error:
                yield self._failed(request, str(error))
        prompts = [job.rows[0] for job in jobs if job.rows] if holds else []
        if prompts:
            share = self.parity["path"] == PackedBackend.name
            self._most_talks = conversations_held(prompts, self.budget, share=share)
        thoughts: list[Job] = []
        for job, path in self._jobs(jobs, holds=holds):
            if job.thought_only and job.error is None:
                thoughts.append(job)
            else:
                yield self._reply(job, path)
        for job, path in self._jobs([answer_job(job, self.wording) for job in thoughts], holds=holds):
            yield self._reply(job, path)

    def _jobs(self, jobs: Sequence[Job], *, holds: bool) -> Iterator[tuple[Job, str]]:
        """Yield finished jobs and the backend that computed them."""
        yield from ((job, "none") for job in jobs if not job.rows)
        work = merged(jobs, apart=self.timing)
        if not work:
            return
        computing = self._begun([item.row for item in work])
        for item, outcome, path in computing.compute(
            work, self.budget, going_on_from(work) if holds else set()
        ):
            for job, place in item.waiting:
                if job.error is not None:
                    continue
                if isinstance(outcome, str):
                    job.error = outcome
                else:
                    job.found[place] = outcome if item.waiting[0][0] is job else replace(outcome, computed=0)
                if job.is_done:
                    yield job, path

    def _begun(self, rows: Sequence[Row]) -> Computing:
        """Return the row computer, with a backend chosen by the first rows."""
        if self._computing is None:
            model = self._load()
            plain = self._plain(model, rows)
            if self.determinism == "exact" or self.timing:
                record: dict[str, object] = {"path": "plain", "checked": 0, "reason": "asked for"}
                self._computing = Computing(model, [plain], record)
            else:
                choice = parity.choose_way(model, rows, self.dtype, plain)
                self._computing = Computing(model, choice.ways, choice.record)
        return self._computing

    def _plain(self, model: CausalModel, rows: Sequence[Row]) -> Plain:
        """Return the backend that others are checked against."""
        if self.has_encoder:
            return EncoderDecoderBackend(model, alone=True)
        longest = max(rows, key=lambda row: len(row.ids))
        require_causal(model, longest.ids, self.dtype, self.settings.name)
        return PlainBackend(model, keeps_memory=is_forkable(model))

    def _job(self, request: Request) -> Job:
        """Return a job with the request's rows of tokens; raise an error if it is longer than the model's context."""
        tokens = self.wording.tokens(request)
        thinks = self.wording.thinking and self.wording.thoughts.marks is not None
        require_fitting(tokens, request, self._context_length, thinks=thinks)
        return job_of(request, tokens, self.wording)

    def _load(self) -> CausalModel:
        if self._model is None:
            model = self._weights()
            self._model = CausalModel(model, self.device, self._ends(model), self.wording.begins_word)
            self._model.is_closed = self._closed
            free = checkpoints.free_memory(self.device)
            if free is not None:
                self.budget.held = max(1, min(self.budget.held, int(free) // 5 // self._model.bytes_a_token))
            self.budget.positions = min(self.budget.positions, self._model.most_positions)
        return self._model

    def _weights(self) -> Any:
        return checkpoints.load_model(self.source, self.device, self.dtype, self.quantisation)

    def _reply(self, job: Job, path: str) -> Reply:
        if job.error is not None:
            return self._failed(job.request, job.error, attempts=job.attempts)
        return self._signed(reply_of(job, self.wording, path))

    def _signed(self, reply: Reply) -> Reply:
        """Return a reply with the model's identity, and without times if none are measured."""
        if not self.timing:
            reply = replace(reply, latency_ms=None, ttft_ms=None)
        return replace(
            reply,
            requested_model=self.settings.use,
            resolved_model=f"{self.settings.name}@{self.revision}",
            dtype=self.dtype,
        )

    def _failed(self, request: Request, error: str, *, attempts: int = 1) -> Reply:
        return self._signed(Reply(request.work_key, None, "error", error=error, attempts=attempts))


class VisionEngine(LocalEngine):
    """Engine for a checkpoint on this machine that takes pictures."""

    budgets: Mapping[str, int] = {"cpu": 2048, "mps": 8192, "cuda": 32_768}
    window = 64

    def _wording(self) -> Wording:
        leading_space = bool(self.settings.options.get("leading_space", False))
        self.stored_quantisation = None  # it was never part of the identity of vision models
        self.images = ImageProcessor(
            self.source, self.config, self.settings.name, leading_space=leading_space
        )
        return Wording(self.images.tokenizer, template="plain", leading_space=leading_space)

    def describe(self) -> dict[str, object]:
        """Return model, revision, number formats, processor, versions and the outcome of the check of batches."""
        surprisal = "not defined: words in a picture are no tokens"
        return {**super().describe(), "encoder": False, "surprisal": surprisal, "pictures": drawn_with()}

    def _described_wording(self) -> dict[str, object]:
        processor = self.images.processor
        return self.wording.describe() | {
            "template": "chat",
            "template_hash": digest_of(str(processor.chat_template)),
            "image_processor": type(processor.image_processor).__name__,
        }

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that the model reads, its pictures and number of tokens, without loading weights."""
        look = self.images.look(request)
        labels = {label.label: len(label.targets) for label in look.tokens.labels}
        pictures = [picture.to_json() for picture in look.pictures]
        shown = {"text": look.tokens.text, "pictures": pictures, "tokens": len(look.tokens.ids)}
        return {**shown, "label_tokens": labels or None}

    def _job(self, request: Request) -> Job:
        look = self.images.look(request)
        require_fitting(look.tokens, request, self._context_length, thinks=False)
        job = job_of(request, look.tokens, self.wording)
        job.rows = [replace(row, seen=look.seen(row)) for row in job.rows]
        return job

    def _plain(self, model: CausalModel, rows: Sequence[Row]) -> Plain:
        return VisionBackend(model, self.images, alone=True)

    def _weights(self) -> Any:
        return checkpoints.load_model(self.source, self.device, self.dtype, self.quantisation, sees=True)

    def _reply(self, job: Job, path: str) -> Reply:
        reply = super()._reply(job, path)
        return (
            reply if job.error is not None else replace(reply, cached_tokens=0, path=f"{reply.path}+pictures")
        )
