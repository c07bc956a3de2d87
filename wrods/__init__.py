"""Mixed-effects models of people's and language models' answers, in the words of the command line.

``wrods.fit`` fits a model to a table and returns a :class:`FittedModel`; ``wrods.analyse`` writes a report on a table of trials.
What the user can correct is raised as :class:`UserError`. All other packages and modules are internal and change without notice.

>>> import wrods
>>> model = wrods.fit("trials.csv", "rt ~ cond + (1 | participant) + (1 | item)")  # doctest: +SKIP
>>> model.contrasts("cond")  # doctest: +SKIP
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wrods._parts import Finder

if TYPE_CHECKING:
    from analysis.fitted_model import FittedModel, fit
    from analysis.long_table import analyse
    from stimuli.errors import UserError

__all__ = ["FittedModel", "UserError", "analyse", "fit"]

_HOMES = {
    "FittedModel": "analysis.fitted_model",
    "UserError": "stimuli.errors",
    "analyse": "analysis.long_table",
    "fit": "analysis.fitted_model",
}

sys.meta_path.insert(0, Finder)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the command line starts without numpy."""
    if name not in _HOMES:
        raise AttributeError(f"module 'wrods' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f"wrods.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return __all__
