"""Imports wrods' own packages as ``wrods.stimuli``, ``wrods.experiment`` and ``wrods.analysis``, whatever else has these names.

Inside, they import each other as ``stimuli``, ``experiment`` and ``analysis``. A user's folder or file of such a name comes first on
Python's path, and another distribution may bring one. So :class:`Finder` loads the packages under ``wrods``, from where this
file is, and their modules get their own ``__import__``, which looks for the three names there. Nothing changes for
other modules: a user's ``import analysis`` still finds the user's.
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

PARTS = ("stimuli", "experiment", "analysis")
_HERE = Path(__file__).parent
_ROOT = _HERE if (_HERE / "analysis").is_dir() else _HERE.parent
"""The folder of the three packages: this package in a wheel, the one above in a source tree."""


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """Import for a module of wrods: as Python's own ``__import__``, but the three packages are those of this installation."""
    first = name.partition(".")[0]
    if level or first not in PARTS:
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    if fromlist:
        return builtins.__import__(f"wrods.{name}", globals, locals, fromlist, 0)
    importlib.import_module(f"wrods.{name}")
    return importlib.import_module(f"wrods.{first}")


_BUILTINS = {**vars(builtins), "__import__": _import}


class _Loader(SourceFileLoader):
    """Loads a module whose ``import`` statements call :func:`_import`."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__builtins__"] = _BUILTINS
        super().exec_module(module)


class Finder:
    """Finds the modules of the three packages below ``wrods``."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return where a module is, as the import system asks it of each finder; None for all other modules."""
        names = name.split(".")
        if names[0] != "wrods" or len(names) < 2 or names[1] not in PARTS:
            return None
        spec = PathFinder.find_spec(name, [str(_ROOT)] if len(names) == 2 else path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec
