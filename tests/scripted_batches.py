"""The files and batches of the scripted server: they are done when the test says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.scripted_openai import ScriptedOpenAI

ENDED = ("completed", "failed", "expired", "cancelled")


class Batches:
    """What was uploaded and submitted.

    Attributes
    ----------
    files : dict of str to bytes
    batches : dict of str to dict
        As the API shows them.
    fails : set of str
        ``custom_id``s that come back with an error.
    loses_next_answer : bool
        Whether the next batch is made and the answer to whoever made it gets lost.
    refuses_next : bool
        Whether the next batch is refused for an account that is spent.
    writes_ascii : bool
        Whether results escape what is no ASCII.
    """

    def __init__(self, server: ScriptedOpenAI) -> None:
        self.server = server
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.fails: set[str] = set()
        self.loses_next_answer = False
        self.refuses_next = False
        self.writes_ascii = True

    def add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list)
        app.router.add_get("/v1/batches/{id}", self._show)
        app.router.add_post("/v1/batches/{id}/cancel", self._cancel)

    def lines(self, batch_id: str) -> list[dict[str, Any]]:
        """Return the requests of a batch."""
        content = self.files[self.batches[batch_id]["input_file_id"]]
        return [json.loads(line) for line in content.decode().splitlines()]

    def end(self, status: str = "completed", *, done: Callable[[str], bool] = lambda custom_id: True) -> None:
        """End all batches that run; of an expired or cancelled one only some requests are done."""
        for batch_id, batch in self.batches.items():
            if batch["status"] in ENDED:
                continue
            good, bad = [], []
            for line in self.lines(batch_id):
                custom_id = line["custom_id"]
                if custom_id in self.fails:
                    good.append(_line(custom_id, 400, {"error": {"message": "bad word"}}))
                elif status != "failed" and done(custom_id):
                    body = line["body"]
                    payload = json.loads(self.server.whole(line["url"], body, self.server.answer_to(body)))
                    good.append(_line(custom_id, 200, payload))
                elif status != "failed":
                    error = {"code": f"batch_{status}", "message": f"This request was {status}."}
                    bad.append({"id": "b", "custom_id": custom_id, "response": None, "error": error})
            batch |= {"status": status, "output_file_id": self._file(good), "error_file_id": self._file(bad)}
            if status == "failed":
                batch["errors"] = {"data": [{"message": "line 1 is not valid", "line": 1}]}
            total = len(self.lines(batch_id))
            batch["request_counts"] = {"total": total, "completed": len(good), "failed": len(bad)}

    def _file(self, lines: list[dict[str, Any]]) -> str | None:
        if not lines:
            return None
        name = f"file-{len(self.files)}"
        texts = (json.dumps(line, ensure_ascii=self.writes_ascii) for line in reversed(lines))
        self.files[name] = "\n".join(texts).encode()
        return name

    async def _upload(self, request: web.Request) -> web.Response:
        fields = await request.post()
        upload = fields["file"]
        assert isinstance(upload, web.FileField) and fields["purpose"] == "batch"
        name = f"file-{len(self.files)}"
        self.files[name] = upload.file.read()
        return web.json_response(
            {"id": name, "object": "file", "filename": upload.filename, "purpose": "batch"}
        )

    async def _content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.files[request.match_info["id"]])

    async def _create(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if self.refuses_next:
            self.refuses_next = False
            said = {"error": {"message": "Billing hard limit reached", "code": "billing_hard_limit_reached"}}
            return web.json_response(said, status=400)
        name = f"batch-{len(self.batches)}"
        batch = {
            "id": name, "object": "batch", "status": "in_progress", "created_at": len(self.batches), "errors": None,
            "output_file_id": None, "error_file_id": None,
            "request_counts": {"total": 0, "completed": 0, "failed": 0}, **body,
        }  # fmt: skip
        self.batches[name] = batch
        if self.loses_next_answer:
            self.loses_next_answer = False
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(batch)

    async def _list(self, request: web.Request) -> web.Response:
        data = list(reversed(self.batches.values()))
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def _show(self, request: web.Request) -> web.Response:
        if request.match_info["id"] not in self.batches:
            raise web.HTTPNotFound(
                text='{"error": {"message": "No such batch"}}', content_type="application/json"
            )
        return web.json_response(self.batches[request.match_info["id"]])

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        batch["status"] = "cancelling"
        return web.json_response(batch)


def _line(custom_id: str, status: int, body: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": f"b-{custom_id}", "custom_id": custom_id, "error": None,
        "response": {"status_code": status, "request_id": "r", "body": body},
    }  # fmt: skip
