"""Response times in a real Chromium, ours beside jsPsych's stock keyboard plugin, each against the browser's own paint time.

``python tests/benchmarks/bench_timing.py [--keys 210] [--rounds 2] [--many 10000]``. A key goes through the browser's input
path a known time after the stimulus was painted (Element Timing), each delay in random order and at a random phase of the
frame. The error is the recorded response time less the time from paint to key: once with the key as it was sent (the way into
the browser included, the same for both) and once with the browser's own time stamp of it. The peer runs in the same browser, turn by
turn with ours, from an environment that is thrown away. It says nothing about screens and keyboards, which need a photodiode.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import http.server
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from experiment.bundle import bundle_folder  # noqa: E402
from hatch_build import node_and_npm  # noqa: E402
from tests.browser.plans import ab, block, plan  # noqa: E402
from tests.browser.scripted_server import Listening, ScriptedServer  # noqa: E402

CHROMIUM = "/usr/bin/chromium"
PEER = ("jspsych@8.3.0", "@jspsych/plugin-html-keyboard-response@2.2.0")
PLUGINS = ("wrods-choose", "html-keyboard-response")
CONDITIONS = ("idle", "CPU slowed 4 times", "main thread blocked 50 ms")
DELAYS_MS = (150, 400)
FRAME_MS = 1000 / 60
WARM_UP = 10
# Reports each stimulus's paint to the driver; the same script for both pages.
OBSERVER = """
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (entry.renderTime > 0) window.painted(entry.renderTime, performance.timeOrigin, entry.identifier);
}).observe({ type: "element" });
"""
# Keeps the browser's time stamp of each key; the same script for both pages.
KEYS_SEEN = """
window.keysSeen = [];
addEventListener("keydown", (event) => window.keysSeen.push(event.timeStamp), true);
"""
BLOCKING = """
setInterval(() => { const end = performance.now() + 50; while (performance.now() < end); }, 170);
"""
STOCK = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>stock</title>
<script src="/node_modules/jspsych/dist/index.browser.min.js"></script>
<script src="/node_modules/@jspsych/plugin-html-keyboard-response/dist/index.browser.min.js"></script></head>
<body><script>
const jsPsych = initJsPsych();
const trials = Array.from({ length: %d }, (_, i) => ({
  type: jsPsychHtmlKeyboardResponse,
  stimulus: `<p elementtiming="stimulus-${i}">engine jumps all night ${i}</p>`,
  choices: ["f", "j"], post_trial_gap: 80,
}));
window.rows = () => jsPsych.data.get().values().map((row) => row.rt);
window.start = () => jsPsych.run(trials);
</script></body></html>"""


@dataclass
class Key:
    """One key as the driver sent it."""

    paint: float
    sent: float
    delay_ms: float
    seen: float = float("nan")


class Driver:
    """Sends a key a known time after each paint; times are milliseconds of the page's clock."""

    def __init__(self, page: Any, session: Any) -> None:
        self.page = page
        self.session = session
        self.paints: asyncio.Queue[tuple[float, float]] = asyncio.Queue()
        self.draw = random.Random(7)

    async def prepare(self, *scripts: str) -> None:
        async def painted(_: Any, render: float, origin: float, name: str) -> None:
            if name.startswith("stimulus"):
                await self.paints.put((render, origin))

        await self.page.expose_binding("painted", painted)
        for script in scripts:
            await self.page.add_init_script(script)

    async def answer(self, delays: list[float]) -> list[Key]:
        """Press a key after each paint, so many milliseconds and a part of a frame later."""
        sent = []
        for delay in delays:
            paint, origin = await asyncio.wait_for(self.paints.get(), timeout=30)
            phase = self.draw.uniform(0, FRAME_MS) if delay else 0.0
            due = (origin + paint + delay + phase) / 1000
            await asyncio.sleep(max(0.0, due - time.time() - 0.002))
            while time.time() < due:
                pass
            moment = time.time() * 1000 - origin
            await self.press("f")
            sent.append(Key(paint, moment, delay))
        return sent

    async def press(self, key: str) -> None:
        code = {
            "key": key,
            "code": f"Key{key.upper()}",
            "windowsVirtualKeyCode": ord(key.upper()),
            "text": key,
        }
        await self.session.send("Input.dispatchKeyEvent", {"type": "keyDown", **code})
        await self.session.send("Input.dispatchKeyEvent", {"type": "keyUp", **code})


