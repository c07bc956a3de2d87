"""Where and with what a run was made: commit, versions, hardware; no names of folders, users or hosts."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from experiment.models.leases import LEASE_FILES
from experiment.version import installed_version

PACKAGES = ("torch", "transformers", "tokenizers", "openai", "aiohttp", "ray", "numpy", "sqlalchemy")
STORE_FILES = "study.db*"
MADE = ("states", "tuning", "reports", "handover", "backups")
"""Folders of a study that commands write: what is new in them changes nothing of how a run is made."""


def git_state(folder: Path) -> dict[str, object] | None:
    """Return commit and whether files were changed, where the study lies in a git repository."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()

    try:
        return {
            "commit": git("rev-parse", "HEAD"),
            "changed": bool(
                git(
                    "status", "--porcelain", "--", ".",
                    f":(exclude,glob)**/{LEASE_FILES}", f":(exclude,glob)**/{STORE_FILES}",
                    *(f":(exclude,glob)**/{name}/**" for name in MADE),
                )
            ),
        }  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None


def versions() -> dict[str, str]:
    """Return the versions of wrods, Python and the packages that may change an answer, where installed."""
    found = {"wrods": installed_version(), "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@cache
def hardware() -> Mapping[str, object]:
    """Return processor, cores, memory (bytes), system, and each GPU with its memory and driver."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "gpus": _gpus(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    if platform.system() == "Darwin":
        return _said("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _gpus() -> list[dict[str, str]]:
    said = _said("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader")
    rows = [line.split(", ") for line in (said or "").splitlines() if line.strip()]
    return [dict(zip(("name", "memory", "driver"), row, strict=False)) for row in rows]


def _said(*command: str) -> str | None:
    """Return what a program of the system prints, or None where there is none."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
