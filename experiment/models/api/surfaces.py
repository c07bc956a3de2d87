"""What goes over the wire for one request in each of the API's three forms, and how what comes back is read.

A request is a conversation with the server: a generator that yields calls, is sent the response of each, and returns
the reply. Most take one call; labels scored whole take one a label. The generator knows nothing of networks, retries or
time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiment.models.api import labels as scoring
from experiment.models.api.counts import Usage, read_usage
from experiment.models.api.dialects import (
    LEAST_OUTPUT_OF_RESPONSES,
    PATHS,
    PENALTIES,
    STRUCTURE_ROOM,
    Dialect,
    Wishes,
)
from experiment.models.api.first_token import Standing, first_token_scores, label_given, standing
from experiment.models.api.reading import (
    divided,
    first_choice,
    joined,
    label_grammar,
    label_in_json,
    label_schema,
    name_in,
    plain_text,
    status_of,
    turns,
    up_to_last,
    up_to_stop,
    without_thought,
)
from experiment.models.api.retrying import NoAnswer, no_whole_labels
from experiment.models.engine import Message, RegionScore, Reply, Request
from experiment.models.label_ends import disjoint_logprobs
from experiment.parsing.labels import is_whole

SEED_MASK = 0x7FFFFFFF
MARKS: Mapping[Standing, str] = {"agrees": "", "unsettled": "+unsettled", "disagrees": "+disagrees"}
"""What the path of a choice says where its first token does not settle it, or where the reply gives another label or none."""


@dataclass(frozen=True)
class Call:
    """One thing to send: ``body()`` is made anew at each try, since the dialect may have changed meanwhile."""

    path: str
    body: Callable[[], dict[str, Any]]


Conversation = Generator[Call, Mapping[str, Any], Reply]


@dataclass(frozen=True)
class Speaker:
    """Speaks one form of the API for one model."""

    model: str
    dialect: Dialect
    wishes: Wishes
    label_tokens: dict[str, int]  # the token of each label that is known so far, for `logit_bias`

    def ask(self, request: Request) -> Conversation:
        """Return the conversation about a request."""
        whole = self.wishes.whole_labels and request.labels is not None and self.dialect.prompt_logprobs
        if whole and self.wishes.surface != "responses":
            return self._score_whole(request)
        if self.wishes.surface == "completions":
            return self._complete(request)
        return self._respond(request) if self.wishes.surface == "responses" else self._chat(request)

    # chat completions

    def chat_body(self, request: Request) -> dict[str, Any]:
        """Return a request as chat completions take it."""
        dialect = self.dialect
        sent: dict[str, Any] = {
            "model": self.model,
            "messages": turns(request.messages, system=dialect.system),
            dialect.limit_name: self._limit(request),
            **self._sampling(request),
        }
        if dialect.stop and request.stop:
            sent["stop"] = list(request.stop)
        if self.wishes.reasoning_effort is not None:
            sent["reasoning_effort"] = self.wishes.reasoning_effort
        if request.labels is not None:
            if dialect.top_logprobs:
                sent |= {"logprobs": True, "top_logprobs": dialect.top_logprobs}
            sent |= self._structure(request.labels)
        if request.regions and dialect.prompt_logprobs:
            sent["prompt_logprobs"] = 1
        return sent | dict(self.wishes.extra_body)

    def _chat(self, request: Request) -> Conversation:
        payload = yield Call(PATHS["chat"], lambda: self.chat_body(request))
        choice = first_choice(payload)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise NoAnswer(f"the response has no message in it: {str(payload)[:80]!r}")
        content = joined(message.get("content"))
        thought = message.get("reasoning_content") or message.get("reasoning")
        answer, inline = without_thought(content)
        return self._reply(
            request,
            payload,
            answer=answer,
            refusal=message.get("refusal"),
            finish=choice.get("finish_reason"),
            thought=thought if isinstance(thought, str) and thought else inline,
            tokens=scoring.chat_tokens(choice),
            prompt=scoring.prompt_tokens(payload) if request.regions else (),
        )

    # completions

    def completion_body(self, request: Request) -> dict[str, Any]:
        """Return a request as (legacy) completions take it: one text."""
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
        return sent | dict(self.wishes.extra_body)

    def _complete(self, request: Request) -> Conversation:
        payload = yield Call(PATHS["completions"], lambda: self.completion_body(request))
        choice = first_choice(payload)
        text = choice.get("text")
        if not isinstance(text, str):
            raise NoAnswer(f"the response has no text in it: {str(payload)[:80]!r}")
        tokens: Sequence[scoring.Token] = scoring.completion_tokens(choice)
        prompt: Sequence[scoring.Token] = ()
        given = plain_text(request.messages)
        if request.regions and text.startswith(given):
            text = text[len(given) :]
            prompt, tokens = divided(tokens, given)
        answer, thought = without_thought(text)
        return self._reply(
            request,
            payload,
            answer=answer,
            refusal=None,
            finish=choice.get("finish_reason"),
            thought=thought,
            tokens=tokens,
            prompt=prompt,
        )

    # responses

    def response_body(self, request: Request) -> dict[str, Any]:
        """Return a request as the responses API takes it; nothing is kept by the server."""
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
        if self.wishes.reasoning_effort is not None:
            sent["reasoning"] = {"effort": self.wishes.reasoning_effort}
        if request.labels is not None:
            if dialect.top_logprobs:
                sent |= {
                    "top_logprobs": dialect.top_logprobs,
                    "include": ["message.output_text.logprobs"],
                }
            if self.wishes.label_only and dialect.structure == "json_schema":
                sent["text"] = {"format": {"type": "json_schema", **label_schema(request.labels)}}
            else:
                sent |= self._structure(request.labels, is_chat=False)
        return sent | dict(self.wishes.extra_body)

    def _respond(self, request: Request) -> Conversation:
        payload = yield Call(PATHS["responses"], lambda: self.response_body(request))
        output = payload.get("output")
        if not isinstance(output, list) or (payload.get("status") == "failed"):
            raise NoAnswer(f"the response holds no output: {str(payload.get('error') or payload)[:300]}")
        texts: list[str] = []
        thoughts: list[str] = []
        refusal = None
        tokens: list[scoring.Token] = []
        for item in (one for one in output if isinstance(one, dict)):
            parts = [part for part in item.get("content") or [] if isinstance(part, dict)]
            if item.get("type") == "reasoning":
                shown = [*parts, *(one for one in item.get("summary") or [] if isinstance(one, dict))]
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
        return self._reply(
            request,
            payload,
            answer="".join(texts) if texts else None,
            refusal=refusal,
            finish=finish,
            thought="\n".join(one for one in thoughts if one) or None,
            tokens=tokens,
            prompt=(),
        )

    # labels of any length

    def _score_whole(self, request: Request) -> Conversation:
        """Score each label as the end of the prompt; the model's own answer beside it when it is asked."""
        assert request.labels is not None
        known = plain_text(request.messages)
        logprobs: dict[str, float] = {}
        ends: dict[str, tuple[str, ...]] = {}
        usage = Usage()
        payload: Mapping[str, Any] = {}
        regions: tuple[RegionScore, ...] = ()
        for label in request.labels:
            ending = label if self.wishes.surface == "chat" else self._label_text(known, label)
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
        best = max(logprobs, key=lambda one: logprobs[one]) if len(logprobs) == len(request.labels) else None
        generated = None
        if request.also_text or best is None:
            own = replace(request, regions=())
            asked = self._complete(own) if self.wishes.surface == "completions" else self._chat(own)
            generated = yield from asked
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
            prompt_tokens=usage.prompt, cached_tokens=usage.cached,
            completion_tokens=usage.completion, reasoning_tokens=usage.reasoning,
            requested_model=self.model,
            resolved_model=name_in(payload.get("model")),
            path=f"{self.wishes.surface}+prompt_logprobs",
        )  # fmt: skip

    def read_ending(
        self, request: Request, ending: str
    ) -> Generator[Call, Mapping[str, Any], tuple[Sequence[scoring.Token], Mapping[str, Any]]]:
        """Have the prompt read with a text at its end; return its tokens and the response."""
        payload = yield Call(PATHS[self.wishes.surface], self._whole_body(request, ending))
        if self.wishes.surface == "chat":
            return up_to_last(scoring.prompt_tokens(payload), ending), payload
        whole = plain_text(request.messages) + ending
        return divided(scoring.completion_tokens(first_choice(payload)), whole)[0], payload

    def _tells_prompt(self, payload: Mapping[str, Any]) -> bool:
        is_chat = self.wishes.surface == "chat"
        return bool(
            scoring.prompt_tokens(payload) if is_chat else scoring.completion_tokens(first_choice(payload))
        )

    def first_token(self, request: Request) -> Generator[Call, Mapping[str, Any], scoring.Token | None]:
        """Ask for a choice and return the first token of the answer with its alternatives."""
        path, _ = self.body(request)
        choice = first_choice((yield Call(path, lambda: self.body(request)[1])))
        is_chat = self.wishes.surface == "chat"
        tokens = scoring.chat_tokens(choice) if is_chat else scoring.completion_tokens(choice)
        return tokens[0] if tokens else None

    def _whole_body(self, request: Request, ending: str) -> Callable[[], dict[str, Any]]:
        if self.wishes.surface == "completions":
            return lambda: {
                "model": self.model, "prompt": plain_text(request.messages) + ending, "max_tokens": 1,
                "temperature": 0.0, "echo": True, "logprobs": 1, **self.wishes.extra_body,
            }  # fmt: skip
        given = (*request.messages, Message("assistant", ending))
        return lambda: {
            "model": self.model, "messages": turns(given, system=self.dialect.system), "max_tokens": 1,
            "temperature": 0.0, "prompt_logprobs": 1, "add_generation_prompt": False,
            "continue_final_message": True, **self.wishes.extra_body,
        }  # fmt: skip

    def _label_text(self, prompt: str, label: str) -> str:
        return (" " if self.wishes.leading_space and not prompt[-1:].isspace() else "") + label

    # what the three have in common

    def body(self, request: Request) -> tuple[str, dict[str, Any]]:
        """Return path and body of a request's first call."""
        call = next(self.ask(request))
        return call.path, call.body()

    def _regions(self, request: Request, prompt: Sequence[scoring.Token]) -> tuple[RegionScore, ...]:
        """Return what reading the regions cost, where the prompt's tokens are told."""
        texts = [message.content for message in request.messages]
        spans = [(span.message, span.start, span.end) for span in request.regions]
        return scoring.score_regions(prompt, texts, spans) if prompt and spans else ()

    def _limit(self, request: Request) -> int:
        """Return how many tokens a request may write: its answer, the form of one held to labels, and a thought."""
        is_formed = self.wishes.label_only and self.dialect.structure == "json_schema"
        form = STRUCTURE_ROOM if is_formed and request.labels is not None else 0
        return request.max_tokens + form + self.wishes.thinking_tokens

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
        """Return the parameters that hold an answer to the labels, where the study wants that."""
        if not self.wishes.label_only:
            return {}
        structure = self.dialect.structure
        if structure == "json_schema" and is_chat:
            return {"response_format": {"type": "json_schema", "json_schema": label_schema(labels)}}
        if structure == "structured_outputs":
            return {"structured_outputs": {"choice": list(labels)}}
        if structure == "guided_choice" or (structure == "json_schema" and not is_chat):
            return {"guided_choice": list(labels)}
        if structure == "grammar":
            return {"grammar": label_grammar(labels)}
        if structure == "regex":
            return {"regex": f"({'|'.join(map(re.escape, labels))})"}
        if structure == "logit_bias" and all(label in self.label_tokens for label in labels):
            return {"logit_bias": {str(self.label_tokens[label]): 100 for label in labels}}
        return {}

    def _reply(
        self,
        request: Request,
        payload: Mapping[str, Any],
        *,
        answer: str | None,
        refusal: object,
        finish: object,
        thought: str | None,
        tokens: Sequence[scoring.Token],
        prompt: Sequence[scoring.Token],
    ) -> Reply:
        """Put together what all forms tell."""
        said = str(refusal) if refusal else None
        read = label_in_json(answer, request.labels)
        content = answer
        answer, is_stopped = up_to_stop(read if read is not None else answer, request.stop)
        status = status_of(answer, "stop" if is_stopped else finish, said, thought)
        text: str | None = answer if answer is not None else said
        scores, mark = None, ""
        is_told = request.labels is not None and any(token.alternatives for token in tokens)
        if request.labels is not None and status != "refused":
            labels, is_cut = request.labels, status == "truncated"
            thinks = thought is not None and self.wishes.surface != "responses"
            scores = first_token_scores(tokens, content, labels, part=read, thinks=thinks)
            best = None if scores is None else scores.best
            given = label_given(answer, labels, best, is_cut=is_cut)
            if scores is not None and given is not None and (given == best or is_whole(given, answer or "")):
                text, status = given if given == best else text, "answered"
            if scores is not None and len(labels) > 1:
                mark = MARKS[standing(best, given)]
        usage = read_usage(payload)
        regions = self._regions(request, prompt)
        return Reply(
            work_key=request.work_key,
            text=text,
            status=status,
            label_logprobs=scores.logprobs or None if scores is not None else None,
            label_bounds=scores.bounds or None if scores is not None else None,
            prompt_tokens=usage.prompt,
            cached_tokens=usage.cached,
            completion_tokens=usage.completion,
            reasoning_tokens=usage.reasoning,
            finish_reason=str(finish) if finish is not None else None,
            requested_model=self.model,
            resolved_model=name_in(payload.get("model")),
            path=self.wishes.surface
            + ("+logprobs" if is_told else "")
            + mark
            + ("+prompt_logprobs" if regions else ""),
            generated=answer if scores is not None else None,
            reasoning=thought,
            regions=regions,
        )
