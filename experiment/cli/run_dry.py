"""Shows what ``wrods run`` would send: the first prompt of each kind exactly as sent, and what all of it may cost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from stimuli.errors import UserError

if TYPE_CHECKING:
    from experiment.models.engine import Request
    from experiment.models.money import Price
    from experiment.models.planning import ModelSession
    from experiment.store import Store
    from experiment.study import Study

BYTES_A_TOKEN = 4.0
"""English text has about four bytes a token; a rough guess where the server alone knows."""

PICTURES = "pictures"
"""Folder of a study into which pictures are written that would be sent."""

COUNTED_SESSIONS = 8
COUNTED_PROMPTS = 200
MOST_NAMED = 100
"""Kinds of prompts that are named where they are not shown."""


def preview(study: Study, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model would be sent: the first prompt of each kind, counts, tokens and costs."""
    from experiment.models.engine import Previews
    from experiment.models.engines import open_engine
    from experiment.models.money import price_of
    from experiment.models.planning import kinds_of, request_json
    from experiment.models.runs import latest_version, sessions_of, settings_of

    options = {key: value for key, value in settings.items() if key != "use"}
    model = replace(settings_of(study, settings["use"], options), sends=False)
    price = price_of(model)
    engine = open_engine(model)
    with closing(engine), store_of_people(study) as store:
        plan = sessions_of(study, name, model, engine, store, latest_version(study, store))
        kinds = kinds_of(plan())
        if not kinds.trials:
            raise UserError(
                "no trial of this study asks for an answer",
                mend="Give the block a choose, recover or answer step.",
            )
        show = engine.preview if isinstance(engine, Previews) else request_json
        prompts = [
            {
                "set": one.cell.materials, "trial_type": one.cell.trial_type, "purpose": one.cell.purpose,
                "is_practice": one.cell.is_practice, "block": one.cell.block, "condition": dict(one.cell.condition),
                "kind": str(one.cell), "of_this_kind": kinds.counts[one.cell],
                "item_id": one.trial["item_id"], "turn": one.turn, "stands_in": one.stands_in,
                "labels": one.request.labels, **show(one.request),
            }
            | _pictures_of(study, one.request)
            for one in kinds.examples
        ]  # fmt: skip
        judged = _judged(study, name, model.options.get("judge"), next(iter(plan())))
        tokens, is_guess, written = _tokens(plan(), show, model.kind, price)
    read = round(tokens * kinds.trials) if tokens is not None else None
    return {
        "model": name,
        "use": settings["use"],
        "sessions": kinds.sessions,
        "trials": kinds.trials,
        "kinds": [{"kind": str(cell), "requests": count} for cell, count in kinds.counts.items()],
        "prompt_tokens": read,
        "tokens_are_a_guess": is_guess,
        "cost_usd": None
        if read is None or price.is_free
        else _cost(price, read, round(written * kinds.trials)),
        "price": price.describe(),
        "room": price.room,
        "prompts": prompts + judged,
    }


def _pictures_of(study: Study, request: Request) -> dict[str, Any]:
    """Write the pictures of a request into the study's folder and say where they lie; nothing where it has none."""
    found = []
    for message in request.messages:
        for picture in message.pictures:
            file = study.folder / PICTURES / f"{picture.sha256[:16]}.png"
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(picture.png)
            found.append({**picture.to_json(), "file": str(file)})
    return {"pictures": found} if found else {}


def _judged(study: Study, name: str, judge: object, session: ModelSession) -> list[dict[str, Any]]:
    """Return what the model's judge would be sent about its first reply to a choice, the right answer standing in for it."""
    from experiment.models.engine import Previews
    from experiment.models.engines import open_engine
    from experiment.models.judges.judging import judge_request
    from experiment.models.planning import request_json, right_answer
    from experiment.models.runs import settings_of
    from experiment.scoring.again import Response

    trial = next((one for one in session.trials if one["steps"][-1]["step"] == "choose"), None)
    if judge is None or str(judge) not in study.models or trial is None:
        return []
    given = study.models[str(judge)]
    options = {key: value for key, value in given.items() if key != "use"}
    settings = replace(settings_of(study, str(given["use"]), options), sends=False)
    reply = right_answer(trial)
    stored = Response(
        name,
        "model",
        session.session_id,
        session.plan,
        trial,
        1,
        next(session.keys),
        reply,
        False,
        "answered",
        None,
    )
    request = judge_request(study, str(judge), settings, stored)
    with closing(open_engine(settings)) as engine:
        show = engine.preview if isinstance(engine, Previews) else request_json
        return [
            {
                "set": trial["set"], "trial_type": trial["trial_type"], "purpose": f"judge {judge}", "is_practice": False,
                "block": trial["block"], "condition": dict(trial["condition"] or {}), "kind": "judge", "of_this_kind": None,
                "item_id": trial["item_id"], "turn": 1, "stands_in": True, "labels": request.labels, **show(request),
            }
        ]  # fmt: skip


def _levels(condition: Mapping[str, str]) -> str:
    return ", ".join(f"{factor} {level}" for factor, level in condition.items())