async def measure(
    browser: Any, condition: str, address: str, start: Callable[[Any], Awaitable[None]], keys: int
) -> tuple[Any, list[Key]]:
    """Open a page under a condition, answer so many trials, and leave it open for its rows to be read."""
    context = await browser.new_context(viewport={"width": 1366, "height": 768})
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    driver = Driver(page, session)
    await driver.prepare(OBSERVER, KEYS_SEEN, *([BLOCKING] if condition == CONDITIONS[2] else []))
    if condition == CONDITIONS[1]:
        await session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    await page.goto(address)
    await start(page)
    delays: list[float] = [delay for delay in DELAYS_MS for _ in range((keys - WARM_UP) // len(DELAYS_MS))]
    driver.draw.shuffle(delays)
    sent = await driver.answer([DELAYS_MS[0]] * WARM_UP + delays)
    await asyncio.sleep(1.5)
    for key, seen in zip(sent, (await page.evaluate("() => window.keysSeen"))[-len(sent) :], strict=True):
        key.seen = seen
    return page, sent


Errors = dict[float, list[tuple[float, float]]]
"""By delay: recorded less true response times, the key's time as it was sent and as the browser had it."""


async def ours(browser: Any, condition: str, keys: int, *, gap_ms: int = 80) -> tuple[Errors, int]:
    """Return errors of our plugin by delay and the number of rows that the server lacks."""
    trials = [
        dict(ab(i, keys=["f", "j"]), fixation_ms=0, interval_ms=gap_ms, exemplars=[]) for i in range(keys)
    ]
    with Listening(ScriptedServer(bundle_folder(), plan(block(trials)))) as server:

        async def start(page: Any) -> None:
            await page.get_by_role("button", name="Start").click()

        page, sent = await measure(browser, condition, server.address, start, keys)
        await page.get_by_text("C0DE-4711").wait_for(timeout=60_000)
        rows = [server.trials[key] for key in sorted(server.trials)]
        await page.context.close()
    return errors([row["rt"] for row in rows], sent), keys - len(rows)


async def stock(browser: Any, folder: Path, condition: str, keys: int) -> tuple[Errors, int]:
    """Return errors of jsPsych's html-keyboard-response by delay and the number of its missing rows."""
    (folder / "index.html").write_text(STOCK % keys, "utf-8")
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        async def start(page: Any) -> None:
            await page.evaluate("() => void window.start()")

        page, sent = await measure(browser, condition, f"http://127.0.0.1:{server.server_port}/", start, keys)
        rows = await page.evaluate("() => window.rows()")
        await page.context.close()
        server.shutdown()
    return errors(rows, sent), keys - len(rows)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, cross-origin isolated as our own pages are, and logs nothing."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def errors(rts: list[float | None], sent: list[Key]) -> Errors:
    """Return recorded less true response times by delay, without the first trials of a page."""
    found: Errors = {delay: [] for delay in DELAYS_MS}
    for rt, key in list(zip(rts, sent, strict=False))[WARM_UP:]:
        if rt is not None:
            found[key.delay_ms].append((rt - (key.sent - key.paint), rt - (key.seen - key.paint)))
    return found


def described(values: list[tuple[float, float]]) -> str:
    cells = []
    for column in zip(*values, strict=True):
        ordered = sorted(column)
        p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
        largest = max(column, key=abs)
        mean, sd = statistics.fmean(column), statistics.stdev(column)
        cells.append(f"{mean:+.2f} | {sd:.2f} | {p99:+.1f} | {largest:+.1f}")
    return " | ".join((*cells, str(len(values))))


def peer(folder: Path) -> None:
    """Install the stock plugin with npm into a folder of its own."""
    _, npm = node_and_npm()
    (folder / "package.json").write_text(json.dumps({"name": "stock", "private": True}), "utf-8")
    subprocess.run(
        [*npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", *PEER],
        cwd=folder,
        check=True,
        capture_output=True,
    )


async def many(browser: Any, number: int) -> str:
    """Answer a great many trials as fast as they come and count what the server has of them."""
    trials = [dict(ab(i, keys=["f", "j"]), fixation_ms=0, interval_ms=0, exemplars=[]) for i in range(number)]
    with Listening(ScriptedServer(bundle_folder(), plan(block(trials)))) as server:
        context = await browser.new_context()
        page = await context.new_page()
        session = await context.new_cdp_session(page)
        driver = Driver(page, session)
        await driver.prepare(OBSERVER)
        await page.goto(server.address)
        await page.get_by_role("button", name="Start").click()
        begun = time.time()
        await driver.answer([0.0] * number)
        await page.get_by_text("C0DE-4711").wait_for(timeout=300_000)
        lost = number - len({index for index, _ in server.trials})
        doubled = len(server.trials) - len({index for index, _ in server.trials})
        await context.close()
    return f"{number:,} trials in {time.time() - begun:.0f} s: {lost} lost, {doubled} doubled"


async def main(keys: int, rounds: int, number: int) -> None:
    from playwright.async_api import async_playwright

    shown = WARM_UP + len(DELAYS_MS) * -(-keys // rounds)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        print(
            f"Chromium {browser.version}, {rounds} turns each, errors in ms against the browser's paint time\n"
        )
        print(
            "| condition | plugin | key after | mean | SD | p99 | largest | mean, browser's key time | SD | p99 | largest "
            "| keys | rows missing |"
        )
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            peer(folder)
            for condition in CONDITIONS:
                found: dict[str, Errors] = {name: {delay: [] for delay in DELAYS_MS} for name in PLUGINS}
                missing = dict.fromkeys(PLUGINS, 0)
                for _ in range(rounds):
                    for name in PLUGINS:
                        values, lacking = await (
                            ours(browser, condition, shown)
                            if name == PLUGINS[0]
                            else stock(browser, folder, condition, shown)
                        )
                        missing[name] += lacking
                        for delay, some in values.items():
                            found[name][delay] += some
                for name in PLUGINS:
                    for label, errors_of in (
                        *((f"{delay} ms", found[name][delay]) for delay in DELAYS_MS),
                        ("all", [value for some in found[name].values() for value in some]),
                    ):
                        print(
                            f"| {condition} | {name} | {label} | {described(errors_of)} | {missing[name]} |",
                            flush=True,
                        )
        if number:
            print("\n" + await many(browser, number))
        await browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=210, help="keys a delay in each condition, at least 200")
    parser.add_argument("--rounds", type=int, default=2, help="turns that each plugin takes in a condition")
    parser.add_argument(
        "--many", type=int, default=10_000, help="trials of the run that counts losses; 0 leaves it out"
    )
    given = parser.parse_args()
    asyncio.run(main(given.keys, given.rounds, given.many))
