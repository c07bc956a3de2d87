"""A few tiny requests that find an endpoint's capabilities before money is spent on unsupported ones.

1. A choice with all usual parameters: those that the server refuses by name are dropped and recorded; those that it accepts
   but ignores (log-probabilities that are missing) show in the answer, as does whether its first token is a label at all.
2. A prompt that asks for another word, restricted to the labels: a server that ignores the restriction writes the word.
3. The log-probabilities of a prompt, requested twice: they differ if a server caches prefixes. Those of the first answer
   tokens are compared with those of the same tokens at the end of the prompt: some servers are off by one token.
4. A word in a picture, if the study shows pictures: a server that refuses it ends the run before money is spent.
5. Letters sampled at temperature 1, twice with one seed and once with another: a server that uses the seed gives the same
   text twice; a server that samples at all gives a different text for the other seed.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Generator, Mapping
from copy import copy
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from statistics import fmean
from typing import Any, Literal, TypeVar, get_args

from experiment.models.api.calls import send
from experiment.models.api.formats import STRUCTURES, ApiCall, ApiFormat, Structure
from experiment.models.api.responses import LEAST_MASS, output_limit, read_json
from experiment.models.api.retrying import (
    FIRST_TRIES,
    NoAnswer,
    Retry,
    RunStopped,
    Transport,
    encoded,
    judge_refusal,
    no_whole_labels,
    unreached,
)
from experiment.models.engine import Message, Reply, Request, Span
from experiment.models.journal import ModelCalls, request_digest
from experiment.models.pictures import MARK, Picture
from stimuli.errors import unknown_name
from stimuli.seeds import stable_seed

Need = Literal[
    "choices", "label_logprobs", "long_labels", "likelihoods", "surprisal", "states", "sampling", "system_role", "reasoning",
    "pictures",
]  # fmt: skip
NEEDS: tuple[Need, ...] = get_args(Need)
"""What an analysis may need from a model: answers to choices, their probabilities (labels of one token, or longer), the
likelihood of a participant's answers, surprisal of regions, hidden states, samples that differ between replicates, a system
message, reasoning, pictures.
"""


UNTRIED = "not tried"


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of an endpoint that a probe found."""

    model: str  # model, server and form of the API that were probed
    base_url: str
    api: str
    resolved_model: str | None = None  # the model's name as the server reports it
    top_logprobs: int = 0  # alternatives reported at each answer token; 0 for none
    prompt_logprobs: bool = False  # whether log-probabilities of the prompt's tokens are reported
    # whether they were the same for the same prompt twice; None if none are reported
    stable_prompt_logprobs: bool | None = None
    seed: bool = False  # whether the server accepts these
    # whether the same seed gave the same text and another seed a different one; None if not tested
    heeds_seed: bool | None = None
    # whether samples at temperature 1 differed; None if not tested
    draws_differ: bool | None = None
    # accepted fields that switch off its default sampling filters: `top_k`, `min_p`, penalties
    unfiltered: tuple[str, ...] = ()
    temperature: bool = False
    system_role: bool = False
    structure: str = "none"  # how answers can be restricted to labels: one of STRUCTURES, `none`, or UNTRIED
    thinks: bool = False  # whether it reasons before it answers, with the study's settings
    reasoning_counts: bool = False  # whether reasoning tokens are counted separately
    cached_counts: bool = False  # whether tokens from the provider's cache are counted separately
    pictures: bool | None = None  # whether it read a word from a picture; None if the study shows no pictures
    limit_name: str = "max_tokens"
    requests: int = 0  # number of requests that the probe sent
    answered: bool = False  # whether any of them was answered
    remarks: tuple[str, ...] = ()  # other observations

    def describe(self) -> dict[str, object]:
        """Return everything as JSON, including the sentences."""
        lists = {"remarks": list(self.remarks), "unfiltered": list(self.unfiltered)}
        return {**asdict(self), **lists, "sentences": self.sentences()}

    def sentences(self) -> list[str]:
        """Describe in sentences what the model supports."""
        return [
            self._of_labels(),
            "It reports log-probabilities of the prompt: surprisal of regions, and labels of any length (label_scoring: whole)."
            if self.prompt_logprobs
            else "It reports no log-probabilities of the prompt: no surprisal, and no probability of labels longer than one token.",
            *(
                [
                    "The same prompt had different log-probabilities twice, as servers with prefix caching give them: start the "
                    "server without it (vLLM: --no-enable-prefix-caching) before surprisal is a measure."
                ]
                if self.stable_prompt_logprobs is False
                else []
            ),
            "It does not report hidden states; only local models do.",
            *self._of_draws(),
            "It accepts a system message."
            if self.system_role
            else "It accepts no system message, so that text opens the first user message.",
            self._of_structure(),
            self._of_thoughts(),
            *(["It reads a word from a picture."] if self.pictures else []),
            *self.remarks,
        ]

    def _of_labels(self) -> str:
        if self.top_logprobs:
            return (
                f"It reports the {self.top_logprobs} most probable first tokens of an answer: a label of one token gets a "
                "log-probability if it is among them, and otherwise an upper bound."
            )
        return "It reports no log-probabilities of answers, so choices are read from its text."

    def _of_draws(self) -> list[str]:
        remarks = [
            "It accepts a temperature." if self.temperature else "It refuses a temperature and uses its own."
        ]
        if not self.seed:
            remarks.append("It accepts no seed, so a sample cannot be repeated.")
        elif self.heeds_seed is None:
            remarks.append("It accepts a seed; whether the seed has an effect was not tested.")
        elif self.heeds_seed:
            remarks.append("A seed has an effect: the same one gave the same text twice.")
        if self.unfiltered:
            remarks.append(
                f"It takes {', '.join(self.unfiltered)}, which switch off its own sampling settings, or ignores them."
            )
        return remarks

    def _of_structure(self) -> str:
        if self.structure == UNTRIED:
            return "Whether answers can be restricted to the labels was not tested: it reasons first and label_only is not set."
        if self.structure == "none":
            return "Answers cannot be restricted to the labels; a parser reads them."
        return f"Answers can be restricted to the labels ({self.structure})."

    def _of_thoughts(self) -> str:
        if not self.thinks:
            return "It answers without reasoning first, or does not count the tokens of its reasoning."
        counted = "counted separately" if self.reasoning_counts else "not counted separately"
        return f"It reasons before it answers, and the tokens of its reasoning are {counted}. Leave room: set thinking_tokens."

    def gaps(self, needs: Collection[Need]) -> list[str]:
        """Return a message for each need of an analysis that this model does not meet."""
        missing = {
            "label_logprobs": (
                bool(self.top_logprobs or self.prompt_logprobs),
                "reports no probabilities of labels, so margins and label_logprobs stay empty and choices are read from its text",
            ),
            "long_labels": (
                self.prompt_logprobs,
                "reports no probabilities of labels longer than one token, so such choices are read from its text",
            ),
            "likelihoods": (
                bool(self.top_logprobs or self.prompt_logprobs),
                "reports no probabilities of answers, so people's answers cannot be scored with it and a run stops",
            ),
            "surprisal": (
                self.prompt_logprobs,
                "reports no surprisal, so the regions table has no rows of it",
            ),
            "states": (False, "does not report hidden states; only local models do"),
            "sampling": (
                self.temperature and self.draws_differ is not False,
                "refuses a temperature: its replicates are drawn at its own"
                if not self.temperature
                else "wrote the same at temperature 1 with two seeds: its replicates may all be the same",
            ),
            "system_role": (self.system_role, "accepts no system message"),
            "reasoning": (self.reasoning_counts, "does not count the tokens of its reasoning"),
            "choices": (True, ""),
            "pictures": (
                self.pictures is True,
                "has not been tested with a picture: query its server again (wrods check --probe)"
                if self.pictures is None
                else "accepts a picture but did not read the word in it",
            ),
        }
        gaps = []
        for need in needs:
            if need not in missing:
                raise unknown_name("need", need, NEEDS)
            is_met, lack = missing[need]
            if not is_met:
                gaps.append(f"{self.model} {lack}.")
        return gaps


