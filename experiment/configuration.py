"""The user's settings for all studies: the store's address, API keys, the server's password.

They come from the environment or from ``config.toml`` in the user's configuration folder, never from a study.
"""

from __future__ import annotations

import os
import stat
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import platformdirs

from stimuli.errors import UserError

FILE = "config.toml"
OTHERS_MAY_READ = stat.S_IRWXG | stat.S_IRWXO


def config_file() -> Path:
    """Return the path of the user's configuration file."""
    return Path(platformdirs.user_config_dir("wrods")) / FILE


def read_config(file: Path | None = None) -> dict[str, Any]:
    """Return the contents of the user's ``config.toml``; empty if it is missing."""
    path = file or config_file()
    if not path.exists():
        return {}
    if sys.platform != "win32" and path.stat().st_mode & OTHERS_MAY_READ:
        raise UserError(f"{path} holds secrets and others can read it", mend=f"Run: chmod 600 {path}")
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} cannot be read: {error}", mend="Write it as TOML.") from error


def store_address(config: Mapping[str, Any]) -> str | None:
    """Return the PostgreSQL (or other) address of the user's store, if set."""
    given = os.environ.get("WRODS_STORE") or config.get("store")
    return None if given is None else str(given)
