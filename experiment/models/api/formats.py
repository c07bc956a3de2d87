"""Bodies of requests and readers of responses for the three forms of the API.

A request is a conversation with the server: a generator that yields calls, receives the response to each, and returns the
reply. Most requests take one call; scoring whole labels takes one call per label. The generator does no networking, retrying or
timing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from experiment.models.api import responses as scoring
from experiment.models.api.responses import (
    Standing,
    divided,
    first_choice,
    first_token_scores,
    joined,
    label_given,
    label_grammar,
    label_in_json,
    label_schema,
    name_in,
    plain_text,
    read_usage,
    standing,
    status_of,
    turns,
    up_to_last,
    up_to_stop,
    without_thought,
)
from experiment.models.api.retrying import NoAnswer, RunStopped, no_whole_labels
from experiment.models.costs import Usage
from experiment.models.engine import Message, ModelSettings, RegionScore, Reply, Request, disjoint_logprobs
from experiment.models.servers import ApiServer
from experiment.parsing.labels import is_whole
from stimuli.errors import UserError, unknown_name

Surface = Literal["chat", "completions", "responses"]
SURFACES: tuple[Surface, ...] = ("chat", "completions", "responses")

Structure = Literal["structured_outputs", "guided_choice", "grammar", "regex", "json_schema", "none"]
STRUCTURES: tuple[Structure, ...] = get_args(Structure)[:-1]
"""Ways to restrict an answer to labels, most direct first: vLLM, older vLLM, llama.cpp, SGLang, and most other servers."""

PATHS: dict[Surface, str] = {
    "chat": "/chat/completions",
    "completions": "/completions",
    "responses": "/responses",
}
THOUGHT_ROOM = 4096
"""Tokens for reasoning, in addition to the answer, if a reasoning effort is given and ``thinking_tokens`` is not."""

STRUCTURE_ROOM = 16
"""Tokens for the JSON around the label in an answer restricted to labels by a JSON schema."""

LEAST_OUTPUT_OF_RESPONSES = 16
"""The smallest output limit that the responses API accepts."""

UNFILTERED: Mapping[str, float] = {
    "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "repeat_penalty": 1.0,
}  # fmt: skip
"""Parameters that switch off a server's default sampling filters (llama.cpp: top 40 tokens; vLLM: the model's generation config).