MOST_REWORDED = 12

T = TypeVar("T")


class ProbeUnanswered(Exception):
    """The endpoint refuses this request or never answers it."""


class RequestRefused(ProbeUnanswered):
    """The endpoint refuses this request, but may answer others."""


class Questions:
    """Sends tiny requests one after another, each within the limits of the run.

    If it ``reuses_replies``, those that the journal has are taken from there.
    """

    def __init__(
        self,
        transport: Transport,
        form: ApiFormat,
        calls: ModelCalls,
        pace: float,
        *,
        reuses_replies: bool = False,
    ) -> None:
        self.transport, self.form, self.calls, self.pace = transport, form, calls, pace
        self._reuses_replies = reuses_replies
        self._answered: Counter[bytes] = Counter()  # replies by request
        self.cost_usd = 0.0
        self.count = 0
        self.has_answered = False

    async def ask(
        self,
        request: Request,
        form: ApiFormat | None = None,
        *,
        learns: bool = True,
        tries: int = FIRST_TRIES,
    ) -> Reply:
        """Return the reply to a request, or raise ProbeUnanswered."""
        form = form or self.form
        return await self.hold(form.ask(request), form if learns else None, tries)

    async def hold(
        self, talk: Generator[ApiCall, Mapping[str, Any], T], form: ApiFormat | None, tries: int = FIRST_TRIES
    ) -> T:
        """Return the result of a conversation with the server, or raise ProbeUnanswered; adapt to refusals if a form is given."""
        call = next(talk)
        while True:
            payload = await self._send(call.path, call.body, form, tries)
            try:
                call = talk.send(payload)
            except StopIteration as ended:
                outcome: T = ended.value
                return outcome
            except NoAnswer as fault:
                raise ProbeUnanswered(str(fault)) from fault

    async def ask_plainly(self) -> str | None:
        """Return why a tiny question in the run's own form gets no answer; None if it gets one, or money is missing."""
        text = probe_texts()["structure"]["user"]
        options = replace(self.form.options, label_only=False, whole_labels=False, thinking_tokens=0)
        plain = Questions(self.transport, replace(self.form, options=options), self.calls, 0.0)
        plain.has_answered = True
        try:
            await plain.ask(
                Request("health", (Message("user", text),), None, 16, 0.0, 0), learns=False, tries=1
            )
        except RequestRefused:
            return None
        except ProbeUnanswered as fault:
            return str(fault)
        except RunStopped:
            if self.calls.full is None:
                raise
        finally:
            self.cost_usd += plain.cost_usd
        return None

    async def _send(self, path: str, body: Any, form: ApiFormat | None, tries: int) -> Mapping[str, Any]:
        failures = reworded = 0
        while True:
            sent = body()
            verdict = await self._try(path, sent)
            if not isinstance(verdict, Retry):
                return verdict
            is_learned = (
                verdict.kind in ("no", "transient")
                and form is not None
                and reworded < MOST_REWORDED
                and form.dialect.learn(verdict.refusal, sent, form.options)
            )
            if is_learned:
                reworded += 1
                continue
            if verdict.kind == "no":
                raise RequestRefused(verdict.reason)
            failures += 1
            if failures >= tries:
                if verdict.kind in ("unreachable", "timeout") and not self.has_answered:
                    raise unreached(self.transport.base_url, verdict.reason)
                raise ProbeUnanswered(verdict.reason)
            await asyncio.sleep(verdict.wait(failures, "probe") * self.pace)

    async def _try(self, path: str, sent: Mapping[str, Any]) -> Mapping[str, Any] | Retry:
        transport, content = self.transport, encoded(sent)
        # the same request may be sent twice, to compare the replies
        digest = request_digest("probe", *transport.place, path, self._answered[content], body=content)
        if self._reuses_replies and (stored := self.calls.find(digest)) is not None:
            self._answered[content] += 1
            self.has_answered = True
            return read_json(stored.body)
        self.count += 1
        call = await self.calls.begin("probe", (len(content), output_limit(sent)), digest)
        if call is None:
            raise RunStopped(
                f"there is no money left to find out what the model's server can give: {self.calls.full}",
                mend="Raise models: budget in the study or the limit of this command, or write `probe: false` with the model: then "
                "its server is not asked beforehand.",
            )
        outcome = await send(transport, self.calls, call, path, content)
        if outcome.failure is not None:
            return outcome.failure
        if outcome.payload is None:
            return judge_refusal(transport, path, outcome.response, answered=self.has_answered)
        self.cost_usd += outcome.cost_usd
        self._answered[content] += 1
        self.has_answered = True
        return outcome.payload


