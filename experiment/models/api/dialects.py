"""What is known of one server: which parameters it takes, and under which names.

Servers differ. A :class:`Dialect` begins with what is usual, a probe sets it right before money is spent, and a refusal
that names a parameter changes it once, for the rest of the run. What the study itself asks for is never left out: a
refusal of that stops the run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from experiment.models.api.retrying import RunStopped, no_whole_labels
from experiment.models.servers import Server
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError, unknown_name

Surface = Literal["chat", "completions", "responses"]
SURFACES: tuple[Surface, ...] = ("chat", "completions", "responses")

Structure = Literal[
    "structured_outputs", "guided_choice", "grammar", "regex", "json_schema", "logit_bias", "none"
]  # fmt: skip
STRUCTURES: tuple[Structure, ...] = (
    "structured_outputs", "guided_choice", "grammar", "regex", "json_schema", "logit_bias",
)  # fmt: skip
"""Ways of holding an answer to labels, the plainest first: vLLM, older vLLM, llama.cpp, SGLang, most of all, and local servers."""

PATHS: dict[Surface, str] = {
    "chat": "/chat/completions",
    "completions": "/completions",
    "responses": "/responses",
}
THOUGHT_ROOM = 4096
"""Tokens that a thought may take beside the answer, where a reasoning effort is given and ``thinking_tokens`` is not."""

STRUCTURE_ROOM = 16
"""Tokens that an answer held to labels by a JSON schema may take beside the label."""

LEAST_OUTPUT_OF_RESPONSES = 16
"""The fewest tokens that the responses form lets a request allow."""

UNFILTERED: Mapping[str, float] = {
    "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0, "repeat_penalty": 1.0,
}  # fmt: skip
"""What switches off a server's own sampling: without it llama.cpp draws from 40 tokens, and vLLM takes what the model's makers like.

