"""The peers' side of bench_api.py and bench_faults.py: ``python api_peers.py PEER URL REQUESTS AT_ONCE [SECONDS]``.

Run in an environment that has the peer. Prints one JSON object: wall and processor seconds around the asking alone, how
many prompts came back with an answer, how many as a fault, how many not at all, and how the peer itself ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

Outcome = dict[str, Any]


def prompt(number: int) -> str:
    """Return one question, about as long as an item of H-TEST."""
    return (
        f"Item {number}. Below is a sentence. Say A if its first word is written in capital letters and B if it is not. "
        "Answer with one letter.\nSentence: the engine jumped all night over a fence of green wood.\nAnswer:"
    )


def timed(work: Callable[[], Outcome]) -> Outcome:
    """Return an outcome with the time that it took."""
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    outcome = work()
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, **outcome}


def bare(url: str, count: int, at_once: int, seconds: float | None) -> Outcome:
    """``AsyncOpenAI`` on its aiohttp transport, a semaphore and a list; its own retries at 8 where faults are met."""
    import openai

    limits = openai.DEFAULT_CONNECTION_LIMITS
    limits = type(limits)(max_connections=at_once, max_keepalive_connections=at_once)
    places = asyncio.Semaphore(at_once)
    retries = {} if seconds is None else {"max_retries": 8, "timeout": seconds}
    outcome: Outcome = {"answered": 0, "faults": 0, "ended": "as it should"}

    async def ask(client: Any, number: int) -> None:
        async with places:
            try:
                reply = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": prompt(number)}],
                    max_tokens=8,
                    temperature=0.0,
                )
                outcome["answered"] += reply.choices[0].message.content == "A"
            except Exception:
                outcome["faults"] += 1

    async def all_of_them() -> None:
        http = openai.DefaultAioHttpClient(limits=limits)
        async with openai.AsyncOpenAI(api_key="k", base_url=url, http_client=http, **retries) as client:
            await asyncio.gather(*(ask(client, number) for number in range(count)))

    def work() -> Outcome:
        asyncio.run(all_of_them())
        return outcome

    return timed(work)


def lm_eval(url: str, count: int, at_once: int, seconds: float | None) -> Outcome:
    """lm-evaluation-harness's ``local-chat-completions``, its own way of asking alone, without a task around it."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.api_models import JsonChatStr
    from lm_eval.models.openai_completions import LocalChatCompletion

    given = {} if seconds is None else {"timeout": seconds, "max_retries": 8}
    model = LocalChatCompletion(
        base_url=f"{url}/chat/completions", model="m", num_concurrent=at_once, tokenizer_backend=None, **given
    )
    instances = []
    for number in range(count):
        messages = JsonChatStr(json.dumps([{"role": "user", "content": prompt(number)}]))
        arguments = (messages, {"until": [], "max_gen_toks": 8, "do_sample": False})
        instances.append(Instance("generate_until", {}, arguments, number))

    def work() -> Outcome:
        try:
            answers = model.generate_until(instances, disable_tqdm=True)
        except Exception as error:
            return {"answered": 0, "faults": 0, "ended": f"{type(error).__name__}: every answer lost"}
        good = sum(answer == "A" for answer in answers)
        return {"answered": good, "faults": len(answers) - good, "ended": "as it should"}

    return timed(work)


def inspect(url: str, count: int, at_once: int, seconds: float | None) -> Outcome:
    """Inspect's ``openai-api`` provider: a task of one ``generate``, faults not ending the whole."""
    os.environ |= {"LOCAL_API_KEY": "k", "LOCAL_BASE_URL": url}
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.model import GenerateConfig
    from inspect_ai.solver import generate

    given = {} if seconds is None else {"attempt_timeout": int(seconds), "max_retries": 8}
    config = GenerateConfig(max_tokens=8, temperature=0.0, max_connections=at_once, **given)
    samples = [Sample(input=prompt(number), id=number) for number in range(1, count + 1)]
    task = Task(dataset=samples, solver=generate(), config=config)

    def work() -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            (log,) = evaluate(
                task, model="openai-api/local/m", log_dir=folder, display="none", max_samples=at_once,
                fail_on_error=False, score=False,
            )  # fmt: skip
            found = list(log.samples or [])
            answers = [one.error is None and one.output.completion == "A" for one in found]
        good = sum(answers)
        return {"answered": good, "faults": len(found) - good, "ended": str(log.status)}

    return timed(work)


PEERS = {"bare": bare, "lm-eval": lm_eval, "inspect": inspect}

if __name__ == "__main__":
    name, url, count, at_once, *rest = sys.argv[1:]
    outcome = PEERS[name](url, int(count), int(at_once), float(rest[0]) if rest else None)
    print(json.dumps({**outcome, "missing": int(count) - outcome["answered"] - outcome["faults"]}))
