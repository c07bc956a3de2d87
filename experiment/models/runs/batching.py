"""Batches: every run collects finished ones and skips pending requests; ``--batch`` submits what is missing.

A submitted batch is billed whether or not it is collected: the most that each request can cost is in the journal before the
batch is created, and its cost once it was fetched, whether a trial takes the answer or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import update

from experiment.models.api.batch import Batch, BatchApi, Ledger, costs_of, is_answered
from experiment.models.costs import Price, format_usd
from experiment.models.engine import UNFINISHED, Request
from experiment.models.journal import Journal, begin_batch, settle_batch, total_of
from experiment.models.planning import ModelSession, calls_before, told_of
from experiment.models.runs.context_overflow import flagged
from experiment.models.runs.recording import WORDS, Recording
from experiment.models.runs.remaining_work import Blocks, Survey, waves
from experiment.models.settings import ModelSettings
from experiment.store import Store
from experiment.store.tables import reservations
from stimuli.errors import UserError

Say = Callable[[str], None]


def batch_price(price: Price) -> Price:
    """Return a model's price in a batch."""
    share = price.batch
    return replace(
        price,
        input=price.input * share,
        cached_input=price.cached_input * share,
        output=price.output * share,
        batch=1.0,
    )


class Batches:
    """The batches of one model (``who``: study, reader and run) in one run, with their money."""

    def __init__(
        self,
        settings: ModelSettings,
        store: Store,
        price: Price,
        journal: Journal | None,
        who: tuple[str, str, str],
        say: Say,
    ) -> None:
        self._settings, self._store, self._price = settings, store, batch_price(price)
        self._journal, (self._study, self._reader, self._run_id) = journal, who
        self._say = say

    @property
    def are_there(self) -> bool:
        """Whether this model ever had a batch in this study."""
        return self._settings.kind == "openai" and bool(self._ledger.batches)

    @property
    def _ledger(self) -> Ledger:
        return Ledger(self._settings)

    def look(self, *, cancels: bool = False) -> None:
        """Fetch and record finished batches, whatever the study's current settings; cancel pending ones first if requested."""
        if not self.are_there:
            return
        if cancels:
            BatchApi(self._settings, self._settle).cancel(self._reader)
        if any(not batch.is_collected for batch in self._ledger.batches):
            BatchApi(self._settings, self._settle).fetch()
        if cancels:
            self._decide(self._own())
            for pending in self._own():
                self._say(f"{self._reader}: {pending}")

    def take(self, plan: Callable[[], Iterable[ModelSession]], recording: Recording, *, refuses: bool) -> int:
        """Store fetched answers in a plan's trials, report those that no trial takes, and return the number stored."""
        if not self.are_there:
            return 0
        keys_by_batch = self._named()
        wanted = {key.partition(":")[0] for keys in keys_by_batch.values() for key in keys}
        requests: dict[str, tuple[ModelSession, Request]] = {}
        planned: set[str] = set()
        for session in plan() if wanted else ():
            keys_of_session = wanted.intersection(session.keys)
            if keys_of_session:
                planned |= keys_of_session
                begun, left = self._begin(session, recording)
                recording.expect(session.session_id, left)
                requests |= {request.work_key: (session, request) for request in begun}
        self._check(keys_by_batch, planned, refuses=refuses)
        taken = 0
        failed: Counter[str] = Counter()
        api = BatchApi(self._settings, self._settle)
        for reply in api.collect(
            (request for _, request in requests.values()), stored=lambda: recording.settle(0)
        ):
            session, request = requests[reply.work_key]
            if reply.status in UNFINISHED:
                failed[(reply.error or reply.status).splitlines()[0][:WORDS]] += 1
            cost = self._price.of(reply)
            if cost is None:
                # requests that the provider did not process cost nothing; an answer without token counts may have cost the most
                cost = 0.0 if reply.status in UNFINISHED else self._price.most(request)
            recording.keep(session, request, reply, cost=cost)
            taken += 1
        recording.settle(0)
        for reason, count in failed.items():
            self._say(
                f"{self._reader}: {count} requests of a batch brought no answer and are repeated: {reason}"
            )
        return taken

    def out(self) -> set[str]:
        """Return the work keys of submitted requests that have no answer yet."""
        ledger = self._ledger
        return {key for batch in ledger.batches if not batch.is_collected for key in ledger.keys(batch)}

    def leave_out(
        self, plan: Callable[[], Iterable[ModelSession]], surveyed: Survey, recording: Recording
    ) -> set[str]:
        """Subtract pending requests from a run's survey and report them; return their work keys."""
        pending = self.out() if self.are_there else set()
        wanted = {key.partition(":")[0] for key in pending}
        theirs: set[str] = set()
        for number, wave in enumerate(waves(plan())) if pending else ():
            for session in wave:
                keys_of_session = wanted.intersection(session.keys)
                if not keys_of_session:
                    continue
                stored = recording.read(partial(told_of, session_id=session.session_id))
                blocks = Blocks(session).of_trial
                for key in keys_of_session:
                    trial = session.trial_of(key)
                    if trial["trial_index"] in stored:
                        continue
                    theirs.add(key)
                    place = (number, blocks[trial["trial_index"]])
                    surveyed.missing[place] = surveyed.missing.get(place, 0) - 1
                    surveyed.out[place] += 1
        own_pending = {key for key in pending if key.partition(":")[0] in theirs}
        if own_pending:
            names = ", ".join(batch.name for batch in self._ledger.open) or "fetched soon"
            self._say(
                f"{self._reader}: {len(own_pending)} requests are out in a batch ({names}) and are not sent again; give "
                "the same command later, or --batch, to collect them, or --cancel-batches to give them up"
            )
        return own_pending

    def hand_over(
        self, requests: Iterable[Request], dialect: Any, *, budget: float | None, limit: float | None
    ) -> tuple[int, str]:
        """Submit the missing requests that the budget allows, after earlier batches; return their number and a message."""
        if self._settings.kind != "openai":
            raise UserError(
                f"{self._settings.use} has no batches",
                mend="Leave out --batch; it is for models behind OpenAI's Batch API.",
            )
        ledger = self._ledger
        if any(not batch.is_collected and batch.reader == self._reader for batch in ledger.batches):
            return 0, str(ledger)
        chosen = self._affordable(list(requests), budget, limit)
        if chosen:
            api = BatchApi(self._settings, self._settle, dialect)
            api.submit(
                chosen,
                reader=self._reader,
                run_id=self._run_id,
                most=self._price.most,
                begin=self._begin_batch,
            )
            ledger = api.ledger
        return len(chosen), str(ledger)

    def _affordable(self, wanted: list[Request], budget: float | None, limit: float | None) -> list[Request]:
        """Return the requests whose most the money covers."""
        assert self._journal is not None
        left = float("inf") if limit is None else limit
        if budget is not None:
            spent = self._journal.write(lambda connection: total_of(connection, self._study))
            left = min(left, budget - spent)
        count = 0
        for request in wanted:
            left -= self._price.most(request)
            if left < 0:
                break
            count += 1
        if wanted and not count:
            raise UserError(
                "the money that is left does not suffice for one request of a batch",
                mend="Raise models: budget in the study, or --max-cost.",
                exit_code=1,
            )
        return wanted[:count]

    def _own(self) -> list[Batch]:
        return [batch for batch in self._ledger.batches if batch.reader in ("", self._reader)]

    def _named(self) -> dict[str, list[str]]:
        """Return the work keys of each batch that is pending or has answers that no trial has taken."""
        ledger = self._ledger
        return {
            batch.token: [str(line.get("custom_id")) for line in ledger.answers(batch)]
            if batch.is_collected
            else ledger.keys(batch)
            for batch in ledger.batches
        }

    def _begin(self, session: ModelSession, recording: Recording) -> tuple[list[Request], int]:
        """Return the requests that can be answered now, and the number of missing trials."""
        stored = recording.read(lambda connection: told_of(connection, session.session_id))
        before = recording.read(lambda connection: calls_before(connection, session.session_id))
        never = recording.read(lambda connection: flagged(connection, [session.session_id]))
        return session.begin(stored, before), len(session) - len(stored) - len(
            never.get(session.session_id, ())
        )

    def _check(self, named: dict[str, list[str]], planned: set[str], *, refuses: bool) -> None:
        """Report submitted requests that the plan lacks; raise an error if the user has not decided what happens to them."""
        ledger = self._ledger
        strange: list[Batch] = []
        n_pending = n_answered = 0
        for batch in self._own():
            if batch.is_decided:
                continue
            lines = {str(line.get("custom_id")): is_answered(line) for line in ledger.answers(batch)}
            keys = [key for key in named[batch.token] if key.partition(":")[0] not in planned]
            here = [key for key in keys if lines.get(key, not batch.is_collected)]
            if here:
                strange.append(batch)
                n_answered += len(here) if batch.is_collected else 0
                n_pending += 0 if batch.is_collected else len(here)
        if not strange:
            return
        names = ", ".join(batch.name for batch in strange)
        costs = [costs_of(ledger.answers(batch), self._price.of_usage).values() for batch in strange]
        cost = format_usd(sum(cost or 0.0 for of_batch in costs for cost in of_batch))
        fates = [
            f"{n_answered} answers, which cost {cost}" if n_answered else "",
            f"{n_pending} requests that are out" if n_pending else "",
        ]
        description = " and ".join(filter(None, fates))
        if refuses:
            raise UserError(
                f"{self._reader} has changed: a batch ({names}) was submitted under another plan or other settings, and "
                f"it matches no trial of the plan: {description}; the cost is recorded",
                mend="Undo the change, and they are stored; or give the model another name in the study; or set "
                "--if-changed set_aside or keep_both to continue without them; --cancel-batches cancels pending batches.",
                exit_code=1,
            )
        self._say(
            f"{self._reader}: {description} match no trial of the plan ({names}); the cost is recorded, and the replies are kept in "
            "batches/ and stored if the plan includes their trials again"
        )
        self._decide(strange)

    def _decide(self, batches: Iterable[Batch]) -> None:
        ledger, tokens = self._ledger, {batch.token for batch in batches}
        for batch in ledger.batches:
            batch.is_decided = batch.is_decided or batch.token in tokens
        ledger.save()

    def _begin_batch(self, batch: Batch, most: Mapping[str, float]) -> None:
        assert self._journal is not None
        whose = (self._study, self._reader, batch.token)
        self._journal.write(lambda connection: begin_batch(connection, *whose, most))

    def _settle(self, batch: Batch, lines: Sequence[Mapping[str, Any]] | None) -> None:
        """Record what a batch that has ended cost; the most that it can have cost if its provider does not know it any more."""
        assert self._journal is not None
        costs = None if lines is None else costs_of(lines, self._price.of_usage)
        whose = (self._study, batch.reader or self._reader, batch.token)
        self._journal.write(lambda connection: settle_batch(connection, *whose, costs, batch.most_usd))
        # the sum that an earlier version had set aside for it
        earlier = update(reservations).where(
            reservations.c.study == self._study, reservations.c.name == f"batch-{batch.run_id}"
        )
        self._store.write(
            lambda connection: connection.execute(earlier.values(state="closed", open_usd=0.0)).rowcount
        ).result()