DRAWN_TOKENS = 12
MOST_COMPARED = 4
MOST_DIFFERENT = 0.1
"""Mean difference in nats between two reports of one log-probability; half precision differs by a tenth of that."""
_TOLERANCE = 1e-6

_LEAVABLE: Mapping[str, Mapping[str, Any]] = {
    "log-probabilities": {"top_logprobs": 0},
    "the fields that switch off its own sampling": {"unfiltered": {}},
    "stop texts": {"stop": False},
    "a seed": {"seed": False},
    "top_p": {"top_p": False},
    "a temperature": {"temperature": False},
    "a system message": {"system": False},
}
"""Parts of a request that can be left out if a server fails without naming the cause."""


def probe_texts() -> dict[str, Any]:
    """Return the texts of the probe's requests."""
    return dict(json.loads((files(__package__) / "probe.json").read_text("utf-8")))


async def probe(questions: Questions) -> Capabilities:
    """Return an endpoint's capabilities, and adapt the dialect of the form to it."""
    form = questions.form
    dialect, options = form.dialect, form.options
    texts = probe_texts()
    remarks: list[str] = []
    plain = replace(form, options=replace(options, label_only=False, whole_labels=False))
    reply = await _first(questions, plain, _choice(texts["choice"]), remarks)
    top = dialect.top_logprobs if reply is not None and reply.path and "logprobs" in reply.path else 0
    if reply is not None and top == 0 and dialect.top_logprobs:
        dialect.top_logprobs = 0
        remarks.append("It takes a request for log-probabilities and sends none.")
    thinks = reply is not None and bool(reply.reasoning or reply.reasoning_tokens)
    if reply is not None and top and (remark := _of_labels(reply)):
        remarks.append(remark)
    # a request without an answer needs no tokens for reasoning
    short = replace(plain, options=replace(plain.options, thinking_tokens=0))
    is_stable = await _find_prompt_logprobs(questions, short, texts["prompt"], remarks)
    if options.whole_labels and not dialect.prompt_logprobs:
        raise no_whole_labels(remarks)
    pictures = await _find_pictures(questions, plain, texts["picture"], remarks) if options.pictures else None
    # each answer with reasoning may cost thousands of tokens: capabilities that the study does not use are not tested
    is_dear = thinks and options.thinking_tokens > 0
    is_held = options.label_only or not is_dear
    if is_held:
        await _find_structure(questions, form, texts["structure"], remarks)
    heeds_seed, draws_differ = (None, None) if is_dear else await _find_draws(questions, plain, texts["draw"])
    if draws_differ is False:
        remarks.append(
            "It wrote the same at temperature 1 with two seeds: it may not draw at all, and replicates may all be the same."
        )
    elif heeds_seed is False:
        remarks.append("It takes a seed and does not heed it: the same one gave two texts.")
    if reply is not None and thinks and reply.status in ("truncated", "empty"):
        remarks.append(
            "Its thoughts took all the room that the probe gave: set thinking_tokens or max_tokens."
        )
    return Capabilities(
        model=form.model,
        base_url=questions.transport.base_url,
        api=options.surface,
        resolved_model=reply.resolved_model if reply is not None else None,
        top_logprobs=top,
        prompt_logprobs=dialect.prompt_logprobs,
        stable_prompt_logprobs=is_stable,
        seed=dialect.seed,
        heeds_seed=heeds_seed,
        draws_differ=draws_differ,
        unfiltered=tuple(dialect.unfiltered),
        temperature=dialect.temperature,
        system_role=dialect.system,
        structure=dialect.structure if is_held else UNTRIED,
        thinks=thinks,
        reasoning_counts=reply is not None and reply.reasoning_tokens is not None,
        cached_counts=reply is not None and reply.cached_tokens is not None,
        pictures=pictures,
        limit_name=dialect.limit_name,
        requests=questions.count,
        answered=questions.has_answered,
        remarks=tuple(remarks),
    )


