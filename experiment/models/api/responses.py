"""Small readers of requests and responses that all forms of the API share, and of log-probabilities as servers report them.

Missing log-probabilities stay missing. The alternatives of the first answer token score labels of one token; the
log-probabilities of the prompt's tokens (if a server echoes them) score labels of any length and the surprisal of regions.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

from experiment.models.api.retrying import NoAnswer, parsed
from experiment.models.costs import Usage, sum_of_counts
from experiment.models.engine import Message, RegionScore, ReplyStatus
from experiment.parsing.labels import ends_open, is_whole, parse_label
from experiment.parsing.text import WRAPPING, fold

MOST_ROUNDING = 0.01
LEAST_LOGPROB = -9999.0
"""Values up to this one are missing: OpenAI and vLLM write -9999 for values that they withhold or that are impossible."""

MOST_TOKENS = 2**31 - 1
"""The largest valid token count; stores and servers accept no larger one."""


@dataclass(frozen=True)
class ScoredToken:
    """One token of an answer or a prompt: its text, its log-probability, and the alternatives reported at its position."""

    text: str
    logprob: float | None
    alternatives: tuple[tuple[str, float], ...] = ()


def chat_tokens(choice: Mapping[str, Any]) -> list[ScoredToken]:
    """Return the tokens of a chat choice's ``logprobs.content``."""
    logprobs = choice.get("logprobs")
    return content_tokens(logprobs.get("content") if isinstance(logprobs, dict) else None)


def content_tokens(content: object) -> list[ScoredToken]:
    """Return the tokens of a list of ``{token, logprob, top_logprobs}``, the format of chat and responses."""
    if not isinstance(content, list):
        return []
    tokens = []
    for token in content:
        if not isinstance(token, dict) or not isinstance(token.get("token"), str):
            return []
        top = token.get("top_logprobs")
        tokens.append(ScoredToken(token["token"], _number(token.get("logprob")), _alternatives(top)))
    return tokens


def _alternatives(top: object) -> tuple[tuple[str, float], ...]:
    """Return alternatives from the chat format (list of objects) or the older one (text to log-probability)."""
    if isinstance(top, dict):
        return tuple(
            (str(text), number) for text, value in top.items() if (number := _number(value)) is not None
        )
    if not isinstance(top, list):
        return ()
    return tuple(
        (str(alternative["token"]), number)
        for alternative in top
        if isinstance(alternative, dict)
        and "token" in alternative
        and (number := _number(alternative.get("logprob"))) is not None
    )


def _number(value: object) -> float | None:
    """Return a valid log-probability, or None; one that rounding put slightly above 0 becomes 0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not value <= MOST_ROUNDING:
        return None
    return min(0.0, float(value)) if value > LEAST_LOGPROB else None


def completion_tokens(choice: Mapping[str, Any]) -> list[ScoredToken]:
    """Return the tokens of a completions choice; with ``echo`` those of the prompt come first."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, dict):
        return []
    if isinstance(logprobs.get("content"), list):
        return content_tokens(logprobs["content"])
    texts, values, tops = logprobs.get("tokens"), logprobs.get("token_logprobs"), logprobs.get("top_logprobs")
    if not isinstance(texts, list) or not isinstance(values, list) or len(texts) != len(values):
        return []
    tops = tops if isinstance(tops, list) and len(tops) == len(texts) else [None] * len(texts)
    return [
        ScoredToken(str(text), _number(value), _alternatives(top))
        for text, value, top in zip(texts, values, tops, strict=True)
    ]


def prompt_tokens(payload: Mapping[str, Any]) -> list[ScoredToken]:
    """Return the prompt's tokens from vLLM's ``prompt_logprobs``; the actual token comes first in each entry."""
    choices = payload.get("choices")
    entries = payload.get("prompt_logprobs")
    if entries is None and isinstance(choices, list) and choices and isinstance(choices[0], dict):
        entries = choices[0].get("prompt_logprobs")
    if not isinstance(entries, list):
        return []
    tokens = []
    for entry in entries:
        if not isinstance(entry, dict) or not entry:
            tokens.append(ScoredToken("", None))
            continue
        actual = next(iter(entry.values()))
        if not isinstance(actual, dict):
            return []
        tokens.append(ScoredToken(str(actual.get("decoded_token") or ""), _number(actual.get("logprob"))))
    return tokens


