"""Requests to a server and their repetition: one session sends them; a failed one is retried, given up, or stops the run.

No run hangs or is lost: the number of tries is finite, waits are bounded, and what a retry cannot fix (a wrong key, a missing
model) stops the run at once with a remedy.

``openai`` knows keys, organisations, Azure's deployments and versions. Its typed responses, however, take several times the CPU
time of everything else, so it drafts one request of each kind, and all requests of that kind are sent with the drafted address
and headers.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import importlib
import json
import re
import ssl
import time
import urllib.parse
import urllib.request
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

from experiment.models.servers import ApiServer, find_key, server_of
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

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


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


def judge_refusal(transport: Transport, path: str, response: ServerResponse, *, answered: bool) -> Retry:
    """Return the decision about a refusal; raise RunStopped for a redirection, to whose address the key is never sent."""
    if response.status >= 400:
        return judge_status(
            response.status, response.body, response.headers, secret=transport.key, answered=answered
        )
    status, base_url = response.status, transport.base_url
    address = f"{base_url.rstrip('/')}{path}"
    location = response.headers.get("location", "")
    to = urllib.parse.urljoin(address, location).removesuffix(path) if location else ""
    raise RunStopped(
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


def shape_of(sent: Mapping[str, Any]) -> frozenset[tuple[str, object]]:
    """Return the parameters of a request, without the fields that differ between requests."""
    shape: set[tuple[str, object]] = set()
    for name, value in sent.items():
        is_plain = name not in _OWN and isinstance(value, bool | int | float | str)
        shape.add((name, value if is_plain else None))
    messages = sent.get("messages")
    if isinstance(messages, list):
        shape |= {("role", message.get("role")) for message in messages if isinstance(message, Mapping)}
    return frozenset(shape)


def can_be_streamed(body: dict[str, Any]) -> bool:
    """Return whether a request may be streamed: log-probabilities of the prompt are not in streams."""
    return "prompt_logprobs" not in body and "echo" not in body


async def lines_of(content: Any) -> AsyncIterator[bytes]:
    """Yield the lines, of any length, of a response that arrives in pieces."""
    rest = b""
    async for piece in content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line
    yield rest


async def put_together(lines: AsyncIterable[bytes]) -> tuple[dict[str, Any], float | None]:
    """Return a streamed answer as a whole response, and the time of its first text."""
    whole: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    response: dict[str, Any] | None = None
    first: float | None = None
    is_done = False
    async for line in lines:
        text = line.decode("utf-8", "replace").strip()
        if not text.startswith("data:"):
            continue
        data = text[5:].strip()
        if data == "[DONE]":
            is_done = True
            continue
        try:
            chunk = parsed(data)
        except ValueError as error:
            raise NoAnswer(f"the stream holds no JSON: {data[:80]!r}") from error
        if not isinstance(chunk, dict):
            raise NoAnswer(f"the stream holds no object: {data[:80]!r}")
        if chunk.get("error") or chunk.get("type") == "error":
            raise NoAnswer(f"the stream holds an error: {str(chunk.get('error') or chunk)[:300]}")
        event = str(chunk.get("type", ""))
        if event.startswith("response."):
            if event.endswith(".delta") and chunk.get("delta") and first is None:
                first = time.perf_counter()
            if event in _ENDS and isinstance(chunk.get("response"), dict):
                response = chunk["response"]
            continue
        whole |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name) is not None}
        for part in chunk.get("choices") or ():
            if _add(choice, part) and first is None:
                first = time.perf_counter()
    if response is not None:
        return response, first
    if not is_done and "finish_reason" not in choice:
        raise NoAnswer("the stream broke off before its end")
    return {**whole, "choices": [choice] if choice else []}, first


def _add(choice: dict[str, Any], part: dict[str, Any]) -> bool:
    """Add one chunk to a choice; return whether it contained text."""
    brought = False
    delta = part.get("delta")
    if isinstance(delta, dict):
        message = choice.setdefault("message", {"role": "assistant", "content": None})
        for name in _TEXTS:
            if isinstance(delta.get(name), str):
                message[name] = (message.get(name) or "") + delta[name]
                brought = brought or bool(delta[name])
    if isinstance(part.get("text"), str):
        choice["text"] = choice.get("text", "") + part["text"]
        brought = brought or bool(part["text"])
    logprobs = part.get("logprobs")
    if isinstance(logprobs, dict):
        collected = choice.setdefault("logprobs", {})
        for name, values in logprobs.items():
            if isinstance(values, list):
                collected[name] = [*collected.get(name, ()), *values]
    if part.get("finish_reason") is not None:
        choice["finish_reason"] = part["finish_reason"]
    return brought


DRAFT_LIFE_S = 300.0
"""Seconds after which headers are rebuilt, since some contain tokens that expire."""

_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encoded(body: Mapping[str, Any]) -> bytes:
    """Return a request's JSON as it is sent."""
    return _written(body).encode("utf-8", "surrogatepass")


