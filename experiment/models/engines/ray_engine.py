"""Local models on a Ray cluster, with one engine per GPU; if a worker is killed, others take over its requests.

Workers never open the store. Each computes small bundles of requests and streams its replies to the run; a received reply
counts, whatever happens to its worker, and only requests without a reply are given to another worker, so each trial is answered
once. The next turn of a conversation goes to the worker that computed the previous one.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from experiment.models.engine import Engine, Follow, ModelSettings, Reply, Request
from experiment.models.engines import open_engine
from stimuli.errors import UserError

BUNDLE = 256
"""Requests per worker at a time."""

MOST_LOSSES = 3
"""Workers that a request may lose before it is recorded as an error: it may be what kills them."""

TALKS = 32
"""The same if replies have follow-up requests: a worker keeps this many conversations in memory for their next turns."""

LOOK_S = 0.5

GRACE_S = 5.0
"""Seconds that workers may take to finish after the run is ended."""


@dataclass(eq=False)
class _Worker:
    """One actor, its requests, its stream of replies, and the turns that continue from what it has in memory."""

    actor: Any
    pid: Any
    stream: Any = None
    given: dict[str, Request] = field(default_factory=dict)
    turns: deque[Request] = field(default_factory=deque)


class _Cluster:
    """The connection to Ray that all engines of a process share; the last one to leave closes it if this process opened it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._is_ours = False

    def enter(self, ray: Any, address: object) -> None:
        with self._lock:
            if not ray.is_initialized():
                dashboard = False if address is None else None
                ray.init(address=address, log_to_driver=False, include_dashboard=dashboard)
                self._is_ours = True
            self._users += 1

    def leave(self, ray: Any) -> None:
        with self._lock:
            self._users -= 1
            if not self._users and self._is_ours:
                self._is_ours = False
                ray.shutdown()


_cluster = _Cluster()


def open_on_ray(settings: ModelSettings) -> Engine:
    """Return the engine for a local model on a Ray cluster; other models open as usual."""
    return RayEngine(settings) if settings.kind == "hf" else open_engine(settings)


