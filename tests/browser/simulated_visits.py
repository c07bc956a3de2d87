"""Simulated readers on the real page, in Chromium: they click, type and press keys, each at its own speed.

The page's first request is modified on its way to tell the server that the reader is simulated. Answers come from the same
reader as over the API; times are those that the page measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from shutil import which
from typing import TYPE_CHECKING, Any

from experiment.procedure.steps import SIDES
from experiment.simulated.reader import SimulatedReader
from experiment.simulated.truth import GroundTruth
from experiment.study import Study
from experiment.study.format import key_name, stroke_name
from experiment.trials import LASTING, TYPED

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle, Page, Route

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "microsoft-edge")
PATIENCE_MS = 30_000
SECOND_PRESS_MS = 400


def visit(
    study: Study, truth: GroundTruth, address: str, given_pass: str, *, readers: int, speed: float = 1.0
) -> int:
    """Send readers through the page, one after another; return their number of trials."""
    from playwright.sync_api import sync_playwright

    program = next(path for name in BROWSERS if (path := which(name)))
    done = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for number in range(1, readers + 1):
            reader = SimulatedReader(f"S{number:03d}", study, truth)
            page = browser.new_page(viewport={"width": 1366, "height": 768})
            done += _Visit(page, reader, speed, given_pass).run(address)
            page.close()
        browser.close()
    return done


class _Visit:
    """One reader on one page."""

    def __init__(self, page: Page, reader: SimulatedReader, speed: float, given_pass: str) -> None:
        self.page = page
        self.reader = reader
        self.speed = speed
        self.given_pass = given_pass
        self.answered = 0
        page.set_default_timeout(PATIENCE_MS)

    def run(self, address: str) -> int:
        """Complete all screens; return the number of trials."""
        self.page.route("**/api/*/sessions", self._say_who)
        with self.page.expect_response(lambda reply: reply.url.endswith("/sessions")) as opened:
            self.page.goto(address)
            number = self.page.locator("#wrods-participant")
            self.page.locator("button.main").first.wait_for()
            if number.count():
                number.fill(f"simulated {self.reader.name}")
            self.page.locator("button.main").first.click()
        plan = self.reader.plan(opened.value.json())
        for screen in plan["screens"]:
            self._screen(screen)
        self.page.locator(".completion, .page .code").first.wait_for()
        return self.answered

    def _say_who(self, route: Route) -> None:
        body = json.loads(route.request.post_data or "{}") | {
            "simulated": True,
            "pass": self.given_pass,
        }
        route.continue_(post_data=json.dumps(body))

    def _screen(self, screen: Mapping[str, Any]) -> None:
        kind = screen["kind"]
        if kind == "instructions":
            for _ in screen["pages"]:
                self._leave_page()
        elif kind == "questions":
            self._answer_questions(screen)
        elif kind == "practice":
            self._practise(screen)
        elif kind == "block":
            self._block(screen)
        else:
            self._leave_page()

    def _leave_page(self) -> None:
        """Press the page's main button as soon as possible, and wait until the page is gone."""
        section = self.page.locator("section.page").first
        section.wait_for()
        before = section.element_handle()
        button = self.page.locator("section.page button.main:not([aria-disabled])").first
        button.wait_for()
        button.click()
        assert before is not None
        self.page.wait_for_function("(gone) => !gone.isConnected", arg=before)

    def _answer_questions(self, screen: Mapping[str, Any]) -> None:
        answers = self.reader.answers(screen)
        self.page.locator("#wrods-question-0").or_(self.page.locator(".question").first).first.wait_for()
        for place, question in enumerate(screen["questions"]):
            field = self.page.locator(".question").nth(place)
            answer = answers[question["name"]]
            if isinstance(answer, list):
                for value in answer:
                    field.locator("input[type=checkbox]").nth(_place_of(question, value)).check()
            elif field.locator("select").count():
                field.locator("select").select_option(str(answer))
            elif field.locator("input[type=radio]").count():
                place_of = (
                    int(answer) - int(question["from"])
                    if question["type"] == "scale"
                    else _place_of(question, answer)
                )
                field.locator("input[type=radio]").nth(place_of).check()
            else:
                field.locator("input").fill(str(answer))
        self._leave_page()

    def _practise(self, screen: Mapping[str, Any]) -> None:
        """Practise until the page allows the reader to continue; a reader who keeps failing stops there, as a person would."""
        for _ in range(screen["attempts"]):
            for trial in screen["trials"]:
                self._trial(trial)
                if screen["feedback"]:
                    self._leave_page()
            heading = self.page.locator("section.page h2")
            heading.wait_for()
            self._leave_page()
            self.page.locator("section").first.wait_for()
            if not self._begins_again(screen):
                return

    def _begins_again(self, screen: Mapping[str, Any]) -> bool:
        """Return whether the first practice trial is shown again."""
        kind = screen["trials"][0]["steps"][0]["step"]
        text = screen["trials"][0]["steps"][0]["text"] or ""
        shown = self.page.locator(f".trial.{kind}")
        return bool(shown.count()) and text.split()[:3] == shown.first.inner_text().split()[:3]

    def _block(self, screen: Mapping[str, Any]) -> None:
        trials = screen["trials"]
        every = screen["break_every"]
        for number, trial in enumerate(trials, 1):
            self._trial(trial)
            if screen["feedback"] and screen["feedback"]["for_ms"] is None:
                # feedback depends on the server's reply, and none is shown if that is late
                self.page.locator("section").first.wait_for()
                if self.page.locator("section.feedback").count():
                    self._leave_page()
            if every and number % every == 0 and number < len(trials):
                self._leave_page()

    def _trial(self, trial: Mapping[str, Any]) -> None:
        """Answer one trial."""
        payload = self.reader.answer(trial)
        for step in trial["steps"]:
            self._step(step, trial, payload)
        self.answered += 1

    def _step(self, step: Mapping[str, Any], trial: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
        kind = step["step"]
        if kind in LASTING or step.get("part_ms"):
            return  # it disappears by itself
        shown = self.page.locator(f"section.trial.{kind}").first
        shown.wait_for()
        handle = shown.element_handle()
        assert handle is not None
        if kind == "read" and step.get("foils"):
            for region in payload["regions"]:
                right = SIDES.index(step["sides"][region["region"]])
                wrong = 1 - right
                self._rest(region["rt"])
                self.page.keyboard.press(step["keys"][right if region["is_correct"] else wrong])
                if not region["is_correct"] and region["right_rt"] is not None:
                    self._rest(region["right_rt"] - region["rt"])
                    self.page.keyboard.press(step["keys"][right])
            self.page.wait_for_function("(gone) => !gone.isConnected", arg=handle)
        elif kind == "read" and payload["regions"]:
            for region in payload["regions"]:
                self.page.keyboard.press("Space")
                self._rest(region["rt"])
            self._press_until_gone("Space", handle)
        elif kind == "read":
            self._rest(payload["reading_time"])
            self._press_until_gone("Space", handle)
        elif payload["timed_out"]:
            pass  # waits until the page removes the trial
        elif kind in TYPED:
            self._type(str(payload["response_raw"]), payload, multiline=bool(step.get("multiline")))
        elif step.get("decimals") is not None and not step["labels"]:
            self._rest(payload["rt"])
            self.page.locator(".rating input").fill(payload["response_raw"])
            self._press_until_gone("Enter", handle)
        elif not step["keys"]:
            self._rest(payload["rt"])
            self.page.locator(".rating button").nth(step["labels"].index(payload["response_raw"])).click()
        else:
            self._rest(payload["rt"])
            self._press_until_gone(step["keys"][step["labels"].index(payload["response_raw"])], handle)
        self.page.wait_for_function("(gone) => !gone.isConnected", arg=handle)

    def _press_until_gone(self, key: str, shown: ElementHandle) -> None:
        """Press a key, repeatedly if the page did not accept keys yet, until the element is gone."""
        from playwright.sync_api import TimeoutError as NotGone

        end = time.monotonic() + PATIENCE_MS / 1000
        while time.monotonic() < end:
            self._strike(key)
            try:
                self.page.wait_for_function("(gone) => !gone.isConnected", arg=shown, timeout=SECOND_PRESS_MS)
            except NotGone:
                continue
            return

    def _strike(self, key: str) -> None:
        """Press a key by its browser name; one that the browser's keyboard lacks is sent as its event."""
        sent = stroke_name(key) or key_name(key)
        if sent.isascii():
            self.page.keyboard.press(sent)
        else:
            self.page.evaluate(
                "(key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))",
                sent,
            )

    def _type(self, text: str, payload: Mapping[str, Any], *, multiline: bool) -> None:
        field = self.page.locator("#wrods-answer")
        if payload["key_log"]:
            typed_at = 0.0
            for moment, key in payload["key_log"]:
                self._rest(moment - typed_at)
                typed_at = moment
                field.press_sequentially("\n" if key == "Enter" else key)
        else:
            self._rest(payload["rt"] / 2)
            delay = max(1.0, payload["rt"] / 2 / max(1, len(text)) / self.speed)
            field.press_sequentially(text, delay=delay)
        field.press("Control+Enter" if multiline else "Enter")

    def _rest(self, milliseconds: float) -> None:
        time.sleep(milliseconds / 1000 / self.speed)


def _place_of(question: Mapping[str, Any], value: Any) -> int:
    return [option["value"] for option in question["options"]].index(str(value))