def _choice(texts: Mapping[str, Any]) -> Request:
    messages = (Message("system", texts["system"]), Message("user", texts["user"]))
    return Request("probe", messages, tuple(texts["labels"]), 16, 0.0, stable_seed("probe"), stop=("\n\n\n",))


async def _first(questions: Questions, form: ApiFormat, request: Request, remarks: list[str]) -> Reply | None:
    """Send the choice as sampling does, to test the seed too, then at the study's own temperature 0."""
    sampled = replace(request, temperature=1.0) if form.dialect.seed else request
    try:
        return await questions.ask(sampled, form)
    except ProbeUnanswered as fault:
        return await _without(questions, form, sampled, str(fault), remarks)


async def _without(
    questions: Questions, form: ApiFormat, request: Request, fault: str, remarks: list[str]
) -> Reply | None:
    """Find the part of a request that a server cannot handle: leave out one part at a time, then all."""
    dialect, options = form.dialect, form.options
    needed = {"a temperature": options.temperature_given, "a system message": bool(options.system_role)}
    ways = {name: given for name, given in _LEAVABLE.items() if not needed.get(name)}
    everything = {field: value for given in ways.values() for field, value in given.items()}
    for name, given in {**ways, ", ".join(ways): everything}.items():
        before = {field: getattr(dialect, field) for field in given}
        if before == given:
            continue
        for field, value in given.items():
            setattr(dialect, field, copy(value))
        try:
            reply = await questions.ask(request, form, tries=1)
        except ProbeUnanswered:
            for field, value in before.items():
                setattr(dialect, field, value)
        else:
            remarks.append(f"It fails if {name} is requested, so {name} is left out: {fault}")
            return reply
    remarks.append(f"It did not answer the probe: {fault}")
    return None


