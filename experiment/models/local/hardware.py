"""What computes a model: the device, its number format, its name and its free memory."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

from stimuli.errors import UserError, unknown_name

DTYPES = ("float32", "bfloat16", "float16")


def choose_device(asked: object) -> str:
    """Return ``cuda``, ``mps`` or ``cpu``: the one asked for, else the fastest that is there."""
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked is None:
        return next(name for name, present in there.items() if present)
    kind = str(asked).partition(":")[0]
    if kind not in there:
        raise unknown_name("device", str(asked), there)
    if not there[kind]:
        raise UserError(
            f"device {asked} is not on this machine", mend="Leave device out to take what is there."
        )
    return str(asked)


def choose_dtype(asked: object, device: str) -> str:
    """Return the number format: float32 on a CPU, bfloat16 elsewhere, unless one is asked for."""
    if asked is None:
        return "float32" if device == "cpu" else "bfloat16"
    if asked not in DTYPES:
        raise unknown_name("dtype", str(asked), DTYPES)
    return str(asked)


def name_processor(device: str) -> str:
    """Return the name of what computes."""
    import torch

    if device.startswith("cuda"):
        return str(torch.cuda.get_device_name(device))
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def free_memory(device: str) -> int | None:
    """Return how many bytes are free where a model computes, or None where that cannot be told."""
    import torch

    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(device)[0])
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None
