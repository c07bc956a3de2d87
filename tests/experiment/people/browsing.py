"""What tests in a real browser do at a participant's or an experimenter's page."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from experiment.languages import pack_for
from tests.browser.walking import until as eventually
from tests.browser.walking import violations, violations_light_and_dark

__all__ = ["eventually", "violations", "violations_light_and_dark"]
QUESTION = "Which word is it?"
TEXTS = pack_for("en").texts
BACK = TEXTS["return_to_platform"]
"""The way back to a platform, which is not to be taken by mistake."""


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def walk(
    page: Any,
    until: str,
    *,
    answers: int | None = None,
    at_trial: Mapping[int, Callable[[], None]] | None = None,
) -> None:
    """Answer whatever the page shows with its first key until some words appear or so many trials are answered."""
    moments, given = dict(at_trial or {}), 0
    stage = page.locator("#wrods-stage")
    onward = stage.locator("button.main", has_not_text=BACK)
    for _ in range(2000):
        words = stage.inner_text()
        if until in words or given == answers:
            return
        if "I agree" in words:
            page.get_by_role("button", name="I agree").click()
        elif onward.count():
            with suppress(PlaywrightTimeout):  # the page may have gone on since its words were read
                onward.first.click(timeout=2000)
        elif QUESTION in words:
            trial = page.locator(".trial").element_handle()
            page.keyboard.press("f")
            # the next may stand there before anybody looks, so the question itself need not vanish
            page.wait_for_function("(trial) => !trial.isConnected", arg=trial)
            given += 1
            moments.pop(given, lambda: None)()
        else:
            page.keyboard.press("Space")
        page.wait_for_timeout(40)
    pytest.fail(f"the page never said {until!r}; it says {stage.inner_text()!r}")


# studies of word_items(), whose every trial shows another word


def into_block(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("button", name="Start").click()
    page.get_by_role("button", name="I agree").click()
    page.get_by_role("heading", name="Instructions", exact=True).wait_for()
    page.keyboard.press("Space")


def item_shown(page: Any) -> str:
    page.locator(".trial.choose").wait_for()
    found = re.search(r"word\d\d (?:intact|initial)", page.locator(".trial.choose").inner_text())
    assert found is not None
    return found[0]


def answer(page: Any, count: int) -> list[str]:
    """Answer some trials, each as soon as it stands there; return what they showed."""
    shown: list[str] = []
    for _ in range(count):
        word = item_shown(page)
        page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        page.keyboard.press("f")
        page.wait_for_function("(word) => !document.body.innerText.includes(word)", arg=word)
        shown.append(word)
    return shown


def to_the_end(page: Any, left: int) -> str:
    """Answer the trials that are left; return the completion code."""
    answer(page, left)
    page.get_by_role("heading", name="About this study").wait_for()
    page.keyboard.press("Space")
    return code(page)


def code(page: Any) -> str:
    page.get_by_role("heading", name="Thank you").wait_for()
    return str(page.locator(".code").inner_text())
