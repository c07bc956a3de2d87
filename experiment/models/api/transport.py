"""Transport to a server: ``openai`` makes addresses and headers, and one aiohttp session sends the requests.

``openai`` knows keys, organisations, Azure's deployments and versions. Its typed responses, however, take several times the CPU
time of everything else, so it drafts one request of each kind, and all requests of that kind are sent with the drafted address
and headers.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import ssl
import time
import urllib.request
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from experiment.models.api.retrying import NoAnswer, RunStopped, judge_status, parsed, said, unreached
from experiment.models.servers import ApiServer, find_key, server_of

_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed"})


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

    async def address(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the address and headers of a kind of request, key included."""
        draft = await self._draft(path)
        return str(draft.url), dict(draft.headers)

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
        self.key = find_key(options, is_openai=self.server.is_openai, is_azure=self.server.is_azure)
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
