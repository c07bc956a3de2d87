"""Weights of linear layers in 4 or 8 bits, by whichever package can do it on a device."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from typing import Any

from stimuli.errors import UserError, unknown_name

QUANTISATIONS = ("4bit", "8bit")


def choose_quantisation(asked: object, device: str, dtype: str) -> str | None:
    """Return ``4bit`` or ``8bit`` where one is asked for and a package can do it here."""
    if asked is None:
        return None
    if asked not in QUANTISATIONS:
        raise unknown_name("quantisation", str(asked), QUANTISATIONS)
    quantised(str(asked), device, dtype)
    return str(asked)


def quantised(bits: str, device: str, dtype: str) -> Any:
    """Return transformers' configuration for weights of 4 or 8 bits.

    torchao's 8 bits are of the weights alone. Those of bitsandbytes round what is computed too, together with what stands
    beside it in a batch, so they are taken only where torchao is missing. Its 4 bits (NF4) are of the weights alone.
    """
    import torch

    there = {name for name in ("torchao", "bitsandbytes", "accelerate") if importlib.util.find_spec(name)}
    if not device.startswith("mps") and "accelerate" in there:
        if bits == "8bit" and "torchao" in there:
            from transformers import TorchAoConfig

            return TorchAoConfig(importlib.import_module("torchao.quantization").Int8WeightOnlyConfig())
        if "bitsandbytes" in there:
            from transformers import BitsAndBytesConfig

            if bits == "8bit":
                return BitsAndBytesConfig(load_in_8bit=True)
            return BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=getattr(torch, dtype)
            )
    package = "torchao" if bits == "8bit" else "bitsandbytes"
    raise UserError(
        f"quantisation: {bits} needs packages that are not installed for {device}",
        mend="Leave quantisation out and take dtype: bfloat16."
        if device.startswith("mps")
        else f"Install them: pip install {package} accelerate; or leave quantisation out.",
    )


def quantisation_package(bits: str | None, device: str, dtype: str) -> str | None:
    """Return name and version of the package that quantises, for the record of a run."""
    if bits is None:
        return None
    name = type(quantised(bits, device, dtype)).__name__
    package = "bitsandbytes" if name == "BitsAndBytesConfig" else "torchao"
    return f"{package} {importlib.metadata.version(package)}"