def _of_labels(reply: Reply) -> str | None:
    """Return a remark if the choice was answered with other words first, so that a first token says little about the labels."""
    if reply.label_logprobs is None and reply.label_bounds is None:
        return None
    mass = math.fsum(math.exp(value) for value in (reply.label_logprobs or {}).values())
    if mass >= LEAST_MASS:
        return None
    return (
        f"Asked for one of two letters, its first token was one of them with a probability of {mass:.2g}: it opens answers with other "
        "words. Choices are read from what it writes; their label_logprobs say little, unless label_only: true holds it to labels or "
        "label_scoring: whole scores them."
    )


async def _find_pictures(
    questions: Questions, form: ApiFormat, texts: Mapping[str, Any], remarks: list[str]
) -> bool:
    """Return whether the model reads a word from a picture; False if it accepts the picture but reads another word."""
    message = Message("user", f"{texts['user']}\n\n{MARK}", (Picture.of(str(texts["word"])),))
    try:
        reply = await questions.ask(Request("probe", (message,), None, 16, 0.0, 0), form)
    except ProbeUnanswered as fault:
        raise RunStopped(
            f"{form.model} at {questions.transport.base_url} takes no pictures: {fault}",
            mend="Name a model that looks at pictures, or show this one text (presentation: text).",
        ) from fault
    if str(texts["word"]) in f"{reply.reasoning or ''}{reply.text or ''}".lower():
        return True
    remarks.append(
        f"It accepts a picture but did not read the word in it (it wrote {(reply.text or '')[:40]!r}): its answers to pictures may "
        "say nothing about them."
    )
    return False


async def _find_draws(
    questions: Questions, form: ApiFormat, texts: Mapping[str, Any]
) -> tuple[bool | None, bool | None]:
    """Return whether a seed repeats a text, and whether another seed changes it."""
    if not form.dialect.temperature:
        return None, None
    request = Request("probe", (Message("user", texts["user"]),), None, DRAWN_TOKENS, 1.0, 0)
    seed_a, other = stable_seed("probe", 1), stable_seed("probe", 2)
    sampled_texts = []
    try:
        for seed in (seed_a, seed_a, other):
            reply = await questions.ask(replace(request, seed=seed), form)
            sampled_texts.append(f"{reply.reasoning or ''}{reply.text or ''}")
    except ProbeUnanswered:
        return None, None
    if not any(sampled_texts) or not form.dialect.temperature:
        return None, None
    differs = len(set(sampled_texts)) > 1
    return (sampled_texts[0] == sampled_texts[1]) if differs and form.dialect.seed else None, differs


