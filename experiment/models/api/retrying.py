"""Decision after a failed request: retry it, give it up, or stop the run.

No run hangs or is lost: the number of tries is finite, waits are bounded, and what a retry cannot fix (a wrong key, a missing
model) stops the run at once with a remedy.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stimuli.errors import UserError
from stimuli.seeds import generator

TRIES = 8
"""Tries of one request, not counting those that met a rate limit or found no network."""

ALIKE_TRIES = 5
"""Consecutive tries of one request that may fail in exactly the same way."""

FIRST_TRIES = 4
"""Tries of a server that has never answered in this run."""

LIMITED_TRIES = 100
"""Tries of one request that met a rate limit."""

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
LONGEST_RETRY_AFTER_S = 3600.0
"""Longest wait before a request is repeated, even if the server named a later time."""


_LIMITING = (429, 529)
_BROKEN = re.compile("[\0\ud800-\udfff]")
_MAY_BREAK = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)|[\0\ud800-\udfff]")
_MARK = re.compile(r"(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[\w-]{8,}")

Kind = Literal["rate_limit", "transient", "timeout", "unreachable", "reworded", "no"]


class RunStopped(UserError):
    """No further request can succeed: the run ends here, and its answers so far are stored."""

    def __init__(self, message: str, *, mend: str) -> None:
        super().__init__(message, mend=mend, exit_code=1)


class NoAnswer(Exception):
    """A response has no answer (broken JSON, no choices); the message says why."""


@dataclass(frozen=True)
class Retry:
    """The decision about one failure; use the named constructors."""

    again: bool  # whether to retry
    kind: Kind
    reason: str
    after: float | None = None  # seconds that the server asks to wait
    refusal: str = ""  # the server's own message if it refused the request or failed on it
    filtered: bool = False  # whether the server's content filter refused it, which counts as a kind of answer
    # whether the first such failure needs no wait: the server closed a connection that was kept open
    at_once: bool = False

    @classmethod
    def rate_limit(cls, after: float | None = None, status: int = 429) -> Retry:
        """Retry after the wait that the server asks for: there were too many requests."""
        return cls(True, "rate_limit", f"the server limits the rate ({status})", after)

    @classmethod
    def transient(cls, reason: str, after: float | None = None, refusal: str = "") -> Retry:
        """Retry: the failure may be temporary."""
        return cls(True, "transient", reason, after, refusal=refusal)

    @classmethod
    def cut(cls, reason: str) -> Retry:
        """Retry at once: the server closed a connection that was kept open between requests."""
        return cls(True, "transient", reason, at_once=True)

    @classmethod
    def timeout(cls, seconds: float) -> Retry:
        """Retry: no answer arrived within the time limit of one try."""
        return cls(True, "timeout", f"no answer within {seconds:g} s")

    @classmethod
    def unreachable(cls, reason: str) -> Retry:
        """Retry: the server could not be reached."""
        return cls(True, "unreachable", reason)

    @classmethod
    def reworded(cls, reason: str) -> Retry:
        """Retry at once without the parameter that the server refused."""
        return cls(True, "reworded", reason)

    @classmethod
    def no(cls, reason: str, refusal: str = "", *, filtered: bool = False) -> Retry:
        """Give up: a retry cannot help this request."""
        return cls(False, "no", reason, refusal=refusal, filtered=filtered)

    def wait(self, tries: int, key: str) -> float:
        """Return the seconds to wait before the next try: doubled each time, jittered, or as the server asks."""
        if self.kind == "reworded":
            return 0.0
        draw = generator("retry", key, tries).random()
        if self.after is not None:
            return self.after + 0.5 * draw
        longest: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (min(tries, 20) - 1))
        return longest * (0.5 + 0.5 * draw)


def judge_failure(error: BaseException, *, seconds: float) -> Retry:
    """Return the decision about a try that brought no response."""
    import aiohttp

    if isinstance(error, NoAnswer):
        return Retry.transient(str(error))
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        raise RunStopped(
            f"the server's certificate does not hold: {error}",
            mend="Correct base_url, or let this machine trust the server (variable SSL_CERT_FILE).",
        )
    if isinstance(error, aiohttp.InvalidURL):
        raise RunStopped(
            f"base_url is no web address: {error}", mend="It looks like http://localhost:8000/v1."
        )
    if isinstance(error, aiohttp.ClientConnectorError):
        return Retry.unreachable(f"no connection: {error}")
    if isinstance(error, TimeoutError):
        return Retry.timeout(seconds)
    if isinstance(error, aiohttp.ClientError | OSError):
        return Retry.cut(f"the connection was cut: {type(error).__name__} {error}".strip())
    # a fault that the network does not explain concerns this request only: the others continue
    return Retry.no(f"what came back could not be read: {type(error).__name__} {error}"[:500].strip())


def judge_status(
    status: int, body: str, headers: Mapping[str, str], *, secret: str | None = None, answered: bool = False
) -> Retry:
    """Return the decision about a response that is a refusal."""
    words = said(body, secret)
    message = words[:500]
    if status == 401 or (status == 403 and not answered):
        raise _key_refused(status, message, with_key=secret is not None)
    if status == 402 or (status in _LIMITING and _is_spent(body, message)):
        raise RunStopped(
            f"the account has nothing left to spend ({status}): {message}",
            mend="Top it up, then run the same command again to resume.",
        )
    if status == 404 and not answered:
        raise RunStopped(
            f"the server does not know this model or address (404): {message}",
            mend="Check the model's name after openai: and base_url (it usually ends in /v1).",
        )
    after = retry_after(headers)
    if after is None and status in _LIMITING:
        after = _wait_said(words)
    after = None if after is None else min(after, LONGEST_RETRY_AFTER_S)
    if status in _LIMITING:
        return Retry.rate_limit(after, status)
    if status in (404, 408, 409, 425) or status >= 500:
        return Retry.transient(f"the server failed ({status}): {message}", after, words)
    return Retry.no(
        f"the server refuses the request ({status}): {message}",
        words,
        filtered=refusal_of(body).get("code") == "content_filter",
    )


def _is_spent(body: str, message: str) -> bool:
    error = refusal_of(body)
    if "insufficient_quota" in (error.get("code"), error.get("type")):
        return True
    # Gemini reports a per-minute limit the same way, with its own status and a retry time
    is_for_now = error.get("status") == "RESOURCE_EXHAUSTED" or _wait_said(message) is not None
    return "exceeded your current quota" in message.lower() and not is_for_now


def _wait_said(words: str) -> float | None:
    """Return the seconds to wait that a message states: "Please retry in 38.9s", "try again in 20 ms"."""
    match = re.search(
        r"(?:retry|try again) (?:in|after) (\d{1,6}(?:\.\d{1,6})?) ?(ms|s)", words, re.IGNORECASE
    )
    if match is None:
        return None
    return float(match[1]) / (1000 if match[2].lower() == "ms" else 1)


def _key_refused(status: int, message: str, *, with_key: bool) -> RunStopped:
    if not with_key:
        return RunStopped(
            f"the server wants a key, and none was sent ({status}): {message}",
            mend="Name the variable that holds it: key_env: MYSERVER_API_KEY next to base_url in the study, or "
            "--key-env MYSERVER_API_KEY. OPENAI_API_KEY goes to OpenAI alone unless it is named so. "
            "Then give the same command again.",
        )
    return RunStopped(
        f"the server refuses the key ({status}): {message}",
        mend="Set the right key, then run the same command again to resume.",
    )


def no_whole_labels(remarks: Sequence[str]) -> RunStopped:
    """Return the error for whole-label scoring on a server that does not report log-probabilities of the prompt."""
    return RunStopped(
        "label_scoring: whole is set, and the model's server reports no log-probabilities of the prompt"
        + "".join(f". {remark.removesuffix('.')}" for remark in remarks),
        mend="Take label_scoring out of this model (labels of one token then get a log-probability if the server reports the "
        "most probable first tokens), or serve the model with a program that reports them: vLLM with api: completions or chat, or "
        "hf: on this machine.",
    )


def unreached(base_url: str, reason: str) -> RunStopped:
    """Return the error for a run that cannot reach its server."""
    return RunStopped(
        f"no server answers at {base_url}: {reason}",
        mend="Start it or correct base_url, then run the same command again to resume.",
    )


def sent_elsewhere(status: int, headers: Mapping[str, str], base_url: str, path: str) -> RunStopped:
    """Return the error for a server that redirects to another address, to which the key is never sent."""
    address = f"{base_url.rstrip('/')}{path}"
    location = headers.get("location", "")
    to = urllib.parse.urljoin(address, location).removesuffix(path) if location else ""
    return RunStopped(
        f"the server sends requests elsewhere ({status}): {f'{base_url} → {to}' if to else 'it does not say where'}",
        mend=f"Give {to if to else 'the right address'} as base_url (it usually ends in /v1), if that is the model's server.",
    )


def said(body: str, secret: str | None = None) -> str:
    """Return the server's own message in the body of a refusal, with the key removed."""
    error = refusal_of(body)
    text = str(error.get("message") or _details(error.get("detail")) or body) if error else body
    return whole_characters(text.replace(secret, "[key]") if secret else text)


