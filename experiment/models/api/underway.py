"""One request on its way: its conversation with the server, the call under way, and how that went so far."""

from __future__ import annotations

from experiment.models.api.surfaces import Call, Conversation
from experiment.models.engine import Reply, ReplyStatus, Request


class Underway:
    """One request on its way."""

    __slots__ = (
        "alike", "call", "failed_at", "fault", "has_answers", "is_owing", "limited", "lost", "request", "rounds", "talk", "tries",
        "unsettled", "waits_for",
    )  # fmt: skip

    def __init__(self, request: Request, talk: Conversation) -> None:
        self.request = request
        self.talk = talk
        self.call: Call | None = None
        self.tries = self.limited = self.lost = self.unsettled = self.alike = 0
        self.fault = self.waits_for = ""
        self.is_owing = self.has_answers = False
        self.failed_at, self.rounds = 0.0, 0

    @property
    def counted(self) -> int:
        """Tries that count against it: the server took them, and was not down."""
        return self.tries - self.limited - self.lost

    def begin_anew(self) -> None:
        """Know that the server was down, so that its tries so far say nothing of it."""
        self.lost += self.counted
        self.alike, self.fault = 0, ""
        self.rounds += 1

    def owe(self) -> None:
        """Know that the server may bill a try that brought no answer."""
        self.unsettled += 1
        self.is_owing = True

    def failed(self, reason: str, status: ReplyStatus, *, model: str, path: str) -> Reply:
        """Return the reply that says why there is no answer."""
        return Reply(
            self.request.work_key, None, status, error=reason, attempts=self.tries, requested_model=model, path=path,
            unsettled_tries=self.unsettled,
        )  # fmt: skip