def tokens_of_end(tokens: Sequence[ScoredToken], ending: str) -> tuple[str, ...]:
    """Return the texts of the tokens that make up the end of a prompt."""
    left, place = len(ending), len(tokens)
    while left > 0 and place > 0:
        place -= 1
        left -= len(tokens[place].text)
    return tuple(token.text for token in tokens[place:])


def score_of_end(tokens: Sequence[ScoredToken], ending: str) -> float | None:
    """Return the log-probability of the text at the end of a prompt; None if a token of it has none."""
    left, total = len(ending), 0.0
    for token in reversed(tokens):
        if left <= 0:
            break
        if token.logprob is None:
            return None
        total += token.logprob
        left -= len(token.text)
    return total if left <= 0 and "".join(token.text for token in tokens).endswith(ending) else None


def score_regions(
    tokens: Sequence[ScoredToken], texts: Sequence[str], spans: Sequence[tuple[int, int, int]]
) -> tuple[RegionScore, ...]:
    """Return the summed surprisal of regions, uncorrected; a token belongs to the region of its first non-blank character."""
    full_text = "".join(token.text for token in tokens)
    begins: list[int] = []
    offset = 0
    for text in texts:
        begin = full_text.find(text.strip(), offset)
        if begin < 0:
            return ()
        begins.append(begin - (len(text) - len(text.lstrip())))
        offset = begin + len(text.strip())
    first_characters = _first_characters(tokens)
    scores = []
    for message, start, end in spans:
        low, high = begins[message] + start, begins[message] + end
        inside = [token for token, first in zip(tokens, first_characters, strict=True) if low <= first < high]
        values = [token.logprob for token in inside]
        reported = [value for value in values if value is not None]
        surprisal = -math.fsum(reported) if inside and len(reported) == len(values) else None
        scores.append(RegionScore(surprisal, len(inside)))
    return tuple(scores)


def _first_characters(tokens: Sequence[ScoredToken]) -> list[int]:
    places = []
    offset = 0
    for token in tokens:
        places.append(offset + len(token.text) - len(token.text.lstrip()))
        offset += len(token.text)
    return places


LEAST_MASS = 0.5
"""Least total probability of the labels at the first token for the best to be the choice: below it, other text is likelier."""
MOST_TOLD = 1.05
"""Largest valid sum of reported probabilities, since some servers round to two digits."""
LEAST_UNTOLD = 1e-6
"""Smallest probability that counts as unreported, since reported ones are rounded."""

Standing = Literal["agrees", "unsettled", "disagrees"]

_THOUGHT_ENDS = ("</think>", "</thinking>", "</thought>", "[/THINK]")
_PIECES = {"▁": " ", "Ġ": " ", "Ċ": "\n"}
"""How vocabularies write blanks; some servers do not convert them."""
_HYPHENS = re.compile(r"(?<=\w)[- ](?=\w)")


@dataclass(frozen=True)
class LabelScores:
    """Known log-probabilities of the labels, with bounds of the others."""

    # natural-log probability of each reported label, summed over its forms (` yes`, `Yes`, `"Yes`)
    logprobs: dict[str, float]
    bounds: dict[str, float]  # upper bound of the log-probability of each other label
    best: str | None


def first_token_scores(
    tokens: Sequence[ScoredToken],
    content: str | None,
    labels: Sequence[str],
    *,
    part: str | None = None,
    thinks: bool = False,
) -> LabelScores | None:
    """Return label scores from the alternatives of an answer's first token, summed over the forms that the study's parser equates."""
    keys = _Keys(labels)
    token = _first_of_answer(tokens, content, keys, part=part, thinks=thinks)
    if token is None or not token.alternatives:
        return None
    alternatives = _told(token)
    total = math.fsum(math.exp(logprob) for _, logprob in alternatives)
    if total > MOST_TOLD:
        return None
    keyed = [(keys.key(text), logprob) for text, logprob in alternatives]
    anything = math.fsum(math.exp(logprob) for key, logprob in keyed if not key)
    untold = max(LEAST_UNTOLD, 1.0 - total)
    logprobs: dict[str, float] = {}
    bounds: dict[str, float] = {}
    most: dict[str, float] = {}
    for label in labels:
        own_key = keys.of[label]
        forms = [logprob for key, logprob in keyed if key == own_key]
        begun = anything + math.fsum(
            math.exp(logprob) for key, logprob in keyed if key and _begins(key, own_key)
        )
        if forms and not any(_begins(own_key, other) for other in keys.of.values()):
            logprobs[label] = _summed(forms)
            most[label] = math.exp(logprobs[label]) + begun
        else:
            # the same token may begin a longer label, or no alternatives were reported
            most[label] = math.fsum(map(math.exp, forms)) + begun + untold
            bounds[label] = min(0.0, math.log(most[label]))
    return LabelScores(logprobs, bounds, _best(logprobs, most))