def without_marks(reason: str) -> str:
    """Return a reason without request-specific ids, as servers add them."""
    return _MARK.sub("…", reason)


def whole_characters(text: str) -> str:
    """Return a text that every store accepts: unpaired surrogates (an emoji cut in two) and NUL become U+FFFD."""
    return _BROKEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list):
        return [_whole(part) for part in value]
    if isinstance(value, dict):
        return {whole_characters(name): _whole(part) for name, part in value.items()}
    return value


def parsed(text: str) -> Any:
    """Return the value of a server's JSON text, with valid characters in all its strings."""
    text = text.removeprefix("\N{BYTE ORDER MARK}")
    try:
        value = json.loads(text)
        if _MAY_BREAK.search(text):
            value = _whole(value)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value


def _details(detail: object) -> str:
    """Return the text of an error's detail, which FastAPI gives as a list that repeats the request."""
    if not isinstance(detail, list):
        return str(detail or "")
    parts = []
    for fault in detail:
        if isinstance(fault, Mapping) and "msg" in fault:
            parts.append(f"{'.'.join(map(str, fault.get('loc') or ()))}: {fault['msg']}".removeprefix(": "))
        else:
            parts.append(str(fault))
    return "; ".join(parts)


def refusal_of(body: str) -> Mapping[str, Any]:
    """Return the error object in the body of a refusal, in whatever place; empty if it is not a JSON object."""
    try:
        payload = parsed(body)
    except ValueError:
        return {}
    if isinstance(payload, list) and payload:
        payload = payload[0]
    inner = payload.get("error", payload) if isinstance(payload, dict) else payload
    if isinstance(inner, str):
        return {"message": inner}
    return inner if isinstance(inner, dict) else {}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that ``Retry-After`` (seconds or date) or ``retry-after-ms`` asks for, or None."""
    milliseconds, given = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if given is not None:
            return max(0.0, float(given))
    except ValueError:
        try:
            return max(0.0, email.utils.parsedate_to_datetime(str(given)).timestamp() - time.time())
        except ValueError:
            return None
    return None


OF_PROMPTS = frozenset(
    {
        *("invalid_prompt", "content_filter", "content_policy_violation", "context_length_exceeded"),
        *("string_above_max_length", "string_too_long"),
    }
)
"""Error codes of refusals because of the content, in any wording."""

_OWN = frozenset({"messages", "prompt", "input", "model", "seed", "max_tokens", "max_completion_tokens"})
"""Fields that differ between requests."""

_QUOTED = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"|`([^`\n]+)`|“([^”\n]+)”|‘([^’\n]+)’|«([^»\n]+)»")
_LEAST = 8
"""Shortest line of a prompt, in letters, that is removed from a refusal that quotes it."""


class Answered:
    """The parameters with which a server has answered: a refusal with the same ones is about the prompt."""

    def __init__(self) -> None:
        self._seen: set[frozenset[tuple[str, object]]] = set()

    def note(self, sent: Mapping[str, Any]) -> None:
        """Record that a request was answered."""
        self._seen.add(_shape(sent))

    def has(self, sent: Mapping[str, Any]) -> bool:
        """Return whether a request with the same parameters was answered."""
        return _shape(sent) in self._seen


def words_about_parameters(body: str, sent: Mapping[str, Any], secret: str | None = None) -> str:
    """Return a refusal's message without quotes of the request; empty if it concerns the prompt."""
    error = refusal_of(body)
    field = str(error.get("param") or "")
    if str(error.get("code") or "") in OF_PROMPTS or field in ("prompt", "input") or ".content" in field:
        return ""
    return f"{field} {without_texts(said(body, secret), _texts(sent))}".strip()


