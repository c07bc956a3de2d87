"""A few tiny requests that find out what an endpoint has, before money is spent on what it lacks.

1. A choice with everything that is usual: what the server refuses by name is dropped and noted, what it takes and does
   not give (log-probabilities that do not come) is seen from the answer, and so is whether its first token is a label at all.
2. The same asked for a word, held to labels: a server that only seems to heed it writes the word.
3. A prompt whose own log-probabilities are asked for, twice: they differ where a server caches prefixes. What is told of the
   first tokens of an answer is held against what is told of them as the end of a prompt: some servers are off by a token.
4. A word in a picture, where the study shows pictures: a server that refuses it ends the run before money is spent.
5. Letters drawn at temperature 1, twice with one seed and once with another: a seed that is heeded gives the same twice, a server
   that draws at all gives another text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from importlib.resources import files
from statistics import fmean
from typing import Any

from experiment.models.api.asking import Asking, Till, Unanswered
from experiment.models.api.capabilities import UNTRIED, Capabilities
from experiment.models.api.dialects import STRUCTURES, Structure
from experiment.models.api.first_token import LEAST_MASS
from experiment.models.api.retrying import (
    RunStopped,
    no_whole_labels,
)
from experiment.models.api.surfaces import Speaker
from experiment.models.api.transport import Transport
from experiment.models.engine import Message, Reply, Request, Span
from experiment.models.pictures import MARK, Picture
from stimuli.seeds import stable_seed

DRAWN_TOKENS = 12
MOST_COMPARED = 4
MOST_DIFFERENT = 0.1
"""Nats between two tellings of one log-probability, on average; half precision differs by a tenth of that."""
_TOLERANCE = 1e-6

_LEAVABLE: Mapping[str, Mapping[str, Any]] = {
    "log-probabilities": {"top_logprobs": 0},
    "the fields that switch off its own sampling": {"unfiltered": {}},
    "stop texts": {"stop": False},
    "a seed": {"seed": False},
    "top_p": {"top_p": False},
    "a temperature": {"temperature": False},
    "a system message": {"system": False},
}
"""What a request can do without, where a server fails and does not say at what."""


def questions() -> dict[str, Any]:
    """Return what a server is asked to find out what it can give, and whether it answers at all."""
    return dict(json.loads((files(__package__) / "probe.json").read_text("utf-8")))


async def probe(
    transport: Transport,
    speaker: Speaker,
    *,
    key: str | None,
    timeout: float,
    pace: float = 1.0,
    till: Till | None = None,
) -> tuple[Capabilities, dict[str, int]]:
    """Find out what an endpoint has and set the speaker's dialect right."""
    asking = Asking(transport, speaker, key=key, timeout=timeout, pace=pace, till=till)
    dialect, wishes = speaker.dialect, speaker.wishes
    texts = questions()
    remarks: list[str] = []
    plain = replace(speaker, wishes=replace(wishes, label_only=False, whole_labels=False))
    reply = await _first(asking, plain, _choice(texts["choice"]), remarks)
    top = dialect.top_logprobs if reply is not None and reply.path and "logprobs" in reply.path else 0
    if reply is not None and top == 0 and dialect.top_logprobs:
        dialect.top_logprobs = 0
        remarks.append("It takes a request for log-probabilities and sends none.")
    thinks = reply is not None and bool(reply.reasoning or reply.reasoning_tokens)
    if reply is not None and top and (remark := _of_labels(reply)):
        remarks.append(remark)
    # what takes no answer needs no room for thoughts
    short = replace(plain, wishes=replace(plain.wishes, thinking_tokens=0))
    is_stable = await _find_prompt_logprobs(asking, short, texts["prompt"], remarks)
    if wishes.whole_labels and not dialect.prompt_logprobs:
        raise no_whole_labels(remarks)
    pictures = await _find_pictures(asking, plain, texts["picture"], remarks) if wishes.pictures else None
    # each answer with room for thoughts may cost thousands of tokens: what the study does not ask for is not tried
    is_dear = thinks and wishes.thinking_tokens > 0
    is_held = wishes.label_only or not is_dear
    tokens = await _find_structure(asking, speaker, texts["structure"], remarks) if is_held else {}
    heeds_seed, draws_differ = (None, None) if is_dear else await _find_draws(asking, plain, texts["draw"])
    if draws_differ is False:
        remarks.append(
            "It wrote the same at temperature 1 with two seeds: it may not draw at all, and replicates may all be the same."
        )
    elif heeds_seed is False:
        remarks.append("It takes a seed and does not heed it: the same one gave two texts.")
    if reply is not None and thinks and reply.status in ("truncated", "empty"):
        remarks.append(
            "Its thoughts took all the room that the probe gave: set thinking_tokens or max_tokens."
        )
    return Capabilities(
        model=speaker.model,
        base_url=asking.transport.base_url,
        api=wishes.surface,
        resolved_model=reply.resolved_model if reply is not None else None,
        top_logprobs=top,
        prompt_logprobs=dialect.prompt_logprobs,
        stable_prompt_logprobs=is_stable,
        seed=dialect.seed,
        heeds_seed=heeds_seed,
        draws_differ=draws_differ,
        unfiltered=tuple(dialect.unfiltered),
        temperature=dialect.temperature,
        system_role=dialect.system,
        structure=dialect.structure if is_held else UNTRIED,
        thinks=thinks,
        reasoning_counts=reply is not None and reply.reasoning_tokens is not None,
        cached_counts=reply is not None and reply.cached_tokens is not None,
        pictures=pictures,
        limit_name=dialect.limit_name,
        requests=asking.count,
        answered=asking.has_answered,
        remarks=tuple(remarks),
    ), tokens