def _best(logprobs: Mapping[str, float], most: Mapping[str, float]) -> str | None:
    if not logprobs or math.fsum(map(math.exp, logprobs.values())) < LEAST_MASS:
        return None
    label = max(logprobs, key=lambda label: logprobs[label])
    least = math.exp(logprobs[label])
    return label if all(least > limit for other, limit in most.items() if other != label) else None


def label_given(reply: str | None, labels: Sequence[str], best: str | None, *, is_cut: bool) -> str | None:
    """Return the label that a reply states, as the study's parser reads it."""
    text = (reply or "").strip()
    if text in labels:
        return text
    parsed = parse_label(text, labels)
    label = parsed.value
    if label is not None:
        return None if is_cut and ends_open(label, text) and not is_whole(label, text) else label
    first, _, rest = text.partition("\n")
    is_alone = best is not None and bool(rest) and is_whole(best, first)
    return best if is_alone and parsed.status == "unparsed" else None


def mark_of(path: str | None) -> str | None:
    """Return the mark in a reply's path about its first token: ``unsettled``, ``disagrees``, or None."""
    return next((mark for mark in (path or "").split("+") if mark in ("unsettled", "disagrees")), None)


def standing(best: str | None, given: str | None) -> Standing:
    """Return how the label that a reply states compares with its first token."""
    if best is None:
        return "unsettled"
    return "agrees" if given == best else "disagrees"


