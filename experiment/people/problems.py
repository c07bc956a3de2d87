"""Errors of the interface, told as JSON: what is wrong, the rule, the mend."""

from __future__ import annotations

from typing import Any


class Problem(Exception):
    """A request that is not answered as asked."""

    def __init__(
        self,
        status: int,
        error: str,
        *,
        rule: str,
        mend: str = "",
        retry_after_s: int | None = None,
        **more: Any,
    ) -> None:
        super().__init__(error)
        self.status = status
        self.retry_after_s = retry_after_s
        self.body = {"error": error, "rule": rule, "mend": mend, **more}


def no_such_session() -> Problem:
    """Answer alike to an unknown session and to a wrong token, so that neither can be guessed at."""
    return Problem(
        404,
        "there is no such session for this token",
        rule="a session answers only to the token that was given when it began",
        mend="Open the study's page again.",
    )