def _choice(texts: Mapping[str, Any]) -> Request:
    messages = (Message("system", texts["system"]), Message("user", texts["user"]))
    return Request("probe", messages, tuple(texts["labels"]), 16, 0.0, stable_seed("probe"), stop=("\n\n\n",))


async def _first(asking: Asking, speaker: Speaker, request: Request, remarks: list[str]) -> Reply | None:
    """Ask the choice as sampling sends it, so that a seed is tried too, then at the study's own temperature 0."""
    drawn = replace(request, temperature=1.0) if speaker.dialect.seed else request
    try:
        return await asking.ask(drawn, speaker)
    except Unanswered as fault:
        return await _without(asking, speaker, drawn, str(fault), remarks)


async def _without(
    asking: Asking, speaker: Speaker, request: Request, fault: str, remarks: list[str]
) -> Reply | None:
    """Find what a server cannot do with where it does not name it: ask without one thing, then without all."""
    dialect, wishes = speaker.dialect, speaker.wishes
    needed = {"a temperature": wishes.temperature_given, "a system message": bool(wishes.system_role)}
    ways = {name: given for name, given in _LEAVABLE.items() if not needed.get(name)}
    everything = {field: value for given in ways.values() for field, value in given.items()}
    for name, given in {**ways, ", ".join(ways): everything}.items():
        before = {field: getattr(dialect, field) for field in given}
        if before == given:
            continue
        for field, value in given.items():
            setattr(dialect, field, copy(value))
        try:
            reply = await asking.ask(request, speaker, tries=1)
        except Unanswered:
            for field, value in before.items():
                setattr(dialect, field, value)
        else:
            remarks.append(f"It fails where it is asked for {name}, which is left out: {fault}")
            return reply
    remarks.append(f"It did not answer the probe: {fault}")
    return None


def _of_labels(reply: Reply) -> str | None:
    """Say where the choice was answered with other words first, so that a first token tells little of labels."""
    if reply.label_logprobs is None and reply.label_bounds is None:
        return None
    mass = math.fsum(math.exp(value) for value in (reply.label_logprobs or {}).values())
    if mass >= LEAST_MASS:
        return None
    return (
        f"Asked for one of two letters, its first token was one of them with a probability of {mass:.2g}: it opens answers with other "
        "words. Choices are read from what it writes; their label_logprobs say little, unless label_only: true holds it to labels or "
        "label_scoring: whole scores them."
    )


async def _find_pictures(
    asking: Asking, speaker: Speaker, texts: Mapping[str, Any], remarks: list[str]
) -> bool:
    """Find out whether the model reads a word from a picture; False where it takes the picture and reads another."""
    message = Message("user", f"{texts['user']}\n\n{MARK}", (Picture.of(str(texts["word"])),))
    try:
        reply = await asking.ask(Request("probe", (message,), None, 16, 0.0, 0), speaker)
    except Unanswered as fault:
        raise RunStopped(
            f"{speaker.model} at {asking.transport.base_url} takes no pictures: {fault}",
            mend="Name a model that looks at pictures, or show this one text (presentation: text).",
        ) from fault
    if str(texts["word"]) in f"{reply.reasoning or ''}{reply.text or ''}".lower():
        return True
    remarks.append(
        f"It takes a picture and did not read the word in it (it wrote {(reply.text or '')[:40]!r}): what it answers to pictures may "
        "tell nothing of them."
    )
    return False


