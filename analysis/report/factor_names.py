"""Keeps the factors of a study apart from columns that a report calculates.

Users name their factors freely, and a report adds columns to trials and tables. A factor with the name of such a column bears a
mark (:data:`analysis.names.MARK`) while the report is made; whatever is written has its own name (:func:`analysis.names.as_given`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from analysis.frames import STRUCTURE
from analysis.names import MARK
from analysis.plan import TIMES
from analysis.tables import Tables

_NAMES = """
a accuracy adjusted adjusted_accuracy all answer_given answered at axis base before behind beyond_one_typo category ceiling
ceiling_of chance chance_high chance_low changed_words changes check choices column compared_with correct_high correct_low
cost cost_high cost_low count counterbalanced derived df difference difference_high difference_low distance edits estimate
estimate_high estimate_low excluded false_alarm_rate flagged forms gone grades group guessed hash head high highest hit_rate
imported intact is_changed is_repeat item item_cell item_condition item_reader items k key kind label letters level line list
log_ratio log_reading_time log_rt low lowest machine machine_condition mean mean_high mean_log_ratio mean_low mean_rt measure
meets missing missing_share model model_session n name not_recovered number of of_sums other_conditions out_of_context
out_of_context_ratio own p p_adjusted panel parameters part participant participants people percent person place
place_from_end places prompt provenance published quantity r rated rating ratio ratio_high ratio_low reached recovered
recovered_with_one_typo region replicates resampled right role rows rule run said_cell said_part same_direction same_distance
same_place same_place_from_end scale scaled sd se seed series share shown side sign similarity size slopes sorted source speed
stands stated sum term times token_ratio tokens training trial trials trials_that_tell truth unit unit_high unit_low unrelated
unsure use used valid valid_only valid_only_high valid_only_low value verdict wanted weight without word words worth wrong
wrong_high wrong_low zipf zone
"""
CALCULATED = frozenset(_NAMES.split())
"""Columns that a report adds to trials, and those of the tables of items and regions."""


def marked(tables: Tables) -> Tables:
    """Return the tables with marked factors where a report calculates columns of their names."""
    names = {name: name + MARK for name in tables.factors if name in CALCULATED}
    if not names:
        return tables
    crossed = {
        name: TIMES.join(names.get(part, part) for part in name.split(TIMES)) for name in tables.crossed
    }
    columns = names | crossed
    return replace(
        tables,
        trials=tables.trials.rename(columns=columns),
        items=tables.items.rename(columns=names) if set(names) & set(tables.items) else tables.items,
        dictionary=_in_dictionary(tables.dictionary, names),
    )


def _in_dictionary(dictionary: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the study's dictionary with marked factors in plans, true effects and factors of sessions."""

    def keys(mapping: Mapping[str, Any]) -> dict[str, Any]:
        return {names.get(name, name): value for name, value in mapping.items()}

    def compared(value: Any) -> Any:
        return (
            [names.get(name, name) for name in value] if isinstance(value, list) else names.get(value, value)
        )

    words = "|".join(map(re.escape, names))
    variables = re.compile(rf"(?<![\w.])(?:{words})(?![\w.]|\s*\()")

    def variable(match: re.Match[str]) -> str:
        _, bar, before = match.string[: match.start()].rpartition("|")
        is_group = bool(bar) and ")" not in before
        # in (1 | item), item is the item, whatever factors a study has
        return match[0] if is_group and match[0] in STRUCTURE else names[match[0]]

    def plan(declared: Mapping[str, Any]) -> dict[str, Any]:
        renamed = dict(declared)
        for key, value in declared.items():
            if key == "compare":
                renamed[key] = compared(value)
            elif key in ("formula", "fallback") and value:
                renamed[key] = variables.sub(variable, value)
            elif key in ("within", "levels") and isinstance(value, dict):
                renamed[key] = keys(value)
        return renamed

    truth = dictionary["truth"] and {
        name: part | ({"effects": keys(part["effects"])} if isinstance(part.get("effects"), dict) else {})
        for name, part in dictionary["truth"].items()
    }
    return {
        **dictionary,
        **{part: keys(dictionary[part]) for part in ("factors", "between") if dictionary.get(part)},
        "planned": {name: plan(declared) for name, declared in dictionary["planned"].items()},
        "truth": truth,
    }
