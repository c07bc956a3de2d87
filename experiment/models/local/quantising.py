"""Weights of linear layers in 4 or 8 bits, by whichever package can do it on a device."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from typing import Any

from stimuli.errors import UserError, unknown_name

QUANTISATIONS = ("4bit", "8bit")


def choose_quantisation(asked: object, device: str) -> str | None:
    """Return ``4bit`` or ``8bit`` where one is asked for and a package can do it here.

    Raises
    ------
    UserError
        It is another word, or neither bitsandbytes nor torchao is installed for this device.
    """
    if asked is None:
        return None
    if asked not in QUANTISATIONS:
        raise unknown_name("quantisation", str(asked), QUANTISATIONS)
    quantised(str(asked), device)
    return str(asked)


def quantised(bits: str, device: str) -> Any:
    """Return transformers' configuration for weights of 4 or 8 bits: bitsandbytes on CUDA, else torchao."""
    import torch

    if device.startswith("cuda") and importlib.util.find_spec("bitsandbytes") is not None:
        from transformers import BitsAndBytesConfig

        if bits == "8bit":
            return BitsAndBytesConfig(load_in_8bit=True)
        return BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
        )
    if importlib.util.find_spec("torchao") is not None and not device.startswith("mps"):
        from transformers import TorchAoConfig

        kinds = importlib.import_module("torchao.quantization")
        name = "Int8WeightOnlyConfig" if bits == "8bit" else "Int4WeightOnlyConfig"
        return TorchAoConfig(getattr(kinds, name)())
    package = "bitsandbytes" if device.startswith("cuda") else "torchao"
    raise UserError(
        f"quantisation: {bits} needs a package that is not installed for {device}",
        mend="Leave quantisation out and take dtype: bfloat16."
        if device.startswith("mps")
        else f"Install it: pip install {package}; or leave quantisation out.",
    )


def quantisation_package(bits: str | None, device: str) -> str | None:
    """Return name and version of the package that quantises, for the record of a run."""
    if bits is None:
        return None
    name = type(quantised(bits, device)).__name__
    package = "bitsandbytes" if name == "BitsAndBytesConfig" else "torchao"
    return f"{package} {importlib.metadata.version(package)}"
