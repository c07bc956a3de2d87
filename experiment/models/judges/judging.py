"""Judges: models of a study that read another model's reply and decide which label it gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import Connection, select

from experiment.models.engine import UNFINISHED, Engine, Message, ModelSettings, Reply, Request
from experiment.models.journal import ModelCalls
from experiment.models.planning.session import request_json, request_key
from experiment.models.prompts.prompter import Prompter, judge_prompt
from experiment.parsing.labels import parse_label
from experiment.scoring.published import judge_of, judged_label
from experiment.scoring.rescoring import (
    MODEL_KINDS,
    RATED,
    Rescored,
    StoredResponse,
    note,
    responses,
    write_scores,
)
from experiment.scoring.trial import Score
from experiment.store import Store, records
from experiment.store.tables import scores
from experiment.study import Study
from experiment.trials import CHOSEN
from stimuli.seeds import stable_seed

JUDGE = "judge"
VERSION = 1
AT_ONCE = 500
_SEED_BITS = 63


def judge_request(study: Study, judge: str, settings: ModelSettings, response: StoredResponse) -> Request:
    """Return the request for a judge of a response (its key ends in ``:judge``), with the paper's prompt if published."""
    labels = tuple(response.trial["steps"][-1]["labels"])
    options = settings.options
    seed = stable_seed(study.seed, JUDGE, judge, response.session_id, response.trial["trial_index"]) >> (
        64 - _SEED_BITS
    )
    key = f"{response.work_key}:{JUDGE}"
    if (name := _papers_judge(study, response)) is not None:
        paper = judge_prompt(name, response.raw or "", labels)
        temperature = float(str(options.get("temperature", paper.temperature)))
        return Request(
            key, (Message("user", paper.text),), None, paper.max_tokens, temperature, seed, purpose=JUDGE
        )
    turn = Prompter(response.plan).judge(response.raw or "", labels)
    limit = int(str(options.get("max_tokens", turn.max_tokens)))
    temperature = float(str(options.get("temperature", 0.0)))
    return Request(key, (Message("user", turn.text),), turn.labels, limit, temperature, seed, purpose=JUDGE)


def _papers_judge(study: Study, response: StoredResponse) -> str | None:
    return judge_of(response.trial) if "prompts" in study.published else None


def judge_verdict(study: Study, judge: str, stored: StoredResponse, reply: Reply) -> Score:
    """Return the score in a judge's reply to a response; ``unparsed`` if the judge finds no answer."""
    step = stored.trial["steps"][-1]
    if _papers_judge(study, stored) is not None:
        label = judged_label(stored.trial, reply.text or "")
    else:
        label = parse_label(reply.text, [*step["labels"], Prompter(stored.plan).words["none"]]).value
    name = f"{JUDGE}:{judge}-{VERSION}"
    if label not in step["labels"]:
        return Score(
            None, "truncated" if stored.status == "truncated" else "unparsed", None, None, name, VERSION
        )
    response = step["responses"][step["labels"].index(label)]
    correct = response == stored.trial["answer"]
    return Score(response, "valid", correct, float(correct), name, VERSION)


@dataclass(frozen=True)
class OpenedJudge:
    """The engine of a judge, the calls that may be made, and the run to which they belong."""

    engine: Engine
    calls: ModelCalls | None = None
    run_id: str | None = None


