"""``python -m wrods``: the same as ``wrods``."""

from importlib import import_module

import_module("wrods.experiment.cli").main()
