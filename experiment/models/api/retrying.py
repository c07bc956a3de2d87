"""What to do about a request that failed: ask again after a while, give it up, or stop the run.

Why → so that no run hangs and none is lost: tries are finite, waits are bounded, and what no repetition can mend (a
wrong key, a model that is not there) stops the run at once with what to do about it.
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
"""Tries of one request, those that met a rate limit or found no network left out."""

ALIKE_TRIES = 5
"""Tries of one request that may fail in the very same way, one after the other."""

FIRST_TRIES = 4
"""Tries of a server that has never answered in this run."""

LIMITED_TRIES = 100
"""Tries of one request that met a rate limit."""

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 60.0
LONGEST_RETRY_AFTER_S = 600.0

_LIMITING = (429, 529)
_BROKEN = re.compile("[\0\ud800-\udfff]")
_MAY_BREAK = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)|[\0\ud800-\udfff]")
_MARK = re.compile(r"(?=[\w-]*[0-9])(?=[\w-]*[A-Za-z])[\w-]{8,}")

Kind = Literal["rate_limit", "transient", "timeout", "unreachable", "reworded", "no"]


class RunStopped(UserError):
    """No further request can succeed: the run ends here, and what was answered is stored."""

    def __init__(self, message: str, *, mend: str) -> None:
        super().__init__(message, mend=mend, exit_code=1)


class NoAnswer(Exception):
    """A response came, and it holds no answer (broken JSON, no choices); says what was wrong with it."""


@dataclass(frozen=True)
class Retry:
    """A verdict on one failure; made by its named constructors."""

    again: bool  # whether to ask again
    kind: Kind
    reason: str
    after: float | None = None  # seconds that the server asks to wait
    refusal: str = ""  # the server's own words where it refused the request, or failed with it
    filtered: bool = False  # whether the server's content filter refused it, which is an answer of a kind
    # whether a first such failure calls for no wait: the server had closed a connection that was kept open
    at_once: bool = False

    @classmethod
    def rate_limit(cls, after: float | None = None, status: int = 429) -> Retry:
        """Ask again, as late as the server says: there were too many requests."""
        return cls(True, "rate_limit", f"the server limits the rate ({status})", after)

    @classmethod
    def transient(cls, reason: str, after: float | None = None, refusal: str = "") -> Retry:
        """Ask again: the fault may pass."""
        return cls(True, "transient", reason, after, refusal=refusal)

    @classmethod
    def cut(cls, reason: str) -> Retry:
        """Ask again: the connection was closed, as servers do with those that were kept open between requests."""
        return cls(True, "transient", reason, at_once=True)

    @classmethod
    def timeout(cls, seconds: float) -> Retry:
        """Ask again: no answer came within the time of one try."""
        return cls(True, "timeout", f"no answer within {seconds:g} s")

    @classmethod
    def unreachable(cls, reason: str) -> Retry:
        """Ask again: there was no connection to the server."""
        return cls(True, "unreachable", reason)

    @classmethod
    def reworded(cls, reason: str) -> Retry:
        """Ask again at once, without the parameter that the server refused."""
        return cls(True, "reworded", reason)

    @classmethod
    def no(cls, reason: str, refusal: str = "", *, filtered: bool = False) -> Retry:
        """Give up: asking again cannot help this request."""
        return cls(False, "no", reason, refusal=refusal, filtered=filtered)

    def wait(self, tries: int, key: str) -> float:
        """Return the seconds to wait before the next try: doubled each time, jittered, or as the server says."""
        if self.kind == "reworded":
            return 0.0
        draw = generator("retry", key, tries).random()
        if self.after is not None:
            return self.after + 0.5 * draw
        longest: float = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** (min(tries, 20) - 1))
        return longest * (0.5 + 0.5 * draw)


def judge_failure(error: BaseException, *, seconds: float) -> Retry:
    """Judge a try that brought no response."""
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
    # what no fault of the network explains concerns this one request: the others go on
    return Retry.no(f"what came back could not be read: {type(error).__name__} {error}"[:500].strip())


def judge_status(
    status: int, body: str, headers: Mapping[str, str], *, secret: str | None = None, answered: bool = False
) -> Retry:
    """Judge a response that is a refusal."""
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
    if after is not None and after > LONGEST_RETRY_AFTER_S:
        raise RunStopped(
            f"the server asks to wait {after:.0f} s ({status}): {message}",
            mend="Run the same command again after that time to resume.",
        )
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
    # Gemini says the same of a limit by the minute, with a status of its own and when to ask again
    is_for_now = error.get("status") == "RESOURCE_EXHAUSTED" or _wait_said(message) is not None
    return "exceeded your current quota" in message.lower() and not is_for_now


def _wait_said(words: str) -> float | None:
    """Return the seconds after which a message says to ask again: "Please retry in 38.9s", "try again in 20 ms"."""
    found = re.search(
        r"(?:retry|try again) (?:in|after) (\d{1,6}(?:\.\d{1,6})?) ?(ms|s)", words, re.IGNORECASE
    )
    if found is None:
        return None
    return float(found[1]) / (1000 if found[2].lower() == "ms" else 1)


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
    """Return the stop of a run whose labels are to be scored whole where the server cannot tell that."""
    return RunStopped(
        "label_scoring: whole is set, and the model's server tells no log-probabilities of the prompt"
        + "".join(f". {remark.removesuffix('.')}" for remark in remarks),
        mend="Take label_scoring out of this model (labels of one token then get a log-probability where the server tells the "
        "likeliest first tokens), or serve the model with something that tells them: vLLM with api: completions or chat, or "
        "hf: on this machine.",
    )


def unreached(base_url: str, reason: str) -> RunStopped:
    """Return the stop of a run that finds no server."""
    return RunStopped(
        f"no server answers at {base_url}: {reason}",
        mend="Start it or correct base_url, then run the same command again to resume.",
    )


def sent_elsewhere(status: int, headers: Mapping[str, str], base_url: str, path: str) -> RunStopped:
    """Return the stop of a run whose server answers with another address; a key never follows it there."""
    asked = f"{base_url.rstrip('/')}{path}"
    location = headers.get("location", "")
    to = urllib.parse.urljoin(asked, location).removesuffix(path) if location else ""
    return RunStopped(
        f"the server sends requests elsewhere ({status}): {f'{base_url} → {to}' if to else 'it does not say where'}",
        mend=f"Give {to if to else 'the right address'} as base_url (it usually ends in /v1), if that is the model's server.",
    )


def said(body: str, secret: str | None = None) -> str:
    """Return the server's own words in the body of a refusal, with the key taken out."""
    error = refusal_of(body)
    text = str(error.get("message") or _details(error.get("detail")) or body) if error else body
    return whole_characters(text.replace(secret, "[key]") if secret else text)


