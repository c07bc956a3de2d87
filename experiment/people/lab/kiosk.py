"""Shortcuts that open a study full screen, in a browser profile of its own that trusts this server's plain http."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stimuli.errors import UserError

SWITCHES = (
    "--kiosk",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-session-crashed-bubble",
    "--disable-pinch",
    "--overscroll-history-navigation=0",
    "--disable-features=Translate",
)
_PLAIN = re.compile(r"https?://[0-9A-Za-z.\[\]:_~/-]+")

WINDOWS = r"""@echo off
rem Opens the study full screen for a station; Alt+F4 closes it.
set "PROFILE=%LocalAppData%\wrods-station"
for %%B in (
  "%ProgramFiles%\Google\Chrome\Application\chrome.exe"
  "%ProgramFiles(x86)%\Google\Chrome\Application\chrome.exe"
  "%LocalAppData%\Google\Chrome\Application\chrome.exe"
  "%ProgramFiles(x86)%\Microsoft\Edge\Application\msedge.exe"
  "%ProgramFiles%\Microsoft\Edge\Application\msedge.exe"
) do if exist %%B (
  start "" %%B SWITCHES --user-data-dir="%PROFILE%" PAGE
  exit /b
)
echo Neither Chrome nor Edge was found.
pause
"""

MACOS = """#!/bin/sh
# Opens the study full screen for a station; Cmd+Q closes it.
profile="$HOME/Library/Application Support/wrods-station"
for browser in "Google Chrome" "Chromium" "Microsoft Edge"; do
  program="/Applications/$browser.app/Contents/MacOS/$browser"
  if [ -x "$program" ]; then
    exec "$program" SWITCHES --user-data-dir="$profile" PAGE
  fi
done
echo "Neither Chrome, Chromium nor Edge was found." >&2
exit 1
"""

# not a hidden folder: the Chromium that comes as a snap may not write into one
LINUX = """#!/bin/sh
# Opens the study full screen for a station; Alt+F4 closes it.
profile="$HOME/wrods-station"
for browser in google-chrome chromium chromium-browser google-chrome-stable microsoft-edge; do
  if command -v "$browser" >/dev/null 2>&1; then
    exec "$browser" SWITCHES --user-data-dir="$profile" PAGE
  fi
done
echo "Neither Chrome, Chromium nor Edge was found." >&2
exit 1
"""


@dataclass(frozen=True)
class System:
    """An operating system of stations: its name, the shortcut's file and text, and how a browser is started there."""

    name: str
    file: str
    text: str
    ends: str
    browser: str
    profile: str


SYSTEMS = (
    System("Windows", "wrods-station.cmd", WINDOWS, "\r\n", "chrome.exe", r'"%LocalAppData%\wrods-station"'),
    System("macOS", "wrods-station.command", MACOS, "\n", "open -na 'Google Chrome' --args",
           '"$HOME/Library/Application Support/wrods-station"'),
    System("Linux", "wrods-station.sh", LINUX, "\n", "chromium", '"$HOME/wrods-station"'),
)  # fmt: skip


def shortcut(system: System, page: str) -> str:
    """Return the shortcut's text for a system."""
    text = system.text.replace("SWITCHES", " ".join(_switches(page))).replace("PAGE", page)
    return text.replace("\n", system.ends)


def command(system: System, page: str) -> str:
    """Return the one line that opens the page as the shortcut does, to be typed or printed."""
    return " ".join((system.browser, *_switches(page), f"--user-data-dir={system.profile}", page))


def _switches(page: str) -> tuple[str, ...]:
    if not _PLAIN.fullmatch(page):
        raise UserError(
            f"{page!r} cannot be used in a shortcut", mend="Use only plain letters in the study's id."
        )
    if page.startswith("https://"):
        return SWITCHES
    origin = "/".join(page.split("/")[:3])
    return (*SWITCHES, f"--unsafely-treat-insecure-origin-as-secure={origin}")
