"""Whether the weights of several models on this machine fit into memory together."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiment.models.settings import ModelSettings

if TYPE_CHECKING:
    from experiment.models.local.checkpoints import Source

SHARE = 0.6
"""Of the free memory, how much weights may take; the rest is for what is computed."""

_GROUP = Path("/sys/fs/cgroup")


def fit_together(models: Sequence[ModelSettings]) -> bool:
    """Say whether the weights of models fit together, by the size of their files; False where that is not known."""
    from stimuli.errors import UserError

    try:
        sizes = [size_of(settings) for settings in models]
    except (UserError, OSError, ValueError):
        return False
    known = [size for size in sizes if size is not None]
    return len(known) == len(sizes) and sum(known) < SHARE * free_memory()


def size_of(settings: ModelSettings) -> float | None:
    """Return the bytes that a model's weights take once they are loaded; None where they are not on this machine yet.

    Files in 16 bits that are computed in 32 take twice their size; what quantisation saves is left out.
    """
    from experiment.models.local.checkpoints import find_source
    from experiment.models.local.hardware import choose_device, choose_dtype

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


def _folder_of(source: Source) -> Path | None:
    """Return where the files of a checkpoint lie; None where they have to be fetched first."""
    if source.is_folder:
        return Path(source.place)
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(source.place, revision=source.revision, local_files_only=True))
    except (OSError, ValueError):
        return None


def free_memory() -> float:
    """Return the bytes that are free for weights: of the GPU, or of the machine, its file cache counted as free."""
    import torch

    if torch.cuda.is_available():
        return float(torch.cuda.mem_get_info()[0])
    available = _of_machine()
    try:
        most = (_GROUP / "memory.max").read_text("ascii").strip()
        if most != "max":
            held = dict(line.split() for line in (_GROUP / "memory.stat").read_text("ascii").splitlines())
            used = int((_GROUP / "memory.current").read_text("ascii")) - int(held.get("file", 0))
            available = min(available, float(int(most) - used))
    except (OSError, ValueError):
        pass
    return available


def _of_machine() -> float:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        # systems that do not say what is free: half of what there is
        return 0.5 * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0.0
