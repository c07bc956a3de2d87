"""Ends a run in which request after request fails for the same reason: then something of its set-up is wrong.

A refusal costs nothing, and a server that is known to answer this model refuses prompts, not the set-up: however many it
refuses in a row, those behind them are asked. So it is where it fails at a request and answers others meanwhile. What may be
billed without an answer is not gone on with.
"""

from __future__ import annotations

from experiment.models.api.retrying import RunStopped

MOST_ALIKE = 20
"""Requests in a row that may fail for the same reason while none was answered."""

MOST_ALIKE_LATER = 100
"""The same once there were answers; what a server refuses does not count then."""


class Alike:
    """Counts failures in a row that are alike.

    Parameters
    ----------
    has_answered : bool
        Whether the model has answered before, as where a study has answers of it.
    was_probed : bool
        Whether its server has answered the probe.
    """

    def __init__(self, *, has_answered: bool, was_probed: bool = False) -> None:
        self._has_answered = has_answered
        self._was_probed = was_probed
        self._fault = ""
        self._in_a_row = 0

    def answered(self) -> None:
        """Know that a request was answered."""
        self._has_answered = True
        self._in_a_row = 0

    def failed(self, fault: str, reason: str, *, is_own: bool) -> RunStopped | None:
        """Note a request that came to nothing; return the end of the run where too many were alike.

        Parameters
        ----------
        fault : str
            The reason without what differs from request to request.
        is_own : bool
            It is about this request alone, and bills nothing: the server refused it, or fails at it and answers others.
        """
        if is_own and (self._has_answered or self._was_probed):
            self._in_a_row = 0
            return None
        self._in_a_row = self._in_a_row + 1 if fault == self._fault else 1
        self._fault = fault
        if self._in_a_row < (MOST_ALIKE_LATER if self._has_answered else MOST_ALIKE):
            return None
        none = "" if self._has_answered else ", and none was answered"
        return RunStopped(
            f"{self._in_a_row} requests in a row failed alike{none}: {reason}",
            mend="Mend that (often the model's name, base_url or an option), then give the same command again: "
            "it asks for all that is missing.",
        )