def without_texts(words: str, texts: Iterable[str]) -> str:
    """Return a server's message without lines of the given texts and without quotes from them."""
    lowered = [text.lower() for text in texts]
    for text in sorted(
        {line.strip() for text_lowered in lowered for line in text_lowered.split("\n")}, key=len, reverse=True
    ):
        if len(text) >= _LEAST:
            words = re.sub(re.escape(text), " ", words, flags=re.IGNORECASE)

    def without(match: re.Match[str]) -> str:
        quoted = next(part for part in match.groups() if part is not None).strip().lower()
        return " " if any(quoted in text for text in lowered) else match[0]

    return _QUOTED.sub(without, words)


def _texts(sent: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts in a request."""
    for name in ("prompt", "input", "instructions"):
        if isinstance(sent.get(name), str):
            yield str(sent[name])
    for name in ("messages", "input"):
        for message in sent.get(name) or () if isinstance(sent.get(name), list) else ():
            content = message.get("content") if isinstance(message, Mapping) else None
            for part in content if isinstance(content, list) else [content]:
                text = part.get("text") if isinstance(part, Mapping) else part
                if isinstance(text, str):
                    yield text


def _shape(sent: Mapping[str, Any]) -> frozenset[tuple[str, object]]:
    shape: set[tuple[str, object]] = set()
    for name, value in sent.items():
        is_plain = name not in _OWN and isinstance(value, bool | int | float | str)
        shape.add((name, value if is_plain else None))
    messages = sent.get("messages")
    if isinstance(messages, list):
        shape |= {("role", message.get("role")) for message in messages if isinstance(message, Mapping)}
    return frozenset(shape)
