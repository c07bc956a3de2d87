"""Sends simulated readers through the participant interface, as fast as asked, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import aiohttp

from experiment.simulated.reader import SimulatedReader, new_uuid
from experiment.simulated.truth import Truth
from experiment.store import Store, queries
from experiment.study import Study
from stimuli.errors import UserError
from stimuli.seeds import generator

RETRIES = 6


async def take_part(
    api: str,
    given_pass: str,
    readers: Sequence[SimulatedReader],
    *,
    at_once: int = 8,
    pause: float = 0.0,
    told: Callable[[SimulatedReader, int], None] | None = None,
) -> None:
    """Send readers through the participant interface, several at a time, each answering every trial of its plan.

    ``api``: ``http://127.0.0.1:PORT/api/STUDY``.
    """
    gate = asyncio.Semaphore(at_once)
    async with aiohttp.ClientSession(headers={"X-Wrods": "1"}) as http:
        opened = [await _open(http, api, given_pass, reader) for reader in readers]

        async def one(reader: SimulatedReader, session: Mapping[str, Any]) -> None:
            async with gate:
                count = await _go_through(http, api, reader, session, pause)
                if told:
                    told(reader, count)

        await asyncio.gather(*(one(*pair) for pair in zip(readers, opened, strict=True)))


def begin_at(store: Store, study: str) -> int:
    """Return the number that the next simulated reader of a study gets, from 1."""
    with store.read() as connection:
        sessions_so_far = queries.sessions_overview(connection, study)
    return 1 + len([one for one in sessions_so_far if one["reader_kind"] == "simulated"])


def fill(
    study: Study,
    truth: Truth,
    api: str,
    given_pass: str,
    *,
    readers: int,
    first: int = 1,
    pause: float = 0.0,
    told: Callable[[int], None] = lambda _: None,
) -> int:
    """Send so many readers through the participant interface."""
    everyone = [SimulatedReader(f"S{first + i:03d}", study, truth) for i in range(readers)]
    done = 0

    def count(_: SimulatedReader, trials: int) -> None:
        nonlocal done
        done += trials
        told(trials)

    # a thread of its own, for the caller's may have an event loop already (a notebook, say)
    with ThreadPoolExecutor(max_workers=1) as apart:
        apart.submit(asyncio.run, take_part(api, given_pass, everyone, pause=pause, told=count)).result()
    return done


async def _open(
    http: aiohttp.ClientSession, api: str, given_pass: str, reader: SimulatedReader
) -> dict[str, Any]:
    """Begin a reader's session; readers begin one after the other, so that numbers and lists do not depend on chance."""
    draw = generator(reader.seed, "simulated session", reader.name)
    client = {"browser": "simulated", "system": "simulated", "device": "simulated"}
    body = {"client_uuid": new_uuid(draw), "simulated": True, "pass": given_pass, "client": client}
    return dict(await _post(http, f"{api}/sessions", body))


async def _go_through(
    http: aiohttp.ClientSession, api: str, reader: SimulatedReader, session: Mapping[str, Any], pause: float
) -> int:
    token = {"Authorization": f"Bearer {session['token']}"}
    base = f"{api}/sessions/{session['session_id']}"
    done = {(index, attempt) for index, attempt in session["done"]}
    count = 0
    for screen in reader.plan(session)["screens"]:
        if screen["kind"] == "questions":
            draw = generator(reader.seed, "simulated questions", reader.name, screen["name"])
            body = {
                "client_uuid": new_uuid(draw),
                "screen": screen["name"],
                "answers": reader.answers(screen),
            }
            await _post(http, f"{base}/answers", body, token)
        for trial in screen.get("trials", ()):
            payload = reader.answer(trial)
            count += 1
            if (trial["trial_index"], 1) not in done:
                await _post(http, f"{base}/trials", payload, token)
                await asyncio.sleep(pause)
    await _post(http, f"{base}/finish", {"trials": count}, token)
    return count


async def _post(
    http: aiohttp.ClientSession, url: str, body: Any, headers: Mapping[str, str] | None = None
) -> Any:
    problem = ""
    for attempt in range(RETRIES):
        try:
            async with http.post(url, json=body, headers=headers) as answer:
                if answer.status < 300:
                    return await answer.json()
                problem = f"{answer.status} {await answer.text()}"
                if answer.status < 500 and answer.status != 429:
                    break
        except aiohttp.ClientError as error:
            problem = str(error)
        await asyncio.sleep(0.2 * 2**attempt)
    raise UserError(f"the server did not take {url}: {problem}", exit_code=1)