_OWN_HEADERS = frozenset(
    {"host", "content-length", "connection", "accept-encoding", "x-stainless-read-timeout", "x-stainless-retry-count"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerResponse:
    """A server's response: status, headers, body as text, and the time of its first token if it was streamed."""

    status: int
    headers: Mapping[str, str]
    body: str
    first_at: float | None = None


@dataclass(frozen=True, slots=True)
class _Draft:
    """Address, proxy and headers of one kind of request."""

    made: float
    url: Any
    headers: Any
    proxy: str | None


class _Drafted(BaseException):
    """Carries a request that ``openai`` has built out of its client before it is sent."""

    def __init__(self, request: Any) -> None:
        self.request = request


def _openai_client(server: ApiServer, key: str | None, *, drafts: bool = False) -> Any:
    """Return the ``openai`` client for a server: one that waits, or one that drafts requests and sends nothing."""
    import openai

    async def keep(request: Any) -> None:
        raise _Drafted(request)

    given: dict[str, Any] = {"max_retries": 2}
    if drafts:
        given = {
            "http_client": openai.DefaultAsyncHttpxClient(event_hooks={"request": [keep]}),
            "max_retries": 0,
        }
    if server.is_azure:
        azure = openai.AsyncAzureOpenAI if drafts else openai.AzureOpenAI
        return azure(api_key=key, azure_endpoint=server.base_url, api_version=server.api_version, **given)
    plain = openai.AsyncOpenAI if drafts else openai.OpenAI
    return plain(api_key=key or "none", base_url=server.base_url, **given)


class Transport:
    """A session with one server; used as an async context manager."""

    def __init__(self, server: ApiServer, key: str | None, model: str, timeout: float) -> None:
        self.key, self.timeout = key, timeout  # seconds of one try
        self.place = (server.base_url, server.api_version)
        self._server, self._model = server, model
        self._client = _openai_client(server, key, drafts=True)
        self._drafts: dict[str, _Draft] = {}
        self._drafting = asyncio.Lock()
        self._session: Any = None

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self._server.base_url

    @property
    def has_openai_models(self) -> bool:
        """Whether the server hosts OpenAI's own models."""
        return self._server.has_openai_models

    async def __aenter__(self) -> Transport:
        import aiohttp

        secure = self._server.base_url.startswith("https:")
        connector = aiohttp.TCPConnector(limit=0, ssl=_trusted() if secure else True, keepalive_timeout=30)
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()
        await self._client.close()

    async def _draft(self, path: str) -> _Draft:
        draft = self._drafts.get(path)
        if draft is not None and time.monotonic() - draft.made < DRAFT_LIFE_S:
            return draft
        async with self._drafting:
            draft = self._drafts.get(path)
            if draft is None or time.monotonic() - draft.made >= DRAFT_LIFE_S:
                draft = self._drafts[path] = await self._make_draft(path)
        return draft

    async def _make_draft(self, path: str) -> _Draft:
        from multidict import CIMultiDict
        from yarl import URL

        url, headers = "", CIMultiDict[str]()
        try:
            await self._client.post(path, cast_to=object, body={"model": self._model})
        except _Drafted as drafted:
            url = str(drafted.request.url)
            for name, value in drafted.request.headers.items():
                if name.lower() not in _OWN_HEADERS:
                    headers[name] = value
        if self.key is None:
            headers.popall("authorization", None)
        return _Draft(time.monotonic(), URL(url, encoded=True), headers, _proxy_of(url))

    async def post(self, path: str, content: bytes) -> ServerResponse:
        """Send encoded JSON and return the whole response."""
        draft = await self._draft(path)
        async with (
            asyncio.timeout(self.timeout),
            self._session.post(
                draft.url, data=content, headers=draft.headers, proxy=draft.proxy, allow_redirects=False
            ) as response,
        ):
            if response.content_type == "text/event-stream" and response.status == 200:
                whole, first_at = await put_together(lines_of(response.content))
                return ServerResponse(response.status, response.headers, json.dumps(whole), first_at)
            body = await response.read()
            return ServerResponse(response.status, response.headers, body.decode("utf-8", "replace"))

    async def connect(self) -> None:
        """Open the connection for the next request, so that a timed one does not include it; failures are ignored."""
        draft = await self._draft("/models")
        with contextlib.suppress(Exception):
            async with (
                asyncio.timeout(10),
                self._session.get(
                    draft.url, headers=draft.headers, proxy=draft.proxy, allow_redirects=False
                ) as response,
            ):
                await response.read()


def _proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for an address, looked up once."""
    address = urlsplit(url)
    if urllib.request.proxy_bypass(address.netloc):
        return None
    return urllib.request.getproxies().get(address.scheme)


def _trusted() -> ssl.SSLContext:
    """Return the system's trusted certificates, or those that come with Python's web packages if it has none."""
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        with contextlib.suppress(ImportError):
            context.load_verify_locations(importlib.import_module("certifi").where())
    return context


class Provider:
    """A model's server with the key to it."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.server = server_of(options)
        self.key = find_key(options)
        self.client = _openai_client(self.server, self.key)

    def answer(self, call: Callable[[], Any], failed: str) -> Any:
        """Call the client."""
        import openai

        try:
            return call()
        except openai.APIStatusError as error:
            body = json.dumps(error.body) if isinstance(error.body, dict) else str(error)
            verdict = judge_status(error.status_code, body, error.response.headers, secret=self.key)
            raise RunStopped(
                f"{failed}: {verdict.reason}",
                mend="Run the same command again later; submitted requests stay submitted.",
            ) from error
        except openai.APIConnectionError as error:
            raise unreached(self.server.base_url, said(str(error), self.key)) from error
