"""Rescoring of stored responses with another parser, a paper's, or a judge model, without new responses.

Scores are only added. The newest score of the scorer that the study names counts: a judge if the model has one, the papers' if
``published`` includes scoring, else wrods' own. Scores of other scorers are stored in addition (their scorer's name begins with
``also:``) and appear in no table. Human ratings are not changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, select

from experiment.models.engine import ANSWERS
from experiment.procedure import PlannedTrial, trials_of
from experiment.scoring.published import OWN, parser_names, parser_of
from experiment.scoring.trial import Score, own_reply_score, own_score, score_trial, status_for_scoring
from experiment.store import Store, records
from experiment.store.records import BESIDE
from experiment.store.tables import calls, scores, sessions
from experiment.study import Study
from experiment.study.semantic_checks import kind_of_material, published_materials
from experiment.trials import OWN_TYPE, UNANSWERED
from stimuli.errors import UserError, unknown_name

RATED, EXECUTED = "rated", "executed"
MODEL_KINDS = ("model", "baseline")
WRITTEN_AT_ONCE = 500
SHOWN_CHANGES = 10


@dataclass(frozen=True)
class StoredResponse:
    """A stored response to rescore.

    ``counts``: the score that counts now; ``status``: the engine's status of a model's reply; None for participants.
    """

    reader: str
    reader_kind: str
    session_id: str
    plan: Mapping[str, Any]
    trial: PlannedTrial
    attempt: int
    work_key: str | None
    raw: str | None
    timed_out: bool
    status: str | None
    counts: Mapping[str, Any] | None
    label_logprobs: Mapping[str, float] | None = None
    recorded: Mapping[str, Any] | None = None

    @property
    def thinks(self) -> bool:
        """Whether the reply was to reason aloud before its answer."""
        return self.plan.get("strategy") == "chain_of_thought"

    def scored(self, parser: str | None = None) -> Score:
        """Return the score of the stored reply by wrods' own parser, or by a paper's (:func:`score_trial`)."""
        step = self.trial["steps"][-1]
        if step["step"] == OWN_TYPE:
            # what the plugin recorded or the parser read at the time counts: another parser would be another design
            if self.status is not None:
                return own_reply_score(self.trial, self.recorded, self.raw, self.status)
            return own_score(self.trial, self.raw, timed_out=self.timed_out)
        return score_trial(
            self.trial,
            self.raw,
            timed_out=self.timed_out,
            reply_status=self.status,
            thinks=self.thinks,
            parser=parser,
            label_logprobs=self.label_logprobs,
        )


@dataclass
class Rescored:
    """Result of rescoring.

    ``counts``: whether the study names this scorer: if it names no judge for a reader, these scores count; ``responses, rated,
    executed``: responses read; responses left to human ratings, and to the tests that they passed or failed; ``changed,
    beside``: scores that change in the tables; scores that differ from those that count and are stored in addition, in no
    table; ``renewed``: scores that count and are equal under newer rules; ``added``: new scores in the store: those that
    changed or were renewed, and new additional ones; ``moved, moved_beside``: changes from one score to another, in the tables
    and in addition; ``kept``: number of additional scores by the scorer that stays in the tables; ``examples``: the first few
    changes or differences; ``failed``: responses that a judge did not answer because of a transmission fault; ``stopped``: why
    the judge received no more requests.
    """

    scorer: str
    counts: bool
    responses: int = 0
    changed: int = 0
    beside: int = 0
    renewed: int = 0
    added: int = 0
    rated: int = 0
    executed: int = 0
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)
    moved_beside: Counter[tuple[str, str]] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, Any]] = field(default_factory=list)
    failed: int = 0
    stopped: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        data: dict[str, Any] = dict(vars(self))
        for name in ("moved", "moved_beside"):
            data[name] = [
                {"from": old, "to": new, "responses": n} for (old, new), n in data[name].most_common()
            ]
        return data


def responses(study: Study, connection: Connection, *, reader: str | None = None) -> Iterator[StoredResponse]:
    """Yield a study's stored responses, session by session, without teacher-forced sessions."""
    overview = records.sessions_overview(connection, study.id)
    if reader is not None and reader not in {row["reader"] for row in overview}:
        raise unknown_name("reader", reader, {row["reader"] for row in overview})
    for session in reversed(overview):
        if records.is_teacher_forced(session) or (reader is not None and session["reader"] != reader):
            continue
        session_id = session["session_id"]
        plan = connection.scalar(select(sessions.c.plan).where(sessions.c.session_id == session_id))
        if plan is None:
            continue
        planned = {trial["trial_index"]: trial for trial in trials_of(plan)}
        is_model = session["reader_kind"] in MODEL_KINDS
        statuses = _reply_statuses(connection, session_id) if is_model else {}
        for row in list(records.trials_of_session(connection, session_id)):
            trial = planned.get(row["trial_index"])
            if trial is None or trial["trial_type"] in UNANSWERED:
                continue
            yield StoredResponse(
                session["reader"],
                session["reader_kind"],
                session_id,
                plan,
                trial,
                row["attempt"],
                row["work_key"],
                row["response_raw"],
                bool(row["timed_out"]),
                statuses.get(row["trial_index"], "answered") if is_model else None,
                row if row["scorer"] is not None else None,
                row["label_logprobs"],
                row["recorded"],
            )