The last two are the same penalty under the names that vLLM and llama.cpp use. Servers that know none of these ignore them or
refuse them by name. ``top_k`` of -1 means all tokens; a server that refuses it gets 0, which means the same elsewhere.
"""

PENALTIES = ("repetition_penalty", "repeat_penalty")
"""Those that also change the most probable token."""

_OWN_FIELDS = frozenset(
    {
        "model", "messages", "prompt", "input", "n", "best_of", "stream", "stream_options", "max_tokens",
        "max_completion_tokens", "max_output_tokens", "temperature", "seed", "top_p", "top_k", "prompt_logprobs", "echo",
        "stop", "reasoning_effort",
    }
)  # fmt: skip
"""Parameters that wrods sets itself, so that records and budgets are correct."""

_TOP_LOGPROBS = (20, 5, 0)

LONGEST_TEXT = 100_000
LONGEST_TOKEN = 16
"""Characters of a reply that are stored, and further ones for each token of its output limit: what a server writes beyond them
is cut off.
"""


@dataclass(frozen=True)
class RequestOptions:
    """Settings of one model that shape every request, read once from the study."""

    # the form of the API (`api:`; `template: plain` means completions)
    surface: Surface = "chat"
    revision: str | None = None
    reasoning_effort: str | None = None
    thinking_tokens: int = 0  # tokens for reasoning, in addition to the answer's limit
    label_only: bool = False  # restrict the answer to one of the labels (`label_only: true`)
    # score labels of any length by the prompt's log-probabilities (`label_scoring: whole`), not by the first token (`first`)
    whole_labels: bool = False
    leading_space: bool = True  # whether a space precedes a label in plain text
    system_role: bool | None = None  # None: use a system message if the server accepts one
    temperature_given: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)  # added unchanged to every request
    pictures: bool = False  # whether items are shown as pictures

    @property
    def room(self) -> int:
        """The most tokens that any request may write beyond its own ``max_tokens``."""
        form = STRUCTURE_ROOM if self.label_only else 0
        return self.thinking_tokens + form + (LEAST_OUTPUT_OF_RESPONSES if self.surface == "responses" else 0)

    def describe(self) -> dict[str, object]:
        """Return the options that can change an answer, as JSON."""
        described = {**asdict(self), "extra_body": dict(self.extra_body)}
        return (
            described
            if self.pictures
            else {name: value for name, value in described.items() if name != "pictures"}
        )


def parse_request_options(settings: ModelSettings) -> RequestOptions:
    """Return the request options in a model's settings."""
    options = settings.options
    template = options.get("template")
    surface = str(options.get("api") or ("completions" if template == "plain" else "chat"))
    if surface not in SURFACES:
        raise unknown_name("api", surface, SURFACES)
    if template is not None and (template == "plain") != (surface == "completions"):
        meant = "completions" if template == "plain" else "chat or responses"
        raise UserError(
            f"template: {template} means api: {meant}, and api is {surface}",
            mend="Take template or api out: plain text is sent by completions, turns by chat and responses.",
        )
    sees = options.get("presentation") == "image"
    if sees and surface == "completions":
        raise UserError(
            "presentation: image cannot be had with api: completions (template: plain), which takes one text and no pictures",
            mend="Write api: chat or api: responses, or show this model text.",
        )
    scoring = str(options.get("label_scoring", "first"))
    if scoring not in ("first", "whole"):
        raise unknown_name("label_scoring", scoring, ("first", "whole"))
    if scoring == "whole" and surface == "responses":
        raise UserError(
            "label_scoring: whole is impossible with api: responses, which reports no log-probabilities of the prompt",
            mend="Write api: completions or api: chat, or take label_scoring out.",
        )
    extra = _extra_body(options.get("extra_body"), surface)
    if options.get("thinking") is not None and surface == "chat":
        given = extra.get("chat_template_kwargs") or {}
        extra = {**extra, "chat_template_kwargs": {"enable_thinking": bool(options["thinking"]), **given}}
    effort = options.get("reasoning_effort")
    thinks = effort not in (None, "none", "minimal")
    room = options.get("thinking_tokens", THOUGHT_ROOM if thinks else 0)
    system = options.get("system_role")
    return RequestOptions(
        surface=next(name for name in SURFACES if name == surface),
        revision=None if options.get("revision") is None else str(options["revision"]),
        reasoning_effort=None if effort is None else str(effort),
        thinking_tokens=int(str(room)),
        label_only=bool(options.get("label_only", False)),
        whole_labels=scoring == "whole",
        leading_space=bool(options.get("leading_space", surface == "completions")),
        system_role=None if system is None else bool(system),
        temperature_given=options.get("temperature") is not None,
        extra_body=dict(extra),
        pictures=sees,
    )


def _extra_body(given: object, surface: str) -> Mapping[str, Any]:
    extra = given or {}
    if not isinstance(extra, Mapping):
        raise UserError(
            f"extra_body is {extra!r}; it is a mapping", mend="Write names and values under extra_body."
        )
    taken = sorted(_OWN_FIELDS & set(extra))
    if taken:
        raise UserError(
            f"extra_body holds {', '.join(taken)}, which wrods sets by itself and records",
            mend="Use the model's own settings: temperature, top_p, top_k, max_tokens, reasoning_effort, thinking_tokens.",
        )
    if "logprobs" in extra and (surface != "completions" or isinstance(extra["logprobs"], bool)):
        raise UserError(
            "extra_body holds logprobs, which wrods sets by itself and records",
            mend="Take it out: choices are scored without it; extra_body: {top_logprobs: 100} asks for more alternatives.",
        )
    return extra


