"""How bytes get to a server: ``openai`` makes addresses and headers, one aiohttp session carries the requests.

``openai`` knows keys, organisations, Azure's deployments and versions. Its typed responses, however, cost several times
the processor time of the whole rest of a request, so it drafts each kind of request once, and every request of that
kind then goes out with the drafted address and headers.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import ssl
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from experiment.models.api.streaming import lines_of, put_together
from experiment.models.servers import Server

DRAFT_LIFE_S = 300.0
"""Seconds after which headers are drafted anew, since some hold tokens that end."""

_written = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_OWN_HEADERS = frozenset(
    {"host", "content-length", "connection", "accept-encoding", "x-stainless-read-timeout", "x-stainless-retry-count"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Response:
    """What a server sent back: status, headers, body as text; and when its first token came, where it was streamed."""

    status: int
    headers: Mapping[str, str]
    body: str
    first_at: float | None = None


@dataclass(frozen=True, slots=True)
class _Draft:
    """Where requests of one kind go, by which proxy, and with which headers."""

    made: float
    url: Any
    headers: Any
    proxy: str | None


class _Drafted(BaseException):
    """Carries a request that ``openai`` has made out of its client before it is sent."""

    def __init__(self, request: Any) -> None:
        self.request = request


def openai_client(server: Server, key: str | None, *, drafting: bool = False, timeout: float = 600.0) -> Any:
    """Return the ``openai`` client for a server; one for drafting sends nothing."""
    import openai

    async def keep(request: Any) -> None:
        raise _Drafted(request)

    given: dict[str, Any] = {"max_retries": 0, "timeout": timeout}
    if drafting:
        given["http_client"] = openai.DefaultAsyncHttpxClient(event_hooks={"request": [keep]})
    if server.is_azure:
        return openai.AsyncAzureOpenAI(
            api_key=key, azure_endpoint=server.base_url, api_version=server.api_version, **given
        )
    return openai.AsyncOpenAI(api_key=key or "none", base_url=server.base_url, **given)


class Transport:
    """One server, one session; to be used as an async context manager."""

    def __init__(self, server: Server, key: str | None, model: str) -> None:
        self._server = server
        self._key = key
        self._model = model
        self._client = openai_client(server, key, drafting=True)
        self._drafts: dict[str, _Draft] = {}
        self._drafting = asyncio.Lock()
        self._session: Any = None

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self._server.base_url

    @property
    def has_openai_models(self) -> bool:
        """Whether OpenAI's own models answer there."""
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
        """Return where requests of a kind go, and their headers, the key among them."""
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
        if self._key is None:
            headers.popall("authorization", None)
        return _Draft(time.monotonic(), URL(url, encoded=True), headers, _proxy_of(url))

    async def post(self, path: str, payload: Mapping[str, Any], *, seconds: float) -> Response:
        """Send JSON and read the whole response."""
        draft = await self._draft(path)
        content = _written(payload).encode("utf-8", "surrogatepass")
        async with (
            asyncio.timeout(seconds),
            self._session.post(
                draft.url, data=content, headers=draft.headers, proxy=draft.proxy, allow_redirects=False
            ) as response,
        ):
            if response.content_type == "text/event-stream" and response.status == 200:
                whole, first_at = await put_together(lines_of(response.content))
                return Response(response.status, response.headers, json.dumps(whole), first_at)
            body = await response.read()
            return Response(response.status, response.headers, body.decode("utf-8", "replace"))

    async def connect(self) -> None:
        """Open the connection that the next request takes, so that no timed one pays for it; whatever the server says."""
        draft = await self._draft("/models")
        with contextlib.suppress(Exception):
            async with (
                asyncio.timeout(10),
                self._session.get(
                    draft.url, headers=draft.headers, proxy=draft.proxy, allow_redirects=False
                ) as response,
            ):
                await response.read()

    async def post_beside(self, path: str, payload: Mapping[str, Any], *, seconds: float) -> Response:
        """Send JSON to an address beside the API's own (``/tokenize`` of local servers)."""
        draft = await self._draft("/chat/completions")
        root = self._server.base_url.rstrip("/").removesuffix("/v1")
        async with (
            asyncio.timeout(seconds),
            self._session.post(
                root + path, json=payload, headers=draft.headers, proxy=draft.proxy, allow_redirects=False
            ) as response,
        ):
            return Response(
                response.status, response.headers, (await response.read()).decode("utf-8", "replace")
            )

    async def tokens_of(self, model: str, labels: Sequence[str], *, seconds: float) -> dict[str, int]:
        """Return the token of each label from a local server's ``/tokenize``; empty unless each is one token."""
        import aiohttp

        found = {}
        for label in labels:
            asked = {"model": model, "prompt": label, "content": label, "add_special_tokens": False}
            try:
                response = await self.post_beside("/tokenize", asked, seconds=seconds)
                tokens = json.loads(response.body)["tokens"]
            except (
                aiohttp.ClientError,
                OSError,
                TimeoutError,
                ValueError,
                KeyError,
                TypeError,
                RecursionError,
            ):
                return {}
            if response.status != 200 or not isinstance(tokens, list) or len(tokens) != 1:
                return {}
            found[label] = int(tokens[0])
        return found


def _proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for an address; looked up once, not for each request."""
    address = urlsplit(url)
    if urllib.request.proxy_bypass(address.netloc):
        return None
    return urllib.request.getproxies().get(address.scheme)


def _trusted() -> ssl.SSLContext:
    """Return what this system trusts, and the certificates that come with Python's web packages where it has none."""
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        with contextlib.suppress(ImportError):
            context.load_verify_locations(importlib.import_module("certifi").where())
    return context