The last two are one penalty under the names that vLLM and llama.cpp give it. Servers that know none of these ignore them or
refuse them by name. ``top_k`` of -1 is all tokens; a server that refuses it gets 0, which means the same elsewhere.
"""

PENALTIES = ("repetition_penalty", "repeat_penalty")
"""Of these, what changes the most probable token too."""

_OWN_FIELDS = frozenset(
    {
        "model", "messages", "prompt", "input", "n", "best_of", "stream", "stream_options", "max_tokens",
        "max_completion_tokens", "max_output_tokens", "temperature", "seed", "top_p", "top_k", "prompt_logprobs", "echo",
        "stop", "reasoning_effort",
    }
)  # fmt: skip
"""What wrods sets by itself, so that records and budgets hold."""

_TOP_LOGPROBS = (20, 5, 0)


@dataclass(frozen=True)
class Wishes:
    """What a study says of one model that shapes every request; read once from its settings."""

    # which of the API's forms is used (`api:`; `template: plain` means completions)
    surface: Surface = "chat"
    revision: str | None = None
    reasoning_effort: str | None = None
    thinking_tokens: int = 0  # room for thoughts, added to what an answer may take
    label_only: bool = False  # let the answer be one of the labels and nothing else (`label_only: true`)
    # score labels of any length by the prompt's log-probabilities (`label_scoring: whole`) and not by the first token (`first`)
    whole_labels: bool = False
    leading_space: bool = True  # whether a space stands before a label in plain text
    system_role: bool | None = None  # none takes it where the server does
    temperature_given: bool = False
    extra_body: Mapping[str, Any] = field(default_factory=dict)  # added to every request as it is
    pictures: bool = False  # items are shown as pictures

    @property
    def room(self) -> int:
        """Most tokens that any request may write beyond its own ``max_tokens``."""
        form = STRUCTURE_ROOM if self.label_only else 0
        return self.thinking_tokens + form + (LEAST_OUTPUT_OF_RESPONSES if self.surface == "responses" else 0)

    def describe(self) -> dict[str, object]:
        """Return what may change an answer, as JSON."""
        said = {**asdict(self), "extra_body": dict(self.extra_body)}
        return said if self.pictures else {name: value for name, value in said.items() if name != "pictures"}


def read_wishes(settings: ModelSettings) -> Wishes:
    """Read a model's settings."""
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
            "label_scoring: whole cannot be had with api: responses, which tells no log-probabilities of the prompt",
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
    return Wishes(
        surface=next(one for one in SURFACES if one == surface),
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
    """Which parameters a server takes."""

    limit_name: str  # `max_completion_tokens` or the older `max_tokens`
    # how many alternatives are asked for at each token of a choice; 0 after the server refused
    top_logprobs: int = _TOP_LOGPROBS[0]
    seed: bool = True  # whether these are sent
    stop: bool = True
    temperature: bool = True
    top_p: bool = True
    system: bool = True
    structure: Structure = "json_schema"  # how an answer is held to the labels
    prompt_logprobs: bool = True  # whether log-probabilities of the prompt may be asked for
    stream: bool = True  # whether a timed answer may be streamed, and its counts asked for at the end
    stream_options: bool = True
    store: bool = True  # whether the responses form is told to keep nothing
    # what is sent to switch off the server's own sampling (UNFILTERED)
    unfiltered: dict[str, float] = field(default_factory=dict)

    @classmethod
    def usual(cls, server: Server, wishes: Wishes) -> Dialect:
        """Return what servers of this kind usually take."""
        is_openais = server.has_openai_models
        return cls(
            limit_name="max_completion_tokens" if wishes.surface == "chat" and is_openais else "max_tokens",
            system=wishes.system_role is not False,
            seed=wishes.surface != "responses" or not is_openais,
            stop=wishes.surface != "responses",
            unfiltered={}
            if is_openais
            else {name: value for name, value in UNFILTERED.items() if name not in wishes.extra_body},
        )

    def learn(self, refusal: str, sent: Mapping[str, Any], wishes: Wishes) -> bool:
        """Change by what a refusal names; say whether the request is worth asking again."""
        words = refusal.lower()
        if self._learn_logprobs(words, sent, wishes) or self._learn_limit(words, sent):
            return True
        for name in ("stream_options", "stream", "seed", "stop", "store"):
            if name in sent and _names(words, name):
                setattr(self, name, False)
                return True
        if self._learn_unfiltered(words, sent):
            return True
        if _names(words, "temperature") and "temperature" in sent:
            if wishes.temperature_given:
                raise _refused("temperature", sent["temperature"], refusal)
            self.temperature = False
            return True
        if _names(words, "system") and "role" in words and self.system:
            if wishes.system_role:
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
            raise _refused("reasoning_effort", wishes.reasoning_effort, refusal)
        return False

    def _learn_limit(self, words: str, sent: Mapping[str, Any]) -> bool:
        for name, other in (("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")):
            is_named = name in sent and _names(words, name)
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

    def _learn_logprobs(self, words: str, sent: Mapping[str, Any], wishes: Wishes) -> bool:
        if any(name in sent and _names(words, name) for name in ("prompt_logprobs", "echo")):
            if wishes.whole_labels:
                raise no_whole_labels([words[:300]])
            self.prompt_logprobs = False
            return True
        asked = sent.get("top_logprobs")
        if asked is None and not isinstance(sent.get("logprobs"), bool):
            asked = sent.get("logprobs")
        named = ("logprobs", "top_logprobs", *(("include",) if "include" in sent else ()))
        if not asked or not _names(words, *named):
            return False
        if asked <= self.top_logprobs:
            self.top_logprobs = next(n for n in _TOP_LOGPROBS if n < asked)
        return True

    def _learn_structure(self, words: str, sent: Mapping[str, Any]) -> bool:
        marks = {
            "json_schema": ("response_format", ("response_format", "json_schema", "schema", "text.format", "text")),
            "structured_outputs": ("structured_outputs", ("structured_outputs",)),
            "guided_choice": ("guided_choice", ("guided_choice", "guided_json", "guided_decoding", "guided decoding")),
            "grammar": ("grammar", ("grammar",)),
            "regex": ("regex", ("regex",)),
            "logit_bias": ("logit_bias", ("logit_bias",)),
        }  # fmt: skip
        if self.structure == "none":
            return False
        name, said = marks[self.structure]
        if (name in sent or "text" in sent) and _names(words, *said):
            self.next_structure()
            return True
        return False

    def next_structure(self) -> None:
        """Try another way of holding answers to labels, or none when all were tried."""
        place = STRUCTURES.index(self.structure)
        self.structure = STRUCTURES[place + 1] if place + 1 < len(STRUCTURES) else "none"

    def describe(self) -> dict[str, object]:
        """Return the dialect as JSON."""
        return asdict(self)


def _names(words: str, *names: str) -> bool:
    """Whether a refusal names a parameter as a word of its own: ``upstream`` is not ``stream``."""
    return any(
        re.search(rf"(?<![a-z0-9_]){re.escape(name).replace('_', '[_ ]')}(?![a-z0-9_])", words) is not None
        for name in names
    )


def _refused(name: str, value: object, refusal: str) -> RunStopped:
    return RunStopped(
        f"the server refuses {name} {value}: {refusal[:300]}",
        mend=f"Take {name} out of this model in study.yaml: the server's own is then used and noted.",
    )
