"""Which torchvision belongs beside the PyTorch that is here, and what to do where it is missing or does not load.

Processors with a part for videos (Qwen2-VL's and its followers') need it. One that was built for another PyTorch keeps
transformers from loading any model, so that it has to be told of wherever a model does not load.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import re

from experiment.models.settings import NotThereYet


def version_beside(torch: str) -> str:
    """Return the version of torchvision that belongs to a version of PyTorch.

    Both come out together: torchvision 0.15.x with PyTorch 2.0.x, 0.16.x with 2.1.x and so on.

    ``torch``: such as ``2.13.0+cpu``.
    """
    released = re.fullmatch(r"2\.(\d+)\.(\d+)(\+.*)?", torch)
    if released is None:
        raise ValueError(f"which torchvision belongs to PyTorch {torch} is not known")
    return f"0.{int(released[1]) + 15}.{released[2]}"


def how_to_get_it() -> str:
    """Say how torchvision is installed beside the PyTorch that is here."""
    torch = importlib.metadata.version("torch")
    try:
        wanted = f"pip install torchvision=={version_beside(torch)}"
    except ValueError:
        return f"Install the torchvision that was released with PyTorch {torch}."
    built = torch.partition("+")[2]
    if built:
        return f"{wanted} with the --index-url that PyTorch {torch} came from: torchvision has to be built for {built} too."
    return f'{wanted}, or pip install "wrods[pictures]".'


def not_loading() -> NotThereYet | None:
    """Return what is wrong with the torchvision that is installed; None where it loads, or where there is none."""
    if importlib.util.find_spec("torchvision") is None:
        return None
    try:
        importlib.import_module("torchvision")
    except (ImportError, RuntimeError, OSError, AttributeError) as fault:
        said = " ".join(str(fault).split())[:200]
        return NotThereYet(
            f"torchvision is installed and does not load beside PyTorch {importlib.metadata.version('torch')}, which keeps "
            f"transformers from loading any model: {said}",
            mend=f"{how_to_get_it()} Where no model looks at pictures: pip uninstall torchvision.",
        )
    return None
