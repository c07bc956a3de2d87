"""The local engine and the check at its start, which takes the fastest backend whose numbers equal those of plain passes.

Models that attend to later tokens are refused: transformers loads BERT, XLNet and similar models under the same name as
language models, but they would see a label before it is scored.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from experiment.models.engine import Follow, ModelSettings, Reply, Request
from experiment.models.local import checkpoints
from experiment.models.local.causal_model import (
    CausalModel,
    Closed,
    give_back,
    has_states,
    is_forkable,
    is_out_of_memory,
)
from experiment.models.local.jobs import (
    WINDOW,
    Job,
    Windows,
    Work,
    answer_job,
    conversations_held,
    going_on_from,
    job_of,
    merged,
    reply_of,
)
from experiment.models.local.packed import PackedBackend
from experiment.models.local.plain import EncoderDecoderBackend, PlainBackend
from experiment.models.local.rows import Decoding, Ids, MemoryBudget, Row, RowOutcome
from experiment.models.local.tokens import Template, Wording, context_length_of, digest_of, require_fitting
from experiment.models.local.vision import ImageProcessor, VisionBackend
from experiment.models.pictures import drawn_with
from stimuli.errors import UserError, unknown_name

TOLERANCE = {"float32": 5e-4}
TOLERANCE_16_BIT = 0.25
"""Nats. In 32 bits, backends differ from plain passes by about 1e-5 (1e-4 if states are stored); two plain passes in 16 bits
differ from 32 bits by about 0.04 in a model of 30 million parameters."""

TOLERANCE_ENCODED = 1e-3
"""Nats, for encoder–decoders. Their encoders compute every text in full, and what T5 computes grows large."""

STATES_TOLERANCE = {4: 2e-3}
STATES_TOLERANCE_16_BIT = 0.1
"""Largest length of the difference between two hidden states of a layer, as a share of their length, for states stored in 16 bits."""

Plain = PlainBackend | EncoderDecoderBackend | VisionBackend
Way = PackedBackend | Plain

Seen = TypeVar("Seen")

_CHECKED_TOKENS = 4
_COMPARED = 16
_CHECK_BUDGET = 256
_CANDIDATES = 400
_STEM = 24
_TWIG = 8
_LONG = 512
_PARTS = (1, 4, 16, 64)

DETERMINISM = ("fast", "exact")
FORMER_DETERMINISM = {"stable": "exact"}
"""Settings of earlier versions and their replacements, which are at least as strict."""

WARM_UP = 3
"""Requests that are computed and discarded before times are measured."""

_HELD = {"cpu": 65_536, "mps": 65_536, "cuda": 524_288}


@dataclass
class BackendChoice:
    """The backends that are correct, the fastest first, and the results of the check."""

    ways: list[Way]
    record: dict[str, object]


@dataclass(frozen=True)
class ParityDeviation:
    """Deviation of a backend from plain passes."""

    nats: float  # largest difference in a log-probability
    # Largest difference between a layer's hidden states, relative to their norm; None if no row stores any
    states: float | None = None


def choose_way(model: CausalModel, rows: Sequence[Row], dtype: str, plain: Plain) -> BackendChoice:
    """Return the backends whose log-probabilities, and hidden states if stored, equal those of plain passes."""
    with model.as_check():
        return _with_less(rows, lambda beginnings, budget: _choice(model, beginnings, dtype, plain, budget))


def apart_from_plain(model: CausalModel, way: Way, rows: Sequence[Row], plain: Way) -> float | str:
    """Return a backend's deviation from plain passes in nats, or why it computes nothing; its tokens are counted separately."""

    def apart(beginnings: Sequence[Row], budget: int) -> ParityDeviation | str:
        sample = _sample(model, beginnings) if isinstance(plain, PlainBackend) else beginnings[:4]
        return _checked(model, way, sample, plain, budget)

    with model.as_check():
        worst = _with_less(rows, apart)
    return worst if isinstance(worst, str) else _too_far(model, worst, math.inf) or worst.nats


