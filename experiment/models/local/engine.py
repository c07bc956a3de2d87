"""The local engine: choices by the log-probability of every label, text by decoding, regions by surprisal; nothing twice.

Models that see later tokens are refused: transformers loads BERT, XLNet and similar models under the same name as language
models, but they would see a label before it is scored.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from experiment.models.engine import Follow, Reply, Request
from experiment.models.local import checkpoints, hardware, parity, quantising
from experiment.models.local.branching import BranchingWay
from experiment.models.local.caches import is_forkable
from experiment.models.local.computing import Computing
from experiment.models.local.encdec import EncoderDecoderWay
from experiment.models.local.head import CausalModel
from experiment.models.local.jobs import Job, answer_job, job_of, reply_of
from experiment.models.local.lengths import reach_of, require_fitting
from experiment.models.local.opened import open_checkpoint
from experiment.models.local.parity import TOLERANCE, TOLERANCE_16_BIT
from experiment.models.local.plain import PlainWay
from experiment.models.local.rows import Budget, Ids, Row
from experiment.models.local.tokens import Template, Tokens, Wording
from experiment.models.local.windows import Windows, conversations_held, going_on_from, merged
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError
from stimuli.seeds import generator

BUNDLE = 32
"""Requests that are always computed together with ``determinism: stable``."""

WARM_UP = 3
"""Requests that are computed and thrown away before times are taken."""

_BUDGETS = {"cpu": (384, 65_536), "mps": (4096, 65_536), "cuda": (8192, 524_288)}


class LocalEngine:
    """Answers with a checkpoint on this machine.

    ``settings``: reads the options ``template``, ``leading_space``, ``thinking``, ``dtype``, ``device``,
    ``revision``, ``quantisation``, ``token_budget``, ``determinism``, ``timing`` and ``order_seed`` (of the order
    in which timed trials come).
    """

    def __init__(self, settings: ModelSettings) -> None:
        options = settings.options
        self.settings = settings
        opened = open_checkpoint(settings)
        self.source, self.config, self.revision = opened.source, opened.config, opened.revision
        self.device, self.dtype = opened.device, opened.dtype
        self.quantisation, self.stored_quantisation = opened.quantisation, opened.stored_quantisation
        self.determinism, self.timing = opened.determinism, opened.timing
        self.has_encoder = bool(getattr(self.config, "is_encoder_decoder", False))
        self._reach = reach_of(self.config)
        self.wording = Wording(
            opened.tokenizer,
            template=cast("Template | None", options.get("template")),
            leading_space=cast("bool | None", options.get("leading_space")),
            thinking=bool(options.get("thinking", False)),
            decoder_start=checkpoints.decoder_beginning(self.source, self.config)
            if self.has_encoder
            else None,
        )
        self.order_seed = int(cast(int, options.get("order_seed", 1)))
        tokens, held = _BUDGETS[self.device.partition(":")[0]]
        asked = options.get("token_budget")
        if asked is not None and (not isinstance(asked, int) or isinstance(asked, bool) or asked < 1):
            raise UserError(
                f"token_budget: {asked} is no number of tokens",
                mend="Write a whole number, 768 for instance.",
            )
        self.budget = Budget(asked if asked is not None else tokens, held)
        self._model: CausalModel | None = None
        self._computing: Computing | None = None
        self._most_talks = self.budget.held
        self._is_warm = False
        self._closed = False

    @property
    def bundle(self) -> int | None:
        """How many planned requests must always come together and in their order; None where company does not matter."""
        return BUNDLE if self.determinism == "stable" and not self.timing else None

    @property
    def parity(self) -> dict[str, object]:
        """Which way is taken, what the check at the start saw, and every change of way since."""
        return self._computing.record if self._computing is not None else {"path": None, "checked": 0}

    def describe(self) -> dict[str, object]:
        """Return model, revision, numbers, wording, versions and the outcome of the parity check."""
        quantisation = self.quantisation or self.stored_quantisation
        identity: dict[str, object] = {
            "kind": "hf",
            "model": self.settings.name,
            "revision": self.revision,
            "dtype": self.dtype,
            **({"quantisation": quantisation} if quantisation else {}),
            **self.wording.describe(),
        }
        model = self._model
        return {
            **identity,
            "identity": identity,
            "quantisation": quantisation,
            "quantised_by": quantising.quantisation_package(self.quantisation, self.device, self.dtype),
            "parameters": checkpoints.count_parameters(model.model) if model else None,
            "architecture": type(model.model).__name__ if model else (self.config.architectures or [None])[0],
            "encoder": self.has_encoder,
            "surprisal": "not defined: the encoder reads a text in both directions"
            if self.has_encoder
            else "per region",
            "device": self.device,
            "processor": hardware.name_processor(self.device),
            "system_role": self.wording.system_role if self.wording.template == "chat" else None,
            "transformers": importlib.metadata.version("transformers"),
            "torch": importlib.metadata.version("torch"),
            "determinism": self.determinism,
            "timing": self.timing,
            "order_seed": self.order_seed if self.timing else None,
            "parity": dict(self.parity),
            "token_budget": self.budget.tokens,
            "tokens_forwarded": model.forwarded if model else 0,
            "tokens_of_check": model.check_tokens if model else 0,
            **({"states_beyond_16_bits": model.beyond_16_bits} if model and model.beyond_16_bits else {}),
        }

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that the model reads and its number of tokens; loads no weights."""
        tokens = self.wording.tokens(request)
        labels = {label.label: len(label.targets) for label in tokens.labels}
        count = len(tokens.ids if tokens.source is None else tokens.source)
        return {"text": tokens.text, "tokens": count, "label_tokens": labels or None}

    def close(self) -> None:
        """Begin no further pass."""
        self._closed = True
        if self._model is not None:
            self._model.is_closed = True

    def forget_memory(self) -> None:
        """Give up what is remembered of earlier requests; model and way stay."""
        if self._computing is not None:
            self._computing.forget()

    def borrow(self, other: LocalEngine) -> None:
        """Take over the loaded model of another engine that was opened with the same checkpoint and numbers."""
        mine = (self.source, self.device, self.dtype, self.quantisation)
        if mine == (other.source, other.device, other.dtype, other.quantisation):
            self._model, self.budget = other._load(), other.budget

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield a reply for each request as soon as its rows are computed; what follows from replies comes after.

        With ``timing`` requests come in a random order. With ``determinism: stable`` they come in bundles, and each one
        that follows from a reply is computed by itself.
        """
        windows = Windows(self._ordered(requests), self.bundle, leads_on=follow is not None)
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

    def _ordered(self, requests: Sequence[Request]) -> Sequence[Request]:
        if not self.timing:
            return requests
        shuffled = list(requests)
        generator("order of timed trials", self.order_seed).shuffle(shuffled)
        return shuffled

    def _warm_up(self, request: Request) -> None:
        """Compute a request some times before times are taken."""
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
                jobs.append(job_of(request, self._fitting(request), self.wording))
            except ValueError as error:
                yield self._failed(request, str(error))
        prompts = [job.rows[0] for job in jobs if job.rows] if holds else []
        if prompts:
            share = self.parity["path"] == BranchingWay.name
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
        """Yield jobs as they are done, and the way that was taken."""
        yield from ((job, "none") for job in jobs if not job.rows)
        work = merged(jobs, apart=self.timing)
        if not work:
            return
        computing = self._begun([one.row for one in work])
        for one, found, path in computing.compute(work, self.budget, going_on_from(work) if holds else set()):
            for job, place in one.waiting:
                if job.error is not None:
                    continue
                if isinstance(found, str):
                    job.error = found
                else:
                    job.found[place] = found if one.waiting[0][0] is job else replace(found, computed=0)
                if job.is_done:
                    yield job, path

    def _begun(self, rows: Sequence[Row]) -> Computing:
        """Return what computes, its way found out with the first rows."""
        if self._computing is None:
            model = self._load()
            if not self.has_encoder:
                longest = max(rows, key=lambda row: len(row.ids))
                require_causal(model, longest.ids, self.dtype, self.settings.name)
            keeps = not self.has_encoder and is_forkable(model)
            plain = (
                EncoderDecoderWay(model, alone=True)
                if self.has_encoder
                else PlainWay(model, keeps_memory=keeps)
            )
            if self.determinism == "exact" or self.timing:
                record: dict[str, object] = {"path": "plain", "checked": 0, "reason": "asked for"}
                self._computing = Computing(model, [plain], record)
            else:
                choice = parity.choose_way(model, rows, self.dtype, plain, remembers=self.bundle is None)
                self._computing = Computing(model, choice.ways, choice.record)
        return self._computing

    def _fitting(self, request: Request) -> Tokens:
        """Return a request in tokens, or say that it is longer than the model takes."""
        tokens = self.wording.tokens(request)
        thinks = self.wording.thinking and self.wording.thoughts.marks is not None
        require_fitting(tokens, request, self._reach, thinks=thinks)
        return tokens

    def _load(self) -> CausalModel:
        if self._model is None:
            model = checkpoints.load_model(self.source, self.device, self.dtype, self.quantisation)
            self._model = CausalModel(model, self.device, self._ends(model), self.wording.begins_word)
            self._model.is_closed = self._closed
            free = hardware.free_memory(self.device)
            if free is not None:
                self.budget.held = max(1, min(self.budget.held, free // 5 // self._model.bytes_a_token))
            self.budget.positions = min(self.budget.positions, self._model.most_positions)
        return self._model

    def _ends(self, model: Any) -> set[int]:
        given = getattr(model.generation_config, "eos_token_id", None)
        ends = set(given) if isinstance(given, list | tuple) else {given}
        return {int(end) for end in (*ends, self.wording.tokenizer.eos_token_id) if end is not None}

    def _reply(self, job: Job, path: str) -> Reply:
        if job.error is not None:
            return self._failed(job.request, job.error, attempts=job.attempts)
        reply = reply_of(job, self.wording, path)
        if not self.timing:
            reply = replace(reply, latency_ms=None, ttft_ms=None)
        return replace(
            reply,
            requested_model=self.settings.use,
            resolved_model=f"{self.settings.name}@{self.revision}",
            dtype=self.dtype,
        )

    def _failed(self, request: Request, error: str, *, attempts: int = 1) -> Reply:
        return Reply(
            request.work_key, None, "error", error=error, attempts=attempts,
            requested_model=self.settings.use, resolved_model=f"{self.settings.name}@{self.revision}",
            dtype=self.dtype,
        )  # fmt: skip


_TOKENS = 16
_CHANGED = 4
_MUCH = 10
"""How many times what counts as rounding the difference must be: quantised layers round together what stands beside each other."""


def require_causal(model: CausalModel, ids: Ids, dtype: str, name: str) -> None:
    """Refuse a model whose log-probabilities of a text's beginning change with its last tokens.

    ``ids``: shape (tokens,); a text to look with; its first tokens are enough, and one that is very short tells
    nothing.
    ``name``: what the study calls the model.
    """
    import torch

    begun = ids[:_TOKENS].tolist()
    changed = min(_CHANGED, len(begun) - 1)
    if changed < 1:
        return
    other = [*begun[:-changed], *((one + 1) % model.vocabulary for one in begun[-changed:])]
    forwarded, calls = model.forwarded, model.calls
    with torch.inference_mode():
        places = range(len(begun) - changed)
        left, right = (
            model.logits(torch.tensor([one], device=model.device), places, use_cache=False).log_softmax(-1)
            for one in (begun, other)
        )
        apart = float((left - right).abs().max().item())
    model.forwarded, model.calls = forwarded, calls
    model.check_tokens += 2 * len(begun)
    if math.isfinite(apart) and apart > _MUCH * TOLERANCE.get(dtype, TOLERANCE_16_BIT):
        raise UserError(
            f"{name} ({type(model.model).__name__}) sees the tokens that come behind a token: the log-probabilities of a beginning "
            f"change by {apart:.2g} nats with the text's last tokens",
            mend="Name a model that writes text from left to right. BERT-like models do so only where they were trained for it and "
            "their config.json says is_decoder: true.",
        )