async def _find_draws(
    asking: Asking, speaker: Speaker, texts: Mapping[str, Any]
) -> tuple[bool | None, bool | None]:
    """Find out whether a seed gives the same text twice, and whether another gives another."""
    if not speaker.dialect.temperature:
        return None, None
    request = Request("probe", (Message("user", texts["user"]),), None, DRAWN_TOKENS, 1.0, 0)
    one, other = stable_seed("probe", 1), stable_seed("probe", 2)
    drawn = []
    try:
        for seed in (one, one, other):
            reply = await asking.ask(replace(request, seed=seed), speaker)
            drawn.append(f"{reply.reasoning or ''}{reply.text or ''}")
    except Unanswered:
        return None, None
    if not any(drawn) or not speaker.dialect.temperature:
        return None, None
    differs = len(set(drawn)) > 1
    return (drawn[0] == drawn[1]) if differs and speaker.dialect.seed else None, differs


async def _find_prompt_logprobs(
    asking: Asking, speaker: Speaker, texts: Mapping[str, Any], remarks: list[str]
) -> bool | None:
    """Find out whether the prompt's log-probabilities are told, right, and the same twice."""
    dialect = speaker.dialect
    if speaker.wishes.surface == "responses" or not dialect.prompt_logprobs:
        dialect.prompt_logprobs = False
        return None
    text = str(texts["user"])
    request = Request("probe", (Message("user", text),), None, 1, 0.0, 0, regions=(Span(0, 4, len(text)),))
    try:
        first = await asking.ask(request, speaker)
        if not first.regions or first.regions[0].surprisal is None:
            dialect.prompt_logprobs = False
            return None
        second = await asking.ask(request, speaker)
        differences = await _differences(asking, speaker, replace(request, regions=()))
    except Unanswered:
        dialect.prompt_logprobs = False
        return None
    if differences and fmean(differences) > MOST_DIFFERENT:
        dialect.prompt_logprobs = False
        remarks.append(
            "Its log-probabilities of the prompt are not those that it tells of its own answers (the same tokens differ by "
            f"{fmean(differences):.2f} nats): they are wrong, and not used."
        )
        return None
    if not differences:
        remarks.append(
            "Whether its log-probabilities of the prompt are those of its answers could not be compared."
        )
    again = second.regions[0].surprisal if second.regions else None
    return again is not None and abs(again - first.regions[0].surprisal) < _TOLERANCE


async def _differences(asking: Asking, speaker: Speaker, request: Request) -> list[float]:
    """Compare what is told of some first tokens of an answer with what is told of them as the end of the prompt."""
    if not speaker.dialect.top_logprobs:
        return []
    drawn = replace(request, labels=("A", "B"), temperature=1.0)
    token = await asking.hold(speaker.first_token(drawn), speaker)
    found: list[float] = []
    alternatives = () if token is None else sorted(token.alternatives, key=lambda one: -one[1])
    plain = [one for one in alternatives if re.fullmatch(r" ?[A-Za-z]+", one[0])]
    for text, told in plain[:MOST_COMPARED]:
        if speaker.wishes.surface == "chat" and text.startswith(" "):
            continue
        tokens, _ = await asking.hold(speaker.read_ending(request, text), None)
        last = tokens[-1] if tokens else None
        if last is not None and last.text == text and last.logprob is not None:
            found.append(abs(last.logprob - told))
    return found


def _ways(speaker: Speaker, has_openai_models: bool) -> tuple[Structure, ...]:
    """Return the ways of holding answers to labels that a server of this kind may know."""
    if has_openai_models:
        return ("json_schema",)
    if speaker.wishes.surface == "completions":
        return tuple(one for one in STRUCTURES if one != "json_schema")
    return STRUCTURES


async def _find_structure(
    asking: Asking, speaker: Speaker, texts: Mapping[str, Any], remarks: list[str]
) -> dict[str, int]:
    """Find the first way of holding answers to labels that the server heeds."""
    dialect = speaker.dialect
    labels = tuple(texts["labels"])
    held = replace(speaker, wishes=replace(speaker.wishes, label_only=True, whole_labels=False))
    request = Request("probe", (Message("user", texts["user"]),), labels, 8, 0.0, 0)
    for structure in _ways(speaker, asking.has_openai_models):
        tokens: dict[str, int] = {}
        if structure == "logit_bias":
            asking.count += len(labels)
            tokens = await asking.transport.tokens_of(speaker.model, labels, seconds=asking.timeout)
            if not tokens:
                continue
        dialect.structure = structure
        try:
            one = replace(held, label_tokens=tokens)
            reply = await asking.ask(request, one, learns=False)
        except Unanswered:
            continue
        if ((reply.generated or reply.text) or "").strip() in labels:
            return tokens
    dialect.structure = "none"
    if speaker.wishes.label_only:
        remarks.append("label_only is set, and no way of holding answers to labels is heeded here.")
    return {}
