"""A real Chromium, and the scripted server that stands in for the participants' API."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from experiment.bundle import bundle_folder
from stimuli.errors import UserError
from tests.browser.plans import plan
from tests.browser.scripted_server import Listening, ScriptedServer
from tests.browser.walking import start
from tests.conftest import new_context


@pytest.fixture(scope="session")
def bundle() -> Path:
    try:
        return bundle_folder()
    except UserError as error:
        pytest.fail(str(error))


@pytest.fixture
def serve(bundle: Path) -> Iterator[Callable[..., ScriptedServer]]:
    """Start a scripted server for a plan; further arguments are its fields."""
    with ExitStack() as running:

        def start(plan: dict[str, Any], **fields: Any) -> ScriptedServer:
            return running.enter_context(Listening(ScriptedServer(bundle, plan, **fields)))

        yield start


@pytest.fixture
def new_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Open a tab of its own storage; any error on the page or refusal by its policy fails the test at the end."""
    with ExitStack() as running:
        troubles: list[str] = []

        allowances: list[str] = []

        def open_page(address: str | None = None, *, allowed: str | None = None, **context: Any) -> Any:
            if allowed is not None:
                allowances.append(allowed)
            made = new_context(chromium, **context)
            running.callback(made.close)
            page = made.new_page()
            page.on("pageerror", lambda error: troubles.append(str(error)))
            page.on("console", lambda said: note(said.text) if said.type in ("error", "warning") else None)
            if address:
                page.goto(address)
            return page

        def note(text: str) -> None:
            # Dropped connections and replies such as 409 are part of the script.
            if not any(allowance in text for allowance in ["Failed to load resource", *allowances]):
                troubles.append(text)

        yield open_page
        assert not troubles, troubles


@pytest.fixture
def opened(serve: Callable[..., ScriptedServer], new_page: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that serves a plan of some screens and starts it in a page; more arguments are the server's."""

    def run(
        *screens: dict[str, Any],
        size: tuple[int, int] | None = None,
        script: str | None = None,
        allowed: str | None = None,
        language: str = "en",
        study: dict[str, Any] | None = None,
        **fields: Any,
    ) -> tuple[ScriptedServer, Any]:
        server = serve(plan(*screens, language=language) | (study or {}), **fields)
        page = new_page(allowed=allowed)
        if size is not None:
            page.set_viewport_size({"width": size[0], "height": size[1]})
        if script is not None:
            page.add_init_script(script)
        page.goto(server.address)
        start(page)
        return server, page

    return run
