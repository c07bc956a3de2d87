"""An OpenAI-compatible server that misbehaves on demand, on a loopback socket, for tests of whatever talks to one.

with ScriptedOpenAI(answer=lambda body: "A") as server:
    server.script.extend(["500", "cut", ("429", "0")])     # the next requests fail this way, in order
    server.always["dgo"] = "malformed"                     # requests whose text holds "dgo" fail each time
    server.rates, server.seed = {"429": 0.2}, 1            # each request may fail, the same way for the same seed
    … base_url=server.url …
server.requests                                            # the body of every request but probes, in order of arrival

It speaks HTTP/1.1 on one event loop, so that a thousand requests may wait in it at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from importlib.resources import files
from types import TracebackType
from typing import Any

from aiohttp import web

from tests import scripted_answers as answers
from tests.scripted_batches import Batches

Behaviour = str | tuple[str, str]
BEHAVIOURS = (
    "ok", "429", "500", "503", "401", "403", "404", "400", "quota", "cut", "drop", "malformed", "html", "no_choices", "error_200",
    "empty", "null", "length", "refusal", "filter", "stall",
)  # fmt: skip

_PROBE = json.loads((files("experiment.models.api") / "probe.json").read_text("utf-8"))
_PROBES = {part["user"] for part in _PROBE.values() if isinstance(part, dict)}
_DRAW = str(_PROBE["draw"]["user"])
_PICTURE = _PROBE["picture"]


class ScriptedOpenAI:
    """The server; a context manager.

    Attributes
    ----------
    script : deque
        What happens to the next requests, one each; when it is empty all is well.
    always : dict
        Text → what happens to every request that holds it.
    rates : dict
        Behaviour → share of requests that meet it, drawn by ``seed`` and the number of the request.
    refuses : set of str
        Parameters that are answered with a 400 naming them (``system`` for the role, ``completions`` for that whole form,
        ``pictures`` for turns with pictures).
    sees : bool
        Whether it reads the word in the probe's picture.
    breaks_on : set of str
        Parameters at which it fails (500) without a word about them.
    logprobs : callable or None
        Body → log-probability by token for the first token, sent when the request asks for logprobs.
    prompt : callable or None
        Token → log-probability of a prompt's token, sent where asked.
    agrees : bool
        Whether the probe is told the same of a token in a prompt and in an answer.
    forgets : int
        So many texts get no vector.
    heeds : set of str
        Ways of holding an answer to labels that are heeded, as the dialect names them.
    elsewhere : str or None
        Address to which it sends every request, probes too, instead of answering.
    down : int
        So many of the next requests, probes too, find a server that is down (503).
    delay, probe_delay : float
        Seconds before each answer, and before each answer to a probe.
    billed : Counter
        Prompt and completion tokens of all that it worked on, answered or not, probes too.
    draws : str
        What the probe's draws depend on: ``seed`` (heeded), ``chance`` (a seed is not heeded) or ``nothing``.
    """

    def __init__(
        self, answer: Callable[[dict[str, Any]], str] = lambda body: "A", *, port: int = 0, delay: float = 0.0
    ) -> None:
        self.answer = answer
        self.script: deque[Behaviour] = deque()
        self.always: dict[str, Behaviour] = {}
        self.rates: dict[Behaviour, float] = {}
        self.seed = 0
        self.refuses: set[str] = set()
        self.breaks_on: set[str] = set()
        self.logprobs: answers.TokenLogprobs | None = None
        self.prompt: Callable[[str], float] | None = None
        self.heeds: set[str] = set()
        self.usage: dict[str, Any] = {}
        self.message: dict[str, Any] = {}
        self.delay, self.probe_delay = delay, 0.0
        self.down = 0
        self.elsewhere: str | None = None
        self.draws = "seed"
        self.sees = True
        self.agrees = True
        self.forgets = 0
        self.keeps_requests = True
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.probes: list[dict[str, Any]] = []
        self.counts: Counter[str] = Counter()
        self.billed: Counter[str] = Counter()
        self.at_once = 0
        self.most_at_once = 0
        self.model = "scripted-2026-01-01"
        self.batches = Batches(self)
        self._port = port
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._released: asyncio.Event | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def texts(self) -> list[str]:
        """What each request's last message said."""
        return [answers.last_text(body) for body in self.requests]

    def __enter__(self) -> ScriptedOpenAI:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None and self._released is not None
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._released.set)
        self._thread.join(10)

    def _serve(self) -> None:
        asyncio.run(self._run())

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._released = asyncio.Event()
        app = web.Application(client_max_size=2**30)
        for path in ("/chat/completions", "/completions", "/responses"):
            app.router.add_post("/v1" + path, self._take)
        app.router.add_post("/v1/embeddings", self._embed)
        app.router.add_post("/openai/deployments/{name}/chat/completions", self._take)
        self.batches.add_routes(app)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.05)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._port, backlog=2048)
        await site.start()
        self._port = site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
        self._ready.set()
        await self._released.wait()
        await runner.cleanup()

    def next_behaviour(self, body: dict[str, Any]) -> Behaviour:
        with self._lock:
            text = answers.last_text(body)
            for part, behaviour in self.always.items():
                if part in text:
                    return behaviour
            if self.script:
                return self.script.popleft()
            self.counts["arrived"] += 1
            draw = random.Random(f"{self.seed} {self.counts['arrived']}").random()
            for behaviour, share in self.rates.items():
                if draw < share:
                    return behaviour
                draw -= share
            return "ok"

    def _note(self, request: web.Request, body: dict[str, Any]) -> None:
        with self._lock:
            if self.keeps_requests:
                self.requests.append(body)
                self.paths.append(request.path)
                self.keys.append(request.headers.get("Authorization", ""))
                self.headers.append({name.lower(): value for name, value in request.headers.items()})
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)

    async def _take(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.down:
            self.down -= 1
            return _error(503, "The server is overloaded")
        is_probe = any(text in str(body) for text in _PROBES)
        if is_probe:
            self.probes.append(body)
            await asyncio.sleep(self.probe_delay)
            if self.elsewhere is not None:
                return web.Response(status=307, headers={"Location": self.elsewhere})
            answer = self._drawn(body) or self._seen(body) or self.answer_to(body)
            told = self._told_of_ends(body)
            refusal = self._refusal(request, body)
            return refusal or _json(self._bill(self.whole(request.path, body, answer, prompt=told)))
        self._note(request, body)
        try:
            if self.delay:
                await asyncio.sleep(self.delay)
            return await self._respond(request, body)
        finally:
            with self._lock:
                self.at_once -= 1

    async def _embed(self, request: web.Request) -> web.Response:
        """Return vectors of texts, the last first."""
        body = await request.json()
        self._note(request, body)
        data = [{"index": n, "embedding": [len(text), 1.0]} for n, text in enumerate(body["input"])]
        return web.json_response({"data": data[self.forgets :][::-1], "model": body["model"]})

    def _told_of_ends(self, body: dict[str, Any]) -> Callable[[str], float] | None:
        """Return what is told of a prompt's tokens: of an answer's first tokens the same as of answers."""
        if self.prompt is None or self.logprobs is None or not self.agrees:
            return self.prompt
        told, of_prompt = self.logprobs(body), self.prompt
        return lambda word: told[word] if word in told else told.get(word.strip(), of_prompt(word))

    def _drawn(self, body: dict[str, Any]) -> str | None:
        if _DRAW not in answers.last_text(body) or self.draws == "nothing":
            return None
        seed = body.get("seed") if self.draws == "seed" else None
        return " ".join(random.Random(seed).choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=12))

    def _seen(self, body: dict[str, Any]) -> str | None:
        return str(_PICTURE["word"]) if _PICTURE["user"] in answers.last_text(body) and self.sees else None

    def answer_to(self, body: dict[str, Any]) -> str:
        """Return the answer, held to labels where that is asked and heeded."""
        held = _held(body, self.heeds)
        answer = self.answer(body)
        if held is None:
            return answer
        label = answer if answer in held else held[0]
        return json.dumps({"answer": label}) if "response_format" in body or "text" in body else label

    def whole(
        self,
        path: str,
        body: dict[str, Any],
        content: str | None,
        finish: str = "stop",
        prompt: Callable[[str], float] | None = None,
        **message: Any,
    ) -> bytes:
        """Return a whole answer in the form that was asked."""
        told = {"model": self.model, "finish": finish, "logprobs": self.logprobs}
        if path.endswith("/chat/completions"):
            given = {**self.message, **message}
            return answers.chat(
                body, content, prompt=prompt or self.prompt, usage=self.usage, **told, **given
            )
        if path.endswith("/responses"):
            return answers.response(body, content, refusal=message.get("refusal"), **told)
        return answers.completion(body, content or "", prompt=prompt or self.prompt, **told)

    def _refusal(self, request: web.Request, body: dict[str, Any]) -> web.Response | None:
        if any(name in body for name in self.breaks_on):
            return _error(500, "internal error")
        for name in sorted(self.refuses):
            if name in body:
                return _error(400, f"Unsupported parameter: '{name}' is not supported with this model.")
        turns = body.get("messages") or body.get("input") or ()
        if "system" in self.refuses and any(turn["role"] == "system" for turn in turns):
            return _error(400, "System role not supported")
        if "pictures" in self.refuses and any(isinstance(turn["content"], list) for turn in turns):
            return _error(400, "Invalid content type: this model takes text and no images.")
        if "completions" in self.refuses and request.path == "/v1/completions":
            return _error(404, "not found")
        return None

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        refusal = self._refusal(request, body)
        if refusal is not None:
            return refusal
        if self.elsewhere is not None:
            return web.Response(status=307, headers={"Location": self.elsewhere})
        behaviour = self.next_behaviour(body)
        name, detail = (behaviour, "") if isinstance(behaviour, str) else behaviour
        self.counts[name] += 1
        if name == "429":
            return _error(429, "Rate limit reached", {"Retry-After": detail} if detail else {})
        if name == "quota":
            words = "You exceeded your current quota, please check your plan and billing details."
            return _error(429, words, code="insufficient_quota")
        if name == "filter":
            return _error(400, "filtered", code="content_filter")
        if name.isdigit():
            return _error(
                int(name), detail or f"scripted {name} for key {request.headers.get('Authorization')}"
            )
        answer = self.answer_to(body)
        whole = self._bill(self.whole(request.path, body, answer))
        if name in ("stall", "drop"):
            assert self._released is not None
            if name == "stall":
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._released.wait(), 60)
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        if name == "cut":
            return await _cut(request, whole)
        if name == "malformed":
            return _json(whole[: len(whole) // 2])
        if name == "raw":
            return _json(detail.encode())
        if name == "html":
            return web.Response(body=b"<html>Bad gateway</html>", content_type="text/html")
        payload: dict[str, Callable[[], bytes]] = {
            "no_choices": lambda: b'{"id": "x", "choices": []}',
            "error_200": lambda: b'{"error": {"message": "upstream failed", "code": 502}}',
            "empty": lambda: self.whole(request.path, body, ""),
            "null": lambda: self.whole(request.path, body, None),
            "length": lambda: self.whole(request.path, body, answer, "length"),
            "refusal": lambda: self.whole(request.path, body, None, refusal="I cannot help with that."),
        }
        content = payload[name]() if name in payload else whole
        return await _streamed(request, body, content) if body.get("stream") else _json(content)

    def _bill(self, whole: bytes) -> bytes:
        usage = json.loads(whole)["usage"]
        with self._lock:
            for kind, names in {
                "prompt": ("prompt_tokens", "input_tokens"),
                "completion": ("completion_tokens", "output_tokens"),
            }.items():
                self.billed[kind] += next(usage[name] for name in names if name in usage)
        return whole


def _held(body: dict[str, Any], heeds: set[str]) -> list[str] | None:
    """Return the labels that a request holds its answer to, where the server heeds that way."""
    schema = body.get("response_format", {}).get("json_schema") or body.get("text", {}).get("format")
    if schema and "json_schema" in heeds:
        return list(schema["schema"]["properties"]["answer"]["enum"])
    for name in ("structured_outputs", "guided_choice"):
        if name in body and name in heeds:
            return list(body[name]["choice"] if isinstance(body[name], dict) else body[name])
    if "grammar" in body and "grammar" in heeds:
        return [json.loads(part) for part in body["grammar"].removeprefix("root ::= ").split(" | ")]
    if "regex" in body and "regex" in heeds:
        return str(body["regex"]).strip("()").split("|")
    return None


async def _streamed(request: web.Request, body: dict[str, Any], whole: bytes) -> web.StreamResponse:
    """Send an answer in chunks: its beginning at once, the rest a little later, counts last."""
    payload = json.loads(whole)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    if "output" in payload:
        text = payload["output"][-1]["content"][0].get("text", "")
        for piece in (text[:1], text[1:]):
            await _say(response, {"type": "response.output_text.delta", "delta": piece})
            await asyncio.sleep(0.02)
        await _say(response, {"type": "response.completed", "response": payload})
        return response
    choice = payload["choices"][0]
    text = choice["message"]["content"] if "message" in choice else choice["text"]
    pieces = [text[:1], text[1:]] if text else [text]
    for place, piece in enumerate(pieces):
        part: dict[str, Any] = {"index": 0, "finish_reason": None}
        part |= {"delta": {"content": piece}} if "message" in choice else {"text": piece}
        if not place:
            part["logprobs"] = choice.get("logprobs")
        await _say(response, {"model": payload["model"], "choices": [part]})
        await asyncio.sleep(0.02)
    end = {
        "index": 0,
        "finish_reason": choice["finish_reason"],
        **({"delta": {}} if "message" in choice else {"text": ""}),
    }
    await _say(response, {"model": payload["model"], "choices": [end]})
    if body.get("stream_options"):
        await _say(response, {"model": payload["model"], "choices": [], "usage": payload["usage"]})
    await response.write(b"data: [DONE]\n\n")
    return response


async def _say(response: web.StreamResponse, chunk: dict[str, Any]) -> None:
    await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")


async def _cut(request: web.Request, whole: bytes) -> web.StreamResponse:
    """Promise the whole, send half, and close."""
    response = web.StreamResponse(headers={"Content-Length": str(len(whole))})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    assert request.transport is not None
    await asyncio.sleep(0.01)
    request.transport.close()
    return response


def _json(content: bytes) -> web.Response:
    return web.Response(body=content, content_type="application/json")


def _error(
    status: int, message: str, headers: dict[str, str] | None = None, code: str | None = None
) -> web.Response:
    error = {"message": message, "type": "scripted", "param": None, "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
