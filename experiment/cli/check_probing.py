"""What `wrods check` says of the time that probing of hidden states will take in the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiment.study import Study


def probing_lines(study: Study, models: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say of each model whose states are probed about how long that takes; nothing where nothing is probed or sizes are unknown.

    Parameters
    ----------
    models : mapping
        What check knows of each model, in numbers: ``trials`` and ``states`` (``positions``, ``files``, ``width``).
    """
    from analysis.inside.probing_fit import probing_bytes, probing_seconds, settings_of
    from experiment.disk import gigabytes
    from stimuli.durations import duration_in_words

    settings = settings_of(study.get("analysis", "probing"))
    if settings is None or not _has_options(study):
        return []
    told = []
    for name, known in models.items():
        size = known.get("states") or {}
        if "last" not in size.get("positions", ()) or not size.get("files") or not size.get("width"):
            continue
        trials = int(known["trials"])
        seconds = probing_seconds(trials, int(size["files"]), int(size["width"]), settings)
        memory = max(1e8, probing_bytes(trials, int(size["width"])))
        told.append(
            f"Probing the states of {name} (wrods report): about {duration_in_words(seconds)} of one core, less with several, and "
            f"{gigabytes(memory)} of memory; kept layer by layer, so that it is computed once."
        )
    return told


def _has_options(study: Study) -> bool:
    """Whether any block's trials end in a choice."""
    blocks = (screen["block"] for screen in study.get("procedure") if "block" in screen)
    return any("choose" in block["trial"][-1] for block in blocks)
