"""Whether the weights of several models on this machine fit into memory together."""

from __future__ import annotations

import os
from collections.abc import Sequence

from experiment.models.settings import ModelSettings

SHARE = 0.6
"""Of the free memory, how much weights may take; the rest is for what is computed."""


def fit_together(models: Sequence[ModelSettings]) -> bool:
    """Say whether the weights of models fit together, by the size of their files; False where that is not known."""
    from experiment.models.local.checkpoints import find_source
    from stimuli.errors import UserError

    total = 0
    for settings in models:
        try:
            source = find_source(settings)
        except UserError:
            return False
        path = getattr(source, "path", None) or getattr(source, "folder", None) or source
        try:
            with os.scandir(path) as files:
                total += sum(
                    file.stat().st_size for file in files if file.name.endswith((".safetensors", ".bin"))
                )
        except (OSError, TypeError):
            return False
    return total < SHARE * _free()


def _free() -> float:
    """Return the free bytes of the GPU, or of the machine."""
    import torch

    if torch.cuda.is_available():
        return float(torch.cuda.mem_get_info()[0])
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return 0.0
