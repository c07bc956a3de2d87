"""Power by simulation: draw planned studies of many sizes, analyse each as it would be analysed, count what is found.

``assumptions`` holds what is taken to be true; ``given``, ``statements`` and ``pilots`` (with ``moments``) derive it from values by
hand, a table of the literature, a pilot or a fit. ``layouts`` decides who answers what in a study of a given size, ``simulation``
draws and analyses one, ``running`` many at once. ``curves`` counts, and ``telling`` reports it.
"""

from analysis.power.assumptions import (
    Assumptions,
    Given,
    assumed,
    from_mapping,
    from_option,
    from_table,
    without_effects,
)
from analysis.power.curves import Told, check_wanted, needed, power_table, tell, write
from analysis.power.expected import Expected, expected_precision, items_needed
from analysis.power.pilots import from_fit_file, from_pilot
from analysis.power.simulation import (
    LAYOUTS,
    Layout,
    Outcome,
    Question,
    Sizes,
    Study,
    grid,
    layout_named,
    layout_of,
    planned_of,
    simulate,
    sizes_of,
)

__all__ = [
    "LAYOUTS",
    "Assumptions",
    "Expected",
    "Given",
    "Layout",
    "Outcome",
    "Question",
    "Sizes",
    "Study",
    "Told",
    "assumed",
    "check_wanted",
    "expected_precision",
    "from_fit_file",
    "from_mapping",
    "from_option",
    "from_pilot",
    "from_table",
    "grid",
    "items_needed",
    "layout_named",
    "layout_of",
    "needed",
    "planned_of",
    "power_table",
    "simulate",
    "sizes_of",
    "tell",
    "without_effects",
    "write",
]