def without_marks(reason: str) -> str:
    """Return a reason without what differs from request to request: ids of letters and digits, as servers add them."""
    return _MARK.sub("…", reason)


def whole_characters(text: str) -> str:
    """Return a text that every store takes: halves of characters (an emoji cut in two) and NUL become U+FFFD."""
    return _BROKEN.sub("\N{REPLACEMENT CHARACTER}", text)


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {whole_characters(name): _whole(one) for name, one in value.items()}
    return value


def parsed(text: str) -> Any:
    """Return the value that a JSON text of a server holds, with whole characters in all its texts."""
    text = text.removeprefix("\N{BYTE ORDER MARK}")
    try:
        value = json.loads(text)
        if _MAY_BREAK.search(text):
            value = _whole(value)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    return value


def _details(detail: object) -> str:
    """Return the words of a detail, which FastAPI gives as a list that repeats the request."""
    if not isinstance(detail, list):
        return str(detail or "")
    told = []
    for one in detail:
        if isinstance(one, Mapping) and "msg" in one:
            told.append(f"{'.'.join(map(str, one.get('loc') or ()))}: {one['msg']}".removeprefix(": "))
        else:
            told.append(str(one))
    return "; ".join(told)


def refusal_of(body: str) -> Mapping[str, Any]:
    """Return what the body of a refusal tells of the error, in whatever place; empty where it is no JSON object."""
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
"""Codes of refusals because of the content, whatever their wording."""

_OWN = frozenset({"messages", "prompt", "input", "model", "seed", "max_tokens", "max_completion_tokens"})
"""Fields that differ from request to request."""

_QUOTED = re.compile(r"'([^'\n]+)'|\"([^\"\n]+)\"|`([^`\n]+)`|“([^”\n]+)”|‘([^’\n]+)’|«([^»\n]+)»")
_LEAST = 8
"""Letters from which on a line of a prompt is taken out of a refusal that holds it."""


class Answered:
    """Under which parameters a server has answered: a refusal of the same ones is about the prompt."""

    def __init__(self) -> None:
        self._seen: set[frozenset[tuple[str, object]]] = set()

    def note(self, sent: Mapping[str, Any]) -> None:
        """Know that a request was answered."""
        self._seen.add(_shape(sent))

    def has(self, sent: Mapping[str, Any]) -> bool:
        """Return whether a request with the same parameters was answered."""
        return _shape(sent) in self._seen


def words_about_parameters(body: str, sent: Mapping[str, Any], secret: str | None = None) -> str:
    """Return what a refusal says without what the request said itself; empty where it concerns the prompt."""
    error = refusal_of(body)
    field = str(error.get("param") or "")
    if str(error.get("code") or "") in OF_PROMPTS or field in ("prompt", "input") or ".content" in field:
        return ""
    return f"{field} {without_texts(said(body, secret), _texts(sent))}".strip()


def without_texts(words: str, texts: Iterable[str]) -> str:
    """Return what a server says without the lines of some texts, and without what it quotes of them."""
    own = [text.lower() for text in texts]
    for text in sorted({line.strip() for one in own for line in one.split("\n")}, key=len, reverse=True):
        if len(text) >= _LEAST:
            words = re.sub(re.escape(text), " ", words, flags=re.IGNORECASE)

    def without(found: re.Match[str]) -> str:
        quoted = next(part for part in found.groups() if part is not None).strip().lower()
        return " " if any(quoted in text for text in own) else found[0]

    return _QUOTED.sub(without, words)


def _texts(sent: Mapping[str, Any]) -> Iterator[str]:
    """Iterate over what a request says."""
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
