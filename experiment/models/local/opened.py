"""Opens a checkpoint as far as both local engines do alike: where it is, how it is computed, its configuration and tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiment.models.local import checkpoints, hardware, quantising
from experiment.models.local.checkpoints import Source
from experiment.models.local.revisions import name_revision
from experiment.models.settings import ModelSettings
from stimuli.errors import UserError, unknown_name

DETERMINISM = ("fast", "stable", "exact")


@dataclass(frozen=True)
class Opened:
    """A checkpoint before its weights are loaded."""

    source: Source
    device: str
    dtype: str
    # quantisation, stored_quantisation: what the study asks for; what the weights already are
    quantisation: str | None
    stored_quantisation: str | None
    # config, tokenizer: of transformers
    config: Any
    tokenizer: Any
    revision: str
    determinism: str
    timing: bool


def open_checkpoint(settings: ModelSettings) -> Opened:
    """Open what a model's settings name; loads no weights."""
    options = settings.options
    source = checkpoints.find_source(settings)
    device = hardware.choose_device(options.get("device"))
    dtype = hardware.choose_dtype(options.get("dtype"), device)
    quantisation = quantising.choose_quantisation(options.get("quantisation"), device, dtype)
    config, tokenizer = checkpoints.load_tokenizer(source)
    stored = checkpoints.stored_quantisation(config)
    if quantisation and stored:
        raise UserError(
            f"quantisation: {quantisation} was asked for, and the weights of this model are stored quantised ({stored})",
            mend="Leave quantisation out.",
        )
    determinism = str(options.get("determinism", "fast"))
    if determinism not in DETERMINISM:
        raise unknown_name("determinism", determinism, DETERMINISM)
    revision = name_revision(source, config)
    timing = bool(options.get("timing", False))
    return Opened(
        source, device, dtype, quantisation, stored, config, tokenizer, revision, determinism, timing
    )