async def _find_prompt_logprobs(
    questions: Questions, form: ApiFormat, texts: Mapping[str, Any], remarks: list[str]
) -> bool | None:
    """Return whether the prompt's log-probabilities are reported, correct, and repeatable."""
    dialect = form.dialect
    if form.options.surface == "responses" or not dialect.prompt_logprobs:
        dialect.prompt_logprobs = False
        return None
    text = str(texts["user"])
    request = Request("probe", (Message("user", text),), None, 1, 0.0, 0, regions=(Span(0, 4, len(text)),))
    try:
        first = await questions.ask(request, form)
        if not first.regions or first.regions[0].surprisal is None:
            dialect.prompt_logprobs = False
            return None
        second = await questions.ask(request, form)
        differences = await _differences(questions, form, replace(request, regions=()))
    except ProbeUnanswered:
        dialect.prompt_logprobs = False
        return None
    if differences and fmean(differences) > MOST_DIFFERENT:
        dialect.prompt_logprobs = False
        remarks.append(
            "Its log-probabilities of the prompt differ from those of its answers (the same tokens differ by "
            f"{fmean(differences):.2f} nats): they are wrong, and not used."
        )
        return None
    if not differences:
        remarks.append(
            "Whether its log-probabilities of the prompt are those of its answers could not be compared."
        )
    again = second.regions[0].surprisal if second.regions else None
    return again is not None and abs(again - first.regions[0].surprisal) < _TOLERANCE


async def _differences(questions: Questions, form: ApiFormat, request: Request) -> list[float]:
    """Return differences between log-probabilities of answer tokens and of the same tokens at the end of the prompt."""
    if not form.dialect.top_logprobs:
        return []
    sampled = replace(request, labels=("A", "B"), temperature=1.0)
    token = await questions.hold(form.first_token(sampled), form)
    differences: list[float] = []
    alternatives = (
        () if token is None else sorted(token.alternatives, key=lambda alternative: -alternative[1])
    )
    plain = [alternative for alternative in alternatives if re.fullmatch(r" ?[A-Za-z]+", alternative[0])]
    for text, reported in plain[:MOST_COMPARED]:
        if form.options.surface == "chat" and text.startswith(" "):
            continue
        tokens, _ = await questions.hold(form.read_ending(request, text), None)
        last = tokens[-1] if tokens else None
        if last is not None and last.text == text and last.logprob is not None:
            differences.append(abs(last.logprob - reported))
    return differences


def _ways(form: ApiFormat, has_openai_models: bool) -> tuple[Structure, ...]:
    """Return the ways to restrict answers to labels that a server of this kind may support."""
    if has_openai_models:
        return ("json_schema",)
    if form.options.surface == "completions":
        return tuple(structure for structure in STRUCTURES if structure != "json_schema")
    return STRUCTURES


async def _find_structure(
    questions: Questions, form: ApiFormat, texts: Mapping[str, Any], remarks: list[str]
) -> None:
    """Set the first way to restrict answers to labels that the server obeys."""
    dialect = form.dialect
    labels = tuple(texts["labels"])
    label_only_form = replace(form, options=replace(form.options, label_only=True, whole_labels=False))
    request = Request("probe", (Message("user", texts["user"]),), labels, 8, 0.0, 0)
    for structure in _ways(form, questions.transport.has_openai_models):
        dialect.structure = structure
        try:
            reply = await questions.ask(request, label_only_form, learns=False)
        except ProbeUnanswered:
            continue
        if ((reply.generated or reply.text) or "").strip() in labels:
            return
    dialect.structure = "none"
    if form.options.label_only:
        remarks.append("label_only is set, and no way of holding answers to labels is heeded here.")