class RayEngine:
    """Engine for a local model on each GPU of a Ray cluster, or on CPU workers; one worker alone if times are measured."""

    def __init__(self, settings: ModelSettings) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise UserError(
                "Ray is not installed", mend="Install the extra: pip install 'wrods[ray]'."
            ) from error
        from experiment.models.local import LocalEngine

        if settings.options.get("presentation") == "image":
            raise UserError(
                f"{settings.use} is shown pictures, which the engines of Ray do not take",
                mend="Leave --engine ray out for this model.",
            )
        self.settings = settings
        self._local = LocalEngine(settings)
        self._ray: Any = ray
        _cluster.enter(ray, settings.options.get("ray_address") or os.environ.get("RAY_ADDRESS"))
        self._is_in = True
        resources: Mapping[str, float] = ray.cluster_resources()
        self._gpus = int(resources.get("GPU", 0))
        self._cpus = max(1, int(resources.get("CPU", 1)))
        workers = settings.options.get("workers")
        self.size = int(str(workers)) if workers is not None else (self._gpus or max(1, self._cpus // 2))
        if self._local.timing:
            self.size = 1
        if self.size < 1:
            self.close()
            raise UserError(
                f"workers is {self.size}; at least one is needed", mend="Give workers: 1 or more."
            )
        self._workers: list[_Worker] = []
        self._described: dict[str, object] = {}
        self._losses = 0
        self._is_answering = self._closed = False

    def describe(self) -> dict[str, object]:
        """Return the local engine's description, from a worker once one has computed, and the number of workers."""
        described = self._local.describe()
        return {
            **described, **self._described, "identity": described["identity"],
            "ray": {"version": self._ray.__version__, "workers": self.size, "gpus": self._gpus, "lost": self._losses},
        }  # fmt: skip

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that the model reads and its number of tokens, without loading weights."""
        return self._local.preview(request)

    def close(self) -> None:
        """Give out no further work; a running :meth:`answer` yields what workers have and stops them."""
        self._closed = True
        if self._is_answering:
            for worker in tuple(self._workers):
                worker.actor.stop.remote()
        else:
            self._leave()

    def rest(self) -> None:
        """Stop the workers to free their GPUs for another model; the next :meth:`answer` starts new ones."""
        workers, self._workers = self._workers, []
        for worker in workers:
            self._ray.kill(worker.actor)

    def _leave(self) -> None:
        if self._is_in:
            self._is_in = False
            self.rest()
            _cluster.leave(self._ray)

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield replies as workers finish them; follow-up requests go to the worker that has the conversation in memory."""
        waiting = deque(requests)
        lost: dict[str, int] = {}
        until: float | None = None
        self._is_answering = True
        try:
            while True:
                if self._closed:
                    until = until or time.monotonic() + GRACE_S
                else:
                    self._give_out(waiting, leads_on=follow is not None)
                busy = [worker for worker in self._workers if worker.stream is not None]
                if not busy or (until is not None and time.monotonic() > until):
                    return
                streams = [worker.stream for worker in busy]
                ready, _ = self._ray.wait(streams, timeout=LOOK_S, fetch_local=False)
                for worker in [candidate for candidate in busy if candidate.stream in ready]:
                    for reply in self._taken(worker, waiting, lost):
                        if follow is not None:
                            worker.turns.extend(follow(reply))
                        yield reply
        finally:
            self._is_answering = False
            if self._closed:
                self._leave()

    def _give_out(self, waiting: deque[Request], *, leads_on: bool) -> None:
        """Give work to every idle worker; start workers while there is work for them."""
        at_once = TALKS if leads_on else BUNDLE
        for worker in [worker for worker in self._workers if worker.stream is None and worker.turns]:
            self._give(worker, worker.turns, at_once, leads_on)
        most = max(1, min(at_once, -(-len(waiting) // self.size)))
        while waiting:
            idle = next((worker for worker in self._workers if worker.stream is None), None)
            if idle is None:
                if len(self._workers) >= self.size:
                    return
                idle = self._begin()
            self._give(idle, waiting, most, leads_on)
        for idle in [worker for worker in self._workers if worker.stream is None]:
            longest = max(self._workers, key=lambda worker: len(worker.turns))
            if len(longest.turns) > 1:
                self._give(idle, longest.turns, min(at_once, len(longest.turns) // 2), leads_on)

    def _give(self, worker: _Worker, source: deque[Request], most: int, leads_on: bool) -> None:
        requests = [source.popleft() for _ in range(min(most, len(source)))]
        worker.given = {request.work_key: request for request in requests}
        worker.stream = worker.actor.answer.options(num_returns="streaming").remote(requests, leads_on)

    def _begin(self) -> _Worker:
        """Return a new worker."""
        ray = self._ray
        share = {"num_gpus": 1, "num_cpus": 1} if self._gpus else {"num_cpus": 1}
        # the second thread receives the stop call
        actor = ray.remote(**share, max_restarts=0, max_concurrency=2)(_Work).remote(self.settings)
        worker = _Worker(actor, actor.pid.remote())
        self._workers.append(worker)
        return worker

    def _taken(self, worker: _Worker, waiting: deque[Request], lost: dict[str, int]) -> list[Reply]:
        """Return the next reply of a worker; if the worker is gone, requeue its requests."""
        ray = self._ray
        try:
            reply = ray.get(next(worker.stream))
        except StopIteration:
            worker.stream, worker.given = None, {}
            if not self._described:
                self._described = ray.get(worker.actor.describe.remote())
            return []
        except ray.exceptions.RayActorError as error:
            return self._replaced(worker, waiting, lost, str(error).splitlines()[0])
        except ray.exceptions.RayTaskError as error:
            cause = error.as_instanceof_cause()
            raise cause from error
        worker.given.pop(reply.work_key, None)
        return [reply]

    def _replaced(
        self, worker: _Worker, waiting: deque[Request], lost: dict[str, int], why: str
    ) -> list[Reply]:
        self._workers = [other for other in self._workers if other is not worker]
        self._losses += 1
        failed: list[Reply] = []
        waiting.extendleft(reversed(worker.turns))
        for key, request in reversed(worker.given.items()):
            lost[key] = lost.get(key, 0) + 1
            if lost[key] < MOST_LOSSES:
                waiting.appendleft(request)
            else:
                text = f"{MOST_LOSSES} workers were lost with this request: {why}"
                failed.append(
                    Reply(
                        key, None, "error", error=text, attempts=lost[key], requested_model=self.settings.use
                    )
                )
        return failed


class _Work:
    """A local engine in a separate process."""

    def __init__(self, settings: ModelSettings) -> None:
        from experiment.models.local import LocalEngine

        self._engine = LocalEngine(settings)

    def answer(self, requests: Sequence[Request], leads_on: bool) -> Iterator[Reply]:
        """Yield replies as they are computed; conversations that may continue stay in memory."""
        from experiment.models.local.causal_model import Closed

        with suppress(Closed):
            # the run sends follow-up requests later
            yield from self._engine.answer(requests, (lambda reply: ()) if leads_on else None)

    def stop(self) -> None:
        """Start no further pass."""
        self._engine.close()

    def describe(self) -> dict[str, object]:
        """Return what was run and how."""
        return self._engine.describe()

    def pid(self) -> int:
        """Return this worker's process id."""
        return os.getpid()