def judge_again(
    study: Study,
    store: Store,
    opened: OpenedJudge | None,
    judge: str,
    settings: ModelSettings,
    *,
    reader: str | None = None,
) -> tuple[Rescored, int]:
    """Have a model judge the stored replies to choices, each once; return the changes and the number of replies.

    Unless the judge is ``opened`` nothing is sent and the replies are only counted; without a ``reader`` they are those of the models
    whose judge this is, or all.
    """
    readers_of_judge = _judged_by(study, judge)
    outcome = Rescored(f"{JUDGE}:{judge}", bool(readers_of_judge))
    with store.read() as connection:
        waiting = list(_waiting(study, connection, outcome, judge, reader))
    if opened is None:
        return outcome, len(waiting)
    engine = opened.engine
    identity = engine.describe()["identity"]
    assert isinstance(identity, dict)
    calls = opened.calls or ModelCalls()
    keeps_journal = hasattr(engine, "calls")
    if keeps_journal:
        engine.calls = calls  # type: ignore[attr-defined]
    for start in range(0, len(waiting), AT_ONCE):
        requests_by_key = {}
        for response in waiting[start : start + AT_ONCE]:
            request = judge_request(study, judge, settings, response)
            if not keeps_journal and not calls.take(request):
                break
            requests_by_key[request.work_key] = (response, request)
        for reply in engine.answer([request for _, request in requests_by_key.values()]):
            response, request = requests_by_key[reply.work_key]
            row = _call(response, request, reply, identity) | {
                "run_id": opened.run_id,
                "cost_usd": calls.settle(reply),
            }
            store.write(partial(records.store_call, call=row)).result()
            if reply.status in UNFINISHED:
                outcome.failed += 1
                continue
            score = judge_verdict(study, judge, response, reply)
            counts = response.reader in readers_of_judge
            note(outcome, response, score, counts=counts)
            outcome.added += 1
            write_scores(
                store,
                [(response, score if counts else replace(score, scorer=f"{records.BESIDE}{score.scorer}"))],
            )
        calls.end()
        outcome.stopped = calls.full
        if outcome.stopped is not None:
            break
    return outcome, len(waiting)


def first_judged(
    study: Study, store: Store, judge: str, settings: ModelSettings, *, reader: str | None = None
) -> Request | None:
    """Return the first request that a judge would receive; None if it has nothing to read."""
    with store.read() as connection:
        response = next(_waiting(study, connection, Rescored(JUDGE, True), judge, reader), None)
    return None if response is None else judge_request(study, judge, settings, response)


def _judged_by(study: Study, judge: str) -> set[str]:
    return {name for name, given in study.models.items() if given.get(JUDGE) == judge}


def _waiting(
    study: Study, connection: Connection, outcome: Rescored, judge: str, reader: str | None
) -> Iterator[StoredResponse]:
    scorer, readers_of_judge = f"{JUDGE}:{judge}-{VERSION}", _judged_by(study, judge)
    wanted = readers_of_judge if readers_of_judge and reader is None else None
    for response in responses(study, connection, reader=reader):
        if (
            response.reader_kind not in MODEL_KINDS
            or response.reader == judge
            or response.trial["trial_type"] not in CHOSEN
            or response.trial["steps"][-1].get("several")
        ):
            continue
        if wanted is not None and response.reader not in wanted:
            continue
        if response.counts is not None and str(response.counts["scorer"]).startswith(RATED):
            outcome.rated += 1
            continue
        outcome.responses += 1
        if (response.raw or "").strip() and not _has_judged(connection, response, scorer):
            yield response


def _has_judged(connection: Connection, response: StoredResponse, scorer: str) -> bool:
    query = select(scores.c.score_id).where(
        scores.c.session_id == response.session_id,
        scores.c.trial_index == response.trial["trial_index"],
        scores.c.attempt == response.attempt,
        scores.c.scorer.in_((scorer, f"{records.BESIDE}{scorer}")),
    )
    return connection.scalar(query.limit(1)) is not None


def _call(
    response: StoredResponse, request: Request, reply: Reply, identity: dict[str, Any]
) -> dict[str, Any]:
    copied_names = (
        "text", "status", "label_logprobs", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens",
        "latency_ms", "ttft_ms", "finish_reason", "requested_model", "resolved_model", "dtype", "path", "error",
        "attempts",
    )  # fmt: skip
    return {name: getattr(reply, name) for name in copied_names} | {
        "request_key": request_key(identity, request),
        "work_key": response.work_key,
        "session_id": response.session_id,
        "trial_index": response.trial["trial_index"],
        "attempt": response.attempt,
        "purpose": JUDGE,
        "request": request_json(request),
        "temperature": request.temperature,
        "seed": request.seed,
    }
