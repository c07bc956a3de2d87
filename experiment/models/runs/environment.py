"""The environment of a run: commit, versions, hardware, memory for weights; without names of folders, users or hosts."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from experiment.models.engine import ModelSettings
from experiment.models.leases import LEASE_FILES
from experiment.models.local.checkpoints import (
    CheckpointSource,
    choose_device,
    choose_dtype,
    find_source,
    free_memory,
    name_processor,
    printed,
)
from experiment.version import installed_version
from stimuli.errors import UserError

PACKAGES = ("torch", "transformers", "tokenizers", "openai", "aiohttp", "ray", "numpy", "sqlalchemy")
STORE_FILES = "study.db*"
MADE = ("states", "tuning", "reports", "handover", "backups")
"""Folders of a study that commands write: new files in them do not change how a run is made."""


def git_state(folder: Path) -> dict[str, object] | None:
    """Return the commit and whether files were changed, if the study is in a git repository."""

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
    """Return the versions of wrods, Python and the installed packages that can change an answer."""
    found_versions = {"wrods": installed_version(), "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found_versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found_versions


@cache
def hardware() -> Mapping[str, object]:
    """Return processor, cores, memory (bytes), system, and each GPU with its memory and driver."""
    return {
        "processor": name_processor(),
        "cores": os.cpu_count(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "gpus": _gpus(),
    }


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _gpus() -> list[dict[str, str]]:
    printed_rows = printed(
        "nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"
    )
    rows = [line.split(", ") for line in (printed_rows or "").splitlines() if line.strip()]
    return [dict(zip(("name", "memory", "driver"), row, strict=False)) for row in rows]


SHARE = 0.6
"""Share of the free memory for weights; the rest is for computation."""


def fit_together(models: Sequence[ModelSettings]) -> bool:
    """Return whether the weights of models fit in memory together, by the size of their files; False if unknown."""
    try:
        sizes = [size_of(settings) for settings in models]
    except (UserError, OSError, ValueError):
        return False
    known_sizes = [size for size in sizes if size is not None]
    return len(known_sizes) == len(sizes) and sum(known_sizes) < SHARE * (
        free_memory(choose_device(None)) or 0.0
    )


def size_of(settings: ModelSettings) -> float | None:
    """Return the bytes of a model's loaded weights (16-bit files twice for 32 bits); None if they are not downloaded."""
    folder = _folder_of(find_source(settings))
    if folder is None:
        return None
    for suffix in (".safetensors", ".bin"):
        stored = sum(file.stat().st_size for file in folder.iterdir() if file.suffix == suffix)
        if stored:
            break
    else:
        return None
    config = json.loads((folder / "config.json").read_text("utf-8"))
    is_half = str(config.get("dtype") or config.get("torch_dtype") or "").endswith("float16")
    dtype = choose_dtype(settings.options.get("dtype"), choose_device(settings.options.get("device")))
    return stored * (2.0 if is_half and dtype == "float32" else 1.0)


def _folder_of(source: CheckpointSource) -> Path | None:
    """Return the folder of a checkpoint's files; None if they must be downloaded first."""
    if source.is_folder:
        return Path(source.place)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source.place, revision=source.revision, local_files_only=True))
    except (OSError, ValueError):
        return None