@dataclass
class Dialect:
    """The parameters that a server accepts."""

    limit_name: str  # `max_completion_tokens` or the older `max_tokens`
    # alternatives requested for each token of a choice; 0 after the server refused
    top_logprobs: int = _TOP_LOGPROBS[0]
    seed: bool = True  # whether these are sent
    stop: bool = True
    temperature: bool = True
    top_p: bool = True
    system: bool = True
    structure: Structure = "json_schema"  # how an answer is restricted to the labels
    prompt_logprobs: bool = True  # whether log-probabilities of the prompt may be requested
    stream: bool = True  # whether a timed answer may be streamed, with its token counts at the end
    stream_options: bool = True
    store: bool = True  # whether the responses API is asked not to store the request
    # sent to switch off the server's default sampling filters (UNFILTERED)
    unfiltered: dict[str, float] = field(default_factory=dict)

    @classmethod
    def usual(cls, server: ApiServer, options: RequestOptions) -> Dialect:
        """Return the parameters that servers of this kind usually accept."""
        is_openais = server.has_openai_models
        return cls(
            limit_name="max_completion_tokens" if options.surface == "chat" and is_openais else "max_tokens",
            system=options.system_role is not False,
            seed=options.surface != "responses" or not is_openais,
            stop=options.surface != "responses",
            unfiltered={}
            if is_openais
            else {name: value for name, value in UNFILTERED.items() if name not in options.extra_body},
        )

    def learn(self, refusal: str, sent: Mapping[str, Any], options: RequestOptions) -> bool:
        """Change the parameter that a refusal names; return whether the request should be sent again."""
        words = refusal.lower()
        if self._learn_logprobs(words, sent, options) or self._learn_limit(words, sent):
            return True
        for name in ("stream_options", "stream", "seed", "stop", "store"):
            if name in sent and _names(words, name):
                setattr(self, name, False)
                return True
        if self._learn_unfiltered(words, sent):
            return True
        if _names(words, "temperature") and "temperature" in sent:
            if options.temperature_given:
                raise _refused("temperature", sent["temperature"], refusal)
            self.temperature = False
            return True
        if _names(words, "system") and "role" in words and self.system:
            if options.system_role:
                raise _refused("system_role", True, refusal)
            self.system = False
            return True
        if self._learn_structure(words, sent):
            return True
        if self.top_p and sent.get("top_p") == 1.0 and _names(words, "top_p"):
            self.top_p = False
            return True
        for name in ("reasoning_effort", "top_p", "top_k"):
            if name in sent and _names(words, name):
                raise _refused(name, sent[name], refusal)
        if "reasoning" in sent and _names(words, "reasoning", "reasoning.effort"):
            raise _refused("reasoning_effort", options.reasoning_effort, refusal)
        return False

    def _learn_limit(self, words: str, sent: Mapping[str, Any]) -> bool:
        for name, other in (("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")):
            is_named = name in sent and name == self.limit_name and _names(words, name)
            is_long = "context" in words or "too large" in words or "too long" in words
            if is_named and not is_long and (other in words or "unsupported" in words or "not" in words):
                self.limit_name = other
                return True
        return False

    def _learn_unfiltered(self, words: str, sent: Mapping[str, Any]) -> bool:
        named = [
            name for name, value in self.unfiltered.items() if sent.get(name) == value and _names(words, name)
        ]
        for name in named:
            if name == "top_k" and self.unfiltered[name] == UNFILTERED[name]:
                self.unfiltered[name] = 0
            else:
                del self.unfiltered[name]
        return bool(named)

    def _learn_logprobs(self, words: str, sent: Mapping[str, Any], options: RequestOptions) -> bool:
        if any(name in sent and _names(words, name) for name in ("prompt_logprobs", "echo")):
            if options.whole_labels:
                raise no_whole_labels([words[:300]])
            self.prompt_logprobs = False
            return True
        n_top = sent.get("top_logprobs")
        if n_top is None and not isinstance(sent.get("logprobs"), bool):
            n_top = sent.get("logprobs")
        named = ("logprobs", "top_logprobs", *(("include",) if "include" in sent else ()))
        if not n_top or not _names(words, *named):
            return False
        if n_top <= self.top_logprobs:
            self.top_logprobs = next(n for n in _TOP_LOGPROBS if n < n_top)
        return True

    def _learn_structure(self, words: str, sent: Mapping[str, Any]) -> bool:
        marks = {
            "json_schema": ("response_format", ("response_format", "json_schema", "schema", "text.format", "text")),
            "structured_outputs": ("structured_outputs", ("structured_outputs",)),
            "guided_choice": ("guided_choice", ("guided_choice", "guided_json", "guided_decoding", "guided decoding")),
            "grammar": ("grammar", ("grammar",)),
            "regex": ("regex", ("regex",)),
        }  # fmt: skip
        if self.structure == "none":
            return False
        name, named = marks[self.structure]
        if (name not in sent and "text" not in sent) or not _names(words, *named):
            return False
        ways: tuple[Structure, ...] = get_args(Structure)
        self.structure = ways[ways.index(self.structure) + 1]
        return True