def score_again(
    study: Study, store: Store, *, parser: str | None = None, reader: str | None = None, dry_run: bool = False
) -> Rescored:
    """Rescore stored responses and add the scores that differ.

    ``parser``: one of :func:`experiment.scoring.published.parser_names`; None is the study's own.
    """
    default = parser_of(study) or OWN
    chosen = parser or default
    if chosen not in parser_names():
        raise unknown_name("parser", chosen, parser_names())
    kind = kind_of_material(study)
    if chosen == "published" and kind not in published_materials():
        papers = ", ".join(name for name in parser_names() if name not in (OWN, "published"))
        raise UserError(
            f"answers to `{kind}` were scored by no paper",
            mend=f"Name the paper whose parser is to read them: --parser {papers}.",
        )
    outcome = Rescored(chosen, chosen == default)
    judged = {name for name, settings in study.models.items() if settings.get("judge")}
    of_paper = None if chosen == OWN else chosen

    def verdict(response: StoredResponse) -> Score | None:
        if of_paper is not None and response.reader_kind not in MODEL_KINDS:
            return None
        return response.scored(of_paper)

    waiting: list[tuple[StoredResponse, Score]] = []
    with store.read() as connection:
        for differing in _differing(outcome, responses(study, connection, reader=reader), verdict, judged):
            is_beside = differing[1].scorer.startswith(BESIDE)
            if is_beside and _stands_there(connection, *differing):
                continue
            outcome.added += 1
            if dry_run:
                continue
            waiting.append(differing)
            if len(waiting) == WRITTEN_AT_ONCE:
                write_scores(store, waiting)
                waiting = []
    write_scores(store, waiting)
    return outcome


def _differing(
    outcome: Rescored,
    given: Iterator[StoredResponse],
    verdict: Callable[[StoredResponse], Score | None],
    judged: set[str],
) -> Iterator[tuple[StoredResponse, Score]]:
    for response in given:
        scorer = "" if response.counts is None else str(response.counts["scorer"])
        if scorer.startswith(RATED):
            outcome.rated += 1
            continue
        if scorer.startswith(EXECUTED) and outcome.counts:
            outcome.executed += 1
            continue
        score = verdict(response)
        if score is None:
            continue
        outcome.responses += 1
        counts = outcome.counts and response.reader not in judged
        differs = note(outcome, response, score, counts=counts)
        # the score that counts has another scorer or an older version of this one
        is_renewed = counts and not differs and _scorer_of(response) != (score.scorer, str(score.version))
        outcome.renewed += is_renewed
        if differs or is_renewed:
            yield response, score if counts else replace(score, scorer=f"{BESIDE}{score.scorer}")


def _stands_there(connection: Connection, response: StoredResponse, score: Score) -> bool:
    """Return whether the newest score of a scorer equals this one."""
    query = (
        select(scores.c.response, scores.c.response_status, scores.c.correct, scores.c.score)
        .where(
            scores.c.session_id == response.session_id,
            scores.c.trial_index == response.trial["trial_index"],
            scores.c.attempt == response.attempt,
            scores.c.scorer == score.scorer,
            scores.c.scorer_version == str(score.version),
        )
        .order_by(scores.c.score_id.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return row is not None and tuple(row) == (
        score.response,
        score.response_status,
        score.correct,
        score.score,
    )


def note(outcome: Rescored, response: StoredResponse, score: Score, *, counts: bool) -> bool:
    """Count a score that differs from the one in the tables, as a change or an additional one; return whether it differs."""
    before = response.counts
    old = "none" if before is None else _in_words(before["response_status"], before["correct"])
    new = _in_words(score.response_status, score.correct)
    if before is not None and (old, before["response"], before["score"]) == (
        new,
        score.response,
        score.score,
    ):
        return False
    if counts:
        outcome.changed += 1
        outcome.moved[old, new] += 1
    else:
        outcome.beside += 1
        outcome.moved_beside[old, new] += 1
        outcome.kept["none" if before is None else str(before["scorer"])] += 1
    if len(outcome.examples) < SHOWN_CHANGES:
        outcome.examples.append(
            {
                "reader": response.reader,
                "item_id": response.trial["item_id"],
                "reply": (response.raw or "")[:200],
                "before": None if before is None else before["response"],
                "now": score.response,
                "from": old,
                "to": new,
                "in_tables": counts,
            }
        )
    return True


def write_scores(store: Store, scored: list[tuple[StoredResponse, Score]]) -> None:
    """Add scores in one transaction."""

    def write(connection: Connection) -> None:
        for response, score in scored:
            records.store_score(
                connection, response.session_id, response.trial["trial_index"], response.attempt, score
            )

    if scored:
        store.write(write).result()


def require_judge(study: Study, judge: str) -> dict[str, Any]:
    """Return the settings of the judge model."""
    if judge not in study.models:
        raise unknown_name("model", judge, study.models)
    settings = study.models[judge]
    if str(settings["use"]).startswith("baseline:"):
        raise UserError(
            f"model {judge!r} is a baseline, and baselines read nothing",
            mend="Let a model judge that reads text.",
        )
    if settings.get("judge"):
        raise UserError(
            f"model {judge!r} is itself read by a judge", mend="Let a model judge that answers by itself."
        )
    return settings


def _scorer_of(response: StoredResponse) -> tuple[str, str] | None:
    counts = response.counts
    return None if counts is None else (counts["scorer"], counts["scorer_version"])


def _in_words(status: str, correct: bool | None) -> str:
    if status != "valid":
        return status
    return "not judged" if correct is None else "right" if correct else "wrong"


def _reply_statuses(connection: Connection, session_id: str) -> dict[int, str]:
    """Return the engine's status of the reply behind each trial's response."""
    query = (
        select(calls.c.trial_index, calls.c.status, calls.c.text, calls.c.label_logprobs, calls.c.reasoning)
        .where(
            calls.c.session_id == session_id,
            calls.c.purpose.in_(ANSWERS),
            calls.c.status.not_in(("error", "timeout")),
        )
        .order_by(calls.c.call_id)
    )
    return {
        int(row.trial_index): status_for_scoring(str(row.status), row.text, row.label_logprobs, row.reasoning)
        for row in connection.execute(query)
    }
