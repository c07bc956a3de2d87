"""The local engine: choices by the log-probability of every label, text by decoding, regions by surprisal; nothing twice.

Requests become rows of tokens, rows that say the same are merged, and a *way* computes them: branches side by side along
the trie of all rows, else batches that share a prefix, else one row at a time. Before anything counts, a few rows are
computed plainly beside the way; where they differ by more than rounding the next slower way is taken, and the description
of the run says which and how far they were apart. When memory runs out, half as much is computed at once from then on.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from experiment.models.engine import Follow, Reply, Request
from experiment.models.local import checkpoints, parity
from experiment.models.local.branching import BranchingWay
from experiment.models.local.expanded import ExpandedWay
from experiment.models.local.head import CausalModel, is_out_of_memory
from experiment.models.local.jobs import Job, job_of, reply_of
from experiment.models.local.plain import PlainWay
from experiment.models.local.rows import Budget, Found, Row
from experiment.models.local.tokens import Template, Tokens, Wording
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError, unknown_name

WINDOW = 8192
"""Requests that are planned together."""

BUNDLE = 32
"""Requests that are always computed together with ``determinism: stable``."""

DETERMINISM = ("fast", "stable", "exact")
_BUDGETS = {"cpu": (768, 65_536), "mps": (4096, 65_536), "cuda": (8192, 524_288)}
Way = BranchingWay | ExpandedWay | PlainWay


@dataclass
class _Work:
    """One row to compute and all jobs that wait for it."""

    row: Row
    waiting: list[tuple[Job, int]] = field(default_factory=list)


class LocalEngine:
    """Answers with a checkpoint on this machine.

    Parameters
    ----------
    settings : ModelSettings
        Reads the options ``template``, ``leading_space``, ``thinking``, ``dtype``, ``device``, ``revision``,
        ``quantisation``, ``token_budget``, ``determinism``, ``timing``.

    Raises
    ------
    UserError
        When PyTorch or the model is missing, or an option is not valid.
    """

    def __init__(self, settings: ModelSettings) -> None:
        options = settings.options
        self.settings = settings
        self.source = checkpoints.find_source(settings)
        self.device = checkpoints.choose_device(options.get("device"))
        self.dtype = checkpoints.choose_dtype(options.get("dtype"), self.device)
        self.config, tokenizer = checkpoints.load_tokenizer(self.source)
        self.wording = Wording(
            tokenizer,
            template=cast("Template | None", options.get("template")),
            leading_space=cast("bool | None", options.get("leading_space")),
            thinking=bool(options.get("thinking", False)),
        )
        self.revision = checkpoints.name_revision(self.source, self.config)
        self.determinism = str(options.get("determinism", "fast"))
        if self.determinism not in DETERMINISM:
            raise unknown_name("determinism", self.determinism, DETERMINISM)
        self.timing = bool(options.get("timing", False))
        self.parity: dict[str, object] = {"path": None, "checked": 0}
        tokens, held = _BUDGETS[self.device.partition(":")[0]]
        asked = options.get("token_budget")
        self.budget = Budget(int(cast(int, asked)) if asked is not None else tokens, held)
        self.trie_tokens = 0
        self._model: CausalModel | None = None
        self._way: Way | None = None
        self._closed = False

    @property
    def bundle(self) -> int | None:
        """How many planned requests must always come together and in their order; None where company does not matter."""
        return BUNDLE if self.determinism == "stable" and not self.timing else None

    def describe(self) -> dict[str, object]:
        """Return model, revision, numbers, wording, versions and the outcome of the parity check."""
        identity: dict[str, object] = {
            "kind": "hf",
            "model": self.settings.name,
            "revision": self.revision,
            "dtype": self.dtype,
            **self.wording.describe(),
        }
        model = self._model
        return {
            **identity,
            "identity": identity,
            "parameters": model.model.num_parameters() if model else None,
            "architecture": type(model.model).__name__ if model else None,
            "device": self.device,
            "processor": platform.processor() or platform.machine(),
            "system_role": self.wording.system_role if self.wording.template == "chat" else None,
            "transformers": importlib.metadata.version("transformers"),
            "torch": importlib.metadata.version("torch"),
            "determinism": self.determinism,
            "timing": self.timing,
            "parity": dict(self.parity),
            "token_budget": self.budget.tokens,
            "tokens_forwarded": model.forwarded if model else 0,
        }

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that the model reads and its number of tokens; loads no weights."""
        tokens = self.wording.tokens(request)
        labels = {label.label: len(label.targets) for label in tokens.labels}
        return {"text": tokens.text, "tokens": len(tokens.ids), "label_tokens": labels or None}

    def close(self) -> None:
        """Begin no further pass."""
        self._closed = True

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield a reply for each request as soon as its rows are computed; what follows from replies comes after."""
        waiting: list[Request] = list(requests)
        size = self.bundle or WINDOW
        while waiting and not self._closed:
            window, waiting = waiting[:size], waiting[size:]
            for reply in self._window(window):
                if follow is not None:
                    waiting += follow(reply)
                yield reply
                if self._closed:
                    return

    def _window(self, requests: Sequence[Request]) -> Iterator[Reply]:
        jobs: list[Job] = []
        for request in requests:
            try:
                jobs.append(job_of(request, self._fitting(request), _Stops(self.wording, request.stop)))
            except ValueError as error:
                yield self._failed(request, str(error))
        work = _merged(jobs)
        for job in jobs:
            if not job.rows:
                yield self._reply(job, "none")
        if not work:
            return
        for one, found, path in self._compute(work):
            for job, place in one.waiting:
                if job.error is not None:
                    continue
                if isinstance(found, str):
                    job.error = found
                    yield self._failed(job.request, found, attempts=job.attempts)
                    continue
                job.found[place] = found if one.waiting[0][0] is job else replace(found, computed=0)
                if job.is_done:
                    yield self._reply(job, path)

    def _compute(self, work: Sequence[_Work]) -> Iterator[tuple[_Work, Found | str, str]]:
        """Compute rows; halve the budget and go on with what is left when memory runs out."""
        left = list(work)
        alone = False
        while left:
            way = self._chosen([one.row for one in left])
            rows = [one.row for one in (left[:1] if alone else left)]
            done: set[int] = set()
            try:
                for place, found in way.compute(rows, self._budget_now()):
                    done.add(place)
                    yield left[place], found, way.name
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                for one in left:
                    for job, _ in one.waiting:
                        job.attempts += 1
                if self.budget.exhausted and not done:
                    if alone or len(left) == 1:
                        done.add(0)
                        yield left[0], "memory ran out with this request alone", way.name
                    alone = not alone
                self._shrink()
            else:
                alone = False
            left = [one for place, one in enumerate(left) if place not in done]

    def _budget_now(self) -> Budget:
        model = self._load()
        self.budget.positions = min(self.budget.positions, model.most_positions)
        return self.budget

    def _shrink(self) -> None:
        import gc

        import torch

        self.budget.halve()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _chosen(self, rows: Sequence[Row]) -> Way:
        """Return the way of computing, found out with the first rows."""
        if self._way is None:
            model = self._load()
            plain = PlainWay(model, keeps_memory=ExpandedWay(model).is_possible())
            if self.determinism == "exact" or self.timing:
                self.parity = {"path": "plain", "checked": 0, "reason": "asked for"}
                self._way = plain
            else:
                self._way, self.parity = parity.choose_way(model, rows, self.dtype, plain)
        return self._way

    def _fitting(self, request: Request) -> Tokens:
        """Return a request in tokens, or say that it is longer than the model takes."""
        tokens = self.wording.tokens(request)
        most = getattr(self.config.get_text_config(), "max_position_embeddings", None)
        continued = len(tokens.ids) + request.max_tokens if request.labels is None or request.also_text else 0
        longest = max([len(label.ids) for label in tokens.labels] + [continued, len(tokens.ids)])
        if most is not None and longest > most:
            raise ValueError(f"prompt and answer take {longest} tokens, and the model reads at most {most}")
        return tokens

    def _load(self) -> CausalModel:
        if self._model is None:
            model = checkpoints.load_model(self.source, self.device, self.dtype)
            self._model = CausalModel(model, self.device, self._ends(model), self.wording.begins_word)
        return self._model

    def _ends(self, model: Any) -> set[int]:
        given = getattr(model.generation_config, "eos_token_id", None)
        ends = set(given) if isinstance(given, list | tuple) else {given}
        return {int(end) for end in (*ends, self.wording.tokenizer.eos_token_id) if end is not None}

    def _reply(self, job: Job, path: str) -> Reply:
        reply = reply_of(
            job,
            decode=self.wording.decode,
            marks_beginnings=lambda: self.wording.marks_beginnings,
            path=path,
            thinks=self.wording.thought_end,
        )
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


class _Stops:
    """Says of the tokens so far whether one of a request's stop texts has been reached."""

    def __init__(self, wording: Wording, stops: Sequence[str]) -> None:
        self._wording = wording
        self._stops = stops
        self._reach = 4 * max(map(len, stops), default=0) + 4

    def __call__(self, ids: Sequence[int]) -> bool:
        if not self._stops:
            return False
        tail = self._wording.decode(ids[-self._reach :])
        return any(stop in tail for stop in self._stops)


def _merged(jobs: Sequence[Job]) -> list[_Work]:
    """Return the rows of all jobs, those that say the same once."""
    found: dict[tuple[object, ...], _Work] = {}
    for job in jobs:
        for place, row in enumerate(job.rows):
            how = row.decoding
            said: tuple[object, ...] = ()
            if how is not None:
                draws = (how.temperature, how.seed, how.top_p, how.top_k) if how.temperature > 0 else ()
                said = (how.max_tokens, job.request.stop, *draws)
            key = (row.ids.tobytes(), said)
            one = found.get(key)
            if one is None:
                found[key] = one = _Work(row)
            else:
                one.row = replace(
                    one.row,
                    targets=tuple(dict.fromkeys([*one.row.targets, *row.targets])),
                    borders=tuple(sorted({*one.row.borders, *row.borders})),
                    states=tuple(sorted({*one.row.states, *row.states})),
                )
            one.waiting.append((job, place))
    return list(found.values())