def _names(words: str, *names: str) -> bool:
    """Return whether a refusal names a parameter as a separate word (``upstream`` does not name ``stream``)."""
    return any(
        re.search(rf"(?<![a-z0-9_]){re.escape(name).replace('_', '[_ ]')}(?![a-z0-9_])", words) is not None
        for name in names
    )


def _refused(name: str, value: object, refusal: str) -> RunStopped:
    return RunStopped(
        f"the server refuses {name} {value}: {refusal[:300]}",
        mend=f"Take {name} out of this model in study.yaml: the server's own is then used and noted.",
    )


SEED_MASK = 0x7FFFFFFF
MARKS: Mapping[Standing, str] = {"agrees": "", "unsettled": "+unsettled", "disagrees": "+disagrees"}
"""Suffix of a choice's path if its first token is inconclusive, or the reply has a different label or none."""


@dataclass(frozen=True)
class ApiCall:
    """One call to send; ``body()`` is rebuilt for each try, because the dialect may have changed."""

    path: str
    body: Callable[[], dict[str, Any]]


Conversation = Generator[ApiCall, Mapping[str, Any], Reply]


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a response, in whichever form of the API it came."""

    answer: str | None
    finish: object
    thought: str | None = None
    refusal: object = None
    tokens: Sequence[scoring.ScoredToken] = ()
    prompt: Sequence[scoring.ScoredToken] = ()

    def within(self, most: int) -> Content:
        """Return the content with no text of more than ``most`` characters; a longer answer is cut off."""
        refusal = str(self.refusal) if self.refusal else None
        if max(len(text or "") for text in (self.answer, self.thought, refusal)) <= most:
            return self
        answer, thought = self.answer and self.answer[:most], self.thought and self.thought[:most]
        return replace(
            self, answer=answer, thought=thought, refusal=refusal and refusal[:most], finish="length"
        )


@dataclass(frozen=True)
class ApiFormat:
    """One form of the API, for one model."""

    model: str
    dialect: Dialect
    options: RequestOptions

    def ask(self, request: Request) -> Conversation:
        """Return the conversation for a request."""
        whole = self.options.whole_labels and request.labels is not None and self.dialect.prompt_logprobs
        if whole and self.options.surface != "responses":
            return self._score_whole(request)
        if self.options.surface == "completions":
            return self._complete(request)
        return self._respond(request) if self.options.surface == "responses" else self._chat(request)

    # chat completions

    def chat_body(self, request: Request) -> dict[str, Any]:
        """Return the body of a chat completion."""
        dialect = self.dialect
        sent: dict[str, Any] = {
            "model": self.model,
            "messages": turns(request.messages, system=dialect.system),
            dialect.limit_name: self._limit(request),
            **self._sampling(request),
        }
        if dialect.stop and request.stop:
            sent["stop"] = list(request.stop)
        if self.options.reasoning_effort is not None:
            sent["reasoning_effort"] = self.options.reasoning_effort
        if request.labels is not None:
            if dialect.top_logprobs:
                sent |= {"logprobs": True, "top_logprobs": dialect.top_logprobs}
            sent |= self._structure(request.labels)
        if request.regions and dialect.prompt_logprobs:
            sent["prompt_logprobs"] = 1
        return sent | dict(self.options.extra_body)

    def _chat(self, request: Request) -> Conversation:
        payload = yield ApiCall(PATHS["chat"], lambda: self.chat_body(request))
        choice = first_choice(payload)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise NoAnswer(f"the response has no message in it: {str(payload)[:80]!r}")
        thought = message.get("reasoning_content") or message.get("reasoning")
        answer, inline = without_thought(joined(message.get("content")))
        content = Content(
            answer,
            choice.get("finish_reason"),
            thought if isinstance(thought, str) and thought else inline,
            message.get("refusal"),
            scoring.chat_tokens(choice),
            scoring.prompt_tokens(payload) if request.regions else (),
        )
        return self._reply(request, payload, content)

    # completions

    def completion_body(self, request: Request) -> dict[str, Any]:
        """Return the body of a (legacy) completion, with the messages as one text."""
        dialect = self.dialect
        sent: dict[str, Any] = {
            "model": self.model,
            "prompt": plain_text(request.messages),
            "max_tokens": self._limit(request),
            **self._sampling(request),
        }
        if dialect.stop and request.stop:
            sent["stop"] = list(request.stop)
        if request.labels is not None:
            if dialect.top_logprobs:
                sent["logprobs"] = dialect.top_logprobs
            sent |= self._structure(request.labels, is_chat=False)
        if request.regions and dialect.prompt_logprobs:
            sent |= {"echo": True, "logprobs": sent.get("logprobs", 1)}
        return sent | dict(self.options.extra_body)

    def _complete(self, request: Request) -> Conversation:
        payload = yield ApiCall(PATHS["completions"], lambda: self.completion_body(request))
        choice = first_choice(payload)
        text = choice.get("text")
        if not isinstance(text, str):
            raise NoAnswer(f"the response has no text in it: {str(payload)[:80]!r}")
        tokens: Sequence[scoring.ScoredToken] = scoring.completion_tokens(choice)
        prompt: Sequence[scoring.ScoredToken] = ()
        prompt_text = plain_text(request.messages)
        if request.regions and text.startswith(prompt_text):
            text = text[len(prompt_text) :]
            prompt, tokens = divided(tokens, prompt_text)
        answer, thought = without_thought(text)
        content = Content(answer, choice.get("finish_reason"), thought, None, tokens, prompt)
        return self._reply(request, payload, content)

    # responses

    def response_body(self, request: Request) -> dict[str, Any]:
        """Return the body of a responses call; the server stores nothing."""
        dialect = self.dialect
        sent: dict[str, Any] = {
            "model": self.model,
            "input": turns(request.messages, system=dialect.system, form="responses"),
            "max_output_tokens": max(0, LEAST_OUTPUT_OF_RESPONSES - request.max_tokens)
            + self._limit(request),
        }
        if dialect.store:
            sent["store"] = False
        sent |= self._sampling(request)
        if self.options.reasoning_effort is not None:
            sent["reasoning"] = {"effort": self.options.reasoning_effort}
        if request.labels is not None:
            if dialect.top_logprobs:
                sent |= {"top_logprobs": dialect.top_logprobs, "include": ["message.output_text.logprobs"]}
            if self.options.label_only and dialect.structure == "json_schema":
                sent["text"] = {"format": {"type": "json_schema", **label_schema(request.labels)}}
            else:
                sent |= self._structure(request.labels, is_chat=False)
        return sent | dict(self.options.extra_body)

    def _respond(self, request: Request) -> Conversation:
        payload = yield ApiCall(PATHS["responses"], lambda: self.response_body(request))
        output = payload.get("output")
        if not isinstance(output, list) or (payload.get("status") == "failed"):
            raise NoAnswer(f"the response holds no output: {str(payload.get('error') or payload)[:300]}")
        texts: list[str] = []
        thoughts: list[str] = []
        refusal = None
        tokens: list[scoring.ScoredToken] = []
        for item in (item_json for item_json in output if isinstance(item_json, dict)):
            parts = [part for part in item.get("content") or [] if isinstance(part, dict)]
            if item.get("type") == "reasoning":
                shown = [*parts, *(part for part in item.get("summary") or [] if isinstance(part, dict))]
                thoughts += [str(part.get("text") or "") for part in shown]
            for part in parts if item.get("type") == "message" else ():
                if part.get("type") == "refusal":
                    refusal = part.get("refusal")
                elif isinstance(part.get("text"), str):
                    texts.append(part["text"])
                    tokens += scoring.content_tokens(part.get("logprobs"))
        details = payload.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        finish = {"max_output_tokens": "length"}.get(str(reason), reason) or "stop"
        thought = "\n".join(filter(None, thoughts)) or None
        content = Content("".join(texts) if texts else None, finish, thought, refusal, tokens)
        return self._reply(request, payload, content)

    # labels of any length

    def _score_whole(self, request: Request) -> Conversation:
        """Score each label as the end of the prompt, next to the model's free answer if it is requested."""
        assert request.labels is not None
        prompt = plain_text(request.messages)
        logprobs: dict[str, float] = {}
        ends: dict[str, tuple[str, ...]] = {}
        usage = Usage()
        payload: Mapping[str, Any] = {}
        regions: tuple[RegionScore, ...] = ()
        for label in request.labels:
            ending = label if self.options.surface == "chat" else self._label_text(prompt, label)
            tokens, payload = yield from self.read_ending(request, ending)
            if not tokens and not self._tells_prompt(payload):
                raise no_whole_labels(())
            score = scoring.score_of_end(tokens, ending)
            usage += read_usage(payload)
            regions = regions or self._regions(request, tokens)
            if score is not None:
                logprobs[label] = score
                ends[label] = scoring.tokens_of_end(tokens, ending)
        logprobs = disjoint_logprobs(logprobs, ends)
        best = (
            max(logprobs, key=lambda label: logprobs[label]) if len(logprobs) == len(request.labels) else None
        )
        generated = None
        if request.also_text or best is None:
            without_regions = replace(request, regions=())
            free_answer = (
                self._complete(without_regions)
                if self.options.surface == "completions"
                else self._chat(without_regions)
            )
            generated = yield from free_answer
            usage += Usage(
                generated.prompt_tokens, generated.cached_tokens, generated.completion_tokens, generated.reasoning_tokens
            )  # fmt: skip
        base = generated or Reply(request.work_key, None, "empty", finish_reason="stop")
        return replace(
            base,
            text=best if best is not None else base.text,
            status="answered" if best is not None else base.status,
            generated=None if generated is None else generated.generated or generated.text,
            label_logprobs=logprobs or None,
            label_bounds=None,
            regions=regions,
            **usage.of_reply,
            requested_model=self.model,
            resolved_model=name_in(payload.get("model")),
            path=f"{self.options.surface}+prompt_logprobs",
        )

    def read_ending(
        self, request: Request, ending: str
    ) -> Generator[ApiCall, Mapping[str, Any], tuple[Sequence[scoring.ScoredToken], Mapping[str, Any]]]:
        """Send the prompt with a text at its end; return the prompt's tokens and the response."""
        payload = yield ApiCall(PATHS[self.options.surface], self._whole_body(request, ending))
        if self.options.surface == "chat":
            return up_to_last(scoring.prompt_tokens(payload), ending), payload
        prompt_and_ending = plain_text(request.messages) + ending
        return divided(scoring.completion_tokens(first_choice(payload)), prompt_and_ending)[0], payload

    def _tells_prompt(self, payload: Mapping[str, Any]) -> bool:
        is_chat = self.options.surface == "chat"
        return bool(
            scoring.prompt_tokens(payload) if is_chat else scoring.completion_tokens(first_choice(payload))
        )

    def first_token(
        self, request: Request
    ) -> Generator[ApiCall, Mapping[str, Any], scoring.ScoredToken | None]:
        """Request a choice; return the first token of the answer with its alternatives."""
        path, _ = self.body(request)
        choice = first_choice((yield ApiCall(path, lambda: self.body(request)[1])))
        is_chat = self.options.surface == "chat"
        tokens = scoring.chat_tokens(choice) if is_chat else scoring.completion_tokens(choice)
        return tokens[0] if tokens else None

    def _whole_body(self, request: Request, ending: str) -> Callable[[], dict[str, Any]]:
        if self.options.surface == "completions":
            return lambda: {
                "model": self.model, "prompt": plain_text(request.messages) + ending, "max_tokens": 1,
                "temperature": 0.0, "echo": True, "logprobs": 1, **self.options.extra_body,
            }  # fmt: skip
        messages = (*request.messages, Message("assistant", ending))
        return lambda: {
            "model": self.model, "messages": turns(messages, system=self.dialect.system), "max_tokens": 1,
            "temperature": 0.0, "prompt_logprobs": 1, "add_generation_prompt": False,
            "continue_final_message": True, **self.options.extra_body,
        }  # fmt: skip

    def _label_text(self, prompt: str, label: str) -> str:
        return (" " if self.options.leading_space and not prompt[-1:].isspace() else "") + label

    # shared by the three forms

    def body(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Return path and body of a request's first call."""
        call = next(self.ask(request))
        return call.path, call.body()

    def _regions(self, request: Request, prompt: Sequence[scoring.ScoredToken]) -> tuple[RegionScore, ...]:
        """Return the surprisal of the regions, if the prompt's tokens are reported."""
        texts = [message.content for message in request.messages]
        spans = [(span.message, span.start, span.end) for span in request.regions]
        return scoring.score_regions(prompt, texts, spans) if prompt and spans else ()

    def _limit(self, request: Request) -> int:
        """Return the output limit of a request: its answer, the JSON around a label, and reasoning."""
        is_formed = self.options.label_only and self.dialect.structure == "json_schema"
        form = STRUCTURE_ROOM if is_formed and request.labels is not None else 0
        return request.max_tokens + form + self.options.thinking_tokens

    def _sampling(self, request: Request) -> dict[str, Any]:
        dialect = self.dialect
        is_drawn = request.temperature > 0 or not dialect.temperature
        sent: dict[str, Any] = {
            name: value for name, value in dialect.unfiltered.items() if is_drawn or name in PENALTIES
        }
        if dialect.temperature:
            sent["temperature"] = request.temperature
        if is_drawn:
            if dialect.seed:
                sent["seed"] = request.seed & SEED_MASK
            if dialect.top_p or request.top_p < 1.0:
                sent["top_p"] = request.top_p
            if request.top_k is not None:
                sent["top_k"] = request.top_k
        return sent

    def _structure(self, labels: Sequence[str], *, is_chat: bool = True) -> dict[str, Any]:
        """Return the parameters that restrict an answer to the labels, if the study sets label_only."""
        structure = self.dialect.structure if self.options.label_only else "none"
        guided = {"guided_choice": list(labels)}
        schema = {"response_format": {"type": "json_schema", "json_schema": label_schema(labels)}}
        parameters: dict[Structure, dict[str, Any]] = {
            "json_schema": schema if is_chat else guided,
            "structured_outputs": {"structured_outputs": {"choice": list(labels)}},
            "guided_choice": guided,
            "grammar": {"grammar": label_grammar(labels)},
            "regex": {"regex": f"({'|'.join(map(re.escape, labels))})"},
        }
        return parameters.get(structure, {})

    def _reply(self, request: Request, payload: Mapping[str, Any], content: Content) -> Reply:
        """Build a reply from the content of any form."""
        content = content.within(LONGEST_TEXT + LONGEST_TOKEN * self._limit(request))
        refusal = str(content.refusal) if content.refusal else None
        read = label_in_json(content.answer, request.labels)
        answer, is_stopped = up_to_stop(read if read is not None else content.answer, request.stop)
        status = status_of(answer, "stop" if is_stopped else content.finish, refusal)
        text: str | None = answer if answer is not None else refusal
        scores, mark = None, ""
        is_told = request.labels is not None and any(token.alternatives for token in content.tokens)
        if request.labels is not None and status != "refused":
            labels, is_cut = request.labels, status == "truncated"
            thinks = content.thought is not None and self.options.surface != "responses"
            scores = first_token_scores(content.tokens, content.answer, labels, part=read, thinks=thinks)
            best = None if scores is None else scores.best
            given_label = label_given(answer, labels, best, is_cut=is_cut)
            if (
                scores is not None
                and given_label is not None
                and (given_label == best or is_whole(given_label, answer or ""))
            ):
                text, status = given_label if given_label == best else text, "answered"
            if scores is not None and len(labels) > 1:
                mark = MARKS[standing(best, given_label)]
        usage = read_usage(payload)
        regions = self._regions(request, content.prompt)
        return Reply(
            work_key=request.work_key,
            text=text,
            status=status,
            label_logprobs=scores.logprobs or None if scores is not None else None,
            label_bounds=scores.bounds or None if scores is not None else None,
            **usage.of_reply,
            finish_reason=None if content.finish is None else str(content.finish),
            requested_model=self.model,
            resolved_model=name_in(payload.get("model")),
            path=self.options.surface
            + ("+logprobs" if is_told else "")
            + mark
            + ("+prompt_logprobs" if regions else ""),
            generated=answer if scores is not None else None,
            reasoning=content.thought,
            regions=regions,
        )