def _tokens(plan: Any, show: Any, kind: str, price: Price) -> tuple[float | None, bool, float]:
    """Return tokens read a trial, whether that is a guess, and the most tokens written a trial, thoughts among them.

    Turns of a conversation send again what was said before; right answers stand in for the model's.
    """
    from experiment.models.runs.talks import grows, turns_of

    read: list[float] = []
    written: list[int] = []
    is_guess = False
    for session in islice(plan, COUNTED_SESSIONS):
        requests = session.begin({})
        a_character = 1 / BYTES_A_TOKEN
        for request in requests[:: max(1, len(requests) * COUNTED_SESSIONS // COUNTED_PROMPTS)]:
            known = show(request).get("tokens")
            written.append(price.most_tokens(request)[1])
            if grows(session):
                if isinstance(known, int) and request.messages:
                    a_character = known / max(1, sum(len(message.content) for message in request.messages))
                continue
            if isinstance(known, int):
                read.append(known)
                continue
            is_guess = True
            seen = sum(message.picture_tokens for message in request.messages)
            read.append(
                sum(len(message.content.encode()) for message in request.messages) / BYTES_A_TOKEN + seen
            )
        if grows(session):
            is_guess = True
            read += [chars * a_character for chars, _ in turns_of(session, {}).values()]
    if not read or (is_guess and kind == "baseline"):
        return None, is_guess, 0.0
    return sum(read) / len(read), is_guess, sum(written) / len(written)


def _cost(price: Any, read: int, written: int) -> dict[str, float]:
    """Return what reading costs, and what reading and the longest answers cost."""
    return {
        "reading": read * price.input / 1e6,
        "at_most": (read * price.input + written * price.output) / 1e6,
    }


@contextmanager
def store_of_people(study: Study) -> Iterator[Store | None]:
    """Open the store where models follow people; None where they do not, or where nobody has answered yet."""
    from experiment.cli.study_store import store_of
    from experiment.models.planning import needs_people

    store = store_of(study) if needs_people(study) else None
    try:
        yield store
    finally:
        if store is not None:
            store.close()


def print_previews(shown: list[dict[str, Any]], *, as_json: bool) -> None:
    """Print previews, as JSON or for people."""
    from experiment.models.money import written

    if as_json:
        click.echo(json.dumps(shown, ensure_ascii=False, indent=1))
        return
    for model in shown:
        for prompt in model["prompts"]:
            answers = ", ".join(prompt["labels"]) if prompt["labels"] else "text"
            more = "".join(
                part
                for part, holds in (
                    (f", {prompt['purpose']}", prompt["purpose"] != "answer"),
                    (", practice", prompt["is_practice"]),
                    (f", question {prompt['turn']} of a conversation", prompt["turn"] > 1),
                    (f", {_levels(prompt['condition'])}", bool(prompt["condition"])),
                    (f", {prompt['of_this_kind']} of this kind", prompt["of_this_kind"] is not None),
                    (", right answers stand in for the model's", prompt["stands_in"]),
                )
                if holds
            )
            rule = f"── {model['model']}: {prompt['block']}, {prompt['set']}, item {prompt['item_id']}, answers {answers}{more} "
            click.echo(rule.ljust(100, "─"))
            if "url" in prompt:
                click.echo(f"POST {prompt['url']}")
            click.echo(
                prompt["text"]
                if "text" in prompt
                else json.dumps(prompt["body"], ensure_ascii=False, indent=1)
            )
            for number, picture in enumerate(prompt.get("pictures", ()), 1):
                size = f"{picture['width']} × {picture['height']} pixels"
                click.echo(f"picture {number}: {picture['file']} ({size}): {picture['text']}")
        click.echo("─" * 100)
        hidden = len(model["kinds"]) - sum(prompt["of_this_kind"] is not None for prompt in model["prompts"])
        if hidden > 0:
            click.echo(f"{model['model']}: {len(model['kinds'])} kinds of prompts; these as well, not shown:")
            seen = {prompt["kind"] for prompt in model["prompts"]}
            for kind in [one for one in model["kinds"] if one["kind"] not in seen][:MOST_NAMED]:
                click.echo(f"  {kind['requests']} of {kind['kind']}")
        tokens = f", about {model['prompt_tokens']} prompt tokens" if model["prompt_tokens"] else ""
        guess = " (guessed from the length of the texts)" if tokens and model["tokens_are_a_guess"] else ""
        cost = model["cost_usd"]
        thoughts = f" and {model['room']} tokens for thoughts and form with each" if model["room"] else ""
        money = (
            f"; {written(cost['reading'])} for reading, at most {written(cost['at_most'])} with the longest answers{thoughts} "
            f"({model['price']['source']})"
            if cost
            else ""
        )
        click.echo(
            f"{model['model']} ({model['use']}): {model['trials']} trials in {model['sessions']} sessions{tokens}{guess}{money}"
        )
        if str(model["use"]).startswith("openai:"):
            click.echo(
                "  Before the first trial a few tiny requests find out what the server takes; what it refuses by name is left "
                "out of these."
            )
    click.echo("Nothing was sent.")
