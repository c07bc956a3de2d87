"""What every test may ask for: the shared data folder, required programs, an isolated user directory."""

from __future__ import annotations

import gc
import io
import itertools
import os
import shutil
import signal
import wave
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from PIL import Image

# The same examples in every run, so that a red test is a red change; `make explore` looks for new ones.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("explore", max_examples=3000, deadline=None)
settings.load_profile(os.environ.get("WRODS_HYPOTHESIS", "steady"))

# A shell has commands in the background ignore Ctrl+C, and what they start too: what is tested here must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["HF_HUB_OFFLINE"] = "1"  # read when the hub's package is imported, so no fixture is early enough

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 60.0
"""Timeout in seconds of waits that end as soon as something happens: the machine may be slow and busy."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what stays until the end: walking through it takes a third of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


PROGRAMS = {
    "chromium": ("chromium", "/usr/bin/chromium"),
    "r": ("Rscript",),
    "postgres": ("pg_ctl", "initdb"),
}


def required() -> set[str]:
    return {name for name in os.environ.get("WRODS_REQUIRE", "").split(",") if name}


def skip_or_fail(name: str, reason: str) -> None:
    """Skip because a program or data set is missing, or fail where WRODS_REQUIRE names it."""
    if name in required():
        pytest.fail(f"WRODS_REQUIRE names {name!r}, but: {reason}")
    pytest.skip(reason)


@pytest.fixture
def require() -> Callable[[str, object, str], None]:
    """Return a function that skips (or fails, where required) unless something is present."""

    def check(name: str, present: object, reason: str) -> None:
        if not present:
            skip_or_fail(name, reason)

    return check


def shared_folder() -> Path | None:
    given = os.environ.get("WRODS_SHARED")
    folder = Path(given) if given else ROOT.parent / "shared"
    return folder if (folder / "data").is_dir() else None


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder with reference data and fits; tests that need it are skipped where it is missing."""
    folder = shared_folder()
    if folder is None:
        skip_or_fail("shared", "the shared data folder is not here (../shared or $WRODS_SHARED)")
    assert folder is not None
    return folder


def program(name: str) -> str | None:
    return next((found for given in PROGRAMS[name] if (found := shutil.which(given))), None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("r") and program("r") is None:
        skip_or_fail("r", "Rscript is not installed")
    if item.get_closest_marker("browser") and program("chromium") is None:
        skip_or_fail("chromium", "Chromium is not installed")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One real browser for all tests of a process: two sets of Playwright do not run beside each other."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="the Python package playwright is not installed"
    )
    switches = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
    ]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program("chromium"), args=switches)
        yield browser
        browser.close()


def new_context(browser: Any, **given: Any) -> Any:
    """Return a new browser context whose waits time out after ``PATIENCE_S``."""
    context = browser.new_context(**({"viewport": {"width": 1366, "height": 768}} | given))
    context.set_default_timeout(1000 * PATIENCE_S)
    return context


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Paths of empty user directories; nothing is made until a test writes there."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def own_user_folder(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a tester's own configuration and keys out of every test."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(next(homes) / "config"))
    for name in ("OPENAI_API_KEY", "WRODS_PASSWORD", "WRODS_STORE", "WRODS_SECRET"):
        monkeypatch.delenv(name, raising=False)


def picture(shade: int = 200) -> bytes:
    """Return a small PNG file of one shade of red."""
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (shade, 0, 0)).save(file, "PNG")
    return file.getvalue()


def sound() -> bytes:
    """Return a WAV file with a second of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(b"\0\0" * 8000)
    return file.getvalue()