def _with_less(rows: Sequence[Row], check: Callable[[Sequence[Row], int], Seen]) -> Seen:
    """Return the result of a check of rows within a budget; if memory runs out, of shorter beginnings of rows."""
    longest = max(len(row.ids if row.source is None else row.source) for row in rows)
    for part in _PARTS[:-1]:
        beginnings = rows if part == 1 else [_begun(row, longest // part) for row in rows]
        try:
            return check(beginnings, _CHECK_BUDGET // part)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
    return check([_begun(row, longest // _PARTS[-1]) for row in rows], _CHECK_BUDGET // _PARTS[-1])


def _begun(row: Row, most: int) -> Row:
    """Return the beginning of a row without requested outputs; rows with pictures stay whole."""
    if row.seen is not None:
        return row
    if row.source is not None:
        return Row(row.ids[:1], source=row.source[: max(1, most)])
    return Row(row.ids[: max(1, most)])


def _choice(model: CausalModel, rows: Sequence[Row], dtype: str, plain: Plain, budget: int) -> BackendChoice:
    tolerance = TOLERANCE.get(dtype, TOLERANCE_16_BIT)
    refused: dict[str, str] = {}
    ways: list[Way] = []
    if isinstance(plain, EncoderDecoderBackend):
        tolerance = max(tolerance, TOLERANCE_ENCODED)
        ways, chosen = [EncoderDecoderBackend(model)], list(rows[:4])
    elif isinstance(plain, VisionBackend):
        # from the longest to shorter ones, so that some are padded
        chosen = sorted(rows, key=lambda row: -len(row.ids))[:: max(1, len(rows) // 4)][:4]
        ways = [VisionBackend(model, plain.images)]
    else:
        chosen = _sample(model, rows)
        if has_states(model):
            refused["packed"] = (
                "some layers keep a state of all that came before, and branches would need one each"
            )
        else:
            ways.append(PackedBackend(model))
        if is_forkable(model):
            ways.append(PlainBackend(model, alone=False, shares=True))
        else:
            refused["expanded"] = "the model's memory is no cache that several rows can go on from"
        ways += [
            PlainBackend(model, keeps_memory=keeps, alone=False)
            for keeps in {plain.keeps_memory: 1, False: 1}
        ]
    record: dict[str, object] = {"path": plain.name, "checked": len(chosen), "tolerance": tolerance}
    while ways:
        worst = _checked(model, ways[0], chosen, plain, budget)
        why = worst if isinstance(worst, str) else _too_far(model, worst, tolerance)
        if isinstance(worst, ParityDeviation) and not why:
            record |= {"path": ways[0].name, "max_abs_difference": worst.nats}
            record |= {} if worst.states is None else {"max_states_difference": worst.states}
            refused.pop(ways[0].name, None)
            break
        refused[ways.pop(0).name] = why
    if isinstance(plain, PlainBackend):
        plain.keeps_memory &= any(isinstance(way, PlainBackend) and way.keeps_memory for way in ways)
    return BackendChoice([*ways, plain], {**record, "refused": refused})


def _too_far(model: CausalModel, deviation: ParityDeviation, tolerance: float) -> str:
    """Return how a backend deviates from plain passes by more than rounding; empty if it does not."""
    if not deviation.nats <= tolerance:
        return f"differs from plain passes by {deviation.nats:.3g} nats; at most {tolerance:g} is rounding"
    states_tolerance = STATES_TOLERANCE.get(
        next(model.model.parameters()).element_size(), STATES_TOLERANCE_16_BIT
    )
    if deviation.states is None or deviation.states <= states_tolerance:
        return ""
    return (
        f"hidden states differ from those of plain passes by {deviation.states:.3g} of their length; "
        f"at most {states_tolerance:g} is rounding"
    )


def _checked(
    model: CausalModel, way: Way, rows: Sequence[Row], plain: Way, budget: int
) -> ParityDeviation | str:
    try:
        if not isinstance(plain, PlainBackend):
            return ParityDeviation(_between(way, plain, rows, budget))
        return _difference(model, way, rows, budget)
    except Closed:
        raise
    except Exception as error:
        if is_out_of_memory(error):
            raise
        return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def _sample(model: CausalModel, rows: Sequence[Row]) -> list[Row]:
    """Return the longest row or its beginning, one that branches late if attention is sliding, and short ones."""
    window = model.window
    longest = max(rows[:: max(1, len(rows) // _CANDIDATES)], key=lambda row: len(row.ids))
    if window is None or len(longest.ids) <= window:
        ids = longest.ids if model.positions_by_length else longest.ids[:_LONG]
        sample = [Row(ids)]
    else:
        ids = longest.ids
        sample = [longest]
        sample.append(
            replace(longest, ids=np.concatenate([ids[: -_TWIG - 2], ids[-_TWIG - 2 :][::-1]]), targets=())
        )
    stem, twigs = ids[:_STEM], ids[-3 * _TWIG :]
    for twig in (twigs[:_TWIG], twigs[_TWIG : 2 * _TWIG], twigs[-_TWIG:][::-1]):
        sample.append(Row(np.concatenate([stem, twig]), decoding=_SHORT))
    sample.append(Row(np.concatenate([stem[: _STEM // 2], twigs[:_TWIG]])))
    states, mean = any(row.states for row in rows), any(row.mean for row in rows)
    return [
        replace(
            row,
            borders=(),
            entropies=(),
            states=(len(row.ids) - 1,) if states else (),
            mean=mean,
            decoding=row.decoding and _SHORT,
        )
        for row in sample
        if len(row.ids)
    ]


_SHORT = Decoding(_CHECKED_TOKENS, 0.0, 0, lambda _: False)


def _difference(model: CausalModel, way: Way, rows: Sequence[Row], tokens: int) -> ParityDeviation:
    """Return a backend's deviation from plain passes; it may choose another token only if the two are this close."""
    prepared = [replace(row, targets=_targets(row)) for row in rows]
    outcomes = dict(way.compute(prepared, MemoryBudget(tokens, 16 * tokens)))
    deviations = [_apart_from_plain(model, row, outcomes[place]) for place, row in enumerate(prepared)]
    states = [deviation.states for deviation in deviations if deviation.states is not None]
    return ParityDeviation(max(deviation.nats for deviation in deviations), max(states) if states else None)


def _between(way: Way, plain: Way, rows: Sequence[Row], tokens: int) -> float:
    """Return the largest difference in a log-probability between two backends, in nats."""
    prepared = [
        replace(
            row, targets=(*row.targets, *((len(row.ids), token) for token in range(_COMPARED))), decoding=None
        )
        for row in rows
    ]
    budget = MemoryBudget(16 * tokens, 16 * tokens)
    left, right = dict(way.compute(prepared, budget)), dict(plain.compute(prepared, budget))
    return max(
        abs(value - right[place].logprobs[pick])
        for place, outcome in left.items()
        for pick, value in outcome.logprobs.items()
    )


def _targets(row: Row) -> tuple[tuple[int, int], ...]:
    """Return the targets to compare for a row: its requests, its own last tokens, and its first ones as candidates after it."""
    length = len(row.ids)
    own_targets = [
        (position, int(row.ids[position])) for position in range(max(1, length - _COMPARED), length)
    ]
    candidates = [(length, token) for token in dict.fromkeys(row.ids[:_COMPARED].tolist())]
    return tuple(dict.fromkeys([*row.targets[:_COMPARED], *own_targets, *candidates]))


def _apart_from_plain(model: CausalModel, row: Row, outcome: RowOutcome) -> ParityDeviation:
    import torch

    new_tokens = [] if outcome.decoded is None else outcome.decoded.ids
    ids = [*row.ids.tolist(), *new_tokens]
    with torch.inference_mode():
        tokens = torch.tensor([ids], device=model.device)
        first = min([position for position, _ in row.targets] + [len(row.ids)]) - 1
        over = [(0, range(len(row.ids)))] if row.mean else []
        with model.watched([(0, position) for position in row.states], over) as hidden:
            logprobs = model.logits(tokens, range(first, len(ids)), use_cache=False)[0].log_softmax(-1)
    differences = [
        abs(logprobs[position - 1 - first, token].item() - outcome.logprobs[position, token])
        for position, token in row.targets
    ]
    for step, token in enumerate(new_tokens):
        after = logprobs[len(row.ids) - 1 + step - first]
        differences.append((after.max() - after[token]).item())
    pairs = [
        (outcome.states[position], hidden.of_place(number)) for number, position in enumerate(row.states)
    ]
    if row.mean and outcome.mean is not None:
        pairs.append((outcome.mean, hidden.of_sum(0) / np.float32(len(row.ids))))
    states = [_share_apart(state, model.in_16_bits(other)) for state, other in pairs]
    nats = max(value if math.isfinite(value) else math.inf for value in differences)
    return ParityDeviation(nats, max(states) if states else None)


def _share_apart(left_states: NDArray[np.float16], other: NDArray[np.float16]) -> float:
    """Return the largest distance between two layers' states, shape (layers + 1, width), relative to the second's norm."""
    left, right = left_states.astype(float), other.astype(float)
    lengths = np.linalg.norm(right, axis=1)
    distances = np.linalg.norm(left - right, axis=1)
    shares = np.divide(distances, lengths, out=np.where(distances > 0, np.inf, 0.0), where=lengths > 0)
    return float(shares.max()) if np.isfinite(shares).all() else math.inf


LEAST_TOKENS = 32
"""Smallest budget in tokens before the longest row is tried alone."""


class Computing:
    """Computes rows with the fastest working backend, the plain one last; each change of backend is added to ``record``."""

    def __init__(self, model: CausalModel, ways: Sequence[Way], record: dict[str, object]) -> None:
        self.model = model
        self.record = record
        self._ways = list(ways)
        tolerance = record.get("tolerance")
        self._tolerance = tolerance if isinstance(tolerance, float) else 0.0

    def compute(
        self, work: Sequence[Work], budget: MemoryBudget, hold: Set[int]
    ) -> Iterator[tuple[Work, RowOutcome | str, str]]:
        """Yield each row with its outcome (or an error message) and the backend; later rows continue from those in ``hold``."""
        left = list(enumerate(work))
        alone = False
        before = budget.tokens, budget.held, budget.positions
        while left:
            if alone:
                left.sort(key=lambda entry: -len(entry[1].row.ids))
            batch = left[:1] if alone else left
            hold_in_batch = {number for number, (place, _) in enumerate(batch) if place in hold}
            way, done, fault = self._ways[0], set[int](), None
            try:
                for number, outcome in way.compute([entry.row for _, entry in batch], budget, hold_in_batch):
                    done.add(number)
                    yield batch[number][1], outcome, way.name
            except Closed:
                return
            except Exception as error:
                # nothing may refer to the error's frames, or their tensors stay in memory
                fault = (is_out_of_memory(error), f"{type(error).__name__}: {error}".splitlines()[0][:300])
            if fault is None:
                alone = False
            else:
                out_of_memory, message = fault
                for _, entry in batch:
                    for job, _ in entry.waiting:
                        job.attempts += 1
                if out_of_memory:
                    if not done and alone and budget.tokens <= LEAST_TOKENS:
                        done.add(0)
                        yield batch[0][1], "memory ran out with this request alone", way.name
                        budget.tokens, budget.held, budget.positions = before
                        alone = False
                    elif not done and budget.tokens <= LEAST_TOKENS:
                        alone = True
                    else:
                        budget.halve()
                        give_back()
                elif not self._slower(message, [entry.row for _, entry in batch]):
                    if alone or len(batch) == 1:
                        done.add(0)
                        yield batch[0][1], message, way.name
                    alone = not alone
            left = [entry for number, entry in enumerate(left) if number not in done]

    def _slower(self, message: str, rows: Sequence[Row]) -> bool:
        """Switch to the next correct backend and record why; return False if there is none."""
        if len(self._ways) < 2:
            return False
        change: dict[str, object] = {"from": self._ways.pop(0).name, "why": message}
        refused = {}
        while len(self._ways) > 1:
            worst = apart_from_plain(self.model, self._ways[0], rows, self._ways[-1])
            if isinstance(worst, float) and worst <= self._tolerance:
                change["max_abs_difference"] = worst
                break
            refused[self._ways.pop(0).name] = str(worst)
        change["to"] = self._ways[0].name
        if refused:
            change["refused"] = refused
        changes = self.record.get("changes")
        self.record["changes"] = [*(changes if isinstance(changes, list) else []), change]
        self.record["path"] = self._ways[0].name
        return True


_CAUSAL_TOKENS = 16
_CAUSAL_CHANGED = 4
_MUCH = 10
"""Factor on the tolerance for rounding: quantised layers round neighbouring values together."""


def require_causal(model: CausalModel, ids: Ids, dtype: str, name: str) -> None:
    """Raise an error if a model's log-probabilities of a text's beginning change with its last tokens."""
    import torch

    begun = ids[:_CAUSAL_TOKENS].tolist()
    changed = min(_CAUSAL_CHANGED, len(begun) - 1)
    if changed < 1:
        return
    other = [*begun[:-changed], *((token + 1) % model.vocabulary for token in begun[-changed:])]
    with model.as_check(), torch.inference_mode():
        places = range(len(begun) - changed)
        left, right = (
            model.logits(
                torch.tensor([ids_tested], device=model.device), places, use_cache=False
            ).log_softmax(-1)
            for ids_tested in (begun, other)
        )
        model.forwarded += 2 * len(begun)
        difference = float((left - right).abs().max().item())
    if math.isfinite(difference) and difference > _MUCH * TOLERANCE.get(dtype, TOLERANCE_16_BIT):
        raise UserError(
            f"{name} ({type(model.model).__name__}) sees the tokens that come behind a token: the log-probabilities of a beginning "
            f"change by {difference:.2g} nats with the text's last tokens",
            mend="Name a model that writes text from left to right. BERT-like models do so only where they were trained for it and "
            "their config.json says is_decoder: true.",
        )


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
        self._context_length = context_length_of(self.config)
        self._is_warm = self._closed = False
        self.has_encoder = bool(getattr(self.config, "is_encoder_decoder", False))
        self.wording = self._wording()
        kind = self.device.partition(":")[0]
        n_tokens = options.get("token_budget", self.budgets[kind])
        if not isinstance(n_tokens, int) or isinstance(n_tokens, bool) or n_tokens < 1:
            raise UserError(
                f"token_budget: {n_tokens} is not a number of tokens",
                mend="Write a whole number, 768 for instance.",
            )
        self.budget = MemoryBudget(n_tokens, _HELD[kind])
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
        windows = Windows(requests, leads_on=follow is not None, size=self.window)
        while windows and not self._closed:
            window, holds = windows.next(self._most_talks)
            if self.timing and not self._is_warm:
                model = self._load()
                forwarded, calls = model.forwarded, model.calls
                for _ in range(WARM_UP):
                    list(self._window([window[0]], holds=False))
                model.forwarded, model.calls = forwarded, calls
                self._is_warm = True
            for reply in self._window(window, holds=holds):
                if follow is not None:
                    windows.follow(follow(reply))
                yield reply
                if self._closed:
                    return

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
                choice = choose_way(model, rows, self.dtype, plain)
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
