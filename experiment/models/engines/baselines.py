"""Readers that read nothing: random labels, always the first, the oracle and one with lapses; they test the whole way of a trial."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from experiment.models.engine import Follow, Reply, Request
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError, unknown_name
from stimuli.seeds import generator

BASELINES = ("random", "always_a", "oracle", "oracle_with_lapses")
LAPSE_RATE = 0.1


class BaselineEngine:
    """Answers by rule.

    ``random`` draws a label from each request's own seed, ``always_a`` takes the first, ``oracle`` looks the right
    answer up, and ``oracle_with_lapses`` does so but in a share ``lapse_rate`` of trials, in which it answers like
    ``random``. Labels are what can be chosen, also where a model is to write it: a paper's prompt that asks for the symbol
    itself. Where an answer must be typed, only the oracles have one; the others, and lapses, answer nothing (status ``empty``).
    """

    def __init__(self, settings: ModelSettings) -> None:
        if settings.name not in BASELINES:
            raise unknown_name("baseline", settings.name, BASELINES)
        rate = settings.options.get("lapse_rate", LAPSE_RATE)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise UserError(f"lapse_rate is {rate!r}; it is a share of trials, from 0 to 1")
        self.settings = settings
        self.lapse_rate = float(rate)
        self._closed = False

    def describe(self) -> dict[str, object]:
        """Return the baseline's name, and its lapse rate where it has lapses."""
        identity: dict[str, object] = {"kind": "baseline", "model": self.settings.name}
        if self.settings.name == "oracle_with_lapses":
            identity["lapse_rate"] = self.lapse_rate
        return {**identity, "identity": identity}

    def preview(self, request: Request) -> dict[str, object]:
        """Return the text that a model would read here."""
        return {"text": "\n\n".join(message.content for message in request.messages)}

    def close(self) -> None:
        """Answer nothing more."""
        self._closed = True

    def answer(self, requests: Sequence[Request], follow: Follow | None = None) -> Iterator[Reply]:
        """Yield one reply for each request, and for each that follows from a reply."""
        waiting = deque(requests)
        while waiting and not self._closed:
            request = waiting.popleft()
            text = self._text(request)
            reply = Reply(
                work_key=request.work_key,
                text=text,
                status="answered" if text else "empty",
                requested_model=self.settings.use,
                resolved_model=self.settings.use,
                path="rule",
            )
            waiting.extend(follow(reply) if follow is not None else ())
            yield reply

    def _text(self, request: Request) -> str | None:
        name = self.settings.name
        if name == "oracle_with_lapses":
            draw = generator("baseline:lapse", request.seed, request.work_key).random()
            name = "random" if draw < self.lapse_rate else "oracle"
        if name == "oracle":
            return self.settings.answers[request.work_key]
        labels = request.labels or self.settings.choices.get(request.work_key)
        if not labels:
            return None
        if name == "always_a":
            return labels[0]
        return generator("baseline:random", request.seed, request.work_key).choice(labels)
