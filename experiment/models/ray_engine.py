"""Local models on a Ray cluster: one engine a GPU, replies stream to the run, and what a killed worker had is done by another.

Workers never open the store. Each computes small bundles of requests and streams replies back; a reply that came counts,
whatever becomes of its worker, and only requests without a reply are given to another. So every trial is done once.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from experiment.models.engine import Engine, Follow, Reply, Request
from experiment.models.opening import open_engine
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError

BUNDLE = 256
"""Requests that a worker is given at a time, where the engine does not say otherwise."""

MOST_LOSSES = 3
"""Workers that a request may lose before it is set aside as an error: it may be what kills them."""

LOOK_S = 0.5


@dataclass
class _Worker:
    """One actor, what it was given, and its stream of replies."""

    actor: Any
    pid: Any
    stream: Any = None
    given: dict[str, Request] = field(default_factory=dict)


def open_on_ray(settings: ModelSettings) -> Engine:
    """Open a local model on a Ray cluster; other models as usual."""
    return RayEngine(settings) if settings.kind == "hf" else open_engine(settings)


class RayEngine:
    """Answers with a local model on each GPU of a Ray cluster, or with workers on processors where there is none.

    Parameters
    ----------
    settings : ModelSettings
        Reads ``workers`` (how many; by default the cluster's GPUs, or one for each two processors), ``ray_address``, and all
        that the local engine reads.

    Raises
    ------
    UserError
        Ray is not installed, or the model cannot be opened.
    """

    def __init__(self, settings: ModelSettings) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise UserError(
                "Ray is not installed", mend="Install the extra: pip install 'wrods[ray]'."
            ) from error
        from experiment.models.local import LocalEngine

        self.settings = settings
        self._local = LocalEngine(settings)
        self._ray: Any = ray
        self._began_ray = False
        if not ray.is_initialized():
            address = settings.options.get("ray_address") or os.environ.get("RAY_ADDRESS")
            ray.init(
                address=address, log_to_driver=False, include_dashboard=False if address is None else None
            )
            self._began_ray = True
        resources: Mapping[str, float] = ray.cluster_resources()
        self._gpus = int(resources.get("GPU", 0))
        self._cpus = max(1, int(resources.get("CPU", 1)))
        asked = settings.options.get("workers")
        self.size = int(str(asked)) if asked is not None else (self._gpus or max(1, self._cpus // 2))
        if self.size < 1:
            raise UserError(f"workers is {self.size}; at least one is needed")
        self._workers: list[_Worker] = []
        self._described: dict[str, object] = {}
        self._losses = 0
        self._closed = False

    @property
    def bundle(self) -> int | None:
        """How many planned requests must always come together, as the local engine says."""
        return self._local.bundle

    def describe(self) -> dict[str, object]:
        """Return what the local engine says of itself, from a worker once one has computed, and how many workers there are."""
        own = self._local.describe()
        return {
            **own, **self._described, "identity": own["identity"],
            "ray": {"version": self._ray.__version__, "workers": self.size, "gpus": self._gpus, "lost": self._losses},
        }  # fmt: skip

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that the model reads and its number of tokens; loads no weights."""
        return self._local.preview(request)

    def close(self) -> None:
        """Give out no further work, and let the workers go."""
        self._closed = True
        workers, self._workers = self._workers, []
        for worker in workers:
            self._ray.kill(worker.actor)
        if self._began_ray:
            self._began_ray = False
            self._ray.shutdown()

    def worker_pids(self) -> list[int]:
        """Return the process ids of the workers."""
        return [int(self._ray.get(worker.pid)) for worker in self._workers]

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield a reply for each request and for each that follows, in the order in which workers bring them."""
        waiting = deque(requests)
        lost: dict[str, int] = {}
        while not self._closed:
            self._give_out(waiting)
            busy = [worker for worker in self._workers if worker.stream is not None]
            if not busy:
                return
            ready, _ = self._ray.wait([worker.stream for worker in busy], timeout=LOOK_S, fetch_local=False)
            for worker in [one for one in busy if one.stream in ready]:
                for reply in self._taken(worker, waiting, lost):
                    if follow is not None:
                        waiting.extend(follow(reply))
                    yield reply
                    if self._closed:
                        return

    def _give_out(self, waiting: deque[Request]) -> None:
        """Give every idle worker a bundle; begin workers as long as there is work for them."""
        size = self.bundle or max(1, min(BUNDLE, -(-len(waiting) // max(1, self.size))))
        while waiting:
            idle = next((worker for worker in self._workers if worker.stream is None), None)
            if idle is None:
                if len(self._workers) >= self.size:
                    return
                idle = self._begin()
            some = [waiting.popleft() for _ in range(min(size, len(waiting)))]
            idle.given = {request.work_key: request for request in some}
            idle.stream = idle.actor.answer.options(num_returns="streaming").remote(some)

    def _begin(self) -> _Worker:
        """Begin a worker."""
        ray = self._ray
        share = {"num_gpus": 1, "num_cpus": 1} if self._gpus else {"num_cpus": 1}
        actor = ray.remote(**share, max_restarts=0)(_Work).remote(self.settings)
        worker = _Worker(actor, actor.pid.remote())
        self._workers.append(worker)
        return worker

    def _taken(self, worker: _Worker, waiting: deque[Request], lost: dict[str, int]) -> list[Reply]:
        """Take the next reply of a worker; where the worker is gone, give what it had to others."""
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
        self._workers.remove(worker)
        self._losses += 1
        failed: list[Reply] = []
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
    """One local engine in a process of its own."""

    def __init__(self, settings: ModelSettings) -> None:
        from experiment.models.local import LocalEngine

        self._engine = LocalEngine(settings)

    def answer(self, requests: Sequence[Request]) -> Iterator[Reply]:
        """Yield replies as they are computed."""
        yield from self._engine.answer(requests)

    def describe(self) -> dict[str, object]:
        """Return what was run and how."""
        return self._engine.describe()

    def pid(self) -> int:
        """Return this worker's process id."""
        return os.getpid()
