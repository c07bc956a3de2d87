"""A server with files and fine-tuning jobs as OpenAI's, on a loopback socket; it holds uploads against the rules of the format."""

from __future__ import annotations

import base64
import json
import threading
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

RESULTS = "step,train_loss,valid_loss\n1,2.5,\n2,1.5,1.75\n3,0.5,\n4,0.25,0.5\n"
COPIED = ("model", "seed", "training_file", "validation_file", "metadata", "method", "suffix")
"""What a job shows as it was asked for."""


class ScriptedJobs:
    """The server; a context manager."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.jobs: dict[str, dict[str, Any]] = {}  # as the API shows them
        self.becomes = ["queued", "running", "succeeded"]  # what each look at a job finds; the last stays
        self.loses_next_answer = False  # the next job is made, and the answer to whoever made it gets lost
        self.refuses: int | None = None  # status of every answer, where it refuses
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> ScriptedJobs:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    def post(self, path: str, body: bytes, kind: str) -> dict[str, Any] | None:
        if path == "/v1/files":
            whole = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
            parts = {
                part.get_param("name", header="content-disposition"): part for part in whole.get_payload()
            }
            assert parts["purpose"].get_payload(decode=True) == b"fine-tune"
            content = parts["file"].get_payload(decode=True)
            for line in content.decode().splitlines():
                roles = [one["role"] for one in json.loads(line)["messages"]]
                assert roles[-1] == "assistant" and "user" in roles
            name = f"file-{len(self.files)}"
            self.files[name] = content
            return {
                "id": name, "object": "file", "bytes": len(content), "created_at": 1, "filename": "f", "purpose": "fine-tune",
                "status": "processed",
            }  # fmt: skip
        spec = json.loads(body)
        assert spec["training_file"] in self.files
        name = f"ftjob-{len(self.jobs)}"
        job = {
            "id": name, "object": "fine_tuning.job", "created_at": 1, "status": "validating_files", "fine_tuned_model": None,
            "result_files": [], "trained_tokens": None, "error": None, "organization_id": "o", "hyperparameters": {},
            **{key: spec.get(key) for key in COPIED},
        }  # fmt: skip
        self.jobs[name] = job
        if self.loses_next_answer:
            self.loses_next_answer = False
            return None
        return job

    def get(self, path: str) -> Any:
        if path == "/v1/fine_tuning/jobs":
            return {"object": "list", "data": list(self.jobs.values()), "has_more": False}
        if path.startswith("/v1/files/"):
            return base64.b64encode(RESULTS.encode()).decode()
        job = self.jobs[path.rpartition("/")[2]]
        job["status"] = self.becomes.pop(0) if len(self.becomes) > 1 else self.becomes[0]
        if job["status"] == "succeeded":
            model = f"ft:{job['model']}:lab:{job['suffix']}:x"
            job |= {"fine_tuned_model": model, "trained_tokens": 12_000, "result_files": ["file-results"]}
        if job["status"] == "failed":
            job["error"] = {"code": "bad", "message": "line 3 is odd", "param": None}
        return job

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def answer(self, told: Any) -> None:
                if told is None:
                    self.connection.close()
                    return
                status, content = 200, told.encode() if isinstance(told, str) else json.dumps(told).encode()
                if server.refuses is not None:
                    status, content = server.refuses, b'{"error": {"message": "no such thing", "type": "x"}}'
                self.send_response(status)
                self.send_header("Content-Type", "text/csv" if isinstance(told, str) else "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                refused = server.refuses is not None
                self.answer({} if refused else server.post(self.path, body, self.headers["Content-Type"]))

            def do_GET(self) -> None:
                self.answer({} if server.refuses is not None else server.get(self.path.partition("?")[0]))

        return Handler