class _Keys:
    """Matches tokens to forms of labels, folded as the parser folds a whole reply if the labels stay distinct."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.is_pieces = not any(sign in label for sign in _PIECES for label in labels)
        for self._norm in (_joined, fold, _as_written):
            self.of = {label: self._norm(_bare(label)) for label in labels}
            if len(set(self.of.values())) == len(set(labels)):
                break
        self._own = frozenset(self.of.values())

    def spelt(self, text: str) -> str:
        """Return a token's text with the vocabulary's blank signs replaced."""
        if self.is_pieces:
            for sign, blank in _PIECES.items():
                text = text.replace(sign, blank)
        return text

    def key(self, text: str) -> str:
        """Return the key by which a token is compared; empty if it is only punctuation, which any text may follow."""
        text = self.spelt(text)
        whole = self._norm(text.strip())
        return whole if whole in self._own else self._norm(text.strip(WRAPPING))


def _joined(text: str) -> str:
    return _HYPHENS.sub("", fold(text))


def _as_written(text: str) -> str:
    return " ".join(text.split())


def _bare(label: str) -> str:
    return label.strip(WRAPPING) or label


def _begins(key: str, other: str) -> bool:
    return key != other and other.startswith(key)


def _summed(values: Sequence[float]) -> float:
    """Return the log of a sum of probabilities given as logs, without underflow."""
    top = max(values)
    return min(0.0, top + math.log(math.fsum(math.exp(value - top) for value in values)))


def _told(token: ScoredToken) -> list[tuple[str, float]]:
    """Return the distinct alternatives, and the token itself if it is not among them."""
    alternatives = list(dict.fromkeys(token.alternatives))
    if token.logprob is not None and all(text != token.text for text, _ in alternatives):
        alternatives.append((token.text, token.logprob))
    return alternatives


def _first_of_answer(
    tokens: Sequence[ScoredToken], content: str | None, keys: _Keys, *, part: str | None, thinks: bool
) -> ScoredToken | None:
    """Return the first token of an answer after blanks, quotes and the braces of structured output."""
    answer = (content or "").strip()
    if not answer:
        return None
    texts = [keys.spelt(token.text) for token in tokens]
    ends = list(accumulate(map(len, texts)))
    full_text = "".join(texts)
    start = _place(full_text, ends, texts, answer)
    if start is not None and part is not None:
        inside = answer.rfind(part)
        if inside < 0:
            return None
        start += inside
    elif start is None and part is not None:
        start = _place(full_text, ends, texts, part)
    if start is None:
        is_beginning = bool(full_text.strip()) and answer.startswith(full_text.strip())
        if not is_beginning and (thinks or any(mark in full_text for mark in _THOUGHT_ENDS)):
            return None
        start = 0
    for place in range(bisect_right(ends, start), len(tokens)):
        if keys.key(tokens[place].text):
            return tokens[place]
    return None


def _place(whole: str, ends: Sequence[int], texts: Sequence[str], wanted: str) -> int | None:
    """Return the last position of a text that starts a token (after punctuation), or else its last position."""
    last = position = whole.rfind(wanted)
    while position >= 0:
        token = bisect_right(ends, position)
        if not texts[token][: position - (ends[token] - len(texts[token]))].strip(WRAPPING):
            return position
        position = whole.rfind(wanted, 0, position + len(wanted) - 1)
    return last if last >= 0 else None


def read_usage(payload: Mapping[str, Any]) -> Usage:
    """Return the token counts of a response body in any known format."""
    reported = payload.get("usage")
    usage: Mapping[str, Any] = reported if isinstance(reported, dict) else {}
    prompt = _count(usage, "prompt_tokens", "input_tokens")
    completion = _count(usage, "completion_tokens", "output_tokens")
    cached = _part(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
    if cached is None:
        cached = _count(usage, "prompt_cache_hit_tokens")
    reasoning = _part(usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens")
    if reasoning is None:
        reasoning = _count(usage, "reasoning_tokens")
    cache_read = _count(usage, "cache_read_input_tokens")
    if cache_read is not None and cached is None:
        prompt = sum_of_counts(
            sum_of_counts(prompt, cache_read), _count(usage, "cache_creation_input_tokens")
        )
        cached = cache_read
    total = _count(usage, "total_tokens")
    if completion is not None and reasoning and prompt is not None:
        is_apart = reasoning > completion or total == prompt + completion + reasoning
        completion += reasoning if is_apart else 0
    if cached is not None and prompt is not None:
        cached = min(cached, prompt)
    return Usage(prompt, cached, completion, reasoning)


def output_limit(body: Mapping[str, Any]) -> int:
    """Return the most tokens that a request lets the server write."""
    limits = (body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens"))
    return int(next(limit for limit in limits if limit is not None))


def _count(usage: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS:
            return value
    return None


def _part(usage: Mapping[str, Any], holders: tuple[str, ...], name: str) -> int | None:
    for holder in holders:
        inner = usage.get(holder)
        if isinstance(inner, dict) and (value := _count(inner, name)) is not None:
            return value
    return None


PictureForm = Literal["chat", "responses"]
DETAIL = "high"
"""Servers that shrink pictures (OpenAI's "low") must not: a letter is only some pixels wide."""

_THOUGHT = ("<think>", "</think>")


def read_json(text: str) -> Mapping[str, Any]:
    """Return the JSON object in a response's body."""
    try:
        payload = parsed(text)
    except ValueError as error:
        raise NoAnswer(f"the response is not JSON: {text[:80]!r}") from error
    if not isinstance(payload, dict):
        raise NoAnswer(f"the response is no object: {text[:80]!r}")
    if payload.get("error") and not (payload.get("choices") or payload.get("output")):
        raise NoAnswer(f"the response holds an error: {str(payload['error'])[:300]}")
    return payload


def first_choice(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the first choice of a response."""
    choices = payload.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise NoAnswer(f"the response has no choice in it: {str(dict(payload))[:80]!r}")
    return choices[0]


def turns(messages: Sequence[Message], *, system: bool, form: PictureForm = "chat") -> list[dict[str, Any]]:
    """Return messages in the server's format; without a system role, its text begins the user's first message."""
    given = list(messages)
    if not system and given and given[0].role == "system":
        first, *rest = given
        if rest and rest[0].role == "user":
            rest[0] = replace(rest[0], content=f"{first.content}\n\n{rest[0].content}")
            given = rest
        else:
            given = [Message("user", first.content), *rest]
    return [{"role": message.role, "content": content_of(message, form)} for message in given]


def content_of(message: Message, form: PictureForm) -> str | list[dict[str, Any]]:
    """Return a message's text, or its texts and pictures in parts, with pictures as data URLs."""
    if not message.pictures:
        return message.content
    is_chat = form == "chat"
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, str):
            parts.append({"type": "text" if is_chat else "input_text", "text": part})
        elif is_chat:
            parts.append({"type": "image_url", "image_url": {"url": part.data_url, "detail": DETAIL}})
        else:
            parts.append({"type": "input_image", "image_url": part.data_url, "detail": DETAIL})
    return parts


def without_bytes(body: Any) -> Any:
    """Return a request's JSON without the bytes of its pictures, for display."""
    if isinstance(body, dict):
        return {name: without_bytes(value) for name, value in body.items()}
    if isinstance(body, list):
        return [without_bytes(value) for value in body]
    if isinstance(body, str) and body.startswith("data:image/") and ";base64," in body:
        return f"{body.partition(',')[0]},… ({len(body)} characters)"
    return body


def plain_text(messages: Sequence[Message]) -> str:
    """Return messages as one text, as the local engine formats them for models without a chat template."""
    return "\n\n".join(message.content for message in messages)


def joined(content: object) -> str | None:
    """Return a message's text; some servers send it in parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else None


def without_thought(text: str | None) -> tuple[str | None, str | None]:
    """Return the answer and the reasoning that precedes it in the same text, if any."""
    opening, closing = _THOUGHT
    if text is None or (opening not in text and closing not in text):
        return text, None
    before, end, after = text.partition(closing)
    thought = before.replace(opening, "", 1).strip()
    return (after.lstrip(), thought) if end else ("", thought)


def status_of(answer: str | None, finish: object, refusal: str | None) -> ReplyStatus:
    """Return how an answer ended."""
    if refusal or finish == "content_filter":
        return "refused"
    if finish == "length":
        return "truncated"
    return "answered" if answer is not None and answer.strip() else "empty"


def label_schema(labels: Sequence[str]) -> dict[str, Any]:
    """Return the JSON schema of an answer that is one of the labels."""
    return {
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": list(labels)}},
            "required": ["answer"],
            "additionalProperties": False,
        },
    }


def label_grammar(labels: Sequence[str]) -> str:
    """Return the grammar (GBNF, llama.cpp) of an answer that is one of the labels."""
    return "root ::= " + " | ".join(json.dumps(label) for label in labels)


def label_in_json(answer: str | None, labels: Sequence[str] | None) -> str | None:
    """Return the label in an answer that follows :func:`label_schema`, or None."""
    if answer is None or labels is None or not answer.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(answer)["answer"]
    except (ValueError, KeyError, TypeError):
        return None
    return value if value in labels else None


def divided(
    tokens: Sequence[ScoredToken], prompt: str
) -> tuple[Sequence[ScoredToken], Sequence[ScoredToken]]:
    """Split echoed tokens into the prompt's (special tokens before it included) and those after it."""
    full_text = "".join(token.text for token in tokens)
    start = full_text.find(prompt)
    offset = 0
    for place, token in enumerate(tokens):
        if start >= 0 and offset >= start + len(prompt):
            return tokens[:place], tokens[place:]
        offset += len(token.text)
    return (tokens, ()) if start >= 0 else ((), tokens)


def up_to_stop(text: str | None, stops: Sequence[str]) -> tuple[str | None, bool]:
    """Return a text up to the first stop text, which some servers include or ignore, and whether there was one."""
    places = [place for stop in stops if text and stop and (place := text.find(stop)) >= 0]
    return (text[: min(places)], True) if text and places else (text, False)


def up_to_last(tokens: Sequence[ScoredToken], label: str) -> Sequence[ScoredToken]:
    """Return the tokens without those that a chat template adds after the last turn."""
    for end in range(len(tokens), max(0, len(tokens) - 8), -1):
        if "".join(token.text for token in tokens[:end]).rstrip().endswith(label):
            return tokens[:end]
    return tokens


def name_in(value: object) -> str | None:
    """Return the model's name as the server reports it."""
    return str(value) if value else None
