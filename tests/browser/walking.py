"""Steps that a participant takes through the pages, by real keys and clicks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.browser.plans import TEXTS
from tests.browser.scripted_server import ScriptedServer
from tests.conftest import PATIENCE_S, ROOT

TRIAL = ".trial"


def start(page: Any) -> None:
    """From the start screen into the session."""
    page.get_by_role("heading", name=TEXTS["welcome"]).wait_for()
    page.get_by_role("button", name=TEXTS["start"]).click()


def trial_shown(page: Any, kind: str, text: str | None = None) -> None:
    """Wait until a trial of a kind is on the screen and the frame that drew it is over."""
    page.locator(f".trial.{kind}", has_text=text).wait_for()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def respond(page: Any, kind: str, key: str, text: str | None = None) -> None:
    """Press a key once a trial of a kind is on the screen."""
    trial_shown(page, kind, text)
    page.keyboard.press(key)


def leave(shown: Any, key: str = "Space") -> None:
    """Press a key once something is shown."""
    shown.wait_for()
    shown.page.keyboard.press(key)


def until(condition: Callable[[], object], seconds: float = PATIENCE_S) -> None:
    """Wait for something on the server's side."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def finished(page: Any, server: ScriptedServer) -> None:
    """Wait for the completion code."""
    page.get_by_role("heading", name=TEXTS["finished_title"]).wait_for()
    assert page.locator(".code").inner_text() == "C0DE-4711"


def violations(page: Any, **options: Any) -> list[str]:
    """Run axe-core on a page; return what it finds, one line a violation."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate((ROOT / "static/node_modules/axe-core/axe.min.js").read_text("utf-8"))
    return list(
        page.evaluate(
            """async (options) => (await axe.run(document, { resultTypes: ["violations"], ...options })).violations
            .map((one) => `${one.id}: ${one.nodes[0].html}`)""",
            options,
        )
    )


def violations_light_and_dark(page: Any) -> list[str]:
    """Run axe-core on a page in light, and what depends on colours in dark as well."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")  # no colour on its way to another
    found = violations(page)
    page.emulate_media(color_scheme="dark")
    found += violations(page, runOnly=["color-contrast", "link-in-text-block"])
    page.emulate_media(color_scheme="light")
    return found
